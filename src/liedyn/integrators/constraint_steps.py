"""What a run of a constrained system does besides: the way back onto the constraints, and records of them. ties: a LoopPlant;
where it is None, Numba prunes all of that at typing."""
from liedyn.integrators.run_state import copy
from liedyn.jit import primitive
from liedyn.joints.retraction import retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.loop_motion import close_loops, measure, move_drives
from liedyn.kernels.recursions.hybrid import hybrid_work
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, RUNNING, impose


@primitive
def bring_back(index, constants, schedule, signals, ties, t, counted, q0, y, q, work):
    """The state q0 (+) x, v of y goes back onto the constraints: into q, which may be q0, and y with x = 0. Returns a code."""
    if ties is not None:
        nv = schedule.level.size
        retract(tree_of(index, constants), q0, y[:nv], q)
        for k in range(nv):
            y[k] = 0.0
        return settle(index, constants, schedule, signals, ties, t, counted, q, y[nv:2 * nv], work)
    return RUNNING


@primitive
def settle(index, constants, schedule, signals, ties, t, counted, q, v, work):
    """Against drift: prescribed values, then the constraints. Returns a code."""
    impose(tree_of(index, constants), schedule, signals, t, q, v, work)
    if not move_drives(signals, ties, t, work):
        return BAD_SIGNAL
    return close_loops(index, constants, ties, counted, q, v)


@primitive
def copy_constraints(index, constants, ties, record, i, work):
    if ties is not None:
        tree = tree_of(index, constants)
        copy(ties.multipliers, record.multipliers[i])
        copy(ties.drive, record.drive[i])
        V = hybrid_work(work.memory, tree.parent.size, tree.above.size).V
        measure(index, constants, ties, work.q, work.v, V, record.residual[i])
