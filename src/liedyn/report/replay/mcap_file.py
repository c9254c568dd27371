"""Runs as an MCAP file for Foxglove: poses of links, the robot, forces, the columns of the trajectory, events."""
from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.orientations import quaternions_over_time
from liedyn.errors import UsageError
from liedyn.io.output import check_output, scratch_folder, told
from liedyn.model.description import WORLD
from liedyn.report.replay.body_scene import bodies_of, body_scene
from liedyn.report.replay.force_arrows import arrows_of
from liedyn.report.replay.foxglove_schemas import LOG, SCENE, TRANSFORMS, columns_schema
from liedyn.report.replay.foxglove_solids import PAINT, Stick, arrow, entity, mesh_triangles, pose, robot_entities, rods
from liedyn.report.replay.run_data import frames_of
from liedyn.report.replay.sources import Shown
from liedyn.report.replay.visuals import Visuals

_INFO, _LINE_LIST = 2, 2                # of log messages; of lines: each two points are a line
Stream = Iterator[tuple[int, str, dict, dict]]          # time [ns], topic, schema, message, in the order of time


def check_mcap(output: str, *, force: bool) -> None:
    """UsageError, before any work is done, where the file exists already, or the package that writes it is missing."""
    check_output(output, force=force)
    if find_spec("mcap") is None:
        raise UsageError("MCAP files are written by the package mcap: pip install 'liedyn[mcap]'")


def write_mcap(runs: Sequence[Shown], output: str, visuals: Visuals | None = None, *, force: bool = False) -> int:
    """Write runs as MCAP, with messages in JSON, and return their number. Of several, topics and frames begin with their names.

    /tf          foxglove.FrameTransforms: each link in `world`
    /robot       foxglove.SceneUpdate: what the page shows of the robot, once; sticks to moving points in each frame
    /forces      foxglove.SceneUpdate: arrows, as long as in the page
    /q, /v, …    numbers by coordinate, as the columns of the trajectory are called
    /events      foxglove.Log
    """
    check_mcap(output, force=force)
    from mcap.writer import Writer
    visuals, target, count = visuals or Visuals(), Path(output), 0
    first = min(float(run.t[0]) for run in runs)
    with told(target), scratch_folder(target.absolute().parent) as part:
        with (part / "mcap").open("wb") as file:
            writer, channels = Writer(file), {}
            writer.start(profile="", library="liedyn")
            streams = [stream for run in runs
                       for stream in _streams(run, visuals, f"{run.name}/" if len(runs) > 1 else "", min(0.0, first))]
            for t, topic, schema, message in heapq.merge(*streams, key=lambda one: one[0]):
                if topic not in channels:
                    number = writer.register_schema(schema["title"], "jsonschema", json.dumps(schema).encode())
                    channels[topic] = writer.register_channel(topic, "json", number)
                text = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
                writer.add_message(channels[topic], log_time=t, publish_time=t, data=text)
                count += 1
            writer.finish()
        os.replace(part / "mcap", target)
    return count


def _streams(run: Shown, visuals: Visuals, prefix: str, zero: float) -> list[Stream]:
    """All that a run has. zero: the time that 0 ns stands for."""
    keep = frames_of(run.t)
    model, t = run.model, np.rint((run.t[keep] - zero) * 1e9).astype(np.int64).tolist()
    T = link_poses(model, run.q[keep])
    scene = body_scene(model, T, visuals.of(model))
    first, _ = bodies_of(model)
    frames = {-1: WORLD} | {body: prefix + model.link_names[k] for body, k in enumerate(first)}
    bodies = {-1: np.broadcast_to(np.eye(4), T[:, 0].shape)} | {body: T[:, k] for body, k in enumerate(first)}
    fixed, moving = rods(scene, bodies)
    meshes = [mesh_triangles(parts) for parts in visuals.meshes]
    robot = _scene(robot_entities(scene, frames, fixed, meshes, stamp(t[0]), prefix))
    return [iter([(t[0], f"/{prefix}robot", SCENE, robot)]), _transforms(model.link_names, prefix, t, T),
            _moving(moving, bodies, scene["radius"], t, prefix), _forces(run, keep, T, scene["size"], scene["radius"], t, prefix),
            *_columns(run, keep, t, prefix), _events(run, zero, prefix)]


def stamp(ns: int) -> dict:
    return {"sec": ns // 10**9, "nsec": ns % 10**9}


def _scene(entities: list[dict]) -> dict:
    return {"deletions": [], "entities": entities}


def _transforms(links, prefix: str, t: list[int], T: np.ndarray) -> Stream:
    turns, positions = np.round(quaternions_over_time(T[..., :3, :3]), 7).tolist(), np.round(T[..., :3, 3], 7).tolist()
    for ns, turn, position in zip(t, turns, positions, strict=True):
        yield ns, f"/{prefix}tf", TRANSFORMS, {"transforms": [
            {"timestamp": stamp(ns), "parent_frame_id": WORLD, "child_frame_id": prefix + link,
             "translation": dict(zip("xyz", p, strict=True)), "rotation": dict(zip("xyzw", q, strict=True))}
            for link, q, p in zip(links, turn, position, strict=True)]}


def _moving(moving: list[Stick], bodies, radius: float, t: list[int], prefix: str) -> Stream:
    """Sticks whose ends move against each other, as lines."""
    for i, ns in enumerate(t if moving else ()):
        points = [(bodies[body][i] @ [*xyz, 1.0])[:3] for ends in moving for body, xyz in ends]
        line = {"type": _LINE_LIST, "pose": pose(np.eye(4)), "thickness": 2 * radius, "scale_invariant": False, "colors": [],
                "points": [dict(zip("xyz", p.round(7).tolist(), strict=True)) for p in points], "indices": [],
                "color": PAINT["stick"]}
        yield ns, f"/{prefix}robot", SCENE, _scene([entity(WORLD, f"{prefix}rods", stamp(ns), locked=False, lines=[line])])


def _forces(run: Shown, keep, T, size: float, radius: float, t: list[int], prefix: str) -> Stream:
    """Nine of ten are shorter than 0.3 sizes of the robot, none is longer than 0.6."""
    names, arrows = arrows_of(run, keep, T, size)
    if not names:
        return
    arrows = arrows.reshape(len(keep), -1, 6)
    lengths = np.linalg.norm(arrows[..., 3:], axis=2)
    moments = np.array([one["kind"] == "moment" for one in names])
    share = lengths / np.where(moments, _usual(lengths[:, moments]), _usual(lengths[:, ~moments]))
    for i, ns in enumerate(t):
        drawn = [arrow(arrows[i, k], 0.3 * size * min(2.0, float(share[i, k])), radius, one["kind"])
                 for k, one in enumerate(names) if share[i, k] > 1e-3]
        yield ns, f"/{prefix}forces", SCENE, _scene([entity(WORLD, f"{prefix}forces", stamp(ns), locked=False, arrows=drawn)])


def _usual(lengths: np.ndarray) -> float:
    there = np.sort(lengths[lengths > 0])
    return float(there[int(0.9 * len(there))]) if len(there) else 1.0


def _columns(run: Shown, keep, t: list[int], prefix: str) -> list[Stream]:
    """A topic for what stands before the first point of the columns' names."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, x in run.columns.items():
        topic, _, rest = name.partition(".")
        groups.setdefault(topic, {})[rest or topic] = np.asarray(x)[keep]
    return [_rows(f"/{prefix}{topic}", columns, t) for topic, columns in groups.items()]


def _rows(topic: str, columns: dict[str, np.ndarray], t: list[int]) -> Stream:
    schema = columns_schema([*columns])
    for ns, row in zip(t, np.column_stack([*columns.values()]).tolist(), strict=True):
        yield ns, topic, schema, {name: x for name, x in zip(columns, row, strict=True) if x == x}         # not NaN


def _events(run: Shown, zero: float, prefix: str) -> Stream:
    for time, event, phase in run.marks:
        ns = round((time - zero) * 1e9)
        yield ns, f"/{prefix}events", LOG, {"timestamp": stamp(ns), "level": _INFO, "name": run.name, "file": "", "line": 0,
                                            "message": event + (f", then {phase}" if phase else "")}
