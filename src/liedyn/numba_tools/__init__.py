"""What leans on Numba: the disk cache of compiled code, decorators of kernels, patches of its internals with fallbacks.

Entry points: `decorators` for kernels, `compile_cache` for all that compiles. It imports `errors` only.
"""
