"""Poses, twists and accelerations of bodies and links (K1 (34)-(40); PBP (67)-(73); PL (15), (16))."""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_add, joint_column, joint_eta, joint_pose, spring_energy, tree_views
from liedyn.kernels.batch_blocks import (
    BAD_A,
    BAD_F_EXT,
    BAD_RESULT,
    BAD_V,
    OK,
    all_finite,
    load_block,
    load_configuration,
    load_state,
    unpack_block,
)
from liedyn.kernels.force_elements import add_element_energy
from liedyn.lie.inertia import momentum
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, add_ad, compose, dAd_inv, dot, identity, neg, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.vectors import (
    add3,
    cross,
    dot3,
    load3,
    load3_strided,
    load_pose,
    load_rigid,
    load_twist,
    rotate,
    scale3,
    store3_strided,
    store_pose,
    store_twist,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.deferred_kernels import call_deferred
from liedyn.numba_tools.numba_internals import split_workspace

POSES, TWISTS, ACCELERATIONS = 0, 1, 2


class KinematicsWorkspace(NamedTuple):
    """Poses, twists and accelerations of the bodies."""

    T: np.ndarray     # (12n,) pose in the world
    V: np.ndarray     # (6n,) twist, body frame
    dV: np.ndarray    # (6n,) its component-wise rate, without gravity


@inline_kernel
def kinematics_workspace(memory, n):
    """Return the `KinematicsWorkspace` of n bodies whose arrays are views into `memory`."""
    return KinematicsWorkspace(*split_workspace(memory, (12 * n, 6 * n, 6 * n))[:-1])


def kinematics_workspace_size(n):
    """Return the size (numbers) of the memory of `KinematicsWorkspace`."""
    return 24 * n


@kernel
def kinematics(tree, q, v, a, level, ws):
    """Write ws up to `level`: POSES, TWISTS, ACCELERATIONS."""
    zero = number_like(q, 0.0)
    rest = zero6(zero)
    store_pose(ws.T, 0, identity(zero))
    store_twist(ws.V, 0, rest)
    store_twist(ws.dV, 0, rest)
    for i in range(1, tree.parent.size):
        p = tree.parent[i]
        T = joint_pose(tree, i, q)
        store_pose(ws.T, i, compose(load_pose(ws.T, p), T))
        if level >= TWISTS:
            V = joint_add(tree, i, Ad_inv(T, load_twist(ws.V, p)), v)
            store_twist(ws.V, i, V)
            if level == ACCELERATIONS:
                dV = add(Ad_inv(T, load_twist(ws.dV, p)), joint_eta(tree, i, V, v))
                store_twist(ws.dV, i, joint_add(tree, i, dV, a))


@inline_kernel
def joint_poses(tree, q, T):
    """Write T (12n): poses of bodies in their parents."""
    for i in range(1, tree.parent.size):
        store_pose(T, i, joint_pose(tree, i, q))


@inline_kernel
def body_twists(tree, T, v, V):
    """Write V (6n): twists of bodies, from poses in their parents."""
    zero = number_like(v, 0.0)
    store_twist(V, 0, zero6(zero))
    for i in range(1, tree.parent.size):
        store_twist(V, i, joint_add(tree, i, Ad_inv(load_pose(T, i), load_twist(V, tree.parent[i])), v))


@kernel
def link_kinematics(tree, level, ws, T, V, dV):
    """Write poses T (12 n_links) in the world and, up to `level`, twists V and their rates dV (6 n_links) in link frames."""
    for k in range(tree.link_body.size):
        i, X = tree.link_body[k], load_pose(tree.link_pose, k)
        store_pose(T, k, compose(load_pose(ws.T, i), X))
        if level >= TWISTS:
            store_twist(V, k, Ad_inv(X, load_twist(ws.V, i)))
        if level == ACCELERATIONS:
            store_twist(dV, k, Ad_inv(X, load_twist(ws.dV, i)))


@kernel
def wrenches_on_bodies(tree, f_links, F):
    """Write F (6n): sums of the wrenches on links (6 n_links, in link frames about their origins) of each body."""
    zero = number_like(F, 0.0)
    for i in range(tree.parent.size):
        store_twist(F, i, zero6(zero))
    for k in range(tree.link_body.size):
        i = tree.link_body[k]
        store_twist(F, i, add(load_twist(F, i), dAd_inv(load_pose(tree.link_pose, k), load_twist(f_links, k))))


@inline_kernel
def load_wrenches(tree, f_ext, k, links, bodies):
    """Copy external wrenches on links (N, 6 n_links) of state k and the next ones, and return a code and the wrenches on bodies.

    f_ext without rows: returns an empty array. links (6 n_links) is workspace.
    """
    if f_ext.size == 0:
        return OK, bodies[:0]
    load_block(f_ext, k, links)
    if not all_finite(links):
        return BAD_F_EXT, bodies[:0]
    wrenches_on_bodies(tree, links, bodies)
    return OK, bodies


# batches ----------------------------------------------------------------------------------------------------------------
def link_motions_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `link_motions` for one state (see `Model.sizes`)."""
    return kinematics_workspace_size(n) + nq + 2 * nv + 24 * nl + 11


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
             nogil=True)
def link_motions(index, constants, memory, level, q, v, a, T, V, dV, first, last):
    """Write T (N, 12 n_links) and, up to `level`, V and dV (N, 6 n_links). v, a, V, dV may be (1, 0) if not used."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, v1, a1, T1, V1, dV1, m) = tree_views(index,
                                                   constants), split_workspace(memory, (nq, nv, nv, 12 * nl, 6 * nl, 6 * nl))
    ws = kinematics_workspace(m, n)
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, k, Q)
        if level >= TWISTS and code == OK:
            load_block(v, k, v1)
            code = OK if all_finite(v1) else BAD_V
        if level == ACCELERATIONS and code == OK:
            load_block(a, k, a1)
            code = OK if all_finite(a1) else BAD_A
        if code != OK:
            return code
        kinematics(tree, Q, v1, a1, level, ws)
        link_kinematics(tree, level, ws, T1, V1, dV1)
        if not all_finite(T1) or (level >= TWISTS and not all_finite(V1)) or (
                level == ACCELERATIONS and not all_finite(dV1)):
            return BAD_RESULT
        unpack_block(T1, T, k)
        if level >= TWISTS:
            unpack_block(V1, V, k)
        if level == ACCELERATIONS:
            unpack_block(dV1, dV, k)
    return OK


# Energy, momentum, centre of mass, after `kinematics` with twists -------------------------------------------------------

@kernel
def energy(tree, q, v, passive, ws, out):
    """Write out (2): kinetic energy with rotors; potential energy of gravity (zero at the origin) and, if `passive`, of springs.

    Source: K1 (14)-(19); PBP (32), (39), (58).
    """
    zero = number_like(q, 0.0)
    kinetic, potential = zero, zero
    g = load3(tree.dV0, 3)                                        # minus the acceleration of gravity
    for i in range(1, tree.parent.size):
        I, V, (R, p) = load_rigid(tree.I, i), load_twist(ws.V, i), load_pose(ws.T, i)
        kinetic = kinetic + 0.5 * dot(momentum(I, V), V)
        potential = potential + dot3(g, add3(scale3(I[0], p), rotate(R, I[1])))
    for k in range(tree.armature.shape[0]):
        x = load(v, k)
        kinetic = kinetic + 0.5 * load(tree.armature, k) * x * x
    store(out, 0, kinetic)
    if passive:
        potential = potential + spring_energy(tree, q)
    store(out, 1, potential)
    if passive and tree.element.size:
        call_deferred(add_element_energy, (tree, q, out[1:]))


@kernel
def total_momentum(tree, ws, out):
    """Write out (6): momentum [angular; linear] of all bodies about the world's origin, in world axes (K1 (23), (24))."""
    zero = number_like(ws.V, 0.0)
    h = zero6(zero)
    for i in range(1, tree.parent.size):
        h = add(h, dAd_inv(load_pose(ws.T, i), momentum(load_rigid(tree.I, i), load_twist(ws.V, i))))
    store_twist(out, 0, h)


@kernel
def centre_of_mass(tree, ws, out):
    """Write out (3): centre of mass of the moving bodies, in the world."""
    zero = number_like(ws.T, 0.0)
    mass, h = zero, (zero, zero, zero)
    for i in range(1, tree.parent.size):
        I, (R, p) = load_rigid(tree.I, i), load_pose(ws.T, i)
        mass = mass + I[0]
        h = add3(h, add3(scale3(I[0], p), rotate(R, I[1])))
    for k in range(3):
        store(out, k, h[k] / mass)


# batches ----------------------------------------------------------------------------------------------------------------
def energy_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `totals` for one state (see `Model.sizes`)."""
    return kinematics_workspace_size(n) + nq + nv + 11


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def totals(index, constants, memory, q, v, passive, out, first, last):
    """Write out (N, 11) of states first … last - 1: kinetic and potential energy, momentum (6), centre of mass (3)."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, v1, sums, m) = tree_views(index, constants), split_workspace(memory, (nq, nv, 11))
    ws = kinematics_workspace(m, n)
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, v, k, Q, v1)
        if code != OK:
            return code
        kinematics(tree, Q, v1, v1, TWISTS, ws)
        energy(tree, Q, v1, passive, ws, sums[:2])
        total_momentum(tree, ws, sums[2:8])
        centre_of_mass(tree, ws, sums[8:11])           # not finite if no body has mass
        if not all_finite(sums[:8]):
            return BAD_RESULT
        unpack_block(sums, out, k)
    return OK


# Frames as numbers, in the order of `dynamics.batching.arrays.FRAMES` ---------------------------------------------------

LOCAL, LOCAL_WORLD_ALIGNED, WORLD = 0, 1, 2


# Jacobian of a link and its time derivative: column k is Ad_{T_link,i} S_k for the joints i between link and ground -----

@inline_kernel
def load_column(J, k, nv):
    """Return column k, a twist, of a matrix (6, nv)."""
    return load3_strided(J, k, nv), load3_strided(J, 3 * nv + k, nv)


@inline_kernel
def store_column(J, k, nv, V):
    """Write the twist V to column k of a matrix (6, nv)."""
    store3_strided(J, k, nv, V[0])
    store3_strided(J, 3 * nv + k, nv, V[1])


@kernel
def jacobian(tree, link, frame, q, v, J, dJ):
    """Write J and, unless empty, dJ (6 nv, by rows) of a link. v is read for dJ only."""
    nv = tree.armature.shape[0]
    zero = number_like(q, 0.0)
    rest = zero6(zero)
    for k in range(nv):
        store_column(J, k, nv, rest)
        if dJ.size:
            store_column(dJ, k, nv, rest)
    T = compose(identity(zero), load_pose(tree.link_pose, link))       # of the link in body i
    V = rest                                                     # of the link relative to body i, in the link frame
    i = tree.link_body[link]
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            S = Ad_inv(T, joint_column(tree, i, c, zero))
            store_column(J, tree.iv[i] + c, nv, S)
            if dJ.size:
                store_column(dJ, tree.iv[i] + c, nv, neg(ad(V, S)))
        if dJ.size:
            V = add(V, Ad_inv(T, joint_add(tree, i, rest, v)))
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    if frame != LOCAL:
        change_frame(tree, link, frame, T, V, J, dJ)


@inline_kernel
def change_frame(tree, link, frame, T, V, J, dJ):
    """Transform J and dJ from the link frame to world axes. T: pose of the link in the world; V: its twist (link frame)."""
    nv = tree.armature.shape[0]
    i = tree.link_body[link]
    while i > 0:
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            S = load_column(J, k, nv)
            if frame == WORLD:
                store_column(J, k, nv, Ad(T, S))                 # d(Ad_T S) = Ad_T (ad_V S + dS)
                if dJ.size:
                    store_column(dJ, k, nv, Ad(T, add_ad(load_column(dJ, k, nv), V, S)))
            else:
                store_column(J, k, nv, (rotate(T[0], S[0]), rotate(T[0], S[1])))
                if dJ.size:
                    spin = cross(V[0], S[0]), cross(V[0], S[1])
                    dS = add(load_column(dJ, k, nv), spin)
                    store_column(dJ, k, nv, (rotate(T[0], dS[0]), rotate(T[0], dS[1])))
        i = tree.parent[i]


# batches ----------------------------------------------------------------------------------------------------------------
def jacobian_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `jacobians` for one state (see `Model.sizes`)."""
    return nq + 13 * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def jacobians(index, constants, memory, link, frame, q, v, J, dJ, first, last):
    """Write J and, unless it has no columns, dJ (N, 6 nv) of states first … last - 1."""
    nq, nv = index[1], index[2]
    tree, (Q, v1, J1, dJ1, _) = tree_views(index, constants), split_workspace(memory, (nq, nv, 6 * nv, dJ.shape[1]))
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, k, Q)
        if dJ1.size and code == OK:
            load_block(v, k, v1)
            code = OK if all_finite(v1) else BAD_V
        if code != OK:
            return code
        jacobian(tree, link, frame, Q, v1, J1, dJ1)
        if not all_finite(J1) or not all_finite(dJ1):
            return BAD_RESULT
        unpack_block(J1, J, k)
        if dJ1.size:
            unpack_block(dJ1, dJ, k)
    return OK
