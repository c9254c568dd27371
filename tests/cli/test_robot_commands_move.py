"""`liedyn move`: what it writes and says."""
import json

import numpy as np
import pytest

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


@pytest.mark.parametrize("arguments, status, message", [
    (["--to", "home"], 2, "target home: expected JOINT=VALUE or a keyframe; the robot has no keyframes"),
    (["--to", "elbow=x"], 2, "'x' is not a finite number"), (["--to", "elbow=1"], 2, "no acceleration limit of elbow"),
    (["--to", "elbow=1", "--acceleration", "fast"], 2, "acceleration * must be a number > 0, got 'fast'"),
    (["--to", "elbow=1", "--to", "elbow=2"], 2, "target elbow: expected one value, got several"),
    (["--to", "elbow=1", "--jerk", "1", "--jerk", "2"], 2, "jerk *: expected one value, got several"),
    (["--to", "elbow=1", "--acceleration", "2", "--duration", "0.1"], 1, "the motion takes at least"), ([], 2, "--to")])
def test_wrong_options_write_nothing(arguments, status, message, tmp_path):
    done = command("move", ROBOT, *arguments, "-o", tmp_path / "motion.csv")
    assert (done.exit_code, (tmp_path / "motion.csv").exists()) == (status, False)
    assert message in done.stderr
