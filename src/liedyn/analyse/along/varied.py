"""A robot with one of its parameters changed, built anew: what derivatives by parameters are checked against."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from liedyn.model.build import Assembly
from liedyn.model.description import WORLD, Joint, Link, Pose, Robot
from liedyn.model.model import Model
from liedyn.model.spatial import exp_screw, pose

_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_PARTS = {"mass": ("",), "com": ("x", "y", "z"), "inertia": ("xx", "xy", "xz", "yy", "yz", "zz")}      # of a link


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
    if head == "gravity":
        return replace(robot, gravity=_plus(robot.gravity, "xyz".index(rest), change))
    if head in _PARTS:
        return replace(robot, links=tuple(_changed_link(link, head, rest, change) for link in robot.links))
    moved = head in ("origin", "screw", "pitch")
    return replace(robot, joints=tuple(_moved(model, joint, head, rest, change) if moved else
                                       _coordinate(joint, head, rest, change) for joint in robot.joints))


def value(model: Model, name: str) -> float:
    """The parameter itself; zero for placements and screws, which change against what they are."""
    head, _, rest = name.partition(".")
    if head == "gravity":
        return float(model.gravity["xyz".index(rest)])
    if head in _PARTS:
        found = {_part(link, head, rest): link for link in model.description.links}
        return next(link.mass if head == "mass" else getattr(link, head)[k] for k, link in found.items() if k is not None)
    for joint in model.description.joints:
        if head == "pitch" and joint.name == rest:
            return joint.pitch
        for label, figures in zip(joint.labels, joint.figures, strict=True):
            if rest == _dotted(joint.name, label) and hasattr(figures, head):
                return getattr(figures, head)
    return 0.0


def _with_root_joint(model: Model) -> Robot:
    """The description, with the free joint of a floating base as a joint of its own."""
    robot, known = model.description, {joint.name for joint in model.description.joints}
    added = tuple(Joint(joint.name, "free", WORLD, joint.child) for joint in model.joints if joint.name not in known)
    return replace(robot, joints=(*added, *robot.joints), base="fixed") if added else robot


def _part(link: Link, head: str, rest: str) -> int | None:
    """Which number of the field `head` of a link it is, if any."""
    names = [_dotted(link.name, part) for part in _PARTS[head]]
    return names.index(rest) if rest in names else None


def _changed_link(link: Link, head: str, rest: str, change: float) -> Link:
    k = _part(link, head, rest)
    if k is None:
        return link
    return replace(link, **{head: link.mass + change if head == "mass" else _plus(getattr(link, head), k, change)})


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
        if rest == _dotted(joint.name, label):
            parameters[k] = replace(parameters[k], **{head: getattr(parameters[k], head) + change})
            return replace(joint, coordinates=tuple(parameters))
    return joint


def _dotted(name: str, label: str) -> str:
    return f"{name}.{label}" if label else name


def _plus(x: tuple, k: int, change: float) -> tuple:
    return (*x[:k], x[k] + change, *x[k + 1:])
