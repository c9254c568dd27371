"""Runs that cannot end or whose result cannot fit are errors before they start, with the figure."""
from collections import namedtuple

import pytest

import liedyn as ld
from command_line import run
from liedyn.errors import ComputationError, ScenarioError
from liedyn.io.scenarios.scenario_file import read_scenario
from liedyn.simulation import preparation

ROBOT = """\
links: {bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}}
joints: {hip: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""
Disk = namedtuple("Disk", "total used free")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bar.yaml").write_text(ROBOT)
    (tmp_path / "long.yaml").write_text("robot: bar.yaml\nduration: 1\noutput_step: 1e-6\nintegrator: {step: 1e-6}\n")
    return tmp_path


def test_a_result_that_does_not_fit_into_memory_is_refused_with_the_figure(folder, monkeypatch):
    monkeypatch.setattr(preparation, "available_memory", lambda: 200e6)
    with pytest.raises(ComputationError) as caught:
        ld.run_scenario("long.yaml")
    # ten numbers a row: t and five energies, q, v, a, tau
    assert str(caught.value).startswith("the result of 1000002 rows needs about 800 MB of memory; 200 MB are free (increase ")


def test_a_result_that_does_not_fit_onto_the_disk_is_refused_with_the_figure(folder, monkeypatch):
    monkeypatch.setattr(preparation.shutil, "disk_usage", lambda place: Disk(1e9, 0.9e9, 0.1e9))
    result = run("simulate", "long.yaml", "-o", "runs/one", "--no-plots")
    assert result.exit_code == 1 and not (folder / "runs").exists()
    assert f"the result of 1000002 rows needs about 280 MB of disk in {folder}; 100 MB are free" in result.stderr


def test_rows_that_go_to_disk_need_no_memory(folder, monkeypatch):
    """Except for their times, and some of them."""
    monkeypatch.setattr(preparation, "available_memory", lambda: 200e6)
    result = run("simulate", "long.yaml", "-o", "runs/one", "--dry-run", "--json")
    assert result.exit_code == 0 and '"memory": 104000040' in result.stdout, result.output


def test_a_short_run_is_not_refused_where_the_system_tells_nothing(folder, monkeypatch):
    monkeypatch.setattr(preparation, "available_memory", lambda: 0.0)
    assert len(ld.run_scenario("long.yaml", {"duration": 1e-4}).t) == 101


def test_force_long_lets_it_run(folder, monkeypatch):
    monkeypatch.setattr(preparation, "available_memory", lambda: 0.0)
    monkeypatch.setattr(preparation, "_MIN_CHECKED_BYTES", 0.0)
    short = {"duration": 1e-4}
    with pytest.raises(ComputationError, match="of memory"):
        ld.run_scenario("long.yaml", short)
    assert len(ld.run_scenario("long.yaml", short, force_long=True).t) == 101
    result = run("simulate", "long.yaml", "-S", "duration=1e-4", "--no-plots", "--force-long")
    assert result.exit_code == 0, result.output


def test_force_long_allows_steps_up_to_those_that_never_end(folder):
    with pytest.raises(ScenarioError, match=r"too many steps: about 1e\+11, more than 1e\+08: .* 0.001 s, got 1e-6 \(--force"):
        read_scenario("long.yaml", ["output_step=1", "duration=1e5"])
    assert read_scenario("long.yaml", ["output_step=1", "duration=1e5"], long=True).duration == 1e5
    with pytest.raises(ScenarioError, match=r"about 1e\+13, more than 1e\+12: expected at least 1e-05 s, got 1e-6$"):
        read_scenario("long.yaml", ["output_step=1", "duration=1e7"], long=True)


def test_the_system_tells_its_memory_or_nothing(tmp_path):
    assert preparation.available_memory() > 0
    assert preparation._system_value("/none") == float("inf")
    (tmp_path / "max").write_text("max\n")
    assert preparation._system_value(str(tmp_path / "max")) == float("inf")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  2000 kB\n")
    assert preparation._system_value(str(tmp_path / "meminfo"), "MemAvailable:", 1024.0) == 2_048_000
