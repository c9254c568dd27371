"""`liedyn ik`: one target, a path from CSV to CSV, what is out of reach, and wrong options."""
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import liedyn as ld
from command_line import ok, run

ROBOTS = Path(__file__).parents[2] / "robots"
ARM = ROBOTS / "double_pendulum.yaml"


def test_one_target_is_an_initial_state():
    result = ok("ik", ARM, "--link", "tip", "--position=-0.4,0,0.2", "--q", "elbow=0.4")
    q = yaml.safe_load(result.stdout)["q"]
    model = ld.load(ARM)
    np.testing.assert_allclose(ld.link_pose(model, [q["shoulder"], q["elbow"]], "tip")[:3, 3], [-0.4, 0, 0.2], atol=1e-9)
    assert "target reached" in result.stderr


def test_json_and_several_options(tmp_path):
    report = json.loads(ok("ik", ROBOTS / "panda.yaml", "-l", "panda_hand", "--position", "0.4,0,0.5", "--direction", "0,0,-1",
                           "--posture", "panda_joint1=0.2", "--fix", "panda_finger*", "--json", "-o", tmp_path / "q.yaml").stdout)
    assert report["reached"] and report["tasks"] == ["panda_hand"] and report["q"]["panda_joint1"] == pytest.approx(0.2, abs=1e-6)
    assert yaml.safe_load((tmp_path / "q.yaml").read_text())["q"] == report["q"]
    T = ld.link_pose(ld.load(ROBOTS / "panda.yaml"), list(report["q"].values()), "panda_hand")
    np.testing.assert_allclose([*T[:3, 3], *T[:3, 2]], [0.4, 0, 0.5, 0, 0, -1], atol=1e-9)


@pytest.mark.parametrize("options, goal", [
    (["--rpy", "0.1,0.2,0.3"], lambda T: T[:3, 0] - [0.936293, 0.289629, -0.198669]),
    (["--quaternion", "0,0,0,1"], lambda T: T[:3, :3] - np.eye(3)),
    (["--look-at", "1,1,1", "--axis", "1,0,0"], lambda T: np.cross(T[:3, 0], np.ones(3) - T[:3, 3])),
    (["--position", "0.1,0.2,0.3", "--point", "0.1,0,0"], lambda T: T[:3, :3] @ [0.1, 0, 0] + T[:3, 3] - [0.1, 0.2, 0.3]),
    (["--pose", "1,2,3,0,0,0.5"], lambda T: [*T[:3, 3] - [1, 2, 3], np.arctan2(T[1, 0], T[0, 0]) - 0.5, T[2, 0], T[2, 1]]),
    (["--distance", "0.7"], lambda T: np.linalg.norm(T[:3, 3]) - 0.7)])
def test_every_kind_of_target(options, goal):
    q = yaml.safe_load(ok("ik", ROBOTS / "asymmetric_body.yaml", "-l", "block", *options).stdout)["q"]["base"]
    model = ld.load(ROBOTS / "asymmetric_body.yaml")
    assert np.abs(goal(ld.link_pose(model, q, "block"))).max() < 1e-6


def test_a_path_of_poses_comes_back(tmp_path):
    """Poses of a point of a link along a motion are reproduced by the motion of inverse kinematics."""
    model = ld.load(ROBOTS / "ur5.yaml")
    t = np.linspace(0, 1, 21)
    q = np.array([0.3, -1.2, 1.5, 0.4, 0.9, -0.4]) + 0.3 * np.sin(np.outer(t, np.arange(1, 7)))
    ld.trajectory_of(model, t, q).save(tmp_path / "q.csv")
    link, point = model.link_names[-1], ("--point", "0.1", "0", "0.05")
    ok("kinematics", tmp_path / "q.csv", "--link", link, *point, "-o", tmp_path / "path.csv")
    ok("ik", ROBOTS / "ur5.yaml", "--targets", tmp_path / "path.csv", "-o", tmp_path / "motion.csv",
       *(part for name, x in zip(model.joint_names, q[0], strict=True) for part in ("--q", f"{name}={x}")))
    ok("kinematics", tmp_path / "motion.csv", "--link", link, *point, "-o", tmp_path / "again.csv")
    first, second = (ld.read_trajectory(tmp_path / name) for name in ("path.csv", "again.csv"))
    poses = [name for name in first.columns if name.startswith("pose.")]
    assert len(poses) == 7 and max(np.abs(first.columns[name] - second.columns[name]).max() for name in poses) < 1e-9
    np.testing.assert_allclose(ld.motion_of(model, ld.read_trajectory(tmp_path / "motion.csv")).q, q, atol=1e-8)


TASKS = """
- {link: tip, position: [-0.4, 0, 0.2], axes: xz, weight: 2}
- {link: lower, direction: [0, 0, 1], priority: 2, name: upright}
"""


def test_a_file_of_tasks(tmp_path):
    (tmp_path / "tasks.yaml").write_text(TASKS)
    report = json.loads(run("ik", ARM, "--tasks", tmp_path / "tasks.yaml", "--q", "elbow=0.4", "--json", "--nearest").stdout)
    model = ld.load(ARM)
    tasks = [ld.Task(link="tip", position=[-0.4, 0, 0.2], axes="xz", weight=2),
             ld.Task(link="lower", direction=[0, 0, 1], priority=2, name="upright")]
    with pytest.warns(ld.LiedynWarning):
        ours = ld.inverse_kinematics(model, tasks, {"elbow": 0.4})
    assert report["tasks"] == ["tip", "upright"] and list(report["q"].values()) == ours.q.tolist()
    (tmp_path / "tasks.json").write_text('[{"link": "block", "pose": {"xyz": [1, 2, 3], "rpy": [0, 0, 0.5]}, '
                                         '"point": [0.1, 0, 0]}]')
    body = ROBOTS / "asymmetric_body.yaml"
    q = yaml.safe_load(ok("ik", body, "--tasks", tmp_path / "tasks.json").stdout)["q"]["base"]
    np.testing.assert_allclose(q, [1 - 0.1 * np.cos(0.5), 2 - 0.1 * np.sin(0.5), 3, 0, 0, np.sin(0.25), np.cos(0.25)], atol=1e-9)
    (tmp_path / "more.yaml").write_text("[{link: block, pose: [1, 2, 3, 0, 0, 0, 1]}, {centre_of_mass: [0, 0, 0], priority: 2}]")
    assert "of 2 " not in run("ik", body, "--tasks", tmp_path / "more.yaml", "--nearest").stderr


def test_a_file_of_tasks_adds_to_a_path(tmp_path):
    (tmp_path / "tasks.yaml").write_text("[{link: lower, direction: [0, 0, 1], priority: 2}]")
    (tmp_path / "path.csv").write_text("t[s],pose.tip.px[m],pose.tip.py[m],pose.tip.pz[m]\n0,-0.4,0,0.2\n1,-0.4,0,0.3\n")
    result = run("ik", ARM, "--targets", tmp_path / "path.csv", "--tasks", tmp_path / "tasks.yaml", "--json")
    assert json.loads(result.stdout)["tasks"] == ["tip", "lower"]


@pytest.mark.parametrize("text, message", [
    ("link: tip", "tasks.yaml:1: not a file of this kind: expected a list of tasks"), ("[]", "expected a list of tasks"),
    ("- {link: tip, positon: [1, 2, 3]}", "tasks.yaml:1: [0].positon: unknown key"),
    ("- {link: tip, position: [1, 2]}", "[0].position: expected a list of 3 numbers"),
    ("- {link: tip, position: [1, 2, 3], priority: 0}", "[0].priority: out of range: expected a number >= 1"),
    ("- {link: tip, position: [1, 2, 3], weight: 0}", "[0].weight: out of range"),
    ("- {link: tip, pose: {xyz: [1, 2, 3], rpi: [1, 2, 3]}}", "[0].pose.rpi: unknown key"),
    ("- {position: [1, 2, 3]}", "expected the name of a link")])
def test_wrong_files_of_tasks(tmp_path, text, message):
    (tmp_path / "tasks.yaml").write_text(text)
    result = run("ik", ARM, "--tasks", tmp_path / "tasks.yaml")
    assert result.exit_code in (2, 3) and message in result.stderr and result.stdout == ""


@pytest.mark.parametrize("command", [("ik", "--link", "c", "--distance", "1", "--force"), ("assemble",)])
def test_results_name_the_options_of_the_robot_file(command, tmp_path):
    (tmp_path / "loop.yaml").write_text("""links: {b: {mass: 1, inertia: [1, 1, 1]}, c: {mass: 1, inertia: [1, 1, 1]}}
joints:
  j: {type: continuous, parent: world, child: b, axis: [0, 1, 0]}
  k: {type: continuous, parent: b, child: c, axis: [0, 1, 0], origin: {xyz: [0, 0, -1]}}
loops: {l: {type: distance, a: world, b: {link: c, xyz: [0, 0, -1]}, length: 1}}
""")
    ok(command[0], tmp_path / "loop.yaml", *command[1:], "--package-root", tmp_path, "-o", tmp_path / "q.csv")
    comment = ld.read_trajectory(tmp_path / "q.csv").header["robot_options"]
    assert json.loads(comment) == {"package_roots": ["."]}


def test_out_of_reach_is_an_error_with_the_distance(tmp_path):
    result = run("ik", ARM, "--link", "tip", "--position", "9,0,2", "-o", tmp_path / "q.yaml")
    assert result.exit_code == 1 and not (tmp_path / "q.yaml").exists()
    assert "error: the target is not reached: tip misses by 7" in result.stderr
    result = run("ik", ARM, "--link", "tip", "--position", "9,0,2", "-o", tmp_path / "q.yaml", "--nearest")
    assert result.exit_code == 1 and "nearest configuration" in (tmp_path / "q.yaml").read_text()


def test_rows_out_of_reach_are_counted(tmp_path):
    (tmp_path / "path.csv").write_text("t[s],pose.tip.px[m],pose.tip.py[m],pose.tip.pz[m]\n0,-0.4,0,0.2\n1,9,0,0\n2,-0.4,0,0.3\n")
    for options, hint in ([], " (--independent also searches from --q and at random)"), (["--independent"], ""):
        result = run("ik", ARM, "--targets", tmp_path / "path.csv", "-o", tmp_path / "q.csv", *options)
        assert result.exit_code == 1 and "1 of 3 targets are not reached: target 1: tip misses by 7" in result.stderr
        assert result.stderr.endswith(f"rad{hint}\n")
    result = run("ik", ARM, "--targets", tmp_path / "path.csv", "-o", tmp_path / "q.yaml")
    assert result.exit_code == 2 and "q.yaml: expected a name that ends with .csv" in result.stderr


@pytest.mark.parametrize("options, message", [
    (["--position", "1,2,3"], "--position requires --link NAME"),
    (["--link", "tip"], "--link requires a target, such as --position X,Y,Z"),
    ([], "no target: give --link NAME with --position X,Y,Z, --com X,Y,Z, --tasks FILE.yaml, or --targets FILE.csv"),
    (["--link", "tip", "--position", "1,2"], "expected 3 numbers separated by commas, got '1,2'"),
    (["--link", "tip", "--position", "1,2,nan"], "expected 3 numbers separated by commas, got '1,2,nan'"),
    (["--link", "tip", "--rpy", "0,0,0", "--quaternion", "0,0,0,1"], "--rpy and --quaternion both give the orientation"),
    (["--com", "0,0,0", "--point", "1,2,3"], "--point requires --link NAME"),
    (["--com", "0,0,0", "--axis", "1,2,3"], "--axis requires --link NAME"),
    (["--link", "tip", "--position", "1,2,3", "--axis", "1,0,0"], "axis has no effect: it requires direction or look_at"),
    (["--link", "tip", "--direction", "1,2,3", "--point", "1,0,0"], "point has no effect: it requires pose or"),
    (["--link", "tip", "--position", "1,2,3", "-o", "x.txt"], "x.txt: expected a name that ends with .yaml or .yml or .csv"),
    (["--link", "tip", "--position", "1,2,3", "--posture", "elbow=x"], "posture elbow=x: 'x' is not a finite number"),
    (["--com", "0,0,0", "--independent"], "--independent requires --targets"),
    (["--link", "tipp", "--position", "1,2,3"], "no link 'tipp'; did you mean 'tip'?"),
    (["--link", "tip", "--position", "1,2,3", "--q", "elbw=1"], "no moving joint 'elbw'"),
    (["--link", "tip", "--position", "1,2,3", "--posture", "elbow"], "expected NAME=VALUE"),
    (["--link", "tip", "--position", "1,2,3", "--fix", "knee"], "no joint to fix matches 'knee'"),
    (["--link", "tip", "--position", "1,2,3", "--seed", "-1"], "-1 is not in the range x>=0"),
    (["--link", "tip", "--distance", "0"], "0.0 is not in the range x>0")])
def test_wrong_options(options, message):
    result = run("ik", ARM, *options)
    assert result.exit_code in (2, 3) and message in result.stderr and result.stdout == ""


@pytest.mark.parametrize("header, message", [
    ("t[s],pose.tip.px[m]", "the position of tip is incomplete: expected pose.tip.px, pose.tip.py"),
    ("t[s],pose.tip.px[cm],pose.tip.py[m],pose.tip.pz[m]", "column pose.tip.px: wrong unit: expected m, got 'cm'\n"),
    ("t[s],pose.tip.qx,pose.tip.qy,pose.tip.qz,pose.tip.qw[rad]", "column pose.tip.qw: wrong unit"),
    ("t[s],com.position.x[mm],com.position.y[m],com.position.z[m]", "wrong unit: expected m, got 'mm'\n"),
    ("t[s],pose.hand.px[m]", "poses of links that double_pendulum does not have"),
    ("t[s],q.elbow[rad]", "no targets: expected columns such as pose.hand.px[m], pose.hand.py[m]")])
def test_wrong_columns(tmp_path, header, message):
    rest = ",1" * header.count(",")
    (tmp_path / "path.csv").write_text(f"{header}\n0{rest}\n1{rest}\n")
    result = run("ik", ARM, "--targets", tmp_path / "path.csv")
    assert result.exit_code == 3 and message in result.stderr
    result = run("ik", ARM, "--targets", tmp_path / "path.csv", "--position", "1,2,3")
    assert result.exit_code == 2 and "--position cannot be combined with --targets" in result.stderr
