"""Simulations: vectorized in one batch where possible, the others sequentially."""
from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from liedyn.batch.evaluator import DIVERGED, FAILED, SampleTable, SweepEvaluator, generic_kernels_of
from liedyn.batch.output_expressions import MANY, BatchMotion, evaluate_in_blocks, motion_of_run
from liedyn.batch.sweep_binding import ScenarioBinding
from liedyn.batch.vectorized_sweep import RunParameters, VectorizedSweep, lineup_of
from liedyn.dynamics.kinematics import energy
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.integrators.batch_integrator import BatchOutputs, BatchStates
from liedyn.integrators.problem import STATE_LIMIT
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.joint_stops import limit_stops, stop_event_names
from liedyn.simulation.limits import (
    limit_warnings,
    limits_exceeded,
    runs_beyond_limits,
    start_warnings,
    velocity_and_force_limits,
)
from liedyn.simulation.name_binding import matching_names
from liedyn.simulation.preparation import PreparedRun, prepare_run
from liedyn.simulation.run import SilentProgress, simulate_prepared
from liedyn.simulation.run_checks import (
    MAX_RELATIVE_BALANCE,
    MIN_CREEP_TIME,
    friction_levels,
    inaccuracy_warnings,
    measure_creep,
    relative_balance,
)
from liedyn.simulation.run_recorder import identity
from liedyn.simulation.trajectory_columns import energy_columns, motion_columns

_REASONS = ("friction-creep", "beyond-limits")     # codes of warnings about single runs, written to the column reason


class SimulationEvaluator(SweepEvaluator):
    """Evaluator of simulations. lineup: the vectorized runs; None if runs are computed sequentially."""

    def _bound(self) -> ScenarioBinding:
        return ScenarioBinding(self.sweep)

    @cached_property
    def lineup(self) -> VectorizedSweep | None:
        return lineup_of(self.binding) if self._readable_side_by_side() else None

    @property
    def side_by_side(self) -> bool:
        return self.lineup is not None

    @property
    def mapped(self) -> bool:
        return self.lineup.affine

    @cached_property
    def first(self) -> PreparedRun:
        return self.binding.first_checked()

    def rows(self) -> int:
        return self.first.rows

    def steps(self) -> int | None:
        return self.first.steps

    def numbers(self) -> tuple[int, float]:
        model = self.first.model
        return model.nq + 3 * model.nv + 3, (self.first.steps or 10 * self.first.rows) * max(model.nv, 1)

    def common(self) -> tuple:
        base, model = self.binding.prepared, self.binding.model
        scenario = to_plain(base.scenario, os.path.dirname(self.sweep.scenario))
        return scenario, identity(base)["numbers"], model.q_names, model.link_names

    # columns ------------------------------------------------------------------------------------------------------------
    def known_columns(self) -> dict[str, str]:
        """Return the columns that every run has, with their units; vectorized runs have no others."""
        q, v = (np.zeros((1, n)) for n in (self.binding.model.nq, self.binding.model.nv))
        columns = [*motion_columns(self.binding.model, q=q, v=v, a=v, tau=v), *energy_columns(v, v, v)]
        return {name: unit for name, unit, _ in columns}

    def events(self) -> list[str]:
        scenario = self.binding.prepared.scenario
        return [*(event.name for event in scenario.events), *stop_event_names(limit_stops(scenario, self.binding.model))]

    def _check_others(self, others) -> None:
        """Check columns that only some runs have against a run of one row."""
        scenario = self.binding.prepared.scenario
        step = min(scenario.output_step, scenario.duration)
        short = replace(scenario, duration=step, output_step=step)
        try:
            found = simulate_prepared(prepare_run(short, self.binding.model), SilentProgress(), trials=False)
        except LiedynError:                                    # its own error comes with the run
            return
        names = [name for name, _, _ in found.columns]
        for name, one in others:
            if not matching_names(name, names):
                raise ScenarioError("no such column", place=one.place, found=name, expected="a column of the trajectory",
                                    hint=nearest(name, names))

    def _readable_side_by_side(self) -> bool:
        """Return whether all required columns are available from vectorized runs."""
        prepared, known = self.binding.prepared, self.known_columns()
        scenario = prepared.scenario
        others = any((scenario.contacts, scenario.limits, scenario.forces, scenario.actuators, scenario.control, scenario.motors,
                      prepared.problem.prescribed.any()))
        for pattern in self.sweep.trajectories.columns if self.sweep.trajectories and others else ():
            if pattern[:1] in ("*", "?", "[") or not matching_names(pattern, known):
                return False
        return all(name in known for output in self.outputs for name in output.columns)

    @property
    def _reads_forces(self) -> bool:
        """Return whether accelerations or joint forces of vectorized runs are required, also for the check of limits."""
        if np.isfinite(velocity_and_force_limits(self.binding.model)[1]).any():
            return True
        names = [name for output in self.outputs for name in output.columns]
        names += self.kept_names(self.known_columns()) if self.sweep.trajectories else []
        return any(name.startswith(("a.", "tau.")) for name in names)

    # runs ---------------------------------------------------------------------------------------------------------------
    def _together(self, table: SampleTable, progress) -> list[int]:
        """Compute runs as one batch, and return the rows that must be computed individually: other runs, and runs that failed."""
        began, lineup = time.perf_counter(), self.lineup
        numbers, alone = lineup.rows(table.values)
        model, times, n, reads = lineup.first.model, lineup.times, len(table.number), self._reads_forces
        engine = lineup.engine_for(numbers)
        out = BatchOutputs.allocate(n, len(times), model.nq, model.nv, engine.n_forces if reads else 0)
        moving = BatchStates.from_states(numbers.q, numbers.v, np.full(n, lineup.grid.steps))
        engine.advance(moving, lineup.grid, out, numbers.values, threads=self.threads)
        done = ~alone & (moving.ended < 0)
        with np.errstate(invalid="ignore"):
            for x in (out.q, out.v):
                done &= np.abs(x).max(axis=(1, 2), initial=0.0) <= STATE_LIMIT        # NaN is not
        out.q[~done], out.v[~done] = model.neutral(), 0.0        # energies of these would be refused
        passive = lineup.first.problem.passive
        kinetic, potential = evaluate_in_blocks(lambda *state: np.stack(energy(*state, passive=passive)), model, out.q, out.v,
                                     lineup.variants(numbers), MANY)
        table.energy_balance[done] = relative_balance(model, kinetic, potential, out.supplied_energy, lineup.grid.steps)[done]
        done &= np.isfinite(table.energy_balance)
        arrays = out.q, out.v, out.forces, kinetic, potential, out.supplied_energy
        q, v, more, *energies = arrays if done.all() else (x[done] for x in arrays)
        a, tau = (more[..., :model.nv], more[..., model.nv:2 * model.nv]) if reads else (None, None)
        columns = [*motion_columns(model, q=q, v=v, a=a, tau=tau), *energy_columns(*energies)]
        self._fill(table, np.flatnonzero(done), BatchMotion(model, times, columns, q, v, lineup.variants(numbers, done)))
        self._report_creep(table, np.flatnonzero(done), numbers, q)
        self._report_limits(table, np.flatnonzero(done), q, v, tau)
        for i in np.flatnonzero(done & (table.energy_balance > MAX_RELATIVE_BALANCE)):
            self._add_reasons(table, i, inaccuracy_warnings(table.energy_balance[i]))
        table.seconds[done] = (time.perf_counter() - began) / n
        progress(np.count_nonzero(done))
        return [int(i) for i in np.flatnonzero(~done)]

    def _report_creep(self, table: SampleTable, rows: np.ndarray, numbers: RunParameters, q: np.ndarray) -> None:
        """Write a reason for runs whose joints creep under smoothed friction. q (n, R, nq): motions of the runs of `rows`."""
        problem, times = self.lineup.first.problem, self.lineup.times
        if times[-1] <= MIN_CREEP_TIME or not len(rows):
            return
        constants = numbers.constants[rows] if len(self.lineup.places) else numbers.constants[rows[:1]]
        friction = np.array([friction_levels(problem.model, each) for each in constants]) * problem.passive
        friction = np.broadcast_to(friction, (len(rows), problem.model.nv))
        found = measure_creep(problem.model, friction, times, q, problem)
        for k in np.flatnonzero(found.is_reported().any(axis=1)):
            self._add_reasons(table, rows[k], found.select_run(k).warnings())

    def _report_limits(self, table: SampleTable, rows: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray | None) -> None:
        """Write the limits that runs exceed as reasons. q, v, tau (n, R, …): motions of the runs of `rows`."""
        model, times, schedule = self.lineup.first.model, self.lineup.times, self.lineup.first.problem.schedule
        fixed = [model.v_names[k] for k in np.flatnonzero(schedule.level != TORQUE)]
        for k in np.flatnonzero(runs_beyond_limits(model, q, v, tau)):
            exceeded = limits_exceeded(model, times, q[k], v[k], np.zeros_like(v[k]) if tau is None else tau[k])
            both = ([one for one in exceeded if (one.coordinate in fixed) is of_fixed] for of_fixed in (False, True))
            self._add_reasons(table, rows[k], [*start_warnings(model, q[k, 0]), *limit_warnings(*both)])

    @staticmethod
    def _add_reasons(table: SampleTable, i: int, warnings: Iterable[LiedynWarning]) -> None:
        table.reason[i] = "; ".join(filter(None, (table.reason[i], *(warning.message for warning in warnings))))

    def _alone(self, table: SampleTable, i: int, run: PreparedRun) -> None:
        with generic_kernels_of(run.model, self.binding.prepared.model):
            try:
                result = simulate_prepared(run, SilentProgress(), trials=False)
            except (ComputationError, ScenarioError) as error:
                began = error.result is not None or (isinstance(error, ComputationError) and error.at is not None)
                table.status[i] = DIVERGED if began else FAILED
                table.reason[i] = str(error)
                if error.result is not None:
                    self._keep(table, np.array([i]), motion_of_run(error.result))
                return
            self._fill(table, np.array([i]), motion_of_run(result))
            self._add_reasons(table, i, (warning for warning in result.warnings if warning.code in _REASONS))
            table.energy_balance[i] = result.check["energy_balance_relative"]
            self._add_reasons(table, i, inaccuracy_warnings(table.energy_balance[i]))
