"""Shapes of the links of a robot file, for pictures: uniform bodies of a robot YAML, primitives of a URDF."""
from __future__ import annotations

import math
import os
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from liedyn.errors import ModelError
from liedyn.io.robots.robot_keys import LINK
from liedyn.io.robots.shapes import SHAPES
from liedyn.io.robots.urdf_tree import Element, read_urdf_tree
from liedyn.io.robots.xml_reader import root_tag
from liedyn.io.yaml_text import read_yaml
from liedyn.model.description import Pose

Colour = tuple[float, float, float]                 # red, green, blue from 0 to 1
Materials = Mapping[str | None, Colour | None]
_URDF = {"box": "size", "sphere": "radius", "cylinder": "radius length", "capsule": "radius length"}


@dataclass(frozen=True, slots=True)
class LinkShape:
    """`sizes` [m] are those named in `io.robots.shapes.SHAPES`; cylinder and capsule lie along z. pose: of the shape in the link;
    colour: red, green, blue from 0 to 1 of a URDF's material."""

    kind: str
    sizes: tuple[float, ...]
    pose: Pose
    colour: Colour | None = None


def urdf_root(path: str | os.PathLike) -> Element | None:
    """The <robot> of a URDF file; None for files of other formats. Raises ModelError as loading does."""
    if Path(path).suffix.lower() in (".yaml", ".yml") or root_tag(path) == "mujoco":
        return None
    return read_urdf_tree(path)


def shapes_of_urdf(root: Element, visible: Container[str] = ()) -> dict[str, tuple[LinkShape, ...]]:
    """The primitives of <visual>; of a link without, and that is not among the `visible` ones, those of <collision>."""
    materials, found = materials_of(root), {}
    for link in root.iterfind("link"):
        shapes = _primitives(link, "visual", materials)
        shapes = shapes or (() if link.get("name") in visible else _primitives(link, "collision", {}))
        if shapes:
            found[link.get("name")] = shapes
    return found


def shapes_of_yaml(path) -> dict[str, tuple[LinkShape, ...]]:
    found = {}
    for name, node in read_yaml(path, ModelError).require("links").mapping().items():
        values = LINK.values(node)
        if "shape" in values:
            at, rpy = (values.get(key, (0.0, 0.0, 0.0)) for key in ("com", "rpy"))
            found[name] = (LinkShape(*values["shape"], Pose.from_xyz_rpy(at, rpy)),)
    return found


def _primitives(link: Element, tag: str, materials: Materials) -> tuple[LinkShape, ...]:
    """What cannot be read is passed over: it is decoration."""
    shapes = []
    for part in link.iterfind(tag):
        pose = pose_of(part)
        for kind, names in _URDF.items():
            geometry = part.find(f"geometry/{kind}")
            if geometry is not None and pose:
                sizes = numbers_of(" ".join(geometry.get(name, "") for name in names.split()), len(SHAPES[kind]))
                if sizes and min(sizes) > 0:
                    shapes.append(LinkShape(kind, sizes, pose, colour_of(part, materials)))
    return tuple(shapes)


def pose_of(visual: Element) -> Pose | None:
    """Of a URDF's <visual> or <collision> in the link; None of one that cannot be read."""
    origin = visual.find("origin")
    origin = {} if origin is None else origin
    xyz, rpy = (numbers_of(origin.get(key, "0 0 0"), 3) for key in ("xyz", "rpy"))
    return Pose.from_xyz_rpy(xyz, rpy) if xyz and rpy else None


def numbers_of(text: str, count: int) -> tuple[float, ...] | None:
    """So many finite numbers; None of other texts."""
    try:
        found = tuple(map(float, text.split()))
    except ValueError:
        return None
    return found if len(found) == count and all(map(math.isfinite, found)) else None


def materials_of(robot: Element) -> Materials:
    """Of the <robot>, by name; visuals of any link may use those that one of them defines."""
    every = [*robot.iterfind("material"), *robot.iterfind("link/visual/material")]
    return {material.get("name"): colour for material in reversed(every) if (colour := _colour(material))}


def colour_of(visual: Element, materials: Materials) -> Colour | None:
    """None of a visual without a material, or with one that has no colour."""
    material = visual.find("material")
    return None if material is None else _colour(material) or materials.get(material.get("name"))


def _colour(material: Element) -> Colour | None:
    colour = material.find("color")
    try:
        red, green, blue, *_ = (min(1.0, max(0.0, float(x))) for x in ({} if colour is None else colour).get("rgba", "").split())
    except ValueError:
        return None
    return red, green, blue
