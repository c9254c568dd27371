"""`liedyn convert`: what it writes and says, and its errors."""
import json
from pathlib import Path

import numpy as np

import liedyn as ld
from command_line import ok, run, said

ROBOTS = Path(__file__).parents[2] / "robots"
SPRING = """\
links: {a: {mass: 1, inertia: [1, 1, 1]}}
joints: {j: {type: continuous, parent: world, child: a, axis: [0, 0, 1], stiffness: 2, armature: 0.1}}
"""


def test_there_and_back(tmp_path):
    """The YAML of the URDF of a YAML is the first YAML."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    assert said(ok("convert", ROBOTS / "ur5.yaml", "-o", first)) == [f"wrote {first}"]
    ok("convert", first, "-o", tmp_path / "a.urdf")
    ok("convert", tmp_path / "a.urdf", "-o", second)
    assert first.read_text() == second.read_text()


def test_a_mechanism_has_a_loops_file_beside(tmp_path):
    path = tmp_path / "bar.urdf"
    done = ok("convert", ROBOTS / "four_bar.yaml", "-o", path, "--json")
    beside = "loops, couplings and force elements are in bar.loops.yaml, which other programs do not read"
    assert json.loads(done.stdout) == {
        "files": [str(path), str(tmp_path / "bar.loops.yaml")], "format": "urdf", "losses": [],
        "rewritten": ['the ground is a link "world"', beside]}
    assert "constraints: 1 loop" in ok("info", path).stdout


def test_losses_are_listed_and_refused(tmp_path):
    robot, path = tmp_path / "spring.yaml", tmp_path / "spring.urdf"
    robot.write_text(SPRING)
    done = run("convert", robot, "-o", path)
    assert done.exit_code == 3 and not path.exists()
    assert said(done) == [
        f"error: {robot}: a URDF cannot describe the dynamics of this robot: j: the spring of stiffness 2 is left out; "
        "j: the armature 0.1 is left out (--lossy or lossy=True omits these parts and lists them)"]
    done = ok("convert", robot, "-o", path, "--lossy", "--json")
    assert said(done)[1:3] == ["warning: j: the spring of stiffness 2 is left out [not-written]",
                               "warning: j: the armature 0.1 is left out [not-written]"]
    assert json.loads(done.stdout)["losses"][1] == {"element": "j", "message": "the armature 0.1 is left out", "dynamics": True}


def test_a_mujoco_file(tmp_path):
    """Its spring and rotors are written to YAML; URDF does not support them."""
    between, path = tmp_path / "hopper.yaml", tmp_path / "hopper.urdf"
    done = ok("convert", ROBOTS / "hopper.xml", "-o", between)
    assert said(done) == [f"wrote {between}"]
    assert "stiffness: 2500" in between.read_text() and "shapes: [{" in between.read_text()
    assert run("convert", between, "-o", path).exit_code == 3
    assert "leg: the spring of stiffness 2500 is left out" in said(run("convert", between, "-o", path, "--lossy"))[4]
    for robot in (path, ROBOTS / "hopper.xml"):
        assert "nq 10, nv 9, mass 7.98025 kg" in ok("info", robot).stdout


def test_standard_output(tmp_path):
    done = ok("convert", ROBOTS / "asymmetric_body.yaml", "--base", "fixed", "-o", "-", "--to", "urdf")
    assert done.stdout.startswith('<?xml version="1.0"?>\n<robot name="asymmetric_body">') and "floating" not in done.stdout
    assert 'type="floating"' in ok("convert", ROBOTS / "asymmetric_body.yaml", "-o", "-", "--to", "urdf").stdout
    done = run("convert", ROBOTS / "four_bar.yaml", "-o", "-", "--to", "urdf")
    assert done.exit_code == 3 and "pin: it is left out: it needs a loops file next to the URDF" in done.stderr
    assert ok("convert", ROBOTS / "four_bar.yaml", "-o", "-", "--to", "yaml").stdout.startswith("name: four_bar\n")


def test_wrong_usage(tmp_path):
    robot, path = ROBOTS / "ur5.yaml", tmp_path / "a.urdf"
    for arguments, message in (
            (("-o", "-"), "--to is required with `-o -` and not allowed otherwise"),
            (("-o", path, "--to", "yaml"), "not allowed otherwise"),
            (("-o", "-", "--to", "urdf", "--json"), "cannot be combined: both write to stdout"), ((), "Missing option '-o'"),
            (("-o", tmp_path / "a.obj"), "unknown file name extension")):
        done = run("convert", robot, *arguments)
        assert done.exit_code == 2 and message in done.stderr, done.stderr
    ok("convert", robot, "-o", path)
    done = run("convert", robot, "-o", path)
    assert done.exit_code == 2 and said(done) == [f"error: {path} already exists; --force or force=True overwrites it"]
    ok("convert", robot, "-o", path, "--force")


def test_joints_are_fixed(tmp_path):
    """All other parts of a URDF are unchanged. A mimic joint is fixed together with the joint that it follows."""
    path = tmp_path / "pendulum.urdf"
    ok("convert", ROBOTS / "double_pendulum.urdf", "--fix", "elbow=0.3", "-o", path)
    model = ld.fix_joints(ld.load(ROBOTS / "double_pendulum.urdf"), {"elbow": 0.3})
    np.testing.assert_allclose(ld.load(path).constants, model.constants, atol=1e-12)
    ok("convert", ROBOTS / "gripper.urdf", "--fix", "left_crank=0.2", "-o", tmp_path / "gripper.yaml")
    assert ld.load(tmp_path / "gripper.yaml").joint_names == ("left_pad", "left_bar", "right_pad", "right_bar")
    for arguments, message in ((("--fix", "elbw=1"), "--fix elbw=1: no moving joint 'elbw'; the robot has shoulder, elbow"),
                               (("--fix", "elbow=1", "--fix", "elbow=2"), "--fix elbow: expected one value, got several"),
                               (("--fix", "elbow=1,2"), "--fix elbow=1,2: expected 1 number(s) for joint elbow")):
        done = run("convert", ROBOTS / "double_pendulum.urdf", *arguments, "-o", tmp_path / "b.yaml")
        assert done.exit_code == 2 and message in done.stderr, done.stderr
