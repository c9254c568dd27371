"""Processes of this machine that compute parts of a call."""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from time import perf_counter
from typing import Any, Protocol, TypeVar

from liedyn.dynamics.batching.threads import cores
from liedyn.errors import ComputationError

_MAX_SEQUENTIAL_SECONDS = 3.0    # s: processes are not started for shorter computations

Argument = TypeVar("Argument")
Value = TypeVar("Value")


class Map(Protocol):
    """A function that computes the values of another one for several arguments."""

    def __call__(self, function: Callable[[Argument], Value], arguments: Sequence[Argument], /) -> list[Value]:
        """Return the values in the order of the arguments."""


@contextmanager
def process_map(jobs: int | None) -> Iterator[Map]:
    """Yield a function that computes values one by one and, after some seconds, with processes, as many as jobs.

    function and arguments can be pickled. jobs: None for all cores.
    """
    count, began, pools = jobs or cores(), perf_counter(), list[Executor]()

    def values(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        out: list[Any] = []
        while len(out) < len(arguments):
            if count > 1 and not pools and len(arguments) - len(out) > 1 and perf_counter() - began > _MAX_SEQUENTIAL_SECONDS:
                pools.append(stack.enter_context(process_pool(count)))
            if pools:
                return out + list(pools[0].map(function, arguments[len(out):]))
            out.append(function(arguments[len(out)]))
        return out

    try:
        with ExitStack() as stack:
            yield values
    except BrokenProcessPool:
        raise ComputationError("a worker process ended: it was killed, memory was exhausted, or the script that started it has "
                               "no `if __name__ == \"__main__\":`; use one job") from None


@contextmanager
def process_pool(count: int) -> Iterator[Executor]:
    """Yield an executor with `count` processes, which end with the block."""
    other_processes = set(active_children())
    executor = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_initialize_worker)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - other_processes:        # before their part is done
            worker.terminate()
        raise


def _initialize_worker() -> None:
    """Initialize a process of the pool: one thread, no reaction to Ctrl-C, and exit when the parent process ends."""
    os.environ["LIEDYN_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def exit_with_parent(sentinel: int) -> None:
        wait_for([sentinel])
        os._exit(1)
    threading.Thread(target=exit_with_parent, args=(parent.sentinel,), daemon=True).start()
