"""Joints along a curve in robot YAML: `type: curve`, as single joints with massless links between them and couplings.

The pose of the child in the joint frame is that of x, y, z, roll, pitch and yaw, T = Trans(x, y, z) Rz(yaw) Ry(pitch) Rx(roll),
as in `origin`. One of them is the coordinate of the joint. The others are functions of it, or zero. Each component in use is a
joint: the coordinate has the name of the whole joint, and a follower is called knee.x in a knee.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from liedyn.errors import ModelError, Place
from liedyn.io.csv_table import read_table, split_title
from liedyn.io.file_schema import File
from liedyn.io.robots.coupling_function import Columns, column_in_si
from liedyn.io.robots.robot_schema import CURVE_COMPONENTS, JOINT, LIMITS, read_limit
from liedyn.io.yaml_nodes import Node
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.description import Coordinate, Coupling, Joint
from liedyn.model.links import Link, Pose

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_AXES |= {"yaw": _AXES["z"], "pitch": _AXES["y"], "roll": _AXES["x"]}          # in the order of the product
_PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")


class CurveJoint(NamedTuple):
    """The elements of a robot that make a joint along a curve."""

    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    couplings: tuple[Coupling, ...]


def read_curve_joint(name: str, node: Node, names_of_joints: Iterable[str]) -> CurveJoint:
    """Return the links between the joints, the joints and the couplings of a node with `type: curve`. Raises ModelError."""
    nodes, values = JOINT.nodes(node), JOINT.values(node)
    if "mimic" in nodes:
        nodes["mimic"].value["joint"].choice(names_of_joints)
    if ("functions" in nodes) == ("table" in nodes):
        raise node.problem("a curve needs functions or a table", found=[key for key in ("functions", "table") if key in nodes],
                           expected="one of functions, table")
    driver, functions = values["coordinate"], dict(_functions(name, nodes, values))
    if not functions:
        raise node.problem("a curve without other components", hint="a single component is a joint of another type")
    used = [component for component in _AXES if component in functions or component == driver]
    names = {component: name if component == driver else f"{name}.{component}" for component in used}
    joints, links, parent, origin = [], [], values["parent"], values.get("origin", Pose())
    for component in used:
        child = values["child"] if component == used[-1] else f"{name}.{component}"
        coordinate = _coordinate(nodes, values) if component == driver else Coordinate()
        turns, bounded = component in ("yaw", "pitch", "roll"), np.isfinite([coordinate.lower, coordinate.upper]).any()
        kind = "prismatic" if not turns else "revolute" if bounded else "continuous"
        joints.append(Joint(names[component], kind, parent, child, origin, (_AXES[component],), coordinates=(coordinate,),
                            mimic=values.get("mimic") if component == driver else None, place=node.place))
        if component != used[-1]:
            links.append(Link(child, place=node.place))
        parent, origin = child, Pose()
    couplings = tuple(Coupling(names[component], ((names[component], "", 1.0), (name, "", 0.0)), 0.0, node.place, function)
                      for component, function in functions.items())
    return CurveJoint(tuple(links), tuple(joints), couplings)


def _coordinate(nodes: Mapping[str, Node], values: Mapping[str, Any]) -> Coordinate:
    limit_nodes = nodes["limits"].mapping(LIMITS) if "limits" in nodes else {}
    limits = {key: read_limit(child.number()) for key, child in limit_nodes.items()}
    return Coordinate(**limits, **{key: nodes[key].number() for key in _PASSIVE if key in values})


def _functions(name: str, nodes: Mapping[str, Node], values: Mapping[str, Any]) -> Iterator[tuple[str, CouplingFunction]]:
    """Yield the components that are functions of the coordinate."""
    driver = values["coordinate"]
    for component, text in values.get("functions", {}).items():
        child = nodes["functions"].value[component]
        if component not in _AXES or component == driver:
            raise child.problem("not a component that is a function of the coordinate", found=component,
                                expected=", ".join(each for each in CURVE_COMPONENTS if each != driver))
        yield component, read_expression(text, name, child.place)
    if "table" not in nodes:
        for key in ("interpolation", "periodic"):
            if key in nodes:
                raise nodes[key].problem(f"{key} needs a table")
        return
    table = nodes["table"]
    columns = _csv_columns(File("CSV file").read(table)) if table.kind == "text" else values["table"]
    if driver not in columns:
        raise table.problem(f"the table has no column of the coordinate {driver}", found=list(columns))
    options = {key: values[key] for key in ("interpolation", "periodic") if key in values}
    for component, (column, unit) in columns.items():
        if component not in _AXES:
            raise table.problem("not a component of the pose", found=component, expected=", ".join(CURVE_COMPONENTS))
        _check_unit(component, unit, table.place)
        if len(column) != len(columns[driver][0]):
            raise table.problem(f"the columns {driver} and {component} have different lengths",
                                found=[len(columns[driver][0]), len(column)])
        if component != driver:
            yield component, CouplingFunction(points=tuple(zip(columns[driver][0], column, strict=True)),
                                              units=(columns[driver][1], unit), **options)


def _csv_columns(file: str) -> Columns:
    table = read_table(file, ModelError, expected="a line of components such as yaw[deg],x[mm], then rows of numbers")
    columns: Columns = {}
    for title, values in zip(table.titles, table.parse_numbers().T, strict=True):
        component = split_title(title)[0]
        if component not in _AXES or component in columns:
            raise ModelError("a column of a curve is a component of the pose, once", place=table.place(column=component),
                             found=component, expected=", ".join(CURVE_COMPONENTS))
        si, unit = column_in_si(title, values, table.place(column=component))
        _check_unit(component, unit, table.place(column=component))
        columns[component] = tuple(map(float, si)), unit
    return columns


def _check_unit(component: str, unit: str, place: Place) -> None:
    expected = "m" if component in ("x", "y", "z") else "rad"
    if unit not in ("", expected):
        raise ModelError("the column has the unit of another quantity", place=place, found=unit, expected=expected)
