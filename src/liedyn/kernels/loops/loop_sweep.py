"""What the rows of constraints do to the tree.

A row's wrench, swept towards the ground through articulated bodies, leaves at each joint X = S^T W and goes on as
W - U Psi X (the factors of `joints.elimination`). With M = L^T D L this is X = L^-T A^T, so that

    A M^-1 A^T = X^T D^-1 X,      M^-1 A^T lambda: the forward sweep with X lambda for joint forces:

O(length of the loop) a row; prescribed joints pass the wrench on whole, and what comes out is that of M_vv and A_v.
On its way the wrench W also finds how the open tree accelerates the row, without forming its accelerations: the sum of X Psi u
(X a where prescribed) over coordinates, of W . eta over bodies, and W . dV at the ground (`RowWork.rate`).
"""
import numpy as np
from numba.extending import overload

from liedyn.jit import primitive
from liedyn.joints.closures import (
    BODY_A,
    BODY_B,
    CHAIN,
    COMMON,
    FIRST,
    KIND,
    LENGTH,
    ROW_COUNT,
    TERM,
    TERMS,
    axis_of,
    closure_row,
    normal_row,
)
from liedyn.joints.kinds import BALL_CLOSURE, COUPLING, NV, ROLLING, ROWS, SCREW
from liedyn.joints.motion import joint_column, joint_eta, screw
from liedyn.kernels.loops.loop_rows import column_of, load_guide, numbers_of
from liedyn.lie.lanes import WIDTH, Lanes, load, maximum, number_like, store, with_lane
from liedyn.lie.matrices import get_cell, put_cell
from liedyn.lie.rows import add_to_twist, load3, load_pose, load_twist, store3, store_twist
from liedyn.lie.screw import screw_dot
from liedyn.lie.se3 import add, dAd_inv, dot, neg, scale, sub
from liedyn.lie.vec3 import dot3


@primitive
def sweep_rows(tree, loops, prescribed, T, U, Psi, articulated, work, holonomic=False, motion=None):
    """Writes X of all rows, where their chains have coordinates: A itself if not `articulated`. T, U, Psi: of the tree.

    holonomic: rows of the residual's derivative; what rolls is then free along the plane. motion: of which to write
    work.rate too."""
    number = number_like(T, 0.0)
    for c in range(loops.record.shape[0]):
        begin, end = numbers_of(loops, c, number)
        if loops.record[c, KIND] == COUPLING:
            sweep_coupling(tree, loops, c, begin, prescribed, T, U, Psi, articulated, work, motion)
        else:
            for j in range(begin, end):
                F = rows_at(loops, c, j - begin, holonomic, work, number)
                sweep_closure(tree, loops, c, j, F, prescribed, T, U, Psi, articulated, work, motion)


def rows_at(loops, c, r, holonomic, work, number): ...


@overload(rows_at, inline="always")
def _rows_at(loops, c, r, holonomic, work, number):
    """Unit multipliers of a closure as a wrench in B: of row r, or of one state all rows in a Lanes, each in its own."""
    if isinstance(number, Lanes):
        return lambda loops, c, r, holonomic, work, number: row_at(loops, c, r, holonomic, work)
    return lambda loops, c, r, holonomic, work, number: rows_side_by_side(loops, c, holonomic, work)


@primitive
def row_at(loops, c, r, holonomic, work):
    kind, g = loops.record[c, KIND], load_guide(work, c)
    if holonomic and kind == ROLLING:
        return normal_row(r, g, load3(work.T, 12 * c + 6))
    return closure_row(kind, r, g)


@primitive
def rows_side_by_side(loops, c, holonomic, work):
    unit = loops.record[c, KIND] <= BALL_CLOSURE
    F = load_twist(_UNITS, loops.record[c, KIND] if unit else BALL_CLOSURE + 1)
    for r in range(0 if unit else loops.record[c, ROW_COUNT]):
        x = row_at(loops, c, r, holonomic, work)
        F = three_with_lane(F[0], r, x[0]), three_with_lane(F[1], r, x[1])
    return F


@primitive
def three_with_lane(x, r, y): return with_lane(x[0], r, y[0]), with_lane(x[1], r, y[1]), with_lane(x[2], r, y[2])


# Lower pairs have the same rows in all states: those of each kind side by side, and then nothing
_UNITS = np.zeros((6 * (BALL_CLOSURE + 2), WIDTH))
for _kind in range(BALL_CLOSURE + 1):
    for _row in range(ROWS[_kind]):
        _UNITS[6 * _kind + axis_of.py_func(_kind, _row), _row] = 1.0


@primitive
def sweep_closure(tree, loops, c, j, F, prescribed, T, U, Psi, articulated, work, motion):
    """Number j of the rows F: from B's body, and from A's, to the one that carries both, and on to the ground.

    In registers all the way: put into lanes one by one through memory, rows cost a five-bar's call 0.17 us of 1.04."""
    zero = number_like(work.X, 0.0)
    a, b, common = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, COMMON]
    W, W_a = dAd_inv(load_pose(loops.pose, 2 * c + 1), F), neg(dAd_inv(load_pose(work.T_a, c), F))
    other, sums = ((zero, zero, zero), (zero, zero, zero)), (zero, zero, zero, zero)
    i, end = b, common
    for leg in range(3):
        while i != end:
            W, sums = through_joint(tree, i, j, W, sums, zero, False, prescribed, U, Psi, articulated, work, motion)
            W = dAd_inv(load_pose(T, i), W)
            i = tree.parent[i]
        if leg == 0:
            other, W, i = W, W_a, a
        elif leg == 1:
            W, i, end = add(W, other), common, 0
    store_sums(j, sums, W, work, motion)


@primitive
def store_sums(j, sums, W, work, motion):
    """W: what came to the ground."""
    store3(work.size, 3 * j, (sums[0], sums[1], sums[2]))
    if motion is not None:
        store(work.rate, j, sums[3] + dot(W, load_twist(motion.dV, 0)))


@primitive
def sweep_coupling(tree, loops, c, j, prescribed, T, U, Psi, articulated, work, motion):
    """The row of a coupling, whose bodies may stand on many branches."""
    nv, zero, number = tree.above.size, number_like(work.X, 0.0), number_like(T, 0.0)
    chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
    rest = (zero, zero, zero), (zero, zero, zero)
    for k in range(chain.size):
        i = chain[k]
        store_twist(work.W, i, rest)
        for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store(work.X, j * nv + o, zero)
    column, first, sums, ground = column_of(loops, c, 0, number), loops.record[c, TERM], (zero, zero, zero, zero), rest
    for t in range(first, first + loops.record[c, TERMS]):
        put_cell(work.X, nv, column, loops.term_v[t], number + load(loops.coefficient, t))
    for k in range(chain.size):                                 # children first
        i = chain[k]
        W, sums = through_joint(tree, i, j, load_twist(work.W, i), sums, zero, True, prescribed, U, Psi, articulated, work,
                                motion)
        W = dAd_inv(load_pose(T, i), W)
        if tree.parent[i] > 0:
            add_to_twist(work.W, tree.parent[i], W)
        else:
            ground = add(ground, W)
    store_sums(j, sums, ground, work, motion)


@primitive
def through_joint(tree, i, j, W, sums, zero, adds, prescribed, U, Psi, articulated, work, motion):
    """The wrench W behind the joint of body i, of the rows of number j, and sums on the way: size and rate (see `RowWork`).

    adds: to what X holds there."""
    o, nv = tree.iv[i], tree.above.size
    m2, f2 = maximum(sums[1], dot3(W[0], W[0])), maximum(sums[2], dot3(W[1], W[1]))
    made, rate = sums[0], sums[3]
    if tree.kind[i] == SCREW:
        S = screw(tree, i)
        x = (load(work.X, j * nv + o) if adds else zero) + screw_dot(S, W)
        reach = S[0] * S[0] * m2 + S[1] * S[1] * f2
        W, made, rate = through(nv, o, j, x, reach, made, rate, W, U, Psi, prescribed, articulated, work, motion)
    else:
        for c in range(NV[tree.kind[i]]):
            x = (load(work.X, j * nv + o + c) if adds else zero) + dot(joint_column(tree, i, c, zero), W)
            reach = m2 if c < 3 else f2
            W, made, rate = through(nv, o + c, j, x, reach, made, rate, W, U, Psi, prescribed, articulated, work, motion)
    if motion is not None:
        rate = rate + dot(W, joint_eta(tree, i, load_twist(motion.V, i), motion.v))
    return W, (made, m2, f2, rate)


@primitive
def through(nv, k, j, x, reach, made, rate, W, U, Psi, prescribed, articulated, work, motion):
    """The wrench behind coordinate k, of the rows of number j, and what their diagonal is made of and their rate so far.
    reach: x^2 if nothing had cancelled."""
    store(work.X, j * nv + k, x)
    if not articulated or prescribed[k]:
        if motion is not None:
            rate = rate + x * load(motion.a, k)
        return W, made, rate
    psi = load(Psi, k)
    px = psi * x
    if motion is not None:
        rate = rate + px * load(motion.u, k)
    return sub(W, scale(px, load_twist(U, k))), made + psi * (x * x + reach), rate


@primitive
def add_rates(loops, work, out):
    """out (m) += work.rate."""
    number = number_like(out, 0.0)
    for c in range(loops.record.shape[0]):
        first, column = loops.record[c, FIRST], column_of(loops, c, 0, number)
        for r in range(loops.record[c, ROW_COUNT]):
            store(out, first + r, load(out, first + r) + get_cell(work.rate, 1, column + r, 0, number))


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
