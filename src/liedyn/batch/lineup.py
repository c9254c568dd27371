"""How the values of a sweep enter the arrays of runs side by side, so that no run has to be bound by itself.

A run that goes side by side with others differs from them in numbers alone: its initial state, the `values` of its scenario and
constants of its robot (`codegen.whole_step`). Where these are not affine in the values of the sweep, every run is bound.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.batch.affine import LOOKED_AT, AffineMap, not_zero
from liedyn.batch.binding import Binding
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynError
from liedyn.integrators.many_runs import Grid, SideBySide, grid_of, side_by_side
from liedyn.simulation.preparation import Prepared
from liedyn.simulation.run import output_times


@dataclass(frozen=True)
class Numbers:
    """Of runs: states (N, nq), (N, nv), values (N, k), and the varying constants of their robots (N, m)."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    varying: np.ndarray


class Lineup:
    """Runs of a sweep that go side by side.

    first   a run, whose problem and times all share
    grid, times, line   the steps, the rows, and the compiled step
    affine  whether rows are found without binding each run
    """

    def __init__(self, binding: Binding, first: Prepared, places: np.ndarray, engine: SideBySide, affine):
        self.binding, self.first, self.places, self.engine, self._affine = binding, first, places, engine, affine
        self.times = output_times(first.scenario)
        self.grid: Grid = grid_of(first.problem.schedule, self.times, first.scenario.integrator.step)
        self._kind, self._base = signature(first), numbers_of(first)

    @property
    def affine(self) -> bool:
        return self._affine is not None

    def rows(self, values: list) -> tuple[Numbers, np.ndarray]:
        """Of runs with these values; and which of them cannot go side by side: theirs are those of the first run."""
        alone = np.zeros(len(values[0]), dtype=bool)
        if self._affine is not None:
            for i in np.flatnonzero(self._affine.beyond(values)):          # no run so far out was bound: it may not be valid
                alone[i] = not self._goes([x[i] for x in values])
            return self._parts(self._affine.rows(values)), alone
        rows = np.tile(self._base, (len(alone), 1))
        for i in range(len(alone)):
            try:
                run = self.binding.bind([x[i] for x in values])
            except LiedynError:
                alone[i] = True
                continue
            found = numbers_of(run) if signature(run) == self._kind else None
            if found is None or self._strays(found):
                alone[i] = True
            else:
                rows[i] = found
        return self._parts(rows), alone

    def engine_for(self, numbers: Numbers) -> SideBySide:
        return SideBySide(self.engine.problem, self.engine.line, numbers.varying)

    def variants(self, numbers: Numbers) -> Variants | None:
        """The robots of these runs; None where all have the same."""
        return Variants.of_numbers(self.first.model, self.places, numbers.varying) if len(self.places) else None

    def _goes(self, values) -> bool:
        """Whether a run with these values can start, and go with the others."""
        try:
            return signature(self.binding.bind(values)) == self._kind
        except LiedynError:
            return False

    def _strays(self, row: np.ndarray) -> bool:
        """Whether constants differ at other places than the line knows."""
        constants, base = (x[-len(self.first.model.constants):] for x in (row, self._base))
        return not set(np.flatnonzero(constants != base)) <= set(self.places)

    def _parts(self, rows: np.ndarray) -> Numbers:
        model = self.first.model
        ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
        q, v, values, constants = (np.ascontiguousarray(x) for x in np.split(rows, ends, axis=1))
        return Numbers(q, v, values, np.ascontiguousarray(constants[:, self.places]))


def lineup_of(binding: Binding) -> Lineup | None:
    """None where runs cannot go side by side: other integrators than rk4, events, samples, loops, switches of the state, robots
    and control laws without straight-line code."""
    looked = binding.values(0, min(binding.design.count, LOOKED_AT))
    origin = [not_zero(x) for x in looked]
    try:
        first = binding.bind(origin)
    except LiedynError:
        return None
    if first.timeline is not None or first.scenario.integrator.method != "rk4":
        return None
    if first.problem.ties is not None or first.problem.sampled is not None or first.problem.model.nv == 0:
        return None
    base, size, kind = numbers_of(first), len(first.model.constants), signature(first)

    def numbers(values) -> np.ndarray | None:
        try:
            run = binding.bind(values)
        except LiedynError:
            return None
        return numbers_of(run) if signature(run) == kind else None

    found = AffineMap(lambda k: [x[0] for x in binding.values(k, k + 1)], binding.design.count, looked, origin, base,
                      first.model.nv, numbers)                 # the last constants of a robot are floors of pivots
    moved = np.zeros(size, dtype=bool)
    for row in found.seen:
        moved |= row[-size:] != base[-size:]
    places = np.flatnonzero(moved)
    engine = side_by_side(first.problem, "rk4", tuple(map(int, places)))
    return engine and Lineup(binding, first, places, engine, found.affine)


def signature(run: Prepared) -> tuple:
    """What runs that go side by side have in common."""
    problem, scenario = run.problem, run.scenario
    if run.timeline is not None or problem.ties is not None or problem.sampled is not None:
        return ("alone", id(run))
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
