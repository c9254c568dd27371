"""Constraint forces as wrenches: multipliers times the closures' rows."""
from liedyn.jit import entry, primitive
from liedyn.joints.closures import FIRST, KIND, ROW_COUNT, closure_row, loops_of
from liedyn.joints.kinds import COUPLING
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import OK, take_configuration
from liedyn.kernels.loops.loop_rows import closure_frames, frame_work, load_guide
from liedyn.kernels.recursions.kinematics import joint_poses
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import WIDTH, load, number_like
from liedyn.lie.rows import load_pose, store_twist
from liedyn.lie.se3 import add, dAd_inv, neg, scale, zero6
from liedyn.seam.views import carve


def closure_wrenches_memory(n, nq, nv, nc, m, driven):
    return 27 * nc + 12 * n + nq + 24 * driven + m + 12 * nc


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def closure_wrenches(index, constants, memory, loop_index, loop_constants, q, drive, multipliers, out, first, last):
    """States first … last - 1. out (N, 12 nc): for each constraint the wrench on the body of A and on that of B, in their frames;
    zero for couplings, whose forces are joint forces."""
    n, nq = index[0], index[1]
    nc, m, driven = loop_index[0], loop_index[1], loop_index[3]
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    T, Q, D, given, Out, x = carve(memory, (12 * n, nq, 24 * driven, m, 12 * nc))
    work = frame_work(x, nc)
    for s in range(first, last, WIDTH):
        code = take_configuration(tree, q, s, Q)
        pack(multipliers, s, given)
        if driven:
            pack(drive, s, D)
        if code != OK:
            return code
        joint_poses(tree, Q, T)
        closure_frames(tree, loops, T, D, work)
        store_wrenches(loops, given, work, Out)
        unpack(Out, out, s)
    return OK


@primitive
def store_wrenches(loops, multipliers, work, out):
    zero = number_like(out, 0.0)
    for c in range(loops.record.shape[0]):
        W = zero6(zero)
        on_a, on_b = W, W
        if loops.record[c, KIND] != COUPLING:
            for r in range(loops.record[c, ROW_COUNT]):
                row = closure_row(loops.record[c, KIND], r, load_guide(work, c))
                W = add(W, scale(load(multipliers, loops.record[c, FIRST] + r), row))
            on_b = dAd_inv(load_pose(loops.pose, 2 * c + 1), W)
            on_a = neg(dAd_inv(load_pose(work.T_a, c), W))
        store_twist(out, 2 * c, on_a)
        store_twist(out, 2 * c + 1, on_b)
