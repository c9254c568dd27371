"""Map the values of a sweep to the arrays of vectorized runs, without binding each run individually.

Runs that are computed as one batch differ only in numbers: the initial state, the `values` of the scenario and constants of
the robot (`codegen.batch_step`). Where these are not affine in the values of the sweep, every run is bound.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.batch.sweep_binding import ScenarioBinding, Value, Values
from liedyn.batch.vectorized_controller import BlockController, controller_signature, controller_values, has_laws, sampling_reason
from liedyn.codegen.sampled_laws import load_or_build_laws
from liedyn.codegen.specialize import GeneratedBatchFunction
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynError
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, generated_step, make_grid
from liedyn.model.model import Model
from liedyn.simulation.preparation import PreparedRun, output_times

# Affine map from the values of a sweep to the numbers of a run ----------------------------------------------------------

# Most numbers are equal to a value of the sweep. Others are affine in it, such as inertias in a mass. The map is checked against
# runs that are bound completely. If they differ, the map is not used.

_ROUNDING = 1e-13        # relative tolerance of the affine map
_PIVOT_ROUNDING = 0.5    # the same for the minimum pivots, of which only the order of magnitude matters

Bind: TypeAlias = Callable[[Sequence[Value]], Array | None]


class _Column(NamedTuple):
    """Numbers that depend on one value: indices of numbers equal to it; indices of others, and their derivatives."""

    copied: Integers
    linear: Integers
    derivative: Array


_NO_DEPENDENCE = _Column(np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def origin_values(samples: Sequence[Values]) -> list[Value]:
    """Return the values of a run: the first nonzero value of each parameter. Generated code can omit terms that are zero."""
    return [x[np.flatnonzero(x)[0]] if isinstance(x, np.ndarray) and x.any() else x[0] for x in samples]


class AffineParameterMap:
    """Map from the values of a sweep to the numbers of its runs.

    bind             bind(values) returns the numbers of a run; None if it cannot be vectorized with the others
    samples          values of the first runs, parameter by parameter
    checked_values   values of runs from all parts of the sweep, run by run
    base             numbers of the run with the values `origin_values(samples)`
    n_constants      how many of the last numbers are constants of the robot
    n_min_pivots     how many of the last constants are minimum pivots
    is_affine        whether the map holds: numbers = base + sum of derivative (value - value at the origin)
    varying_indices  indices of the constants of the robots that differ
    """

    def __init__(self, bind: Bind, samples: Sequence[Values], checked_values: Sequence[Sequence[Value]], base: Array,
                 n_constants: int, n_min_pivots: int):
        self._bind, self.base, self._n_constants = bind, base, n_constants
        self._differs = np.zeros(n_constants, dtype=bool)      # constants that differ in a bound run
        self._origin, self._tolerance = origin_values(samples), np.full(len(base), _ROUNDING)
        self._tolerance[len(base) - n_min_pivots:] = _PIVOT_ROUNDING
        self._ranges = [(x.min(), x.max()) if isinstance(x, np.ndarray) else None for x in samples]
        columns = [self._fit_column(k, values) for k, values in enumerate(samples)]
        self._columns = [column or _NO_DEPENDENCE for column in columns]
        corners = [[pick(x) if isinstance(x, np.ndarray) else x[0] for x in samples] for pick in (np.min, np.max)]
        rows = [(values, self._bind_row(values)) for values in (*checked_values, *corners)]
        self.is_affine = None not in columns and all(self._agrees(values, row) for values, row in rows)
        self.varying_indices = np.flatnonzero(self._differs)

    def rows(self, values: Sequence[Values]) -> tuple[Array, Mask]:
        """Return the (N, n) numbers of runs with these values, and a mask (N,) of those that cannot be vectorized."""
        excluded = np.zeros(len(values[0]), dtype=bool)
        if self.is_affine:
            for i in self._outside_samples(values):
                excluded[i] = self._bind([x[i] for x in values]) is None
            return self._mapped(values), excluded
        rows, varying = np.tile(self.base, (len(excluded), 1)), set(self.varying_indices)
        for i in range(len(excluded)):
            row = self._bind([x[i] for x in values])
            if row is None or not set(np.flatnonzero(self._constants_differ(row))) <= varying:
                excluded[i] = True
            else:
                rows[i] = row
        return rows, excluded

    def variants(self, model: Model, constants: Array) -> Variants | None:
        """Return the robots of runs from all their constants (N, m); None if all have the same robot."""
        indices = self.varying_indices
        return Variants.of_numbers(model, indices.tolist(), constants[:, indices]) if len(indices) else None

    def _mapped(self, values: Sequence[Values]) -> Array:
        rows = np.tile(self.base, (len(values[0]), 1))
        for column_values, origin, column in zip(values, self._origin, self._columns, strict=True):
            x = np.asarray(column_values)
            if len(column.linear):
                rows[:, column.linear] += (x - origin)[:, None] * column.derivative
            if len(column.copied):
                rows[:, column.copied] = x[:, None]
        return rows

    def _outside_samples(self, values: Sequence[Values]) -> Integers:
        """Return the runs with a value outside the range from which the map was determined: they can be invalid."""
        outside = np.zeros(len(values[0]), dtype=bool)
        for x, sampled_range in zip(values, self._ranges, strict=True):
            if sampled_range is not None:
                outside |= (x < sampled_range[0]) | (x > sampled_range[1])
        return np.flatnonzero(outside)

    def _constants_differ(self, row: Array) -> Mask:
        differ: Mask = row != self.base
        return differ[len(row) - self._n_constants:]

    # determination of the map -------------------------------------------------------------------------------------------
    def _bind_row(self, values: Sequence[Value]) -> Array | None:
        row = self._bind(values)
        if row is not None:
            self._differs |= self._constants_differ(row)
        return row

    def _fit_column(self, k: int, values: Values) -> _Column | None:
        """Return the numbers that depend on the k-th value; None if the dependence is not affine."""
        if not isinstance(values, np.ndarray):
            return _NO_DEPENDENCE if all(x == values[0] for x in values) else None
        origin, base, x0 = self._origin, self.base, self._origin[k]
        different = np.unique(values[values != x0])
        if not len(different):
            return _NO_DEPENDENCE
        probes = np.unique([different[0], different[-1], different[len(different) // 2]])
        rows = [self._bind_row([*origin[:k], x, *origin[k + 1:]]) for x in probes]
        bound = [(x, row) for x, row in zip(probes, rows, strict=True) if row is not None]
        if not bound or any(row is None and x != 0.0 for x, row in zip(probes, rows, strict=True)):
            return None                                        # generated code can omit terms that are zero
        dependent = np.flatnonzero(np.any([row != base for _, row in bound], axis=0))
        is_value = (base[dependent] == x0) & np.all([row[dependent] == x for x, row in bound], axis=0)
        copied, linear = dependent[is_value], dependent[~is_value]
        far_x, far_row = max(bound, key=lambda pair: abs(pair[0] - x0))
        derivative = (far_row[linear] - base[linear]) / (far_x - x0)
        scale = np.abs(base[linear]) + np.abs(far_row[linear])
        for x, row in bound:
            if (np.abs(base[linear] + derivative * (x - x0) - row[linear]) > self._tolerance[linear] * scale).any():
                return None
        return _Column(copied, linear, derivative)

    def _agrees(self, values: Sequence[Value], row: Array | None) -> bool:
        """Return whether the map agrees with a bound run.

        If row is None, the zeros among its values are replaced and the run is bound.
        """
        if row is None:
            values = [x0 if isinstance(x, float) and x == 0.0 else x for x, x0 in zip(values, self._origin, strict=True)]
            row = self._bind_row(values)
        if row is None:
            return False
        mapped = self._mapped([[x] for x in values])[0]
        return not (np.abs(mapped - row) > 4.0 * self._tolerance * (np.abs(row) + np.abs(self.base))).any()


# vectorized runs --------------------------------------------------------------------------------------------------------

class RunParameters(NamedTuple):
    """Numbers of runs: states q (N, nq), v (N, nv), values of the scenario (N, k), constants of the robots (N, m).

    Of runs with a sampled controller, the last values are those of `controller_values`.
    """

    q: Array
    v: Array
    values: Array
    constants: Array


def split_rows(model: Model, rows: Array) -> RunParameters:
    """Split rows (N, n) of numbers as `parameter_row` returns them."""
    ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
    q, v, values, constants = np.split(rows, ends, axis=1)
    return RunParameters(np.ascontiguousarray(q), np.ascontiguousarray(v), np.ascontiguousarray(values), constants)


class VectorizedSweep:
    """Runs of a sweep that are computed as one batch.

    first            a run, whose problem and output times are shared by all
    grid             steps of the runs
    times            output times [s]
    engine           integrator of the batch
    varying_indices  indices of the constants of the robots that differ
    is_affine        whether the numbers of runs are computed without binding each run
    controller       of runs with a sampled controller; else None
    """

    def __init__(self, first: PreparedRun, parameter_map: AffineParameterMap, engine: BatchIntegrator,
                 laws: GeneratedBatchFunction | None):
        self.first, self._parameter_map, self.engine = first, parameter_map, engine
        self.is_affine, self.varying_indices = parameter_map.is_affine, parameter_map.varying_indices
        self.times = output_times(first.scenario)
        self.controller = None if first.problem.sampled is None else BlockController(first, self.times, laws)
        self.grid: Grid = make_grid(first.problem.schedule if self.controller is None else self.controller.schedule, self.times,
                                    first.scenario.integrator.step)

    def advance(self, engine: BatchIntegrator, states: BatchStates, out: BatchOutputs, values: Array,
                threads: int | None) -> Mask:
        """Advance runs with these values over all steps. Return a mask (N,) of those whose controller did not fail."""
        if self.controller is not None:
            return self.controller.advance(engine, self.grid, states, out, values, threads)
        engine.advance(states, self.grid, out, values, threads=threads)
        return np.ones(len(values), dtype=bool)

    def rows(self, values: Sequence[Values]) -> tuple[RunParameters, Mask]:
        """Return the numbers of runs with these values, and a mask (N,) of those that cannot be vectorized."""
        rows, excluded = self._parameter_map.rows(values)
        return split_rows(self.first.model, rows), excluded

    def engine_for(self, parameters: RunParameters) -> BatchIntegrator:
        """Return the integrator of runs with these robots."""
        return BatchIntegrator(self.engine.problem, self.engine.batch_step,
                               np.ascontiguousarray(parameters.constants[:, self.varying_indices]))

    def variants(self, parameters: RunParameters, rows: Mask | slice = slice(None)) -> Variants | None:
        """Return the robots of these runs; None if all have the same robot."""
        return self._parameter_map.variants(self.first.model, parameters.constants[rows])


def vectorize_sweep(binding: ScenarioBinding) -> VectorizedSweep | None:
    """Return the vectorized runs of a sweep; None if they are not supported.

    Not supported are integrators other than rk4, events, observers, functions in Python that do not take arrays, loops, switches
    of the state, and robots and control laws without generated code.
    """
    samples = binding.samples
    try:
        first = binding.bind(origin_values(samples))
    except LiedynError:
        return None
    problem, shared = first.problem, signature(first)
    if shared is None or problem.model.nv == 0:
        return None

    def bind(values: Sequence[Value]) -> Array | None:
        try:
            run = binding.bind(values)
        except LiedynError:
            return None
        return parameter_row(run) if signature(run) == shared else None

    n_min_pivots = first.model.nv                              # the last constants of a robot
    parameter_map = AffineParameterMap(bind, samples, binding.checked_values, parameter_row(first), len(first.model.constants),
                                       n_min_pivots)
    problem = replace(problem, sampled=None)
    varying = tuple(map(int, parameter_map.varying_indices))
    step = generated_step(problem, "rk4", varying)
    laws = None
    if has_laws(first):
        assert first.scenario.sampling is not None
        laws = load_or_build_laws(first.problem.sampled, first.scenario.sampling.interval, varying)
    if step is None or (laws is None and has_laws(first)):
        return None
    return VectorizedSweep(first, parameter_map, BatchIntegrator(problem, step, np.zeros((1, 0))), laws)


def sequential_reason(run: PreparedRun) -> str:
    """Return which part of a scenario or robot vectorized runs do not support, "" for none that is known."""
    problem, scenario = run.problem, run.scenario
    reasons = {f"integrator {scenario.integrator.method}": scenario.integrator.method != "rk4", "events": bool(scenario.events),
               "hard stops": scenario.limits is not None and scenario.limits.mode == "hard",
               "rigid friction": bool(run.frictions),
               sampling_reason(run): True, "sensors": bool(run.sensors),
               "loops, or couplings that are not eliminated": problem.solves_constraints,
               "mimic joints that move no inertia": bool(problem.transferred_armature.any())}
    return ", ".join(reason for reason, applies in reasons.items() if applies and reason)


def signature(run: PreparedRun) -> tuple[Any, ...] | None:
    """Return the properties that vectorized runs must share; None for a run that cannot be vectorized."""
    problem, scenario = run.problem, run.scenario
    if sequential_reason(run):
        return None
    tables = problem.tables()
    integrator, signals, curves = scenario.integrator, problem.signals, tables.curves
    return (*tables.content, integrator.method, integrator.step, scenario.duration, scenario.output_step, problem.passive,
            problem.schedule.breaks.tobytes(), signals.breaks.tobytes(), signals.coefficients.tobytes(),
            signals.first[curves].tobytes(), signals.count[curves].tobytes(), len(run.model.constants), controller_signature(run))


def parameter_row(run: PreparedRun) -> Array:
    """Return the concatenated numbers of a run: q, v, values of the scenario, constants of the robot."""
    problem = run.problem
    return np.concatenate([problem.q, problem.v, problem.tables().scenario_values, controller_values(run),
                           problem.model.constants])
