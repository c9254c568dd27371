"""Robot YAML -> Robot: every joint type, bodies by inertia or by shape, thrusters."""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

from liedyn.errors import ModelError
from liedyn.io.override import override
from liedyn.io.robots.limits import read_limit
from liedyn.io.robots.loops import read_couplings, read_loops
from liedyn.io.robots.robot_keys import ACTUATOR, JOINT, LIMITS, LINK, MIMIC, ROBOT, SHAPE
from liedyn.io.robots.shapes import SHAPES, Inertia, rotated_inertia, uniform
from liedyn.io.robots.yaml_elements import entries, place_of_keys, read_pose
from liedyn.io.yaml_text import Node, read_yaml
from liedyn.model.description import STANDARD_GRAVITY, Actuator, Coordinate, Joint, Link, Mimic, Pose, Robot

_POSITION_LIMITS = ("lower", "upper")
_COORDINATE = tuple(key for key in JOINT if key in {field.name for field in fields(Coordinate)})


def read_robot_yaml(path: str | os.PathLike, overrides: Iterable[str] = ()) -> Robot:
    """The robot of a YAML file, after `overrides` ("key.path=value"); not yet validated.

    Lengths are metres, angles radians, masses kilograms, densities kg/m^3. Raises ModelError with file, line and key: no
    YAML, unknown, missing or repeated keys, values of the wrong kind, numbers that are not finite.
    """
    root = read_yaml(path, ModelError)
    for text in overrides:
        override(root, text, ModelError)
    if "robot" in root.mapping() and "links" not in root.value:
        raise root.value["robot"].problem("the file names a robot but does not describe one", found=root.value["robot"].shown(),
                                          expected="links and joints", hint="use that file")
    given = root.mapping(ROBOT)
    links, joints = ROBOT.require(root, "links"), dict(entries(root, "joints"))
    return Robot(name=ROBOT.value(given, "name", Path(os.fspath(path)).stem),
                 links=tuple(_link(key, node) for key, node in links.mapping().items()),
                 joints=tuple(_joint(key, node, joints) for key, node in joints.items()),
                 base=ROBOT.value(given, "base", "fixed"),
                 gravity=ROBOT.value(given, "gravity", STANDARD_GRAVITY),
                 actuators=tuple(_actuator(key, node) for key, node in entries(root, "actuators")),
                 loops=read_loops(root), couplings=read_couplings(root),
                 source=os.fspath(path))


# links --------------------------------------------------------------------------------------------------------------

def _link(name: str, node: Node) -> Link:
    keys = node.mapping(LINK)
    com = LINK.value(keys, "com", (0.0, 0.0, 0.0))
    if "shape" in keys:
        mass, inertia = _shaped(node)
        return Link(name, mass, com, inertia, place_of_keys(node, inertia="shape"))
    for key in ("density", "rpy"):
        if key in keys:
            raise keys[key].problem(f"{key} needs a shape", hint="without a shape, give mass and inertia")
    mass = LINK.value(keys, "mass", 0.0)
    return Link(name, mass, com, LINK.value(keys, "inertia", (0.0,) * 6), place_of_keys(node))


def _shaped(node: Node) -> tuple[float, Inertia]:
    """Mass and inertia about the centre, link axes, of a uniform shape."""
    keys = node.mapping()
    if "inertia" in keys:
        raise keys["inertia"].problem("both a shape and an inertia", expected="one of them")
    if ("mass" in keys) == ("density" in keys):
        raise node.problem("a shape needs either mass or density", found=list(keys))
    entries = keys["shape"].mapping(SHAPE)
    if len(entries) != 1:
        raise keys["shape"].wrong("one of " + ", ".join(SHAPE))
    (shape, sizes), = entries.items()
    if shape == "box":
        lengths = [size.number(above=0) for size in sizes.items(3, of="lengths")]
    else:
        values = SHAPE[shape].value.values(sizes)
        lengths = [values[size] for size in SHAPES[shape]]
    volume, inertia = uniform(shape, lengths)
    mass = LINK.value(keys, "mass") if "mass" in keys else LINK.value(keys, "density") * volume
    if "rpy" in keys:
        inertia = rotated_inertia(Pose.from_xyz_rpy(rpy=LINK.value(keys, "rpy")).rotation, inertia)
    return mass, tuple(mass * x for x in inertia)


# joints -------------------------------------------------------------------------------------------------------------

def _joint(name: str, node: Node, joints: Iterable[str]) -> Joint:
    kind = JOINT.required(node, "type")
    _refuse_keys_of_other_types(node, kind)
    keys = node.mapping()
    own = {}
    if "axis" in JOINT.of_kind(kind):
        own["axes"] = (JOINT.required(node, "axis"),)
    if kind == "universal":
        own["axes"] = tuple(axis.vector(3) for axis in JOINT.require(node, "axes").items(2, of="axes"))
    if kind == "helical":
        own["pitch"] = JOINT.required(node, "pitch")
    if kind == "euler":
        own["sequence"] = JOINT.required(node, "sequence")
    if kind == "screws":
        screws = JOINT.require(node, "screws")
        own["screws"] = tuple(screw.vector(6) for screw in screws.items(least=1, most=6, of="screws"))
    if "mimic" in keys:
        own["mimic"] = _mimic(keys["mimic"], joints)
    joint = Joint(name, kind, JOINT.required(node, "parent"), JOINT.required(node, "child"), read_pose(keys.get("origin")), **own,
                  place=place_of_keys(node, axis="axes" if kind == "universal" else "axis"))
    return _with_coordinates(joint, node)


def _refuse_keys_of_other_types(node: Node, kind: str) -> None:
    known = JOINT.of_kind(kind)
    others = set(JOINT).difference(known)
    for key, child in node.mapping().items():
        if key in others:
            raise child.problem(f"a {kind} joint has no {key}")
    node.refuse_unknown_keys(known)


def _mimic(node: Node, joints: Iterable[str]) -> Mimic:
    keys = node.mapping(MIMIC)
    numbers = {key: MIMIC.value(keys, key) for key in ("multiplier", "offset") if key in keys}
    return Mimic(MIMIC.require(node, "joint").choice(joints), **numbers)


def _with_coordinates(joint: Joint, node: Node) -> Joint:
    """The joint with its limits and passive forces; each is a number for all coordinates or a list with one for each."""
    keys, count = node.mapping(), len(joint.labels)
    values = {key: _each(keys[key], count) for key in _COORDINATE if key in keys}
    if "limits" in keys:
        limits = keys["limits"].mapping(LIMITS)
        for key, child in limits.items():
            if key in _POSITION_LIMITS and joint.type in ("ball", "free", "continuous"):
                raise child.problem(f"a {joint.type} joint has no {key} limit")
            values[key] = tuple(read_limit(x) for x in _each(child, count))
    return replace(joint, coordinates=tuple(Coordinate(**{key: each[k] for key, each in values.items()}) for k in range(count)))


def _each(node: Node, count: int) -> tuple[float, ...]:
    if node.kind == "list":
        return node.vector(count)
    return (node.number(),) * count


# actuators ----------------------------------------------------------------------------------------------------------

def _actuator(name: str, node: Node) -> Actuator:
    return Actuator(name, **ACTUATOR.values(node), place=place_of_keys(node))
