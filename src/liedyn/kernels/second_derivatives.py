"""Second derivatives of inverse dynamics: derivatives of `inverse_derivatives` along every coordinate of the same path.

A joint m moves all its descendants as one rigid body. In their moving frames, q_m changes

    V by psi_m,    dV by zeta_m - ad_V psi_m,    psi_l by ad_psi_m s_l,    zeta_l by ad_zeta_m s_l + 2 ad_psi_m psi_l,
    F by I zeta_m + B psi_m,    B by B(psi_m), which is `coriolis` of I and psi_m,    not I and s;

v_m changes V by s_m, psi_l by ad_s_m s_l, zeta_l by ad_phi_m s_l + 2 ad_s_m psi_l, F by I phi_m + B s_m, B by B(s_m), and of
the other screws of the same joint only phi, by ad_s_m s_l. So each formula there becomes a wrench of two coordinates, one of the
deepest body and one on its path to the ground, times each screw of that path: O(n depth^2). A path is expressed in the frame of
its deepest body. Singh, Russell and Wensing 2023 give the same tensors for joints of several coordinates.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_column, resistance_curvature, tree_views
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, as_int64, load_motion, states_per_block, store_block
from liedyn.kernels.inverse_dynamics_derivatives import (
    derivatives_workspace,
    derivatives_workspace_size,
    forward_pass,
    load_coriolis,
    propagate_derivatives_to_parent,
)
from liedyn.lie.inertia import coriolis, coriolis_transposed, coriolis_wrench, momentum
from liedyn.lie.se3 import Ad_inv, ad, add, add_ad, compose, dot, identity, neg_dad, scale, sub_dad
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import add_cross, clear, cross, dot3, load_pose, load_rigid, load_twist, store_twist
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.numba_internals import split_workspace


class PathWorkspace(NamedTuple):
    """Screws of the joints between the ground and a body, in the frame of the body: see `inverse_derivatives`."""

    s: np.ndarray       # (6nv,)
    psi: np.ndarray     # (6nv,)
    zeta: np.ndarray    # (6nv,)
    phi: np.ndarray     # (6nv,)
    k: np.ndarray       # (nv,) int64: their coordinates
    first: np.ndarray   # (nv,) int64: position on the path of the first coordinate of the same joint


@inline_kernel
def path_workspace(memory, nv):
    s, psi, zeta, phi, k, first, _ = split_workspace(memory, (6 * nv, 6 * nv, 6 * nv, 6 * nv, nv, nv))
    return PathWorkspace(s, psi, zeta, phi, as_int64(k)[0], as_int64(first)[0])


@inline_kernel
def store_path(tree, i, ws, path):
    """Write the path of body i. Return the positions of its first coordinate and of the end."""
    end, j, zero = 0, i, number_like(ws.psi, 0.0)
    while j > 0:
        end, j = end + NV[tree.kind[j]], tree.parent[j]
    x, j, T = end, i, identity(zero)      # T: pose of i in j
    while j > 0:
        n, k = NV[tree.kind[j]], tree.iv[j]
        x = x - n
        for c in range(n):
            store_twist(path.s, x + c, Ad_inv(T, joint_column(tree, j, c, zero)))
            store_twist(path.psi, x + c, Ad_inv(T, load_twist(ws.psi, k + c)))
            store_twist(path.zeta, x + c, Ad_inv(T, load_twist(ws.zeta, k + c)))
            store_twist(path.phi, x + c, Ad_inv(T, load_twist(ws.phi, k + c)))
            path.k[x + c], path.first[x + c] = k + c, x
        T, j = compose(load_pose(ws.T, j), T), tree.parent[j]
    return end - NV[tree.kind[i]], end


class DeepestCoordinate(NamedTuple):
    """Quantities of a coordinate c of the deepest body, with the inertia of its descendants."""

    I: tuple
    B: tuple
    s: tuple
    psi: tuple
    P: tuple      # I s
    g: tuple      # B^T s
    C: tuple      # B(s)
    X: tuple      # dF/dq_c
    G: tuple      # dF/dv_c


@kernel
def second_derivative_tensors(tree, q, v, passive, ws, path, T):
    """Write T (4 nv^3): d2tau/dqdq, dqdv, dvdv, dqda for coordinates on one path.

    ws: `DerivativesWorkspace` after `forward_pass`.
    """
    nv = tree.armature.shape[0]
    for i in range(tree.parent.size - 1, 0, -1):
        start, end = store_path(tree, i, ws, path)
        I, F, B = load_rigid(ws.I, i), load_twist(ws.F, i), load_coriolis(ws.B, i)
        propagate_derivatives_to_parent(tree, i, q, ws)
        for c in range(start, end):
            s, psi, k = load_twist(path.s, c), load_twist(path.psi, c), path.k[c]
            P = momentum(I, s)
            X = sub_dad(add(momentum(I, load_twist(path.zeta, c)), coriolis_wrench(B, psi[0])), s, F)
            G = add(momentum(I, load_twist(path.phi, c)), coriolis_wrench(B, s[0]))
            deepest = DeepestCoordinate(I, B, s, psi, P, coriolis_transposed(B, s), coriolis(I, s, P[1]), X, G)
            for m in range(start):
                store_ancestor_entries(path, T, nv, deepest, k, m, start)
            for m in range(start, end):
                store_same_joint_entries(path, T, nv, deepest, k, m, start, end)
            if passive:
                o = tensor_index(nv, 2, k, k, k)
                store(T, o, load(T, o) + resistance_curvature(tree, k, v))


@inline_kernel
def store_ancestor_entries(path, T, nv, deepest, k, m, start):
    """Write all entries with coordinate k of the deepest body and coordinate m of another joint of the path."""
    I, B, s, psi, _, _, C, X, G = deepest
    l, first, (sm, pm, _, fm) = path.k[m], path.first[m], load_path_columns(path, m)
    turn, Bs, q, by_v, y, y_psi, y_s = deepest_derivatives(path, deepest, m)
    v = add(momentum(I, add_ad(scale(2.0, ad(sm, psi)), fm, s)), add(coriolis_wrench(Bs, psi[0]), coriolis_wrench(B, turn[0])))
    vv, a = add(momentum(I, scale(2.0, turn)), coriolis_wrench(Bs, s[0])), sub_dad(momentum(I, turn), s, momentum(I, sm))
    v, u = sub_dad(v, s, by_v), coriolis_wrench(C, pm[0])
    moved_q, moved_u = sub_dad(q, sm, X), sub_dad(u, sm, G)
    for b in range(first):
        store_deepest_force(path, T, nv, k, l, b, y, y_psi, y_s)
        store_ancestor_force(path, T, nv, k, l, b, moved_q, v, vv, moved_u, a)
    for b in range(first, start):
        if path.first[b] == first:
            store_same_joint_force(path, T, nv, k, l, b, y, y_psi, y_s)
        store_ancestor_force(path, T, nv, k, l, b, q, v, vv, u, a)


@inline_kernel
def store_same_joint_entries(path, T, nv, deepest, k, m, start, end):
    """Write all entries with coordinates k and m of the deepest body's joint."""
    I, _, s, psi, _, _, _, X, _ = deepest
    l = path.k[m]
    turn, Bs, q, by_v, y, y_psi, y_s = deepest_derivatives(path, deepest, m)
    q, v = sub_dad(q, load_twist(path.s, m), X), sub_dad(coriolis_wrench(Bs, psi[0]), s, by_v)
    vv = add(momentum(I, turn), coriolis_wrench(Bs, s[0]))
    for b in range(start):
        store_deepest_force(path, T, nv, k, l, b, y, y_psi, y_s)
        r, sb = path.k[b], load_twist(path.s, b)
        store(T, tensor_index(nv, 0, r, k, l), dot(q, sb))
        store(T, tensor_index(nv, 1, r, k, l), dot(v, sb))
        store(T, tensor_index(nv, 2, r, k, l), dot(vv, sb))
    for b in range(start, end):
        store_same_joint_force(path, T, nv, k, l, b, y, y_psi, y_s)


@inline_kernel
def deepest_derivatives(path, deepest, m):
    """Return derivatives of the deepest coordinate's quantities with respect to q_m and v_m.

    These are ad_s_m s; B(s_m); d(dF/dq)/dq_m without the motion of the frame; dF/dv_m; derivatives of I s and B^T s with respect
    to q_m (y, y_psi) and of B^T s with respect to v_m (y_s). Of B^T s, the angular part is enough.
    """
    I, B, s, psi, P, g, _, _, _ = deepest
    sm, pm, zm, fm = load_path_columns(path, m)
    Bs, Bp = coriolis(I, sm, momentum(I, sm)[1]), coriolis(I, pm, momentum(I, pm)[1])
    by_q, by_v = add(momentum(I, zm), coriolis_wrench(B, pm[0])), add(momentum(I, fm), coriolis_wrench(B, sm[0]))
    q = add(momentum(I, add_ad(scale(2.0, ad(pm, psi)), zm, s)),
            add(coriolis_wrench(Bp, psi[0]), coriolis_wrench(B, cross(pm[0], s[0]))))
    return (ad(sm, s), Bs, sub_dad(q, s, by_q), by_v, neg_dad(sm, P),
            add_cross(coriolis_transposed(Bp, s), sm[0], g), coriolis_transposed(Bs, s))


@inline_kernel
def store_deepest_force(path, T, nv, k, l, b, y, y_psi, y_s):
    """Write the entries of tau_k with respect to coordinate l and one above it."""
    r, (sb, pb, zb, fb) = path.k[b], load_path_columns(path, b)
    qq, vv, a = dot(y, zb) + dot3(y_psi, pb[0]), dot3(y_s, sb[0]), dot(y, sb)
    store(T, tensor_index(nv, 0, k, l, r), qq)
    store(T, tensor_index(nv, 0, k, r, l), qq)
    store(T, tensor_index(nv, 1, k, r, l), dot3(y_s, pb[0]))
    store(T, tensor_index(nv, 1, k, l, r), dot(y, fb) + dot3(y_psi, sb[0]))
    store(T, tensor_index(nv, 2, k, l, r), vv)
    store(T, tensor_index(nv, 2, k, r, l), vv)
    store(T, tensor_index(nv, 3, k, l, r), a)
    store(T, tensor_index(nv, 3, r, l, k), a)


@inline_kernel
def store_same_joint_force(path, T, nv, k, l, b, y, y_psi, y_s):
    """Write the entries of tau_k with respect to two coordinates of one joint."""
    r, (sb, pb, zb, _) = path.k[b], load_path_columns(path, b)
    store(T, tensor_index(nv, 0, k, l, r), dot(y, zb) + dot3(y_psi, pb[0]))
    store(T, tensor_index(nv, 1, k, r, l), dot3(y_s, pb[0]))
    store(T, tensor_index(nv, 2, k, l, r), dot3(y_s, sb[0]) - dot(y, sb))


@inline_kernel
def store_ancestor_force(path, T, nv, k, l, b, q, v, vv, u, a):
    """Write the entries of the force of a coordinate above k, with respect to k and to l of another joint."""
    r, sb = path.k[b], load_twist(path.s, b)
    qq, both = dot(q, sb), dot(vv, sb)
    store(T, tensor_index(nv, 0, r, k, l), qq)
    store(T, tensor_index(nv, 0, r, l, k), qq)
    store(T, tensor_index(nv, 1, r, k, l), dot(v, sb))
    store(T, tensor_index(nv, 1, r, l, k), dot(u, sb))
    store(T, tensor_index(nv, 2, r, k, l), both)
    store(T, tensor_index(nv, 2, r, l, k), both)
    store(T, tensor_index(nv, 3, r, k, l), dot(a, sb))


@inline_kernel
def load_path_columns(path, m):
    return load_twist(path.s, m), load_twist(path.psi, m), load_twist(path.zeta, m), load_twist(path.phi, m)


@inline_kernel
def tensor_index(nv, tensor, i, j, k):
    """Return the index of the force of i, with respect to j and k, in one of the four tensors."""
    return ((tensor * nv + i) * nv + j) * nv + k


# batches ----------------------------------------------------------------------------------------------------------------
def second_derivatives_workspace_size(n, nq, nv, nl): return derivatives_workspace_size(n, nv) + nq + 28 * nv + 4 * nv * nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def second_derivatives(index, constants, memory, q, v, a, passive, out, first, last):
    """Write out (N, 4 nv^3) of states first … last - 1: dqdq, dqdv, dvdv, dqda; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, V, A, room, block, m) = tree_views(index,
                                                 constants), split_workspace(memory, (nq, nv, nv, 26 * nv, 4 * nv * nv * nv))
    path, ws = path_workspace(room, nv), derivatives_workspace(m, n, nv)
    passive = passive and index[4] != 0
    clear(block)
    for k in range(first, last, states_per_block(memory)):
        code = load_motion(tree, q, v, a, k, Q, V, A)
        if code != OK:
            return code
        forward_pass(tree, tree.J, Q, V, A, A[:0], ws)
        second_derivative_tensors(tree, Q, V, passive, ws, path, block)
        if not store_block(block, out, k):
            return BAD_RESULT
    return OK
