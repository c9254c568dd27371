"""The decorators of all compiled code. What they compile is kept by `code_cache`."""
from __future__ import annotations

from functools import partial

from numba import njit
from numba.extending import register_jitable

from liedyn.code_cache import CodeCache, compiling
from liedyn.seam.dispatchers import without_wrappers
from liedyn.seam.stack import ON_CACHE_LINES

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product.
# No nnan/ninf: a NaN must stay visible to the checks.
_FAST = {"contract", "nsz", "arcp"}

# No reference counts: kernels allocate nothing, and counting the model's arrays at every call of a primitive made
# forward dynamics 2.5 times slower. An allocation in compiled code is then an error of the compiler.
OPTIONS = {"_nrt": False, "fastmath": _FAST, "error_model": "numpy"}


def _inner(**options):
    """A decorator of functions for compiled code only."""
    return lambda function: without_wrappers(function, **{**OPTIONS, **options})


# Inlining by LLVM: the speed of inline="always" at half the compile time.
primitive = _inner(forceinline=True)

# For quotients that are rounded as IEEE 754 says: x / x is 1. With arcp, divisions by one number share its reciprocal.
rounded = _inner(forceinline=True, fastmath=_FAST - {"arcp"})

# For steps of a long loop that call kernels: a primitive would be compiled on its own, with all that it calls, for nothing.
pasted = _inner(inline="always")

# Where an entry or a kernel calls it, the call stays a call. Primitives hand their inlining down to it: calls there would cost
# batches of small robots 4 to 14%.
callee = _inner()


# For sizes of memory, which Python makes and compiled code divides.
everywhere = register_jitable


def kernel(function):
    """Compile a function of arrays on its first call and keep the result on disk."""
    return _cached(function)


def entry(*signatures: str, nogil: bool = False):
    """A kernel that Python calls, for these signatures only.

    Until `prepare` has compiled it, and for arguments of other types, a call raises TypeError: never a surprising
    second compilation. So the common call costs one crossing and no check in Python."""
    def decorate(function):
        dispatcher = _cached(function, nogil=nogil)
        dispatcher.liedyn_signatures = signatures
        dispatcher.liedyn_compiler = _cached(function, nogil=nogil)    # aside: the entry stays shut while another thread prepares
        dispatcher._can_compile = False      # disable_compile() insists on a signature first
        return dispatcher
    return decorate


def prepare(dispatcher, which: int = 0) -> bool:
    """Compile an entry for one of its signatures, or load it from the cache. Returns whether there was anything to do."""
    done = dispatcher.__dict__.setdefault("liedyn_ready", set())
    if which in done:
        return False
    with compiling():
        if which not in done:
            aside = dispatcher.liedyn_compiler
            aside.compile(dispatcher.liedyn_signatures[which])
            for types, result in aside.overloads.items():
                if types not in dispatcher.overloads:
                    dispatcher.add_overload(result)
            done.add(which)
    return True


def _cached(function, **options):
    dispatcher = njit(function, **ON_CACHE_LINES, **options, **OPTIONS)
    dispatcher._cache = CodeCache(function)
    dispatcher.compile = partial(_compile, dispatcher.compile)
    return dispatcher


def _compile(compile, signature):
    with compiling():
        return compile(signature)
