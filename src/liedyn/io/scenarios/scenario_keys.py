"""The keys of a scenario: what `scenario_file` reads, and what schema, template and documents say."""
from __future__ import annotations

import math

from liedyn.io.keys import Boolean, Choice, File, Integer, Key, Keys, List, Named, Number, Text, Vector, default_of, kinds_with
from liedyn.io.scenarios.contact_keys import CONTACTS
from liedyn.io.scenarios.event_keys import EVENT, PHASE
from liedyn.io.scenarios.joint_keys import DRIVES, MOTION
from liedyn.io.scenarios.law_keys import CONTROL, SATURATE
from liedyn.io.scenarios.motor_keys import MOTORS
from liedyn.io.scenarios.sampling_keys import SAMPLING
from liedyn.io.scenarios.scenario import FORCE_FRAMES, METHODS, STABILIZATIONS, ExternalForce, Integrator, Stabilization
from liedyn.io.scenarios.signal_keys import NUMBERS, SIGNAL, by_name
from liedyn.io.scenarios.stop_keys import LIMITS
from liedyn.io.yaml_text import Node
from liedyn.model.description import LARGEST

SHORTEST = 1e-12                                 # s, of a run
_OLD_FRAMES = {"link": "link axes are called local", "body": "link axes are called local",
               "world": "world axes at a point of the link are called local_world_aligned, link axes local"}


def _of_method(name: str, value: Number, meaning: str, **more) -> Key:
    default = default_of(Integrator, name)
    return Key(name, value, meaning, "none" if default == math.inf else default, kinds=kinds_with(name, METHODS), **more)

def _stabilization(node: Node) -> Stabilization:
    values = CONSTRAINTS.values(node)
    method = values.pop("stabilization", CONSTRAINTS["stabilization"].default)
    return Stabilization(method, **values, place=node.place)


def _force(node: Node) -> ExternalForce:
    values = FORCE.values(node)
    start, end = values.pop("from", -math.inf), values.pop("until", math.inf)
    if end <= start:
        until = node.value["until"]
        raise until.problem("the force ends before it begins", found=until.shown(), expected=f"a time after from: {start:g}")
    return ExternalForce(**{"frame": "local_world_aligned"} | values, start=start, end=end, place=node.place)


INTEGRATOR = Keys("integrator", (
    Key("method", Choice(tuple(METHODS)), "see [integrators](#integrators) for their use", default_of(Integrator, "method"),
        example="dopri5", live=True),
    _of_method("step", Number(above=0), "fixed step [s]", example=1e-3),
    _of_method("rho", Number(least=0, most=1), "spectral radius at infinite frequency: 1 gives no numerical damping, 0 the most",
               example=0.9),
    _of_method("rtol", Number(above=0, least=2.3e-14, most=0.1), "relative tolerance", example=1e-8, live=True),   # 100 roundings
    _of_method("atol", Number(above=0, least=1e-30), "absolute tolerance", example=1e-10),    # SciPy's first step overflows below
    _of_method("max_step", Number(above=0), "longest step [s]", example=0.1)), kind="method", what="the method {}")

INITIAL = Keys("initial", (
    Key("q", by_name(NUMBERS, "joint"), "positions by joint [rad or m]: a number, or a list for a joint with several "
        "coordinates; quaternions are x y z w", "zero", example={"elbow": -0.5}, live=True),
    Key("v", by_name(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0.2}, live=True),
    Key("assemble", Boolean(), "whether the loops of the robot are closed first; see [robots with loops](#robots-with-loops)",
        True, example=False),
    Key("from", File("run folder or trajectory", "trajectory.csv"), "run folder or trajectory in whose last row the robot "
        "starts, by the names of the coordinates; `q` and `v` replace values of it", example="runs/before")))

CONSTRAINTS = Keys("constraints", (
    Key("stabilization", Choice(tuple(STABILIZATIONS)), "`projection`: after each step, position and velocity are projected onto "
        "the constraints in the metric of the mass matrix; `baumgarte`: the residual r obeys r'' + 2 f r' + f² r = 0; `none`",
        default_of(Stabilization, "method"), example="projection"),
    Key("tolerance", Number(above=0, least=1e-15, most=1e-3), "of `projection`: the largest residual [rad, or m per "
        "characteristic length of the loop]",
        default_of(Stabilization, "tolerance"), kinds=kinds_with("tolerance", STABILIZATIONS), example=1e-12),
    Key("frequency", Number(above=0), "of `baumgarte`: f [rad/s]", default_of(Stabilization, "frequency"),
        kinds=kinds_with("frequency", STABILIZATIONS), example=20)),
    kind="stabilization", what="the stabilization {}", how=_stabilization)

FORCE = Keys("external_force", (
    Key("link", Text(), "the link that the wrench acts on", required=True, example="lower", live=True),
    Key("frame", Choice(FORCE_FRAMES, _OLD_FRAMES), "axes of the wrench: `local_world_aligned` for world axes, `local` for link "
        "axes; see [frames](conventions.md#frames). The result gives it in link axes about the link's origin in any case",
        "local_world_aligned", example="local"),
    Key("wrench", List(SIGNAL, 6, 6, "signals: mx, my, mz, fx, fy, fz"), "`[mx, my, mz, fx, fy, fz]`, signals [N m, N]",
        required=True, missing="[mx, my, mz, fx, fy, fz]", example=[0, 0, 0, 20, 0, 0], live=True),
    Key("point", Vector(3), "point about which the moment is given, in link coordinates [m]", default_of(ExternalForce, "point"),
        example=[0, 0, -0.5]),
    Key("from", Number(), "the wrench acts from this time on [s]", "the start", example=3.0, live=True),
    Key("until", Number(), "and before this one [s]", "the end", example=3.2, live=True)), how=_force)

SCENARIO = Keys("scenario", (
    Key("robot", File("robot file"), "path of a URDF, robot YAML or MJCF file", required=True, missing="the path of a robot file",
        example="robot.yaml", live=True),
    Key("base", Choice(("fixed", "floating")), "`fixed` or `floating`", "from the robot file", example="fixed"),
    Key("loops", File("file of loops"), "file of loops and couplings that belongs to the robot file: see [closed "
        "loops](loops.md)", "beside a URDF", example="robot.loops.yaml"),
    Key("gravity", Vector(3, LARGEST), "`[x, y, z]` [m/s²]", "from the robot file", example=[0, 0, -9.81]),
    Key("duration", Number(least=SHORTEST), "simulated time [s]", required=True,
        missing="the time to simulate, in seconds", example=5, live=True),
    Key("output_step", Number(above=0), "time between rows of the result [s]", "duration / 500", example=0.01, live=True),
    Key("integrator", INTEGRATOR, "method, steps and tolerances: see [integrators](#integrators)", live=True),
    Key("passive", Boolean(), "whether joint springs, damping and friction act", True, example=False),
    Key("seed", Integer(least=0), "an integer that is copied to `run.json`", example=7),
    Key("initial", INITIAL, "the initial state; prescribed joints start on their motion", live=True),
    Key("joints", by_name(DRIVES, "joint*"), "what each joint does, by name or pattern: see [joints](#joints)", "no force",
        live=True,
        example={"shoulder": {"prescribe": {"position": {"quintic": [[0, 0], [2, 1]]}}},
                 "elbow": {"torque": {"pd": {"kp": 50, "kd": 5, "target": 0.3}}}}),
    Key("contacts", CONTACTS, "links that touch planes and each other: see [contact](#contact)"),
    Key("control", CONTROL, "a control law: see [control laws](#control-laws) and [elastic joints](#elastic-joints)"),
    Key("sampling", SAMPLING, "when a sampled controller computes the laws: see [sampled controllers](#sampled-controllers)",
        "the laws are continuous", example={"rate": 1000}),
    Key("saturate", SATURATE, "limits of joint forces that act, `true` for the effort limits of the robot: see "
        "[saturation](#saturation)", "none", example=True),
    Key("motors", MOTORS, "gears, torque-speed curves and rotors of motors, by joint or pattern: see [motors](#motors)", "none",
        example={"elbow": {"gear": 100, "curve": [[0, 1.2], [300, 1.2], [420, 0]]}}),
    Key("limits", LIMITS, "whether position limits act: `stop`, `hard` or a mapping: see [stops](#stops-at-joint-limits); "
        "`note`: they do not act, and a note lists the exceeded limits", "note", example={"mode": "compliant", "damping": 2}),
    Key("constraints", CONSTRAINTS, "what keeps a motion on the loops: see [robots with loops](#robots-with-loops)"),
    Key("drives", by_name(MOTION, "loop*"), "motion of driven loops, by name or pattern"),
    Key("external_forces", List(FORCE, words="forces"), "a list: see [external wrenches](#external-wrenches-and-actuators)",
        live=True),
    Key("actuators", by_name(SIGNAL, "actuator*"), "thrust of each actuator [N], a signal, by name or pattern", "none",
        example={"rotor": "2 + sin(t)"}, live=True),
    Key("phases", Named(PHASE, "phase"), "named sets of what joints do: see [phases and events](#phases-and-events)"),
    Key("events", Named(EVENT, "event"), "what changes during the run, by name: see [phases and events](#phases-and-events)")),
    empty=True)
