"""The two decorators of all compiled code, and its cache.

Numba's cache looks only at the file in which a function stands; a kernel is made of functions from many files. So each
module's compiled code is kept in a folder named by a hash of that module's source and of every liedyn source that it
imports, directly or not. LIEDYN_CACHE_DIR moves the cache.
"""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from numba import config, njit
from numba import __version__ as numba_version

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product.
# No nnan/ninf: a NaN must stay visible to the checks.
_FAST = {"contract", "nsz", "arcp"}
_PACKAGE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from liedyn\.([\w.]+) import", re.MULTILINE)
_KEPT_GENERATIONS = 40


# No reference counts: kernels allocate nothing, and counting the model's arrays at every call of a primitive made
# forward dynamics 2.5 times slower. An allocation in compiled code is then an error of the compiler.
_OPTIONS = {"_nrt": False, "fastmath": _FAST, "error_model": "numpy"}

# Inlining by LLVM: the speed of inline="always" at half the compile time (11 s against 23 s for hybrid dynamics).
primitive = njit(forceinline=True, **_OPTIONS)

# Compiled into those that call it, but a call stays a call: for rare paths.
callee = njit(**_OPTIONS)


def kernel(function=None, *, nogil=False):
    """Compile a function of arrays on its first call and keep the result on disk."""
    if function is None:
        return lambda f: kernel(f, nogil=nogil)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder(function.__module__))
    try:
        return njit(function, cache=True, nogil=nogil, **_OPTIONS)
    finally:
        config.CACHE_DIR = previous


@cache
def cache_folder(module: str) -> Path:
    """Where the compiled code of `module` is kept; older generations are removed now and then."""
    digest = hashlib.sha256(numba_version.encode())
    for name in sorted(_sources(module)):
        digest.update(_file(name).read_bytes())
    root = _cache_root()
    folder = root / f"{module.rpartition('liedyn.')[2]}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        _prune(root)
        folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    return folder


@cache
def _cache_root() -> Path:
    chosen = os.environ.get("LIEDYN_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for root in ([Path(chosen)] if chosen else []) + [home / "liedyn"]:
        try:
            root.mkdir(parents=True, exist_ok=True)
            if os.access(root, os.W_OK):
                return root
        except OSError:
            continue
    return Path(tempfile.gettempdir()) / f"liedyn-cache-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _prune(root: Path) -> None:
    folders = sorted((p for p in root.glob("*-????????????????") if p.is_dir()), key=lambda p: p.stat().st_mtime)
    for folder in folders[:-_KEPT_GENERATIONS]:
        if time.time() - folder.stat().st_mtime > 7 * 86400:
            shutil.rmtree(folder, ignore_errors=True)


def _sources(module: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """The module and every liedyn module that it imports, directly or not."""
    found, waiting = set(), [module.partition("liedyn.")[2] or module]
    while waiting:
        name = waiting.pop()
        if name in found or _file(name) is None:
            continue
        found.add(name)
        waiting += _IMPORT.findall(_file(name).read_text(encoding="utf-8"))
    return found


def _file(name: str) -> Path | None:
    base = _PACKAGE.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return path
    return None
