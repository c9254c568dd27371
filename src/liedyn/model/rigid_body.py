"""Mass, centre and inertia of links that are welded together."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.model.description import Link
from liedyn.model.link_tree import Tree
from liedyn.model.spatial import full, pose


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A rigid body: `com` (3,) in the frame of its first link, `inertia` (3, 3) about the com along that link's axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


def principal_inertias(inertia: np.ndarray) -> np.ndarray:
    """Eigenvalues, ascending."""
    return np.linalg.eigvalsh(inertia)


def merged(tree: Tree, first: str, links: list[Link]) -> Body:
    """The body of `links`, which fixed joints join to the link `first` (parents before children)."""
    frames = {first: np.eye(4)}
    parts = []
    for link in links:
        if link.name != first:
            joint = tree.joint_of[link.name]
            frames[link.name] = frames[joint.parent] @ pose(joint.origin)
        R, p = frames[link.name][:3, :3], frames[link.name][:3, 3]
        parts.append((link.mass, p + R @ np.array(link.com), R @ full(link.inertia) @ R.T))
    return combined(parts)


def combined(parts: list[tuple[float, np.ndarray, np.ndarray]]) -> Body:
    """The body of parts given by mass, com and inertia about it (3, 3), all in one frame."""
    mass = sum(m for m, _, _ in parts)
    com = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass if mass > 0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, I in parts:                              # about the com at once: nothing cancels
        d = c - com
        inertia += I + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Body(mass, com, inertia)
