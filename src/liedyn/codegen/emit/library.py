"""Functions of the C library over numbers that record, and over floats as NumPy has them: no exception, but NaN or infinity."""
from __future__ import annotations

import types

import numpy as np

from liedyn.lie.recorded import Recorded, operand

# by the names that C and Python's `math` share, with the number of arguments
_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power", "quotient": "divide"}
ARGUMENTS = {"sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "sinh": 1, "cosh": 1, "tanh": 1, "exp": 1, "log": 1,
             "floor": 1, "atan2": 2, "pow": 2}


def function(name: str):
    of_floats = getattr(np, _NUMPY.get(name, name))

    def apply(*x):
        tape = next((y.tape for y in x if isinstance(y, Recorded)), None)
        return of_floats(*x) if tape is None else tape.record(name, *map(operand, x))
    return apply


def quotient(x, y):
    is_zero = isinstance(y, Recorded) and not isinstance(x, Recorded) and x == 0.0
    return 0.0 if is_zero else _quotient(x, y)


_quotient = function("quotient")
# in the place of `math`
math = types.SimpleNamespace(**{name: function(name) for name in (*ARGUMENTS, "sqrt")}, nan=np.nan)
