"""The command `liedyn derivatives`, end to end on a small robot: files, options, --verify, and errors."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import TWO_BARS, ok, run
from liedyn.io.trajectory_csv import read_trajectory


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bars.yaml").write_text(TWO_BARS)
    t = np.arange(30) / 20
    rows = np.column_stack([t, np.sin(t), np.cos(2 * t), np.cos(t), -2 * np.sin(2 * t), -np.sin(t), -4 * np.cos(2 * t), t, 1 - t])
    names = ",".join(f"{kind}.{joint}[{unit}]" for kind, unit in (("q", "rad"), ("v", "rad/s"), ("a", "rad/s^2"), ("tau", "N m"))
                     for joint in ("hip", "knee"))
    lines = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    (tmp_path / "motion.csv").write_text(f"# robot: bars.yaml\n# base: fixed\nt[s],{names}\n{lines}\n")
    return tmp_path


def states():
    motion = read_trajectory("motion.csv")
    return [np.column_stack([motion.columns[f"{kind}.{joint}"] for joint in ("hip", "knee")]) for kind in ("q", "v", "a", "tau")]


def test_help_shows_examples():
    result = ok("derivatives", "--help")
    assert "    liedyn derivatives runs/ur5_excite/trajectory.csv" in result.output
    assert "--function forward --joint elbow" in result.output


def test_of_inverse_dynamics(folder):
    result = ok("derivatives", "motion.csv")
    assert "wrote motion_derivatives.csv: 12 columns, 30 rows" in result.stderr and result.stdout == ""
    out = read_trajectory("motion_derivatives.csv")
    q, v, a, _ = states()
    by_q, by_v, M = ld.inverse_dynamics_derivatives(ld.load("bars.yaml"), q, v, a)
    np.testing.assert_allclose(out.columns["dtau.hip/dq.knee"], by_q[:, 0, 1], atol=1e-12)
    np.testing.assert_allclose(out.columns["dtau.knee/dv.hip"], by_v[:, 1, 0], atol=1e-12)
    np.testing.assert_allclose(out.columns["dtau.knee/da.knee"], M[:, 1, 1], atol=1e-12)
    assert out.units["dtau.hip/dv.hip"] == "N m/(rad/s)" and out.header["robot"] == "bars.yaml"


def test_of_forward_and_hybrid_dynamics(folder):
    ok("derivatives", "motion.csv", "--function", "forward", "-o", "forward.csv")
    ok("derivatives", "motion.csv", "--function", "hybrid", "-p", "hip", "-o", "hybrid.csv")
    q, v, a, tau = states()
    model = ld.load("bars.yaml")
    out = read_trajectory("forward.csv")
    np.testing.assert_allclose(out.columns["da.hip/dtau.knee"], ld.inverse_mass_matrix(model, q)[:, 0, 1], rtol=1e-9)
    assert out.units["da.hip/dtau.knee"] == "(rad/s^2)/(N m)"
    out = read_trajectory("hybrid.csv")
    found = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, np.array([True, False])).split()
    np.testing.assert_allclose(out.columns["dtau.hip/dtau.knee"], found.dtau_du[:, 0, 1], atol=1e-12)
    np.testing.assert_allclose(out.columns["da.knee/dq.knee"], found.da_dq[:, 1, 1], atol=1e-12)
    assert out.units["dtau.hip/dtau.knee"] == "" and "da.hip/dq.hip" not in out.columns


def test_by_figures_of_the_robot(folder):
    ok("derivatives", "motion.csv", "--wrt", "mass.*", "--wrt", "com.lower.?", "--wrt", "damping.hip", "--joint", "h*")
    out = read_trajectory("motion_derivatives.csv")
    assert list(out.columns) == [f"dtau.hip/d{name}" for name in (
        "mass.upper", "mass.lower", "com.lower.x", "com.lower.y", "com.lower.z", "damping.hip")]
    np.testing.assert_allclose(out.columns["dtau.hip/ddamping.hip"], states()[1][:, 0])
    assert out.units["dtau.hip/dmass.lower"] == "N m/kg"


def test_verify_tells_the_largest_difference(folder):
    result = ok("derivatives", "motion.csv", "--verify", "--wrt", "*", "--json")
    report = json.loads(result.stdout)
    assert report["output"] == "motion_derivatives.csv" and report["rows"] == 30
    note, = (one["message"] for one in report["warnings"] if one["code"] == "compared")
    assert note.startswith("maximum relative difference from extrapolated differences, on 5 rows: ")
    assert float(note.split(": ")[1].split()[0]) < 1e-8 and note in result.stderr


def test_what_takes_long_is_told_part_by_part(folder, monkeypatch):
    from liedyn.cli import console
    stages = []
    stage = console.Progress.stage
    monkeypatch.setattr(console.Progress, "stage", lambda self, text: (stages.append(text), stage(self, text))[1])
    ok("derivatives", "motion.csv", "--verify")
    assert stages == ["computing", "comparing with finite differences"]


def test_verify_fails_and_writes_nothing(folder, monkeypatch):
    from liedyn.analysis import trajectory_derivatives as module
    right = module.inverse_dynamics_derivatives
    monkeypatch.setattr(module, "inverse_dynamics_derivatives", lambda *x, **y: [1.001 * z for z in right(*x, **y)])
    result = run("derivatives", "motion.csv", "--verify")
    assert result.exit_code == 4 and "expected at most 1e-06; nothing is written" in result.stderr
    assert not Path("motion_derivatives.csv").exists()


def test_over_pipes(folder):
    result = ok("derivatives", "-", "--robot", "bars.yaml", "--wrt", "q.hip", input=Path("motion.csv").read_text())
    assert result.stdout.splitlines()[-31].endswith("t[s],dtau.hip/dq.hip[N m/rad],dtau.knee/dq.hip[N m/rad]")


@pytest.mark.parametrize("args, status, words", [
    ([], 2, "Missing argument 'TRAJECTORY'"),
    (["motion.csv", "--function", "energy"], 2, "'energy' is not one of 'inverse', 'forward', 'hybrid'"),
    (["motion.csv", "--function", "hybrid"], 2, "--prescribed and --function hybrid must be used together"),
    (["motion.csv", "-p", "hip"], 2, "--prescribed and --function hybrid must be used together"),
    (["motion.csv", "--function", "hybrid", "-p", "toe"], 2, "no moving joint matches 'toe'; the names are hip, knee"),
    (["motion.csv", "--joint", "toe"], 2, "no moving joint matches 'toe'"),
    (["motion.csv", "--wrt", "mass.loer"], 2, "no variable of --wrt matches 'mass.loer'; did you mean mass.lower"),
    (["motion.csv", "--wrt", "tau.hip"], 2, "no variable of --wrt matches 'tau.hip'"),
    (["q.csv", "--function", "forward"], 3, "q.csv: there are no columns of the generalized forces"),
    (["motion.csv", "-o", "motion.csv"], 2, "motion.csv already exists; --force or force=True overwrites it"),
    (["motion.csv", "--json", "-o", "-"], 2, "--json and a CSV cannot both be written to stdout"),
    (["bars.yaml"], 3, "bars.yaml:2: this is a robot file, not a trajectory"),
])
def test_what_is_refused(folder, args, status, words):
    (folder / "q.csv").write_text("# robot: bars.yaml\nt[s],q.hip[rad],q.knee[rad]\n" + "".join(f"{k},{k},0\n" for k in range(5)))
    before = sorted(folder.rglob("*"))
    result = run("derivatives", *args)
    assert result.exit_code == status and words in result.stderr, result.output
    lines = [line for line in result.stderr.splitlines() if "… " not in line]
    assert len(lines) == 1 and lines[0].startswith("error: ") and result.stdout == ""
    assert sorted(folder.rglob("*")) == before
