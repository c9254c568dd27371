// A robot at a configuration q: poses of its bodies, followers of couplings, and loops that stay closed. It draws nothing.
// Same conventions as the kernels of the library: screws about z, quaternions x y z w, residuals of `joints/loop_joints.py`.

const [ONE_DOF, BALL] = [0, 1], COUNT_Q = [1, 4, 7], COUNT_V = [1, 3, 6];
const [WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR, BALL_CLOSURE, UNIVERSAL, DISTANCE, ROLLING] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const EQUATIONS = { [WELD]: [0, 1, 2, 3, 4, 5], [REVOLUTE]: [0, 1, 3, 4, 5], [PRISMATIC]: [0, 1, 2, 3, 4],
  [CYLINDRICAL]: [0, 1, 3, 4], [PLANAR]: [0, 1, 5], [BALL_CLOSURE]: [3, 4, 5] };       // components [m; f] in frame B
const CLOSED = 1e-9;                                        // maximum scaled residual: rad, or lengths of a loop
const STRIDE = 0.1;                                         // rad, or lengths: of a slider between two closed configurations
const FARTHEST = 0.8;                                       // of other coordinates in a stride: beyond it is another branch
const STALLED = 0.999;                                      // of the residual: steps that decrease it by less lead nowhere
const SHAKE = 0.02;                                         // rad, or lengths: off a dead point
const SMALLEST = 1e-2;                                      // part of the way: there the slider stops
const OPERATIONS = [null, (r, a) => r[a], (r, a, b) => r[a] + r[b], (r, a, b) => r[a] - r[b], (r, a, b) => r[a] * r[b],
  (r, a, b) => r[a] / r[b], (r, a) => Math.sqrt(r[a]), (r, a) => Math.sin(r[a]), (r, a) => Math.cos(r[a]),
  (r, a) => Math.exp(r[a]), (r, a) => Math.log(r[a]), (r, a, b) => Math.atan2(r[a], r[b])];    // `model/coupling_functions.py`
const [INPUT, TABLE_HEADER] = [4, 3];

const multiplied = ([a, b, c, d], [x, y, z, w]) => [           // quaternions
  d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x, d * z + a * y - b * x + c * w, d * w - a * x - b * y - c * z];
const normalized = (x) => { const n = Math.hypot(...x) || 1; return x.map((value) => value / n); };

function turnOf([x, y, z]) {                                // the quaternion of a rotation vector
  const angle = Math.hypot(x, y, z), k = angle > 1e-9 ? Math.sin(angle / 2) / angle : 0.5;
  return [k * x, k * y, k * z, Math.cos(angle / 2)];
}

// roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll)
function anglesOf([x, y, z, w]) {
  const s = Math.max(-1, Math.min(1, 2 * (w * y - z * x)));
  return [Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), Math.asin(s),
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))];
}
const quaternionOf = ([roll, pitch, yaw]) => multiplied(turnOf([0, 0, yaw]),
  multiplied(turnOf([0, pitch, 0]), turnOf([roll, 0, 0])));

// the inverse of a pose, times another
function relative(a, b) {
  const R = [a[0], a[4], a[8], 0, a[1], a[5], a[9], 0, a[2], a[6], a[10], 0, 0, 0, 0, 1];
  return product(columns(R.slice(0, 3), R.slice(4, 7), R.slice(8, 11), moved(R, place(a)).map((x) => -x)), b);
}

function evaluated({ code, constants }, x) {                // f of a nonlinear coupling
  const r = [0, 0, 0, 0, x];
  for (const [operation, out, a, b, c, d] of code) {
    if (operation === 0) r[out] = constants[a];
    else if (operation === OPERATIONS.length) r[out] = tableValue(constants, r[a], b, c, d);
    else r[out] = OPERATIONS[operation](r, a, b);
  }
  return r[0];
}

function tableValue(constants, x, first, pieces, degree) {
  const [period, start, increase] = constants.slice(first, first + TABLE_HEADER);
  const turns = period ? Math.floor((x - start) / period) : 0, y = x - turns * period, breaks = first + TABLE_HEADER;
  let k = 0, value = 0;
  while (k + 1 < pieces && y >= constants[breaks + k + 1]) k++;
  const polynomial = breaks + pieces + k * (degree + 1);
  for (let i = degree; i >= 0; i--) value = value * (y - constants[breaks + k]) + constants[polynomial + i];
  return value + turns * increase;
}

// The residual of a closure from the pose of frame B in frame A.
function residualOf({ kind, extent, sphere }, m) {
  const p = place(m), back = (v) => [0, 1, 2].map((j) => dot(m.slice(4 * j, 4 * j + 3), v)), n = [m[2], m[6], m[10]];
  if (kind === DISTANCE) return [Math.hypot(...p) - extent];
  if (kind === UNIVERSAL) return [m[4], ...back(p)];
  if (kind === ROLLING) {
    const size = Math.hypot(n[0], n[1]) || 1, way = sphere < 0 ? n : [n[0] / size, n[1] / size, 0];
    return n.map((x) => x * (p[2] - extent * dot(n, way)));
  }
  let turn = [0, 0, 0];
  if (kind === WELD || kind === PRISMATIC) {                // the logarithm
    const axis = [m[6] - m[9], m[8] - m[2], m[1] - m[4]].map((x) => x / 2), sine = Math.hypot(...axis);
    const angle = Math.atan2(sine, (m[0] + m[5] + m[10] - 1) / 2);
    turn = axis.map((x) => x * (sine > 1e-12 ? angle / sine : 1));
  } else if (kind !== BALL_CLOSURE) {                       // the angle between the axes
    const h = 1 + m[10], f = Math.sqrt(2 / Math.max(h, 1e-30));
    turn = h < 1e-15 ? [2, 0, 0] : [m[6] * f, -m[2] * f, 0];
  }
  const y = back(p), all = [...turn, ...minus(y, cross(y, turn))];
  return EQUATIONS[kind].map((k) => all[k]);
}

// x of (J^T J + damping) x = -J^T r, by Cholesky's factors; rows of J are columns of coordinates
function dampedStep(J, r, damping) {
  const n = J.length, L = J.map(() => new Array(n).fill(0)), x = new Array(n);
  const inner = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = inner(J[i], J[j]) + (i === j ? damping : 0);
      for (let k = 0; k < j; k++) sum -= L[i][k] * L[j][k];
      L[i][j] = i === j ? Math.sqrt(Math.max(sum, damping)) : sum / L[j][j];
    }
  }
  for (let i = 0; i < n; i++) x[i] = L[i].slice(0, i).reduce((sum, l, k) => sum - l * x[k], -inner(J[i], r)) / L[i][i];
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k];
    x[i] /= L[i][i];
  }
  return x;
}

class Mechanism {
  constructor(data) {
    const placed = (list) => list.map(([...item]) => [...item.slice(0, -1), pose12(item[item.length - 1])]);
    Object.assign(this, data, { bodies: placed(data.bodies), frames: placed(data.frames), start: data.q, q: [...data.q] });
    this.closures = data.closures.map((one) => ({ ...one, at_a: pose12(one.at_a), at_b: pose12(one.at_b) }));
    this.following = new Set(data.followers.map(({ v }) => v));
    this.touched = new Set();                               // parts that were moved by hand
  }

  poses(q = this.q) {                                       // of the bodies of the kernels; 0 is the ground
    const poses = [columns([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0])];
    this.bodies.forEach(([parent, kind, iq, , a, b, home], i) => {
      if (i === 0) return;
      const c = Math.cos(a * q[iq]), s = Math.sin(a * q[iq]);
      const motion = kind === ONE_DOF ? [c, s, 0, 0, -s, c, 0, 0, 0, 0, 1, 0, 0, 0, b * q[iq], 1]
        : kind === BALL ? pose(q.slice(iq, iq + 4), [0, 0, 0]) : pose(q.slice(iq + 3, iq + 7), q.slice(iq, iq + 3));
      poses.push(product(product(poses[parent], home), motion));
    });
    return poses;
  }

  framesOf(poses = this.poses()) { return this.frames.map(([body, at]) => product(poses[body], at)); }     // bodies of the page

  follow(q) {                                               // writes the values of followers into q
    for (const one of this.followers) {
      q[one.q] = one.terms ? one.terms.reduce((sum, [k, factor]) => sum + factor * q[k], one.offset)
        : evaluated(one, q[one.driver]);
    }
    return q;
  }

  residual(q) {                                             // scaled equations of all loops
    const poses = this.poses(q);
    return this.closures.flatMap((one) => {
      const [a, b] = [product(poses[one.a], one.at_a), product(poses[one.b], one.at_b)];
      return residualOf(one, relative(a, b)).map((x, k) => x * one.weights[k]);
    });
  }

  coordinates({ kind, v }) { return Array.from({ length: COUNT_V[kind] }, (_, k) => v + k); }

  stepped(q, x) {                                           // q after a step x in the units of movement, within limits
    const next = [...q];
    for (const { kind, q: iq, v, lower, upper } of this.parts) {
      const d = this.coordinates({ kind, v }).map((k) => x[k] * this.unit[k]);
      if (kind === ONE_DOF) {
        const [low, high] = [Math.min(lower ?? -Infinity, q[iq]), Math.max(upper ?? Infinity, q[iq])];
        next[iq] = Math.min(Math.max(q[iq] + d[0], low), high);
        continue;
      }
      const from = kind === BALL ? iq : iq + 3, turn = q.slice(from, from + 4);
      if (kind !== BALL) moved(pose(turn, q.slice(iq, iq + 3)), d.slice(3)).forEach((value, k) => { next[iq + k] = value; });
      normalized(multiplied(turn, turnOf(d.slice(0, 3)))).forEach((value, k) => { next[from + k] = value; });
    }
    return this.follow(next);
  }

  // The closed configuration near q in which the coordinates of `held` are unchanged; null if none is found.
  close(q, held) {
    const free = this.unit.map((_, k) => k).filter((k) => !held.has(k) && !this.following.has(k)), h = 1e-6;
    const step = (x) => this.unit.map((_, k) => { const j = free.indexOf(k); return j < 0 ? 0 : x[j]; });
    let r = this.residual(q), size = Math.hypot(...r), weight = 1e-3, shaken = false;
    for (let turns = 0; turns < 40 && !(size < CLOSED); turns++) {
      const J = free.map((_, j) => {
        const [up, down] = [h, -h].map((d) => this.residual(this.stepped(q, step(free.map((_, k) => (k === j ? d : 0))))));
        return up.map((x, i) => (x - down[i]) / (2 * h));
      });
      let better = null;
      for (; !better && weight < 1e8; weight *= 10) {
        const next = this.stepped(q, step(dampedStep(J, r, Math.max(weight * Math.min(size, 1), 1e-14))));
        const rest = this.residual(next);
        if (Math.hypot(...rest) < STALLED * size) better = [next, rest];
      }
      if (!better && shaken) return null;
      if (!better) {                                        // a dead point, where no step leads to first order
        const next = this.stepped(q, step(free.map((_, k) => SHAKE * (k % 2 ? 1 : -1) * (1 + k / free.length))));
        [better, weight, shaken] = [[next, this.residual(next)], 1e-3, true];
      }
      [q, r] = better;
      size = Math.hypot(...r);
      weight = Math.max(weight / 100, 1e-10);
    }
    return size < CLOSED ? q : null;
  }

  // Moves a part to the values of its coordinates in q, as far as loops allow. Motors, and parts that were moved before, stay if
  // they can. For a ball or free joint that loops hold, the values are a guess. Returns whether it arrived.
  move(part, values) {
    const count = COUNT_Q[part.kind], from = this.q.slice(part.q, part.q + count), own = this.coordinates(part);
    const at = (s) => {
      const mix = from.map((x, k) => (1 - s) * x + s * values[k]), q = [...this.q];
      const turn = part.kind === ONE_DOF ? [] : normalized(mix.slice(-4));
      [...mix.slice(0, count - turn.length), ...turn].forEach((x, k) => { q[part.q + k] = x; });
      return this.follow(q);
    };
    this.touched.add(part);
    if (!this.closures.length) { this.q = at(1); return true; }
    const others = this.parts.filter((one) => one.keeps || this.touched.has(one)).flatMap((one) => this.coordinates(one));
    const attempts = [[...own, ...others], own, ...(part.kind === ONE_DOF ? [] : [[]])].map((each) => new Set(each));
    const length = Math.max(...from.map((x, k) => Math.abs(values[k] - x))) / (part.kind === ONE_DOF ? this.unit[part.v] : 1);
    let done = 0, ds = Math.min(1, STRIDE / (length || 1));
    while (done < 1 && ds > SMALLEST) {
      const guess = at(Math.min(1, done + ds));
      let q = null;
      for (const held of attempts) q ||= this.near(this.close(guess, held));
      if (q) { this.q = q; done = Math.min(1, done + ds); } else ds /= 2;
    }
    return done >= 1;
  }

  near(q) {                                                 // q unless another branch is there
    const jumps = ({ kind, q: iq, v }) => kind === ONE_DOF && Math.abs(q[iq] - this.q[iq]) > FARTHEST * this.unit[v];
    const far = q && this.parts.some(jumps);
    return far ? null : q;
  }

  set(q) {                                                  // another configuration: with closed loops if they can be closed
    const followed = this.follow([...q]);
    this.q = this.close(followed, new Set()) || followed;
  }
}
