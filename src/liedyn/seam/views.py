"""Views of parts of an array in compiled code, made at once: slices are each a call, which takes longer to compile."""
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import lower_builtin, overload, type_callable

from liedyn.seam.choice import PLAIN

try:
    from numba.np.arrayobj import make_array, populate_array
except ImportError:
    FOUND = False
else:
    FOUND = not PLAIN


def carve(memory, sizes):
    """Views of a C-contiguous array, by its first axis: of so many numbers each, one after the other, and of the rest. Not
    checked: there must be as many."""
    views, first = (), 0
    for size in sizes:
        views, first = (*views, memory[first:first + size]), first + size
    return (*views, memory[first:])


if FOUND:
    @type_callable(carve)
    def _typed(context):
        def typer(memory, sizes):
            if isinstance(memory, types.Array) and memory.layout == "C":
                return signature(types.UniTuple(memory, len(sizes) + 1), memory, types.UniTuple(types.intp, len(sizes)))
        return typer

    @lower_builtin(carve, types.Array, types.UniTuple)
    def _carve(context, builder, sig, args):
        whole = make_array(sig.args[0])(context, builder, args[0])
        shape, strides = (cgutils.unpack_tuple(builder, numbers) for numbers in (whole.shape, whole.strides))
        data, left, views = whole.data, shape[0], []
        for count in [*cgutils.unpack_tuple(builder, args[1]), None]:
            count = left if count is None else count
            view, numbers = make_array(sig.args[0])(context, builder), count
            for n in shape[1:]:
                numbers = builder.mul(numbers, n)
            populate_array(view, data=data, shape=[count, *shape[1:]], strides=strides, itemsize=whole.itemsize,
                           meminfo=whole.meminfo, parent=whole.parent)
            views.append(view._getvalue())
            data, left = builder.gep(data, [numbers]), builder.sub(left, count)
        return context.make_tuple(builder, sig.return_type, views)
else:
    @overload(carve)
    def _carve(memory, sizes):
        if not len(sizes):
            return lambda memory, sizes: (memory,)
        return lambda memory, sizes: (memory[:sizes[0]], *carve(memory[sizes[0]:], sizes[1:]))
