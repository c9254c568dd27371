"""Equations of constrained motion, and their derivatives with respect to q, v and a:

    R1 = M a + b - A^T lambda,     R2 = A a + gamma

Derivatives of M a + b are those of inverse dynamics, derivatives of closures are below; those with respect to a are M and A.
`dynamics.constraints.constrained_derivatives` solves for da and dlambda.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import tree_views
from liedyn.joints.loop_joints import (
    BODY_A,
    BODY_B,
    COMMON,
    CONSTRAINT_MOTION_SIZE,
    DRIVEN,
    EQUATION_COUNT,
    FIRST,
    KIND,
    TERM,
    TERM_COUNT,
    closure_direction_curvature,
    closure_direction_rate,
    closure_equation,
    constraint_views,
    equation_rate,
    frame_count,
)
from liedyn.kernels.batch_blocks import BAD_F_EXT, BAD_RESULT, OK, all_finite, load_block, load_motion, store_block
from liedyn.kernels.constraints.equations import (
    FrameWorkspace,
    accelerations,
    constraint_frames,
    coupling_driver,
    frame_workspace,
    frame_workspace_size,
    leg_end,
    load_closure_direction,
    store_constraint_jacobian,
    store_loop_columns,
    term_coefficient,
    velocities,
)
from liedyn.kernels.force_elements import subtract_element_derivatives
from liedyn.kernels.inverse_dynamics_derivatives import (
    DerivativesWorkspace,
    derivatives_workspace,
    derivatives_workspace_size,
    inverse_derivatives,
)
from liedyn.kernels.kinematics import body_twists, joint_poses, load_wrenches
from liedyn.kernels.newton_euler import NewtonEulerWorkspace, newton_euler
from liedyn.lie.se3 import Ad_inv, ad, add, dAd_inv, dot, neg, neg_dad, scale, sub, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.vectors import add3, add_to_twist, load_pose, load_twist, store_twist
from liedyn.model.description import BALL_CLOSURE, COUPLING, NONLINEAR_COUPLING, NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, jitable
from liedyn.numba_tools.deferred_kernels import call_deferred
from liedyn.numba_tools.numba_internals import split_workspace

# Derivatives of the equations of a closure ------------------------------------------------------------------------------

# In frame B, a loop is a chain of joints from B to A. Let s_k be the screw of coordinate k in B, negative on A's side, and let
# l > k mean that l is beyond the joint of k on the way to A. A joint moves the screws beyond it: ds_l/dq_k = -ad_{s_k} s_l
# for l > k. The twist of B relative to A and its rate are
#
#     V  = sum_l s_l v_l                              P_l = sum of s_k v_k over k < l
#     dV = sum_l c_l,   c_l = s_l a_l - ad_{P_l} s_l v_l
#
# (a driven frame A is a last joint, with the screw V_d and velocity -1), and with the sums beyond k, Z_k of s_l v_l, Y_k of c_l,
#
#     dV/dq_k = -ad_{s_k} Z_k       d(dV)/dq_k = -ad_{s_k} Y_k - ad_{ad_{s_k} (V - Z_k)} Z_k
#     dV/dv_k = s_k                 d(dV)/dv_k = ad_{s_k} (P_k - Z_k)                              d(dV)/da_k = s_k

class LoopWorkspace(NamedTuple):
    """Sums for one loop, in frame B: over the joint of a body, or over the joints before or beyond it."""

    s: np.ndarray     # (6nv,) screws
    U: np.ndarray     # (6n,) s v of the joint
    P: np.ndarray     # (6n,) the same of those before
    Z: np.ndarray     # (6n,) and beyond
    C: np.ndarray     # (6n,) c of the joint
    Y: np.ndarray     # (6n,) and of those beyond


@inline_kernel
def loop_workspace(memory, n, nv):
    """Return the `LoopWorkspace` whose arrays are views into `memory`."""
    return LoopWorkspace(*split_workspace(memory, (6 * nv, 6 * n, 6 * n, 6 * n, 6 * n, 6 * n))[:-1])


@jitable
def loop_workspace_size(n, nv):
    """Return the size (numbers) of the memory of `LoopWorkspace`."""
    return 30 * n + 6 * nv


# sums over a loop -------------------------------------------------------------------------------------------------
@inline_kernel
def joint_sums(tree, loops, c, s, x, U):
    """Write U of each body: the sum of s_k x_k over its joint."""
    zero = number_like(s, 0.0)
    for leg in range(2):
        i = leg_end(loops, c, leg)
        while i != loops.record[c, COMMON]:
            W = zero6(zero)
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                W = add(W, scale(load(x, k), load_twist(s, k)))
            store_twist(U, i, W)
            i = tree.parent[i]


@inline_kernel
def sums_beyond(tree, loops, c, U, end, P, Z):
    """Write P and Z of each body: sums of U over the joints before and beyond its joint, Z with `end`. Return the sum over all.

    Screws are constant in the frame behind their joint, also on A's side: there a joint is both before and beyond itself.
    """
    common, total, i = loops.record[c, COMMON], end, loops.record[c, BODY_A]
    while i != common:
        total = add(total, load_twist(U, i))
        store_twist(Z, i, total)
        i = tree.parent[i]
    i = loops.record[c, BODY_B]
    while i != common:
        total = add(total, load_twist(U, i))
        i = tree.parent[i]
    beyond, i = total, loops.record[c, BODY_B]
    while i != common:
        store_twist(P, i, sub(total, beyond))
        beyond = sub(beyond, load_twist(U, i))
        store_twist(Z, i, beyond)
        i = tree.parent[i]
    i = loops.record[c, BODY_A]
    while i != common:
        store_twist(P, i, add(sub(total, load_twist(Z, i)), load_twist(U, i)))
        i = tree.parent[i]
    return total


@inline_kernel
def driven_frame_motion(loops, c, T, constraint_motion):
    """Return the twist of a driven frame A and its rate, in B."""
    d, zero = loops.record[c, DRIVEN], T[1][0] - T[1][0]
    if d < 0:
        return zero6(zero), zero6(zero)
    return Ad_inv(T, load_twist(constraint_motion, 4 * d + 2)), Ad_inv(T, load_twist(constraint_motion, 4 * d + 3))


# a closure --------------------------------------------------------------------------------------------------------
@inline_kernel
def closure_derivatives(tree, loops, c, v, a, constraint_motion, rows, ws, Rq, Rv):
    """Write the rows of a closure in Rq and Rv (m nv): derivatives of F . dV + dF . V with respect to q and v.

    ws.s: of `store_loop_columns`.
    """
    nv, kind, first = tree.above.size, loops.record[c, KIND], loops.record[c, FIRST]
    T_ab, g, extent, sphere = load_pose(rows.T,
                                        c), load_closure_direction(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    V_d, dV_d = driven_frame_motion(loops, c, T_ab, constraint_motion)
    joint_sums(tree, loops, c, ws.s, v, ws.U)
    V = sums_beyond(tree, loops, c, ws.U, neg(V_d), ws.P, ws.Z)
    joint_sums(tree, loops, c, ws.s, a, ws.C)
    for leg in range(2):
        i = leg_end(loops, c, leg)
        while i != loops.record[c, COMMON]:
            store_twist(ws.C, i, sub(load_twist(ws.C, i), ad(load_twist(ws.P, i), load_twist(ws.U, i))))
            i = tree.parent[i]
    dV = sums_beyond(tree, loops, c, ws.C, sub(ad(V, V_d), dV_d), ws.U, ws.Y)
    dg = closure_direction_rate(kind, T_ab, V, g, extent, sphere)
    for leg in range(2):
        i = leg_end(loops, c, leg)
        while i != loops.record[c, COMMON]:
            P, Z, Y = load_twist(ws.P, i), load_twist(ws.Z, i), load_twist(ws.Y, i)
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                s = load_twist(ws.s, k)
                V_q, dV_v = neg(ad(s, Z)), ad(s, sub(P, Z))
                dV_q = neg(add(ad(s, Y), ad(ad(s, sub(V, Z)), Z)))
                g_q = closure_direction_rate(kind, T_ab, s, g, extent, sphere)
                dg_q = add3(closure_direction_rate(kind, T_ab, V_q, g, extent, sphere),
                            closure_direction_curvature(kind, T_ab, V, s, extent, sphere))
                for r in range(loops.record[c, EQUATION_COUNT]):
                    F, dF, o = closure_equation(kind, r, g), equation_rate(kind, r, dg), (first + r) * nv + k
                    F_q, dF_q = equation_rate(kind, r, g_q), equation_rate(kind, r, dg_q)
                    store(Rq, o, dot(F, dV_q) + dot(F_q, dV) + dot(dF, V_q) + dot(dF_q, V))
                    store(Rv, o, dot(F, dV_v) + dot(F_q, V) + dot(dF, s))
            i = tree.parent[i]


@inline_kernel
def force_derivatives(tree, loops, c, multipliers, rows, s, Dq):
    """Subtract the derivatives d(s_l . W)/dq_k of A^T lambda from Dq (nv nv).

    Joint k turns the screws beyond it; it changes W through the direction of the closure. s: of `store_loop_columns`.
    """
    kind, first, common = loops.record[c, KIND], loops.record[c, FIRST], loops.record[c, COMMON]
    T_ab, g, extent, sphere = load_pose(rows.T,
                                        c), load_closure_direction(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    a, b, zero = loops.record[c, BODY_A], loops.record[c, BODY_B], number_like(s, 0.0)
    rest = zero6(zero)
    W = rest
    for r in range(loops.record[c, EQUATION_COUNT]):
        W = add(W, scale(load(multipliers, first + r), closure_equation(kind, r, g)))
    for leg in range(2):
        i = leg_end(loops, c, leg)
        while i != common:
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                turned, W_q = neg_dad(load_twist(s, k), W), rest
                subtract_multiplier_wrenches(tree, tree.parent[i] if leg == 0 else a, common if leg == 0 else tree.parent[i], k,
                                             turned, s, Dq)
                if leg == 0:
                    subtract_multiplier_wrenches(tree, a, common, k, turned, s, Dq)
                if kind > BALL_CLOSURE:
                    g_q = closure_direction_rate(kind, T_ab, load_twist(s, k), g, extent, sphere)
                    for r in range(loops.record[c, EQUATION_COUNT]):
                        W_q = add(W_q, scale(load(multipliers, first + r), equation_rate(kind, r, g_q)))
                    subtract_multiplier_wrenches(tree, b, common, k, W_q, s, Dq)
                    subtract_multiplier_wrenches(tree, a, common, k, W_q, s, Dq)
            i = tree.parent[i]


@inline_kernel
def subtract_multiplier_wrenches(tree, j, end, k, F, s, Dq):
    """Subtract s_l . F from column k of Dq, for the coordinates l from body j to before the body `end`."""
    nv = tree.above.size
    while j != end:
        for l in range(tree.iv[j], tree.iv[j] + NV[tree.kind[j]]):
            store(Dq, l * nv + k, load(Dq, l * nv + k) - dot(F, load_twist(s, l)))
        j = tree.parent[j]


@inline_kernel
def velocity_derivatives(tree, loops, c, x, constraint_motion, rows, ws, Xq):
    """Write the rows of a closure in Xq (m nv): derivatives of F . V with respect to q, V the twist at velocities x.

    ws.s: of `store_loop_columns`.
    """
    nv, kind, first = tree.above.size, loops.record[c, KIND], loops.record[c, FIRST]
    T_ab, g, extent, sphere = load_pose(rows.T,
                                        c), load_closure_direction(rows, c), load(loops.extent, 2 * c), loops.extent[2 * c + 1]
    joint_sums(tree, loops, c, ws.s, x, ws.U)
    V = sums_beyond(tree, loops, c, ws.U, neg(driven_frame_motion(loops, c, T_ab, constraint_motion)[0]), ws.P, ws.Z)
    for leg in range(2):
        i = leg_end(loops, c, leg)
        while i != loops.record[c, COMMON]:
            for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                s = load_twist(ws.s, k)
                V_q, g_q = neg(ad(s, load_twist(ws.Z, i))), closure_direction_rate(kind, T_ab, s, g, extent, sphere)
                for r in range(loops.record[c, EQUATION_COUNT]):
                    store(Xq, (first + r) * nv + k, dot(closure_equation(kind, r, g), V_q) + dot(equation_rate(kind, r, g_q), V))
            i = tree.parent[i]


# a nonlinear coupling ---------------------------------------------------------------------------------------------
@inline_kernel
def coupling_derivatives(loops, c, v, a, multipliers, x, frames, rates):
    """Write the derivatives of q_f = f(q_d): of a_f - f' a_d - f'' v_d^2, of A^T lambda, and of A x, all with respect to d."""
    nv, first, d = v.shape[0], loops.record[c, FIRST], coupling_driver(loops, c)
    ddf, dddf, v_d = load(frames.T, 12 * c + 2), load(frames.T, 12 * c + 3), load(v, d)
    store(rates.Rq, first * nv + d, -(ddf * load(a, d) + dddf * v_d * v_d))
    store(rates.Rv, first * nv + d, -2.0 * ddf * v_d)
    store(rates.Dq, d * nv + d, load(rates.Dq, d * nv + d) + ddf * load(multipliers, first))
    if x.shape[0]:
        store(rates.Xq, first * nv + d, -ddf * load(x, d))


# constrained derivatives ------------------------------------------------------------------------------------------------

class BalanceWorkspace(NamedTuple):
    """Workspace of `balance_residuals`."""

    tree: NewtonEulerWorkspace
    rows: FrameWorkspace
    F: np.ndarray         # (6n,) wrenches on bodies


@inline_kernel
def balance_residuals(tree, loops, q, v, a, multipliers, f_ext, constraint_motion, passive, force, rate, ws):
    """Write force (nv) = M a + b - passive forces - J^T f_ext - A^T lambda and rate (m) = A a + gamma.

    f_ext: 6n wrenches on bodies, or empty.
    """
    joint_poses(tree, q, ws.tree.T)
    constraint_frames(tree, loops, q, ws.tree.T, constraint_motion, ws.rows)
    gather_wrenches(tree, loops, multipliers, f_ext, ws.F, ws.rows)
    newton_euler(tree, tree.J, q, v, a, ws.F, passive, force, ws.tree)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] >= COUPLING:
            for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERM_COUNT]):
                k = loops.term_v[t]
                coefficient = term_coefficient(loops, c, t, ws.rows)
                store(force, k, load(force, k) - coefficient * load(multipliers, loops.record[c, FIRST]))
    accelerations(loops, v, a, ws.tree.V, ws.tree.dV, constraint_motion, ws.rows, rate)


@inline_kernel
def gather_wrenches(tree, loops, multipliers, f_ext, F, rows):
    """Write F (6n): external wrenches plus those of the multipliers, on bodies."""
    rest = zero6(number_like(F, 0.0))
    for i in range(tree.parent.size):
        store_twist(F, i, add(rest, load_twist(f_ext, i)) if f_ext.size else rest)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] >= COUPLING:
            continue
        W, g = rest, load_closure_direction(rows, c)
        for r in range(loops.record[c, EQUATION_COUNT]):
            W = add(W, scale(load(multipliers, loops.record[c, FIRST] + r), closure_equation(loops.record[c, KIND], r, g)))
        a, b = loops.record[c, BODY_A], loops.record[c, BODY_B]
        if b > 0:
            add_to_twist(F, b, dAd_inv(load_pose(loops.pose, 2 * c + 1), W))
        if a > 0:
            add_to_twist(F, a, neg(dAd_inv(load_pose(rows.T_a, c), W)))


@inline_kernel
def equation_velocities(tree, loops, x, constraint_motion, out, ws):
    """Write out (m) = A x minus the velocity of driven closures, at the configuration of the last `balance_residuals`."""
    body_twists(tree, ws.tree.T, x, ws.tree.V)
    velocities(loops, x, ws.tree.V, constraint_motion, ws.rows, out)


class BalanceDerivatives(NamedTuple):
    """Derivatives (nv nv) of R1 with respect to q, v and a, (m nv) of R2, and of A x with respect to q, row by row."""

    Dq: np.ndarray
    Dv: np.ndarray
    M: np.ndarray
    Rq: np.ndarray
    Rv: np.ndarray
    A: np.ndarray
    Xq: np.ndarray


@jitable
def balance_derivatives_sizes(nv, m):
    """Return the sizes of the arrays of `BalanceDerivatives` for nv coordinates and m constraint equations."""
    return nv * nv, nv * nv, nv * nv, m * nv, m * nv, m * nv, m * nv


@inline_kernel
def balance_derivatives_views(x, nv, m):
    """Return the `BalanceDerivatives` whose arrays are views into x."""
    return BalanceDerivatives(*split_workspace(x, balance_derivatives_sizes(nv, m))[:-1])


def balance_derivatives_size(nv, m):
    """Return the size (numbers) of all arrays of `BalanceDerivatives`."""
    return sum(balance_derivatives_sizes(nv, m))


class BalanceDerivativesWorkspace(NamedTuple):
    """Workspace of `balance_derivatives`."""

    tree: DerivativesWorkspace
    rows: FrameWorkspace
    loop: LoopWorkspace


@inline_kernel
def balance_derivatives_workspace(memory, n, nv, nf):
    """Return the `BalanceDerivativesWorkspace` for nf frames whose arrays are views into `memory`."""
    tree, rows, loop, _ = split_workspace(memory, (derivatives_workspace_size(n, nv), frame_workspace_size(nf),
                                                   loop_workspace_size(n, nv)))
    return BalanceDerivativesWorkspace(derivatives_workspace(tree, n, nv), frame_workspace(rows, nf), loop_workspace(loop, n, nv))


def balance_derivatives_workspace_size(n, nv, nf):
    """Return the size (numbers) of the memory of `BalanceDerivativesWorkspace`."""
    return derivatives_workspace_size(n, nv) + frame_workspace_size(nf) + loop_workspace_size(n, nv)


@inline_kernel
def balance_derivatives(tree, loops, q, v, a, multipliers, x, f_ext, constraint_motion, passive, rates, ws):
    """Write the derivatives at multipliers (m), and those of A x if x (nv) is not empty.

    f_ext: 6n wrenches on bodies, or empty.
    """
    zero = number_like(q, 0.0)
    inverse_derivatives(tree, q, v, a, f_ext, passive, rates.Dq, rates.Dv, rates.M, ws.tree)
    constraint_frames(tree, loops, q, ws.tree.T, constraint_motion, ws.rows)
    for k in range(rates.A.shape[0]):
        store(rates.Rq, k, zero)
        store(rates.Rv, k, zero)
        store(rates.Xq, k, zero)
    store_constraint_jacobian(tree, loops, ws.tree.T, ws.rows, ws.loop.s, rates.A)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == NONLINEAR_COUPLING:
            coupling_derivatives(loops, c, v, a, multipliers, x, ws.rows, rates)
        elif loops.record[c, KIND] != COUPLING:
            store_loop_columns(tree, loops, c, ws.tree.T, ws.rows.T_a, ws.loop.s)
            closure_derivatives(tree, loops, c, v, a, constraint_motion, ws.rows, ws.loop, rates.Rq, rates.Rv)
            force_derivatives(tree, loops, c, multipliers, ws.rows, ws.loop.s, rates.Dq)
            if x.shape[0]:
                velocity_derivatives(tree, loops, c, x, constraint_motion, ws.rows, ws.loop, rates.Xq)
    if passive and tree.element.size:
        call_deferred(subtract_element_derivatives, (tree, q, v, rates.Dq, rates.Dv, ws.tree.psi))


# batches ----------------------------------------------------------------------------------------------------------------
def balance_batch_workspace_size(n, nq, nv, nl, nf, m, driven):
    """Return the size (numbers) of the workspace of `balance_derivatives_batch` for one state.

    n, nq, nv, nl: `Model.sizes`; nf: `loop_joints.frame_count`; m equations, `driven` driven closures.
    """
    return (balance_derivatives_workspace_size(n, nv, nf) + balance_derivatives_size(nv, m)
            + nq + 3 * nv + m + 6 * nl + 6 * n + CONSTRAINT_MOTION_SIZE * driven)


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
             "f8[:,::1], "
             "f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def balance_derivatives_batch(index, constants, memory, loop_index, loop_constants, q, v, a, multipliers, x, f_ext,
                              constraint_motion, passive, out, first, last):
    """Write derivatives for states first … last - 1.

    x                  (N, nv) or empty
    f_ext              (N, 6 n_links) in link frames, or empty
    constraint_motion  (N, 24 driven)
    out                (N, 3 nv nv + 4 m nv): `BalanceDerivatives`
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    m, driven = loop_index[1], loop_index[3]
    size = sum(balance_derivatives_sizes(nv, m))
    tree, loops = tree_views(index, constants), constraint_views(loop_index, loop_constants)
    Q, V, A, X, mu, D, links, bodies, Out, y = split_workspace(
        memory, (nq, nv, nv, x.shape[1], m, CONSTRAINT_MOTION_SIZE * driven, 6 * nl, 6 * n, size))
    ws, rates = balance_derivatives_workspace(y, n, nv, frame_count(loop_index)), balance_derivatives_views(Out, nv, m)
    for k in range(first, last, SIMD_WIDTH):
        code = load_motion(tree, q, v, a, k, Q, V, A)
        load_block(multipliers, k, mu)
        if x.shape[1]:
            load_block(x, k, X)
        if driven:
            load_block(constraint_motion, k, D)
            code = code if code != OK or all_finite(D) else BAD_F_EXT
        bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
        code = code or bad_f_ext
        if code != OK:
            return code
        balance_derivatives(tree, loops, Q, V, A, mu, X, F, D, passive and index[4] != 0, rates, ws)
        if not store_block(Out, out, k):
            return BAD_RESULT
    return OK
