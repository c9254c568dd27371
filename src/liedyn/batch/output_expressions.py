"""Outputs of a sweep: parse the text of an expression and evaluate it for many runs.

An expression contains numbers of a run and series over its time. Columns and points of links are series: `q.elbow` or `q(elbow)`,
`energy.work`, `z(hand)`, `t`. `final`, `initial`, `min`, `max`, `mean`, `integral`, `at(time, …)`, and `at(event, …)` and
`before(event, …)` of an event of the scenario reduce a series to a number. Operators and functions accept both. An output must
be a number.
"""
from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol, TypeAlias

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.dynamics.variants import Variants
from liedyn.errors import ScenarioError, nearest
from liedyn.io.sweep_file import Output
from liedyn.io.units import product, unit_name, unit_of
from liedyn.kernels.simulation.signals import COMPONENTS
from liedyn.model.expression_parser import CONSTANTS, ExpressionParser
from liedyn.model.model import Model
from liedyn.simulation.hybrid_simulation import OccurredEvent
from liedyn.simulation.joint_stops import matches_event
from liedyn.simulation.run import Result
from liedyn.simulation.signals.operations import FUNCTIONS

UnitRule: TypeAlias = Callable[[Mapping[str, str]], str | None]
_ANY = "any"                        # unit of a number in an expression: it has that of what it is added to
_UNITS = {_ANY: "", "rad N m": "J", "rad N m/s": "W"}                                 # of an output; work of a torque
Values: TypeAlias = Any             # an array, or a `sensitivities.Dual`: numbers with derivatives, for the same NumPy functions

UNARY_FUNCTIONS, BINARY_FUNCTIONS = (
    {name: operation.array for name, operation in FUNCTIONS.items() if operation.arguments == count} for count in (1, 2))
REDUCTIONS = ("final", "initial", "min", "max", "mean", "integral", "at")
EVENT_FUNCTIONS = {"at": "at(event, series)", "before": "before(event, series)", "count": "count(event)"}
OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide, ast.Pow: np.power}
KINDS = ("q", "v", "a", "tau", "power", "stop", "friction", "reference", "contact", "energy")
_NAMED = re.compile(rf"(?<![\w.])({'|'.join((*KINDS, *COMPONENTS, 'event', 'd'))})\s*\(([^()]*)\)")
_DOTTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_0-9]\w*)+)")


def column_expression(column: str) -> str:
    """Return the name of a column as an output writes it: dtau.elbow/dq.elbow becomes d(tau.elbow, q.elbow)."""
    derivative = re.fullmatch("d(.+)/d(.+)", column)
    return f"d({derivative[1]}, {derivative[2]})" if derivative else column


class OutputMotion(Protocol):
    """Interface through which outputs read a motion of N runs at R times."""

    @property
    def t(self) -> Array:
        """Times (R,) [s]."""

    def column(self, name: str) -> Values:
        """Return a column (N or 1, R) of the trajectories. Raises ScenarioError if there is none of this name."""

    def point(self, kind: str, link: str, offset: Sequence[float]) -> Values:
        """Return a component (N, R) from COMPONENTS of a point of a link, in world axes. offset: in link axes [m]."""

    def event_times(self, event: str) -> list[float]:
        """Return the times [s] at which an event happened, sorted."""


@dataclass(frozen=True)
class CompiledOutput:
    """A parsed output: `value(motion)` returns (N,) values of N runs, or (1,) if all are equal.

    columns  columns of the trajectory that the output reads
    links    links whose points it reads
    events   events whose times it reads
    unit     (units of the columns by their names) -> unit of the values, empty for a number, None if it does not follow
    """

    value: Callable[[OutputMotion], Values]
    columns: tuple[str, ...]
    links: tuple[str, ...]
    events: tuple[str, ...] = ()
    unit: UnitRule = lambda _: None


@dataclass(frozen=True)
class _OutputPart:
    """Part of an expression: value(motion) returns (N or 1, R) values of a series, or (N or 1, 1) of a number.

    unit: as that of an output; constant: the number, if the part is one that is written
    """

    series: bool
    value: Callable[[OutputMotion], Values]
    unit: UnitRule = lambda _: ""
    constant: float | None = None


def compile_output(output: Output) -> CompiledOutput:
    """Parse an output. Raises ScenarioError with the location of the output if the expression is not valid."""
    parser = _OutputParser(output)
    part: _OutputPart = parser.read()
    if part.series:
        raise parser.error("an output must be one number per run; this expression has a value at each time",
                           expected=f"{', '.join(f'{name}(…)' for name in REDUCTIONS)}")
    columns, links, events = (tuple(dict.fromkeys(names)) for names in (parser.columns, parser.links, parser.events))
    return CompiledOutput(lambda motion: part.value(motion)[:, 0], columns, links, events,
                          lambda units: _output_unit(part.unit(units)))


def _output_unit(unit: str | None) -> str | None:
    return unit if unit is None else _UNITS.get(unit, unit)


class _OutputParser(ExpressionParser):
    """Parser of outputs; the values of its nodes are `_OutputPart`s."""

    def __init__(self, output: Output):
        super().__init__(output.text, output.place)
        self.placeholders: dict[str, tuple[str, str, tuple[str, ...]]] = {}      # name, kind and point behind _0_, _1_, …
        self.columns: list[str] = []
        self.links: list[str] = []
        self.events: list[str] = []

    def without_names(self, text: str) -> tuple[str, str]:
        """Return the text with placeholders for names of columns, points and events, twice: to check and to parse."""
        text = _NAMED.sub(self._replace_call, text)
        text = _DOTTED.sub(lambda match: self._placeholder(match[1], ""), text)
        return text, text

    def _replace_call(self, match: re.Match[str]) -> str:
        kind, text = match[1], match[2]
        if kind == "d":                                        # a column of derivatives
            return self._placeholder("/".join(f"d{part.strip()}" for part in text.split(",")), "")
        name, *point = text.split(",") if kind in COMPONENTS else (text,)
        return self._placeholder(f"{kind}.{name.strip()}" if kind in KINDS else name.strip(), "" if kind in KINDS else kind,
                                 point)

    def _placeholder(self, name: str, kind: str, point: Iterable[str] = ()) -> str:
        placeholder = f"_{len(self.placeholders)}_"
        self.placeholders[placeholder] = name, kind, tuple(point)
        return placeholder

    def number_value(self, x: float) -> _OutputPart:
        """Return the part of a constant."""
        return _constant(x)

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: _OutputPart) -> _OutputPart:
        """Return the part of an operation on parts."""
        if isinstance(node, ast.UnaryOp):
            constant = values[0].constant
            return replace(_apply(np.negative, *values), unit=values[0].unit, constant=None if constant is None else -constant)
        return replace(_apply(OPERATORS[type(node.op)], *values), unit=_unit_of_operation(type(node.op), *values))

    def name_value(self, node: ast.Name) -> _OutputPart:
        """Return the part of a constant, the time, a column or a point. Raises ScenarioError for other names."""
        name = node.id
        if name in CONSTANTS:
            return _constant(CONSTANTS[name])
        if name == "t":
            return _OutputPart(True, lambda motion: motion.t[None], lambda _: "s")
        if name in self.placeholders:
            return self._column(*self.placeholders[name])
        if name == "drift":
            return self._column(name, "", ())
        known = ["t", *CONSTANTS, *UNARY_FUNCTIONS, *BINARY_FUNCTIONS, *REDUCTIONS, *EVENT_FUNCTIONS]
        raise self.error(f"unknown name {name}", hint=nearest(name, known),
                         expected="a column such as q.elbow, t, pi, e, or a function")

    def _column(self, name: str, kind: str, point: tuple[str, ...]) -> _OutputPart:
        if not kind:
            self.columns.append(name)
            return _OutputPart(True, lambda motion: motion.column(name), lambda units: units.get(name))
        if kind == "event":
            raise self.error("an event is not a number", expected=f"{', '.join(EVENT_FUNCTIONS.values())}")
        self.links.append(name)
        try:
            offset = tuple(float(x) for x in point) or (0.0, 0.0, 0.0)
        except ValueError:
            offset = ()
        if len(offset) != 3 or (point and kind in ("wx", "wy", "wz")):
            raise self.error(f"wrong arguments of {kind}",
                             expected=f"{kind}(link), or x(link, 0, 0, 0.1) for a point in link axes")
        unit = "m" if kind in "xyz" else "rad/s" if kind.startswith("w") else "m/s"
        return _OutputPart(True, lambda motion: motion.point(kind, name, offset), lambda _: unit)

    def call_value(self, name: str, node: ast.Call, depth: int) -> _OutputPart:
        """Return the part of a function, a reduction or a function of an event."""
        if node.keywords:
            raise self.error(f"wrong arguments of {name}", expected=f"{name}(…)")
        event = self._event(node.args[0]) if name in EVENT_FUNCTIONS and node.args else None
        if event is not None or name in ("before", "count"):
            return self._event_value(name, event, [self.value_of(argument, depth + 1) for argument in node.args[1:]])
        arguments: list[_OutputPart] = [self.value_of(argument, depth + 1) for argument in node.args]
        if name in REDUCTIONS and len(arguments) == (2 if name == "at" else 1):
            return self._reduction(name, arguments)
        if name in UNARY_FUNCTIONS and len(arguments) == 1:
            applied = _apply(UNARY_FUNCTIONS[name], arguments[0])
            units = {"abs": arguments[0].unit, "sqrt": _unit_of_power(arguments[0], 0.5)}
            return replace(applied, unit=units.get(name, applied.unit))
        if name in BINARY_FUNCTIONS and (len(arguments) == 2 or (name != "atan2" and len(arguments) > 2)):
            return replace(reduce(partial(_apply, BINARY_FUNCTIONS[name]), arguments),
                           unit=(lambda _: "rad") if name == "atan2" else _common_unit(*arguments))
        if name in REDUCTIONS or name in UNARY_FUNCTIONS or name in BINARY_FUNCTIONS:
            raise self.error(f"wrong arguments of {name}", expected="at(time, series)" if name == "at" else f"{name}(…)")
        known = dict.fromkeys((*REDUCTIONS, *EVENT_FUNCTIONS, *UNARY_FUNCTIONS, *BINARY_FUNCTIONS))
        raise self.error(f"unknown function {name}", hint=nearest(name, known), expected=f"one of {', '.join(known)}")

    def _event(self, node: ast.expr) -> str | None:
        """Return the name of the event in an argument: a plain name that has no other meaning, or event(name). None otherwise."""
        if not isinstance(node, ast.Name) or node.id in ("t", "drift", *CONSTANTS):
            return None
        name, kind, _ = self.placeholders.get(node.id, (node.id, "event", ()))
        return name if kind == "event" else None

    def _event_value(self, name: str, event: str | None, arguments: list[_OutputPart]) -> _OutputPart:
        if event is None or len(arguments) != (0 if name == "count" else 1):
            raise self.error(f"wrong arguments of {name}", expected=EVENT_FUNCTIONS[name])
        self.events.append(event)
        if name == "count":
            return _number_part(lambda motion: np.array([float(len(motion.event_times(event)))]))
        series, side = self._require_series(name, arguments[0]), "right" if name == "at" else "left"

        def value(motion: OutputMotion) -> Values:
            time = np.array([*motion.event_times(event), math.nan])[:1]
            return _interpolate(motion.t, time, series.value(motion), side)
        return replace(_number_part(value), unit=series.unit)

    def _reduction(self, name: str, arguments: list[_OutputPart]) -> _OutputPart:
        series = self._require_series(name, arguments[-1])
        if name == "at":
            time = arguments[0]
            if time.series:
                raise self.error("the time in at(time, …) must be a number")
            part = _number_part(lambda motion: _interpolate(motion.t, np.asarray(time.value(motion))[:, 0], series.value(motion)))
            return replace(part, unit=series.unit)
        part = _number_part(lambda motion: _REDUCTIONS[name](motion.t, series.value(motion)))
        seconds = _OutputPart(False, part.value, lambda _: "s")
        return replace(part, unit=_unit_of_operation(ast.Mult, series, seconds) if name == "integral" else series.unit)

    def _require_series(self, name: str, part: _OutputPart) -> _OutputPart:
        if not part.series:
            raise self.error(f"{name}(…) requires a series", expected="a column such as q.elbow, or an expression of them")
        return part


def _constant(x: float) -> _OutputPart:
    return replace(_number_part(lambda _: np.array([float(x)])), unit=lambda _: _ANY, constant=float(x))


def _common_unit(*parts: _OutputPart) -> UnitRule:
    """Return the rule for a sum: the unit that all parts have, None if they differ."""
    def unit(units: Mapping[str, str]) -> str | None:
        present = {part.unit(units) for part in parts} - {_ANY}
        return _ANY if not present else present.pop() if len(present) == 1 else None
    return unit


def _unit_of_operation(operator: type[ast.operator], a: _OutputPart, b: _OutputPart) -> UnitRule:
    """Return the rule for the unit of a sum, product, quotient or power."""
    if operator in (ast.Add, ast.Sub):
        return _common_unit(a, b)
    if operator is ast.Pow:
        return _unit_of_power(a, b.constant)

    def unit(units: Mapping[str, str]) -> str | None:
        first, second = ("" if part.unit(units) == _ANY else part.unit(units) for part in (a, b))
        if first is None or second is None:
            return None
        if not second:
            return first
        left_unit, right_unit = unit_of(first or "1"), unit_of(second)
        if left_unit is None or right_unit is None:
            return None
        return unit_name(product(left_unit.exponents, right_unit.exponents, 1 if operator is ast.Mult else -1))
    return unit


def _unit_of_power(part: _OutputPart, exponent: float | None) -> UnitRule:
    """Return the rule for the unit of a power: None for an exponent that is not written, or that leaves a root of a unit."""
    def unit(units: Mapping[str, str]) -> str | None:
        name = part.unit(units)
        if name in ("", _ANY):
            return name
        base = unit_of(name) if name is not None else None
        powers = [k * (exponent or 0.0) for k in base.exponents] if base is not None and exponent is not None else [math.nan]
        return unit_name(map(round, powers)) if all(power.is_integer() for power in powers) else None
    return unit


def _number_part(value: Callable[[OutputMotion], Values]) -> _OutputPart:
    """Return the part of a number; value(motion) returns (N,) or (1,)."""
    return _OutputPart(False, lambda motion: value(motion)[:, None])


def _apply(function: Callable[..., Values], *parts: _OutputPart) -> _OutputPart:
    def value(motion: OutputMotion) -> Values:
        with np.errstate(all="ignore"):
            return function(*(part.value(motion) for part in parts))
    return _OutputPart(any(part.series for part in parts), value)


def _integral(t: Array, x: Values) -> Values:
    return (0.5 * (x[:, 1:] + x[:, :-1]) * np.diff(t)).sum(axis=1) if len(t) > 1 else np.zeros(len(x))


def _mean(t: Array, x: Values) -> Values:
    duration = t[-1] - t[0]
    return _integral(t, x) / duration if duration > 0.0 else x[:, 0]


def _interpolate(t: Array, time: Array, x: Values, side: str = "right") -> Values:
    """Return series x (N, R) at a time of each run, or at one time for all: linear between rows, NaN outside of t.

    Of several rows with this time the last is used, with side `left` the first.
    """
    first, last = np.searchsorted(t, time), np.searchsorted(t, time, "right") - 1          # first > last between rows
    a, b = (last, np.maximum(first, last)) if side == "right" else (np.minimum(first, last), first)
    a, b, runs = np.clip(a, 0, len(t) - 1), np.clip(b, 0, len(t) - 1), np.arange(len(x))
    inside = (t[0] <= time) & (time <= t[-1])
    s = np.where(inside, (time - t[a]) / np.where(a == b, 1.0, t[b] - t[a]), np.nan)
    return x[runs, a] + s * (x[runs, b] - x[runs, a]) if s.any() else x[runs, a]


_REDUCTIONS: dict[str, Callable[[Array, Values], Values]] = {
    "final": lambda t, x: x[:, -1], "initial": lambda t, x: x[:, 0], "min": lambda t, x: x.min(axis=1),
    "max": lambda t, x: x.max(axis=1), "mean": _mean, "integral": _integral}


# Motion of one run or of many vectorized runs, as outputs read it -------------------------------------------------------

_POSE_BLOCK, ENERGY_BLOCK = 2048, 1 << 18          # states per block: limits the memory for poses of all links, and for energies
_FIRST_ANGULAR = COMPONENTS.index("wx")
_NO_STATES = np.zeros((0, 0, 0))


class BatchMotion:
    """N runs with the same R times t [s].

    columns   (name, unit, (N or 1, R) array) of each column
    q, v      (N, R, nq), (N, R, nv); empty if no output reads points of links
    variants  robots of the runs; None if all runs use `model`
    events    events of the run, if there is only one
    """

    def __init__(self, model: Model, t: Array, columns: Iterable[tuple[str, str, Array]], q: Array = _NO_STATES,
                 v: Array = _NO_STATES, variants: Variants | None = None, events: Iterable[OccurredEvent] = ()):
        self.model, self.t, self.q, self.v, self.variants, self.events = model, t, q, v, variants, events
        self.columns: dict[str, Array] = {}
        self.units: dict[str, str] = {}
        for name, unit, x in columns:
            self.columns[name], self.units[name] = x, unit

    def column(self, name: str) -> Array:
        """Return a column (N or 1, R). Raises ScenarioError if there is none of this name."""
        if name not in self.columns:
            raise ScenarioError(f"a run has no column {name}", hint=nearest(name, self.columns))
        return self.columns[name]

    def event_times(self, event: str) -> list[float]:
        """Return the times [s] at which an event happened, sorted."""
        return [occurred.t for occurred in self.events if matches_event(occurred.name, event)]

    def point(self, kind: str, link: str, offset: Sequence[float]) -> Array:
        """Return a component (N, R) from COMPONENTS of a point of a link, in world axes. offset: in link axes [m]."""
        return evaluate_in_blocks(lambda model, q, v: _point_component(model, q, v, kind, link, offset),
                                  self.model, self.q, self.v, self.variants, _POSE_BLOCK)


def motion_of_run(result: Result) -> BatchMotion:
    """Return the motion of one run as a `BatchMotion`."""
    columns = ((name, unit, x[None]) for name, unit, x in result.columns)
    return BatchMotion(result.model, result.t, columns, result.q[None], result.v[None], events=result.events)


def robots_of_rows(model: Model, variants: Variants | None, rows: int) -> AbstractContextManager[Model]:
    """Return a context whose model represents the robots of all runs.

    Functions of this model and of states (N, rows, …) use the robot of run k for row k of the states.
    """
    if variants is None:
        return nullcontext(model)
    indices, constants = variants.varying
    return Variants.of_numbers(variants.model, indices, constants.repeat(rows, axis=0)).in_place_of_the_model()


def evaluate_in_blocks(function: Callable[[Model, Array, Array], Array], model: Model, q: Array, v: Array,
                       variants: Variants | None, states_per_block: int) -> Array:
    """Return (…, N, R) values function(model, q, v) at states (N, R, …), evaluated in blocks of states to limit the memory.

    variants  robots of the runs; None if all runs use `model`
    """
    blocks, rows = [], max(1, states_per_block // max(1, len(q)))
    for first in range(0, q.shape[1], rows):
        block_q, block_v = (np.ascontiguousarray(x[:, first:first + rows]) for x in (q, v))
        with robots_of_rows(model, variants, block_q.shape[1]) as robots:
            blocks.append(function(robots, block_q, block_v))
    return np.concatenate(blocks, axis=-1)


def _point_component(model: Model, q: Array, v: Array, kind: str, link: str, offset: Sequence[float]) -> Array:
    k = COMPONENTS.index(kind)
    T = link_pose(model, q, link)
    arm: Array = T[..., :3, :3] @ np.array(offset)
    if k < 3:
        return T[..., k, 3] + arm[..., k]
    V = link_twist(model, q, v, link, frame="local_world_aligned")
    if k >= _FIRST_ANGULAR:
        return V[..., k - _FIRST_ANGULAR]
    linear: Array = V[..., 3:] + np.cross(V[..., :3], arm)
    return linear[..., k - 3]
