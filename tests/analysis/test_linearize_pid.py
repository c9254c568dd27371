"""Linear models of robots with pid laws, whose integrals are states: closed forms, and differences of the right-hand side."""
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import liedyn as ld
from controlled_robots import ARM, CART, FINE
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ComputationError, ScenarioError
from liedyn.report.linearization_report import matrices, summary

ROBOTS = Path(__file__).parents[2] / "robots"
M, C, K = 2.0, 0.3, 5.0                                    # of the cart
KP, KI, KD, TARGET = 60.0, 80.0, 12.0, 0.2
LAW = {"pid": {"kp": KP, "ki": KI, "kd": KD, "target": TARGET}}
A = np.array([[0, 1, 0], [-(K + KP) / M, -(C + KD) / M, 1 / M], [-KI, 0, 0]])
ELBOW = {"kp": 9, "ki": 30, "kd": 1, "target": "0.4*sin(3*t) + 0.2*q(shoulder)", "feedforward": "0.1*t", "gravity": True}


@pytest.fixture(autouse=True)
def as_users(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")


@pytest.fixture
def cart(scenario):
    def make(law=LAW, **keys):
        start = {"integrator": dict(FINE), "initial": {"q": {"x": -0.3}}}
        return scenario(CART, **{"joints": {"x": {"torque": law}}} | start | keys)
    return make


def test_a_cart_has_the_roots_of_its_cubic(cart):
    """M s^3 + (C + KD) s^2 + (K + KP) s + KI."""
    found = linearize_scenario(cart(), step=0.1)
    system = found.system
    assert system.states == ("q.x", "v.x", "z.x") and system.state_units == ("m", "m/s", "N")
    np.testing.assert_allclose(system.A, A, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(system.B, [[0], [1 / M], [0]], rtol=1e-15)
    roots = np.sort_complex(np.roots([M, C + KD, K + KP, KI]))[::-1]
    np.testing.assert_allclose(system.eigenvalues, roots, rtol=1e-13)
    assert system.moving.all() and system.controllable == system.observable == 3 and system.stability == "stable"
    assert matrices(found)["A"][2] == ["q.x[m]", "v.x[m/s]", "z.x[N]"]
    np.testing.assert_allclose(found.Ad, expm(0.1 * A), rtol=1e-12, atol=1e-14)


def test_an_open_loop_sums_errors_that_do_not_act(cart):
    found = linearize_scenario(cart(), open_loop=True, verify=True)
    np.testing.assert_allclose(found.system.A, [[0, 1, 0], [-K / M, -C / M, 0], [-KI, 0, 0]], rtol=1e-15, atol=1e-15)
    assert all(one.sound for one in found.differences.values())


def test_the_integral_is_that_of_the_motion(cart):
    found = linearize_scenario(cart(), at=0.5)
    drive = np.zeros((4, 4))
    drive[:3, :3], drive[:3, 3] = A, [0, KP * TARGET / M, KI * TARGET]
    q, v, z, _ = expm(0.5 * drive) @ [-0.3, 0, 0, 1]
    np.testing.assert_allclose([found.here.q[0], found.here.v[0], found.here.integral[0]], [q, v, z], rtol=0, atol=1e-10)
    assert summary(found)["integrals"] == {"x": found.here.integral[0]}
    np.testing.assert_allclose(found.system.A, A, rtol=1e-15, atol=1e-15)


def test_an_integral_at_rest_holds_the_target(cart):
    """Against the spring; also next to a joint that is held, which needs no integral."""
    found = ld.find_equilibrium(cart())
    np.testing.assert_allclose([found.q[0], found.integral[0], found.tau[0]], [TARGET, K * TARGET, K * TARGET], rtol=1e-12)
    np.testing.assert_allclose(found.system.A, A, rtol=1e-15, atol=1e-15)
    held = ld.find_equilibrium(cart(), hold="x")
    assert held.q[0] == -0.3 and held.offset["tau.x"] == pytest.approx(-0.3 * K - KP * 0.5)


def test_a_target_that_flees_is_told(cart):
    with pytest.raises(ComputationError, match=r"the pid law of x has an error of 0\.1 m"):
        ld.find_equilibrium(cart({"pid": {"kp": 1, "ki": 1, "target": "q(x) + 0.1"}}))


def test_an_integral_that_rests_at_a_limit_neither_moves_nor_acts(cart):
    """At 4 N, and the error drives it further; with the error turned, it moves again but does not act yet."""
    wound = linearize_scenario(cart({"pid": {**LAW["pid"], "kd": 0}}, saturate=True), verify=True)
    np.testing.assert_allclose(wound.system.A, [[0, 1, 0], [-K / M, -C / M, 0], [0, 0, 0]], rtol=1e-15, atol=1e-15)
    law = {"pid": {**LAW["pid"], "kd": 0, "feedforward": -100}}
    turned = linearize_scenario(cart(law, saturate=True), verify=True)
    np.testing.assert_allclose(turned.system.A, [[0, 1, 0], [-K / M, -C / M, 0], [-KI, 0, 0]], rtol=1e-15, atol=1e-15)
    assert all(one.sound for found in (wound, turned) for one in found.differences.values())


@pytest.mark.parametrize("open_loop", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("control", [None, {"law": "computed_torque", "bandwidth": 5, "motion": {"slide": 0.1}}],
                         ids=["pid", "beside computed torque"])
def test_an_arm_agrees_with_differences(scenario, open_loop, control, worst):
    joints = {"elbow": {"torque": {"pid": ELBOW}}, "shoulder": {"torque": {"pid": {"kp": 20, "ki": 15, "target": "z(hand)"}}}}
    keys = scenario(ARM, joints=joints, control=control, initial={"q": {"elbow": 0.4}, "v": {"shoulder": 1}})
    found = linearize_scenario(keys, at=0.3, open_loop=open_loop, verify=True, outputs=["q.*", "a.*", "tau.*", "p.hand.*"])
    assert found.system.states[6:] == ("z.shoulder", "z.elbow") and found.here.integral.any()
    assert (np.abs(found.system.A[3:6, 6:]).max() > 0) != open_loop
    for name, one in found.differences.items():
        assert worst("linear models with integrals", one.off, name) < 1e-9 and one.sound


def test_a_mechanism_keeps_its_integrals_in_independent_coordinates():
    keys = {"robot": str(ROBOTS / "four_bar.yaml"), "duration": 1.0,
            "joints": {"crank": {"torque": {"pid": {"kp": 8, "ki": 20, "kd": 1, "target": 1.2}}}}}
    found = linearize_scenario(keys, at=0.1, verify=True)
    assert len(found.system.states) == 3 and found.system.states[2] == "z.crank"
    assert all(one.sound for one in found.differences.values())


def test_methods_without_integrals_are_refused(cart):
    with pytest.raises(ScenarioError, match="pid laws are not supported by variational"):
        linearize_scenario(cart(integrator={"method": "variational"}), at=0.5)


def test_the_summary_is_plain(cart):
    json.dumps(summary(linearize_scenario(cart(), equilibrium=True)), allow_nan=False)
