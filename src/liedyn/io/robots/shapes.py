"""Inertia of uniform bodies, and of bodies that are turned."""
from __future__ import annotations

import math
from collections.abc import Sequence

from liedyn.model.description import Rotation

Inertia = tuple[float, float, float, float, float, float]        # xx, xy, xz, yy, yz, zz

SHAPES: dict[str, tuple[str, ...]] = {"box": ("x", "y", "z"), "sphere": ("radius",), "cylinder": ("radius", "length"),
                                      "capsule": ("radius", "length")}


def uniform(shape: str, sizes: Sequence[float]) -> tuple[float, Inertia]:
    """Volume [m^3] and inertia about the centre for a mass of 1 kg [m^2] of a uniform body.

    `sizes` are those named in SHAPES [m]; cylinder and capsule lie along z, the length of a capsule is that of its
    cylindrical part.
    """
    if shape == "box":
        x, y, z = (s * s / 12 for s in sizes)
        return math.prod(sizes), (y + z, 0.0, 0.0, x + z, 0.0, x + y)
    r = sizes[0]
    if shape == "sphere":
        return 4 / 3 * math.pi * r * r * r, _diagonal(0.4 * r * r, 0.4 * r * r)
    length = sizes[1]
    cylinder = math.pi * r * r * length
    across, along = r * r / 4 + length * length / 12, r * r / 2
    if shape == "cylinder":
        return cylinder, _diagonal(across, along)
    ends = 4 / 3 * math.pi * r * r * r                 # two half balls, their centres 3/8 r beyond the cylinder's ends
    ends_across, ends_along = 0.4 * r * r + length * length / 4 + 3 / 8 * length * r, 0.4 * r * r
    share = length / (length + 4 / 3 * r)              # of the cylinder in the volume
    return cylinder + ends, _diagonal(share * across + (1 - share) * ends_across, share * along + (1 - share) * ends_along)


def rotated_inertia(R: Rotation, inertia: Inertia) -> Inertia:
    """R I R^T."""
    xx, xy, xz, yy, yz, zz = inertia
    rows = (R[0:3], R[3:6], R[6:9])
    image = [(xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c) for a, b, c in rows]
    return tuple(sum(x * y for x, y in zip(image[i], rows[j], strict=True))
                 for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))


def _diagonal(across: float, along: float) -> Inertia:
    return across, 0.0, 0.0, across, 0.0, along
