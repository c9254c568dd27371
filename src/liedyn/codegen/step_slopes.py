"""The derivative of the right-hand side of a simulation by its state, as a line: for implicit methods.

The rates are recorded as for a `Step`, then their tangent along a direction of the state. Each direction is a state of a batch, so
a register holds as many as it has numbers. What the directions share, the state and what a `Line` holds, is read once.
"""
from __future__ import annotations

import numpy as np

from liedyn import code_cache
from liedyn.codegen.lines import Batch, build, folder, wanted, width
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording
from liedyn.codegen.segments import SEGMENT
from liedyn.codegen.step import Scenario, content
from liedyn.codegen.tangent import tangent
from liedyn.lie.recorded import NotALine
from liedyn.model.cache_lines import on_cache_lines

_SHARED = "t", "q0", "y", "curves", "sides", "values"


class StepSlopes:
    """Called with a `kernels.simulation.line_stages.Line`, q0 and y: the (n - 1, n - 1) derivative of the rates of [x; v; z] by
    these, at the time and with the signals of the last call of the line."""

    def __init__(self, batch: Batch, n: int):
        self.batch, self.by = batch, np.zeros((n - 1, n - 1))
        self.directions, self.scratch = np.eye(n - 1), on_cache_lines(max(batch.scratch, 8))

    def __call__(self, line, q0, y) -> np.ndarray:
        shared = line.t, q0, np.require(y, requirements="CW"), line.curves, line.sides, line.numbers
        self.batch.run([x for x in (*shared, self.directions, self.by) if x.size], self.scratch, 0, len(self.by))
        return self.by.T


def slopes_of(model, plant, schedule, signals) -> StepSlopes | None:
    """None where there is no line: too many operations, a function whose derivative is not known, an old LLVM."""
    if not wanted() or not model.nv:
        return None
    place = folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.step_slopes")
    name = code_cache.digest(*content(model, plant, schedule, signals), f"slopes {width()}".encode())

    def make():
        try:
            recording = record_slopes(model, plant, schedule, signals)
        except NotALine:
            recording = None
        return build(recording if recording and recording.size <= SEGMENT else None, width())
    built = code_cache.kept_or_made(place, name, make)
    return StepSlopes(Batch(built), 2 * model.nv + len(schedule.integral) + 1) if built.code else None


def record_slopes(model, plant, schedule, signals) -> Recording:
    s = Scenario(model, plant, schedule, signals)
    with np.errstate(all="ignore"):
        plain("kernels.simulation.right_hand_side").right_hand_side(
            s.tree, s.plant, s.schedule, s.signals, s.given["t"][0], s.given["q0"], s.given["y"], s.dy, s.work)
    n = len(s.dy) - 1
    direction = s.tape.inputs("direction", n)
    by = tangent(s.tape, zip(s.given["y"], direction, strict=False), s.dy[:n])
    arrays = [Array(name, len(s.given[name]), (None,) * len(s.given[name]), True) for name in _SHARED]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Recording(s.tape, tuple(x for x in arrays if x.size), (), ())
