"""Expressions of a scenario: text -> checked postfix program. Nothing of the text is ever executed by Python.

Python's parser reads the text, every node is then checked against the short list below. Allowed: + - * / **, unary + and -,
parentheses, numbers, t, pi, e, the functions of FUNCTIONS, `t_phase` and `since(event)`; and where a signal may depend on the
state, `q` and `v` of its own coordinate, `q(name)` and `v(name)` of another, and positions and velocities of links, `z(link)` or
`z(link, 0, 0, -0.1)` of a point of the link. Events may read joint forces, `tau(joint)`.
"""
from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from liedyn.errors import Place, ScenarioError, nearest
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import COMPONENTS

LONGEST = 1000                   # characters
DEEPEST = 50                     # operations nested in one another; a sum or product of many terms is not deep
CONSTANTS = {"pi": math.pi, "e": math.e}
FUNCTIONS = {name: getattr(code, name.upper()) for name in
             ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt",
              "abs", "sign", "floor", "step", "min", "max")} | {"clip": None}
ARGUMENTS = dict.fromkeys(FUNCTIONS, 1) | {"atan2": 2, "clip": 3}          # min and max: two or more
_OPERATORS = {ast.Add: code.ADD, ast.Sub: code.SUBTRACT, ast.Mult: code.MULTIPLY, ast.Div: code.DIVIDE, ast.Pow: code.POWER}
_STATE = {"q": code.STATE_Q, "v": code.STATE_V, "tau": code.MEASURED}
# of a point of a link, in world axes
OF_LINKS = COMPONENTS
_TURNING = ("wx", "wy", "wz")
_NAMED = (*_STATE, *OF_LINKS, "since")                          # functions of a name

_VALUES: dict[int, Callable[..., float]] = {
    code.NEGATIVE: operator.neg, code.ADD: operator.add, code.SUBTRACT: operator.sub, code.MULTIPLY: operator.mul,
    code.DIVIDE: operator.truediv, code.POWER: math.pow, code.ATAN2: math.atan2, code.MIN: min, code.MAX: max,
    code.ABS: abs, code.SIGN: lambda x: float((x > 0) - (x < 0)), code.STEP: lambda x: float(x >= 0),
    code.FLOOR: lambda x: float(math.floor(x)),
} | {getattr(code, name.upper()): getattr(math, name) for name in
     ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")}

_REFUSED = {
    ast.Attribute: ("attribute access", None), ast.Subscript: ("a subscript", None), ast.Lambda: ("a lambda", None),
    ast.Compare: ("a comparison", "step(x) is 1 where x >= 0, else 0; an event has value and direction"),
    ast.IfExp: ("a condition", "use step(x)"),
    ast.BoolOp: ("a logical operation", "use step, min, max"), ast.NamedExpr: ("an assignment", None),
    ast.ListComp: ("a comprehension", None), ast.SetComp: ("a comprehension", None), ast.DictComp: ("a comprehension", None),
    ast.GeneratorExp: ("a comprehension", None), ast.List: ("a list", None), ast.Tuple: ("a list", "decimals have a point"),
    ast.Set: ("a set", None), ast.Dict: ("a mapping", None), ast.Starred: ("an unpacking", None),
    ast.JoinedStr: ("text", None), ast.Not: ("a logical operation", None), ast.Mod: ("the remainder %", "x - y*floor(x/y)"),
    ast.FloorDiv: ("the operator //", "use floor(x/y)"), ast.BitXor: ("the operator ^", "a power is written x**y"),
} | {getattr(ast, name): (f"the operator {sign}", None) for name, sign in
     (("MatMult", "@"), ("LShift", "<<"), ("RShift", ">>"), ("BitOr", "|"), ("BitAnd", "&"), ("Invert", "~"))}
_NAMED_CALL = re.compile(rf"(?<![\w.])({'|'.join(_NAMED)})\s*\(([^()]*)\)")
_QUOTED_CALL = re.compile(rf"\b({'|'.join(_NAMED)})\('(.*?)'")
_FORBIDDEN = re.compile(r"[^\x20-\x7e]|[\"'`\\#$;]")


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions of `kernels.simulation.signals.program`, operands of literals counted from this program's own first one."""

    code: tuple[int, ...]
    literals: tuple[float, ...]
    depth: int                   # jets on the stack

    @property
    def constant(self) -> float | None:
        """The value, where it depends on nothing."""
        return self.literals[0] if self.code == (code.LITERAL,) else None


def passing(program: Program, x: float) -> Program:
    """The sign of the program's value less x."""
    found = less(program, x)
    return Program((*found.code, code.SIGN), found.literals, found.depth)


def less(program: Program, x: float) -> Program:
    """The program's value less x."""
    words = (code.LITERAL + 256 * len(program.literals), code.SUBTRACT)
    return Program((*program.code, *words), (*program.literals, x), max(program.depth, 2))


def started(program: Program, origins: Sequence[float]) -> Program:
    """The program where each clock began at its origin: of t alone. A clock that has not begun stands at infinity, a held one
    at 0."""
    words, literals = [], list(program.literals)
    for word in program.code:
        if word & 255 not in (code.CLOCK, code.HELD_CLOCK):
            words.append(word)
            continue
        origin, place = origins[word >> 8], code.LITERAL + 256 * len(literals)
        begun = origin > -math.inf
        words += [code.TIME, place, code.SUBTRACT] if begun else [place]
        literals.append(origin if begun else math.inf if word & 255 == code.CLOCK else 0.0)
    return Program(tuple(words), tuple(literals), program.depth + 1)


def compile_expression(text: str, place: Place, state_allowed: bool, resolve: Callable[..., int]) -> Program:
    """The program of an expression.

    `resolve(kind, name)` gives the index in q (kind "q") or v (kind "v") of a coordinate, the signal's own where name is
    None; the place in what is measured of a joint force ("tau") or, as `resolve(kind, name, point)`, of a point of a link (kinds
    of OF_LINKS); the clock that runs from the beginning of the phase ("phase", None) or from an event ("since"). It raises
    ScenarioError where there is none. Raises ScenarioError naming `place` for whatever is not allowed.
    """
    instructions = _Reader(text, place, state_allowed, resolve).read()
    words, literals, depth, deepest = [], [], 0, 0
    for operation, operand in instructions:
        if operation == code.LITERAL:
            literals.append(operand)
            operand = len(literals) - 1
        words.append(operation + 256 * operand)
        depth += 1 if operation < code.FIRST_UNARY else -1 if operation >= code.FIRST_BINARY else 0
        deepest = max(deepest, depth)
    return Program(tuple(words), tuple(literals), deepest)


class _Reader:
    def __init__(self, text: str, place: Place, state_allowed: bool, resolve):
        self.written, self.place, self.state_allowed, self.resolve = text, place, state_allowed, resolve
        self.text = ""

    def read(self) -> list[tuple[int, float]]:
        return self._emit(self._parse(), 1)

    def _refuse(self, message: str, node=None, *, found=None, expected: str | None = None, hint: str | None = None):
        if found is None:
            segment = ast.get_source_segment(self.text, node) if node is not None else None
            found = _QUOTED_CALL.sub(r"\1(\2", segment) if segment else self.written
        return ScenarioError(message, place=self.place, found=found, expected=expected, hint=hint)

    def _parse(self) -> ast.expr:
        if len(self.written) > LONGEST:
            raise self._refuse("the expression is too long", found=f"{len(self.written)} characters",
                               expected=f"at most {LONGEST}")
        text = re.sub(r"[ \t\r\n]+", " ", self.written).strip()
        if not text:
            raise self._refuse("the expression is empty", expected="a number or an expression of t")
        outside = _NAMED_CALL.sub(_numbers_of_point, text)          # names inside q(…) and z(…) are looked up, not parsed
        strange = _FORBIDDEN.search(outside)
        if strange:
            raise self._refuse(f"the character {strange.group()!r} is not allowed in an expression")
        self.text = _NAMED_CALL.sub(_quoted, text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as problem:
            raise self._refuse(f"not an expression: {problem.msg}", hint=self._hint()) from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None
        except ValueError as problem:
            raise self._refuse(f"not an expression: {problem}") from None

    def _hint(self) -> str | None:
        return "a product is written with *" if re.search(r"\d\s*[A-Za-df-z(]", self.text) else None

    def _too_deep(self):
        return self._refuse("the expression is too deeply nested", expected=f"at most {DEEPEST} levels")

    def _emit(self, node: ast.expr, depth: int) -> list[tuple[int, float]]:
        if depth > DEEPEST:
            raise self._too_deep()
        if isinstance(node, ast.BinOp):
            return self._chain(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self._emit(node.operand, depth + 1)
            return value if isinstance(node.op, ast.UAdd) else self._apply(code.NEGATIVE, node, value)
        if isinstance(node, ast.Constant):
            return [(code.LITERAL, self._number(node))]
        if isinstance(node, ast.Name):
            return [self._name(node)]
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        raise self._not_allowed(node, node.op if isinstance(node, ast.UnaryOp) else node)

    def _chain(self, node: ast.BinOp, depth: int) -> list[tuple[int, float]]:
        """a + b - c …: walked along its left side, so that many terms are not many levels."""
        steps = []
        while isinstance(node, ast.BinOp):
            if type(node.op) not in _OPERATORS:
                raise self._not_allowed(node, node.op)
            steps.append(node)
            node = node.left
        value = self._emit(node, depth + 1)
        for step in reversed(steps):
            value = self._apply(_OPERATORS[type(step.op)], step, value, self._emit(step.right, depth + 1))
        return value

    def _apply(self, operation: int, node: ast.expr, *arguments: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """The operation behind its arguments, or its value where they are numbers."""
        if operation == code.DIVIDE and arguments[1] == [(code.LITERAL, 0.0)]:
            raise self._refuse("a division by zero", node)
        if all(len(a) == 1 and a[0][0] == code.LITERAL for a in arguments):
            try:
                value = float(_VALUES[operation](*(a[0][1] for a in arguments)))
            except (ArithmeticError, ValueError):
                value = math.nan
            if not math.isfinite(value):
                raise self._refuse("not a finite number", node)
            return [(code.LITERAL, value)]
        return [instruction for a in arguments for instruction in a] + [(operation, 0)]

    def _number(self, node: ast.Constant) -> float:
        if type(node.value) not in (int, float):
            raise self._refuse(f"{_constant_kind(node.value)} is not part of an expression", node, expected="a number")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self._refuse("not a finite number", node)
        return value

    def _name(self, node: ast.Name) -> tuple[int, float]:
        name = node.id
        if name == "t":
            return code.TIME, 0
        if name in CONSTANTS:
            return code.LITERAL, CONSTANTS[name]
        if name in ("q", "v"):
            return self._state(node, name, None)
        if name == "t_phase":
            return code.CLOCK, self.resolve("phase", None)
        if name in FUNCTIONS:
            raise self._refuse(f"the function {name} needs an argument: {name}(…)")
        raise self._unknown("name", name)

    def _state(self, node: ast.expr, kind: str, name: str | None, *point) -> tuple[int, float]:
        if not self.state_allowed:
            raise self._refuse(f"{kind} may not be used here: this signal is a function of time only", node)
        return _STATE.get(kind, code.MEASURED), self.resolve(kind, name, *point)

    def _call(self, node: ast.Call, depth: int) -> list[tuple[int, float]]:
        if not isinstance(node.func, ast.Name):
            raise self._not_allowed(node, node.func, "a call of something that is not a function")
        name, given = node.func.id, node.args
        if name in _NAMED:
            return [self._named_call(node, depth)]
        if name not in FUNCTIONS:
            raise self._unknown("function", name)
        least = 2 if name in ("min", "max") else ARGUMENTS[name]
        if node.keywords or len(given) < least or (len(given) > least and name not in ("min", "max")):
            count = f"{least} or more arguments" if name in ("min", "max") else f"{least} argument{'s' * (least > 1)}"
            raise self._refuse(f"wrong arguments of {name}", node, expected=count)
        values = [self._emit(argument, depth + 1) for argument in given]
        if name == "clip":
            return self._apply(code.MIN, node, self._apply(code.MAX, node, values[0], values[1]), values[2])
        value = values[0] if len(values) > 1 else self._apply(FUNCTIONS[name], node, values[0])
        for other in values[1:]:
            value = self._apply(FUNCTIONS[name], node, value, other)
        return value

    def _named_call(self, node: ast.Call, depth: int) -> tuple[int, float]:
        kind = node.func.id
        named = node.args and not node.keywords and isinstance(node.args[0], ast.Constant)
        name, point = (node.args[0].value, node.args[1:]) if named else (None, ())
        expected = f"{kind}({_takes(kind)})"
        if not isinstance(name, str) or not name:
            raise self._refuse(f"{kind}(…) takes the name of {_of(kind)}", node, expected=expected)
        if kind not in OF_LINKS:
            return (code.CLOCK, self.resolve(kind, name)) if kind == "since" else self._state(node, kind, name)
        if point and (kind in _TURNING or len(point) != 3):
            more = "" if kind in _TURNING else f", or {kind}(link, x, y, z) for a point in link coordinates"
            raise self._refuse(f"wrong arguments of {kind}", node, expected=expected + more)
        values = [self._emit(argument, depth + 1) for argument in point]
        if any(len(value) > 1 or value[0][0] != code.LITERAL for value in values):
            raise self._refuse(f"the point of {kind}({name}, …) must be three numbers", node)
        return self._state(node, kind, name, tuple(value[0][1] for value in values) or (0.0, 0.0, 0.0))

    def _not_allowed(self, node: ast.expr, what: ast.AST, otherwise: str | None = None):
        name, hint = _REFUSED.get(type(what), (otherwise or f"{type(what).__name__}", None))
        return self._refuse(f"{name} is not part of an expression", node, hint=hint)

    def _names(self) -> str:
        return "t, pi, e" + (", q, v, q(joint), v(joint), x(link)" if self.state_allowed else "")

    def _unknown(self, kind: str, name: str):
        known = ["t", "t_phase", *CONSTANTS, *_STATE, *FUNCTIONS] if kind == "name" else [*FUNCTIONS, *_NAMED]
        meant = f"{name}({_takes(name)})" if name in _NAMED else f"{name}(link) alone" if name in ("touch", "lift") else None
        return self._refuse(f"unknown {kind} {name[:100]}", expected=f"{self._names()}, or a function: " + ", ".join(FUNCTIONS),
                            hint=f"did you mean {meant}?" if meant else nearest(name, known))


def _parts_of_call(kind: str, inside: str) -> tuple[str, str]:
    """Name and the rest from its comma on: of a link's name with a comma, three numbers follow."""
    if kind not in OF_LINKS:
        return inside.strip(), ""
    parts = inside.split(",")
    cut = len(parts) - 3 if len(parts) > 4 else 1
    return ",".join(parts[:cut]).strip(), "".join("," + part for part in parts[cut:])


def _quoted(call: re.Match) -> str:
    name, rest = _parts_of_call(call[1], call[2])
    return f"{call[1]}({name!r}{rest})"


def _numbers_of_point(call: re.Match) -> str:
    return _parts_of_call(call[1], call[2])[1]


def _of(kind: str) -> str:
    return "a link" if kind in OF_LINKS else "an event" if kind == "since" else "a joint"


def _takes(kind: str) -> str:
    return _of(kind).split()[-1]


def _constant_kind(value) -> str:
    return {str: "text", bytes: "text", complex: "an imaginary number", bool: "a logical value"}.get(type(value), repr(value))
