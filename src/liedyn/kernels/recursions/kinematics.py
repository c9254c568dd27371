"""Poses, twists and accelerations of bodies and links (K1 (34)-(40); PBP (67)-(73); PL (15), (16))."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.motion import joint_add, joint_eta, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_A, BAD_F_EXT, BAD_RESULT, BAD_V, OK, finite, take_configuration
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import WIDTH, number_like
from liedyn.lie.rows import load_pose, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, compose, dAd_inv, identity, zero6
from liedyn.seam.views import carve

POSES, TWISTS, ACCELERATIONS = 0, 1, 2


class KinematicsWork(NamedTuple):
    T: np.ndarray     # (12n,) pose in the world
    V: np.ndarray     # (6n,) twist, body frame
    dV: np.ndarray    # (6n,) its component-wise rate, without gravity


@primitive
def kinematics_work(memory, n): return KinematicsWork(*carve(memory, (12 * n, 6 * n, 6 * n))[:-1])


def kinematics_memory(n): return 24 * n


@kernel
def kinematics(tree, q, v, a, level, work):
    """Writes work up to `level`: POSES, TWISTS, ACCELERATIONS."""
    zero = number_like(q, 0.0)
    rest = zero6(zero)
    store_pose(work.T, 0, identity(zero))
    store_twist(work.V, 0, rest)
    store_twist(work.dV, 0, rest)
    for i in range(1, tree.parent.size):
        p = tree.parent[i]
        T = joint_pose(tree, i, q)
        store_pose(work.T, i, compose(load_pose(work.T, p), T))
        if level >= TWISTS:
            V = joint_add(tree, i, Ad_inv(T, load_twist(work.V, p)), v)
            store_twist(work.V, i, V)
            if level == ACCELERATIONS:
                dV = add(Ad_inv(T, load_twist(work.dV, p)), joint_eta(tree, i, V, v))
                store_twist(work.dV, i, joint_add(tree, i, dV, a))


@primitive
def joint_poses(tree, q, T):
    """T (12n): poses of bodies in their parents."""
    for i in range(1, tree.parent.size):
        store_pose(T, i, joint_pose(tree, i, q))


@primitive
def body_twists(tree, T, v, V):
    """V (6n): twists of bodies, from poses in their parents."""
    zero = number_like(v, 0.0)
    store_twist(V, 0, zero6(zero))
    for i in range(1, tree.parent.size):
        store_twist(V, i, joint_add(tree, i, Ad_inv(load_pose(T, i), load_twist(V, tree.parent[i])), v))


@kernel
def links(tree, level, work, T, V, dV):
    """Poses T (12 n_links) in the world, and up to `level` twists V and their rates dV (6 n_links) in link frames."""
    for k in range(tree.link_body.size):
        i, X = tree.link_body[k], load_pose(tree.link_pose, k)
        store_pose(T, k, compose(load_pose(work.T, i), X))
        if level >= TWISTS:
            store_twist(V, k, Ad_inv(X, load_twist(work.V, i)))
        if level == ACCELERATIONS:
            store_twist(dV, k, Ad_inv(X, load_twist(work.dV, i)))


@kernel
def wrenches_on_bodies(tree, f_links, F):
    """F (6n): wrenches on links (6 n_links), in link frames about their origins, gathered on their bodies."""
    zero = number_like(F, 0.0)
    for i in range(tree.parent.size):
        store_twist(F, i, zero6(zero))
    for k in range(tree.link_body.size):
        i = tree.link_body[k]
        store_twist(F, i, add(load_twist(F, i), dAd_inv(load_pose(tree.link_pose, k), load_twist(f_links, k))))


@primitive
def gather(tree, f_ext, k, links, bodies):
    """External wrenches on bodies of state k, or of those from k on, from a batch of those on links (N, 6 n_links), or none: a
    code of `checks`, and `bodies` or nothing. links (6 n_links): scratch."""
    if f_ext.size == 0:
        return OK, bodies[:0]
    pack(f_ext, k, links)
    if not finite(links):
        return BAD_F_EXT, bodies[:0]
    wrenches_on_bodies(tree, links, bodies)
    return OK, bodies


# from Python ------------------------------------------------------------------------------------------------------
def kinematics_entry_memory(n, nq, nv, nl): return kinematics_memory(n) + nq + 2 * nv + 24 * nl + 11


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       nogil=True)
def link_motions(index, constants, memory, level, q, v, a, T, V, dV, first, last):
    """Of all links: T (N, 12 n_links), up to `level` V and dV (N, 6 n_links). v, a, V, dV may be (1, 0) if not used."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, v1, a1, T1, V1, dV1, m) = tree_of(index, constants), carve(memory, (nq, nv, nv, 12 * nl, 6 * nl, 6 * nl))
    work = kinematics_work(m, n)
    for k in range(first, last, WIDTH):
        code = take_configuration(tree, q, k, Q)
        if level >= TWISTS and code == OK:
            pack(v, k, v1)
            code = OK if finite(v1) else BAD_V
        if level == ACCELERATIONS and code == OK:
            pack(a, k, a1)
            code = OK if finite(a1) else BAD_A
        if code != OK:
            return code
        kinematics(tree, Q, v1, a1, level, work)
        links(tree, level, work, T1, V1, dV1)
        if not finite(T1) or (level >= TWISTS and not finite(V1)) or (
                level == ACCELERATIONS and not finite(dV1)):
            return BAD_RESULT
        unpack(T1, T, k)
        if level >= TWISTS:
            unpack(V1, V, k)
        if level == ACCELERATIONS:
            unpack(dV1, dV, k)
    return OK
