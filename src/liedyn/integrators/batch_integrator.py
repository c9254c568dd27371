"""Integration of many runs of one problem as one batch, with fixed steps. Initial states, numbers and parameters differ."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.batch_step import N_STEP_TIMES, NUMBERS_PER_EVENT, BatchStep, Pivots, compile_batch_step
from liedyn.dynamics.batching.arrays import acquire_buffer
from liedyn.dynamics.batching.calls import thread_workspace
from liedyn.dynamics.batching.threads import cores, run_on_threads
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.run_state import MIN_STEP_SPACINGS
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK, run_rollouts
from liedyn.kernels.simulation.signals import ORDER, TORQUE, InputSchedule, Signals
from liedyn.numba_tools.decorators import compile_entry_point


@dataclass(frozen=True, eq=False)
class Grid:
    """Steps that all runs share.

    clocks  (S + 1, 4) times of each step, see `BatchStep`
    row     (S + 1,) index of the output at the beginning of each step, or -1
    """

    clocks: np.ndarray
    row: np.ndarray

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.row) - 1


def make_grid(schedule: InputSchedule, times: np.ndarray, step: float) -> Grid:
    """Return the steps of `runge_kutta.fixed_step`: equal steps to the next output or break, not longer than `step`."""
    stop_times = [(t, low) for t, low in zip(schedule.breaks, schedule.before, strict=True) if times[0] < t <= times[-1]]
    if not stop_times or stop_times[-1][0] < times[-1]:
        stop_times.append((times[-1], np.nextafter(times[-1], -np.inf)))
    clocks, row, t, k = [], [], float(times[0]), 0
    for stop_time, before in stop_times:
        near = stop_time - MIN_STEP_SPACINGS * (np.nextafter(stop_time, np.inf) - stop_time)
        while t < stop_time:
            while k < len(times) and t > times[k]:                  # replaced by a stop time equal within rounding
                k += 1
            due = k < len(times) and t == times[k]
            goal = next((x for x in times[k + due:k + due + 1] if x < near), stop_time)
            parts = max(1, int(np.ceil((goal - t) / step * (1.0 - 1e-9))))
            h = (goal - t) / parts
            for part in range(parts):
                end = goal if part == parts - 1 else t + h
                ceiling = before if end == stop_time else stop_time
                clocks.append((h, t, min(t + 0.5 * h, ceiling), min(t + h, ceiling)))
                row.append(k if due and part == 0 else -1)
                t = end
            k += due
    last = np.nextafter(t, -np.inf) if t > 0.0 else t               # the last output uses the signals before it
    return Grid(np.array([*clocks, (0.0, last, last, last)]), np.array([*row, len(times) - 1], dtype=np.int64))


def curve_coefficients(signals: Signals, curves: np.ndarray, clocks: np.ndarray) -> np.ndarray:
    """Return (S + 1, 15 c) Taylor coefficients of the signals `curves` at the times of the steps."""
    t = clocks[:, 1:]
    out = np.zeros((len(clocks), N_STEP_TIMES, len(curves), CURVE_COEFFICIENTS))
    for i, k in enumerate(curves):
        first, count = signals.first[k], signals.count[k]
        piece = first + np.clip(np.searchsorted(signals.breaks[first:first + count], t, "right") - 1, 0, None)
        c = signals.coefficients.reshape(-1, ORDER)[piece].copy()
        s = t - signals.breaks[piece]
        for r in range(CURVE_COEFFICIENTS):                                      # repeated Horner's rule
            for j in range(ORDER - 2, r - 1, -1):
                c[..., j] += s * c[..., j + 1]
            out[:, :, i, r] = c[..., r]
    return out.reshape(len(clocks), -1)


@dataclass(frozen=True, eq=False)
class StepInputs:
    """Inputs that change between steps: indices into the values, and series (1 or N, 1 or S, m)."""

    places: np.ndarray
    series: np.ndarray


@dataclass(frozen=True, eq=False)
class BatchStates:
    """States of N runs, which are advanced in place.

    q, v        (N, nq), (N, nv)
    auxiliary   (N, 1 + …) supplied energy and data of events: see `BatchStep`
    first_step  (N,) step from which each run starts
    last        (N,) number of steps of each run
    ended       (N,) step in which a run failed, or before which it stops for an event (code EVENT), or -1
    codes       (N,) reasons
    """

    q: np.ndarray
    v: np.ndarray
    auxiliary: np.ndarray
    first_step: np.ndarray
    last: np.ndarray
    ended: np.ndarray
    codes: np.ndarray

    @classmethod
    def from_states(cls, q: Array, v: Array, last: np.ndarray, events: int = 0) -> BatchStates:
        """Return runs that start at the states q, v with their first steps. last (n,): number of steps of each run."""
        n = len(q)
        none, auxiliary = np.zeros(n, dtype=np.int64), np.zeros((n, 1 + NUMBERS_PER_EVENT * events))
        auxiliary[:, 1 + events:1 + 3 * events] = np.nan                     # unknown
        return cls(q.copy(), v.copy(), auxiliary, none, last.copy(), np.full(n, -1), none.copy())


@dataclass(frozen=True, eq=False)
class BatchOutputs:
    """(N, R, …) values of N runs at R times, NaN after the end of a run.

    forces: a, tau and wrenches, or (N, R, 0).
    """

    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    supplied_energy: np.ndarray

    @classmethod
    def allocate(cls, runs: int, times: int, nq: int, nv: int, more: int) -> BatchOutputs:
        """Return outputs that are NaN. more: number of values besides q and v."""
        q, v, forces = (acquire_buffer((runs, times, n)) for n in (nq, nv, more))
        out = cls(q, v, forces, acquire_buffer((runs, times)))
        for x in (out.q, out.v, out.forces, out.supplied_energy):
            x.fill(np.nan)
        return out


class BatchIntegrator:
    """Integrates many runs of a problem without switches of the state, see `compile_batch_step`.

    more: number of values per output row besides q and v; default: accelerations, forces and wrenches.
    """

    def __init__(self, problem: InitialValueProblem, line: BatchStep, varying: np.ndarray, more: int | None = None):
        self.problem, self.batch_step, self.varying = problem, line, varying
        self.n_forces = 2 * problem.model.nv + problem.wrench_size if more is None else more
        compile_entry_point(run_rollouts)

    def advance(self, runs: BatchStates, grid: Grid, out: BatchOutputs, values: np.ndarray, step_inputs: StepInputs | None = None,
                threads: int | None = None) -> None:
        """Advance all runs over the steps of the grid, in parallel. values (N, k): values of each run."""
        self.prepare(runs, grid, out, values, step_inputs, threads)()

    def prepare(self, runs: BatchStates, grid: Grid, out: BatchOutputs, values: np.ndarray, step_inputs: StepInputs | None = None,
                threads: int | None = None) -> PreparedAdvance:
        """Return the call of `advance`, which reads and writes these arrays and may be repeated."""
        line, model, n = self.batch_step, self.problem.model, len(runs.q)
        if step_inputs is None:
            step_inputs = StepInputs(np.zeros(0, dtype=np.int64), np.zeros((1, 1, 0)))
        # compiled code reads one row per run, and at least one step
        assert len(self.varying) == len(values) == n and (step_inputs.series.shape[1] or not n)
        curves = curve_coefficients(self.problem.signals, line.curves, grid.clocks)
        has_forces = bool(out.forces.shape[2]) or (self.problem.schedule.level != TORQUE).any()
        rest, more = np.zeros(runs.q.shape[1]), self.n_forces if has_forces else 0
        rest[:model.nq] = model.neutral()
        sizes = [x.shape[1] for x in (runs.q, runs.v, runs.auxiliary, values, self.varying)]
        size = RUNS_PER_BLOCK * (sum(sizes) + more + 1) + max(line.step.workspace_size, line.outputs.workspace_size)
        before: tuple[Array, ...] = (runs.q, runs.v, runs.auxiliary)
        if runs.first_step.any():                                      # initial states of runs that start later
            before = tuple(x.copy() for x in before)
        return PreparedAdvance((line.step.address, line.outputs.address if has_forces else 0, line.simd_width, more, grid.row,
                                grid.clocks, curves, step_inputs.places, step_inputs.series, values, runs.first_step, *before,
                                runs.q, runs.v, runs.auxiliary, self.varying, runs.last, runs.ended, runs.codes, out.q, out.v,
                                out.forces, out.supplied_energy, rest), size, thread_borders(n, threads))


class PreparedAdvance:
    """A call of `run_rollouts` with arrays that it reads and writes.

    arguments       those before the workspace
    workspace_size  of each thread
    borders         of the runs of each thread
    """

    def __init__(self, arguments: tuple[Any, ...], workspace_size: int, borders: list[int]):
        self.arguments, self.workspace_size, self.borders = arguments, workspace_size, borders

    def __call__(self) -> int:
        """Advance the runs. Return the number of runs that have ended."""
        if len(self.borders) == 2:                                     # saves 5 us, of which a step of one run takes a half
            return self._advance_part(*self.borders)
        return sum(run_on_threads(self._advance_part, self.borders))

    def _advance_part(self, first: int, until: int) -> int:
        ended: int = run_rollouts(*self.arguments, thread_workspace(self.workspace_size), first, until)
        return ended


def thread_borders(runs: int, threads: int | None = None) -> list[int]:
    """Return the borders of the runs of each thread: multiples of RUNS_PER_BLOCK. threads: default all cores."""
    runs_per_part = max(1, -(-runs // (RUNS_PER_BLOCK * (threads or cores())))) * RUNS_PER_BLOCK
    return [*range(0, runs, runs_per_part), runs]


def generated_step(problem: InitialValueProblem, method: str, places: tuple[int, ...],
                   rows: Pivots = (), single: bool = False) -> BatchStep | None:
    """Return the generated step; None if not supported: sampled controllers, and see `compile_batch_step`.

    places  indices in model.constants of constants that differ between runs
    rows    pivots of the constraints, if the right-hand side solves for their multipliers
    single  whether it computes in single precision
    """
    if problem.sampled is not None or (problem.solves_constraints and not rows):
        return None
    return compile_batch_step(problem.tables()._replace(single=single), method, places, rows, problem.directions)
