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
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.dynamics.variants import Variants
from liedyn.errors import ScenarioError, nearest
from liedyn.io.expression_parser import CONSTANTS, ExpressionParser
from liedyn.io.sweep_file import Output
from liedyn.kernels.simulation.signals import COMPONENTS
from liedyn.model.model import Model
from liedyn.simulation.joint_stops import matches_event
from liedyn.simulation.run import Result
from liedyn.simulation.signals.operations import FUNCTIONS

_FUNCTIONS, _OF_TWO = ({name: one.array for name, one in FUNCTIONS.items() if one.arguments == count} for count in (1, 2))
REDUCTIONS = ("final", "initial", "min", "max", "mean", "integral", "at")
OF_EVENTS = {"at": "at(event, series)", "before": "before(event, series)", "count": "count(event)"}
_OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide, ast.Pow: np.power}
KINDS = ("q", "v", "a", "tau", "power", "stop", "reference", "contact", "energy")
_NAMED = re.compile(rf"(?<![\w.])({'|'.join((*KINDS, *COMPONENTS, 'event', 'd'))})\s*\(([^()]*)\)")
_DOTTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_0-9]\w*)+)")


def as_written(column: str) -> str:
    """Return the name of a column as it is written in an expression: dtau.elbow/dq.elbow becomes d(tau.elbow, q.elbow)."""
    found = re.fullmatch("d(.+)/d(.+)", column)
    return f"d({found[1]}, {found[2]})" if found else column


@dataclass(frozen=True)
class CompiledOutput:
    """A parsed output: `value(motion)` returns its (N,) values for the N runs of a `BatchMotion`, or (1,) if all are equal.

    columns  columns of the trajectory that the output reads
    links    links whose points it reads
    events   events whose times it reads
    """

    value: Callable
    columns: tuple[str, ...]
    links: tuple[str, ...]
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class _OutputPart:
    """Part of an expression: value(motion) returns (N or 1, R) values of a series, or (N or 1, 1) of a number."""

    series: bool
    value: Callable


def compile_output(output: Output) -> CompiledOutput:
    """Parse an output. Raises ScenarioError with the location of the output if the expression is not valid."""
    reader = _OutputParser(output)
    part = reader.read()
    if part.series:
        raise reader.error("an output is one number per run, and this expression has one at each time",
                            expected=f"{', '.join(f'{name}(…)' for name in REDUCTIONS)}")
    read = (tuple(dict.fromkeys(x)) for x in (reader.columns, reader.links, reader.events))
    return CompiledOutput(lambda motion: part.value(motion)[:, 0], *read)


class _OutputParser(ExpressionParser):
    """Parser of outputs; the values of its nodes are `_OutputPart`s."""

    def __init__(self, output: Output):
        super().__init__(output.text, output.place)
        self.words: dict[str, tuple[str, str, tuple]] = {}      # what stands in the text as _0_, _1_, …: name, kind, point
        self.columns: list[str] = []
        self.links: list[str] = []
        self.events: list[str] = []

    def without_names(self, text: str) -> tuple[str, str]:
        text = _NAMED.sub(self._call_of_name, text)
        text = _DOTTED.sub(lambda found: self._word(found[1], ""), text)
        return text, text

    def _call_of_name(self, found: re.Match) -> str:
        kind, inside = found[1], found[2]
        if kind == "d":                                        # a column of derivatives
            return self._word("/".join(f"d{part.strip()}" for part in inside.split(",")), "")
        name, *point = inside.split(",") if kind in COMPONENTS else (inside,)
        return self._word(f"{kind}.{name.strip()}" if kind in KINDS else name.strip(), "" if kind in KINDS else kind, point)

    def _word(self, name: str, kind: str, point=()) -> str:
        word = f"_{len(self.words)}_"
        self.words[word] = name, kind, tuple(point)
        return word

    def number_value(self, x: float) -> _OutputPart:
        return _constant(x)

    def operation_value(self, node: ast.BinOp | ast.UnaryOp, *values: _OutputPart) -> _OutputPart:
        return _applied(np.negative if isinstance(node, ast.UnaryOp) else _OPERATORS[type(node.op)], *values)

    def name_value(self, node: ast.Name) -> _OutputPart:
        name = node.id
        if name in CONSTANTS:
            return _constant(CONSTANTS[name])
        if name == "t":
            return _OutputPart(True, lambda motion: motion.t[None])
        if name in self.words:
            return self._column(*self.words[name])
        if name == "drift":
            return self._column(name, "", ())
        known = ["t", *CONSTANTS, *_FUNCTIONS, *_OF_TWO, *REDUCTIONS, *OF_EVENTS]
        raise self.error(f"unknown name {name}", hint=nearest(name, known),
                          expected="a column such as q.elbow, t, pi, e, or a function")

    def _column(self, name: str, kind: str, point) -> _OutputPart:
        if not kind:
            self.columns.append(name)
            return _OutputPart(True, lambda motion: motion.column(name))
        if kind == "event":
            raise self.error("an event is not a number", expected=f"{', '.join(OF_EVENTS.values())}")
        self.links.append(name)
        try:
            at = tuple(float(x) for x in point) or (0.0, 0.0, 0.0)
        except ValueError:
            at = ()
        if len(at) != 3 or (point and kind in ("wx", "wy", "wz")):
            raise self.error(f"wrong arguments of {kind}",
                              expected=f"{kind}(link), or x(link, 0, 0, 0.1) for a point in link axes")
        return _OutputPart(True, lambda motion: motion.point(kind, name, at))

    def call_value(self, name: str, node: ast.Call, depth: int) -> _OutputPart:
        if node.keywords:
            raise self.error(f"wrong arguments of {name}", expected=f"{name}(…)")
        event = self._event(node.args[0]) if name in OF_EVENTS and node.args else None
        if event is not None or name in ("before", "count"):
            return self._of_event(name, event, [self.value_of(argument, depth + 1) for argument in node.args[1:]])
        given = [self.value_of(argument, depth + 1) for argument in node.args]
        if name in REDUCTIONS and len(given) == (2 if name == "at" else 1):
            return self._reduced(name, given)
        if name in _FUNCTIONS and len(given) == 1:
            return _applied(_FUNCTIONS[name], given[0])
        if name in _OF_TWO and (len(given) == 2 or (name != "atan2" and len(given) > 2)):
            part = given[0]
            for other in given[1:]:
                part = _applied(_OF_TWO[name], part, other)
            return part
        if name in REDUCTIONS or name in _FUNCTIONS or name in _OF_TWO:
            raise self.error(f"wrong arguments of {name}", expected="at(time, series)" if name == "at" else f"{name}(…)")
        raise self.error(f"unknown function {name}", hint=nearest(name, [*_FUNCTIONS, *_OF_TWO, *REDUCTIONS, *OF_EVENTS]),
                          expected=f"one of {', '.join(dict.fromkeys((*REDUCTIONS, *OF_EVENTS, *_FUNCTIONS, *_OF_TWO)))}")

    def _event(self, node: ast.expr) -> str | None:
        """Return the name of the event in an argument: a plain name that has no other meaning, or event(name). None otherwise."""
        if not isinstance(node, ast.Name) or node.id in ("t", "drift", *CONSTANTS):
            return None
        name, kind, _ = self.words.get(node.id, (node.id, "event", ()))
        return name if kind == "event" else None

    def _of_event(self, name: str, event: str | None, given: list[_OutputPart]) -> _OutputPart:
        if event is None or len(given) != (0 if name == "count" else 1):
            raise self.error(f"wrong arguments of {name}", expected=OF_EVENTS[name])
        self.events.append(event)
        if name == "count":
            return _number_of(lambda motion: np.array([float(len(motion.times_of(event)))]))
        series, side = self._series(name, given[0]), "right" if name == "at" else "left"

        def value(motion):
            when = np.array([*motion.times_of(event), math.nan])[:1]
            return _at(motion.t, when, series.value(motion), side)
        return _number_of(value)

    def _reduced(self, name: str, given: list[_OutputPart]) -> _OutputPart:
        series = self._series(name, given[-1])
        if name == "at":
            if given[0].series:
                raise self.error("the time in at(time, …) must be a number")
            return _number_of(lambda motion: _at(motion.t, np.asarray(given[0].value(motion))[:, 0], series.value(motion)))
        return _number_of(lambda motion: _REDUCE[name](motion.t, series.value(motion)))

    def _series(self, name: str, part: _OutputPart) -> _OutputPart:
        if not part.series:
            raise self.error(f"{name}(…) takes a series", expected="a column such as q.elbow, or an expression of them")
        return part


def _constant(x: float) -> _OutputPart:
    return _number_of(lambda motion: np.array([float(x)]))


def _number_of(value: Callable) -> _OutputPart:
    """Return the part of a number; value(motion) returns (N,) or (1,)."""
    return _OutputPart(False, lambda motion: value(motion)[:, None])


def _applied(function: Callable, *parts: _OutputPart) -> _OutputPart:
    def value(motion):
        with np.errstate(all="ignore"):
            return function(*(part.value(motion) for part in parts))
    return _OutputPart(any(part.series for part in parts), value)


def _integral(t, x):
    return (0.5 * (x[:, 1:] + x[:, :-1]) * np.diff(t)).sum(axis=1) if len(t) > 1 else np.zeros(len(x))


def _mean(t, x):
    length = t[-1] - t[0]
    return _integral(t, x) / length if length > 0.0 else x[:, 0]


def _at(t, when, x, side="right"):
    """Return series x at a time of each run, or at one time for all: linear between rows, NaN outside of t.

    Of several rows with this time the last is used, with side `left` the first.
    """
    first, last = np.searchsorted(t, when), np.searchsorted(t, when, "right") - 1          # first > last between rows
    a, b = (last, np.maximum(first, last)) if side == "right" else (np.minimum(first, last), first)
    a, b, runs = np.clip(a, 0, len(t) - 1), np.clip(b, 0, len(t) - 1), np.arange(len(x))
    inside = (t[0] <= when) & (when <= t[-1])
    s = np.where(inside, (when - t[a]) / np.where(a == b, 1.0, t[b] - t[a]), np.nan)
    return x[runs, a] + s * (x[runs, b] - x[runs, a]) if s.any() else x[runs, a]


_REDUCE = {"final": lambda t, x: x[:, -1], "initial": lambda t, x: x[:, 0], "min": lambda t, x: x.min(axis=1),
           "max": lambda t, x: x.max(axis=1), "mean": _mean, "integral": _integral}


# Motion of one run or of many vectorized runs, as outputs read it -------------------------------------------------------

_FEW, MANY = 2048, 1 << 18          # states per block, which limits the memory for the poses of all links
_TURNING = COMPONENTS.index("wx")


class BatchMotion:
    """N runs with the same R times t [s].

    columns   (name, unit, (N or 1, R) array) of each column
    q, v      (N, R, nq), (N, R, nv); required for points of links
    variants  robots of the runs; None if all runs use `model`
    events    events of the run, if there is only one
    """

    def __init__(self, model: Model, t: np.ndarray, columns: Iterable[tuple[str, str, np.ndarray]], q=None, v=None,
                 variants: Variants | None = None, events=()):
        self.model, self.t, self.q, self.v, self.variants, self.events = model, t, q, v, variants, events
        self.columns, self.units = {}, {}
        for name, unit, x in columns:
            self.columns[name], self.units[name] = x, unit

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise ScenarioError(f"a run has no column {name}", hint=nearest(name, self.columns))
        return self.columns[name]

    def times_of(self, event: str) -> list[float]:
        """Return the times [s] at which an event happened, sorted."""
        return [one.t for one in self.events if matches_event(one.name, event)]

    def point(self, kind: str, link: str, at) -> np.ndarray:
        """Return a component (N, R) from COMPONENTS of a point of a link, in world axes."""
        return evaluate_in_blocks(lambda model, q, v: _of_point(model, q, v, kind, link, at), self.model, self.q, self.v,
                                  self.variants,
                       _FEW)


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
    places, numbers = variants.varying
    return Variants.of_numbers(variants.model, places, numbers.repeat(rows, axis=0)).in_place_of_the_model()


def evaluate_in_blocks(function: Callable, model: Model, q: np.ndarray, v: np.ndarray, variants: Variants | None,
                       states: int) -> np.ndarray:
    """Return (…, N, R) values function(model, q, v) at states (N, R, …), evaluated in blocks of at most `states` states.

    variants  robots of the runs; None if all runs use `model`
    """
    found, some = [], max(1, states // max(1, len(q)))
    for first in range(0, q.shape[1], some):
        here = [np.ascontiguousarray(x[:, first:first + some]) for x in (q, v)]
        with robots_of_rows(model, variants, here[0].shape[1]) as robots:
            found.append(function(robots, *here))
    return np.concatenate(found, axis=-1)


def _of_point(model: Model, q, v, kind: str, link: str, at) -> np.ndarray:
    k = COMPONENTS.index(kind)
    T = link_pose(model, q, link)
    arm = T[..., :3, :3] @ np.array(at)
    if k < 3:
        return T[..., k, 3] + arm[..., k]
    V = link_twist(model, q, v, link, frame="local_world_aligned")
    if k >= _TURNING:
        return V[..., k - _TURNING]
    return (V[..., 3:] + np.cross(V[..., :3], arm))[..., k - 3]
