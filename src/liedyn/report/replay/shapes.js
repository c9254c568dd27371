// Solids of unit size as {vertices: position and normal of each, triangles: three vertices each}.

// A surface of revolution about z: rows [radius, z, radial and vertical part of the normal]; `sides` around.
function revolved(rows, sides) {
  const vertices = [], triangles = [];
  for (const [r, z, nr, nz] of rows) {
    for (let k = 0; k <= sides; k++) {
      const c = Math.cos(2 * Math.PI * k / sides), s = Math.sin(2 * Math.PI * k / sides);
      vertices.push(r * c, r * s, z, nr * c, nr * s, nz);
    }
  }
  for (let i = 0; i + 1 < rows.length; i++) {
    for (let k = 0; k < sides; k++) {
      const a = i * (sides + 1) + k, b = a + sides + 1;
      triangles.push(a, a + 1, b + 1, a, b + 1, b);
    }
  }
  return { vertices, triangles };
}

function boxSolid() {                                       // lengths 1
  const vertices = [], triangles = [];
  for (let axis = 0; axis < 3; axis++) {
    for (const side of [-1, 1]) {
      const first = vertices.length / 6;
      for (const [u, v] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
        const p = [0, 0, 0], n = [0, 0, 0];
        p[axis] = side / 2; p[(axis + 1) % 3] = side * u / 2; p[(axis + 2) % 3] = v / 2;
        n[axis] = side;
        vertices.push(...p, ...n);
      }
      triangles.push(first, first + 1, first + 2, first, first + 2, first + 3);
    }
  }
  return { vertices, triangles };
}

function sphereSolid(bands, sides) {                        // radius 1
  const rows = Array.from({ length: bands + 1 }, (_, k) => {
    const a = Math.PI * (k / bands - 0.5);
    return [Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a)];
  });
  return revolved(rows, sides);
}

function cylinderSolid(sides) {                             // radius 1, length 1, about its middle
  return revolved([[0, -0.5, 0, -1], [1, -0.5, 0, -1], [1, -0.5, 1, 0], [1, 0.5, 1, 0], [1, 0.5, 0, 1], [0, 0.5, 0, 1]], sides);
}

// coarse: without a graphics processor, a frame of 50 links takes a tenth less
const solids = (coarse) => ({
  box: boxSolid(),
  sphere: coarse ? sphereSolid(10, 14) : sphereSolid(12, 18),
  bead: coarse ? sphereSolid(5, 8) : sphereSolid(6, 9),     // a small sphere
  rod: revolved([[1, -0.5, 1, 0], [1, 0.5, 1, 0]], coarse ? 8 : 12),                          // a thin cylinder without ends
  cylinder: cylinderSolid(32),
  drum: cylinderSolid(14),                                  // a small cylinder
  cone: revolved([[0, 0, 0, -1], [1, 0, 0, -1], [1, 0, 0.7, 0.7], [0, 1, 0.7, 0.7]], 16),     // radius 1, height 1, on its base
});
