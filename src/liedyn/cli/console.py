"""Messages of commands on stderr, results on stdout."""
from __future__ import annotations

import functools
import json
import logging
import shutil
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

from liedyn.cli.app import print_message, print_report, print_result
from liedyn.errors import (
    ComputationError,
    LiedynError,
    LiedynWarning,
    UsageError,
    counted,
    escape_nonprintable,
    list_names,
    of_level,
)
from liedyn.io.atomic_output import STDIO, open_output

if TYPE_CHECKING:                       # NumPy takes a tenth of a second to import
    from liedyn.model.model import Model
    from liedyn.report.plots.saved_plots import SavedPlots
    from liedyn.simulation.run import Result

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

# Progress of long computations: nothing in the first two seconds, then stage and progress -------------------------------

def compilation() -> str:
    """Return what is being compiled at the moment; "" if nothing."""
    module = sys.modules.get("liedyn.numba_tools.compile_cache")        # takes a second to import
    return module.compilation() if module is not None else ""


DELAY = 2.0                              # s before the first message
_REDRAW, _REPEAT = 0.25, 5.0             # s between updates on a terminal, between lines elsewhere
_REPEAT_UNCHANGED = 20.0                 # s between lines that differ in their time only


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
        self._details: str | Callable[[], str] = ""
        self._written = ("", 0.0)                            # last text and when
        self._done = threading.Event()

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Name the stage of a block. Stages may be nested; the innermost is shown."""
        self._stages.append((text, time.monotonic()))
        self._fraction, self._details = None, ""
        thread = self._start() if len(self._stages) == 1 else None
        try:
            yield
        finally:
            self._stages.pop()
            self._fraction, self._details = None, ""
            if thread is not None:
                self._done.set()
                thread.join()
                self._erase()

    def update(self, fraction: float, details: str | Callable[[], str] = "") -> None:
        """Set the progress of the innermost stage, from 0 to 1, and a text about it. Nothing is written, so calls are cheap.

        details  a function returns the text at the time when it is displayed
        """
        self._fraction, self._details = fraction, details

    def _start(self) -> threading.Thread | None:
        if self._quiet:
            return None
        self._done = threading.Event()
        self._written = ("", 0.0)
        thread = threading.Thread(target=self._watch, args=(self._done,), daemon=True)
        thread.start()
        return thread

    def _watch(self, done: threading.Event) -> None:
        wait = self._delay
        while not done.wait(wait):
            self._report()
            wait = _REDRAW

    def _report(self) -> None:
        stages, fraction = self._stages[-1:], self._fraction
        if not stages:
            return
        (text, start), time_now = stages[0], time.monotonic()
        percent = "" if fraction is None else f" {100 * min(max(fraction, 0.0), 1.0):.0f}%"
        text_of_details = self._details() if callable(self._details) else self._details
        details = f"; {text_of_details}" if text_of_details else ""
        if not text.startswith("compiling"):                 # as those of `warmup`
            text = compilation() or text
        line = f"{escape_nonprintable(text)} …{percent} ({time_now - start:.0f} s{details})"
        if self._terminal:                                   # a longer line could not be redrawn
            columns = shutil.get_terminal_size().columns
            self._write("\r\x1b[K" + (line if len(line) < columns else line[:columns - 2] + "…"))
        elif text != self._written[0] or time_now - self._written[1] >= (_REPEAT if percent else _REPEAT_UNCHANGED):
            self._write(line + "\n")
            self._written = (text, time_now)

    def _erase(self) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):                        # the stream was closed
            self._quiet = True


# Messages and results ---------------------------------------------------------------------------------------------------

_LEVELS: tuple[Decorator, ...] = (
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Print more details."))
_NAMED_EVENTS = 8        # in the line that counts them; events.csv has them all


class Console:
    """Messages at three levels: quiet (errors only), normal, verbose."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False):
        self.quiet, self.verbose = quiet, verbose
        self._warned: set[str] = set()

    @cached_property
    def progress(self) -> Progress:
        """Progress of the command, which is not displayed with --quiet."""
        return Progress(quiet=self.quiet)

    def message(self, text: str) -> None:
        """Print a message, except with --quiet."""
        if not self.quiet:
            print_message(text)

    def detail(self, text: str) -> None:
        """Print a message with --verbose only."""
        if self.verbose:
            print_message(text)

    def warn(self, *issued: LiedynWarning) -> None:
        """Print warnings and information about a result, each once."""
        for warning in issued:
            if not self.quiet and str(warning) not in self._warned:
                self._warned.add(str(warning))
                print_report(warning.level, str(warning), verbose=self.verbose)

    @contextmanager
    def issued_warnings(self) -> Iterator[None]:
        """Print the warnings that functions of the package issue meanwhile."""
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always", LiedynWarning)
            yield
        self.warn(*(each.message for each in log if isinstance(each.message, LiedynWarning)))

    def files(self, paths: Iterable[Path]) -> None:
        """Print the names of written files, with one line for those that differ in their extension only."""
        endings: dict[Path, list[str]] = {}
        for path in paths:
            endings.setdefault(path.with_suffix(""), []).append(path.suffix)
        names = (f"{stem}{', '.join(ends)}" for stem, ends in endings.items())
        if endings:
            self.message("wrote " + "\n      ".join(map(escape_nonprintable, names)))

    def write_text(self, path: str, text: str, *, force: bool) -> None:
        """Write a text to a file, or to standard output for `-`."""
        with open_output(path, force=force) as file:
            file.write(text)
        self.file(path)

    def file(self, path: str, content: str = "") -> None:
        """Print the name of a written file, and a text about its content; nothing for `-`, standard output."""
        if path != STDIO:
            self.message(f"wrote {escape_nonprintable(path)}{f': {content}' if content else ''}")

    def live_page(self, source: str, output: str | None, overrides: Sequence[str], *, as_json: bool, **options: Any) -> Path:
        """Write the page of `liedyn.report.replay.live.write_live` and print what was written. Return its path."""
        from liedyn.report.replay.live import live_output, write_live

        path = output or live_output(source)
        if as_json and path == STDIO:
            raise click.UsageError("-o - and --json cannot be combined: both write to stdout.")
        with self.progress.stage("writing the page"):
            report, about_page = write_live(source, path, overrides=overrides, **options)
        self.warn(*about_page)
        if as_json:
            self.result_json(report)
        self.file(path, f"steps of {report['step']:g} s, {report['bytes'] / 1000:.0f} kB")
        return Path(path)

    def open_page(self, path: Path, *, no_open: bool = False) -> None:
        """Open a page in the browser of the desktop, or print where it is if there is none or `no_open` is true."""
        from liedyn.report.replay.view import open_in_browser
        if no_open or not open_in_browser(path):
            self.message(f"open {escape_nonprintable(str(path))} in a browser")

    def result(self, text: str) -> None:
        """Write a result to stdout."""
        print_result(text)

    def report(self, as_json: bool, value: object, text: str) -> None:
        """Write a result to stdout as JSON or as text."""
        if as_json:
            self.result_json(value)
        else:
            self.result(text)

    def result_json(self, value: object) -> None:
        """Write a result to stdout as JSON in ASCII with escapes, which is valid in every encoding."""
        print_result(json.dumps(value, indent=2, allow_nan=False))

    def timing(self, timing: Mapping[str, float]) -> None:
        """Print the time of each part of the computation [s], with --verbose only."""
        self.detail("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in timing.items()))

    def run(self, result: Result, failure: LiedynError | None, written: SavedPlots, folder: Path, as_json: bool) -> None:
        """Print warnings, a summary of a run and its written files. Raise its failure, or an error for a missing plot."""
        from liedyn.simulation.run_checks import rest_information
        self.warn(*result.warnings, *rest_information(result.model, result.t, result.v, result.tau))
        if as_json:
            self.result((folder / "run.json").read_text(encoding="utf-8").rstrip())
        self.message(result.summary)
        if counts := Counter(event.name for event in result.events):
            names = list_names([f"{name} {count}" for name, count in counts.items()], _NAMED_EVENTS)
            self.message(f"{counted(counts.total(), 'event')}: {names}")
        self.timing(result.timing)
        self.files(written.paths)
        self.warn(*written.warnings)
        if failure is not None:
            raise failure
        check_drawn(written.failures)

    def robot(self, model: Model, path: str | Path | None = None) -> None:
        """Print details of the robot, and one line about its warnings, which `path` shows. Default: those of its file."""
        source = escape_nonprintable(str(model.source))
        self.detail(f"robot {model.name} from {source}: nq {model.nq}, nv {model.nv}, {model.base} base")
        count = len(of_level("warning", model.warnings))
        if count:
            self.warn(LiedynWarning("robot-warnings",
                                    f"{counted(count, 'warning')} about the robot {model.name}; `liedyn check "
                                    f"{path or model.source}` lists {'them' if count > 1 else 'it'}"))


def check_drawn(failures: Mapping[str, str]) -> None:
    """Raise ComputationError if a plot could not be drawn; all other files are written."""
    if failures:
        plots: dict[str, list[str]] = {}
        for name, reason in failures.items():
            plots.setdefault(reason, []).append(name)
        texts = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in plots.items())
        raise ComputationError(f"not drawn: {texts}; all other results are written")


@contextmanager
def arguments_first(check: Callable[[], object]) -> Iterator[None]:
    """If the block raises UsageError because a result exists, call `check`, whose error about wrong arguments comes first."""
    try:
        yield
    except UsageError:
        check()
        raise


def with_console(*options: Decorator) -> Decorator:
    """Return a decorator that adds these options, then -q and -v. The command receives `console`."""
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_levels(*args: Any, quiet: bool, verbose: bool, **values: Any) -> Any:
            if quiet and verbose:
                raise click.UsageError("--quiet and --verbose cannot be combined.")
            with _log_level(quiet):
                return command(*args, console=Console(quiet=quiet, verbose=verbose), **values)
        decorated: Callable[..., Any] = with_levels
        for option in reversed((*options, *_LEVELS)):
            decorated = option(decorated)
        return decorated
    return decorate


@contextmanager
def _log_level(quiet: bool) -> Iterator[None]:
    """Suppress the library's message about compilation, which `progress` already reports, and all warnings if `quiet`."""
    compilation, library = logging.getLogger("liedyn.compile"), logging.getLogger("liedyn")
    silent, level = logging.NullHandler(), library.level
    compilation.addHandler(silent)
    library.setLevel(logging.ERROR if quiet else level)
    try:
        yield
    finally:
        compilation.removeHandler(silent)
        library.setLevel(level)
