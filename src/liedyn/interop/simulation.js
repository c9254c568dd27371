// A simulation of a scenario: its steps in WebAssembly, with the signals, sample times and events between them.

const EVENT_TIME = 1e-7;                                    // of a step: to which events are located

// Taylor coefficients of curves at t. first: index of the first piece of each curve, with the end
function setCurves({ first, breaks, coefficients, order, count }, t, out) {
  for (let i = 0; i + 1 < first.length; i++) {
    let k = first[i];
    while (k + 1 < first[i + 1] && breaks[k + 1] <= t) k++;
    const s = t - breaks[k], x = coefficients.slice(order * k, order * (k + 1));
    for (let r = 0; r < count; r++) {
      for (let j = order - 2; j >= r; j--) x[j] += s * x[j + 1];
      out[count * i + r] = x[r];
    }
  }
}

class Simulation {
  // source: the bytes of the module
  static async load(source, data) {
    const { instance } = await WebAssembly.instantiate(source, { math: Math });
    return new Simulation(instance.exports, data);
  }

  constructor(exports, data) {
    Object.assign(this, { exports, data, arrays: {} });
    for (const [name, [at, size]] of Object.entries(data.places)) {
      this.arrays[name] = new globalThis[data.numbers](exports.memory.buffer, at, size);
    }
    for (const name of ["q", "v", "work", "z", "values", "varying", "modes", "a", "tau", "wrench", "torque", "integral", "law_values"]) {
      this[name] = this.arrays[name] ?? new Float64Array(0);
    }
    this.reset(data.initial);
  }

  // Sets the initial state, and the numbers of the scenario if they are given.
  reset(numbers = {}) {
    const { q, v, work, z = [] } = this.data.initial;
    const state = { q, v, z, work: work.map((x) => x ?? NaN), torque: 0, integral: 0 };
    for (const [name, x] of Object.entries({ ...state, ...numbers })) {
      if (name === "work" || !this.arrays[name]) continue;
      if (typeof x === "number") this.arrays[name].fill(x); else this.arrays[name].set(x);
    }
    this.work.set(state.work);
    Object.assign(this, { t: 0, samples: 0, waiting: [], acting: new Float64Array(this.torque.length), ended: "" });
  }

  // Moves the state by one step of length h that passes no sample time. Returns 0; otherwise the state is as before.
  step(h = this.data.step) {
    if (h && this.work[1] === 0) {                          // a step without length evaluates the events at the start
      const code = this.step(0);
      if (code) return code;
    }
    const { clock, curves } = this.arrays, { breaks, pieces } = this.data, until = this.t + h;
    const state = [this.q, this.v, this.work, this.z], before = state.map((x) => x.slice()), start = this.t;
    this.setTorques();
    while (this.t < until || !h) {
      const next = breaks.find(([time, , near]) => this.t < time && near <= until), [goal, latest] = next ?? [until, until];
      const length = this.t === start && goal === until ? h : goal - this.t;
      const times = [this.t, Math.min(this.t + 0.5 * length, latest), Math.min(goal, latest)];
      clock.set([length, ...times]);
      if (latest < goal && clock instanceof Float32Array) {   // times before a switching time stay before it
        const last = new Float32Array([goal]);
        new Int32Array(last.buffer)[0] -= 1;
        for (const i of [2, 3]) clock[i] = Math.min(clock[i], last[0]);
      }
      const count = pieces.count * (pieces.first.length - 1);
      for (let i = 0; count && i < 3; i++) setCurves(pieces, times[i], curves.subarray(count * i, count * (i + 1)));
      const code = this.exports.advance();
      if (code) {
        state.forEach((x, k) => x.set(before[k]));
        this.t = start;
        return code;
      }
      this.t = goal;
      if (!h) break;
    }
    return 0;
  }

  setTorques() {                                            // those of a sampled controller that act now
    this.data.sampler?.torques.forEach(([place, k]) => { this.values[place] = this.acting[k]; });
  }

  get due() { return Math.min(this.samples * this.data.sampler.interval, this.waiting[0]?.[0] ?? Infinity); }

  // Takes the samples and applies the delayed torques that are due. Returns 0, or the code of a sample.
  control(tiny) {
    const { interval, delay } = this.data.sampler;
    while (this.due <= this.t + tiny) {
      const taken = this.samples * interval;
      if (this.waiting.length && this.waiting[0][0] <= taken) { this.acting.set(this.waiting.shift()[1]); continue; }
      const code = this.sample();
      if (code) return code;
      if (delay && taken > 0) this.waiting.push([taken + delay, this.torque.slice()]);
      else this.acting.set(this.torque);
    }
    return 0;
  }

  // Computes the torques of a sampled controller at the present state.
  sample() {
    const { now } = this.arrays, { sampler } = this.data;
    now[0] = this.t;
    setCurves(sampler.pieces, this.t, now.subarray(1));
    const code = this.exports.sample();
    this.samples += 1;
    return code;
  }

  // Moves the state to the time `until` in steps of the scenario, or to an event that ends the run; `ended` names the reason.
  // each(simulation, h) is called before each step.
  run(until, each = () => {}) {
    const { step, sampler, ends } = this.data, tiny = 1e-9 * step;
    const last = Math.min(until, ...ends);
    while (!this.ended && this.t < last - tiny) {
      let goal = Math.min(last, this.t + step);
      if (goal > last - tiny) goal = last;
      if (sampler) {
        if (this.control(tiny)) { this.ended = "the controller has failed"; break; }
        if (goal > this.due - tiny) goal = this.due;
      }
      let h = goal - this.t;
      if (Math.abs(h - step) < tiny) h = step;
      each(this, h);
      const code = this.step(h);
      if (code === this.data.event) this.approach(h);
      else if (code) this.ended = this.data.reasons[code] ?? `the step cannot be computed (code ${code})`;
    }
    if (!this.ended && ends.some((t) => this.t >= t - tiny)) this.ended = "stopped by an event";
    return this.t;
  }

  // Moves the state to just before the event within the next step, by a part of this step.
  approach(h) {
    const { t } = this, state = [this.q, this.v, this.work, this.z], start = state.map((x) => x.slice());
    const back = () => { state.forEach((x, k) => x.set(start[k])); this.t = t; };
    let [low, high] = [0, h];
    while (high - low > EVENT_TIME * h) {
      const middle = (low + high) / 2;
      if (this.step(middle)) high = middle; else { low = middle; back(); }
    }
    if (low > 0) this.step(low);
    this.ended = "stopped by an event";
  }

  // Accelerations, generalized forces and external wrenches now, also in the arrays `a`, `tau` and `wrench`. Returns 0, or a code.
  outputs() {
    const { clock, curves } = this.arrays, { pieces } = this.data;
    this.setTorques();
    clock.set([0, this.t, this.t, this.t]);
    const count = pieces.count * (pieces.first.length - 1);
    for (let i = 0; count && i < 3; i++) setCurves(pieces, this.t, curves.subarray(count * i, count * (i + 1)));
    return this.exports.outputs();
  }
}
