"""Checks of the numbers in a description: finite and not too large, as many as expected, a direction, a rotation."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from liedyn.errors import ModelError, Place
from liedyn.model.description import LARGEST, Pose

_NO_DIRECTION = 1e-9                 # absolute: an axis is meant to be of unit length, and a screw to be one radian or metre
_ORTHONORMAL = 1e-6                  # of entries, which are at most 1: rounding allowed in a rotation that people print
_PARALLEL = 1e-6                     # rad, of unit axes: two closer than this are one, printed with seven digits
_UNIT_ROUNDING = 4 * 2.0**-52        # of the length of a normalized vector: rounding of its three components and of their norm


def check_finite(values, count: int, place: Place, what: str) -> None:
    try:
        numbers = [float(x) for x in values]
    except (TypeError, ValueError):
        raise ModelError(f"wrong {what}", place=place, found=values, expected=f"{count} numbers") from None
    if len(numbers) != count:
        raise ModelError(f"wrong {what}", place=place, found=list(values), expected=f"{count} numbers")
    if not all(map(math.isfinite, numbers)):
        raise ModelError(f"not a finite number in the {what}", place=place, found=numbers[0] if count == 1 else numbers)
    if max(map(abs, numbers)) > LARGEST:
        raise ModelError(f"number too large in the {what}", place=place, found=numbers[0] if count == 1 else numbers,
                         expected=f"at most {LARGEST:g} in magnitude")


def check_axes(axes, count: int, kind: str, place: Place) -> None:
    """`count` axes with a direction, for a `kind` such as "a joint of type planar"."""
    if len(axes) != count:
        raise ModelError("wrong number of axes", place=place, found=len(axes), expected=f"{count} for {kind}")
    for axis in axes:
        check_finite(axis, 3, place, "axis")
        check_direction(axis, place)


def check_direction(axis, place: Place) -> None:
    if not has_direction(axis):
        raise ModelError("the axis is the zero vector", place=place, found=list(axis), expected="a non-zero vector")


def check_not_parallel(axes, place: Place) -> None:
    first, second = (np.array(axis) / math.hypot(*axis) for axis in axes)
    if np.linalg.norm(np.cross(first, second)) < _PARALLEL:
        raise ModelError("the two axes are parallel", place=place, found=[list(axis) for axis in axes], expected="two directions")


def check_pose(pose: Pose, place: Place, what: str) -> None:
    check_finite(pose.translation, 3, place, what)
    check_finite(pose.rotation, 9, place, what)
    R = np.array(pose.rotation, dtype=float).reshape(3, 3)
    if np.abs(R @ R.T - np.eye(3)).max() > _ORTHONORMAL or np.linalg.det(R) < 0:
        raise ModelError(f"the rotation of the {what} is not a rotation matrix", place=place, found=list(pose.rotation),
                         expected="an orthonormal right-handed matrix")


def has_direction(vector) -> bool:
    return _NO_DIRECTION <= math.hypot(*vector) < math.inf


def with_unit_axes(element):
    """The joint or loop with its axes of unit length."""
    return replace(element, axes=tuple(unit(axis) for axis in element.axes))


def unit(axis) -> tuple[float, ...]:
    """The axis divided by its length. A unit vector stays as it is, so that a robot that was written reads back bit by bit."""
    length = math.hypot(*axis)
    if abs(length - 1.0) <= _UNIT_ROUNDING:
        return tuple(map(float, axis))
    return tuple(float(x) / length for x in axis)
