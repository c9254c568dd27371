"""Explicit Runge-Kutta-Munthe-Kaas steps and the compiled loop over a run, called once per chunk of the run.

Each step works in exponential coordinates about the configuration at its beginning (q = q0 (+) x, x(t) = 0), where the
chart's rate is the inverse right Jacobian of exp applied to v. So every Euclidean method keeps its order on the manifold
and quaternions keep their norm. Steps end at the breaks of the schedule; stages before a break evaluate the signals before it.

A step ends with its state in the chart about its beginning. The next step starts with the rates there. Their evaluation also
returns the configuration, including prescribed values: it is the origin of the next chart. A step of a constrained system ends
with the projection of position and velocity onto the constraints. It changes less than the error of the step, so the order is
kept.

One of `generated` and `generic` is None: see `rates`.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy import int64  # of a literal: each literal argument would be compiled separately

from liedyn.arrays import Array
from liedyn.integrators.problem import Options
from liedyn.integrators.run_state import (
    ATOL,
    ERROR_EXPONENT,
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    H_MAX,
    H_NEXT,
    H_TRIED,
    MIN_STEP_SPACINGS,
    NEXT_OUTPUT,
    REJECTED,
    RTOL,
    STEPS,
    T_BEFORE,
    T_NOW,
    T_STOP,
    T_TRIED,
    WORK_RTOL,
    Method,
    next_break,
    next_fixed_step,
    store_constraints,
    store_evaluation,
)
from liedyn.kernels.constraints.driver import copy_array
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS, project_state, rates_compiled, rates_inline, stage_rates
from liedyn.kernels.simulation.right_hand_side import AT_BREAK_POINT, FINISHED, RUNNING, STEP_TOO_SMALL, SWITCH_CROSSED
from liedyn.kernels.simulation.signals import CHATTERING, EVENT, FLOOR, KIND, SWITCH_SIGN, SWITCH_SIZE
from liedyn.lie.simd import sqrt
from liedyn.numba_tools.decorators import inline_kernel, ir_inline_kernel, kernel

# Step size control: error norm and first step ---------------------------------------------------------------------------

# As in SciPy, except the first: with 0.9, 20 % of dop853's steps are rejected for a tumbling humanoid. At the same error this
# needs 12 % fewer evaluations of dop853 and 2 % fewer of dopri5.
SAFETY, MIN_FACTOR, MAX_FACTOR = 0.75, 0.2, 10.0
MIN_FIRST_STEP = 1e-9         # of the time until the next break: states that are zero within rounding lead to much smaller steps


@inline_kernel
def error_norm(method, state, stages, h):
    """Return the root mean square of the error estimate relative to atol + rtol size, over x, v and z.

    Two estimates E5, E3, as of dop853, are combined to E5^2 / sqrt(E5^2 + 0.01 E3^2) (Hairer, Norsett, Wanner, II.10). The
    supplied energy does not control the step of free motion. Prescribed motion can be integrated without error by steps of any
    length; there the error of the energy is included. Overwrites stages.y and stages.output.
    """
    n, nv, total, other = state.y.size - 1, stages.q.size, 0.0, 0.0
    error_estimates(method, stages)
    for k in range(n):
        scale = h / (method.control[ATOL] + method.control[RTOL] * error_scale(state, stages, k, nv))
        total += (scale * stages.y[k])**2
        other += (scale * stages.output[k])**2
    error = combine_estimates(total, other) / sqrt(max(1.0 * n, 1.0))
    if method.control[WORK_RTOL] > 0.0:
        error = max(error, supplied_energy_error(method, stages, n, h))
    return error


@inline_kernel
def supplied_energy_error(method, stages, k, h):
    """Return the error of the supplied energy relative to the energy exchanged in the step."""
    exchanged = 0.0
    for s in range(method.b.size):
        exchanged += abs(h * method.b[s] * stages.K[s, k])
    scale = h / (method.control[ATOL] + method.control[WORK_RTOL] * exchanged)
    return combine_estimates((scale * stages.y[k])**2, (scale * stages.output[k])**2)


@inline_kernel
def error_estimates(method, stages):
    """Write the first estimate to stages.y, and a second one, or zero, to stages.output.

    The sums run over stages in the outer loop: summing coordinate by coordinate takes 4 % of a step of dop853.
    """
    count = method.b.size + 1
    for k in range(stages.y.size):
        stages.y[k] = stages.output[k] = 0.0
    for s in range(count):
        for k in range(stages.y.size):
            stages.y[k] += method.error[s] * stages.K[s, k]
    for s in range(count, method.error.size):
        for k in range(stages.y.size):
            stages.output[k] += method.error[s] * stages.K[s - count, k]


@inline_kernel
def combine_estimates(e, e3):
    """Return the combination of squared estimates, see `error_norm`."""
    return sqrt(e) if e3 == 0.0 else e / sqrt(e + 0.01 * e3)


@inline_kernel
def error_scale(state, stages, k, nv):
    """Return the scale of a coordinate's error: its value, or 1 rad or 1 m for ball and free joints."""
    if k >= nv:
        return max(abs(state.y[k]), abs(stages.end[k]))
    return max(abs(stages.q[k]), abs(stages.q[k] + stages.end[k]))


@inline_kernel
def first_step(method, state, stages, span):
    """Return a first step from the magnitude of the rates (Hairer, Norsett, Wanner, II.4, without the second evaluation)."""
    n, nv, d0, d1 = state.y.size - 1, stages.q.size, 0.0, 0.0
    copy_array(state.y, stages.end)
    for k in range(n):
        scale = method.control[ATOL] + method.control[RTOL] * error_scale(state, stages, k, nv)
        x = stages.q[k] if k < nv else state.y[k]
        d0 += (x / scale) ** 2
        d1 += (stages.K[0, k] / scale) ** 2
    d0, d1 = sqrt(d0 / max(nv, 1)), sqrt(d1 / max(nv, 1))
    h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    return min(max(h, MIN_FIRST_STEP * span), span, method.control[H_MAX])


@inline_kernel
def set_error_scales(q_of_v, state, stages):
    """Write stages.q: values of 1-DoF coordinates, 1 for others, for each velocity coordinate."""
    for k in range(q_of_v.size):
        stages.q[k] = state.q[q_of_v[k]] if q_of_v[k] >= 0 else 1.0


# Runge-Kutta methods as checked data ------------------------------------------------------------------------------------

#     c | A
#     --+---
#       | b        weights of the step
#       | error    weights of the error estimate (b less those of the embedded method), over stages + 1; or of two estimates
#       | dense    (rows, k): y(t + s h) = y + h sum_i K_i sum_j dense[i, j] s^(j+1)
#
# The rates at the end of the step are K_i of the row after those of b. Further rows of A are stages for dense output only.
# States at the stages `interior_stages`, or their means, approximate the motion up to terms of third order of the step: values
# evaluated there lie on a polynomial in time.

N_INTERPOLATION_TIMES = 7


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of a Runge-Kutta method. `error` and `dense` are empty if the method has none.

    order: of the step; error_order: of the error estimate.
    """

    name: str
    order: int
    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    error_order: int = 0
    interior_stages: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self):
        stages = len(self.b)
        if self.A.shape != (len(self.c),) * 2 or len(self.c) < stages or np.triu(self.A).any():
            raise ValueError(f"{self.name}: A is not strictly lower triangular")
        for coefficients, total, expected in (("rows of A", self.A.sum(axis=1), self.c), ("b", self.b.sum(), 1.0),
                                              ("error weights", self.error.reshape(-1, stages + 1).sum(axis=1), 0.0)):
            if not np.allclose(total, expected, rtol=0, atol=1e-14):
                raise ValueError(f"{self.name}: {coefficients} do not sum as they must")
        rounding = 1e-14 * max(1.0, np.abs(self.dense).max(initial=0.0))
        if self.dense.size and not np.allclose(self.dense.sum(axis=1)[:stages], self.b, rtol=0, atol=rounding):
            raise ValueError(f"{self.name}: dense output does not end at the step")

    @property
    def adaptive(self) -> bool:
        """Whether the method estimates its error."""
        return self.error.size > 0

    @cached_property
    def interpolation_weights(self) -> np.ndarray:
        """(k, stages + 1) weights that interpolate values evaluated at the stages and at the end of a step.

        The results are values at k evenly spaced times within the step of the polynomial through the values at the beginning, at
        `interior_stages` and at the end.
        """
        stages = len(self.b)
        nodes = np.array([0.0, *(self.c[rows[0]] for rows in self.interior_stages), 1.0])
        means = np.array([np.isin(np.arange(stages + 1), rows) / len(rows) for rows in ((0,), *self.interior_stages, (stages,))])
        times = np.arange(1, N_INTERPOLATION_TIMES + 1) / (N_INTERPOLATION_TIMES + 1)
        weights: Array = np.vander(times, len(nodes)) @ np.linalg.inv(np.vander(nodes)) @ means
        return weights


@cache
def midpoint() -> Tableau:
    """Return the explicit midpoint method of order 2. Its stages are at the beginning and in the middle of a step."""
    A = np.array([[0.0, 0.0], [0.5, 0.0]])
    return Tableau("midpoint", 2, A, np.array([0.0, 1.0]), np.array([0.0, 0.5]), np.empty(0), np.empty((0, 0)),
                   interior_stages=((1,),))


@cache
def rk4() -> Tableau:
    """Return the classical method of order 4 (Kutta 1901)."""
    A = np.zeros((4, 4))
    A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
    return Tableau("rk4", 4, A, np.array([1.0, 2.0, 2.0, 1.0]) / 6, np.array([0.0, 0.5, 0.5, 1.0]), np.empty(0),
                   np.empty((0, 0)), interior_stages=((1, 2),))


@cache
def dopri5() -> Tableau:
    """Return the method of Dormand and Prince 5(4) with Shampine's dense output, as in SciPy."""
    from scipy.integrate import RK45
    A = np.zeros((6, 6))
    A[:, :5] = RK45.A
    return Tableau("dopri5", 5, A, RK45.B.copy(), RK45.C.copy(), RK45.E.copy(), RK45.P.copy(), error_order=4,
                   interior_stages=((2,), (3,)))


@cache
def dop853() -> Tableau:
    """Return the method of Dormand and Prince 8(5,3) with dense output of order 7, as in SciPy.

    Hairer, Norsett, Wanner, Solving ODEs I, II.5, II.6. Their dense output y0 + s (F0 + (1 - s) (F1 + s (F2 + ...))) is expanded.
    """
    from scipy.integrate import DOP853
    stages, rows = len(DOP853.B), len(DOP853.B) + 1 + len(DOP853.C_EXTRA)
    A = np.zeros((rows, rows))
    A[:stages, :stages], A[stages, :stages], A[stages + 1:] = DOP853.A, DOP853.B, DOP853.A_EXTRA
    F = np.zeros((7, rows))
    F[0, :stages], F[3:] = DOP853.B, DOP853.D
    F[1] = np.eye(rows)[0] - F[0]
    F[2] = F[0] - F[1] - np.eye(rows)[stages]
    dense = np.zeros((rows, 7))
    for k in range(7):
        power = np.poly1d([1.0, 0.0])**(k // 2 + 1) * np.poly1d([-1.0, 1.0])**((k + 1) // 2)
        dense[:, :k + 1] += np.outer(F[k], power.coeffs[-2::-1])
    return Tableau("dop853", 8, A, DOP853.B.copy(), np.concatenate([DOP853.C, [1.0], DOP853.C_EXTRA]),
                   np.concatenate([DOP853.E5, DOP853.E3]), dense, error_order=7, interior_stages=((5,), (9,), (10,)))


METHODS = {"rk4": rk4, "dopri5": dopri5, "dop853": dop853}

_WORK_RTOL_FACTOR = 100.0  # factor of rtol for the energy exchanged in a step, if coordinates are prescribed


def method_arrays(tableau: Tableau, options: Options, prescribed: bool) -> Method:
    """Return the arrays that compiled steps read. prescribed: whether coordinates are prescribed."""
    step = options.max_step if tableau.adaptive else options.step
    control = np.array([step, options.rtol, options.atol, 1.0 / (tableau.error_order + 1), _WORK_RTOL_FACTOR * options.rtol *
                        prescribed])
    return Method(tableau.A, tableau.b, tableau.c, tableau.error, tableau.dense, control, tableau.interpolation_weights)


# crossings of switches --------------------------------------------------------------------------------------------------

# Detect switches of the state that cross in a step, from their values at the stages, which follow the rates in K.

_FAR_FACTOR = 8.0               # times the change of the value


@inline_kernel
def crosses_within(switch_states, method, stages):
    """Return whether a switch was beyond its side in the step, or may have been between stages.

    Chattering switches change sides.
    """
    n, last, passed = stages.end.size, method.b.size, False
    for k in range(switch_states.size // SWITCH_SIZE):
        read = stages.K[:, n + k]
        i, sign, end = SWITCH_SIZE * k, switch_states[SWITCH_SIZE * k + SWITCH_SIGN], read[last]
        if switch_states[i + CHATTERING] != 0.0:
            switch_states[i + SWITCH_SIGN] = np.floor(end) if switch_states[i + CHATTERING] > 1.0 else 1.0 if end >= 0.0 else -1.0
        elif sign != sign:
            passed = passed or end != 0.0
        elif switch_states[i + KIND] != EVENT or not is_far(sign, read[0], read[1], read[last // 2], end):
            low, high = end, end
            for r in range(last):
                x = read[r]
                low, high = x if x < low else low, x if x > high else high
            if switch_states[i + KIND] == FLOOR:
                passed = passed or low < sign or high >= sign + 1.0
            else:
                low, high = (low, high) if sign > 0.0 else (-high, -low)
                if switch_states[i + KIND] == EVENT and low == high:           # an event at rest does not cross
                    continue
                passed = passed or -np.inf < low < 0.0 or (low == 0.0 and switch_states[i + KIND] == EVENT)      # zero is reached
                if switch_states[i + KIND] == EVENT and low <= 2.0 * (high - low):       # near zero, which is rare
                    passed = passed or may_cross_twice(sign, n + k, method, stages)
    return passed


@kernel
def switch_crosses_within(switch_states, method, stages):
    """Do the same as `crosses_within`, for calls from Python."""
    return crosses_within(switch_states, method, stages)


@inline_kernel
def is_far(sign, w, x, y, z):
    """Return whether an event with values w, x, y, z at four stages is so far from zero that the other stages need no check.

    Three stages are not enough: those of rk4 at the beginning, in the middle and at the end are equal where a path turns back in
    the middle.
    """
    low, high = x if x < w else w, w if x < w else x
    low, high = y if y < low else low, y if y > high else high
    low, high = z if z < low else low, z if z > high else high
    return (low if sign > 0.0 else -high) > _FAR_FACTOR * (high - low)


@kernel
def may_cross_twice(sign, column, method, stages):
    """Return whether an event may cross and cross back within a step.

    It may where the interpolating polynomial of its values falls below half of its deviation from a straight line, which is a
    measure of the accuracy of the polynomial.
    """
    last, times = method.b.size, method.interpolation_weights.shape[0]
    begin, slope = sign * stages.K[0, column], sign * (stages.K[last, column] - stages.K[0, column])
    minimum, bent = np.inf, 0.0
    for j in range(times):
        x = 0.0
        for r in range(last + 1):
            x += method.interpolation_weights[j, r] * stages.K[r, column]
        minimum, bent = min(minimum, sign * x), max(bent, abs(sign * x - begin - slope * (j + 1) / (times + 1)))
    return minimum < 0.5 * bent


@inline_kernel
def none_chattering(switch_states):
    """Return whether no switch chatters: chattering switches may have changed sides between the steps."""
    chattering = 0.0
    for i in range(CHATTERING, switch_states.size, SWITCH_SIZE):
        chattering += switch_states[i]
    return chattering == 0.0


# runge kutta ------------------------------------------------------------------------------------------------------------

# Two functions, so that a run compiles only the loop that it needs.
@kernel
def run_fixed(generated, generic, break_points, method, state, stages, record, ws, max_steps):
    """Advance by fixed steps until the last output is stored or `max_steps` are done. Return a code of `right_hand_side`."""
    for _ in range(max_steps):
        code = store_due_outputs(generated, generic, break_points, state, stages, record, ws)
        if code == RUNNING:
            code = fixed_step(generated, generic, break_points, method, state, stages, record, ws)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def run_adaptive(generated, generic, break_points, method, state, stages, record, ws, max_steps):
    """Advance by steps with error control until the last output is stored or `max_steps` are done. Return a code."""
    for _ in range(max_steps):
        code = store_due_outputs(generated, generic, break_points, state, stages, record, ws)
        if code == RUNNING:
            code = adaptive_step(generated, generic, break_points, method, state, stages, record, ws)
        if code != RUNNING:
            return code
    return RUNNING


@inline_kernel
def begin_step(generated, generic, t, state, stages, ws):
    """Evaluate the rates at the present state and make its configuration the origin of the chart, where dx/dt is v.

    Return a code.
    """
    code = rates_compiled(generated, generic, t, state.q, state.y, stages.K, int64(0), ws)
    if code == RUNNING:
        move_chart_origin(ws.q, ws.v, state, stages.K[0])
        state.count[EVALUATIONS], state.count[FIRST_RATE_KNOWN] = state.count[EVALUATIONS] + 1, 1
    return code


@inline_kernel
def move_chart_origin(q, v, state, rates):
    """Make q the origin of the chart, where x is 0 and its rates are v."""
    nv = v.size
    copy_array(q, state.q)
    for k in range(nv):
        state.y[k], state.y[nv + k], rates[k] = 0.0, v[k], v[k]


@ir_inline_kernel
def store_due_outputs(generated, generic, break_points, state, stages, record, ws):
    """Evaluate the rates at the present time and store an output that is due there, unless the rates are known.

    Returns a code, FINISHED after the last output.
    """
    count, t = state.count, state.clock[T_NOW]
    if count[NEXT_OUTPUT] < record.t.size and t >= record.t[count[NEXT_OUTPUT]] and count[FIRST_RATE_KNOWN] == 0:
        if t > 0.0 and t == record.t[record.t.size - 1]:
            t = np.nextafter(t, -np.inf)                  # the last output uses the signals before it
        code = begin_step(generated, generic, t, state, stages, ws)
        if code != RUNNING:
            return code
        record_output(break_points, record, count[NEXT_OUTPUT], ws, state.y)
        count[NEXT_OUTPUT] += 1
    return FINISHED if count[NEXT_OUTPUT] == record.t.size else RUNNING


@kernel
def store_output(generated, generic, break_points, state, stages, record, ws):
    """Do the same as `store_due_outputs`, for calls from Python."""
    return store_due_outputs(generated, generic, break_points, state, stages, record, ws)


@inline_kernel
def record_output(break_points, record, i, ws, y):
    """Write output i; ws and the workspace of the constraints hold the evaluation at its time."""
    store_evaluation(ws, y[y.size - 1], record, i)
    end = y.size - 1 - record.estimate.shape[1]
    copy_array(y[end:y.size - 1], record.estimate[i])
    copy_array(y[end - record.stretch.shape[1]:end], record.stretch[i])
    if break_points.constraint_ws.size:
        store_constraints(break_points.constraint_ws, record, i, ws)


@inline_kernel
def set_step_end(method, state, stages, h):
    """Write y at the end of the step, from the rates K."""
    copy_array(state.y, stages.end)
    for s in range(method.b.size):
        w = h * method.b[s]
        if w != 0.0:
            for k in range(stages.end.size):
                stages.end[k] += w * stages.K[s, k]


@inline_kernel
def accept(generated, generic, break_points, state, stages, t, ws):
    """Move the state to the end of the step, and project it onto the constraints. Return a code."""
    copy_array(stages.end, state.y)
    state.clock[T_NOW] = t
    state.count[STEPS], state.count[FIRST_RATE_KNOWN] = state.count[STEPS] + 1, 0
    return project_state(generated, generic, t, True, state.q, state.y, state.q,
                         ws) if break_points.constraint_ws.size else RUNNING


@inline_kernel
def store_tried_step(state, h, end, stop_time, before):
    """Write the length, the end, the stop time and the last time before it of a step to the clock."""
    state.clock[H_TRIED], state.clock[T_TRIED], state.clock[T_STOP], state.clock[T_BEFORE] = h, end, stop_time, before


@kernel
def accept_shortened_step(generated, generic, break_points, method, state, stages, record, h, ws):
    """Accept the step of length h in `stages`, with its outputs. Return a code."""
    before = state.clock[T_BEFORE]
    end = min(state.clock[T_NOW] + h, state.clock[T_TRIED]) if h < state.clock[H_TRIED] else state.clock[T_TRIED]
    if method.dense.size:
        code = record_dense_outputs(generated, generic, break_points, method, state, stages, record, h, end, before, ws)
        if code != RUNNING:
            return code
    return accept(generated, generic, break_points, state, stages, end, ws)


@ir_inline_kernel
def fixed_step(generated, generic, break_points, method, state, stages, record, ws):
    """Take one of equal steps to the next output or break, not longer than the given step."""
    t = state.clock[T_NOW]
    h, end, stop_time, before, goal = next_fixed_step(break_points, state, record, method.control[H_MAX])
    ceiling = before if end == stop_time else stop_time
    code = RUNNING
    if state.count[FIRST_RATE_KNOWN] == 0:
        code = begin_step(generated, generic, t, state, stages, ws)
    if code == RUNNING:
        code = stage_rates(generated, generic, method, t, h, ceiling, state, stages, int64(1), method.b.size, ws)
    if code != RUNNING:
        return code
    state.count[EVALUATIONS] += method.b.size - 1
    set_step_end(method, state, stages, h)
    if break_points.switch_states.size:
        code = rates_compiled(generated, generic, min(end, before), state.q, stages.end, stages.K, method.b.size, ws)
        if code == RUNNING and crosses_within(break_points.switch_states, method, stages):
            store_tried_step(state, h, end, stop_time, before)
            code = SWITCH_CROSSED
        if code != RUNNING:
            state.count[FIRST_RATE_KNOWN] = 0 if code != SWITCH_CROSSED else 1
            return code
    code = accept(generated, generic, break_points, state, stages, end, ws)
    if break_points.stops_at_breaks and end == stop_time and code == RUNNING:
        return AT_BREAK_POINT
    if break_points.switch_states.size and code == RUNNING:
        if end == stop_time:
            return AT_BREAK_POINT
        if not break_points.constraint_ws.size and none_chattering(break_points.switch_states):      # first same as last
            copy_array(stages.K[method.b.size], stages.K[0])
            move_chart_origin(ws.q, ws.v, state, stages.K[0])
            state.count[FIRST_RATE_KNOWN] = 1
            if end == goal:
                record_output(break_points, record, state.count[NEXT_OUTPUT], ws, state.y)
                state.count[NEXT_OUTPUT] += 1
    return code


@ir_inline_kernel
def adaptive_step(generated, generic, break_points, method, state, stages, record, ws):
    """Take one accepted step (Hairer, Norsett, Wanner, Solving ODEs I, II.4), and store the outputs within it."""
    t = state.clock[T_NOW]
    stop_time, before = next_break(break_points, state, record.t[record.t.size - 1])
    if state.count[FIRST_RATE_KNOWN] == 0:
        code = begin_step(generated, generic, t, state, stages, ws)
        if code != RUNNING:
            return code
    set_error_scales(break_points.q_of_v, state, stages)
    if state.clock[H_NEXT] == 0.0:
        state.clock[H_NEXT] = first_step(method, state, stages, stop_time - t)
    code, h, end = controlled_step(generated, generic, method, stop_time, before, state, stages, ws)
    if code != RUNNING:
        return code
    if break_points.switch_states.size and crosses_within(break_points.switch_states, method, stages):
        store_tried_step(state, h, end, stop_time, before)
        return SWITCH_CROSSED
    copy_array(ws.q, stages.next_q)
    copy_array(ws.v, stages.next_v)
    code = record_dense_outputs(generated, generic, break_points, method, state, stages, record, h, end, before, ws)
    if code == RUNNING:
        code = accept(generated, generic, break_points, state, stages, end, ws)
    if (break_points.switch_states.size or break_points.stops_at_breaks) and code == RUNNING and end == stop_time:
        return AT_BREAK_POINT
    # first same as last
    if code == RUNNING and end != stop_time and not break_points.constraint_ws.size and none_chattering(
        break_points.switch_states):
        copy_array(stages.K[method.b.size], stages.K[0])
        move_chart_origin(stages.next_q, stages.next_v, state, stages.K[0])
        state.count[FIRST_RATE_KNOWN] = 1
    return code


@ir_inline_kernel
def controlled_step(generated, generic, method, stop_time, before, state, stages, ws):
    """Try steps until the error is below the tolerances. Return a code, the length and the end of the step in `stages`."""
    t, rejected, end = state.clock[T_NOW], False, stop_time
    smallest = MIN_STEP_SPACINGS * (np.nextafter(stop_time, np.inf) - stop_time)
    while True:
        h = min(state.clock[H_NEXT], method.control[H_MAX])
        if h < smallest and h < stop_time - t:
            return STEP_TOO_SMALL, h, end
        h, end = reach_stop_time(t, h, stop_time)
        code, error = try_step(generated, generic, method, t, h, min(end, before), before, state, stages, ws)
        if code == RUNNING and error < 1.0:
            break
        if code == INVALID_ARGUMENTS:                         # finite rates: generic kernels evaluate the same step
            return code, h, end
        state.clock[H_NEXT] = 0.25 * h if code != RUNNING else h * max(MIN_FACTOR, step_factor(method, error))
        if code != RUNNING and state.clock[H_NEXT] < smallest:
            return code, h, end
        rejected = True
        state.count[REJECTED] += 1
    set_next_step(method, state, h, error, rejected)
    return code, h, end


@inline_kernel
def reach_stop_time(t, h, stop_time):
    """Return the length and the end of a step: a slightly longer step is taken instead of a very short one before `stop_time`."""
    end = t + h
    if end + 0.01 * h >= stop_time:
        return stop_time - t, stop_time
    return h, end


@ir_inline_kernel
def try_step(generated, generic, method, t, h, end, before, state, stages, ws):
    """Compute the step of length h in `stages`, with the rates at its end at time `end`. Return a code and the norm of the error.

    The code can be that of a trial state that is too far.
    """
    error = np.inf
    code = stage_rates(generated, generic, method, t, h, before, state, stages, int64(1), method.b.size, ws)
    if code == RUNNING:
        set_step_end(method, state, stages, h)
        code = rates_inline(generated, generic, end, state.q, stages.end, stages.K, method.b.size, ws)
        state.count[EVALUATIONS] += method.b.size
    if code == RUNNING:
        error = error_norm(method, state, stages, h)
    return code, error


@inline_kernel
def step_factor(method, error):
    """Return the length of the next step relative to that of the step with this nonzero error."""
    return SAFETY * error ** -method.control[ERROR_EXPONENT]


@inline_kernel
def set_next_step(method, state, h, error, rejected):
    """Choose the next step after an accepted step of length h. A step shortened by a break never increases it."""
    factor = MAX_FACTOR if error == 0.0 else min(MAX_FACTOR, step_factor(method, error))
    if h >= state.clock[H_NEXT] * 0.99 or factor < 1.0:
        state.clock[H_NEXT] = h * (min(1.0, factor) if rejected else max(MIN_FACTOR, factor))


@ir_inline_kernel
def record_dense_outputs(generated, generic, break_points, method, state, stages, record, h, end, before, ws):
    """Store the outputs in [t, end), and the last output of the run, by dense output in the chart; each is evaluated again."""
    t, count, n = state.clock[T_NOW], state.count, state.y.size
    final, further = end >= record.t[record.t.size - 1], method.c.size - method.b.size - 1
    if further > 0 and count[NEXT_OUTPUT] < record.t.size and (record.t[count[NEXT_OUTPUT]] < end or final):
        code = stage_rates(generated, generic, method, t, h, before, state, stages, method.b.size + 1, method.c.size, ws)
        count[EVALUATIONS] += further
        if code != RUNNING:
            return code
    while count[NEXT_OUTPUT] < record.t.size and (record.t[count[NEXT_OUTPUT]] < end or final):
        s = (record.t[count[NEXT_OUTPUT]] - t) / h
        copy_array(state.y, stages.y)
        for r in range(method.dense.shape[0]):
            w = 0.0
            for j in range(method.dense.shape[1] - 1, -1, -1):
                w = (w + method.dense[r, j]) * s
            for k in range(n):
                stages.y[k] += h * w * stages.K[r, k]
        copy_array(stages.y, stages.output)
        code = evaluate_output(generated, generic, break_points, min(record.t[count[NEXT_OUTPUT]], before), state, stages, ws)
        if code != RUNNING:
            return code
        record_output(break_points, record, count[NEXT_OUTPUT], ws, stages.output)
        count[NEXT_OUTPUT] += 1
    return RUNNING


@kernel
def evaluate_output(generated, generic, break_points, t, state, stages, ws):
    """Project the state stages.output onto the constraints and evaluate its rates. Return a code."""
    q, code = state.q, RUNNING
    if break_points.constraint_ws.size:
        q = stages.projected_q
        code = project_state(generated, generic, t, False, state.q, stages.output, q, ws)
    if code == RUNNING:
        code = rates_compiled(generated, generic, t, q, stages.output, stages.K, stages.K.shape[0] - 1, ws)
    return code
