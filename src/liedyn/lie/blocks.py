"""Numbers in memory: states of a batch to and from blocks of Lanes.

The rank of a block says what it holds: (n,) one state, (n, 8) eight states, (n, 2, 8) duals."""
from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba import types
from numba.extending import intrinsic, overload

from liedyn.jit import callee, primitive
from liedyn.lie.lanes import WIDTH, absolute, all_less, lanes, load, number_like, store

_VEC = ir.VectorType(ir.DoubleType(), WIDTH)
_I32 = ir.IntType(32)
_EIGHT = types.UniTuple(lanes, WIDTH)


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
def set_row_part(typing_context, array, row, column, count, value):
    """The first `count` <= 8 lanes of value into one row of a (N, n) array."""
    def codegen(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig.args[0], *args[:3])
        f = builder.module.declare_intrinsic(
            "llvm.masked.store.v8f64.p0", fnty=ir.FunctionType(ir.VoidType(), [_VEC, _VEC.as_pointer(), _I32, _MASK]))
        builder.call(f, [args[4], pointer, ir.Constant(_I32, 8), _first(builder, args[3])])
        return context.get_dummy_value()
    return types.void(array, types.intp, types.intp, types.intp, lanes), codegen


def _rows_setter(streams):
    """An intrinsic: x[k] into eight numbers of row `row` + k of a (N, n) array, k = 0 … 7; past the caches, where each place is a
    whole line of them."""
    @intrinsic
    def set_rows(typing_context, array, row, column, x):
        def codegen(context, builder, sig, args):
            places = _eight_rows(context, builder, sig.args[0], *args[:3])
            for k, at in enumerate(places):
                store = builder.store(builder.extract_value(args[3], k), at, align=8 * WIDTH if streams else 8)
                if streams:
                    store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_I32, 1)]))
            return context.get_dummy_value()
        return types.void(array, types.intp, types.intp, types.UniTuple(lanes, WIDTH)), codegen
    return set_rows


set_rows, _stream_rows = _rows_setter(streams=False), _rows_setter(streams=True)


@intrinsic
def rows_of_lines(typing_context, array):
    """Whether rows of a (N, n) array are whole cache lines."""
    def codegen(context, builder, sig, args):
        i64 = ir.IntType(64)
        array = context.make_array(sig.args[0])(context, builder, args[0])
        odd = builder.or_(builder.and_(builder.ptrtoint(array.data, i64), ir.Constant(i64, 8 * WIDTH - 1)),
                          builder.and_(builder.extract_value(array.shape, 1), ir.Constant(i64, WIDTH - 1)))
        return builder.icmp_signed("==", odd, ir.Constant(i64, 0))
    return types.boolean(array), codegen


@intrinsic
def settle(typing_context):
    """What was streamed is written before whatever follows, for other threads too."""
    def codegen(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()
    return types.void(), codegen


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


def _eight_rows(context, builder, array_type, array, row, column):
    """Pointers to number `column` of eight rows. Multiples of a row are for the compiler to keep: of the instructions that hand
    out a line, each row by its own product was half."""
    first = builder.bitcast(_row_pointer(context, builder, array_type, array, row, column), ir.DoubleType().as_pointer())
    n = builder.extract_value(context.make_array(array_type)(context, builder, array).shape, 1)
    places = [builder.gep(first, [builder.mul(n, ir.Constant(n.type, k))]) for k in range(WIDTH)]
    return [builder.bitcast(at, _VEC.as_pointer()) for at in places]


def _eight_lanes(context, builder, array_type, array, row):
    """Pointers to eight Lanes of a block (n, 8)."""
    data = builder.bitcast(context.make_array(array_type)(context, builder, array).data, _VEC.as_pointer())
    first = builder.gep(data, [row])
    return [builder.gep(first, [ir.Constant(_I32, k)]) for k in range(WIDTH)]


@intrinsic
def transpose(typing_context, x):
    """Eight Lanes as the columns of the matrix that eight Lanes are the rows of."""
    def codegen(context, builder, sig, args):
        x = [builder.extract_value(args[0], k) for k in range(WIDTH)]
        return context.make_tuple(builder, sig.return_type, _exchanged(builder, x, (1, 2, 4)))
    return _EIGHT(_EIGHT), codegen


@intrinsic
def _transposed_rows(typing_context, X, row, column):
    """`transpose` of eight numbers each of rows `row` … `row` + 7 of a batch (N, n), from `column` on."""
    def codegen(context, builder, sig, args):
        return context.make_tuple(builder, sig.return_type, _loaded(builder, _eight_rows(context, builder, sig.args[0], *args)))
    if X.ndim == 2 and X.layout == "C":
        return _EIGHT(X, types.intp, types.intp), codegen


@intrinsic
def _transposed_lanes(typing_context, X, row):
    """`transpose` of Lanes `row` … `row` + 7 of a block (n, 8)."""
    def codegen(context, builder, sig, args):
        return context.make_tuple(builder, sig.return_type, _loaded(builder, _eight_lanes(context, builder, sig.args[0], *args)))
    if X.ndim == 2 and X.layout == "C":
        return _EIGHT(X, types.intp), codegen


@intrinsic
def _set_lanes(typing_context, X, row, x):
    """Eight Lanes into a block (n, 8), from `row` on."""
    def codegen(context, builder, sig, args):
        for k, at in enumerate(_eight_lanes(context, builder, sig.args[0], *args[:2])):
            builder.store(builder.extract_value(args[2], k), at, align=8)
        return context.get_dummy_value()
    if X.ndim == 2 and X.layout == "C":
        return types.void(X, types.intp, _EIGHT), codegen


def _loaded(builder, places):
    """The transpose of eight Lanes in memory. Halves change places while they are loaded: a third of the shuffles less."""
    half, both = ir.VectorType(ir.DoubleType(), WIDTH // 2), _indices(list(range(WIDTH)))

    def part(k, side):
        pointer = builder.gep(builder.bitcast(places[k], half.as_pointer()), [ir.Constant(_I32, side)])
        return builder.load(pointer, align=8)
    x = [builder.shuffle_vector(part(k % 4, k // 4), part(k % 4 + 4, k // 4), both) for k in range(WIDTH)]
    return _exchanged(builder, x, (1, 2))


def _exchanged(builder, x, steps):
    """Blocks of 1, 2, 4 numbers change places between Lanes k and k + step."""
    for step in steps:
        low = [(j & ~step) + (WIDTH if j & step else 0) for j in range(WIDTH)]
        y = list(x)
        for k in range(WIDTH):
            if not k & step:
                y[k] = builder.shuffle_vector(x[k], x[k + step], _indices(low))
                y[k + step] = builder.shuffle_vector(x[k], x[k + step], _indices([j + step for j in low]))
        x = y
    return x


def _indices(values):
    return ir.Constant(ir.VectorType(_I32, WIDTH), values)


@callee
def _pack_lanes(batch, first, block):
    """Rows first … first + 7 of a batch (N, n) into a block (n, 8); rows beyond the end repeat the last one."""
    last, n = batch.shape[0] - 1, batch.shape[1]
    whole = n - n % WIDTH if first + WIDTH - 1 <= last else 0
    for j in range(0, whole, WIDTH):
        _set_lanes(block, j, _transposed_rows(batch, first, j))
    for j in range(whole, n, WIDTH):
        count = min(WIDTH, n - j)
        x = transpose((_row_part(batch, min(first, last), j, count), _row_part(batch, min(first + 1, last), j, count),
                        _row_part(batch, min(first + 2, last), j, count), _row_part(batch, min(first + 3, last), j, count),
                        _row_part(batch, min(first + 4, last), j, count), _row_part(batch, min(first + 5, last), j, count),
                        _row_part(batch, min(first + 6, last), j, count), _row_part(batch, min(first + 7, last), j, count)))
        for k in range(count):
            store(block, j + k, x[k])


@callee
def _unpack_lanes(block, batch, first):
    """A block (n, 8) into rows first … first + 7 of a batch (N, n); lanes beyond the end are dropped."""
    rows, n = min(WIDTH, batch.shape[0] - first), batch.shape[1]
    whole = n - n % WIDTH if rows == WIDTH else 0
    for j in range(0, whole, WIDTH):                             # no masks, no index into the tuple: a third of the time
        set_rows(batch, first, j, _transposed_lanes(block, j))
    for j in range(whole, n, WIDTH):
        count, last = min(WIDTH, n - j), n - 1
        x = transpose((load(block, j), load(block, min(j + 1, last)), load(block, min(j + 2, last)),
                        load(block, min(j + 3, last)), load(block, min(j + 4, last)), load(block, min(j + 5, last)),
                        load(block, min(j + 6, last)), load(block, min(j + 7, last))))
        for k in range(rows):
            set_row_part(batch, first + k, j, count, x[k])


@callee
def _unpack_groups(block, batch, first, filled, past):
    n, rows = block.shape[0], min(WIDTH, batch.shape[0] - first)
    total = number_like(block, 0.0)                              # 0, or NaN in some lane if a number is not finite
    whole = n - n % WIDTH if rows == WIDTH else 0
    past = past and rows_of_lines(batch)
    for j in range(0, whole, WIDTH):
        total = total + give_line(block, j, batch, first, j, filled[j // WIDTH], past)
    for j in range(whole, n):
        total = total + load(block, j) * 0.0
        for k in range(rows):
            batch[first + k, j] = block[j, k]
    if past:
        settle()
    return all_less(absolute(total), 1.0)


@primitive
def give_line(block, j, batch, first, column, filled, past):
    """Numbers j … j + 7 of a block (n, 8) into eight columns of rows first … first + 7 of a batch; zeros if not `filled`. past:
    past the caches, to places that are whole lines of them; after the last, `settle`. Returns zero, or NaN where a number is not
    finite."""
    total = number_like(block, 0.0)
    x = total, total, total, total, total, total, total, total
    if filled:
        x = _transposed_lanes(block, j)
        a = x[3] * 0.0 + (x[2] * 0.0 + (x[1] * 0.0 + x[0] * 0.0))
        total = x[7] * 0.0 + (x[6] * 0.0 + (x[5] * 0.0 + (x[4] * 0.0 + a)))
    if past:
        _stream_rows(batch, first, column, x)
    else:
        set_rows(batch, first, column, x)
    return total


# Numbers that the caches may hold: 1 MB on Zen, 4 MB elsewhere. Lines of larger results are best written past them: through them
# each is read first, and drives out what others need. Where results come from memory, derivatives are so 1.3 to 2 times as fast
# (Granite Rapids, 8 to 32 MB); where a far cache holds them still, from 2 times as fast (UR5) to 15% slower (Talos).
CACHED = 1 << (17 if get_host_cpu_name().startswith("znver") else 19)


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
def unpack_filled(block, batch, first, filled, past): ...


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
def _unpack_filled(block, batch, first, filled, past):
    """`unpack` of a block (n, 8) that is zero but in the groups of eight rows that are `filled`. Returns whether all is
    finite. past: see `give_line`."""
    return lambda block, batch, first, filled, past: _unpack_groups(block, batch, first, filled, past)


@overload(states_in, inline="always")
def _states_in(block):
    """How many states a block holds."""
    n = 1 if block.ndim == 1 else WIDTH
    return lambda block: n
