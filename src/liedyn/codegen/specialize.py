"""Lines of a model: recorded and compiled when first asked for, then kept with the model and on disk."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from liedyn.codegen.llvm_ir import (
    MAX_SEGMENT_OPERATIONS,
    OK,
    batch_text,
    has_results,
    one_text,
    output_only,
    pointers_text,
    program_text,
    program_workspace_size,
    workspace_size,
)
from liedyn.codegen.python_call import make_callable
from liedyn.codegen.trace import BatchArray, GeneratedProgram, Specialization, Trace, make_trace
from liedyn.codegen.tracer import NotTraceableError
from liedyn.errors import UsageError
from liedyn.numba_tools import compile_cache

# Machine code of LLVM text, by the llvmlite that Numba brings -----------------------------------------------------------

def _target_machine():
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
def is_supported() -> bool:
    """Whether this LLVM reads text with pointers that name no type: that of Numba 0.60 does not, and loops do all the work."""
    try:
        llvm.parse_assembly("define void @f(ptr %x) {\nret void\n}", llvm.create_context())
    except RuntimeError:
        return False
    return True


def compile_object_code(text: str) -> bytes:
    module = llvm.parse_assembly(text, llvm.create_context())         # which ends with it; the global one keeps every constant
    module.verify()
    return _target_machine().emit_object(module)


def load_engine(code: bytes):
    """An engine that holds the functions of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


# lines ------------------------------------------------------------------------------------------------------------------

MAX_OPERATIONS = 120_000          # operations, a dozen seconds to compile: derivatives of a floating humanoid
# functions that a model keeps of them: 0.2 to 0.4 MB each for a Panda; a rollout has up to four
MAX_CACHED_SCENARIOS = 32


@dataclass(frozen=True)
class ObjectCode:
    """A line as it is kept: numbers of scratch, for each array whether it only holds results and whether it holds any, and
    machine code; no code where it decides on numbers or is too long."""

    workspace_size: int
    output_only: tuple[bool, ...]
    has_results: tuple[bool, ...]
    code: bytes


def data_address(x: np.ndarray) -> int:
    """Of a writeable array's numbers, C-contiguous and at least one; x.ctypes.data takes three times as long."""
    return ctypes.addressof(ctypes.c_char.from_buffer(x))


class GeneratedBatchFunction:
    """A function of one robot, compiled for batches."""

    def __init__(self, built: ObjectCode):
        self.workspace_size, self._engine = built.workspace_size, load_engine(built.code)
        self.address = self._engine.get_function_address("batch")
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * (len(built.output_only) + 1), ctypes.c_int64,
                                      ctypes.c_int64)(
            self.address)

    def run(self, arrays, workspace: np.ndarray, first: int, last: int) -> bool:
        """States first … last - 1; arrays (N, n), C-contiguous float64. Whether the results can be used."""
        return self.bind(arrays, workspace)(first, last) == OK

    def bind(self, arrays, workspace: np.ndarray) -> Callable[[int, int], int]:
        """`run` with these arrays, which have to live as long as it; returns a code."""
        return partial(self._call, *map(data_address, arrays), data_address(workspace))


class GeneratedFunction:
    """The same for one state, or a batch of one. call(arrays …) returns OK, OUT_OF_BOUNDS or `python_call.INVALID_ARGUMENTS`;
    without the arrays that only hold results it returns new ones, one or a tuple, or None."""

    def __init__(self, built: ObjectCode, shapes: list[tuple[int, ...]]):
        self._engine = load_engine(built.code)
        self.address = self._engine.get_function_address("one")
        self.call = make_callable(self._engine.get_function_address("python"), self.address, shapes, built.output_only,
                                  built.has_results)


@dataclass(frozen=True)
class GeneratedFunctionKey:
    """shapes: of the arrays of one state; None: a function for batches; content: of the specialization."""

    shapes: tuple[tuple[int, ...], ...] | None
    content: tuple


def generated_batch_function(model, specialization: Specialization) -> GeneratedBatchFunction | None:
    """None where loops do the work: see `plan`."""
    return _cached_function(model, GeneratedFunctionKey(None, specialization.content), GeneratedBatchFunction, specialization,
                            simd_width())


def generated_function(model, specialization: Specialization, shapes: list[tuple[int, ...]]) -> GeneratedFunction | None:
    """shapes: of the arrays that hold numbers, for one state."""
    return _cached_function(model, GeneratedFunctionKey(tuple(shapes), specialization.content),
                            lambda built: GeneratedFunction(built, shapes),
                            specialization, 1, shapes)


def simd_width() -> int:
    """States to a register of this processor."""
    return 8 if "+avx512f" in processor()[1] else 4


def is_enabled() -> bool:
    """Whether lines are made at all: LIEDYN_CODE=generic says no, and an old LLVM. Empty is as if it were not set."""
    code = os.environ.get("LIEDYN_CODE") or "auto"
    if code not in ("auto", "generic"):
        raise UsageError(f"LIEDYN_CODE is not known; found {code[:40]!r}, expected auto or generic (unset it for auto)")
    return code == "auto" and is_supported()


def _cached_function(model, key: GeneratedFunctionKey, construct, specialization, simd_width, shapes=None):
    def load():
        name = compile_cache.digest(model.index.tobytes(), model.constants.tobytes(),
                                    repr((specialization.size, specialization.content, simd_width, shapes,
                                          processor())).encode())
        built = compile_cache.load_or_build(cache_folder(specialization.entry_point), name,
                                            lambda: build(make_trace(model, specialization), simd_width, shapes))
        return construct(built) if built.code else None
    return model.cached(key, load)


def build(trace, simd_width: int, shapes=None, max_operations: int | None = None) -> ObjectCode:
    if trace is None or trace.size > (max_operations or MAX_OPERATIONS):
        return ObjectCode(0, (), (), b"")
    if isinstance(trace, GeneratedProgram):
        code, none = compile_object_code(program_text(trace, simd_width)), (False,) * len(trace.arrays)
        return ObjectCode(program_workspace_size(trace, simd_width), none, none, code)
    code = compile_object_code(one_text(trace, shapes) if shapes else batch_text(trace, simd_width))
    return ObjectCode(workspace_size(trace, simd_width), tuple(output_only(trace)), tuple(has_results(trace)), code)


@cache
def cache_folder(entry_point: str, generator: str = "codegen.specialize") -> str:
    """Where lines of an entry are kept: by all sources that they are made of."""
    modules = (entry_point.rpartition(".")[0], generator, "codegen.trace", "codegen.tracer")
    files = {path for name in modules for path in compile_cache.source_files(Path(compile_cache.source_path(name)))}
    content = [path.read_bytes() for path in sorted(files)]
    return f"generated.{entry_point.rpartition('.')[2]}-{compile_cache.digest(llvmlite.__version__.encode(), *content)}"


def load_or_build_engines(place: str, name: str, make_trace: Callable[[], list[Trace]]) -> tuple:
    """Engines with functions @one for compiled code to call, kept under a name; none where one of them decides on numbers or is
    too long."""
    def make():
        try:
            found = make_trace()
        except NotTraceableError:
            return []
        fits = all(trace.size <= MAX_SEGMENT_OPERATIONS for trace in found)
        return [compile_object_code(pointers_text(trace)) for trace in found] if fits else []
    return tuple(map(load_engine, compile_cache.load_or_build(place, name, make)))


@dataclass(frozen=True)
class StoredFunctionKey:
    """name: of the stored code, a digest of all that the code depends on."""

    name: str


def load_or_build_batch_function(model, place: str, name: str, make_trace: Callable[[], Trace | GeneratedProgram],
               max_operations: int | None = None) -> GeneratedBatchFunction | None:
    """A function for batches, kept with the model (see `cached_scenario`) and under a name. None where it decides on numbers or
    is too long."""
    def make():
        try:
            trace = make_trace()
        except NotTraceableError:
            trace = None
        return build(trace, simd_width(), max_operations=max_operations)
    def load():
        built = compile_cache.load_or_build(place, name, make)
        return GeneratedBatchFunction(built) if built.code else None
    return cached_scenario(model, StoredFunctionKey(name), load)


def cached_scenario(model, key, build: Callable[[], Any]):
    """Return the value of `key`, which `build` returns. A model keeps those of its last `MAX_CACHED_SCENARIOS` scenarios."""
    return model.cached(key, build, limit=MAX_CACHED_SCENARIOS)


def specialization_of(entry_point, size: int, static_arguments: tuple, arrays: tuple,
                      varying: tuple[int, ...] = ()) -> Specialization:
    """entry: the compiled function; arrays: as for a call."""
    function = entry_point.py_func
    return Specialization(f"{function.__module__.removeprefix('liedyn.')}.{function.__name__}", size, static_arguments,
                 tuple(BatchArray(x.shape[1:]) if isinstance(x, np.ndarray) else x for x in arrays), varying)
