"""Tables of expressions in scenarios: keys, points from YAML or a CSV with units, and writing."""
from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import Place, ScenarioError, nearest
from liedyn.io.csv_table import foreign_title, read_table, title_unit
from liedyn.io.file_schema import Choice, Field, File, List, Named, Number, OneOf, Schema, Text, default_of
from liedyn.io.scenarios.scenario import Table
from liedyn.io.units import UNITS, Unit, unit_name, unit_of
from liedyn.io.yaml_nodes import Node
from liedyn.model.interpolation import INTERPOLATIONS, MIN_POINTS

OUTSIDE = ("error", "hold", "linear")
MAX_POINTS = 10_000
_ROUNDING = 1e-9                 # of a period: the end of a table that covers it
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\D.*?)\s*")


def _table(node: Node) -> Table:
    nodes, values = TABLE.nodes(node), TABLE.values(node)
    of = values["of"]
    columns, units, places = read_columns(nodes["points"], len(of) + 1,
                                          f"{len(of) + 1}: one for each expression of the key of, then the values")
    interpolation = values.get("interpolation", "monotone" if len(of) == 1 else "linear")
    if interpolation == "monotone" and len(of) == 2:
        raise nodes["interpolation"].problem("tables of two expressions are not monotone", found=interpolation,
                                             expected="linear or cubic")
    period = values.get("period", ())
    if period and len(period) != len(of):
        raise nodes["period"].problem("wrong number of periods", found=len(period), expected=f"{len(of)}, one per expression")
    units = tuple(unit or (period[k][1] if k < len(period) else "") for k, unit in enumerate(units))
    for unit, (_, other) in zip(units, period, strict=False):
        if other not in ("", unit):
            raise nodes["period"].problem("the period has another unit than the column", found=other, expected=unit)
    table = Table(of, tuple(map(tuple, columns.T.tolist())), interpolation, values.get("outside", "error"),
                  tuple(x for x, _ in period), units, place=node.place)
    if period and len(of) == 1 and "outside" in nodes:
        raise nodes["outside"].problem("outside does not apply to a periodic table", expected="period or outside")
    axes = table_axes(table, places)
    for x, span in zip(axes, table.periods, strict=True):
        if len(x) + (span > 0.0) < MIN_POINTS[interpolation]:
            raise nodes["points"].problem(f"too few points for {interpolation} interpolation", found=len(x),
                                          expected=f"at least {MIN_POINTS[interpolation]}")
        if span and x[-1] - x[0] > span * (1.0 + _ROUNDING):
            raise nodes["points"].problem("the table is longer than its period", found=float(x[-1] - x[0]),
                                          expected=f"at most {span:g}")
    table_values(table, axes, places)
    return table


def read_columns(node: Node, count: int, expected: str, minimum: int = 2) -> tuple[Array, tuple[str, ...], list[Place]]:
    """Return the columns (count, N) of a list of rows, of a CSV or of lists by title in SI.

    Also returns their units ("" if unknown), and the location of each row. expected: text about the columns. minimum: of rows
    """
    if node.kind == "text":
        table = read_table(File("CSV file").read(node), node.error)
        titles, columns = table.titles, table.parse_numbers().T
        places = [table.place(int(line)) for line in table.lines]
        title_places = [table.place(column=name) for name in table.names]
    elif node.kind == "mapping":
        nodes = node.mapping()
        titles, title_places = [*nodes], [child.place for child in nodes.values()]
        lists = [List(Number(), 1, words="numbers").read(child) for child in nodes.values()]
        if len({*map(len, lists)}) > 1:
            raise node.problem("the columns of the table have different lengths", found=[*map(len, lists)])
        columns, places = np.array(lists), [node.place] * len(lists[0] if lists else ())
    else:
        rows = node.items(of=f"rows of {count} numbers")
        columns, places = np.array([row.vector(count) for row in rows]).reshape(-1, count).T, [row.place for row in rows]
        titles, title_places = [""] * count, [node.place] * count
    if len(titles) != count:
        raise node.error("wrong number of columns in the table", place=title_places[0] if titles else node.place,
                         found=len(titles), expected=expected)
    if not minimum <= columns.shape[1] <= MAX_POINTS:
        raise node.problem("wrong number of rows in the table", found=columns.shape[1], expected=f"{minimum} to {MAX_POINTS}")
    units = [_unit(title, place, node) for title, place in zip(titles, title_places, strict=True)]
    return (np.array([unit.in_si(x) if unit else x for unit, x in zip(units, columns, strict=True)]),
            tuple(unit_name(unit.exponents) if unit else "" for unit in units), places)


def _unit(title: str, place: Place, node: Node) -> Unit | None:
    """Return the unit of a column title, or None if it has none."""
    text = title_unit(title)
    unit = unit_of(text) if text else None
    if text and unit is None:
        raise node.error(f"unknown unit of the column {foreign_title(title)[0]}", place=place, found=text,
                         expected="a unit such as deg or N", hint=nearest(text, UNITS))
    return unit


def table_axes(table: Table, places: list[Place] | None = None) -> list[Array]:
    """Return the increasing values of each expression. Raises ScenarioError."""
    points = np.array(table.points)
    if len(table.of) == 2:
        return [np.unique(x) for x in points[:, :2].T]
    for k, (x, following) in enumerate(pairwise(points[:, 0])):
        if not following > x:
            raise ScenarioError(f"the values of {table.of[0]} in the table must increase",
                                place=places[k + 1] if places else table.place, found=float(following),
                                expected=f"a number above {x:g}")
    return [points[:, 0]]


def table_values(table: Table, axes: list[Array], places: list[Place] | None = None) -> Array:
    """Return the values (n,), or (n, m) over the grid of two expressions. Raises ScenarioError."""
    points = np.array(table.points)
    if len(axes) == 1:
        return np.asarray(points[:, 1])
    grid = np.full([len(x) for x in axes], np.nan)
    rows, columns = (np.searchsorted(x, values) for x, values in zip(axes, points[:, :2].T, strict=True))
    for k, (i, j, value) in enumerate(zip(rows, columns, points[:, 2], strict=True)):
        if np.isfinite(grid[i, j]):
            raise ScenarioError("two rows of the table have the same values of its expressions",
                                place=places[k] if places else table.place, found=list(table.points[k][:2]))
        grid[i, j] = value
    missing = np.argwhere(np.isnan(grid))
    if len(missing):
        first = ", ".join(f"{x[k]:g}" for x, k in zip(axes, missing[0], strict=True))
        raise ScenarioError(f"the table has no row with {first}, and lacks {len(missing)} of {grid.size} combinations",
                            place=table.place.at("points"), expected="one row for each combination")
    return grid


def _period(node: Node) -> tuple[tuple[float, str], ...]:
    """Return each period in SI (0: none), with its unit."""
    return tuple((0.0, "") if child.kind == "null" else _quantity(child) for child in (
        node.items(2, of="periods") if node.kind == "list" else [node]))


def _quantity(node: Node) -> tuple[float, str]:
    """Return a positive number, such as 720deg in SI, and its unit."""
    if node.kind == "number":
        return node.number(above=0), ""
    match = _QUANTITY.fullmatch(node.text())
    unit = unit_of(match[2]) if match else None
    if match is None or unit is None or not float(match[1]) > 0.0:
        raise node.wrong("a number above 0, with a unit or without, such as 720deg")
    return float(unit.in_si(float(match[1]))), unit_name(unit.exponents)


def table_to_dict(table: Table) -> dict[str, Any]:
    """Return a table as in a file."""
    periods = [period or None for period in table.period]
    return {"of": table.of[0] if len(table.of) == 1 else table.of, "points": table.points, "interpolation": table.interpolation,
            "outside": None if table.outside == default_of(Table, "outside") else table.outside,
            "period": None if not periods else periods[0] if len(periods) == 1 else periods}


def _expressions(node: Node) -> tuple[str, ...]:
    return tuple(child.text() for child in node.items(2, of="expressions")) if node.kind == "list" else (node.text(),)


TABLE: Schema = Schema("table", (
    Field("of", OneOf((Text(), List(Text(), 2, 2)), "expressions_of_table", _expressions), "an expression such as `q(crank)`, or "
        "a list of two", required="an expression, or a list of two", example="q", live=True),
    Field("points", OneOf((Text(), List(List(Number(), 2, 3), 2), Named(List(Number(), 2), "angle[deg]")), "points_of_table",
        lambda node: node),
        "rows `[x, value]`, or `[x, y, value]` for all combinations of x and y; a CSV, or lists by title, whose titles may have "
        "units", required="rows, a CSV, or lists by title", example=[[-1, 2], [0, 0], [1, -1]], live=True),
    Field("interpolation", Choice(INTERPOLATIONS, {"spline": "did you mean cubic?"}), "`linear`, `monotone` (smooth, without "
        "overshoot; one expression) or `cubic` (a spline)", "monotone; of two expressions, linear", example="linear"),
    Field("outside", Choice(OUTSIDE), "beyond the points: `error`, `hold` (the last value) or `linear` (a straight line)",
        default_of(Table, "outside"), example="linear"),
    Field("period", OneOf((Number(above=0), Text(), List(OneOf((Number(above=0), Text())), 2, 2)), "period_of_table", _period),
        "the table repeats after it: a number, or one with a unit such as `720deg`; of two expressions, a list (null: no period)",
        "none", example="360deg")), other_names={"kind": "interpolation", "extrapolation": "outside"}, reader=_table)
