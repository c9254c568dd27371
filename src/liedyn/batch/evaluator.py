"""Base class of the evaluators that compute the runs of a sweep, chunk by chunk."""
from __future__ import annotations

import hashlib
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.batch.output_expressions import BatchMotion, column_expression, compile_output
from liedyn.batch.sweep_binding import Run, SweepBinding, Values
from liedyn.errors import LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.io.csv_table import column_title
from liedyn.io.sweep_file import Output, StoredTrajectories, Sweep
from liedyn.model.name_patterns import matching_names

COMPLETE, DIVERGED, FAILED = "complete", "diverged", "failed"
_CHUNK_BYTES, _MAX_VECTORIZED_RUNS = 48e6, 4096   # bytes of rows in a chunk of vectorized runs; runs in it
_CHUNK_WORK = 4e6                                 # steps times coordinates in a chunk of sequential runs, about a second

Progress: TypeAlias = Callable[[int], None]       # called with the number of runs that were finished
ColumnUse: TypeAlias = tuple[str, Output | StoredTrajectories]     # a column or pattern, and the entry of the sweep that uses it


def no_progress(_runs: int) -> None:
    """Ignore the number of finished runs."""


@dataclass
class SampleTable:
    """Results of N runs; outputs of runs that are not complete are NaN.

    values   values of each varied parameter, (N,) arrays or lists
    outputs  (N, outputs)
    status   COMPLETE, FAILED or another status of each run; reason: its explanation, or a warning
    stored   stored trajectories of some runs each: columns by title
    """

    number: Integers
    values: list[Values]
    outputs: Array
    energy_balance: Array
    status: list[str]
    reason: list[str]
    seconds: Array
    hash: list[str]
    stored: list[dict[str, Array]] = field(default_factory=list)

    @property
    def trajectories(self) -> dict[str, Array]:
        """Stored trajectories of all runs, sorted by run number. Missing columns are NaN; empty if no trajectory is stored."""
        titles = dict.fromkeys(title for rows in self.stored for title in rows)
        columns = {title: np.concatenate([rows.get(title, np.full(len(rows["number"]), math.nan)) for rows in self.stored])
                   for title in titles}
        if not columns:
            return {}
        order = np.argsort(columns["number"], kind="stable")
        return {title: x[order] for title, x in columns.items()}


class SweepEvaluator(ABC, Generic[Run]):
    """Base class: computes the runs of a sweep.

    threads         maximum number of threads for vectorized runs; default: all cores
    min_chunk_runs  minimum number of vectorized runs in a chunk
    identity        hash of all that the runs of the batch share
    """

    min_chunk_runs = 64
    identity = ""

    def __init__(self, sweep: Sweep, binding: SweepBinding[Run], threads: int | None = None):
        self.sweep, self.binding, self.threads = sweep, binding, threads
        self.outputs = [compile_output(output) for output in sweep.outputs]
        self._check_columns()

    # overridden by subclasses -------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def is_vectorized(self) -> bool:
        """Whether runs are vectorized, rather than computed sequentially."""

    @property
    @abstractmethod
    def is_affine(self) -> bool:
        """Whether vectorized runs are computed without binding each run individually."""

    @abstractmethod
    def known_columns(self) -> dict[str, str]:
        """Return the columns that every run has, with their units."""

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings that concern all runs."""
        return ()

    def events(self) -> list[str]:
        """Return the names of the events that can happen in the runs."""
        return []

    @abstractmethod
    def shared_inputs(self) -> tuple[Any, ...]:
        """Return plain values of all that the runs share, in addition to the settings of the sweep.

        They enter the identity of the batch.
        """

    @abstractmethod
    def rows(self) -> int:
        """Return the number of rows (output times) of a run."""

    def steps(self) -> int | None:
        """Return the number of steps of the first run, or None if the step size is not fixed."""
        return None

    @abstractmethod
    def costs(self) -> tuple[int, float]:
        """Return the count of numbers per row that a vectorized run keeps in memory, and the work of a sequential run.

        The work is the number of steps times coordinates.
        """

    @abstractmethod
    def _check_unknown_columns(self, unknown: Iterable[ColumnUse]) -> None:
        """Raise ScenarioError for columns that no run has. unknown: columns that not every run has."""

    @abstractmethod
    def _run_vectorized(self, table: SampleTable, progress: Progress) -> list[int]:
        """Compute runs as one batch, and return the rows of `table` that must be computed individually."""

    @abstractmethod
    def _run_single(self, table: SampleTable, i: int, run: Run) -> None:
        """Compute one bound run and write row i of `table`. Raises LiedynError if the run fails."""

    @property
    def mode(self) -> str:
        """Description of how the runs are computed."""
        if not self.is_vectorized:
            return "sequential" + (f" ({self.sequential_reason})" if self.sequential_reason else "")
        return "vectorized" if self.is_affine else "vectorized, each run prepared individually"

    @property
    def sequential_reason(self) -> str:
        """Return why runs are sequential, "" if the reason is not known."""
        return ""

    # columns ------------------------------------------------------------------------------------------------------------
    def _check_columns(self) -> None:
        known = self.known_columns()
        unknown: list[ColumnUse] = []
        for compiled, output in zip(self.outputs, self.sweep.outputs, strict=True):
            for name in compiled.columns:
                if name in known:
                    continue
                if name.partition(".")[0] in ("q", "v", "a", "tau", "energy"):
                    columns = [*map(column_expression, known)]
                    raise ScenarioError("no such column", place=output.place, found=name, hint=nearest(name, columns),
                                        expected=f"a column of the trajectory, such as {', '.join(columns[:3])}")
                unknown.append((name, output))
            _check_names("link", compiled.links, self.binding.model.link_names, output)
            _check_names("event", compiled.events, self.events(), output)
        stored = self.sweep.trajectories
        if stored is not None:
            unknown += [(pattern, stored) for pattern in stored.columns if not matching_names(pattern, [*known])]
        if unknown:
            self._check_unknown_columns(unknown)

    def stored_names(self, names: Collection[str]) -> list[str]:
        """Return those of the column names whose trajectories are stored; none if the sweep stores no trajectories."""
        patterns = self.sweep.trajectories.columns if self.sweep.trajectories else ()
        stored = {name for pattern in patterns for name in matching_names(pattern, [*names])}
        return [name for name in names if name in stored]

    # runs ---------------------------------------------------------------------------------------------------------------
    def chunk_size(self, count: int) -> int:
        """Return the number of runs per chunk for a sweep of `count` runs."""
        numbers_per_row, work = self.costs()
        if self.is_vectorized:
            runs = _power_of_two(_CHUNK_BYTES / (8 * numbers_per_row * self.rows()))
            return int(np.clip(runs, self.min_chunk_runs, _MAX_VECTORIZED_RUNS))
        return int(np.clip(_power_of_two(min(_CHUNK_WORK / work, count / 8)), 1, 256))

    def compute_chunk(self, first: int, until: int, progress: Progress = no_progress) -> SampleTable:
        """Compute the runs first … until - 1."""
        return self.compute_runs(first, self.binding.values(first, until), progress)

    def compute_runs(self, first: int, values: list[Values], progress: Progress = no_progress) -> SampleTable:
        """Compute the runs with these values of each varied parameter; their numbers start at `first`."""
        n = len(values[0])
        table = SampleTable(np.arange(first, first + n), values, np.full((n, len(self.outputs)), np.nan), np.full(n, np.nan),
                            [""] * n, [""] * n, np.zeros(n), hashes(self.identity, first, values))
        for i in self._run_vectorized(table, progress) if self.is_vectorized else range(n):
            start = time.perf_counter()
            try:
                self._run_single(table, i, self.binding.bind([x[i] for x in values]))
            except LiedynError as error:
                table.status[i], table.reason[i] = FAILED, str(error)
            table.seconds[i] = time.perf_counter() - start
            progress(1)
        return table

    def _fill(self, table: SampleTable, rows: Integers, motion: BatchMotion) -> None:
        """Write the outputs of complete runs to `rows` of the table."""
        for k, x in enumerate([output.value(motion) for output in self.outputs]):
            table.outputs[rows, k] = x
        for i in rows:
            table.status[i] = COMPLETE
        self._store_trajectories(table, rows, motion)

    def _store_trajectories(self, table: SampleTable, rows: Integers, motion: BatchMotion) -> None:
        """Append the trajectories of the runs to the table if the sweep stores trajectories."""
        if self.sweep.trajectories:
            shape = len(rows), len(motion.t)
            times = np.unique([*range(0, shape[1], self.sweep.trajectories.every), shape[1] - 1])
            number, t = np.repeat(table.number[rows], len(times)), np.tile(motion.t[times], len(rows))
            table.stored.append({"number": number, "t[s]": t} | {
                column_title(name, motion.units[name]): np.broadcast_to(motion.column(name), shape)[:, times].ravel()
                for name in self.stored_names(motion.columns)})


def _check_names(kind: str, names: Iterable[str], known: Sequence[str], output: Output) -> None:
    for name in names:
        if name not in known:
            raise ScenarioError(f"no such {kind}", place=output.place, found=name, hint=nearest(name, known),
                                expected=f"one of {', '.join(known)}" if known else f"no {kind}: these runs have none")


def _power_of_two(x: float) -> int:
    return 1 << max(int(np.log2(max(x, 1.0))), 0)


def hashes(identity: str, first: int, values: Sequence[Values]) -> list[str]:
    """Return a hash of each run: of the identity of the batch, the number of the run and its values."""
    digests, common = [], hashlib.sha256(identity.encode())
    numeric = np.array([x for x in values if isinstance(x, np.ndarray)]).T.copy()
    lists = [x for x in values if not isinstance(x, np.ndarray)]
    for i in range(len(values[0])):
        run = common.copy()
        run.update(b"%d " % (first + i) + (numeric[i].tobytes() if len(numeric) else b""))
        if lists:
            run.update(json.dumps([x[i] for x in lists]).encode())
        digests.append(run.hexdigest()[:16])
    return digests
