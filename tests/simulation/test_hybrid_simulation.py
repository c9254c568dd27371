"""Phases and events: times against closed forms, jumps against a dense KKT system, states against other integrators."""
import json

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import liedyn as ld
from liedyn.errors import ComputationError, ScenarioError
from liedyn.simulation.impacts import velocity_jump
from zoo import ROBOTS, model_of, state

BALL = {"name": "ball", "gravity": [0, 0, -9.81], "links": {"ball": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01]}},
        "joints": {"z": {"type": "prismatic", "parent": "world", "child": "ball", "axis": [0, 0, 1]}}}
PENDULUM = {"name": "pendulum", "links": {
    "upper": {"mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.08, 0.08, 0.001]},
    "lower": {"mass": 0.7, "com": [0, 0, -0.4], "inertia": [0.05, 0.05, 0.001]}}, "joints": {
    "shoulder": {"type": "continuous", "parent": "world", "child": "upper", "axis": [0, 1, 0]},
    "elbow": {"type": "continuous", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -1]}, "axis": [0, 1, 0]}}}
METHODS = [{"method": "rk4", "step": 1e-3}, {"method": "dopri5", "rtol": 1e-10, "atol": 1e-12},
           {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13}, {"method": "Radau", "rtol": 1e-9, "atol": 1e-11}]
TIGHT = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}


@pytest.fixture
def simulate(scenario):
    def run(robot, **keys):
        return ld.run_scenario(scenario(json.dumps(robot), **{"integrator": TIGHT, "duration": 2.0, **keys}))
    return run


# times ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("integrator", METHODS, ids=lambda x: x["method"])
def test_a_ball_bounces_when_it_should_and_comes_to_rest(simulate, integrator, worst):
    run = simulate(BALL, duration=1.5, integrator=integrator, initial={"q": {"z": 1.0}},
                   events={"bounce": {"when": "q(z)", "direction": "falling",
                                      "do": {"impact": {"joint": "z", "restitution": 0.5}}}})
    first = np.sqrt(2 / 9.81)
    v, expected = 9.81 * first * 0.5 ** np.arange(60), [first]
    for speed in v[1:]:
        expected.append(expected[-1] + 2 * speed / 9.81)
    times = np.array([one.t for one in run.events])
    assert len(times) > 20
    assert worst("bounces", np.abs(times - expected[:len(times)]).max(), integrator["method"]) < 1e-12
    assert abs(times[-1] - 3 * first) < 1e-6                          # where bounces accumulate
    np.testing.assert_allclose([one.lost for one in run.events][:12], 0.5 * (1 - 0.5**2) * v[:12] ** 2, rtol=1e-9)
    assert run.check["energy_balance_relative"] < 1e-9
    assert np.abs(run.q[run.t > times[-1] + 1e-6]).max() < 1e-12 and "impacts at " in str(run.warnings[0])


def test_each_event_has_a_row_before_and_one_after(simulate):
    run = simulate(BALL, duration=1.0, initial={"q": {"z": 1.0}}, events={
        "bounce": {"when": "q(z)", "direction": "falling", "do": {"impact": {"joint": "z", "restitution": 0.8}}}})
    (k,) = np.flatnonzero(np.diff(run.t) == 0.0)
    assert run.t[k] == run.events[0].t and run.v[k + 1, 0] == pytest.approx(-0.8 * run.v[k, 0], rel=1e-12)
    assert np.all(np.diff(run.t) >= 0.0) and run.t[-1] == 1.0


@pytest.mark.parametrize("integrator", [
    {"method": "rk4", "step": 0.02}, *({"method": name, "rtol": 1e-8, "atol": 1e-10} for name in (
        "dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "LSODA")), {"method": "BDF", "rtol": 1e-10, "atol": 1e-12}],
    ids=lambda x: x["method"])
@pytest.mark.parametrize("below", [1e-1, 1e-3, 1e-5])
def test_two_roots_in_one_step_count(simulate, integrator, below):
    """q = sin t passes a value just below its maximum upwards and downwards, and a higher one never (SciPy's issue 9228). Steps
    are up to 0.3 s long, the time between the roots is 9 ms and more."""
    spring = {"name": "spring", "gravity": [0, 0, 0], "links": {"s": {"mass": 1.0, "inertia": [1, 1, 1]}}, "joints": {
        "x": {"type": "prismatic", "parent": "world", "child": "s", "axis": [1, 0, 0], "stiffness": 1.0}}}
    way = {"when": "q(x)", "value": 1 - below, "do": "record"}
    run = simulate(spring, duration=30.0, output_step=1.0, integrator=integrator, initial={"v": {"x": 1.0}}, events={
        "up": {**way, "direction": "rising"}, "down": {**way, "direction": "falling"}, "never": {**way, "value": 1 + 1e-5}})
    first = np.arcsin(1 - below)
    expected = np.add.outer(2 * np.pi * np.arange(5), [first, np.pi - first]).ravel()
    assert [one.name for one in run.events] == ["up", "down"] * 5
    off = 2e-6 / np.sqrt(2 * below)                           # what methods are off near the top, over the speed there
    np.testing.assert_allclose([one.t for one in run.events], expected, rtol=0, atol=off)


@pytest.mark.parametrize("step", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("turn", [0.48, 0.5, 0.52])
def test_a_way_that_turns_in_the_middle_of_a_step_is_found(simulate, step, share, turn):
    """Three stages of rk4 give the same value: those at the start, in the middle and at the end."""
    t = (4 + turn) * step
    top = 9.81 * t**2 / 2
    run = simulate(BALL, duration=10 * step, output_step=step, integrator={"method": "rk4", "step": step},
                   initial={"v": {"z": 9.81 * t}},
                   events={"near": {"when": "q(z)", "value": top - 9.81 * (share * step / 2)**2 / 2, "do": "record"}})
    np.testing.assert_allclose([one.t for one in run.events], [t - share * step / 2, t + share * step / 2], atol=1e-9 * step)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "dop853", "Radau"])
@pytest.mark.parametrize("other", [0.16, 0.24, 0.3, 0.9])
@pytest.mark.parametrize("first, width", [(0.02, 0.1), (0.05, 0.01), (0.02, 0.02)])
def test_a_dip_before_another_event_of_the_same_step_is_found(simulate, method, other, first, width):
    """Another event in the first quarter of the step prevented it. x = 10 (t - a) (t - b), y = t, steps of 0.01 s."""
    slides = {"type": "prismatic", "parent": "world", "axis": [1, 0, 0]}
    two = {"name": "two", "gravity": [0, 0, 0], "links": {name: {"mass": 1.0, "inertia": [1, 1, 1]} for name in "ab"},
           "joints": {"x": {**slides, "child": "a"}, "y": {**slides, "child": "b"}}}
    a = 0.5 + 0.01 * first
    b = a + 0.01 * width
    integrator = {"method": method, **({"step": 0.01} if method == "rk4" else {})}
    run = simulate(two, duration=1.0, output_step=0.5, integrator=integrator, joints={"x": {"torque": 20}},
                   initial={"q": {"x": 10 * a * b}, "v": {"x": -10 * (a + b), "y": 1.0}},
                   events={"other": {"when": "q(y)", "value": 0.5 + 0.01 * other, "do": "record"},
                           "dip": {"when": "q(x)", "do": "record"}})
    assert [one.name for one in run.events] == ["dip", "dip", "other"]
    np.testing.assert_allclose([one.t for one in run.events], [a, b, 0.5 + 0.01 * other], atol=1e-8)


def test_a_step_whose_stages_alone_see_an_event_is_made_as_any_other(simulate):
    """rk4's second stage is beyond the top of the ball's way, the ball is not: of the states that are looked at then nothing
    stays."""
    run = simulate(BALL, duration=0.5, integrator={"method": "rk4", "step": 0.1}, output_step=0.1, initial={"v": {"z": 2.0}},
                   events={"never": {"when": "q(z)", "value": 2.0**2 / (2 * 9.81) + 1e-4, "do": "stop"}})
    np.testing.assert_allclose(run.q[:, 0], 2 * run.t - 9.81 / 2 * run.t**2, atol=1e-13)
    assert run.events == ()


def test_events_that_do_not_happen_change_nothing_and_take_no_evaluation(simulate):
    """Outputs at the ends of fixed steps are those of the step: nothing is evaluated there again. Rates at the end of a step come
    from the chart of its beginning, which rounds otherwise."""
    keys = {"duration": 1.0, "integrator": {"method": "rk4", "step": 0.01}, "output_step": 0.02,
            "initial": {"q": {"shoulder": 1.0}, "v": {"elbow": 2.0}}}
    plain, watched = simulate(PENDULUM, **keys), simulate(PENDULUM, **keys, events={
        "far": {"when": "q(shoulder)", "value": 50.0, "do": "stop"}, "fast": {"when": "v(elbow)", "value": -500.0, "do": "stop"}})
    for name in ("q", "v", "a", "tau", "work"):
        np.testing.assert_allclose(getattr(watched, name), getattr(plain, name), rtol=0, atol=1e-11)
    assert watched.statistics.evaluations <= plain.statistics.evaluations + 5          # where sides are chosen


def test_known_times_and_periods_come_in_order(simulate):
    run = simulate(BALL, duration=1.0, initial={"q": {"z": 10.0}}, events={
        "tick": {"every": 0.3, "do": {"set": {"v": {"z": 1.0}}}}, "first": {"at": 0.0, "do": {"set": {"v": {"z": 2.0}}}},
        "twice": {"at": [0.6, 0.2], "do": {"set": {"v": {"z": 0.0}}}}})
    assert [(one.name, round(one.t, 12)) for one in run.events] == [
        ("first", 0.0), ("twice", 0.2), ("tick", 0.3), ("tick", 0.6), ("twice", 0.6), ("tick", 0.9)]
    assert run.v[0, 0] == 2.0 and run.check["energy_balance_relative"] < 1e-9


def test_direction_phase_debounce_and_once_decide_what_is_heard(simulate):
    run = simulate(BALL, duration=2.0, initial={"v": {"z": 5.0}, "q": {"z": 1.0}}, phases={"a": {}, "b": {}},
                   events={"up": {"when": "q(z)", "value": 2.0, "direction": "rising", "do": {"phase": "b"}},
                           "never": {"when": "q(z)", "value": 2.0, "direction": "falling", "phases": "a", "do": "stop"},
                           "down": {"when": "q(z)", "value": 2.0, "direction": "falling", "phases": "b", "once": True,
                                    "do": {"set": {"v": {"z": 5.0}}}},
                           "both": {"when": "q(z)", "value": 2.1, "debounce": 0.3, "do": {"set": {"v": {}}}},
                           "end": {"when": "v(z)", "value": -6.0, "direction": "falling", "do": "stop"}})
    names = [one.name for one in run.events]
    assert names[:2] == ["up", "both"] and names.count("down") == 1 and "never" not in names and names[-1] == "end"
    times = [one.t for one in run.events if one.name == "both"]
    assert np.diff(times).min() > 0.3 and run.t[-1] == run.events[-1].t < 2.0
    assert run.events[-1].phase == "b"


def bounces_of_a_pendulum(w, stop, e, top, end):
    """q'' = -w^2 sin q from rest at `top` onto a stop with restitution e: how many bounces until `end`, and the state then. From
    rest at the angle a, sin(q / 2) = k sn(K + w t) with k = sin(a / 2)."""
    t, count = 0.0, 0
    while True:
        k = np.sin(top / 2)
        K = scipy.special.ellipk(k**2)
        half = (K - scipy.special.ellipkinc(np.arcsin(np.sin(stop / 2) / k), k**2)) / w          # from rest to the stop
        rest = t + half if count else t
        if rest + half > end:
            sn, cn, _, _ = scipy.special.ellipj(K + w * (end - rest), k**2)
            return count, np.array([2 * np.arcsin(k * sn), 2 * k * w * cn])
        t, count, top = rest + half, count + 1, np.arccos(np.cos(stop) - e**2 * (np.cos(stop) - np.cos(top)))


@pytest.mark.parametrize("method, order, steps", [("rk4", 4, (0.01, 0.005)), ("dopri5", 5, (0.08, 0.04)),
                                                  ("dop853", 8, (0.08, 0.04)), ("rodas5p", 5, (0.04, 0.02))])
def test_the_order_is_kept_through_twenty_events(simulate, method, order, steps, worst):
    """A pendulum hits a stop. Steps that end at events have other lengths, which half of an order allows for."""
    rod, end = {"name": "rod", "links": {"rod": {"mass": 1.0, "com": [0, 0, -1.0]}}, "joints": {
        "hinge": {"type": "continuous", "parent": "world", "child": "rod", "axis": [0, 1, 0]}}}, 17.3
    count, exact = bounces_of_a_pendulum(np.sqrt(9.81), 0.2, 0.98, 1.0, end)
    errors = []
    for h in steps:
        steps_of = {"step": h} if method == "rk4" else {"max_step": h, "rtol": 0.1, "atol": 0.1}
        run = simulate(rod, duration=end, output_step=end, integrator={"method": method, **steps_of},
                       initial={"q": {"hinge": 1.0}}, events={"stop": {
                           "when": "q(hinge)", "value": 0.2, "direction": "falling",
                           "do": {"impact": {"joint": "hinge", "restitution": 0.98}}}})
        assert len(run.events) == count == 20
        errors.append(np.abs(np.r_[run.q[-1], run.v[-1]] - exact).max())
    assert worst("order after 20 events, less that of the method", abs(np.log2(errors[0] / errors[1]) - order), method) < 0.5
    assert errors[1] < 1e-5


# jumps ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", list(ROBOTS))
def test_jumps_are_those_of_the_dense_system(name, worst):
    """[M -G^T; G 0] [v+; p] = [M v-; b]."""
    model, rng = model_of(name).spanning_tree(), np.random.default_rng(4)
    nv = model.nv
    for k in range(1, min(nv, 6) + 1):
        q, v, _, _ = state(model, k)
        G, b = rng.standard_normal((k, nv)), rng.standard_normal(k)
        G[0] = np.eye(nv)[rng.integers(nv)]
        M = ld.mass_matrix(model, q)
        system = np.block([[M, -G.T], [G, np.zeros((k, k))]])
        expected = np.linalg.solve(system, np.r_[M @ v, b])
        found = velocity_jump(model, q, v, G, b)
        scale = np.linalg.cond(system) * 1e-15 * np.abs(expected[:nv]).max() + 1e-13
        assert worst("v+", np.abs(found.v - expected[:nv]).max() / scale, name) < 10
        size = np.abs(M @ (expected[:nv] - v)).max()
        assert np.abs(found.impulse - G.T @ expected[nv:]).max() < 10 * np.linalg.cond(system) * 1e-15 * size + 1e-12
        energies = [0.5 * x @ M @ x for x in (v, found.v)]
        assert found.work.sum() == pytest.approx(energies[1] - energies[0], rel=1e-8, abs=1e-10 * max(energies))


def test_rows_that_contradict_each_other_are_refused():
    model = model_of("planar")
    q, v, _, _ = state(model, 1)
    row = np.eye(model.nv)[0]
    with pytest.raises(ComputationError, match="contradict"):
        velocity_jump(model, q, v, np.array([row, row]), np.array([1.0, 2.0]))
    twice, once = (velocity_jump(model, q, v, np.array(rows), np.ones(len(rows))) for rows in ([row, row], [row]))
    np.testing.assert_allclose(twice.v, once.v, rtol=1e-12)


def test_locking_keeps_the_momentum_of_a_free_robot(simulate, worst):
    """Without external forces, the momentum of two bodies on a free base is constant, and 1/2 dv^T M dv is lost."""
    robot = {**PENDULUM, "base": "floating", "gravity": [0, 0, 0], "links": {"hull": {"mass": 3.0, "inertia": [0.2, 0.3, 0.4]},
                                                                            **PENDULUM["links"]}}
    robot["joints"] = {name: {**joint, "parent": "hull"} if name == "shoulder" else joint
                       for name, joint in PENDULUM["joints"].items()}
    rng = np.random.default_rng(3)
    run = simulate(robot, duration=1.0, initial={"v": {"*": 0.7, "base": list(rng.standard_normal(6)), "elbow": -2.0}},
                   events={"lock": {"at": 0.4, "do": {"lock": "elbow"}}, "both": {"at": 0.7, "do": {"lock": ["shoulder"]}}})
    for one in run.events:
        k = np.flatnonzero(run.t == one.t)
        h = ld.momentum(run.model, run.q[k], run.v[k])
        assert worst("momentum", np.abs(h[1] - h[0]).max() / np.abs(h[0]).max(), one.name) < 1e-13
        dv, M = run.v[k[1]] - run.v[k[0]], ld.mass_matrix(run.model, run.q[k[0]])
        assert abs(one.lost - 0.5 * dv @ M @ dv) < 1e-12
        assert abs(run.kinetic[k[0]] - run.kinetic[k[1]] - one.lost) < 1e-12
    assert np.ptp(run.q[run.t > 0.7, -1]) < 1e-14 and np.ptp(run.q[run.t > 0.7, -2]) < 1e-14
    assert run.check["energy_balance_relative"] < 1e-9


def test_a_loop_keeps_its_constraints_when_a_joint_hits():
    run = ld.run_scenario({"robot": "robots/four_bar.yaml", "duration": 0.6, "integrator": TIGHT,
                           "events": {"hit": {"at": 0.3, "do": {"lock": ld.load("robots/four_bar.yaml").joint_names[0]}}}})
    after = np.flatnonzero(run.t == 0.3)[1]
    A = ld.constraint_jacobian(run.model, run.q[after])
    assert np.abs(A @ run.v[after]).max() < 1e-12 and np.abs(run.v[after, 0]) < 1e-12
    assert run.events[0].lost > 0 and run.check["energy_balance_relative"] < 1e-6


def test_a_pin_breaks_and_closes_again(worst):
    """Open, the four-bar moves as its open tree; at one instant it opens, its crank is reversed and it closes: a jump of the tree
    and one of the mechanism."""
    phases = {"closed": {}, "broken": {"open": "pin"}}
    scenario = {"robot": "robots/four_bar.yaml", "duration": 0.6, "integrator": TIGHT, "output_step": 0.01, "phases": phases}
    crank = ld.load("robots/four_bar.yaml").v_names[0]
    run = ld.run_scenario({**scenario, "events": {"break": {"at": 0.3, "do": {"phase": "broken"}}}})
    before, after = np.flatnonzero(run.t == 0.3)
    np.testing.assert_array_equal(run.v[before], run.v[after])
    assert np.abs(run.multipliers[before]).max() > 0 and not run.multipliers[after:].any()
    tree, n = run.model.spanning_tree(), run.model.nq
    y = scipy.integrate.solve_ivp(lambda t, y: np.r_[y[n:], ld.forward_dynamics(tree, y[:n], y[n:], np.zeros(n))], (0.3, 0.6),
                                  np.r_[run.q[after], run.v[after]], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    assert worst("open", np.abs(np.r_[run.q[-1], run.v[-1]] - y).max()) < 1e-10
    assert run.check["energy_balance_relative"] < 1e-8

    again = ld.run_scenario({**scenario, "events": {"all": {"at": 0.3, "do": [
        {"phase": "broken"}, {"impact": {"joint": crank, "restitution": 1.0}}, {"phase": "closed"}]}}})
    before, after = np.flatnonzero(again.t == 0.3)
    q, v = again.q[before], again.v[before]
    turned = velocity_jump(tree, q, v, np.eye(n)[:1], -v[:1]).v
    A, M = ld.constraint_jacobian(again.model, q), ld.mass_matrix(tree, q)
    A = A[np.abs(A).max(axis=1) > 1e-9]
    system = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.lstsq(system, np.r_[M @ turned, np.zeros(len(A))], rcond=None)[0][:n]
    np.testing.assert_allclose(again.v[after], expected, atol=1e-9 * np.abs(expected).max())
    assert again.events[0].lost > 0 and again.check["energy_balance_relative"] < 1e-8


def test_a_loop_that_is_open_cannot_close_at_once():
    scenario = {"robot": "robots/four_bar.yaml", "duration": 0.6, "phases": {"broken": {"open": ["pin"]}, "closed": {}}}
    with pytest.raises(ScenarioError, match="closes a loop that is open by"):
        ld.run_scenario({**scenario, "events": {"close": {"at": 0.5, "do": {"phase": "closed"}}}})
    with pytest.raises(ScenarioError, match="no such loop or coupling"):
        ld.run_scenario({**scenario, "phases": {"broken": {"open": "pni"}}})


# phases --------------------------------------------------------------------------------------------------------------
def test_an_arm_driven_until_a_time_then_free(simulate, worst):
    """Compared with SciPy and forward dynamics, from the state at the change."""
    run = simulate(PENDULUM, duration=2.0, initial={"q": {"elbow": 0.3}}, phases={
        "driven": {"joints": {"shoulder": {"prescribe": {"position": "0.5*sin(2*t)"}}}},
        "free": {"joints": {"shoulder": {"torque": 0}}}},
        events={"release": {"at": 1.0, "do": {"phase": "free"}}})
    model, (before, after) = run.model, np.flatnonzero(run.t == 1.0)
    np.testing.assert_array_equal(run.q[before], run.q[after])
    np.testing.assert_allclose(run.q[before, 0], 0.5 * np.sin(2.0), atol=1e-15)
    np.testing.assert_allclose(run.tau[after], 0.0, atol=0)
    assert np.abs(run.tau[before, 0]) > 0.1
    y = scipy.integrate.solve_ivp(lambda t, y: np.r_[y[2:], ld.forward_dynamics(model, y[:2], y[2:], np.zeros(2))], (1.0, 2.0),
                                  np.r_[run.q[after], run.v[after]], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    assert worst("state at the end", np.abs(np.r_[run.q[-1], run.v[-1]] - y).max()) < 1e-10


def test_a_velocity_that_jumps_is_refused_unless_impulsive(simulate):
    def run(**phase):
        return simulate(PENDULUM, duration=1.0, initial={"v": {"elbow": 1.0}}, phases={
            "free": {}, "given": {"joints": {"elbow": {"prescribe": {"velocity": 0.5}}}, **phase}},
            events={"go": {"at": 0.5, "do": {"phase": "given"}}})
    with pytest.raises(ScenarioError, match=r"prescribes the velocity 0\.5 of elbow from t = 0\.5 s on.*impulsive"):
        run()
    found = run(impulsive=True)
    before, after = np.flatnonzero(found.t == 0.5)
    assert found.v[after, 1] == pytest.approx(0.5, abs=1e-14) and found.v[before, 1] != found.v[after, 1]
    M = ld.mass_matrix(found.model, found.q[after])
    np.testing.assert_allclose((M @ (found.v[after] - found.v[before]))[0], 0.0, atol=1e-14)       # no impulse on the shoulder
    assert found.check["energy_balance_relative"] < 1e-9


def test_a_position_elsewhere_is_refused(simulate):
    with pytest.raises(ScenarioError, match=r"prescribes elbow at 2 from t = 0\.5 s on, where it is at"):
        simulate(PENDULUM, duration=1.0, phases={"free": {}, "given": {"joints": {"elbow": {"prescribe": {"position": 2.0}}}}},
                 events={"go": {"at": 0.5, "do": {"phase": "given"}}})


def test_a_payload_is_felt_and_keeps_the_momentum_about_the_hinge(simulate):
    body = {"link": "lower", "mass": 0.5, "com": [0.1, 0, -0.8], "inertia": [0.01, 0.02, 0.03]}
    run = simulate(PENDULUM, duration=1.0, initial={"q": {"shoulder": 1.0}}, events={
        "pick": {"at": 0.4, "do": {"attach": body}}, "drop": {"at": 0.8, "do": {"detach": "lower"}}})
    loaded = {**PENDULUM, "links": {**PENDULUM["links"], "lower": {"mass": 1.2, "com": [0.1 / 2.4, 0, -0.68 / 1.2],
                                                                    "inertia": [0.0, 0.0, 0.0]}}}
    d = [np.array([0, 0, -0.4]) - loaded["links"]["lower"]["com"], np.array(body["com"]) - loaded["links"]["lower"]["com"]]
    I = (np.diag([0.05, 0.05, 0.001]) + np.diag(body["inertia"])
         + sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip((0.7, 0.5), d, strict=True)))
    loaded["links"]["lower"]["inertia"] = [I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
    other = simulate(loaded, duration=0.1).model
    before, after = np.flatnonzero(run.t == 0.4)
    np.testing.assert_allclose(ld.mass_matrix(other, run.q[after]) @ run.v[after],
                               ld.mass_matrix(run.model, run.q[before]) @ run.v[before], rtol=1e-12)
    np.testing.assert_allclose(run.a[after], ld.forward_dynamics(other, run.q[after], run.v[after], np.zeros(2)), rtol=1e-11)
    before, after = np.flatnonzero(run.t == 0.8)
    np.testing.assert_array_equal(run.v[before], run.v[after])
    np.testing.assert_allclose(run.a[after], ld.forward_dynamics(run.model, run.q[after], run.v[after], np.zeros(2)), rtol=1e-11)
    assert run.events[0].lost > 0 and run.check["energy_balance_relative"] < 1e-9


def test_a_link_hits_along_a_direction(simulate):
    run = simulate(PENDULUM, duration=1.0, initial={"q": {"shoulder": 1.0}}, events={
        "hit": {"at": 0.5, "do": {"impact": {"link": "lower", "point": [0, 0, -0.8], "normal": [-1, 0, 0], "restitution": 0.3}}}})
    before, after = np.flatnonzero(run.t == 0.5)
    def speed(k):
        J = ld.jacobian(run.model, run.q[k], "lower", frame="local_world_aligned")
        R = ld.link_poses(run.model, run.q[k])[run.model.link_names.index("lower")][:3, :3]
        V = J @ run.v[k]
        return -(V[3:] + np.cross(V[:3], R @ [0, 0, -0.8]))[0]
    assert speed(before) < 0 and speed(after) == pytest.approx(-0.3 * speed(before), rel=1e-12)


def test_what_never_ends_is_an_error(simulate):
    with pytest.raises(ComputationError, match="repeat indefinitely"):
        simulate(BALL, initial={"q": {"z": 1.0}}, events={
            "loop": {"when": "q(z)", "value": 0.5, "direction": "falling",
                     "do": {"set": {"q": {"z": 0.5 + 5e-12}, "v": {"z": -1.0}}}}})


def missed(run):
    return [one.message for one in run.warnings if one.code == "event-never-happened"]


def test_events_that_never_happen_are_one_note(simulate):
    """Because of a wrong direction, a value that is not reached, or a stop that should end the run."""
    run = simulate(BALL, duration=0.5, initial={"q": {"z": 1.0}}, events={
        "floor": {"when": "q(z)", "direction": "rising", "do": {"impact": {"joint": "z"}}},
        "top": {"when": "q(z)", "value": 2, "do": "stop"}})
    assert missed(run) == ["events that never happened: floor, top"]


def test_events_that_could_not_happen_have_no_note(simulate):
    """After an early stop, in a phase that never began, as a guard while others occur, or at rest from the start."""
    start = {"initial": {"q": {"z": 1.0}}}
    half = {"when": "q(z)", "value": 0.5, "do": "stop"}
    assert not missed(simulate(BALL, **start, events={"half": half, "floor": {"when": "q(z)", "do": "record"}}))
    assert not missed(simulate(BALL, **start, duration=0.1, phases={"a": {}, "b": {}}, events={
        "half": half | {"phases": "b"}, "one": {"at": 0.01, "do": "record"}}))
    assert not missed(simulate(BALL, **start, duration=0.4, events={
        "half": half | {"do": "record"}, "guard": half | {"value": -9}}))
    assert not missed(simulate(BALL, duration=0.4, events={
        "floor": {"when": "q(z)", "direction": "falling", "do": {"impact": {"joint": "z"}}}}))
