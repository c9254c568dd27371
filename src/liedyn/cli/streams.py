"""The standard streams of the process: what people read goes out by `tell` and `show`."""
from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from liedyn.errors import shown
from liedyn.io.output import standard_output

_DRAWN = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "…": "...", "·": " ", "²": "^2", "±": "+-"})


def prepare() -> None:
    """Make of the standard streams what the rest can count on.

    One that was closed (`2>&-`) is opened on nothing: else the next file to be opened, a result, would take its number. What a
    stream's encoding lacks is written as an escape, not an error.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)                  # gets the lowest free number, this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)          # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)          # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def tell(text: str) -> None:
    """Lines for people, on stderr. Where nobody is there to read them, no work is lost for that."""
    with suppress(OSError, ValueError):
        _write(sys.stderr, printed(text))


def show(text: str) -> None:
    """A result for people, on stdout."""
    stream = standard_output()
    _write(stream, drawn_for(getattr(stream, "encoding", None), printed(text)))


def _write(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def printed(text: str) -> str:
    """Lines of ours as a terminal may have them; see `shown`."""
    return "\n".join(map(shown, text.split("\n")))


def drawn_for(encoding: str | None, text: str) -> str:
    """The text with the signs of which trees and tables are made as ASCII where the encoding lacks them."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_DRAWN)
    return text
