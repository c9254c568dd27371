"""A plot that fails loses nothing else: data and other plots stand, a line tells, the exit status is 1."""
import json
import os

import pytest

from command_line import ok, run
from liedyn.io.trajectory_csv import read_trajectory

RUN = """\
robot: arm.yaml
duration: 0.01
"""
ROBOT = """\
links: {bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}}
joints: {hip: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.yaml").write_text(ROBOT)
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def fails(error):
    def failing(*_, **__):
        raise error
    return failing


def last(result):
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("error", [ArithmeticError("no plot today"), OSError(28, "No space left on device"), MemoryError(),
                                   ImportError("no matplotlib")], ids=lambda error: type(error).__name__)
def test_the_data_of_a_run_stand(folder, monkeypatch, error):
    """If the plots failed, the data of the run were lost."""
    monkeypatch.setattr("liedyn.report.run_folder.recording_of", fails(error))
    result = run("simulate", "run.yaml", "--json")
    assert result.exit_code == 1 and json.loads(result.stdout)["robot"] == "arm"
    why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    assert last(result) == f"error: not drawn: plots ({why}); all other results are written"
    assert "wrote runs/run/trajectory.csv" in result.stderr
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "replay.html", "run.json", "trajectory.csv"]
    assert len(read_trajectory("runs/run/trajectory.csv").t) > 1


def test_the_replay_fails(folder, monkeypatch):
    monkeypatch.setattr("liedyn.report.run_folder.replay_page", fails(ArithmeticError("no page today")))
    result = run("simulate", "run.yaml")
    assert result.exit_code == 1
    assert last(result) == "error: not drawn: replay.html (ArithmeticError: no page today); all other results are written"
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "plots", "run.json", "trajectory.csv"]


def test_one_of_the_pictures_fails(folder, monkeypatch):
    ok("simulate", "run.yaml", "--no-plots")
    monkeypatch.setattr("liedyn.report.plots.save_plots.draw_energy", fails(ArithmeticError("no plot today")))
    result = run("plot", "runs/run", "-f", "svg")
    assert result.exit_code == 1
    assert last(result) == "error: not drawn: energy (ArithmeticError: no plot today); all other results are written"
    assert "positions.svg" in os.listdir("runs/run/plots") and "energy.svg" not in os.listdir("runs/run/plots")


def test_the_matrices_of_a_linearization_stand(folder, monkeypatch):
    monkeypatch.setattr("liedyn.report.linearization_report.draw_modes", fails(ArithmeticError("no plot today")))
    result = run("linearize", "run.yaml")
    assert result.exit_code == 1 and "controllable: 2 of 2 states" in result.stdout
    assert last(result) == "error: not drawn: modes (ArithmeticError: no plot today); all other results are written"
    files = set(os.listdir("runs/run_linear"))
    assert {"A.csv", "linear.json", "system.npz"} < files and "plots" not in files


def test_ctrl_c_while_drawing_says_what_stands(folder, monkeypatch):
    monkeypatch.setattr("liedyn.report.run_folder.recording_of", fails(KeyboardInterrupt()))
    result = run("simulate", "run.yaml")
    assert result.exit_code == 130
    assert last(result) == "error: interrupted; the data are in runs/run, the plots are not drawn"
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "run.json", "trajectory.csv"]


def test_a_new_run_takes_the_pictures_of_the_old_one_away(folder):
    ok("simulate", "run.yaml")
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "plots", "replay.html", "run.json", "trajectory.csv"]
    ok("simulate", "run.yaml", "--no-plots", "--force")
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "run.json", "trajectory.csv"] and os.listdir("runs") == ["run"]
