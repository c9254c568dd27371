"""What robot files in YAML have in common: elements by name, where each stands, poses."""
from __future__ import annotations

import math

from liedyn.io.keys import Keys
from liedyn.io.robots.element_place import ElementPlace
from liedyn.io.robots.robot_keys import POSE
from liedyn.io.yaml_text import Node
from liedyn.model.description import Pose

_UNIT_ROUNDING = 1e-6                # of a quaternion's norm: what rounding to seven digits leaves


def entries(root: Node, key: str):
    node = root.get(key)
    return node.mapping().items() if node else ()


def place_of_keys(node: Node, **parts: str) -> ElementPlace:
    """The place of an element and of its keys; `parts` are those that go by another name in the description."""
    lines = {key: child.place for key, child in node.mapping().items()}
    lines.update({name: lines[key] for name, key in parts.items() if key in lines})
    return ElementPlace(node.file, node.line, node.key, lines)


def read_pose(node: Node | None, known: Keys = POSE) -> Pose:
    """xyz with rpy or quaternion; other keys of `known` may stand beside them."""
    if node is None:
        return Pose()
    keys = node.mapping(known)
    xyz = known.value(keys, "xyz", (0.0, 0.0, 0.0))
    if "quaternion" not in keys:
        return Pose.from_xyz_rpy(xyz, known.value(keys, "rpy", (0.0, 0.0, 0.0)))
    if "rpy" in keys:
        raise keys["rpy"].problem("both rpy and quaternion", expected="one of them")
    quaternion = known.value(keys, "quaternion")
    norm = math.hypot(*quaternion)
    if abs(norm - 1) > _UNIT_ROUNDING:
        raise keys["quaternion"].problem(f"the quaternion has norm {norm:.7g}", found=keys["quaternion"].shown(),
                                         expected="a unit quaternion x, y, z, w")
    return Pose.from_xyz_quaternion(xyz, [x / norm for x in quaternion])
