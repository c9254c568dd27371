"""Control laws for joints in addition to the input schedule, and limits of generalized forces:

    gravity compensation   tau += g(q)
    state feedback         tau += tau_0 - K [q (-) q_0; v - v_0]
    computed torque        tau += forces by hybrid dynamics, where driven joints have the accelerations
                           a = r'' + k_1 (r' - v) + k_0 (r - q), prescribed joints theirs, and other joints their forces
    task space             the same, with accelerations of all joints that are not prescribed by `task_space_law`
    Slotine and Li         tau += forces of passivity-based control with estimated parameters, by `slotine_li_law`
    sampled controller     tau += a signal that is constant or linear between samples
    saturation             -limit <= tau <= limit, or bottom <= tau <= top where these are signals (of motors, of thrusts)
    gears with losses      tau reduced where the motor drives the joint, increased where the joint drives the motor; last

State feedback, sampled controllers and saturation also change thrusts of actuators. The inputs of a robot are its nv coordinates,
then its actuators.

Computed torque of all joints is inverse dynamics; of some joints it is partial feedback linearization (Spong 1994). Dynamics of
robots with loops are those of `constraints.driver`: forces of gravity are those that hold the joints at rest. The limits
are switches of the state, like `min` and `max` of a signal: steps end where a force reaches its limit. The integral of a pid law
is constant while the force is at its limit and the integral would increase it; the start and end of that are switches, too.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import tree_of_law
from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.constraints.driver import SOLVE_MOTION, call_operation, copy_array, is_contradicted
from liedyn.kernels.constraints.stages import constraint_workspace_of
from liedyn.kernels.couplings import Couplings
from liedyn.kernels.hybrid_dynamics import complete_coupled_motion
from liedyn.kernels.manifold import difference
from liedyn.kernels.simulation.signals import (
    MAX,
    MIN,
    STEP,
    SWITCH_SIZE,
    evaluate_signal,
    flag_nonfinite,
    frozen_choice,
    frozen_unary,
    register_zero_crossing,
)
from liedyn.kernels.simulation.slotine_li_law import SlotineLi, apply_slotine_li
from liedyn.kernels.simulation.task_space_law import Task, apply_task_law
from liedyn.lie.simd import exp, load, sqrt, where_less
from liedyn.model.description import FRICTION_SPEED
from liedyn.numba_tools.decorators import inline_kernel, kernel

GRAVITY, FEEDBACK, COMPUTED = range(3)             # JointLaws.acts


class JointLaws(NamedTuple):
    """Control laws of a run, and their workspace."""

    active_laws: np.ndarray         # (3,) bool
    gravity: np.ndarray      # (nv,) bool: gets the gravity force
    row: np.ndarray          # (inputs,) int64 row of the gain, -1: none
    gain: np.ndarray         # (2 nv rows,)
    setpoint_q: np.ndarray      # (nq,)
    setpoint_v: np.ndarray      # (nv,)
    setpoint_tau: np.ndarray    # (rows,) generalized forces and thrusts
    gain_signal: np.ndarray     # (2 nv rows,) int64 signals of gains that change, -1: constant; empty: all are constant
    setpoint_signal: np.ndarray  # (nq + nv + rows,) int64 signals of a setpoint that moves: q, v, forces and thrusts; or empty
    driven: np.ndarray       # (nv,) bool: by computed torque, in task space, or by `slotine_li`
    prescribed: np.ndarray   # (nv,) bool: driven or prescribed
    signal: np.ndarray       # (nv,) int64 desired motion where driven
    gains: np.ndarray        # (2,) k_0, k_1
    torque_signal: np.ndarray         # (inputs,) int64 signal: torque or thrust of a sampled controller, -1: none
    limit: np.ndarray        # (inputs,) of the force, infinite: none
    switch: np.ndarray       # (inputs,) int64 the first of two entries in Signals.switches, where there is a limit
    top: np.ndarray          # (inputs,) int64 signal: the maximum of a motor or thrust, -1: `limit`
    bottom: np.ndarray       # (inputs,) int64 signal: the minimum
    integral: np.ndarray     # (nv,) int64 index in MotionWorkspace.z of an integral whose force has a limit, -1: none
    antiwindup_switch: np.ndarray      # (nv,) int64 the first of two more entries in Signals.switches, where there is one
    model_index: np.ndarray          # of the model that the laws compute with, see `joints.joint_model`; empty: the robot's
    model_constants: np.ndarray
    model_passive: np.ndarray        # (1,) bool: whether springs, damping and friction of this model act
    gear_loss: np.ndarray    # (nv,) part of a driving force that is lost in a gear
    gear_gain: np.ndarray    # (nv,) part of a braking force that the gear adds
    gear_switch: np.ndarray  # (nv,) int64 the first of two entries in Signals.switches; -1: a gear without losses
    all: np.ndarray          # (nv,) True
    v: np.ndarray            # (nv,) workspace, as all below
    a: np.ndarray            # (nv,)
    tau: np.ndarray          # (nv,)
    x: np.ndarray            # (nv,)
    feedback: np.ndarray     # (rows,) forces and thrusts of the state feedback
    reference: np.ndarray    # (nq,) configuration of a setpoint that moves
    memory: np.ndarray       # of hybrid dynamics
    none: np.ndarray         # (0,) no external wrenches
    acceleration_known: np.ndarray   # (nv,) bool: prescribed, or follows other coordinates by a coupling
    couplings: Couplings | None      # of the robot, which the dynamics of laws eliminate; None: not compiled
    # accelerations of driven coordinates in place of `evaluate_signal`; None: not compiled
    task: Task | None
    slotine_li: SlotineLi | None     # passivity-based control of driven coordinates; None: not compiled
    # constraint workspaces (`constraints.stages`) of a robot with loops; None: not compiled. Prescribed are, for gravity
    # compensation, its coordinates and those that the scenario prescribes, and for computed torque `prescribed`.
    gravity_loops: np.ndarray | None
    computed_loops: np.ndarray | None


INPUT_FIELDS = JointLaws._fields[:JointLaws._fields.index("all")]
WORKSPACE_FIELDS = "v", "a", "tau", "x", "feedback", "reference", "memory", "none"


@kernel
def apply_joint_laws(laws, tree, passive, q_of_v, signals, t, ws):
    """Add the laws to ws.tau, then limit it.

    laws: JointLaws or None (then nothing is compiled). ws.flag: a desired motion that is not finite.
    """
    if laws is None:
        return
    for k in range(laws.v.size):
        if laws.torque_signal[k] >= 0:
            ws.tau[k] += evaluate_signal(signals, laws.torque_signal[k], t, ws.q, ws.v, ws.stack)[0]
    model = tree_of_law(laws.model_index, laws.model_constants, tree)
    if laws.active_laws[GRAVITY]:
        add_gravity_compensation(laws, model, ws)
    if laws.active_laws[FEEDBACK]:
        add_state_feedback(laws, tree, signals, t, ws)
    saturate(laws, False, signals, t, ws)
    if laws.active_laws[COMPUTED]:
        add_computed_torque(laws, model, passive, q_of_v, signals, t, ws)
    acts = laws.model_passive if laws.model_index.size else passive
    apply_slotine_li(laws.slotine_li, model, acts, q_of_v, signals, t, ws)
    saturate(laws, True, signals, t, ws)


@inline_kernel
def add_gravity_compensation(laws, tree, ws):
    """Add the gravity force."""
    for k in range(laws.v.size):
        laws.v[k], laws.a[k], laws.tau[k] = 0.0, 0.0, 0.0
    law_dynamics(laws, laws.couplings, laws.gravity_loops, laws.all, tree, False, ws.q, laws.v)
    for k in range(laws.v.size):
        if laws.gravity[k]:
            ws.tau[k] += laws.tau[k]


@inline_kernel
def add_state_feedback(laws, tree, signals, t, ws):
    """Compute tau_0 - K [q (-) q_0; v - v_0], and add generalized forces. `thrust_with_laws` adds thrusts."""
    nq, nv = laws.setpoint_q.size, laws.v.size
    for k in range(nq):
        laws.reference[k] = current_value(laws.setpoint_signal, laws.setpoint_q, k, 0, signals, t, ws)
    difference(tree, laws.reference, ws.q, laws.x)
    for k in range(nv):
        laws.v[k] = ws.v[k] - current_value(laws.setpoint_signal, laws.setpoint_v, k, nq, signals, t, ws)
    for r in range(laws.feedback.size):
        force = current_value(laws.setpoint_signal, laws.setpoint_tau, r, nq + nv, signals, t, ws)
        for i in range(nv):
            place = 2 * nv * r + i
            force -= (current_value(laws.gain_signal, laws.gain, place, 0, signals, t, ws) * laws.x[i]
                      + current_value(laws.gain_signal, laws.gain, place + nv, 0, signals, t, ws) * laws.v[i])
        laws.feedback[r] = force
    for k in range(nv):
        if laws.row[k] >= 0:
            ws.tau[k] += laws.feedback[laws.row[k]]


@inline_kernel
def current_value(signal, constant, k, first, signals, t, ws):
    """Return the value at t of signal[first + k], or constant[k] if there is none."""
    if signal.size and signal[first + k] >= 0:
        return evaluate_signal(signals, signal[first + k], t, ws.q, ws.v, ws.stack)[0]
    return constant[k]


@inline_kernel
def thrust_with_laws(laws, k, thrust, signals, t, ws):
    """Return a thrust with those of the laws, after `apply_joint_laws`, and limited. k: index of the input."""
    if laws is None:
        return thrust
    if laws.torque_signal[k] >= 0:
        thrust += evaluate_signal(signals, laws.torque_signal[k], t, ws.q, ws.v, ws.stack)[0]
    if laws.row[k] >= 0:
        thrust += laws.feedback[laws.row[k]]
    if laws.limit[k] < np.inf:
        thrust, _, _ = limit_input(laws, k, thrust, signals, t, ws)
    return thrust


@inline_kernel
def add_computed_torque(laws, tree, passive, q_of_v, signals, t, ws):
    """Add the forces with which driven joints have their desired accelerations."""
    for k in range(laws.v.size):
        laws.a[k], laws.tau[k] = ws.a[k], ws.tau[k]
        if laws.driven[k] and laws.signal[k] >= 0:
            r, dr, ddr = evaluate_signal(signals, laws.signal[k], t, ws.q, ws.v, ws.stack)
            flag_nonfinite(ws.flag, laws.signal[k], r + dr + ddr)
            laws.a[k] = ddr + laws.gains[1] * (dr - ws.v[k]) + laws.gains[0] * (r - ws.q[q_of_v[k]])
    apply_task_law(laws.task, laws, tree, q_of_v, signals, t, ws)
    acts = laws.model_passive[0] if laws.model_index.size else passive[0]
    law_dynamics(laws, laws.couplings, laws.computed_loops, laws.acceleration_known, tree, acts, ws.q, ws.v)
    for k in range(laws.v.size):
        if laws.driven[k]:
            ws.tau[k] += laws.tau[k]


@kernel
def law_dynamics(laws, couplings, loops, prescribed, tree, passive, q, v):
    """Complete laws.a and laws.tau by hybrid dynamics without external wrenches. couplings, loops: of the laws, or None."""
    if loops is not None:
        loop_law_dynamics(laws, loops, q, v)
    else:
        complete_coupled_motion(tree, couplings, prescribed, q, v, laws.a, laws.tau, laws.none, passive, laws.memory)


@kernel
def loop_law_dynamics(laws, constraint_ws, q, v):
    """Do the same in a constraint workspace. laws.tau is NaN where no forces give the accelerations."""
    d = constraint_workspace_of(constraint_ws)
    copy_array(q, d.q)
    copy_array(v, d.v)
    copy_array(laws.a, d.a)
    copy_array(laws.tau, d.tau)
    code = call_operation(constraint_ws, SOLVE_MOTION)
    copy_array(d.out_a, laws.a)
    copy_array(d.out_tau, laws.tau)
    if code != OK or is_contradicted(d):
        for k in range(laws.tau.size):
            laws.tau[k] = np.nan


@inline_kernel
def saturate(laws, driven, signals, t, ws):
    """Limit ws.tau of coordinates whose `laws.driven` is `driven`."""
    for k in range(laws.driven.size):
        if laws.driven[k] == driven and laws.limit[k] < np.inf:
            ws.tau[k], above, below = limit_input(laws, k, ws.tau[k], signals, t, ws)
            if laws.integral[k] >= 0:
                j, n = laws.integral[k], ws.z.size // 2
                rate = antiwindup_rate(signals.switches, SWITCH_SIZE * laws.antiwindup_switch[k], above, 1.0, ws.z[n + j])
                ws.z[n + j] = antiwindup_rate(signals.switches, SWITCH_SIZE * (laws.antiwindup_switch[k] + 1), below, -1.0, rate)
        if laws.driven[k] == driven and laws.gear_switch[k] >= 0:
            ws.tau[k] = gear_output(signals.switches, SWITCH_SIZE * laws.gear_switch[k], ws.tau[k], ws.v[k],
                                    load(laws.gear_loss, k), load(laws.gear_gain, k))


@inline_kernel
def gear_output(switches, i, tau, v, loss, gain):
    """Return the force behind a gear with losses. About rest, the loss changes sign as smoothed Coulomb friction does."""
    forward, ahead = positive_part(switches, i, tau), positive_part(switches, i + SWITCH_SIZE, v)
    backward, back, root = forward - tau, ahead - v, sqrt(v * v + FRICTION_SPEED * FRICTION_SPEED)
    return forward * (1.0 - (loss * ahead - gain * back) / root) - backward * (1.0 - (loss * back - gain * ahead) / root)


@inline_kernel
def limit_input(laws, k, x, signals, t, ws):
    """Return x of input k, limited, and for each limit 1 if x is beyond it, else 0: the maximum, then the minimum."""
    i, top, bottom = SWITCH_SIZE * laws.switch[k], laws.limit[k], -laws.limit[k]
    if laws.top[k] >= 0:
        top = evaluate_signal(signals, laws.top[k], t, ws.q, ws.v, ws.stack)[0]
        bottom = evaluate_signal(signals, laws.bottom[k], t, ws.q, ws.v, ws.stack)[0]
    x, above = limit_force(MIN, signals.switches, i, x, top)
    x, below = limit_force(MAX, signals.switches, i + SWITCH_SIZE, x, bottom)
    return x, above, below


@inline_kernel
def limit_force(operation, switches, i, x, bound):
    """Return min or max of x and a bound, on the held side of the switch, and 1 if it is the bound, else 0."""
    limited = where_less(bound, x, 1.0, 0.0) if operation == MIN else where_less(x, bound, 1.0, 0.0)
    free = where_less(0.5, limited, bound, x)                                    # NaN remains NaN
    force, limited, _ = frozen_choice(operation, switches, i, (x, 0.0, 0.0), (bound, 1.0, 0.0), (free, limited, 0.0))
    return force, limited


@inline_kernel
def antiwindup_rate(switches, i, limited, sign, rate):
    """Return the rate of an integral; 0 if the force is `limited` and the rate has the given sign, away from the limit."""
    further = where_less(0.5, limited, sign * rate, -1.0)
    winds, _, _ = frozen_unary(STEP, switches, i, further, 0.0, 0.0, (where_less(0.0, further, 1.0, 0.0), 0.0, 0.0))
    return where_less(0.5, winds, 0.0, rate)


# stops ------------------------------------------------------------------------------------------------------------------

# Stops at position limits of joints. Compliant stops act beyond the limit (Hunt and Crossley 1975, with a linear spring):
#
#     tau -= s k d (1 + c d')        d = s (q - limit) > 0,  s = 1 at an upper limit, -1 at a lower one,  1 + c d' > 0
#
# The force begins at zero, and never pulls. d and 1 + c d' are switches of the state, so that steps end where either passes zero.
#
# Coordinates that rest at hard stops, or stick by rigid friction, are prescribed with zero acceleration. Their generalized force
# by hybrid dynamics minus the applied force is the force of the stop or of friction. It is a switch, too: relative to zero, or to
# the friction at which the coordinate begins to slide. Rigid friction of a coordinate that slides in one direction is
#
#     tau += c_0 + c_1 exp(-c_2 v^2)
#
# Friction is not part of ws.tau after the dynamics (`measure_stop_forces`).

LIMIT, STIFFNESS, DAMPING, STOP_SIZE = range(4)      # indices of the numbers of a stop, and their number
FRICTION_SIZE = 3


class Stops(NamedTuple):
    """Compliant stops (m of them), coordinates at rest (h), and rigid friction."""

    coordinate: np.ndarray   # (m,) int64 of v
    side: np.ndarray         # (m,) int64: 1 upper, -1 lower
    coefficients: np.ndarray      # (STOP_SIZE m,) limit, k, c
    switch: np.ndarray       # (m,) int64: the first of two in Signals.switches
    resting: np.ndarray      # (h,) int64: coordinates that rest at hard stops, then twice those that stick by friction
    resting_switch: np.ndarray  # (h,) int64
    release: np.ndarray      # (h,) force at which a coordinate is released
    sticking: np.ndarray     # (s,) int64: coordinates that stick
    sliding: np.ndarray      # (f,) int64: coordinates with sliding friction
    sliding_friction: np.ndarray    # (FRICTION_SIZE f,) c_0, c_1, c_2
    applied: np.ndarray      # (nv,) workspace: the generalized force without that of a hard stop or of friction


@inline_kernel
def add_stop_forces(stops, q_of_v, signals, ws):
    """Add forces of compliant stops to ws.tau, which is otherwise complete; set the acceleration of coordinates at rest."""
    for j in range(stops.coordinate.size):
        k, i = stops.coordinate[j], SWITCH_SIZE * stops.switch[j]
        d, factor = stop_depth_and_factor(stops, j, q_of_v, ws.q, ws.v)
        d = positive_part(signals.switches, i, d)
        d = where_less(0.0, d, d, 0.0)
        factor = where_less(0.0, d, factor, 1.0)
        ws.tau[k] -= stops.side[j] * stop_force(stops, j, d, positive_part(signals.switches, i + SWITCH_SIZE, factor))
    for j in range(stops.resting.size):
        k = stops.resting[j]
        stops.applied[k] = ws.tau[k]
        ws.a[k] = 0.0
    for j in range(stops.sliding.size):
        k = stops.sliding[j]
        stops.applied[k] = ws.tau[k]
        ws.tau[k] += friction_force(stops, j, ws.v[k])


@inline_kernel
def friction_force(stops, j, v):
    """Of a coordinate that slides at v."""
    m = FRICTION_SIZE * j
    c = load(stops.sliding_friction, m + 1)
    return load(stops.sliding_friction, m) + c * exp(-load(stops.sliding_friction, m + 2) * v * v)


@inline_kernel
def stop_depth_and_factor(stops, j, q_of_v, q, v):
    """d and 1 + c d'."""
    k, s, m = stops.coordinate[j], stops.side[j], STOP_SIZE * j
    return s * (q[q_of_v[k]] - load(stops.coefficients, m + LIMIT)), 1.0 + load(stops.coefficients, m + DAMPING) * (s * v[k])


@inline_kernel
def stop_force(stops, j, d, factor):
    """Of d and of 1 + c d', neither of which is negative."""
    return load(stops.coefficients, STOP_SIZE * j + STIFFNESS) * d * factor


@kernel
def stop_states(stops, q_of_v, q, v, out):
    """Of states q (N, nq), v (N, nv), into out (3, N, m): depth, force, and 1 + c d', not negative. Numbers are float64."""
    for i in range(len(q)):
        for j in range(stops.coordinate.size):
            d, factor = stop_depth_and_factor(stops, j, q_of_v, q[i], v[i])
            factor = max(factor, 0.0)
            out[0, i, j], out[1, i, j], out[2, i, j] = d, stop_force(stops, j, max(d, 0.0), factor), factor


@inline_kernel
def measure_stop_forces(stops, signals, ws):
    """Store the forces of hard stops and friction in their switches, after hybrid dynamics, and remove friction from ws.tau."""
    for j in range(stops.resting.size):
        k = stops.resting[j]
        register_zero_crossing(signals.switches, SWITCH_SIZE * stops.resting_switch[j],
                               ws.tau[k] - stops.applied[k] - load(stops.release, j))
    remove_friction(stops, ws)


@inline_kernel
def remove_friction(stops, ws):
    """Remove friction from ws.tau, after the dynamics."""
    for j in range(stops.sticking.size):
        ws.tau[stops.sticking[j]] = stops.applied[stops.sticking[j]]
    for j in range(stops.sliding.size):
        ws.tau[stops.sliding[j]] = stops.applied[stops.sliding[j]]


@inline_kernel
def positive_part(switches, i, x):
    """Return max(x, 0), on the held side of the switch."""
    return frozen_choice(MAX, switches, i, (x, 0.0, 0.0), (0.0, 0.0, 0.0), (where_less(0.0, x, x, 0.0), 0.0, 0.0))[0]
