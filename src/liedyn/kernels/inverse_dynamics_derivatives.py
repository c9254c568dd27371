"""Derivatives of inverse dynamics with respect to q and v, and the mass matrix: O(n depth).

K1 Table 5 differentiates Newton-Euler along one direction (dq, dv). A coordinate l moves all bodies beyond its joint as one rigid
body: in the frame of such a body, without the rotation of V, q_l changes V by psi_l and dV by zeta_l - ad_V psi_l; v_l changes V
by s_l and dV by phi_l - ad_V s_l:

    psi = ad_{Ad V_p} s,      zeta = ad_{Ad dV_p} s + ad_{Ad V_p} psi,      phi = psi + ad_V s

(s: screw of the joint; Ad V_p, Ad dV_p: motion of the parent in the frame of the body). With the sums I, F, B over body i and
its descendants (inertia, wrench that moves it, derivative of that wrench with respect to twists: `lie.inertia`), for a
coordinate k of i and a coordinate l of i or of its ancestors:

    M_kl = s_l^T P                                     P = I s_k
    dtau_k/dq_l = zeta_l^T P + psi_l^T g               g = B^T s_k
    dtau_k/dv_l = phi_l^T P + s_l^T g
    dtau_l/dq_k = s_l^T Q                              Q = I zeta_k + B psi_k - ad*_{s_k} F
    dtau_l/dv_k = s_l^T G                              G = I phi_k + B s_k

P, g, Q and G are propagated from body to body towards the ground by Ad*_{T^-1}. Coordinates on different branches give zero.
Singh, Russell and Wensing 2022 give the same matrices.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    joint_add,
    joint_column,
    joint_eta,
    joint_pose,
    resistance_derivative,
    rigid_to_parent,
    store_joint_force_strided,
    tree_views,
)
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_motion, states_per_block, store_block
from liedyn.kernels.couplings import close_motion, coupling_views, fold_matrix
from liedyn.kernels.force_elements import subtract_element_derivatives
from liedyn.kernels.kinematics import load_wrenches
from liedyn.kernels.newton_euler import store_ground
from liedyn.lie.inertia import (
    add_coriolis,
    add_rigid,
    coriolis,
    coriolis_to_parent,
    coriolis_transposed,
    coriolis_wrench,
    momentum,
    rigid_like,
)
from liedyn.lie.se3 import Ad_inv, ad, add, add_ad, dAd_inv, dot, sub, sub_dad
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import (
    dot3,
    load3,
    load9,
    load_pose,
    load_rigid,
    load_twist,
    rotate,
    store3,
    store9,
    store_pose,
    store_rigid,
    store_twist,
)
from liedyn.model.description import NV, ONE_DOF
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable
from liedyn.numba_tools.deferred_kernels import call_deferred
from liedyn.numba_tools.numba_internals import split_workspace


class DerivativesWorkspace(NamedTuple):
    """Motion of the bodies, sums over their descendants, and derivatives of twists."""

    T: np.ndarray     # (12n,) pose in the parent
    V: np.ndarray     # (6n,) twist
    dV: np.ndarray    # (6n,) its component-wise rate, gravity included
    I: np.ndarray     # (10n,) inertia of the body and its descendants
    F: np.ndarray     # (6n,) wrench that moves them
    B: np.ndarray     # (12n,) their Coriolis matrix
    psi: np.ndarray   # (6nv,)
    zeta: np.ndarray  # (6nv,)
    phi: np.ndarray   # (6nv,)


@jitable
def derivatives_sizes(n, nv):
    """Return the sizes of the arrays of `DerivativesWorkspace`."""
    return 12 * n, 6 * n, 6 * n, 10 * n, 6 * n, 12 * n, 6 * nv, 6 * nv, 6 * nv


@inline_kernel
def derivatives_workspace(memory, n, nv):
    """Return the `DerivativesWorkspace` whose arrays are views into `memory`."""
    return DerivativesWorkspace(*split_workspace(memory, derivatives_sizes(n, nv))[:-1])


@jitable
def derivatives_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `DerivativesWorkspace`."""
    return sum(derivatives_sizes(n, nv))


@inline_kernel
def inverse_derivatives(tree, q, v, a, f_ext, passive, Dq, Dv, M, ws):
    """Write dtau/dq, dtau/dv and M (nv nv each, by rows). Forces of force elements are not included."""
    nv, zero = tree.armature.shape[0], number_like(q, 0.0)
    for k in range(nv * nv):
        store(Dq, k, zero)
        store(Dv, k, zero)
        store(M, k, zero)
    forward_pass(tree, tree.J, q, v, a, f_ext, ws)
    for i in range(tree.parent.size - 1, 0, -1):
        for c in range(NV[tree.kind[i]]):
            store_coordinate_entries(tree, i, c, zero, Dq, Dv, M, ws)
        propagate_derivatives_to_parent(tree, i, q, ws)
    for k in range(nv):
        store(M, k * nv + k, load(M, k * nv + k) + load(tree.armature, k))
    if passive:
        add_passive_derivatives(tree, v, Dq, Dv)


@inline_kernel
def forward_pass(tree, inertias, q, v, a, f_ext, ws):
    """Write the motion of the bodies (K1 Table 2), psi, zeta, phi; I, F, B of each body alone. inertias: tree.I or tree.J."""
    zero = number_like(q, 0.0)
    store_ground(tree, q, ws.V, ws.dV)
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        Vp, dVp = Ad_inv(T, load_twist(ws.V, p)), Ad_inv(T, load_twist(ws.dV, p))
        V = joint_add(tree, i, Vp, v)                                       # V = Ad V_p + S dq
        dV = joint_add(tree, i, add(dVp, joint_eta(tree, i, V, v)), a)      # dV = Ad dV_p + ad_V S dq + S ddq
        store_pose(ws.T, i, T)
        store_twist(ws.V, i, V)
        store_twist(ws.dV, i, dV)
        for c in range(NV[tree.kind[i]]):
            k, s = tree.iv[i] + c, joint_column(tree, i, c, zero)
            psi = ad(Vp, s)
            store_twist(ws.psi, k, psi)
            store_twist(ws.zeta, k, add_ad(ad(dVp, s), Vp, psi))
            store_twist(ws.phi, k, add_ad(psi, V, s))
        I = rigid_like(load_rigid(inertias, i), zero)
        P = momentum(I, V)
        F = sub_dad(momentum(I, dV), V, P)                                 # F = I dV - ad*_V I V
        if f_ext.size:
            F = sub(F, load_twist(f_ext, i))
        store_rigid(ws.I, i, I)
        store_twist(ws.F, i, F)
        store_coriolis(ws.B, i, coriolis(I, V, P[1]))


@inline_kernel
def store_coordinate_entries(tree, i, c, zero, Dq, Dv, M, ws):
    """Write row and column k of Dq, Dv and M, for coordinate c of body i and the coordinates between i and the root."""
    nv, k, j = tree.armature.shape[0], tree.iv[i] + c, i
    s, psi, zeta, phi = joint_column(tree, i, c, zero), load_twist(ws.psi, k), load_twist(ws.zeta, k), load_twist(ws.phi, k)
    I, F, B = load_rigid(ws.I, i), load_twist(ws.F, i), load_coriolis(ws.B, i)
    P, g = momentum(I, s), coriolis_transposed(B, s)
    Q = sub_dad(add(momentum(I, zeta), coriolis_wrench(B, psi[0])), s, F)
    G = add(momentum(I, phi), coriolis_wrench(B, s[0]))
    while True:
        first = tree.iv[j]
        store_joint_force_strided(tree, j, P, M, k * nv + first, 1)                 # M_kl
        for d in range(NV[tree.kind[j]]):
            l, s = first + d, joint_column(tree, j, d, zero)
            store(Dq, k * nv + l, dot(P, load_twist(ws.zeta, l)) + dot3(g, load_twist(ws.psi, l)[0]))
            store(Dv, k * nv + l, dot(P, load_twist(ws.phi, l)) + dot3(g, s[0]))
        if j != i:
            store_joint_force_strided(tree, j, P, M, first * nv + k, nv)            # M_lk
            store_joint_force_strided(tree, j, Q, Dq, first * nv + k, nv)           # dtau_l/dq_k
            store_joint_force_strided(tree, j, G, Dv, first * nv + k, nv)           # dtau_l/dv_k
        if tree.parent[j] == 0:
            break
        T = load_pose(ws.T, j)
        P, Q, G, g = dAd_inv(T, P), dAd_inv(T, Q), dAd_inv(T, G), rotate(T[0], g)
        j = tree.parent[j]


@inline_kernel
def propagate_derivatives_to_parent(tree, i, q, ws):
    """Add I, F and B of body i and its descendants to those of its parent."""
    p = tree.parent[i]
    if p > 0:
        T = load_pose(ws.T, i)
        store_rigid(ws.I, p, add_rigid(load_rigid(ws.I, p), rigid_to_parent(tree, i, q, T, load_rigid(ws.I, i))))
        store_twist(ws.F, p, add(load_twist(ws.F, p), dAd_inv(T, load_twist(ws.F, i))))
        store_coriolis(ws.B, p, add_coriolis(load_coriolis(ws.B, p), coriolis_to_parent(T, load_coriolis(ws.B, i))))


@inline_kernel
def load_coriolis(x, i):
    """Return B = (E, f) number i of an array (12 n,)."""
    return load9(x, 12 * i), load3(x, 12 * i + 9)


@inline_kernel
def store_coriolis(x, i, B):
    """Write B = (E, f) as number i of an array (12 n,)."""
    store9(x, 12 * i, B[0])
    store3(x, 12 * i + 9, B[1])


@inline_kernel
def add_passive_derivatives(tree, v, Dq, Dv):
    """Subtract the derivatives of passive forces: of springs from dtau/dq, of damping and friction from dtau/dv."""
    nv = tree.armature.shape[0]
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            if tree.kind[i] == ONE_DOF:
                store(Dq, k * nv + k, load(Dq, k * nv + k) + load(tree.stiffness, k))
            store(Dv, k * nv + k, load(Dv, k * nv + k) + resistance_derivative(tree, k, v))


# batches ----------------------------------------------------------------------------------------------------------------
def inverse_derivatives_batch_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `inverse_derivatives_batch` for one state (see `Model.sizes`)."""
    return derivatives_workspace_size(n, nv) + nq + 2 * nv + 6 * nl + 6 * n + 3 * nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], f8[:,::1], f8[:,::1], i8, "
             "i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
             nogil=True)
def inverse_derivatives_batch(index, constants, memory, q, v, a, f_ext, passive, Dq, Dv, M, first, last):
    """Write dtau/dq to Dq, dtau/dv to Dv and the mass matrix to M, each (N, nv nv), for states first … last - 1.

    f_ext   external wrenches (N, 6 n_links) in link frames, or empty
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    size = nv * nv
    tree, parts = tree_views(index, constants), split_workspace(memory, (nq, nv, nv, 6 * nl, 6 * n, size, size, size))
    Q, V, A, links, bodies, of_q, of_v, mass, m = parts
    ws, couplings = derivatives_workspace(m, n, nv), coupling_views(index, constants)
    for k in range(first, last, states_per_block(memory)):
        bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
        code = load_motion(tree, q, v, a, k, Q, V, A) or bad_f_ext or close_motion(couplings, Q, V, A)
        if code != OK:
            return code
        inverse_derivatives(tree, Q, V, A, F, passive and index[4] != 0, of_q, of_v, mass, ws)
        if passive and tree.element.size:
            call_deferred(subtract_element_derivatives, (tree, Q, V, of_q, of_v, ws.psi))
        for X in (of_q, of_v, mass):
            fold_matrix(couplings, X, nv)
        if not (store_block(of_q, Dq, k) and store_block(of_v, Dv, k) and store_block(mass, M, k)):
            return BAD_RESULT
    return OK
