"""The rows of a run: kept in memory, and on disk once the run takes long or has many; and its checkpoints.

On disk all rows are of one table, with the columns of a `Record` of all constraints of the robot.
"""
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from liedyn.errors import Interrupted, UsageError
from liedyn.integrators.problem import LOST, InitialValueProblem, RunObserver, Statistics, kept_rows
from liedyn.integrators.run_state import EVALUATIONS, NEXT_OUTPUT, STEPS, Record, named_arrays, release_memory
from liedyn.io.checkpoint_files import Unfinished, of_another_version
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.simulation.segment_problems import RunSegment, whole_record

EVERY = 5.0              # s between checkpoints, at least
_SHARE = 0.02            # of the time, at most, is spent on them
IN_MEMORY = 32e6         # bytes of rows: more go to the disk
BLOCK = 1 << 15          # rows that are looked at together


class RunRecorder(RunObserver):
    """Of one run of `model`, whose first problem is `problem`. disk: where it goes on after an interrupt; None: nowhere.

    about   what a checkpoint says besides: plain values
    """

    def __init__(self, model, problem: InitialValueProblem, disk: Unfinished | None = None, about: Callable[[], dict] = dict):
        self.model, self.disk, self.about = model, disk, about
        layout = whole_record(RunSegment(problem, problem.record(np.zeros(0))), model)
        self._edges = np.cumsum([0, *(1 if x.ndim == 1 else x.shape[1] for x in layout)]).tolist()
        self._flat = [x.ndim == 1 for x in layout]
        self._begun: list[tuple[InitialValueProblem, int]] = []             # of each stretch, and its first row
        self._kept: list[RunSegment] = []                             # those in memory
        self._now: tuple[Record, np.ndarray] | None = None
        self._count = self._written = 0                         # rows of stretches that ended; rows on disk
        self._next = time.perf_counter() + EVERY

    @property
    def width(self) -> int:
        return self._edges[-1]

    @property
    def _on_disk(self) -> bool:
        return self.disk is not None and self.disk.is_open

    # from the run ---------------------------------------------------------------------------------------------------
    def begin(self, problem: InitialValueProblem) -> None:
        """Of a stretch."""
        self._begun.append((problem, self._count))

    def follow(self, record: Record, count: np.ndarray) -> None:
        self._now = record, count

    def between(self, t: float, snapshot: Callable[[], dict[str, np.ndarray]]) -> None:
        if self.disk is None:
            return
        now, stop = time.perf_counter(), self.disk.stop
        if stop or now >= self._next or 8 * self.width * (self._count + int(self._now[1][0]) - self._written) > IN_MEMORY:
            self._save(t, snapshot())
            self._next = now + max(EVERY, (time.perf_counter() - now) / _SHARE)
        if stop:
            raise Interrupted(stop, t)

    def end(self, record: Record) -> None:
        """The stretch has these rows, but for those on disk already."""
        problem, first = self._begun[-1]
        if self._on_disk:
            self._append(RunSegment(problem, record), self._written - first, len(record.t))
        else:
            self._kept.append(RunSegment(problem, record))
        self._count += len(record.t)
        self._now = self.saved = None

    def cut(self) -> Statistics:
        """The stretch ends where it is: the run does not go on. Returns what it took so far."""
        if self._now is None:
            return Statistics()
        record, count = self._now
        n, statistics = int(count[NEXT_OUTPUT]), Statistics(*(int(x) for x in count[STEPS:EVALUATIONS + 1]))
        if n:
            self.end(kept_rows(record, n))
        else:
            self._begun.pop()
        return statistics

    def go_on(self, begun: list[tuple[InitialValueProblem, int]], rows: int, numbers: dict[str, np.ndarray]) -> None:
        """From a checkpoint. begun: all stretches with their first rows; `begin` is called for the last one again."""
        self._begun, self._count, self._written, self.saved = begun[:-1], begun[-1][1], rows, numbers

    # on disk --------------------------------------------------------------------------------------------------------
    def _save(self, t: float, numbers: dict[str, np.ndarray]) -> None:
        if not self.disk.is_open:
            self.disk.begin()
        for part in self._kept:
            self._append(part, 0, len(part.record.t))
        self._kept.clear()
        problem, first = self._begun[-1]
        record, count = self._now
        n = int(count[NEXT_OUTPUT])
        self._append(RunSegment(problem, record), self._written - first, n)
        for x in record[1:]:                                   # the times are read on
            release_memory(x, n)
        self.disk.save(numbers, self.about() | {"t": t, "rows": self._written, "width": self.width,
                                                "firsts": [first for _, first in self._begun]})

    def _append(self, part: RunSegment, first: int, last: int) -> None:
        for _, block in blocks([RunSegment(part.problem, Record(*(x[first:last] for x in part.record)))]):
            self.disk.append(np.column_stack(whole_record(block, self.model)))
        self._written += max(last - first, 0)

    # after the run --------------------------------------------------------------------------------------------------
    def parts(self) -> list[RunSegment]:
        """The stretches; their rows may be on disk."""
        if not self._on_disk:
            return [RunSegment(part.problem, whole_record(part, self.model)) for part in self._kept]
        table, firsts = self.disk.table(self.width), [*(first for _, first in self._begun), self._written]
        return [RunSegment(problem, self._record(table[i:j]))
                for (problem, _), (i, j) in zip(self._begun, pairwise(firsts), strict=True)]

    def whole(self, parts: list[RunSegment]) -> Record:
        """All rows of these, the first of the run."""
        if self._on_disk:
            return self._record(self.disk.table(self.width)[:sum(len(part.record.t) for part in parts)])
        return Record(*(np.concatenate(rows) for rows in zip(*(part.record for part in parts), strict=True)))

    def _record(self, table: np.ndarray) -> Record:
        return Record(*(table[:, a] if flat else table[:, a:b]
                        for (a, b), flat in zip(pairwise(self._edges), self._flat, strict=True)))

    def room(self, name: str, *shape: int) -> np.ndarray:
        """Zeros for what is computed from the rows: where these are."""
        return self.disk.room(name, shape) if self._on_disk else np.zeros(shape)


@contextmanager
def listening(disk: Unfinished | None) -> Iterator[None]:
    """While signals are reported to the run."""
    if disk is None:
        yield
        return
    disk.listening = True
    try:
        yield
    finally:
        disk.listening = False


def blocks(parts: list[RunSegment]) -> Iterator[tuple[slice, RunSegment]]:
    """Some rows after the other, with their places in the run."""
    place = 0
    for part in parts:
        n = len(part.record.t)
        for i in range(0, n, BLOCK):
            j = min(i + BLOCK, n)
            yield slice(place + i, place + j), RunSegment(part.problem,
                                                          Record(*(np.ascontiguousarray(x[i:j]) for x in part.record)))
        place += n


def meaningful(parts: list[RunSegment]) -> list[RunSegment]:
    """Of a run that went astray: without the rows of the last stretch from the first one on that is not finite, or beyond all
    meaning."""
    for place, block in blocks(parts[-1:]):
        bad = ~np.all([np.isfinite(x.reshape(len(x), -1)).all(axis=1) for x in block.record], axis=0)
        bad |= (np.abs(np.hstack([block.record.q, block.record.v])) > LOST).any(axis=1)
        if bad.any():
            n, part = place.start + int(np.argmax(bad)), parts[-1]
            return [*parts[:-1], *([RunSegment(part.problem, kept_rows(part.record, n))] if n else [])]
    return parts


# Going on with a run from its checkpoint: it must be the same run -------------------------------------------------------

def identity(prepared) -> dict:
    """What a checkpoint says of its run: the scenario, and a hash of all numbers that the robot and the files of signals gave."""
    p, hashed = prepared.problem, hashlib.sha256()
    numbers = named_arrays(model=(p.model.index, p.model.constants), schedule=p.schedule, signals=p.signals, start=(p.q, p.v),
                         law=p.law, contacts=p.contacts, joint_laws=p.joint_laws, stops=p.stops)
    for name, x in numbers.items():
        hashed.update(f"{name} {x.dtype} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
    return {"scenario": json.loads(json.dumps(to_plain(prepared.scenario))), "numbers": hashed.hexdigest()}


def resume(prepared, own: dict, rows: RunRecorder) -> dict:
    """Give the rows their checkpoint. own: `identity`. Returns what the checkpoint says about itself.

    Raises UsageError where it is of another run, or damaged."""
    disk = rows.disk
    numbers, about = disk.load()
    if about["width"] != rows.width:
        raise of_another_version(disk.path)
    which = f"the run in {disk.path} cannot be resumed:"
    if about["scenario"] != own["scenario"]:
        raise UsageError(f"{which} it was begun with {_difference(about['scenario'], own['scenario'])} "
                         f"(`liedyn simulate {disk.folder} --resume` takes all options from it)")
    if about["numbers"] != own["numbers"]:
        raise UsageError(f"{which} the robot, or a file that the scenario reads, has changed since")
    stages = prepared.timeline.go_on(about) if prepared.timeline else [prepared.problem]
    rows.go_on(list(zip(stages, about["firsts"], strict=True)), about["rows"], numbers)
    return about


def _difference(was, now, path: str = "") -> str:
    """The first key that differs."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*was, *now)):
            if was.get(key) != now.get(key):
                return _difference(was.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    told = ("no value" if x is None else json.dumps(x) for x in (was, now))
    return f"{path} = {next(told)[:100]}, not {next(told)[:100]}"
