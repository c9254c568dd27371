"""Rates of the state, by generated code of one scenario or by generic kernels, and projections onto the constraints."""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.joints.joint_model import tree_views
from liedyn.kernels.constraints.driver import (
    CHECK_STATE,
    OUT_OF_RANGE,
    PROJECT,
    PROJECT_UNCOUNTED,
    SOLVE_MULTIPLIERS,
    call_operation,
    copy_array,
)
from liedyn.kernels.constraints.stages import TIME, constraint_workspace_of
from liedyn.kernels.manifold import retract
from liedyn.kernels.simulation.joint_laws import measure_stop_forces
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    RUNNING,
    ConstrainedSystem,
    SystemModel,
    check_accepted_state,
    constrained_hybrid,
    constraint_power,
    evaluate_events,
    evaluate_inputs,
    finite_rates,
    hybrid_deficit,
    prescribe_loop_motion,
    project_constraints,
    right_hand_side,
    set_prescribed_state,
    store_rates,
)
from liedyn.kernels.simulation.signal_series import polynomial_series
from liedyn.kernels.simulation.signals import SWITCH_SIZE, SWITCH_VALUE, InputSchedule, Signals, store_switch_values
from liedyn.numba_tools.decorators import array_address, call_with_arrays, call_with_values, inline_kernel, kernel, value_at

# A code in addition to those of `right_hand_side`: generated code is not valid at this state, generic kernels must continue
INVALID_ARGUMENTS = OUT_OF_RANGE
CURVE_COEFFICIENTS = 5             # Taylor coefficients of a curve: a motor law reads four derivatives


class GeneratedCall(NamedTuple):
    """Addresses of generated functions and their arguments other than `MotionWorkspace`: see `codegen.rhs.GeneratedRhs`."""

    address: int
    second_address: int                # rates from the multipliers; 0 without constraints
    projection_address: int            # inputs of a projection; 0 without constraints
    constraint_ws: np.ndarray           # see `kernels.constraints.stages`; empty without constraints
    t: np.ndarray              # (1,)
    curves: np.ndarray         # (5 c,) Taylor coefficients at t of the signals that are curves, from the next four
    first: np.ndarray          # (c,) int64
    count: np.ndarray          # type: ignore[assignment]  # (c,) int64; hides tuple.count, which nothing calls
    breaks: np.ndarray
    coefficients: np.ndarray
    switches: np.ndarray       # (4 s,) see `signals.Signals`
    scenario_values: np.ndarray
    status: np.ndarray         # (2,) return code, and the signal that is not finite or -1
    readings: np.ndarray       # (s,) arguments of the switches, if the rows of rates have no columns for them
    buffer: np.ndarray           # (6,) of a curve


@inline_kernel
def rates_generated(generated, t, q0, y, K, row, ws):
    """Do the same as `rate_evaluation.rates_generic`; return INVALID_ARGUMENTS if generated code is not valid at this state."""
    dy = K[row]
    readings = dy[y.size:] if K.shape[1] > y.size else generated.readings
    set_inputs(generated, t)
    out_of_range = call_with_arrays(generated.address, call_arguments(generated, q0, y, dy, readings, ws))
    if generated.constraint_ws.size:
        call_operation(generated.constraint_ws, SOLVE_MULTIPLIERS)
        call_with_arrays(generated.second_address, call_arguments(generated, q0, y, dy, readings, ws))
    code = return_code(generated, out_of_range, int64(generated.status[0]), y, ws)
    if generated.constraint_ws.size and (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
        constraint_workspace_of(generated.constraint_ws).statistics[TIME] = t
        code = call_operation(generated.constraint_ws, CHECK_STATE)
    if code == RUNNING:
        for k in range(generated.readings.size):
            generated.switches[SWITCH_SIZE * k + SWITCH_VALUE] = readings[k]
    return code


@inline_kernel
def projection_generated(generated, t, count_drift, q0, y, q, ws):
    """Do the same as `rate_evaluation.projection_generic`, by generated code."""
    set_inputs(generated, t)
    out_of_range = call_with_arrays(generated.projection_address, call_arguments(generated, q0, y, y, generated.readings, ws))
    code = return_code(generated, out_of_range, RUNNING if generated.status[1] < 0.0 else BAD_SIGNAL, y, ws)
    if code != RUNNING:
        return code
    code, d, nv = call_operation(generated.constraint_ws, PROJECT
                                 if count_drift
                                 else PROJECT_UNCOUNTED), constraint_workspace_of(generated.constraint_ws), ws.v.size
    copy_array(d.q, q)
    for k in range(nv):
        y[k], y[nv + k] = 0.0, d.v[k]
    return code


@inline_kernel
def return_code(generated, out_of_range, code, y, ws):
    """Return BAD_SIGNAL and store the signal, INVALID_ARGUMENTS if generated code is not valid at a finite state, else `code`."""
    if code == BAD_SIGNAL:
        ws.flag[0] = generated.status[1]
        return BAD_SIGNAL
    return INVALID_ARGUMENTS if out_of_range and finite_rates(y) == RUNNING else code


@inline_kernel
def call_arguments(generated, q0, y, dy, readings, ws):
    """Return the arguments of generated functions."""
    return (generated.t, q0, y, generated.curves, generated.switches, generated.scenario_values,
            ws.q, ws.v, ws.a, ws.tau, ws.wrench, dy, generated.status, readings, generated.constraint_ws)


@inline_kernel
def set_inputs(generated, t):
    """Write t and the Taylor coefficients of curves at t."""
    generated.t[0] = t
    for k in range(generated.first.size):
        polynomial_series(generated.breaks, generated.coefficients, generated.first[k], generated.count[k], t, generated.buffer,
                          generated.curves[CURVE_COEFFICIENTS * k:CURVE_COEFFICIENTS * k + CURVE_COEFFICIENTS])


# Rates and projections by generic kernels -------------------------------------------------------------------------------

class GenericCall(NamedTuple):
    """Addresses of `rates_generic` and `projection_generic`, and their `GenericArguments`."""

    rates_address: int
    projection_address: int            # 0 without constraints
    arguments: np.ndarray              # packed, see `decorators.packed_values`


class GenericArguments(NamedTuple):
    """Arguments of the generic kernels that do not change in a run."""

    index: np.ndarray      # type: ignore[assignment]  # a field, not the method of tuples
    constants: np.ndarray
    system: SystemModel
    schedule: InputSchedule
    signals: Signals
    constraints: ConstrainedSystem | None     # None without constraints: then nothing for constraints is compiled


@kernel
def rates_generic(arguments, t, q0, y, K, row, ws):
    """Write the rates of y at t into K[row] and the arguments of switches into the columns behind; return a code.

    Row 0 is for an accepted state, the last one for an output: there the constraints are checked.

    arguments    pointer to `GenericArguments`
    y            (nv + nv + m + 1,) state about q0, see `right_hand_side`
    K            rows of y.size rates, then one column for each switch, or none
    ws           MotionWorkspace: gets the state
    """
    index, constants, system, schedule, signals, constraints = value_at(arguments)
    return checked_rates(index, constants, system, schedule, signals, constraints, t, q0, y, K, row, ws)


@inline_kernel
def checked_rates(index, constants, system, schedule, signals, constraints, t, q0, y, K, row, ws):
    """Do the same as `rates_generic`."""
    tree = tree_views(index, constants)
    code = int64(open_or_constrained(tree, system, schedule, signals, constraints, t, q0, y, K[row][:y.size], ws))
    store_switch_values(signals.switches, K, row, y.size)
    if constraints is not None:                                      # noqa: SIM102 - Numba prunes only tests for None alone
        if (row == 0 or row == K.shape[0] - 1) and code == RUNNING:
            code = check_accepted_state(constraints, t)
    return code


@inline_kernel
def open_or_constrained(tree, system, schedule, signals, constraints, t, q0, y, dy, ws):
    """Return the code of `right_hand_side`, or of `constrained_right_hand_side` if there are constraints."""
    if constraints is None:
        return right_hand_side(tree, system, schedule, signals, t, q0, y, dy, ws)
    return constrained_right_hand_side(tree, system, schedule, signals, constraints, t, q0, y, dy, ws)


@inline_kernel
def constrained_right_hand_side(tree, system, schedule, signals, constraints, t, q0, y, dy, ws):
    """Do the same as `right_hand_side` under constraints."""
    evaluate_inputs(tree, system, schedule, signals, t, q0, y, ws)
    prescribe_loop_motion(signals, constraints, t, ws)
    if constrained_hybrid(constraints, ws) == OUT_OF_RANGE:
        return OUT_OF_RANGE
    measure_stop_forces(system.stops, signals, ws)
    evaluate_events(schedule, signals, t, ws)
    return store_rates(tree, system, signals, y, hybrid_deficit(constraints), constraint_power(constraints), dy, ws)


@kernel
def projection_generic(arguments, t, count_drift, q0, y, q, ws):
    """Project the state q0 (+) x, v of y onto the constraints, after setting prescribed values; return a code.

    The result is written to q, which may be q0, and to y with x = 0.
    """
    index, constants, _, schedule, signals, constraints = value_at(arguments)
    tree, nv = tree_views(index, constants), schedule.level.size
    v = y[nv:2 * nv]
    retract(tree, q0, y[:nv], q)
    for k in range(nv):
        y[k] = 0.0
    set_prescribed_state(schedule, signals, t, q, v, ws)
    ws.flag[0] = -1.0
    prescribe_loop_motion(signals, constraints, t, ws)
    return int64(BAD_SIGNAL if ws.flag[0] >= 0.0 else project_constraints(constraints, count_drift, q, v))


# rates ------------------------------------------------------------------------------------------------------------------

# Compiled code evaluates the right-hand side of a run by `generated` (machine code of one scenario) or by `generic`. Both are
# called by address: one compilation of a method serves all scenarios. The other is None, and Numba prunes its branch at typing.

@inline_kernel
def rates_inline(generated, generic, t, q0, y, K, row, ws):
    """Write the rates of y at t into K[row] and return a code: see `rate_evaluation.rates_generic`."""
    code = RUNNING
    if generated is not None:                                      # Numba prunes a branch if it types the argument as None
        code = rates_generated(generated, t, q0, y, K, row, ws)
    if generic is not None:
        code = call_with_values(generic.rates_address, (array_address(generic.arguments), t, q0, y, K, row, ws))
    return code


@kernel
def rates_compiled(generated, generic, t, q0, y, K, row, ws):
    """Do the same as `rates_inline`, compiled once as a function."""
    return rates_inline(generated, generic, t, q0, y, K, row, ws)


@inline_kernel
def stage_rates(generated, generic, method, t, h, ceiling, state, stages, first, last, ws):
    """Write the rates at the stages first … last - 1 of a Runge-Kutta step of length h from state.y into these rows of stages.K.

    Signals are evaluated at `ceiling` at the latest. Returns a code.
    """
    for s in range(first, last):
        copy_array(state.y, stages.y)
        for r in range(s):
            w = h * method.A[s, r]
            if w != 0.0:
                for k in range(stages.y.size):
                    stages.y[k] += w * stages.K[r, k]
        code = rates_inline(generated, generic, min(t + method.c[s] * h, ceiling), state.q, stages.y, stages.K, s, ws)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def stage_rates_compiled(generated, generic, method, t, h, ceiling, state, stages, first, last, ws):
    """Do the same as `stage_rates`, for calls from Python."""
    return stage_rates(generated, generic, method, t, h, ceiling, state, stages, first, last, ws)


@kernel
def project_state(generated, generic, t, count_drift, q0, y, q, ws):
    """Project the state q0 (+) x, v of y onto the constraints and return a code: see `rate_evaluation.projection_generic`."""
    code = RUNNING
    if generated is not None:
        code = projection_generated(generated, t, count_drift, q0, y, q, ws)
    if generic is not None:
        code = call_with_values(generic.projection_address, (array_address(generic.arguments), t, count_drift, q0, y, q, ws))
    return code
