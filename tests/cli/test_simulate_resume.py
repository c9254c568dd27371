"""Runs that a signal, a kill or an error ends: what is left of them, and how they continue."""
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from command_line import ok, run
from liedyn.integrators import solve
from liedyn.io import checkpoint_files
from liedyn.io.atomic_output import hold, unfinished_of
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.simulation.run_recorder import RunRecorder

ROBOT = """\
links: {bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}}
joints: {hip: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""
SWING = "robot: bar.yaml\nduration: 2\noutput_step: 0.01\ninitial: {q: {hip: 1.0}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(solve, "_FIRST_CHUNK", 50)
    (tmp_path / "bar.yaml").write_text(ROBOT)
    (tmp_path / "swing.yaml").write_text(SWING)
    return tmp_path


@pytest.fixture
def signalled(monkeypatch):
    """Return a function signalled(number) that sends a signal while the run is computed."""
    def at(number):
        plain, calls = RunRecorder.checkpoint, []

        def checkpoint(rows, t, state_dict):
            calls.append(t)
            if len(calls) == 3:
                signal.raise_signal(number)
            plain(rows, t, state_dict)
        monkeypatch.setattr(RunRecorder, "checkpoint", checkpoint)
    return at


def simulate(name="runs/swing", *options):
    return run("simulate", "swing.yaml", "-o", name, "--no-plots", *options)


def bytes_of(name):
    return Path(name, "trajectory.csv").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_folder_that_resumes(folder, signalled, monkeypatch, number):
    ok("simulate", "swing.yaml", "-o", "runs/alone", "--no-plots")
    signalled(number)
    result = simulate()
    assert result.exit_code == 128 + number
    left = read_trajectory("runs/swing/trajectory.csv")
    assert 1 < len(left.t) < 200
    told = json.loads(Path("runs/swing/run.json").read_text())
    assert told["status"] == "interrupted" and told["reason"].startswith("interrupted at t = ")
    assert result.stderr.splitlines()[-1] == (
        f"error: {told['reason']}; {len(left.t)} rows, up to t = {left.t[-1]:.6g} s, in runs/swing "
        "(`liedyn simulate runs/swing --resume` continues)")
    assert bytes_of("runs/alone").startswith(bytes_of("runs/swing"))

    monkeypatch.undo()
    monkeypatch.chdir(folder)
    result = simulate()
    assert result.exit_code == 2 and "is not finished; --resume continues it, --force starts over" in result.stderr
    ok("simulate", "runs/swing", "--resume", "--no-plots")
    assert bytes_of("runs/swing") == bytes_of("runs/alone")
    one, other = (json.loads(Path(name, "run.json").read_text()) for name in ("runs/swing", "runs/alone"))
    assert one["seconds"].keys() == other["seconds"].keys() and one.pop("seconds") and other.pop("seconds")
    assert one == other and one["status"] == "complete"
    assert {path.name for path in Path("runs").iterdir()} == {"alone", "swing"}
    assert "is complete, there is nothing to resume" in ok("simulate", "runs/swing", "--resume").stderr


def test_force_starts_anew(folder, signalled, monkeypatch):
    signalled(signal.SIGINT)
    assert simulate().exit_code == 130
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert simulate("runs/swing", "--force", "-S", "duration=1").exit_code == 0
    assert read_trajectory("runs/swing/trajectory.csv").t[-1] == 1.0 and not unfinished_of("runs/swing").exists()


def test_only_the_same_run_resumes(folder, signalled, monkeypatch):
    signalled(signal.SIGINT)
    assert simulate().exit_code == 130
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    place = unfinished_of("runs/swing")

    def refused(words, *options):
        result = simulate("runs/swing", "--resume", *options)
        assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1, result.output

    refused("it was started with duration = 2.0, not 3.0 (`liedyn simulate runs/swing --resume` uses its", "-S", "duration=3")
    (folder / "bar.yaml").write_text(ROBOT.replace("mass: 1,", "mass: 2,"))
    refused("the robot, or a file that the scenario reads, has changed since")
    (folder / "bar.yaml").write_text(ROBOT)
    with held(place):
        refused("another process is computing runs/swing")
    rows = (place / "rows").read_bytes()
    (place / "rows").unlink()
    refused("is damaged")
    flipped = bytes([rows[len(rows) // 3] ^ 0x10])
    for damaged in (rows[:-8], b"", rows[8:] + rows[:8], rows[:len(rows) // 3] + flipped + rows[len(rows) // 3 + 1:],
                    b"A" * 64 + rows[64:], rows[:-1] + b"\x7f", b"\0" * 8 + rows):
        (place / "rows").write_bytes(damaged)
        refused("is damaged: the run cannot be resumed (--force without --resume starts over)")
    (place / "rows").write_bytes(rows + b"left by a process that was killed")
    whole = (place / "checkpoint").read_bytes()
    for damaged in (b"", b"PK", whole[:-1], whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:]):
        (place / "checkpoint").write_bytes(damaged)
        refused("is damaged")
    (place / "checkpoint").write_bytes(whole)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_files, "_VERSION", "0.0.9, 1")
        refused("it was started by another version of liedyn (--force without --resume starts over)")


@contextmanager
def held(path):
    """Lock the folder as another process does."""
    descriptor = hold(path)
    yield
    os.close(descriptor)


def test_what_cannot_be_resumed_is_said(folder):
    result = simulate("runs/swing", "--resume", "-q")
    assert result.exit_code == 0 and len(read_trajectory("runs/swing/trajectory.csv").t) == 201
    assert "there is no checkpoint of runs/other: the run starts from the beginning" in simulate("runs/other", "--resume").stderr
    for args, words in ((["runs/none", "--resume"], "'runs/none' does not exist"), (["runs", "--resume"], "is not a run folder"),
                        (["runs/swing"], "runs/swing is a directory: a scenario or robot file is needed, or --resume"),
                        (["swing.yaml", "--resume", "--dry-run"],
                         "--resume cannot be combined with --dry-run or --print-config")):
        result = run("simulate", *args)
        assert result.exit_code == 2 and words in result.stderr, result.output


def test_a_run_that_diverges_keeps_its_rows(folder):
    """Steps of 0.01 s are too long for a spring of 1.6 ms. The same run, ended earlier, has the same rows."""
    stiff = ["-S", "integrator.step=0.01", "-S", "joints.hip.torque.pd={kp: 9000, kd: 0, target: 0}"]
    result = simulate("runs/astray", *stiff)
    assert result.exit_code == 1 and "no longer finite soon after t = " in result.stderr
    assert result.stderr.splitlines()[-1].endswith(" s, in runs/astray") and "; tried: integrator={" in result.stderr
    told, motion = json.loads(Path("runs/astray/run.json").read_text()), read_trajectory("runs/astray/trajectory.csv")
    assert told["status"] == "diverged" and told["reason"] in result.stderr
    assert np.abs(motion.columns["v.hip"]).max() <= 1e12
    assert simulate("runs/before", *stiff, "-S", f"duration={motion.t[-1]}").exit_code == 0
    assert bytes_of("runs/before") == bytes_of("runs/astray")
    result = simulate("runs/astray", "--resume")
    assert result.exit_code == 1 and "has diverged: there is nothing to resume" in result.stderr


def test_killed_runs_end_with_the_file_of_an_undisturbed_one(folder):
    """A script kills the run three times."""
    (folder / "long.yaml").write_text(SWING + "integrator: {step: 4e-6}\n")
    script = Path(__file__).parents[1] / "support" / "killed_runs.py"
    done = subprocess.run([sys.executable, script, "long.yaml", "3", "7"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'kills': 3" in done.stdout and "'different': 0" in done.stdout
