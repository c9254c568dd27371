"""Joints along a curve in robot YAML: `type: curve`. `model.curve_joint` describes them as single joints and couplings."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from liedyn.errors import ModelError, Place
from liedyn.io.csv_table import foreign_title, read_table
from liedyn.io.file_schema import File
from liedyn.io.robots.coupling_function import Columns, column_in_si
from liedyn.io.robots.robot_schema import CURVE_COMPONENTS, JOINT, LIMITS, MOUNT, friction_of_coordinates, read_limit
from liedyn.io.yaml_nodes import Node
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.curve_joint import CURVE_AXES, along_curve
from liedyn.model.description import Coordinate, CurveJoint, Joint
from liedyn.model.links import Pose

_PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")


def read_curve_joint(name: str, node: Node, names_of_joints: Iterable[str], mount: Mapping[str, Any] | None = None) -> CurveJoint:
    """Return the links between the joints, the joints and the couplings of a node with `type: curve`. Raises ModelError.

    mount   parent, child and origin of a joint that carries an included robot, whose node does not have them
    """
    schema = JOINT if mount is None else MOUNT
    nodes, values = schema.nodes(node), schema.values(node) | dict(mount or {})
    if "mimic" in nodes:
        nodes["mimic"].value["joint"].choice(names_of_joints)
    if ("functions" in nodes) == ("table" in nodes):
        raise node.problem("a curve requires functions or a table", found=[key for key in ("functions", "table") if key in nodes],
                           expected="one of functions, table")
    component, functions = values["coordinate"], dict(_functions(name, nodes, values))
    kind = "prismatic" if component in ("x", "y", "z") else "revolute"
    driver = Joint(name, kind, values["parent"], values["child"], values.get("origin", Pose()), (CURVE_AXES[component],),
                   coordinates=(_coordinate(nodes, values),), mimic=values.get("mimic"), place=node.place)
    return along_curve(driver, component, functions)


def _coordinate(nodes: Mapping[str, Node], values: Mapping[str, Any]) -> Coordinate:
    limit_nodes = nodes["limits"].mapping(LIMITS) if "limits" in nodes else {}
    limits = {key: read_limit(child.number()) for key, child in limit_nodes.items()}
    passive = {key: nodes[key].number() for key in _PASSIVE if key in values and nodes[key].kind != "mapping"}
    if "friction" in nodes and nodes["friction"].kind == "mapping":
        passive |= {field: x for field, (x,) in friction_of_coordinates(nodes["friction"], 1).items()}
    return Coordinate(**limits, **passive)


def _functions(name: str, nodes: Mapping[str, Node], values: Mapping[str, Any]) -> Iterator[tuple[str, CouplingFunction]]:
    """Yield the components that are functions of the coordinate."""
    driver = values["coordinate"]
    for component, text in values.get("functions", {}).items():
        child = nodes["functions"].value[component]
        if component not in CURVE_AXES or component == driver:
            raise child.problem("not a component that is a function of the coordinate", found=component,
                                expected=", ".join(each for each in CURVE_COMPONENTS if each != driver))
        yield component, read_expression(text, name, child.place)
    if "table" not in nodes:
        for key in ("interpolation", "periodic"):
            if key in nodes:
                raise nodes[key].problem(f"{key} requires a table")
        return
    table = nodes["table"]
    columns = _csv_columns(File("CSV file").read(table)) if table.kind == "text" else values["table"]
    if driver not in columns:
        raise table.problem(f"the table has no column of the coordinate {driver}", found=list(columns))
    options = {key: values[key] for key in ("interpolation", "periodic") if key in values}
    for component, (column, unit) in columns.items():
        if component not in CURVE_AXES:
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
        component = foreign_title(title)[0]
        if component not in CURVE_AXES or component in columns:
            raise ModelError("wrong or repeated column of a curve", place=table.place(column=component),
                             found=component, expected=", ".join(CURVE_COMPONENTS))
        si, unit = column_in_si(title, values, table.place(column=component))
        _check_unit(component, unit, table.place(column=component))
        columns[component] = tuple(map(float, si)), unit
    return columns


def _check_unit(component: str, unit: str, place: Place) -> None:
    expected = "m" if component in ("x", "y", "z") else "rad"
    if unit not in ("", expected):
        raise ModelError("the column has the unit of another quantity", place=place, found=unit, expected=expected)
