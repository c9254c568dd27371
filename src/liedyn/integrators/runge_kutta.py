"""Explicit Runge-Kutta-Munthe-Kaas steps and the loop over a run, compiled: one crossing a chunk of the run.

Each step works in exponential coordinates about the configuration at its beginning (q = q0 (+) x, x(t) = 0), where the
chart's rate is the inverse right Jacobian of exp applied to v; so every Euclidean method keeps its order on the manifold
and quaternions keep their norm. Steps land on the schedule's breaks; stages before a break see the signals before it.

A step of a constrained system ends with the projection of position and velocity onto the constraints, by less than the step's
error, so that the order is kept; the projected state is the origin of the next chart. `ties` is a LoopPlant, or None, for
which Numba prunes all of that at typing.
"""
from typing import NamedTuple

import numpy as np
from numpy import int64  # of a literal: each literal argument would be a compilation of its own

from liedyn.jit import kernel, pasted, primitive
from liedyn.joints.kinds import SCREW
from liedyn.joints.retraction import retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.loops.loop_motion import close_loops, measure, move_drives
from liedyn.kernels.recursions.hybrid import hybrid_work
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    FINISHED,
    PASSED,
    RUNNING,
    STEP_TOO_SMALL,
    WALL,
    evaluate,
    impose,
)
from liedyn.kernels.simulation.signals import BEYOND, LOOSE, READING, SIDE, SWITCH
from liedyn.lie.lanes import sqrt

SAFETY, LEAST_FACTOR, MOST_FACTOR = 0.9, 0.2, 10.0       # step control, SciPy's figures
SMALLEST_STEP = 10.0                                     # spacings of floats at the next wall


class Method(NamedTuple):
    A: np.ndarray          # (s, s)
    b: np.ndarray          # (s,)
    c: np.ndarray          # (s,)
    error: np.ndarray      # (s + 1,) or empty: fixed steps
    dense: np.ndarray      # (s + 1, k) or empty
    control: np.ndarray    # (4,) step or largest step, rtol, atol, 1/(error order + 1)


class State(NamedTuple):
    """Of a run, carried from chunk to chunk."""

    q: np.ndarray          # (nq,)
    y: np.ndarray          # (2 nv + 1,) x = 0, v, work
    clock: np.ndarray      # (6,) t, next step (0: to be chosen); of a step tried: length, end, wall, the last time before that
    count: np.ndarray      # (6,) int64: next output, next break, steps, rejected steps, evaluations, K[0] known


class Stages(NamedTuple):
    K: np.ndarray          # (s + 2, 2 nv + 1) rates of the stages, at the end of the step, and one to spare
    y: np.ndarray          # (2 nv + 1,) of a stage
    end: np.ndarray        # (2 nv + 1,) after the step
    output: np.ndarray     # (2 nv + 1,) between steps
    q: np.ndarray          # (nv,) what errors of x are relative to


class Record(NamedTuple):
    """What is kept at the output times."""

    t: np.ndarray          # (N,)
    q: np.ndarray          # (N, nq)
    v: np.ndarray          # (N, nv)
    a: np.ndarray          # (N, nv)
    tau: np.ndarray        # (N, nv)
    wrench: np.ndarray     # (N, 6 slots)
    work: np.ndarray       # (N,) supplied since the beginning
    multipliers: np.ndarray    # (N, m) of the constraints
    residual: np.ndarray   # (N, 2) the largest of positions and of velocities, or (N, 0)
    drive: np.ndarray      # (N, 24 driven) motions of driven loops


# Two loops, so that a run compiles only the one it needs: the other would cost 15 s of the first run's 50.
@kernel
def run_fixed(index, constants, plant, schedule, signals, ties, method, state, stages, record, work, most_steps):
    """Advance by fixed steps until the last output is kept or `most_steps` are done. Returns a code of `simulation.motion`."""
    tree = tree_of(index, constants)
    for _ in range(most_steps):
        code = keep_what_is_due(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work)
        if code == RUNNING:
            code = fixed_step(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def run_adaptive(index, constants, plant, schedule, signals, ties, method, state, stages, record, work, most_steps):
    """The same with the step chosen by the error."""
    tree = tree_of(index, constants)
    for _ in range(most_steps):
        code = keep_what_is_due(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work)
        if code == RUNNING:
            code = adaptive_step(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work)
        if code != RUNNING:
            return code
    return RUNNING


@pasted
def keep_what_is_due(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work):
    """An output at the present time, once its rates are known. FINISHED after the last."""
    count, now = state.count, state.clock[0]
    if count[0] < record.t.size and now >= record.t[count[0]] and count[5] == 0:
        if now > 0.0 and now == record.t[record.t.size - 1]:
            now = np.nextafter(now, -np.inf)                  # the last instant belongs to what came before it
        code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, now, 0.0, now, state.q, state.y,
                        stages.K, stages.y, int64(0), int64(1), int64(0), work)
        if code != RUNNING:
            return code
        count[4], count[5] = count[4] + 1, 1
        copy_record(index, constants, tree, ties, record, count[0], work, state.y)
        count[0] += 1
    return FINISHED if count[0] == record.t.size else RUNNING


@primitive
def copy_record(index, constants, tree, ties, record, i, work, y):
    """Output i: work and ties hold the evaluation at its time."""
    copy(work.q, record.q[i])
    copy(work.v, record.v[i])
    copy(work.a, record.a[i])
    copy(work.tau, record.tau[i])
    copy(work.wrench, record.wrench[i])
    record.work[i] = y[y.size - 1]
    if ties is not None:
        copy(ties.multipliers, record.multipliers[i])
        copy(ties.drive, record.drive[i])
        V = hybrid_work(work.memory, tree.parent.size, tree.above.size).V
        measure(index, constants, ties, work.q, work.v, V, record.residual[i])


@primitive
def copy(x, to):
    for k in range(x.size):
        to[k] = x[k]


@primitive
def end_of_step(method, state, stages, h):
    """y after the step, from K."""
    copy(state.y, stages.end)
    for s in range(method.b.size):
        w = h * method.b[s]
        if w != 0.0:
            for k in range(stages.end.size):
                stages.end[k] += w * stages.K[s, k]


@pasted
def accept(index, constants, tree, schedule, signals, ties, state, stages, t, work):
    """Move to the end of the step, back onto the constraints, which becomes the origin of the next chart. Returns a code."""
    nv = schedule.level.size
    retract(tree, state.q, stages.end[:nv], state.q)
    copy(stages.end, state.y)
    for k in range(nv):
        state.y[k] = 0.0
    state.clock[0] = t
    state.count[2] += 1
    return settle(index, constants, tree, schedule, signals, ties, t, True, state.q, state.y[nv:2 * nv], work)


@primitive
def settle(index, constants, tree, schedule, signals, ties, t, counted, q, v, work):
    """Against drift: prescribed values, then the constraints. Returns a code."""
    impose(tree, schedule, signals, t, q, v, work)
    if ties is not None:
        if not move_drives(signals, ties, t, work):
            return BAD_SIGNAL
        return close_loops(index, constants, ties, counted, q, v)
    return RUNNING


@primitive
def next_break(schedule, state, last):
    """The time that the step must not pass, the next break or the end, and the last time that counts as before it."""
    while state.count[1] < schedule.breaks.size and schedule.breaks[state.count[1]] <= state.clock[0]:
        state.count[1] += 1
    k = state.count[1]
    if k < schedule.breaks.size and schedule.breaks[k] <= last:
        return schedule.breaks[k], schedule.before[k]
    return last, np.nextafter(last, -np.inf)


@primitive
def next_goal(wall, record, state):
    """The end of the way that fixed steps share: the next output, or the wall where that is no later but for rounding."""
    due = record.t[state.count[0]]
    return wall if due >= wall - SMALLEST_STEP * (np.nextafter(wall, np.inf) - wall) else due


@primitive
def look_at_switches(held):
    """At the end of a step: whether one was seen beyond its side. Loose ones go over to the side where they are."""
    passed = False
    for i in range(0, held.size, SWITCH):
        if held[i + LOOSE] != 0.0:
            held[i + SIDE] = np.floor(held[i + READING]) if held[i + LOOSE] > 1.0 else 1.0 if held[i + READING] >= 0.0 else -1.0
        elif held[i + BEYOND] != 0.0 or (held[i + SIDE] != held[i + SIDE] and held[i + READING] != 0.0):
            passed = True
        held[i + BEYOND] = 0.0
    return passed


@primitive
def copy_trial(state, h, end, wall, before):
    state.clock[2], state.clock[3], state.clock[4], state.clock[5] = h, end, wall, before


@kernel
def end_step_here(index, constants, plant, schedule, signals, ties, method, state, stages, record, h, work):
    """Keep the step of length h in stages, with its outputs. Returns a code."""
    tree, before = tree_of(index, constants), state.clock[5]
    end = min(state.clock[0] + h, state.clock[3]) if h < state.clock[2] else state.clock[3]
    if method.dense.size:
        code = outputs_within(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, h, end,
                              before, work)
        if code != RUNNING:
            return code
    state.count[5] = 0
    return accept(index, constants, tree, schedule, signals, ties, state, stages, end, work)


@pasted
def fixed_step(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work):
    """A step of equal parts of the way to the next output or break, no longer than the one asked for."""
    t = state.clock[0]
    wall, before = next_break(schedule, state, record.t[record.t.size - 1])
    goal = next_goal(wall, record, state)
    parts = max(1.0, np.ceil((goal - t) / method.control[0] * (1.0 - 1e-9)))
    h = (goal - t) / parts
    end = goal if parts == 1.0 else t + h
    ceiling = before if end == wall else wall
    first = state.count[5]                                    # stage 0 may be known
    code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, t, h, ceiling, state.q, state.y,
                    stages.K, stages.y, first, method.b.size, int64(0), work)
    if code != RUNNING:
        return code
    state.count[4] += method.b.size - first
    end_of_step(method, state, stages, h)
    state.count[5] = 0
    if signals.held.size:
        code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, min(end, before), 0.0, before,
                        state.q, stages.end, stages.K, stages.y, int64(0), int64(1), method.b.size, work)
        if code == RUNNING and look_at_switches(signals.held):
            copy_trial(state, h, end, wall, before)
            code = PASSED
        if code != RUNNING:
            return code
    code = accept(index, constants, tree, schedule, signals, ties, state, stages, end, work)
    return WALL if signals.held.size and end == wall and code == RUNNING else code


@pasted
def adaptive_step(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, work):
    """One accepted step (Hairer, Norsett, Wanner, Solving ODEs I, II.4), and the outputs within it."""
    t = state.clock[0]
    wall, before = next_break(schedule, state, record.t[record.t.size - 1])
    chart_origin(tree, state, stages)
    if state.count[5] == 0:
        code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, t, 0.0, t, state.q, state.y,
                        stages.K, stages.y, int64(0), int64(1), int64(0), work)
        if code != RUNNING:
            return code
        state.count[4], state.count[5] = state.count[4] + 1, 1
    if state.clock[1] == 0.0:
        state.clock[1] = first_step(tree, method, state, stages, wall - t)
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
        code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, t, h, before, state.q, state.y,
                        stages.K, stages.y, int64(1), method.b.size, int64(0), work)
        if code == RUNNING:
            end_of_step(method, state, stages, h)
            code = evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, min(end, before), 0.0, before,
                            state.q, stages.end, stages.K, stages.y, int64(0), int64(1), method.b.size, work)
            state.count[4] += method.b.size
        if code != RUNNING:                                   # perhaps a trial too far: try a shorter one
            state.clock[1] = 0.25 * h
            if state.clock[1] < smallest:
                return code
            rejected = True
            state.count[3] += 1
            continue
        error = error_norm(tree, method, state, stages, h)
        if error < 1.0:
            break
        state.clock[1] = h * max(LEAST_FACTOR, SAFETY * error ** -method.control[3])
        rejected = True
        state.count[3] += 1
    factor = MOST_FACTOR if error == 0.0 else min(MOST_FACTOR, SAFETY * error ** -method.control[3])
    if h >= state.clock[1] * 0.99 or factor < 1.0:            # a step cut by a wall says nothing of the next
        state.clock[1] = h * (min(1.0, factor) if rejected else max(LEAST_FACTOR, factor))
    if signals.held.size and look_at_switches(signals.held):
        copy_trial(state, h, end, wall, before)
        return PASSED
    code = outputs_within(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, h, end, before,
                          work)
    if code != RUNNING:
        return code
    code = accept(index, constants, tree, schedule, signals, ties, state, stages, end, work)
    state.count[5] = 0
    if signals.held.size and code == RUNNING:
        return WALL if end == wall else code
    if ties is None and end != wall:                          # first same as last: at the new origin dx/dt is v
        nv = schedule.level.size
        copy(stages.K[method.b.size], stages.K[0])
        copy(state.y[nv:2 * nv], stages.K[0])
        state.count[5] = 1
    return code


@pasted
def outputs_within(index, constants, tree, plant, schedule, signals, ties, method, state, stages, record, h, end, before, work):
    """Outputs in [t, end) by dense output in the chart, each evaluated anew; the last time of the run too."""
    t, count, n = state.clock[0], state.count, state.y.size
    final = end >= record.t[record.t.size - 1]
    while count[0] < record.t.size and (record.t[count[0]] < end or final):
        s = (record.t[count[0]] - t) / h
        copy(state.y, stages.y)
        for r in range(method.dense.shape[0]):
            w = 0.0
            for j in range(method.dense.shape[1] - 1, -1, -1):
                w = (w + method.dense[r, j]) * s
            for k in range(n):
                stages.y[k] += h * w * stages.K[r, k]
        now = min(record.t[count[0]], before)
        copy(stages.y, stages.output)
        code = evaluate_output(index, constants, tree, plant, schedule, signals, ties, method, now, state, stages, work)
        if code != RUNNING:
            return code
        copy_record(index, constants, tree, ties, record, count[0], work, stages.output)
        count[0] += 1
    return RUNNING


@primitive
def evaluate_output(index, constants, tree, plant, schedule, signals, ties, method, now, state, stages, work):
    """Rates at stages.output, which goes back onto the constraints before."""
    row = method.b.size + 1
    if ties is None:
        return evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, now, 0.0, now, state.q,
                        stages.output, stages.K, stages.y, int64(0), int64(1), row, work)
    nv = schedule.level.size
    retract(tree, state.q, stages.output[:nv], ties.q)
    copy(stages.output, ties.y)
    for k in range(nv):
        ties.y[k] = 0.0
    code = settle(index, constants, tree, schedule, signals, ties, now, False, ties.q, ties.y[nv:2 * nv], work)
    if code != RUNNING:
        return code
    return evaluate(index, constants, plant, schedule, signals, ties, method.A, method.c, now, 0.0, now, ties.q, ties.y, stages.K,
                    stages.y, int64(0), int64(1), row, work)


@kernel
def error_norm(tree, method, state, stages, h):
    """Root mean square of the error estimate against atol + rtol size, over x and v; the work is not controlled."""
    nv, total = (state.y.size - 1) // 2, 0.0
    for k in range(2 * nv):
        e = 0.0
        for s in range(method.error.size):
            e += method.error[s] * stages.K[s, k]
        e = h * e / (method.control[2] + method.control[1] * size_of(tree, state, stages, k, nv))
        total += e * e
    return sqrt(total / max(2 * nv, 1))


@primitive
def size_of(tree, state, stages, k, nv):
    """What a coordinate's error is relative to: its value; 1 rad or 1 m for ball and free joints."""
    if k >= nv:
        return max(abs(state.y[k]), abs(stages.end[k]))
    return max(abs(stages.q[k]), abs(stages.q[k] + stages.end[k]))


@kernel
def first_step(tree, method, state, stages, span):
    """A first step from the size of the rates (Hairer, Norsett, Wanner, II.4, without the second evaluation)."""
    nv, d0, d1 = (state.y.size - 1) // 2, 0.0, 0.0
    copy(state.y, stages.end)
    for k in range(2 * nv):
        scale = method.control[2] + method.control[1] * size_of(tree, state, stages, k, nv)
        x = stages.q[k] if k < nv else state.y[k]
        d0 += (x / scale) ** 2
        d1 += (stages.K[0, k] / scale) ** 2
    d0, d1 = sqrt(d0 / max(nv, 1)), sqrt(d1 / max(nv, 1))
    h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    return min(h, span, method.control[0])


@kernel
def chart_origin(tree, state, stages):
    """stages.q: values of 1-DoF coordinates, 1 for the others, by velocity coordinate."""
    for i in range(1, tree.parent.size):
        if tree.kind[i] == SCREW:
            stages.q[tree.iv[i]] = state.q[tree.iq[i]]
        else:
            stop = tree.iv[i + 1] if i + 1 < tree.parent.size else stages.q.size
            for k in range(tree.iv[i], stop):
                stages.q[k] = 1.0

