"""Compiled functions that only compiled code calls."""
from functools import partial

from numba import njit

from liedyn.seam.choice import PLAIN

FOUND = not PLAIN and all(hasattr(njit(lambda: None), name) for name in ("_insert", "_compile_for_args"))


def without_wrappers(function, **options):
    """Without the wrappers that Python would call it through, which are compiled with all that they call: everything compiles in
    half the time. A call from Python is an error, not a crash."""
    if not FOUND:
        return njit(function, **options)
    dispatcher = njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    dispatcher._insert = lambda *overload: None          # no wrapper is there to be called
    dispatcher._compile_for_args = partial(_refuse, function.__name__)
    return dispatcher


def _refuse(name, *args, **kwargs):
    raise TypeError(f"{name} is called by compiled code only; in Python, call {name}.py_func")
