"""The decorators of all compiled code, and its cache.

Numba's cache looks only at the file in which a function stands; a kernel is made of functions from many files. So each
module's compiled code is kept in a folder named by a hash of that module's source and of every liedyn source that it
imports, directly or not. LIEDYN_CACHE_DIR moves the cache.
"""
from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import re
import shutil
import tempfile
import threading
import time
from functools import cache, partial, update_wrapper
from pathlib import Path

from numba import __version__ as numba_version
from numba import config, njit, types
from numba.core.sigutils import normalize_signature
from numba.extending import overload

from liedyn.crossing import given
from liedyn.spans import Span
from liedyn.stack import OnCacheLines

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product.
# No nnan/ninf: a NaN must stay visible to the checks.
_FAST = {"contract", "nsz", "arcp"}
_PACKAGE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from liedyn\.([\w.]+) import", re.MULTILINE)
_KEPT_GENERATIONS = 40


# No reference counts: kernels allocate nothing, and counting the model's arrays at every call of a primitive made
# forward dynamics 2.5 times slower. An allocation in compiled code is then an error of the compiler.
OPTIONS = {"_nrt": False, "fastmath": _FAST, "error_model": "numpy"}

def _inner(**options):
    """A decorator of functions for compiled code only. Without the wrappers that Python would call them through, which are
    compiled with all that they call, everything compiles in half the time. A call from Python is an error, not a crash."""
    def decorate(function):
        dispatcher = njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options, **OPTIONS)
        dispatcher._insert = lambda *overload: None
        dispatcher._compile_for_args = partial(_refuse, function.__name__)
        return dispatcher
    return decorate


def _refuse(name, *args, **kwargs):
    raise TypeError(f"{name} is called by compiled code only; in Python, call {name}.py_func")


# Inlining by LLVM: the speed of inline="always" at half the compile time.
primitive = _inner(forceinline=True)

# For steps of a long loop that call kernels: a primitive would be compiled on its own, with all that it calls, for nothing.
pasted = _inner(inline="always")

# Where an entry or a kernel calls it, the call stays a call. Primitives hand their inlining down to it: calls there would cost
# batches of small robots 4 to 14%.
callee = _inner(pipeline_class=OnCacheLines)


def apart(number, one=None, eight=callee):
    """A primitive, or `one` in its place, where the argument `number`, or the first of a tuple of them, is of one state; of
    eight, what `eight` makes of it."""
    def decorate(function):
        names = ", ".join(inspect.signature(function).parameters)
        space = {"one": one or primitive(function), "eight": eight(function), "states": _states,
                 "refuse": partial(_refuse, function.__name__)}
        exec(f"def stub({names}): refuse()\n"                 # by names, which Numba compares
             f"def choose({names}):\n"
             f"    if states({number}) == 1:\n"
             f"        return lambda {names}: one({names})\n"
             f"    return lambda {names}: eight({names})\n", space)
        # inline="always" would count references of the arrays: 4% of a small robot
        overload(space["stub"], jit_options={"forceinline": True, **OPTIONS})(space["choose"])
        stub = update_wrapper(space["stub"], function)
        stub.py_func = function
        return stub
    return decorate


def _states(number):
    number = number[0] if isinstance(number, types.BaseTuple) else number
    return 1 if number.ndim == 1 else 8


def kernel(function):
    """Compile a function of arrays on its first call and keep the result on disk."""
    return _cached(function)


def entry(*signatures: str, nogil: bool = False):
    """A kernel that Python calls, for these signatures only.

    Until `prepare` has compiled it, and for arguments of other types, a call raises TypeError: never a surprising
    second compilation. So the common call costs one crossing and no check in Python. An entry of one signature has `direct`
    too, the same function at a third of the cost of a crossing."""
    def decorate(function):
        options = {"nogil": nogil}
        if len(signatures) == 1:                 # arguments are `Given`, and in the function the spans that they are
            kinds, _ = normalize_signature(signatures[0])
            names = inspect.signature(function).parameters
            options["locals"] = {name: Span(kind) for name, kind in zip(names, kinds, strict=True) if given(kind) is not kind}
        dispatcher = _cached(function, **options)
        dispatcher.liedyn_signatures = signatures
        dispatcher.liedyn_compiler = _cached(function, **options)    # aside: the entry stays shut while another thread prepares
        dispatcher._can_compile = False      # disable_compile() insists on a signature first
        if len(signatures) == 1:
            dispatcher.direct = _not_prepared
        return dispatcher
    return decorate


def _not_prepared(*arguments):
    raise TypeError("not compiled yet")


on_compile = contextlib.nullcontext     # called with a kernel's name around its compilation or loading


def prepare(dispatcher, which: int = 0) -> bool:
    """Compile an entry for one of its signatures, or load it from the cache. Returns whether there was anything to do."""
    done = dispatcher.__dict__.setdefault("liedyn_ready", set())
    if which in done:
        return False
    with _LOCK, on_compile(dispatcher.py_func.__name__):
        if which not in done:
            aside = dispatcher.liedyn_compiler
            signature = dispatcher.liedyn_signatures[which]
            if len(dispatcher.liedyn_signatures) == 1:
                kinds, returned = normalize_signature(signature)
                signature = returned(*map(given, kinds))
            aside.compile(signature)
            for types, result in aside.overloads.items():
                if types not in dispatcher.overloads:
                    dispatcher.add_overload(result)
                    if len(dispatcher.liedyn_signatures) == 1:
                        dispatcher.direct = result.entry_point
            done.add(which)
    return True


_LOCK = threading.RLock()


def _cached(function, **options):
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder(function.__module__))
    try:
        return njit(function, cache=True, pipeline_class=OnCacheLines, **options, **OPTIONS)
    finally:
        config.CACHE_DIR = previous


@cache
def cache_folder(module: str) -> Path:
    """Where the compiled code of `module` is kept; older generations are removed now and then."""
    digest = hashlib.sha256(f"{numba_version} {config.BOUNDSCHECK}".encode())
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


def _sources(module: str) -> set[str]:
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
