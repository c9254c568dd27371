"""Inverse dynamics with a reference velocity: M(q) a_r + C(q, v) v_r + g(q), with dM/dt - 2C skew (Slotine and Li 1987).

C is that of the Levi-Civita connection (PBP (52); `kernels.coriolis`), which does not depend on the choice of body frames. With
V_r = (w_r, u_r) the twist of a body at the velocity v_r, and dV_r = (dw_r, du_r) its component-wise rate along v, where v_r
changes by a_r, the wrench of a body I = (m, h, A) is, with V = (w, u), f = m u + w x h and the matrix B of `lie.inertia`,

    I (dV_r + ad_V V_r) + B V_r / 2

    moment  A (dw_r + y) + w x A w_r - tr(A)/2 y + h x alpha        force  m alpha + dw_r x h + w x (w_r x h)

with y = w x w_r and alpha = du_r + w x u_r. For v_r = v it is that of Newton and Euler.
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
from liedyn.kernels.batch_blocks import BAD_A, BAD_RESULT, BAD_V, OK, all_finite, load_block, load_state, store_block
from liedyn.kernels.couplings import close_motion, close_rates, coupling_views, fold_forces
from liedyn.kernels.newton_euler import add_joint_forces, store_ground
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, zero6
from liedyn.lie.simd import SIMD_WIDTH, number_like
from liedyn.lie.vectors import add3, add_cross, cross, load_pose, load_rigid, load_twist, scale3, store_pose, store_twist, symv3
from liedyn.numba_tools.decorators import entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace


class ReferenceMotion(NamedTuple):
    """Motion of the bodies and their reference motion."""

    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    V_r: np.ndarray      # (6n,) twist at the reference velocity
    dV_r: np.ndarray     # (6n,) its component-wise rate, gravity included


@inline_kernel
def reference_motions(tree, q, v, v_r, a_r, ws):
    """Write T, V, V_r and dV_r of the ground and of the bodies, parents first."""
    store_ground(tree, q, ws.V, ws.dV_r)
    store_twist(ws.V_r, 0, zero6(number_like(q, 0.0)))
    for i in range(1, tree.parent.size):
        p, T = tree.parent[i], joint_pose(tree, i, q)
        V_r = Ad_inv(T, load_twist(ws.V_r, p))
        dV_r = add(Ad_inv(T, load_twist(ws.dV_r, p)), joint_eta(tree, i, V_r, v))       # of Ad_{T^-1}
        store_pose(ws.T, i, T)
        store_twist(ws.V, i, joint_add(tree, i, Ad_inv(T, load_twist(ws.V, p)), v))
        store_twist(ws.V_r, i, joint_add(tree, i, V_r, v_r))
        store_twist(ws.dV_r, i, joint_add(tree, i, dV_r, a_r))


@inline_kernel
def reference_vectors(ws, i, T):
    """Return (w, w_r, dw_r, dw_r + y, alpha) and y of the frame with the pose T in body i."""
    (w, _), (w_r, u_r), (dw, du) = (Ad_inv(T, load_twist(ws.V, i)), Ad_inv(T, load_twist(ws.V_r, i)),
                                    Ad_inv(T, load_twist(ws.dV_r, i)))
    y = cross(w, w_r)
    return (w, w_r, dw, add3(dw, y), add_cross(du, w, u_r)), y


@inline_kernel
def reference_wrench(I, V, V_r, dV_r):
    """Return the wrench of a body."""
    (m, h, A), (w, _), (w_r, u_r), (dw, du) = I, V, V_r, dV_r
    alpha, y = add_cross(du, w, u_r), cross(w, w_r)
    turning = add_cross(add3(symv3(A, add3(dw, y)), scale3(-0.5 * (A[0] + A[3] + A[5]), y)), w, symv3(A, w_r))
    return (add_cross(turning, h, alpha),
            add_cross(add_cross(scale3(m, alpha), dw, h), w, cross(w_r, h)))


@inline_kernel
def reference_forces(tree, I, F, tau, ws):
    """Write tau (nv) and the wrenches F (6n) that the joints transmit, after `reference_motions`. I: inertias of the bodies."""
    for i in range(tree.parent.size - 1, 0, -1):                            # backward: children first
        wrench = reference_wrench(load_rigid(I, i), load_twist(ws.V, i), load_twist(ws.V_r, i), load_twist(ws.dV_r, i))
        wrench = accumulate_children(tree, i, wrench, F)
        store_joint_force(tree, i, wrench, tau)
        propagate_to_parent(tree, i, dAd_inv(load_pose(ws.T, i), wrench), F)


# batches ----------------------------------------------------------------------------------------------------------------
@inline_kernel
def load_reference(tree, states, k, Q, V, V_r, A_r):
    """Copy states (q, v, v_r, a_r) of a batch, from k on, to blocks and return their code."""
    q, v, v_r, a_r = states
    code = load_state(tree, q, v, k, Q, V)
    load_block(v_r, k, V_r)
    load_block(a_r, k, A_r)
    if code != OK:
        return code
    return BAD_V if not all_finite(V_r) else OK if all_finite(A_r) else BAD_A


def slotine_li_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `slotine_li_batch` for one state (see `Model.sizes`)."""
    return 36 * n + nq + 5 * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def slotine_li_batch(index, constants, memory, q, v, v_r, a_r, passive, tau, first, last):
    """Write tau (N, nv) of states first … last - 1 with reference velocities; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, sizes = tree_views(index, constants), (nq, nv, nv, nv, nv, nv, 6 * n, 12 * n, 6 * n, 6 * n, 6 * n)
    Q, V, V_r, A_r, Tau, buffer, F, T, twist, twist_r, rate, _ = split_workspace(memory, sizes)
    ws, couplings = ReferenceMotion(T, twist, twist_r, rate), coupling_views(index, constants)
    passive = passive and index[4] != 0
    for k in range(first, last, SIMD_WIDTH):
        code = load_reference(tree, (q, v, v_r, a_r), k, Q, V, V_r, A_r)
        code = code or close_motion(couplings, Q, V, A_r) or close_rates(couplings, V_r, 1)
        if code != OK:
            return code
        reference_motions(tree, Q, V, V_r, A_r, ws)
        reference_forces(tree, tree.I, F, Tau, ws)
        add_joint_forces(tree, Q, V, A_r, passive, Tau, buffer)
        fold_forces(couplings, Tau)
        if not store_block(Tau, tau, k):
            return BAD_RESULT
    return OK
