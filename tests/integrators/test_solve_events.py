"""Events, switches and samples with the variational and the generalized-alpha method: closed forms and other methods."""
import json
import math

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ScenarioError
from liedyn.integrators.generalized_alpha import run_alpha
from liedyn.integrators.variational import run_variational

METHODS = "variational", "generalized_alpha"
BALL = {"links": {"ball": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01]}},
        "joints": {"z": {"type": "prismatic", "parent": "world", "child": "ball", "axis": [0, 0, 1],
                         "limits": {"lower": -9, "upper": 9}}}}
PENDULUM = {"links": {"rod": {"mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.02, 0.02, 0.001]}},
            "joints": {"hinge": {"type": "continuous", "parent": "world", "child": "rod", "axis": [0, 1, 0], "damping": 0.1}}}
G = 9.81


def bounce(restitution):
    impact = {"impact": {"joint": "z", "restitution": restitution}}
    return {"bounce": {"when": "q(z)", "direction": "falling", "do": impact}}


def run(scenario, robot, method, step=1e-3, **keys):
    return ld.run_scenario(scenario(json.dumps(robot), **keys, integrator={"method": method} | ({"step": step} if step else {})))


def assert_second_order(scenario, robot, method, **keys):
    """Compare times of events and the final state with dop853: half the step gives a quarter of the error."""
    exact, errors = run(scenario, robot, "dop853", None, **keys), []
    for step in (4e-3, 2e-3):
        found = run(scenario, robot, method, step, **keys)
        assert [event.name for event in found.events] == [event.name for event in exact.events]
        times = [abs(event.t - other.t) for event, other in zip(found.events, exact.events, strict=True)]
        errors.append((max(times, default=0.0), np.abs(found.q[-1] - exact.q[-1]).max(), np.abs(found.v[-1] - exact.v[-1]).max()))
    for large, small in zip(*errors, strict=True):
        assert small < 1e-3 and (small < 0.3 * large or large < 1e-12)
    return exact


@pytest.mark.parametrize("method", METHODS)
def test_a_ball_bounces_at_the_times_of_the_closed_form(scenario, method, worst):
    """Both methods are exact for parabolas. The last step before each bounce has another length."""
    found = run(scenario, BALL, method, 7e-3, duration=3, output_step=0.1, initial={"q": {"z": 1.0}}, events=bounce(0.8))
    fall = math.sqrt(2 / G)
    times = fall + 2 * fall * np.cumsum([0, *(0.8**k for k in range(1, len(found.events)))])
    assert len(found.events) == 6
    assert worst(f"{method}: time of a bounce", np.abs([event.t for event in found.events] - times).max()) < 1e-12
    rows = np.flatnonzero(np.diff(found.t) == 0.0)                       # the states before and after
    np.testing.assert_allclose(found.v[rows + 1], -0.8 * found.v[rows], rtol=1e-12)
    assert np.abs(found.q[rows]).max() < 1e-12 and found.check["energy_balance_relative"] < 1e-12


def test_hard_stops_of_the_variational_method(scenario):
    """A ball on the lower limit of its joint has the same closed form. Impacts are named after the stop."""
    stopped = BALL | {"joints": {"z": BALL["joints"]["z"] | {"limits": {"lower": 0, "upper": 9}}}}
    found = run(scenario, stopped, "variational", 7e-3, duration=3, output_step=0.1, initial={"q": {"z": 1.0}},
                limits={"mode": "hard", "restitution": 0.8})
    fall = math.sqrt(2 / G)
    times = fall + 2 * fall * np.cumsum([0, *(0.8**k for k in range(1, 6))])
    np.testing.assert_allclose([event.t for event in found.events], times, rtol=0, atol=1e-12)
    rows = np.flatnonzero(np.diff(found.t) == 0.0)
    np.testing.assert_allclose(found.v[rows + 1], -0.8 * found.v[rows], rtol=1e-12)
    np.testing.assert_allclose([event.lost for event in found.events], 0.36 * G * 0.64**np.arange(6), rtol=1e-11)
    assert found.check["energy_balance_relative"] < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_is_passed_for_less_than_a_step(scenario, method):
    """The apex is 0.5 mm above the value, for 0.02 s of a step of 0.1 s."""
    height = 0.5
    found = run(scenario, BALL, method, 0.1, duration=0.9, output_step=0.9, initial={"v": {"z": math.sqrt(2 * G * height)}},
                events={"pass": {"when": "q(z)", "value": height - 5e-4, "do": "record"}})
    apex, before = math.sqrt(2 * height / G), math.sqrt(2 * 5e-4 / G)
    np.testing.assert_allclose([event.t for event in found.events], [apex - before, apex + before], rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_impacts_that_accumulate_end_in_rest(scenario, method):
    """The coordinate at rest moves only after `set` gives it a speed; then it follows a parabola."""
    found = run(scenario, BALL, method, 2e-3, duration=2, output_step=0.05, initial={"q": {"z": 0.2}},
                events=bounce(0.4) | {"up": {"at": 1.5, "do": {"set": {"v": {"z": 2.0}}}}})
    fall = math.sqrt(0.4 / G)
    end = fall + 2 * fall * 0.4 / 0.6
    at_rest = (found.t > end + 1e-6) & (found.t < 1.5)
    assert at_rest.sum() > 10 and np.abs(found.q[at_rest]).max() < 1e-12 and np.abs(found.v[at_rest]).max() == 0.0
    assert abs(found.q[-1, 0] - bounce_height(2.0, 0.5)) < 1e-11


def bounce_height(speed, t):
    """Return the height of a ball that is thrown up and bounces with restitution 0.4."""
    flight = 2 * speed / G
    return speed * t - G * t * t / 2 if t < flight else bounce_height(0.4 * speed, t - flight)


@pytest.mark.parametrize("method", METHODS)
def test_phases_known_times_and_zero_crossings(scenario, method):
    exact = assert_second_order(
        scenario, PENDULUM, method, duration=2.5, output_step=0.1, initial={"q": {"hinge": 1.0}},
        phases={"free": {}, "driven": {"joints": {"hinge": {"torque": "2*sin(t)"}}}},
        events={"zero": {"when": "q(hinge)", "do": {"phase": "driven"}}, "turn": {"when": "v(hinge)", "do": {"phase": "free"}},
                "push": {"every": 0.7, "do": {"set": {"v": {"hinge": 1.0}}}}})
    assert len(exact.events) > 7


@pytest.mark.parametrize("method", METHODS)
def test_a_joint_locks_and_a_force_jumps_over_the_value_of_an_event(scenario, method):
    """Two equal joints: the second one locks while it moves, which the first one feels. The torque jumps at 0.81 s."""
    robot = {"links": {**PENDULUM["links"], "tip": PENDULUM["links"]["rod"]},
             "joints": {**PENDULUM["joints"], "elbow": PENDULUM["joints"]["hinge"] | {
                 "parent": "rod", "child": "tip", "origin": {"xyz": [0, 0, -1]}}}}
    exact = assert_second_order(
        scenario, robot, method, duration=1.5, output_step=0.1, initial={"q": {"hinge": 1.0}, "v": {"elbow": -2.0}},
        joints={"hinge": {"torque": "3*step(t - 0.81)"}},
        events={"latch": {"when": "q(elbow)", "value": -0.1, "once": True, "do": {"lock": "elbow"}},
                "force": {"when": "tau(hinge)", "value": 1.0, "do": {"unlock": "elbow"}}})
    assert [event.name for event in exact.events] == ["latch", "force"] and exact.events[1].t == 0.81


@pytest.mark.parametrize("method", METHODS)
def test_switches_of_the_state_and_sampled_torques(scenario, method):
    assert_second_order(scenario, PENDULUM, method, duration=1.5, output_step=0.1, initial={"q": {"hinge": 1.0}},
                        joints={"hinge": {"torque": "-3*clip(q, -0.3, 0.3) + abs(v) + step(q - 0.5)"}})
    assert_second_order(scenario, PENDULUM, method, duration=1.5, output_step=0.1, initial={"q": {"hinge": 1.0}},
                        sampling={"rate": 37, "delay": 0.003},
                        joints={"hinge": {"torque": {"pid": {"kp": 5, "ki": 2, "kd": 1, "target": 0.2}}}})
    steps = {"generalized_alpha": run_alpha, "variational": run_variational}[method]
    assert len(steps.overloads) == 1                        # with and without laws: a compilation takes ten seconds


def test_an_impact_of_a_mechanism(scenario):
    """Velocities before the impact satisfy the loop, too: the row before it has no drift."""
    keys = {"duration": 0.8, "output_step": 0.1, "initial": {"q": {"knee": -1.3694, "rocker": -1.7722}, "v": {"crank": 4}},
            "joints": {"crank": {"torque": "0.02*sin(5*t)"}},
            "events": {"hit": {"when": "q(crank)", "value": 0.6, "direction": "rising",
                               "do": {"impact": {"joint": "crank", "restitution": 0.5}}}}}
    four_bar = ld.load("robots/four_bar.yaml")
    exact = ld.simulate(four_bar, **keys, method="dop853")
    found = [ld.simulate(four_bar, **keys, method="generalized_alpha", integrator={"step": h}) for h in (2e-3, 1e-3)]
    errors = [np.abs(one.q[-1] - exact.q[-1]).max() for one in found]
    assert errors[1] < 0.3 * errors[0] < 1e-3
    for one in found:
        row = np.flatnonzero(np.diff(one.t) == 0.0)[0]
        residual = ld.constraint_jacobian(four_bar, one.q[row]) @ one.v[row]
        assert np.abs(residual).max() < 1e-12 and abs(one.q[row, 0] - 0.6) < 1e-12


@pytest.mark.parametrize("prescribe", [{"velocity": "2*sin(t)"}, {"acceleration": 0}])
def test_variational_rejects_phases_with_prescribed_motion(scenario, prescribe):
    """Also of a zero acceleration, unless the joint is at rest."""
    with pytest.raises(ScenarioError, match=r"variational does not support prescribed motions: expected another "
                                            r"integrator\.method, got 'hinge'"):
        run(scenario, PENDULUM, "variational", initial={"q": {"hinge": 1.0}},
            phases={"free": {}, "driven": {"impulsive": True, "joints": {"hinge": {"prescribe": prescribe}}}},
            events={"go": {"at": 0.3, "do": {"phase": "driven"}}})


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "Radau", "LSODA"])
def test_row_before_a_jump_has_the_forces_before_it(scenario, method):
    """A force that jumps at 0.5 s triggers an event there: the two rows show both sides."""
    found = run(scenario, BALL, method, None, duration=1, output_step=0.1, joints={"z": {"torque": f"{G} + 4*step(t - 0.5)"}},
                events={"lift": {"when": "q(z) + step(t - 0.5)", "value": 0.5, "do": "record"}})
    assert [(event.name, event.t) for event in found.events] == [("lift", 0.5)]
    k = np.flatnonzero(found.t == 0.5)
    assert len(k) == 2
    np.testing.assert_allclose(found.tau[k, 0], [G, G + 4], rtol=1e-14)
    np.testing.assert_allclose(found.a[k, 0], [0, 4], atol=1e-14)
