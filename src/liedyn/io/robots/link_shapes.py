"""Shapes of the links of a robot file, for pictures: uniform bodies of a robot YAML, primitives of a URDF."""
from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from liedyn.errors import ModelError
from liedyn.io.robots.link_materials import Materials, colour_of, materials_of
from liedyn.io.robots.shapes import SHAPES
from liedyn.io.yaml_text import read_yaml
from liedyn.model.description import Pose

_URDF = {"box": "size", "sphere": "radius", "cylinder": "radius length", "capsule": "radius length"}


@dataclass(frozen=True, slots=True)
class LinkShape:
    """`sizes` [m] are those named in `io.robots.shapes.SHAPES`; cylinder and capsule lie along z. pose: of the shape in the link;
    colour: red, green, blue from 0 to 1 of a URDF's material."""

    kind: str
    sizes: tuple[float, ...]
    pose: Pose
    colour: tuple[float, float, float] | None = None


def link_shapes(path: str | os.PathLike, visible: Container[str] = ()) -> dict[str, tuple[LinkShape, ...]]:
    """Shapes by link, of a robot file that has been loaded without an error; none of links without one, and of meshes.

    Of a URDF, the primitives of <visual>; of a link without, and that is not among the `visible` ones, those of <collision>. Of
    an MJCF file, its geoms.
    """
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return _of_yaml(path)
    root, found = ElementTree.parse(path).getroot(), {}
    if root.tag == "mujoco":
        from liedyn.io.robots.mjcf.read import mjcf_shapes
        return mjcf_shapes(path)
    materials = materials_of(root)
    for link in root.iterfind("link"):
        shapes = _primitives(link, "visual", materials)
        shapes = shapes or (() if link.get("name") in visible else _primitives(link, "collision", {}))
        if shapes:
            found[link.get("name")] = shapes
    return found


def count_shaped(path: str | os.PathLike) -> int:
    """How many links of a robot file that has been loaded without an error have shapes, meshes included."""
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return len(_of_yaml(path))
    root = ElementTree.parse(path).getroot()
    parts = [[part.tag for part in link] for link in root.iter("body" if root.tag == "mujoco" else "link")]
    return sum(any(tag in ("visual", "collision", "geom") for tag in tags) for tags in parts)


def _of_yaml(path) -> dict[str, tuple[LinkShape, ...]]:
    found = {}
    for name, node in read_yaml(path, ModelError).require("links").mapping().items():
        keys = node.mapping()
        if "shape" in keys:
            (kind, sizes), = keys["shape"].mapping().items()
            lengths = sizes.items() if kind == "box" else [sizes.require(size) for size in SHAPES[kind]]
            at, rpy = (keys[key].vector(3) if key in keys else (0.0, 0.0, 0.0) for key in ("com", "rpy"))
            found[name] = (LinkShape(kind, tuple(x.number() for x in lengths), Pose.from_xyz_rpy(at, rpy)),)
    return found


def _primitives(link: ElementTree.Element, tag: str, materials: Materials) -> tuple[LinkShape, ...]:
    """What cannot be read is passed over: it is decoration."""
    shapes = []
    for part in link.iterfind(tag):
        origin = part.find("origin")
        origin = {} if origin is None else origin
        for kind, names in _URDF.items():
            geometry = part.find(f"geometry/{kind}")
            if geometry is None:
                continue
            try:
                sizes = tuple(float(x) for name in names.split() for x in geometry.get(name, "").split())
                xyz, rpy = (tuple(float(x) for x in origin.get(key, "0 0 0").split()) for key in ("xyz", "rpy"))
            except ValueError:
                continue
            if len(sizes) == len(SHAPES[kind]) and min(sizes) > 0 and len(xyz) == len(rpy) == 3:
                shapes.append(LinkShape(kind, sizes, Pose.from_xyz_rpy(xyz, rpy), colour_of(part, materials)))
    return tuple(shapes)
