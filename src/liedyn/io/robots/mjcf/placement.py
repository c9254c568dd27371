"""Placements of MJCF: `pos` and one of five orientations; products of poses in plain Python."""
from __future__ import annotations

import math

from liedyn.io.robots.mjcf.compiler import Compiler
from liedyn.io.robots.mjcf.defaults import ORIENTATIONS
from liedyn.io.robots.mjcf.tree import Element
from liedyn.model.description import IDENTITY, Pose, Rotation, Vector

_ZERO = (0.0, 0.0, 0.0)
_SMALL = 1e-14                       # a vector shorter than this has no direction


def placement(element: Element, compiler: Compiler) -> Pose:
    """Pose of an element in its parent."""
    return Pose(orientation(element, compiler), element.vector("pos", _ZERO))


def orientation(element: Element, compiler: Compiler) -> Rotation:
    given = [key for key in ORIENTATIONS if key in element.attributes]
    if len(given) > 1:
        raise element.problem("several orientations", given[1], found=given, expected="one of them")
    if not given:
        return IDENTITY
    kind, = given
    if kind == "quat":
        w, x, y, z = element.vector("quat", (1.0, 0.0, 0.0, 0.0))
        return Pose.from_xyz_quaternion(_ZERO, unit((x, y, z, w), element, "quat")).rotation
    if kind == "axisangle":
        *axis, angle = element.vector("axisangle", (0.0,) * 4)
        return turn(unit(axis, element, "axisangle"), angle * compiler.angle)
    if kind == "euler":
        return _euler(element.vector("euler", _ZERO), compiler)
    if kind == "xyaxes":
        found = element.vector("xyaxes", (0.0,) * 6)
        x = unit(found[:3], element, "xyaxes")
        along = sum(a * b for a, b in zip(x, found[3:], strict=True))
        y = unit([b - along * a for a, b in zip(x, found[3:], strict=True)], element, "xyaxes")
        z = cross(x, y)
        return tuple(value for row in zip(x, y, z, strict=True) for value in row)
    return from_z(unit(element.vector("zaxis", _ZERO), element, "zaxis"))


def unit(vector, element: Element, attribute: str) -> tuple[float, ...]:
    length = math.hypot(*vector)
    if length < _SMALL:
        raise element.problem("the zero vector", attribute, found=element.text(attribute), expected="a direction")
    return tuple(x / length for x in vector)


def turn(axis: Vector, angle: float) -> Rotation:
    """Rotation about a unit axis."""
    s, c = math.sin(angle / 2), math.cos(angle / 2)
    return Pose.from_xyz_quaternion(_ZERO, (*(x * s for x in axis), c)).rotation


def from_z(z: Vector) -> Rotation:
    """The shortest rotation that takes the z axis to the unit vector z; about x where that is the opposite."""
    x, y = -z[1], z[0]                                           # of the axis, z axis x z
    s = math.hypot(x, y)
    angle = math.atan2(s, z[2])
    return turn((x / s, y / s, 0.0) if s > _SMALL else (1.0, 0.0, 0.0), angle)


def _euler(angles: Vector, compiler: Compiler) -> Rotation:
    """Small letters turn about moving axes, capital ones about fixed axes, in the order of the sequence."""
    R = IDENTITY
    for letter, angle in zip(compiler.sequence, angles, strict=True):
        axis = tuple(float(letter.lower() == name) for name in "xyz")
        Q = turn(axis, angle * compiler.angle)
        R = product(R, Q) if letter.islower() else product(Q, R)
    return R


def cross(a, b) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def rotate(R: Rotation, v) -> Vector:
    x, y, z = v
    return R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z


def transpose(R: Rotation) -> Rotation:
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


def product(A: Rotation, B: Rotation) -> Rotation:
    if B == IDENTITY:
        return A
    columns = [rotate(A, B[k::3]) for k in range(3)]
    return tuple(column[i] for i in range(3) for column in columns)


def plus(a, b) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a, b) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def compose(A: Pose, B: Pose) -> Pose:
    """A B: from B's frame to where A leads."""
    return Pose(product(A.rotation, B.rotation), plus(A.translation, rotate(A.rotation, B.translation)))


def inverse(A: Pose) -> Pose:
    R = transpose(A.rotation)
    return Pose(R, tuple(-x + 0.0 for x in rotate(R, A.translation)))
