"""Machine code at an address, called from compiled code; and numbers at one.

What is called by its address is no part of the caller's code. Else LLVM would compile the whole of it once more with each caller.
"""
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from liedyn.jit import prepare

_I64 = ir.IntType(64)
_NUMBERS = types.float64[::1]


@intrinsic
def call(typing_context, address, arrays):
    """The int64 that machine code at an address returns, for pointers to the numbers of contiguous arrays."""
    def codegen(context, builder, signature, args):
        pointer, i64 = ir.DoubleType().as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(i64, [pointer] * len(arrays))
        data = [context.make_array(array)(context, builder, builder.extract_value(args[1], k)).data
                for k, array in enumerate(arrays)]
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), data)
    return types.int64(types.int64, arrays), codegen


@intrinsic
def call_at(typing_context, function, arguments):
    """The function of int64 at an address, called with a tuple of them."""
    def codegen(context, builder, sig, args):
        given = [builder.extract_value(args[1], k) for k in range(len(sig.args[1]))]
        kind = ir.FunctionType(_I64, [_I64] * len(given)).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), given)
    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), codegen


@intrinsic
def place_of(typing_context, x):
    """The address of an array's first number."""
    def codegen(context, builder, sig, args):
        return builder.ptrtoint(make_array(sig.args[0])(context, builder, args[0]).data, _I64)
    return types.int64(x), codegen


@intrinsic
def numbers_at(typing_context, address, count):
    """(count,) float64 at an address."""
    def codegen(context, builder, sig, args):
        result = make_array(sig.return_type)(context, builder)
        populate_array(result, data=builder.inttoptr(args[0], result.data.type), shape=[args[1]], strides=[_I64(8)],
                       itemsize=_I64(8), meminfo=None)
        return result._getvalue()
    return _NUMBERS(types.int64, types.int64), codegen


def address_of(entry) -> int:
    """Where other code finds an entry of one signature, of integers alone."""
    prepare(entry)
    result, = entry.overloads.values()
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
