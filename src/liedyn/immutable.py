"""Base class of public results and descriptions that hold arrays: read-only, also after unpickling, and comparable."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Immutable:
    """Base class of frozen dataclasses (with ``eq=False``) whose arrays are read-only, also in tuples, lists and dicts.

    Two objects are equal if their fields are equal (``field(compare=False)`` excludes a field). NaN equals NaN.
    """

    def __post_init__(self) -> None:
        for item in fields(self):                                         # type: ignore[arg-type]  # subclasses are dataclasses
            object.__setattr__(self, item.name, read_only(getattr(self, item.name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: read_only(x) for name, x in state.items()})        # pickle and copy return writeable arrays

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(same(getattr(self, item.name), getattr(other, item.name))
                                    for item in fields(self) if item.compare)         # type: ignore[arg-type]

    def __hash__(self) -> int:
        """Return a hash of the str and int fields, which are cheap to hash. Equal objects have equal hashes."""
        values = (getattr(self, item.name) for item in fields(self) if item.compare)   # type: ignore[arg-type]
        return hash((type(self), *(x for x in values if isinstance(x, (str, int)))))


class read_only_property(cached_property[T]):
    """A cached property whose arrays are read-only."""

    def __init__(self, function: Callable[[Any], T]):
        super().__init__(lambda owner: read_only(function(owner)))
        self.__doc__ = function.__doc__


def read_only(x: Any) -> Any:
    """Return `x` with read-only views of its writeable arrays. A tuple, list or dict without any is returned unchanged."""
    if isinstance(x, np.ndarray):
        if not x.flags.writeable:
            return x
        view = x.view()
        view.flags.writeable = False
        return view
    if type(x) is dict:
        values = [read_only(item) for item in x.values()]
        return x if all(map(_is, values, x.values())) else dict(zip(x, values, strict=True))
    if type(x) in (tuple, list):
        values = [read_only(item) for item in x]
        return x if all(map(_is, values, x)) else type(x)(values)
    return x


def _is(x: object, y: object) -> bool:
    return x is y


def same(x: Any, y: Any) -> bool:
    """Return whether two values are equal, arrays element by element. NaN equals NaN."""
    if x is y:
        return True
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)) or x.shape != y.shape:
            return False
        return bool(((x == y) | ((x != x) & (y != y))).all())
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(same(x[name], y[name]) for name in x)
    if isinstance(x, (tuple, list)) and type(x) is type(y):
        return len(x) == len(y) and all(map(same, x, y))
    return bool(x == y) or bool(x != x and y != y)
