"""Types of arrays in signatures, and arrays in short reprs."""
from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.integer[Any]]
ComplexArray: TypeAlias = NDArray[np.complex128]

__all__ = ["Array", "ArrayLike", "ComplexArray", "Integers", "Mask", "short"]


def short(x: Array) -> str:
    """An array in a repr: rounded, only the ends of a long one."""
    return np.array2string(np.round(x, 6) + 0.0, precision=6, threshold=12)
