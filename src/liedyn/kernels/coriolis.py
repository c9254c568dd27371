"""Coriolis matrix with dM/dt - 2C skew, O(n depth): Ploen's recursive form with composite bodies.

With S_j the screw of coordinate j in body b, and dS_j = ad_{V_j} S_j - ad_{V_b} S_j its rate in the body,

    C_kj = sum over b below j and k of S_k^T (I_b dS_j + W_b S_j),    W_b skew, W_b V_b = -ad*_{V_b} I_b V_b

(PL (37)). Only W_b - I_b ad_{V_b} = [[E, 0], [-[f], 0]] depends on b alone, with the linear momentum f: twelve numbers, which
are summed towards the root like inertias. Two choices of W are used; their upper left parts are:

    [w] A + A [w]                        PL Proposition 1
    ([w] A + A [w] - [A w])/2            the Levi-Civita connection: C_kj = sum_i Gamma_ijk v_i (PBP (52))

They differ by tr(A)/2 [w]. The second is half of the matrix B = (2E, f) of `lie.inertia`.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_column, store_joint_force_strided, tree_views
from liedyn.kernels.batch_blocks import (
    BAD_RESULT,
    OK,
    all_finite,
    load_configuration,
    load_state,
    states_per_block,
    store_block,
    unpack_block,
)
from liedyn.kernels.inverse_dynamics_derivatives import (
    derivatives_workspace,
    derivatives_workspace_size,
    forward_pass,
    load_coriolis,
    propagate_derivatives_to_parent,
    store_coriolis,
)
from liedyn.kernels.mass_matrix import (
    CompositeWorkspace,
    composite_workspace,
    initialize_composites,
    propagate_composite_to_parent,
)
from liedyn.lie.inertia import coriolis_transposed, coriolis_wrench, momentum
from liedyn.lie.se3 import Ad_inv, ad, add, compose, dAd_inv, dot, scale
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.vectors import (
    add9,
    add_cross,
    clear,
    dot3,
    load3,
    load_pose,
    load_rigid,
    load_twist,
    rotate,
    scale3,
    skew_product,
    store3,
    store_twist,
    symmetric_to_full,
    transpose,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.numba_internals import split_workspace


@inline_kernel
def skew(x):
    """Return the matrix [x]."""
    zero = x[0] - x[0]
    return (zero, -x[2], x[1], x[2], zero, -x[0], -x[1], x[0], zero)


@inline_kernel
def trace(A):
    """Return the trace of a symmetric matrix (xx, xy, xz, yy, yz, zz)."""
    return A[0] + A[3] + A[5]


@inline_kernel
def coriolis(tree, q, v, rest, ploen, C, ws):
    """Write C (nv nv, by rows) for coordinates on one path to the root, and ws (`DerivativesWorkspace`). rest (nv): zeros."""
    zero = number_like(q, 0.0)
    forward_pass(tree, tree.I, q, v, rest, q[:0], ws)
    for i in range(tree.parent.size - 1, 0, -1):
        (E, f), turn = load_coriolis(ws.B, i), ploen * trace(load_rigid(tree.I, i)[2])
        store_coriolis(ws.B, i, (add9(E, skew(scale3(turn, load_twist(ws.V, i)[0]))), f))
        for c in range(NV[tree.kind[i]]):
            store_coordinate_entries(tree, i, c, zero, C, ws)
        propagate_derivatives_to_parent(tree, i, q, ws)


@inline_kernel
def store_coordinate_entries(tree, i, c, zero, C, ws):
    """Write row and column k of C, for coordinate c of body i and the coordinates between i and the root."""
    nv, k, j = tree.armature.shape[0], tree.iv[i] + c, i
    s, I, B = joint_column(tree, i, c, zero), load_rigid(ws.I, i), load_coriolis(ws.B, i)
    F = add(momentum(I, ad(load_twist(ws.V, i), s)), scale(0.5, coriolis_wrench(B, s[0])))    # column k
    P, g = momentum(I, s), scale3(0.5, coriolis_transposed(B, s))                               # row k
    while True:
        first = tree.iv[j]
        store_joint_force_strided(tree, j, F, C, first * nv + k, nv)
        if j != i:
            for d in range(NV[tree.kind[j]]):
                s = joint_column(tree, j, d, zero)
                store(C, k * nv + first + d, dot(P, ad(load_twist(ws.V, j), s)) + dot3(g, s[0]))
        if tree.parent[j] == 0:
            break
        T = load_pose(ws.T, j)
        F, P, g, j = dAd_inv(T, F), dAd_inv(T, P), rotate(T[0], g), tree.parent[j]


# batches ----------------------------------------------------------------------------------------------------------------
def coriolis_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `coriolis_matrices` for one state (see `Model.sizes`)."""
    return derivatives_workspace_size(n, nv) + nq + 2 * nv + nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8, f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def coriolis_matrices(index, constants, memory, ploen, q, v, C, first, last):
    """Write C (N, nv nv) of states first … last - 1. ploen: 1 for PL Proposition 1; 0 for the Levi-Civita connection."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, v1, rest, block, m) = tree_views(index, constants), split_workspace(memory, (nq, nv, nv, nv * nv))
    ws = derivatives_workspace(m, n, nv)
    clear(rest)
    clear(block)
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, v, k, Q, v1)
        if code != OK:
            return code
        coriolis(tree, Q, v1, rest, ploen, block, ws)
        if not store_block(block, C, k):
            return BAD_RESULT
    return OK


# Christoffel symbols and dM/dq of all triples of joints, O(n depth^2): PBP (55)-(57) with composite bodies --------------

# With D the deepest of the three joints, I = (m, h, A) the composite inertia of its body and <X, Y> = X^T I Y, (55)-(57) are one
# formula, for i above j or of the same joint:
#
#     Gamma_ijk = (<[S_k, S_i], S_j> + <[S_k, S_j], S_i> + <[S_i, S_j], S_k>)/2 = w_i . y_jk
#
# This is also the Koszul formula for joints of several coordinates: the bracket of two of its screws is then the bracket of the
# vector fields. y_jk = -y_kj is a vector, linear in S_k = (w, v):
#
#     y_jk = K w + g x v,    g the linear momentum of S_j = (w', v'),    K = ([w'] A)^T + tr(A)/2 [w'] + (h.v') 1 - h v'^T
#
# So three rules give the symbols in which D is not the second index from x = Gamma_iDk = w_i . y_Dk:
#
#     Gamma_Dik = x     i of a joint above that of D, since [S_i, S_D] = 0 as vector fields
#     Gamma_ikD = -x    k of a joint above that of D, i of the same joint as k or above it
#     Gamma_kiD = -x    k of a joint above that of D, i of a joint above that of k
#
# All screws are expressed in the body of D: then each triple costs one product of three numbers.

SYMBOLS, DERIVATIVE = 0, 1


class ChristoffelWorkspace(NamedTuple):
    """Workspace of `christoffel_symbols`."""

    bodies: CompositeWorkspace
    S: np.ndarray     # (6nv,) screws of the joints above a body, in its frame
    y: np.ndarray     # (3nv,)


@inline_kernel
def christoffel_workspace(memory, n, nv):
    """Return the `ChristoffelWorkspace` whose arrays are views into `memory`."""
    bodies, S, y, _ = split_workspace(memory, (22 * n, 6 * nv, 3 * nv))
    return ChristoffelWorkspace(composite_workspace(bodies, n), S, y)


@inline_kernel
def neg_skew_product(x, y):
    """Return -[y][x] = (x.y) 1 - x y^T."""
    d = dot3(x, y)
    return (d - x[0] * y[0], -(x[0] * y[1]), -(x[0] * y[2]), -(x[1] * y[0]), d - x[1] * y[1], -(x[1] * y[2]),
            -(x[2] * y[0]), -(x[2] * y[1]), d - x[2] * y[2])


@inline_kernel
def store_joint_columns(tree, d, ws):
    """Write the screws of joint d and of the joints above it to ws.S, in the frame of body d."""
    zero = number_like(ws.S, 0.0)
    for c in range(NV[tree.kind[d]]):
        store_twist(ws.S, tree.iv[d] + c, joint_column(tree, d, c, zero))
    T, j = load_pose(ws.bodies.T, d), tree.parent[d]
    while j > 0:
        for c in range(NV[tree.kind[j]]):
            store_twist(ws.S, tree.iv[j] + c, Ad_inv(T, joint_column(tree, j, c, zero)))
        T, j = compose(load_pose(ws.bodies.T, j), T), tree.parent[j]


@inline_kernel
def store_pair_vectors(tree, d, D, ws):
    """Write y_Dk to ws.y for the coordinates k of joint d, one of which is D, and of the joints above it."""
    I, (w, v) = load_rigid(ws.bodies.I, d), load_twist(ws.S, D)
    g, (_, h, A) = momentum(I, (w, v))[1], I
    K = add9(add9(transpose(skew_product(w, symmetric_to_full(A))), skew(scale3(0.5 * trace(A), w))), neg_skew_product(h, v))
    k = tree.iv[d] + NV[tree.kind[d]] - 1
    while k >= 0:
        up = load_twist(ws.S, k)
        store3(ws.y, 3 * k, add_cross(rotate(K, up[0]), g, up[1]))
        k = tree.above[k]


@kernel
def christoffel_symbols(tree, q, out, ws):
    """Write out[(i nv + j) nv + k] = Gamma_ijk (nv^3) for coordinates on one path to the root; the deepest is j (or i) or k."""
    initialize_composites(tree, q, ws.bodies)
    for d in range(tree.parent.size - 1, 0, -1):
        store_joint_columns(tree, d, ws)
        for D in range(tree.iv[d], tree.iv[d] + NV[tree.kind[d]]):
            store_pair_vectors(tree, d, D, ws)
            b = d
            while b > 0:
                for k in range(tree.iv[b], tree.iv[b] + NV[tree.kind[b]]):
                    store_symbols(tree, d, D, b, k, out, ws)
                b = tree.parent[b]
        propagate_composite_to_parent(tree, d, q, ws.bodies)


@inline_kernel
def store_symbols(tree, d, D, b, k, out, ws):
    """Write the symbols of coordinate D of joint d, k of joint b at or above d, and each i of a joint a at or above d."""
    nv, y_Dk, a = tree.armature.shape[0], load3(ws.y, 3 * k), d
    while a > 0:
        for i in range(tree.iv[a], tree.iv[a] + NV[tree.kind[a]]):
            x = dot3(load3(ws.S, 6 * i), y_Dk)
            store(out, (i * nv + D) * nv + k, x)
            if a < d:
                store(out, (D * nv + i) * nv + k, x)
            if a <= b and b < d:
                store(out, (i * nv + k) * nv + D, -x)
            if a < b and b < d:
                store(out, (k * nv + i) * nv + D, -x)
        a = tree.parent[a]


@kernel
def mass_matrix_derivatives(symbols, nv, out):
    """Write out (nv^3): out[(j nv + k) nv + i] = dM_jk/dq_i = Gamma_ijk + Gamma_ikj."""
    for i in range(nv):
        for j in range(nv):
            for k in range(nv):
                store(out, (j * nv + k) * nv + i, load(symbols, (i * nv + j) * nv + k) + load(symbols, (i * nv + k) * nv + j))


# batches ----------------------------------------------------------------------------------------------------------------
def christoffel_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `christoffel_batch` for one state (see `Model.sizes`)."""
    return 22 * n + 9 * nv + nq + 2 * nv * nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1], i8, i8)",
             "i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def christoffel_batch(index, constants, memory, output_kind, q, out, first, last):
    """Write SYMBOLS or DERIVATIVE (N, nv^3) of states first … last - 1; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, size = tree_views(index, constants), nv * nv * nv
    Q, symbols, rates, m = split_workspace(memory, (nq, size, size))
    ws = christoffel_workspace(m, n, nv)
    clear(symbols)
    for k in range(first, last, states_per_block(memory)):
        code = load_configuration(tree, q, k, Q)
        if code != OK:
            return code
        christoffel_symbols(tree, Q, symbols, ws)
        if not all_finite(symbols):
            return BAD_RESULT
        if output_kind == SYMBOLS:
            unpack_block(symbols, out, k)
        else:
            mass_matrix_derivatives(symbols, nv, rates)
            unpack_block(rates, out, k)
    return OK
