"""Simulations: side by side where they can go so, the others one after the other."""
from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from liedyn.batch.binding import ScenarioBinding
from liedyn.batch.chunk import COMPLETE, DIVERGED, FAILED, Bench, Motions, Table, by_loops_of, every_nth, matching
from liedyn.batch.lineup import Lineup, lineup_of
from liedyn.batch.motions import OfResult, SideBySideMotion
from liedyn.errors import ComputationError, LiedynError, ScenarioError, nearest
from liedyn.integrators.many_runs import Outputs, Runs
from liedyn.integrators.problem import LOST
from liedyn.io.csv import column_title
from liedyn.io.scenarios.plain_scenario import to_plain
from liedyn.simulation.preparation import Prepared, prepare_with
from liedyn.simulation.records.motion_columns import columns_of
from liedyn.simulation.records.resume import identity
from liedyn.simulation.run import Silent, simulate_prepared
from liedyn.simulation.run_checks.balance import relative_balance

_KINDS = ("q", "v", "a", "tau")


class SimulationBench(Bench):
    """lineup: None where they go one after the other."""

    def _bound(self) -> ScenarioBinding:
        return ScenarioBinding(self.sweep)

    @cached_property
    def lineup(self) -> Lineup | None:
        return lineup_of(self.binding) if self._readable_side_by_side() else None

    @property
    def side_by_side(self) -> bool:
        return self.lineup is not None

    @property
    def way(self) -> str:
        if self.lineup is None:
            return "one after the other"
        return "side by side" + ("" if self.lineup.affine else ", each bound by itself")

    @cached_property
    def first(self) -> Prepared:
        return self.binding.first_checked()

    def rows(self) -> int:
        return self.first.rows

    def numbers(self) -> tuple[int, float]:
        model = self.first.model
        return model.nq + 3 * model.nv + 3, (self.first.steps or 10 * self.first.rows) * max(model.nv, 1)

    def common(self) -> tuple:
        base, model = self.binding.prepared, self.binding.model
        scenario = to_plain(base.scenario, os.path.dirname(self.sweep.scenario))
        return scenario, identity(base)["numbers"], model.q_names, model.link_names

    # columns ------------------------------------------------------------------------------------------------------------
    def known_columns(self) -> dict[str, str]:
        """Columns that every run has, and their units; of runs side by side they are all."""
        model = self.binding.model
        arrays = {kind: np.zeros((1, model.nq if kind == "q" else model.nv)) for kind in _KINDS}
        return {name: unit for name, unit, _ in columns_of(model, **arrays)} | dict.fromkeys(
            ("energy.kinetic", "energy.potential", "energy.work"), "J")

    def events(self) -> list[str]:
        return [event.name for event in self.binding.prepared.scenario.events]

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
            if name not in names and not matching(names, name):
                raise ScenarioError("no such column", place=one.place, found=name, expected="a column of the trajectory",
                                    hint=nearest(name, names))

    def _readable_side_by_side(self) -> bool:
        """Whether no other columns are asked for than those of runs side by side."""
        prepared, known = self.binding.prepared, self.known_columns()
        scenario = prepared.scenario
        others = any((scenario.contacts, scenario.limits, scenario.forces, scenario.actuators, scenario.control, scenario.motors,
                      prepared.problem.prescribed.any()))
        for pattern in self.sweep.trajectories.columns if self.sweep.trajectories and others else ():
            if pattern[:1] in ("*", "?", "[") or not matching(known, pattern):
                return False
        return all(name in known for output in self.outputs for name in output.columns)

    @property
    def _reads_forces(self) -> bool:
        """Whether accelerations or joint forces of runs side by side are read."""
        names = [name for output in self.outputs for name in output.columns]
        names += self.kept_names(self.known_columns()) if self.sweep.trajectories else []
        return any(name.startswith(("a.", "tau.")) for name in names)

    # runs ---------------------------------------------------------------------------------------------------------------
    def _together(self, table: Table, kept: list[Motions], progress) -> list[int]:
        """Left are what cannot go with the others, and what went astray, which is told by itself."""
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
        progress(np.count_nonzero(done))
        return [int(i) for i in np.flatnonzero(~done)]

    def _rows_side_by_side(self, motion: SideBySideMotion, number, which) -> Motions:
        rows = every_nth(len(motion.t), self.sweep.trajectories.every)
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
        result, base = None, self.binding.prepared.model
        try:
            with by_loops_of(run.model, base):
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
            with by_loops_of(run.model, base):
                motion = OfResult(result)
                for k, output in enumerate(self.outputs):
                    table.outputs[i, k] = np.asarray(output.value(motion)).reshape(-1)[0]
        if self.sweep.trajectories:
            rows, number = every_nth(len(result.t), self.sweep.trajectories.every), table.number[i]
            titles = {name: column_title(name, unit) for name, unit, _ in result.columns}
            columns = {name: x for name, _, x in result.columns}
            kept.append(Motions(np.full(len(rows), number), result.t[rows],
                                {titles[name]: columns[name][rows] for name in self.kept_names(columns)}))
