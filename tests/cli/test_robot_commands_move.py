"""`liedyn move`: what it writes and says."""
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from command_line import run as command

ROBOT = "robots/double_pendulum.yaml"


def test_it_writes_the_motion_of_plan_move(tmp_path):
    path = tmp_path / "motion.csv"
    done = command("move", ROBOT, "--from", "elbow=0.2", "--to", "shoulder=1", "--to", "elbow=-0.5", "--acceleration", "3",
                   "--acceleration", "sh*=2", "--velocity", "1.5", "--jerk", "40", "-o", path, "--json")
    model = ld.load(ROBOT)
    move = ld.plan_move(model, [1.0, -0.5], [0.0, 0.2], velocity=1.5, acceleration={"*": 3, "shoulder": 2}, jerk=40)
    report = json.loads(done.stdout)
    assert report == {"output": str(path), "duration": move.duration, "limiting": ["shoulder"], "rows": len(move.trajectory())}
    assert "limited by shoulder" in done.stderr and f"duration {move.duration:.6g} s" in done.stderr
    assert np.array_equal(ld.read_trajectory(path).columns["a.elbow"], move.trajectory().columns["a.elbow"])


@pytest.mark.parametrize(("arguments", "text"), [
    (("move", "robots/iiwa.yaml", "--from", "joint_6=2.9", "--to", "joint_6=0", "-o", "motion.csv"), "joint_6 starts at 2.9 rad"),
    (("convert", "robots/iiwa.yaml", "--fix", "joint_6=2.9", "-o", "fixed.yaml"), "joint_6 is fixed at 2.9 rad"),
    (("excite", "robots/iiwa.yaml", "--self-distance", "0.05", "--starts", "1", "--harmonics", "2", "--duration", "2", "-o",
      "excite.csv"), "link_5 and link_7 is not limited, and they may touch")])
def test_warnings_of_functions_are_printed(arguments, text, tmp_path):
    *first, name = arguments
    done = command(*first, tmp_path / name)
    assert text in done.stderr and "warning: " in done.stderr
    assert text not in command(*first, tmp_path / name, "--force", "--quiet").stderr


def test_a_link_moves_to_a_target_near_the_start(tmp_path):
    model, path = ld.load("robots/ur5.yaml"), tmp_path / "motion.csv"
    start = np.array([0.1, -1.2, 1.5, 0.4, 0.8, 0.2])
    near = start + np.array([0.3, 0.2, -0.3, 0.2, 0.1, 0.4])
    T = ld.link_pose(model, near, "tool0")
    values = [f"--from={name}={x}" for name, x in zip(model.joint_names, start, strict=True)]

    def end(*options):
        command("move", "robots/ur5.yaml", *values, "--link", "tool0", *options, "--acceleration", "5", "-o", path, "--force")
        q = ld.motion_of(model, ld.read_trajectory(path)).q
        np.testing.assert_array_equal(q[0], start)
        return q[-1]
    pose = np.r_[T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_euler("xyz")]
    np.testing.assert_allclose(end("--pose=" + ",".join(map(str, pose))), near, atol=1e-8)
    q = end("--position=" + ",".join(map(str, pose[:3])), "--to", "wrist_1_joint=0.5", "--to", "wrist_3_joint=-0.1")
    np.testing.assert_allclose(ld.link_pose(model, q, "tool0")[:3, 3], pose[:3], atol=1e-9)
    np.testing.assert_allclose(q[[3, 5]], [0.5, -0.1], atol=1e-12)
    assert np.abs(q - start).max() < 1.0


@pytest.mark.parametrize("arguments, status, message", [
    (["--to", "home"], 2, "target home: expected JOINT=VALUE or a keyframe; the robot has no keyframes"),
    (["--to", "elbow=x"], 2, "'x' is not a finite number"), (["--to", "elbow=1"], 2, "no acceleration limit of elbow"),
    (["--to", "elbow=1", "--acceleration", "fast"], 2, "acceleration * must be a number > 0, got 'fast'"),
    (["--to", "elbow=1", "--to", "elbow=2"], 2, "target elbow: expected one value, got several"),
    (["--to", "elbow=1", "--jerk", "1", "--jerk", "2"], 2, "jerk *: expected one value, got several"),
    (["--to", "elbow=1", "--acceleration", "2", "--duration", "0.1"], 1, "the motion takes at least"),
    ([], 2, "no target: give --to JOINT=VALUE, or --link NAME with a target"),
    (["--link", "tip", "--position", "9,0,0", "--acceleration", "2"], 1, "the target is not reached: tip misses by"),
    (["--link", "tip", "--pose", "1,2,3"], 2, "expected 6 numbers separated by commas")])
def test_wrong_options_write_nothing(arguments, status, message, tmp_path):
    done = command("move", ROBOT, *arguments, "-o", tmp_path / "motion.csv")
    assert (done.exit_code, (tmp_path / "motion.csv").exists()) == (status, False)
    assert message in done.stderr
