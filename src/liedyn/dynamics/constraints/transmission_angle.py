"""Transmission angle of a driven link that a coupler moves in a plane.

The coupler is a link with two pins and nothing else, so that it transmits force along the line between them (H. Alt, 1932; the
angle of a four-bar linkage between coupler and rocker). A right angle is best; at 0 and 180 degrees no force turns the driven
link.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.kinematics import link_poses
from liedyn.errors import ModelError
from liedyn.model.description import WORLD, Loop
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import pose

_PARALLEL = 1e-6                     # sine of the angle between axes that count as parallel, as typed with six digits
_PIN_JOINTS, _PIN_LOOPS = ("revolute", "continuous"), ("revolute", "ball")


@dataclass(frozen=True)
class _Connection:
    """A joint or loop between two bodies. end: the joint, or the loop, on whose second link the pin is."""

    name: str
    bodies: tuple[int, int]
    end: ModelJoint | Loop

    @property
    def is_pin(self) -> bool:
        return self.end.type in (_PIN_JOINTS if isinstance(self.end, ModelJoint) else _PIN_LOOPS)

    def other(self, body: int) -> int:
        return self.bodies[1] if body == self.bodies[0] else self.bodies[0]


def transmission_angles(model: Model, q: Array, coordinate: int, driver: int) -> Array:
    """Return the transmission angle (k,) [rad] of the link that velocity coordinate `coordinate` moves, at q (k, nq).

    Of a link that turns, it is the angle at the pin between the directions to the coupler's other pin and to the axis of the
    link; of a link that slides, the acute angle between the coupler and the normal of the way. driver: velocity coordinate.

    Raises ModelError where it is not defined.
    """
    joint = next(joint for joint in model.joints if joint.v.start <= coordinate < joint.v.stop)
    if joint.type not in (*_PIN_JOINTS, "prismatic"):
        raise _undefined(joint.name, f"it is {joint.type}, neither revolute nor prismatic")
    pin, other_pin = _coupler(model, joint, driver)
    poses = link_poses(model, q)
    (p, axis), (p_other, other_axis) = _pin(model, poses, pin.end), _pin(model, poses, other_pin.end)
    axes = [x for x in (axis, other_axis) if x is not None]
    w, origin = _axis(model, poses, joint)
    if joint.type == "prismatic":
        if not axes:
            raise _undefined(joint.name, "its coupler has no axis")
        planar, normal = all(_is_across(x, w) for x in axes), np.cross(axes[0], w)
    else:
        planar, normal = all(_is_along(x, w) for x in axes), origin - p
        axes = [w, *axes]
    if not planar or not all(_is_along(x, axes[0]) for x in axes):
        raise _undefined(joint.name, "its coupler does not move in a plane")
    f, normal = (x - (x * axes[0]).sum(axis=-1, keepdims=True) * axes[0] for x in (p_other - p, normal))
    angles: Array = np.arctan2(np.linalg.norm(np.cross(f, normal), axis=-1), (f * normal).sum(axis=-1))
    return np.minimum(angles, np.pi - angles) if joint.type == "prismatic" else angles


def _undefined(name: str, reason: str) -> ModelError:
    return ModelError(f"{name} has no transmission angle: {reason}", expected="a link on a revolute or prismatic joint that one "
                      "coupler with two parallel pins moves")


def _coupler(model: Model, joint: ModelJoint, driver: int) -> tuple[_Connection, _Connection]:
    """Return the pins of the coupler that moves the child link of a joint: that on this link, and the other one."""
    connections = _connections(model)
    parent, link = (_body(model, name) for name in (joint.parent, joint.child))
    coupled = {name for coupling in model.description.couplings for name, *_ in coupling.terms}
    coupled |= {x.name for x in model.description.joints if x.mimic}
    coupled |= {x.name for x in model.joints if x.v.start <= driver < x.v.stop}
    pairs = []
    for pin in connections:
        body = pin.other(link) if link in pin.bodies else parent
        rest = [x for x in connections if body in x.bodies and x is not pin]
        if body not in (parent, link) and len(rest) == 1 and rest[0].other(body) not in (parent, link) and \
                all(x.is_pin and x.name not in coupled for x in (pin, rest[0])):
            pairs.append((pin, rest[0]))
    if len(pairs) != 1:
        raise _undefined(joint.name, "no coupler moves it" if not pairs else f"{len(pairs)} couplers move it")
    return pairs[0]


def _connections(model: Model) -> list[_Connection]:
    ends = [(x.name, (x.parent, x.child), x) for x in model.joints] + [(x.name, (x.a, x.b), x) for x in model.description.loops]
    return [_Connection(name, (_body(model, links[0]), _body(model, links[1])), end) for name, links, end in ends]


def _body(model: Model, link: str) -> int:
    return 0 if link == WORLD and link not in model.link_names else int(model.link_body[model.link_index(link)])


def _pin(model: Model, poses: Array, end: ModelJoint | Loop) -> tuple[Array, Array | None]:
    """Return point and axis (k, 3) of a pin in world coordinates; no axis for a ball."""
    if isinstance(end, ModelJoint):
        axis, point = _axis(model, poses, end)
        return point, axis
    T = pose(end.pose_b)
    T = T if end.b not in model.link_names else poses[:, model.link_index(end.b)] @ T
    T = np.broadcast_to(T, (len(poses), 4, 4))
    if end.type == "ball":
        return T[:, :3, 3], None
    axis = np.array(end.axes[0], dtype=float)
    return T[:, :3, 3], T[:, :3, :3] @ (axis / np.linalg.norm(axis))


def _axis(model: Model, poses: Array, joint: ModelJoint) -> tuple[Array, Array]:
    """Return unit axis and a point of it (k, 3) of a revolute or prismatic joint in world coordinates."""
    assert joint.screws is not None
    w, v = joint.screws[0][:3], joint.screws[0][3:]
    T = poses[:, model.link_index(joint.child)]
    axis = v / np.linalg.norm(v) if joint.type == "prismatic" else w / np.linalg.norm(w)
    point = np.zeros(3) if joint.type == "prismatic" else np.cross(w, v) / (w @ w)
    return T[:, :3, :3] @ axis, T[:, :3, :3] @ point + T[:, :3, 3]


def _is_along(x: Array, y: Array) -> bool:
    return bool(np.linalg.norm(np.cross(x, y), axis=-1).max() < _PARALLEL)


def _is_across(x: Array, y: Array) -> bool:
    return bool(np.abs((x * y).sum(axis=-1)).max() < _PARALLEL)
