"""Robot description: immutable, in SI units.

Loaders (`io`) create a `Robot`, `model.validate` checks it, and `model.model` builds the arrays of the kernels from it.
Numbers are plain floats in tuples, so that descriptions can be compared and hashed.

At zero coordinates, the child frame of a joint is at `origin` in the parent link. Axes and screws are given in this
joint frame. The pose of the child is `origin · motion(q)`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import SupportsFloat

from liedyn.arrays import Array, Base
from liedyn.errors import LiedynWarning, Place, of_level
from liedyn.model.spatial import rotation_by_rows, screw_frame

# The three kinds of joint of the kernels. The model builder expands every other joint into screws -----------------------

# | kind  | nq | nv | motion T = T0 · M(q)                    | S in the body frame |
# |-------|----|----|-----------------------------------------|---------------------|
# | ONE_DOF | 1  | 1  | exp((0 0 a, 0 0 b) q)                   | (0 0 a, 0 0 b)      |
# | BALL  | 4  | 3  | (R(q), 0), q = qx qy qz qw              | [1; 0]              |
# | FREE  | 7  | 6  | (R(q), p), q = px py pz qx qy qz qw     | 1                   |
#
# All three have a constant S in the body frame, so dS/dt = 0 and eta = ad_V S dq.

ONE_DOF, BALL, FREE = 0, 1, 2
NQ = (1, 4, 7)
NV = (1, 3, 6)

# Marks of bodies, a bit each: it has children; it is the child of its parent that a backward pass meets first; its screw turns
# about its axis; moves along it; turns only, without armature: free of it, the body has no inertia about the axis.
HAS_CHILDREN, LAST_CHILD, ROTATES, TRANSLATES, NO_AXIAL_INERTIA = 1, 2, 4, 8, 16

SINGULAR_PIVOT = 1e-13   # a pivot below this part of the inertia that it is made of is rounding: the joint has nothing to act on
FRICTION_SPEED = 1e-2    # rad/s or m/s, a number of the model of friction, in SI units as files are: Coulomb friction is smoothed
                         # below it, so that it has derivatives

# Kinds of constraint. A closure joins frame A to frame B; its rows are components, in frame B, of the twist of B relative to A.
WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR, BALL_CLOSURE, UNIVERSAL, DISTANCE, ROLLING, COUPLING = range(10)


# description ------------------------------------------------------------------------------------------------------------

Vector = tuple[float, float, float]
Rotation = tuple[float, float, float, float, float, float, float, float, float]   # by rows
Screw = tuple[float, float, float, float, float, float]                           # [w; v]

WORLD = "world"                                   # the ground, a link of every robot
IDENTITY: Rotation = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
MAX_INPUT = 1e30                                    # of masses, lengths, inertias, gains: the cube of m r^2 is far from overflow
STANDARD_GRAVITY: Vector = (0.0, 0.0, -9.81)


def vector(values: Iterable[SupportsFloat]) -> Vector:
    """Return the components of a vector as floats."""
    return tuple(map(float, values))                    # type: ignore[return-value]  # `validate` checks that there are three


def inertia_of(values: Iterable[float]) -> tuple[float, float, float, float, float, float]:
    """Return the six entries xx, xy, xz, yy, yz, zz of an inertia as a tuple."""
    xx, xy, xz, yy, yz, zz = map(float, values)
    return xx, xy, xz, yy, yz, zz


def coordinate_name(joint: str, label: str) -> str:
    """Return the name of a coordinate in files: that of its joint, with the label if it has one."""
    return f"{joint}.{label}" if label else joint


@dataclass(frozen=True, slots=True)
class Pose:
    """T_ab: maps coordinates in b to coordinates in a."""

    rotation: Rotation = IDENTITY
    translation: Vector = (0.0, 0.0, 0.0)

    @staticmethod
    def from_xyz_rpy(xyz: Sequence[float] = (0.0, 0.0, 0.0), rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> Pose:
        """URDF's origin: fixed-axis roll, pitch, yaw, R = Rz(yaw) Ry(pitch) Rx(roll)."""
        (sr, cr), (sp, cp), (sy, cy) = ((math.sin(x), math.cos(x)) for x in rpy)
        return Pose((cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
                     sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
                     -sp, cp * sr, cp * cr), vector(xyz))

    @staticmethod
    def from_matrix(T: Array) -> Pose:
        """From a (4, 4) pose, without negative zeros: the inverse of `spatial.pose`."""
        return Pose(rotation_by_rows(T[:3, :3]), vector(T[:3, 3] + 0.0))

    @staticmethod
    def from_xyz_quaternion(xyz: Sequence[float], quaternion: Sequence[float]) -> Pose:
        """From a unit quaternion x y z w."""
        x, y, z, w = quaternion
        return Pose((1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
                     2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                     2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)), vector(xyz))


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid body. `inertia` is about the centre of mass, along the link's axes: xx, xy, xz, yy, yz, zz."""

    name: str
    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One velocity coordinate of a joint: limits and passive forces. Units follow `unit` (rad or m)."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf       # maximum speed
    effort: float = math.inf         # maximum generalized force
    damping: float = 0.0             # force = -damping * v
    friction: float = 0.0            # Coulomb level: force = -friction * v / sqrt(v^2 + FRICTION_SPEED^2)
    armature: float = 0.0            # rotor inertia reflected to the joint, added to the diagonal of M
    stiffness: float = 0.0           # spring: force = -stiffness * (q - rest)
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class Mimic:
    """Couples the only coordinate of a joint to that of another: q = multiplier · q_joint + offset.

    It becomes a `Coupling` with the name of the joint that follows.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between two links. `JOINT_TYPES` lists which of these fields its type needs.

    axes      as many as the type has
    pitch     metres of advance per radian
    sequence  three letters, intrinsic, e.g. "zyx": R = Rz(q1) Ry(q2) Rx(q3)
    screws    up to six [w; v] in the joint frame; motion = exp(S1 q1) … exp(Sk qk)
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Pose = Pose()
    axes: tuple[Vector, ...] = ()
    pitch: float = 0.0
    sequence: str = ""
    screws: tuple[Screw, ...] = ()
    coordinates: tuple[Coordinate, ...] = ()
    mimic: Mimic | None = None
    place: Place = field(default=Place(), compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the velocity coordinates; the empty name if there is only one."""
        labels = JOINT_TYPES[self.type].labels
        return labels(self) if callable(labels) else labels

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Name of each velocity coordinate in files."""
        return tuple(coordinate_name(self.name, label) for label in self.labels)

    @property
    def coordinate_parameters(self) -> tuple[Coordinate, ...]:
        """One `Coordinate` for each velocity coordinate, with defaults if the description has none."""
        return self.coordinates or (Coordinate(),) * len(self.labels)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each velocity coordinate, rad or m."""
        units = JOINT_TYPES[self.type].units
        return units(self) if callable(units) else units

    @property
    def kind(self) -> int:
        """Kind of the joint in the kernels."""
        return JOINT_TYPES[self.type].kind


# Types of joint. One that is made of screws is a row of this table (CONTRIBUTING.md shows how to add one). ---------------------

ForJoint = tuple[str, ...] | Callable[[Joint], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class JointType:
    """A type of joint.

    labels      names of its velocity coordinates, an empty name if there is only one; or a function of the joint
    units       unit of each velocity coordinate, rad or m; or a function of the joint
    screws      function of a joint with unit axes: its screws [w; v] in the joint frame, linear in the pitch: motion =
                exp(S1 q1) … exp(Sk qk). None: the joint is fixed, or its `kind` is not ONE_DOF
    axes        meaning of each axis: none, one, or two that are not parallel
    parameters  names of further fields of `Joint` that this type requires, such as pitch, sequence or screws
    bounded     whether its coordinates may have lower and upper limits
    kind        kind of the joint in the kernels
    """

    labels: ForJoint
    units: ForJoint
    screws: Callable[[Joint], Sequence[Sequence[float]]] | None = None
    axes: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    bounded: bool = True
    kind: int = ONE_DOF


def _rotation(axis: Vector) -> Screw:
    return (*axis, 0.0, 0.0, 0.0)


def _translation(axis: Vector) -> Screw:
    return (0.0, 0.0, 0.0, *axis)


def _rotations(joint: Joint) -> list[Screw]:
    return [_rotation(axis) for axis in joint.axes]


def _helical_screws(joint: Joint) -> list[Screw]:
    return [(*axis, *vector(joint.pitch * x for x in axis)) for axis in joint.axes]


def _planar_screws(joint: Joint) -> list[Screw]:
    normal = joint.axes[0]
    x, y = map(vector, screw_frame(_rotation(normal))[0][:3, :2].T)
    return [_translation(x), _translation(y), _rotation(normal)]


def _euler_labels(joint: Joint) -> tuple[str, ...]:
    letters = joint.sequence
    return tuple(a if letters.count(a) == 1 else f"{a}{letters[:k].count(a) + 1}" for k, a in enumerate(letters))


def _screw_labels(joint: Joint) -> tuple[str, ...]:
    return tuple(str(k + 1) for k in range(len(joint.screws))) if len(joint.screws) != 1 else ("",)


_AXIS = ("the joint axis",)
_UNIT_VECTORS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
JOINT_TYPES: dict[str, JointType] = {
    "fixed": JointType((), ()),
    "revolute": JointType(("",), ("rad",), _rotations, _AXIS),
    "continuous": JointType(("",), ("rad",), _rotations, _AXIS, bounded=False),
    "prismatic": JointType(("",), ("m",), lambda joint: [_translation(joint.axes[0])], _AXIS),
    "helical": JointType(("",), ("rad",), _helical_screws, _AXIS, ("pitch",)),
    "ball": JointType(("wx", "wy", "wz"), ("rad",) * 3, bounded=False, kind=BALL),
    "free": JointType(("wx", "wy", "wz", "vx", "vy", "vz"), ("rad",) * 3 + ("m",) * 3, bounded=False, kind=FREE),
    "universal": JointType(("1", "2"), ("rad", "rad"), _rotations, ("the first axis", "the second axis")),
    "cylindrical": JointType(("angle", "slide"), ("rad", "m"),
                             lambda joint: [_rotation(joint.axes[0]), _translation(joint.axes[0])], _AXIS),
    "planar": JointType(("x", "y", "angle"), ("m", "m", "rad"), _planar_screws, ("the normal of the plane",)),
    "euler": JointType(_euler_labels, ("rad",) * 3,
                       lambda joint: [_rotation(_UNIT_VECTORS[letter]) for letter in joint.sequence], parameters=("sequence",)),
    "screws": JointType(_screw_labels, lambda joint: tuple("rad" if any(S[:3]) else "m" for S in joint.screws),
                        lambda joint: joint.screws, parameters=("screws",)),
}


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop closure: a constraint between frame A, fixed in link `a`, and frame B, fixed in link `b`.

    a, b            names of links; WORLD is the ground
    pose_a, pose_b  poses of the frames in their links
    axes            revolute, prismatic, cylindrical: the axis; planar: the normal; rolling disc: the axle (frame B); one, written
                    in both frames, which share it; default z. universal: two, the first in frame A, the second in frame B,
                    which stay perpendicular; default x and y. The others have none
    length          distance: between the origins of the frames [m]
    radius, shape   rolling: of the disc or sphere about the origin of B [m]; the plane is z = 0 of frame A
    driven          frame A moves within its link by a motion that is given in time, beyond `pose_a`
    """

    name: str
    type: str
    a: str
    b: str
    pose_a: Pose = Pose()
    pose_b: Pose = Pose()
    axes: tuple[Vector, ...] = ()
    length: float = 0.0
    radius: float = 0.0
    shape: str = "disc"
    driven: bool = False
    place: Place = field(default=Place(), compare=False)


# Types of closure. The equations of each are in `joints.loop_joints`. -----------------------------------------------------

@dataclass(frozen=True, slots=True)
class LoopType:
    """A type of closure.

    kind        number of the type in the kernels
    labels      names of its constraint equations, an empty name if there is only one; those of rotations begin with w
    axes        default axes: none; one, shared by both frames; or two, of frame A and frame B
    parameters  further required fields of `Loop`, the first one a length
    turns_a     whether the axis is also an axis of frame A
    """

    kind: int
    labels: tuple[str, ...]
    axes: tuple[Vector, ...] = ()
    parameters: tuple[str, ...] = ()
    turns_a: bool = True

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each constraint equation, rad or m."""
        return tuple("rad" if label.startswith("w") else "m" for label in self.labels)


_X, _Y, _Z = _UNIT_VECTORS.values()
LOOP_TYPES: dict[str, LoopType] = {
    "weld": LoopType(WELD, ("wx", "wy", "wz", "vx", "vy", "vz")),
    "revolute": LoopType(REVOLUTE, ("wx", "wy", "vx", "vy", "vz"), (_Z,)),
    "prismatic": LoopType(PRISMATIC, ("wx", "wy", "wz", "vx", "vy"), (_Z,)),
    "cylindrical": LoopType(CYLINDRICAL, ("wx", "wy", "vx", "vy"), (_Z,)),
    "planar": LoopType(PLANAR, ("wx", "wy", "vz"), (_Z,)),                                  # the normal
    "ball": LoopType(BALL_CLOSURE, ("vx", "vy", "vz")),
    "universal": LoopType(UNIVERSAL, ("w", "vx", "vy", "vz"), (_X, _Y)),                    # which stay perpendicular
    "distance": LoopType(DISTANCE, ("",), parameters=("length",)),                          # between the origins: a rod
    # a disc about z of B, or a sphere, on the plane z = 0 of A
    "rolling": LoopType(ROLLING, ("vx", "vy", "vz"), (_Z,), ("radius", "shape"), turns_a=False),
}


@dataclass(frozen=True, slots=True)
class Coupling:
    """The constraint sum_k c_k q_k = offset between joint coordinates (not of ball and free joints): gears, belts, cables.

    Each term is (joint, label, c_k). The label is empty if the joint has one coordinate.
    """

    name: str
    terms: tuple[tuple[str, str, float], ...]
    offset: float = 0.0
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Actuator:
    """A thruster (AGF (28)) on a link, with the scalar command u [N].

    Its wrench is u · [p x n + torque_ratio n; n], with the unit axis n and the position p in the link frame.
    """

    name: str
    link: str
    position: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    torque_ratio: float = 0.0
    place: Place = field(default=Place(), compare=False)


Colour = tuple[float, float, float]                 # red, green, blue from 0 to 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A primitive for drawing. Cylinders and capsules lie along z.

    sizes  [m], as listed in `mass_properties.SHAPES`
    pose   pose of the shape in the link
    """

    kind: str
    sizes: tuple[float, ...]
    pose: Pose
    colour: Colour | None = None


Shapes = Mapping[str, tuple[Shape, ...]]        # by link


@dataclass(frozen=True, slots=True)
class LinkMesh:
    """A mesh for drawing.

    name    name in the robot file
    pose    pose of the mesh in the frame of the link
    colour  None: the colour of the mesh file
    file    path found by `io.robots.visual_shapes.link_meshes`
    """

    name: str
    pose: Pose
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    colour: Colour | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class LinkVisuals:
    """Shapes and meshes of a link for drawing.

    shapes     visible primitives
    collision  collision primitives
    meshes     visible meshes
    complete   whether `shapes` are everything that the file has for drawing
    """

    shapes: tuple[Shape, ...] = ()
    collision: tuple[Shape, ...] = ()
    meshes: tuple[LinkMesh, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Robot:
    """A tree of links and joints. A joint whose parent is `world` is attached to the ground. Otherwise the one link that is
    not the child of a joint is the root, welded to the ground (`base` fixed) or free (`base` floating). `loops` and `couplings`
    constrain the tree. `actuated` names the joints with motors, which inverse dynamics of robots with loops requires.

    Examples
    --------
    >>> robot = ld.load_description("robots/double_pendulum.yaml")
    >>> robot, robot.links[0].mass
    (<Robot double_pendulum: 3 links, 3 joints, fixed base>, 1.0)
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    base: Base = "fixed"
    gravity: Vector = STANDARD_GRAVITY
    actuators: tuple[Actuator, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    actuated: tuple[str, ...] = ()         # joints with motors; empty: the file does not say
    warnings: tuple[LiedynWarning, ...] = field(default=(), compare=False)   # of the loader
    source: str | None = field(default=None, compare=False)
    visuals: Mapping[str, LinkVisuals] = field(default_factory=dict, compare=False)    # by link, of those that the file draws

    def __repr__(self) -> str:
        """Return a short summary: the fields contain the whole robot."""
        parts = [(self.links, "links"), (self.joints, "joints"), (self.actuators, "actuators"), (self.loops, "loops"),
                 (self.couplings, "couplings"), (of_level("warning", self.warnings), "warnings")]
        counts = ", ".join(f"{len(x)} {name if len(x) != 1 else name[:-1]}" for x, name in parts if x)
        return f"<Robot {self.name}: {counts or 'no links'}, {self.base} base>"
