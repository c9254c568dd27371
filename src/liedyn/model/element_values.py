"""Values of the elements of a robot description: arrays and lists as tuples of floats, checks, and locations that errors name.

Conversions return values that are not numbers unchanged: checks report them.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ArgumentError, ElementPlace, ModelError, Place, escape_nonprintable

if TYPE_CHECKING:
    from liedyn.model.link_tree import Element
    from liedyn.model.links import Pose

_SYMMETRIC = 1e-9          # of the maximum entry of an inertia matrix: rounding of a product R I R^T
MAX_INPUT = 1e30           # of masses, lengths, inertias, gains: the cube of m r^2 is far from overflow
_ORTHONORMAL = 1e-6       # of entries, which are at most 1: rounding allowed in a rotation that people print
UNIT_QUATERNION = 1e-6     # of the norm of a quaternion: what rounding to seven digits leaves
_UPPER = np.triu_indices(3)
_TEXTS = {"name", "type", "a", "b", "parent", "child", "link"}        # fields of elements


def element_location(element: Element, part: str | None = None) -> Place:
    """Return the location of a link, joint, … or of a part of it such as `axis`. Without a file, it contains the name."""
    place = element.place
    noun = type(element).__name__.removeprefix("Force").lower()
    key = place.key or f'{noun} "{escape_nonprintable(str(element.name))}"'
    if part is None:
        return Place(place.file, place.line, key)
    if isinstance(place, ElementPlace):
        return place.at(part)
    return Place(place.file, place.line, f"{key}, {part}")


def as_float(value: Any) -> Any:
    """Return a number as a float."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def as_floats(values: Any) -> Any:
    """Return the numbers of a sequence or array as a tuple of floats."""
    if isinstance(values, str):
        return values
    try:
        return tuple(map(float, values))
    except (TypeError, ValueError, OverflowError):
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
    except (TypeError, ValueError, OverflowError):
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
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"wrong {name}", place=place, found=value, expected="numbers") from None


def check_finite(values: Iterable[Any], count: int, place: Place, quantity: str) -> None:
    """Raise ModelError unless `values` are `count` finite numbers of at most MAX_INPUT in magnitude."""
    kind = "a number" if count == 1 else f"{count} numbers"
    try:
        converted = [float(x) for x in values]
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"wrong {quantity}", place=place, found=values, expected=kind) from None
    if len(converted) != count:
        raise ModelError(f"wrong {quantity}", place=place, found=list(values), expected=kind)
    if not all(map(math.isfinite, converted)):
        raise ModelError(f"not a finite number in the {quantity}", place=place, found=converted[0] if count == 1 else converted)
    if max(map(abs, converted)) > MAX_INPUT:
        raise ModelError(f"number too large in the {quantity}", place=place, found=converted[0] if count == 1 else converted,
                         expected=f"at most {MAX_INPUT:g} in magnitude")


def check_pose(pose: Pose, place: Place, name: str) -> None:
    """Raise ModelError unless a pose has finite numbers and an orthonormal right-handed rotation."""
    check_finite(pose.translation, 3, place, name)
    check_finite(pose.rotation, 9, place, name)
    R = np.array(pose.rotation, dtype=float).reshape(3, 3)
    if np.abs(R @ R.T - np.eye(3)).max() > _ORTHONORMAL or np.linalg.det(R) < 0:
        raise ModelError(f"the rotation of the {name} is not a rotation matrix", place=place, found=list(pose.rotation),
                         expected="an orthonormal right-handed matrix")


def as_elements(values: Iterable[Any], kind: type, owner: str, name: str) -> tuple[Any, ...]:
    """Return elements as a tuple. Raise ArgumentError for one of another class."""
    is_sequence = isinstance(values, Iterable) and not isinstance(values, str)
    elements = tuple(values) if is_sequence else ()
    for element in elements if is_sequence else (values,):
        if not is_sequence or not isinstance(element, kind):
            raise ArgumentError(f"{owner}: {name} must be a sequence of {kind.__name__}, got {type(element).__name__} "
                                f"{element!r:.60}")
    return elements


def set_fields(element: Any, **values: Any) -> None:
    """Set the fields of a frozen dataclass in its constructor. Raise ModelError for a name or type that is not a text."""
    for name, value in values.items():
        object.__setattr__(element, name, value)
    for name in _TEXTS & values.keys() if hasattr(element, "place") else ():
        if not isinstance(values[name], str):
            raise ModelError(f"wrong {name}", place=element_location(element, name), found=values[name], expected="a text")
