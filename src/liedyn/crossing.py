"""Arrays from Python for compiled code, checked where they are unboxed.

Numba's dispatcher finds out the type of every argument and which signature serves them: 0.15 us of a call with five arrays, a
tenth of one state's dynamics. An entry of one signature needs no choice. Its arrays are `Given`: their unboxing itself refuses,
by a TypeError, what is no NumPy array of the very type, rank and layout, and writeable, and the function that Numba made
for Python is called directly.
"""
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.extending import NativeValue, lower_cast, register_model, unbox
from numba.np import numpy_support
from numba.np.arrayobj import make_array, populate_array

from liedyn.spans import Span, SpanModel

_ARRAY_TYPE = "liedyn_ndarray_type"
binding.add_symbol(_ARRAY_TYPE, id(np.ndarray))

# where PyArrayObject and PyArray_Descr hold what is checked: part of NumPy's binary interface since 1.7
_HEAD = object.__basicsize__
_TYPE, _DATA, _RANK, _SHAPE, _STRIDES, _DESCR, _FLAGS = (_HEAD + k for k in (-8, 0, 8, 16, 24, 40, 48))
_KIND = _HEAD + 8                                     # of PyArray_Descr: kind, type and byte order, a character each
_ASKED = 0x1 | 0x400                                  # C-contiguous, writeable

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES = _I8.as_pointer()


class Given(types.Array):
    """An argument of an entry; inside it is a `Span`."""

    def can_convert_to(self, context, other):
        return self._same(other)

    def can_convert_from(self, context, other):
        return self._same(other)

    def _same(self, other):
        return Conversion.safe if isinstance(other, Span) and other.key == self.key else None


register_model(Given)(SpanModel)


@lower_cast(Given, Span)
@lower_cast(Span, Given)
def _cast(context, builder, given, array, value):
    return value


def given(kind):
    """The type of an argument, for an entry of one signature."""
    return Given(kind.dtype, kind.ndim, kind.layout) if isinstance(kind, types.Array) else kind


@unbox(Given)
def _unboxed(kind, object_, c):
    builder, x = c.builder, c.builder.bitcast(object_, _BYTES)
    good = cgutils.alloca_once_value(builder, cgutils.false_bit)
    result = make_array(kind)(c.context, builder)
    expected = builder.bitcast(c.context.get_c_value(builder, _I8, _ARRAY_TYPE), _BYTES)
    with builder.if_then(builder.icmp_unsigned("==", _field(builder, x, _TYPE, _BYTES), expected)):      # else no field is read
        builder.store(_as_asked(builder, kind, x), good)
    with builder.if_then(builder.load(good)):
        shape, strides = (_numbers(builder, _field(builder, x, place, _BYTES), kind.ndim) for place in (_SHAPE, _STRIDES))
        size = c.context.get_abi_sizeof(c.context.get_data_type(kind.dtype))
        data = builder.bitcast(_field(builder, x, _DATA, _BYTES), result.data.type)
        populate_array(result, data, shape, strides, ir.Constant(_I64, size), None)
    failed = builder.not_(builder.load(good))
    with builder.if_then(failed, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"not a contiguous, writeable array of {kind.dtype} with {kind.ndim} axes")
    return NativeValue(result._getvalue(), is_error=failed)


def _as_asked(builder, kind, x):
    flags = builder.and_(_field(builder, x, _FLAGS, _I32), ir.Constant(_I32, _ASKED))
    good = builder.and_(builder.icmp_signed("==", flags, ir.Constant(_I32, _ASKED)),
                        builder.icmp_signed("==", _field(builder, x, _RANK, _I32), ir.Constant(_I32, kind.ndim)))
    dtype, descr = numpy_support.as_dtype(kind.dtype), _field(builder, x, _DESCR, _BYTES)
    for k, character in enumerate((dtype.kind, dtype.char, dtype.byteorder)):
        same = builder.icmp_signed("==", _field(builder, descr, _KIND + k, _I8), ir.Constant(_I8, ord(character)))
        good = builder.and_(good, same)
    return good


def _field(builder, base, place, kind):
    return builder.load(builder.bitcast(builder.gep(base, [ir.Constant(_I64, place)]), kind.as_pointer()))


def _numbers(builder, pointer, count):
    return [_field(builder, pointer, 8 * k, _I64) for k in range(count)]
