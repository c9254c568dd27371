"""Mesh files as a few thousand triangles of one colour each: simplified by fast-simplification."""
from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from liedyn.io.mesh_files import Part, read_mesh
from liedyn.model.links import Texture

K = TypeVar("K")

# Series of numbers as short text: integer multiples of a step, their differences, deflated, in base64 --------------------

# A series of n numbers becomes k[i] = round(x[i] / step), d[i] = k[i] - 2 k[i-1] + k[i-2] (k is 0 before the first) in 32 bits
# that wrap around; of meshes, first differences or k itself. The bytes are stored by their weight, lowest first, each for all
# consecutive series: smooth motions have small differences, whose upper bytes are all alike. A humanoid of 37 coordinates
# takes 10 kB a second at 60 frames a second.

_LARGEST = 1e9          # multiples of a step: sums of three stay within 32 bits


def packed(x: np.ndarray, step: float | np.ndarray, order: int = 2) -> dict[str, Any]:
    """Return {rows, steps, order, data} of x (n, m), with columns rounded to multiples of `step`.

    The step is increased if the values do not fit into 32 bits. order: of the differences.
    """
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    steps = np.maximum(step, np.abs(x).max(axis=0, initial=0.0) / _LARGEST) * np.ones(x.shape[1])
    steps = np.array([float(f"{s:.9g}") for s in steps])         # rounded as in the page
    whole = np.rint(x / steps).astype(np.int64).T
    differences = np.diff(whole, n=order, prepend=np.zeros((len(whole), order), np.int64))
    planes = np.ascontiguousarray(differences.astype("<i4")).view(np.uint8).reshape(*whole.shape, 4).transpose(2, 0, 1)
    text = base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")
    return {"rows": len(x), "steps": steps.tolist(), "data": text} | ({"order": order} if order != 2 else {})


def unpacked(pack: dict[str, Any]) -> np.ndarray:
    """Return the numbers (n, m) from `packed`; the scripts of the page do the same."""
    n, steps = pack["rows"], np.array(pack["steps"])
    planes = np.frombuffer(zlib.decompress(base64.b64decode(pack["data"])), np.uint8).reshape(4, len(steps), n)
    differences = np.ascontiguousarray(planes.transpose(1, 2, 0)).view("<i4")[..., 0]
    whole = differences.astype(np.int64)
    for _ in range(pack.get("order", 2)):
        whole = whole.cumsum(axis=1)
    return np.asarray((whole.astype(np.int32) * steps[:, None]).T)


# simplified meshes ------------------------------------------------------------------------------------------------------

MOST_TRIANGLES = 30_000         # for all files of a robot: 300 kB of the page
_SAME = 1e-6                    # of the longest side of a part: closer points are merged
_FEWEST = 300                   # minimum for a part with more triangles
_BORDER = 1000                  # a part with at most as many edges at its open borders keeps these
_LEVELS = 4096                  # grid points along the longest side of a file's box: 0.1 mm for 0.4 m


def read_drawn_mesh(file: Path, texture: Texture | None = None) -> list[Part]:
    """Return the parts of a mesh file with points at the same place merged: files repeat them for each triangle or normal.

    texture: replaces the colours of the file
    """
    return [_merged(part, _SAME * (float(np.ptp(part.points, axis=0).max()) or 1.0))
            for part in read_mesh(file, face_colours=True, texture=texture)]


def _merged(part: Part, step: float) -> Part:
    """Return the part with points on a grid, and without triangles that degenerate there."""
    whole = np.rint(part.points / step).astype(np.int64)
    low = whole.min(axis=0)
    x, y, z = (whole - low).T                                   # less than 2^21 each: one number sorts faster than three
    _, first, row = np.unique(x << 42 | y << 21 | z, return_index=True, return_inverse=True)
    a, b, c = row.ravel()[part.triangles].T
    return Part(whole[first] * step, np.column_stack([a, b, c])[(a != b) & (b != c) & (c != a)], part.colour)


def thinned(meshes: Mapping[K, list[Part]], max_triangles: int = MOST_TRIANGLES) -> dict[K, list[Part]]:
    """Return meshes simplified to about `max_triangles` triangles in total; larger files keep more."""
    sizes = {file: float(np.linalg.norm(np.ptp(np.concatenate([part.points for part in parts]), axis=0)))
             for file, parts in meshes.items()}
    counts = {file: sum(len(part.triangles) for part in parts) for file, parts in meshes.items()}
    low, high = 0.0, max_triangles / (min(sizes.values(), default=1.0) or 1.0)
    for _ in range(50):                                         # bisect the density: triangles per metre
        middle = (low + high) / 2
        enough = sum(min(counts[file], middle * sizes[file]) for file in meshes) <= max_triangles
        low, high = (middle, high) if enough else (low, middle)
    return {file: [_thin(part, low * sizes[file] * len(part.triangles) / counts[file]) for part in parts]
            for file, parts in meshes.items()}


def _thin(part: Part, max_triangles: float) -> Part:
    """Return a simplified part that keeps its open borders.

    If these leave too many triangles, close points are merged, and at last borders are simplified, too. Parts of one file meet
    at borders: where a border is simplified, gaps and ragged edges appear between the parts.
    """
    from fast_simplification import simplify
    max_triangles, longest = max(int(max_triangles), _FEWEST), float(np.ptp(part.points, axis=0).max())
    enough = 1.2 * max(max_triangles, min(_border_length(part.triangles), _BORDER))
    for levels in (0, 512, 256, 128, 64):
        if len(part.triangles) <= (enough if levels else max_triangles):
            break
        if levels:
            part = _merged(part, longest / levels)
        if len(part.triangles) > max_triangles:
            points, triangles = simplify(part.points, part.triangles.astype(np.int32), target_count=max_triangles,
                                         preserve_border=levels < 64)
            part = Part(np.asarray(points, dtype=float), np.asarray(triangles), part.colour)
    return part


def _border_length(triangles: np.ndarray) -> int:
    """Return the number of edges that only one triangle has."""
    low, high = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1).T
    _, counts = np.unique(low.astype(np.int64) << 32 | high, return_counts=True)
    return int((counts == 1).sum())


def packed_mesh(parts: list[Part]) -> list[dict[str, Any]]:
    """Return plain values of a mesh for the page, for each part: low, points, corners, colour.

    Points are differences from `low` [m], in the order of their first use. A corner is stored as its distance behind the first
    point that no earlier corner uses.
    """
    everything = np.concatenate([part.points for part in parts])
    low, step = everything.min(axis=0), (float(np.ptp(everything, axis=0).max()) or 1.0) / _LEVELS
    packed_parts = []
    for part in parts:
        merged = _merged(Part(part.points - low, part.triangles, part.colour), step)
        corners = merged.triangles.ravel()
        used, first = np.unique(corners, return_index=True)
        order = used[np.argsort(first)]
        row = np.zeros(len(merged.points), dtype=np.int64)
        row[order] = np.arange(len(order))
        new = np.maximum.accumulate(np.concatenate([[-1], row[corners]]))[:-1] + 1
        if len(corners):
            packed_parts.append({"low": np.round(low, 7).tolist(), "points": packed(merged.points[order], step, order=1),
                                 "corners": packed((new - row[corners])[:, None], 1.0, order=0), "colour": part.colour})
    return packed_parts
