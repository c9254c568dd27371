"""The equations of motion as linear functions of the inertial parameters: tau = Y pi, E = y pi, h = Z pi.

S^T I V and S^T (I dV - ad*_V I V) (K1 (41), PBP §4) are linear in the ten numbers of I = (m, h, A). With V = (w, v),
dV = (dw, dv) and the acceleration alpha = dv + w x v of the link's origin, the second is the power of the wrench

    moment  A dw + w x A w + h x alpha        force  m alpha + dw x h + w x (w x h)

With a reference velocity it is that of `kernels.slotine_li`: tau = Y(q, v, v_r, a_r) pi.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_column, tree_views
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_block, load_motion, load_state, store_block
from liedyn.kernels.kinematics import TWISTS, kinematics, kinematics_workspace
from liedyn.kernels.newton_euler import BodyMotion, body_motions, store_ground
from liedyn.kernels.slotine_li import ReferenceMotion, load_reference, reference_motions, reference_vectors
from liedyn.lie.inertia import coriolis, coriolis_transposed, momentum
from liedyn.lie.se3 import Ad_inv, ad, add, add_ad, compose, dAd_inv, dot, identity, neg_dad, sub, sub_dad, unit6, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, sqrt, store
from liedyn.lie.vectors import (
    add3,
    add_cross,
    clear,
    cross,
    dot3,
    load3,
    load6,
    load_pose,
    load_twist,
    rotate,
    rotate_back,
    store3,
    store_twist,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.numba_internals import split_workspace

# The layout (int64) of the columns: number of columns, number of links; the links, with ten columns each; then for each
# coordinate the column of its armature, damping, friction, stiffness, spring load and offset (nv each), or -1.
ARMATURE, DAMPING, FRICTION, STIFFNESS, LOAD, OFFSET = range(6)


@inline_kernel
def inertia_row(S, V):
    """Return the row y with S^T I V = y (m, h, A): ten numbers."""
    (a, b), (w, v) = S, V
    h = add_cross(cross(v, a), b, w)
    return (dot3(b, v), h[0], h[1], h[2], a[0] * w[0], a[0] * w[1] + a[1] * w[0], a[0] * w[2] + a[2] * w[0],
            a[1] * w[1], a[1] * w[2] + a[2] * w[1], a[2] * w[2])


@inline_kernel
def wrench_row(S, vectors):
    """Return the row y with S^T F = y (m, h, A), for the wrench F of `kernels.slotine_li` except for its term tr(A)."""
    (a, b), (w, w_r, dw, x, alpha) = S, vectors
    c, h = cross(a, w), add_cross(add_cross(cross(alpha, a), b, dw), cross(b, w), w_r)
    return (dot3(b, alpha), h[0], h[1], h[2], a[0] * x[0] + c[0] * w_r[0],
            a[0] * x[1] + a[1] * x[0] + (c[0] * w_r[1] + c[1] * w_r[0]),
            a[0] * x[2] + a[2] * x[0] + (c[0] * w_r[2] + c[2] * w_r[0]), a[1] * x[1] + c[1] * w_r[1],
            a[1] * x[2] + a[2] * x[1] + (c[1] * w_r[2] + c[2] * w_r[1]), a[2] * x[2] + c[2] * w_r[2])


@inline_kernel
def reference_row(S, vectors, y):
    """Return the row with S^T F = y (m, h, A) for the wrench F of `kernels.slotine_li`."""
    row, t = wrench_row(S, vectors), 0.5 * dot3(S[0], y)
    return (row[0], row[1], row[2], row[3], row[4] - t, row[5], row[6], row[7] - t, row[8], row[9] - t)


@inline_kernel
def store_parameter(layout, parameter, k, nv, Y, row, x):
    """Store x in the column of a joint parameter of coordinate k, if it has one. `row` is the start of a row of Y."""
    column = layout[2 + layout[1] + parameter * nv + k]
    if column >= 0:
        store(Y, row + column, x)


@kernel
def regressor(tree, layout, q, v, a, Y, ws):
    """Write the entries of Y (nv P, by rows) that are not zero for all states.

    These are the ten columns of every link in the rows of the joints between it and the ground, and the joints' own parameters.
    """
    columns, zero = layout[0], number_like(q, 0.0)
    store_ground(tree, q, ws.V, ws.dV)
    body_motions(tree, q, v, a, ws)
    for j in range(layout[1]):
        link = layout[2 + j]
        i = tree.link_body[link]
        T = compose(identity(zero), load_pose(tree.link_pose, link))          # of the link in body i
        (w, v_link), (dw, dv) = Ad_inv(T, load_twist(ws.V, i)), Ad_inv(T, load_twist(ws.dV, i))
        store_link_columns(tree, columns, j, i, T, (w, w, dw, dw, add_cross(dv, w, v_link)), None, Y, ws.T)
    joint_columns(tree, layout, q, v, a, Y)


@kernel
def slotine_li_regressor(tree, layout, q, v, v_r, a_r, Y, ws):
    """Write the entries of Y(q, v, v_r, a_r) that are not zero for all states, see `regressor`. ws: `ReferenceMotion`."""
    zero = number_like(q, 0.0)
    reference_motions(tree, q, v, v_r, a_r, ws)
    for j in range(layout[1]):
        link = layout[2 + j]
        i = tree.link_body[link]
        T = compose(identity(zero), load_pose(tree.link_pose, link))          # of the link in body i
        vectors, y = reference_vectors(ws, i, T)
        store_link_columns(tree, layout[0], j, i, T, vectors, y, Y, ws.T)
    joint_columns(tree, layout, q, v, a_r, Y)


@inline_kernel
def store_link_columns(tree, columns, j, i, T, vectors, y, Y, poses):
    """Write the ten columns of link j of the layout, from the vectors of its motion. T: its pose in its body i.

    y: see `reference_row`; None if it is zero (not compiled).
    """
    zero = number_like(Y, 0.0)
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            S, first = Ad_inv(T, joint_column(tree, i, c, zero)), (tree.iv[i] + c) * columns + 10 * j
            row = wrench_row(S, vectors) if y is None else reference_row(S, vectors, y)
            for r in range(10):
                store(Y, first + r, row[r])
        T = compose(load_pose(poses, i), T)
        i = tree.parent[i]


@inline_kernel
def joint_columns(tree, layout, q, v, a, Y):
    """Write the columns of armature, damping, smoothed friction, springs (`joints.joint_model`) and offsets, as motor forces."""
    nv, one = tree.armature.shape[0], number_like(q, 1.0)
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            row, x, s = k * layout[0], load(v, k), load(tree.friction_speed, k)
            store_parameter(layout, ARMATURE, k, nv, Y, row, load(a, k))
            store_parameter(layout, DAMPING, k, nv, Y, row, x)
            store_parameter(layout, FRICTION, k, nv, Y, row, x / sqrt(x * x + s * s))
            store_parameter(layout, STIFFNESS, k, nv, Y, row, load(q, tree.iq[i]))
            store_parameter(layout, LOAD, k, nv, Y, row, -one)
            store_parameter(layout, OFFSET, k, nv, Y, row, one)


@kernel
def energy_momentum_regressor(tree, layout, q, v, y, ws):
    """Write y (8 P, by rows), after `kinematics` with twists: kinetic energy, potential energy, momentum (6) in the world.

    The energy of a spring is k/2 q^2 - (k rest) q, without the constant.
    """
    columns, nv, zero = layout[0], tree.armature.shape[0], number_like(q, 0.0)
    clear(y)
    g = load3(tree.dV0, 3)                                                     # minus the acceleration of gravity
    for j in range(layout[1]):
        i = tree.link_body[layout[2 + j]]
        X = load_pose(tree.link_pose, layout[2 + j])
        R, p = compose(load_pose(ws.T, i), X)
        V, h = Ad_inv(X, load_twist(ws.V, i)), rotate_back(R, g)
        kinetic = inertia_row(V, V)
        for r in range(10):
            store(y, 10 * j + r, 0.5 * kinetic[r])
        store(y, columns + 10 * j, dot3(g, p))                                 # g (m p + R h)
        for r in range(3):
            store(y, columns + 10 * j + 1 + r, h[r])
        for c in range(6):
            row = inertia_row(Ad_inv((R, p), unit6(c, zero)), V)                            # e^T Ad*_{T^-1} I V
            for r in range(10):
                store(y, (2 + c) * columns + 10 * j + r, row[r])
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            x, z = load(v, k), load(q, tree.iq[i])
            store_parameter(layout, ARMATURE, k, nv, y, 0, 0.5 * x * x)
            store_parameter(layout, STIFFNESS, k, nv, y, columns, 0.5 * z * z)
            store_parameter(layout, LOAD, k, nv, y, columns, -z)


# Derivatives of the sum of all products of entries of Y and of weights G, an array like Y -------------------------------
#
# Row k of G is a set of inertial parameters, with which coordinate k has the force tau_k(G_k): the sum is that of these forces,
# and each has the derivatives of `kernels.inverse_dynamics_derivatives`, with a body I_k for every coordinate k between it and
# the ground. P and g there become P = sum I_k s_k and g = sum B_k^T s_k. So one sweep gives the gradient, O(n depth):
#
#     d/dq_l = zeta_l^T P + psi_l^T g + s_l^T R_l        d/dv_l = phi_l^T P + s_l^T g        d/da_l = s_l^T P
#
# R_l = sum of ad*_{s_k} F_k over the coordinates k of the joints above l, which q_l turns relative to the bodies beyond it.

class ContractionWorkspace(NamedTuple):
    """Motion of the bodies, and sums over their descendants."""

    T: np.ndarray        # (12n,) pose in the parent
    V: np.ndarray        # (6n,) twist
    dV: np.ndarray       # (6n,) its component-wise rate, gravity included
    P: np.ndarray        # (6n,)
    g: np.ndarray        # (3n,)
    R: np.ndarray        # (6nv,) ad*_{s_k} F_k of a link


@kernel
def contraction_derivatives(tree, layout, q, v, a, G, Gq, Gv, Ga, ws):
    """Write the derivatives (nv each) of sum(G Y) with respect to q, tangent, v and a. G (nv P, by rows)."""
    zero = number_like(q, 0.0)
    for x in (ws.P, ws.g, Gq, Gv, Ga):
        clear(x)
    store_ground(tree, q, ws.V, ws.dV)
    body_motions(tree, q, v, a, ws)
    for j in range(layout[1]):
        add_link_contraction(tree, layout, j, zero, G, Gq, ws)
    for i in range(tree.parent.size - 1, 0, -1):                           # children first
        P, g, T, p = load_twist(ws.P, i), load3(ws.g, 3 * i), load_pose(ws.T, i), tree.parent[i]
        Vp, dVp, V = Ad_inv(T, load_twist(ws.V, p)), Ad_inv(T, load_twist(ws.dV, p)), load_twist(ws.V, i)
        for c in range(NV[tree.kind[i]]):
            k, s = tree.iv[i] + c, joint_column(tree, i, c, zero)
            psi = ad(Vp, s)
            zeta, phi = add_ad(ad(dVp, s), Vp, psi), add_ad(psi, V, s)
            store(Gq, k, load(Gq, k) + dot(P, zeta) + dot3(g, psi[0]))
            store(Gv, k, dot(P, phi) + dot3(g, s[0]))
            store(Ga, k, dot(P, s))
        store_twist(ws.P, p, add(load_twist(ws.P, p), dAd_inv(T, P)))
        store3(ws.g, 3 * p, add3(load3(ws.g, 3 * p), rotate(T[0], g)))
    add_joint_contraction(tree, layout, v, G, Gq, Gv, Ga)


@inline_kernel
def add_link_contraction(tree, layout, j, zero, G, Gq, ws):
    """Add P and g of link j of the layout to its body, and s^T R to Gq."""
    link = layout[2 + j]
    i = tree.link_body[link]
    X = compose(identity(zero), load_pose(tree.link_pose, link))              # of the link in body i
    V, dV = Ad_inv(X, load_twist(ws.V, i)), Ad_inv(X, load_twist(ws.dV, i))
    P, g, R = zero6(zero), (zero, zero, zero), zero6(zero)
    T, b = X, i
    while b > 0:
        for c in range(NV[tree.kind[b]]):
            k, s = tree.iv[b] + c, Ad_inv(T, joint_column(tree, b, c, zero))
            I = load_parameters(G, k * layout[0] + 10 * j)
            p = momentum(I, V)
            P, g = add(P, momentum(I, s)), add3(g, coriolis_transposed(coriolis(I, V, p[1]), s))
            R_k = neg_dad(s, sub_dad(momentum(I, dV), V, p))
            R = sub(R, R_k)
            store_twist(ws.R, k, R_k)
        T, b = compose(load_pose(ws.T, b), T), tree.parent[b]
    store_twist(ws.P, i, add(load_twist(ws.P, i), dAd_inv(X, P)))
    store3(ws.g, 3 * i, add3(load3(ws.g, 3 * i), rotate(X[0], g)))
    T, b = X, i
    while b > 0:
        for c in range(NV[tree.kind[b]]):
            R = add(R, load_twist(ws.R, tree.iv[b] + c))
        for c in range(NV[tree.kind[b]]):
            k, s = tree.iv[b] + c, Ad_inv(T, joint_column(tree, b, c, zero))
            store(Gq, k, load(Gq, k) + dot(R, s))
        T, b = compose(load_pose(ws.T, b), T), tree.parent[b]


@inline_kernel
def load_parameters(G, first):
    """Return ten numbers of an array as a body (m, h, A)."""
    return load(G, first), load3(G, first + 1), load6(G, first + 4)


@inline_kernel
def load_parameter(layout, parameter, k, nv, G, row, zero):
    """Return the entry of G in the column of a joint parameter of coordinate k; zero if it has none."""
    column = layout[2 + layout[1] + parameter * nv + k]
    return load(G, row + column) if column >= 0 else zero


@inline_kernel
def add_joint_contraction(tree, layout, v, G, Gq, Gv, Ga):
    """Add the derivatives of the columns of `joint_columns`."""
    nv, zero = tree.armature.shape[0], number_like(v, 0.0)
    for k in range(nv):
        row, x, s = k * layout[0], load(v, k), load(tree.friction_speed, k)
        r = 1.0 / (x * x + s * s)
        friction = load_parameter(layout, FRICTION, k, nv, G, row, zero) * (s * s * r * sqrt(r))
        store(Ga, k, load(Ga, k) + load_parameter(layout, ARMATURE, k, nv, G, row, zero))
        store(Gv, k, load(Gv, k) + load_parameter(layout, DAMPING, k, nv, G, row, zero) + friction)
        store(Gq, k, load(Gq, k) + load_parameter(layout, STIFFNESS, k, nv, G, row, zero))


# batches ----------------------------------------------------------------------------------------------------------------
def regressor_workspace_size(n, nq, nv, size):
    """Return the size (numbers) of the workspace of a regressor with `size` entries for one state (see `Model.sizes`)."""
    return 30 * n + nq + 3 * nv + size


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def regressors(index, constants, memory, layout, q, v, a, Y, first, last):
    """Write Y (N, nv P) of states first … last - 1; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, views = tree_views(index, constants), split_workspace(memory, (nq, nv, nv, Y.shape[1], 12 * n, 6 * n, 6 * n))
    Q, v1, a1, block, T, V, dV, _ = views
    ws = BodyMotion(T, V, dV)
    clear(block)
    for k in range(first, last, SIMD_WIDTH):
        code = load_motion(tree, q, v, a, k, Q, v1, a1)
        if code != OK:
            return code
        regressor(tree, layout, Q, v1, a1, block, ws)
        if not store_block(block, Y, k):
            return BAD_RESULT
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
             nogil=True)
def slotine_li_regressors(index, constants, memory, layout, q, v, v_r, a_r, Y, first, last):
    """Write Y (N, nv P) of states first … last - 1 with reference velocities; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    tree, views = tree_views(index, constants), split_workspace(memory, (nq, nv, nv, nv, Y.shape[1], 12 * n, 6 * n, 6 * n, 6 * n))
    Q, v1, v_r1, a_r1, block, T, V, V_r, dV, _ = views
    ws = ReferenceMotion(T, V, V_r, dV)
    clear(block)
    for k in range(first, last, SIMD_WIDTH):
        code = load_reference(tree, (q, v, v_r, a_r), k, Q, v1, v_r1, a_r1)
        if code != OK:
            return code
        slotine_li_regressor(tree, layout, Q, v1, v_r1, a_r1, block, ws)
        if not store_block(block, Y, k):
            return BAD_RESULT
    return OK


def contraction_workspace_size(n, nq, nv, size):
    """Return the size (numbers) of the workspace of weights of `size` entries for one state (see `Model.sizes`)."""
    return 33 * n + nq + 11 * nv + size


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
             "f8[:,::1], i8, i8)", nogil=True)
def contractions(index, constants, memory, layout, q, v, a, G, Gq, Gv, Ga, first, last):
    """Write the derivatives Gq, Gv and Ga (N, nv) of sum(G Y), G (N, nv P), of states first … last - 1; return a code."""
    n, nq, nv = index[0], index[1], index[2]
    sizes = nq, nv, nv, nv, nv, nv, G.shape[1], 12 * n, 6 * n, 6 * n, 6 * n, 3 * n, 6 * nv
    tree, views = tree_views(index, constants), split_workspace(memory, sizes)
    Q, v1, a1, of_q, of_v, of_a, block, T, V, dV, P, g, R, _ = views
    ws = ContractionWorkspace(T, V, dV, P, g, R)
    for k in range(first, last, SIMD_WIDTH):
        code = load_motion(tree, q, v, a, k, Q, v1, a1)
        if code != OK:
            return code
        load_block(G, k, block)
        contraction_derivatives(tree, layout, Q, v1, a1, block, of_q, of_v, of_a, ws)
        if not (store_block(of_q, Gq, k) and store_block(of_v, Gv, k) and store_block(of_a, Ga, k)):
            return BAD_RESULT
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def energy_momentum_regressors(index, constants, memory, layout, q, v, y, first, last):
    """Write y (N, 8 P) of states first … last - 1: rows of kinetic energy, potential energy and momentum (6)."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, v1, block, m) = tree_views(index, constants), split_workspace(memory, (nq, nv, y.shape[1]))
    ws = kinematics_workspace(m, n)
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, v, k, Q, v1)
        if code != OK:
            return code
        kinematics(tree, Q, v1, v1, TWISTS, ws)
        energy_momentum_regressor(tree, layout, Q, v1, block, ws)
        if not store_block(block, y, k):
            return BAD_RESULT
    return OK
