"""Keyframes of a robot as coordinates of its model."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ModelError, nearest
from liedyn.immutable import read_only
from liedyn.model.description import ONE_DOF, JointValues, Keyframe
from liedyn.model.element_values import UNIT_QUATERNION, check_finite, element_location
from liedyn.model.link_tree import check_names

if TYPE_CHECKING:
    from liedyn.model.model import Model
    from liedyn.model.model_joint import ModelJoint


class JointState(NamedTuple):
    """Positions q (nq,) and velocities v (nv,) of the joints, in the order of the model; read-only."""

    q: Array
    v: Array


def keyframe_states(model: Model, base_joint: str) -> dict[str, JointState]:
    """Return the state of each keyframe by name. Values of `base_joint`, that of a floating base, do not apply to a fixed base.

    Raises ModelError for names of joints that do not exist or do not move, wrong numbers of values, and quaternions that are not
    of unit norm.
    """
    keyframes = model.description.keyframes
    check_names(keyframes, "keyframe")
    joints = {joint.name: joint for joint in model.joints}
    return {keyframe.name: _state(keyframe, model, joints, base_joint if model.base == "fixed" else "") for keyframe in keyframes}


def _state(keyframe: Keyframe, model: Model, joints: Mapping[str, ModelJoint], ignored: str) -> JointState:
    state = JointState(model.neutral(), np.zeros(model.nv))
    for key, x, values in ("q", state.q, keyframe.q), ("v", state.v, keyframe.v):
        _write(x, key, values, keyframe, joints, ignored)
    return JointState(*map(read_only, state))


def _write(x: Array, key: str, values: JointValues, keyframe: Keyframe, joints: Mapping[str, ModelJoint], ignored: str) -> None:
    """Write the values of q or v by joint."""
    place = element_location(keyframe, key)
    for name, coordinates in values:
        if name == ignored and name not in joints:
            continue
        if name not in joints:
            raise ModelError("unknown joint", place=place, found=name, expected="the name of a moving joint",
                             hint=nearest(name, joints))
        part = x[getattr(joints[name], key)]
        check_finite(coordinates, len(part), place, f"{key} of joint {name}")
        part[:] = coordinates
        if key == "q" and joints[name].kind != ONE_DOF:
            quaternion = part[-4:]
            norm = math.hypot(*quaternion)
            if abs(norm - 1.0) > UNIT_QUATERNION:
                raise ModelError(f"the quaternion of joint {name} has norm {norm:.7g}", place=place, found=list(coordinates),
                                 expected="a unit quaternion x, y, z, w")
            quaternion /= norm
