"""Parser of arithmetic expressions: checks each node of Python's syntax tree. The text is never executed.

Supported are + - * / **, unary + and -, parentheses, numbers, names and calls. Subclasses define the values of names, calls
and operations.
"""
from __future__ import annotations

import ast
import math
import re
import warnings
from typing import Any

from liedyn.errors import InputError, Place, ScenarioError

MAX_LENGTH = 1000                # characters
MAX_DEPTH = 50                   # operations nested in one another; a sum or product of many terms is not deep
CONSTANTS = {"pi": math.pi, "e": math.e}
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)

_BY_COORDINATE = ("q", "v", "tau")          # columns q.elbow, …; in expressions q(elbow)
_FORBIDDEN = re.compile(r"[^\x20-\x7e]|[\"'`\\#$;]")
_NOT_SUPPORTED = {
    ast.Attribute: ("attribute access", None), ast.Subscript: ("a subscript", None), ast.Lambda: ("a lambda", None),
    ast.Compare: ("a comparison", "step(x) is 1 where x >= 0, else 0; an event has value and direction"),
    ast.IfExp: ("a condition", "use step(x)"),
    ast.BoolOp: ("a logical operation", "use step, min, max"), ast.NamedExpr: ("an assignment", None),
    ast.ListComp: ("a comprehension", None), ast.SetComp: ("a comprehension", None), ast.DictComp: ("a comprehension", None),
    ast.GeneratorExp: ("a comprehension", None), ast.List: ("a list", None), ast.Tuple: ("a list", "write decimals with a point"),
    ast.Set: ("a set", None), ast.Dict: ("a mapping", None), ast.Starred: ("an unpacking", None),
    ast.JoinedStr: ("text", None), ast.Not: ("a logical operation", None), ast.Mod: ("the remainder %", "x - y*floor(x/y)"),
    ast.FloorDiv: ("the operator //", "use floor(x/y)"), ast.BitXor: ("the operator ^", "write powers as x**y"),
} | {getattr(ast, name): (f"the operator {sign}", None) for name, sign in
     (("MatMult", "@"), ("LShift", "<<"), ("RShift", ">>"), ("BitOr", "|"), ("BitAnd", "&"), ("Invert", "~"))}


class ExpressionParser:
    """Base class: subclasses define `number_value`, `name_value`, `call_value`, `operation_value`, and `without_names`.

    raises    class of the errors
    variable  what the values depend on
    """

    raises: type[InputError] = ScenarioError
    variable = "t"

    def __init__(self, text: str, place: Place):
        self.written, self.place = text, place
        self.text = ""                                         # as Python's parser reads it

    # of subclasses ------------------------------------------------------------------------------------------------------
    def without_names(self, text: str) -> tuple[str, str]:
        """Return the text without names of joints and links, whose characters are not checked, and that for Python's parser."""
        raise NotImplementedError

    def number_value(self, x: float) -> Any:
        """Return the value of a number."""
        raise NotImplementedError

    def name_value(self, node: ast.Name) -> Any:
        """Return the value of a name."""
        raise NotImplementedError

    def call_value(self, name: str, node: ast.Call, depth: int) -> Any:
        """Return the value of a function call at a depth of nesting."""
        raise NotImplementedError

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: Any) -> Any:
        """Return the value of an operation in OPERATORS, or of a negation."""
        raise NotImplementedError

    def source_of(self, node: ast.expr) -> str | None:       # noqa: ARG002 - of subclasses
        """Return the text of a node as the user wrote it. None: errors show the whole expression."""
        return None

    # errors -------------------------------------------------------------------------------------------------------------
    def error(self, message: str, node: ast.expr | None = None, *, found: object = None, expected: str | None = None,
              hint: str | None = None) -> InputError:
        """Return the error to raise."""
        found = found or (self.source_of(node) if node is not None else None) or self.written
        return self.raises(message, place=self.place, found=found, expected=expected, hint=hint)

    def not_supported(self, node: ast.expr, part: ast.AST, otherwise: str | None = None) -> InputError:
        """Return the error for Python syntax that is not part of expressions."""
        name, hint = _NOT_SUPPORTED.get(type(part), (otherwise or type(part).__name__, None))
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in _BY_COORDINATE:
            hint = f"write {part.value.id}({part.attr})"
        return self.error(f"{name} is not allowed in an expression", node, hint=hint)

    def _too_deep(self) -> InputError:
        return self.error("the expression is too deeply nested", expected=f"at most {MAX_DEPTH} levels")

    # the tree -----------------------------------------------------------------------------------------------------------
    def read(self) -> Any:
        """Return the value of the expression."""
        return self.value_of(self._parsed(), 1)

    def _parsed(self) -> ast.expr:
        if len(self.written) > MAX_LENGTH:
            raise self.error("the expression is too long", found=len(self.written),
                             expected=f"at most {MAX_LENGTH} characters")
        text = re.sub(r"[ \t\r\n]+", " ", self.written).strip()
        if not text:
            raise self.error("the expression is empty", expected=f"a number or an expression of {self.variable}")
        checked, self.text = self.without_names(text)
        if strange := _FORBIDDEN.search(checked):
            raise self.error(f"the character {strange.group()!r} is not allowed in an expression")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as problem:
            hint = "write products with *" if re.search(r"\d\s*[A-Za-df-z(]", self.text) else None
            raise self.error(f"not an expression: {problem.msg}", hint=hint) from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None
        except ValueError as problem:
            raise self.error(f"not an expression: {problem}") from None

    def value_of(self, node: ast.expr, depth: int) -> Any:
        """Return the value of a node at a depth of nesting."""
        if depth > MAX_DEPTH:
            raise self._too_deep()
        if isinstance(node, ast.BinOp):
            return self._chain(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.value_of(node.operand, depth + 1)
            return value if isinstance(node.op, ast.UAdd) else self.operation_value(node, value)
        if isinstance(node, ast.Constant):
            return self.number_value(self._number(node))
        if isinstance(node, ast.Name):
            return self.name_value(node)
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name):
                raise self.not_supported(node, node.func, "a call of something that is not a function")
            return self.call_value(node.func.id, node, depth)
        raise self.not_supported(node, node.op if isinstance(node, ast.UnaryOp) else node)

    def _chain(self, node: ast.BinOp, depth: int) -> Any:
        """Return the value of a + b - c …: a loop along the left operands, so that many terms are not deeply nested."""
        steps: list[ast.BinOp] = []
        operand: ast.expr = node
        while isinstance(operand, ast.BinOp):
            if type(operand.op) not in OPERATORS:
                raise self.not_supported(operand, operand.op)
            steps.append(operand)
            operand = operand.left
        value = self.value_of(operand, depth + 1)
        for step in reversed(steps):
            value = self.operation_value(step, value, self.value_of(step.right, depth + 1))
        return value

    def _number(self, node: ast.Constant) -> float:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self.error(f"{_kind_of(node.value)} is not allowed in an expression", node, expected="a number")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self.error("not a finite number", node)
        return value


def _kind_of(constant: object) -> str:
    kinds = {str: "text", bytes: "text", complex: "an imaginary number", bool: "a logical value"}
    return kinds.get(type(constant), repr(constant))
