"""Processes of this machine that compute parts of a call."""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for


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
