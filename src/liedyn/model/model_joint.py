"""A moving joint of a model, its screws and its motion in the frame of the child link."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ModelError, summarized
from liedyn.immutable import Immutable
from liedyn.model.description import JOINT_TYPES, Joint
from liedyn.model.spatial import adjoint, bracket, exp_screw, inverse


@summarized
@dataclass(frozen=True, eq=False)
class ModelJoint(Immutable):
    """A moving joint of the model: one joint to the user, one or more bodies (screws) to the kernels.

    home     (4, 4) pose of the child link in the parent link at zero coordinates
    screws   (k, 6) rows [w; v] in the child's frame at zero coordinates: T(q) = home exp(S1 q1) … exp(Sk qk);
             None for ball and free joints
    """

    name: str
    type: str
    kind: int
    parent: str
    child: str
    q: slice
    v: slice
    home: Array
    screws: Array | None
    first_body: int
    body: int


def joint_screws(joint: Joint) -> Array:
    """Return the (k, 6) screws [w; v] of a joint in its frame: motion = exp(S1 q1) … exp(Sk qk)."""
    screws = JOINT_TYPES[joint.type].screws
    if screws is None:
        raise ModelError(f"joint type {joint.type!r} has no screws", place=joint.place)
    return np.array(screws(joint), dtype=float).reshape(-1, 6)


def joint_motion(joint: ModelJoint, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the pose (4, 4) of the child in the parent link, S and dS/dt (6, k) in the child's frame, of a joint with screws.

    S_j = Ad_{E^-1} S_j with E the product of the exponentials that follow, so dS_j = -ad_{E^-1 dE} S_j.
    """
    assert joint.screws is not None
    tail, twist = np.eye(4), np.zeros(6)
    S: list[Array] = []
    dS: list[Array] = []
    for screw, x, dx in zip(joint.screws[::-1], q[::-1], v[::-1], strict=True):
        column = adjoint(inverse(tail)) @ screw
        S.insert(0, column)
        dS.insert(0, -bracket(twist) @ column)
        twist = twist + column * dx
        tail = exp_screw(screw, x) @ tail
    return joint.home @ tail, np.array(S).T, np.array(dS).T
