"""Shapes of robots for drawing, and the primitives and meshes of a URDF."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from liedyn.errors import LiedynWarning
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.model.description import Robot
from liedyn.model.links import Colour, LinkMesh, LinkVisuals, Pose, Shape, vector
from liedyn.model.mass_properties import SHAPES

Materials = Mapping[str | None, Colour | None]
_URDF = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def link_shapes(robot: Robot, visible: Container[str] = ()) -> dict[str, tuple[Shape, ...]]:
    """Return the primitives of each link that has some.

    A link without visible primitives has those of its collisions, unless it is in `visible` (its meshes are drawn).
    """
    drawn = {link: visuals.shapes or (() if link in visible else visuals.collision) for link, visuals in robot.visuals.items()}
    return {link: shapes for link, shapes in drawn.items() if shapes}


def simple_shapes(shape: Shape) -> list[Shape]:
    """Return a shape as boxes, spheres and cylinders: a capsule is a cylinder between two spheres."""
    if shape.kind != "capsule":
        return [shape]
    (radius, length), pose = shape.sizes, shape.pose
    ends = (vector(x + offset * z for x, z in zip(pose.translation, pose.rotation[2::3], strict=True))
            for offset in (-length / 2, length / 2))
    return [replace(shape, kind="cylinder"),
            *(replace(shape, kind="sphere", sizes=(radius,), pose=replace(pose, translation=end)) for end in ends)]


def link_meshes(robot: Robot, folders: Sequence[str | os.PathLike[str]] = (),
                collision: bool = False) -> dict[str, tuple[LinkMesh, ...]]:
    """Return the meshes of each link that has some, with the paths of the files that exist. The files are not read.

    collision: whether to return the meshes of collisions.

    `package://robot/part.stl` is robot/part.stl in one of the `folders` or in a parent folder of the robot file, or part.stl in
    one that is itself called robot. Folders of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH follow.
    """
    meshes = {link: visuals.collision_meshes if collision else visuals.meshes for link, visuals in robot.visuals.items()}
    return {link: with_files(group, robot, folders) for link, group in meshes.items() if group}


def with_files(meshes: Iterable[LinkMesh], robot: Robot, folders: Sequence[str | os.PathLike[str]] = ()) -> tuple[LinkMesh, ...]:
    """Return meshes of a robot with the paths of the files that exist. The files are not read. folders: as for `link_meshes`."""
    path = Path(robot.source or "")
    places = [*map(Path, folders), *path.absolute().parents, *_ros_packages()]
    return tuple(mesh if mesh.file else replace(mesh, file=_file(mesh.name, path, places)) for mesh in meshes)


def with_mesh_files(robot: Robot, folders: Sequence[str | os.PathLike[str]]) -> Robot:
    """Return a robot whose meshes have the paths of the files that exist. folders: as for `link_meshes`."""
    return replace(robot, visuals={
        link: replace(visuals, meshes=with_files(visuals.meshes, robot, folders),
                      collision_meshes=with_files(visuals.collision_meshes, robot, folders))
        for link, visuals in robot.visuals.items()})


def visuals_of_urdf(robot: XmlElement) -> tuple[dict[str, LinkVisuals], list[LiedynWarning]]:
    """Return the visuals of the <robot> of a URDF, and warnings about invalid shapes, which are left out."""
    materials, visuals = materials_of(robot), {}
    warnings: list[LiedynWarning] = []
    for link in robot.every("link"):
        visual, collision = ([_drawn(part, names, warnings) for part in link.children if part.tag == tag]
                             for tag, names in (("visual", materials), ("collision", {})))
        if visual or collision:
            shapes, collision_shapes = (tuple(shape for shapes, _ in parts for shape in shapes) for parts in (visual, collision))
            meshes, collision_meshes = (tuple(mesh for _, group in parts for mesh in group) for parts in (visual, collision))
            visuals[link.text("name", "")] = LinkVisuals(shapes, collision_shapes, meshes,
                                                         not collision and len(shapes) == len(visual), collision_meshes)
    return visuals, warnings


def _drawn(part: XmlElement, materials: Materials, warnings: list[LiedynWarning]) -> tuple[list[Shape], list[LinkMesh]]:
    """Return the primitives and the mesh of a <visual> or <collision>. Append warnings about those that are invalid."""
    shapes: list[Shape] = []
    meshes: list[LinkMesh] = []
    solids: dict[str, XmlElement] = {}
    for geometry in part.every("geometry"):
        for solid in geometry.children:
            solids.setdefault(solid.tag, solid)

    def values(element: XmlElement, attribute: str, count: int, default: str, limit: str = "") -> tuple[float, ...]:
        text = element.text(attribute, default)
        x = numbers_of(text, count)
        if x and (not limit or (min(x) > 0 if limit == _POSITIVE else 0.0 not in x)):
            return x
        expected = ("one number" if count == 1 else "three numbers") + limit
        warnings.append(LiedynWarning("shape-left-out", f"the shape of this {part.tag} is left out: found {text!r}, expected "
                                      f"{expected}", place=element.place(attribute)))
        raise _InvalidShapeError

    with suppress(_InvalidShapeError):
        origin, pose = part.first("origin"), Pose()
        if origin is not None and solids.keys() & {*_URDF, "mesh"}:
            pose = Pose.from_xyz_rpy(*(values(origin, key, 3, "0 0 0") for key in ("xyz", "rpy")))
        colour = _colour_of(part.first("material"), materials)
        for kind, names in _URDF.items():
            if kind in solids:
                count = len(SHAPES[kind]) // len(names)
                sizes = [x for name in names for x in values(solids[kind], name, count, "", _POSITIVE)]
                shapes.append(Shape(kind, tuple(sizes), pose, colour))
        if "mesh" in solids and (name := solids["mesh"].text("filename")):
            meshes.append(LinkMesh(name, pose, vector(values(solids["mesh"], "scale", 3, "1 1 1", _NOT_ZERO)), colour))
    return shapes, meshes


_POSITIVE, _NOT_ZERO = " above 0", " other than 0"


class _InvalidShapeError(Exception):
    """A shape has an invalid number."""


def numbers_of(text: str, count: int) -> tuple[float, ...] | None:
    """Return the `count` finite numbers of a text, or None for any other text."""
    try:
        values = tuple(map(float, text.split()))
    except ValueError:
        return None
    return values if len(values) == count and all(map(math.isfinite, values)) else None


def materials_of(robot: XmlElement) -> Materials:
    """Return the materials of the <robot> by name. Visuals of any link may use those defined in another link."""
    visuals = [visual for link in robot.every("link") for visual in link.every("visual")]
    every = [material for element in (robot, *visuals) for material in element.every("material")]
    return {material.text("name"): colour for material in reversed(every) if (colour := _colour(material))}


def _colour_of(material: XmlElement | None, materials: Materials) -> Colour | None:
    """Return the colour of a material, or None if there is no material or it has no colour."""
    return None if material is None else _colour(material) or materials.get(material.text("name"))


def _colour(material: XmlElement) -> Colour | None:
    colour = material.first("color")
    try:
        red, green, blue, *_ = (min(1.0, max(0.0, float(x))) for x in (colour.text("rgba", "") if colour else "").split())
    except ValueError:
        return None
    return red, green, blue


# The files of meshes ----------------------------------------------------------------------------------------------------

_PACKAGE = re.compile(r"(?:package|model)://+([^/]+)/(.+)", re.DOTALL)


def _file(name: str, path: Path, folders: list[Path]) -> Path | None:
    package = _PACKAGE.fullmatch(name)
    if package:
        candidates = [path_candidate for folder in folders
                      for path_candidate in (folder / package[1] / package[2],
                                             *([folder / package[2]] if folder.name == package[1] else []))]
    elif name.startswith("file://"):
        candidates = [Path(unquote(name.removeprefix("file://")))]
    else:
        candidates = [path.absolute().parent / name]
    try:
        return next((path_candidate for path_candidate in candidates if path_candidate.is_file()), None)
    except (OSError, ValueError):                               # a name that no file can have
        return None


def _ros_packages() -> list[Path]:
    def of(variable: str) -> list[Path]:
        return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]

    return [*of("ROS_PACKAGE_PATH"), *(folder / "share" for folder in of("AMENT_PREFIX_PATH"))]
