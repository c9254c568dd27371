"""Prescribed poses of ball and free joints: configuration, twist and acceleration from signals.

With p(t) and R(t) the joint's v is [w; R^T p'], its a [dw; R^T p'' - w × R^T p'].
"""
from liedyn.jit import kernel, primitive
from liedyn.joints.retraction import store_quaternion
from liedyn.kernels.simulation.signals import signal, three
from liedyn.lie.rotation_motion import angles_motion, angles_quaternion, rotation_vector_motion
from liedyn.lie.rows import store3
from liedyn.lie.so3 import quaternion_exp, quaternion_product, quaternion_rotation, quaternion_unit
from liedyn.lie.vec3 import cross, rotate_back, sub3

SIGNALS = 10                     # of a pose


@kernel
def prescribe_poses(poses, signals, t, q, v, a, work):
    """Writes the coordinates of these joints into q, v, a. work: see `right_hand_side.MotionWork`; work.flag: a signal that is
    not finite."""
    for k in range(poses.q.size):
        i, j = poses.q[k], poses.v[k]
        u, w, dw = turn_of(poses, k, signals, t, work)
        store3(v, j, w)
        store3(a, j, dw)
        if poses.free[k]:
            p, dp, ddp = three(signals, poses.signal, SIGNALS * k, t, work)
            R = quaternion_rotation(u)
            b = rotate_back(R, dp)
            store3(q, i, p)
            store3(v, j + 3, b)
            store3(a, j + 3, sub3(rotate_back(R, ddp), cross(w, b)))
            i += 3
        store_quaternion(q, i, u)


@primitive
def turn_of(poses, k, signals, t, work):
    """Quaternion, w, dw."""
    first = SIGNALS * k + 3
    x, dx, ddx = three(signals, poses.signal, first, t, work)
    if poses.curved[k]:
        w, dw = rotation_vector_motion(x, dx, ddx)
        u = quaternion_product(constants(signals, poses.signal, first + 3, t, work), quaternion_exp(x))
    else:
        _, w, dw = angles_motion(x, dx, ddx)
        u = angles_quaternion(x)
    return quaternion_unit(u), w, dw


@primitive
def constants(signals, numbers, first, t, work):
    """Four signals of which the values alone are used."""
    return (signal(signals, numbers[first], t, work.q, work.v, work.stack)[0],
            signal(signals, numbers[first + 1], t, work.q, work.v, work.stack)[0],
            signal(signals, numbers[first + 2], t, work.q, work.v, work.stack)[0],
            signal(signals, numbers[first + 3], t, work.q, work.v, work.stack)[0])
