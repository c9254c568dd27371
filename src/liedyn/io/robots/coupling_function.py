"""Functions of nonlinear couplings and force elements in robot files: tables in the file or in a CSV, and writing."""
from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ModelError, Place, nearest
from liedyn.io.csv_table import foreign_title, read_table, title_unit
from liedyn.io.file_schema import List, Number
from liedyn.io.units import UNITS, unit_name, unit_of
from liedyn.io.yaml_nodes import Node
from liedyn.model.coupling_expression import CouplingFunction

# tables -------------------------------------------------------------------------------------------------------------

Columns: TypeAlias = dict[str, tuple[tuple[float, ...], str]]          # values in SI and unit (rad, m, "" without one), by name
_SIDES = "driver", "follower"


def read_points(node: Node) -> tuple[tuple[float, float], ...] | Columns | str:
    """Return the points [x, f(x)] of a list, the columns of a mapping, or the text of a node that names a CSV."""
    if node.kind == "text":
        return node.text()
    if node.kind == "mapping":
        return read_columns(node)
    return tuple(tuple(row.vector(2)) for row in node.items(minimum=2, of="points [driver, follower]"))     # type: ignore[misc]


def read_columns(node: Node) -> Columns:
    """Return the columns of a mapping such as {"driver[deg]": [0, 90], …}. Raises ModelError."""
    columns: Columns = {}
    for title, child in node.mapping().items():
        name, values = foreign_title(title)[0], np.array(List(Number(), 2).read(child))
        if name in columns:
            raise child.problem("two columns have the same name", found=name)
        si, unit = column_in_si(title, values, child.place)
        columns[name] = tuple(map(float, si)), unit
    return columns


def points_of_columns(columns: Columns, node: Node) -> tuple[tuple[tuple[float, float], ...], tuple[str, str]]:
    """Return the points of the columns `driver` and `follower`, and their units. Raises ModelError at the node."""
    if sorted(columns) != [*_SIDES]:
        raise node.problem("wrong columns in the table of a coupling", found=[*columns],
                           expected="driver[deg] and follower[mm], with these or other units")
    (x, x_unit), (y, y_unit) = (columns[side] for side in _SIDES)
    if len(x) != len(y):
        raise node.problem("the columns driver and follower have different lengths", found=[len(x), len(y)])
    return tuple(zip(x, y, strict=True)), (x_unit, y_unit)


def read_csv(file: str, driver: str, follower: str) -> tuple[tuple[tuple[float, float], ...], tuple[str, str]]:
    """Return the points of a CSV with two columns, driver and follower, and their units after conversion to SI ("" if none).

    Titles may be any, but not the names of both in the other order.
    """
    table = read_table(file, ModelError, expected="a line of two column names, then rows of numbers")
    if len(table.titles) != 2:
        raise ModelError("wrong number of columns in the table of a coupling", place=table.place(), found=len(table.titles),
                         expected="2, driver and follower, such as cam[rad],lift[m]")
    names = tuple(foreign_title(title)[0] for title in table.titles)
    if names == (follower, driver):
        raise ModelError("the driver must be the first column in the table of a coupling",
                         place=table.place(), found=",".join(names),
                         expected=f"{driver},{follower}")
    (x, x_unit), (y, y_unit) = (column_in_si(title, values, table.place(column=name), (driver, follower)) for title, name, values
                                in zip(table.titles, names, table.parse_numbers().T, strict=True))
    return tuple((float(a), float(b)) for a, b in zip(x, y, strict=True)), (x_unit, y_unit)


def read_force_csv(file: str, units: tuple[str, str]) -> tuple[tuple[float, float], ...]:
    """Return the points of a CSV with two columns in these units: a length, angle or speed, and a force. Raises ModelError."""
    table = read_table(file, ModelError, expected="a line of two column names, then rows of numbers")
    if len(table.titles) != 2:
        raise ModelError("a table of a force element has two columns", place=table.place(), found=len(table.titles),
                         expected=f"such as x[{units[0]}],force[{units[1]}]")
    columns = []
    for title, values, expected in zip(table.titles, table.parse_numbers().T, units, strict=True):
        name, unit = foreign_title(title)[0], unit_of(title_unit(title) or expected)
        if unit is None or unit.exponents != unit_of(expected).exponents:           # type: ignore[union-attr]
            raise ModelError("a column of a table of a force element has another unit", place=table.place(column=name),
                             found=title_unit(title), expected=expected, hint=None if unit else nearest(title_unit(title), UNITS))
        columns.append(unit.in_si(values))
    return tuple(zip(*(column.tolist() for column in columns), strict=True))


def column_in_si(title: str, values: Array, place: Place, joints: Collection[str] = ()) -> tuple[Array, str]:
    """Return the values of a column in SI, and their unit: rad, m, or "" for a title without a unit. Raises ModelError.

    joints  names whose end is not a unit, as in slide_mm
    """
    text = "" if title in joints else title_unit(title)
    if not text:
        return values, ""
    unit = unit_of(text)
    if unit is None or unit_name(unit.exponents) not in ("rad", "m"):
        raise ModelError("wrong unit in the table of a coupling", place=place,
                         found=text, expected="a unit of angle or length: rad, deg, m, mm, …", hint=nearest(text, UNITS))
    return unit.in_si(values), unit_name(unit.exponents)


def function_to_dict(function: CouplingFunction) -> dict[str, Any]:
    """Return a function as in a file."""
    if not function.points:
        return {"function": function.text}
    return {"table": [list(point) for point in function.points],
            "interpolation": None if function.interpolation == "cubic" else function.interpolation,
            "periodic": function.periodic or None}
