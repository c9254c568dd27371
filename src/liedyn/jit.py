"""The decorators of all compiled code. What they compile is kept by `code_cache`."""
from __future__ import annotations

import inspect
from functools import partial, update_wrapper

from numba import njit, types
from numba.core.sigutils import normalize_signature
from numba.extending import overload

from liedyn.code_cache import CodeCache, compiling
from liedyn.crossing import given
from liedyn.spans import Span
from liedyn.stack import OnCacheLines

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product.
# No nnan/ninf: a NaN must stay visible to the checks.
_FAST = {"contract", "nsz", "arcp"}

# No reference counts: kernels allocate nothing, and counting the model's arrays at every call of a primitive made
# forward dynamics 2.5 times slower. An allocation in compiled code is then an error of the compiler.
OPTIONS = {"_nrt": False, "fastmath": _FAST, "error_model": "numpy"}

def _inner(**options):
    """A decorator of functions for compiled code only. Without the wrappers that Python would call them through, which are
    compiled with all that they call, everything compiles in half the time. A call from Python is an error, not a crash."""
    def decorate(function):
        dispatcher = njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **{**OPTIONS, **options})
        dispatcher._insert = lambda *overload: None
        dispatcher._compile_for_args = partial(_refuse, function.__name__)
        return dispatcher
    return decorate


def _refuse(name, *args, **kwargs):
    raise TypeError(f"{name} is called by compiled code only; in Python, call {name}.py_func")


# Inlining by LLVM: the speed of inline="always" at half the compile time.
primitive = _inner(forceinline=True)

# For quotients that are rounded as IEEE 754 says: x / x is 1. With arcp, divisions by one number share its reciprocal.
rounded = _inner(forceinline=True, fastmath=_FAST - {"arcp"})

# For steps of a long loop that call kernels: a primitive would be compiled on its own, with all that it calls, for nothing.
pasted = _inner(inline="always")

# Where an entry or a kernel calls it, the call stays a call. Primitives hand their inlining down to it: calls there would cost
# batches of small robots 4 to 14%.
callee = _inner(pipeline_class=OnCacheLines)


def apart(number, one=None, eight=callee):
    """A primitive, or `one` in its place, where the argument `number`, or the first of a tuple of them, is of one state; of
    eight, what `eight` makes of it."""
    def decorate(function):
        names = ", ".join(inspect.signature(function).parameters)
        space = {"one": one or primitive(function), "eight": eight(function), "states": _states,
                 "refuse": partial(_refuse, function.__name__)}
        exec(f"def stub({names}): refuse()\n"                 # by names, which Numba compares
             f"def choose({names}):\n"
             f"    if states({number}) == 1:\n"
             f"        return lambda {names}: one({names})\n"
             f"    return lambda {names}: eight({names})\n", space)
        # inline="always" would count references of the arrays: 4% of a small robot
        overload(space["stub"], jit_options={"forceinline": True, **OPTIONS})(space["choose"])
        stub = update_wrapper(space["stub"], function)
        stub.py_func = function
        return stub
    return decorate


def _states(number):
    number = number[0] if isinstance(number, types.BaseTuple) else number
    return 1 if number.ndim == 1 else 8


def kernel(function):
    """Compile a function of arrays on its first call and keep the result on disk."""
    return _cached(function)


def entry(*signatures: str, nogil: bool = False):
    """A kernel that Python calls, for these signatures only.

    Until `prepare` has compiled it, and for arguments of other types, a call raises TypeError: never a surprising
    second compilation. So the common call costs one crossing and no check in Python. An entry of one signature has `direct`
    too, the same function at a third of the cost of a crossing."""
    def decorate(function):
        options = {"nogil": nogil}
        if len(signatures) == 1:                 # arguments are `Given`, and in the function the spans that they are
            kinds, _ = normalize_signature(signatures[0])
            names = inspect.signature(function).parameters
            options["locals"] = {name: Span(kind) for name, kind in zip(names, kinds, strict=True) if given(kind) is not kind}
        dispatcher = _cached(function, **options)
        dispatcher.liedyn_signatures = signatures
        dispatcher.liedyn_compiler = _cached(function, **options)    # aside: the entry stays shut while another thread prepares
        dispatcher._can_compile = False      # disable_compile() insists on a signature first
        if len(signatures) == 1:
            dispatcher.direct = _not_prepared
        return dispatcher
    return decorate


def _not_prepared(*arguments):
    raise TypeError("not compiled yet")


def prepare(dispatcher, which: int = 0) -> bool:
    """Compile an entry for one of its signatures, or load it from the cache. Returns whether there was anything to do."""
    done = dispatcher.__dict__.setdefault("liedyn_ready", set())
    if which in done:
        return False
    with compiling():
        if which not in done:
            aside = dispatcher.liedyn_compiler
            signature = dispatcher.liedyn_signatures[which]
            if len(dispatcher.liedyn_signatures) == 1:
                kinds, returned = normalize_signature(signature)
                signature = returned(*map(given, kinds))
            aside.compile(signature)
            for types, result in aside.overloads.items():
                if types not in dispatcher.overloads:
                    dispatcher.add_overload(result)
                    if len(dispatcher.liedyn_signatures) == 1:
                        dispatcher.direct = result.entry_point
            done.add(which)
    return True


def _cached(function, **options):
    dispatcher = njit(function, pipeline_class=OnCacheLines, **options, **OPTIONS)
    dispatcher._cache = CodeCache(function)
    dispatcher.compile = partial(_compile, dispatcher.compile)
    return dispatcher


def _compile(compile, signature):
    with compiling():
        return compile(signature)
