"""Exact derivatives of a simulation by what varies, for the steps as they are computed.

The adjoint of a step, a line, is called with each result in turn: its rows are the Jacobian of the step, by which the derivatives
of the state go from step to step. Those of accelerations, joint forces and energies follow at the rows of the result.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from liedyn.batch.lineup import numbers_of, signature
from liedyn.batch.motions import SideBySideMotion
from liedyn.batch.rates import NotExact
from liedyn.batch.simulations import SimulationBench
from liedyn.codegen.lines import Batch
from liedyn.codegen.whole_step import adjoint_line
from liedyn.dynamics.calling.calls import scratch
from liedyn.integrators.many_runs import Grid, Outputs, Runs, SideBySide, curves_at, grid_of, side_by_side
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.run import output_times


@dataclass(frozen=True, eq=False)
class _Run:
    """A run with its states before all steps and at the end. values (k,), constants (l,) at `places`; rates of these (K, k) and
    (K, l)."""

    engine: SideBySide
    grid: Grid
    states: Outputs
    places: tuple[int, ...]
    values: np.ndarray
    constants: np.ndarray
    of_values: np.ndarray
    of_constants: np.ndarray

    def line(self, of: str) -> Batch:
        found = adjoint_line(self.engine.problem.tables(), of, self.places)
        if found is None:
            raise NotExact("a step with too many operations")
        return found


def rates_of_simulation(bench: SimulationBench, centre: list, differences: Callable) -> tuple[SideBySideMotion, dict]:
    """The run with these values, and the rates {q, v, a, tau, energy: (K, R, n)} of its rows, of q by its numbers, of the kinetic
    and potential energy and the work; those that outputs read.

    differences(numbers): (K, n) differences of numbers(rows of values) by what varies. Raises NotExact."""
    if not bench.side_by_side:
        raise NotExact("runs that go one after the other")
    run = bench.binding.bind(centre)
    kind, problem, model = signature(run), run.problem, run.model
    if (problem.schedule.level != TORQUE).any():
        raise NotExact("prescribed motions")

    def numbers(rows) -> np.ndarray:
        bound = [bench.binding.bind(row) for row in rows]
        if any(signature(one) != kind for one in bound):
            raise NotExact("what changes more than numbers")
        return np.array([numbers_of(one) for one in bound])

    base = numbers_of(run)
    sizes = np.cumsum([model.nq, model.nv, len(base) - model.nq - model.nv - len(model.constants)])
    q, v, values, constants = np.split(base, sizes)
    dq, dv, of_values, of_constants = np.split(differences(numbers), sizes, axis=1)
    places = np.flatnonzero(of_constants.any(axis=0))
    read = {name for output in bench.outputs for name in output.columns}
    forces = any(name.startswith(("a.", "tau.")) for name in read)
    engine = side_by_side(problem, "rk4", tuple(map(int, places)), constants[None, places].copy())
    times = output_times(run.scenario)
    grid = grid_of(problem.schedule, times, run.scenario.integrator.step)
    states = Outputs.of(1, grid.steps + 1, model.nq, model.nv, engine.more if forces else 0)
    moving = Runs.from_states(q[None], v[None], np.array([grid.steps]))
    engine.advance(moving, Grid(grid.clocks, np.arange(grid.steps + 1)), states, values[None].copy(), threads=1)
    if moving.ended[0] >= 0 or not np.isfinite(states.q).all():
        raise NotExact("a run that diverges")
    this = _Run(engine, grid, states, tuple(map(int, places)), values, constants[places], of_values, of_constants[:, places])
    rows = np.flatnonzero(grid.row >= 0)
    tangent = _through_steps(this, dq, dv)
    found = {kind: x[rows].swapaxes(0, 1) for kind, x in zip("qv", tangent, strict=True)}
    if forces:
        both = _of_results(this, tangent, rows, "forces", 2 * model.nv)
        found |= {"a": both[..., :model.nv], "tau": both[..., model.nv:]}
    if any(name.startswith("energy.") for name in read):
        found["energy"] = _of_results(this, tangent, rows, "energies", 2)
    if "energy.work" in read:
        gained = _of_results(this, tangent, np.arange(grid.steps), "work", 1)
        work = np.concatenate([np.zeros_like(gained[:, :1]), gained.cumsum(axis=1)], axis=1)
        found["energy"] = np.concatenate([found["energy"], work[:, rows]], axis=2)
    more = [states.more[:, rows, k:k + model.nv] for k in (0, model.nv)] if forces else [None, None]
    return SideBySideMotion(model, None, times, states.q[:, rows], states.v[:, rows], *more, states.work[:, rows]), found


class _Jacobians:
    """By an adjoint line: of results, in arrays with sizes `asked`, at one time. after: whether they are the state itself, whose
    derivatives the line writes in place."""

    def __init__(self, run: _Run, line: Batch, asked: tuple[int, ...], after: bool = False):
        model, rows = run.engine.problem.model, sum(asked)
        self.line, self.scratch, self.seeds = line, scratch(max(line.scratch, 8)), np.eye(rows)
        self.sizes = model.nq, model.nv, run.values.size, run.constants.size

        def room(n: int, x=0.0) -> np.ndarray:                 # a line wants an address for what is empty, too
            return np.array(np.broadcast_to(x, (rows, n)), order="C") if n else np.zeros((rows, 1))
        self.q, self.v, self.code, self.clock = room(model.nq), room(model.nv), room(1), np.zeros((1, 4))
        self.by = [room(n) for n in asked]
        self.found = [*(self.by if after else [room(model.nq), room(model.nv)]), *map(room, self.sizes[2:])]
        self.before = [room(run.values.size, run.values), self.q, self.v, room(1), *self.by]
        self.behind = [*self.found[2 if after else 0:], self.code, room(run.constants.size, run.constants)]

    def at(self, clock, curves, q, v) -> list[np.ndarray]:
        """(results, n) by q, v, values and constants."""
        self.clock[0], self.q[:], self.v[:] = clock, q, v
        ends = np.cumsum([x.shape[1] for x in self.by])[:-1]
        for x, part in zip(self.by, np.split(self.seeds, ends, axis=1), strict=True):
            x[:] = part
        curves = curves[None].copy() if curves.size else np.zeros((1, 1))
        if not self.line.run([self.clock, curves, *self.before, *self.behind], self.scratch, 0, len(self.seeds)):
            raise NotExact("a step beyond the range of its line")
        return [x[:, :n] for x, n in zip(self.found, self.sizes, strict=True)]


def _through_steps(run: _Run, dq: np.ndarray, dv: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(S + 1, K, nq), (S + 1, K, nv): rates of the state before each step and at the end, from those at the beginning."""
    engine, states, grid = run.engine, run.states, run.grid
    nq, nv = dq.shape[1], dv.shape[1]
    step = _Jacobians(run, run.line("rk4"), (nq, nv), after=True)
    curves = curves_at(engine.problem.signals, engine.line.curves, grid.clocks)
    found = tuple(np.empty((grid.steps + 1, *x.shape)) for x in (dq, dv))
    found[0][0], found[1][0] = dq, dv
    for s in range(grid.steps):
        by = step.at(grid.clocks[s], curves[s], states.q[0, s], states.v[0, s])
        rates = found[0][s], found[1][s], run.of_values, run.of_constants
        found[0][s + 1], found[1][s + 1] = np.split(sum(x @ J.T for x, J in zip(rates, by, strict=True)), [nq], axis=1)
    return found


def _of_results(run: _Run, tangent, steps: np.ndarray, of: str, count: int) -> np.ndarray:
    """(K, steps, count) rates of results, of a kind of `whole_step.RESULTS`, before these steps; of the work: what they add."""
    engine, states, grid = run.engine, run.states, run.grid
    results = _Jacobians(run, run.line(of), (count,))
    curves, found = curves_at(engine.problem.signals, engine.line.curves, grid.clocks), []
    for s in steps:
        by = results.at(grid.clocks[s], curves[s], states.q[0, s], states.v[0, s])
        rates = tangent[0][s], tangent[1][s], run.of_values, run.of_constants
        found.append(sum(x @ J.T for x, J in zip(rates, by, strict=True)))
    return np.array(found).swapaxes(0, 1)
