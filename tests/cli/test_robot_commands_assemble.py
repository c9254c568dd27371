"""`liedyn assemble`: what it prints, writes and says; its output goes back in as a guess and into a scenario."""
import json
import math

import numpy as np
import pytest

import liedyn as ld
from command_line import run as command
from command_line import said
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.io.yaml_nodes import parse_yaml

BARS = """\
name: bars
links:
  a: {mass: 1, com: [0.2, 0, 0], inertia: [0.1, 0.1, 0.1]}
  b: {mass: 1, com: [0.5, 0, 0], inertia: [0.1, 0.1, 0.1]}
  c: {mass: 1, com: [0.4, 0, 0], inertia: [0.1, 0.1, 0.1]}
joints:
  crank: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}
  "knee joint": {type: continuous, parent: a, child: b, axis: [0, 0, 1], origin: {xyz: [0.4, 0, 0]}}
  rocker: {type: continuous, parent: world, child: c, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
loops:
  pin: {type: revolute, a: {link: b, xyz: [1.1, 0, 0]}, b: {link: c, xyz: [0.8, 0, 0]}}
"""
GUESS = ("--q", "crank=0.7", "--q", "knee joint=-0.6", "--q", "rocker=1.3", "--keep", "crank")


@pytest.fixture
def bars(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bars.yaml").write_text(BARS)
    return "bars.yaml"


def run(*args):
    return command("assemble", *args)


def ok(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result


def test_yaml_goes_to_stdout_and_the_report_to_stderr(bars):
    result = ok(bars, *GUESS)
    first, *lines = result.stdout.splitlines()
    assert first == "# a closed configuration of bars: `initial` of a scenario"
    assert lines[0] == "q:" and lines[1] == "  crank: 0.7" and lines[2].startswith("  knee joint: -")
    model, q = ld.load(bars), parse_yaml(result.stdout).plain()["q"]
    residual = ld.constraint_residual(model, [q[name] for name in model.joint_names])
    assert np.abs(residual).max() < 1e-12
    closed, mobility = said(result)
    assert closed.startswith("bars: loops closed in ") and " iterations (residual 0." in closed
    assert mobility == "1 degree of freedom: 3 coordinates, 5 equations, 3 of them redundant: pin.wx, pin.wy, pin.vz"


def test_velocities_are_completed(bars):
    """psi' / phi' = r sin(phi - beta) / (s sin(psi - beta)), beta the coupler's angle."""
    plain = json.loads(ok(bars, *GUESS, "--v", "crank=2", "--json").stdout)
    q, v = plain["q"], plain["v"]
    beta = q["crank"] + q["knee joint"]
    assert v["crank"] == 2.0
    expected = 2 * 0.4 * math.sin(q["crank"] - beta) / (0.8 * math.sin(q["rocker"] - beta))
    assert v["rocker"] == pytest.approx(expected, rel=1e-12)


def test_json(bars):
    plain = json.loads(ok(bars, *GUESS, "--json").stdout)
    assert plain["degrees_of_freedom"] == 1 and plain["rank"] == plain["generic_rank"] == 2 and not plain["singular"]
    assert plain["redundant"] == ["pin.wx", "pin.wy", "pin.vz"] and plain["restarts"] == 0 and plain["v"] is None
    assert plain["residual"] < 1e-12 < plain["open_before"] and plain["robot"] == "bars.yaml" and plain["at_limits"] == []


def test_files(bars):
    result = ok(bars, *GUESS, "--v", "crank=1", "-o", "pose.csv")
    assert result.stdout == "" and said(result)[-1] == "wrote pose.csv"
    pose = read_trajectory("pose.csv")
    assert pose.t.tolist() == [0.0] and pose.header["robot"] == "bars.yaml" and pose.columns["v.crank"].tolist() == [1.0]
    ok(bars, *GUESS, "-o", "pose.yaml", "-q")
    again = run(bars, *GUESS, "-o", "pose.yaml")
    assert again.exit_code == 2 and "pose.yaml already exists; --force or force=True overwrites it" in again.stderr
    ok(bars, *GUESS, "-o", "pose.yaml", "--force")


def test_loops_of_a_file(bars, tmp_path):
    (tmp_path / "open.yaml").write_text(BARS[:BARS.index("loops:")])
    (tmp_path / "pins.yaml").write_text(BARS[BARS.index("loops:"):])
    assert "robot bars has no constraints" in run("open.yaml").stderr
    assert ok("open.yaml", *GUESS, "--loops", "pins.yaml").stdout == ok(bars, *GUESS).stdout


def test_notes_on_a_singular_configuration_and_a_start_beside_the_guess(bars, tmp_path):
    (tmp_path / "flat.yaml").write_text(BARS.replace("xyz: [1.1", "xyz: [1.0").replace("xyz: [0.8", "xyz: [0.4"))
    assert said(ok("flat.yaml"))[-1] == (
        "warning: singular: the constraint Jacobian has rank 1 here and 2 nearby; degrees "
        "of freedom nearby: 1; coordinates that move in more ways: crank, knee joint, rocker; equations that depend on others "
        "here: pin.vx [singular-configuration]")
    (tmp_path / "stiff.yaml").write_text(BARS + "couplings: {lock: {terms: {crank: 1}, offset: 0.7}}\n")
    assert said(ok("stiff.yaml",
                   *GUESS))[-1] == ("warning: the mechanism is immobile: the constraints leave no degree of "
                                "freedom [immobile]")
    assert "the initial guess led to no solution, but random start" in ok(bars, "--seed", "3").stderr


@pytest.mark.parametrize("arguments, status, text", [
    (("--q", "crank"), 2, "--q crank: expected NAME=VALUE"),
    (("--q", "krank=1"), 2, "--q krank=1: no moving joint 'krank'; the robot has crank, knee joint, rocker"),
    (("--q", "crank=x"), 2, "--q crank=x: 'x' is not a finite number or a comma-separated list of them"),
    (("--q", "crank=1,2"), 2, "--q crank=1,2: expected 1 number(s) for joint crank"),
    (("--v", "crank=nan"), 2, "--v crank=nan: 'nan' is not a finite number or a comma-separated list of them"),
    (("--constraint-motion", "pin=0,0,0"), 2, "--constraint-motion pin=0,0,0: no driven loop 'pin'; the robot has none"),
    (("--keep", "k*x"), 2, "no joint to fix matches 'k*x'; the names are crank"),
    ((*GUESS, "--v", "crank=1", "--v", "rocker=1"), 1, "the given velocities contradict the constraints: the residual of pin.v"),
    (("--q", "crank=0.7", "--keep", "*"), 1, "crank, knee joint, rocker are kept fixed: release"),
])
def test_errors(bars, arguments, status, text):
    result = run(bars, *arguments)
    assert result.exit_code == status and text in result.stderr and result.stdout == ""


def test_a_driven_closure_is_given_its_place(bars, tmp_path):
    """The crank's end is moved to (0, 0.4), where the crank is vertical."""
    loop = "  hand: {type: ball, a: world, b: {link: a, xyz: [0.4, 0, 0]}, driven: true}\n"
    (tmp_path / "led.yaml").write_text(BARS + loop)
    result = ok("led.yaml", "--q", "crank=0.7", "--q", "rocker=2", "--constraint-motion", "hand=0,0.4,0", "--json")
    assert json.loads(result.stdout)["q"]["crank"] == pytest.approx(math.pi / 2,
                                                                    abs=1e-12) and "--constraint-motion" not in result.stderr
    assert said(result)[-1] == "warning: the driven loops determine all motion [immobile]"
    assert "--constraint-motion hand=0,1: a driven loop requires 3 numbers (x, y, z) or 6 (also" in run(
        "led.yaml", "--constraint-motion", "hand=0,1").stderr
    assert 'hand" cannot be closed: its smallest residual in ' in run("led.yaml", "--q", "rocker=2").stderr


def test_a_quaternion_must_be_of_unit_norm(tmp_path):
    path = tmp_path / "body.yaml"
    path.write_text("links: {a: {mass: 1, inertia: [1, 1, 1]}}\njoints: {base: {type: free, parent: world, child: a}}\n"
                    "loops: {rod: {type: distance, a: world, b: a, length: 1}}\n")
    result = run(str(path), "--q", "base=1,0,0,0,0,0,2")
    assert result.exit_code == 3 and "the quaternion x y z w of joint base has norm 2: expected 1" in result.stderr
    values = parse_yaml(ok(str(path), "--q", "base=[2,0,0,0,0,0,1]").stdout).plain()["q"]["base"]
    np.testing.assert_allclose(values, [1, 0, 0, 0, 0, 0, 1], atol=1e-12)
