"""Jobs along a trajectory: inverse, forward and hybrid dynamics and derivatives for many robots.

The rows of all runs of a chunk are one batch, in which each state has its own robot (`dynamics.variants`). Robots with loops,
time derivatives, smoothing, transmitted wrenches and derivatives with respect to parameters are computed sequentially.
"""
from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np

from liedyn.analysis.recorded_motion import CompletedTrajectory, SampledMotion, columns_of_motion, motion_of_trajectory
from liedyn.analysis.trajectory_derivatives import column_names, derivatives_along, jacobian, kind_of, question, rows_of
from liedyn.analysis.trajectory_dynamics import completed, dynamics_along, setting_of
from liedyn.batch.evaluator import SampleTable, SweepEvaluator, generic_kernels_of
from liedyn.batch.output_expressions import BatchMotion, as_written, robots_of_rows
from liedyn.batch.sweep_binding import TrajectoryBinding, TrajectoryRun
from liedyn.batch.vectorized_sweep import AffineParameterMap, origin_of
from liedyn.dynamics.batching.threads import limit_threads
from liedyn.dynamics.variants import Variants, merged_index
from liedyn.errors import ConfigurationError, LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.io.sweep_file import TrajectoryJob
from liedyn.model.model import Model

_KEPT = 16                                   # trajectories with cached vectorized runs


def along(job: TrajectoryJob, run: TrajectoryRun) -> CompletedTrajectory:
    """Run a job along the trajectory of `run`, as the command of the same name does."""
    model, trajectory = run.model, run.trajectory
    if job.kind == "derivatives":
        return derivatives_along(model, trajectory, of=job.of, prescribed=job.prescribed, by=job.by, joints=job.joints)
    return dynamics_along(model, trajectory, job.kind, job.prescribed, actuated=job.actuated, criterion=job.criterion,
                          order=job.order, smooth=job.smooth, wrenches=job.wrenches)


class TrajectoryEvaluator(SweepEvaluator):
    """Evaluator of jobs along a trajectory.

    first           result of the job without variation
    together_along  function of a path: returns the vectorized runs along this trajectory
    """

    fewest = 1

    def _bound(self) -> TrajectoryBinding:
        binding = TrajectoryBinding(self.sweep)
        self.together_along = lru_cache(_KEPT)(partial(VectorizedTrajectory, binding))
        return binding

    @cached_property
    def first(self) -> CompletedTrajectory:
        return along(self.sweep.job, TrajectoryRun(self.binding.model, self.binding.trajectory(self.sweep.job.trajectory)))

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
    def mapped(self) -> bool:
        return self.together_along(self.sweep.job.trajectory).numbers.affine

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        return (*self.binding.warnings, *self.first.warnings)

    def known_columns(self) -> dict[str, str]:
        return {name: unit for name, unit, _ in self.first.columns}

    def common(self) -> tuple:
        job, model = self.sweep.job, self.binding.model
        varied = [path for one in self.sweep.parameters if one.key == "trajectory" for path in one.values]
        files = [_hash_of(path) for path in (job.trajectory, *varied, *([model.source] if model.source else []))]
        options = {name: getattr(job, name) for name in TrajectoryJob.__slots__ if name not in ("trajectory", "robot")}
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
    def _together(self, table: SampleTable, progress) -> list[int]:
        paths: dict[str, list[int]] = {}
        for i in range(len(table.number)):
            paths.setdefault(self.binding.path([x[i] for x in table.values]), []).append(i)
        left, todo = [], []
        for path, rows in paths.items():
            try:
                runs = self.together_along(path)
            except LiedynError:                                # of the trajectory: reported by each of its runs
                left += rows
                continue
            constants, alone = runs.numbers.rows([x[rows] if isinstance(x, np.ndarray) else [x[i] for i in rows]
                                                  for x in table.values])
            left += np.array(rows)[alone].tolist()
            if not alone.all():
                todo.append((runs, constants[~alone], np.array(rows)[~alone]))
        while todo:
            runs, constants, rows = todo.pop()
            began, half = time.perf_counter(), len(rows) // 2
            try:
                with limit_threads(self.threads):
                    motion = runs.motion(constants)
            except LiedynError:                                # of some run: bisect until it is the only one
                left += rows.tolist() if half == 0 else []
                todo += [(runs, constants[half:], rows[half:]), (runs, constants[:half], rows[:half])] if half else []
                continue
            self._fill(table, rows, motion)
            table.seconds[rows] = (time.perf_counter() - began) / len(rows)
            progress(len(rows))
        return sorted(left)

    def _alone(self, table: SampleTable, i: int, run: TrajectoryRun) -> None:
        with generic_kernels_of(run.model, self.binding.model):
            columns, q, v = [(name, unit, x[None]) for name, unit, x in along(self.sweep.job, run).columns], None, None
            if any(output.links for output in self.outputs):
                state = motion_of_trajectory(run.model, run.trajectory, derive_a=False)
                q, v = state.q[None], state.v[None]
            self._fill(table, np.array([i]), BatchMotion(run.model, run.trajectory.t, columns, q, v))


class VectorizedTrajectory:
    """Runs of a job along one trajectory, whose robots differ only in constants.

    numbers  map from the values of the sweep to the constants of the robots
    setting  settings of the computation along the trajectory
    asked    quantities of the requested derivatives; None if the job computes no derivatives
    """

    def __init__(self, binding: TrajectoryBinding, path: str):
        self.binding, self.parameters = binding, binding.sweep.parameters
        self.trajectory, self._path = binding.trajectory(path), path
        looked = self._here(binding.looked_at)
        some = [[x[0] for x in self._here([[x] for x in values])] for values in binding.some]
        self.model: Model = binding.bind(origin_of(looked)).model
        constants = self.model.constants
        self.numbers = AffineParameterMap(self._constants_of, looked, some, constants, len(constants), self.model.nv)
        self.places = self.numbers.places
        job, self.asked = binding.job, None
        if job.kind == "derivatives":
            self.asked = question(self.model, job.of, job.prescribed, job.by, job.joints)
        kind = job.of if job.kind == "derivatives" else job.kind
        self.setting = setting_of(self.model, self.trajectory, kind, job.prescribed)

    def _here(self, values: list) -> list:
        """Return the values with this trajectory in place of varied trajectories."""
        return [[self._path] * len(x) if one.key == "trajectory" else x for one, x in zip(self.parameters, values, strict=True)]

    def _constants_of(self, values) -> np.ndarray | None:
        """Return the constants of the robot of a run; None if it cannot be vectorized with the others."""
        try:
            model = self.binding.bind(values).model
        except LiedynError:
            return None
        index = merged_index(self.model, model)
        return model.constants if index is not None and np.array_equal(index, self.model.index) else None

    def motion(self, constants: np.ndarray) -> BatchMotion:
        """Compute the motion of robots with these constants; one motion for all if the constants are equal."""
        state, t, variants = self.setting.motion, self.trajectory.t, None
        n, rows = len(constants) if len(self.places) else 1, len(t)
        if len(self.places):
            variants = Variants.of_numbers(self.model, self.places, constants[:, self.places])
        with robots_of_rows(self.model, variants, rows) as robots:
            columns = self._columns(robots, rows_of(state, np.tile(np.arange(rows), n)))
        q, v = (np.broadcast_to(x, (n, *x.shape)) for x in (state.q, state.v))
        return BatchMotion(self.model, t, [(name, unit, x.reshape(n, rows)) for name, unit, x in columns], q, v, variants)

    def _columns(self, robots: Model, motion: SampledMotion) -> list[tuple[str, str, np.ndarray]]:
        """Return the columns of the motion of the trajectory, or of its rows repeated for each robot."""
        if self.asked is None:
            return columns_of_motion(robots, completed(replace(self.setting, model=robots), motion))
        table = jacobian(robots, self.asked, motion)
        if not np.isfinite(table).all():
            raise ConfigurationError("the derivatives are not finite")
        return list(zip(*column_names(self.model, self.asked), table.reshape(len(table), -1).T, strict=True))


def _hash_of(path: str) -> str:
    """Return a hash of the content of a file, or "" if it cannot be read: the error is reported by its runs."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
