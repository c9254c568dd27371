"""Mass matrix by composite bodies: M = S^T I_c S along each path to the root (PBP (38), (40); Walker and Orin's recursion)."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_column, joint_pose, store_joint_force
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, bad_configuration, finite
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.inertia import add_rigid, momentum, rigid_to_parent
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, store_pose, store_rigid
from liedyn.lie.se3 import dAd_inv


class CompositeWork(NamedTuple):
    T: np.ndarray     # (12n,) pose in the parent
    I: np.ndarray     # (10n,) composite inertia: the body and all that hangs on it


@primitive
def composite_work(memory, n): return CompositeWork(memory[:12 * n], memory[12 * n:22 * n])


def composite_memory(n, nv): return 22 * n


@primitive
def begin(tree, q, work):
    """Writes work: poses, and inertias of the bodies alone."""
    zero = number_like(q, 0.0)
    for i in range(1, tree.parent.size):
        store_pose(work.T, i, joint_pose(tree, i, q))
        m, h, A = load_rigid(tree.I, i)
        store_rigid(work.I, i, (m + zero, (h[0] + zero, h[1] + zero, h[2] + zero),
                                (A[0] + zero, A[1] + zero, A[2] + zero, A[3] + zero, A[4] + zero, A[5] + zero)))


@primitive
def hand_to_parent(tree, i, work):
    p = tree.parent[i]
    if p > 0:
        I = rigid_to_parent(load_pose(work.T, i), load_rigid(work.I, i))
        store_rigid(work.I, p, add_rigid(load_rigid(work.I, p), I))


@kernel
def composite(tree, q, M, work):
    """Writes M (nv nv, by rows) and work. Armature is on its diagonal."""
    nv, zero = tree.armature.shape[0], number_like(q, 0.0)
    for k in range(nv * nv):
        store(M, k, zero)
    begin(tree, q, work)
    for i in range(tree.parent.size - 1, 0, -1):
        I = load_rigid(work.I, i)
        hand_to_parent(tree, i, work)
        for c in range(NV[tree.kind[i]]):
            k = tree.iv[i] + c
            F = momentum(I, joint_column(tree, i, c, zero))        # what column k moves, as a wrench in i …
            row = M[k * nv:(k + 1) * nv]
            store_joint_force(tree, i, F, row)
            j = i
            while tree.parent[j] > 0:                              # … and in each ancestor
                F = dAd_inv(load_pose(work.T, j), F)
                j = tree.parent[j]
                store_joint_force(tree, j, F, row)
            for above in range(tree.iv[i]):
                store(M, above * nv + k, load(row, above))
    for k in range(nv):
        store(M, k * nv + k, load(M, k * nv + k) + load(tree.armature, k))


# from Python ------------------------------------------------------------------------------------------------------
def mass_memory(n, nq, nv, nl): return composite_memory(n, nv) + nq + nv * nv


@entry("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def mass_matrices(index, constants, memory, q, M, first, last):
    """M (N, nv nv) of states first … last - 1. Returns a code of `checks`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, m = tree_of(index, constants), memory
    Q, block, m = m[:nq], m[nq:nq + nv * nv], m[nq + nv * nv:]
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        code = bad_configuration(tree, Q, nq)
        if code != OK:
            return code
        composite(tree, Q, block, composite_work(m, n))
        if not finite(block, nv * nv):
            return BAD_RESULT
        unpack(block, M, k)
    return OK
