"""Loops over the steps of many runs in one batch.

One call of generated code (`codegen.batch_step`) advances several runs by one step. These runs are a block. Their numbers are in
arrays with capital letters, in the order of `block_offset`. Copies of the last run fill the last SIMD register.
"""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING
from liedyn.numba_tools.decorators import array_address, call_with_integers, entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace

RUNS_PER_BLOCK = 64        # runs that are advanced together: their states stay in the cache; a multiple of eight


class Block(NamedTuple):
    """At most RUNS_PER_BLOCK runs."""

    first: int               # the first run
    runs: int                # number of runs
    size: int                # number of runs and of copies of the last run
    simd_width: int          # states per SIMD register


class States(NamedTuple):
    """States of runs: arrays (N, n) with a run per row, or the numbers of one block of runs."""

    q: np.ndarray
    v: np.ndarray
    auxiliary: np.ndarray    # (N, 1 + 4 events) supplied energy, then values of events, see `BatchStep`


class Forces(NamedTuple):
    """Accelerations, generalized forces and wrenches of the runs of a block; empty if they are not computed."""

    a: np.ndarray
    tau: np.ndarray
    wrench: np.ndarray


class Progress(NamedTuple):
    """First and last steps of N runs."""

    first_step: np.ndarray   # (N,) int64
    last: np.ndarray         # (N,) int64: step before which the final state of each run is
    end_step: np.ndarray     # (N,) int64: step at which a run failed, or in which its event happens (code AT_EVENT); else -1
    codes: np.ndarray        # (N,) int64: code of that end


class Outputs(NamedTuple):
    """Outputs of N runs at R times. Rows after the end of a run are not written."""

    row: np.ndarray          # (S + 1,) int64: output row of the state before each step; -1: none
    q: np.ndarray            # (N, R, nq)
    v: np.ndarray            # (N, R, nv)
    forces: np.ndarray       # (N, R, a | tau | wrench), or (N, R, 0)
    energy: np.ndarray       # (N, R) supplied energy


class Trajectories(NamedTuple):
    """States of N runs before each step and at the end, and derivatives of a cost with respect to each of them alone."""

    q: np.ndarray            # (N, S + 1, nq)
    v: np.ndarray            # (N, S + 1, nv)
    d_q: np.ndarray
    d_v: np.ndarray
    last: np.ndarray         # (N,) int64: step before which the final state of each run is


class Gradients(NamedTuple):
    """Derivatives of a cost, one row per run (N, n) or in a block."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    varying: np.ndarray


# Simulation -------------------------------------------------------------------------------------------------------------

@entry_point("i8(i8, i8, i8, i8, i8[::1], f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], "
             "f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], i8[::1], f8[:,:,::1], f8[:,:,::1], "
             "f8[:,:,::1], f8[:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def run_rollouts(step, outputs, simd_width, n_extra, row, clocks, curves, columns, series, values, first_step, initial_q,
                 initial_v, initial_auxiliary, q, v, auxiliary, varying, last, end_step, codes, out_q, out_v, out_forces,
                 out_energy, rest_q, memory, first, until):
    """Simulate the runs first … until - 1, each from its step first_step. Return how many of them have ended.

    Run j starts at initial_q, initial_v, initial_auxiliary; its final state is written to q, v, auxiliary. These may be the same
    arrays if all runs start at the same step. `Progress` and `Outputs` describe the other arrays of runs.

    step, outputs   addresses of the functions of `BatchStep`; outputs 0: accelerations and forces are not computed
    simd_width      states per SIMD register
    n_extra         size of a, tau and wrench together; 0 without `outputs`
    clocks          (S + 1, 4), curves (S + 1, 15 c): times of each step, and of the end; Taylor coefficients there
    columns         (m,) columns of `values` (N, k) that are set to `series` (1 or N, 1 or S, m) at each step
    varying         (N, l): constants of the model that differ between runs
    rest_q          (nq,) configuration of runs that have ended or not yet started, while others of their block are advanced
    memory          workspace: RUNS_PER_BLOCK (nq + nv + 1 + 4 events + k + l + n_extra + 1) for the runs of a block, then that of
                    generated code
    """
    n, nq, nv, nw, k, l = RUNS_PER_BLOCK, q.shape[1], v.shape[1], auxiliary.shape[1], values.shape[1], varying.shape[1]
    Q, V, W, X, P, A, C, generated_ws = split_workspace(memory, (n * nq, n * nv, n * nw, n * k, n * l, n * n_extra, n))
    a, tau, wrench = split_workspace(A, (n * nv * (n_extra > 0), n * nv * (n_extra > 0)))
    initial, final, states = States(initial_q, initial_v, initial_auxiliary), States(q, v, auxiliary), States(Q, V, W)
    progress, out = Progress(first_step, last, end_step, codes), Outputs(row, out_q, out_v, out_forces, out_energy)
    forces, force_addresses = Forces(a, tau, wrench), (array_address(a), array_address(tau), array_address(wrench))
    addresses = array_address(X), array_address(Q), array_address(V), array_address(W)
    other_addresses = array_address(C), array_address(P), array_address(generated_ws), int64(0)
    for block_first in range(first, until, RUNS_PER_BLOCK):
        block = block_at(block_first, until, simd_width)
        load_runs(values, block, X)
        load_runs(varying, block, P)
        start, latest = park_all(rest_q, block, states, first_step)
        for s in range(start, row.size):
            if s <= latest:
                start_runs(initial, block, states, first_step, s)
            if s == start or series.shape[1] > 1:                  # a fifth to a half of steps with constant forces
                set_step_inputs(columns, series, s, block, X)
            times = step_addresses(clocks, curves, s)
            if row[s] >= 0:
                if outputs:
                    call_with_integers(outputs, (*times, *addresses, *force_addresses, *other_addresses, block.size))
                store_outputs(block, states, forces, C, outputs != 0, progress, out, s)
            if s == row.size - 1:
                break
            if call_with_integers(step, (*times, *addresses, *other_addresses, block.size)) != OK:
                park_ended(rest_q, block, states, C, progress, final, s)
        store_final_states(block, states, progress, final)
    return count_ended(progress, first, until)


@inline_kernel
def park_all(rest_q, block, states, first_step):
    """Set all runs of a block to a fixed state at rest. Return the minimum and the maximum of their first steps."""
    start = latest = first_step[block.first]
    for i in range(block.size):
        j = run_at(block, i)
        start, latest = min(start, first_step[j]), max(latest, first_step[j])
        park(rest_q, states, i, block.simd_width)
    return start, latest


@inline_kernel
def start_runs(initial, block, states, first_step, s):
    """Load the initial states of the runs that start at step s."""
    for i in range(block.size):
        j = run_at(block, i)
        if s == first_step[j]:
            load_run(initial.q, j, states.q, i, block.simd_width)
            load_run(initial.v, j, states.v, i, block.simd_width)
            load_run(initial.auxiliary, j, states.auxiliary, i, block.simd_width)


@inline_kernel
def store_outputs(block, states, forces, block_codes, has_codes, progress, out, s):
    """Copy the states before step s, and the forces, to the outputs of the runs that have not ended.

    has_codes: whether block_codes are those of the forces.
    """
    r, nv = out.row[s], out.v.shape[2]
    for i in range(block.runs):
        j = block.first + i
        if progress.first_step[j] <= s <= progress.last[j]:
            if has_codes:
                record_end(progress, j, s, block_codes[i])
            if progress.end_step[j] < 0:
                store_run(states.q, i, block.simd_width, out.q[j, r])
                store_run(states.v, i, block.simd_width, out.v[j, r])
                out.energy[j, r] = states.auxiliary[block_offset(i, block.simd_width, states.auxiliary.size // RUNS_PER_BLOCK)]
                if out.forces.shape[2]:
                    a, tau, wrench = split_workspace(out.forces[j, r], (nv, nv))
                    store_run(forces.a, i, block.simd_width, a)
                    store_run(forces.tau, i, block.simd_width, tau)
                    store_run(forces.wrench, i, block.simd_width, wrench)


@inline_kernel
def park_ended(rest_q, block, states, block_codes, progress, final, s):
    """Record the runs that ended in step s.

    Those without an event are set to a fixed state at rest; the others keep their states.
    """
    for i in range(block.size):
        code = block_codes[i]
        if code == RUNNING:
            continue
        j = run_at(block, i)
        if i < block.runs and progress.first_step[j] <= s < progress.last[j]:
            if code == AT_EVENT and progress.end_step[j] < 0:     # later steps overwrite the values that its events read
                store_state(states, i, block.simd_width, final, j)
            record_end(progress, j, s, code)
        if code != AT_EVENT:
            park(rest_q, states, i, block.simd_width)


@inline_kernel
def store_final_states(block, states, progress, final):
    """Store the states of all runs, except those at an event, which are stored already."""
    for i in range(block.runs):
        j = block.first + i
        if progress.end_step[j] < 0 or progress.codes[j] != AT_EVENT:
            store_state(states, i, block.simd_width, final, j)


@inline_kernel
def count_ended(progress, first, until):
    """Return the number of runs that failed or have an event."""
    count = 0
    for j in range(first, until):
        count += progress.end_step[j] >= 0
    return count


@inline_kernel
def record_end(progress, j, s, code):
    """Store step and code of run j at its first code other than RUNNING."""
    if code != RUNNING and progress.end_step[j] < 0:
        progress.end_step[j], progress.codes[j] = s, int64(code)


@inline_kernel
def store_state(states, i, simd_width, final, j):
    """Copy the state of run i of a block to row j of `final`."""
    store_run(states.q, i, simd_width, final.q[j])
    store_run(states.v, i, simd_width, final.v[j])
    store_run(states.auxiliary, i, simd_width, final.auxiliary[j])


# Backpropagation --------------------------------------------------------------------------------------------------------

@entry_point("i8(i8, i8, f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], i8[::1], "
             "f8[:,:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8, i8)",
             nogil=True)
def backpropagate_rollouts(step, simd_width, clocks, curves, columns, series, values, q, v, varying, last, d_q, d_v, by_q, by_v,
                           by_series, by_values, by_varying, rest_q, memory, first, until):
    """Propagate derivatives of a cost backwards through the steps of `run_rollouts`.

    step           address, see `codegen.batch_step`
    simd_width     states per SIMD register
    q, v           (N, S + 1, nq), (N, S + 1, nv): states of the runs
    d_q, d_v       derivatives of the cost with respect to each of these states alone
    by_q, by_v     (N, nq), (N, nv): in, derivatives with respect to the final state; out, with respect to the initial state
    by_series      (N, S, m): derivatives with respect to the series
    by_values      (N, k), by_varying (N, l): derivatives are added
    rest_q         (nq,) configuration of runs that have ended before step s
    memory         workspace: RUNS_PER_BLOCK (2 (nq + nv + k + l) + 2) as in `run_rollouts`, then that of generated code
    """
    n, nq, nv, k, l = RUNS_PER_BLOCK, q.shape[2], v.shape[2], values.shape[1], varying.shape[1]
    Q, V, W, X, P, C, remaining = split_workspace(memory, (n * nq, n * nv, n, n * k, n * l, n))
    by_Q, by_V, by_X, by_P, generated_ws = split_workspace(remaining, (n * nq, n * nv, n * k, n * l))
    states, runs = States(Q, V, W), Trajectories(q, v, d_q, d_v, last)
    block_gradients, gradients = Gradients(by_Q, by_V, by_X, by_P), Gradients(by_q, by_v, by_values, by_varying)
    addresses = (array_address(X), array_address(Q), array_address(V), array_address(W), array_address(by_Q), array_address(by_V),
                 array_address(by_X), array_address(by_P), array_address(C), array_address(P), array_address(generated_ws))
    for i in range(RUNS_PER_BLOCK):
        W[i] = 0.0
    for block_first in range(first, until, RUNS_PER_BLOCK):
        block = block_at(block_first, until, simd_width)
        load_runs(values, block, X)
        load_runs(varying, block, P)
        load_runs(by_q, block, by_Q)
        load_runs(by_v, block, by_V)
        for s in range(clocks.shape[0] - 2, -1, -1):
            load_states(runs, s, rest_q, block, states, by_Q, by_V)
            set_step_inputs(columns, series, s, block, X)
            call_with_integers(step, (*step_addresses(clocks, curves, s), *addresses, int64(0), block.size))
            add_gradients(block, block_gradients, columns, last, s, by_series, gradients)
        store_gradients(block, by_Q, by_V, runs, gradients)
    return 0


@inline_kernel
def load_states(runs, s, rest_q, block, states, by_Q, by_V):
    """Load the states before step s, and add the derivatives of the cost with respect to those after it.

    Runs that have ended are set to a fixed state at rest.
    """
    for i in range(block.size):
        j = run_at(block, i)
        if s < runs.last[j]:
            load_run(runs.q[j], s, states.q, i, block.simd_width)
            load_run(runs.v[j], s, states.v, i, block.simd_width)
            add_run(runs.d_q[j], s + 1, by_Q, i, block.simd_width)
            add_run(runs.d_v[j], s + 1, by_V, i, block.simd_width)
        else:
            park(rest_q, states, i, block.simd_width)


@inline_kernel
def add_gradients(block, block_gradients, columns, last, s, by_series, gradients):
    """Add the derivatives with respect to values and constants of step s to those of each run."""
    by_X, by_P, k, l = block_gradients.values, block_gradients.varying, gradients.values.shape[1], gradients.varying.shape[1]
    for i in range(block.runs):
        j, o, p = block.first + i, block_offset(i, block.simd_width, k), block_offset(i, block.simd_width, l)
        if s < last[j]:
            for c in range(columns.size):
                by_series[j, s, c] = by_X[o + block.simd_width * columns[c]]
            for c in range(k):
                gradients.values[j, c] += by_X[o + block.simd_width * c]
            for c in range(l):
                gradients.varying[j, c] += by_P[p + block.simd_width * c]
        else:                                          # rest_q may be singular: discard its derivatives
            load_run(gradients.q, j, block_gradients.q, i, block.simd_width)
            load_run(gradients.v, j, block_gradients.v, i, block.simd_width)


@inline_kernel
def store_gradients(block, by_Q, by_V, runs, gradients):
    """Add the derivatives of the cost with respect to the initial states, and store the sums."""
    for i in range(block.runs):
        j = block.first + i
        add_run(runs.d_q[j], 0, by_Q, i, block.simd_width)
        add_run(runs.d_v[j], 0, by_V, i, block.simd_width)
        store_run(by_Q, i, block.simd_width, gradients.q[j])
        store_run(by_V, i, block.simd_width, gradients.v[j])


# Derivatives of each step alone -----------------------------------------------------------------------------------------

@entry_point("i8(i8, i8, f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], i8[::1], "
             "f8[:,:,:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def differentiate_steps(step, simd_width, clocks, curves, columns, series, values, q, v, varying, last, derivatives, rest_q,
                        memory, first, until):
    """Compute the derivatives of the state after each step with respect to the state before it and to the first of the series.

    Of the N S steps, first … until - 1 are computed. All steps have the times of the first one. Arguments are those of
    `backpropagate_rollouts`, except:

    step          address of the adjoint for all numbers of the state, `codegen.batch_step.trace_step_rows`
    derivatives   (N, S, nq + nv, nq + nv + c): numbers of q, then v, after the step, with respect to these before it and to the
                  first c columns; those of steps after the end of a run have no meaning
    memory        workspace: RUNS_PER_BLOCK (nq + nv + k + l + 2), simd_width (nq + nv) (nq + nv + k + l), and that of the code
    """
    n, nq, nv, k, l = RUNS_PER_BLOCK, q.shape[2], v.shape[2], values.shape[1], varying.shape[1]
    steps, rows = derivatives.shape[1], nq + nv
    m = simd_width * rows
    Q, V, W, X, P, C, remaining = split_workspace(memory, (n * nq, n * nv, n, n * k, n * l, n))
    by_Q, by_V, by_X, by_P, generated_ws = split_workspace(remaining, (m * nq, m * nv, m * k, m * l))
    states = States(Q, V, W)
    addresses = (array_address(X), array_address(Q), array_address(V), array_address(W), array_address(by_Q), array_address(by_V),
                 array_address(by_X), array_address(by_P), array_address(C), array_address(P), array_address(generated_ws))
    for i in range(simd_width):
        W[i] = 0.0
    for block_first in range(first, until, simd_width):
        block = Block(block_first, min(simd_width, until - block_first), simd_width, simd_width)
        for i in range(simd_width):
            at = run_at(block, i)
            j, s = at // steps, at % steps
            load_run(values, j, X, i, simd_width)
            load_run(varying, j, P, i, simd_width)
            set_values(columns, series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1)], X, i, simd_width)
            if s < last[j]:
                load_run(q[j], s, Q, i, simd_width)
                load_run(v[j], s, V, i, simd_width)
            else:
                park(rest_q, states, i, simd_width)
        by_Q[:] = 0.0
        by_V[:] = 0.0
        for row in range(rows):
            unit, o = (by_Q, (row * nq + row) * simd_width) if row < nq else (by_V, (row * nv + row - nq) * simd_width)
            unit[o:o + simd_width] = 1.0
        call_with_integers(step, (*step_addresses(clocks, curves, 0), *addresses, int64(0), simd_width))
        for i in range(block.runs):
            at = block_first + i
            out = derivatives[at // steps, at % steps]
            for row in range(rows):
                for c in range(nq):
                    out[row, c] = by_Q[(row * nq + c) * simd_width + i]
                for c in range(nv):
                    out[row, nq + c] = by_V[(row * nv + c) * simd_width + i]
                for c in range(out.shape[1] - rows):
                    out[row, rows + c] = by_X[(row * k + columns[c]) * simd_width + i]
    return 0


# Blocks of runs ---------------------------------------------------------------------------------------------------------

@inline_kernel
def block_at(first, until, simd_width):
    """Return the block that begins with run `first`."""
    runs = min(RUNS_PER_BLOCK, until - first)
    return Block(first, runs, -(-runs // simd_width) * simd_width, simd_width)


@inline_kernel
def run_at(block, i):
    """Return the number of run i of a block. Copies of its last run follow it."""
    return block.first + min(i, block.runs - 1)


@inline_kernel
def block_offset(i, simd_width, count):
    """Return the index of number 0 of run i in a block; its other numbers follow at distances of `simd_width`.

    A block holds groups of `simd_width` runs: number 0 of all runs of the group, then number 1, …
    """
    return i // simd_width * simd_width * count + i % simd_width


@inline_kernel
def set_step_inputs(columns, series, s, block, X):
    """Set the values that change between steps to those of step s."""
    for i in range(block.size if columns.size else 0):
        set_values(columns, series[min(run_at(block, i), series.shape[0] - 1), min(s, series.shape[1] - 1)], X, i,
                   block.simd_width)


@inline_kernel
def set_values(columns, x, X, i, simd_width):
    """Set the values `columns` of run i of a block to x."""
    o = block_offset(i, simd_width, X.size // RUNS_PER_BLOCK)
    for k in range(columns.size):
        X[o + simd_width * columns[k]] = x[k]


@inline_kernel
def step_addresses(clocks, curves, s):
    """Return the addresses of the times and of the Taylor coefficients of step s."""
    return array_address(clocks) + 8 * s * clocks.shape[1], array_address(curves) + 8 * s * curves.shape[1]


@inline_kernel
def load_runs(x, block, target):
    """Copy the rows of x to the runs of a block."""
    for i in range(block.size):
        load_run(x, run_at(block, i), target, i, block.simd_width)


@inline_kernel
def load_run(x, j, block, i, simd_width):
    """Copy row j of x to run i of the block."""
    o = block_offset(i, simd_width, x.shape[1])
    for k in range(x.shape[1]):
        block[o + simd_width * k] = x[j, k]


@inline_kernel
def add_run(x, j, block, i, simd_width):
    """Add row j of x to run i of the block."""
    o = block_offset(i, simd_width, x.shape[1])
    for k in range(x.shape[1]):
        block[o + simd_width * k] += x[j, k]


@inline_kernel
def store_run(block, i, simd_width, x):
    """Copy run i of the block to x."""
    o = block_offset(i, simd_width, x.size)
    for k in range(x.size):
        x[k] = block[o + simd_width * k]


@inline_kernel
def park(rest_q, states, i, simd_width):
    """Set the state of run i to rest_q at rest."""
    o = block_offset(i, simd_width, rest_q.size)
    for k in range(rest_q.size):
        states.q[o + simd_width * k] = rest_q[k]
    for block in (states.v, states.auxiliary):
        o = block_offset(i, simd_width, block.size // RUNS_PER_BLOCK)
        for k in range(block.size // RUNS_PER_BLOCK):
            block[o + simd_width * k] = 0.0
