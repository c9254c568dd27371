"""Values of the elements of a robot description: arrays and lists as tuples of floats, and locations that errors name.

Values that are not numbers are returned unchanged: `model.validate` reports them.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ArgumentError, ElementPlace, ModelError, Place, escape_nonprintable

if TYPE_CHECKING:
    from liedyn.model.link_tree import Element

_SYMMETRIC = 1e-9          # of the maximum entry of an inertia matrix: rounding of a product R I R^T
_UPPER = np.triu_indices(3)


def element_location(element: Element, part: str | None = None) -> Place:
    """Return the location of a link, joint, … or of a part of it such as `axis`. Without a file, it contains the name."""
    place = element.place
    key = place.key or f'{type(element).__name__.lower()} "{escape_nonprintable(str(element.name))}"'
    if part is None:
        return Place(place.file, place.line, key)
    if isinstance(place, ElementPlace):
        return place.at(part)
    return Place(place.file, place.line, f"{key}, {part}")


def as_float(value: Any) -> Any:
    """Return a number as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def as_floats(values: Any) -> Any:
    """Return the numbers of a sequence or array as a tuple of floats."""
    if isinstance(values, str):
        return values
    try:
        return tuple(map(float, values))
    except (TypeError, ValueError):
        return values


def as_vectors(values: Any) -> Any:
    """Return a sequence of vectors, or the rows of an array, as a tuple of tuples."""
    try:
        return tuple(map(as_floats, values))
    except TypeError:
        return values


def as_inertia(value: Any, place: Place) -> Any:
    """Return xx, xy, xz, yy, yz, zz of an inertia: these six numbers, the three of its diagonal, or a (3, 3) matrix."""
    if np.shape(value) == (3, 3):
        I = np.asarray(value, dtype=float)
        if not np.allclose(I, I.T, rtol=0.0, atol=_SYMMETRIC * np.abs(I).max()):
            raise ModelError("the inertia is not symmetric", place=place, found=I.tolist(), expected="a symmetric matrix")
        value = I[_UPPER]
    elif np.shape(value) == (3,):
        value = np.diag(value)[_UPPER]
    return as_floats(value)


def as_matrix(value: Any, place: Place, name: str) -> Array:
    """Return a (4, 4) pose. Raise ModelError for anything else, with the name of the pose."""
    try:
        T = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        T = np.empty(0)
    if T.shape != (4, 4) or not np.array_equal(T[3], [0, 0, 0, 1]):
        raise ModelError(f"the {name} is not a pose", place=place, found=T.tolist() if T.size else value,
                         expected="a position [x, y, z], a Pose, or a (4, 4) matrix whose last row is 0 0 0 1")
    return T


def as_each(value: Any, count: int, place: Place, name: str) -> list[float]:
    """Return a number for each of `count` coordinates, from one for all or a sequence. `name` is that of the quantity."""
    values = [value] * count if np.ndim(value) == 0 else list(value)
    if len(values) != count:
        raise ModelError(f"wrong {name}", place=place, found=len(values), expected=f"one number, or {count}")
    try:
        return [float(x) for x in values]
    except (TypeError, ValueError):
        raise ModelError(f"wrong {name}", place=place, found=value, expected="numbers") from None


def as_elements(values: Iterable[Any], kind: type, owner: str, name: str) -> tuple[Any, ...]:
    """Return elements as a tuple. Raise ArgumentError for one of another class."""
    is_sequence = isinstance(values, Iterable) and not isinstance(values, str)
    elements = tuple(values) if is_sequence else ()
    for element in elements if is_sequence else (values,):
        if not is_sequence or not isinstance(element, kind):
            raise ArgumentError(f"{owner}: {name} must be a sequence of {kind.__name__}; found {type(element).__name__} "
                                f"{element!r:.60}")
    return elements


def set_fields(element: object, **values: Any) -> None:
    """Set the fields of a frozen dataclass in its constructor."""
    for name, value in values.items():
        object.__setattr__(element, name, value)
