// A robot that is simulated in the page: time, sliders of its numbers, and a spring between the mouse and a link.

const HISTORY = 20, RATE = 60;                              // s of the plot; rows per second
const BUDGET = 24;                                          // ms of computation for a frame
const [SPRING, DAMPER] = [6, 5];                            // 1/s: of the spring at the mouse, for the mass of the robot
const PULL_TIME = 1e-3;                                     // s between computations of its force
const LAGGING = 0.8;                                        // of the speed that is set: slower motions are noted

class Live {
  static async of(data, motion) {
    const bytes = Uint8Array.from(atob(data.module), (c) => c.charCodeAt(0));
    return new Live(await Simulation.load(bytes, data.simulation), data, motion);
  }

  constructor(simulation, data, motion) {
    Object.assign(this, { simulation, data, motion, pull: null, pace: 1 });
    this.sliders = data.sliders.map((slider) => ({ ...slider, start: slider.x }));
    this.modes = new JointModes(simulation, data.modes);
    this.numbers = Object.fromEntries(["values", "varying", "law_values"].map((name) => [name, simulation[name].slice()]));
    this.columns = data.simulation.places;
    this.reset();
  }

  get time() { return this.simulation.t; }
  get ended() { return this.simulation.ended; }

  reset() {
    this.simulation.reset();
    this.t = [];
    this.curves = Object.keys(this.data.columns).map(() => []);
    this.setNumbers();
    this.record();
    this.show();
  }

  setNumbers() {                                            // of the sliders; the force of the mouse is zero
    for (const [array, base] of Object.entries(this.numbers)) this.simulation[array].set(base);
    for (const { x, start, terms } of this.sliders) {
      for (const [array, place, factor] of terms) this.simulation[array][place] += factor * (x - start);
    }
  }

  setState(q) {                                             // at rest, as the sliders of joints set it
    const { simulation } = this;
    simulation.q.set(q);
    simulation.v.fill(0);
    simulation.z.set(simulation.data.initial.z);
    simulation.work.set(simulation.data.initial.work.map((x) => x ?? NaN));
    simulation.ended = "";
    this.modes.follow();
    this.record();
  }

  // Simulates so many seconds, or as far as the time for a frame allows.
  advance(seconds) {
    const { simulation } = this, start = performance.now(), from = simulation.t, until = from + seconds;
    const slice = Math.max(simulation.data.step, Math.min(2e-3, seconds));
    while (simulation.t < until - 1e-9 && !simulation.ended && performance.now() - start < BUDGET) {
      simulation.run(Math.min(until, simulation.t + slice), () => this.setPull());
    }
    this.pace = 0.9 * this.pace + 0.1 * (simulation.t - from) / seconds;
    this.record();
    this.show();
  }

  get lags() { return this.pace < LAGGING && !this.ended; }

  show() { if (this.motion.mechanism) this.motion.mechanism.q = [...this.simulation.q]; }

  record() {
    const { simulation } = this, { q, v, a, tau } = simulation, last = this.t[this.t.length - 1];
    if (last !== undefined && simulation.t > last && simulation.t - last < 0.9 / RATE) return;
    if (simulation.outputs()) return;
    if (last !== undefined && simulation.t <= last) { this.t.pop(); this.curves.forEach((x) => x.pop()); }
    this.t.push(simulation.t);
    [...q, ...v, ...a, ...tau].forEach((x, k) => this.curves[k].push(x));
    if (this.t[0] < simulation.t - HISTORY) { this.t.shift(); this.curves.forEach((x) => x.shift()); }
  }

  // --- mouse ----------------------------------------------------------------------------------------------------------

  // Takes a link at a point of the world. Returns whether it moves.
  grab(name, point) {
    const [link, place_] = this.data.drags[name] ?? [];
    if (!link) return false;
    const k = this.motion.links.findIndex((one) => one.name === link), m = this.poseOf(k);
    this.pull = { k, place: place_, p: moved(relative(m, columns([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0])), point), target: point,
      last: -1, point };
    return true;
  }

  release() {
    this.pull = null;
    this.setNumbers();
  }

  poseOf(k) {                                               // of a link at the present state
    const { mechanism, links } = this.motion, poses = mechanism.poses([...this.simulation.q]);
    const [body, at] = mechanism.frames[links[k].body];
    return product(product(poses[body], at), links[k].at);
  }

  setPull() {                                               // the wrench of spring and damper, about the origin of the link
    const { pull, simulation, data } = this;
    if (!pull || (simulation.t >= pull.last && simulation.t - pull.last < PULL_TIME)) return;
    const m = this.poseOf(pull.k), point = moved(m, pull.p), dt = simulation.t - pull.last;
    const speed = pull.last < 0 || dt > 0.1 || dt <= 0 ? [0, 0, 0] : minus(point, pull.point).map((x) => x / dt);
    const force = minus(pull.target, point).map((x, k) => data.mass * (SPRING * SPRING * x - DAMPER * speed[k]));
    const f = [0, 1, 2].map((j) => dot(m.slice(4 * j, 4 * j + 3), force));
    simulation.values.set([...cross(pull.p, f), ...f], pull.place);
    Object.assign(pull, { point, last: simulation.t });
  }

  line() {                                                  // from the link to the mouse
    const { pull } = this;
    return pull ? [...moved(this.poseOf(pull.k), pull.p), ...pull.target, ...rgb("#c2410c"), 1] : [];
  }
}

// A slider with a number. set(x) moves both and calls change(x).
function numberRow({ name, low, high, x, unit = "", label = name }, change) {
  const range = element("input", { type: "range", min: low, max: high, step: "any", value: x });
  const number = element("input", { type: "number", step: "any", value: Number(x.toPrecision(4)) });
  for (const input of [range, number]) input.setAttribute("aria-label", label);
  const set = (value) => {
    range.value = value;
    if (document.activeElement !== number) number.value = Number(value.toPrecision(4));
    change(value);
  };
  range.addEventListener("input", () => set(Number(range.value)));
  number.addEventListener("change", () => set(Number(number.value)));
  const texts = [Number(low.toPrecision(3)), Number(high.toPrecision(3))].map((end) => (unit ? `${end} ${unit}` : end));
  const ends = element("small", {}, ...texts.map((textContent) => element("span", { textContent })));
  const node = element("label", { title: "" }, element("span", { textContent: name, title: name }),
    element("div", { className: "track" }, range, ends), number);
  return { node, set };
}

// Sliders, keys and the mouse of a live page.
function addLive(viewer) {
  const { live } = viewer.main, canvas = $("view"), { camera } = viewer;
  document.documentElement.classList.add("live");
  $("parameters").hidden = !live.sliders.length;
  for (const slider of live.sliders) {
    const row = numberRow(slider, (value) => { slider.x = value; live.setNumbers(); });
    slider.set = row.set;
    $("parameter-list").append(row.node);
  }
  live.modes.addTo(viewer);
  $("defaults").addEventListener("click", () => {
    live.sliders.forEach((slider) => slider.set(slider.start));
    live.modes.rows.forEach((row) => row.choose(row.start));
  });
  $("restart").addEventListener("click", () => viewer.restart());
  canvas.addEventListener("pointerdown", (event) => {
    const k = event.button || event.shiftKey ? -1 : pick(viewer, event, canvas);
    if (k < 0) return;
    const { view } = camera.look(viewer.followed()), point = handleAt(viewer, k, event, canvas), [, , , w] = projected(view, point);
    if (!live.grab(viewer.main.links[k].name, point)) return;
    const depth = camera.parallel ? camera.distance : w, metres = 2 * depth * Math.tan(ANGLE / 2) / canvas.clientHeight;
    Object.assign(camera, { locked: true });
    viewer.grip = { x: event.clientX, y: event.clientY, metres, point };
  });
  canvas.addEventListener("pointermove", ({ clientX, clientY }) => {
    const { grip } = viewer;
    if (!grip || !live.pull) return;
    const { x, y, metres, point } = grip;
    live.pull.target = along(along(point, camera.right, (clientX - x) * metres), camera.up, (y - clientY) * metres);
    if (!viewer.playing && Math.hypot(clientX - x, clientY - y) > 4) viewer.play(true);
    viewer.dirty = true;
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      if (viewer.grip) live.release();
      Object.assign(viewer, { grip: null, dirty: true });
      camera.locked = false;
    });
  }
}

// The handle of a link that is nearest to the mouse.
function handleAt({ main, camera, followed }, link, { offsetX, offsetY }, { clientWidth, clientHeight }) {
  const { view } = camera.look(followed()), points = main.handles.filter((one) => one.link === link).map(({ body, p }) => (
    moved(main.body(body), p)));
  const gaps = points.map((p) => {
    const [x, y, , w] = projected(view, p);
    return Math.hypot((x / w + 1) / 2 * clientWidth - offsetX, (1 - y / w) / 2 * clientHeight - offsetY);
  });
  return points[gaps.indexOf(Math.min(...gaps))];
}
