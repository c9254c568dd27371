"""Blocks of states, (n,) of one or (n, 8) of eight: copies from and to batches (N, n) in memory, and checks of inputs."""
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from liedyn.lie.simd import SIMD_WIDTH, absolute, all_less, lanes, load, number_like
from liedyn.model.description import BALL, ONE_DOF
from liedyn.numba_tools.decorators import inline_kernel, internal_kernel

_VEC = ir.VectorType(ir.DoubleType(), SIMD_WIDTH)
_I32 = ir.IntType(32)
_LANES_TUPLE = types.UniTuple(lanes, SIMD_WIDTH)


# Eight rows of a batch (N, n) from a block (n, 8): 8x8 transposes in registers, for large results -----------------------
@intrinsic
def set_rows(typing_context, array, row, column, x):
    """Store x[k] in column `column` of row `row` + k of a (N, n) array, k = 0 … 7."""
    def codegen(context, builder, sig, args):
        for k, at in enumerate(_row_pointers(context, builder, sig.args[0], *args[:3])):
            builder.store(builder.extract_value(args[3], k), at, align=8)
        return context.get_dummy_value()
    return types.void(array, types.intp, types.intp, types.UniTuple(lanes, SIMD_WIDTH)), codegen


def _row_pointers(context, builder, array_type, array, row, column):
    """Return pointers to column `column` of eight rows.

    The compiler keeps the multiples of a row: with a separate product for each row, half of the instructions that store the
    results of generated code were these.
    """
    array = context.make_array(array_type)(context, builder, array)
    n = builder.extract_value(array.shape, 1)
    first = builder.gep(array.data, [builder.add(builder.mul(row, n), column)])
    places = [builder.gep(first, [builder.mul(n, ir.Constant(n.type, k))]) for k in range(SIMD_WIDTH)]
    return [builder.bitcast(at, _VEC.as_pointer()) for at in places]


@intrinsic
def _load_transposed(typing_context, X, row):
    """Return rows `row` … `row` + 7 of a block (n, 8), transposed."""
    def codegen(context, builder, sig, args):
        first = builder.bitcast(context.make_array(sig.args[0])(context, builder, args[0]).data, _VEC.as_pointer())
        places = [builder.gep(first, [builder.add(args[1], ir.Constant(args[1].type, k))]) for k in range(SIMD_WIDTH)]
        return context.make_tuple(builder, sig.return_type, _transpose(builder, places))
    if X.ndim == 2 and X.layout == "C":
        return _LANES_TUPLE(X, types.intp), codegen
    return None                                                # no such signature


def _transpose(builder, places):
    """Return the transpose of eight SIMD numbers in memory.

    Halves are exchanged while they are loaded, which saves a third of the shuffles; then blocks of 1 and of 2 numbers are
    exchanged between SIMD numbers k and k + step.
    """
    half, both = ir.VectorType(ir.DoubleType(), SIMD_WIDTH // 2), _index_vector(list(range(SIMD_WIDTH)))

    def part(k, side):
        pointer = builder.gep(builder.bitcast(places[k], half.as_pointer()), [ir.Constant(_I32, side)])
        return builder.load(pointer, align=8)
    x = [builder.shuffle_vector(part(k % 4, k // 4), part(k % 4 + 4, k // 4), both) for k in range(SIMD_WIDTH)]
    for step in (1, 2):
        low = [(j & ~step) + (SIMD_WIDTH if j & step else 0) for j in range(SIMD_WIDTH)]
        y = list(x)
        for k in range(SIMD_WIDTH):
            if not k & step:
                y[k] = builder.shuffle_vector(x[k], x[k + step], _index_vector(low))
                y[k + step] = builder.shuffle_vector(x[k], x[k + step], _index_vector([j + step for j in low]))
        x = y
    return x


def _index_vector(values):
    return ir.Constant(ir.VectorType(_I32, SIMD_WIDTH), values)


@internal_kernel
def load_block(batch, first, block):
    """Copy rows of a batch (N, n), from `first` on, to a block. Beyond the end, the last row is repeated."""
    last = batch.shape[0] - 1
    for j in range(batch.shape[1]):
        if block.ndim == 1:
            block[j] = batch[first, j]
        else:
            for k in range(SIMD_WIDTH):
                block[j, k] = batch[min(first + k, last), j]


@internal_kernel
def unpack_block(block, batch, first):
    """Copy a block to rows of a batch (N, n), from `first` on. States beyond the end are dropped."""
    n = batch.shape[1]
    if block.ndim == 1:
        for j in range(n):
            batch[first, j] = block[j]
    else:
        rows = min(SIMD_WIDTH, batch.shape[0] - first)
        whole = n - n % SIMD_WIDTH if rows == SIMD_WIDTH else 0
        for j in range(0, whole, SIMD_WIDTH):
            set_rows(batch, first, j, _load_transposed(block, j))
        for j in range(whole, n):
            for k in range(rows):
                batch[first + k, j] = block[j, k]


@inline_kernel
def states_per_block(block):
    """Return the number of states in a block."""
    return 1 if block.ndim == 1 else SIMD_WIDTH


@inline_kernel
def as_int64(block):
    """Return (the block as int64,), with at least as many entries as the block has numbers.

    The tuple is needed: compiled functions without reference counts cannot return a view alone.
    """
    return (block.reshape(block.size).view(np.int64),)


# Checks of inputs and results, with codes that entry points return: cheaper here than in Python -------------------------

OK, SHAPE, BAD_Q, BAD_V, BAD_A, BAD_TAU, BAD_F_EXT, BAD_QUATERNION, SINGULAR, BAD_RESULT = range(10)
BAD_FOLLOWER_Q, BAD_FOLLOWER_V, BAD_FOLLOWER_A = range(10, 13)     # of a coordinate that moves with others (`kernels.couplings`)
QUATERNION_TOLERANCE = 1e-9                # maximum difference between |quaternion|^2 and 1: double precision, many roundings
SMALLEST_NORMAL = 2.2250738585072014e-308  # x < SMALLEST_NORMAL: x is 0 or less


# Generated code cannot branch on a number: a trace turns `is_below` and the checks of finite numbers into bounds of that code.
@inline_kernel
def is_below(x, bound):
    """Return whether x < bound; for eight states, whether all are; False for NaN."""
    return all_less(x, bound)


@inline_kernel
def all_finite(x):
    """Return whether no number is NaN or infinite."""
    n, total = x.shape[0], number_like(x, 0.0)
    a, b, c, d = total, total, total, total          # four sums: each addition to one sum waits for the one before
    for k in range(0, n - 3, 4):
        a, b = a + load(x, k) * 0.0, b + load(x, k + 1) * 0.0
        c, d = c + load(x, k + 2) * 0.0, d + load(x, k + 3) * 0.0
    for k in range(n - n % 4, n):
        total = total + load(x, k) * 0.0
    return all_less(absolute(total + ((a + b) + (c + d))), 1.0)            # 0, or NaN


@inline_kernel
def all_finite_where(x, mask, selected):
    """Return whether the entries whose mask is `selected` are finite."""
    total = number_like(x, 0.0)
    for k in range(x.shape[0]):
        if mask[k] == selected:
            total = total + load(x, k) * 0.0
    return all_less(absolute(total), 1.0)            # 0, or NaN


@inline_kernel
def check_configuration(tree, q):
    """Return BAD_Q, BAD_QUATERNION or OK."""
    return check_quaternions(tree, q) if all_finite(q) else BAD_Q


@inline_kernel
def check_quaternions(tree, q):
    """Return BAD_QUATERNION or OK."""
    for i in range(1, tree.parent.size):
        if tree.kind[i] != ONE_DOF:
            o = tree.iq[i] if tree.kind[i] == BALL else tree.iq[i] + 3
            x, y, z, w = load(q, o), load(q, o + 1), load(q, o + 2), load(q, o + 3)
            if not is_below(absolute(x * x + y * y + z * z + w * w - 1.0), QUATERNION_TOLERANCE):
                return BAD_QUATERNION
    return OK


@inline_kernel
def check_state(tree, q, v):
    """Return the code of the first invalid input of q and v, or OK."""
    code = check_configuration(tree, q)
    return BAD_V if code == OK and not all_finite(v) else code


@inline_kernel
def check_motion(tree, q, v, a):
    """Return the code of the first invalid input of q, v and a, or OK."""
    code = check_state(tree, q, v)
    return BAD_A if code == OK and not all_finite(a) else code


# Copies of states of a batch, from k on, to blocks Q, V, A.
@inline_kernel
def load_configuration(tree, q, k, Q):
    """Copy configurations to the block Q and return their code."""
    load_block(q, k, Q)
    return check_configuration(tree, Q)


@inline_kernel
def load_state(tree, q, v, k, Q, V):
    """Copy states to the blocks Q and V and return their code."""
    load_block(q, k, Q)
    load_block(v, k, V)
    return check_state(tree, Q, V)


@inline_kernel
def load_motion(tree, q, v, a, k, Q, V, A):
    """Copy states and accelerations to the blocks Q, V and A and return their code."""
    load_block(q, k, Q)
    load_block(v, k, V)
    load_block(a, k, A)
    return check_motion(tree, Q, V, A)


@inline_kernel
def store_block(block, out, k):
    """Copy results to the rows of a batch, from k on; return whether all are finite."""
    unpack_block(block, out, k)
    return all_finite(block)
