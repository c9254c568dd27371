"""Inverse dynamics and its time derivatives of any order, O(n r^2), in body frames.

In body frames inertias are constant, and with Taylor coefficients every product is a Cauchy sum (see `joints.taylor_series`).
Gravity needs no extra operations: the ground's twist is (0, -g t), that of a frame accelerated against gravity.

Source: AGF (57)-(66), Algorithms 1-2.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import accumulate_children, joint_pose, propagate_to_parent, store_joint_force, tree_views
from liedyn.joints.taylor_series import (
    MOTION_SIZE,
    advance_motion,
    initialize_motion,
    joint_add_series,
    load_twist_row,
    passive_series,
    store_twist_row,
    transformed_twist_term,
    transformed_wrench_term,
)
from liedyn.kernels.batch_blocks import (
    BAD_F_EXT,
    BAD_RESULT,
    OK,
    all_finite,
    load_block,
    load_state,
    states_per_block,
    store_block,
)
from liedyn.kernels.kinematics import LOCAL, LOCAL_WORLD_ALIGNED, WORLD, wrenches_on_bodies
from liedyn.lie.inertia import momentum
from liedyn.lie.se3 import Ad_inv, add, compose, dAd, dAd_inv, neg_dad, scale, sub, sub_dad, zero6
from liedyn.lie.simd import absolute, all_less, load, number_like, store
from liedyn.lie.vectors import (
    add_cross,
    add_rotate_back,
    add_to_twist,
    load3,
    load9,
    load_pose,
    load_rigid,
    load_twist,
    rotate_back,
    scale3,
    store3,
    store9,
    store_pose,
    store_twist,
    sub3,
)
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable, kernel
from liedyn.numba_tools.numba_internals import split_workspace

# Conversion between time derivatives of users and Taylor coefficients of kernels: x_k = x^(k) / k! ----------------------

@inline_kernel
def to_series(x, K, n, out):
    """Convert derivatives x (K rows of n) to coefficients out (n series of K)."""
    scale = 1.0
    for k in range(K):
        if k > 1:
            scale = scale / k
        for c in range(n):
            store(out, c * K + k, load(x, k * n + c) * scale)


@inline_kernel
def scale_rows(x, K, n, to_derivatives):
    """Multiply x (K rows of n) by k! in place, or by 1 / k! if not `to_derivatives`."""
    scale = 1.0
    for k in range(2, K):
        scale = scale * k
        s = scale if to_derivatives else 1.0 / scale
        for c in range(k * n, (k + 1) * n):
            store(x, c, load(x, c) * s)


# Taylor series of external wrenches on bodies, from those on links in one of three frames -------------------------------

# Wrenches in link frames are constant transforms of those on bodies. The other frames rotate relative to the body: with the
# body's pose T(t) = T(0) D(t) in the world and E the series of Ad_D = [R 0; B R], E' = E ad_V, a wrench F in the world is
# Ad*_D (Ad*_{T(0)} F) on the body. V is the body's twist relative to the ground: V of the kernels minus the ground's (0, -g t).
#
# Source: AGF (67)-(70).

class WrenchSeries(NamedTuple):
    """Taylor series of external wrenches."""

    is_present: bool
    frame: int
    links: np.ndarray      # (6 n_links (K - 1),) order by order
    F: np.ndarray          # (6n (K - 1),) on bodies, order by order
    T: np.ndarray          # (12n,) poses of bodies in the world; from here on empty where the frame is LOCAL
    E: np.ndarray          # (18nK,)
    gravity: np.ndarray       # (3nK,) acceleration of the ground, in the frames of the bodies
    initial_frame_wrenches: np.ndarray      # (6 n_links K,) wrenches in the frames of their bodies at t = 0
    magnitude: np.ndarray     # (n,) zero for bodies without a wrench


@inline_kernel
def wrench_series_workspace(m, n, nl, K, frame, has_wrenches):
    """Return the `WrenchSeries` whose arrays are views into m. given: whether there are external wrenches, in `frame`."""
    rows = K - 1 if has_wrenches else 0
    moving = 1 if has_wrenches and frame != LOCAL else 0
    sizes = 6 * nl * rows, 6 * n * rows, 12 * n * moving, 18 * n * K * moving, 3 * n * K * moving, 6 * nl * K * moving, n * moving
    return WrenchSeries(has_wrenches, frame, *split_workspace(m, sizes)[:-1])


def wrench_series_workspace_size(n, nl, K):
    """Return the size (numbers) of the memory of `WrenchSeries`."""
    return 6 * (nl + n) * K + 13 * n + (21 * n + 6 * nl) * K


@kernel
def initialize_wrench_series(tree, K, q, wrenches):
    """Convert the derivatives in `wrenches.links` to the arrays that `advance_wrench_series` needs."""
    n, nl, zero = tree.parent.size, tree.link_body.size, number_like(q, 0.0)
    scale_rows(wrenches.links, K - 1, 6 * nl, False)
    if wrenches.frame == LOCAL:
        for k in range(K - 1):
            wrenches_on_bodies(tree, wrenches.links[6 * nl * k:], wrenches.F[6 * n * k:6 * n * (k + 1)])
    else:
        one = zero + 1.0
        unit = one, zero, zero, zero, one, zero, zero, zero, one
        store_pose(wrenches.T, 0, (unit, (zero, zero, zero)))
        for i in range(n):
            if i > 0:
                store_pose(wrenches.T, i, compose(load_pose(wrenches.T, tree.parent[i]), joint_pose(tree, i, q)))
            e = MOTION_SIZE * K * i
            store9(wrenches.E, e, unit)
            store9(wrenches.E, e + 9, (zero, zero, zero, zero, zero, zero, zero, zero, zero))
            store3(wrenches.gravity, 3 * K * i, rotate_back(load9(wrenches.T, 12 * i), load3(tree.dV0, 3)))
            store(wrenches.magnitude, i, zero)
        for link in range(nl):
            b = tree.link_body[link]
            T = load_pose(wrenches.T, b)
            at = (T[0], (zero, zero, zero)) if wrenches.frame == LOCAL_WORLD_ALIGNED else T
            for k in range(K - 1):
                F = load_twist(wrenches.links, nl * k + link)
                store_twist(wrenches.initial_frame_wrenches, link * K + k, dAd(at, F))
                for x in (F[0][0], F[0][1], F[0][2], F[1][0], F[1][1], F[1][2]):
                    store(wrenches.magnitude, b, load(wrenches.magnitude, b) + absolute(x))


@kernel
def advance_wrench_series(tree, K, k, V, wrenches):
    """Write coefficient k of the wrenches on bodies, from V up to k - 1. Call it for 0, 1, … k in this order."""
    n, zero = tree.parent.size, number_like(V, 0.0)
    if wrenches.frame == LOCAL:
        return
    for i in range(n):
        store_twist(wrenches.F, n * k + i, zero6(zero))
        if k > 0 and not all_less(load(wrenches.magnitude, i), 1e-300):
            advance_world_motion(i, K, k, V, wrenches)
    for link in range(tree.link_body.size):
        b = tree.link_body[link]
        if not all_less(load(wrenches.magnitude, b), 1e-300):
            m, f = zero6(zero)
            for j in range(k + 1):
                e, W = MOTION_SIZE * (K * b + j), load_twist(wrenches.initial_frame_wrenches, link * K + k - j)
                R = load9(wrenches.E, e)
                m, f = add_rotate_back(m, R, W[0]), add_rotate_back(f, R, W[1])
                if wrenches.frame == WORLD:
                    m = add_rotate_back(m, load9(wrenches.E, e + 9), W[1])
            if wrenches.frame == LOCAL_WORLD_ALIGNED:                              # the link's origin is constant in the body
                m = add_cross(m, load3(tree.link_pose, 12 * link + 9), f)
            add_to_twist(wrenches.F, n * k + b, (m, f))


@inline_kernel
def advance_world_motion(i, K, k, V, wrenches):
    """Write coefficient k of E' = E ad_V, row by row, and of gravity."""
    zero, e = number_like(V, 0.0), MOTION_SIZE * K * i
    for row in range(3):
        r, b = zero6(zero)
        for j in range(k):
            w, u = load_twist(V, i * K + k - 1 - j)
            if j < k - 1:
                u = sub3(u, load3(wrenches.gravity, 3 * (K * i + k - 2 - j)))
            x, y = load_twist_row(wrenches.E, e + MOTION_SIZE * j + 3 * row)
            r, b = add_cross(r, x, w), add_cross(add_cross(b, y, w), x, u)
        store_twist_row(wrenches.E, e + MOTION_SIZE * k + 3 * row, scale3(1.0 / k, r), scale3(1.0 / k, b))
    gravity = load3(wrenches.gravity, 3 * K * i)
    store3(wrenches.gravity, 3 * (K * i + k), rotate_back(load9(wrenches.E, e + MOTION_SIZE * k), gravity))


# Inverse dynamics -------------------------------------------------------------------------------------------------------

class InverseSeriesWorkspace(NamedTuple):
    """Taylor coefficients of a tree."""

    T: np.ndarray        # (12n,) pose in the parent at t = 0
    V: np.ndarray        # (6Kn,) coefficients of twists
    E: np.ndarray        # (18Kn,) of the joints' motions
    G: np.ndarray        # (6Kn,) sums of the children's wrenches
    U: np.ndarray        # (6K,) of one body: its parent's twist, in its frame at t = 0
    P: np.ndarray        # (6K,) of one body: momentum
    F: np.ndarray        # (6K,) of one body: wrench that its joint transmits
    passive: np.ndarray  # (nv,)
    friction_series: np.ndarray      # (2 nv K,)


@jitable
def inverse_series_sizes(n, nv, K):
    """Return the sizes of the arrays of `InverseSeriesWorkspace` for K coefficients."""
    return 12 * n, 6 * K * n, 18 * K * n, 6 * K * n, 6 * K, 6 * K, 6 * K, nv, 2 * nv * K


@inline_kernel
def inverse_series_workspace(memory, n, nv, K):
    """Return the workspace and the remaining memory."""
    views = split_workspace(memory, inverse_series_sizes(n, nv, K))
    return InverseSeriesWorkspace(*views[:-1]), views[-1]


def inverse_series_workspace_size(n, nv, K):
    """Return the size (numbers) of the memory of `InverseSeriesWorkspace`."""
    return sum(inverse_series_sizes(n, nv, K))


@inline_kernel
def store_ground_series(tree, K, V):
    """Write the twist of the ground: (0, -g t)."""
    rest = zero6(number_like(V, 0.0))
    for k in range(K):
        store_twist(V, k, rest)
    store_twist(V, 1, add(rest, load_twist(tree.dV0, 0)))


@inline_kernel
def bias_wrench_coefficient(K, i, k, V, P, first):
    """Return the sum over j = 0 … k of -ad*_{V_j} P_{k-j}. `first`: position of P_0."""
    F = neg_dad(load_twist(V, i * K), load_twist(P, first + k))
    for j in range(1, k + 1):
        F = sub_dad(F, load_twist(V, i * K + j), load_twist(P, first + k - j))
    return F


@kernel
def higher_order_inverse(tree, K, q, v, wrenches, passive, has_friction, tau, ws):
    """Write coefficients 0 … K - 2 of tau (K - 1 rows of nv) from those of v (nv series of K)."""
    store_ground_series(tree, K, ws.V)
    twist_series(tree, K, q, v, ws)
    if wrenches.is_present:
        for k in range(K - 1):
            advance_wrench_series(tree, K, k, ws.V, wrenches)
    force_series(tree, K, wrenches, tau, ws)
    add_joint_force_series(tree, K, q, v, passive, has_friction, tau, ws)


@inline_kernel
def twist_series(tree, K, q, v, ws):
    """Write poses, and coefficients of twists and joints' motions, parents first."""
    V, E, U = ws.V, ws.E, ws.U
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        store_pose(ws.T, i, T)
        initialize_motion(tree, i, K, E)
        for k in range(K):                                                  # V = Ad_{T^-1} V_p + S v
            if k > 0:
                advance_motion(tree, i, K, k, v, E)
            parents = Ad_inv(T, load_twist(V, p * K + k))
            store_twist(U, k, parents)
            W = add(parents, transformed_twist_term(tree, i, K, k, E, U, 0))
            store_twist(V, i * K + k, joint_add_series(tree, i, K, k, W, v))


@inline_kernel
def force_series(tree, K, wrenches, tau, ws):
    """Write the wrenches that joints transmit, and tau, children first."""
    n, nv = tree.parent.size, tree.armature.shape[0]
    V, E, G, P, F = ws.V, ws.E, ws.G, ws.P, ws.F
    for i in range(n - 1, 0, -1):
        I, T = load_rigid(tree.I, i), load_pose(ws.T, i)
        for k in range(K):
            store_twist(P, k, momentum(I, load_twist(V, i * K + k)))
        for k in range(K - 1):                                              # F = P' - ad*_V P - F_ext + sum of Ad* F_child
            body_wrench = add(scale(k + 1.0, load_twist(P, k + 1)), bias_wrench_coefficient(K, i, k, V, P, 0))
            if wrenches.is_present:
                body_wrench = sub(body_wrench, load_twist(wrenches.F, n * k + i))
            handed = G[6 * n * k:6 * n * (k + 1)]
            body_wrench = accumulate_children(tree, i, body_wrench, handed)
            store_twist(F, k, body_wrench)
            store_joint_force(tree, i, body_wrench, tau[k * nv:(k + 1) * nv])          # tau = S^T F
            propagate_to_parent(tree, i, dAd_inv(T, add(body_wrench, transformed_wrench_term(tree, i, K, k, E, F, 0))), handed)


@inline_kernel
def add_joint_force_series(tree, K, q, v, passive, has_friction, tau, ws):
    """Add armature times acceleration to tau; if `passive`, subtract passive forces."""
    nv = tree.armature.shape[0]
    for k in range(K - 1):
        if passive:
            passive_series(tree, K, k, q, v, has_friction, ws.friction_series, ws.passive)
        for c in range(nv):
            force = load(tau, k * nv + c) + load(tree.armature, c) * ((k + 1.0) * load(v, c * K + k + 1))
            if passive:
                force = force - load(ws.passive, c)
            store(tau, k * nv + c, force)


# batches ----------------------------------------------------------------------------------------------------------------
def higher_order_inverse_workspace_size(n, nq, nv, nl, K):
    """Return the size (numbers) of the workspace of `higher_order_inverses` with K coefficients for one state."""
    return inverse_series_workspace_size(n, nv, K) + nq + 3 * nv * K + wrench_series_workspace_size(n, nl, K)


@entry_point("i8(i8[::1], f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], i8, b1, f8[:,::1], i8, i8)",
             "i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], i8, b1, f8[:,::1], i8, i8)", nogil=True)
def higher_order_inverses(index, constants, memory, K, q, v, f_ext, frame, passive, tau, first, last):
    """Write tau (N, (K - 1) nv) of states first … last - 1.

    v      (N, K nv): derivatives 0 … K - 1
    f_ext  (N, (K - 1) 6 n_links) in `frame`, or empty
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, x, series, Tau, m) = tree_views(index, constants), split_workspace(memory, (nq, nv * K, nv * K, nv * (K - 1)))
    ws, m = inverse_series_workspace(m, n, nv, K)
    wrenches = wrench_series_workspace(m, n, nl, K, frame, f_ext.size > 0)
    passive, has_friction = passive and index[4] != 0, index[5] != 0
    for k in range(first, last, states_per_block(memory)):
        code = load_state(tree, q, v, k, Q, x)
        if f_ext.size:
            load_block(f_ext, k, wrenches.links)
            if code == OK and not all_finite(wrenches.links):
                code = BAD_F_EXT
        if code != OK:
            return code
        to_series(x, K, nv, series)
        if wrenches.is_present:
            initialize_wrench_series(tree, K, Q, wrenches)
        higher_order_inverse(tree, K, Q, series, wrenches, passive, has_friction, Tau, ws)
        scale_rows(Tau, K - 1, nv, True)
        if not store_block(Tau, tau, k):
            return BAD_RESULT
    return OK
