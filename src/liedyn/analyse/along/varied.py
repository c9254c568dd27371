"""A robot with one of its parameters changed, built anew: what derivatives by parameters are checked against."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from liedyn.model.build import Assembly
from liedyn.model.description import WORLD, Joint, Pose, Robot
from liedyn.model.model import Model
from liedyn.model.spatial import exp_screw, pose

_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_UPPER = ("xx", "xy", "xz", "yy", "yz", "zz")


def varied(model: Model, name: str, change: float) -> Model:
    """The model with the parameter `name` (of `model_parameters`) larger by `change`. Not validated: a difference may lead
    from a massless link to a negative mass."""
    tree = Assembly(_changed(_with_root_joint(model), model, name, change))
    tree.grow()
    tree.floor = np.zeros(model.nv)
    return tree.model()


def with_parameters(model: Model, values: Mapping[str, float]) -> Robot:
    """The robot where these parameters have these values (those of `value`: placements and screws change against what they
    are); not validated."""
    described = {joint.name for joint in model.description.joints}
    roots = [joint.name for joint in model.joints if joint.name not in described]
    of_root = any(name.partition(".")[2].partition(".")[0] in roots for name in values)
    robot = _with_root_joint(model) if of_root else model.description
    for name, x in values.items():
        robot = _changed(robot, model, name, x - value(model, name))
    return robot


def _changed(robot: Robot, model: Model, name: str, change: float) -> Robot:
    head, _, rest = name.partition(".")
    if head in ("mass", "com", "inertia"):
        return _links(robot, head, rest, change)
    if head == "gravity":
        return replace(robot, gravity=_plus(robot.gravity, "xyz".index(rest), change))
    if head in ("origin", "screw", "pitch"):
        return _joints(robot, lambda joint: _moved(model, joint, head, rest, change))
    return _joints(robot, lambda joint: _coordinate(joint, head, rest, change))


def value(model: Model, name: str) -> float:
    """The parameter itself; zero for placements and screws, which change against what they are."""
    head, _, rest = name.partition(".")
    if head in ("mass", "com", "inertia"):
        for link in model.description.links:
            if rest == link.name:
                return link.mass
            if rest.rpartition(".")[0] == link.name:
                part = rest.rpartition(".")[2]
                return link.com["xyz".index(part)] if head == "com" else link.inertia[_UPPER.index(part)]
    if head == "gravity":
        return float(model.gravity["xyz".index(rest)])
    for joint in model.description.joints:
        for label, parameters in zip(joint.labels, joint.coordinates, strict=False):
            if head in ("armature", "damping", "friction", "stiffness", "rest") and rest == _dotted(joint, label):
                return getattr(parameters, head)
    return 0.0


def _with_root_joint(model: Model) -> Robot:
    """The description, with the free joint of a floating base as a joint of its own."""
    robot, known = model.description, {joint.name for joint in model.description.joints}
    added = tuple(Joint(joint.name, "free", WORLD, joint.child) for joint in model.joints if joint.name not in known)
    return replace(robot, joints=(*added, *robot.joints), base="fixed") if added else robot


def _links(robot: Robot, head: str, rest: str, change: float) -> Robot:
    owner, _, part = rest.rpartition(".")

    def changed(link):
        if head == "mass":
            return replace(link, mass=link.mass + change) if link.name == rest else link
        if link.name != owner:
            return link
        if head == "com":
            return replace(link, com=_plus(link.com, "xyz".index(part), change))
        return replace(link, inertia=_plus(link.inertia, _UPPER.index(part), change))
    return replace(robot, links=tuple(changed(link) for link in robot.links))


def _joints(robot: Robot, changed) -> Robot:
    return replace(robot, joints=tuple(changed(joint) for joint in robot.joints))


def _moved(model: Model, joint: Joint, head: str, rest: str, change: float) -> Joint:
    """Placement, screw or pitch: origin -> origin exp(twist); a screw of the joint as one of a list of screws."""
    if head == "pitch":
        return replace(joint, pitch=joint.pitch + change) if joint.name == rest else joint
    owner, _, part = rest.rpartition(".")
    if head == "origin":
        if joint.name != owner:
            return joint
        T = pose(joint.origin) @ exp_screw(np.eye(6)[_TWIST.index(part)], change)
        return replace(joint, origin=Pose(tuple(T[:3, :3].ravel()), tuple(T[:3, 3])))
    numbered, _, k = owner.rpartition(".")
    several = joint.name == numbered and k.isdigit()
    if joint.name != owner and not several:
        return joint
    screws = model.joint(joint.name).screws.copy()
    screws[int(k) - 1 if several else 0, _TWIST.index(part)] += change
    return replace(joint, type="screws", screws=tuple(map(tuple, screws)), axes=(), pitch=0.0, sequence="")


def _coordinate(joint: Joint, head: str, rest: str, change: float) -> Joint:
    parameters = list(joint.figures)
    for k, label in enumerate(joint.labels):
        if rest == _dotted(joint, label):
            parameters[k] = replace(parameters[k], **{head: getattr(parameters[k], head) + change})
            return replace(joint, coordinates=tuple(parameters))
    return joint


def _dotted(joint: Joint, label: str) -> str:
    return f"{joint.name}.{label}" if label else joint.name


def _plus(x: tuple, k: int, change: float) -> tuple:
    return (*x[:k], x[k] + change, *x[k + 1:])
