"""Closures and couplings in YAML: the keys `loops` and `couplings` of a robot file, or a file of their own beside a URDF."""
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from liedyn.errors import ModelError, Place
from liedyn.io.robots.robot_keys import COUPLING, FRAME, LOOP, LOOPS_FILE
from liedyn.io.robots.yaml_elements import entries, place_of_keys, read_pose
from liedyn.io.yaml_text import Node, read_yaml
from liedyn.model.description import Coupling, Finding, Loop, Pose


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
    return tuple(_loop(name, node) for name, node in entries(root, "loops"))


def read_couplings(root: Node) -> tuple[Coupling, ...]:
    return tuple(_coupling(name, node) for name, node in entries(root, "couplings"))


def _loop(name: str, node: Node) -> Loop:
    kind = LOOP.required(node, "type")
    keys, own = node.mapping(), dict(_figures(node, kind))
    if "axis" in keys and own.get("shape") == "sphere":
        raise keys["axis"].problem("a sphere has no axis")
    (a, pose_a), (b, pose_b) = (_frame(LOOP.require(node, side)) for side in "ab")
    driven = LOOP.value(keys, "driven", False)
    return Loop(name, kind, a, b, pose_a, pose_b, driven=driven, **own,
                place=place_of_keys(node, axis="axes" if kind == "universal" else "axis"))


def _figures(node: Node, kind: str) -> Iterator[tuple[str, object]]:
    """What the type has of its own."""
    keys, known = node.mapping(), LOOP.of_kind(kind)
    for key in set(LOOP).difference(known):
        if key in keys:
            raise keys[key].problem(f"a {kind} closure has no {key}")
    node.refuse_unknown_keys(known)
    if "axis" in keys:
        yield "axes", (LOOP.value(keys, "axis"),)
    if "axes" in keys:
        yield "axes", tuple(axis.vector(3) for axis in keys["axes"].items(2, of="axes"))
    if "shape" in keys:
        yield "shape", LOOP.value(keys, "shape")
    for key in ("length", "radius"):
        if key in known:
            yield key, LOOP.required(node, key)


def _frame(node: Node) -> tuple[str, Pose]:
    """The link and the frame in it: a name alone stands for the link's own frame."""
    if node.kind == "text":
        return node.text(), Pose()
    return FRAME.required(node, "link"), read_pose(node, FRAME)


def _coupling(name: str, node: Node) -> Coupling:
    keys = node.mapping(COUPLING)
    terms = COUPLING.require(node, "terms").mapping()
    return Coupling(name, tuple((joint, "", factor.number()) for joint, factor in terms.items()),
                    COUPLING.value(keys, "offset", 0.0), place_of_keys(node))
