"""Trials of other integrators for a run that ends early or whose result is suspicious.

A trial is the same run from the start with another integrator. Its motion is judged by the criteria of the run.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from liedyn.errors import LiedynError
from liedyn.integrators.diagnosis import (
    STABILITY_LIMIT,
    fastest_motion,
    fastest_motion_of_run,
    find_unreliable_steps,
    integrator_options,
    longest_step,
)
from liedyn.integrators.problem import IMPLICIT
from liedyn.integrators.solve import solve
from liedyn.io.checkpoint_files import Unfinished
from liedyn.io.scenarios.scenario import METHODS, Integrator
from liedyn.simulation.hybrid_simulation import HybridSimulation
from liedyn.simulation.preparation import PreparedRun, output_times
from liedyn.simulation.run_checks import MAX_RELATIVE_BALANCE, SelfCheck
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import RunSegment

MAX_SECONDS = 5.0             # maximum computing time of all trials of a run, without compilation
# factors of a fixed step and of tolerances: 256 times the accuracy of rk4, 100 times the required one
_STEP_FACTOR, _TOLERANCE_FACTOR = 0.25, 1e-2
_MIN_RTOL = 2.3e-14     # minimum of a scenario


class _TrialStopped(Exception):
    """The time limit of a trial is reached, or a signal ends it."""


class _TimedRecorder(RunRecorder):
    """The recorder of a trial, which ends after some seconds of computing or when `disk` receives a signal.

    The time starts after the first steps, which may compile code.
    """

    def __init__(self, prepared: PreparedRun, seconds: float, disk: Unfinished | None):
        super().__init__(prepared.model, prepared.problem, frictions=prepared.frictions)
        self._seconds, self._disk = seconds, disk
        self._began: float | None = None

    @property
    def elapsed(self) -> float:
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def checkpoint(self, t: float, _state_dict: Callable[[], dict[str, Any]]) -> None:
        if self._began is None and t > 0.0:
            self._began = time.perf_counter()
        if self.elapsed > self._seconds or (self._disk is not None and self._disk.stop):
            raise _TrialStopped(t)


class _TrialOutcome(NamedTuple):
    text: str
    is_accurate: bool = False
    ended_early: bool = False          # early, without a stop of the trial


def try_integrators(prepared: PreparedRun, segments: Sequence[RunSegment], progress: Any,
                    disk: Unfinished | None = None) -> str:
    """Return the results of other integrators for a run, up to the first accurate one, as the end of a message about the run.

    segments   of the motion that was computed
    disk       receives the signals of the process during the run
    """
    sampling = prepared.scenario.sampling
    if sampling is not None and sampling.function is not None:         # the function may have a state and side effects
        return "; no other integrator was tried, because that would call the controller again"
    outcomes: list[_TrialOutcome] = []
    candidates, remaining = _candidates(prepared, segments), MAX_SECONDS
    for k, integrator in enumerate(candidates):
        if remaining <= 0.0 or (disk is not None and disk.stop):
            break
        with progress.stage(f"trying integrator={_format_integrator(integrator)}"):
            outcome, elapsed = _trial(prepared, integrator, remaining / (len(candidates) - k), disk)
        outcomes.append(outcome)
        remaining -= elapsed
        if outcome.is_accurate:
            break
    if not outcomes:
        return ""
    cause = ("; the motion may diverge there (runs with passive=false and with zero torques show whether a force is the cause)"
             if all(tried.ended_early for tried in outcomes) else "")
    return f"; tried: {', '.join(tried.text for tried in outcomes)}{cause}"


def _candidates(prepared: PreparedRun, segments: Sequence[RunSegment]) -> list[Integrator]:
    """Return the integrators to try, the most promising first."""
    problem, used = prepared.problem, prepared.scenario.integrator
    implicit = "Radau" if problem.solves_constraints else "rodas5p"          # as in `choose_integrator`
    if not used.step_is_fixed:
        tighter = replace(used, rtol=max(_TOLERANCE_FACTOR * used.rtol, _MIN_RTOL), atol=_TOLERANCE_FACTOR * used.atol)
        other = replace(used, method="dopri5" if used.method in IMPLICIT else implicit)
        return [tighter, other] if used.method in IMPLICIT else [other, tighter]
    step = longest_step(used.step, prepared.scenario.output_step)
    shorter, rate = float(f"{_STEP_FACTOR * step:.6g}"), _fastest_rate(prepared, segments)
    dopri5, alternative = Integrator("dopri5"), Integrator(implicit)
    if used.method == "rk4" and rate * step > STABILITY_LIMIT:
        return [alternative, replace(used, step=min(shorter, float(f"{0.5 * STABILITY_LIMIT / rate:.1g}"))), dopri5]
    return [replace(used, step=shorter), dopri5, alternative]


def _fastest_rate(prepared: PreparedRun, segments: Sequence[RunSegment]) -> float:
    """Return the fastest rate of the forces [1/s], initially and in the motion that was computed."""
    problem = prepared.problem
    rates = [fastest_motion(problem, 0.0, problem.q, np.zeros(problem.model.nv)).rate]
    with suppress(LiedynError):                                        # raised by a motion that is not finite
        rates += [fastest_motion_of_run(segment.problem, segment.record).rate for segment in segments if len(segment.record.t)]
    return max(rates)


def _trial(prepared: PreparedRun, integrator: Integrator, seconds: float, disk: Unfinished | None) -> tuple[_TrialOutcome, float]:
    """Return the outcome of a trial, and its time without compilation [s]."""
    scenario, problem = replace(prepared.scenario, integrator=integrator), prepared.problem
    name = f"integrator={_format_integrator(integrator)}"
    rows, options = _TimedRecorder(prepared, seconds, disk), integrator_options(integrator)
    try:
        solve(problem, np.zeros(1), options)                           # compile or load the code
        motion = HybridSimulation(scenario, prepared.hybrid_simulation.model, problem, prepared.frictions)
        statistics = motion.run(output_times(scenario), options, lambda fraction: None, rows)
        segments = rows.segments()
        check, _ = SelfCheck(prepared, rows, segments).values(statistics)
        unreliable = find_unreliable_steps(integrator, segments)
    except _TrialStopped as stopped:
        return _TrialOutcome(f"{name} reaches t = {stopped.args[0]:.6g} s after {rows.elapsed:.1f} s of computing"), rows.elapsed
    except LiedynError as error:
        at = getattr(error, "at", None)
        reach = "early" if at is None else f"at t = {at:.6g} s"
        return _TrialOutcome(f"{name} ends {reach}", ended_early=True), rows.elapsed
    balance = check["energy_balance_relative"]
    text = f"{name} computes the whole run with a relative error of the energy balance of {balance:.1e}"
    is_accurate = balance <= MAX_RELATIVE_BALANCE and not unreliable                           # NaN is not
    return _TrialOutcome(f"{text}, but is not reliable" if unreliable else text, is_accurate), rows.elapsed


def _format_integrator(integrator: Integrator) -> str:
    """Return the integrator as the value of a key, also for -S: other keys of the integrator may not fit its method."""
    default, method = Integrator(), integrator.method
    keys = [f"{key}: {value:g}" for key in METHODS[method] if (value := getattr(integrator, key)) != getattr(default, key)]
    return f"{{{', '.join([f'method: {method}', *keys])}}}"
