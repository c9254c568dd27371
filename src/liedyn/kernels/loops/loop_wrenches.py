"""Constraint forces as wrenches: multipliers times the closures' rows."""
from liedyn.jit import entry
from liedyn.joints.closures import FIRST, KIND, ROW_COUNT, closure_row, loops_of
from liedyn.joints.kinds import COUPLING
from liedyn.joints.motion import joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import OK, SHAPE, bad_configuration, fits
from liedyn.kernels.loops.loop_rows import closure_frames, load_guide, row_memory, row_work
from liedyn.lie.lanes import load
from liedyn.lie.rows import load_pose, store_pose, store_twist
from liedyn.lie.se3 import add, dAd_inv, neg, scale


def closure_wrenches_memory(n, nv, nc, m): return row_memory(n, nv, nc, m) + 12 * n + 8


@entry("i8(i8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def closure_wrenches(index, constants, memory, loop_index, loop_constants, q, drive, multipliers, out, first, last):
    """States first … last - 1. out (N, 12 nc): for each constraint the wrench on the body of A and on that of B, in their frames;
    zero for couplings, whose forces are joint forces."""
    n, nq, nv = index[0], index[1], index[2]
    nc, m, driven, rows = loop_index[0], loop_index[1], loop_index[3], q.shape[0]
    if (q.shape[1] != nq or not (fits(drive, rows, 24 * driven) and fits(multipliers, rows, m) and fits(out, rows, 12 * nc))):
        return SHAPE
    tree, loops, k = tree_of(index, constants), loops_of(loop_index, loop_constants), memory.size - 12 * n
    T, work = memory[k:], row_work(memory[:k], n, nv, nc, m)
    for s in range(first, last):
        code = bad_configuration(tree, q[s], nq)
        if code != OK:
            return code
        for i in range(1, n):
            store_pose(T, i, joint_pose(tree, i, q[s]))
        closure_frames(tree, loops, T, drive[s], work)
        for c in range(nc):
            W = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            on_a, on_b = W, W
            if loops.record[c, KIND] != COUPLING:
                for r in range(loops.record[c, ROW_COUNT]):
                    row = closure_row(loops.record[c, KIND], r, load_guide(work, c))
                    W = add(W, scale(load(multipliers[s], loops.record[c, FIRST] + r), row))
                on_b = dAd_inv(load_pose(loops.pose, 2 * c + 1), W)
                on_a = neg(dAd_inv(load_pose(work.T_a, c), W))
            store_twist(out[s], 2 * c, on_a)
            store_twist(out[s], 2 * c + 1, on_b)
    return OK
