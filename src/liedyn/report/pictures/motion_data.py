"""The recording of a robot's motion: columns, with the robot's limits, energy and skeleton."""
from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from liedyn.dynamics.scales import scales_of
from liedyn.io.csv import Trajectory
from liedyn.model.description import WORLD
from liedyn.model.model import Model
from liedyn.model.spatial import rotation_of_z
from liedyn.report.pictures.picture_data import (
    Energy,
    Recording,
    Skeleton,
    base_path_of_columns,
    energy_of_columns,
    followed_of,
    groups_of_columns,
    prescribed_of_comments,
)

FRAMES = 4000                           # of the skeleton: smooth trails, little work
RIM = 48                                # points
_POINT = 1e-6                           # of the characteristic length: what is shorter is a point


def record(motion: Trajectory, model: Model | None, title: str) -> Recording:
    """What the pictures of a motion are drawn from: its columns (`q.elbow`, …) and, where the robot is known, more.

    Energy is drawn with its balance where the columns have it, else computed where q and v are complete; the motion is drawn
    where q is. Comments tell what was prescribed, the axes of vectors, and the law that was followed.
    """
    columns, header = motion.columns, motion.header
    energy, limits, joints, lines = energy_of_columns(columns), {}, (), None
    if model is not None:
        q, v = (_stacked(columns, prefix, names) for prefix, names in (("q.", model.q_names), ("v.", model.v_names)))
        if energy is None and q is not None and v is not None:
            from liedyn.dynamics.kinematics import energy as energy_at
            energy = Energy(*energy_at(model, q, v, passive=motion.passive))
        limits, joints, lines = column_limits(model), model.joint_names, None if q is None else skeleton(model, motion.t, q)
    groups = groups_of_columns(columns, motion.units, limits=limits, joints=joints, prescribed=prescribed_of_comments(header),
                               comments=header)
    return Recording(title, motion.t, groups, energy, base_path_of_columns(columns), lines, columns.get("drift"),
                     followed_of(motion))


def column_limits(model: Model) -> dict[str, tuple[float, float]]:
    """{column: (lower, upper)} of positions, velocities and forces."""
    limits = {}
    for k, name in enumerate(model.v_names):
        limits[f"q.{name}"] = (float(model.lower[k]), float(model.upper[k]))
        speed, force = abs(float(model.velocity_limit[k])), abs(float(model.effort_limit[k]))
        limits |= {f"v.{name}": (-speed, speed), f"tau.{name}": (-force, force)}
    return limits


def skeleton(model: Model, t: np.ndarray, q: np.ndarray) -> Skeleton | None:
    """The robot as lines: joints between link origins, links to where closures hold them, rods, rims of what rolls, the other
    ends of the tree down to their centres of mass, thrusters.

    `q` is (N, nq); at most FRAMES of the N states are taken. None where there is no line, or nothing but a point.
    """
    keep = np.append(np.arange(0, len(t) - 1, -(-len(t) // FRAMES)), len(t) - 1)          # evenly spaced: trails are smoothed
    points, edges, masses = stick_figure(model)
    rims = rolling_rims(model, points)
    if not edges and not rims:
        return None
    from liedyn.dynamics.kinematics import link_poses

    T = link_poses(model, q[keep])[:, [model.link_index(link) for link, _ in points]]
    placed = np.einsum("fpij,pj->fpi", T[..., :3, :3], np.array([at for _, at in points])) + T[..., :3, 3]
    if np.ptp(placed.reshape(-1, 3), axis=0).max() <= _POINT * scales_of(model).length:
        return None
    dots = np.array(masses + [0.0] * (len(points) - len(masses))) if any(masses) else None
    return Skeleton(t[keep], placed, tuple(edges), dots, rims)


def stick_figure(model: Model) -> tuple[list[tuple[str, tuple]], list[tuple[int, int]], list[float]]:
    """Points (link, place in it), lines between them, and masses of the points."""
    links = {link.name: link for link in model.description.links}
    parents = dict(zip(model.link_names, model.link_parents, strict=True))
    shown = _shown_links(model, parents)
    points = [(name, (0.0, 0.0, 0.0)) for name in shown]
    edges = [(shown.index(parents[name]), k) for k, name in enumerate(shown) if parents[name] in shown]
    masses = [0.0] * len(points)
    _add_closures(model, shown, points, edges)
    masses += [0.0] * (len(points) - len(masses))
    ends = [k for k in range(len(shown)) if k not in {a for a, _ in edges}]
    dots = len(ends) <= 3               # more would hide the lines
    for k in ends:
        link = links[shown[k]]
        if link.mass > 0 and math.hypot(*link.com) > _POINT * scales_of(model).length:
            edges.append((k, len(points)))
            points.append((link.name, link.com))
            masses.append(link.mass if dots else 0.0)
    for actuator in model.description.actuators:
        edges.append((shown.index(actuator.link), len(points)))
        points.append((actuator.link, actuator.position))
        masses.append(0.0)
    return points, edges, masses


def _add_closures(model: Model, shown: list[str], points: list[tuple[str, tuple]], edges: list[tuple[int, int]]) -> None:
    """A line from a link's origin to each of its closures, and the rods between links."""
    for loop in model.description.loops:
        ends = []
        for link, pose in ((loop.a, loop.pose_a), (loop.b, loop.pose_b)):
            if link in shown:
                ends.append(shown.index(link))
                if math.hypot(*pose.translation) > _POINT * scales_of(model).length:
                    edges.append((ends[-1], len(points)))
                    ends[-1] = len(points)
                    points.append((link, pose.translation))
        if loop.type == "distance" and len(ends) == 2:
            edges.append((ends[0], len(points)))                 # to a point of its own: lines make a tree
            points.append(points[ends[1]])


def rolling_rims(model: Model, points: list[tuple[str, tuple]]) -> tuple[tuple[int, ...], ...]:
    """The rim of each disc that rolls, three great circles of each sphere; their points are added."""
    angle, rims = 2 * np.pi * np.arange(RIM) / RIM, []
    circle = np.array([np.cos(angle), np.sin(angle), 0 * angle])
    for loop in model.description.loops:
        if loop.type == "rolling" and loop.b != WORLD:
            turn = np.reshape(loop.pose_b.rotation, (3, 3)) @ rotation_of_z(loop.axes[0] if loop.axes else (0.0, 0.0, 1.0))
            for order in ((0, 1, 2),) if loop.shape == "disc" else ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                around = np.array(loop.pose_b.translation) + loop.radius * (turn @ circle[list(order)]).T
                rims.append(tuple(range(len(points), len(points) + RIM)))
                points += [(loop.b, tuple(at)) for at in around]
    return tuple(rims)


def _shown_links(model: Model, parents: dict[str, str | None]) -> list[str]:
    """All links but massless frames that end the tree beside others: sensors, markers."""
    links = {link.name: link for link in model.description.links}
    moving = {joint.child for joint in model.joints} | {actuator.link for actuator in model.description.actuators}
    siblings: dict[str | None, int] = {}
    for parent in parents.values():
        siblings[parent] = siblings.get(parent, 0) + 1
    return [name for name in model.link_names
            if name in moving or name in siblings or links[name].mass > 0 or siblings[parents[name]] == 1]


def _stacked(columns: Mapping[str, np.ndarray], prefix: str, names: tuple[str, ...]) -> np.ndarray | None:
    """(N, n) array of the columns, None where one is missing."""
    wanted = [prefix + name for name in names]
    if not wanted or any(name not in columns for name in wanted):
        return None
    return np.column_stack([columns[name] for name in wanted])
