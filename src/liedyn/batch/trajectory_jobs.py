"""Jobs along a trajectory: inverse, forward and hybrid dynamics and derivatives for many robots.

The rows of all runs of a chunk are one batch, in which each state has its own robot (`dynamics.variants`). Robots with loops,
time derivatives, smoothing, transmitted wrenches and derivatives with respect to parameters are computed sequentially.
"""
from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.analysis.recorded_motion import CompletedTrajectory, SampledMotion, columns_of_motion, motion_of_trajectory
from liedyn.analysis.trajectory_derivatives import column_names, derivative_request, derivatives_along, jacobian, kind_of, rows_of
from liedyn.analysis.trajectory_dynamics import complete_motion, dynamics_along, dynamics_request
from liedyn.arrays import Array
from liedyn.batch.evaluator import ColumnUse, Progress, SampleTable, SweepEvaluator
from liedyn.batch.output_expressions import BatchMotion, column_expression, robots_of_rows
from liedyn.batch.sweep_binding import TrajectoryBinding, TrajectoryRun, Value, Values
from liedyn.batch.vectorized_sweep import AffineParameterMap, origin_values
from liedyn.dynamics.batching.calls import generic_kernels_of
from liedyn.dynamics.batching.threads import limit_threads
from liedyn.dynamics.variants import merged_index
from liedyn.errors import ConfigurationError, LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.io.column_map import map_file
from liedyn.io.robots.robot_yaml import files_of_robot
from liedyn.io.sweep_file import Sweep, TrajectoryJob
from liedyn.model.model import Model

_CACHED_VECTORIZED = 16                      # trajectories with cached vectorized runs


def run_trajectory_job(job: TrajectoryJob, run: TrajectoryRun) -> CompletedTrajectory:
    """Run a job along the trajectory of `run`, as the command of the same name does."""
    model, trajectory = run.model, run.trajectory
    if job.kind == "derivatives":
        return derivatives_along(model, trajectory, of=job.function, prescribed=job.prescribed, by=job.wrt, joints=job.joints)
    return dynamics_along(model, trajectory, job.kind, job.prescribed, actuated=job.actuated, criterion=job.criterion,
                          order=job.order, smooth=job.smooth, wrenches=job.wrenches)


class TrajectoryEvaluator(SweepEvaluator[TrajectoryRun]):
    """Evaluator of jobs along a trajectory.

    vectorized_along  function of a path: returns the vectorized runs along this trajectory
    """

    binding: TrajectoryBinding
    min_chunk_runs = 1

    def __init__(self, sweep: Sweep, job: TrajectoryJob, threads: int | None = None):
        self.job, binding = job, TrajectoryBinding(sweep, job)
        self.vectorized_along = lru_cache(_CACHED_VECTORIZED)(partial(VectorizedTrajectory, binding))
        super().__init__(sweep, binding, threads)

    @cached_property
    def first(self) -> CompletedTrajectory:
        """Result of the job without variation."""
        return run_trajectory_job(self.job, TrajectoryRun(self.binding.model, self.binding.trajectory(self.job.trajectory)))

    @cached_property
    def is_vectorized(self) -> bool:
        """Whether runs are vectorized, rather than computed sequentially."""
        job = self.job
        if self.binding.model.nc or job.order or job.smooth is not None or job.wrenches:
            return False
        if job.kind != "derivatives":
            return True
        job = self.job
        variables = derivative_request(self.binding.model, job.function, job.prescribed, job.wrt, job.joints).by
        return all(kind_of(name) != "parameter" for name in variables)

    @property
    def is_affine(self) -> bool:
        """Whether vectorized runs are computed without binding each run individually."""
        return self.vectorized_along(self.job.trajectory).parameter_map.is_affine

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings about the robot of the trajectory, and of the job without variation."""
        return (*self.binding.warnings, *self.first.warnings)

    def known_columns(self) -> dict[str, str]:
        """Return the columns that every run has, with their units."""
        return {name: unit for name, unit, _ in self.first.columns}

    def shared_inputs(self) -> tuple[Any, ...]:
        """Return the options of the job, hashes of its files and of the robot, and the names of coordinates and links."""
        job, model = self.job, self.binding.model
        paths = [job.trajectory, *(path for parameter in self.sweep.parameters for path in parameter.trajectories)]
        maps = filter(None, map(map_file, paths) if job.columns is None else [job.columns])
        files = [_file_hash(path) for path in (*paths, *map(str, files_of_robot(model.source) if model.source else ()), *maps)]
        named = ("trajectory", "robot", *(["columns"] if job.columns is None or "=" not in job.columns else []))
        options = {name: getattr(job, name) for name in TrajectoryJob.__slots__ if name not in named}
        constants = hashlib.sha256(model.constants.tobytes() + model.loop_constants.tobytes()).hexdigest()
        return options, files, constants, model.q_names, model.link_names

    def rows(self) -> int:
        """Return the number of rows of the trajectory."""
        return len(self.first.t)

    def costs(self) -> tuple[int, float]:
        """Return the approximate count of numbers per row of a vectorized run, and the work of a sequential run."""
        model, job = self.binding.model, self.job
        per_row = 2 * (model.nq + 3 * model.nv) + 6 * len(model.link_names) + len(self.first.columns) + 40
        per_row += 4 * model.nv**2 if job.kind == "derivatives" else 0
        return per_row, 10.0 * len(self.first.t) * len(self.first.columns) * (1 + job.order)

    def _check_unknown_columns(self, unknown: Iterable[ColumnUse]) -> None:
        names = [*self.known_columns()]
        for name, entry in unknown:
            written, known = name, names
            if entry is not self.sweep.trajectories:
                written, known = column_expression(name), [*map(column_expression, names)]
            raise ScenarioError("no such column", place=entry.place, found=written, hint=nearest(written, known),
                                expected=f"a column that liedyn {self.job.kind} writes, such as {', '.join(known[-3:])}")

    # runs ---------------------------------------------------------------------------------------------------------------
    def _run_vectorized(self, table: SampleTable, progress: Progress) -> list[int]:
        rows_of_paths: dict[str, list[int]] = {}
        for i in range(len(table.number)):
            rows_of_paths.setdefault(self.binding.path([x[i] for x in table.values]), []).append(i)
        remaining, batches = [], []
        for path, indices in rows_of_paths.items():
            rows = np.array(indices)
            try:
                runs = self.vectorized_along(path)
            except LiedynError:                                # of the trajectory: reported by each of its runs
                remaining += indices
                continue
            constants, excluded = runs.parameter_map.rows([x[rows] if isinstance(x, np.ndarray) else [x[i] for i in indices]
                                                           for x in table.values])
            remaining += rows[excluded].tolist()
            if not excluded.all():
                batches.append((runs, constants[~excluded], rows[~excluded]))
        while batches:
            runs, constants, rows = batches.pop()
            start, half = time.perf_counter(), len(rows) // 2
            try:
                with limit_threads(self.threads):
                    motion = runs.motion(constants)
            except LiedynError:                                # of some run: bisect until it is the only one
                remaining += rows.tolist() if half == 0 else []
                batches += [(runs, constants[half:], rows[half:]), (runs, constants[:half], rows[:half])] if half else []
                continue
            self._fill(table, rows, motion)
            table.seconds[rows] = (time.perf_counter() - start) / len(rows)
            progress(len(rows))
        return sorted(remaining)

    def _run_single(self, table: SampleTable, i: int, run: TrajectoryRun) -> None:
        with generic_kernels_of(run.model, self.binding.model):
            columns = [(name, unit, x[None]) for name, unit, x in run_trajectory_job(self.job, run).columns]
            motion = BatchMotion(run.model, run.trajectory.t, columns)
            if any(output.links for output in self.outputs):
                state = motion_of_trajectory(run.model, run.trajectory, derive_a=False)
                motion = BatchMotion(run.model, run.trajectory.t, columns, state.q[None], state.v[None])
            self._fill(table, np.array([i]), motion)


class VectorizedTrajectory:
    """Runs of a job along one trajectory, whose robots differ only in constants.

    parameter_map  map from the values of the sweep to the constants of the robots
    setting        settings of the computation along the trajectory
    request        quantities of the requested derivatives; None if the job computes no derivatives
    """

    def __init__(self, binding: TrajectoryBinding, path: str):
        self.binding, self.parameters = binding, binding.sweep.parameters
        self.trajectory, self._path = binding.trajectory(path), path
        samples = self._with_this_trajectory(binding.samples)
        checked_values = [[x[0] for x in self._with_this_trajectory([[x] for x in values])] for values in binding.checked_values]
        self.model: Model = binding.bind(origin_values(samples)).model
        constants = self.model.constants
        self.parameter_map = AffineParameterMap(self._constants_of, samples, checked_values, constants, len(constants),
                                                self.model.nv)
        job, self.request = binding.job, None
        if job.kind == "derivatives":
            self.request = derivative_request(self.model, job.function, job.prescribed, job.wrt, job.joints)
        kind = job.function if job.kind == "derivatives" else job.kind
        self.setting = dynamics_request(self.model, self.trajectory, kind, job.prescribed)

    def _with_this_trajectory(self, values: Sequence[Values]) -> list[Values]:
        """Return the values with this trajectory in place of varied trajectories."""
        return [[self._path] * len(x) if parameter.key == "trajectory" else x
                for parameter, x in zip(self.parameters, values, strict=True)]

    def _constants_of(self, values: Sequence[Value]) -> Array | None:
        """Return the constants of the robot of a run; None if it cannot be vectorized with the others."""
        try:
            model = self.binding.bind(values).model
        except LiedynError:
            return None
        index = merged_index(self.model, model)
        return model.constants if index is not None and np.array_equal(index, self.model.index) else None

    def motion(self, constants: Array) -> BatchMotion:
        """Compute the motion of robots with these constants (N, m); one motion for all if the constants are equal."""
        state, t, variants = self.setting.motion, self.trajectory.t, self.parameter_map.variants(self.model, constants)
        n, rows = 1 if variants is None else len(constants), len(t)
        with robots_of_rows(self.model, variants, rows) as robots:
            columns = self._columns(robots, rows_of(state, np.tile(np.arange(rows), n)))
        q, v = (np.broadcast_to(x, (n, *x.shape)) for x in (state.q, state.v))
        return BatchMotion(self.model, t, [(name, unit, x.reshape(n, rows)) for name, unit, x in columns], q, v, variants)

    def _columns(self, robots: Model, motion: SampledMotion) -> list[tuple[str, str, Array]]:
        """Return the columns of the motion of the trajectory, or of its rows repeated for each robot."""
        if self.request is None:
            return columns_of_motion(robots, complete_motion(replace(self.setting, model=robots), motion))
        table = jacobian(robots, self.request, motion)
        if not np.isfinite(table).all():
            raise ConfigurationError("the derivatives are not finite")
        return list(zip(*column_names(self.model, self.request), table.reshape(len(table), -1).T, strict=True))


def _file_hash(path: str) -> str:
    """Return a hash of the content of a file, or "" if it cannot be read: the error is reported by its runs."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
