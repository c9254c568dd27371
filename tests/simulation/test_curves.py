"""Curves over time against SciPy's, and their values on a clock that events start."""
import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicSpline, make_interp_spline

from liedyn.errors import Place, ScenarioError
from liedyn.simulation.signals.curves import Curve, interpolant, make_finite_curve, quintic, spline

RNG = np.random.default_rng(0)
T = np.array([0.5, 0.8, 2.0, 2.1, 3.0])
INSIDE = np.linspace(T[0] + 1e-3, T[-1] - 1e-3, 41)


def values(curve: Curve, times, order=0):
    """Return the derivatives of this order at some times."""
    out = []
    for t in times:
        k = max(0, int(np.searchsorted(curve.breaks, t, "right")) - 1)
        out.append(np.polynomial.Polynomial(curve.coefficients[k]).deriv(order)(t - curve.breaks[k]) if order else
                   np.polynomial.Polynomial(curve.coefficients[k])(t - curve.breaks[k]))
    return np.array(out)


def test_quintics_have_the_values_and_derivatives_of_their_waypoints():
    waypoints = RNG.standard_normal((len(T), 3))
    curve, exact = quintic(np.column_stack([T, waypoints])), BPoly.from_derivatives(T, waypoints)
    for order in range(3):
        np.testing.assert_allclose(values(curve, INSIDE, order), exact(INSIDE, order), rtol=1e-9, atol=1e-9)
    assert values(curve, [-5.0, 9.0]) == pytest.approx(waypoints[[0, -1], 0])
    assert not values(curve, [-5.0, 9.0], 1).any()


def test_splines_are_clamped_cubic_splines():
    x = RNG.standard_normal(len(T))
    curve, exact = spline(np.column_stack([T, x])), CubicSpline(T, x, bc_type="clamped")
    for order in range(3):
        np.testing.assert_allclose(values(curve, INSIDE, order), exact(INSIDE, order), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("interpolation, degree", [("linear", 1), ("cubic", 3), ("quintic", 5)])
def test_interpolants_of_samples_are_those_of_scipy(interpolation, degree):
    t = np.sort(RNG.uniform(0.0, 2.0, 9))
    x = RNG.standard_normal(9)
    curve = interpolant(t, x, interpolation)
    exact = make_interp_spline(t, x, k=degree)
    times = np.linspace(t[0], t[-1], 50)
    np.testing.assert_allclose(values(curve, times), exact(times), rtol=1e-8, atol=1e-8)
    assert curve.end_rate(t[-1]) == pytest.approx(exact(t[-1], 1), rel=1e-7)


def test_a_curve_on_a_clock_begins_at_the_origin_of_the_clock():
    curve = Curve(np.array([0.0, 1.0]), RNG.standard_normal((2, 6)), np.array([0.0, 1.0]), clock=1)
    moved = curve.with_clock_origin(np.array([9.0, 2.5]))
    np.testing.assert_allclose(values(moved, 2.5 + INSIDE), values(curve, INSIDE))
    assert np.array_equal(moved.knots, [2.5, 3.5])
    waiting = curve.with_clock_origin(np.array([9.0, -np.inf]))
    assert len(waiting.breaks) == 1 and not waiting.knots.size
    run_time = Curve(curve.breaks, curve.coefficients, curve.knots)
    assert run_time.with_clock_origin(np.array([9.0])) is run_time


@pytest.mark.parametrize("points", [[[0.0, 0.0], [1e-300, 1e300]], [[0.0, 0.0], [0.0, 1.0]]])
def test_curves_that_overflow_are_errors(points):
    with pytest.raises(ScenarioError, match="the curve is not finite"):
        make_finite_curve(Place(), spline, points)
