"""Table of the formats of robot files, used by loading, saving, drawing, scenarios and the command line.

Readers and writers are imported on first use, so that the table is available to `--help`.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from liedyn.errors import ModelError, Place

if TYPE_CHECKING:
    from liedyn.io.robots.write_robot_yaml import Subset
    from liedyn.model.description import Robot
    from liedyn.model.links import Shapes


@dataclass(frozen=True, slots=True)
class RobotFormat:
    """A format of robot files.

    title            the format in texts
    endings          of file names, in lower case, with the dot
    read             robot of a file, not yet validated, with what is drawn of it; with `has_keys`, also after overrides
    write            the part of a robot that the format can describe, and the text of the file, from the robot and shapes for
                     drawing; None: the format is only read
    patch            the text of the file from which such a part was read, with its changes, for a folder, and the names of links
                     whose shapes the text lacks because no link is known to be the same one; None: not supported
    ambiguous        other endings that files may have, where no other format claims the file
    matches          whether a file with one of `endings` is of this format; None: all of them are
    has_keys         whether a file is read by keys, which overrides replace
    has_constraints  whether loops and couplings are in the file, not in a loops file next to it
    writes_shapes    whether files that are written show the shapes
    can_ignore       whether `read` takes the argument `ignore`, names of parts that are left out
    can_include      whether `read` takes the argument `load`, a function that reads included robots
    """

    title: str
    endings: tuple[str, ...]
    read: Callable[..., Robot]
    write: Callable[[Robot, Shapes], tuple[Subset, str]] | None = None
    patch: Callable[[Robot, Path | None], tuple[str, tuple[str, ...]] | None] | None = None
    ambiguous: tuple[str, ...] = ()
    matches: Callable[[Path], bool] | None = None
    has_keys: bool = False
    has_constraints: bool = False
    writes_shapes: bool = False
    can_ignore: bool = False
    can_include: bool = False


# The formats of liedyn. CONTRIBUTING.md shows how another one is added --------------------------------------------------

def _read_urdf(path: Path, xacro_args: Mapping[str, object] = MappingProxyType({})) -> Robot:
    from liedyn.io.robots.urdf import read_urdf
    return read_urdf(path, xacro_args)


def _write_urdf(robot: Robot, shapes: Shapes) -> tuple[Subset, str]:
    from liedyn.io.robots.write_urdf import as_urdf, urdf
    subset = as_urdf(robot)
    return subset, urdf(subset.robot, shapes)


def _patch_urdf(robot: Robot, folder: Path | None) -> tuple[str, tuple[str, ...]] | None:
    from liedyn.io.robots.patch_urdf import patched_urdf
    return patched_urdf(robot, folder)


def _read_yaml(path: Path, overrides: tuple[str, ...] = (), load: Callable[..., Robot] | None = None) -> Robot:
    from liedyn.io.robots.robot_yaml import read_robot_yaml
    return read_robot_yaml(path, overrides, load)


def _write_yaml(robot: Robot, shapes: Shapes) -> tuple[Subset, str]:
    from liedyn.io.robots.write_robot_yaml import as_yaml, robot_yaml
    subset = as_yaml(robot)
    return subset, robot_yaml(subset.robot, shapes)


def _is_mjcf(path: Path) -> bool:
    from liedyn.io.robots.xml_elements import root_tag
    return path.suffix.lower() == ".mjcf" or root_tag(path) == "mujoco"


def _read_mjcf(path: Path, ignore: Iterable[str] = ()) -> Robot:
    from liedyn.io.robots.mjcf import read_mjcf
    return read_mjcf(path, ignore)


FORMATS: dict[str, RobotFormat] = {
    "urdf": RobotFormat("URDF", (".urdf",), _read_urdf, _write_urdf, _patch_urdf, ambiguous=(".xml", ".xacro"),
                        writes_shapes=True),
    "yaml": RobotFormat("robot YAML", (".yaml", ".yml"), _read_yaml, _write_yaml, has_keys=True, has_constraints=True,
                        writes_shapes=True, can_include=True),
    "mjcf": RobotFormat("MJCF", (".xml", ".mjcf"), _read_mjcf, matches=_is_mjcf, can_ignore=True),
}


# The format of a file ---------------------------------------------------------------------------------------------------

def formats_of_ending(path: str | os.PathLike[str]) -> list[RobotFormat]:
    """Return the formats that a file of this name may have, the most specific first.

    Formats of installed packages (entry points in the group `liedyn.formats`) are added when an ending is unknown.
    """
    ending = Path(path).suffix.lower()
    formats = _with_ending(ending)
    if not formats:
        _add_installed()
        formats = _with_ending(ending)
    return formats


def _with_ending(ending: str) -> list[RobotFormat]:
    return [*(robot_format for robot_format in FORMATS.values() if ending in robot_format.endings),
            *(robot_format for robot_format in FORMATS.values() if ending in robot_format.ambiguous)]


@cache
def _add_installed() -> None:
    from importlib.metadata import entry_points
    for point in entry_points(group="liedyn.formats"):
        FORMATS.setdefault(point.name, point.load())


def format_of_file(path: Path) -> RobotFormat:
    """Return the format of a robot file. Raise ModelError for other file name extensions."""
    for robot_format in formats_of_ending(path):
        if path.suffix.lower() in robot_format.ambiguous or robot_format.matches is None or robot_format.matches(path):
            return robot_format
    raise ModelError("unknown file name extension", place=Place(str(path)), found=path.suffix or "no extension",
                     expected=in_words([ending for robot_format in FORMATS.values() for ending in robot_format.endings]))


def written_formats() -> dict[str, RobotFormat]:
    """Return the formats that can be written, by name."""
    return {name: robot_format for name, robot_format in FORMATS.items() if robot_format.write}


def written_endings() -> dict[str, str]:
    """Return the name of the output format by file name extension."""
    return {ending: name for name, robot_format in written_formats().items() for ending in robot_format.endings}


def in_words(names: list[str]) -> str:
    """Return names as text, such as "URDF, YAML or MJCF"."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


TITLES = in_words([known.title for known in FORMATS.values()])
