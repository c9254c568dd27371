"""Functions of nonlinear couplings in a robot description: expressions of the driver, and tables."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TypeAlias

from liedyn.errors import ModelError, Place, nearest
from liedyn.model.expression_parser import CONSTANTS, ExpressionParser

# operations of an expression, besides `driver` and `literal`
UNARY_OPERATIONS = ("negative", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")
BINARY_OPERATIONS = ("add", "subtract", "multiply", "divide", "power", "atan2")
SPLINE_DEGREES = {"cubic": 3, "quintic": 5}                  # by `CouplingFunction.interpolation`

DRIVER = "q"                        # name of the driver's position in an expression, besides the name of its joint
FUNCTIONS = tuple(name for name in (*UNARY_OPERATIONS, "atan2") if name != "negative")
_KINKS = ("abs", "sign", "floor", "step", "min", "max", "clip")       # of expressions elsewhere
_OPERATORS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}

Operations: TypeAlias = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class CouplingFunction:
    """The function f of a nonlinear coupling, by an expression (`read_expression`) or by a table.

    text           the expression, as in a file; empty for a table
    operations     its operations in postfix order: (name, value) with the names of UNARY_OPERATIONS, BINARY_OPERATIONS, `driver`
                   and `literal`; the value is that of a literal
    points         (x, f(x)) of a table, in increasing order of x
    interpolation  of a table: `cubic` or `quintic`
    periodic       whether f continues periodically beyond the table, with the increase of the last value over the first one
    units          of driver and follower in a table that declares them, rad or m
    """

    text: str = ""
    operations: tuple[tuple[str, float], ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    interpolation: str = "cubic"
    periodic: bool = False
    units: tuple[str, str] = ("", "")


def read_expression(text: str, driver: str, place: Place) -> CouplingFunction:
    """Return the function of an expression of the driver, which is called by its name or `q`. Raises ModelError."""
    return CouplingFunction(text, tuple(_FunctionParser(text, driver, place).read()))


class _FunctionParser(ExpressionParser):
    """Parser of functions of one variable. Values are lists of operations in postfix order."""

    raises = ModelError

    def __init__(self, text: str, driver: str, place: Place):
        super().__init__(text, place)
        self.driver, self.variable = driver, f"the driver, {driver} or {DRIVER}"

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
