"""A million steps of a double pendulum: what becomes of the energy and of the time a step takes, variational against rk4."""
from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import liedyn as ld
from liedyn.integrators.diagnosis import integrator_options
from liedyn.integrators.solve import solve
from liedyn.simulation.preparation import prepare

ROBOT = str(Path(__file__).parents[2] / "robots" / "double_pendulum.yaml")
STEP, STEPS, ROWS = 1e-2, 1_000_000, 20_000


class Long(NamedTuple):
    """Of a run. first, last: largest error of the energy in its first and last tenth [J]; early, late: us a step there."""

    first: float
    last: float
    early: float
    late: float


def run(method: str, steps: int = STEPS) -> Long:
    """Return a run that starts at rest and is chaotic."""
    duration = steps * STEP
    prepared = prepare({"robot": ROBOT, "duration": duration, "output_step": duration / 10,
                        "initial": {"q": {"shoulder": 1.3, "elbow": -1.5}}, "integrator": {"method": method, "step": STEP}}, ())
    options, heard = integrator_options(prepared.scenario.integrator), []
    solve(prepared.problem, np.array([0.0, 10 * STEP]), options)          # compiled
    times = np.linspace(0.0, duration, min(steps, ROWS) + 1)
    heard.append((0.0, time.perf_counter()))
    record, _ = solve(prepared.problem, times, options, lambda share: heard.append((share, time.perf_counter())))
    heard.append((1.0, time.perf_counter()))
    energy = sum(ld.energy(prepared.model, record.q, record.v))
    tenths = np.array_split(np.abs(energy - energy[0]), 10)
    at = np.interp([0.0, 0.1, 0.9, 1.0], *np.array(heard).T)
    return Long(tenths[0].max(), tenths[-1].max(), *(np.diff(at)[[0, 2]] / (0.1 * steps) * 1e6))


def report(line, quick: bool) -> None:
    steps = 2000 if quick else STEPS
    print(f"\n{steps:,} steps of {STEP * 1e3:g} ms of a double pendulum (first and last tenth of the run)")
    found = {method: run(method, steps) for method in ("variational", "rk4")}
    for method, one in found.items():
        line(method == "rk4" or (one.last <= 1.25 * one.first and one.late <= 1.25 * one.early),
             f"{method:12s}: energy off by {one.first:.1e} and {one.last:.1e} J, {one.early:6.2f} and {one.late:6.2f} us a step"
             + (" (asked of both: at most 1.25 times)" if method == "variational" else ""))
    print(f"     a step of the variational method takes {found['variational'].late / found['rk4'].late:.1f} times that of rk4")
