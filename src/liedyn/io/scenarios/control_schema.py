"""Keys of `control`, `saturate`, `sampling` and `friction` in scenarios, reading from YAML and writing."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from liedyn.errors import ElementPlace, Place, ScenarioError
from liedyn.io.csv_table import read_table, split_title
from liedyn.io.file_schema import (
    Boolean,
    Choice,
    Field,
    File,
    List,
    Named,
    Names,
    Number,
    OneOf,
    Schema,
    Text,
    Vector,
    default_of,
    only,
    too_many,
)
from liedyn.io.robots.robot_schema import EACH_COORDINATE, FRICTION, friction_level
from liedyn.io.scenarios.scenario import (
    FORCE_LONG,
    HOLDS,
    LEAST_PERIOD,
    MEASURED,
    ROBOT_LIMITS,
    Control,
    ControlModel,
    Friction,
    ObserverSettings,
    PythonController,
    Rule,
    Sampling,
    SlotineLiControl,
)
from liedyn.io.scenarios.signal_schema import (
    NUMBERS,
    POSE_MOTION,
    SIGNAL,
    by_name,
    drive_to_dict,
    numbers_to_list,
    patterns,
    rules_to_dict,
    signal_to_dict,
)
from liedyn.io.units import unit_of
from liedyn.io.yaml_nodes import Node
from liedyn.io.yaml_values import FilePath
from liedyn.model.description import FRICTION_MODELS

POLES = ("bandwidth", "poles")
MATRIX = "a list of rows of numbers, {tau.joint: {q.joint: number, …}, …}, or the path of a CSV file"
_ROW = "a row of a gain matrix: numbers between commas (# begins a comment)"


# Control laws, their keys, and how they are written back ----------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class ControlLaw:
    """A control law in scenario files. `LAW_BINDERS` in `simulation.control.joint_control` has its computation.

    keys   keys of `control` that the law has, besides `law`
    poles  number of poles of the error of each joint; 0: the law has no poles
    make   class of its values: a `Control`, with further fields for keys that only this law has
    """

    keys: tuple[str, ...]
    poles: int = 0
    make: Callable[..., Control] = Control


LAWS = {"feedback_linearization": ControlLaw(("motion", *POLES, "model"), poles=4),
        "computed_torque": ControlLaw(("motion", *POLES, "model"), poles=2),
        "task_space": ControlLaw(("link", "point", "target", *POLES, "posture", "model"), poles=2),
        "slotine_li": ControlLaw(("motion", "bandwidth", "kd", "adapt", "adaptation_gain", "model"), poles=1,
                                 make=SlotineLiControl),
        "gravity_compensation": ControlLaw(("joints", "model")),
        "state_feedback": ControlLaw(("joints", "gain", "setpoint", "model"))}
_PLAIN: dict[str, Callable[[Control], Any]] = {
    "motion": lambda control: rules_to_dict(control.motion, signal_to_dict),
    "bandwidth": lambda control: None if control.poles else control.bandwidth,
    "poles": lambda control: control.poles or None,
    "target": lambda control: drive_to_dict(control.target),
    "posture": lambda control: rules_to_dict(control.posture, numbers_to_list) or None,
    "joints": lambda control: [rule.pattern for rule in control.joints] or None,
    "gain": lambda control: _gain_to_dict(control),
    "model": lambda control: model_to_dict(control.model),
    "kd": lambda control: rules_to_dict(getattr(control, "kd", ())),
    "adapt": lambda control: _adapted_to_list(control),
    "setpoint": lambda control: {"csv": FilePath(control.setpoint_file)} if control.setpoint_file else {
        "q": rules_to_dict(control.setpoint_q, numbers_to_list),
                                 "v": rules_to_dict(control.setpoint_v, numbers_to_list)}}


def declare_law(name: str, law: ControlLaw, *keys: Field, plain: dict[str, Callable[[Control], Any]] | None = None) -> None:
    """Add a control law, with keys that no other law has. plain: how their values are written, where not as they are."""
    LAWS[name] = law
    _PLAIN.update(plain or {})
    for key in keys:
        CONTROL.extend(key)


def control_to_dict(control: Control) -> dict[str, Any]:
    """Return the control law as in a file."""
    return {"law": control.law} | {key: _PLAIN[key](control) if key in _PLAIN else getattr(control, key)
                                   for key in LAWS[control.law].keys}


def model_to_dict(model: ControlModel | None) -> dict[str, Any] | None:
    """Return the model of a controller as in a file."""
    return None if model is None else {"robot": model.robot and FilePath(model.robot), **dict(model.parameters)}


def _adapted_to_list(control: Any) -> bool | list[str]:
    names = [rule.pattern for rule in control.adapt]
    return names != [] if names in ([], ["*"]) else names


def _gain_to_dict(control: Control) -> Any:
    if control.gain_file:
        return FilePath(control.gain_file)
    if not control.rows:
        return control.gain
    return dict(zip(control.rows, (dict(zip(control.columns, row, strict=True)) for row in control.gain), strict=True))


def _with(key: str) -> Names:
    """Return the names of the laws to which a key belongs."""
    return Names(LAWS, lambda law: key in law.keys)


def _control(node: Node) -> Control:
    nodes = CONTROL.nodes(node)
    name = nodes["law"].value
    law = LAWS[name]
    if law.poles:
        key, chosen = only(node, nodes, [key for key in POLES if key in law.keys], "control", "neither", " and ")
        if key == "poles":
            for child in chosen.items(law.poles, of=f"poles for {name}"):
                if child.number() >= 0.0:
                    raise child.problem("unstable pole", found=child.excerpt(), expected="a negative pole [1/s]")
    values = CONTROL.values(node)
    setpoint, (gain, rows, columns, *file) = values.pop("setpoint", {}), values.pop("gain", ((), (), ()))
    if rows and "joints" in nodes:
        raise nodes["joints"].problem("the rows of the gain are already named", expected="joints or names")
    if "csv" in setpoint and len(setpoint) > 1:
        raise nodes["setpoint"].problem("csv cannot be combined with q and v", expected="csv, or q and v")
    of_file = {"gain_file": file[0], "gain_titles": file[1]} if file else {}
    return law.make(**values, **of_file, gain=gain, rows=rows, columns=columns, setpoint_q=setpoint.get("q", ()),
                    setpoint_v=setpoint.get("v", ()), setpoint_file=setpoint.get("csv", ""), place=node.place)


def _model(node: Node) -> ControlModel:
    """Return the controller's model. Names of parameters are keys, or keys of mappings: `mass: {hand: 0}` is `mass.hand: 0`."""
    if node.kind not in ("mapping", "null"):
        raise node.wrong("a mapping: the path of a robot, and values by parameter, such as {robot: nominal.yaml, mass.hand: 0}")
    nodes = dict(node.mapping())
    robot = nodes.pop("robot", None)
    parameters = dict(_parameters(nodes))
    place = ElementPlace(node.file, node.line, node.key, {name: child.place for name, child in parameters.items()})
    values = tuple((name, child.number()) for name, child in parameters.items())
    return ControlModel(None if robot is None else File("robot file").read(robot), values, place=place)


def _parameters(nodes: Mapping[str, Node], head: str = "") -> Iterator[tuple[str, Node]]:
    for name, child in nodes.items():
        if child.kind == "mapping" and child.value:
            yield from _parameters(child.value, f"{head}{name}.")
        else:
            yield f"{head}{name}", child


def _adapted(node: Node) -> tuple[Rule, ...]:
    """Return the rules of adapted parameters: all for true, none for false, or those of a list."""
    if node.kind == "boolean":
        return SlotineLiControl("").adapt if node.value else ()
    if node.kind != "list":
        raise node.wrong("true, false, or a list of parameters such as mass.hand or *.hand")
    return tuple(Rule(child.text(), "adapt", place=child.place) for child in node.items(minimum=1, of="parameters"))


def _matrix(node: Node) -> tuple[Any, ...]:
    """Return the rows of a gain matrix, and the names of its rows and columns, which may be empty.

    For a file with gains by time there are no rows, and the file and the titles of its gains follow.
    """
    if node.kind == "text":
        file = File().read(node)
        titles = _titles_of_gains_by_time(file)
        if not titles:
            return read_gain_matrix(file)
        names = [title.split("/") for title in titles]
        inputs, states = (tuple(dict.fromkeys(name[k] for name in names)) for k in range(2))
        return (), inputs, states, file, titles
    if node.kind == "mapping" and node.value:
        named = {name: {column: child.number() for column, child in row.mapping().items()} for name, row in node.value.items()}
        columns = tuple(dict.fromkeys(column for row in named.values() for column in row))
        return tuple(tuple(row.get(column, 0.0) for column in columns) for row in named.values()), tuple(named), columns
    if node.kind != "list" or not node.value:
        raise node.wrong(MATRIX)
    rows = tuple(tuple(child.number() for child in row.items(minimum=1, of="numbers")) for row in node.value)
    for child, row in zip(node.value, rows, strict=True):
        if len(row) != len(rows[0]):
            raise child.problem("the rows differ in length", found=len(row), expected=f"{len(rows[0])} numbers")
    return rows, (), ()


def _titles_of_gains_by_time(file: str) -> tuple[str, ...]:
    """Return the titles row/column of the gains in a CSV whose first column is the time; empty for another CSV.

    Raises ScenarioError for a CSV with times and without gains.
    """
    table = read_table(file, ScenarioError, indented_comments=True, expected="rows of numbers between commas")
    if table.names[0] != "t":
        return ()
    titles = tuple(name for name in table.names if re.fullmatch(r"[^/]+/[qv]\.[^/]+", name))
    if not titles:
        raise ScenarioError("the CSV has times and no gains", place=Place(file), expected="columns such as tau.elbow/q.elbow")
    return titles


def read_gain_matrix(file: str) -> tuple[tuple[tuple[float, ...], ...], tuple[str, ...], tuple[str, ...]]:
    """Return the numbers of a CSV, and the names of its rows and columns, which are empty if it has none.

    With names, as in files of `liedyn linearize`, the first line has those of the columns from its second cell on, and each row
    starts with its name.
    """
    table = read_table(file, ScenarioError, indented_comments=True, expected="rows of numbers between commas")
    body = list(table.cells())
    named = bool(re.match(r"[qv]\.", table.titles[-1]))
    if not named:
        body.insert(0, (table.title_line, table.titles))
    if not body:
        raise ScenarioError("the matrix is empty", place=Place(file), expected="rows of numbers between commas")
    for line, cells in body:
        table.check_length(line, cells)                        # cells are not shown: a file without names may be any file
    gain = tuple(tuple(_finite(cell, table.place(line, f"cell {k}"), table.separator_hint)
                       for k, cell in enumerate(cells[named:], 1 + named))
                 for line, cells in body)
    if not named:
        return gain, (), ()
    rows, columns = [split_title(cells[0])[0] for _, cells in body], table.names[1:]
    for title in (*table.titles[1:], *(cells[0] for _, cells in body)):
        unit = unit_of(split_title(title)[1] or "1")
        if unit is None or unit.multiply != unit.divide:
            raise ScenarioError("a gain matrix is in SI units", place=Place(file), found=title, expected="rad, m, N m, N")
    for axis, names in (("rows", rows), ("columns", columns)):
        if len(set(names)) < len(names):
            raise ScenarioError(f"two {axis} have the same name", place=Place(file))
    return gain, tuple(rows), tuple(columns)


def _finite(cell: str, place: Place, hint: str | None) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ScenarioError("not a number", place=place, expected=_ROW, hint=hint) from None
    if not math.isfinite(value):
        raise ScenarioError("not a finite number", place=place, expected=_ROW)
    return value


def _saturation(node: Node) -> tuple[Rule, ...]:
    """Return limits of generalized forces: of all joints at their effort limits (`true`), or by joint."""
    if node.kind == "boolean":
        return (Rule("*", ROBOT_LIMITS, place=node.place),) if node.value else ()
    if node.kind != "mapping":
        raise node.wrong("true, false, or limits by joint: limits or a number")
    rules: Any = SATURATE.values[1].read(node)
    return tuple(rules)


def _limit(node: Node) -> float | str | tuple[float, ...]:
    if node.kind == "text":
        return node.choice((ROBOT_LIMITS,))
    if node.kind == "list":
        low, high = THRUST_LIMITS.read(node)
        if not low < high:
            raise node.problem("the minimum thrust is not below the maximum", found=node.excerpt(), expected="[minimum, maximum]")
        return low, high
    if node.kind != "number":
        raise node.wrong("limits (the one of the robot file), a number [N m or N], or [minimum, maximum] of a thrust [N]")
    return LIMIT.read(node)


SETPOINT = Schema("setpoint", (
    Field("q", by_name(NUMBERS, "joint"), "positions by joint [rad or m]", "neutral", example={"elbow": 0.5}),
    Field("v", by_name(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0}),
    Field("csv", File("a CSV file"), "instead of `q` and `v`: a CSV with a motion to follow, columns `q.…`, `v.…`, and `tau.…` "
        "or `thrust.…` of the rows of the gain; linear between its rows", example="motion.csv")))
_GAIN = OneOf((File(), Named(Named(Number(), "q.joint"), "tau.joint"), List(List(Number(), 1), 1)), "gain_matrix", _matrix)
_INNER = Named(OneOf((Number(), Named(Number(), "component"))), "element")


_DAMPING = Number(above=0)


def _by_joint(node: Node) -> tuple[Rule, ...]:
    """Return rules by joint or pattern, or one for all joints."""
    if node.kind != "mapping":
        return (Rule("*", _DAMPING.read(node), place=node.place),)
    rules: Any = by_name(_DAMPING, "joint*").read(node)
    return tuple(rules)


CONTROL = Schema("control", (
    Field("law", Choice(Names(LAWS)), "one of " + ", ".join(f"`{name}`" for name in LAWS),
        required="one of " + ", ".join(LAWS), example="computed_torque"),
    Field("motion", by_name(SIGNAL, "joint"), "of `computed_torque`, `slotine_li` and `feedback_linearization`: desired motion "
        "by joint, a signal; of an elastic joint that of its link relative to the parent, by the name of the motor's joint",
        required="the desired motion of each joint; of an elastic one by the name of its motor's", kinds=_with("motion"),
        example={"motor1": "0.5*sin(t)"}),
    Field("bandwidth", Number(above=0), "of `computed_torque`, `slotine_li`, `feedback_linearization` and `task_space`: all "
        "poles of the error at -bandwidth [rad/s]; of `slotine_li` λ of s = e' + λ e",
        kinds=_with("bandwidth"), example=20),
    Field("poles", List(Number(), 2, 4), "instead of `bandwidth`: a list of negative poles [1/s], four for "
        "`feedback_linearization` and two for `computed_torque` and `task_space`", kinds=_with("poles"), example=[-20, -25]),
    Field("link", Text(), "with `law: task_space`: the link that follows the target", required="the link that follows the target",
        kinds=_with("link"), example="hand"),
    Field("point", Vector(3), "with `law: task_space`: the point of the link that follows the target, in link coordinates [m]",
        default_of(Control, "point"), kinds=_with("point"), example=[0, 0, 0.1]),
    Field("target", POSE_MOTION, "with `law: task_space`: the pose of the link's axes at the point in the world; `xyz` or `rpy` "
        "alone leave the other free", required="xyz: [signal, signal, signal], rpy: the same, or waypoints",
        kinds=_with("target"), example={"xyz": [0.4, "0.2*sin(t)", 0.5]}),
    Field("posture", by_name(NUMBERS, "joint"), "with `law: task_space`: preferred joint positions, as far as the target leaves "
        "them free [rad or m]", "they come to rest", kinds=_with("posture"), example={"elbow": -1.2}),
    Field("joints", patterns(()), "with `gravity_compensation` and `state_feedback`: joints or patterns that the law drives",
        "those that the robot file calls `actuated`, or all that are not prescribed, except a free joint",
        kinds=_with("joints"), example=["elbow"]),
    Field("gain", _GAIN, "with `law: state_feedback`: the matrix K, by names or as rows; see [control "
        "laws](#control-laws)", required=MATRIX,
        kinds=_with("gain"), example="K.csv"),
    Field("setpoint", SETPOINT, "with `law: state_feedback`: the state at which the gain holds, `q` and `v` by joint (unlisted "
                                "joints are neutral), or `csv`", required="the state at which the gain holds: q and v by "
                                                               "joint", kinds=_with("setpoint"),
        example={"q": {"elbow": 0.5}}),
    Field("model", Named(OneOf((Number(), File(), _INNER)), "parameter", _model), "the robot that the law computes with: "
        "`robot`, another robot file with the same joints, and values of parameters by name (`ld.parameter_names`), such as "
        "`{mass.hand: 0}`; `{}` is the robot of the scenario without variations of a batch", "the robot that is simulated",
        kinds=_with("model"), example={"mass.lower": 1.5}),
    Field("kd", OneOf((_DAMPING, by_name(_DAMPING, "joint*")), "gain", _by_joint),
        "with `law: slotine_li`: gain of s, a number, or by joint or pattern [N m s/rad or N s/m]",
        required="a number, or numbers by joint", kinds=_with("kd"), example=20),
    Field("adapt", OneOf((Boolean(), List(Text(), 1)), "adapted", _adapted), "with `law: slotine_li`: whether "
        "inertial parameters of links are adapted, or a list of those that are, by names or patterns such as `mass.hand` or "
        "`*.hand`", True, kinds=_with("adapt"), example=["*.hand"]),
    Field("adaptation_gain", Number(above=0), "with `law: slotine_li`: speed γ of the adaptation [1/J]",
        default_of(SlotineLiControl, "adaptation_gain"), kinds=_with("adaptation_gain"), example=50)),
    kind="law", one_of=(POLES,), subject="the law {}", reader=_control)

# Controllers in Python --------------------------------------------------------------------------------------------------

def _controller(node: Node) -> PythonController:
    values: dict[str, Any] = CONTROLLER.values(node) if node.kind == "mapping" else {}
    text = node.value["function"] if node.kind == "mapping" else node
    head, _, name = text.text().rpartition(":")
    is_file = head.endswith(".py")
    if not name.isidentifier() or not (is_file or all(part.isidentifier() for part in head.split("."))):
        raise text.wrong("file.py:name or module:name, the name of a function or a class")
    module = File("Python file").read(replace(text, value=head)) if is_file else head
    return PythonController(module, name, is_file, values.get("arguments", ()), values.get("model"), place=node.place)


def controller_to_dict(controller: PythonController) -> Any:
    """Return the controller as in a file."""
    text = f"{controller.module}:{controller.name}"
    return {"function": FilePath(text) if controller.is_file else text, "arguments": dict(controller.arguments) or None,
            "model": model_to_dict(controller.model)}


_ARGUMENT = OneOf((Number(), Text(), Boolean(), List(Number(), 1)), "controller_argument", lambda node: _argument(node))
CONTROLLER = Schema("controller", (
    Field("function", Text(), "`file.py:name`, relative to this file, or `module:name`: a function (t, q, v) that returns "
        "torques, or a class whose objects are called so, one for each run", required="file.py:name or module:name",
        example="controller.py:controller"),
    Field("arguments", Named(_ARGUMENT, "argument", lambda node: tuple((name, _argument(child)) for name, child
        in node.mapping().items())), "arguments of the function after t, q, v, or of the class after the model", "none",
        example={"gain": 20}),
    Field("model", CONTROL["model"].value, "the model that an object of a class gets, as `model` of `control`",
        "the robot that is simulated", example={"mass.lower": 1.5})), reader=_controller)
CONTROLLERS = OneOf((Text(), CONTROLLER), "controller_or_function", _controller)


def _argument(node: Node) -> Any:
    if node.kind not in ("number", "text", "boolean", "list"):
        raise node.wrong("a number, text, true, false, or a list of numbers")
    return list(map(Number().read, node.items(minimum=1, of="numbers"))) if node.kind == "list" else node.value


LIMIT = Number(above=0)
THRUST_LIMITS = Vector(2)
SATURATE = OneOf((Boolean(), by_name(OneOf((Choice((ROBOT_LIMITS,)), LIMIT, THRUST_LIMITS), "limit", _limit), "joint*")),
                 "saturation", _saturation)


# The key `observer` of a scenario ---------------------------------------------------------------------------------------

def _observer(node: Node) -> ObserverSettings:
    values = OBSERVER.values(node)
    (gain, rows, columns, *file), initial = values["gain"], values.get("initial", {})
    if file or not rows:
        unnamed = "gains by time" if file else "rows of numbers"
        raise node.value["gain"].problem("the gain of an observer has names", found=unnamed,
                                         expected="states by measured coordinates: a CSV, or {v.joint: {q.joint: number, …}, …}")
    return ObserverSettings(gain, rows, columns, initial.get("q", ()), initial.get("v", ()), values.get("model"),
                            place=node.place)


def observer_to_dict(observer: ObserverSettings) -> dict[str, Any]:
    """Return the observer as in a file."""
    gain = dict(zip(observer.rows, (dict(zip(observer.columns, row, strict=True)) for row in observer.gain), strict=True))
    return {"gain": gain, "model": model_to_dict(observer.model),
            "initial": {"q": rules_to_dict(observer.initial_q, numbers_to_list) or None,
                        "v": rules_to_dict(observer.initial_v, numbers_to_list) or None}}


_ESTIMATE = Schema("initial_estimate", (
    Field("q", by_name(NUMBERS, "joint"), "positions by joint [rad or m]", "neutral", example={"elbow": 0.5}),
    Field("v", by_name(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0})))
OBSERVER = Schema("observer", (
    Field("gain", OneOf((File(), Named(Named(Number(), "q.joint"), "q.joint")), "observer_gain", _matrix),
        "the gain L, by names: rows are states, columns measured coordinates; a CSV as `system.lqe(W, V, step).write` writes it",
        required="a CSV, or {v.joint: {q.joint: number, …}, …}",
        example={"q.elbow": {"q.elbow": 0.2}, "v.elbow": {"q.elbow": 9}}),
    Field("initial", _ESTIMATE, "the first estimate: `q` and `v` by joint", "neutral, at rest", example={"q": {"elbow": 0.3}}),
    Field("model", CONTROL["model"].value, "the model that predicts, as `model` of `control`", "the robot that is simulated",
        example={"mass.lower": 1.5})), reader=_observer)


# `sampling` of a scenario: its keys, from YAML and back -----------------------------------------------------------------

RATE = "rate", "period"


def read_sampling(node: Node, duration: float, maximum: int) -> Sampling:
    """Return the sampling of the controllers. Raise if a run of this duration [s] has more than `maximum` samples."""
    nodes = node.mapping(SAMPLING)
    chosen = only(node, nodes, RATE, "sampling", "neither", " and ", "rate: samples per second, or period: seconds")[1]
    values = SAMPLING.values(node)
    noise = {f"noise_{key}": rules for key, rules in values.pop("noise", {}).items()}
    sampling = Sampling(**values.pop("quantization", {}), **noise, **values, place=node.place)
    if duration / sampling.interval > maximum:
        bound = ("at most", maximum / duration, "Hz") if sampling.rate is not None else ("at least", duration / maximum, "s")
        raise too_many(chosen, "samples", duration / sampling.interval, maximum, *bound, hint=FORCE_LONG)
    return sampling


def _resolutions(node: Node) -> tuple[Rule, ...]:
    if node.kind != "mapping":
        return (Rule("*", _RESOLUTION.read(node), place=node.place),)
    rules: Any = _BY_JOINT.values[1].read(node)
    return tuple(rules)


_RESOLUTION = Number(minimum=0)
_BY_JOINT = OneOf((_RESOLUTION, by_name(_RESOLUTION, "joint*")), "resolution", _resolutions)

QUANTIZATION = Schema("quantization", (
    Field("q", _BY_JOINT, "resolution of measured positions [rad or m]: a number, or by joint or pattern", 0, example=1e-4),
    Field("v", _BY_JOINT, "resolution of measured velocities [rad/s or m/s]: a number, or by joint or pattern", 0, example=1e-3),
    Field("tau", _BY_JOINT, "resolution of the torques of the controller [N m or N]: a number, or by joint or pattern", 0,
        example=0.01)))
NOISE = Schema("measurement_noise", (
    Field("q", _BY_JOINT, "standard deviation of measured positions [rad or m]: a number, or by joint or pattern", 0,
        example=1e-4),
    Field("v", _BY_JOINT, "standard deviation of measured velocities [rad/s or m/s]: a number, or by joint or pattern", 0,
        example=1e-3)))
SAMPLING = Schema("sampling", (
    Field("rate", Number(above=0, maximum=1 / LEAST_PERIOD), "samples per second [Hz]", example=1000),
    Field("period", Number(minimum=LEAST_PERIOD), "instead of `rate`: time between samples [s]", example=1e-3),
    Field("delay", Number(minimum=0), "time from a sample to the torque that is computed from it [s]; that of the first sample "
        "acts from the start", 0, example=5e-4),
    Field("hold", Choice(HOLDS), "torques between samples: `zero` keeps the last one, `first` continues the straight line "
        "through the last two", "zero", example="first"),
    Field("quantization", QUANTIZATION, "resolutions of measurements and outputs", "none"),
    Field("noise", NOISE, "noise of the measurements, before they are rounded; it depends on `seed` and "
        "the names of the coordinates", "none")), one_of=(RATE,))


def sampling_to_dict(sampling: Sampling) -> dict[str, Any]:
    """Return the sampling as in a file."""
    resolutions = {key: rules_to_dict(getattr(sampling, key)) for key in MEASURED if getattr(sampling, key)}
    noise = {key: rules_to_dict(rules) for key, rules in (("q", sampling.noise_q), ("v", sampling.noise_v)) if rules}
    return {"rate": sampling.rate, "period": sampling.period, "delay": sampling.delay, "hold": sampling.hold,
            "quantization": resolutions or None, "noise": noise or None}


# The key `friction` of a scenario: friction of joints, as in robot files ---------------------------------------------------

def _friction(node: Node) -> Friction:
    if node.kind != "mapping":
        return Friction((("model", FRICTION_MODELS[0]), ("level", friction_level(node))))
    return Friction(tuple(FRICTION.values(node).items()))


JOINT_FRICTION = by_name(OneOf((EACH_COORDINATE, FRICTION), "friction_of_joint", _friction), "joint*")
