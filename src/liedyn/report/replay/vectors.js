// Vectors are arrays of three numbers, matrices of 16 by columns, as WebGL takes them.

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const along = (a, b, s) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];          // a + s b
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };
const columns = (x, y, z, p) => [...x, 0, ...y, 0, ...z, 0, ...p, 1];
const place = (m) => [m[12], m[13], m[14]];
const moved = (m, [x, y, z]) => [0, 1, 2].map((i) => m[i] * x + m[4 + i] * y + m[8 + i] * z + m[12 + i]);

function product(a, b) {
  const out = new Array(16);
  for (let j = 0; j < 16; j += 4) {
    for (let i = 0; i < 4; i++) out[j + i] = a[i] * b[j] + a[4 + i] * b[j + 1] + a[8 + i] * b[j + 2] + a[12 + i] * b[j + 3];
  }
  return out;
}

const scaled = (m, x, y, z) => m.map((value, k) => value * [x, y, z, 1][k >> 2]);

// rotation by rows and translation: twelve numbers, as the data have them
const pose12 = (r) => [r[0], r[3], r[6], 0, r[1], r[4], r[7], 0, r[2], r[5], r[8], 0, r[9], r[10], r[11], 1];

function pose(q, p) {                                       // quaternion x y z w of any length but zero, and place
  const n = Math.hypot(q[0], q[1], q[2], q[3]) || 1;
  const x = q[0] / n, y = q[1] / n, z = q[2] / n, w = q[3] / n;
  return [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), 0,
    2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), 0,
    2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), 0, p[0], p[1], p[2], 1];
}

// a frame at `from` whose z axis points along `way`
function pointing(from, way) {
  const z = unit(way), other = Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
  const x = unit(cross(other, z));
  return columns(x, cross(z, x), z, from);
}

// a point in the picture: x, y and z within -1 and 1, times w
const projected = (view, p) => [0, 1, 2, 3].map((i) => dot([view[i], view[4 + i], view[8 + i]], p) + view[12 + i]);

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  return [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
}

function orthographic(half, aspect, far) {                   // half: of the height of the picture; from -far to far
  return [1 / (half * aspect), 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, -1 / far, 0, 0, 0, 0, 1];
}

function looking(eye, target) {                             // z is up
  const z = unit(minus(eye, target)), x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  return [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1];
}
