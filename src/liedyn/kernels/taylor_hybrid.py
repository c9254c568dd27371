"""Hybrid dynamics and its time derivatives of any order, in body frames. Forward dynamics: no coordinate is prescribed.

At every order the equations are those of order 0 with another bias, since the leading coefficients of dV and F obey the same
relations: the articulated inertias are factored once (AGF Lemma 2). Order k, in coefficients (see `joints.taylor_series`):

    dV_k = (k + 1) V_{k+1} = Ad_{T^-1} dV_k of the parent + eta_k + S a_k      eta_k: from lower orders of the motion
    F_k  = I dV_k + b_k + sum over children of Ad* (F_k + zeta_k)              zeta_k: from lower orders of F
         = Pi (Ad_{T^-1} dV_k of the parent + eta_k) + beta_k                  after elimination of the joint

Source: AGF (22)-(26), (44)-(56), Algorithms 3-4, Lemma 2.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    accumulate_children,
    accumulate_children_inertia,
    eliminate_joint,
    eliminate_joint_bias,
    joint_pose,
    propagate_inertia_to_parent,
    propagate_to_parent,
    solve_joint,
    tree_views,
)
from liedyn.joints.taylor_series import (
    MOTION_SIZE,
    advance_motion,
    initialize_motion,
    joint_add_series,
    passive_series,
    transformed_twist_term,
    transformed_wrench_term,
)
from liedyn.kernels.batch_blocks import (
    BAD_A,
    BAD_F_EXT,
    BAD_RESULT,
    BAD_TAU,
    OK,
    SINGULAR,
    SMALLEST_NORMAL,
    all_finite,
    all_finite_where,
    check_state,
    is_below,
    load_block,
    states_per_block,
    unpack_block,
)
from liedyn.kernels.taylor_inverse import (
    advance_wrench_series,
    bias_wrench_coefficient,
    initialize_wrench_series,
    scale_rows,
    store_ground_series,
    wrench_series_workspace,
    wrench_series_workspace_size,
)
from liedyn.lie.inertia import momentum, rigid_to_sym6, sym6_to_parent, symv6
from liedyn.lie.se3 import Ad_inv, add, dAd, dAd_inv, scale, sub, zero6
from liedyn.lie.simd import load, maximum, number_like, store
from liedyn.lie.vectors import (
    add_rotate_back,
    load3,
    load9,
    load_pose,
    load_rigid,
    load_sym6,
    load_twist,
    store3,
    store_pose,
    store_sym6,
    store_twist,
)
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable, kernel
from liedyn.numba_tools.numba_internals import split_workspace


class HybridSeriesWorkspace(NamedTuple):
    """Taylor coefficients of a tree, and articulated inertias. K: number of coefficients."""

    T: np.ndarray        # (12n,) pose in the parent at t = 0
    V: np.ndarray        # (6Kn,) coefficients of twists
    U: np.ndarray        # (6Kn,) of the parents' twists in the frames of the bodies at t = 0
    P: np.ndarray        # (6Kn,) of momenta
    F: np.ndarray        # (6Kn,) of the wrenches that joints transmit to their bodies
    E: np.ndarray        # (18Kn,) of the joints' motions
    AI: np.ndarray       # (21n,) sum of the children's contributions to the articulated inertia
    AB: np.ndarray       # (6n,) sum of the children's contributions to the bias of this order
    Pi: np.ndarray       # (21n,) articulated inertias after elimination
    beta: np.ndarray     # (6n,) bias of this order after elimination
    eta: np.ndarray      # (6n,)
    dV: np.ndarray       # (6n,)
    base: np.ndarray     # (6K,) spatial wrench on the floating base, in its frame at t = 0
    v: np.ndarray        # (nv K,) coefficients of v
    friction_series: np.ndarray      # (2 nv K,)


class FactorSeriesWorkspace(NamedTuple):
    """Arrays that the functions of `joints.joint_model` use."""

    U: np.ndarray        # (6nv,)
    Psi: np.ndarray      # (nv,)
    u: np.ndarray        # (nv,)
    passive: np.ndarray  # (nv,)


@jitable
def hybrid_series_sizes(n, nv, K):
    """Return the sizes of the arrays of `HybridSeriesWorkspace` for K coefficients."""
    k = 6 * K * n
    return 12 * n, k, k, k, k, 3 * k, 21 * n, 6 * n, 21 * n, 6 * n, 6 * n, 6 * n, 6 * K, nv * K, 2 * nv * K


@inline_kernel
def hybrid_series_workspace(memory, n, nv, K):
    """Return the workspace, the workspace of the factors, and the remaining memory."""
    views = split_workspace(memory, hybrid_series_sizes(n, nv, K))
    factors = split_workspace(views[-1], (6 * nv, nv, nv, nv))
    return HybridSeriesWorkspace(*views[:-1]), FactorSeriesWorkspace(*factors[:-1]), factors[-1]


def hybrid_series_workspace_size(n, nv, K):
    """Return the size (numbers) of the memory for hybrid dynamics of series with K coefficients."""
    return sum(hybrid_series_sizes(n, nv, K)) + 9 * nv


@kernel
def higher_order_hybrid(tree, K, prescribed, q, v, a, tau, wrenches, spatial_body, passive, has_friction, ws, factors):
    """Write coefficients 0 … K - 2 of a (K - 1 rows of nv) where not prescribed and of tau where prescribed.

    spatial_body: free body whose tau is its spatial wrench on input, and the wrench in its frame on output; or -1. Returns a
    positive number if a joint's articulated inertia vanishes.
    """
    nv = tree.armature.shape[0]
    store_ground_series(tree, K, ws.V)
    store_coefficient(K, 0, v, ws.v)
    initialize_series(tree, K, q, ws)
    deficit = articulated_inertias(tree, prescribed, ws, factors)
    for k in range(K - 1):
        if spatial_body >= 0:
            spatial_wrench_to_body(tree, K, k, spatial_body, tau[k * nv:(k + 1) * nv], ws)
        if wrenches.is_present:
            advance_wrench_series(tree, K, k, ws.V, wrenches)
        if passive:
            passive_series(tree, K, k, q, ws.v, has_friction, ws.friction_series, factors.passive)
        x, force = a[k * nv:(k + 1) * nv], tau[k * nv:(k + 1) * nv]
        backward_pass(tree, K, k, prescribed, passive, x, force, wrenches, ws, factors)
        store_ground_rate(k, ws)
        forward_pass(tree, K, k, prescribed, passive, x, force, ws, factors)
        store_coefficient(K, k + 1, x, ws.v)
    return deficit


@inline_kernel
def store_coefficient(K, k, x, v):
    """Store coefficient k of v. Coefficient k - 1 of its rate is x."""
    per = 1.0 / k if k > 0 else 1.0
    for c in range(v.shape[0] // K):
        store(v, c * K + k, load(x, c) * per)


@kernel
def initialize_series(tree, K, q, ws):
    """Write poses, and coefficients 0 of twists."""
    for i in range(1, tree.parent.size):
        T = joint_pose(tree, i, q)
        store_pose(ws.T, i, T)
        initialize_motion(tree, i, K, ws.E)
        U = Ad_inv(T, load_twist(ws.V, tree.parent[i] * K))
        store_twist(ws.U, i * K, U)
        store_twist(ws.V, i * K, joint_add_series(tree, i, K, 0, U, ws.v))


@kernel
def backward_pass(tree, K, k, prescribed, passive, a, tau, wrenches, ws, factors):
    """Write eta, beta and u of order k, children first."""
    n = tree.parent.size
    for i in range(n - 1, 0, -1):
        advance_motion(tree, i, K, k + 1, ws.v, ws.E)
        eta = scale(k + 1.0, transformed_twist_term(tree, i, K, k + 1, ws.E, ws.U, i * K))
        store_twist(ws.eta, i, eta)
        store_twist(ws.P, i * K + k, momentum(load_rigid(tree.I, i), load_twist(ws.V, i * K + k)))
        b = accumulate_children(tree, i, bias_wrench_coefficient(K, i, k, ws.V, ws.P, i * K), ws.AB)
        if wrenches.is_present:
            b = sub(b, load_twist(wrenches.F, n * k + i))
        beta = eliminate_joint_bias(tree, i, b, prescribed, passive, a, tau, factors)
        store_twist(ws.beta, i, beta)
        handed = add(add(beta, symv6(load_sym6(ws.Pi, i), eta)), transformed_wrench_term(tree, i, K, k, ws.E, ws.F, i * K))
        propagate_to_parent(tree, i, dAd_inv(load_pose(ws.T, i), handed), ws.AB)


@kernel
def spatial_wrench_to_body(tree, K, k, i, tau, ws):
    """Transform order k of a spatial wrench to the frame of a free body on the ground, by Ad*_T with T(t) = T(0) D(t)."""
    o = tree.iv[i]
    store_twist(ws.base, k, dAd(load_pose(ws.T, i), (load3(tau, o), load3(tau, o + 3))))
    m, f = load_twist(ws.base, k)
    for j in range(1, k + 1):
        e, F = MOTION_SIZE * (K * i + j), load_twist(ws.base, k - j)
        R, B = load9(ws.E, e), load9(ws.E, e + 9)
        m, f = add_rotate_back(add_rotate_back(m, R, F[0]), B, F[1]), add_rotate_back(f, R, F[1])
    store3(tau, o, m)
    store3(tau, o + 3, f)


@kernel
def articulated_inertias(tree, prescribed, ws, factors):
    """Write articulated inertias (K1 Table 4), which all orders share. Return a positive number if one vanishes for its joint."""
    zero = number_like(ws.T, 0.0)
    deficit = zero - 1.0
    for i in range(tree.parent.size - 1, 0, -1):
        AI = accumulate_children_inertia(tree, i, rigid_to_sym6(load_rigid(tree.I, i), zero), ws.AI)
        Pi, worse = eliminate_joint(tree, i, AI, prescribed, factors)
        store_sym6(ws.Pi, i, Pi)
        propagate_inertia_to_parent(tree, i, sym6_to_parent(load_pose(ws.T, i), Pi), ws.AI)
        deficit = maximum(deficit, worse)
    return deficit


@inline_kernel
def store_ground_rate(k, ws):
    """Write coefficient 1 of the ground's twist; its dV is constant."""
    zero = number_like(ws.dV, 0.0)
    store_twist(ws.dV, 0, zero6(zero))
    if k == 0:
        store_twist(ws.dV, 0, load_twist(ws.V, 1))


@kernel
def forward_pass(tree, K, k, prescribed, passive, a, tau, ws, factors):
    """Write a or tau of order k, the next coefficients of V and U, and coefficient k of F, parents first."""
    for i in range(1, tree.parent.size):
        parents = Ad_inv(load_pose(ws.T, i), load_twist(ws.dV, tree.parent[i]))
        moved = add(parents, load_twist(ws.eta, i))
        dV = solve_joint(tree, i, moved, prescribed, passive, a, tau, factors)
        store_twist(ws.dV, i, dV)
        if k < K - 2:
            per = 1.0 / (k + 1)
            store_twist(ws.V, i * K + k + 1, scale(per, dV))
            store_twist(ws.U, i * K + k + 1, scale(per, parents))
            store_twist(ws.F, i * K + k, add(symv6(load_sym6(ws.Pi, i), moved), load_twist(ws.beta, i)))


# batches ----------------------------------------------------------------------------------------------------------------
@inline_kernel
def solve_series(tree, K, prescribed, q, v, a, tau, wrenches, spatial_body, passive, has_friction, ws, factors):
    """Run `higher_order_hybrid` from derivatives to derivatives, with all checks except those of the wrenches; return a code."""
    code = derivatives_to_series(tree, K, prescribed, q, v, a, tau)
    if code != OK:
        return code
    if wrenches.is_present:
        initialize_wrench_series(tree, K, q, wrenches)
    deficit = higher_order_hybrid(tree, K, prescribed, q, v, a, tau, wrenches, spatial_body, passive, has_friction, ws, factors)
    if not is_below(deficit, SMALLEST_NORMAL):
        return SINGULAR
    return series_to_derivatives(K, a, tau)


@inline_kernel
def derivatives_to_series(tree, K, prescribed, q, v, a, tau):
    """Check the inputs, and convert derivatives a and tau to coefficients in place; return a code."""
    nv = tree.armature.shape[0]
    code = check_state(tree, q, v)
    for k in range(K - 1):
        if code == OK and not all_finite_where(a[k * nv:(k + 1) * nv], prescribed, True):
            code = BAD_A
        if code == OK and not all_finite_where(tau[k * nv:(k + 1) * nv], prescribed, False):
            code = BAD_TAU
    if code != OK:
        return code
    scale_rows(a, K - 1, nv, False)
    scale_rows(tau, K - 1, nv, False)
    return OK


@inline_kernel
def series_to_derivatives(K, a, tau):
    """Convert coefficients a and tau to derivatives in place."""
    rows = a.shape[0]
    scale_rows(a, K - 1, rows // (K - 1), True)
    scale_rows(tau, K - 1, rows // (K - 1), True)
    return OK if all_finite(a) and all_finite(tau) else BAD_RESULT


def higher_order_hybrid_workspace_size(n, nq, nv, nl, K):
    """Return the size (numbers) of the workspace of `higher_order_hybrids` with K coefficients for one state."""
    return hybrid_series_workspace_size(n, nv, K) + nq + nv + 3 * nv * (K - 1) + wrench_series_workspace_size(n, nl, K)


@entry_point("i8(i8[::1], f8[::1], f8[::1], i8, b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8, b1, i8, "
             "i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8, b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8, b1, i8, i8)",
             nogil=True)
def higher_order_hybrids(index, constants, memory, K, prescribed, q, v, a, tau, f_ext, frame, spatial_body, passive, first, last):
    """Complete a and tau (N, (K - 1) nv) in place for states first … last - 1.

    f_ext         (N, (K - 1) 6 n_links) in `frame`, or empty
    spatial_body  see `higher_order_hybrid`
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, rows = tree_views(index, constants), nv * (K - 1)
    Q, V, A, Tau, inputs, m = split_workspace(memory, (nq, nv, rows, rows, rows))
    ws, factors, m = hybrid_series_workspace(m, n, nv, K)
    wrenches = wrench_series_workspace(m, n, nl, K, frame, f_ext.size > 0)
    any_prescribed, any_free = prescribed.any(), not prescribed.all()
    for s in range(first, last, states_per_block(memory)):
        load_block(q, s, Q)
        load_block(v, s, V)
        if any_prescribed:
            load_block(a, s, A)
        if any_free:
            load_block(tau, s, Tau)
        code = OK
        if f_ext.size:
            load_block(f_ext, s, wrenches.links)
            code = OK if all_finite(wrenches.links) else BAD_F_EXT
        if code == OK:
            code = solve_series(tree, K, prescribed, Q, V, A, Tau, wrenches, spatial_body, passive and index[4] != 0,
                                index[5] != 0, ws, factors)
        if code != OK:
            return code
        if any_prescribed and any_free:                   # inputs keep their bits
            load_block(a, s, inputs)
            restore_inputs(inputs, A, prescribed, True)
            load_block(tau, s, inputs)
            restore_inputs(inputs, Tau, prescribed, False)
        if any_free:
            unpack_block(A, a, s)
        if any_prescribed:
            unpack_block(Tau, tau, s)
    return OK


@inline_kernel
def restore_inputs(inputs, x, prescribed, selected):
    """Copy the inputs back, which a conversion to coefficients and back would round."""
    nv = prescribed.shape[0]
    for c in range(nv):
        if prescribed[c] == selected:
            for k in range(c, x.shape[0], nv):
                store(x, k, load(inputs, k))
