"""Sampled controllers of the runs of a block: laws by generated code, and controllers in Python that take arrays.

A function or class with the attribute ``vectorized = True`` gets q (N, nq), v (N, nv) of N runs, with the noise of each run.
Between samples, and until they act, the torques are values of the vectorized runs.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask, cache_aligned
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.specialize import GeneratedBatchFunction
from liedyn.errors import ComputationError
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, curve_coefficients
from liedyn.integrators.segment import SAME_TIME_SPACINGS
from liedyn.io.scenarios.scenario import Sampling
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.control.python_controller import with_python_controller
from liedyn.simulation.control.sampled_control import SampledLaws, acting_torques, measured_states, takes_arrays, user_torques
from liedyn.simulation.preparation import PreparedRun
from liedyn.simulation.random_streams import NOISE_BLOCK, MeasurementNoise


def sampling_reason(run: PreparedRun) -> str:
    """Return which part of the sampled controller of a run vectorized runs do not support, "" for none or without one."""
    sampled, sampling, scenario = run.problem.sampled, run.scenario.sampling, run.scenario
    if sampled is None or sampling is None:
        return ""
    if sampling.function is not None and not takes_arrays(sampling.function):
        return "a controller in Python without vectorized = True"
    laws, schedule = sampled.law.joint_laws, sampled.law.schedule
    reasons = {"parameters that a law estimates": sampled.law.tables().law_states > schedule.integral.size,
               "a control law in loops": sampled.law.laws_depend_on_loops, "an observer": scenario.observer is not None,
               "a seed above 2^53": sampled.noise.seed > 2**53, "a first-order hold": sampling.hold != "zero",
               "phases": not sampled.is_whole_run,
               "limits that are signals": laws is not None and (laws.top >= 0).any(),
               "thrusts": len(run.model.description.actuators) > 0}
    names = [reason for reason, applies in reasons.items() if applies]
    return f"a sampled controller with {' and '.join(names)}" if names else ""


def controller_signature(run: PreparedRun) -> tuple[Any, ...]:
    """Return what the controllers of runs in a block must share; () without a sampled controller."""
    sampled, sampling, named = run.problem.sampled, run.scenario.sampling, run.scenario.controller
    if sampled is None or sampling is None:
        return ()
    function = getattr(sampling.function, "func", sampling.function)
    has_model = function is not None and not isinstance(function, FunctionType)         # an object of a class
    model = run.model if named is None or named.bound_model is None else named.bound_model
    return (sampling.interval, sampling.delay, sampled.controlled.tobytes(), sampled.limit.tobytes(),
            *(x.tobytes() for x in sampled.resolution), repr(named), model.constants.tobytes() if has_model else b"",
            *(_law_content(sampled.law.tables()) if has_laws(run) else ()))


def has_laws(run: PreparedRun) -> bool:
    """Return whether laws other than a function of the user are sampled."""
    if run.problem.sampled is None:
        return False
    schedule = run.problem.sampled.law.schedule
    return run.scenario.control is not None or bool((schedule.target >= 0).any() or schedule.integral.size)


def _law_content(tables: ScenarioTables) -> tuple[bytes, ...]:
    """Return what laws depend on except for `scenario_values`."""
    signals, curves = tables.signals, tables.curves
    return (*tables.content, signals.breaks.tobytes(), signals.coefficients.tobytes(), signals.first[curves].tobytes(),
            signals.count[curves].tobytes())


def controller_values(run: PreparedRun) -> Array:
    """Return the numbers of a sampled controller, if there is one.

    These are seed and standard deviations (2 nv) of the noise, then numbers of the laws: `ScenarioTables.scenario_values`.
    """
    sampled = run.problem.sampled
    if sampled is None:
        return np.zeros(0)
    of_laws = sampled.law.tables()._replace(varying=()).scenario_values if has_laws(run) else np.zeros(0)
    return np.concatenate([[sampled.noise.seed], sampled.noise.deviations.reshape(-1), of_laws])


class _Laws:
    """The laws of the runs of a block.

    values     (N, k) numbers of `ScenarioTables.scenario_values`
    constants  (N, m) of the robots, at the indices for which the code was generated
    """

    def __init__(self, sampled: SampledLaws, function: GeneratedBatchFunction, values: Array, constants: Array):
        nv = sampled.law.model.nv
        self._function, self._tables, self._sampled = function, sampled.law.tables()._replace(varying=()), sampled
        self._values, self._workspace = np.ascontiguousarray(values), cache_aligned(max(function.workspace_size, 8))
        self._constants = [np.ascontiguousarray(constants)] if constants.shape[1] else []
        self.integral, self._columns = np.zeros((len(values), nv)), sampled.law.schedule.integral

    def torques(self, t: float, q: Array, v: Array) -> Array:
        """Return the torques (N, inputs) of the laws for measured states; `advance` moves the integrals."""
        curves = curve_coefficients(self._tables.signals, self._tables.curves, np.full((1, 4), t))
        times = np.tile(np.append(t, curves[0, :CURVE_COEFFICIENTS * len(self._tables.curves)]), (len(q), 1))
        torque, self._next = np.zeros((len(q), len(self._sampled.controlled))), self.integral.copy()
        self._function.run([times, self._values, np.ascontiguousarray(q), np.ascontiguousarray(v), self._next, *self._constants,
                            torque], self._workspace, 0, len(q))
        return torque

    def advance(self, torque: Array) -> None:
        """Move the integrals unless a torque (N, inputs) before limits is beyond its limit and they would grow further."""
        k, limit = self._columns, self._sampled.limit
        change = self._next[:, k] - self.integral[:, k]
        is_winding = ((torque > limit)[:, k] & (change > 0.0)) | ((torque < -limit)[:, k] & (change < 0.0))
        self.integral[:, k] += np.where(is_winding, 0.0, change)


class _Noise:
    """The noise of the runs of a block. values: rows of seeds and deviations of `controller_values`."""

    def __init__(self, sampled: SampledLaws, values: Array):
        is_measured, shape = sampled.law.schedule.level == TORQUE, (2, len(sampled.noise.names))
        self._runs = [MeasurementNoise(int(row[0]), sampled.noise.names, row[1:].reshape(shape) * is_measured) for row in values]
        self._first, self._blocks = -1, np.zeros(0)
        self.exists = bool(values[:, 1:].any())

    def errors(self, sample: int) -> Array:
        """Return the errors (N, 2, nv) of a sample."""
        first = sample - sample % NOISE_BLOCK
        if first != self._first:
            self._first, self._blocks = first, np.stack([noise.block(first) for noise in self._runs])
        errors: Array = self._blocks[:, sample - first]
        return errors


class _Action(NamedTuple):
    """What a controller does at a time, as (whether it takes a sample, or applies delayed torques; number of the sample)."""

    time: float
    parts: list[tuple[bool, int]]


class BlockController:
    """Computes the torques of the runs of a block at each sample. schedule: that of the runs, whose steps also end at samples."""

    def __init__(self, first: PreparedRun, times: Array, laws: GeneratedBatchFunction | None):
        """laws: their function, if there are some."""
        problem, sampling = first.problem, first.scenario.sampling
        assert sampling is not None, "the runs are sampled"
        self.first, self.sampled, self._laws = first, problem.sampled, laws
        self.inputs = np.flatnonzero(self.sampled.controlled)
        self.places = problem.tables().places_of_constants(self.sampled.signal[self.inputs])
        self.actions = list(_actions(sampling, times))
        due = np.array([action.time for action in self.actions[1:]])
        breaks, places = np.unique(np.concatenate([problem.schedule.breaks, due]), return_index=True)
        ends = np.concatenate([problem.schedule.before, np.nextafter(due, -np.inf)])
        self.schedule = problem.schedule._replace(breaks=breaks, before=ends[places])

    def advance(self, engine: BatchIntegrator, grid: Grid, states: BatchStates, out: BatchOutputs, values: Array,
                threads: int | None) -> Mask:
        """Advance all runs over the grid. Return a mask (N,) of those whose torques are finite; none if the function fails.

        values   of the scenario, then those of `controller_values`
        """
        scenario, model = self.first.scenario, self.first.model
        assert scenario.sampling is not None
        unbound = replace(scenario, sampling=replace(scenario.sampling, function=None))
        sampling = scenario.sampling if scenario.controller is None else with_python_controller(unbound, model).sampling
        assert sampling is not None
        valid, waiting = np.ones(len(values), dtype=bool), dict[int, Array]()
        first = values.shape[1] - len(controller_values(self.first))
        parts = np.split(values, [first, first + 1 + 2 * model.nv], axis=1)
        values, noise_rows, law_rows = map(np.ascontiguousarray, parts)
        noise = _Noise(self.sampled, noise_rows)
        laws = None if self._laws is None else _Laws(self.sampled, self._laws, law_rows, engine.varying)
        steps = np.searchsorted(grid.clocks[:-1, 1], [action.time for action in self.actions])
        for action, (s, end) in zip(self.actions, pairwise([*steps.tolist(), grid.steps]), strict=True):
            runs = np.asarray(states.ended < 0)
            for is_sample, k in action.parts:
                if not is_sample:
                    values[:, self.places] = waiting.pop(k)
                    continue
                q, v = (np.where(runs[:, None], x, rest) for x, rest in ((states.q, model.neutral()), (states.v, 0.0)))
                errors = noise.errors(k) if noise.exists else None
                torque, measured = np.zeros((len(q), len(self.sampled.controlled))), measured_states(self.sampled, q, v, errors)
                if laws is not None:
                    torque += laws.torques(action.time, *measured)
                try:
                    if sampling.function is not None:
                        torque += user_torques(model, sampling.function, sampling.time(k), *measured)
                except ComputationError:                         # computed individually, each run gives its error
                    return np.zeros(len(values), dtype=bool)
                if laws is not None:
                    laws.advance(torque)
                is_finite: Mask = np.asarray(np.isfinite(torque).all(axis=1))
                valid &= is_finite | ~runs
                torque = acting_torques(self.sampled, np.where(is_finite[:, None], torque, 0.0))[:, self.inputs]
                if sampling.delay and k:
                    waiting[k] = torque
                else:
                    values[:, self.places] = torque
            part = Grid(grid.clocks[s:end + 1], grid.row[s:end + 1].copy())
            if end < grid.steps:
                part.row[-1] = -1                                # the next call writes it, with its torques
            states.last[:] = grid.steps - s
            engine.advance(states, part, out, values, threads=threads)
            states.ended[(states.ended >= 0) & runs] += s
        return valid


def _actions(sampling: Sampling, times: Array) -> Iterator[_Action]:
    """Yield what a controller does until the end of the times, which samples and torques share but for rounding."""
    samples = [sampling.time(k) for k in range(math.ceil(times[-1] / sampling.interval) + 1)]
    due = [(t, True, k) for k, t in enumerate(samples)]
    if sampling.delay:                                           # the first torques act from the start
        due += [(t + sampling.delay, False, k) for k, t in enumerate(samples) if k]
    action = _Action(-1.0, [])
    for t, is_sample, k in sorted(due):
        if t - action.time > SAME_TIME_SPACINGS * math.ulp(t):
            if action.time >= 0.0:
                yield action
            near = times[min(int(np.searchsorted(times, t - SAME_TIME_SPACINGS * math.ulp(t))), len(times) - 1)]
            action = _Action(float(near) if abs(near - t) <= SAME_TIME_SPACINGS * math.ulp(t) else t, [])
            if action.time >= times[-1]:
                return
        action.parts.append((is_sample, k))
    yield action
