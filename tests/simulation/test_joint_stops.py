"""Compliant stops at limits: the law against SciPy and closed forms, its derivatives, its default stiffness, what runs say."""
import json

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import liedyn as ld
from liedyn.errors import ScenarioError
from liedyn.integrators.contact_forces import stop_jacobian
from liedyn.integrators.rhs_jacobian import RightHandSideJacobian
from liedyn.integrators.segment import evaluate_state
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.simulation.preparation import prepare
from limited_robots import ARM, SLIDER, TIGHT


@pytest.fixture
def simulate(scenario):
    def run(robot, **keys):
        return ld.run_scenario(scenario(json.dumps(robot), **{"integrator": TIGHT, **keys}))
    return run


def test_a_slider_hits_its_stop_as_the_law_says(simulate, worst):
    """SciPy in the stop, and the rebound of Hunt and Crossley: w - log(1 + w) is the same before and after, w = c d'."""
    k, c, m, v0, t0 = 3000.0, 0.7, 2.0, 3.0, 0.5 / 3.0
    run = simulate(SLIDER, output_step=0.01, initial={"v": {"x": v0}}, limits={"stiffness": k, "damping": c}, duration=0.4)

    def out(t, y):
        return y[0]
    out.terminal, out.direction = True, -1
    inside = scipy.integrate.solve_ivp(lambda t, y: [y[1], -k * y[0] * (1 + c * y[1]) / m], (t0, 1.0), [0.0, v0], method="DOP853",
                                       rtol=1e-13, atol=1e-15, events=out, dense_output=True)
    back = scipy.optimize.brentq(lambda w: w - np.log1p(w) - (c * v0 - np.log1p(c * v0)), -1 + 1e-12, -0.1, xtol=1e-15) / c
    t1 = inside.t[-1]
    y = np.where(run.t < t0, [0.5 + v0 * (run.t - t0), v0 + 0 * run.t], np.where(
        run.t < t1, inside.sol(np.clip(run.t, t0, t1)) + np.array([[0.5], [0]]), [0.5 + back * (run.t - t1), back + 0 * run.t]))
    assert worst("q", np.abs(run.q[:, 0] - y[0]).max()) < 1e-12
    assert worst("v", np.abs(run.v[:, 0] - y[1]).max() / v0) < 1e-12
    assert run.check["energy_balance_relative"] < 1e-11
    depth = run.q[:, 0] - 0.5
    np.testing.assert_allclose(run.stops[:, 0], np.where(depth > 0, -k * depth * (1 + c * run.v[:, 0]), 0), atol=1e-12 * k)
    np.testing.assert_allclose(run.stops, run.tau, rtol=1e-14)
    assert ("stop.x", "N") in [column[:2] for column in run.columns]
    assert not any("not enforced" in note for note in map(str, run.warnings)) and "deflects by" in str(run.warnings[0])


@pytest.mark.parametrize("sign, limit", [(1.0, 0.5), (-1.0, 0.4)])
def test_the_deepest_press_of_a_joint_is_told(simulate, sign, limit):
    """Each rebound is slower than the previous impact, so the other stop yields less, later."""
    run = simulate(SLIDER, output_step=0.001, initial={"v": {"x": 3.0 * sign}}, duration=0.8,
                   limits={"stiffness": 3000.0, "damping": 0.1})
    depth, other = sign * run.q[:, 0] - limit, -sign * run.q[:, 0] - (0.9 - limit)
    assert 0.05 < other.max() < 0.95 * depth.max()
    assert str(run.warnings[0]).startswith(f"the stop of x deflects by {depth.max():.3g} m at t = {run.t[depth.argmax()]:.6g} s")


def test_a_stop_pushes_and_never_pulls(simulate):
    """Torn out of its stop faster than 1/c, the slider is free: m x'' is the motor's force, on both sides of that instant."""
    run = simulate(SLIDER, duration=0.03, output_step=0.0005, initial={"q": {"x": 0.51}},
                   limits={"stiffness": 1e4, "damping": 50},
                   joints={"x": {"torque": "-400*(step(t-0.01)-step(t-0.012)) + 300*step(t-0.012)"}})
    share, inside, motor = 1 + 50 * run.v[:, 0], run.q[:, 0] > 0.5, run.tau[:, 0] - run.stops[:, 0]
    assert ((share < 0) & inside).sum() > 5 and ((share > 0) & inside & (run.t > 0.015)).sum() > 5 and (run.stops <= 0).all()
    np.testing.assert_allclose(run.a[share < 0, 0] * 2.0, motor[share < 0], rtol=1e-12)
    depth = np.maximum(run.q[:, 0] - 0.5, 0)
    np.testing.assert_allclose(run.a[:, 0] * 2.0, motor - 1e4 * depth * np.maximum(share, 0), atol=1e-10)
    assert run.check["energy_balance_relative"] < 1e-11


def test_lines_loops_and_formula_give_the_same_force(scenario, monkeypatch):
    for q in ([-0.65, 0.1, 0.0], [0.3, 0.34, 1.0], [2.03, -1.25, 0.0]):
        found = []
        for mode in ("auto", "generic"):
            monkeypatch.setenv("LIEDYN_CODE", mode)
            problem = prepare(scenario(json.dumps(ARM), limits="stop"), ()).problem
            found.append(evaluate_state(problem, 0.0, q, np.array([-0.3, 0.2, 0.5])))
        np.testing.assert_allclose(found[0].a, found[1].a, rtol=1e-12)
        np.testing.assert_allclose(found[0].tau, found[1].tau, rtol=1e-14)
        load = [50.0, 9.81 * np.sqrt(1.0 * (0.7 * 0.4**2 + 0.01 + 0.3 * 1.0))]
        expected = np.zeros(3)
        for k, (lower, upper) in enumerate(((-0.6, 2), (-1.2, 0.3))):
            for side, limit in ((-1, lower), (1, upper)):
                d, rate = side * (q[k] - limit), side * (-0.3, 0.2)[k]
                expected[k] -= side * load[k] / 0.01 * max(d, 0) * (1 + 2 * rate)
        np.testing.assert_allclose(found[0].tau, expected, rtol=1e-12)


def test_slopes_are_exact_in_implicit_methods_and_linearize(scenario):
    """The law by a complex step; the Jacobian of the rates by differences; the poles of a slider that is pressed against its
    stop: m s^2 + c F s + k."""
    problem = prepare(scenario(json.dumps(ARM), limits={"damping": 0.8}), ()).problem
    q, v = np.array([2.01, -1.23, 0.4]), np.array([0.3, -0.2, 1.0])
    found, k = stop_jacobian(problem, q, v), problem.stops.coefficients.reshape(-1, 3)[:, 1]
    law = [lambda x, u: -k[1] * (x - 2) * (1 + 0.8 * u), lambda x, u: k[2] * (-1.2 - x) * (1 - 0.8 * u)]
    for i in range(2):
        expected = [law[i](q[i] + 1e-30j, v[i]).imag / 1e-30, law[i](q[i], v[i] + 1e-30j).imag / 1e-30]
        np.testing.assert_allclose(found[i, [i, 3 + i]], expected, rtol=1e-14)
    assert np.count_nonzero(found) == 4
    problem.q[:] = q
    work, rates = problem.workspace(), []

    def evaluate(t, y):
        at = evaluate_state(problem, t, q + y[:3], y[3:6])
        work.q[:], work.v[:], work.a[:], work.tau[:] = at.q, at.v, at.a, at.tau
        rates.append(np.r_[at.v, at.a, 0.0])
        return 0, rates[-1]
    jacobian, y = RightHandSideJacobian(problem, work, evaluate), np.r_[np.zeros(3), v, 0.0]
    exact = jacobian(0.0, y)
    numbers = jacobian.from_differences(0.0, y, evaluate(0.0, y)[1])
    np.testing.assert_allclose(exact, numbers, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
    pressed = scenario(json.dumps(SLIDER), limits={"stiffness": 800, "damping": 3}, joints={"x": {"torque": 40}},
                       initial={"q": {"x": 0.54}})
    system = ld.linearize_scenario(pressed, equilibrium=True)
    np.testing.assert_allclose(system.here.q, 0.55, rtol=1e-12)
    found, expected = (np.sort_complex(x) for x in (np.linalg.eigvals(system.system.A), np.roots([2.0, 3 * 40.0, 800.0])))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_joint_rests_on_its_stop_as_deep_as_the_rule_says(simulate):
    """The effort limit compresses the stop by 0.01 rad; so does a horizontal pendulum with a point mass."""
    pendulum = {"name": "p", "links": {"rod": {"mass": 2.0, "com": [0.5, 0, 0]}}, "joints": {
        "hinge": {"type": "revolute", "parent": "world", "child": "rod", "axis": [0, 1, 0], "limits": {"lower": -3, "upper": 0}}}}
    run = simulate(pendulum, duration=1.5, limits="stop", integrator={"method": "rodas5p", "rtol": 1e-9, "atol": 1e-11})
    assert run.q[-1, 0] == pytest.approx(0.01, rel=1e-3) and abs(run.v[-1, 0]) < 1e-4
    assert run.stops[-1, 0] == pytest.approx(-9.81, rel=1e-3)
    assert run.warnings == ()


def test_stops_are_no_part_of_what_motors_give(simulate):
    """Saturation and the message about efforts exclude them; the stiff stop of a light hand selects the integrator."""
    robot = json.loads(json.dumps(ARM))
    robot["joints"]["elbow"]["limits"]["effort"] = 2.0
    run = simulate(robot, duration=0.6, saturate=True, limits={"stiffness": 4e5}, integrator={},
                   initial={"q": {"shoulder": 1.5}}, joints={"elbow": {"torque": "5*sin(40*t)"}})
    motor = run.tau - run.stops
    assert np.abs(motor[:, 1]).max() == pytest.approx(2.0, rel=1e-12) and np.abs(run.stops[:, 1]).max() > 50
    assert not any("effort" in note for note in map(str, run.warnings))
    assert run.scenario.integrator.method == "rodas5p" and "(stop, time constant " in str(run.warnings[0])


@pytest.mark.parametrize("limits, text", [
    ("stpo", "limits.*stpo.*did you mean stop"), ({"mode": "hard", "stiffness": 3}, "stiffness does not apply to hard stops"),
    ({"restitution": 0.3}, "restitution does not apply to compliant stops"),
    ({"stiffness": 1, "sink": 1}, "stiffness and sink cannot be combined"),
    ({"stiffness": -1}, "stiffness"), ({"joints": ["wrist"]}, "joint wrist has no position limits in the robot file"),
    ({"joints": ["elbwo"]}, "did you mean elbow"), (True, "limits"), ({"mode": "hard", "restitution": 1.2}, "restitution")])
def test_what_cannot_be_is_refused(scenario, limits, text):
    with pytest.raises(ScenarioError, match=text):
        prepare(scenario(json.dumps(ARM), limits=limits), ())


@pytest.mark.parametrize("limits", ["stop", "hard", {"mode": "hard", "restitution": 0.3, "joints": ["el*"]},
                                    {"sink": 0.02, "damping": 0.5}, {"stiffness": 900}])
def test_what_is_written_reads_back(scenario, limits):
    given = scenario_of(scenario(json.dumps(ARM), limits=limits))
    again = scenario_of(to_plain(given))
    assert given.limits == again.limits is not None
    assert scenario_of(scenario(json.dumps(ARM), limits="warn")).limits is None


def test_methods_without_switches_are_refused_and_notes_name_the_key(simulate):
    with pytest.raises(ScenarioError, match="generalized_alpha cannot be combined with stops at joint limits"):
        simulate(SLIDER, limits="hard", integrator={"method": "generalized_alpha"})
    run = simulate(SLIDER, initial={"v": {"x": 3.0}}, limits="warn", duration=0.3)
    assert any("limits: stop enforces them" in x and "x from" in x for x in map(str, run.warnings)) and run.stops is None
