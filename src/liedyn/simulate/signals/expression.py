"""Expressions of a scenario: text -> checked postfix program. Nothing of the text is ever executed by Python.

Python's parser reads the text, every node is then checked against the short list below. Allowed: + - * / **, unary + and -,
parentheses, numbers, t, pi, e, the functions of FUNCTIONS, and where a signal may depend on the state, `q` and `v` of its own
coordinate, `q(name)` and `v(name)` of another.
"""
from __future__ import annotations

import ast
import difflib
import math
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from liedyn.errors import Place, ScenarioError
from liedyn.kernels.simulation import signals as code

LONGEST = 1000                   # characters
DEEPEST = 50                     # operations nested in one another; a sum or product of many terms is not deep
CONSTANTS = {"pi": math.pi, "e": math.e}
FUNCTIONS = {name: getattr(code, name.upper()) for name in
             ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt",
              "abs", "sign", "floor", "step", "min", "max")} | {"clip": None}
ARGUMENTS = dict.fromkeys(FUNCTIONS, 1) | {"atan2": 2, "clip": 3}          # min and max: two or more
_OPERATORS = {ast.Add: code.ADD, ast.Sub: code.SUBTRACT, ast.Mult: code.MULTIPLY, ast.Div: code.DIVIDE, ast.Pow: code.POWER}
_STATE = {"q": code.STATE_Q, "v": code.STATE_V}

_VALUES: dict[int, Callable[..., float]] = {
    code.NEGATIVE: operator.neg, code.ADD: operator.add, code.SUBTRACT: operator.sub, code.MULTIPLY: operator.mul,
    code.DIVIDE: operator.truediv, code.POWER: math.pow, code.ATAN2: math.atan2, code.MIN: min, code.MAX: max,
    code.ABS: abs, code.SIGN: lambda x: float((x > 0) - (x < 0)), code.STEP: lambda x: float(x >= 0),
    code.FLOOR: lambda x: float(math.floor(x)),
} | {getattr(code, name.upper()): getattr(math, name) for name in
     ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")}

_REFUSED = {
    ast.Attribute: ("attribute access", None), ast.Subscript: ("a subscript", None), ast.Lambda: ("a lambda", None),
    ast.Compare: ("a comparison", "step(x) is 1 where x >= 0, else 0"), ast.IfExp: ("a condition", "use step(x)"),
    ast.BoolOp: ("a logical operation", "use step, min, max"), ast.NamedExpr: ("an assignment", None),
    ast.ListComp: ("a comprehension", None), ast.SetComp: ("a comprehension", None), ast.DictComp: ("a comprehension", None),
    ast.GeneratorExp: ("a comprehension", None), ast.List: ("a list", None), ast.Tuple: ("a list", "decimals have a point"),
    ast.Set: ("a set", None), ast.Dict: ("a mapping", None), ast.Starred: ("an unpacking", None),
    ast.JoinedStr: ("text", None), ast.Not: ("a logical operation", None), ast.Mod: ("the remainder %", "x - y*floor(x/y)"),
    ast.FloorDiv: ("the operator //", "use floor(x/y)"), ast.BitXor: ("the operator ^", "a power is written x**y"),
} | {getattr(ast, name): (f"the operator {sign}", None) for name, sign in
     (("MatMult", "@"), ("LShift", "<<"), ("RShift", ">>"), ("BitOr", "|"), ("BitAnd", "&"), ("Invert", "~"))}
_STATE_CALL = re.compile(r"(?<![\w.])([qv])\s*\(([^()]*)\)")
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
    words = (code.LITERAL + 256 * len(program.literals), code.SUBTRACT, code.SIGN)
    return Program((*program.code, *words), (*program.literals, x), max(program.depth, 2))


def compile_expression(text: str, place: Place, state_allowed: bool, resolve: Callable[[str, str | None], int]) -> Program:
    """The program of an expression.

    `resolve(kind, name)` gives the index in q (kind "q") or v (kind "v") of a coordinate, the signal's own where name is
    None, and raises ScenarioError where there is none. Raises ScenarioError naming `place` for whatever is not allowed.
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
            found = re.sub(r"\b([qv])\('(.*?)'\)", r"\1(\2)", segment) if segment else self.written
        return ScenarioError(message, place=self.place, found=found, expected=expected, hint=hint)

    def _parse(self) -> ast.expr:
        if len(self.written) > LONGEST:
            raise self._refuse("the expression is too long", found=f"{len(self.written)} characters",
                               expected=f"at most {LONGEST}")
        text = re.sub(r"[ \t\r\n]+", " ", self.written).strip()
        if not text:
            raise self._refuse("the expression is empty", expected="a number or an expression of t")
        outside = _STATE_CALL.sub("", text)              # names inside q(…) and v(…) are looked up, not parsed
        strange = _FORBIDDEN.search(outside)
        if strange:
            raise self._refuse(f"the character {strange.group()!r} is not allowed in an expression")
        self.text = _STATE_CALL.sub(lambda m: f"{m[1]}({m[2].strip()!r})", text)
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
        if name in _STATE:
            return self._state(node, name, None)
        if name in FUNCTIONS:
            raise self._refuse(f"the function {name} needs an argument: {name}(…)")
        raise self._unknown("name", name)

    def _state(self, node: ast.expr, kind: str, name: str | None) -> tuple[int, float]:
        if not self.state_allowed:
            raise self._refuse(f"{kind} may not be used here: this signal is a function of time only", node)
        return _STATE[kind], self.resolve(kind, name)

    def _call(self, node: ast.Call, depth: int) -> list[tuple[int, float]]:
        if not isinstance(node.func, ast.Name):
            raise self._not_allowed(node, node.func, "a call of something that is not a function")
        name, given = node.func.id, node.args
        if name in _STATE:
            return [self._state_call(node)]
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

    def _state_call(self, node: ast.Call) -> tuple[int, float]:
        named = len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.Constant)
        name = node.args[0].value if named else None
        if not isinstance(name, str) or not name:
            raise self._refuse(f"{node.func.id}(…) takes the name of a joint", node, expected=f"{node.func.id}(joint)")
        return self._state(node, node.func.id, name)

    def _not_allowed(self, node: ast.expr, what: ast.AST, otherwise: str | None = None):
        name, hint = _REFUSED.get(type(what), (otherwise or f"{type(what).__name__}", None))
        return self._refuse(f"{name} is not part of an expression", node, hint=hint)

    def _unknown(self, kind: str, name: str):
        known = ["t", *CONSTANTS, *_STATE, *FUNCTIONS] if kind == "name" else list(FUNCTIONS)
        close = difflib.get_close_matches(name[:100], known, n=1)
        return self._refuse(f"unknown {kind} {name[:100]}", expected="t, pi, e, or a function: " + ", ".join(FUNCTIONS),
                            hint=f"did you mean {close[0]}?" if close else None)


def _constant_kind(value) -> str:
    return {str: "text", bytes: "text", complex: "an imaginary number", bool: "a logical value"}.get(type(value), repr(value))
