"""Links of a robot description: poses, rigid bodies, and shapes. `model.description` offers them with the other elements."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.errors import ArgumentError, ModelError, Place, summarized
from liedyn.model.element_values import (
    UNIT_QUATERNION,
    as_elements,
    as_float,
    as_floats,
    as_inertia,
    as_matrix,
    check_finite,
    element_location,
    set_fields,
)
from liedyn.model.mass_properties import check_shape, uniform_body
from liedyn.model.spatial import rotation_by_rows
from liedyn.public_calls import explained

Vector = tuple[float, float, float]
Rotation = tuple[float, float, float, float, float, float, float, float, float]   # by rows
IDENTITY: Rotation = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
_NO_PLACE = Place()


def vector(values: Iterable[SupportsFloat]) -> Vector:
    """Return the components of a vector as floats."""
    return tuple(map(float, values))                    # type: ignore[return-value]  # `validate` checks that there are three


def inertia_of(values: Iterable[float]) -> tuple[float, float, float, float, float, float]:
    """Return the six entries xx, xy, xz, yy, yz, zz of an inertia as a tuple."""
    xx, xy, xz, yy, yz, zz = map(float, values)
    return xx, xy, xz, yy, yz, zz


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Pose:
    """A pose T_ab of frame b in frame a: it maps coordinates in b to coordinates in a.

    rotation     (3, 3) matrix, or its nine entries by rows
    translation  position of b in a [m]

    Examples
    --------
    >>> ld.Pose.from_xyz_rpy([0, 0, 0.5], rpy=[0, 0, np.pi]).translation
    (0.0, 0.0, 0.5)
    """

    rotation: Rotation = IDENTITY
    translation: Vector = (0.0, 0.0, 0.0)

    @explained
    def __init__(self, rotation: ArrayLike = IDENTITY, translation: ArrayLike = (0.0, 0.0, 0.0)):
        set_fields(self, rotation=as_floats(np.ravel(rotation) if np.ndim(rotation) == 2 else rotation),
                   translation=as_floats(translation))

    @staticmethod
    def from_xyz_rpy(xyz: Sequence[float] = (0.0, 0.0, 0.0), rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> Pose:
        """URDF's origin: fixed-axis roll, pitch, yaw, R = Rz(yaw) Ry(pitch) Rx(roll)."""
        (sr, cr), (sp, cp), (sy, cy) = ((math.sin(x), math.cos(x)) for x in rpy)
        return Pose((cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
                     sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
                     -sp, cp * sr, cp * cr), vector(xyz))

    @staticmethod
    def from_matrix(T: Array) -> Pose:
        """From a (4, 4) matrix."""
        return Pose(rotation_by_rows(T[:3, :3]), vector(T[:3, 3] + 0.0))            # without negative zeros

    @staticmethod
    def from_xyz_quaternion(xyz: Sequence[float], quaternion: Sequence[float]) -> Pose:
        """From a unit quaternion x y z w. Raise ModelError for another norm."""
        place = Place(key="pose")
        check_finite(quaternion, 4, place, "quaternion")
        x, y, z, w = quaternion
        norm = math.hypot(x, y, z, w)
        if abs(norm - 1.0) > UNIT_QUATERNION:
            raise ModelError(f"the quaternion has norm {norm:.7g}", place=place, found=list(quaternion),
                             expected="a unit quaternion x, y, z, w")
        return Pose((1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
                     2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                     2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)), vector(xyz))


def as_pose(value: Any, place: Place, name: str) -> Pose:
    """Return a pose: a `Pose`, a position, or a (4, 4) matrix. Raise ModelError for anything else, with the name of the pose."""
    if isinstance(value, Pose):
        return value
    if not isinstance(value, str) and np.shape(value) == (3,):
        return Pose(translation=value)
    return Pose.from_matrix(as_matrix(value, place, name))


Colour = tuple[float, float, float]                 # red, green, blue from 0 to 1


@summarized
@dataclass(frozen=True, slots=True)
class Texture:
    """An image that colours a shape or a mesh for drawing.

    files    names in the robot file: of the image, or of the sides of a cube; empty: `rows` is the image
    rows     colours of the pixels of an image, from its top
    repeat   how often the image is repeated along each texture coordinate
    is_cube  whether it does not follow the texture coordinates of a mesh
    colour   that multiplies those of the pixels;  pixels: (h, w, 3) these products, from 0 to 255: see `io.mesh_files.painted`
    """

    files: tuple[str, ...] = ()
    rows: tuple[tuple[Colour, ...], ...] = ()
    repeat: tuple[float, float] = (1.0, 1.0)
    is_cube: bool = False
    colour: Colour | None = None
    pixels: Array | None = field(default=None, compare=False)


PoseLike = Pose | ArrayLike                         # a pose, a position, or a (4, 4) matrix


@dataclass(frozen=True, slots=True, init=False)
class Shape:
    """A box, sphere, cylinder or capsule: a uniform body of a link, and what is drawn. Cylinders and capsules lie along z.

    sizes   [m], as listed in `mass_properties.SHAPES`
    pose    pose of the shape in the link: a `Pose`, a position, or a (4, 4) matrix
    colour  red, green, blue from 0 to 1, or None
    texture  from a robot file, or None

    Examples
    --------
    >>> ld.Shape.cylinder(radius=0.03, length=0.5, pose=[0, 0, -0.25])
    <Shape cylinder 0.03, 0.5>
    >>> ld.Link("rod", shape=ld.Shape.capsule(0.03, 0.5), density=2700).mass
    4.122...
    """

    kind: str
    sizes: tuple[float, ...]
    pose: Pose = Pose()
    colour: Colour | None = None
    texture: Texture | None = None

    @explained
    def __init__(self, kind: str, sizes: ArrayLike, pose: PoseLike = Pose(), colour: ArrayLike | None = None,
                 texture: Texture | None = None):
        set_fields(self, kind=kind, sizes=as_floats(sizes), pose=as_pose(pose, Place(key=f"shape {kind}"), "pose"),
                   colour=None if colour is None else as_floats(colour), texture=texture)

    @staticmethod
    def box(x: float, y: float, z: float, pose: PoseLike = Pose(), colour: ArrayLike | None = None) -> Shape:
        """A box with these lengths along its axes [m]."""
        return Shape("box", (x, y, z), pose, colour)

    @staticmethod
    def sphere(radius: float, pose: PoseLike = Pose(), colour: ArrayLike | None = None) -> Shape:
        """A sphere [m]."""
        return Shape("sphere", (radius,), pose, colour)

    @staticmethod
    def cylinder(radius: float, length: float, pose: PoseLike = Pose(), colour: ArrayLike | None = None) -> Shape:
        """A cylinder along z [m]."""
        return Shape("cylinder", (radius, length), pose, colour)

    @staticmethod
    def capsule(radius: float, length: float, pose: PoseLike = Pose(), colour: ArrayLike | None = None) -> Shape:
        """A capsule along z [m]; `length` is that of its cylindrical part."""
        return Shape("capsule", (radius, length), pose, colour)

    def __repr__(self) -> str:
        sizes = self.sizes if isinstance(self.sizes, (tuple, list)) else (self.sizes,)          # others wait for their check
        return f"<Shape {self.kind} {', '.join(format(x, 'g') if isinstance(x, float) else repr(x) for x in sizes)}>"


Shapes = Mapping[str, tuple[Shape, ...]]        # by link


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Link:
    """A rigid body, by its inertia or as a uniform body of simple shapes.

    mass     [kg]; default 0: a frame
    com      centre of mass in the link frame [m]; default: the origin, or the centre of the shapes
    inertia  about the centre of mass, along the link's axes [kg m^2]: xx, xy, xz, yy, yz, zz; the diagonal xx, yy, zz; or a
             (3, 3) matrix
    shape    a uniform body, from which the inertia is computed, centred at `com`; with `inertia`, only drawn
    shapes   several parts of a uniform body at their poses, in place of `shape`
    density  of the shapes [kg/m^3], in place of `mass`

    Examples
    --------
    >>> ld.Link("upper", mass=1.2, com=[0, 0, -0.25], inertia=[0.02, 0.02, 0.001]).inertia
    (0.02, 0.0, 0.0, 0.02, 0.0, 0.001)
    >>> link = ld.Link("lower", density=2700, com=[0, 0, -0.25], shape=ld.Shape.cylinder(radius=0.03, length=0.5))
    >>> round(link.mass, 3), link.shapes[0].pose.translation
    (3.817, (0.0, 0.0, -0.25))
    """

    name: str
    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    place: Place = field(default=Place(), compare=False)
    shapes: tuple[Shape, ...] = field(default=(), compare=False)

    @explained
    def __init__(self, name: str, mass: float | None = None, com: ArrayLike | None = None,
                 inertia: ArrayLike | None = None, place: Place = _NO_PLACE, shapes: Iterable[Shape] = (), *,
                 shape: Shape | None = None, density: float | None = None):
        set_fields(self, name=name, place=place, shapes=as_elements(shapes, Shape, "Link", "shapes"))
        if shape is not None:
            if not isinstance(shape, Shape):
                raise ArgumentError(f"Link: shape must be a Shape, got {type(shape).__name__} {shape!r:.60}")
            if self.shapes:
                raise ModelError("shape and shapes cannot be combined",
                                 place=element_location(self, "shape"), expected="one of them")
            set_fields(self, shapes=(self._centred(shape, com),))
        for part in self.shapes:
            check_shape(part, element_location(self, "shape"))
        if self.shapes and inertia is None:
            if com is not None and shape is None:
                raise ModelError("com and shapes cannot be combined", place=element_location(self, "com"), found=com,
                                 expected="one of them: the shapes determine the centre of mass")
            mass, computed, entries = uniform_body(self.shapes, as_float(mass), as_float(density),
                                                   element_location(self, "shape"))
            com = computed if com is None else com
        else:
            if density is not None:
                raise ModelError("density needs a shape, and no inertia", place=element_location(self, "density"), found=density,
                                 expected="mass")
            entries = as_inertia((0.0,) * 6 if inertia is None else inertia, element_location(self, "inertia"))
        set_fields(self, mass=0.0 if mass is None else as_float(mass), com=as_floats((0.0, 0.0, 0.0) if com is None else com),
                   inertia=entries)

    def _centred(self, shape: Shape, com: ArrayLike | None) -> Shape:
        """Return the shape with its centre at `com`. Raise ModelError if its pose has another position."""
        if com is None or shape.pose.translation == as_floats(com):
            return shape
        if shape.pose.translation != (0.0, 0.0, 0.0):
            raise ModelError("the centre of the shape is not at com", place=element_location(self, "shape"),
                             found=list(shape.pose.translation), expected="a shape without a position, or no com")
        return Shape(shape.kind, shape.sizes, Pose(shape.pose.rotation, com), shape.colour)


@summarized
@dataclass(frozen=True, slots=True)
class LinkMesh:
    """A mesh for drawing.

    name    name in the robot file
    pose    pose of the mesh in the frame of the link
    colour  None: the colour of the mesh file
    file    path found by `io.robots.visual_shapes.link_meshes`
    texture  replaces the colours of the mesh file
    """

    name: str
    pose: Pose
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    colour: Colour | None = None
    file: Path | None = None
    texture: Texture | None = None


@summarized
@dataclass(frozen=True, slots=True)
class LinkVisuals:
    """Shapes and meshes of a link for drawing.

    shapes     visible primitives
    collision  collision primitives
    meshes     visible meshes
    collision_meshes  meshes of collisions
    complete   whether `shapes` are everything that the file has for drawing
    """

    shapes: tuple[Shape, ...] = ()
    collision: tuple[Shape, ...] = ()
    meshes: tuple[LinkMesh, ...] = ()
    complete: bool = True
    collision_meshes: tuple[LinkMesh, ...] = ()
