"""Fixed data of a robot in a replay: its bodies and the shapes that are drawn on them, as plain values."""
from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from liedyn.errors import ComputationError, LiedynWarning, UsageError, WarningLog, list_names
from liedyn.io.mesh_files import INSTALL_MESHES, missing_readers
from liedyn.io.robots.visual_shapes import link_meshes, link_shapes, package_hint, painted_robot, simple_shapes
from liedyn.model.description import FREE, WORLD, Robot
from liedyn.model.links import Link, LinkMesh, Shape, Texture
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import pose, pose_to_array, screw_frame, symmetric_matrix
from liedyn.report.plots.plot_data import Point, carried, element_lines, ground_or_index, rolling_rims, stick_figure, with_ground
from liedyn.report.replay.meshes import MOST_TRIANGLES, packed_mesh, read_drawn_mesh, thinned

GROUND = -1                             # body index of fixed parts
_THIN, _THICK = 0.007, 0.025             # radii of sticks, in sizes of the robot
_JOINT, _DOT = [0.32, 0.34, 0.38], [0.36, 0.54, 0.74]                     # colours
_HALF = {"box": (0.5, 0.5, 0.5), "sphere": (1, 1, 1), "cylinder": (1, 1, 0.5)}      # lengths of solids of size 1
_POSES = 500                            # maximum number of poses for the box around the motion
_NOT_DRAWN = "not drawn: "
_FLATTEST = 0.02                        # minimum semi-axis of an ellipsoid, in sizes of the robot

Solid = tuple[str, np.ndarray, Sequence[float], Sequence[float] | None]       # kind, pose in the link, sizes, colour


class PlacedShape(NamedTuple):
    """A mesh of a link: its number in the page, and the corners (2, 3) of its box before scaling [m]."""

    number: int
    mesh: LinkMesh
    box: np.ndarray


def bodies_of(model: Model) -> tuple[list[int], dict[str, tuple[int, np.ndarray]]]:
    """Return the link whose frame represents each moving body, and (body, pose in it (4, 4)) for each link."""
    first: dict[int, int] = {}
    for k, body in enumerate(model.link_body.tolist()):
        if body > 0:
            first.setdefault(body, k)
    number = {body: b for b, body in enumerate(first)}
    placed = {}
    for k, (name, body) in enumerate(zip(model.link_names, model.link_body.tolist(), strict=True)):
        at = np.linalg.solve(model.link_pose[first[body]], model.link_pose[k]) if body > 0 else model.link_pose[k]
        placed[name] = number.get(body, GROUND), at
    return list(first.values()), placed


class Placement:
    """Places things at links: returns plain values with the link, its body, and the pose in the body."""

    def __init__(self, model: Model):
        self.model = model
        self.placed = bodies_of(model)[1] | {WORLD: (GROUND, np.eye(4))}

    def __call__(self, link: str, at: np.ndarray, **more: Any) -> dict[str, Any]:
        """Return the values of a thing at a pose in a link. more: its other values."""
        body, link_pose = self.placed[link]
        return {"link": link, "body": body, "at": twelve(link_pose @ at), **more}


def body_scene(model: Model, T: np.ndarray, meshes: Mapping[str, Sequence[PlacedShape]],
               collisions: Mapping[str, Sequence[PlacedShape]] | None = None, robot: Robot | None = None) -> dict[str, Any]:
    """Return plain values of all that is drawn of a robot.

    T: (F, n_links, 4, 4) poses of its links, from which its size is computed; meshes, collisions: by link; robot: its description
    with the colours of textures. In the result, `at`
    is a pose in the body (rotation by rows, translation), and `covered` is 1 for parts that meshes show better.

    links      name, body, at, mass, com in the link [m], principal inertias about it [kg m^2]
    visuals    link, body, mesh: its number, at, scale, colour: used if the mesh has none
    solids     link, body, at, kind: box of edges 1, sphere and cylinder of radius 1 (bead and drum: small ones), sizes: scale
               factors, colour: null for the page's default, covered; these are shapes of the file, or masses and joints
    collision  the same of the shapes for collisions;  collision_meshes: as visuals
    points     body, x, y, z in it;  edges: two points, a radius, covered;  rims: points around rolling bodies
    elements   of force elements: two points, whether it is a spring
    ellipsoids link, body, at, sizes: semi-axes, mass, covered; solid: whether nothing else shows the link
    size       of the robot [m];  radius: of its thinnest sticks;  bounds: corners of a box around the whole motion
    """
    put = Placement(model)
    placed = put.placed
    shapes = _shapes(model, robot or model.description, meshes)
    points, edges, masses = stick_figure(model)
    rims = rolling_rims(model, points)
    elements = element_lines(model, points)
    corners = _corners(points, shapes, meshes)
    low, high = _bounds(model, T[:1], corners)
    size = float(np.linalg.norm(high - low)) or 1.0
    low, high = _bounds(model, T[::-(-len(T) // _POSES)], corners)
    edges = [(a, b) for a, b in edges if not _within(points, a, b, len(masses), shapes)]
    radii = size * (_THIN + (_THICK - _THIN) * np.sqrt(carried(edges, len(points))))

    def mark(link: str, kind: str, at: np.ndarray, sizes: ArrayLike, colour: Sequence[float]) -> dict[str, Any]:
        return put(link, at, kind=kind, sizes=rounded(sizes), colour=colour, covered=int(link in meshes))

    solids = [put(link, at, kind=kind, sizes=list(sizes), colour=colour, covered=0)
              for link, group in shapes.items() for kind, at, sizes, colour in group]
    solids += [mark(link, "sphere", _shift(xyz), 3 * [1.6 * size * _THICK * (mass / max(masses)) ** (1 / 3)], _DOT)
               for (link, xyz), mass in zip(points, masses, strict=False) if mass > 0 and link not in shapes]
    solids += [mark(joint.child, kind, at, 2.4 * size * _THIN * np.array(sizes), _JOINT)
               for joint in model.joints if joint.kind != FREE for kind, at, sizes in [_joint_mark(joint)]]
    drawn = {points[k][0] for edge in edges for k in edge} | shapes.keys()
    ellipsoids = [put(link.name, at, sizes=rounded(sizes), mass=link.mass, solid=link.name not in drawn,
                      covered=int(link.name in meshes))
                  for link in model.description.links if link.mass > 0 and link.name in placed
                  for at, sizes in [ellipsoid_of(link, 0.5 * _FLATTEST * size)]]
    inertial = {link.name: link for link in model.description.links}
    return {
        "links": [{"name": name, "body": body, "at": twelve(at), **_inertial(inertial[name])}
                  for name, (body, at) in placed.items() if name != WORLD],
        "visuals": [put(link, pose(mesh.pose), mesh=number, scale=list(mesh.scale), colour=mesh.colour)
                    for link, group in meshes.items() for number, mesh, _ in group],
        "solids": solids, "ellipsoids": ellipsoids,
        "collision": [put(link, at, kind=kind, sizes=list(sizes)) for link, visuals in model.description.visuals.items()
                      if link in placed for shape in visuals.collision for part in simple_shapes(shape)
                      for kind, at, sizes, _ in [solid_of(part)]],
        "collision_meshes": [put(link, pose(mesh.pose), mesh=number, scale=list(mesh.scale))
                             for link, group in (collisions or {}).items() for number, mesh, _ in group],
        "points": [[placed[link][0], *rounded((placed[link][1] @ [*xyz, 1.0])[:3])] for link, xyz in points],
        "edges": [[a, b, rounded(radius), int(_within(points, a, b, len(masses), meshes))]
                  for (a, b), radius in zip(edges, radii, strict=True)],
        "rims": [list(rim) for rim in rims], "elements": [[a, b, int(is_spring)] for a, b, is_spring in elements],
        "bounds": [rounded(low), rounded(high)], "size": rounded(size), "radius": rounded(_THIN * size)}


def _inertial(link: Link) -> dict[str, Any]:
    return {"mass": link.mass, "com": list(link.com), "inertia": np.linalg.eigvalsh(symmetric_matrix(link.inertia)).tolist()}


def _shapes(model: Model, robot: Robot, meshes: Container[str]) -> dict[str, list[Solid]]:
    """Return solids (kind, pose in the link, sizes, colour) by link, from the robot file."""
    shapes_by_link = link_shapes(robot, visible=meshes)
    return {link: [solid_of(part) for shape in shapes for part in simple_shapes(shape)] for link, shapes in shapes_by_link.items()
            if link in model.link_names}


def solid_of(shape: Shape) -> Solid:
    """Return a box, sphere or cylinder."""
    radius, length = shape.sizes[0], shape.sizes[-1]
    return shape.kind, pose(shape.pose), shape.sizes if shape.kind == "box" else (radius, radius, length), shape.colour


def _corners(points: Sequence[Point], shapes: Mapping[str, Sequence[Solid]],
             meshes: Mapping[str, Sequence[PlacedShape]]) -> dict[str, np.ndarray]:
    """Return corners (n, 3) of boxes around the drawn parts of each link, in the link frame."""
    boxes: dict[str, list[Any]] = {}
    for link, xyz in points:
        boxes.setdefault(link, []).append(np.array([xyz]))
    for link, group in shapes.items():
        boxes.setdefault(link, []).extend(_box(at, np.outer(np.multiply(sizes, _HALF[kind]), [-1, 1]))
                                          for kind, at, sizes, _ in group)
    for link, placed in meshes.items():
        boxes.setdefault(link, []).extend(_box(pose(mesh.pose), (box * mesh.scale).T) for _, mesh, box in placed)
    return {link: np.concatenate(parts) for link, parts in boxes.items()}


def _box(at: np.ndarray, ends: ArrayLike) -> np.ndarray:
    """Return the corners (8, 3) of a box at a pose; ends: (3, 2) along each of its axes."""
    corners: np.ndarray = np.array(np.meshgrid(*np.asarray(ends))).reshape(3, -1).T @ at[:3, :3].T + at[:3, 3]
    return corners


def _bounds(model: Model, T: np.ndarray, corners: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest corner of a box around all links in all poses [m]."""
    cloud, T = [T[..., :3, 3].reshape(-1, 3)], with_ground(T)
    for link, xyz in corners.items():
        at = T[:, ground_or_index(model, link)]
        cloud.append((np.einsum("fij,nj->fni", at[:, :3, :3], xyz) + at[:, None, :3, 3]).reshape(-1, 3))
    every = np.concatenate(cloud)
    return every.min(axis=0), every.max(axis=0)


def _within(points: Sequence[Point], a: int, b: int, links: int, drawn_links: Container[str]) -> bool:
    """Return whether a stick lies on a link that is shown by other means. Rods to a third body are kept."""
    return points[a][0] in drawn_links and (points[a][0] == points[b][0] or b < links)


def _joint_mark(joint: ModelJoint) -> tuple[str, np.ndarray, Sequence[float]]:
    """Return how a joint is drawn: kind, pose in the child, sizes.

    A joint with one screw is a drum if it rotates, else a box. Other joints are balls.
    """
    if joint.screws is None or len(joint.screws) != 1:
        return "bead", np.eye(4), (1.2, 1.2, 1.2)
    at, (turn, _) = screw_frame(joint.screws[0])
    return ("drum", at, (1, 1, 3)) if turn else ("box", at, (2, 2, 3))


def ellipsoid_of(link: Link, min_semi_axis: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the uniform ellipsoid of a link's inertia: pose and semi-axes.

    a^2 = 5 (I_b + I_c - I_a) / 2 m about the principal axes.
    """
    moments, R = np.linalg.eigh(symmetric_matrix(link.inertia))
    squares = 5 * (moments.sum() - 2 * moments) / (2 * link.mass)
    at = _shift(link.com)
    at[:3, :3] = R * np.sign(np.linalg.det(R))
    return at, np.sqrt(np.maximum(squares, min_semi_axis**2))


def _shift(xyz: ArrayLike) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = xyz
    return T


def twelve(T: np.ndarray) -> list[float]:
    """Return the rotation by rows and the translation of a pose, rounded."""
    values: list[float] = rounded(pose_to_array(T))
    return values


def rounded(x: ArrayLike) -> Any:
    """Round to nine decimals: finer than the rounding of poses."""
    return np.round(np.asarray(x, dtype=float), 9).tolist()


# The meshes of robots in a page: each file once for all links and runs ---------------------------------------------------

@dataclass(frozen=True, eq=False)
class Visuals:
    """Meshes of a page.

    robots   descriptions by robot file, with the colours of textures
    indices  of the meshes in `meshes`, by file and texture
    meshes   plain values for the page
    boxes    (2, 3) lowest and highest corner of each mesh [m]
    links    the found meshes by robot file and link
    collisions  the same of the meshes for collisions
    """

    robots: Mapping[str, Robot] = field(default_factory=dict)
    indices: Mapping[_Key, int] = field(default_factory=dict)
    meshes: Sequence[list[dict[str, Any]]] = ()
    boxes: Sequence[np.ndarray] = ()
    links: Mapping[str, Mapping[str, tuple[LinkMesh, ...]]] = field(default_factory=dict)
    collisions: Mapping[str, Mapping[str, tuple[LinkMesh, ...]]] = field(default_factory=dict)

    def of(self, model: Model, collision: bool = False) -> dict[str, list[PlacedShape]]:
        """Return the meshes of a model in the page, by link. collision: those for collisions."""
        placed = {link: [PlacedShape(number, mesh, self.boxes[number])
                         for mesh in group if (number := self.indices.get(_key(mesh))) is not None]
                  for link, group in (self.collisions if collision else self.links).get(_key_of(model), {}).items()
                  if link in model.link_names}
        return {link: group for link, group in placed.items() if group}

    def robot_of(self, model: Model) -> Robot:
        """Return the description of a model, with the colours of textures."""
        return self.robots.get(_key_of(model), model.description)


def _key_of(model: Model) -> str:
    """Return the robot file of a model, or a text with the name of a robot that was described in Python."""
    return model.source or f"robot {model.name}"


_Key = tuple[Path | None, Texture | None]


def _key(mesh: LinkMesh) -> _Key:
    return mesh.file, mesh.texture


def _read(robots: Mapping[str, Robot]) -> tuple[Visuals, tuple[LiedynWarning, ...]]:
    """Return the meshes of painted robots, read and simplified, and warnings about those that are missing or not readable.

    Raises UsageError if there is nothing to draw, or packages that read meshes are missing.
    """
    links = {source: link_meshes(robot) for source, robot in robots.items()}
    collisions = {source: link_meshes(robot, collision=True) for source, robot in robots.items()}
    visible, hidden = ([mesh for of_file in by_source.values() for group in of_file.values() for mesh in group]
                       for by_source in (links, collisions))
    named = visible + hidden
    if not visible:
        raise UsageError(f"{', '.join(links) or 'the robot'} has no meshes; a URDF names them in <visual>")
    missing = missing_readers()
    if missing:
        raise UsageError(f"drawing meshes requires {', '.join(missing)}: {INSTALL_MESHES}")
    lost = list(dict.fromkeys(mesh.name for mesh in named if mesh.file is None))
    warnings = WarningLog([_not_found(lost)] if lost else ())
    read = {}
    for file, texture in dict.fromkeys(map(_key, named)):
        if file is None:
            continue
        try:
            read[file, texture] = read_drawn_mesh(file, texture)
        except ComputationError as problem:
            warnings.add("not-drawn", f"{_NOT_DRAWN}{problem}")
    if not read:
        raise UsageError(next(iter(warnings)).message.removeprefix(_NOT_DRAWN))
    boxes = [np.array([points.min(axis=0), points.max(axis=0)])
             for parts in read.values() for points in [np.concatenate([part.points for part in parts])]]
    seen = set(map(_key, visible))
    thin = (thinned({key: parts for key, parts in read.items() if key in seen})
            | thinned({key: parts for key, parts in read.items() if key not in seen}, MOST_TRIANGLES // 3))
    packs = [packed_mesh(thin[key]) for key in read]
    return Visuals(robots, {key: k for k, key in enumerate(read)}, packs, boxes, links, collisions), tuple(warnings)


def drawn_meshes(models: Sequence[Model], roots: Sequence[str | os.PathLike[str]],
                 meshes: bool | None = None) -> tuple[Visuals, tuple[LiedynWarning, ...]]:
    """Return the meshes to draw, with colours of textures, and warnings about meshes and textures that cannot be drawn.

    roots: folders in which `package://` is searched. meshes: whether meshes are drawn; None: if there are some and the packages
    that read them are installed. Raises UsageError for True or roots if there is nothing to draw, or these packages are missing.
    """
    robots, warnings = {}, WarningLog()
    for model in models:
        if _key_of(model) not in robots:
            robots[_key_of(model)], of_textures = painted_robot(model.description, roots)
            warnings.extend(of_textures)
    count = sum(len(group) for robot in [*robots.values()][:1] for group in link_meshes(robot).values())
    visuals, more = Visuals(robots), tuple[LiedynWarning, ...]()
    if meshes or roots:
        visuals, more = _read(robots)
    elif meshes is not False and count and missing_readers():
        more = (LiedynWarning("meshes-available", f"the robot file has {count} mesh{'es' * (count > 1)}: "
                              f"`{INSTALL_MESHES}` draws {'them' if count > 1 else 'it'}"),)
    elif meshes is not False and count:
        try:
            visuals, more = _read(robots)
        except UsageError as error:                             # no file is found, or can be read
            more = (LiedynWarning("not-drawn", f"the meshes are not drawn: {error}"),)
    return visuals, (*warnings, *more)


def _not_found(names: Sequence[str]) -> LiedynWarning:
    return LiedynWarning("mesh-not-found", f"no file for the mesh {list_names(names, 1)}{package_hint(names[0])}")
