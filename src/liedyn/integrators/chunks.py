"""A compiled loop over a run, called for a few steps at a time: in between the caller hears of progress, and of an interrupt."""
from __future__ import annotations

import time
from collections.abc import Callable

from liedyn.integrators.problem import Keeper
from liedyn.integrators.run_state import State
from liedyn.integrators.saved_state import numbers_of
from liedyn.kernels.simulation.right_hand_side import RUNNING

SECONDS = 0.2             # of a chunk


def next_count(steps: int, spent: float) -> int:
    """Steps of the next chunk, where the last one of so many took `spent` seconds."""
    return int(min(max(steps * SECONDS / max(spent, 1e-9), steps / 4 + 1), steps * 4))


def run_in_chunks(advance: Callable[[int], int], steps: int, state: State, end: float, progress: Callable[[float], None],
                  keeper: Keeper, carried: dict) -> int:
    """Calls advance(steps), first for `steps`, until its code is another than RUNNING; returns that. end: of the run [s];
    carried: all that the loop carries from chunk to chunk."""
    code = RUNNING
    while code == RUNNING:
        keeper.between(float(state.clock[0]), lambda: numbers_of(**carried))
        began = time.perf_counter()
        code = advance(steps)
        steps = next_count(steps, time.perf_counter() - began)
        progress(state.clock[0] / max(end, 1e-300))
    return code
