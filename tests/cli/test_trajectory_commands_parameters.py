"""The command `liedyn parameters`, end to end on a small robot: table, CSV, JSON, the fit, and errors."""
import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import TWO_BARS, ok, run
from liedyn.io.trajectory_csv import read_trajectory, write_trajectory

ROOT = Path(__file__).parents[2]
SCENARIO = """
robot: bars.yaml
gravity: [0, 0, -3.7]
duration: 3
output_step: 0.01
joints:
  hip: {prescribe: {position: "0.7*sin(3*t)"}}
  knee: {prescribe: {position: "0.9*sin(2*t) + 0.3*cos(5*t)"}}
"""
NAMES = ["hx.upper", "hz.upper", "Iyy.upper", "hx.lower", "hz.lower", "Iyy.lower", "damping.hip", "damping.knee"]
VALUES = [0, -0.2 - 0.8, 0.06 + 0.32, 0, -0.4, 0.1, 0.1, 0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bars.yaml").write_text(TWO_BARS)
    return tmp_path


@pytest.fixture
def motion(folder):
    """Run the robot of the file; then remove the masses and the damping from the file."""
    (folder / "swing.yaml").write_text(SCENARIO)
    ok("simulate", "swing.yaml", "--no-plots")
    (folder / "guess.yaml").write_text(TWO_BARS.replace("mass: 2", "mass: 1").replace("damping: 0.1", "damping: 0.5"))
    return "runs/swing/trajectory.csv"


def test_help_shows_examples():
    result = ok("parameters", "--help")
    example = " ".join(result.output.replace("\\", "").split())
    assert "liedyn parameters robots/ur5.yaml --from runs/ur5_excite/trajectory.csv --with friction" in example


def test_the_table(folder):
    lines = ok("parameters", "bars.yaml").stdout.splitlines()
    assert lines[0] == "bars: 8 base parameters of 22, fixed base"
    assert lines[1].split() == ["parameter", "robot", "file", "unit", "stands", "for"]
    assert [line.split()[0] for line in lines[2:10]] == NAMES
    assert "  -1  kg m       hz.upper - 0.4 mass.lower" in lines[3]
    assert lines[10].startswith("without effect on the generalized forces: mass.upper, hy.upper, ")


def test_as_json_and_as_csv(folder):
    result = ok("parameters", "bars.yaml", "--json", "-o", "out.csv")
    report = json.loads(result.stdout)
    assert [one["name"] for one in report["base_parameters"]] == NAMES
    np.testing.assert_allclose([one["value"] for one in report["base_parameters"]], VALUES, atol=1e-12)
    stands_for = report["base_parameters"][1]["stands_for"]
    assert stands_for == {"hz.upper": 1.0, "mass.lower": pytest.approx(-0.4, abs=1e-12)}
    assert report["parameters"] == 22 and "mass.upper" in report["unidentifiable"] and report["condition"] > 1
    assert "wrote out.csv: 8 base parameters" in result.stderr
    with open("out.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["name", "unit", "value", "stands_for"] and [row[0] for row in rows] == NAMES
    np.testing.assert_allclose([float(row[2]) for row in rows], VALUES, atol=1e-12)
    assert ok("parameters", "bars.yaml", "-o", "-").stdout == Path("out.csv").read_text()


@pytest.mark.parametrize("options, count", [
    (["--with", "none"], 6), (["--with", "damping"], 8), (["--with", "armature", "--with", "friction"], 9),
    (["--with", "stiffness"], 10), (["--base", "fixed"], 8), (["--tolerance", "0"], 8), (["-q"], 8),
])
def test_options(folder, options, count):
    """The armature of the hip is regrouped with Iyy.upper; that of the knee is a separate parameter."""
    assert ok("parameters", "bars.yaml", *options).stdout.startswith(f"bars: {count} base parameters of ")


def test_a_floating_base(folder):
    (folder / "free.yaml").write_text("links: {body: {mass: 1, inertia: [1, 1, 1]}}\njoints: {}\n")
    result = ok("parameters", "free.yaml", "--base", "floating")
    assert result.stdout.startswith("free: 10 base parameters of 10, floating base\n") and "no force" not in result.stdout


def test_from_a_motion_the_true_robot_comes_out(motion):
    result = ok("parameters", "guess.yaml", "--from", motion, "--json", "-o", "fit.csv")
    report = json.loads(result.stdout)
    np.testing.assert_allclose([one["estimate"] for one in report["base_parameters"]], [*VALUES, 0, 0], atol=1e-9)
    assert [one["verdict"] for one in report["base_parameters"]] == 10 * ["reliable"]
    assert all(0 <= one["deviation"] < 1e-8 for one in report["base_parameters"])
    fit = report["fit"]
    assert fit["rows"] == 301 and 1 < fit["condition"] < 1e3 and set(fit["residual"]) == {"hip", "knee"}
    with open("fit.csv", newline="") as file:
        assert next(csv.reader(file)) == ["name", "unit", "value", "estimate", "deviation", "relative_deviation", "scale_error",
                                          "verdict", "stands_for"]
    quiet = ok("parameters", "guess.yaml", "--from", motion, "-q", "-o", "quiet.csv")
    assert quiet.stdout == quiet.stderr == "" and Path("quiet.csv").read_text() == Path("fit.csv").read_text()
    text = ok("parameters", "guess.yaml", "--from", motion, "-v").stdout
    assert "estimate" in text and "fitted to 301 rows, condition " in text and "of its force" in text
    head, hip = text.partition("fitted to")[2].splitlines()[1:3]
    assert "noise and kinks" in head and "independent fraction" in head and hip.startswith("hip") and hip.count(" N m") == 2


def test_from_measurements_the_true_robot_comes_out_and_a_wrong_torque_constant_is_named(motion):
    sensors = ("sensors={e: {type: encoder, rate: 100, noise: 1e-5, dropout: 0.02}, "
               "m: {type: torque, rate: 100, noise: 0.01, scale: {knee: %s}}}")
    for scale in (1.0, 1.2):
        ok("simulate", "swing.yaml", "--no-plots", "--force", "-S", sensors % scale)
        result = ok("parameters", "guess.yaml", "--from", "runs/swing/measurements.csv")
        assert "rows-left-out" in result.stderr
        assert ("a wrong scale of the torque" in result.stdout) is (scale != 1.0)
        lines = [line.split()[:4] for line in result.stdout.splitlines() if scale == 1.0 and " reliable " in line]
        assert len(lines) == (8 if scale == 1.0 else 0)
        for name, _, estimate, deviation in lines:
            assert abs(float(estimate) - dict(zip(NAMES, VALUES, strict=True)).get(name, 0)) < 4 * float(deviation), name


def test_the_gravity_of_the_recording_counts_and_another_file_is_told(motion):
    result = ok("parameters", "guess.yaml", "--from", motion)
    assert "guess.yaml differs from the robot file that runs/swing/trajectory.csv was recorded with" in result.stderr


def test_a_motion_that_excites_nothing(folder):
    rows = "".join(f"{k / 10},0.1,0.2,-3,1\n" for k in range(20))
    (folder / "still.csv").write_text("t[s],q.hip[rad],q.knee[rad],tau.hip[N m],tau.knee[N m]\n" + rows)
    result = ok("parameters", "bars.yaml", "--from", "still.csv", "--json", "-o", "fit.csv")
    assert "the recording does not excite" in result.stderr
    with open("fit.csv", newline="") as file:
        assert {row["deviation"] for row in csv.DictReader(file)} >= {""}          # no word where a spreadsheet wants a number
    report = json.loads(result.stdout)
    assert None in [one["deviation"] for one in report["base_parameters"]] and report["fit"]["condition"] is None
    text = ok("parameters", "bars.yaml", "--from", "still.csv", "-q")
    assert "NOT EXCITED" in text.stdout and "which do not excite all parameters" in text.stdout and text.stderr == ""


def test_angles_that_are_rounded_are_told(folder):
    (folder / "odd.yaml").write_text(TWO_BARS.replace("axis: [0, 1, 0], limits", "axis: [0, 0, 1], limits").replace(
        "damping: 0.1", "origin: {rpy: [1.0e-5, 0, 0]}"))
    result = ok("parameters", "odd.yaml")
    assert "have an effect below 1e-4 of that of others" in result.stderr and "--tolerance 1e-4" in result.stderr
    assert "an effect below 1e-4" not in ok("parameters", "odd.yaml", "--tolerance", "1e-4").stderr


def test_lines_for_people_have_80_columns(motion):
    """-v, JSON and CSV contain all columns, and a message names those that are left out."""
    short, long = (ok("parameters", ROOT / "robots/ur5.yaml", *more).stdout.splitlines() for more in ([], ["-v"]))
    assert max(map(len, short)) <= 80 < max(map(len, long))
    assert short[2].endswith("Izz.shoulder_link … 8 more") and "mass.wrist_3_link" in long[2]
    humanoid = ok("parameters", ROOT / "robots/humanoid.yaml", "--base", "fixed").stdout.splitlines()
    assert max(map(len, humanoid)) <= 80 and "without effect on the generalized forces: " in "\n".join(humanoid)
    short, long = (ok("parameters", "guess.yaml", "--from", motion, *more).stdout for more in ([], ["-v"]))
    assert max(map(len, short.splitlines())) <= 80
    omitted = re.search(r"--verbose also prints the columns ([^;]*?)\nfitted to", short)[1].replace("\n", " ").split(", ")
    assert "scale error" in omitted and all(name in long and name not in short.splitlines()[1] for name in omitted)


def test_the_excited_ur5_tells_its_gripper_and_its_friction(tmp_path, monkeypatch):
    """The steps of configs/ur5_excite.yaml identify what the file of the bare arm lacks."""
    monkeypatch.chdir(tmp_path)
    ok("simulate", ROOT / "configs/ur5_excite.yaml", "--no-plots")
    result = ok("parameters", ROOT / "robots/ur5.yaml", "--from", "runs/ur5_excite/trajectory.csv", "--with", "friction",
                "--with", "damping", "--json")
    report = json.loads(result.stdout)
    true = ld.base_parameters(ld.load(ROOT / "robots/ur5_gripper.yaml"), passive=True, joints=("friction", "damping", "offset"))
    assert tuple(one["name"] for one in report["base_parameters"]) == true.names
    np.testing.assert_allclose([one["estimate"] for one in report["base_parameters"]], true.values, atol=1e-9)
    found = {one["name"]: one for one in report["base_parameters"]}
    assert found["friction.wrist_1_joint"]["value"] == 0 and found["friction.wrist_1_joint"]["estimate"] == pytest.approx(1.2)
    assert report["fit"]["condition"] < 50 and {one["verdict"] for one in found.values()} == {"reliable"}


@pytest.mark.parametrize("args, status, words", [
    ([], 2, "Missing argument 'ROBOT'"),
    (["none.yaml"], 2, "'none.yaml' does not exist"),
    (["bars.yaml", "--with", "stiction"], 2, "'stiction' is not one of"),
    (["bars.yaml", "--with", "none", "--with", "damping"], 2, "--with none cannot be combined with another --with"),
    (["bars.yaml", "--tolerance", "1"], 2, "1.0 is not in the range 0<=x<1"),
    (["bars.yaml", "--tolerance", "-1"], 2, "-1.0 is not in the range"),
    (["bars.yaml", "--json", "-o", "-"], 2, "--json and a CSV cannot both be written to stdout"),
    (["bars.yaml", "-o", "bars.yaml"], 2, "bars.yaml already exists; --force or force=True overwrites it"),
    (["bars.yaml", "-o", "no/out.csv"], 2, "the folder no does not exist"),
    (["bars.yaml", "--base", "flying"], 2, "'flying' is not one of"),
    (["bars.yaml", "--from", "none.csv"], 2, "'none.csv' does not exist"),
    (["bars.yaml", "--from", "bars.yaml"], 3, "bars.yaml:2: this is a robot file, not a trajectory"),
    (["bars.yaml", "--from", "q.csv"], 3, "q.csv: there are no columns of the generalized forces"),
    (["bars.yaml", "--from", "three.csv"], 3, "3 row(s) are not enough for derivatives of order 2 with a spline of degree 7"),
    (["bars.yaml", "--from", "short.csv"], 3, "short.csv: the trajectory is too short for the number of parameters: expected "
                                              "at least 10, got '6 equations'"),
    (["still.yaml"], 3, "the robot still has no moving joint: no force depends on its parameters"),
])
def test_what_is_refused(folder, args, status, words):
    (folder / "q.csv").write_text("t[s],q.hip[rad],q.knee[rad]\n" + "".join(f"{k},{k},0\n" for k in range(5)))
    (folder / "three.csv").write_text("t[s],q.hip[rad],q.knee[rad],tau.hip[N m],tau.knee[N m]\n" + "".join(
        f"{k},{k},0,1,1\n" for k in range(3)))
    (folder / "short.csv").write_text("t,q.hip,q.knee,tau.hip,tau.knee,v.hip,v.knee,a.hip,a.knee\n" + "".join(
        f"{k},{k},0,{k},{k},1,0,0,0\n" for k in range(3)))
    (folder / "still.yaml").write_text("links: {block: {mass: 1, inertia: [1, 1, 1]}}\njoints: {}\n")
    before = sorted(folder.rglob("*"))
    result = run("parameters", *args)
    assert result.exit_code == status and words in result.stderr, result.output
    lines = [line for line in result.stderr.splitlines() if "… " not in line and not line.startswith("information: ")]
    assert len(lines) == 1 and lines[0].startswith("error: ") and result.stdout == ""
    assert sorted(folder.rglob("*")) == before


def test_strict_and_force(folder):
    (folder / "odd.yaml").write_text(TWO_BARS.replace("continuous", "revolute"))
    assert run("parameters", "odd.yaml", "--strict").exit_code == 4
    (folder / "out.csv").write_text("old")
    ok("parameters", "bars.yaml", "-o", "out.csv", "--force")
    assert Path("out.csv").read_text().startswith("name,unit,value")


@pytest.fixture
def noisy(motion):
    """Return positions of the run at 100 Hz with noise of a milliradian, and its forces, without velocities and accelerations."""
    file = read_trajectory(motion)
    rng = np.random.default_rng(0)
    columns = [(name, file.units[name], x + 1e-3 * rng.standard_normal(len(x)) * name.startswith("q."))
               for name, x in file.columns.items() if name.startswith(("q.", "tau."))]
    write_trajectory("noisy.csv", {**file.header, "robot": "guess.yaml"}, file.t, columns)
    return "noisy.csv"


def test_noisy_positions_are_smoothed_by_default_and_otherwise_marked(noisy):
    smooth, rough = (ok("parameters", "guess.yaml", "--from", noisy, "--no-offset", "--json", *options)
                     for options in ([], ["--smooth", "none"]))
    assert "v and a are derived from q by splines of degree 7 with a knot every " in smooth.stderr
    assert "estimated noise of the positions: at most 0.00" in smooth.stderr and "NOT RELIABLE" not in smooth.stderr
    found = json.loads(smooth.stdout)["base_parameters"]
    assert not any(one["verdict"] == "not reliable" for one in found)
    off = [abs(one["estimate"] - true) / one["deviation"] for one, true in zip(found, VALUES, strict=True)]
    assert max(off) < 5                                                # of 8 numbers
    assert "NOT RELIABLE: " in rough.stderr and "through every row" in rough.stderr
    marked = {one["name"] for one in json.loads(rough.stdout)["base_parameters"] if one["verdict"] == "not reliable"}
    assert {"Iyy.upper", "Iyy.lower"} <= marked
    text = ok("parameters", "guess.yaml", "--from", noisy, "--no-offset", "--smooth", "none", "-o", "fit.csv").stdout
    assert "\nNOT RELIABLE: " in text and "verdict" in text.splitlines()[1]
    with open("fit.csv", newline="") as file:
        assert {row["name"] for row in csv.DictReader(file) if row["verdict"] == "not reliable"} == marked


def test_a_smoothing_length(noisy):
    assert "with a knot every 20 rows (0.2 s)" in ok("parameters", "guess.yaml", "--from", noisy, "--smooth", "0.2").stderr
    for value in ("0", "-1", "nan", "inf", "much"):
        result = run("parameters", "guess.yaml", "--from", noisy, "--smooth", value)
        assert result.exit_code == 2 and "expected a positive number of seconds, or 'auto' or 'none'" in result.stderr
    result = run("parameters", "guess.yaml", "--smooth", "auto")
    assert result.exit_code == 2 and "--smooth requires --from" in result.stderr
