"""Residuals of constraints, A v, gamma (A a + gamma = 0), A; wrenches of multipliers."""
from liedyn.joints.joint_model import tree_views
from liedyn.joints.loop_joints import (
    CONSTRAINT_MOTION_SIZE,
    EQUATION_COUNT,
    FIRST,
    KIND,
    closure_equation,
    constraint_views,
    frame_count,
)
from liedyn.kernels.batch_blocks import (
    BAD_F_EXT,
    BAD_RESULT,
    OK,
    all_finite,
    load_block,
    load_configuration,
    load_state,
    store_block,
    unpack_block,
)
from liedyn.kernels.constraints.equations import (
    accelerations,
    constraint_frames,
    frame_workspace,
    frame_workspace_size,
    load_closure_direction,
    residuals,
    store_constraint_jacobian,
    velocities,
)
from liedyn.kernels.kinematics import joint_poses
from liedyn.kernels.newton_euler import BodyMotion, body_motions
from liedyn.lie.se3 import add, dAd_inv, neg, scale, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like
from liedyn.lie.vectors import clear, load_pose, store_twist
from liedyn.model.description import COUPLING
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.numba_internals import split_workspace

RESIDUAL, VELOCITY, BIAS, JACOBIAN = range(4)


@kernel
def constraint_state(tree, loops, q, v, constraint_motion, quantity, zeros, ws, frames, columns, out):
    """Write out: (m) for RESIDUAL, VELOCITY or BIAS, (m nv) for JACOBIAN. zeros (nv); columns (6nv) is workspace."""
    if quantity in (VELOCITY, BIAS):
        clear(ws.V[:6])
        clear(ws.dV[:6])
        body_motions(tree, q, v, zeros, ws)
    else:
        joint_poses(tree, q, ws.T)
    constraint_frames(tree, loops, q, ws.T, constraint_motion, frames)
    if quantity == RESIDUAL:
        residuals(loops, q, frames, out)
    elif quantity == VELOCITY:
        velocities(loops, v, ws.V, constraint_motion, frames, out)
    elif quantity == BIAS:
        accelerations(loops, v, zeros, ws.V, ws.dV, constraint_motion, frames, out)
    else:
        store_constraint_jacobian(tree, loops, ws.T, frames, columns, out)


# batches ----------------------------------------------------------------------------------------------------------------
def constraint_state_workspace_size(n, nq, nv, nf, m, driven):
    """Return the size (numbers) of the workspace of `constraint_states` for one state."""
    return 24 * n + frame_workspace_size(nf) + nq + 8 * nv + CONSTRAINT_MOTION_SIZE * driven + m * nv + m


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], i8, i8)",
             nogil=True)
def constraint_states(index, constants, memory, loop_index, loop_constants, q, v, constraint_motion, quantity, out, first, last):
    """States first … last - 1. constraint_motion (N, 24 driven). out (N, m), or (N, m nv) of JACOBIAN."""
    n, nq, nv = index[0], index[1], index[2]
    m, driven = loop_index[1], loop_index[3]
    size = m * nv if quantity == JACOBIAN else m
    tree, loops = tree_views(index, constants), constraint_views(loop_index, loop_constants)
    Q, V, zeros, D, columns, Out, T, W, dW, x = split_workspace(
        memory, (nq, nv, nv, CONSTRAINT_MOTION_SIZE * driven, 6 * nv, size, 12 * n, 6 * n, 6 * n))
    ws, frames = BodyMotion(T, W, dW), frame_workspace(x, frame_count(loop_index))
    clear(zeros)
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, v, k, Q, V)
        if driven:
            load_block(constraint_motion, k, D)
        if code == OK and not all_finite(D):
            code = BAD_F_EXT
        if code != OK:
            return code
        constraint_state(tree, loops, Q, V, D, quantity, zeros, ws, frames, columns, Out)
        if not store_block(Out, out, k):
            return BAD_RESULT
    return OK


# Constraint forces as wrenches: sums of multipliers times equations -----------------------------------------------------

def closure_wrenches_workspace_size(n, nq, nc, nf, m, driven):
    """Return the size (numbers) of the workspace of `closure_wrenches` for one state."""
    return frame_workspace_size(nf) + 12 * n + nq + CONSTRAINT_MOTION_SIZE * driven + m + 12 * nc


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def closure_wrenches(index, constants, memory, loop_index, loop_constants, q, constraint_motion, multipliers, out, first, last):
    """Write wrenches of constraint forces, for states first … last - 1.

    out (N, 12 nc): for each constraint the wrench on the body of A and on the body of B, in their frames; zero for couplings,
    whose forces act on coordinates, not on bodies.
    """
    n, nq = index[0], index[1]
    nc, m, driven = loop_index[0], loop_index[1], loop_index[3]
    tree, loops = tree_views(index, constants), constraint_views(loop_index, loop_constants)
    T, Q, D, block, Out, x = split_workspace(memory, (12 * n, nq, CONSTRAINT_MOTION_SIZE * driven, m, 12 * nc))
    ws = frame_workspace(x, frame_count(loop_index))
    for s in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q, s, Q)
        load_block(multipliers, s, block)
        if driven:
            load_block(constraint_motion, s, D)
        if code != OK:
            return code
        joint_poses(tree, Q, T)
        constraint_frames(tree, loops, Q, T, D, ws)
        store_wrenches(loops, block, ws, Out)
        unpack_block(Out, out, s)
    return OK


@inline_kernel
def store_wrenches(loops, multipliers, ws, out):
    """Write the wrenches (12 nc) of one state."""
    zero = number_like(out, 0.0)
    for c in range(loops.record.shape[0]):
        W = zero6(zero)
        on_a, on_b = W, W
        if loops.record[c, KIND] < COUPLING:
            for r in range(loops.record[c, EQUATION_COUNT]):
                row = closure_equation(loops.record[c, KIND], r, load_closure_direction(ws, c))
                W = add(W, scale(load(multipliers, loops.record[c, FIRST] + r), row))
            on_b = dAd_inv(load_pose(loops.pose, 2 * c + 1), W)
            on_a = neg(dAd_inv(load_pose(ws.T_a, c), W))
        store_twist(out, 2 * c, on_a)
        store_twist(out, 2 * c + 1, on_b)
