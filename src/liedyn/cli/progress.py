"""Telling people what takes long: nothing in the first two seconds, then what is done and how far it is."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from liedyn.errors import shown

DELAY = 2.0                              # s before anything is said
_REDRAW, _REPEAT = 0.25, 5.0             # s between updates on a terminal, between lines elsewhere


class Progress:
    """Lines on stderr from a thread of its own, so that they appear while the work holds the main one.

    On a terminal one line is drawn over and over and removed at the end; elsewhere a line is written now and then.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None, delay: float = DELAY):
        self._stream = stream or sys.stderr
        self._quiet, self._delay = quiet or self._stream is None, delay     # None: a process without stderr
        self._terminal = self._stream is not None and self._stream.isatty()
        self._stages: list[tuple[str, float]] = []
        self._fraction: float | None = None
        self._about = ""
        self._said = ("", 0.0)                               # last text and when
        self._done = threading.Event()

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Name what the block does. Stages may stand within each other; the innermost is told."""
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
        """How much of the innermost stage is done, from 0 to 1, and words about it. Cheap: only remembered."""
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
            self._tell()
            wait = _REDRAW

    def _tell(self) -> None:
        stages, fraction = self._stages[-1:], self._fraction
        if not stages:
            return
        (text, since), now = stages[0], time.monotonic()
        percent = "" if fraction is None else f" {100 * min(max(fraction, 0.0), 1.0):.0f}%"
        about = f"; {self._about}" if self._about else ""
        line = f"{shown(text)} …{percent} ({now - since:.0f} s{about})"
        if self._terminal:
            self._write("\r\x1b[K" + line)
        elif text != self._said[0] or now - self._said[1] >= _REPEAT:
            self._write(line + "\n")
            self._said = (text, now)

    def _erase(self) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):                        # the stream was closed: nobody listens
            self._quiet = True
