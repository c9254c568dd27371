"""Residuals of kinematic tasks and constraints at a configuration, and their exact derivatives.

A task compares link A with link B, or with the world (B = WORLD_LINK). Its residual depends on the pose of A in B only. So a
motion of B changes it as the opposite motion of A does. With R_A, R_B rotations of the links, all vectors below in axes of B:

    POSITION      p - target                     p: a point of A
    ORIENTATION   log(R_B^T R_A R_target^T)
    DIRECTION     f (d x a)                      a: an axis of A; d: a direction in B; |residual|: their angle t; f = t / sin t
    LOOK_AT       f (u x a)                      u: the direction from a point of A to a point of B
    DISTANCE      |p - s| - target               s: a point of B
    MASS_CENTRE   c - target                     c: the centre of mass of the moving bodies
    POSTURE       q (-) target                   a displacement (nv)

Equations of constraints come first, then those of the blocks in their order.
"""
from math import pi as PI
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import common_body, joint_column, tree_views
from liedyn.joints.loop_joints import CONSTRAINT_MOTION_SIZE, constraint_views, frame_count
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_block, load_configuration, store_block
from liedyn.kernels.constraints.equations import (
    constraint_frames,
    frame_workspace,
    frame_workspace_size,
    residuals,
    store_constraint_jacobian,
)
from liedyn.kernels.kinematics import joint_poses
from liedyn.kernels.manifold import difference, difference_derivatives
from liedyn.lie.se3 import compose, identity
from liedyn.lie.simd import SIMD_WIDTH, atan2, load, maximum, number_like, sqrt, store, where_less
from liedyn.lie.so3 import (
    dexp_inv3,
    horner,
    quaternion_conjugate,
    quaternion_log,
    quaternion_product,
    rotation_quaternion,
)
from liedyn.lie.vectors import (
    add3,
    add_cross,
    add_rotate,
    cross,
    dot3,
    load3,
    load_pose,
    load_rigid,
    matmul3,
    neg3,
    rotate,
    rotate_back,
    scale3,
    store3,
    store_pose,
    sub3,
    transpose,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import array_at, entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace

POSITION, ORIENTATION, DIRECTION, LOOK_AT, DISTANCE, MASS_CENTRE, POSTURE = range(7)
WORLD_LINK = -1
KIND, LINK_A, LINK_B, FIRST_NUMBER, BLOCK_SIZE = range(5)        # of a block; the size of a block in `blocks`

# numbers of a block in the array of targets, and its equations; of POSTURE nq and nv:
# point, target | quaternion | axis, direction | axis, point of A, point of B | point of A, point of B, length | target
TARGET_SIZES = (6, 4, 6, 9, 7, 3)
EQUATION_COUNTS = (3, 3, 3, 3, 1, 3)

_SMALL_COSINE = 0.04         # 1 - cos t below which f is a series: its terms end at 1e-17
_OPPOSITE = 1e-12            # square of the sine: directions that are opposite up to this have no unique rotation between them
_TINY = 1e-300
# t / sin t in x = 1 - cos t: 2^n n!^2 / (2n + 1)!, and its derivative with respect to x
_ANGLE_SERIES = (1.0, 1 / 3, 2 / 15, 2 / 35, 8 / 315, 8 / 693, 16 / 3003, 16 / 6435, 128 / 109395, 128 / 230945)
_ANGLE_SLOPES = (1 / 3, 4 / 15, 6 / 35, 32 / 315, 40 / 693, 96 / 3003, 112 / 6435, 1024 / 109395, 1152 / 230945, 2560 / 969969)


# batches ----------------------------------------------------------------------------------------------------------------
def task_workspace_size(n, nq, nv, frames, m, driven, targets):
    """Return the size (numbers) of the workspace of `task_equations` for one state, with m equations."""
    return (28 * n + nq + targets + m + m * nv + 15 * nv + 2 * nv * nv + CONSTRAINT_MOTION_SIZE * driven
            + frame_workspace_size(frames))


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
             nogil=True)
def task_equations(index, constants, memory, blocks, loop_index, loop_constants, q, target, residual, derivative, first, last):
    """Write residual (N, m) and derivative (N, m nv) of states first … last - 1.

    blocks: KIND, LINK_A, LINK_B, FIRST_NUMBER of each block. target (N, …): motion of driven closures, then numbers of the
    blocks. loop_index, loop_constants: of the model; empty without constraints.
    """
    nq, nv, m = index[1], index[2], residual.shape[1]
    tree, (Q, values, r, J, x) = tree_views(index, constants), split_workspace(memory, (nq, target.shape[1], m, m * nv))
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, k, Q)
        if code != OK:
            return code
        load_block(target, k, values)
        write_task_equations(tree, blocks, loop_index, loop_constants, Q, values, r, J, x)
        if not (store_block(r, residual, k) and store_block(J, derivative, k)):
            return BAD_RESULT
    return OK


@entry_point("i8(i8,i8,i8,i8,i8)")
def task_equations_generic(header, q, target, residual, derivative):
    """Write the residual (m) and its derivative (m nv) of one state; all arguments are addresses.

    header (14,): addresses and sizes of index, constants, loop_index, loop_constants, blocks and workspace; the size of the
    target, and m.
    """
    h = array_at(header, 14).view(np.int64)
    index, loop_index = array_at(h[0], h[1]).view(np.int64), array_at(h[4], h[5]).view(np.int64)
    constants, loop_constants, blocks = array_at(h[2], h[3]), array_at(h[6], h[7]), array_at(h[8], h[9]).view(np.int64)
    m = h[13]
    write_task_equations(tree_views(index, constants), blocks, loop_index, loop_constants, array_at(q, index[1]),
                         array_at(target, h[12]), array_at(residual, m), array_at(derivative, m * index[2]),
                         array_at(h[10], h[11]))
    return OK



# one state --------------------------------------------------------------------------------------------------------------

class TaskWorkspace(NamedTuple):
    """Poses of the bodies, and sums over the bodies beyond each joint."""

    T: np.ndarray          # (12n,) poses in the world
    relative: np.ndarray   # (12n,) poses in the parents
    mass: np.ndarray       # (4n,) mass and first moment about the world's origin of all bodies beyond a joint
    x: np.ndarray          # (nv,)
    D: np.ndarray          # (nv nv,)
    E: np.ndarray          # (nv nv,)


@inline_kernel
def write_task_equations(tree, blocks, loop_index, loop_constants, q, target, residual, derivative, memory):
    """Write residual (m) and derivative (m nv) of the constraints and of all blocks."""
    n, nv = tree.parent.size, tree.above.size
    T, relative, mass, x, D, E, rest = split_workspace(memory, (12 * n, 12 * n, 4 * n, nv, nv * nv, nv * nv))
    ws, zero = TaskWorkspace(T, relative, mass, x, D, E), number_like(q, 0.0)
    joint_poses(tree, q, ws.relative)
    store_pose(ws.T, 0, identity(zero))
    for i in range(1, n):
        store_pose(ws.T, i, compose(load_pose(ws.T, tree.parent[i]), load_pose(ws.relative, i)))
    for k in range(derivative.shape[0]):
        store(derivative, k, zero)
    row = 0
    if loop_index.size:
        row = write_constraints(tree, loop_index, loop_constants, q, target, residual, derivative, ws, rest)
    for b in range(0, blocks.size, BLOCK_SIZE):
        kind, first = blocks[b + KIND], blocks[b + FIRST_NUMBER]
        if kind == POSTURE:
            write_posture(tree, q, target[first:], row, residual, derivative, ws)
        else:
            row += write_block(tree, kind, blocks[b + LINK_A], blocks[b + LINK_B], target[first:], row, residual, derivative, ws)


@inline_kernel
def write_constraints(tree, loop_index, loop_constants, q, target, residual, derivative, ws, memory):
    """Write the residual of all constraints and its derivative. Return their number."""
    m, nv, loops = loop_index[1], tree.above.size, constraint_views(loop_index, loop_constants)
    columns, rest = split_workspace(memory, (6 * nv,))
    frames = frame_workspace(rest, frame_count(loop_index))
    constraint_frames(tree, loops, q, ws.relative, target, frames)
    residuals(loops, q, frames, residual[:m])
    store_constraint_jacobian(tree, loops, ws.relative, frames, columns, derivative[:m * nv], True)
    return m


@inline_kernel
def write_posture(tree, q, target, row, residual, derivative, ws):
    """Write the displacement (nv) from the target to q, and its derivative."""
    nv = tree.above.size
    difference(tree, target, q, ws.x)
    difference_derivatives(tree, ws.x, ws.D, ws.E)
    for k in range(nv):
        store(residual, row + k, load(ws.x, k))
        for j in range(nv):
            store(derivative, (row + k) * nv + j, load(ws.E, k * nv + j))


@inline_kernel
def link_frame(tree, link, ws, zero):
    """Return the body of a link and its pose in the world. WORLD_LINK: the ground."""
    if link == WORLD_LINK:
        return 0, identity(zero)
    body = tree.link_body[link]
    return body, compose(load_pose(ws.T, body), load_pose(tree.link_pose, link))


@inline_kernel
def write_block(tree, kind, link_a, link_b, target, row, residual, derivative, ws):
    """Write the equations of a block, from row `row` on. Return their number."""
    zero = number_like(ws.T, 0.0)
    nothing = zero, zero, zero
    B, (R_b, p_b) = link_frame(tree, link_b, ws, zero)
    if kind == MASS_CENTRE:
        p = sum_masses(tree, ws, zero)
        store3(residual, row, sub3(rotate_back(R_b, sub3(p, p_b)), load3(target, 0)))
        add_mass_columns(tree, R_b, row, derivative, ws, zero)
        add_columns(tree, kind, B, 0, -1.0, BlockState(p, R_b, nothing, nothing, zero), row, derivative, ws)
        return 3
    A, (R_a, p_a) = link_frame(tree, link_a, ws, zero)
    p, y, z, s = p_a, nothing, nothing, zero
    if kind == POSITION:
        p = add_rotate(p_a, R_a, load3(target, 0))
        store3(residual, row, sub3(rotate_back(R_b, sub3(p, p_b)), load3(target, 3)))
    elif kind == ORIENTATION:
        desired = load(target, 0), load(target, 1), load(target, 2), load(target, 3)
        y = quaternion_log(quaternion_product(rotation_quaternion(matmul3(transpose(R_b), R_a)), quaternion_conjugate(desired)))
        store3(residual, row, y)
    elif kind == DISTANCE:
        p = add_rotate(p_a, R_a, load3(target, 0))
        line = sub3(p, add_rotate(p_b, R_b, load3(target, 3)))
        length = sqrt(maximum(dot3(line, line), zero + _TINY))
        y = scale3(1.0 / length, line)
        store(residual, row, length - load(target, 6))
    else:
        y, z = rotate_back(R_b, rotate(R_a, load3(target, 0))), load3(target, 3)
        if kind == LOOK_AT:
            p = add_rotate(p_a, R_a, z)
            line = sub3(load3(target, 6), rotate_back(R_b, sub3(p, p_b)))
            s = 1.0 / sqrt(maximum(dot3(line, line), zero + _TINY))
            z = scale3(s, line)
        store3(residual, row, direction_error(y, z))
    state, common = BlockState(p, R_b, y, z, s), common_body(tree, A, B)
    add_columns(tree, kind, A, common, 1.0, state, row, derivative, ws)
    add_columns(tree, kind, B, common, -1.0, state, row, derivative, ws)
    return 1 if kind == DISTANCE else 3


class BlockState(NamedTuple):
    """What the derivative of a block depends on, besides the twists of its links.

    p    (3,) point of A in the world
    R_b  (9,) rotation of B in the world
    y    (3,) ORIENTATION: the residual; DISTANCE: direction from s to p, world axes; otherwise the axis a
    z    (3,) d or u
    s    LOOK_AT: inverse distance of the points
    """

    p: tuple
    R_b: tuple
    y: tuple
    z: tuple
    s: float


@inline_kernel
def add_columns(tree, kind, body, common, sign, state, row, derivative, ws):
    """Add the derivatives of a block with respect to the joints from a body to `common`, times a sign."""
    nv, zero, i = tree.above.size, number_like(ws.T, 0.0), body
    while i != common:
        R, p_i = load_pose(ws.T, i)
        arm = sub3(state.p, p_i)
        for c in range(NV[tree.kind[i]]):
            S = joint_column(tree, i, c, zero)
            w = rotate(R, S[0])
            rate = block_rate(kind, state, w, add_cross(rotate(R, S[1]), w, arm))
            k = row * nv + tree.iv[i] + c
            if kind == DISTANCE:
                store(derivative, k, load(derivative, k) + sign * rate[0])
            else:
                for j in range(3):
                    store(derivative, k + j * nv, load(derivative, k + j * nv) + sign * rate[j])
        i = tree.parent[i]


@inline_kernel
def block_rate(kind, state, w, v):
    """Return the rate of the residual from the angular velocity w of A relative to B and the velocity v of its point p.

    w, v: in world axes.
    """
    zero = w[0] * 0.0
    if kind == DISTANCE:
        return dot3(state.y, v), zero, zero
    turning, moving = rotate_back(state.R_b, w), rotate_back(state.R_b, v)
    if kind in (POSITION, MASS_CENTRE):
        return moving
    if kind == ORIENTATION:
        return dexp_inv3(state.y, turning)
    rate = zero, zero, zero
    if kind == LOOK_AT:
        rate = scale3(-state.s, sub3(moving, scale3(dot3(state.z, moving), state.z)))
    return direction_error_rate(state.y, state.z, turning, cross(turning, state.y), rate)


# directions: the rotation vector by which a must turn towards d, with opposite sign -------------------------------------

@inline_kernel
def angle_over_sine(a, d):
    """Return c = a . d, f = t / sin t, df/dc, and the square of sin t, of unit vectors at the angle t."""
    apart, c, normal = sub3(a, d), dot3(a, d), cross(a, d)
    x, ss = 0.5 * dot3(apart, apart), dot3(normal, normal)
    large = maximum(ss, 0.0 * ss + _OPPOSITE)
    s = sqrt(large)
    far = atan2(s, c) / s
    return (c, where_less(x, _SMALL_COSINE, horner(x, _ANGLE_SERIES), far),
            where_less(x, _SMALL_COSINE, -horner(x, _ANGLE_SLOPES), (c * far - 1.0) / large), ss)


@inline_kernel
def direction_error(a, d):
    """Return f (a x d) with opposite sign: its norm is the angle. Of opposite directions, half a turn about any normal."""
    c, f, _, ss = angle_over_sine(a, d)
    error, turn = scale3(-f, cross(a, d)), scale3(-PI, normal_of(d))
    opposite = where_less(c, 0.0, where_less(ss, _OPPOSITE, 1.0, 0.0), 0.0)
    return select3(opposite, turn, error)


@inline_kernel
def direction_error_rate(a, d, w, da, dd):
    """Return the rate of `direction_error` for rates da = w x a and dd. Of opposite directions: that of half a turn, w."""
    c, f, df, ss = angle_over_sine(a, d)
    normal = cross(a, d)
    rate = add3(scale3(df * (dot3(da, d) + dot3(a, dd)), normal), scale3(f, add3(cross(da, d), cross(a, dd))))
    opposite = where_less(c, 0.0, where_less(ss, _OPPOSITE, 1.0, 0.0), 0.0)
    return select3(opposite, w, neg3(rate))


@inline_kernel
def normal_of(d):
    """Return a unit vector that is normal to the unit vector d."""
    zero = 0.0 * d[0]
    n = select3(where_less(d[0] * d[0], 0.5, 1.0, 0.0), cross(d, (zero + 1.0, zero, zero)), cross(d, (zero, zero + 1.0, zero)))
    return scale3(1.0 / sqrt(dot3(n, n)), n)


@inline_kernel
def select3(condition, yes, no):
    """Return `yes` where the condition is 1, `no` where it is 0."""
    return (where_less(0.5, condition, yes[0], no[0]), where_less(0.5, condition, yes[1], no[1]),
            where_less(0.5, condition, yes[2], no[2]))


# centre of mass ---------------------------------------------------------------------------------------------------------

@inline_kernel
def sum_masses(tree, ws, zero):
    """Write ws.mass: mass and first moment of all bodies beyond each joint; those of the robot at place 0. Return its centre."""
    store(ws.mass, 0, zero)
    store3(ws.mass, 1, (zero, zero, zero))
    for i in range(1, tree.parent.size):
        I, (R, p) = load_rigid(tree.I, i), load_pose(ws.T, i)
        store(ws.mass, 4 * i, zero + I[0])
        store3(ws.mass, 4 * i + 1, add3(scale3(I[0], p), rotate(R, I[1])))
    for i in range(tree.parent.size - 1, 0, -1):
        for k in range(4):
            at = 4 * tree.parent[i] + k
            store(ws.mass, at, load(ws.mass, at) + load(ws.mass, 4 * i + k))
    return scale3(1.0 / load(ws.mass, 0), load3(ws.mass, 1))


@inline_kernel
def add_mass_columns(tree, R_b, row, derivative, ws, zero):
    """Write the derivative of the centre of mass with respect to all joints, in axes of B."""
    nv, scale = tree.above.size, 1.0 / load(ws.mass, 0)
    for i in range(1, tree.parent.size):
        R, p_i = load_pose(ws.T, i)
        m, h = load(ws.mass, 4 * i), load3(ws.mass, 4 * i + 1)
        arm = sub3(h, scale3(m, p_i))
        for c in range(NV[tree.kind[i]]):
            S = joint_column(tree, i, c, zero)
            v = rotate_back(R_b, scale3(scale, add_cross(scale3(m, rotate(R, S[1])), rotate(R, S[0]), arm)))
            for j in range(3):
                store(derivative, (row + j) * nv + tree.iv[i] + c, v[j])
