"""Run a sweep and store its results in a folder: find the missing chunks and compute them."""
from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path

import numpy as np

from liedyn import __version__
from liedyn.batch.evaluator import FAILED, SweepEvaluator, generic_kernels_of, hashes
from liedyn.batch.result_store import ResultStore
from liedyn.batch.simulations import SimulationEvaluator
from liedyn.batch.trajectory_jobs import TrajectoryEvaluator
from liedyn.dynamics.batching.threads import cores
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, UsageError, nearest
from liedyn.io.sweep_file import SIMULATE, Sweep, read_sweep
from liedyn.simulation.preparation import free_disk
from liedyn.simulation.run import Result, SilentProgress, simulate_prepared

# Workers: this process, processes of this machine, or a dask cluster. Each worker writes the chunks that it computes ----

_AHEAD = 4               # submitted chunks per worker
_AT_SCHEDULER = 1000     # submitted chunks of a cluster
_TRIES = 5               # consecutive failures of workers without a finished chunk


@dataclass(frozen=True)
class Job:
    """Description of a batch that is sent to workers."""

    sweep: Sweep
    folder: str
    identity: str


def compute(bench: SweepEvaluator, store: ResultStore, name: str, first: int, until: int, progress=lambda runs: None) -> None:
    store.write(name, bench.sweep, bench.chunk(first, until, progress))


def work(job: Job, name: str, first: int, until: int) -> int:
    """Compute a chunk in a worker unless its file exists. Return the number of its runs."""
    store = ResultStore(job.folder, job.sweep.trajectories is not None)
    if not store.has(name):
        compute(_bench(job), store, name, first, until)
    return until - first


@lru_cache(maxsize=2)
def _bench(job: Job) -> SweepEvaluator:
    batch = PreparedSweep(job.sweep, threads=1)
    if batch.identity != job.identity:
        raise UsageError("the scenario, the robot or liedyn itself differs here from where the batch was started: "
                         f"{job.sweep.begins_with}")
    return batch.bench


def run_on_processes(job: Job, todo: list, jobs: int) -> Iterator[int]:
    """Compute chunks in processes of this machine, and yield the number of runs of each.

    The chunk of a killed process is repeated.
    """
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


def run_on_scheduler(job: Job, todo: list, address: str) -> Iterator[int]:
    """Compute chunks with the workers of a dask cluster, which share the folder, and yield the number of runs of each."""
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
    """Compute chunks with an executor, and yield the number of runs of each.

    A new executor continues after an exception of `lost`.
    """
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
    """Initialize a process of the pool: one thread, no reaction to Ctrl-C, and exit when the parent process ends."""
    os.environ["LIEDYN_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client = parent_process()

    def watch():
        wait_for([client.sentinel])
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()


# run batch --------------------------------------------------------------------------------------------------------------

_FORMAT = 1
_SOON, _SOON_BY_THREADS = 5.0, 20.0               # s: processes are not started for shorter computations


@dataclass(frozen=True)
class SweepOutcome:
    """Summary of a batch.

    computed, reused  numbers of runs
    counts            number of runs with each status, if the table is complete
    doubtful          number of complete runs with a warning
    failure           number of runs with the most frequent reason of failure, and its text in one of them
    """

    count: int
    computed: int
    reused: int
    missing: int
    seconds: float
    counts: dict[str, int]
    doubtful: int
    failure: tuple[int, str]


class PreparedSweep:
    """A checked sweep. size: runs per chunk; None: chosen by the evaluator."""

    def __init__(self, sweep: Sweep, size: int | None = None, threads: int | None = None):
        sweep = _with_absolute_paths(sweep)
        self.bench = (TrajectoryEvaluator if sweep.job else SimulationEvaluator)(sweep, threads=threads)
        self.sweep, self.binding = sweep, self.bench.binding
        self.binding.first_checked()
        self.identity = self.bench.identity = self._identity()
        self.count, self._size = self.binding.design.count, size

    @property
    def size(self) -> int:
        """Number of runs per chunk."""
        if self._size is None:
            self._size = self.bench.chunk_size(self.count)
        return self._size

    @property
    def chunks(self) -> int:
        return -(-self.count // self.size)

    def span(self, chunk: int) -> tuple[int, int]:
        return chunk * self.size, min((chunk + 1) * self.size, self.count)

    def name(self, chunk: int) -> str:
        """Return the name of the files of a chunk: a hash of the inputs of its runs."""
        first, until = self.span(chunk)
        hashed = hashlib.sha256(f"{self.identity} {first} {until} ".encode())
        hashed.update(self._recipe(first, until))
        return f"{first:09d}-{hashed.hexdigest()[:16]}"

    def _recipe(self, first: int, until: int) -> bytes:
        """Return the data that determine the values of these runs.

        For random samples this is faster than computing the values.
        """
        if self.sweep.combine == "sample":
            return self._drawn_from
        values = self.binding.values(first, until)
        return b" ".join(x.tobytes() if isinstance(x, np.ndarray) else json.dumps(x).encode() for x in values)

    @cached_property
    def _drawn_from(self) -> bytes:
        sweep = self.sweep
        whole = self.count if sweep.sampling == "latin_hypercube" else 0
        sources = [(one.key, one.values, one.drawn, one.scale) for one in sweep.parameters]
        return repr((sweep.seed, sweep.sampling, whole, sources)).encode()

    def _identity(self) -> str:
        """Return a hash of all that the runs share."""
        sweep = self.sweep
        about = (_FORMAT, __version__, *self.bench.common(),
                 [(one.key, one.name) for one in sweep.parameters], [(one.name, one.text) for one in sweep.outputs],
                 sweep.trajectories and (sweep.trajectories.every, sweep.trajectories.columns))
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings that concern the sweep."""
        if self.sweep.sampling == "sobol" and self.count & (self.count - 1):
            return (*self.bench.warnings,
                    LiedynWarning("sample-count",
                                  f"{self.count} samples are no power of two: Sobol's sequence is balanced where they are, such "
                                  f"as {1 << self.count.bit_length()}"))
        return self.bench.warnings

    # before ---------------------------------------------------------------------------------------------------------
    def bytes_on_disk(self) -> float:
        """Return the approximate size of the folder in bytes."""
        columns = len(self.sweep.parameters) + len(self.sweep.outputs) + 3
        found = self.count * 2.0 * (8 * columns + 60)
        kept = self.sweep.trajectories
        if kept is not None:
            names = self.bench.kept_names(self.bench.known_columns())
            found += self.count * (self.bench.rows() / kept.every + 1) * 8.0 * (len(names) + 2)
        return found

    def check_disk(self, folder) -> None:
        """Raise ComputationError if the disk has not enough free space for the folder."""
        needed, free, place = self.bytes_on_disk(), *free_disk(folder)
        if needed > free:
            raise ComputationError(f"{self.count} runs need about {needed / 1e9:.3g} GB of disk in {place}; {free / 1e9:.3g} GB "
                                   "are free (keep fewer columns or rows of trajectories, or give another folder with -o)")

    def report(self, folder) -> dict:
        """Return a description of the planned computation as plain values.

        It has no time estimate, since the times of runs differ.
        """
        return {"scenario": self.sweep.begins_with, "job": self.sweep.job.kind if self.sweep.job else SIMULATE,
                "robot": self.binding.model.name, "runs": self.count, "way": self.bench.way,
                "parameters": {one.name: one.key for one in self.sweep.parameters},
                "outputs": {one.name: one.text for one in self.sweep.outputs},
                "trajectories": self.sweep.trajectories is not None, "rows": self.bench.rows(),
                "steps": self.bench.steps(), "chunks": self.chunks, "runs_in_a_chunk": self.size,
                "bytes": int(self.bytes_on_disk()), "folder": os.fspath(folder)}

    # running --------------------------------------------------------------------------------------------------------
    def run(self, folder, *, shard: tuple[int, int] = (1, 1), force: bool = False, resume: bool = False, jobs: int | None = None,
            scheduler: str | None = None, csv: bool = False,
            progress: Callable[[int, int], None] = lambda done, count: None) -> SweepOutcome:
        """Compute the missing chunks and write them to the folder.

        shard     (i, N): compute part i of N of the chunks, from 1
        progress  called with the number of finished runs and of all runs

        Raises UsageError if the folder must not be changed, ComputationError if workers fail repeatedly.
        """
        began, (part, parts) = time.perf_counter(), shard
        self.check_disk(folder)
        store = ResultStore(folder, self.sweep.trajectories is not None)
        before = store.begin(force, resume or parts > 1)
        if before is not None and self._size is None:
            self._size = before.get("runs_in_a_chunk", self.size)
        csv = csv or store.has_csv
        store.tell(self._about())
        names = [self.name(chunk) for chunk in range(self.chunks)]
        if not all(map(store.has, names)):
            store.remove_tables()
        mine = range(part - 1, self.chunks, parts)
        missing = [chunk for chunk in mine if not store.has(names[chunk])]
        count, todo = (sum(until - first for first, until in map(self.span, which)) for which in (mine, missing))
        done = count - todo

        def advance(runs: int) -> None:
            nonlocal done
            done += runs
            progress(done, count)
        advance(0)
        self._compute(store, [(names[chunk], *self.span(chunk)) for chunk in missing], jobs or cores(), scheduler, advance)
        absent = [name for name in names if not store.has(name)]
        counts, doubtful, failure = ({}, 0, (0, "")) if absent else store.finish(names, csv)
        return SweepOutcome(self.count, todo, count - todo, len(absent), time.perf_counter() - began, counts, doubtful, failure)

    def _compute(self, store: ResultStore, todo: list[tuple[str, int, int]], jobs: int, scheduler: str | None,
                 advance: Callable[[int], None]) -> None:
        """Compute chunks.

        todo     name of each chunk, its first run and the end of its runs (exclusive)
        advance  called with the number of runs that were finished
        """
        job = Job(self.sweep, os.path.abspath(store.folder), self.identity)
        if scheduler is not None:
            for runs in run_on_scheduler(job, todo, scheduler):
                advance(runs)
            return
        began, soon = time.perf_counter(), _SOON_BY_THREADS if self.bench.side_by_side else _SOON
        for k, chunk in enumerate(todo):
            left = (time.perf_counter() - began) / max(k, 1) * (len(todo) - k)
            if jobs > 1 and k and left > soon:                 # runs in one batch are on threads until then
                for runs in run_on_processes(job, todo[k:], jobs):
                    advance(runs)
                return
            compute(self.bench, store, *chunk, advance)

    def _about(self) -> dict:
        sweep = self.sweep
        return {"liedyn": __version__, "identity": self.identity, "count": self.count, "runs_in_a_chunk": self.size,
                "scenario": sweep.begins_with, "job": sweep.job.kind if sweep.job else SIMULATE,
                "overrides": list(sweep.overrides),
                "source": sweep.source and os.path.abspath(sweep.source),
                "combine": sweep.combine, "sampling": sweep.sampling, "seed": sweep.seed,
                "parameters": [{"key": one.key, "name": one.name, "scale": one.scale} for one in sweep.parameters],
                "outputs": {one.name: one.text for one in sweep.outputs}, "trajectories": sweep.trajectories is not None}


def _with_absolute_paths(sweep: Sweep) -> Sweep:
    """Return the sweep with absolute paths: workers can have another working directory."""
    if sweep.job is None:
        return replace(sweep, scenario=os.path.abspath(sweep.scenario))
    job, parameters = sweep.job, sweep.parameters
    job = replace(job, trajectory=os.path.abspath(job.trajectory), robot=job.robot and os.path.abspath(job.robot))
    parameters = tuple(replace(one, values=tuple(map(os.path.abspath, one.values))) if one.key == "trajectory" else one
                       for one in parameters)
    return replace(sweep, job=job, parameters=parameters)


# rerun ------------------------------------------------------------------------------------------------------------------

# Repeat runs of a batch from its folder: those with given numbers, or with the minimum or maximum of an output.

_LEAST, _LARGEST, _FEW = "min:", "max:", 4


@dataclass(frozen=True, eq=False)
class Rerun:
    """A repeated run.

    varied  description of each varied parameter and its value
    result  result of the run; of a diverged run, the rows before the failure
    """

    number: int
    varied: tuple[str, ...]
    result: Result


def chosen_runs(folder: str | os.PathLike, wanted: Sequence[str]) -> list[int]:
    """Return the numbers of selected runs of a batch.

    wanted  numbers such as "7", ranges "0-3", `min:OUTPUT`, `max:OUTPUT`; empty: a few evenly spaced runs

    Raises UsageError for numbers or outputs that the table does not have.
    """
    table = ResultStore(folder).read()
    count, numbers = len(table), []
    if not wanted:
        numbers = np.unique(np.linspace(0, count - 1, min(_FEW, count)).round().astype(int)).tolist()
    for one in wanted:
        if one.startswith((_LEAST, _LARGEST)):
            numbers.append(_extreme(folder, table, one))
            continue
        first, _, last = one.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise UsageError(f"--runs {one}: not a number of a run, a range such as 0-3, min:OUTPUT or max:OUTPUT")
        numbers += range(int(first), int(last or first) + 1)
    beyond = [number for number in numbers if number >= count]
    if beyond:
        raise UsageError(f"there is no run {beyond[0]}: {folder} has {count} runs, from 0 to {count - 1}")
    return list(dict.fromkeys(numbers))


def rerun(folder: str | os.PathLike, numbers: Iterable[int],
          progress: Callable[[float], None] = lambda share: None) -> list[Rerun]:
    """Simulate runs of a batch again, with the same numbers and therefore the same results.

    Raises UsageError if files of the batch have changed since, or if a run failed before its simulation.
    """
    store, numbers = ResultStore(folder), list(numbers)
    about, table = store.about() or {}, store.read()
    if about.get("job", SIMULATE) != SIMULATE:
        raise UsageError(f"the runs of {folder} are no simulations but of the job {about['job']}: `liedyn batch … --rerun K` "
                         "writes the CSV of one")
    source = about.get("source")
    if not source or not Path(source).is_file():
        raise UsageError(f"the sweep of {folder} no longer exists: {source or 'it was not a file'}")
    batch = PreparedSweep(replace(read_sweep(source), overrides=tuple(about["overrides"])))
    found = []
    for done, number in enumerate(numbers):
        progress(done / len(numbers))
        row, = table.slice(number, 1).to_pylist()
        if number >= batch.count or hashes(batch.identity, number, batch.binding.values(number, number + 1)) != [row["hash"]]:
            raise UsageError(f"{source}, its scenario or its robot has changed since {folder} was written: "
                             f"`liedyn batch {source} -o {folder} --resume` computes it anew")
        if row["status"] == FAILED:
            raise UsageError(f"run {number} has no motion: {row['reason']}")
        found.append(Rerun(number, _varied(about, row), _result(batch, number)))
    return found


def _result(batch: PreparedSweep, number: int) -> Result:
    run = batch.binding.run(number)
    try:
        with generic_kernels_of(run.model, batch.binding.prepared.model):
            return simulate_prepared(run, SilentProgress(), trials=False)
    except LiedynError as error:
        if error.result is None:
            raise
        return error.result


def _varied(about: dict, row: dict) -> tuple[str, ...]:
    values = ((one["name"], row[one["name"]]) for one in about["parameters"])
    return tuple(f"{name} {x:.4g}" if isinstance(x, float) else f"{name} {x}" for name, x in values)


def _extreme(folder, table, wanted: str) -> int:
    name = wanted[len(_LEAST):]
    outputs = [*(ResultStore(folder).about() or {}).get("outputs", {})]
    if name not in outputs:
        raise UsageError(f"--runs {wanted}: the batch has no output {name!r}; "
                         + (nearest(name, outputs) or f"it has {', '.join(outputs) or 'none'}"))
    x = np.array(table[name].to_pylist(), dtype=float)               # NaN of runs that are not complete
    if np.isnan(x).all():
        raise UsageError(f"--runs {wanted}: no run is complete")
    return int((np.nanargmin if wanted.startswith(_LEAST) else np.nanargmax)(x))
