"""Check the arguments of public functions, convert them to arrays of one batch, and allocate results."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, Wrenches
from liedyn.dynamics.batching.state_blocks import StateBlocks, check_not_masked
from liedyn.errors import NameLookupError, ShapeError
from liedyn.kernels import kinematics as kernels
from liedyn.model.constraint_arrays import ModelConstraint
from liedyn.model.model import Model

Result = TypeVar("Result", bound=Iterable[Any])          # an array, a tuple, or another sequence of arrays

NONE = np.empty((0, 0))         # placeholder for an argument that an entry point neither reads nor writes


class _Precision(threading.local):
    """What the numbers of arrays are, in this thread."""

    dtype: np.dtype[Any] = np.dtype(np.float64)
    failures: list[Mask] | None = None


_precision = _Precision()


def number_type() -> np.dtype[Any]:
    """Return the type of numbers of arrays: float64, or float32 within `single_precision`."""
    return _precision.dtype


def single_failures() -> list[Mask] | None:
    """Return the list of `single_precision`, or None outside of it."""
    return _precision.failures


@contextmanager
def single_precision() -> Iterator[list[Mask]]:
    """Convert arguments to float32 in this thread within the block, compute in single precision, and allocate results of float32.

    Each call of an entry point appends to the list which of its states it could not compute, if there are any.
    """
    _precision.dtype, _precision.failures = np.dtype(np.float32), []
    try:
        yield _precision.failures
    finally:
        _precision.dtype, _precision.failures = np.dtype(np.float64), None


def as_array(x: ArrayLike, name: str, last: tuple[int, ...]) -> Array:
    """Return x as a C-contiguous array of `number_type` whose last axes are `last`. Raise ShapeError otherwise."""
    values = _as_numbers(x, name)
    if values.shape[values.ndim - len(last):] != last or values.ndim < len(last):
        expected = ", ".join(str(n) for n in last)
        raise ShapeError(f"{name} has the wrong shape: expected (…, {expected}), got {values.shape}")
    return values if values.flags.behaved else values.copy()     # entry points accept writable, aligned arrays only


def as_single_state(x: ArrayLike, name: str, shape: tuple[int, ...], hint: str = "") -> Array:
    """Return x as a C-contiguous float64 array of this shape, of a single state. Raise ShapeError otherwise, with the hint."""
    values = _as_numbers(x, name)
    if values.shape != shape:
        raise ShapeError(f"{name} has the wrong shape: expected {shape}, got {values.shape}{f' ({hint})' if hint else ''}")
    return values if values.flags.behaved else values.copy()


def _as_numbers(x: ArrayLike, name: str) -> Array:
    if type(x) is not np.ndarray:
        check_not_masked(x, name)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):                       # ragged lists
        array = None
    if array is None or array.dtype.kind not in "fiub":   # strings would be parsed, imaginary parts dropped
        of = f" of {x.dtype}" if isinstance(x, np.ndarray) else ""
        hint = " (use rows: blocks.rows(); dynamics take blocks if q has them, too)" if isinstance(x, StateBlocks) else ""
        raise ShapeError(f"{name} is not an array of numbers: got {type(x).__name__}{of}{hint}")
    values: Array = np.asarray(array, dtype=number_type(), order="C")
    return values


def as_mask(prescribed: ArrayLike, nv: int) -> Mask:
    """Return `prescribed` as a boolean mask (nv,). Raise ShapeError if it is not one."""
    check_not_masked(prescribed, "prescribed")
    mask = np.ascontiguousarray(prescribed)
    if mask.dtype != bool or mask.shape != (nv,):
        raise ShapeError(f"prescribed is a mask over v: expected bool ({nv},), got {mask.dtype} of shape {mask.shape}")
    return mask if mask.flags.writeable else mask.copy()


def broadcast_states(model: Model, inputs: Mapping[str, Any]) -> tuple[tuple[int, ...], dict[str, Array]]:
    """Return the leading axes of a batch and its arrays (N, …), in the order of `inputs`.

    inputs: arguments of a public function by name. f_ext and constraint_motion are as users pass them; q, q0, q1 are (…, nq);
    multipliers is (…, nc); …_derivatives are (…, rows, nv), those of f_ext as returned by `wrenches`; all others are (…, nv).
    NONE, f_ext = None and the motion of a model without driven loops become (N, 0).
    """
    last = {"q": model.nq, "q0": model.nq, "q1": model.nq, "multipliers": model.nc}
    named: list[tuple[str, Array, int]] = []
    for name, x in inputs.items():
        if name == "f_ext":
            forces = wrenches(model, x)
            named += [] if forces is None else [(name, forces, 2)]
        elif name == "constraint_motion":
            motion = constraint_motion_array(model, x)
            named += [(name, motion, 1)] if motion.size else []
        elif name == "f_ext_derivatives":
            named += [] if x is None else [(name, x, 3)]
        elif x is not NONE:
            named.append((name, as_array(x, name, (last.get(name, model.nv),)), 2 if name.endswith("_derivatives") else 1))
    lead, rows = broadcast_arrays(*named)
    arrays = {name: x for (name, _, _), x in zip(named, rows, strict=True)}
    return lead, arrays if len(rows) == len(inputs) else dict.fromkeys(inputs, np.empty((prod(lead), 0))) | arrays


def broadcast_arrays(*named: tuple[str, Array, int]) -> tuple[tuple[int, ...], list[Array]]:
    """Return the common leading axes, and each array as (N, n), C-contiguous.

    named: name, array, number of last axes that belong to one state.
    """
    lead = common_leading_axes(*named)
    count = prod(lead)
    out = []
    for _, array, state_axes in named:
        state = array.shape[array.ndim - state_axes:]
        rows = array if array.shape == lead + state else copied(np.broadcast_to(array, lead + state))      # writable
        out.append(np.ascontiguousarray(rows).reshape(count, prod(state)))
    return lead, out


def common_leading_axes(*named: tuple[str, Array, int], axes: str = "leading axes") -> tuple[int, ...]:
    """Return the leading axes to which all arrays can be broadcast, or raise ShapeError."""
    leads = [array.shape[:array.ndim - state_axes] for _, array, state_axes in named]
    if leads and all(lead == leads[0] for lead in leads):
        return leads[0]
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array, _ in named)
        raise ShapeError(f"{axes} do not match: {shapes}") from None


def wrenches(model: Model, f_ext: Wrenches | None, name: str = "f_ext", rows: tuple[int, ...] = ()) -> Array | None:
    """Return external wrenches (…, *rows, n_links, 6) from an array or a dict by link name, or None if f_ext is None."""
    n = len(model.link_names)
    if f_ext is None:
        return None
    if not isinstance(f_ext, Mapping):
        return as_array(f_ext, name, (*rows, n, 6))
    try:
        links = [model.link_index(link) for link in f_ext]
    except NameLookupError as error:
        raise NameLookupError(f"{name}: {error}") from None
    named = [(label := f"{name}[{link!r}]", as_array(F, label, (*rows, 6)), len(rows) + 1) for link, F in f_ext.items()]
    out = np.zeros((*common_leading_axes(*named), *rows, n, 6))
    for k, (_, F, _) in zip(links, named, strict=True):
        out[..., k, :] = F
    return out


def constraint_motion_array(model: Model, constraint_motion: Mapping[str, Any] | None) -> Array:
    """Return (..., 24 driven): pose, twist and its rate of frame A of each driven loop, in the axes of the kernels."""
    driven = [constraint for constraint in model.constraints if constraint.driven]
    inputs = dict(constraint_motion or {})
    unknown = [name for name in inputs if name not in {constraint.name for constraint in driven}]
    if unknown:
        known = ", ".join(constraint.name for constraint in driven) or "none"
        raise NameLookupError(f"no driven loop {unknown[0]!r}; the model has {known}")
    if not driven:
        return np.empty(0)
    return _concatenate([_frame_motion(constraint, inputs.get(constraint.name)) for constraint in driven])


def _frame_motion(closure: ModelConstraint, motion: Any) -> Array:
    """Return the 24 numbers of one frame. The axes of the robot file are rotated to those of the kernels."""
    parts = motion_tuple(np.eye(4) if motion is None else motion)
    parts += (np.zeros(6),) * (3 - len(parts))
    T, V, dV = (as_array(x, "constraint_motion", shape) for x, shape in zip(parts, ((4, 4), (6,), (6,)), strict=True))
    turn: Array = np.eye(3) if closure.turn is None else closure.turn           # from the kernels' frame to the file's
    R = np.swapaxes(turn, -1, -2) @ T[..., :3, :3] @ turn
    twists = [np.concatenate([x[..., :3] @ turn, x[..., 3:] @ turn], axis=-1) for x in (V, dV)]
    return _concatenate([R.reshape(*R.shape[:-2], 9), T[..., :3, 3] @ turn, *twists])


def motion_tuple(motion: Any) -> tuple[Any, ...]:
    """Return the pose, the twist and the rate of the twist of a driven loop. The last ones may be omitted by the user."""
    return tuple(motion) if isinstance(motion, (tuple, list)) else (motion,)


def _concatenate(parts: Sequence[Array]) -> Array:
    lead = np.broadcast_shapes(*[part.shape[:-1] for part in parts])
    return np.concatenate([np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1)


# frames -----------------------------------------------------------------------------------------------------------------

# Frames in which twists, accelerations, Jacobians, momenta and wrenches are expressed, for all functions.
#
# | name                  | axes         | about            | twist [w; v]          | wrench [m; f]         |
# |-----------------------|--------------|------------------|-----------------------|-----------------------|
# | "local"               | of the link  | the link's origin| V = (w, v)            | F = (m, f)            |
# | "local_world_aligned" | of the world | the link's origin| (R w, R v)            | (R m, R f)            |
# | "world"               | of the world | the world's      | Ad_T V                | Ad*_{T^-1} F          |
#
# T = (R, p) is the pose of the link in the world. Pinocchio calls them LOCAL, LOCAL_WORLD_ALIGNED and WORLD.

LOCAL, LOCAL_WORLD_ALIGNED, WORLD = FRAMES = ("local", "local_world_aligned", "world")
KERNEL_FRAMES = dict(zip(FRAMES, (kernels.LOCAL, kernels.LOCAL_WORLD_ALIGNED, kernels.WORLD), strict=True))
_FRAME_SYNONYMS = {"body": LOCAL, "link": LOCAL, "mixed": LOCAL_WORLD_ALIGNED, "hybrid": LOCAL_WORLD_ALIGNED, "spatial": WORLD}


def check_frame(frame: object, name: str = "frame", allowed: tuple[str, ...] = FRAMES) -> str:
    """Return `frame` if it is allowed, else raise ShapeError, which suggests the name for frames of other libraries."""
    if isinstance(frame, str) and frame in allowed:
        return frame
    meant = _FRAME_SYNONYMS.get(frame) if isinstance(frame, str) else None
    hint = f' (called "{meant}" here)' if meant in allowed else ""
    raise ShapeError(f"{name} must be one of {', '.join(allowed)}, got {frame!r}{hint}")


def twists_in_frame(frame: str, T: Array, V: Array) -> Array:
    """Return the local twists V (..., 6) of links at poses T (..., 4, 4), expressed in the frame."""
    if frame == LOCAL:
        return V
    w, v = _to_world_axes(T, V)
    return np.concatenate([w, v + np.cross(T[..., :3, 3], w) if frame == WORLD else v], axis=-1)


def accelerations_in_frame(frame: str, T: Array, V: Array, dV: Array) -> Array:
    """Return the rates of `twists_in_frame` for local twists V and their local rates dV."""
    if frame == LOCAL_WORLD_ALIGNED:                                       # d(R v)/dt = R (dv + w x v)
        dV = np.concatenate([dV[..., :3], dV[..., 3:] + np.cross(V[..., :3], V[..., 3:])], axis=-1)
    return twists_in_frame(frame, T, dV)


def wrenches_in_frame(frame: str, T: Array, F: Array) -> Array:
    """Return the local wrenches F (..., 6) on links at poses T (..., 4, 4), expressed in the frame."""
    if frame == LOCAL:
        return F
    m, f = _to_world_axes(T, F)
    return np.concatenate([m + np.cross(T[..., :3, 3], f) if frame == WORLD else m, f], axis=-1)


def _to_world_axes(T: Array, X: Array) -> tuple[Array, Array]:
    R = T[..., :3, :3]
    return (R @ X[..., :3, None])[..., 0], (R @ X[..., 3:, None])[..., 0]


# Memory for the results of batches, reused when nothing refers to it any more --------------------------------------------

# The operating system clears new memory on first access, 1.5 us for each 4 kB on a virtual machine. The C library returns memory
# to the system from 128 kB on, and keeps it at times: 8 MB of derivatives of a Panda took 0.9 us per state, and 0.25 us in reused
# memory. A buffer takes 1 us, `np.empty` 0.1 us.

_MIN_POOLED_SIZE = 1 << 12            # float64 (32 kB): memory of smaller results is reused by the C library
_MAX_POOL_SIZE, _MAX_POOL_BUFFERS = 1 << 25, 32                    # most float64 (256 MB) and buffers in the pool
_pool: list[Buffer] = []                                           # the last used one is last


class BufferMemory(np.ndarray):
    """Memory of a `Buffer`.

    For the base of a view, NumPy skips intermediate arrays as long as the next base has the type of the view. A plain ndarray
    would therefore replace a `ResultMemory` as the base of a result.
    """


class ResultMemory(BufferMemory):
    """View of a `BufferMemory` over which a result is made. The result and all its views keep a reference to it."""


class Buffer:
    """Memory of `size` float64, uninitialized, and a weak reference to the view over which the last result was made."""

    __slots__ = ("last_result", "memory", "size")

    def __init__(self, size: int):
        self.memory, self.size = BufferMemory(size), size
        self.last_result: ref[np.ndarray] = ref(self.memory)


def acquire_buffer(shape: tuple[int, ...]) -> Array:
    """Return an uninitialized array. Its memory is not reused while the array or any view of it exists."""
    dtype = number_type()
    size = -(-prod(shape) * dtype.itemsize // 8)
    if size <= _MIN_POOLED_SIZE:
        return np.empty(shape, dtype)
    buffer = _take_free_buffer(size)
    is_new = buffer is None
    buffer = buffer or Buffer(size)
    view = buffer.memory.view(ResultMemory)
    buffer.last_result = ref(view)
    if size <= _MAX_POOL_SIZE:
        _pool.append(buffer)
        while is_new and (len(_pool) > _MAX_POOL_BUFFERS or sum(x.size for x in tuple(_pool)) > _MAX_POOL_SIZE):
            del _pool[:1]
    return np.ndarray(shape, dtype, view)


def copied(x: Array) -> Array:
    """Return a C-contiguous copy in memory of the pool."""
    copy = acquire_buffer(x.shape)
    copy[...] = x
    return copy


def _take_free_buffer(size: int) -> Buffer | None:
    """Remove a buffer whose last result no longer exists from the pool and return it, or None.

    It is the last used one, which the processor's cache holds. Safe in threads: the thread that removes a buffer owns it.
    """
    for buffer in reversed(tuple(_pool)):
        if buffer.size == size and buffer.last_result() is None:
            try:
                _pool.remove(buffer)
            except ValueError:                 # another thread removed it
                continue
            if buffer.last_result() is None:            # else another thread used it in between
                return buffer
    return None


# Results: in arrays that the caller passes as `out`, or in new ones ------------------------------------------------------

def allocate_out(shape: tuple[int, ...], out: Array | None, inputs: Iterable[Array]) -> Array:
    """Return an array for a result: `out`, or a new array, from which `copy_to_out` copies the result.

    The array is new if `out` is None, if its memory layout is not supported by entry points, or if it shares memory with
    `inputs`. Raises ShapeError for an `out` that cannot hold the result.
    """
    if out is not None:
        _check_out_array(out, shape, "out")
        if out.flags.carray and not any(np.may_share_memory(out, x) for x in inputs):
            return out
    return acquire_buffer(shape)


def allocate_outs(shapes: list[tuple[int, ...]], out: Any, inputs: Iterable[Array]) -> list[Array]:
    """Return arrays for several results, as `allocate_out` does. out: as many arrays, or one array for one result."""
    if out is None:
        return [acquire_buffer(shape) for shape in shapes]
    if len(shapes) == 1:
        return [allocate_out(shapes[0], out, inputs)]
    _check_out_count(out, len(shapes))
    return [allocate_out(shape, x, [*inputs, *out[:k]]) for k, (shape, x) in enumerate(zip(shapes, out, strict=True))]


def copy_to_out(result: Result, out: Any) -> Result:
    """Copy the result (an array or a tuple of arrays) to `out` and return `out`, or return the result if `out` is None."""
    if out is None or out is result:
        return result
    if isinstance(result, np.ndarray):
        _check_out_array(out, result.shape, "out")
        out[...] = result
        return with_arrays(result, (out,))
    items = tuple(result)
    count = sum(x.dtype.kind == "f" for x in items)                   # a mask may follow them
    _check_out_count(out, count)
    for k, (x, y) in enumerate(zip(items, out, strict=False)):
        _check_out_array(y, x.shape, f"out[{k}]")
        if x is not y:
            y[...] = x
    return with_arrays(result, (*out, *items[count:]))


def with_arrays(result: Result, arrays: Sequence[Any]) -> Result:
    """Return the arrays as a result of the type of `result`: one array, a tuple or a sequence that takes its items one by one."""
    kind: Any = type(result)
    filled: Result = arrays[0] if isinstance(result, np.ndarray) else kind(arrays) if type(result) is tuple else kind(*arrays)
    return filled


def check_out(shapes: Sequence[tuple[int, ...]], out: Any) -> None:
    """Raise ShapeError before a long computation if `copy_to_out` could not write results of these shapes to `out`."""
    if out is None:
        return
    _check_out_count(out, len(shapes))
    for k, (x, shape) in enumerate(zip(out, shapes, strict=True)):
        _check_out_array(x, shape, f"out[{k}]")


def _check_out_array(out: object, shape: tuple[int, ...], name: str) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != number_type():
        of = f" of {out.dtype}" if isinstance(out, np.ndarray) else ""
        raise ShapeError(f"{name} is not an array of {number_type()}: got {type(out).__name__}{of}")
    if out.shape != shape:
        raise ShapeError(f"{name} has the wrong shape: expected {shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ShapeError(f"{name} is read-only (give an array that can be written to)")


def _check_out_count(out: object, count: int) -> None:
    if not isinstance(out, (tuple, list)) or len(out) != count:
        given_count = f"{len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
        raise ShapeError(f"out must contain one array for each result: expected a tuple of {count} arrays, got {given_count}")
