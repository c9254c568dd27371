"""Views of arrays in compiled code.

Compiled functions without reference counts may not return a slice, and Python's rules for the ends of one cost 2 ns each, of
which a kernel makes dozens: a view is made at once instead, of what lies inside. Numba's own reshape calls a function that finds
strides: 10 ns each."""
from numba import njit, types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import lower_builtin, type_callable

from liedyn.seam.choice import PLAIN

try:
    from numba.np.arrayobj import make_array, populate_array
except ImportError:
    FOUND = False
else:
    FOUND = not PLAIN


def span(x, first, count):
    """x[first:first + count] of a C-contiguous array, by its first axis. Not checked: it must lie inside."""
    return x[first:first + count]


def flat(x):
    """All numbers of a C-contiguous array, in a row."""
    return x.reshape(x.size)


def table(x, rows, columns):
    """The first numbers of a C-contiguous array, as (rows, columns). Not checked: it must have as many."""
    return x.reshape(x.size)[:rows * columns].reshape(rows, columns)


def _is_contiguous(x): return isinstance(x, types.Array) and x.layout == "C"


if FOUND:
    @type_callable(span)
    def _typed_span(context):
        def typer(x, first, count):
            if _is_contiguous(x):
                return signature(x, x, types.intp, types.intp)
        return typer

    @type_callable(flat)
    def _typed_flat(context):
        def typer(x):
            if _is_contiguous(x):
                return signature(x.copy(ndim=1), x)
        return typer

    @type_callable(table)
    def _typed_table(context):
        def typer(x, rows, columns):
            if _is_contiguous(x):
                return signature(x.copy(ndim=2), x, types.intp, types.intp)
        return typer

    @lower_builtin(span, types.Array, types.intp, types.intp)
    def _span(context, builder, sig, args):
        whole, result = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
        shape, strides = (cgutils.unpack_tuple(builder, numbers) for numbers in (whole.shape, whole.strides))
        offset = args[1]
        for n in shape[1:]:
            offset = builder.mul(offset, n)
        populate_array(result, data=builder.gep(whole.data, [offset]), shape=[args[2], *shape[1:]], strides=strides,
                       itemsize=whole.itemsize, meminfo=whole.meminfo, parent=whole.parent)
        return result._getvalue()

    @lower_builtin(flat, types.Array)
    @lower_builtin(table, types.Array, types.intp, types.intp)
    def _reshaped(context, builder, sig, args):
        whole, result = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
        shape, size = args[1:] or [whole.nitems], whole.itemsize
        strides = [builder.mul(size, n) for n in shape[1:]] + [size]
        populate_array(result, data=whole.data, shape=shape, strides=strides, itemsize=size, meminfo=whole.meminfo,
                       parent=whole.parent)
        return result._getvalue()
else:
    span, flat, table = map(njit(inline="always"), (span, flat, table))        # pasted into the caller, which may slice
