"""Batches of runs side by side: seconds of the whole, and microseconds a run that are not the engine's steps."""
from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import seconds
from liedyn.batch.run_batch import PreparedSweep
from liedyn.batch.simulations import SimulationEvaluator
from liedyn.integrators.batch_integrator import BatchOutputs, BatchStates
from liedyn.io.sweep_file import read_sweep

ROBOTS = Path(__file__).parents[2] / "robots"
PANDA = f"""\
robot: {ROBOTS}/panda.yaml
duration: 5
output_step: 0.01
integrator: {{method: rk4, step: 1.0e-3}}
joints:
  panda_joint1: {{torque: {{pd: {{kp: 100, kd: 10, target: {{sine: {{amplitude: 0.5, frequency: 0.5}}}}}}}}}}
  "panda_joint[2-7]": {{torque: {{pd: {{kp: 100, kd: 10, target: 0.3}}}}}}
  "panda_finger*": {{torque: {{pd: {{kp: 100, kd: 10, target: 0.01}}}}}}
"""
PENDULUM = f"robot: {ROBOTS}/double_pendulum.yaml\nduration: 1\noutput_step: 0.02\nintegrator: {{method: rk4, step: 1.0e-3}}\n"
SWEEPS = {
    "Panda, 5 s": (PANDA, "{key: initial.q.panda_joint2, uniform: [-1, 1]}, "
                          "{key: joints.panda_joint1.torque.pd.kp, uniform: [50, 150]}",
                   "{top: max(q.panda_joint2), way: integral(abs(v.panda_joint4))}"),
    "double pendulum, 1 s": (PENDULUM, "{key: initial.q.shoulder, uniform: [-2, 2]}, {key: initial.q.elbow, uniform: [-2, 2]}",
                             "{last: final(q.elbow), fastest: max(abs(v.shoulder))}"),
}
ASKED = {"Panda, 5 s": (10_000, 60), "double pendulum, 1 s": (1_000_000, 2400)}         # runs, s


def batches(counts: dict[str, int], threads: int = 1):
    """Return (name, runs, seconds of the batch, seconds of the engine's steps) by the names of SWEEPS."""
    for name, runs in counts.items():
        batch, total = _run(name, runs, threads)
        yield name, runs, total, _engine(batch, threads)


def masses_with_contacts(runs: int = 16, duration: float = 1.0) -> tuple[float, float]:
    """Return seconds of a run of a quadruped on its feet (rodas5p) with one mass, and the ratio with varying masses."""
    with tempfile.TemporaryDirectory() as place:
        evaluators = [_evaluator(Path(place, name), key, runs, duration)
                      for name, key in (("push", "{key: external_forces.0.wrench.4, uniform: [0, 1]}"),
                                        ("mass", "{key: robot.mass.body, uniform: [0.9, 1.1], scale: relative}"))]
        one, several = ([evaluator.binding.run(k) for k in range(runs)] for evaluator in evaluators)
        for evaluator, prepared in zip(evaluators, (one, several), strict=True):
            evaluator.simulate(prepared[0])                            # compiles
        pairs = iter(zip(one[1:], several[1:], strict=True))
        state = {}

        def nominal():
            state["pair"] = next(pairs)
            return evaluators[0].simulate(state["pair"][0]).q
        times = [(seconds(nominal), seconds(lambda: evaluators[1].simulate(state["pair"][1]).q)) for _ in range(runs - 1)]
        return statistics.median(x for x, _ in times), statistics.median(y for _, y in times) / statistics.median(
            x for x, _ in times)


def _evaluator(folder: Path, key: str, runs: int, duration: float) -> SimulationEvaluator:
    """Return the evaluator of a sweep of one key of `configs/quadruped_stands.yaml`."""
    folder.mkdir()
    options = f"{{duration: {duration}, output_step: 0.01, integrator: {{method: rodas5p, rtol: 1.0e-5, atol: 1.0e-7}}}}"
    Path(folder, "sweep.yaml").write_text(f"scenario: {ROBOTS.parent}/configs/quadruped_stands.yaml\noverrides: {options}\n"
                                          f"parameters: [{key}]\nsamples: {runs}\noutputs: {{lowest: min(z(body))}}\n",
                                          encoding="utf-8")
    return SimulationEvaluator(read_sweep(Path(folder, "sweep.yaml")))


def throughput(runs: int) -> dict[int, float]:
    """Return how many double pendulums are simulated for a second within a second, on one core and on two."""
    pinned, found = os.sched_getaffinity(0), {}
    try:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        for workers in (1, 2):
            found[workers] = runs / _run("double pendulum, 1 s", runs, workers)[1]
    finally:
        os.sched_setaffinity(0, pinned)
    return found


def _run(name: str, runs: int, workers: int) -> tuple[PreparedSweep, float]:
    """Return a batch that was computed, and its seconds."""
    scenario, vary, outputs = SWEEPS[name]
    with tempfile.TemporaryDirectory() as place:
        Path(place, "scenario.yaml").write_text(scenario, encoding="utf-8")
        sweep = Path(place, "sweep.yaml")
        sweep.write_text(f"scenario: scenario.yaml\nparameters: [{vary}]\nsamples: {runs}\noutputs: {outputs}\n",
                         encoding="utf-8")
        batch = PreparedSweep(read_sweep(sweep), threads=workers)
        batch.evaluator.compute_chunk(0, 64)                       # compiles
        done = batch.run(Path(place, "out"), jobs=workers)
        assert done.table.counts == {"complete": runs}, done
        return batch, done.seconds


def report(line, quick: bool = False) -> None:
    print("\nbatches of runs side by side on one core, rk4 with steps of 1 ms, two outputs and the self-check")
    counts = dict.fromkeys(SWEEPS, 128) if quick else {"Panda, 5 s": 10_000, "double pendulum, 1 s": 100_000}
    for name, runs, total, engine in batches(counts):
        asked, rest = ASKED[name], 1e6 * (total - engine) / runs
        line(total * asked[0] / runs <= asked[1], f"{name:20s} {runs:6d} runs: {total:6.2f} s, of which steps {engine:6.2f}; "
             f"{rest:4.0f} us a run besides; {asked[0]} runs within {asked[1]} s asked")
    one, ratio = masses_with_contacts(**({"runs": 3, "duration": 0.05} if quick else {}))
    line(ratio <= 1.2, f"quadruped on its feet, rodas5p, 1 s: {1e3 * one:5.1f} ms a run; {ratio:4.2f} times with varying masses "
         "(asked 1.2)")
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        rates = throughput(256 if quick else 1_000_000)
        line(True, "double pendulum, 1 s: " + ", ".join(f"{rate:6.0f} runs a second with -j {n}" for n, rate in rates.items()))


def _engine(batch: PreparedSweep, threads: int) -> float:
    """Compute the same runs without values, outputs, checks and files."""
    sweep, total = batch.evaluator.vectorized_sweep, 0.0
    assert sweep is not None and sweep.is_affine
    for chunk in map(batch.chunk, range(batch.chunks)):
        numbers, _ = sweep.rows(batch.binding.values(chunk.first, chunk.until))
        model, n = sweep.first.model, len(numbers.q)
        out = BatchOutputs.allocate(n, len(sweep.times), model.nq, model.nv, 0)
        moving, engine = BatchStates.from_states(numbers.q, numbers.v, np.full(n, sweep.grid.steps)), sweep.engine_for(numbers)
        began = time.perf_counter()
        engine.advance(moving, sweep.grid, out, numbers.values, threads=threads)
        total += time.perf_counter() - began
    return total
