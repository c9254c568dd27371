"""Whether a description can be computed rightly. Two grades: errors, always raised, and findings, noted in the robot.

A *finding* is computable but doubtful. Real files are full of them (massless frames, rounded inertias, missing limits): a
tool that refuses them is useless, one that is silent is worse.
"""
from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from liedyn.errors import ModelError, Place, nearest
from liedyn.model.description import JOINT_TYPES, Actuator, Coordinate, Joint, Link, Robot
from liedyn.model.doubts import CODES, doubts, not_positive
from liedyn.model.link_tree import Tree, bodies_of, place_of, tree_of
from liedyn.model.numbers import (
    check_axes,
    check_direction,
    check_finite,
    check_not_parallel,
    check_pose,
    has_direction,
    unit,
    with_unit_axes,
)
from liedyn.model.rigid_body import Body, merged, principal_inertias
from liedyn.model.spatial import full
from liedyn.model.validate_constraints import checked_constraints

__all__ = ["CODES", "validate"]

# Number of axes of each type (the others have none).
_AXES = {"revolute": 1, "continuous": 1, "prismatic": 1, "helical": 1, "cylindrical": 1, "planar": 1, "universal": 2}
_NOT_NEGATIVE = ("damping", "friction", "armature", "stiffness")


def validate(robot: Robot) -> Robot:
    """The robot with unit axes, one `Coordinate` for each velocity coordinate, and its findings (the loader's first).

    Raises ModelError with file, line and element where the robot cannot be computed rightly: a number that is not finite or
    larger than LARGEST, negative mass, a body whose inertia is not positive semidefinite beyond rounding, duplicate
    or unknown names, two parents, cycles, unconnected links, no root for a floating base, unknown joint types, axes or screws
    without direction, parallel universal axes, swapped limits, negative damping, friction, armature or stiffness, springs or
    position limits where a joint has no such coordinate; closures over one link or one body, without length or radius;
    couplings of coordinates that do not exist, stand twice or are quaternions. Axes that are not of unit length are a finding;
    screws are never scaled.

    Whether each joint finds an inertia to move is left to the builder.
    """
    if robot.base not in ("fixed", "floating"):
        raise ModelError("unknown base", place=Place(robot.source, key="base"), found=robot.base, expected="fixed or floating")
    if not robot.name.isprintable():
        raise ModelError("a name with control characters", place=Place(robot.source, key="name"), found=robot.name)
    check_finite(robot.gravity, 3, Place(robot.source, key="gravity"), "gravity")
    joints = tuple(_checked_joint(joint) for joint in robot.joints)
    for link in robot.links:
        _check_link(link)
    tree = tree_of(replace(robot, joints=joints))
    bodies = {}
    for first, links in bodies_of(tree).items():
        bodies[first] = merged(tree, first, links)
        _check_inertia(links, bodies[first])
    _check_coordinate_names(robot.base, joints)
    actuators = tuple(_checked_actuator(actuator, tree) for actuator in robot.actuators)
    loops, couplings = checked_constraints(replace(robot, joints=joints), tree)
    found = (*robot.findings, *doubts(replace(robot, joints=joints, loops=loops), tree, bodies))
    return replace(robot, joints=tuple(map(with_unit_axes, joints)), actuators=actuators, loops=tuple(map(with_unit_axes, loops)),
                   couplings=couplings, findings=tuple(dict.fromkeys(found)))


def checked_again(robot: Robot, before: Robot) -> Robot:
    """`validate` of a robot that differs from a validated one, `before`, in numbers of links, joints and gravity alone."""
    check_finite(robot.gravity, 3, Place(robot.source, key="gravity"), "gravity")
    links = [link for link, old in zip(robot.links, before.links, strict=True) if link is not old]
    joints = [joint for joint, old in zip(robot.joints, before.joints, strict=True) if joint is not old]
    for link in links:
        _check_link(link)
    for joint in joints:
        check_pose(joint.origin, place_of(joint, "origin"), "origin")
        for coordinate in joint.figures:
            _check_coordinate(joint, coordinate)
    if not links and not joints:
        return robot
    tree, names = tree_of(robot), {*(link.name for link in links), *(joint.child for joint in joints if joint.type == "fixed")}
    groups = bodies_of(tree)
    bodies = {first: merged(tree, first, members) for first, members in groups.items()}
    for first, members in groups.items():
        if not names.isdisjoint(link.name for link in members):
            _check_inertia(members, bodies[first])
    old = tree_of(before)
    gone = set(doubts(before, old, {first: merged(old, first, members) for first, members in bodies_of(old).items()}))
    found = (*(one for one in before.findings if one not in gone), *doubts(robot, tree, bodies))
    return replace(robot, findings=tuple(dict.fromkeys(found)))


def _check_link(link: Link) -> None:
    check_finite((link.mass,), 1, place_of(link, "mass"), "mass")
    check_finite(link.com, 3, place_of(link, "com"), "centre of mass")
    check_finite(link.inertia, 6, place_of(link, "inertia"), "inertia")
    if link.mass < 0:
        raise ModelError("negative mass", place=place_of(link, "mass"), found=link.mass, expected="zero or more")


def _check_inertia(links: list[Link], body: Body) -> None:
    """The body's inertia must be positive semidefinite; where it is not, the worst of its links is at fault."""
    if not_positive(body.inertia, body.mass):
        link = min(links, key=lambda link: principal_inertias(full(link.inertia))[0])
        values = [float(f"{x:.4g}") for x in principal_inertias(full(link.inertia))]
        raise ModelError("the inertia is not positive semidefinite", place=place_of(link, "inertia"),
                         found=values, expected="principal inertias of at least zero")


def _checked_joint(joint: Joint) -> Joint:
    """The joint with one Coordinate for each velocity coordinate, or a ModelError."""
    if joint.type not in JOINT_TYPES:
        raise ModelError("unknown joint type", place=place_of(joint, "type"), found=joint.type,
                         expected="one of " + ", ".join(JOINT_TYPES), hint=nearest(joint.type, JOINT_TYPES))
    check_pose(joint.origin, place_of(joint, "origin"), "origin")
    _check_axes(joint)
    check_finite((joint.pitch,), 1, place_of(joint, "pitch"), "pitch")
    if joint.type == "euler":
        _check_sequence(joint)
    if joint.type == "screws":
        _check_screws(joint)
    if joint.mimic:
        check_finite((joint.mimic.multiplier, joint.mimic.offset), 2, place_of(joint, "mimic"), "multiplier and offset")
    coordinates = joint.figures
    if len(coordinates) != len(joint.labels):
        raise ModelError("wrong number of coordinates", place=place_of(joint), found=len(coordinates),
                         expected=f"{len(joint.labels)} for a joint of type {joint.type}")
    for coordinate in coordinates:
        _check_coordinate(joint, coordinate)
    return replace(joint, coordinates=coordinates)


def _check_axes(joint: Joint) -> None:
    place, count = place_of(joint, "axis"), _AXES.get(joint.type, 0)
    check_axes(joint.axes, count, f"a joint of type {joint.type}", place)
    if count == 2:
        check_not_parallel(joint.axes, place)


def _check_sequence(joint: Joint) -> None:
    letters = joint.sequence
    if len(letters) != 3 or set(letters) - set("xyz") or any(a == b for a, b in pairwise(letters)):
        raise ModelError("wrong sequence of Euler angles", place=place_of(joint, "sequence"), found=letters,
                         expected="three of the letters x y z, neighbours different, such as zyx")


def _check_screws(joint: Joint) -> None:
    place = place_of(joint, "screws")
    if not 1 <= len(joint.screws) <= 6:
        raise ModelError("wrong number of screws", place=place, found=len(joint.screws), expected="1 to 6")
    for screw in joint.screws:
        check_finite(screw, 6, place, "screw")
        if not has_direction(screw):
            raise ModelError("a screw is the zero vector", place=place, found=list(screw), expected="[wx, wy, wz, vx, vy, vz]")


def _check_coordinate(joint: Joint, coordinate: Coordinate) -> None:
    for name in (*_NOT_NEGATIVE, "rest"):
        value = getattr(coordinate, name)
        check_finite((value,), 1, place_of(joint, name), name)
        if name in _NOT_NEGATIVE and value < 0:
            raise ModelError(f"negative {name}", place=place_of(joint, name), found=value, expected="zero or more")
    place = place_of(joint, "limits")
    limits = (coordinate.lower, coordinate.upper, coordinate.velocity, coordinate.effort)
    if any(map(math.isnan, limits)) or coordinate.lower == math.inf or -math.inf in limits[1:]:
        raise ModelError("a limit is not a number", place=place, found=list(limits), expected="lower, upper, velocity, effort")
    if coordinate.lower > coordinate.upper:
        raise ModelError("the limits are swapped", place=place, found=[coordinate.lower, coordinate.upper],
                         expected="the lower limit first")
    if joint.type in ("ball", "free") and (coordinate.stiffness or coordinate.rest):
        raise ModelError(f"a {joint.type} joint has no spring", place=place_of(joint, "stiffness"),
                         hint="its coordinates are a quaternion")
    if joint.type in ("ball", "free", "continuous") and math.isfinite(coordinate.lower - coordinate.upper):
        raise ModelError(f"a {joint.type} joint has no lower and upper limit", place=place)


def _check_coordinate_names(base: str, joints: tuple[Joint, ...]) -> None:
    """Files name a coordinate `joint` or `joint.label`: these must differ, too."""
    if base == "floating":
        joints = (Joint("base", "free", "", ""), *joints)
    quaternion = ("qx", "qy", "qz", "qw")
    taken: dict[str, Joint] = {}
    for joint in joints:
        labels = {"ball": quaternion, "free": ("px", "py", "pz", *quaternion)}.get(joint.type, ())
        for label in dict.fromkeys(("", *joint.labels, *labels)):
            name = f"{joint.name}.{label}" if label else joint.name
            other = taken.setdefault(name, joint)
            if other is not joint:
                whose = "the floating base" if other is joints[0] and base == "floating" else f'joint "{other.name}"'
                raise ModelError(f'a coordinate of {whose} is also called "{name}"', place=place_of(joint),
                                 expected="another name")


def _checked_actuator(actuator: Actuator, tree: Tree) -> Actuator:
    if actuator.link not in tree.links:
        raise ModelError("the actuator is not on a link of this robot", place=place_of(actuator, "link"), found=actuator.link,
                         expected="a link's name", hint=nearest(actuator.link, tree.links))
    check_finite(actuator.position, 3, place_of(actuator, "position"), "position")
    check_finite(actuator.axis, 3, place_of(actuator, "axis"), "axis")
    check_finite((actuator.torque_ratio,), 1, place_of(actuator, "torque_ratio"), "torque ratio")
    check_direction(actuator.axis, place_of(actuator, "axis"))
    return replace(actuator, axis=unit(actuator.axis))
