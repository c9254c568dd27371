"""Controllers in Python that take arrays: one call per sample computes the torques of all runs of a block.

A function or class with the attribute ``vectorized = True`` gets q (N, nq), v (N, nv) of N runs. Between samples, the torques are
values of the vectorized runs.
"""
from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.errors import ComputationError
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid
from liedyn.integrators.segment import SAME_TIME_SPACINGS
from liedyn.simulation.control.python_controller import with_python_controller
from liedyn.simulation.control.sampled_control import acting_torques, measured_states, takes_arrays, user_torques
from liedyn.simulation.preparation import PreparedRun


def sampling_reason(run: PreparedRun) -> str:
    """Return which part of the sampled controller of a run vectorized runs do not support, "" for none or without one."""
    sampled, sampling, scenario = run.problem.sampled, run.scenario.sampling, run.scenario
    if sampled is None or sampling is None:
        return ""
    if sampling.function is None or not takes_arrays(sampling.function):
        return "a sampled controller" if sampling.function is None else "a controller in Python without vectorized = True"
    laws, schedule = sampled.law.joint_laws, sampled.law.schedule
    reasons = {"a control law": scenario.control is not None or (schedule.target >= 0).any() or schedule.integral.size > 0,
               "an observer": scenario.observer is not None, "delay": sampling.delay > 0.0,
               "noise": sampled.noise.deviations.any(), "a first-order hold": sampling.hold != "zero",
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
    has_model = not isinstance(getattr(sampling.function, "func", sampling.function), FunctionType)        # an object of a class
    model = run.model if named is None or named.bound_model is None else named.bound_model
    return (sampling.interval, sampled.controlled.tobytes(), sampled.limit.tobytes(), *(x.tobytes() for x in sampled.resolution),
            repr(named), model.constants.tobytes() if has_model else b"")


class BlockController:
    """Calls the controller of the runs of a block at each sample. schedule: that of the runs, whose steps also end at samples."""

    def __init__(self, first: PreparedRun, times: Array):
        problem, sampling = first.problem, first.scenario.sampling
        assert sampling is not None, "the runs are sampled"
        self.first, self.sampled = first, problem.sampled
        self.inputs = np.flatnonzero(self.sampled.controlled)
        self.places = problem.tables().places_of_constants(self.sampled.signal[self.inputs])
        count = math.ceil(times[-1] / sampling.interval) + 1
        samples = np.array([sampling.time(k) for k in range(count)])
        near = times[np.clip(np.searchsorted(times, samples - SAME_TIME_SPACINGS * np.spacing(samples)), 0, len(times) - 1)]
        due = np.where(np.abs(near - samples) <= SAME_TIME_SPACINGS * np.spacing(samples), near, samples)
        self.taken, self.due = samples[due < times[-1]], due[due < times[-1]]
        breaks, places = np.unique(np.concatenate([problem.schedule.breaks, self.due[1:]]), return_index=True)
        ends = np.concatenate([problem.schedule.before, np.nextafter(self.due[1:], -np.inf)])
        self.schedule = problem.schedule._replace(breaks=breaks, before=ends[places])

    def advance(self, engine: BatchIntegrator, grid: Grid, states: BatchStates, out: BatchOutputs, values: Array,
                threads: int | None) -> Mask:
        """Advance all runs over the grid. Return a mask (N,) of those whose torques are finite; none if the function fails."""
        scenario, model = self.first.scenario, self.first.model
        assert scenario.sampling is not None
        unbound = replace(scenario, sampling=replace(scenario.sampling, function=None))
        sampling = (unbound if scenario.controller is None else with_python_controller(unbound, model)).sampling
        assert sampling is not None and sampling.function is not None
        valid = np.ones(len(values), dtype=bool)
        steps = np.searchsorted(grid.clocks[:-1, 1], self.due)
        for taken, (s, end) in zip(self.taken, pairwise([*steps.tolist(), grid.steps]), strict=True):
            runs = np.asarray(states.ended < 0)
            q, v = (np.where(runs[:, None], x, rest) for x, rest in ((states.q, model.neutral()), (states.v, 0.0)))
            try:
                torque = user_torques(model, sampling.function, float(taken), *measured_states(self.sampled, q, v))
            except ComputationError:                             # computed individually, each run gives its error
                return np.zeros(len(values), dtype=bool)
            is_finite: Mask = np.asarray(np.isfinite(torque).all(axis=1))
            valid &= is_finite | ~runs
            torque = acting_torques(self.sampled, np.where(is_finite[:, None], torque, 0.0))
            values[:, self.places] = torque[:, self.inputs]
            part = Grid(grid.clocks[s:end + 1], grid.row[s:end + 1].copy())
            if end < grid.steps:
                part.row[-1] = -1                                # the next call writes it, with its torques
            states.last[:] = grid.steps - s
            engine.advance(states, part, out, values, threads=threads)
            states.ended[(states.ended >= 0) & runs] += s
        return valid
