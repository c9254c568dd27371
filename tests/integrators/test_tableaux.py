from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from liedyn.integrators.tableaux import METHODS


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
