"""The right-hand side at the stages of a Runge-Kutta step, by a line: machine code of one scenario, called by its address."""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.jit import kernel, primitive
from liedyn.kernels.loops.by_parts import CLOSE, CLOSE_UNCOUNTED, FAR, LOOK, MULTIPLY, copy, run
from liedyn.kernels.loops.desk import TIME, desk_of
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, RUNNING, finite_rates
from liedyn.kernels.simulation.signal_series import polynomial_series
from liedyn.kernels.simulation.signals import READING, SWITCH
from liedyn.pointer_call import call

REFUSED = FAR         # beside the codes of `right_hand_side`: the line does not hold at this state, and loops must go on
TERMS = 5             # Taylor coefficients of a curve: a law of motors reads four derivatives


class Line(NamedTuple):
    """A line, and what it reads and writes besides `MotionWork`: see `codegen.step.Step`."""

    address: int
    second: int                # under constraints: what follows the multipliers, and what brings a state back; else 0
    back: int
    desk: np.ndarray           # see `kernels.loops.desk`; empty without constraints
    q: np.ndarray              # (nq,) an output between two steps, back on the constraints
    y: np.ndarray              # (n,) and the rest of its state
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


@kernel
def evaluate_line(line, A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work):
    """As `stages.evaluate`. REFUSED where the line does not hold."""
    for s in range(first, last):
        for k in range(y0.size):
            y[k] = y0[k]
        for r in range(s):
            w = h * A[s, r]
            if w != 0.0:
                for k in range(y0.size):
                    y[k] += w * K[r, k]
        now = min(t + c[s] * h, ceiling)
        readings = K[s + row][y0.size:] if K.shape[1] > y0.size else line.readings
        code = line_rates(line, now, q0, y, K[s + row], readings, work)
        if line.desk.size and s + row == 0 and code == RUNNING:
            desk_of(line.desk).figures[TIME] = now
            code = run(line.desk, LOOK)
        if code != RUNNING:
            return code
        if s == last - 1:
            for k in range(line.readings.size):
                line.held[SWITCH * k + READING] = readings[k]
    return RUNNING


@primitive
def line_rates(line, t, q0, y, dy, readings, work):
    """As `right_hand_side`."""
    set_inputs(line, t)
    refused = call(line.address, pointers(line, q0, y, dy, readings, work))
    if line.desk.size:
        run(line.desk, MULTIPLY)
        call(line.second, pointers(line, q0, y, dy, readings, work))
    return verdict(line, refused, int64(line.verdict[0]), y, work)


@primitive
def back_by_line(line, t, counted, q0, y, q, work):
    """The state q0 (+) x, v of y goes back onto the constraints, if there are any: into q, which may be q0, and y with x = 0.
    Returns a code."""
    if line.desk.size == 0:
        return RUNNING
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
