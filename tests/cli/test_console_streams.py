"""Standard streams that are closed, that take no UTF-8, and readers that go away: no traceback, and no result is lost."""
import json
import os
import subprocess
import sys

import pytest

from command_line import ok
from liedyn.cli import app
from liedyn.cli.console import Progress

ROBOT = """\
links: {größe: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}, bar: {mass: 1, inertia: [0.02, 0.02, 0.01]}}
joints:
  hip: {type: continuous, parent: world, child: größe, axis: [0, 1, 0]}
  关节: {type: continuous, parent: größe, child: bar, axis: [0, 1, 0]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.yaml").write_text(ROBOT, encoding="utf-8")
    (tmp_path / "run.yaml").write_text("robot: arm.yaml\nduration: 0.01\n")
    return tmp_path


def shell(command, **environment):
    """Run a line in bash, with the command as $L."""
    tool = f'"{sys.executable}" -m liedyn'
    return subprocess.run(["bash", "-c", f"set -o pipefail; {command.replace('$L', tool)}"], capture_output=True,
                          env={**os.environ, **environment})


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
def test_a_stdout_that_is_not_utf8(folder, encoding):
    done = shell("$L info arm.yaml", PYTHONIOENCODING=encoding)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    text = done.stdout.decode(encoding)
    assert "hip (continuous) -> " + ("gr\\xf6\\xdfe" if encoding == "ascii" else "größe") in text
    assert ("关节" if encoding == "utf-8" else r"\u5173\u8282") + " (continuous) -> bar" in text
    assert ("└─ " if encoding == "utf-8" else "`- ") + "hip" in text


def test_json_on_a_stdout_that_is_not_utf8(folder):
    done = shell("$L info arm.yaml --json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["joints"][1]["name"] == "关节"


def test_a_locale_without_letters(folder):
    done = shell("$L info arm.yaml && $L info --help && $L info none.yaml", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert done.returncode == 2 and b"Traceback" not in done.stderr and done.stderr.count(b"\n") == 1


def test_a_csv_on_stdout_is_utf8(folder):
    ok("simulate", "run.yaml", "--no-plots")
    done = shell("$L inverse runs/run/trajectory.csv -o - -q", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "tau.关节[N m]" in done.stdout.decode("utf-8")


@pytest.mark.parametrize("options, status, told", [
    ("2>&-", 0, b""), (">&-", 1, b"error: the output cannot be written: standard output is closed\n"),
    (">&- 2>&-", 1, b""), ("<&-", 0, b""), ("<&- 2>&-", 0, b""), ("--json <&- 2>&-", 0, b""),
    ("--json >&-", 1, b"error: the output cannot be written: standard output is closed\n")])
def test_closed_streams(folder, options, status, told):
    done = shell(f"$L info arm.yaml {options}")
    assert done.returncode == status and done.stderr == told
    assert bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_is_written_whole_where_streams_are_closed(folder, closed):
    """A result must not get the file number of the closed stream, which messages are written to."""
    done = shell(f"$L simulate run.yaml -v {closed}")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "plots", "replay.html", "run.json", "trajectory.csv"]
    assert json.loads((folder / "runs/run/run.json").read_text())["robot"] == "arm"
    assert "liedyn: " not in (folder / "runs/run/trajectory.csv").read_text(encoding="utf-8").replace("# liedyn: ", "")


def test_nobody_reads_what_is_said(folder):
    """The run is written although the reader of its messages has ended (`2>&1 | head -1`)."""
    done = shell("{ $L simulate run.yaml -v --no-plots 2>&1 1>&3 | true; } 3>/dev/null")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir("runs/run")) == ["model.yaml", "run.json", "trajectory.csv"]


def test_a_reader_that_goes_away_early(folder):
    """One line is read of a CSV that is much longer than the buffer of a pipe."""
    ok("simulate", "run.yaml", "--no-plots", "-S", "duration=2", "-S", "output_step=0.001")
    done = shell("{ $L inverse runs/run/trajectory.csv -o -; echo $? >&2; } | head -1")
    assert done.stdout.startswith(b"# robot: ") and done.stdout.count(b"\n") == 1
    assert done.stderr.splitlines()[-1] == b"1" and b"Traceback" not in done.stderr and b"Exception" not in done.stderr


def test_progress_without_stderr(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress(delay=0).stage("working"):
        pass


def test_trees_are_drawn_with_what_the_stream_has():
    assert app.replace_symbols("├─ a\n└─ b …", "ascii") == "|- a\n`- b ..."
    assert app.replace_symbols("├─ a", "utf-8") == app.replace_symbols("├─ a", None) == "├─ a"


def test_lines_for_people_keep_their_ends_and_nothing_else_that_does_not_print():
    assert app.escape_lines("a\tb\n\x1b[1m\u202e\n") == "a\\tb\n\\x1b[1m\\u202e\n"
