"""Loops over the steps of many runs in one batch.

One call of generated code (`codegen.batch_step`) advances several runs by one step.
"""
from numpy import int64

from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING
from liedyn.numba_tools.decorators import array_address, call_with_integers, entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace

RUNS_PER_BLOCK = 64        # runs that are advanced together: their states stay in the cache; a multiple of eight


@entry_point("i8(i8, i8, i8, i8, i8[::1], f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], i8[::1], f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], "
       "f8[:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def run_rollouts(step, rows, simd_width, n_extra, row, clocks, curves, step_inputs, series, values, first_step, from_q, from_v,
                 from_auxiliary, q, v, auxiliary, varying, last, end_step, codes, out_q, out_v, out_extra, out_auxiliary, rest_q,
                 memory, first, until):
    """Simulate the runs first … until - 1, each from its step first_step.

    Run j starts at from_q, from_v, from_auxiliary; its final state is written to q, v, auxiliary. These may be the same arrays if
    all runs start at the same step.

    step, rows   addresses of the functions of `BatchStep`; rows 0: accelerations and forces are not written
    simd_width   states per SIMD register
    n_extra      size of a, tau and wrench together; 0 without rows
    row          (S + 1,) output row of the state before step s; -1: none
    clocks       (S + 1, 4), curves (S + 1, 15 c): times of each step, and of the end; Taylor coefficients there
    step_inputs  (m,) columns of `values` (N, k) that are set to `series` (1 or N, 1 or S, m) at each step
    first_step   (N,) first step of each run
    auxiliary    (N, 1 + 4 events): supplied work, then values of events, see `BatchStep`
    varying      (N, l): constants of the model that differ between runs
    last         (N,) step before which the final state of each run is
    end_step     (N,) step at which a run failed, or in which its event happens (code AT_EVENT); else -1
    codes        (N,) code of that end
    out_*        (N, R, nq), (N, R, nv), (N, R, a | tau | wrench), (N, R) work; rows after the end of a run are not written
    rest_q       (nq,) configuration of runs that have ended or not yet started, while others of their block are advanced
    memory       workspace: RUNS_PER_BLOCK (nq + nv + 1 + 4 events + k + l + n_extra + 1) for the runs of a block, then that of
                 generated code
    """
    steps, m, nq, nv, nw = row.size - 1, step_inputs.size, q.shape[1], v.shape[1], auxiliary.shape[1]
    Q, V, W, X, P, A, C, generated_ws = split_workspace(memory, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK * nw,
                                                                 RUNS_PER_BLOCK * values.shape[1],
                                                RUNS_PER_BLOCK * varying.shape[1], RUNS_PER_BLOCK * n_extra, RUNS_PER_BLOCK))
    a, tau, wrench = split_workspace(A, (RUNS_PER_BLOCK * nv * (n_extra > 0), RUNS_PER_BLOCK * nv * (n_extra > 0)))
    states = array_address(X), array_address(Q), array_address(V), array_address(W)
    after = array_address(C), array_address(P), array_address(generated_ws)
    for at in range(first, until, RUNS_PER_BLOCK):
        n = min(RUNS_PER_BLOCK, until - at)
        full = -(-n // simd_width) * simd_width      # copies of the last run fill the last SIMD register
        start, waiting = steps, full
        for i in range(full):
            j = min(at + i, until - 1)
            start = min(start, first_step[j])
            load_run(values, j, X, i, simd_width)
            load_run(varying, j, P, i, simd_width)
            park(rest_q, Q, V, W, i, simd_width)
        for s in range(start, steps + 1):
            for i in range(full if waiting else 0):
                j = min(at + i, until - 1)
                if s == first_step[j]:
                    waiting -= 1
                    load_run(from_q, j, Q, i, simd_width)
                    load_run(from_v, j, V, i, simd_width)
                    load_run(from_auxiliary, j, W, i, simd_width)
            for i in range(full if m else 0):
                o, j = block_offset(i, simd_width, values.shape[1]), min(at + i, until - 1)
                for k in range(m):
                    X[o + simd_width * step_inputs[k]] = series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1), k]
            clock, curve = array_address(clocks) + 8 * s * clocks.shape[1], array_address(curves) + 8 * s * curves.shape[1]
            r = row[s]
            if r >= 0:
                if rows:
                    call_with_integers(rows, (clock, curve, *states, array_address(a), array_address(tau), array_address(wrench),
                                              *after, int64(0), full))
                for i in range(n):
                    j = at + i
                    shown = first_step[j] <= s <= last[j]
                    if rows and shown:
                        record_end(j, s, C[i], end_step, codes)
                    if shown and end_step[j] < 0:
                        store_run(Q, i, simd_width, out_q[j, r])
                        store_run(V, i, simd_width, out_v[j, r])
                        out_auxiliary[j, r] = W[block_offset(i, simd_width, nw)]
                        if out_extra.shape[2]:
                            store_run(a, i, simd_width, out_extra[j, r, :nv])
                            store_run(tau, i, simd_width, out_extra[j, r, nv:2 * nv])
                            store_run(wrench, i, simd_width, out_extra[j, r, 2 * nv:])
            if s == steps:
                break
            well = call_with_integers(step, (clock, curve, *states, *after, int64(0), full)) == OK
            for i in range(0 if well else full):
                code = C[i]
                if code != RUNNING:
                    j = min(at + i, until - 1)
                    if i < n and first_step[j] <= s < last[j]:
                        if code == AT_EVENT and end_step[j] < 0:     # later steps overwrite the values that its events read
                            store_state(Q, V, W, i, simd_width, q, v, auxiliary, j)
                        record_end(j, s, code, end_step, codes)
                    if code != AT_EVENT:
                        park(rest_q, Q, V, W, i, simd_width)
        for i in range(n):
            if end_step[at + i] < 0 or codes[at + i] != AT_EVENT:
                store_state(Q, V, W, i, simd_width, q, v, auxiliary, at + i)
    return 0


@inline_kernel
def block_offset(i, simd_width, count):
    """Return the index of number 0 of run i in a block; its other numbers follow at distances of `simd_width`.

    A block holds groups of `simd_width` runs: number 0 of all runs of the group, then number 1, …
    """
    return i // simd_width * simd_width * count + i % simd_width


@inline_kernel
def load_run(x, j, block, i, simd_width):
    """Copy row j of x to run i of the block."""
    o = block_offset(i, simd_width, x.shape[1])
    for k in range(x.shape[1]):
        block[o + simd_width * k] = x[j, k]


@inline_kernel
def store_run(block, i, simd_width, x):
    """Copy run i of the block to x."""
    o = block_offset(i, simd_width, x.size)
    for k in range(x.size):
        x[k] = block[o + simd_width * k]


@inline_kernel
def store_state(Q, V, W, i, simd_width, q, v, auxiliary, j):
    """Copy the state of run i of the blocks to row j of q, v and auxiliary."""
    store_run(Q, i, simd_width, q[j])
    store_run(V, i, simd_width, v[j])
    store_run(W, i, simd_width, auxiliary[j])


@inline_kernel
def park(rest_q, Q, V, W, i, simd_width):
    """Set the state of run i to rest_q at rest."""
    o = block_offset(i, simd_width, rest_q.size)
    for k in range(rest_q.size):
        Q[o + simd_width * k] = rest_q[k]
    for block in (V, W):
        o = block_offset(i, simd_width, block.size // RUNS_PER_BLOCK)
        for k in range(block.size // RUNS_PER_BLOCK):
            block[o + simd_width * k] = 0.0


@inline_kernel
def record_end(j, s, code, end_step, codes):
    """Store step and code of a run at its first code other than RUNNING."""
    if code != RUNNING and end_step[j] < 0:
        end_step[j], codes[j] = s, int64(code)


@entry_point("i8(i8, i8, f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], i8[::1], "
       "f8[:,:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def backpropagate_rollouts(step, simd_width, clocks, curves, step_inputs, series, values, q, v, varying, last, d_q, d_v, by_q,
                           by_v, by_series, by_values, by_varying, rest_q, memory, first, until):
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
    steps, m, k, l = clocks.shape[0] - 1, step_inputs.size, values.shape[1], varying.shape[1]
    nq, nv = q.shape[2], v.shape[2]
    Q, V, W, X, P, C, rest_of = split_workspace(memory, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK,
                                                         RUNS_PER_BLOCK * k, RUNS_PER_BLOCK * l,
                                                         RUNS_PER_BLOCK))
    by_Q, by_V, by_X, by_P, generated_ws = split_workspace(
        rest_of, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK * k, RUNS_PER_BLOCK * l))
    blocks = (array_address(X), array_address(Q), array_address(V), array_address(W), array_address(by_Q), array_address(by_V),
              array_address(by_X), array_address(by_P),
              array_address(C), array_address(P), array_address(generated_ws))
    for i in range(RUNS_PER_BLOCK):
        W[i] = 0.0
    for at in range(first, until, RUNS_PER_BLOCK):
        n = min(RUNS_PER_BLOCK, until - at)
        full = -(-n // simd_width) * simd_width
        for i in range(full):
            j = min(at + i, until - 1)
            load_run(values, j, X, i, simd_width)
            load_run(varying, j, P, i, simd_width)
            load_run(by_q, j, by_Q, i, simd_width)
            load_run(by_v, j, by_V, i, simd_width)
        for s in range(steps - 1, -1, -1):
            for i in range(full):
                j = min(at + i, until - 1)
                if s < last[j]:
                    load_run(q[j], s, Q, i, simd_width)
                    load_run(v[j], s, V, i, simd_width)
                    add_run(d_q[j], s + 1, by_Q, i, simd_width)
                    add_run(d_v[j], s + 1, by_V, i, simd_width)
                else:
                    park(rest_q, Q, V, W, i, simd_width)
                o = block_offset(i, simd_width, k)
                for c in range(m):
                    X[o + simd_width * step_inputs[c]] = series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1), c]
            clock, curve = array_address(clocks) + 8 * s * clocks.shape[1], array_address(curves) + 8 * s * curves.shape[1]
            call_with_integers(step, (clock, curve, *blocks, int64(0), full))
            for i in range(n):
                j, o, p = at + i, block_offset(i, simd_width, k), block_offset(i, simd_width, l)
                if s < last[j]:
                    for c in range(m):
                        by_series[j, s, c] = by_X[o + simd_width * step_inputs[c]]
                    for c in range(k):
                        by_values[j, c] += by_X[o + simd_width * c]
                    for c in range(l):
                        by_varying[j, c] += by_P[p + simd_width * c]
                else:                                          # rest_q may be singular: discard its derivatives
                    load_run(by_q, j, by_Q, i, simd_width)
                    load_run(by_v, j, by_V, i, simd_width)
        for i in range(n):
            add_run(d_q[at + i], 0, by_Q, i, simd_width)
            add_run(d_v[at + i], 0, by_V, i, simd_width)
            store_run(by_Q, i, simd_width, by_q[at + i])
            store_run(by_V, i, simd_width, by_v[at + i])
    return 0


@inline_kernel
def add_run(x, j, block, i, simd_width):
    """Add row j of x to run i of the block."""
    o = block_offset(i, simd_width, x.shape[1])
    for k in range(x.shape[1]):
        block[o + simd_width * k] += x[j, k]
