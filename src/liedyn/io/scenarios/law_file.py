"""A scenario's `control` and `saturate`: laws that give the forces of joints, and the limits of these forces."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from liedyn.errors import Place, ScenarioError
from liedyn.io.keys import File
from liedyn.io.scenarios.law_keys import ABOUT, CONTROL, LIMIT, MATRIX, OF_JOINTS, POLES, TRACKING
from liedyn.io.scenarios.scenario import EFFORT, LAWS, Control, Rule
from liedyn.io.text_file import read_text
from liedyn.io.yaml_text import Node

_ROW = "a row of a gain matrix: numbers between commas (# begins a comment)"


def read_control(node: Node, rules: Callable, signal: Callable, numbers: Callable, pose: Callable) -> Control:
    """rules, signal, numbers, pose: readers of `scenario_file`."""
    node.mapping()
    law = CONTROL.required(node, "law")
    given = node.mapping(CONTROL)
    CONTROL.check_kind(given, law, f"the law {law}")
    if law in OF_JOINTS:
        return replace(_poles(node, law), motion=rules(CONTROL.require(node, "motion"), signal))
    if law in TRACKING:
        return replace(_poles(node, law), link=CONTROL.require(node, "link").text(),
                       point=CONTROL.value(given, "point", (0.0, 0.0, 0.0)), target=pose(CONTROL.require(node, "target")),
                       posture=rules(given.get("posture"), numbers))
    joints = tuple(Rule(child.text(), (), child.place) for child in given["joints"].items(least=1, of="joints")) \
        if "joints" in given else ()
    if law == "gravity_compensation":
        return Control(law, joints=joints, place=node.place)
    about = CONTROL.require(node, "about").mapping(ABOUT)
    gain, rows, columns = _matrix(CONTROL.require(node, "gain"))
    if rows and joints:
        raise given["joints"].problem("the rows of the gain have names already", expected="joints or names")
    return Control(law, joints=joints, gain=gain, rows=rows, columns=columns, about_q=rules(about.get("q"), numbers),
                   about_v=rules(about.get("v"), numbers), place=node.place)


def _poles(node: Node, law: str) -> Control:
    given = node.mapping()
    chosen = [key for key in POLES if key in given]
    if len(chosen) != 1:
        raise node.problem("control takes exactly one of " + ", ".join(POLES), found=" and ".join(chosen) or "neither")
    value = given[chosen[0]]
    if chosen == ["bandwidth"]:
        return Control(law, bandwidth=CONTROL.value(given, "bandwidth"), place=node.place)
    poles = tuple(child.number() for child in value.items(LAWS[law], of=f"poles for {law}"))
    for child, pole in zip(value.value, poles, strict=True):
        if pole >= 0.0:
            raise child.problem("unstable pole", found=child.shown(), expected="a negative pole [1/s]")
    return Control(law, poles=poles, place=node.place)


def _matrix(node: Node) -> tuple[tuple[tuple[float, ...], ...], tuple[str, ...], tuple[str, ...]]:
    """Rows of numbers, and names of rows and columns, if there are any."""
    if node.kind == "text":
        return _matrix_file(File().read(node))
    if node.kind == "mapping" and node.value:
        named = {name: {column: child.number() for column, child in row.mapping().items()} for name, row in node.value.items()}
        columns = tuple(dict.fromkeys(column for row in named.values() for column in row))
        return tuple(tuple(row.get(column, 0.0) for column in columns) for row in named.values()), tuple(named), columns
    if node.kind != "list" or not node.value:
        raise node.wrong(MATRIX)
    rows = tuple(tuple(child.number() for child in row.items(least=1, of="numbers")) for row in node.value)
    for child, row in zip(node.value, rows, strict=True):
        if len(row) != len(rows[0]):
            raise child.problem("a row of another length", found=len(row), expected=f"{len(rows[0])} numbers")
    return rows, (), ()


def _matrix_file(file: str) -> tuple[tuple[tuple[float, ...], ...], tuple[str, ...], tuple[str, ...]]:
    """Numbers between commas; lines that begin with # are comments. Where the first line has names, as in the files of
    `liedyn linearize`, it names the columns from its second cell on, and each row begins with its own."""
    lines = [(Place(file, number), [cell.strip() for cell in line.split(",")])
             for number, line in enumerate(read_text(file, ScenarioError).splitlines(), 1)
             if line.strip() and not line.lstrip().startswith("#")]
    named = bool(lines) and _is_name(lines[0][1][-1])
    body = lines[1:] if named else lines
    if not body:
        raise ScenarioError("the matrix is empty", place=Place(file), expected="rows of numbers between commas")
    for place, cells in body:
        if len(cells) != len(lines[0][1]):
            raise ScenarioError("a row of another length", place=place, found=len(cells),
                                expected=f"{len(lines[0][1])} cells, as in the first")
    gain = tuple(tuple(_finite(cell, place) for cell in cells[named:]) for place, cells in body)
    if not named:
        return gain, (), ()
    return gain, tuple(_bare(cells[0]) for _, cells in body), tuple(map(_bare, lines[0][1][1:]))


def _is_name(cell: str) -> bool:
    return bool(re.match(r"[qv]\.", cell))


def _bare(cell: str) -> str:
    """Without its unit."""
    return re.sub(r"\s*\[[^\[\]]*\]\Z", "", cell)


def _finite(cell: str, place: Place) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ScenarioError("not a number", place=place, found=cell, expected=_ROW) from None
    if not math.isfinite(value):
        raise ScenarioError("not a finite number", place=place, found=cell, expected=_ROW)
    return value


def read_saturation(node: Node) -> tuple[Rule, ...]:
    """`true`: all joints at their effort limits; or a limit by joint."""
    if node.kind == "boolean":
        return (Rule("*", EFFORT, node.place),) if node.value else ()
    if node.kind != "mapping":
        raise node.wrong("true, false, or limits by joint: effort or a number")
    return tuple(Rule(name, _limit(child), child.place) for name, child in node.value.items())


def _limit(node: Node) -> float | str:
    if node.kind == "text":
        return node.choice((EFFORT,))
    if node.kind != "number":
        raise node.wrong("effort (the limit of the robot file) or a number [N m or N]")
    return LIMIT.read(node)
