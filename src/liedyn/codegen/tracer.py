"""Numbers that list operations: kernels run over them in plain Python, which gives the trace of a function for one robot.

Loops over bodies are unrolled, and indices and branches on the robot disappear; the result is a list of operations. Equal
operations are listed once. Operations on constants are computed, and x + 0, x * 1 and x * 0 need no operation: inputs are checked
to be finite, so that 0 * x is 0.
"""
from __future__ import annotations

import math

import numpy as np

from liedyn.lie.simd import TWO_OVER_PI, reduced_sincos, reduced_sincos_single

# Entries of a placement that are so near to 0, 1 or -1 are taken as these values. This changes a rotation by less than the
# rounding of the numbers that it was made from.
_ROUNDING = 1e-15
# x + _MAGIC has the whole number nearest to x in its last bits, of float64 and of float32
_MAGIC, _SINGLE_MAGIC = 1.5 * 2.0**52, 1.5 * 2.0**23
Operand = int | float           # the index of an operation of the trace, or a constant


class NotTraceableError(Exception):
    """A kernel branches on the value of a number, or calls a function that generated code does not have."""


class Operations:
    """Operations (name, operands …) in the order of their first use.

    single               whether numbers have single precision
    libm                 whether sine and cosine are operations, of a C library; otherwise they consist of other operations
    angles               of sines and cosines
    sincos_pairs         indices of sines and cosines: the angle of each, and its derivative with respect to that
    bounds               (x, bound): kernels check that x < bound
    finite               numbers that kernels check to be finite
    solved_unknowns      indices of numbers that solve equations, and their `SolvedUnknowns`; None if no derivatives are needed
    known_accelerations  (nv,) accelerations that are read instead of being solved for; None
    """

    def __init__(self, libm: bool = False, single: bool = False) -> None:
        self.libm, self.single = libm, single
        self.operations: list[tuple] = []
        self._indices: dict[tuple, int] = {}
        self.angles: list[Tracer] = []
        self.sincos_pairs: dict[int, tuple[Tracer, Tracer]] = {}
        self.bounds: list[tuple[Tracer, float]] = []
        self.finite: dict[int, Tracer] = {}
        self.solved_unknowns: dict[int, SolvedUnknowns] | None = None
        self.known_accelerations: np.ndarray | None = None

    def emit(self, *operation) -> Tracer:
        """Return the operation as a number; an equal operation is not listed again."""
        key = operation, tuple(map(type, operation))        # 5.0 is a number, 5 an operation; for a dictionary they are equal
        k = self._indices.get(key)
        if k is None:
            k = self._indices[key] = len(self.operations)
            self.operations.append(operation)
        return Tracer(self, k)

    def copy(self, x) -> Tracer:
        """Return the number x as an operation that is not shared with any other."""
        self.operations.append(("fadd", operand(x), -0.0))
        return Tracer(self, len(self.operations) - 1)

    def inputs(self, name: str, count: int) -> np.ndarray:
        """Return (count,) numbers that generated code reads from the array `name`."""
        return object_array([self.emit("input", name, i) for i in range(count)])

    def live_operations(self, results) -> list[int]:
        """Return the operations on which the results depend, in order."""
        live: set[int] = set()
        pending = [x.k for x in results if isinstance(x, Tracer)]
        while pending:
            k = pending.pop()
            if k not in live:
                live.add(k)
                pending += self.operand_indices(k)
        return sorted(live)

    def operand_indices(self, k: int) -> list[int]:
        """Return the operations that are operands of operation k."""
        name, *operands = self.operations[k]
        return [] if name == "input" else [x for x in operands if isinstance(x, int)]


class SolvedUnknowns:
    """Numbers of a trace that solve equations. Their derivatives come from the equations, not from the operations of the
    solution.

    places        indices of these numbers
    back(shares)  from derivatives of a cost with respect to each of them: pairs of a number in the equations and its derivative
    """

    def __init__(self, unknowns, back):
        self.places, self.back = [x.k for x in unknowns], back


class Tracer:
    """Operation k of a trace, as a number."""

    __slots__ = ("k", "ops")

    def __init__(self, ops: Operations, k: int):
        self.ops, self.k = ops, k

    def __add__(self, y): return _add(self, y)
    def __radd__(self, x): return _add(x, self)
    def __sub__(self, y): return _sub(self, y)
    def __rsub__(self, x): return _sub(x, self)
    def __mul__(self, y): return _mul(self, y)
    def __rmul__(self, x): return _mul(x, self)
    def __truediv__(self, y): return _div(self, y)
    def __rtruediv__(self, x): return _div(x, self)
    def __neg__(self): return _neg(self)
    def __pow__(self, y): return _pow(self, y)
    def __rpow__(self, x): return _pow(x, self)
    def __bool__(self): raise NotTraceableError

    def _compare(self, _other): raise NotTraceableError
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = _compare
    __hash__ = None     # type: ignore[assignment]  # Python's way to exclude hashes

    @property
    def is_negation(self) -> bool:
        """Whether the operation is a change of sign."""
        return self.ops.operations[self.k][0] == "fneg"


def operand(x) -> Operand:
    """Return the index of an operation, or a constant as float."""
    return x.k if isinstance(x, Tracer) else float(x)


def object_array(values) -> np.ndarray:
    """Return an (n,) array of numbers of any kind."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def zeros(count: int) -> np.ndarray:
    """Return a (count,) array of zeros to which numbers of any kind can be written."""
    return object_array([0.0] * count)


# arithmetic ---------------------------------------------------------------------------------------------------------
def _neg(x):
    if not isinstance(x, Tracer):
        return -x
    return Tracer(x.ops, x.ops.operations[x.k][1]) if x.is_negation else x.ops.emit("fneg", x.k)


def _add(x, y):
    if not isinstance(x, Tracer):
        x, y = y, x
    if not isinstance(y, Tracer):
        return x if y == 0.0 else x.ops.emit("fadd", x.k, float(y))
    if y.is_negation:
        return _sub(x, _neg(y))
    if x.is_negation:
        return _sub(y, _neg(x))
    return x.ops.emit("fadd", *sorted((x.k, y.k)))


def _sub(x, y):
    if isinstance(y, Tracer) and y.is_negation:
        return _add(x, _neg(y))
    if not isinstance(y, Tracer):
        return x if y == 0.0 else x.ops.emit("fsub", x.k, float(y))
    if not isinstance(x, Tracer):
        return _neg(y) if x == 0.0 else y.ops.emit("fsub", float(x), y.k)
    return 0.0 if x.k == y.k else x.ops.emit("fsub", x.k, y.k)


def _mul(x, y):
    if not isinstance(x, Tracer):
        x, y = y, x
    if not isinstance(y, Tracer):
        y = float(y)
        return 0.0 if y == 0.0 else x if y == 1.0 else _neg(x) if y == -1.0 else x.ops.emit("fmul", x.k, y)
    if x.is_negation or y.is_negation:
        product = _mul(_neg(x) if x.is_negation else x, _neg(y) if y.is_negation else y)
        return product if x.is_negation and y.is_negation else _neg(product)
    return x.ops.emit("fmul", *sorted((x.k, y.k)))


def _div(x, y):
    if not isinstance(y, Tracer):
        return _mul(x, 1.0 / y)
    if not isinstance(x, Tracer) and x == 0.0:
        return 0.0
    return y.ops.emit("fdiv", operand(x), y.k)


def _pow(x, y):
    if not isinstance(y, Tracer) and y in (0.0, 1.0, 2.0):
        return 1.0 if y == 0.0 else x if y == 1.0 else x * x
    ops = x.ops if isinstance(x, Tracer) else y.ops
    return ops.emit("pow", operand(x), operand(y))


def _round_to_integer(x: float) -> float:
    x = float(x)
    return float(round(x)) if abs(x) < 2.0 and abs(x - round(x)) < _ROUNDING else x


# functions of `lie.simd` --------------------------------------------------------------------------------------------
def load(array, k):
    """Return number k of an array."""
    x = array[k]
    return x if isinstance(x, Tracer) else float(x)


def load_pose(array, i):
    """Load a pose as `lie.vectors.load_pose` does.

    Small numbers are rounding errors only in poses; an inertia or a gain may be small.
    """
    x = [y if isinstance(y, Tracer) else _round_to_integer(y) for y in array[12 * i:12 * i + 12]]
    return tuple(x[:9]), tuple(x[9:])


def store(array, k, value) -> None:
    """Write number k of an array."""
    array[k] = value


def number_like(_array, x):
    """Return the constant x: it needs no other type for the numbers of an array."""
    return x


def where_less(x, y, yes, no):
    """Return yes where x < y, else no (also where x or y is NaN)."""
    ops = next((z.ops for z in (x, y, yes, no) if isinstance(z, Tracer)), None)
    if ops is None or not (isinstance(x, Tracer) or isinstance(y, Tracer)):
        return yes if x < y else no
    return ops.emit("less", operand(x), operand(y), operand(yes), operand(no))


def load_entry(values, first, k, count, stride):
    """Replace `kernels.simulation.signals.load_entry`: select the number without an index that depends on the state."""
    entries = [load(values, first + stride * i) for i in range(count)]
    selected = entries[0]
    for i in range(1, count):
        if isinstance(selected, Tracer) or entries[i] != selected:
            selected = where_less(k, float(i), selected, entries[i])
    return selected


def load_patch_entry(values, first, i, rows, j, columns):
    """Replace `kernels.simulation.signals.load_patch_entry`."""
    entries = [load_entry(values, first + 16 * column, i, rows, 16 * columns) for column in range(columns)]
    return load_entry(entries, 0, j, columns, 1)


def piece_number(breaks, first, count, x):
    """Replace `kernels.simulation.signals.piece_number`."""
    k = 0.0
    for i in range(1, count):
        k = where_less(x, load(breaks, first + i), k, float(i))
    return k


def maximum(x, y):
    """Return the maximum of two numbers; x if one of them is NaN."""
    return where_less(x, y, y, x)


def absolute(x):
    """Return the absolute value."""
    return x.ops.emit("fabs", x.k) if isinstance(x, Tracer) else abs(x)


def sqrt(x):
    """Return the square root."""
    return x.ops.emit("sqrt", x.k) if isinstance(x, Tracer) else math.sqrt(x)


def all_less(x, bound) -> bool:
    """Return whether x < bound whatever the inputs are: kernels omit terms that are zero then."""
    return not isinstance(x, Tracer) and x < bound


def not_traceable(*_arguments):
    """Replace a function that a trace cannot contain: raise NotTraceableError."""
    raise NotTraceableError


# checks of kernels: bounds of the trace -----------------------------------------------------------------------------------
def is_below(x, bound) -> bool:
    """Return whether x < bound. For a number of the trace, assume it and add a check to `bounds`."""
    if not isinstance(x, Tracer):
        return x < bound
    x.ops.bounds.append((x, bound))
    return True


def all_finite(x) -> bool:
    """Return whether all numbers are finite. For those of the trace, assume it and add a check to `finite`."""
    return all(map(_finite, x))


def all_finite_where(x, mask, selected) -> bool:
    """Return `all_finite` of the numbers whose entry in `mask` equals `selected`."""
    return all(_finite(y) for y, flag in zip(x, mask, strict=True) if flag == selected)


def _finite(x) -> bool:
    if not isinstance(x, Tracer):
        return math.isfinite(x)
    x.ops.finite[x.k] = x
    return True


def sincos(x):
    """Return sine and cosine. The number of quarter turns is read from the last bits of a sum, equally on every processor."""
    if not isinstance(x, Tracer):
        return math.sin(x), math.cos(x)
    if x.ops.libm:
        return x.ops.emit("sin", x.k), x.ops.emit("cos", x.k)
    x.ops.angles.append(x)
    magic, reduced = (_SINGLE_MAGIC, reduced_sincos_single) if x.ops.single else (_MAGIC, reduced_sincos)
    turns = x * TWO_OVER_PI + magic
    s, c = reduced(x, turns - magic)
    sine, cosine = (x.ops.emit(name, turns.k, s.k, c.k) for name in ("quadrant_sine", "quadrant_cosine"))
    x.ops.sincos_pairs |= {sine.k: (x, cosine), cosine.k: (x, -sine)}
    return sine, cosine
