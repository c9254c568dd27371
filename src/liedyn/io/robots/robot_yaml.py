"""Robot YAML -> Robot: every joint type, bodies by inertia or by shape, thrusters."""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from liedyn.errors import ModelError
from liedyn.io.override import override
from liedyn.io.robots.limits import read_limit
from liedyn.io.robots.loops import read_couplings, read_loops
from liedyn.io.robots.robot_keys import ACTUATOR, JOINT, LINK, ROBOT
from liedyn.io.robots.shapes import Inertia, rotated_inertia, uniform
from liedyn.io.robots.yaml_elements import named, place_of_keys
from liedyn.io.yaml_text import Node, read_yaml
from liedyn.model.description import STANDARD_GRAVITY, Actuator, Coordinate, Joint, Link, Pose, Robot

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
    given = ROBOT.given(root)
    joints = given["joints"].mapping() if "joints" in given else {}
    return Robot(name=ROBOT.value(given, "name", Path(os.fspath(path)).stem), links=named(root, "links", _link),
                 joints=named(root, "joints", lambda name, node: _joint(name, node, joints)),
                 base=ROBOT.value(given, "base", "fixed"), gravity=ROBOT.value(given, "gravity", STANDARD_GRAVITY),
                 actuators=named(root, "actuators", _actuator), loops=read_loops(root), couplings=read_couplings(root),
                 source=os.fspath(path))


# links --------------------------------------------------------------------------------------------------------------

def _link(name: str, node: Node) -> Link:
    values = LINK.values(node)
    com = values.get("com", (0.0, 0.0, 0.0))
    if "shape" in values:
        mass, inertia = _shaped(node, values)
        return Link(name, mass, com, inertia, place_of_keys(node, inertia="shape"))
    for key in ("density", "rpy"):
        if key in values:
            raise node.value[key].problem(f"{key} needs a shape", hint="without a shape, give mass and inertia")
    return Link(name, **values, place=place_of_keys(node))


def _shaped(node: Node, values: dict[str, Any]) -> tuple[float, Inertia]:
    """Mass and inertia about the centre, link axes, of a uniform shape."""
    if "inertia" in values:
        raise node.value["inertia"].problem("both a shape and an inertia", expected="one of them")
    if ("mass" in values) == ("density" in values):
        raise node.problem("a shape needs either mass or density", found=list(values))
    volume, inertia = uniform(*values["shape"])
    mass = values["mass"] if "mass" in values else values["density"] * volume
    if "rpy" in values:
        inertia = rotated_inertia(Pose.from_xyz_rpy(rpy=values["rpy"]).rotation, inertia)
    return mass, tuple(mass * x for x in inertia)


# joints -------------------------------------------------------------------------------------------------------------

def _joint(name: str, node: Node, joints: Iterable[str]) -> Joint:
    values = JOINT.values(node)
    if "mimic" in values:
        node.value["mimic"].value["joint"].choice(joints)
    own = {key: values[key] for key in ("origin", "axes", "pitch", "sequence", "screws", "mimic") if key in values}
    if "axis" in values:
        own["axes"] = (values["axis"],)
    joint = Joint(name, values["type"], values["parent"], values["child"], **own,
                  place=place_of_keys(node, axis="axes" if "axes" in values else "axis"))
    return _with_coordinates(joint, node)


def _with_coordinates(joint: Joint, node: Node) -> Joint:
    """The joint with its limits and passive forces; each is a number for all coordinates or a list with one for each."""
    count = len(joint.labels)
    values = {key: _each(child, count) for key, child in node.value.items() if key in _COORDINATE}
    if "limits" in node.value:
        for key, child in node.value["limits"].mapping().items():
            if key in _POSITION_LIMITS and joint.type in ("ball", "free", "continuous"):
                raise child.problem(f"a {joint.type} joint has no {key} limit")
            values[key] = tuple(read_limit(x) for x in _each(child, count))
    return replace(joint, coordinates=tuple(Coordinate(**{key: each[k] for key, each in values.items()}) for k in range(count)))


def _each(node: Node, count: int) -> tuple[float, ...]:
    return node.vector(count) if node.kind == "list" else (node.number(),) * count


# actuators ----------------------------------------------------------------------------------------------------------

def _actuator(name: str, node: Node) -> Actuator:
    return Actuator(name, **ACTUATOR.values(node), place=place_of_keys(node))
