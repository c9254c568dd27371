"""Keys of signals and rules in scenarios, reading from YAML and writing."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from liedyn.io.file_schema import (
    Boolean,
    Choice,
    Field,
    File,
    List,
    Named,
    Number,
    OneOf,
    Schema,
    Text,
    Value,
    Vector,
    default_of,
    one_of,
    one_or_more,
    only,
)
from liedyn.io.robots.robot_schema import quaternion_norm
from liedyn.io.scenarios.scenario import (
    Column,
    Constant,
    Drive,
    Expression,
    Motion,
    Move,
    Pd,
    Prescribe,
    Quintic,
    RelativeTime,
    Rule,
    Signal,
    Sine,
    Spline,
    Table,
    Torque,
    Waypoint,
    Waypoints,
)
from liedyn.io.scenarios.table_schema import TABLE, table_to_dict
from liedyn.io.yaml_nodes import Node
from liedyn.io.yaml_values import FilePath

INTERPOLATIONS = ("linear", "cubic", "quintic")

NUMBERS = one_or_more(Number(), "numbers", "numbers")               # of one joint


# rules --------------------------------------------------------------------------------------------------------------

def by_name(of: Value, name: str) -> Named:
    """Return the declaration of rules by name or pattern."""
    def read(node: Node) -> tuple[Rule, ...]:
        return tuple(Rule(key, of.read(child), place=child.place) for key, child in node.mapping().items())
    return Named(of, name, read)


def patterns(value: Any) -> List:
    """Return the declaration of a list of names or patterns: one rule for each, all with the same value."""
    joints = List(Text(), 1, words="joints")

    def read(node: Node) -> tuple[Rule, ...]:
        return tuple(Rule(child.text(), value, place=child.place) for child in joints.nodes(node))
    return List(Text(), 1, reader=read)


def rules_to_dict(rules: tuple[Rule, ...], plain: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
    """Return rules as in a file: values by pattern."""
    return {rule.pattern: plain(rule.value) for rule in rules}


def numbers_to_list(values: tuple[float, ...]) -> float | tuple[float, ...]:
    """Return numbers as in a file: without brackets if there is only one."""
    return values[0] if len(values) == 1 else values


# signals ------------------------------------------------------------------------------------------------------------

def read_signal(node: Node, curves: Schema | None = None) -> Signal:
    """Return the signal of a node. curves: keys of a mapping, `CURVES` by default; the caller reads those that are no signal."""
    keys = curves or CURVES
    if node.kind == "number":
        return Constant(node.number(), place=node.place)
    if node.kind == "text":
        return Expression(node.text(), place=node.place)
    kinds = keys.one_of[0]
    if node.kind != "mapping" or not node.value:
        raise node.wrong("a number, an expression, or one of " + ", ".join(kinds))
    nodes = node.mapping(tuple(keys))
    key, child = only(node, nodes, kinds, "a signal")
    curve: Any = keys[key].value.read(child)
    if "limits" in nodes:
        if not isinstance(curve, Move):
            raise nodes["limits"].problem(f"limits cannot be combined with {key}", expected="limits of a move")
        curve = replace(curve, **MOVE_LIMITS.read(nodes["limits"]))
    if "from" in nodes and isinstance(curve, Table):
        raise nodes["from"].problem("from cannot be combined with table", expected="t_phase or since(event) in its key of")
    return RelativeTime(curve, nodes["from"].text(), place=nodes["from"].place) if "from" in nodes else curve


def _quintic(node: Node) -> Quintic:
    points = [[child.number() for child in row.items(minimum=2, maximum=4, of="numbers: t, x, dx/dt, d²x/dt²")]
              for row in node.items(minimum=2, of="waypoints [t, x]")]
    _check_times(node)
    padded = ([*point, 0.0, 0.0] for point in points)
    return Quintic(tuple((t, x, dx, ddx) for t, x, dx, ddx, *_ in padded), place=node.place)


def _spline(node: Node) -> Spline:
    points = tuple((t, x) for t, x in (row.vector(2) for row in node.items(minimum=2, of="points [t, x]")))
    _check_times(node)
    return Spline(points, place=node.place)


def _check_times(node: Node) -> None:
    for previous, following in zip(node.value, node.value[1:], strict=False):
        if following.value[0].value <= previous.value[0].value:
            raise following.value[0].problem("times must increase", found=following.value[0].excerpt(),
                                             expected=f"a time after {previous.value[0].written}")


def _move(node: Node) -> Move:
    """Return a move from [[t, x], [x], [t, x], …]: the start, then targets, some with the time at which the motion starts."""
    rows = node.items(minimum=2, of="points: the start [t, x], then targets [x] or [t, x]")
    start = [child.number() for child in rows[0].items(minimum=2, maximum=4, of="numbers: t, x, dx/dt, d²x/dt²")]
    points: list[tuple[float | None, ...]] = [tuple([*start, 0.0, 0.0][:4])]
    for row in rows[1:]:
        values = [row.number()] if row.kind == "number" else [child.number() for child in row.items(
            minimum=1, maximum=2, of="numbers: x, or t and x")]
        points.append((None, *values)[-2:])
    return Move(tuple(points), place=node.place)


def _move_limits(node: Node) -> dict[str, float]:
    """Return the limits that replace those of the robot."""
    if node.kind == "text":
        if node.text() != "robot":
            raise node.wrong("robot, or a mapping with " + ", ".join(MOVE_LIMIT_VALUES))
        return {}
    return MOVE_LIMIT_VALUES.values(node)


def _column(node: Node) -> Column:
    values = CSV.values(node)
    return Column(values["file"], values.get("column"), values.get("interpolation"), place=node.place)


SINE: Schema = Schema("sine", (
    Field("amplitude", Number(), "in the unit of the signal", required=True, example=0.5, live=True),
    Field("frequency", Number(), "[Hz]", required="a frequency in Hz", example=2, live=True),
    Field("phase", Number(), "[rad]", default_of(Sine, "phase"), example=0.1),
    Field("offset", Number(), "in the unit of the signal", default_of(Sine, "offset"), example=0.2)),
    reader=lambda node: Sine(**SINE.values(node), place=node.place))
CSV = Schema("column", (
    Field("file", File(), "path of a CSV", required="the path of a CSV file", example="motion.csv", live=True),
    Field("column", Text(), "name of the column", "the one of this coordinate", example="q.elbow"),
    Field("interpolation", Choice(INTERPOLATIONS), "between the rows", "`linear` for a force, `quintic` for a motion",
        example="quintic")), reader=_column)
_LIMIT = Number(above=0)
MOVE_LIMIT_VALUES = Schema("move_limits", (
    Field("velocity", _LIMIT, "[rad/s or m/s]", "that of the robot", example=2),
    Field("acceleration", _LIMIT, "[rad/s^2 or m/s^2]", "that of the robot", example=10),
    Field("jerk", _LIMIT, "[rad/s^3 or m/s^3]", "that of the robot; without one, the acceleration jumps", example=100)))
MOVE_LIMITS = OneOf((Choice(("robot",)), MOVE_LIMIT_VALUES), "limits_of_move", _move_limits)
CURVES = Schema("curve", (
    Field("quintic", List(List(Number(), 2, 4), 2, reader=_quintic), "waypoints `[t, x]` to `[t, x, dx, d2x]` joined by quintic "
        "polynomials; derivatives that are not given are zero", example=[[0, 0], [2, 1.0, 0, 0]]),
    Field("spline", List(Vector(2), 2, reader=_spline), "points `[t, x]` joined by a cubic spline, with zero slope at both ends",
        example=[[0, 0], [1, 0.4], [2, 0.1]]),
    Field("sine", SINE, "`offset + amplitude sin(2 pi frequency t + phase)`"),
    Field("csv", CSV, "a column of a CSV"),
    Field("move", List(OneOf((Number(), List(Number(), 1, 4))), 2, reader=_move), "fastest motion from the start `[t, x]` to "
        "`[t, x, dx, d2x]` to targets `[x]`, or `[t, x]` to start at t, at rest at each; under the limits of the key `limits`",
        example=[[0, 0], [1.2]]),
    Field("table", TABLE, "values by points of an expression of time and state, or of two: see [tables](#tables)"),
    Field("limits", MOVE_LIMITS, "of a move: `robot`, or a mapping with `velocity`, `acceleration`, `jerk`", "robot",
        example={"acceleration": 10, "jerk": 100}),
    Field("from", Text(), "time origin of the curve: `phase` (start of the current phase) or the name of an event; "
        "before an event, the curve has its first value", "the start of the run", example="phase")),
    one_of=(("quintic", "spline", "sine", "csv", "move", "table"),))
SIGNAL = OneOf((Number(), Text(), CURVES), "signal", read_signal)
SIGNALS = OneOf((SIGNAL, List(SIGNAL, 1, words="signals")), "signals")
THREE_SIGNALS = List(SIGNAL, 3, 3, "signals")


def signal_to_dict(signal: Signal | tuple[Signal, ...]) -> Any:
    """Return a signal as in a file."""
    match signal:
        case tuple():
            return [signal_to_dict(component) for component in signal]
        case Constant():
            return signal.value
        case Expression():
            return signal.text
        case RelativeTime():
            return {**signal_to_dict(signal.curve), "from": signal.start}
        case Column():
            return {"csv": {"file": FilePath(signal.file), "column": signal.name, "interpolation": signal.interpolation}}
        case Move():
            limits = {key: x for key in MOVE_LIMIT_VALUES if (x := getattr(signal, key)) is not None}
            start, *targets = signal.points
            return {"move": [start, *([x] if t is None else [t, x] for t, x in targets)], "limits": limits or "robot"}
        case Table():
            return {"table": table_to_dict(signal)}
        case Sine():
            return {"sine": {key: getattr(signal, key) for key in SINE}}
    return {"quintic" if isinstance(signal, Quintic) else "spline": signal.points}


# What joints of a scenario do, and poses over time: their keys, from YAML and back --------------------------------------

LARGEST_GAIN = 1e30                              # as a robot's masses and inertias: products of these are far from overflow


# poses --------------------------------------------------------------------------------------------------------------

def _waypoints(node: Node) -> Waypoints:
    points: list[Waypoint] = []
    for child in node.items(minimum=2, of="waypoints {t, xyz, rpy}"):
        values = WAYPOINT.values(child)
        if points and values["t"] <= points[-1].t:
            time = child.value["t"]
            raise time.problem("times must increase", found=time.excerpt(), expected=f"a time after {points[-1].t:g}")
        quaternion_norm(child, values)
        points.append(Waypoint(**values, place=child.place))
    return Waypoints(tuple(points), place=node.place)


def _pose(node: Node) -> Motion | Waypoints:
    """Return the prescribed pose of a ball or free joint."""
    nodes = node.mapping((*POSE_MOTION, *CURVES))
    for key in nodes:
        if key not in POSE_MOTION:
            keys = ", ".join(name for name in nodes if name in POSE_MOTION)
            raise nodes[key].problem(f"{key} cannot be combined with {keys} of a pose",
                                     hint="give it with a curve in xyz or rpy" if key == "from" else None)
    if "waypoints" not in nodes:
        return _motion(node, "a pose")
    if len(nodes) > 1:
        raise node.problem("waypoints cannot be combined with xyz and rpy", found=", ".join(nodes),
                           expected="waypoints, or xyz and rpy")
    result: Motion | Waypoints = POSE_MOTION.value(nodes, "waypoints")
    return result


def _motion(node: Node, subject: str = "a driven loop") -> Motion:
    values = MOTION.values(node)
    if not values:
        raise node.problem(f"{subject} requires xyz or rpy", expected="xyz: [signal, signal, signal], rpy: the same")
    return Motion(**values, place=node.place)


WAYPOINT = Schema("waypoint", (
    Field("t", Number(), "time [s]", required="the time of the waypoint", example=2, live=True),
    Field("xyz", Vector(3), "position [m], for free joints", "zero", example=[0.1, 0, 0.5], live=True),
    Field("rpy", Vector(3), "orientation R = Rz Ry Rx [rad]", "zero", example=[0, 0, 1.2], live=True),
    Field("quaternion", Vector(4), "instead of `rpy`: `[x, y, z, w]`", example=[0, 0, 0.6, 0.8])))
POSE_MOTION = Schema("pose_motion", (
    Field("xyz", THREE_SIGNALS, "position, three signals [m], for free joints", "zero", example=[0, 0, "0.1*sin(t)"]),
    Field("rpy", THREE_SIGNALS, "orientation R = Rz Ry Rx, three signals [rad]", "zero", example=["0.2*sin(t)", 0, 0]),
    Field("waypoints", List(WAYPOINT, 2, reader=_waypoints), "instead of both: poses with their times, joined by a curve of "
        "continuous acceleration",
        example=[{"t": 0, "xyz": [0, 0, 0.5]}, {"t": 2, "xyz": [0.1, 0, 0.5], "rpy": [0, 0, 1.2]}])), reader=_pose)
MOTION = Schema("motion", (
    Field("xyz", THREE_SIGNALS, "position, three signals [m]", "zero", example=["0.1*t", 0, 0]),
    Field("rpy", THREE_SIGNALS, "orientation R = Rz Ry Rx, three signals [rad]", "zero", example=[0, 0, "sin(t)"])),
    reader=_motion)


# joints -------------------------------------------------------------------------------------------------------------

def _prescribe(node: Node) -> Prescribe:
    level, signals = LEVELS.only(node, "prescribe")
    return Prescribe(level, signals, place=node.value[level].place)


def _position(node: Node) -> Signal | tuple[Signal, ...] | Motion | Waypoints:
    if node.kind == "mapping" and (node.value.keys() & set(POSE_MOTION) or not node.value.keys() & set(CURVES)):
        return _pose(node)
    result: Signal | tuple[Signal, ...] | Motion | Waypoints = SIGNALS.read(node)
    return result


def _torque(node: Node) -> Torque | Pd:
    if node.kind == "mapping" and node.value.keys() & {"pd", "pid"}:
        kinds = TORQUES.one_of[0]
        nodes = node.mapping(kinds)
        pd = TORQUES.value(nodes, only(node, nodes, kinds, "torque")[0])
        assert isinstance(pd, Pd)
        return pd
    if node.kind == "mapping" and "move" in node.value:
        raise node.value["move"].problem("a move is a position, not a torque", expected="another curve")
    signals = SIGNALS.read(node) if node.kind == "list" else read_signal(node, TORQUES)
    return Torque(signals, place=node.place)


def _pd(node: Node, keys: Schema) -> Pd:
    values: dict[str, Any] = {"kd": 0.0, "feedforward": Constant(0.0, place=node.place)} | keys.values(node)
    return Pd(**values, place=node.place)


_GAIN = Number(minimum=0, maximum=LARGEST_GAIN)
_GAINS = OneOf((_GAIN, List(_GAIN, 1, words="numbers")), "gain")
_KP = Field("kp", _GAINS, "gain of the position", required=True, example=50, live=True)
_OF_PD = (
    Field("kd", _GAINS, "gain of the velocity", 0, example=5, live=True),
    Field("target", SIGNALS, "desired position, a signal", required=True, example=0.3, live=True),
    Field("feedforward", SIGNALS, "force that is added, a signal", 0, example="0.5*sin(t)"),
    Field("gravity", Boolean(), "whether the gravity force of the joint is added", False, example=True))
PD: Schema = Schema("pd", (_KP, *_OF_PD), reader=lambda node: _pd(node, PD))
PID: Schema = Schema("pid", (_KP, Field("ki", _GAINS, "gain of the integral", required=True, example=20, live=True), *_OF_PD),
                     reader=lambda node: _pd(node, PID))
_POSITION_KEYS = ("move", "limits")                 # of curves that are positions only
TORQUES = Schema("torque", (Field("pd", PD, "`kp (target - q) + kd (d target/dt - v) + feedforward`"),
                          Field("pid", PID, "as `pd`, plus `ki` times the integral of `target - q`"),
                          *(key for key in CURVES.keys if key.name not in _POSITION_KEYS)),
               one_of=(("pd", "pid", *(name for name in CURVES.one_of[0] if name not in _POSITION_KEYS)),))
_TORQUE = OneOf((Number(), Text(), TORQUES, List(SIGNAL, 1, words="signals")), "torque_signals", _torque)
LEVELS = one_of(
    "prescribe",
    Field("acceleration", SIGNALS, "the velocity and position result from integration", example="0.8*sin(2*t)"),
    Field("velocity", SIGNALS, "the position results from integration", example={"sine": {"amplitude": 0.5, "frequency": 2}}),
    Field("position", OneOf((POSE_MOTION, SIGNALS), "position", _position), "the joint follows it exactly; nothing is "
        "integrated. Of ball and free joints a pose: `xyz` and `rpy`, or `waypoints`", example={"quintic": [[0, 0], [2, 1]]}),
    reader=_prescribe)
DRIVES: Schema = one_of(
    "drive",
    Field("torque", _TORQUE, "joint torque or force [N m or N]: a signal, `pd` or `pid`; a list with one for each coordinate",
        example="-0.5*q - 0.1*v"),
    Field("prescribe", LEVELS, "motion of the joint at one of these levels"),
    reader=lambda node: DRIVES.only(node, "a joint")[1])


def drive_to_dict(value: Drive | Motion | Waypoints | Signal | tuple[Signal, ...] | None) -> Any:
    """Return the motion or force of a joint as in a file."""
    match value:
        case Motion():
            return {"xyz": signal_to_dict(value.xyz) or None, "rpy": signal_to_dict(value.rpy) or None}
        case Waypoints():
            return {"waypoints": [{key: getattr(waypoint, key) for key in WAYPOINT if key == "t" or getattr(waypoint, key)}
                                  for waypoint in value.points]}
        case Prescribe():
            return {"prescribe": {value.level: drive_to_dict(value.signals)}}
        case Torque():
            return {"torque": signal_to_dict(value.signals)}
        case Pd():
            return {"torque": {"pd" if value.ki is None else "pid": {
                "kp": value.kp, "ki": value.ki, "kd": value.kd, "target": signal_to_dict(value.target),
                "feedforward": signal_to_dict(value.feedforward), "gravity": value.gravity or None}}}
    return None if value is None else signal_to_dict(value)
