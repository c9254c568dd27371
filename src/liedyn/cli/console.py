"""Messages of commands on stderr, results on stdout."""
from __future__ import annotations

import functools
import json
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from liedyn.cli.app import print_message, show
from liedyn.errors import ComputationError, LiedynWarning, shown

if TYPE_CHECKING:
    from liedyn.model.model import Model
    from liedyn.report.plots.save_plots import SavedPlots
    from liedyn.simulation.run import Result

# Progress of long computations: nothing in the first two seconds, then stage and progress -------------------------------

DELAY = 2.0                              # s before the first message
_REDRAW, _REPEAT = 0.25, 5.0             # s between updates on a terminal, between lines elsewhere


class Progress:
    """Progress on stderr, written by a separate thread while the main thread computes.

    On a terminal one line is redrawn and removed at the end; elsewhere a line is written from time to time.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None, delay: float = DELAY):
        self._stream = stream or sys.stderr
        self._quiet, self._delay = quiet or self._stream is None, delay     # None: the process has no stderr
        self._terminal = self._stream is not None and self._stream.isatty()
        self._stages: list[tuple[str, float]] = []
        self._fraction: float | None = None
        self._about = ""
        self._said = ("", 0.0)                               # last text and when
        self._done = threading.Event()

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Name the stage of a block. Stages may be nested; the innermost is shown."""
        self._stages.append((text, time.monotonic()))
        self._fraction, self._about = None, ""
        thread = self._start() if len(self._stages) == 1 else None
        try:
            yield
        finally:
            self._stages.pop()
            self._fraction, self._about = None, ""
            if thread is not None:
                self._done.set()
                thread.join()
                self._erase()

    def update(self, fraction: float, about: str = "") -> None:
        """Set the progress of the innermost stage, from 0 to 1, and a text about it. Nothing is written, so calls are cheap."""
        self._fraction, self._about = fraction, about

    def _start(self) -> threading.Thread | None:
        if self._quiet:
            return None
        self._done = threading.Event()
        self._said = ("", 0.0)
        thread = threading.Thread(target=self._watch, args=(self._done,), daemon=True)
        thread.start()
        return thread

    def _watch(self, done: threading.Event) -> None:
        wait = self._delay
        while not done.wait(wait):
            self._show_stage()
            wait = _REDRAW

    def _show_stage(self) -> None:
        stages, fraction = self._stages[-1:], self._fraction
        if not stages:
            return
        (text, since), time_now = stages[0], time.monotonic()
        percent = "" if fraction is None else f" {100 * min(max(fraction, 0.0), 1.0):.0f}%"
        about = f"; {self._about}" if self._about else ""
        line = f"{shown(text)} …{percent} ({time_now - since:.0f} s{about})"
        if self._terminal:
            self._write("\r\x1b[K" + line)
        elif text != self._said[0] or time_now - self._said[1] >= _REPEAT:
            self._write(line + "\n")
            self._said = (text, time_now)

    def _erase(self) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):                        # the stream was closed
            self._quiet = True


# console ----------------------------------------------------------------------------------------------------------------

_LEVELS = (click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
           click.option("-v", "--verbose", is_flag=True, help="Print more details."))
_NAMED_EVENTS = 8        # in the line that counts them; events.csv has them all


class Console:
    """Messages at three levels: quiet (errors only), normal, verbose."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False):
        self.quiet, self.verbose = quiet, verbose

    @cached_property
    def progress(self) -> Progress:
        """Progress of this command, shown on a terminal."""
        return Progress(quiet=self.quiet)

    def say(self, text: str) -> None:
        """Print a text, unless --quiet is given."""
        if not self.quiet:
            print_message(text)

    def detail(self, text: str) -> None:
        """Print a text if --verbose is given."""
        if self.verbose:
            print_message(text)

    def warn(self, *warnings: LiedynWarning) -> None:
        """Print warnings about a result."""
        for warning in warnings:
            self.say(f"liedyn: warning: {warning}")

    def wrote(self, paths: Iterable[Path]) -> None:
        """Print the names of files, with one line for those that differ in their extension only."""
        endings: dict[Path, list[str]] = {}
        for path in paths:
            endings.setdefault(path.with_suffix(""), []).append(path.suffix)
        self.say("wrote " + "\n      ".join(shown(f"{stem}{', '.join(ends)}") for stem, ends in endings.items()))

    def write_text(self, path: str, text: str, *, force: bool) -> None:
        """Write a text to a file, or to standard output for `-`."""
        from liedyn.io.atomic_output import STDIO, open_output

        with open_output(path, force=force) as file:
            file.write(text)
        if path != STDIO:
            self.wrote_file(path)

    def wrote_file(self, path: str, details: str = "") -> None:
        """Print the name of a written file, followed by `details` about it."""
        self.say(f"wrote {shown(path)}{details}")

    def result(self, text: str) -> None:
        """Write a text to standard output."""
        show(text)

    def result_json(self, value: Any) -> None:
        """Write JSON in ASCII with escapes, which is valid in every encoding."""
        show(json.dumps(value, indent=2, allow_nan=False))

    def seconds(self, timing: Mapping[str, float]) -> None:
        """Print how long each part took if --verbose is given."""
        self.detail("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in timing.items()))

    def run(self, result: Result, written: SavedPlots, folder: Path, as_json: bool) -> None:
        """Print a summary of a run and its written files."""
        if as_json:
            self.result((folder / "run.json").read_text(encoding="utf-8").rstrip())
        from liedyn.simulation.name_binding import format_names
        self.say(result.summary)
        if counts := Counter(event.name for event in result.events):
            many = sum(counts.values())
            self.say(
                f"{many} event{'s' * (many > 1)}: {format_names([f'{name} {n}' for name, n in counts.items()], _NAMED_EVENTS)}")
        self.seconds(result.timing)
        self.wrote(written.paths)

    def robot(self, model: Model) -> None:
        """Print details of the robot, and one line about its warnings."""
        self.detail(f"robot {model.name} from {shown(str(model.source))}: nq {model.nq}, nv {model.nv}, {model.base} base")
        count = len(model.warnings)
        if count:
            self.warn(LiedynWarning("robot-warnings",
                                    f"{count} warning{'s' * (count > 1)} about the robot {model.name}; `liedyn check "
                                    f"{model.source}` lists {'them' if count > 1 else 'it'}"))


def check_drawn(failures: Mapping[str, str]) -> None:
    """Raise ComputationError if a plot could not be drawn; all other files are written."""
    if failures:
        names: dict[str, list[str]] = {}
        for name, why in failures.items():
            names.setdefault(why, []).append(name)
        reasons = "; ".join(f"{', '.join(plots)} ({why})" for why, plots in names.items())
        raise ComputationError(f"not drawn: {reasons}; all other results are written")


def with_console(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds these options, then -q and -v. The command receives `console`."""
    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_levels(*args: Any, quiet: bool, verbose: bool, **values: Any) -> Any:
            if quiet and verbose:
                raise click.UsageError("--quiet and --verbose contradict each other.")
            with _messages_of_the_library(quiet):
                return command(*args, console=Console(quiet=quiet, verbose=verbose), **values)
        for option in reversed((*options, *_LEVELS)):
            with_levels = option(with_levels)
        return with_levels
    return decorated


@contextmanager
def _messages_of_the_library(quiet: bool) -> Iterator[None]:
    """Suppress the library's message about compilation, which `progress` already reports."""
    compilation, all_of_it = logging.getLogger("liedyn.compile"), logging.getLogger("liedyn")
    nowhere, level = logging.NullHandler(), all_of_it.level
    compilation.addHandler(nowhere)
    all_of_it.setLevel(logging.ERROR if quiet else level)
    try:
        yield
    finally:
        compilation.removeHandler(nowhere)
        all_of_it.setLevel(level)
