"""Inverse dynamics and its time derivatives up to any order, O(n r^2), in body frames.

In body frames inertias are constant, and with Taylor coefficients every product is a Cauchy sum (see `joints.series`). Gravity
costs nothing: the ground's twist is (0, -g t), that of a frame accelerated against gravity.

Source: AGF (57)-(66), Algorithms 1-2.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, everywhere, kernel, primitive
from liedyn.joints.children import hand_to_parent, with_children
from liedyn.joints.motion import joint_pose, store_joint_force
from liedyn.joints.series import (
    advance_motion,
    begin_motion,
    carried_twist,
    carried_wrench,
    joint_add_series,
    passive_series,
)
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, OK, finite, give, take_state
from liedyn.kernels.series.taylor import scale_rows, to_series
from liedyn.kernels.series.wrench_series import advance_wrenches, begin_wrenches, wrench_series_memory, wrench_series_work
from liedyn.lie.blocks import pack, states_in
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, less_dad, minus_dad, scale, sub, zero6
from liedyn.seam.views import carve


class InverseSeriesWork(NamedTuple):
    T: np.ndarray        # (12n,) pose in the parent at t = 0
    V: np.ndarray        # (6Kn,) coefficients of twists
    E: np.ndarray        # (18Kn,) of the joints' motions
    G: np.ndarray        # (6Kn,) of what children hand to their parent
    U: np.ndarray        # (6K,) of one body: its parent's twist seen from it at t = 0
    P: np.ndarray        # (6K,) of one body: momentum
    F: np.ndarray        # (6K,) of one body: what its joint transmits
    passive: np.ndarray  # (nv,)
    rub: np.ndarray      # (2 nv K,)


@everywhere
def inverse_series_sizes(n, nv, K): return 12 * n, 6 * K * n, 18 * K * n, 6 * K * n, 6 * K, 6 * K, 6 * K, nv, 2 * nv * K


@primitive
def inverse_series_work(memory, n, nv, K):
    """The work, and the rest of the memory."""
    views = carve(memory, inverse_series_sizes(n, nv, K))
    return InverseSeriesWork(*views[:-1]), views[-1]


def inverse_series_memory(n, nv, K): return sum(inverse_series_sizes(n, nv, K))


@primitive
def store_ground_series(tree, K, V):
    """Twist of the ground: (0, -g t)."""
    rest = zero6(number_like(V, 0.0))
    for k in range(K):
        store_twist(V, k, rest)
    store_twist(V, 1, add(rest, load_twist(tree.dV0, 0)))


@primitive
def force_sum(K, i, k, V, P, first):
    """sum over j = 0 … k of -ad*_{V_j} P_{k-j}; the coefficients of P from `first` on."""
    F = minus_dad(load_twist(V, i * K), load_twist(P, first + k))
    for j in range(1, k + 1):
        F = less_dad(F, load_twist(V, i * K + j), load_twist(P, first + k - j))
    return F


@kernel
def higher_order_inverse(tree, K, q, v, loads, passive, rubs, tau, work):
    """Coefficients 0 … K - 2 of tau (K - 1 rows of nv) from those of v (nv series of K)."""
    store_ground_series(tree, K, work.V)
    twist_series(tree, K, q, v, work)
    if loads.given:
        for k in range(K - 1):
            advance_wrenches(tree, K, k, work.V, loads)
    force_series(tree, K, loads, tau, work)
    add_rotor_series_less_passive(tree, K, q, v, passive, rubs, tau, work)


@primitive
def twist_series(tree, K, q, v, work):
    """Forward, parents first: poses, and coefficients of twists and joints' motions."""
    V, E, U = work.V, work.E, work.U
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        store_pose(work.T, i, T)
        begin_motion(tree, i, K, E)
        for k in range(K):                                                  # V = Ad_{T^-1} V_p + S v
            if k > 0:
                advance_motion(tree, i, K, k, v, E)
            parents = Ad_inv(T, load_twist(V, p * K + k))
            store_twist(U, k, parents)
            W = add(parents, carried_twist(tree, i, K, k, E, U, 0))
            store_twist(V, i * K + k, joint_add_series(tree, i, K, k, W, v))


@primitive
def force_series(tree, K, loads, tau, work):
    """Backward, children first: what the joints transmit."""
    n, nv = tree.parent.size, tree.armature.shape[0]
    V, E, G, P, F = work.V, work.E, work.G, work.P, work.F
    for i in range(n - 1, 0, -1):
        I, T = load_rigid(tree.I, i), load_pose(work.T, i)
        for k in range(K):
            store_twist(P, k, momentum(I, load_twist(V, i * K + k)))
        for k in range(K - 1):                                              # F = P' - ad*_V P - F_ext + sum of Ad* F_child
            own = add(scale(k + 1.0, load_twist(P, k + 1)), force_sum(K, i, k, V, P, 0))
            if loads.given:
                own = sub(own, load_twist(loads.F, n * k + i))
            handed = G[6 * n * k:6 * n * (k + 1)]
            own = with_children(tree, i, own, handed)
            store_twist(F, k, own)
            store_joint_force(tree, i, own, tau[k * nv:(k + 1) * nv])          # tau = S^T F
            hand_to_parent(tree, i, dAd_inv(T, add(own, carried_wrench(tree, i, K, k, E, F, 0))), handed)


@primitive
def add_rotor_series_less_passive(tree, K, q, v, passive, rubs, tau, work):
    nv = tree.armature.shape[0]
    for k in range(K - 1):
        if passive:
            passive_series(tree, K, k, q, v, rubs, work.rub, work.passive)
        for c in range(nv):
            force = load(tau, k * nv + c) + load(tree.armature, c) * ((k + 1.0) * load(v, c * K + k + 1))
            if passive:
                force = force - load(work.passive, c)
            store(tau, k * nv + c, force)


# from Python ------------------------------------------------------------------------------------------------------
def higher_order_inverse_memory(n, nq, nv, nl, K):
    return inverse_series_memory(n, nv, K) + nq + 3 * nv * K + wrench_series_memory(n, nl, K)


@entry("i8(i8[::1], f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], i8, b1, f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], i8, b1, f8[:,::1], i8, i8)", nogil=True)
def higher_order_inverses(index, constants, memory, K, q, v, f_ext, frame, passive, tau, first, last):
    """States first … last - 1. v (N, K nv): derivatives 0 … K - 1; f_ext (N, (K - 1) 6 n_links) in `frame`, or empty;
    tau (N, (K - 1) nv)."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, x, series, Tau, m) = tree_of(index, constants), carve(memory, (nq, nv * K, nv * K, nv * (K - 1)))
    work, m = inverse_series_work(m, n, nv, K)
    loads = wrench_series_work(m, n, nl, K, frame, f_ext.size > 0)
    passive, rubs = passive and index[4] != 0, index[5] != 0
    for k in range(first, last, states_in(memory)):
        code = take_state(tree, q, v, k, Q, x)
        if f_ext.size:
            pack(f_ext, k, loads.links)
            if code == OK and not finite(loads.links):
                code = BAD_F_EXT
        if code != OK:
            return code
        to_series(x, K, nv, series)
        if loads.given:
            begin_wrenches(tree, K, Q, loads)
        higher_order_inverse(tree, K, Q, series, loads, passive, rubs, Tau, work)
        scale_rows(Tau, K - 1, nv, True)
        if not give(Tau, tau, k):
            return BAD_RESULT
    return OK
