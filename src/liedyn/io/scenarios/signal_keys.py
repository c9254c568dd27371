"""Signals and rules of a scenario: their keys, from YAML and back."""
from __future__ import annotations

from typing import Any

from liedyn.io.keys import (
    Choice,
    Either,
    File,
    Key,
    Keys,
    List,
    Named,
    Number,
    Text,
    Value,
    Vector,
    default_of,
    one_or_more,
    only,
)
from liedyn.io.scenarios.scenario import Begun, Column, Constant, Expression, Quintic, Rule, Signal, Sine, Spline
from liedyn.io.write_yaml import FilePath
from liedyn.io.yaml_text import Node

INTERPOLATIONS = ("linear", "cubic", "quintic")

NUMBERS = one_or_more(Number(), "numbers", "numbers")               # of one joint


# rules --------------------------------------------------------------------------------------------------------------

def by_name(of: Value, name: str) -> Named:
    """Rules, by name or pattern."""
    return Named(of, name, lambda node: tuple(Rule(key, of.read(child), child.place) for key, child in node.mapping().items()))


def patterns(value: Any) -> List:
    """A list of names or patterns: a rule for each, all with one value."""
    joints = List(Text(), 1, words="joints")
    return List(Text(), 1, how=lambda node: tuple(Rule(child.text(), value, child.place) for child in joints.nodes(node)))


def plain_rules(rules: tuple[Rule, ...], plain=lambda value: value) -> dict:
    return {rule.pattern: plain(rule.value) for rule in rules}


def plain_numbers(values: tuple[float, ...]) -> float | tuple[float, ...]:
    return values[0] if len(values) == 1 else values


# signals ------------------------------------------------------------------------------------------------------------

def read_signal(node: Node, *more: str) -> Signal:
    """more: keys that stand in the place of a signal, too."""
    if node.kind == "number":
        return Constant(node.number(), node.place)
    if node.kind == "text":
        return Expression(node.text(), node.place)
    kinds = (*CURVES.one_of[0], *more)
    if node.kind != "mapping" or not node.value:
        raise node.wrong("a number, an expression, or one of " + ", ".join(kinds))
    given = node.mapping((*CURVES, *more))
    key, child = only(node, given, kinds, "a signal")
    curve = CURVES[key].value.read(child)
    return Begun(curve, given["from"].text(), given["from"].place) if "from" in given else curve


def _quintic(node: Node) -> Quintic:
    points = [tuple(child.number() for child in row.items(least=2, most=4, of="numbers: t, x, dx/dt, d²x/dt²"))
              for row in node.items(least=2, of="waypoints [t, x]")]
    _check_times(node)
    return Quintic(tuple((*point, 0.0, 0.0)[:4] for point in points), node.place)


def _spline(node: Node) -> Spline:
    points = tuple(row.vector(2) for row in node.items(least=2, of="points [t, x]"))
    _check_times(node)
    return Spline(points, node.place)


def _check_times(node: Node) -> None:
    for before, after in zip(node.value, node.value[1:], strict=False):
        if after.value[0].value <= before.value[0].value:
            raise after.value[0].problem("times must increase", found=after.value[0].shown(),
                                         expected=f"a time after {before.value[0].written}")


def _column(node: Node) -> Column:
    values = CSV.values(node)
    return Column(values["file"], values.get("column"), values.get("interpolation"), node.place)


SINE = Keys("sine", (
    Key("amplitude", Number(), "in the unit of the signal", required=True, example=0.5, live=True),
    Key("frequency", Number(), "[Hz]", required=True, missing="a frequency in Hz", example=2, live=True),
    Key("phase", Number(), "[rad]", default_of(Sine, "phase"), example=0.1),
    Key("offset", Number(), "in the unit of the signal", default_of(Sine, "offset"), example=0.2)),
    how=lambda node: Sine(**SINE.values(node), place=node.place))
CSV = Keys("column", (
    Key("file", File(), "path of a CSV", required=True, missing="the path of a CSV file", example="motion.csv", live=True),
    Key("column", Text(), "name of the column", "the one of this coordinate", example="q.elbow"),
    Key("interpolation", Choice(INTERPOLATIONS), "between the rows", "`linear` for a force, `quintic` for a motion",
        example="quintic")), how=_column)
CURVES = Keys("curve", (
    Key("quintic", List(List(Number(), 2, 4), 2, how=_quintic), "waypoints `[t, x]` to `[t, x, dx, d2x]` joined by quintic "
        "polynomials; derivatives that are not given are zero", example=[[0, 0], [2, 1.0, 0, 0]]),
    Key("spline", List(Vector(2), 2, how=_spline), "points `[t, x]` joined by a cubic spline, with zero slope at both ends",
        example=[[0, 0], [1, 0.4], [2, 0.1]]),
    Key("sine", SINE, "`offset + amplitude sin(2 pi frequency t + phase)`"),
    Key("csv", CSV, "a column of a CSV"),
    Key("from", Text(), "time origin of the curve: `phase` (start of the current phase) or the name of an event; "
        "before an event, the curve has its first value", "the start of the run", example="phase")),
    one_of=(("quintic", "spline", "sine", "csv"),))
SIGNAL = Either((Number(), Text(), CURVES), "signal", read_signal)
SIGNALS = Either((SIGNAL, List(SIGNAL, 1, words="signals")), "signals")
THREE_SIGNALS = List(SIGNAL, 3, 3, "signals")


def plain_signal(signal: Signal | tuple[Signal, ...]) -> Any:
    match signal:
        case tuple():
            return [plain_signal(one) for one in signal]
        case Constant():
            return signal.value
        case Expression():
            return signal.text
        case Begun():
            return {**plain_signal(signal.curve), "from": signal.start}
        case Column():
            return {"csv": {"file": FilePath(signal.file), "column": signal.name, "interpolation": signal.interpolation}}
        case Sine():
            return {"sine": {key: getattr(signal, key) for key in SINE}}
    return {"quintic" if isinstance(signal, Quintic) else "spline": signal.points}
