"""The right-hand side of a run: a line where there is one, else loops."""
from __future__ import annotations

import numpy as np

from liedyn.integrators.run_state import Loops, Walls
from liedyn.kernels.simulation.line_stages import REFUSED, Line, evaluate_line
from liedyn.kernels.simulation.signals import SWITCH, Signals
from liedyn.kernels.simulation.stages import evaluate


class RightHandSide:
    """line, loops: the one that is used, the other is None. signals: with the switches of this run."""

    def __init__(self, problem, signals: Signals):
        self.problem, self.signals = problem, signals
        self.line = line_of(problem, signals)
        self.loops = None if self.line else self._loops()
        self.walls = Walls(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v, signals.held)

    @property
    def ties(self):
        return self.loops.ties if self.loops else None

    def turn_to_loops(self) -> None:
        """Where the line does not hold, as for angles beyond the range of its sine."""
        self.line, self.loops = None, self._loops()

    def evaluate(self, *arguments) -> int:
        """(A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work): see `kernels.simulation.stages.evaluate`."""
        if self.line:
            code = evaluate_line(self.line, *arguments)
            if code != REFUSED:
                return code
            self.turn_to_loops()
        return evaluate(*self.loops, *arguments)

    def _loops(self) -> Loops:
        p = self.problem
        return Loops(p.model.index, p.model.constants, p.plant(), p.schedule, self.signals, p.loop_plant())


def line_of(problem, signals: Signals) -> Line | None:
    step, count = problem.step, signals.held.size // SWITCH
    if step is None:
        return None
    curves = step.curves
    table = signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients
    return Line(step.address, np.zeros(1), np.zeros(3 * len(curves)), *table, signals.held, np.zeros(count), step.numbers,
                np.zeros(2), np.zeros(2 * count))
