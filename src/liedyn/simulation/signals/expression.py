"""Expressions of a scenario: text -> checked postfix program, see `model.expression_parser`.

Names are t, pi, e, the functions of FUNCTIONS, `t_phase` and `since(event)`. If a signal may depend on the state, `q` and `v` are
those of its coordinate, and `q(name)` and `v(name)` those of another one. `z(link)` and similar functions are positions and
velocities of links; `z(link, 0, 0, -0.1)` is that of a point of the link. Events may read generalized forces, `tau(joint)`.
"""
from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from liedyn.arrays import Array
from liedyn.errors import InputError, Place, nearest
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import COMPONENTS
from liedyn.model.expression_parser import CONSTANTS, ExpressionParser
from liedyn.simulation.signals import operations

FUNCTIONS = (*operations.FUNCTIONS, "clip")
_OPERATORS = {ast.Add: code.ADD, ast.Sub: code.SUBTRACT, ast.Mult: code.MULTIPLY, ast.Div: code.DIVIDE, ast.Pow: code.POWER}
_STATE = {"q": code.STATE_Q, "v": code.STATE_V, "tau": code.MEASURED}
# functions of a point of a link, in world axes
LINK_FUNCTIONS = COMPONENTS
_ANGULAR = ("wx", "wy", "wz")
_NAMED_FUNCTIONS = (*_STATE, *LINK_FUNCTIONS, "since")                          # functions whose argument is a name

_NAMED_CALL = re.compile(rf"(?<![\w.])({'|'.join(_NAMED_FUNCTIONS)})\s*\(([^()]*)\)")
_QUOTED_CALL = re.compile(rf"\b({'|'.join(_NAMED_FUNCTIONS)})\('(.*?)'")


@dataclass(frozen=True, slots=True)
class SignalProgram:
    """Instructions of `kernels.simulation.signals.evaluate_program`; indices of literals are relative to this program."""

    code: tuple[int, ...]
    literals: tuple[float, ...]
    depth: int                   # maximum number of jets on the stack

    @property
    def constant(self) -> float | None:
        """The value, if the program is a single number; else None."""
        return self.literals[0] if self.code == (code.LITERAL,) else None


def sign_of_difference(program: SignalProgram, x: float) -> SignalProgram:
    """Return a program for the sign of the program's value minus x."""
    difference = subtract_constant(program, x)
    return SignalProgram((*difference.code, code.SIGN), difference.literals, difference.depth)


def subtract_constant(program: SignalProgram, x: float) -> SignalProgram:
    """Return a program for the program's value minus x."""
    words = (code.LITERAL + 256 * len(program.literals), code.SUBTRACT)
    return SignalProgram((*program.code, *words), (*program.literals, x), max(program.depth, 2))


def moved_literals(words: Iterable[int], first: int) -> list[int]:
    """Return instructions whose literals begin at `first`."""
    return [word + 256 * first if word & 255 in (code.LITERAL, *code.TABLE_OPERATIONS) else word for word in words]


def with_clock_origins(program: SignalProgram, origins: Sequence[float] | Array) -> SignalProgram:
    """Return the program as a function of t alone, with each clock started at its origin.

    A clock that has not started (origin -inf) is infinite; a frozen one is 0.
    """
    words, literals = [], list(program.literals)
    for word in program.code:
        if word & 255 not in (code.CLOCK, code.FROZEN_CLOCK):
            words.append(word)
            continue
        origin, place = origins[word >> 8], code.LITERAL + 256 * len(literals)
        begun = origin > -math.inf
        words += [code.TIME, place, code.SUBTRACT] if begun else [place]
        literals.append(origin if begun else math.inf if word & 255 == code.CLOCK else 0.0)
    return SignalProgram(tuple(words), tuple(literals), program.depth + 1)


def compile_expression(text: str, place: Place, state_allowed: bool, resolve: Callable[..., int]) -> SignalProgram:
    """Return the program of an expression.

    `resolve(kind, name)` returns the index in q (kind "q") or v (kind "v") of a coordinate, the signal's own one if name is None.
    It returns the index in the measured values of a generalized force ("tau") or, as `resolve(kind, name, point)`, of a point of
    a link (kinds of LINK_FUNCTIONS). It returns the clock that starts with the phase ("phase", None) or with an event ("since").
    It raises ScenarioError for unknown names.

    Raises ScenarioError at `place` for text that is not allowed.
    """
    instructions = _SignalParser(text, place, state_allowed, resolve).read()
    words: list[int] = []
    literals: list[float] = []
    depth, deepest = 0, 0
    for operation, operand in instructions:
        if operation == code.LITERAL:
            words.append(operation + 256 * len(literals))
            literals.append(operand)
        else:
            words.append(operation + 256 * int(operand))
        depth += 1 if operation < code.FIRST_UNARY else -1 if operation >= code.FIRST_BINARY else 0
        deepest = max(deepest, depth)
    return SignalProgram(tuple(words), tuple(literals), deepest)


Point: TypeAlias = tuple[float, ...]                      # x y z in link coordinates [m]
Instructions: TypeAlias = list[tuple[int, float]]         # opcodes with operands; that of a literal is its value


class _SignalParser(ExpressionParser):
    """Parser of expressions. Values are lists of instructions (operation, operand)."""

    def __init__(self, text: str, place: Place, state_allowed: bool, resolve: Callable[..., int]):
        super().__init__(text, place)
        self.state_allowed, self.resolve = state_allowed, resolve

    def without_names(self, text: str) -> tuple[str, str]:
        return _NAMED_CALL.sub(_point_arguments, text), _NAMED_CALL.sub(_quote_name, text)

    def source_of(self, node: ast.expr) -> str | None:
        segment = ast.get_source_segment(self.text, node)
        return segment and _QUOTED_CALL.sub(r"\1(\2", segment)

    def number_value(self, x: float) -> Instructions:
        return [(code.LITERAL, x)]

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: Instructions) -> Instructions:
        return self._apply(code.NEGATIVE if isinstance(node, ast.UnaryOp) else _OPERATORS[type(node.op)], node, *values)

    def _apply(self, operation: int, node: ast.expr, *arguments: Instructions) -> Instructions:
        """Return the arguments followed by the operation, or its value if they are numbers."""
        if operation == code.DIVIDE and arguments[1] == [(code.LITERAL, 0.0)]:
            raise self.error("a division by zero", node)
        if all(len(a) == 1 and a[0][0] == code.LITERAL for a in arguments):
            try:
                value = float(operations.OPERATIONS[operation].value(*(a[0][1] for a in arguments)))
            except (ArithmeticError, ValueError):
                value = math.nan
            if not math.isfinite(value):
                raise self.error("not a finite number", node)
            return [(code.LITERAL, value)]
        return [instruction for a in arguments for instruction in a] + [(operation, 0)]

    def name_value(self, node: ast.Name) -> Instructions:
        return [self._name(node, node.id)]

    def _name(self, node: ast.Name, name: str) -> tuple[int, float]:
        if name == "t":
            return code.TIME, 0
        if name in CONSTANTS:
            return code.LITERAL, CONSTANTS[name]
        if name in ("q", "v"):
            return self._state(node, name, None)
        if name == "t_phase":
            return code.CLOCK, self.resolve("phase", None)
        if name in FUNCTIONS:
            raise self.error(f"the function {name} needs an argument: {name}(…)")
        raise self._unknown("name", name)

    def _state(self, node: ast.expr, kind: str, name: str | None, *point: Point) -> tuple[int, float]:
        if not self.state_allowed:
            raise self.error(f"{kind} may not be used here: this signal is a function of time only", node)
        return _STATE.get(kind, code.MEASURED), self.resolve(kind, name, *point)

    def call_value(self, name: str, node: ast.Call, depth: int) -> Instructions:
        arguments = node.args
        if name in _NAMED_FUNCTIONS:
            return [self._named_call(name, node, depth)]
        if name not in FUNCTIONS:
            raise self._unknown("function", name)
        minimum = 3 if name == "clip" else operations.FUNCTIONS[name].arguments
        if node.keywords or len(arguments) < minimum or (len(arguments) > minimum and name not in ("min", "max")):
            count = f"{minimum} or more arguments" if name in ("min", "max") else f"{minimum} argument{'s' * (minimum > 1)}"
            raise self.error(f"wrong arguments of {name}", node, expected=count)
        values = [self.value_of(argument, depth + 1) for argument in arguments]
        if name == "clip":
            return self._apply(code.MIN, node, self._apply(code.MAX, node, values[0], values[1]), values[2])
        operation = operations.FUNCTIONS[name].code
        if len(values) == 1:
            return self._apply(operation, node, values[0])
        return reduce(lambda x, y: self._apply(operation, node, x, y), values)

    def _named_call(self, kind: str, node: ast.Call, depth: int) -> tuple[int, float]:
        first, *point = node.args or [node.func]
        name = first.value if isinstance(first, ast.Constant) and not node.keywords else None
        expected = f"{kind}({_argument_kind(kind)})"
        if not isinstance(name, str) or not name:
            raise self.error(f"{kind}(…) takes the name of {_argument_description(kind)}", node, expected=expected)
        if kind not in LINK_FUNCTIONS:
            return (code.CLOCK, self.resolve(kind, name)) if kind == "since" else self._state(node, kind, name)
        if point and (kind in _ANGULAR or len(point) != 3):
            more = "" if kind in _ANGULAR else f", or {kind}(link, x, y, z) for a point in link coordinates"
            raise self.error(f"wrong arguments of {kind}", node, expected=expected + more)
        values = [self.value_of(argument, depth + 1) for argument in point]
        if any(len(value) > 1 or value[0][0] != code.LITERAL for value in values):
            raise self.error(f"the point of {kind}({name}, …) must be three numbers", node)
        return self._state(node, kind, name, tuple(value[0][1] for value in values) or (0.0, 0.0, 0.0))

    def _names(self) -> str:
        return "t, pi, e" + (", q, v, q(joint), v(joint), x(link)" if self.state_allowed else "")

    def _unknown(self, kind: str, name: str) -> InputError:
        known = ["t", "t_phase", *CONSTANTS, *_STATE, *FUNCTIONS] if kind == "name" else [*FUNCTIONS, *_NAMED_FUNCTIONS]
        meant = f"{name}({_argument_kind(name)})" if name in _NAMED_FUNCTIONS else f"{name}(link) alone" if name in (
            "touch", "lift") else None
        return self.error(f"unknown {kind} {name[:100]}", expected=f"{self._names()}, or a function: " + ", ".join(FUNCTIONS),
                          hint=f"did you mean {meant}?" if meant else nearest(name, known))


def _split_call(kind: str, inside: str) -> tuple[str, str]:
    """Return the name, and the rest of the arguments with its comma.

    If the name of a link contains commas, three numbers follow it.
    """
    if kind not in LINK_FUNCTIONS:
        return inside.strip(), ""
    parts = inside.split(",")
    cut = len(parts) - 3 if len(parts) > 4 else 1
    return ",".join(parts[:cut]).strip(), "".join("," + part for part in parts[cut:])


def _quote_name(call: re.Match[str]) -> str:
    name, rest = _split_call(call[1], call[2])
    return f"{call[1]}({name!r}{rest})"


def _point_arguments(call: re.Match[str]) -> str:
    return _split_call(call[1], call[2])[1]


def _argument_description(kind: str) -> str:
    return "a link" if kind in LINK_FUNCTIONS else "an event" if kind == "since" else "a joint"


def _argument_kind(kind: str) -> str:
    return _argument_description(kind).split()[-1]
