// A camera that turns around a target, by mouse, wheel and fingers.

const ANGLE = 40 * Math.PI / 180;                           // from top to bottom of the picture
const FIRST_SIDE = [-0.9, 0.32];                            // azimuth about z from x, height over the ground [rad]
const ABOVE = Math.PI / 2 - 1e-4;                           // straight down, where the azimuth still tells what is up
const SIDES = { "3D": FIRST_SIDE, Front: [0, 0], Side: [-Math.PI / 2, 0], Top: [-Math.PI / 2, ABOVE], Back: [Math.PI, 0] };

class Camera {
  constructor(canvas, size, onChange) {
    Object.assign(this, { canvas, size, onChange });
    this.listen();
  }

  // all within the box of two corners in sight, with some room around; of a long way, a part of it
  reset([low, high], [azimuth, height] = FIRST_SIDE, margin = 0.04) {
    const { size, canvas } = this, most = 4 * size;
    this.centre = low.map((x, k) => (x + high[k]) / 2);
    Object.assign(this, { azimuth, height, offset: [0, 0, 0], distance: 1 });
    this.look();
    const toEye = cross(this.right, this.up), up = Math.tan(ANGLE / 2);
    const aside = up * (canvas.clientWidth / canvas.clientHeight || 1);
    const half = low.map((x, k) => Math.min(most, (high[k] - x) / 2) + margin * size);
    const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => half.map((x, j) => (k >> j & 1 ? x : -x)));
    const beyond = (c) => Math.max(Math.abs(dot(c, this.up)) / up, Math.abs(dot(c, this.right)) / aside);
    const needed = corners.map((c) => dot(c, toEye) + beyond(c));
    this.distance = Math.max(size, 1.06 * Math.max(...needed));
    this.onChange();
  }

  approach() {                                              // a link that is followed
    this.offset = [0, 0, 0];
    this.distance = Math.min(this.distance, 0.7 * this.size / Math.tan(ANGLE / 2));
    this.onChange();
  }

  look(followed = this.centre) {
    const target = along(followed, this.offset, 1), { azimuth, height, distance, canvas } = this;
    const way = [Math.cos(height) * Math.cos(azimuth), Math.cos(height) * Math.sin(azimuth), Math.sin(height)];
    const eye = along(target, way, distance), turn = looking(eye, target);
    const aspect = canvas.width / canvas.height || 1, far = distance + 60 * this.size;
    const lens = this.parallel ? orthographic(distance * Math.tan(ANGLE / 2), aspect, far)
      : perspective(ANGLE, aspect, 0.02 * distance, far);
    this.right = [turn[0], turn[4], turn[8]];
    this.up = [turn[1], turn[5], turn[9]];
    return { view: product(lens, turn), eye };
  }

  turn(dx, dy) {
    this.azimuth -= 0.008 * dx;
    this.height = Math.min(ABOVE, Math.max(-ABOVE, this.height + 0.008 * dy));
    this.onChange();
  }

  move(dx, dy) {
    const metres = 2 * this.distance * Math.tan(ANGLE / 2) / this.canvas.clientHeight;
    this.offset = along(along(this.offset, this.right, -dx * metres), this.up, dy * metres);
    this.onChange();
  }

  zoom(factor) {
    this.distance = Math.min(200 * this.size, Math.max(0.05 * this.size, this.distance * factor));
    this.onChange();
  }

  listen() {
    const { canvas } = this, fingers = new Map();
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before || this.locked) return;                   // locked: the mouse pulls a link
      const now = [event.clientX, event.clientY], dx = now[0] - before[0], dy = now[1] - before[1];
      if (fingers.size === 2) {
        const other = [...fingers.entries()].find(([id]) => id !== event.pointerId)[1];
        const gap = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoom(gap(before) / gap(now));
        this.move(dx / 2, dy / 2);
      } else if (event.shiftKey || event.buttons & 6) this.move(dx, dy);
      else this.turn(dx, dy);
      fingers.set(event.pointerId, now);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(Math.min(0.5, Math.max(-0.5, 0.0015 * event.deltaY * (event.deltaMode ? 20 : 1)))));
    }, { passive: false });
  }
}
