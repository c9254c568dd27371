"""Many runs in one batch: the loop over their steps. A step of a few runs is one call of a line (`codegen.batch_step`)."""
from numpy import int64

from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING
from liedyn.numba_tools.decorators import array_address, call_with_integers, entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace

RUNS_PER_BLOCK = 64        # runs whose states stay in the processor's cache from step to step; a multiple of eight


@entry_point("i8(i8, i8, i8, i8, i8[::1], f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], i8[::1], f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], "
       "f8[:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def roll(step, rows, wide, more, row, clocks, curves, driven, series, values, begins, from_q, from_v, from_work, q, v, work,
         varying, last, ended, codes, out_q, out_v, out_more, out_work, rest_q, scratch, first, until):
    """Runs first … until - 1, each from its state in from_q, from_v, from_work at its step `begins`, to that in q, v, work; these
    may be the same arrays where all begin at one step.

    step, rows   addresses, see `WholeStep`; rows 0: accelerations and forces are not kept
    wide         states to a register
    more         numbers of a, tau and wrench together; 0 without rows
    row          (S + 1,) which output stands before step s; -1: none
    clocks       (S + 1, 4), curves (S + 1, 15 c): the times of each step, and of the end
    driven       places in `values` (N, k) that take `series` (1 or N, 1 or S, m), step after step
    last         (N,) steps of each run; ended (N,) where one went wrong, or stays since an event happens in the next step (code
                 EVENT), else -1; codes (N,) why
    work         (N, 1 + events): supplied, then sides of events, see `WholeStep`
    out_*        (N, R, nq), (N, R, nv), (N, R, a | tau | wrench), (N, R); those after the end of a run are left as they are
    rest_q       (nq,) where a run that has ended, or not yet begun, waits for the others
    scratch      (RUNS_PER_BLOCK (nq + nv + 1 + events + k + l + more + 1),) the runs that go together, in blocks of `wide`, and
                 codes; then that of the lines
    """
    steps, m, nq, nv, nw = row.size - 1, driven.size, q.shape[1], v.shape[1], work.shape[1]
    Q, V, W, X, P, A, C, room = split_workspace(scratch, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK * nw,
                                                          RUNS_PER_BLOCK * values.shape[1],
                                                RUNS_PER_BLOCK * varying.shape[1], RUNS_PER_BLOCK * more, RUNS_PER_BLOCK))
    a, tau, wrench = split_workspace(A, (RUNS_PER_BLOCK * nv * (more > 0), RUNS_PER_BLOCK * nv * (more > 0)))
    states = array_address(X), array_address(Q), array_address(V), array_address(W)
    after = array_address(C), array_address(P), array_address(room)
    for at in range(first, until, RUNS_PER_BLOCK):
        n = min(RUNS_PER_BLOCK, until - at)
        full = -(-n // wide) * wide                            # what is left of the last block does as the last run does
        start, waiting = steps, full
        for i in range(full):
            j = min(at + i, until - 1)
            start = min(start, begins[j])
            take(values, j, X, i, wide)
            take(varying, j, P, i, wide)
            rest(rest_q, Q, V, W, i, wide)
        for s in range(start, steps + 1):
            for i in range(full if waiting else 0):
                j = min(at + i, until - 1)
                if s == begins[j]:
                    waiting -= 1
                    take(from_q, j, Q, i, wide)
                    take(from_v, j, V, i, wide)
                    take(from_work, j, W, i, wide)
            for i in range(full if m else 0):
                o, j = lane(i, wide, values.shape[1]), min(at + i, until - 1)
                for k in range(m):
                    X[o + wide * driven[k]] = series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1), k]
            clock, curve = array_address(clocks) + 8 * s * clocks.shape[1], array_address(curves) + 8 * s * curves.shape[1]
            r = row[s]
            if r >= 0:
                if rows:
                    call_with_integers(rows, (clock, curve, *states, array_address(a), array_address(tau), array_address(wrench),
                                              *after, int64(0), full))
                for i in range(n):
                    j = at + i
                    shown = begins[j] <= s <= last[j]
                    if rows and shown:
                        end(j, s, C[i], ended, codes)
                    if shown and ended[j] < 0:
                        give(Q, i, wide, out_q[j, r])
                        give(V, i, wide, out_v[j, r])
                        out_work[j, r] = W[lane(i, wide, nw)]
                        if out_more.shape[2]:
                            give(a, i, wide, out_more[j, r, :nv])
                            give(tau, i, wide, out_more[j, r, nv:2 * nv])
                            give(wrench, i, wide, out_more[j, r, 2 * nv:])
            if s == steps:
                break
            well = call_with_integers(step, (clock, curve, *states, *after, int64(0), full)) == OK
            for i in range(0 if well else full):
                code = C[i]
                if code != RUNNING:
                    j = min(at + i, until - 1)
                    if i < n and begins[j] <= s < last[j]:
                        if code == AT_EVENT and ended[j] < 0:     # from now on its readings are those of another time
                            hand(Q, V, W, i, wide, q, v, work, j)
                        end(j, s, code, ended, codes)
                    if code != AT_EVENT:
                        rest(rest_q, Q, V, W, i, wide)
        for i in range(n):
            if ended[at + i] < 0 or codes[at + i] != AT_EVENT:
                hand(Q, V, W, i, wide, q, v, work, at + i)
    return 0


@inline_kernel
def lane(i, wide, count):
    """Where number 0 of run i stands in blocks of `wide` runs, each of them number 0 of all runs, then number 1, …: the others
    follow at distances of `wide`."""
    return i // wide * wide * count + i % wide


@inline_kernel
def take(x, j, block, i, wide):
    """Row j of x becomes run i."""
    o = lane(i, wide, x.shape[1])
    for k in range(x.shape[1]):
        block[o + wide * k] = x[j, k]


@inline_kernel
def give(block, i, wide, x):
    """Run i becomes a row x."""
    o = lane(i, wide, x.size)
    for k in range(x.size):
        x[k] = block[o + wide * k]


@inline_kernel
def hand(Q, V, W, i, wide, q, v, work, j):
    """The state of run i becomes that of run j."""
    give(Q, i, wide, q[j])
    give(V, i, wide, v[j])
    give(W, i, wide, work[j])


@inline_kernel
def rest(rest_q, Q, V, W, i, wide):
    """Run i waits there."""
    o = lane(i, wide, rest_q.size)
    for k in range(rest_q.size):
        Q[o + wide * k] = rest_q[k]
    for block in (V, W):
        o = lane(i, wide, block.size // RUNS_PER_BLOCK)
        for k in range(block.size // RUNS_PER_BLOCK):
            block[o + wide * k] = 0.0


@inline_kernel
def end(j, s, code, ended, codes):
    """Note where a run goes wrong for the first time."""
    if code != RUNNING and ended[j] < 0:
        ended[j], codes[j] = s, int64(code)


@entry_point("i8(i8, i8, f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], i8[::1], "
       "f8[:,:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def backpropagate_rollouts(step, wide, clocks, curves, driven, series, values, q, v, varying, last, d_q, d_v, by_q, by_v,
                           by_series, by_values,
              by_varying, rest_q, scratch, first, until):
    """The way back of `roll`: from derivatives of a cost by the states of each step to those by what the runs began with.

    step         address, see `codegen.batch_step`; wide: states to a register
    q, v         (N, S + 1, nq), (N, S + 1, nv): the states of the runs; d_q, d_v: derivatives of the cost by these alone
    by_q, by_v   (N, nq), (N, nv): by the states at the end, then by the first; by_series (N, S, m), by_values (N, k), by_varying
                 (N, l): added to
    scratch      (RUNS_PER_BLOCK (2 (nq + nv + k + l) + 2),) as of `roll`, then that of the line
    """
    steps, m, k, l = clocks.shape[0] - 1, driven.size, values.shape[1], varying.shape[1]
    nq, nv = q.shape[2], v.shape[2]
    Q, V, W, X, P, C, rest_of = split_workspace(scratch, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK,
                                                          RUNS_PER_BLOCK * k, RUNS_PER_BLOCK * l,
                                                          RUNS_PER_BLOCK))
    by_Q, by_V, by_X, by_P, room = split_workspace(
        rest_of, (RUNS_PER_BLOCK * nq, RUNS_PER_BLOCK * nv, RUNS_PER_BLOCK * k, RUNS_PER_BLOCK * l))
    blocks = (array_address(X), array_address(Q), array_address(V), array_address(W), array_address(by_Q), array_address(by_V),
              array_address(by_X), array_address(by_P),
              array_address(C), array_address(P), array_address(room))
    for i in range(RUNS_PER_BLOCK):
        W[i] = 0.0
    for at in range(first, until, RUNS_PER_BLOCK):
        n = min(RUNS_PER_BLOCK, until - at)
        full = -(-n // wide) * wide
        for i in range(full):
            j = min(at + i, until - 1)
            take(values, j, X, i, wide)
            take(varying, j, P, i, wide)
            take(by_q, j, by_Q, i, wide)
            take(by_v, j, by_V, i, wide)
        for s in range(steps - 1, -1, -1):
            for i in range(full):
                j = min(at + i, until - 1)
                if s < last[j]:
                    take(q[j], s, Q, i, wide)
                    take(v[j], s, V, i, wide)
                    add(d_q[j], s + 1, by_Q, i, wide)
                    add(d_v[j], s + 1, by_V, i, wide)
                else:
                    rest(rest_q, Q, V, W, i, wide)
                o = lane(i, wide, k)
                for c in range(m):
                    X[o + wide * driven[c]] = series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1), c]
            clock, curve = array_address(clocks) + 8 * s * clocks.shape[1], array_address(curves) + 8 * s * curves.shape[1]
            call_with_integers(step, (clock, curve, *blocks, int64(0), full))
            for i in range(n):
                j, o, p = at + i, lane(i, wide, k), lane(i, wide, l)
                if s < last[j]:
                    for c in range(m):
                        by_series[j, s, c] = by_X[o + wide * driven[c]]
                    for c in range(k):
                        by_values[j, c] += by_X[o + wide * c]
                    for c in range(l):
                        by_varying[j, c] += by_P[p + wide * c]
                else:                                          # a mechanism may be singular where it waits
                    take(by_q, j, by_Q, i, wide)
                    take(by_v, j, by_V, i, wide)
        for i in range(n):
            add(d_q[at + i], 0, by_Q, i, wide)
            add(d_v[at + i], 0, by_V, i, wide)
            give(by_Q, i, wide, by_q[at + i])
            give(by_V, i, wide, by_v[at + i])
    return 0


@inline_kernel
def add(x, j, block, i, wide):
    """Row j of x is added to run i."""
    o = lane(i, wide, x.shape[1])
    for k in range(x.shape[1]):
        block[o + wide * k] += x[j, k]
