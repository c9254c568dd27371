"""`liedyn info`: the tree, the table of coordinates, and the same as data."""
import json
import math
from pathlib import Path

import pytest

from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.model.model import build
from liedyn.report.robot_summary import robot_summary, robot_text
from liedyn.robot_files import load

ROBOTS = Path(__file__).parents[2] / "robots"

ARM = """
name: arm
links:
  post: {mass: 2, inertia: [1, 1, 1]}
  frame: {}
  hand: {mass: 0.5, inertia: [1, 1, 1]}
  left: {mass: 0.1, inertia: [1, 1, 1]}
  right: {mass: 0.1, inertia: [1, 1, 1]}
  lamp: {mass: 0.2}
joints:
  bolt: {type: fixed, parent: post, child: frame}
  wrist: {type: ball, parent: frame, child: hand}
  a: {type: prismatic, parent: hand, child: left, axis: [1, 0, 0], limits: {lower: 0, upper: 0.04, effort: 20}}
  b: {type: revolute, parent: hand, child: right, axis: [1, 0, 0], limits: {lower: -1, upper: 1, velocity: 2}, damping: 0.5}
  hook: {type: fixed, parent: post, child: lamp}
"""


@pytest.fixture
def arm(tmp_path):
    def arm(text=ARM, base=None):
        (tmp_path / "arm.yaml").write_text(text + (f"\nbase: {base}\n" if base else ""))
        return build(read_robot_yaml(tmp_path / "arm.yaml"))
    return arm


def test_tree_and_table(arm):
    assert robot_text(arm()) == """\
arm: 3 moving joints, 6 links, fixed base
nq 6, nv 5, mass 2.9 kg, gravity 0 0 -9.81 m/s^2

Tree: joint (type) -> link
world
└─ post  2 kg
   ├─ bolt (fixed) -> frame
   │  wrist (ball) -> hand  0.5 kg
   │  ├─ a (prismatic) -> left  0.1 kg
   │  └─ b (revolute) -> right  0.1 kg
   └─ hook (fixed) -> lamp  0.2 kg

coordinate  type          q     v  unit  lower  upper  speed  force  damping
wrist       ball       0..3  0..2
a           prismatic     4     3     m      0   0.04      -     20        0
b           revolute      5     4   rad     -1      1      2      -      0.5"""


def test_a_floating_base_is_shown(arm):
    text = robot_text(arm(base="floating"))
    assert "└─ base (free) -> post  2 kg" in text
    assert [line.split() for line in text.splitlines() if line.startswith("base ")] == [["base", "free", "0..6", "0..5"]]


def test_joints_on_the_ground_and_actuators():
    text = robot_text(build(read_robot_yaml(ROBOTS / "showcase.yaml")))
    assert "├─ turntable (revolute) -> table" in text and "└─ tether (free) -> balloon" in text
    assert "\nburner    balloon  " in text


def test_a_robot_without_joints(arm):
    text = robot_text(arm("links: {rock: {mass: 1, inertia: [1, 1, 1]}}\n"))
    assert text.endswith("No moving joints.")


def test_a_long_chain_is_not_set_in(arm):
    links = "".join(f"  l{k}: {{mass: 1, inertia: [1, 1, 1]}}\n" for k in range(1500))
    joints = "".join(f"  j{k}: {{type: revolute, parent: l{k}, child: l{k + 1}, axis: [0, 0, 1]}}\n" for k in range(1499))
    lines = robot_text(arm(f"links:\n{links}joints:\n{joints}")).splitlines()
    assert "   j1498 (revolute) -> l1499  1 kg" in lines


def test_summary(arm):
    summary = robot_summary(arm())
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert (summary["nq"], summary["nv"], summary["base"]) == (6, 5, "fixed")
    assert math.isclose(summary["mass"], 2.9)
    assert summary["v_names"] == ["wrist.wx", "wrist.wy", "wrist.wz", "a", "b"]
    assert summary["v_units"] == ["rad", "rad", "rad", "m", "rad"]
    wrist, a, b = summary["joints"]
    assert wrist["q"] == [0, 4] and wrist["v"] == [0, 3] and len(wrist["coordinates"]) == 3
    assert a["coordinates"][0] | {"damping": 0} == {
        "name": "a", "unit": "m", "lower": 0, "upper": 0.04, "velocity": None, "effort": 20, "acceleration": None,
        "jerk": None, "damping": 0, "friction": 0, "armature": 0, "stiffness": 0, "rest": 0}
    assert b["coordinates"][0]["damping"] == 0.5
    assert {joint["name"]: joint["parent"] for joint in summary["fixed_joints"]} == {"bolt": "post", "hook": "post"}
    assert {link["name"]: link["parent"] for link in summary["links"]}["hand"] == "frame"


@pytest.mark.parametrize("robot", sorted(path.name for path in ROBOTS.glob("*.yaml")))
def test_every_robot_of_ours(robot):
    model = load(ROBOTS / robot)
    text = robot_text(model)
    assert all(f"-> {link}" in text or f"─ {link}" in text for link in model.link_names)
    assert all(joint.name in text for joint in model.joints)
    json.dumps(robot_summary(model), allow_nan=False)


CONSTRAINTS = """
loops:
  rod: {type: distance, a: hand, b: lamp, length: 0.5}
  tip: {type: revolute, a: world, b: right, driven: true}
couplings:
  grip: {terms: {b: 1, a: -1.5}, offset: 0.25}
  sum: {terms: {a: 2, b: 3}, offset: 0.75}
  lock: {terms: {a: 1}}
"""


def test_constraints_are_listed(arm):
    text = robot_text(arm(ARM + CONSTRAINTS))
    assert "\nconstraints: 2 loops and 3 couplings, 9 equations\n" in text
    assert """

constraint  type      joins                  locks           equations
rod         distance  hand - lamp, 0.5 m                             1
tip         revolute  world - right, driven  wx wy vx vy vz          5
grip        coupling  b = 1.5 a + 0.25                               1
sum         coupling  2 a + 3 b = 0.75                               1
lock        coupling  a = 0                                          1
""" in text


def test_constraints_as_data(arm):
    rod, tip, grip, *_ = robot_summary(arm(ARM + CONSTRAINTS))["constraints"]
    assert (rod["rows"], rod["constraint_equation_names"], rod["units"], rod["length"]) == ([0, 1], ["rod"], ["m"], 0.5)
    assert tip["a"] == {"link": "world", "xyz": [0, 0, 0], "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    assert tip["driven"] and tip["axes"] == [[0, 0, 1]] and tip["constraint_equation_names"][2] == "tip.vx"
    assert grip["terms"] == {"b": 1.0, "a": -1.5} and grip["offset"] == 0.25 and grip["rows"] == [6, 7]
    json.dumps([rod, tip, grip])


def test_no_line_is_longer_than_people_read():
    """The tendon of the hand couples twelve joints."""
    lines = robot_text(load(ROBOTS / "hand.yaml")).splitlines()
    assert max(map(len, lines)) <= 80 and "coordinate  armature  stiffness  rest" in lines
    tendon = next(k for k, line in enumerate(lines) if line.startswith("tendon"))
    assert lines[tendon].endswith("1") and "little_mcp" in lines[tendon + 4]
