// Curves of chosen columns over time on a canvas; a drag on it moves the time.

const CURVE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8F3F00", "#005C43", "#7D3F60",
  "#6B7F8E"];
const MARGIN = { left: 52, right: 8, top: 8, bottom: 20 };

function roundSteps(low, high, most) {                      // round values within [low, high]
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= raw), values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * (high - low); k++) values.push(k * step);
  return values;
}

function short(x) {
  const extreme = Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3);
  return extreme ? x.toExponential(1) : String(Number(x.toPrecision(4)));
}

class Curves {
  constructor(canvas, line, onTime) {
    Object.assign(this, { canvas, line, shown: [], marks: [] });
    const seek = (event) => {
      const box = canvas.getBoundingClientRect(), width = box.width - MARGIN.left - MARGIN.right;
      onTime(this.t0 + (this.t1 - this.t0) * Math.min(1, Math.max(0, (event.clientX - box.left - MARGIN.left) / width)));
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); seek(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
  }

  // shown: [{t, x, colour, dashed}], over the times t0 to t1; marks: times of events
  show(shown, t0, t1, colours, marks) {
    Object.assign(this, { shown, t0, t1: t1 > t0 ? t1 : t0 + 1, colours, marks });
    this.redraw();
  }

  redraw() {
    const ratio = window.devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w || !h || !this.colours) return;
    Object.assign(this.canvas, { width: w * ratio, height: h * ratio });
    const g = this.canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px system-ui, sans-serif";
    let low = Infinity, high = -Infinity;
    for (const { x } of this.shown) for (const value of x) { if (value < low) low = value; if (value > high) high = value; }
    if (!(high >= low)) [low, high] = [0, 1];
    const room = 0.06 * (high - low) || 0.5 * Math.abs(high) || 1;
    [this.low, this.high] = [low - room, high + room];
    this.w = w; this.h = h;
    g.lineWidth = 1;
    g.strokeStyle = this.colours.line;
    g.fillStyle = this.colours.faint;
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (const y of roundSteps(this.low, this.high, Math.max(2, h / 45))) {
      g.beginPath(); g.moveTo(MARGIN.left, this.y(y)); g.lineTo(w - MARGIN.right, this.y(y)); g.stroke();
      g.fillText(short(y), MARGIN.left - 5, this.y(y));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const t of roundSteps(this.t0, this.t1, Math.max(2, w / 80))) {
      g.beginPath(); g.moveTo(this.x(t), MARGIN.top); g.lineTo(this.x(t), h - MARGIN.bottom); g.stroke();
      g.fillText(short(t), this.x(t), h - MARGIN.bottom + 5);
    }
    g.strokeStyle = this.colours.faint;
    g.setLineDash([2, 3]);
    g.beginPath();
    for (const t of this.marks) { g.moveTo(this.x(t), MARGIN.top); g.lineTo(this.x(t), h - MARGIN.bottom); }
    g.stroke();
    g.lineWidth = 1.5;
    g.lineJoin = "round";
    for (const { t, x, colour, dashed } of this.shown) {
      g.strokeStyle = colour;
      g.setLineDash(dashed ? [4, 4] : []);
      g.beginPath();
      for (let i = 0; i < t.length; i++) g.lineTo(this.x(t[i]), this.y(x[i]));
      g.stroke();
    }
    this.cursor(this.time ?? this.t0);
  }

  x(t) { return MARGIN.left + (this.w - MARGIN.left - MARGIN.right) * (t - this.t0) / (this.t1 - this.t0); }
  y(value) {
    return this.h - MARGIN.bottom - (this.h - MARGIN.top - MARGIN.bottom) * (value - this.low) / (this.high - this.low);
  }

  cursor(time) {                                            // a line of its own: the curves are not drawn again while it moves
    this.time = time;
    if (this.w) this.line.style.transform = `translateX(${this.x(time)}px)`;
  }
}
