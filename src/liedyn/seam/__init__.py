"""What leans on internals of Numba, in one place. Each piece has a plain fallback, which it takes by itself where it does not
find what it needs, and always where LIEDYN_SEAM=plain (unset or auto: no).

| piece         | leans on (Numba 0.60 to 0.62)                                    | without it                               |
|---------------|------------------------------------------------------------------|------------------------------------------|
| `views`       | numba.np.arrayobj: `make_array`, `populate_array`                | slices, a function each: compiles longer |
| `stack`       | the pass `NativeLowering`, `Lower.setup_function`, and llvmlite's | loops of eight states take 9% (AVX2) to  |
|               | `attributes.alignstack`                                          | 29% (AVX-512) longer                     |
| `dispatchers` | `_insert`, `_compile_for_args` of dispatchers, and the options   | 2.5 times as long to compile             |
|               | `no_cpython_wrapper`, `no_cfunc_wrapper`; `JITCodeLibrary`'s     |                                          |
|               | `_optimize_final_module`, `_finalize_final_module`, the pass     |                                          |
|               | `FixupArgs`                                                      |                                          |

More lean on internals and stand where they are used: `code_cache` on Numba's `NullCache` and `CompileResult`, `jit` on
`_can_compile` and `add_overload` of dispatchers, `pointer_call` on `populate_array` and the names of C wrappers.
`codegen.emit.python_call`, which leans on the binary interfaces of CPython and NumPy, tests itself and goes through ctypes where
they differ.
"""
