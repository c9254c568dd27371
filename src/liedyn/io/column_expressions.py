"""Expressions of a map of columns: one column of a CSV with units, a sign, constant factors and offsets.

    -joint_3_pos[deg],  (joint_3_pos - 2048)*0.088[deg],  current_3[mA]*0.12[N m/A],  "joint 3"[rpm]

A unit in brackets belongs to the column, number or parenthesis before it.
"""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

import numpy as np

from liedyn.errors import InputError, Place, TrajectoryError, close_to, list_names, nearest
from liedyn.io.csv_table import CsvTable, foreign_title, name_in_cell
from liedyn.io.units import NUMBER, UNITS, Unit, product, unit_of
from liedyn.model.expression_parser import CONSTANTS, ExpressionParser

_NAMED = 20                  # maximum number of columns of the file in an error
_TOKEN = re.compile(r"""(?P<quoted>"[^"]*"|'[^']*')|(?P<unit>\[[^\[\]]*\])"""
                    r"""|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))|(?P<name>[\w.]+)|(?P<other>.)""", re.DOTALL)
_LAST_UNIT = re.compile(r"(?P<name>.*?)\s*(?P<unit>\[[^\[\]]*\])?", re.DOTALL)
_NAMES_AND_UNITS = re.compile(r""""[^"]*"|'[^']*'|\[[^\[\]]*\]""")
_PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a map: a column of a trajectory, the expression of a column of the file, and the location of the entry."""

    target: str
    text: str
    place: Place


# names and units

def checked_unit(text: str, place: Place) -> Unit:
    """Return the unit of a text. Raise TrajectoryError at `place` if it is not known."""
    unit = unit_of(text)
    if unit is None:
        raise TrajectoryError("unknown unit", place=place, found=text,
                              expected="a unit such as deg, rpm, deg/s, mm, N m, ms or mA",
                              hint="write a name with brackets in quotes" if text.isdigit() else nearest(text, UNITS))
    return unit


def with_unit(text: str, unit: str) -> str:
    """Return an expression without a unit as one in this unit."""
    return f"{text}[{unit}]" if _is_name(text) else f"({text})[{unit}]"


def negative(text: str) -> str:
    """Return an expression with the other sign."""
    positive = text.removeprefix("-").lstrip()
    if any(sign in _NAMES_AND_UNITS.sub("", positive) for sign in "+-"):
        return f"-({text})"
    return positive if text.startswith("-") else f"-{text}"


def _is_name(text: str) -> bool:
    """Return whether an expression is the name of a column, which may be in quotes."""
    return bool(_PLAIN_NAME.fullmatch(text) or (text[:1] in "\"'" and text.find(text[0], 1) == len(text) - 1))


def quoted(name: str) -> str:
    """Return a name in quotes."""
    sign = "'" if '"' in name else '"'
    return f"{sign}{name}{sign}"


def written(name: str) -> str:
    """Return the name of a column as an expression: in quotes where it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) and name not in CONSTANTS else quoted(name)


def _name_and_unit(title: str) -> tuple[str, str]:
    """Return the name and the unit of a title of another program. An index in brackets belongs to the name."""
    name, unit = foreign_title(title)
    return (name_in_cell(title), "") if unit.isdigit() else (name, unit)


class FileColumns:
    """The columns of a file: `parts` are their names and units. Brackets with an index, as in position[0], belong to the name."""

    def __init__(self, table: CsvTable):
        self.table = table
        self.parts = [_name_and_unit(title) for title in table.titles]
        self.names = [name for name, _ in self.parts]
        self.titles = [name_in_cell(title) for title in table.titles]

    def find(self, name: str, place: Place) -> int | None:
        """Return the index of the column with this name, or with this title including brackets; None if there is none."""
        for names in (self.names, self.titles):
            if count := names.count(name):
                if count > 1:
                    raise TrajectoryError(f"{self.table.file} has {count} columns of this name", place=place, found=name,
                                          expected="a name of one column")
                return names.index(name) if name else None
        return None

    def missing(self, name: str, place: Place) -> InputError:
        """Return the error for a name that the file does not have."""
        listed = [each for each in self.names if each]
        close = close_to(name, listed) if len(listed) > _NAMED else []
        first = [*close, *(each for each in listed if each not in close)]
        return TrajectoryError(f"{self.table.file} has no such column", place=place, found=name,
                               expected=f"one of {list_names(first, _NAMED)}",
                               hint=self.table.separator_hint or nearest(name, listed))

    def unit(self, index: int) -> str:
        """Return the text of the unit in the title of a column."""
        return self.parts[index][1]


# expressions

@dataclass(frozen=True, slots=True)
class Affine:
    """A constant, or a column after operations with constants. exponents: of its unit, None without one.

    scaled: whether a number is a factor of it.
    """

    column: int | None = None
    number: float = 0.0
    steps: tuple[tuple[str, float], ...] = ()
    exponents: tuple[int, ...] | None = None
    scaled: bool = False

    def step(self, operation: str, c: float) -> Affine:
        """Return the value after an operation with a constant."""
        return replace(self, steps=(*self.steps, (operation, c)))

    def in_unit(self, unit: Unit) -> Affine:
        """Return the number of this unit in SI."""
        value = replace(self, exponents=unit.exponents)
        if self.column is None:
            return replace(value, number=unit.in_si(self.number))
        value = value.step("*", unit.multiply) if unit.multiply != 1.0 else value
        return value.step("/", unit.divide) if unit.divide != 1.0 else value


def read_expression(entry: Entry, columns: FileColumns) -> tuple[Affine, str]:
    """Return the value of the expression of an entry, and its text with the names of columns. Raise TrajectoryError."""
    parser = _EntryParser(entry, columns)
    return parser.value(), parser.canonical


class _EntryParser(ExpressionParser):
    """Parser of the expression of an entry. Values are Affine. `canonical` is the expression with the names of columns."""

    raises = TrajectoryError

    def __init__(self, entry: Entry, columns: FileColumns):
        super().__init__(entry.text.strip(), entry.place)
        self.columns = columns
        self.column_names: list[str] = []                      # in the expression, by the number of their placeholder
        self.units: list[Unit] = []
        self.placeholders, self.canonical = self._with_placeholders()

    def value(self) -> Affine:
        """Return the value of the expression."""
        if not self.written:
            raise TrajectoryError("the entry has no column", place=self.place, expected="a column of the CSV")
        try:
            value: Affine = self.read()
        except TrajectoryError as error:
            if not error.message.startswith(("not an expression", "the character")):
                raise
            raise self.error("not an expression of a column",
                             expected="a column with numbers and + - * /, such as (pos_3 - 2048)*0.088[deg]",
                             hint="write names with characters other than letters, digits, _ and . in quotes") from None
        return value

    def _with_placeholders(self) -> tuple[str, str]:
        """Return the expression with placeholders for names and units, and with names in quotes where they need them."""
        whole = _LAST_UNIT.fullmatch(self.written)
        assert whole is not None, "the pattern matches all columns"
        for name, unit in ((self.written, ""), (whole["name"], whole["unit"] or "")):
            if name and self.columns.find(name, self.place) is not None and not (unit and unit_of(unit[1:-1]) is None):
                return self._name(name) + (self._unit(unit) if unit else ""), written(name) + unit
        placeholders, canonical = "", ""
        for token in _TOKEN.finditer(self.written):
            name = token["name"] or (token["quoted"] or "")[1:-1]
            if token["unit"]:
                placeholders, canonical = placeholders + self._unit(token[0]), canonical + token[0]
            elif token["quoted"] or (name and (name not in CONSTANTS or name in self.columns.names)):
                placeholders, canonical = placeholders + self._name(name), canonical + written(name)
            else:
                placeholders, canonical = placeholders + token[0], canonical + token[0]
        return placeholders, canonical

    def _name(self, name: str) -> str:
        self.column_names.append(name)
        return f" c_{len(self.column_names) - 1} "

    def _unit(self, text: str) -> str:
        self.units.append(checked_unit(text[1:-1].strip(), self.place))
        return f"[{len(self.units) - 1}]"

    def without_names(self, text: str) -> tuple[str, str]:         # noqa: ARG002 - blanks in names must not change
        return self.placeholders.strip(), self.placeholders.strip()

    def _not_affine(self, message: str) -> InputError:
        return self.error(message, expected="one column with constant factors and offsets",
                          hint="compute other expressions beforehand, as a column of the CSV")

    def not_supported(self, node: ast.expr, part: ast.AST, otherwise: str | None = None) -> InputError:      # noqa: ARG002
        return self._not_affine("not an affine expression")

    def value_of(self, node: ast.expr, depth: int) -> Affine:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            value: Affine = self.value_of(node.value, depth + 1)
            if value.exponents is not None:
                raise self.error("two units", expected="one unit, after the column or after the expression in parentheses")
            return value.in_unit(self.units[int(str(node.slice.value))])
        result: Affine = super().value_of(node, depth)
        return result

    def number_value(self, x: float) -> Affine:
        return Affine(number=x)

    def name_value(self, node: ast.Name) -> Affine:
        if not node.id.startswith("c_"):
            return Affine(number=CONSTANTS[node.id])
        name = self.column_names[int(node.id[2:])]
        index = self.columns.find(name, self.place)
        if index is None:
            raise self.columns.missing(name, self.place)
        return Affine(index)

    def call_value(self, name: str, node: ast.Call, depth: int) -> Affine:         # noqa: ARG002
        raise self._not_affine("functions are not supported")

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: Affine) -> Affine:
        x = values[0]
        if isinstance(node, ast.UnaryOp):
            return replace(x, number=-x.number) if x.column is None else x.step("*", -1.0)
        y = values[1]
        if x.column is not None and y.column is not None:
            raise self._not_affine("an entry reads one column" if x.column != y.column else "an entry contains its column once")
        if isinstance(node.op, ast.Add | ast.Sub):
            return self._sum(x, y, subtract=isinstance(node.op, ast.Sub))
        if isinstance(node.op, ast.Mult):
            return self._scaled(*((x, y) if x.column is not None else (y, x)), "*")
        if isinstance(node.op, ast.Div) and y.column is None:
            if y.number == 0.0:
                raise self.error("division by zero")
            return self._scaled(x, y, "/")
        if x.column is None and y.column is None and not (x.exponents or y.exponents):
            power = np.float64(x.number) ** y.number
            if np.isfinite(power):
                return Affine(number=float(power))
        raise self._not_affine("the column is a divisor" if isinstance(node.op, ast.Div) else "powers are not supported")

    def _sum(self, x: Affine, y: Affine, *, subtract: bool) -> Affine:
        if x.exponents != y.exponents:
            raise self.error("a sum of different units",
                             expected="one unit, after the sum in parentheses, as in (pos_3 - 90)[deg]")
        if x.column is None and y.column is None:
            return replace(x, number=x.number - y.number if subtract else x.number + y.number)
        if x.column is not None:
            return x.step("-" if subtract else "+", y.number)
        return (y.step("*", -1.0) if subtract else y).step("+", x.number)

    def _scaled(self, x: Affine, c: Affine, operation: str) -> Affine:
        """Return x times or divided by a constant c."""
        exponents = None
        if x.exponents is not None or c.exponents is not None:
            exponents = product(x.exponents or NUMBER, c.exponents or NUMBER, 1 if operation == "*" else -1)
        if x.column is None:
            number = x.number * c.number if operation == "*" else x.number / c.number
            return Affine(number=number, exponents=exponents)
        return replace(x.step(operation, c.number), exponents=exponents, scaled=True)
