"""Hybrid dynamics: each coordinate prescribed or torque-specified. Forward dynamics is the case of none prescribed.

Source: K1 (42)-(52), Tables 3-4.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, everywhere, primitive
from liedyn.joints.children import hand_inertia_to_parent, hand_to_parent, inertia_with_children, with_children
from liedyn.joints.elimination import eliminate, eliminate_bias, solve
from liedyn.joints.motion import inertia_to_parent, joint_add, joint_eta, joint_pose
from liedyn.joints.passive import passive_force
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import (
    BAD_A,
    BAD_RESULT,
    BAD_TAU,
    OK,
    SINGULAR,
    SMALLEST,
    finite,
    finite_where,
    take_state,
    within,
)
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.newton_euler import store_ground
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.inertia import momentum, rigid, sym6
from liedyn.lie.lanes import WIDTH, maximum, number_like
from liedyn.lie.rows import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, minus_dad, sub
from liedyn.seam.views import carve


class HybridWork(NamedTuple):
    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    AI: np.ndarray       # (21n,) what children add to the articulated inertia
    AB: np.ndarray       # (6n,) what children add to the bias force
    U: np.ndarray        # (6nv,) AI S
    Psi: np.ndarray      # (nv,) (S^T AI S)^-1, or S^T AI S where prescribed
    u: np.ndarray        # (nv,) tau - S^T AB, or S^T AB where prescribed
    passive: np.ndarray  # (nv,)


@everywhere
def hybrid_sizes(n, nv): return 12 * n, 6 * n, 6 * n, 21 * n, 6 * n, 6 * nv, nv, nv, nv


@primitive
def hybrid_work(memory, n, nv): return HybridWork(*carve(memory, hybrid_sizes(n, nv))[:-1])


@everywhere
def hybrid_memory(n, nv): return sum(hybrid_sizes(n, nv))


@primitive
def hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """prescribed[k]: read a[k], write tau[k]; else read tau[k], write a[k]. f_ext (6n) wrenches on bodies, or empty.

    Returns a positive number if a joint's articulated inertia vanishes (the results are then worthless)."""
    deficit = out_and_back(tree, prescribed, q, v, a, tau, f_ext, passive, work)
    substitute(tree, prescribed, v, passive, a, tau, work)
    return deficit


@primitive
def complete_motion(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """`hybrid`, where of the work V alone is asked for. A line of a robot of short chains has `by_mass_matrix` in its place."""
    return hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, work)


@primitive
def out_and_back(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """The first two passes of `hybrid`: work, but for dV of bodies."""
    store_ground(tree, q, work.V, work.dV)
    if passive:
        passive_force(tree, q, v, work.passive)
    for i in range(1, tree.parent.size):                                   # forward: parents first
        T = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, load_twist(work.V, tree.parent[i])), v)           # V = Ad V_p + S dq
        store_pose(work.T, i, T)
        store_twist(work.V, i, V)
    deficit = number_like(v, -1.0)
    for i in range(tree.parent.size - 1, 0, -1):                            # backward: children first
        J, T, V = load_rigid(tree.J, i), load_pose(work.T, i), load_twist(work.V, i)
        AI = inertia_with_children(tree, i, rigid(J, V[0][0] - V[0][0]), work.AI)          # AI = J + sum of Ad* Pi Ad
        AB = with_children(tree, i, minus_dad(V, momentum(J, V)), work.AB)  # AB = -ad*_V J V - F_ext + sum of Ad* beta
        if f_ext.size:
            AB = sub(AB, load_twist(f_ext, i))
        Pi, worse = eliminate(tree, i, AI, prescribed, work)                   # Pi = AI - AI S Psi S^T AI
        beta = eliminate_bias(tree, i, AB, prescribed, passive, a, tau, work)         # beta = AB + AI S Psi u + Pi eta
        beta = add(beta, sym6(Pi, joint_eta(tree, i, V, v)))
        hand_inertia_to_parent(tree, i, inertia_to_parent(tree, i, q, T, Pi), work.AI)
        hand_to_parent(tree, i, dAd_inv(T, beta), work.AB)
        deficit = maximum(deficit, worse)
    return deficit


@primitive
def substitute(tree, prescribed, v, passive, a, tau, work):
    """Forward again: a where not prescribed, tau where prescribed, and dV of the bodies."""
    for i in range(1, tree.parent.size):
        dV = add(Ad_inv(load_pose(work.T, i), load_twist(work.dV, tree.parent[i])),
                 joint_eta(tree, i, load_twist(work.V, i), v))
        store_twist(work.dV, i, solve(tree, i, dV, prescribed, passive, a, tau, work))


# from Python ------------------------------------------------------------------------------------------------------
@primitive
def take_input(tree, prescribed, q, v, a, tau, k, Q, V, A, Tau):
    """As `checks.take_motion`; a may be empty."""
    code = take_state(tree, q, v, k, Q, V)
    if a.size:
        pack(a, k, A)
    pack(tau, k, Tau)
    if code == OK and not finite_where(A, prescribed, True):
        code = BAD_A
    if code == OK and not finite_where(Tau, prescribed, False):
        code = BAD_TAU
    return code


@primitive
def solved(deficit, a, tau):
    if not within(deficit, SMALLEST):
        return SINGULAR
    return OK if finite(a) and finite(tau) else BAD_RESULT


def hybrid_batch_memory(n, nq, nv, nl): return hybrid_memory(n, nv) + 6 * n + nq + 3 * nv + 6 * nl


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, i8, i8)",
       nogil=True)
def hybrid_batch(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, first, last):
    """States first … last - 1 of a batch, eight at a time; a and tau (N, nv) are completed in place."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, V, A, Tau, links, bodies, m) = tree_of(index, constants), carve(memory, (nq, nv, nv, nv, 6 * nl, 6 * n))
    work = hybrid_work(m, n, nv)
    passive = passive and index[4] != 0
    given, asked = prescribed.any(), not prescribed.all()
    for k in range(first, last, WIDTH):
        bad_f_ext, F = gather(tree, f_ext, k, links, bodies)
        code = take_input(tree, prescribed, q, v, a, tau, k, Q, V, A, Tau) or bad_f_ext
        if code == OK:
            code = solved(complete_motion(tree, prescribed, Q, V, A, Tau, F, passive, work), A, Tau)
        if code != OK:
            return code
        if asked:
            unpack(A, a, k)
        if given:
            unpack(Tau, tau, k)
    return OK
