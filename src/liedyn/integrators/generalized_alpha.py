"""The Lie-group generalized-alpha method over a run: fixed steps, for stiff robots and constraints that depend on each other."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.rank import entry_sizes, row_scale
from liedyn.dynamics.scales import scales_of
from liedyn.errors import UsageError
from liedyn.integrators.chunks import solve_in_chunks
from liedyn.integrators.run_state import keep_evaluated, next_break, next_part
from liedyn.jit import kernel, primitive
from liedyn.joints.closures import HEADER, loops_of
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.by_parts import copy
from liedyn.kernels.loops.constrained_derivatives import BalanceWork, rates_in, rates_memory, rates_size
from liedyn.kernels.loops.loop_motion import look_from
from liedyn.kernels.loops.loop_rows import FrameWork
from liedyn.kernels.loops.pivoting import PivotWork
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork
from liedyn.kernels.simulation.generalized_alpha import (
    LEAST,
    STEP,
    AlphaWork,
    accelerations_here,
    advance_alpha,
    evaluate_trial,
    finish_state,
    largest_of,
    newton,
    predict,
    put_on_trial,
    shift_alpha,
)
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, FINISHED, RUNNING, SINGULAR, impose, prescribe

_TOLERANCE = 1e-11            # rad, lengths of the loop: of the constraints in a step
_BALANCED = 1e-10             # of the largest force times lengths: of the balance in a step
_NO_FORCE = 1e-12             # of a characteristic torque: less holds nothing, and needs no balance


@kernel
def run_alpha(index, constants, loop_index, loop_constants, plant, schedule, signals, ties, state, record, work, own, most_steps):
    """Advance until the last output is kept or `most_steps` are done. Returns a code of `right_hand_side`."""
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    for _ in range(most_steps):
        code = RUNNING
        if state.count[5] == 0:
            code = begin_smoothly(tree, loops, plant, schedule, signals, ties, state, work, own)
        if code == RUNNING and state.clock[0] >= record.t[state.count[0]]:
            keep_state(ties, state, record, work, own)
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
    impose(schedule, signals, t, state.q, state.y[nv:2 * nv], work)
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
    code = look_at_constraints(ties, t, work)
    finish_state(tree, plant, ties, state, work, own)
    state.count[4], state.count[5] = state.count[4] + 4, 1
    return code


@primitive
def look_at_constraints(ties, t, work):
    """At an accepted state: singular configurations, and prescriptions that contradict. Returns a code."""
    if ties is None:
        return RUNNING
    return look_from(ties, t, work)


@primitive
def keep_state(ties, state, record, work, own):
    i = state.count[0]
    keep_evaluated(work, state.y[2 * work.v.size], record, i)
    if ties is not None:
        copy(own.multipliers, record.multipliers[i])
        copy(ties.drive, record.drive[i])
        record.residual[i, 0], record.residual[i, 1] = largest_of(own.open_), largest_of(own.slip)
    state.count[0] += 1


@primitive
def alpha_step(tree, loops, plant, schedule, signals, ties, state, record, work, own):
    nv = own.v.size
    h, end, wall, before, _ = next_part(schedule, state, record, own.method[STEP])
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
    code = look_at_constraints(ties, end, work)
    finish_state(tree, plant, ties, state, work, own)
    state.y[2 * nv] += 0.5 * h * (power + state.clock[1])
    state.clock[0] = end
    state.count[2] += 1
    state.count[5] = 0 if end == wall and end != record.t[record.t.size - 1] else 1
    return code


# from Python ------------------------------------------------------------------------------------------------------
def solve_generalized_alpha(problem, times: np.ndarray, options, progress, keeper):
    """As `solve`: the motion at `times` (increasing, from 0) by steps of options.step, and what it took.

    options.rho is the spectral radius at infinite frequency, from 0 (damps the most) to 1 (not at all). Position, velocity and
    multipliers are of second order; constraints are kept in position to rounding, in velocity to second order.

    Raises ComputationError where a step finds no solution, or as `solve`.

    Notes
    -----
    O. Bruels, A. Cardona, M. Arnold, Lie group generalized-alpha time integration of constrained flexible multibody systems,
    Mechanism and Machine Theory 48, 2012.
    """
    model, ties, plant = problem.model, problem.loop_plant(), problem.plant()
    own = _work(model, ties, method_of(options.rho, options.step))
    loops = (np.zeros(HEADER, dtype=np.int64), np.zeros(0)) if ties is None else model._arrays[2:4]

    def advance(state, record, work, steps):
        return run_alpha(*model._arrays[:2], *loops, plant, problem.schedule, problem.signals, ties, state, record,
                         work, own, steps)

    return solve_in_chunks(advance, problem, times, options, progress, keeper, own, ties,
                           " (a mechanism may jam or snap through in a singular configuration)")


def method_of(rho: float, step: float) -> np.ndarray:
    """Parameters of second order for the spectral radius rho (Chung, Hulbert 1993), step and tolerances."""
    if not 0.0 <= rho <= 1.0:
        raise UsageError(f"rho, the spectral radius at infinity, must lie between 0 and 1; found {rho:g}")
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + f - m
    return np.array([m, f, 0.25 * (gamma + 0.5)**2, gamma, step, _TOLERANCE, _BALANCED, 0.0])


def _work(model, ties, method) -> AlphaWork:
    n, nq, nv, m, nc = model.n_bodies, model.nq, model.nv, model.nc, len(model.constraints)
    units = scales_of(model)
    method[LEAST] = _NO_FORCE * units.of("N m")
    if ties is None:
        m = nc = 0
    N = nv + m
    rows = FrameWork(np.zeros(12 * nc), np.zeros(12 * nc), np.zeros(3 * nc))
    tree = NewtonEulerWork(np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv))
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWork(np.zeros((N, N)), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)),
                       entry_sizes(model) if m else np.zeros((0, nv)))
    drive = np.zeros(0) if ties is None else ties.drive
    rates = rates_in.py_func(np.zeros(rates_size(nv, m)), nv, m)
    return AlphaWork(method, np.zeros(nq), *np.zeros((7, nv)), *np.zeros((3, m)), np.zeros(nv), np.zeros(m), rates, drive, solver,
                     BalanceWork(tree, rows, np.zeros(6 * n)), np.zeros(rates_memory(n, nv, nc)),
                     row_scale(model) if m else np.zeros(0), units.of_all(model.v_units))
