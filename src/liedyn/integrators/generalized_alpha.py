"""The Lie-group generalized-alpha method over a run: fixed steps, for stiff robots and constraints that depend on each other."""
from __future__ import annotations

import time

import numpy as np

from liedyn.errors import ComputationError, UsageError
from liedyn.integrators.chunks import run_in_chunks
from liedyn.integrators.problem import Keeper, Statistics, begin, failure, loop_figures
from liedyn.integrators.run_state import copy, next_break, next_goal
from liedyn.integrators.saved_state import put_back, put_back_constraints
from liedyn.jit import kernel, primitive
from liedyn.joints.closures import HEADER, loops_of
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.constrained_derivatives import BalanceWork, rates_in, rates_memory, rates_size
from liedyn.kernels.loops.desk import DRIFT, DRIFT_VELOCITY
from liedyn.kernels.loops.loop_rows import FrameWork
from liedyn.kernels.loops.pivoting import PivotWork, least
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork
from liedyn.kernels.simulation.generalized_alpha import (
    ALPHA_F,
    ALPHA_M,
    BALANCED,
    BETA,
    CLOSED,
    GAMMA,
    MOST,
    SLOW,
    STEP,
    TOO_FAR,
    AlphaWork,
    accelerations_here,
    advance_alpha,
    correct,
    evaluate_trial,
    force_size,
    imbalance,
    largest_of,
    newton_change,
    power_of,
    predict,
    put_on_trial,
    renew_matrix,
    roll_on,
)
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, FINISHED, RUNNING, SINGULAR, impose, prescribe

NOT_CONVERGED = 20            # beside the codes of `right_hand_side`
_TOLERANCE = 1e-11            # rad, m: of the constraints in a step
_BALANCED = 1e-10             # of the largest force: of the balance in a step
_FIRST_CHUNK = 20


@kernel
def run_alpha(index, constants, loop_index, loop_constants, plant, schedule, signals, ties, state, record, work, own, most_steps):
    """Advance until the last output is kept or `most_steps` are done. Returns a code of `right_hand_side`, or NOT_CONVERGED."""
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    for _ in range(most_steps):
        code = RUNNING
        if state.count[5] == 0:
            code = begin_smoothly(tree, loops, plant, schedule, signals, ties, state, work, own)
        if code == RUNNING and state.clock[0] >= record.t[state.count[0]]:
            keep_state(tree, loops, ties, state, record, work, own)
        if code == RUNNING and state.count[0] == record.t.size:
            return FINISHED
        if code == RUNNING:
            code = alpha_step(tree, loops, plant, schedule, signals, ties, state, record, work, own)
        if code != RUNNING:
            return code
    return RUNNING


@primitive
def begin_smoothly(tree, loops, plant, schedule, signals, ties, state, work, own):
    """At the start and after a break: dv by the equations of motion, and alpha, which belongs to the time
    t + (alpha_m - alpha_f) h, by its slope (Arnold, Bruels, Cardona 2015: else lambda begins with an error of first order)."""
    nv, t, h = own.v.size, state.clock[0], own.method[STEP]
    impose(tree, schedule, signals, t, state.q, state.y[nv:2 * nv], work)
    copy(state.q, own.q)
    copy(state.y[nv:2 * nv], own.v)
    later = min(t + h, next_break(schedule, state, np.inf)[1])
    for phase in range(4):                              # here, a step further on, here again, and with the accelerations found
        for k in range(nv):
            own.x[k] = h * own.v[k] + 0.5 * h * h * own.a[k] if phase == 1 else 0.0
            own.v_next[k] = own.v[k] + (h * own.a[k] if phase == 1 else 0.0)
            own.a_next[k] = own.a[k] if phase == 3 else 0.0
        for r in range(own.multipliers.size):
            own.multipliers[r] = own.multipliers[r] if phase == 3 else 0.0
        put_on_trial(tree, work, own)
        now = later if phase == 1 else t
        if not evaluate_trial(tree, loops, plant, schedule, signals, ties, now, phase < 3, work, own):
            return BAD_SIGNAL
        if phase < 3 and not accelerations_here(schedule, plant, work, own):
            return SINGULAR
        if phase == 0:
            copy(work.a, own.a)
        elif phase == 1:
            shift_alpha(work, own, h)
    finish_state(tree, plant, ties, state, work, own)
    state.count[4], state.count[5] = state.count[4] + 4, 1
    return RUNNING


@primitive
def shift_alpha(work, own, h):
    """own.alpha from own.a now and work.a a step later; of stiff motion, which changes at once, no slope is known."""
    size, change = 0.0, 0.0
    for k in range(own.a.size):
        own.rate[k] = work.a[k] - own.a[k]
        size, change = max(size, abs(own.a[k]), abs(own.v[k]) / h), max(change, abs(own.rate[k]))
    share = own.method[ALPHA_M] - own.method[ALPHA_F] if change <= 0.1 * size else 0.0
    for k in range(own.a.size):
        own.alpha[k] = own.a[k] + share * own.rate[k]


@primitive
def finish_state(tree, plant, ties, state, work, own):
    """At an accepted state, evaluated: forces of prescribed coordinates, the power that goes in (kept in state.clock[1]), how
    far the constraints are open."""
    for k in range(work.v.size):
        if plant.prescribed[k]:
            work.tau[k] = own.force[k]
    state.clock[1] = power_of(tree, plant, own.drive.size > 0, work, own)
    if ties is not None:
        copy(own.multipliers, ties.multipliers)
        ties.figures[DRIFT] = max(ties.figures[DRIFT], largest_of(own.open_))
        ties.figures[DRIFT_VELOCITY] = max(ties.figures[DRIFT_VELOCITY], largest_of(own.slip))


@primitive
def keep_state(tree, loops, ties, state, record, work, own):
    i = state.count[0]
    copy(work.q, record.q[i])
    copy(work.v, record.v[i])
    copy(work.a, record.a[i])
    copy(work.tau, record.tau[i])
    copy(work.wrench, record.wrench[i])
    record.work[i] = state.y[2 * work.v.size]
    if ties is not None:
        copy(own.multipliers, record.multipliers[i])
        copy(ties.drive, record.drive[i])
        record.residual[i, 0], record.residual[i, 1] = largest_of(own.open_), largest_of(own.slip)
    state.count[0] += 1


@primitive
def alpha_step(tree, loops, plant, schedule, signals, ties, state, record, work, own):
    """A step of equal parts of the way to the next output or break, no longer than the one asked for."""
    t, nv, last = state.clock[0], own.v.size, record.t[record.t.size - 1]
    wall, before = next_break(schedule, state, last)
    goal = next_goal(wall, record, state)
    parts = max(1.0, np.ceil((goal - t) / own.method[STEP] * (1.0 - 1e-9)))
    h = (goal - t) / parts
    end = goal if parts == 1.0 else t + h
    seen = before if end == wall else end
    copy(state.q, work.q)
    for k in range(nv):
        own.v[k] = work.v[k] = state.y[nv + k]
    copy(state.q, own.q)
    work.flag[0] = -1.0
    prescribe(tree, schedule, signals, seen, work)
    if work.flag[0] >= 0.0:
        return BAD_SIGNAL
    predict(plant, work, own, h)
    code = newton(tree, loops, plant, schedule, signals, ties, seen, h, state, work, own)
    if code != RUNNING:
        return code
    advance_alpha(own)
    power = state.clock[1]
    copy(work.q, state.q)
    for k in range(nv):
        state.y[nv + k] = work.v[k]
        own.a[k] = work.a[k]
    finish_state(tree, plant, ties, state, work, own)
    state.y[2 * nv] += 0.5 * h * (power + state.clock[1])
    state.clock[0] = end
    state.count[2] += 1
    state.count[5] = 0 if end == wall and end != last else 1
    return RUNNING


@primitive
def newton(tree, loops, plant, schedule, signals, ties, t, h, state, work, own):
    """To the end of the step, in work. The matrix is that of the first iteration, and new where it serves badly."""
    before, renew, size = np.inf, True, 1.0
    for step in range(MOST):
        put_on_trial(tree, work, own)
        if not evaluate_trial(tree, loops, plant, schedule, signals, ties, t, renew, work, own):
            return BAD_SIGNAL
        roll_on(loops, h * own.method[BETA] / own.method[GAMMA], own)
        state.count[4] += 1
        if renew:
            size = max(force_size(work, own), 1e-12)
        now = max(imbalance(plant, work, own) / (size * own.method[BALANCED]), largest_of(own.open_) / own.method[CLOSED])
        if step > 0 and (now <= 1.0 or (now <= TOO_FAR and now > 0.5 * before)):
            least(own.solver, own.multipliers)
            return RUNNING
        if not now < 1e300:
            return NOT_CONVERGED
        if renew and not renew_matrix(schedule, plant, own, h):
            return SINGULAR
        newton_change(plant, work, own, h)
        correct(tree, plant, own, h)
        renew, before = step > 0 and not now < SLOW * before, now
    return NOT_CONVERGED


# from Python ------------------------------------------------------------------------------------------------------
def solve_generalized_alpha(problem, times: np.ndarray, options, progress=lambda fraction: None, keeper=None):
    """As `solve`: the motion at `times` (increasing, from 0) by steps of options.step, and what it took.

    options.rho is the spectral radius at infinite frequency, from 0 (damps the most) to 1 (not at all). Position, velocity and
    multipliers are of second order; constraints are kept in position to rounding, in velocity to second order.

    Raises ComputationError where a step finds no solution, or as `solve`.

    Notes
    -----
    O. Bruels, A. Cardona, M. Arnold, Lie group generalized-alpha time integration of constrained flexible multibody systems,
    Mechanism and Machine Theory 48, 2012.
    """
    model, ties, began = problem.model, problem.loop_plant(), time.perf_counter()
    record, work, plant, state = problem.record(times), problem.work(), problem.plant(), begin(problem)
    own = _work(model, ties, method_of(getattr(options, "rho", 0.9), options.step))
    loops = (np.zeros(HEADER, dtype=np.int64), np.zeros(0)) if ties is None else (model.loop_index, model.loop_constants)
    keeper = keeper or Keeper()
    carried = {"state": state, "work": work, "own": own}
    if keeper.saved is not None:
        put_back(keeper.saved, **carried)
        put_back_constraints(keeper.saved, ties)
    keeper.follow(record, state.count)

    def advance(steps):
        return run_alpha(model.index, model.constants, *loops, plant, problem.schedule, problem.signals, ties, state, record,
                         work, own, steps)

    code = run_in_chunks(advance, _FIRST_CHUNK, state, times[-1], progress, keeper, carried | {"ties": ties})
    t, count = float(state.clock[0]), state.count
    if code == NOT_CONVERGED:
        raise ComputationError(f"generalized_alpha did not converge in the step from t = {t:.6g} s: try a smaller step; a "
                               "mechanism may jam or snap through in a singular configuration")
    if code != FINISHED:
        raise failure(problem, code, t, work, ties, options)
    uncut = ("generalized_alpha does not locate switches of step, sign, abs, floor, min or max of the state: it is of "
             "first order there",) if problem.signals.held.size else ()
    return record, Statistics(int(count[2]), 0, int(count[4]), time.perf_counter() - began, loop_figures(ties), uncut)


def method_of(rho: float, step: float) -> np.ndarray:
    """Parameters of second order for the spectral radius rho (Chung, Hulbert 1993), step and tolerances."""
    if not 0.0 <= rho <= 1.0:
        raise UsageError(f"rho, the spectral radius at infinity, must lie between 0 and 1; found {rho:g}")
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + f - m
    return np.array([m, f, 0.25 * (gamma + 0.5)**2, gamma, step, _TOLERANCE, _BALANCED])


def _work(model, ties, method) -> AlphaWork:
    n, nq, nv, m, nc = model.n_bodies, model.nq, model.nv, model.nc, len(model.constraints)
    if ties is None:
        m = nc = 0
    N = nv + m
    rows = FrameWork(np.zeros(12 * nc), np.zeros(12 * nc), np.zeros(3 * nc))
    tree = NewtonEulerWork(np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv))
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWork(np.zeros((N, N)), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)))
    drive = np.zeros(0) if ties is None else ties.drive
    rates = rates_in.py_func(np.zeros(rates_size(nv, m)), nv, m)
    return AlphaWork(method, np.zeros(nq), *np.zeros((7, nv)), *np.zeros((3, m)), np.zeros(nv), np.zeros(m), rates, drive, solver,
                     BalanceWork(tree, rows, np.zeros(6 * n)), np.zeros(rates_memory(n, nv, nc)))
