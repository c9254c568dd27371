"""Torques of a sampled controller in a stretch of a run: constants of its signals, or straight lines, renewed where steps end."""
from __future__ import annotations

import math

import numpy as np

from liedyn.integrators.run_state import State
from liedyn.kernels.simulation.signals import CONSTANT, ORDER, POLYNOMIAL

SAME = 4                 # spacings of floats between times that are the same but for rounding


class HeldTorques:
    """sides: the `RightHandSide` of the stretch, which gets constants and walls of its own. times: of its outputs.

    controller   has `act(problem, t, q0, y)`, called at the beginning and at each time `due`, and `torque` (nv,), which it holds;
                 for straight lines also `slope` (nv,) and the time `since` when they begin
    """

    def __init__(self, problem, controller, sides, times=()):
        self.problem, self.controller, self.sides, self.times = problem, controller, sides, np.asarray(times)
        signals, signal = problem.signals, problem.sampled.signal
        self.coordinates = np.flatnonzero(signal >= 0)
        self.first = signals.first[signal[self.coordinates]]
        self.ramps = bool((signals.kind[signal[self.coordinates]] == POLYNOMIAL).any())
        # a line reads the constants that are not zero, in their order (`codegen.steps.scenario_tables`)
        constants = signals.first[signals.kind == CONSTANT]
        constants = constants[signals.literals[constants] != 0.0]
        self.numbers = np.searchsorted(constants, self.first)
        own = {name: getattr(signals, name).copy() for name in (("breaks", "coefficients") if self.ramps else ("literals",))}
        sides.signals = signals._replace(held=sides.signals.held, **own)
        if sides.line is not None:
            own = own if self.ramps else {"numbers": sides.line.numbers.copy()}
            sides.line = sides.line._replace(**own)
        else:
            sides.loops = sides.loops._replace(signals=sides.signals)
        self.breaks, self.before = sides.walls.breaks, sides.walls.before
        sides.walls = sides.walls._replace(breaks=np.zeros(1), before=np.zeros(1), halts=True)

    @property
    def carried(self) -> tuple:
        """All arrays that are written during a run."""
        line, walls = self.sides.line, self.sides.walls
        return self.sides.signals.literals, walls.breaks, walls.before, () if line is None else line.numbers

    def act(self, state: State) -> None:
        """At the state of the run: what is due, and where the next step must end."""
        t = float(state.clock[0])
        self.controller.act(self.problem, t, state.q, state.y)
        self.show()
        self._limit_step(t)
        state.count[1] = state.count[5] = 0                    # the wall is a new one, and so are the rates

    def show(self) -> None:
        """The torque that the controller holds."""
        torque, signals = self.controller.torque[self.coordinates], self.sides.signals
        if self.ramps:
            signals.breaks[self.first], signals.coefficients[ORDER * self.first] = self.controller.since, torque
            signals.coefficients[ORDER * self.first + 1] = self.controller.slope[self.coordinates]
            return
        signals.literals[self.first] = torque
        if self.sides.line is not None:
            self.sides.line.numbers[self.numbers] = torque

    def _limit_step(self, t: float) -> None:
        k = int(self.breaks.searchsorted(t, "right"))
        wall, before = (float(self.breaks[k]), float(self.before[k])) if k < len(self.breaks) else (math.inf, math.inf)
        due = self._at_output(self.controller.due)
        if due < wall:
            wall, before = due, math.nextafter(due, -math.inf)
        self.sides.walls.breaks[0], self.sides.walls.before[0] = wall, before

    def _at_output(self, due: float) -> float:
        """The time of an output that is the same but for rounding, so that its row shows the new torque."""
        k = int(self.times.searchsorted(due - SAME * math.ulp(due)))
        return float(self.times[k]) if k < len(self.times) and self.times[k] - due <= SAME * math.ulp(due) else due

    @property
    def wall(self) -> tuple[float, float]:
        """Where the next step must end, and the last time that counts as before it."""
        return float(self.sides.walls.breaks[0]), float(self.sides.walls.before[0])
