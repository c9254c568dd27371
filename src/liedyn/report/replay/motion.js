// The data of a run, unpacked, and the robot at one time as solids.

async function unpacked({ rows, steps, data, order = 2 }) { // the inverse of `packed` in packed.py: a Float64Array a column
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = rows * steps.length;
  return steps.map((step, j) => {
    const out = new Float64Array(rows);
    for (let i = 0, speed = 0, value = 0; i < rows; i++) {
      const k = j * rows + i;
      const d = planes[k] | planes[size + k] << 8 | planes[2 * size + k] << 16 | planes[3 * size + k] << 24;
      speed = order === 2 ? (speed + d) | 0 : d;
      value = order === 0 ? d : (value + speed) | 0;
      out[i] = value * step;
    }
    return out;
  });
}

// The length that nine of ten arrows of forces, or of moments, stay below: blows, which last for a frame, do not hide the others.
function usualLength({ data, arrows, t }, moments) {
  const lengths = data.arrows.of.flatMap(({ kind }, k) => {
    const [x, y, z] = arrows.slice(6 * k + 3, 6 * k + 6);
    return (kind === "moment") === moments ? Array.from(t, (_, i) => Math.hypot(x[i], y[i], z[i])).filter((n) => n > 0) : [];
  });
  lengths.sort((a, b) => a - b);
  return lengths[Math.floor(0.9 * lengths.length)] || 1;
}

const PAINT = [[0.36, 0.54, 0.74], [0.85, 0.55, 0.32], [0.47, 0.64, 0.48], [0.71, 0.56, 0.70], [0.80, 0.70, 0.40],
  [0.45, 0.66, 0.72]];
const STICK = [0.70, 0.74, 0.79];
const BARE = [0.72, 0.74, 0.77];                            // a mesh without a colour
const [AXIS, MARKED, PASSIVE_AXIS] = [[0.50, 0.25, 0.75], [0.95, 0.45, 0.05], [0.62, 0.60, 0.66]];     // of joints; followers
const [COM, TOTAL] = [[0.95, 0.75, 0.10], [0.85, 0.15, 0.45]];      // centres of mass: of links, of the robot
const COLLISION = [0.95, 0.45, 0.20];
const ARROWS = { force: [0.90, 0.36, 0.10], contact: [0.10, 0.55, 0.85], reaction: [0.10, 0.65, 0.45],
  moment: [0.72, 0.35, 0.68] };

class Motion {
  static async of(data, meshes) {
    const motion = new Motion();
    Object.assign(motion, { data, scene: data.scene, meshes, shift: [0, 0, 0], ghost: null });
    const parts = [data.t, data.positions, data.turns, data.arrows, data.curves];
    const [[t], positions, turns, arrows, curves] = await Promise.all(parts.map(unpacked));
    Object.assign(motion, { t, positions, turns, arrows, curves });
    motion.links = data.scene.links.map((link) => ({ ...link, at: pose12(link.at) }));
    const marks = {};
    for (const kind of ["visuals", "solids", "ellipsoids", "collision", "collision_meshes"]) {
      marks[kind] = data.scene[kind].map((one) => ({ ...one, at: pose12(one.at) }));
    }
    motion.marks = marks;
    motion.scenery = await Scenery.of(data, motion);
    motion.mechanism = data.mechanism ? new Mechanism(data.mechanism) : null;
    motion.live = data.live ? await Live.of(data.live, motion) : null;
    const order = {};
    data.scene.links.forEach((link, k) => { order[link.name] = k; });
    const handles = (list) => list.map(({ body, at }, k) => ({ link: order[list[k].name ?? list[k].link], body, p: place(at) }));
    motion.handles = [...handles(motion.links), ...handles(marks.ellipsoids)];
    motion.paint = (link) => PAINT[(order[link] || 0) % PAINT.length];
    motion.usual = { force: usualLength(motion, false), moment: usualLength(motion, true) };
    return motion;
  }

  get start() { return this.t[0]; }
  get end() { return this.t[this.t.length - 1]; }

  // the last frame at or before a time, and how far it is to the next, 0 to 1
  frame(time) {
    let low = 0, high = this.t.length - 1;
    if (!(time < this.t[high])) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.t[middle] <= time) low = middle; else high = middle;
    }
    return [low, Math.min(1, Math.max(0, (time - this.t[low]) / (this.t[high] - this.t[low] || 1)))];
  }

  mixed(columns, k, s, from, count) {
    const next = s > 0 ? k + 1 : k, out = new Array(count);
    for (let j = 0; j < count; j++) out[j] = (1 - s) * columns[from + j][k] + s * columns[from + j][next];
    return out;
  }

  seek(time) {                                              // poses of the bodies then; -1 is the ground
    const [k, s] = this.frame(time), count = this.positions.length / 3;
    this.at = { k, s };
    if (this.mechanism) this.kernel = this.mechanism.poses();
    this.time = time;
    this.bodies = this.mechanism ? this.mechanism.framesOf(this.kernel)
      : Array.from({ length: count }, (_, b) => this.bodyAt(b, k, s));
    this.bodies[-1] = this.bodyAt(-1, k, s);
  }

  bodyAt(b, k, s) {                                         // pose of a body in a frame, and a part of the way to the next
    if (b < 0) return columns([1, 0, 0], [0, 1, 0], [0, 0, 1], this.shift);
    return pose(this.mixed(this.turns, k, s, 4 * b, 4), along(this.shift, this.mixed(this.positions, k, s, 3 * b, 3), 1));
  }

  body(b) { return this.bodies[b]; }
  link(k) { return product(this.body(this.links[k].body), this.links[k].at); }

  path(k) {                                                 // of a link's origin, through all frames
    const { body, at } = this.links[k];
    return Array.from(this.t, (_, i) => moved(this.bodyAt(body, i, 0), place(at)));
  }

  // {solid: numbers} of what stands there, of what one sees through, and of what is drawn over all; ghost: the colour of one
  solids({ inertia, forces, meshes, com, collision, joints, arrowScale, marked, ...shown }) {
    const { ghost } = this;
    const solid = {}, clear = {}, over = {};
    const put = (into, kind, m, [r, g, b], alpha = 1) => { (into[kind] ||= []).push(...m, r, g, b, alpha); };
    const main = ghost ? clear : solid, alpha = ghost ? 0.35 : 1, tone = (paint) => ghost || paint;
    const { radius, size } = this.scene;
    for (const { mesh, at, body, scale, colour } of meshes ? this.marks.visuals : []) {
      const m = scaled(product(this.body(body), at), ...scale);
      this.meshes[mesh].forEach((part, k) => {
        put(main, `mesh ${mesh} ${k}`, m, tone((part.colour || colour || BARE).map((x) => 0.88 * x)), alpha); // white has room
      });
    }
    for (const { kind, sizes, at, link, body, colour, covered } of this.marks.solids) {
      if (covered && meshes) continue;
      put(main, kind, scaled(product(this.body(body), at), ...sizes), tone(colour || this.paint(link)), alpha);
    }
    const points = this.scene.points.map(([body, ...p]) => moved(this.body(body), p));
    const stick = (a, b, r, paint, into = main, opacity = alpha) => {
      const way = minus(b, a), length = Math.hypot(...way);
      if (length < 1e-9) return;
      put(into, "rod", scaled(pointing(along(a, way, 0.5), way), r, r, length), paint, opacity);
    };
    for (const [a, b, r, covered] of this.scene.edges) {
      if (covered && meshes) continue;
      stick(points[a], points[b], r, tone(STICK));
      for (const p of [points[a], points[b]]) put(main, "bead", columns([r, 0, 0], [0, r, 0], [0, 0, r], p), tone(STICK), alpha);
    }
    for (const rim of this.scene.rims) {
      rim.forEach((p, k) => stick(points[p], points[rim[(k + 1) % rim.length]], radius, tone(STICK)));
    }
    for (const [a, b, spring] of this.scene.elements) {       // a spring is a zigzag line
      const way = minus(points[b], points[a]), length = Math.hypot(...way), axis = Math.abs(way[1]) > 0.9 * length ? [1, 0, 0] : [0, 1, 0];
      const side = cross(way, axis), width = 0.06 * length / (Math.hypot(...side) || 1);
      const at = (s, height) => along(along(points[a], way, s), side, width * height);
      const line = spring ? [at(0, 0), at(0.15, 0), ...Array.from({ length: 12 }, (_, k) => at(0.15 + 0.7 * (k + 0.5) / 12, k % 2 ? -1 : 1)),
        at(0.85, 0), at(1, 0)] : [points[a], points[b]];
      line.slice(1).forEach((p, k) => stick(line[k], p, 0.7 * radius, tone(STICK)));
    }
    for (const { at, sizes, body, link, covered, solid: alone } of this.marks.ellipsoids) {
      const m = scaled(product(this.body(body), at), ...sizes);
      if (alone && !(covered && meshes)) put(main, "sphere", m, tone(this.paint(link)), alpha);
      else if (inertia && !ghost) put(clear, "sphere", m, this.paint(link), 0.4);
    }
    if (forces && !ghost) {
      this.data.arrows.of.forEach(({ kind }, k) => {
        const six = this.mixed(this.arrows, this.at.k, this.at.s, 6 * k, 6);
        const usual = this.usual[kind === "moment" ? "moment" : "force"], share = Math.hypot(...six.slice(3)) / usual;
        const stretch = 0.3 * size * arrowScale * Math.min(1, 2 / share) / usual;             // at most twice the usual length
        const way = six.slice(3).map((x) => x * stretch), length = Math.hypot(...way), r = 0.9 * radius;
        if (!(length > 0.3 * r)) return;
        const from = along(this.shift, six, 1), head = Math.min(7 * r, 0.6 * length), neck = along(from, way, 1 - head / length);
        stick(from, neck, r, ARROWS[kind], solid, 1);
        put(solid, "cone", scaled(pointing(neck, way), 2.6 * r, 2.6 * r, head), ARROWS[kind]);
        if (kind === "moment") {                            // two heads: turns about it
          put(solid, "cone", scaled(pointing(along(neck, way, -0.6 * head / length), way), 2.6 * r, 2.6 * r, head), ARROWS[kind]);
        }
      });
    }
    for (const { kind, sizes, at, body } of collision && !ghost ? this.marks.collision : []) {
      put(clear, kind, scaled(product(this.body(body), at), ...sizes), COLLISION, 0.4);
    }
    for (const { mesh, at, body, scale } of collision && !ghost ? this.marks.collision_meshes : []) {
      const m = scaled(product(this.body(body), at), ...scale);
      this.meshes[mesh].forEach((_, k) => put(clear, `mesh ${mesh} ${k}`, m, COLLISION, 0.4));
    }
    if (!ghost) this.scenery.put(shown, put, clear, solid);
    if (com && !ghost) this.putMasses((p, r, paint) => put(over, "sphere", columns([r, 0, 0], [0, r, 0], [0, 0, r], p), paint));
    if (joints && this.mechanism) this.putAxes((kind, m, paint) => put(over, kind, m, paint), marked);
    return { solid, clear, over };
  }

  putMasses(ball) {                                         // a ball for each link, and one for all of them
    const { ellipsoids } = this.marks, most = Math.max(...ellipsoids.map(({ mass }) => mass));
    let sum = [0, 0, 0], total = 0;
    for (const { body, at, mass } of ellipsoids) {
      const p = place(product(this.body(body), at));
      ball(p, 1.8 * this.scene.radius * Math.max(0.4, Math.cbrt(mass / most)), COM);
      sum = along(sum, p, mass);
      total += mass;
    }
    if (total > 0) ball(sum.map((x) => x / total), 2.6 * this.scene.radius, TOTAL);
  }

  putAxes(add, marked) {                                    // screws of joints: rotations with a cone, translations with a box
    const { radius, size } = this.scene, { parts } = this.mechanism, length = 0.16 * size;
    this.mechanism.bodies.forEach(([, kind, , iv, a], i) => {
      const part = parts.find(({ v }) => v === iv), m = this.kernel[i], r = (part === marked ? 0.9 : 0.5) * radius;
      if (i === 0 || kind !== ONE_DOF) return;
      const paint = part === marked ? MARKED : part?.follows ? PASSIVE_AXIS : AXIS, way = m.slice(8, 11);
      const tip = along(place(m), way, length / 2);
      add("rod", scaled(m, r, r, length), paint);
      if (a === 0) add("box", scaled(columns(m.slice(0, 3), m.slice(4, 7), way, tip), 4 * r, 4 * r, 4 * r), paint);
      else add("cone", scaled(pointing(tip, way), 2.6 * r, 2.6 * r, 7 * r), paint);
    });
  }
}
