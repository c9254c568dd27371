"""A command is an entry of `COMMANDS`, also one of an installed package."""
import subprocess
import sys

import click

from command_line import ok, run
from liedyn.cli.app import COMMANDS
from liedyn.cli.console import with_console
from liedyn.cli.options import robot_argument
from liedyn.errors import ComputationError


@click.command(short_help="Print the number of joints.")
@robot_argument
@with_console()
def count(robot, console):
    """Print the number of joints of ROBOT."""
    from liedyn.robot_files import read_model
    model = read_model(robot)
    if model.nv > 5:
        raise ComputationError("too many joints")
    console.result(str(len(model.joints)))


def test_an_added_command_runs_and_is_listed(monkeypatch):
    """It reports errors as all commands do."""
    monkeypatch.setitem(COMMANDS, "count", count)
    assert ok("count", "robots/double_pendulum.yaml").stdout == "2\n"
    assert "Print the number of joints." in ok("--help").stdout
    done = run("count", "robots/ur5.yaml")
    assert done.exit_code == 1 and "error: too many joints" in done.stderr
    assert "did you mean" in run("cuont", "robots/ur5.yaml").stderr.lower()


def test_a_command_of_an_installed_package(tmp_path):
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[liedyn.commands]\ngreet = other:greet\n")
    (tmp_path / "other.py").write_text("import click\n\n@click.command(short_help='Say hello.')\n"
                                       "def greet(): click.echo('hello')\n")
    for arguments, said in ((["greet"], "hello"), (["--help"], "Say hello.")):
        script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from liedyn.cli.app import main; main({arguments!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
        assert said in done.stdout + done.stderr, done.stderr
