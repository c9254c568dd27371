"""The cache of compiled code: one file for each function and signature, which later processes load.

A file name contains a hash of all liedyn sources of the code, of the versions of the packages and of the processor. Paths and
dates of sources do not count, so all copies of a version share it. Since the code in a file is executed, a file is loaded only
if it belongs to this user or to root, no other user can write to it, and its content has the digest in its header. If the cache
has any fault, code is compiled without it.

This module implements the cache interface of Numba's dispatchers, and the serialization of compiled functions.
"""
from __future__ import annotations

import ast
import atexit
import contextlib
import hashlib
import inspect
import logging
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numpy
from numba import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

fcntl: Any
try:
    import fcntl
except ImportError:                                         # Windows: no locks between processes
    fcntl = None


_PACKAGE = Path(__file__).parents[1]
_NOT_COMPILED = {"numba_tools.compile_cache", "errors", "warning_codes"}            # sources that do not change what is compiled
_GENERATION = re.compile(r".*-[0-9a-f]{16}")
_MAX_GENERATIONS = 60                                # folders, one per module
_FORMAT = "1"
_STARTED = time.time()

# Compiled code in a wheel (`make wheel`): a second, read-only folder of the same layout. Its file names contain the same hashes,
# so code of other sources, or of another Python, Numba, llvmlite or NumPy is never loaded. It is compiled for processors of the
# level x86-64-v3, without names of features, and loaded if the processor has all features of that level.
PREBUILT = _PACKAGE / "prebuilt"
PREBUILT_CPU = "x86-64-v3"
PREBUILT_FEATURES = {f"+{name}" for name in ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "fxsr", "lzcnt", "movbe",
                                             "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave")}
_log = logging.getLogger("liedyn.cache")
T = TypeVar("T")


class CodeCache(NullCache):
    """Cache of the compiled code of one function, with the interface of Numba's caches."""

    def __init__(self, function):
        self._function = function
        self._folder = None
        if not function.__closure__:                        # closures depend on values that are not in the source
            with contextlib.suppress(OSError):              # a function from a prompt has no source
                self._folder = folder_name(function)

    @property
    def cache_path(self):
        """Folder of the compiled code; None if code of the function is not cached."""
        return None if self._folder is None else str(root() / self._folder)

    def load_overload(self, signature, target_context):
        """Load compiled code without a `refresh` of the target context.

        The refresh imports half of Numba (0.5 s), which is needed for compilation only.
        """
        if self._folder is None:
            return None
        path = self._path(root(), signature, target_context.codegen().magic_tuple())
        result = _load_overload(path, signature, target_context) or self._load_prebuilt(signature, target_context)
        if result is None:
            _notice.start()
            _lock(path)                                     # another process may be writing it: then it can be loaded
            result = _load_overload(path, signature, target_context)
        return result

    def save_overload(self, signature, result):
        """Write compiled code to its file, unless it depends on global variables or lifted loops that cannot be cached."""
        if self._folder is None or result.library.has_dynamic_globals or any(not loop.can_cache for loop in result.lifted):
            return
        path = self._path(root(), signature, result.target_context.codegen().magic_tuple())
        _save_value(path, lambda: dumps((signature, result._reduce())))
        _unlock(path)

    def _load_prebuilt(self, signature, target_context):
        if not PREBUILT.is_dir():
            return None
        triple, _, features = target_context.codegen().magic_tuple()
        if not PREBUILT_FEATURES.issubset(features.split(",")):
            return None
        return _load_overload(self._path(PREBUILT, signature, (triple, PREBUILT_CPU, "")), signature, target_context)

    def _path(self, folder, signature, processor) -> Path:
        """Return the path of a file. processor: triple, name and features for which the code is compiled."""
        key = f"{signature} {processor}"
        name = re.sub(r"[^\w.]", "", self._function.__qualname__)[:80]
        return folder / self._folder / f"{name}-{self._function.__code__.co_firstlineno}-{digest(key.encode())}"


def _load_overload(path, signature, target_context):
    def rebuild(content):
        stored_signature, parts = content
        return CompileResult._rebuild(target_context, *parts) if stored_signature == signature else None
    return _load_value(path, rebuild)


class _UnusableFileError(Exception):
    """Reason why a file or folder is not used."""


def _error_text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if isinstance(error, _UnusableFileError) else f"{type(error).__name__}: {error}"


@cache
def _warn_once(text: str) -> None:
    """Issue a warning once per process."""
    _log.warning("liedyn: %s", text)


class _Notice:
    """Message about a compilation that takes more than two seconds, once per process. active: code is not in the cache."""

    def __init__(self):
        self._warned, self._depth, self._timer, self.active = False, 0, None, False

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Enclose a compilation or loading; those of called functions are nested."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.active = False
                if self._timer:
                    self._timer.cancel()
                    self._timer = None

    @property
    def outermost(self) -> bool:
        return self._depth == 1

    def start(self) -> None:
        """Start the timer: the code is not in the cache."""
        self.active = self._depth > 0
        if self._depth and not self._warned and self._timer is None:
            self._timer = threading.Timer(DELAY, self._warn)
            self._timer.daemon = True
            self._timer.start()

    def _warn(self) -> None:
        self._warned = True
        logging.getLogger("liedyn.compile").warning(
            "liedyn: compiling for this processor, once: %s; later runs load the code from %s (`liedyn warmup` does this "
            "beforehand)", FIRST_RUN_TIME, root())


FIRST_RUN_TIME = "4 to 45 s"      # measured: docs/running.md#cache-of-compiled-code
DELAY = 2.0                             # s of compilation before the message
LOCK_TIMEOUT = 120.0                        # s to wait for another process that compiles the same function
_notice = _Notice()
_generating = 0                                             # number of functions that are being generated


def compilation() -> str:
    """Return what this process is compiling at the moment, for messages about progress; "" if nothing."""
    if _notice.active:
        return f"compiling for this processor (once, {FIRST_RUN_TIME}; see `liedyn warmup`)"
    return "generating code for this robot (once)" if _generating else ""


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Enclose a compilation: one at a time, and not during a fork of the process.

    A child process would inherit a lock that is never released, and a compiler in an inconsistent state.
    """
    with global_compiler_lock, _notice():
        try:
            yield
        finally:
            if _notice.outermost:                           # locks that a failed compilation did not release
                _unlock(*_locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=global_compiler_lock.acquire, after_in_parent=global_compiler_lock.release,
                        after_in_child=global_compiler_lock.release)


# Files

def _read(path: Path):
    """Return the signature and parts of a compiled function."""
    prebuilt = path.is_relative_to(PREBUILT)                # as trusted as the sources of the package
    with open(path, "rb", opener=None if prebuilt else _open_no_follow) as file:
        if not prebuilt:
            _check_owner(os.fstat(file.fileno()))
        checksum, content = file.read(32), file.read()
    if hashlib.sha256(content).digest() != checksum:
        raise _UnusableFileError("it is damaged")
    if not prebuilt:
        with contextlib.suppress(OSError):
            os.utime(path.parent)                           # marks the folder as used: see `_prune`
    return pickle.loads(content)


def _write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, also if two processes write the same file."""
    _create_folder(path.parent)
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with open(part, "xb", opener=_open_no_follow) as file:
            file.write(hashlib.sha256(content).digest() + content)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _create_folder(folder: Path) -> None:
    if not folder.exists():
        _prune(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)


_locks: dict[Path, tuple[Path, int]] = {}           # locks of the files that this process will write


def _lock(path: Path) -> None:
    """Wait for another process that compiles the same function, so that simultaneous first runs do not compile everything twice.

    Processes cannot deadlock, since a function is locked before the functions that it calls. If no lock is available, the
    function continues without it.
    """
    if fcntl is None:
        return
    try:
        _create_folder(path.parent)
        lock = path.with_name(f".{path.name}.lock")
        descriptor = _open_no_follow(lock, os.O_WRONLY | os.O_CREAT)
    except OSError:
        return
    _locks[path] = lock, descriptor
    end = time.monotonic() + LOCK_TIMEOUT
    while not _try_lock(descriptor) and time.monotonic() < end:
        time.sleep(0.02)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:                                         # a file system without locks
        pass
    return True


def _unlock(*paths: Path) -> None:
    for path in paths:
        if path in _locks:
            lock, descriptor = _locks.pop(path)
            with contextlib.suppress(OSError):
                lock.unlink()
            os.close(descriptor)


def _open_no_follow(path: str | Path, flags: int) -> int:
    """Open a file without following links. A new file is not accessible to other users."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o644)


def _prune(folder: Path) -> None:
    """Remove code of sources that have changed since, if it was not used for a week."""
    generations = sorted((path for path in folder.iterdir() if _GENERATION.fullmatch(path.name) and path.is_dir()),
                         key=lambda path: path.stat().st_mtime)
    for path in generations[:-_MAX_GENERATIONS]:
        if time.time() - path.stat().st_mtime > 7 * 86400:
            shutil.rmtree(path, ignore_errors=True)


def _load_value(path: Path, rebuild: Callable[[Any], T]) -> T | None:
    """Return the value that `rebuild` creates from the content of a file; None if there is no usable file."""
    try:
        return rebuild(_read(path))
    except FileNotFoundError:
        return None
    except Exception as error:                              # a damaged file may raise anything
        _warn_once(f"some of the compiled code in {path.parents[1]} is not used, and is compiled again: {_error_text(error)}")
        return None


def _save_value(path: Path, content: Callable[[], bytes]) -> None:
    try:
        _write(path, content())
    except Exception as error:
        _warn_once(f"compiled code cannot be stored in {root()}, and the next run compiles it again: {_error_text(error)}")


def load_or_build(folder: str, name: str, build: Callable[[], T]) -> T:
    """Return the value that a file of the cache holds, or the value of build(), which is then written to the file."""
    global _generating
    path = root() / folder / name
    stored: T | None = _load_value(path, lambda content: content)
    if stored is not None:
        return stored
    _generating += 1
    try:
        value = build()
    finally:
        _generating -= 1
    _save_value(path, lambda: pickle.dumps(value))
    return value


# Location

@cache
def root() -> Path:
    """Return the folder of the cache: LIEDYN_CACHE_DIR, else `liedyn` in the user's cache folder, else a temporary one."""
    for folder in _candidates():
        try:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o755, parents=True)
            if not folder.is_dir():
                raise _UnusableFileError("it is not a folder")
            _check_owner(folder.lstat())
            return folder
        except (OSError, _UnusableFileError) as error:
            _warn_once(f"the cache of compiled code is not stored in {folder}: {_error_text(error)}")
    _warn_once("compiled code is stored for this process only; LIEDYN_CACHE_DIR names a folder for it")
    return _temporary_folder()


def _candidates() -> Iterator[Path]:
    """Yield the folders to try, in this order."""
    if setting := os.environ.get("LIEDYN_CACHE_DIR"):
        yield Path(setting).absolute()
    if cache_home := os.environ.get("XDG_CACHE_HOME"):
        yield Path(cache_home, "liedyn").absolute()
    else:
        with contextlib.suppress(RuntimeError):             # a user without a home
            yield Path.home() / ".cache" / "liedyn"


def _check_owner(status: os.stat_result) -> None:
    """Raise _UnusableFileError unless a file or folder belongs to this user or root and no other user can write to it."""
    if stat.S_ISLNK(status.st_mode):
        raise _UnusableFileError("it is a symbolic link; name the folder itself")
    if not hasattr(os, "geteuid"):                          # Windows: folders of the user are not accessible to others
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _UnusableFileError("it belongs to another user")
    if status.st_mode & 0o022:
        raise _UnusableFileError("others can write to it; close it by `chmod -R go-w`")


def _temporary_folder() -> Path:
    folder, owner = tempfile.mkdtemp(prefix="liedyn-"), os.getpid()

    @atexit.register
    def remove():
        if os.getpid() == owner:                            # not in a child of a fork
            shutil.rmtree(folder, ignore_errors=True)
    return Path(folder)


def contents() -> tuple[int, int]:
    """Return the number of compiled functions in the cache and their size in bytes."""
    count = size = 0
    for path in root().glob("*-????????????????/[!.]*"):
        with contextlib.suppress(OSError):
            size += path.stat().st_size
            count += 1
    return count, size


# Names

def folder_name(function) -> str:
    """Return the folder name for a function: its module, and a hash of all dependencies of its code except the processor."""
    return _folder_name(Path(inspect.getfile(function)))


@cache
def _folder_name(path: Path) -> str:
    inside = path.is_relative_to(_PACKAGE)
    name = ".".join(path.relative_to(_PACKAGE).with_suffix("").parts) if inside else path.stem
    versions = (_FORMAT, numba.__version__, llvmlite.__version__, numpy.__version__, sys.implementation.cache_tag,
                getattr(sys, "abiflags", ""), getattr(config, "BOUNDSCHECK", None), getattr(config, "USING_SVML", None))
    content = [source_bytes(source) for source in sorted(source_files(path), key=lambda p: (p != path, p))]
    return f"{name}-{digest(repr(versions).encode(), *content)}"


def source_files(path: Path) -> set[Path]:
    """Return a file and all liedyn sources that it imports, directly or not."""
    files: set[Path] = set()
    pending = [path]
    while pending:
        source = pending.pop()
        if source in files:
            continue
        files.add(source)
        pending += [file for name in _imports(source) if name not in _NOT_COMPILED and (file := source_path(name))]
    return files


@cache
def _imports(path: Path) -> list[str]:
    """Return the modules of liedyn that a source imports anywhere. The caller removes `_NOT_COMPILED`."""
    names: list[str] = []
    for node in _import_statements(source_bytes(path)):
        if isinstance(node, ast.Import):
            names += [name.name.removeprefix("liedyn.") for name in node.names if name.name.startswith("liedyn.")]
        elif isinstance(node, ast.ImportFrom) and (module := _absolute_module(node, path)) is not None:
            names += [inner if source_path(inner := f"{module}.{name.name}".lstrip(".")) else module for name in node.names]
    return names


# Possible import statements, to the end of the line or its bracket. Text that looks like one only adds to a hash.
_IMPORT = re.compile(rb"(?:^|[;:])[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import\b(?:[ \t]*\([^)]*\)|[^\n;(]*))", re.MULTILINE)


def _import_statements(source: bytes) -> list[ast.AST]:
    """Return the import statements of a source.

    Parsing only these instead of the 40 sources of forward dynamics saves 0.11 s per process.
    """
    if b"\\\n" in source or b"\\\r\n" in source:             # the import of a continued line starts anywhere
        return list(_statements(ast.parse(source)))
    try:
        return [node for match in _IMPORT.finditer(source) for node in ast.parse(match[1]).body]
    except SyntaxError:                                     # a comment with a bracket
        return list(_statements(ast.parse(source)))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements of a module, including nested ones, without the expressions, which are most of the tree."""
    pending = [tree]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                pending.append(child)
                yield child


def _absolute_module(node: ast.ImportFrom, path: Path) -> str | None:
    """Return the module of an import, named from the root of liedyn; None if it is not part of liedyn."""
    if node.level:
        folder = path.parents[node.level - 1]
        if not folder.is_relative_to(_PACKAGE):
            return None
        return ".".join((*folder.relative_to(_PACKAGE).parts, *(node.module or "").split("."))).strip(".")
    if node.module == "liedyn":
        return ""
    name = node.module or ""
    return name.removeprefix("liedyn.") if name.startswith("liedyn.") else None


@cache
def source_path(name: str) -> Path | None:
    """Return the source file of a module or package, named from the root of liedyn; None if there is none."""
    base = _PACKAGE.joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


@cache
def source_bytes(path: Path) -> bytes:
    """Return a source. If it was changed since this process began, which may run another one, no other process has its hash."""
    content = path.read_bytes()
    changed = _STARTED < path.stat().st_mtime <= time.time()
    return content + f"\n# {uuid.uuid4()}".encode() if changed else content


def digest(*parts: bytes) -> str:
    """Return 16 hexadecimal digits that depend on the parts, their order and their limits."""
    result = hashlib.sha256()
    for part in parts:
        result.update(hashlib.sha256(part).digest())
    return result.hexdigest()[:16]
