"""Inverse dynamics and its time derivatives up to any order, O(n r^2), in body frames.

In body frames inertias are constant, and with Taylor coefficients every product is a Cauchy sum (see `joints.series`). Gravity
costs nothing: the ground's twist is (0, -g t), that of a frame accelerated against gravity.

Source: AGF (57)-(66), Algorithms 1-2.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
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
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, BAD_V, OK, bad_configuration, finite
from liedyn.kernels.series.taylor import scale_rows, to_series
from liedyn.kernels.series.wrench_series import advance_wrenches, begin_wrenches, wrench_series_memory, wrench_series_work
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, less_dad, minus_dad, scale, sub
from liedyn.seam.views import span


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


@primitive
def inverse_series_work(m, n, nv, K):
    """The work, and the rest of the memory."""
    e, g, u = 12 * n + 6 * K * n, 12 * n + 24 * K * n, 12 * n + 30 * K * n
    r = u + 18 * K
    end = r + nv + 2 * nv * K
    work = InverseSeriesWork(span(m, 0, 12 * n), span(m, 12 * n, 6 * K * n), span(m, e, 18 * K * n), span(m, g, 6 * K * n),
                             span(m, u, 6 * K), span(m, u + 6 * K, 6 * K), span(m, u + 12 * K, 6 * K), span(m, r, nv),
                             span(m, r + nv, 2 * nv * K))
    return work, span(m, end, m.shape[0] - end)


def inverse_series_memory(n, nv, K): return 12 * n + 30 * K * n + 18 * K + nv + 2 * nv * K


@primitive
def store_ground_series(tree, K, V):
    """Twist of the ground: (0, -g t)."""
    zero = number_like(V, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
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
            handed = span(G, 6 * n * k, 6 * n)
            own = with_children(tree, i, own, handed)
            store_twist(F, k, own)
            store_joint_force(tree, i, own, span(tau, k * nv, nv))          # tau = S^T F
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
    tree, m = tree_of(index, constants), memory
    Q, x, series, Tau, m = m[:nq], m[nq:nq + nv * K], m[nq + nv * K:nq + 2 * nv * K], m[nq + 2 * nv * K:], m[nq + 3 * nv * K:]
    Tau = Tau[:nv * (K - 1)]
    work, m = inverse_series_work(m, n, nv, K)
    loads = wrench_series_work(m, n, nl, K, frame, f_ext.size > 0)
    passive, rubs = passive and index[4] != 0, index[5] != 0
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(v, k, x)
        code = bad_configuration(tree, Q, nq)
        if code == OK and not finite(x, nv * K):
            code = BAD_V
        if f_ext.size:
            pack(f_ext, k, loads.links)
            if code == OK and not finite(loads.links, 6 * nl * (K - 1)):
                code = BAD_F_EXT
        if code != OK:
            return code
        to_series(x, K, nv, series)
        if loads.given:
            begin_wrenches(tree, K, Q, loads)
        higher_order_inverse(tree, K, Q, series, loads, passive, rubs, Tau, work)
        scale_rows(Tau, K - 1, nv, True)
        if not finite(Tau, nv * (K - 1)):
            return BAD_RESULT
        unpack(Tau, tau, k)
    return OK
