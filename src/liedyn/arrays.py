"""Types of arrays in signatures."""
from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.integer[Any]]
ComplexArray: TypeAlias = NDArray[np.complex128]

__all__ = ["Array", "ArrayLike", "ComplexArray", "Integers", "Mask"]
