"""Views of arrays for the works of kernels. Python's rules for slices, negative indices and ends that are cut off, cost some
twenty instructions a view, and a kernel makes dozens: 2 ns each of a call of one state."""
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array


def span(x, first, count):
    """x[first:first + count] of a C-contiguous array, by its first axis. Not checked: it must lie inside."""
    return x[first:first + count]


@type_callable(span)
def _typed(context):
    def typer(x, first, count):
        if isinstance(x, types.Array) and x.layout == "C":
            return signature(x, x, types.intp, types.intp)
    return typer


@lower_builtin(span, types.Array, types.intp, types.intp)
def _compiled(context, builder, sig, args):
    whole, result = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
    shape, strides = (cgutils.unpack_tuple(builder, numbers) for numbers in (whole.shape, whole.strides))
    offset = args[1]
    for n in shape[1:]:
        offset = builder.mul(offset, n)
    populate_array(result, data=builder.gep(whole.data, [offset]), shape=[args[2], *shape[1:]], strides=strides,
                   itemsize=whole.itemsize, meminfo=whole.meminfo, parent=whole.parent)
    return result._getvalue()
