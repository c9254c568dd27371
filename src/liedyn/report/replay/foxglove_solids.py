"""Solids of a scene as the primitives of Foxglove."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from liedyn.dynamics.orientations import quaternions_over_time
from liedyn.model.spatial import rotation_of_z
from liedyn.report.replay.packed import unpacked

Stick = tuple[tuple[int, list[float]], tuple[int, list[float]]]         # body and point of both ends


def _colour(r: float, g: float, b: float, a: float = 1.0) -> dict:
    return {"r": r, "g": g, "b": b, "a": a}


PAINT = {"link": _colour(0.36, 0.54, 0.74), "stick": _colour(0.70, 0.74, 0.79),
         "force": _colour(0.90, 0.36, 0.10), "contact": _colour(0.10, 0.55, 0.85), "reaction": _colour(0.10, 0.65, 0.45),
         "moment": _colour(0.72, 0.35, 0.68)}
_SOLIDS = ("arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")
_BARE = (0.72, 0.74, 0.77)
_ROUND = {"bottom_scale": 1.0, "top_scale": 1.0}
# of our solids of size 1: primitives, their lengths, further fields
_KINDS = {"box": ("cubes", (1, 1, 1), {}), "sphere": ("spheres", (2, 2, 2), {}), "bead": ("spheres", (2, 2, 2), {}),
          "cylinder": ("cylinders", (2, 2, 1), _ROUND), "drum": ("cylinders", (2, 2, 1), _ROUND)}


def entity(frame: str, name: str, now: dict, *, locked: bool, **solids: list[dict]) -> dict:
    return {"timestamp": now, "frame_id": frame, "id": name, "lifetime": {"sec": 0, "nsec": 0}, "frame_locked": locked,
            "metadata": [], **{kind: solids.get(kind, []) for kind in _SOLIDS}}


def pose(T: np.ndarray) -> dict:
    q = quaternions_over_time(T[None, None, :3, :3])[0, 0]
    return {"position": dict(zip("xyz", T[:3, 3].round(7).tolist(), strict=True)),
            "orientation": dict(zip("xyzw", q.round(7).tolist(), strict=True))}


def _matrix(twelve: Sequence[float]) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(twelve[:9], (3, 3)), twelve[9:]
    return T


def _along(a: np.ndarray, way: np.ndarray, axis: int) -> np.ndarray:
    """A pose at `a` whose axis of that number points along `way`."""
    T = np.eye(4)
    T[:3, :3] = np.roll(rotation_of_z(way / np.linalg.norm(way)), axis + 1, axis=1)
    T[:3, 3] = a
    return T


def arrow(foot_and_vector: np.ndarray, length: float, radius: float, kind: str) -> dict:
    head = min(6.3 * radius, 0.6 * length)
    return {"pose": pose(_along(foot_and_vector[:3], foot_and_vector[3:], 0)), "shaft_length": length - head, "head_length": head,
            "shaft_diameter": 1.8 * radius, "head_diameter": 4.7 * radius, "color": PAINT[kind]}


def rods(scene: dict, bodies: Mapping[int, np.ndarray]) -> tuple[list[tuple[int, np.ndarray, np.ndarray, float]], list[Stick]]:
    """Sticks that are fixed to a body, as (body, one end in it, the other, radius), and those whose ends move against each other.

    bodies: (F, 4, 4) poses over time.
    """
    fixed, moving = [], []
    rims = [(a, b, scene["radius"], 0) for rim in scene["rims"] for a, b in zip(rim, [*rim[1:], rim[0]], strict=True)]
    for a, b, radius, hidden in [*scene["edges"], *rims]:
        ends = [(scene["points"][k][0], scene["points"][k][1:]) for k in (a, b)]
        if hidden:
            continue
        for (body, p), (other, r) in (ends, ends[::-1]):
            seen = np.linalg.solve(bodies[body], bodies[other]) @ [*r, 1.0]
            if np.ptp(seen, axis=0).max() <= 1e-6 * scene["size"]:
                fixed.append((body, np.array(p), seen[0, :3], radius))
                break
        else:
            moving.append(tuple(ends))
    return fixed, moving


def mesh_triangles(parts: Sequence[dict]) -> list[tuple[np.ndarray, list[int], list[float] | None]]:
    """Points (n, 3), rows of the corners and the colour of each part of a packed mesh."""
    found = []
    for part in parts:
        behind = unpacked(part["corners"])[:, 0].astype(int)
        corners = np.cumsum(behind == 0) - (behind == 0) - behind
        found.append((unpacked(part["points"]) + part["low"], corners.tolist(), part["colour"]))
    return found


def robot_entities(scene: dict, frames: Mapping[int, str], sticks, meshes, now: dict, prefix: str) -> list[dict]:
    """An entity for each body that something is drawn on; frames: their names."""
    solids: dict[int, dict[str, list]] = {}

    def put(body: int, kind: str, solid: dict) -> None:
        solids.setdefault(body, {}).setdefault(kind, []).append(solid)

    def solid(body: int, kind: str, T: np.ndarray, sizes: Sequence[float], colour: dict) -> None:
        primitive, lengths, more = _KINDS[kind]
        size = dict(zip("xyz", np.multiply(sizes, lengths).tolist(), strict=True))
        put(body, primitive, {"pose": pose(T), "size": size, "color": colour} | more)

    ellipsoids = [one | {"kind": "sphere", "colour": None} for one in scene["ellipsoids"] if one["solid"]]
    for one in [*scene["solids"], *ellipsoids]:
        if not one["covered"]:
            solid(one["body"], one["kind"], _matrix(one["at"]), one["sizes"],
                  _colour(*one["colour"]) if one["colour"] else PAINT["link"])
    for body, a, b, radius in sticks:
        length = float(np.linalg.norm(b - a))
        if length > 1e-9:
            solid(body, "cylinder", _along((a + b) / 2, b - a, 2), (radius, radius, length), PAINT["stick"])
    for one in scene["visuals"]:
        for points, corners, colour in meshes[one["mesh"]]:
            scaled = (points * one["scale"]).round(6).tolist()
            put(one["body"], "triangles", {
                "pose": pose(_matrix(one["at"])), "color": _colour(*(colour or one["colour"] or _BARE)), "colors": [],
                "points": [dict(zip("xyz", p, strict=True)) for p in scaled], "indices": corners})
    return [entity(frames[body], f"{prefix}{frames[body]}", now, locked=True, **group) for body, group in solids.items()]
