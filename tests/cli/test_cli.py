"""The command line itself: help, exit statuses, the one place for errors, and errors before any work."""
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from command_line import run, said
from liedyn import __version__
from liedyn.cli import app
from liedyn.errors import CheckFailed, ComputationError, ModelError, Place, UsageError

COMMANDS = ("simulate", "linearize", "inverse", "forward", "hybrid", "kinematics", "info", "check", "plot", "parameters",
            "identify", "derivatives", "assemble", "export", "template", "schema", "warmup")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.yaml").write_text("links: {}\n")
    (tmp_path / "motion.csv").write_text("t[s],q.elbow[rad]\n0,0\n1,1\n")
    return tmp_path


# --- help ------------------------------------------------------------------------------------------------------------

def test_help_lists_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_an_example(command):
    result = run(command, "-h")
    assert result.exit_code == 0
    assert "  Examples:\n    liedyn " in result.output and f"\n    liedyn {command}" in result.output


@pytest.mark.parametrize("args", [["-h"], *([command, "-h"] for command in COMMANDS)], ids=" ".join)
def test_help_fits_into_80_columns(args):
    result = run(*args, env={"COLUMNS": "200"})
    assert [line for line in result.output.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("args", [["--help"], *([command, "--help"] for command in COMMANDS)], ids=" ".join)
def test_help_imports_no_heavy_library(args):
    """`--help` must be fast."""
    code = ("import sys; from click.testing import CliRunner; from liedyn.cli.app import main\n"
            f"assert CliRunner().invoke(main, {args}).exit_code == 0\n"
            "print([m for m in ('numpy', 'numba', 'scipy', 'matplotlib', 'yaml') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_version():
    assert run("--version", prog_name="liedyn").output == f"liedyn {__version__}\n"


# --- errors ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("error, status", [
    (ComputationError("the step size underflowed"), 1),
    (UsageError("x.csv already exists"), 2),
    (ModelError("no direction", place=Place("arm.yaml", 12, "joints.elbow.axis"), found=[0, 0, 0],
                expected="a non-zero vector"), 3),
    (CheckFailed("2 warnings"), 4),
])
def test_a_liedyn_error_is_one_line_and_its_status(monkeypatch, error, status):
    @click.command()
    def info():
        raise error
    monkeypatch.setattr(app._Commands, "get_command", lambda *_: info)
    result = run("info")
    assert result.exit_code == status
    assert result.stderr == f"error: {error}\n" and result.stdout == ""


def test_other_exceptions_keep_their_traceback(monkeypatch):
    @click.command()
    def info():
        raise ZeroDivisionError("a bug")
    monkeypatch.setattr(app._Commands, "get_command", lambda *_: info)
    result = run("info")
    assert isinstance(result.exception, ZeroDivisionError)


def test_warnings_of_numpy_do_not_reach_the_terminal(monkeypatch, recwarn):
    @click.command()
    def info():
        import numpy as np
        np.float64(1e308) * 10.0
    monkeypatch.setattr(app._Commands, "get_command", lambda *_: info)
    monkeypatch.setattr("sys.warnoptions", [])
    result = run("info")
    assert (result.exit_code, result.stderr, list(recwarn)) == (0, "", [])


def test_a_run_folder_in_place_of_its_trajectory_is_told(folder):
    Path("run").mkdir()
    Path("run", "trajectory.csv").write_text("t[s]\n0\n")
    assert "File 'run' is a directory. Did you mean 'run/trajectory.csv'? (see" in run("inverse", "run").stderr


@pytest.mark.parametrize("args, words", [
    (["dance"], "No such command 'dance'"),
    (["info"], "Missing argument 'ROBOT'"),
    (["info", "none.yaml"], "'none.yaml' does not exist"),
    (["info", "arm.yaml", "--base", "flying"], "'flying' is not one of 'fixed', 'floating'"),
    (["info", "arm.yaml", "-q", "-v"], "cannot be combined"),
    (["check"], "Missing argument 'ROBOT...'"),
    (["check", "arm.yaml", "none.yaml"], "'none.yaml' does not exist"),
    (["simulate"], "Missing argument 'SCENARIO_OR_ROBOT'"),
    (["simulate", "."], "is a directory"),
    (["simulate", "arm.yaml", "-S"], "requires an argument"),
    (["simulate", "arm.yaml", "-S", "duration"], "error: -S duration: expected -S key.path=value (see"),
    (["linearize", "arm.yaml", "-S", "=3"], "error: -S =3: expected -S key.path=value (see"),
    (["inverse", "none.csv"], "'none.csv' does not exist (see"),
    (["inverse", "motions.csv"], "'motions.csv' does not exist. Did you mean 'motion.csv'? (see"),
    (["info", "./am.yaml"], "Did you mean 'arm.yaml'?"),
    (["inverse", "none/motion.csv"], "'none/motion.csv' does not exist (see"),
    (["inverse", "motion.csv", "--robot", "none.urdf"], "'none.urdf' does not exist"),
    (["hybrid", "motion.csv"], "Missing option '-p' / '--prescribed'"),
    (["kinematics", "none.csv", "-l", "hand"], "'none.csv' does not exist (see"),
    (["kinematics", "motion.csv", "--frame", "body"], "'body' is not one of 'local', 'local_world_aligned', 'world'"),
    (["kinematics", "motion.csv", "-l", "hand", "--point", "0", "0"], "Option '--point' requires 3 arguments"),
    (["kinematics", "motion.csv", "-l", "hand", "--point", "0", "0", "up"], "'up' is not a valid float"),
    (["inverse", "motion.csv", "--wrenches", "body"], "'body' is not one of 'world', 'link', 'joint'"),
    (["plot", "none"], "'none' does not exist"),
    (["plot", "motion.csv", "-f", "gif"], "'gif' is not one of"),
    (["inverse", "motion.csv", "-o", "-", "--json"], "--json and a CSV cannot both be written to stdout"),
    (["plot", "."], "is not a run folder: it has no trajectory.csv"),
    (["plot", "motion.csv", "-o", "arm.yaml"], "is a file"),
])
def test_wrong_usage(folder, args, words):
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert {p.name for p in folder.iterdir()} == {"arm.yaml", "motion.csv"}


@pytest.fixture
def computable(folder):
    """Wrong arguments are reported before outputs."""
    (folder / "arm.yaml").write_text("links: {rod: {mass: 1, inertia: [1, 1, 1]}}\n"
                                     "joints: {elbow: {type: continuous, parent: world, child: rod, axis: [1, 0, 0]}}\n")
    (folder / "motion.csv").write_text("# robot: arm.yaml\nt,q.elbow,v.elbow,a.elbow\n0,0,0,0\n1,0,0,0\n")
    return folder


@pytest.mark.parametrize("args, words", [
    (["inverse", "motion.csv", "-o", "."], "is a folder: expected the name of a file"),
    (["inverse", "motion.csv", "-o", "none/x.csv"], "the folder none does not exist"),
    (["inverse", "motion.csv", "-o", "arm.yaml"], "arm.yaml already exists; --force or force=True overwrites it"),
    (["simulate", "arm.yaml", "-o", "motion.csv"], "motion.csv is a file: expected a folder"),
    (["simulate", "arm.yaml", "-o", "."], "contains other files and no run.json"),
    (["simulate", "arm.yaml", "-o", ".", "--force"], "contains other files and no run.json"),
])
def test_wrong_outputs(computable, args, words):
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert {p.name for p in computable.iterdir()} == {"arm.yaml", "motion.csv"}


def test_results_are_not_overwritten(computable):
    folder = computable
    (folder / "motion_inverse.csv").write_text("mine")
    (folder / "runs" / "arm").mkdir(parents=True)
    (folder / "runs" / "arm" / "run.json").write_text("{}")
    (folder / "motion_plots").mkdir()
    (folder / "motion_plots" / "energy.png").write_text("")
    for args, name in ((["inverse", "motion.csv"], "motion_inverse.csv"), (["simulate", "arm.yaml"], "runs/arm"),
                       (["plot", "motion.csv"], "motion_plots")):
        result = run(*args)
        assert result.exit_code == 2
        assert name in result.stderr and "--force" in result.stderr and "overwrites" in result.stderr


@pytest.mark.parametrize("content, words", [
    ("", "the file is empty"),
    ("q.elbow\n1\n", "there is no column `t`"),
    ("t,q.elbow\n0,1\n0,2\n", "motion.csv:3: t: time does not increase"),
])
@pytest.mark.parametrize("command", [["inverse"], ["forward"], ["hybrid", "-p", "*"], ["kinematics", "--com"], ["plot"]])
def test_a_bad_trajectory(folder, command, content, words):
    (folder / "motion.csv").write_text(content)
    result = run(*command, "motion.csv")
    assert result.exit_code == 3
    (line,) = said(result)                                  # whatever the progress says on a busy machine
    assert line.startswith("error: motion.csv") and words in line
    assert {p.name for p in folder.iterdir()} == {"arm.yaml", "motion.csv"}


@pytest.mark.parametrize("command", [["inverse"], ["forward"], ["hybrid", "-p", "*"], ["kinematics", "--com"]])
def test_a_trajectory_that_names_no_robot(folder, command):
    result = run(*command, "motion.csv")
    assert result.exit_code == 2
    assert "motion.csv does not name a robot" in result.stderr and "--robot" in result.stderr


def test_a_bad_robot(folder):
    (folder / "arm.yaml").write_text("links: [1, 2\n")
    for args in (["info", "arm.yaml"], ["check", "arm.yaml"], ["simulate", "arm.yaml"],
                 ["inverse", "motion.csv", "-r", "arm.yaml"]):
        result = run(*args)
        assert result.exit_code == 3, result.output
        assert "arm.yaml" in result.stderr and "error: " in result.stderr
    assert {p.name for p in folder.iterdir()} == {"arm.yaml", "motion.csv"}


@pytest.mark.parametrize("args", [["dance"], ["--dance"], ["info"], ["info", "none.yaml"], ["info", "arm.yaml", "--base", "x"],
                                  ["inverse", "motion.csv", "-o", "none/x.csv"]])
def test_wrong_usage_is_one_line(folder, args):
    result = run(*args)
    assert result.exit_code == 2 and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert args[0] != "info" or "(see `liedyn info --help`)" in result.stderr


def test_without_a_command_the_help_is_shown():
    result = run()
    assert result.exit_code == 2 and "Usage: " in result.output and "simulate" in result.output


def test_ctrl_c_is_one_line_and_leaves_nothing(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt
    monkeypatch.setattr("liedyn.simulation.run.output_times", interrupted)
    before = sorted(folder.rglob("*"))
    (folder / "one.yaml").write_text("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                                     "joints: {j: {type: continuous, parent: world, child: a, axis: [1, 0, 0]}}\n")
    result = run("simulate", "one.yaml", "--no-plots")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "error: interrupted; nothing is written"
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "one.yaml"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(unbuffered):
    robot = Path(__file__).parents[2] / "robots" / "panda.yaml"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "liedyn", "info", robot], stdout=full, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


# --- over a pipe -----------------------------------------------------------------------------------------------------

def test_a_reader_that_goes_away_is_no_error():
    robot = Path(__file__).parents[2] / "robots" / "panda.yaml"
    code = "from liedyn.cli.app import main; main()"
    command = f'{sys.executable} -c "{code}" info {robot} --json | head -c 10'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("{")


def test_json_is_json():
    robot = Path(__file__).parents[2] / "robots" / "showcase.yaml"
    result = run("info", robot, "--json", "-q")
    assert result.exit_code == 0 and result.stderr == ""
    assert json.loads(result.stdout)["name"] == "showcase"


SAYS = """
import logging, sys
import click
from liedyn.cli import console
@click.command()
@console.with_console()
def command(console):
    logging.getLogger("liedyn.compile").warning("compiling")
    logging.getLogger("liedyn.cache").warning("liedyn: the cache is full")
command(sys.argv[1:], standalone_mode=False)
logging.getLogger("liedyn.compile").warning("compiling, from Python")
"""


@pytest.mark.parametrize("options, said", [((), "liedyn: the cache is full\n"), (("-q",), "")])
def test_a_command_tells_a_compilation_by_its_progress_only(options, said):
    done = subprocess.run([sys.executable, "-c", SAYS, *options], capture_output=True, text=True, timeout=600, check=True)
    assert done.stderr == f"{said}compiling, from Python\n"


def test_a_mistyped_command_is_recognized():
    result = run("simulat", "x.yaml")
    assert result.exit_code == 2 and "No such command 'simulat'; did you mean simulate? (see `" in result.stderr
    assert "did you mean" not in run("xyzzy").stderr
