"""Reading an input file whole, with one clear error where that cannot be done."""
from __future__ import annotations

import os
import re
import stat

from liedyn.errors import InputError, Place

LARGEST_FILE = 10_000_000            # bytes: a robot or a scenario is far smaller; a bomb is stopped before it is parsed
_KINDS = ((stat.S_ISDIR, "directory"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"),
          (stat.S_ISBLK, "device"))
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")


def read_whole(path: str | os.PathLike, error: type[InputError], largest: int, hint: str = "save it to a file first") -> bytes:
    """Contents of a regular file; raises `error`, before anything is read, for whatever is none or is larger than `largest`
    bytes. `hint` says what to do instead of giving a pipe or a device, which may have no end."""
    place = Place(os.fspath(path))
    try:
        status = os.stat(path)
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), None)
        if kind:
            raise error(f"this is a {kind}", place=place, expected="a file", hint=None if kind == "directory" else hint)
        if status.st_size > largest:
            raise too_large(error, path, largest)
        with open(path, "rb") as stream:
            data = stream.read(largest + 1)                # it may have grown, or be of a kind that tells no size
    except InputError:
        raise
    except FileNotFoundError:
        raise error("no such file", place=place) from None
    except (OSError, ValueError) as problem:               # ValueError: a NUL in the path
        raise error(f"cannot be read: {getattr(problem, 'strerror', None) or problem}", place=place) from None
    if len(data) > largest:
        raise too_large(error, path, largest)
    return data


def too_large(error: type[InputError], path: str | os.PathLike, largest: int) -> InputError:
    return error("the file is too large", place=Place(os.fspath(path)), expected=f"at most {largest / 1e6:g} MB")


def read_bytes(path: str | os.PathLike, error: type[InputError], largest: int = LARGEST_FILE) -> bytes:
    """As `read_whole`; an empty or a binary file is refused, too."""
    data, place = read_whole(path, error, largest), Place(os.fspath(path))
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


def number_in_cell(cell: str, place: Place, error: type[InputError]) -> float:
    """The number that a cell holds; it may not be finite."""
    try:
        if "_" in cell or not cell.isascii():              # Python's float takes 1_000 and other scripts' digits
            raise ValueError
        return float(cell)
    except ValueError:
        raise error("not a number" if cell.strip() else "a value is missing", place=place, found=cell) from None
