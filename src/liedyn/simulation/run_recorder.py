"""The rows of a run in memory, or on disk if the run is long or has many rows, and its checkpoints.

On disk all rows are in one table, with the columns of a `Record` of all constraints of the robot.
"""
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import Interrupted, UsageError
from liedyn.integrators.problem import InitialValueProblem, RunObserver, Statistics, first_rows, within_limit
from liedyn.integrators.run_state import EVALUATIONS, NEXT_OUTPUT, STEPS, Record, arrays_of, release_memory
from liedyn.io.checkpoint_files import Unfinished, of_another_version, split_arrays
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.model.model import Model
from liedyn.simulation.control.python_controller import controller_digest
from liedyn.simulation.joint_friction import JointFriction
from liedyn.simulation.segment_problems import RunSegment, full_record

if TYPE_CHECKING:
    from liedyn.simulation.hybrid_simulation import HybridSimulation  # imports this module
    from liedyn.simulation.preparation import PreparedRun  # imports hybrid_simulation

CHECKPOINT_PERIOD = 5.0       # s, minimum between checkpoints
_MAX_TIME_FRACTION = 0.02     # maximum fraction of the computing time for checkpoints
MAX_BYTES_IN_MEMORY = 32e6    # bytes of rows: larger runs are stored on disk
BLOCK_ROWS = 1 << 15          # rows that are processed at once


class RunRecorder(RunObserver):
    """The rows of one run of `model`, whose first problem is `problem`.

    frictions   rigid friction of `model`
    disk        folder from which an interrupted run continues; None: none
    run_state   returns the parts of a checkpoint except the rows and the segment
    """

    def __init__(self, model: Model, problem: InitialValueProblem, disk: Unfinished | None = None,
                 frictions: Sequence[JointFriction] = ()):
        self.model, self.disk, self.frictions = model, disk, frictions
        self.run_state: Callable[[], dict[str, Any]] = dict
        layout = full_record(RunSegment(problem, problem.allocate_record(np.zeros(0))), model)
        self._edges: list[int] = np.cumsum([0, *(1 if x.ndim == 1 else x.shape[1] for x in layout)]).tolist()
        self._flat = [x.ndim == 1 for x in layout]
        self._problem = problem                                # of the current segment
        self._segment_starts: list[tuple[InitialValueProblem, int]] = []             # completed segments and their first rows
        self._segments: list[RunSegment] = []                                        # completed segments in memory
        self._current: tuple[Record, Integers] | None = None
        self._count = self._written = 0                         # rows of segments that ended; rows on disk
        self._next = time.perf_counter() + CHECKPOINT_PERIOD

    @property
    def width(self) -> int:
        """Number of columns of the table of all rows."""
        return self._edges[-1]

    @property
    def _open_disk(self) -> Unfinished | None:
        """The folder if rows are in it."""
        return self.disk if self.disk is not None and self.disk.is_open else None

    # called during the run ------------------------------------------------------------------------------------------
    def open_segment(self, problem: InitialValueProblem) -> None:
        """Set the problem of the next segment."""
        self._problem = problem

    def begin_segment(self, record: Record, count: Integers) -> None:
        """Store the arrays that the segment fills."""
        self._current = record, count

    def checkpoint(self, t: float, state_dict: Callable[[], dict[str, Any]]) -> None:
        """Save a checkpoint if it is due, or if the process has received a signal. Raises Interrupted after a signal."""
        if self.disk is None or self._current is None:
            return
        present, stop = time.perf_counter(), self.disk.stop
        unwritten = self._count + int(self._current[1][NEXT_OUTPUT]) - self._written
        if stop or present >= self._next or 8 * self.width * unwritten > MAX_BYTES_IN_MEMORY:
            self._save(self.disk, *self._current, state_dict())
            self._next = present + max(CHECKPOINT_PERIOD, (time.perf_counter() - present) / _MAX_TIME_FRACTION)
        if stop:
            raise Interrupted(stop, t)

    def close_segment(self, record: Record) -> None:
        """Store the rows of the segment except those on disk already."""
        segment = RunSegment(self._problem, record)
        if (disk := self._open_disk) is not None:
            self._append(disk, segment, self._written - self._count, len(record.t))
        else:
            self._segments.append(segment)
        self._segment_starts.append((self._problem, self._count))
        self._count += len(record.t)
        self._current = self.saved_state = None

    def abort_segment(self) -> Statistics:
        """End the segment at its current row, because the run does not continue. Return its statistics so far."""
        if self._current is None:
            return Statistics()
        record, count = self._current
        n, (steps, rejected, evaluations) = int(count[NEXT_OUTPUT]), (int(x) for x in count[STEPS:EVALUATIONS + 1])
        if n:
            self.close_segment(first_rows(record, n))
        return Statistics(steps, rejected, evaluations)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the rows."""
        return {"width": self.width, "rows": self._count, "rows_on_disk": self._written,
                "segment_starts": [first for _, first in self._segment_starts]}

    def load_state_dict(self, state: dict[str, Any], problems: Iterable[InitialValueProblem]) -> None:
        """Restore the state of a checkpoint. problems: the problems of the completed segments."""
        self._count, self._written = state["rows"], state["rows_on_disk"]
        self._segment_starts = list(zip(problems, state["segment_starts"], strict=True))

    # on disk --------------------------------------------------------------------------------------------------------
    def _save(self, disk: Unfinished, record: Record, count: Integers, segment_state: dict[str, Any]) -> None:
        if not disk.is_open:
            disk.begin()
        for segment in self._segments:
            self._append(disk, segment, 0, len(segment.record.t))
        self._segments.clear()
        n = int(count[NEXT_OUTPUT])
        self._append(disk, RunSegment(self._problem, record), self._written - self._count, n)
        for x in record[1:]:                                   # the times are read on
            release_memory(x, n)
        disk.save(self.run_state() | {"recorder": self.state_dict(), "segment": segment_state})

    def _append(self, disk: Unfinished, segment: RunSegment, first: int, last: int) -> None:
        for _, block in blocks([segment.rows(slice(first, last))]):
            disk.append(np.column_stack(full_record(block, self.model, self.frictions)))
        self._written += max(last - first, 0)

    # after the run --------------------------------------------------------------------------------------------------
    def segments(self) -> list[RunSegment]:
        """Return the segments, whose rows may be on disk."""
        if (disk := self._open_disk) is None:
            return [RunSegment(segment.problem, full_record(segment, self.model, self.frictions)) for segment in self._segments]
        table, firsts = disk.table(self.width), [*(first for _, first in self._segment_starts), self._written]
        return [RunSegment(problem, self._record(table[i:j]))
                for (problem, _), (i, j) in zip(self._segment_starts, pairwise(firsts), strict=True)]

    def full_run_record(self, segments: Sequence[RunSegment], selected: bool = False) -> Record:
        """Return one record of all rows of these segments, the first of the run. selected: whether they lack rows."""
        if (disk := self._open_disk) is not None and not selected:
            return self._record(disk.table(self.width)[:sum(len(segment.record.t) for segment in segments)])
        return Record(*(np.concatenate(rows) for rows in zip(*(segment.record for segment in segments), strict=True)))

    def _record(self, table: Array) -> Record:
        return Record(*(table[:, a] if flat else table[:, a:b]
                        for (a, b), flat in zip(pairwise(self._edges), self._flat, strict=True)))

    def allocate(self, name: str, *shape: int) -> Array:
        """Return zeros for values that are computed from the rows, on disk if the rows are."""
        disk = self._open_disk
        return np.zeros(shape) if disk is None else disk.room(name, shape)


@contextmanager
def accepting_signals(disk: Unfinished | None) -> Iterator[None]:
    """Return a context in which the run receives the signals of the process."""
    if disk is None:
        yield
        return
    disk.listening = True
    try:
        yield
    finally:
        disk.listening = False


def blocks(segments: Sequence[RunSegment]) -> Iterator[tuple[slice, RunSegment]]:
    """Yield blocks of rows with their slices in the run."""
    place = 0
    for segment in segments:
        n = len(segment.record.t)
        for i in range(0, n, BLOCK_ROWS):
            j = min(i + BLOCK_ROWS, n)
            yield slice(place + i, place + j), RunSegment(segment.problem,
                                                          Record(*(np.ascontiguousarray(x[i:j]) for x in segment.record)))
        place += n


def finite_segments(segments: list[RunSegment]) -> list[RunSegment]:
    """Return the segments of a diverged run up to the first row that is not finite or too large to be meaningful."""
    for place, block in blocks(segments[-1:]):
        bad = ~np.all([np.isfinite(x.reshape(len(x), -1)).all(axis=1) for x in block.record], axis=0)
        bad |= ~within_limit(block.record.q, block.record.v)
        if bad.any():
            n, segment = place.start + int(np.argmax(bad)), segments[-1]
            return [*segments[:-1], *([RunSegment(segment.problem, first_rows(segment.record, n))] if n else [])]
    return segments


# Resuming a run from its checkpoint: it must be the same run ------------------------------------------------------------

def identity(prepared: PreparedRun) -> dict[str, Any]:
    """Return what identifies a run in its checkpoint: the scenario, and a hash of all numbers from the robot and signal files."""
    p, scenario, hashed = prepared.problem, prepared.scenario, hashlib.sha256()
    control_models = (part.bound_model for part in (scenario.control, scenario.controller, scenario.observer)
                      if part is not None)
    models = [p.model, *(model for model in control_models if model is not None)]
    parts = {"model": tuple((model.index, model.constants, model.loop_index, model.loop_constants) for model in models),
             "schedule": p.schedule, "signals": p.signals, "start": (p.q, p.v),
             "law": p.law, "contacts": p.contacts, "joint_laws": p.joint_laws, "stops": p.stops,
             "friction": tuple(np.array([each.level, each.static, each.stribeck]) for each in prepared.frictions)}
    if p.sampled is not None:                                  # its laws are in another problem
        law = p.sampled.law
        parts["sampled"] = (law.schedule, law.signals, law.joint_laws, p.sampled.limit, p.sampled.resolution,
                            np.append(p.sampled.noise.deviations, p.sampled.noise.seed))
    arrays, _ = split_arrays({name: arrays_of(x) for name, x in parts.items() if x is not None})
    for name, x in arrays.items():
        hashed.update(f"{name} {x.dtype} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
    hashed.update(controller_digest(prepared.scenario).encode())
    return {"scenario": json.loads(json.dumps(to_plain(prepared.scenario))), "numbers": hashed.hexdigest()}


def resume(motion: HybridSimulation, present: dict[str, Any], rows: RunRecorder) -> float:
    """Restore `motion` and the rows from the checkpoint. Return the computing time before it [s].

    present   `identity` of the run

    Raises UsageError for a damaged checkpoint and for one of another run.
    """
    disk = rows.disk
    assert disk is not None
    state = disk.load()
    if present["scenario"].get("controller"):
        raise UsageError(f"the run in {disk.path} cannot be resumed: the state of its controller in Python is not stored")
    if state["recorder"]["width"] != rows.width:
        raise of_another_version(disk.path)
    subject, former = f"the run in {disk.path} cannot be resumed:", state["run"]
    if former["scenario"] != present["scenario"]:
        raise UsageError(f"{subject} it was started with {_describe_difference(former['scenario'], present['scenario'])} "
                         f"(`liedyn simulate {disk.folder} --resume` uses its options)")
    if former["numbers"] != present["numbers"]:
        raise UsageError(f"{subject} the robot, or a file that the scenario reads, has changed since")
    motion.load_state_dict(state["motion"])
    rows.load_state_dict(state["recorder"], motion.problems_of_segments())
    rows.saved_state = state["segment"]
    return float(state["seconds"])


def _describe_difference(recorded: object, current: object, path: str = "") -> str:
    """Return a description of the first key that differs."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        for key in dict.fromkeys((*recorded, *current)):
            if recorded.get(key) != current.get(key):
                return _describe_difference(recorded.get(key), current.get(key), f"{path}.{key}".lstrip("."))
    former, present = ("no value" if x is None else json.dumps(x) for x in (recorded, current))
    return f"{path} = {former[:100]}, not {present[:100]}"
