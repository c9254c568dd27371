"""The loop over a segment of a run: steps, outputs, break points and events, with the steppers of all methods."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from liedyn.arrays import Array, ArrayLike
from liedyn.integrators.diagnosis import TOO_LARGE, check_inertia, failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    RunObserver,
    Segment,
    SegmentStart,
    Statistics,
    first_rows,
    loop_statistics,
    within_limit,
)
from liedyn.integrators.rosenbrock import METHODS as ROSENBROCK
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    H_NEXT,
    H_TRIED,
    NEXT_OUTPUT,
    REJECTED,
    STEPS,
    T_NOW,
    T_STOP,
    Record,
)
from liedyn.integrators.runge_kutta import METHODS, accept_shortened_step, run_adaptive, run_fixed, store_output
from liedyn.integrators.segment import SampledTorques, Stepper
from liedyn.kernels.simulation import rate_evaluation
from liedyn.kernels.simulation import right_hand_side as codes
from liedyn.kernels.simulation.right_hand_side import AT_BREAK_POINT, AT_EVENT, FINISHED, RUNNING

SCIPY_METHODS = ("RK45", "DOP853", "Radau", "BDF", "LSODA")
_FIRST_CHUNK = 20          # steps until progress is reported for the first time
_CHUNK_SECONDS = 0.2       # between reports of progress and checkpoints


def solve(problem: InitialValueProblem, times: Array, options: Options,
          progress: Callable[[float], None] = lambda fraction: None,
          observer: RunObserver | None = None) -> tuple[Record, Statistics]:
    """Return the motion at `times` (increasing, from 0), and its statistics.

    observer: see `RunObserver`; rows that it has saved are not in the record.

    Raises ComputationError, with the time and the reason, if the run ends early.
    """
    segment = solve_segment(problem, SegmentStart(float(times[0]), problem.q, problem.v), times, options, progress,
                            observer=observer)
    return segment.record, segment.statistics


def solve_segment(problem: InitialValueProblem, start: SegmentStart, times: Array, options: Options,
                  progress: Callable[[float], None] = lambda fraction: None, controller: SampledTorques | None = None,
                  observer: RunObserver | None = None) -> Segment:
    """Return the motion from `start` at `times` (increasing, from its time), or until an event of schedule.watch.

    controller: see `ZeroOrderHold`, for a problem with `sampled` laws.

    Raises ComputationError as `solve` does.
    """
    check_inertia(problem, start.t)
    began, options = time.perf_counter(), replace(options, max_step=min(options.max_step, problem.max_step))
    stepper = _stepper_class(options.method)(problem, start, times, options, controller)
    return _SegmentLoop(stepper, observer or RunObserver(), began).run(progress)


def _stepper_class(method: str) -> Callable[..., Stepper]:
    if method == "generalized_alpha":
        from liedyn.integrators.generalized_alpha import GeneralizedAlphaStepper
        return GeneralizedAlphaStepper
    if method == "variational":
        from liedyn.integrators.variational import VariationalStepper
        return VariationalStepper
    if method in SCIPY_METHODS or method in ROSENBROCK:
        from liedyn.integrators.scipy_solvers import SolverStepper
        return SolverStepper
    return RungeKuttaStepper


class _SegmentLoop:
    """Computes a segment with a stepper. Steps end at break points and where a switch or an event crosses zero."""

    def __init__(self, stepper: Stepper, observer: RunObserver, began: float):
        self.stepper, self.observer, self.began = stepper, observer, began
        self.state, self.switches, self.torques = stepper.state, stepper.switches, stepper.torques
        if self.torques is not None and observer.saved_state is None:
            self.torques.act(self.state)
        if len(self.switches):
            self._initialize_switches()
        if observer.saved_state is not None:
            stepper.load_state_dict(observer.saved_state)

    def run(self, progress: Callable[[float], None]) -> Segment:
        stepper, state = self.stepper, self.state
        self.observer.begin_segment(stepper.record, state.count)
        code = self._take_steps(progress)
        if code == AT_EVENT:
            code = self._record_event()
        if code != FINISHED:
            raise stepper.failure(code)
        self._check_size()
        statistics = Statistics(int(state.count[STEPS]), int(state.count[REJECTED]), int(state.count[EVALUATIONS]),
                                time.perf_counter() - self.began, loop_statistics(stepper.constraints), stepper.warnings)
        return Segment(stepper.record, statistics, stepper.end())

    def _check_size(self) -> None:
        """Raise ComputationError if the final state is too large to be meaningful."""
        stepper, ws, record = self.stepper, self.stepper.workspace, self.stepper.record
        if not within_limit(ws.q, ws.v):
            large = ~within_limit(record.q, record.v)
            t = record.t[large.argmax()] if large.any() else self.state.clock[T_NOW]
            raise failure(stepper.problem, TOO_LARGE, float(t), ws, stepper.constraints, stepper.options)

    def _take_steps(self, progress: Callable[[float], None]) -> int:
        """Take steps until the last output, an event, or a failure. Return a code."""
        stepper, clock, last = self.stepper, self.state.clock, max(self.stepper.last, 1e-300)
        code, steps, chunk_began = RUNNING, _FIRST_CHUNK, self.began
        while code == RUNNING:
            self.observer.checkpoint(float(clock[T_NOW]), stepper.state_dict)
            code = stepper.take_steps(steps)
            seconds = time.perf_counter() - chunk_began
            if code != AT_BREAK_POINT or seconds >= _CHUNK_SECONDS:
                progress(clock[T_NOW] / last)
                chunk_began = time.perf_counter()
            match code:
                case codes.RUNNING:
                    steps = _next_chunk_steps(steps, seconds)
                case codes.SWITCH_CROSSED:
                    code = self._end_step_at_crossing()
                case codes.AT_BREAK_POINT:
                    code = self._pass_break_point()
                case rate_evaluation.INVALID_ARGUMENTS:
                    stepper.rhs.use_generic_kernels()
                    stepper.restart()
                    code = RUNNING
        return code

    def _end_step_at_crossing(self) -> int:
        """Shorten the step that was tried to the first crossing. Return a code; AT_EVENT: an event happens there."""
        stepper, switches, clock = self.stepper, self.switches, self.state.clock
        h, t = float(clock[H_TRIED]), float(clock[T_NOW])

        def violation_after(fraction: float) -> float:
            stepper.evaluate_part(fraction * h)
            return switches.violation()

        fraction = switches.locate_crossing(violation_after, stepper.detects_crossings)
        value = switches.value.copy()
        code = stepper.accept_step() if fraction is None else stepper.accept_part(fraction * h)
        if code != RUNNING:
            return code
        switches.value[:] = value
        stepper.triggered = switches.triggered() if fraction is not None else ()
        if stepper.triggered:
            return AT_EVENT
        if fraction is None:
            switches.update_free_signs()
        elif self._set_jump_events(switches.cross_switches(t + fraction * h, h, stepper.evaluate_present)):
            return AT_EVENT
        stepper.limit_step(switches.any_chattering)
        return RUNNING if clock[T_NOW] != clock[T_STOP] else self._pass_break_point()

    def _pass_break_point(self) -> int:
        """Continue where signals and sampled torques may jump. Return a code; AT_EVENT: an event jumps over zero here."""
        if self.state.clock[T_NOW] < self.stepper.last:
            if self.torques is not None:
                self.torques.act(self.state)
            if len(self.switches):
                self._initialize_switches()
                if self._set_jump_events(self.switches.triggered()):
                    return AT_EVENT
        return RUNNING

    def _set_jump_events(self, triggered: tuple[int, ...]) -> bool:
        self.stepper.triggered = self.stepper.jump_events = triggered
        return bool(triggered)

    def _initialize_switches(self) -> None:
        stepper, switches = self.stepper, self.switches
        for value in stepper.values_in_step:
            switches.arm(value)
        switches.initialize(stepper.evaluate_ahead)
        stepper.restart()
        stepper.limit_step(switches.any_chattering)

    def _record_event(self) -> int:
        """Store the row of the event that has ended the segment. Return a code."""
        stepper, state = self.stepper, self.state
        k = min(int(state.count[NEXT_OUTPUT]), len(stepper.record.t) - 1)             # at the last output: this is it
        stepper.record.t[k] = state.clock[T_NOW]
        stepper.record = first_rows(stepper.record, k + 1)
        state.count[NEXT_OUTPUT], state.count[FIRST_RATE_KNOWN] = k, 0
        return stepper.store_output()


def _next_chunk_steps(steps: int, seconds: float) -> int:
    """Return the number of steps of the next chunk if the last one of `steps` steps took `seconds`."""
    return int(min(max(steps * _CHUNK_SECONDS / max(seconds, 1e-9), steps / 4 + 1), steps * 4))


class RungeKuttaStepper(Stepper):
    """Explicit Runge-Kutta steps by a compiled loop, which returns at switches, events and stop times."""

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None):
        tableau = METHODS[options.method]()
        super().__init__(problem, start, times, options, controller, tableau)
        self.run = run_adaptive if tableau.adaptive else run_fixed

    def take_steps(self, max_steps: int) -> int:
        """Take steps by the compiled loop of the method."""
        rhs = self.rhs
        code: int = self.run(rhs.generated, rhs.generic, rhs.break_points, self.method, self.state, self.stages, self.record,
                             self.workspace, max_steps)
        return code

    def accept_part(self, h: float) -> int:
        """Accept the tried step up to h, and project it onto the constraints."""
        rhs = self.rhs
        code: int = accept_shortened_step(rhs.generated, rhs.generic, rhs.break_points, self.method, self.state, self.stages,
                                          self.record, h, self.workspace)
        return code

    def store_output(self) -> int:
        """Store the next output, evaluated with the signals before the present time."""
        rhs = self.rhs
        code: int = store_output(rhs.generated, rhs.generic, rhs.break_points, self.state, self.stages, self.record,
                                 self.workspace)
        return code

    @property
    def next_step(self) -> float:
        """The next step of an adaptive method [s]."""
        return float(self.state.clock[H_NEXT])

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the segment and the step size control."""
        return super().state_dict() | {"control": self.method.control}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        super().load_state_dict(state)
        self.method.control[:] = state["control"]
