"""Broken parts of machines and controllers: each gives one line with file, line and key."""
from __future__ import annotations

import pytest

import liedyn as ld
from liedyn.simulation.preparation import prepare

ROBOT = """\
links:
  bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
  tip: {mass: 0.5, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
joints:
  hip: {type: revolute, parent: world, child: bar, axis: [0, 1, 0], limits: {lower: -9, upper: 9}}
  knee: {type: revolute, parent: bar, child: tip, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.4]}, limits: {lower: -9, upper: 9}}
"""
SCENARIO = "robot: robot.yaml\nduration: 0.1\n"
LAW = "control: {law: computed_torque, bandwidth: 5, motion: {'*': 0}"
TABLE = "joints: {hip: {torque: {table: {of: "

# the last lines of the robot file; then what the error says after its line
ROBOTS = [
    ("elements: {s: {type: sprng, a: bar, b: tip, stiffness: 3}}", "elements.s.type: expected one of spring, damper"),
    ("elements: {s: {type: spring, a: bar, b: tipp, stiffness: 3}}", "elements.s.b: frame b is not on a link of this robot: "
     "expected a link's name or world, got 'tipp' (did you mean tip?)"),
    ("elements: {s: {type: spring, a: bar, b: tip}}", "elements.s: a spring element needs stiffness or table"),
    ("elements: {s: {type: cable, a: bar, b: tip, stiffness: 3}}", "elements.s: a cable element needs free_length"),
    ("elements: {s: {type: bushing, a: bar, b: tip, stiffness: [1, 2]}}", "elements.s.stiffness: expected a number; of a"),
    ("elements: {s: {type: spring, a: bar, b: tip, table: {points: [[0, 1]]}}}", "elements.s.table.points: expected a list of at "
     "least 2 values, got [[0, 1]]"),
    ("include: {robot: none.yaml, parent: bar}", "include.robot: no such robot file: got 'none.yaml'"),
    ("include: {robot: robot.yaml, parent: bar}", "include.robot: robot files include each other in a cycle: got "),
    ("keyframes: {home: {q: {hipp: 1}}}", "keyframes.home.q: unknown joint: expected the name of a moving joint, got 'hipp'"),
    ("couplings: {c: {follower: knee, function: 'hip'}}", "couplings.c: the key driver is missing: expected a joint's name"),
]
# the last lines of the scenario
SCENARIOS = [
    ("friction: {hip: {model: rigid, level: 1, static: 0.5}}", "friction.hip: joint hip: the static level of friction "
     "is below the level in motion: expected at least 1, got 0.5"),
    ("friction: {hip: {model: dry, level: 1}}", "friction.hip.model: expected one of "),
    ("friction: {hipp: {model: rigid, level: 1}}", "friction.hipp: "),
    ("initial: {keep: [hip]}", "initial.keep[0]: keep has no effect: the robot has no constraints: expected loops"),
    ("initial: {guess: {hip: a}}", "initial.guess.hip: expected a number, got a"),
    ("joints: {hip: {prescribe: {position: {move: [[0, 0], [1]], limits: robot}}}}", "joints.hip.prescribe.position.move: "
     "the position of hip has no acceleration limit: expected limits: {acceleration: …} next to move"),
    ("joints: {hip: {prescribe: {position: {move: [[0, 0], [1]], limits: {velocity: -1}}}}}",
     "joints.hip.prescribe.position.limits.velocity: out of range: expected a number > 0, got -1"),
    (TABLE + "q(hipp), points: [[0, 0], [1, 1]]}}}}", "joints.hip.torque.table.of: no such joint: got 'hipp'"),
    (TABLE + "t, points: [[1, 0], [0, 1]]}}}}", "joints.hip.torque.table.points[1]: the values of t in the table must increase"),
    (TABLE + "t, points: none.csv}}}}", "joints.hip.torque.table.points: no such CSV file: got 'none.csv'"),
    (LAW + ", model: {mass.hip: 2}}", "control.model.mass.hip: no such parameter of the controller's model: expected one of "),
    (LAW + ", model: {robot: none.yaml}}", "control.model.robot: no such robot file: got 'none.yaml'"),
    ("control: {law: state_feedback, gain: [[1, 2]]}", "control: the key setpoint is missing: expected the state at which"),
    ("motors: {hip: {no_load_speed: -3}}", "motors.hip.no_load_speed: unknown key: expected one of gear, curve, inertia, "),
    ("motors: {hip: {gear_efficiency: 2}}", "motors.hip.gear_efficiency: out of range"),
    ("controller: none.py:f", "controller: no such Python file: got 'none.py'"),
    ("observer: {gain: [[1]]}", "observer.gain: the gain of an observer has names: expected states by measured coordinates"),
    ("sampling: {rate: 100, noise: {q: -1}}", "sampling.noise.q: out of range: expected a number >= 0, got -1"),
    ("actuators: {rotor: 3}", "actuators.rotor: the robot has no actuators: got 'rotor'"),
]


@pytest.mark.parametrize(("robot", "scenario", "message"), [
    *((f"{text}\n", "", f"robot.yaml:7: {message}") for text, message in ROBOTS),
    *(("", f"{text}\n", f"scenario.yaml:3: {message}") for text, message in SCENARIOS)], ids=range(len(ROBOTS) + len(SCENARIOS)))
def test_each_gives_one_line_with_file_and_key(tmp_path, monkeypatch, robot, scenario, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.yaml").write_text(ROBOT + robot)
    (tmp_path / "scenario.yaml").write_text(SCENARIO + scenario)
    with pytest.raises(ld.InputError) as error:
        prepare("scenario.yaml", ())
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
