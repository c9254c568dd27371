"""Shapes of a robot file of any format."""
from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from liedyn.io.robots.link_shapes import LinkShape, shapes_of_urdf, shapes_of_yaml, urdf_root


def link_shapes(path: str | os.PathLike, visible: Container[str] = ()) -> dict[str, tuple[LinkShape, ...]]:
    """Shapes by link, of a robot file that has been loaded without an error; none of links without one, and of meshes.

    Of a URDF, the primitives of <visual>; of a link without, and that is not among the `visible` ones, those of <collision>. Of
    an MJCF file, its geoms.
    """
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return shapes_of_yaml(path)
    root = urdf_root(path)
    if root is None:
        from liedyn.io.robots.mjcf.read import mjcf_shapes
        return mjcf_shapes(path)
    return shapes_of_urdf(root, visible)


def count_shaped(path: str | os.PathLike) -> int:
    """How many links of a robot file that has been loaded without an error have shapes, meshes included."""
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return len(shapes_of_yaml(path))
    root = urdf_root(path)
    if root is None:
        from liedyn.io.robots.mjcf.read import count_mjcf_shaped
        return count_mjcf_shaped(path)
    return sum(any(part.tag in ("visual", "collision") for part in link) for link in root.iterfind("link"))
