from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from integrators.problems import free_motion, torque_free_body
from liedyn.integrators.problem import Options
from liedyn.integrators.run_state import Stages
from liedyn.integrators.runge_kutta import (
    METHODS,
    N_INTERPOLATION_TIMES,
    error_estimates,
    may_cross_twice,
    method_arrays,
    switch_crosses_within,
)
from liedyn.integrators.solve import solve
from liedyn.kernels.simulation.signals import EVENT, KIND, SWITCH_SIGN, SWITCH_SIZE
from liedyn.numba_tools.decorators import kernel


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
    stages are right except for terms of third order of the step: sum a_ij c_j = c_i^2 / 2."""
    m = METHODS[name]()
    stages, nodes = len(m.b), len(m.interior_stages) + 2
    c, times = np.append(m.c[:stages], 1.0), np.arange(1, N_INTERPOLATION_TIMES + 1) / (N_INTERPOLATION_TIMES + 1)
    for power in range(nodes):
        assert m.interpolation_weights @ c**power == pytest.approx(times**power, abs=1e-13)
    assert np.abs(m.interpolation_weights @ c**nodes - times**nodes).max() > 1e-4
    for rows in m.interior_stages:
        assert np.mean(m.A[list(rows)] @ m.c) == pytest.approx(m.c[rows[0]]**2 / 2, abs=1e-14)


@kernel
def run_error_estimates(method, stages):
    error_estimates(method, stages)
    return 0


def stages_with_rates(K):
    empty = np.zeros(K.shape[1])
    return Stages(K, empty.copy(), empty.copy(), empty.copy(), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("name", ["dopri5", "dop853"])
def test_error_estimates_weight_the_rates_of_all_stages(name):
    """dop853 has a second estimate, dopri5 none."""
    tableau = METHODS[name]()
    method, K = method_arrays(tableau, Options(), False), np.random.default_rng(0).standard_normal((len(tableau.b) + 2, 3))
    stages = stages_with_rates(K)
    run_error_estimates(method, stages)
    weights = tableau.error.reshape(-1, len(tableau.b) + 1)
    first, second = (*(weights @ K[:-1]), np.zeros(3))[:2]
    np.testing.assert_allclose(stages.y, first, rtol=0, atol=1e-14)
    np.testing.assert_allclose(stages.output, second, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("values", "may_cross"), [
    (lambda s: 0.0 * s, False),                                # at rest on the switch
    (lambda s: 1.0 + s, False),
    (lambda s: 1.0 - 3.9 * s * (1.0 - s), True),               # 0.025 at its lowest, which a polynomial cannot tell from -0.01
    (lambda s: 1.0 - 1.9 * s * (1.0 - s), False),
    (lambda s: 0.9 - 4.0 * s * (1.0 - s), True)])
def test_an_event_may_cross_twice_where_its_values_dip(values, may_cross):
    tableau = METHODS["dopri5"]()
    method = method_arrays(tableau, Options(), False)
    times = np.append(tableau.c[:len(tableau.b)], 1.0)
    K = np.vstack([values(times)[:, None], np.zeros((1, 1))])
    for sign in (1.0, -1.0):
        assert may_cross_twice(sign, 0, method, stages_with_rates(sign * K)) == may_cross


@pytest.mark.parametrize("sign", [1.0, -1.0, 2.0, -2.0])
@pytest.mark.parametrize("rows, expected", [
    ([0.0, 0.0, 0.0, 0.0, 0.0], False), ([-1e-18] * 5, False), ([3.0] * 5, False),           # a run at rest searched each step
    ([1.0, 0.5, 0.5, 0.0, 0.0], True), ([1.0, 0.5, 0.5, -0.1, -0.1], True), ([0.0, 0.5, 0.5, 1.0, 1.0], True)])
def test_an_event_that_does_not_change_crosses_nothing(sign, rows, expected):
    switch_states = np.zeros(SWITCH_SIZE)
    switch_states[[KIND, SWITCH_SIGN]] = EVENT, sign
    method = method_arrays(METHODS["rk4"](), Options("rk4", 1e-3), False)
    K = np.vstack([np.array(rows)[:, None] * np.sign(sign), np.zeros((1, 1))])
    stages = stages_with_rates(K)._replace(end=np.zeros(0))               # all columns are of switches
    assert switch_crosses_within(switch_states, method, stages) == expected


@pytest.mark.parametrize("method, per_step, per_output", [("dopri5", 6, 0), ("dop853", 12, 3)])
@pytest.mark.parametrize("parts_with_outputs", [0, 3, 8])
def test_evaluations_are_those_of_the_stages(method, per_step, per_output, parts_with_outputs):
    """Hairer, Norsett, Wanner, II.5 and II.6: the last stage is the first of the next step, and dense output of order 7 needs
    three more stages in the steps with outputs, of which the last step is one."""
    body, h = torque_free_body(), 0.125
    problem = free_motion(body, body.neutral(), np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0]))
    times = np.r_[0.0, h * (np.arange(parts_with_outputs) + 0.5), 8.5 * h]
    statistics = solve(problem, times, Options(method, rtol=1.0, atol=1.0, max_step=h))[1]
    assert statistics.rejected == 0 and statistics.steps >= 9
    assert statistics.evaluations == 1 + per_step * statistics.steps + per_output * (parts_with_outputs + 1)
