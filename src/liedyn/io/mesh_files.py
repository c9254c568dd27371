"""Mesh files as points and triangles, read by trimesh, and the images of their textures, read by Pillow."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.errors import ComputationError
from liedyn.model.links import Colour, Texture

INSTALL_MESHES = "pip install 'liedyn[meshes]'"

_MOST_PIXELS = 512                      # of an image along a side: each triangle of a page has one colour
_CELL, _SIMILAR = 16.0, 60.0            # of 255: colours within a cell, and means of cells this close, are one
_MOST_COLOURS = 8                       # of one mesh
_INSIDE = np.array([[1, 1, 1], [4, 1, 1], [1, 4, 1], [1, 1, 4]]) / [[3], [6], [6], [6]]    # points of a face, for its texture
_MODULES = {"trimesh": "trimesh", "collada": "pycollada", "fast_simplification": "fast-simplification"}


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a mesh file: points (n, 3) [m], triangles (m, 3) of point indices, colour from 0 to 1 or None."""

    points: np.ndarray
    triangles: np.ndarray
    colour: Colour | None


def missing_readers() -> list[str]:
    """Return the packages that read and simplify meshes and are not installed."""
    return [package for module, package in _MODULES.items() if find_spec(module) is None]


def read_mesh(file: Path, face_colours: bool = False, texture: Texture | None = None) -> list[Part]:
    """Return the parts of an STL, OBJ, DAE, PLY or glTF file, one per colour, with the points of the file.

    face_colours: whether faces of one mesh with different colours are different parts. Colours of points and of textures count
    for the faces, each with one colour; similar colours are one. texture: replaces the colours of the file.

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
                for colour, faces in _by_colour(mesh, texture) if face_colours else [(_colour(mesh), np.asarray(mesh.faces))]:
                    used, corners = np.unique(faces, return_inverse=True) if face_colours else (slice(None), faces)
                    parts.setdefault(colour, []).append((points[used], corners.reshape(-1, 3)))
    except Exception as problem:                               # of many readers; their texts may quote the file, which may be any
        raise ComputationError(f"{file} cannot be read as a mesh ({type(problem).__name__}): expected an STL, OBJ, DAE, PLY or "
                               "glTF file") from None
    joined = [_joined(group, colour) for colour, group in parts.items()]
    if not joined or not all(np.isfinite(part.points).all() for part in joined):
        problem_text = "numbers that are not finite" if joined else "no triangles"
        raise ComputationError(f"{file} cannot be read as a mesh: it has {problem_text}")
    return joined


def _colour(mesh: Any) -> Colour | None:
    """Return the colour of the material of a mesh; None also for the default grey of trimesh."""
    from trimesh.visual.color import DEFAULT_COLOR
    coloured = mesh.visual if mesh.visual.kind in ("vertex", "face") else _material(mesh)
    rgb = getattr(coloured, "main_color", None)
    return None if rgb is None or np.array_equal(rgb[:3], DEFAULT_COLOR[:3]) else _as_colour(rgb[:3])


def _material(mesh: Any) -> Any:
    """Return the material of a mesh, or None; also for the grey image of trimesh for texture coordinates without a material."""
    from trimesh.visual.material import empty_material
    material = getattr(mesh.visual, "material", None)
    image = getattr(material, "image", None)
    return None if image is not None and np.array_equal(image, empty_material().image) else material


def _as_colour(rgb: np.ndarray) -> Colour:
    red, green, blue = (np.asarray(rgb) / 255).round(3).tolist()
    return red, green, blue


def _by_colour(mesh: Any, texture: Texture | None) -> list[tuple[Colour | None, np.ndarray]]:
    """Return (colour, faces) for each colour of the faces of a mesh."""
    faces, rgb = np.asarray(mesh.faces), _colours_of_faces(mesh, texture)
    if rgb is None:
        return [(_colour(mesh), faces)]
    areas = mesh.area_faces + 1e-12 * mesh.area + 1e-300
    _, index = np.unique((rgb // _CELL).astype(np.int64) @ [65536, 256, 1], return_inverse=True)
    shares = np.bincount(index, areas) / areas.sum()
    means = np.column_stack([np.bincount(index, areas * x) for x in rgb.T]) / np.bincount(index, areas)[:, None]
    chosen: list[int] = []
    for cell in np.argsort(-shares):                            # the colour of the largest area first
        if len(chosen) < _MOST_COLOURS and all(np.linalg.norm(means[cell] - means[other]) > _SIMILAR for other in chosen):
            chosen.append(int(cell))
    nearest = np.linalg.norm(rgb[:, None] - means[chosen], axis=2).argmin(axis=1)
    return [(_as_colour(np.average(rgb[of_colour], axis=0, weights=areas[of_colour])), faces[of_colour])
            for k in range(len(chosen)) if (of_colour := nearest == k).any()]


def _colours_of_faces(mesh: Any, texture: Texture | None) -> np.ndarray | None:
    """Return the colour (m, 3) of each face from 0 to 255, or None if all faces have that of the material."""
    visual, faces = mesh.visual, np.asarray(mesh.faces)
    if texture is not None and texture.pixels is not None:
        uv = None if texture.is_cube else _inside_faces(mesh)
        return np.tile(texture.pixels.mean(axis=(0, 1)), (len(faces), 1)) if uv is None \
            else colours_at(texture.pixels, uv * texture.repeat)
    if visual.kind == "face":
        return np.asarray(visual.face_colors[:, :3], dtype=float)
    if visual.kind == "vertex":
        of_points: np.ndarray = np.asarray(visual.vertex_colors, dtype=float)[faces][..., :3].mean(axis=1)
        return of_points
    material = _material(mesh)
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    uv = _inside_faces(mesh)
    return None if image is None or uv is None else colours_at(np.asarray(image.convert("RGB")), uv)


def _inside_faces(mesh: Any) -> np.ndarray | None:
    """Return texture coordinates (k, m, 2) of points of the faces, or None if the mesh has none."""
    uv = getattr(mesh.visual, "uv", None)
    if uv is None or len(uv) != len(mesh.vertices):
        return None
    inside: np.ndarray = np.einsum("ka,mac->kmc", _INSIDE, np.nan_to_num(uv)[np.asarray(mesh.faces)])
    return inside


def _joined(group: Sequence[tuple[np.ndarray, np.ndarray]], colour: Colour | None) -> Part:
    """Return one part of several."""
    counts = np.cumsum([0, *(len(points) for points, _ in group)])
    points = np.concatenate([points for points, _ in group])
    triangles = np.concatenate([faces + first for (_, faces), first in zip(group, counts[:-1], strict=True)])
    return Part(points, triangles, colour)


def painted(texture: Texture, files: Sequence[Path], colour: Colour | None) -> tuple[Texture, Colour]:
    """Return a texture with its pixels, whose colours are multiplied by that of the material, and their mean from 0 to 1.

    files: of the image, or of the sides of a cube. Raise ComputationError if one cannot be read.
    """
    pixels = np.concatenate([_pixels(file, len(files)) for file in files]) if files else 255 * np.array(texture.rows)
    pixels = pixels * np.array(colour or (1.0, 1.0, 1.0))
    red, green, blue = (pixels.mean(axis=(0, 1)) / 255).round(3).tolist()
    return replace(texture, colour=colour, pixels=pixels), (red, green, blue)


def _pixels(file: Path, count: int) -> np.ndarray:
    """Return the pixels (h, w, 3) of an image from 0 to 255, the first row at its top; of several files, all of one size."""
    from PIL import Image
    try:
        with Image.open(file) as image:
            image.draft("RGB", (_MOST_PIXELS, _MOST_PIXELS))
            rgb = image.convert("RGB")
    except Exception as problem:                            # of many readers
        raise ComputationError(f"{file} cannot be read as an image: {type(problem).__name__}") from None
    width, height = (min(side, _MOST_PIXELS) if count == 1 else _MOST_PIXELS for side in rgb.size)
    return np.asarray(rgb.resize((width, height), Image.Resampling.BOX), dtype=float)


def colours_at(pixels: np.ndarray, uv: np.ndarray) -> np.ndarray:
    """Return the mean colours (m, 3) of pixels (h, w, 3) at texture coordinates (k, m, 2), which start at the lower left."""
    h, w, _ = pixels.shape
    u, v = np.moveaxis(uv, -1, 0)
    colours: np.ndarray = pixels[((1 - v) % 1.0 * h).astype(int) % h, (u % 1.0 * w).astype(int) % w].mean(axis=0)
    return colours
