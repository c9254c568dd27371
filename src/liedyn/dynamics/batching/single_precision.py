"""Calls in single precision, and in double precision for the states that single precision cannot compute."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.trace import SINGLE_UNIT
from liedyn.dynamics.batching.arrays import Result, copy_to_out, single_precision, with_arrays
from liedyn.dynamics.batching.calls import Shape, is_intercepted
from liedyn.dynamics.batching.failed_states import STATE_ERRORS, fields, leading_axes, map_state_arrays, trailing_shape
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.errors import LiedynWarning, ModelError, warn
from liedyn.model.model import Model

_Inputs = dict[str, Any]
_MAX_DOUBLE = 0.25                 # part of the states: if more need double precision, single precision saves no time


def with_number_type(function: Callable[..., Result], inputs: _Inputs) -> Result:
    """Return the result of a function whose argument `dtype` is not "float64". Raises ArgumentError unless it names a precision.

    inputs: all arguments by name, that is its locals() at its first line. In single precision, states that do not pass the checks
    of generated code are computed again in double precision, which also raises the errors.
    """
    model, dtype, out = inputs["model"], inputs["dtype"], inputs.get("out")
    inputs = {name: x for name, x in inputs.items() if name not in ("model", "dtype", "out")}
    if not is_single(dtype, function.__name__):
        return function(model, **inputs, **({} if out is None else {"out": out}))
    if model.nc or is_intercepted():
        raise ModelError(f"{function.__name__} of {model.name} is not available in single precision: it has loops, couplings or "
                         "parameters that vary", hint='use dtype="float64", or model.spanning_tree()')
    written = {"out": out} if out is not None and not _share_memory(out, inputs) else {}
    with single_precision() as failures:
        result = function(model, **{**inputs, "on_error": "raise"}, **written)
    if failures:
        result = _with_failures(function, model, inputs, result, failures)
    if any(x.dtype == np.float64 for x in fields(result)):
        result = with_arrays(result, [x.astype(np.float32) if x.dtype == np.float64 else x for x in fields(result)])
    if out is not None:
        with single_precision():
            return copy_to_out(result, out)
    return result


def _with_failures(function: Callable[..., Result], model: Model, inputs: _Inputs, result: Result,
                   failures: list[Mask]) -> Result:
    """Return the result with that of double precision for states that failed in one of several calls."""
    lead, double = leading_axes(inputs), _double_inputs(model, inputs)
    count = prod(lead)
    failed = np.flatnonzero(np.any([np.broadcast_to(x, count) for x in failures], axis=0))
    if len(failed) > _MAX_DOUBLE * count:
        warn([LiedynWarning("double-precision", f"{function.__name__} of robot {model.name} computes {len(failed)} of {count} "
                            "states in double precision", hint='use dtype="float64"')])
    if len(failed) == count:
        return function(model, **double)
    _compute_again(function, model, double, result, lead, failed)
    return result


def _share_memory(out: Any, inputs: _Inputs) -> bool:
    """Return whether results would overwrite arguments, which may be needed again."""
    arrays: list[Array] = []
    map_state_arrays(inputs, lambda x, _: arrays.append(x))
    return any(np.may_share_memory(x, y) for x in (out if isinstance(out, (tuple, list)) else (out,)) for y in arrays)


def _double_inputs(model: Model, inputs: _Inputs) -> _Inputs:
    """Return the arguments with quaternions of unit norm where single precision has rounded them."""
    inputs = dict(inputs)
    for name in ("q", "q0", "q1") if model.quaternions else ():
        if name in inputs:
            q = inputs[name] = np.array(inputs[name], dtype=np.float64)
            for columns in model.quaternions.values():
                square = (q[..., columns]**2).sum(-1, keepdims=True)
                q[..., columns] /= np.where(np.abs(square - 1.0) < SINGLE_UNIT, np.sqrt(square), 1.0)
    return inputs


def _compute_again(function: Callable[..., Result], model: Model, inputs: _Inputs, result: Result, lead: Shape,
                   failed: Integers) -> None:
    """Write the results of the states `failed` (indices of the flattened batch), computed in double precision."""
    places, on_error = np.unravel_index(failed, lead), inputs.get("on_error")
    if callable(on_error):
        def report(state: int, error: Exception) -> object:
            place = tuple(int(x[state]) for x in places)
            return on_error(place[0] if len(lead) == 1 else place, error)
        inputs = inputs | {"on_error": report}
    try:
        part = function(model, **map_state_arrays(inputs, lambda x, state_axes: np.broadcast_to(
            x, (*lead, *trailing_shape(x, state_axes)))[places]))
    except STATE_ERRORS:
        function(model, **inputs)                                # raises the error that names the state in the batch
        raise
    for x, y in zip(fields(result), fields(part), strict=True):
        if np.shape(y)[:1] == failed.shape:
            x[places] = y
