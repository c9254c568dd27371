// Modes of joints in a live page: free, or prescribed with a position, velocity or acceleration. The step of the simulation has a
// mask as input (`codegen/joint_modes.py`): numbers mode, c0, c1, c2 of each coordinate, with the acceleration c0 - c1 q - c2 v.

const [MODE_FREE, MODE_PRESCRIBED, MODE_OF_SCENARIO] = [0, 1, 2], MODE_NUMBERS = 4;
const APPROACH = 15;                                        // 1/s: with which prescribed joints reach their position or velocity
const MODE_TITLES = { scenario: "as in the scenario", free: "free", rest: "at rest", position: "position", velocity: "velocity",
  acceleration: "acceleration" };
const MODE_RANGES = { velocity: { rad: 5, m: 1 }, acceleration: { rad: 20, m: 5 } };

class JointModes {
  constructor(simulation, rows) {
    this.simulation = simulation;
    const w = Math.min(APPROACH, 0.5 / simulation.data.step);
    this.numbers = { free: () => [MODE_FREE, 0, 0, 0], scenario: () => [MODE_OF_SCENARIO, 0, 0, 0],
      rest: () => [MODE_PRESCRIBED, 0, 0, w], position: (x) => [MODE_PRESCRIBED, w * w * x, w * w, 2 * w],
      velocity: (x) => [MODE_PRESCRIBED, w * x, 0, w], acceleration: (x) => [MODE_PRESCRIBED, x, 0, 0] };
    this.rows = rows.map((row) => {
      const start = row.of_scenario ? "scenario" : "free";
      return { ...row, start, mode: start, x: 0, choose: (mode, x) => this.choose(row.name, mode, x) };
    });
  }

  named(name) { return this.rows.find((row) => row.name === name); }

  // The modes that a row can have.
  choicesOf({ of_scenario: isPrescribed, q }) {
    return [...(isPrescribed ? ["scenario"] : []), "free", ...(q < 0 ? ["rest"] : ["position", "velocity", "acceleration"])];
  }

  // Switches a joint. A joint with a prescribed position or velocity keeps the present one unless x is given.
  choose(name, mode, x) {
    const row = this.named(name), { simulation } = this;
    if (row.reason) return;
    const present = { position: simulation.q[row.q], velocity: simulation.v[row.v[0]] }[mode] ?? 0;
    Object.assign(row, { mode, x: x ?? present });
    if (simulation.ended && simulation.t < Math.min(...simulation.data.ends, Infinity)) simulation.ended = "";
    this.write(row);
    row.show?.();
  }

  write({ mode, x, places }) {
    for (const place of places) this.simulation.modes.set(this.numbers[mode](x), MODE_NUMBERS * place);
  }

  // After the state was set: prescribed positions are those of the state.
  follow() { this.rows.filter(({ mode }) => mode === "position").forEach(({ name, mode }) => this.choose(name, mode)); }

  addTo(viewer) {
    $("modes").hidden = !this.rows.length;
    $("mode-list").append(...this.rows.map((row) => this.nodeOf(row, viewer)));
  }

  nodeOf(row, viewer) {
    const title = element("span", { textContent: row.name, title: row.name });
    const node = element("div", { className: "mode" }, title);
    if (row.reason) {
      node.append(element("small", { textContent: `cannot switch: ${row.reason}` }));
      return node;
    }
    const select = element("select", {}, ...this.choicesOf(row).map((mode) => (
      element("option", { value: mode, textContent: MODE_TITLES[mode] }))));
    select.setAttribute("aria-label", `mode of ${row.name}`);
    node.append(select);
    row.show = () => {
      select.value = row.mode;
      node.querySelector("label")?.remove();
      if (["position", "velocity", "acceleration"].includes(row.mode)) node.append(this.sliderOf(row).node);
    };
    select.addEventListener("change", () => { row.choose(select.value); viewer.dirty = true; });
    row.show();
    return node;
  }

  sliderOf(row) {
    const { mode, unit, x, limits: [lower, upper] } = row, half = MODE_RANGES[mode]?.[unit] ?? (unit === "rad" ? Math.PI : 1);
    const [low, high] = mode === "position" ? [lower ?? -half, upper ?? half] : [-half, half];
    const units = { position: unit, velocity: `${unit}/s`, acceleration: `${unit}/s²` };
    const range = { low: Math.min(low, x), high: Math.max(high, x), x, unit: units[mode] };
    return numberRow({ name: mode, label: `${mode} of ${row.name}`, ...range }, (value) => { row.x = value; this.write(row); });
  }
}
