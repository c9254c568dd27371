"""Maps from the columns of a foreign CSV file to those of a trajectory: names, units, factors and offsets.

    t=stamp[ms],q.elbow=-joint_3_pos[deg],tau.elbow=current_3[mA]*0.12,v.*=vel_*[rpm]

Each entry has a target, which is a column of a trajectory, and an expression of one column of the file. The same entries are
lines of a YAML file, whose keys COLUMN_MAP declares. `io.trajectory_csv.read_trajectory` applies a map.
"""
from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import Place, TrajectoryError, nearest
from liedyn.io.atomic_output import STDIO
from liedyn.io.column_expressions import Affine, Entry, FileColumns, checked_unit, quoted, read_expression, with_unit
from liedyn.io.csv_table import CsvTable
from liedyn.io.file_schema import Field, File, Named, Schema, Text
from liedyn.io.units import CURRENT, NUMBER, TIME, UNITS, unit_in_name, unit_name, unit_of
from liedyn.io.yaml_nodes import Node, read_yaml
from liedyn.io.yaml_values import tree_of

MOTION_KIND = re.compile(r"(?:d(?P<rate>[1-9][0-9]*))?(?P<kind>q|v|a|tau|fext)")
_SPECIAL = set("\"',=")      # characters of a target that need quotes
SOURCE = "columns"          # file name in errors about entries that are not in a file
_EXPECTED = "entries such as t=stamp[ms],q.elbow=joint_3_pos[deg]"
_TARGETS = "t, q.<joint>, v.<joint>, a.<joint>, tau.<joint> or fext.<link>.fx"
_PIECE = re.compile(r"""(?P<quoted>"[^"]*"|'[^']*')|(?P<unit>\[[^\[\]]*\])|(?P<other>.)""", re.DOTALL)
# a name with *; after a number, a bracket or a name, the sign * is that of a product
_WILDCARD = re.compile(r"""(?P<name>"[^"]*\*[^"]*"|'[^']*\*[^']*'|(?<![\w.\])"'])(?:[^\W\d][\w.]*\*[\w.]*|\*[^\W\d][\w.]*))""")
# the same for * alone or with a suffix such as .pos, where an operand begins
_WHOLE = re.compile(r"(?:^|[-+*/(])\s*(?P<name>\*(?:\.[\w.]+)?)(?![\w.])")


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """A map from the columns of a file to those of a trajectory.

    entries   in their order; a target with `*` is a pattern
    units     {kind such as q: entry}, units of columns for which neither an entry nor the file gives one
    names     {text that `*` stands for in the file: entry with that in the target}
    robot     robot file for a CSV that names none, as it can be opened from the current folder
    file      YAML file of the map; None if it was given as text or dict
    source_text   the text of the map if it is a text
    """

    entries: tuple[Entry, ...]
    units: Mapping[str, Entry]
    names: Mapping[str, Entry]
    robot: str | None = None
    file: str | None = None
    source_text: str | None = None


@dataclass(frozen=True, slots=True)
class MappedSource:
    """What a column of a mapped trajectory is read from.

    text  the expression
    unit  what gives the unit: `map`, `file` (the title), `name` (the end of the name, as in elbow_deg), `default`, or empty
    """

    text: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class AppliedMap:
    """The map that a trajectory was read with.

    sources   {column: source}, in the order of the map
    places    {column: location of its entry}, without columns of patterns
    ignored   columns of the file that are not read
    automatic whether the map was found next to the file
    """

    sources: Mapping[str, MappedSource]
    places: Mapping[str, Place]
    ignored: tuple[str, ...] = ()
    file: str | None = None
    source_text: str | None = None
    automatic: bool = False

    @property
    def text(self) -> str:
        """The map as text, without patterns."""
        return text_of_entries({target: source.text for target, source in self.sources.items()})


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column of a trajectory: the index of the column of the file that it is computed from, None for a constant."""

    name: str
    unit: str
    index: int | None
    steps: tuple[tuple[str, float], ...] = ()
    constant: float = 0.0

    def values(self, table: Array) -> Array:
        """Return the values (N,) from those of the file (N, columns)."""
        if self.index is None:
            return np.full(len(table), self.constant)
        x = np.ascontiguousarray(table[:, self.index])
        for operation, c in self.steps:
            x = x + c if operation == "+" else x - c if operation == "-" else x * c if operation == "*" else x / c
        return x


# Reading a map ----------------------------------------------------------------------------------------------------------

def _read(node: Node) -> ColumnMap:
    nodes = COLUMN_MAP.nodes(node)
    if not nodes["columns"].mapping():
        raise nodes["columns"].wrong("a mapping from columns of a trajectory to those of the file")
    parts = {key: {name: Entry(name, child.text(), child.place) for name, child in nodes[key].mapping().items()}
             for key in ("columns", "units", "names") if key in nodes}
    units = {name: replace(entry, text=entry.text.strip().removeprefix("[").removesuffix("]"))
             for name, entry in parts.get("units", {}).items()}
    return ColumnMap(tuple(parts["columns"].values()), units, parts.get("names", {}), COLUMN_MAP.value(nodes, "robot"), node.file)


COLUMN_MAP = Schema("column_map", (
    Field("columns", Named(Text(), "q.elbow"), "what each column of the trajectory is read from: a column of the CSV, with "
        "a unit in brackets, a sign, factors and offsets; `*` stands for the same text on both sides",
        required="a mapping such as {t: stamp, q.elbow: joint_3_pos}",
        example={"t": "stamp[ms]", "q.elbow": "-joint_3_pos[deg]", "v.elbow": "(joint_3_vel - 512)*0.1[rpm]",
                 "tau.*": "current_*[mA] * 0.12"}, live=True),
    Field("units", Named(Text(), "q"), "units of the kinds of columns `t`, `q`, `v`, `a`, `tau`, …, where neither the "
        "entry nor the CSV gives one", "SI", example={"q": "deg", "v": "deg/s"}),
    Field("names", Named(Text(), "3"), "joint names for the texts that `*` stands for in the CSV", "the same text",
        example={"3": "elbow"}),
    Field("robot", File("robot file"), "robot file of a CSV whose comments name none", "none", example="robot.yaml")),
    reader=_read, other_names={"column": "columns", "unit": "units", "joints": "names"})


MapArgument: TypeAlias = str | os.PathLike[str] | Mapping[str, object]


def read_column_map(columns: MapArgument) -> ColumnMap:
    """Return the map in a text of entries, in a dict {target: expression} or one with the keys of the YAML file, or in a file.

    A text with the sign = is one of entries, unless a file has this name.
    """
    if isinstance(columns, Mapping):
        if columns and set(columns) <= set(COLUMN_MAP):
            return replace(_read(tree_of(columns, SOURCE, TrajectoryError)), file=None)
        return _of_entries(_entries_of_dict(columns))
    if isinstance(columns, str) and "=" in columns and not _is_file(columns):
        return replace(_of_entries(_split(columns)), source_text=columns)
    if isinstance(columns, str) and not columns.strip():
        raise TrajectoryError("the map has no entries", place=Place(SOURCE), expected=_EXPECTED)
    if isinstance(columns, str) and not Path(columns).suffix and not _is_file(columns):
        raise TrajectoryError("neither a file nor entries with =", place=Place(SOURCE), found=columns, expected=_EXPECTED)
    return _read(read_yaml(columns, TrajectoryError))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):                          # a text of many entries is too long for a path
        return False


def map_file(path: str | os.PathLike[str]) -> str | None:
    """Return the file next to a CSV with the map of its columns: motion.columns.yaml for motion.csv. None if there is none.

    The map of the folder of a bag is next to the folder: bag.columns.yaml for bag/.
    """
    if os.fspath(path) == STDIO:
        return None
    file = Path(path)
    file = file.with_name(f"{file.name}.columns.yaml") if file.is_dir() else file.with_suffix(".columns.yaml")
    return str(file) if file.is_file() else None


def _entries_of_dict(columns: Mapping[str, object]) -> Iterator[Entry]:
    for target, text in columns.items():
        if not isinstance(target, str) or not isinstance(text, str):
            raise TrajectoryError("not an entry of a map", place=Place(SOURCE, None, str(target)), found=text,
                                  expected='text such as "joint_3_pos[deg]"')
        yield Entry(target, text, Place(SOURCE, None, target))


def _split(text: str) -> Iterator[Entry]:
    """Yield the entries of a text. Commas and signs = in quotes belong to names."""
    parts: list[list[str]] = [[""]]                        # of each entry: target, expression
    for piece in _PIECE.finditer(text):
        if piece[0] == ",":
            parts.append([""])
        elif piece[0] == "=" and len(parts[-1]) == 1:
            parts[-1].append("")
        else:
            parts[-1][-1] += piece[0]
    for part in parts:
        target = part[0].strip()
        if len(part) < 2 or not target:
            hint = "write names with commas in quotes" if len(parts) > 1 and len(part) < 2 else None
            raise TrajectoryError("not an entry of a map", place=Place(SOURCE), found="=".join(part).strip(), expected=_EXPECTED,
                                  hint=hint)
        if target[0] == target[-1] and target[0] in "\"'" and len(target) > 1:
            target = target[1:-1]
        yield Entry(target, part[1].strip(), Place(SOURCE, None, target))


def _of_entries(entries: Iterator[Entry]) -> ColumnMap:
    """Return the map of entries. An entry whose expression is a unit only, such as q=[deg], is the unit of a kind."""
    columns, units = [], {}
    for entry in entries:
        if re.fullmatch(r"\[[^\[\]]*\]", entry.text.strip()):
            units[entry.target.removesuffix(".*")] = replace(entry, text=entry.text.strip()[1:-1])
        else:
            columns.append(entry)
    if not columns and not units:
        raise TrajectoryError("the map has no entries", place=Place(SOURCE), expected=_EXPECTED)
    return ColumnMap(tuple(columns), units, {})


# Writing a map ----------------------------------------------------------------------------------------------------------

def text_of_entries(entries: Mapping[str, str]) -> str:
    """Return entries {target: expression} as one text, which `read_column_map` reads."""
    return ",".join(f"{quoted(target) if set(target) & _SPECIAL else target}={text}" for target, text in entries.items())


def columns_option(entries: Mapping[str, str] | str) -> str:
    """Return the option `--columns` with a map, in quotes for a shell. Empty if a name cannot be written.

    entries  {target: expression}, or the text of a map
    """
    if isinstance(entries, str):
        return f"--columns (or columns=) {shlex.quote(entries)}"
    names = [target for target in entries if target.partition(".")[2] != "*"]              # others are patterns
    if any("*" in name or {"'", '"'} <= set(name) for name in names):
        return ""
    return columns_option(text_of_entries(entries))


# Binding a map to the columns of a file ---------------------------------------------------------------------------------

def bind_map(column_map: ColumnMap, table: CsvTable, *, automatic: bool = False) -> tuple[list[BoundColumn], AppliedMap]:
    """Return the columns of the trajectory that a map makes of a file, and what it applied.

    Columns of the file that the map does not use are also read if they have the name of a column of motion or force.
    """
    columns = FileColumns(table)
    units = {_kind_of_unit(kind, entry): entry for kind, entry in column_map.units.items()}
    bound: dict[str, BoundColumn] = {}
    sources: dict[str, MappedSource] = {}
    places: dict[str, Place] = {}
    for entry in column_map.entries:
        if "*" in entry.target:
            continue
        target = _checked_target(entry)
        if target in places:
            raise TrajectoryError("two entries have the same target", place=entry.place, found=target,
                                  expected="one entry for each column of the trajectory")
        places[target] = entry.place
    used_names: set[str] = set()
    for entry in sorted(column_map.entries, key=_reads_any_name):      # * alone stands for the names that other entries leave
        read = {column.index for column in bound.values()}
        for single in _resolved(entry, column_map, columns, used_names, read) if "*" in entry.target else [entry]:
            target = _checked_target(single)
            if single is not entry and target in places:               # the entry of the name comes before that of a pattern
                continue
            if target in bound:
                raise TrajectoryError("two entries have the same target", place=entry.place, found=target,
                                      expected="one entry for each column of the trajectory")
            bound[target], sources[target] = _bound(replace(single, target=target), columns, units)
    unused = [entry for name, entry in column_map.names.items() if name not in used_names]
    if unused:
        raise TrajectoryError("no column of a pattern has this name", place=unused[0].place, found=unused[0].target,
                              expected="a text that * stands for in the CSV")
    used = {column.index for column in bound.values()}
    native = {k: name for k, (name, _) in enumerate(columns.parts)
              if name not in bound and (name == "t" or (k not in used and is_motion_column(name)))}
    if repeated := [name for name, count in Counter(native.values()).items() if count > 1]:
        raise TrajectoryError("two columns have the same name", place=table.place(column=repeated[0]))
    native_columns = [_native_column(name, k, columns, units) for k, name in native.items()]
    ignored = tuple(name or f"column {k + 1}" for k, (name, _) in enumerate(columns.parts) if k not in used and k not in native)
    return [*bound.values(), *native_columns], AppliedMap(sources, places, ignored, column_map.file, column_map.source_text,
                                                          automatic)


def is_motion_column(name: str) -> bool:
    """Return whether this is the name of a column of motion or force of a trajectory, such as q.elbow or d1tau.elbow."""
    kind, dot, rest = name.partition(".")
    match = MOTION_KIND.fullmatch(kind)
    return bool(match and dot and rest) and not (match is not None and match["rate"] and match["kind"] in ("q", "v"))


def _checked_target(entry: Entry) -> str:
    target = "t" if entry.target in ("t", "time", "t[s]") else entry.target.strip()
    bracket = re.fullmatch(r"(.*)\[([^\[\]\d][^\[\]]*)\]", target)
    with_unit_of_file = bracket is not None and unit_of(bracket[2]) is not None
    if target != "t" and (with_unit_of_file or not is_motion_column(target)):
        hint = f"the unit is part of the expression: {bracket[1]}=NAME[{bracket[2]}]" if bracket is not None else None
        raise TrajectoryError("not a column of a trajectory", place=entry.place, found=target, expected=_TARGETS, hint=hint)
    return target


def _kind_of_unit(kind: str, entry: Entry) -> str:
    kind = "t" if kind == "time" else kind
    if kind != "t" and not is_motion_column(f"{kind}.x"):
        raise TrajectoryError("not a kind of columns", place=entry.place, found=kind, expected="t, q, v, a, tau or fext")
    checked_unit(entry.text, entry.place)
    return kind


def _wildcards(entry: Entry) -> list[re.Match[str]]:
    """Return the matches, with a group `name`, of names with * in the expression of an entry."""
    return list(_WILDCARD.finditer(entry.text)) or list(_WHOLE.finditer(entry.text))


def _reads_any_name(entry: Entry) -> bool:
    return "*" in entry.target and any(match["name"].strip("\"'") == "*" for match in _wildcards(entry))


def _resolved(entry: Entry, column_map: ColumnMap, columns: FileColumns, used_names: set[str],
              read: Collection[int | None]) -> Iterator[Entry]:
    """Yield an entry for each column of the file that the name with `*` in an entry matches.

    read  indices of columns that other entries read; `*` alone does not match them, nor names of a trajectory
    """
    if entry.target.count("*") != 1:
        raise TrajectoryError("a pattern must contain exactly one *",
                              place=entry.place, found=entry.target, expected="a target such as q.*")
    names = _wildcards(entry)
    if len(names) != 1:
        raise TrajectoryError("the expression of a pattern must contain exactly one name with *",
                              place=entry.place, found=entry.text,
                              expected='an expression such as *[deg], pos_*[deg] or "position[*]"[deg]',
                              hint="write names with characters other than letters, digits, _ and . in quotes")
    match, pattern = names[0], names[0]["name"].strip("\"'")
    if pattern.count("*") != 1:
        raise TrajectoryError("a pattern must contain exactly one *", place=entry.place, found=pattern,
                              expected="a name such as pos_*",
                              hint="write spaces around the * of a product")
    begin, end = pattern.split("*")
    matching = [name for k, name in enumerate(columns.names)
                if len(name) > len(begin) + len(end) and name.startswith(begin) and name.endswith(end)
                and (begin or end or not (k in read or name == "t" or is_motion_column(name)))]
    if not matching:
        raise columns.missing(pattern, entry.place)
    for name in matching:
        word = name[len(begin):len(name) - len(end)]
        if word in column_map.names:
            used_names.add(word)
            word = column_map.names[word].text
        text = entry.text[:match.start("name")] + quoted(name) + entry.text[match.end("name"):]
        yield Entry(entry.target.replace("*", word), text, entry.place)


def _native_column(name: str, index: int, columns: FileColumns, units: Mapping[str, Entry]) -> BoundColumn:
    """Return a column that keeps its name."""
    unit, default = columns.unit(index), units.get(name.partition(".")[0])
    value = Affine(index)
    if not unit and default is not None:
        value = value.in_unit(checked_unit(default.text, default.place))
        unit = unit_name(value.exponents or NUMBER)
    return BoundColumn(name, unit, index, value.steps)


def _bound(entry: Entry, columns: FileColumns, units: Mapping[str, Entry]) -> tuple[BoundColumn, MappedSource]:
    """Return the column of an entry, and its source."""
    kind = entry.target.partition(".")[0]
    (value, text), origin = read_expression(entry, columns), "map"
    if value.exponents is None:
        header = columns.unit(value.column) if value.column is not None else ""
        known, default, origin = unit_of(header) if header else None, units.get(kind), ""
        name = "" if header or value.column is None or value.scaled else columns.names[value.column]
        named = unit_in_name(name) if name != entry.target.partition(".")[2] else ""       # a joint may have such a name
        if known is not None:
            value, origin = value.in_unit(known), "file"
        elif named:
            value, text, origin = value.in_unit(checked_unit(named, entry.place)), with_unit(text, named), "name"
        elif default is not None:
            value, origin = value.in_unit(checked_unit(default.text, default.place)), "default"
            text = with_unit(text, default.text)
        elif header and not value.scaled:
            raise TrajectoryError(f"unknown unit of the column {columns.names[value.column or 0]}", place=entry.place,
                                  found=header, expected="a unit in brackets, or a factor", hint=nearest(header, UNITS))
    if value.exponents == CURRENT and kind.endswith(("tau", "fext")):
        if not value.scaled:
            raise TrajectoryError("a current cannot be used as a force", place=entry.place, found=entry.text,
                                  expected="the product with a torque constant, such as current_3[mA]*0.12")
        value = replace(value, exponents=None)
    unit = unit_name(value.exponents or NUMBER)
    if kind == "t" and value.exponents not in (None, TIME):
        raise TrajectoryError("not a time", place=entry.place, found=unit, expected="a unit such as s, ms, us or ns")
    return BoundColumn(entry.target, unit, value.column, value.steps, value.number), MappedSource(text, origin)
