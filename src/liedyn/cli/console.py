"""What a command says: people are addressed on stderr, results go to stdout."""
from __future__ import annotations

import functools
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import click

from liedyn.cli.progress import Progress
from liedyn.cli.streams import show, tell
from liedyn.errors import ComputationError, shown

_LEVELS = (click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
           click.option("-v", "--verbose", is_flag=True, help="Print more details."))
_NAMED_EVENTS = 8        # in the line that counts them; events.csv has them all


class Console:
    """Messages at three levels: quiet (errors only), normal, verbose."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False):
        self.quiet, self.verbose = quiet, verbose

    @cached_property
    def progress(self) -> Progress:
        return Progress(quiet=self.quiet)

    def say(self, text: str) -> None:
        if not self.quiet:
            tell(text)

    def detail(self, text: str) -> None:
        if self.verbose:
            tell(text)

    def note(self, text: str) -> None:
        """Something a person should know before trusting the result."""
        self.say(f"liedyn: note: {shown(text)}")

    def notes(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.note(text)

    def wrote(self, paths: Iterable[Path]) -> None:
        """Name the files, a line for those that differ in their ending only."""
        endings: dict[Path, list[str]] = {}
        for path in paths:
            endings.setdefault(path.with_suffix(""), []).append(path.suffix)
        self.say("wrote " + "\n      ".join(shown(f"{stem}{', '.join(ends)}") for stem, ends in endings.items()))

    def write_text(self, path: str, text: str, *, force: bool) -> None:
        """Into a file, or to standard output for `-`."""
        from liedyn.io.output import STDIO, open_output

        with open_output(path, force=force) as file:
            file.write(text)
        if path != STDIO:
            self.wrote_file(path)

    def wrote_file(self, path: str, what: str = "") -> None:
        self.say(f"wrote {shown(path)}{what}")

    def result(self, text: str) -> None:
        show(text)

    def result_json(self, value) -> None:
        """In ASCII, with escapes: no stream and no terminal takes it wrongly."""
        show(json.dumps(value, indent=2, allow_nan=False))

    def seconds(self, timing: Mapping[str, float]) -> None:
        self.detail("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in timing.items()))

    def run(self, result, written, folder: Path, as_json: bool) -> None:
        """A run and what is written of it."""
        if as_json:
            self.result((folder / "run.json").read_text(encoding="utf-8").rstrip())
        from liedyn.simulation.names import listed
        self.say(result.summary)
        if counts := Counter(event.name for event in result.events):
            many = sum(counts.values())
            self.say(f"{many} event{'s' * (many > 1)}: {listed([f'{name} {n}' for name, n in counts.items()], _NAMED_EVENTS)}")
        self.seconds(result.timing)
        self.wrote(written.paths)

    def robot(self, model) -> None:
        """In detail which robot it is, and one line about what is doubtful in it."""
        self.detail(f"robot {model.name} from {shown(str(model.source))}: nq {model.nq}, nv {model.nv}, {model.base} base")
        count = len(model.findings)
        if count:
            self.note(f"{count} finding{'s' * (count > 1)} about the robot {model.name}; `liedyn check {model.source}` lists "
                      f"{'them' if count > 1 else 'it'}")


def check_drawn(failures: Mapping[str, str]) -> None:
    """ComputationError where a picture could not be drawn; all else is written."""
    if failures:
        names: dict[str, list[str]] = {}
        for name, why in failures.items():
            names.setdefault(why, []).append(name)
        told = "; ".join(f"{', '.join(those)} ({why})" for why, those in names.items())
        raise ComputationError(f"not drawn: {told}; all other results are written")


def with_console(*options: Callable) -> Callable:
    """These options, then -q and -v; the command receives `console`."""
    def decorated(command: Callable) -> Callable:
        @functools.wraps(command)
        def with_levels(*args, quiet: bool, verbose: bool, **values):
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
    """That it compiles is told by `progress`, and not twice."""
    compilation, all_of_it = logging.getLogger("liedyn.compile"), logging.getLogger("liedyn")
    nowhere, level = logging.NullHandler(), all_of_it.level
    compilation.addHandler(nowhere)
    all_of_it.setLevel(logging.ERROR if quiet else level)
    try:
        yield
    finally:
        compilation.removeHandler(nowhere)
        all_of_it.setLevel(level)
