"""Many runs side by side: the loop over their steps. Each step of a few runs is one call of a line (`codegen.whole_step`)."""
from numpy import int64

from liedyn.jit import entry, primitive
from liedyn.kernels.simulation.right_hand_side import EVENT, RUNNING
from liedyn.pointer_call import call_at, place_of

TOGETHER = 64        # runs whose states stay in the cache beside the processor from step to step; a multiple of eight


@entry("i8(i8, i8, i8[::1], f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], i8[::1], f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], "
       "f8[::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def roll(step, rows, row, clocks, curves, driven, series, values, begins, from_q, from_v, from_work, q, v, work, varying, last,
         ended, codes, out_q, out_v, out_more, out_work, chunk, rest_q, scratch, first, until):
    """Runs first … until - 1, each from its state in from_q, from_v, from_work at its step `begins`, to that in q, v, work; these
    may be the same arrays where all begin at one step.

    step, rows   addresses, see `WholeStep`; rows 0: accelerations and forces are not kept
    row          (S + 1,) which output stands before step s; -1: none
    clocks       (S + 1, 4), curves (S + 1, 15 c): the times of each step, and of the end
    driven       places in `values` (N, k) that take `series` (1 or N, 1 or S, m), step after step
    last         (N,) steps of each run; ended (N,) where one went wrong, or stays since an event happens in the next step (code
                 EVENT), else -1; codes (N,) why
    work         (N, 1 + events): supplied, then sides of events, see `WholeStep`
    out_*        (N, R, nq), (N, R, nv), (N, R, a | tau | wrench), (N, R); those after the end of a run are left as they are
    chunk        (TOGETHER (2 nv + slots + 1),) a, tau, wrench, code of each run of a chunk
    rest_q       (nq,) where a run that has ended, or not yet begun, waits for the others
    """
    steps, m = row.size - 1, driven.size
    nq, nv, more = q.shape[1], v.shape[1], chunk.size // TOGETHER - 1
    wide, code_at = 8 * TOGETHER, place_of(chunk) + 8 * TOGETHER * more
    for at in range(first, until, TOGETHER):
        n = min(TOGETHER, until - at)
        states = (place_of(values) + 8 * at * values.shape[1], place_of(q) + 8 * at * nq, place_of(v) + 8 * at * nv,
                  place_of(work) + 8 * at * work.shape[1])
        more_at = (place_of(chunk), place_of(chunk) + wide * nv, place_of(chunk) + wide * 2 * nv)
        parameters, room = place_of(varying) + 8 * at * varying.shape[1], place_of(scratch)
        start, waiting = steps, n
        for j in range(at, at + n):
            start = min(start, begins[j])
        for j in range(at, at + n):
            if begins[j] > start:
                rest(q, v, work, j, rest_q)
        for s in range(start, steps + 1):
            for j in range(at, at + n if waiting else at):
                if s == begins[j]:
                    waiting -= 1
                    for x, y in ((q, from_q), (v, from_v), (work, from_work)):
                        for k in range(x.shape[1]):
                            x[j, k] = y[j, k]
            clock, curve = place_of(clocks) + 8 * s * clocks.shape[1], place_of(curves) + 8 * s * curves.shape[1]
            for i in range(n if m else 0):
                for k in range(m):
                    values[at + i, driven[k]] = series[min(at + i, series.shape[0] - 1), min(s, series.shape[1] - 1), k]
            r = row[s]
            if r >= 0:
                if rows:
                    call_at(rows, (clock, curve, *states, *more_at, code_at, parameters, room, int64(0), n))
                for i in range(n):
                    j = at + i
                    shown = begins[j] <= s <= last[j]
                    if rows and shown:
                        end(j, s, chunk[TOGETHER * more + i], ended, codes)
                    if shown and ended[j] < 0:
                        keep(q, v, work, chunk, j, i, r, nv, out_q, out_v, out_more, out_work)
            if s == steps:
                break
            call_at(step, (clock, curve, *states, code_at, parameters, room, int64(0), n))
            for i in range(n):
                j, code = at + i, chunk[TOGETHER * more + i]
                if code != RUNNING:
                    if begins[j] <= s < last[j]:
                        end(j, s, code, ended, codes)
                    if code != EVENT:
                        rest(q, v, work, j, rest_q)
    return 0


@primitive
def rest(q, v, work, j, rest_q):
    """Run j waits there."""
    for k in range(q.shape[1]):
        q[j, k] = rest_q[k]
    for k in range(v.shape[1]):
        v[j, k] = 0.0
    for k in range(work.shape[1]):
        work[j, k] = 0.0


@primitive
def end(j, s, code, ended, codes):
    """Note where a run goes wrong for the first time."""
    if code != RUNNING and ended[j] < 0:
        ended[j], codes[j] = s, int64(code)


@primitive
def keep(q, v, work, chunk, j, i, r, nv, out_q, out_v, out_more, out_work):
    """Output r of run j, which is number i of its chunk."""
    for k in range(q.shape[1]):
        out_q[j, r, k] = q[j, k]
    for k in range(nv):
        out_v[j, r, k] = v[j, k]
    at = 0
    for size in (nv, nv, out_more.shape[2] - 2 * nv):
        for k in range(size if out_more.shape[2] else 0):
            out_more[j, r, at + k] = chunk[TOGETHER * at + size * i + k]
        at += size
    out_work[j, r] = work[j, 0]


@entry("i8(i8, f8[:,::1], f8[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[:,:,::1], "
       "f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], i8, i8)", nogil=True)
def roll_back(step, clocks, curves, driven, series, values, q, v, varying, last, d_q, d_v, by_q, by_v, by_series, by_values,
              by_varying, chunk, rest_q, scratch, first, until):
    """The way back of `roll`: from derivatives of a cost by the states of each step to those by what the runs began with.

    step         address, see `codegen.whole_step.record_adjoint`
    q, v         (N, S + 1, nq), (N, S + 1, nv): the states of the runs; d_q, d_v: derivatives of the cost by these alone
    by_q, by_v   (N, nq), (N, nv): by the first states, zero before; by_series (N, S, m), by_values (N, k), by_varying (N, l)
    chunk        (TOGETHER (nq + nv + 1 + k + l + 1),) room
    """
    steps, m, k, l = clocks.shape[0] - 1, driven.size, values.shape[1], varying.shape[1]
    nq, nv, start = q.shape[2], v.shape[2], place_of(chunk)
    v_at, values_at = TOGETHER * nq, TOGETHER * (nq + nv + 1)
    varying_at = values_at + TOGETHER * k
    for at in range(first, until, TOGETHER):
        n = min(TOGETHER, until - at)
        room, numbers, parameters = place_of(scratch), place_of(values) + 8 * at * k, place_of(varying) + 8 * at * l
        back = (place_of(by_q) + 8 * at * nq, place_of(by_v) + 8 * at * nv, start + 8 * values_at, start + 8 * varying_at,
                start + 8 * (varying_at + TOGETHER * l))
        for s in range(steps - 1, -1, -1):
            for i in range(n):
                j = at + i
                alive = s < last[j]
                for c in range(nq):
                    chunk[nq * i + c] = q[j, s, c] if alive else rest_q[c]
                    by_q[j, c] += d_q[j, s + 1, c] if alive else 0.0
                for c in range(nv):
                    chunk[v_at + nv * i + c] = v[j, s, c] if alive else 0.0
                    by_v[j, c] += d_v[j, s + 1, c] if alive else 0.0
                for c in range(m):
                    values[j, driven[c]] = series[min(j, series.shape[0] - 1), min(s, series.shape[1] - 1), c]
            call_at(step, (place_of(clocks) + 8 * s * clocks.shape[1], place_of(curves) + 8 * s * curves.shape[1], numbers, start,
                           start + 8 * v_at, start + 8 * (v_at + TOGETHER * nv), *back, parameters, room, int64(0), n))
            for i in range(n):
                j = at + i
                if s < last[j]:
                    for c in range(m):
                        by_series[j, s, c] = chunk[values_at + k * i + driven[c]]
                    for c in range(k):
                        by_values[j, c] += chunk[values_at + k * i + c]
                    for c in range(l):
                        by_varying[j, c] += chunk[varying_at + l * i + c]
        for i in range(n):
            for c in range(nq):
                by_q[at + i, c] += d_q[at + i, 0, c]
            for c in range(nv):
                by_v[at + i, c] += d_v[at + i, 0, c]
    return 0
