"""Folder of an unfinished run, `NAME.unfinished` next to its run folder NAME: its rows so far, and a checkpoint.

    rows          rows one after another, float64, in the layout of `RunRecorder`
    checkpoint    a SHA-256 digest, then an .npz file with the state of the run: its arrays, and its other values under "json",
                  with the command of the run, and the size and the SHA-256 digest of the valid rows

Rows are appended; a checkpoint replaces the previous one in one step. If a process is killed at any time, there is a checkpoint
with at least its rows. The process that computes the run holds a lock on the folder.
"""
from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from liedyn import __version__
from liedyn.errors import UsageError
from liedyn.io.atomic_output import CHECKPOINT, hold, part_name, remove, translate_os_errors, unfinished_of

_ROWS, _NEW = "rows", "checkpoint.new"
_JSON = "json"                     # the entry of what is no array
_VERSION = f"{__version__}, 7"     # of liedyn, and of the layout of checkpoints
_DIGEST = hashlib.sha256().digest_size
_BLOCK = 1 << 20                   # bytes that are read at once


class Unfinished:
    """Rows and checkpoint of one run. Nothing is on disk before `begin` or `load`.

    folder     the run folder
    command    options of the run, which `read_checkpoint` returns
    stop       number of a signal that ends the run, or 0
    listening  whether signals are reported to the run
    """

    def __init__(self, folder: str | Path):
        self.folder, self.stop = Path(folder), 0
        self.command: dict[str, Any] = {}
        self.path, self.is_open, self.listening = unfinished_of(folder), False, False
        self._lock: int | None = None
        self._file: IO[bytes] | None = None                # None before `begin` or `load`
        self._rooms: list[Path] = []
        self._hash, self._size = hashlib.sha256(), 0       # of all rows in the file [bytes]

    def begin(self) -> None:
        """Create the folder and remove an older one. Raise UsageError if another process holds its lock."""
        with translate_os_errors(self.folder):
            if self.path.exists():
                self._hold()
                self._put_away()
            while not self.is_open:                        # again where another process removes it just now
                self.path.mkdir(parents=True, exist_ok=True)
                self._hold()
            self._file = (self.path / _ROWS).open("wb")
            self._hash, self._size = hashlib.sha256(), 0

    def _hold(self) -> None:
        self._lock = hold(self.path)
        self.is_open = self._lock is not None
        if self._lock is None and self.path.exists():
            raise UsageError(f"another process is computing {self.folder}")

    def _put_away(self) -> None:
        """Remove the folder. It is first renamed to a part name, so that it disappears at once."""
        if self.is_open:
            away = self.path.with_name(part_name())
            try:
                self.path.rename(away)
                remove(away)
            except OSError:                                # Windows: a program has a file open
                with suppress(OSError):
                    (self.path / CHECKPOINT).unlink()      # so that the run counts as finished
        self._release()

    def _release(self) -> None:
        if self._lock is not None and self._lock >= 0:
            os.close(self._lock)
        self._lock, self.is_open = None, False

    def append(self, rows: np.ndarray) -> None:
        """Append rows (n, width) to the file."""
        with translate_os_errors(self.folder):
            rows = np.ascontiguousarray(rows)
            self._open_file.write(rows.data)
            self._hash.update(rows.data)
            self._size += rows.nbytes

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint in place of the previous one. state: nested dict of arrays and JSON values."""
        with translate_os_errors(self.folder):
            self._sync(self._open_file)
            rows = {"size": self._size, "sha256": self._hash.hexdigest()}
            content, file_state = io.BytesIO(), {"version": _VERSION, "command": self.command, "rows": rows}
            arrays, values = split_arrays({**state, "file": file_state})
            named: dict[str, Any] = {**arrays, _JSON: np.array(json.dumps(values))}
            np.savez(content, **named)
            with (self.path / _NEW).open("wb") as file:
                file.write(hashlib.sha256(content.getvalue()).digest())
                file.write(content.getvalue())
                self._sync(file)
            (self.path / _NEW).replace(self.path / CHECKPOINT)

    @property
    def _open_file(self) -> IO[bytes]:
        assert self._file is not None, "begin or load comes first"
        return self._file

    @staticmethod
    def _sync(file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())

    def _load_rows(self, state: dict[str, Any]) -> None:
        """Truncate the file after the rows of a state. Raise UsageError if these rows differ from those of the state."""
        try:
            self._file = file = (self.path / _ROWS).open("r+b")
        except FileNotFoundError:
            raise _damaged(self.path) from None
        self._size, self._hash = state["size"], _hash_of_start(file, state["size"])
        if self._hash.hexdigest() != state["sha256"]:
            raise _damaged(self.path)
        file.truncate(self._size)
        file.seek(self._size)

    def load(self) -> dict[str, Any]:
        """Return the state of the last checkpoint, as passed to `save`.

        Raises UsageError if another process holds the lock, or the files are damaged.
        """
        with translate_os_errors(self.folder):
            self._hold()
            state = read_checkpoint(self.path)
            self._load_rows(state.pop("file")["rows"])
        return state

    def table(self, width: int) -> np.ndarray:
        """Return all rows (rows, width) as an array on disk."""
        self._open_file.flush()
        rows = (self.path / _ROWS).stat().st_size // (8 * width)
        if rows == 0:
            return np.zeros((0, width))
        return np.memmap(self.path / _ROWS, dtype=np.float64, mode="r", shape=(rows, width)).view(np.ndarray)

    def room(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array of zeros on disk, next to the rows."""
        if 0 in shape:
            return np.zeros(shape)
        self._rooms.append(self.path / name)
        return np.memmap(self._rooms[-1], dtype=np.float64, mode="w+", shape=shape).view(np.ndarray)

    def close(self, *, finished: bool) -> None:
        """Release the lock. finished: remove the files, which are no longer needed."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        if finished:
            if not self.is_open and self.path.exists():        # of an older run, which this one has replaced
                with suppress(UsageError):
                    self._hold()
            self._put_away()
            return
        for path in self._rooms:
            path.unlink(missing_ok=True)
        self._release()


def _hash_of_start(file: IO[bytes], size: int) -> Any:
    """Return the SHA-256 of the first `size` bytes, or of all if the file is shorter."""
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, _BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the state passed to `save`, and the command as "file".

    Raises UsageError if the file is damaged or of another version.
    """
    data = (path / CHECKPOINT).read_bytes()
    digest, content = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise _damaged(path)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        if _JSON not in file.files:
            raise of_another_version(path)
        arrays = {name: file[name] for name in file.files}
    state = json.loads(str(arrays.pop(_JSON)))
    if state["file"]["version"] != _VERSION:
        raise of_another_version(path)
    return join_arrays(state, arrays)


def split_arrays(state: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a nested state by path, "rhs.constraints.multipliers", and the other values, nested as before."""
    arrays: dict[str, np.ndarray] = {}
    values: dict[str, Any] = {}
    for name, x in state.items():
        if isinstance(x, np.ndarray):
            arrays[prefix + name] = x
        elif isinstance(x, Mapping):
            inner, values[name] = split_arrays(x, f"{prefix}{name}.")
            arrays |= inner
        else:
            values[name] = x
    return arrays, values


def join_arrays(values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the nested state from the results of `split_arrays`."""
    for path, x in arrays.items():
        *outer, name = path.split(".")
        target = values
        for key in outer:
            target = target[key]
        target[name] = x
    return values


def of_another_version(path: Path) -> UsageError:
    """Return the error for a checkpoint that another version of liedyn wrote."""
    return UsageError(f"the run in {path} cannot be resumed: it was started by another version of liedyn (--force without "
                      "--resume starts over)")


def _damaged(path: Path) -> UsageError:
    return UsageError(f"the checkpoint in {path} is damaged: the run cannot be resumed (--force without --resume starts over)")
