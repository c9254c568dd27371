"""Lines of a model: recorded and compiled when first asked for, then kept with the model and on disk."""
from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
import numpy as np

from liedyn import code_cache
from liedyn.codegen.compiled import loaded, object_code, processor, supported
from liedyn.codegen.functions import KERNELS, record
from liedyn.codegen.llvm import OK, Recording, module_text, scratch_size

LONGEST = 40_000           # operations: longer lines are slower than loops, and take seconds to compile
_LOCK = threading.RLock()


@dataclass(frozen=True)
class Built:
    """A line as it is kept: operations, states to a register, numbers of scratch, machine code; no code where it is too long."""

    size: int
    width: int
    scratch: int
    arrays: int
    code: bytes


class Line:
    """A function of one robot, compiled."""

    def __init__(self, built: Built):
        self.size, self.width, self.scratch = built.size, built.width, built.scratch
        self._engine = loaded(built.code)
        self._batch = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * (built.arrays + 1), ctypes.c_int64, ctypes.c_int64)(
            self._engine.get_function_address("batch"))

    def run(self, arrays, scratch: np.ndarray, first: int, last: int) -> bool:
        """States first … last - 1; arrays (N, n), C-contiguous float64, inputs first. Whether the results can be used."""
        return self._batch(*(x.ctypes.data for x in arrays), scratch.ctypes.data, first, last) == OK


def line_of(model, function: str, passive: bool, with_f_ext: bool) -> Line | None:
    """None where it would be too long, or where LLVM is too old."""
    key = "line", function, bool(passive and model.has_passive_forces), with_f_ext
    try:
        return model._cache[key]
    except KeyError:
        pass
    with _LOCK:
        if key not in model._cache:
            built = _built(model, *key[1:]) if supported() else None
            model._cache[key] = Line(built) if built and built.code else None
        return model._cache[key]


def _built(model, function: str, passive: bool, with_f_ext: bool) -> Built:
    folder = _folder(function)
    name = code_cache.digest(model.index.tobytes(), model.constants.tobytes(), repr((passive, with_f_ext, processor())).encode())
    built = code_cache.kept(folder, name)
    if built is None:
        built = build(record(model, function, passive, with_f_ext))
        code_cache.keep(folder, name, built)
    return built


def build(recording: Recording, width: int | None = None) -> Built:
    """width: states to a register; default: of this processor."""
    width, size = width or (8 if "+avx512f" in processor()[1] else 4), recording.size
    code = object_code(module_text(recording, width)) if size <= LONGEST else b""
    return Built(size, width, scratch_size(recording, width), len(recording.inputs) + len(recording.outputs), code)


@cache
def _folder(function: str) -> str:
    """Where lines of a function are kept: by all sources that they are made of."""
    files = {path for name in (*KERNELS[function], "joints.tree", "codegen.lines", "codegen.functions", "codegen.llvm",
                               "codegen.compiled", "codegen.plain", "lie.recorded")
             for path in code_cache.sources(Path(code_cache.source_of(name)))}
    content = [path.read_bytes() for path in sorted(files)]
    return f"line.{function}-{code_cache.digest(llvmlite.__version__.encode(), *content)}"
