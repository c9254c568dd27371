"""Scenarios that cannot be run: each gives one line with file, line and key. `#!` marks the line that must be named."""
import os

import pytest

from liedyn.errors import InputError, ScenarioError, TrajectoryError
from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.io.scenarios.scenario_file import read_scenario
from liedyn.model.model import build
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import run_scenario
from messages import has_parts

ROBOT = """\
name: show
links:
  a: {mass: 1.0, inertia: [0.01, 0.01, 0.01]}
  b: {mass: 1.0, inertia: [0.01, 0.01, 0.01]}
  c: {mass: 1.0, inertia: [0.01, 0.01, 0.01]}
  d: {mass: 1.0, inertia: [0.01, 0.01, 0.01]}
  tip: {mass: 0.1, inertia: [0.001, 0.001, 0.001]}
joints:
  shoulder: {type: revolute, parent: world, child: a, axis: [0, 1, 0], limits: {lower: -1, upper: 1}}
  elbow: {type: revolute, parent: a, child: b, axis: [0, 1, 0], limits: {lower: -1, upper: 1}}
  ball: {type: ball, parent: b, child: c}
  uni: {type: universal, parent: c, child: d, axes: [[1, 0, 0], [0, 1, 0]]}
  weld: {type: fixed, parent: d, child: tip}
actuators:
  rotor1: {link: d, position: [0.2, 0, 0], axis: [0, 0, 1], torque_ratio: 0.016}
"""
HEAD = "robot: robot.yaml\nduration: 2\n"
CSV = "t[s],q.elbow[rad],tau.elbow[N m],short\n" + "".join(f"{0.5 * k},{0.1 * k},1,2\n" for k in range(5))
FILES = {"robot.yaml": ROBOT, "ref.csv": CSV, "deg.csv": CSV.replace("[rad]", "[deg]"), "broken.csv": "t[s],x\n0,1\n0,2\n",
         "brief.csv": "t[s],x\n0,1\n1,2\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return build(read_robot_yaml(folder / "robot.yaml"))


def joint(drive: str) -> str:
    return HEAD + f"joints:\n  elbow: {drive} #!\n"


def pose(position: str) -> str:
    return HEAD + f"joints:\n  ball: {{prescribe: {{position: {position}}}}} #!\n"


def event(keys: str, more: str = "") -> str:
    return HEAD + more + f"events: {{go: {{{keys}}}}} #!\n"


def contacts(keys: str) -> str:
    return HEAD + f"contacts: {{links: {{tip: {{sphere: {{radius: 0.1}}}}}}, {keys}}} #!\n"


GO = "events: {go: {at: 1, do: record}}\n"
TOUCH = "contacts: {links: {tip: {sphere: {radius: 0.1}}}}\n"

# what is in the file (a text that starts with "@" follows HEAD), the key, what the line says
BROKEN = {
    "empty": ("", None, "the file is empty"),
    "comment only": ("# nothing\n", None, "the file is empty"),
    "a list": ("- 1 #!\n- 2\n", None, "not a file of this kind: expected a mapping (key: value)"),
    "a word": ("hello #!\n", None, "not a file of this kind: expected a mapping (key: value)"),
    "not YAML": ("robot: [a\n\n", None, "not valid YAML"),
    "a tab": ("robot:\n\tx: 1 #!\n", None, "not valid YAML"),
    "no robot": ("duration: 2 #!\n", None, "the key robot is missing: expected the path of a robot file"),
    "no duration": ("robot: robot.yaml #!\n", None, "the key duration is missing"),
    "no such robot": ("robot: nowhere.urdf #!\nduration: 1\n", "robot", "no such robot file: got '"),
    "robot is a folder": ("robot: . #!\nduration: 1\n", "robot", "no such robot file"),
    "robot is a number": ("robot: 3 #!\nduration: 1\n", "robot", "expected text, got 3"),
    "a sweep instead": ("scenario: s.yaml\nparameters: [{key: duration, list: [1]}]\n", None,
                        "this is a sweep, not a scenario: expected the key robot (liedyn batch runs it)"),
    "a robot instead": ("links: {a: {mass: 1}}\njoints: {}\n", None, "this is a robot, not a scenario"),
    "unknown key": ("@duraton: 3 #!\n", "duraton",
        "unknown key (did you mean duration?)"),
    "unknown key, hint": ("@outputstep: 3 #!\n", "outputstep", "(did you mean output_step?)"),
    "joint in initial": ("@initial: {yaw: 1} #!\n", "initial.yaw", "(names of joints are keys of q and v, such as q: {yaw: …})"),
    "phases in a list": ("@phases: [] #!\n", "phases", "expected a mapping"),
    "key twice": ("@duration: 3 #!\n", "duration", "duplicate key, first on line 2"),
    "duration is a word": (
        "robot: robot.yaml\nduration: long #!\n", "duration", "expected a number >= 1e-12, got long"),
    "duration zero": ("robot: robot.yaml\nduration: 0 #!\n", "duration", "out of range … got 0"),
    "duration infinite": ("robot: robot.yaml\nduration: .inf #!\n", "duration",
        "not a finite number: expected a number >= 1e-12, got .inf"),
    "duration NaN": ("robot: robot.yaml\nduration: .nan #!\n", "duration", "not a finite number … got .nan"),
    "duration overflows": ("robot: robot.yaml\nduration: 1e999 #!\n", "duration",
        "not a finite number: expected a number >= 1e-12, got 1e999"),
    "output step beyond": ("@output_step: 3 #!\n", "output_step", "out of range: expected a number > 0 and <= 2, got 3"),
    "output without end": ("@output_step: 1e-9 #!\n", "output_step",
                           "too many rows of output: about 2e+09, more than 1e+07: expected at least 2e-07 s, got 1e-9 (--f"),
    "run without end": ("robot: robot.yaml\nduration: 1e6 #!\n", "duration",
        "too many steps: about 1e+09, more than 1e+08: expected at most 100000 s, got 1e6 (--force-long or force_long=True "
        "allows more)"),
    "adaptive run without end": ("robot: robot.yaml\nintegrator: {method: dopri5}\nduration: 1e308 #!\n", "duration",
                                 "too many steps: about 1.8e+308, more than 1e+08"),
    "steps without end": ("@integrator: {step: 5e-324} #!\n", "integrator.step",
        "about 1.8e+308, more than 1e+08: expected at least 2e-08 s, got 5e-324"),
    "longest step without end": ("@integrator: {method: Radau, max_step: 1e-15} #!\n", "integrator.max_step",
                                 "about 2e+15, more than 1e+08: expected at least 2e-08 s, got 1e-15"),
    "base": ("@base: flying #!\n", "base", "expected one of fixed, floating, got flying"),
    "gravity": ("@gravity: [0, -9.81] #!\n", "gravity", "expected a list of 3 numbers, got [0, -9.81]"),
    "gravity NaN": ("@gravity: [0, 0, .nan] #!\n", "gravity[2]", "not a finite number"),
    "passive": ("@passive: yes #!\n", "passive", "expected true or false, got yes"),
    "seed": ("@seed: -1 #!\n", "seed", "out of range: expected a number >= 0, got -1"),
    "integrator a word": ("@integrator: rk4 #!\n", "integrator", "expected a mapping … got rk4"),
    "unknown method": ("@integrator: {method: euler} #!\n", "integrator.method",
                       "expected one of rk4, generalized_alpha, variational, dopri5"),
    "rho beyond one": ("@integrator: {method: generalized_alpha, rho: 1.5} #!\n", "integrator.rho", "<= 1"),
    "rho of rk4": ("@integrator: {rho: 0.5} #!\n", "integrator.rho", "rho does not apply to the method rk4"),
    "method in capitals": ("@integrator: {method: RK4} #!\n", "integrator.method", "(did you mean rk4?)"),
    "step of dopri5": ("@integrator: {method: dopri5, step: 1} #!\n", "integrator.step",
                       "step does not apply to the method dopri5: expected rtol, atol, max_step"),
    "tolerance of rk4": ("@integrator: {rtol: 1e-3} #!\n", "integrator.rtol", "rtol does not apply to the method rk4"),
    "step zero": ("@integrator: {step: 0} #!\n", "integrator.step", "out of range … got 0"),
    "step beyond": ("@integrator: {step: 3} #!\n", "integrator.step", "<= 2"),
    "tolerance": ("@integrator: {method: BDF, rtol: 2} #!\n", "integrator.rtol", "out of range … got 2"),
    "initial": ("@initial: {elbow: 1} #!\n", "initial.elbow", "unknown key: expected one of q, v"),
    "initial value": ("@initial: {q: {elbow: fast}} #!\n", "initial.q.elbow", "expected a number, got fast"),
    "initial NaN": ("@initial:\n  q:\n    elbow: .nan #!\n", "initial.q.elbow", "not a finite number"),
    "initial of an unknown joint": ("@initial: {q: {elbw: 1}} #!\n", "initial.q.elbw",
                                    "no such joint: got 'elbw' (did you mean elbow?)"),
    "initial of a fixed joint": ("@initial: {q: {weld: 1}} #!\n", "initial.q.weld", "joint weld is fixed: it has no coordinates"),
    "initial list": ("@initial: {q: {elbow: [1, 2]}} #!\n", "initial.q.elbow",
                     "joint elbow: wrong number of values: expected 1, got 2"),
    "initial ball": ("@initial: {q: {ball: [0, 0, 1]}} #!\n", "initial.q.ball", "expected 4, got 3"),
    "quaternion": ("@initial: {q: {ball: [0, 0, 1, 1]}} #!\n", "initial.q.ball",
                   "the quaternion x y z w of joint ball is not of unit norm: expected norm 1, got 1.414213562 (the unit "
                   "quaternion is [0, 0, 0.707106781, 0.707106781])"),
    "quaternion that overflows": ("@initial: {q: {ball: [0, 0, 0, 1e200]}} #!\n", "initial.q.ball",
                                  "not of unit norm: expected norm 1, got 1e+200"),
    "zero quaternion": ("@initial: {q: {ball: [0, 0, 0, 0]}} #!\n", "initial.q.ball", "the unit quaternion is [0, 0, 0, 1]"),
    "joints a list": ("@joints: [elbow] #!\n", "joints", "expected a mapping (key: value), got [elbow]"),
    "unknown joint": ("@joints: {elbw: {torque: 0}} #!\n", "joints.elbw", "no such joint: got 'elbw' (did you mean elbow?)"),
    "joint in no way like it": ("@joints: {zzz: {torque: 0}} #!\n", "joints.zzz",
                                "no such joint: expected one of shoulder, elbow, ball, uni, got 'zzz'"),
    "pattern without joint": ("@joints: {'leg_*': {torque: 0}} #!\n", "joints.leg_*",
                              "the pattern matches no joint … got 'leg_*'"),
    "unquoted star": ("@joints:\n  *: {torque: 0} #!\n", None, ""),
    "two patterns": ("@joints: {'elb*': {torque: 0}, '*bow': {torque: 1}} #!\n", "joints.*bow",
                     "joint elbow matches two patterns of the same length: got 'elb* and *bow' (give elbow a separate entry)"),
    "fixed joint": ("@joints: {weld: {torque: 0}} #!\n", "joints.weld", "joint weld is fixed"),
    "joint without drive": (joint("{}"), "joints.elbow",
                            "a joint takes exactly one of torque, prescribe: got nothing"),
    "joint with both": (joint("{torque: 0, prescribe: {velocity: 0}}"), "joints.elbow", "got torque, prescribe"),
    "joint with a number": (joint("5"), "joints.elbow", "a mapping (key: value) with keys such as torque, prescribe, got 5"),
    "unknown drive": (joint("{force: 0}"), "joints.elbow.force", "unknown key: expected one of torque, prescribe"),
    "unknown level": (joint("{prescribe: {jerk: 0}}"), "joints.elbow.prescribe.jerk", "unknown key"),
    "two levels": (joint("{prescribe: {velocity: 0, position: 0}}"), "joints.elbow.prescribe",
                   "prescribe takes exactly one of acceleration, velocity, position: got velocity, position"),
    "signal true": (joint("{torque: true}"), "joints.elbow.torque", "expected a number, an expression, or one of … got true"),
    "signal missing": (joint("{torque: }"), "joints.elbow.torque",
        "no value: expected a number, an expression, or one of pd, pid, quintic, spline, sine, csv"),
    "signal NaN": (joint("{torque: .nan}"), "joints.elbow.torque", "not a finite number"),
    "signal of unknown kind": (joint("{torque: {ramp: 1}}"), "joints.elbow.torque.ramp", "unknown key"),
    "two kinds of signal": (joint("{torque: {sine: {}, spline: []}}"), "joints.elbow.torque", "exactly one of"),
    "empty list": (joint("{torque: []}"), "joints.elbow.torque", "expected a list of at least 1 signals"),
    "list in a list": (joint("{torque: [[0]]}"), "joints.elbow.torque[0]", "expected a number, an expr … got [0]"),
    "list for one coordinate": (joint("{torque: [0, 1]}"), "joints.elbow.torque",
                                "joint elbow has 1 coordinate: expected one value, got '2 signals'"),
    "hostile expression": (joint("{torque: \"__import__('os')\"}"), "joints.elbow.torque", "is not allowed in an expression"),
    "expression": (joint("{torque: 2*x}"), "joints.elbow.torque", "unknown name x … got '2*x'"),
    "expression not finite": (joint("{torque: 9**9**9}"), "joints.elbow.torque", "not a finite number: got '9**9**9'"),
    "expression of an unknown joint": (joint("{torque: q(elbw)}"), "joints.elbow.torque",
                                       "no such joint: got 'elbw' (did you mean elbow"),
    "expression of a joint of two": (joint("{torque: q(uni)}"), "joints.elbow.torque",
                                     "joint uni has 2 coordinates: expected one of q(uni.1), q(uni.2), got 'q(uni)'"),
    "state in a motion": (joint("{prescribe: {acceleration: -q}}"), "joints.elbow.prescribe.acceleration",
                          "q may not be used here: this signal is a function of time only: got 'q'"),
    "state in a target": (joint("{torque: {pd: {kp: 1, kd: 1, target: 2*v(shoulder)}}}"), "joints.elbow.torque.pd.target",
                          "the time derivative of the target, which kd requires, is not available … got '2*v(shoulder)'"),
    "point of a link that moves": (joint("{torque: 'z(lower, 0, 0, t)'}"), "joints.elbow.torque", "must be three numbers"),
    "time of an event that is not": (joint("{torque: {spline: [[0, 0], [1, 1]], from: start}}"), "joints.elbow.torque.from",
                                     "times relative to an event require events"),
    "pd without gain": (joint("{torque: {pd: {target: 0}}}"), "joints.elbow.torque.pd", "the key kp is missing"),
    "pd without target": (joint("{torque: {pd: {kp: 1}}}"), "joints.elbow.torque.pd", "the key target is missing"),
    "negative gain": (joint("{torque: {pd: {kp: -1, target: 0}}}"), "joints.elbow.torque.pd.kp", "out of range … got -1"),
    "curve that overflows": (joint("{torque: {quintic: [[0, -1e308], [1, 0], [2, 0]]}}"), "joints.elbow.torque.quintic",
                             "the curve is not finite: expected smaller values, or times farther apart"),
    "curve of times too close": (joint("{torque: {spline: [[0, 0], [5e-324, 1], [2, 0]]}}"), "joints.elbow.torque.spline",
                                 "the curve is not finite"),
    "gain that overflows": (joint("{torque: {pd: {kp: 1e300, target: 0}}}"), "joints.elbow.torque.pd.kp",
                            "out of range: expected a number >= 0 and <= 1e+30, got 1e300"),
    "gain by expression": (joint("{torque: {pd: {kp: 1+t, target: 0}}}"), "joints.elbow.torque.pd.kp", "expected a number"),
    "unknown key of pd": (joint("{torque: {pd: {kp: 1, ki: 2, target: 0}}}"), "joints.elbow.torque.pd.ki",
                          "unknown key … (ki is a key of pid)"),
    "prescribed by a signal": (joint("{prescribe: sin(t)}"), "joints.elbow.prescribe",
                               "a mapping (key: value) with keys such as acceleration, velocity, position, got sin(t)"),
    "pd beside another": (joint("{torque: {pd: {kp: 1, target: 0}, sine: {}}}"), "joints.elbow.torque", "exactly one of"),
    "pd in a motion": (joint("{prescribe: {velocity: {pd: {}}}}"), "joints.elbow.prescribe.velocity.pd", "unknown key"),
    "pd of a ball": ("@joints: {ball: {torque: {pd: {kp: 1, target: 0}}}} #!\n", "joints.ball.torque.pd",
                     "joint ball is a ball joint: pd is not available for it (give a torque for each component)"),
    "gains of another length": ("@joints: {uni: {torque: {pd: {kp: [1, 2, 3], target: 0}}}} #!\n", "joints.uni.torque.pd",
                                "joint uni has 2 coordinates: expected a list of 2, got '3 kp values'"),
    "ball at position level": ("@joints: {ball: {prescribe: {position: [0, 0, 0]}}} #!\n", "joints.ball.prescribe.position",
                               "the position of ball, a ball joint, is prescribed as a pose: expected waypoints, or rpy with "
                               "three signals"),
    "a pose without a key": (joint("{prescribe: {position: {}}}"), "joints.elbow.prescribe.position", "a pose requires xyz or "
                                                                                                      "rpy"),
    "a key of a pose": ("@joints: {ball: {prescribe: {position: {waypoint: 1}}}} #!\n", "joints.ball.prescribe.position.waypoint",
                        "(did you mean waypoints?)"),
    "a pose of a hinge": (joint("{prescribe: {position: {rpy: [0, 0, t]}}}"), "joints.elbow.prescribe.position",
                          "elbow is not a ball or free joint: it has no pose: expected a signal"),
    "a ball joint's xyz": (pose("{xyz: [0, 0, t]}"), "joints.ball.prescribe.position.xyz[0]",
                           "ball is a ball joint: it has no position: expected rpy alone, got 'xyz'"),
    "a waypoint with xyz of a ball joint": (pose("{waypoints: [{t: 0}, {t: 1, xyz: [0, 0, 1]}]}"),
                                            "joints.ball.prescribe.position.waypoints[1]", "ball is a ball joint"),
    "two angles": (pose("{rpy: [0, t]}"), "joints.ball.prescribe.position.rpy", "expected a list of 3 signals"),
    "waypoints and angles": (pose("{waypoints: [{t: 0}, {t: 1}], rpy: [0, 0, t]}"), "joints.ball.prescribe.position",
                             "waypoints cannot be combined with xyz and rpy: expected waypoints, or xyz and rpy, got "
                             "'waypoints, rpy'"),
    "one waypoint of a pose": (pose("{waypoints: [{t: 0}]}"), "joints.ball.prescribe.position.waypoints",
                               "expected a list of at least 2 waypoints {t, xyz, rpy}"),
    "waypoints without time": (pose("{waypoints: [{t: 0}, {rpy: [0, 0, 1]}]}"), "joints.ball.prescribe.position.waypoints[1]",
                               "the key t is missing: expected the time of the waypoint"),
    "waypoints of a pose backwards": (pose("{waypoints: [{t: 1}, {t: 1}]}"), "joints.ball.prescribe.position.waypoints[1].t",
                            "times must increase: expected a time after 1, got 1"),
    "a waypoint with two orientations": (pose("{waypoints: [{t: 0}, {t: 1, rpy: [0, 0, 1], quaternion: [0, 0, 0, 1]}]}"),
                                         "joints.ball.prescribe.position.waypoints[1].rpy", "rpy and quaternion cannot be "
                                                                                            "combined"),
    "a waypoint's norm": (pose("{waypoints: [{t: 0}, {t: 1, quaternion: [0, 0, 0, 2]}]}"),
                          "joints.ball.prescribe.position.waypoints[1].quaternion", "the quaternion has norm 2"),
    "half a turn": (pose("{waypoints: [{t: 0}, {t: 1, rpy: [0, 0, 3.14]}]}"), "joints.ball.prescribe.position.waypoints",
                    "ball turns by 3.14 rad from t = 0 s to the next pose at t = 1 s: expected at most 3.1 rad, since it "
                    "takes the shorter direction"),
    "a pose that has no acceleration": (pose("{rpy: [{csv: {file: ref.csv, column: q.elbow, interpolation: linear}}, 0, 0]}"),
                                        "joints.ball.prescribe.position.rpy[0].csv.interpolation", "linear interpolation has"),
    "a pose by a column without a name": (pose("{rpy: [{csv: {file: ref.csv}}, 0, 0]}"),
                                          "joints.ball.prescribe.position.rpy[0].csv", "the key column is missing"),
    "a pose without columns": (pose("{csv: {file: ref.csv}}"), "joints.ball.prescribe.position.csv",
                               "ref.csv has no such column … got 'q.ball.qx'"),
    "a pose that is not finite": (pose("{rpy: [log(t), 0, 0]}"), "joints.ball.prescribe.position.rpy[0]",
                                  "the roll of ball is not finite at t = 0: got '-inf, derivatives inf and -inf'"),
    "a pose that starts elsewhere": (
        "@initial: {q: {ball: [0, 0, 0.6, 0.8]}} #!\njoints: {ball: {prescribe: {position: {rpy: [0, 0, t]}}}}\n",
        "initial.q.ball",
        "the initial value contradicts the prescribed motion: ball is prescribed at position level: expected [0, 0, 0, 1], "
        "or no value, got [0.0, 0.0, 0.6, 0.8]"),
    "one motion for two coordinates": ("@joints: {uni: {prescribe: {velocity: sin(t)}}} #!\n", "joints.uni.prescribe.velocity",
                                       "joint uni has 2 coordinates: expected a list of 2 signals, got 'a single signal'"),
    "one waypoint": (joint("{prescribe: {position: {quintic: [[0, 1]]}}}"), "joints.elbow.prescribe.position.quintic",
                     "expected a list of at least 2 waypoints [t, x]"),
    "waypoint without value": (joint("{torque: {quintic: [[0], [1, 1]]}}"), "joints.elbow.torque.quintic[0]",
                               "expected a list of 2 to 4 numbers: t, x, dx/dt, d²x/dt², got [0]"),
    "points backwards": (joint("{torque: {quintic: [[0, 1], [2, 1], [1, 1]]}}"), "joints.elbow.torque.quintic[2][0]",
                            "times must increase: expected a time after 2, got 1"),
    "spline twice at once": (joint("{torque: {spline: [[0, 1], [0, 2]]}}"), "joints.elbow.torque.spline[1][0]",
                             "times must increase: expected a time after 0, got 0"),
    "spline of a word": (joint("{torque: {spline: [[0, 1], [1, x]]}}"), "joints.elbow.torque.spline[1][1]",
                         "expected a number, got x"),
    "stops dead": (joint("{prescribe: {position: {quintic: [[0, 0], [1, 1, 0.5]]}}}"), "joints.elbow.prescribe.position.quintic",
                   "velocity jump: expected zero velocity at the first and last point, got 'velocity 0.5 at t = 1'"),
    "starts with a jolt": (joint("{prescribe: {position: {quintic: [[0.5, 0, 1], [2, 1]]}}}"),
                           "joints.elbow.prescribe.position.quintic", "got 'velocity 1 at t = 0.5'"),
    "sine without frequency": (joint("{torque: {sine: {amplitude: 1}}}"), "joints.elbow.torque.sine",
                               "the key frequency is missing: expected a frequency in Hz"),
    "sine of an expression": (joint("{torque: {sine: {amplitude: t, frequency: 1}}}"), "joints.elbow.torque.sine.amplitude",
                              "expected a number, got t"),
    "csv missing": (joint("{torque: {csv: {file: no.csv}}}"), "joints.elbow.torque.csv.file", "no such CSV file: got '"),
    "csv without file": (joint("{torque: {csv: {column: x}}}"), "joints.elbow.torque.csv", "the key file is missing"),
    "csv column": (joint("{torque: {csv: {file: ref.csv, column: tau.elbw}}}"), "joints.elbow.torque.csv.column",
                   "has no such column: expected one of q.elbow, tau.elbow, short, got 'tau.elbw' (did you mean tau.elbow?)"),
    "csv column of its own": ("@joints: {shoulder: {torque: {csv: {file: ref.csv}}}} #!\n", "joints.shoulder.torque.csv",
                              "has no such column … got 'tau.shoulder'"),
    "csv in degrees": (joint("{torque: {pd: {kp: 1, target: {csv: {file: deg.csv}}}}}"), "joints.elbow.torque.pd.target.csv",
                       "deg.csv has the wrong unit: expected rad, got 'deg'"),
    "csv interpolation": (joint("{torque: {csv: {file: ref.csv, interpolation: nearest}}}"),
                          "joints.elbow.torque.csv.interpolation", "expected one of linear, cubic, quintic"),
    "csv with corners": (joint("{prescribe: {position: {csv: {file: ref.csv, interpolation: linear}}}}"),
                         "joints.elbow.prescribe.position.csv.interpolation", "expected interpolation cubic or quintic"),
    "csv with too few rows": (joint("{prescribe: {position: {csv: {file: ref.csv}}}}"),
                              "joints.elbow.prescribe.position.csv.file",
                                  "quintic interpolation needs 6 rows: got '5 in "),
    "csv too short": (joint("{torque: {csv: {file: brief.csv, column: x}}}"), "joints.elbow.torque.csv.file",
                      "does not cover the required time: expected 0 to 2 s, got '0 to 1 s'"),
    "initial against the motion": ("@joints: {elbow: {prescribe: {position: 0.3}}}\ninitial: {q: {elbow: 0.2}} #!\n",
                                   "initial.q.elbow",
                                       "the initial value contradicts the prescribed motion: elbow is prescribed at position "
                                       "level: expected 0.3, or no value, got 0.2"),
    "initial speed against the motion": ("@joints: {elbow: {prescribe: {position: sin(t)}}}\ninitial: {v: {elbow: 0.2}} #!\n",
                                         "initial.v.elbow", "expected 1, or no value, got 0.2"),
    "initial speed against the speed": ("@joints: {elbow: {prescribe: {velocity: cos(t)}}}\ninitial: {v: {elbow: 0.2}} #!\n",
                                        "initial.v.elbow", "elbow is prescribed: expected 1, or no value, got 0.2"),
    "motion that begins nowhere": (joint("{prescribe: {position: log(t)}}"), "joints.elbow.prescribe.position",
                                   "the position of elbow is not finite at t = 0: got '-inf, derivative inf'"),
    "motion that begins infinitely fast": (joint("{prescribe: {position: sqrt(t)}}"), "joints.elbow.prescribe.position",
                                           "the position of elbow is not finite at t = 0: got '0.0, derivative inf'"),
    "forces no list": ("@external_forces: {link: a} #!\n", "external_forces", "expected a list of forces"),
    "force without link": ("@external_forces:\n  - {wrench: [0, 0, 0, 0, 0, 1]} #!\n", "external_forces[0]",
                           "the key link is missing"),
    "force without wrench": ("@external_forces:\n  - {link: a} #!\n", "external_forces[0]",
                             "the key wrench is missing: expected [mx, my, mz, fx, fy, fz]"),
    "wrench of three": ("@external_forces:\n  - {link: a, wrench: [0, 0, 1]} #!\n", "external_forces[0].wrench",
                        "expected a list of 6 signals: mx, my, mz, fx, fy, fz, got [0, 0, 1]"),
    "unknown link": ("@external_forces:\n  - wrench: [0, 0, 0, 0, 0, 1]\n    link: hand #!\n", "external_forces[0].link",
                     "no such link: expected one of a, b, c, d, tip, got 'hand'"),
    "unknown frame": ("@external_forces:\n  - {link: a, frame: body, wrench: [0, 0, 0, 0, 0, 1]} #!\n",
                      "external_forces[0].frame",
                      "expected one of local, local_world_aligned, got body (link axes are called local)"),
    "frame link": ("@external_forces:\n  - {link: a, frame: link, wrench: [0, 0, 0, 0, 0, 1]} #!\n", "external_forces[0].frame",
                   "expected one of local, local_world_aligned, got link (link axes are called local)"),
    "frame world": ("@external_forces:\n  - {link: a, frame: world, wrench: [0, 0, 0, 0, 0, 1]} #!\n",
                    "external_forces[0].frame", "expected one of local, local_world_aligned, got world (world axes at a "
                                                "point of the link are called local_world_aligned, link axes local)"),
    "frame a list": ("@external_forces:\n  - {link: a, frame: [local], wrench: [0, 0, 0, 0, 0, 1]} #!\n",
                     "external_forces[0].frame", "expected one of local, local_world_aligned"),
    "force backwards": ("@external_forces:\n  - {link: a, wrench: [0, 0, 0, 0, 0, 1], from: 2, until: 1} #!\n",
                        "external_forces[0].until", "the force ends before it starts: expected a time after from: 2, got 1"),
    "force with q alone": ("@external_forces:\n  - {link: a, wrench: [0, 0, 0, 0, 0, q]} #!\n", "external_forces[0].wrench[5]",
                           "q needs the name of a joint here: expected q(joint)"),
    "force csv without column": ("@external_forces:\n  - {link: a, wrench: [0, 0, 0, 0, 0, {csv: {file: ref.csv}}]} #!\n",
                                 "external_forces[0].wrench[5].csv",
                                 "the key column is missing: expected the column with the fz of external force 1 on link a"),
    "unknown actuator": ("@actuators: {rotor9: 1} #!\n", "actuators.rotor9",
                         "no such actuator: got 'rotor9' (did you mean rotor1?)"),
    "no such loops": ("@loops: nowhere.yaml #!\n", "loops",
        "no such file of loops: got '"),
    "assemble is a word": ("@initial: {assemble: perhaps} #!\n", "initial.assemble",
                           "expected true or false, got perhaps"),
    "unknown initial key": ("@initial: {asemble: true} #!\n", "initial.asemble", "(did you mean assemble?)"),
    "unknown stabilization": ("@constraints: {stabilization: index2} #!\n", "constraints.stabilization",
                              "expected one of projection, baumgarte, none, got index2"),
    "frequency of a projection": ("@constraints: {frequency: 5} #!\n", "constraints.frequency",
                                  "frequency does not apply to the stabilization projection: expected tolerance (write "
                                  "stabilization: baumgarte)"),
    "tolerance of Baumgarte": ("@constraints: {stabilization: baumgarte, tolerance: 1e-9} #!\n", "constraints.tolerance",
                               "tolerance does not apply to the stabilization baumgarte: expected frequency (write "
                               "stabilization: projection)"),
    "tolerance below rounding": ("@constraints: {tolerance: 1e-17} #!\n", "constraints.tolerance",
                                 "out of range: expected a number >= 1e-15 and <= 0.001, got 1e-17"),
    "frequency zero": ("@constraints: {stabilization: baumgarte, frequency: 0} #!\n", "constraints.frequency", "got 0"),
    "constraints of a tree": ("@constraints: {stabilization: none} #!\n", "constraints",
                              "the robot has no constraints: expected loops, couplings or a mimic in its file"),
    "drives of a tree": ("@constraint_motion: {tool: {xyz: [0, 0, t]}} #!\n", "constraint_motion.tool",
                         "the robot has no driven loop: got 'tool'"),
    "empty drive": ("@constraint_motion: {tool: {}} #!\n", "constraint_motion.tool", "a driven loop requires xyz or rpy"),
    "drive of two": ("@constraint_motion: {tool: {xyz: [0, t]}} #!\n", "constraint_motion.tool.xyz",
                     "expected a list of 3 signals"),
    "event without a time": ("@events: {go: {do: stop}} #!\n", "events.go", "exactly one of at, every, when: got none"),
    "event of two": ("@events: {go: {at: 1, every: 1, do: stop}} #!\n",
                     "events.go", "exactly one of at, every, when: got at and every"),
    "event without action": ("@events: {go: {at: 1}} #!\n", "events.go", "the key do is missing"),
    "event before the start": ("@events: {go: {at: -1, do: stop}} #!\n", "events.go.at", ">= 0"),
    "event of no period": ("@events: {go: {every: 0, do: stop}} #!\n", "events.go.every", "a number > 0"),
    "event of an unknown action": ("@events: {go: {at: 1, do: {jump: elbow}}} #!\n", "events.go.do.jump", "unknown key"),
    "event of an unknown word": ("@events: {go: {at: 1, do: halt}} #!\n", "events.go.do", "expected one of record, stop"),
    "event of an unknown phase": ("@phases: {a: {}}\nevents: {go: {at: 1, do: {phase: b}}} #!\n", "events.go.do.phase",
                                  "no such phase: expected a, got 'b'"),
    "event in an unknown phase": ("@phases: {a: {}}\nevents: {go: {at: 1, phases: b, do: stop}} #!\n",
                                  "events.go.phases", "no such phase"),
    "direction of a time": ("@events: {go: {at: 1, direction: rising, do: stop}} #!\n", "events.go.direction",
                            "direction applies only to events with when"),
    "unknown direction": ("@events: {go: {when: 'q(elbow)', direction: up, do: stop}} #!\n",
                          "events.go.direction", "expected one of both"),
    "event of time alone": ("@events: {go: {when: 't - 1', do: stop}} #!\n", "events.go.when", "does not depend on the state"),
    "event of no expression": ("@events: {go: {when: 'q(elbow', do: stop}} #!\n", "events.go.when",
                               "'(' was never closed: got 'q(elbow'"),
    "event of an unknown joint": ("@events: {go: {when: 'q(elbo)', do: stop}} #!\n", "events.go.when", "did you mean elbow"),
    "impact of nothing": ("@events: {go: {at: 1, do: {impact: {}}}} #!\n", "events.go.do.impact", "exactly one of joint, link"),
    "impact that gains": ("@events: {go: {at: 1, do: {impact: {joint: elbow, restitution: 2}}}} #!\n",
                          "events.go.do.impact.restitution", "<= 1"),
    "impact along nothing": ("@events: {go: {at: 1, do: {impact: {link: a, normal: [0, 0, 0]}}}} #!\n",
                             "events.go.do.impact.normal", "length zero"),
    "payload without mass": ("@events: {go: {at: 1, do: {attach: {link: tip}}}} #!\n",
                             "events.go.do.attach", "the key mass is missing"),
    "set nothing": ("@events: {go: {at: 1, do: {set: {}}}} #!\n", "events.go.do.set", "set requires q or v"),
    "no phases": ("@phases: {} #!\n", "phases", "phases is empty"),
    "phase of an unknown joint": ("@phases: {a: {joints: {elbo: {torque: 1}}}} #!\n", "phases.a.joints.elbo", "no such joint"),
    "event that is called phase": ("@events: {phase: {at: 1, do: stop}} #!\n", "events.phase", "an event cannot be called phase"),
    "event twice at one time": (event("at: [1, 2, 1], do: record"), "events.go.at[2]", "duplicate time: got 1"),
    "event at a time that is none": (event("at: [1, .nan], do: record"), "events.go.at[1]", "not a finite number … got .nan"),
    "event that happens without end": (event("every: 1e-9, do: record"), "events.go.every",
                                       "too many times of the event: about 2e+09, more than 1e+06: expected at least 2e-06 "
                                       "s, got 1e-9"),
    "event by a number": (event("when: 3, do: stop"), "events.go.when", "expected an expression, or touch … got 3"),
    "event by a comparison": (event("when: 'q(elbow) > 1', do: stop"), "events.go.when",
                              "a comparison is not allowed in an expression: got 'q(elbow) > 1' (step(x) is 1 where x >= 0, "
                              "else 0; an event has value and direction)"),
    "event that divides by zero": (event("when: 'q(elbow)/0', do: stop"), "events.go.when", "a division by zero"),
    "event with a value that is infinite": (event("when: 'q(elbow)', value: .inf, do: stop"), "events.go.value", "not a finite"),
    "debounce of a time": (event("at: 1, debounce: 1, do: stop"), "events.go.debounce", "debounce applies only to events with "
                                                                                        "when"),
    "event in no list of phases": (event("at: 1, phases: [], do: stop"), "events.go.phases",
                                   "expected a list of at least 1 names"),
    "event in a mistyped phase": ("@phases: {drive: {}, free: {}}\nevents: {go: {at: 1, phases: dirve, do: stop}} #!\n",
                                  "events.go.phases", "no such phase: expected drive, free, got 'dirve' (did you mean drive?)"),
    "the action has no value": (event("at: 1, do: lock"), "events.go.do",
        "the action has no value: expected {lock: …}, got 'lock'"),
    "mistyped action": (event("at: 1, do: {lok: elbow}"), "events.go.do.lok", "(did you mean lock?)"),
    "lock of nothing": (event("at: 1, do: {lock: []}"), "events.go.do.lock", "expected a list of at least 1 names"),
    "no action": (event("at: 1, do: {stop: false}"), "events.go.do", "the event has no action"),
    "touch without contacts": (event("when: touch(tip), do: stop"), "events.go.when", "the scenario has no contacts"),
    "touch of a mistyped plane": (event("when: 'touch(tip, grund)', do: stop", TOUCH), "events.go.when",
                                  "no such plane or link: got 'grund' (did you mean ground?)"),
    "touch of a plane first": (event("when: 'touch(ground, tip)', do: stop", TOUCH), "events.go.when",
                               "ground is a plane: expected touch(tip, ground), got 'touch(ground, tip)'"),
    "touch in an expression": (event("when: 'touch(tip) + 1', do: stop", TOUCH), "events.go.when",
                               "(did you mean touch(link) alone?)"),
    "touch and lift": (event("when: {touch: tip, lift: tip}, do: stop"), "events.go.when",
                       "expected an expression, or touch(link), lift(link), touch( … got {touch: tip, lift: tip}"),
    "mistyped touch": (event("when: {toch: tip}, do: stop"), "events.go.when.toch", "expected one of touch, lift (did you mean"),
    "impact along a huge normal": (event("at: 1, do: {impact: {link: tip, normal: [1e200, 0, 0]}}"),
                                   "events.go.do.impact.normal[0]", "out of range … got 1e200"),
    "huge body": (event("at: 1, do: {attach: {link: tip, mass: 1e300}}"), "events.go.do.attach.mass", "<= 1e+30"),
    "body of huge inertia": (event("at: 1, do: {attach: {link: tip, mass: 1, inertia: [1e200, 1, 1]}}"),
                             "events.go.do.attach.inertia[0]", "out of range … got 1e200"),
    "phase without a name": ("@phases: {'': {}} #!\n", "phases", "the key is empty: expected a name"),
    "mistyped key of a phase": ("@phases: {a: {joins: {}}} #!\n", "phases.a.joins", "(did you mean joints?)"),
    "time of a mistyped event": (joint("{torque: since(og)}") + GO, "joints.elbow.torque",
                                 "no such event: got 'og' (did you mean go?)"),
    "curve from a mistyped event": (joint("{torque: {spline: [[0, 0], [1, 1]], from: og}}") + GO,
                                    "joints.elbow.torque.from", "no such event: got 'og' (did you mean go?)"),
    "since with a number": (joint("{torque: 'since(go, 1)'}") + GO, "joints.elbow.torque",
                            "no such event: got 'go, 1' (did you mean go?)"),
    "division by zero": (joint("{torque: t/(2 - 2)}"), "joints.elbow.torque", "a division by zero: got 't/(2 - 2)'"),
    "pose with from": (pose("{rpy: [0, 0, t], from: phase}"), "joints.ball.prescribe.position.from",
                       "from cannot be combined with rpy of a pose (give it with a curve in xyz or rpy)"),
    "pose and columns": (pose("{rpy: [0, 0, t], csv: {file: ref.csv}}"), "joints.ball.prescribe.position.csv",
                         "csv cannot be combined with rpy of a pose"),
    "waypoints too close": (pose("{waypoints: [{t: 0}, {t: 1e-300, rpy: [0.1, 0, 0]}, {t: 2}]}"),
                            "joints.ball.prescribe.position.waypoints", "or times farther apart"),
    "mistyped key of a waypoint": (pose("{waypoints: [{t: 0}, {t: 1, rpj: [0, 0, 1]}]}"),
                                   "joints.ball.prescribe.position.waypoints[1].rpj", "(did you mean rpy?)"),
    "contact of a link with itself": (contacts("pairs: [[tip, tip]]"), "contacts.pairs[0]", "the link tip cannot touch itself"),
    "contact without depth": (contacts("sink: 1e-300"), "contacts.sink", "out of range … got 1e-300"),
    "contact of huge stiffness": (contacts("stiffness: 1e40"), "contacts.stiffness", "<= 1e+30"),
    "contact of no width": (contacts("smooth: 1e-320"), "contacts.smooth", "out of range … got 1e-320"),
    "contact of huge creep": (contacts("friction_speed: 1e200"), "contacts.friction_speed", "out of range … got 1e200"),
    "huge sphere": ("@contacts: {links: {tip: {sphere: {radius: 1e300}}}} #!\n", "contacts.links.tip.sphere.radius",
                    "out of range … got 1e300"),
    "plane of huge normal": (contacts("planes: {g: {normal: [0, 0, 1.7e308]}}"), "contacts.planes.g.normal[2]", "got 1.7e308"),
    "plane out of reach": (contacts("planes: {g: {point: [0, 0, 1e308]}}"), "contacts.planes.g.point[2]", "got 1e308"),
    "plane on a mistyped link": (contacts("planes: {g: {link: tpi}}"), "contacts.planes.g.link", "no such link: got 'tpi'"),
    "planes in a list": (contacts("planes: [ground]"), "contacts.planes", "expected a mapping"),
    "stop without depth": ("@limits: {sink: 1e-320} #!\n", "limits.sink", "out of range … got 1e-320"),
    "restitution of compliant stops": ("@limits: {restitution: 0.5} #!\n", "limits.restitution",
                                       "restitution does not apply to compliant stops: expected stiffness, sink, damping, "
                                       "joints (write mode: hard)"),
    "stops of a word": ("@limits: {joints: elbow} #!\n", "limits.joints", "expected a list of at least 1 joints"),
    "huge gravity": ("@gravity: [0, 0, 1e308] #!\n", "gravity[2]", "out of range … got 1e308"),
    "key of another law": ("@control: {law: gravity_compensation, bandwidth: 3} #!\n", "control.bandwidth",
                           "bandwidth does not apply to the law gravity_compensation: expected joints, model (write law: "),
    "saturation of a word": ("@saturate: all #!\n", "saturate", "expected true, false, or limits by joint: limits or a number"),
    "actuators by list": ("@actuators: {rotor1: [1]} #!\n", "actuators.rotor1", "expected a number … got [1]"),
}


@pytest.mark.parametrize("text, key, message", BROKEN.values(), ids=BROKEN.keys())
def test_broken(folder, model, text, key, message):
    text = HEAD + text[1:] if text.startswith("@") else text
    marked = [number for number, line in enumerate(text.splitlines(), 1) if "#!" in line]
    (folder / "s.yaml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        compile_schedule(read_scenario(folder / "s.yaml"), model)
    error = caught.value
    assert has_parts(str(error), message)
    assert error.place.file == str(folder / "s.yaml")
    assert not marked or error.place.line == marked[0]
    assert error.place.key == key
    assert "\n" not in str(error) and error.exit_status == 3


def test_a_broken_csv_names_itself(folder, model):
    (folder / "s.yaml").write_text(joint("{torque: {csv: {file: broken.csv, column: x}}}"))
    with pytest.raises(TrajectoryError, match=r"broken\.csv:3: t: time does not increase"):
        compile_schedule(read_scenario(folder / "s.yaml"), model)


def test_a_signal_does_not_jump_at_an_event(folder, model):
    (folder / "two.csv").write_text("# events: 1\nt,x\n0,1\n1,1\n1,2\n9,2\n")
    (folder / "s.yaml").write_text(joint("{torque: {csv: {file: two.csv, column: x}}}"))
    with pytest.raises(ScenarioError, match=r"two rows of a signal have one time.*t = 1 s in .*two\.csv, line 5"):
        compile_schedule(read_scenario(folder / "s.yaml"), model)


@pytest.mark.parametrize("data, message", [
    (b"\x00\x01\x02", "this is a binary file"), (b"robot: \xff\xfe", "not a text file"), (b"a: [" * 5000, "too deeply nested"),
    (b"a: " + b"[" * 100_000, "too deeply nested"), (b"x: [1]\ny: *a\n", "the YAML alias has no anchor"),
    (b"a: !!python/object/apply:os.system [id]\n", "YAML tags are not supported"),
    (b"- robot: a\n", "s.yaml:1: not a file of this kind: expected a mapping (key: value)\n"),
    (b"", "s.yaml: the file is empty\n"),
], ids=["binary", "latin", "nested mapping", "nested list", "alias", "tag", "list", "empty"])
def test_hostile_files(tmp_path, data, message):
    (tmp_path / "s.yaml").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_scenario(tmp_path / "s.yaml")
    assert message in f"{caught.value}\n" and isinstance(caught.value, ScenarioError)


@pytest.mark.parametrize("path, message", [("nowhere.yaml", "no such file"), (".", "this is a directory")])
def test_files_that_are_none(tmp_path, path, message):
    with pytest.raises(ScenarioError, match=message):
        read_scenario(tmp_path / path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_instead_of_files_are_named(folder, model):
    os.mkfifo(folder / "pipe.csv")
    (folder / "s.yaml").write_text(joint("{torque: {csv: {file: pipe.csv, column: x}}}"))
    with pytest.raises(TrajectoryError, match=r"pipe\.csv: this is a pipe: expected a file"):
        compile_schedule(read_scenario(folder / "s.yaml"), model)


@pytest.mark.parametrize("text, key, message", [
    ("phases: {a: {}, b: {joints: {elbow: {torque: 2*x}}}} #!\nevents: {go: {at: 1, do: {phase: b}}}\n",
     "phases.b.joints.elbow.torque", "unknown name x"),
    ("phases: {a: {}, b: {joints: {elbow: {torque: {csv: {file: no.csv}}}}}} #!\nevents: {go: {at: 1, do: {phase: b}}}\n",
     "phases.b.joints.elbow.torque.csv.file", "no such CSV file"),
    ("phases: {a: {}, b: {open: loop}} #!\nevents: {go: {at: 1, do: {phase: b}}}\n", "phases.b.open", "no loops or couplings"),
    ("limits: hard #!\ninitial: {q: {elbow: 2}}\n", "limits", "elbow is at 2 at t = 0 s, above its limit 1, a hard stop"),
])
def test_later_phases_and_hard_stops_are_checked_before_the_run(folder, text, key, message):
    (folder / "s.yaml").write_text(HEAD + text)
    with pytest.raises(ScenarioError) as caught:
        prepare(folder / "s.yaml", ())
    assert has_parts(str(caught.value), message) and caught.value.place.key == key and caught.value.place.line == 3


@pytest.mark.parametrize("keys, warnings", [
    ("phases: {a: {}, b: {}, c: {}}\nevents: {go: {at: 1, do: {phase: a}}}\n", ("no event enters the phases b, c",)),
    ("phases: {a: {}, b: {}}\n", ("no event enters the phase b",)),
    ("phases: {a: {}, b: {}}\nevents: {go: {at: 1, do: {phase: b}}}\n", ())])
def test_phases_that_never_begin_are_noted(folder, keys, warnings):
    (folder / "s.yaml").write_text(HEAD + keys)
    assert tuple(one.message for one in prepare(folder / "s.yaml", ()).warnings) == warnings


@pytest.mark.parametrize("action, message", [
    ("{lock: elbo}", "no such joint: got 'elbo'"), ("{unlock: weld}", "joint weld is fixed"),
    ("{impact: {joint: bal}}", "no such coordinate"), ("{impact: {link: nobody}}", "no such link"),
    ("{attach: {link: nobody, mass: 1}}", "no such link"), ("{detach: nobody}", "no such link"),
    ("{lock: 'leg*'}", r"the pattern matches no joint.*got 'leg\*'"), ("{detach: tip}", "no event attaches a body to link tip"),
    ("{set: {q: {ball: [0, 0, 1, 1]}}}", "joint ball is not of unit norm: expected norm 1, got 1.414213562"),
    ("{attach: {link: tip, mass: 1, inertia: [-5, 1, 1]}}", "the inertia of the body is not positive semidefinite"),
    ("{set: {q: {elbo: 1}}}", "no such joint"), ("{set: {v: {ball: 1}}}", "wrong number of values"),
])
def test_names_of_actions_are_looked_up_before_the_run(folder, action, message):
    (folder / "s.yaml").write_text(f"{HEAD}events: {{go: {{at: 1.5, do: {action}}}}}\n")
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(folder / "s.yaml")
    assert caught.value.place.line == 3


BAR = """\
links: {bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}}
joints: {hip: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""
HIP = "robot: bar.yaml\nduration: 0.02\noutput_step: 0.01\n"


@pytest.mark.parametrize("keys, message", [
    ("events: {lock: {at: 0, do: {lock: hip}}, go: {at: 0.01, do: {set: {v: {hip: 1}}}}}\n",
     "joint hip is locked, its velocity cannot be set: expected unlock before"),
    ("joints: {hip: {prescribe: {position: sin(t)}}}\nevents: {go: {at: 0.01, do: {impact: {joint: hip, restitution: 0.5}}}}\n",
     "event go at t = 0.01 s: the motion of hip is prescribed, so that an impact cannot change it"),
    ("events: {go: {at: [0, 0.01], do: {attach: {link: bar, mass: 1}}}}\n", "a body is attached to link bar already"),
    ("events: {go: {at: 0.01, do: [{detach: bar}, {attach: {link: bar, mass: 1}}]}}\n", "nothing is attached to link bar"),
])
def test_actions_that_cannot_be_done_name_their_place(folder, keys, message, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")                   # some run for a while, as users do
    (folder / "bar.yaml").write_text(BAR)
    (folder / "s.yaml").write_text(HIP + keys)
    with pytest.raises(ScenarioError) as caught:
        run_scenario(folder / "s.yaml")
    assert has_parts(str(caught.value), message) and caught.value.place.key.startswith("events.go.do") and caught.value.place.line
