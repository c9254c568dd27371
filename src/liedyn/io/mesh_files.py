"""Mesh files as points and triangles, read by trimesh."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.errors import ComputationError

INSTALL_MESHES = "pip install 'liedyn[meshes]'"
_MODULES = {"trimesh": "trimesh", "collada": "pycollada", "fast_simplification": "fast-simplification"}


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a mesh file: points (n, 3) [m], triangles (m, 3) of point indices, colour from 0 to 1 or None."""

    points: np.ndarray
    triangles: np.ndarray
    colour: tuple[float, float, float] | None


def missing_readers() -> list[str]:
    """Return the packages that read and simplify meshes and are not installed."""
    return [package for module, package in _MODULES.items() if find_spec(module) is None]


def read_mesh(file: Path) -> list[Part]:
    """Return the parts of an STL, OBJ, DAE, PLY or glTF file, one per colour, with the points of the file.

    Raise ComputationError if the file cannot be read.
    """
    import trimesh
    from trimesh.units import unit_conversion
    try:
        scene: Any = trimesh.load(str(file), force="scene", process=False)
        metres = unit_conversion(scene.units, "meters") if file.suffix.lower() == ".dae" and scene.units else 1.0
        parts: dict[tuple[Any, ...] | None, list[tuple[np.ndarray, np.ndarray]]] = {}
        for node in scene.graph.nodes_geometry:
            pose, name = scene.graph[node]
            mesh = scene.geometry[name]
            if len(getattr(mesh, "faces", ())):
                points = metres * (np.asarray(mesh.vertices) @ pose[:3, :3].T + pose[:3, 3])
                parts.setdefault(_colour(mesh), []).append((points, np.asarray(mesh.faces)))
    except Exception as problem:                               # of many readers; their texts may quote the file, which may be any
        raise ComputationError(f"{file} cannot be read as a mesh: {type(problem).__name__}; expected an STL, OBJ, DAE, PLY or "
                               "glTF file") from None
    joined = [_joined(group, colour) for colour, group in parts.items()]
    if not joined or not all(np.isfinite(part.points).all() for part in joined):
        problem_text = "numbers that are not finite" if joined else "no triangles"
        raise ComputationError(f"{file} cannot be read as a mesh: it has {problem_text}")
    return joined


def _colour(mesh: Any) -> tuple[float, float, float] | None:
    """Return the colour of a mesh; None also for the default grey of trimesh."""
    from trimesh.visual.color import DEFAULT_COLOR
    coloured = mesh.visual if mesh.visual.kind in ("vertex", "face") else getattr(mesh.visual, "material", None)
    rgb = getattr(coloured, "main_color", None)
    if rgb is None or np.array_equal(rgb[:3], DEFAULT_COLOR[:3]):
        return None
    return tuple((np.asarray(rgb[:3]) / 255).round(3).tolist())


def _joined(group: Sequence[tuple[np.ndarray, np.ndarray]], colour: tuple[float, float, float] | None) -> Part:
    """Return one part of several."""
    counts = np.cumsum([0, *(len(points) for points, _ in group)])
    points = np.concatenate([points for points, _ in group])
    triangles = np.concatenate([faces + first for (_, faces), first in zip(group, counts[:-1], strict=True)])
    return Part(points, triangles, colour)
