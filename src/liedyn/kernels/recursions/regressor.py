"""The equations of motion as linear functions of the inertial parameters: tau = Y pi, E = y pi, h = Z pi.

S^T I V and S^T (I dV - ad*_V I V) (K1 (41), PBP §4) are linear in the ten numbers of I = (m, h, A). With V = (w, v),
dV = (dw, dv) and the acceleration alpha = dv + w x v of the link's origin, the second is power of the wrench

    moment  A dw + w x A w + h x alpha        force  m alpha + dw x h + w x (w x h)
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import FRICTION_SPEED, NV
from liedyn.joints.motion import joint_add, joint_column, joint_eta, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, bad_motion, finite
from liedyn.kernels.recursions.coriolis import clear
from liedyn.kernels.recursions.kinematics import TWISTS, kinematics, kinematics_work
from liedyn.kernels.recursions.newton_euler import store_ground
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.lanes import load, number_like, sqrt, store
from liedyn.lie.rows import load3, load_pose, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, compose
from liedyn.lie.vec3 import cross, dot3, plus_cross, rotate_back

# A plan (int64) says what the columns are: their number, how many links; the links, ten columns each; then for each
# coordinate the column of its armature, damping, friction, stiffness and spring load (nv each), or -1.
ARMATURE, DAMPING, FRICTION, STIFFNESS, LOAD = range(5)


class RegressorWork(NamedTuple):
    T: np.ndarray     # (12n,) pose in the parent
    V: np.ndarray     # (6n,) twist
    dV: np.ndarray    # (6n,) its component-wise rate, gravity included


@primitive
def regressor_work(memory, n): return RegressorWork(memory[:12 * n], memory[12 * n:18 * n], memory[18 * n:24 * n])


@primitive
def inertia_row(S, V):
    """The row y with S^T I V = y (m, h, A): ten numbers."""
    (a, b), (w, v) = S, V
    h = plus_cross(cross(v, a), b, w)
    return (dot3(b, v), h[0], h[1], h[2], a[0] * w[0], a[0] * w[1] + a[1] * w[0], a[0] * w[2] + a[2] * w[0],
            a[1] * w[1], a[1] * w[2] + a[2] * w[1], a[2] * w[2])


@primitive
def wrench_row(S, w, dw, alpha):
    """The row y with S^T (I dV - ad*_V I V) = y (m, h, A)."""
    a, b = S
    c, h = cross(a, w), plus_cross(plus_cross(cross(alpha, a), b, dw), cross(b, w), w)
    return (dot3(b, alpha), h[0], h[1], h[2], a[0] * dw[0] + c[0] * w[0],
            a[0] * dw[1] + a[1] * dw[0] + (c[0] * w[1] + c[1] * w[0]), a[0] * dw[2] + a[2] * dw[0] + (c[0] * w[2] + c[2] * w[0]),
            a[1] * dw[1] + c[1] * w[1], a[1] * dw[2] + a[2] * dw[1] + (c[1] * w[2] + c[2] * w[1]), a[2] * dw[2] + c[2] * w[2])


@primitive
def identity(zero):
    one = zero + 1.0
    return (one, zero, zero, zero, one, zero, zero, zero, one), (zero, zero, zero)


@primitive
def joint_parameter(plan, what, k, nv):
    """Column of a joint parameter of coordinate k, or -1."""
    return plan[2 + plan[1] + what * nv + k]


@kernel
def regressor(tree, plan, q, v, a, Y, work):
    """Writes work and, where they are not zero for all states, numbers of Y (nv P, by rows): every link's ten columns in the rows
    of the joints between it and the ground, and the joints' own."""
    columns, zero = plan[0], number_like(q, 0.0)
    store_ground(tree, q, work.V, work.dV)
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, load_twist(work.V, p)), v)
        dV = add(Ad_inv(T, load_twist(work.dV, p)), joint_eta(tree, i, V, v))
        store_pose(work.T, i, T)
        store_twist(work.V, i, V)
        store_twist(work.dV, i, joint_add(tree, i, dV, a))
    for j in range(plan[1]):
        link = plan[2 + j]
        i = tree.link_body[link]
        T = compose(identity(zero), load_pose(tree.link_pose, link))          # of the link in body i
        (w, v_link), (dw, dv) = Ad_inv(T, load_twist(work.V, i)), Ad_inv(T, load_twist(work.dV, i))
        alpha = plus_cross(dv, w, v_link)
        while i > 0:
            for c in range(NV[tree.kind[i]]):
                row = wrench_row(Ad_inv(T, joint_column(tree, i, c, zero)), w, dw, alpha)
                first = (tree.iv[i] + c) * columns + 10 * j
                for r in range(10):
                    store(Y, first + r, row[r])
            T = compose(load_pose(work.T, i), T)
            i = tree.parent[i]
    joint_columns(tree, plan, q, v, a, Y)


@primitive
def joint_columns(tree, plan, q, v, a, Y):
    """Columns of armature, damping, smoothed friction and springs (`joints.passive`), as forces that motors must give."""
    nv, one = tree.armature.shape[0], number_like(q, 1.0)
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            row, x = k * plan[0], load(v, k)
            if joint_parameter(plan, ARMATURE, k, nv) >= 0:
                store(Y, row + joint_parameter(plan, ARMATURE, k, nv), load(a, k))
            if joint_parameter(plan, DAMPING, k, nv) >= 0:
                store(Y, row + joint_parameter(plan, DAMPING, k, nv), x)
            if joint_parameter(plan, FRICTION, k, nv) >= 0:
                store(Y, row + joint_parameter(plan, FRICTION, k, nv), x / sqrt(x * x + FRICTION_SPEED * FRICTION_SPEED))
            if joint_parameter(plan, STIFFNESS, k, nv) >= 0:
                store(Y, row + joint_parameter(plan, STIFFNESS, k, nv), load(q, tree.iq[i]))
                store(Y, row + joint_parameter(plan, LOAD, k, nv), -one)


@kernel
def sum_regressors(tree, plan, q, v, y, work):
    """Writes y (8 P, by rows), after `kinematics` with twists: kinetic energy, potential energy, momentum (6) in the world.

    Of a spring, k/2 q^2 - (k rest) q: its energy less a constant."""
    columns, nv, zero = plan[0], tree.armature.shape[0], number_like(q, 0.0)
    clear(y)
    g = load3(tree.dV0, 3)                                                     # minus the acceleration of gravity
    for j in range(plan[1]):
        i = tree.link_body[plan[2 + j]]
        X = load_pose(tree.link_pose, plan[2 + j])
        R, p = compose(load_pose(work.T, i), X)
        V, h = Ad_inv(X, load_twist(work.V, i)), rotate_back(R, g)
        kinetic = inertia_row(V, V)
        for r in range(10):
            store(y, 10 * j + r, 0.5 * kinetic[r])
        store(y, columns + 10 * j, dot3(g, p))                                 # g (m p + R h)
        for r in range(3):
            store(y, columns + 10 * j + 1 + r, h[r])
        for c in range(6):
            e = unit(c, zero)
            row = inertia_row(Ad_inv((R, p), e), V)                            # e^T Ad*_{T^-1} I V
            for r in range(10):
                store(y, (2 + c) * columns + 10 * j + r, row[r])
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            x = load(v, k)
            if joint_parameter(plan, ARMATURE, k, nv) >= 0:
                store(y, joint_parameter(plan, ARMATURE, k, nv), 0.5 * x * x)
            if joint_parameter(plan, STIFFNESS, k, nv) >= 0:
                z = load(q, tree.iq[i])
                store(y, columns + joint_parameter(plan, STIFFNESS, k, nv), 0.5 * z * z)
                store(y, columns + joint_parameter(plan, LOAD, k, nv), -z)


@primitive
def unit(c, zero):
    """Unit twist c."""
    one = zero + 1.0
    return ((one if c == 0 else zero, one if c == 1 else zero, one if c == 2 else zero),
            (one if c == 3 else zero, one if c == 4 else zero, one if c == 5 else zero))


# from Python ------------------------------------------------------------------------------------------------------
def regressor_memory(n, nq, nv, size): return 24 * n + nq + 2 * nv + size


@entry("i8(i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def regressors(index, constants, memory, plan, q, v, a, Y, first, last):
    """Y (N, nv P) of states first … last - 1. Returns a code of `checks`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, m = tree_of(index, constants), memory
    work, m = regressor_work(m, n), m[24 * n:]
    Q, v1, a1, block = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:nq + 2 * nv + Y.shape[1]]
    clear(block)
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(v, k, v1)
        pack(a, k, a1)
        code = bad_motion(tree, Q, v1, a1, nq, nv)
        if code != OK:
            return code
        regressor(tree, plan, Q, v1, a1, block, work)
        if not finite(block, Y.shape[1]):
            return BAD_RESULT
        unpack(block, Y, k)
    return OK


@entry("i8(i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def sums(index, constants, memory, plan, q, v, y, first, last):
    """y (N, 8 P) of states first … last - 1: rows of kinetic energy, potential energy and momentum (6)."""
    n, nq, nv = index[0], index[1], index[2]
    tree, m = tree_of(index, constants), memory
    work, m = kinematics_work(m, n), m[24 * n:]
    Q, v1, block = m[:nq], m[nq:nq + nv], m[nq + nv:nq + nv + y.shape[1]]
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(v, k, v1)
        code = bad_motion(tree, Q, v1, v1, nq, nv)
        if code != OK:
            return code
        kinematics(tree, Q, v1, v1, TWISTS, work)
        sum_regressors(tree, plan, Q, v1, block, work)
        if not finite(block, y.shape[1]):
            return BAD_RESULT
        unpack(block, y, k)
    return OK
