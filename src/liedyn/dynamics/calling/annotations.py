"""Types of arguments and results that public functions share."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Wrenches: TypeAlias = ArrayLike | Mapping[str, ArrayLike]                # (..., n_links, 6), or by the names of links
Pfaffian: TypeAlias = ArrayLike | Callable[[Array], ArrayLike]           # A(q) of further rows A v = 0
Actuated: TypeAlias = Sequence[str] | Sequence[bool] | NDArray[np.bool_]     # names of joints, or a mask over v
Matrices: TypeAlias = Sequence[Array]                                    # for so many results
Frame: TypeAlias = Literal["local", "local_world_aligned", "world"]
BaseFrame: TypeAlias = Literal["local", "world"]
OnError: TypeAlias = Literal["raise", "nan"] | Callable[[Any, Exception], object]    # of a state's index and its error

__all__ = ["Actuated", "Array", "ArrayLike", "BaseFrame", "Frame", "Matrices", "OnError", "Pfaffian", "Wrenches"]
