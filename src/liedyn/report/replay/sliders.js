// A robot whose joints are moved by hand: sliders, what is known about a link, and messages about it.

const LABELS = ["x", "y", "z", "roll", "pitch", "yaw"];
const DEGREE = Math.PI / 180;

// Rows of a part: one of a coordinate; position, and roll, pitch and yaw, of a free joint; the angles of a ball joint.
function rowsOf(part, size) {
  if (part.kind === ONE_DOF) return [{ part, k: 0, name: part.name, unit: part.unit }];
  return LABELS.slice(part.kind === BALL ? 3 : 0).map((label, k, all) => {
    const unit = k < all.length - 3 ? "m" : "rad", half = unit === "m" ? 1.5 * size : label === "pitch" ? Math.PI / 2 : Math.PI;
    return { part, k, name: `${part.name}.${label}`, unit, half };
  });
}

class Sliders {
  constructor(viewer) {
    const { mechanism, scene, data } = viewer.main;
    Object.assign(this, { viewer, mechanism, links: viewer.main.links, messages: data.mechanism?.messages ?? [], selected: -1 });
    this.rows = (mechanism?.parts ?? []).flatMap((part) => rowsOf(part, scene.size));
    this.addCard();
    if (!mechanism) return;
    document.documentElement.classList.add("robot");
    $("joints").hidden = false;
    this.rows.forEach((row) => this.addRow(row, scene.size));
    $("joint-list").append(...this.rows.map(({ node }) => node));
    $("degrees").addEventListener("change", () => this.showValues());
    for (const [name, q] of [["Start", mechanism.start], ...Object.entries(mechanism.keyframes)]) {
      const title = name === "Start" ? "Back to the first configuration" : "Keyframe of the file";
      const button = element("button", { textContent: name, title });
      button.addEventListener("click", () => { mechanism.set(q); mechanism.touched.clear(); this.moved(); });
      $("states").append(button);
    }
    $("copy").addEventListener("click", () => this.copy());
    this.addMessages();
    this.showValues();
  }

  // --- joints ---------------------------------------------------------------------------------------------------------

  values(part) {                                            // numbers of its rows
    const { q } = this.mechanism, at = q.slice(part.q, part.q + COUNT_Q[part.kind]);
    if (part.kind === ONE_DOF) return at;
    const turn = at.slice(-4), cosine = part.angles ? quaternionOf(part.angles).reduce((sum, x, k) => sum + x * turn[k], 0) : 0;
    if (Math.abs(Math.abs(cosine) - 1) > 1e-9) part.angles = anglesOf(turn);      // else as they were set: they are not unique
    return [...at.slice(0, -4), ...part.angles];
  }

  addRow(row, size) {
    const { part } = row, { lower, upper } = part, now = this.values(part)[row.k];
    const half = row.half ?? (row.unit === "rad" ? Math.PI : size);
    const from = lower ?? Math.min(-half, (upper ?? half) - 2 * half, now);
    Object.assign(row, { low: Math.min(from, now), high: Math.max(upper ?? Math.max(half, from + 2 * half), now) });
    const disabled = Boolean(part.follows);
    const range = element("input", { type: "range", min: row.low, max: row.high, step: "any", disabled });
    const number = element("input", { type: "number", step: "any", disabled });
    const track = element("div", { className: "track" }, range);
    range.setAttribute("aria-label", row.name);
    number.setAttribute("aria-label", row.name);
    const limits = [lower, upper].map((x) => (row.half || x === null ? null : x));
    for (const x of limits.filter((one) => one !== null)) {
      const mark = element("i", { title: "limit" });
      mark.style.left = `calc(8px + ${(x - row.low) / (row.high - row.low || 1)} * (100% - 16px))`;
      track.append(mark);
    }
    row.ends = element("small");
    track.append(row.ends);
    const title = `${part.type}${part.follows ? `, follows ${part.follows}` : ""}`;
    const name = element("span", { textContent: row.name, title });
    row.node = element("label", { className: part.follows ? "follows" : "" }, name, track, number);
    Object.assign(row, { range, number, limits });
    range.addEventListener("input", () => this.move(row, Number(range.value)));
    number.addEventListener("change", () => this.move(row, Number(number.value) * this.unitOf(row)));
    row.node.addEventListener("pointerenter", () => { this.viewer.marked = part; this.viewer.dirty = true; });
    row.node.addEventListener("pointerleave", () => { this.viewer.marked = null; this.viewer.dirty = true; });
  }

  unitOf({ unit }) { return unit === "rad" && $("degrees").checked ? DEGREE : 1; }

  move(row, value) {
    const { part } = row, values = this.values(part);
    values[row.k] = value;
    const quaternion = part.kind === ONE_DOF ? [] : quaternionOf(values.slice(-3));
    const before = this.mechanism.q.slice(part.q + COUNT_Q[part.kind] - 4, part.q + COUNT_Q[part.kind]);
    if (part.kind !== ONE_DOF) part.angles = values.slice(-3);
    const near = quaternion.reduce((sum, x, k) => sum + x * before[k], 0) < 0 ? quaternion.map((x) => -x) : quaternion;
    const arrived = this.mechanism.move(part, part.kind === ONE_DOF ? values : [...values.slice(0, -3), ...near]);
    $("stuck").textContent = arrived ? "" : printed(`Loops or limits stop ${row.name} here.`);
    this.moved();
  }

  moved() {
    this.viewer.main.live?.setState(this.mechanism.q);
    this.viewer.seek(0);
    this.showValues();
  }

  showValues() {
    for (const row of this.rows) {
      const x = this.values(row.part)[row.k], unit = this.unitOf(row), name = unit === DEGREE ? "°" : ` ${row.unit}`;
      const text = (y) => (y === null ? "" : `${Number((y / unit).toFixed(unit === DEGREE ? 1 : 4))}${name}`);
      row.range.value = x;
      if (document.activeElement !== row.number) row.number.value = rounded(x / unit, unit === DEGREE ? 2 : 4);
      const ends = row.limits.some((limit) => limit !== null) ? row.limits.map(text) : [`[${name.trim()}]`];      // or the unit alone
      row.ends.replaceChildren(...ends.map((textContent) => element("span", { textContent })));
      const [low, high] = row.limits, slack = 1e-9 * (row.high - row.low);
      row.node.classList.toggle("beyond", (low !== null && x < low - slack) || (high !== null && x > high + slack));
    }
    this.showCard();
  }

  copy() {                                                  // as `initial` of a scenario takes it
    const { q, parts } = this.mechanism, joints = new Map();
    for (const { joint, kind, q: iq } of parts) {
      const values = q.slice(iq, iq + COUNT_Q[kind]).map((x) => Number(x.toPrecision(12)));
      joints.set(joint, [...joints.get(joint) ?? [], ...values]);
    }
    const items = [...joints].map(([name, x]) => `${JSON.stringify(name)}: ${x.length > 1 ? `[${x.join(", ")}]` : x[0]}`);
    const text = `{${items.join(", ")}}`;
    Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("none"))).catch(() => prompt("q", text));
    return text;
  }

  // --- links ----------------------------------------------------------------------------------------------------------

  addCard() {
    const canvas = $("view");
    let down = [0, 0];
    canvas.addEventListener("pointerdown", ({ clientX, clientY }) => { down = [clientX, clientY]; });
    canvas.addEventListener("click", (event) => {
      if (Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 4) this.select(pick(this.viewer, event, canvas));
    });
    $("card-close").addEventListener("click", () => this.select(-1));
  }

  addMessages() {
    $("messages").hidden = !this.messages.length;
    $("messages").open = this.messages.some(({ level }) => level === "warning");
    const count = this.messages.filter(({ level }) => level === "warning").length;
    $("messages-title").textContent = `${count} warning${count === 1 ? "" : "s"}, ${this.messages.length - count} information`;
    this.labels = [];
    for (const { link, text, level, code } of this.messages) {
      const k = this.links.findIndex(({ name }) => name === link);
      const button = element("button", { className: level, title: code, textContent: link ? `${link}: ${text}` : text });
      button.addEventListener("click", () => this.select(k));
      $("message-list").append(button);
      if (k < 0 || level !== "warning" || this.labels.some((one) => one.k === k)) continue;
      const label = element("button", { className: "sign", textContent: "!", title: `${link}: ${text}` });
      label.addEventListener("click", () => this.select(k));
      $("labels").append(label);
      this.labels.push({ k, label });
    }
  }

  placeLabels(view, { clientWidth, clientHeight }) {        // of warnings, at their links
    for (const { k, label } of this.labels ?? []) {
      const [x, y, , w] = projected(view, place(this.viewer.main.link(k)));
      label.style.display = w > 0 ? "" : "none";
      const [left, top] = [(x / w + 1) / 2 * clientWidth, (1 - y / w) / 2 * clientHeight];
      label.style.transform = `translate(${left}px, ${top}px) translate(-50%, -50%)`;
    }
  }

  select(k) {
    this.selected = k;
    this.viewer.dirty = true;
    this.showCard();
  }

  showCard() {
    const link = this.links[this.selected], { main } = this.viewer;
    $("card").hidden = !link;
    if (!link) return;
    const digits = (x, n = 5) => x.map((value) => Number(value.toPrecision(n))).join(", ");
    const joints = (this.mechanism?.parts ?? []).filter((part) => part.link === link.name);
    const { collision, collision_meshes, visuals } = main.marks;
    const count = (list) => list.filter((one) => one.link === link.name).length;
    const counted = (n, one, more) => (n ? [`${n} ${n === 1 ? one : more}`] : []);
    const shapes = [...counted(count(visuals), "mesh", "meshes"),
      ...counted(count([...collision, ...collision_meshes]), "collision shape", "collision shapes")];
    const rows = [["joint", joints.map(({ name, type }) => `${name} (${type})`).join(", ")],
      ["mass", `${digits([link.mass])} kg`], ["centre of mass", `${digits(link.com)} m`],
      ["principal inertias", `${digits(link.inertia)} kg m²`],
      ["position in the world", `${place(main.link(this.selected)).map((x) => rounded(x, 4)).join(", ")} m`],
      ["drawn", shapes.join(", ")]];
    $("card-name").textContent = printed(link.name);
    $("card-rows").replaceChildren(...rows.filter(([, text]) => text).flatMap(([title, text]) => [
      element("dt", { textContent: title }), element("dd", { textContent: text })]));
    const messages = this.messages.filter((one) => one.link === link.name);
    $("card-messages").replaceChildren(...messages.map(({ text, level }) => (
      element("p", { className: level, textContent: text }))));
  }
}
