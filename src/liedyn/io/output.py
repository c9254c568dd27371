"""Writing results: whole or not at all, and over an existing one only by force."""
from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from liedyn.errors import UsageError

STDIO = "-"                             # standard input or output in place of a file


def check_output(path: str | Path, *, force: bool = False) -> None:
    """Refuse, before any work is done, a file that could not be written later (UsageError)."""
    if str(path) == STDIO:
        return
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; a file name is needed")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_file() and not force:
        raise UsageError(f"{path} exists already; --force overwrites it")


@contextmanager
def open_output(path: str | Path, *, force: bool = False) -> Iterator[TextIO]:
    """A text file to write: it appears under its name only when the block ends well. `-` is standard output."""
    if str(path) == STDIO:
        yield sys.stdout
        sys.stdout.flush()
        return
    check_output(path, force=force)
    target = Path(os.path.realpath(path))                   # a link stays a link
    if target.exists() and not target.is_file():            # a pipe or a device is written to, never replaced
        with open(target, "w", encoding="utf-8", newline="") as file:
            yield file
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="") as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def check_folder(path: str | Path, *, mark: str, force: bool = False) -> None:
    """Refuse, before any work is done, a folder that `open_folder` could not write later (UsageError)."""
    path = Path(path)
    if not path.exists():
        above = next(p for p in path.absolute().parents if p.exists())
        if not above.is_dir():
            raise UsageError(f"{path} cannot be written: {above} is no folder")
        return
    if not path.is_dir():
        raise UsageError(f"{path} is a file; a folder is needed")
    if not any(path.iterdir()):
        return
    if not (path / mark).is_file():     # --force must not empty somebody's home
        raise UsageError(f"{path} holds other files and no {mark}: it is not replaced; give another folder with -o")
    if not force:
        raise UsageError(f"{path} exists already; --force overwrites it")


@contextmanager
def open_folder(path: str | Path, *, mark: str, force: bool = False) -> Iterator[Path]:
    """A new folder to fill: it appears under its name, or takes the place of the old one, when the block ends well.

    An existing folder is replaced only by force, and only if it holds the file `mark`, which tells our results.
    Missing folders above it are made.
    """
    check_folder(path, mark=mark, force=force)
    target = Path(os.path.realpath(path))
    part, old = (target.with_name(f".{target.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    try:
        part.mkdir(parents=True)
        yield part
        if target.exists():
            os.replace(target, old)
        os.replace(part, target)
    except OSError as error:
        if old.exists() and not target.exists():
            os.replace(old, target)
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
