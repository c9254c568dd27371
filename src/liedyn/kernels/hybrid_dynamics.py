"""Hybrid dynamics: each coordinate is acceleration-prescribed or torque-specified. Forward dynamics: no coordinate is prescribed.

Source: K1 (42)-(52), Tables 3-4.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    accumulate_children,
    accumulate_children_inertia,
    eliminate_joint,
    eliminate_joint_bias,
    inertia_to_parent,
    joint_add,
    joint_eta,
    joint_pose,
    propagate_inertia_to_parent,
    propagate_to_parent,
    solve_joint,
    tree_views,
)
from liedyn.kernels.batch_blocks import (
    BAD_A,
    BAD_RESULT,
    BAD_TAU,
    OK,
    SINGULAR,
    SMALLEST_NORMAL,
    all_finite,
    all_finite_where,
    is_below,
    load_block,
    load_state,
    unpack_block,
)
from liedyn.kernels.couplings import (
    close_state,
    coupling_views,
    expand_rates,
    fold_forces,
    fold_matrix,
    load_followers,
    store_follower_forces,
    subtract_follower_forces,
    with_pattern,
)
from liedyn.kernels.force_elements import passive_forces
from liedyn.kernels.kinematics import body_twists, joint_poses, load_wrenches
from liedyn.kernels.mass_matrix import composite_rigid_body, composite_workspace, composite_workspace_size
from liedyn.kernels.newton_euler import newton_euler, newton_euler_workspace, newton_euler_workspace_size, store_ground
from liedyn.lie.inertia import momentum, rigid_to_sym6, symv6
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, neg_dad, sub
from liedyn.lie.simd import SIMD_WIDTH, load, maximum, number_like, store
from liedyn.lie.vectors import load_pose, load_rigid, load_twist, store_pose, store_twist
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace


class HybridWorkspace(NamedTuple):
    """Workspace of the articulated-body recursion."""

    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    AI: np.ndarray       # (21n,) sum of the children's contributions to the articulated inertia
    AB: np.ndarray       # (6n,) sum of the children's contributions to the bias force
    U: np.ndarray        # (6nv,) AI S
    Psi: np.ndarray      # (nv,) (S^T AI S)^-1, or S^T AI S where prescribed
    u: np.ndarray        # (nv,) tau - S^T AB, or S^T AB where prescribed
    passive: np.ndarray  # (nv,)


@jitable
def hybrid_sizes(n, nv):
    """Return the sizes of the arrays of `HybridWorkspace`."""
    return 12 * n, 6 * n, 6 * n, 21 * n, 6 * n, 6 * nv, nv, nv, nv


@inline_kernel
def hybrid_workspace(memory, n, nv):
    """Return the `HybridWorkspace` whose arrays are views into `memory`."""
    return HybridWorkspace(*split_workspace(memory, hybrid_sizes(n, nv))[:-1])


@jitable
def hybrid_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `HybridWorkspace`."""
    return sum(hybrid_sizes(n, nv))


@inline_kernel
def hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, ws):
    """Write tau[k] from a[k] where prescribed[k], else a[k] from tau[k]. f_ext (6n): wrenches on bodies, or empty.

    Returns a positive number if a joint's articulated inertia vanishes; the results are then meaningless.
    """
    deficit = forward_backward_pass(tree, prescribed, q, v, a, tau, f_ext, passive, ws)
    second_forward_pass(tree, prescribed, v, passive, a, tau, ws)
    return deficit


@inline_kernel
def complete_motion(tree, prescribed, q, v, a, tau, f_ext, passive, ws):
    """Run `hybrid` when only V of its workspace is needed afterwards.

    Generated code of robots with short chains uses `mass_matrix_hybrid` instead.
    """
    return hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, ws)


@inline_kernel
def complete_coupled_motion(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, memory):
    """Run `complete_motion` with eliminated couplings. With wrenches, V of `hybrid_workspace(memory)` is written, too.

    couplings   of the robot; None: it has none, and they are not compiled
    prescribed  True for all followers
    memory      of `coupled_motion_workspace_size`
    """
    n, nv = tree.parent.size, prescribed.size
    ws = hybrid_workspace(memory, n, nv)
    if couplings is None:
        deficit = complete_motion(tree, prescribed, q, v, a, tau, f_ext, passive, ws)
    else:
        if f_ext.size:
            joint_poses(tree, q, ws.T)
            body_twists(tree, ws.T, v, ws.V)
        other = mass_matrix_workspace(split_workspace(memory, hybrid_sizes(n, nv))[-1], nv)
        deficit = mass_matrix_hybrid(with_pattern(tree, couplings), couplings, prescribed, q, v, a, tau, f_ext, passive, other)
    return deficit


def coupled_motion_workspace_size(n, nv, couplings):
    """Return the size (numbers) of the memory of `complete_coupled_motion`."""
    return hybrid_workspace_size(n, nv) + (0 if couplings is None else mass_matrix_workspace_size(n, nv))


@inline_kernel
def forward_backward_pass(tree, prescribed, q, v, a, tau, f_ext, passive, ws):
    """Run the first two passes of `hybrid`, which write the workspace except dV of the bodies."""
    store_ground(tree, q, ws.V, ws.dV)
    if passive:
        passive_forces(tree, q, v, ws.passive)
    for i in range(1, tree.parent.size):                                   # forward: parents first
        T = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, load_twist(ws.V, tree.parent[i])), v)           # V = Ad V_p + S dq
        store_pose(ws.T, i, T)
        store_twist(ws.V, i, V)
    deficit = number_like(v, -1.0)
    for i in range(tree.parent.size - 1, 0, -1):                            # backward: children first
        J, T, V = load_rigid(tree.J, i), load_pose(ws.T, i), load_twist(ws.V, i)
        AI = accumulate_children_inertia(tree, i, rigid_to_sym6(J, V[0][0] - V[0][0]), ws.AI)          # AI = J + sum of Ad* Pi Ad
        AB = accumulate_children(tree, i, neg_dad(V, momentum(J, V)), ws.AB)  # AB = -ad*_V J V - F_ext + sum of Ad* beta
        if f_ext.size:
            AB = sub(AB, load_twist(f_ext, i))
        Pi, worse = eliminate_joint(tree, i, AI, prescribed, ws)                   # Pi = AI - AI S Psi S^T AI
        beta = eliminate_joint_bias(tree, i, AB, prescribed, passive, a, tau, ws)         # beta = AB + AI S Psi u + Pi eta
        beta = add(beta, symv6(Pi, joint_eta(tree, i, V, v)))
        propagate_inertia_to_parent(tree, i, inertia_to_parent(tree, i, q, T, Pi), ws.AI)
        propagate_to_parent(tree, i, dAd_inv(T, beta), ws.AB)
        deficit = maximum(deficit, worse)
    return deficit


@inline_kernel
def second_forward_pass(tree, prescribed, v, passive, a, tau, ws):
    """Write a where not prescribed, tau where prescribed, and dV of the bodies."""
    for i in range(1, tree.parent.size):
        dV = add(Ad_inv(load_pose(ws.T, i), load_twist(ws.dV, tree.parent[i])),
                 joint_eta(tree, i, load_twist(ws.V, i), v))
        store_twist(ws.dV, i, solve_joint(tree, i, dV, prescribed, passive, a, tau, ws))


# batches ----------------------------------------------------------------------------------------------------------------
@inline_kernel
def load_input(tree, couplings, prescribed, q, v, a, tau, k, Q, V, A, Tau):
    """Copy inputs to blocks and return their code, as `batch_blocks.load_motion`; a may be empty."""
    code = load_state(tree, q, v, k, Q, V) or close_state(couplings, Q, V)
    if a.size:
        load_block(a, k, A)
    load_block(tau, k, Tau)
    code = code or load_followers(couplings, A, Tau)
    if code == OK and not all_finite_where(A, prescribed, True):
        code = BAD_A
    if code == OK and not all_finite_where(Tau, prescribed, False):
        code = BAD_TAU
    return code


@inline_kernel
def solution_code(deficit, a, tau):
    """Return SINGULAR, BAD_RESULT or OK."""
    if not is_below(deficit, SMALLEST_NORMAL):
        return SINGULAR
    return OK if all_finite(a) and all_finite(tau) else BAD_RESULT


def hybrid_batch_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `hybrid_batch` for one state (see `Model.sizes`)."""
    return hybrid_workspace_size(n, nv) + 6 * n + nq + 3 * nv + 6 * nl


def coupled_batch_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `hybrid_batch` for one state of a robot whose couplings are eliminated."""
    return mass_matrix_workspace_size(n, nv) + 6 * n + nq + 3 * nv + 6 * nl


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, i8, i8)",
             nogil=True)
def hybrid_batch(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, first, last):
    """Complete a and tau (N, nv) in place for states first … last - 1, eight at a time.

    Where couplings are eliminated, `prescribed` is True for all followers, and `coupled_batch_workspace_size` is the size of the
    workspace.
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, (Q, V, A, Tau, links, bodies, m) = tree_views(index,
                                                        constants), split_workspace(memory, (nq, nv, nv, nv, 6 * nl, 6 * n))
    couplings = coupling_views(index, constants)
    nf = couplings.follower.size
    passive = passive and index[4] != 0
    any_prescribed, any_free = prescribed.sum() > nf - couplings.prescribed.sum(), not prescribed.all() or nf > 0
    for k in range(first, last, SIMD_WIDTH):
        bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
        code = load_input(tree, couplings, prescribed, q, v, a, tau, k, Q, V, A, Tau) or bad_f_ext
        if code == OK:
            if nf:
                deficit = mass_matrix_hybrid(with_pattern(tree, couplings), couplings, prescribed, Q, V, A, Tau, F, passive,
                                             mass_matrix_workspace(m, nv))
            else:
                deficit = complete_motion(tree, prescribed, Q, V, A, Tau, F, passive, hybrid_workspace(m, n, nv))
            code = solution_code(deficit, A, Tau)
        if code != OK:
            return code
        if any_free:
            unpack_block(A, a, k)
        if any_prescribed:
            unpack_block(Tau, tau, k)
    return OK


# Factors of the mass matrix ---------------------------------------------------------------------------------------------

# M_vv = L^T D L over the coordinates v that are not prescribed, from the leaves to the root: L_ri is zero unless i is an ancestor
# of r, so there is no fill-in (Featherstone 2008, 6.5). D contains the pivots: the articulated inertias S^T AI S + armature of
# K1 Table 3.

@inline_kernel
def free_ancestor(tree, prescribed, k):
    """Return the nearest coordinate above k that is not prescribed, or -1."""
    j = tree.above[k]
    while j >= 0 and prescribed[j]:
        j = tree.above[j]
    return j


@inline_kernel
def factor_mass_matrix(tree, prescribed, M, L, Psi):
    """Write L below the diagonal of a copy of M (nv nv), by rows, and Psi = D^-1 (nv).

    Returns by how much the worst pivot is below the limit of rounding: a positive number means that an inertia vanishes.
    """
    nv, deficit = prescribed.size, number_like(M, -1.0)
    for k in range(nv * nv):
        store(L, k, load(M, k))
    for r in range(nv - 1, -1, -1):
        if not prescribed[r]:
            d = load(L, r * nv + r)
            deficit = maximum(deficit, load(tree.floor, r) - d)
            store(Psi, r, 1.0 / d)
            i = free_ancestor(tree, prescribed, r)
            while i >= 0:
                x, j = load(L, r * nv + i) * load(Psi, r), i
                while j >= 0:
                    store(L, i * nv + j, load(L, i * nv + j) - x * load(L, r * nv + j))
                    j = free_ancestor(tree, prescribed, j)
                store(L, r * nv + i, x)
                i = free_ancestor(tree, prescribed, i)
    return deficit


@inline_kernel
def solve_factored(tree, prescribed, L, Psi, x):
    """Replace x_v by M_vv^-1 x_v."""
    nv = prescribed.size
    for r in range(nv - 1, -1, -1):                                        # L^T
        i = nv if prescribed[r] else free_ancestor(tree, prescribed, r)
        while 0 <= i < nv:
            store(x, i, load(x, i) - load(L, r * nv + i) * load(x, r))
            i = free_ancestor(tree, prescribed, i)
    for r in range(nv):                                                     # D, L
        if not prescribed[r]:
            y, i = load(x, r) * load(Psi, r), free_ancestor(tree, prescribed, r)
            while i >= 0:
                y = y - load(L, r * nv + i) * load(x, i)
                i = free_ancestor(tree, prescribed, i)
            store(x, r, y)


@inline_kernel
def solve_matrix(tree, prescribed, L, Psi, X, upper):
    """Replace X_v (nv nv, by rows) by -M_vv^-1 X_v. Entries of X are zero unless row and column are on one path to the root.

    upper: X is diagonal, and only entries on and right of the diagonal of the result are needed.
    """
    nv = prescribed.size
    for r in range(nv - 1, -1, -1):                                         # L^T
        i = -1 if prescribed[r] else free_ancestor(tree, prescribed, r)
        while i >= 0:
            l, c = load(L, r * nv + i), tree.last[r]
            while c >= (r if upper else 0):                                 # descendants and ancestors of r
                store(X, i * nv + c, load(X, i * nv + c) - l * load(X, r * nv + c))
                c = c - 1 if c > r else tree.above[c]
            i = free_ancestor(tree, prescribed, i)
    for r in range(nv):                                                     # D, L
        if not prescribed[r]:
            first, end = r if upper else tree.top[r], tree.last[tree.top[r]] + 1
            for c in range(first, end):
                store(X, r * nv + c, -load(Psi, r) * load(X, r * nv + c))
            i = free_ancestor(tree, prescribed, r)
            while i >= 0:
                l = load(L, r * nv + i)
                for c in range(first, end):
                    store(X, r * nv + c, load(X, r * nv + c) - l * load(X, i * nv + c))
                i = free_ancestor(tree, prescribed, i)


# Hybrid dynamics by the mass matrix, for torque-specified coordinates v and prescribed coordinates u --------------------

#     M_vv a_v = (tau - b)_v,    tau_u = b_u + M_uv a_v,    b: inverse dynamics with a_v = 0
#
# Source: K1 (30), (31); Walker and Orin 1982, method 3. The number of operations grows with the square of the length of a chain.
# Up to eight joints it is smaller than that of the articulated-body recursion (`hybrid`), and more operations are independent.
# With couplings, M and b are N^T M N and N^T b (`kernels.couplings`), u contains the followers, and the tree has the paths of
# N^T M N.

class MassMatrixWorkspace(NamedTuple):
    """Workspace of `mass_matrix_hybrid`."""

    M: np.ndarray            # (nv nv,)
    L: np.ndarray            # (nv nv,) factors of M_vv: see `factor_mass_matrix`
    Psi: np.ndarray          # (nv,)
    a: np.ndarray            # (nv,) accelerations
    bias: np.ndarray         # (nv,)
    memory: np.ndarray       # of inverse dynamics and of composite bodies, consecutively


@inline_kernel
def mass_matrix_workspace(memory, nv):
    """Return the `MassMatrixWorkspace` whose arrays are views into `memory`."""
    return MassMatrixWorkspace(*split_workspace(memory, (nv * nv, nv * nv, nv, nv, nv)))


def mass_matrix_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `MassMatrixWorkspace` and of the passes that use it."""
    return 2 * nv * nv + 3 * nv + max(newton_euler_workspace_size(n, nv), composite_workspace_size(n))


@inline_kernel
def mass_matrix_hybrid(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, ws):
    """Compute the results of `hybrid` with the mass matrix."""
    nv = prescribed.size
    deficit = solve_accelerations(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, ws)
    for u in range(nv):
        if prescribed[u]:
            x = load(ws.bias, u)
            for j in range(tree.top[u], tree.last[u] + 1):
                if is_free_on_branch(tree, prescribed, u, j):
                    x = x + load(ws.M, u * nv + j) * load(ws.a, j)
            store(tau, u, x)
        else:
            store(a, u, load(ws.a, u))
    expand_rates(couplings, a)
    return deficit


@inline_kernel
def solve_accelerations(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, ws):
    """Write all accelerations, b, M and the factors of M_vv to the workspace. Returns a positive number if a pivot vanishes."""
    n, nv, zero = tree.parent.size, prescribed.size, number_like(q, 0.0)
    for k in range(nv):
        store(ws.a, k, load(a, k) if prescribed[k] else zero)
    expand_rates(couplings, ws.a)
    newton_euler(tree, tree.J, q, v, ws.a, f_ext, passive, ws.bias, newton_euler_workspace(ws.memory, n, nv))
    subtract_follower_forces(couplings, tau, ws.bias)
    fold_forces(couplings, ws.bias)
    store_follower_forces(couplings, tau, ws.bias)
    composite_rigid_body(tree, q, ws.M, composite_workspace(ws.memory, n))
    fold_matrix(couplings, ws.M, nv)
    deficit = factor_mass_matrix(tree, prescribed, ws.M, ws.L, ws.Psi)
    for k in range(nv):
        if not prescribed[k]:
            store(ws.a, k, load(tau, k) - load(ws.bias, k))
    solve_factored(tree, prescribed, ws.L, ws.Psi, ws.a)
    expand_rates(couplings, ws.a)
    return deficit


@inline_kernel
def is_free_on_branch(tree, prescribed, u, j):
    """Return whether j is not prescribed and u and j are on one path to the root, for j from the top of u to the last below u."""
    return not prescribed[j] and u <= tree.last[j]
