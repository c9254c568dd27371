"""The right-hand side by a line: machine code of one scenario, called by its address; and the way back onto constraints."""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.jit import primitive
from liedyn.kernels.loops.by_parts import CLOSE, CLOSE_UNCOUNTED, FAR, LOOK, MULTIPLY, copy, run
from liedyn.kernels.loops.desk import TIME, desk_of
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, RUNNING, finite_rates
from liedyn.kernels.simulation.signal_series import polynomial_series
from liedyn.kernels.simulation.signals import READING, SWITCH
from liedyn.pointer_call import call

REFUSED = FAR         # beside the codes of `right_hand_side`: the line does not hold at this state, and loops must go on
TERMS = 5             # Taylor coefficients of a curve: a law of motors reads four derivatives


class Line(NamedTuple):
    """A line, and what it reads and writes besides `MotionWork`: see `codegen.steps.step.Step`."""

    address: int
    second: int                # under constraints: what follows the multipliers, and what brings a state back; else 0
    back: int
    desk: np.ndarray           # see `kernels.loops.desk`; empty without constraints
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


@primitive
def rates_by_line(line, t, q0, y, K, row, work):
    """As `by_loops.rates_by_loops`. REFUSED where the line does not hold."""
    dy = K[row]
    readings = dy[y.size:] if K.shape[1] > y.size else line.readings
    set_inputs(line, t)
    refused = call(line.address, pointers(line, q0, y, dy, readings, work))
    if line.desk.size:
        run(line.desk, MULTIPLY)
        call(line.second, pointers(line, q0, y, dy, readings, work))
    code = verdict(line, refused, int64(line.verdict[0]), y, work)
    if line.desk.size and (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
        desk_of(line.desk).figures[TIME] = t
        code = run(line.desk, LOOK)
    if code == RUNNING:
        for k in range(line.readings.size):
            line.held[SWITCH * k + READING] = readings[k]
    return code


@primitive
def back_by_line(line, t, counted, q0, y, q, work):
    """As `by_loops.back_by_loops`."""
    set_inputs(line, t)
    refused = call(line.back, pointers(line, q0, y, y, line.readings, work))
    code = verdict(line, refused, RUNNING if line.verdict[1] < 0.0 else BAD_SIGNAL, y, work)
    if code != RUNNING:
        return code
    code, d, nv = run(line.desk, CLOSE if counted else CLOSE_UNCOUNTED), desk_of(line.desk), work.v.size
    copy(d.q, q)
    for k in range(nv):
        y[k], y[nv + k] = 0.0, d.v[k]
    return code


@primitive
def verdict(line, refused, code, y, work):
    if code == BAD_SIGNAL:
        work.flag[0] = line.verdict[1]
        return BAD_SIGNAL
    return REFUSED if refused and finite_rates(y) == RUNNING else code


@primitive
def pointers(line, q0, y, dy, readings, work):
    """What the line is called with."""
    return (line.t, q0, y, line.curves, line.held, line.numbers, work.q, work.v, work.a, work.tau, work.wrench, dy, line.verdict,
            readings, line.desk)


@primitive
def set_inputs(line, t):
    line.t[0] = t
    for k in range(line.first.size):
        polynomial_series(line.breaks, line.coefficients, line.first[k], line.count[k], t, line.room,
                          line.curves[TERMS * k:TERMS * k + TERMS])
