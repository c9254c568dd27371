"""Newton-Euler with all bodies' twists along the same axes, each about its own body's origin.

The axes are the world's. A step to the parent is a change of origin only, which is what makes second derivatives cheap, where
each joint meets every two that it hangs on. No distance but that between neighbours enters, so nothing is lost far from the
world's origin.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.columns import joint_twist, store_columns
from liedyn.joints.kinds import HAS_CHILDREN, LAST_CHILD, NV, SCREW
from liedyn.joints.motion import joint_pose
from liedyn.lie.body_coriolis import add_coriolis, coriolis
from liedyn.lie.inertia import add_rigid, momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load3, load6, load9, load_rigid, load_twist, store3, store6, store9, store_twist
from liedyn.lie.se3 import ad, add, less_dad, plus_ad, scale, sub
from liedyn.lie.shift import shift_coriolis, shift_rigid, shift_twist, shift_wrench
from liedyn.lie.vec3 import congruence, product, rotate
from liedyn.seam.views import span


class AlignedWork(NamedTuple):
    R: np.ndarray       # (9n,) rotation of the body in the axes
    p: np.ndarray       # (3n,) origin of the body from its parent's
    V: np.ndarray       # (6n,) twist
    dV: np.ndarray      # (6n,) acceleration, gravity included
    sums: np.ndarray    # (28n,) of all that hangs on the body: inertia I, wrench F that moves it, Coriolis matrix B
    handed: np.ndarray  # (28n,) by slot, what children hand to their parent of them
    s: np.ndarray       # (6nv,) column of the joint
    psi: np.ndarray     # (6nv,) what q and v of the joint do to twists and accelerations of all that hangs on it
    zeta: np.ndarray    # (6nv,)
    phi: np.ndarray     # (6nv,) not of screws, whose is 2 psi


@primitive
def aligned_work(memory, n, nv):
    """The work, and the rest of the memory."""
    m, k = memory, 80 * n
    work = AlignedWork(span(m, 0, 9 * n), span(m, 9 * n, 3 * n), span(m, 12 * n, 6 * n), span(m, 18 * n, 6 * n),
                       span(m, 24 * n, 28 * n), span(m, 52 * n, 28 * n),
                       span(m, k, 6 * nv), span(m, k + 6 * nv, 6 * nv), span(m, k + 12 * nv, 6 * nv),
                       span(m, k + 18 * nv, 6 * nv))
    return work, m[k + 24 * nv:]


def aligned_memory(n, nv): return 80 * n + 24 * nv


@primitive
def aligned_motion(tree, q, v, a, work):
    """Forward, parents first: what `work` holds of each body alone, R to dV, and of each joint (K1 Table 2)."""
    zero = number_like(q, 0.0)
    one = zero + 1.0
    rest = (zero, zero, zero), (zero, zero, zero)
    store9(work.R, 0, (one, zero, zero, zero, one, zero, zero, zero, one))
    store_twist(work.V, 0, rest)
    store_twist(work.dV, 0, add(rest, load_twist(tree.dV0, 0)))
    for i in range(1, tree.parent.size):
        up, (R, p) = tree.parent[i], joint_pose(tree, i, q)
        R_up = load9(work.R, 9 * up)
        R, p = product(R_up, R), rotate(R_up, p)
        store9(work.R, 9 * i, R)
        store3(work.p, 3 * i, p)
        store_columns(tree, i, R, work.s)
        Vp, dVp = shift_twist(p, load_twist(work.V, up)), shift_twist(p, load_twist(work.dV, up))
        k = tree.iv[i]
        if tree.kind[i] == SCREW:                              # ad_s s = 0, so ad_V s = psi: a tenth less arithmetic
            s, psi = joint_slopes(work, k, Vp, dVp)
            x = load(v, k)
            store_twist(work.V, i, add(Vp, scale(x, s)))
            store_twist(work.dV, i, add(add(dVp, scale(x, psi)), scale(load(a, k), s)))
        else:
            Sv = joint_twist(tree, i, R, v)
            V = add(Vp, Sv)                                        # V = Ad V_p + S dq, dV = Ad dV_p + ad_V S dq + S ddq
            dV = add(plus_ad(dVp, V, Sv), joint_twist(tree, i, R, a))
            store_twist(work.V, i, V)
            store_twist(work.dV, i, dV)
            for c in range(k, k + NV[tree.kind[i]]):
                s, psi = joint_slopes(work, c, Vp, dVp)
                store_twist(work.phi, c, plus_ad(psi, V, s))


@primitive
def joint_slopes(work, k, Vp, dVp):
    """Writes psi and zeta of a column s (see `inverse_derivatives`). Returns s and psi."""
    s = load_twist(work.s, k)
    psi = ad(Vp, s)
    store_twist(work.psi, k, psi)
    store_twist(work.zeta, k, plus_ad(ad(dVp, s), Vp, psi))
    return s, psi


@primitive
def sums_of(tree, i, f_ext, work):
    """I, F and B of all that hangs on body i: its own, F = I dV - ad*_V I V - F_ext, and what its children handed to it."""
    m, h, A = load_rigid(tree.I, i)
    R, V, zero = load9(work.R, 9 * i), load_twist(work.V, i), number_like(work.R, 0.0)
    I = m + zero, rotate(R, h), congruence(R, A)
    P = momentum(I, V)
    F, B = less_dad(momentum(I, load_twist(work.dV, i)), V, P), coriolis(I, V, P[1])
    if f_ext.size:
        G = load_twist(f_ext, i)
        F = sub(F, (rotate(R, G[0]), rotate(R, G[1])))
    if tree.marks[i] & HAS_CHILDREN:
        I, F, B = plus_sums(I, F, B, work.handed, tree.slot[i])
    return I, F, B


@primitive
def hand_to_parent(tree, i, I, F, B, work):
    """Sums of body i, about its parent's origin."""
    up = tree.parent[i]
    if up > 0:
        p, k = load3(work.p, 3 * i), tree.slot[up]
        I, F, B = shift_rigid(p, I), shift_wrench(p, F), shift_coriolis(p, B)
        if not tree.marks[i] & LAST_CHILD:
            I, F, B = plus_sums(I, F, B, work.handed, k)
        store_sums(work.handed, k, I, F, B)


@primitive
def gather_bodies(tree, f_ext, work):
    """Backward, children first: the sums of each body."""
    for i in range(tree.parent.size - 1, 0, -1):
        I, F, B = sums_of(tree, i, f_ext, work)
        store_sums(work.sums, i, I, F, B)
        hand_to_parent(tree, i, I, F, B, work)


@primitive
def load_sums(x, i): return load_inertia(x, i), load_wrench(x, i), load_coriolis(x, i)


@primitive
def load_inertia(x, i): return load(x, 28 * i), load3(x, 28 * i + 1), load6(x, 28 * i + 4)


@primitive
def load_wrench(x, i): return load3(x, 28 * i + 10), load3(x, 28 * i + 13)


@primitive
def load_coriolis(x, i): return load9(x, 28 * i + 16), load3(x, 28 * i + 25)


@primitive
def store_sums(x, i, I, F, B):
    store(x, 28 * i, I[0])
    store3(x, 28 * i + 1, I[1])
    store6(x, 28 * i + 4, I[2])
    store_wrench(x, i, F)
    store9(x, 28 * i + 16, B[0])
    store3(x, 28 * i + 25, B[1])


@primitive
def store_wrench(x, i, F):
    store3(x, 28 * i + 10, F[0])
    store3(x, 28 * i + 13, F[1])


@primitive
def plus_sums(I, F, B, x, i):
    return add_rigid(I, load_inertia(x, i)), add(F, load_wrench(x, i)), add_coriolis(B, load_coriolis(x, i))
