"""The operations of a trace: what each one computes, its derivative and its cost. All targets and derivatives use this table."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from liedyn.codegen.tracer import Tracer, operand, sqrt, where_less


class Operation(NamedTuple):
    """What a target and a derivative need to know about an operation.

    meaning     its result for float64 numbers
    derivative  (cotangent of the result y, y, operands …) -> cotangents of the operands; None: see `Operations.sincos_pairs`,
                or the operation has no derivative
    cost        approximate time in a batch, relative to that of an addition: measured with AVX-512 (Zen 5), where functions of
                the C library are called state by state
    arity       number of arguments of a function of the C library, of the same name; 0: no such function
    """

    meaning: Callable
    derivative: Callable | None
    cost: float
    arity: int = 0


def _quotient_derivative(g, y, _a, b):
    cotangent = g / b
    return cotangent, -cotangent * y


def _quadrant(turns, even, odd, shift: int):
    """Return sin(r + (n + shift) pi/2), n in the last bits of `turns`. Odd n select `odd`; n of 2 and 3 change the sign."""
    turns = np.asarray(turns)
    n = turns.view(np.int32 if turns.dtype == np.float32 else np.int64)
    x = np.where(n & 1, odd, even)
    return np.where((n + shift) & 2, -x, x)


OPERATIONS = {
    "fadd": Operation(np.add, lambda g, y, a, b: (g, g), 1),
    "fsub": Operation(np.subtract, lambda g, y, a, b: (g, -g), 1),
    "fmul": Operation(np.multiply, lambda g, y, a, b: (g * b, g * a), 1),
    "fdiv": Operation(np.divide, _quotient_derivative, 9),
    "quotient": Operation(np.divide, _quotient_derivative, 9),         # rounded according to IEEE 754
    "fneg": Operation(np.negative, lambda g, y, a: (-g,), 1),
    "fabs": Operation(np.abs, lambda g, y, a: (where_less(a, 0.0, -g, g),), 1),
    "sqrt": Operation(np.sqrt, lambda g, y, a: (g * 0.5 / y,), 17),
    "less": Operation(lambda a, b, yes, no: np.where(np.less(a, b), yes, no),
                      lambda g, y, a, b, yes, no: (0.0, 0.0, where_less(a, b, g, 0.0), where_less(a, b, 0.0, g)), 2),
    "quadrant_sine": Operation(lambda turns, s, c: _quadrant(turns, s, c, 0), None, 2),
    "quadrant_cosine": Operation(lambda turns, s, c: _quadrant(turns, c, s, 1), None, 2),
    "sin": Operation(np.sin, lambda g, y, a: (g * c_math.cos(a),), 500, 1),
    "cos": Operation(np.cos, lambda g, y, a: (-g * c_math.sin(a),), 500, 1),
    "tan": Operation(np.tan, lambda g, y, a: (g * (1.0 + y * y),), 500, 1),
    "asin": Operation(np.arcsin, lambda g, y, a: (g / sqrt(1.0 - a * a),), 500, 1),
    "acos": Operation(np.arccos, lambda g, y, a: (-g / sqrt(1.0 - a * a),), 500, 1),
    "atan": Operation(np.arctan, lambda g, y, a: (g / (1.0 + a * a),), 500, 1),
    "sinh": Operation(np.sinh, lambda g, y, a: (g * c_math.cosh(a),), 500, 1),
    "cosh": Operation(np.cosh, lambda g, y, a: (g * c_math.sinh(a),), 500, 1),
    "tanh": Operation(np.tanh, lambda g, y, a: (g * (1.0 - y * y),), 500, 1),
    "exp": Operation(np.exp, lambda g, y, a: (g * y,), 500, 1),
    "log": Operation(np.log, lambda g, y, a: (g / a,), 500, 1),
    "expm1": Operation(np.expm1, lambda g, y, a: (g * (1.0 + y),), 500, 1),
    "log1p": Operation(np.log1p, lambda g, y, a: (g / (1.0 + a),), 500, 1),
    "floor": Operation(np.floor, lambda g, y, a: (0.0,), 100, 1),
    "atan2": Operation(np.arctan2, lambda g, y, a, b: (g * b / (a * a + b * b), -g * a / (a * a + b * b)), 500, 2),
    "pow": Operation(np.power, None, 500, 2),
}
LIBM = [name for name, operation in OPERATIONS.items() if operation.arity]


# Functions over tracers, and over floats: NaN or infinity instead of exceptions.
def traced_function(name: str):
    """Return the operation as a function of tracers and floats."""
    of_floats = OPERATIONS[name].meaning

    def apply(*x):
        ops = next((y.ops for y in x if isinstance(y, Tracer)), None)
        return of_floats(*x) if ops is None else ops.emit(name, *map(operand, x))
    return apply


def quotient(x, y):
    """Return x / y, rounded according to IEEE 754."""
    is_zero = isinstance(y, Tracer) and not isinstance(x, Tracer) and x == 0.0
    return 0.0 if is_zero else _quotient(x, y)


_quotient = traced_function("quotient")
# replaces `math`
c_math: types.SimpleNamespace = types.SimpleNamespace(**{name: traced_function(name) for name in (*LIBM, "sqrt")}, nan=np.nan)
