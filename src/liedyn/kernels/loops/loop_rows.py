"""The constraints of a state: frames of the closures, and their rows as wrenches on bodies. What the rows do to the tree, X, is
written by `loop_sweep`."""
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
    TERM,
    TERMS,
    closure_openness,
    closure_row,
    guide,
    guide_rate,
    lifted,
    row_rate,
    row_residual,
)
from liedyn.joints.kinds import COUPLING, NV
from liedyn.joints.motion import joint_column
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load3, load_pose, load_twist, store3, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dot, inverse, neg, sub
from liedyn.seam.views import carve


class FrameWork(NamedTuple):
    """What `closure_frames` writes."""

    T: np.ndarray       # (12nc,) pose of frame B in frame A
    T_a: np.ndarray     # (12nc,) pose of frame B in the body of A
    g: np.ndarray       # (3nc,) guides


@primitive
def frame_work(memory, nc): return FrameWork(*carve(memory, (12 * nc, 12 * nc, 3 * nc))[:-1])


class RowWork(NamedTuple):
    T: np.ndarray       # (12nc,) pose of frame B in frame A
    T_a: np.ndarray     # (12nc,) pose of frame B in the body of A
    g: np.ndarray       # (3nc,) guides
    W: np.ndarray       # (6n,) wrenches of a coupling's row on bodies
    X: np.ndarray       # (m nv,) what rows leave at the coordinates that they can move; the rest is not kept
    size: np.ndarray    # (m,) how large A M^-1 A^T's diagonal would be if nothing cancelled
    rate: np.ndarray    # (m,) A a, with what of gamma comes from the joints


class RowMotion(NamedTuple):
    """What `sweep_rows` needs for `RowWork.rate`."""

    v: np.ndarray       # (nv,)
    a: np.ndarray       # (nv,) where prescribed
    u: np.ndarray       # (nv,) as in `HybridWork`, where not
    V: np.ndarray       # (6n,) twists
    dV: np.ndarray      # (6,) acceleration of the ground


@everywhere
def row_sizes(n, nv, nc, m): return 12 * nc, 12 * nc, 3 * nc, 6 * n, m * nv, m, m


@primitive
def row_work(memory, n, nv, nc, m): return RowWork(*carve(memory, row_sizes(n, nv, nc, m))[:-1])


@everywhere
def row_memory(n, nv, nc, m): return sum(row_sizes(n, nv, nc, m))


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
            in_body, d = lifted(load_pose(loops.pose, 2 * c), zero), loops.record[c, DRIVEN]
            T_a = pose_below(tree, T, a, in_body, common)
            T_b = pose_below(tree, T, b, lifted(load_pose(loops.pose, 2 * c + 1), zero), common)
            if d >= 0:
                T_a, in_body = compose(T_a, load_pose(drive, 2 * d)), compose(in_body, load_pose(drive, 2 * d))
            T_ab = compose(inverse(T_a), T_b)
            store_pose(work.T, c, T_ab)
            store_pose(work.T_a, c, compose(in_body, T_ab))
            g = guide(loops.record[c, KIND], T_ab, load(loops.extent, 2 * c), loops.extent[2 * c + 1])
            store3(work.g, 3 * c, g)


@primitive
def load_guide(work, c): return load3(work.g, 3 * c)


@primitive
def closure_motion(loops, c, V, drive, work):
    """Twist of B relative to A, in B, and its rate if no body were accelerated; V (6n) of bodies."""
    a, b, d = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, DRIVEN]
    V_a = Ad_inv(load_pose(work.T_a, c), load_twist(V, a))
    V_b = Ad_inv(load_pose(loops.pose, 2 * c + 1), load_twist(V, b))
    if d >= 0:
        T_ab = load_pose(work.T, c)
        V_d = Ad_inv(T_ab, load_twist(drive, 4 * d + 2))
        V_a = add(V_a, V_d)
        rel = sub(V_b, V_a)
        return rel, sub(ad(rel, V_a), add(ad(V_a, V_d), Ad_inv(T_ab, load_twist(drive, 4 * d + 3))))
    rel = sub(V_b, V_a)
    return rel, ad(rel, V_a)


@primitive
def bodies_part(loops, c, dV, work):
    """What accelerations dV (6n) of bodies add to that rate."""
    dV_a = Ad_inv(load_pose(work.T_a, c), load_twist(dV, loops.record[c, BODY_A]))
    return sub(Ad_inv(load_pose(loops.pose, 2 * c + 1), load_twist(dV, loops.record[c, BODY_B])), dV_a)


# what constraints say of a state -----------------------------------------------------------------------------------
@primitive
def residuals(loops, q, work, out):
    """Residual of every row, from `closure_frames`."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            store(out, first, coupled(loops, c, q, loops.term_q) - load(loops.extent, 2 * c))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            open_ = closure_openness(kind, T_ab)
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, row_residual(kind, r, T_ab, g, open_, load(loops.extent, 2 * c)))


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
            rel, _ = closure_motion(loops, c, V, drive, work)
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, dot(closure_row(kind, r, g), rel))


@primitive
def accelerations(loops, a, V, dV, drive, work, out):
    """A a + gamma: zero if the accelerations obey the constraints. With a = dV = None only what `RowWork.rate` lacks."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            if a is None:
                store(out, first, number_like(V, 0.0))
            else:
                store(out, first, coupled(loops, c, a, loops.term_v))
        else:
            T_ab, g = load_pose(work.T, c), load_guide(work, c)
            rel, rate = closure_motion(loops, c, V, drive, work)
            if dV is not None:
                rate = add(rate, bodies_part(loops, c, dV, work))
            dg = guide_rate(kind, T_ab, rel, g, load(loops.extent, 2 * c), loops.extent[2 * c + 1])
            for r in range(loops.record[c, ROW_COUNT]):
                store(out, first + r, dot(closure_row(kind, r, g), rate) + dot(row_rate(kind, r, dg), rel))


# rows of A --------------------------------------------------------------------------------------------------------
@primitive
def end_of(loops, c, leg):
    """Where a side of the loop begins, B's or A's: its joints are those from there to the body that carries both."""
    return loops.record[c, BODY_B] if leg == 0 else loops.record[c, BODY_A]


@primitive
def see_columns(tree, loops, c, T, T_a, s):
    """s (6nv): columns of the joints of a loop, seen from frame B, negative on A's side. T (12n): poses in parents; T_a: frame B
    in the body of A."""
    zero = number_like(s, 0.0)
    for leg in range(2):
        i = end_of(loops, c, leg)
        X = lifted(load_pose(loops.pose, 2 * c + 1), zero) if leg == 0 else load_pose(T_a, c)
        while i != loops.record[c, COMMON]:
            for o in range(NV[tree.kind[i]]):
                S = Ad_inv(X, joint_column(tree, i, o, zero))
                store_twist(s, tree.iv[i] + o, S if leg == 0 else neg(S))
            X = compose(load_pose(T, i), X)
            i = tree.parent[i]


@primitive
def store_rows(tree, loops, T, work, s, A):
    """A (m nv). s (6nv): scratch."""
    nv, zero = tree.above.size, number_like(A, 0.0)
    for k in range(A.shape[0]):
        store(A, k, zero)
    for c in range(loops.record.shape[0]):
        kind, first = loops.record[c, KIND], loops.record[c, FIRST]
        if kind == COUPLING:
            for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERMS]):
                store(A, first * nv + loops.term_v[t], zero + load(loops.coefficient, t))
        else:
            see_columns(tree, loops, c, T, work.T_a, s)
            for leg in range(2):
                i = end_of(loops, c, leg)
                while i != loops.record[c, COMMON]:
                    for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                        for r in range(loops.record[c, ROW_COUNT]):
                            store(A, (first + r) * nv + k, dot(closure_row(kind, r, load_guide(work, c)), load_twist(s, k)))
                    i = tree.parent[i]
