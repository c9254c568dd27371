"""Sampled controllers: the exact difference equation of a linear robot, recursions of the controller alone, limits to continuous
laws, and errors."""
from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from scipy.linalg import expm
from scipy.signal import cont2discrete

from controlled_robots import CART, FINE
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ComputationError, ScenarioError, UsageError
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.solve import solve_segment
from liedyn.io.checkpoint_files import join_arrays, split_arrays
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.robot_files import load
from liedyn.simulation.control.sampled_control import SampledController
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario

MASS, DAMPING, STIFFNESS = 2.0, 0.3, 5.0
LIFT = CART.replace("axis: [1, 0, 0], damping: 0.3, stiffness: 5", "axis: [0, 0, 1]")
ARM = """\
links:
  upper: {mass: 3, com: [0.02, 0.01, 0.2], inertia: [0.05, 0.06, 0.01]}
  lower: {mass: 2, com: [0, 0.03, 0.15], inertia: [0.03, 0.02, 0.01]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.4, armature: 0.1}
  elbow: {type: revolute, parent: upper, child: lower, axis: [1, 0, 0], origin: {xyz: [0, 0, 0.4]}}
"""
GAINS = {"kp": 60, "kd": 12, "target": 0.2}
A, B = np.array([[0, 1], [-STIFFNESS / MASS, -DAMPING / MASS]]), np.array([[0], [1 / MASS]])


@pytest.fixture
def of(scenario):
    """Return a scenario of a second with these keys, as a dict."""
    def make(robot: str = CART, law: dict | None = None, **keys) -> dict:
        joints = {"joints": {"x": {"torque": law or {"pd": GAINS}}}} if robot != ARM else {}
        return scenario(robot, **{"output_step": 0.05, "sampling": {"rate": 20}, "integrator": dict(FINE), **joints, **keys})
    return make


def held(T: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the state after T under a constant force, by a matrix exponential."""
    M = expm(np.block([[A, B], [np.zeros((1, 3))]]) * T)
    return M[:2, :2], M[:2, 2]


def recursion(count: int, T: float, torque, start, delay: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return states at samples and the torques computed there: torque(k, q, v); the delay is less than T."""
    (early, push_early), (late, push_late) = held(delay), held(T - delay)
    x, u, states, torques = np.array(start, dtype=float), None, [], []
    for k in range(count):
        states.append(x)
        new = torque(k, *x)
        torques.append(new)
        x = early @ x + push_early * (new if u is None else u)
        x, u = late @ x + push_late * new, new
    return np.array(states), np.array(torques)


@pytest.mark.parametrize("integrator", [{"method": "rk4", "step": 1e-3}, FINE, {"method": "dop853", "rtol": 1e-12, "atol": 1e-13},
                                        {"method": "rodas5p", "rtol": 1e-11, "atol": 1e-12},
                                        {"method": "RK45", "rtol": 1e-12, "atol": 1e-13}], ids=lambda given: given["method"])
def test_a_linear_robot_obeys_its_difference_equation(of, integrator):
    run = run_scenario(of(integrator=integrator, initial={"q": {"x": -0.3}, "v": {"x": 0.4}}))
    Phi, Gamma, *_ = cont2discrete((A, B, np.eye(2), np.zeros((2, 1))), 0.05)
    x = np.array([-0.3, 0.4])
    for k in range(20):
        np.testing.assert_allclose([run.q[k, 0], run.v[k, 0]], x, rtol=0, atol=1e-10)
        u = 60 * (0.2 - x[0]) - 12 * x[1]
        assert run.tau[k, 0] == pytest.approx(u, abs=1e-8)
        x = Phi @ x + Gamma[:, 0] * u
    np.testing.assert_allclose([run.q[20, 0], run.v[20, 0]], x, rtol=0, atol=1e-10)
    assert run.check["energy_balance_relative"] < 1e-8


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.13])
def test_a_torque_acts_after_the_delay(of, delay):
    run = run_scenario(of(law={"pd": {"kp": 10, "kd": 2, "target": 0.2}}, sampling={"period": 0.05, "delay": delay}))
    whole, rest = divmod(round(delay * 1000), 50)
    asked = []

    def late(k, q, v):
        asked.append(10 * (0.2 - q) - 2 * v)
        return asked[max(0, k - whole)]
    states, _ = recursion(21, 0.05, late, [0, 0], rest / 1000)
    np.testing.assert_allclose(run.q[:, 0], states[:, 0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.v[:, 0], states[:, 1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.07])
@pytest.mark.parametrize("integrator", [{"method": "rk4", "step": 1e-3}, {"method": "rodas5p", "rtol": 1e-11, "atol": 1e-12},
                                        {"method": "RK45", "rtol": 1e-12, "atol": 1e-13}], ids=lambda given: given["method"])
def test_a_first_order_hold_obeys_its_difference_equation(of, integrator, delay):
    """Force and slope are states of a matrix exponential."""
    run = run_scenario(of(law={"pd": {"kp": 10, "kd": 2, "target": "0.2*cos(4*t)"}}, integrator=integrator,
                          sampling={"rate": 20, "delay": delay, "hold": "first"}, initial={"q": {"x": -0.3}, "v": {"x": 0.4}}))
    M, T = np.block([[A, B, np.zeros((2, 1))], [np.zeros((1, 3)), 1.0], [np.zeros((1, 4))]]), 0.05
    whole, rest = divmod(round(delay * 1000), 50)
    early, late = expm(M * rest / 1000), expm(M * (T - rest / 1000))
    x, asked, acting = np.array([-0.3, 0.4]), [], []
    for k in range(20):
        np.testing.assert_allclose([run.q[k, 0], run.v[k, 0]], x, rtol=0, atol=1e-10)
        asked.append(10 * (0.2 * np.cos(0.2 * k) - x[0]) + 2 * (-0.8 * np.sin(0.2 * k) - x[1]))
        acting.append(np.array([asked[k], (asked[k] - asked[k - 1]) / T if k else 0.0]))
        before, now = (acting[max(0, k - n)] for n in (whole + 1, whole))
        y = early @ np.append(x, [before[0] + before[1] * (T - rest / 1000), before[1]])
        x = (late @ np.append(y[:2], now))[:2]
    np.testing.assert_allclose([run.q[20, 0], run.v[20, 0]], x, rtol=0, atol=1e-10)
    assert run.check["energy_balance_relative"] < 1e-8


def test_a_first_order_hold_is_exact_where_the_torque_grows_evenly(of):
    """A mass without spring and damper, pushed by 3 + 5 t: from the second sample on it moves as if nothing were sampled."""
    bare = CART.replace(", damping: 0.3, stiffness: 5", "")
    run = run_scenario(of(bare, sampling={"rate": 20, "hold": "first"}, joints={"x": {"torque": 0}}),
                       controller=lambda t, q, v: [3 + 5 * t])
    t = run.t
    lost = 5 * 0.05**2 / 2 / MASS                              # of the velocity, in the first period
    np.testing.assert_allclose(run.v[1:, 0], ((3 * t + 5 * t**2 / 2) / MASS - lost)[1:], rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.tau[1:, 0], 3 + 5 * t[1:], rtol=0, atol=1e-11)


def test_a_first_order_hold_stops_at_the_limit(of):
    """The line is cut where it passes 4 N between two samples, and a joint that had no law begins with a constant torque."""
    law = {"pd": {"kp": 8, "kd": 0, "target": "0.2 + 3*(t - 0.25)"}}
    phases = {"free": {"joints": {"x": {"torque": 0}}}, "held": {"joints": {"x": {"torque": law}}}}
    keys = of(sampling={"rate": 20, "hold": "first"}, saturate=True, output_step=0.005, phases=phases,
              events={"catch": {"at": 0.21, "do": {"phase": "held"}}}, initial={"v": {"x": -0.4}}, duration=0.5)
    del keys["joints"]
    run = run_scenario(keys)
    at = {round(t, 9): k for k, t in enumerate(run.t)}
    tau = run.tau[:, 0]
    assert tau[at[0.245]] == 0.0 and tau[at[0.25]] == tau[at[0.295]] != 0.0
    line = tau[at[0.3]] + (tau[at[0.3]] - tau[at[0.25]]) * np.arange(10) / 10
    np.testing.assert_allclose(tau[at[0.3]:at[0.35]], np.minimum(line, 4.0), rtol=0, atol=1e-12)
    assert 0 < np.count_nonzero(line > 4.0) < 9 and run.check["energy_balance_relative"] < 1e-8


def test_encoders_and_converters_have_a_resolution(of):
    run = run_scenario(of(sampling={"rate": 20, "quantization": {"q": 0.01, "v": {"x": 0.05}, "tau": 0.1}}))

    def coarse(k, q, v):
        return np.round((60 * (0.2 - np.round(q / 0.01) * 0.01) - 12 * np.round(v / 0.05) * 0.05) / 0.1) * 0.1
    states, torques = recursion(21, 0.05, coarse, [0, 0])
    np.testing.assert_allclose(run.q[:, 0], states[:, 0], rtol=0, atol=1e-11)
    assert np.array_equal(run.tau[:-1, 0], torques[:-1])


def test_pid_at_its_limit_does_not_wind_up(of):
    law = {"pid": {"kp": 60, "ki": 80, "kd": 12, "target": "0.3 + 0.1*t"}}
    run = run_scenario(of(law=law, saturate=True, duration=3))
    z, wound = [0.0], 0

    def pid(k, q, v):
        nonlocal wound
        error = 0.3 + 0.1 * 0.05 * k - q
        asked = 60 * error + 12 * (0.1 - v) + z[0]
        if abs(asked) > 4 and asked * error > 0:
            wound += 1
        else:
            z[0] += 80 * 0.05 * error
        return np.clip(asked, -4, 4)
    states, torques = recursion(61, 0.05, pid, [0, 0])
    assert wound > 3
    np.testing.assert_allclose(run.q[:, 0], states[:, 0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.tau[:-1, 0], torques[:-1], rtol=0, atol=1e-9)
    assert any("the force of x is at its limit of 4 N from t = 0 s" in note for note in map(str, run.warnings))


def test_an_integral_holds_a_weight_where_pd_sags(of):
    """Also a weight that is attached between two samples."""
    pick = {"pick": {"at": 4.013, "do": {"attach": {"link": "cart", "mass": 1}}}}
    keys = of(LIFT, {"pid": GAINS | {"ki": 90}}, sampling={"rate": 50}, duration=30, output_step=0.5, events=pick)
    run = run_scenario(keys)
    assert run.q[-1, 0] == pytest.approx(0.2, abs=1e-7)
    assert run.tau[-1, 0] == pytest.approx(3 * 9.81, abs=1e-5)
    at = np.flatnonzero(run.t == 4.013)
    assert len(at) == 2 and run.tau[at[0], 0] == run.tau[at[1], 0]
    keys["joints"]["x"]["torque"] = {"pd": GAINS}
    assert run_scenario(keys).q[-1, 0] == pytest.approx(0.2 - 3 * 9.81 / 60, abs=1e-7)


@pytest.mark.parametrize("law", [{"law": "computed_torque", "poles": [-8, -12], "motion": {"*": "0.4*sin(3*t)"}},
                                 {"law": "gravity_compensation"},
                                 {"law": "state_feedback", "gain": [[30, 2, 4, 1], [1, 20, 0, 3]],
                                  "setpoint": {"q": {"elbow": 0.2}}}],
                         ids=lambda given: given["law"])
def test_laws_tend_to_the_continuous_ones(of, law):
    """With first order in the period. A torque of `joints` acts in addition in both."""
    keys = of(ARM, control=law, duration=0.4, output_step=0.1, initial={"q": {"shoulder": 0.5}, "v": {"elbow": 1}},
              joints={"elbow": {"torque": "0.3*cos(5*t) - 0.2*v"}})
    exact = run_scenario({key: value for key, value in keys.items() if key != "sampling"})
    off = [np.abs(run_scenario(keys | {"sampling": {"period": T}}).q - exact.q).max() for T in (4e-3, 2e-3, 1e-3)]
    assert off[2] > 1e-6 and off[0] / off[1] == pytest.approx(2, abs=0.1) and off[1] / off[2] == pytest.approx(2, abs=0.05)


def test_a_first_order_hold_tends_to_the_continuous_law_by_second_order(of):
    keys = of(ARM, control={"law": "computed_torque", "poles": [-8, -12], "motion": {"*": "0.4*sin(3*t)"}}, duration=0.4,
              output_step=0.1)
    exact = run_scenario({key: value for key, value in keys.items() if key != "sampling"})
    off = [np.abs(run_scenario(keys | {"sampling": {"period": T, "hold": "first"}}).q - exact.q).max()
           for T in (8e-3, 4e-3, 2e-3)]
    assert off[2] > 1e-8 and off[0] / off[1] == pytest.approx(4, abs=0.4) and off[1] / off[2] == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize("hold", ["zero", "first"])
def test_loops_give_what_lines_give_and_runs_repeat_themselves(of, monkeypatch, hold):
    keys = of(ARM, control={"law": "gravity_compensation"}, sampling={"rate": 30, "hold": hold, "quantization": {"q": 1e-3}},
              joints={"elbow": {"torque": {"pid": {"kp": 9, "ki": 2, "kd": 1, "target": "0.2*t", "gravity": True}}}},
              saturate={"shoulder": 5}, duration=0.5)
    line, again = run_scenario(keys), run_scenario(keys)
    assert all(np.array_equal(getattr(line, name), getattr(again, name)) for name in ("q", "v", "a", "tau", "work"))
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    loops = run_scenario(keys)
    np.testing.assert_allclose(loops.q, line.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(loops.tau, line.tau, rtol=0, atol=1e-9)


def test_gains_that_are_too_large_for_the_rate_are_told(of):
    with pytest.raises(ComputationError, match="the gains may be too large for the rate of sampling"):
        run_scenario(of(law={"pd": {"kp": 60, "kd": 2e4, "target": 0.2}}, sampling={"rate": 200}, duration=3,
                        integrator={"method": "rk4", "step": 5e-3}))


def test_a_motion_that_becomes_meaningless_is_not_complete(of, tmp_path):
    """It ended at 2.6e26 rad, with an energy balance of 4e-15."""
    (tmp_path / "w.yaml").write_text("name: w\nlinks: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                                     "joints: {j: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}}\n")
    with pytest.raises(ComputationError, match=r"beyond 1e12 .* at t = 13\.62 s; .*too large for the rate of sampling") as error:
        run_scenario({"robot": str(tmp_path / "w.yaml"), "duration": 30, "sampling": {"rate": 3}, "initial": {"q": {"j": 0.1}},
                      "joints": {"j": {"torque": {"pd": {"kp": 20, "kd": 8, "target": 0}}}}})
    assert np.abs(error.value.result.q).max() < 1e12 and error.value.result.status == "diverged"
    assert "tried" not in str(error.value)


def test_a_controller_goes_on_from_its_plain_values(of):
    """Between samples and during a delay, bit by bit."""
    s = scenario_of(of(law={"pid": GAINS | {"ki": 40}}, sampling={"rate": 20, "delay": 0.03, "hold": "first"}))
    model = load(s.robot)
    problem = compile_schedule(s, model).problem
    one, other = SampledController(s.sampling, model), SampledController(s.sampling, model)
    first = solve_segment(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 0.51]), Options("rk4"), controller=one)
    arrays, values = split_arrays(one.state_dict())
    other.load_state_dict(join_arrays(json.loads(json.dumps(values)), arrays))
    assert other.next_time == pytest.approx(0.53) and other.integral.any()
    ends = [solve_segment(problem, first.end, np.array([0.51, 0.8]), Options("rk4"), controller=each).end
            for each in (one, other)]
    assert np.array_equal(ends[0].q, ends[1].q) and np.array_equal(ends[0].v, ends[1].v)


def test_a_target_may_read_where_a_link_is(of):
    """The target is 0.1 m ahead of the cart: the error is constant, and its integral grows."""
    run = run_scenario(of(law={"pid": {"kp": 60, "ki": 30, "kd": 12, "target": "0.5*q(x) + 0.5*x(cart) + 0.1"}}))
    z = [0.0]

    def pid(k, q, v):
        asked = 60 * 0.1 + z[0]
        z[0] += 30 * 0.05 * 0.1
        return asked
    states, torques = recursion(21, 0.05, pid, [0, 0])
    np.testing.assert_allclose(run.q[:, 0], states[:, 0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.tau[:-1, 0], torques[:-1], rtol=0, atol=1e-9)
    assert run.tracking is None


def test_phases_begin_between_samples(of):
    """The torque of before ends with its law, that of a new law begins at the next sample; integrals begin anew."""
    pid = {"pid": {"kp": 40, "ki": 60, "kd": 8, "target": 0.2}}
    phases = {"held": {"joints": {"x": {"torque": pid}}}, "free": {"joints": {"x": {"torque": "0.5"}}}}
    events = {"release": {"at": 0.26, "do": {"phase": "free"}}, "catch": {"at": 0.52, "do": {"phase": "held"}}}
    keys = of(phases=phases, events=events, output_step=0.01, integrator={"method": "rk4", "step": 1e-3})
    del keys["joints"]
    run = run_scenario(keys)
    def tau(t):
        return run.tau[np.flatnonzero(np.isclose(run.t, t, atol=1e-9))[-1], 0]
    assert tau(0.27) == tau(0.45) == 0.5 and tau(0.52) == tau(0.54) == 0.0
    k = np.flatnonzero(np.isclose(run.t, 0.55, atol=1e-9))[-1]
    assert tau(0.55) == tau(0.59) == pytest.approx(40 * (0.2 - run.q[k, 0]) - 8 * run.v[k, 0], abs=1e-12)


def test_an_event_between_samples_is_located(of):
    event = {"there": {"when": "q(x)", "value": 0.1, "do": "stop"}}
    run = run_scenario(of(events=event))
    k = int(run.t[-1] / 0.05)
    (Phi, Gamma), u = held(run.t[-1] - 0.05 * k), 60 * (0.2 - run.q[k, 0]) - 12 * run.v[k, 0]
    q, v = Phi @ [run.q[k, 0], run.v[k, 0]] + Gamma * u
    assert abs(q - 0.1) < 1e-12 * v and 0 < run.t[-1] - 0.05 * k < 0.05
    assert run.tau[-1, 0] == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("integrator", [FINE, {"method": "RK45", "rtol": 1e-12, "atol": 1e-13}],
                         ids=lambda given: given["method"])
def test_an_event_reads_a_force_that_jumps_at_a_sample(of, integrator):
    event = {"weak": {"when": "tau(x)", "value": 3, "direction": "falling", "once": True, "do": {"set": {"v": {"x": 0}}}}}
    run = run_scenario(of(events=event, integrator=integrator))
    before = run_scenario(of())
    first = int(np.flatnonzero(before.tau[:, 0] < 3)[0])
    assert [one.t for one in run.events] == [pytest.approx(0.05 * first, abs=1e-12)]
    assert run.events[0].dv[0] == pytest.approx(-before.v[first, 0], abs=1e-9)
    at = np.flatnonzero(np.isclose(run.t, 0.05 * first))
    assert len(at) == 2 and run.tau[at[0], 0] == run.tau[at[1], 0] == pytest.approx(before.tau[first, 0], abs=1e-8)


def test_the_sum_with_a_continuous_torque_is_limited(of):
    """Its kinks lie between samples, where steps end: the force is what it should be at all rows."""
    given = []

    def pd(t, q, v):
        given.append(60 * (0.2 - q[0]) - 12 * v[0])
        return {"x": given[-1]}
    run = run_scenario(of(joints={"x": {"torque": "3*sin(9*t) - 20*q"}}, saturate=True, output_step=0.01), controller=pd)
    at = np.floor(run.t[:-1] * 20 + 1e-9).astype(int)
    asked = np.clip(np.clip(given, -4, 4)[at] + 3 * np.sin(9 * run.t[:-1]) - 20 * run.q[:-1, 0], -4, 4)
    np.testing.assert_allclose(run.tau[:-1, 0], asked, rtol=0, atol=1e-12)
    assert 10 < np.count_nonzero(np.abs(asked) == 4) < 90
    assert run.check["energy_balance_relative"] < 1e-9


# functions of the user ------------------------------------------------------------------------------------------------------
def test_a_function_gives_torques(of):
    """Once a sample, with what is measured; as an array or by joint; next to the laws, within the limits."""
    times = []

    def pd(t, q, v):
        times.append(t)
        q += 1                                                 # what it gets is its own
        return {"x": 60 * (1.2 - q[0]) - 12 * v[0]}
    keys = of(joints={"x": {"torque": 0}})
    by_hand = run_scenario(keys, controller=pd)
    assert times == [k / 20 for k in range(20)]
    np.testing.assert_allclose(by_hand.q, run_scenario(of()).q, rtol=0, atol=1e-13)
    half = run_scenario(of(law={"pd": {"kp": 30, "kd": 6, "target": 0.2}}),
                        controller=lambda t, q, v: np.array([30 * (0.2 - q[0]) - 6 * v[0]]))
    np.testing.assert_allclose(half.q, by_hand.q, rtol=0, atol=1e-13)
    assert np.abs(run_scenario(of(saturate=True), controller=pd).tau).max() == 4.0


@pytest.mark.parametrize("function, message", [
    (lambda t, q, v: 1 / (t - 0.1), "at t = 0.1 s, raised ZeroDivisionError"),
    (lambda t, q, v: np.zeros(3), r"at t = 0 s, must return 1 torques, .* returned an array of shape \(3,\)"),
    (lambda t, q, v: None, "must return 1 torques, .* it returned None"),
    (lambda t, q, v: {"y": 1.0}, "returned a torque of 'y'; the robot has the joints x"),
    (lambda t, q, v: {"x": "strong"}, "must return 1 torque for joint x; it returned str"),
    (lambda t, q, v: np.array([np.nan]), "the sampled torque of x is not a finite number at t = 0 s")])
def test_a_function_that_fails_is_named_with_its_time(of, function, message):
    with pytest.raises(ComputationError, match=message):
        run_scenario(of(), controller=function)


def test_a_function_needs_samples(of):
    with pytest.raises(UsageError, match="a controller is called at sample times: the scenario needs the key sampling"):
        run_scenario(of(sampling=None), controller=lambda t, q, v: [0.0])
    with pytest.raises(UsageError, match="controller must be a function"):
        run_scenario(of(), controller=3)


# errors --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("keys, message", [
    ({"sampling": {}}, r"sampling takes exactly one of rate, period.*got neither"),
    ({"sampling": {"rate": 10, "period": 0.1}}, "got rate and period"),
    ({"sampling": {"rate": 0}}, r"sampling\.rate"),
    ({"sampling": {"rate": 10, "delay": -1}}, r"sampling\.delay"),
    ({"sampling": {"rate": 10, "quantization": {"q": -1}}}, r"sampling\.quantization\.q"),
    ({"sampling": {"rate": 10, "quantization": {"q": {"y": 1}}}}, "no such joint"),
    ({"sampling": {"rate": 10, "holds": "first"}}, "unknown key"),
    ({"sampling": {"rate": 10, "hold": "second"}}, r"sampling\.hold"),
    ({"sampling": {"rate": 1e9}},
     r"too many samples: about 1e\+09, more than 1e\+08: expected at most 1e\+08 Hz, got 1000000000.0"),
    ({"joints": {}}, "the sampled controller has no law"),
    ({"limits": "hard"}, "hard stops cannot be combined with sampling"),
    ({"joints": {"x": {"torque": {"pid": {"kp": 1, "target": 0}}}}}, "ki"),
    ({"joints": {"x": {"torque": {"pid": {"kp": 1, "ki": [1, 2], "target": 0}}}}},
     r"joint x has 1 coordinate.*got '2 ki values'")])
def test_bad_values_are_told_in_a_line(of, keys, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(of(**keys))
    assert "\n" not in str(caught.value)


def test_a_sampled_controller_is_not_linearized(of):
    with pytest.raises(ScenarioError, match=r"a sampled controller has no linear system .* sampling=null"):
        linearize_scenario(of())
    for path, overrides in ((of(sampling=None), ()), (of(), ["sampling=null"])):
        assert linearize_scenario(path, overrides=overrides).system.A[1, 0] == -(STIFFNESS + 60) / MASS


def test_it_reads_back_what_it_writes(of, tmp_path):
    keys = of(law={"pid": GAINS | {"ki": 2}},
              sampling={"rate": 20, "delay": 0.01, "hold": "first", "quantization": {"q": 0.1, "tau": {"x": 2}}})
    first = scenario_of(keys)
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(first)))
    assert scenario_of(tmp_path / "again.yaml") == first
