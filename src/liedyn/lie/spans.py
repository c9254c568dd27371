"""Views of arrays for the works of kernels. Python's rules for slices, negative indices and ends that are cut off, cost some
twenty instructions a view, and a kernel makes dozens: 2 ns each of a call of one state."""
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


@intrinsic
def span(typing_context, x, first, count):
    """x[first:first + count] of a C-contiguous array, by its first axis. Not checked: it must lie inside."""
    def codegen(context, builder, sig, args):
        whole, result = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
        shape, strides = (cgutils.unpack_tuple(builder, numbers) for numbers in (whole.shape, whole.strides))
        offset = args[1]
        for n in shape[1:]:
            offset = builder.mul(offset, n)
        populate_array(result, data=builder.gep(whole.data, [offset]), shape=[args[2], *shape[1:]], strides=strides,
                       itemsize=whole.itemsize, meminfo=whole.meminfo, parent=whole.parent)
        return result._getvalue()
    return x(x, types.intp, types.intp), codegen
