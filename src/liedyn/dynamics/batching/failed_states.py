"""Batches in which some states fail: results of the others, and the errors by state."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np

from liedyn.arrays import Array, OnError
from liedyn.dynamics.batching.arrays import Result, copy_to_out, motion_tuple, with_arrays
from liedyn.dynamics.batching.calls import Shape, states_of_batch
from liedyn.errors import ComputationError, ConfigurationError, ShapeError
from liedyn.model.model import Model

# number of axes of an argument that belong to one state; the others are axes of the batch
_STATE_AXES = {"q": 1, "v": 1, "a": 1, "v_r": 1, "a_r": 1, "tau": 1, "q0": 1, "q1": 1, "dv": 1, "tau_passive": 1,
               "weights": 1, "multipliers": 1, "x": 1, "dq": 1, "da": 1, "dtau": 1, "parameters": 1, "f_ext": 2, "df_ext": 2,
               "v_derivatives": 2, "a_derivatives": 2, "tau_derivatives": 2, "f_ext_derivatives": 3}
_CONSTRAINT_MOTION_AXES = 2, 1, 1        # of a driven loop: pose, twist, its rate
STATE_ERRORS = ConfigurationError, ComputationError
_Inputs: TypeAlias = dict[str, Any]
_ErrorCallback: TypeAlias = Callable[[Any, Exception], object]


def handle_failed_states(function: Callable[..., Result], inputs: _Inputs) -> Result:
    """Return the results of all states that can be computed, for an `on_error` other than "raise".

    Results of the other states are NaN, False or 0; on_error(state, error) is called for them if it is a function. inputs: all
    arguments of `function` by name, that is its locals() at its first line. A batch that fails is bisected down to the states
    that fail. If few fail, this computes about as many states again, and entry points need no support for it.
    """
    model, on_error, out = inputs["model"], inputs["on_error"], inputs.get("out")
    inputs = {x: inputs[x] for x in inputs if x not in ("model", "on_error", "out")}
    result = _evaluate_valid_states(function, model, _error_callback(on_error), inputs)
    return result if out is None else copy_to_out(result, out)


def _evaluate_valid_states(function: Callable[..., Result], model: Model, report: _ErrorCallback, inputs: _Inputs) -> Result:
    try:
        return function(model, **inputs)
    except STATE_ERRORS as problem:
        error: Exception = problem.with_traceback(None)           # the traceback would keep the arrays of the call alive
    lead = leading_axes(inputs)
    flat = map_state_arrays(inputs, lambda x, state_axes: np.broadcast_to(
        x, (*lead, *trailing_shape(x, state_axes))).reshape((prod(lead), *trailing_shape(x, state_axes))))

    def call(first: int, last: int) -> Result:
        """Compute states first … last - 1 with a second batch axis, which distinguishes arrays of states from others."""
        with states_of_batch(slice(first, last)):
            return function(model, **map_state_arrays(flat, lambda x, _: x[first:last, None]))

    parts, errors = _bisect_failures(call, 0, prod(lead), error)
    result = _join_results(parts, call, lead)
    for k, error in errors:
        report(k if len(lead) == 1 else tuple(int(x) for x in np.unravel_index(k, lead)) if lead else (), error)
    return result


def _error_callback(on_error: OnError) -> _ErrorCallback:
    if on_error == "nan":
        return lambda state, error: None
    if not callable(on_error):
        raise ShapeError(f'on_error must be "raise", "nan" or a function of a state\'s index and its error, got {on_error!r}')
    return on_error


def _bisect_failures(call: Callable[[int, int], Result], first: int, last: int, error: Exception
                     ) -> tuple[list[tuple[int, int, Result]], list[tuple[int, Exception]]]:
    """Return the results of parts (first, last, result) of [first, last), which fails with `error`, and the errors by state."""
    if last - first == 1:
        return [], [(first, error)]
    results: list[tuple[int, int, Result]] = []
    errors: list[tuple[int, Exception]] = []
    middle = (first + last) // 2
    for part in ((first, middle), (middle, last)):
        try:
            results.append((*part, call(*part)))
            continue
        except STATE_ERRORS as problem:
            error = problem.with_traceback(None)
        more_results, more_errors = _bisect_failures(call, *part, error)
        results += more_results
        errors += more_errors
    return results, errors


def _join_results(parts: list[tuple[int, int, Result]], call: Callable[[int, int], Result], lead: Shape) -> Result:
    """Return one result for all states, of the type of the partial results."""
    first, last, pattern = parts[0] if parts else (0, 0, call(0, 0))

    def field(k: int, value: Any) -> Any:
        if np.shape(value)[:2] != (last - first, 1):                   # not an array of states, as a mask
            return value
        return _fill_array(np.asarray(value), [(start, stop, fields(result)[k]) for start, stop, result in parts], lead)

    return with_arrays(pattern, [field(k, pattern_field) for k, pattern_field in enumerate(fields(pattern))])


def _fill_array(pattern: Array, parts: list[tuple[int, int, Array]], lead: Shape) -> Any:
    """Return an array of all states (*lead, …), filled with the available parts."""
    out = np.zeros((prod(lead), *pattern.shape[2:]), np.result_type(pattern, *(x for *_, x in parts)))
    if out.dtype.kind == "f":
        out.fill(np.nan)
    for first, last, x in parts:
        out[first:last] = x[:, 0]
    return out.reshape((*lead, *out.shape[1:]))[()]


def fields(result: Iterable[Any]) -> list[Any]:
    """Return the arrays of a result."""
    return [result] if isinstance(result, np.ndarray) else list(result)


def leading_axes(inputs: _Inputs) -> Shape:
    """Return the axes of the batch to which all arrays of states among the arguments can be broadcast."""
    leads: list[Shape] = []
    map_state_arrays(inputs, lambda x, state_axes: leads.append(x.shape[:x.ndim - state_axes]))
    return np.broadcast_shapes(*leads)


def trailing_shape(x: Array, state_axes: int) -> Shape:
    """Return the shape of one state."""
    return x.shape[x.ndim - state_axes:]


def map_state_arrays(inputs: _Inputs, change: Callable[[Array, int], object]) -> _Inputs:
    """Return the arguments, with change(array, number of axes that belong to a state) in place of each array of states."""
    def changed(name: str, x: Any) -> Any:
        if x is None or (name not in _STATE_AXES and name != "constraint_motion"):
            return x
        if name == "constraint_motion":
            return {closure: tuple(change(np.asarray(part), state_axes) for part, state_axes in zip(
                        motion_tuple(motion), _CONSTRAINT_MOTION_AXES, strict=False))
                    for closure, motion in x.items()}
        if isinstance(x, Mapping):                     # wrenches by link, rates by parameter
            return {key: change(np.asarray(part), _STATE_AXES[name] - 1) for key, part in x.items()}
        return change(np.asarray(x), _STATE_AXES[name])
    return {name: changed(name, x) for name, x in inputs.items()}
