"""Exact derivatives of a simulation by what varies, for the steps as they are computed.

The step is a line with the rates of its results along a direction (`record_step_with_rates` of `codegen.steps`): what varies
gives a direction each, and the run goes along all of them side by side.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from liedyn.batch.lineup import numbers_of, parted, signature
from liedyn.batch.motions import RunsMotion
from liedyn.batch.rates import NotExact
from liedyn.batch.simulations import SimulationBench
from liedyn.codegen.steps.whole_step import whole_step
from liedyn.dynamics.kinematics import energy
from liedyn.integrators.many_runs import Outputs, Runs, SideBySide, grid_of
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.preparation import output_times
from liedyn.simulation.records.motion_columns import columns_of, energy_columns


def rates_of_simulation(bench: SimulationBench, centre: list, differences: Callable) -> tuple[RunsMotion, RunsMotion]:
    """The run with these values; and its rates by what varies as runs side by side, of q by its numbers.

    differences(numbers): (K, n) differences of numbers(rows of values) by what varies. Raises NotExact."""
    if not bench.side_by_side:
        raise NotExact("runs that go one after the other")
    run = bench.binding.bind(centre)
    kind, problem, model = signature(run), run.problem, run.model
    if kind is None or (problem.schedule.level != TORQUE).any():
        raise NotExact("events, samples, loops or prescribed motions")

    def numbers(rows) -> np.ndarray:
        bound = [bench.binding.bind(row) for row in rows]
        if any(signature(one) != kind for one in bound):
            raise NotExact("what changes more than numbers")
        return np.array([numbers_of(one) for one in bound])

    rates = parted(model, differences(numbers))
    base, nq, nv = parted(model, numbers([centre])), model.nq, model.nv
    places = np.flatnonzero(rates.constants.any(axis=0))
    line = whole_step(problem.tables(), "rk4", tuple(map(int, places)), rates=True)
    if line is None:
        raise NotExact("a step with too many operations")

    def behind(x, dx) -> np.ndarray:
        return np.ascontiguousarray(np.hstack([np.repeat(x, len(dx), axis=0), dx]))

    engine = SideBySide(problem, line, behind(base.constants[:, places], rates.constants[:, places]), 4 * nv + 2)
    count, times = len(rates.q), output_times(run.scenario)
    grid = grid_of(problem.schedule, times, run.scenario.integrator.step)
    moving = Runs.from_states(behind(base.q, np.column_stack([rates.q, np.zeros(count)])), behind(base.v, rates.v),
                              np.full(count, grid.steps))
    read = {name for output in bench.outputs for name in output.columns}
    more = any(name.startswith(("a.", "tau.", "energy.")) for name in read)
    out = Outputs.of(count, len(times), 2 * nq + 1, 2 * nv, engine.more if more else 0)
    engine.advance(moving, grid, out, behind(base.values, rates.values), threads=1)
    if (moving.ended >= 0).any() or not np.isfinite(out.q).all():
        raise NotExact("a run that diverges")
    q, dq, dwork = np.split(out.q, [nq, 2 * nq], axis=2)
    v, dv = np.split(out.v, 2, axis=2)
    columns, by = columns_of(model, q=q[:1], v=v[:1]), columns_of(model, q=dq, v=dv)
    if more:
        a, da, tau, dtau, of_energies = np.split(out.more, np.arange(1, 5) * nv, axis=2)
        kinetic, potential = energy(model, q[:1], v[:1], passive=problem.passive)
        columns += columns_of(model, a=a[:1], tau=tau[:1]) + energy_columns(kinetic, potential, out.work[:1])
        by += columns_of(model, a=da, tau=dtau) + energy_columns(of_energies[..., 0], of_energies[..., 1], dwork[..., 0])
    return RunsMotion(model, times, columns, q[:1], v[:1]), RunsMotion(model, times, by, dq, dv)
