"""Types of arrays in signatures, and arrays in short reprs."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.integer[Any]]
ComplexArray: TypeAlias = NDArray[np.complex128]

__all__ = ["Actuated", "Array", "ArrayLike", "Base", "BaseFrame", "ComplexArray", "Controller", "Coriolis", "Criterion", "Frame",
           "Integers", "Mask", "Matrices", "Method", "OnError", "Patterns", "Pfaffian",
           "Progress", "Wrenches", "short"]


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
Method: TypeAlias = Literal["rk4", "semi_implicit"]                      # of a rollout
OnError: TypeAlias = Literal["raise", "nan"] | Callable[[Any, Exception], object]    # of a state's index and its error


class Progress(Protocol):
    """Display of the progress of a computation."""

    def stage(self, text: str) -> AbstractContextManager[object]:
        """Return a context within which a stage of this name is shown."""

    def update(self, fraction: float) -> None:
        """Show which fraction of the stage is finished."""
