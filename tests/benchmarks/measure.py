"""Timing side by side: two functions in turn, medians of each and of their ratio, results consumed."""
from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    ours: float        # s, median
    theirs: float      # s, median
    ratio: float       # median of theirs / ours, pair by pair: what drifts in the machine's speed leaves alone


def pin_to_one_core() -> str:
    """Keep this process on one core, if the system supports it."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


def keep_freed_memory() -> str:
    """Let the process keep what it frees, where the C library can: else a batch's result may be given back to the system and
    faulted in again at every call, and that is what is measured."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        kept = libc.mallopt(-1, 1 << 30) and libc.mallopt(-3, 1 << 30)         # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    except (OSError, AttributeError):
        kept = False
    return "freed memory kept" if kept else "freed memory not kept"


def seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    consume(function())
    return time.perf_counter() - began


def cpu_seconds(function: Callable[[], object]) -> float:
    """Return processor time: other processes delay long runs more often."""
    began = time.process_time()
    consume(function())
    return time.process_time() - began


def consume(result) -> None:
    """Read the results, so that no computation can be omitted."""
    global _sink
    while isinstance(result, (list, tuple)) and len(result):
        result = result[-1]
    _sink = result


_sink = None


def median(function: Callable[[], object], repeats: int) -> float:
    function()
    return statistics.median(seconds(function) for _ in range(repeats))


def side_by_side(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> Pair:
    """Alternate which of the two runs first, since each leaves the caches in its state."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) if k % 2 == 0 else (seconds(theirs), seconds(ours))[::-1] for k in range(repeats)]
    return Pair(statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs),
                statistics.median(p[1] / p[0] for p in pairs))
