"""The commands, end to end, on a small robot: what they write, print and say."""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import TWO_BARS, ok, run, said
from liedyn.io.trajectory_csv import read_trajectory

ROBOT = TWO_BARS.replace("mass: 2", "mass: 1")
SCENARIO = """
robot: robots/bars.yaml
gravity: [0, 0, -3.7]
duration: 0.2
output_step: 0.01
initial: {v: {knee: 1}}
joints:
  hip: {prescribe: {position: "0.3*sin(5*t)"}}
  knee: {torque: "0.1*cos(t)"}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "bars.yaml").write_text(ROBOT)
    (tmp_path / "swing.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture
def swing(folder):
    ok("simulate", "swing.yaml", "--no-plots")
    return read_trajectory("runs/swing/trajectory.csv")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


# --- simulate --------------------------------------------------------------------------------------------------------

def test_simulate_writes_a_run_folder_and_names_it(folder):
    result = ok("simulate", "swing.yaml")
    written = files("runs/swing")
    assert written[:2] == ["model.yaml", "plots/energy.png"]
    assert {"trajectory.csv", "run.json", "plots/motion.svg"} <= set(written)
    assert result.stdout == ""
    first, checks, *named = said(result)
    assert first.startswith("bars: 0.2 s in ") and checks.startswith("checks: energy balance ")
    assert named == ["wrote runs/swing/trajectory.csv", "      runs/swing/run.json"] + [
        f"      runs/swing/plots/{name}.png, .svg" for name in ("motion", "positions", "velocities", "torques", "energy")] + [
        "      runs/swing/replay.html"]


def test_simulate_as_json_and_quietly(folder):
    result = ok("simulate", "swing.yaml", "--json", "-q", "--no-plots", "-o", "here")
    assert json.loads(result.stdout) == json.loads(Path("here/run.json").read_text())
    assert result.stderr == "" and files("here") == ["model.yaml", "run.json", "trajectory.csv"]


def test_verbose_says_more(folder):
    result = ok("simulate", "swing.yaml", "--no-plots", "-v")
    assert "robot bars from " in result.stderr and "nq 2, nv 2, fixed base" in result.stderr
    assert "\nseconds: load " in result.stderr


def test_simulate_overrides(folder):
    ok("simulate", "swing.yaml", "--no-plots", "-S", "duration=0.05", "-S", "initial.v.knee=2")
    motion = read_trajectory("runs/swing/trajectory.csv")
    assert motion.t[-1] == 0.05 and motion.columns["v.knee"][0] == 2


def test_simulate_replaces_only_by_force(swing, folder):
    assert run("simulate", "swing.yaml").exit_code == 2
    ok("simulate", "swing.yaml", "--force", "--no-plots", "-S", "duration=0.05")
    assert read_trajectory("runs/swing/trajectory.csv").t[-1] == 0.05


def test_an_override_that_replaces_another_key_says_so(folder):
    """A torque of -S replaced the prescribed motion of the joint without a message."""
    result = ok("simulate", "swing.yaml", "--no-plots", "-S", "duration=0.05", "-S", "joints.hip.torque=0")
    assert "warning: override joints.hip.torque=0 replaces joints.hip.prescribe [override-replaces]\n" in result.stderr
    assert "replaces" not in ok("simulate", "swing.yaml", "--no-plots", "--force", "-S", "joints.knee.torque=0").stderr


def test_simulate_a_robot(folder):
    ok("simulate", "robots/bars.yaml", "--no-plots", "-S", "duration=0.05")
    assert files("runs/bars") == ["model.yaml", "run.json", "trajectory.csv"]


@pytest.mark.parametrize("override, words", [
    ("duration=-1", "duration"),
    ("speed=3", "speed"),
    ("joints.hop.torque=0", "hop"),
])
def test_a_bad_override_is_named_and_leaves_nothing(folder, override, words):
    result = run("simulate", "swing.yaml", "-S", override)
    assert result.exit_code == 3 and words in result.stderr
    assert not (folder / "runs").exists()


def test_strict_refuses_findings(folder):
    (folder / "robots" / "bars.yaml").write_text(ROBOT.replace("continuous", "revolute"))
    result = run("simulate", "swing.yaml", "--strict")
    assert result.exit_code == 4 and "limits-missing" in result.stderr and not (folder / "runs").exists()
    result = ok("simulate", "swing.yaml", "--no-plots")
    assert "warning: 1 warning about the robot bars; `liedyn check " in result.stderr
    assert "robots/bars.yaml` lists it" in result.stderr


# --- inverse, forward, hybrid ----------------------------------------------------------------------------------------

def test_inverse_returns_the_torques_of_the_simulation(swing):
    result = ok("inverse", "runs/swing/trajectory.csv")
    assert said(result) == ["wrote runs/swing/trajectory_inverse.csv: 8 columns, 21 rows"]
    again = read_trajectory("runs/swing/trajectory_inverse.csv")
    for joint in ("hip", "knee"):
        assert np.allclose(again.columns[f"tau.{joint}"], swing.columns[f"tau.{joint}"], rtol=0, atol=1e-12)
    assert again.units["tau.hip"] == "N m" and again.header["gravity"] == "0.0 0.0 -3.7"


def test_kinematics_writes_columns_that_pandas_and_plot_read(folder, swing):
    result = ok("kinematics", "runs/swing/trajectory.csv", "-l", "lower", "--point", "0", "0", "-0.4", "--jacobian", "--com",
                "--zmp")
    assert said(result) == ["wrote runs/swing/trajectory_kinematics.csv: 46 columns, 21 rows"]
    file = read_trajectory("runs/swing/trajectory_kinematics.csv")
    assert file.header["frame"].endswith("second derivative of its position; the point is 0.0 0.0 -0.4 in the link")
    hip, tip = swing.columns["q.hip"], swing.columns["q.hip"] + swing.columns["q.knee"]
    x = -0.4 * (np.sin(hip) + np.sin(tip))
    np.testing.assert_allclose(file.columns["pose.lower.px"], x, atol=1e-14)
    np.testing.assert_allclose(file.columns["jacobian.lower.vx/knee"], -0.4 * np.cos(tip), atol=1e-14)
    assert file.units["jacobian.lower.vx/knee"] == "m/rad" and file.units["zmp.force"] == "N"
    ok("plot", "runs/swing/trajectory_kinematics.csv", "-f", "svg")
    assert files("runs/swing/trajectory_kinematics_plots") == [f"{name}.svg" for name in (
        "centre_of_mass", "link_accelerations", "link_path", "link_poses", "link_speeds", "link_twists", "manipulability",
        "zero_moment_point")]
    for args, words in ((["-l", "lowre"], "no link of --link matches 'lowre'; did you mean lower?"),
                        ([], "there is nothing to compute: name a link with --link NAME")):
        wrong = run("kinematics", "runs/swing/trajectory.csv", "--force", *args)
        assert wrong.exit_code == 2 and words in wrong.stderr


def test_inverse_writes_what_joints_transmit(folder, swing):
    ok("inverse", "runs/swing/trajectory.csv", "--wrenches", "joint")
    file = read_trajectory("runs/swing/trajectory_inverse.csv")
    assert "axes of the joint's frame, fixed in the parent link" in file.header["wrench"]
    np.testing.assert_allclose(file.columns["wrench.knee.my"], file.columns["tau.knee"], atol=1e-13)     # without friction
    wrong = run("inverse", "runs/swing/trajectory.csv", "--wrenches", "link", "--order", "1", "--force")
    assert wrong.exit_code == 2 and "--wrenches cannot be combined with --order and --smooth" in wrong.stderr


def test_forward_and_hybrid_return_its_accelerations(swing):
    ok("forward", "runs/swing/trajectory.csv", "-o", "forward.csv")
    ok("hybrid", "runs/swing/trajectory.csv", "--prescribed", "h*", "-o", "hybrid.csv")
    for name in ("forward.csv", "hybrid.csv"):
        again = read_trajectory(name)
        for column in ("a.hip", "a.knee", "tau.hip", "tau.knee"):
            assert np.allclose(again.columns[column], swing.columns[column], rtol=0, atol=1e-10)


def test_a_result_is_itself_a_trajectory_wherever_it_stands(swing):
    ok("inverse", "runs/swing/trajectory.csv", "-o", "moved.csv")
    assert read_trajectory("moved.csv").header["robot"] == "robots/bars.yaml"
    ok("forward", "moved.csv")


def test_over_pipes(swing, folder):
    text = Path("runs/swing/trajectory.csv").read_text()
    result = ok("inverse", "-", "--robot", "robots/bars.yaml", input=text)
    assert result.stdout.startswith("# robot: robots/bars.yaml\n") and said(result) == []
    found = ok("inverse", "runs/swing/trajectory.csv", "-o", "-").stdout        # it names the model of the run, too
    assert [line for line in found.splitlines() if not line.startswith("# model")] == result.stdout.splitlines()
    again = ok("forward", "-", input=result.stdout)
    assert again.stdout.count("\n") == result.stdout.count("\n")


def test_derived_velocities_are_said(folder):
    rows = "".join(f"{k / 100},{np.sin(k / 100):.12f},0\n" for k in range(20))
    (folder / "q.csv").write_text("# robot: robots/bars.yaml\nt[s],q.hip[rad],q.knee[rad]\n" + rows)
    result = ok("inverse", "q.csv", "--json")
    report = json.loads(result.stdout)
    assert report["output"] == "q_inverse.csv" and report["rows"] == 20 and "tau.hip" in report["columns"]
    assert any("velocities and accelerations are derived" in one["message"] for one in report["warnings"])
    assert "warning: velocities and accelerations are derived" in result.stderr


@pytest.mark.parametrize("old, new, words", [
    ("q.hip[rad]", "q.hip[deg]", "column q.hip: wrong unit: expected rad, got 'deg'"),
    ("q.hip[rad]", "q.hop[rad]", "column q.hip: a column is missing: expected one for each coordinate, because there is "
                                 "q.knee, got 'q.hop'"),
    ("# base: fixed", "# base: flying", "# base: unknown kind of base: expected fixed or floating, got 'flying'"),
    ("robots/bars.yaml", "robots/none.yaml", "# robot: the robot file does not exist"),
])
def test_a_trajectory_that_does_not_fit(swing, folder, old, new, words):
    text = Path("runs/swing/trajectory.csv").read_text().replace("# model: model.yaml\n", "")
    assert old in text
    (folder / "runs" / "swing" / "other.csv").write_text(text.replace(old, new))
    result = run("inverse", "runs/swing/other.csv")
    assert result.exit_code == 3 and words in result.stderr
    assert not (folder / "runs" / "swing" / "other_inverse.csv").exists()


def test_a_pattern_that_matches_nothing(swing):
    result = run("hybrid", "runs/swing/trajectory.csv", "-p", "toe*")
    assert result.exit_code == 2 and "no moving joint matches 'toe*'; the names are hip, knee" in result.stderr


# --- info, check, plot -----------------------------------------------------------------------------------------------

def test_info(folder):
    result = ok("info", "robots/bars.yaml")
    assert result.stdout.startswith("bars: 2 moving joints, 2 links, fixed base\n") and result.stderr == ""
    assert json.loads(ok("info", "robots/bars.yaml", "--json").stdout)["nv"] == 2


def test_check(folder):
    result = ok("check", "robots/bars.yaml")
    assert result.stdout == "robots/bars.yaml: no warnings\n"
    (folder / "odd.yaml").write_text(ROBOT.replace("continuous", "revolute"))
    (folder / "bad.yaml").write_text(ROBOT.replace("mass: 1", "mass: -1"))
    result = run("check", "robots/bars.yaml", "odd.yaml")
    assert result.exit_code == 4
    assert "odd.yaml:8: knee: " in result.stdout and "[limits-missing]" in result.stdout
    assert result.stderr == "error: 1 warning in 1 robot of 2\n"
    result = run("check", "bad.yaml", "odd.yaml", "--json")
    assert result.exit_code == 3
    bad, odd = json.loads(result.stdout)
    assert "mass" in bad["error"] and [warning["code"] for warning in odd["warnings"]] == ["limits-missing"]
    assert result.stderr == "error: 1 robot of 2 cannot be used: bad.yaml\n"


def test_info_and_check_with_loops_beside_the_robot(folder):
    (folder / "tie.yaml").write_text("loops:\n  tie: {type: ball, a: {link: lower}, b: {link: world, xyz: [0, 0, -0.4]}}\n")
    assert "tie" in ok("info", "robots/bars.yaml", "--loops", "tie.yaml").stdout
    said = ok("check", "robots/bars.yaml", "--loops", "tie.yaml").stdout
    assert said.startswith("robots/bars.yaml: no warnings (1 loop, 3 equations)\n") and "hold hip" in said
    result = run("check", "robots/bars.yaml", "robots/bars.yaml", "--loops", "tie.yaml")
    assert result.exit_code == 2 and "--loops requires exactly one robot, got 2" in result.stderr
    (folder / "tie.yaml").write_text("loops:\n  tie: {type: knot}\n")
    for command in "info", "check":
        result = run(command, "robots/bars.yaml", "--loops", "tie.yaml")
        assert result.exit_code == 3 and "tie.yaml:2" in result.stdout + result.stderr


def test_plot_a_run_folder_and_a_file(swing):
    result = ok("plot", "runs/swing", "--json", "-f", "svg")
    assert json.loads(result.stdout)["plots"][0] == "runs/swing/plots/motion.svg"
    assert run("plot", "runs/swing", "-f", "svg").exit_code == 2
    ok("plot", "runs/swing", "-f", "svg", "--force")
    assert Path("runs/swing/plots/torques.svg").read_text().count("prescribed motion") >= 1
    ok("plot", "runs/swing/trajectory.csv", "-o", "pictures", "-f", "pdf")
    assert Path("pictures/energy.pdf").read_bytes().startswith(b"%PDF")


# --- the process -----------------------------------------------------------------------------------------------------

def test_as_a_process(folder):
    done = subprocess.run([sys.executable, "-m", "liedyn", "check", "swing.yaml"], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
