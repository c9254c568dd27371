"""Joints along a curve, as single joints with massless links between them and couplings.

The pose of the child in the joint frame is that of x, y, z, roll, pitch and yaw, T = Trans(x, y, z) Rz(yaw) Ry(pitch) Rx(roll),
as in `origin`. One of them is the coordinate of the joint. The others are functions of it, or zero. Each component in use is a
joint: the coordinate has the name of the whole joint, and a follower is called knee.x in a knee.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from liedyn.arrays import ArrayLike
from liedyn.errors import ModelError, Place, nearest
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.description import Coordinate, Coupling, CurveJoint, Joint
from liedyn.model.element_values import as_floats, element_location
from liedyn.model.links import Link, Pose

CURVE_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
CURVE_AXES |= {"yaw": CURVE_AXES["z"], "pitch": CURVE_AXES["y"], "roll": CURVE_AXES["x"]}          # in the order of the product


def curve_joint(name: str, parent: str, child: str, coordinate: str, functions: Mapping[str, str] | None = None, *,
                table: Mapping[str, ArrayLike] | None = None, interpolation: str = "cubic", periodic: bool = False,
                **arguments: Any) -> CurveJoint:
    """Return a joint along a curve, one of the `joints` of a `Robot`: components of its pose are functions of one of them.

    Parameters
    ----------
    name, parent, child : str
        As for `Joint`.
    coordinate : str
        The component of the pose that is the coordinate: x, y, z, roll, pitch or yaw.
    functions : {component: expression}
        Of other components [rad | m], as functions of the coordinate, by the name of the joint or q. Others are zero.
    table : {component: numbers}
        In place of `functions`: points of the components and of the coordinate, which increases [rad | m].
    interpolation, periodic
        Of the table, as in a robot file.
    **arguments
        origin, limits, damping, friction, armature, stiffness, rest and mimic of a `Joint`.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> links = [ld.Link("cart", mass=1.0, inertia=[0.1, 0.1, 0.1])]
    >>> rail = ld.curve_joint("rail", "world", "cart", "x", {"z": "0.1*cos(q)"}, limits=(-1, 1))
    >>> ld.build(ld.Robot("cart", links, [rail])).joint_names
    ('rail', 'rail.z')
    """
    place = Place(key=f'joint "{name}"')
    if coordinate not in CURVE_AXES:
        raise ModelError("not a component of the pose", place=place, found=coordinate, expected="one of " + ", ".join(CURVE_AXES),
                         hint=nearest(coordinate, CURVE_AXES))
    if (functions is None) == (table is None):
        raise ModelError("a curve requires functions or a table", place=place, expected="one of functions, table")
    components = {} if functions is None else \
        {component: read_expression(text, name, place) for component, text in functions.items()}
    if table is not None:
        columns = {component: as_floats(x) for component, x in table.items()}
        if coordinate not in columns or len({len(column) for column in columns.values()}) != 1:
            raise ModelError("wrong columns in the table of a curve", place=place,
                             found=", ".join(f"{component}: {len(x)} numbers" for component, x in columns.items()),
                             expected=f"a column {coordinate}")
        components = {component: CouplingFunction(points=tuple(zip(columns[coordinate], x, strict=True)),
                                                  interpolation=interpolation, periodic=periodic)
                      for component, x in columns.items() if component != coordinate}
    for component in components:
        if component not in CURVE_AXES or component == coordinate:
            raise ModelError("not a component that is a function of the coordinate", place=place, found=component,
                             expected=", ".join(each for each in CURVE_AXES if each != coordinate))
    kind = "prismatic" if coordinate in ("x", "y", "z") else "revolute"
    return along_curve(Joint(name, kind, parent, child, axis=CURVE_AXES[coordinate], **arguments), coordinate, components)


def along_curve(driver: Joint, coordinate: str, functions: Mapping[str, CouplingFunction]) -> CurveJoint:
    """Return the elements of a joint along a curve: links between its joints, the joints and the couplings.

    driver      joint of the component `coordinate`, with the parent, the child and the origin of the whole joint
    functions   of the other components that are not zero

    Raises ModelError without functions.
    """
    if not functions:
        raise ModelError("the curve has no other components", place=element_location(driver),
                         hint="a single component is a joint of another type")
    used = [component for component in CURVE_AXES if component in functions or component == coordinate]
    names = {component: driver.name if component == coordinate else f"{driver.name}.{component}" for component in used}
    joints, links, parent, origin = [], [], driver.parent, driver.origin
    for component in used:
        child = driver.child if component == used[-1] else f"{driver.name}.{component}"
        each = driver.coordinate_parameters if component == coordinate else (Coordinate(),)
        turns, bounded = component in ("yaw", "pitch", "roll"), np.isfinite([each[0].lower, each[0].upper]).any()
        kind = "prismatic" if not turns else "revolute" if bounded else "continuous"
        joints.append(replace(driver, name=names[component], type=kind, parent=parent, child=child, origin=origin,
                              axes=(CURVE_AXES[component],), coordinates=each,
                              mimic=driver.mimic if component == coordinate else None))
        if component != used[-1]:
            links.append(Link(child, place=driver.place))
        parent, origin = child, Pose()
    couplings = (Coupling(names[component], ((names[component], "", 1.0), (driver.name, "", 0.0)), 0.0, driver.place, function)
                 for component, function in functions.items())
    return CurveJoint(tuple(links), tuple(joints), tuple(couplings))
