"""The runs of a chunk: side by side where they can go so, the others one after the other."""
from __future__ import annotations

import fnmatch
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from liedyn.batch.binding import Binding
from liedyn.batch.expressions import compile_output
from liedyn.batch.lineup import Lineup, lineup_of
from liedyn.batch.motions import OfResult, SideBySideMotion
from liedyn.errors import ComputationError, LiedynError, ScenarioError, nearest
from liedyn.integrators.many_runs import Outputs, Runs
from liedyn.integrators.problem import LOST
from liedyn.io.csv import column_title
from liedyn.io.sweep import Sweep
from liedyn.simulation.balance import relative_balance
from liedyn.simulation.motion_columns import columns_of
from liedyn.simulation.preparation import Prepared, prepare_with
from liedyn.simulation.run import Silent, simulate_prepared

COMPLETE, DIVERGED, FAILED = "complete", "diverged", "failed"
_KINDS = ("q", "v", "a", "tau")


@dataclass
class Table:
    """Of N runs: their numbers, values (by what varies), outputs (N, outputs), balances of energy, status, reasons, seconds and
    hashes. Outputs of runs that are not complete are NaN."""

    number: np.ndarray
    values: list
    outputs: np.ndarray
    energy_balance: np.ndarray
    status: list[str]
    reason: list[str]
    seconds: np.ndarray
    hash: list[str]


@dataclass
class Motions:
    """Rows of trajectories: number of the run and time of each, columns by title."""

    number: np.ndarray
    t: np.ndarray
    columns: dict[str, np.ndarray]


class Bench:
    """What computes runs of a sweep. lineup: None where they go one after the other. threads: for runs side by side."""

    def __init__(self, sweep: Sweep, identity: str = "", threads: int | None = None):
        self.sweep, self.identity, self.threads = sweep, identity, threads
        self.binding = Binding(sweep)
        self.outputs = [compile_output(one) for one in sweep.outputs]
        self._check_columns()

    @cached_property
    def lineup(self) -> Lineup | None:
        return lineup_of(self.binding) if self._readable_side_by_side() else None

    # columns ------------------------------------------------------------------------------------------------------------
    def known_columns(self) -> dict[str, str]:
        """Columns that every run has, and their units; of runs side by side they are all."""
        model = self.binding.model
        arrays = {kind: np.zeros((1, model.nq if kind == "q" else model.nv)) for kind in _KINDS}
        return {name: unit for name, unit, _ in columns_of(model, **arrays)} | dict.fromkeys(
            ("energy.kinetic", "energy.potential", "energy.work"), "J")

    def _check_columns(self) -> None:
        known, links, others = self.known_columns(), self.binding.model.link_names, set()
        events = [event.name for event in self.binding.prepared.scenario.events]
        for output, one in zip(self.outputs, self.sweep.outputs, strict=True):
            for name in output.columns:
                if name not in known and name.partition(".")[0] in (*_KINDS, "energy"):
                    raise ScenarioError("no such column", place=one.place, found=name, hint=nearest(name, known),
                                        expected=f"a column of the trajectory, such as {', '.join(list(known)[:3])}")
                others |= {(name, one)} if name not in known else set()
            for link in output.links:
                if link not in links:
                    raise ScenarioError("no such link", place=one.place, found=link, expected="one of " + ", ".join(links),
                                        hint=nearest(link, links))
            for event in output.events:
                if event not in events:
                    raise ScenarioError("no such event", place=one.place, found=event, hint=nearest(event, events),
                                        expected=f"one of {', '.join(events)}" if events else "events of the scenario")
        kept = self.sweep.trajectories
        others |= {(pattern, kept) for pattern in kept.columns if not _matching(known, pattern)} if kept else set()
        if others:
            self._check_others(others)

    def _check_others(self, others) -> None:
        """Columns that some runs have: against a run of one row."""
        scenario = self.binding.prepared.scenario
        step = min(scenario.output_step, scenario.duration)
        short = replace(scenario, duration=step, output_step=step)
        try:
            found = simulate_prepared(prepare_with(short, self.binding.model), Silent())
        except LiedynError:                                    # its own error comes with the run
            return
        names = [name for name, _, _ in found.columns]
        for name, one in others:
            if name not in names and not _matching(names, name):
                raise ScenarioError("no such column", place=one.place, found=name, expected="a column of the trajectory",
                                    hint=nearest(name, names))

    def _readable_side_by_side(self) -> bool:
        """Whether no other columns are asked for than those of runs side by side."""
        prepared, known = self.binding.prepared, self.known_columns()
        scenario = prepared.scenario
        others = any((scenario.contacts, scenario.limits, scenario.forces, scenario.actuators, scenario.control, scenario.motors,
                      prepared.problem.prescribed.any()))
        for pattern in self.sweep.trajectories.columns if self.sweep.trajectories and others else ():
            if pattern[:1] in ("*", "?", "[") or not _matching(known, pattern):
                return False
        return all(name in known for output in self.outputs for name in output.columns)

    def kept_names(self, names) -> list[str]:
        """Of these columns, those that are kept of trajectories."""
        return [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in self.sweep.trajectories.columns)]

    @property
    def _reads_forces(self) -> bool:
        """Whether accelerations or joint forces of runs side by side are read."""
        names = [name for output in self.outputs for name in output.columns]
        names += self.kept_names(self.known_columns()) if self.sweep.trajectories else []
        return any(name.startswith(("a.", "tau.")) for name in names)

    # runs ---------------------------------------------------------------------------------------------------------------
    def chunk(self, first: int, until: int, progress=lambda runs: None) -> tuple[Table, Motions | None]:
        """Of runs first … until - 1."""
        n, values = until - first, self.binding.values(first, until)
        table = Table(np.arange(first, until), values, np.full((n, len(self.outputs)), np.nan), np.full(n, np.nan), [""] * n,
                      [""] * n, np.zeros(n), hashes(self.identity, first, values))
        kept: list[Motions] = []
        todo = range(n)
        if self.lineup is not None:
            todo = self._side_by_side(table, kept)
            progress(n - len(todo))
        for i in todo:
            began = time.perf_counter()
            self._alone(table, i, kept)
            table.seconds[i] = time.perf_counter() - began
            progress(1)
        return table, _joined(kept) if self.sweep.trajectories else None

    def _side_by_side(self, table: Table, kept: list[Motions]) -> list[int]:
        """Returns the runs that are left: what cannot go with the others, and what went astray, which is told by itself."""
        began, lineup = time.perf_counter(), self.lineup
        numbers, alone = lineup.rows(table.values)
        model, times, n, reads = lineup.first.model, lineup.times, len(table.number), self._reads_forces
        engine = lineup.engine_for(numbers)
        out = Outputs.of(n, len(times), model.nq, model.nv, engine.more if reads else 0)
        moving = Runs.from_states(numbers.q, numbers.v, np.full(n, lineup.grid.steps))
        engine.advance(moving, lineup.grid, out, numbers.values, threads=self.threads)
        lost = ~np.isfinite(out.q).all(axis=(1, 2)) | ~np.isfinite(out.v).all(axis=(1, 2)) | (moving.ended >= 0) | alone
        with np.errstate(invalid="ignore"):
            lost |= (np.abs(out.q).max(axis=(1, 2), initial=0.0) > LOST) | (np.abs(out.v).max(axis=(1, 2), initial=0.0) > LOST)
        if lost.any():                                          # energies of these would be refused
            out.q[lost], out.v[lost] = model.neutral(), 0.0
        a, tau = (out.more[..., :model.nv], out.more[..., model.nv:2 * model.nv]) if reads else (None, None)
        motion = SideBySideMotion(model, lineup.variants(numbers), times, out.q, out.v, a, tau, out.work)
        done = ~lost
        for k, output in enumerate(self.outputs):
            table.outputs[done, k] = np.broadcast_to(output.value(motion), (n,))[done]
        table.energy_balance[done] = relative_balance(lineup.first.model, *motion.energies, out.work, lineup.grid.steps)[done]
        unclear = done & ~np.isfinite(table.energy_balance)
        done &= ~unclear
        for i in np.flatnonzero(done):
            table.status[i] = COMPLETE
        if self.sweep.trajectories:
            kept.append(self._rows_side_by_side(motion, table.number, np.flatnonzero(done)))
        table.seconds[done] = (time.perf_counter() - began) / n
        return [int(i) for i in np.flatnonzero(~done)]

    def _rows_side_by_side(self, motion: SideBySideMotion, number, which) -> Motions:
        rows = _every(len(motion.t), self.sweep.trajectories.every)
        units = self.known_columns()
        columns = {column_title(name, units[name]): motion.column(name)[which][:, rows].reshape(-1)
                   for name in self.kept_names(units)}
        return Motions(np.repeat(number[which], len(rows)), np.tile(motion.t[rows], len(which)), columns)

    def _alone(self, table: Table, i: int, kept: list[Motions]) -> None:
        values = [x[i] for x in table.values]
        try:
            run = self.binding.bind(values)
        except LiedynError as error:
            table.status[i], table.reason[i] = FAILED, str(error)
            return
        result = None
        try:
            with by_loops(self._has_own_robot(run)):
                result = simulate_prepared(run, Silent())
            table.status[i] = COMPLETE
        except ComputationError as error:
            result = error.result
            table.status[i] = FAILED if result is None and error.at is None else DIVERGED
            table.reason[i] = str(error)
        except LiedynError as error:
            table.status[i], table.reason[i] = FAILED, str(error)
        if result is None:
            return
        if table.status[i] == COMPLETE:
            table.energy_balance[i] = result.check["energy_balance_relative"]
            with by_loops(self._has_own_robot(run)):
                motion = OfResult(result)
                for k, output in enumerate(self.outputs):
                    table.outputs[i, k] = np.asarray(output.value(motion)).reshape(-1)[0]
        if self.sweep.trajectories:
            rows, number = _every(len(result.t), self.sweep.trajectories.every), table.number[i]
            titles = {name: column_title(name, unit) for name, unit, _ in result.columns}
            columns = {name: x for name, _, x in result.columns}
            kept.append(Motions(np.full(len(rows), number), result.t[rows],
                                {titles[name]: columns[name][rows] for name in self.kept_names(columns)}))

    def _has_own_robot(self, run: Prepared) -> bool:
        """Whether straight-line code, in which a robot's constants are written, would be made for this run alone."""
        return not np.array_equal(run.model.constants, self.binding.prepared.model.constants)


def _matching(names, pattern: str) -> list[str]:
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


def _every(rows: int, every: int) -> np.ndarray:
    """And the last."""
    return np.unique([*range(0, rows, every), rows - 1])


def _joined(kept: list[Motions]) -> Motions | None:
    """In the order of numbers; columns that a run does not have are NaN."""
    if not kept:
        return None
    titles = list(dict.fromkeys(title for one in kept for title in one.columns))
    number, t = (np.concatenate([getattr(one, name) for one in kept]) for name in ("number", "t"))
    columns = {title: np.concatenate([one.columns.get(title, np.full(len(one.t), math.nan)) for one in kept]) for title in titles}
    order = np.argsort(number, kind="stable")
    return Motions(number[order], t[order], {title: x[order] for title, x in columns.items()})


def hashes(identity: str, first: int, values: list) -> list[str]:
    """Of what each run is made of."""
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
def by_loops(wanted: bool) -> Iterator[None]:
    """Compiled loops instead of straight-line code, which would take longer to make than one run takes."""
    before = os.environ.get("LIEDYN_CODE")
    if wanted:
        os.environ["LIEDYN_CODE"] = "loops"
    try:
        yield
    finally:
        if wanted:
            os.environ.pop("LIEDYN_CODE")
            if before is not None:
                os.environ["LIEDYN_CODE"] = before

