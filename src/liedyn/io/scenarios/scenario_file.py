"""Scenario YAML -> `Scenario`."""
from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from liedyn.errors import ScenarioError
from liedyn.io.override import Overrides, override, override_texts, tree_of
from liedyn.io.scenarios.contact_file import read_contacts
from liedyn.io.scenarios.events import read_events, read_phases, unreached
from liedyn.io.scenarios.joint_keys import CSV, CURVES, DRIVES, LARGEST_GAIN, LEVELS, PD, PID, POSE_MOTION, SINE, TORQUES
from liedyn.io.scenarios.law_file import read_control, read_saturation
from liedyn.io.scenarios.law_keys import POLES
from liedyn.io.scenarios.motor_keys import read_motors
from liedyn.io.scenarios.sampling import read_sampling
from liedyn.io.scenarios.scenario import (
    FORCE_FRAMES,
    STABILIZATIONS,
    Begun,
    Column,
    Constant,
    Drive,
    Expression,
    ExternalForce,
    Integrator,
    Motion,
    Pd,
    Prescribe,
    Quintic,
    Rule,
    Scenario,
    Signal,
    Sine,
    Spline,
    Stabilization,
    StartFrom,
    Torque,
)
from liedyn.io.scenarios.scenario_keys import CONSTRAINTS, FORCE, INITIAL, INTEGRATOR, MOTION, SCENARIO
from liedyn.io.scenarios.stop_file import read_limits
from liedyn.io.scenarios.waypoints import Waypoints, read_waypoints
from liedyn.io.yaml_text import Node, read_yaml

MOST_ROWS = 10_000_000                           # of output, and
MOST_STEPS = 100_000_000                         # more is often a slip of the pen, and takes hours: only where it is asked for
MOST_AT_ALL = 1_000_000_000_000                  # a microsecond each: two weeks. No run ends that takes more
_LONG_STEP = 0.1                                 # s: adaptive methods seldom take longer ones while a robot moves
_OLD_FRAMES = {"link": "link axes are called local", "body": "link axes are called local",
               "world": "world axes at a point of the link are called local_world_aligned, link axes local"}
_STATE_INDEPENDENT = "a number, an expression, or one of " + ", ".join(CURVES.one_of[0])


def read_scenario(path: str | os.PathLike, overrides: Overrides = (), long: bool = False) -> Scenario:
    """The scenario in the YAML file `path`, after `overrides` ("key.path=value", value in YAML; or a dict).

    Paths in it are relative to its folder; in an override, to the current one. Raises ScenarioError.
    """
    root = read_yaml(path, ScenarioError)
    if is_robot(root):
        raise root.problem("this is a robot, not a scenario", expected="the key robot")
    return _scenario(root, os.fspath(path), overrides, long)


def scenario_of_robot(path: str | os.PathLike, overrides: Overrides = (), long: bool = False) -> Scenario:
    """Five seconds of a robot's passive motion from its neutral configuration, after `overrides`."""
    file = os.fspath(path)
    values = {"robot": Node("text", file, file, None, "robot", ScenarioError),
              "duration": Node("number", 5.0, file, None, "duration", ScenarioError)}
    return _scenario(Node("mapping", values, file, None, "", ScenarioError), file, overrides, long)


def scenario_of(path: str | os.PathLike | Mapping[str, Any], overrides: Overrides = (), long: bool = False) -> Scenario:
    """`read_scenario` of a scenario, `scenario_of_robot` of a robot file; of a mapping, the scenario with these keys, whose paths
    are relative to the current folder. `long` allows up to MOST_AT_ALL steps."""
    if isinstance(path, Mapping):
        return _scenario(tree_of(path, "scenario", ScenarioError), "scenario", overrides, long)
    robot = os.fspath(path).lower().endswith((".urdf", ".xml", ".mjcf", ".xacro")) or is_robot(read_yaml(path, ScenarioError))
    return (scenario_of_robot if robot else read_scenario)(path, overrides, long)


def is_robot(root: Node) -> bool:
    """Whether a YAML file describes a robot: it has links and names no robot."""
    return root.kind == "mapping" and "links" in root.value and "robot" not in root.value


def _scenario(root: Node, source: str, overrides: Overrides, long: bool) -> Scenario:
    overrides = override_texts(overrides, ScenarioError)
    replaced = [(text, key) for text in overrides
                for key in override(root, text, ScenarioError, (*DRIVES.one_of, *LEVELS.one_of, *TORQUES.one_of, POLES))]
    root.mapping(SCENARIO)
    given = {key: node for key, node in root.mapping().items() if node.kind != "null"}
    duration = SCENARIO.required(root, "duration")
    output_step = SCENARIO.value(given, "output_step", duration / 500, most=duration)
    integrator = _integrator(given["integrator"], duration) if "integrator" in given else Integrator(named=False)
    _check_length(given, duration, output_step, integrator, long)
    initial = given.get("initial")
    state = initial.mapping(INITIAL) if initial else {}
    sampling = read_sampling(given["sampling"], duration, MOST_AT_ALL if long else MOST_STEPS) if "sampling" in given else None
    phases = read_phases(given["phases"], lambda child: _rules(child, _drive)) if "phases" in given else ()
    events = read_events(given["events"], phases, joint_values, duration) if "events" in given else ()
    return Scenario(
        robot=SCENARIO.required(root, "robot"), duration=duration, output_step=output_step,
        base=SCENARIO.value(given, "base"), gravity=SCENARIO.value(given, "gravity"), integrator=integrator,
        passive=SCENARIO.value(given, "passive", True), seed=SCENARIO.value(given, "seed"),
        initial_q=joint_values(state.get("q")), initial_v=joint_values(state.get("v")),
        joints=_rules(given.get("joints"), _drive), actuators=_rules(given.get("actuators"), _signal),
        forces=tuple(_force(node) for node in given["external_forces"].items(of="forces"))
        if "external_forces" in given else (),
        initial_from=StartFrom(INITIAL.value(state, "from"), state["from"].place) if "from" in state else None,
        loops=SCENARIO.value(given, "loops"), assemble=INITIAL.value(state, "assemble", True),
        stabilization=_stabilization(given["constraints"]) if "constraints" in given else Stabilization(),
        drives=_rules(given.get("drives"), _motion),
        control=read_control(given["control"], _rules, _signal, _numbers, _pose) if "control" in given else None,
        sampling=sampling,
        saturate=read_saturation(given["saturate"]) if "saturate" in given else (),
        motors=read_motors(given["motors"]) if "motors" in given else (),
        contacts=read_contacts(given["contacts"], integrator.method) if "contacts" in given else None,
        limits=read_limits(given["limits"], integrator.method) if "limits" in given else None,
        phases=phases, events=events, source=source, overrides=overrides,
        notes=(*(f"-S {text} replaces {key}" for text, key in replaced), *unreached(phases, events)))


def _rules(node: Node | None, read) -> tuple[Rule, ...]:
    return tuple(Rule(name, read(child), child.place) for name, child in node.mapping().items()) if node else ()


def joint_values(node: Node | None) -> tuple[Rule, ...]:
    """Numbers by joint, as of `set` and of initial states."""
    return _rules(node, _numbers)


def _numbers(node: Node) -> tuple[float, ...]:
    if node.kind != "list":
        return (node.number(),)
    return tuple(child.number() for child in node.items(least=1, of="numbers"))


def _integrator(node: Node, duration: float) -> Integrator:
    given = node.mapping(INTEGRATOR)
    method = INTEGRATOR.kind_of(given)
    INTEGRATOR.check_kind(given, method, f"the method {method}")
    values = {key: INTEGRATOR.value(given, key, **({"most": duration} if key == "step" else {}))
              for key in given if key != "method"}
    return Integrator(method, **values, named=bool(given.keys() & {"method", "step"}), place=node.place)


def _check_length(given: dict[str, Node], duration: float, output_step: float, integrator: Integrator, long: bool) -> None:
    """Refuse a run of more rows or steps than are meant, or than can ever be made."""
    step, key = (integrator.step, "step") if integrator.step_is_fixed else (min(integrator.max_step, _LONG_STEP), "max_step")
    step_node = given["integrator"].get(key) if "integrator" in given else None
    for what, count, most, node in (("rows of output", duration / output_step, MOST_ROWS, given.get("output_step")),
                                    ("steps", duration / step, MOST_STEPS, step_node)):
        limit, blamed = MOST_AT_ALL if long else most, node or given["duration"]
        if count > limit:
            told = f"about {min(count, sys.float_info.max):.3g} {what} in {duration:g} s"
            raise blamed.problem(told, found=blamed.shown(), expected=f"at most {limit:g}",
                                 hint=None if long or count > MOST_AT_ALL else "--force-long or force_long=True allows more")


def _one_of(node: Node, keys: Iterable[str], what: str) -> tuple[str, Node]:
    """The only key of a mapping, which must be one of `keys`."""
    return _only(node, node.mapping(keys), keys, what)


def _only(node: Node, given: dict[str, Node], keys: Iterable[str], what: str) -> tuple[str, Node]:
    if len(given) != 1:
        raise node.problem(f"{what} takes exactly one of {', '.join(keys)}", found=", ".join(given) or "nothing")
    return next(iter(given.items()))


def _drive(node: Node) -> Drive:
    key, child = _one_of(node, DRIVES, "a joint")
    if key == "prescribe":
        level, signals = _one_of(child, LEVELS, "prescribe")
        keys = signals.value.keys() if signals.kind == "mapping" else ()
        if level == "position" and signals.kind == "mapping" and (keys & set(POSE_MOTION) or not keys & set(CURVES)):
            return Prescribe(level, _pose(signals), signals.place)
        return Prescribe(level, _signals(signals), signals.place)
    if child.kind == "mapping" and child.value.keys() & {"pd", "pid"}:
        return _pd(*_one_of(child, TORQUES.one_of[0], "torque"))
    return Torque(_signals(child, "pd", "pid"), child.place)


def _motion(node: Node, what: str = "a driven loop") -> Motion:
    given = node.mapping(MOTION)
    if not given:
        raise node.problem(f"{what} needs xyz or rpy", expected="xyz: [signal, signal, signal], rpy: the same")
    return Motion(*(tuple(_signal(child) for child in given[key].items(3, of="signals")) if key in given else ()
                    for key in MOTION), node.place)


def _pose(node: Node) -> Motion | Waypoints:
    """Of a ball or free joint."""
    given = node.mapping((*POSE_MOTION, *CURVES))
    for key in given:
        if key not in POSE_MOTION:
            by = ", ".join(one for one in given if one in POSE_MOTION)
            raise given[key].problem(f"{key} does not stand beside {by} of a pose",
                                     hint="it may stand beside a curve in xyz and rpy" if key == "from" else None)
    if "waypoints" not in given:
        return _motion(node, "a pose")
    if len(given) > 1:
        raise node.problem("waypoints stand alone", found=", ".join(given), expected="waypoints, or xyz and rpy")
    return read_waypoints(given["waypoints"])


def _stabilization(node: Node) -> Stabilization:
    given = node.mapping(CONSTRAINTS)
    method = CONSTRAINTS.kind_of(given)
    CONSTRAINTS.check_kind(given, method, f"the stabilization {method}")
    values = {key: CONSTRAINTS.value(given, key) for key in STABILIZATIONS[method] if key in given}
    return Stabilization(method, **values, place=node.place)


def _pd(law: str, node: Node) -> Pd:
    given = node.mapping(PID if law == "pid" else PD)
    ki = _gain(node.require("ki")) if law == "pid" else None
    zero = Constant(0.0, node.place)
    return Pd(_gain(node.require("kp")), _gain(given["kd"]) if "kd" in given else 0.0, _signals(node.require("target")),
              _signals(given["feedforward"]) if "feedforward" in given else zero,
              PD.value(given, "gravity", False), node.place, ki)


def _gain(node: Node) -> float | tuple[float, ...]:
    if node.kind == "list":
        return tuple(child.number(least=0, most=LARGEST_GAIN) for child in node.items(least=1, of="numbers"))
    return node.number(least=0, most=LARGEST_GAIN)


def _signals(node: Node, *more: str) -> Signal | tuple[Signal, ...]:
    if node.kind == "list":
        return tuple(_signal(child) for child in node.items(least=1, of="signals"))
    return _signal(node, *more)


def _signal(node: Node, *more: str) -> Signal:
    expected = ", ".join((_STATE_INDEPENDENT, *more))
    if node.kind == "number":
        return Constant(node.number(), node.place)
    if node.kind == "text":
        return Expression(node.text(), node.place)
    if node.kind != "mapping" or not node.value:
        raise node.wrong(expected)
    given = node.mapping((*CURVES, *more))
    start = given.get("from")
    key, child = _only(node, {name: one for name, one in given.items() if name != "from"}, (*CURVES.one_of[0], *more), "a signal")
    curve = {"quintic": _quintic, "spline": _spline, "sine": _sine, "csv": _column}[key](child)
    return Begun(curve, start.text(), start.place) if start else curve


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


def _sine(node: Node) -> Sine:
    return Sine(**SINE.values(node), place=node.place)


def _column(node: Node) -> Column:
    values = CSV.values(node)
    return Column(values["file"], values.get("column"), values.get("interpolation"), node.place)


def _force(node: Node) -> ExternalForce:
    given = node.mapping(FORCE)
    wrench = FORCE.require(node, "wrench").items(6, of="signals: mx, my, mz, fx, fy, fz")
    window = {"from": -math.inf, "until": math.inf} | {key: FORCE.value(given, key) for key in ("from", "until") if key in given}
    if window["until"] <= window["from"]:
        raise given["until"].problem("the force ends before it begins", found=given["until"].shown(),
                                     expected=f"a time after from: {window['from']:g}")
    return ExternalForce(node.require("link").text(), _force_frame(given["frame"]) if "frame" in given else "local_world_aligned",
                         tuple(map(_signal, wrench)), FORCE.value(given, "point", (0.0, 0.0, 0.0)),
                         window["from"], window["until"], node.place)


def _force_frame(node: Node) -> str:
    """`world` is refused with the names to use: everywhere else it means about the world's origin."""
    hint = _OLD_FRAMES.get(node.value) if node.kind == "text" else None
    if hint:
        raise node.wrong("one of " + ", ".join(FORCE_FRAMES), hint=hint)
    return node.choice(FORCE_FRAMES)
