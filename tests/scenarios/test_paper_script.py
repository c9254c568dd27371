"""configs/aerial_manipulator_paper.py: its reference, the figures that it makes, and what it says without CasADi."""
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from command_line import run, script_of
from liedyn.cli.console import Progress
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.simulation.trajectory_columns import bind_columns, coordinate_columns, derivative_kind

ROOT = Path(__file__).parents[2]
FILES = {"fig3.csv", "fig3a_motion.png", "fig3a_motion.svg", "fig3b_forces.png", "fig3b_forces.svg", "fig4.csv", "fig4_cost.png",
         "fig4_cost.svg", "reference.csv", "summary.json"}
# of what comes back, relative, a decade above what was seen: each order divides by inertias what those before left of rounding
RETURNED = (1e-11, 1e-11, 1e-9, 1e-9, 1e-7, 1e-7)


@pytest.fixture(scope="module")
def script():
    return script_of("aerial_manipulator_paper")


@pytest.fixture(scope="module")
def folder(script, tmp_path_factory):
    """Create the results in a separate process, which uses one core."""
    path = tmp_path_factory.mktemp("paper") / "figures"
    done = subprocess.run([sys.executable, script.__file__, "--quick", "-o", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "order 5: the motion comes back to" in done.stdout and "cost against the order" in done.stderr
    return path


@pytest.fixture(scope="module")
def published():
    """Return the case of the reference data on this trajectory, at 0.7 s."""
    data = json.loads((ROOT / "tests/oracles/aerial_manipulator.json").read_text(encoding="utf-8"))
    case, = (case for case in data["cases"] if case["name"] == "smooth_paper_like_trajectory")
    return case


def test_reference_is_that_of_the_reference_data(script, published):
    q, v = script.reference(np.array([0.7]))
    given = published["inputs"]
    joints = np.array(given["q_derivs"])[1:].T                       # (8 derivatives, 6)
    assert relative(v[0, :, :6], np.array(given["V_derivs"])) < 1e-15
    assert relative(q[0, 7:], joints[0]) < 1e-15 and relative(v[0, :, 6:], joints[1:]) < 1e-15
    pose = ld.link_pose(ld.load(script.ROBOT), q[0], "body")
    assert relative(pose, np.array(given["C0_1"])) < 1e-15


def test_forces_are_those_of_the_authors_program(script, published):
    """Checks: AGF Table 3."""
    q, v = script.reference(np.array([0.7]))
    tau, a = script.there_and_back(ld.load(script.ROBOT), q, v)
    outputs = published["outputs"]
    expected = np.concatenate([outputs["Qbase"], np.array(outputs["tau"])[1:].T], axis=1)
    for order in range(6):
        assert relative(tau[0, order], expected[order]) < 1e-12
        assert relative(a[0, order], v[0, order + 1]) < RETURNED[order]


def test_script_writes_every_figure_and_its_numbers(folder):
    """Checks: AGF Figures 3-4, Table 4."""
    assert {path.name for path in folder.iterdir()} == FILES
    assert all(path.stat().st_size > 10_000 for path in folder.iterdir() if path.suffix in (".png", ".svg"))
    motion = read_trajectory(folder / "fig3.csv").columns
    for order in range(6):
        kind = derivative_kind("a", order)
        reference, returned = (np.array([motion[name] for name in motion if name.startswith(f"{what}.{kind}.")])
                               for what in ("reference", "returned"))
        assert reference.shape == (12, 51) and 0 < relative(returned, reference) < RETURNED[order]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert all(error < bound for error, bound in
               zip(summary["returned motion, largest relative error by order"], RETURNED, strict=True))
    rows = list(csv.DictReader((folder / "fig4.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["figure"] for row in rows} == {"4a", "4b", "4c"} and all(float(row["us"]) > 0 for row in rows)


def test_command_line_makes_the_same_forces_of_the_reference(folder, tmp_path):
    result = run("inverse", folder / "reference.csv", "--order", "5", "-o", tmp_path / "tau.csv")
    assert result.exit_code == 0, result.output
    model, given, made = (ld.load(ROOT / "robots/hexarotor_arms.yaml"), read_trajectory(folder / "reference.csv"),
                          read_trajectory(tmp_path / "tau.csv"))
    rates = [bind_columns(model, given, "v"), *(bind_columns(model, given, derivative_kind("a", k)) for k in range(6))]
    q, twists = bind_columns(model, given, "q"), np.stack(rates, axis=1)[..., :6]
    tau = np.stack([bind_columns(model, made, derivative_kind("tau", k)) for k in range(6)], axis=1)
    tau[..., :6] = ld.spatial_wrenches(q[:, :7], twists[:, :6], tau[..., :6])
    forces = read_trajectory(folder / "fig3.csv").columns
    for k in range(6):
        expected = np.column_stack([forces[f"force.{name}"] for name in coordinate_columns(model, derivative_kind("tau", k))])
        assert relative(tau[:, k], expected) < 1e-12


def test_an_earlier_result_is_replaced_by_force_only(script, folder, capsys):
    assert script.main(["--quick", "-o", str(folder)]) == 1
    assert "already exists; --force or force=True overwrites it" in capsys.readouterr().err


def test_without_casadi_it_says_how_to_get_it(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "installed", lambda package: False)
    assert list(script.measure_automatic(True, Progress(quiet=True))) == []
    assert "pip install casadi" in capsys.readouterr().err
    rows = (("4a", 11, 3), ("4a", 21, 3), ("4b", 21, 0), ("4b", 21, 1))
    costs = [script.Cost(letter, script.OURS, what, how, bodies, order, 1.0 + order)
             for letter, bodies, order in rows for what, how in script.LINES]
    figure = script.draw_costs(costs, script.exponents(costs))
    assert any("needs CasADi" in text.get_text() for text in figure.texts)
