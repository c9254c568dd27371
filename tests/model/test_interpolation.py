"""Pieces of tables: values and derivatives of SciPy's curves, straight lines beyond the table, periods."""
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, interp1d

from liedyn.model.interpolation import INTERPOLATIONS, MIN_POINTS, cubic_pieces

X, Y = np.array([-1.0, 0.0, 0.5, 2.0, 2.25]), np.array([3.0, -1.0, 0.0, 4.0, 3.0])
CURVES = {"linear": interp1d, "monotone": PchipInterpolator, "cubic": CubicSpline}


def evaluated(starts, coefficients, x):
    k = np.maximum(np.searchsorted(starts[1:], x, side="right"), 0)
    return np.polynomial.polynomial.polyval(x - starts[k], np.moveaxis(coefficients[k], 0, -1), tensor=False)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("lines", [False, True])
def test_values_within_the_table(interpolation, lines):
    x = np.linspace(-0.99, 2.24, 41)
    expected = CURVES[interpolation](X, Y)(x)
    np.testing.assert_allclose(evaluated(*cubic_pieces(X, Y, interpolation, lines=lines), x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_straight_lines_continue_the_table_with_its_slopes(interpolation):
    starts, coefficients = cubic_pieces(X, Y, interpolation)
    assert len(starts) == len(coefficients) == len(X) + 1
    step = 1e-6
    for end, inside in ((X[0], 1.0), (X[-1], -1.0)):
        near = evaluated(starts, coefficients, np.array([end - 2.0, end - 1.0, end, end + 1.0, end + 2.0]))
        line = near[:3] if inside > 0 else near[2:]
        slope = (evaluated(starts, coefficients, np.array([end + inside * step])) - near[2]) / (inside * step)
        np.testing.assert_allclose(np.diff(line), np.repeat(slope, 2), rtol=0, atol=2e-4)          # differences of steps of 1e-6
        assert near[2] == pytest.approx(Y[0] if inside > 0 else Y[-1], abs=1e-15)


@pytest.mark.parametrize("interpolation", ["monotone", "cubic"])
def test_a_period_joins_with_equal_slopes(interpolation):
    y = Y.copy()
    y[-1] = y[0]
    starts, coefficients = cubic_pieces(X, y, interpolation, period=X[-1] - X[0], lines=False)
    h = X[-1] - starts[-1]
    assert coefficients[-1, 1] + 2 * h * coefficients[-1, 2] + 3 * h**2 * coefficients[-1, 3] == pytest.approx(
        coefficients[0, 1], abs=1e-12)


def test_several_columns_are_interpolated_together():
    starts, coefficients = cubic_pieces(X, np.column_stack([Y, 2 * Y]), "cubic")
    np.testing.assert_array_equal(coefficients[..., 1], 2 * coefficients[..., 0])
    np.testing.assert_array_equal(cubic_pieces(X, Y, "cubic")[1], coefficients[..., 0])
    assert len(starts) == len(X) + 1 and all(len(X) >= MIN_POINTS[name] for name in INTERPOLATIONS)
