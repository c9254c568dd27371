"""The constraints of a state: frames of the closures, their rows as wrenches on bodies, and what the rows do to the tree.

A row's wrench, swept towards the ground through articulated bodies, leaves at each joint X = S^T W and goes on as
W - U Psi X (the factors of `joints.elimination`). With M = L^T D L this is X = L^-T A^T, so that

    A M^-1 A^T = X^T D^-1 X,      M^-1 A^T lambda: the forward sweep with X lambda for joint forces:

O(length of the loop) a row; prescribed joints pass the wrench on whole, and what comes out is that of M_vv and A_v."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.closures import (
    closure_openness,
    closure_row,
    guide,
    guide_rate,
    lifted,
    relative_pose,
    row_rate_power,
    row_residual,
)
from liedyn.joints.elimination import component
from liedyn.joints.kinds import COUPLING, NV, SCREW
from liedyn.joints.motion import screw
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import add_to_twist, load_pose, load_twist, store_pose, store_twist
from liedyn.lie.screw import screw_dot
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dAd_inv, dot, neg, scale, sub
from liedyn.lie.vec3 import dot3


class RowWork(NamedTuple):
    T: np.ndarray       # (12nc,) pose of frame B in frame A
    g: np.ndarray       # (3nc,) guides
    W: np.ndarray       # (6 6n,) wrenches of a constraint's rows on bodies
    X: np.ndarray       # (m nv,) what rows leave at the coordinates that they can move; the rest is not kept
    size: np.ndarray    # (m,) how large A M^-1 A^T's diagonal would be if nothing cancelled


@primitive
def row_work(memory, n, nv, nc, m):
    x, k = memory, 15 * nc + 36 * n
    return RowWork(x[:12 * nc], x[12 * nc:15 * nc], x[15 * nc:k], x[k:k + m * nv], x[k + m * nv:k + m * nv + m])


def row_memory(n, nv, nc, m): return 15 * nc + 36 * n + m * nv + m


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
    for c in range(loops.kind.size):
        if loops.kind[c] != COUPLING:
            T_b = pose_below(tree, T, loops.body_b[c], lifted(load_pose(loops.pose_b, c), zero), loops.common[c])
            T_a = pose_below(tree, T, loops.body_a[c], lifted(load_pose(loops.pose_a, c), zero), loops.common[c])
            d = loops.drive[c]
            if d >= 0:
                T_a = compose(T_a, load_pose(drive, 2 * d))
            T_ab = relative_pose(T_a, T_b)
            store_pose(work.T, c, T_ab)
            g = guide(loops.kind[c], T_ab, load(loops.figure, c), loops.sphere[c])
            store(work.g, 3 * c, g[0])
            store(work.g, 3 * c + 1, g[1])
            store(work.g, 3 * c + 2, g[2])


@primitive
def load_guide(work, c): return load(work.g, 3 * c), load(work.g, 3 * c + 1), load(work.g, 3 * c + 2)


@primitive
def closure_motion(loops, c, T_ab, V, dV, drive):
    """Twist of B relative to A, in B, and its rate; V, dV (6n) of bodies."""
    a, b, d = loops.body_a[c], loops.body_b[c], loops.drive[c]
    pose_a, pose_b = load_pose(loops.pose_a, c), load_pose(loops.pose_b, c)
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
    for c in range(loops.kind.size):
        first, kind = loops.first[c], loops.kind[c]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, q, loops.term_q) - load(loops.figure, c))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            open_ = closure_openness(kind, T_ab)
            for r in range(loops.rows[c]):
                store(out, first + r, row_residual(kind, r, T_ab, g, open_, load(loops.figure, c)))


@primitive
def coupled(loops, c, x, where):
    """sum_k c_k x_k of a coupling."""
    total = number_like(x, 0.0)
    for t in range(loops.term[c], loops.term[c] + loops.terms[c]):
        total = total + load(loops.coefficient, t) * load(x, where[t])
    return total


@primitive
def velocities(loops, v, V, drive, work, out):
    """A v, less the drive's velocity."""
    for c in range(loops.kind.size):
        first, kind = loops.first[c], loops.kind[c]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, v, loops.term_v))
        else:
            g = load_guide(work, c)
            rel, _ = closure_motion(loops, c, load_pose(work.T, c), V, V, drive)
            for r in range(loops.rows[c]):
                store(out, first + r, dot(closure_row(kind, r, g), rel))


@primitive
def accelerations(loops, a, V, dV, drive, work, out):
    """A a + gamma: zero if the accelerations obey the constraints."""
    for c in range(loops.kind.size):
        first, kind = loops.first[c], loops.kind[c]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, a, loops.term_v))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            rel, rate = closure_motion(loops, c, T_ab, V, dV, drive)
            dg = guide_rate(kind, T_ab, rel, g, load(loops.figure, c), loops.sphere[c])
            for r in range(loops.rows[c]):
                store(out, first + r, dot(closure_row(kind, r, g), rate) + row_rate_power(kind, r, dg, rel))


# what rows do to the tree -----------------------------------------------------------------------------------------
@primitive
def sweep_rows(tree, loops, prescribed, T, U, Psi, articulated, work):
    """Writes X of all rows, where their chains have coordinates: A itself if not `articulated`. T, U, Psi: of the tree."""
    n = tree.parent.size
    for c in range(loops.kind.size):
        chain = loops.chains[loops.chain[c]:loops.chain[c] + loops.length[c]]
        first, rows = loops.first[c], loops.rows[c]
        clear_chain(tree, chain, first, rows, n, work)
        if loops.kind[c] == COUPLING:
            nv = tree.above.size
            for t in range(loops.term[c], loops.term[c] + loops.terms[c]):
                store(work.X, first * nv + loops.term_v[t], number_like(work.X, 0.0) + load(loops.coefficient, t))
        else:
            push_rows(loops, c, n, work)
        sweep_chain(tree, prescribed, chain, first, rows, T, U, Psi, articulated, work)


@primitive
def clear_chain(tree, chain, first, rows, n, work):
    zero, nv = number_like(work.X, 0.0), tree.above.size
    for k in range(chain.size):
        i = chain[k]
        for r in range(rows):
            store_twist(work.W, r * n + i, ((zero, zero, zero), (zero, zero, zero)))
            for j in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                store(work.X, (first + r) * nv + j, zero)


@primitive
def push_rows(loops, c, n, work):
    """Unit multipliers of a closure's rows as wrenches on its bodies."""
    T_ab, g = load_pose(work.T, c), load_guide(work, c)
    a, b = loops.body_a[c], loops.body_b[c]
    pose_a, pose_b = load_pose(loops.pose_a, c), load_pose(loops.pose_b, c)
    for r in range(loops.rows[c]):
        F = closure_row(loops.kind[c], r, g)
        if b > 0:
            add_to_twist(work.W, r * n + b, dAd_inv(pose_b, F))
        if a > 0:
            add_to_twist(work.W, r * n + a, neg(dAd_inv(pose_a, dAd_inv(T_ab, F))))


@primitive
def sweep_chain(tree, prescribed, chain, first, rows, T, U, Psi, articulated, work):
    n, nv, zero = tree.parent.size, tree.above.size, number_like(work.X, 0.0)
    for r in range(rows):
        store(work.size, first + r, zero)
    for k in range(chain.size):                                 # children first
        i, o = chain[k], tree.iv[chain[k]]
        pose, p = load_pose(T, i), tree.parent[i]
        for r in range(rows):
            W, row = load_twist(work.W, r * n + i), (first + r) * nv
            size = load(work.size, first + r)
            if tree.kind[i] == SCREW:
                S = screw(tree, i)
                x = load(work.X, row + o) + screw_dot(S, W)
                size = size + reach(Psi, o, x * x + S[0] * S[0] * dot3(W[0], W[0]) + S[1] * S[1] * dot3(W[1], W[1]), prescribed)
                W = through(o, row, x, W, U, Psi, prescribed, articulated, work)
            else:
                for j in range(NV[tree.kind[i]]):
                    x = load(work.X, row + o + j) + component(W, j)
                    size = size + reach(Psi, o + j, x * x + (dot3(W[0], W[0]) if j < 3 else dot3(W[1], W[1])), prescribed)
                    W = through(o + j, row, x, W, U, Psi, prescribed, articulated, work)
            store(work.size, first + r, size)
            if p > 0:
                add_to_twist(work.W, r * n + p, dAd_inv(pose, W))


@primitive
def reach(Psi, k, x, prescribed): return x * 0.0 if prescribed[k] else load(Psi, k) * x


@primitive
def through(k, row, x, W, U, Psi, prescribed, articulated, work):
    """The wrench behind coordinate k."""
    store(work.X, row + k, x)
    if not articulated or prescribed[k]:
        return W
    return sub(W, scale(load(Psi, k) * x, load_twist(U, k)))


@primitive
def add_multipliers(tree, loops, prescribed, multipliers, work, u):
    """u += X lambda where free, and -= where prescribed (there u is S^T of the bias force)."""
    nv = tree.above.size
    for c in range(loops.kind.size):
        for k in range(loops.chain[c], loops.chain[c] + loops.length[c]):
            i = loops.chains[k]
            for j in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                x = number_like(u, 0.0)
                for r in range(loops.first[c], loops.first[c] + loops.rows[c]):
                    x = x + load(work.X, r * nv + j) * load(multipliers, r)
                store(u, j, load(u, j) - x if prescribed[j] else load(u, j) + x)


