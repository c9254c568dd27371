"""Newton-Euler with all bodies' twists along the same axes, each about its own body's origin.

The axes are the world's, or of a robot on a free base the base's, along which its columns are those of the unit matrix: inverse
derivatives of a humanoid take 5% less. A step to the parent is a change of origin only, which is what makes pairs of joints
cheap: derivatives, where every joint meets all that it hangs on. No distance but that between neighbours enters, so nothing is
lost far from the world's origin.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.columns import joint_twist, store_along, store_columns
from liedyn.joints.kinds import FREE, NV
from liedyn.joints.motion import joint_pose
from liedyn.lie.coriolis import add_coriolis, coriolis
from liedyn.lie.inertia import add_rigid, momentum
from liedyn.lie.lanes import number_like
from liedyn.lie.rows import load3, load9, load_rigid, load_twist, store3, store9, store_rigid, store_twist
from liedyn.lie.se3 import ad, add, minus_dad, sub
from liedyn.lie.shift import shift_coriolis, shift_rigid, shift_twist, shift_wrench
from liedyn.lie.vec3 import congruence, product, rotate, rotate_back
from liedyn.spans import span


class AlignedWork(NamedTuple):
    R: np.ndarray       # (9n,) rotation of the body in the axes
    p: np.ndarray       # (3n,) origin of the body from its parent's
    Vp: np.ndarray      # (6n,) what the parent's twist is here: Ad V_p
    V: np.ndarray       # (6n,) twist
    dVp: np.ndarray     # (6n,) Ad dV_p
    dV: np.ndarray      # (6n,) acceleration, gravity included
    I: np.ndarray       # (10n,) inertia: of the body, later of all that hangs on it
    F: np.ndarray       # (6n,) wrench that moves the body, later all that hangs on it
    E: np.ndarray       # (9n,) the same two for the Coriolis matrix B = (E, f)
    f: np.ndarray       # (3n,)
    s: np.ndarray       # (6nv,) column of the joint
    psi: np.ndarray     # (6nv,) ad_{Ad V_p} s: how V changes with q


@primitive
def aligned_work(memory, n, nv):
    """The work, and the rest of the memory."""
    m, k = memory, 64 * n
    work = AlignedWork(span(m, 0, 9 * n), span(m, 9 * n, 3 * n), span(m, 12 * n, 6 * n), span(m, 18 * n, 6 * n),
                       span(m, 24 * n, 6 * n), span(m, 30 * n, 6 * n), span(m, 36 * n, 10 * n), span(m, 46 * n, 6 * n),
                       span(m, 52 * n, 9 * n), span(m, 61 * n, 3 * n), span(m, k, 6 * nv), span(m, k + 6 * nv, 6 * nv))
    return work, m[k + 12 * nv:]


def aligned_memory(n, nv): return 64 * n + 12 * nv


@primitive
def load_coriolis(work, i): return load9(work.E, 9 * i), load3(work.f, 3 * i)


@primitive
def store_coriolis(work, i, B):
    store9(work.E, 9 * i, B[0])
    store3(work.f, 3 * i, B[1])


@primitive
def is_base(tree, i):
    """Whether body i is free on the ground: its axes are those of all that hangs on it."""
    return tree.parent[i] == 0 and tree.kind[i] == FREE


@primitive
def aligned_motion(tree, q, v, a, f_ext, work):
    """Forward, parents first: all of `work`, each body for itself (K1 Table 2 but for the last sums)."""
    zero = number_like(q, 0.0)
    one = zero + 1.0
    rest = (zero, zero, zero), (zero, zero, zero)
    store9(work.R, 0, (one, zero, zero, zero, one, zero, zero, zero, one))
    store_twist(work.V, 0, rest)
    store_twist(work.dV, 0, add(rest, load_twist(tree.dV0, 0)))
    for i in range(1, tree.parent.size):
        up, (R, p) = tree.parent[i], joint_pose(tree, i, q)
        R_up, g = load9(work.R, 9 * up), load_twist(work.dV, up)
        if is_base(tree, i):
            R, g = (one, zero, zero, zero, one, zero, zero, zero, one), (g[0], rotate_back(R, g[1]))
        else:
            R, p = product(R_up, R), rotate(R_up, p)
        store9(work.R, 9 * i, R)
        store3(work.p, 3 * i, p)
        store_columns(tree, i, R, work.s)
        Vp, dVp = shift_twist(p, load_twist(work.V, up)), shift_twist(p, g)
        Sv = joint_twist(tree, i, R, v)
        V = add(Vp, Sv)                                            # V = Ad V_p + S dq
        dV = add(add(dVp, ad(V, Sv)), joint_twist(tree, i, R, a))  # dV = Ad dV_p + ad_V S dq + S ddq
        store_twist(work.Vp, i, Vp)
        store_twist(work.V, i, V)
        store_twist(work.dVp, i, dVp)
        store_twist(work.dV, i, dV)
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store_twist(work.psi, k, ad(Vp, load_twist(work.s, k)))
        store_body(tree, i, R, V, dV, f_ext, work)


@primitive
def store_body(tree, i, R, V, dV, f_ext, work):
    """The body's own I, F = I dV - ad*_V I V - F_ext and B."""
    m, h, A = load_rigid(tree.I, i)
    zero = R[0] - R[0]
    I = m + zero, rotate(R, h), congruence(R, A)
    P = momentum(I, V)
    F = add(momentum(I, dV), minus_dad(V, P))
    if f_ext.size:
        G = load_twist(f_ext, i)
        F = sub(F, (rotate(R, G[0]), rotate(R, G[1])))
    store_rigid(work.I, i, I)
    store_twist(work.F, i, F)
    store_coriolis(work, i, coriolis(I, V, P[1]))


@primitive
def gather_bodies(tree, work):
    """Backward, children first: I, F and B of all that hangs on each body."""
    for i in range(tree.parent.size - 1, 0, -1):
        up = tree.parent[i]
        if up > 0:
            p = load3(work.p, 3 * i)
            store_rigid(work.I, up, add_rigid(load_rigid(work.I, up), shift_rigid(p, load_rigid(work.I, i))))
            store_twist(work.F, up, add(load_twist(work.F, up), shift_wrench(p, load_twist(work.F, i))))
            store_coriolis(work, up, add_coriolis(load_coriolis(work, up), shift_coriolis(p, load_coriolis(work, i))))


@primitive
def aligned_forces(tree, work, tau):
    """tau = S^T F."""
    for i in range(1, tree.parent.size):
        store_along(tree, i, load_twist(work.F, i), work.R, work.s, tau, tree.iv[i])
