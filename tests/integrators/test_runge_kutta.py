from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from liedyn.integrators.runge_kutta import METHODS, N_INTERPOLATION_TIMES


@pytest.mark.parametrize("name", METHODS)
def test_order_conditions_hold(name):
    """Quadrature conditions sum b c^k = 1/(k+1) up to the order, and those of Butcher's trees up to order 4."""
    m = METHODS[name]()
    stages = len(m.b)
    m = SimpleNamespace(order=m.order, A=m.A[:stages, :stages], b=m.b, c=m.c[:stages])
    for k in range(m.order):
        assert m.b @ m.c**k == pytest.approx(1 / (k + 1), abs=1e-14)
    assert m.b @ m.A @ m.c == pytest.approx(1 / 6, abs=1e-14)
    assert m.b @ (m.c * (m.A @ m.c)) == pytest.approx(1 / 8, abs=1e-14)
    assert m.b @ m.A @ m.c**2 == pytest.approx(1 / 12, abs=1e-14)
    assert m.b @ m.A @ m.A @ m.c == pytest.approx(1 / 24, abs=1e-14)


@pytest.mark.parametrize("change, text", [
    (lambda m: {"c": m.c + 0.1}, "rows of A"),
    (lambda m: {"b": m.b * 1.1}, "b do not sum"),
    (lambda m: {"A": m.A.T}, "strictly lower triangular"),
    (lambda m: {"error": m.error + 0.1}, "error weights"),
    (lambda m: {"dense": m.dense * 0.9}, "dense output"),
])
def test_a_wrong_tableau_is_refused(change, text):
    method = METHODS["dopri5"]()
    with pytest.raises(ValueError, match=text):
        replace(method, **change(method))


def test_adaptive_means_an_error_estimate():
    assert METHODS["dopri5"]().adaptive and not METHODS["rk4"]().adaptive
    assert np.allclose(METHODS["rk4"]().b.sum(), 1)


@pytest.mark.parametrize("name", METHODS)
def test_readings_between_stages_are_those_of_a_polynomial(name):
    """Exact where readings at the stages are those of a polynomial through as many points as there are; and states at these
    stages are right but for terms of third order of the step: sum a_ij c_j = c_i^2 / 2."""
    m = METHODS[name]()
    stages, nodes = len(m.b), len(m.interior_stages) + 2
    c, times = np.append(m.c[:stages], 1.0), np.arange(1, N_INTERPOLATION_TIMES + 1) / (N_INTERPOLATION_TIMES + 1)
    for power in range(nodes):
        assert m.interpolation_weights @ c**power == pytest.approx(times**power, abs=1e-13)
    assert np.abs(m.interpolation_weights @ c**nodes - times**nodes).max() > 1e-4
    for rows in m.interior_stages:
        assert np.mean(m.A[list(rows)] @ m.c) == pytest.approx(m.c[rows[0]]**2 / 2, abs=1e-14)
