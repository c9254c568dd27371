"""The right-hand side by a line: machine code of one scenario, called by its address; and the way back onto constraints."""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.joints.joint_model import tree_of
from liedyn.kernels.constraints.driver import CLOSE, CLOSE_UNCOUNTED, FAR, LOOK, MULTIPLY, copy, run
from liedyn.kernels.constraints.stages import TIME, constraint_workspace_of
from liedyn.kernels.manifold import retract
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    RUNNING,
    close_loops,
    constrained_hybrid,
    constraint_power,
    finite_rates,
    hybrid_deficit,
    impose,
    look_around,
    prescribe_loop_motion,
    rates,
    right_hand_side,
    set_out,
    watch,
)
from liedyn.kernels.simulation.signal_series import polynomial_series
from liedyn.kernels.simulation.signals import READING, SWITCH, keep_readings
from liedyn.numba_tools.decorators import call_with_arrays, inline_kernel, kernel

# in addition to the codes of `right_hand_side`: the line does not hold at this state, and loops must go on
INVALID_ARGUMENTS = FAR
TERMS = 5             # Taylor coefficients of a curve: a law of motors reads four derivatives


class GeneratedCall(NamedTuple):
    """A line, and what it reads and writes besides `MotionWorkspace`: see `codegen.rhs.GeneratedRhs`."""

    address: int
    second_address: int                # under constraints: what follows the multipliers, and what brings a state back; else 0
    projection_address: int
    desk: np.ndarray           # see `kernels.constraints.stages`; empty without constraints
    t: np.ndarray              # (1,)
    curves: np.ndarray         # (5 c,) Taylor coefficients now of the signals that are curves, found by the next four
    first: np.ndarray          # (c,) int64
    count: np.ndarray          # (c,) int64
    breaks: np.ndarray
    coefficients: np.ndarray
    held: np.ndarray           # (4 s,) see `signals.Signals`
    numbers: np.ndarray
    verdict: np.ndarray        # (2,)
    readings: np.ndarray       # (s,) of switches where rates have no columns for them
    room: np.ndarray           # (6,) of a curve


@inline_kernel
def rates_generated(line, t, q0, y, K, row, ws):
    """As `rate_evaluation.rates_generic`. INVALID_ARGUMENTS where the line does not hold."""
    dy = K[row]
    readings = dy[y.size:] if K.shape[1] > y.size else line.readings
    set_inputs(line, t)
    refused = call_with_arrays(line.address, pointers(line, q0, y, dy, readings, ws))
    if line.desk.size:
        run(line.desk, MULTIPLY)
        call_with_arrays(line.second_address, pointers(line, q0, y, dy, readings, ws))
    code = verdict(line, refused, int64(line.verdict[0]), y, ws)
    if line.desk.size and (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
        constraint_workspace_of(line.desk).figures[TIME] = t
        code = run(line.desk, LOOK)
    if code == RUNNING:
        for k in range(line.readings.size):
            line.held[SWITCH * k + READING] = readings[k]
    return code


@inline_kernel
def projection_generated(line, t, counted, q0, y, q, ws):
    """As `rate_evaluation.projection_generic`."""
    set_inputs(line, t)
    refused = call_with_arrays(line.projection_address, pointers(line, q0, y, y, line.readings, ws))
    code = verdict(line, refused, RUNNING if line.verdict[1] < 0.0 else BAD_SIGNAL, y, ws)
    if code != RUNNING:
        return code
    code, d, nv = run(line.desk, CLOSE if counted else CLOSE_UNCOUNTED), constraint_workspace_of(line.desk), ws.v.size
    copy(d.q, q)
    for k in range(nv):
        y[k], y[nv + k] = 0.0, d.v[k]
    return code


@inline_kernel
def verdict(line, refused, code, y, ws):
    if code == BAD_SIGNAL:
        ws.flag[0] = line.verdict[1]
        return BAD_SIGNAL
    return INVALID_ARGUMENTS if refused and finite_rates(y) == RUNNING else code


@inline_kernel
def pointers(line, q0, y, dy, readings, ws):
    """What the line is called with."""
    return (line.t, q0, y, line.curves, line.held, line.numbers, ws.q, ws.v, ws.a, ws.tau, ws.wrench, dy, line.verdict,
            readings, line.desk)


@inline_kernel
def set_inputs(line, t):
    line.t[0] = t
    for k in range(line.first.size):
        polynomial_series(line.breaks, line.coefficients, line.first[k], line.count[k], t, line.room,
                          line.curves[TERMS * k:TERMS * k + TERMS])


# The right-hand side by loops, also under constraints; and the way back onto these --------------------------------------

@kernel
def rates_generic(index, constants, plant, schedule, signals, ties, t, q0, y, K, row, ws):
    """Rates of y at t into K[row], and behind them what as many switches as K has columns for read; row 0 is of an accepted
    state, the last one of an output. ties: LoopPlant, or None for a robot without constraints: then nothing of them is compiled.
    Leaves the state in work. Returns a code."""
    tree = tree_of(index, constants)
    code = int64(open_or_constrained(tree, plant, schedule, signals, ties, t, q0, y, K[row][:y.size], ws))
    keep_readings(signals.held, K, row, y.size)
    if ties is not None:                                      # noqa: SIM102 - Numba prunes what asks for None alone
        if (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
            code = look_around(ties, t)
    return code


@inline_kernel
def open_or_constrained(tree, plant, schedule, signals, ties, t, q0, y, dy, ws):
    if ties is None:
        return right_hand_side(tree, plant, schedule, signals, t, q0, y, dy, ws)
    return constrained_right_hand_side(tree, plant, schedule, signals, ties, t, q0, y, dy, ws)


@inline_kernel
def constrained_right_hand_side(tree, plant, schedule, signals, ties, t, q0, y, dy, ws):
    """`right_hand_side` under constraints."""
    set_out(tree, plant, schedule, signals, t, q0, y, ws)
    prescribe_loop_motion(signals, ties, t, ws)
    if constrained_hybrid(ties, ws) == FAR:
        return FAR
    watch(schedule, signals, t, ws)
    return rates(tree, plant, signals, y, hybrid_deficit(ties), constraint_power(ties), dy, ws)


@inline_kernel
def projection_generic(index, constants, schedule, signals, ties, t, counted, q0, y, q, ws):
    """The state q0 (+) x, v of y goes back onto the constraints, after prescribed values: into q, which may be q0, and y with
    x = 0. Returns a code."""
    if ties is not None:
        tree, nv = tree_of(index, constants), schedule.level.size
        v = y[nv:2 * nv]
        retract(tree, q0, y[:nv], q)
        for k in range(nv):
            y[k] = 0.0
        impose(schedule, signals, t, q, v, ws)
        ws.flag[0] = -1.0
        prescribe_loop_motion(signals, ties, t, ws)
        return BAD_SIGNAL if ws.flag[0] >= 0.0 else close_loops(ties, counted, q, v)
    return RUNNING


# rates ------------------------------------------------------------------------------------------------------------------

# The right-hand side of a run in compiled code: by a `line` (machine code of one scenario: one compilation of a method serves
# all), or by `loops`. The other is None, and Numba prunes at typing what belongs to it.

@inline_kernel
def rates_inline(line, loops, t, q0, y, K, row, ws):
    """Rates of y at t into K[row]: see `rate_evaluation.rates_generic`. Returns a code."""
    code = RUNNING
    if line is not None:                                      # Numba prunes a branch where it knows an argument to be None
        code = rates_generated(line, t, q0, y, K, row, ws)
    if loops is not None:
        code = rates_generic(loops.index, loops.constants, loops.plant, loops.schedule, loops.signals, loops.ties, t, q0, y, K,
                              row, ws)
    return code


@kernel
def rates_at(line, loops, t, q0, y, K, row, ws):
    """`rates_inline`, compiled once and called."""
    return rates_inline(line, loops, t, q0, y, K, row, ws)


@inline_kernel
def rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, ws):
    """Rates at the stages first … last - 1 of a Runge-Kutta step of length h from state.y into these rows of stages.K. Signals
    are read at `ceiling` at the latest. Returns a code."""
    for s in range(first, last):
        copy(state.y, stages.y)
        for r in range(s):
            w = h * method.A[s, r]
            if w != 0.0:
                for k in range(stages.y.size):
                    stages.y[k] += w * stages.K[r, k]
        code = rates_inline(line, loops, min(t + method.c[s] * h, ceiling), state.q, stages.y, stages.K, s, ws)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def stages_apart(line, loops, method, t, h, ceiling, state, stages, first, last, ws):
    """`rates_of_stages`, for Python."""
    return rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, ws)


@kernel
def bring_back(line, loops, t, counted, q0, y, q, ws):
    """The state q0 (+) x, v of y goes back onto the constraints: see `rate_evaluation.projection_generic`. Returns a code."""
    code = RUNNING
    if line is not None:
        code = projection_generated(line, t, counted, q0, y, q, ws)
    if loops is not None:
        code = projection_generic(loops.index, loops.constants, loops.schedule, loops.signals, loops.ties, t, counted, q0, y, q,
                                  ws)
    return code
