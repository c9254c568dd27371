"""Constraints of a configuration and a motion: residual, A v, gamma (A a + gamma = 0) and A itself."""


from liedyn.jit import entry, kernel
from liedyn.joints.closures import loops_of
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, OK, finite, give, take_state
from liedyn.kernels.loops.loop_rows import accelerations, closure_frames, frame_work, residuals, store_rows, velocities
from liedyn.kernels.recursions.kinematics import joint_poses
from liedyn.kernels.recursions.newton_euler import BodyMotion, motions
from liedyn.lie.blocks import pack
from liedyn.lie.lanes import WIDTH
from liedyn.lie.rows import clear
from liedyn.seam.views import carve

RESIDUAL, VELOCITY, BIAS, JACOBIAN = range(4)


@kernel
def constraint_state(tree, loops, q, v, drive, what, zeros, work, rows, columns, out):
    """Writes out: (m) of RESIDUAL, VELOCITY or BIAS, or (m nv) of JACOBIAN. zeros (nv); columns (6nv): scratch."""
    if what in (VELOCITY, BIAS):
        clear(work.V[:6])
        clear(work.dV[:6])
        motions(tree, q, v, zeros, work)
    else:
        joint_poses(tree, q, work.T)
    closure_frames(tree, loops, work.T, drive, rows)
    if what == RESIDUAL:
        residuals(loops, q, rows, out)
    elif what == VELOCITY:
        velocities(loops, v, work.V, drive, rows, out)
    elif what == BIAS:
        accelerations(loops, zeros, work.V, work.dV, drive, rows, out)
    else:
        store_rows(tree, loops, work.T, rows, columns, out)


# from Python ------------------------------------------------------------------------------------------------------
def constraint_state_memory(n, nq, nv, nc, m, driven):
    return 24 * n + 27 * nc + nq + 8 * nv + 24 * driven + m * nv + m


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], i8, i8)", nogil=True)
def constraint_states(index, constants, memory, loop_index, loop_constants, q, v, drive, what, out, first, last):
    """States first … last - 1. drive (N, 24 driven). out (N, m), or (N, m nv) of JACOBIAN."""
    n, nq, nv = index[0], index[1], index[2]
    nc, m, driven = loop_index[0], loop_index[1], loop_index[3]
    size = m * nv if what == JACOBIAN else m
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    Q, V, zeros, D, columns, Out, T, W, dW, x = carve(memory, (nq, nv, nv, 24 * driven, 6 * nv, size, 12 * n, 6 * n, 6 * n))
    work, frames = BodyMotion(T, W, dW), frame_work(x, nc)
    clear(zeros)
    for k in range(first, last, WIDTH):
        code = take_state(tree, q, v, k, Q, V)
        if driven:
            pack(drive, k, D)
        if code == OK and not finite(D):
            code = BAD_F_EXT
        if code != OK:
            return code
        constraint_state(tree, loops, Q, V, D, what, zeros, work, frames, columns, Out)
        if not give(Out, out, k):
            return BAD_RESULT
    return OK
