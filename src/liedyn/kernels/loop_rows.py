"""The constraints of a state: frames of the closures, their rows as wrenches on bodies, and what the rows do to the tree.

A row's wrench, swept towards the ground through articulated bodies, leaves at each joint X = S^T W and goes on as
W - U Psi X (the factors of `joints.elimination`). With M = L^T D L this is X = L^-T A^T, so that

    A M^-1 A^T = X^T D^-1 X,      M^-1 A^T lambda: the forward sweep with X lambda for joint forces:

O(length of the loop) a row; prescribed joints pass the wrench on whole, and what comes out is that of M_vv and A_v.

W and X hold rows as columns of cells (`blocks.put_cell`): of eight states a Lanes a row, of one state a Lanes for all rows of a
constraint, so that both go eight at a time."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.closures import (
    BODY_A,
    BODY_B,
    CHAIN,
    COMMON,
    DRIVEN,
    FIRST,
    KIND,
    LENGTH,
    ROW_COUNT,
    TERM,
    TERMS,
    closure_openness,
    closure_row,
    guide,
    guide_rate,
    lifted,
    normal_row,
    relative_pose,
    row_rate_power,
    row_residual,
)
from liedyn.joints.elimination import component
from liedyn.joints.kinds import COUPLING, NV, ROLLING, SCREW
from liedyn.joints.motion import screw
from liedyn.lie.blocks import columns_in_line, get_cell, lines, put_cell
from liedyn.lie.lanes import load, maximum, number_like, store
from liedyn.lie.rows import add_to_twist, load_pose, load_twist, store_pose, store_twist
from liedyn.lie.screw import screw_dot
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dAd_inv, dot, neg, scale, sub
from liedyn.lie.vec3 import dot3


class RowWork(NamedTuple):
    T: np.ndarray       # (12nc,) pose of frame B in frame A
    T_a: np.ndarray     # (12nc,) pose of frame B in the body of A
    g: np.ndarray       # (3nc,) guides
    W: np.ndarray       # (6n a row,) wrenches of a constraint's rows on bodies
    X: np.ndarray       # (nv a row,) what rows leave at the coordinates that they can move; the rest is not kept
    size: np.ndarray    # (3 a row,) how large A M^-1 A^T's diagonal would be if nothing cancelled; largest |m|^2, |f|^2 so far
    G: np.ndarray       # (m a row,) A M^-1 A^T


@primitive
def row_room(memory, n, nv, nc, m):
    per = columns_in_line(number_like(memory, 0.0))
    return 27 * nc + per * (6 * n * (1 if per > 1 else 6) + (nc if per > 1 else m) * (nv + 3 + m))


@primitive
def row_work(memory, n, nv, nc, m):
    per = columns_in_line(number_like(memory, 0.0))
    count, most = (nc, 1) if per > 1 else (m, 6)
    w = 6 * n * most
    (x,), k = lines(memory[:per * (w + count * (nv + 3 + m))]), w + count * nv
    rest = memory[per * (w + count * (nv + 3 + m)):]
    return RowWork(rest[:12 * nc], rest[12 * nc:24 * nc], rest[24 * nc:27 * nc], x[:w], x[w:k], x[k:k + 3 * count],
                   x[k + 3 * count:])


def row_memory(n, nv, nc, m):
    """For one state and for eight."""
    return 27 * nc + max(8 * (6 * n + nc * (nv + 3 + m)), 36 * n + m * (nv + 3 + m))


@primitive
def column_of(loops, c, r, number):
    """Where row r of a constraint stands among the columns of cells."""
    return 8 * c + r if columns_in_line(number) > 1 else loops.record[c, FIRST] + r


@primitive
def numbers_of(loops, c, number):
    """First and last + 1 of the numbers that hold a constraint's rows."""
    if columns_in_line(number) > 1:
        return c, c + 1
    return loops.record[c, FIRST], loops.record[c, FIRST] + loops.record[c, ROW_COUNT]


# frames -----------------------------------------------------------------------------------------------------------
@primitive
def pose_below(tree, T, body, frame, common):
    """Pose of a frame of `body` in the body `common` on its way to the ground; T (12n) poses in parents."""
    i = body
    while i != common:
        frame = compose(load_pose(T, i), frame)
        i = tree.parent[i]
    return frame


@primitive
def closure_frames(tree, loops, T, drive, work):
    """Writes work.T and work.g. drive (24 a driven closure): the motion of its frame A."""
    zero = number_like(T, 0.0)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] != COUPLING:
            a, b, common = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, COMMON]
            T_a = pose_below(tree, T, a, lifted(load_pose(loops.pose, 2 * c), zero), common)
            T_b = pose_below(tree, T, b, lifted(load_pose(loops.pose, 2 * c + 1), zero), common)
            d = loops.record[c, DRIVEN]
            in_body = lifted(load_pose(loops.pose, 2 * c), zero)
            if d >= 0:
                T_a, in_body = compose(T_a, load_pose(drive, 2 * d)), compose(in_body, load_pose(drive, 2 * d))
            T_ab = relative_pose(T_a, T_b)
            store_pose(work.T, c, T_ab)
            store_pose(work.T_a, c, compose(in_body, T_ab))
            g = guide(loops.record[c, KIND], T_ab, load(loops.figure, 2 * c), loops.figure[2 * c + 1])
            store(work.g, 3 * c, g[0])
            store(work.g, 3 * c + 1, g[1])
            store(work.g, 3 * c + 2, g[2])


@primitive
def load_guide(work, c): return load(work.g, 3 * c), load(work.g, 3 * c + 1), load(work.g, 3 * c + 2)


@primitive
def closure_motion(loops, c, T_ab, V, dV, drive):
    """Twist of B relative to A, in B, and its rate; V, dV (6n) of bodies."""
    a, b, d = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, DRIVEN]
    pose_a, pose_b = load_pose(loops.pose, 2 * c), load_pose(loops.pose, 2 * c + 1)
    V_a, dV_a = Ad_inv(pose_a, load_twist(V, a)), Ad_inv(pose_a, load_twist(dV, a))
    V_b, dV_b = Ad_inv(pose_b, load_twist(V, b)), Ad_inv(pose_b, load_twist(dV, b))
    if d >= 0:
        D, V_d, dV_d = load_pose(drive, 2 * d), load_twist(drive, 4 * d + 2), load_twist(drive, 4 * d + 3)
        V_a = add(Ad_inv(D, V_a), V_d)
        dV_a = add(Ad_inv(D, dV_a), add(ad(V_a, V_d), dV_d))
    V_a, dV_a = Ad_inv(T_ab, V_a), Ad_inv(T_ab, dV_a)
    rel = sub(V_b, V_a)
    return rel, add(sub(dV_b, dV_a), ad(rel, V_a))


# what constraints say of a state -----------------------------------------------------------------------------------
@primitive
def residuals(loops, q, work, out):
    """Residual of every row, from `closure_frames`."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, q, loops.term_q) - load(loops.figure, 2 * c))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            open_ = closure_openness(kind, T_ab)
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, row_residual(kind, r, T_ab, g, open_, load(loops.figure, 2 * c)))


@primitive
def coupled(loops, c, x, where):
    """sum_k c_k x_k of a coupling."""
    total = number_like(x, 0.0)
    for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERMS]):
        total = total + load(loops.coefficient, t) * load(x, where[t])
    return total


@primitive
def velocities(loops, v, V, drive, work, out):
    """A v, less the drive's velocity."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, v, loops.term_v))
        else:
            g = load_guide(work, c)
            rel, _ = closure_motion(loops, c, load_pose(work.T, c), V, V, drive)
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, dot(closure_row(kind, r, g), rel))


@primitive
def accelerations(loops, a, V, dV, drive, work, out):
    """A a + gamma: zero if the accelerations obey the constraints."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, a, loops.term_v))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            rel, rate = closure_motion(loops, c, T_ab, V, dV, drive)
            dg = guide_rate(kind, T_ab, rel, g, load(loops.figure, 2 * c), loops.figure[2 * c + 1])
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, dot(closure_row(kind, r, g), rate) + row_rate_power(kind, r, dg, rel))


# what rows do to the tree -----------------------------------------------------------------------------------------
@primitive
def sweep_rows(tree, loops, prescribed, T, U, Psi, articulated, work, holonomic=False):
    """Writes X of all rows, where their chains have coordinates: A itself if not `articulated`. T, U, Psi: of the tree.

    holonomic: rows of the residual's derivative; what rolls is then free along the plane."""
    number = number_like(T, 0.0)
    for c in range(loops.record.shape[0]):
        chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
        begin, end = numbers_of(loops, c, number)
        clear_chain(tree, chain, begin, end, work)
        if loops.record[c, KIND] == COUPLING:
            push_coupling(tree, loops, c, number, work)
        else:
            push_rows(tree, loops, c, holonomic, work)
        sweep_chain(tree, prescribed, chain, begin, end, T, U, Psi, articulated, work)


@primitive
def clear_chain(tree, chain, begin, end, work):
    n, nv, zero = tree.parent.size, tree.above.size, number_like(work.X, 0.0)
    for k in range(chain.size):
        i = chain[k]
        for j in range(begin, end):
            store_twist(work.W, (j - begin) * n + i, ((zero, zero, zero), (zero, zero, zero)))
            for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                store(work.X, j * nv + o, zero)
    for j in range(3 * begin, 3 * end):
        store(work.size, j, zero)


@primitive
def push_coupling(tree, loops, c, number, work):
    column, first = column_of(loops, c, 0, number), loops.record[c, TERM]
    for t in range(first, first + loops.record[c, TERMS]):
        put_cell(work.X, tree.above.size, column, loops.term_v[t], number + load(loops.coefficient, t))


@primitive
def push_rows(tree, loops, c, holonomic, work):
    """Unit multipliers of a closure's rows as wrenches on its bodies."""
    g, T_a, pose_b = load_guide(work, c), load_pose(work.T_a, c), load_pose(loops.pose, 2 * c + 1)
    a, b = loops.record[c, BODY_A], loops.record[c, BODY_B]
    for r in range(loops.record[c, ROW_COUNT]):
        F = closure_row(loops.record[c, KIND], r, g)
        if holonomic and loops.record[c, KIND] == ROLLING:
            R = load_pose(work.T, c)[0]
            F = normal_row(r, g, (R[6], R[7], R[8]))
        if b > 0:
            put_wrench(work.W, tree.parent.size, r, b, dAd_inv(pose_b, F))
        if a > 0:
            put_wrench(work.W, tree.parent.size, r, a, neg(dAd_inv(T_a, F)))


@primitive
def put_wrench(W, n, r, i, F):
    for k in range(3):
        put_cell(W, 6 * n, r, 6 * i + k, F[0][k])
        put_cell(W, 6 * n, r, 6 * i + 3 + k, F[1][k])


@primitive
def sweep_chain(tree, prescribed, chain, begin, end, T, U, Psi, articulated, work):
    n, nv = tree.parent.size, tree.above.size
    for k in range(chain.size):                                 # children first
        i = chain[k]
        pose, p, o = load_pose(T, i), tree.parent[i], tree.iv[i]
        for j in range(begin, end):
            W = load_twist(work.W, (j - begin) * n + i)
            m2, f2 = maximum(load(work.size, 3 * j + 1), dot3(W[0], W[0])), maximum(load(work.size, 3 * j + 2), dot3(W[1], W[1]))
            store(work.size, 3 * j + 1, m2)
            store(work.size, 3 * j + 2, f2)
            if tree.kind[i] == SCREW:
                S = screw(tree, i)
                x = load(work.X, j * nv + o) + screw_dot(S, W)
                W = through(nv, o, j, x, S[0] * S[0] * m2 + S[1] * S[1] * f2, W, U, Psi, prescribed, articulated, work)
            else:
                for c in range(NV[tree.kind[i]]):
                    x = load(work.X, j * nv + o + c) + component(W, c)
                    W = through(nv, o + c, j, x, m2 if c < 3 else f2, W, U, Psi, prescribed, articulated, work)
            if p > 0:
                add_to_twist(work.W, (j - begin) * n + p, dAd_inv(pose, W))


@primitive
def through(nv, k, j, x, reach, W, U, Psi, prescribed, articulated, work):
    """The wrench behind coordinate k, of the rows of number j. reach: x^2 if nothing had cancelled."""
    store(work.X, j * nv + k, x)
    if not articulated or prescribed[k]:
        return W
    psi = load(Psi, k)
    store(work.size, 3 * j, load(work.size, 3 * j) + psi * (x * x + reach))
    return sub(W, scale(psi * x, load_twist(U, k)))


@primitive
def add_multipliers(tree, loops, prescribed, multipliers, work, u):
    """u += X lambda where free, and -= where prescribed (there u is S^T of the bias force)."""
    nv, number = tree.above.size, number_like(u, 0.0)
    for c in range(loops.record.shape[0]):
        chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
        first, column = loops.record[c, FIRST], column_of(loops, c, 0, number)
        for k in range(chain.size):
            i = chain[k]
            for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                x = number
                for r in range(loops.record[c, ROW_COUNT]):
                    x = x + get_cell(work.X, nv, column + r, o, number) * load(multipliers, first + r)
                store(u, o, load(u, o) - x if prescribed[o] else load(u, o) + x)
