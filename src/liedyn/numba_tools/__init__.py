"""Modules that depend on Numba: disk cache of compiled code, decorators of kernels, uses of Numba's internals with fallbacks.

Entry points: `decorators` for kernels, `compile_cache` for code that compiles. The package imports `errors` only.
"""
