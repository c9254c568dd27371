"""Explicit Runge-Kutta-Munthe-Kaas steps and the loop over a run, compiled: one crossing a chunk of the run.

Each step works in exponential coordinates about the configuration at its beginning (q = q0 (+) x, x(t) = 0), where the
chart's rate is the inverse right Jacobian of exp applied to v; so every Euclidean method keeps its order on the manifold
and quaternions keep their norm. Steps land on the schedule's breaks; stages before a break see the signals before it.

A step ends with its state in the chart about its beginning. The rates there, which the next step needs first, come with the
configuration, prescribed values included: it is the origin of the next chart. A step of a constrained system ends with the
projection of position and velocity onto the constraints, by less than the step's error, so that the order is kept.

Of `line` and `loops` one is None: see `rates`.
"""
import numpy as np
from numpy import int64  # of a literal: each literal argument would be a compilation of its own

from liedyn.integrators.passed import none_loose, passed_within
from liedyn.integrators.rates import bring_back, rates_at, rates_inline, rates_of_stages
from liedyn.integrators.run_state import SMALLEST_STEP, keep_constraints, keep_evaluated, next_break, next_part
from liedyn.integrators.step_size import LEAST_FACTOR, MOST_FACTOR, SAFETY, chart_origin, error_norm, first_step
from liedyn.jit import kernel, pasted, primitive
from liedyn.kernels.loops.by_parts import copy
from liedyn.kernels.simulation.by_line import REFUSED
from liedyn.kernels.simulation.right_hand_side import FINISHED, PASSED, RUNNING, STEP_TOO_SMALL, WALL


# Two loops, so that a run compiles only the one it needs.
@kernel
def run_fixed(line, loops, walls, method, state, stages, record, work, most_steps):
    """Advance by fixed steps until the last output is kept or `most_steps` are done. Returns a code of `right_hand_side`."""
    for _ in range(most_steps):
        code = keep_what_is_due(line, loops, walls, state, stages, record, work)
        if code == RUNNING:
            code = fixed_step(line, loops, walls, method, state, stages, record, work)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def run_adaptive(line, loops, walls, method, state, stages, record, work, most_steps):
    """The same with the step chosen by the error."""
    for _ in range(most_steps):
        code = keep_what_is_due(line, loops, walls, state, stages, record, work)
        if code == RUNNING:
            code = adaptive_step(line, loops, walls, method, state, stages, record, work)
        if code != RUNNING:
            return code
    return RUNNING


@primitive
def begin_step(line, loops, now, state, stages, work):
    """The rates at the present state, whose configuration becomes the origin of the chart: there dx/dt is v. Returns a code."""
    code = rates_at(line, loops, now, state.q, state.y, stages.K, int64(0), work)
    if code == RUNNING:
        move_origin(work.q, work.v, state, stages.K[0])
        state.count[4], state.count[5] = state.count[4] + 1, 1
    return code


@primitive
def move_origin(q, v, state, rates):
    nv = v.size
    copy(q, state.q)
    for k in range(nv):
        state.y[k], state.y[nv + k], rates[k] = 0.0, v[k], v[k]


@pasted
def keep_what_is_due(line, loops, walls, state, stages, record, work):
    """An output at the present time, once its rates are known. FINISHED after the last."""
    count, now = state.count, state.clock[0]
    if count[0] < record.t.size and now >= record.t[count[0]] and count[5] == 0:
        if now > 0.0 and now == record.t[record.t.size - 1]:
            now = np.nextafter(now, -np.inf)                  # the last instant belongs to what came before it
        code = begin_step(line, loops, now, state, stages, work)
        if code != RUNNING:
            return code
        copy_record(walls, record, count[0], work, state.y)
        count[0] += 1
    return FINISHED if count[0] == record.t.size else RUNNING


@kernel
def keep_now(line, loops, walls, state, stages, record, work):
    return keep_what_is_due(line, loops, walls, state, stages, record, work)


@primitive
def copy_record(walls, record, i, work, y):
    """Output i: work and the desk hold the evaluation at its time."""
    keep_evaluated(work, y[y.size - 1], record, i)
    if walls.desk.size:
        keep_constraints(walls.desk, record, i, work)


@primitive
def end_of_step(method, state, stages, h):
    """y after the step, from K."""
    copy(state.y, stages.end)
    for s in range(method.b.size):
        w = h * method.b[s]
        if w != 0.0:
            for k in range(stages.end.size):
                stages.end[k] += w * stages.K[s, k]


@primitive
def accept(line, loops, walls, state, stages, t, work):
    """Move to the end of the step, back onto the constraints. Returns a code."""
    copy(stages.end, state.y)
    state.clock[0] = t
    state.count[2], state.count[5] = state.count[2] + 1, 0
    return bring_back(line, loops, t, True, state.q, state.y, state.q, work) if walls.desk.size else RUNNING


@primitive
def copy_trial(state, h, end, wall, before):
    state.clock[2], state.clock[3], state.clock[4], state.clock[5] = h, end, wall, before


@kernel
def end_step_here(line, loops, walls, method, state, stages, record, h, work):
    """Keep the step of length h in stages, with its outputs. Returns a code."""
    before = state.clock[5]
    end = min(state.clock[0] + h, state.clock[3]) if h < state.clock[2] else state.clock[3]
    if method.dense.size:
        code = outputs_within(line, loops, walls, method, state, stages, record, h, end, before, work)
        if code != RUNNING:
            return code
    return accept(line, loops, walls, state, stages, end, work)


@pasted
def fixed_step(line, loops, walls, method, state, stages, record, work):
    """A step of equal parts of the way to the next output or break, no longer than the one asked for."""
    t = state.clock[0]
    h, end, wall, before, goal = next_part(walls, state, record, method.control[0])
    ceiling = before if end == wall else wall
    code = RUNNING
    if state.count[5] == 0:
        code = begin_step(line, loops, t, state, stages, work)
    if code == RUNNING:
        code = rates_of_stages(line, loops, method, t, h, ceiling, state, stages, int64(1), method.b.size, work)
    if code != RUNNING:
        return code
    state.count[4] += method.b.size - 1
    end_of_step(method, state, stages, h)
    if walls.held.size:
        code = rates_at(line, loops, min(end, before), state.q, stages.end, stages.K, method.b.size, work)
        if code == RUNNING and passed_within(walls.held, method, stages):
            copy_trial(state, h, end, wall, before)
            code = PASSED
        if code != RUNNING:
            state.count[5] = 0 if code != PASSED else 1
            return code
    code = accept(line, loops, walls, state, stages, end, work)
    if walls.halts and end == wall and code == RUNNING:
        return WALL
    if walls.held.size and code == RUNNING:
        if end == wall:
            return WALL
        if not walls.desk.size and none_loose(walls.held):      # first same as last
            copy(stages.K[method.b.size], stages.K[0])
            move_origin(work.q, work.v, state, stages.K[0])
            state.count[5] = 1
            if end == goal:
                copy_record(walls, record, state.count[0], work, state.y)
                state.count[0] += 1
    return code


@pasted
def adaptive_step(line, loops, walls, method, state, stages, record, work):
    """One accepted step (Hairer, Norsett, Wanner, Solving ODEs I, II.4), and the outputs within it."""
    t = state.clock[0]
    wall, before = next_break(walls, state, record.t[record.t.size - 1])
    if state.count[5] == 0:
        code = begin_step(line, loops, t, state, stages, work)
        if code != RUNNING:
            return code
    chart_origin(walls.q_of_v, state, stages)
    if state.clock[1] == 0.0:
        state.clock[1] = first_step(method, state, stages, wall - t)
    smallest = SMALLEST_STEP * (np.nextafter(wall, np.inf) - wall)
    rejected = False
    while True:
        h = min(state.clock[1], method.control[0])
        if h < smallest and h < wall - t:
            return STEP_TOO_SMALL
        end = t + h
        if end + 0.01 * h >= wall:                            # rather a slightly longer step than a sliver
            end = wall
            h = wall - t
        code = rates_of_stages(line, loops, method, t, h, before, state, stages, int64(1), method.b.size, work)
        if code == RUNNING:
            end_of_step(method, state, stages, h)
            code = rates_inline(line, loops, min(end, before), state.q, stages.end, stages.K, method.b.size, work)
            state.count[4] += method.b.size
        if code == REFUSED:                                   # finite rates: generic kernels evaluate the same step
            return code
        if code != RUNNING:                                   # perhaps a trial too far: try a shorter one
            state.clock[1] = 0.25 * h
            if state.clock[1] < smallest:
                return code
            rejected = True
            state.count[3] += 1
            continue
        error = error_norm(method, state, stages, h)
        if error < 1.0:
            break
        state.clock[1] = h * max(LEAST_FACTOR, SAFETY * error ** -method.control[3])
        rejected = True
        state.count[3] += 1
    factor = MOST_FACTOR if error == 0.0 else min(MOST_FACTOR, SAFETY * error ** -method.control[3])
    if h >= state.clock[1] * 0.99 or factor < 1.0:            # a step cut by a wall says nothing of the next
        state.clock[1] = h * (min(1.0, factor) if rejected else max(LEAST_FACTOR, factor))
    if walls.held.size and passed_within(walls.held, method, stages):
        copy_trial(state, h, end, wall, before)
        return PASSED
    copy(work.q, stages.next_q)
    copy(work.v, stages.next_v)
    code = outputs_within(line, loops, walls, method, state, stages, record, h, end, before, work)
    if code == RUNNING:
        code = accept(line, loops, walls, state, stages, end, work)
    if (walls.held.size or walls.halts) and code == RUNNING and end == wall:
        return WALL
    if code == RUNNING and end != wall and not walls.desk.size and none_loose(walls.held):     # first same as last
        copy(stages.K[method.b.size], stages.K[0])
        move_origin(stages.next_q, stages.next_v, state, stages.K[0])
        state.count[5] = 1
    return code


@pasted
def outputs_within(line, loops, walls, method, state, stages, record, h, end, before, work):
    """Outputs in [t, end) by dense output in the chart, each evaluated anew; the last time of the run too."""
    t, count, n = state.clock[0], state.count, state.y.size
    final, further = end >= record.t[record.t.size - 1], method.c.size - method.b.size - 1
    if further > 0 and count[0] < record.t.size and (record.t[count[0]] < end or final):
        code = rates_of_stages(line, loops, method, t, h, before, state, stages, method.b.size + 1, method.c.size, work)
        count[4] += further
        if code != RUNNING:
            return code
    while count[0] < record.t.size and (record.t[count[0]] < end or final):
        s = (record.t[count[0]] - t) / h
        copy(state.y, stages.y)
        for r in range(method.dense.shape[0]):
            w = 0.0
            for j in range(method.dense.shape[1] - 1, -1, -1):
                w = (w + method.dense[r, j]) * s
            for k in range(n):
                stages.y[k] += h * w * stages.K[r, k]
        copy(stages.y, stages.output)
        code = evaluate_output(line, loops, walls, min(record.t[count[0]], before), state, stages, work)
        if code != RUNNING:
            return code
        copy_record(walls, record, count[0], work, stages.output)
        count[0] += 1
    return RUNNING


@kernel
def evaluate_output(line, loops, walls, now, state, stages, work):
    """Rates at stages.output, which goes back onto the constraints before. Returns a code."""
    q, code = state.q, RUNNING
    if walls.desk.size:
        q = stages.back
        code = bring_back(line, loops, now, False, state.q, stages.output, q, work)
    if code == RUNNING:
        code = rates_at(line, loops, now, q, stages.output, stages.K, stages.K.shape[0] - 1, work)
    return code
