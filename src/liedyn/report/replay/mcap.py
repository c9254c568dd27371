"""Write runs as an MCAP file for Foxglove: poses of links, the robot, forces, the columns of the trajectory, events."""
from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.manifold import continuous_quaternions
from liedyn.errors import UsageError
from liedyn.io.atomic_output import check_output, scratch_folder, translate_os_errors
from liedyn.model.description import WORLD
from liedyn.model.spatial import rotation_of_z
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import frames_of
from liedyn.report.replay.scene import Visuals, bodies_of, body_scene
from liedyn.report.replay.sources import ReplayRun, arrows_of

# Solids of a scene as the primitives of Foxglove ------------------------------------------------------------------------

Stick = tuple[tuple[int, list[float]], tuple[int, list[float]]]         # body and point of each end
Rod = tuple[int, np.ndarray, np.ndarray, float]           # body, both ends in it, radius
MeshTriangles = list[tuple[np.ndarray, list[int], list[float] | None]]      # of each part: points, corners, colour


def _colour(r: float, g: float, b: float, a: float = 1.0) -> dict[str, Any]:
    return {"r": r, "g": g, "b": b, "a": a}


PAINT = {"link": _colour(0.36, 0.54, 0.74), "stick": _colour(0.70, 0.74, 0.79),
         "force": _colour(0.90, 0.36, 0.10), "contact": _colour(0.10, 0.55, 0.85), "reaction": _colour(0.10, 0.65, 0.45),
         "moment": _colour(0.72, 0.35, 0.68)}
_SOLIDS = ("arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")
_BARE = (0.72, 0.74, 0.77)
_ROUND = {"bottom_scale": 1.0, "top_scale": 1.0}
# for each kind of solid of size 1: primitive of Foxglove, its lengths, further fields
_KINDS = {"box": ("cubes", (1, 1, 1), {}), "sphere": ("spheres", (2, 2, 2), {}), "bead": ("spheres", (2, 2, 2), {}),
          "cylinder": ("cylinders", (2, 2, 1), _ROUND), "drum": ("cylinders", (2, 2, 1), _ROUND)}


def entity(frame: str, name: str, timestamp: dict[str, Any], *, locked: bool, **solids: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a SceneEntity of Foxglove in a frame, with lists of solids by kind."""
    return {"timestamp": timestamp, "frame_id": frame, "id": name, "lifetime": {"sec": 0, "nsec": 0}, "frame_locked": locked,
            "metadata": [], **{kind: solids.get(kind, []) for kind in _SOLIDS}}


def pose(T: np.ndarray) -> dict[str, Any]:
    """Return a pose (4, 4) as position and quaternion."""
    q = continuous_quaternions(T[None, None, :3, :3])[0, 0]
    return {"position": dict(zip("xyz", T[:3, 3].round(7).tolist(), strict=True)),
            "orientation": dict(zip("xyzw", q.round(7).tolist(), strict=True))}


def _matrix(twelve: Sequence[float]) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(twelve[:9], (3, 3)), twelve[9:]
    return T


def _along(a: np.ndarray, direction: np.ndarray, axis: int) -> np.ndarray:
    """Return a pose at `a` whose axis with this number points along `direction`."""
    T = np.eye(4)
    T[:3, :3] = np.roll(rotation_of_z(direction / np.linalg.norm(direction)), axis + 1, axis=1)
    T[:3, 3] = a
    return T


def arrow(foot_and_vector: np.ndarray, length: float, radius: float, kind: str) -> dict[str, Any]:
    """Return an arrow of Foxglove from a foot along a vector (6,), with a length [m] and a colour of `PAINT`."""
    head = min(6.3 * radius, 0.6 * length)
    return {"pose": pose(_along(foot_and_vector[:3], foot_and_vector[3:], 0)), "shaft_length": length - head, "head_length": head,
            "shaft_diameter": 1.8 * radius, "head_diameter": 4.7 * radius, "color": PAINT[kind]}


def rods(scene: dict[str, Any], bodies: Mapping[int, np.ndarray]) -> tuple[list[Rod], list[Stick]]:
    """Return sticks fixed to a body as (body, one end in it, the other, radius), and sticks between two moving bodies.

    bodies: (F, 4, 4) poses over time.
    """
    fixed: list[Rod] = []
    moving: list[Stick] = []
    rims = [(a, b, scene["radius"], 0) for rim in scene["rims"] for a, b in zip(rim, [*rim[1:], rim[0]], strict=True)]
    elements = [(a, b, scene["radius"], 0) for a, b, _ in scene["elements"]]
    for a, b, radius, hidden in [*scene["edges"], *rims, *elements]:
        ends = [(scene["points"][k][0], scene["points"][k][1:]) for k in (a, b)]
        if hidden:
            continue
        for (body, p), (other_body, r) in (ends, ends[::-1]):
            seen = np.linalg.solve(bodies[body], bodies[other_body]) @ [*r, 1.0]
            if np.ptp(seen, axis=0).max() <= 1e-6 * scene["size"]:
                fixed.append((body, np.array(p), seen[0, :3], radius))
                break
        else:
            moving.append((ends[0], ends[1]))
    return fixed, moving


def mesh_triangles(parts: Sequence[dict[str, Any]]) -> MeshTriangles:
    """Return points (n, 3), point indices of the corners and the colour of each part of a packed mesh."""
    triangles: MeshTriangles = []
    for part in parts:
        behind = unpacked(part["corners"])[:, 0].astype(int)
        corners = np.cumsum(behind == 0) - (behind == 0) - behind
        triangles.append((unpacked(part["points"]) + part["low"], corners.tolist(), part["colour"]))
    return triangles


def robot_entities(scene: dict[str, Any], frames: Mapping[int, str], sticks: Iterable[Rod], meshes: Sequence[MeshTriangles],
                   timestamp: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return an entity for each body with visible parts. frames: names of the frames of bodies."""
    solids: dict[int, dict[str, list[Any]]] = {}

    def put(body: int, kind: str, solid: dict[str, Any]) -> None:
        solids.setdefault(body, {}).setdefault(kind, []).append(solid)

    def solid(body: int, kind: str, T: np.ndarray, sizes: Sequence[float], colour: dict[str, Any]) -> None:
        primitive, lengths, more = _KINDS[kind]
        size = dict(zip("xyz", np.multiply(sizes, lengths).tolist(), strict=True))
        put(body, primitive, {"pose": pose(T), "size": size, "color": colour} | more)

    ellipsoids = [part | {"kind": "sphere", "colour": None} for part in scene["ellipsoids"] if part["solid"]]
    for part in [*scene["solids"], *ellipsoids]:
        if not part["covered"]:
            solid(part["body"], part["kind"], _matrix(part["at"]), part["sizes"],
                  _colour(*part["colour"]) if part["colour"] else PAINT["link"])
    for body, a, b, radius in sticks:
        length = float(np.linalg.norm(b - a))
        if length > 1e-9:
            solid(body, "cylinder", _along((a + b) / 2, b - a, 2), (radius, radius, length), PAINT["stick"])
    for part in scene["visuals"]:
        for points, corners, colour in meshes[part["mesh"]]:
            scaled = (points * part["scale"]).round(6).tolist()
            put(part["body"], "triangles", {
                "pose": pose(_matrix(part["at"])), "color": _colour(*(colour or part["colour"] or _BARE)), "colors": [],
                "points": [dict(zip("xyz", p, strict=True)) for p in scaled], "indices": corners})
    return [entity(frames[body], f"{prefix}{frames[body]}", timestamp, locked=True, **group) for body, group in solids.items()]


# JSON schemas of the messages for Foxglove, with the fields that are written here. It identifies them by name ------------

# Fields as in https://docs.foxglove.dev/docs/sdk/schemas.

_NUMBER, _INTEGER, _TEXT, _TRUTH = ({"type": kind} for kind in ("number", "integer", "string", "boolean"))


def _record(title: str, /, **fields: Any) -> dict[str, Any]:
    return {"title": title, "type": "object", "properties": fields}


def _many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TIME, _DURATION = (_record(title, sec=_INTEGER, nsec=_INTEGER) for title in ("time", "duration"))
_VECTOR, _POINT = (_record(f"foxglove.{title}", x=_NUMBER, y=_NUMBER, z=_NUMBER) for title in ("Vector3", "Point3"))
_TURN = _record("foxglove.Quaternion", x=_NUMBER, y=_NUMBER, z=_NUMBER, w=_NUMBER)
_POSE = _record("foxglove.Pose", position=_VECTOR, orientation=_TURN)
_COLOUR = _record("foxglove.Color", r=_NUMBER, g=_NUMBER, b=_NUMBER, a=_NUMBER)
_SOLID = {"pose": _POSE, "size": _VECTOR, "color": _COLOUR}

_FRAME = _record("foxglove.FrameTransform", timestamp=_TIME, parent_frame_id=_TEXT, child_frame_id=_TEXT, translation=_VECTOR,
                 rotation=_TURN)
_ARROW = _record("foxglove.ArrowPrimitive", pose=_POSE, shaft_length=_NUMBER, shaft_diameter=_NUMBER, head_length=_NUMBER,
                 head_diameter=_NUMBER, color=_COLOUR)
_MANY_POINTS = {"points": _many(_POINT), "color": _COLOUR, "colors": _many(_COLOUR), "indices": _many(_INTEGER)}
_ENTITY = _record(
    "foxglove.SceneEntity", timestamp=_TIME, frame_id=_TEXT, id=_TEXT, lifetime=_DURATION, frame_locked=_TRUTH,
    metadata=_many(_record("foxglove.KeyValuePair", key=_TEXT, value=_TEXT)),
    arrows=_many(_ARROW),
    cubes=_many(_record("foxglove.CubePrimitive", **_SOLID)),
    spheres=_many(_record("foxglove.SpherePrimitive", **_SOLID)),
    cylinders=_many(_record("foxglove.CylinderPrimitive", **_SOLID, bottom_scale=_NUMBER, top_scale=_NUMBER)),
    lines=_many(_record("foxglove.LinePrimitive", type=_INTEGER, pose=_POSE, thickness=_NUMBER, scale_invariant=_TRUTH,
                        **_MANY_POINTS)),
    triangles=_many(_record("foxglove.TriangleListPrimitive", pose=_POSE, **_MANY_POINTS)),
    texts=_many({"type": "object"}), models=_many({"type": "object"}))
_DELETION = _record("foxglove.SceneEntityDeletion", timestamp=_TIME, type=_INTEGER, id=_TEXT)

TRANSFORMS = _record("foxglove.FrameTransforms", transforms=_many(_FRAME))
SCENE = _record("foxglove.SceneUpdate", deletions=_many(_DELETION), entities=_many(_ENTITY))
LOG = _record("foxglove.Log", timestamp=_TIME, level=_INTEGER, message=_TEXT, name=_TEXT, file=_TEXT, line=_INTEGER)


# mcap file --------------------------------------------------------------------------------------------------------------

_INFO, _LINE_LIST = 2, 2                # of log messages; of lines: each two points are a line
Stream = Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]     # time [ns], topic, schema, message, in order


def check_mcap(output: str, *, force: bool) -> None:
    """Raise UsageError before any work is done if the file exists or the package that writes it is missing."""
    check_output(output, force=force)
    if find_spec("mcap") is None:
        raise UsageError("writing MCAP files requires the package mcap: pip install 'liedyn[mcap]'")


def write_mcap(runs: Sequence[ReplayRun], output: str, visuals: Visuals | None, *, force: bool) -> int:
    """Write runs as MCAP, with messages in JSON, and return the number of messages.

    With several runs, the names of topics and frames begin with the name of the run.

    /tf          foxglove.FrameTransforms: each link in `world`
    /robot       foxglove.SceneUpdate: the robot as in the page, once; sticks to moving points in each frame
    /forces      foxglove.SceneUpdate: arrows, as long as in the page
    /q, /v, …    numbers by coordinate, with the names of the columns of the trajectory
    /events      foxglove.Log
    """
    check_mcap(output, force=force)
    from mcap.writer import Writer
    visuals, target, count = visuals or Visuals(), Path(output), 0
    first = min(float(run.t[0]) for run in runs)
    with translate_os_errors(target), scratch_folder(target.absolute().parent) as part:
        with (part / "mcap").open("wb") as file:
            writer, channels = Writer(file), {}
            writer.start(profile="", library="liedyn")
            streams = [stream for run in runs
                       for stream in _streams(run, visuals, f"{run.name}/" if len(runs) > 1 else "", min(0.0, first))]
            for t, topic, schema, message in heapq.merge(*streams, key=lambda entry: entry[0]):
                if topic not in channels:
                    number = writer.register_schema(schema["title"], "jsonschema", json.dumps(schema).encode())
                    channels[topic] = writer.register_channel(topic, "json", number)
                text = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
                writer.add_message(channels[topic], log_time=t, publish_time=t, data=text)
                count += 1
            writer.finish()                         # type: ignore[no-untyped-call]
        (part / "mcap").replace(target)
    return count


def _streams(run: ReplayRun, visuals: Visuals, prefix: str, zero: float) -> list[Stream]:
    """Return all streams of a run. zero: the time that is written as 0 ns."""
    rows = frames_of(run.t)
    model, t = run.model, np.rint((run.t[rows] - zero) * 1e9).astype(np.int64).tolist()
    T = link_poses(model, run.q[rows])
    scene = body_scene(model, T, visuals.of(model), robot=visuals.robot_of(model))
    first, _ = bodies_of(model)
    frames = {-1: WORLD} | {body: prefix + model.link_names[k] for body, k in enumerate(first)}
    bodies = {-1: np.broadcast_to(np.eye(4), T[:, 0].shape)} | {body: T[:, k] for body, k in enumerate(first)}
    fixed, moving = rods(scene, bodies)
    meshes = [mesh_triangles(parts) for parts in visuals.meshes]
    robot = _scene(robot_entities(scene, frames, fixed, meshes, stamp(t[0]), prefix))
    return [iter([(t[0], f"/{prefix}robot", SCENE, robot)]), _transforms(model.link_names, prefix, t, T),
            _moving(moving, bodies, scene["radius"], t, prefix), _forces(run, rows, T, scene["size"], scene["radius"], t, prefix),
            *_columns(run, rows, t, prefix), _events(run, zero, prefix)]


def stamp(ns: int) -> dict[str, Any]:
    """Return a time in nanoseconds as seconds and the rest."""
    return {"sec": ns // 10**9, "nsec": ns % 10**9}


def _scene(entities: list[dict[str, Any]]) -> dict[str, Any]:
    return {"deletions": [], "entities": entities}


def _transforms(links: Iterable[str], prefix: str, t: list[int], T: np.ndarray) -> Stream:
    turns, positions = np.round(continuous_quaternions(T[..., :3, :3]), 7).tolist(), np.round(T[..., :3, 3], 7).tolist()
    for ns, turn, position in zip(t, turns, positions, strict=True):
        yield ns, f"/{prefix}tf", TRANSFORMS, {"transforms": [
            {"timestamp": stamp(ns), "parent_frame_id": WORLD, "child_frame_id": prefix + link,
             "translation": dict(zip("xyz", p, strict=True)), "rotation": dict(zip("xyzw", q, strict=True))}
            for link, q, p in zip(links, turn, position, strict=True)]}


def _moving(moving: list[Stick], bodies: Mapping[int, np.ndarray], radius: float, t: list[int], prefix: str) -> Stream:
    """Yield sticks between two moving bodies, as lines."""
    for i, ns in enumerate(t if moving else ()):
        points = [(bodies[body][i] @ [*xyz, 1.0])[:3] for ends in moving for body, xyz in ends]
        line = {"type": _LINE_LIST, "pose": pose(np.eye(4)), "thickness": 2 * radius, "scale_invariant": False, "colors": [],
                "points": [dict(zip("xyz", p.round(7).tolist(), strict=True)) for p in points], "indices": [],
                "color": PAINT["stick"]}
        yield ns, f"/{prefix}robot", SCENE, _scene([entity(WORLD, f"{prefix}rods", stamp(ns), locked=False, lines=[line])])


def _forces(run: ReplayRun, rows: np.ndarray, T: np.ndarray, size: float, radius: float, t: list[int], prefix: str) -> Stream:
    """Yield arrows. Their scale makes 90% of them shorter than 0.3 sizes of the robot, and none longer than 0.6."""
    names, arrows = arrows_of(run, rows, T, size)
    if not names:
        return
    arrows = arrows.reshape(len(rows), -1, 6)
    lengths = np.linalg.norm(arrows[..., 3:], axis=2)
    moments = np.array([arrow_name["kind"] == "moment" for arrow_name in names])
    fraction = lengths / np.where(moments, _usual(lengths[:, moments]), _usual(lengths[:, ~moments]))
    for i, ns in enumerate(t):
        drawn = [arrow(arrows[i, k], 0.3 * size * min(2.0, float(fraction[i, k])), radius, arrow_name["kind"])
                 for k, arrow_name in enumerate(names) if fraction[i, k] > 1e-3]
        yield ns, f"/{prefix}forces", SCENE, _scene([entity(WORLD, f"{prefix}forces", stamp(ns), locked=False, arrows=drawn)])


def _usual(lengths: np.ndarray) -> float:
    nonzero = np.sort(lengths[lengths > 0])
    return float(nonzero[int(0.9 * len(nonzero))]) if len(nonzero) else 1.0


def _columns(run: ReplayRun, rows: np.ndarray, t: list[int], prefix: str) -> list[Stream]:
    """Return a stream per topic; the topic is the part of the column names before the first point."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, x in run.columns.items():
        topic, _, rest = name.partition(".")
        groups.setdefault(topic, {})[rest or topic] = np.asarray(x)[rows]
    return [_rows(f"/{prefix}{topic}", columns, t) for topic, columns in groups.items()]


def _rows(topic: str, columns: dict[str, np.ndarray], t: list[int]) -> Stream:
    schema = _record("liedyn.Columns", **dict.fromkeys(columns, _NUMBER))
    for ns, row in zip(t, np.column_stack([*columns.values()]).tolist(), strict=True):
        yield ns, topic, schema, {name: x for name, x in zip(columns, row, strict=True) if x == x}         # not NaN


def _events(run: ReplayRun, zero: float, prefix: str) -> Stream:
    for time, event, phase in run.marks:
        ns = round((time - zero) * 1e9)
        yield ns, f"/{prefix}events", LOG, {"timestamp": stamp(ns), "level": _INFO, "name": run.name, "file": "", "line": 0,
                                            "message": event + (f", then {phase}" if phase else "")}
