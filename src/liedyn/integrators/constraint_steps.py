"""What a run of a constrained system does besides: the way back onto the constraints, and records of them. ties: a LoopPlant;
where it is None, Numba prunes all of that at typing."""
from liedyn.integrators.run_state import copy
from liedyn.jit import primitive
from liedyn.joints.retraction import retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.desk import desk_of
from liedyn.kernels.loops.loop_motion import close_loops, measure, move_drives
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
    work.flag[0] = -1.0
    move_drives(signals, ties, t, work)
    if work.flag[0] >= 0.0:
        return BAD_SIGNAL
    return close_loops(ties, counted, q, v)


@primitive
def copy_constraints(ties, record, i, work):
    if ties is not None:
        copy_desk(ties.desk, record, i, work)


@primitive
def copy_desk(desk, record, i, work):
    d = desk_of(desk)
    copy(d.multipliers, record.multipliers[i])
    copy(d.drive, record.drive[i])
    measure(desk, work.q, work.v, record.residual[i])
