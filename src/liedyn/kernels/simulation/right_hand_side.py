"""The right-hand side of a simulation.

Schedule and signals -> prescribed motion, generalized forces and external wrenches -> hybrid dynamics -> rates of the chart, the
velocity and the supplied work.

The state is y = [x (nv); v (nv); z (m); work (1)], with q = q0 (+) x about the configuration q0 of the present step. z are the
integrals of pid laws, stretches of contacts, and the parameters that `slotine_li_law` estimates. Coordinates that are prescribed
at position or velocity level get the values of their signals, not those of y: they do not drift.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_pose, resistance
from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.constraints.driver import (
    CHECK_STATE,
    CLOSED,
    MEASURE,
    PROJECT,
    PROJECT_UNCOUNTED,
    SOLVE_MOTION,
    call_operation,
    copy_array,
    max_abs,
)
from liedyn.kernels.constraints.stages import TIME, constraint_workspace_of
from liedyn.kernels.couplings import Couplings, follow
from liedyn.kernels.force_elements import store_element_power
from liedyn.kernels.hybrid_dynamics import complete_coupled_motion, hybrid_workspace
from liedyn.kernels.manifold import chart_rate, retract
from liedyn.kernels.simulation.contact import Contacts, contact_wrenches
from liedyn.kernels.simulation.elastic_joint_law import MotorLaw, apply_motor_law
from liedyn.kernels.simulation.joint_laws import (
    JointLaws,
    Stops,
    add_stop_forces,
    apply_joint_laws,
    friction_force,
    measure_stop_forces,
    thrust_with_laws,
)
from liedyn.kernels.simulation.signals import (
    POSITION,
    TORQUE,
    VELOCITY,
    evaluate_signal,
    evaluate_vector3,
    flag_nonfinite,
    measure_forces,
    measure_points,
    prescribe_poses,
)
from liedyn.lie.se3 import add, compose, dAd_inv, dot
from liedyn.lie.simd import absolute, load, number_like, where_less
from liedyn.lie.so3 import rpy_motion
from liedyn.lie.vectors import (
    add_cross,
    cross,
    load3,
    load9,
    load_pose,
    load_twist,
    matmul3,
    rotate_back,
    store_pose,
    store_twist,
    sub3,
    transpose,
)
from liedyn.numba_tools.decorators import inline_kernel, kernel
from liedyn.numba_tools.deferred_kernels import call_deferred

RUNNING, FINISHED, BAD_SIGNAL, SINGULAR, NOT_FINITE, STEP_TOO_SMALL = range(6)
NOT_CONVERGED = 20           # the iteration for the end of an implicit step did not converge
# codes of a run: the last step crosses a switch of the state; a run with switches is at a break point; a run is at an event
SWITCH_CROSSED, AT_BREAK_POINT, AT_EVENT = 30, 31, 33


class MotionWorkspace(NamedTuple):
    """State, forces and workspace of one evaluation of the right-hand side."""

    q: np.ndarray        # (nq,) configuration of the last evaluation
    v: np.ndarray        # (nv,)
    a: np.ndarray        # (nv,)
    tau: np.ndarray      # (nv,)
    F: np.ndarray        # (6n,) external wrenches on bodies, or empty
    wrench: np.ndarray   # (6 slots + thrusts,) external wrenches on the links that have some, link frames; thrusts of actuators
    stack: np.ndarray    # workspace of the signals
    flag: np.ndarray     # (2,) the signal that is not finite; -1: none
    memory: np.ndarray   # workspace of hybrid dynamics
    z: np.ndarray        # (2m,) integrals of pid laws, stretches of contacts and estimated parameters, then the rates of all


class SystemModel(NamedTuple):
    """Data that is constant during a run, except tree, schedule and signals."""

    prescribed: np.ndarray   # (nv,) bool
    acceleration_known: np.ndarray       # (nv,) bool: prescribed coordinates and the followers of `couplings`
    couplings: Couplings | None          # of the robot, which the dynamics eliminate; if None, they are not compiled
    slot: np.ndarray         # (forces,) int64: row of `wrench` that a force adds to
    slot_link: np.ndarray    # (slots,) int64
    passive: np.ndarray      # (1,) bool
    law: MotorLaw | None     # law of the motors of elastic joints; if None, it is not compiled
    contacts: Contacts | None        # the same
    joint_laws: JointLaws | None     # laws of other joints, and force limits; the same
    stops: Stops                     # stops at joint limits; may be empty


def without_laws(system: SystemModel) -> SystemModel:
    """Return the system for methods that call `apply_inputs` by its address: laws and contacts are not compiled with them."""
    return system._replace(law=None, contacts=None, joint_laws=None)


@inline_kernel
def right_hand_side(tree, system, schedule, signals, t, q0, y, dy, ws):
    """Write the rates dy of an open tree, and q, v, a, tau and wrench of ws; return a code, as a float or SIMD number.

    t may be just below a break point.
    """
    evaluate_inputs(tree, system, schedule, signals, t, q0, y, ws)
    deficit = complete_coupled_motion(tree, system.couplings, system.acceleration_known, ws.q, ws.v, ws.a, ws.tau, ws.F,
                                      system.passive[0], ws.memory)
    measure_stop_forces(system.stops, signals, ws)
    evaluate_events(schedule, signals, t, ws)
    power = number_like(y, 0.0)
    if ws.F.size:
        inner = hybrid_workspace(ws.memory, tree.parent.size, system.prescribed.size)
        for i in range(1, tree.parent.size):
            power = power + dot(load_twist(ws.F, i), load_twist(inner.V, i))
    return store_rates(tree, system, signals, y, deficit, power, dy, ws)


@inline_kernel
def evaluate_inputs(tree, system, schedule, signals, t, q0, y, ws):
    """Write the state, the prescribed motion and the forces at t into ws."""
    nv = system.prescribed.size
    retract(tree, q0, y[:nv], ws.q)
    for k in range(nv):
        ws.v[k] = y[nv + k]
    for k in range(ws.z.size // 2):
        ws.z[k] = y[2 * nv + k]
    apply_inputs(system, tree, schedule, signals, t, ws)


@inline_kernel
def store_rates(tree, system, signals, y, deficit, power, dy, ws):
    """Write dy from a and tau of ws, and return a code.

    deficit  > 0: the mass matrix is singular
    power    power of external wrenches and constraints [W]
    """
    nv = system.prescribed.size
    chart_rate(tree, y[:nv], ws.v, dy[:nv])
    for k in range(nv):
        dy[nv + k] = ws.a[k]
    n = ws.z.size // 2
    for k in range(n):
        dy[2 * nv + k] = ws.z[n + k]
    dy[2 * nv + n] = joint_power(tree, system, ws, power)
    return where_less(-0.5, ws.flag[0], BAD_SIGNAL, where_less(0.0, deficit, SINGULAR, finite_rates(dy)))


@inline_kernel
def joint_power(tree, system, ws, power):
    """Return `power` plus that of generalized forces, damping, friction and force elements. ws.tau is without rigid friction."""
    for j in range(system.stops.sliding.size):
        v = ws.v[system.stops.sliding[j]]
        power += friction_force(system.stops, j, v) * v
    for k in range(ws.v.size):
        power += ws.tau[k] * ws.v[k]
        if system.passive[0]:
            power += resistance(tree, k, ws.v) * ws.v[k]
    if system.passive[0] and tree.element.size:
        call_deferred(store_element_power, (tree, ws.q, ws.v, ws.stack))
        power = power + load(ws.stack, 0)
    return power


@inline_kernel
def finite_rates(dy):
    """Return RUNNING if dy is finite, else NOT_FINITE."""
    total = 0.0
    for k in range(dy.size):
        total += absolute(dy[k])
    return where_less(total, np.inf, RUNNING, NOT_FINITE)


@inline_kernel
def apply_inputs(system, tree, schedule, signals, t, ws):
    """Write the prescribed motion, generalized forces and external wrenches at t to ws. ws.flag: a signal that is not finite."""
    ws.flag[0] = -1.0
    prescribe(tree, system.couplings, schedule, signals, t, ws)
    apply_motor_law(system.law, tree, signals, t, ws)
    apply_joint_laws(system.joint_laws, tree, system.passive, schedule.q_of_v, signals, t, ws)
    add_stop_forces(system.stops, schedule.q_of_v, signals, ws)
    apply_forces(tree, system, schedule, signals, t, ws)


@inline_kernel
def evaluate_events(schedule, signals, t, ws):
    """Evaluate the signals of events. They may read generalized forces."""
    measure_forces(ws.tau, signals.measured)
    for k in range(schedule.watch.size):
        if schedule.watch[k] >= 0:
            x, _, _ = evaluate_signal(signals, schedule.watch[k], t, ws.q, ws.v, ws.stack)
            flag_nonfinite(ws.flag, schedule.watch[k], x)


@inline_kernel
def prescribe(tree, couplings, schedule, signals, t, ws):
    """Write prescribed motions and those of followers into ws, then torques, which may read the state and points of links."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level == TORQUE or (level == POSITION and schedule.q_of_v[k] < 0):
            continue
        x, dx, ddx = evaluate_signal(signals, schedule.signal[k], t, ws.q, ws.v, ws.stack)
        if level == POSITION:
            ws.q[schedule.q_of_v[k]] = x
            ws.v[k], ws.a[k] = dx, ddx
        elif level == VELOCITY:
            ws.v[k], ws.a[k] = x, dx
            ddx = 0.0
        else:
            ws.a[k] = x
            dx, ddx = 0.0, 0.0
        flag_nonfinite(ws.flag, schedule.signal[k], x + dx + ddx)
    prescribe_poses(schedule.poses, signals, t, ws.q, ws.v, ws.a, ws)
    follow(couplings, ws.q, ws.v)
    measure_points(signals.points, tree, ws.q, ws.v, signals.measured)
    for k in range(schedule.level.size):
        if schedule.level[k] != TORQUE:
            continue
        force, _, _ = evaluate_signal(signals, schedule.signal[k], t, ws.q, ws.v, ws.stack)
        if schedule.target[k] >= 0:
            x, dx, _ = evaluate_signal(signals, schedule.target[k], t, ws.q, ws.v, ws.stack)
            flag_nonfinite(ws.flag, schedule.target[k], x + dx)
            force += schedule.kp[k] * (x - ws.q[schedule.q_of_v[k]]) + schedule.kd[k] * (dx - ws.v[k])
        flag_nonfinite(ws.flag, schedule.signal[k], force)
        ws.tau[k] = force
    integrate_errors(schedule, signals, t, ws)


@inline_kernel
def integrate_errors(schedule, signals, t, ws):
    """Add the integral terms of pid laws to ws.tau, and write the rates of the integrals."""
    n = ws.z.size // 2
    for j in range(schedule.ki.size):
        k = schedule.integral[j]
        x, _, _ = evaluate_signal(signals, schedule.target[k], t, ws.q, ws.v, ws.stack)
        ws.tau[k] += ws.z[j]
        ws.z[n + j] = schedule.ki[j] * (x - ws.q[schedule.q_of_v[k]])


@inline_kernel
def set_prescribed_state(schedule, signals, t, q, v, ws):
    """Set q and v to their prescribed values at position and velocity level. This removes drift after a step."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level == VELOCITY or (level == POSITION and schedule.q_of_v[k] >= 0):
            x, dx, _ = evaluate_signal(signals, schedule.signal[k], t, q, v, ws.stack)
            if level == POSITION:
                q[schedule.q_of_v[k]] = x
                v[k] = dx
            else:
                v[k] = x
    prescribe_poses(schedule.poses, signals, t, q, v, ws.a, ws)


@inline_kernel
def apply_forces(tree, system, schedule, signals, t, ws):
    """Write external wrenches into ws.wrench (links) and ws.F (bodies), and thrusts into ws.wrench."""
    for k in range(ws.wrench.size):
        ws.wrench[k] = 0.0
    for k in range(ws.F.size):
        ws.F[k] = 0.0
    for j in range(schedule.force_link.size):
        x, _, _ = evaluate_signal(signals, schedule.force_signal[j], t, ws.q, ws.v, ws.stack)
        x = where_less(t, schedule.force_from[j], 0.0, where_less(t, schedule.force_until[j], x, 0.0))
        if schedule.force_actuator[j] >= 0:                    # these are the last forces
            x = thrust_with_laws(system.joint_laws, system.prescribed.size + schedule.force_actuator[j], x, signals, t, ws)
            ws.wrench[ws.wrench.size - schedule.force_link.size + j] = x
        flag_nonfinite(ws.flag, schedule.force_signal[j], x)
        m, f = load_twist(schedule.force_basis, j)
        F = (x * m[0], x * m[1], x * m[2]), (x * f[0], x * f[1], x * f[2])
        if schedule.force_world[j]:
            R = link_rotation(tree, schedule.force_link[j], ws.q)
            f = rotate_back(R, F[1])
            F = add_cross(rotate_back(R, F[0]), load3(schedule.force_point, 3 * j), f), f
        s = system.slot[j]
        store_twist(ws.wrench, s, add(load_twist(ws.wrench, s), F))
    contact_wrenches(system.contacts, tree, signals.switches, ws)
    for s in range(system.slot_link.size):
        link = system.slot_link[s]
        i = tree.link_body[link]
        F = dAd_inv(load_pose(tree.link_pose, link), load_twist(ws.wrench, s))
        store_twist(ws.F, i, add(load_twist(ws.F, i), F))


@inline_kernel
def link_rotation(tree, link, q):
    """Return the rotation of a link in the world."""
    T, i = load_pose(tree.link_pose, link), tree.link_body[link]
    while i > 0:
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    return T[0]


# Constraints in a simulation --------------------------------------------------------------------------------------------

class ConstrainedSystem(NamedTuple):
    """The constraints of a run. Arrays of the constraint workspace are views."""

    constraint_ws: np.ndarray          # see `stages.ConstraintWorkspace`
    signal: np.ndarray        # (6 driven,) int64: x y z, roll pitch yaw of each driven closure
    turn: np.ndarray          # (9 driven,) rotation from frame A of the kernels to that of the file
    constraint_motion: np.ndarray         # (24 driven,) of the constraint workspace: motion at the last evaluation
    multipliers: np.ndarray   # (m,) of the constraint workspace, of the last evaluation
    statistics: np.ndarray       # of the constraint workspace


# driven closures --------------------------------------------------------------------------------------------------
@kernel
def prescribe_loop_motion(signals, constraints, t, ws):
    """Write constraints.constraint_motion: p = x y z, R = Rz(yaw) Ry(pitch) Rx(roll), from signals at t.

    ws.flag: a signal that is not finite.
    """
    for d in range(constraints.signal.size // 6):
        p, dp, ddp = evaluate_vector3(signals, constraints.signal, 6 * d, t, ws)
        angle, rate, rate2 = evaluate_vector3(signals, constraints.signal, 6 * d + 3, t, ws)
        R, w, dw = rpy_motion(angle, rate, rate2)
        v = rotate_back(R, dp)
        dv = sub3(rotate_back(R, ddp), cross(w, v))
        Q = load9(constraints.turn, 9 * d)
        store_pose(constraints.constraint_motion, 2 * d, (matmul3(transpose(Q), matmul3(R, Q)), rotate_back(Q, p)))
        store_twist(constraints.constraint_motion, 4 * d + 2, (rotate_back(Q, w), rotate_back(Q, v)))
        store_twist(constraints.constraint_motion, 4 * d + 3, (rotate_back(Q, dw), rotate_back(Q, dv)))


# at a state -------------------------------------------------------------------------------------------------------
@inline_kernel
def solve_at_state(constraints, ws):
    """Run `SOLVE_MOTION` at the state in ws; return the constraint workspace and a code."""
    d = constraint_workspace_of(constraints.constraint_ws)
    copy_array(ws.q, d.q)
    copy_array(ws.v, d.v)
    copy_array(ws.a, d.a)
    copy_array(ws.tau, d.tau)
    copy_array(ws.F, d.f_ext)
    return d, call_operation(constraints.constraint_ws, SOLVE_MOTION)


@inline_kernel
def constrained_hybrid(constraints, ws):
    """Write a and tau of ws and the multipliers under the constraints; return a code of `constraints.driver`."""
    d, code = solve_at_state(constraints, ws)
    copy_array(d.out_a, ws.a)
    copy_array(d.out_tau, ws.tau)
    return code


@inline_kernel
def solve_and_check_state(constraints, t, ws):
    """Return the code of `check_accepted_state` at the state in ws, for methods that do not call `constrained_hybrid`.

    Overwrites constraints.multipliers.
    """
    _, code = solve_at_state(constraints, ws)
    return CLOSED if code != OK else check_accepted_state(constraints, t)         # generated code is invalid for large angles


@inline_kernel
def hybrid_deficit(constraints):
    """Return the deficit of the last solution: positive if the articulated inertia of a joint vanishes."""
    return constraint_workspace_of(constraints.constraint_ws).deficit[0]


@inline_kernel
def constraint_power(constraints):
    """Return the power of external wrenches and driven closures, after `constrained_hybrid`."""
    d = constraint_workspace_of(constraints.constraint_ws)
    power = d.power[0]
    for r in range(d.constraint_motion_rate.size):
        power += d.multipliers[r] * d.constraint_motion_rate[r]
    return power


@inline_kernel
def check_accepted_state(constraints, t):
    """Look for singular configurations and contradictory prescribed motions at an accepted state; return a code.

    `constrained_hybrid` must have been evaluated there.
    """
    constraints.statistics[TIME] = t
    return call_operation(constraints.constraint_ws, CHECK_STATE)


@inline_kernel
def project_constraints(constraints, count_drift, q, v):
    """Project q and v onto the constraints, except prescribed coordinates; return a code.

    constraints.constraint_motion must be that of the present time. The statistics get the drift if `count_drift`, or if
    projection is off: then q and v do not change.
    """
    d = constraint_workspace_of(constraints.constraint_ws)
    copy_array(q, d.q)
    copy_array(v, d.v)
    code = call_operation(constraints.constraint_ws, PROJECT if count_drift else PROJECT_UNCOUNTED)
    copy_array(d.q, q)
    copy_array(d.v, v)
    return code


@inline_kernel
def constraint_errors(constraint_ws, q, v, out):
    """Write the maximum residual and the maximum velocity residual to out (2,); return a code."""
    d = constraint_workspace_of(constraint_ws)
    copy_array(q, d.q)
    copy_array(v, d.v)
    code = call_operation(constraint_ws, MEASURE)
    out[0], out[1] = max_abs(d.residual), max_abs(d.velocity)
    return code
