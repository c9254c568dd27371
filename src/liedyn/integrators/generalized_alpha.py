"""Lie-group generalized-alpha method: fixed steps, for stiff robots and for dependent constraints."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.dynamics.constraints.rank import entry_bounds, equation_weights
from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError
from liedyn.integrators.problem import InitialValueProblem, Options, SegmentStart
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    NEXT_OUTPUT,
    STEPS,
    T_NOW,
    next_break,
    next_fixed_step,
    output_is_due,
    store_evaluation,
)
from liedyn.integrators.segment import ImplicitStepper, SampledTorques
from liedyn.joints.joint_model import tree_views
from liedyn.joints.loop_joints import FIRST, HEADER, KIND, constraint_views
from liedyn.kernels.constraints.derivatives import (
    BalanceDerivatives,
    BalanceWorkspace,
    balance_derivatives,
    balance_derivatives_size,
    balance_derivatives_views,
    balance_derivatives_workspace,
    balance_derivatives_workspace_size,
    balance_residuals,
    equation_velocities,
)
from liedyn.kernels.constraints.driver import copy_array, max_weighted_abs
from liedyn.kernels.constraints.equations import FrameWorkspace, residuals
from liedyn.kernels.constraints.pivoting import (
    PivotWorkspace,
    factor_pivoted,
    isolate_prescribed,
    remove_null_multipliers,
    solve_pivoted,
)
from liedyn.kernels.constraints.stages import DRIFT, DRIFT_VELOCITY
from liedyn.kernels.manifold import chart_rate, retract
from liedyn.kernels.newton_euler import NewtonEulerWorkspace
from liedyn.kernels.simulation.joint_laws import remove_friction
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    FINISHED,
    NOT_CONVERGED,
    RUNNING,
    SINGULAR,
    ConstrainedSystem,
    SystemModel,
    apply_inputs,
    joint_power,
    prescribe,
    prescribe_loop_motion,
    set_prescribed_state,
    solve_and_check_state,
    without_laws,
)
from liedyn.kernels.simulation.signals import InputSchedule, Signals
from liedyn.lie.vectors import load_pose
from liedyn.model.description import ROLLING
from liedyn.model.model import Model
from liedyn.numba_tools.decorators import (
    address_for,
    array_address,
    call_with_values,
    inline_kernel,
    kernel,
    packed_values,
    value_at,
)

# Steps of the Lie-group generalized-alpha method for constrained motion, index 3 (Bruels, Cardona, Arnold 2012): --------

#     x = h v_n + h^2 (1/2 - beta) alpha_n + h^2 beta alpha_{n+1},   q_{n+1} = q_n (+) x
#     v_{n+1} = v_n + h (1 - gamma) alpha_n + h gamma alpha_{n+1}
#     (1 - alpha_m) alpha_{n+1} + alpha_m alpha_n = (1 - alpha_f) dv_{n+1} + alpha_f dv_n
#     R1(q, v, dv, lambda) = tau,   residual(q) = 0              at n + 1
#
# Newton's method for an increment of q_{n+1} in the tangent space and for h^2 lambda (scaled after Bottasso). Its matrix has the
# exact derivatives of R1, including A^T lambda (`constrained_derivatives`), and of pd laws. It omits other signals that depend on
# the state, and the curvature of the chart. Full pivoting finds dependent equations, which get no multiplier; lambda is then
# replaced by the solution of minimum norm.

# places in AlphaWorkspace.method
ALPHA_M, ALPHA_F, BETA, GAMMA, STEP, CLOSURE_TOLERANCE, BALANCE_TOLERANCE, MIN_FORCE = range(8)
POWER = 1                     # index in `State.clock`, instead of the next step: the power supplied at the present time
MAX_ITERATIONS = 20           # Newton iterations
SLOW_CONVERGENCE = 0.1        # reduction factor of the residual in an iteration above which the matrix is updated
MAX_ROUNDING_FACTOR = 1e3     # of the tolerances: accepted residual if rounding ends the iteration


class AlphaWorkspace(NamedTuple):
    """Parameters, state and workspace of the method."""

    method: np.ndarray        # (8,) parameters, step, tolerances of residuals [rad | lengths] and of forces, relative to the
                              # maximum, and lower bound of this scale: forces times `lever_arm` [N m]
    q: np.ndarray             # (nq,) at the beginning of the step
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) dv
    alpha: np.ndarray         # (nv,)
    x: np.ndarray             # (nv,) the step so far
    rate: np.ndarray          # (nv,) workspace
    a_next: np.ndarray        # (nv,)
    v_next: np.ndarray        # (nv,)
    multipliers: np.ndarray   # (m,)
    position_residual: np.ndarray         # (m,) residual(q)
    velocity_residual: np.ndarray          # (m,) A v less the drive's velocity
    force: np.ndarray         # (nv,) R1
    acceleration_residual: np.ndarray         # (m,) R2
    rates: BalanceDerivatives
    constraint_motion: np.ndarray         # (24 driven,) motions of driven closures now
    solver: PivotWorkspace
    balance: BalanceWorkspace
    rates_buffer: np.ndarray       # of `balance_derivatives_workspace`
    weight: np.ndarray        # (m,) residuals times it have no unit
    lever_arm: np.ndarray         # (nv,) forces times it are N m: 1, or a length


# trial state: in MotionWorkspace and AlphaWorkspace -----------------------------------------------------------------------
class TrialArguments(NamedTuple):
    """Arguments of `evaluate_trial` that do not change in a segment."""

    index: np.ndarray      # type: ignore[assignment]  # a field, not the method of tuples
    constants: np.ndarray
    loop_index: np.ndarray
    loop_constants: np.ndarray
    system: SystemModel
    schedule: InputSchedule
    signals: Signals
    constraints: ConstrainedSystem | None


class TrialCall(NamedTuple):
    """Address of `evaluate_trial`, and its packed arguments: compiled with its callers, it would be compiled for each of them."""

    address: int
    arguments: np.ndarray


@inline_kernel
def call_evaluate_trial(trial, t, with_jacobians, ws, method_ws):
    """Call `evaluate_trial`."""
    return call_with_values(trial.address, (array_address(trial.arguments), t, with_jacobians, ws, method_ws)) != 0


@kernel
def evaluate_trial(arguments, t, with_jacobians, ws, method_ws):
    """Evaluate inputs at t and write R1, R2, residual(q) and A v of the state in ws. Return 0 if a signal is not finite, else 1.

    arguments       pointer to `TrialArguments`
    with_jacobians  whether to write method_ws.rates
    """
    index, constants, loop_index, loop_constants, system, schedule, signals, constraints = value_at(arguments)
    tree, loops = tree_views(index, constants), constraint_views(loop_index, loop_constants)
    return int64(write_residuals(tree, loops, system, schedule, signals, constraints, t, with_jacobians, ws, method_ws))


@inline_kernel
def write_residuals(tree, loops, system, schedule, signals, constraints, t, with_jacobians, ws, method_ws):
    """Do the same as `evaluate_trial`."""
    apply_inputs(system, tree, schedule, signals, t, ws)
    if constraints is not None:
        prescribe_loop_motion(signals, constraints, t, ws)
    if ws.flag[0] >= 0.0:
        return False
    passive = system.passive[0]
    balance_residuals(tree, loops, ws.q, ws.v, ws.a, method_ws.multipliers, ws.F, method_ws.constraint_motion, passive,
                      method_ws.force, method_ws.acceleration_residual, method_ws.balance)
    equation_velocities(tree, loops, ws.v, method_ws.constraint_motion, method_ws.velocity_residual, method_ws.balance)
    residuals(loops, ws.q, method_ws.balance.rows, method_ws.position_residual)
    if with_jacobians:
        balance_derivatives_ws = balance_derivatives_workspace(method_ws.rates_buffer, tree.parent.size, ws.v.size,
                                                               method_ws.balance.rows.g.size // 3)
        balance_derivatives(tree, loops, ws.q, ws.v, ws.a, method_ws.multipliers, ws.v[:0], ws.F, method_ws.constraint_motion,
                            passive, method_ws.rates, balance_derivatives_ws)
    return True


@inline_kernel
def replace_rolling_residual(loops, step, method_ws):
    """Add the tangential slip in `step` seconds to the position residuals of rolling constraints.

    Rolling constrains only the velocity along the plane.
    """
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == ROLLING:
            R, o, slip = load_pose(method_ws.balance.rows.T, c)[0], loops.record[c, FIRST], method_ws.velocity_residual
            normal = R[6] * slip[o] + R[7] * slip[o + 1] + R[8] * slip[o + 2]
            for k in range(3):
                along = normal * (R[6] if k == 0 else (R[7] if k == 1 else R[8]))
                method_ws.position_residual[o + k] += step * (slip[o + k] - along)


@inline_kernel
def max_abs(x):
    """Return the maximum absolute value, 0 for an empty array, inf if a value is NaN."""
    y = 0.0
    for k in range(x.size):
        y = max(y, abs(x[k])) if x[k] == x[k] else np.inf
    return y


@inline_kernel
def balance_residual(system, ws, method_ws):
    """Return the maximum of R1 - tau times method_ws.lever_arm over coordinates that are free to move."""
    y = 0.0
    for k in range(ws.v.size):
        if not system.prescribed[k]:
            x = method_ws.lever_arm[k] * abs(method_ws.force[k] - ws.tau[k])
            y = max(y, x) if x == x else np.inf
    return y


@inline_kernel
def force_size(ws, method_ws):
    """Return the magnitude of the forces M a, A^T lambda and tau, times method_ws.lever_arm."""
    nv, m, size = ws.v.size, method_ws.multipliers.size, method_ws.method[MIN_FORCE]
    for k in range(nv):
        inertial, constraint_force = 0.0, 0.0
        for j in range(nv):
            inertial += method_ws.rates.M[k * nv + j] * ws.a[j]
        for r in range(m):
            constraint_force += method_ws.rates.A[r * nv + k] * method_ws.multipliers[r]
        size = max(size, method_ws.lever_arm[k] * max(abs(inertial), abs(constraint_force), abs(ws.tau[k])))
    return size


# matrices -----------------------------------------------------------------------------------------------------------------
@inline_kernel
def fill_matrix(schedule, system, method_ws, factor_a, factor_v, factor_q):
    """Write the matrix [[factor_a M + factor_v C + factor_q K, -A^T], [A, 0]] to method_ws.solver.J, from method_ws.rates.

    Rows and columns of prescribed coordinates are those of a diagonal matrix.
    """
    nv, m, J, R = system.prescribed.size, method_ws.multipliers.size, method_ws.solver.J, method_ws.rates
    for i in range(nv):
        for j in range(nv):
            J[i, j] = factor_a * R.M[i * nv + j] + factor_v * R.Dv[i * nv + j] + factor_q * R.Dq[i * nv + j]
        if schedule.target[i] >= 0:
            J[i, i] += factor_v * schedule.kd[i] + factor_q * schedule.kp[i]
        for r in range(m):
            J[i, nv + r], J[nv + r, i] = -R.A[r * nv + i], R.A[r * nv + i]
    for r in range(m):
        for s in range(m):
            J[nv + r, nv + s] = 0.0
    isolate_prescribed(system.prescribed, J)


@inline_kernel
def solve_accelerations(schedule, system, ws, method_ws):
    """Add the accelerations of constrained motion to ws.a, and write method_ws.multipliers. Return False if singular.

    The state must have been evaluated with zero multipliers and zero accelerations of the free coordinates.
    """
    nv, m = ws.v.size, method_ws.multipliers.size
    fill_matrix(schedule, system, method_ws, 1.0, 0.0, 0.0)
    sound = factor_pivoted(nv, method_ws.solver)
    for k in range(nv):
        method_ws.solver.b[k] = 0.0 if system.prescribed[k] else ws.tau[k] - method_ws.force[k]
    for r in range(m):
        method_ws.solver.b[nv + r] = -method_ws.acceleration_residual[r]
    solve_pivoted(method_ws.solver)
    for k in range(nv):
        ws.a[k] += method_ws.solver.b[k]
    for r in range(m):
        method_ws.multipliers[r] = method_ws.solver.b[nv + r]
    remove_null_multipliers(method_ws.solver, method_ws.multipliers)
    return sound


@inline_kernel
def shift_alpha(ws, method_ws, h):
    """Write alpha from dv at present (method_ws.a) and one step later (ws.a).

    For stiff motion, dv changes too fast for a slope.
    """
    size, change = 0.0, 0.0
    for k in range(method_ws.a.size):
        method_ws.rate[k] = ws.a[k] - method_ws.a[k]
        size, change = max(size, abs(method_ws.a[k]), abs(method_ws.v[k]) / h), max(change, abs(method_ws.rate[k]))
    factor = method_ws.method[ALPHA_M] - method_ws.method[ALPHA_F] if change <= 0.1 * size else 0.0
    for k in range(method_ws.a.size):
        method_ws.alpha[k] = method_ws.a[k] + factor * method_ws.rate[k]


# a step -------------------------------------------------------------------------------------------------------------------
@inline_kernel
def predict(system, ws, method_ws, h):
    """Write x, v_next, a_next and (in method_ws.rate) alpha_{n+1} for constant dv, or for the prescribed accelerations ws.a."""
    f, b, g, m = method_ws.method[ALPHA_F], method_ws.method[BETA], method_ws.method[GAMMA], method_ws.method[ALPHA_M]
    for k in range(method_ws.x.size):
        a = ws.a[k] if system.prescribed[k] else method_ws.a[k]
        alpha = ((1.0 - f) * a + f * method_ws.a[k] - m * method_ws.alpha[k]) / (1.0 - m)
        method_ws.a_next[k] = a
        method_ws.x[k] = h * method_ws.v[k] + h * h * ((0.5 - b) * method_ws.alpha[k] + b * alpha)
        method_ws.v_next[k] = method_ws.v[k] + h * ((1.0 - g) * method_ws.alpha[k] + g * alpha)


@inline_kernel
def correct(tree, system, method_ws, h):
    """Apply the solution of the linear system, increments of q_{n+1} and h^2 lambda, to x, v, a and lambda."""
    f, b, g, m = method_ws.method[ALPHA_F], method_ws.method[BETA], method_ws.method[GAMMA], method_ws.method[ALPHA_M]
    nv = method_ws.x.size
    chart_rate(tree, method_ws.x, method_ws.solver.b[:nv], method_ws.rate)
    for k in range(nv):
        if not system.prescribed[k]:
            method_ws.x[k] += method_ws.rate[k]
            method_ws.v_next[k] += g / (h * b) * method_ws.rate[k]
            method_ws.a_next[k] += (1.0 - m) / (h * h * b * (1.0 - f)) * method_ws.rate[k]
    for r in range(method_ws.multipliers.size):
        method_ws.multipliers[r] += method_ws.solver.b[nv + r] / (h * h)


@inline_kernel
def update_matrix(schedule, system, method_ws, h):
    """Write and factor the Newton matrix. Return False if it is singular."""
    f, b, g, m = method_ws.method[ALPHA_F], method_ws.method[BETA], method_ws.method[GAMMA], method_ws.method[ALPHA_M]
    fill_matrix(schedule, system, method_ws, (1.0 - m) / (b * (1.0 - f)), h * g / b, h * h)
    return factor_pivoted(system.prescribed.size, method_ws.solver)


@inline_kernel
def newton_step(system, ws, method_ws, h):
    """Solve for the Newton increments, and write them to method_ws.solver.b."""
    nv = ws.v.size
    for k in range(nv):
        method_ws.solver.b[k] = 0.0 if system.prescribed[k] else h * h * (ws.tau[k] - method_ws.force[k])
    for r in range(method_ws.multipliers.size):
        method_ws.solver.b[nv + r] = -method_ws.position_residual[r]
    solve_pivoted(method_ws.solver)


@inline_kernel
def advance_alpha(method_ws):
    """Update alpha and dv to the end of the step."""
    f, m = method_ws.method[ALPHA_F], method_ws.method[ALPHA_M]
    for k in range(method_ws.alpha.size):
        method_ws.alpha[k] = ((1.0 - f) * method_ws.a_next[k] + f * method_ws.a[k] - m * method_ws.alpha[k]) / (1.0 - m)
        method_ws.a[k] = method_ws.a_next[k]


@inline_kernel
def newton(trial, tree, loops, system, schedule, t, h, state, ws, method_ws):
    """Iterate to the state at the end of the step, in ws.

    The matrix is updated in the first iteration and if convergence is slow.
    """
    previous_error, slow, size = np.inf, False, 1.0
    for step in range(MAX_ITERATIONS):
        renew = step == 0 or slow
        set_trial_state(tree, ws, method_ws)
        if not call_evaluate_trial(trial, t, renew, ws, method_ws):
            return BAD_SIGNAL
        replace_rolling_residual(loops, h * method_ws.method[BETA] / method_ws.method[GAMMA], method_ws)
        state.count[EVALUATIONS] += 1
        if renew:
            size = force_size(ws, method_ws)
        error = max(balance_residual(system, ws, method_ws) / (size * method_ws.method[BALANCE_TOLERANCE]),
                    max_weighted_abs(method_ws.weight, method_ws.position_residual) / method_ws.method[CLOSURE_TOLERANCE])
        if step > 0 and (error <= 1.0 or (error <= MAX_ROUNDING_FACTOR and error > 0.5 * previous_error)):
            remove_null_multipliers(method_ws.solver, method_ws.multipliers)
            return RUNNING
        if not error < 1e300:
            return NOT_CONVERGED
        if renew and not update_matrix(schedule, system, method_ws, h):
            return SINGULAR
        newton_step(system, ws, method_ws, h)
        correct(tree, system, method_ws, h)
        slow, previous_error = step > 0 and not error < SLOW_CONVERGENCE * previous_error, error
    return NOT_CONVERGED


@inline_kernel
def set_trial_state(tree, ws, method_ws):
    """Write the state at the end of the step so far to ws."""
    retract(tree, method_ws.q, method_ws.x, ws.q)
    for k in range(method_ws.x.size):
        ws.v[k], ws.a[k] = method_ws.v_next[k], method_ws.a_next[k]


@inline_kernel
def supplied_power(tree, system, driven, ws, method_ws):
    """Return the power of motors, wrenches, passive forces except springs, and driven closures, at the last evaluated state."""
    power, nv, V = joint_power(tree, system, ws, 0.0), ws.v.size, method_ws.balance.tree.V
    for i in range(ws.F.size):
        power += ws.F[i] * V[i]
    if driven:
        for r in range(method_ws.multipliers.size):
            for k in range(nv):
                power += method_ws.multipliers[r] * method_ws.rates.A[r * nv + k] * ws.v[k]
    return power


@inline_kernel
def finish_state(tree, system, constraints, state, ws, method_ws):
    """Write the forces of prescribed coordinates, the supplied power (state.clock[POWER]) and residuals of an accepted state.

    The state must have been evaluated.
    """
    for k in range(ws.v.size):
        if system.prescribed[k]:
            ws.tau[k] = method_ws.force[k]
    remove_friction(system.stops, ws)
    state.clock[POWER] = supplied_power(tree, system, method_ws.constraint_motion.size > 0, ws, method_ws)
    if constraints.constraint_ws.size:
        copy_array(method_ws.multipliers, constraints.multipliers)
        constraints.statistics[DRIFT] = max(constraints.statistics[DRIFT], max_abs(method_ws.position_residual))
        constraints.statistics[DRIFT_VELOCITY] = max(constraints.statistics[DRIFT_VELOCITY], max_abs(method_ws.velocity_residual))


# generalized alpha ------------------------------------------------------------------------------------------------------

NO_CONSTRAINTS = ConstrainedSystem(np.zeros(0), np.zeros(0, dtype=np.int64), *(np.zeros(0) for _ in range(4)))
_CLOSURE_TOLERANCE = 1e-11     # of constraint residuals in a step: rad, or relative to the length of the loop
_BALANCE_TOLERANCE = 1e-10     # of the force balance in a step, relative to the maximum force times lever arms
_MIN_FORCE = 1e-12             # of a characteristic torque: lower bound of the force scale


@kernel
def run_alpha(trial, index, constants, loop_index, loop_constants, system, schedule, signals, constraints, state, record, ws,
              method_ws, max_steps):
    """Advance until the last output is stored or `max_steps` are done. Return a code of `right_hand_side`.

    Without steps, compute the accelerations at the start of a step, and store an output that is due.

    Compiled once for all robots: `evaluate_trial` computes what depends on laws, contacts and constraints.

    trial        a `TrialCall` with the following arguments
    system       without laws and contacts
    constraints  `NO_CONSTRAINTS` if there are none
    """
    tree, loops = tree_views(index, constants), constraint_views(loop_index, loop_constants)
    for _ in range(max(max_steps, 1)):
        code = RUNNING
        if state.count[FIRST_RATE_KNOWN] == 0:
            code = initialize_alpha(trial, tree, system, schedule, signals, constraints, state, ws, method_ws)
        if code == RUNNING and output_is_due(state, record):
            record_state(constraints, state, record, ws, method_ws)
        if code == RUNNING and state.count[NEXT_OUTPUT] == record.t.size:
            return FINISHED
        if code == RUNNING and max_steps > 0:
            code = alpha_step(trial, tree, loops, system, schedule, signals, constraints, state, record, ws, method_ws)
        if code != RUNNING:
            return code
    return RUNNING


@inline_kernel
def initialize_alpha(trial, tree, system, schedule, signals, constraints, state, ws, method_ws):
    """Compute dv from the equations of motion, and alpha, at the start and after a break.

    alpha belongs to the time t + (alpha_m - alpha_f) h and is extrapolated with the slope of dv. Otherwise lambda would start
    with an error of first order (Arnold, Bruels, Cardona 2015).
    """
    nv, t, h = method_ws.v.size, state.clock[T_NOW], method_ws.method[STEP]
    set_prescribed_state(schedule, signals, t, state.q, state.y[nv:2 * nv], ws)
    copy_array(state.q, method_ws.q)
    copy_array(state.y[nv:2 * nv], method_ws.v)
    later = min(t + h, next_break(schedule, state, np.inf)[1])
    for phase in range(4):                              # at t, one step later, at t again, and with the computed accelerations
        for k in range(nv):
            method_ws.x[k] = h * method_ws.v[k] + 0.5 * h * h * method_ws.a[k] if phase == 1 else 0.0
            method_ws.v_next[k] = method_ws.v[k] + (h * method_ws.a[k] if phase == 1 else 0.0)
            method_ws.a_next[k] = method_ws.a[k] if phase == 3 else 0.0
        for r in range(method_ws.multipliers.size):
            method_ws.multipliers[r] = method_ws.multipliers[r] if phase == 3 else 0.0
        set_trial_state(tree, ws, method_ws)
        trial_time = later if phase == 1 else t
        if not call_evaluate_trial(trial, trial_time, phase < 3, ws, method_ws):
            return BAD_SIGNAL
        if phase < 3 and not solve_accelerations(schedule, system, ws, method_ws):
            return SINGULAR
        if phase == 0:
            copy_array(ws.a, method_ws.a)
        elif phase == 1:
            shift_alpha(ws, method_ws, h)
    for j in range(system.stops.sliding.size):                 # without a slope, sliding that begins does not turn back
        k = system.stops.sliding[j]
        if method_ws.v[k] == 0.0:
            method_ws.alpha[k] = method_ws.a[k]
    code = check_constraints(constraints, t, ws)
    finish_state(tree, system, constraints, state, ws, method_ws)
    state.count[EVALUATIONS], state.count[FIRST_RATE_KNOWN] = state.count[EVALUATIONS] + 4, 1
    return code


@inline_kernel
def check_constraints(constraints, t, ws):
    """Check an accepted state for singular configurations and contradicting prescriptions. Return a code."""
    return solve_and_check_state(constraints, t, ws) if constraints.constraint_ws.size else RUNNING


@inline_kernel
def record_state(constraints, state, record, ws, method_ws):
    """Store the state in ws as the next output."""
    i = state.count[NEXT_OUTPUT]
    store_evaluation(ws, state.y[2 * ws.v.size], record, i)
    if constraints.constraint_ws.size:
        copy_array(method_ws.multipliers, record.multipliers[i])
        copy_array(constraints.constraint_motion, record.constraint_motion[i])
        record.residual[i, 0], record.residual[i, 1] = max_abs(method_ws.position_residual), max_abs(method_ws.velocity_residual)
    state.count[NEXT_OUTPUT] += 1


@inline_kernel
def alpha_step(trial, tree, loops, system, schedule, signals, constraints, state, record, ws, method_ws):
    """Take one of equal steps to the next output or break. Return a code."""
    nv = method_ws.v.size
    h, end, stop_time, before, _ = next_fixed_step(schedule, state, record, method_ws.method[STEP])
    seen = before if end == stop_time else end
    copy_array(state.q, ws.q)
    for k in range(nv):
        method_ws.v[k] = ws.v[k] = state.y[nv + k]
    copy_array(state.q, method_ws.q)
    ws.flag[0] = -1.0
    prescribe(tree, None, schedule, signals, seen, ws)
    if ws.flag[0] >= 0.0:
        return BAD_SIGNAL
    predict(system, ws, method_ws, h)
    code = newton(trial, tree, loops, system, schedule, seen, h, state, ws, method_ws)
    if code != RUNNING:
        return code
    advance_alpha(method_ws)
    power = state.clock[POWER]
    copy_array(ws.q, state.q)
    for k in range(nv):
        state.y[nv + k] = ws.v[k]
        method_ws.a[k] = ws.a[k]
    code = check_constraints(constraints, end, ws)
    finish_state(tree, system, constraints, state, ws, method_ws)
    state.y[2 * nv] += 0.5 * h * (power + state.clock[POWER])
    state.clock[T_NOW] = end
    state.count[STEPS] += 1
    state.count[FIRST_RATE_KNOWN] = 0 if end == stop_time and end != record.t[record.t.size - 1] else 1
    return code


# from Python ------------------------------------------------------------------------------------------------------

class GeneralizedAlphaStepper(ImplicitStepper):
    """Steps of the generalized-alpha method, of length options.step.

    options.rho is the spectral radius at infinite frequency, from 0 (maximum damping) to 1 (none). Position, velocity and
    multipliers are of second order; constraints are satisfied in position to rounding, in velocity to second order.

    Notes
    -----
    O. Bruels, A. Cardona, M. Arnold, Lie group generalized-alpha time integration of constrained flexible multibody systems,
    Mechanism and Machine Theory 48, 2012.
    """

    step_arrays = ("a", "alpha", "multipliers")
    reason = " (a mechanism may jam or snap through in a singular configuration)"

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None):
        model, constraints = problem.model, problem.constrained_system()
        method_ws = _make_workspace(model, constraints, method_parameters(options.rho, options.step))
        super().__init__(problem, start, times, options, controller, method_ws, constraints)
        self.loops: tuple[Integers, Array] = (np.zeros(HEADER, dtype=np.int64), np.zeros(0)) if constraints is None else \
            (model._arrays.loop_index, model._arrays.loop_constants)
        self.system = problem.system(eliminate=False)
        self._call: tuple[TrialCall, TrialArguments] | None = None

    def run(self, schedule: InputSchedule, signals: Signals, max_steps: int) -> int:
        """Call `run_alpha`."""
        index, constants, *_ = self.problem.model._arrays
        arguments = TrialArguments(index, constants, *self.loops, self.system, schedule, signals, self.constraints)
        if self._call is None or any(x is not y for x, y in zip(arguments, self._call[1], strict=True)):
            address = address_for(evaluate_trial, arguments, 0.0, False, self.workspace, self.method_ws)
            self._call = TrialCall(address, packed_values(arguments)), arguments
        code: int = run_alpha(self._call[0], index, constants, *self.loops, without_laws(self.system), schedule, signals,
                              NO_CONSTRAINTS if self.constraints is None else self.constraints, self.state, self.record,
                              self.workspace, self.method_ws, max_steps)
        return code


def method_parameters(rho: float, step: float) -> np.ndarray:
    """Return the parameters of second order for the spectral radius rho (Chung, Hulbert 1993), the step and the tolerances."""
    if not 0.0 <= rho <= 1.0:
        raise UsageError(f"rho, the spectral radius at infinity, must lie between 0 and 1, got {rho:g}")
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + f - m
    return np.array([m, f, 0.25 * (gamma + 0.5)**2, gamma, step, _CLOSURE_TOLERANCE, _BALANCE_TOLERANCE, 0.0])


def _make_workspace(model: Model, constraints: ConstrainedSystem | None, method: Array) -> AlphaWorkspace:
    n, nq, nv, m, nf = model.n_bodies, model.nq, model.nv, model.nc, model.n_frames
    units = model_scales(model)
    method[MIN_FORCE] = _MIN_FORCE * units.unit_scale("N m")
    if constraints is None:
        m = nf = 0
    N = nv + m
    rows = FrameWorkspace(np.zeros(12 * nf), np.zeros(12 * nf), np.zeros(3 * nf))
    tree = NewtonEulerWorkspace._make((np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv)))
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWorkspace(np.zeros((N, N)), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)),
                            entry_bounds(model) if m else np.zeros((0, nv)))
    constraint_motion = np.zeros(0) if constraints is None else constraints.constraint_motion
    rates = balance_derivatives_views.py_func(np.zeros(balance_derivatives_size(nv, m)), nv, m)
    return AlphaWorkspace._make((
        method, np.zeros(nq), *np.zeros((7, nv)), *np.zeros((3, m)), np.zeros(nv), np.zeros(m), rates, constraint_motion, solver,
        BalanceWorkspace(tree, rows, np.zeros(6 * n)), np.zeros(balance_derivatives_workspace_size(n, nv, nf)),
        equation_weights(model) if m else np.zeros(0), units.unit_scales(model.v_units)))
