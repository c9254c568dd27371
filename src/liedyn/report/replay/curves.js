// Curves of chosen columns over time on a canvas; a drag on it moves the time.

const DASHES = [[], [7, 3], [2, 3], [7, 3, 2, 3]];          // of curves beyond the colours
const MARGIN = { left: 52, right: 14, top: 22, bottom: 34 };

function roundSteps(low, high, most) {                      // round values within [low, high]
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= raw), values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * (high - low); k++) values.push(k * step);
  return values;
}

// A number with as many decimals as others of a range: `digits` significant ones of the largest; all of the same width.
function fixed(x, largest, digits) {
  const order = Math.floor(Math.log10(largest || 1));
  return order >= 5 || order < -4 ? x.toExponential(digits - 1) : x.toFixed(Math.max(0, digits - 1 - order));
}

function tick(x, steps) {                                   // one of round steps
  const step = steps.length > 1 ? steps[1] - steps[0] : Math.abs(x) || 1, largest = Math.max(...steps.map(Math.abs));
  const digits = Math.floor(Math.log10(largest || 1) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 1;
  return fixed(x, largest, Math.max(1, digits));
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

  // shown: [{t, x, colour, dash}], over the times t0 to t1; marks: times of events; title: quantity and unit
  show(shown, t0, t1, colours, marks, title) {
    Object.assign(this, { shown, t0, t1: t1 > t0 ? t1 : t0 + 1, colours, marks, title });
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
    const heights = roundSteps(this.low, this.high, Math.max(2, h / 45));
    const times = roundSteps(this.t0, this.t1, Math.max(2, w / 80));
    for (const y of heights) {
      g.beginPath(); g.moveTo(MARGIN.left, this.y(y)); g.lineTo(w - MARGIN.right, this.y(y)); g.stroke();
      g.fillText(tick(y, heights), MARGIN.left - 5, this.y(y));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const t of times) {
      g.beginPath(); g.moveTo(this.x(t), MARGIN.top); g.lineTo(this.x(t), h - MARGIN.bottom); g.stroke();
      g.fillText(tick(t, times), this.x(t), h - MARGIN.bottom + 5);
    }
    g.textBaseline = "alphabetic";
    g.textAlign = "left";
    g.fillText(this.title, 4, 13);
    g.textAlign = "center";
    g.fillText("t [s]", (MARGIN.left + w - MARGIN.right) / 2, h - 4);
    g.strokeStyle = this.colours.faint;
    g.setLineDash([2, 3]);
    g.beginPath();
    for (const t of this.marks) { g.moveTo(this.x(t), MARGIN.top); g.lineTo(this.x(t), h - MARGIN.bottom); }
    g.stroke();
    g.lineWidth = 1.5;
    g.lineJoin = "round";
    for (const { t, x, colour, dash } of this.shown) {
      g.strokeStyle = colour;
      g.setLineDash(dash);
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
