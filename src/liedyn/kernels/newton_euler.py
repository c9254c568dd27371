"""Inverse dynamics: recursive Newton-Euler.

Source: K1 (30), (31), (41), Table 2; PBP (22)-(27), (74)-(83); PL (13)-(18), (30).
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    accumulate_children,
    joint_add,
    joint_eta,
    joint_pose,
    propagate_to_parent,
    store_joint_force,
    tree_views,
)
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_motion, store_block, unpack_block
from liedyn.kernels.couplings import close_motion, coupling_views, fold_forces
from liedyn.kernels.force_elements import passive_forces
from liedyn.kernels.kinematics import load_wrenches
from liedyn.lie.inertia import momentum
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, sub, sub_dad, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.vectors import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace


class BodyMotion(NamedTuple):
    """Motion of the bodies."""

    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate


class NewtonEulerWorkspace(NamedTuple):
    """Motion of the bodies and wrenches that their joints transmit."""

    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    F: np.ndarray        # (6n,) wrench that the joint transmits to the body, in its frame
    passive: np.ndarray  # (nv,)


@jitable
def newton_euler_sizes(n, nv):
    """Return the sizes of the arrays of `NewtonEulerWorkspace`."""
    return 12 * n, 6 * n, 6 * n, 6 * n, nv


@inline_kernel
def newton_euler_workspace(memory, n, nv):
    """Return the `NewtonEulerWorkspace` whose arrays are views into `memory`."""
    return NewtonEulerWorkspace(*split_workspace(memory, newton_euler_sizes(n, nv))[:-1])


@jitable
def newton_euler_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `NewtonEulerWorkspace`."""
    return sum(newton_euler_sizes(n, nv))


@inline_kernel
def store_ground(tree, x, V, dV):
    """Write the motion of the ground: at rest, and accelerated against gravity. `x` gives the kind of number."""
    rest = zero6(number_like(x, 0.0))
    store_twist(V, 0, rest)
    store_twist(dV, 0, add(rest, load_twist(tree.dV0, 0)))


@inline_kernel
def newton_euler(tree, I, q, v, a, f_ext, passive, tau, ws):
    """Write tau (nv) and ws.

    I        tree.I; or tree.J if ws.F is not used
    f_ext    (6n) wrenches on bodies, or empty
    passive  subtract the forces of springs, damping and friction
    """
    store_ground(tree, q, ws.V, ws.dV)
    body_motions(tree, q, v, a, ws)
    for i in range(tree.parent.size - 1, 0, -1):                            # backward: children first
        body, V = load_rigid(I, i), load_twist(ws.V, i)
        F = sub_dad(momentum(body, load_twist(ws.dV, i)), V, momentum(body, V))      # F = I dV - ad*_V I V - F_ext
        if f_ext.size:
            F = sub(F, load_twist(f_ext, i))
        F = accumulate_children(tree, i, F, ws.F)                               # + sum of Ad* F_child
        store_twist(ws.F, i, F)
        store_joint_force(tree, i, F, tau)                                  # tau = S^T F
        propagate_to_parent(tree, i, dAd_inv(load_pose(ws.T, i), F), ws.F)
    add_joint_forces(tree, q, v, a, passive, tau, ws.passive)


@inline_kernel
def body_motions(tree, q, v, a, ws):
    """Write T, V and dV of the bodies, parents first, from the motion of the ground."""
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, load_twist(ws.V, p)), v)         # V = Ad V_p + S dq
        dV = add(Ad_inv(T, load_twist(ws.dV, p)), joint_eta(tree, i, V, v))
        store_pose(ws.T, i, T)
        store_twist(ws.V, i, V)
        store_twist(ws.dV, i, joint_add(tree, i, dV, a))                  # dV = Ad dV_p + ad_V S dq + S ddq


@inline_kernel
def add_joint_forces(tree, q, v, a, passive, tau, buffer):
    """Add armature a to tau; if `passive`, subtract the forces of springs, damping and friction."""
    for k in range(tree.armature.shape[0]):
        store(tau, k, load(tau, k) + load(tree.armature, k) * load(a, k))
    if passive:
        passive_forces(tree, q, v, buffer)
        for k in range(tree.armature.shape[0]):
            store(tau, k, load(tau, k) - load(buffer, k))


# batches ----------------------------------------------------------------------------------------------------------------
def inverse_batch_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `inverse_batch` for one state (see `Model.sizes`)."""
    return newton_euler_workspace_size(n, nv) + 6 * n + nq + 3 * nv + 6 * nl


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], f8[:,::1], i8, i8)",
             nogil=True)
def inverse_batch(index, constants, memory, q, v, a, f_ext, passive, tau, wrenches, first, last):
    """Write tau of states first … last - 1 of a batch, eight at a time.

    The caller guarantees the size of `memory` and the range of `first` and `last`.

    wrenches: (N, 6n) wrench that each joint transmits to its body, in the body frame; or empty.
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, V, A, Tau, links, bodies, m) = tree_views(index,
                                                        constants), split_workspace(memory, (nq, nv, nv, nv, 6 * nl, 6 * n))
    ws, couplings = newton_euler_workspace(m, n, nv), coupling_views(index, constants)
    passive = passive and index[4] != 0
    for k in range(first, last, SIMD_WIDTH):
        bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
        code = load_motion(tree, q, v, a, k, Q, V, A) or bad_f_ext or close_motion(couplings, Q, V, A)
        if code != OK:
            return code
        newton_euler(tree, tree.I if wrenches.size else tree.J, Q, V, A, F, passive, Tau, ws)
        fold_forces(couplings, Tau)
        if not store_block(Tau, tau, k):
            return BAD_RESULT
        if wrenches.size:
            unpack_block(ws.F, wrenches, k)
    return OK
