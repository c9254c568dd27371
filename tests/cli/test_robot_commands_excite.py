"""`liedyn excite`: what it writes and says."""
import json

import numpy as np
import pytest

import liedyn as ld
from command_line import run as command

ROBOT = "robots/double_pendulum.yaml"
OPTIONS = ("--noise", "0.1", "--noise", "sh*=0.2", "--velocity", "elbow=2", "--torque", "40", "--position", "elbow=-1,1",
           "--harmonics", "2", "--starts", "1", "--with", "none")


def test_it_writes_the_motion_of_excite(tmp_path):
    path = tmp_path / "motion.csv"
    done = command("excite", ROBOT, *OPTIONS, "--rate", "50", "--duration", "6", "--period", "3", "--seed", "2", "--json", "-o",
                   path, "--floor", "-0.1", "--space", "x=-inf,1.5", "--jobs", "2", "--kind", "splines", "--from", "elbow=0.3")
    motion = ld.excite(ld.load(ROBOT), noise={"*": 0.1, "sh*": 0.2}, velocity={"elbow": 2.0}, torque=40.0, harmonics=2, starts=1,
                       position={"elbow": (-1.0, 1.0)}, joints=(), rate=50.0, duration=6.0, period=3.0, seed=2,
                       space={"z": (-0.1, np.inf), "x": (-np.inf, 1.5)}, kind="splines", q0={"elbow": 0.3})
    report, rows = json.loads(done.stdout), ld.read_trajectory(path)
    assert np.array_equal(rows.columns["a.elbow"], motion.trajectory().columns["a.elbow"]) and len(rows) == 301
    assert [x["deviation"] for x in report["base_parameters"]] == motion.deviations.tolist()
    assert report["noise"] == {"shoulder": 0.2, "elbow": 0.1} and report["log_det"] == motion.log_det
    assert report["kind"] == "splines" and "sine" not in report
    assert [x["kind"] for x in report["limits"]] == [use.kind for use in motion.limits]
    assert motion.summary in done.stderr
    fit = ld.identify(ld.load(ROBOT), rows.t, motion.at(rows.t).q, ld.inverse_dynamics(ld.load(ROBOT), *motion.at(rows.t)))
    assert "not excited" not in fit.verdicts


def test_it_prints_the_predicted_deviations_and_what_is_not_identifiable(tmp_path):
    done = command("excite", ROBOT, *OPTIONS, "--no-offset", "-o", tmp_path / "motion.csv")
    lines = done.stdout.splitlines()
    assert lines[0] == "double_pendulum: 6 base parameters of 20, and their predicted deviations"
    assert lines[1].split() == ["parameter", "robot", "file", "deviation", "relative", "unit", "stands", "for"]
    assert "no motion identifies: mass.upper, hy.upper, " in done.stdout
    text = command("excite", ROBOT, *OPTIONS).stdout
    assert text.startswith("# robot: ") and "predicted" not in text


def test_a_rehearsal(tmp_path):
    options = (*OPTIONS, "--rehearse", "--seed", "1", "--force", "-o", tmp_path / "motion.csv")
    lines = command("excite", ROBOT, *options).stdout.splitlines()
    assert lines[1].split()[:6] == ["parameter", "robot", "file", "deviation", "rehearsed", "error"]
    assert "rehearsal: the model explains the torques; root mean square" in " ".join(lines)
    report = json.loads(command("excite", ROBOT, *options, "--json").stdout)
    assert report["rehearsal"]["fit"]["verdict"] == "the model explains the torques"
    assert lines[2].split()[3] == f"{report['rehearsal']['base_parameters'][0]['deviation']:.2g}"


@pytest.mark.parametrize(("options", "text"), [
    (["--position", "elbow"], "position elbow: expected JOINT=LOWER,UPPER"),
    (["--position", "elbow=1,2,3"], "position['elbow'] must be two finite numbers, lower < upper, or -inf and inf, got "
     "(1.0, 2.0, 3.0)"),
    (["--position", "elbow=-1,1", "--position", "elbow=-2,2"], "position"),
    (["--space", "z"], "space z: expected AXIS=LOWER,UPPER"),
    (["--floor", "0", "--space", "z=0,1"], "space z: expected one value, got several"),
    (["--self-distance", "0.1"], "no distance can be limited: no two links that can move relative to each other"),
    (["--from", "elbow"], "start elbow: expected JOINT=VALUE or a keyframe; the robot has no keyframes"),
    (["--kind", "sines"], "Invalid value for '--kind': 'sines' is not one of 'fourier', 'splines'"),
    (["--jobs", "0"], "Invalid value for '-j' / '--jobs': 0 is not in the range x>=1"),
    (["--torque", "elbow=x"], "torque elbow must be a number > 0, got 'x'"),
    (["--with", "none", "--with", "friction"], "--with none cannot be combined with another --with"),
    (["--rehearse"], "--rehearse prints a table; name a file for the CSV with -o"),
    (["--json"], "--json and a CSV cannot both go to stdout"),
])
def test_errors(options, text):
    done = command("excite", ROBOT, "--noise", "1", "--velocity", "1", *options)
    assert done.exit_code in (2, 3) and text in done.stderr and done.stderr.count("\n") == 1
