"""Meshes of MJCF: their files, and the mass properties that MuJoCo's compiler takes from them.

`inertia` of a <mesh> selects how: `legacy`, the default, sums the volumes of the tetrahedra between the triangles and the centre
of the surface, all positive; `exact` counts those of triangles that face the centre as negative; `convex` uses the convex hull,
and `shell` the surface.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import ComputationError, ModelError
from liedyn.io.mesh_files import INSTALL_MESHES, read_mesh
from liedyn.io.robots.mjcf_geometry import (
    COMPILED,
    Compiler,
    Defaults,
    asset_path,
    compiler_of,
    compose,
    placement,
    quaternion_rotation,
)
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.io.yaml_nodes import read_text, read_whole
from liedyn.model.links import LinkMesh, Pose, vector
from liedyn.model.mass_properties import Mass, uniform_triangles

KINDS = ("legacy", "exact", "convex", "shell")
LARGEST_MESH = 1_000_000_000         # bytes
_SMALLEST = 1e-15                    # [m^3] or [m^2]: MuJoCo's minimum of a volume or a surface


@dataclass(slots=True)
class Meshes:
    """The <mesh> elements of a file by name, with the attributes of their classes. Files are read where an inertia needs them."""

    elements: Mapping[str, XmlElement]
    folder: Path
    compiler: Compiler
    masses: dict[str, Mass] = field(default_factory=dict)

    def mass_of(self, geom: XmlElement) -> Mass:
        """Return the mass of the mesh of a geom for a density of 1 (of a shell: per area), in the frame of the geom."""
        name = geom.name_of("mesh", self.elements, "unknown mesh", "the name of a <mesh>")
        if name not in self.masses:
            self.masses[name] = _mass_of(self.elements[name], self)
        return self.masses[name]

    def drawn(self, geom: XmlElement, frame: Pose, compiler: Compiler) -> LinkMesh | None:
        """Return the mesh of a geom for drawing, or None for other geoms and meshes without a file. frame: pose of its parent."""
        element = self.elements.get(geom.text("mesh", ""))
        if geom.text("type") != "mesh" or element is None or "file" not in element.attributes:
            return None
        R = np.reshape(quaternion_rotation(element.vector("refquat", (1.0, 0.0, 0.0, 0.0)), element, "refquat"), (3, 3))
        scale = element.vector("scale", (1.0, 1.0, 1.0))
        if not np.array_equal(R, np.eye(3)) and len(set(scale)) > 1:
            return None                                     # a sheared mesh
        at = Pose(R.T, -(np.array(element.vector("refpos", (0.0, 0.0, 0.0))) @ R) * scale)       # see `_placed`
        return LinkMesh(str(self._file_of(element).absolute()), compose(compose(frame, placement(geom, compiler)), at),
                        vector(scale))

    def _file_of(self, element: XmlElement) -> Path:
        compiler = compiler_of(element, self.compiler)
        return asset_path(element, "file", compiler, compiler.mesh_folder, self.folder)

    def path_of(self, element: XmlElement) -> Path:
        """Return the file of a mesh. Raise if it does not exist."""
        path = self._file_of(element)
        if not path.is_file():
            raise element.problem("the file of the mesh does not exist, and the mass of a body depends on it", "file",
                                  found=element.text("file"), expected=f"{path}", hint="an <inertial> of the body needs no mesh")
        return path


def read_meshes(root: XmlElement, compiler: Compiler, defaults: Defaults) -> Meshes:
    """Return the meshes of the <asset> sections."""
    elements = {}
    for child in root.within("asset"):
        if child.tag == "mesh":
            elements[mesh_name(child)] = defaults.of(child)
    return Meshes(elements, Path(root.file).parent, compiler)


def mesh_name(mesh: XmlElement) -> str:
    """Return the name of a <mesh>: without one, that of its file."""
    return mesh.name or Path(mesh.text("file", "").replace("\\", "/")).stem


# the triangles of a mesh ------------------------------------------------------------------------------------------------

def _mass_of(element: XmlElement, meshes: Meshes) -> Mass:
    kind = element.choice("inertia", KINDS, "legacy")
    for key in ("builtin", "plugin"):
        if element.text(key) or element.first(key):
            raise element.problem(f"the inertia of a mesh by {key} is not computed", key, found=element.text(key),
                                  expected="a file or vertices", hint=COMPILED)
    points, triangles = _of_file(element, meshes) if "file" in element.attributes else _of_numbers(element)
    if not len(triangles) or kind == "convex":
        triangles = _hull(points, element)
    if kind == "exact" and _repeats_edge(points, triangles):
        raise element.problem("the triangles of the mesh are not all oriented alike", "inertia", found="exact",
                              expected="convex, legacy or shell")
    points = _placed(points, element)
    if kind == "exact" and math.prod(element.vector("scale", (1.0, 1.0, 1.0))) < 0:
        triangles = triangles[:, ::-1]
    mass = uniform_triangles(points, triangles, "legacy" if kind == "convex" else kind)
    if not mass.mass > _SMALLEST:
        measure = "surface" if kind == "shell" else "volume"
        raise element.problem(f"the {measure} of the mesh is too small, or its triangles face inwards", "inertia", found=kind,
                              expected=f"a {measure} above {_SMALLEST:g}")
    return mass


def _placed(points: Array, element: XmlElement) -> Array:
    """Return points in the frame of the geom: minus `refpos`, rotated by the inverse of `refquat`, scaled."""
    R = np.reshape(quaternion_rotation(element.vector("refquat", (1.0, 0.0, 0.0, 0.0)), element, "refquat"), (3, 3))
    placed: Array = (points - element.vector("refpos", (0.0, 0.0, 0.0))) @ R * element.vector("scale", (1.0, 1.0, 1.0))
    return placed


def _of_file(element: XmlElement, meshes: Meshes) -> tuple[Array, Integers]:
    """Return the points and triangles of an STL, OBJ or MSH file; in single precision, as MuJoCo reads them."""
    path = meshes.path_of(element)
    kind = element.text("content_type", "").rpartition("/")[2] or path.suffix.lower().removeprefix(".")
    if kind == "obj":
        points, triangles = _read_obj(path, element)
    elif kind in ("msh", "vnd.mujoco.msh"):
        points, triangles = _read_msh(path, element)
    elif kind == "stl":
        if find_spec("trimesh") is None:
            raise element.problem("computing the inertia of this mesh requires trimesh, which is not installed", "file",
                                  found=element.text("file"), expected="an <inertial> of the body", hint=INSTALL_MESHES)
        try:
            part, = read_mesh(path)
        except ComputationError as problem:
            raise element.problem(str(problem), "file") from None
        points, triangles = part.points, part.triangles
    else:
        raise element.problem("the inertia of this kind of mesh is not computed", "file", found=element.text("file"),
                              expected="an STL, OBJ or MSH file", hint=COMPILED)
    return points.astype(np.float32).astype(float), triangles


def _of_numbers(element: XmlElement) -> tuple[Array, Integers]:
    """Return the points and triangles of the attributes `vertex` and `face`; no triangles if there is no `face`."""
    points, corners = element.floats("vertex"), element.floats("face")
    if len(points) < 12 or len(points) % 3:
        raise element.problem("a mesh requires a file or vertices", "vertex", found=element.text("vertex"),
                              expected="3 numbers for each of at least 4 points")
    triangles, count = np.array(corners, dtype=np.int64), len(points) // 3
    if len(corners) % 3 or not np.array_equal(triangles, corners) or not all(0 <= corner < count for corner in corners):
        raise element.problem("wrong value", "face", found=element.text("face"),
                              expected=f"3 indices from 0 to {count - 1} for each triangle")
    return np.array(points, dtype=np.float32).astype(float).reshape(-1, 3), triangles.reshape(-1, 3)


def _read_obj(path: Path, element: XmlElement) -> tuple[Array, Integers]:
    """Return all points of an OBJ file, and the triangles of its first object: MuJoCo reads no others.

    Faces of four corners are cut along the shorter diagonal, larger ones from their first corner. `trimesh` reads all objects.
    """
    points: list[list[float]] = []
    faces: list[list[int]] = []
    ended = False
    try:
        for line in read_text(path, ModelError).splitlines():
            key, *words = line.split() or [""]
            if key == "v":
                points.append([float(word) for word in words[:3]])
            elif key in ("o", "g"):
                ended = bool(faces)
            elif key == "f" and not ended:
                corners = [int(word.partition("/")[0]) for word in words]
                faces.append([corner - 1 if corner > 0 else len(points) + corner for corner in corners])
        array = np.array(points, dtype=float).reshape(-1, 3)
        triangles = np.array([triangle for face in faces for triangle in _triangles(face, array)], np.int64).reshape(-1, 3)
        if not np.isfinite(array).all() or len(array) < 4 or triangles.min(initial=0) < 0:
            raise ValueError
        array[triangles]                                                  # raises if there is no such point
    except (ValueError, IndexError, ModelError):                    # their texts may quote the file, which may be any
        raise element.problem("the file of the mesh cannot be read", "file", found=element.text("file"),
                              expected="an OBJ file with at least 4 points") from None
    return array, triangles


def _read_msh(path: Path, element: XmlElement) -> tuple[Array, Integers]:
    """Return the points and triangles of a binary file of MuJoCo.

    Four integers in 32 bits are the numbers of points, normals, texture coordinates and triangles, which follow: points, normals
    and texture coordinates as numbers in single precision, triangles as integers.
    """
    data = read_whole(path, ModelError, LARGEST_MESH)
    counts = np.frombuffer(data[:16], "<i4").tolist() if len(data) > 16 else [0]
    if counts[0] < 4 or min(counts) < 0 or len(data) != 4 * (4 + sum(n * k for n, k in zip(counts, (3, 3, 2, 3), strict=True))):
        raise element.problem("the file of the mesh cannot be read", "file", found=element.text("file"), expected="an MSH file")
    points = np.frombuffer(data, "<f4", 3 * counts[0], 16).astype(float).reshape(-1, 3)
    triangles = np.frombuffer(data, "<i4", 3 * counts[3], len(data) - 12 * counts[3]).astype(np.int64).reshape(-1, 3)
    if not np.isfinite(points).all() or triangles.min(initial=0) < 0 or triangles.max(initial=0) >= len(points):
        raise element.problem("the file of the mesh cannot be read", "file", found=element.text("file"), expected="an MSH file")
    return points, triangles


def _triangles(face: list[int], points: Array) -> list[tuple[int, int, int]]:
    if len(face) == 4:
        a, b, c, d = face
        if np.linalg.norm(points[a] - points[c]) < np.linalg.norm(points[b] - points[d]):
            return [(a, b, c), (a, c, d)]
        return [(a, b, d), (b, c, d)]
    return [(face[0], second, third) for second, third in pairwise(face[1:])]


def _hull(points: Array, element: XmlElement) -> Integers:
    """Return the triangles of the convex hull of points, turned outwards. MuJoCo alone knows those of a simplified hull."""
    from scipy.spatial import ConvexHull, QhullError
    try:
        hull = ConvexHull(points)
    except QhullError:
        raise element.problem("the points of the mesh have no convex hull", "name", found=element.name,
                              expected="points that are not in one plane") from None
    maximum = element.number("maxhullvert", math.inf)
    if 0 <= maximum < len(hull.vertices):
        raise element.problem("the inertia of a simplified convex hull is not computed", "maxhullvert", found=int(maximum),
                              expected=f"at least its {len(hull.vertices)} vertices", hint=COMPILED)
    triangles: Integers = hull.simplices.astype(np.int64)
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    is_inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    triangles[is_inward] = triangles[is_inward, ::-1]
    return triangles


def _repeats_edge(points: Array, triangles: Integers) -> bool:
    """Return whether two triangles have an edge in the same direction, so that one of them is turned inwards."""
    _, row = np.unique(points, axis=0, return_inverse=True)
    corners = row.ravel()[triangles]
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    corners = corners[np.linalg.norm(np.cross(b - a, c - a), axis=1) > 2 * math.sqrt(_SMALLEST)]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    return len(np.unique(edges, axis=0)) < len(edges)
