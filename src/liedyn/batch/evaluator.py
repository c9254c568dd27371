"""Base class of the evaluators that compute the runs of a sweep, chunk by chunk."""
from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from liedyn.batch.output_expressions import BatchMotion, as_written, compile_output
from liedyn.batch.sweep_binding import SweepBinding
from liedyn.errors import LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.io.csv_table import column_title
from liedyn.io.sweep_file import Sweep
from liedyn.model.model import Model
from liedyn.simulation.name_binding import matching_names

COMPLETE, DIVERGED, FAILED = "complete", "diverged", "failed"
_SIDE_BY_SIDE, _MOST = 48e6, 4096                 # bytes of rows in a chunk of runs in one batch; runs in it
_WORK = 4e6                                       # steps times coordinates in a chunk of others, about a second


@dataclass
class SampleTable:
    """Results of N runs; outputs of runs that are not complete are NaN.

    values   values of each varied parameter, (N,) arrays or lists
    outputs  (N, outputs)
    status   COMPLETE, FAILED or another status of each run; reason: its explanation, or a warning
    kept     stored trajectories of some runs each: columns by title
    """

    number: np.ndarray
    values: list
    outputs: np.ndarray
    energy_balance: np.ndarray
    status: list[str]
    reason: list[str]
    seconds: np.ndarray
    hash: list[str]
    kept: list[dict[str, np.ndarray]] = field(default_factory=list)

    @property
    def trajectories(self) -> dict[str, np.ndarray]:
        """Stored trajectories of all runs, sorted by run number. Missing columns are NaN; empty if no trajectory is stored."""
        titles = dict.fromkeys(title for one in self.kept for title in one)
        columns = {title: np.concatenate([one.get(title, np.full(len(one["number"]), math.nan)) for one in self.kept])
                   for title in titles}
        order = np.argsort(columns["number"], kind="stable") if columns else ()
        return {title: x[order] for title, x in columns.items()}


class SweepEvaluator:
    """Base class: computes the runs of a sweep.

    threads  maximum number of threads for vectorized runs; default: all cores
    fewest   minimum number of vectorized runs in a chunk
    """

    fewest = 64

    identity = ""                                              # hash of all that the runs of the batch share

    def __init__(self, sweep: Sweep, threads: int | None = None):
        self.sweep, self.threads = sweep, threads
        self.binding = self._bound()
        self.outputs = [compile_output(one) for one in sweep.outputs]
        self._check_columns()

    # overridden by subclasses -------------------------------------------------------------------------------------------
    def _bound(self) -> SweepBinding:
        raise NotImplementedError

    @property
    def side_by_side(self) -> bool:
        """Whether runs are vectorized, rather than computed sequentially."""
        raise NotImplementedError

    @property
    def mapped(self) -> bool:
        """Whether vectorized runs are computed without binding each run individually."""
        raise NotImplementedError

    def known_columns(self) -> dict[str, str]:
        """Return the columns that every run has, with their units."""
        raise NotImplementedError

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings that concern all runs."""
        return ()

    def events(self) -> list[str]:
        """Return the names of the events that can happen in the runs."""
        return []

    def common(self) -> tuple:
        """Return plain values of all that the runs share, in addition to the settings of the sweep.

        They enter the identity of the batch.
        """
        raise NotImplementedError

    def rows(self) -> int:
        """Return the number of rows (output times) of a run."""
        raise NotImplementedError

    def steps(self) -> int | None:
        """Return the number of steps of the first run, or None if the step size is not fixed."""
        return None

    def numbers(self) -> tuple[int, float]:
        """Return the count of numbers per row that a vectorized run keeps in memory, and the work of a sequential run.

        The work is the number of steps times coordinates.
        """
        raise NotImplementedError

    def _check_others(self, others) -> None:
        """Raise ScenarioError for columns that no run has. others: (column, output or setting that uses it) pairs."""
        raise NotImplementedError

    def _together(self, table: SampleTable, progress) -> list[int]:
        """Compute runs as one batch, and return the rows of `table` that must be computed individually."""
        raise NotImplementedError

    def _alone(self, table: SampleTable, i: int, run) -> None:
        """Compute one bound run and write row i of `table`. Raises LiedynError if the run fails."""
        raise NotImplementedError

    @property
    def way(self) -> str:
        """Description of how the runs are computed."""
        if not self.side_by_side:
            return "sequential"
        return "vectorized" if self.mapped else "vectorized, each run bound individually"

    # columns ------------------------------------------------------------------------------------------------------------
    def _check_columns(self) -> None:
        known, links, others = self.known_columns(), self.binding.model.link_names, set()
        events = self.events()
        for output, one in zip(self.outputs, self.sweep.outputs, strict=True):
            for name in output.columns:
                if name not in known and name.partition(".")[0] in ("q", "v", "a", "tau", "energy"):
                    there = [*map(as_written, known)]
                    raise ScenarioError("no such column", place=one.place, found=name, hint=nearest(name, there),
                                        expected=f"a column of the trajectory, such as {', '.join(there[:3])}")
                others |= {(name, one)} if name not in known else set()
            for link in output.links:
                if link not in links:
                    raise ScenarioError("no such link", place=one.place, found=link, expected="one of " + ", ".join(links),
                                        hint=nearest(link, links))
            for event in output.events:
                if event not in events:
                    raise ScenarioError("no such event", place=one.place, found=event, hint=nearest(event, events),
                                        expected=f"one of {', '.join(events)}" if events else "no event: these runs have none")
        kept = self.sweep.trajectories
        others |= {(pattern, kept) for pattern in kept.columns if not matching_names(pattern, known)} if kept else set()
        if others:
            self._check_others(others)

    def kept_names(self, names) -> list[str]:
        """Return those of the column names whose trajectories are stored."""
        kept = {name for pattern in self.sweep.trajectories.columns for name in matching_names(pattern, names)}
        return [name for name in names if name in kept]

    # runs ---------------------------------------------------------------------------------------------------------------
    def chunk_size(self, count: int) -> int:
        """Return the number of runs per chunk for a sweep of `count` runs."""
        numbers, work = self.numbers()
        if self.side_by_side:
            return int(np.clip(_power_of_two(_SIDE_BY_SIDE / (8 * numbers * self.rows())), self.fewest, _MOST))
        return int(np.clip(_power_of_two(min(_WORK / work, count / 8)), 1, 256))

    def chunk(self, first: int, until: int, progress=lambda runs: None) -> SampleTable:
        """Compute the runs first … until - 1."""
        return self.computed(first, self.binding.values(first, until), progress)

    def computed(self, first: int, values: list, progress=lambda runs: None) -> SampleTable:
        """Compute the runs with these values of each varied parameter; their numbers start at `first`."""
        n = len(values[0])
        table = SampleTable(np.arange(first, first + n), values, np.full((n, len(self.outputs)), np.nan), np.full(n, np.nan),
                            [""] * n,
                      [""] * n, np.zeros(n), hashes(self.identity, first, values))
        todo = self._together(table, progress) if self.side_by_side else range(n)
        for i in todo:
            began = time.perf_counter()
            try:
                self._alone(table, i, self.binding.bind([x[i] for x in values]))
            except LiedynError as error:
                table.status[i], table.reason[i] = FAILED, str(error)
            table.seconds[i] = time.perf_counter() - began
            progress(1)
        return table

    def _fill(self, table: SampleTable, rows: np.ndarray, motion: BatchMotion) -> None:
        """Write the outputs of complete runs to `rows` of the table."""
        for k, x in enumerate([output.value(motion) for output in self.outputs]):
            table.outputs[rows, k] = x
        for i in rows:
            table.status[i] = COMPLETE
        self._keep(table, rows, motion)

    def _keep(self, table: SampleTable, rows: np.ndarray, motion: BatchMotion) -> None:
        """Append the trajectories of the runs to the table if the sweep stores trajectories."""
        if self.sweep.trajectories:
            shape = len(rows), len(motion.t)
            which = np.unique([*range(0, shape[1], self.sweep.trajectories.every), shape[1] - 1])
            number, t = np.repeat(table.number[rows], len(which)), np.tile(motion.t[which], len(rows))
            table.kept.append({"number": number, "t[s]": t} | {
                column_title(name, motion.units[name]): np.broadcast_to(motion.column(name), shape)[:, which].ravel()
                for name in self.kept_names(motion.columns)})


def _power_of_two(x: float) -> int:
    return 1 << max(int(np.log2(max(x, 1.0))), 0)


def hashes(identity: str, first: int, values: list) -> list[str]:
    """Return a hash of each run: of the identity of the batch, the number of the run and its values."""
    start, found = hashlib.sha256(identity.encode()), []
    numbers = np.array([x for x in values if isinstance(x, np.ndarray)]).T.copy()
    others = [x for x in values if not isinstance(x, np.ndarray)]
    for i in range(len(values[0])):
        one = start.copy()
        one.update(b"%d " % (first + i) + (numbers[i].tobytes() if len(numbers) else b""))
        if others:
            one.update(json.dumps([x[i] for x in others]).encode())
        found.append(one.hexdigest()[:16])
    return found


@contextmanager
def generic_kernels_of(robot: Model, base: Model) -> Iterator[None]:
    """Use the generic kernels within this context if the constants of `robot` differ from those of `base`.

    Generated code contains the constants of the robot, and generating it for one run takes longer than the run.
    """
    before, wanted = os.environ.get("LIEDYN_CODE"), not np.array_equal(robot.constants, base.constants)
    if wanted:
        os.environ["LIEDYN_CODE"] = "generic"
    try:
        yield
    finally:
        if wanted:
            os.environ.pop("LIEDYN_CODE")
            if before is not None:
                os.environ["LIEDYN_CODE"] = before
