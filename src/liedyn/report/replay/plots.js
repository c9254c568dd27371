// The plots of a run: which curves are shown, and their values now.

const MOST_MARKS = 30;
const MOST_CHOSEN = 12;                                     // curves of a plot that are shown at first

class Plots {
  constructor(viewer) {
    const { runs, main, start, end } = viewer, { plots } = main.data;
    Object.assign(this, { viewer, runs, main, start, end });
    this.curves = new Curves($("curves"), $("cursor"), (time) => viewer.seek(time));
    new ResizeObserver(() => this.curves.redraw()).observe($("curves"));
    if (!plots.length) { $("plots").hidden = true; return; }
    plots.forEach((plot, k) => $("plot").append(element("option", { value: k, textContent: this.titleOf(plot) })));
    $("plot").addEventListener("change", () => this.choose(Number($("plot").value)));
    for (const [id, on] of [["all", true], ["none", false]]) {
      $(id).addEventListener("click", () => { this.chosen.fill(on); this.list(); this.show(); });
    }
    const first = plots.findIndex(({ curves }) => curves.some(([name]) => !name.startsWith("base.")));
    this.addDivider();
    this.choose(Math.max(0, first));
    $("plot").value = Math.max(0, first);
    const others = this.viewer.arrangement.several ? [] : runs.slice(1).map(({ data }) => `dashed: ${data.name}`);
    $("plot-runs").textContent = printed(others.length ? [`solid: ${main.data.name}`, ...others].join(", ") : "");
  }

  titleOf({ title, unit }) { return `${title} [${unit || 1}]`; }

  addDivider() {                                            // between the picture and the panel; a double click: half and half
    const divider = $("divider");
    const width = (x) => { $("panel").style.width = `${Math.max(240, Math.min(innerWidth - 200, x))}px`; };
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", (event) => { if (event.buttons) width(innerWidth - event.clientX); });
    divider.addEventListener("dblclick", () => width(innerWidth / 2));
  }

  choose(k) {
    const { plots } = this.main.data;
    this.plot = plots[k];
    this.first = plots.slice(0, k).reduce((sum, one) => sum + one.curves.length, 0);
    const joint = this.plot.curves.findIndex(([name]) => !name.startsWith("base."));      // a base has another scale
    const from = Math.max(0, joint), one = this.viewer.arrangement.several ? this.mostDifferent() : -1;
    this.chosen = this.plot.curves.map((_, j) => (one < 0 ? j >= from && j < from + MOST_CHOSEN : j === one));
    this.largest = this.plot.curves.reduce((most, _, j) => (
      this.curve(j).reduce((sum, x) => Math.max(sum, Math.abs(x)), most)), 0);
    this.list();
    this.show();
  }

  list() {
    this.values = [];
    $("curve-list").replaceChildren(...this.plot.curves.map(([name, unit], j) => {
      const box = element("input", { type: "checkbox", checked: this.chosen[j] });
      const colour = element("i"), value = element("output"), title = unit ? `${name} [${unit}]` : name;
      colour.style.background = PALETTE.curves[j % PALETTE.curves.length];
      box.addEventListener("change", () => { this.chosen[j] = box.checked; this.show(); });
      this.values.push(value);
      return element("label", { title }, box, colour, element("span", { textContent: name }), value);
    }));
  }

  show() {
    if (!this.plot) return;
    const shown = [], { several } = this.viewer.arrangement;
    const alone = several && this.chosen.filter(Boolean).length === 1;              // then colours tell the runs
    this.plot.curves.forEach(([name], j) => {
      if (!this.chosen[j]) return;
      this.runs.forEach((run, k) => {
        const x = k ? this.curveOf(run, this.plot.title, name) : this.curve(j);
        const colour = alone ? run.colour : PALETTE.curves[j % PALETTE.curves.length];
        const dash = k > 0 && !alone ? [4, 4] : DASHES[Math.floor(j / PALETTE.curves.length) % DASHES.length];
        if (x) shown.push({ t: run.live?.t ?? run.t, x, colour, dash });
      });
    });
    const { marks } = this.main.data, times = marks.length <= MOST_MARKS ? marks.map(([t]) => t) : [];     // more hide the curves
    const { live } = this.main, [start, end] = live ? [live.t[0], Math.max(live.time, live.t[0] + 2)] : [this.start, this.end];
    this.curves.show(shown, start, end, this.viewer.colours, times, this.titleOf(this.plot));
    this.showValues();
  }

  // The curve in which runs differ most, beside its range.
  mostDifferent() {
    const times = Array.from({ length: 60 }, (_, i) => this.start + (this.end - this.start) * i / 59);
    const spread = this.plot.curves.map(([name]) => {
      const rows = this.runs.map((run) => ({ run, x: this.curveOf(run, this.plot.title, name) })).filter(({ x }) => x);
      const values = times.map((t) => rows.map(({ run, x }) => x[run.frame(t)[0]])), all = values.flat();
      const range = Math.max(...all) - Math.min(...all);
      return range > 0 ? Math.max(...values.map((now) => Math.max(...now) - Math.min(...now))) / range : 0;
    });
    return spread.indexOf(Math.max(...spread));
  }

  curve(j) {                                                // of the main run
    const { live, curves } = this.main, prefix = { positions: "q", velocities: "v", accelerations: "a" }[this.plot.title] ?? "tau";
    return live ? live.curves[live.data.columns[`${prefix}.${this.plot.curves[j][0]}`]] : curves[this.first + j];
  }

  curveOf(run, title, name) {                               // of a ghost: the curve of the same name
    let first = 0;
    for (const plot of run.data.plots) {
      const j = plot.title === title ? plot.curves.findIndex(([other]) => other === name) : -1;
      if (j >= 0) return run.curves[first + j];
      first += plot.curves.length;
    }
    return null;
  }

  showValues() {
    if (!this.plot || !this.main.at) return;
    const { live } = this.main, { k, s } = live ? { k: live.t.length - 1, s: 0 } : this.main.at;
    this.values.forEach((value, j) => {
      const x = this.curve(j), now = s > 0 ? (1 - s) * x[k] + s * x[k + 1] : x[k];
      const other = this.runs.length === 2 && this.curveOf(this.runs[1], this.plot.title, this.plot.curves[j][0]);
      const texts = [now, ...other ? [other[this.runs[1].at.k]] : []].map((y) => fixed(y, this.largest, 5));
      value.textContent = texts.join(" | ");
    });
  }
}
