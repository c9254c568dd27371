"""A WebAssembly module of `codegen.targets.wasm`, run by wasmtime."""
import math

import numpy as np
import wasmtime

from liedyn.codegen.targets.wasm import MEMORY

TWO = "atan2", "pow"


class WasmInstance:
    """Arrays of a module by name, and its functions as methods: run(name) -> code."""

    def __init__(self, module):
        self.module, self._store, self._dtype = module, wasmtime.Store(), np.dtype(f"f{module.number_type.size}")
        compiled = wasmtime.Module(self._store.engine, module.content)
        number = wasmtime.ValType.f64() if module.number_type.size == 8 else wasmtime.ValType.f32()
        imports = [wasmtime.Func(self._store, wasmtime.FuncType([number] * (2 if each.name in TWO else 1), [number]),
                                 getattr(math, each.name)) for each in compiled.imports]
        self._exports = wasmtime.Instance(self._store, compiled, imports).exports(self._store)
        self._memory = self._exports[MEMORY]

    def run(self, name: str) -> int:
        return self._exports[name](self._store)

    def __getitem__(self, name: str) -> np.ndarray:
        at, size = self.module.places[name], self.module.number_type.size * self.module.sizes[name]
        return np.frombuffer(self._memory.read(self._store, at, at + size), self._dtype)

    def __setitem__(self, name: str, values) -> None:
        self._memory.write(self._store, np.asarray(values, dtype=self._dtype).tobytes(), self.module.places[name])
