"""Actuators of MJCF: the largest force of joints, rotor inertias and damping, thrusters at sites. Gains and dynamics are not
read."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from liedyn.errors import nearest
from liedyn.io.robots.mjcf.bodies import Tree
from liedyn.io.robots.mjcf.defaults import ACTUATORS
from liedyn.io.robots.mjcf.placement import cross, rotate
from liedyn.io.robots.mjcf.tree import Element
from liedyn.model.description import Actuator, Coordinate

_PARALLEL = 1e-9                     # of the torque of a thruster: what of it is across its force


def read_actuators(root: Element, tree: Tree) -> tuple[Actuator, ...]:
    """Thrusters; joints of `tree` get their limits of force, armature and damping."""
    efforts: dict[str, list[float]] = {}
    thrusters = []
    for child in root.within("actuator"):
        element = tree.defaults.of(child, kind="actuator")
        if element.text("joint") is not None:
            _of_joint(element, efforts, tree)
        else:
            _refuse_passive(element)
            thrusters += _thruster(element, tree)
    for k, joint in enumerate(tree.joints):
        if joint.name in efforts:
            coordinate, = joint.coordinates
            effort = min(coordinate.effort, math.fsum(efforts[joint.name]))
            tree.joints[k] = replace(joint, coordinates=(replace(coordinate, effort=effort),))
    return tuple(thrusters)


def _of_joint(element: Element, efforts: dict[str, list[float]], tree: Tree) -> None:
    joint = element.text("joint")
    if joint not in tree.joint_names:
        raise element.problem("unknown joint", "joint", found=joint, expected="a joint's name", hint=nearest(joint, tree.ref))
    if joint not in tree.ref:                            # ball and free
        _refuse_passive(element)
        tree.count("actuators of ball and free joints")
        return
    gear = element.vector("gear", (1.0,) + (0.0,) * 5, least=1)[0]
    efforts.setdefault(joint, []).append(abs(gear) * _largest_force(element, tree))
    if element.tag != "motor":
        tree.count("actuators with gains")
    more = {"armature": element.number("armature", 0.0), "damping": tree.option.dampers * element.constant("damping")}
    if any(more.values()):
        k = next(k for k, one in enumerate(tree.joints) if one.name == joint)
        old: Coordinate = tree.joints[k].coordinates[0]
        added = {key: getattr(old, key) + gear * gear * value for key, value in more.items()}
        tree.joints[k] = replace(tree.joints[k], coordinates=(replace(old, **added),))


def _largest_force(element: Element, tree: Tree) -> float:
    """Before the gear; a motor's force is its control."""
    ranges = ["force"]
    if element.tag == "motor":
        ranges.append("ctrl")
    found = [math.inf]
    for key in ranges:
        low, high = element.vector(f"{key}range", (0.0, 0.0))
        how = element.choice(f"{key}limited", ("true", "false", "auto"), "auto")
        if how == "true" or (how == "auto" and low < high and tree.compiler.autolimits):
            found.append(max(abs(low), abs(high)))
    return min(found)


def _refuse_passive(element: Element) -> None:
    for key in ("armature", "damping"):
        element.refuse(key, f"{key} of an actuator that does not act on a hinge or slide joint is not supported")


def _thruster(element: Element, tree: Tree) -> Iterator[Actuator]:
    """A motor at a site, whose force and torque are along one axis; its command is the thrust."""
    if element.tag != "motor" or "site" not in element.attributes or "refsite" in element.attributes:
        tree.count(f"actuators of type {element.tag}" if element.tag in ACTUATORS else "actuators")
        return
    name = element.name_of("site", tree.site, "unknown site", "a site's name")
    gear = element.vector("gear", (1.0,) + (0.0,) * 5, least=1)
    force, torque, size = gear[:3], gear[3:], math.hypot(*gear[:3])
    if size == 0 or math.hypot(*cross(force, torque)) > _PARALLEL * size * math.hypot(*torque):
        tree.count("actuators whose force and torque have other axes")
        return
    link, pose = tree.site[name]
    axis = tuple(x / size for x in rotate(pose.rotation, force))
    along = sum(a * b for a, b in zip(force, torque, strict=True)) / (size * size)
    yield Actuator(element.name or name, link, pose.translation, axis, along, place=element.place())
