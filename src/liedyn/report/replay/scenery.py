"""What a scenario adds to the robot in a page: contact planes and shapes, targets, waypoints, attached bodies."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from liedyn.io.robots.visual_shapes import simple_shapes
from liedyn.model.description import FREE, WORLD
from liedyn.model.links import Link, Pose, Shape
from liedyn.model.name_patterns import matching_names
from liedyn.model.spatial import pose, rotation_of_z
from liedyn.report.replay.meshes import packed
from liedyn.report.replay.scene import Placement, ellipsoid_of, rounded, solid_of, twelve
from liedyn.report.replay.sources import ReplayRun

_POINT = 0.01                           # radius of a contact point and a point mass, in sizes of the robot
_PATH = 1e-4                            # rounding of the path of a target, in sizes of the robot


def scenery(run: ReplayRun, rows: np.ndarray, size: float) -> dict[str, Any]:
    """Return plain values for the page. `body` and `at` are as in `body_scene`.

    planes     name, body, at: the pose of a frame whose z axis is the normal
    contacts   link, body, at, kind, sizes: shapes that touch planes and each other
    targets    name, packed positions (F, 3) of a target in task space at the rows
    waypoints  name, at: poses in the world
    payloads   link, body, at, sizes: ellipsoid of an attached body, from, until: times [s], until None: the end
    """
    put = Placement(run.model)
    contacts = run.scenario.get("contacts") or {}
    return {"planes": list(_planes(put, contacts)), "contacts": list(_contact_shapes(put, contacts, size)),
            "targets": list(_targets(run, rows, size)), "waypoints": list(_waypoints(run)),
            "payloads": list(_payloads(put, run, size))}


def _planes(put: Placement, contacts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, plane in (contacts.get("planes") or {}).items():
        normal = np.array(plane.get("normal", (0.0, 0.0, 1.0)), dtype=float)
        at = np.eye(4)
        at[:3, :3], at[:3, 3] = rotation_of_z(normal / np.linalg.norm(normal)), plane.get("point", (0.0, 0.0, 0.0))
        yield {"name": name, **put(plane.get("link") or WORLD, at)}


def _contact_shapes(put: Placement, contacts: Mapping[str, Any], size: float) -> Iterator[dict[str, Any]]:
    for pattern, shapes in (contacts.get("links") or {}).items():
        for link in matching_names(pattern, put.model.link_names):
            for shape in shapes if isinstance(shapes, list) else [shapes]:
                for part in simple_shapes(_shape(shape, size)):
                    kind, at, sizes, _ = solid_of(part)
                    yield put(link, at, kind=kind, sizes=rounded(sizes))


def _shape(shape: Mapping[str, Any], size: float) -> Shape:
    """Return a contact shape of a scenario; a point is a small sphere."""
    if "point" in shape:
        return Shape.sphere(_POINT * size, shape["point"])
    at = Pose.from_xyz_rpy(shape.get("at", (0.0, 0.0, 0.0)), shape.get("rpy", (0.0, 0.0, 0.0)))
    if "box" in shape:
        return Shape("box", shape["box"], at)
    kind = "capsule" if "capsule" in shape else "sphere"
    return Shape(kind, [shape[kind][key] for key in ("radius", "length") if key in shape[kind]], at)


def _targets(run: ReplayRun, rows: np.ndarray, size: float) -> Iterator[dict[str, Any]]:
    """Yield the links whose targets have positions in the columns of the run."""
    for link in run.model.link_names:
        columns = [run.columns.get(f"reference.{link}.{axis}") for axis in "xyz"]
        if all(x is not None for x in columns):
            path = np.column_stack([np.asarray(x)[rows] for x in columns])
            yield {"name": link, **packed(path, _PATH * size)}


def _waypoints(run: ReplayRun) -> Iterator[dict[str, Any]]:
    """Yield the waypoints of a target in task space, and of free joints on the ground that are prescribed."""
    control = run.scenario.get("control") or {}
    motions = [(control.get("link", ""), np.eye(4), control.get("target"))]
    for pattern, rule in (run.scenario.get("joints") or {}).items():
        prescribed = rule.get("prescribe") if isinstance(rule, Mapping) else None
        motion = prescribed.get("position") if isinstance(prescribed, Mapping) else None
        motions += [(joint.name, np.asarray(joint.home), motion) for joint in run.model.joints
                    if joint.kind == FREE and joint.parent == WORLD and matching_names(pattern, (joint.name,))]
    for name, home, motion in motions:
        for point in motion.get("waypoints") or () if isinstance(motion, Mapping) else ():
            xyz = point.get("xyz", (0.0, 0.0, 0.0))
            at = Pose.from_xyz_quaternion(xyz, point["quaternion"]) if "quaternion" in point else \
                Pose.from_xyz_rpy(xyz, point.get("rpy", (0.0, 0.0, 0.0)))
            yield {"name": f"{name}, {float(point['t']):g} s", "at": twelve(home @ pose(at))}


def _payloads(put: Placement, run: ReplayRun, size: float) -> Iterator[dict[str, Any]]:
    """Yield the bodies that events attach, from the marks of the events."""
    attached: dict[str, dict[str, Any]] = {}
    events = run.scenario.get("events") or {}
    for t, event, _ in run.marks:
        for action in _actions(events.get(event)):
            body, link = action.get("attach"), action.get("detach")
            if isinstance(body, Mapping) and body.get("link") in put.model.link_names:
                solid = Link("payload", body["mass"], body.get("com", (0.0, 0.0, 0.0)), body.get("inertia", (0.0,) * 6))
                at, sizes = ellipsoid_of(solid, _POINT * size)
                attached[body["link"]] = {**put(body["link"], at, sizes=rounded(sizes)), "from": t, "until": None}
            elif link in attached:
                yield attached.pop(link) | {"until": t}
    yield from attached.values()


def _actions(event: Any) -> Sequence[Mapping[str, Any]]:
    actions = event.get("do") if isinstance(event, Mapping) else None
    return [action for action in (actions if isinstance(actions, list) else [actions]) if isinstance(action, Mapping)]

