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
    integral_of,
    kept_rows,
    loop_figures,
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
from liedyn.integrators.segment import SECONDS, SegmentState, next_count
from liedyn.integrators.zero_crossings import EventStepper
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, FINISHED, PASSED, RUNNING, WALL

SCIPY_METHODS = ("RK45", "DOP853", "Radau", "BDF", "LSODA")
_FIRST_CHUNK = 100        # steps
_WORK = 100.0             # rtol of the work that a step exchanges; where joints move freely, too, these choose the step


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
    stretch = solve_segment(problem, SegmentStart(float(times[0]), problem.q, problem.v), times, options, progress,
                            observer=observer)
    return stretch.record, stretch.statistics


def solve_segment(problem: InitialValueProblem, start: SegmentStart, times: np.ndarray, options: Options,
                  progress: Callable[[float], None] = lambda fraction: None, controller=None,
                  observer: RunObserver | None = None) -> Segment:
    """The motion from `start` at `times` (increasing, from its time), or until an event that schedule.watch looks for.
    controller: see `HeldTorques`, of a problem that is `sampled`.

    Raises ComputationError as `solve`. Not for generalized_alpha and variational, whose steps do not end at events.
    """
    options, observer = replace(options, max_step=min(options.max_step, problem.max_step)), observer or RunObserver()
    if options.method in SCIPY_METHODS or options.method in ROSENBROCK:
        from liedyn.integrators.scipy_solvers import solve_by_scipy
        return solve_by_scipy(problem, start, times, options, progress, controller, observer)
    tableau = METHODS[options.method]()
    run = SegmentState(problem, start, times, controller, max(len(tableau.b), len(tableau.c) - 1), True)
    sides, torques, record, work, state, stages = run.sides, run.torques, run.record, run.work, run.state, run.stages
    method, advance = _method(tableau, options, bool(problem.prescribed.any())), run_adaptive if tableau.adaptive else run_fixed
    began, steps, code = time.perf_counter(), _FIRST_CHUNK, RUNNING
    if torques and observer.saved is None:
        torques.act(state)
    cuts = EventStepper(run, method) if len(run.switches) else None
    own = {"control": method.control}
    if observer.saved is not None:
        run.put_back(observer.saved, own)
    observer.follow(record, state.count)
    chunk = began
    while code == RUNNING:
        observer.between(float(state.clock[T_NOW]), lambda: run.snapshot(own))
        code = advance(sides.line, sides.loops, sides.walls, method, state, stages, record, work, steps)
        spent = time.perf_counter() - chunk
        if code != WALL or spent >= SECONDS:
            progress(state.clock[T_NOW] / max(times[-1], 1e-300))
            chunk = time.perf_counter()
        if code in (PASSED, WALL) and cuts:
            code = cuts.go_on(code)
            if code != AT_EVENT:
                continue
        elif code == WALL:
            code = RUNNING
            if state.clock[T_NOW] < times[-1]:
                torques.act(state)
            continue
        if code == INVALID_ARGUMENTS:
            sides.use_generic_kernels()
            state.count[FIRST_RATE_KNOWN], code = 0, RUNNING
        if code == AT_EVENT:
            break
        steps = next_count(steps, spent)
    if code == AT_EVENT:
        state.count[NEXT_OUTPUT] = min(state.count[NEXT_OUTPUT], len(record.t) - 1)          # at the last output: this is it
        record.t[state.count[NEXT_OUTPUT]] = state.clock[T_NOW]
        record, state.count[FIRST_RATE_KNOWN] = kept_rows(record, int(state.count[NEXT_OUTPUT]) + 1), 0
        code = store_output(sides.line, sides.loops, sides.walls, state, stages, record, work)
    if code != FINISHED:
        raise failure(problem, code, float(state.clock[T_NOW]), work, sides.ties, options)
    statistics = Statistics(int(state.count[STEPS]), int(state.count[REJECTED]), int(state.count[EVALUATIONS]),
                            time.perf_counter() - began,
                            loop_figures(sides.ties), tuple(run.switches.notes.values()))
    end = SegmentStart(float(state.clock[T_NOW]), work.q.copy(), work.v.copy(), float(state.y[-1]), cuts.fired if cuts else (),
                float(state.clock[H_NEXT]), integral_of(problem, state.y), *run.switches.event_signs(len(problem.schedule.watch)),
                cuts.jumped if cuts else (), run.switches.sides())
    return Segment(record, statistics, end)


def _method(tableau: Tableau, options: Options, prescribed: bool) -> Method:
    step = options.max_step if tableau.adaptive else options.step
    control = np.array([step, options.rtol, options.atol, 1.0 / (tableau.error_order + 1), _WORK * options.rtol * prescribed])
    return Method(tableau.A, tableau.b, tableau.c, tableau.error, tableau.dense, control, tableau.between)
