// The plots of a run: which curves are shown, and their values now.

const MOST_MARKS = 30;

class Plots {
  constructor(viewer) {
    const { runs, main, start, end } = viewer, { plots } = main.data;
    Object.assign(this, { viewer, runs, main, start, end });
    this.curves = new Curves($("curves"), $("cursor"), (time) => viewer.seek(time));
    new ResizeObserver(() => this.curves.redraw()).observe($("curves"));
    if (!plots.length) { $("plots").hidden = true; return; }
    plots.forEach(({ title }, k) => $("plot").append(element("option", { value: k, textContent: title })));
    $("plot").addEventListener("change", () => this.choose(Number($("plot").value)));
    for (const [id, on] of [["all", true], ["none", false]]) {
      $(id).addEventListener("click", () => { this.chosen.fill(on); this.list(); this.show(); });
    }
    this.choose(0);
  }

  choose(k) {
    const { plots } = this.main.data;
    this.plot = plots[k];
    this.first = plots.slice(0, k).reduce((sum, one) => sum + one.curves.length, 0);
    const joint = this.plot.curves.findIndex(([name]) => !name.startsWith("base."));      // a base has another scale
    const from = Math.max(0, joint), one = this.viewer.arrangement.several ? this.mostDifferent() : -1;
    this.chosen = this.plot.curves.map((_, j) => (one < 0 ? j >= from && j < from + 7 : j === one));    // seven are told apart
    this.list();
    this.show();
  }

  list() {
    this.values = [];
    $("curve-list").replaceChildren(...this.plot.curves.map(([name, unit], j) => {
      const box = element("input", { type: "checkbox", checked: this.chosen[j] });
      const colour = element("i"), value = element("output"), title = unit ? `${name} [${unit}]` : name;
      colour.style.background = CURVE_COLOURS[j % CURVE_COLOURS.length];
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
        const x = k ? this.curveOf(run, this.plot.title, name) : run.curves[this.first + j];
        const colour = alone ? run.colour : CURVE_COLOURS[j % CURVE_COLOURS.length];
        if (x) shown.push({ t: run.t, x, colour, dashed: k > 0 && !alone });
      });
    });
    const { marks } = this.main.data, times = marks.length <= MOST_MARKS ? marks.map(([t]) => t) : [];     // more hide the curves
    this.curves.show(shown, this.start, this.end, this.viewer.colours, times);
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
    const { k, s } = this.main.at;
    this.values.forEach((value, j) => {
      const x = this.main.curves[this.first + j], unit = this.plot.curves[j][1];
      const now = s > 0 ? (1 - s) * x[k] + s * x[k + 1] : x[k];
      value.textContent = `${Math.abs(now) < 1e-9 ? "0" : now.toPrecision(4)} ${unit}`;
    });
  }
}
