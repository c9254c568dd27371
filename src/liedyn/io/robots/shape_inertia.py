"""Masses and inertias of links without <inertial>, from their shapes and meshes and one density."""
from __future__ import annotations

import math
import numbers
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.errors import ComputationError, ElementPlace, LiedynWarning, ModelError, Place, list_names
from liedyn.io.mesh_files import INSTALL_MESHES, missing_readers, read_mesh
from liedyn.io.robots.visual_shapes import with_files
from liedyn.model.description import Robot
from liedyn.model.links import Link, LinkMesh, Shape, inertia_of
from liedyn.model.mass_properties import Mass, total, uniform, uniform_triangles
from liedyn.model.spatial import pose

_READERS = ("trimesh", "pycollada")


def with_inertia_of_shapes(robot: Robot, density: float) -> Robot:
    """Return the robot with masses of its links without <inertial>: uniform bodies of this density [kg/m^3].

    A link has the volume of its collision shapes and meshes, or of the visible ones if it has none. Volumes that overlap count
    twice. A mesh is what its surface encloses; if the surface is not closed, its convex hull, with a warning. Links without
    shapes stay without mass.

    Raises ModelError for a density that is not positive, and meshes that are missing or cannot be read.
    """
    if not isinstance(density, numbers.Real) or not 0.0 < density < math.inf:
        raise ModelError("wrong density for inertias from meshes", place=Place(robot.source), found=density,
                         expected="a number > 0 [kg/m^3]")
    bodies = _Bodies(robot, density)
    links = tuple(bodies.filled(link) if _has_no_inertial(link) else link for link in robot.links)
    return replace(robot, links=links, warnings=(*robot.warnings, *bodies.messages()))


def _has_no_inertial(link: Link) -> bool:
    return link.mass == 0 and not (isinstance(link.place, ElementPlace) and "mass" in link.place.parts)


class _Bodies:
    """Bodies of shapes, and messages about them."""

    def __init__(self, robot: Robot, density: float):
        self.robot, self.density = robot, density
        self.sources: dict[str, list[str]] = {}
        self.open: dict[str, Place] = {}
        self.meshes: dict[Path, tuple[Any, bool]] = {}

    def filled(self, link: Link) -> Link:
        """Return a link with the mass of its shapes, or the link itself if it has none."""
        visuals = self.robot.visuals.get(link.name)
        if visuals is None:
            return link
        name, shapes, meshes = "collision", visuals.collision, visuals.collision_meshes
        if not shapes and not meshes:
            name, shapes, meshes = "visual", visuals.shapes, visuals.meshes
        parts = [*map(_of_shape, shapes), *(self.of_mesh(mesh, link) for mesh in with_files(meshes, self.robot))]
        body = total(parts)
        if not body.mass:
            return link
        self.sources.setdefault(name, []).append(f"{link.name} {self.density * body.mass:.4g} kg")
        inertia = inertia_of(self.density * x for x in body.inertia)
        return replace(link, mass=self.density * body.mass, com=body.com, inertia=inertia)

    def of_mesh(self, mesh: LinkMesh, link: Link) -> Mass:
        """Return the body of a mesh with the density 1."""
        if mesh.file is None:
            hint = "--package-root or package_roots= names the folder of its package" if "://" in mesh.name else None
            raise ModelError("the file of the mesh does not exist", place=link.place, found=mesh.name,
                             expected="a file, or an <inertial> of the link", hint=hint)
        if mesh.file not in self.meshes:
            self.meshes[mesh.file] = self.read(mesh.file, link)
        surface, is_closed = self.meshes[mesh.file]
        if not is_closed:
            self.open.setdefault(mesh.name, link.place)
        points = (surface.vertices * mesh.scale) @ pose(mesh.pose)[:3, :3].T + mesh.pose.translation
        body = uniform_triangles(points, np.asarray(surface.faces), "exact")
        if body.mass < 0:                                                  # a mirrored mesh, or one that is turned inside out
            body = uniform_triangles(points, np.asarray(surface.faces)[:, ::-1], "exact")
        return body

    def read(self, file: Path, link: Link) -> tuple[Any, bool]:
        """Return the closed surface of a mesh file, or else its convex hull, and whether it is closed."""
        if missing := [package for package in missing_readers() if package in _READERS]:
            raise ModelError(f"computing the inertia of meshes requires {', '.join(missing)}", place=link.place,
                             expected="an <inertial> of the link", hint=INSTALL_MESHES)
        import trimesh
        try:
            parts = read_mesh(file)
            mesh: Any = trimesh.util.concatenate([trimesh.Trimesh(part.points, part.triangles, process=True) for part in parts])
            is_closed = bool(mesh.is_watertight and mesh.is_winding_consistent)
            return (mesh if is_closed else mesh.convex_hull), is_closed
        except ComputationError as problem:
            raise ModelError(str(problem), place=link.place) from None
        except Exception:                                                  # Qhull: all points are in one plane
            raise ModelError("the mesh is not closed, and its points are in one plane", place=link.place, found=file.name,
                             expected="an <inertial> of the link") from None

    def messages(self) -> tuple[LiedynWarning, ...]:
        """Return information about the masses of links, and a warning about meshes that are not closed."""
        listed = "; ".join(f"from {name} shapes: {', '.join(links)}" for name, links in self.sources.items())
        text = f"masses with {self.density:g} kg/m^3 {listed or 'are added to no link'}"
        messages = [LiedynWarning("inertia-from-meshes", text, place=Place(self.robot.source))]
        if self.open:
            text = f"the convex hull gives the inertia of meshes whose surface is not closed: {list_names([*self.open], 1)}"
            messages.append(LiedynWarning("mesh-not-closed", text, place=next(iter(self.open.values()))))
        return tuple(messages)


def _of_shape(shape: Shape) -> Mass:
    volume, inertia = uniform(shape.kind, shape.sizes)
    return Mass(volume, inertia=inertia_of(volume * x for x in inertia)).seen_from(shape.pose)
