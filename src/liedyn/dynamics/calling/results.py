"""Where results go: to arrays that the caller gives as `out`, or to new ones."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.rooms import room_for
from liedyn.errors import ShapeError


def place_for(shape: tuple[int, ...], out, given) -> np.ndarray:
    """An array to compute a result in: `out`, unless it is None, or entries cannot write to it as it lies, or it shares memory
    with what is `given`; then a new one, which `hand_over` copies.

    Raises ShapeError for an `out` that cannot take the result."""
    if out is not None:
        _check(out, shape, "out")
        if out.flags.carray and not any(np.may_share_memory(out, x) for x in given):
            return out
    return room_for(shape)


def places_for(shapes: list[tuple[int, ...]], out, given) -> list[np.ndarray]:
    """The same for several results; out: so many arrays, or one for one."""
    if out is None:
        return [room_for(shape) for shape in shapes]
    if len(shapes) == 1:
        return [place_for(shapes[0], out, given)]
    _check_count(out, len(shapes))
    return [place_for(shape, x, [*given, *out[:k]]) for k, (shape, x) in enumerate(zip(shapes, out, strict=True))]


def hand_over(result, out):
    """`out`, an array or a tuple of arrays as the result is, which now holds it; the result itself where there is none."""
    if out is None or out is result:
        return result
    if isinstance(result, np.ndarray):
        _check(out, result.shape, "out")
        out[...] = result
        return out
    count = sum(x.dtype == np.float64 for x in result)                  # a mask may come after them
    _check_count(out, count)
    for k, (x, y) in enumerate(zip(result, out, strict=False)):
        _check(y, x.shape, f"out[{k}]")
        if x is not y:
            y[...] = x
    found = (*out, *result[count:])
    return found if type(result) is tuple else type(result)(*found)


def check_places(shapes, out) -> None:
    """ShapeError for an `out` that `hand_over` could not write results of these shapes to: before a long computation."""
    if out is None:
        return
    _check_count(out, len(shapes))
    for k, (x, shape) in enumerate(zip(out, shapes, strict=True)):
        _check(x, shape, f"out[{k}]")


def _check(out, shape, name) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        of = f" of {out.dtype}" if isinstance(out, np.ndarray) else ""
        raise ShapeError(f"{name} is not an array of float64; found {type(out).__name__}{of}")
    if out.shape != shape:
        raise ShapeError(f"{name} has the wrong shape; found {out.shape}, expected {shape}")
    if not out.flags.writeable:
        raise ShapeError(f"{name} is read-only (give an array that can be written to)")


def _check_count(out, count) -> None:
    if not isinstance(out, (tuple, list)) or len(out) != count:
        found = f"{len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
        raise ShapeError(f"out holds one array for each result; found {found}, expected a tuple of {count} arrays")
