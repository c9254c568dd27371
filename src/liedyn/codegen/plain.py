"""The kernels as plain Python functions: their sources, run with numbers that record in place of Numba's.

A kernel is written over *numbers*; decorators and three modules decide which. Here `jit` decorates nothing, `lanes` and `views`
are plain, and the modules of algebra, joints and kernels are executed once more, as they stand, in modules of their own: nothing
of them is compiled.
"""
from __future__ import annotations

import builtins
import types
from functools import cache
from importlib.util import find_spec

import numpy as np

from liedyn.codegen import shorter
from liedyn.codegen.emit import library
from liedyn.lie import recorded
from liedyn.seam.views import carve

WIDTH = 8           # of the loops' Lanes: an entry takes one step over the one state that is recorded


def plain(name: str) -> types.ModuleType:
    """The module liedyn.`name` over recorded numbers."""
    return _modules()[name] if name in _modules() else _executed(name)


@cache
def _executed(name: str) -> types.ModuleType:
    spec = find_spec(f"liedyn.{name}")
    module = types.ModuleType(f"liedyn.{name}")
    module.__builtins__ = vars(builtins) | {"__import__": _import}
    exec(compile(spec.loader.get_source(spec.name), spec.origin, "exec", dont_inherit=True), vars(module))
    for changed, function in _CHANGED.get(name, {}).items():
        setattr(module, changed, function)
    return module


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    root, _, rest = name.partition(".")
    if root == "liedyn" and fromlist:
        return plain(rest)
    if root in ("numba", "llvmlite"):
        return _NOTHING
    return builtins.__import__(name, globals, locals, fromlist, level)


class _Nothing:
    """Whatever compiled code asks for while a module is executed: a decorator that leaves functions as they are."""

    def __getattr__(self, name): return self
    def __or__(self, other): return self

    def __call__(self, *args, **options):
        decorates = len(args) == 1 and not options and isinstance(args[0], types.FunctionType)
        return args[0] if decorates else self


_NOTHING = _Nothing()


def _same(function):
    function.py_func = function
    return function


def _copy(numbers, to) -> None:
    to[:len(numbers)] = numbers[:len(to)]


def _packed(row, block) -> None:
    if len(row) != len(block):                 # wrong shapes: loops say so
        raise recorded.NotALine
    block[:] = row


def _moves(x) -> bool:
    return isinstance(x, recorded.Recorded) or x != 0.0


@cache
def _modules() -> dict[str, types.ModuleType]:
    """What takes the place of modules that know Numba."""
    names = "jit", "seam.views", "lie.lanes", "pointer_call"
    jit, views, lanes, pointers = (types.ModuleType(f"liedyn.{name}") for name in names)
    vars(pointers).update(dict.fromkeys(("numbers_at", "call_at", "place_of"), _NOTHING))
    vars(jit).update(dict.fromkeys(("primitive", "pasted", "callee", "kernel", "rounded", "everywhere"), _same), prepare=_NOTHING,
                     OPTIONS={}, entry=lambda *signatures, **options: _same)
    vars(views).update(carve=carve)
    known = {name: getattr(recorded, name) for name in (
        "load", "store", "number_like", "where_less", "maximum", "absolute", "sqrt", "sincos", "all_less")}
    vars(lanes).update(known, WIDTH=WIDTH, atan2=library.math.atan2, **dict.fromkeys(("Lanes", "lanes"), _NOTHING),
                       **dict.fromkeys(("lane", "with_lane", "width", "nearest", "sincos_of_number"), recorded.unknown))
    return {"jit": jit, "seam.views": views, "lie.lanes": lanes, "pointer_call": pointers}


# functions that have a shorter way, and the few that have no plain source: they place numbers in memory, or are the C library's
_CHANGED = {
    **shorter.ways(plain),
    "kernels.checks": {name: getattr(recorded, name) for name in ("within", "finite", "finite_where")},
    "lie.rows": {"load_pose": recorded.load_pose},
    "lie.blocks": {"states_in": lambda block: WIDTH, "pack": lambda batch, row, block: _packed(batch[row], block),
                   "unpack": lambda block, batch, row: _copy(block, batch[row]),
                   "integers": lambda block: (np.zeros(block.size, dtype=np.int64),)},
    "kernels.simulation.signal_series": {"stands_still": lambda x: not any(_moves(y) for y in x[1:])},
    "kernels.simulation.signals": {"math": library.math, "floor": library.math.floor, "quotient": library.quotient},
}
