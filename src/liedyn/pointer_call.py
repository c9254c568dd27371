"""Machine code at an address, called from compiled code."""
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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
