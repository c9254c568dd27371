"""A SIMD number for Numba: `Lanes` holds eight float64, one per state, in one LLVM <8 x double>.

A function written over "numbers" compiles twice:

    rank-1 arrays (n,)    load() gives float64    one state
    rank-2 arrays (n, 8)  load() gives Lanes      eight states in lockstep

LLVM maps <8 x double> to one AVX-512 register, two of AVX2, four of NEON.
"""
import math
import operator

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

from liedyn.numba_tools.decorators import inline_kernel, internal_kernel

# Sine and cosine by polynomials, for every kind of number: plain Python, which is compiled and traced -------------------

# The angle is reduced by Cody and Waite to at most pi/4; the polynomials are minimax. Error below 2.3e-16 absolute for |x| <
# SINCOS_RANGE, beyond which the reduction loses digits.

SINCOS_RANGE = 1e5
SINGLE_SINCOS_RANGE = 8192.0              # in single precision
TWO_OVER_PI = 0.6366197723675814         # 2 / pi


def reduced_sincos(x, k):
    """Return sine and cosine of x - k pi/2, where k is the whole number nearest to x TWO_OVER_PI."""
    r = x - k * 1.5707963267341256
    r = r - k * 6.077100506303966e-11
    r = r - k * 2.0222662487959506e-21
    z = r * r
    s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (
        -1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (
            -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))))
    c = 1.0 - 0.5 * z + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (
        2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (
            2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)))))
    return s, c


def reduced_sincos_single(x, k):
    """Return `reduced_sincos` for single precision: errors of 1e-7, for angles below SINGLE_SINCOS_RANGE.

    Products of k and the first two parts of pi/2 are exact. The polynomials have the least maximum error for |r| < pi/4.
    """
    r = x - k * 1.5703125
    r = r - k * 4.837512969970703e-04
    r = r - k * 7.549790126404332e-08
    z = r * r
    s = r + r * z * (-1.66666549367e-01 + z * (8.332177685e-03 - z * 1.95172345e-04))
    c = 1.0 - 0.5 * z + z * z * (4.166664567012e-02 + z * (-1.388731561483e-03 + z * 2.443308249512e-05))
    return s, c


# lanes ------------------------------------------------------------------------------------------------------------------

SIMD_WIDTH = 8
_F64 = ir.DoubleType()
_VEC = ir.VectorType(_F64, SIMD_WIDTH)
_I32 = ir.IntType(32)
_FLAGS = ("contract", "nsz", "arcp")


class Lanes(types.Type):
    """The Numba type of eight float64, one for each state."""
    def __init__(self):
        super().__init__("Lanes")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VEC)


# arithmetic: Lanes with Lanes, or with a float64 that is spread over the lanes ------------------------------------
def _broadcast(builder, x):
    undef = ir.Constant(_VEC, ir.Undefined)
    first = builder.insert_element(undef, x, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undef, ir.Constant(ir.VectorType(_I32, SIMD_WIDTH), [0] * SIMD_WIDTH))


def _spread(builder, kinds, values):
    return [x if isinstance(t, Lanes) else _broadcast(builder, x) for t, x in zip(kinds, values, strict=True)]


def _register(op, instruction):
    @infer_global(op)
    class _Typing(AbstractTemplate):
        key = op

        def generic(self, args, kws):
            if len(args) == 2 and any(isinstance(a, Lanes) for a in args):
                return signature(lanes, *[a if isinstance(a, Lanes) else types.float64 for a in args])
            return None

    for left, right in ((lanes, lanes), (lanes, types.float64), (types.float64, lanes)):
        @lower_builtin(op, left, right)
        def _lower(context, builder, sig, args):
            return getattr(builder, instruction)(*_spread(builder, sig.args, args), flags=_FLAGS)


for _op, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"),
                          (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    _register(_op, _instruction)


@infer_global(operator.neg)
class _NegTyping(AbstractTemplate):
    key = operator.neg

    def generic(self, args, kws):
        if isinstance(args[0], Lanes):
            return signature(lanes, lanes)
        return None


@lower_builtin(operator.neg, lanes)
def _neg(context, builder, sig, args):
    return builder.fneg(args[0])


# functions of either number ---------------------------------------------------------------------------------------
def _kind(*arguments):
    """Return the Numba type of a result: Lanes if any argument is."""
    return lanes if any(isinstance(a, Lanes) for a in arguments) else types.float64


def _values(builder, kind, kinds, values):
    return _spread(builder, kinds, values) if kind is lanes else values


def _unary(llvm_name):
    def typed(typing_context, x):
        kind = _kind(x)

        def codegen(context, builder, sig, args):
            t, suffix = (_VEC, "v8f64") if kind is lanes else (_F64, "f64")
            f = builder.module.declare_intrinsic(f"llvm.{llvm_name}.{suffix}", fnty=ir.FunctionType(t, [t]))
            return builder.call(f, args)
        return kind(kind), codegen
    return intrinsic(typed)


_sqrt = _unary("sqrt")
absolute = _unary("fabs")
nearest = _unary("rint")      # to the nearest integer, halves to even
floor = _unary("floor")


@intrinsic
def where_less(typing_context, x, y, yes, no):
    """Return yes where x < y, else no (also where x or y is NaN)."""
    kind = _kind(x, y, yes, no)

    def codegen(context, builder, sig, args):
        a, b, c, d = _values(builder, kind, sig.args, args)
        return builder.select(builder.fcmp_ordered("<", a, b), c, d)
    return kind(*[lanes if isinstance(t, Lanes) else types.float64 for t in (x, y, yes, no)]), codegen


@intrinsic
def all_less(typing_context, x, bound):
    """Return whether x < bound in every lane; False if any lane is NaN. One vector comparison, no shuffles."""
    def codegen(context, builder, sig, args):
        if not isinstance(sig.args[0], Lanes):
            return builder.fcmp_ordered("<", *args)
        less = builder.fcmp_ordered("<", args[0], _broadcast(builder, args[1]))
        return builder.icmp_unsigned("==", builder.bitcast(less, ir.IntType(SIMD_WIDTH)),
                                     ir.Constant(ir.IntType(SIMD_WIDTH), 2**SIMD_WIDTH - 1))
    return types.boolean(_kind(x), types.float64), codegen


@intrinsic
def lane(typing_context, x, k):
    """Return lane k of x; x itself for a float64."""
    def codegen(context, builder, sig, args):
        if not isinstance(sig.args[0], Lanes):
            return args[0]
        return builder.extract_element(args[0], builder.trunc(args[1], _I32))
    return types.float64(_kind(x), types.intp), codegen


@intrinsic
def with_lane(typing_context, x, k, value):
    """Return x with lane k replaced; value itself for a float64."""
    kind = _kind(x)

    def codegen(context, builder, sig, args):
        if kind is not lanes:
            return args[2]
        return builder.insert_element(args[0], args[2], builder.trunc(args[1], _I32))
    return kind(kind, types.intp, types.float64), codegen


def sqrt(x):
    """Return the square root of a float64 or of each lane."""


@overload(sqrt, inline="always")
def _sqrt_overload(x):
    if isinstance(x, (Lanes, types.Float)):
        return lambda x: _sqrt(x)
    return None


@inline_kernel
def maximum(x, y):
    """Return the larger of x and y, lane by lane; x if one of them is NaN."""
    return where_less(x, y, y, x)


def simd_width(x):
    """Return how many states a number holds: 8 for `Lanes`, 1 for a float64."""


@overload(simd_width, inline="always")
def _width(x):
    """Return how many states a number holds."""
    n = SIMD_WIDTH if isinstance(x, Lanes) else 1
    return lambda x: n


@internal_kernel
def atan2(y, x):
    """Return atan2 lane by lane, from the C library: used for differences of joint angles, not in hot loops."""
    result = y + x
    for k in range(simd_width(result)):
        result = with_lane(result, k, math.atan2(lane(y, k), lane(x, k)))
    return result


@internal_kernel
def exp(x):
    """Return exp lane by lane, from the C library."""
    result = x
    for k in range(simd_width(result)):
        result = with_lane(result, k, math.exp(lane(x, k)))
    return result


@internal_kernel
def log(x):
    """Return the natural logarithm lane by lane, from the C library; NaN or -inf outside its domain."""
    result = x
    for k in range(simd_width(result)):
        result = with_lane(result, k, math.log(lane(x, k)))
    return result


@internal_kernel
def expm1(x):
    """Return exp(x) - 1 lane by lane, from the C library: without cancellation near zero."""
    result = x
    for k in range(simd_width(result)):
        result = with_lane(result, k, math.expm1(lane(x, k)))
    return result


@internal_kernel
def log1p(x):
    """Return the natural logarithm of 1 + x lane by lane, from the C library: without cancellation near zero."""
    result = x
    for k in range(simd_width(result)):
        result = with_lane(result, k, math.log1p(lane(x, k)))
    return result


# sine and cosine --------------------------------------------------------------------------------------------------
_reduced_sincos = inline_kernel(reduced_sincos)


@inline_kernel
def _quadrant(k, s, c):
    """Return (sin, cos) of r + k pi/2 from s = sin r, c = cos r and a whole number k."""
    j = k - 4.0 * nearest(0.25 * k - 0.375)                          # k modulo 4
    return (where_less(j, 1.5, where_less(j, 0.5, s, c), where_less(j, 2.5, -s, -c)),
            where_less(j, 1.5, where_less(j, 0.5, c, -s), where_less(j, 2.5, -c, s)))


@internal_kernel
def _sincos_libm(x):
    """Return sine and cosine from the C library, for angles that are too large for the fast reduction."""
    s, c = x, x
    for k in range(simd_width(x)):
        s = with_lane(s, k, math.sin(lane(x, k)))
        c = with_lane(c, k, math.cos(lane(x, k)))
    return s, c


def sincos(x):
    """Return sine and cosine of a float64 or of each lane (see `sincos_of_number`)."""


@overload(sincos, inline="always")
def _sincos_overload(x):
    if isinstance(x, (Lanes, types.Float)):
        return lambda x: sincos_of_number(x)
    return None


@inline_kernel
def sincos_of_number(x):
    """Return sine and cosine; from the C library for angles beyond SINCOS_RANGE, NaN and infinity."""
    if not all_less(absolute(x), SINCOS_RANGE):
        return _sincos_libm(x)
    k = nearest(x * TWO_OVER_PI)
    s, c = _reduced_sincos(x, k)
    return _quadrant(k, s, c)


# arrays -----------------------------------------------------------------------------------------------------------
# Intrinsics: without Python's rule for negative indices, which costs three instructions a load (a tenth of a recursion over
# orders), and without Numba's own inlining, which is slow and has lost stores whose value was a conditional expression.
def _pointer(context, builder, array_type, array, row):
    data = context.make_array(array_type)(context, builder, array).data
    if array_type.ndim == 1:
        return builder.gep(data, [row])
    return builder.bitcast(builder.gep(data, [builder.mul(row, ir.Constant(row.type, SIMD_WIDTH))]), _VEC.as_pointer())


@intrinsic
def load(typing_context, array, row):
    """Return row `row` of the array: a float64 of a (n,) array, Lanes of a (n, 8) array."""
    def codegen(context, builder, sig, args):
        return builder.load(_pointer(context, builder, sig.args[0], *args), align=8)
    if array.ndim <= 2 and array.layout == "C":                     # other layouts would be read at wrong addresses
        return (array.dtype if array.ndim == 1 else lanes)(array, types.intp), codegen
    return None


@intrinsic
def store(typing_context, array, row, value):
    """Write value to row `row` of the array; a float64 is written to all lanes of a (n, 8) array."""
    def codegen(context, builder, sig, args):
        value = args[2]
        if sig.args[0].ndim == 2 and not isinstance(sig.args[2], Lanes):
            value = _broadcast(builder, value)
        builder.store(value, _pointer(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()
    if array.ndim <= 2 and array.layout == "C":
        return types.void(array, types.intp, array.dtype if array.ndim == 1 else _kind(value)), codegen
    return None


@intrinsic
def number_like(typing_context, array, x):
    """Return the float64 x as the kind of number that `array` holds."""
    if array.ndim == 1:
        return types.float64(array, types.float64), lambda context, builder, sig, args: args[1]
    if array.ndim == 2:
        return lanes(array, types.float64), lambda context, builder, sig, args: _broadcast(builder, args[1])
    return None
