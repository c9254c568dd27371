"""Constraints of a configuration and a motion: residual, A v, gamma (A a + gamma = 0) and A itself."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.closures import CHAIN, FIRST, LENGTH, ROW_COUNT, loops_of
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_add, joint_eta, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, BAD_V, OK, SHAPE, bad_configuration, finite, fits
from liedyn.kernels.loops.loop_rows import accelerations, closure_frames, column_of, residuals, row_memory, row_work, velocities
from liedyn.kernels.loops.loop_sweep import sweep_rows
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.lanes import number_like, store
from liedyn.lie.matrices import get_cell
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
def constraint_state(tree, loops, q, v, drive, what, none, zeros, work, rows, out):
    """Writes out: (m) of RESIDUAL, VELOCITY or BIAS, or (m nv) of JACOBIAN. none (nv) prescribed, zeros (nv)."""
    tree_motion(tree, q, v, what in (VELOCITY, BIAS), work)
    closure_frames(tree, loops, work.T, drive, rows)
    if what == RESIDUAL:
        residuals(loops, q, rows, out)
    elif what == VELOCITY:
        velocities(loops, v, work.V, drive, rows, out)
    elif what == BIAS:
        accelerations(loops, zeros, work.V, work.dV, drive, rows, out)
    else:
        sweep_rows(tree, loops, none, work.T, work.V, zeros, False, rows)
        copy_rows(tree, loops, rows.X, out)


@primitive
def copy_rows(tree, loops, X, A):
    """X where the constraints' chains have coordinates, zero elsewhere."""
    nv, number = tree.above.size, number_like(A, 0.0)
    for k in range(A.shape[0]):
        store(A, k, number)
    for c in range(loops.record.shape[0]):
        chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
        first, column = loops.record[c, FIRST], column_of(loops, c, 0, number)
        for k in range(chain.size):
            i = chain[k]
            for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                for r in range(loops.record[c, ROW_COUNT]):
                    store(A, (first + r) * nv + o, get_cell(X, nv, column + r, o, number))


# from Python ------------------------------------------------------------------------------------------------------
row_memory_of = primitive(row_memory)


def constraint_state_memory(n, nq, nv, nc, m, driven):
    return 8 + 24 * n + row_memory(n, nv, nc, m) + nq + 2 * nv + 24 * driven + m * nv + m


_ENTRY = ("i8(i8[::1], f8[::1], {0}, i8[::1], f8[::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], i8, i8)")


@entry(_ENTRY.format("f8[::1]"), _ENTRY.format("f8[:,::1]"), nogil=True)
def constraint_states(index, constants, memory, loop_index, loop_constants, none, q, v, drive, what, out, first, last):
    """States first … last - 1. drive (N, 24 driven). out (N, m), or (N, m nv) of JACOBIAN."""
    n, nq, nv = index[0], index[1], index[2]
    nc, m, driven, rows = loop_index[0], loop_index[1], loop_index[3], q.shape[0]
    size = m * nv if what == JACOBIAN else m
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(drive, rows, 24 * driven) and fits(out, rows, size)):
        return SHAPE
    tree, loops, x = tree_of(index, constants), loops_of(loop_index, loop_constants), memory
    k = (row_memory_of(n, nv, nc, m) + 7) // 8 * 8
    rows_memory, x = x[:k], x[k:]
    Q, V, zeros, D, x = x[:nq], x[nq:nq + nv], x[nq + nv:nq + 2 * nv], x[nq + 2 * nv:nq + 2 * nv + 24 * driven], x[nq + 2 * nv
                                                                                                                + 24 * driven:]
    work, Out = TreeMotion(x[:12 * n], x[12 * n:18 * n], x[18 * n:24 * n]), x[24 * n:24 * n + size]
    work_rows = row_work(rows_memory, n, nv, nc, m)
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
        constraint_state(tree, loops, Q, V, D, what, none, zeros, work, work_rows, Out)
        if not finite(Out, size):
            return BAD_RESULT
        unpack(Out, out, k)
    return OK
