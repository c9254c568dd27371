"""Which compiled functions begin their stack on a cache line."""
import numpy as np
import pytest
from numba import njit, types

from liedyn.numba_tools.numba_internals import ALIGNED_STACK

NUMBERS, LINES = types.float64[::1], types.float64[:, ::1]


def on_lines(function, *kinds):
    compiled = njit(kinds, **ALIGNED_STACK)(function)
    (code,) = compiled.inspect_llvm().values()
    return "alignstack=64" in code


@pytest.mark.parametrize("function, kinds", [
    (lambda x: x[0, 0], (LINES,)),
    (lambda x, y: x[0] + y[0, 0], (NUMBERS, LINES)),
    (lambda pair: pair[1][0, 0], (types.Tuple((NUMBERS, LINES)),)),
    (lambda memory, x: memory[0, 0] + x[0], (LINES, NUMBERS)),
])
def test_functions_of_eight_states_are(function, kinds):
    assert on_lines(function, *kinds)


@pytest.mark.parametrize("function, kinds", [
    (lambda x: x[0], (NUMBERS,)),
    (lambda x, y: x[0] + y[0], (NUMBERS, NUMBERS)),
    (lambda pair: pair[0][0], (types.Tuple((NUMBERS, NUMBERS)),)),
    (lambda memory, x: memory[0] + x[0], (NUMBERS, NUMBERS)),
    (lambda machine, x: machine[0] + x[0, 0], (NUMBERS, LINES)),                     # results of one state
])
def test_functions_of_one_state_are_not(function, kinds):
    assert not on_lines(function, *kinds)


def test_they_compute_the_same():
    x = np.arange(24.0).reshape(3, 8)
    assert njit(**ALIGNED_STACK)(lambda x: x[2, 7] - x[0, 1])(x) == 22.0
