"""Calls over blocks of states: by generated code that reads and writes blocks, else by rows."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import numpy as np

from liedyn.arrays import Array, OnError, Precision
from liedyn.codegen.specialize import generated_batch_function, is_enabled, specialization_of
from liedyn.codegen.trace import Specialization
from liedyn.dynamics.batching.arrays import acquire_buffer
from liedyn.dynamics.batching.calls import (
    Arguments,
    EntryPoint,
    Shape,
    intercept_entry_points,
    is_intercepted,
    nonempty_arrays,
    run_generated_batch,
)
from liedyn.dynamics.batching.failed_states import fields
from liedyn.dynamics.batching.state_blocks import StateBlocks, aligned_array, is_single
from liedyn.errors import ArgumentError, ShapeError
from liedyn.kernels.batch_blocks import OK
from liedyn.model.model import Model

_STATES = "q", "v", "a", "tau", "f_ext"
_Inputs = dict[str, Any]
_Result = TypeVar("_Result")


class BlockOptions(TypedDict, total=False):
    """Optional arguments of dynamics and their derivatives with states in blocks."""

    f_ext: StateBlocks | None
    passive: bool
    on_error: OnError
    dtype: Precision


def with_blocks(function: Callable[..., _Result], inputs: _Inputs) -> _Result:
    """Return the result of a function of `StateBlocks` as blocks; several results in a tuple.

    inputs: all arguments by name, that is its locals() at its first line. Robots with loops or couplings
    and batches with states that do not pass the checks of generated code are computed by rows, which also raises the errors.
    """
    model, name, out = inputs["model"], function.__name__, inputs.get("out")
    inputs = {key: x for key, x in inputs.items() if key not in ("model", "out")}
    if out is not None:
        raise ArgumentError(f"{name}: out is not available for StateBlocks, whose results are in reused memory (omit it)")
    if is_intercepted():
        raise ArgumentError(f"{name}: StateBlocks are not available here (use rows: blocks.rows())")
    single = is_single(inputs["dtype"], name)
    blocks = _checked_blocks(model, name, inputs, single)
    results = None if model.nc or not is_enabled() or not len(blocks["q"]) or not model.nv else _computed_blocks(
        function, model, blocks, {key: inputs[key] for key in ("passive", "prescribed") if key in inputs}, single)
    if results is None:
        rows: Any = function(model, **inputs | {key: x.rows() for key, x in blocks.items()})
        results = [StateBlocks.of(x, inputs["dtype"]) for x in fields(rows) if x.dtype.kind == "f"]
    result: Any = results[0] if len(results) == 1 else tuple(results)
    return result                       # type: ignore[no-any-return]


def _checked_blocks(model: Model, name: str, inputs: _Inputs, single: bool) -> dict[str, StateBlocks]:
    """Return the arguments that are arrays of states. Raises ShapeError unless they are blocks of the same states."""
    blocks = {key: inputs[key] for key in _STATES if inputs.get(key) is not None}
    dtype = np.dtype(np.float32 if single else np.float64)
    shapes = {"q": (model.nq,), "f_ext": (len(model.link_names), 6)}
    for key, x in blocks.items():
        if not isinstance(x, StateBlocks):
            raise ShapeError(f"{name}: q is StateBlocks, and {key} is not: got {type(x).__name__} (ld.StateBlocks.of(rows) makes "
                             "blocks; blocks.rows() returns rows)")
        if x.array.dtype != dtype:
            raise ShapeError(f"{name}: {key} has blocks of {x.array.dtype}: expected {dtype} (pass dtype=\"{x.array.dtype}\", or "
                             f"use ld.StateBlocks.of(rows, \"{dtype}\"))")
        expected = shapes.get(key, (model.nv,))
        if x.shape != expected:
            raise ShapeError(f"{key} has the wrong shape: expected blocks of states of shape {expected}, got {x.shape}")
        if len(x) != len(blocks["q"]):
            raise ShapeError(f"numbers of states do not match: q has {len(blocks['q'])}, {key} has {len(x)}")
    return blocks


@dataclass(frozen=True)
class _LayoutKey:
    """Key of a layout in the model's cache: a function, and all of its arguments that are not numbers of states."""

    function: str
    content: tuple[object, ...]


@dataclass(frozen=True)
class _Layout:
    """What a function passes to its entry point.

    specialization  of the call
    places          of each array that is not empty: name of the argument, or None, and index of the result, or None
    shapes          of the results of one state
    """

    specialization: Specialization
    places: tuple[tuple[str | None, int | None], ...]
    shapes: tuple[Shape, ...]


def _layout(function: Callable[..., Any], model: Model, names: list[str], options: _Inputs) -> _Layout:
    """Return the layout, from a call for one state that computes nothing."""
    calls: list[tuple[EntryPoint, int, Arguments, Arguments]] = []

    def store(_model: Model, entry: EntryPoint, size: int, static_arguments: Arguments, arrays: Arguments, _count: int | None,
              _states: slice | None) -> int:
        calls.append((entry, size, static_arguments, arrays))
        return OK
    shapes = {"q": (model.nq,), "f_ext": (len(model.link_names), 6)}
    with intercept_entry_points(store):
        returned = function(model._copy(), **{x: np.zeros(shapes.get(x, (model.nv,))) for x in names}, **options)
    results = [x for x in fields(returned) if x.dtype.kind == "f"]
    (entry, size, static_arguments, arrays), = calls
    parameters: Any = list(inspect.signature(entry.py_func).parameters)[3 + len(static_arguments):]   # type: ignore[attr-defined]
    names_of = {id(x): parameter if parameter in names else None for parameter, x in zip(parameters, arrays, strict=False)}
    places = [(names_of[id(x)], next((k for k, y in enumerate(results) if np.may_share_memory(x, y)), None))
              for x in nonempty_arrays(arrays)]
    return _Layout(specialization_of(entry, size, static_arguments, arrays), tuple(places), tuple(x.shape for x in results))


def _computed_blocks(function: Callable[..., Any], model: Model, blocks: dict[str, StateBlocks], options: _Inputs,
                     single: bool) -> list[StateBlocks] | None:
    """Return the results of generated code; None if there is none, or if a state does not pass its checks."""
    content = tuple((key, x if isinstance(x, bool) else (np.asarray(x).dtype.str, np.shape(x), np.asarray(x).tobytes()))
                    for key, x in options.items())
    layout = model.cached(_LayoutKey(function.__name__, (tuple(blocks), content)),
                          lambda: _layout(function, model, list(blocks), options))
    generated = generated_batch_function(model, layout.specialization, single, blocks=True)
    if generated is None:
        return None
    count, dtype, width = len(blocks["q"]), blocks["q"].array.dtype, StateBlocks.width(blocks["q"].array.dtype)
    n_blocks = len(blocks["q"].array)

    def new(shape: Shape) -> Array:
        return aligned_array((n_blocks, *shape, width), dtype, make=lambda size: acquire_buffer((size,)))
    results, arrays = [new(shape) for shape in layout.shapes], []
    for name, k in layout.places:
        if name is not None and k is not None:                            # completed in place
            results[k][...] = blocks[name].array
        arrays.append(results[k] if k is not None else blocks[str(name)].array)
    status = [new((1,))] if single else []
    if not run_generated_batch(generated, model, [*arrays, *status], n_blocks * width, width) or any(
            not x.all() for x in status):
        return None
    return [StateBlocks(x, count) for x in results]
