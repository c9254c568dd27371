"""Messages on a terminal: colours, width, and warnings of two lines."""
import io
import re
from types import SimpleNamespace

import pytest

from command_line import run
from liedyn.cli import app
from liedyn.cli.app import print_message, print_report, shorten, wrap
from liedyn.cli.console import Console
from liedyn.errors import LiedynWarning

LONG = ("NOT RELIABLE: tau.elbow, error 50% or more (2.5 N m); tau.wrist, error 14% (3.2 N m); tau.hand, error 12% "
        "(0.2 N m). The positions are too noisy for two derivatives: use --smooth auto, or add measured derivatives as columns "
        "[not-reliable]")


class Terminal(io.StringIO):
    """A text stream that is a terminal."""

    def isatty(self):
        """Return True."""
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Return stderr as a terminal of 80 columns."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    monkeypatch.setattr(app, "sys", SimpleNamespace(stderr=stream))      # pytest sets sys.stderr itself
    return stream


def without_colours(text):
    """Return the text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("level, colour", [("error", 31), ("warning", 33), ("information", 36)])
def test_levels_have_colours(terminal, level, colour):
    print_report(level, "text")
    assert terminal.getvalue() == f"\x1b[{colour}m\x1b[1m{level}:\x1b[0m text\n"


@pytest.mark.parametrize("variable, value", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(terminal, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    print_report("warning", "text")
    assert terminal.getvalue() == "warning: text\n"


def test_a_name_cannot_write_escape_sequences(terminal):
    print_report("error", "unknown joint \x1b[31mred")
    assert without_colours(terminal.getvalue()) == "error: unknown joint \\x1b[31mred\n"


def test_lines_on_a_terminal_have_80_columns(terminal):
    print_report("warning", LONG)
    print_message("wrote " + "runs/a/plots/torques.png, .svg " * 5)
    lines = without_colours(terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80 and " ".join(" ".join(lines).split()).startswith(f"warning: {LONG}")


def test_a_narrow_terminal_is_not_exceeded(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    print_report("warning", LONG)
    assert max(map(len, without_colours(terminal.getvalue()).splitlines())) <= 50


def test_a_path_is_not_broken():
    path = "runs/" + 90 * "x"
    assert wrap(f"wrote {path}").split() == ["wrote", path]


def test_in_a_pipe_each_message_is_one_complete_line(capsys):
    Console().warn(LiedynWarning("not-reliable", LONG.removesuffix(" [not-reliable]")))
    assert capsys.readouterr().err == f"warning: {LONG}\n"


@pytest.mark.parametrize("verbose, lines", [(False, 3), (True, 4)])
def test_long_warnings_are_short_on_a_terminal(terminal, verbose, lines):
    Console(verbose=verbose).warn(LiedynWarning("not-reliable", LONG.removesuffix(" [not-reliable]")))
    said = without_colours(terminal.getvalue())
    assert len(said.splitlines()) <= lines and said.startswith("warning: NOT RELIABLE: tau.elbow, error 50% or more (2.5 N m)")
    assert said.endswith("[not-reliable]\n") and ("(-v prints all)" in said) == (not verbose)


def test_shorten_ends_with_a_whole_clause():
    assert shorten(LONG) == ("NOT RELIABLE: tau.elbow, error 50% or more (2.5 N m); tau.wrist, error 14% (3.2 N m); "
                             "tau.hand, error 12% (0.2 N m) … (-v prints all) [not-reliable]")
    worst = "limits are exceeded: elbow from t = 1 s (worst 2 rad at t = 2 s, limit 1 rad)"
    assert shorten(f"{worst}, wrist (worst 1; {'x' * 50}, limit {'y' * 60}) [beyond-limits]") == (
        f"{worst} … (-v prints all) [beyond-limits]")                   # not within parentheses
    assert shorten("short [code]") == "short [code]" and shorten("x" * 200) == "x" * 200
    assert all(len(shorten(LONG[:n])) <= max(n, app._LONG) for n in range(0, len(LONG), 7))


def test_errors_of_commands_start_with_their_level(tmp_path):
    result = run("info", tmp_path / "none.yaml")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
