"""Jobs along a trajectory: inverse, forward and hybrid dynamics and derivatives for many robots.

The rows of all runs of a chunk are one batch, in which each state has its own robot (`dynamics.variants`). Robots with loops,
time derivatives, smoothing, transmitted wrenches and derivatives by parameters go one run after the other.
"""
from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from liedyn.analyse.along.derivative_columns import column_names, jacobian, kind_of, question, rows_of
from liedyn.analyse.along.derivatives_along import derivatives_along
from liedyn.analyse.along.dynamics_along import completed, dynamics_along, setting_of
from liedyn.analyse.along.recorded_motion import Along, Motion, columns_of_motion, motion_of
from liedyn.batch.affine import LOOKED_AT, AffineMap, not_zero
from liedyn.batch.along_binding import AlongBinding, AlongRun
from liedyn.batch.chunk import COMPLETE, FAILED, Bench, Motions, Table, by_loops_of, every_nth
from liedyn.batch.expressions import as_written
from liedyn.batch.motions import AlongMotion
from liedyn.dynamics.calling.threads import at_most
from liedyn.dynamics.variants import Variants
from liedyn.errors import ConfigurationError, LiedynError, ScenarioError, nearest
from liedyn.io.csv import column_title
from liedyn.io.sweep import AlongJob
from liedyn.model.model import Model

_KEPT = 16                                   # trajectories whose runs go together
_PASSIVE = slice(4, 6)                       # of Model.index: whether there are springs, damping or friction, and friction


def along(job: AlongJob, run: AlongRun) -> Along:
    """What the command does."""
    model, trajectory = run.model, run.trajectory
    if job.kind == "derivatives":
        return derivatives_along(model, trajectory, of=job.of, prescribed=job.prescribed, by=job.by, joints=job.joints)
    return dynamics_along(model, trajectory, job.kind, job.prescribed, actuated=job.actuated, criterion=job.criterion,
                          order=job.order, smooth=job.smooth, wrenches=job.wrenches)


class AlongBench(Bench):
    """first: what the command gives where nothing varies."""

    fewest = 1

    def _bound(self) -> AlongBinding:
        self._runs: dict[str, RunsTogether] = {}
        return AlongBinding(self.sweep)

    @cached_property
    def first(self) -> Along:
        return along(self.sweep.job, AlongRun(self.binding.model, self.binding.trajectory(self.sweep.job.trajectory)))

    @cached_property
    def side_by_side(self) -> bool:
        job = self.sweep.job
        if self.binding.model.nc or job.order or job.smooth is not None or job.wrenches:
            return False
        if job.kind != "derivatives":
            return True
        return all(kind_of(name) != "parameter" for name in question(self.binding.model, job.of, job.prescribed, job.by,
                                                                      job.joints).by)

    @property
    def way(self) -> str:
        if not self.side_by_side:
            return "one after the other"
        return "side by side" + ("" if self.together_along(self.sweep.job.trajectory).mapped else ", each bound by itself")

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.binding.notes, *self.first.notes)

    def known_columns(self) -> dict[str, str]:
        return {name: unit for name, unit, _ in self.first.columns}

    def common(self) -> tuple:
        job, model = self.sweep.job, self.binding.model
        varied = [path for one in self.sweep.vary if one.key == "trajectory" for path in one.values]
        files = [_hash_of(path) for path in (job.trajectory, *varied, *([model.source] if model.source else []))]
        options = {name: getattr(job, name) for name in AlongJob.__slots__ if name not in ("trajectory", "robot")}
        numbers = hashlib.sha256(model.constants.tobytes() + model.loop_constants.tobytes()).hexdigest()
        return options, files, numbers, model.q_names, model.link_names

    def rows(self) -> int:
        return len(self.first.t)

    def numbers(self) -> tuple[int, float]:
        model, job = self.binding.model, self.sweep.job
        each = 2 * (model.nq + 3 * model.nv) + 6 * len(model.link_names) + len(self.first.columns) + 40
        each += 4 * model.nv**2 if job.kind == "derivatives" else 0
        return each, 10.0 * len(self.first.t) * len(self.first.columns) * (1 + job.order)

    def _check_others(self, others) -> None:
        for name, one in others:
            shown = [*self.known_columns()] if one is self.sweep.trajectories else [*map(as_written, self.known_columns())]
            name = name if one is self.sweep.trajectories else as_written(name)
            raise ScenarioError("no such column", place=one.place, found=name, hint=nearest(name, shown),
                                expected=f"a column that liedyn {self.sweep.job.kind} writes, such as {', '.join(shown[-3:])}")

    # runs ---------------------------------------------------------------------------------------------------------------
    def together_along(self, path: str) -> RunsTogether:
        """Of runs along one trajectory."""
        if path not in self._runs:
            if len(self._runs) == _KEPT:
                del self._runs[next(iter(self._runs))]
            self._runs[path] = RunsTogether(self.binding, path)
        return self._runs[path]

    def _together(self, table: Table, kept: list[Motions], progress) -> list[int]:
        paths: dict[str, list[int]] = {}
        for i in range(len(table.number)):
            paths.setdefault(self.binding.path([x[i] for x in table.values]), []).append(i)
        left = []
        for path, rows in paths.items():
            try:
                runs = self.together_along(path)
            except LiedynError:                                # of the trajectory: each of its runs says so
                left += rows
                continue
            left += self._along_one(table, kept, runs, np.array(rows), progress)
        return sorted(left)

    def _along_one(self, table: Table, kept: list[Motions], runs: RunsTogether, rows: np.ndarray, progress) -> list[int]:
        values = [x[rows] if isinstance(x, np.ndarray) else [x[i] for i in rows] for x in table.values]
        numbers, alone = runs.numbers(values)
        left = [int(i) for i in rows[alone]]
        todo = [np.flatnonzero(~alone)]
        while todo:
            which = todo.pop()
            if not len(which):
                continue
            began = time.perf_counter()
            try:
                with at_most(self.threads):
                    motion = runs.motion(numbers[which])
            except LiedynError:                                # of some run: halves, until it is by itself
                half = len(which) // 2
                left += [int(rows[which[0]])] if half == 0 else []
                todo += [which[half:], which[:half]] if half else []
                continue
            self._fill(table, kept, rows[which], motion)
            table.seconds[rows[which]] = (time.perf_counter() - began) / len(which)
            progress(len(which))
        return left

    def _fill(self, table: Table, kept: list[Motions], rows: np.ndarray, motion: AlongMotion) -> None:
        for k, output in enumerate(self.outputs):
            table.outputs[rows, k] = output.value(motion)
        for i in rows:
            table.status[i] = COMPLETE
        if self.sweep.trajectories:
            which, n = every_nth(len(motion.t), self.sweep.trajectories.every), len(rows)
            columns = {column_title(name, motion.units[name]): np.broadcast_to(motion.column(name), (n, len(motion.t)))[:, which]
                       for name in self.kept_names(motion.columns)}
            kept.append(Motions(np.repeat(table.number[rows], len(which)), np.tile(motion.t[which], n),
                                {title: x.reshape(-1) for title, x in columns.items()}))

    def _alone(self, table: Table, i: int, kept: list[Motions]) -> None:
        try:
            run = self.binding.bind([x[i] for x in table.values])
            with by_loops_of(run.model, self.binding.model):
                found = along(self.sweep.job, run)
                state = motion_of(run.model, run.trajectory, derive_a=False) if self._reads_points else None
                self._fill(table, kept, np.array([i]), AlongMotion(run.model, None, run.trajectory.t, state, {
                    name: (unit, x[None]) for name, unit, x in found.columns}))
        except LiedynError as error:
            table.status[i], table.reason[i] = FAILED, str(error)

    @property
    def _reads_points(self) -> bool:
        return any(output.links for output in self.outputs)


class RunsTogether:
    """Runs of a job along one trajectory, whose robots differ in numbers alone. mapped: whether these are found without binding
    each run."""

    def __init__(self, binding: AlongBinding, path: str):
        self.binding, self.vary = binding, binding.sweep.vary
        self.trajectory = binding.trajectory(path)
        self._path, count = path, binding.design.count
        looked = self._here(binding.values(0, min(count, LOOKED_AT)))
        origin = [not_zero(x) for x in looked]
        self.model: Model = binding.bind(origin).model
        self.base = self.model.constants
        found = AffineMap(lambda k: [x[0] for x in self._here(binding.values(k, k + 1))], count, looked, origin, self.base,
                          self.model.nv, self._numbers_of, zeros=True)
        self._map = found.affine
        self.places = np.flatnonzero(np.any([row != self.base for row in found.seen], axis=0)) if found.seen else np.zeros(0, int)
        self.motion_there, self._columns = _computing(binding.job, self.model, self.trajectory)

    @property
    def mapped(self) -> bool:
        return self._map is not None

    def _here(self, values: list) -> list:
        """With this trajectory."""
        return [[self._path] * len(x) if one.key == "trajectory" else x for one, x in zip(self.vary, values, strict=True)]

    def _numbers_of(self, values) -> np.ndarray | None:
        """Constants of the robot of a run; None where it cannot go with the others."""
        try:
            model = self.binding.bind(values).model
        except LiedynError:
            return None
        index = model.index.copy()
        index[_PASSIVE] |= self.model.index[_PASSIVE]          # zeros compute the same
        alike = model.v_names == self.model.v_names and model.link_names == self.model.link_names
        return model.constants if alike and np.array_equal(index, self.model.index) else None

    def numbers(self, values: list) -> tuple[np.ndarray, np.ndarray]:
        """(N, places) of runs with these values, and which of them cannot go side by side."""
        alone = np.zeros(len(values[0]), dtype=bool)
        if self._map is not None:
            for i in np.flatnonzero(self._map.beyond(values)):
                alone[i] = self._numbers_of([x[i] for x in values]) is None
            return np.ascontiguousarray(self._map.rows(values)[:, self.places]), alone
        rows = np.tile(self.base, (len(alone), 1))
        for i in range(len(alone)):
            found = self._numbers_of([x[i] for x in values])
            alone[i] = found is None or not set(np.flatnonzero(found != self.base)) <= set(self.places)
            if not alone[i]:
                rows[i] = found
        return np.ascontiguousarray(rows[:, self.places]), alone

    def motion(self, numbers: np.ndarray) -> AlongMotion:
        """Of robots with these constants; one for all where they are the same."""
        state, t = self.motion_there, self.trajectory.t
        if not len(self.places):
            return AlongMotion(self.model, None, t, state, {name: (unit, x[None]) for name, unit, x in self._columns(state)})
        n, rows = len(numbers), len(t)
        each_row = Variants.of_numbers(self.model, self.places, np.repeat(numbers, rows, axis=0))
        with each_row.in_place_of_the_model():
            columns = self._columns(rows_of(state, np.tile(np.arange(rows), n)))
        return AlongMotion(self.model, Variants.of_numbers(self.model, self.places, numbers), t, state,
                           {name: (unit, x.reshape(n, rows)) for name, unit, x in columns})


def _computing(job: AlongJob, model: Model, trajectory) -> tuple[Motion, Callable[[Motion], list]]:
    """The motion of a trajectory, and what makes columns of it, or of the same rows many times over."""
    if job.kind == "derivatives":
        asked = question(model, job.of, job.prescribed, job.by, job.joints)
        setting = setting_of(model, trajectory, job.of, job.prescribed)
        names, units = column_names(model, asked)

        def derivatives(motion: Motion):
            table = jacobian(model, asked, motion)
            if not np.isfinite(table).all():
                raise ConfigurationError("the derivatives are not finite")
            return list(zip(names, units, table.reshape(len(table), -1).T, strict=True))
        return setting.motion, derivatives
    setting = setting_of(model, trajectory, job.kind, job.prescribed)
    return setting.motion, lambda motion: columns_of_motion(model, completed(setting, motion))


def _hash_of(path: str) -> str:
    """Of a file's content; "" where it cannot be read, which its runs say."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
