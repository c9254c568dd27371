"""Constraints of a configuration and a motion: residual, A v, gamma (A a + gamma = 0) and A itself."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.closures import loops_of
from liedyn.joints.motion import joint_add, joint_eta, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, BAD_V, OK, SHAPE, bad_configuration, finite, fits
from liedyn.kernels.loops.loop_rows import accelerations, closure_frames, frame_work, residuals, store_rows, velocities
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.lanes import number_like, store
from liedyn.lie.rows import load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add

RESIDUAL, VELOCITY, BIAS, JACOBIAN = range(4)


class TreeMotion(NamedTuple):
    T: np.ndarray     # (12n,) pose in the parent
    V: np.ndarray     # (6n,) twist
    dV: np.ndarray    # (6n,) its rate, with a = 0 and without gravity


@primitive
def tree_motion(tree, q, v, moving, work):
    """Writes work; V and dV only if `moving`."""
    zero = number_like(q, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
    store_twist(work.V, 0, rest)
    store_twist(work.dV, 0, rest)
    for i in range(1, tree.parent.size):
        T = joint_pose(tree, i, q)
        store_pose(work.T, i, T)
        if moving:
            V = joint_add(tree, i, Ad_inv(T, load_twist(work.V, tree.parent[i])), v)
            store_twist(work.V, i, V)
            store_twist(work.dV, i, add(Ad_inv(T, load_twist(work.dV, tree.parent[i])), joint_eta(tree, i, V, v)))


@kernel
def constraint_state(tree, loops, q, v, drive, what, zeros, work, rows, columns, out):
    """Writes out: (m) of RESIDUAL, VELOCITY or BIAS, or (m nv) of JACOBIAN. zeros (nv); columns (6nv): scratch."""
    tree_motion(tree, q, v, what in (VELOCITY, BIAS), work)
    closure_frames(tree, loops, work.T, drive, rows)
    if what == RESIDUAL:
        residuals(loops, q, rows, out)
    elif what == VELOCITY:
        velocities(loops, v, work.V, drive, rows, out)
    elif what == BIAS:
        accelerations(loops, zeros, work.V, work.dV, drive, rows, out)
    else:
        store_rows(tree, loops, work.T, rows, columns, out)


# from Python ------------------------------------------------------------------------------------------------------
def constraint_state_memory(n, nq, nv, nc, m, driven):
    return 24 * n + 27 * nc + nq + 8 * nv + 24 * driven + m * nv + m


_ENTRY = ("i8(i8[::1], f8[::1], {0}, i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], i8, i8)")


@entry(_ENTRY.format("f8[::1]"), _ENTRY.format("f8[:,::1]"), nogil=True)
def constraint_states(index, constants, memory, loop_index, loop_constants, q, v, drive, what, out, first, last):
    """States first … last - 1. drive (N, 24 driven). out (N, m), or (N, m nv) of JACOBIAN."""
    n, nq, nv = index[0], index[1], index[2]
    nc, m, driven, rows = loop_index[0], loop_index[1], loop_index[3], q.shape[0]
    size = m * nv if what == JACOBIAN else m
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(drive, rows, 24 * driven) and fits(out, rows, size)):
        return SHAPE
    tree, loops, x = tree_of(index, constants), loops_of(loop_index, loop_constants), memory
    Q, V, zeros, x = x[:nq], x[nq:nq + nv], x[nq + nv:nq + 2 * nv], x[nq + 2 * nv:]
    D, x = x[:24 * driven], x[24 * driven:]
    frames, columns, x = frame_work(x[:27 * nc], nc), x[27 * nc:27 * nc + 6 * nv], x[27 * nc + 6 * nv:]
    work, Out = TreeMotion(x[:12 * n], x[12 * n:18 * n], x[18 * n:24 * n]), x[24 * n:24 * n + size]
    for k in range(nv):
        store(zeros, k, number_like(zeros, 0.0))
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(v, k, V)
        if driven:
            pack(drive, k, D)
        code = bad_configuration(tree, Q, nq)
        if code == OK and not finite(V, nv):
            code = BAD_V
        if code == OK and not finite(D, 24 * driven):
            code = BAD_F_EXT
        if code != OK:
            return code
        constraint_state(tree, loops, Q, V, D, what, zeros, work, frames, columns, Out)
        if not finite(Out, size):
            return BAD_RESULT
        unpack(Out, out, k)
    return OK
