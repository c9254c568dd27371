"""Hybrid dynamics (K1 Table 4): each coordinate prescribed or torque-specified. Forward dynamics (Table 3) is the case
of none prescribed."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.elimination import eliminate_screw, eliminate_units, solve
from liedyn.joints.kinds import SCREW
from liedyn.joints.motion import joint_add, joint_eta, joint_pose
from liedyn.joints.passive import passive_force
from liedyn.joints.tree import HAS_CHILDREN, LAST_CHILD
from liedyn.kernels.newton_euler import store_ground
from liedyn.lie.inertia import add_sym6, momentum, rigid, sym6, to_parent
from liedyn.lie.lanes import largest, maximum, number_like
from liedyn.lie.rows import load_pose, load_rigid, load_sym6, load_twist, store_pose, store_sym6, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, minus_dad, sub


class HybridWork(NamedTuple):
    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    AI: np.ndarray       # (21n,) what the children add to the articulated inertia
    AB: np.ndarray       # (6n,) what the children add to the bias force
    U: np.ndarray        # (6nv,) AI S
    Psi: np.ndarray      # (nv,) (S^T AI S)^-1, or S^T AI S where prescribed
    u: np.ndarray        # (nv,) tau - S^T B, or S^T B where prescribed
    passive: np.ndarray  # (nv,)


@primitive
def hybrid_work(memory, n, nv):
    m, k = memory, 51 * n
    return HybridWork(m[:12 * n], m[12 * n:18 * n], m[18 * n:24 * n], m[24 * n:45 * n], m[45 * n:51 * n],
                      m[k:k + 6 * nv], m[k + 6 * nv:k + 7 * nv], m[k + 7 * nv:k + 8 * nv], m[k + 8 * nv:k + 9 * nv])


def hybrid_memory(n, nv): return 51 * n + 9 * nv


@kernel
def hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """prescribed[k]: read a[k], write tau[k]; else read tau[k], write a[k]. f_ext (6n) wrenches on bodies, or empty.

    Returns a positive number if a joint's articulated inertia vanishes (the results are then worthless)."""
    n = tree.parent.size
    store_ground(tree, q, work.V, work.dV)
    if passive:
        passive_force(tree, q, v, work.passive)
    for i in range(1, n):                                                   # forward: parents first
        T = joint_pose(tree, i, q)
        store_pose(work.T, i, T)
        store_twist(work.V, i, joint_add(tree, i, Ad_inv(T, load_twist(work.V, tree.parent[i])), v))   # V = Ad V_p + S dq
    deficit = number_like(q, -1.0)
    for i in range(n - 1, 0, -1):                                           # backward: children first
        V = load_twist(work.V, i)
        if tree.kind[i] == SCREW:
            AI, AB = articulated(tree, i, V, f_ext, work)
            Pi, beta, worse = eliminate_screw(tree, i, AI, AB, prescribed, passive, a, tau, work)
            hand_to_parent(tree, i, Pi, beta, joint_eta(tree, i, V, v), work)
        else:
            AI, AB = articulated(tree, i, V, f_ext, work)
            Pi, beta, worse = eliminate_units(tree, i, AI, AB, prescribed, passive, a, tau, work)
            hand_to_parent(tree, i, Pi, beta, joint_eta(tree, i, V, v), work)
        deficit = maximum(deficit, worse)
    for i in range(1, n):                                                   # forward
        dV = add(Ad_inv(load_pose(work.T, i), load_twist(work.dV, tree.parent[i])),
                 joint_eta(tree, i, load_twist(work.V, i), v))
        store_twist(work.dV, i, solve(tree, i, dV, prescribed, passive, a, tau, work))
    return largest(deficit)


@primitive
def articulated(tree, i, V, f_ext, work):
    """AI = I + what the children add; AB = -ad*_V I V - F_ext + what the children add."""
    I = load_rigid(tree.I, i)
    AI, AB = rigid(I, V[0][0] - V[0][0]), minus_dad(V, momentum(I, V))
    if f_ext.size:
        AB = sub(AB, load_twist(f_ext, i))
    if tree.marks[i] & HAS_CHILDREN:
        AI, AB = add_sym6(AI, load_sym6(work.AI, i)), add(AB, load_twist(work.AB, i))
    return AI, AB


@primitive
def hand_to_parent(tree, i, Pi, beta, eta, work):
    p = tree.parent[i]
    if p > 0:
        T = load_pose(work.T, i)
        beta = dAd_inv(T, add(beta, sym6(Pi, eta)))                         # beta = B + Pi eta + U Psi u
        Pi = to_parent(T, Pi)
        if not tree.marks[i] & LAST_CHILD:
            Pi, beta = add_sym6(Pi, load_sym6(work.AI, p)), add(beta, load_twist(work.AB, p))
        store_sym6(work.AI, p, Pi)
        store_twist(work.AB, p, beta)
