r"""Reader and writer of CSV files (all but `runs.csv`): comments, a line of column titles, then rows.

    # robot: ../robots/arm.yaml
    t[s],q.elbow[rad]
    0.0,0.1

A title is a name and, in brackets, a unit. Lines that begin with # are comments; those before the titles may be `# key: value`.
Each row is one line. Cells may be quoted.

Text that would not survive in a line, or that a spreadsheet would evaluate, is written with the escapes of Python: `\x20` for a
blank at the end of a name, `\x3d` for the sign = at its begin. A backslash is doubled.
"""
from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TextIO, TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import InputError, Place
from liedyn.io.atomic_output import STDIO
from liedyn.io.units import resembles_unit, unit_in_name
from liedyn.io.yaml_nodes import LARGEST_FILE, number_in_cell, read_whole, too_large

LONGEST_LINE = 1_000_000                # characters; a row of 40,000 numbers is shorter
NUMBER_TABLE = "a line of column names, then rows of numbers"
_BLOCK = 10_000                         # rows that are written together
_SHOWN = 40                             # characters of a row that is not understood
_TITLE = re.compile(r"\s*(?P<name>.*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_IN_CELL = re.compile(r"^(?:[=+\-@]|\s+)|\s+$")          # the begin of a formula, blanks that readers strip
_IN_COMMENT = re.compile(r"^\s+|\s+$|(?<=[,;])\s*[=+\-@]")      # which a spreadsheet cuts at commas and semicolons
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, eq=False)
class CsvTable:
    """The lines of a CSV file.

    file        path; `-` for standard input
    error       class of the errors that the methods raise
    comments    {key: value} of the comments before the titles
    titles      cells of the first line that is not a comment, without blanks around them
    title_line  number of this line
    rows        text of each row
    lines       (N,) line number of each row
    """

    file: str
    error: type[InputError]
    comments: dict[str, str]
    titles: list[str]
    title_line: int
    rows: list[str]
    lines: Integers

    @cached_property
    def names(self) -> list[str]:
        """Titles without units."""
        return [split_title(title)[0] for title in self.titles]

    @property
    def separator_hint(self) -> str | None:
        """What to do if other characters than commas seem to separate the columns."""
        for name, sign in (("semicolons", ";"), ("tabs", "\t")):
            if sum(title.count(sign) for title in self.titles) >= len(self.titles):
                return f"columns are separated by commas, not {name}"
        return None

    def place(self, line: int | None = None, column: str | None = None) -> Place:
        """Return the location of a row; without a line, that of the titles."""
        return Place(self.file, self.title_line if line is None else line, column)

    def units(self) -> dict[str, str]:
        """Return {name: unit} of all columns. Raise if a name is missing or occurs twice."""
        units: dict[str, str] = {}
        for k, title in enumerate(self.titles):
            name, unit = split_title(title)
            if not name:
                raise self.error(f"column {k + 1} has no name", place=self.place(), found=title or None)
            if name in units:
                raise self.error("two columns have the same name", place=self.place(column=name))
            units[name] = unit
        return units

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and the cells of each row."""
        for line, row in zip(self.lines.tolist(), self.rows, strict=True):
            yield line, split_cells(row, self.place(line), self.error)

    def check_length(self, line: int, cells: list[str], row: str = "") -> None:
        """Raise unless a row has one cell for each column. `row`: its text, where a message may show it."""
        if len(cells) == len(self.titles):
            return
        many = len(cells) > len(self.titles)               # perhaps decimal commas
        excerpt = f": {row.strip()[:_SHOWN]}{'…' * (len(row.strip()) > _SHOWN)}" if many and row else ""
        raise self.error(f"the row has the wrong number of values{excerpt}", place=self.place(line),
                         found=len(cells), expected=str(len(self.titles)),
                         hint="write numbers with a decimal point; commas separate columns" if many or ";" in row else None)

    def parse_numbers(self, may_be_empty: Collection[str] = (), used: Collection[int] | None = None) -> Array:
        """Return the (N, columns) finite numbers, with NaN for empty cells of the columns `may_be_empty`.

        used: indices of the columns that are read, default: all. Others may contain text and are NaN in the result.
        NumPy's reader is fast (10^5 rows of 50 in 1 s) but its errors name neither the line nor the column.
        """
        optional = [name in may_be_empty for name in self.names]
        unused = [used is not None and k not in used for k in range(len(self.names))]
        table = self._load(optional, unused)
        if table is None:
            table = np.array([self._row_numbers(line, cells, row, optional, unused)
                              for (line, cells), row in zip(self.cells(), self.rows, strict=True)])
        bad = np.argwhere(~np.isfinite(table) & ~(np.isnan(table) & np.logical_or(optional, unused)))
        if bad.size:
            row, column = bad[0]
            raise self._not_finite(int(self.lines[row]), self.names[column], f"{table[row, column]}")
        return table

    def _load(self, optional: list[bool], unused: list[bool]) -> Array | None:
        converters: dict[int | str, Callable[[str], float]] = {k: _number_or_empty for k, empty in enumerate(optional) if empty}
        converters |= {k: _not_read for k, without in enumerate(unused) if without}
        try:
            table = np.loadtxt(self.rows, delimiter=",", comments=None, quotechar='"', ndmin=2, encoding=None,
                               converters=converters or None)
        except ValueError:
            return None
        return table if table.shape == (len(self.rows), len(optional)) else None

    def _row_numbers(self, line: int, cells: list[str], row: str, optional: list[bool], unused: list[bool]) -> list[float]:
        self.check_length(line, cells, row)
        return [math.nan if without or (empty and not cell.strip()) else self.number(line, name, cell)
                for name, cell, empty, without in zip(self.names, cells, optional, unused, strict=True)]

    def number(self, line: int, column: str, cell: str) -> float:
        """Return the finite number in a cell."""
        number = number_in_cell(cell, self.place(line, column), self.error, self.separator_hint)
        if not math.isfinite(number):
            raise self._not_finite(line, column, cell)
        return number

    def _not_finite(self, line: int, column: str, cell: str) -> InputError:
        return self.error("the value is not finite", place=self.place(line, column), found=cell, expected="a finite number")


def read_table(source: str, error: type[InputError], *, largest: int = LARGEST_FILE, standard_input: bool = False,
               indented_comments: bool = False, expected: str = NUMBER_TABLE) -> CsvTable:
    """Read a CSV file.

    Parameters
    ----------
    error : type
        Of what is raised, with file and line: for a file that is not text in UTF-8 (a byte order mark is accepted), has more than
        `largest` bytes or only comments.
    standard_input : bool
        Whether `-` is standard input.
    indented_comments : bool
        Whether blanks may precede the # of a comment.
    expected : str
        What the file should contain, for the error about an empty one.
    """
    lines = _read_lines(source, error, largest, standard_input)
    data = [k for k, line in enumerate(lines)
            if not (line.lstrip() if indented_comments else line).startswith("#") and line.strip() != ""]
    if not data:
        empty = not any(line.strip() for line in lines)
        raise error("the file is empty" if empty else "the file contains comments only", place=Place(source), expected=expected)
    first = data[0]
    titles = split_cells(lines[first], Place(source, first + 1), error, closed=True)
    return CsvTable(source, error, _comments(lines[:first]), [title.strip() for title in titles], first + 1,
                    [lines[k] for k in data[1:]], np.array(data[1:], dtype=np.int64) + 1)


def _read_lines(source: str, error: type[InputError], largest: int, standard_input: bool) -> list[str]:
    """Return the lines of a file without line ends. Raise `error` if it is not text."""
    place = Place(source)
    if standard_input and source == STDIO:
        data = sys.stdin.buffer.read(largest + 1)
        if len(data) > largest:
            raise too_large(error, source, largest)
    else:
        data = read_whole(source, error, largest, **{"hint": "use - for standard input"} if standard_input else {})
    if data.startswith(_BYTE_ORDER_MARKS):
        raise error("the file is text in UTF-16", place=place, expected="UTF-8")
    if b"\0" in data:
        raise error("the file is binary", place=place, expected="comma-separated text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise error("the file is not UTF-8 text", place=Place(source, line), found=f"byte 0x{data[problem.start]:02x}") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    longest = max(map(len, lines))
    if longest > LONGEST_LINE:
        raise error("the line is too long", place=Place(source, [*map(len, lines)].index(longest) + 1),
                    found=longest, expected=f"at most {LONGEST_LINE} characters")
    return lines


def _comments(lines: list[str]) -> dict[str, str]:
    pairs = (line.lstrip("#").partition(":") for line in lines)
    return {name_in_cell(key.strip()): name_in_cell(value.strip()) for key, colon, value in pairs if colon and key.strip()}


def split_cells(line: str, place: Place, error: type[InputError], *, closed: bool = False) -> list[str]:
    """Return the cells of a line. `closed`: quotation marks must be closed."""
    reader = csv.reader([line, ""], skipinitialspace=True)
    try:
        cells = next(reader)
    except csv.Error:
        raise error("the row cannot be read: a cell is too long", place=place,
                    expected=f"at most {csv.field_size_limit()} characters") from None
    if reader.line_num == 1:
        return cells
    if closed:
        raise error("the line cannot be read: a quotation mark is not closed", place=place)
    return next(csv.reader([line], skipinitialspace=True))


def split_title(title: str) -> tuple[str, str]:
    """Return the name and the unit of a column title; the unit is empty if the title has none."""
    match = _TITLE.fullmatch(title)
    assert match is not None, "the pattern matches every title"
    return name_in_cell(match["name"]), (match["unit"] or "").strip()


_PARENTHESES = re.compile(r"(.*\S)\s*\(([^()]+)\)")                # a name and its unit, such as Elbow angle (deg)


def foreign_title(title: str) -> tuple[str, str]:
    """Return the name and the unit of a title of another program, such as `elbow[deg]` or `Elbow angle (deg)`.

    A misspelt unit in parentheses is returned, for the error about it.
    """
    name, unit = split_title(title)
    if not unit and (match := _PARENTHESES.fullmatch(name)) and not match[2].isdigit() and resembles_unit(match[2]):
        return match[1], match[2]
    return name, unit


def title_unit(title: str) -> str:
    """Return the unit of a title of another program, also one at the end of its name, such as "elbow_deg"; empty without one."""
    name, unit = foreign_title(title)
    return unit or unit_in_name(name)


def _not_read(_cell: str) -> float:
    return math.nan


def _number_or_empty(cell: str) -> float:
    number = float(cell) if cell.strip() else math.nan
    if math.isnan(number) and cell.strip():                # NaN is not written as a word
        raise ValueError
    return number


# Writing ----------------------------------------------------------------------------------------------------------------

Column: TypeAlias = tuple[str, Sequence[str] | Array]          # title, values


def write_table(file: TextIO, columns: Sequence[Column],
                comments: Mapping[str, object] | None = None) -> None:
    """Write a CSV file.

    Numbers are the shortest that read back as the same float64; a NaN is an empty cell. Text is escaped.

    Parameters
    ----------
    columns : list of (title, values)
        Titles as `title_cell` returns them; texts or (N,) numbers.
    comments : {key: value}, optional
    """
    for key, value in (comments or {}).items():
        file.write(f"# {_escaped(key, _IN_COMMENT)}: {_escaped(str(value), _IN_COMMENT)}\n")
    file.write(",".join(_quoted(title) for title, _ in columns) + "\n")
    for i in range(0, len(columns[0][1]), _BLOCK):
        cells = [_written(values[i:i + _BLOCK]) for _, values in columns]
        file.writelines(",".join(row) + "\n" for row in zip(*cells, strict=True))


def _written(values: Sequence[str] | Array) -> list[str]:
    """Return the cells of a column. Joining them is 20 % faster than Python's CSV writer."""
    if isinstance(values[0], str):
        return [_quoted(cell(text)) for text in values]
    cells = list(map(repr, np.asarray(values, dtype=float).tolist()))
    return ["" if text == "nan" else text for text in cells] if "nan" in cells else cells


def _quoted(text: str) -> str:
    """Return the text of a cell in quotes if it needs them. Escaped text has no line ends."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def column_title(name: str, unit: str) -> str:
    """Return the title of a column: its name, with its unit in brackets if it has one."""
    return f"{name}[{unit}]" if unit else name


def title_cell(name: str, unit: str = "") -> str:
    """Return the title of a column as a cell; `split_title` is the inverse."""
    text = cell(name)
    if not unit and text.endswith("]"):                     # it would be read as a unit's
        text = text[:-1] + _escape("]")
    return column_title(text, unit)


def cell(text: str) -> str:
    """Return a name as a cell; `name_in_cell` is the inverse."""
    return _escaped(text, _IN_CELL)


def name_in_cell(text: str) -> str:
    """Return the name in a cell that `cell` wrote. Other backslashes are unchanged."""
    return _ESCAPE.sub(lambda match: match[0].encode("ascii").decode("unicode_escape"), text)


def _escaped(text: str, special: re.Pattern[str]) -> str:
    """Return the text on one line, with escapes for matches of `special` and for characters that are not printable."""
    text = special.sub(lambda match: "".join(map(_escape, match[0])), text.replace("\\", "\\\\"))
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
