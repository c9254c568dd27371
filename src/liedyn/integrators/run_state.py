"""Data that the compiled loop over a run reads and writes, and their serialization."""
from __future__ import annotations

import mmap
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from liedyn.kernels.constraints.driver import copy_array, count_singular_output
from liedyn.kernels.constraints.stages import HEADER, constraint_workspace_of
from liedyn.kernels.simulation.right_hand_side import ConstrainedSystem, constraint_errors
from liedyn.numba_tools.decorators import inline_kernel, kernel

# Method.control: the step, or the maximum step of an adaptive method; tolerances; 1 / (error order + 1); relative tolerance of
# the supplied work (0: not controlled)
H_MAX, RTOL, ATOL, ERROR_EXPONENT, WORK_RTOL = range(5)
# State.clock: the present time; the next step (0: to be chosen). Of the tried step: its length and end, its stop time, and the
# last time before that
T_NOW, H_NEXT, H_TRIED, T_TRIED, T_STOP, T_BEFORE = range(6)
# State.count: the next output and the next break; steps, rejected steps, evaluations; whether K[0] is known
NEXT_OUTPUT, NEXT_BREAK, STEPS, REJECTED, EVALUATIONS, FIRST_RATE_KNOWN = range(6)

MIN_STEP_SPACINGS = 10.0                                     # spacings of floats at the next wall


class Method(NamedTuple):
    """Coefficients and tolerances of a Runge-Kutta method."""

    A: np.ndarray          # (s, s)
    b: np.ndarray          # (s,)
    c: np.ndarray          # (s,)
    error: np.ndarray      # (s + 1,) or empty: fixed steps
    dense: np.ndarray      # (s + 1, k) or empty
    control: np.ndarray    # (5,) see H_MAX
    interpolation_weights: np.ndarray    # (k, s + 1) see `Tableau`


class BreakPoints(NamedTuple):
    """Breaks of the schedule and workspace of the constraints, for the loop over a run."""

    breaks: np.ndarray     # Schedule.breaks, before, q_of_v
    before: np.ndarray
    q_of_v: np.ndarray
    switch_states: np.ndarray       # of the switches of the state: Signals.switches of this run
    constraint_ws: np.ndarray       # of the constraints, see `kernels.constraints.stages`; empty without
    stops_at_breaks: bool            # whether the loop returns at each break


class State(NamedTuple):
    """State of a run between chunks."""

    q: np.ndarray          # (nq,) origin of the chart
    y: np.ndarray          # (n,) x, v, z, work: see `right_hand_side`; n = 2 nv + m + 1
    clock: np.ndarray      # (6,) see T_NOW
    count: np.ndarray      # type: ignore[assignment]  # (6,) int64, see NEXT_OUTPUT; a field, not the method of tuples


class Stages(NamedTuple):
    """Workspace of a step."""

    K: np.ndarray          # (s + 2, n) rates of the stages, at the end of the step, and one to spare; perhaps with further
                           # columns, for what the switches of the state read there
    y: np.ndarray          # (n,) of a stage
    end: np.ndarray        # (n,) after the step
    output: np.ndarray     # (n,) between steps
    q: np.ndarray          # (nv,) what errors of x are relative to
    projected_q: np.ndarray       # (nq,) of a state that has been brought back onto the constraints
    next_q: np.ndarray     # (nq,) at the end of the step
    next_v: np.ndarray     # (nv,)


class Record(NamedTuple):
    """Values at the output times."""

    t: np.ndarray          # (N,)
    q: np.ndarray          # (N, nq)
    v: np.ndarray          # (N, nv)
    a: np.ndarray          # (N, nv)
    tau: np.ndarray        # (N, nv)
    wrench: np.ndarray     # (N, 6 slots + thrusts)
    supplied_energy: np.ndarray       # (N,) supplied since the beginning
    estimate: np.ndarray   # (N, P) estimated parameters of `slotine_li`
    multipliers: np.ndarray    # (N, m) of the constraints
    residual: np.ndarray   # (N, 2) the maximum of positions and of velocities, or (N, 0)
    constraint_motion: np.ndarray      # (N, 24 driven) motions of driven loops
    stretch: np.ndarray    # (N, 3s) stretches of the s contacts that stick


@inline_kernel
def next_break(break_points, state, last):
    """Return the stop time of a step, the next break or the end, and the last time that counts as before it."""
    breaks, t = break_points.breaks, state.clock[T_NOW]
    while state.count[NEXT_BREAK] < breaks.size and breaks[state.count[NEXT_BREAK]] <= t:
        state.count[NEXT_BREAK] += 1
    k = state.count[NEXT_BREAK]
    if k < break_points.breaks.size and break_points.breaks[k] <= last:
        return break_points.breaks[k], break_points.before[k]
    return last, np.nextafter(last, -np.inf)


@inline_kernel
def output_is_due(state, record):
    """Return whether the next output is at the present time within rounding: implicit methods cannot solve such short steps."""
    t = state.clock[T_NOW]
    return record.t[state.count[NEXT_OUTPUT]] - t <= MIN_STEP_SPACINGS * (np.nextafter(t, np.inf) - t)


@inline_kernel
def next_fixed_step(break_points, state, record, step):
    """Return one of equal steps to the next output or break, not longer than `step`.

    Returns its length and its end; its stop time and the last time before that; and the goal of the equal steps: the output, or
    the stop time unless the output is earlier by more than rounding.
    """
    t, due = state.clock[T_NOW], record.t[state.count[NEXT_OUTPUT]]
    stop_time, before = next_break(break_points, state, record.t[record.t.size - 1])
    goal = stop_time if due >= stop_time - MIN_STEP_SPACINGS * (np.nextafter(stop_time, np.inf) - stop_time) else due
    parts = max(1.0, np.ceil((goal - t) / step * (1.0 - 1e-9)))
    h = (goal - t) / parts
    return h, goal if parts == 1.0 else t + h, stop_time, before, goal


@inline_kernel
def store_evaluation(ws, supplied, record, i):
    """Write output i from the evaluation in ws and the supplied energy."""
    copy_array(ws.q, record.q[i])
    copy_array(ws.v, record.v[i])
    copy_array(ws.a, record.a[i])
    copy_array(ws.tau, record.tau[i])
    copy_array(ws.wrench, record.wrench[i])
    record.supplied_energy[i] = supplied


@kernel
def store_constraints(constraint_ws, record, i, ws):
    """Write multipliers, residuals and motions of driven loops of output i, at the state in ws. Count singular outputs."""
    d = constraint_workspace_of(constraint_ws)
    count_singular_output(d)
    copy_array(d.multipliers, record.multipliers[i])
    copy_array(d.constraint_motion, record.constraint_motion[i])
    constraint_errors(constraint_ws, ws.q, ws.v, record.residual[i])


# Arrays of a state, for `state_dict` and `load_state_dict` ---------------------------------------------------------------

# Classes with state of a run return it from `state_dict` as {attribute: array, JSON value, or a dict of these}. It contains all
# arrays that are written during a run, so a restored run continues bit for bit.

def arrays_of(x: tuple[Any, ...]) -> dict[str, Any]:
    """Return the arrays in a (named) tuple of arrays and such tuples, by the names or indices of its fields, without copies."""
    names = getattr(x, "_fields", map(str, range(len(x))))
    parts = {name: arrays_of(part) if isinstance(part, tuple) else part for name, part in zip(names, x, strict=True)}
    return {name: part for name, part in parts.items() if isinstance(part, (np.ndarray, dict))}


def load_arrays(x: tuple[Any, ...], state: Mapping[str, Any]) -> None:
    """Write the values of `arrays_of` into the arrays of such a tuple."""
    for name, array in arrays_of(x).items():
        _write_array(array, state[name])


def _write_array(x: np.ndarray | dict[str, Any], state: Any) -> None:
    if isinstance(x, np.ndarray):
        x[...] = state
        return
    for name, part in x.items():
        _write_array(part, state[name])


def constraint_arrays(constraints: ConstrainedSystem | None) -> tuple[Any, ...]:
    """Return the arrays of the constraints without the header of the workspace, which contains addresses of this process."""
    return () if constraints is None else constraints._replace(constraint_ws=constraints.constraint_ws[HEADER:])


# Memory of rows that is released after they are written to disk, so that it does not grow with the length of a run ------

_MIN_MAPPED_SIZE = 1 << 24         # bytes


def mapped_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return a float64 array of zeros; large arrays are memory mappings, which use memory only where they are written."""
    size = 8 * prod(shape)
    if size < _MIN_MAPPED_SIZE or not hasattr(mmap, "MADV_DONTNEED"):
        return np.zeros(shape)
    private = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)         # shared mappings do not release memory
    return np.frombuffer(private, dtype=np.float64).reshape(shape)


def release_memory(x: np.ndarray, rows: int) -> None:
    """Release the memory of the first rows of an array of `mapped_zeros`. They read as zeros afterwards, or are unchanged."""
    mapping: Any = x
    while isinstance(mapping, np.ndarray):
        mapping = mapping.base
    mapping = mapping.obj if isinstance(mapping, memoryview) else mapping
    size = rows * x.strides[0] // mmap.PAGESIZE * mmap.PAGESIZE if isinstance(mapping, mmap.mmap) else 0
    if size:
        mapping.madvise(mmap.MADV_DONTNEED, 0, size)
