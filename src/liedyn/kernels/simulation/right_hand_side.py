"""The right-hand side of a simulation: schedule and signals -> what is prescribed, joint forces, external wrenches ->
hybrid dynamics -> rates of the chart, the velocity and the supplied work.

The state is y = [x (nv); v (nv); z (m); work (1)], with q = q0 (+) x about the configuration q0 of the present step, and the
integrals z of pid laws. Coordinates prescribed at position or velocity level take their values from the signal, whatever y
holds: no drift.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.motion import joint_pose
from liedyn.joints.passive import resistance
from liedyn.joints.retraction import chart_rate, retract
from liedyn.kernels.recursions.hybrid import complete_motion, hybrid_work
from liedyn.kernels.simulation.contact import Contacts, push_contacts
from liedyn.kernels.simulation.elastic_law import MotorLaw, drive_motors
from liedyn.kernels.simulation.joint_laws import JointLaws, drive_joints
from liedyn.kernels.simulation.link_points import look_at_points, measure_forces
from liedyn.kernels.simulation.poses import prescribe_poses
from liedyn.kernels.simulation.signals import POSITION, TORQUE, VELOCITY, note, signal
from liedyn.kernels.simulation.stops import Stops, push_back, weigh
from liedyn.lie.lanes import absolute, number_like, where_less
from liedyn.lie.rows import load3, load_pose, load_twist, store_twist
from liedyn.lie.se3 import add, compose, dAd_inv, dot
from liedyn.lie.vec3 import plus_cross, rotate_back

RUNNING, FINISHED, BAD_SIGNAL, SINGULAR, NOT_FINITE, STEP_TOO_SMALL = range(6)
NOT_CONVERGED = 20           # an iteration for the end of a step
# a switch of the state is passed in the step just tried; a run with such switches stands at a break; at an event
PASSED, WALL, EVENT = 30, 31, 33


class MotionWork(NamedTuple):
    q: np.ndarray        # (nq,) configuration of the last evaluation
    v: np.ndarray        # (nv,)
    a: np.ndarray        # (nv,)
    tau: np.ndarray      # (nv,)
    F: np.ndarray        # (6n,) external wrenches on bodies, or empty
    wrench: np.ndarray   # (6 slots,) external wrenches on the links that have some, link frames
    stack: np.ndarray    # scratch of the signals
    flag: np.ndarray     # (2,) the signal that was not finite, -1: none
    memory: np.ndarray   # scratch of hybrid dynamics
    z: np.ndarray        # (2m,) integrals of pid laws, then their rates


class Plant(NamedTuple):
    """What does not change during a run, besides tree, schedule and signals."""

    prescribed: np.ndarray   # (nv,) bool
    slot: np.ndarray         # (forces,) int64: row of `wrench` that a force adds to
    slot_link: np.ndarray    # (slots,) int64
    passive: np.ndarray      # (1,) bool
    law: MotorLaw | None     # of the motors; where None, nothing of it is compiled
    contacts: Contacts | None        # the same
    joint_laws: JointLaws | None     # of other joints, and limits of forces; the same
    stops: Stops                     # at limits of joints; perhaps none


@primitive
def right_hand_side(tree, plant, schedule, signals, t, q0, y, dy, work):
    """Of an open tree. Writes dy and work (q, v, a, tau, wrench at this state). t may be just below a break. Returns a code, a
    number."""
    set_out(tree, plant, schedule, signals, t, q0, y, work)
    inner = hybrid_work(work.memory, tree.parent.size, plant.prescribed.size)
    deficit = complete_motion(tree, plant.prescribed, work.q, work.v, work.a, work.tau, work.F, plant.passive[0], inner)
    watch(schedule, signals, t, work)
    power = number_like(y, 0.0)
    if work.F.size:
        for i in range(1, tree.parent.size):
            power = power + dot(load_twist(work.F, i), load_twist(inner.V, i))
    return rates(tree, plant, signals, y, deficit, power, dy, work)


@primitive
def set_out(tree, plant, schedule, signals, t, q0, y, work):
    """The state, and what is prescribed and acts there, into work."""
    nv = plant.prescribed.size
    retract(tree, q0, y[:nv], work.q)
    for k in range(nv):
        work.v[k] = y[nv + k]
    for k in range(schedule.integral.size):
        work.z[k] = y[2 * nv + k]
    act(plant, tree, schedule, signals, t, work)


@primitive
def rates(tree, plant, signals, y, deficit, power, dy, work):
    """Writes dy, once a and tau are known. deficit: of a pivot; power: of external wrenches and constraints. Returns a code."""
    nv = plant.prescribed.size
    weigh(plant.stops, signals, work)
    chart_rate(tree, y[:nv], work.v, dy[:nv])
    for k in range(nv):
        dy[nv + k] = work.a[k]
    n = work.z.size // 2
    for k in range(n):
        dy[2 * nv + k] = work.z[n + k]
    dy[2 * nv + n] = joint_power(tree, plant, work, power)
    return where_less(-0.5, work.flag[0], BAD_SIGNAL, where_less(0.0, deficit, SINGULAR, finite_rates(dy)))


@primitive
def joint_power(tree, plant, work, power):
    """power, and that of motors and passive forces but springs."""
    for k in range(work.v.size):
        power += work.tau[k] * work.v[k]
        if plant.passive[0]:
            power += resistance(tree, k, work.v) * work.v[k]
    return power


@primitive
def finite_rates(dy):
    """RUNNING where they are."""
    total = 0.0
    for k in range(dy.size):
        total += absolute(dy[k])
    return where_less(total, np.inf, RUNNING, NOT_FINITE)


@primitive
def act(plant, tree, schedule, signals, t, work):
    """What is prescribed, joint forces and external wrenches at t, into work. work.flag: a signal that is not finite."""
    work.flag[0] = -1.0
    prescribe(tree, schedule, signals, t, work)
    drive_motors(plant.law, tree, signals, t, work)
    drive_joints(plant.joint_laws, tree, plant.passive, schedule.q_of_v, signals, t, work)
    push_back(plant.stops, schedule.q_of_v, signals, work)
    apply_forces(tree, plant, schedule, signals, t, work)


@primitive
def watch(schedule, signals, t, work):
    """Events, once all joint forces are known."""
    measure_forces(work.tau, signals.measured)
    for k in range(schedule.watch.size):
        if schedule.watch[k] >= 0:
            x, _, _ = signal(signals, schedule.watch[k], t, work.q, work.v, work.stack)
            note(work.flag, schedule.watch[k], x)


@primitive
def prescribe(tree, schedule, signals, t, work):
    """Motions first, then torques, which may read the state and the points of links."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level == TORQUE or (level == POSITION and schedule.q_of_v[k] < 0):
            continue
        x, dx, ddx = signal(signals, schedule.signal[k], t, work.q, work.v, work.stack)
        if level == POSITION:
            work.q[schedule.q_of_v[k]] = x
            work.v[k], work.a[k] = dx, ddx
        elif level == VELOCITY:
            work.v[k], work.a[k] = x, dx
            ddx = 0.0
        else:
            work.a[k] = x
            dx, ddx = 0.0, 0.0
        note(work.flag, schedule.signal[k], x + dx + ddx)
    prescribe_poses(schedule.poses, signals, t, work.q, work.v, work.a, work)
    look_at_points(signals.points, tree, work.q, work.v, signals.measured)
    for k in range(schedule.level.size):
        if schedule.level[k] != TORQUE:
            continue
        force, _, _ = signal(signals, schedule.signal[k], t, work.q, work.v, work.stack)
        if schedule.target[k] >= 0:
            x, dx, _ = signal(signals, schedule.target[k], t, work.q, work.v, work.stack)
            note(work.flag, schedule.target[k], x + dx)
            force += schedule.kp[k] * (x - work.q[schedule.q_of_v[k]]) + schedule.kd[k] * (dx - work.v[k])
        note(work.flag, schedule.signal[k], force)
        work.tau[k] = force
    integrate_errors(schedule, signals, t, work)


@primitive
def integrate_errors(schedule, signals, t, work):
    """Forces of integrals, and their rates."""
    n = schedule.integral.size
    for j in range(n):
        k = schedule.integral[j]
        x, _, _ = signal(signals, schedule.target[k], t, work.q, work.v, work.stack)
        work.tau[k] += work.z[j]
        work.z[n + j] = schedule.ki[j] * (x - work.q[schedule.q_of_v[k]])


@primitive
def impose(schedule, signals, t, q, v, work):
    """Give q and v the values that are prescribed at position and velocity level: after a step, against drift."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level == VELOCITY or (level == POSITION and schedule.q_of_v[k] >= 0):
            x, dx, _ = signal(signals, schedule.signal[k], t, q, v, work.stack)
            if level == POSITION:
                q[schedule.q_of_v[k]] = x
                v[k] = dx
            else:
                v[k] = x
    prescribe_poses(schedule.poses, signals, t, q, v, work.a, work)


@primitive
def apply_forces(tree, plant, schedule, signals, t, work):
    """External wrenches into work.wrench and work.F."""
    for k in range(work.wrench.size):
        work.wrench[k] = 0.0
    for k in range(work.F.size):
        work.F[k] = 0.0
    for j in range(schedule.force_link.size):
        x, _, _ = signal(signals, schedule.force_signal[j], t, work.q, work.v, work.stack)
        x = where_less(t, schedule.force_from[j], 0.0, where_less(t, schedule.force_until[j], x, 0.0))
        note(work.flag, schedule.force_signal[j], x)
        m, f = load_twist(schedule.force_basis, j)
        F = (x * m[0], x * m[1], x * m[2]), (x * f[0], x * f[1], x * f[2])
        if schedule.force_world[j]:
            R = link_rotation(tree, schedule.force_link[j], work.q)
            f = rotate_back(R, F[1])
            F = plus_cross(rotate_back(R, F[0]), load3(schedule.force_point, 3 * j), f), f
        s = plant.slot[j]
        store_twist(work.wrench, s, add(load_twist(work.wrench, s), F))
    push_contacts(plant.contacts, tree, signals.held, work)
    for s in range(plant.slot_link.size):
        link = plant.slot_link[s]
        i = tree.link_body[link]
        F = dAd_inv(load_pose(tree.link_pose, link), load_twist(work.wrench, s))
        store_twist(work.F, i, add(load_twist(work.F, i), F))


@primitive
def link_rotation(tree, link, q):
    """Rotation of a link in the world, along its path to the ground."""
    T, i = load_pose(tree.link_pose, link), tree.link_body[link]
    while i > 0:
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    return T[0]

