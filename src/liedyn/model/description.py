"""Robot description: immutable, in SI units.

Loaders (`io`) and users create a `Robot`, `model.validate` checks it, and `model.model` builds the arrays of the kernels from it.
Constructors take arrays, lists and tuples, under the names of the keys of robot files. Numbers are stored as plain floats in
tuples, so that descriptions can be compared and hashed.

At zero coordinates, the child frame of a joint is at `origin` in the parent link. Axes and screws are given in this
joint frame. The pose of the child is `origin · motion(q)`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Base
from liedyn.errors import ArgumentError, LiedynWarning, ModelError, Place, escape_nonprintable, nearest, of_level, summarized
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.element_values import (
    as_each,
    as_elements,
    as_float,
    as_floats,
    as_vectors,
    element_location,
    set_fields,
)
from liedyn.model.force_element import ForceElement
from liedyn.model.links import Link, LinkVisuals, Pose, PoseLike, Vector, as_pose, vector
from liedyn.model.spatial import screw_frame
from liedyn.public_calls import check_names, explained

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

INDEX_HEADER = 10          # numbers at the start of `Model.index`: see `joints.joint_model`

# Marks of bodies, a bit each: it has children; it is the child of its parent that a backward pass meets first; its screw turns
# about its axis; moves along it; turns only, without armature: free of it, the body has no inertia about the axis.
HAS_CHILDREN, LAST_CHILD, ROTATES, TRANSLATES, NO_AXIAL_INERTIA = 1, 2, 4, 8, 16

RANK_TOLERANCE = 1e-10   # square of the sine between a constraint equation and those it depends on (`dynamics.constraints.rank`)
SINGULAR_PIVOT = 1e-13   # a pivot below this part of the inertia that it is made of is rounding: the joint has nothing to act on
FRICTION_SPEED = 1e-2    # rad/s or m/s, default of the speed below which Coulomb friction is smoothed, so that it has derivatives
MIN_FRICTION_SPEED, MAX_FRICTION_SPEED = 1e-20, 1e20     # their squares and cubes are numbers; units may be any

# Kinds of constraint. A closure joins frame A to frame B; its rows are components, in frame B, of the twist of B relative to A.
(WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR, BALL_CLOSURE, UNIVERSAL, DISTANCE, ROLLING, COUPLING,
 NONLINEAR_COUPLING) = range(11)


# description ------------------------------------------------------------------------------------------------------------

Screw = tuple[float, float, float, float, float, float]                           # [w; v]

WORLD = "world"                                   # the ground, a link of every robot
STANDARD_GRAVITY: Vector = (0.0, 0.0, -9.81)
_NO_PLACE, _NO_MOTION = Place(), Pose()


def coordinate_name(joint: str, label: str) -> str:
    """Return the name of a coordinate in files: that of its joint, with the label if it has one."""
    return f"{joint}.{label}" if label else joint


@summarized
@dataclass(frozen=True, slots=True)
class Coordinate:
    """One velocity coordinate of a joint: limits and passive forces. Units follow `unit` (rad or m)."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf       # maximum speed
    effort: float = math.inf         # maximum generalized force
    damping: float = 0.0             # force = -damping * v
    friction: float = 0.0            # Coulomb level: force = -friction * v / sqrt(v^2 + friction_speed^2)
    armature: float = 0.0            # rotor inertia reflected to the joint, added to the diagonal of M
    stiffness: float = 0.0           # spring: force = -stiffness * (q - rest)
    rest: float = 0.0
    acceleration: float = math.inf   # maximum magnitude, for planned motions
    jerk: float = math.inf           # the same of the rate of the acceleration
    rigid_friction: float = 0.0      # 1: in runs, |force| <= static level at rest, and force = -sign(v) * level in motion
    static_friction: float = 0.0     # level at rest; 0: `friction`
    stribeck_speed: float = 0.0      # the level falls from static_friction by exp(-(v / stribeck_speed)^2); 0: at once
    friction_speed: float = FRICTION_SPEED      # below it, friction is smoothed


_DEFAULTS = Coordinate()


@summarized
@dataclass(frozen=True, slots=True)
class Mimic:
    """Couples the only coordinate of a joint to that of another: q = multiplier · q_joint + offset.

    It becomes a `Coupling` with the name of the joint that follows.

    Examples
    --------
    >>> ld.Joint("right", "prismatic", "palm", "right_finger", axis=[0, 1, 0], mimic=ld.Mimic("left", multiplier=-1)).mimic
    <Mimic: joint left, multiplier -1>
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        set_fields(self, multiplier=as_float(self.multiplier), offset=as_float(self.offset))


FRICTION_MODELS = "regularized", "rigid"
FRICTION_KEYS = {"level": "friction", "static": "static_friction", "stribeck": "stribeck_speed",
                 "speed": "friction_speed"}                # of files: fields

EachCoordinate = float | Sequence[float] | Array | None            # a number for all coordinates of a joint, or one for each
Limits = Sequence[Any] | Mapping[str, Any] | Array | None
LIMITS = ("lower", "upper", "velocity", "effort", "acceleration", "jerk")


def _part(name: str) -> str:
    """Return the key of a joint that contains a field of `Coordinate`."""
    return "limits" if name in LIMITS else "friction" if name in ("rigid_friction", *FRICTION_KEYS.values()) else name


def _of_coordinates(name: str) -> Any:
    """Return a property: a field of the coordinates of a joint, a number if there is one coordinate, else a tuple."""
    def values(joint: Joint) -> float | tuple[float, ...]:
        each = tuple(getattr(coordinate, name) for coordinate in joint.coordinate_parameters)
        return each[0] if len(each) == 1 else each

    return property(values, doc=f"The {name} of the coordinate, or a tuple with one for each coordinate.")


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Joint:
    """A joint that moves the link `child` relative to the link `parent`; the parent "world" is the ground.

    type      fixed, revolute, continuous, prismatic, helical, ball, free, universal, cylindrical, planar, euler or screws
    origin    pose of the joint frame in the parent link: a position [m], a `Pose`, or a (4, 4) matrix
    axis      of joints with one axis: a vector in the joint frame
    axes      of joints with two axes
    pitch     of helical joints: metres of advance per radian
    sequence  of euler joints: three letters, intrinsic, e.g. "zyx": R = Rz(q1) Ry(q2) Rx(q3)
    screws    of screws joints: up to six [w; v] in the joint frame; motion = exp(S1 q1) … exp(Sk qk)
    limits    (lower, upper) position [rad | m], or a dict with any of LIMITS
    damping, friction, armature, stiffness, rest   as in a robot file; friction may be a dict with model, level, speed, static,
              stribeck
    mimic     `Mimic`, the name of a joint, or a dict: the joint follows another one

    Limits, damping, friction, armature, stiffness and rest are a number for all coordinates of the joint, or a sequence with one
    for each. They replace those of `coordinates`, a tuple with all parameters of each coordinate.

    Examples
    --------
    >>> elbow = ld.Joint("elbow", "revolute", "upper", "lower", origin=[0, 0, -0.5], axis=[0, 1, 0], limits=(-2, 2), damping=0.1)
    >>> elbow.axes, elbow.damping, elbow.coordinates[0].upper
    (((0.0, 1.0, 0.0),), 0.1, 2.0)
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

    @explained
    def __init__(self, name: str, type: str, parent: str, child: str, origin: PoseLike = _NO_MOTION,           # noqa: PLR0913
                 axes: ArrayLike = (), pitch: float | None = None, sequence: str = "", screws: ArrayLike = (),
                 coordinates: Iterable[Coordinate] = (), mimic: Mimic | str | Mapping[str, Any] | None = None,
                 place: Place = _NO_PLACE, *,
                 axis: ArrayLike | None = None, limits: Limits = None, damping: EachCoordinate = None,
                 friction: EachCoordinate | Mapping[str, Any] = None, armature: EachCoordinate = None,
                 stiffness: EachCoordinate = None, rest: EachCoordinate = None):
        set_fields(self, name=name, type=type, parent=parent, child=child, place=place, sequence=sequence,
                   pitch=0.0 if pitch is None else as_float(pitch), screws=as_vectors(screws), coordinates=tuple(coordinates),
                   mimic=self._as_mimic(name, mimic))
        set_fields(self, origin=as_pose(origin, element_location(self, "origin"), "origin"),
                   axes=as_vectors(axes) if axis is None else (as_floats(axis),))
        if axis is not None and np.size(axes):
            raise ModelError("axis and axes cannot be combined", place=element_location(self, "axis"), expected="one of them",
                             hint="dataclasses.replace takes axes=[…]")
        if type == "helical" and pitch is None:
            raise ModelError("a helical joint needs a pitch", place=element_location(self, "pitch"),
                             expected="metres of advance per radian")
        values = {"damping": damping, "armature": armature, "stiffness": stiffness, "rest": rest, **self._friction(friction)}
        self._set_coordinates(self._limits(limits) | {key: value for key, value in values.items() if value is not None})

    @staticmethod
    def _as_mimic(name: str, mimic: Mimic | str | Mapping[str, Any] | None) -> Mimic | None:
        """Return a mimic given by the name of the other joint, or by keys."""
        if isinstance(mimic, str):
            return Mimic(mimic)
        if isinstance(mimic, Mapping):
            check_names("mimic", mimic, ("joint", "multiplier", "offset"))
            if "joint" in mimic:
                return Mimic(**mimic)
        elif mimic is None or isinstance(mimic, Mimic):
            return mimic
        raise ModelError("wrong mimic", place=Place(key=f'joint "{escape_nonprintable(name)}", mimic'), found=mimic,
                         expected="the name of a joint, or a dict with joint, multiplier and offset")

    def _friction(self, friction: EachCoordinate | Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of `Coordinate` for a friction level, or for a dict as in a robot file."""
        if not isinstance(friction, Mapping):
            return {"friction": friction}
        check_names("friction", friction, ("model", *FRICTION_KEYS))
        if friction.get("model") not in FRICTION_MODELS or "level" not in friction:
            raise ModelError("wrong friction", place=element_location(self, "friction"), found=dict(friction),
                             expected="a level, or a dict with model (regularized or rigid) and level")
        values = {name: friction[key] for key, name in FRICTION_KEYS.items() if key in friction}
        return values | {"rigid_friction": friction["model"] == "rigid"}

    def with_friction(self, friction: EachCoordinate | Mapping[str, Any]) -> Joint:
        """Return the joint with other friction: a level, or a dict as in a robot file. Nothing of its friction stays."""
        values = {name: getattr(_DEFAULTS, name) for name in ("rigid_friction", *FRICTION_KEYS.values())}
        joint = replace(self, coordinates=tuple(replace(coordinate, **values) for coordinate in self.coordinate_parameters))
        joint._set_coordinates(self._friction(friction))
        return joint

    def _limits(self, limits: Limits) -> dict[str, Any]:
        """Return limits by their names."""
        if limits is None:
            return {}
        if isinstance(limits, Mapping):
            check_names("limits", limits, LIMITS)
            return dict(limits)
        try:
            lower, upper = limits
        except (TypeError, ValueError):
            raise ModelError("wrong limits", place=element_location(self, "limits"), found=limits,
                             expected=f"(lower, upper), or a dict with any of {', '.join(LIMITS)}") from None
        return {"lower": lower, "upper": upper}

    def _set_coordinates(self, values: Mapping[str, Any]) -> None:
        """Set fields of the coordinates. Raise ModelError if the joint has no coordinate, or another number of them."""
        if not values:
            return
        check_joint_type(self)
        labels = self.labels
        if not labels:
            raise ModelError(f"a {self.type} joint has no {next(iter(values))}", place=element_location(self, next(iter(values))))
        each = {name: as_each(value, len(labels), element_location(self, _part(name)), name) for name, value in values.items()}
        set_fields(self, coordinates=tuple(replace(coordinate, **{name: entries[k] for name, entries in each.items()})
                                     for k, coordinate in enumerate(self.coordinate_parameters)))

    damping, friction, armature = _of_coordinates("damping"), _of_coordinates("friction"), _of_coordinates("armature")
    stiffness, rest = _of_coordinates("stiffness"), _of_coordinates("rest")

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


@summarized
class CurveJoint(NamedTuple):
    """The elements of a robot that make a joint along a curve (`model.curve_joint`): one of the `joints` of a `Robot`.

    Examples
    --------
    >>> knee = ld.curve_joint("knee", "thigh", "shank", "pitch", {"x": "-0.012*sin(knee)"})
    >>> [(joint.name, joint.type) for joint in knee.joints], knee.couplings[0].name
    ([('knee.x', 'prismatic'), ('knee', 'continuous')], 'knee.x')
    """

    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    couplings: tuple[Coupling, ...]


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


def check_joint_type(joint: Joint) -> None:
    """Raise ModelError if the type of the joint does not exist."""
    if joint.type not in JOINT_TYPES:
        raise ModelError("unknown joint type", place=element_location(joint, "type"), found=joint.type,
                         expected="one of " + ", ".join(JOINT_TYPES), hint="ld.curve_joint makes joints along a curve"
                         if joint.type == "curve" else nearest(joint.type, JOINT_TYPES))


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Loop:
    """A loop closure: a constraint between frame A, fixed in link `a`, and frame B, fixed in link `b`.

    type            weld, revolute, prismatic, cylindrical, planar, ball, universal, distance or rolling
    a, b            names of links; "world" is the ground
    pose_a, pose_b  poses of the frames in their links: a position [m], a `Pose`, or a (4, 4) matrix
    axes            revolute, prismatic, cylindrical: the axis; planar: the normal; rolling disc: the axle (frame B); one, written
                    in both frames, which share it; default z. universal: two, the first in frame A, the second in frame B,
                    which stay perpendicular; default x and y. The others have none
    length          distance: between the origins of the frames [m]
    radius, shape   rolling: of the disc or sphere about the origin of B [m]; the plane is z = 0 of frame A
    driven          frame A moves within its link by a motion that is given in time, beyond `pose_a`
    axis            in place of `axes` if there is one

    Examples
    --------
    >>> robot = ld.load_description("robots/double_pendulum.yaml")
    >>> pin = ld.Loop("pin", "revolute", "world", "lower", pose_a=[0.3, 0, -0.8], pose_b=[0, 0, -0.5], axis=[0, 1, 0])
    >>> ld.build(dataclasses.replace(robot, loops=[pin])).nc
    5
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

    @explained
    def __init__(self, name: str, type: str, a: str, b: str, pose_a: PoseLike = _NO_MOTION,                    # noqa: PLR0913
                 pose_b: PoseLike = _NO_MOTION, axes: ArrayLike = (), length: float = 0.0, radius: float = 0.0,
                 shape: str = "disc", driven: bool = False, place: Place = _NO_PLACE, *, axis: ArrayLike | None = None):
        set_fields(self, name=name, type=type, a=a, b=b, length=as_float(length), radius=as_float(radius), shape=shape,
                   driven=bool(driven), place=place)
        set_fields(self, pose_a=as_pose(pose_a, element_location(self, "a"), "frame"),
                   pose_b=as_pose(pose_b, element_location(self, "b"), "frame"),
                   axes=as_vectors(axes) if axis is None else (as_floats(axis),))
        if axis is not None and np.size(axes):
            raise ModelError("axis and axes cannot be combined", place=element_location(self, "axis"), expected="one of them",
                             hint="dataclasses.replace takes axes=[…]")


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


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Coupling:
    """The constraint sum_k c_k q_k = offset between joint coordinates (not of ball and free joints): gears, belts, cables.

    terms  {coordinate: c_k}, with the coordinate "joint", or "joint.label" for a joint with several; or (joint, label, c_k) of
           each. The label is empty if the joint has one coordinate

    A nonlinear coupling, q_follower = f(q_driver), has these arguments instead of `terms` and `offset`. Its terms are those of
    the follower and the driver, whose coefficients have no effect.

    follower, driver         names of coordinates
    function                 f, an expression of the driver by its name or q
    table                    f by points [driver, follower], instead of `function`
    interpolation, periodic  of the table, as in a robot file

    Examples
    --------
    >>> robot = ld.load_description("robots/double_pendulum.yaml")
    >>> gear = ld.Coupling("gear", {"shoulder": 1, "elbow": -2})
    >>> ld.build(dataclasses.replace(robot, couplings=[gear])).independent
    ('shoulder',)
    >>> cam = ld.Coupling("cam", follower="elbow", driver="shoulder", function="0.3*(1 - cos(shoulder))")
    >>> model = ld.build(dataclasses.replace(robot, couplings=[cam]))
    >>> ld.expand(model, [np.pi])
    array([3.141593, 0.6     ])
    """

    name: str
    terms: tuple[tuple[str, str, float], ...]
    offset: float = 0.0
    place: Place = field(default=Place(), compare=False)
    function: CouplingFunction | None = None

    @explained
    def __init__(self, name: str, terms: Mapping[str, float] | Iterable[tuple[str, str, float]] = (),           # noqa: PLR0913
                 offset: float = 0.0, place: Place = _NO_PLACE, function: str | CouplingFunction | None = None, *,
                 follower: str | None = None, driver: str | None = None, table: ArrayLike | None = None,
                 interpolation: str = "cubic", periodic: bool = False):
        each = [(joint, "", factor) for joint, factor in terms.items()] if isinstance(terms, Mapping) else terms
        set_fields(self, name=name, offset=as_float(offset), place=place)
        if follower is not None or driver is not None or table is not None or isinstance(function, str):
            each = self._nonlinear_terms(follower, driver, each)
            if (function is None) == (table is None):
                raise ModelError("a nonlinear coupling takes a function or a table", place=element_location(self, "function"),
                                 expected="one of them")
            if isinstance(function, str):
                function = read_expression(function, str(driver), element_location(self, "function"))
            elif table is not None:
                points = tuple((float(x), float(y)) for x, y in as_vectors(table))
                function = CouplingFunction(points=points, interpolation=interpolation, periodic=periodic)
        set_fields(self, terms=tuple((joint, label, as_float(factor)) for joint, label, factor in each), function=function)

    def _nonlinear_terms(self, follower: str | None, driver: str | None,
                         terms: Iterable[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
        if follower is None or driver is None or list(terms) or self.offset:
            raise ModelError("a nonlinear coupling has a follower and a driver, and neither terms nor an offset",
                             place=element_location(self, "terms"))
        return [(follower, "", 1.0), (driver, "", 0.0)]


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Actuator:
    """A thruster (AGF (28)) on a link, or a tendon over joints, with the scalar command u [N].

    The wrench of a thruster is u · [p x n + torque_ratio n; n], with the unit axis n and the position p in the link frame. A
    tendon has no link: its generalized forces on `joints`, {joint: c}, are c u. c is its lever arm about a joint that turns [m],
    and its ratio for one that slides. `limits` are the minimum and maximum of u [N], which `saturate` of a scenario enforces.

    Examples
    --------
    >>> ld.Actuator("rotor", "frame", position=[0.2, 0, 0], torque_ratio=0.02).axis
    (0.0, 0.0, 1.0)
    >>> ld.Actuator("flexor", joints={"knuckle": 0.01, "fingertip": 0.004}, limits=[0, 60]).joints
    (('knuckle', 0.01), ('fingertip', 0.004))
    >>> ld.load_description("robots/hexarotor_arms.yaml").actuators[0].name
    'rotor1'
    """

    name: str
    link: str = ""                       # empty: a tendon
    position: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    torque_ratio: float = 0.0
    limits: tuple[float, float] | None = None
    place: Place = field(default=Place(), compare=False)
    joints: tuple[tuple[str, float], ...] = ()

    @explained
    def __init__(self, name: str, link: str = "", position: ArrayLike = (0.0, 0.0, 0.0),
                 axis: ArrayLike = (0.0, 0.0, 1.0), torque_ratio: float = 0.0, limits: ArrayLike | None = None,
                 place: Place = _NO_PLACE, *, joints: Mapping[str, float] | Iterable[tuple[str, float]] = ()):
        try:
            terms = tuple((joint, as_float(factor)) for joint, factor in (
                joints.items() if isinstance(joints, Mapping) else joints))
        except (TypeError, ValueError):
            raise ArgumentError(f"Actuator: joints must be {{joint: factor}}, such as {{'mcp': 0.01, 'pip': 0.007}}, got "
                                f"{joints!r:.60}") from None
        set_fields(self, name=name, link=link, position=as_floats(position), axis=as_floats(axis),
                   torque_ratio=as_float(torque_ratio), limits=None if limits is None else as_floats(limits), place=place,
                   joints=terms)


JointValues = tuple[tuple[str, tuple[float, ...]], ...]            # (joint, numbers) of each


@summarized
@dataclass(frozen=True, slots=True, init=False)
class Keyframe:
    """A named state of a robot, such as a rest position. `model.keyframes` returns it as arrays.

    q, v  {joint: number, or a sequence for a joint with several}: positions and velocities. Other joints are at zero, at rest

    Examples
    --------
    >>> robot = ld.load_description("robots/double_pendulum.yaml")
    >>> bent = ld.Keyframe("bent", q={"elbow": 1.5}, v={"shoulder": -0.2})
    >>> ld.build(dataclasses.replace(robot, keyframes=[bent])).keyframes["bent"]
    JointState(q=array([0. , 1.5]), v=array([-0.2,  0. ]))
    """

    name: str
    q: JointValues = ()
    v: JointValues = ()
    place: Place = field(default=Place(), compare=False)

    @explained
    def __init__(self, name: str, q: Mapping[str, ArrayLike] | JointValues = (), v: Mapping[str, ArrayLike] | JointValues = (),
                 place: Place = _NO_PLACE):
        set_fields(self, name=name, place=place, **{key: self._as_values(values) for key, values in (("q", q), ("v", v))})

    @staticmethod
    def _as_values(values: Mapping[str, ArrayLike] | JointValues) -> JointValues:
        each = values.items() if isinstance(values, Mapping) else values
        return tuple((joint, as_floats(x if np.ndim(x) else (x,))) for joint, x in each)


@dataclass(frozen=True, slots=True, init=False)
class Robot:
    """A tree of links and joints. A joint whose parent is `world` is attached to the ground. Otherwise the one link that is
    not the child of a joint is the root, welded to the ground (`base` fixed) or free (`base` floating). `loops` and `couplings`
    constrain the tree. `actuated` names the joints with motors, which inverse dynamics of robots with loops requires.
    `elements` are springs, dampers and other `ForceElement`s between links. `keyframes` are named states.

    `joints` may contain the results of `ld.curve_joint`, whose links and couplings are added to those of the robot.

    `ld.build` checks a robot and returns its model. The order of links and joints has no effect but on the order of coordinates.

    Examples
    --------
    >>> rod = ld.Link("rod", mass=1.2, com=[0, 0, -0.25], shape=ld.Shape.cylinder(radius=0.02, length=0.5))
    >>> pivot = ld.Joint("pivot", "continuous", parent="world", child="rod", axis=[0, 1, 0], damping=0.01)
    >>> ld.build(ld.Robot("pendulum", links=[rod], joints=[pivot]))
    <Model pendulum: 1 joint, nq 1, nv 1, fixed base; 1 link, 1.2 kg>
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
    keyframes: tuple[Keyframe, ...] = ()
    elements: tuple[ForceElement, ...] = ()
    warnings: tuple[LiedynWarning, ...] = field(default=(), compare=False)   # of the loader
    source: str | None = field(default=None, compare=False)
    visuals: Mapping[str, LinkVisuals] = field(default_factory=dict, compare=False)    # by link, of those that are drawn

    @explained
    def __init__(self, name: str, links: Iterable[Link], joints: Iterable[Joint | CurveJoint] = (), base: Base = "fixed",   # noqa: PLR0913
                 gravity: ArrayLike = STANDARD_GRAVITY, actuators: Iterable[Actuator] = (), loops: Iterable[Loop] = (),
                 couplings: Iterable[Coupling] = (), actuated: Iterable[str] = (), keyframes: Iterable[Keyframe] = (),
                 warnings: Iterable[LiedynWarning] = (), source: str | None = None,
                 visuals: Mapping[str, LinkVisuals] | None = None, *, elements: Iterable[ForceElement] = ()):
        joints = tuple(joints) if isinstance(joints, Iterable) and not isinstance(joints, str) else joints
        if curves := [joint for joint in joints if isinstance(joint, CurveJoint)]:
            links = (*links, *(link for curve in curves for link in curve.links))
            couplings = (*couplings, *(coupling for curve in curves for coupling in curve.couplings))
            joints = tuple(part for joint in joints for part in (joint.joints if isinstance(joint, CurveJoint) else (joint,)))
        parts = {"links": (links, Link), "joints": (joints, Joint), "actuators": (actuators, Actuator), "loops": (loops, Loop),
                    "couplings": (couplings, Coupling), "actuated": (actuated, str), "keyframes": (keyframes, Keyframe),
                    "elements": (elements, ForceElement)}
        set_fields(self, name=name, base=base, gravity=as_floats(gravity), warnings=tuple(warnings), source=source,
                   **{key: as_elements(values, kind, "Robot", key) for key, (values, kind) in parts.items()})
        shapes = {link.name: LinkVisuals(link.shapes) for link in self.links if link.shapes}
        set_fields(self, visuals={**shapes, **(visuals or {})} if shapes else visuals or {})

    def __repr__(self) -> str:
        """Return a short summary: the fields contain the whole robot."""
        parts = [(self.links, "links"), (self.joints, "joints"), (self.actuators, "actuators"), (self.loops, "loops"),
                 (self.couplings, "couplings"), (self.elements, "elements"), (self.keyframes, "keyframes"),
                 (of_level("warning", self.warnings), "warnings")]
        counts = ", ".join(f"{len(x)} {name if len(x) != 1 else name[:-1]}" for x, name in parts if x)
        return f"<Robot {self.name}: {counts or 'no links'}, {self.base} base>"
