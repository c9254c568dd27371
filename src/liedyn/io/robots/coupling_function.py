"""Functions of nonlinear couplings in robot files: expressions of the driver, and tables in the file or in a CSV."""
from __future__ import annotations

import ast
import re
from typing import Any, TypeAlias

from liedyn.arrays import Array
from liedyn.errors import ModelError, Place, nearest
from liedyn.io.csv_table import CsvTable, read_table, split_title
from liedyn.io.units import UNITS, unit_name, unit_of
from liedyn.io.yaml_nodes import Node
from liedyn.model.description import BINARY_OPERATIONS, UNARY_OPERATIONS, CouplingFunction
from liedyn.model.expression_parser import CONSTANTS, ExpressionParser

DRIVER = "q"                        # name of the driver's position in an expression, besides the name of its joint
FUNCTIONS = tuple(name for name in (*UNARY_OPERATIONS, "atan2") if name != "negative")
_KINKS = ("abs", "sign", "floor", "step", "min", "max", "clip")       # of expressions elsewhere
_OPERATORS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}

Operations: TypeAlias = list[tuple[str, float]]


# expressions --------------------------------------------------------------------------------------------------------

def read_expression(text: str, driver: str, place: Place) -> CouplingFunction:
    """Return the function of an expression of the driver, which is called by its name or `q`. Raises ModelError."""
    return CouplingFunction(text, tuple(_FunctionParser(text, driver, place).read()))


class _FunctionParser(ExpressionParser):
    """Parser of functions of one variable. Values are lists of operations in postfix order."""

    raises = ModelError

    def __init__(self, text: str, driver: str, place: Place):
        super().__init__(text, place)
        self.driver = driver

    def without_names(self, text: str) -> tuple[str, str]:
        name = re.compile(rf"(?<![\w.]){re.escape(self.driver)}(?![\w.(])")
        return name.sub(DRIVER, text), name.sub(DRIVER, text)

    def number_value(self, x: float) -> Operations:
        return [("literal", x)]

    def name_value(self, node: ast.Name) -> Operations:
        if node.id == DRIVER:
            return [("driver", 0.0)]
        if node.id in CONSTANTS:
            return [("literal", CONSTANTS[node.id])]
        raise self.error(f"unknown name {node.id[:100]}", expected=f"{self.driver} or {DRIVER}, {', '.join(CONSTANTS)}",
                         hint="t is not available: a coupling depends on the driver only" if node.id == "t"
                         else nearest(node.id, (self.driver, *FUNCTIONS)))

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: Operations) -> Operations:
        name = "negative" if isinstance(node, ast.UnaryOp) else _OPERATORS[type(node.op)]
        if name == "divide" and values[1] == [("literal", 0.0)]:
            raise self.error("a division by zero", node)
        return [*(operation for value in values for operation in value), (name, 0.0)]

    def call_value(self, name: str, node: ast.Call, depth: int) -> Operations:
        if name in _KINKS:
            raise self.error(f"{name} has kinks or jumps, but a coupling must be smooth", node,
                             expected=", ".join(FUNCTIONS), hint="a table is interpolated by a smooth curve")
        if name not in FUNCTIONS:
            raise self.error(f"unknown function {name[:100]}", expected=", ".join(FUNCTIONS), hint=nearest(name, FUNCTIONS))
        count = 2 if name in BINARY_OPERATIONS else 1
        if node.keywords or len(node.args) != count:
            raise self.error(f"wrong arguments of {name}", node, expected=f"{count} argument{'s' * (count > 1)}")
        return [*(operation for argument in node.args for operation in self.value_of(argument, depth + 1)), (name, 0.0)]


# tables -------------------------------------------------------------------------------------------------------------

def read_points(node: Node) -> tuple[tuple[float, float], ...] | str:
    """Return the points [x, f(x)] of a list, or the text of a node that names a CSV."""
    if node.kind == "text":
        return node.text()
    return tuple(tuple(row.vector(2)) for row in node.items(minimum=2, of="points [driver, follower]"))     # type: ignore[misc]


def read_csv(file: str) -> tuple[tuple[tuple[float, float], ...], tuple[str, str]]:
    """Return the points of a CSV with two columns, driver and follower, and their units after conversion to SI ("" if none)."""
    table = read_table(file, ModelError, expected="a line of two column names, then rows of numbers")
    if len(table.titles) != 2:
        raise ModelError("a table of a coupling has two columns", place=table.place(), found=len(table.titles),
                         expected="driver and follower, such as cam[rad],lift[m]")
    (x, x_unit), (y, y_unit) = (column_in_si(table, title, values)
                                for title, values in zip(table.titles, table.parse_numbers().T, strict=True))
    return tuple((float(a), float(b)) for a, b in zip(x, y, strict=True)), (x_unit, y_unit)


def column_in_si(table: CsvTable, title: str, values: Array) -> tuple[Array, str]:
    """Return the values of a column in SI, and their unit: rad, m, or "" for a title without a unit. Raises ModelError."""
    name, text = split_title(title)
    if not text:
        return values, ""
    unit = unit_of(text)
    if unit is None or unit_name(unit.exponents) not in ("rad", "m"):
        raise ModelError("a column of a table of a coupling has the unit of an angle or a length", place=table.place(column=name),
                         found=text, expected="rad, deg, m, mm, …", hint=nearest(text, UNITS))
    return values * unit.multiply / unit.divide, unit_name(unit.exponents)


def function_to_dict(function: CouplingFunction) -> dict[str, Any]:
    """Return a function as in a file."""
    if not function.points:
        return {"function": function.text}
    return {"table": [list(point) for point in function.points],
            "interpolation": None if function.interpolation == "cubic" else function.interpolation,
            "periodic": function.periodic or None}
