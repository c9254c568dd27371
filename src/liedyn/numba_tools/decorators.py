"""The decorators of all compiled code, which is cached by `compile_cache`."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, typeof, types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import make_array, populate_array

from liedyn.numba_tools.compile_cache import CodeCache, compiling
from liedyn.numba_tools.numba_internals import ALIGNED_STACK, njit_without_wrappers

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product.
# No nnan/ninf: a NaN must stay visible to the checks.
_FAST = {"contract", "nsz", "arcp"}

# No reference counts: kernels allocate nothing, and counting the model's arrays at every call of a primitive made
# forward dynamics 2.5 times slower. An allocation in compiled code is then an error of the compiler.
OPTIONS = {"_nrt": False, "fastmath": _FAST, "error_model": "numpy"}


def _internal_decorator(**options):
    """Return a decorator of functions that only compiled code calls."""
    return lambda function: njit_without_wrappers(function, **{**OPTIONS, **options})


# Inlining by LLVM: the speed of inline="always" at half the compile time.
inline_kernel = _internal_decorator(forceinline=True)

# For quotients that are rounded as IEEE 754 says: x / x is 1. With arcp, divisions by one number share its reciprocal.
ieee_inline_kernel = _internal_decorator(forceinline=True, fastmath=_FAST - {"arcp"})

# For sums whose order does not matter: they are vectorized.
reordering_inline_kernel = _internal_decorator(forceinline=True, fastmath=_FAST | {"reassoc"})

# For steps of a long loop that call kernels: a primitive would be compiled separately, with all that it calls, without benefit.
ir_inline_kernel = _internal_decorator(inline="always")

# A call from an entry point or a kernel is not inlined. In inlined primitives it is inlined, too: calls there would slow down
# batches of small robots by 4 to 14%.
internal_kernel = _internal_decorator()


# For sizes of memory, which Python allocates and compiled code splits.
jitable = register_jitable


def kernel(function):
    """Compile a function of arrays at its first call and cache the result on disk."""
    return _cached_dispatcher(function)


def entry_point(*signatures: str, nogil: bool = False):
    """Decorate a kernel that Python calls, for these signatures only.

    Until `compile_entry_point` has compiled it, and for arguments of other types, a call raises TypeError, so that no second
    compilation occurs by accident. A call thus crosses from Python once, without checks in Python.
    """
    def decorate(function):
        dispatcher = _cached_dispatcher(function, nogil=nogil)
        dispatcher.liedyn_signatures = signatures
        # separate: the entry point cannot be called while another thread compiles it
        dispatcher.liedyn_compiler = _cached_dispatcher(function, nogil=nogil)
        dispatcher._can_compile = False      # disable_compile() requires a compiled signature
        return dispatcher
    return decorate


def compile_entry_point(dispatcher, signature_index: int = 0) -> bool:
    """Compile an entry point for one of its signatures, or load it from the cache. Return False if that was done before."""
    done = dispatcher.__dict__.setdefault("liedyn_ready", set())
    if signature_index in done:
        return False
    with compiling():
        if signature_index not in done:
            compiler = dispatcher.liedyn_compiler
            compiler.compile(dispatcher.liedyn_signatures[signature_index])
            for types, result in compiler.overloads.items():
                if types not in dispatcher.overloads:
                    dispatcher.add_overload(result)
            done.add(signature_index)
    return True


def _cached_dispatcher(function, **options):
    dispatcher = njit(function, **ALIGNED_STACK, **options, **OPTIONS)
    dispatcher._cache = CodeCache(function)
    dispatcher.compile = partial(_compile, dispatcher.compile)
    return dispatcher


def _compile(compile, signature):
    with compiling():
        return compile(signature)


# Calls of machine code at an address from compiled code, and arrays at an address ----------------------------------------

def _intrinsic(function) -> Any:
    """Return the function that compiled code calls, without the parameters that Numba adds."""
    return intrinsic(function)


# A function that is called by its address is not part of the caller's code. Otherwise LLVM would compile it again with each
# caller. Numba passes the arguments of an intrinsic by position: those that are not used start with _.

_I64 = ir.IntType(64)
_FLOAT_ARRAY = types.float64[::1]


@_intrinsic
def call_with_arrays(_typing_context, _address, arrays):
    """Return the int64 result of machine code at an address, called with pointers to the numbers of contiguous arrays."""
    def codegen(context, builder, _signature, args):
        pointer, i64 = ir.DoubleType().as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(i64, [pointer] * len(arrays))
        data = [context.make_array(array)(context, builder, builder.extract_value(args[1], k)).data
                for k, array in enumerate(arrays)]
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), data)
    return types.int64(types.int64, arrays), codegen


@_intrinsic
def call_with_integers(_typing_context, _address, arguments):
    """Call the function of int64 at an address with a tuple of integers."""
    def codegen(_context, builder, sig, args):
        integers = [builder.extract_value(args[1], k) for k in range(len(sig.args[1]))]
        kind = ir.FunctionType(_I64, [_I64] * len(integers)).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), integers)
    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), codegen


@_intrinsic
def array_address(_typing_context, x):
    """Return the address of the first number of an array."""
    def codegen(context, builder, sig, args):
        return builder.ptrtoint(make_array(sig.args[0])(context, builder, args[0]).data, _I64)
    return types.int64(x), codegen


@_intrinsic
def array_at(_typing_context, _address, _count):
    """Return the float64 array (count,) at an address."""
    def codegen(context, builder, sig, args):
        result = make_array(sig.return_type)(context, builder)
        populate_array(result, data=builder.inttoptr(args[0], result.data.type), shape=[args[1]], strides=[_I64(8)],
                       itemsize=_I64(8), meminfo=None)
        return result._getvalue()
    return _FLOAT_ARRAY(types.int64, types.int64), codegen


def entry_point_address(entry_point) -> int:
    """Return the address of an entry point with one signature, of integers only."""
    compile_entry_point(entry_point)
    result, = entry_point.overloads.values()
    return _c_address(result)


def _c_address(result) -> int:
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


# Arguments of any type behind one address: the caller is compiled once for all types, the function once for each ---------

@_intrinsic
def call_with_values(_typing_context, _address, arguments):
    """Return the int64 result of a kernel at an address, see `address_for`. Arrays must be C-contiguous."""
    if any(isinstance(x, types.Array) and x.layout != "C" for x in _flat_types(arguments)):
        return None                                                # no such signature

    def codegen(context, builder, sig, args):
        values = cgutils.unpack_tuple(builder, args[1])
        kind = ir.FunctionType(_I64, [context.get_value_type(x) for x in sig.args[1]]).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), values)
    return types.int64(types.int64, arguments), codegen


def _flat_types(kind):
    return [each for part in kind for each in _flat_types(part)] if isinstance(kind, types.BaseTuple) else [kind]


@_intrinsic
def value_at(_typing_context, pointer):
    """Return the value at a pointer, see `address_for`."""
    def codegen(context, builder, sig, args):
        return context.unpack_value(builder, sig.return_type, args[0])
    return pointer.dtype(pointer), codegen


def address_for(function, values: tuple, *examples) -> int:
    """Return the address of a kernel whose first argument is a pointer to a tuple of the type of `values`.

    Its other arguments are of the types of `examples`. Callers pass the address of `packed_values`.
    """
    key = function, _kind(values), _kind(examples)
    if key not in _addresses:
        signature = types.CPointer(typeof(values)), *map(typeof, examples)
        if signature not in function.overloads:
            function.compile(signature)
        _addresses[key] = _c_address(function.overloads[signature])
    return _addresses[key]


_addresses: dict[tuple, int] = {}          # of `address_for`: to determine Numba's types takes longer than a right-hand side


def _kind(value):
    """Return what determines the type of a value in compiled code."""
    match value:
        case tuple():
            return type(value), *map(_kind, value)
        case np.ndarray():
            return value.dtype, value.ndim, value.flags.num
        case _:
            return type(value)


def packed_values(values: tuple) -> np.ndarray:
    """Return a tuple of arrays, integers, None and such tuples as compiled code stores it: in words of eight bytes.

    It contains addresses: the arrays must exist as long as it is used.
    """
    words: list[int] = []
    _append_words(values, words)
    return np.array(words, dtype=np.int64)


def _append_words(value, words):
    match value:
        case tuple():
            for part in value:
                _append_words(part, words)
        case np.ndarray():
            address, _ = value.__array_interface__["data"]
            words += 0, 0, value.size, value.itemsize, address, *value.shape, *value.strides
        case None:
            words.append(0)
        case int() | np.integer() if not isinstance(value, bool):
            words.append(value)
        case _:
            raise TypeError(f"compiled code stores a {type(value).__name__} in another way")
