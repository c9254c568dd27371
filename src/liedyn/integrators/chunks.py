"""A compiled loop over a run, called for a few steps at a time: in between the caller hears of progress, and of an interrupt."""
from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from liedyn.integrators.failure import early_end, failure
from liedyn.integrators.problem import Keeper, Options, Problem, Statistics, begin, loop_figures
from liedyn.integrators.run_state import Record
from liedyn.integrators.saved_state import numbers_of, put_back, put_back_constraints
from liedyn.kernels.simulation.right_hand_side import FINISHED, NOT_CONVERGED, RUNNING

SECONDS = 0.2             # of a chunk
_FIRST_CHUNK = 20         # steps


def next_count(steps: int, spent: float) -> int:
    """Steps of the next chunk, where the last one of so many took `spent` seconds."""
    return int(min(max(steps * SECONDS / max(spent, 1e-9), steps / 4 + 1), steps * 4))


def solve_in_chunks(advance: Callable, problem: Problem, times: np.ndarray, options: Options,
                    progress: Callable[[float], None], keeper: Keeper, own, ties, why: str = "") -> tuple[Record, Statistics]:
    """`solve` by a method of fixed steps whose iteration may fail. why: it may.

    advance   (state, record, work, steps) -> code: takes so many steps, until its code is another than RUNNING
    own, ties   what it carries from chunk to chunk besides; ties: LoopPlant or None
    """
    began = time.perf_counter()
    record, work, state = problem.record(times), problem.work(), begin(problem)
    carried = {"state": state, "work": work, "own": own}
    if keeper.saved is not None:
        put_back(keeper.saved, **carried)
        put_back_constraints(keeper.saved, ties)
    keeper.follow(record, state.count)
    code, steps = RUNNING, _FIRST_CHUNK
    while code == RUNNING:
        keeper.between(float(state.clock[0]), lambda: numbers_of(**carried, ties=ties))
        chunk = time.perf_counter()
        code = advance(state, record, work, steps)
        steps = next_count(steps, time.perf_counter() - chunk)
        progress(state.clock[0] / max(times[-1], 1e-300))
    t = float(state.clock[0])
    if code == NOT_CONVERGED:
        raise early_end(f"{options.method} did not converge in the step from t = {t:.6g} s{why}", True, t)
    if code != FINISHED:
        raise failure(problem, code, t, work, ties, options)
    uncut = (f"{options.method} does not locate switches of step, sign, abs, floor, min or max of the state: it is of first "
             "order there",) if problem.signals.held.size else ()
    return record, Statistics(int(state.count[2]), 0, int(state.count[4]), time.perf_counter() - began, loop_figures(ties), uncut)
