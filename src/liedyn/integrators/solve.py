"""From a problem and output times to a recorded motion: our own methods in one compiled loop, SciPy's through charts."""
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
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import AT_BREAK_POINT, AT_EVENT, FINISHED, RUNNING, SWITCH_CROSSED

SCIPY_METHODS = ("RK45", "DOP853", "Radau", "BDF", "LSODA")
_FIRST_CHUNK = 100         # steps
_WORK_RTOL_FACTOR = 100.0  # rtol of the work that a step exchanges; where joints move freely, too, these choose the step


def solve(problem: InitialValueProblem, times: np.ndarray, options: Options,
          progress: Callable[[float], None] = lambda fraction: None,
          observer: RunObserver | None = None) -> tuple[Record, Statistics]:
    """The motion at `times` (increasing, from 0), and what it took. keeper: see there; rows that it has saved are not in the
    record.

    Raises ComputationError, with the time at which and the reason why the run ended early.
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
    """The motion from `start` at `times` (increasing, from its time), or until an event that schedule.watch looks for.
    controller: see `ZeroOrderHold`, of a problem that is `sampled`.

    Raises ComputationError as `solve`. Not for generalized_alpha and variational, whose steps do not end at events.
    """
    options, observer = replace(options, max_step=min(options.max_step, problem.max_step)), observer or RunObserver()
    if options.method in SCIPY_METHODS or options.method in ROSENBROCK:
        from liedyn.integrators.scipy_solvers import solve_with_scipy
        return solve_with_scipy(problem, start, times, options, progress, controller, observer)
    tableau = METHODS[options.method]()
    run = SegmentState(problem, start, times, controller, max(len(tableau.b), len(tableau.c) - 1), True)
    rhs, torques, record, ws, state, stages = run.rhs, run.torques, run.record, run.workspace, run.state, run.stages
    method, advance = _method(tableau, options, bool(problem.prescribed.any())), run_adaptive if tableau.adaptive else run_fixed
    began, steps, code = time.perf_counter(), _FIRST_CHUNK, RUNNING
    if torques and observer.saved_state is None:
        torques.act(state)
    event_stepper = EventStepper(run, method) if len(run.switches) else None
    own = {"control": method.control}
    if observer.saved_state is not None:
        run.load_state_dict(observer.saved_state, own)
    observer.begin_segment(record, state.count)
    chunk = began
    while code == RUNNING:
        observer.checkpoint(float(state.clock[T_NOW]), lambda: run.state_dict(own))
        code = advance(rhs.generated, rhs.generic, rhs.break_points, method, state, stages, record, ws, steps)
        spent = time.perf_counter() - chunk
        if code != AT_BREAK_POINT or spent >= CHUNK_SECONDS:
            progress(state.clock[T_NOW] / max(times[-1], 1e-300))
            chunk = time.perf_counter()
        if code in (SWITCH_CROSSED, AT_BREAK_POINT) and event_stepper:
            code = event_stepper.handle_return_code(code)
            if code != AT_EVENT:
                continue
        elif code == AT_BREAK_POINT:
            code = RUNNING
            if state.clock[T_NOW] < times[-1]:
                torques.act(state)
            continue
        if code == INVALID_ARGUMENTS:
            rhs.use_generic_kernels()
            state.count[FIRST_RATE_KNOWN], code = 0, RUNNING
        if code == AT_EVENT:
            break
        steps = next_chunk_steps(steps, spent)
    if code == AT_EVENT:
        state.count[NEXT_OUTPUT] = min(state.count[NEXT_OUTPUT], len(record.t) - 1)          # at the last output: this is it
        record.t[state.count[NEXT_OUTPUT]] = state.clock[T_NOW]
        record, state.count[FIRST_RATE_KNOWN] = first_rows(record, int(state.count[NEXT_OUTPUT]) + 1), 0
        code = store_output(rhs.generated, rhs.generic, rhs.break_points, state, stages, record, ws)
    if code != FINISHED:
        raise failure(problem, code, float(state.clock[T_NOW]), ws, rhs.constraints, options)
    statistics = Statistics(int(state.count[STEPS]), int(state.count[REJECTED]), int(state.count[EVALUATIONS]),
                            time.perf_counter() - began,
                            loop_statistics(rhs.constraints), tuple(run.switches.warnings.values()))
    end = SegmentStart(float(state.clock[T_NOW]), ws.q.copy(), ws.v.copy(), float(state.y[-1]), event_stepper.fired
                       if event_stepper else (), float(state.clock[H_NEXT]), pid_integrals(problem, state.y),
                       *run.switches.event_signs(len(problem.schedule.watch)), event_stepper.jump_events if event_stepper else (),
                       run.switches.switch_signs())
    return Segment(record, statistics, end)


def _method(tableau: Tableau, options: Options, prescribed: bool) -> Method:
    step = options.max_step if tableau.adaptive else options.step
    control = np.array([step, options.rtol, options.atol, 1.0 / (tableau.error_order + 1), _WORK_RTOL_FACTOR * options.rtol *
                        prescribed])
    return Method(tableau.A, tableau.b, tableau.c, tableau.error, tableau.dense, control, tableau.interpolation_weights)
