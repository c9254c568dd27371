"""Trajectory files: comma-separated columns over time, with `# key: value` comments first.

    # robot: ../robots/arm.yaml
    t[s],q.elbow[rad],v.elbow[rad/s],tau.elbow[N m]
    0.0,0.1,0.0,2.5

A column is a name and, in brackets, a unit; columns bind by name, in any order. What the columns mean, and whether
they fit a robot, is not known here.

What a name or a comment holds that would not survive in a line of text, or that a spreadsheet would compute, is written as
Python writes it: `\x20` for a blank at the end of a name, `\x3d` for the sign = at its begin. A backslash is doubled.
"""
from __future__ import annotations

import csv
import hashlib
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import ComputationError, Place, TrajectoryError, UsageError
from liedyn.immutable import Immutable
from liedyn.io.atomic_output import STDIO, check_output, open_output
from liedyn.io.yaml_nodes import number_in_cell, read_whole, too_large

if TYPE_CHECKING:
    import pandas

LARGEST_TRAJECTORY = 1_000_000_000      # bytes: a million rows of 50 columns; reading takes some eight times this memory
_BLOCK = 10_000                         # rows that are written together
_SHOWN = 40                             # characters of a row that is not understood
LONGEST_LINE = 1_000_000                # characters; a row of 40,000 numbers is shorter
_COLUMN = re.compile(r"\s*(?P<name>.*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_IN_CELL = re.compile(r"^(?:[=+\-@]|\s+)|\s+$")          # the begin of a formula, blanks that readers strip
_IN_COMMENT = re.compile(r"^\s+|\s+$|(?<=[,;])\s*[=+\-@]")      # which a spreadsheet cuts at commas and semicolons
MAY_BE_EMPTY = ("zmp.x", "zmp.y")       # columns that are not defined in some rows: NaN, and an empty cell of the file
_NAMES = "column names such as t[s],q.elbow[rad]"
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, eq=False)
class Trajectory(Immutable):
    """Columns of finite numbers over increasing time: strictly, or with two rows at the time of an event, before and after it.
    The zero-moment point is NaN in flight.

    header   the `# key: value` comments before the column names
    t        (N,) time [s]
    columns  {name without unit: (N,) array}, in the file's order, without `t`
    units    {name: unit}, empty where the file gives none
    source   the file, `-` for standard input, None where there is no file
    lines    (N,) the line number of each row in the file; of the rows themselves where there is none
    model    text of the robot YAML that `save` writes next to the file; empty where the comments tell the robot

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.trajectory_of(model, [0.0, 0.1], [[0.3, 0.0], [0.2, 0.1]])
    <Trajectory of arrays: 2 rows, t = 0 to 0.1 s; columns q 2>
    """

    header: dict[str, str]
    t: Array
    columns: dict[str, Array]
    units: dict[str, str]
    source: str | None = None
    lines: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    model: str = ""

    @property
    def passive(self) -> bool:
        """Whether springs, damping and friction act, by the comment `# passive`; true without one."""
        text = self.header.get("passive", "true")
        if text.lower() not in ("true", "false"):
            place = Place(self.source, None, "# passive")
            raise TrajectoryError("wrong value", place=place, found=text, expected="true or false")
        return text.lower() == "true"

    def __post_init__(self) -> None:
        if len(self.lines) != len(self.t):
            object.__setattr__(self, "lines", np.arange(1, len(self.t) + 1))
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        kinds = Counter(name.partition(".")[0] for name in self.columns)
        counts = ", ".join(f"{kind} {n}" for kind, n in kinds.items())
        span = f", t = {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else ""
        return f"<Trajectory {self.source or 'of arrays'}: {len(self)} rows{span}; columns {counts or 'none'}>"

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of the columns, "q.elbow[rad]", …, with the time "t[s]" as its index. Needs pandas, which liedyn does not
        install."""
        return data_frame(self.t, self._named)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a trajectory file, whole or not at all; `read_trajectory` gives the same numbers back. Paths in the comments
        `robot`, `loops` and `model` become relative to its folder. If the robot differs from its file, its model is written next
        to it: `motion.model.yaml` for `motion.csv`. Raises UsageError where a file exists and `force` is not given, and
        ComputationError for a number that is not finite."""
        path = os.fspath(path)
        header = self.header | self._paths(os.path.dirname(os.path.abspath(path)))
        if not self.model:
            write_trajectory(path, header, self.t, self._named, force=force)
            return
        model = Path(path).with_suffix(".model.yaml")
        if path == STDIO:
            raise UsageError("the robot of this trajectory differs from its file; its model is written next to the trajectory: "
                             "give the name of a file")
        if self.header.get("robot") and os.path.realpath(self._path("robot")) == os.path.realpath(model):
            raise UsageError(f"the model of the trajectory would replace the robot file {model}: use another name")
        header |= {"model": model.name, "model_sha256": hashlib.sha256(self.model.encode()).hexdigest()}
        check_output(path, force=force)
        with open_output(model, force=force) as file:
            file.write(self.model)
            write_trajectory(path, header, self.t, self._named, force=force)

    @property
    def _named(self) -> list[tuple[str, str, Array]]:
        return [(name, self.units.get(name, ""), x) for name, x in self.columns.items()]

    def _paths(self, folder: str) -> dict[str, str]:
        """Comments that name files, relative to another folder."""
        return {key: Path(os.path.relpath(self._path(key), folder)).as_posix()
                for key in ("robot", "loops", "model") if self.header.get(key)}

    def _path(self, key: str) -> str:
        """Of the file that a comment names."""
        here = os.path.dirname(os.path.abspath(self.source)) if self.source not in (None, STDIO) else os.getcwd()
        return os.path.join(here, self.header[key])


def read_trajectory(path: str | Path, *, events: bool = False) -> Trajectory:
    """Read a trajectory file.

    Parameters
    ----------
    path : path
        A CSV, see docs/files.md; "-" is standard input.
    events : bool
        Whether two rows may have one time, before and after an event, in a file whose comments tell of events.

    Returns
    -------
    Trajectory

    Raises
    ------
    TrajectoryError
        With file, line and column, if the file is not valid.

    Examples
    --------
    >>> trajectory = ld.read_trajectory("configs/ur5_encoders.csv")
    >>> trajectory.t.shape, list(trajectory.columns)[:2]
    ((201,), ['q.shoulder_pan_joint', 'q.shoulder_lift_joint'])
    """
    source = str(path)
    lines = _lines(source)
    header, first = _comments(lines)
    columns, units = _column_names(lines, first, source)
    numbers = np.array([k for k in range(first + 1, len(lines)) if _is_data(lines[k])], dtype=np.int64)
    if not numbers.size:
        raise TrajectoryError("there are column names but no rows", place=Place(source, first + 1))
    table = _table([lines[k] for k in numbers], numbers + 1, columns, source)
    _check_finite(table, numbers + 1, columns, source)
    _check_time(table[:, columns.index("t")], numbers + 1, source, events, "events" in header)
    series = {name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(columns)}
    del units["t"]
    return Trajectory(header, series.pop("t"), series, units, source, numbers + 1)


def write_trajectory(path: str | Path, header: Mapping[str, object], t, columns: Sequence[tuple[str, str, object]], *,
                     force: bool = False) -> None:
    """Write a trajectory file, whole or not at all, or to standard output for `-`.

    Numbers are the shortest that read back as the same float64.

    Parameters
    ----------
    header : {key: value}, written as comments
    t : (N,) array [s]
    columns : list of (name, unit, (N,) array); a unit may be empty
    force : bool
        Whether an existing file is replaced; without it that is a UsageError.

    Raises
    ------
    UsageError, ComputationError (a number that is not finite)
    """
    names = [column_title("t", "s"), *(column_title(name, unit) for name, unit, _ in columns)]
    titles = [column_title("t", "s"), *(_title(name, unit) for name, unit, _ in columns)]
    for table in _tables(t, columns):                          # before anything is written, also to standard output
        _check_written(table, names, ["t", *(name for name, _, _ in columns)])
    with open_output(path, force=force) as file:
        for key, value in header.items():
            file.write(f"# {_escaped(key, _IN_COMMENT)}: {_escaped(str(value), _IN_COMMENT)}\n")
        csv.writer(file, lineterminator="\n").writerow(titles)
        for table in _tables(t, columns):
            file.writelines(repr(row)[1:-1].replace(", ", ",").replace("nan", "") + "\n" for row in table.tolist())


def _tables(t, columns) -> Iterator[np.ndarray]:
    """Some rows after the other, the time first."""
    for i in range(0, len(t), _BLOCK):
        yield np.column_stack([np.asarray(x[i:i + _BLOCK], dtype=float) for x in (t, *(x for _, _, x in columns))])


def _undefined(table: np.ndarray, columns: list[str]) -> np.ndarray:
    """Mask of the cells that have no value and need none."""
    return np.isnan(table) & [name in MAY_BE_EMPTY for name in columns]


def _check_written(table: np.ndarray, names: list[str], columns: list[str]) -> None:
    bad = np.argwhere(~np.isfinite(table) & ~_undefined(table, columns))
    if bad.size:
        row, column = bad[0]
        raise ComputationError(f"{names[column]} is {table[row, column]} at t = {float(table[row, 0])!r} s: nothing is written")


def data_frame(t: Array, columns: Sequence[tuple[str, str, Array]]) -> pandas.DataFrame:
    """Columns (name, unit, (N,) array) by their titles, over the time."""
    import pandas
    return pandas.DataFrame({column_title(name, unit): x for name, unit, x in columns},
                            index=pandas.Index(t, name=column_title("t", "s")))


def column_title(name: str, unit: str) -> str:
    """A column's title in the file: its name, and its unit in brackets where it has one."""
    return f"{name}[{unit}]" if unit else name


def cell(text: str) -> str:
    """A name as a cell of a CSV holds it; `name_in_cell` gives it back."""
    return _escaped(text, _IN_CELL)


def _title(name: str, unit: str) -> str:
    text = cell(name)
    if not unit and text.endswith("]"):                     # it would be read as a unit's
        text = text[:-1] + _escape("]")
    return column_title(text, unit)


def name_in_cell(text: str) -> str:
    """The name that `cell` wrote. Other backslashes are as they stand."""
    return _ESCAPE.sub(lambda match: match[0].encode("ascii").decode("unicode_escape"), text)


def _escaped(text: str, doubtful: re.Pattern) -> str:
    """The text on one line: what is doubtful in it and what does not print as escapes."""
    text = doubtful.sub(lambda match: "".join(map(_escape, match[0])), text.replace("\\", "\\\\"))
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _lines(source: str) -> list[str]:
    """Lines of the file without their ends. Refuses what is no text."""
    place = Place(source)
    if source == STDIO:
        data = sys.stdin.buffer.read(LARGEST_TRAJECTORY + 1)
        if len(data) > LARGEST_TRAJECTORY:
            raise too_large(TrajectoryError, source, LARGEST_TRAJECTORY)
    else:
        data = read_whole(source, TrajectoryError, LARGEST_TRAJECTORY, hint="use - for standard input")
    if data.startswith(_BYTE_ORDER_MARKS):
        raise TrajectoryError("the file is text in UTF-16", place=place, expected="UTF-8")
    if b"\0" in data:
        raise TrajectoryError("the file is binary", place=place, expected="comma-separated text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TrajectoryError("the file is not UTF-8 text", place=Place(source, line),
                              found=f"byte 0x{data[error.start]:02x}") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    longest = max(map(len, lines))
    if longest > LONGEST_LINE:
        raise TrajectoryError("the line is too long", place=Place(source, [*map(len, lines)].index(longest) + 1),
                              found=f"{longest} characters", expected=f"at most {LONGEST_LINE}")
    return lines


def _is_data(line: str) -> bool:
    return not line.startswith("#") and line.strip() != ""


def _comments(lines: list[str]) -> tuple[dict[str, str], int]:
    """The `# key: value` comments before the column names, and the index of the line of these."""
    header = {}
    for k, line in enumerate(lines):
        if _is_data(line):
            return header, k
        key, colon, value = line.lstrip("#").partition(":")
        if colon and key.strip():
            header[name_in_cell(key.strip())] = name_in_cell(value.strip())
    return header, len(lines)


def _column_names(lines: list[str], first: int, source: str) -> tuple[list[str], dict[str, str]]:
    """Names and units of the columns, from the line at `first`."""
    if first == len(lines):
        empty = not any(line.strip() for line in lines)
        raise TrajectoryError("the file is empty" if empty else "the file contains comments only", place=Place(source),
                              expected="a line of column names, then rows of numbers")
    place = Place(source, first + 1)
    try:
        fields = next(csv.reader([lines[first]], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise TrajectoryError(f"the column names cannot be read: {error}", place=place, expected=_NAMES) from error
    _check_time_column(fields, lines[first], place)
    units: dict[str, str] = {}
    for k, text in enumerate(fields):
        match = _COLUMN.fullmatch(text)
        name, unit = name_in_cell(match["name"]), (match["unit"] or "").strip()
        if not name:
            raise TrajectoryError(f"column {k + 1} has no name", place=place, found=text or None)
        if name in units:
            raise TrajectoryError("two columns have the same name", place=Place(source, first + 1, name))
        units[name] = unit
    if units["t"] not in ("", "s"):
        raise TrajectoryError("time is not in seconds", place=Place(place.file, place.line, "t"), found=units["t"],
                              expected="t[s]")
    return list(units), units


def _check_time_column(fields: list[str], line: str, place: Place) -> None:
    """What a file without a time holds is not shown: it may be any file that a scenario names."""
    if all(_COLUMN.fullmatch(text)["name"] != "t" for text in fields):
        others = [name for name, sign in (("semicolons", ";"), ("tabs", "\t")) if line.count(sign) > line.count(",")]
        raise TrajectoryError("there is no column `t`", place=place, expected=_NAMES,
                              hint=f"columns are separated by commas, not {others[0]}" if others else None)


def _table(rows: list[str], numbers: np.ndarray, columns: list[str], source: str) -> np.ndarray:
    """(N, columns) numbers. NumPy's reader is quick (10^5 rows of 50 in 1.5 s) but does not say well what is wrong."""
    try:
        table = np.loadtxt(rows, delimiter=",", comments=None, quotechar='"', ndmin=2, encoding=None,
                           converters={k: _number_or_empty for k, name in enumerate(columns) if name in MAY_BE_EMPTY} or None)
    except ValueError:
        pass
    else:
        if table.shape == (len(rows), len(columns)):
            return table
    for row, line in zip(rows, numbers.tolist(), strict=True):
        _row_error(row, line, columns, source)
    raise TrajectoryError("the rows cannot be read as numbers", place=Place(source, int(numbers[0])))


def _number_or_empty(cell: str) -> float:
    number = float(cell) if cell.strip() else math.nan
    if math.isnan(number) and cell.strip():                # NaN is not written as a word
        raise ValueError
    return number


def _row_error(row: str, line: int, columns: list[str], source: str) -> None:
    """Raise if the row does not hold one number for each column."""
    try:
        cells = next(csv.reader([row]))
    except csv.Error:                                      # a cell longer than Python's reader takes
        raise TrajectoryError("the row cannot be read", place=Place(source, line), found=row,
                              expected=f"{len(columns)} numbers") from None
    if len(cells) != len(columns):
        many = len(cells) > len(columns)                   # perhaps decimal commas
        hint = "write numbers with a decimal point; commas separate columns" if many or ";" in row else None
        shown = f" ({row.strip()[:_SHOWN]}{'…' * (len(row.strip()) > _SHOWN)})" if many else ""
        raise TrajectoryError("the row has the wrong number of values", place=Place(source, line),
                              found=f"{len(cells)} values{shown}", expected=str(len(columns)), hint=hint)
    for name, cell in zip(columns, cells, strict=True):
        if cell.strip() or name not in MAY_BE_EMPTY:
            number = number_in_cell(cell, Place(source, line, name), TrajectoryError)
            if math.isnan(number):
                raise TrajectoryError("the value is not finite", place=Place(source, line, name), found=cell,
                                      expected="a finite number")


def _check_finite(table: np.ndarray, numbers: np.ndarray, columns: list[str], source: str) -> None:
    bad = np.argwhere(~np.isfinite(table) & ~_undefined(table, columns))
    if bad.size:
        row, column = bad[0]
        raise TrajectoryError("the value is not finite", place=Place(source, int(numbers[row]), columns[column]),
                              found=f"{table[row, column]}", expected="a finite number")


def check_no_events(trajectory: Trajectory, what: str) -> None:
    """Raise where two rows have one time: the motion jumps there, and `what` cannot be derived across it."""
    twice = np.flatnonzero(np.diff(trajectory.t) == 0.0)
    if twice.size:
        k = int(twice[0]) + 1
        raise TrajectoryError(f"two rows have one time, before and after an event: {what} cannot be derived across it",
                              place=Place(trajectory.source, int(trajectory.lines[k]), "t"), found=f"{float(trajectory.t[k])!r}",
                              expected="a file with all columns of q, v and a, or rows between two events")


def _check_time(t: np.ndarray, numbers: np.ndarray, source: str, allowed: bool, recorded: bool) -> None:
    back = np.flatnonzero(t[1:] < t[:-1] if allowed and recorded else t[1:] <= t[:-1])
    if back.size:
        k = int(back[0]) + 1
        twice = recorded and t[k] == t[k - 1]
        hint = "two rows at an event are read by ld.read_trajectory(file, events=True) only" if twice else None
        raise TrajectoryError("time does not increase", place=Place(source, int(numbers[k]), "t"),
                              found=f"{float(t[k])!r} after {float(t[k - 1])!r}", expected="strictly increasing times",
                              hint=hint)
