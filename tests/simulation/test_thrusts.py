"""Thrusts as inputs: closed form of hover, scenario against rollouts and sampled controllers, limits, setpoints, and errors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from liedyn.errors import ComputationError, LiedynError, ScenarioError, UsageError
from liedyn.io.scenarios.control_schema import read_gain_matrix
from messages import has_parts

ROBOT = Path(__file__).parents[2] / "robots" / "quadrotor.yaml"
CONFIG = Path(__file__).parents[2] / "configs" / "quadrotor_lqr.yaml"
ROTORS = [f"thrust.rotor{k}" for k in range(1, 5)]
HOVER = 9.81 / 4
START = [0.3, -0.2, 0.1, np.sin(0.2), 0.0, 0.0, np.cos(0.2)]


@pytest.fixture(scope="module")
def model():
    return ld.load(ROBOT)


@pytest.fixture(scope="module")
def system(model):
    """The linear model about hover."""
    return ld.linearize_scenario({"robot": str(ROBOT), "duration": 1, "actuators": {"rotor*": HOVER}}, inputs="thrust.*").system


@pytest.fixture(scope="module")
def gain(system):
    return system.lqr({"q.*": 20, "v.*": 2}, 1)


def of(gain, **keys) -> dict:
    """A scenario of half a second under the gain."""
    law = {"law": "state_feedback", "gain": gain.by_name, "setpoint": {}}
    return {"robot": str(ROBOT), "duration": 0.5, "output_step": 0.01, "integrator": {"method": "rk4", "step": 0.01},
            "initial": {"q": {"base": START}}, "control": law} | keys


def deviation(model, q, v) -> np.ndarray:
    return np.concatenate([ld.difference(model, model.neutral(), q), v], axis=-1)


def test_the_linear_model_of_hover_is_the_closed_form(model, system):
    """Rates: rotation tilts the weight; thrusts lift, tilt and yaw by their arms and drag."""
    A, B, g = np.zeros((12, 12)), np.zeros((12, 4)), 9.81
    A[:6, 6:] = np.eye(6)
    A[9, 1], A[10, 0] = g, -g
    x, y, turn = np.array([0.12, -0.12, -0.12, 0.12]), np.array([0.12, 0.12, -0.12, -0.12]), np.array([-1, 1, -1, 1])
    B[6], B[7], B[8], B[11] = y / 0.0082, -x / 0.0085, 0.016 * turn / 0.0148, 1.0
    np.testing.assert_allclose(system.A, A, atol=1e-14)
    np.testing.assert_allclose(system.B, B, atol=1e-13)
    assert list(system.inputs) == ROTORS


def test_the_gain_of_the_example_is_that_of_hover(gain):
    numbers, rows, columns = read_gain_matrix(str(CONFIG.with_name("quadrotor_gain.csv")))
    assert (rows, columns) == (gain.rows, gain.columns)
    np.testing.assert_allclose(np.array(numbers), gain.matrix, rtol=1e-9)


def test_the_closed_loop_has_the_poles_of_the_gain(gain):
    closed = ld.linearize_scenario(of(gain, initial={}), verify=True)
    np.testing.assert_allclose(np.sort(closed.system.poles), np.sort(gain.poles), rtol=1e-8)
    assert max(x.excess for x in closed.differences.values()) < 1e-9
    opened = ld.linearize_scenario(of(gain, initial={}), open_loop=True, inputs="thrust.*").system
    assert np.abs(opened.A[6:, 6:]).max() < 1e-14 and np.abs(opened.A).max() == pytest.approx(9.81)


def test_thrusts_at_their_limits_do_not_change(gain):
    """Rotors at their limits have no feedback: the linear system is that of the others, and of finite differences."""
    limits = {ROTORS[0]: [0, 0.05], ROTORS[1]: [2 * HOVER, 3 * HOVER]}
    found = ld.linearize_scenario(of(gain, saturate=limits), verify=True)
    assert max(x.excess for x in found.differences.values()) < 1e-9
    np.testing.assert_allclose(found.here.thrusts[:2], [0.05, 2 * HOVER], rtol=1e-14)


def test_scenario_rollout_and_stepper_are_the_same(model, gain):
    run = ld.run_scenario(of(gain))
    expected = HOVER - deviation(model, run.q, run.v) @ gain.matrix.T
    np.testing.assert_allclose(run.thrusts, expected, atol=1e-12)
    assert run.thrust_names == tuple(ROTORS) and [name for name, *_ in run.columns if name.startswith("thrust.")] == ROTORS
    wrench = np.array([np.r_[np.cross(x.position, x.axis) + x.torque_ratio * np.array(x.axis), x.axis]
                       for x in model.description.actuators])
    np.testing.assert_allclose(run.wrench[:, 0], run.thrusts @ wrench, atol=1e-13)
    law, inputs = ld.Feedback.by_name(model, gain.by_name, model.neutral()), np.r_[np.zeros(6), np.full(4, HOVER)]
    generic = ld.rollout(model, START, np.zeros(6), inputs, dt=0.01, steps=50, feedback=law, forces=True)
    with generated_code():
        many = ld.rollout(model, [START] * 2, np.zeros(6), inputs, dt=0.01, steps=50, feedback=law, forces=True)
        stepper = ld.Stepper(model, 0.01, q0=START, feedback=law)
        for _ in range(50):
            stepper.step(stepper.q, stepper.v, inputs)
        adjoint = many.adjoint(None, np.eye(6)[5] * (np.arange(51) == 50)[:, None])
        series = np.tile(inputs, (50, 1))
        changed = [ld.rollout(model, START, np.zeros(6), series + h * np.eye(10)[8] * (np.arange(50) == 20)[:, None], dt=0.01,
                              steps=50, feedback=law).v[-1, 5] for h in (1e-4, -1e-4)]
        by_policy = ld.rollout(model, START, np.zeros(6), lambda t, q, v: np.r_[np.zeros(6), np.full(4, 2.0 + t)], dt=0.01,
                               steps=20)
    for rollout in (generic, many):
        for name in ("q", "v", "thrusts"):
            np.testing.assert_allclose(getattr(rollout, name)[..., :, :].reshape(-1, 51, getattr(run, name).shape[1])[0],
                                       getattr(run, name), atol=1e-13)
    np.testing.assert_array_equal(stepper.q, many.q[0, -1])
    assert adjoint.tau.shape == (2, 50, 10) and adjoint.gain.shape == (2, 10, 12)
    assert adjoint.tau[0, 20, 8] == pytest.approx((changed[0] - changed[1]) / 2e-4, rel=1e-6)
    with generated_code():
        by_array = ld.rollout(model, START, np.zeros(6), np.c_[np.zeros((20, 6)), np.tile(2.0 + 0.01 * np.arange(20), (4, 1)).T],
                              dt=0.01, steps=20)
    np.testing.assert_array_equal(by_policy.q, by_array.q)


def test_sampled_controllers_drive_thrusts(model, gain):
    """A law of the scenario, and a function that returns a dict or an array, are one controller; limits hold."""
    def thrusts(q, v):
        return HOVER - gain.matrix @ deviation(model, q, v)
    keys = of(gain, sampling={"rate": 100}, saturate=True)
    alone = {key: value for key, value in keys.items() if key != "control"}
    by_law = ld.run_scenario(keys)
    by_name = ld.run_scenario(alone, controller=lambda t, q, v: dict(zip(ROTORS, thrusts(q, v), strict=True)))
    by_array = ld.run_scenario(alone, controller=lambda t, q, v: np.r_[np.zeros(6), thrusts(q, v)])
    for run in (by_name, by_array):
        np.testing.assert_allclose(run.q, by_law.q, atol=1e-13)
        np.testing.assert_allclose(run.thrusts, by_law.thrusts, atol=1e-12)
    assert by_law.thrusts.min() == 0.0 and by_law.thrusts.max() <= 6.0
    assert any(x.code == "force-limited" and "at its minimum of 0 N" in x.message for x in by_law.warnings)
    with pytest.raises(ComputationError, match=r"a torque of 'thrust\.rotor9'; the robot has the joints base, thrust\.rotor1"):
        ld.run_scenario(alone, controller=lambda t, q, v: {"thrust.rotor9": 1.0})


def test_limits_act_and_are_counted(gain):
    run = ld.run_scenario(of(gain, saturate=True))
    assert run.thrusts.min() == 0.0 and run.thrusts.max() <= 6.0
    assert run.check["energy_balance_relative"] < 1e-4 and run.check["inverse_dynamics_residual"] < 1e-14
    messages = [x.message for x in run.warnings if x.code == "force-limited"]
    assert any(text.startswith("thrust.rotor") and "at its minimum of 0 N from t = 0 s" in text for text in messages)
    one = ld.run_scenario(of(gain, saturate={"thrust.rotor*": [1, 4], ROTORS[0]: 3}))
    assert one.thrusts[:, 0].min() >= -3 and one.thrusts[:, 1:].min() == 1.0 and one.thrusts[:, 1:].max() <= 4.0
    signals = of(gain, control=None, actuators={"rotor*": "10*sin(20*t)"}, saturate=True, output_step=0.001)
    np.testing.assert_allclose(ld.run_scenario(signals).thrusts[:, 2],
                               np.clip(10 * np.sin(20 * np.arange(501) / 1000), 0, 6), atol=1e-12)


def test_the_setpoint_counts_constant_thrusts(model, gain):
    """The law supplies what is missing: nothing with thrusts that hover, the rest with those of two rotors."""
    for signals in ({"rotor*": HOVER}, {"rotor1": 1.0}):
        run = ld.run_scenario(of(gain, actuators=signals, initial={}, duration=0.02))
        np.testing.assert_allclose(run.thrusts, HOVER, rtol=1e-12)
        assert not run.warnings and np.abs(run.v).max() < 1e-14
    some = {name: row for name, row in gain.by_name.items() if name != ROTORS[0]}
    keys = of(gain, control=dict(law="state_feedback", gain=some, setpoint={}), initial={}, duration=0.02)
    assert any(x.code == "setpoint-not-at-rest" for x in ld.run_scenario(keys).warnings)
    low = ld.run_scenario(of(gain, saturate={"thrust.*": [0, 2]}, initial={}, duration=0.02))
    assert any("it requires a thrust.rotor1 of 2.45" in x.message and "its limits are 0 and 2 N" in x.message
               for x in low.warnings)


def test_simulate_takes_thrusts(model):
    by_name = ld.simulate(model, duration=0.1, tau={"thrust.rotor1": "2 + t", "thrust.rotor3": 1.0})
    keys = dict(robot=str(ROBOT), duration=0.1, actuators={"rotor1": "2 + t", "rotor3": 1.0})
    np.testing.assert_array_equal(by_name.q, ld.run_scenario(keys).q)
    constant = ld.simulate(model, duration=0.1, tau=np.r_[np.zeros(6), np.full(4, HOVER)])
    rows = ld.simulate(model, duration=0.1, tau=[np.r_[np.zeros(6), np.full(4, HOVER)]], rate=100)
    assert np.abs(constant.v).max() < 1e-14 and np.abs(rows.v).max() < 1e-14
    with pytest.raises(UsageError, match="actuator rotor1 has a thrust in `actuators`, and tau gives one, too"):
        ld.simulate(model, duration=0.1, actuators={"rotor1": 1}, tau={"thrust.rotor1": 1})


def test_torques_and_thrusts_in_one_gain():
    """The forces of the arms of a hexarotor hold them, and its thrusts carry the weight."""
    model = ld.load(ROBOT.with_name("hexarotor_arms.yaml"))
    rows = {**{f"tau.{side}_{k}": {f"q.{side}_{k}": 4.0, f"v.{side}_{k}": 0.2} for side in ("left", "right") for k in (1, 2, 3)},
            **{f"thrust.rotor{k}": {"v.base.vz": 1.0} for k in range(1, 7)}}
    posture = {"left_2": 0.4, "right_2": -0.3}
    run = ld.run_scenario({"robot": model.source, "duration": 0.01, "initial": {"q": posture},
                           "control": {"law": "state_feedback", "gain": rows, "setpoint": {"q": posture}}})
    assert not run.warnings and np.abs(run.v).max() < 1e-12 and np.abs(run.tau).max() > 0.1


BAD = {
    "unknown rotor": (dict(control=dict(law="state_feedback", gain={"thrust.rotor9": {"q.base.wx": 1}}, setpoint={})),
                      "no such row of a gain: got 'thrust.rotor9' (did you mean thrust.rotor"),
    "rows without names": (dict(control=dict(law="state_feedback", gain=[[1.0] * 12], setpoint={})),
              "control has no joint to actuate: all joints are free or prescribed: expected a gain with rows such as "
                            "thrust.rotor1"),
    "an acceleration": (dict(control=dict(law="state_feedback", gain={"a.base.wx": {"q.base.wx": 1}}, setpoint={})),
                        "expected tau.… or thrust.…, got 'a.base.wx'"),
    "limit of an unknown rotor": (dict(saturate={"thrust.rotor9": 3}), "no such thrust: got 'thrust.rotor9'"),
    "limits in the wrong order": (dict(saturate={"thrust.rotor1": [3, 1]}), "the minimum thrust is not below the maximum"),
}


@pytest.mark.parametrize(("keys", "message"), BAD.values(), ids=BAD)
def test_bad_values_are_told_in_a_line(gain, keys, message):
    with pytest.raises(ScenarioError) as caught:
        ld.run_scenario(of(gain, **keys))
    assert has_parts(str(caught.value), message) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("limits", "message"), [
    ("[6, 0]", "the minimum thrust is not below the maximum"), ("[0]", "expected a list of 2 numbers"), ("6", "expected")])
def test_bad_limits_of_actuators(tmp_path, limits, message):
    text = ROBOT.read_text().replace("limits: [0, 6]", f"limits: {limits}")
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(LiedynError, match=message):
        ld.load(tmp_path / "robot.yaml")


def test_limits_that_are_missing_or_unused(tmp_path, gain):
    (tmp_path / "robot.yaml").write_text(ROBOT.read_text().replace(", limits: [0, 6]", ""))
    keys = of(gain, robot=str(tmp_path / "robot.yaml"))
    with pytest.raises(ScenarioError, match="actuator rotor1 has no limits in the robot file"):
        ld.run_scenario(keys | {"saturate": {"thrust.rotor1": "limits"}})
    assert any(x.code == "no-effect" for x in ld.run_scenario(keys | {"saturate": True, "duration": 0.01}).warnings)
    unused = ld.run_scenario(of(gain, control=None, duration=0.01, saturate={"thrust.rotor1": 2}))
    assert any("saturate has no effect on thrusts" in x.message for x in unused.warnings)
