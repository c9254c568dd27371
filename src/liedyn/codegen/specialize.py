"""Lines of a model: recorded and compiled when first asked for, then kept with the model and on disk."""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from liedyn.codegen.llvm_ir import (
    OK,
    SEGMENT,
    batch_text,
    made,
    one_text,
    pointers_text,
    program_scratch,
    program_text,
    scratch_size,
    written,
)
from liedyn.codegen.python_call import callable_of
from liedyn.codegen.trace import Columns, GeneratedProgram, Specialization, Trace, record
from liedyn.codegen.tracer import NotTraceableError
from liedyn.errors import UsageError
from liedyn.numba_tools import compile_cache

# Machine code of LLVM text, by the llvmlite that Numba brings -----------------------------------------------------------

def _machine():
    """A new one for each use: an engine owns its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = processor()
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=features, opt=2)


@cache
def processor() -> tuple[str, str]:
    """Name and features that code is made for: this machine's, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say."""
    name = os.environ.get("NUMBA_CPU_NAME")
    features = os.environ.get("NUMBA_CPU_FEATURES", "" if name else None)
    return name or llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() if features is None else features


@cache
def supported() -> bool:
    """Whether this LLVM reads text with pointers that name no type: that of Numba 0.60 does not, and loops do all the work."""
    try:
        llvm.parse_assembly("define void @f(ptr %x) {\nret void\n}", llvm.create_context())
    except RuntimeError:
        return False
    return True


def object_code(text: str) -> bytes:
    module = llvm.parse_assembly(text, llvm.create_context())         # which ends with it; the global one keeps every constant
    module.verify()
    return _machine().emit_object(module)


def loaded(code: bytes):
    """An engine that holds the functions of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


# lines ------------------------------------------------------------------------------------------------------------------

LONGEST = 120_000          # operations, a dozen seconds to compile: derivatives of a floating humanoid
SCENARIOS = 32             # functions that a model keeps of them: 0.2 to 0.4 MB each for a Panda; a rollout has up to four
_LOCK = threading.RLock()


@dataclass(frozen=True)
class ObjectCode:
    """A line as it is kept: numbers of scratch, for each array whether it only holds results and whether it holds any, and
    machine code; no code where it decides on numbers or is too long."""

    scratch: int
    made: tuple[bool, ...]
    written: tuple[bool, ...]
    code: bytes


def address(x: np.ndarray) -> int:
    """Of a writeable array's numbers, C-contiguous and at least one; x.ctypes.data takes three times as long."""
    return ctypes.addressof(ctypes.c_char.from_buffer(x))


class GeneratedBatchFunction:
    """A function of one robot, compiled for batches."""

    def __init__(self, built: ObjectCode):
        self.scratch, self._engine = built.scratch, loaded(built.code)
        self.address = self._engine.get_function_address("batch")
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * (len(built.made) + 1), ctypes.c_int64, ctypes.c_int64)(
            self.address)

    def run(self, arrays, scratch: np.ndarray, first: int, last: int) -> bool:
        """States first … last - 1; arrays (N, n), C-contiguous float64. Whether the results can be used."""
        return self.bound(arrays, scratch)(first, last) == OK

    def bound(self, arrays, scratch: np.ndarray) -> Callable[[int, int], int]:
        """`run` with these arrays, which have to live as long as it; returns a code."""
        return partial(self._call, *map(address, arrays), address(scratch))


class GeneratedFunction:
    """The same for one state, or a batch of one. call(arrays …) returns OK, OUT_OF_BOUNDS or `python_call.REFUSED`; without the
    arrays that only hold results it returns new ones, one or a tuple, or None."""

    def __init__(self, built: ObjectCode, shapes: list[tuple[int, ...]]):
        self._engine = loaded(built.code)
        self.address = self._engine.get_function_address("one")
        self.call = callable_of(self._engine.get_function_address("python"), self.address, shapes, built.made, built.written)


def batch_of(model, asked: Specialization) -> GeneratedBatchFunction | None:
    """None where loops do the work: see `plan`."""
    return _kept(model, ("batch", *asked.content), GeneratedBatchFunction, asked, width())


def one_of(model, asked: Specialization, shapes: list[tuple[int, ...]]) -> GeneratedFunction | None:
    """shapes: of the arrays that hold numbers, for one state."""
    return _kept(model, ("one", tuple(shapes), *asked.content), lambda built: GeneratedFunction(built, shapes), asked, 1, shapes)


def width() -> int:
    """States to a register of this processor."""
    return 8 if "+avx512f" in processor()[1] else 4


def wanted() -> bool:
    """Whether lines are made at all: LIEDYN_CODE=loops says no, and an old LLVM. Empty is as if it were not set."""
    code = os.environ.get("LIEDYN_CODE") or "auto"
    if code not in ("auto", "loops"):
        raise UsageError(f"LIEDYN_CODE is not known; found {code[:40]!r}, expected auto or loops (unset it for auto)")
    return code == "auto" and supported()


def _kept(model, key, made, asked, width, shapes=None):
    try:
        return model._cache[key]
    except KeyError:
        pass
    if not wanted():
        return None
    with _LOCK:
        if key not in model._cache:
            name = compile_cache.digest(model.index.tobytes(), model.constants.tobytes(),
                                     repr((asked.size, asked.content, width, shapes, processor())).encode())
            built = compile_cache.kept_or_made(folder(asked.entry), name, lambda: build(record(model, asked), width, shapes))
            model._cache[key] = made(built) if built.code else None
        return model._cache[key]


def build(recording, width: int, shapes=None, longest: int | None = None) -> ObjectCode:
    if recording is None or recording.size > (longest or LONGEST):
        return ObjectCode(0, (), (), b"")
    if isinstance(recording, GeneratedProgram):
        code, none = object_code(program_text(recording, width)), (False,) * len(recording.arrays)
        return ObjectCode(program_scratch(recording, width), none, none, code)
    code = object_code(one_text(recording, shapes) if shapes else batch_text(recording, width))
    return ObjectCode(scratch_size(recording, width), tuple(made(recording)), tuple(written(recording)), code)


@cache
def folder(entry: str, maker: str = "codegen.specialize") -> str:
    """Where lines of an entry are kept: by all sources that they are made of."""
    modules = (entry.rpartition(".")[0], maker, "codegen.trace", "codegen.tracer")
    files = {path for name in modules for path in compile_cache.sources(Path(compile_cache.source_of(name)))}
    content = [path.read_bytes() for path in sorted(files)]
    return f"line.{entry.rpartition('.')[2]}-{compile_cache.digest(llvmlite.__version__.encode(), *content)}"


def kept_parts(place: str, name: str, record: Callable[[], list[Trace]]) -> tuple:
    """Engines with functions @one for compiled code to call, kept under a name; none where one of them decides on numbers or is
    too long."""
    def make():
        try:
            found = record()
        except NotTraceableError:
            return []
        fits = all(recording.size <= SEGMENT for recording in found)
        return [object_code(pointers_text(recording)) for recording in found] if fits else []
    return tuple(map(loaded, compile_cache.kept_or_made(place, name, make)))


def kept_batch(model, place: str, name: str, record: Callable[[], Trace | GeneratedProgram],
               longest: int | None = None) -> GeneratedBatchFunction | None:
    """A function for batches, kept with the model (see `recent`) and under a name. None where it decides on numbers or is too
    long."""
    def make():
        try:
            recording = record()
        except NotTraceableError:
            recording = None
        return build(recording, width(), longest=longest)
    def load():
        built = compile_cache.kept_or_made(place, name, make)
        return GeneratedBatchFunction(built) if built.code else None
    return recent(model, name, load)


def recent(model, key, make: Callable[[], Any]):
    """What `make` returns, kept with the model under a key, for the scenarios that it was last asked for. The least recently used
    goes first, and is loaded again from disk where it is needed again."""
    with _LOCK:
        found = model._cache.setdefault("scenarios", {})
        value = found.pop(key) if key in found else make()
        found[key] = value                                  # the last one
        while len(found) > SCENARIOS:
            del found[next(iter(found))]
        return value


def asked_of(entry, size: int, before: tuple, arrays: tuple, varying: tuple[int, ...] = ()) -> Specialization:
    """entry: the compiled function; arrays: as for a call."""
    function = entry.py_func
    return Specialization(f"{function.__module__.removeprefix('liedyn.')}.{function.__name__}", size, before,
                 tuple(Columns(x.shape[1:]) if isinstance(x, np.ndarray) else x for x in arrays), varying)
