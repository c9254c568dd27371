"""Scenario files: what they mean, overrides, and back to plain values."""
import math

import pytest
import yaml

from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario import (
    Column,
    Constant,
    Expression,
    ExternalForce,
    Integrator,
    Motion,
    Pd,
    Prescribe,
    Quintic,
    Rule,
    Sine,
    Spline,
    Stabilization,
    Torque,
)
from liedyn.io.scenarios.scenario_file import SCENARIO, read_scenario, scenario_of, scenario_of_robot, to_plain
from liedyn.io.yaml_values import override as apply_override
from liedyn.io.yaml_values import tree_of
from messages import has_parts

FULL = """\
robot: robots/arm.yaml
base: floating
gravity: [0, 0, -1.62]
duration: 4.0
output_step: 0.02
integrator: {method: dopri5, rtol: 1e-9, max_step: 0.1}
passive: false
seed: 7
loops: robots/arm.loops.yaml
initial:
  q: {elbow: -1.57, base: [0, 0, 1, 0, 0, 0, 1]}
  v: {elbow: 0.2}
  assemble: false
constraints: {stabilization: baumgarte, frequency: 30}
constraint_motion: {tool: {xyz: ["0.1*t", 0, {sine: {amplitude: 1, frequency: 2}}]}, "peg*": {xyz: [0, 0, 1], rpy: [t, 0, 0]}}
joints:
  a: {prescribe: {acceleration: "0.5*sin(2*t)"}}
  b: {prescribe: {position: {quintic: [[0, 0.0], [1, 0.5, 0.1], [2, 1, 0, 3]]}}}
  c: {torque: {pd: {kp: 50, kd: [5, 6], target: 0.3, feedforward: q}}}
  d: {prescribe: {velocity: {sine: {amplitude: 1, frequency: 0.5}}}}
  e: {prescribe: {position: {spline: [[0, 0], [1, 0.4], [2, 0.1]]}}}
  f: {torque: {csv: {file: data/ref.csv, column: tau.f, interpolation: cubic}}}
  ball: {torque: ["0", "sin(t)", 0]}
  "*": {torque: 1e-3}
external_forces:
  - {link: hand, frame: local, wrench: [0, 0, 0, 0, 0, "-5*sin(t)"], point: [0, 0, 0.1], from: 1.0, until: 2.0}
  - {link: hand, wrench: [0, 0, 0, 1, 0, 0]}
actuators: {rotor1: 5.0, "rotor*": "4+sin(t)"}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "arm.yaml").write_text("name: arm\nlinks: {a: {mass: 1}}\n")
    (tmp_path / "robots" / "arm.loops.yaml").write_text("loops: {}\n")
    (tmp_path / "s.yaml").write_text(FULL)
    return tmp_path


def test_every_key_is_read(folder):
    s = read_scenario(folder / "s.yaml")
    assert (s.robot, s.base, s.gravity) == (str(folder / "robots/arm.yaml"), "floating", (0, 0, -1.62))
    assert (s.duration, s.output_step, s.passive, s.seed) == (4, 0.02, False, 7)
    assert s.integrator == Integrator("dopri5", rtol=1e-9, max_step=0.1) and s.integrator.atol == 1e-10
    assert s.initial_q == (Rule("elbow", (-1.57,)), Rule("base", (0, 0, 1, 0, 0, 0, 1)))
    assert s.initial_v == (Rule("elbow", (0.2,)),)
    assert [(rule.pattern, rule.value) for rule in s.joints] == [
        ("a", Prescribe("acceleration", Expression("0.5*sin(2*t)"))),
        ("b", Prescribe("position", Quintic(((0, 0, 0, 0), (1, 0.5, 0.1, 0), (2, 1, 0, 3))))),
        ("c", Pd(50, (5, 6), Constant(0.3), Expression("q"))),
        ("d", Prescribe("velocity", Sine(1, 0.5))),
        ("e", Prescribe("position", Spline(((0, 0), (1, 0.4), (2, 0.1))))),
        ("f", Torque(Column(str(folder / "data/ref.csv"), "tau.f", "cubic"))),
        ("ball", Torque((Expression("0"), Expression("sin(t)"), Constant(0)))),
        ("*", Torque(Constant(1e-3)))]
    zero = Constant(0)
    assert s.forces == (
        ExternalForce("hand", "local", (zero,) * 5 + (Expression("-5*sin(t)"),), (0, 0, 0.1), 1, 2),
        ExternalForce("hand", "local_world_aligned", (zero, zero, zero, Constant(1), zero, zero), (0, 0, 0), -math.inf, math.inf))
    assert s.actuators == (Rule("rotor1", Constant(5)), Rule("rotor*", Expression("4+sin(t)")))
    assert s.loops == str(folder / "robots/arm.loops.yaml")
    assert not s.assemble and s.stabilization == Stabilization("baumgarte", frequency=30)
    assert s.constraint_motion == (Rule("tool", Motion((Expression("0.1*t"), zero, Sine(1, 2)))),
                                   Rule("peg*", Motion((zero, zero, Constant(1)), (Expression("t"), zero, zero))))
    assert s.source == str(folder / "s.yaml")


def test_signals_know_their_place(folder):
    s = read_scenario(folder / "s.yaml")
    assert str(s.joints[0].value.signals.place) == f"{folder / 's.yaml'}:17: joints.a.prescribe.acceleration"
    assert s.forces[0].wrench[5].place.key == "external_forces[0].wrench[5]"


def test_defaults(folder):
    (folder / "short.yaml").write_text("robot: robots/arm.yaml\nduration: 5\njoints:\ninitial: {q: }\n")
    s = read_scenario(folder / "short.yaml")
    assert (s.output_step, s.passive, s.base, s.gravity, s.seed) == (0.01, True, None, None, None)
    assert s.integrator == Integrator("rk4", step=1e-3)
    assert s.joints == s.initial_q == s.initial_v == s.forces == s.actuators == s.constraint_motion == ()
    assert s.loops is None and s.assemble and s.stabilization == Stabilization("projection", 1e-12)


def test_a_robot_file_is_simulated_passively(folder):
    s = scenario_of_robot(folder / "robots/arm.yaml")
    assert (s.robot, s.duration, s.output_step, s.passive, s.joints) == (str(folder / "robots/arm.yaml"), 5, 0.01, True, ())
    assert scenario_of_robot(folder / "robots/arm.yaml", ["duration=2"]).duration == 2
    assert scenario_of(folder / "robots/arm.yaml") == s
    assert scenario_of(folder / "s.yaml") == read_scenario(folder / "s.yaml")


def test_a_robot_is_no_scenario(folder):
    with pytest.raises(ScenarioError, match=r"arm\.yaml:1: this is a robot, not a scenario: expected the key robot"):
        read_scenario(folder / "robots/arm.yaml")


@pytest.mark.parametrize("override, value", [
    ("duration=2", lambda s: s.duration == 2),
    (" duration = 2.5 ", lambda s: s.duration == 2.5),
    ("integrator.rtol=1e-6", lambda s: s.integrator.rtol == 1e-6 and s.integrator.method == "dopri5"),
    ("integrator={method: Radau}", lambda s: s.integrator.method == "Radau"),
    ("passive=true", lambda s: s.passive is True),
    ("gravity=[0, 0, 0]", lambda s: s.gravity == (0, 0, 0)),
    ("initial.q.wrist=1", lambda s: s.initial_q[-1] == Rule("wrist", (1,))),
    ("joints.*.torque=2*t", lambda s: s.joints[-1].value == Torque(Expression("2*t"))),
    ("joints.leg_*.torque=3", lambda s: s.joints[-1] == Rule("leg_*", Torque(Constant(3)))),
    ("joints.a.torque=3", lambda s: s.joints[0].value == Torque(Constant(3))),
    ("joints.a.torque.pd={kp: 1, target: t}", lambda s: s.joints[0].value == Pd(1, 0, Expression("t"), Constant(0))),
    ("joints.a.prescribe.velocity=t", lambda s: s.joints[0].value == Prescribe("velocity", Expression("t"))),
    ("joints.d.prescribe.velocity.spline=[[0, 0], [1, 1]]",
     lambda s: s.joints[3].value == Prescribe("velocity", Spline(((0, 0), (1, 1))))),
    ("joints.c.torque.pd.kp=7", lambda s: s.joints[2].value.kp == 7),
    ("joints.a={torque: 'a=b'}", lambda s: s.joints[0].value == Torque(Expression("a=b"))),
    ('joints."left.knee".torque=3', lambda s: s.joints[-1].pattern == "left.knee"),
    ("external_forces.1.until=3", lambda s: s.forces[1].end == 3),
    ("external_forces[0].wrench[5]=9", lambda s: s.forces[0].wrench[5] == Constant(9)),
    ("actuators.rotor1=t", lambda s: s.actuators[0].value == Expression("t")),
    ("external_forces.0=null", lambda s: len(s.forces) == 1), ("passive=null", lambda s: s.passive is True),
    ("sampling=~", lambda s: s.sampling is None), ("joints.a=null", lambda s: "a" not in [rule.pattern for rule in s.joints]),
    ("phases.p.joints.a.torque=3", lambda s: s.phases[0].joints[0].value == Torque(Constant(3))),
    ("joints.g.torque=q - 0.5*v", lambda s: s.joints[-1].value == Torque(Expression("q - 0.5*v"))),
])
def test_overrides(folder, override, value):
    s = read_scenario(folder / "s.yaml", [override])
    assert value(s)
    assert s.overrides == (override,)


def test_names_with_dots_that_exist_need_no_quotes(folder):
    s = read_scenario(folder / "s.yaml", ['joints."left.knee".torque=3', "joints.left.knee.torque=4"])
    assert s.joints[-1] == Rule("left.knee", Torque(Constant(4)))


POSITION = "joints.a.prescribe.position"


@pytest.mark.parametrize("override, gone", [
    (f"{POSITION}.limits.velocity=9", ()), (f"{POSITION}.limits.acceleration=9", ()), (f"{POSITION}.limits.jerk=9", ()),
    (f"phases.p.{POSITION}.limits.velocity=9", ()), ("joints.b.torque.pd.target.limits.jerk=9", ()),
    ("joints.b.torque.pd.target[0].limits.jerk=9", ()),
    (f"{POSITION}.quintic=[[0, 0], [1, 1]]", (f"{POSITION}.move",)),
    ("joints.a.prescribe.velocity=0", (POSITION,)), ("joints.a.torque=0", ("joints.a.prescribe",)),
    ("joints.b.torque.pid.kp=9", ("joints.b.torque.pd",)), ("joints.b.torque.sine={amplitude: 9}", ("joints.b.torque.pd",)),
    ("joints.position.torque=0", ("joints.position.prescribe",)), ("joints.velocity.torque=0", ()),
    ("control.poles=[-9, -9]", ("control.bandwidth",)), ("contacts.links.c.sphere.radius=9", ("contacts.links.c.point",)),
])
def test_an_override_replaces_the_keys_that_cannot_stand_next_to_it_and_no_others(override, gone):
    """`limits.velocity` of a move deleted `limits.acceleration`, since they exclude each other elsewhere."""
    limits = {"velocity": 1, "acceleration": 2, "jerk": 3}
    move = {"move": [[0, 0], [1]], "limits": limits}
    joints = {"a": {"prescribe": {"position": move}}, "b": {"torque": {"pd": {"kp": 1, "target": [dict(move)]}}},
              "position": {"prescribe": {"velocity": 0}}}
    if "[0]" not in override:
        joints["b"]["torque"]["pd"]["target"] = dict(move)
    tree = tree_of({"joints": joints, "phases": {"p": {"joints": joints}}, "control": {"bandwidth": 1},
                    "contacts": {"links": {"c": {"point": [0, 0, 0]}}}}, "scenario", ScenarioError)
    assert tuple(apply_override(tree, override, ScenarioError, SCENARIO)) == gone


def test_an_override_of_a_parameter_of_the_robot_names_the_command(folder):
    with pytest.raises(ScenarioError, match=r"robot: a value has no keys: got .* \(`liedyn batch` varies parameters of"):
        read_scenario(folder / "s.yaml", ["robot.mass.hand=2"])
    with pytest.raises(ScenarioError, match=r"control\.gain: a value has no keys: got K\.csv \(write the gain in the scenario"):
        read_scenario(folder / "s.yaml", ["control={law: state_feedback, gain: K.csv}", "control.gain.tau.cart=-50"])


def test_the_later_override_counts(folder):
    assert read_scenario(folder / "s.yaml", ["duration=2", "duration=3"]).duration == 3


def test_paths_of_an_override_are_relative_to_the_current_folder(folder, monkeypatch):
    monkeypatch.chdir(folder / "robots")
    s = read_scenario(folder / "s.yaml", ["robot=arm.yaml", "joints.f.torque.csv.file=x.csv"])
    assert s.robot == "arm.yaml" and s.joints[5].value.signals.file == "x.csv"


@pytest.mark.parametrize("override, message", [
    ("duration=-1", "override duration=-1: duration: out of range: expected a number >= 1e-12, got -1"),
    ("duration=", "override duration=: no value: expected key.path=value"),
    ("joints.a.torqe=null", "joints.a.torqe: unknown key"),
    ("smapling=null", "override smapling=null: smapling: unknown key"), ("external_forces.9=null", "no such entry"),
    ("events.go={at: .nan, do: stop}", "events.go.at: not a finite number: expected a number >= 0, got .nan"),
    ("contacts.links.foot.sphere.radius=0", "contacts.links.foot.sphere.radius: out of range … got 0"),
    ("limits.restitution=0.5", "limits.restitution: restitution does not apply to compliant stops"),
    ("duration", "override duration: not an override: expected key.path=value"),
    ("=3", "override =3: not an override"),
    ("", "not an override"),
    ("a..b=3", "not an override"),
    ("duratoin=3", "override duratoin=3: duratoin: unknown key (did you mean duration?)"),
    ("zzz=3", "override zzz=3: zzz: unknown key: expected one of robot, base, loops, gravity, inertia_from_meshes, ignore, "),
    ("integrator.stepp=3", "integrator.stepp: unknown key"),
    ("duration.x=3", "override duration.x=3: duration: a value has no keys: got 4.0"),
    ("external_forces.7.until=3", "external_forces: no such entry: expected a number from 0 to 1, got '7'"),
    ("external_forces.x=3", "external_forces: no such entry: expected a number from 0 to 1, got 'x'"),
    ("gravity=[0, 0]", "gravity: expected a list of 3 numbers, got [0, 0]"),
    ("gravity=[0, 0", "not valid YAML"),
    ("joints.a=&x 3", "joints.a"),
    ("joints.a={torque: 3, prescribe: {}}",
     "joints.a: a joint takes exactly one of torque, prescribe: got torque, prescribe"),
    ("robot=nowhere.urdf", "override robot=nowhere.urdf: robot: no such robot file: got 'nowhere.urdf'"),
    ("seed=1.5", "seed: expected an integer, got 1.5"),
    ("passive=1", "passive: expected true or false, got 1"),
])
def test_wrong_overrides_are_named(folder, override, message):
    with pytest.raises(ScenarioError) as caught:
        read_scenario(folder / "s.yaml", [override])
    assert str(caught.value).startswith(f"override {override}")
    assert has_parts(str(caught.value), message)


def test_plain_values_read_back_equal(folder):
    s = read_scenario(folder / "s.yaml")
    plain = to_plain(s)
    assert plain["robot"] == str(folder / "robots/arm.yaml") and plain["integrator"]["method"] == "dopri5"
    other = folder / "elsewhere"
    other.mkdir()
    (other / "absolute.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
    assert read_scenario(other / "absolute.yaml") == s
    relative = to_plain(s, other)
    assert relative["robot"] == "../robots/arm.yaml" and relative["loops"] == "../robots/arm.loops.yaml"
    assert relative["joints"]["f"]["torque"]["csv"]["file"] == "../data/ref.csv"
    default = to_plain(scenario_of_robot(s.robot))
    assert default["integrator"] == {"method": "rk4", "step": 1e-3}
    assert not {"constraints", "constraint_motion", "loops"} & set(default)      # a robot without constraints refuses these keys
