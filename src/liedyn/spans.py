"""Arrays as compiled code sees them: without Python's rules for negative indices and slices.

Each number read by the rule for negative indices costs three instructions more, in kernels that follow a tree by its indices 2 to
9 % of all; and a slice some twenty for ends that are cut off, 2 ns of a call of one state, of which a kernel makes dozens."""
import functools
import operator

from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import lower_builtin, lower_cast, models, register_model, type_callable
from numba.np import numpy_support
from numba.np.arrayobj import getitem_arraynd_intp, load_item, make_array, populate_array, setitem_array, store_item


class Span(types.Array):
    """An array whose number k is read and written where k says, which must lie inside: no entry of a kernel, and no view made of
    one there, counts from the end. Of more than one axis it is as any array."""

    def __init__(self, x):
        plain = types.Array(x.dtype, x.ndim, x.layout, not x.mutable, None, x.aligned)
        super().__init__(x.dtype, x.ndim, x.layout, not x.mutable, f"span of {plain.name}", x.aligned)

    def copy(self, dtype=None, ndim=None, layout=None, readonly=None):
        """The type of a view."""
        return Span(super().copy(dtype, ndim, layout, readonly))

    @property
    def is_row(self):
        return self.ndim == 1 and self.layout == "C"


@register_model(Span)
class SpanModel(models.ArrayModel):
    """As any array; but from function to function go only its place and shape, from which the rest follows. So a call that stays
    one passes two words for seven, and takes less than half as long: kernels have some forty arrays."""

    def get_argument_type(self):
        return self._sent(super().get_argument_type())

    def as_argument(self, builder, value):
        return self._sent(super().as_argument(builder, value))

    def from_argument(self, builder, value):
        if self._fe_type.layout != "C":
            return super().from_argument(builder, value)
        data, *shape = value
        integer, size = shape[0].type, numpy_support.as_dtype(self._fe_type.dtype).itemsize
        strides = [integer(size)]
        for n in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], n))
        nobody = [each.get_argument_type()(None) for each in self._models[:2]]           # counts references to it
        count = functools.reduce(builder.mul, shape)
        return super().from_argument(builder, (*nobody, count, integer(size), data, tuple(shape), tuple(strides)))

    def _sent(self, members):
        if self._fe_type.layout != "C":
            return members
        _, _, _, _, data, shape, _ = members
        return (data, *shape)


@lower_cast(Span, types.Array)
def _array(context, builder, span, array, value):
    return value


@lower_builtin(operator.getitem, Span, types.Integer)
def _get(context, builder, sig, args):
    if not sig.args[0].is_row:
        return getitem_arraynd_intp(context, builder, sig, args)
    return load_item(context, builder, sig.args[0], _place(context, builder, sig.args, args))


@lower_builtin(operator.setitem, Span, types.Integer, types.Any)
def _set(context, builder, sig, args):
    array, _, given = sig.args
    if not array.is_row:
        return setitem_array(context, builder, sig, args)
    value = context.cast(builder, args[2], given, array.dtype)
    store_item(context, builder, array, value, _place(context, builder, sig.args, args))
    return context.get_dummy_value()


def _place(context, builder, kinds, args):
    array, k = make_array(kinds[0])(context, builder, args[0]), context.cast(builder, args[1], kinds[1], types.intp)
    if context.enable_boundscheck:                             # by NUMBA_BOUNDSCHECK=1, as any array
        cgutils.do_boundscheck(context, builder, k, builder.extract_value(array.shape, 0))
    return builder.gep(array.data, [k])


def span(x, first, count):
    """x[first:first + count] of a C-contiguous array, by its first axis. Not checked: it must lie inside."""
    return x[first:first + count]


@type_callable(span)
def _typed(context):
    def typer(x, first, count):
        if isinstance(x, types.Array) and x.layout == "C":
            return signature(Span(x), x, types.intp, types.intp)
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


# Numba's own reshape calls a function that finds strides: 10 ns each.
def flat(x):
    """All numbers of a C-contiguous array, in a row."""
    return x.reshape(x.size)


def table(x, rows, columns):
    """The first numbers of a C-contiguous array, as (rows, columns). Not checked: it must have as many."""
    return x.reshape(x.size)[:rows * columns].reshape(rows, columns)


@type_callable(flat)
def _typed_flat(context):
    def typer(x):
        if isinstance(x, types.Array) and x.layout == "C":
            return signature(Span(x.copy(ndim=1)), x)
    return typer


@type_callable(table)
def _typed_table(context):
    def typer(x, rows, columns):
        if isinstance(x, types.Array) and x.layout == "C":
            return signature(Span(x.copy(ndim=2)), x, types.intp, types.intp)
    return typer


@lower_builtin(flat, types.Array)
@lower_builtin(table, types.Array, types.intp, types.intp)
def _reshaped(context, builder, sig, args):
    whole, result = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
    shape, size = args[1:] or [whole.nitems], whole.itemsize
    strides = [builder.mul(size, n) for n in shape[1:]] + [size]
    populate_array(result, data=whole.data, shape=shape, strides=strides, itemsize=size, meminfo=whole.meminfo,
                   parent=whole.parent)
    return result._getvalue()
