"""A sweep and its folder: which chunks there are, which are missing, and who computes them."""
from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from liedyn import __version__
from liedyn.batch.along import AlongBench
from liedyn.batch.simulations import SimulationBench
from liedyn.batch.store import Store
from liedyn.batch.workers import Job, compute, on_processes, on_scheduler
from liedyn.dynamics.calling.cores import cores
from liedyn.errors import ComputationError
from liedyn.io.sweep import SIMULATE, Sweep
from liedyn.simulation.records.room import free_disk

_FORMAT = 1
_SOON, _SOON_BY_THREADS = 5.0, 20.0               # s: what takes less is not worth starting processes


@dataclass(frozen=True)
class Done:
    """What became of a batch. computed, reused: runs; counts: of each status, where the table is written; doubtful: how many of
    those that are complete have a reason to doubt them; failure: how many of the others have the most frequent reason, and its
    text in one of them."""

    count: int
    computed: int
    reused: int
    missing: int
    seconds: float
    counts: dict[str, int]
    doubtful: int
    failure: tuple[int, str]


class Batch:
    """A sweep that was checked. size: runs to a chunk, None: as fits."""

    def __init__(self, sweep: Sweep, size: int | None = None, threads: int | None = None):
        sweep = _with_whole_paths(sweep)
        self.bench = (AlongBench if sweep.job else SimulationBench)(sweep, threads=threads)
        self.sweep, self.binding = sweep, self.bench.binding
        self.binding.first_checked()
        self.identity = self.bench.identity = self._identity()
        self.count, self._size = self.binding.design.count, size

    @property
    def size(self) -> int:
        """Runs to a chunk."""
        if self._size is None:
            self._size = self.bench.chunk_size(self.count)
        return self._size

    @property
    def chunks(self) -> int:
        return -(-self.count // self.size)

    def span(self, chunk: int) -> tuple[int, int]:
        return chunk * self.size, min((chunk + 1) * self.size, self.count)

    def name(self, chunk: int) -> str:
        """Of the files of a chunk: by what its runs are made of."""
        first, until = self.span(chunk)
        hashed = hashlib.sha256(f"{self.identity} {first} {until} ".encode())
        hashed.update(self._recipe(first, until))
        return f"{first:09d}-{hashed.hexdigest()[:16]}"

    def _recipe(self, first: int, until: int) -> bytes:
        """What the values of these runs depend on; with samples at random it is less work than the values."""
        if self.sweep.combine == "sample":
            return self._drawn_from
        values = self.binding.values(first, until)
        return b" ".join(x.tobytes() if isinstance(x, np.ndarray) else json.dumps(x).encode() for x in values)

    @cached_property
    def _drawn_from(self) -> bytes:
        sweep = self.sweep
        whole = self.count if sweep.sampling == "latin_hypercube" else 0
        sources = [(one.key, one.values, one.drawn, one.scale) for one in sweep.vary]
        return repr((sweep.seed, sweep.sampling, whole, sources)).encode()

    def _identity(self) -> str:
        """A hash of all that the runs have in common."""
        sweep = self.sweep
        about = (_FORMAT, __version__, *self.bench.common(),
                 [(one.key, one.name) for one in sweep.vary], [(one.name, one.text) for one in sweep.outputs],
                 sweep.trajectories and (sweep.trajectories.every, sweep.trajectories.columns))
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is doubtful, one line each."""
        if self.sweep.sampling == "sobol" and self.count & (self.count - 1):
            return (*self.bench.notes, f"{self.count} samples are no power of two: Sobol's sequence is balanced where they are, "
                                       f"such as {1 << self.count.bit_length()}")
        return self.bench.notes

    # before ---------------------------------------------------------------------------------------------------------
    def bytes_on_disk(self) -> float:
        """About what the folder will hold."""
        columns = len(self.sweep.vary) + len(self.sweep.outputs) + 3
        found = self.count * 2.0 * (8 * columns + 60)
        kept = self.sweep.trajectories
        if kept is not None:
            names = self.bench.kept_names(self.bench.known_columns())
            found += self.count * (self.bench.rows() / kept.every + 1) * 8.0 * (len(names) + 2)
        return found

    def check_disk(self, folder) -> None:
        """ComputationError where the disk does not hold it."""
        needed, free, place = self.bytes_on_disk(), *free_disk(folder)
        if needed > free:
            raise ComputationError(f"{self.count} runs need about {needed / 1e9:.3g} GB of disk in {place}; {free / 1e9:.3g} GB "
                                   "are free (keep fewer columns or rows of trajectories, or give another folder with -o)")

    def report(self, folder) -> dict:
        """What would be done, as plain values. No time: runs of a batch differ in it, and a few do not tell of the others."""
        return {"scenario": self.sweep.begins_with, "job": self.sweep.job.kind if self.sweep.job else SIMULATE,
                "robot": self.binding.model.name, "runs": self.count, "way": self.bench.way,
                "vary": {one.name: one.key for one in self.sweep.vary},
                "outputs": {one.name: one.text for one in self.sweep.outputs},
                "trajectories": self.sweep.trajectories is not None, "rows": self.bench.rows(),
                "steps": self.bench.steps(), "chunks": self.chunks, "runs_in_a_chunk": self.size,
                "bytes": int(self.bytes_on_disk()), "folder": os.fspath(folder)}

    # running --------------------------------------------------------------------------------------------------------
    def run(self, folder, *, shard: tuple[int, int] = (1, 1), force: bool = False, resume: bool = False, jobs: int | None = None,
            scheduler: str | None = None, csv: bool = False,
            progress: Callable[[int, int], None] = lambda done, count: None) -> Done:
        """Compute what is missing into the folder. shard: part i of N of the chunks, from 1; progress(runs done, runs in all).

        Raises UsageError for a folder that is not to be touched, ComputationError where workers end again and again.
        """
        began, (part, parts) = time.perf_counter(), shard
        self.check_disk(folder)
        store = Store(folder, self.sweep.trajectories is not None)
        before = store.begin(force, resume or parts > 1)
        if before is not None and self._size is None:
            self._size = before.get("runs_in_a_chunk", self.size)
        store.tell(self._about())
        names = [self.name(chunk) for chunk in range(self.chunks)]
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
        return Done(self.count, todo, count - todo, len(absent), time.perf_counter() - began, counts, doubtful, failure)

    def _compute(self, store: Store, todo: list[tuple[str, int, int]], jobs: int, scheduler: str | None,
                 advance: Callable[[int], None]) -> None:
        """Chunks: the name of each, its first run and the one behind its last. advance(runs): so many more are done."""
        job = Job(self.sweep, os.path.abspath(store.folder), self.identity)
        if scheduler is not None:
            for runs in on_scheduler(job, todo, scheduler):
                advance(runs)
            return
        began, soon = time.perf_counter(), _SOON_BY_THREADS if self.bench.side_by_side else _SOON
        for k, chunk in enumerate(todo):
            left = (time.perf_counter() - began) / max(k, 1) * (len(todo) - k)
            if jobs > 1 and k and left > soon:                 # runs side by side are on threads until then
                for runs in on_processes(job, todo[k:], jobs):
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
                "vary": [{"key": one.key, "name": one.name, "scale": one.scale} for one in sweep.vary],
                "outputs": {one.name: one.text for one in sweep.outputs}, "trajectories": sweep.trajectories is not None}


def _with_whole_paths(sweep: Sweep) -> Sweep:
    """Workers may be in another folder."""
    if sweep.job is None:
        return replace(sweep, scenario=os.path.abspath(sweep.scenario))
    job, vary = sweep.job, sweep.vary
    job = replace(job, trajectory=os.path.abspath(job.trajectory), robot=job.robot and os.path.abspath(job.robot))
    vary = tuple(replace(one, values=tuple(map(os.path.abspath, one.values))) if one.key == "trajectory" else one for one in vary)
    return replace(sweep, job=job, vary=vary)

