// Where several runs stand: beside each other in rows along y, or in one place, where all but the first are ghosts.

class Arrangement {
  constructor(runs, beside) {
    Object.assign(this, { runs, beside, halves: [], several: beside || runs.length > 2 });
    const { size } = runs[0].scene, perRow = runs.length > 5 ? Math.ceil(Math.sqrt(2 * runs.length)) : runs.length;
    this.side = beside ? [-0.35, runs.length > perRow ? 0.5 : 0.32] : undefined;
    const extent = (k) => Math.max(...runs.map(({ scene: { bounds: [low, high] } }) => high[k] - low[k])) + 0.45 * size;
    const [dx, dy] = [0, 1].map((k) => Math.max(0.8 * size, extent(k)));
    runs.forEach((run, k) => {
      run.colour = PALETTE.curves[k % PALETTE.curves.length];
      if (beside) run.shift = [-dx * Math.floor(k / perRow), dy * (k % perRow), 0];
      else if (k > 0) run.ghost = rgb(run.colour);
    });
    const corners = [0, 1].map((j) => runs.map((run) => along(run.scene.bounds[j], run.shift, 1)));
    const extreme = (most, j) => [0, 1, 2].map((k) => most(...corners[j].map((corner) => corner[k])));
    this.bounds = [extreme(Math.min, 0), extreme(Math.max, 1)];
    this.labels = (this.several ? runs : runs.slice(1)).map((run) => {
      const { name, varied } = run.data, chip = element("i"), label = element("span", {}, chip, printed(name));
      chip.style.background = run.colour;
      if (beside) for (const one of varied.slice(0, 4)) label.append(element("small", { textContent: one }));
      label.title = printed(varied.join(", "));
      $(beside ? "labels" : "legend").append(label);
      return label;
    });
  }

  placeLabels(view, { clientWidth, clientHeight }) {        // of runs beside each other: over them
    if (!this.beside) return;
    this.runs.forEach(({ scene: { bounds: [low, high], size }, shift }, k) => {
      const over = along([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[2] + 0.1 * size], shift, 1);
      const [x, y, , w] = projected(view, over);
      const { style } = this.labels[k];
      style.display = w > 0 ? "" : "none";
      const half = (this.halves[k] ||= this.labels[k].offsetWidth / 2 + 4), top = (1 - y / w) / 2 * clientHeight;
      const left = Math.min(clientWidth - half, Math.max(half, (x / w + 1) / 2 * clientWidth));
      style.transform = `translate(${left}px, ${top}px) translate(-50%, -100%)`;
    });
  }
}
