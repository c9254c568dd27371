"""Runge-Kutta steps that end where a switch of the state is passed: from Python, between chunks of the compiled loop."""
from __future__ import annotations

import numpy as np

from liedyn.integrators.failure import failure
from liedyn.integrators.runge_kutta import end_step_here
from liedyn.integrators.switching import LOOSE_STEPS
from liedyn.kernels.simulation.right_hand_side import EVENT, PASSED, RUNNING


class CutSteps:
    """run: `Underway`."""

    def __init__(self, run, method):
        self.problem, self.sides, self.switches, self.torques = run.problem, run.sides, run.switches, run.torques
        self.method, self.state, self.stages, self.record, self.work = method, run.state, run.stages, run.record, run.work
        self.step, self.last = float(method.control[0]), float(run.record.t[-1])
        self.fired: tuple[int, ...] = ()
        self.jumped: tuple[int, ...] = ()                      # of these, whose expressions jump here
        self._begin()

    def go_on(self, code: int) -> int:
        """After the compiled loop returned PASSED or WALL. Returns a code; EVENT: the run stands at an event."""
        clock = self.state.clock
        if code == PASSED:
            h, t = float(clock[2]), float(clock[0])
            share = self.switches.first_passing(lambda share: self._excess_after(share * h))
            reading = self.switches.reading.copy()
            code = end_step_here(self.sides.line, self.sides.loops, self.sides.walls, self.method, self.state, self.stages,
                                 self.record, h if share is None else share * h, self.work)
            if code != RUNNING:
                return code
            self.switches.reading[:] = reading
            self.fired = self.switches.fired() if share is not None else ()
            if self.fired:
                return EVENT
            if share is None:
                self.switches.settle_free()
            elif self._jump(self.switches.change(t + share * h, h, self._look)):
                return EVENT
            self._limit()
            if clock[0] != clock[4]:
                return RUNNING
        if clock[0] < self.last:
            if self.torques is not None:
                self.torques.act(self.state)
            self._begin()
            if self._jump(self.switches.fired()):              # signals and torques jump here
                return EVENT
        return RUNNING

    def _jump(self, fired: tuple[int, ...]) -> bool:
        self.fired = self.jumped = fired
        return bool(fired)

    def _begin(self) -> None:
        for reading in self.stages.K[:len(self.method.b), len(self.stages.end):]:          # in the last step
            self.switches.arm(reading[:len(self.switches)])
        self.switches.begin(self._glance)
        self.state.count[5] = 0                                # rates are to be computed with the new sides
        self._limit()

    def _limit(self) -> None:
        if self.method.error.size:
            self.method.control[0] = min(self.step, self.last / LOOSE_STEPS) if self.switches.any_loose else self.step

    def _glance(self, share: float) -> None:
        if share == 0.0:
            return self._look()
        t, breaks = float(self.state.clock[0]), self.sides.walls.breaks
        wall = min(breaks[breaks > t].min(initial=np.inf), self.last)
        self._rates(t, self.state.y, 0)
        self.state.clock[5] = wall
        self._excess_after(share * min(self.step, wall - t))

    def _look(self) -> None:
        self._rates(float(self.state.clock[0]), self.state.y, len(self.method.b) + 1)

    def _excess_after(self, h: float) -> float:
        """Make the step of length h, from the rates at its beginning, and look at the switches at its end."""
        clock, stages, method = self.state.clock, self.stages, self.method
        t, before, count = float(clock[0]), float(clock[5]), len(method.b)
        self._check(t, self.sides.at_stages(method, t, h, before, self.state, stages, 1, count, self.work), count - 1)
        stages.end[:] = self.state.y + h * (method.b @ stages.K[:count, :len(stages.end)])
        self._rates(min(t + h, before), stages.end, count)
        return self.switches.excess()

    def _rates(self, t: float, y, row: int) -> None:
        self._check(t, self.sides.at(t, self.state.q, y, self.stages.K, row, self.work), 1)

    def _check(self, t: float, code: int, evaluations: int) -> None:
        self.state.count[4] += evaluations
        if code != RUNNING:
            raise failure(self.problem, code, t, self.work, self.sides.ties)
