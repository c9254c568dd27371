"""How the values of a sweep enter the arrays of runs side by side, so that no run has to be bound by itself.

A run that goes side by side with others differs from them in numbers alone: its initial state, the `values` of its scenario and
constants of its robot (`codegen.steps.whole_step`). Where these are not affine in the values of the sweep, every run is bound.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.batch.affine import RunNumbers, origin_of
from liedyn.batch.binding import Binding
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynError
from liedyn.integrators.many_runs import Grid, SideBySide, grid_of, side_by_side
from liedyn.model.model import Model
from liedyn.simulation.preparation import Prepared, output_times


class Numbers(NamedTuple):
    """Of runs: states (N, nq), (N, nv), values (N, k), and constants of their robots (N, m)."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    constants: np.ndarray


def parted(model: Model, rows: np.ndarray) -> Numbers:
    """Of rows as `numbers_of` gives them."""
    ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
    *parts, constants = np.split(rows, ends, axis=1)
    return Numbers(*map(np.ascontiguousarray, parts), constants)


class Lineup:
    """Runs of a sweep that go side by side.

    first   a run, whose problem and times all share
    grid, times, engine   the steps, the times of rows, and what runs are moved on by
    places  of constants of robots that differ
    affine  whether rows are found without binding each run
    """

    def __init__(self, first: Prepared, numbers: RunNumbers, engine: SideBySide):
        self.first, self._numbers, self.engine = first, numbers, engine
        self.affine, self.places = numbers.affine, numbers.places
        self.times = output_times(first.scenario)
        self.grid: Grid = grid_of(first.problem.schedule, self.times, first.scenario.integrator.step)

    def rows(self, values: list) -> tuple[Numbers, np.ndarray]:
        """Of runs with these values; and which of them cannot go side by side."""
        rows, alone = self._numbers.rows(values)
        return parted(self.first.model, rows), alone

    def engine_for(self, numbers: Numbers) -> SideBySide:
        return SideBySide(self.engine.problem, self.engine.line, np.ascontiguousarray(numbers.constants[:, self.places]))

    def variants(self, numbers: Numbers, rows=slice(None)) -> Variants | None:
        """The robots of these runs; None where all have the same."""
        places = self.places
        return Variants.of_numbers(self.first.model, places, numbers.constants[:, places][rows]) if len(places) else None


def lineup_of(binding: Binding) -> Lineup | None:
    """None where runs cannot go side by side: other integrators than rk4, events, samples, loops, switches of the state, robots
    and control laws without straight-line code."""
    looked = binding.looked_at
    try:
        first = binding.bind(origin_of(looked))
    except LiedynError:
        return None
    problem, kind = first.problem, signature(first)
    if kind is None or first.scenario.integrator.method != "rk4" or problem.model.nv == 0:
        return None

    def bound(values) -> np.ndarray | None:
        try:
            run = binding.bind(values)
        except LiedynError:
            return None
        return numbers_of(run) if signature(run) == kind else None

    floors = first.model.nv                                    # the last constants of a robot
    numbers = RunNumbers(bound, looked, binding.some, numbers_of(first), len(first.model.constants), floors)
    engine = side_by_side(problem, "rk4", tuple(map(int, numbers.places)))
    return engine and Lineup(first, numbers, engine)


def signature(run: Prepared) -> tuple | None:
    """What runs that go side by side have in common; None for one that goes with no other."""
    problem, scenario = run.problem, run.scenario
    if run.timeline is not None or problem.ties is not None or problem.sampled is not None:
        return None
    tables = problem.tables()
    index, _, *rest = tables.content
    integrator, signals, curves = scenario.integrator, problem.signals, tables.curves
    return (index, tuple(rest), integrator.method, integrator.step, scenario.duration, scenario.output_step, problem.passive,
            problem.schedule.breaks.tobytes(), signals.breaks.tobytes(), signals.coefficients.tobytes(),
            signals.first[curves].tobytes(), signals.count[curves].tobytes(), len(run.model.constants))


def numbers_of(run: Prepared) -> np.ndarray:
    """q, v, values of the scenario, constants of the robot, one after the other."""
    problem = run.problem
    return np.concatenate([problem.q, problem.v, problem.tables().numbers, problem.model.constants])
