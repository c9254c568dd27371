"""Simulations: vectorized in one batch where possible, the others sequentially."""
from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.batch.evaluator import (
    DIVERGED,
    FAILED,
    ColumnUse,
    Progress,
    SampleTable,
    SweepEvaluator,
)
from liedyn.batch.output_expressions import ENERGY_BLOCK, BatchMotion, evaluate_in_blocks, motion_of_run
from liedyn.batch.sweep_binding import ScenarioBinding
from liedyn.batch.vectorized_sweep import RunParameters, VectorizedSweep, sequential_reason, vectorize_sweep
from liedyn.dynamics.batching.calls import generic_kernels_of
from liedyn.dynamics.kinematics import energy
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, ScenarioError, nearest
from liedyn.integrators.batch_integrator import BatchOutputs, BatchStates
from liedyn.integrators.problem import STATE_LIMIT
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.io.sweep_file import Sweep
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.name_patterns import matching_names
from liedyn.simulation.joint_stops import limit_stops, stop_event_names
from liedyn.simulation.limits import (
    limit_warnings,
    limits_exceeded,
    runs_beyond_limits,
    start_warnings,
    velocity_and_force_limits,
)
from liedyn.simulation.preparation import PreparedRun, prepare_run
from liedyn.simulation.run import Result, SilentProgress, simulate_prepared
from liedyn.simulation.run_checks import (
    MAX_RELATIVE_BALANCE,
    MIN_CREEP_TIME,
    inaccuracy_warnings,
    measure_creep,
    relative_balance,
    smoothed_friction,
)
from liedyn.simulation.run_recorder import identity
from liedyn.simulation.trajectory_columns import energy_columns, motion_columns

_WARNINGS_OF_RUNS = ("friction-creep", "beyond-limits")     # codes, written to the column reason


class SimulationEvaluator(SweepEvaluator[PreparedRun]):
    """Evaluator of simulations. vectorized_sweep: the vectorized runs; None if runs are computed sequentially."""

    binding: ScenarioBinding

    def __init__(self, sweep: Sweep, threads: int | None = None):
        super().__init__(sweep, ScenarioBinding(sweep), threads)

    @cached_property
    def vectorized_sweep(self) -> VectorizedSweep | None:
        """The vectorized runs; None if they are not supported, or if a required column is not available from them."""
        return vectorize_sweep(self.binding) if self._has_vectorized_columns() else None

    @property
    def is_vectorized(self) -> bool:
        """Whether runs are vectorized, rather than computed sequentially."""
        return self.vectorized_sweep is not None

    @property
    def is_affine(self) -> bool:
        """Whether vectorized runs are computed without binding each run individually."""
        return self.vectorized_sweep is not None and self.vectorized_sweep.is_affine

    @property
    def sequential_reason(self) -> str:
        """Return which part of the scenario or the robot vectorized runs do not support, "" if the reason is not known."""
        switching = not self.is_vectorized and self.first.problem.signals.switches.size
        return sequential_reason(self.first) or ("forces that switch with the state, such as at a limit" if switching else "")

    @cached_property
    def first(self) -> PreparedRun:
        """The first run."""
        return self.binding.first_run()

    def rows(self) -> int:
        """Return the number of rows (output times) of a run."""
        return self.first.rows

    def steps(self) -> int | None:
        """Return the number of steps of the first run, or None if the step size is not fixed."""
        return self.first.steps

    def costs(self) -> tuple[int, float]:
        """Return the count of numbers per row of a vectorized run, and the steps times coordinates of a sequential run."""
        model = self.first.model
        return model.nq + 3 * model.nv + 3, (self.first.steps or 10 * self.first.rows) * max(model.nv, 1)

    def shared_inputs(self) -> tuple[Any, ...]:
        """Return the scenario without variation, the hash of its numbers, and the names of coordinates and links."""
        base, model = self.binding.prepared, self.binding.model
        scenario = to_plain(base.scenario, Path(self.sweep.scenario).parent)
        return scenario, identity(base)["numbers"], model.q_names, model.link_names

    # columns ------------------------------------------------------------------------------------------------------------
    def known_columns(self) -> dict[str, str]:
        """Return the columns that every run has, with their units; vectorized runs have no others."""
        q, v = (np.zeros((1, n)) for n in (self.binding.model.nq, self.binding.model.nv))
        columns = [*motion_columns(self.binding.model, q=q, v=v, a=v, tau=v), *energy_columns(v, v, v)]
        return {name: unit for name, unit, _ in columns}

    def events(self) -> list[str]:
        """Return the names of the events of the scenario and of its joint stops."""
        scenario = self.binding.prepared.scenario
        stops = limit_stops(scenario, self.binding.model)
        return [*(event.name for event in scenario.events), *stop_event_names(stops, self.binding.model)]

    def _check_unknown_columns(self, unknown: Iterable[ColumnUse]) -> None:
        """Check columns that only some runs have against a run of one row."""
        scenario = self.binding.prepared.scenario
        step = min(scenario.output_step, scenario.duration)
        short = replace(scenario, duration=step, output_step=step)
        try:
            result = simulate_prepared(prepare_run(short, self.binding.model), SilentProgress(), trials=False)
        except LiedynError:                                    # its own error comes with the run
            return
        names = [name for name, _, _ in result.columns]
        for name, entry in unknown:
            if not matching_names(name, names):
                raise ScenarioError("no such column", place=entry.place, found=name, expected="a column of the trajectory",
                                    hint=nearest(name, names))

    def _has_vectorized_columns(self) -> bool:
        """Return whether all required columns are available from vectorized runs."""
        prepared, known = self.binding.prepared, self.known_columns()
        scenario = prepared.scenario
        has_others = any((scenario.contacts, scenario.limits, scenario.forces, scenario.actuators, scenario.control,
                          scenario.motors, prepared.problem.prescribed.any(), prepared.problem.constraints))
        for pattern in self.sweep.trajectories.columns if self.sweep.trajectories and has_others else ():
            if pattern[:1] in ("*", "?", "[") or not matching_names(pattern, [*known]):
                return False
        return all(name in known for output in self.outputs for name in output.columns)

    @property
    def _requires_forces(self) -> bool:
        """Whether accelerations or generalized forces of vectorized runs are required, also for the check of limits."""
        if np.isfinite(velocity_and_force_limits(self.binding.model)[1]).any():
            return True
        names = [name for output in self.outputs for name in output.columns]
        names += self.stored_names(self.known_columns())
        return any(name.startswith(("a.", "tau.")) for name in names)

    # runs ---------------------------------------------------------------------------------------------------------------
    def _run_vectorized(self, table: SampleTable, progress: Progress) -> list[int]:
        """Compute runs as one batch, and return the rows that must be computed individually: other runs, and runs that failed."""
        start, sweep = time.perf_counter(), self.vectorized_sweep
        assert sweep is not None                               # called only if `is_vectorized`
        model, times, n, steps = sweep.first.model, sweep.times, len(table.number), sweep.grid.steps
        parameters, excluded = sweep.rows(table.values)
        engine = sweep.engine_for(parameters)
        out = BatchOutputs.allocate(n, len(times), model.nq, model.nv, engine.n_forces if self._requires_forces else 0)
        states = BatchStates.from_states(parameters.q, parameters.v, np.full(n, steps))
        has_torques = sweep.advance(engine, states, out, parameters.values, self.threads)
        done = ~excluded & (states.ended < 0) & has_torques
        with np.errstate(invalid="ignore"):
            for x in (out.q, out.v):
                done &= np.abs(x).max(axis=(1, 2), initial=0.0) <= STATE_LIMIT        # NaN is not
        out.q[~done], out.v[~done] = model.neutral(), 0.0        # energies of these would raise an error
        passive = sweep.first.problem.passive
        kinetic, potential = evaluate_in_blocks(lambda *state: np.stack(energy(*state, passive=passive)), model, out.q, out.v,
                                                sweep.variants(parameters), ENERGY_BLOCK)
        table.energy_balance[done] = relative_balance(model, kinetic, potential, out.supplied_energy, steps)[done]
        done &= np.isfinite(table.energy_balance)
        rows = np.flatnonzero(done)
        # without a copy if all runs are complete
        arrays = out.q, out.v, out.forces, kinetic, potential, out.supplied_energy
        q, v, forces, *energies = arrays if done.all() else (x[done] for x in arrays)
        a, tau = (forces[..., :model.nv], forces[..., model.nv:2 * model.nv]) if forces.shape[-1] else (None, None)
        columns = [*motion_columns(model, q=q, v=v, a=a, tau=tau), *energy_columns(*energies)]
        self._fill(table, rows, BatchMotion(model, times, columns, q, v, sweep.variants(parameters, done)))
        self._report_creep(table, rows, sweep, parameters, q)
        self._report_limits(table, rows, sweep.first, times, (q, v, tau))
        for i in rows[table.energy_balance[rows] > MAX_RELATIVE_BALANCE].tolist():
            self._add_reasons(table, i, inaccuracy_warnings(table.energy_balance[i]))
        table.seconds[done] = (time.perf_counter() - start) / n
        progress(len(rows))
        return [int(i) for i in np.flatnonzero(~done)]

    def _report_creep(self, table: SampleTable, rows: Integers, sweep: VectorizedSweep, parameters: RunParameters,
                      q: Array) -> None:
        """Write a reason for runs whose joints creep under smoothed friction. q (n, R, nq): motions of the runs of `rows`."""
        problem, times = sweep.first.problem, sweep.times
        if times[-1] <= MIN_CREEP_TIME or not len(rows):
            return
        constants = parameters.constants[rows] if len(sweep.varying_indices) else parameters.constants[rows[:1]]
        friction = np.array([smoothed_friction(problem.model, of_run, problem.passive) for of_run in constants])
        friction = np.broadcast_to(friction, (len(rows), *friction.shape[1:]))
        creep = measure_creep(problem.model, friction, times, q, problem)
        for k in map(int, np.flatnonzero(creep.is_reported().any(axis=1))):
            self._add_reasons(table, int(rows[k]), creep.select_run(k).warnings())

    def _report_limits(self, table: SampleTable, rows: Integers, first: PreparedRun, times: Array,
                       motions: tuple[Array, Array, Array | None]) -> None:
        """Write the limits that runs exceed as reasons. motions: q, v, tau (n, R, …) of the runs of `rows`."""
        model, (q, v, tau) = first.model, motions
        fixed = [model.v_names[k] for k in np.flatnonzero(first.problem.schedule.level != TORQUE)]
        for k in np.flatnonzero(runs_beyond_limits(model, q, v, tau)):
            exceeded = limits_exceeded(model, times, q[k], v[k], np.zeros_like(v[k]) if tau is None else tau[k])
            moved = [limit for limit in exceeded if limit.coordinate not in fixed]
            prescribed = [limit for limit in exceeded if limit.coordinate in fixed]
            self._add_reasons(table, int(rows[k]), [*start_warnings(model, q[k, 0]), *limit_warnings(moved, prescribed)])

    @staticmethod
    def _add_reasons(table: SampleTable, i: int, warnings: Iterable[LiedynWarning]) -> None:
        table.reason[i] = "; ".join(filter(None, (table.reason[i], *(warning.message for warning in warnings))))

    def simulate(self, run: PreparedRun) -> Result:
        """Return the result of one run. Raises LiedynError if it fails; `result` of the error has the rows before."""
        with generic_kernels_of(run.model, self.binding.prepared.model, self.binding.varying_constants):
            return simulate_prepared(run, SilentProgress(), trials=False)

    def _run_single(self, table: SampleTable, i: int, run: PreparedRun) -> None:
        row = np.array([i])
        try:
            result = self.simulate(run)
        except (ComputationError, ScenarioError) as error:
            has_started = error.result is not None or (isinstance(error, ComputationError) and error.at is not None)
            table.status[i] = DIVERGED if has_started else FAILED
            table.reason[i] = str(error)
            if error.result is not None:
                self._store_trajectories(table, row, motion_of_run(error.result))
            return
        self._fill(table, row, motion_of_run(result))
        self._add_reasons(table, i, (warning for warning in result.warnings if warning.code in _WARNINGS_OF_RUNS))
        table.energy_balance[i] = result.check["energy_balance_relative"]
        self._add_reasons(table, i, inaccuracy_warnings(table.energy_balance[i]))
