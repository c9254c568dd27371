// What a scenario adds to the robot: contact planes and shapes, targets and waypoints, bodies that events attach.

const [PLANE, TOUCHING, TARGET, PAYLOAD] = [[0.35, 0.50, 0.65], [0.10, 0.60, 0.55], [0.85, 0.15, 0.45], [0.55, 0.38, 0.22]];
const FRAME = PALETTE.axes.map(rgb);                        // x red, y green, z blue
const MOST_DASHES = 600;                                    // of the path of a target
const PLANE_LINES = 8;                                      // from the middle of a plane to each side

class Scenery {
  static async of(data, motion) {
    const scenery = new Scenery(), placed = (list) => list.map((one) => ({ ...one, at: pose12(one.at) }));
    const { planes, contacts, waypoints, payloads } = data.scenery;
    const targets = await Promise.all(data.scenery.targets.map(async (one) => ({ name: one.name, path: await unpacked(one) })));
    const { scene: { bounds: [low, high] }, floor } = data;
    // the grid of the ground shows a horizontal plane
    const shown = placed(planes).filter(({ body, at }) => body >= 0 || at[10] < 1 - 1e-9 || Math.abs(at[14] - floor) > 1e-9);
    return Object.assign(scenery, { motion, planes: shown, contacts: placed(contacts), waypoints: placed(waypoints),
      payloads: placed(payloads), targets, middle: low.map((x, k) => (x + high[k]) / 2), size: data.scene.size });
  }

  get kinds() {                                             // switches that do something
    const { planes, contacts, targets, waypoints, payloads } = this;
    return { planes: planes.length, contacts: contacts.length, targets: targets.length + waypoints.length,
      payloads: payloads.length };
  }

  // half of the side of a plane, and its middle: of one in the world, below or beside the motion
  extent({ body, at }) {
    if (body >= 0) return [0.4 * this.size, place(at)];
    const normal = at.slice(8, 11), away = dot(minus(this.middle, place(at)), normal);
    return [0.9 * this.size, along(this.middle, normal, -away)];
  }

  put(show, put, clear, solid) {                            // solids of what is shown
    const { motion, size } = this, radius = motion.scene.radius;
    for (const plane of show.planes ? this.planes : []) {
      const [half, middle] = this.extent(plane), m = product(motion.body(plane.body), [...plane.at.slice(0, 12), ...middle, 1]);
      put(clear, "box", scaled(m, 2 * half, 2 * half, 1e-3 * size), PLANE, 0.18);
    }
    for (const { kind, body, at, sizes } of show.contacts ? this.contacts : []) {
      put(clear, kind, scaled(product(motion.body(body), at), ...sizes), TOUCHING, 0.45);
    }
    for (const { path: [x, y, z] } of show.targets ? this.targets : []) {
      const p = along(motion.mixed([x, y, z], motion.at.k, motion.at.s, 0, 3), motion.shift, 1), r = 1.6 * radius;
      put(solid, "sphere", columns([r, 0, 0], [0, r, 0], [0, 0, r], p), TARGET);
    }
    for (const { body, at, sizes, from, until } of show.payloads ? this.payloads : []) {
      if (until !== null && motion.time >= until) continue; // it moves freely
      const rests = motion.time < from, m = rests ? motion.bodyAt(body, ...motion.frame(from)) : motion.body(body);
      put(rests ? clear : solid, "sphere", scaled(product(m, at), ...sizes), PAYLOAD, rests ? 0.6 : 1);
    }
  }

  lines(show) {                                             // ten numbers a line
    const { motion, size } = this, numbers = [];
    for (const plane of show.planes ? this.planes : []) {
      const [half, middle] = this.extent(plane), m = product(motion.body(plane.body), [...plane.at.slice(0, 12), ...middle, 1]);
      for (let k = -PLANE_LINES; k <= PLANE_LINES; k++) {
        const x = half * k / PLANE_LINES;
        for (const ends of [[[x, -half, 0], [x, half, 0]], [[-half, x, 0], [half, x, 0]]]) {
          numbers.push(...ends.flatMap((end) => moved(m, end)), ...PLANE, 0.7);
        }
      }
      numbers.push(...place(m), ...along(place(m), m.slice(8, 11), 0.12 * size), ...PLANE, 1);         // the normal
    }
    for (const { path: [x, y, z] } of show.targets ? this.targets : []) {
      const stride = Math.ceil(x.length / MOST_DASHES);
      for (let i = 0; i + stride < x.length; i += 2 * stride) {
        numbers.push(...[i, i + stride].flatMap((k) => along([x[k], y[k], z[k]], motion.shift, 1)), ...TARGET, 0.8);
      }
    }
    for (const { at } of show.targets ? this.waypoints : []) {
      const p = along(place(at), motion.shift, 1);
      FRAME.forEach((colour, j) => numbers.push(...p, ...along(p, at.slice(4 * j, 4 * j + 3), 0.07 * size), ...colour, 1));
    }
    return numbers;
  }
}
