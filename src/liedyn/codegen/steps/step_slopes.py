"""The derivative of the right-hand side of a simulation by its state, as a line: for implicit methods.

The rates are recorded as for a `Step`, then their tangent along a direction of the state. Each direction is a state of a batch,
so a register holds as many as it has numbers. What the directions share, the state and what a `Line` holds, is read once.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.emit.segments import SEGMENT
from liedyn.codegen.lines import Batch, folder, kept_batch, wanted, width
from liedyn.codegen.steps.scenario_tables import Tables
from liedyn.codegen.steps.step import record_slopes
from liedyn.model.cache_lines import on_cache_lines

_OF_LINE = "t", "q0", "y", "curves", "held", "numbers"         # as a `Step` takes them


class StepSlopes:
    """Of one run. Called with a `kernels.simulation.by_line.Line`, q0 and y: the (n - 1, n - 1) derivative of the rates of
    [x; v; z] by these, at the time and with the signals of the last call of the line."""

    def __init__(self, batch: Batch, n: int):
        self.batch, self.y, self.by, self.directions = batch, np.zeros(n), np.zeros((n - 1, n - 1)), np.eye(n - 1)
        self.scratch, self.shared, self.run = on_cache_lines(max(batch.scratch, 8)), (), None

    def __call__(self, line, q0, y) -> np.ndarray:
        if self.run is None or self.shared[0] is not line or self.shared[1] is not q0:
            self.shared, given = (line, q0), line._asdict() | {"q0": q0, "y": self.y}
            arrays = [*(given[name] for name in _OF_LINE), self.directions, self.by]
            self.run = self.batch.bound([x for x in arrays if x.size], self.scratch)        # finding addresses takes 8 us
        self.y[:] = y
        self.run(0, len(self.by))
        return self.by.T


def slopes_of(tables: Tables) -> Batch | None:
    """For `StepSlopes`. None where there is no line: too many operations, a function without a known derivative, an old LLVM."""
    if not wanted() or not tables.model.nv:
        return None
    place = folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.steps.step_slopes")
    return kept_batch(tables.model, place, tables.name("slopes", width()), lambda: record_slopes(tables), SEGMENT)
