"""What of a robot does not change while it moves: its bodies, and what is drawn on them, as plain values."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from liedyn.errors import LiedynError
from liedyn.io.robots.link_meshes import LinkMesh
from liedyn.io.robots.link_shapes import LinkShape, link_shapes
from liedyn.joints.kinds import FREE
from liedyn.model.description import WORLD, Pose
from liedyn.model.model import Model
from liedyn.report.pictures.motion_data import rolling_rims, stick_figure

GROUND = -1                             # the body of what does not move
_THIN, _THICK = 0.007, 0.025             # radii of sticks, in sizes of the robot
_POSES = 500                            # that a box around the motion is taken from, at most
_FLATTEST = 0.02                        # of an ellipsoid, in sizes of the robot: what has no thickness is drawn with some


class Placed(NamedTuple):
    """A mesh of a link: its number in the page, and the corners (2, 3) of its box, not scaled [m]."""

    number: int
    mesh: LinkMesh
    box: np.ndarray


def bodies_of(model: Model) -> tuple[list[int], dict[str, tuple[int, np.ndarray]]]:
    """The link whose frame stands for each moving body, and (body, pose in it (4, 4)) of each link."""
    first: dict[int, int] = {}
    for k, body in enumerate(model.link_body.tolist()):
        if body > 0:
            first.setdefault(body, k)
    number = {body: b for b, body in enumerate(first)}
    place = {}
    for k, (name, body) in enumerate(zip(model.link_names, model.link_body.tolist(), strict=True)):
        pose = np.linalg.solve(model.link_pose[first[body]], model.link_pose[k]) if body > 0 else model.link_pose[k]
        place[name] = number.get(body, GROUND), pose
    return list(first.values()), place


def body_scene(model: Model, T: np.ndarray, meshes: Mapping[str, Sequence[Placed]] | None = None) -> dict:
    """Plain values of all that is drawn of a robot; T: (F, n_links, 4, 4) poses of its links, which tell its size; meshes: by
    link.

    links      name, body, at: rotation by rows and translation of the link in its body
    visuals    link, mesh: its number, at, scale, colour: where it has none;  covered: links that meshes show
    shapes     link, kind, sizes, at (in the body), colour: null for one of the page's
    points     body, x, y, z in it;  edges: two points, a radius, 1 if meshes show that;  rims: points around what rolls
    dots       point, radius, link: masses of links without a shape
    joints     link, at, kind: axis (about z of `at`), ball or slide
    ellipsoids link, at, semi-axes; solid: where nothing else shows the link
    size       of the robot [m];  radius: of its thinnest sticks;  bounds: corners of a box around all of the motion
    """
    _, place = bodies_of(model)
    place[WORLD] = (GROUND, np.eye(4))
    meshes = meshes or {}
    shapes = _shapes(model, meshes)
    points, edges, masses = stick_figure(model)
    rims = rolling_rims(model, points)
    corners = _corners(points, shapes, meshes)
    low, high = _bounds(model, T[:1], corners)
    size = float(np.linalg.norm(high - low)) or 1.0
    low, high = _bounds(model, T[::-(-len(T) // _POSES)], corners)
    edges = [(a, b) for a, b in edges if not _within_a_shape(points, a, b, len(masses), shapes)]
    sticks = [[a, b, _rounded(radius), int(_within_a_shape(points, a, b, len(masses), meshes))]
              for (a, b), radius in zip(edges, _radii(edges, len(points), size), strict=True)]
    dots = [[k, _rounded(1.6 * size * _THICK * (mass / max(masses)) ** (1 / 3)), points[k][0]]
            for k, mass in enumerate(masses) if mass > 0 and points[k][0] not in shapes]

    def at(link: str, pose: np.ndarray) -> list:
        return _twelve(place[link][1] @ pose)

    return {
        "links": [{"name": name, "body": body, "at": _twelve(pose)} for name, (body, pose) in place.items() if name != WORLD],
        "visuals": [{"link": link, "body": place[link][0], "mesh": number, "at": at(link, _matrix(mesh.pose)),
                     "scale": list(mesh.scale), "colour": mesh.colour}
                    for link, group in meshes.items() for number, mesh, _ in group],
        "covered": list(meshes),
        "shapes": [{"link": link, "body": place[link][0], "kind": one.kind, "sizes": list(one.sizes), "colour": one.colour,
                    "at": at(link, _matrix(one.pose))} for link, group in shapes.items() for one in group],
        "points": [[place[link][0], *_rounded((place[link][1] @ [*xyz, 1.0])[:3])] for link, xyz in points],
        "edges": sticks, "dots": dots, "rims": [list(rim) for rim in rims],
        "joints": [{"link": joint.child, "body": place[joint.child][0], "at": at(joint.child, pose), "kind": kind}
                   for joint in model.joints if (mark := _mark(joint)) for kind, pose in [mark]],
        "ellipsoids": _ellipsoids(model, place, shapes, size, {points[k][0] for edge in edges for k in edge}),
        "bounds": [_rounded(low), _rounded(high)], "size": _rounded(size), "radius": _rounded(_THIN * size)}


def _shapes(model: Model, meshes: Container[str]) -> dict[str, tuple[LinkShape, ...]]:
    """Those of the file that the robot came from, where it is still there."""
    if model.source is None:
        return {}
    try:
        found = link_shapes(model.source, visible=meshes)
    except (LiedynError, OSError, ValueError):
        return {}
    return {link: shapes for link, shapes in found.items() if link in model.link_names}


def _corners(points, shapes, meshes) -> dict[str, np.ndarray]:
    """(n, 3) corners of boxes around what is drawn of each link, in the link."""
    found: dict[str, list] = {}
    for link, xyz in points:
        found.setdefault(link, []).append(np.array([xyz]))
    for link, group in shapes.items():
        found.setdefault(link, []).extend(_box(one.pose, [-0.5, 0.5] * np.array(_sides(one))[:, None]) for one in group)
    for link, group in meshes.items():
        found.setdefault(link, []).extend(_box(mesh.pose, (box * mesh.scale).T) for _, mesh, box in group)
    return {link: np.concatenate(parts) for link, parts in found.items()}


def _box(pose: Pose, ends) -> np.ndarray:
    """(8, 3) corners of a box at a pose; ends: (3, 2) along each of its axes."""
    corners = np.array(np.meshgrid(*ends)).reshape(3, -1).T
    return corners @ np.reshape(pose.rotation, (3, 3)).T + pose.translation


def _sides(shape: LinkShape) -> tuple[float, float, float]:
    """Of a box around it."""
    if shape.kind == "box":
        return shape.sizes
    r, length = (*shape.sizes, 0.0)[:2]
    return 2 * r, 2 * r, length + (0.0 if shape.kind == "cylinder" else 2 * r)


def _bounds(model: Model, T: np.ndarray, corners: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest corner of a box around all links in all poses [m]."""
    cloud = [T[..., :3, 3].reshape(-1, 3)]
    for link, xyz in corners.items():
        pose = T[:, model.link_index(link)]
        cloud.append((np.einsum("fij,nj->fni", pose[:, :3, :3], xyz) + pose[:, None, :3, 3]).reshape(-1, 3))
    every = np.concatenate(cloud)
    return every.min(axis=0), every.max(axis=0)


def _within_a_shape(points, a: int, b: int, links: int, shapes) -> bool:
    """Whether a stick lies on a link that has a shape, which shows it better. Rods to a third body stay."""
    return points[a][0] in shapes and (points[a][0] == points[b][0] or b < links)


def _radii(edges, n: int, size: float) -> np.ndarray:
    """(edges,) thick where much of the robot hangs on the stick, as limbs are."""
    carried = np.ones(n)
    for a, b in sorted(edges, key=lambda edge: -_depth(edges, edge[1])):
        carried[a] += carried[b]
    share = np.array([carried[b] for _, b in edges]) / max(carried.max(), 1.0) if edges else np.zeros(0)
    return size * (_THIN + (_THICK - _THIN) * np.sqrt(share))


def _depth(edges, point: int) -> int:
    above, depth = {b: a for a, b in edges}, 0
    while point in above and depth <= len(above):
        point, depth = above[point], depth + 1
    return depth


def _mark(joint) -> tuple[str, np.ndarray] | None:
    """How a joint is drawn, and the pose of the mark in the child: about its axis, a ball, a slide; None of a free one."""
    if joint.kind == FREE:
        return None
    if joint.screws is None or len(joint.screws) != 1:
        return "ball", np.eye(4)
    w, v = joint.screws[0][:3], joint.screws[0][3:]
    turns = np.linalg.norm(w) > 1e-9
    axis = (w if turns else v) / np.linalg.norm(w if turns else v)
    pose = np.eye(4)
    pose[:3, :3] = _turned_to(axis)
    pose[:3, 3] = np.cross(w, v) / (w @ w) if turns else 0.0
    return ("axis" if turns else "slide"), pose


def _turned_to(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the unit vector."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(other, axis) / np.linalg.norm(np.cross(other, axis))
    return np.column_stack([x, np.cross(axis, x), axis])


def _ellipsoids(model: Model, place, shapes, size: float, drawn: set[str]) -> list[dict]:
    """Uniform ellipsoids of the links' inertias: semi-axes a^2 = 5 (I_b + I_c - I_a) / 2 m, about the principal axes."""
    found = []
    for link in model.description.links:
        xx, xy, xz, yy, yz, zz = link.inertia
        if link.mass <= 0 or link.name not in place:
            continue
        moments, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        squares = 5 * (moments.sum() - 2 * moments) / (2 * link.mass)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = R * np.sign(np.linalg.det(R)), link.com
        least = 0.5 * _FLATTEST * size
        found.append({"link": link.name, "body": place[link.name][0], "at": _twelve(place[link.name][1] @ pose),
                      "sizes": _rounded(np.sqrt(np.maximum(squares, least**2))),
                      "solid": link.name not in shapes and link.name not in drawn})
    return found


def _matrix(pose: Pose) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(pose.rotation, (3, 3)), pose.translation
    return T


def _twelve(T: np.ndarray) -> list[float]:
    return _rounded(np.concatenate([T[:3, :3].ravel(), T[:3, 3]]))


def _rounded(x):
    """Nine digits behind the point: lengths and directions stay well within what poses are written with."""
    return np.round(np.asarray(x, dtype=float), 9).tolist()
