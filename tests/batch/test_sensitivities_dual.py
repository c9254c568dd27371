"""Numbers with rates: each function against complex steps, in closed form where it is not smooth in the complex plane."""
import numpy as np
import pytest

from liedyn.batch.output_expressions import BINARY_FUNCTIONS, OPERATORS, UNARY_FUNCTIONS
from liedyn.batch.sensitivities import Dual, NotDifferentiableError

X = np.array([[0.3, 0.7, 0.2], [0.9, 0.1, 0.6]])
DX = np.array([X**2, np.cos(X)])                           # two directions
JAGGED = {"abs": lambda x: np.sign(x), "sign": lambda x: 0.0 * x, "floor": lambda x: 0.0 * x}


@pytest.mark.parametrize("name", UNARY_FUNCTIONS)
def test_functions_of_one_number(name):
    if name == "step":
        assert np.array_equal(UNARY_FUNCTIONS[name](Dual(X - 0.5, DX)), X >= 0.5)
        return
    found = UNARY_FUNCTIONS[name](Dual(X, DX))
    slope = JAGGED[name](X) if name in JAGGED else np.imag(UNARY_FUNCTIONS[name](X + 1e-30j)) / 1e-30
    # NumPy's complex functions round to some 1e-15 of their imaginary part
    assert np.array_equal(found.x, UNARY_FUNCTIONS[name](X)) and np.allclose(found.dx, slope * DX, rtol=1e-13, atol=0.0)


OF_TWO = BINARY_FUNCTIONS | {ufunc.__name__: ufunc for ufunc in OPERATORS.values()}


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers(name):
    y = X[::-1] + 0.05
    dy, h = 2 * DX[::-1], 1e-3
    found = OF_TWO[name](Dual(X, DX), Dual(y, dy))
    want = sum(w * (OF_TWO[name](X + k * h * DX, y + k * h * dy) - OF_TWO[name](X - k * h * DX, y - k * h * dy))
               for k, w in ((1, 0.8), (2, -0.2), (3, 4 / 105), (4, -1 / 280))) / h
    assert np.allclose(found.dx, want, rtol=1e-9, atol=1e-11)          # differences of eighth order, and 1e-16 / h of rounding
    of_number = OF_TWO[name](Dual(X, DX), 0.4)
    assert np.allclose(of_number.dx, OF_TWO[name](Dual(X, DX), Dual(0.4 + 0 * X, 0 * DX)).dx, rtol=1e-15)


def test_rows_are_picked_and_summed():
    one = Dual(X, DX)
    assert np.array_equal(one.max(axis=1).dx, DX[:, [0, 1], [1, 0]]) and np.array_equal(one.min(axis=1).x, [0.2, 0.1])
    assert np.array_equal(one.sum(axis=1).dx, DX.sum(axis=2)) and np.array_equal(one[:, -1].dx, DX[:, :, -1])
    assert np.array_equal(one[..., None].dx, DX[..., None])


def test_a_constant_at_a_point_without_slope_has_no_rate():
    assert np.array_equal(np.sqrt(Dual([0.0, 1.0], [[0.0, 2.0]])).dx, [[0.0, 1.0]])
    assert np.array_equal(np.power(Dual([-2.0], [[1.0]]), 2.0).dx, [[-4.0]])


def test_what_has_no_rule_is_refused():
    with pytest.raises(NotDifferentiableError, match="cbrt"):
        np.cbrt(Dual(X, DX))
    with pytest.raises(NotDifferentiableError, match="of a time that varies"):
        np.asarray(Dual(1.0, [1.0]))
