"""A robot description in other units of length, mass and time: the same robot, with other numbers."""
from dataclasses import replace

from liedyn.model.description import Coordinate, Joint, Mimic, Robot
from liedyn.model.links import Link, Pose


def in_units(robot: Robot, length: float = 1.0, mass: float = 1.0, time: float = 1.0) -> Robot:
    """Return the robot with `length`, `mass` and `time` as the numbers of 1 m, 1 kg and 1 s: 1e3, 1.0, 1.0 for millimetres."""
    force = mass * length / time**2

    def pose(origin: Pose) -> Pose:
        return replace(origin, translation=tuple(x * length for x in origin.translation))

    def link(one: Link) -> Link:
        return replace(one, mass=one.mass * mass, com=tuple(x * length for x in one.com),
                       inertia=tuple(x * mass * length**2 for x in one.inertia))

    def coordinate(one: Coordinate, unit: str) -> Coordinate:
        x, f = (length, force) if unit == "m" else (1.0, force * length)
        return replace(one, lower=one.lower * x, upper=one.upper * x, rest=one.rest * x, velocity=one.velocity * x / time,
                       acceleration=one.acceleration * x / time**2, jerk=one.jerk * x / time**3,
                       effort=one.effort * f, friction=one.friction * f, static_friction=one.static_friction * f,
                       stribeck_speed=one.stribeck_speed * x / time, friction_speed=one.friction_speed * x / time,
                       damping=one.damping * f * time / x,
                       stiffness=one.stiffness * f / x, armature=one.armature * f * time**2 / x)

    def joint(one: Joint) -> Joint:
        screws = tuple((*s[:3], *(x * (length if unit == "rad" else 1.0) for x in s[3:]))
                       for s, unit in zip(one.screws, one.units, strict=False))
        figures = tuple(coordinate(c, unit) for c, unit in zip(one.coordinates or (), one.units, strict=False))
        return replace(one, origin=pose(one.origin), screws=screws, coordinates=figures, pitch=one.pitch * length,
                       mimic=one.mimic and mimic(one, one.mimic))

    def mimic(follower: Joint, one: Mimic) -> Mimic:
        units = (follower.units[0], next(joint.units[0] for joint in robot.joints if joint.name == one.joint))
        x, y = (length if unit == "m" else 1.0 for unit in units)
        return replace(one, multiplier=one.multiplier * x / y, offset=one.offset * x)

    return replace(robot, links=tuple(map(link, robot.links)), joints=tuple(map(joint, robot.joints)),
                   gravity=tuple(g * length / time**2 for g in robot.gravity))
