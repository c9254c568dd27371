"""The right-hand side at the stages of a Runge-Kutta step, by loops, also under constraints."""
from numba import types
from numba.extending import overload
from numpy import int64

from liedyn.jit import kernel, primitive
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.by_parts import FAR
from liedyn.kernels.loops.loop_motion import deficit_of, look_around, move_drives, tied_hybrid, tied_power
from liedyn.kernels.simulation.right_hand_side import RUNNING, rates, right_hand_side, set_out, watch
from liedyn.kernels.simulation.signals import keep_readings


@kernel
def evaluate(index, constants, plant, schedule, signals, ties, A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work):
    """Rates at the stages first … last - 1 of a Runge-Kutta step from (t, y0) into K[first + row] …, and behind them what as
    many switches as K has columns for read; a lone evaluation is stage 0; stage 0 in row 0 is of an accepted state. Signals are
    read at `ceiling` at the latest.
    ties: LoopPlant, or None for a robot without constraints: then nothing of them is compiled. Leaves in work the state of the
    last stage. Returns a code.

    The only place where the right-hand side is compiled: a call costs about 0.1 us for its many arrays, so a step makes
    one."""
    tree = tree_of(index, constants)
    for s in range(first, last):
        for k in range(y0.size):
            y[k] = y0[k]
        for r in range(s):
            w = h * A[s, r]
            if w != 0.0:
                for k in range(y0.size):
                    y[k] += w * K[r, k]
        now = min(t + c[s] * h, ceiling)
        code = int64(open_or_tied(tree, plant, schedule, signals, ties, now, q0, y, K[s + row][:y0.size], work))
        keep_readings(signals.held, K, s + row, y0.size)
        if ties is not None and s + row == 0 and code == RUNNING:
            code = look_around(ties, now)
        if code != RUNNING:
            return code
    return RUNNING


def open_or_tied(tree, plant, schedule, signals, ties, t, q0, y, dy, work): ...


@overload(open_or_tied, inline="always")
def _open_or_tied(tree, plant, schedule, signals, ties, t, q0, y, dy, work):
    """Only the one that is needed is compiled."""
    if isinstance(ties, types.NoneType):
        return lambda tree, plant, schedule, signals, ties, t, q0, y, dy, work: right_hand_side(
            tree, plant, schedule, signals, t, q0, y, dy, work)
    return lambda tree, plant, schedule, signals, ties, t, q0, y, dy, work: tied_right_hand_side(
        tree, plant, schedule, signals, ties, t, q0, y, dy, work)


@primitive
def tied_right_hand_side(tree, plant, schedule, signals, ties, t, q0, y, dy, work):
    """`right_hand_side` under constraints."""
    set_out(tree, plant, schedule, signals, t, q0, y, work)
    move_drives(signals, ties, t, work)
    if tied_hybrid(ties, work) == FAR:
        return FAR
    watch(schedule, signals, t, work)
    return rates(tree, plant, signals, y, deficit_of(ties), tied_power(ties), dy, work)
