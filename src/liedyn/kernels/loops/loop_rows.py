"""The constraints of a state: frames of the closures, and their rows as wrenches on bodies. What the rows do to the tree, X, is
written by `loop_sweep`.

X holds rows as columns of cells (`matrices.put_cell`): of eight states a Lanes a row, of one state a Lanes for all rows of a
constraint, so that both go eight at a time."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
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
    relative_pose,
    row_rate,
    row_residual,
)
from liedyn.joints.kinds import COUPLING
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.matrices import columns_in_line, lines
from liedyn.lie.rows import load_pose, load_twist, store_pose
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dot, sub
from liedyn.seam.views import span


class RowWork(NamedTuple):
    T: np.ndarray       # (12nc,) pose of frame B in frame A
    T_a: np.ndarray     # (12nc,) pose of frame B in the body of A
    g: np.ndarray       # (3nc,) guides
    W: np.ndarray       # (6n,) wrenches of a coupling's row on bodies
    X: np.ndarray       # (nv a row,) what rows leave at the coordinates that they can move; the rest is not kept
    size: np.ndarray    # (3 a row,) how large A M^-1 A^T's diagonal would be if nothing cancelled; largest |m|^2, |f|^2
    rate: np.ndarray    # (1 a row,) A a, with what of gamma comes from the joints
    G: np.ndarray       # (m a row,) A M^-1 A^T


class RowMotion(NamedTuple):
    """What `sweep_rows` needs for `RowWork.rate`."""

    v: np.ndarray       # (nv,)
    a: np.ndarray       # (nv,) where prescribed
    u: np.ndarray       # (nv,) as in `HybridWork`, where not
    V: np.ndarray       # (6n,) twists
    dV: np.ndarray      # (6,) acceleration of the ground


@primitive
def row_room(memory, n, nv, nc, m):
    per = columns_in_line(number_like(memory, 0.0))
    return 27 * nc + per * (6 * n + (nc if per > 1 else m) * (nv + 4 + m))


@primitive
def row_work(memory, n, nv, nc, m):
    per = columns_in_line(number_like(memory, 0.0))
    count, w = nc if per > 1 else m, 6 * n
    size, k = per * (w + count * (nv + 4 + m)), w + count * nv
    (x,) = lines(span(memory, 0, size))
    return RowWork(span(memory, size, 12 * nc), span(memory, size + 12 * nc, 12 * nc), span(memory, size + 24 * nc, 3 * nc),
                   span(x, 0, w), span(x, w, count * nv), span(x, k, 3 * count), span(x, k + 3 * count, count),
                   span(x, k + 4 * count, count * m))


def row_memory(n, nv, nc, m):
    """For one state and for eight."""
    return 27 * nc + max(8 * (6 * n + nc * (nv + 4 + m)), 6 * n + m * (nv + 4 + m))


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
            g = guide(loops.record[c, KIND], T_ab, load(loops.extent, 2 * c), loops.extent[2 * c + 1])
            store(work.g, 3 * c, g[0])
            store(work.g, 3 * c + 1, g[1])
            store(work.g, 3 * c + 2, g[2])


@primitive
def load_guide(work, c): return load(work.g, 3 * c), load(work.g, 3 * c + 1), load(work.g, 3 * c + 2)


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
