"""PID laws in continuous time, whose integral is a part of the state: closed forms, SciPy's integration of the law in NumPy, the
limit of sampled laws, limits, phases, and errors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.linalg import expm
from scipy.optimize import brentq

import liedyn as ld
from controlled_robots import CART, FINE
from liedyn.errors import ScenarioError
from liedyn.simulation.run import run_scenario

ARM = """\
links:
  base: {mass: 1, inertia: [0.1, 0.2, 0.15]}
  upper: {mass: 3, com: [0.02, 0.01, 0.2], inertia: [0.05, 0.06, 0.01]}
  lower: {mass: 2, com: [0, 0.03, 0.15], inertia: [0.03, 0.02, 0.01]}
joints:
  socket: {type: ball, parent: world, child: base}
  shoulder: {type: revolute, parent: base, child: upper, axis: [0, 1, 0], damping: 0.4, armature: 0.1}
  elbow: {type: revolute, parent: upper, child: lower, axis: [1, 0, 0], origin: {xyz: [0, 0, 0.4]}}
"""
KP, KI, KD, TARGET = 60.0, 80.0, 12.0, 0.2
GAINS = {"kp": KP, "ki": KI, "kd": KD, "target": TARGET}
START = {"q": {"x": -0.3}, "v": {"x": 0.4}}


@pytest.fixture
def of(scenario):
    """Return a scenario of a second with these keys, as a dict."""
    def make(robot: str = CART, law: dict = GAINS, **keys) -> dict:
        joints = {"joints": {"x": {"torque": {"pid": law}}}} if robot == CART else {}
        return scenario(robot, **{"output_step": 0.05, "integrator": dict(FINE), "initial": START} | joints | keys)
    return make


def motion(t, start=(-0.3, 0.4, 0.0)) -> np.ndarray:
    """Return position, velocity and integral (N, 3) of the cart, by the matrix exponential."""
    A = np.zeros((4, 4))
    A[:3] = [[0, 1, 0, 0], [-(5 + KP) / 2, -(0.3 + KD) / 2, 0.5, KP * TARGET / 2], [-KI, 0, 0, KI * TARGET]]
    return np.array([expm(A * s) @ [*start, 1.0] for s in t])[:, :3]


@pytest.mark.parametrize("integrator", [{"method": "rk4", "step": 1e-3}, FINE, {"method": "dop853", "rtol": 1e-12, "atol": 1e-13},
                                        {"method": "rodas5p", "rtol": 1e-11, "atol": 1e-12},
                                        {"method": "Radau", "rtol": 1e-11, "atol": 1e-12},
                                        {"method": "BDF", "rtol": 1e-12, "atol": 1e-13},
                                        {"method": "LSODA", "rtol": 1e-12, "atol": 1e-13}], ids=lambda given: given["method"])
def test_a_linear_robot_moves_as_its_closed_form(of, integrator):
    run = run_scenario(of(integrator=integrator))
    x = motion(run.t)
    np.testing.assert_allclose(run.q[:, 0], x[:, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 0], x[:, 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.tau[:, 0], KP * (TARGET - x[:, 0]) - KD * x[:, 1] + x[:, 2], rtol=0, atol=1e-7)
    assert run.check["energy_balance_relative"] < 1e-8


def test_rk4_keeps_its_order(of):
    errors = [np.abs(run_scenario(of(integrator={"method": "rk4", "step": h})).q[:, 0] - motion(np.arange(21) * 0.05)[:, 0]).max()
              for h in (0.01, 0.005)]
    assert 12 < errors[0] / errors[1] < 20                    # 2^4


def test_sampled_laws_become_it_as_their_period_goes_to_zero(of):
    exact = motion(np.arange(21) * 0.05)[:, 0]
    rough, fine = (run_scenario(of(sampling={"rate": rate})).q[:, 0] for rate in (500, 1000))
    assert np.abs(fine - exact).max() < 2e-3 and 1.9 < np.abs(rough - exact).max() / np.abs(fine - exact).max() < 2.1
    assert np.abs(2 * fine - rough - exact).max() < 2e-5      # by extrapolation of an error of first order


def test_an_arm_with_a_ball_joint_moves_as_by_scipy(of, worst):
    """The law is computed by NumPy, with forward dynamics. Some joints have no integral, the ball joint has a damper."""
    elbow = {"kp": 9, "ki": 30, "target": "0.4*sin(3*t) + 0.2*q(shoulder)", "feedforward": "0.1*t", "gravity": True}
    joints = {"socket": {"torque": [f"-{k}*v" for k in (1, 2, 3)]}, "elbow": {"torque": {"pid": elbow}},
              "shoulder": {"torque": {"pid": {"kp": 20, "ki": 15, "kd": 2, "target": "0.5*t"}}}}
    results = [run_scenario(of(ARM, joints=joints, initial={"v": {"socket": [0.3, 0.5, -1]}}, integrator=one))
               for one in (FINE, {"method": "rodas5p", "rtol": 1e-10, "atol": 1e-11})]
    model = results[0].model

    def rates(t, y):
        u, v, z = y[:4] / np.linalg.norm(y[:4]), y[6:11], y[11:]
        q, x, w = np.r_[u, y[4:6]], u[:3], v[:3]
        e = np.array([0.5 * t - q[4], 0.4 * np.sin(3 * t) + 0.2 * q[4] - q[5]])
        tau = np.r_[-v[:3] * [1, 2, 3], 20 * e[0] + 2 * (0.5 - v[3]) + z[0], 9 * e[1] + 0.1 * t + z[1]]
        tau[4] += ld.gravity_force(model, q)[4]
        return np.r_[0.5 * (u[3] * w + np.cross(x, w)), -0.5 * x @ w, v[3:], ld.forward_dynamics(model, q, v, tau),
                     [15, 30] * e]
    t = results[0].t
    begin = np.r_[results[0].q[0], results[0].v[0], 0, 0]
    y = solve_ivp(rates, (0, t[-1]), begin, "DOP853", t_eval=t, rtol=1e-12, atol=1e-13).y.T
    for run in results:
        assert worst("pid of an arm: v", np.abs(run.v - y[:, 6:11]).max()) < 1e-8            # the tolerance of rodas5p
        assert np.abs(run.q[:, 4:] - y[:, 4:6]).max() < 1e-8
        assert run.check["energy_balance_relative"] < 1e-7


def in_turn(t, feedforward, stages) -> np.ndarray:
    """(N, 3) states of the cart through stages (force of the limit or None, whether the integral rests, what passes zero at the
    end), by matrix exponentials. The last one lasts."""
    x, begin, out = np.array([-0.3, 0.4, 0.0, 1.0]), 0.0, np.zeros((len(t), 3))
    for force, rests, ends in stages:
        A = np.zeros((4, 4))
        A[:2] = [[0, 1, 0, 0], [-2.5, -0.15, 0, force / 2]] if force else \
            [[0, 1, 0, 0], [-(5 + KP) / 2, -(0.3 + KD) / 2, 0.5, (KP * TARGET + feedforward) / 2]]
        A[2] = [0, 0, 0, 0] if rests else [-KI, 0, 0, KI * TARGET]
        here = t >= begin
        out[here] = [(expm(A * (s - begin)) @ x)[:3] for s in t[here]]
        if ends:
            seen = [ends(expm(A * 1e-3 * k) @ x) for k in range(1, 1000)]
            k = int(np.flatnonzero(np.diff(np.sign(seen)))[0]) + 1
            span = brentq(lambda s, A=A, x=x, ends=ends: ends(expm(A * s) @ x), 1e-3 * k, 1e-3 * (k + 1), xtol=1e-15)
            x, begin = expm(A * span) @ x, begin + span
    return out


@pytest.mark.parametrize("integrator", [FINE, {"method": "rk4", "step": 1e-3}], ids=lambda given: given["method"])
@pytest.mark.parametrize("feedforward", [0, 40])
def test_the_integral_rests_while_it_would_drive_the_force_beyond_its_limit(of, integrator, feedforward):
    run = run_scenario(of(law=GAINS | {"feedforward": feedforward}, saturate=True, integrator=integrator))

    def beyond(limit):
        return lambda x: KP * (TARGET - x[0]) - KD * x[1] + x[2] + feedforward - limit

    def error(x):
        return TARGET - x[0]
    # with the feedforward, the force stays at its upper limit when the target is passed and the integral falls
    first = [(4, True, error), (4, False, beyond(4))] if feedforward else [(4, True, beyond(4))]
    then = [(-4, True, None)] if feedforward else [(-4, False, error), (-4, True, beyond(-4)), (None, False, None)]
    x = in_turn(run.t, feedforward, [*first, (None, False, beyond(-4)), *then])
    np.testing.assert_allclose(run.q[:, 0], x[:, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 0], x[:, 1], rtol=0, atol=1e-9)
    force = KP * (TARGET - x[:, 0]) - KD * x[:, 1] + x[:, 2] + feedforward
    np.testing.assert_allclose(run.tau[:, 0], force.clip(-4, 4), rtol=0, atol=1e-7)
    assert any("the force of x is at its limit of 4 N from t = 0 s" in note for note in map(str, run.warnings))
    assert not any("switches too often" in note for note in map(str, run.warnings))


def test_the_integral_goes_on_through_events_and_begins_anew_after_a_lock(of):
    plain = run_scenario(of())
    events = {"look": {"every": 0.3, "do": "record"}, "forces": {"when": "tau(x)", "value": 3.0, "do": "record"}}
    looked = run_scenario(of(events=events))
    assert sum(one.name == "forces" for one in looked.events) >= 1
    np.testing.assert_allclose(np.interp(plain.t, looked.t, looked.q[:, 0]), plain.q[:, 0], rtol=0, atol=1e-10)
    at = next(one.t for one in looked.events if one.name == "forces")
    x = motion([at])[0]
    assert KP * (TARGET - x[0]) - KD * x[1] + x[2] == pytest.approx(3.0, abs=1e-8)
    held = run_scenario(of(events={"lock": {"at": 0.4, "do": {"lock": "x"}}, "free": {"at": 0.6, "do": {"unlock": "x"}}}))
    last = motion([0.4], motion([0.4])[0])
    begin = motion([0.4])[0]
    y = motion([0.4], (begin[0], 0.0, 0.0))[0]
    assert held.q[-1, 0] == pytest.approx(y[0], abs=1e-9) and abs(last[0, 0] - y[0]) > 1e-3


def test_a_mechanism_has_integrals_beside_its_constraints():
    """The force is recomputed from the rows, with the integral of a spline: accurate to its error of fourth order."""
    law = {"kp": 8, "ki": 6, "kd": 1, "target": "0.5 + 0.3*sin(3*t)"}
    keys = {"robot": str(Path(__file__).parents[2] / "robots/four_bar.yaml"), "duration": 0.6, "output_step": 0.01,
            "joints": {"crank": {"torque": {"pid": law}}}}
    runs = [run_scenario(keys | {"integrator": one}) for one in (FINE, {"method": "rk4", "step": 1e-3},
                                                                 {"method": "Radau", "rtol": 1e-9, "atol": 1e-10})]
    for run in runs:
        e = 0.5 + 0.3 * np.sin(3 * run.t) - run.q[:, 0]
        z = 6 * CubicSpline(run.t, e).antiderivative()(run.t)
        np.testing.assert_allclose(run.tau[:, 0], 8 * e + 0.9 * np.cos(3 * run.t) - run.v[:, 0] + z, rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.q, runs[0].q, rtol=0, atol=1e-8)
        assert run.check["energy_balance_relative"] < 1e-6 and run.check["constraint_residual"] < 1e-11


@pytest.mark.parametrize("keys, message", [
    ({"integrator": {"method": "generalized_alpha"}}, "pid laws are not supported by generalized_alpha"),
    ({"integrator": {"method": "variational"}}, "pid laws are not supported by variational"),
    ({"limits": "hard"}, "hard stops cannot be combined with pid laws"),
    ({"law": GAINS | {"ki": [1, 2]}}, r"joint x has 1 coordinate.*got '2 ki values'")])
def test_what_does_not_go_with_it_is_refused(of, keys, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(of(**keys))
    assert "\n" not in str(caught.value)
