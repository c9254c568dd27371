"""A WebAssembly module of `codegen.targets.wasm`, run by wasmtime."""
import math

import numpy as np
import wasmtime

from liedyn.codegen.targets.wasm import MEMORY

TWO = "atan2", "pow"


class WasmInstance:
    """Arrays of a module by name, and its functions as methods: run(name) -> code."""

    def __init__(self, module):
        self.module, self._store = module, wasmtime.Store()
        compiled = wasmtime.Module(self._store.engine, module.content)
        f64 = wasmtime.ValType.f64()
        imports = [wasmtime.Func(self._store, wasmtime.FuncType([f64] * (2 if each.name in TWO else 1), [f64]),
                                 getattr(math, each.name)) for each in compiled.imports]
        self._exports = wasmtime.Instance(self._store, compiled, imports).exports(self._store)
        self._memory = self._exports[MEMORY]

    def run(self, name: str) -> int:
        return self._exports[name](self._store)

    def __getitem__(self, name: str) -> np.ndarray:
        at, size = self.module.places[name], 8 * self.module.sizes[name]
        return np.frombuffer(self._memory.read(self._store, at, at + size))

    def __setitem__(self, name: str, values) -> None:
        self._memory.write(self._store, np.asarray(values, dtype=float).tobytes(), self.module.places[name])
