"""The right-hand side of a run: a line where there is one, else loops.

In compiled code it is a `line` (machine code of one scenario: one compilation of a method serves all), or `loops`; the other is
None, and Numba prunes at typing what belongs to it.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.step import values_of
from liedyn.dynamics.loops.desk_for import turn_to_loops
from liedyn.integrators.run_state import Loops, Walls
from liedyn.jit import kernel, primitive
from liedyn.kernels.loops.by_parts import copy
from liedyn.kernels.simulation.by_line import REFUSED, TERMS, Line, back_by_line, rates_by_line
from liedyn.kernels.simulation.by_loops import back_by_loops, rates_by_loops
from liedyn.kernels.simulation.right_hand_side import RUNNING
from liedyn.kernels.simulation.signals import ORDER, SWITCH, Signals


@kernel
def rates_at(line, loops, t, q0, y, K, row, work):
    """Rates of y at t into K[row]: see `by_loops.rates_by_loops`. Returns a code."""
    return either(line, loops, t, q0, y, K, row, work)


@primitive
def rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, work):
    """Rates at the stages first … last - 1 of a Runge-Kutta step of length h from state.y into these rows of stages.K. Signals
    are read at `ceiling` at the latest. Returns a code."""
    for s in range(first, last):
        copy(state.y, stages.y)
        for r in range(s):
            w = h * method.A[s, r]
            if w != 0.0:
                for k in range(stages.y.size):
                    stages.y[k] += w * stages.K[r, k]
        code = either(line, loops, min(t + method.c[s] * h, ceiling), state.q, stages.y, stages.K, s, work)
        if code != RUNNING:
            return code
    return RUNNING


@primitive
def either(line, loops, t, q0, y, K, row, work):
    code = RUNNING
    if line is not None:                                      # Numba prunes a branch where it knows an argument to be None
        code = rates_by_line(line, t, q0, y, K, row, work)
    if loops is not None:
        code = rates_by_loops(loops.index, loops.constants, loops.plant, loops.schedule, loops.signals, loops.ties, t, q0, y, K,
                              row, work)
    return code


@kernel
def stages_apart(line, loops, method, t, h, ceiling, state, stages, first, last, work):
    """`rates_of_stages`, for Python."""
    return rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, work)


@kernel
def bring_back(line, loops, t, counted, q0, y, q, work):
    """The state q0 (+) x, v of y goes back onto the constraints: see `by_loops.back_by_loops`. Returns a code."""
    code = RUNNING
    if line is not None:
        code = back_by_line(line, t, counted, q0, y, q, work)
    if loops is not None:
        code = back_by_loops(loops.index, loops.constants, loops.schedule, loops.signals, loops.ties, t, counted, q0, y, q, work)
    return code


# from Python ------------------------------------------------------------------------------------------------------
class RightHandSide:
    """line, loops: the one that is used, the other is None. signals: with the switches of this run.
    ties: a LoopPlant, or None."""

    def __init__(self, problem, signals: Signals):
        self.problem, self.signals, self.ties = problem, signals, problem.loop_plant()
        self.line = line_of(problem, signals, self.ties)
        self.loops = None if self.line else self._loops()
        self.walls = Walls(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v, signals.held,
                           self.ties.desk if self.ties else np.zeros(0), False)

    def turn_to_loops(self) -> None:
        """Where the line does not hold, as for angles beyond the range of its sine."""
        if self.ties:
            turn_to_loops(self.ties.desk)
        self.line, self.loops = None, self._loops()

    def at(self, *arguments) -> int:
        """(t, q0, y, K, row, work): see `rates_at`."""
        return self._either(rates_at, arguments)

    def at_stages(self, *arguments) -> int:
        """(method, t, h, ceiling, state, stages, first, last, work): see `rates_of_stages`."""
        return self._either(stages_apart, arguments)

    def bring_back(self, *arguments) -> int:
        """(t, counted, q0, y, q, work): see `bring_back`."""
        return self._either(bring_back, arguments)

    def _either(self, function, arguments) -> int:
        code = function(self.line, self.loops, *arguments)
        if code == REFUSED and self.line:
            self.turn_to_loops()
            code = function(self.line, self.loops, *arguments)
        return code

    def _loops(self) -> Loops:
        p = self.problem
        return Loops(p.model.index, p.model.constants, p.plant(), p.schedule, self.signals, self.ties)


def line_of(problem, signals: Signals, ties) -> Line | None:
    step, count = problem.step, signals.held.size // SWITCH
    if step is None:
        return None
    curves = step.curves
    numbers = values_of(problem.plant(), problem.schedule, signals) if signals.clocks.size else step.numbers
    return Line(step.address, step.second, step.back, ties.desk if ties else np.zeros(0), np.zeros(1),
                np.zeros(TERMS * len(curves)), signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients,
                signals.held, numbers, np.zeros(2), np.zeros(count), np.zeros(ORDER))
