"""What the rows of constraints do to the tree.

A row's wrench, swept towards the ground through articulated bodies, leaves at each joint X = S^T W and goes on as
W - U Psi X (the factors of `joints.elimination`). With M = L^T D L this is X = L^-T A^T, so that

    A M^-1 A^T = X^T D^-1 X,      M^-1 A^T lambda: the forward sweep with X lambda for joint forces:

O(length of the loop) a row; prescribed joints pass the wrench on whole, and what comes out is that of M_vv and A_v.
On its way the wrench W also finds how the open tree accelerates the row, without forming its accelerations: the sum of X Psi u
(X a where prescribed) over coordinates, of W . eta over bodies, and W . dV at the ground (`RowWork.rate`).
"""
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
    closure_row,
    normal_row,
)
from liedyn.joints.kinds import COUPLING, NV, ROLLING, SCREW
from liedyn.joints.motion import joint_column, joint_eta, screw
from liedyn.kernels.loops.loop_rows import load_guide
from liedyn.lie.lanes import load, maximum, number_like, store
from liedyn.lie.rows import add_to_twist, load3, load_pose, load_twist, store_twist
from liedyn.lie.screw import screw_dot
from liedyn.lie.se3 import add, dAd_inv, dot, neg, scale, sub, zero6
from liedyn.lie.vec3 import dot3


@primitive
def sweep_rows(tree, loops, prescribed, T, U, Psi, work, holonomic=False, motion=None):
    """Writes X of all rows, where their chains have coordinates, and size. T, U, Psi: of the tree.

    holonomic: rows of the residual's derivative; what rolls is then free along the plane. motion: of which to write
    work.rate too."""
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == COUPLING:
            sweep_coupling(tree, loops, c, prescribed, T, U, Psi, work, motion)
        else:
            for r in range(loops.record[c, ROW_COUNT]):
                F = row_at(loops, c, r, holonomic, work)
                sweep_closure(tree, loops, c, loops.record[c, FIRST] + r, F, prescribed, T, U, Psi, work, motion)


@primitive
def row_at(loops, c, r, holonomic, work):
    kind, g = loops.record[c, KIND], load_guide(work, c)
    if holonomic and kind == ROLLING:
        return normal_row(r, g, load3(work.T, 12 * c + 6))
    return closure_row(kind, r, g)


@primitive
def sweep_closure(tree, loops, c, j, F, prescribed, T, U, Psi, work, motion):
    """Row j, the wrench F: from B's body, and from A's, to the one that carries both, and on to the ground."""
    zero = number_like(work.X, 0.0)
    a, b, common = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, COMMON]
    W, W_a = dAd_inv(load_pose(loops.pose, 2 * c + 1), F), neg(dAd_inv(load_pose(work.T_a, c), F))
    arm = load(loops.length, c)
    other, sums = zero6(zero), (zero, arm * arm * dot3(F[1], F[1]), zero, zero)     # a force has at least the loop's lever arms
    i, end = b, common
    for leg in range(3):
        while i != end:
            W, sums = through_joint(tree, i, j, W, sums, zero, False, prescribed, U, Psi, work, motion)
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
    store(work.size, j, sums[0])
    if motion is not None:
        store(work.rate, j, sums[3] + dot(W, load_twist(motion.dV, 0)))


@primitive
def sweep_coupling(tree, loops, c, prescribed, T, U, Psi, work, motion):
    """The row of a coupling, whose bodies may stand on many branches."""
    j, nv, zero = loops.record[c, FIRST], tree.above.size, number_like(work.X, 0.0)
    chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
    rest = zero6(zero)
    for k in range(chain.size):
        i = chain[k]
        store_twist(work.W, i, rest)
        for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store(work.X, j * nv + o, zero)
    sums, ground = (zero, zero, zero, zero), rest
    for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERMS]):
        store(work.X, j * nv + loops.term_v[t], zero + load(loops.coefficient, t))
    for k in range(chain.size):                                 # children first
        i = chain[k]
        W, sums = through_joint(tree, i, j, load_twist(work.W, i), sums, zero, True, prescribed, U, Psi, work, motion)
        W = dAd_inv(load_pose(T, i), W)
        if tree.parent[i] > 0:
            add_to_twist(work.W, tree.parent[i], W)
        else:
            ground = add(ground, W)
    store_sums(j, sums, ground, work, motion)


@primitive
def through_joint(tree, i, j, W, sums, zero, adds, prescribed, U, Psi, work, motion):
    """The wrench W behind the joint of body i, of row j, and sums on the way: size, largest |m|^2 and |f|^2, rate (see
    `RowWork`).

    adds: to what X holds there."""
    o, nv = tree.iv[i], tree.above.size
    m2, f2 = maximum(sums[1], dot3(W[0], W[0])), maximum(sums[2], dot3(W[1], W[1]))
    made, rate = sums[0], sums[3]
    if tree.kind[i] == SCREW:
        S = screw(tree, i)
        x = (load(work.X, j * nv + o) if adds else zero) + screw_dot(S, W)
        reach = S[0] * S[0] * m2 + S[1] * S[1] * f2
        W, made, rate = through(nv, o, j, x, reach, made, rate, W, U, Psi, prescribed, work, motion)
    else:
        for c in range(NV[tree.kind[i]]):
            x = (load(work.X, j * nv + o + c) if adds else zero) + dot(joint_column(tree, i, c, zero), W)
            reach = m2 if c < 3 else f2
            W, made, rate = through(nv, o + c, j, x, reach, made, rate, W, U, Psi, prescribed, work, motion)
    if motion is not None:
        rate = rate + dot(W, joint_eta(tree, i, load_twist(motion.V, i), motion.v))
    return W, (made, m2, f2, rate)


@primitive
def through(nv, k, j, x, reach, made, rate, W, U, Psi, prescribed, work, motion):
    """The wrench behind coordinate k, of row j, and what its diagonal is made of and its rate so far.
    reach: x^2 if nothing had cancelled."""
    store(work.X, j * nv + k, x)
    if prescribed[k]:
        if motion is not None:
            rate = rate + x * load(motion.a, k)
        return W, made, rate
    psi = load(Psi, k)
    px = psi * x
    if motion is not None:
        rate = rate + px * load(motion.u, k)
    return sub(W, scale(px, load_twist(U, k))), made + psi * (x * x + reach), rate


@primitive
def add_multipliers(tree, loops, prescribed, multipliers, work, u):
    """u += X lambda where free, and -= where prescribed (there u is S^T of the bias force)."""
    nv, zero = tree.above.size, number_like(u, 0.0)
    for c in range(loops.record.shape[0]):
        chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, LENGTH]]
        first = loops.record[c, FIRST]
        for k in range(chain.size):
            i = chain[k]
            for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                x = zero
                for r in range(first, first + loops.record[c, ROW_COUNT]):
                    x = x + load(work.X, r * nv + o) * load(multipliers, r)
                store(u, o, load(u, o) - x if prescribed[o] else load(u, o) + x)
