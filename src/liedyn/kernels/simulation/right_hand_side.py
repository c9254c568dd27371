"""The right-hand side of a simulation: schedule and signals -> what is prescribed, joint forces, external wrenches ->
hybrid dynamics -> rates of the chart, the velocity and the supplied work.

The state is y = [x (nv); v (nv); work (1)], with q = q0 (+) x about the configuration q0 of the present step. Coordinates
prescribed at position or velocity level take their values from the signal, whatever y holds: no drift.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_pose
from liedyn.joints.passive import resistance
from liedyn.joints.retraction import chart_rate, retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.loop_motion import driven_power, look_around, move_drives, tied_hybrid
from liedyn.kernels.recursions.hybrid import hybrid, hybrid_work
from liedyn.kernels.simulation.elastic_law import MotorLaw, drive_motors
from liedyn.kernels.simulation.signals import POSITION, TORQUE, VELOCITY, value
from liedyn.lie.rows import load3, load_pose, load_twist, store_twist
from liedyn.lie.se3 import add, compose, dAd_inv, dot
from liedyn.lie.vec3 import plus_cross, rotate_back

RUNNING, FINISHED, BAD_SIGNAL, SINGULAR, NOT_FINITE, STEP_TOO_SMALL = range(6)
PASSED, WALL = 30, 31         # a switch of the state is passed in the step just tried; a run with such switches stands at a break


class MotionWork(NamedTuple):
    q: np.ndarray        # (nq,) configuration of the last evaluation
    v: np.ndarray        # (nv,)
    a: np.ndarray        # (nv,)
    tau: np.ndarray      # (nv,)
    F: np.ndarray        # (6n,) external wrenches on bodies, or empty
    wrench: np.ndarray   # (6 slots,) external wrenches on the links that have some, link frames
    stack: np.ndarray    # scratch of the signals
    flag: np.ndarray     # (2,) int64: the signal that was not finite
    memory: np.ndarray   # scratch of hybrid dynamics


class Plant(NamedTuple):
    """What does not change during a run, besides tree, schedule and signals."""

    prescribed: np.ndarray   # (nv,) bool
    slot: np.ndarray         # (forces,) int64: row of `wrench` that a force adds to
    slot_link: np.ndarray    # (slots,) int64
    passive: np.ndarray      # (1,) bool
    law: MotorLaw | None     # of the motors; where None, nothing of it is compiled


@kernel
def evaluate(index, constants, plant, schedule, signals, ties, A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work):
    """Rates at the stages first … last - 1 of a Runge-Kutta step from (t, y0) into K[first + row] …; a lone evaluation is
    stage 0; stage 0 in row 0 is of an accepted state. Signals are read at `ceiling` at the latest.
    ties: LoopPlant, or None for a robot without constraints: then nothing of them is compiled. Leaves in work the state of the
    last stage. Returns a code.

    The only place where the right-hand side is compiled: a call costs about 0.1 us for its many arrays, so a step makes
    one."""
    tree = tree_of(index, constants)
    for s in range(first, last):
        for k in range(y0.size):
            y[k] = y0[k]
        for r in range(s):
            w = h * A[s, r]
            if w != 0.0:
                for k in range(y0.size):
                    y[k] += w * K[r, k]
        code = right_hand_side(index, constants, tree, plant, schedule, signals, ties, min(t + c[s] * h, ceiling), q0, y,
                               K[s + row], s + row == 0, work)
        if code != RUNNING:
            return code
    return RUNNING


@primitive
def right_hand_side(index, constants, tree, plant, schedule, signals, ties, t, q0, y, dy, accepted, work):
    """Writes dy and work (q, v, a, tau, wrench at this state). t may be just below a break. Returns a code."""
    nv = plant.prescribed.size
    retract(tree, q0, y[:nv], work.q)
    for k in range(nv):
        work.v[k] = y[nv + k]
    code = RUNNING
    if not (prescribe(schedule, signals, t, work) and drive_motors(plant.law, tree, signals, t, work)
            and apply_forces(tree, plant, schedule, signals, t, work)):
        code = BAD_SIGNAL
    inner = hybrid_work(work.memory, tree.parent.size, nv)
    power = 0.0
    if ties is None:
        deficit = hybrid(tree, plant.prescribed, work.q, work.v, work.a, work.tau, work.F, plant.passive[0], inner)
    else:
        if not move_drives(signals, ties, t, work) and code == RUNNING:
            code = BAD_SIGNAL
        deficit = tied_hybrid(index, constants, plant, ties, work)
        power = driven_power(index, constants, ties)
    if deficit > 0.0 and code == RUNNING:
        code = SINGULAR
    chart_rate(tree, y[:nv], work.v, dy[:nv])
    for k in range(nv):
        dy[nv + k] = work.a[k]
        power += work.tau[k] * work.v[k]
        if plant.passive[0]:
            power += resistance(tree, k, work.v) * work.v[k]
    if work.F.size:
        for i in range(1, tree.parent.size):
            power += dot(load_twist(work.F, i), load_twist(inner.V, i))
    dy[2 * nv] = power
    if code == RUNNING and not finite_rates(dy):
        code = NOT_FINITE
    if ties is not None and accepted and code == RUNNING:
        code = look_around(index, constants, plant.prescribed, ties, t, work.a)
    return code


@primitive
def finite_rates(dy):
    total = 0.0
    for k in range(dy.size):
        total += dy[k] * 0.0
    return total == 0.0


@primitive
def prescribe(schedule, signals, t, work):
    """Motions first, then torques, which may read the state. False: a signal is not finite (work.flag says which)."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level == TORQUE:
            continue
        x, dx, ddx = value(signals, schedule.signal[k], t, work.q, work.v, work.stack)
        if level == POSITION:
            work.q[schedule.q_of_v[k]] = x
            work.v[k], work.a[k] = dx, ddx
        elif level == VELOCITY:
            work.v[k], work.a[k] = x, dx
            ddx = 0.0
        else:
            work.a[k] = x
            dx, ddx = 0.0, 0.0
        if (x + dx + ddx) * 0.0 != 0.0:
            work.flag[0] = schedule.signal[k]
            return False
    for k in range(schedule.level.size):
        if schedule.level[k] != TORQUE:
            continue
        force, _, _ = value(signals, schedule.signal[k], t, work.q, work.v, work.stack)
        work.flag[0] = schedule.signal[k]
        if schedule.target[k] >= 0:
            x, dx, _ = value(signals, schedule.target[k], t, work.q, work.v, work.stack)
            if (x + dx) * 0.0 != 0.0:
                work.flag[0] = schedule.target[k]
                return False
            force += schedule.kp[k] * (x - work.q[schedule.q_of_v[k]]) + schedule.kd[k] * (dx - work.v[k])
        if force * 0.0 != 0.0:
            return False
        work.tau[k] = force
    return True


@primitive
def impose(tree, schedule, signals, t, q, v, work):
    """Give q and v the values that are prescribed at position and velocity level: after a step, against drift."""
    for k in range(schedule.level.size):
        level = schedule.level[k]
        if level in (POSITION, VELOCITY):
            x, dx, _ = value(signals, schedule.signal[k], t, q, v, work.stack)
            if level == POSITION:
                q[schedule.q_of_v[k]] = x
                v[k] = dx
            else:
                v[k] = x


@primitive
def apply_forces(tree, plant, schedule, signals, t, work):
    """External wrenches into work.wrench and work.F. False: a signal is not finite."""
    for k in range(work.wrench.size):
        work.wrench[k] = 0.0
    for k in range(work.F.size):
        work.F[k] = 0.0
    for j in range(schedule.force_link.size):
        if not schedule.force_from[j] <= t < schedule.force_until[j]:
            continue
        x, _, _ = value(signals, schedule.force_signal[j], t, work.q, work.v, work.stack)
        if x * 0.0 != 0.0:
            work.flag[0] = schedule.force_signal[j]
            return False
        m, f = load_twist(schedule.force_basis, j)
        F = (x * m[0], x * m[1], x * m[2]), (x * f[0], x * f[1], x * f[2])
        if schedule.force_world[j]:
            R = link_rotation(tree, schedule.force_link[j], work.q)
            f = rotate_back(R, F[1])
            F = plus_cross(rotate_back(R, F[0]), load3(schedule.force_point, 3 * j), f), f
        s = plant.slot[j]
        store_twist(work.wrench, s, add(load_twist(work.wrench, s), F))
    for s in range(plant.slot_link.size):
        link = plant.slot_link[s]
        i = tree.link_body[link]
        F = dAd_inv(load_pose(tree.link_pose, link), load_twist(work.wrench, s))
        store_twist(work.F, i, add(load_twist(work.F, i), F))
    return True


@primitive
def link_rotation(tree, link, q):
    """Rotation of a link in the world, along its path to the ground."""
    T, i = load_pose(tree.link_pose, link), tree.link_body[link]
    while i > 0:
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    return T[0]

