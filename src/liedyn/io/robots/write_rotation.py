"""Rotation matrices as the angles or the quaternion of a file: those that read back to the same matrix, to the bit where there
are such, else to rounding."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from liedyn.model.description import IDENTITY, Pose, Rotation

Triple = tuple[float, float, float]
_DIGITS = range(4, 17)               # of the rounded angles that are tried: files hold 1.5708 more often than 1.5707963267948966


def rpy_of(R: Rotation) -> Triple:
    """Roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll), also where the pitch is a right angle."""
    if R == IDENTITY:
        return 0.0, 0.0, 0.0
    best, least = (0.0, 0.0, 0.0), math.inf
    for rpy in _nearby(R):
        if (found := error(R, rpy)) < least:
            best, least = rpy, found
        if not least:
            break
    return best


def error(R: Rotation, rpy: Triple) -> float:
    """Largest difference of an entry."""
    return _difference(R, Pose.from_xyz_rpy(rpy=rpy).rotation)


def quaternion_of(R: Rotation) -> tuple[float, float, float, float]:
    """Unit quaternion x y z w, w >= 0, by its largest component."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    squares = (1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz)     # 4 x^2, 4 y^2, 4 z^2, 4 w^2
    k = max(range(4), key=squares.__getitem__)
    rows = ((squares[0], xy + yx, xz + zx, zy - yz), (xy + yx, squares[1], yz + zy, xz - zx),
            (xz + zx, yz + zy, squares[2], yx - xy), (zy - yz, xz - zx, yx - xy, squares[3]))
    norm = math.copysign(math.hypot(*rows[k]), rows[k][3])
    return tuple(x / norm + 0.0 for x in rows[k])


def quaternion_error(R: Rotation, quaternion: tuple[float, ...]) -> float:
    norm = math.hypot(*quaternion)
    return _difference(R, Pose.from_xyz_quaternion((0, 0, 0), [x / norm for x in quaternion]).rotation)


def _difference(R: Rotation, other: Rotation) -> float:
    return max(abs(a - b) for a, b in zip(R, other, strict=True))


def _nearby(R: Rotation) -> Iterator[Triple]:
    """The angles, first the rounded ones, then their neighbours among the floats."""
    angles = list(dict.fromkeys(_angles(R)))
    for rpy in angles:
        yield from (tuple(float(f"{x:.{digits}g}") for x in rpy) for digits in _DIGITS)
    for rpy in angles:
        yield rpy
        yield from itertools.product(*[(x, math.nextafter(x, -4.0), math.nextafter(x, 4.0)) for x in rpy])


def _angles(R: Rotation) -> Iterator[Triple]:
    """The two triples, |pitch| up to a right angle and beyond. Where the pitch is a right angle to rounding, roll and yaw are one
    angle: the roll is what the last row says, or 0."""
    flat = math.hypot(R[7], R[8])
    for sign in (1.0, -1.0):
        pitch = math.atan2(-R[6], sign * flat)
        for roll in {math.atan2(sign * R[7], sign * R[8]), 0.0 if flat < 1e-12 else math.atan2(sign * R[7], sign * R[8])}:
            s, c = math.sin(roll), math.cos(roll)
            yield roll, pitch, math.atan2(sign * R[3], sign * R[0])
            yield roll, pitch, math.atan2(R[2] * s - R[1] * c, R[4] * c - R[5] * s)        # of R Rx(-roll): never ill-conditioned
