"""Keys of robot YAML and loops files, for their reader, their JSON schemas, templates and the tables of the documentation."""
from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from liedyn.io.file_schema import (
    Boolean,
    Choice,
    Field,
    File,
    List,
    Named,
    Names,
    Number,
    OneOf,
    Schema,
    Text,
    Vector,
    default_of,
    one_of,
    one_or_more,
)
from liedyn.io.robots import IGNORABLE
from liedyn.io.robots.coupling_function import Columns, read_columns, read_points
from liedyn.io.yaml_nodes import Node
from liedyn.model.coupling_expression import SPLINE_DEGREES, CouplingFunction
from liedyn.model.description import (
    FRICTION_KEYS,
    FRICTION_MODELS,
    JOINT_TYPES,
    LOOP_TYPES,
    Actuator,
    Coordinate,
    JointType,
    LoopType,
    Mimic,
    Robot,
)
from liedyn.model.element_values import MAX_INPUT, UNIT_QUATERNION
from liedyn.model.force_element import FORCE_ELEMENT_TYPES, ForceElement
from liedyn.model.interpolation import INTERPOLATIONS
from liedyn.model.links import Link, Pose, Shape
from liedyn.model.mass_properties import SHAPES, Inertia

# Limits of joints in files: numbers are finite there, and some formats require a limit where there is none --------------

NO_LIMIT = 1e300                     # a limit of this magnitude or more means none


def read_limit(x: float) -> float:
    """Return the limit of a file: infinite if its magnitude is at least NO_LIMIT."""
    return x if abs(x) < NO_LIMIT else math.copysign(math.inf, x)


def written_limit(x: float) -> float:
    """Return the limit as a finite number."""
    return x if math.isfinite(x) else math.copysign(NO_LIMIT, x)


# robot keys -------------------------------------------------------------------------------------------------------------

def inertia(maximum: float | None = None) -> OneOf:
    """Return the declaration of an inertia: six numbers, or the three of its diagonal.

    maximum  magnitude; None: `model.validate` checks it
    """
    def read(node: Node) -> Inertia:
        if node.kind != "list" or len(node.value) not in (3, 6):
            raise node.wrong("a list of 3 numbers (xx, yy, zz) or 6 (xx, xy, xz, yy, yz, zz)")
        values = node.vector(len(node.value), maximum)
        return values if len(values) == 6 else (values[0], 0.0, 0.0, values[1], 0.0, values[2])
    return OneOf((Vector(3), Vector(6)), "inertia", read)


def _shape(node: Node) -> tuple[str, tuple[float, ...]]:
    """Return the kind of a shape, and its lengths [m] in the order of SHAPES."""
    nodes = node.mapping(SHAPE)
    if len(nodes) != 1:
        raise node.wrong("one of " + ", ".join(SHAPE))
    kind, = nodes
    return kind, SHAPE.value(nodes, kind)


def _placed_shape(node: Node) -> Shape:
    values = PLACED_SHAPE.values(node)
    kinds = [kind for kind in SHAPE if kind in values]
    if len(kinds) != 1:
        raise node.wrong("one of " + ", ".join(SHAPE))
    return Shape(kinds[0], values[kinds[0]], _pose(node, PLACED_SHAPE), values.get("colour"))


def _pose(node: Node, known: Schema) -> Pose:
    """Return the pose of a mapping with xyz, and with rpy or quaternion. It may have other keys of `known`."""
    values = known.values(node)
    norm, xyz = quaternion_norm(node, values), values.get("xyz", (0.0, 0.0, 0.0))
    if "quaternion" not in values:
        return Pose.from_xyz_rpy(xyz, values.get("rpy", (0.0, 0.0, 0.0)))
    return Pose.from_xyz_quaternion(xyz, [x / norm for x in values["quaternion"]])


def quaternion_norm(node: Node, values: Mapping[str, Any]) -> float:
    """Return the norm of the quaternion of a pose, 1 without one. Raise unless it is nearly 1, or if there is also `rpy`."""
    if "quaternion" in values and "rpy" in values:
        raise node.value["rpy"].problem("rpy and quaternion cannot be combined", expected="one of them")
    norm = math.hypot(*values.get("quaternion", (1.0,)))
    if abs(norm - 1) > UNIT_QUATERNION:
        quaternion = node.value["quaternion"]
        raise quaternion.problem(f"the quaternion has norm {norm:.7g}", found=quaternion.excerpt(),
                                 expected="a unit quaternion x, y, z, w")
    return norm


def _side(node: Node) -> tuple[str, Pose]:
    """Return the link and the frame in it. A name alone means the frame of the link."""
    return (node.value, Pose()) if node.kind == "text" else (FRAME.values(node)["link"], _pose(node, FRAME))


# links --------------------------------------------------------------------------------------------------------------

_POSE = (
    Field("xyz", Vector(3), "position [m]", "zero", example=[0, 0, -0.5], live=True),
    Field("rpy", Vector(3), "fixed axes, R = Rz Ry Rx [rad]", "zero", example=[0, 0, 0.1]),
    Field("quaternion", Vector(4), "instead of `rpy`: `[x, y, z, w]`", example=[0, 0, 0, 1]))
POSE: Schema = Schema("pose", _POSE, reader=lambda node: _pose(node, POSE))
_LENGTH = Number(above=0, maximum=MAX_INPUT)
_SIZES = {"radius": Field("radius", _LENGTH, "[m]", required="a length in metres", example=0.03, live=True),
          "length": Field("length", _LENGTH, "along z [m]", required="a length in metres", example=0.5, live=True)}


def _round(shape: str) -> Schema:
    """Return the declaration of a shape by its sizes, whose value is a tuple of them."""
    keys = Schema(shape, tuple(_SIZES[size] for size in SHAPES[shape]))
    return replace(keys, reader=lambda node: tuple(keys.values(node)[size] for size in SHAPES[shape]))


SHAPE = one_of(
    "shape",
    Field("box", List(_LENGTH, 3, 3, "lengths"), "lengths along x, y and z [m]", example=[0.1, 0.1, 0.5]),
    Field("sphere", _round("sphere"), "by its radius"),
    Field("cylinder", _round("cylinder"), "along z"),
    Field("capsule", _round("capsule"), "along z; its length is that of the cylindrical part"),
    reader=_shape)
PLACED_SHAPE: Schema = Schema("placed_shape", (
    *SHAPE.keys, *_POSE,
    Field("colour", Vector(3), "red, green, blue from 0 to 1", example=[0.2, 0.4, 0.8])), one_of=(tuple(SHAPE),),
    reader=lambda node: _placed_shape(node))
LINK = Schema("link", (
    Field("mass", Number(), "[kg]", default_of(Link, "mass"), example=1.2),
    Field("com", Vector(3), "centre of mass in the link frame [m]", "the origin", example=[0, 0, -0.25]),
    Field("inertia", inertia(), "about the centre of mass, in link axes [kg m²]: `[xx, yy, zz]` or "
        "`[xx, xy, xz, yy, yz, zz]`", 0, example=[0.02, 0.02, 0.001]),
    Field("shape", SHAPE, "instead of `inertia`, a uniform body centred at `com`: `box: [x, y, z]`, `sphere: {radius}`, "
        "`cylinder: {radius, length}`, `capsule: {radius, length}`; cylinder and capsule lie along z, and the length of a "
        "capsule is that of its cylindrical part"),
    Field("shapes", List(PLACED_SHAPE, 1, words="shapes"), "a list of shapes as in `shape`, each with the pose of its centre in "
        "the link frame (`xyz`, and `rpy` or `quaternion`) and a `colour: [red, green, blue]` from 0 to 1. With `inertia`, they "
        "are only drawn; without it and `com`, they are one uniform body",
        example=[{"sphere": {"radius": 0.03}, "xyz": [0, 0, -0.5]}]),
    Field("density", _LENGTH, "with `shape` or `shapes`, instead of `mass` [kg/m³]", example=2700),
    Field("rpy", Vector(3), "with `shape`: its orientation in the link frame", "zero", example=[0, 0, 0.1])))

# joints -------------------------------------------------------------------------------------------------------------

def _axes(types: Names) -> str:
    """Return a text about the axes of these joint types."""
    meanings: dict[str, list[str]] = {}
    for name in types:
        meanings.setdefault(", ".join(JOINT_TYPES[name].axes), []).append(name)
    return "; ".join(f"{', '.join(names)}: {meaning}" for meaning, names in meanings.items())


def _with_parameter(table: Mapping[str, JointType | LoopType], key: str) -> Names:
    """Return the types of joints or closures with a parameter."""
    return Names(table, lambda entry: key in entry.parameters)


# A joint along a curve is a type in files only: the reader makes it of single joints and couplings (`curve_joint`).
CURVE = "curve"
CURVE_COMPONENTS = ("x", "y", "z", "roll", "pitch", "yaw")
_TYPES = ChainMap(JOINT_TYPES, {CURVE: JointType(("",), ("rad or m",), lambda _: ())})
_MOVING = Names(_TYPES, lambda joint: bool(joint.labels))
_OF_SCREWS = Names(_TYPES, lambda joint: joint.screws is not None)
_ONE_AXIS = Names(JOINT_TYPES, lambda joint: len(joint.axes) == 1)
_TWO_AXES = Names(JOINT_TYPES, lambda joint: len(joint.axes) == 2)
_WITH_PITCH, _WITH_SEQUENCE, _WITH_SCREWS = (_with_parameter(JOINT_TYPES, key) for key in ("pitch", "sequence", "screws"))
EACH_COORDINATE = OneOf((Number(), List(Number(), 1, words="numbers")), "each_coordinate")
LIMITS = Schema("limits", (
    Field("lower", EACH_COORDINATE, "position [rad or m]; not for continuous, ball and free joints", example=-2, live=True),
    Field("upper", EACH_COORDINATE, "position [rad or m]; not for continuous, ball and free joints", example=2, live=True),
    Field("velocity", EACH_COORDINATE, "[rad/s or m/s]", example=5, live=True),
    Field("effort", EACH_COORDINATE, "[N m or N]", example=40, live=True),
    Field("acceleration", EACH_COORDINATE, "[rad/s^2 or m/s^2], for `move`", example=10),
    Field("jerk", EACH_COORDINATE, "[rad/s^3 or m/s^3], for `move`", example=100)))
MIMIC: Schema = Schema("mimic", (
    Field("joint", Text(), "the joint to follow", required="the name of the joint to follow", example="shoulder"),
    Field("multiplier", Number(), "q = multiplier · q_joint + offset", default_of(Mimic, "multiplier"), example=2),
    Field("offset", Number(), "[rad or m]", default_of(Mimic, "offset"), example=0.1)),
    reader=lambda node: Mimic(**MIMIC.values(node)))


def _passive(name: str, meaning: str, kinds: Sequence[str], example: float) -> Field:
    return Field(name, EACH_COORDINATE, meaning, default_of(Coordinate, name), kinds=kinds, example=example)


def _friction(node: Node) -> Any:
    """Return the friction of the coordinates: numbers, or the keys of a mapping by their names."""
    return FRICTION.values(node) if node.kind == "mapping" else friction_level(node)


def friction_level(node: Node) -> Any:
    """Return the friction of the coordinates that is not given by a mapping."""
    if node.kind == "text":
        raise node.wrong("a number, or a mapping with keys such as model and level")
    return EACH_COORDINATE.read(node)


def friction_of_coordinates(node: Node, count: int) -> dict[str, tuple[float, ...]]:
    """Return the fields of `Coordinate` of friction given by a mapping, for `count` coordinates."""
    values = {field: each_number(node.value[key], count) for key, field in FRICTION_KEYS.items() if key in node.value}
    return values | {"rigid_friction": (float(node.value["model"].value == "rigid"),) * count}


def each_number(node: Node, count: int) -> tuple[float, ...]:
    """Return a number for each of `count` coordinates, from one for all or a list."""
    return node.vector(count) if node.kind == "list" else (node.number(),) * count


FRICTION: Schema = Schema("friction", (
    Field("model", Choice(FRICTION_MODELS), "`regularized`: smooth at low speed; `rigid`: in runs, the joint sticks "
        "until the friction that this needs exceeds the static level", required="one of " + ", ".join(FRICTION_MODELS),
        example="rigid"),
    Field("level", EACH_COORDINATE, "friction in motion [N m or N]", required="a number, or a list with one for each coordinate",
        example=0.2),
    Field("speed", EACH_COORDINATE, "speed below which friction is smoothed [rad/s or m/s]: force "
        "`-level v / sqrt(v² + speed²)`; with `rigid`, only in functions "
        "of a state", default_of(Coordinate, "friction_speed"), example=0.001),
    Field("static", EACH_COORDINATE, "rigid: maximum friction at rest [N m or N]", "level", example=0.3),
    Field("stribeck", EACH_COORDINATE, "rigid: speed [rad/s or m/s]; in motion, friction is level + (static - level) "
        "exp(-(v / stribeck)²)", "none: it falls to level at once", example=0.05)))


COUPLING = Schema("coupling", (
    Field("terms", Named(Number(), "joint"), "linear coupling: coefficients by coordinate: `joint`, or `joint.label` for a joint "
        "with several coordinates; not for ball and free joints", example={"shoulder": 1, "elbow": -2}),
    Field("offset", Number(), "right-hand side: the sum of coefficient times coordinate equals `offset`", 0, example=0.1),
    Field("follower", Text(), "nonlinear coupling: coordinate that is a function of the driver", example="elbow"),
    Field("driver", Text(), "nonlinear coupling: coordinate of which the follower is a function", example="shoulder"),
    Field("function", Text(), "position of the follower as an expression of that of the driver, by its name or `q` [rad or m]",
        example="0.5*sin(shoulder)"),
    Field("table", OneOf((Text(), List(Vector(2), 2), Named(List(Number(), 2), "driver")), "table", read_points), "the same by "
        "points `[driver, follower]` [rad or m]; by columns with units, `{\"driver[deg]\": […], \"follower[mm]\": […]}`; or by a "
        "CSV with two columns, whose titles may have units", example=[[0, 0], [1, 0.4], [2, 0.6], [3, 0.7]]),
    Field("interpolation", Choice(tuple(SPLINE_DEGREES)), "of the table, by a spline: `cubic` has two continuous derivatives, "
        "`quintic` four", default_of(CouplingFunction, "interpolation"), example="quintic"),
    Field("periodic", Boolean(), "true: the table is one period of the driver; the last value is the first one, or whole turns "
        "more. false: straight lines continue it", default_of(CouplingFunction, "periodic"), example=True)),
    one_of=(("terms", "function", "table"),))


def _columns(node: Node) -> str | Columns:
    """Return the columns of a table of a curve by component, or the text of a node that names a CSV."""
    return node.text() if node.kind == "text" else read_columns(node)


JOINT = Schema("joint", (
    Field("type", Choice(Names(_TYPES)), ", ".join(f"`{kind}`" for kind in (*JOINT_TYPES, CURVE)),
        required="one of " + ", ".join((*JOINT_TYPES, CURVE)), example="revolute", live=True),
    Field("parent", Text(), "a link; `world` is the ground", required="a link's name or world", example="upper", live=True),
    Field("child", Text(), "the link that it moves", required="a link's name", example="lower", live=True),
    Field("origin", POSE, "pose of the joint frame in the parent link: `xyz`, and `rpy` (fixed axes, R = Rz Ry Rx) or "
        "`quaternion` (`[x, y, z, w]`)", live=True),
    Field("axis", Vector(3), _axes(_ONE_AXIS), required="a list of 3 numbers", kinds=_ONE_AXIS, example=[0, 1, 0], live=True),
    Field("axes", List(Vector(3), 2, 2, "axes"), f"a list of two axes; {_axes(_TWO_AXES)}", required="a list of 2 axes",
        kinds=_TWO_AXES, example=[[1, 0, 0], [0, 1, 0]]),
    Field("pitch", Number(), f"{', '.join(_WITH_PITCH)}: metres of advance per radian", required="metres of advance per radian",
        kinds=_WITH_PITCH, example=0.01),
    Field("sequence", Text(), f"{', '.join(_WITH_SEQUENCE)}: three letters, intrinsic, such as `zyx`: R = Rz(q1) Ry(q2) Rx(q3)",
        required="three letters such as zyx", kinds=_WITH_SEQUENCE, example="zyx"),
    Field("screws", List(Vector(6), 1, 6, "screws"), f"{', '.join(_WITH_SCREWS)}: one to six `[wx, wy, wz, vx, vy, vz]` in the "
        "joint frame; motion = exp(S1 q1) … exp(Sk qk)", required="a list of screws [wx, wy, wz, vx, vy, vz]", kinds=_WITH_SCREWS,
        example=[[0, 0, 1, 0, 0, 0.1]]),
    Field("coordinate", Choice(CURVE_COMPONENTS), "curve: the component of the pose that is the coordinate: `x`, `y`, `z`, "
        "`roll`, `pitch` or `yaw`", required="one of " + ", ".join(CURVE_COMPONENTS), kinds=(CURVE,), example="yaw"),
    Field("functions", Named(Text(), "x"), "curve: other components as expressions of the coordinate, by the joint's name or `q`",
        kinds=(CURVE,), example={"x": "0.02*sin(q)", "y": "0.01*q**2"}),
    Field("table", OneOf((Text(), Named(List(Number(), 2), "x")), "columns", _columns), "curve: components by points, as lists "
        "by component, such as `\"yaw[deg]\": […]`, or as a CSV with a column for each, such as `yaw[deg],x[mm]`", kinds=(CURVE,),
        example={"yaw": [0, 1, 2, 3], "x": [0, 0.01, 0.015, 0.016]}),
    *(replace(COUPLING[name], kinds=(CURVE,)) for name in ("interpolation", "periodic")),
    Field("limits", LIMITS, "`lower`, `upper` (position; not for continuous, ball and free joints), `velocity`, `effort`, "
        "`acceleration`, `jerk` (for planned motions)",
        kinds=_MOVING, live=True),
    _passive("damping", "force `-damping v`", _MOVING, 0.1),
    Field("friction", OneOf((EACH_COORDINATE, FRICTION), "friction_of_joint", _friction), "Coulomb friction force, smoothed at "
        "low speed (see [conventions](conventions.md)), or a mapping for [friction that "
        "holds](scenarios/contact.md#friction-that-holds)",
        default_of(Coordinate, "friction"), kinds=_MOVING, example=0.2),
    _passive("armature", "rotor inertia reflected to the joint, added to the diagonal of `M`", _MOVING, 0.01),
    _passive("stiffness", "spring force `-stiffness (q - rest)`; not for ball and free joints", _OF_SCREWS, 10),
    _passive("rest", "position of the relaxed spring", _OF_SCREWS, 0.2),
    Field("mimic", MIMIC, "`{joint, multiplier, offset}`: q = multiplier · q_joint + offset (a [coupling](loops.md))",
        kinds=_OF_SCREWS)), kind="type", one_of=(("functions", "table"),), lacks="a {} joint has no {}")

ACTUATOR = Schema("actuator", (
    Field("link", Text(), "thruster: the link that the thrust acts on", example="lower", live=True),
    Field("position", Vector(3), "point of application in the link frame [m]", "the origin", example=[0, 0, -0.5], live=True),
    Field("axis", Vector(3), "direction of positive thrust in the link frame", "z", example=[1, 0, 0], live=True),
    Field("torque_ratio", Number(), "reaction torque about the axis per unit of thrust [m]", default_of(Actuator, "torque_ratio"),
        example=0.02),
    Field("joints", Named(Number(), "joint"), "tendon, in place of `link`: generalized forces on joints by 1 N of thrust: lever "
        "arms about joints that turn [m], ratios for joints that slide; for joints with one coordinate",
        example={"shoulder": 0.02, "elbow": -0.01}),
    Field("limits", Vector(2), "minimum and maximum thrust [N], which `saturate` of a scenario enforces", "none",
        example=[0, 12])), one_of=(("link", "joints"),))

# loops --------------------------------------------------------------------------------------------------------------

FRAME = Schema("frame", (
    Field("link", Text(), "a link; `world` is the ground", required="a link's name or world", example="lower", live=True),
    *_POSE))
_SIDE = OneOf((Text(), FRAME), "side", _side)
_NEEDS_A_SIDE = "a link's name, or link with xyz and rpy"


LOOP = Schema("loop", (
    Field("type", Choice(Names(LOOP_TYPES)), ", ".join(f"`{kind}`" for kind in LOOP_TYPES),
        required="one of " + ", ".join(LOOP_TYPES), example="ball"),
    Field("a", _SIDE, "frame a: a link's name, or `{link, xyz, rpy}` or `{link, xyz, quaternion}`; `world` is the ground",
        required=_NEEDS_A_SIDE, example="world"),
    Field("b", _SIDE, "frame b, in the same form", required=_NEEDS_A_SIDE),
    Field("driven", Boolean(), "true: the motion of frame a in its link is a given function of time: "
          "`constraint_motion:` in a scenario, `constraint_motion=` in Python", False, example=True),
    Field("axes", List(Vector(3), 2, 2, "axes"), "universal: two axes that stay perpendicular, the first in frame a, the second "
        "in frame b", "x and y", kinds=Names(LOOP_TYPES, lambda loop: len(loop.axes) == 2), example=[[1, 0, 0], [0, 1, 0]]),
    Field("length", _LENGTH, "distance: between the origins of the frames [m]", required="metres",
        kinds=_with_parameter(LOOP_TYPES, "length"), example=0.4),
    Field("radius", _LENGTH, "rolling: radius [m] of the wheel about the origin of frame b; it rolls on the plane z = 0 of frame "
        "a", required="metres", kinds=_with_parameter(LOOP_TYPES, "radius"), example=0.1),
    Field("shape", Choice(("disc", "sphere")), "rolling: `disc` or `sphere`", "disc", kinds=_with_parameter(LOOP_TYPES, "shape"),
        example="sphere"),
    Field("axis", Vector(3), "revolute, prismatic, cylindrical: the common axis of both frames; planar: the normal; the same "
        "components in frame a and frame b; rolling disc: the axle, in frame b", "z",
        kinds=Names(LOOP_TYPES, lambda loop: len(loop.axes) == 1), example=[0, 1, 0])), kind="type",
    lacks="a {} closure has no {}")

# force elements -------------------------------------------------------------------------------------------------------

ONE_SIDED = Schema("one_sided", (
    Field("compression", Number(minimum=0), "while the element becomes shorter", 0, example=2, live=True),
    Field("extension", Number(minimum=0), "while it becomes longer", 0, example=8, live=True)))
_ROWS = List(OneOf((Number(), Vector(6))), 6, 6, "numbers or rows")


def _of_types(*names: str) -> Names:
    """Return the types of elements that may have one of these fields."""
    return Names(FORCE_ELEMENT_TYPES, lambda entry: not set(names).isdisjoint(entry.parameters))


def _damping(node: Node) -> tuple[float, ...]:
    if node.kind == "mapping":
        values = ONE_SIDED.values(node)
        return values.get("compression", 0.0), values.get("extension", 0.0)
    return _stiffness(node, "a number, or a mapping with compression and extension")


def _stiffness(node: Node, of_others: str = "a number") -> tuple[float, ...]:
    if node.kind != "list":
        return (node.number(),)
    if len(node.value) != 6:
        raise node.wrong(f"{of_others}; of a bushing, a list of 6 numbers or rows")
    rows = _ROWS.read(node)
    return tuple(x for row in rows for x in (row if isinstance(row, tuple) else (row,)))


def _free_length(node: Node) -> tuple[float, ...]:
    return node.vector(2) if node.kind == "list" else (node.number(),)


ELEMENT = Schema("element", (
    Field("type", Choice(Names(FORCE_ELEMENT_TYPES)), ", ".join(f"`{kind}`" for kind in FORCE_ELEMENT_TYPES),
        required="one of " + ", ".join(FORCE_ELEMENT_TYPES), example="spring", live=True),
    Field("a", _SIDE, "frame a: a link's name, or `{link, xyz, rpy}` or `{link, xyz, quaternion}`; `world` is the ground",
        required=_NEEDS_A_SIDE, example="world", live=True),
    Field("b", _SIDE, "frame b, in the same form", required=_NEEDS_A_SIDE, live=True),
    Field("stiffness", OneOf((Number(), _ROWS), "stiffness", _stiffness), "[N/m]; torsion: [N m/rad]; bushing: 6 numbers (about "
        "x y z, then along x y z of frame a) or 6 rows of 6", kinds=_of_types("stiffness"), example=200, live=True),
    Field("damping", OneOf((Number(), ONE_SIDED, _ROWS), "element_damping", _damping), "[N s/m]; torsion: [N m s/rad]; bushing: "
        "as its stiffness; others: also `{compression, extension}`", "none", kinds=_of_types("damping"), example=5, live=True),
    Field("free_length", OneOf((Number(), Vector(2)), "free_length", _free_length), "[m] spring: without force, or `[lower, "
        "upper]` between which there is none; cable: slack up to it", "spring: the length where all coordinates "
        "are zero, also those of joints that follow others",
        kinds=_of_types("free_length"), example=0.3, live=True),
    Field("rest", Number(), "torsion: angle of b relative to a about the axis, without torque [rad]", 0, kinds=_of_types("rest"),
        example=0.2),
    Field("preload", Number(), "spring: tension at the free length [N]; torsion: torque at rest [N m]", 0,
        kinds=_of_types("preload"), example=20),
    Field("table", OneOf((Text(), List(Vector(2), 2)), "force_table", read_points), "instead of stiffness: points `[length, "
        "tension]`, torsion: `[angle, torque]`; damper, instead of damping: `[speed, tension]`; or a CSV with two columns, "
        "whose titles may have units", kinds=_of_types("table"), example=[[0.2, -30], [0.3, 0], [0.4, 10]]),
    Field("interpolation", Choice(INTERPOLATIONS), "of the table: `linear`, `monotone` (smooth, without overshoot) or `cubic`; "
        "straight lines continue it", default_of(ForceElement, "interpolation"), kinds=_of_types("interpolation"),
        example="cubic"),
    Field("axis", Vector(3), "torsion: with the same components in frame a and frame b", "z", kinds=_of_types("axis"),
        example=[0, 1, 0]),
    Field("force", Number(above=0), "gas spring: push at the extended length [N]", required="newtons", kinds=_of_types("force"),
        example=400),
    Field("extended_length", Number(above=0), "gas spring [m]", required="metres", kinds=_of_types("extended_length"),
        example=0.5),
    Field("stroke", Number(above=0), "gas spring [m]", required="metres", kinds=_of_types("stroke"), example=0.2),
    Field("progression", Number(above=1), "gas spring: push at the end of the stroke relative to `force`",
        required="a number above 1", kinds=_of_types("progression"), example=1.4),
    Field("exponent", Number(minimum=1), "gas spring: polytropic exponent, from 1 (slow) to 1.4 (fast: adiabatic)",
        default_of(ForceElement, "exponent"), kinds=_of_types("exponent"), example=1.2)), kind="type",
    lacks="a {} element has no {}")
_CONSTRAINTS = (
    Field("loops", Named(LOOP, "loop"), "joints that close a loop, by name: see [closed loops](loops.md)"),
    Field("couplings", Named(COUPLING, "coupling"), "equations between joint coordinates, by name"),
    Field("actuated", List(Text(), 1, words="names of joints"), "names of the joints with motors, for inverse dynamics of robots "
        "with loops", "not known", example=["shoulder"]),
    Field("elements", Named(ELEMENT, "element"), "springs, dampers, gas springs, cables, torsion springs and bushings between "
        "two links, by name: see [force elements](elements.md)", "none"))
LOOPS_FILE = Schema("loops_file", (
    Field("robot", Text(), "path of the robot file, relative to this one", example="robot.urdf", live=True), *_CONSTRAINTS))

_STATE = Named(one_or_more(Number(), "joint_values", "numbers"), "joint")
KEYFRAME = Schema("keyframe", (
    Field("q", _STATE, "positions by joint [rad or m]: a number, or a list for a joint with several coordinates; quaternions are "
        "x y z w", "zero", example={"elbow": -0.5}),
    Field("v", _STATE, "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0.2})))

# included robots ------------------------------------------------------------------------------------------------------

def _argument(node: Node) -> str:
    """Return a text, number or truth value as the text of an argument of xacro."""
    if node.kind not in ("text", "number", "boolean"):
        raise node.wrong("a text, a number, true or false")
    return node.text() if node.kind == "text" else str(node.excerpt())


# how the robot files that scenarios and other robot files name are read
LOOPS_OF_ROBOT = Field("loops", File("file of loops"), "constraints (loops and couplings) of the robot, a separate file: see "
    "[closed loops](loops.md)", "next to a URDF", example="robot.loops.yaml")
READING = (
    Field("inertia_from_meshes", Number(above=0), "density of the links of a URDF without `inertial`, which get the mass "
        "and inertia of their shapes and meshes [kg/m³]: see [files](files.md#inertia-from-meshes)", example=2700),
    Field("ignore", List(Choice(tuple(IGNORABLE)), words="names of parts"), "list of parts of an MJCF file that are left out: "
        + ", ".join(f"`{name}`" for name in IGNORABLE) + "; see [files](files.md#mujoco-files)", example=["fluid"]),
    Field("xacro_args", Named(OneOf((Text(), Number(), Boolean()), "argument", _argument), "argument",
        lambda node: tuple((name, _argument(child)) for name, child in node.mapping().items())),
        "arguments of a xacro file by name: see [files](files.md#xacro-files)", example={"tool": "gripper"}),
    Field("package_roots", List(File("folder", is_folder=True), words="folders"), "folders in which `package://` meshes are "
        "searched: see [files](files.md#inertia-from-meshes)", example=["."]),
    Field("ignore_mimic", Boolean(), "whether mimic joints and couplings of the robot are left out", False, example=True))

MOUNT = Schema("mount", (
    Field("name", Text(), "of the joint", "the prefix and `mount`", example="turntable"),
    *(key for key in JOINT.keys if key.name not in ("parent", "child", "origin", "mimic"))), kind="type",
    one_of=JOINT.one_of, lacks=JOINT.lacks)
INCLUDE = Schema("include", (
    Field("robot", File("robot file"), "robot file (URDF, YAML or MJCF), relative to this one", required="the path of a robot "
        "file", example="robot.urdf"),
    Field("parent", Text(), "the link that carries it, also one of an earlier include; `world` is the ground",
        required="a link's name or world", example="lower"),
    Field("prefix", Text(), "is added to all names of the included robot", "none", example="left_"),
    Field("origin", POSE, "pose of its root link, or of its ground, in the parent link: as of a joint",
        example={"xyz": [0, 0, -0.5]}),
    Field("joint", MOUNT, "joint that carries it, with the keys of a joint except for `parent`, `child`, `origin` and `mimic`, "
        "and with `name`", "a fixed joint", example={"type": "revolute", "axis": [0, 0, 1]}),
    LOOPS_OF_ROBOT, *READING))

ROBOT = Schema("robot", (
    Field("name", Text(), "of the robot", "the file's name", example="arm", live=True),
    Field("base", Choice(("fixed", "floating")), "`floating` adds a free joint named base", default_of(Robot, "base"),
        example="fixed"),
    Field("gravity", Vector(3), "`[x, y, z]` [m/s²]", list(default_of(Robot, "gravity")), example=[0, 0, -9.81]),
    Field("links", Named(LINK, "link"), "rigid bodies by name", required="the links by name", live=True,
        example={"upper": {"mass": 1.2, "com": [0, 0, -0.25], "inertia": [0.02, 0.02, 0.001]},
                 "lower": {"shape": {"cylinder": {"radius": 0.03, "length": 0.5}}, "density": 1000, "com": [0, 0, -0.25]}}),
    Field("joints", Named(JOINT, "joint"), "joints by name; they make a tree of the links", "none", live=True,
        example={"shoulder": {"type": "continuous", "parent": "world", "child": "upper", "axis": [0, 1, 0], "damping": 0.1},
                 "elbow": {"type": "revolute", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -0.5]},
                           "axis": [0, 1, 0], "limits": {"lower": -2, "upper": 2, "velocity": 10, "effort": 60}}}),
    Field("actuators", Named(ACTUATOR, "actuator"), "thrusters and tendons by name; a scenario gives their thrust", "none",
        live=True, example={"rotor": {"link": "lower", "position": [0, 0, -0.5], "axis": [1, 0, 0]}}),
    Field("include", one_or_more(INCLUDE, "includes", "included robots"), "another robot that is attached to a link, or a list "
        "of them", "none", example={"robot": "robot.urdf", "parent": "lower", "prefix": "left_"}),
    *_CONSTRAINTS,
    Field("keyframes", Named(KEYFRAME, "keyframe"), "states by name, from which a scenario may start: `initial: {keyframe: "
        "home}`", "none", example={"home": {"q": {"elbow": -0.5}}})))
