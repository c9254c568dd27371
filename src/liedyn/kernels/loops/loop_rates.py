"""How the equations of a closure change with q, v and a.

Seen from frame B, a loop is a chain of joints from B to A. Let s_k be the column of coordinate k there, negative on A's side, and
let l > k mean that l lies beyond the joint of k on the way to A. A joint moves what is beyond it: ds_l/dq_k = -ad_{s_k} s_l for
l > k. The twist of B relative to A and its rate are

    V  = sum_l s_l v_l                              P_l = sum of s_k v_k over k < l
    dV = sum_l c_l,   c_l = s_l a_l - ad_{P_l} s_l v_l

(a driven frame A is a last joint, of column V_d and velocity -1), and with the sums beyond k, Z_k of s_l v_l and Y_k of c_l,

    dV/dq_k = -ad_{s_k} Z_k       d(dV)/dq_k = -ad_{s_k} Y_k - ad_{ad_{s_k} (V - Z_k)} Z_k
    dV/dv_k = s_k                 d(dV)/dv_k = ad_{s_k} (P_k - Z_k)                              d(dV)/da_k = s_k
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import everywhere, primitive
from liedyn.joints.closures import (
    BODY_A,
    BODY_B,
    COMMON,
    DRIVEN,
    FIRST,
    KIND,
    ROW_COUNT,
    closure_row,
    guide_curvature,
    guide_rate,
    row_rate,
)
from liedyn.joints.kinds import BALL_CLOSURE, NV
from liedyn.kernels.loops.loop_rows import end_of, load_guide
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose, load_twist, store_twist
from liedyn.lie.se3 import Ad_inv, ad, add, dot, minus_dad, neg, scale, sub, zero6
from liedyn.lie.vec3 import add3
from liedyn.seam.views import carve


class LoopWork(NamedTuple):
    """Of one loop, seen from frame B: sums over the joint of a body, or over those before and beyond it."""

    s: np.ndarray     # (6nv,) columns
    U: np.ndarray     # (6n,) s v of the joint
    P: np.ndarray     # (6n,) the same of those before
    Z: np.ndarray     # (6n,) and beyond
    C: np.ndarray     # (6n,) c of the joint
    Y: np.ndarray     # (6n,) and of those beyond


@primitive
def loop_work(memory, n, nv): return LoopWork(*carve(memory, (6 * nv, 6 * n, 6 * n, 6 * n, 6 * n, 6 * n))[:-1])


@everywhere
def loop_work_memory(n, nv): return 30 * n + 6 * nv


# sums over a loop -------------------------------------------------------------------------------------------------
@primitive
def joint_sums(tree, loops, c, s, x, U):
    """U of each body = sum of s_k x_k over its joint."""
    zero = number_like(s, 0.0)
    for leg in range(2):
        i = end_of(loops, c, leg)
        while i != loops.record[c, COMMON]:
            W = zero6(zero)
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                W = add(W, scale(load(x, k), load_twist(s, k)))
            store_twist(U, i, W)
            i = tree.parent[i]


@primitive
def sums_beyond(tree, loops, c, U, end, P, Z):
    """P and Z of each body: sums of U over the joints before and beyond its own, the latter with `end`. Returns the sum over all.

    Columns are constant in the frame behind their joint, on A's side too: there a joint is both before and beyond itself."""
    common, total, i = loops.record[c, COMMON], end, loops.record[c, BODY_A]
    while i != common:
        total = add(total, load_twist(U, i))
        store_twist(Z, i, total)
        i = tree.parent[i]
    i = loops.record[c, BODY_B]
    while i != common:
        total = add(total, load_twist(U, i))
        i = tree.parent[i]
    beyond, i = total, loops.record[c, BODY_B]
    while i != common:
        store_twist(P, i, sub(total, beyond))
        beyond = sub(beyond, load_twist(U, i))
        store_twist(Z, i, beyond)
        i = tree.parent[i]
    i = loops.record[c, BODY_A]
    while i != common:
        store_twist(P, i, add(sub(total, load_twist(Z, i)), load_twist(U, i)))
        i = tree.parent[i]
    return total


@primitive
def drive_motion(loops, c, T, drive):
    """Twist of a driven frame A and its rate, in B."""
    d, zero = loops.record[c, DRIVEN], T[1][0] - T[1][0]
    if d < 0:
        return zero6(zero), zero6(zero)
    return Ad_inv(T, load_twist(drive, 4 * d + 2)), Ad_inv(T, load_twist(drive, 4 * d + 3))


# a closure --------------------------------------------------------------------------------------------------------
@primitive
def closure_rates(tree, loops, c, v, a, drive, rows, work, Rq, Rv):
    """Rows of Rq and Rv (m nv): rates of F . dV + dF . V by q and v. work.s: of `see_columns`."""
    nv, kind, first = tree.above.size, loops.record[c, KIND], loops.record[c, FIRST]
    T_ab, g, extent, sphere = load_pose(rows.T, c), load_guide(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    V_d, dV_d = drive_motion(loops, c, T_ab, drive)
    joint_sums(tree, loops, c, work.s, v, work.U)
    V = sums_beyond(tree, loops, c, work.U, neg(V_d), work.P, work.Z)
    joint_sums(tree, loops, c, work.s, a, work.C)
    for leg in range(2):
        i = end_of(loops, c, leg)
        while i != loops.record[c, COMMON]:
            store_twist(work.C, i, sub(load_twist(work.C, i), ad(load_twist(work.P, i), load_twist(work.U, i))))
            i = tree.parent[i]
    dV = sums_beyond(tree, loops, c, work.C, sub(ad(V, V_d), dV_d), work.U, work.Y)
    dg = guide_rate(kind, T_ab, V, g, extent, sphere)
    for leg in range(2):
        i = end_of(loops, c, leg)
        while i != loops.record[c, COMMON]:
            P, Z, Y = load_twist(work.P, i), load_twist(work.Z, i), load_twist(work.Y, i)
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                s = load_twist(work.s, k)
                V_q, dV_v = neg(ad(s, Z)), ad(s, sub(P, Z))
                dV_q = neg(add(ad(s, Y), ad(ad(s, sub(V, Z)), Z)))
                g_q = guide_rate(kind, T_ab, s, g, extent, sphere)
                dg_q = add3(guide_rate(kind, T_ab, V_q, g, extent, sphere), guide_curvature(kind, T_ab, V, s, extent, sphere))
                for r in range(loops.record[c, ROW_COUNT]):
                    F, dF, o = closure_row(kind, r, g), row_rate(kind, r, dg), (first + r) * nv + k
                    F_q, dF_q = row_rate(kind, r, g_q), row_rate(kind, r, dg_q)
                    store(Rq, o, dot(F, dV_q) + dot(F_q, dV) + dot(dF, V_q) + dot(dF_q, V))
                    store(Rv, o, dot(F, dV_v) + dot(F_q, V) + dot(dF, s))
            i = tree.parent[i]


@primitive
def force_rates(tree, loops, c, multipliers, rows, s, Dq):
    """Dq (nv nv) -= d(s_l . W)/dq_k, the rate of A^T lambda: columns beyond k turn, and W does with its guide. s: of
    `see_columns`."""
    kind, first, common = loops.record[c, KIND], loops.record[c, FIRST], loops.record[c, COMMON]
    T_ab, g, extent, sphere = load_pose(rows.T, c), load_guide(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    a, b, zero = loops.record[c, BODY_A], loops.record[c, BODY_B], number_like(s, 0.0)
    rest = zero6(zero)
    W = rest
    for r in range(loops.record[c, ROW_COUNT]):
        W = add(W, scale(load(multipliers, first + r), closure_row(kind, r, g)))
    for leg in range(2):
        i = end_of(loops, c, leg)
        while i != common:
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                turned, W_q = minus_dad(load_twist(s, k), W), rest
                take_off(tree, tree.parent[i] if leg == 0 else a, common if leg == 0 else tree.parent[i], k, turned, s, Dq)
                if leg == 0:
                    take_off(tree, a, common, k, turned, s, Dq)
                if kind > BALL_CLOSURE:
                    g_q = guide_rate(kind, T_ab, load_twist(s, k), g, extent, sphere)
                    for r in range(loops.record[c, ROW_COUNT]):
                        W_q = add(W_q, scale(load(multipliers, first + r), row_rate(kind, r, g_q)))
                    take_off(tree, b, common, k, W_q, s, Dq)
                    take_off(tree, a, common, k, W_q, s, Dq)
            i = tree.parent[i]


@primitive
def take_off(tree, j, end, k, F, s, Dq):
    """Column k of Dq -= s_l . F, for coordinates l from body j to before the body `end`."""
    nv = tree.above.size
    while j != end:
        for l in range(tree.iv[j], tree.iv[j] + NV[tree.kind[j]]):
            store(Dq, l * nv + k, load(Dq, l * nv + k) - dot(F, load_twist(s, l)))
        j = tree.parent[j]


@primitive
def velocity_rates(tree, loops, c, x, drive, rows, work, Xq):
    """Rows of Xq (m nv): rates of F . V by q, V of velocities x. work.s: of `see_columns`."""
    nv, kind, first = tree.above.size, loops.record[c, KIND], loops.record[c, FIRST]
    T_ab, g, extent, sphere = load_pose(rows.T, c), load_guide(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    joint_sums(tree, loops, c, work.s, x, work.U)
    V = sums_beyond(tree, loops, c, work.U, neg(drive_motion(loops, c, T_ab, drive)[0]), work.P, work.Z)
    for leg in range(2):
        i = end_of(loops, c, leg)
        while i != loops.record[c, COMMON]:
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                s = load_twist(work.s, k)
                V_q, g_q = neg(ad(s, load_twist(work.Z, i))), guide_rate(kind, T_ab, s, g, extent, sphere)
                for r in range(loops.record[c, ROW_COUNT]):
                    store(Xq, (first + r) * nv + k, dot(closure_row(kind, r, g), V_q) + dot(row_rate(kind, r, g_q), V))
            i = tree.parent[i]
