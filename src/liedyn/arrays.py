"""Types of arrays in signatures, arrays in short reprs, and arrays aligned to cache lines."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from ctypes import addressof, c_char
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.integer[Any]]
ComplexArray: TypeAlias = NDArray[np.complex128]

__all__ = ["Actuated", "Array", "ArrayLike", "Base", "BaseFrame", "ComplexArray", "Controller", "Coriolis", "Criterion", "Frame",
           "Integers", "Mask", "Matrices", "Method", "OnError", "Patterns", "Pfaffian",
           "Precision", "Progress", "Wrenches", "cache_aligned", "short"]


def short(x: Array) -> str:
    """An array in a repr: rounded, only the ends of a long one."""
    return np.array2string(np.round(x, 6) + 0.0, precision=6, threshold=12)


# Types of arguments and results that public functions share -------------------------------------------------------------

Wrenches: TypeAlias = ArrayLike | Mapping[str, ArrayLike]                # (..., n_links, 6), or by the names of links
Pfaffian: TypeAlias = Callable[[Array], ArrayLike]                       # A(q) of further rows A v = 0
Actuated: TypeAlias = Sequence[str] | Sequence[bool] | Mask     # names of joints, or a mask over v
Patterns: TypeAlias = str | Sequence[str]                                # names or patterns of names, one or several
Matrices: TypeAlias = Sequence[Array]                                    # for so many results
Frame: TypeAlias = Literal["local", "local_world_aligned", "world"]
BaseFrame: TypeAlias = Literal["local", "world"]
Base: TypeAlias = Literal["fixed", "floating"]
Criterion: TypeAlias = Literal["unique", "least_constraint_force", "least_torque"]
Controller: TypeAlias = Callable[[float, Array, Array], ArrayLike | Mapping[str, float]]     # (t, q, v) -> tau
Coriolis: TypeAlias = Literal["recursive", "christoffel", "factorized"]
Precision: TypeAlias = Literal["float64", "float32"] | np.dtype[Any] | type[np.floating[Any]]       # of numbers and results
Method: TypeAlias = Literal["rk4", "semi_implicit"]                      # of a rollout
OnError: TypeAlias = Literal["raise", "nan"] | Callable[[Any, Exception], object]    # of a state's index and its error


class Progress(Protocol):
    """Display of the progress of a computation."""

    def stage(self, text: str) -> AbstractContextManager[object]:
        """Return a context within which a stage of this name is shown."""

    def update(self, fraction: float) -> None:
        """Show which fraction of the stage is finished."""


# Aligned arrays. Kernels load eight numbers at a time; unaligned loads touch two cache lines ----------------------------

_CACHE_LINE = 64       # bytes


def cache_aligned(count: int, at: int = 0, make: Callable[[int], Array] = np.zeros) -> Array:
    """Return an array of `count` numbers in which number `at` is at the start of a cache line."""
    raw = make(count + _CACHE_LINE // 8)
    address = addressof(c_char.from_buffer(raw.data))        # raw.ctypes.data takes 0.7 us more
    first = -(address + 8 * at) % _CACHE_LINE // 8
    return raw[first:first + count]
