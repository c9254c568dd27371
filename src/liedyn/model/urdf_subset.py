"""The same robot with what a URDF has: other joints, links and names of coordinates where that is exact, and a list of what is
lost."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from liedyn.errors import shown
from liedyn.model.build import base_joint_name, joint_screws
from liedyn.model.description import (
    STANDARD_GRAVITY,
    WORLD,
    Coordinate,
    Coupling,
    Joint,
    Link,
    Mimic,
    Pose,
    Robot,
)
from liedyn.model.link_tree import tree_of
from liedyn.model.numbers import with_unit_axes

_UNIT = 1e-12                        # a screw of this length or pitch besides 1 and 0 is one of rounding
_DIRECT = ("fixed", "revolute", "continuous", "prismatic", "free")


@dataclass(frozen=True, slots=True)
class Loss:
    """What a file format cannot say of an element. dynamics: whether the robot moves otherwise without it."""

    element: str
    message: str
    dynamics: bool = True

    def __str__(self) -> str:
        return f"{shown(self.element)}: {self.message}"


@dataclass(slots=True)
class Subset:
    """robot: what remains; rewritten: what was put otherwise and means the same; losses: what the format cannot say."""

    robot: Robot
    rewritten: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)


def as_urdf(robot: Robot) -> Subset:
    """The part of a valid robot that a URDF can say, and its loops and couplings, which stand in a file beside it.

    Exact, so that forces and accelerations stay the same and all coordinates keep their names and order: a floating base becomes
    a floating joint of a link `world`, the ground a link `world`; universal, cylindrical and Euler joints, planar joints with
    limits, and joints of screws without pitch become revolute and prismatic joints with massless links between (which stand
    behind the other links).

    Lost: gravity that is not standard, springs, armatures, actuators; ball joints become three revolute ones; helical joints
    become a revolute and a prismatic one that mimics it; screws are scaled to unit length.
    """
    out = Subset(robot)
    if robot.gravity != STANDARD_GRAVITY:
        given = ", ".join(f"{x:g}" for x in robot.gravity)
        out.losses.append(Loss("gravity", f"[{given}] becomes the default, [0, 0, -9.81]"))
        out.robot = replace(out.robot, gravity=STANDARD_GRAVITY)
    for actuator in robot.actuators:
        out.losses.append(Loss(actuator.name, "the actuator is left out", dynamics=False))
    out.robot = replace(out.robot, actuators=())
    _ground(out)
    _split_joints(out)
    return out


def _ground(out: Subset) -> None:
    """The ground as a link, where a joint is attached to it."""
    robot = out.robot
    tree = tree_of(robot)
    if robot.base == "floating":
        name, ground = base_joint_name(robot), _free_name(WORLD, {link.name for link in robot.links})
        joint = Joint(name, "free", ground, tree.root)
        out.robot = replace(robot, base="fixed", links=(*robot.links, Link(ground)), joints=(joint, *robot.joints))
        out.rewritten.append(f'the floating base is the floating joint "{name}" of a link "{ground}"')
    elif tree.root == WORLD and WORLD not in tree.links:
        out.robot = replace(robot, links=(*robot.links, Link(WORLD)))
        out.rewritten.append(f'the ground is a link "{WORLD}"')


def _split_joints(out: Subset) -> None:
    joints, links = [], list(out.robot.links)
    taken = {link.name for link in links} | {joint.name for joint in out.robot.joints}
    for joint in out.robot.joints:
        joint = _without_springs(joint, out)
        if joint.type in _DIRECT or (joint.type == "planar" and joint.figures == _plain_figures(joint)):
            joints.append(_with_one_damping(joint, out))
            continue
        between, lost = [], len(out.losses)
        for part in _parts(joint, out):
            parent = between[-1] if between else joint.parent
            if part.type == "fixed":
                part = replace(part, name=_free_name(part.name, taken))
            child = _free_name(part.name, taken)
            taken.add(child)
            between.append(child)
            joints.append(replace(part, parent=parent, child=child))
        joints[-1] = replace(joints[-1], child=joint.child)
        links += [Link(name) for name in between[:-1]]
        if len(between) > 1 and len(out.losses) == lost:
            made = ", ".join(part.type for part in joints[-len(between):])
            out.rewritten.append(f'the {joint.type} joint "{shown(joint.name)}" is {len(between)} joints ({made}) with massless '
                                 "links between")
    labels = {joint.name: joint.labels for joint in out.robot.joints}
    couplings = tuple(_of_parts(coupling, labels) for coupling in out.robot.couplings)
    out.robot = replace(out.robot, joints=tuple(joints), links=tuple(links), couplings=couplings)


def _parts(joint: Joint, out: Subset) -> Iterator[Joint]:
    """A joint for each screw, named as its coordinate is in files; their ends are still those of the whole."""
    if joint.type == "ball":
        out.losses.append(Loss(joint.name, "the ball joint becomes three revolute joints about x, y and z: other coordinates, "
                                           "and singular where the second is a right angle"))
        labels, screws = ("x", "y", "z"), np.eye(6)[:3]
    else:
        labels, screws = joint.labels, joint_screws(with_unit_axes(joint))
    origin = joint.origin
    for label, screw, figures in zip(labels, screws, joint.figures, strict=True):
        name = f"{joint.name}.{label}" if label else joint.name
        w, v = screw[:3], screw[3:]
        size = float(np.linalg.norm(w) if w.any() else np.linalg.norm(v))
        if abs(size - 1.0) > _UNIT:
            out.losses.append(Loss(name, f"the screw has length {size:.6g} and is scaled to 1, and its coordinate with it"))
        w, v = w / size, v / size
        part = replace(joint, name=name, sequence="", screws=(), coordinates=(figures,), pitch=0.0, origin=origin)
        if not w.any():
            yield replace(part, type="prismatic", axes=(_floats(v),))
            origin = Pose()
            continue
        at, pitch = np.cross(w, v), float(w @ v)
        bounded = np.isfinite(figures.lower) or np.isfinite(figures.upper)
        yield replace(part, type="revolute" if bounded else "continuous", axes=(_floats(w),), origin=_moved(origin, at))
        if abs(pitch) > _UNIT * max(1.0, float(np.linalg.norm(v))):
            out.losses.append(Loss(name, "the helical motion becomes a revolute joint and a prismatic one that mimics it: one "
                                         "coordinate more, bound by a coupling"))
            yield Joint(f"{name}.slide", "prismatic", joint.parent, joint.child, Pose(), (_floats(w),),
                        coordinates=(Coordinate(),), mimic=Mimic(name, pitch))
        origin = Pose(translation=_floats(-at))
    if any(origin.translation) and joint.type == "screws":            # back from the last axis to the frame of the child
        yield Joint(f"{joint.name}.frame", "fixed", joint.parent, joint.child, origin)


def _moved(origin: Pose, by: np.ndarray) -> Pose:
    p = np.add(origin.translation, np.reshape(origin.rotation, (3, 3)) @ by)
    return replace(origin, translation=_floats(p))


def _without_springs(joint: Joint, out: Subset) -> Joint:
    kept = []
    for label, figures in zip(joint.labels, joint.figures, strict=True):
        name = f"{joint.name}.{label}" if label else joint.name
        if figures.stiffness:
            out.losses.append(Loss(name, f"the spring of stiffness {figures.stiffness:g} is left out"))
        if figures.armature:
            out.losses.append(Loss(name, f"the armature {figures.armature:g} is left out"))
        kept.append(replace(figures, stiffness=0.0, rest=0.0, armature=0.0))
    return replace(joint, coordinates=tuple(kept))


def _plain_figures(joint: Joint) -> tuple[Coordinate, ...]:
    """What a floating or planar joint of a URDF may have: one damping and one friction, no limits."""
    first = joint.figures[0]
    return (Coordinate(damping=first.damping, friction=first.friction),) * len(joint.labels)


def _with_one_damping(joint: Joint, out: Subset) -> Joint:
    if joint.type != "free" or joint.figures == (plain := _plain_figures(joint)):
        return joint
    damped = [(c.damping, c.friction) for c in joint.figures]
    if len(set(damped)) > 1:
        out.losses.append(Loss(joint.name, "damping and friction, which differ between its coordinates, are left out"))
        plain = (Coordinate(),) * 6
    if any(replace(c, damping=0.0, friction=0.0) != Coordinate() for c in joint.figures):
        out.losses.append(Loss(joint.name, "the limits of a free joint are left out", dynamics=False))
    return replace(joint, coordinates=plain)


def _of_parts(coupling: Coupling, labels: dict[str, tuple[str, ...]]) -> Coupling:
    """With the names of the joints that stand for the coordinates."""
    def named(joint: str, label: str) -> str:
        return f"{joint}.{label}" if label and joint in labels else joint
    return replace(coupling, terms=tuple((named(joint, label), "", factor) for joint, label, factor in coupling.terms))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _floats(values) -> tuple[float, ...]:
    return tuple(float(x) for x in values)
