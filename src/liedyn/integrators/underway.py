"""What a stretch of a run is computed with, by our own methods and by SciPy's; saved, and put back in another process."""
from __future__ import annotations

import json
from collections import deque

import numpy as np

from liedyn.integrators.held_torques import HeldTorques
from liedyn.integrators.problem import begin, stages_for
from liedyn.integrators.right_hand_side import RightHandSide
from liedyn.integrators.saved_state import numbers_of, put_back, put_back_constraints
from liedyn.integrators.switching import Switches

TEXT = "text"             # the name of what is no array


class Underway:
    """stages: rows of rates; readings: whether they have columns for what switches read. torques: of a sampled controller, or
    None."""

    def __init__(self, problem, start, times, controller, stages: int, readings: bool):
        self.problem, self.switches = problem, Switches(problem, start)
        self.record, self.work, self.state = problem.record(np.array(times)), problem.work(), begin(problem, start)
        self.sides = RightHandSide(problem, self.switches.signals)
        self.stages = stages_for(stages, problem, len(self.switches) if readings else 0)
        self.torques = None if controller is None else HeldTorques(problem, controller, self.sides, self.record.t)

    @property
    def ties(self):
        return self.sides.ties

    def snapshot(self, arrays, **text) -> dict[str, np.ndarray]:
        """All numbers to go on from here. arrays: those that are written besides, by name; text: what is no array."""
        text |= {"loops": self.sides.line is None, "cuts": [list(one) for one in self.switches.cuts],
                 "notes": list(self.switches.notes.items()), "armed": self.switches.armed.tolist(),
                 "bounds": self.switches.bound.tolist()}
        return numbers_of(**self._carried, **arrays, ties=self.ties) | {TEXT: np.array(json.dumps(text))}

    def put_back(self, saved, arrays) -> dict:
        """Go on from a snapshot. Returns its text."""
        text, switches = json.loads(str(saved[TEXT])), self.switches
        if text["loops"] and self.sides.line is not None:
            self.sides.turn_to_loops()
        switches.cuts = [deque(one, maxlen=cuts.maxlen) for one, cuts in zip(text["cuts"], switches.cuts, strict=True)]
        switches.notes = dict(map(tuple, text["notes"]))
        switches.armed, switches.bound = np.array(text["armed"], dtype=bool), np.array(text["bounds"], dtype=float)
        put_back(saved, **self._carried, **arrays)
        put_back_constraints(saved, self.ties)
        if self.torques:
            self.torques.show()
        return text

    @property
    def _carried(self) -> dict:
        signals = self.sides.signals
        return {"state": self.state, "stages": self.stages, "work": self.work, "held": signals.held, "measured": signals.measured,
                "torques": self.torques.carried if self.torques else ()}
