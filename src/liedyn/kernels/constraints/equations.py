"""Constraint equations of a state: frames of the closures, equations as wrenches on bodies, and their sweep through the tree."""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_column, joint_eta, screw
from liedyn.joints.loop_joints import (
    BODY_A,
    BODY_B,
    CHAIN,
    CHAIN_LENGTH,
    COMMON,
    DRIVEN,
    EQUATION_COUNT,
    FIRST,
    KIND,
    TERM,
    TERM_COUNT,
    closure_direction,
    closure_direction_rate,
    closure_equation,
    equation_rate,
    equation_residual,
    height_equation,
    loop_closure_error,
    pose_like,
)
from liedyn.kernels.constraints.coupling_functions import store_coupling_function
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dAd_inv, dot, inverse, neg, scale, screw_dot, sub, zero6
from liedyn.lie.simd import load, maximum, number_like, store
from liedyn.lie.vectors import add_to_twist, dot3, load3, load_pose, load_twist, store3, store_pose, store_twist
from liedyn.model.description import COUPLING, NONLINEAR_COUPLING, NV, ONE_DOF, ROLLING
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace


class FrameWorkspace(NamedTuple):
    """Frames that `constraint_frames` writes: one for each of nc constraints, then registers of coupling functions."""

    T: np.ndarray       # (12nf,) pose of frame B in frame A; of a nonlinear coupling f and its derivatives; then registers
    T_a: np.ndarray     # (12nf,) pose of frame B in the body of A
    g: np.ndarray       # (3nf,) directions of closures that have one


@inline_kernel
def frame_workspace(memory, nf):
    """Return the `FrameWorkspace` for nf frames (`loop_joints.frame_count`) whose arrays are views into `memory`."""
    return FrameWorkspace(*split_workspace(memory, (12 * nf, 12 * nf, 3 * nf))[:-1])


@jitable
def frame_workspace_size(nf):
    """Return the size (numbers) of the memory of `FrameWorkspace`."""
    return 27 * nf


class EquationWorkspace(NamedTuple):
    """Frames of the closures, and the sweep of the equations through the tree."""

    T: np.ndarray       # (12nf,) as in `FrameWorkspace`
    T_a: np.ndarray     # (12nf,)
    g: np.ndarray       # (3nf,)
    W: np.ndarray       # (6n,) wrenches of a coupling's equation on bodies
    X: np.ndarray       # (m nv,) L^-T A^T (see below), for coordinates on the chains of a constraint only
    size: np.ndarray    # (m,) diagonal of A M^-1 A^T if nothing cancelled
    rate: np.ndarray    # (m,) A a of the open tree, and the part of gamma that the joints contribute


class EquationMotion(NamedTuple):
    """Motion of the open tree, from which `sweep_constraints` computes `EquationWorkspace.rate`."""

    v: np.ndarray       # (nv,)
    a: np.ndarray       # (nv,) where prescribed
    u: np.ndarray       # (nv,) as in `HybridWorkspace`, where not
    V: np.ndarray       # (6n,) twists
    dV: np.ndarray      # (6,) acceleration of the ground


@jitable
def equation_sizes(n, nv, nf, m):
    """Return the sizes of the arrays of `EquationWorkspace` for nf frames and m equations."""
    return 12 * nf, 12 * nf, 3 * nf, 6 * n, m * nv, m, m


@inline_kernel
def equation_workspace(memory, n, nv, nf, m):
    """Return the `EquationWorkspace` whose arrays are views into `memory`."""
    return EquationWorkspace(*split_workspace(memory, equation_sizes(n, nv, nf, m))[:-1])


@jitable
def equation_workspace_size(n, nv, nf, m):
    """Return the size (numbers) of the memory of `EquationWorkspace`."""
    return sum(equation_sizes(n, nv, nf, m))


# frames -----------------------------------------------------------------------------------------------------------
@inline_kernel
def pose_in_ancestor(tree, T, body, frame, common):
    """Return the pose of a frame of `body` in the body `common`, an ancestor. T (12n): poses in parents."""
    i = body
    while i != common:
        frame = compose(load_pose(T, i), frame)
        i = tree.parent[i]
    return frame


@inline_kernel
def constraint_frames(tree, loops, q, T, constraint_motion, ws):
    """Write ws.T, ws.T_a and ws.g: frames of closures, and functions of nonlinear couplings.

    T (12n): poses in parents at q; constraint_motion (24 per driven closure): the motions of their frames A.
    """
    zero = number_like(T, 0.0)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == NONLINEAR_COUPLING:
            store_coupling_function(loops, c, q, ws.T)
        elif loops.record[c, KIND] != COUPLING:
            a, b, common = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, COMMON]
            in_body, d = pose_like(load_pose(loops.pose, 2 * c), zero), loops.record[c, DRIVEN]
            T_a = pose_in_ancestor(tree, T, a, in_body, common)
            T_b = pose_in_ancestor(tree, T, b, pose_like(load_pose(loops.pose, 2 * c + 1), zero), common)
            if d >= 0:
                T_a, in_body = compose(T_a,
                                       load_pose(constraint_motion, 2 * d)), compose(in_body, load_pose(constraint_motion, 2 * d))
            T_ab = compose(inverse(T_a), T_b)
            store_pose(ws.T, c, T_ab)
            store_pose(ws.T_a, c, compose(in_body, T_ab))
            g = closure_direction(loops.record[c, KIND], T_ab, load(loops.extent, 2 * c), loops.extent[2 * c + 1])
            store3(ws.g, 3 * c, g)


@inline_kernel
def load_closure_direction(ws, c):
    """Return the direction g of closure c."""
    return load3(ws.g, 3 * c)


@inline_kernel
def closure_motion(loops, c, V, constraint_motion, ws):
    """Return the twist of B relative to A, in B, and its rate without accelerations of bodies. V (6n): twists of bodies."""
    a, b, d = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, DRIVEN]
    V_a = Ad_inv(load_pose(ws.T_a, c), load_twist(V, a))
    V_b = Ad_inv(load_pose(loops.pose, 2 * c + 1), load_twist(V, b))
    if d >= 0:
        T_ab = load_pose(ws.T, c)
        V_d = Ad_inv(T_ab, load_twist(constraint_motion, 4 * d + 2))
        V_a = add(V_a, V_d)
        rel = sub(V_b, V_a)
        return rel, sub(ad(rel, V_a), add(ad(V_a, V_d), Ad_inv(T_ab, load_twist(constraint_motion, 4 * d + 3))))
    rel = sub(V_b, V_a)
    return rel, ad(rel, V_a)


@inline_kernel
def relative_body_acceleration(loops, c, dV, ws):
    """Return the part of that rate that the accelerations dV (6n) of bodies cause."""
    dV_a = Ad_inv(load_pose(ws.T_a, c), load_twist(dV, loops.record[c, BODY_A]))
    return sub(Ad_inv(load_pose(loops.pose, 2 * c + 1), load_twist(dV, loops.record[c, BODY_B])), dV_a)


# residuals and their rates ------------------------------------------------------------------------------------------
@inline_kernel
def residuals(loops, q, ws, out):
    """Write the residual (m,) of each equation, after `constraint_frames`."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind == COUPLING:
            store(out, first, coupling_sum(loops, c, q, loops.term_q, ws) - load(loops.extent, 2 * c))
        elif kind == NONLINEAR_COUPLING:
            store(out, first, load(q, loops.term_q[loops.record[c, TERM]]) - load(ws.T, 12 * c))
        else:
            T_ab, g = load_pose(ws.T, c), load_closure_direction(ws, c)
            error = loop_closure_error(kind, T_ab)
            for r in range(loops.record[c, EQUATION_COUNT]):
                store(out, first + r, equation_residual(kind, r, T_ab, g, error, load(loops.extent, 2 * c)))


@inline_kernel
def term_coefficient(loops, c, t, ws):
    """Return the coefficient of term t in A: of a nonlinear coupling 1 for the follower and -f' for the driver."""
    if loops.record[c, KIND] == NONLINEAR_COUPLING and t > loops.record[c, TERM]:
        return -load(ws.T, 12 * c + 1)
    return number_like(ws.T, 0.0) + load(loops.coefficient, t)


@inline_kernel
def coupling_sum(loops, c, x, indices, ws):
    """Return sum_k c_k x_k of a coupling."""
    total = number_like(x, 0.0)
    for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERM_COUNT]):
        total = total + term_coefficient(loops, c, t, ws) * load(x, indices[t])
    return total


@inline_kernel
def coupling_driver(loops, c):
    """Return the velocity coordinate of the driver of a nonlinear coupling."""
    return loops.term_v[loops.record[c, TERM] + 1]


@inline_kernel
def coupling_bias(loops, c, v, ws):
    """Return gamma of a coupling: -f'' v_d^2."""
    if loops.record[c, KIND] == COUPLING:
        return number_like(ws.T, 0.0)
    x = load(v, coupling_driver(loops, c))
    return -load(ws.T, 12 * c + 2) * x * x


@inline_kernel
def velocities(loops, v, V, constraint_motion, ws, out):
    """Write A v minus the velocity of driven closures (m,)."""
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind >= COUPLING:
            store(out, first, coupling_sum(loops, c, v, loops.term_v, ws))
        else:
            g = load_closure_direction(ws, c)
            rel, _ = closure_motion(loops, c, V, constraint_motion, ws)
            for r in range(loops.record[c, EQUATION_COUNT]):
                store(out, first + r, dot(closure_equation(kind, r, g), rel))


@inline_kernel
def accelerations(loops, v, a, V, dV, constraint_motion, ws, out):
    """Write A a + gamma (m,): zero if the accelerations obey the constraints.

    With a = dV = None: only the part of gamma that `EquationWorkspace.rate` does not contain. That part is the sum of W · eta
    over the bodies.
    """
    for c in range(loops.record.shape[0]):
        first, kind = loops.record[c, FIRST], loops.record[c, KIND]
        if kind >= COUPLING:
            if a is None:
                store(out, first, coupling_bias(loops, c, v, ws))
            else:
                store(out, first, coupling_sum(loops, c, a, loops.term_v, ws) + coupling_bias(loops, c, v, ws))
        else:
            T_ab, g = load_pose(ws.T, c), load_closure_direction(ws, c)
            rel, rate = closure_motion(loops, c, V, constraint_motion, ws)
            if dV is not None:
                rate = add(rate, relative_body_acceleration(loops, c, dV, ws))
            dg = closure_direction_rate(kind, T_ab, rel, g, load(loops.extent, 2 * c), loops.extent[2 * c + 1])
            for r in range(loops.record[c, EQUATION_COUNT]):
                store(out, first + r, dot(closure_equation(kind, r, g), rate) + dot(equation_rate(kind, r, dg), rel))


# A --------------------------------------------------------------------------------------------------------------------
@inline_kernel
def leg_end(loops, c, leg):
    """Return the body at which a leg of loop c ends: B for leg 0, A for leg 1. Its path to the common ancestor starts there."""
    return loops.record[c, BODY_B] if leg == 0 else loops.record[c, BODY_A]


@inline_kernel
def store_loop_columns(tree, loops, c, T, T_a, s):
    """Write s (6nv): screws of the joints of a loop in frame B, negative on A's side.

    T (12n): poses in parents; T_a: frame B in the body of A.
    """
    zero = number_like(s, 0.0)
    for leg in range(2):
        i = leg_end(loops, c, leg)
        X = pose_like(load_pose(loops.pose, 2 * c + 1), zero) if leg == 0 else load_pose(T_a, c)
        while i != loops.record[c, COMMON]:
            for o in range(NV[tree.kind[i]]):
                S = Ad_inv(X, joint_column(tree, i, o, zero))
                store_twist(s, tree.iv[i] + o, S if leg == 0 else neg(S))
            X = compose(load_pose(T, i), X)
            i = tree.parent[i]


@inline_kernel
def store_constraint_jacobian(tree, loops, T, ws, s, A, holonomic=False):
    """Write A (m nv), or with `holonomic` the derivative of the residual (see `sweep_constraints`). s (6nv) is workspace."""
    nv, zero = tree.above.size, number_like(A, 0.0)
    for k in range(A.shape[0]):
        store(A, k, zero)
    for c in range(loops.record.shape[0]):
        kind, first = loops.record[c, KIND], loops.record[c, FIRST]
        if kind >= COUPLING:
            for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERM_COUNT]):
                store(A, first * nv + loops.term_v[t], zero + term_coefficient(loops, c, t, ws))
        else:
            store_loop_columns(tree, loops, c, T, ws.T_a, s)
            for leg in range(2):
                i = leg_end(loops, c, leg)
                while i != loops.record[c, COMMON]:
                    for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                        for r in range(loops.record[c, EQUATION_COUNT]):
                            store(A, (first + r) * nv + k,
                                  dot(equation_wrench(loops, c, r, holonomic, ws), load_twist(s, k)))
                    i = tree.parent[i]


# Sweep of the constraint equations through the tree ---------------------------------------------------------------------

# The wrench W of an equation, swept towards the ground through articulated bodies, gives X = S^T W at each joint and continues as
# W - U Psi X (the factors of `joints.joint_model`). With M = L^T D L this is X = L^-T A^T, so that
#
#     A M^-1 A^T = X^T D^-1 X,      M^-1 A^T lambda: the forward sweep with X lambda for generalized forces.
#
# This takes O(length of the loop) per equation. Prescribed joints do not change the wrench; the result is then that of M_vv and
# A_v. The sweep also gives the acceleration A a of the open tree without forming a: the sum of X Psi u (X a where prescribed)
# over coordinates, of W . eta over bodies, and W . dV at the ground (`EquationWorkspace.rate`).

@inline_kernel
def sweep_constraints(tree, loops, prescribed, T, U, Psi, ws, holonomic=False, motion=None):
    """Write ws.X of all equations, for the coordinates on their chains, and ws.size.

    T, U, Psi  of the tree
    holonomic  with the equations of the residual's derivative, in which rolling contacts are free along the plane
    motion     `EquationMotion` or None; given: write ws.rate, too
    """
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] >= COUPLING:
            sweep_coupling(tree, loops, c, prescribed, T, U, Psi, ws, motion)
        else:
            for r in range(loops.record[c, EQUATION_COUNT]):
                F = equation_wrench(loops, c, r, holonomic, ws)
                sweep_closure(tree, loops, c, loops.record[c, FIRST] + r, F, prescribed, T, U, Psi, ws, motion)


@inline_kernel
def equation_wrench(loops, c, r, holonomic, ws):
    """Return the wrench of equation r of constraint c, in frame B."""
    kind, g = loops.record[c, KIND], load_closure_direction(ws, c)
    if holonomic and kind == ROLLING:
        return height_equation(r, g, load3(ws.T, 12 * c + 6))
    return closure_equation(kind, r, g)


@inline_kernel
def sweep_closure(tree, loops, c, j, F, prescribed, T, U, Psi, ws, motion):
    """Sweep equation j with the wrench F from the bodies of B and A to their common ancestor, and on to the ground."""
    zero = number_like(ws.X, 0.0)
    a, b, common = loops.record[c, BODY_A], loops.record[c, BODY_B], loops.record[c, COMMON]
    W, W_a = dAd_inv(load_pose(loops.pose, 2 * c + 1), F), neg(dAd_inv(load_pose(ws.T_a, c), F))
    arm = load(loops.length, c)
    other, sums = zero6(zero), (zero, arm * arm * dot3(F[1], F[1]), zero, zero)     # a lever arm is at least the loop's length
    i, end = b, common
    for leg in range(3):
        while i != end:
            W, sums = sweep_joint(tree, i, j, W, sums, zero, False, prescribed, U, Psi, ws, motion)
            W = dAd_inv(load_pose(T, i), W)
            i = tree.parent[i]
        if leg == 0:
            other, W, i = W, W_a, a
        elif leg == 1:
            W, i, end = add(W, other), common, 0
    store_sweep_sums(j, sums, W, ws, motion)


@inline_kernel
def store_sweep_sums(j, sums, W, ws, motion):
    """Write size and rate of equation j. W: its wrench at the ground."""
    store(ws.size, j, sums[0])
    if motion is not None:
        store(ws.rate, j, sums[3] + dot(W, load_twist(motion.dV, 0)))


@inline_kernel
def sweep_coupling(tree, loops, c, prescribed, T, U, Psi, ws, motion):
    """Sweep equation j of a coupling, whose bodies may be on many branches."""
    j, nv, zero = loops.record[c, FIRST], tree.above.size, number_like(ws.X, 0.0)
    chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, CHAIN_LENGTH]]
    rest = zero6(zero)
    for k in range(chain.size):
        i = chain[k]
        store_twist(ws.W, i, rest)
        for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store(ws.X, j * nv + o, zero)
    sums, ground = (zero, zero, zero, zero), rest
    for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERM_COUNT]):
        store(ws.X, j * nv + loops.term_v[t], zero + term_coefficient(loops, c, t, ws))
    for k in range(chain.size):                                 # children first
        i = chain[k]
        W, sums = sweep_joint(tree, i, j, load_twist(ws.W, i), sums, zero, True, prescribed, U, Psi, ws, motion)
        W = dAd_inv(load_pose(T, i), W)
        if tree.parent[i] > 0:
            add_to_twist(ws.W, tree.parent[i], W)
        else:
            ground = add(ground, W)
    store_sweep_sums(j, sums, ground, ws, motion)


@inline_kernel
def sweep_joint(tree, i, j, W, sums, zero, accumulate, prescribed, U, Psi, ws, motion):
    """Sweep the wrench W of equation j across the joint of body i.

    sums        size, maximum |m|^2, maximum |f|^2, rate so far (see `EquationWorkspace`)
    accumulate  add to the values that X contains

    Returns W on the other side, and the sums.
    """
    o, nv = tree.iv[i], tree.above.size
    m2, f2 = maximum(sums[1], dot3(W[0], W[0])), maximum(sums[2], dot3(W[1], W[1]))
    diagonal_scale, rate = sums[0], sums[3]
    if tree.kind[i] == ONE_DOF:
        S = screw(tree, i)
        x = (load(ws.X, j * nv + o) if accumulate else zero) + screw_dot(S, W)
        square_bound = S[0] * S[0] * m2 + S[1] * S[1] * f2
        W, diagonal_scale, rate = sweep_coordinate(nv, o, j, x, square_bound, diagonal_scale, rate, W, U, Psi, prescribed, ws,
                                                   motion)
    else:
        for c in range(NV[tree.kind[i]]):
            x = (load(ws.X, j * nv + o + c) if accumulate else zero) + dot(joint_column(tree, i, c, zero), W)
            square_bound = m2 if c < 3 else f2
            W, diagonal_scale, rate = sweep_coordinate(nv, o + c, j, x, square_bound, diagonal_scale, rate, W, U, Psi, prescribed,
                                                       ws, motion)
    if motion is not None:
        rate = rate + dot(W, joint_eta(tree, i, load_twist(motion.V, i), motion.v))
    return W, (diagonal_scale, m2, f2, rate)


@inline_kernel
def sweep_coordinate(nv, k, j, x, square_bound, diagonal_scale, rate, W, U, Psi, prescribed, ws, motion):
    """Sweep the wrench W of equation j across coordinate k. square_bound: x^2 if nothing had cancelled."""
    store(ws.X, j * nv + k, x)
    if prescribed[k]:
        if motion is not None:
            rate = rate + x * load(motion.a, k)
        return W, diagonal_scale, rate
    psi = load(Psi, k)
    px = psi * x
    if motion is not None:
        rate = rate + px * load(motion.u, k)
    return sub(W, scale(px, load_twist(U, k))), diagonal_scale + psi * (x * x + square_bound), rate


@inline_kernel
def add_multipliers(tree, loops, prescribed, multipliers, ws, u):
    """Add X lambda to u at free coordinates, and subtract it at prescribed ones (there u is S^T of the bias force)."""
    nv, zero = tree.above.size, number_like(u, 0.0)
    for c in range(loops.record.shape[0]):
        chain = loops.chains[loops.record[c, CHAIN]:loops.record[c, CHAIN] + loops.record[c, CHAIN_LENGTH]]
        first = loops.record[c, FIRST]
        for k in range(chain.size):
            i = chain[k]
            for o in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                x = zero
                for r in range(first, first + loops.record[c, EQUATION_COUNT]):
                    x = x + load(ws.X, r * nv + o) * load(multipliers, r)
                store(u, o, load(u, o) - x if prescribed[o] else load(u, o) + x)
