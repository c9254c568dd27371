"""--order and --smooth of inverse, forward and hybrid, end to end: what they write, what they say and errors."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run, said
from liedyn.io.trajectory_csv import read_trajectory
from messages import has_parts
from sampled_motion import motion, noisy, record, table

ROOT = Path(__file__).parents[2]
ROBOT = """
name: acrobat
base: floating
links:
  trunk: {mass: 3, com: [0, 0.02, 0.1], inertia: [0.05, 0.04, 0.02]}
  arm: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
  hand: {mass: 0.5, com: [0, 0, -0.1], inertia: [0.002, 0.003, 0.001]}
joints:
  shoulder: {type: ball, parent: trunk, child: arm, origin: {xyz: [0, 0.2, 0.3]}}
  elbow: {type: revolute, parent: arm, child: hand, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.4]},
          limits: {lower: -9, upper: 9}, damping: 0.1}
"""
T = np.arange(200) * 0.01


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return a model in a folder with its motion as q.csv (positions) and all.csv (inputs of inverse dynamics of order 3)."""
    monkeypatch.chdir(tmp_path)
    Path("acrobat.yaml").write_text(ROBOT)
    model = ld.load("acrobat.yaml")
    q, v = motion(model, T, 5)
    record(tmp_path / "q.csv", model, T, q=q)
    record(tmp_path / "noisy.csv", model, T, q=noisy(model, q, 1e-6))
    record(tmp_path / "all.csv", model, T, q=q, v=v[:, 0], a=v[:, 1], d1a=v[:, 2], d2a=v[:, 3], d3a=v[:, 4])
    return model


@pytest.mark.parametrize("command", ["inverse", "forward", "hybrid"])
def test_help_shows_an_example(command):
    text = ok(command, "--help").output
    assert "--order 2" in text.partition("Options:")[0] and "--smooth SECONDS|auto" in text


def test_round_trip(model):
    """Forward and hybrid dynamics of the result of inverse dynamics of order 3 return the motion. Nothing is derived."""
    result = ok("inverse", "all.csv", "--order", 3)
    assert said(result) == ["wrote all_inverse.csv: 102 columns, 200 rows"]
    forces, given = read_trajectory("all_inverse.csv"), read_trajectory("all.csv").columns
    assert [forces.units[f"{kind}.elbow"] for kind in ("tau", "d1tau", "d3tau")] == ["N m", "N m/s", "N m/s^3"]
    assert forces.units["d3tau.base.fz"] == "N/s^3" and forces.units["d2a.shoulder.dwx"] == "rad/s^4"
    for command, *options in (("forward",), ("hybrid", "-p", "base")):
        assert len(said(ok(command, "all_inverse.csv", "--order", 3, "-o", f"{command}.csv", *options))) == 1
        again = read_trajectory(f"{command}.csv")
        assert list(again.columns) == list(forces.columns)
        expected, found = table(model, given, "a", 4), table(model, again.columns, "a", 4)
        assert (np.abs(found - expected).max(axis=(0, 2)) < 1e-8 * np.abs(expected).max(axis=(0, 2))).all()


def test_from_positions(model):
    result = ok("inverse", "q.csv", "--order", 2, "--json")
    report = json.loads(result.stdout)
    assert report["output"] == "q_inverse.csv" and report["rows"] == 200 and "d2tau.base.mx" in report["columns"]
    first, second = (one["message"] for one in report["warnings"])
    assert first == "v, a, d1a and d2a are derived from q by splines of degree 9 through every row"
    assert second.startswith("estimated error (maximum): tau ") and "within 5 rows of the ends" in second
    assert f"warning: {first}" in result.stderr
    ok("inverse", "all.csv", "--order", 2)
    exact, found = (table(model, read_trajectory(f"{name}_inverse.csv").columns, "tau", 3)[10:-10] for name in ("all", "q"))
    assert (np.abs(found - exact).max(axis=(0, 2)) < [1e-9, 1e-7, 1e-5]).all()
    assert read_trajectory("q_inverse.csv").header["derived"] == first


def test_noise_is_said_and_smoothed(model):
    rough, smooth = (ok("inverse", "noisy.csv", "--order", 2, "-o", f"{name}.csv", *options)
                     for name, *options in (("rough",), ("smooth", "--smooth", "auto")))
    assert "warning: NOT RELIABLE: " in rough.stderr and "NOT RELIABLE" not in smooth.stderr
    assert "derived from q by splines of degree 9 with a knot every " in smooth.stderr
    ok("inverse", "all.csv", "--order", 2)
    exact, rough, smooth = (table(model, read_trajectory(f"{name}.csv").columns, "tau", 3)[50:-50, 2]
                            for name in ("all_inverse", "rough", "smooth"))
    assert np.abs(smooth - exact).max() < 0.05 * np.abs(exact).max() < np.abs(rough - exact).max()


def test_a_smoothing_length(model):
    assert "with a knot every 12 rows (0.12 s)" in ok("inverse", "noisy.csv", "--order", 1, "--smooth", 0.12).stderr
    result = ok("inverse", "noisy.csv", "--smooth", 0.12, "--force", "-o", "order0.csv")
    assert "v and a are derived from q by splines of degree 7 with a knot every 12 rows" in result.stderr


def test_order_zero_is_as_without(model):
    plain, zero = ok("inverse", "q.csv", "-o", "-"), ok("inverse", "q.csv", "-o", "-", "--order", 0)
    assert plain.stdout == zero.stdout and "polynomials through seven" in zero.stderr and "d1tau" not in zero.stdout


def test_over_pipes(model):
    result = ok("inverse", "-", "--robot", "acrobat.yaml", "--order", 1, input=Path("q.csv").read_text())
    assert "d1tau.elbow[N m/s]" in result.stdout and "are derived from q" in result.stderr
    again = ok("forward", "-", "--order", 1, input=result.stdout)
    assert again.stdout.count("\n") == result.stdout.count("\n") and len(said(again)) == 0


def test_the_result_is_drawn(model):
    """Rates of forces and accelerations are not drawn."""
    ok("inverse", "all.csv", "--order", 2)
    pictures = json.loads(ok("plot", "all_inverse.csv", "-f", "svg", "-o", "pictures", "--json").stdout)["plots"]
    assert {"pictures/torques.svg", "pictures/positions.svg"} <= set(pictures)


def test_the_recorded_example(tmp_path):
    """Rounding of the encoders makes d1tau useless. After smoothing, d2tau is accurate to a percent."""
    csv = ROOT / "configs/ur5_encoders.csv"
    rough = ok("inverse", csv, "--order", 2, "-o", tmp_path / "rough.csv")
    assert "NOT RELIABLE: d1tau and higher derivatives, error 50% or more" in rough.stderr
    smooth = ok("inverse", csv, "--order", 2, "--smooth", "auto", "-o", tmp_path / "smooth.csv")
    assert "NOT RELIABLE" not in smooth.stderr and "splines of degree 9 with a knot every " in smooth.stderr
    assert "wrist_2_joint 12, wrist_3_joint 9" in smooth.stderr


# errors ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options, words", [
    (("--order", "-1"), "Invalid value for '--order': -1 is not in the range 0<=x<=170"),
    (("--order", "1.5"), "Invalid value for '--order': '1.5' is not a valid integer"),
    (("--order", "two"), "Invalid value for '--order': 'two' is not a valid integer"),
    (("--smooth", "0"), "Invalid value for '--smooth': expected a positive number of seconds, or 'auto', got '0'"),
    (("--smooth", "-1"), "got '-1'"), (("--smooth", "nan"), "got 'nan'"), (("--smooth", "inf"), "got 'inf'"),
    (("--smooth", "much"), "got 'much'"),
])
@pytest.mark.parametrize("command", [("inverse",), ("forward",), ("hybrid", "-p", "*")])
def test_bad_options(model, command, options, words):
    result = run(*command, "q.csv", *options)
    assert result.exit_code == 2 and words in result.stderr
    assert not list(Path().glob("q_*.csv"))


@pytest.mark.parametrize("old, new, words", [
    ("d2a.elbow[rad/s^4]", "d2a.elbow[rad/s^3]", "column d2a.elbow: wrong unit: expected rad/s^4, got 'rad/s^3'"),
    ("d1a.base.dvz[m/s^3]", "d1a.base.dv_z[m/s^3]",
     "column d1a.base.dvz: a column is missing: expected one for each coordinate … got 'd1a.base.dv_z'"),
    ("d3a.elbow[rad/s^5]", "d3fext.hand.fx[N/s^3]", "column d3a.elbow: a column is missing"),
])
def test_a_file_that_does_not_fit(model, old, new, words):
    text = Path("all.csv").read_text()
    assert old in text
    Path("other.csv").write_text(text.replace(old, new))
    result = run("inverse", "other.csv", "--order", 3)
    assert result.exit_code == 3 and has_parts(result.stderr, words) and result.stderr.count("\n") == 1
    assert not Path("other_inverse.csv").exists()


def test_a_wrench_rate_without_its_wrench(model):
    q, _ = motion(model, T, 1)
    record(Path("load.csv").absolute(), model, T, [("d1fext.hand.fx", "N/s", T)], q=q)
    result = run("inverse", "load.csv", "--order", 1)
    assert result.exit_code == 3 and "column fext.hand.fx: a column is missing" in result.stderr


def test_too_few_rows(model):
    lines = Path("q.csv").read_text().splitlines(keepends=True)
    Path("short.csv").write_text("".join(lines[:-190]))
    result = run("inverse", "short.csv", "--order", 2)
    assert result.exit_code == 3
    assert result.stderr == ("error: short.csv: 10 row(s) are not enough for derivatives of order 4 with a spline of "
                             "degree 9; at "
                             "least 12 are needed, or a smaller order\n")


@pytest.mark.parametrize("options", [("--order", 1), ("--smooth", "auto")])
def test_a_robot_with_loops(tmp_path, options):
    model = ld.load(ROOT / "robots/four_bar.yaml")
    csv = record(tmp_path / "q.csv", model, T, q=np.zeros((len(T), model.nq)))
    for command in (("inverse",), ("forward",), ("hybrid", "-p", "*")):
        result = run(*command, csv, *options)
        assert result.exit_code == 2 and "has loops" in result.stderr and result.stderr.count("\n") == 1
