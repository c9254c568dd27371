"""A SIMD number for Numba: `Lanes` holds eight float64, one per state, in one LLVM <8 x double>.

A function written over "numbers" compiles twice:

    rank-1 arrays (n,)    load() gives float64    one state
    rank-2 arrays (n, 8)  load() gives Lanes      eight states in lockstep

LLVM maps <8 x double> to one AVX-512 register, two of AVX2, four of NEON.
"""
import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

from liedyn.jit import callee, primitive

WIDTH = 8
_F64 = ir.DoubleType()
_VEC = ir.VectorType(_F64, WIDTH)
_I32 = ir.IntType(32)
_FLAGS = ("contract", "nsz", "arcp")


class Lanes(types.Type):
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
    return builder.shuffle_vector(first, undef, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))


def _spread(builder, kinds, values):
    return [x if isinstance(t, Lanes) else _broadcast(builder, x) for t, x in zip(kinds, values, strict=True)]


def _register(op, instruction):
    @infer_global(op)
    class _Typing(AbstractTemplate):
        key = op

        def generic(self, args, kws):
            if len(args) == 2 and any(isinstance(a, Lanes) for a in args):
                return signature(lanes, *[a if isinstance(a, Lanes) else types.float64 for a in args])

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


@lower_builtin(operator.neg, lanes)
def _neg(context, builder, sig, args):
    return builder.fneg(args[0])


# functions of either number ---------------------------------------------------------------------------------------
def _kind(*arguments):
    """The Numba type of a result: Lanes if any argument is."""
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


@intrinsic
def where_less(typing_context, x, y, yes, no):
    """yes where x < y, else no (also where x or y is NaN)."""
    kind = _kind(x, y, yes, no)

    def codegen(context, builder, sig, args):
        a, b, c, d = _values(builder, kind, sig.args, args)
        return builder.select(builder.fcmp_ordered("<", a, b), c, d)
    return kind(*[lanes if isinstance(t, Lanes) else types.float64 for t in (x, y, yes, no)]), codegen


@intrinsic
def all_less(typing_context, x, bound):
    """Whether x < bound in every lane; False if any lane is NaN. One vector comparison, no shuffles."""
    def codegen(context, builder, sig, args):
        if not isinstance(sig.args[0], Lanes):
            return builder.fcmp_ordered("<", *args)
        less = builder.fcmp_ordered("<", args[0], _broadcast(builder, args[1]))
        return builder.icmp_unsigned("==", builder.bitcast(less, ir.IntType(WIDTH)), ir.Constant(ir.IntType(WIDTH), 2**WIDTH - 1))
    return types.boolean(_kind(x), types.float64), codegen


@intrinsic
def largest(typing_context, x):
    """The largest of the eight lanes, as a float64; x itself for a float64. NaN if any lane is NaN."""
    def codegen(context, builder, sig, args):
        if not isinstance(sig.args[0], Lanes):
            return args[0]
        result = builder.extract_element(args[0], ir.Constant(_I32, 0))
        for k in range(1, WIDTH):
            y = builder.extract_element(args[0], ir.Constant(_I32, k))
            keep = builder.or_(builder.fcmp_ordered("<=", y, result), builder.fcmp_unordered("uno", result, result))
            result = builder.select(keep, result, y)
        return result
    return types.float64(_kind(x)), codegen


@intrinsic
def lane(typing_context, x, k):
    """Lane k of x; x itself for a float64."""
    def codegen(context, builder, sig, args):
        if not isinstance(sig.args[0], Lanes):
            return args[0]
        return builder.extract_element(args[0], builder.trunc(args[1], _I32))
    return types.float64(_kind(x), types.intp), codegen


@intrinsic
def with_lane(typing_context, x, k, value):
    """x with lane k replaced; value itself for a float64."""
    kind = _kind(x)

    def codegen(context, builder, sig, args):
        if kind is not lanes:
            return args[2]
        return builder.insert_element(args[0], args[2], builder.trunc(args[1], _I32))
    return kind(kind, types.intp, types.float64), codegen


def sqrt(x): ...


@overload(sqrt, inline="always")
def _sqrt_overload(x):
    if isinstance(x, (Lanes, types.Float)):
        return lambda x: _sqrt(x)


@primitive
def maximum(x, y): return where_less(x, y, y, x)


def width(x): ...


@overload(width, inline="always")
def _width(x):
    """How many states a number holds."""
    n = WIDTH if isinstance(x, Lanes) else 1
    return lambda x: n


@callee
def atan2(y, x):
    """Lane by lane, by the C library: used where a joint's difference is taken, not in hot loops."""
    result = y + x
    for k in range(width(result)):
        result = with_lane(result, k, math.atan2(lane(y, k), lane(x, k)))
    return result


# sine and cosine --------------------------------------------------------------------------------------------------
SINCOS_RANGE = 1e5


@intrinsic
def _quadrant(typing_context, k, s, c):
    """(sin, cos) of r + k pi/2 from s = sin r, c = cos r and a whole number k."""
    kind = _kind(k)

    def codegen(context, builder, sig, args):
        k, s, c = args
        i64 = ir.IntType(64)
        vector = isinstance(sig.args[0], Lanes)
        t = ir.VectorType(i64, WIDTH) if vector else i64

        def const(n):
            return ir.Constant(t, [n] * WIDTH) if vector else ir.Constant(t, n)

        f = _VEC if vector else _F64
        n = builder.fptosi(k, t)
        odd = builder.icmp_signed("!=", builder.and_(n, const(1)), const(0))
        x, y = builder.select(odd, c, s), builder.select(odd, s, c)
        flip_x = builder.shl(builder.and_(n, const(2)), const(62))                       # sign bit: quadrants 2, 3
        flip_y = builder.shl(builder.and_(builder.add(n, const(1)), const(2)), const(62))    # quadrants 1, 2
        x = builder.bitcast(builder.xor(builder.bitcast(x, t), flip_x), f)
        y = builder.bitcast(builder.xor(builder.bitcast(y, t), flip_y), f)
        return context.make_tuple(builder, sig.return_type, (x, y))
    return types.UniTuple(kind, 2)(kind, kind, kind), codegen


@callee
def _sincos_far(x):
    """By the C library, for angles that the fast reduction cannot hold."""
    s, c = x, x
    for k in range(width(x)):
        s = with_lane(s, k, math.sin(lane(x, k)))
        c = with_lane(c, k, math.cos(lane(x, k)))
    return s, c


def sincos(x): ...


@overload(sincos, inline="always")
def _sincos_overload(x):
    if isinstance(x, (Lanes, types.Float)):
        return lambda x: sincos_of_number(x)


@primitive
def sincos_of_number(x):
    """Sine and cosine. Cody-Waite reduction to |r| <= pi/4 and minimax polynomials; error below 2.3e-16 absolute for
    |x| < 1e5, beyond that (and for NaN and infinity) the C library's."""
    if not all_less(absolute(x), SINCOS_RANGE):
        return _sincos_far(x)
    k = nearest(x * 0.6366197723675814)
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
    return _quadrant(k, s, c)


# arrays -----------------------------------------------------------------------------------------------------------
def _pointer(context, builder, array_type, array, row):
    array = context.make_array(array_type)(context, builder, array)
    offset = builder.mul(row, ir.Constant(row.type, WIDTH))
    return builder.bitcast(builder.gep(array.data, [offset]), _VEC.as_pointer())


@intrinsic
def _load(typing_context, array, row):
    def codegen(context, builder, sig, args):
        return builder.load(_pointer(context, builder, sig.args[0], *args), align=8)
    return lanes(array, types.intp), codegen


@intrinsic
def _store(typing_context, array, row, value):
    def codegen(context, builder, sig, args):
        value = args[2] if isinstance(sig.args[2], Lanes) else _broadcast(builder, args[2])
        builder.store(value, _pointer(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()
    return types.void(array, types.intp, _kind(value)), codegen


@intrinsic
def _splat(typing_context, x):
    return lanes(types.float64), lambda context, builder, sig, args: _broadcast(builder, args[0])


def load(array, row): ...
def store(array, row, value): ...
def number_like(array, x): ...


@overload(load, inline="always")
def _load_overload(array, row):
    """Row `row` of the array: a float64 of a (n,) array, Lanes of a (n, 8) array."""
    if array.ndim == 1:
        return lambda array, row: array[row]
    if array.ndim == 2:
        return lambda array, row: _load(array, row)


@overload(store, inline="always")
def _store_overload(array, row, value):
    if array.ndim == 1:
        def scalar(array, row, value):
            array[row] = value
        return scalar
    if array.ndim == 2:
        return lambda array, row, value: _store(array, row, value)


@overload(number_like, inline="always")
def _number_like_overload(array, x):
    """The float64 x as the kind of number that `array` holds."""
    if array.ndim == 1:
        return lambda array, x: x
    if array.ndim == 2:
        return lambda array, x: _splat(x)


# eight rows of a batch (N, n) to and from a block (n, 8): 8x8 transposes in registers ------------------------------
# A strided copy costs 12% of forward dynamics of a 6-DoF arm, this 3%.
@intrinsic
def _row_part(typing_context, array, row, column, count):
    """`count` <= 8 numbers of one row of a (N, n) array as Lanes; the rest is zero."""
    def codegen(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig.args[0], *args[:3])
        f = builder.module.declare_intrinsic(
            "llvm.masked.load.v8f64.p0", fnty=ir.FunctionType(_VEC, [_VEC.as_pointer(), _I32, _MASK, _VEC]))
        zero = ir.Constant(_VEC, [0.0] * WIDTH)
        return builder.call(f, [pointer, ir.Constant(_I32, 8), _first(builder, args[3]), zero])
    return lanes(array, types.intp, types.intp, types.intp), codegen


@intrinsic
def _set_row_part(typing_context, array, row, column, count, value):
    def codegen(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig.args[0], *args[:3])
        f = builder.module.declare_intrinsic(
            "llvm.masked.store.v8f64.p0", fnty=ir.FunctionType(ir.VoidType(), [_VEC, _VEC.as_pointer(), _I32, _MASK]))
        builder.call(f, [args[4], pointer, ir.Constant(_I32, 8), _first(builder, args[3])])
        return context.get_dummy_value()
    return types.void(array, types.intp, types.intp, types.intp, lanes), codegen


@intrinsic
def _set_row(typing_context, array, row, column, value):
    """Eight numbers of one row of a (N, n) array."""
    def codegen(context, builder, sig, args):
        builder.store(args[3], _row_pointer(context, builder, sig.args[0], *args[:3]), align=8)
        return context.get_dummy_value()
    return types.void(array, types.intp, types.intp, lanes), codegen


_MASK = ir.VectorType(ir.IntType(1), WIDTH)


def _first(builder, count):
    """Mask of the first `count` lanes."""
    i64 = count.type
    spread = builder.insert_element(ir.Constant(ir.VectorType(i64, WIDTH), ir.Undefined), count, ir.Constant(_I32, 0))
    spread = builder.shuffle_vector(spread, spread, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))
    return builder.icmp_signed(">", spread, ir.Constant(ir.VectorType(i64, WIDTH), list(range(WIDTH))))


def _row_pointer(context, builder, array_type, array, row, column):
    array = context.make_array(array_type)(context, builder, array)
    n = builder.extract_value(array.shape, 1)
    return builder.bitcast(builder.gep(array.data, [builder.add(builder.mul(row, n), column)]), _VEC.as_pointer())


@intrinsic
def _transpose(typing_context, rows):
    """Eight Lanes as the columns of the matrix that eight Lanes are the rows of."""
    def codegen(context, builder, sig, args):
        x = [builder.extract_value(args[0], k) for k in range(WIDTH)]
        for step in (1, 2, 4):                            # exchange blocks of 1, 2, 4 between rows k and k + step
            low = [(j & ~step) + (WIDTH if j & step else 0) for j in range(WIDTH)]
            y = list(x)
            for k in range(WIDTH):
                if not k & step:
                    y[k] = builder.shuffle_vector(x[k], x[k + step], _indices(low))
                    y[k + step] = builder.shuffle_vector(x[k], x[k + step], _indices([j + step for j in low]))
            x = y
        return context.make_tuple(builder, sig.return_type, x)
    eight = types.UniTuple(lanes, WIDTH)
    return eight(eight), codegen


def _indices(values):
    return ir.Constant(ir.VectorType(_I32, WIDTH), values)


@callee
def _pack_lanes(batch, first, block):
    """Rows first … first + 7 of a batch (N, n) into a block (n, 8); rows beyond the end repeat the last one."""
    last, n = batch.shape[0] - 1, batch.shape[1]
    for j in range(0, n, WIDTH):
        count = min(WIDTH, n - j)
        x = _transpose((_row_part(batch, min(first, last), j, count), _row_part(batch, min(first + 1, last), j, count),
                        _row_part(batch, min(first + 2, last), j, count), _row_part(batch, min(first + 3, last), j, count),
                        _row_part(batch, min(first + 4, last), j, count), _row_part(batch, min(first + 5, last), j, count),
                        _row_part(batch, min(first + 6, last), j, count), _row_part(batch, min(first + 7, last), j, count)))
        for k in range(count):
            _store(block, j + k, x[k])


@callee
def _unpack_lanes(block, batch, first):
    """A block (n, 8) into rows first … first + 7 of a batch (N, n); lanes beyond the end are dropped."""
    rows, n = min(WIDTH, batch.shape[0] - first), batch.shape[1]
    whole = n - n % WIDTH if rows == WIDTH else 0
    for j in range(0, whole, WIDTH):                             # no masks, no index into the tuple: a third of the time
        _set_rows(batch, first, j, _transpose(_eight(block, j)))
    for j in range(whole, n, WIDTH):
        count, last = min(WIDTH, n - j), n - 1
        x = _transpose((_load(block, j), _load(block, min(j + 1, last)), _load(block, min(j + 2, last)),
                        _load(block, min(j + 3, last)), _load(block, min(j + 4, last)), _load(block, min(j + 5, last)),
                        _load(block, min(j + 6, last)), _load(block, min(j + 7, last))))
        for k in range(rows):
            _set_row_part(batch, first + k, j, count, x[k])


@primitive
def _eight(block, j):
    return (_load(block, j), _load(block, j + 1), _load(block, j + 2), _load(block, j + 3),
            _load(block, j + 4), _load(block, j + 5), _load(block, j + 6), _load(block, j + 7))


@primitive
def _set_rows(batch, first, j, x):
    _set_row(batch, first, j, x[0])
    _set_row(batch, first + 1, j, x[1])
    _set_row(batch, first + 2, j, x[2])
    _set_row(batch, first + 3, j, x[3])
    _set_row(batch, first + 4, j, x[4])
    _set_row(batch, first + 5, j, x[5])
    _set_row(batch, first + 6, j, x[6])
    _set_row(batch, first + 7, j, x[7])


@callee
def _unpack_groups(block, batch, first, column, filled):
    n, rows = block.shape[0], min(WIDTH, batch.shape[0] - first)
    zero = _splat(0.0)
    a, b = zero, zero                                            # 0, or NaN in the lane of a state that is not finite
    whole = n - n % WIDTH if rows == WIDTH else 0
    for j in range(0, whole, WIDTH):
        if filled[j // WIDTH]:
            x = _eight(block, j)
            a = a + ((x[0] + x[1]) * 0.0 + (x[2] + x[3]) * 0.0)
            b = b + ((x[4] + x[5]) * 0.0 + (x[6] + x[7]) * 0.0)
            _set_rows(batch, first, column + j, _transpose(x))
        else:
            _set_rows(batch, first, column + j, (zero, zero, zero, zero, zero, zero, zero, zero))
    for j in range(whole, n):
        a = a + _load(block, j) * 0.0
        for k in range(rows):
            batch[first + k, column + j] = block[j, k]
    return all_less(absolute(a + b), 1.0)


@callee
def _pack_row(batch, first, block):
    for j in range(batch.shape[1]):
        block[j] = batch[first, j]


@callee
def _unpack_row(block, batch, first):
    for j in range(batch.shape[1]):
        batch[first, j] = block[j]


def pack(batch, first, block): ...
def unpack(block, batch, first): ...
def states_in(block): ...
def unpack_filled(block, batch, first, column, filled): ...


@overload(pack, inline="always")
def _pack(batch, first, block):
    """One row of a batch into a block (n,), or eight into a block (n, 8)."""
    if block.ndim == 1:
        return lambda batch, first, block: _pack_row(batch, first, block)
    return lambda batch, first, block: _pack_lanes(batch, first, block)


@overload(unpack, inline="always")
def _unpack(block, batch, first):
    if block.ndim == 1:
        return lambda block, batch, first: _unpack_row(block, batch, first)
    return lambda block, batch, first: _unpack_lanes(block, batch, first)


@overload(unpack_filled, inline="always")
def _unpack_filled(block, batch, first, column, filled):
    """`unpack` of a block (n, 8) into columns `column` … column + n - 1; the block is zero but in the groups of eight rows that
    are `filled`. Returns whether all is finite."""
    return lambda block, batch, first, column, filled: _unpack_groups(block, batch, first, column, filled)


@overload(states_in, inline="always")
def _states_in(block):
    """How many states a block holds."""
    n = 1 if block.ndim == 1 else WIDTH
    return lambda block: n


@primitive
def whole_lines(n):
    """n rounded up to lines of eight numbers: what begins there can be written a line at a time."""
    return (n + 7) // 8 * 8


# an n x n matrix: of eight states by columns, one Lanes an entry; of one state by rows, or eight columns to a Lanes ------------
def put(X, n, c, r, value): ...


@overload(put, inline="always")
def _put(X, n, c, r, value):
    """Entry (r, c) of an n x n matrix: a Lanes by columns, a float64 into its lane of X (m, 8), or by rows into X (n n,)."""
    if isinstance(value, Lanes):
        return lambda X, n, c, r, value: _store(X, c * n + r, value)
    if X.ndim == 3:
        return None
    if X.ndim == 2:
        def lane_of_column(X, n, c, r, value):
            X[(c >> 3) * n + r, c & 7] = value
        return lane_of_column

    def by_rows(X, n, c, r, value):
        X[r * n + c] = value
    return by_rows


def get(X, n, c, r, number): ...


@overload(get, inline="always")
def _get(X, n, c, r, number):
    """What `put` put there; `number` gives the kind."""
    if isinstance(number, Lanes):
        return lambda X, n, c, r, number: _load(X, c * n + r)
    if X.ndim == 3:
        return None
    if X.ndim == 2:
        return lambda X, n, c, r, number: X[(c >> 3) * n + r, c & 7]
    return lambda X, n, c, r, number: X[r * n + c]


# a matrix with n rows by columns: a number an entry; of one state eight columns to a Lanes -----------------------------------
def columns_in_line(number): ...
def put_cell(X, n, c, r, value): ...
def get_cell(X, n, c, r, number): ...
def lines(memory): ...
def integers(memory): ...


@overload(columns_in_line, inline="always")
def _columns_in_line(number):
    """How many columns stand in a number of the matrix, where what depends on the state is of `number`'s kind."""
    n = WIDTH if isinstance(number, types.Float) else 1
    return lambda number: n


@overload(put_cell, inline="always")
def _put_cell(X, n, c, r, value):
    if isinstance(value, types.Float) and X.ndim == 2:
        def in_lane(X, n, c, r, value):
            X[(c >> 3) * n + r, c & 7] = value
        return in_lane
    return lambda X, n, c, r, value: store(X, c * n + r, value)


@overload(get_cell, inline="always")
def _get_cell(X, n, c, r, number):
    """What `put_cell` put there; `number` gives the kind."""
    if isinstance(number, types.Float) and X.ndim == 2:
        return lambda X, n, c, r, number: X[(c >> 3) * n + r, c & 7]
    return lambda X, n, c, r, number: load(X, c * n + r)


@overload(lines, inline="always")
def _lines(memory):
    """(memory of one state as lines of eight numbers, which are Lanes,); that of others as it is. A tuple, since compiled
    functions without reference counts cannot return a view alone."""
    if memory.ndim == 1:
        return lambda memory: (memory.reshape(memory.size // WIDTH, WIDTH),)
    return lambda memory: (memory,)


@overload(integers, inline="always")
def _integers(memory):
    """(memory as int64,): at least as many as it has numbers."""
    if memory.ndim == 1:
        return lambda memory: (memory.view(np.int64),)
    return lambda memory: (memory.reshape(memory.size).view(np.int64),)


@callee
def unpack_rows(X, out):
    """A matrix of one state, eight columns to a Lanes, into out (n, n). Returns whether it is finite."""
    n = out.shape[0]
    total = _splat(0.0)
    for b in range(0, n, WIDTH):
        count = min(WIDTH, n - b)
        for r in range(n):
            x = _load(X, b // WIDTH * n + r)
            total = total + x * 0.0
            _set_row_part(out, r, b, count, x)
    return all_less(absolute(total), 1.0)
