"""Matrices in blocks (see `blocks`): of eight states a number is a Lanes, of one state columns go side by side in Lanes."""
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from liedyn.lie.lanes import WIDTH, load, store


# one number of a Lanes: without Python's rule for negative indices, as `load` and `store`
@intrinsic
def _load_lane(typing_context, X, row, k):
    def codegen(context, builder, sig, args):
        return builder.load(_lane_pointer(context, builder, sig.args[0], *args))
    if X.ndim == 2 and X.layout == "C":
        return types.float64(X, types.intp, types.intp), codegen


@intrinsic
def _store_lane(typing_context, X, row, k, value):
    def codegen(context, builder, sig, args):
        builder.store(args[3], _lane_pointer(context, builder, sig.args[0], *args[:3]))
        return context.get_dummy_value()
    if X.ndim == 2 and X.layout == "C":
        return types.void(X, types.intp, types.intp, types.float64), codegen


def _lane_pointer(context, builder, array_type, array, row, k):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [builder.add(builder.mul(row, ir.Constant(row.type, WIDTH)), k)])


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
        return lambda X, n, c, r, value: _store_lane(X, (c >> 3) * n + r, c & 7, value)
    return lambda X, n, c, r, value: store(X, c * n + r, value)


@overload(get_cell, inline="always")
def _get_cell(X, n, c, r, number):
    """What `put_cell` put there; `number` gives the kind."""
    if isinstance(number, types.Float) and X.ndim == 2:
        return lambda X, n, c, r, number: _load_lane(X, (c >> 3) * n + r, c & 7)
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
