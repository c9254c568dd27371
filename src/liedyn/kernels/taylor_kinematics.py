"""Time derivatives of any order of poses, twists, Jacobians, centre of mass and momentum.

All are computed from poses as truncated Taylor series (`joints.taylor_series`), where a product is a Cauchy sum: O(m^2) per body
for m derivatives. v (m nv) is the series of the velocity. Poses and Jacobians have the coefficients 0 … m, twists 0 … m - 1.
Twists and Jacobians are computed along the tree in the requested frame. A rotation into that frame at the end would leave
rounding in constant quantities that grows with m.

Source: AGF Algorithm 1 (`world_twists`).
"""
from liedyn.joints.joint_model import joint_add, joint_column, tree_views
from liedyn.joints.taylor_series import apply_joint_series
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, all_finite, load_state, store_block, unpack_block
from liedyn.kernels.kinematics import LOCAL, LOCAL_WORLD_ALIGNED, WORLD, load_column, store_column
from liedyn.kernels.taylor_inverse import scale_rows
from liedyn.lie.inertia import momentum
from liedyn.lie.se3 import Ad_inv, add, compose, inverse, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.vectors import (
    add3,
    add_cross,
    add_rotate,
    load3,
    load9,
    load_pose,
    load_rigid,
    load_twist,
    rotate,
    rotate_back,
    scale3,
    store3,
    store_pose,
    store_twist,
    sub3,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.numba_internals import split_workspace

ALL_LINKS = -1          # in place of the index of a link


@inline_kernel
def joint_moves_body(tree, i, body):
    """Return whether joint i moves the body. In depth-first order, the bodies that a joint moves are consecutive."""
    return body > 0 and tree.iv[i] <= tree.iv[body] and tree.iv[body] <= tree.last[tree.iv[i]]


@inline_kernel
def constant_pose_series(T, m, pose):
    """Write T, the series of a constant pose."""
    store_pose(T, 0, pose)
    for k in range(12, 12 * (m + 1)):
        store(T, k, 0.0)


@kernel
def body_series(tree, q, v, m, end, T, M):
    """Write T (12 (m + 1) n): series of the poses of all bodies in the world.

    end: with a link, only the bodies between it and the ground. M (12 (m + 1)) is workspace.
    """
    size = 12 * (m + 1)
    constant_pose_series(T, m, ((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)))
    for i in range(1, tree.parent.size):
        if end != ALL_LINKS and not joint_moves_body(tree, i, tree.link_body[end]):
            continue
        P, Ti, T0 = T[size * tree.parent[i]:], T[size * i:size * i + size], load_pose(tree.T0, i)
        for k in range(m + 1):
            store_pose(Ti, k, compose(load_pose(P, k), T0))
        apply_joint_series(tree, i, q, v, m, 1.0, Ti, M)


@inline_kernel
def link_series(tree, link, m, T, X):
    """Write X (12 (m + 1)): series of a link's pose, from those of the bodies."""
    body, offset = T[12 * (m + 1) * tree.link_body[link]:], load_pose(tree.link_pose, link)
    for k in range(m + 1):
        store_pose(X, k, compose(load_pose(body, k), offset))


# twists ---------------------------------------------------------------------------------------------------------------
@kernel
def body_twists(tree, q, v, m, end, V, L, M):
    """Write V (6 m n): twists in body frames, V_i = Ad_{L^-1} V_parent + S v with L the pose in the parent.

    end: as in `body_series`. L, M (12 (m + 1)) are workspace.
    """
    rest = zero6(number_like(q, 0.0))
    for k in range(m):
        store_twist(V, k, rest)
    for i in range(1, tree.parent.size):
        if end != ALL_LINKS and not joint_moves_body(tree, i, tree.link_body[end]):
            continue
        P, Vi = V[6 * m * tree.parent[i]:], V[6 * m * i:6 * m * i + 6 * m]
        constant_pose_series(L, m, load_pose(tree.T0, i))
        apply_joint_series(tree, i, q, v, m, 1.0, L, M)
        for k in range(m):                                        # velocity of the parent at the origin of body i
            y = load3(P, 6 * k + 3)
            for j in range(k + 1):
                y = add_cross(y, load3(P, 6 * j), load3(L, 12 * (k - j) + 9))
            store3(Vi, 6 * k + 3, y)
        for k in range(m - 1, -1, -1):
            W = rest
            for j in range(k + 1):
                R = load9(L, 12 * j)
                W = add(W, (rotate_back(R, load3(P, 6 * (k - j))), rotate_back(R, load3(Vi, 6 * (k - j) + 3))))
            store_twist(Vi, k, joint_add(tree, i, W, v[k * tree.armature.shape[0]:]))


@kernel
def world_twists(tree, v, m, end, T, V):
    """Write V (6 m n): twists in the world about its origin, V_i = V_parent + Ad_{T_i} S v. T: poses of the bodies."""
    zero, nv = number_like(v, 0.0), tree.armature.shape[0]
    rest = zero6(zero)
    for k in range(m):
        store_twist(V, k, rest)
    for i in range(1, tree.parent.size):
        if end != ALL_LINKS and not joint_moves_body(tree, i, tree.link_body[end]):
            continue
        P, Vi, Ti = V[6 * m * tree.parent[i]:], V[6 * m * i:6 * m * i + 6 * m], T[12 * (m + 1) * i:]
        for k in range(m):
            w, u = rest
            for j in range(k + 1):
                R, S = load9(Ti, 12 * (k - j)), joint_add(tree, i, rest, v[j * nv:])
                w, u = add_rotate(w, R, S[0]), add_rotate(u, R, S[1])
            store_twist(Vi, k, (w, u))                            # along world axes, about the body's origin
        for k in range(m - 1, -1, -1):                            # downwards: w_j must remain that of the joint until its turn
            W = add(load_twist(P, k), load_twist(Vi, k))
            for j in range(k + 1):
                W = W[0], add_cross(W[1], load3(Ti, 12 * (k - j) + 9), load3(Vi, 6 * j))
            store_twist(Vi, k, W)


@inline_kernel
def link_twist(tree, link, k, frame, m, X, V):
    """Return coefficient k of a link's twist. X: its pose; V: twists of the bodies, in the world unless the frame is LOCAL."""
    W = load_twist(V[6 * m * tree.link_body[link]:], k)
    if frame == LOCAL:
        return Ad_inv(load_pose(tree.link_pose, link), W)
    if frame == LOCAL_WORLD_ALIGNED:
        return W[0], scale3(k + 1.0, load3(X, 12 * (k + 1) + 9))
    return W


# Jacobians ------------------------------------------------------------------------------------------------------------
@inline_kernel
def clear_jacobian(tree, m, J):
    """Set J to zero."""
    for k in range(6 * tree.armature.shape[0] * (m + 1)):
        store(J, k, 0.0)


@kernel
def body_jacobian(tree, link, q, v, m, U, M, J):
    """Write J (6 nv (m + 1)): series of a link's Jacobian in its frame.

    The columns are Ad_U S with U (12 (m + 1)) the pose of body i in the link. M is workspace.
    """
    clear_jacobian(tree, m, J)
    nv, zero = tree.armature.shape[0], number_like(q, 0.0)
    constant_pose_series(U, m, inverse(load_pose(tree.link_pose, link)))
    i = tree.link_body[link]
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            move_column(joint_column(tree, i, c, zero), WORLD, m, U, U, J, tree.iv[i] + c, nv)
        apply_joint_series(tree, i, q, v, m, -1.0, U, M)
        T0 = inverse(load_pose(tree.T0, i))
        for k in range(m + 1):
            store_pose(U, k, compose(load_pose(U, k), T0))
        i = tree.parent[i]


@kernel
def world_jacobian(tree, link, frame, m, T, X, J):
    """Write J in world axes, about the world's origin or the link's. T: poses of the bodies; X: pose of the link."""
    clear_jacobian(tree, m, J)
    nv, zero = tree.armature.shape[0], number_like(T, 0.0)
    for i in range(1, tree.parent.size):
        if joint_moves_body(tree, i, tree.link_body[link]):
            for c in range(NV[tree.kind[i]]):
                move_column(joint_column(tree, i, c, zero), frame, m, T[12 * (m + 1) * i:], X, J, tree.iv[i] + c, nv)


@inline_kernel
def move_column(S, frame, m, T, X, J, column, nv):
    """Write the column of a screw S of the body at T, in the axes of T, about their origin (WORLD) or the link's, at X."""
    for k in range(m + 1):
        R = load9(T, 12 * k)
        w, v = rotate(R, S[0]), rotate(R, S[1])
        store_column(J[6 * nv * k:], column, nv, (w, v))
        for j in range(k + 1):
            e, d = load_column(J[6 * nv * j:], column, nv)[0], load3(T, 12 * (k - j) + 9)
            if frame == WORLD:
                v = add_cross(v, d, e)
            else:
                v = add_cross(v, e, sub3(load3(X, 12 * (k - j) + 9), d))
        store_column(J[6 * nv * k:], column, nv, (w, v))


# sums over bodies -----------------------------------------------------------------------------------------------------
@kernel
def total_series(tree, m, T, V, c, h):
    """Write the centre of mass c (3 (m + 1)) in the world and the momentum h (6 m) about the world's origin, sum Ad*_{T^-1} I V.

    T, V: poses and twists of the bodies, in their frames; V is overwritten.
    """
    zero = number_like(T, 0.0)
    for k in range(3 * (m + 1)):
        store(c, k, 0.0)
    for k in range(6 * m):
        store(h, k, 0.0)
    mass = zero
    for i in range(1, tree.parent.size):
        I, Ti, Vi = load_rigid(tree.I, i), T[12 * (m + 1) * i:], V[6 * m * i:6 * m * i + 6 * m]
        mass = mass + I[0]
        for k in range(m + 1):
            R, p = load_pose(Ti, k)
            store3(c, 3 * k, add3(load3(c, 3 * k), add3(rotate(R, I[1]), scale3(I[0], p))))
        for k in range(m):
            store_twist(Vi, k, momentum(I, load_twist(Vi, k)))
        for k in range(m - 1, -1, -1):                            # rotated in place, downwards
            n, f = zero6(zero)
            for j in range(k + 1):
                R = load9(Ti, 12 * j)
                n, f = add_rotate(n, R, load3(Vi, 6 * (k - j))), add_rotate(f, R, load3(Vi, 6 * (k - j) + 3))
            store_twist(Vi, k, (n, f))
        for k in range(m):
            n = load3(Vi, 6 * k)
            for j in range(k + 1):
                n = add_cross(n, load3(Ti, 12 * (k - j) + 9), load3(Vi, 6 * j + 3))
            store_twist(h, k, add(load_twist(h, k), (n, load3(Vi, 6 * k + 3))))
    for k in range(3 * (m + 1)):
        store(c, k, load(c, k) / mass)


# batches ----------------------------------------------------------------------------------------------------------------
def series_workspace_size(n, nq, nv, m, results):
    """Return the size of the workspace of an entry point below, for results of so many numbers."""
    return nq + m * nv + 12 * (m + 1) * (n + 3) + 6 * m * n + results


@inline_kernel
def series_workspace(x, n, nq, nv, m):
    """Return q (nq), v (m nv), poses of bodies (12 (m + 1) n), their twists (6 m n), three workspace poses, remaining memory."""
    size = 12 * (m + 1)
    return split_workspace(x, (nq, m * nv, size * n, 6 * m * n, size, size, size))


@inline_kernel
def load_series(tree, q, v, s, m, Q, v1):
    """Copy a state to Q and the coefficients of its velocity to v1; return a code."""
    code = load_state(tree, q, v, s, Q, v1)
    if code == OK:
        scale_rows(v1, m, tree.armature.shape[0], False)
    return code


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8, i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def link_derivatives(index, constants, memory, m, link, frame, q, v, T, V, first, last):
    """Write poses T (N, 12 (m + 1) links) and, unless V has no columns, twists V (N, 6 m links), of one link or ALL_LINKS.

    The index of the derivative varies slowest. v (N, m nv): the velocity and its derivatives.
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree = tree_views(index, constants)
    low, high = (0, nl) if link == ALL_LINKS else (link, link + 1)
    Q, v1, B, W, X, L, M, x = series_workspace(memory, n, nq, nv, m)
    T1, V1 = x[:T.shape[1]], x[T.shape[1]:T.shape[1] + V.shape[1]]
    for s in range(first, last, SIMD_WIDTH):
        code = load_series(tree, q, v, s, m, Q, v1)
        if code != OK:
            return code
        body_series(tree, Q, v1, m, link, B, M)
        if V1.size:
            if frame == LOCAL:
                body_twists(tree, Q, v1, m, link, W, L, M)
            else:
                world_twists(tree, v1, m, link, B, W)
        for l in range(low, high):
            link_series(tree, l, m, B, X)
            for k in range(m + 1):
                store_pose(T1, k * (high - low) + l - low, load_pose(X, k))
            if V1.size:
                for k in range(m):
                    store_twist(V1, k * (high - low) + l - low, link_twist(tree, l, k, frame, m, X, W))
        scale_rows(T1, m + 1, 12 * (high - low), True)
        if V1.size:
            scale_rows(V1, m, 6 * (high - low), True)
        if not all_finite(T1) or not all_finite(V1):
            return BAD_RESULT
        unpack_block(T1, T, s)
        if V1.size:
            unpack_block(V1, V, s)
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8, i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def jacobian_derivatives_batch(index, constants, memory, m, link, frame, q, v, J, first, last):
    """Write J (N, 6 nv (m + 1)) of a link. v (N, m nv): the velocity and its derivatives."""
    n, nq, nv = index[0], index[1], index[2]
    tree = tree_views(index, constants)
    Q, v1, B, _W, X, _L, M, x = series_workspace(memory, n, nq, nv, m)
    J1 = x[:J.shape[1]]
    for s in range(first, last, SIMD_WIDTH):
        code = load_series(tree, q, v, s, m, Q, v1)
        if code != OK:
            return code
        if frame == LOCAL:
            body_jacobian(tree, link, Q, v1, m, X, M, J1)
        else:
            body_series(tree, Q, v1, m, link, B, M)
            link_series(tree, link, m, B, X)
            world_jacobian(tree, link, frame, m, B, X, J1)
        scale_rows(J1, m + 1, 6 * nv, True)
        if not store_block(J1, J, s):
            return BAD_RESULT
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def total_derivatives(index, constants, memory, m, q, v, c, h, first, last):
    """Write centre of mass c (N, 3 (m + 1)) and momentum h (N, 6 m)."""
    n, nq, nv = index[0], index[1], index[2]
    tree = tree_views(index, constants)
    Q, v1, B, W, _X, L, M, x = series_workspace(memory, n, nq, nv, m)
    c1, h1 = x[:3 * (m + 1)], x[3 * (m + 1):9 * m + 3]
    for s in range(first, last, SIMD_WIDTH):
        code = load_series(tree, q, v, s, m, Q, v1)
        if code != OK:
            return code
        body_series(tree, Q, v1, m, ALL_LINKS, B, M)
        body_twists(tree, Q, v1, m, ALL_LINKS, W, L, M)
        total_series(tree, m, B, W, c1, h1)
        scale_rows(c1, m + 1, 3, True)                  # not finite if no body has mass
        scale_rows(h1, m, 6, True)
        if not all_finite(h1):
            return BAD_RESULT
        unpack_block(c1, c, s)
        unpack_block(h1, h, s)
    return OK
