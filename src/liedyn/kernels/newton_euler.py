"""Inverse dynamics: recursive Newton-Euler (K1 Table 2)."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_add, joint_eta, joint_pose, store_joint_force
from liedyn.joints.passive import passive_force
from liedyn.joints.tree import HAS_CHILDREN, LAST_CHILD
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, minus_dad, sub


class NewtonEulerWork(NamedTuple):
    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    F: np.ndarray        # (6n,) what the joint transmits to the body: wrench on body i, in its frame
    passive: np.ndarray  # (nv,)


@primitive
def newton_euler_work(memory, n, nv):
    m = memory
    return NewtonEulerWork(m[:12 * n], m[12 * n:18 * n], m[18 * n:24 * n], m[24 * n:30 * n], m[30 * n:30 * n + nv])


def newton_euler_memory(n, nv): return 30 * n + nv


@primitive
def store_ground(tree, x, V, dV):
    """The ground: at rest, accelerated against gravity. `x` tells the kind of number."""
    zero = number_like(x, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
    store_twist(V, 0, rest)
    store_twist(dV, 0, add(rest, load_twist(tree.dV0, 0)))


@kernel
def newton_euler(tree, q, v, a, f_ext, passive, tau, work):
    """Writes tau (nv) and work. f_ext (6n) wrenches on bodies, or empty. passive: less what springs and damping give."""
    n = tree.parent.size
    store_ground(tree, q, work.V, work.dV)
    for i in range(1, n):                                                   # forward: parents first
        p = tree.parent[i]
        T = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, load_twist(work.V, p)), v)         # V = Ad V_p + S dq
        dV = add(Ad_inv(T, load_twist(work.dV, p)), joint_eta(tree, i, V, v))
        dV = joint_add(tree, i, dV, a)                                      # dV = Ad dV_p + ad_V S dq + S ddq
        store_pose(work.T, i, T)
        store_twist(work.V, i, V)
        store_twist(work.dV, i, dV)
    for i in range(n - 1, 0, -1):                                           # backward: children first
        I, V = load_rigid(tree.I, i), load_twist(work.V, i)
        F = add(momentum(I, load_twist(work.dV, i)), minus_dad(V, momentum(I, V)))    # F = I dV - ad*_V I V
        if f_ext.size:
            F = sub(F, load_twist(f_ext, i))
        if tree.marks[i] & HAS_CHILDREN:
            F = add(F, load_twist(work.F, i))                               # + sum of Ad* F_child
        store_joint_force(tree, i, F, tau)                                  # tau = S^T F
        p = tree.parent[i]
        if p > 0:
            to_parent = dAd_inv(load_pose(work.T, i), F)
            if not tree.marks[i] & LAST_CHILD:
                to_parent = add(to_parent, load_twist(work.F, p))
            store_twist(work.F, p, to_parent)
    add_rotors_less_passive(tree, q, v, a, passive, tau, work.passive)


@kernel
def add_rotors_less_passive(tree, q, v, a, passive, tau, scratch):
    """tau += armature a, and what springs, damping and friction give is not asked of the motors."""
    for k in range(tree.armature.shape[0]):
        store(tau, k, load(tau, k) + load(tree.armature, k) * load(a, k))
    if passive:
        passive_force(tree, q, v, scratch)
        for k in range(tree.armature.shape[0]):
            store(tau, k, load(tau, k) - load(scratch, k))
