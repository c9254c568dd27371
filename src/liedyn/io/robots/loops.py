"""Closures and couplings in YAML: the keys `loops` and `couplings` of a robot file, or a file of their own beside a URDF."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from liedyn.errors import ModelError, Place
from liedyn.io.robots.robot_keys import COUPLING, LOOP, LOOPS_FILE
from liedyn.io.robots.yaml_elements import named, place_of_keys
from liedyn.io.yaml_text import Node, read_yaml
from liedyn.model.description import Coupling, Finding, Loop


@dataclass(frozen=True, slots=True)
class LoopsFile:
    """A file of constraints: the robot file that it names, if any, its closures and its couplings."""

    robot: str | None
    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]


def read_loops_file(path: str | os.PathLike) -> LoopsFile:
    """A file of the keys `loops`, `couplings` and perhaps `robot`. Raises ModelError with file, line and key."""
    root = read_yaml(path, ModelError)
    return LoopsFile(LOOPS_FILE.value(root.mapping(LOOPS_FILE), "robot"), read_loops(root), read_couplings(root))


def robot_of_loops(path: str | os.PathLike) -> str:
    """The robot file that a file of constraints names, relative to it; ModelError where it names none."""
    robot = read_loops_file(path).robot
    if robot is None:
        raise ModelError("the loops file does not name a robot", place=Place(os.fspath(path)), expected="the key robot",
                         hint="or use the robot file")
    return robot


def loops_beside(path: str | os.PathLike) -> tuple[LoopsFile | None, tuple[Finding, ...]]:
    """The constraints that stand beside a URDF: in `arm.loops.yaml` for `arm.urdf`, else in `loops.yaml` if its key `robot`
    names the file (by its last part, where the folders were moved since). One that names no robot, or another file of that
    name, is passed over, which is a finding."""
    path = Path(path)
    own, common = path.with_suffix(".loops.yaml"), path.with_name("loops.yaml")
    if own.is_file():
        return read_loops_file(own), ()
    if not common.is_file():
        return None, ()
    found = read_loops_file(common)
    if found.robot is None:
        return None, (Finding("loops-unused", common.name, f"does not name a robot and is ignored; add robot: {path.name}",
                              Place(os.fspath(common))),)
    if os.path.basename(found.robot) != path.name:
        return None, ()
    named = os.path.abspath(common.parent / found.robot)
    if named != os.path.abspath(path) and os.path.isfile(named):
        return None, (Finding("loops-unused", common.name, f"belongs to {found.robot}, another file of that name, and is ignored",
                              Place(os.fspath(common))),)
    return found, ()


def read_loops(root: Node) -> tuple[Loop, ...]:
    return named(root, "loops", _loop)


def read_couplings(root: Node) -> tuple[Coupling, ...]:
    return named(root, "couplings", _coupling)


def _loop(name: str, node: Node) -> Loop:
    values = LOOP.values(node)
    if "axis" in values and values.get("shape") == "sphere":
        raise node.value["axis"].problem("a sphere has no axis")
    place = place_of_keys(node, axis="axes" if values["type"] == "universal" else "axis")
    if "axis" in values:
        values["axes"] = (values.pop("axis"),)
    (a, pose_a), (b, pose_b) = values.pop("a"), values.pop("b")
    return Loop(name, a=a, b=b, pose_a=pose_a, pose_b=pose_b, **values, place=place)


def _coupling(name: str, node: Node) -> Coupling:
    values = COUPLING.values(node)
    return Coupling(name, tuple((joint, "", factor) for joint, factor in values["terms"].items()), values.get("offset", 0.0),
                    place_of_keys(node))
