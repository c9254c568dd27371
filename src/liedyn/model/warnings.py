"""Warnings about robots that can be computed but are probably not intended."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import LiedynWarning, Place, list_names
from liedyn.model.coupling_expression import CouplingFunction
from liedyn.model.description import LIMITS, Coordinate, Coupling, Joint, Loop, Robot, Screw, coordinate_name
from liedyn.model.element_values import element_location
from liedyn.model.link_tree import Body, Element, LinkTree, links_by_body, principal_inertias
from liedyn.model.links import Link
from liedyn.model.spatial import symmetric_matrix

TRIANGLE_ROUNDING = 1e-6             # of the maximum principal inertia: below it is the rounding of a printed number
SEMIDEFINITE_ROUNDING = 1e-9         # of the maximum principal inertia: a negative one that small is rounding
NO_INERTIA = 1e-12                   # m^2, in SI since files are: a radius of gyration below 1 um is noise of CAD programs
GYRATION = (1e-4, 10.0)              # m, in SI since it looks for wrong units: outside is absurd for a robot's body
DEPENDENT = 1e-9                     # of screws of unit length: a singular value below it is rounding of a printed number
# of tables, in SI since they look for wrong units
_FAR = 10.0                          # of the limits: values beyond them by this factor may be in degrees or mm
_ANY_ANGLE = 4 * math.pi             # rad: the same of angles without limits
_DEGREES = (5.0, 3600.0)             # limits beyond it that are multiples of the first and at most the second may be in degrees
_FAR_ORIGIN = 100.0                  # m: a joint that is further from that of its parent may be in mm
_STEEP = 100.0                       # rad/rad: no cam or linkage is so steep
UNIT_ROUNDING = 1e-5                 # of an axis's length: rounding of a printed number


def robot_warnings(robot: Robot, tree: LinkTree, bodies: dict[str, Body]) -> Iterator[LiedynWarning]:
    """Yield the warnings of a robot without errors. Its axes must not be normalized yet."""
    turns = {tree.root: robot.base == "floating"}
    for joint in tree.joints:
        turns[joint.child] = turns.get(joint.parent, False) or joint.type not in ("fixed", "prismatic")
    for first, links in links_by_body(tree).items():
        if len(links) > 1:
            for link in links:
                if is_not_semidefinite(symmetric_matrix(link.inertia), link.mass):
                    yield _warning("negative-inertia", link, "its own inertia is not positive semidefinite", "inertia")
        if first in tree.links and (first != tree.root or robot.base == "floating"):
            yield from _body_warnings(tree.links[first], bodies[first], len(links), turns[first])
    followers = {coupling.terms[0][0] for coupling in robot.couplings if coupling.function is not None}
    for joint in robot.joints:
        yield from _joint_warnings(joint, followers)
    for coupling in robot.couplings:
        yield from _table_warnings(coupling, robot)
    for loop in robot.loops:
        yield from _axis_warnings(loop)


def is_not_semidefinite(inertia: Array, mass: float) -> bool:
    """Return whether an inertia about the com is not positive semidefinite beyond rounding (and beyond that of a micrometre)."""
    values = principal_inertias(inertia)
    return bool(values[0] < -(SEMIDEFINITE_ROUNDING * np.abs(values).max() + NO_INERTIA * mass))


def _warning(code: str, element: Element, message: str, part: str | None = None) -> LiedynWarning:
    place = element_location(element, part)
    return LiedynWarning(code, message, place=Place(place.file, place.line, element.name))


def _body_warnings(link: Link, body: Body, count: int, turns: bool) -> Iterator[LiedynWarning]:
    of = "" if count == 1 else f" ({count} links welded together)"
    negligible = NO_INERTIA * body.mass
    small, middle, large = map(float, principal_inertias(body.inertia))
    if large > small + middle + TRIANGLE_ROUNDING * abs(large) and large > negligible:
        yield _warning("triangle-inequality", link, f"the body{of} has principal inertias {small:.4g}, {middle:.4g}, {large:.4g} "
                       "kg m^2: the maximum exceeds the sum of the others", "inertia")
    if body.mass > 0 and large <= negligible:
        if turns:
            yield _warning("point-mass", link, f"the body{of} has mass {body.mass:.4g} kg and no rotational inertia", "inertia")
    elif body.mass > 0 and not GYRATION[0] <= (radius := math.sqrt(large / body.mass)) <= GYRATION[1]:
        yield _warning("inertia-far-off", link, f"the body{of} of {body.mass:.4g} kg has a radius of gyration of {radius:.3g} m",
                       "inertia")
    elif body.mass == 0 and body.inertia.any():
        yield _warning("inertia-far-off", link, f"the body{of} has rotational inertia and no mass", "inertia")


def _axis_warnings(element: Joint | Loop) -> Iterator[LiedynWarning]:
    for axis in element.axes:
        length = math.hypot(*axis)
        if abs(length - 1) > UNIT_ROUNDING:
            yield _warning("axis-not-unit", element, f"the axis has length {length:.6g}; it was scaled to 1", "axis")


def _table_warnings(coupling: Coupling, robot: Robot) -> Iterator[LiedynWarning]:
    """Yield warnings about the range and the units of a table. terms: as written, with names in files."""
    function = coupling.function
    if function is None or not function.points:
        return
    names = [coordinate_name(*term[:2]) for term in coupling.terms[1::-1]]                  # driver and follower
    sides = {name: (unit, limits) for joint in robot.joints for name, unit, limits in
             zip(joint.coordinate_names, joint.units, joint.coordinate_parameters, strict=True) if name in names}
    low, high = function.points[0][0], function.points[-1][0]
    limits, slack = sides[names[0]][1], UNIT_ROUNDING * (high - low)
    if reason := _units_of_table(function, names, sides):
        yield _warning("table-units", coupling, f"the table does not seem to be in rad and m: {reason}; give its columns units, "
                       'such as "driver[deg]" or, of a curve, "yaw[deg]"', "function")
    elif not function.periodic and not (limits.lower >= low - slack and limits.upper <= high + slack):
        yield _warning("coupling-beyond-table", coupling, f"straight lines continue the table beyond {low:g} to {high:g} "
                       f"of {names[0]}, whose limits are {limits.lower:g} to {limits.upper:g}", "function")


def _units_of_table(function: CouplingFunction, names: Sequence[str], sides: Mapping[str, tuple[str, Coordinate]]) -> str:
    """Return why a table without declared units seems to be in degrees or mm; empty if it does not."""
    for name, column, declared in zip(names, np.transpose(function.points), function.units, strict=True):
        unit, limits = sides[name]
        size, reach = float(np.abs(column).max()), max(abs(limits.lower), abs(limits.upper))
        limited = 0.0 < reach < math.inf
        if not declared and size > (_FAR * reach if limited else _ANY_ANGLE if unit == "rad" else math.inf):
            return f"{name} reaches {size:g} {unit}" + (f", its limit is {reach:g} {unit}" if limited else "")
    x, y = np.transpose(function.points)
    slope = float(np.abs(np.diff(y) / np.diff(x)).max())
    if not any(function.units) and {sides[name][0] for name in names} == {"rad"} and slope > _STEEP:
        return f"{names[1]} turns by {slope:.3g} rad per rad of {names[0]}"
    return ""


def _joint_warnings(joint: Joint, followers: set[str]) -> Iterator[LiedynWarning]:
    yield from _axis_warnings(joint)
    distance = math.hypot(*joint.origin.translation)
    if distance > _FAR_ORIGIN:
        yield _warning("lengths-units", joint, f"its origin is {distance:.4g} m from its parent and seems to be in mm",
                       "origin")
    for label, limits in zip(joint.labels, joint.coordinates, strict=True):
        of = f" of {label}" if label else ""
        missing = [name for name, value in (("lower", limits.lower), ("upper", limits.upper)) if math.isinf(value)]
        if joint.type in ("revolute", "prismatic") and missing and joint.name not in followers:
            suggestion = ", or type: continuous if it turns without limits" if joint.type == "revolute" else ""
            yield _warning("limits-missing", joint, f"the {joint.type} joint has no {' and '.join(missing)} limit "
                           f"(give it limits{suggestion})", "limits")
        if limits.lower == limits.upper:
            yield _warning("limits-zero-range", joint, f"lower and upper limit{of} are both {limits.lower:g}", "limits")
        degrees = [x for x in (limits.lower, limits.upper) if _ANY_ANGLE < abs(x) <= _DEGREES[1] and x % _DEGREES[0] == 0.0]
        if degrees and joint.type == "revolute":
            x = degrees[0]
            yield _warning("limits-units", joint, f"the limit {x:g} rad is {x / math.tau:.3g} turns and seems to be in degrees; "
                           f"{x:g} degrees are {math.radians(x):.6g} rad", "limits")
        for name in LIMITS[2:]:
            if (value := getattr(limits, name)) < 0:
                yield _warning("limits-negative", joint, f"the {name} limit{of} is {value:g}", "limits")
    if joint.type == "euler" and joint.sequence[0] == joint.sequence[2]:
        yield _warning("singular-at-zero", joint, f"the Euler angles {joint.sequence} are singular at zero", "sequence")
    if joint.type == "screws" and _are_dependent(joint.screws):
        yield _warning("singular-at-zero", joint, "the screws are linearly dependent at zero", "screws")


def _are_dependent(screws: Sequence[Screw]) -> bool:
    """Return whether screws are linearly dependent. The longest lever arm of the screws converts moments to directions."""
    S = np.array(screws, dtype=float)
    size = np.linalg.norm(S[:, :3], axis=1)
    turns = size > 0.0
    arm = (np.linalg.norm(S[turns, 3:], axis=1) / size[turns]).max(initial=0.0) or 1.0
    S[turns, 3:] /= arm
    return bool(np.linalg.matrix_rank(S / np.linalg.norm(S, axis=1, keepdims=True), tol=DEPENDENT) < len(screws))


def fixed_joints_warning(couplings: Sequence[Coupling], names: Sequence[str]) -> LiedynWarning:
    """Return the warning about coordinates that couplings fix together (`couplings.jointly_fixed`)."""
    fixing = [coupling for coupling in couplings if {coordinate_name(*term[:2]) for term in coupling.terms} & set(names)]
    return _warning("couplings-fix-joints", fixing[-1], f"the couplings {list_names([x.name for x in fixing], 4)} together fix "
                    f"{list_names(names, 4)}: a simulation does not move them. Are their coefficients rounded differently?")


# Joints without inertia --------------------------------------------------------------------------------------------------

def inertia_warnings(robot: Robot, joints: Iterable[Joint]) -> Iterator[LiedynWarning]:
    """Yield a warning for each joint that moves no inertia, or one warning for a robot without any inertia."""
    if not any(link.mass or any(link.inertia) for link in robot.links) and not any(
            coordinate.armature for joint in robot.joints for coordinate in joint.coordinates):
        yield LiedynWarning("no-inertia", f"no link of the robot {robot.name} has mass or inertia: joint torques do not "
                            "determine accelerations", place=Place(robot.source),
                            hint="for forward dynamics, prescribe all joints, or give links mass and inertia")
        return
    for joint in joints:
        place = element_location(joint)
        yield LiedynWarning("no-inertia", f"{describe_missing_inertia(robot, joint)}: its torque does not determine its "
                            "acceleration",
                            place=Place(place.file, place.line, joint.name),
                            hint="for forward dynamics, prescribe the joint, or give the link mass and inertia, or the joint "
                            "armature")


def describe_missing_inertia(robot: Robot, joint: Joint) -> str:
    """Return text on why the acceleration of a joint does not follow from its torque."""
    links, with_mass = [joint.child], {link.name for link in robot.links if link.mass > 0.0}
    for link in links:
        links += [other.child for other in robot.joints if other.parent == link]
    if joint.child not in with_mass and with_mass.intersection(links):
        return (f'the joint can move link "{joint.child}", which has no inertia, while the joints after it keep all masses '
                "at rest")
    return f'the joint moves link "{joint.child}", which has no inertia'
