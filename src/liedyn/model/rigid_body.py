"""Mass, centre and inertia of links that are welded together."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.model.description import Link, Pose
from liedyn.model.link_tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A rigid body: `com` (3,) in the frame of its first link, `inertia` (3, 3) about the com along that link's axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


def inertia_matrix(link: Link) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = link.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def principal_inertias(inertia: np.ndarray) -> np.ndarray:
    """Eigenvalues, ascending."""
    return np.linalg.eigvalsh(inertia)


def merged(tree: Tree, first: str, links: list[Link]) -> Body:
    """The body of `links`, which fixed joints join to the link `first` (parents before children)."""
    frames = {first: (np.eye(3), np.zeros(3))}
    parts = []
    for link in links:
        if link.name != first:
            joint = tree.joint_of[link.name]
            R, p = frames[joint.parent]
            R_joint, p_joint = _matrices(joint.origin)
            frames[link.name] = R @ R_joint, p + R @ p_joint
        R, p = frames[link.name]
        parts.append((link.mass, p + R @ np.array(link.com), R @ inertia_matrix(link) @ R.T))
    mass = sum(m for m, _, _ in parts)
    com = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass if mass > 0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, I in parts:                              # about the com at once: nothing cancels
        d = c - com
        inertia += I + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Body(mass, com, inertia)


def _matrices(pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    return np.array(pose.rotation).reshape(3, 3), np.array(pose.translation)
