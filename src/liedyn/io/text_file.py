"""Reading an input file whole, with one clear error where that cannot be done."""
from __future__ import annotations

import os
import re

from liedyn.errors import InputError, Place

LARGEST_FILE = 10_000_000            # bytes: a robot or a scenario is far smaller; a bomb is stopped before it is parsed
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_bytes(path: str | os.PathLike, error: type[InputError], largest: int = LARGEST_FILE) -> bytes:
    """Contents of `path`; raises `error` where it is missing, a directory, unreadable, empty, binary or too large."""
    place = Place(os.fspath(path))
    try:
        with open(path, "rb") as stream:
            data = stream.read(largest + 1)
    except FileNotFoundError:
        raise error("no such file", place=place) from None
    except IsADirectoryError:
        raise error("this is a directory", place=place, expected="a file") from None
    except (OSError, ValueError) as problem:
        raise error(f"cannot be read: {getattr(problem, 'strerror', None) or problem}", place=place) from None
    if len(data) > largest:
        raise error("the file is too large", place=place, expected=f"at most {largest / 1e6:g} MB")
    if not data.strip():
        raise error("the file is empty", place=place)
    if b"\x00" in data:
        raise error("this is a binary file", place=place, expected="text in UTF-8")
    return data


def read_text(path: str | os.PathLike, error: type[InputError], largest: int = LARGEST_FILE) -> str:
    """As `read_bytes`, decoded from UTF-8; control characters are refused with their line."""
    data = read_bytes(path, error, largest)
    file = os.fspath(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise error("this is not a text file", place=Place(file, line), expected="text in UTF-8") from None
    control = _CONTROL.search(text)
    if control:
        raise error("a control character", place=Place(file, text.count("\n", 0, control.start()) + 1),
                    found=control.group(), expected="plain text")
    return text
