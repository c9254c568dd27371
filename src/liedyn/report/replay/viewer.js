// The page: time, controls and what they change. `window.replay` is for scripts.

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10];
const MOST_BEADS = 500;                                     // marks of events on a trace

const TOGGLES = { axes: "link frames", joints: "joint axes", com: "centres of mass", contacts: "contact shapes" };

class Viewer {
  constructor(runs, meshes, { title, traces, follow, speed, beside }) {
    Object.assign(this, { title, runs, main: runs[0], playing: false, loop: true, speed: 1, arrowScale: 1, follow: -1,
      dirty: true, traces: new Map(), frames: [], pace: 16, told: 0 });
    this.arrangement = new Arrangement(runs, beside && runs.length > 1);
    this.start = Math.min(...runs.map((run) => run.start));
    this.end = Math.max(...runs.map((run) => run.end));
    this.show = { grid: true, shadows: true, axes: false, joints: true, com: false, inertia: false, collision: false,
      forces: true, ghost: true, meshes: true, planes: true, contacts: false, targets: true, payloads: true };
    if (this.main.live) this.show.joints = false;
    this.drawing = new Drawing($("view"));
    meshes.forEach((parts, k) => parts.forEach((part, j) => this.drawing.add(`mesh ${k} ${j}`, part, true)));
    this.detail = this.stillDetail = this.drawing.bySoftware ? 1.6 : 1;          // pixels drawn for each of the screen
    this.camera = new Camera($("view"), this.main.scene.size, () => { this.dirty = true; });
    addPicking(this);
    $("view").addEventListener("webglcontextlost", () => {
      $("problem").hidden = false;
      $("problem").textContent = "The browser has dropped this picture, as it does where many are open. Reload the page.";
    });
    const words = location.hash.slice(1).split("&"), isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.classList.toggle("embedded", words.includes("embedded"));
    this.setTheme(words.includes("dark") || (isDark && !words.includes("light")));
    this.resetView();
    this.addChoices();
    this.addTimes();
    this.setSpeed(speed);
    this.addKeys();
    this.plots = new Plots(this);
    this.sliders = new Sliders(this);
    if (this.main.live) addLive(this);
    for (const name of traces) this.trace(this.number(name), true);
    if (follow) this.setFollow(this.number(follow));
    this.seek(this.timeOfAddress() ?? this.start);
    addEventListener("hashchange", () => { const time = this.timeOfAddress(); if (time !== null) this.seek(time); });
    new ResizeObserver(() => { this.plots.curves.redraw(); this.dirty = true; }).observe($("stage"));
    if (words.includes("embedded")) this.play(true);
    requestAnimationFrame((now) => this.tick(now));
  }

  number(name) { return this.main.links.findIndex((link) => link.name === name); }

  // --- time -----------------------------------------------------------------------------------------------------------

  timeOfAddress() {
    const found = /[#&]t=([-+.\deE]+)/.exec(location.hash), time = found ? Number(found[1]) : NaN;
    return Number.isFinite(time) ? time : null;
  }

  seek(time) {
    if (this.main.live) { this.showLive(); return; }
    this.time = Math.min(this.end, Math.max(this.start, time));
    for (const run of this.runs) run.seek(this.time);
    this.plots.curves.cursor(this.time);
    this.dirty = true;
    const now = performance.now();
    if (this.playing && now - this.told < 60) return;       // text costs more than the picture
    this.told = now;
    $("scrub").value = this.time;
    $("time").textContent = `${this.time.toFixed(3)} s of ${this.end.toFixed(3)} s`;
    $("phase").textContent = printed(this.phaseAt(this.time));
    this.plots.showValues();
    if (!this.playing && !this.filmed && !this.main.mechanism) this.keepAddress();
  }

  showLive() {                                              // the state of the simulation; texts and curves ten times a second
    const { main, plots } = this, { live } = main;
    this.time = live.time;
    main.seek(0);
    this.dirty = true;
    const now = performance.now();
    if (this.playing && now - this.told < 100) return;
    this.told = now;
    $("time").textContent = `${live.time.toFixed(3)} s`;
    $("phase").textContent = printed(live.ended || (this.playing && live.lags ? "slower than real time" : ""));
    plots.show();
    plots.curves.cursor(live.time);
    if (document.activeElement?.closest?.("#joints") === null || !this.playing) this.sliders.showValues();
  }

  restart() {
    this.main.live.reset();
    this.told = 0;
    this.showLive();
  }

  keepAddress() {
    try { history.replaceState(null, "", `#t=${Number(this.time.toFixed(4))}`); } catch { /* not from every place */ }
  }

  step(frames) {
    this.play(false);
    if (this.main.live) { this.main.live.advance(1 / 60); this.showLive(); return; }
    const { t } = this.main, [k, s] = this.main.frame(this.time);
    const from = s > 0 && frames < 0 ? k + 1 : k;
    this.seek(t[Math.min(t.length - 1, Math.max(0, from + frames))]);
  }

  play(playing = !this.playing) {
    if (playing && this.main.live?.ended) this.main.live.reset();
    if (playing && !this.main.live && this.time >= this.end) this.seek(this.start);
    this.playing = playing;
    Object.assign(this, { detail: playing ? Math.min(1, this.detail) : this.stillDetail, pace: 16, dirty: true });
    $("play").textContent = playing ? "Pause" : "Play";
    if (!playing) this.seek(this.time);
  }

  setSpeed(speed) {
    this.speed = speed;
    if (!SPEEDS.includes(speed)) {
      SPEEDS.push(speed);
      SPEEDS.sort((a, b) => a - b);
      $("speed").replaceChildren(...SPEEDS.map((one) => element("option", { value: one, textContent: one })));
    }
    $("speed").value = speed;
  }

  tick(now) {
    const seconds = Math.min(0.1, (now - (this.last ?? now)) / 1000);
    this.last = now;
    if (this.playing) {
      this.keepPace(1000 * seconds);
      if (this.main.live) {
        this.main.live.advance((seconds || 1 / 60) * this.speed);
        this.showLive();
        if (this.main.live.ended) this.play(false);
      }
      let time = this.time + seconds * this.speed;
      if (this.main.live) time = this.time;
      else if (time >= this.end) {
        if (this.recorder) { time = this.end; endRecording(this); }
        else if (this.loop) time = this.start + (time - this.end) % (this.end - this.start || 1);
        else { time = this.end; this.play(false); }
      }
      this.seek(time);
    }
    if (this.dirty || this.recorder) {                      // a recorder takes frames that are drawn
      this.draw();
      this.frames.push(now);
      if (this.frames.length > 120) this.frames.shift();
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  // Where frames take long, as without a graphics processor, fewer pixels are drawn while the motion plays.
  keepPace(milliseconds) {
    this.pace = 0.85 * this.pace + 0.15 * milliseconds;
    if (this.pace > 26 && this.detail > 0.7) { this.detail *= 0.8; this.pace = 16; }
  }

  phaseAt(time) {
    const { marks, phase } = this.main.data;
    return marks.reduce((found, [t, , next]) => (t <= time && next ? next : found), phase);
  }

  addTimes() {
    const scrub = $("scrub"), { marks, phase } = this.main.data, span = this.end - this.start || 1;
    Object.assign(scrub, { min: this.start, max: this.end });
    scrub.addEventListener("input", () => this.seek(Number(scrub.value)));
    const share = (t) => `${100 * (t - this.start) / span}%`;
    for (const [t, name, next] of marks.slice(0, 2000)) {
      const mark = element("button", { title: `${name} at ${t.toFixed(4)} s${next ? `, then ${next}` : ""}`, tabIndex: -1 });
      mark.style.left = share(t);
      mark.addEventListener("click", () => this.seek(t));
      $("marks").append(mark);
    }
    const names = [], bands = [[this.start, phase]];
    for (const [t, , next] of marks) if (next && next !== bands[bands.length - 1][1]) bands.push([t, next]);
    bands.forEach(([t, name], k) => {
      if (!name) return;
      if (!names.includes(name)) names.push(name);
      const band = element("div", { title: name });
      Object.assign(band.style, { left: share(t), width: `${100 * ((bands[k + 1]?.[0] ?? this.end) - t) / span}%`,
        background: PALETTE.curves[names.indexOf(name) % PALETTE.curves.length] });
      $("phases").append(band);
    });
    $("play").addEventListener("click", () => this.play());
    $("first").addEventListener("click", () => this.seek(this.start));
    $("back").addEventListener("click", () => this.step(-1));
    $("forward").addEventListener("click", () => this.step(1));
    for (const speed of SPEEDS) $("speed").append(element("option", { value: speed, textContent: speed }));
    $("speed").addEventListener("change", () => this.setSpeed(Number($("speed").value)));
    $("loop").checked = this.loop;
    $("loop").addEventListener("change", () => { this.loop = $("loop").checked; });
  }

  // --- view -----------------------------------------------------------------------------------------------------------

  resetView(side = this.arrangement.side) {
    const { scene: { size } } = this.main.data, [low, high] = this.arrangement.bounds;
    const isNear = low.every((x, k) => x < size && high[k] > -size);                // the origin of the world: then it is in sight
    const box = isNear ? [low.map((x) => Math.min(x, 0)), high.map((x) => Math.max(x, 0))] : [low, high];
    this.camera.reset(box, side, this.main.mechanism ? 0.1 : 0.04);                 // room for axes of joints
  }

  followed = () => (this.follow < 0 ? undefined : place(this.main.link(this.follow)));     // where the link is

  setFollow(k) {
    this.follow = k;
    $("follow").value = k;
    if (k >= 0) this.camera.approach(); else this.resetView([this.camera.azimuth, this.camera.height]);
  }

  setParallel(parallel) {
    this.camera.parallel = parallel;
    $("parallel").checked = parallel;
    this.dirty = true;
  }

  setTheme(dark) {
    this.dark = dark;
    document.documentElement.classList.toggle("dark", dark);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.colours = { back: colour("--back"), line: colour("--line"), faint: colour("--faint"), accent: colour("--accent"),
      grid: colour("--grid") };
    this.ground = null;
    this.plots?.show();
    this.dirty = true;
  }

  makeGround() {                                            // a grid around all of the motion, and the world's axes
    const { scene: { size }, floor } = this.main.data, [low, high] = this.arrangement.bounds, numbers = [];
    const power = 10 ** Math.floor(Math.log10(size / 3)), step = power * [1, 2, 5, 10].find((k) => k * power >= size / 4.5);
    const most = 200, c = rgb(this.colours.grid);
    const range = [0, 1].map((k) => {
      const from = Math.floor((low[k] - 1.2 * size) / step), until = Math.ceil((high[k] + 1.2 * size) / step);
      const thin = Math.max(1, Math.ceil((until - from) / most));
      return [from * step, until * step, thin * step];
    });
    const [[x0, x1, dx], [y0, y1, dy]] = range;
    for (let x = x0; x <= x1 + 0.01 * dx; x += dx) numbers.push(x, y0, floor, x, y1, floor, ...c, 0.7);
    for (let y = y0; y <= y1 + 0.01 * dy; y += dy) numbers.push(x0, y, floor, x1, y, floor, ...c, 0.7);
    this.ground = this.drawing.lines(numbers);
    const ends = [0, 1, 2].map((j) => [0, 1, 2].map((k) => (j === k ? 0.35 * size : 0)));
    this.world = this.drawing.lines(FRAME.flatMap((colour, j) => [0, 0, 0, ...ends[j], ...colour, 1]));
    $("ground").textContent = `grid ${Number(step.toPrecision(3))} m · x red, y green, z blue`;
  }

  frameAxes() {                                             // of all links, or the chosen one
    const numbers = [], { selected } = this.sliders;
    this.main.links.forEach((_, k) => {
      if (!this.show.axes && k !== selected) return;
      const m = this.main.link(k), p = place(m), length = (k === selected ? 0.14 : 0.08) * this.main.scene.size;
      FRAME.forEach((colour, j) => numbers.push(...p, ...along(p, m.slice(4 * j, 4 * j + 3), length), ...colour, 1));
    });
    return numbers;
  }

  draw(back = this.colours.back) {
    this.dirty = false;
    const { drawing, show, main, arrowScale } = this, { canvas } = drawing;
    const ratio = this.detail * Math.min(2, window.devicePixelRatio || 1);
    const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    if (!this.ground) this.makeGround();
    const { floor } = main.data, looked = this.camera.look(this.followed());
    drawing.begin(looked, rgb(back));
    this.arrangement.placeLabels(looked.view, canvas);
    this.sliders.placeLabels(looked.view, canvas);
    const drawn = this.runs.filter((run) => !run.ghost || show.ghost)
      .map((run) => run.solids({ ...show, arrowScale, marked: this.marked }));
    for (const one of drawn) drawing.drawSolids(one.solid);
    if (show.grid) { drawing.drawLines(this.ground, ratio); drawing.drawLines(this.world, 2 * ratio); }
    const shade = [0, 0, 0, this.dark ? 0.4 : 0.16];
    if (show.shadows) for (const { solid } of drawn) drawing.drawSolids({ ...solid, bead: null }, { shadow: { floor, shade } });
    for (const run of this.runs) if (!run.ghost) this.drawOnce(run.scenery.lines(show), 1.3 * ratio);
    const now = main.at.k;
    for (const { lines, beads } of this.traces.values()) {
      drawing.drawSolids({ bead: beads });
      drawing.drawLines(lines, 1.6 * ratio, { until: now });
      drawing.drawLines(lines, 1.2 * ratio, { from: now, tint: [0.3, 0.3, 0.3, 0.3] });
    }
    for (const one of drawn) drawing.drawSolids(one.clear, { clear: true });
    for (const one of drawn) drawing.drawSolids(one.over, { over: true });
    if (main.live?.pull) this.drawOnce(main.live.line(), 3 * ratio);
    if (show.axes || this.sliders.selected >= 0) this.drawOnce(this.frameAxes(), 2 * ratio);
  }

  drawOnce(numbers, width) {                                // lines that move
    const lines = this.drawing.lines(numbers);
    this.drawing.drawLines(lines, width);
    this.drawing.gl.deleteBuffer(lines.buffer);
  }

  // --- choices --------------------------------------------------------------------------------------------------------

  addChoices() {
    const { robot, status, reason } = this.main.data;
    $("title").textContent = printed(this.title);
    const others = this.runs.slice(1).map((run) => run.data.name).join(", ");
    const alone = robot === this.title ? "" : robot;
    $("robot").textContent = printed(others && !this.arrangement.beside ? `${robot}, against ${others}` : alone);
    $("status").textContent = printed(reason ? `${status}: ${reason}` : status);
    $("status").classList.toggle("bad", status !== "" && status !== "complete");
    $("follow").append(element("option", { value: -1, textContent: "nothing" }));
    this.main.links.forEach((link, k) => {
      $("follow").append(element("option", { value: k, textContent: link.name }));
      const box = element("input", { type: "checkbox", id: `trace${k}` });
      box.addEventListener("change", () => this.trace(k, box.checked));
      const colour = element("i");
      colour.style.background = PALETTE.curves[k % PALETTE.curves.length];
      $("trace-list").append(element("label", {}, box, colour, element("span", { textContent: link.name })));
    });
    $("follow").addEventListener("change", () => this.setFollow(Number($("follow").value)));
    const { scene } = this.main, arrows = { of: this.runs.flatMap((run) => run.data.arrows.of) };
    if (!arrows.of.length) { $("scale-label").hidden = true; delete this.show.forces; }
    if (!scene.ellipsoids.some((one) => !one.solid)) delete this.show.inertia;
    if (!this.runs.some((run) => run.ghost)) delete this.show.ghost;
    if (!this.runs.some((run) => run.scene.visuals.length)) delete this.show.meshes;
    if (!scene.collision.length && !scene.collision_meshes.length) delete this.show.collision;
    if (!scene.ellipsoids.length) delete this.show.com;
    if (!this.main.mechanism) delete this.show.joints;
    for (const kind of Object.keys(this.main.scenery.kinds)) {
      if (!this.runs.some((run) => run.scenery.kinds[kind])) delete this.show[kind];
    }
    for (const what of Object.keys(this.show)) {
      const box = element("input", { type: "checkbox", checked: this.show[what], id: `show-${what}` });
      box.addEventListener("change", () => this.toggle(what, box.checked));
      $("toggles").append(element("label", {}, box, ` ${TOGGLES[what] ?? what}`));
    }
    for (const kind of Object.keys(ARROWS).filter((one) => arrows.of.some((arrow) => arrow.kind === one))) {
      const colour = element("i");
      colour.style.background = `rgb(${ARROWS[kind].map((x) => 255 * x)})`;
      $("legend").append(colour, { force: "force", contact: "contact force", reaction: "reaction", moment: "moment" }[kind]);
    }
    for (const [name, side] of Object.entries(SIDES)) {
      const button = element("button", { textContent: name });
      button.addEventListener("click", () => this.resetView(side));
      $("sides").append(button);
    }
    const parallel = element("input", { type: "checkbox", id: "parallel" });
    parallel.addEventListener("change", () => this.setParallel(parallel.checked));
    $("sides").append(element("label", { title: "Orthographic view (O)" }, parallel, " orthographic"));
    $("scale").addEventListener("input", () => { this.arrowScale = 10 ** Number($("scale").value); this.dirty = true; });
    $("reset").addEventListener("click", () => { this.setFollow(-1); this.resetView(); });
    $("picture").addEventListener("click", () => this.save());
    $("cut-out").addEventListener("click", () => this.save(true));
    $("record").addEventListener("click", () => record(this));
    $("theme").addEventListener("click", () => this.setTheme(!this.dark));
    $("panel-toggle").addEventListener("click", () => { $("panel").hidden = !$("panel").hidden; });
    $("help-toggle").addEventListener("click", () => $("help").showModal());
  }

  toggle(what, on = !this.show[what]) {
    if (!(what in this.show)) return;
    this.show[what] = on;
    $(`show-${what}`).checked = on;
    this.dirty = true;
  }

  trace(k, on) {
    $(`trace${k}`).checked = on;
    if (!on) this.traces.delete(k);
    else if (!this.traces.has(k)) {
      const path = this.main.path(k), colour = rgb(PALETTE.curves[k % PALETTE.curves.length]), numbers = [], { main } = this;
      const r = 1.3 * main.scene.radius, marks = main.data.marks.slice(0, MOST_BEADS);                 // where events are
      const beads = marks.flatMap(([t]) => [...columns([r, 0, 0], [0, r, 0], [0, 0, r], path[main.frame(t)[0]]), ...colour, 1]);
      for (let i = 0; i + 1 < path.length; i++) numbers.push(...path[i], ...path[i + 1], ...colour, 1);
      this.traces.set(k, { lines: this.drawing.lines(numbers), beads });
    }
    this.dirty = true;
  }

  save(transparent = false) {
    this.draw();                                            // in the same turn: the picture is still there
    const picture = transparent ? cutOut(this) : $("view"), ending = this.main.mechanism ? "" : `_${this.time.toFixed(3)}s`;
    picture.toBlob((blob) => saveAs(this.title, blob, `${ending}${transparent ? "_transparent" : ""}.png`));
  }

  addKeys() {
    const faster = (k) => this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(this.speed) + k))]);
    const loop = () => { this.loop = !this.loop; $("loop").checked = this.loop; };
    const keys = { " ": () => this.play(), home: () => (this.main.live ? this.restart() : this.seek(this.start)), end: () => this.seek(this.end),
      "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1), l: loop,
      f: () => this.setFollow(this.follow + 1 < this.main.links.length ? this.follow + 1 : -1),
      r: () => $("reset").click(), 1: () => this.resetView(SIDES.Front), 2: () => this.resetView(SIDES.Side),
      3: () => this.resetView(SIDES.Top), 4: () => this.resetView(SIDES.Back), 5: () => this.resetView(SIDES["3D"]),
      o: () => this.setParallel(!this.camera.parallel), g: () => this.toggle("grid"), a: () => this.toggle("axes"),
      j: () => this.toggle("joints"), c: () => this.toggle("com"), k: () => this.toggle("collision"),
      h: () => this.toggle("shadows"), e: () => this.toggle("forces"), i: () => this.toggle("inertia"),
      m: () => this.toggle("meshes"), t: () => this.follow >= 0 && this.trace(this.follow, !this.traces.has(this.follow)),
      s: (event) => this.save(event.shiftKey), v: () => record(this), d: () => this.setTheme(!this.dark),
      p: () => $("panel-toggle").click(),
      "?": () => $("help").showModal() };
    addEventListener("click", (event) => {                  // by mouse: the next space plays
      if (event.detail > 0 && event.target.type !== "number") event.target.closest("button, label, summary, input")?.blur();
    });
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
      const { key, target: { tagName, type } } = event;
      if (event.target.closest?.("#joints") && (type === "number" || key.startsWith("Arrow"))) return;
      if (tagName === "SELECT" || (key === " " && (["BUTTON", "SUMMARY"].includes(tagName) || type === "checkbox"))) return;
      if (key === "ArrowLeft" || key === "ArrowRight") this.step((key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
      else if (keys[key.toLowerCase()]) keys[key.toLowerCase()](event);
      else return;
      event.preventDefault();
    });
  }
}

try {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old: it needs DecompressionStream (2023)");
  const data = JSON.parse($("data").textContent);
  const all = (list, make) => Promise.all(list.map(make));
  const part = async (packed) => ({ ...await meshSolid(packed), colour: packed.colour });
  const meshes = await all(data.meshes, (parts) => all(parts, part));
  const viewer = new Viewer(await all(data.runs, (run) => Motion.of(run, meshes)), meshes, data);
  // for scripts: replay.seek(1.5), replay.position("hand"), replay.framesPerSecond(); replay.film(), await replay.still(1.5)
  window.replay = {
    viewer, cutOut, colours: PALETTE.curves, film: () => film(viewer), still: (time) => still(viewer, time),
    seek: (time) => { viewer.play(false); viewer.seek(time); }, position: (link) => place(viewer.main.link(viewer.number(link))),
    framesPerSecond: () => 1000 * (viewer.frames.length - 1) / (viewer.frames[viewer.frames.length - 1] - viewer.frames[0]),
  };
} catch (error) {
  $("problem").hidden = false;
  $("problem").textContent = `The motion cannot be shown: ${error.message}.`;
  throw error;
}
