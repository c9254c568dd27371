"""A number that carries its derivatives: `Dual` holds one float64 and how fast it changes in eight directions.

The third number beside float64 and `Lanes`: kernels written over numbers run on arrays (n, 2, 8) of duals unchanged, and
give their exact derivatives in eight directions at once. Used where a kernel is differentiated once more than its own
formulas do.
"""
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

from liedyn.lie.lanes import WIDTH, lanes, load, number_like, sincos, sincos_of_number, sqrt, store, where_less

_F64 = ir.DoubleType()
_VEC = ir.VectorType(_F64, WIDTH)
_I32 = ir.IntType(32)
_FLAGS = ("contract", "nsz", "arcp")


class Dual(types.Type):
    def __init__(self):
        super().__init__("Dual")


dual = Dual()


@register_model(Dual)
class _DualModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, [("value", types.float64), ("rates", lanes)])


def _spread(builder, x):
    undefined = ir.Constant(_VEC, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))


def _parts(context, builder, kind, x):
    """Value and rates (None of a float64)."""
    if isinstance(kind, Dual):
        proxy = cgutils.create_struct_proxy(kind)(context, builder, value=x)
        return proxy.value, proxy.rates
    return x, None


def _make(context, builder, value, rates):
    proxy = cgutils.create_struct_proxy(dual)(context, builder)
    proxy.value, proxy.rates = value, rates
    return proxy._getvalue()


# arithmetic -------------------------------------------------------------------------------------------------------
def _scaled(b, x, dy):
    return None if dy is None else b.fmul(_spread(b, x), dy, flags=_FLAGS)


def _sum(b, dx, dy, op="fadd"):
    if dy is None:
        return dx
    if dx is None:
        return dy if op == "fadd" else b.fneg(dy)
    return getattr(b, op)(dx, dy, flags=_FLAGS)


def _add(b, x, dx, y, dy): return b.fadd(x, y, flags=_FLAGS), _sum(b, dx, dy)
def _sub(b, x, dx, y, dy): return b.fsub(x, y, flags=_FLAGS), _sum(b, dx, dy, "fsub")
def _mul(b, x, dx, y, dy): return b.fmul(x, y, flags=_FLAGS), _sum(b, _scaled(b, y, dx), _scaled(b, x, dy))


def _div(b, x, dx, y, dy):
    """d(x/y) = (dx - (x/y) dy) / y."""
    z, r = b.fdiv(x, y, flags=_FLAGS), b.fdiv(ir.Constant(_F64, 1.0), y, flags=_FLAGS)
    return z, _scaled(b, r, _sum(b, dx, _scaled(b, z, dy), "fsub"))


def _register(op, rule):
    @infer_global(op)
    class _Typing(AbstractTemplate):
        key = op

        def generic(self, args, kws):
            if len(args) == 2 and any(isinstance(a, Dual) for a in args):
                return signature(dual, *[a if isinstance(a, Dual) else types.float64 for a in args])

    for left, right in ((dual, dual), (dual, types.float64), (types.float64, dual)):
        @lower_builtin(op, left, right)
        def _lower(context, builder, sig, args):
            parts = [_parts(context, builder, t, x) for t, x in zip(sig.args, args, strict=True)]
            return _make(context, builder, *rule(builder, *parts[0], *parts[1]))


for _op, _rule in ((operator.add, _add), (operator.sub, _sub), (operator.mul, _mul), (operator.truediv, _div)):
    _register(_op, _rule)


@infer_global(operator.neg)
class _NegTyping(AbstractTemplate):
    key = operator.neg

    def generic(self, args, kws):
        if isinstance(args[0], Dual):
            return signature(dual, dual)


@lower_builtin(operator.neg, dual)
def _neg(context, builder, sig, args):
    value, rates = _parts(context, builder, dual, args[0])
    return _make(context, builder, builder.fneg(value), builder.fneg(rates))


# parts, and functions by their derivatives ------------------------------------------------------------------------
@intrinsic
def make_dual(typing_context, value, rates):
    return dual(types.float64, lanes), lambda context, builder, sig, args: _make(context, builder, *args)


@intrinsic
def value_of(typing_context, x):
    if isinstance(x, Dual):
        return types.float64(dual), lambda context, builder, sig, args: _parts(context, builder, dual, args[0])[0]


@intrinsic
def rates_of(typing_context, x):
    if isinstance(x, Dual):
        return lanes(dual), lambda context, builder, sig, args: _parts(context, builder, dual, args[0])[1]


@overload(sqrt, inline="always")
def _sqrt_of_dual(x):
    if isinstance(x, Dual):
        def root(x):
            y = sqrt(value_of(x))
            return make_dual(y, (0.5 / y) * rates_of(x))
        return root


@overload(sincos, inline="always")
def _sincos_of_dual(x):
    if isinstance(x, Dual):
        def both(x):
            s, c = sincos_of_number(value_of(x))
            return make_dual(s, c * rates_of(x)), make_dual(c, -s * rates_of(x))
        return both


@intrinsic
def _where_less(typing_context, x, y, yes, no):
    """By the values; the rates are those of what is chosen."""
    def codegen(context, builder, sig, args):
        x, y, yes, no = (_parts(context, builder, t, value) for t, value in zip(sig.args, args, strict=True))
        zero = ir.Constant(_VEC, [0.0] * WIDTH)
        less = builder.fcmp_ordered("<", x[0], y[0])
        rates = (zero if part is None else part for part in (yes[1], no[1]))
        return _make(context, builder, builder.select(less, yes[0], no[0]), builder.select(less, *rates))
    return dual(*[dual if isinstance(t, Dual) else types.float64 for t in (x, y, yes, no)]), codegen


@overload(where_less, inline="always", target="cpu")       # asked before the intrinsic, which knows the other numbers only
def _where_less_of_duals(x, y, yes, no):
    if any(isinstance(t, Dual) for t in (x, y, yes, no)):
        return lambda x, y, yes, no: _where_less(x, y, yes, no)


# arrays (n, 2, 8): the value in the first number of the first row, the rates in the second --------------------------
def _pointers(context, builder, array_type, array, row):
    data = context.make_array(array_type)(context, builder, array).data
    at = builder.gep(data, [builder.mul(row, ir.Constant(row.type, 2 * WIDTH))])
    return at, builder.bitcast(builder.gep(at, [ir.Constant(row.type, WIDTH)]), _VEC.as_pointer())


@intrinsic
def _load(typing_context, array, row):
    def codegen(context, builder, sig, args):
        value, rates = _pointers(context, builder, sig.args[0], *args)
        return _make(context, builder, builder.load(value), builder.load(rates, align=8))
    return dual(array, types.intp), codegen


@intrinsic
def _store(typing_context, array, row, x):
    def codegen(context, builder, sig, args):
        value, rates = _pointers(context, builder, sig.args[0], *args[:2])
        x, dx = _parts(context, builder, sig.args[2], args[2])
        builder.store(x, value)
        builder.store(ir.Constant(_VEC, [0.0] * WIDTH) if dx is None else dx, rates, align=8)
        return context.get_dummy_value()
    return types.void(array, types.intp, dual if isinstance(x, Dual) else types.float64), codegen


@overload(load, inline="always", target="cpu")
def _load_overload(array, row):
    if array.ndim == 3:
        return lambda array, row: _load(array, row)


@overload(store, inline="always", target="cpu")
def _store_overload(array, row, value):
    if array.ndim == 3:
        return lambda array, row, value: _store(array, row, value)


@intrinsic
def constant(typing_context, x):
    """A float64 without rates."""
    zero = ir.Constant(_VEC, [0.0] * WIDTH)
    return dual(types.float64), lambda context, builder, sig, args: _make(context, builder, args[0], zero)


@overload(number_like, inline="always", target="cpu")
def _number_like_overload(array, x):
    if array.ndim == 3:
        return lambda array, x: constant(x)
