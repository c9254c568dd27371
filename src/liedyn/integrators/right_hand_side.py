"""The right-hand side of a run: a line where there is one, else loops."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.desk_for import turn_to_loops
from liedyn.integrators.constraint_steps import bring_back
from liedyn.integrators.run_state import Loops, Walls
from liedyn.jit import kernel
from liedyn.kernels.simulation.line_stages import REFUSED, TERMS, Line, back_by_line, evaluate_line
from liedyn.kernels.simulation.signals import ORDER, SWITCH, Signals
from liedyn.kernels.simulation.stages import evaluate

_LONE = np.zeros((1, 1)), np.zeros(1)      # A and c of an evaluation that is no stage of a step


class RightHandSide:
    """line, loops: the one that is used, the other is None. signals: with the switches of this run.
    ties: a LoopPlant, or None."""

    def __init__(self, problem, signals: Signals):
        self.problem, self.signals, self.ties = problem, signals, problem.loop_plant()
        self.line = line_of(problem, signals, self.ties)
        self.loops = None if self.line else self._loops()
        self.walls = Walls(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v, signals.held,
                           False)

    def turn_to_loops(self) -> None:
        """Where the line does not hold, as for angles beyond the range of its sine."""
        if self.ties:
            turn_to_loops(self.ties.desk)
        self.line, self.loops = None, self._loops()

    def evaluate(self, *arguments) -> int:
        """(A, c, t, h, ceiling, q0, y0, K, y, first, last, row, work): see `kernels.simulation.stages.evaluate`."""
        return self._either(evaluate_line, evaluate, arguments)

    def at(self, t: float, ceiling: float, q0, y, K, stage, row: int, work) -> int:
        """Rates at (t, q0, y) into K[row]: `evaluate` for one state. Signals are read at `ceiling` at the latest."""
        return self.evaluate(*_LONE, t, 0.0, ceiling, q0, y, K, stage, 0, 1, row, work)

    def bring_back(self, *arguments) -> int:
        """(t, counted, q0, y, q, work): see `constraint_steps.bring_back`."""
        return self._either(back_of_line, back_of_loops, arguments)

    def _either(self, by_line, by_loops, arguments) -> int:
        code = by_line(self.line, *arguments) if self.line else by_loops(*self.loops, *arguments)
        if code == REFUSED:
            self.turn_to_loops()
            code = by_loops(*self.loops, *arguments)
        return code

    def _loops(self) -> Loops:
        p = self.problem
        return Loops(p.model.index, p.model.constants, p.plant(), p.schedule, self.signals, self.ties)


@kernel
def back_of_line(line, t, counted, q0, y, q, work):
    return back_by_line(line, t, counted, q0, y, q, work)


@kernel
def back_of_loops(index, constants, plant, schedule, signals, ties, t, counted, q0, y, q, work):
    return bring_back(index, constants, schedule, signals, ties, t, counted, q0, y, q, work)


def line_of(problem, signals: Signals, ties) -> Line | None:
    step, count = problem.step, signals.held.size // SWITCH
    if step is None:
        return None
    curves, none = step.curves, np.zeros(0)
    own = (ties.desk, ties.q, ties.y) if ties else (none, none, none)
    numbers = problem.tables()._replace(signals=signals).numbers if signals.clocks.size else step.numbers
    return Line(step.address, step.second, step.back, *own, np.zeros(1), np.zeros(TERMS * len(curves)), signals.first[curves],
                signals.count[curves], signals.breaks, signals.coefficients, signals.held, numbers, np.zeros(2),
                np.zeros(count), np.zeros(ORDER))
