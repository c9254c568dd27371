"""Atomic writing of results: completely or not at all. Existing results are replaced only with `force`.

A result is written under a hidden name next to its path, `.liedyn-<random>.part`, and is renamed in one step. The writing
process holds a lock on it. The next process that writes in the folder removes parts without a lock: their process was killed.
"""
from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from liedyn.errors import ComputationError, UsageError

try:
    import fcntl
except ImportError:                     # Windows: no locks, and parts of killed processes are not removed
    fcntl = None                        # type: ignore[assignment]

UNFINISHED, CHECKPOINT = ".unfinished", "checkpoint"
STDIO = "-"                             # standard input or output in place of a file
_PART = re.compile(r"\.liedyn-[0-9a-f]{16}\.part")
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2   # of Linux


def check_output(path: str | Path, *, force: bool = False, endings: Sequence[str] = ()) -> None:
    """Raise UsageError, before any computation, if a file could not be written later. endings: those that its name may have."""
    if str(path) == STDIO:
        return
    path = Path(path)
    if endings and path.suffix.lower() not in endings:
        raise UsageError(f"{path}: expected a name that ends with {' or '.join(endings)}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: expected the name of a file")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_file() and not force:
        raise _exists(path)


@contextmanager
def open_output(path: str | Path, *, force: bool = False) -> Iterator[TextIO]:
    """Open a text file for writing, which appears under its name only if the block succeeds. `-` is standard output."""
    if str(path) == STDIO:
        with _utf8(standard_output()) as stream:
            yield stream
        return
    check_output(path, force=force)
    target = Path(os.path.realpath(path))                   # a link stays a link
    with translate_os_errors(path):
        if target.exists() and not target.is_file():        # a pipe or a device is written to, never replaced
            with target.open("w", encoding="utf-8", newline="") as file:
                yield file
            return
        with _part(target.parent, folder=False) as part:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield file
            try:
                if force or not _link(part, target):
                    part.replace(target)
            except FileExistsError:                         # somebody else came first
                raise _exists(path) from None


def check_folder(path: str | Path, *, mark: str, force: bool = False) -> None:
    """Raise UsageError, before any computation, if `open_folder` could not write a folder later."""
    path = Path(path)
    if not path.exists():
        above = next(p for p in path.absolute().parents if p.exists())
        if not above.is_dir():
            raise UsageError(f"{path} cannot be written: {above} is not a folder")
        return
    if not path.is_dir():
        raise UsageError(f"{path} is a file: expected a folder")
    if not any(path.iterdir()):
        return
    if not (path / mark).is_file():     # --force must not empty somebody's home
        raise UsageError(f"{path} contains other files and no {mark}, so it is not replaced; choose another folder")
    if not force:
        raise _exists(path)


@contextmanager
def open_folder(path: str | Path, *, mark: str, force: bool = False) -> Iterator[Path]:
    """Create a folder that appears under its name, or replaces the existing one, when the block succeeds.

    An existing folder is replaced only with `force`, and only if it contains the file `mark`, which identifies results of liedyn.
    If several processes create the same folder without `force`, one succeeds and the others raise UsageError. Missing parent
    folders are created.
    """
    check_folder(path, mark=mark, force=force)
    target, done = Path(os.path.realpath(path)), False
    try:
        with translate_os_errors(path), _folders(target.parent), _part(target.parent, folder=True) as part:
            yield part
            check_folder(path, mark=mark, force=force)      # again: somebody else may have come first
            done = _publish(part, target, force)
            if not done:
                raise _exists(path)
    except KeyboardInterrupt:
        if done:
            raise KeyboardInterrupt(f"{path} is written") from None
        raise


def unfinished_of(folder: str | Path) -> Path:
    """Return the path of the files of an unfinished run (see `io.checkpoint_files`)."""
    real = Path(os.path.realpath(folder))
    return real.with_name(real.name + UNFINISHED)


def is_unfinished(folder: str | Path) -> bool:
    """Return whether a checkpoint of the run of this folder exists."""
    return os.path.isfile(unfinished_of(folder) / CHECKPOINT)       # noqa: PTH113 - false for a name that is too long


def standard_output() -> TextIO:
    """Return sys.stdout. Raise ComputationError if the process was started without one."""
    if sys.stdout is None:
        raise ComputationError("the output cannot be written: standard output is closed")
    return sys.stdout


@contextmanager
def scratch_folder(next_to: Path) -> Iterator[Path]:
    """Create a temporary folder in the folder `next_to`, which is removed at the end of the block."""
    with _part(next_to, folder=True) as part:
        yield part


_DOUBLE_ENDINGS = ".urdf.xacro", ".xml.xacro", ".loops.yaml", ".loops.yml", ".columns.yaml"


def stem_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without its ending: arm of arm.urdf, arm.urdf.xacro and arm.loops.yaml, arm.v2 of arm.v2.urdf."""
    name = Path(path).name
    ending = next((ending for ending in _DOUBLE_ENDINGS if name.lower().endswith(ending) and len(name) > len(ending)), None)
    return name[:-len(ending)] if ending else Path(path).stem


def path_part(text: str) -> str:
    """Return the text as a component of a path: no separators, no unprintable characters, not `.` or `..`."""
    plain = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in text).strip(" ")
    return plain if plain.strip(".") else "_" * max(len(plain), 1)


def _exists(path: str | Path) -> UsageError:
    return UsageError(f"{path} already exists; --force or force=True overwrites it")


@contextmanager
def _utf8(stream: TextIO) -> Iterator[TextIO]:
    """Let a stream write UTF-8 within the block, whatever the encoding of the terminal."""
    if not hasattr(stream, "reconfigure"):
        yield stream
        return
    encoding = stream.encoding
    stream.reconfigure(encoding="utf-8")
    try:
        yield stream
        stream.flush()
    finally:
        with suppress(OSError):                             # the reader went away, or the disk is full, which was reported
            stream.reconfigure(encoding=encoding)


@contextmanager
def translate_os_errors(path: str | Path) -> Iterator[None]:
    """Translate errors of the operating system into an error that names the result."""
    try:
        yield
    except (OSError, UsageError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        # of a file in a folder: the message names the folder, not the hidden name under which it is made
        raise UsageError(f"{path} cannot be written: {cause.strerror or cause}") from cause


@contextmanager
def _folders(folder: Path) -> Iterator[None]:
    """Create the folder and its parents. If the block fails, remove those that were created and are empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


@contextmanager
def _part(parent: Path, *, folder: bool) -> Iterator[Path]:
    """Create a hidden, locked file or folder in `parent`. Remove whatever has its name at the end."""
    _remove_left_overs(parent)
    part, lock = parent / part_name(), None
    try:
        while lock is None:                                 # again where another process took it for a left-over
            part = parent / part_name()
            part.mkdir() if folder else part.touch(exist_ok=False)
            lock = hold(part)
        yield part
    finally:
        remove(part)
        if lock is not None and lock >= 0:
            os.close(lock)


def part_name() -> str:
    """Return a hidden name; files with such a name are removed if no process holds a lock on them."""
    return f".liedyn-{os.urandom(8).hex()}.part"


def _remove_left_overs(parent: Path) -> None:
    """Remove the parts in `parent` that no process has locked: their process was killed."""
    with suppress(OSError):
        for part in [path for path in parent.iterdir() if _PART.fullmatch(path.name)]:
            lock = hold(part)
            if lock is not None and lock >= 0:
                remove(part)
                os.close(lock)


def hold(path: Path) -> int | None:
    """Lock a file or folder. Return a descriptor that holds the lock until it is closed, -1 without support for locks, else None.

    None: another process holds the lock or has removed the file. The system releases the lock when the process ends for any
    reason. Unlike a process id, it also works between containers and, if the file system supports it, between machines.
    """
    if fcntl is None:
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same_file = os.path.samestat(path.stat(), os.fstat(descriptor))
    except (BlockingIOError, FileNotFoundError):
        is_same_file = False
    except OSError:
        os.close(descriptor)
        return -1
    if is_same_file:
        return descriptor
    os.close(descriptor)
    return None


def remove(part: Path) -> None:
    """Remove a file or a folder with its content, if it exists."""
    try:
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
    except KeyboardInterrupt:               # short, and not possible later
        remove(part)
        raise


def _link(part: Path, target: Path) -> bool:
    """Give a file its name in one step; raise FileExistsError if it exists. Return False if there are no hard links."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _publish(part: Path, target: Path, force: bool) -> bool:
    """Rename the folder `part` to `target`. Return False if the name exists and `force` is false.

    With `force`, the replaced folder is `part` afterwards, or is removed.
    """
    try:
        if fcntl is None and target.is_dir():
            with suppress(OSError):                     # Windows renames over nothing only, and an empty folder counts as nothing
                target.rmdir()
        part.rename(target)                             # in one step, over nothing or an empty folder
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        if not force:
            return False
        if not _exchange(part, target):
            _replace_in_two_steps(part, target)
    return True


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two paths in one step. Return False if this does not work for any reason."""
    import ctypes

    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, TypeError, AttributeError):            # no such function, or no such system
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0)


def _replace_in_two_steps(part: Path, target: Path) -> None:
    """Replace a folder without an exchange. A process killed between the steps leaves the old folder under the name `old`."""
    old = target.with_name(f"{target.name}.old-{os.urandom(4).hex()}")
    try:
        target.rename(old)
        part.rename(target)
    except BaseException:                                   # an interrupt, too
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        if target.exists() and old.exists():
            old.rename(part)                            # to be removed as what is left over
