"""Run a sweep and store its results in a folder: find the missing chunks and compute them."""
from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from liedyn import __version__
from liedyn.arrays import Array
from liedyn.batch.evaluator import FAILED, Progress, SweepEvaluator, hashes, no_progress
from liedyn.batch.output_expressions import compile_output
from liedyn.batch.result_store import ResultStore, TableSummary
from liedyn.batch.simulations import SimulationEvaluator
from liedyn.batch.sweep_binding import Value
from liedyn.batch.trajectory_jobs import TrajectoryEvaluator
from liedyn.dynamics.batching.processes import process_pool
from liedyn.dynamics.batching.threads import cores
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, UsageError, nearest, size_text
from liedyn.io.sweep_file import SIMULATE, Sweep, read_sweep
from liedyn.simulation.preparation import free_disk
from liedyn.simulation.run import Result

if TYPE_CHECKING:
    from pyarrow import Table

# Workers: this process, processes of this machine, or a dask cluster. Each worker writes the chunks that it computes ----

_CHUNKS_PER_WORKER = 4           # submitted chunks per worker
_CHUNKS_AT_SCHEDULER = 1000      # submitted chunks of a cluster
_MAX_FAILED_ATTEMPTS = 5         # consecutive failures of workers without a finished chunk

Folder: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Chunk:
    """Runs first … until - 1, and the name of their files."""

    name: str
    first: int
    until: int


@dataclass(frozen=True)
class Job:
    """Description of a batch that is sent to workers."""

    sweep: Sweep
    folder: str
    identity: str


def write_chunk(evaluator: SweepEvaluator[Any], store: ResultStore, chunk: Chunk, progress: Progress = no_progress) -> None:
    """Compute a chunk and write it to the folder."""
    store.write_chunk(chunk.name, evaluator.sweep, evaluator.compute_chunk(chunk.first, chunk.until, progress))


def run_chunk(job: Job, chunk: Chunk) -> int:
    """Compute a chunk in a worker unless its file exists. Return the number of its runs."""
    store = ResultStore(job.folder, job.sweep.trajectories is not None)
    if not store.has_chunk(chunk.name):
        write_chunk(_evaluator_of(job), store, chunk)
    return chunk.until - chunk.first


@lru_cache(maxsize=2)
def _evaluator_of(job: Job) -> SweepEvaluator[Any]:
    batch = PreparedSweep(job.sweep, threads=1)
    if batch.identity != job.identity:
        raise UsageError("the scenario, the robot or the version of liedyn of this worker differs from that of the batch: "
                         f"{job.sweep.begins_with}")
    return batch.evaluator


def run_in_processes(job: Job, chunks: Sequence[Chunk], jobs: int) -> Iterator[int]:
    """Compute chunks in processes of this machine, and yield the number of runs of each.

    The chunk of a killed process is repeated.
    """
    def pool() -> AbstractContextManager[Executor]:
        return process_pool(min(jobs, len(chunks)))

    yield from _run_on_executors(pool, job, chunks, _CHUNKS_PER_WORKER * jobs, (BrokenProcessPool,))


def run_in_cluster(job: Job, chunks: Sequence[Chunk], address: str) -> Iterator[int]:
    """Compute chunks with the workers of a dask cluster, which share the folder, and yield the number of runs of each."""
    try:
        import distributed
    except ImportError:
        raise UsageError("--scheduler needs dask.distributed: pip install 'liedyn[cluster]'") from None

    @contextmanager
    def cluster() -> Iterator[Executor]:
        try:
            client = distributed.Client(address, timeout=30)
        except (OSError, ValueError, TimeoutError) as error:
            raise ComputationError(f"the scheduler at {address} does not respond: {error}") from None
        with client:
            executor = client.get_executor(pure=False)
            yield executor
            executor.shutdown(wait=False)

    yield from _run_on_executors(cluster, job, chunks, _CHUNKS_AT_SCHEDULER, (distributed.KilledWorker, CancelledError))


def _run_on_executors(open_executor: Callable[[], AbstractContextManager[Executor]], job: Job, chunks: Sequence[Chunk],
                      max_submitted: int, failures: tuple[type[BaseException], ...]) -> Iterator[int]:
    """Compute chunks with an executor, and yield the number of runs of each.

    A new executor continues after an exception of `failures`.
    """
    remaining, failed_attempts = dict.fromkeys(chunks), 0
    while remaining:
        try:
            with open_executor() as executor:
                for chunk in _finished_chunks(executor, job, [*remaining], max_submitted):
                    del remaining[chunk]
                    failed_attempts = 0
                    yield chunk.until - chunk.first
        except failures as error:
            failed_attempts += 1
            if failed_attempts == _MAX_FAILED_ATTEMPTS:
                raise ComputationError(f"workers terminated {failed_attempts} times in a row (killed, or out of memory): "
                                       f"{error}; "
                                       "--resume continues") from None


def _finished_chunks(executor: Executor, job: Job, chunks: Iterable[Chunk], max_submitted: int) -> Iterator[Chunk]:
    waiting = iter(chunks)
    running: dict[Future[int], Chunk] = {}
    while True:
        for chunk in waiting:
            running[executor.submit(run_chunk, job, chunk)] = chunk
            if len(running) >= max_submitted:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            future.result()
            yield running.pop(future)


# run batch --------------------------------------------------------------------------------------------------------------

_FORMAT = 1
_MAX_SEQUENTIAL_SECONDS, _MAX_THREADED_SECONDS = 5.0, 20.0        # s: processes are not started for shorter computations
_LOADING_SECONDS = 45.0          # s: the first run loads or compiles code for at most about this time


class Pace:
    """Speed of runs after the first one, which takes longer, since it loads or compiles code."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None          # time at which it ended, and number of finished runs then
        self.runs_per_second: float | None = None

    def update(self, done: int) -> None:
        """Set `runs_per_second` when `done` runs are finished, for the first time when the first run has ended."""
        t = time.perf_counter()
        if self._first is None:
            self._first = t, done
        elif t > self._first[0]:
            self.runs_per_second = (done - self._first[1]) / (t - self._first[0])


@dataclass(frozen=True)
class SweepOutcome:
    """Summary of a batch.

    computed, reused  numbers of runs
    missing           number of chunks that are not computed yet, by other shards
    table             summary of the table; empty if it is not complete
    """

    count: int
    computed: int
    reused: int
    missing: int
    seconds: float
    table: TableSummary


class PreparedSweep:
    """A checked sweep. size: runs per chunk; None: chosen by the evaluator."""

    def __init__(self, sweep: Sweep, size: int | None = None, threads: int | None = None):
        sweep = _with_absolute_paths(sweep)
        self.evaluator: SweepEvaluator[Any] = (TrajectoryEvaluator(sweep, sweep.job, threads) if sweep.job
                                               else SimulationEvaluator(sweep, threads))
        self.sweep, self.binding = sweep, self.evaluator.binding
        self.binding.first_run()
        self.identity = self.evaluator.identity = self._identity()
        self.count, self._size = self.binding.design.count, size

    @property
    def size(self) -> int:
        """Number of runs per chunk."""
        if self._size is None:
            self._size = self.evaluator.chunk_size(self.count)
        return self._size

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.count // self.size)

    def chunk(self, number: int) -> Chunk:
        """Return a chunk; the name of its files is a hash of the inputs of its runs."""
        first, until = number * self.size, min((number + 1) * self.size, self.count)
        digest = hashlib.sha256(f"{self.identity} {first} {until} ".encode())
        digest.update(self._chunk_inputs(first, until))
        return Chunk(f"{first:09d}-{digest.hexdigest()[:16]}", first, until)

    def _chunk_inputs(self, first: int, until: int) -> bytes:
        """Return the data that determine the values of these runs.

        For random samples this is faster than computing the values.
        """
        if self.sweep.combine == "sample":
            return self._sampling_inputs
        values = self.binding.values(first, until)
        return b" ".join(x.tobytes() if isinstance(x, np.ndarray) else json.dumps(x).encode() for x in values)

    @cached_property
    def _sampling_inputs(self) -> bytes:
        sweep = self.sweep
        total = self.count if sweep.sampling == "latin_hypercube" else 0
        sources = [(parameter.key, parameter.values, parameter.drawn, parameter.scale) for parameter in sweep.parameters]
        return repr((sweep.seed, sweep.sampling, total, sources)).encode()

    def _identity(self) -> str:
        """Return a hash of all that the runs share."""
        sweep = self.sweep
        shared = (_FORMAT, __version__, *self.evaluator.shared_inputs(),
                  [(parameter.key, parameter.name) for parameter in sweep.parameters],
                  [(output.name, output.text) for output in sweep.outputs],
                  sweep.trajectories and (sweep.trajectories.every, sweep.trajectories.columns))
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings that concern the sweep."""
        if self.sweep.sampling == "sobol" and self.count & (self.count - 1):
            return (*self.evaluator.warnings,
                    LiedynWarning("sample-count",
                                  f"{self.count} is not a power of two: Sobol samples are balanced only for powers of two, such "
                                  f"as {1 << self.count.bit_length()}"))
        return self.evaluator.warnings

    # before the first run -----------------------------------------------------------------------------------------------
    def bytes_on_disk(self) -> float:
        """Return the approximate size of the folder in bytes."""
        columns = len(self.sweep.parameters) + len(self.sweep.outputs) + 3
        size = self.count * 2.0 * (8 * columns + 60)
        stored = self.sweep.trajectories
        if stored is not None:
            names = self.evaluator.stored_names(self.evaluator.known_columns())
            size += self.count * (self.evaluator.rows() / stored.every + 1) * 8.0 * (len(names) + 2)
        return size

    def check_disk(self, folder: Folder) -> None:
        """Raise ComputationError if the disk has not enough free space for the folder."""
        required, (free, disk) = self.bytes_on_disk(), free_disk(folder)
        if required > free:
            raise ComputationError(f"{self.count} runs need about {size_text(required)} of disk in {disk}; {size_text(free)} "
                                   "are free (keep fewer columns or rows of trajectories, or give another folder with -o)")

    def report(self, folder: Folder) -> dict[str, Any]:
        """Return a description of the planned computation as plain values.

        It has no time estimate, since the times of runs differ.
        """
        evaluator = self.evaluator
        return {"scenario": self.sweep.begins_with, "job": self._job, "robot": self.binding.model.name, "runs": self.count,
                "mode": evaluator.mode,
                "parameters": {parameter.name: parameter.key for parameter in self.sweep.parameters},
                "outputs": {output.name: output.text for output in self.sweep.outputs},
                "trajectories": self.sweep.trajectories is not None, "rows": evaluator.rows(), "steps": evaluator.steps(),
                "chunks": self.chunks, "runs_in_a_chunk": self.size,
                "bytes": int(self.bytes_on_disk()), "folder": os.fspath(folder)}

    # running ------------------------------------------------------------------------------------------------------------
    def run(self, folder: Folder, *, shard: tuple[int, int] = (1, 1), force: bool = False, resume: bool = False,
            jobs: int | None = None, scheduler: str | None = None, csv: bool = False,
            progress: Callable[[int, int], None] = lambda _done, _count: None) -> SweepOutcome:
        """Compute the missing chunks and write them to the folder.

        shard      (i, N): compute part i of N of the chunks, from 1
        force      remove an earlier batch in the folder
        resume     reuse the chunks of an earlier batch in the folder
        jobs       maximum number of processes; default: all cores
        scheduler  address of a dask scheduler, whose workers compute the chunks
        csv        also write the table as CSV
        progress   called with the number of finished runs and of all runs

        Raises UsageError if the folder must not be changed, ComputationError if workers fail repeatedly.
        """
        start, (part, parts) = time.perf_counter(), shard
        self.check_disk(folder)
        store = ResultStore(folder, self.sweep.trajectories is not None)
        existing = store.open(force, resume or parts > 1)
        if existing is not None and self._size is None:
            self._size = existing.get("runs_in_a_chunk", self.size)
        csv = csv or store.has_csv
        store.write_description(self._description())
        chunks = [self.chunk(number) for number in range(self.chunks)]
        if not all(store.has_chunk(chunk.name) for chunk in chunks):
            store.remove_tables()
        shard_chunks = chunks[part - 1::parts]
        missing = [chunk for chunk in shard_chunks if not store.has_chunk(chunk.name)]
        count, computed = (sum(chunk.until - chunk.first for chunk in selected) for selected in (shard_chunks, missing))
        done = count - computed

        def advance(runs: int) -> None:
            nonlocal done
            done += runs
            progress(done, count)
        advance(0)
        self._compute(store, missing, jobs or cores(), scheduler, advance)
        n_missing = sum(not store.has_chunk(chunk.name) for chunk in chunks)
        table = TableSummary({}, 0, (0, "")) if n_missing else store.write_table([chunk.name for chunk in chunks], csv)
        return SweepOutcome(self.count, computed, count - computed, n_missing, time.perf_counter() - start, table)

    def _compute(self, store: ResultStore, chunks: Sequence[Chunk], jobs: int, scheduler: str | None, progress: Progress) -> None:
        """Compute chunks: in this process if this takes a short time, else in processes or on a cluster."""
        job = Job(self.sweep, os.fspath(store.folder.absolute()), self.identity)
        if scheduler is not None:
            for runs in run_in_cluster(job, chunks, scheduler):
                progress(runs)
            return
        max_seconds = _MAX_THREADED_SECONDS if self.evaluator.is_vectorized else _MAX_SEQUENTIAL_SECONDS
        start, pace, done, count = time.perf_counter(), Pace(), 0, sum(chunk.until - chunk.first for chunk in chunks)

        def advance(runs: int) -> None:
            nonlocal done
            done += runs
            pace.update(done)
            progress(runs)

        for k, chunk in enumerate(chunks):
            if jobs > 1 and k:
                seconds = 1.0 / pace.runs_per_second if pace.runs_per_second else \
                    max(0.0, time.perf_counter() - start - _LOADING_SECONDS) / done
                if seconds * (count - done) > max_seconds:
                    for runs in run_in_processes(job, chunks[k:], jobs):
                        progress(runs)
                    return
            write_chunk(self.evaluator, store, chunk, advance)

    @property
    def _job(self) -> str:
        return self.sweep.job.kind if self.sweep.job else SIMULATE

    def _description(self) -> dict[str, Any]:
        sweep = self.sweep
        return {"liedyn": __version__, "identity": self.identity, "count": self.count, "runs_in_a_chunk": self.size,
                "scenario": sweep.begins_with, "job": self._job, "overrides": list(sweep.overrides),
                "source": sweep.source and _absolute(sweep.source),
                "combine": sweep.combine, "sampling": sweep.sampling, "seed": sweep.seed,
                "parameters": [{"key": parameter.key, "name": parameter.name, "scale": parameter.scale}
                               for parameter in sweep.parameters],
                "outputs": {output.name: output.text for output in sweep.outputs}, "trajectories": sweep.trajectories is not None,
                "units": self._units()}

    def _units(self) -> dict[str, str]:
        """Return the units of outputs, and of parameters that are coordinates or numbers of the robot, where they are known."""
        from liedyn.analysis.trajectory_derivatives import unit_of
        from liedyn.dynamics.model_parameters import parameter_names

        columns, model = self.evaluator.known_columns(), self.binding.model
        names = set(parameter_names(model))
        units = {output.name: compile_output(output).unit(columns) for output in self.sweep.outputs}
        for parameter in self.sweep.parameters:
            key = parameter.key.removeprefix("initial.")
            name = key.removeprefix("robot.")
            units[parameter.name] = columns.get(key) if key.startswith(("q.", "v.")) else "kg" if key.endswith(".mass") else \
                unit_of(model, name) if name != key and name in names else None
        return {name: unit for name, unit in units.items() if unit}


def _with_absolute_paths(sweep: Sweep) -> Sweep:
    """Return the sweep with absolute paths: workers can have another working directory."""
    if sweep.job is None:
        return replace(sweep, scenario=_absolute(sweep.scenario))
    columns = sweep.job.columns
    if columns is not None and "=" not in columns:
        columns = _absolute(columns)
    job = replace(sweep.job, trajectory=_absolute(sweep.job.trajectory), robot=sweep.job.robot and _absolute(sweep.job.robot),
                  columns=columns)
    parameters = tuple(replace(parameter, values=tuple(map(_absolute, parameter.trajectories)))
                       if parameter.key == "trajectory" else parameter for parameter in sweep.parameters)
    return replace(sweep, job=job, parameters=parameters)


def _absolute(path: Folder) -> str:
    """Return an absolute path without `..`; links stay, unlike in `Path.resolve`."""
    return os.path.abspath(path)


# Repeat runs of a batch from its folder: those with given numbers, or with the minimum or maximum of an output ----------

_MIN, _MAX, _N_DEFAULT_RUNS = "min:", "max:", 4


@dataclass(frozen=True, eq=False)
class Rerun:
    """A repeated run.

    varied  description of each varied parameter and its value
    result  result of the run; of a diverged run, the rows before the failure
    """

    number: int
    varied: tuple[str, ...]
    result: Result


def select_runs(folder: Folder, selection: Sequence[str]) -> list[int]:
    """Return the numbers of selected runs of a batch.

    selection  numbers such as "7", ranges "0-3", `min:OUTPUT`, `max:OUTPUT`; empty: a few evenly spaced runs

    Raises UsageError for numbers or outputs that the table does not have.
    """
    table = ResultStore(folder).read()
    count, run_numbers = len(table), []
    if not selection:
        run_numbers = np.unique(np.linspace(0, count - 1, min(_N_DEFAULT_RUNS, count)).round().astype(int)).tolist()
    for text in selection:
        if text.startswith((_MIN, _MAX)):
            run_numbers.append(_extreme_run(folder, table, text))
            continue
        first, _, last = text.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise UsageError(f"--runs {text}: expected a run number, a range such as 0-3, min:OUTPUT or max:OUTPUT")
        run_numbers += range(int(first), int(last or first) + 1)
    invalid = [number for number in run_numbers if number >= count]
    if invalid:
        raise UsageError(f"there is no run {invalid[0]}: {folder} has {count} runs, from 0 to {count - 1}")
    return list(dict.fromkeys(run_numbers))


def rerun(folder: Folder, run_numbers: Iterable[int], progress: Callable[[float], None] = lambda _fraction: None) -> list[Rerun]:
    """Simulate runs of a batch again, with the same numbers and therefore the same results.

    progress  called with the fraction of the runs that are finished

    Raises UsageError if files of the batch have changed since, or if a run failed before its simulation.
    """
    store, run_numbers = ResultStore(folder), list(run_numbers)
    description, table = store.description() or {}, store.read()
    if description.get("job", SIMULATE) != SIMULATE:
        raise UsageError(f"the runs of {folder} are not simulations (job: {description['job']}): "
                         "`liedyn batch … --rerun K` writes the CSV of run K")
    source = description.get("source")
    if not source or not Path(source).is_file():
        raise UsageError(f"the sweep file of {folder} no longer exists: {source}" if source else
                         f"the batch in {folder} was not run from a sweep file")
    batch = PreparedSweep(replace(read_sweep(source), overrides=tuple(description["overrides"])))
    evaluator, reruns = batch.evaluator, []
    for done, number in enumerate(run_numbers):
        progress(done / len(run_numbers))
        row, = table.slice(number, 1).to_pylist()
        if (not isinstance(evaluator, SimulationEvaluator) or number >= batch.count
                or hashes(batch.identity, number, batch.binding.values(number, number + 1)) != [row["hash"]]):
            raise UsageError(f"{source}, its scenario or its robot has changed since {folder} was written: "
                             f"`liedyn batch {source} -o {folder} --resume` computes it again")
        if row["status"] == FAILED:
            raise UsageError(f"run {number} has no motion: {row['reason']}")
        reruns.append(Rerun(number, _format_values(description, row), _result(evaluator, number)))
    return reruns


def _result(evaluator: SimulationEvaluator, number: int) -> Result:
    try:
        return evaluator.simulate(evaluator.binding.run(number))
    except LiedynError as error:
        if isinstance(error.result, Result):
            return error.result
        raise


def _format_values(description: dict[str, Any], row: dict[str, Value]) -> tuple[str, ...]:
    values = ((parameter["name"], row[parameter["name"]]) for parameter in description["parameters"])
    return tuple(f"{name} {x:.4g}" if isinstance(x, float) else f"{name} {x}" for name, x in values)


def _extreme_run(folder: Folder, table: Table, selection: str) -> int:
    name = selection[len(_MIN):]
    outputs = [*(ResultStore(folder).description() or {}).get("outputs", {})]
    if name not in outputs:
        raise UsageError(f"--runs {selection}: the batch has no output {name!r}; "
                         + (nearest(name, outputs) or f"it has {', '.join(outputs) or 'none'}"))
    x: Array = np.array(table[name].to_pylist(), dtype=float)        # NaN of runs that are not complete
    if np.isnan(x).all():
        raise UsageError(f"--runs {selection}: no run is complete")
    return int((np.nanargmin if selection.startswith(_MIN) else np.nanargmax)(x))
