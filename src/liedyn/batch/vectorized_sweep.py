"""Map the values of a sweep to the arrays of vectorized runs, without binding each run individually.

Runs that are computed as one batch differ only in numbers: the initial state, the `values` of the scenario and constants of
the robot (`codegen.batch_step`). Where these are not affine in the values of the sweep, every run is bound.
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

# Affine map from the values of a sweep to the numbers of a run ----------------------------------------------------------

# Most numbers are equal to a value of the sweep. Others are affine in it, such as inertias in a mass. The map is checked against
# runs that are bound completely. If they differ, the map is not used.

_ROUNDING = 1e-13        # relative tolerance of the affine map
_OF_FLOORS = 0.5         # the same for the minimum pivots, of which only the order of magnitude matters


class _Column(NamedTuple):
    """Numbers that depend on one value: indices of numbers equal to it; indices of others, and their slopes."""

    same: np.ndarray
    moved: np.ndarray
    slope: np.ndarray


_NOTHING = _Column(np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def origin_of(looked: list) -> list:
    """Return the values of a run: the first nonzero value of each parameter. Generated code can omit terms that are zero."""
    return [x[np.flatnonzero(x)[0]] if isinstance(x, np.ndarray) and x.any() else x[0] for x in looked]


class AffineParameterMap:
    """Map from the values of a sweep to the numbers of its runs.

    bound      bound(values) returns the numbers of a run; None if it cannot be vectorized with the others
    looked     values of the first runs, parameter by parameter
    some       values of runs from all parts of the sweep, run by run
    base       numbers of the run with the values `origin_of(looked)`
    constants  how many of the last numbers are constants of the robot
    floors     how many of the last constants are minimum pivots
    affine     whether the map holds: numbers = base + sum of slope (value - value at the origin)
    places     indices of the constants of the robots that differ
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
        """Return the (N, n) numbers of runs with these values, and a mask (N,) of those that cannot be vectorized."""
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
        """Return the runs with a value outside the range from which the map was determined: they can be invalid."""
        far = np.zeros(len(values[0]), dtype=bool)
        for x, span in zip(values, self._spans, strict=True):
            if span is not None:
                far |= (x < span[0]) | (x > span[1])
        return np.flatnonzero(far)

    def _constants_differ(self, row: np.ndarray) -> np.ndarray:
        return (row != self.base)[len(row) - self._constants:]

    # determination of the map -------------------------------------------------------------------------------------------
    def _bound_and_seen(self, values: list) -> np.ndarray | None:
        row = self._bound(values)
        if row is not None:
            self._seen.append(row)
        return row

    def _column(self, k: int, values) -> _Column | None:
        """Return the numbers that depend on the k-th value; None if the dependence is not affine."""
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
            return None                                        # generated code can omit terms that are zero
        moved = np.flatnonzero(np.any([row != base for _, row in found], axis=0))
        is_value = (base[moved] == x0) & np.all([row[moved] == x for x, row in found], axis=0)
        same, rest = moved[is_value], moved[~is_value]
        far_x, far = max(found, key=lambda one: abs(one[0] - x0))
        slope, scale = (far[rest] - base[rest]) / (far_x - x0), np.abs(base[rest]) + np.abs(far[rest])
        off = [np.abs(base[rest] + slope * (x - x0) - row[rest]) > self._tolerance[rest] * scale for x, row in found]
        return None if np.any(off) else _Column(same, rest, slope)

    def _agrees(self, values: list, row: np.ndarray | None) -> bool:
        """Return whether the map agrees with a bound run.

        If row is None, the zeros among its values are replaced and the run is bound.
        """
        if row is None:
            values = [x0 if isinstance(x, float) and x == 0.0 else x for x, x0 in zip(values, self._origin, strict=True)]
            row = self._bound_and_seen(values)
        if row is None:
            return False
        mapped = self._mapped([[x] for x in values])[0]
        return not (np.abs(mapped - row) > 4.0 * self._tolerance * (np.abs(row) + np.abs(self.base))).any()


# lineup -----------------------------------------------------------------------------------------------------------------

class RunParameters(NamedTuple):
    """Numbers of runs: states q (N, nq), v (N, nv), values of the scenario (N, k), constants of the robots (N, m)."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    constants: np.ndarray


def parted(model: Model, rows: np.ndarray) -> RunParameters:
    """Split rows that contain the numbers of `numbers_of`."""
    ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
    *parts, constants = np.split(rows, ends, axis=1)
    return RunParameters(*map(np.ascontiguousarray, parts), constants)


class VectorizedSweep:
    """Runs of a sweep that are computed as one batch.

    first   a run, whose problem and output times are shared by all
    grid    steps of the runs
    times   output times [s]
    engine  integrator of the batch
    places  indices of the constants of the robots that differ
    affine  whether the numbers of runs are computed without binding each run
    """

    def __init__(self, first: PreparedRun, numbers: AffineParameterMap, engine: BatchIntegrator):
        self.first, self._numbers, self.engine = first, numbers, engine
        self.affine, self.places = numbers.affine, numbers.places
        self.times = output_times(first.scenario)
        self.grid: Grid = make_grid(first.problem.schedule, self.times, first.scenario.integrator.step)

    def rows(self, values: list) -> tuple[RunParameters, np.ndarray]:
        """Return the numbers of runs with these values, and a mask of those that cannot be vectorized."""
        rows, alone = self._numbers.rows(values)
        return parted(self.first.model, rows), alone

    def engine_for(self, numbers: RunParameters) -> BatchIntegrator:
        return BatchIntegrator(self.engine.problem, self.engine.batch_step,
                               np.ascontiguousarray(numbers.constants[:, self.places]))

    def variants(self, numbers: RunParameters, rows=slice(None)) -> Variants | None:
        """Return the robots of these runs; None if all have the same robot."""
        places = self.places
        return Variants.of_numbers(self.first.model, places, numbers.constants[:, places][rows]) if len(places) else None


def lineup_of(binding: SweepBinding) -> VectorizedSweep | None:
    """Return the vectorized runs of a sweep; None if they are not supported.

    Not supported are integrators other than rk4, events, sampled controllers, loops, switches of the state, and robots and
    control laws without generated code.
    """
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
    """Return the properties that vectorized runs must share; None for a run that cannot be vectorized."""
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
    """Return the concatenated numbers of a run: q, v, values of the scenario, constants of the robot."""
    problem = run.problem
    return np.concatenate([problem.q, problem.v, problem.tables().numbers, problem.model.constants])
