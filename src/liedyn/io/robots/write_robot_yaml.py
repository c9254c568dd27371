"""Robot -> robot YAML, and its closures and couplings -> loops file. Numbers read back to the same bits."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from liedyn.errors import escape_nonprintable
from liedyn.io.robots.coupling_function import function_to_dict
from liedyn.io.robots.robot_schema import KEYFRAME, MIMIC, ONE_SIDED, written_limit
from liedyn.io.yaml_values import plain, to_yaml
from liedyn.model.description import (
    FRICTION_KEYS,
    FRICTION_MODELS,
    JOINT_TYPES,
    LIMITS,
    LOOP_TYPES,
    STANDARD_GRAVITY,
    Actuator,
    Coordinate,
    Coupling,
    Joint,
    Keyframe,
    Loop,
    Robot,
    coordinate_name,
)
from liedyn.model.force_element import FORCE_ELEMENT_TYPES, ForceElement
from liedyn.model.links import IDENTITY, Link, Pose, Rotation, Shape, Shapes, Vector, vector
from liedyn.model.mass_properties import SHAPES

# write rotation ---------------------------------------------------------------------------------------------------------

# Rotation matrices as the angles or the quaternion of a file: those that read back to the same matrix, to the bit where there
# are such, else to rounding.

_DIGITS = range(4, 17)               # of the rounded angles that are tried: files hold 1.5708 more often than 1.5707963267948966


def rpy_of(R: Rotation) -> Vector:
    """Return roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll), also if the pitch is a right angle."""
    if R == IDENTITY:
        return 0.0, 0.0, 0.0
    best, smallest = (0.0, 0.0, 0.0), math.inf
    for rpy in _nearby(R):
        if (difference := error(R, rpy)) < smallest:
            best, smallest = rpy, difference
        if not smallest:
            break
    return best


def error(R: Rotation, rpy: Vector) -> float:
    """Return the maximum difference of an entry."""
    return _difference(R, Pose.from_xyz_rpy(rpy=rpy).rotation)


def quaternion_of(R: Rotation) -> tuple[float, float, float, float]:
    """Return the unit quaternion x y z w with w >= 0, computed from its largest component."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    squares = (1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz)     # 4 x^2, 4 y^2, 4 z^2, 4 w^2
    k = max(range(4), key=squares.__getitem__)
    rows = ((squares[0], xy + yx, xz + zx, zy - yz), (xy + yx, squares[1], yz + zy, xz - zx),
            (xz + zx, yz + zy, squares[2], yx - xy), (zy - yz, xz - zx, yx - xy, squares[3]))
    norm = math.copysign(math.hypot(*rows[k]), rows[k][3])
    x, y, z, w = (entry / norm + 0.0 for entry in rows[k])
    return x, y, z, w


def quaternion_error(R: Rotation, quaternion: tuple[float, ...]) -> float:
    """Return how far a quaternion of any norm is from a rotation."""
    norm = math.hypot(*quaternion)
    return _difference(R, Pose.from_xyz_quaternion((0, 0, 0), [x / norm for x in quaternion]).rotation)


def _difference(R: Rotation, S: Rotation) -> float:
    return max(abs(a - b) for a, b in zip(R, S, strict=True))


def _nearby(R: Rotation) -> Iterator[Vector]:
    """Yield angles of R: first rounded ones, then the exact ones and their neighbours among the floats."""
    angles = list(dict.fromkeys(_angles(R)))
    for rpy in angles:
        yield from (vector(float(f"{x:.{digits}g}") for x in rpy) for digits in _DIGITS)
    for rpy in angles:
        yield rpy
        yield from itertools.product(*[(x, math.nextafter(x, -4.0), math.nextafter(x, 4.0)) for x in rpy])


def _angles(R: Rotation) -> Iterator[Vector]:
    """Yield roll, pitch, yaw with |pitch| up to a right angle, and beyond.

    If the pitch is a right angle to rounding, roll and yaw are one angle: the roll is that of the last row, or 0.
    """
    flat = math.hypot(R[7], R[8])
    for sign in (1.0, -1.0):
        pitch = math.atan2(-R[6], sign * flat)
        roll_of_last_row = math.atan2(sign * R[7], sign * R[8])
        for roll in {roll_of_last_row, 0.0 if flat < 1e-12 else roll_of_last_row}:
            s, c = math.sin(roll), math.cos(roll)
            yield roll, pitch, math.atan2(sign * R[3], sign * R[0])
            yield roll, pitch, math.atan2(R[2] * s - R[1] * c, R[4] * c - R[5] * s)        # of R Rx(-roll): never ill-conditioned


# write robot yaml -------------------------------------------------------------------------------------------------------

PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")
_ZERO = (0.0, 0.0, 0.0)


def robot_yaml(robot: Robot, shapes: Shapes = MappingProxyType({})) -> str:
    """Return the text of a robot file, without keys that have their default, with shapes for drawing by link.

    The robot is valid (`model.validate`), and no fixed joint mimics another one (`as_yaml`).
    """
    head = {"name": robot.name, "base": _unless(robot.base, "fixed"), "gravity": _unless(robot.gravity, STANDARD_GRAVITY)}
    return to_yaml(plain(head)) \
        + _named("links", robot.links, lambda link: _link(link, shapes.get(link.name, ()))) \
        + _named("joints", robot.joints, _joint) \
        + _named("actuators", robot.actuators, _actuator) + _constraints(robot) + _named("keyframes", robot.keyframes, _keyframe)


def loops_yaml(robot: Robot, file: str) -> str:
    """Return the text of a loops file for the robot file `file`, which is next to it."""
    return to_yaml({"robot": file}) + _constraints(robot)


def _constraints(robot: Robot) -> str:
    actuated = to_yaml({"actuated": list(robot.actuated)}) if robot.actuated else ""
    return _named("loops", robot.loops, _loop) + _named("couplings", robot.couplings, _coupling) + actuated \
        + _named("elements", robot.elements, _element)


def _named(key: str, elements: Sequence[Any], values_of: Callable[[Any], dict[str, Any]]) -> str:
    return f"{key}:\n" + to_yaml(plain({element.name: values_of(element) for element in elements}), "  ") if elements else ""


def _unless(value: Any, default: Any) -> Any:
    """Return None, which is not written, for a default, and other values unchanged."""
    return None if value == default else value


def _link(link: Link, shapes: Sequence[Shape]) -> dict[str, Any]:
    xx, xy, xz, yy, yz, zz = link.inertia
    inertia = link.inertia if xy or xz or yz else (xx, yy, zz)
    return {"mass": link.mass or None, "com": _unless(link.com, _ZERO),
            "inertia": inertia if shapes else _unless(inertia, _ZERO),         # without it, the shapes are a uniform body
            "shapes": [_shape(shape) for shape in shapes] or None}


def _shape(shape: Shape) -> dict[str, Any]:
    sizes: Any = list(shape.sizes) if shape.kind == "box" else dict(zip(SHAPES[shape.kind], shape.sizes, strict=True))
    return {shape.kind: sizes} | pose_to_dict(shape.pose) | ({"colour": list(shape.colour)} if shape.colour else {})


def _joint(joint: Joint) -> dict[str, Any]:
    limits, passive = ({key: _each(joint, key) for key in keys} for keys in (LIMITS, PASSIVE))
    keys = plain({key: _each(joint, name) for key, name in FRICTION_KEYS.items()})
    is_rigid = any(coordinate.rigid_friction for coordinate in joint.coordinate_parameters)
    if is_rigid or "speed" in keys:
        passive["friction"] = {"model": FRICTION_MODELS[is_rigid], "level": 0.0} | keys
    mimic = {key: getattr(joint.mimic, key) for key in MIMIC} if joint.mimic and joint.labels else None
    parameters = {name: getattr(joint, name) for name in JOINT_TYPES[joint.type].parameters}
    return {"type": joint.type, "parent": joint.parent, "child": joint.child, "origin": pose_to_dict(joint.origin) or None,
            **_axes(joint), **parameters, "limits": plain(limits) or None, **passive, "mimic": mimic}


def _axes(element: Joint | Loop) -> dict[str, Any]:
    if not element.axes:
        return {}
    return {"axis": element.axes[0]} if len(element.axes) == 1 else {"axes": element.axes}


def _each(joint: Joint, key: str) -> float | list[float] | None:
    """Return a number for all coordinates, a list with one for each, or None if all have the default."""
    values = [getattr(coordinate, key) for coordinate in joint.coordinate_parameters]
    if all(x == getattr(Coordinate(), key) for x in values):
        return None
    values = [written_limit(x) for x in values]
    return values[0] if len(set(values)) == 1 else values


def pose_to_dict(pose: Pose) -> dict[str, Any]:
    """Return xyz, and rpy or quaternion: the one that reads back closer, rpy if they are equal."""
    values = {}
    if pose.translation != _ZERO:
        values["xyz"] = list(pose.translation)
    if pose.rotation != IDENTITY:
        rpy, quaternion = rpy_of(pose.rotation), quaternion_of(pose.rotation)
        closer = error(pose.rotation, rpy) <= quaternion_error(pose.rotation, quaternion)
        values |= {"rpy": list(rpy)} if closer else {"quaternion": list(quaternion)}
    return values


def _actuator(actuator: Actuator) -> dict[str, Any]:
    if actuator.joints:
        return {"joints": dict(actuator.joints), "limits": actuator.limits}
    return {"link": actuator.link, "position": _unless(actuator.position, _ZERO), "axis": _unless(actuator.axis, (0.0, 0.0, 1.0)),
            "torque_ratio": actuator.torque_ratio or None, "limits": actuator.limits}


def _loop(loop: Loop) -> dict[str, Any]:
    return {"type": loop.type, "a": _frame(loop.a, loop.pose_a), "b": _frame(loop.b, loop.pose_b), **_axes(loop),
            **{key: getattr(loop, key) for key in LOOP_TYPES[loop.type].parameters}, "driven": loop.driven or None}


def _element(element: ForceElement) -> dict[str, Any]:
    return {"type": element.type, "a": _frame(element.a, element.pose_a), "b": _frame(element.b, element.pose_b),
            **element_parameters(element)}


def element_parameters(element: ForceElement) -> dict[str, Any]:
    """Return the parameters of a force element that are not at their defaults, as in a file."""
    default = ForceElement("", element.type, "", "")
    values = {key: getattr(element, key) for key in FORCE_ELEMENT_TYPES[element.type].parameters}
    values = {key: x for key, x in values.items() if x != getattr(default, key)}
    for key in ("stiffness", "damping", "free_length"):
        if key in values:
            values[key] = _plain_numbers(key, values[key])
    return values


def _plain_numbers(key: str, values: tuple[float, ...]) -> Any:
    """Return the numbers of a field of a force element as in a file."""
    if len(values) == 36:
        return [list(values[k:k + 6]) for k in range(0, 36, 6)]
    if key == "damping" and len(values) == 2:
        return dict(zip(ONE_SIDED, values, strict=True))
    return values[0] if len(values) == 1 else list(values)


def _frame(link: str, pose: Pose) -> str | dict[str, Any]:
    written = pose_to_dict(pose)
    return {"link": link} | written if written else link


def _coupling(coupling: Coupling) -> dict[str, Any]:
    terms = {coordinate_name(joint, label): factor for joint, label, factor in coupling.terms}
    if coupling.function is not None:
        follower, driver = terms
        return {"follower": follower, "driver": driver, **function_to_dict(coupling.function)}
    return {"terms": terms, "offset": coupling.offset or None}


def _keyframe(keyframe: Keyframe) -> dict[str, Any]:
    return {key: {joint: x[0] if len(x) == 1 else x for joint, x in getattr(keyframe, key)} or None for key in KEYFRAME}


# What a file format can say of a robot -----------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Omission:
    """A part of an element that a file format cannot describe. dynamics: whether this changes the motion of the robot."""

    element: str
    message: str
    dynamics: bool = True

    def __str__(self) -> str:
        return f"{escape_nonprintable(self.element)}: {self.message}"


@dataclass(slots=True)
class Subset:
    """The part of a robot that a file format can describe.

    robot      the robot without the parts that the format cannot describe
    rewritten  messages about parts that are written in an equivalent form
    losses     parts that the format cannot describe
    """

    robot: Robot
    rewritten: list[str] = field(default_factory=list)
    losses: list[Omission] = field(default_factory=list)


def as_yaml(robot: Robot) -> Subset:
    """Return the part of a robot that a robot YAML can describe: all but mimics of fixed joints, which have no effect."""
    out = Subset(robot)
    for joint in robot.joints:
        if joint.mimic and joint.type == "fixed":
            message = f"its mimic of {joint.mimic.joint}, which has no effect, is left out"
            out.losses.append(Omission(joint.name, message, dynamics=False))
    lost = {loss.element for loss in out.losses}
    out.robot = replace(robot, joints=tuple(replace(j, mimic=None) if j.name in lost else j for j in robot.joints))
    return out
