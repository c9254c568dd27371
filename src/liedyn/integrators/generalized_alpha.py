"""The Lie-group generalized-alpha method over a run: fixed steps, for stiff robots and constraints that depend on each other."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.constraints.rank import entry_bounds, equation_weights
from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    NEXT_OUTPUT,
    STEPS,
    T_NOW,
    next_break,
    next_part,
    output_is_due,
    store_evaluation,
)
from liedyn.integrators.segment import solve_in_chunks
from liedyn.joints.joint_model import tree_of
from liedyn.joints.loop_joints import FIRST, HEADER, KIND, loops_of
from liedyn.kernels.constraints.derivatives import (
    BalanceWorkspace,
    Rates,
    balance,
    balance_rates,
    equation_velocities,
    rates_in,
    rates_size,
    rates_workspace,
    rates_workspace_size,
)
from liedyn.kernels.constraints.driver import copy, largest_residual_row
from liedyn.kernels.constraints.equations import FrameWorkspace, residuals
from liedyn.kernels.constraints.pivoting import PivotWorkspace, factor_pivoted, least, solve_pivoted
from liedyn.kernels.constraints.stages import DRIFT, DRIFT_VELOCITY
from liedyn.kernels.manifold import chart_rate, retract
from liedyn.kernels.newton_euler import NewtonEulerWorkspace
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    FINISHED,
    NOT_CONVERGED,
    RUNNING,
    SINGULAR,
    act,
    impose,
    joint_power,
    look_from,
    prescribe,
    prescribe_loop_motion,
)
from liedyn.lie.vectors import load_pose
from liedyn.model.description import ROLLING
from liedyn.numba_tools.decorators import inline_kernel, kernel

# Steps of the Lie-group generalized-alpha method for constrained motion, index 3 (Bruels, Cardona, Arnold 2012): --------

#     x = h v_n + h^2 (1/2 - beta) alpha_n + h^2 beta alpha_{n+1},   q_{n+1} = q_n (+) x
#     v_{n+1} = v_n + h (1 - gamma) alpha_n + h gamma alpha_{n+1}
#     (1 - alpha_m) alpha_{n+1} + alpha_m alpha_n = (1 - alpha_f) dv_{n+1} + alpha_f dv_n
#     R1(q, v, dv, lambda) = tau,   residual(q) = 0              at n + 1
#
# Newton's method for a turn and shift of q_{n+1} and for h^2 lambda (scaled after Bottasso): the matrix has the exact rates of
# R1, that of A^T lambda included (`constrained_derivatives`), and those of pd laws; what other signals read of the state, and the
# curvature of the chart, are left to the iteration. Rows that depend on others are found by full pivoting and get no multiplier
# of their own; lambda is then made least.

# places in AlphaWorkspace.method
ALPHA_M, ALPHA_F, BETA, GAMMA, STEP, CLOSED, BALANCED, LEAST = range(8)
POWER = 1                     # of `State.clock`, which has no next step here: the power that is supplied at the present time
MOST = 20                     # Newton iterations
SLOW = 0.1                   # of the residual that an iteration leaves, beyond which the matrix is renewed
TOO_FAR = 1e3                # of the tolerances: what is left where rounding ends the iteration


class AlphaWorkspace(NamedTuple):
    method: np.ndarray        # (8,) parameters, step, tolerances of residuals [rad | lengths] and of forces, relative to the
                              # largest, and what counts as such at the least: forces times `reach` [N m]
    q: np.ndarray             # (nq,) at the beginning of the step
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) dv
    alpha: np.ndarray         # (nv,)
    x: np.ndarray             # (nv,) the step so far
    rate: np.ndarray          # (nv,) room
    a_next: np.ndarray        # (nv,)
    v_next: np.ndarray        # (nv,)
    multipliers: np.ndarray   # (m,)
    open_: np.ndarray         # (m,) residual(q)
    slip: np.ndarray          # (m,) A v less the drive's velocity
    force: np.ndarray         # (nv,) R1
    opens: np.ndarray         # (m,) R2
    rates: Rates
    drive: np.ndarray         # (24 driven,) motions of driven closures now
    solver: PivotWorkspace
    balance: BalanceWorkspace
    scratch: np.ndarray       # of `rates_workspace`
    weight: np.ndarray        # (m,) residuals times it have no unit
    reach: np.ndarray         # (nv,) forces times it are N m: 1, or a length


# a state on trial: in MotionWork and AlphaWorkspace --------------------------------------------------------------------------
@kernel
def evaluate_trial(tree, loops, plant, schedule, signals, ties, t, with_rates, work, own):
    """R1, R2, residual(q) and A v of the state in work, with what is prescribed and what acts at t; own.rates too if asked for
    (never as a literal, for which it would be compiled anew). False: a signal is not finite."""
    act(plant, tree, schedule, signals, t, work)
    good = work.flag[0] < 0.0
    if ties is not None:
        prescribe_loop_motion(signals, ties, t, work)
        good = work.flag[0] < 0.0
    if good:
        passive = plant.passive[0]
        balance(tree, loops, work.q, work.v, work.a, own.multipliers, work.F, own.drive, passive, own.force, own.opens,
                own.balance)
        equation_velocities(tree, loops, work.v, own.drive, own.slip, own.balance)
        residuals(loops, work.q, own.balance.rows, own.open_)
        if with_rates:
            balance_rates(tree, loops, work.q, work.v, work.a, own.multipliers, work.v[:0], work.F, own.drive, passive, own.rates,
                          rates_workspace(own.scratch, tree.parent.size, work.v.size, loops.record.shape[0]))
    return good


@inline_kernel
def replace_rolling_residual(loops, step, own):
    """What rolls is bound along the plane in its velocity only: there own.open_ is the slip in `step` seconds."""
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == ROLLING:
            R, o = load_pose(own.balance.rows.T, c)[0], loops.record[c, FIRST]
            normal = R[6] * own.slip[o] + R[7] * own.slip[o + 1] + R[8] * own.slip[o + 2]
            for k in range(3):
                own.open_[o + k] += step * (own.slip[o + k] - normal * (R[6] if k == 0 else (R[7] if k == 1 else R[8])))


@inline_kernel
def largest_of(x):
    y = 0.0
    for k in range(x.size):
        y = max(y, abs(x[k])) if x[k] == x[k] else np.inf
    return y


@inline_kernel
def balance_residual(plant, work, own):
    """The largest R1 - tau of coordinates that are free to move, times own.reach."""
    y = 0.0
    for k in range(work.v.size):
        if not plant.prescribed[k]:
            x = own.reach[k] * abs(own.force[k] - work.tau[k])
            y = max(y, x) if x == x else np.inf
    return y


@inline_kernel
def force_size(work, own):
    """How large forces are that balance each other: M a, A^T lambda, tau, times own.reach."""
    nv, m, size = work.v.size, own.multipliers.size, own.method[LEAST]
    for k in range(nv):
        inertial, held = 0.0, 0.0
        for j in range(nv):
            inertial += own.rates.M[k * nv + j] * work.a[j]
        for r in range(m):
            held += own.rates.A[r * nv + k] * own.multipliers[r]
        size = max(size, own.reach[k] * max(abs(inertial), abs(held), abs(work.tau[k])))
    return size


# matrices -----------------------------------------------------------------------------------------------------------------
@inline_kernel
def fill_matrix(schedule, plant, own, by_a, by_v, by_q):
    """own.solver.J from own.rates: by_a M + by_v C + by_q K, -A^T; A, 0; rows and columns of a diagonal matrix where
    prescribed."""
    nv, m, J, R = plant.prescribed.size, own.multipliers.size, own.solver.J, own.rates
    for i in range(nv):
        for j in range(nv):
            J[i, j] = by_a * R.M[i * nv + j] + by_v * R.Dv[i * nv + j] + by_q * R.Dq[i * nv + j]
        if schedule.target[i] >= 0:
            J[i, i] += by_v * schedule.kd[i] + by_q * schedule.kp[i]
        for r in range(m):
            J[i, nv + r], J[nv + r, i] = -R.A[r * nv + i], R.A[r * nv + i]
    for r in range(m):
        for s in range(m):
            J[nv + r, nv + s] = 0.0
    for i in range(nv):
        if plant.prescribed[i]:
            diagonal = J[i, i]
            for j in range(nv + m):
                J[i, j], J[j, i] = 0.0, 0.0
            J[i, i] = diagonal                               # its size tells that of the coordinate (`pivoting.scale_rows`)


@inline_kernel
def accelerations_here(schedule, plant, work, own):
    """work.a where free, and own.multipliers, of constrained motion at a state evaluated with both zero. False: singular."""
    nv, m = work.v.size, own.multipliers.size
    fill_matrix(schedule, plant, own, 1.0, 0.0, 0.0)
    sound = factor_pivoted(nv, own.solver)
    for k in range(nv):
        own.solver.b[k] = 0.0 if plant.prescribed[k] else work.tau[k] - own.force[k]
    for r in range(m):
        own.solver.b[nv + r] = -own.opens[r]
    solve_pivoted(own.solver)
    for k in range(nv):
        work.a[k] += own.solver.b[k]
    for r in range(m):
        own.multipliers[r] = own.solver.b[nv + r]
    least(own.solver, own.multipliers)
    return sound


@inline_kernel
def shift_alpha(work, own, h):
    """own.alpha from own.a now and work.a a step later; of stiff motion, which changes at once, no slope is known."""
    size, change = 0.0, 0.0
    for k in range(own.a.size):
        own.rate[k] = work.a[k] - own.a[k]
        size, change = max(size, abs(own.a[k]), abs(own.v[k]) / h), max(change, abs(own.rate[k]))
    share = own.method[ALPHA_M] - own.method[ALPHA_F] if change <= 0.1 * size else 0.0
    for k in range(own.a.size):
        own.alpha[k] = own.a[k] + share * own.rate[k]


# a step -------------------------------------------------------------------------------------------------------------------
@inline_kernel
def predict(plant, work, own, h):
    """x, v_next, a_next and alpha_{n+1}, which is kept in own.rate, as if dv went on as it is; or as prescribed in work.a."""
    f, b, g, m = own.method[ALPHA_F], own.method[BETA], own.method[GAMMA], own.method[ALPHA_M]
    for k in range(own.x.size):
        a = work.a[k] if plant.prescribed[k] else own.a[k]
        alpha = ((1.0 - f) * a + f * own.a[k] - m * own.alpha[k]) / (1.0 - m)
        own.a_next[k] = a
        own.x[k] = h * own.v[k] + h * h * ((0.5 - b) * own.alpha[k] + b * alpha)
        own.v_next[k] = own.v[k] + h * ((1.0 - g) * own.alpha[k] + g * alpha)


@inline_kernel
def correct(tree, plant, own, h):
    """The solver's change of q_{n+1} and of h^2 lambda into x, v, a, lambda."""
    f, b, g, m = own.method[ALPHA_F], own.method[BETA], own.method[GAMMA], own.method[ALPHA_M]
    nv = own.x.size
    chart_rate(tree, own.x, own.solver.b[:nv], own.rate)
    for k in range(nv):
        if not plant.prescribed[k]:
            own.x[k] += own.rate[k]
            own.v_next[k] += g / (h * b) * own.rate[k]
            own.a_next[k] += (1.0 - m) / (h * h * b * (1.0 - f)) * own.rate[k]
    for r in range(own.multipliers.size):
        own.multipliers[r] += own.solver.b[nv + r] / (h * h)


@inline_kernel
def renew_matrix(schedule, plant, own, h):
    f, b, g, m = own.method[ALPHA_F], own.method[BETA], own.method[GAMMA], own.method[ALPHA_M]
    fill_matrix(schedule, plant, own, (1.0 - m) / (b * (1.0 - f)), h * g / b, h * h)
    return factor_pivoted(plant.prescribed.size, own.solver)


@inline_kernel
def newton_change(plant, work, own, h):
    """Into own.solver.b."""
    nv = work.v.size
    for k in range(nv):
        own.solver.b[k] = 0.0 if plant.prescribed[k] else h * h * (work.tau[k] - own.force[k])
    for r in range(own.multipliers.size):
        own.solver.b[nv + r] = -own.open_[r]
    solve_pivoted(own.solver)


@inline_kernel
def advance_alpha(own):
    """alpha, from dv at both ends of the step; and dv."""
    f, m = own.method[ALPHA_F], own.method[ALPHA_M]
    for k in range(own.alpha.size):
        own.alpha[k] = ((1.0 - f) * own.a_next[k] + f * own.a[k] - m * own.alpha[k]) / (1.0 - m)
        own.a[k] = own.a_next[k]


@inline_kernel
def newton(tree, loops, plant, schedule, signals, ties, t, h, state, work, own):
    """To the end of the step, in work. The matrix is that of the first iteration, and new where it serves badly."""
    before, renew, size = np.inf, True, 1.0
    for step in range(MOST):
        put_on_trial(tree, work, own)
        if not evaluate_trial(tree, loops, plant, schedule, signals, ties, t, renew, work, own):
            return BAD_SIGNAL
        replace_rolling_residual(loops, h * own.method[BETA] / own.method[GAMMA], own)
        state.count[EVALUATIONS] += 1
        if renew:
            size = force_size(work, own)
        now = max(balance_residual(plant, work, own) / (size * own.method[BALANCED]),
                  largest_residual_row(own.weight, own.open_) / own.method[CLOSED])
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


@inline_kernel
def put_on_trial(tree, work, own):
    retract(tree, own.q, own.x, work.q)
    for k in range(own.x.size):
        work.v[k], work.a[k] = own.v_next[k], own.a_next[k]


@inline_kernel
def power_of(tree, plant, driven, work, own):
    """Of motors, wrenches, passive forces but springs, and driven closures, at the state last evaluated."""
    power, nv, V = joint_power(tree, plant, work, 0.0), work.v.size, own.balance.tree.V
    for i in range(work.F.size):
        power += work.F[i] * V[i]
    if driven:
        for r in range(own.multipliers.size):
            for k in range(nv):
                power += own.multipliers[r] * own.rates.A[r * nv + k] * work.v[k]
    return power


@inline_kernel
def finish_state(tree, plant, ties, state, work, own):
    """At an accepted state, evaluated: forces of prescribed coordinates, the power that goes in (kept in state.clock[POWER]), how
    far the constraints are open."""
    for k in range(work.v.size):
        if plant.prescribed[k]:
            work.tau[k] = own.force[k]
    state.clock[POWER] = power_of(tree, plant, own.drive.size > 0, work, own)
    if ties is not None:
        copy(own.multipliers, ties.multipliers)
        ties.figures[DRIFT] = max(ties.figures[DRIFT], largest_of(own.open_))
        ties.figures[DRIFT_VELOCITY] = max(ties.figures[DRIFT_VELOCITY], largest_of(own.slip))


# generalized alpha ------------------------------------------------------------------------------------------------------

_TOLERANCE = 1e-11            # rad, lengths of the loop: of the constraints in a step
_BALANCED = 1e-10             # of the largest force times lengths: of the balance in a step
_NO_FORCE = 1e-12             # of a characteristic torque: less holds nothing, and needs no balance


@kernel
def run_alpha(index, constants, loop_index, loop_constants, plant, schedule, signals, ties, state, record, work, own, most_steps):
    """Advance until the last output is kept or `most_steps` are done. Returns a code of `right_hand_side`."""
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    for _ in range(most_steps):
        code = RUNNING
        if state.count[FIRST_RATE_KNOWN] == 0:
            code = begin_smoothly(tree, loops, plant, schedule, signals, ties, state, work, own)
        if code == RUNNING and output_is_due(state, record):
            keep_state(ties, state, record, work, own)
        if code == RUNNING and state.count[NEXT_OUTPUT] == record.t.size:
            return FINISHED
        if code == RUNNING:
            code = alpha_step(tree, loops, plant, schedule, signals, ties, state, record, work, own)
        if code != RUNNING:
            return code
    return RUNNING


@inline_kernel
def begin_smoothly(tree, loops, plant, schedule, signals, ties, state, work, own):
    """At the start and after a break: dv by the equations of motion, and alpha, which belongs to the time
    t + (alpha_m - alpha_f) h, by its slope (Arnold, Bruels, Cardona 2015: else lambda begins with an error of first order)."""
    nv, t, h = own.v.size, state.clock[T_NOW], own.method[STEP]
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
    state.count[EVALUATIONS], state.count[FIRST_RATE_KNOWN] = state.count[EVALUATIONS] + 4, 1
    return code


@inline_kernel
def look_at_constraints(ties, t, work):
    """At an accepted state: singular configurations, and prescriptions that contradict. Returns a code."""
    if ties is None:
        return RUNNING
    return look_from(ties, t, work)


@inline_kernel
def keep_state(ties, state, record, work, own):
    i = state.count[NEXT_OUTPUT]
    store_evaluation(work, state.y[2 * work.v.size], record, i)
    if ties is not None:
        copy(own.multipliers, record.multipliers[i])
        copy(ties.drive, record.drive[i])
        record.residual[i, 0], record.residual[i, 1] = largest_of(own.open_), largest_of(own.slip)
    state.count[NEXT_OUTPUT] += 1


@inline_kernel
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
    power = state.clock[POWER]
    copy(work.q, state.q)
    for k in range(nv):
        state.y[nv + k] = work.v[k]
        own.a[k] = work.a[k]
    code = look_at_constraints(ties, end, work)
    finish_state(tree, plant, ties, state, work, own)
    state.y[2 * nv] += 0.5 * h * (power + state.clock[POWER])
    state.clock[T_NOW] = end
    state.count[STEPS] += 1
    state.count[FIRST_RATE_KNOWN] = 0 if end == wall and end != record.t[record.t.size - 1] else 1
    return code


# from Python ------------------------------------------------------------------------------------------------------
def solve_generalized_alpha(problem, times: np.ndarray, options, progress, observer):
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

    return solve_in_chunks(advance, problem, times, options, progress, observer, own, ties,
                           " (a mechanism may jam or snap through in a singular configuration)")


def method_of(rho: float, step: float) -> np.ndarray:
    """Parameters of second order for the spectral radius rho (Chung, Hulbert 1993), step and tolerances."""
    if not 0.0 <= rho <= 1.0:
        raise UsageError(f"rho, the spectral radius at infinity, must lie between 0 and 1; found {rho:g}")
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + f - m
    return np.array([m, f, 0.25 * (gamma + 0.5)**2, gamma, step, _TOLERANCE, _BALANCED, 0.0])


def _work(model, ties, method) -> AlphaWorkspace:
    n, nq, nv, m, nc = model.n_bodies, model.nq, model.nv, model.nc, len(model.constraints)
    units = model_scales(model)
    method[LEAST] = _NO_FORCE * units.of("N m")
    if ties is None:
        m = nc = 0
    N = nv + m
    rows = FrameWorkspace(np.zeros(12 * nc), np.zeros(12 * nc), np.zeros(3 * nc))
    tree = NewtonEulerWorkspace(np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv))
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWorkspace(np.zeros((N, N)), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)),
                       entry_bounds(model) if m else np.zeros((0, nv)))
    drive = np.zeros(0) if ties is None else ties.drive
    rates = rates_in.py_func(np.zeros(rates_size(nv, m)), nv, m)
    return AlphaWorkspace(method, np.zeros(nq), *np.zeros((7, nv)), *np.zeros((3, m)), np.zeros(nv), np.zeros(m), rates, drive,
                          solver,
                     BalanceWorkspace(tree, rows, np.zeros(6 * n)), np.zeros(rates_workspace_size(n, nv, nc)),
                     equation_weights(model) if m else np.zeros(0), units.unit_scales(model.v_units))
