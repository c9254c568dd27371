"""Mass properties: uniform bodies of simple shapes, turned bodies, and bodies of several parts."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.model.spatial import pose

if TYPE_CHECKING:
    from liedyn.model.description import Pose, Rotation, Vector

Inertia = tuple[float, float, float, float, float, float]        # xx, xy, xz, yy, yz, zz

SHAPES: dict[str, tuple[str, ...]] = {"box": ("x", "y", "z"), "sphere": ("radius",), "cylinder": ("radius", "length"),
                                      "capsule": ("radius", "length")}


def uniform(shape: str, sizes: Sequence[float]) -> tuple[float, Inertia]:
    """Return the volume [m^3] of a uniform body, and its inertia about the centre for a mass of 1 kg [m^2].

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
    fraction = length / (length + 4 / 3 * r)              # of the cylinder in the volume
    return cylinder + ends, _diagonal(fraction * across + (1 - fraction) * ends_across, fraction * along + (1 - fraction) *
                                      ends_along)


def rotated_inertia(R: Rotation, inertia: Inertia) -> Inertia:
    """Return R I R^T."""
    xx, xy, xz, yy, yz, zz = inertia
    rows = (R[0:3], R[3:6], R[6:9])
    image = [(xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c) for a, b, c in rows]
    def entry(i: int, j: int) -> float:
        return sum(x * y for x, y in zip(image[i], rows[j], strict=True))

    return entry(0, 0), entry(0, 1), entry(0, 2), entry(1, 1), entry(1, 2), entry(2, 2)


def _diagonal(across: float, along: float) -> Inertia:
    return across, 0.0, 0.0, across, 0.0, along


@dataclass(frozen=True, slots=True)
class Mass:
    """Mass, centre of mass and inertia about it, along the axes of a frame."""

    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0,) * 6

    def seen_from(self, frame: Pose) -> Mass:
        """Return the mass in another frame, in which this frame has the pose `frame`."""
        T = np.eye(4)
        T[:3, 3] = self.com
        x, y, z = ((pose(frame) @ T)[:3, 3] + 0.0).tolist()
        return Mass(self.mass, (x, y, z), rotated_inertia(frame.rotation, self.inertia))


def total(parts: Sequence[Mass]) -> Mass:
    """Return the mass, centre of mass and inertia of all parts together, in their common frame."""
    parts = [part for part in parts if part.mass > 0]
    if len(parts) < 2:
        return parts[0] if parts else Mass()
    mass = math.fsum(part.mass for part in parts)
    x_com, y_com, z_com = (math.fsum(part.mass * part.com[k] for part in parts) / mass for k in range(3))
    inertia = [0.0] * 6
    for part in parts:
        x, y, z = part.com[0] - x_com, part.com[1] - y_com, part.com[2] - z_com
        moved = (y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y)
        inertia = [total_entry + entry + part.mass * step for total_entry, entry,
                   step in zip(inertia, part.inertia, moved, strict=True)]
    xx, xy, xz, yy, yz, zz = inertia
    return Mass(mass, (x_com, y_com, z_com), (xx, xy, xz, yy, yz, zz))
