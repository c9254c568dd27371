"""Mutants of a Python source: one place each, changed as a mistake would change it.

A change replaces a part of the text, so all other lines, their numbers included, stay as they are.
"""
from __future__ import annotations

import ast
import difflib
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("sign", "term", "check", "index", "comparison", "swap")
_OPPOSITE = {ast.Add: "-", ast.Sub: "+"}
_COMPARED = {ast.Lt: ("<=", ">"), ast.LtE: ("<", ">="), ast.Gt: (">=", "<"), ast.GtE: (">", "<="), ast.Eq: ("!=",),
             ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",)}
_SIGNS = {"add": "sub", "sub": "add", "add3": "sub3", "sub3": "add3", "plus_cross": "minus_cross", "minus_dad": "dAd"}
_SUMS = {"add", "add3", "add6", "sub", "sub3", "plus_ad", "plus_cross", "plus_rotate", "plus_rotate_back", "hypot"}
_SWAPS = {"Ad": "Ad_inv", "Ad_inv": "Ad", "dAd": "dAd_inv", "dAd_inv": "dAd", "rotate": "rotate_back", "rotate_back": "rotate",
          "plus_rotate": "plus_rotate_back", "plus_rotate_back": "plus_rotate", "min": "max", "max": "min", "minimum": "maximum",
          "maximum": "minimum", "any": "all", "all": "any", "sin": "cos", "cos": "sin", "ceil": "floor", "floor": "ceil",
          "argmin": "argmax", "argmax": "argmin", "zeros": "ones", "ones": "zeros", "nextafter": "maximum", "first": "last"}
_PARTNERS = {"BODY_A": "BODY_B", "BODY_B": "BODY_A"}
_STRINGS = {"local": "world", "world": "local", "space": "body", "body": "space", "q": "v", "v": "a", "a": "v", "tau": "v",
            "lower": "upper", "upper": "lower"}
_NOT_COMPUTED = {"annotation", "returns", "decorator_list", "type_params", "bases", "keywords"}       # fields; not of a call
_CHECKS = re.compile(r"_?(check|refuse|require|reject|warn|verify)[a-z_]*")


@dataclass(frozen=True)
class Mutant:
    """A changed part of a source: bytes `start` to `end` of it become `text`."""

    path: Path
    kind: str
    line: int
    start: int
    end: int
    text: str

    def source(self, root: Path) -> str:
        content = (root / self.path).read_bytes()
        return (content[:self.start] + self.text.encode() + content[self.end:]).decode()

    def diff(self, root: Path) -> str:
        before, after = (root / self.path).read_text(encoding="utf-8").splitlines(), self.source(root).splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm="", n=1))

    @property
    def name(self) -> str:
        return f"{self.path.as_posix()}:{self.line}:{self.start}-{self.end}={self.text}"


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return all mutants of the file `path`, relative to `root`; a few of them may not be Python: see `is_python`."""
    content = (root / path).read_bytes()
    tree = ast.parse(content)
    found = {}
    for kind, node, start, end, text in _Changes(content).of(tree):
        mutant = Mutant(path, kind, node.lineno, start, end, text)
        if content[start:end].decode() != text:
            found.setdefault(mutant.name, mutant)
    return sorted(found.values(), key=lambda each: (each.start, each.end, each.text))


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def draw(root: Path, packages: dict[str, list[Path]], count: int, seed: int) -> list[Mutant]:
    """Return `count` different mutants, from each package in turn: first the kind is drawn, then the line, then the change."""
    chance = random.Random(seed)
    sources = {package: [mutant for path in paths for mutant in mutants_of(path, root)] for package, paths in packages.items()}
    drawn: list[Mutant] = []
    names = sorted(sources)
    while len(drawn) < count and names:
        package = names[len(drawn) % len(names)]
        if not sources[package]:
            names.remove(package)
            continue
        lines = defaultdict(lambda: defaultdict(list))
        for each in sources[package]:
            lines[each.kind][each.path, each.line].append(each)
        of_kind = lines[chance.choice([kind for kind in KINDS if kind in lines])]
        mutant = chance.choice(of_kind[chance.choice(sorted(of_kind))])
        sources[package].remove(mutant)
        if is_python(mutant.source(root)):
            drawn.append(mutant)
    return drawn


class _Changes:
    """The changes that a tree allows: (kind, node, first byte, last byte, new text)."""

    def __init__(self, content: bytes):
        self._content = content
        self._starts = [0]
        for line in content.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.AST) -> Iterator[tuple[str, ast.AST, int, int, str]]:
        for child in self._children(node):
            for kind, start, end, text in self._changes(child):
                yield kind, child, start, end, text
            yield from self.of(child)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        """Return the nodes that define computation: no messages, types, imports and decorators."""
        for name, value in ast.iter_fields(node):
            if name in _NOT_COMPUTED and not isinstance(node, ast.Call):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
                    docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                    if not docstring and not (isinstance(child, ast.If) and self._text(child.test) == "TYPE_CHECKING"):
                        yield child

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.BitOr | ast.BitAnd):
                    yield "term", *self._span(node), self._text(left)
                if isinstance(op, ast.Add):
                    yield "term", *self._span(node), self._text(right)
                if type(op) in _OPPOSITE and (place := self._between(left, right, b"+" if isinstance(op, ast.Add) else b"-")):
                    yield "sign", *place, _OPPOSITE[type(op)]
            case ast.AugAssign(op=ast.Add() | ast.Sub() as op, target=target, value=value):
                yield "term", *self._span(node), "pass"
                if place := self._between(target, value, b"+=" if isinstance(op, ast.Add) else b"-="):
                    yield "sign", *place, _OPPOSITE[type(op)] + "="
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield "sign", *self._span(node), self._text(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "comparison", *self._span(node), f"({self._text(operand)})"
            case ast.BoolOp(values=values, op=op):
                joint = " and " if isinstance(op, ast.And) else " or "
                for left_out in values:
                    yield "term", *self._span(node), "(" + joint.join(self._whole(v) for v in values if v is not left_out) + ")"
            case ast.If(test=test, body=[*_, ast.Raise()]):
                yield "check", *self._span(test), "False"
            case ast.Expr(value=ast.Call(func=func)) if _CHECKS.fullmatch(_last_name(func)):
                yield "check", *self._span(node), "pass"
            case ast.Subscript(slice=inner):
                for each in [inner.lower, inner.upper] if isinstance(inner, ast.Slice) else [inner]:
                    if isinstance(each, ast.Constant) and type(each.value) is int:
                        yield "index", *self._span(each), str(each.value + 1 if each.value < 1 else each.value - 1)
                    elif isinstance(each, ast.Name) and each is inner and re.fullmatch("[a-z]", each.id):
                        yield "index", *self._span(each), f"{each.id} - 1"
            case ast.Call(func=ast.Name(id="range"), args=args):
                end = args[min(1, len(args) - 1)]
                yield "index", *self._span(end), f"{self._text(end)} - 1"
            case ast.Call(func=ast.Name() | ast.Attribute() as func, args=args):
                name = _last_name(func)
                _, end = self._span(func)
                if name in _SIGNS:
                    yield "sign", end - len(name), end, _SIGNS[name]
                if name in _SWAPS:
                    yield "swap", end - len(name), end, _SWAPS[name]
                if name in _SUMS and len(args) >= 2 and not any(isinstance(each, ast.Starred) for each in args):
                    yield "term", *self._span(node), self._text(args[0])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                for text in _COMPARED[type(op)]:
                    yield "comparison", *self._gap(left, right), f" {text} "
            case ast.Attribute(attr="T", value=value):
                yield "swap", *self._span(node), self._text(value)
            case ast.Name(id=name, ctx=ast.Load()) if name in _PARTNERS:
                yield "swap", *self._span(node), _PARTNERS[name]
            case ast.Constant(value=bool() as value):
                yield "swap", *self._span(node), str(not value)
            case ast.Constant(value=float() as value):
                larger = 2.0 if value > 1e-4 else 1e4                # twice a tolerance changes nothing
                yield "swap", *self._span(node), repr(larger * value if value else 1.0)
            case ast.Constant(value=str() as value) if value in _STRINGS:
                yield "swap", *self._span(node), repr(_STRINGS[value])

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._content[start:end].decode()

    def _whole(self, node: ast.AST) -> str:
        return self._text(node) if isinstance(node, ast.Name | ast.Call | ast.Attribute) else f"({self._text(node)})"

    def _gap(self, left: ast.AST, right: ast.AST) -> tuple[int, int]:
        """Return the text between two operands, without their closing and opening brackets."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._content[start:end]
        closing = re.match(rb"[\s)]*", between).end()
        opening = re.search(rb"[\s(]*$", between).start()
        return start + closing - (between[:closing][-1:].isspace()), start + opening + (between[opening:opening + 1].isspace())

    def _between(self, left: ast.AST, right: ast.AST, sign: bytes) -> tuple[int, int] | None:
        start, end = self._span(left)[1], self._span(right)[0]
        place = self._content[start:end].find(sign)
        return None if place < 0 else (start + place, start + place + len(sign))


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
