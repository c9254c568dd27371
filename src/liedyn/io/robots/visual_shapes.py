"""Shapes of robots for drawing, and the primitives and meshes of a URDF."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from liedyn.errors import ComputationError, LiedynWarning, WarningLog, list_names
from liedyn.io.mesh_files import painted
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.model.description import Robot
from liedyn.model.links import Colour, LinkMesh, LinkVisuals, Pose, Shape, Texture, vector
from liedyn.model.mass_properties import SHAPES

Materials = Mapping[str | None, "Material"]
_URDF = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


class Material(NamedTuple):
    """What colours a shape: a texture, a colour, or both."""

    colour: Colour | None = None
    texture: Texture | None = None


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
    path, places = _places(robot, folders)
    return tuple(mesh if mesh.file else replace(mesh, file=_file(mesh.name, path, places)) for mesh in meshes)


def with_mesh_files(robot: Robot, folders: Sequence[str | os.PathLike[str]]) -> Robot:
    """Return a robot whose meshes and textures have the paths of the files that exist. folders: as for `link_meshes`."""
    visuals = {link: replace(each, meshes=with_files(each.meshes, robot, folders),
                             collision_meshes=with_files(each.collision_meshes, robot, folders))
               for link, each in robot.visuals.items()}
    path, places = _places(robot, folders)

    def with_texture_files(part: _Part) -> _Part:
        """Return a part with the paths of its texture that exist."""
        if part.texture is None:
            return part
        files = tuple(str(_file(name, path, places) or name) for name in part.texture.files)
        return replace(part, texture=replace(part.texture, files=files))

    return replace(robot, visuals=_changed(visuals, with_texture_files))


def with_located_files(robot: Robot) -> Robot:
    """Return a robot whose meshes and textures are found from any folder: paths relative to its file become absolute."""
    folder = Path(robot.source or "").absolute().parent

    def located(name: str) -> str:
        return name if _SCHEME.match(name) else os.path.normpath(folder / name)

    def with_located_names(part: Any) -> Any:
        if isinstance(part, LinkMesh):
            part = replace(part, name=located(part.name))
        if part.texture is not None:
            part = replace(part, texture=replace(part.texture, files=tuple(map(located, part.texture.files))))
        return part

    visuals = {link: replace(each, collision_meshes=tuple(map(with_located_names, each.collision_meshes)))
               for link, each in with_mesh_files(robot, ()).visuals.items()}
    return replace(robot, visuals=_changed(visuals, with_located_names))


def painted_robot(robot: Robot, folders: Sequence[str | os.PathLike[str]] = ()) -> tuple[Robot, tuple[LiedynWarning, ...]]:
    """Return a robot for drawing, and warnings about textures that cannot be read.

    Its meshes have the paths of the files that exist, and the pixels of their textures. Its shapes have the mean colours of their
    textures. Where a texture cannot be read, the colour of the material remains. folders: as for `link_meshes`.
    """
    warnings, results = WarningLog(), dict[tuple[Texture, Colour | None], tuple[Texture | None, Colour | None]]()

    def read(texture: Texture, colour: Colour | None) -> tuple[Texture | None, Colour | None]:
        files = {name: _file(name, path, places) for name in texture.files}
        if lost := [name for name, file in files.items() if file is None]:
            warnings.add("texture-not-found", f"no file for the texture {list_names(lost, 1)}; its material has one colour"
                         f"{package_hint(lost[0])}")
            return None, colour
        try:
            return painted(texture, [file for file in files.values() if file], colour)
        except ComputationError as problem:
            warnings.add("not-drawn", f"texture not drawn: {problem}")
            return None, colour

    def paint(part: _Part) -> _Part:
        if part.texture is None:
            return part
        key = part.texture, part.colour
        if key not in results:
            results[key] = read(*key)
        texture, colour = results[key]
        return replace(part, texture=texture, colour=colour)

    path, places = _places(robot, folders)
    located = with_mesh_files(robot, folders)
    return replace(located, visuals=_changed(located.visuals, paint)), tuple(warnings)


def package_hint(name: str) -> str:
    """Return advice for a file that does not exist: empty, unless its name is that of a package."""
    if not name.startswith(("package://", "model://")):
        return ""
    return f": give the folder that contains {name.split('/')[2]} by --package-root or package_roots="


_Part = TypeVar("_Part", Shape, LinkMesh)


def _changed(visuals: Mapping[str, LinkVisuals], change: Callable[[Any], Any]) -> dict[str, LinkVisuals]:
    """Return visuals with changed visible shapes and meshes."""
    return {link: replace(each, shapes=tuple(map(change, each.shapes)), meshes=tuple(map(change, each.meshes)))
            for link, each in visuals.items()}


def _places(robot: Robot, folders: Sequence[str | os.PathLike[str]]) -> tuple[Path, list[Path]]:
    """Return the robot file, and the folders in which packages are searched."""
    path = Path(robot.source or "")
    return path, [*map(Path, folders), *path.absolute().parents, *_ros_packages()]


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
        warnings.append(LiedynWarning("shape-left-out", f"the shape of this {part.tag} is ignored: expected {expected}, "
                                      f"got {text!r}", place=element.place(attribute)))
        raise _InvalidShapeError

    with suppress(_InvalidShapeError):
        origin, pose = part.first("origin"), Pose()
        if origin is not None and solids.keys() & {*_URDF, "mesh"}:
            pose = Pose.from_xyz_rpy(*(values(origin, key, 3, "0 0 0") for key in ("xyz", "rpy")))
        colour, texture = _material_of(part.first("material"), materials)
        for kind, names in _URDF.items():
            if kind in solids:
                count = len(SHAPES[kind]) // len(names)
                sizes = [x for name in names for x in values(solids[kind], name, count, "", _POSITIVE)]
                shapes.append(Shape(kind, tuple(sizes), pose, colour, texture))
        if "mesh" in solids and (name := solids["mesh"].text("filename")):
            meshes.append(LinkMesh(name, pose, vector(values(solids["mesh"], "scale", 3, "1 1 1", _NOT_ZERO)), colour,
                                   texture=texture))
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
    return {element.text("name"): material for element in reversed(every) if any(material := _material(element))}


def _material_of(element: XmlElement | None, materials: Materials) -> Material:
    """Return a material, or that of its name if it has neither colour nor texture."""
    material = Material() if element is None else _material(element)
    return material if element is None or any(material) else materials.get(element.text("name"), material)


def _material(element: XmlElement) -> Material:
    texture = element.first("texture")
    name = texture.text("filename") if texture else None
    return Material(_colour(element), Texture((name,)) if name else None)


def _colour(material: XmlElement) -> Colour | None:
    colour = material.first("color")
    try:
        red, green, blue, *_ = (min(1.0, max(0.0, float(x))) for x in (colour.text("rgba", "") if colour else "").split())
    except ValueError:
        return None
    return red, green, blue


# The files of meshes ----------------------------------------------------------------------------------------------------

_SCHEME = re.compile(r"[\w+.-]{2,}:")                        # of a URL; a drive of Windows has one letter
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
