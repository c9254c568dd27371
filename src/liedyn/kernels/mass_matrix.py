"""Mass matrix by composite bodies: M = S^T I_c S along each path to the root (PBP (38), (40); Walker and Orin's recursion)."""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    accumulate_children,
    accumulate_children_inertia,
    eliminate_joint,
    eliminate_joint_bias,
    joint_column,
    joint_pose,
    propagate_inertia_to_parent,
    propagate_to_parent,
    rigid_to_parent,
    solve_joint,
    store_joint_force,
    tree_views,
)
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, SINGULAR, SMALLEST_NORMAL, is_below, load_configuration, store_block
from liedyn.kernels.kinematics import joint_poses
from liedyn.lie.inertia import add_rigid, momentum, rigid_like, rigid_to_sym6, sym6_to_parent
from liedyn.lie.se3 import Ad_inv, dAd_inv, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, maximum, number_like, store
from liedyn.lie.vectors import load_pose, load_rigid, load_twist, store_pose, store_rigid, store_twist
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable, kernel
from liedyn.numba_tools.numba_internals import split_workspace


class CompositeWorkspace(NamedTuple):
    """Poses and composite inertias of the bodies."""

    T: np.ndarray     # (12n,) pose in the parent
    I: np.ndarray     # (10n,) composite inertia: the body and its descendants


@inline_kernel
def composite_workspace(memory, n):
    """Return the `CompositeWorkspace` of n bodies whose arrays are views into `memory`."""
    return CompositeWorkspace(*split_workspace(memory, (12 * n, 10 * n))[:-1])


def composite_workspace_size(n):
    """Return the size (numbers) of the memory of `CompositeWorkspace`."""
    return 22 * n


@inline_kernel
def initialize_composites(tree, q, ws):
    """Write poses, and inertias of the bodies alone."""
    zero = number_like(q, 0.0)
    for i in range(1, tree.parent.size):
        store_pose(ws.T, i, joint_pose(tree, i, q))
        store_rigid(ws.I, i, rigid_like(load_rigid(tree.J, i), zero))


@inline_kernel
def propagate_composite_to_parent(tree, i, q, ws):
    """Add the composite inertia of body i to that of its parent."""
    p = tree.parent[i]
    if p > 0:
        I = rigid_to_parent(tree, i, q, load_pose(ws.T, i), load_rigid(ws.I, i))
        store_rigid(ws.I, p, add_rigid(load_rigid(ws.I, p), I))


@kernel
def composite_rigid_body(tree, q, M, ws):
    """Write M (nv nv, by rows), with the armature on its diagonal."""
    nv, zero = tree.armature.shape[0], number_like(q, 0.0)
    for k in range(nv * nv):
        store(M, k, zero)
    initialize_composites(tree, q, ws)
    for i in range(tree.parent.size - 1, 0, -1):
        I = load_rigid(ws.I, i)
        propagate_composite_to_parent(tree, i, q, ws)
        for c in range(NV[tree.kind[i]]):
            k = tree.iv[i] + c
            F = momentum(I, joint_column(tree, i, c, zero))        # column k as a wrench in i …
            row = M[k * nv:(k + 1) * nv]
            store_joint_force(tree, i, F, row)
            j = i
            while tree.parent[j] > 0:                              # … and in each ancestor
                F = dAd_inv(load_pose(ws.T, j), F)
                j = tree.parent[j]
                store_joint_force(tree, j, F, row)
            for above in range(tree.iv[i]):
                store(M, above * nv + k, load(row, above))
    for k in range(nv):
        store(M, k * nv + k, load(M, k * nv + k) + load(tree.armature, k))


# batches ----------------------------------------------------------------------------------------------------------------
def mass_matrices_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `mass_matrices` for one state (see `Model.sizes`)."""
    return composite_workspace_size(n) + nq + nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def mass_matrices(index, constants, memory, q, M, first, last):
    """Write M (N, nv nv) of states first … last - 1; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, block, m) = tree_views(index, constants), split_workspace(memory, (nq, nv * nv))
    ws = composite_workspace(m, n)
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, k, Q)
        if code != OK:
            return code
        composite_rigid_body(tree, Q, block, ws)
        if not store_block(block, M, k):
            return BAD_RESULT
    return OK


# inverse mass -----------------------------------------------------------------------------------------------------------

# M^-1 and its columns, O(n) each: articulated inertias are factored once (K1 Table 3 without velocity), then one sweep for each
# unit generalized force. With a mask of prescribed coordinates: M_vv^-1 of the others.

class FactorWorkspace(NamedTuple):
    """Factors, which depend on q. They may be float64 while sweeps run on SIMD numbers (eight columns of one state)."""

    T: np.ndarray     # (12n,) pose in the parent
    AI: np.ndarray    # (21n,) sum of the children's contributions to the articulated inertia
    U: np.ndarray     # (6nv,)
    Psi: np.ndarray   # (nv,)


class SweepWorkspace(NamedTuple):
    """Workspace of one sweep."""

    U: np.ndarray        # (6nv,) of `FactorWorkspace`
    Psi: np.ndarray      # (nv,)
    b: np.ndarray        # (6n,) sum of the children's contributions to the bias force
    u: np.ndarray        # (nv,)
    dV: np.ndarray       # (6n,)
    passive: np.ndarray  # (0,) none


@jitable
def factor_sizes(n, nv):
    """Return the sizes of the arrays of `FactorWorkspace`."""
    return 12 * n, 21 * n, 6 * nv, nv


@inline_kernel
def factor_workspace(memory, n, nv):
    """Return the `FactorWorkspace` whose arrays are views into `memory`."""
    return FactorWorkspace(*split_workspace(memory, factor_sizes(n, nv))[:-1])


@jitable
def factor_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `FactorWorkspace`."""
    return sum(factor_sizes(n, nv))


@inline_kernel
def sweep_workspace(factors, memory, n, nv):
    """Return the `SweepWorkspace` with U and Psi of `factors` and views into `memory`."""
    return SweepWorkspace(factors.U, factors.Psi, *split_workspace(memory, (6 * n, nv, 6 * n))[:-1], memory[:0])


def sweep_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `SweepWorkspace`."""
    return 12 * n + nv


@kernel
def factor_articulated(tree, prescribed, q, ws):
    """Write the factors. Returns a positive number if a joint's articulated inertia vanishes."""
    n, zero = tree.parent.size, number_like(q, 0.0)
    deficit = zero - 1.0
    joint_poses(tree, q, ws.T)
    for i in range(n - 1, 0, -1):
        AI = accumulate_children_inertia(tree, i, rigid_to_sym6(load_rigid(tree.J, i), zero), ws.AI)
        Pi, worse = eliminate_joint(tree, i, AI, prescribed, ws)
        propagate_inertia_to_parent(tree, i, sym6_to_parent(load_pose(ws.T, i), Pi), ws.AI)
        deficit = maximum(deficit, worse)
    return deficit


@kernel
def solve_articulated(tree, prescribed, T, a, tau, ws):
    """Write a = M^-1 tau from the factors (T and ws.U, ws.Psi). Prescribed coordinates: a is read and tau written."""
    n, zero = tree.parent.size, number_like(tau, 0.0)
    rest = zero6(zero)
    for i in range(n - 1, 0, -1):
        b = eliminate_joint_bias(tree, i, accumulate_children(tree, i, rest, ws.b), prescribed, False, a, tau, ws)
        propagate_to_parent(tree, i, dAd_inv(load_pose(T, i), b), ws.b)
    forward_sweep(tree, prescribed, T, a, tau, ws)


@inline_kernel
def forward_sweep(tree, prescribed, T, a, tau, ws):
    """Write a from ws.u: the second half of `solve_articulated`."""
    store_twist(ws.dV, 0, zero6(number_like(ws.u, 0.0)))
    for i in range(1, tree.parent.size):
        dV = Ad_inv(load_pose(T, i), load_twist(ws.dV, tree.parent[i]))
        store_twist(ws.dV, i, solve_joint(tree, i, dV, prescribed, False, a, tau, ws))


# batches ----------------------------------------------------------------------------------------------------------------
def inverse_masses_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `inverse_masses` for one state (see `Model.sizes`)."""
    return factor_workspace_size(n, nv) + sweep_workspace_size(n, nv) + nq + 2 * nv + nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def inverse_masses(index, constants, memory, no_prescribed_mask, q, out, first, last):
    """Write M^-1 (N, nv nv) of states first … last - 1."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, block, room, m) = tree_views(index, constants), split_workspace(memory, (nq, nv * nv, factor_workspace_size(n, nv)))
    factors = factor_workspace(room, n, nv)
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, k, Q)
        if code != OK:
            return code
        if not is_below(factor_articulated(tree, no_prescribed_mask, Q, factors), SMALLEST_NORMAL):
            return SINGULAR
        inverse_columns(tree, no_prescribed_mask, factors, m, block, n, nv)
        if not store_block(block, out, k):
            return BAD_RESULT
    return OK


@kernel
def inverse_columns(tree, no_prescribed_mask, factors, memory, block, n, nv):
    """Write M^-1 from its factors, column by column."""
    tau, a, m = split_workspace(memory, (nv, nv))
    ws = sweep_workspace(factors, m, n, nv)
    for c in range(nv):
        for k in range(nv):
            store(tau, k, number_like(tau, 1.0 if k == c else 0.0))
        solve_articulated(tree, no_prescribed_mask, factors.T, a, tau, ws)
        for k in range(c + 1):                                  # symmetric: generated code drops the unused entries
            store(block, k * nv + c, load(a, k))
            store(block, c * nv + k, load(a, k))
