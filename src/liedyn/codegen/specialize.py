"""Generated code of a model: traced and compiled at its first use, then cached in the model and on disk."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from liedyn.codegen.python_call import make_batch_callable, make_callable
from liedyn.codegen.targets.llvm_ir import (
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
from liedyn.codegen.trace import (
    BatchArray,
    GeneratedProgram,
    Specialization,
    Trace,
    folded_constants,
    make_trace,
    single_call,
)
from liedyn.codegen.tracer import NotTraceableError
from liedyn.errors import UsageError
from liedyn.numba_tools import compile_cache

# Machine code from LLVM text, by the llvmlite that Numba depends on ------------------------------------------------------

def _target_machine():
    """Return a new target machine. Each engine owns one."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = processor()
    # level 2 makes code as fast (within 1 %), and takes a fifth longer
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=features, opt=1)


@cache
def processor() -> tuple[str, str]:
    """Return the name and features of the target processor: NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, else those of this machine."""
    name = os.environ.get("NUMBA_CPU_NAME")
    features = os.environ.get("NUMBA_CPU_FEATURES", "" if name else None)
    return name or llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() if features is None else features


@cache
def is_supported() -> bool:
    """Return whether this LLVM supports opaque pointers. That of Numba 0.60 does not; then generic kernels are used."""
    try:
        llvm.parse_assembly("define void @f(ptr %x) {\nret void\n}", llvm.create_context())
    except RuntimeError:
        return False
    return True


def compile_object_code(text: str) -> bytes:
    """Compile LLVM text for this processor and return an object file."""
    module = llvm.parse_assembly(text, llvm.create_context())         # the global context is never freed
    module.verify()
    return _target_machine().emit_object(module)


def load_engine(code: bytes):
    """Return an engine that contains the functions of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


# generated functions -----------------------------------------------------------------------------------------------------

MAX_OPERATIONS = 120_000          # compiled in about 12 s: derivatives of a floating humanoid
# number of generated functions that a model caches: 0.2 to 0.4 MB each for a Panda; a rollout has up to four
MAX_CACHED_SCENARIOS = 32


@dataclass(frozen=True)
class ObjectCode:
    """Stored generated code.

    workspace_size  in float64
    output_only     for each array whether it only holds results
    has_results     for each array whether it holds any result
    code            machine code; empty if control flow depends on numbers or the trace is too long
    """

    workspace_size: int
    output_only: tuple[bool, ...]
    has_results: tuple[bool, ...]
    code: bytes


def data_address(x: np.ndarray) -> int:
    """Return the address of the numbers of a C-contiguous array that is not empty.

    x.ctypes.data takes three times as long, but a read-only array has no other way.
    """
    if not x.flags.writeable:
        return x.ctypes.data
    return ctypes.addressof(ctypes.c_char.from_buffer(x))           # type: ignore[arg-type]  # stubs of NumPy for 3.11


class GeneratedBatchFunction:
    """A function of one robot, compiled for batches.

    call(arrays …, workspace, first, last) computes states first … last - 1 and returns OK, OUT_OF_BOUNDS or
    `python_call.INVALID_ARGUMENTS`. It checks arrays, other than `run`. It is None for programs.
    """

    def __init__(self, built: ObjectCode):
        self.workspace_size, self._engine = built.workspace_size, load_engine(built.code)
        self.address = self._engine.get_function_address("batch")
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * (len(built.output_only) + 1), ctypes.c_int64,
                                      ctypes.c_int64)(
            self.address)
        self.call: Any = make_batch_callable(self._engine.get_function_address("python")) if any(built.has_results) else None

    def run(self, arrays, workspace: np.ndarray, first: int, last: int) -> bool:
        """Compute states first … last - 1 and return whether the results are valid. arrays: (N, n), C-contiguous, or blocks."""
        return self.bind(arrays, workspace)(first, last) == OK

    def bind(self, arrays, workspace: np.ndarray) -> Callable[[int, int], int]:
        """Return `run` for these arrays, which must exist as long as it; it returns a code."""
        return partial(self._call, *map(data_address, arrays), data_address(workspace))


class GeneratedFunction:
    """A function of one robot, compiled for one state or a batch of one state.

    call(arrays …) returns OK, OUT_OF_BOUNDS or `python_call.INVALID_ARGUMENTS`. Without the arrays that only hold results, it
    returns the results in new arrays, one or a tuple, or None.
    """

    def __init__(self, built: ObjectCode, shapes: list[tuple[int, ...]]):
        self._engine = load_engine(built.code)
        self.address = self._engine.get_function_address("one")
        self.call = make_callable(self._engine.get_function_address("python"), self.address, shapes, built.output_only,
                                  built.has_results)


@dataclass(frozen=True)
class GeneratedFunctionKey:
    """Key of a generated function in the model's cache.

    shapes   of the arrays of one state; None: a function for batches
    content  of the specialization
    single   whether numbers have single precision
    blocks   whether arrays are blocks, see `program_text`
    """

    shapes: tuple[tuple[int, ...], ...] | None
    content: tuple
    single: bool = False
    blocks: bool = False


def generated_batch_function(model, specialization: Specialization, single: bool = False,
                             blocks: bool = False) -> GeneratedBatchFunction | None:
    """Return the generated function for batches, or None if generic kernels are to be used: see `plan`.

    single  of arrays of float32, with `STATUS` as last one
    blocks  of blocks of states (N / width, n, width) in place of rows (N, n)
    """
    return _cached_function(model, GeneratedFunctionKey(None, specialization.content, single, blocks), GeneratedBatchFunction,
                            specialization, simd_width(single))


def generated_function(model, specialization: Specialization, shapes: list[tuple[int, ...]]) -> GeneratedFunction | None:
    """Return the generated function for one state, or None. shapes: of the arrays of one state that are not empty."""
    return _cached_function(model, GeneratedFunctionKey(tuple(shapes), specialization.content),
                            lambda built: GeneratedFunction(built, shapes),
                            specialization, 1, shapes)


def simd_width(single: bool = False) -> int:
    """Return the number of states in a SIMD register of this processor."""
    return (8 if "+avx512f" in processor()[1] else 4) * (2 if single else 1)


def is_enabled(varying: tuple[int, ...] = ()) -> bool:
    """Return whether generated code is used: not with LIEDYN_CODE=generic or within `generic_kernels`, nor with an old LLVM.

    An empty LIEDYN_CODE counts as not set. varying: constants of the robot that the code reads, see `generic_kernels`.
    """
    code = os.environ.get("LIEDYN_CODE") or "auto"
    if code not in ("auto", "generic"):
        raise UsageError(f"LIEDYN_CODE must be auto or generic, got {code[:40]!r} (unset it for auto)")
    return code == "auto" and (bool(varying) or not _only_generic.get()) and is_supported()


_only_generic: ContextVar[bool] = ContextVar("only_generic", default=False)          # of a thread
_read_constants: ContextVar[tuple[int, ...]] = ContextVar("read_constants", default=())


@contextmanager
def generic_kernels(varying: tuple[int, ...] = ()):
    """Use no generated code within this context, in this thread, except right-hand sides that read the constants `varying`.

    varying: indices of constants of the robot. Robots that differ in no others share that code.
    """
    tokens = _only_generic.set(True), _read_constants.set(varying)
    try:
        yield
    finally:
        _only_generic.reset(tokens[0])
        _read_constants.reset(tokens[1])


def read_constants() -> tuple[int, ...]:
    """Return the indices of the constants of the robot that right-hand sides read, see `generic_kernels`."""
    return _read_constants.get()


def _cached_function(model, key: GeneratedFunctionKey, construct, specialization, simd_width, shapes=None):
    def make():
        trace = make_trace(model, specialization, single=key.single)
        return build(single_call(trace, own_precision=True) if trace is not None and key.blocks else trace, simd_width, shapes)

    def load():
        name = compile_cache.digest(model.index.tobytes(), folded_constants(model, specialization.varying),
                                    repr((specialization.size, specialization.content, simd_width, shapes, key.single, key.blocks,
                                          processor())).encode())
        built = compile_cache.load_or_build(cache_folder(specialization.entry_point), name, make)
        return construct(built) if built.code else None
    return model.cached(key, load)


def build(trace: Trace | GeneratedProgram | None, simd_width: int, shapes=None, max_operations: int | None = None) -> ObjectCode:
    """Compile a trace: for one state with arrays of these shapes, or for batches if `shapes` is None or empty."""
    if trace is None or trace.size > (max_operations or MAX_OPERATIONS):
        return ObjectCode(0, (), (), b"")
    if isinstance(trace, GeneratedProgram):
        code, none = compile_object_code(program_text(trace, simd_width)), (False,) * len(trace.arrays)
        return ObjectCode(program_workspace_size(trace, simd_width), none, none, code)
    code = compile_object_code(one_text(trace, shapes) if shapes else batch_text(trace, simd_width))
    return ObjectCode(workspace_size(trace, simd_width), tuple(output_only(trace)), tuple(has_results(trace)), code)


@cache
def cache_folder(entry_point: str, generator: str = "codegen.specialize") -> str:
    """Return the cache folder for generated code of an entry point.

    Its name depends on all sources from which the code is generated.
    """
    modules = (entry_point.rpartition(".")[0], generator, "codegen.trace", "codegen.tracer")
    files = {path for name in modules if (source := compile_cache.source_path(name))
             for path in compile_cache.source_files(source)}
    content = [compile_cache.source_bytes(path) for path in sorted(files)]
    return f"generated.{entry_point.rpartition('.')[2]}-{compile_cache.digest(llvmlite.__version__.encode(), *content)}"


def load_or_build_engines(place: str, name: str, make_trace: Callable[[], list[Trace]]) -> tuple:
    """Return engines with functions @one for compiled code to call, cached under a name.

    Returns an empty tuple if control flow of one of them depends on numbers, a constant is divided by zero, or a trace is too
    long.
    """
    def make():
        try:
            traces = make_trace()
        except (NotTraceableError, ZeroDivisionError):             # 1/0 of constants: a joint without inertia
            return []
        fits = all(trace.size <= MAX_SEGMENT_OPERATIONS for trace in traces)
        return [compile_object_code(pointers_text(trace)) for trace in traces] if fits else []
    return tuple(map(load_engine, compile_cache.load_or_build(place, name, make)))


@dataclass(frozen=True)
class StoredFunctionKey:
    """Key of a stored function. name: a digest of all that the code depends on."""

    name: str


def load_or_build_batch_function(model, place: str, name: str, make_trace: Callable[[], Trace | GeneratedProgram],
               max_operations: int | None = None) -> GeneratedBatchFunction | None:
    """Return a function for batches, cached in the model (see `cached_scenario`) and on disk under a name.

    Returns None if control flow depends on numbers, a constant is divided by zero or the trace is too long.
    """
    def make():
        try:
            trace = make_trace()
        except (NotTraceableError, ZeroDivisionError):
            trace = None
        single = trace is not None and (trace.traces[0] if isinstance(trace, GeneratedProgram) else trace).ops.single
        return build(trace, simd_width(single), max_operations=max_operations)
    def load():
        built = compile_cache.load_or_build(place, name, make)
        return GeneratedBatchFunction(built) if built.code else None
    return cached_scenario(model, StoredFunctionKey(name), load)


def cached_scenario(model, key, build: Callable[[], Any]):
    """Return the value of `key`, which `build` computes once.

    A model caches the values of its last `MAX_CACHED_SCENARIOS` scenarios.
    """
    return model.cached(key, build, limit=MAX_CACHED_SCENARIOS)


def specialization_of(entry_point, size: int, static_arguments: tuple, arrays: tuple,
                      varying: tuple[int, ...] = ()) -> Specialization:
    """Return the specialization of a call of a compiled entry point with these arguments."""
    function = entry_point.py_func
    return Specialization(f"{function.__module__.removeprefix('liedyn.')}.{function.__name__}", size, static_arguments,
                          tuple(BatchArray(x.shape[1:]) if isinstance(x, np.ndarray) else x for x in arrays), varying)
