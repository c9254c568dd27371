"""The right-hand side by loops, also under constraints; and the way back onto these."""
from numpy import int64

from liedyn.jit import kernel, primitive
from liedyn.joints.retraction import retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.by_parts import FAR
from liedyn.kernels.loops.loop_motion import close_loops, deficit_of, look_around, move_drives, tied_hybrid, tied_power
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, RUNNING, impose, rates, right_hand_side, set_out, watch
from liedyn.kernels.simulation.signals import keep_readings


@kernel
def rates_by_loops(index, constants, plant, schedule, signals, ties, t, q0, y, K, row, work):
    """Rates of y at t into K[row], and behind them what as many switches as K has columns for read; row 0 is of an accepted
    state, the last one of an output. ties: LoopPlant, or None for a robot without constraints: then nothing of them is compiled.
    Leaves the state in work. Returns a code."""
    tree = tree_of(index, constants)
    code = int64(open_or_tied(tree, plant, schedule, signals, ties, t, q0, y, K[row][:y.size], work))
    keep_readings(signals.held, K, row, y.size)
    if ties is not None:                                      # noqa: SIM102 - Numba prunes what asks for None alone
        if (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
            code = look_around(ties, t)
    return code


@primitive
def open_or_tied(tree, plant, schedule, signals, ties, t, q0, y, dy, work):
    if ties is None:
        return right_hand_side(tree, plant, schedule, signals, t, q0, y, dy, work)
    return tied_right_hand_side(tree, plant, schedule, signals, ties, t, q0, y, dy, work)


@primitive
def tied_right_hand_side(tree, plant, schedule, signals, ties, t, q0, y, dy, work):
    """`right_hand_side` under constraints."""
    set_out(tree, plant, schedule, signals, t, q0, y, work)
    move_drives(signals, ties, t, work)
    if tied_hybrid(ties, work) == FAR:
        return FAR
    watch(schedule, signals, t, work)
    return rates(tree, plant, signals, y, deficit_of(ties), tied_power(ties), dy, work)


@primitive
def back_by_loops(index, constants, schedule, signals, ties, t, counted, q0, y, q, work):
    """The state q0 (+) x, v of y goes back onto the constraints, after prescribed values: into q, which may be q0, and y with
    x = 0. Returns a code."""
    if ties is not None:
        tree, nv = tree_of(index, constants), schedule.level.size
        v = y[nv:2 * nv]
        retract(tree, q0, y[:nv], q)
        for k in range(nv):
            y[k] = 0.0
        impose(schedule, signals, t, q, v, work)
        work.flag[0] = -1.0
        move_drives(signals, ties, t, work)
        return BAD_SIGNAL if work.flag[0] >= 0.0 else close_loops(ties, counted, q, v)
    return RUNNING
