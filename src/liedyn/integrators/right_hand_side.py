"""The right-hand side of a run: a line where there is one, else loops."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.desk_for import turn_to_loops
from liedyn.integrators.rates import bring_back, rates_at, stages_apart
from liedyn.integrators.run_state import Loops, Walls
from liedyn.kernels.simulation.by_line import REFUSED, TERMS, Line
from liedyn.kernels.simulation.signals import ORDER, SWITCH, Signals


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
        return Loops(*p.model._arrays[:2], p.plant(), p.schedule, self.signals, self.ties)


def line_of(problem, signals: Signals, ties) -> Line | None:
    step, count = problem.step, signals.held.size // SWITCH
    if step is None:
        return None
    curves = step.curves
    numbers = problem.tables()._replace(signals=signals).numbers if signals.clocks.size else step.numbers
    return Line(step.address, step.second, step.back, ties.desk if ties else np.zeros(0), np.zeros(1),
                np.zeros(TERMS * len(curves)), signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients,
                signals.held, numbers, np.zeros(2), np.zeros(count), np.zeros(ORDER))
