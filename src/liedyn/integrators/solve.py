"""Compute the recorded motion of a problem at output times, with the methods of this package or of SciPy."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    RunObserver,
    Segment,
    SegmentStart,
    Statistics,
    first_rows,
    loop_statistics,
    pid_integrals,
)
from liedyn.integrators.rosenbrock import METHODS as ROSENBROCK
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    H_NEXT,
    NEXT_OUTPUT,
    REJECTED,
    STEPS,
    T_NOW,
    Method,
    Record,
)
from liedyn.integrators.runge_kutta import METHODS, Tableau, run_adaptive, run_fixed, store_output
from liedyn.integrators.segment import CHUNK_SECONDS, SegmentState, next_chunk_steps
from liedyn.integrators.zero_crossings import EventStepper
from liedyn.kernels.simulation import rate_evaluation
from liedyn.kernels.simulation import right_hand_side as codes

SCIPY_METHODS = ("RK45", "DOP853", "Radau", "BDF", "LSODA")
_FIRST_CHUNK = 100         # steps
_WORK_RTOL_FACTOR = 100.0  # factor of rtol for the energy exchanged in a step, if coordinates are prescribed


def solve(problem: InitialValueProblem, times: np.ndarray, options: Options,
          progress: Callable[[float], None] = lambda fraction: None,
          observer: RunObserver | None = None) -> tuple[Record, Statistics]:
    """Return the motion at `times` (increasing, from 0), and its statistics.

    observer: see `RunObserver`; rows that it has saved are not in the record.

    Raises ComputationError, with the time and the reason, if the run ends early.
    """
    observer = observer or RunObserver()
    if options.method == "generalized_alpha":
        from liedyn.integrators.generalized_alpha import solve_generalized_alpha
        return solve_generalized_alpha(problem, times, options, progress, observer)
    if options.method == "variational":
        from liedyn.integrators.variational import solve_variational
        return solve_variational(problem, times, options, progress, observer)
    segment = solve_segment(problem, SegmentStart(float(times[0]), problem.q, problem.v), times, options, progress,
                            observer=observer)
    return segment.record, segment.statistics


def solve_segment(problem: InitialValueProblem, start: SegmentStart, times: np.ndarray, options: Options,
                  progress: Callable[[float], None] = lambda fraction: None, controller=None,
                  observer: RunObserver | None = None) -> Segment:
    """Return the motion from `start` at `times` (increasing, from its time), or until an event of schedule.watch.

    controller: see `ZeroOrderHold`, for a problem with `sampled` laws.

    Raises ComputationError as `solve` does. Not for generalized_alpha and variational, whose steps do not end at events.
    """
    options, observer = replace(options, max_step=min(options.max_step, problem.max_step)), observer or RunObserver()
    if options.method in SCIPY_METHODS or options.method in ROSENBROCK:
        from liedyn.integrators.scipy_solvers import solve_with_scipy
        return solve_with_scipy(problem, start, times, options, progress, controller, observer)
    return _RungeKuttaRun(problem, start, times, options, controller, observer).integrate_segment(progress)


class _RungeKuttaRun(SegmentState):
    """A segment by a Runge-Kutta method: a compiled loop takes the steps, and returns at switches, events and stop times."""

    def __init__(self, problem, start, times, options, controller, observer):
        tableau = METHODS[options.method]()
        super().__init__(problem, start, times, controller, max(len(tableau.b), len(tableau.c) - 1), True)
        self.options, self.observer, self.began = options, observer, time.perf_counter()
        self.method = _method(tableau, options, bool(problem.prescribed.any()))
        self.advance = run_adaptive if tableau.adaptive else run_fixed
        if self.torques and observer.saved_state is None:
            self.torques.act(self.state)
        self.event_stepper = EventStepper(self, self.method) if len(self.switches) else None
        if observer.saved_state is not None:
            self.load_state_dict(observer.saved_state)

    def state_dict(self) -> dict:
        return super().state_dict() | {"control": self.method.control}

    def load_state_dict(self, state: dict) -> None:
        super().load_state_dict(state)
        self.method.control[:] = state["control"]

    def integrate_segment(self, progress) -> Segment:
        state = self.state
        self.observer.begin_segment(self.record, state.count)
        code = self._take_steps(progress)
        if code == codes.AT_EVENT:
            code = self._record_event()
        if code != codes.FINISHED:
            raise failure(self.problem, code, float(state.clock[T_NOW]), self.workspace, self.constraints, self.options)
        statistics = Statistics(int(state.count[STEPS]), int(state.count[REJECTED]), int(state.count[EVALUATIONS]),
                                time.perf_counter() - self.began, loop_statistics(self.constraints),
                                tuple(self.switches.warnings))
        end = self.end(float(state.clock[T_NOW]), float(state.y[-1]), pid_integrals(self.problem, state.y),
                       float(state.clock[H_NEXT]))
        return Segment(self.record, statistics, end)

    def _take_steps(self, progress) -> int:
        """Take steps until the last output, an event, or a failure. Return a code."""
        rhs, state, last = self.rhs, self.state, float(self.record.t[-1])
        code, steps, chunk_began = codes.RUNNING, _FIRST_CHUNK, self.began
        while code == codes.RUNNING:
            self.observer.checkpoint(float(state.clock[T_NOW]), self.state_dict)
            code = self.advance(rhs.generated, rhs.generic, rhs.break_points, self.method, state, self.stages, self.record,
                                self.workspace, steps)
            seconds = time.perf_counter() - chunk_began
            if code != codes.AT_BREAK_POINT or seconds >= CHUNK_SECONDS:
                progress(state.clock[T_NOW] / max(last, 1e-300))
                chunk_began = time.perf_counter()
            match code:
                case codes.RUNNING:
                    steps = next_chunk_steps(steps, seconds)
                case codes.SWITCH_CROSSED | codes.AT_BREAK_POINT if self.event_stepper:
                    code = self.event_stepper.handle_return_code(code)
                case codes.AT_BREAK_POINT:
                    code = codes.RUNNING
                    if state.clock[T_NOW] < last:
                        self.torques.act(state)
                case rate_evaluation.INVALID_ARGUMENTS:
                    rhs.use_generic_kernels()
                    state.count[FIRST_RATE_KNOWN], code = 0, codes.RUNNING
        return code

    def _record_event(self) -> int:
        """Store the row of the event that has ended the segment. Return a code."""
        rhs, state = self.rhs, self.state
        self.fired, self.jump_events = self.event_stepper.fired, self.event_stepper.jump_events
        k = min(int(state.count[NEXT_OUTPUT]), len(self.record.t) - 1)             # at the last output: this is it
        self.record.t[k] = state.clock[T_NOW]
        self.record = first_rows(self.record, k + 1)
        state.count[NEXT_OUTPUT], state.count[FIRST_RATE_KNOWN] = k, 0
        return store_output(rhs.generated, rhs.generic, rhs.break_points, state, self.stages, self.record, self.workspace)


def _method(tableau: Tableau, options: Options, prescribed: bool) -> Method:
    step = options.max_step if tableau.adaptive else options.step
    control = np.array([step, options.rtol, options.atol, 1.0 / (tableau.error_order + 1), _WORK_RTOL_FACTOR * options.rtol *
                        prescribed])
    return Method(tableau.A, tableau.b, tableau.c, tableau.error, tableau.dense, control, tableau.interpolation_weights)
