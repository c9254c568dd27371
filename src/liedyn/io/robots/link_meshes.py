"""Meshes that a URDF names in <visual>, for pictures: where the files are, and how they are placed. They are not read here."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from liedyn.io.robots.link_shapes import Colour, Materials, colour_of, materials_of, numbers_of, pose_of, urdf_root
from liedyn.io.robots.urdf_tree import Element
from liedyn.model.description import Pose

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


def link_meshes(path: str | os.PathLike, roots: Sequence[str | os.PathLike] = ()) -> dict[str, tuple[LinkMesh, ...]]:
    """Meshes by link, of a robot file that has been loaded without an error; none of a file that is no URDF.

    `package://robot/part.stl` is robot/part.stl in one of the `roots` or in a folder above the file, or part.stl in one that is
    itself called robot. After them come the packages that ROS knows: those of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.
    """
    robot = urdf_root(path)
    if robot is None:
        return {}
    materials = materials_of(robot)
    folders = [*map(Path, roots), *Path(path).absolute().parents, *_of_ros()]
    found = {}
    for link in robot.iterfind("link"):
        meshes = tuple(mesh for visual in link.iterfind("visual") if (mesh := _mesh(visual, materials, Path(path), folders)))
        if meshes:
            found[link.get("name")] = meshes
    return found


def _mesh(visual: Element, materials: Materials, path: Path, folders: list[Path]) -> LinkMesh | None:
    """What cannot be read is passed over: it is decoration."""
    mesh, pose = visual.find("geometry/mesh"), pose_of(visual)
    if mesh is None or not mesh.get("filename") or not pose:
        return None
    scale = numbers_of(mesh.get("scale", "1 1 1"), 3)
    if not scale or 0.0 in scale:
        return None
    return LinkMesh(mesh.get("filename"), _file(mesh.get("filename"), path, folders), pose, scale, colour_of(visual, materials))


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
