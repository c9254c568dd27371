"""Robot -> robot YAML, and its closures and couplings alone as a loops file. Numbers read back to the same bits."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from liedyn.io.robots.limits import written_limit
from liedyn.io.robots.write_rotation import error, quaternion_error, quaternion_of, rpy_of
from liedyn.io.write_yaml import number_text, to_yaml
from liedyn.model.description import IDENTITY, STANDARD_GRAVITY, Actuator, Coordinate, Coupling, Joint, Link, Loop, Pose, Robot

_WIDTH = 130
_LONG_KEY = 1000                     # characters: YAML has longer keys as `? key` only
_LIMITS = ("lower", "upper", "velocity", "effort")
_PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")
_ZERO = (0.0, 0.0, 0.0)


def robot_yaml(robot: Robot) -> str:
    """The text of a robot file. What has its default is left out. The robot is valid (`model.validate`), and a joint that mimics
    another names one that exists."""
    head: dict[str, Any] = {"name": robot.name}
    if robot.base != "fixed":
        head["base"] = robot.base
    if robot.gravity != STANDARD_GRAVITY:
        head["gravity"] = list(robot.gravity)
    return _lines_text(head) + _named("links", {link.name: _link(link) for link in robot.links}) \
        + _named("joints", {joint.name: _joint(joint) for joint in robot.joints}) \
        + _named("actuators", {actuator.name: _actuator(actuator) for actuator in robot.actuators}) + _constraints(robot)


def loops_yaml(robot: Robot, file: str) -> str:
    """The text of a loops file for the robot file `file`, which stands beside it."""
    return _lines_text({"robot": file}) + _constraints(robot)


def _constraints(robot: Robot) -> str:
    return _named("loops", {loop.name: _loop(loop) for loop in robot.loops}) \
        + _named("couplings", {coupling.name: _coupling(coupling) for coupling in robot.couplings})


def _lines_text(values: Mapping[str, Any]) -> str:
    return "\n".join(_lines(values, "")) + "\n"


def _named(key: str, values: Mapping[str, dict]) -> str:
    return f"{key}:\n" + "\n".join(_lines(values, "  ")) + "\n" if values else ""


def _lines(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A line a key where it fits; else the keys of its value a level deeper."""
    for key, value in values.items():
        written = _word(key)
        head = f"{indent}{written}:" if len(written) < _LONG_KEY else f"{indent}? {written}\n{indent}:"
        line = f"{head} {_flow(value)}"
        if isinstance(value, dict) and len(line) > _WIDTH:
            yield head
            yield from _lines(value, indent + "  ")
        else:
            yield line


def _flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        keys = [("? " if len(key) >= _LONG_KEY else "") + _word(key) for key in value]
        return "{" + ", ".join(f"{key}: {_flow(x)}" for key, x in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return _word(value)
    return number_text(value) if isinstance(value, float) else to_yaml(value, flow=True)


@lru_cache(4096)
def _word(text: str) -> str:
    """With quotes where a flow mapping or list needs them."""
    return to_yaml([text], flow=True)[1:-1]


def _link(link: Link) -> dict:
    xx, xy, xz, yy, yz, zz = link.inertia
    inertia = link.inertia if xy or xz or yz else (xx, yy, zz)
    return _without_defaults({"mass": link.mass, "com": list(link.com), "inertia": list(inertia)},
                             {"mass": 0.0, "com": list(_ZERO), "inertia": list(_ZERO)})


def _joint(joint: Joint) -> dict:
    values: dict[str, Any] = {"type": joint.type, "parent": joint.parent, "child": joint.child}
    if origin := plain_pose(joint.origin):
        values["origin"] = origin
    if joint.axes:
        axes = [list(axis) for axis in joint.axes]
        values |= {"axes": axes} if joint.type == "universal" else {"axis": axes[0]}
    if joint.type == "helical":
        values["pitch"] = joint.pitch
    if joint.sequence:
        values["sequence"] = joint.sequence
    if joint.screws:
        values["screws"] = [list(screw) for screw in joint.screws]
    limits = {key: written for key in _LIMITS if (written := _each(joint, key)) is not None}
    if limits:
        values["limits"] = limits
    values |= {key: written for key in _PASSIVE if (written := _each(joint, key)) is not None}
    if joint.mimic and joint.labels:
        mimic = joint.mimic
        values["mimic"] = {"joint": mimic.joint, "multiplier": mimic.multiplier, "offset": mimic.offset}
    return values


def _each(joint: Joint, key: str) -> float | list[float] | None:
    """A number for all coordinates, a list with one for each, or None where all have the default."""
    numbers = [getattr(coordinate, key) for coordinate in joint.figures]
    if all(x == getattr(Coordinate(), key) for x in numbers):
        return None
    numbers = [written_limit(x) for x in numbers]
    return numbers[0] if len(set(numbers)) == 1 else numbers


def plain_pose(pose: Pose) -> dict:
    """xyz, and rpy or quaternion: what reads back closer, rpy if they are equal."""
    values = {}
    if pose.translation != _ZERO:
        values["xyz"] = list(pose.translation)
    if pose.rotation != IDENTITY:
        rpy, quaternion = rpy_of(pose.rotation), quaternion_of(pose.rotation)
        closer = error(pose.rotation, rpy) <= quaternion_error(pose.rotation, quaternion)
        values |= {"rpy": list(rpy)} if closer else {"quaternion": list(quaternion)}
    return values


def _actuator(actuator: Actuator) -> dict:
    return {"link": actuator.link} | _without_defaults(
        {"position": list(actuator.position), "axis": list(actuator.axis), "torque_ratio": actuator.torque_ratio},
        {"position": list(_ZERO), "axis": [0.0, 0.0, 1.0], "torque_ratio": 0.0})


def _loop(loop: Loop) -> dict:
    values: dict[str, Any] = {"type": loop.type, "a": _frame(loop.a, loop.pose_a), "b": _frame(loop.b, loop.pose_b)}
    if loop.axes:
        axes = [list(axis) for axis in loop.axes]
        values |= {"axes": axes} if loop.type == "universal" else {"axis": axes[0]}
    if loop.type == "distance":
        values["length"] = loop.length
    if loop.type == "rolling":
        values |= {"radius": loop.radius, "shape": loop.shape}
    return values | ({"driven": True} if loop.driven else {})


def _frame(link: str, pose: Pose) -> str | dict:
    written = plain_pose(pose)
    return {"link": link} | written if written else link


def _coupling(coupling: Coupling) -> dict:
    terms = {f"{joint}.{label}" if label else joint: factor for joint, label, factor in coupling.terms}
    return {"terms": terms} | ({"offset": coupling.offset} if coupling.offset else {})


def _without_defaults(values: dict, defaults: dict) -> dict:
    return {key: value for key, value in values.items() if value != defaults[key]}

