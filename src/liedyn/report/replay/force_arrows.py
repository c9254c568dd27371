"""Wrenches of a run as arrows in the world: forces at points on their lines of action, moments, reactions of loops."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from liedyn.model.description import WORLD
from liedyn.report.replay.sources import Shown
from liedyn.simulation.names import matching
from liedyn.simulation.records.motion_columns import WRENCH

_NO_FORCE = 1e-12       # of the largest force of a run: a weaker one has no axis
_SMALL = 1e-3           # moments that are left over, in forces times sizes of the robot, are not drawn


def arrows_of(run: Shown, keep: np.ndarray, T: np.ndarray, size: float) -> tuple[list[dict], np.ndarray]:
    """Names, links and kinds (force, contact, moment, reaction) of n arrows, and (F, 6 n) of their feet [m] and vectors
    [N | N m], in the world.

    A wrench is drawn as its force on its central axis, where it leaves the least moment, and that moment. Where the axis is far
    from the robot, the force is weak beside the moment: it is drawn at the link's origin.
    T: (F, n_links, 4, 4) poses of the links at the rows `keep`.
    """
    names, arrays = [], []

    def add(name: str, link: str, kind: str, foot: np.ndarray, vector: np.ndarray) -> None:
        names.append({"name": name, "link": link, "kind": kind})
        arrays.append(np.concatenate([foot, vector], axis=1))

    for link in run.model.link_names:
        wrench = _wrench(run.columns, f"fext.{link}", keep)
        if wrench is None or not wrench.any():
            continue
        R, at = T[:, run.model.link_index(link), :3, :3], T[:, run.model.link_index(link), :3, 3]
        m, f = wrench[:, :3], wrench[:, 3:]
        foot, left = _reduced(m, f, _touching(run, link), size)
        if f.any():
            kind = "contact" if f"contact.{link}.force" in run.columns else "force"
            add(link, link, kind, at + _turned(R, foot), _turned(R, f))
        if np.abs(left).max() > _SMALL * size * np.abs(f).max():
            add(link, link, "moment", at, _turned(R, left))
    for loop in run.model.description.loops:
        wrench = _wrench(run.columns, f"reaction.{loop.name}", keep)
        if wrench is not None and wrench[:, 3:].any():
            pose = np.eye(4) if loop.b == WORLD else T[:, run.model.link_index(loop.b)]
            foot = pose[..., :3, :3] @ np.array(loop.pose_b.translation) + pose[..., :3, 3]
            add(loop.name, "" if loop.b == WORLD else loop.b, "reaction", np.broadcast_to(foot, (len(keep), 3)), wrench[:, 3:])
    return names, np.concatenate(arrays, axis=1) if arrays else np.zeros((len(keep), 0))


def _reduced(m: np.ndarray, f: np.ndarray, near: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """(F, 3) points on the central axes of wrenches, in the link, each nearest to that of the points `near` (n, 3) which the axis
    passes closest, and the moments about them."""
    square = np.maximum(np.einsum("fi,fi->f", f, f), 1e-300)[:, None]
    axis = np.cross(f, m) / square
    away = near[None] - axis[:, None]                       # (F, n, 3)
    along = np.einsum("fni,fi->fn", away, f) / square
    distance = np.linalg.norm(away - along[..., None] * f[:, None], axis=2)
    foot = axis + np.take_along_axis(along, distance.argmin(axis=1)[:, None], axis=1) * f
    foot[(np.linalg.norm(foot, axis=1) > size) | (square[:, 0] < _NO_FORCE**2 * float(square.max()))] = 0.0
    return foot, m - np.cross(foot, f)


def _touching(run: Shown, link: str) -> np.ndarray:
    """(n, 3) middles of what touches of a link, and of those welded to it, in the link: arrows of contacts begin near them. Its
    origin where nothing does."""
    model, k, found = run.model, run.model.link_index(link), []
    for pattern, shapes in (run.contacts.get("links") or {}).items():
        for other in matching(pattern, model.link_names):
            j = model.link_index(other)
            if model.link_body[j] == model.link_body[k]:
                pose = np.linalg.solve(model.link_pose[k], model.link_pose[j])
                found += [(pose @ [*shape.get("at", shape.get("point", (0.0, 0.0, 0.0))), 1.0])[:3]
                          for shape in (shapes if isinstance(shapes, list) else [shapes])]
    return np.array(found or [np.zeros(3)], dtype=float)


def _wrench(columns: Mapping[str, np.ndarray], name: str, keep: np.ndarray) -> np.ndarray | None:
    """(F, 6) of the columns of a wrench; parts that the file does not have are zero. None where it has none."""
    parts = [columns.get(f"{name}.{part}") for part in WRENCH]
    if all(x is None for x in parts):
        return None
    return np.column_stack([np.zeros(len(keep)) if x is None else np.asarray(x)[keep] for x in parts])


def _turned(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("fij,fj->fi", R, x)
