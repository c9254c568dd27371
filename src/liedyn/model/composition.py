"""Composition of robots: a copy of another robot, with a prefix to its names, at a link of a robot."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TypeVar

from liedyn.errors import LiedynWarning, ModelError, Place, nearest
from liedyn.model.description import (
    STANDARD_GRAVITY,
    WORLD,
    Actuator,
    Coupling,
    CurveJoint,
    Joint,
    JointValues,
    Keyframe,
    Loop,
    Robot,
    coordinate_name,
)
from liedyn.model.element_values import element_location
from liedyn.model.force_element import ForceElement
from liedyn.model.link_tree import build_link_tree
from liedyn.model.links import Link, Pose
from liedyn.model.model_builder import base_joint_name
from liedyn.model.spatial import pose
from liedyn.model.validate import mimic_couplings

_GROUND = "ground"             # the link that replaces the ground of an attached robot whose joints start there
_MOUNT = "mount"               # the joint that carries the attached robot
_Framed = TypeVar("_Framed", Loop, ForceElement)


def attach_robot(robot: Robot, other: Robot, mount: Joint | CurveJoint, prefix: str = "") -> Robot:
    """Return the robot with a copy of another one at a link.

    The joint `mount`, or joint along a curve, replaces the base joint of the other robot. Its parent is a link of the robot or
    the ground; its child is not used. Names of the other robot get the prefix. Joints that start at its ground start at a link
    "ground", or "ground2", … if that is taken. A robot with a floating base gets an explicit free joint if another one is
    attached to the ground.

    Raises ModelError, at the location of `mount`, for an unknown parent and for names that the robot already has, and for a
    robot `other` that is not a tree.
    """
    links, joints, couplings = ((), (mount,), ()) if isinstance(mount, Joint) else mount
    first, driver = joints[0], joints[0]
    if couplings:
        driver = next(joint for joint in joints if joint.name == couplings[0].terms[1][0])
    if first.parent == WORLD:
        robot, first = _attached_to_ground(robot, first)
    _check_parent(robot, first)
    copy = _Copy(other, first, joints[-1] if couplings else first, driver, prefix)
    part = copy.robot()
    actuated = _joints_with_motors(robot, replace(part, joints=(driver, *part.joints[1:])))
    if couplings:
        part = replace(part, links=(*links, *part.links), joints=(first, *joints[1:-1], *part.joints),
                       couplings=(*couplings, *part.couplings))
    return _joined(robot, part, actuated, first, prefix, _gravity_warning(robot, other, driver))


def _joined(robot: Robot, added: Robot, actuated: tuple[str, ...], mount: Joint, prefix: str,
            warnings: Iterable[LiedynWarning]) -> Robot:
    _check_distinct(robot, added, mount, prefix)
    return replace(robot, links=(*robot.links, *added.links), joints=(*robot.joints, *added.joints),
                   actuators=(*robot.actuators, *added.actuators), loops=(*robot.loops, *added.loops),
                   couplings=(*robot.couplings, *added.couplings), actuated=actuated,
                   keyframes=(*robot.keyframes, *added.keyframes), elements=(*robot.elements, *added.elements),
                   warnings=(*robot.warnings, *added.warnings, *warnings), visuals={**robot.visuals, **added.visuals})


def mount_name(other: Robot, prefix: str) -> str:
    """Return the name of the joint that carries an attached robot: the prefix and "mount", or "mount2", … if that is taken."""
    return prefix + _free_name(_MOUNT, (joint.name for joint in other.joints))


def _free_name(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    return next(each for k in count(1) if (each := name if k == 1 else f"{name}{k}") not in names)


def _attached_to_ground(robot: Robot, mount: Joint) -> tuple[Robot, Joint]:
    """Return the robot and the joint for an attachment to the ground.

    The root link of a fixed base is the ground. A floating base becomes a free joint, since a tree has one root.
    """
    names, children = {link.name for link in robot.links}, {joint.child for joint in robot.joints}
    loose = [link.name for link in robot.links if link.name not in children]
    if WORLD in names or len(loose) != 1 or any(joint.parent == WORLD for joint in robot.joints):
        return robot, mount
    if robot.base == "fixed":
        return robot, replace(mount, parent=loose[0])
    base = Joint(base_joint_name(robot), "free", WORLD, loose[0], place=mount.place)
    return replace(robot, base="fixed", joints=(base, *robot.joints)), mount


def _check_parent(robot: Robot, mount: Joint) -> None:
    names = {link.name for link in robot.links}
    if mount.parent not in names and mount.parent != WORLD:
        raise ModelError("the parent is not a link of this robot", place=element_location(mount, "parent"), found=mount.parent,
                         expected="a link's name or world", hint=nearest(mount.parent, names))


def _check_distinct(robot: Robot, added: Robot, mount: Joint, prefix: str) -> None:
    """Raise ModelError for a name that the robot already has, or that of the ground."""
    for noun, first, second in (("link", robot.links, added.links), ("joint", robot.joints, added.joints),
                                ("actuator", robot.actuators, added.actuators), ("element", robot.elements, added.elements),
                                ("constraint", _constraints(robot), _constraints(added)),
                                ("keyframe", robot.keyframes, added.keyframes)):
        taken = {element.name for element in first} | ({WORLD} if noun == "link" else set())
        for element in second:
            if element.name in taken:
                raise ModelError(f'the robot already has a {noun} "{element.name}"', place=element_location(mount),
                                 hint="give the attached robot another prefix" if prefix else "give the attached robot a prefix")


def _constraints(robot: Robot) -> tuple[Loop | Coupling, ...]:
    return *robot.loops, *robot.couplings, *mimic_couplings(robot)


def _gravity_warning(robot: Robot, other: Robot, mount: Joint) -> Iterable[LiedynWarning]:
    if other.gravity not in (robot.gravity, STANDARD_GRAVITY):
        place = element_location(mount)
        yield LiedynWarning("gravity-of-part", f"the gravity {list(other.gravity)} of {other.name} is ignored: that of the whole "
                            f"robot is {list(robot.gravity)}", place=Place(place.file, place.line, mount.name))


def _joints_with_motors(robot: Robot, added: Robot) -> tuple[str, ...]:
    """Return the joints with motors; empty if a part with constraints does not say which these are.

    A robot that lists joints of the attached one decides which of these have motors.
    """
    if not robot.actuated and not added.actuated:
        return ()
    names = {joint.name for joint in added.joints}
    if not names.isdisjoint(robot.actuated):
        return robot.actuated
    parts = _motors(robot), _motors(added)
    return (*parts[0], *parts[1]) if parts[0] is not None and parts[1] is not None else ()


def _motors(robot: Robot) -> tuple[str, ...] | None:
    if robot.actuated or not robot.joints:
        return robot.actuated
    moving = tuple(joint.name for joint in robot.joints if joint.type not in ("fixed", "free"))
    return None if _constraints(robot) else moving


@dataclass(frozen=True)
class _Copy:
    """A robot with new names, and with the joint `mount` before its root.

    first   joint with the parent and the origin; of a joint along a curve, `mount` is the last one
    driver  joint that a motor moves
    """

    other: Robot
    first: Joint
    mount: Joint
    driver: Joint
    prefix: str

    def robot(self) -> Robot:
        other = self.other
        links = tuple(replace(link, name=self.prefix + link.name) for link in other.links)
        if self.starts_at_ground:
            links = (Link(self.prefix + self._ground, place=self.mount.place), *links)
        return replace(
            other, links=links,
            joints=(replace(self.mount, child=self.prefix + self.root), *map(self.joint, other.joints)),
            actuators=tuple(map(self.actuator, other.actuators)),
            loops=tuple(map(self.framed, other.loops)), couplings=tuple(map(self.coupling, other.couplings)),
            actuated=self.actuated, keyframes=tuple(map(self.keyframe, other.keyframes)),
            elements=tuple(map(self.framed, other.elements)),
            visuals={self.prefix + link: visuals for link, visuals in other.visuals.items()})

    @cached_property
    def starts_at_ground(self) -> bool:
        """Whether joints of the other robot start at its ground; otherwise it has a root link."""
        return WORLD not in self._names and any(joint.parent == WORLD for joint in self.other.joints)

    @cached_property
    def _ground(self) -> str:
        return _free_name(_GROUND, self._names)

    @cached_property
    def root(self) -> str:
        root = build_link_tree(self.other).root
        return self._ground if self.starts_at_ground else root

    @cached_property
    def _names(self) -> set[str]:
        return {link.name for link in self.other.links}

    @property
    def actuated(self) -> tuple[str, ...]:
        names = tuple(self.prefix + name for name in self.other.actuated)
        moves = self.mount.type not in ("fixed", "free")
        return (self.driver.name, *names) if names and moves else names

    def joint(self, joint: Joint) -> Joint:
        parent = self._ground if joint.parent == WORLD and self.starts_at_ground else joint.parent
        mimic = joint.mimic and replace(joint.mimic, joint=self.prefix + joint.mimic.joint)
        return replace(joint, name=self.prefix + joint.name, parent=self.prefix + parent, child=self.prefix + joint.child,
                       mimic=mimic)

    def framed(self, element: _Framed) -> _Framed:
        """Return a loop or a force element."""
        (a, pose_a), (b, pose_b) = self._frame(element.a, element.pose_a), self._frame(element.b, element.pose_b)
        return replace(element, name=self.prefix + element.name, a=a, b=b, pose_a=pose_a, pose_b=pose_b)

    def _frame(self, link: str, at: Pose) -> tuple[str, Pose]:
        """Return a frame of the other robot. Its ground is the root link of a fixed base, and the mount of a floating one."""
        if link != WORLD or WORLD in self._names:
            return self.prefix + link, at
        if self.other.base == "fixed":
            return self.prefix + self.root, at
        origin = self.first.origin
        return self.first.parent, at if origin == Pose() else Pose.from_matrix(pose(origin) @ pose(at))

    def actuator(self, x: Actuator) -> Actuator:
        return replace(x, name=self.prefix + x.name, link=x.link and self.prefix + x.link,
                       joints=tuple((self.prefix + joint, factor) for joint, factor in x.joints))

    def coupling(self, coupling: Coupling) -> Coupling:
        terms = tuple((self.prefix + joint, label, factor) for joint, label, factor in coupling.terms)
        function = coupling.function
        if function is not None and function.text:
            driver, (new, label, _) = coordinate_name(*coupling.terms[1][:2]), terms[1]
            named = re.compile(rf"(?<![\w.]){re.escape(driver)}(?![\w.(])")
            function = replace(function, text=named.sub(lambda _: coordinate_name(new, label), function.text))
        return replace(coupling, name=self.prefix + coupling.name, terms=terms, function=function)

    def keyframe(self, keyframe: Keyframe) -> Keyframe:
        q, v = self._values(keyframe.q), self._values(keyframe.v)
        return replace(keyframe, name=self.prefix + keyframe.name, q=q, v=v)

    def _values(self, values: JointValues) -> JointValues:
        """Return values by joint. Those of the base belong to the mount if it is free, and to no joint otherwise."""
        joints, base = {joint.name for joint in self.other.joints}, base_joint_name(self.other)
        named = [(self.mount.name if joint == base and joint not in joints else self.prefix + joint, x) for joint, x in values]
        return tuple((joint, x) for joint, x in named if joint != self.mount.name or self.mount.type == "free")
