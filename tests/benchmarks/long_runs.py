"""A million steps of the variational method: what a step costs, and how far the energy is off at the beginning and at the end."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import liedyn as ld
from benchmarks.measure import cpu_seconds
from liedyn.integrators.problem import Options
from liedyn.integrators.solve import solve
from liedyn.simulation.preparation import prepare

STEPS, ROWS, STEP = 1_000_000, 20_000, 1e-3
STARTS = {
    "double_pendulum": {"q": {"shoulder": 1.5, "elbow": 0.5}},
    "top": {"q": {"pivot": [-(0.5**0.5), 0, 0, 0.5**0.5]}, "v": {"pivot": [0, 4.61538, 50]}},
}


class LongRun(NamedTuple):
    """us a step; the largest errors of the energy [J] in the first and the last tenth, by the largest kinetic energy; drift from
    the first to the last tenth, of the mean error, by the same."""

    robot: str
    us: float
    first: float
    last: float
    drift: float


def variational(steps: int = STEPS, rows: int = ROWS) -> Iterator[LongRun]:
    for robot, start in STARTS.items():
        problem = prepare({"robot": f"robots/{robot}.yaml", "duration": steps * STEP, "passive": False, "initial": start,
                           "integrator": {"method": "variational", "step": STEP}}, (), force_long=True).problem
        solve(problem, np.array([0.0, 10 * STEP]), Options("variational", STEP))
        times, found = np.linspace(0.0, steps * STEP, rows + 1), []
        taken = cpu_seconds(lambda p=problem, t=times, f=found: f.append(solve(p, t, Options("variational", STEP))[0]))
        record, = found
        kinetic, potential = ld.energy(problem.model, record.q, record.v)
        error = (kinetic + potential - kinetic[0] - potential[0]) / kinetic.max()
        tenths = np.array_split(error, 10)
        yield LongRun(robot, 1e6 * taken / steps, np.abs(tenths[0]).max(), np.abs(tenths[-1]).max(),
                      abs(tenths[-1].mean() - tenths[0].mean()))


def report(line, quick: bool) -> None:
    print(f"\nvariational, a million steps of {1e3 * STEP:g} ms: us a step, error of the energy by the largest kinetic energy")
    for run in variational(**({"steps": 2000, "rows": 200} if quick else {})):
        line(run.last <= 2.0 * run.first, f"{run.robot:16s}: {run.us:6.2f}, {run.first:.1e} in the first tenth of the steps, "
             f"{run.last:.1e} in the last (asked: no more than twice), means differ by {run.drift:.1e}")
