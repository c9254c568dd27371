"""Who computes chunks: this process, processes of this machine, or a dask cluster. Each writes its chunks itself."""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for

from liedyn.batch.chunk import Bench
from liedyn.batch.store import Store
from liedyn.errors import ComputationError, UsageError
from liedyn.io.sweep import Sweep

_AHEAD = 4               # chunks that wait for each worker,
_AT_SCHEDULER = 1000     # and for those of a cluster
_TRIES = 5               # times that workers may end without a chunk between


@dataclass(frozen=True)
class Job:
    """What a worker is told of a batch."""

    sweep: Sweep
    folder: str
    identity: str


def compute(bench: Bench, store: Store, name: str, first: int, until: int, progress=lambda runs: None) -> None:
    store.write(name, bench.sweep, bench.chunk(first, until, progress))


def work(job: Job, name: str, first: int, until: int) -> int:
    """In a worker: a chunk, unless it is there already. The number of its runs."""
    store = Store(job.folder, job.sweep.trajectories is not None)
    if not store.has(name):
        compute(_bench(job), store, name, first, until)
    return until - first


@lru_cache(maxsize=2)
def _bench(job: Job) -> Bench:
    from liedyn.batch.run_batch import Batch
    batch = Batch(job.sweep, threads=1)
    if batch.identity != job.identity:
        raise UsageError("the scenario, the robot or liedyn itself differs here from where the batch was started: "
                         f"{job.sweep.begins_with}")
    return batch.bench


def on_processes(job: Job, todo: list, jobs: int) -> Iterator[int]:
    """By processes of this machine. One that is killed costs its chunk, which another computes."""
    @contextmanager
    def pool():
        others = set(active_children())
        executor = ProcessPoolExecutor(min(jobs, len(todo)), mp_context=get_context("spawn"), initializer=_begin)
        try:
            yield executor
            executor.shutdown()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for one in set(active_children()) - others:        # before their chunk is done
                one.terminate()
            raise

    yield from _by(pool, job, todo, _AHEAD * jobs, (BrokenProcessPool,))


def on_scheduler(job: Job, todo: list, address: str) -> Iterator[int]:
    """By the workers of a dask cluster, which see the same folder."""
    try:
        import distributed
    except ImportError:
        raise UsageError("--scheduler needs dask.distributed: pip install 'liedyn[cluster]'") from None

    @contextmanager
    def cluster():
        try:
            client = distributed.Client(address, timeout=30)
        except (OSError, ValueError, TimeoutError) as error:
            raise ComputationError(f"no scheduler answers at {address}: {error}") from None
        with client:
            executor = client.get_executor(pure=False)
            yield executor
            executor.shutdown(wait=False)

    yield from _by(cluster, job, todo, _AT_SCHEDULER, (distributed.KilledWorker, CancelledError))


def _by(opened, job: Job, todo: list, ahead: int, lost: tuple) -> Iterator[int]:
    """Chunks by an executor; where it breaks, those that are left by another one."""
    left, tries = {name: (first, until) for name, first, until in todo}, 0
    while left:
        try:
            with opened() as executor:
                for name in _finished(executor, job, dict(left), ahead):
                    first, until = left.pop(name)
                    tries = 0
                    yield until - first
        except lost as error:
            tries += 1
            if tries == _TRIES:
                raise ComputationError(f"workers have ended {tries} times in a row, killed or out of memory: {error}; "
                                       "--resume continues") from None


def _finished(executor: Executor, job: Job, left: dict, ahead: int) -> Iterator[str]:
    waiting, running = iter(left.items()), {}
    while True:
        for name, span in waiting:
            running[executor.submit(work, job, name, *span)] = name
            if len(running) >= ahead:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            future.result()
            yield running.pop(future)


def _begin() -> None:
    """In a process of the pool: one thread; Ctrl-C is the client's; and the end of the client is its end."""
    os.environ["LIEDYN_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client = parent_process()

    def watch():
        wait_for([client.sentinel])
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()
