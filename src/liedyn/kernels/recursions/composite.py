"""Mass matrix by composite bodies: M = S^T I_c S along each path to the root (PBP (38), (40); Walker and Orin's recursion)."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_column, joint_pose, rigid_to_parent, store_joint_force
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give, take_configuration
from liedyn.lie.inertia import add_rigid, momentum, rigid_like
from liedyn.lie.lanes import WIDTH, load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, store_pose, store_rigid
from liedyn.lie.se3 import dAd_inv
from liedyn.seam.views import carve


class CompositeWork(NamedTuple):
    T: np.ndarray     # (12n,) pose in the parent
    I: np.ndarray     # (10n,) composite inertia: the body and all that hangs on it


@primitive
def composite_work(memory, n): return CompositeWork(*carve(memory, (12 * n, 10 * n))[:-1])


def composite_memory(n): return 22 * n


@primitive
def begin(tree, q, work):
    """Writes work: poses, and inertias of the bodies alone."""
    zero = number_like(q, 0.0)
    for i in range(1, tree.parent.size):
        store_pose(work.T, i, joint_pose(tree, i, q))
        store_rigid(work.I, i, rigid_like(load_rigid(tree.J, i), zero))


@primitive
def hand_to_parent(tree, i, q, work):
    p = tree.parent[i]
    if p > 0:
        I = rigid_to_parent(tree, i, q, load_pose(work.T, i), load_rigid(work.I, i))
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
        hand_to_parent(tree, i, q, work)
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
def mass_memory(n, nq, nv, nl): return composite_memory(n) + nq + nv * nv


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def mass_matrices(index, constants, memory, q, M, first, last):
    """M (N, nv nv) of states first … last - 1. Returns a code of `checks`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, block, m) = tree_of(index, constants), carve(memory, (nq, nv * nv))
    work = composite_work(m, n)
    for k in range(first, last, WIDTH):
        code = take_configuration(tree, q, k, Q)
        if code != OK:
            return code
        composite(tree, Q, block, work)
        if not give(block, M, k):
            return BAD_RESULT
    return OK
