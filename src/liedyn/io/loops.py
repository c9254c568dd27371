"""Closures and couplings in YAML: the keys `loops` and `couplings` of a robot file, or a file of their own beside a URDF."""
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from liedyn.errors import ModelError, Place
from liedyn.io.yaml_elements import entries, place_of_keys, read_pose
from liedyn.io.yaml_text import Node, read_yaml
from liedyn.model.description import LOOP_TYPES, Coupling, Finding, Loop, Pose

_KEYS = ("type", "a", "b", "driven")
# what each type has besides
_OWN_KEYS: dict[str, tuple[str, ...]] = {
    "revolute": ("axis",), "prismatic": ("axis",), "cylindrical": ("axis",), "planar": ("axis",), "universal": ("axes",),
    "distance": ("length",), "rolling": ("radius", "shape", "axis"),
}
_COUPLING_KEYS = ("terms", "offset")
_FILE_KEYS = ("robot", "loops", "couplings")


@dataclass(frozen=True, slots=True)
class LoopsFile:
    """A file of constraints: the robot file that it names, if any, its closures and its couplings."""

    robot: str | None
    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]


def read_loops_file(path: str | os.PathLike) -> LoopsFile:
    """A file of the keys `loops`, `couplings` and perhaps `robot`. Raises ModelError with file, line and key."""
    root = read_yaml(path, ModelError)
    root.mapping(_FILE_KEYS)
    robot = root.get("robot")
    return LoopsFile(robot.text() if robot else None, read_loops(root), read_couplings(root))


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
    return tuple(_loop(name, node) for name, node in entries(root, "loops"))


def read_couplings(root: Node) -> tuple[Coupling, ...]:
    return tuple(_coupling(name, node) for name, node in entries(root, "couplings"))


def _loop(name: str, node: Node) -> Loop:
    kind = node.require("type", "one of " + ", ".join(LOOP_TYPES)).choice(LOOP_TYPES)
    keys, own = node.mapping(), dict(_figures(node, kind))
    if "axis" in keys and own.get("shape") == "sphere":
        raise keys["axis"].problem("a sphere has no axis")
    (a, pose_a), (b, pose_b) = (_frame(node.require(side, "a link's name, or link with xyz and rpy")) for side in "ab")
    driven = keys["driven"].boolean() if "driven" in keys else False
    return Loop(name, kind, a, b, pose_a, pose_b, driven=driven, **own,
                place=place_of_keys(node, axis="axes" if kind == "universal" else "axis"))


def _figures(node: Node, kind: str) -> Iterator[tuple[str, object]]:
    """What the type has of its own."""
    keys, own = node.mapping(), _OWN_KEYS.get(kind, ())
    for key in set().union(*_OWN_KEYS.values()).difference(own):
        if key in keys:
            raise keys[key].problem(f"a {kind} closure has no {key}")
    node.refuse_unknown_keys([*_KEYS, *own])
    if "axis" in keys:
        yield "axes", (keys["axis"].vector(3),)
    if "axes" in keys:
        yield "axes", tuple(axis.vector(3) for axis in keys["axes"].items(2, of="axes"))
    if "shape" in keys:
        yield "shape", keys["shape"].choice(("disc", "sphere"))
    for key in ("length", "radius"):
        if key in own:
            yield key, node.require(key, "metres").number(above=0)


def _frame(node: Node) -> tuple[str, Pose]:
    """The link and the frame in it: a name alone stands for the link's own frame."""
    if node.kind == "text":
        return node.text(), Pose()
    link = node.require("link", "a link's name or world")
    return link.text(), read_pose(node, "link")


def _coupling(name: str, node: Node) -> Coupling:
    keys = node.mapping(_COUPLING_KEYS)
    terms = node.require("terms", "coefficients by joint: {joint1: 1, joint2: -2}").mapping()
    return Coupling(name, tuple((joint, "", factor.number()) for joint, factor in terms.items()),
                    keys["offset"].number() if "offset" in keys else 0.0, place_of_keys(node))
