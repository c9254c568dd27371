"""How the values of a sweep enter the arrays of runs in one batch, so that no run has to be bound by itself.

A run that is computed in one batch with others differs from them in numbers alone: its initial state, the `values` of its
scenario and constants of its robot (`codegen.batch_step`). Where these are not affine in the values of the sweep, every run is
bound.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from liedyn.batch.sweep_binding import SweepBinding
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynError
from liedyn.integrators.batch_integrator import BatchIntegrator, Grid, integrate_batch, make_grid
from liedyn.model.model import Model
from liedyn.simulation.preparation import PreparedRun, output_times

# What each run has of an array of numbers, as a map of the values of a sweep, so that no run has to be bound by itself ---

# Most numbers are a value of the sweep itself, others, as inertias by a mass, are affine in it. What is found so is checked
# against runs that are bound in full; where it does not hold, there is no map.

_ROUNDING = 1e-13        # relative: an affine map against a run that is bound in full
_OF_FLOORS = 0.5         # the same for pivots below which all is rounding, of which the size matters


class _Column(NamedTuple):
    """What follows one value: places that are the value itself; other places, and their slopes."""

    same: np.ndarray
    moved: np.ndarray
    slope: np.ndarray


_NOTHING = _Column(np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def origin_of(looked: list) -> list:
    """Values of a run: of what varies the first value that is not zero, since a zero may be left out of a line."""
    return [x[np.flatnonzero(x)[0]] if isinstance(x, np.ndarray) and x.any() else x[0] for x in looked]


class AffineParameterMap:
    """Of the runs of a sweep.

    bound(values)   numbers of a run; None where it cannot go with the others
    looked, some    values of the first runs, by what varies; of runs from all over the sweep, run by run
    base            numbers of the run with the values `origin_of(looked)`. The last are the constants of its robot, so many, of
                    which the last are floors of pivots, so many
    affine          whether there is a map: numbers = base + sum of slope (value - that of the origin)
    places          at which constants of the robots differ
    """

    def __init__(self, bound: Callable[[list], np.ndarray | None], looked: list, some: list[list], base: np.ndarray,
                 constants: int, floors: int):
        self._bound, self.base, self._constants, self._seen = bound, base, constants, []
        self._origin, self._tolerance = origin_of(looked), np.full(len(base), _ROUNDING)
        self._tolerance[len(base) - floors:] = _OF_FLOORS
        self._spans = [(x.min(), x.max()) if isinstance(x, np.ndarray) else None for x in looked]
        self._columns = [self._column(k, values) for k, values in enumerate(looked)]
        corners = [[pick(x) if isinstance(x, np.ndarray) else x[0] for x in looked] for pick in (np.min, np.max)]
        rows = [(values, self._bound_and_seen(values)) for values in (*some, *corners)]
        self.affine = None not in self._columns and all(self._agrees(*one) for one in rows)
        self.places = np.flatnonzero(np.any([self._constants_differ(row) for row in self._seen] or [False], axis=0))

    def rows(self, values: list) -> tuple[np.ndarray, np.ndarray]:
        """(N, n) of runs with these values; and which of them (N,) cannot go with the others."""
        alone = np.zeros(len(values[0]), dtype=bool)
        if self.affine:
            for i in self._beyond(values):
                alone[i] = self._bound([x[i] for x in values]) is None
            return self._mapped(values), alone
        rows, known = np.tile(self.base, (len(alone), 1)), set(self.places)
        for i in range(len(alone)):
            row = self._bound([x[i] for x in values])
            alone[i] = row is None or not set(np.flatnonzero(self._constants_differ(row))) <= known
            if not alone[i]:
                rows[i] = row
        return rows, alone

    def _mapped(self, values: list) -> np.ndarray:
        rows = np.tile(self.base, (len(values[0]), 1))
        for x, x0, column in zip(values, self._origin, self._columns, strict=True):
            x = np.asarray(x)
            if len(column.moved):
                rows[:, column.moved] += (x - x0)[:, None] * column.slope
            if len(column.same):
                rows[:, column.same] = x[:, None]
        return rows

    def _beyond(self, values: list) -> np.ndarray:
        """Runs with a value that is not between those that the map was found by: they may not be valid."""
        far = np.zeros(len(values[0]), dtype=bool)
        for x, span in zip(values, self._spans, strict=True):
            if span is not None:
                far |= (x < span[0]) | (x > span[1])
        return np.flatnonzero(far)

    def _constants_differ(self, row: np.ndarray) -> np.ndarray:
        return (row != self.base)[len(row) - self._constants:]

    # what the map is found by -------------------------------------------------------------------------------------------
    def _bound_and_seen(self, values: list) -> np.ndarray | None:
        row = self._bound(values)
        if row is not None:
            self._seen.append(row)
        return row

    def _column(self, k: int, values) -> _Column | None:
        """What follows the k-th value; None where that is not affine."""
        if not isinstance(values, np.ndarray):
            return _NOTHING if all(x == values[0] for x in values) else None
        origin, base, x0 = self._origin, self.base, self._origin[k]
        others = np.unique(values[values != x0])
        if not len(others):
            return _NOTHING
        probes = np.unique([others[0], others[-1], others[len(others) // 2]])
        rows = [self._bound_and_seen([*origin[:k], x, *origin[k + 1:]]) for x in probes]
        found = [(x, row) for x, row in zip(probes, rows, strict=True) if row is not None]
        if not found or any(row is None and x != 0.0 for x, row in zip(probes, rows, strict=True)):
            return None                                        # a zero may be left out of a line
        moved = np.flatnonzero(np.any([row != base for _, row in found], axis=0))
        is_value = (base[moved] == x0) & np.all([row[moved] == x for x, row in found], axis=0)
        same, rest = moved[is_value], moved[~is_value]
        far_x, far = max(found, key=lambda one: abs(one[0] - x0))
        slope, scale = (far[rest] - base[rest]) / (far_x - x0), np.abs(base[rest]) + np.abs(far[rest])
        off = [np.abs(base[rest] + slope * (x - x0) - row[rest]) > self._tolerance[rest] * scale for x, row in found]
        return None if np.any(off) else _Column(same, rest, slope)

    def _agrees(self, values: list, row: np.ndarray | None) -> bool:
        """Of the map with a run bound in full: of one with zeros that cannot go with the others, without these."""
        if row is None:
            values = [x0 if isinstance(x, float) and x == 0.0 else x for x, x0 in zip(values, self._origin, strict=True)]
            row = self._bound_and_seen(values)
        if row is None:
            return False
        mapped = self._mapped([[x] for x in values])[0]
        return not (np.abs(mapped - row) > 4.0 * self._tolerance * (np.abs(row) + np.abs(self.base))).any()


# lineup -----------------------------------------------------------------------------------------------------------------

class RunParameters(NamedTuple):
    """Of runs: states (N, nq), (N, nv), values (N, k), and constants of their robots (N, m)."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    constants: np.ndarray


def parted(model: Model, rows: np.ndarray) -> RunParameters:
    """Of rows as `numbers_of` gives them."""
    ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
    *parts, constants = np.split(rows, ends, axis=1)
    return RunParameters(*map(np.ascontiguousarray, parts), constants)


class VectorizedSweep:
    """Runs of a sweep that are computed in one batch.

    first                a run, whose problem and times all share
    grid, times, engine  the steps, the times of rows, and what runs are moved on by
    places               of constants of robots that differ
    affine               whether rows are found without binding each run
    """

    def __init__(self, first: PreparedRun, numbers: AffineParameterMap, engine: BatchIntegrator):
        self.first, self._numbers, self.engine = first, numbers, engine
        self.affine, self.places = numbers.affine, numbers.places
        self.times = output_times(first.scenario)
        self.grid: Grid = make_grid(first.problem.schedule, self.times, first.scenario.integrator.step)

    def rows(self, values: list) -> tuple[RunParameters, np.ndarray]:
        """Of runs with these values; and which of them cannot be computed in one batch."""
        rows, alone = self._numbers.rows(values)
        return parted(self.first.model, rows), alone

    def engine_for(self, numbers: RunParameters) -> BatchIntegrator:
        return BatchIntegrator(self.engine.problem, self.engine.batch_step,
                               np.ascontiguousarray(numbers.constants[:, self.places]))

    def variants(self, numbers: RunParameters, rows=slice(None)) -> Variants | None:
        """The robots of these runs; None where all have the same."""
        places = self.places
        return Variants.of_numbers(self.first.model, places, numbers.constants[:, places][rows]) if len(places) else None


def lineup_of(binding: SweepBinding) -> VectorizedSweep | None:
    """None where runs cannot be computed in one batch: other integrators than rk4, events, samples, loops, switches of the state,
    robots and control laws without generated code."""
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
    numbers = AffineParameterMap(bound, looked, binding.some, numbers_of(first), len(first.model.constants), floors)
    engine = integrate_batch(problem, "rk4", tuple(map(int, numbers.places)))
    return engine and VectorizedSweep(first, numbers, engine)


def signature(run: PreparedRun) -> tuple | None:
    """What runs that are computed in one batch have in common; None for one that goes with no other."""
    problem, scenario = run.problem, run.scenario
    if run.hybrid_simulation is not None or problem.constraints is not None or problem.sampled is not None:
        return None
    tables = problem.tables()
    index, _, *rest = tables.content
    integrator, signals, curves = scenario.integrator, problem.signals, tables.curves
    return (index, tuple(rest), integrator.method, integrator.step, scenario.duration, scenario.output_step, problem.passive,
            problem.schedule.breaks.tobytes(), signals.breaks.tobytes(), signals.coefficients.tobytes(),
            signals.first[curves].tobytes(), signals.count[curves].tobytes(), len(run.model.constants))


def numbers_of(run: PreparedRun) -> np.ndarray:
    """q, v, values of the scenario, constants of the robot, consecutively."""
    problem = run.problem
    return np.concatenate([problem.q, problem.v, problem.tables().numbers, problem.model.constants])
