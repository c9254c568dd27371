"""Validation of robot descriptions: errors, which are always raised, and warnings, which are stored in the robot.

A warning is about a robot that is probably not what was intended. Real files often have massless frames, rounded inertias or
missing limits, so these are not errors.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from liedyn.errors import LiedynWarning, ModelError, Place, WarningLog, nearest
from liedyn.model.coupling_expression import SPLINE_DEGREES
from liedyn.model.coupling_functions import check_operations
from liedyn.model.description import (
    JOINT_TYPES,
    LIMITS,
    LOOP_TYPES,
    MAX_FRICTION_SPEED,
    MIN_FRICTION_SPEED,
    ONE_DOF,
    WORLD,
    Actuator,
    Coordinate,
    Coupling,
    Joint,
    JointType,
    Loop,
    LoopType,
    Robot,
    check_joint_type,
    coordinate_name,
)
from liedyn.model.element_values import check_finite, check_pose, element_location
from liedyn.model.force_element import ForceElement, validate_element
from liedyn.model.link_tree import (
    Body,
    LinkTree,
    body_by_link,
    build_link_tree,
    check_names,
    links_by_body,
    merge_links,
    principal_inertias,
)
from liedyn.model.links import Link, Vector, vector
from liedyn.model.spatial import symmetric_matrix
from liedyn.model.warnings import is_not_semidefinite, robot_warnings

_Axial = TypeVar("_Axial", Joint, Loop)

# Checks of directions -------------------------------------------------------------------------------------------------

_NO_DIRECTION = 1e-9                 # absolute: an axis is meant to be of unit length, and a screw to be one radian or metre
_PARALLEL = 1e-6                     # rad, of unit axes: two closer than this are one, printed with seven digits
_UNIT_ROUNDING = 4 * 2.0**-52        # of the length of a normalized vector: rounding of its three components and of their norm


def check_axes(axes: Sequence[Vector], count: int, owner: str, place: Place) -> None:
    """Raise ModelError unless there are `count` axes with a direction; `owner` is text such as "a joint of type planar"."""
    if len(axes) != count:
        raise ModelError("wrong number of axes", place=place, found=len(axes), expected=f"{count} for {owner}")
    for axis in axes:
        check_finite(axis, 3, place, "axis")
        check_direction(axis, place)


def check_direction(axis: Vector, place: Place) -> None:
    """Raise ModelError for an axis that is the zero vector."""
    if not has_direction(axis):
        raise ModelError("the axis is the zero vector", place=place, found=list(axis), expected="a non-zero vector")


def check_not_parallel(axes: Sequence[Vector], place: Place) -> None:
    """Raise ModelError if two axes with a direction are parallel."""
    first, second = (np.array(axis) / math.hypot(*axis) for axis in axes)
    if np.linalg.norm(np.cross(first, second)) < _PARALLEL:
        raise ModelError("the two axes are parallel", place=place, found=[list(axis) for axis in axes], expected="two directions")


def has_direction(vector: Sequence[float]) -> bool:
    """Return whether a vector, or a screw, is long enough to have a direction."""
    return _NO_DIRECTION <= math.hypot(*vector) < math.inf


def normalize_axes(element: _Axial) -> _Axial:
    """Return the joint or loop with axes of unit length."""
    return replace(element, axes=tuple(normalize_axis(axis) for axis in element.axes))


def normalize_axis(axis: Vector) -> Vector:
    """Return the axis divided by its length. A unit vector is unchanged, so that a written robot reads back bit for bit."""
    length = math.hypot(*axis)
    if abs(length - 1.0) <= _UNIT_ROUNDING:
        return vector(axis)
    return vector(float(x) / length for x in axis)


# Validation of closures and couplings -----------------------------------------------------------------------------------

_SHAPES = ("disc", "sphere")


def validate_constraints(robot: Robot, tree: LinkTree) -> tuple[tuple[Loop, ...], tuple[Coupling, ...]]:
    """Return the loops with their axes as written, and the couplings whose terms name joint and label.

    Raise ModelError, with the element, for one that is not valid.
    """
    check_names((*robot.loops, *robot.couplings, *mimic_couplings(robot)), "constraint")
    if not (robot.loops or robot.couplings or any(joint.mimic for joint in robot.joints)):
        return (), ()
    body_of = body_by_link(tree, robot.base)
    coordinates = _coupling_coordinates(robot.joints)
    loops = tuple(_validate_loop(loop, tree, body_of) for loop in robot.loops)
    couplings = tuple(_validate_coupling(coupling, coordinates, robot.joints, element_location(coupling, "terms"))
                      for coupling in robot.couplings)
    _check_mimic_cycles(robot)
    for mimic in mimic_couplings(robot):
        _validate_coupling(mimic, coordinates, robot.joints, mimic.place)
    return loops, couplings


def linear_couplings(robot: Robot) -> tuple[Coupling, ...]:
    """Return the linear couplings of a robot and the mimics of its joints."""
    return (*(coupling for coupling in robot.couplings if coupling.function is None), *mimic_couplings(robot))


def mimic_couplings(robot: Robot) -> tuple[Coupling, ...]:
    """Return the mimics of joints as couplings q - multiplier q_followed = offset, by the names of the joints.

    Fixed joints have no coordinate to couple.
    """
    return tuple(Coupling(joint.name, ((joint.name, "", 1.0), (joint.mimic.joint, "", -joint.mimic.multiplier)),
                          joint.mimic.offset, element_location(joint, "mimic"))
                 for joint in robot.joints if joint.mimic and joint.type != "fixed")


def _check_mimic_cycles(robot: Robot) -> None:
    """Raise ModelError if joints follow each other in a cycle, which would lock them."""
    driver = {joint.name: joint.mimic.joint for joint in robot.joints if joint.mimic and joint.type != "fixed"}
    acyclic: set[str] = set()
    for joint in robot.joints:
        name = joint.name
        path: list[str] = []
        while name in driver and name not in acyclic:
            if name in path:
                cycle = path[path.index(name):]
                message = "the joint mimics itself" if len(cycle) == 1 else "the joints mimic each other in a cycle"
                first = next(joint for joint in robot.joints if joint.name == name)
                raise ModelError(message, place=element_location(first, "mimic"), found=" -> ".join([*cycle, name]),
                                 expected="a joint that does not depend on this one")
            path.append(name)
            name = driver[name]
        acyclic.update(path)


# loops --------------------------------------------------------------------------------------------------------------

def _validate_loop(loop: Loop, tree: LinkTree, body_of: dict[str, str]) -> Loop:
    if loop.type not in LOOP_TYPES:
        raise ModelError("unknown type of loop", place=element_location(loop, "type"), found=loop.type,
                         expected="one of " + ", ".join(LOOP_TYPES), hint=nearest(loop.type, LOOP_TYPES))
    for part in ("a", "b"):
        _check_end(loop, part, tree.links)
    _check_distinct_bodies(loop, body_of)
    for part, pose in (("a", loop.pose_a), ("b", loop.pose_b)):
        check_pose(pose, element_location(loop, part), "frame")
    type_ = LOOP_TYPES[loop.type]
    default = type_.axes
    if "shape" in type_.parameters:
        if loop.shape not in _SHAPES:
            raise ModelError("unknown shape", place=element_location(loop, "shape"), found=loop.shape, expected="disc or sphere")
        default = default if loop.shape == "disc" else ()
    axes = loop.axes or default
    check_axes(axes, len(default), f"a {loop.type} closure" + (" of a sphere" if loop.shape == "sphere" else ""),
               element_location(loop, "axis"))
    _check_no_other_parameters(loop, LOOP_TYPES, "closure")
    for name in ("length", "radius"):
        value = getattr(loop, name)
        check_finite((value,), 1, element_location(loop, name), name)
        if name in type_.parameters and not value > 0:
            raise ModelError(f"a {loop.type} closure needs a {name}", place=element_location(loop, name), found=value,
                             expected="a number > 0",
                             hint="use ball for points that coincide" if name == "length" else None)
    return replace(loop, axes=axes)


def _check_no_other_parameters(element: Joint | Loop, types: Mapping[str, JointType] | Mapping[str, LoopType], noun: str) -> None:
    """Raise ModelError for a parameter of other types, such as the pitch of a revolute joint, that is not at its default."""
    defaults = {item.name: item.default for item in fields(element)}
    for name in dict.fromkeys(name for entry in types.values() for name in entry.parameters):
        if name not in types[element.type].parameters and getattr(element, name) != defaults[name]:
            raise ModelError(f"a {element.type} {noun} has no {name}", place=element_location(element, name),
                             found=getattr(element, name))


def _check_end(loop: Loop, part: str, links: Mapping[str, Link]) -> None:
    name = getattr(loop, part)
    if name not in links and name != WORLD:
        raise ModelError(f"frame {part} is not on a link of this robot", place=element_location(loop, part), found=name,
                         expected=f"a link's name or {WORLD}", hint=nearest(name, links))


def _check_distinct_bodies(loop: Loop, body_of: dict[str, str]) -> None:
    """Raise ModelError unless the frames are on two bodies: otherwise no joint can move one relative to the other."""
    if loop.a == loop.b:
        raise ModelError("the loop joins a link to itself", place=element_location(loop, "b"), found=loop.b, expected="two links")
    if body_of[loop.a] == body_of[loop.b]:
        raise ModelError("the loop joins two links of one body: there is no moving joint between them",
                         place=element_location(loop, "b"), found=[loop.a, loop.b],
                         expected="links that move relative to each other")


# couplings ----------------------------------------------------------------------------------------------------------

def _coupling_coordinates(joints: tuple[Joint, ...]) -> dict[str, tuple[str, str]]:
    """Return (joint, label) of each coordinate that a coupling may contain, by its name in files."""
    return {coordinate_name(joint.name, label): (joint.name, label)
            for joint in joints if joint.kind == ONE_DOF for label in joint.labels}


def _validate_coupling(coupling: Coupling, coordinates: dict[str, tuple[str, str]], joints: tuple[Joint, ...],
                       place: Place) -> Coupling:
    terms: dict[tuple[str, str], float] = {}
    for name, label, coefficient in coupling.terms:
        check_finite((coefficient,), 1, place, "coefficient")
        written = coordinate_name(name, label)
        if written not in coordinates:
            raise _coordinate_error(written, coordinates, joints, place)
        if coordinates[written] in terms:
            raise ModelError(f'the coordinate "{written}" appears twice', place=place, expected="one term per coordinate")
        terms[coordinates[written]] = float(coefficient)
    if coupling.function is not None:
        _check_function(coupling, terms, joints)
    elif not any(terms.values()):
        raise ModelError("the coupling has no terms", place=place, found=[term[2] for term in coupling.terms],
                         expected="at least one coefficient other than 0")
    check_finite((coupling.offset,), 1, element_location(coupling, "offset"), "offset")
    return replace(coupling, terms=tuple((*coordinate, c) for coordinate, c in terms.items()), offset=float(coupling.offset))


_TURN = 2.0 * math.pi
_PERIOD_ROUNDING = 1e-9           # of the range of a periodic table: difference of its last value from the first one
_MAX_POINTS = 2000                # of a table: each piece is a selection in generated code


def _check_function(coupling: Coupling, terms: Mapping[tuple[str, str], float], joints: tuple[Joint, ...]) -> None:
    """Raise ModelError for a function that is not an expression of operations, nor a table that can be interpolated."""
    function, place = coupling.function, element_location(coupling, "function")
    assert function is not None, "the coupling is nonlinear"
    if len(terms) != 2:
        raise ModelError("a nonlinear coupling has a follower and a driver", place=place, found=len(terms),
                         expected="two coordinates")
    if not function.points:
        check_operations(function, place)
        return
    if function.interpolation not in SPLINE_DEGREES:
        raise ModelError("unknown interpolation", place=place, found=function.interpolation,
                         expected="one of " + ", ".join(SPLINE_DEGREES), hint=nearest(function.interpolation, SPLINE_DEGREES))
    minimum = SPLINE_DEGREES[function.interpolation] + 1
    if not minimum <= len(function.points) <= _MAX_POINTS:
        raise ModelError(f"wrong number of points for {function.interpolation} interpolation", place=place,
                         found=len(function.points), expected=f"{minimum} to {_MAX_POINTS}")
    for point in function.points:
        check_finite(point, 2, place, "table")
    for (x, _), (following, _) in zip(function.points, function.points[1:], strict=False):
        if not following > x:
            raise ModelError("the driver's positions in a table must increase", place=place, found=following,
                             expected=f"a number > {x:g}")
    units = [unit_of_coordinate(joints, *coordinate) for coordinate in terms]
    for unit, declared, name in zip(units[::-1], function.units, ("driver", "follower"), strict=True):
        if declared and declared != unit:
            raise ModelError(f"the column of the {name} has the unit of another quantity", place=place, found=declared,
                             expected=unit)
    if function.periodic:
        values = [y for _, y in function.points]
        increase, turn = values[-1] - values[0], _TURN if units[0] == "rad" else math.inf
        rest = math.remainder(increase, turn)
        if abs(rest) > _PERIOD_ROUNDING * max(max(values) - min(values), abs(increase)):
            raise ModelError("the last value of a periodic table must be the first one" + (", or whole turns more"
                             if units[0] == "rad" else ""), place=place, found=values[-1], expected=f"{values[-1] - rest:g}")


def unit_of_coordinate(joints: Iterable[Joint], name: str, label: str) -> str:
    """Return the unit of a coordinate, rad or m."""
    joint = next(joint for joint in joints if joint.name == name)
    return joint.units[joint.labels.index(label)]


def _coordinate_error(written: str, coordinates: Iterable[str], joints: tuple[Joint, ...], place: Place) -> ModelError:
    for joint in joints:
        if joint.name == written and (joint.type == "fixed" or joint.kind != ONE_DOF):
            reason = "has no coordinate" if joint.type == "fixed" else "has a quaternion for coordinates"
            return ModelError(f'joint "{joint.name}" cannot be coupled: a {joint.type} joint {reason}', place=place,
                              expected="joints such as revolute or prismatic")
        if joint.name == written:
            return ModelError(f'joint "{joint.name}" has {len(joint.labels)} coordinates', place=place, found=written,
                              expected="one of " + ", ".join(joint.coordinate_names))
    return ModelError("unknown joint in a coupling", place=place, found=written, expected="a joint's name, or joint.label",
                      hint=nearest(written, coordinates))


# validate ---------------------------------------------------------------------------------------------------------------

_NOT_NEGATIVE = ("damping", "friction", "armature", "stiffness")


def validate(robot: Robot) -> Robot:
    """Return the robot with unit axes, one `Coordinate` for each velocity coordinate, and its warnings (the loader's first).

    Raises ModelError, with file, line and element, for a robot that cannot be computed correctly. Causes are a number that is not
    finite or larger than MAX_INPUT, negative mass, a body whose inertia is not positive semidefinite beyond rounding, duplicate
    or unknown names, two parents, cycles, unconnected links, no root for a floating base, unknown joint types, axes or screws
    without direction, parallel universal axes, swapped limits, negative damping, friction, armature or stiffness, and springs or
    position limits of a joint without such a coordinate. For constraints, they are closures between links of one body or without
    length or radius, and couplings of coordinates that do not exist, appear twice or are quaternions. Axes that are not of unit
    length are a warning; screws are never scaled.

    `model.build` checks whether each joint moves an inertia.
    """
    if robot.base not in ("fixed", "floating"):
        raise ModelError("unknown base", place=Place(robot.source, key="base"), found=robot.base, expected="fixed or floating")
    if not isinstance(robot.name, str) or not robot.name.isprintable():
        raise ModelError("a robot needs a name of printable characters", place=Place(robot.source, key="name"), found=robot.name)
    check_finite(robot.gravity, 3, Place(robot.source, key="gravity"), "gravity")
    joints = tuple(_validate_joint(joint) for joint in robot.joints)
    for link in robot.links:
        _check_link(link)
    tree = build_link_tree(replace(robot, joints=joints))
    bodies = {}
    for first, links in links_by_body(tree).items():
        bodies[first] = merge_links(tree, first, links)
        _check_inertia(links, bodies[first])
    _check_coordinate_names(robot.base, joints)
    actuators = tuple(_validate_actuator(actuator, tree) for actuator in robot.actuators)
    loops, couplings = validate_constraints(replace(robot, joints=joints), tree)
    elements = _validate_elements(robot, tree)
    _check_actuated(robot)
    warnings = (*robot.warnings, *robot_warnings(replace(robot, joints=joints, loops=loops), tree, bodies))
    return replace(robot, joints=tuple(map(normalize_axes, joints)), actuators=actuators, loops=tuple(map(normalize_axes, loops)),
                   couplings=couplings, elements=elements, warnings=tuple(WarningLog(warnings)))


def _validate_elements(robot: Robot, tree: LinkTree) -> tuple[ForceElement, ...]:
    if not robot.elements:
        return ()
    return tuple(validate_element(element, tree.links, body_by_link(tree, robot.base)) for element in robot.elements)


def _check_actuated(robot: Robot) -> None:
    """Raise ModelError if `actuated` names a joint twice, or one that does not exist or cannot move."""
    place, moving = Place(robot.source, key="actuated"), {joint.name for joint in robot.joints if joint.type != "fixed"}
    for k, name in enumerate(robot.actuated):
        if name in robot.actuated[:k]:
            raise ModelError("an actuated joint is named twice", place=place, found=name)
        if name not in moving:
            fixed = any(joint.name == name for joint in robot.joints)
            raise ModelError("a fixed joint has no motor" if fixed else "unknown joint", place=place, found=name,
                             expected="the name of a moving joint", hint=nearest(name, moving))


def validate_changes(robot: Robot, original: Robot) -> Robot:
    """Validate a robot that differs from the validated robot `original` only in numbers of links, joints and gravity."""
    check_finite(robot.gravity, 3, Place(robot.source, key="gravity"), "gravity")
    links = [link for link, old in zip(robot.links, original.links, strict=True) if link is not old]
    joints = [joint for joint, old in zip(robot.joints, original.joints, strict=True) if joint is not old]
    for link in links:
        _check_link(link)
    for joint in joints:
        check_pose(joint.origin, element_location(joint, "origin"), "origin")
        for coordinate in joint.coordinate_parameters:
            _check_coordinate(joint, coordinate)
    if not links and not joints:
        return robot
    tree, names = build_link_tree(robot), {*(link.name for link in links),
                                           *(joint.child for joint in joints if joint.type == "fixed")}
    groups = links_by_body(tree)
    bodies = {first: merge_links(tree, first, members) for first, members in groups.items()}
    for first, members in groups.items():
        if not names.isdisjoint(link.name for link in members):
            _check_inertia(members, bodies[first])
    warnings = (*loader_warnings(original), *robot_warnings(robot, tree, bodies))
    return replace(robot, warnings=tuple(WarningLog(warnings)))


def loader_warnings(robot: Robot) -> tuple[LiedynWarning, ...]:
    """Return the warnings of a validated robot without those that `validate` repeats."""
    tree = build_link_tree(robot)
    bodies = {first: merge_links(tree, first, members) for first, members in links_by_body(tree).items()}
    repeated = set(robot_warnings(robot, tree, bodies))
    return tuple(warning for warning in robot.warnings if warning not in repeated)


def _check_link(link: Link) -> None:
    check_finite((link.mass,), 1, element_location(link, "mass"), "mass")
    check_finite(link.com, 3, element_location(link, "com"), "centre of mass")
    check_finite(link.inertia, 6, element_location(link, "inertia"), "inertia")
    if link.mass < 0:
        raise ModelError("negative mass", place=element_location(link, "mass"), found=link.mass, expected="zero or more")


def _check_inertia(links: list[Link], body: Body) -> None:
    """Raise ModelError if the inertia of a body is not positive semidefinite. The error names the worst of its links."""
    if is_not_semidefinite(body.inertia, body.mass):
        link = min(links, key=lambda link: principal_inertias(symmetric_matrix(link.inertia))[0])
        values = [float(f"{x:.4g}") for x in principal_inertias(symmetric_matrix(link.inertia))]
        xx, yy, zz, xy, xz, yz = link.inertia
        reordered = principal_inertias(symmetric_matrix((xx, xy, xz, yy, yz, zz)))[0] >= 0.0
        raise ModelError("the inertia is not positive semidefinite", place=element_location(link, "inertia"),
                         found=values, expected="principal inertias >= 0",
                         hint="six numbers are xx, xy, xz, yy, yz, zz" if reordered else None)


def _validate_joint(joint: Joint) -> Joint:
    """Return the joint with one `Coordinate` for each velocity coordinate. Raise ModelError if it is not valid."""
    check_joint_type(joint)
    check_pose(joint.origin, element_location(joint, "origin"), "origin")
    _check_axes(joint)
    _check_no_other_parameters(joint, JOINT_TYPES, "joint")
    for name in JOINT_TYPES[joint.type].parameters:
        if isinstance(value := getattr(joint, name), int | float):
            check_finite((value,), 1, element_location(joint, name), name)
    if "sequence" in JOINT_TYPES[joint.type].parameters:
        _check_sequence(joint)
    if "screws" in JOINT_TYPES[joint.type].parameters:
        _check_screws(joint)
    if joint.mimic:
        check_finite((joint.mimic.multiplier, joint.mimic.offset), 2, element_location(joint, "mimic"), "multiplier and offset")
    coordinates = joint.coordinate_parameters
    if len(coordinates) != len(joint.labels):
        raise ModelError("wrong number of coordinates", place=element_location(joint), found=len(coordinates),
                         expected=f"{len(joint.labels)} for a joint of type {joint.type}")
    for coordinate in coordinates:
        _check_coordinate(joint, coordinate)
    return replace(joint, coordinates=coordinates)


def _check_axes(joint: Joint) -> None:
    place, count = element_location(joint, "axis"), len(JOINT_TYPES[joint.type].axes)
    check_axes(joint.axes, count, f"a joint of type {joint.type}", place)
    if count == 2:
        check_not_parallel(joint.axes, place)


def _check_sequence(joint: Joint) -> None:
    letters = joint.sequence
    if len(letters) != 3 or set(letters) - set("xyz") or any(a == b for a, b in pairwise(letters)):
        raise ModelError("wrong sequence of Euler angles", place=element_location(joint, "sequence"), found=letters,
                         expected="three of the letters x y z, neighbours different, such as zyx")


def _check_screws(joint: Joint) -> None:
    place = element_location(joint, "screws")
    if not 1 <= len(joint.screws) <= 6:
        raise ModelError("wrong number of screws", place=place, found=len(joint.screws), expected="1 to 6")
    for screw in joint.screws:
        check_finite(screw, 6, place, "screw")
        if not has_direction(screw):
            raise ModelError("a screw is the zero vector", place=place, found=list(screw), expected="[wx, wy, wz, vx, vy, vz]")


def _check_coordinate(joint: Joint, coordinate: Coordinate) -> None:
    for name in ("damping", "armature", "stiffness", "rest"):
        _check_figure(joint, coordinate, name)
    check_friction(joint, coordinate)
    place = element_location(joint, "limits")
    limits = tuple(getattr(coordinate, name) for name in LIMITS)
    if any(map(math.isnan, limits)) or coordinate.lower == math.inf or -math.inf in limits[1:]:
        raise ModelError("a limit is not a number", place=place, found=list(limits), expected=", ".join(LIMITS))
    if coordinate.lower > coordinate.upper:
        raise ModelError("the limits are swapped", place=place, found=[coordinate.lower, coordinate.upper],
                         expected="the lower limit first")
    if joint.kind != ONE_DOF and (coordinate.stiffness or coordinate.rest):
        raise ModelError(f"a {joint.type} joint has no spring", place=element_location(joint, "stiffness"),
                         hint="its coordinates are a quaternion")
    if not JOINT_TYPES[joint.type].bounded and math.isfinite(coordinate.lower - coordinate.upper):
        raise ModelError(f"a {joint.type} joint has no lower and upper limit", place=place)


def _check_figure(joint: Joint, coordinate: Coordinate, name: str) -> None:
    value = getattr(coordinate, name)
    check_finite((value,), 1, element_location(joint, name), name)
    if name in _NOT_NEGATIVE and value < 0:
        raise ModelError(f"negative {name}", place=element_location(joint, name), found=value, expected="zero or more")


def check_friction(joint: Joint, coordinate: Coordinate) -> None:
    """Raise ModelError for wrong friction of a coordinate of a joint."""
    _check_figure(joint, coordinate, "friction")
    place, level, static = element_location(joint, "friction"), coordinate.friction, coordinate.static_friction
    check_finite((static, coordinate.stribeck_speed, coordinate.friction_speed), 3, place, "friction")
    if not MIN_FRICTION_SPEED <= coordinate.friction_speed <= MAX_FRICTION_SPEED:
        raise ModelError("the speed that smooths friction is out of range", place=place, found=coordinate.friction_speed,
                         expected=f"{MIN_FRICTION_SPEED:g} to {MAX_FRICTION_SPEED:g} rad/s or m/s")
    if len({each.rigid_friction for each in joint.coordinate_parameters}) > 1:
        raise ModelError("friction is rigid in some coordinates of the joint", place=place, expected="one model for all")
    if not coordinate.rigid_friction:
        if static or coordinate.stribeck_speed:
            raise ModelError("static and stribeck belong to rigid friction", place=place, expected="model: rigid")
        return
    if joint.kind != ONE_DOF:
        raise ModelError(f"rigid friction is not supported for a {joint.type} joint", place=place, expected="model: regularized")
    if static and static < level:
        raise ModelError("the static level of friction is below the level in motion", place=place, found=static,
                         expected=f"at least {level:g}")
    if coordinate.stribeck_speed < 0.0 or (coordinate.stribeck_speed and static <= level):
        raise ModelError("wrong speed of the Stribeck curve", place=place, found=coordinate.stribeck_speed,
                         expected="a positive speed, and a static level above the level in motion")


def _check_coordinate_names(base: str, joints: tuple[Joint, ...]) -> None:
    """Raise ModelError if coordinate names (`joint` or `joint.label` in files) are not unique."""
    if base == "floating":
        joints = (Joint("base", "free", "", ""), *joints)
    quaternion = ("qx", "qy", "qz", "qw")
    taken: dict[str, Joint] = {}
    for joint in joints:
        labels = {"ball": quaternion, "free": ("px", "py", "pz", *quaternion)}.get(joint.type, ())
        for label in dict.fromkeys(("", *joint.labels, *labels)):
            name = coordinate_name(joint.name, label)
            other = taken.setdefault(name, joint)
            if other is not joint:
                owner = "the floating base" if other is joints[0] and base == "floating" else f'joint "{other.name}"'
                raise ModelError(f'a coordinate of {owner} is also called "{name}"', place=element_location(joint),
                                 expected="another name")


_DEFAULT_ACTUATOR = Actuator("")


def _validate_actuator(actuator: Actuator, tree: LinkTree) -> Actuator:
    if actuator.joints and actuator.link:
        raise ModelError("an actuator is a thruster on a link, or a tendon over joints", place=element_location(actuator),
                         found="link and joints", expected="one of them")
    joints, names = {joint.name: joint for joint in tree.joints}, [name for name, _ in actuator.joints]
    if len(set(names)) < len(names):
        raise ModelError("the tendon has two terms of a joint", place=element_location(actuator, "joints"), found=names,
                         expected="one factor for each joint")
    for key in ("position", "axis", "torque_ratio") if actuator.joints else ():
        if getattr(actuator, key) != getattr(_DEFAULT_ACTUATOR, key):
            raise ModelError(f"{key} does not apply to a tendon over joints", place=element_location(actuator, key),
                             found=getattr(actuator, key), expected="joints and limits")
    for name, factor in actuator.joints:
        place = element_location(actuator, "joints")
        if name not in joints:
            raise ModelError("unknown joint", place=place, found=name, expected="a joint's name", hint=nearest(name, joints))
        if len(joints[name].labels) != 1:
            raise ModelError(f"a tendon acts on joints with one coordinate, and {name} is of type {joints[name].type}",
                             place=place, found=name)
        check_finite((factor,), 1, place, f"coefficient of {name}")
    if actuator.joints and not any(factor for _, factor in actuator.joints):
        raise ModelError("the tendon moves no joint", place=element_location(actuator, "joints"), found=dict(actuator.joints),
                         expected="a coefficient that is not zero")
    if not actuator.joints and actuator.link not in tree.links:
        raise ModelError("the actuator is not on a link of this robot", place=element_location(actuator, "link"),
                         found=actuator.link,
                         expected="a link's name, or joints of a tendon", hint=nearest(actuator.link, tree.links))
    check_finite(actuator.position, 3, element_location(actuator, "position"), "position")
    check_finite(actuator.axis, 3, element_location(actuator, "axis"), "axis")
    check_finite((actuator.torque_ratio,), 1, element_location(actuator, "torque_ratio"), "torque ratio")
    check_direction(actuator.axis, element_location(actuator, "axis"))
    if actuator.limits is not None:
        check_finite(actuator.limits, 2, element_location(actuator, "limits"), "limits")
        if not actuator.limits[0] < actuator.limits[1]:
            raise ModelError("the minimum thrust is not below the maximum", place=element_location(actuator, "limits"),
                             found=list(actuator.limits), expected="[minimum, maximum] [N]")
    return replace(actuator, axis=normalize_axis(actuator.axis))
