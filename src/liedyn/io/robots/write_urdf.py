"""Robot -> URDF. Numbers read back to the same bits, rotations of placements up to rounding."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from xml.sax.saxutils import quoteattr

import numpy as np

from liedyn.errors import escape_nonprintable, list_names
from liedyn.io.robots.robot_schema import written_limit
from liedyn.io.robots.visual_shapes import simple_shapes
from liedyn.io.robots.write_robot_yaml import Omission, Subset, rpy_of
from liedyn.model.description import (
    FRICTION_SPEED,
    STANDARD_GRAVITY,
    WORLD,
    Coordinate,
    Coupling,
    Joint,
    Mimic,
    Robot,
    coordinate_name,
)
from liedyn.model.link_tree import build_link_tree
from liedyn.model.links import IDENTITY, Link, Pose, Shape, vector
from liedyn.model.model_builder import base_joint_name
from liedyn.model.model_joint import joint_screws
from liedyn.model.validate import normalize_axes

_NAMES = {"free": "floating"}                        # of joint types that the format calls otherwise
_GEOMETRY = {"box": '<box size="{} {} {}"/>', "sphere": '<sphere radius="{}"/>',
             "cylinder": '<cylinder radius="{}" length="{}"/>'}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def urdf(robot: Robot, shapes: Mapping[str, tuple[Shape, ...]] | None = None) -> str:
    """Return the text of a URDF of a valid robot that the format can describe (see `as_urdf`), with shapes for drawing by link.

    Revolute and prismatic joints always have a <limit> with all four numbers, which other readers require.
    """
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(robot.name)}>"]
    for link in robot.links:
        lines += _element("link", link.name, "", [*_link(link), *_visuals((shapes or {}).get(link.name, ()))])
    for joint in robot.joints:
        lines += _element("joint", joint.name, f' type="{_NAMES.get(joint.type, joint.type)}"', _joint(joint))
    for name in robot.actuated:
        lines += _element("transmission", f"{name}_transmission", "", _transmission(name))
    return "\n".join([*lines, "</robot>"]) + "\n"


def _transmission(joint: str) -> Iterator[str]:
    yield "<type>transmission_interface/SimpleTransmission</type>"
    yield f"<joint name={quoteattr(joint)}>"
    yield "  <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>"
    yield "</joint>"
    yield f"<actuator name={quoteattr(joint + '_motor')}/>"


def _element(tag: str, name: str, more: str, parts: Iterable[str]) -> list[str]:
    head, parts = f"  <{tag} name={quoteattr(name)}{more}", list(parts)
    return [head + ">", *("    " + part for part in parts), f"  </{tag}>"] if parts else [head + "/>"]


def _link(link: Link) -> Iterator[str]:
    if link.mass or any(link.com) or any(link.inertia):
        yield "<inertial>"
        yield from ("  " + part for part in _origin(Pose(translation=link.com)))
        yield f'  <mass value="{_number(link.mass)}"/>'
        yield "  <inertia " + " ".join(f'{k}="{_number(x)}"' for k, x in zip(_INERTIA, link.inertia, strict=True)) + "/>"
        yield "</inertial>"


def _visuals(shapes: Iterable[Shape]) -> Iterator[str]:
    for shape in chain.from_iterable(map(simple_shapes, shapes)):
        yield "<visual>"
        yield from ("  " + part for part in _origin(shape.pose))
        yield f"  <geometry>{_GEOMETRY[shape.kind].format(*map(_number, shape.sizes))}</geometry>"
        if shape.colour:
            rgb = _format_values(shape.colour)
            yield f'  <material name="colour {rgb}"><color rgba="{rgb} 1"/></material>'
        yield "</visual>"


def _joint(joint: Joint) -> Iterator[str]:
    yield f"<parent link={quoteattr(joint.parent)}/>"
    yield f"<child link={quoteattr(joint.child)}/>"
    yield from _origin(joint.origin)
    if joint.axes:
        yield f'<axis xyz="{_format_values(joint.axes[0])}"/>'
    coordinate = joint.coordinate_parameters[0] if joint.labels else Coordinate()
    yield from _limit(joint.type, coordinate)
    if coordinate.damping or coordinate.friction:
        yield f'<dynamics damping="{_number(coordinate.damping)}" friction="{_number(coordinate.friction)}"/>'
    if joint.mimic:
        mimic = joint.mimic
        yield (f'<mimic joint={quoteattr(mimic.joint)} multiplier="{_number(mimic.multiplier)}" '
               f'offset="{_number(mimic.offset)}"/>')


def _limit(kind: str, coordinate: Coordinate) -> Iterator[str]:
    lower, upper, effort, velocity = (_number(written_limit(x)) for x in (coordinate.lower, coordinate.upper, coordinate.effort,
                                                                          coordinate.velocity))
    more = "".join(f' {name}="{_number(x)}"' for name, x in (("acceleration", coordinate.acceleration), ("jerk", coordinate.jerk))
                   if math.isfinite(x))
    if kind in ("revolute", "prismatic"):
        yield f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"{more}/>'
    elif kind == "continuous" and coordinate != Coordinate(damping=coordinate.damping, friction=coordinate.friction):
        yield f'<limit effort="{effort}" velocity="{velocity}"{more}/>'


def _origin(pose: Pose) -> Iterator[str]:
    turn = f' rpy="{_format_values(rpy_of(pose.rotation))}"' if pose.rotation != IDENTITY else ""
    if turn or any(pose.translation):
        yield f'<origin xyz="{_format_values(pose.translation)}"{turn}/>'


def _format_values(values: Iterable[float]) -> str:
    return " ".join(map(_number, values))


def _number(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


# urdf subset ------------------------------------------------------------------------------------------------------------

# The same robot with what a URDF has: other joints, links and names of coordinates where that is exact, and a list of what is
# lost.

_UNIT = 1e-12                        # a screw of this length or pitch besides 1 and 0 is one of rounding
_DIRECT = ("fixed", "revolute", "continuous", "prismatic", "free")


def as_urdf(robot: Robot) -> Subset:
    """Return the part of a valid robot that a URDF can describe, with its loops and couplings (for a loops file).

    Some parts are rewritten exactly: forces, accelerations, and the names and order of coordinates are unchanged. A floating base
    becomes a floating joint of a link `world`, and the ground a link `world`. Universal, cylindrical and Euler joints, planar
    joints with limits, and joints of screws without pitch become revolute and prismatic joints with massless links between them,
    which follow the other links.

    Losses are gravity that is not standard, springs, armatures and actuators. Ball joints become three revolute joints; helical
    joints become a revolute joint and a prismatic joint that mimics it; screws are scaled to unit length.
    """
    out = Subset(robot)
    if robot.gravity != STANDARD_GRAVITY:
        gravity = ", ".join(f"{x:g}" for x in robot.gravity)
        out.losses.append(Omission("gravity", f"[{gravity}] becomes the default, [0, 0, -9.81]"))
        out.robot = replace(out.robot, gravity=STANDARD_GRAVITY)
    for actuator in robot.actuators:
        out.losses.append(Omission(actuator.name, "the actuator is left out", dynamics=False))
    if robot.keyframes:
        names = list_names([keyframe.name for keyframe in robot.keyframes], 3)
        out.losses.append(Omission("keyframes", f"the states {names} are left out", dynamics=False))
    out.robot = replace(out.robot, actuators=(), keyframes=())
    _ground(out)
    _split_joints(out)
    return out


def _ground(out: Subset) -> None:
    """Describe the ground as a link, if a joint is attached to it."""
    robot = out.robot
    tree = build_link_tree(robot)
    if robot.base == "floating":
        name, ground = base_joint_name(robot), _free_name(WORLD, {link.name for link in robot.links})
        joint = Joint(name, "free", ground, tree.root)
        out.robot = replace(robot, base="fixed", links=(*robot.links, Link(ground)), joints=(joint, *robot.joints))
        out.rewritten.append(f'the floating base is the floating joint "{name}" of a link "{ground}"')
    elif tree.root == WORLD and WORLD not in tree.links:
        out.robot = replace(robot, links=(*robot.links, Link(WORLD)))
        out.rewritten.append(f'the ground is a link "{WORLD}"')


def _split_joints(out: Subset) -> None:
    joints, links, parts_of = [], list(out.robot.links), {}
    taken = {link.name for link in links} | {joint.name for joint in out.robot.joints}
    for joint in (_without_springs(described, out) for described in out.robot.joints):
        if joint.type in _DIRECT or (joint.type == "planar" and joint.coordinate_parameters == _uniform_coordinates(joint)):
            joints.append(_with_uniform_damping(joint, out))
            continue
        between: list[str] = []
        lost = len(out.losses)
        for part in _parts(joint, out):
            parent = between[-1] if between else joint.parent
            name = _free_name(part.name, taken) if part.type == "fixed" else part.name
            child = _free_name(name, taken)
            taken.add(child)
            between.append(child)
            joints.append(replace(part, name=name, parent=parent, child=child))
        joints[-1] = replace(joints[-1], child=joint.child)
        parts_of[joint.name] = tuple(part.name for part in joints[-len(between):] if part.type != "fixed" and not part.mimic)
        links += [Link(name) for name in between[:-1]]
        if len(between) > 1 and len(out.losses) == lost:
            types = ", ".join(part.type for part in joints[-len(between):])
            name = escape_nonprintable(joint.name)
            out.rewritten.append(f'the {joint.type} joint "{name}" is {len(between)} joints ({types}) with massless '
                                 "links between")
    labels = {joint.name: joint.labels for joint in out.robot.joints}
    couplings = tuple(_of_parts(coupling, labels) for coupling in out.robot.couplings)
    actuated = tuple(part for name in out.robot.actuated for part in parts_of.get(name, (name,)))
    out.robot = replace(out.robot, joints=tuple(joints), links=tuple(links), couplings=couplings, actuated=actuated)


def _parts(joint: Joint, out: Subset) -> Iterator[Joint]:
    """Yield a joint for each screw, with the name of its coordinate in files, and with the parent and child of the whole."""
    if joint.type == "ball":
        out.losses.append(Omission(joint.name, "the ball joint becomes three revolute joints about x, y and z: other "
                                               "coordinates, "
                                           "and singular where the second is a right angle"))
        labels: tuple[str, ...] = ("x", "y", "z")
        screws = np.eye(6)[:3]
    else:
        labels, screws = joint.labels, joint_screws(normalize_axes(joint))
    origin = joint.origin
    for label, screw, coordinate in zip(labels, screws, joint.coordinate_parameters, strict=True):
        name = coordinate_name(joint.name, label)
        w, v = screw[:3], screw[3:]
        size = float(np.linalg.norm(w) if w.any() else np.linalg.norm(v))
        if abs(size - 1.0) > _UNIT:
            out.losses.append(Omission(name, f"the screw has length {size:.6g} and is scaled to 1, and its coordinate with it"))
        w, v = w / size, v / size
        part = replace(joint, name=name, sequence="", screws=(), coordinates=(coordinate,), pitch=0.0, origin=origin)
        if not w.any():
            yield replace(part, type="prismatic", axes=(vector(v),))
            origin = Pose()
            continue
        point, pitch, rounding = np.cross(w, v), float(w @ v), _UNIT * max(1.0, float(np.linalg.norm(v)))
        if np.linalg.norm(point) <= rounding:                                # the axis passes through the origin
            point = np.zeros(3)
        bounded = np.isfinite(coordinate.lower) or np.isfinite(coordinate.upper)
        yield replace(part, type="revolute" if bounded else "continuous", axes=(vector(w),), origin=_moved(origin, point))
        if abs(pitch) > rounding:
            out.losses.append(Omission(name, "the helical motion becomes a revolute joint and a prismatic one that mimics it: "
                                             "one coordinate more, bound by a coupling"))
            yield Joint(f"{name}.slide", "prismatic", joint.parent, joint.child, Pose(), (vector(w),),
                        coordinates=(Coordinate(),), mimic=Mimic(name, pitch))
        origin = Pose(translation=vector(-point))
    if any(origin.translation):                                       # back from the last axis to the frame of the child
        yield Joint(f"{joint.name}.frame", "fixed", joint.parent, joint.child, origin)


def _moved(origin: Pose, by: np.ndarray) -> Pose:
    p = np.add(origin.translation, np.reshape(origin.rotation, (3, 3)) @ by)
    return replace(origin, translation=vector(p))


def _without_springs(joint: Joint, out: Subset) -> Joint:
    coordinates = []
    for name, coordinate in zip(joint.coordinate_names, joint.coordinate_parameters, strict=True):
        if coordinate.stiffness:
            out.losses.append(Omission(name, f"the spring of stiffness {coordinate.stiffness:g} is left out"))
        if coordinate.armature:
            out.losses.append(Omission(name, f"the armature {coordinate.armature:g} is left out"))
        if coordinate.rigid_friction:
            out.losses.append(Omission(name, f"rigid friction becomes regularized friction of the level {coordinate.friction:g}"))
        elif coordinate.friction and coordinate.friction_speed != FRICTION_SPEED:
            out.losses.append(Omission(name, f"friction is smoothed below {FRICTION_SPEED:g} rad/s or m/s, not below "
                                       f"{coordinate.friction_speed:g}"))
        coordinates.append(replace(coordinate, stiffness=0.0, rest=0.0, armature=0.0, rigid_friction=0.0, static_friction=0.0,
                                   stribeck_speed=0.0, friction_speed=FRICTION_SPEED))
    return replace(joint, coordinates=tuple(coordinates))


def _uniform_coordinates(joint: Joint) -> tuple[Coordinate, ...]:
    """Return the coordinates that a floating or planar joint of a URDF can have: one damping and one friction, no limits."""
    first = joint.coordinate_parameters[0]
    return (Coordinate(damping=first.damping, friction=first.friction),) * len(joint.labels)


def _with_uniform_damping(joint: Joint, out: Subset) -> Joint:
    if joint.type != "free" or joint.coordinate_parameters == (plain := _uniform_coordinates(joint)):
        return joint
    damped = [(c.damping, c.friction) for c in joint.coordinate_parameters]
    if len(set(damped)) > 1:
        out.losses.append(Omission(joint.name, "damping and friction, which differ between its coordinates, are left out"))
        plain = (Coordinate(),) * 6
    if any(replace(c, damping=0.0, friction=0.0) != Coordinate() for c in joint.coordinate_parameters):
        out.losses.append(Omission(joint.name, "the limits of a free joint are left out", dynamics=False))
    return replace(joint, coordinates=plain)


def _of_parts(coupling: Coupling, labels: dict[str, tuple[str, ...]]) -> Coupling:
    """Return the coupling with the names of the joints that replace the coordinates."""
    def named(joint: str, label: str) -> str:
        return f"{joint}.{label}" if label and joint in labels else joint
    return replace(coupling, terms=tuple((named(joint, label), "", factor) for joint, label, factor in coupling.terms))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
