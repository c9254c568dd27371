"""Mass properties: uniform bodies of simple shapes and triangles, turned bodies, and bodies of several parts."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import ModelError, Place, nearest
from liedyn.model.element_values import check_finite, check_pose
from liedyn.model.spatial import pose

if TYPE_CHECKING:
    from liedyn.model.links import Pose, Rotation, Shape, Vector

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


def uniform_triangles(points: Array, triangles: Integers, kind: str) -> Mass:
    """Return volume, centre and inertia of a uniform body of density 1 between triangles (m, 3) of points (n, 3).

    kind  `exact`: the volume that they enclose, all oriented alike; `legacy`: as MuJoCo, the sum of the tetrahedra between the
          triangles and the centre of the surface, whatever their orientation; `shell`: the surface, with its area as the mass

    Moments of simplices with equal weights of their corners. A simplex of d + 1 corners x_i and mass m has the second
    moment m / ((d + 1)(d + 2)) (sum x_i x_i^T + s s^T), with s the sum of its corners.
    """
    corners = points[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    com = np.average(corners.mean(axis=1), axis=0, weights=areas) if areas.any() else np.zeros(3)
    if kind != "shell":
        volumes = _volumes(corners - com, kind)
        com = com + np.einsum("i,ijk->k", volumes, corners - com) / 4 / (volumes.sum() or 1.0)
    corners = corners - com
    masses, count = (areas, 12) if kind == "shell" else (_volumes(corners, kind), 20)
    sums = corners.sum(axis=1)
    moments = (np.einsum("i,ijk,ijl->kl", masses, corners, corners) + np.einsum("i,ik,il->kl", masses, sums, sums)) / count
    inertia = np.trace(moments) * np.eye(3) - moments
    x, y, z = com.tolist()
    xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)].tolist()
    return Mass(float(masses.sum()), (x, y, z), (xx, xy, xz, yy, yz, zz))


def _volumes(corners: Array, kind: str) -> Array:
    """Return the volumes of the tetrahedra between triangles (m, 3, 3) and the origin; negative for those that face it."""
    volumes: Array = np.linalg.det(corners) / 6
    return np.abs(volumes) if kind == "legacy" else volumes


def uniform_body(shapes: Sequence[Shape], mass: float | None, density: float | None,
                 place: Place) -> tuple[float, Vector, Inertia]:
    """Return mass, centre of mass and inertia about it, in the link frame, of a uniform body of shapes.

    Either its mass or its density is a number. Raise ModelError with the location of the link otherwise.
    """
    if (mass is None) == (density is None):
        raise ModelError("a shape needs either mass or density", place=place, expected="one of mass, density")
    unit_bodies = [(shape, *uniform(shape.kind, shape.sizes)) for shape in shapes]
    volume = math.fsum(of_shape for _, of_shape, _ in unit_bodies)
    body = total([_part(1.0 if len(shapes) == 1 else of_shape / volume, inertia).seen_from(shape.pose)
                  for shape, of_shape, inertia in unit_bodies])
    if density is not None:
        _check_positive(density, place, "density")
        mass = density * volume
    scale = mass if isinstance(mass, float) else 0.0                         # `validate` reports a mass that is not a number
    xx, xy, xz, yy, yz, zz = (scale * x for x in body.inertia)
    return mass, body.com, (xx, xy, xz, yy, yz, zz)                          # type: ignore[return-value]


def _part(mass: float, inertia: Inertia) -> Mass:
    """Return a body from its inertia for a mass of 1 kg."""
    xx, xy, xz, yy, yz, zz = (mass * x for x in inertia)
    return Mass(mass, inertia=(xx, xy, xz, yy, yz, zz))


def check_shape(shape: Shape, place: Place) -> None:
    """Raise ModelError unless a shape has a known kind, positive sizes, a pose and a colour."""
    if shape.kind not in SHAPES:
        raise ModelError("unknown shape", place=place, found=shape.kind, expected="one of " + ", ".join(SHAPES),
                         hint=nearest(shape.kind, SHAPES))
    names = SHAPES[shape.kind]
    if not isinstance(shape.sizes, tuple) or len(shape.sizes) != len(names):
        raise ModelError(f"wrong sizes of a {shape.kind}", place=place, found=shape.sizes, expected=", ".join(names))
    for name, size in zip(names, shape.sizes, strict=True):
        _check_positive(size, place, f"{name} of the {shape.kind}")
    check_pose(shape.pose, place, f"pose of the {shape.kind}")
    if shape.colour is not None:
        check_finite(shape.colour, 3, place, f"colour of the {shape.kind}")
        if not all(0.0 <= x <= 1.0 for x in shape.colour):
            raise ModelError(f"wrong colour of the {shape.kind}", place=place, found=list(shape.colour),
                             expected="red, green, blue from 0 to 1")


def _check_positive(value: Any, place: Place, quantity: str) -> None:
    if not isinstance(value, float) or not 0 < value < math.inf:
        raise ModelError(f"wrong {quantity}", place=place, found=value, expected="a number > 0")
