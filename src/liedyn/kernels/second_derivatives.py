"""Second derivatives of inverse dynamics: derivatives of `inverse_derivatives` along every coordinate of the same path.

A joint m moves all its descendants as one rigid body. In their moving frames, q_m changes

    V by psi_m,    dV by zeta_m - ad_V psi_m,    psi_l by ad_psi_m s_l,    zeta_l by ad_zeta_m s_l + 2 ad_psi_m psi_l,
    F by I zeta_m + B psi_m,    B by B(psi_m), which is `coriolis` of I and psi_m,    not I and s;

v_m changes V by s_m, psi_l by ad_s_m s_l, zeta_l by ad_phi_m s_l + 2 ad_s_m psi_l, F by I phi_m + B s_m, B by B(s_m), and of
the other screws of the same joint only phi, by ad_s_m s_l. So each formula there becomes a wrench of two coordinates, one of the
deepest body and one on its path to the ground, times each screw of that path: O(n depth^2). A path is expressed in the frame of
its deepest body. Singh, Russell and Wensing 2023 give the same tensors for joints of several coordinates.

The four tensors, each with the force tau_i, then the two coordinates of the derivatives:

    QQ[i, j, k] = d2tau_i / dq_j dq_k     QV[i, j, k] = d2tau_i / dq_j dv_k
    VV[i, j, k] = d2tau_i / dv_j dv_k     QA[i, j, k] = d2tau_i / dq_j da_k = dM_ik / dq_j

In all functions, k is a coordinate of the deepest body, m the position on its path of coordinate l, and b that of coordinate r.
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

QQ, QV, VV, QA = range(4)


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
    """Return the `PathWorkspace` whose arrays are views into `memory`."""
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
    """Quantities of a coordinate k of the deepest body, with the inertia of its descendants."""

    k: int
    I: tuple
    B: tuple
    s: tuple
    psi: tuple
    P: tuple      # I s
    g: tuple      # B^T s
    C: tuple      # B(s)
    X: tuple      # dF/dq_k
    G: tuple      # dF/dv_k


class DeepestDerivatives(NamedTuple):
    """Derivatives of these quantities with respect to q_l and v_l. Of B^T s, the angular part is enough."""

    turn: tuple     # ad_s_m s
    B_m: tuple      # B(s_m)
    X: tuple        # d(dF/dq_k)/dq_l without the motion of the frame
    F_v: tuple      # dF/dv_l
    P: tuple        # d(I s)/dq_l
    g_q: tuple      # d(B^T s)/dq_l
    g_v: tuple      # d(B^T s)/dv_l


class AncestorWrenches(NamedTuple):
    """Second derivatives of F, whose products with s_r are those of tau_r."""

    qq: tuple       # with respect to q_k and q_l
    qv: tuple       # q_k and v_l
    vq: tuple       # v_k and q_l
    vv: tuple       # v_k and v_l
    qa: tuple       # q_k and a_l


@kernel
def second_derivative_tensors(tree, q, v, passive, ws, path, T):
    """Write the four tensors T (4 nv^3) for coordinates on one path. ws: `DerivativesWorkspace` after `forward_pass`."""
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
            deepest = DeepestCoordinate(k, I, B, s, psi, P, coriolis_transposed(B, s), coriolis(I, s, P[1]), X, G)
            for m in range(start):
                store_ancestor_entries(path, T, nv, deepest, m, start)
            for m in range(start, end):
                store_same_joint_entries(path, T, nv, deepest, m, start, end)
            if passive:
                o = tensor_index(nv, VV, k, k, k)
                store(T, o, load(T, o) + resistance_curvature(tree, k, v))


@inline_kernel
def store_ancestor_entries(path, T, nv, deepest, m, start):
    """Write all entries with coordinate k of the deepest body and coordinate l of another joint of the path."""
    I, B, s, psi, first = deepest.I, deepest.B, deepest.s, deepest.psi, path.first[m]
    (sm, pm, _, fm), d = load_path_columns(path, m), deepest_derivatives(path, deepest, m)
    qv = add(momentum(I, add_ad(scale(2.0, ad(sm, psi)), fm, s)),
             add(coriolis_wrench(d.B_m, psi[0]), coriolis_wrench(B, d.turn[0])))
    qv, vq = sub_dad(qv, s, d.F_v), coriolis_wrench(deepest.C, pm[0])
    vv = add(momentum(I, scale(2.0, d.turn)), coriolis_wrench(d.B_m, s[0]))
    qa = sub_dad(momentum(I, d.turn), s, momentum(I, sm))
    same_joint = AncestorWrenches(d.X, qv, vq, vv, qa)
    above = AncestorWrenches(sub_dad(d.X, sm, deepest.X), qv, sub_dad(vq, sm, deepest.G), vv, qa)
    for b in range(first):
        store_deepest_force(path, T, nv, deepest.k, m, b, d)
        store_ancestor_force(path, T, nv, deepest.k, m, b, above)
    for b in range(first, start):
        if path.first[b] == first:
            store_same_joint_force(path, T, nv, deepest.k, m, b, d)
        store_ancestor_force(path, T, nv, deepest.k, m, b, same_joint)


@inline_kernel
def store_same_joint_entries(path, T, nv, deepest, m, start, end):
    """Write all entries with coordinates k and l of the deepest body's joint."""
    I, s, k, l, d = deepest.I, deepest.s, deepest.k, path.k[m], deepest_derivatives(path, deepest, m)
    qq = sub_dad(d.X, load_twist(path.s, m), deepest.X)
    qv = sub_dad(coriolis_wrench(d.B_m, deepest.psi[0]), s, d.F_v)
    vv = add(momentum(I, d.turn), coriolis_wrench(d.B_m, s[0]))
    for b in range(start):
        store_deepest_force(path, T, nv, k, m, b, d)
        r, sb = path.k[b], load_twist(path.s, b)
        store(T, tensor_index(nv, QQ, r, k, l), dot(qq, sb))
        store(T, tensor_index(nv, QV, r, k, l), dot(qv, sb))
        store(T, tensor_index(nv, VV, r, k, l), dot(vv, sb))
    for b in range(start, end):
        store_same_joint_force(path, T, nv, k, m, b, d)


@inline_kernel
def deepest_derivatives(path, deepest, m):
    """Return the `DeepestDerivatives` with respect to q_l and v_l."""
    I, B, s, psi = deepest.I, deepest.B, deepest.s, deepest.psi
    sm, pm, zm, fm = load_path_columns(path, m)
    Bs, Bp = coriolis(I, sm, momentum(I, sm)[1]), coriolis(I, pm, momentum(I, pm)[1])
    F_q, F_v = add(momentum(I, zm), coriolis_wrench(B, pm[0])), add(momentum(I, fm), coriolis_wrench(B, sm[0]))
    X = add(momentum(I, add_ad(scale(2.0, ad(pm, psi)), zm, s)),
            add(coriolis_wrench(Bp, psi[0]), coriolis_wrench(B, cross(pm[0], s[0]))))
    return DeepestDerivatives(ad(sm, s), Bs, sub_dad(X, s, F_q), F_v, neg_dad(sm, deepest.P),
                              add_cross(coriolis_transposed(Bp, s), sm[0], deepest.g), coriolis_transposed(Bs, s))


@inline_kernel
def store_deepest_force(path, T, nv, k, m, b, d):
    """Write the entries of tau_k with respect to coordinate l and coordinate r of a joint above it."""
    l, r, (sb, pb, zb, fb) = path.k[m], path.k[b], load_path_columns(path, b)
    qa = dot(d.P, sb)
    store_symmetric(T, nv, QQ, k, l, r, dot(d.P, zb) + dot3(d.g_q, pb[0]))
    store(T, tensor_index(nv, QV, k, r, l), dot3(d.g_v, pb[0]))
    store(T, tensor_index(nv, QV, k, l, r), dot(d.P, fb) + dot3(d.g_q, sb[0]))
    store_symmetric(T, nv, VV, k, l, r, dot3(d.g_v, sb[0]))
    store(T, tensor_index(nv, QA, k, l, r), qa)
    store(T, tensor_index(nv, QA, r, l, k), qa)                # the mass matrix is symmetric


@inline_kernel
def store_same_joint_force(path, T, nv, k, m, b, d):
    """Write the entries of tau_k with respect to coordinates l and r of one joint."""
    l, r, (sb, pb, zb, _) = path.k[m], path.k[b], load_path_columns(path, b)
    store(T, tensor_index(nv, QQ, k, l, r), dot(d.P, zb) + dot3(d.g_q, pb[0]))
    store(T, tensor_index(nv, QV, k, r, l), dot3(d.g_v, pb[0]))
    store(T, tensor_index(nv, VV, k, l, r), dot3(d.g_v, sb[0]) - dot(d.P, sb))


@inline_kernel
def store_ancestor_force(path, T, nv, k, m, b, wrenches):
    """Write the entries of tau_r of a coordinate above k, with respect to k and to l of another joint."""
    l, r, sb = path.k[m], path.k[b], load_twist(path.s, b)
    store_symmetric(T, nv, QQ, r, k, l, dot(wrenches.qq, sb))
    store(T, tensor_index(nv, QV, r, k, l), dot(wrenches.qv, sb))
    store(T, tensor_index(nv, QV, r, l, k), dot(wrenches.vq, sb))
    store_symmetric(T, nv, VV, r, k, l, dot(wrenches.vv, sb))
    store(T, tensor_index(nv, QA, r, k, l), dot(wrenches.qa, sb))


@inline_kernel
def store_symmetric(T, nv, tensor, i, j, k, x):
    """Write the entries of the force of i with respect to j and k, and with respect to k and j."""
    store(T, tensor_index(nv, tensor, i, j, k), x)
    store(T, tensor_index(nv, tensor, i, k, j), x)


@inline_kernel
def load_path_columns(path, m):
    """Return the columns m of s, psi, zeta and phi."""
    return load_twist(path.s, m), load_twist(path.psi, m), load_twist(path.zeta, m), load_twist(path.phi, m)


@inline_kernel
def tensor_index(nv, tensor, i, j, k):
    """Return the index of the second derivative of the force of coordinate i with respect to coordinates j and k.

    tensor   0 to 3: with respect to q and q, q and v, v and v, q and a
    """
    return ((tensor * nv + i) * nv + j) * nv + k


# batches ----------------------------------------------------------------------------------------------------------------
def second_derivatives_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `second_derivatives` for one state (see `Model.sizes`)."""
    return derivatives_workspace_size(n, nv) + nq + 28 * nv + 4 * nv * nv * nv


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
