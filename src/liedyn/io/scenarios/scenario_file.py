"""Scenario YAML -> `Scenario`."""
from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from liedyn.errors import LiedynWarning, ScenarioError
from liedyn.io.file_schema import (
    Boolean,
    Choice,
    Field,
    File,
    Integer,
    List,
    Named,
    Number,
    Schema,
    Text,
    Vector,
    default_of,
    kinds_with,
    too_many,
)
from liedyn.io.robots.robot_formats import TITLES, formats_of_ending
from liedyn.io.robots.robot_schema import LOOPS_OF_ROBOT, READING
from liedyn.io.scenarios.contact_schema import CONTACTS, LIMITS, contacts_to_dict, limits_to_dict, read_contacts
from liedyn.io.scenarios.control_schema import (
    CONTROL,
    CONTROLLERS,
    JOINT_FRICTION,
    OBSERVER,
    SAMPLING,
    SATURATE,
    control_to_dict,
    controller_to_dict,
    observer_to_dict,
    read_sampling,
    sampling_to_dict,
)
from liedyn.io.scenarios.event_schema import EVENT, PHASE, event_to_dict, phase_to_dict, read_events, read_phases, unreached
from liedyn.io.scenarios.motor_schema import MOTORS, motor_to_dict
from liedyn.io.scenarios.scenario import (
    FORCE_FRAMES,
    FORCE_LONG,
    METHODS,
    STABILIZATIONS,
    ExternalForce,
    Integrator,
    Scenario,
    Stabilization,
    StartFrom,
)
from liedyn.io.scenarios.sensor_schema import SENSORS, read_sensors, sensor_to_dict
from liedyn.io.scenarios.signal_schema import (
    DRIVES,
    MOTION,
    NUMBERS,
    SIGNAL,
    by_name,
    drive_to_dict,
    numbers_to_list,
    patterns,
    rules_to_dict,
    signal_to_dict,
)
from liedyn.io.yaml_nodes import Node, read_yaml
from liedyn.io.yaml_values import FilePath, Overrides, override, override_texts, plain, tree_of
from liedyn.model.element_values import MAX_INPUT

# The keys of a scenario: what `scenario_file` reads, and what schema, template and documents say ------------------------

SHORTEST = 1e-12                                 # s, of a run
_OLD_FRAMES = {"link": "link axes are called local", "body": "link axes are called local",
               "world": "world axes at a point of the link are called local_world_aligned, link axes local"}


def _of_method(name: str, value: Number, meaning: str, **more: Any) -> Field:
    default = default_of(Integrator, name)
    return Field(name, value, meaning, "none" if default == math.inf else default, kinds=kinds_with(name, METHODS), **more)

def _stabilization(node: Node) -> Stabilization:
    values = CONSTRAINTS.values(node)
    method = values.pop("stabilization", CONSTRAINTS["stabilization"].default)
    return Stabilization(method, **values, place=node.place)


def _force(node: Node) -> ExternalForce:
    values = FORCE.values(node)
    start, end = values.pop("from", -math.inf), values.pop("until", math.inf)
    if end <= start:
        until = node.value["until"]
        raise until.problem("the force ends before it starts", found=until.excerpt(), expected=f"a time after from: {start:g}")
    return ExternalForce(**{"frame": "local_world_aligned"} | values, start=start, end=end, place=node.place)


INTEGRATOR = Schema("integrator", (
    Field("method", Choice(tuple(METHODS)), "see [integrators](#integrators) for their use", default_of(Integrator, "method"),
        example="dopri5", live=True),
    _of_method("step", Number(above=0), "fixed step [s]", example=1e-3),
    _of_method("rho", Number(minimum=0, maximum=1),
               "spectral radius at infinite frequency: 1 gives no numerical damping, 0 the maximum", example=0.9),
    _of_method("rtol", Number(above=0, minimum=2.3e-14, maximum=0.1), "relative tolerance", example=1e-8, live=True),  # 100 x eps
    _of_method("atol", Number(above=0, minimum=1e-30), "absolute tolerance", example=1e-10),  # SciPy's first step overflows below
    _of_method("max_step", Number(above=0), "maximum step [s]", example=0.1)), kind="method", subject="the method {}")

INITIAL = Schema("initial", (
    Field("q", by_name(NUMBERS, "joint"), "positions by joint [rad or m]: a number, or a list for a joint with several "
        "coordinates; quaternions are x y z w", "zero", example={"elbow": -0.5}, live=True),
    Field("v", by_name(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0.2}, live=True),
    Field("assemble", Boolean(), "whether the loops of the robot are closed first; see [robots with loops](#robots-with-loops)",
        True, example=False),
    Field("guess", by_name(NUMBERS, "joint"), "positions by joint or pattern from which loops are closed [rad or m], in the form "
        "of `q`; assembly may change them. `q`, prescribed motions and references take precedence", "none",
        example={"elbow": -0.5}),
    Field("keep", patterns(()), "joints or patterns whose position assembly does not change, and whose velocity in `v` it does "
        "not change", "none", example=["elbow"]),
    Field("from", File("run folder or trajectory", "trajectory.csv"), "run folder or trajectory in whose last row the robot "
        "starts, by the names of the coordinates; `q` and `v` replace values of it", example="runs/before"),
    Field("row", Choice(("last", "first")), "with `from`: the row; with `first`, velocities that the file does not have are zero",
        default_of(StartFrom, "row"), example="first"),
    Field("keyframe", Text(), "keyframe of the robot file in which the robot starts; `q` and `v` replace values of it",
        example="home")))

CONSTRAINTS = Schema("constraints", (
    Field("stabilization", Choice(tuple(STABILIZATIONS)),
          "`projection`: after each step, position and velocity are projected onto "
        "the constraints in the metric of the mass matrix; `baumgarte`: the residual r obeys r'' + 2 f r' + f² r = 0; `none`",
        default_of(Stabilization, "method"), example="projection"),
    Field("tolerance", Number(above=0, minimum=1e-15, maximum=1e-3), "of `projection`: the maximum residual [rad, or m per "
          "characteristic length of the loop]",
          default_of(Stabilization, "tolerance"), kinds=kinds_with("tolerance", STABILIZATIONS), example=1e-12),
    Field("frequency", Number(above=0), "of `baumgarte`: f [rad/s]", default_of(Stabilization, "frequency"),
        kinds=kinds_with("frequency", STABILIZATIONS), example=20)),
    kind="stabilization", subject="the stabilization {}", reader=_stabilization)

FORCE = Schema("external_force", (
    Field("link", Text(), "the link that the wrench acts on", required=True, example="lower", live=True),
    Field("frame", Choice(FORCE_FRAMES, _OLD_FRAMES),
          "axes of the wrench: `local_world_aligned` for world axes, `local` for link "
        "axes; see [frames](conventions.md#frames). The result gives it in link axes about the link's origin in any case",
        "local_world_aligned", example="local"),
    Field("wrench", List(SIGNAL, 6, 6, "signals: mx, my, mz, fx, fy, fz"), "`[mx, my, mz, fx, fy, fz]`, signals [N m, N]",
        required="[mx, my, mz, fx, fy, fz]", example=[0, 0, 0, 20, 0, 0], live=True),
    Field("point", Vector(3), "point about which the moment is given, in link coordinates [m]",
          default_of(ExternalForce, "point"),
        example=[0, 0, -0.5]),
    Field("from", Number(), "the wrench acts from this time on [s]", "the start", example=3.0, live=True),
    Field("until", Number(), "and before this one [s]", "the end", example=3.2, live=True)), reader=_force)

SCENARIO = Schema("scenario", (
    Field("robot", File("robot file"), f"path of a {TITLES} file", required="the path of a robot file", example="robot.yaml",
        live=True),
    Field("base", Choice(("fixed", "floating")), "`fixed` or `floating`", "from the robot file", example="fixed"),
    LOOPS_OF_ROBOT,
    Field("gravity", Vector(3, MAX_INPUT), "`[x, y, z]` [m/s²]", "from the robot file", example=[0, 0, -9.81]),
    *READING,
    Field("duration", Number(minimum=SHORTEST), "simulated time [s]", required="the time to simulate, in seconds", example=5,
        live=True),
    Field("output_step", Number(above=0), "time between rows of the result [s]", "duration / 500", example=0.01, live=True),
    Field("integrator", INTEGRATOR, "method, steps and tolerances: see [integrators](#integrators)", live=True),
    Field("passive", Boolean(), "whether joint springs, damping and friction act", True, example=False),
    Field("seed", Integer(minimum=0), "an integer on which the noise of `sensors` and of `sampling` depends", 0, example=7),
    Field("initial", INITIAL, "the initial state; prescribed joints start on their motion", live=True),
    Field("joints", by_name(DRIVES, "joint*"), "motion or torque of each joint, by name or pattern: see [joints](#joints)",
        "no force", live=True,
        example={"shoulder": {"prescribe": {"position": {"quintic": [[0, 0], [2, 1]]}}},
                 "elbow": {"torque": {"pd": {"kp": 50, "kd": 5, "target": 0.3}}}}),
    Field("contacts", CONTACTS, "contacts of links with planes and with each other: see [contact](#contact)"),
    Field("control", CONTROL, "a control law: see [control laws](#control-laws) and [elastic joints](#elastic-joints)"),
    Field("controller", CONTROLLERS, "a controller in Python, called at the samples of `sampling`: `file.py:name` or "
        "`module:name`, or a mapping; see [controllers in Python](#controllers-in-python)", "none",
        example="controller.py:controller"),
    Field("observer", OBSERVER, "estimates the state that the laws use, from measured coordinates; requires `sampling`: see "
        "[observers](#observers)", "the laws use the state"),
    Field("sampling", SAMPLING, "when a sampled controller computes the laws: see [sampled controllers](#sampled-controllers)",
        "the laws are continuous", example={"rate": 1000}),
    Field("sensors", SENSORS, "what is measured, by name: encoders, joint torques, IMUs and force-torque sensors: see "
        "[sensors](#sensors)", "none", example={"encoders": {"type": "encoder", "rate": 500, "noise": 1e-4}}),
    Field("saturate", SATURATE, "enforced limits of joint torques and forces, and of thrusts, `true` for those of the robot file"
        ": see [saturation](#saturation)", "none", example=True),
    Field("motors", MOTORS, "gears, torque-speed curves and rotors of motors, by joint or pattern: see [motors](#motors)", "none",
        example={"elbow": {"gear": 100, "curve": [[0, 1.2], [300, 1.2], [420, 0]]}}),
    Field("friction", JOINT_FRICTION, "friction of joints, by joint or pattern, instead of that of the robot file: a number or a "
        "mapping, as there; see [friction that holds](#friction-that-holds)", "from the robot file",
        example={"elbow": {"model": "rigid", "level": 0.2}}),
    Field("limits", LIMITS,
        "whether position limits are enforced: `stop`, `hard` or a mapping: see [stops](#stops-at-joint-limits); `warn`: they "
        "are not enforced, and a warning lists the exceeded limits", "warn", example={"mode": "compliant", "damping": 2}),
    Field("constraints", CONSTRAINTS, "method that keeps loops closed: see [robots with loops](#robots-with-loops)"),
    Field("constraint_motion", by_name(MOTION, "loop*"), "motion of driven loops, by name or pattern"),
    Field("external_forces", List(FORCE, words="forces"), "a list: see [external wrenches](#external-wrenches-and-actuators)",
        live=True),
    Field("actuators", by_name(SIGNAL, "actuator*"), "thrust of each actuator [N], a signal, by name or pattern", "none",
        example={"rotor": "2 + sin(t)"}, live=True),
    Field("phases", Named(PHASE, "phase"), "named sets of joint entries: see [phases and events](#phases-and-events)"),
    Field("events", Named(EVENT, "event"), "changes during the run, by name: see [phases and events](#phases-and-events)")),
    empty=True)


# scenario file ----------------------------------------------------------------------------------------------------------

MOST_ROWS = 10_000_000                           # of output, and
MOST_STEPS = 100_000_000                         # more is often a slip of the pen, and takes hours: only where it is asked for
MOST_AT_ALL = 1_000_000_000_000                  # a microsecond each: two weeks. No run ends that takes more
_LONG_STEP = 0.1                                 # s: adaptive methods seldom take longer ones while a robot moves
_FIELDS = {"external_forces": "forces", "constraints": "stabilization"}          # of `Scenario`, where keys have other names
_INITIAL = {"q": "initial_q", "v": "initial_v", "guess": "initial_guess", "keep": "initial_keep", "from": "initial_from"}
_START = {"from": "file", "keyframe": "keyframe"}                                # of `StartFrom`


def read_scenario(path: str | os.PathLike[str], overrides: Overrides = (), long: bool = False) -> Scenario:
    """Return the scenario in the YAML file `path`, with `overrides` ("key.path=value", value in YAML; or a dict).

    Paths in it are relative to its folder; in an override, to the current folder. Raises ScenarioError.
    """
    root = read_yaml(path, ScenarioError)
    if is_robot(root):
        raise root.problem("this is a robot, not a scenario", expected="the key robot")
    _check_no_sweep(root)
    return _scenario(root, os.fspath(path), overrides, long)


def check_kind(path: str | os.PathLike[str]) -> None:
    """Raise ScenarioError for a YAML file that is no mapping or a sweep, and for a CSV file."""
    if all(robot_format.has_keys for robot_format in formats_of_ending(path)):
        root = read_yaml(path, ScenarioError)
        root.mapping()
        _check_no_sweep(root)


def _check_no_sweep(root: Node) -> None:
    if root.kind == "mapping" and "parameters" in root.value and "robot" not in root.value:
        raise root.problem("this is a sweep, not a scenario", expected="the key robot", hint="liedyn batch runs it")


def scenario_of_robot(path: str | os.PathLike[str], overrides: Overrides = (), long: bool = False) -> Scenario:
    """Return a scenario of five seconds of passive motion of a robot from its neutral configuration, with `overrides`."""
    file = os.fspath(path)
    values = {"robot": Node("text", file, file, None, "robot", ScenarioError),
              "duration": Node("number", 5.0, file, None, "duration", ScenarioError)}
    return _scenario(Node("mapping", values, file, None, "", ScenarioError), file, overrides, long)


def scenario_of(path: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides = (), long: bool = False) -> Scenario:
    """Return the scenario of a scenario file, a robot file, or a mapping with the keys of a scenario.

    Paths in a mapping are relative to the current folder. `long` allows up to MOST_AT_ALL steps.
    """
    if isinstance(path, Mapping):
        return _scenario(tree_of(path, "scenario", ScenarioError), "scenario", overrides, long)
    return (scenario_of_robot if describes_robot(path) else read_scenario)(path, overrides, long)


def describes_robot(path: str | os.PathLike[str]) -> bool:
    """Return whether a file describes a robot; else it is a scenario."""
    return (any(not robot_format.has_keys for robot_format in formats_of_ending(path))
            or is_robot(read_yaml(path, ScenarioError)))


def is_robot(root: Node) -> bool:
    """Return whether a YAML file describes a robot: it has links and names no robot."""
    return root.kind == "mapping" and "links" in root.value and "robot" not in root.value


def _scenario(root: Node, source: str, overrides: Overrides, long: bool) -> Scenario:
    overrides = override_texts(overrides, ScenarioError)
    replaced = [(text, key) for text in overrides
                for key in override(root, text, ScenarioError, SCENARIO)]
    nodes = SCENARIO.nodes(root)
    duration = SCENARIO.value(nodes, "duration")
    output_step = SCENARIO.value(nodes, "output_step", duration / 500, maximum=duration)
    integrator = _integrator(nodes["integrator"], duration) if "integrator" in nodes else Integrator(named=False)
    _check_length(nodes, duration, output_step, integrator, long)
    values = {"duration": duration, "output_step": output_step, "integrator": integrator}
    if "sampling" in nodes:
        values["sampling"] = read_sampling(nodes["sampling"], duration, MOST_AT_ALL if long else MOST_STEPS)
    if "sensors" in nodes:
        values["sensors"] = read_sensors(nodes["sensors"], duration, MOST_AT_ALL if long else MOST_ROWS)
    if "phases" in nodes:
        values["phases"] = read_phases(nodes["phases"])
    if "events" in nodes:
        values["events"] = read_events(nodes["events"], values.get("phases", ()), duration)
    if "contacts" in nodes:
        values["contacts"] = read_contacts(nodes["contacts"], integrator.method)
    values |= {_FIELDS.get(key, key): SCENARIO.value(nodes, key) for key in nodes if key not in (*values, "initial")}
    if "initial" in nodes:
        values |= _initial(nodes["initial"])
    if integrator.method == "generalized_alpha" and values.get("limits"):       # its Newton iteration does not know their slopes
        raise nodes["limits"].problem("generalized_alpha cannot be combined with stops at joint limits",
                                      expected="another integrator.method")
    warnings = (*(LiedynWarning("override-replaces", f"override {text} replaces {key}") for text, key in replaced),
                *unreached(values.get("phases", ()), values.get("events", ())))
    return Scenario(**values, source=source, overrides=overrides, warnings=warnings)


def _integrator(node: Node, duration: float) -> Integrator:
    nodes = INTEGRATOR.nodes(node)
    INTEGRATOR.value(nodes, "step", maximum=duration)
    return Integrator(**INTEGRATOR.values(node), named=bool(nodes.keys() & {"method", "step"}), place=node.place)


def _initial(node: Node) -> dict[str, Any]:
    values = INITIAL.values(node)
    forms = [key for key in ("from", "keyframe") if key in values]
    row = {"row": values.pop("row")} if "row" in values else {}
    if row and "from" not in values:
        raise node.value["row"].problem("row belongs to from", expected="the key from, a run folder or trajectory")
    if len(forms) > 1:
        raise node.problem("from and keyframe cannot be combined", found=", ".join(forms), expected="one of them")
    for key in ("guess", "keep"):
        if key in values and not values.get("assemble", True):
            raise node.value[key].problem(f"{key} has no effect without assembly", found="assemble: false",
                                          expected="assemble: true")
    for key in forms:
        values["from"] = StartFrom(**{_START[key]: values.pop(key)}, **row, place=node.value[key].place)
    return {_INITIAL.get(key, key): value for key, value in values.items()}


def _check_length(nodes: dict[str, Node], duration: float, output_step: float, integrator: Integrator, long: bool) -> None:
    """Raise ScenarioError for a run of too many rows or steps."""
    step, key = (integrator.step, "step") if integrator.step_is_fixed else (min(integrator.max_step, _LONG_STEP), "max_step")
    step_node = nodes["integrator"].get(key) if "integrator" in nodes else None
    for quantity, interval, limit, node in (("rows of output", output_step, MOST_ROWS, nodes.get("output_step")),
                                            ("steps", step, MOST_STEPS, step_node)):
        maximum, count = MOST_AT_ALL if long else limit, duration / interval
        if count > maximum:
            bound, value = ("at most", maximum * interval) if node is None else ("at least", duration / maximum)
            raise too_many(node or nodes["duration"], quantity, count, maximum, bound, value,
                           hint=None if long or count > MOST_AT_ALL else FORCE_LONG)


# `Scenario` -> plain values in the layout of its file -------------------------------------------------------------------

def to_plain(scenario: Scenario, folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return the resolved scenario as plain values in the layout of the file. Written as YAML, it reads back equal.

    Paths are relative to `folder`, or absolute.
    """
    s = scenario
    result: dict[str, Any] = plain({
        "robot": FilePath(s.robot),
        "loops": s.loops and FilePath(s.loops),
        "base": s.base,
        "gravity": s.gravity,
        "inertia_from_meshes": s.inertia_from_meshes,
        "ignore": list(s.ignore) or None,
        "xacro_args": dict(s.xacro_args) or None,
        "package_roots": [FilePath(folder) for folder in s.package_roots] or None,
        "ignore_mimic": s.ignore_mimic or None,
        "duration": s.duration,
        "output_step": s.output_step,
        "passive": s.passive,
        "seed": s.seed,
        "integrator": _integrator_to_dict(s.integrator),
        "initial": {"q": rules_to_dict(s.initial_q, numbers_to_list), "v": rules_to_dict(s.initial_v, numbers_to_list),
                    "guess": rules_to_dict(s.initial_guess, numbers_to_list) or None,
                    "keep": [rule.pattern for rule in s.initial_keep] or None,
                    "assemble": None if s.assemble else False, **_start_to_dict(s.initial_from)},
        "constraints": None if s.stabilization == Stabilization() else _stabilization_to_dict(s.stabilization),
        "constraint_motion": rules_to_dict(s.constraint_motion, drive_to_dict) or None,
        "control": s.control and control_to_dict(s.control),
        "sampling": s.sampling and sampling_to_dict(s.sampling),
        "controller": s.controller and controller_to_dict(s.controller),
        "observer": s.observer and observer_to_dict(s.observer),
        "sensors": {sensor.name: sensor_to_dict(sensor) for sensor in s.sensors} or None,
        "saturate": rules_to_dict(s.saturate) or None,
        "motors": rules_to_dict(s.motors, motor_to_dict) or None,
        "friction": rules_to_dict(s.friction, lambda friction: dict(friction.values)) or None,
        "limits": s.limits and limits_to_dict(s.limits),
        "contacts": s.contacts and contacts_to_dict(s.contacts),
        "joints": rules_to_dict(s.joints, drive_to_dict),
        "actuators": rules_to_dict(s.actuators, signal_to_dict),
        "external_forces": list(map(_force_to_dict, s.forces)),
        "phases": {phase.name: phase_to_dict(phase) for phase in s.phases} or None,
        "events": {event.name: event_to_dict(event) for event in s.events} or None}, folder)
    return result


def _start_to_dict(start: StartFrom | None) -> dict[str, Any]:
    if start is None:
        return {}
    if start.file is None:
        return {"keyframe": start.keyframe}
    return {"from": FilePath(start.file), "row": None if start.row == "last" else start.row}


def _integrator_to_dict(integrator: Integrator) -> dict[str, Any]:
    options = {key: getattr(integrator, key) for key in METHODS[integrator.method]}
    return {"method": integrator.method} | {key: value for key, value in options.items() if value != math.inf}


def _stabilization_to_dict(stabilization: Stabilization) -> dict[str, Any]:
    options = {key: getattr(stabilization, key) for key in STABILIZATIONS[stabilization.method]}
    return {"stabilization": stabilization.method} | options


def _force_to_dict(force: ExternalForce) -> dict[str, Any]:
    return {"link": force.link, "frame": force.frame, "wrench": signal_to_dict(force.wrench), "point": force.point,
            "from": force.start if math.isfinite(force.start) else None, "until": force.end if math.isfinite(force.end) else None}
