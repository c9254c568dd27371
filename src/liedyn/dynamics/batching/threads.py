"""A batch on all cores.

Made of what no interrupt can break: an exception of a signal's handler that comes while `threading.Condition` takes its lock
leaves it locked for ever, and with it events, `Thread.start` and executors. Locks and threads of `_thread` and `SimpleQueue` have
no such moment."""
from __future__ import annotations

import os
import sys
from _thread import _local, allocate_lock, start_new_thread
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from queue import SimpleQueue

from liedyn.errors import UsageError

# How many cores this process may use ------------------------------------------------------------------------------------

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_SELF_CGROUP = Path("/proc/self/cgroup")


@cache
def cores() -> int:
    """Cores that this process may use: those of its affinity, at most the quota of its container. LIEDYN_THREADS lowers it."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, quota(), _parse_thread_count(os.environ.get("LIEDYN_THREADS", ""), available)))


def _parse_thread_count(text: str, available: int) -> int:
    """What LIEDYN_THREADS asks for; empty: as if it were not set."""
    if not text.strip():
        return available
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"LIEDYN_THREADS is not a number of threads; found {text[:40]!r}, expected a whole number from 1 on "
                         "(unset it for all cores)")
    return number


def quota(cgroup_root: Path = _CGROUP_ROOT, cgroup_file: Path = _SELF_CGROUP) -> int:
    """Cores that the control groups of a container allow in the mean, rounded up; very many where nothing limits them.

    Every group above limits too. A container without its own view of the tree sees a path that is not there: its own
    group is then the root that it sees."""
    least = float(1 << 30)
    for line in _read(cgroup_file).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in ([cgroup_root, cgroup_root / "unified"] if not controllers
                     else [cgroup_root / controllers, cgroup_root / "cpu"]):
            place = root / path.lstrip("/")
            for group in [place, *place.parents]:
                least = min(least, _group_quota(group))
                if group == root:
                    break
    return ceil(least)


def _group_quota(group: Path) -> float:
    """Cores that one group allows: version 2 keeps "quota period" or "max period", version 1 a file for each, -1 for none."""
    words = _read(group / "cpu.max").split() or [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]
    try:
        limit, period = float(words[0]), float(words[1])
    except (ValueError, IndexError):
        return float("inf")
    return limit / period if limit > 0 and period > 0 else float("inf")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):                 # no such file on this system, or not for us
        return ""


# threads ----------------------------------------------------------------------------------------------------------------

# Below this many body-states a second thread costs more than it brings (about 20 us).
_MIN_WORK_PER_THREAD = 2000
_thread_local = _local()                                        # of each thread: how many it may use


def check_gil() -> None:
    """UsageError where Python runs without its lock: single calls share scratch of their model, which the lock guards."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise UsageError("liedyn needs Python's global interpreter lock, which is switched off here "
                         "(start this free-threaded Python with PYTHON_GIL=1, or use the standard build)")


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Within it this thread's calls take so many threads; None: all cores."""
    before = getattr(_thread_local, "max_threads", None)
    _thread_local.max_threads = threads
    try:
        yield
    finally:
        _thread_local.max_threads = before


def chunks(count: int, bodies: int) -> list[int]:
    """Borders of the parts that threads take; each but the last a multiple of eight."""
    parts = max(1, min(cores(), getattr(_thread_local, "max_threads", None) or cores(), count * bodies // _MIN_WORK_PER_THREAD))
    step = max(1, -(-count // (8 * parts))) * 8
    return [*range(0, count, step), count]


def run_on_threads(part, edges: list[int]) -> list:
    """What part(first, last) returns for each pair of neighbours in `edges`, computed by this thread and those of the pool.

    Whatever happens, a part that has begun has ended when this leaves, and no other begins: no thread writes on for a call that
    is over. Only a second interrupt, while it waits, does not wait: so `part` must hold all that it writes to."""
    batch = _ParallelCall(part, edges)
    try:
        batch.start_helpers(len(edges) - 2)
        batch.run_parts()
    finally:
        batch.finish()
    if batch.errors:
        raise batch.errors.pop()
    return batch.results


class _ParallelCall:
    """Parts of one call, which threads take in turn."""

    def __init__(self, part, edges):
        self.part, self.results = part, [None] * (len(edges) - 1)
        self.parts = enumerate(pairwise(edges))        # shared: each thread takes the next
        self.helper_locks: list = []                          # for each helper a lock that it opens at its end
        self.errors: list[BaseException] = []

    def start_helpers(self, count: int) -> None:
        """Ask threads of the pool, which may have none: this thread does without."""
        helpers, jobs = _pool()
        for _ in range(min(count, helpers)):
            jobs.put(self.run_as_helper)

    def run_parts(self) -> None:
        for k, (first, last) in self.parts:
            self.results[k] = self.part(first, last)

    def run_as_helper(self) -> None:
        """In a thread of the pool. Who comes late finds nothing to do."""
        ended = allocate_lock()
        ended.acquire()
        self.helper_locks.append(ended)                       # before it takes a part: `finish` sees all who have one
        try:
            self.run_parts()
        except BaseException as error:
            self.errors.append(error)
            self.discard_parts()
        finally:
            ended.release()

    def discard_parts(self) -> None:
        """Leave what nobody has begun."""
        deque(self.parts, maxlen=0)

    def finish(self) -> None:
        self.discard_parts()
        for ended in self.helper_locks:
            ended.acquire()
        self.part = None                               # who comes late holds no memory of results


@cache
def _pool() -> tuple[int, SimpleQueue]:
    """Threads that wait for jobs, and the queue of these. None can be started while Python ends or beyond the system's limit."""
    jobs, helpers = SimpleQueue(), 0
    try:
        while helpers < cores() - 1:
            start_new_thread(_run_jobs, (jobs,))
            helpers += 1
    except RuntimeError:
        pass
    return helpers, jobs


def _run_jobs(jobs: SimpleQueue) -> None:
    while True:
        jobs.get()()


def _after_fork() -> None:
    """A child has none of its parent's threads, and may be bound to other cores."""
    _pool.cache_clear()
    cores.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
