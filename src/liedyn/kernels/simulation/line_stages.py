"""The right-hand side at the stages of a Runge-Kutta step, by a line: machine code of one scenario, called by its address."""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.jit import kernel, primitive
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, RUNNING, finite_rates
from liedyn.kernels.simulation.signals import BEYOND, FREE, READING, SIDE, SWITCH, polynomial
from liedyn.pointer_call import call

REFUSED = 32          # beside the codes of `motion`: the line does not hold at this state, and loops must go on


class Line(NamedTuple):
    """A line, and what it reads and writes besides `MotionWork`: see `codegen.step.Step`."""

    address: int
    t: np.ndarray              # (1,)
    curves: np.ndarray         # (3 c,) jets now of the signals that are curves, found by the next four
    first: np.ndarray          # (c,) int64
    count: np.ndarray          # (c,) int64
    breaks: np.ndarray
    coefficients: np.ndarray
    held: np.ndarray           # (4 s,) see `signals.Signals`
    sides: np.ndarray          # (s,)
    numbers: np.ndarray
    verdict: np.ndarray        # (2,)
    readings: np.ndarray       # (2 s,)


@kernel
def evaluate_line(line, A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work):
    """As `stages.evaluate`, for an open tree. REFUSED where the line does not hold."""
    for s in range(first, last):
        for k in range(y0.size):
            y[k] = y0[k]
        for r in range(s):
            w = h * A[s, r]
            if w != 0.0:
                for k in range(y0.size):
                    y[k] += w * K[r, k]
        code = line_rates(line, min(t + c[s] * h, ceiling), q0, y, K[s + row], work)
        if code != RUNNING:
            return code
    return RUNNING


@primitive
def line_rates(line, t, q0, y, dy, work):
    """As `motion.right_hand_side`."""
    line.t[0] = t
    for k in range(line.first.size):
        x = polynomial(line.breaks, line.coefficients, line.first[k], line.count[k], t)
        line.curves[3 * k], line.curves[3 * k + 1], line.curves[3 * k + 2] = x
    for k in range(line.sides.size):
        side = line.held[SWITCH * k + SIDE]
        line.sides[k] = side if side == side else FREE
    refused = call(line.address, (line.t, q0, y, line.curves, line.sides, line.numbers, work.q, work.v, work.a, work.tau,
                                  work.wrench, dy, line.verdict, line.readings))
    for k in range(line.sides.size):
        line.held[SWITCH * k + READING] = line.readings[2 * k]
        if line.readings[2 * k + 1] != 0.0:
            line.held[SWITCH * k + BEYOND] = 1.0
    code = int64(line.verdict[0])
    if code == BAD_SIGNAL:
        work.flag[0] = line.verdict[1]
        return BAD_SIGNAL
    return REFUSED if refused and finite_rates(y) == RUNNING else code
