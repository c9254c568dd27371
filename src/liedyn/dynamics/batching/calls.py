"""Calls of entry points over batches: generated code or generic kernels, threads, and errors from returned codes."""
from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod
from typing import Any, NoReturn, Protocol, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from liedyn.arrays import Array, Mask, cache_aligned
from liedyn.codegen.specialize import (
    GeneratedBatchFunction,
    generated_batch_function,
    generated_function,
    generic_kernels,
    is_enabled,
    specialization_of,
)
from liedyn.codegen.trace import Specialization
from liedyn.dynamics.batching.arrays import (
    NONE,
    acquire_buffer,
    allocate_out,
    allocate_outs,
    broadcast_states,
    copied,
    copy_to_out,
    number_type,
    single_failures,
)
from liedyn.dynamics.batching.threads import check_gil, chunks, run_on_threads
from liedyn.dynamics.singular_joints import check_joints_move_inertia, describe_singular_joints
from liedyn.errors import ComputationError, ConfigurationError, ShapeError, UsageError
from liedyn.kernels import batch_blocks
from liedyn.kernels.couplings import FOLLOWER_TOLERANCE, coupling_views
from liedyn.kernels.force_elements import COORDINATE, STATE_SIZE, element_states
from liedyn.model.couplings import undefined_function
from liedyn.model.force_element import undefined_force_text
from liedyn.model.model import Model
from liedyn.numba_tools.decorators import compile_entry_point

SCALAR = 0                      # index of the signature of an entry point with two signatures
# workspace size of one state (numbers) from which on eight states are not computed together: 32 MB per thread
_MAX_SIMD_WORKSPACE = 1 << 19

check_gil()

Shape: TypeAlias = tuple[int, ...]
Arguments: TypeAlias = tuple[Any, ...]


class EntryPoint(Protocol):
    """A compiled function of the kernels that Python calls (see `numba_tools.decorators.entry_point`)."""

    liedyn_signatures: tuple[str, ...]
    __name__: str

    def __call__(self, *arguments: Any) -> int:
        """Compute states and return a code of `batch_blocks`."""
        ...


# (model, entry, size, static_arguments, arrays, count), as the arguments of `run`, and which states of the batch these are, if it
# is evaluated in parts
Run: TypeAlias = Callable[[Model, EntryPoint, int, Arguments, Arguments, int | None, slice | None], int]


class CallOptions(TypedDict, total=False):
    """Optional arguments of `evaluate`."""

    static_arguments: Arguments
    prescribed: Mask | None
    options: Arguments
    trailing_arguments: Arguments
    out: Any


@overload
def evaluate(model: Model, key: Hashable, entry: EntryPoint, memory: Callable[..., int], inputs: dict[str, Any], shape: Shape, /,
             **options: Unpack[CallOptions]) -> Array: ...
@overload
def evaluate(model: Model, key: Hashable, entry: EntryPoint, memory: Callable[..., int], inputs: dict[str, Any], first: Shape,
             second: Shape, /, *shapes: Shape, **options: Unpack[CallOptions]) -> tuple[Array, ...]: ...


def evaluate(model: Model, key: Hashable, entry: EntryPoint,  # noqa: PLR0913 - a group would be an object for each fast call
             memory: Callable[..., int], inputs: dict[str, Any], *shapes: Shape, static_arguments: Arguments = (),
             prescribed: Mask | None = None, options: Arguments = (), trailing_arguments: Arguments = (),
             out: Any = None) -> Array | tuple[Array, ...]:
    """Call an entry point for a batch. Return an array (*lead, *shape) for each shape, in a tuple if there are several.

    key     under which a call for one state stores its generated function in the model's cache, shared by calls that differ in
            the number of states only; None: it is not stored
    memory  returns the workspace size (numbers) from `Model.sizes`
    inputs  states, as for `broadcast_states`

    The entry point receives, in this order: static_arguments (or the mask prescribed), states, options, results,
    trailing_arguments.
    """
    if inputs.get("f_ext") is inputs.get("constraint_motion") is None and model.nv:         # without coordinates it has no inputs
        states = [x for x in inputs.values() if x is not None and x is not NONE]
        outs = out if out is None or len(shapes) > 1 else (out,)
        generated_result = call_generated(model, key, outs, *states)
        if generated_result is None and (results := call_generated_batch(model, key, states, (), shapes, outs)) is not None:
            generated_result = results[0] if len(shapes) == 1 else tuple(results)
        if generated_result is not None:
            result: Array | tuple[Array, ...] = generated_result if out is None else out
            return result
    else:
        key = None
    lead, arrays = broadcast_states(model, inputs)
    count, places = prod(lead), allocate_outs([(*lead, *shape) for shape in shapes], out, arrays.values())
    rows: Iterable[Array]
    if count == 1:                                             # with the shapes of one state, whatever the batch
        rows, results = _single_state_arrays(model, arrays), [x.reshape(shape) for x, shape in zip(places, shapes, strict=True)]
    else:
        rows, results = arrays.values(), [x.reshape(count, prod(shape)) for x, shape in zip(places, shapes, strict=True)]
    if prescribed is not None:
        static_arguments = (prescribed,)
        if count:
            check_joints_move_inertia(model, prescribed)
    arguments = (*rows, *options, *results, *trailing_arguments)
    code = run(entry, model, memory(*model.sizes), static_arguments, arguments, None if count == 1 else count, key)
    raise_for_code(model, code, prescribed, **arrays)
    return copy_to_out(tuple(places) if len(shapes) > 1 else places[0], out)


def evaluate_hybrid(model: Model, key: Hashable, entry: EntryPoint,  # noqa: PLR0913 - as for `evaluate`
                    memory: Callable[..., int], inputs: dict[str, Any], shape: Shape, prescribed: Mask,
                    static_arguments: Arguments, options: Arguments = (), out: Array | None = None) -> tuple[Array, Array]:
    """Return accelerations and forces (*lead, *shape) of an entry point that completes both in place.

    They are the third and the fourth of its states; the fifth are wrenches. If no coordinate is prescribed, the third is NONE and
    `out` is the array for it. The other arguments are those of `evaluate`.
    """
    _, _, name, _, wrenches = inputs
    if inputs[name] is NONE and inputs[wrenches] is None:
        q, v, _, tau, _ = inputs.values()
        results = call_generated_batch(model, key, (q, v), (tau,), (shape,), None if out is None else (out,))
        if results is not None:
            return results[0], tau
    lead, arrays = broadcast_states(model, inputs)
    q, v, a, tau, F = arrays.values()
    count, tau = prod(lead), tau.reshape(*lead, *shape)
    if inputs[name] is NONE:                               # tau is an input only
        a = allocate_out((*lead, *shape), out, arrays.values())
    else:
        a, tau = copied(a.reshape(*lead, *shape)), copied(tau)
    if count:
        check_joints_move_inertia(model, prescribed)
    if count == 1:
        q, v, F, rows = q[0], v[0], F[0], [x.reshape(shape) for x in (a, tau)]
    else:
        rows = [x.reshape(count, prod(shape)) for x in (a, tau)]
    key = key if inputs[wrenches] is None else None
    code = run(entry, model, memory(*model.sizes), static_arguments, (q, v, *rows, F, *options), None if count == 1 else count,
               key, rows)
    raise_for_code(model, code, prescribed, **arrays)
    return a, tau


def _single_state_arrays(model: Model, arrays: dict[str, Array]) -> list[Array]:
    """Return the arrays (1, n) of a batch of one state in their shapes for one state: derivatives have a row for each order."""
    return [x.reshape(-1, model.nv) if name.endswith("_derivatives") and name != "f_ext_derivatives" and x.size else x[0]
            for name, x in arrays.items()]


def call_generated(model: Model, key: Hashable, out: Any, *arguments: Any) -> Any:
    """Return the results of one state from the generated function that an earlier call stored for `key`, or None.

    arguments: arrays, which the generated function checks; out: None, or as many arrays as there are results. A batch of one
    state is also accepted.
    """
    try:
        generated = model.single_calls[key]
        if out is None:
            return generated(*arguments)
        return out if generated(*arguments, *out) == 0 else None
    except (KeyError, TypeError):
        return None


def call_generated_batch(model: Model, key: Hashable, first: Sequence[Any], last: Sequence[Any],
                         shapes: Sequence[Shape], out: Sequence[Any] | None) -> list[Array] | None:
    """Return the results of a batch from the generated function that an earlier call stored for `key`, or None.

    first, last: arguments before the results, which have these shapes for one state, and after them. The generated function
    checks that they are arrays (N, n); in single precision, they may be those of one state. out: as many arrays as there are
    results, or None.
    """
    single, inputs = single_failures() is not None, (*first, *last)
    generated: GeneratedBatchFunction | None = model.single_calls.get((key, single))
    if generated is None or is_intercepted() or not is_enabled():
        return None
    if not inputs or any(type(x) is not np.ndarray for x in inputs):
        return None
    if single and out is None and all(x.ndim == 1 for x in inputs):                                           # one state
        results = call_generated_batch(model, key, [x[None] for x in first], [x[None] for x in last], shapes, None)
        return None if results is None else [x[0] for x in results]
    count = len(inputs[0]) if all(x.ndim == 2 for x in inputs) else 0
    if count < (1 if single else 2):                                    # double precision has a function for one state
        return None
    if out is None:
        results = [acquire_buffer((count, *shape)) for shape in shapes]
    elif _are_separate(out, [(count, *shape) for shape in shapes], inputs):
        results = list(out)
    else:
        return None
    rows = [y if y.ndim == 2 else y.reshape(count, prod(shape)) for y, shape in zip(results, shapes, strict=True)]
    status = [np.empty((count, 1), np.float32)] if single else []
    arrays, edges, call = (*first, *rows, *last, *status), chunks(count, model.n_bodies), generated.call

    def part(begin: int, end: int) -> Any:
        return call(*arrays, thread_workspace(generated.workspace_size), begin, end)

    failed = part(0, count) if len(edges) == 2 else any(run_on_threads(part, edges))
    return None if failed or not all(y.all() for y in status) else results


def _are_separate(out: Sequence[Any], shapes: Sequence[Shape], inputs: Sequence[Array]) -> bool:
    """Return whether `out` are arrays of these shapes that share no memory with others, nor with inputs."""
    return type(out) in (tuple, list) and len(out) == len(shapes) and all(
        type(x) is np.ndarray and x.shape == shape and x.flags.c_contiguous
        and not any(np.may_share_memory(x, y) for y in (*inputs, *out[:k]))
        for k, (x, shape) in enumerate(zip(out, shapes, strict=True)))


def run(entry: EntryPoint, model: Model, size: int, static_arguments: Arguments, arrays: Arguments, count: int | None,
        key: Hashable = None, in_place: Sequence[Array] = ()) -> int:
    """Call an entry point over `count` states, by generated code or by generic kernels, on all cores. Return a code.

    size              workspace size of one state (numbers)
    static_arguments  arguments between the workspace and the arrays of states
    count             None for one state, whose arrays have no axis of the batch
    key               under which its generated function is stored in the model's cache
    in_place          arrays that are inputs and results: of one state, generic kernels get them as they were
    """
    rows = arrays if count is not None else tuple(x.reshape(1, x.size) if isinstance(x, np.ndarray) else x for x in arrays)
    other: Run | None = getattr(_thread, "run", None)
    if other is not None:
        return other(model, entry, size, static_arguments, rows, count, getattr(_thread, "states", None))
    failures = single_failures()
    if failures is not None:
        failed = _run_single(model, specialization_of(entry, size, static_arguments, rows), nonempty_arrays(rows),
                             1 if count is None else count, key)
        if failed.any():
            failures.append(failed)
        return batch_blocks.OK
    if count == 0 or (is_enabled() and _run_generated(model, specialization_of(entry, size, static_arguments, rows),
                                                      nonempty_arrays(arrays), count, key, in_place)):
        return batch_blocks.OK
    return run_generic(entry, model, size, static_arguments, rows, 1 if count is None else count)


def _run_single(model: Model, specialization: Specialization, rows: list[Array], count: int, key: Hashable) -> Mask:
    """Compute a batch by generated code of single precision. Return which states it could not compute."""
    status: Array = np.zeros((count, 1), number_type())
    generated = generated_batch_function(model, specialization, single=True) if count and is_enabled() else None
    if generated is not None and have_state_rows(rows, count):
        _store_batch_call(model, key, generated, single=True)
        run_generated_batch(generated, model, [*rows, status], count)
    failed: Mask = status[:, 0] == 0.0
    return failed


def is_intercepted() -> bool:
    """Return whether calls of entry points in this thread are replaced, see `intercept_entry_points`."""
    return getattr(_thread, "run", None) is not None


def run_generic(entry: EntryPoint, model: Model, size: int, static_arguments: Arguments, arrays: Arguments, count: int) -> int:
    """Call an entry point as `run` does, without generated code."""
    scalar = (count == 1 or size > _MAX_SIMD_WORKSPACE) and len(entry.liedyn_signatures) == 2
    compile_entry_point(entry, SCALAR if scalar else len(entry.liedyn_signatures) - 1)
    edges, memory = chunks(count, model.n_bodies), thread_workspace if scalar else simd_thread_workspace
    index, constants, *_ = model._arrays

    def part(first: int, last: int) -> int:
        return entry(index, constants, memory(size), *static_arguments, *arrays, first, last)

    if len(edges) == 2:
        return part(0, count)
    return next((code for code in run_on_threads(part, edges) if code), batch_blocks.OK)


def generic_kernels_of(robot: Model, base: Model, varying: tuple[int, ...] = ()) -> AbstractContextManager[None]:
    """Return a context that uses generic kernels if the constants of `robot` differ from those of `base`.

    Generated code contains the constants of the robot, and generating it for one run takes longer than the run. Right-hand sides
    of simulations read the constants with the indices `varying`, if `robot` differs from `base` in no others.
    """
    if robot.constants.shape != base.constants.shape or not np.array_equal(robot.index, base.index):
        return generic_kernels()
    different = np.flatnonzero(robot.constants != base.constants)
    if not len(different):
        return nullcontext()
    return generic_kernels(varying if np.isin(different, varying).all() else ())


def _run_generated(model: Model, specialization: Specialization, arrays: Sequence[Array], count: int | None,
                   key: Hashable, in_place: Sequence[Array]) -> bool:
    """Return whether generated code has computed the batch. Otherwise the generic kernels run, and report errors of the input."""
    if count is not None and not have_state_rows(arrays, count):
        return False
    if count is not None and count > 1:
        batch = generated_batch_function(model, specialization)
        if batch is None:
            return False
        _store_batch_call(model, key, batch, single=False)
        return run_generated_batch(batch, model, arrays, count)
    generated = generated_function(model, specialization, [x.shape for x in arrays])
    if generated is None:
        return False
    if key is not None:
        model.single_calls[key] = generated.call
    inputs = [x.copy() for x in in_place]
    if not generated.call(*arrays):
        return True
    for x, y in zip(in_place, inputs, strict=True):
        x[...] = y
    return False


def _store_batch_call(model: Model, key: Hashable, generated: GeneratedBatchFunction, single: bool) -> None:
    """Store a generated function for `call_generated_batch`."""
    if key is not None and generated.call is not None:
        model.single_calls[key, single] = generated


def have_state_rows(rows: Sequence[Array], count: int) -> bool:
    """Return whether all arrays have a row for each state. Generated code would read and write beyond others."""
    return all(x.ndim == 2 and len(x) >= count for x in rows)


def run_generated_batch(generated: GeneratedBatchFunction, model: Model, rows: Sequence[Array], count: int,
                        unit: int = 8) -> bool:
    """Run a generated function over a batch, on all cores. Return whether the results are valid.

    rows: the arrays that are not empty, or blocks of `unit` states.
    """
    edges = chunks(count, model.n_bodies, unit)

    def part(first: int, last: int) -> bool:
        return generated.run(rows, thread_workspace(generated.workspace_size), first, last)

    return part(0, count) if len(edges) == 2 else all(run_on_threads(part, edges))


def nonempty_arrays(arrays: Iterable[Any]) -> list[Array]:
    """Return the arrays among the arguments of an entry point that are not empty: generated code takes only these."""
    return [x for x in arrays if isinstance(x, np.ndarray) and x.size]


def intercepted_specialization(function: Callable[..., Any], model: Model, *arguments: Any,
                               **options: Any) -> tuple[Specialization, Model]:
    """Return the entry point and its arguments that a public function calls, and the model, without calling the entry point.

    The model may be that of the open tree.
    """
    try:
        with intercept_entry_points(_raise_entry_point_call):
            function(model._copy(), *arguments, **options)            # without generated code
    except _EntryPointCall as answer:
        return answer.specialization, answer.model
    raise UsageError(f"{function.__name__} calls no entry of the kernels")


class _EntryPointCall(Exception):
    def __init__(self, specialization: Specialization, model: Model):
        self.specialization, self.model = specialization, model


def _raise_entry_point_call(model: Model, entry: EntryPoint, size: int, static_arguments: Arguments, arrays: Arguments,
                            _count: int | None, _states: slice | None) -> NoReturn:
    raise _EntryPointCall(specialization_of(entry, size, static_arguments, arrays), model)


@contextmanager
def intercept_entry_points(run: Run) -> Iterator[None]:
    """Replace the calls of entry points in this thread by calls of `run`, within the block.

    run(model, entry, size, static_arguments, arrays, count, states); count is None for one state.
    """
    previous = getattr(_thread, "run", None)
    _thread.run = run
    try:
        yield
    finally:
        _thread.run = previous


@contextmanager
def states_of_batch(states: slice) -> Iterator[None]:
    """Pass the part of a batch to the replacement of entry points in this thread, within the block."""
    _thread.states = states
    try:
        yield
    finally:
        _thread.states = None


def thread_workspace(size: int) -> Array:
    """Return the workspace of this thread, which is kept between calls and aligned to cache lines.

    Without alignment, forward dynamics of a 6-DoF arm is 1.6 times slower.
    """
    memory: Array | None = getattr(_thread, "memory", None)
    if memory is None or memory.size < size:
        memory = cache_aligned(-(-size // 8) * 8, make=np.empty)
        _thread.lanes = memory.reshape(-1, 8)             # first: an interrupt in between must not leave too few rows
        _thread.memory = memory
    return memory[:size]


def simd_thread_workspace(size: int) -> Array:
    """Return the workspace of this thread for eight states: at least `size` rows of eight."""
    lanes: Array
    try:
        lanes = _thread.lanes
        if len(lanes) >= size:
            return lanes                    # slicing it would take 1 us more when a large result has evicted the caches
    except AttributeError:                  # the first call of this thread
        pass
    thread_workspace(8 * size)
    lanes = _thread.lanes
    return lanes


_thread = threading.local()


# errors -----------------------------------------------------------------------------------------------------------
_CODE_ARGUMENTS = {batch_blocks.BAD_V: ("v", "v_r", "dv", "v_derivatives"), batch_blocks.BAD_A: ("a", "a_r", "a_derivatives"),
                   batch_blocks.BAD_TAU: ("tau", "tau_derivatives")}


def raise_for_code(model: Model, code: int, prescribed: Mask | None = None, **arrays: Array) -> None:
    """Raise the error for a code of an entry point. It names the coordinate.

    arrays: arguments of the entry point by name; prescribed: mask of coordinates of which a is an input, and not tau.
    """
    if code == batch_blocks.OK:
        return
    if code in (batch_blocks.BAD_Q, batch_blocks.BAD_QUATERNION):
        for name in ("q", "q0", "q1"):
            if name in arrays:
                check_configuration(model, arrays[name], name)
        raise ConfigurationError("a quaternion is not of unit norm")
    if code in _CODE_ARGUMENTS:
        _raise_for_bad_numbers(model, code, prescribed, arrays)
    if code in _FOLLOWER_ARGUMENTS:
        candidates, level = _FOLLOWER_ARGUMENTS[code]
        worst = max((name for name in candidates if name in arrays),
                    key=lambda name: follower_values(model, level, arrays[name])[1].max(initial=0.0))
        raise_for_followers(model, worst, level, arrays)
    if code == batch_blocks.BAD_F_EXT:
        texts = {"f_ext_derivatives": "f_ext_derivatives", "constraint_motion": "f_ext or the motion of a driven loop"}
        argument = next((text for name, text in texts.items() if name in arrays), "f_ext")
        raise ConfigurationError(f"{argument} contains NaN or infinite values")
    if code == batch_blocks.SINGULAR:
        raise ComputationError(describe_singular_joints(model, prescribed, arrays.get("q")))
    if code == batch_blocks.BAD_RESULT:
        text = undefined_function(model.function_couplings, arrays["q"], model.q_names, 2) if "q" in arrays else None
        if text is None and model.description.elements and "q" in arrays:
            text = undefined_element(model, arrays["q"])
        if text:
            raise ComputationError(text)
        raise ComputationError("the result is not finite: the state is too large for double precision")
    raise ShapeError("arguments have the wrong shape")


def undefined_element(model: Model, q: Array) -> str | None:
    """Return a text about the first force element without a finite force at the positions q (..., nq); None if all are finite."""
    elements, q = model.description.elements, np.ascontiguousarray(q.reshape(-1, model.nq))
    out = np.zeros((1, len(elements) * STATE_SIZE))
    for state in q:
        run_generic(element_states, model, model.nq + model.nv + out.size, (), (state[None], np.zeros((1, model.nv)), out), 1)
        for element, x in zip(elements, out.reshape(-1, STATE_SIZE), strict=True):
            if not np.isfinite(x).all():
                return undefined_force_text(element, float(x[COORDINATE]))
    return None


def _raise_for_bad_numbers(model: Model, code: int, prescribed: Mask | None, arrays: Mapping[str, Array]) -> NoReturn:
    """Raise ConfigurationError for the first argument of a code in which a number is not finite."""
    names = [name for name in _CODE_ARGUMENTS[code] if name in arrays]
    for name in names:
        x = arrays[name].reshape(len(arrays[name]), *(-1,) * name.endswith("_derivatives"), model.nv)
        read = True if prescribed is None or code == batch_blocks.BAD_V else prescribed == (code == batch_blocks.BAD_A)
        check_finite(name, np.where(read, x, 0.0), model.v_names)
    raise ConfigurationError(f"{names[0]} contains NaN or infinite values")


_FOLLOWER_ARGUMENTS = {batch_blocks.BAD_FOLLOWER_Q: (("q",), 0), batch_blocks.BAD_FOLLOWER_V: (("v", "v_r"), 1),
                       batch_blocks.BAD_FOLLOWER_A: (("a", "a_r"), 2)}


def follower_values(model: Model, level: int, x: Array) -> tuple[Array, Array]:
    """Return the values (N, nf) of followers in states x, and the differences of given values from them, in the allowed ones.

    level: 0 for q (N, nq), 1 and 2 for v and a (N, nv), k for the k-th derivative of q.
    """
    couplings = coupling_views.py_func(model.index, model.constants)
    followers, terms = (couplings.follower_q, couplings.term_q) if level == 0 else (couplings.follower, couplings.term)
    parts, count = x[:, terms] * couplings.ratio, len(followers)
    of_follower = np.repeat(np.eye(count), np.diff(couplings.first), axis=0)
    offset = couplings.offset if level == 0 else np.zeros(count)
    values, squares = parts @ of_follower + offset, parts**2 @ of_follower + offset**2
    rounding = couplings.rounding.reshape(3, count)
    frequency = rounding[2] / rounding[1] if level > 2 else 1.0
    allowed = np.hypot(FOLLOWER_TOLERANCE * np.sqrt(squares), rounding[min(level, 2)] * frequency**max(level - 2, 0))
    return values, np.abs(x[:, followers] - values) / allowed


_SINGLE_PRECISION = 1e-6         # of the sizes of terms: a few roundings of float32


def raise_for_followers(model: Model, name: str, level: int, arrays: Mapping[str, Array]) -> NoReturn:
    """Raise ConfigurationError that names the coordinate whose value contradicts its couplings most."""
    couplings = coupling_views.py_func(model.index, model.constants)
    names, followers = (model.q_names, couplings.follower_q) if level == 0 else (model.v_names, couplings.follower)
    x = arrays[name]
    values, excess = follower_values(model, level, x)
    if level >= 2 and couplings.prescribed.any():              # of hybrid dynamics: other accelerations are not read
        excess = np.where(couplings.prescribed, excess, 0.0)
    k, f = np.unravel_index(np.argmax(excess), excess.shape)
    state = f" of state {k}" if len(x) > 1 else ""
    precision = "; is it of single precision?" if excess[k, f] < _SINGLE_PRECISION / FOLLOWER_TOLERANCE else ""
    raise ConfigurationError(f"{name} ({names[followers[f]]}){state} contradicts the couplings of robot {model.name}: "
                             f"expected {values[k, f]:.12g}, got {x[k, followers[f]]:.12g}{precision} (ld.expand computes it; "
                             "model.spanning_tree() is the robot without couplings)")


def check_finite(name: str, x: Array, coordinates: tuple[str, ...] = (), n_axes: int = 1, item: str = "state") -> None:
    """Raise ConfigurationError that names the first number of x that is not finite, if there is one.

    The last `n_axes` axes of x belong to one item of the batch, two for …_derivatives. coordinates: names along the last axis.
    """
    if np.isfinite(x).all():
        return
    n_axes = 2 if name.endswith("_derivatives") else n_axes
    rows = x.reshape(-1, *x.shape[x.ndim - n_axes:])
    k, *at = first = tuple(np.argwhere(~np.isfinite(rows))[0])
    place = f"[{', '.join(map(str, at))}]" if at else ""
    coordinate = f" ({coordinates[at[-1]]})" if coordinates else ""
    location = f" of {item} {k}" if len(rows) > 1 else ""
    raise ConfigurationError(f"{name}{place}{coordinate}{location} is not finite: got {rows[first]}")


def check_configuration(model: Model, q: Array, name: str = "q", item: str = "state") -> None:
    """Raise ConfigurationError unless q (…, nq) is finite and its quaternions are of unit norm."""
    check_finite(name, q, model.q_names, item=item)
    for joint, quaternion in model.quaternions.items():
        check_quaternion(f"joint {joint!r}", q[..., quaternion], item)


def check_quaternion(owner: str, u: Array, item: str = "state") -> None:
    """Raise ConfigurationError unless the quaternions u (…, 4) are of unit norm. owner: in messages, such as `joint 'hip'`."""
    index = find_non_unit_quaternion(u)
    if index:
        k, norm = index
        location = f" in {item} {k}" if u.size > 4 else ""
        raise ConfigurationError(f"the quaternion of {owner}{location} is not of unit norm: expected |q| = 1 "
                                 f"within {batch_blocks.QUATERNION_TOLERANCE / 2:g}, got {norm:.12g} (normalize it first)")


@np.errstate(over="ignore")
def find_non_unit_quaternion(u: Array, tolerance: float = batch_blocks.QUATERNION_TOLERANCE / 2) -> tuple[int, float] | None:
    """Return the index and the norm of the first of the quaternions u (…, 4) whose norm is off 1 by the tolerance or more."""
    norms = np.linalg.norm(u.reshape(-1, 4), axis=1)
    bad = ~(np.abs(norms**2 - 1) < 2 * tolerance)                 # of squared norms, as in kernels
    k = int(np.argmax(bad)) if bad.any() else -1
    return None if k < 0 else (k, float(norms[k]))
