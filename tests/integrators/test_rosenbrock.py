"""Linearly implicit steps: the tableau's conditions, order on the manifold and under laws of time, stiff accuracy."""
import numpy as np
import pytest

import liedyn as ld
from integrators.problems import floating_robot, free_motion, torque_free_body, turning_state
from liedyn.errors import ComputationError
from liedyn.integrators import rosenbrock
from liedyn.integrators.problem import Options
from liedyn.integrators.rhs_jacobian import RightHandSideJacobian
from liedyn.integrators.rosenbrock import METHODS, invert
from liedyn.integrators.segment import RightHandSide
from liedyn.integrators.solve import solve
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE, SINGULAR
from liedyn.numba_tools.decorators import kernel
from liedyn.simulation.run import run_scenario

EXACT = Options("dop853", rtol=1e-13, atol=1e-14)
PENDULUM = """
links: {a: {mass: 1.0, com: [0, 0, -0.5], inertia: [0.01, 0.01, 0.01]}}
joints: {j: {type: revolute, parent: world, child: a, axis: [0, 1, 0], %s}}
"""
INERTIA = 0.01 + 0.25


@pytest.fixture(params=["auto", "generic"])
def code(request, monkeypatch):
    """Use generated code, then generic kernels."""
    monkeypatch.setenv("LIEDYN_CODE", request.param)


def fixed_steps(h: float, method="rodas5p") -> Options:
    return Options(method, rtol=1.0, atol=1.0, max_step=h)


@kernel
def inverted(M, order):
    return 1 if invert(M, order) else 0


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_a_matrix_is_inverted_with_row_pivoting(n):
    """Also with zeros on the diagonal, where each pivot is in another row."""
    rng = np.random.default_rng(n)
    for M in (rng.standard_normal((n, n)), np.roll(np.eye(n), 1, axis=0) + 1e-3 * rng.standard_normal((n, n))):
        inverse = M.copy()
        assert inverted(inverse, np.zeros(n, dtype=np.int64))
        np.testing.assert_allclose(inverse @ M, np.eye(n), rtol=0, atol=1e-12 * np.linalg.cond(M))


@pytest.mark.parametrize("M", [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan), np.diag([1.0, np.inf])])
def test_a_matrix_without_a_pivot_is_not_inverted(M):
    assert not inverted(M.copy(), np.zeros(2, dtype=np.int64))


@pytest.mark.parametrize("name", METHODS)
def test_conditions_of_the_tableau(name):
    """In the form y1 = y + h sum b k: row sums, order conditions of quadrature and up to order 3 (Hairer, Wanner, II, IV.7),
    R = 0 at infinity: 1 - b beta^-1 1 (L-stable), and the last stage is the step (stiffly accurate)."""
    m = METHODS[name]()
    one, gamma = np.ones(len(m.b)), np.linalg.inv(np.eye(len(m.b)) / m.gamma - m.C)
    alpha, b = m.A @ gamma, m.b @ gamma
    beta = alpha + gamma
    near = {"rel": 0, "abs": 1e-11}
    assert np.allclose(alpha @ one, m.c, rtol=0, atol=1e-11) and np.allclose(gamma @ one, m.d, rtol=0, atol=1e-11)
    for k in range(m.order):
        assert b @ m.c**k == pytest.approx(1 / (k + 1), **near)
    assert b @ beta @ one == pytest.approx(1 / 2, **near) and b @ beta @ beta @ one == pytest.approx(1 / 6, **near)
    assert m.error @ gamma @ one == pytest.approx(0, **near) and m.error @ gamma @ beta @ one == pytest.approx(0, **near)
    assert b @ np.linalg.solve(beta, one) == pytest.approx(1, **near)
    assert np.allclose(beta[-1], b, rtol=0, atol=1e-11)


def test_order_five_on_a_floating_robot(code):
    """On SE(3) and SO(3), with dense output whose local error is of the fifth power of the step."""
    robot = floating_robot()
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 42)
    reference = solve(problem, times, EXACT)[0]
    steps = 1 / np.array([16, 32, 64])
    records = [solve(problem, times, fixed_steps(h))[0] for h in steps]
    at_end, inside = np.array([(np.abs(r.v - reference.v)[-1].max(), np.abs(r.v - reference.v).max()) for r in records]).T
    assert np.all(np.abs(np.log2(at_end[:-1] / at_end[1:]) - 5) < 0.4), at_end
    assert np.log2(inside[0] / inside[-1]) / 2 > 4.5, inside
    assert np.abs(ld.difference(robot, reference.q[-1], records[-1].q[-1])).max() < 1e-6
    assert np.abs(np.linalg.norm(records[-1].q[:, 3:7], axis=1) - 1).max() < 1e-14


def test_order_five_under_a_law_of_time_and_state(scenario, code):
    """df/dt is not zero, and the derivative of the law with respect to the state is part of the Jacobian."""
    given = scenario(PENDULUM % "damping: 2.0", joints={"j": {"torque": "3*sin(5*t) - 4*v(j)*cos(t)"}})
    exact = run_scenario(given, {"integrator": {"method": "dop853", "rtol": 1e-13, "atol": 1e-14}})
    errors = [np.abs(run_scenario(given, {"integrator": {"method": "rodas5p", "rtol": 0.1, "atol": 10, "max_step": h}}).v[-1]
                     - exact.v[-1]).max() for h in (1 / 16, 1 / 32, 1 / 64)]
    assert np.all(np.abs(np.log2(np.array(errors[:-1]) / errors[1:]) - 5) < 0.5), errors


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_error_follows_the_tolerance(rtol):
    robot = floating_robot()
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 11)
    reference = solve(problem, times, EXACT)[0]
    record = solve(problem, times, Options("rodas5p", rtol=rtol, atol=rtol))[0]
    assert np.abs(record.v - reference.v).max() < 100 * rtol


@pytest.mark.parametrize("damping", [1e2, 1e5, 1e8])
def test_stiff_damping_costs_no_steps(scenario, damping):
    """A pendulum that creeps through oil: q' = -m g c sin(q) / D, whose closed form is tan(q/2) = tan(q0/2) exp(-t m g c / D),
    except for terms of D^-2. dopri5 would need steps of 3 I / D."""
    given = scenario(PENDULUM % f"damping: {damping}", initial={"q": {"j": 1.0}, "v": {"j": -1.0}})
    run = run_scenario(given, {"integrator": {"method": "rodas5p", "rtol": 1e-6, "atol": 1e-8}})
    rate, after = 9.81 * 0.5 / damping, 1.0 - INERTIA / damping
    closed = 2 * np.arctan(np.tan(after / 2) * np.exp(-rate * run.t[-1]))
    assert run.q[-1, 0] == pytest.approx(closed, abs=1e-6 + (rate + 1 / damping)**2)
    assert run.statistics.steps < 60


def test_a_stiff_servo_follows_its_target(scenario):
    """A pd law with rates of 1e3 and 1e6 per second has a moving target."""
    given = scenario(PENDULUM % "damping: 0.1",
                     joints={"j": {"torque": {"pd": {"kp": 2.6e8, "kd": 2.6e5, "target": "0.3*sin(4*t)"}}}})
    run = run_scenario(given, {"integrator": {"method": "rodas5p", "rtol": 1e-6, "atol": 1e-8}})
    radau = run_scenario(given, {"integrator": {"method": "Radau", "rtol": 1e-10, "atol": 1e-12}})
    assert np.abs(run.q - radau.q).max() < 1e-6 and np.abs(run.v - radau.v)[1:].max() < 1e-4
    assert run.statistics.steps < 300


def test_quaternions_and_charts_of_a_body_that_turns_many_times():
    from integrators.problems import torque_free_body
    body, v = torque_free_body(), np.array([0.1, 0.0, 12.0, 0.0, 0.0, 0.0])
    times = np.linspace(0, 6, 7)
    exact = solve(free_motion(body, body.neutral(), v), times, EXACT)[0]
    ours = solve(free_motion(body, body.neutral(), v), times, Options("rodas5p", rtol=1e-9, atol=1e-11))[0]
    assert np.abs(ld.difference(body, exact.q, ours.q)).max() < 1e-5
    assert np.abs(np.linalg.norm(ours.q[:, 3:7], axis=1) - 1).max() < 1e-14


@pytest.mark.parametrize("times", [1, 4])
def test_a_trial_too_far_for_a_line_is_shortened_before_loops_go_on(monkeypatch, times):
    """One step that went too far made the rest of a run four times as slow: where a trial diverges, angles are beyond the range
    of sines, too. Where shorter steps do not help, angles are that large."""
    robot, step, tried, turned = torque_free_body(), rosenbrock.try_step, [], []
    problem = free_motion(robot, robot.neutral(), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]))

    def refusing(*given):
        tried.append(given[4])                                # the length of the step
        return (INVALID_ARGUMENTS, np.inf) if len(tried) <= times else step(*given)
    monkeypatch.setattr(rosenbrock, "try_step", refusing)
    monkeypatch.setattr(RightHandSide, "use_generic_kernels", lambda self: turned.append(len(tried)))
    record, _ = solve(problem, np.array([0.0, 0.5]), Options("rodas5p", rtol=1e-8, atol=1e-10))
    assert tried[1] == pytest.approx(tried[0] / 4) and turned == [4] * (times == 4)
    assert np.abs(record.v[-1] - solve(problem, np.array([0.0, 0.5]), EXACT)[0].v[-1]).max() < 1e-6


@pytest.mark.parametrize("failure, reason", [(NOT_FINITE, "no longer finite soon after"),
                                             (SINGULAR, "articulated inertia vanishes")])
def test_no_step_begins_where_the_rates_cannot_be_evaluated(monkeypatch, failure, reason):
    """An accepted state may be outside the range of the trial states: the run ends there with the reason of its evaluation."""
    robot, times, jacobian = torque_free_body(), [], RightHandSideJacobian.__call__

    def failing(self, t, y):
        J = jacobian(self, t, y)
        times.append(t)
        self.code = failure if t > 0.2 else self.code
        return J
    monkeypatch.setattr(RightHandSideJacobian, "__call__", failing)
    problem = free_motion(robot, robot.neutral(), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ComputationError, match=reason) as caught:
        solve(problem, np.array([0.0, 1.0]), Options("rodas5p", rtol=1e-8, atol=1e-10))
    assert len(times) > 2 and times[-2] <= 0.2 < times[-1] == caught.value.at
