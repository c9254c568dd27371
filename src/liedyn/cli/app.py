"""The command line: each command parses, loads, makes one library call, writes and echoes.

Commands import the library inside their functions, so that `--help` needs neither NumPy nor Numba.
"""
from __future__ import annotations

import errno
import functools
import importlib
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click

from liedyn import __version__
from liedyn.errors import LiedynError, LiedynWarning, escape_nonprintable, nearest
from liedyn.io.atomic_output import standard_output

# Standard streams of the process: `print_message` writes to stderr, `print_result` to stdout -----------------------------

_ASCII = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "…": "...", "·": " ", "²": "^2", "±": "+-"})


def prepare_streams() -> None:
    """Set up the standard streams.

    A closed stream (`2>&-`) is opened on the null device. Otherwise the next opened file, a result, would get its number.
    Characters that the encoding of a stream lacks are written as escapes.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)                  # gets the lowest free number, this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)          # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)          # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


WIDTH = 80                              # columns of messages on a terminal
_LONG = 2 * WIDTH                       # characters of a warning on a terminal; -v prints all of it
_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}


def print_message(text: str) -> None:
    """Write lines to stderr, on a terminal at most 80 columns wide. Errors of the stream are ignored, so that no work is lost."""
    with suppress(OSError, ValueError):
        lines = escape_lines(text)
        _write(sys.stderr, "\n".join(map(wrap, lines.split("\n"))) if sys.stderr.isatty() else lines)


def print_report(level: str, text: str, *, verbose: bool = True) -> None:
    """Write a message to stderr: one line, on a terminal coloured, wrapped, and short unless `verbose`."""
    with suppress(OSError, ValueError):
        line, prefix = escape_nonprintable(" ".join(text.split())), f"{level}:"
        if sys.stderr.isatty():
            line = wrap(f"{prefix} {line if verbose else shorten(line)}").removeprefix(prefix + " ")
        if has_colours(sys.stderr):
            prefix = click.style(prefix, fg=_COLOURS[level], bold=True)
        _write(sys.stderr, f"{prefix} {line}")


def has_colours(stream: TextIO) -> bool:
    """Return whether text is coloured: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def wrap(line: str) -> str:
    """Return a line as lines of at most 80 columns, or of the terminal's width, indented from the second on."""
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def shorten(text: str) -> str:
    """Return a message that is not longer than two lines: whole clauses of its beginning, and the code at its end."""
    if len(text) <= _LONG:
        return text
    code = text[text.rindex(" ["):] if text.endswith("]") and " [" in text else ""
    beginning = text[:_LONG - len(code) - len(_MORE) + 1]
    ends = [m.start() for m in re.finditer(r"[;,] |\. |: ", beginning)
            if beginning.count("(", 0, m.start()) == beginning.count(")", 0, m.start())]        # not within parentheses
    return f"{text[:ends[-1]]}{_MORE}{code}" if ends else text


_MORE = " … (-v prints all)"


def print_result(text: str) -> None:
    """Write a result to stdout."""
    stream = standard_output()
    _write(stream, replace_symbols(escape_lines(text), getattr(stream, "encoding", None)))


def _write(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def escape_lines(text: str) -> str:
    """Return text with escapes for control characters; see `escape_nonprintable`."""
    return "\n".join(map(escape_nonprintable, text.split("\n")))


def replace_symbols(text: str, encoding: str | None) -> str:
    """Return the text with the characters of trees and tables replaced by ASCII if the encoding lacks them."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_ASCII)
    return text


# Commands ---------------------------------------------------------------------------------------------------------------

# The commands in the order of `--help`: the module of `liedyn.cli` that contains a function of this name, which is imported when
# the command is used, or the command itself. CONTRIBUTING.md explains how to add one.
COMMANDS: dict[str, str | click.Command] = {
    "simulate": "simulate", "batch": "batch", "linearize": "result_commands", "inverse": "trajectory_commands",
    "forward": "trajectory_commands", "hybrid": "trajectory_commands", "kinematics": "trajectory_commands",
    "view": "robot_commands", "info": "robot_commands", "check": "robot_commands", "convert": "robot_commands",
    "plot": "result_commands", "replay": "result_commands", "parameters": "trajectory_commands",
    "identify": "trajectory_commands",
    "derivatives": "trajectory_commands", "assemble": "assembly", "ik": "inverse_kinematics",
    "move": "robot_commands", "excite": "robot_commands", "export": "robot_commands",
    "template": "robot_commands", "schema": "robot_commands", "warmup": "robot_commands",
    "demo": "example_commands", "examples": "example_commands"}


@functools.cache
def _add_installed() -> None:
    """Add commands of installed packages: entry points in the group `liedyn.commands`."""
    from importlib.metadata import entry_points
    for point in entry_points(group="liedyn.commands"):
        COMMANDS.setdefault(point.name, point.load())


INTERRUPTED = 130                       # exit status of shells for a process ended by Ctrl-C


@contextmanager
def _report_errors() -> Iterator[None]:
    """Convert errors to a line on stderr and an exit status. Unexpected errors keep their traceback."""
    try:
        yield
    except LiedynError as error:
        message, status = str(error), error.exit_status
    except click.UsageError as error:
        advice = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        message, status = f"{error.format_message().rstrip('.')}{advice}", error.exit_code
    except KeyboardInterrupt as error:
        message, status = f"interrupted; {error if error.args else 'nothing is written'}", INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        message, status = f"the output cannot be written: {error.strerror}", 1
        _flush_or_discard(sys.stdout)
    else:
        return
    print_report("error", message)
    raise click.exceptions.Exit(status)


def _flush_or_discard(stream: TextIO) -> None:
    """Write the buffer of a stream, or discard it. Python would write it again at exit, with a second error."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Commands(click.Group):
    """Group that imports a command at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:           # noqa: ARG002 - a method of click
        """Return the names of all commands, in the order of `--help`."""
        _add_installed()
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:       # noqa: ARG002
        """Return the command of this name, or None."""
        if name not in COMMANDS:
            _add_installed()
        command = COMMANDS.get(name)
        if isinstance(command, str):
            imported: click.Command = getattr(importlib.import_module(f"liedyn.cli.{command}"), name)
            return imported
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the arguments. The error for an unknown name suggests the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = nearest(args[0], COMMANDS)
            if hint is None:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; {hint}", error.ctx) from None

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line with prepared standard streams."""
        prepare_streams()
        try:
            return super().main(*args, **options)
        finally:
            _flush_or_discard(sys.stderr)                   # a closed reader is no failure of the command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Without arguments, print the help and exit with status 2."""
        if not args:                                        # versions of click differ in what they do
            print_message(ctx.get_help())
            raise click.exceptions.Exit(2)
        return super().parse_args(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse the arguments of the command, and report errors."""
        with _report_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report errors."""
        with _report_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore", LiedynWarning)  # commands print the warnings of results
            if not sys.warnoptions:                         # results are checked to be finite, which says more than NumPy's
                warnings.simplefilter("ignore", RuntimeWarning)
            return super().invoke(ctx)


@click.group("liedyn", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH})
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """Inverse, forward and hybrid dynamics of robots from URDF, YAML and MJCF files.

    \b
    liedyn simulate configs/panda_hybrid.yaml         simulate a scenario
    liedyn inverse runs/panda_hybrid/trajectory.csv   joint torques of a motion
    liedyn info robots/panda.yaml                     content of a robot file

    Exit status: 0 success, 1 the computation failed, 2 wrong usage, 3 invalid input, 4 a check failed,
    130 interrupted, 143 ended by SIGTERM.
    """
    from liedyn.dynamics.batching.threads import cores

    cores()                                                 # raises for an invalid LIEDYN_THREADS before anything runs
