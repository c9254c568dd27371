"""Compute a batch on all cores.

Only primitives that an interrupt cannot break are used. An exception of a signal handler during `Condition` of `threading` taking
its lock leaves it locked forever, and with it events, `Thread.start` and executors. Locks and threads of `_thread` and
`SimpleQueue` do not have this problem.
"""
from __future__ import annotations

import os
import sys
from _thread import LockType, _local, allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from liedyn.errors import UsageError

Value = TypeVar("Value")

# How many cores this process may use ------------------------------------------------------------------------------------

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_SELF_CGROUP = Path("/proc/self/cgroup")


@cache
def cores() -> int:
    """Return the number of cores that this process may use: those of its affinity, at most the quota of its container.

    LIEDYN_THREADS lowers it.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, quota(), _parse_thread_count(os.environ.get("LIEDYN_THREADS", ""), available)))


def _parse_thread_count(text: str, available: int) -> int:
    """Return the number of threads in LIEDYN_THREADS. Empty counts as not set."""
    if not text.strip():
        return available
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"LIEDYN_THREADS is not a number of threads: expected an integer >= 1, got {text[:40]!r} "
                         "(unset it for all cores)")
    return number


def quota(cgroup_root: Path = _CGROUP_ROOT, cgroup_file: Path = _SELF_CGROUP) -> int:
    """Return the average number of cores that control groups of a container allow, rounded up; very many without a limit.

    The limits of all parent groups apply, too. In a container without a separate view of the tree, the path of its group does not
    exist. Its group is then the root of the tree that it sees.
    """
    smallest = float(1 << 30)
    for line in _read(cgroup_file).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in ([cgroup_root, cgroup_root / "unified"] if not controllers
                     else [cgroup_root / controllers, cgroup_root / "cpu"]):
            place = root / path.lstrip("/")
            for group in [place, *place.parents]:
                smallest = min(smallest, _group_quota(group))
                if group == root:
                    break
    return ceil(smallest)


def _group_quota(group: Path) -> float:
    """Return the number of cores that one group allows.

    Version 2 stores "quota period" or "max period", version 1 one file for each, with -1 for no limit.
    """
    words = _read(group / "cpu.max").split() or [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]
    try:
        limit, period = float(words[0]), float(words[1])
    except (ValueError, IndexError):
        return float("inf")
    return limit / period if limit > 0 and period > 0 else float("inf")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):                 # the file does not exist on this system or is not readable
        return ""


# threads ----------------------------------------------------------------------------------------------------------------

# Below this many states times bodies a second thread costs more than it saves (about 20 us).
_MIN_WORK_PER_THREAD = 2000
_thread_local = _local()                                        # number of threads that calls of this thread may use


def check_gil() -> None:
    """Raise UsageError if Python runs without the GIL, which guards the workspace that calls for one state share in a model."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise UsageError("liedyn needs Python's global interpreter lock, which is switched off here "
                         "(start this free-threaded Python with PYTHON_GIL=1, or use the standard build)")


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Limit the number of threads of calls of this thread within a block. None: all cores."""
    previous = getattr(_thread_local, "max_threads", None)
    _thread_local.max_threads = threads
    try:
        yield
    finally:
        _thread_local.max_threads = previous


def chunks(count: int, bodies: int, unit: int = 8) -> list[int]:
    """Return the borders of the chunks for threads. The size of each chunk but the last is a multiple of `unit`."""
    parts = max(1, min(cores(), getattr(_thread_local, "max_threads", None) or cores(), count * bodies // _MIN_WORK_PER_THREAD))
    step = max(1, -(-count // (unit * parts))) * unit
    return [*range(0, count, step), count]


def run_on_threads(part: Callable[[int, int], Value], edges: list[int]) -> list[Value]:
    """Return the values of part(first, last) for each pair of neighbours in `edges`, computed by this thread and the pool.

    When the function returns or raises, no part is running and none will start, so no thread writes to results of a finished
    call. The exception is a second interrupt during the wait for other threads: therefore `part` must own all memory that it
    writes.
    """
    batch = _ParallelCall(part, edges)
    try:
        batch.start_helpers(len(edges) - 2)
        batch.run_parts()
    finally:
        batch.finish()
    if batch.errors:
        raise batch.errors.pop()
    return [batch.results[k] for k in range(len(edges) - 1)]


class _ParallelCall(Generic[Value]):
    """Parts of one call; each thread takes the next part that has not started."""

    def __init__(self, part: Callable[[int, int], Value], edges: list[int]):
        self.part, self.results = part, dict[int, Value]()
        self.parts = enumerate(pairwise(edges))        # shared: each thread takes the next
        self.helper_locks: list[LockType] = []                # a lock for each helper, which releases it at its end
        self.errors: list[BaseException] = []

    def start_helpers(self, count: int) -> None:
        """Add jobs for threads of the pool. If the pool is empty, this thread computes all parts."""
        helpers, jobs = _pool()
        for _ in range(min(count, helpers)):
            jobs.put(self.run_as_helper)

    def run_parts(self) -> None:
        for k, (first, last) in self.parts:
            self.results[k] = self.part(first, last)

    def run_as_helper(self) -> None:
        """Compute parts in a thread of the pool, as long as there are any."""
        ended = allocate_lock()
        ended.acquire()
        self.helper_locks.append(ended)                       # first, so that `finish` waits for it
        try:
            self.run_parts()
        except BaseException as error:
            self.errors.append(error)
            self.discard_parts()
        finally:
            ended.release()

    def discard_parts(self) -> None:
        """Remove the parts that have not started."""
        deque(self.parts, maxlen=0)

    def finish(self) -> None:
        self.discard_parts()
        for ended in self.helper_locks:
            ended.acquire()
        del self.part                                  # a late helper keeps no memory of results alive


@cache
def _pool() -> tuple[int, SimpleQueue[Callable[[], None]]]:
    """Return the number of threads that wait for jobs, and the queue of jobs.

    No thread can be started while Python exits or beyond the limit of the system.
    """
    jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
    helpers = 0
    try:
        while helpers < cores() - 1:
            start_new_thread(_run_jobs, (jobs,))
            helpers += 1
    except RuntimeError:
        pass
    return helpers, jobs


def _run_jobs(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()


def _after_fork() -> None:
    """Reset the pool in a child process: it has none of its parent's threads and may have a different affinity."""
    _pool.cache_clear()
    cores.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
