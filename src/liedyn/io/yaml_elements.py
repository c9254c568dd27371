"""What robot files in YAML have in common: elements by name, where each stands, poses."""
from __future__ import annotations

import math

from liedyn.io.element_place import ElementPlace
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


def read_pose(node: Node | None, *others: str) -> Pose:
    """xyz with rpy or quaternion; the keys `others` may stand beside them."""
    if node is None:
        return Pose()
    keys = node.mapping((*others, "xyz", "rpy", "quaternion"))
    xyz = keys["xyz"].vector(3) if "xyz" in keys else (0.0, 0.0, 0.0)
    if "quaternion" not in keys:
        return Pose.from_xyz_rpy(xyz, keys["rpy"].vector(3) if "rpy" in keys else (0.0, 0.0, 0.0))
    if "rpy" in keys:
        raise keys["rpy"].problem("both rpy and quaternion", expected="one of them")
    quaternion = keys["quaternion"].vector(4)
    norm = math.hypot(*quaternion)
    if abs(norm - 1) > _UNIT_ROUNDING:
        raise keys["quaternion"].problem(f"the quaternion has norm {norm:.7g}", found=keys["quaternion"].shown(),
                                         expected="a unit quaternion x, y, z, w")
    return Pose.from_xyz_quaternion(xyz, [x / norm for x in quaternion])
