"""Runs of mechanisms whose constraint equations consist of rounding or depend on each other."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import PLACES, coaxial, five_bar, moved, parallelogram, placed, projected, spherical

PLACE = pytest.mark.parametrize("place", ["home", "near", "a kilometre away"])
SINGULAR = "passed a singular configuration at t = 0.5"


@pytest.fixture
def scenario(tmp_path):
    def made(robot, **keys):
        path = tmp_path / "robot.yaml"
        ld.save(robot, path, force=True)
        return {"robot": str(path), **keys}
    return made


def named(robot, x):
    return {joint.name: float(value) for joint, value in zip(robot.joints, x, strict=True)}


@PLACE
@pytest.mark.parametrize("method", ["rk4", "dopri5", "dop853", "rodas5p", "Radau", "BDF", "LSODA", "generalized_alpha"])
def test_a_parallelogram_passes_its_flat_configuration(scenario, method, place):
    """Without gravity at 1 rad/s it continues, with a warning, for each method. Implicit methods satisfy their tolerances."""
    robot = moved(parallelogram(0.4).robot, PLACES[place])
    run = ld.run_scenario(scenario(
        robot, duration=1.0, gravity=[0.0, 0.0, 0.0], output_step=0.05, integrator={"method": method},
        initial={"q": named(robot, (-0.5, 0.5, -0.5)), "v": named(robot, (1.0, -1.0, 1.0))}))
    np.testing.assert_allclose(run.q[-1], [0.5, -0.5, 0.5], atol=1e-6)
    assert run.check["energy_balance_relative"] < 1e-6 and np.abs(run.multipliers).max() < 0.6      # 0.5; a kilometre away, 0.54
    assert [SINGULAR in note or "configuration at t = 0.49" in note for note in map(str, run.warnings)] == [True]


@PLACE
@pytest.mark.parametrize(("dt", "method"), [(1e-3, "rk4"), (0.02, "rk4"), (0.02, "semi_implicit")])
def test_rollouts_pass_the_flat_configuration(place, dt, method):
    """With 0.02 s a stage of the step is exactly there, and so is a state of the second run: `semi_implicit` rejects that."""
    model = ld.build(replace(moved(parallelogram(0.4).robot, PLACES[place]), gravity=(0.0, 0.0, 0.0)))
    q = np.array([[-0.51, 0.51, -0.51], [-0.3, 0.3, -0.3]])
    found = ld.rollout(model, q, np.tile([1.0, -1.0, 1.0], (2, 1)), dt=dt, steps=round(1.0 / dt), method=method)
    assert "passed a singular configuration at t = 0." in str(found.warnings[0])
    if method == "semi_implicit":
        assert "singular configuration" in found.reasons[1]
    ended = 1 if method == "semi_implicit" else 2
    np.testing.assert_allclose(found.q[:ended, -1], (q + np.array([1.0, -1.0, 1.0]))[:ended], atol=1e-9)


@PLACE
@pytest.mark.parametrize("action", [{"lock": "p"}, {"impact": {"joint": "r", "restitution": 0.5}}])
def test_impulses_of_a_planar_mechanism(scenario, place, action):
    """A five-bar has one degree of freedom left when a joint stops suddenly, in single runs and in rollouts."""
    case = placed("five-bar", place)
    v = projected(case, case.v)
    k, e = (0, 0.0) if "lock" in action else (2, -0.5)
    robot = moved(five_bar().robot, PLACES[place])
    run = ld.run_scenario(scenario(
        robot, duration=0.2, output_step=0.1, initial={"q": named(robot, case.q), "v": named(robot, v)},
        integrator={"method": "dop853"}, events={"e": {"at": 0.1, "do": action}}))
    i, j = np.flatnonzero(run.t == 0.1)
    before = case._replace(q=run.q[i])
    expected = projected(before, run.v[i], np.eye(4)[[k]], [e * run.v[i, k]])
    np.testing.assert_allclose(run.v[j], expected, atol=1e-9)


@PLACE
def test_impacts_in_rollouts_are_those_of_runs(scenario, place):
    case = placed("five-bar", place)
    v, robot = projected(case, case.v), moved(five_bar().robot, PLACES[place])
    events = {"e": {"at": 0.05, "do": {"impact": {"joint": "r", "restitution": 0.5}}}}
    run = ld.run_scenario(scenario(robot, duration=0.1, initial={"q": named(robot, case.q), "v": named(robot, v)}, events=events,
                                   integrator={"method": "rk4", "step": 1e-3}))
    found = ld.rollout(case.model, case.q, v, dt=1e-3, steps=100, events=events)
    np.testing.assert_allclose(found.v[-1], run.v[-1], atol=1e-8)


@PLACE
def test_a_second_lock_in_a_mechanism_at_rest(scenario, place):
    """The first lock stops a parallelogram; the second depends on it. Simultaneous locks act, too."""
    robot = moved(parallelogram(0.4).robot, PLACES[place])
    for events in ({"one": {"at": 0.1, "do": {"lock": "jb"}}, "two": {"at": 0.2, "do": {"lock": "ja"}}},
                   {"both": {"at": 0.1, "do": {"lock": ["jb", "ja"]}}}):
        run = ld.run_scenario(scenario(robot, duration=0.3, output_step=0.1, events=events, integrator={"method": "dopri5"},
                                       initial={"q": named(robot, (0.4, -0.4, 0.4)), "v": named(robot, (1.0, -1.0, 1.0))}))
        assert np.abs(run.v[-1]).max() < 1e-12 and run.t[-1] == 0.3


@PLACE
def test_a_lock_after_impacts_have_come_to_an_end(scenario, place):
    """One joint of a parallelogram bounces on a stop until it rests there; then another one is locked."""
    robot = moved(parallelogram(0.4).robot, PLACES[place])
    stop = {"when": "q(jb)", "value": 0.2, "direction": "falling", "do": {"impact": {"joint": "jb", "restitution": 0.3}}}
    run = ld.run_scenario(scenario(
        robot, duration=1.5, output_step=0.5, events={"stop": stop, "hold": {"at": 1.2, "do": {"lock": "ja"}}},
        integrator={"method": "dopri5"}, initial={"q": named(robot, (0.4, -0.4, 0.4)), "v": named(robot, (-1.0, 1.0, -1.0))},
        joints={"ja": {"torque": -40.0}}))
    np.testing.assert_allclose(run.q[-1], [0.2, -0.2, 0.2], atol=1e-9)
    assert np.abs(run.v[-1]).max() < 1e-12


@PLACE
@pytest.mark.parametrize("kind", ["weld", "ball", "revolute"])
def test_coaxial_links_are_joined_by_an_event(scenario, place, kind):
    """The common velocity conserves the angular momentum; the angles differ by rounding."""
    case, home = placed(f"coaxial, {kind}", place), coaxial(kind, 1e-13)
    robot = moved(home.robot, PLACES[place])
    M = np.diag(ld.mass_matrix(case.model.spanning_tree(), case.q))
    run = ld.run_scenario(scenario(
        robot, duration=0.2, output_step=0.1, phases={"apart": {"open": "tie"}, "joined": {}}, gravity=[0.0, 0.0, 0.0],
        initial={"q": named(robot, home.q), "v": {"p": 0.5, "r": 1.0}},
        events={"join": {"at": 1e-9, "phases": "apart", "do": {"phase": "joined"}}}))
    expected = (M @ [0.5, 1.0]) / M.sum()
    np.testing.assert_allclose(run.v[-1], [expected, expected], rtol=1e-6)


@PLACE
def test_a_spherical_linkage_on_a_turntable(scenario, place):
    """A run of two seconds, which ended immediately, satisfies energy balance and constraints."""
    case = placed("spherical, 0", place)
    robot, v = moved(spherical(0.0).robot, PLACES[place]), projected(case, case.v)
    run = ld.run_scenario(scenario(robot, duration=1.0, output_step=0.5, initial={"q": named(robot, case.q),
                                                                                    "v": named(robot, v)}))
    assert run.check["energy_balance_relative"] < 1e-9 and run.check["constraint_residual"] < 1e-10
    assert run.warnings == ()
