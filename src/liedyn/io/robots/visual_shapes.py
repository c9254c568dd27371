"""Shapes of the links of a robot file, for drawing: uniform bodies of a robot YAML, primitives of a URDF."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from liedyn.errors import ModelError
from liedyn.io.robots.robot_schema import LINK, SHAPES
from liedyn.io.robots.xml_elements import XmlElement, read_urdf_tree
from liedyn.io.yaml_nodes import read_yaml
from liedyn.model.description import Pose

Colour = tuple[float, float, float]                 # red, green, blue from 0 to 1
Materials = Mapping[str | None, Colour | None]
_URDF = {"box": "size", "sphere": "radius", "cylinder": "radius length", "capsule": "radius length"}


@dataclass(frozen=True, slots=True)
class LinkShape:
    """`sizes` [m] are those named in `io.robots.robot_schema.SHAPES`; cylinder and capsule lie along z. pose: of the shape in the
link;
    colour: red, green, blue from 0 to 1 of a URDF's material."""

    kind: str
    sizes: tuple[float, ...]
    pose: Pose
    colour: Colour | None = None


def shapes_of_urdf(path: str | os.PathLike, visible: Container[str] = ()) -> tuple[dict[str, tuple[LinkShape, ...]], int]:
    """The primitives of <visual>; of a link without, and that is not among the `visible` ones, those of <collision>. And how many
    links have shapes, meshes included."""
    root = read_urdf_tree(path)
    materials, found = materials_of(root), {}
    for link in root.every("link"):
        shapes = _primitives(link, "visual", materials)
        shapes = shapes or (() if link.text("name") in visible else _primitives(link, "collision", {}))
        if shapes:
            found[link.text("name")] = shapes
    return found, sum(any(part.tag in ("visual", "collision") for part in link.children) for link in root.every("link"))


def shapes_of_yaml(path) -> dict[str, tuple[LinkShape, ...]]:
    found = {}
    for name, node in read_yaml(path, ModelError).require("links").mapping().items():
        values = LINK.values(node)
        if "shape" in values:
            at, rpy = (values.get(key, (0.0, 0.0, 0.0)) for key in ("com", "rpy"))
            found[name] = (LinkShape(*values["shape"], Pose.from_xyz_rpy(at, rpy)),)
    return found


def _primitives(link: XmlElement, tag: str, materials: Materials) -> tuple[LinkShape, ...]:
    """What cannot be read is passed over: it is decoration."""
    shapes = []
    for part in link.every(tag):
        pose = pose_of(part)
        for kind, names in _URDF.items():
            geometry = part.first("geometry", kind)
            if geometry is not None and pose:
                sizes = numbers_of(" ".join(geometry.text(name, "") for name in names.split()), len(SHAPES[kind]))
                if sizes and min(sizes) > 0:
                    shapes.append(LinkShape(kind, sizes, pose, colour_of(part, materials)))
    return tuple(shapes)


def pose_of(visual: XmlElement) -> Pose | None:
    """Of a URDF's <visual> or <collision> in the link; None of one that cannot be read."""
    origin = visual.first("origin")
    xyz, rpy = (numbers_of(origin.text(key, "0 0 0") if origin else "0 0 0", 3) for key in ("xyz", "rpy"))
    return Pose.from_xyz_rpy(xyz, rpy) if xyz and rpy else None


def numbers_of(text: str, count: int) -> tuple[float, ...] | None:
    """So many finite numbers; None of other texts."""
    try:
        found = tuple(map(float, text.split()))
    except ValueError:
        return None
    return found if len(found) == count and all(map(math.isfinite, found)) else None


def materials_of(robot: XmlElement) -> Materials:
    """Of the <robot>, by name; visuals of any link may use those that one of them defines."""
    visuals = [visual for link in robot.every("link") for visual in link.every("visual")]
    every = [material for element in (robot, *visuals) for material in element.every("material")]
    return {material.text("name"): colour for material in reversed(every) if (colour := _colour(material))}


def colour_of(visual: XmlElement, materials: Materials) -> Colour | None:
    """None of a visual without a material, or with one that has no colour."""
    material = visual.first("material")
    return None if material is None else _colour(material) or materials.get(material.text("name"))


def _colour(material: XmlElement) -> Colour | None:
    colour = material.first("color")
    try:
        red, green, blue, *_ = (min(1.0, max(0.0, float(x))) for x in (colour.text("rgba", "") if colour else "").split())
    except ValueError:
        return None
    return red, green, blue


# link meshes ------------------------------------------------------------------------------------------------------------

# Meshes that a URDF names in <visual>, for drawing: where the files are, and how they are placed. They are not read here.

_PACKAGE = re.compile(r"(?:package|model)://+([^/]+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LinkMesh:
    """A mesh file, scaled and placed in the frame of a link. file: None where none is found; colour: red, green, blue from 0 to 1
    of the URDF's material, None: the file's own."""

    name: str
    file: Path | None
    pose: Pose
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    colour: Colour | None = None


def meshes_of_urdf(path: str | os.PathLike, roots: Sequence[str | os.PathLike] = ()) -> dict[str, tuple[LinkMesh, ...]]:
    """Meshes by link, of a URDF file that has been loaded without an error.

    `package://robot/part.stl` is robot/part.stl in one of the `roots` or in a folder above the file, or part.stl in one that is
    itself called robot. After them come the packages that ROS knows: those of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.
    """
    robot = read_urdf_tree(path)
    materials = materials_of(robot)
    folders = [*map(Path, roots), *Path(path).absolute().parents, *_of_ros()]
    found = {}
    for link in robot.every("link"):
        meshes = tuple(mesh for visual in link.every("visual") if (mesh := _mesh(visual, materials, Path(path), folders)))
        if meshes:
            found[link.text("name")] = meshes
    return found


def _mesh(visual: XmlElement, materials: Materials, path: Path, folders: list[Path]) -> LinkMesh | None:
    """What cannot be read is passed over: it is decoration."""
    mesh, pose = visual.first("geometry", "mesh"), pose_of(visual)
    if mesh is None or not mesh.text("filename") or not pose:
        return None
    scale = numbers_of(mesh.text("scale", "1 1 1"), 3)
    if not scale or 0.0 in scale:
        return None
    return LinkMesh(mesh.text("filename"), _file(mesh.text("filename"), path, folders), pose, scale, colour_of(visual, materials))


def _file(name: str, path: Path, folders: list[Path]) -> Path | None:
    package = _PACKAGE.fullmatch(name)
    if package:
        places = (place for folder in folders
                  for place in (folder / package[1] / package[2], *([folder / package[2]] if folder.name == package[1] else [])))
    elif name.startswith("file://"):
        places = (Path(unquote(name.removeprefix("file://"))),)
    else:
        places = (path.absolute().parent / name,)
    try:
        return next((place for place in places if place.is_file()), None)
    except (OSError, ValueError):                               # a name that no file can have
        return None


def _of_ros() -> list[Path]:
    def of(variable: str) -> list[Path]:
        return [Path(place) for place in os.environ.get(variable, "").split(os.pathsep) if place]

    return [*of("ROS_PACKAGE_PATH"), *(place / "share" for place in of("AMENT_PREFIX_PATH"))]
