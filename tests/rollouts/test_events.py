"""Events of rollouts: times against closed forms and the simulation of one scenario, jumps against impulse and momentum."""
import re

import numpy as np
import pytest
import yaml

import liedyn as ld
from codegen.test_variants import changed
from liedyn.errors import ScenarioError, UsageError
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK
from liedyn.model.model import build
from liedyn.rollouts import events as rollout_events
from simulation.test_hybrid_simulation import BALL, PENDULUM
from zoo import model_of, state

G, DT = 9.81, 1e-3
BOUNCE = {"bounce": {"when": "q(z)", "direction": "falling", "do": {"impact": {"joint": "z", "restitution": 0.8}}}}
TWO = {"hit": {"when": "q(elbow)", "value": 0.3, "direction": "rising", "do": {"impact": {"joint": "elbow", "restitution": 0.6}}},
       "tip": {"when": "z(lower, 0, 0, -0.5)", "value": -1.2, "do": "record"}}


def load(tmp_path, robot):
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(robot))
    return ld.load(tmp_path / "robot.yaml")


@pytest.fixture
def ball(tmp_path):
    return load(tmp_path, BALL)


@pytest.fixture
def pendulum(tmp_path):
    return load(tmp_path, PENDULUM)


def test_balls_bounce_when_they_should(ball, worst):
    """rk4 is exact for them; the outputs are on the parabola of the ball."""
    heights = np.linspace(0.3, 2.0, 2 * RUNS_PER_BLOCK + 3)
    found = ld.rollout(ball, heights[:, None], [0.0], dt=DT, steps=1000, every=100, events=BOUNCE)
    assert found.complete.all() and np.isnan(found.stopped_at).all()
    for k in (0, 7, len(heights) - 1):
        times, speed = [np.sqrt(2 * heights[k] / G)], 0.8 * np.sqrt(2 * G * heights[k])
        speeds = [speed]
        while times[-1] + 2 * speeds[-1] / G < 1.0:
            times.append(times[-1] + 2 * speeds[-1] / G)
            speeds.append(0.8 * speeds[-1])
        own = found.events.run == k
        assert worst("rollout: bounces", np.abs(found.events.t[own] - times).max()) < 1e-13
        assert worst("rollout: speeds", np.abs(found.events.v_after[own, 0] - speeds).max()) < 1e-12
        s = 1.0 - times[-1]
        assert abs(found.q[k, -1, 0] - (speeds[-1] * s - G * s**2 / 2)) < 1e-12
    assert np.array_equal(found.events.q, found.events.q_after) and np.all(np.diff(found.events.t) >= 0.0)


@pytest.mark.parametrize(("at", "is_late"), [(0.1, False), (0.101, True), (0.15, True)])
def test_an_event_after_the_end_has_a_warning(ball, at, is_late):
    found = ld.rollout(ball, [1.0], [0.0], dt=DT, steps=100, events={"mark": {"at": [at], "do": "record"}})
    assert [warning.code for warning in found.warnings if warning.code == "event-after-end"] == ["event-after-end"] * is_late
    assert len(found.events.t) == (not is_late)


def test_only_the_late_times_of_an_event_are_named(ball):
    found = ld.rollout(ball, [1.0], [0.0], dt=DT, steps=100, events={"mark": {"at": [0.05, 0.2, 0.3], "do": "record"}})
    assert [warning.message for warning in found.warnings if warning.code == "event-after-end"] == [
        "events after the end of the run do not happen: mark (at 0.2, 0.3 s)"]
    assert len(found.events.t) == 1


@pytest.mark.parametrize("way", [{}, {"every": 7}], ids=["each step", "few rows"])
def test_runs_are_those_of_scenarios(pendulum, tmp_path, way, worst):
    """With outputs at each step the integrator of a scenario steps as a rollout does, also after an event."""
    q = np.random.default_rng(0).uniform([-1.0, -1.0], [1.0, 0.2], (9, 2))
    found = ld.rollout(pendulum, q, [0.0, 0.0], dt=DT, steps=1400, events=TWO, **way)
    assert len(found.events) > 12 and len(set(found.events.name)) == 2
    for k in range(len(q)):
        run = ld.simulate(tmp_path / "robot.yaml", duration=1.4, output_step=DT, integrator={"method": "rk4", "step": DT},
                          initial={"q": {"shoulder": q[k, 0], "elbow": q[k, 1]}}, events=TWO)
        own = found.events.run == k
        assert list(found.events.name[own]) == [one.name for one in run.events]
        off = np.abs(found.events.t[own] - [one.t for one in run.events]).max(initial=0.0)
        assert worst("rollout: times of events", off) < 1e-12
        kept = np.array([np.flatnonzero(np.abs(run.t - t) < 1e-9)[-1] for t in found.t])
        for what in "qv":
            assert worst(f"rollout with events: {what}", np.abs(getattr(run, what)[kept] - getattr(found, what)[k]).max()) < 1e-10

@pytest.mark.parametrize("do, after", [
    ([{"impact": {"joint": "elbow", "restitution": 0.9}}, {"impact": {"joint": "elbow", "restitution": 0.5}}], -0.9),
    ([{"impact": {"joint": "shoulder", "restitution": 1.0}}, {"impact": {"joint": "elbow", "restitution": 0.3}}], None),
    ([{"set": {"v": {"elbow": 2.0}}}, {"impact": {"joint": "elbow", "restitution": 0.3}}], None),
    ([{"set": {"q": {"elbow": 0.3}}}, {"impact": {"joint": "elbow", "restitution": 0.3}}], -0.3)])
@pytest.mark.parametrize("direction", ["falling", "both"])
def test_actions_in_a_row_are_those_of_scenarios(pendulum, tmp_path, do, after, direction):
    """Rollouts reversed an elbow that another action had turned back; scenarios, that of events in both directions, and took an
    expression that another action had set elsewhere for one at rest."""
    events = {"hit": {"when": "q(elbow)", "direction": direction, "do": do}}
    q, v = np.array([0.7, 0.4]), np.array([0.5, -1.0])
    found = ld.rollout(pendulum, q, v, dt=DT, steps=800, every=800, events=events)
    run = ld.simulate(tmp_path / "robot.yaml", duration=0.8, output_step=DT, integrator={"method": "rk4", "step": DT},
                      initial={"q": {"shoulder": q[0], "elbow": q[1]}, "v": {"shoulder": v[0], "elbow": v[1]}}, events=events)
    assert len(found.events) > 0 and found.complete.all()
    np.testing.assert_allclose(found.events.t, [one.t for one in run.events], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.events.v_after - found.events.v, [one.dv for one in run.events], atol=1e-9)
    np.testing.assert_allclose(found.q[-1], run.q[-1], atol=1e-9)
    if after is not None:
        np.testing.assert_allclose(found.events.v_after[0, 1], after * found.events.v[0, 1], rtol=1e-9)


@pytest.mark.parametrize("events", [
    {"hit": {"when": "q(z)", "do": [{"impact": {"joint": "z", "restitution": 0.5}}] * 2}},
    {name: {"when": when, "do": {"impact": {"joint": "z", "restitution": 0.5}}} for name, when in
     (("one", "q(z)"), ("two", "2*q(z)"))}], ids=["one event", "two events"])
def test_impacts_from_both_sides_in_one_step(ball, events):
    """Each run reverses from its side, and the second impact does not reverse it again."""
    model, side = ball.with_changes(gravity=[0, 0, 0]), np.array([1.0, -1.0, -1.0, 1.0, -1.0])[:, None]
    found = ld.rollout(model, 0.1 * side, -0.3 * side, dt=0.01, steps=50, events=events)
    assert found.complete.all() and found.events.t == pytest.approx(np.full(5 * len(events), 1 / 3), rel=1e-12)
    np.testing.assert_allclose(found.v[:, -1], 0.15 * side, rtol=1e-12)
    np.testing.assert_allclose(found.q[:, -1], 0.15 * (0.5 - 1 / 3) * side, rtol=1e-9)


@pytest.mark.parametrize("floor", ["0.1*sin(6*t)", "0.15*step(t-0.3)-0.1*step(t-0.8)", "0.2-0.5*abs(t-0.7)"])
def test_a_floor_that_moves(ball, tmp_path, floor, worst):
    """Once a run stays for an event, its expression may be on the other side again at later times. The jump of the floor passes
    balls, which then are below it."""
    heights = np.linspace(0.3, 1.2, 12)
    events = {"bounce": {"when": f"q(z)-({floor})", "direction": "falling", "do": "record" if "step" in floor else {
        "impact": {"joint": "z", "restitution": 0.9}}}}
    found = ld.rollout(ball, heights[:, None], [0.0], dt=DT, steps=1500, every=100, events=events)
    assert found.complete.all() and len(found.events) >= 12
    for k, height in enumerate(heights):
        run = ld.simulate(tmp_path / "robot.yaml", duration=1.5, output_step=0.1, integrator={"method": "rk4", "step": DT},
                          initial={"q": {"z": height}}, events=events)
        own = found.events.run == k
        assert len(run.events) == own.sum()
        assert worst("rollout: moving floor, times", np.abs(found.events.t[own] - [one.t for one in run.events]).max()) < 1e-10
        assert worst("rollout: moving floor, q", abs(found.q[k, -1, 0] - run.q[-1, 0])) < 1e-9


@pytest.mark.parametrize("steps", [400, 1000, 2500])
def test_a_run_that_stays_for_an_event_does_not_go_on_without_it(ball, steps):
    """A ball without weight rises at 1 m/s: its event is due again some hundred steps later."""
    model = ball.with_changes(gravity=[0, 0, 0])
    found = ld.rollout(model, [[-0.02], [-0.01]], [[1.0], [1.0]], dt=DT, steps=steps,
                       events={"J": {"when": "q(z)+3*step(t-.3)-2*(t-.5)", "value": 1.0, "do": "record"}})
    assert found.q[:, :, 0] - found.t == pytest.approx(np.array([[-0.02], [-0.01]]) + 0.0 * found.t, abs=1e-11)
    assert found.events.t[:2] == pytest.approx([0.3, 0.3], abs=1e-11)


def test_a_run_is_the_same_bit_for_bit_whatever_is_beside_it(pendulum):
    q = np.random.default_rng(1).uniform(-1.0, 0.2, (RUNS_PER_BLOCK + 9, 2))
    options = {"dt": DT, "steps": 1000, "events": TWO}
    all_, some = ld.rollout(pendulum, q, [0.0, 0.0], every=50, **options), [3, RUNS_PER_BLOCK + 4, 11]
    few = ld.rollout(pendulum, q[some], [0.0, 0.0], every=100, **options)
    assert np.array_equal(few.q, all_.q[some, ::2]) and np.array_equal(few.v, all_.v[some, ::2])
    for k, number in enumerate(some):
        assert np.array_equal(few.events.t[few.events.run == k], all_.events.t[all_.events.run == number])


def test_a_run_that_is_stopped_ends_there(ball):
    low = {"low": {"when": "q(z)", "value": 0.2, "do": "stop"}, "fast": {"when": "v(z)", "value": -3.0, "do": "record"}}
    found = ld.rollout(ball, [[1.0], [0.5], [0.1], [9.0]], [0.0], dt=DT, steps=500, every=50, events=low, forces=True)
    ends = np.sqrt(2 * np.array([0.8, 0.3]) / G)
    np.testing.assert_allclose(found.stopped_at[:2], ends, rtol=1e-12)
    assert np.isnan(found.stopped_at[2:]).all() and found.complete.all() and not found.reasons
    for k, end in enumerate(ends):
        for x in (found.q, found.a):
            assert np.array_equal(np.isnan(x[k, :, 0]), found.t > end)
    assert np.isfinite(found.q[2:]).all() and "2 stopped" in repr(found)
    fast = found.events.name == "fast"
    assert set(found.events.run[fast]) == {0, 2, 3} and np.allclose(found.events.t[fast], 3.0 / G, rtol=1e-12)
    np.testing.assert_allclose(found.events.q[found.events.name == "low"], 0.2, rtol=1e-12)


def test_events_of_known_times(ball, worst):
    """Also at the start and at the end, whose rows are after them; once, and repeatedly."""
    events = {"kick": {"at": [0.0, 0.1, 0.3], "do": [{"set": {"v": {"z": 2.0}}}, "record"]},
              "back": {"every": 0.15, "once": True, "do": {"set": {"q": {"z": 5.0}}}}}
    found = ld.rollout(ball, [[1.0], [2.0]], [0.0], dt=DT, steps=300, every=100, events=events)
    assert list(found.events.t) == pytest.approx([0.0, 0.0, 0.1, 0.1, 0.15, 0.15, 0.3, 0.3], abs=1e-15)
    up = 2.0 * 0.1 - G * 0.005
    assert worst("rollout: kicks", abs(found.q[0, 1, 0] - (1.0 + up))) < 1e-13
    np.testing.assert_allclose(found.v[:, [0, 1, 3], 0], 2.0, rtol=1e-14)
    v = 2.0 - G * 0.05
    np.testing.assert_allclose(found.q[:, -1, 0], 5.0 + v * 0.15 - G * 0.15**2 / 2, rtol=1e-13)


ENDS = {"impact": {"impact": {"joint": "z", "restitution": 0.5}}, "set": {"set": {"v": {"z": -9.0}}}, "stop": "stop"}


@pytest.mark.parametrize("action", ENDS)
def test_the_last_row_is_after_an_event_at_the_final_time(ball, action):
    """Of sliders that reach the value at the final time except for rounding; also where each run has its own end."""
    model, n, step = ball.with_changes(gravity=[0, 0, 0]), 37, 0.01
    v = np.random.default_rng(0).uniform(0.5, 3.0, 3 * RUNS_PER_BLOCK)[:, None]
    q, last = 1.0 - v * n * step, np.where(np.arange(len(v)) % 3 == 2, n + 20, n)
    events = {"end": {"when": "q(z)", "value": 1.0, "do": ENDS[action]}, "mark": {"at": [n * step], "do": "record"}}
    expected = {"impact": -0.5 * v[:, 0], "set": -9.0, "stop": np.nan}[action]
    for marked in (False, True):
        asked = events if marked else {"end": events["end"]}
        for options in ({"steps": n}, {"steps": n, "every": 10}, {"steps": n + 20, "last": np.full(len(v), n)},
                        {"steps": n + 20, "last": last}):
            found = ld.rollout(model, q, v, dt=step, events=asked, **options)
            row = np.flatnonzero(np.abs(found.t - n * step) < 1e-9)[0]
            at_end = slice(None) if options.get("last") is not last else last == n      # others may be a rounding before it
            np.testing.assert_allclose(found.v[at_end, row, 0], np.broadcast_to(expected, len(v))[at_end], rtol=1e-14)
            assert np.bincount(found.events.run[found.events.name == "end"], minlength=len(v)).tolist() == [1] * len(v)
            assert np.isfinite(found.stopped_at).all() == (action == "stop") and found.complete.all()
    if action != "stop":
        for k in range(3):
            run = ld.simulate(model, duration=n * step, q0=q[k], v0=v[k], events=asked,
                              integrator={"method": "rk4", "step": step})
            end = ld.rollout(model, q[k], v[k], dt=step, steps=n, events=asked)
            np.testing.assert_allclose([end.q[-1], end.v[-1]], [run.q[-1], run.v[-1]], rtol=1e-13)
            onward = ld.rollout(model, end.q[-1], end.v[-1], dt=step, steps=n, events={"end": events["end"]})
            assert len(onward.events) == 0


def test_forces_of_the_last_row_beside_an_event_at_the_final_time(pendulum, worst):
    """They are those of the last step: of a series, a policy, and a feedback about a motion."""
    rng = np.random.default_rng(3)
    q, tau = rng.uniform(-1.0, 0.2, (3, 2)), rng.standard_normal((3, 40, 2))
    law = ld.Feedback(rng.uniform(0.0, 3.0, (2, 4)), rng.standard_normal((1, 40, 2)))
    options = {"dt": 0.01, "steps": 40, "every": 8, "forces": True}
    for driving in ({"tau": tau}, {"tau": lambda t, q, v: -q}, {"tau": tau, "feedback": law}):
        plain = ld.rollout(pendulum, q, [0.0, 0.0], **driving, **options)
        for when in ({"at": [0.4]}, {"every": 0.2}):
            found = ld.rollout(pendulum, q, [0.0, 0.0], **driving, events={"mark": when | {"do": "record"}}, **options)
            assert len(found.events) == 3 * (1 + ("every" in when))
            for what in ("q", "v", "a", "tau"):
                off = np.abs(getattr(found, what) - getattr(plain, what)).max()
                assert worst("rollout: last row beside an event", off, what) < 1e-12


@pytest.mark.parametrize("at", [[0.0], [0.1, 0.2], [0.0, 0.13]])
def test_a_policy_sees_the_state_after_events_of_its_time(ball, at, worst):
    """As that of `ld.simulate`. A second call at the start only where an event changes the state there."""
    model, step, calls = ball.with_changes(gravity=[0, 0, 0]), 0.01, []

    def policy(t, q, v):
        calls.append(t)
        return -50.0 * q - 3.0 * v
    events = {"back": {"at": at, "do": {"set": {"q": {"z": 1.0}, "v": {"z": 0.0}}}}, "mark": {"at": at, "do": "record"}}
    found = ld.rollout(model, [[0.5]], [[0.0]], policy, dt=step, steps=40, events=events, forces=True)
    assert [found.tau[0, round(t / step), 0] for t in at] == pytest.approx([-50.0] * len(at), rel=1e-14)
    assert len(calls) == 40 + (at[0] == 0.0)
    run = ld.simulate(model, duration=0.4, q0=[0.5], tau=lambda t, q, v: -50.0 * q - 3.0 * v, rate=1 / step, events=events,
                      integrator={"method": "rk4", "step": step})
    for what in "qv":
        off = np.abs(getattr(found, what)[0, -1] - getattr(run, what)[-1]).max()
        assert worst("rollout: a policy and events of known times", off, what) < 1e-13


def test_a_policy_sees_the_state_after_impacts_at_the_start(ball):
    seen = []

    def policy(t, q, v):
        seen.append(v[0, 0])
        return 2.0 * v
    found = ld.rollout(ball, [[0.0]], [[-1.0]], policy, dt=DT, steps=3, events=BOUNCE, forces=True)
    assert seen[:2] == [-1.0, 0.8] and found.tau[0, 0, 0] == 1.6 and len(seen) == 4


@pytest.mark.parametrize("direction", ["both", "rising", "falling"])
def test_sides_at_the_start_are_those_of_the_joint_forces(ball, direction):
    """A policy, a force, or the row of a series after a `set` lifts a body that rests at the value."""
    def lift(t, q, v): return np.full(v.shape, 2 * G)
    series, step = np.zeros((1, 300, 1)), {"dt": DT, "steps": 300}
    series[:, 100:] = 2 * G
    watch = {"watch": {"when": "q(z)", "value": 0.2, "direction": direction, "do": "record"}}
    there = {"there": {"at": [0.1], "do": {"set": {"q": {"z": 0.2}, "v": {"z": 0.0}}}}}
    stop = {"watch": watch["watch"] | {"do": "stop"}}
    for tau in (lift, [[2 * G]]):
        for events in (watch, stop):
            found = ld.rollout(ball, [[0.2]], [[0.0]], tau, events=events, **step)
            assert len(found.events) == 0 and found.q[0, -1, 0] == pytest.approx(0.2 + 0.5 * G * 0.09, rel=1e-12)
    for tau in (series, lambda t, q, v: np.full(v.shape, 2 * G * (t > 0.0995))):
        found = ld.rollout(ball, [[0.6]], [[0.0]], tau, events=watch | there, **step)
        assert found.events.name.tolist() == ["there"] and found.q[0, -1, 0] == pytest.approx(0.2 + 0.5 * G * 0.04, rel=1e-12)
    if direction == "falling":
        hit = {"watch": watch["watch"] | {"do": {"impact": {"joint": "z", "restitution": 0.5}}}}
        found = ld.rollout(ball, [[0.2]], [[0.0]], lift, events=hit, **step)
        assert found.complete.all() and len(found.events) == 0


def test_events_at_one_time_are_in_the_order_of_the_file(ball):
    """A velocity that passes zero at the end of a step except for rounding, and a timed event there."""
    model = ball.with_changes(gravity=[0, 0, 0])
    watched = {"turn": {"when": "v(z)", "direction": "rising", "do": "stop"}}
    timed = {"push": {"at": [0.1], "do": {"set": {"v": {"z": -1.0}}}}}
    v = -np.random.default_rng(0).uniform(0.1, 3.0, 40)[:, None]
    options = {"dt": 0.01, "steps": 20}
    first = ld.rollout(model, np.zeros((40, 1)), v, -10.0 * v[:, None], events=watched | timed, **options)
    assert first.stopped_at == pytest.approx(np.full(40, 0.1), rel=1e-13) and set(first.events.name) == {"turn"}
    second = ld.rollout(model, np.zeros((40, 1)), v, -10.0 * v[:, None], events=timed | watched, **options)
    assert second.stopped_at == pytest.approx(np.full(40, 0.1), rel=1e-13)
    orders = [second.events.name[second.events.run == k].tolist() for k in range(40)]
    assert orders.count(["push", "turn"]) + orders.count(["turn"]) == 40       # others turn a rounding before the time
    assert orders.count(["push", "turn"]) > 20


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_impacts_that_accumulate_on_a_velocity_end_the_run(ball, sign):
    """Each takes three quarters of the velocity, the next one follows after 0.75 s/m of it: they accumulate at 0.3 s."""
    events = {"hit": {"when": "v(z)+t" if sign > 0 else "t-v(z)", "value": 0.3, "direction": "rising",
                      "do": {"impact": {"joint": "z", "restitution": 0.5}}}}
    found = ld.rollout(ball.with_changes(gravity=[0, 0, 0]), [[0.0]], [[0.0]], [sign], dt=DT, steps=500, events=events)
    assert "impacts accumulate" in found.reasons[0] and found.ended_at[0] == pytest.approx(0.3, abs=1.1 * DT)
    first = 0.15 + 0.75 * 0.15 * np.cumsum([0.0, 1.0, 0.25, 0.0625])
    assert found.events.t[:4] == pytest.approx(first, rel=1e-10) and len(found.events) > 15


@pytest.mark.parametrize("when", [{"at": [0.0]}, {"at": [0.1]}, {"when": "q(z)", "value": 0.5}], ids=["start", "time", "reading"])
def test_a_body_that_is_set_at_rest_onto_its_stop_does_not_fall_through(ball, when):
    """It is at rest as at the start; where a force lifts it, it continues."""
    events = {"put": when | {"do": {"set": {"q": {"z": 0.2}, "v": {"z": 0.0}}}},
              "floor": BOUNCE["bounce"] | {"value": 0.2}}
    found = ld.rollout(ball, [[0.6]], [[0.0]], dt=DT, steps=300, events=events)
    assert found.events.name.tolist() == ["put", "floor"] and "impacts accumulate" in found.reasons[0]
    assert not (found.q < 0.2).any()
    lifted = ld.rollout(ball, [[0.6]], [[0.0]], lambda t, q, v: np.where(q < 0.3, 2 * G, 0.0), dt=DT, steps=300, events=events)
    if "at" in when:                                            # else the force of the step is held until its end
        assert lifted.complete.all() and lifted.events.name.tolist() == ["put"]


def test_a_set_at_the_start_decides_on_the_side(ball):
    """A coordinate that starts at the value comes from neither side."""
    events = {"back": {"at": [0.0], "do": {"set": {"v": {"z": -1.0}}}}, "watch": {"when": "q(z)", "value": 0.2, "do": "record"}}
    found = ld.rollout(ball, [[0.2]], [[1.0], [-1.0], [0.0]], dt=DT, steps=100, events=events)
    assert found.events.name.tolist() == ["back"] * 3


def test_debounce_directions_and_once(pendulum):
    """A pendulum passes 0 six times."""
    start = {"dt": DT, "steps": 4000, "every": 4000}

    def times(**more):
        event = {"through": {"when": "q(shoulder)", "do": "record"} | more}
        return ld.rollout(pendulum, [[0.3, 0.0]], [0.0, 0.0], events=event, **start).events
    both = times()
    assert len(both) >= 4
    for direction, sign in (("rising", 1), ("falling", -1)):
        some = np.sign(both.v[:, 0]) == sign
        np.testing.assert_allclose(times(direction=direction).t, both.t[some], rtol=1e-14)
    assert list(times(once=True).t) == [both.t[0]]
    np.testing.assert_allclose(times(debounce=both.t[1] - both.t[0] + 1e-6).t, both.t[::2], rtol=1e-14)
    assert len(times(when="abs(q(shoulder))", value=0.05)) >= 2 * len(both)


def test_an_event_at_the_beginning_waits_for_its_return(ball):
    """One coordinate starts at the value and leaves it; another remains there."""
    found = ld.rollout(ball, [[0.0], [0.0]], [[3.0], [-3.0]], dt=DT, steps=700, every=700,
                       events={"zero": {"when": "q(z)", "do": "record"}})
    assert list(found.events.run) == [0] and found.events.t[0] == pytest.approx(6.0 / G, rel=1e-12)
    rest = ld.rollout(ball, [[0.0]], [0.0], [G], dt=DT, steps=50, events={"zero": {"when": "q(z)", "do": "record"}})
    assert len(rest.events) == 0


@pytest.mark.parametrize("name", ["every kind, floating", "universal"])
def test_impacts_of_links_are_impulses(name, worst):
    """Of variants, with a coordinate whose motion is prescribed: its velocity, momentum but along the impulse, restitution."""
    model = model_of(name)
    heavy = build(changed(model.description, np.random.default_rng(0)))
    q, v, _, _ = state(model, 5, (2,))
    link, point, normal = model.link_names[-1], [0.1, -0.2, 0.05], np.array([0.6, 0.0, 0.8])
    mask = np.arange(model.nv) == 0
    event = {"hit": {"at": 0.0, "do": {"impact": {"link": link, "point": point, "normal": list(normal), "restitution": 0.3}}}}
    robots = ld.Variants([model, heavy])

    def speed(v):
        twist = robots.link_twist(q, v, link, frame="local_world_aligned")
        arm = robots.link_poses(q)[:, model.link_names.index(link), :3, :3] @ point
        return (twist[:, 3:] + np.cross(twist[:, :3], arm)) @ normal
    v = np.where((speed(v) > 0.0)[:, None], -v, v)
    found = ld.rollout(robots, q, v, dt=DT, steps=1, events=event, prescribed=mask)
    after = found.events.v_after
    assert worst("rollout: restitution", np.abs(speed(after) + 0.3 * speed(v)).max() / np.abs(speed(v)).max(), name) < 1e-12
    assert worst("rollout: prescribed", np.abs((after - v)[:, mask]).max(), name) < 1e-12
    impulse = (robots.mass_matrix(q) @ (after - v)[..., None])[..., 0]
    for k, robot in enumerate((model, heavy)):
        J = ld.jacobian(robot, q[k], link, frame="local_world_aligned")
        R = ld.link_poses(robot, q[k])[model.link_names.index(link), :3, :3]
        row = np.r_[np.cross(R @ point, normal), normal] @ J
        rows = np.stack([row, mask.astype(float)])
        rest = impulse[k] - rows.T @ np.linalg.lstsq(rows.T, impulse[k], rcond=None)[0]
        assert worst("rollout: impulse", np.abs(rest).max() / np.abs(impulse[k]).max(), name) < 1e-11
    away = ld.rollout(robots, q, -v, dt=DT, steps=1, events=event)
    assert np.array_equal(away.events.v_after, -v)


def test_a_mechanism_stays_closed_through_impacts(worst):
    model = ld.load("robots/four_bar.yaml")
    q = ld.assemble(model, model.neutral()).q
    v = ld.project_velocity(model, np.tile(q, (4, 1)), np.random.default_rng(2).standard_normal((4, model.nv)))
    name = model.v_names[0]
    stop = {"stop": {"when": f"q({name})", "value": q[0] + 0.05, "do": {"impact": {"joint": name, "restitution": 0.5}}},
            "other": {"when": f"q({name})", "value": q[0] - 0.05, "do": {"impact": {"joint": name, "restitution": 0.5}}}}
    found = ld.rollout(model, q, v, dt=DT, steps=300, method="semi_implicit", events=stop)
    assert len(found.events) >= 4 and found.complete.all()
    assert worst("rollout: loops through impacts", np.abs(ld.constraint_residual(model, found.q)).max()) < 1e-12
    slip = np.abs(ld.constraint_velocity(model, found.events.q_after, found.events.v_after)).max()
    assert worst("rollout: loops after impacts", slip) < 1e-11
    np.testing.assert_allclose(found.events.v_after[:, 0], -0.5 * found.events.v[:, 0], rtol=1e-11)
    assert np.abs(found.q[..., 0] - q[0]).max() < 0.0501


def test_a_policy_a_moving_mask_and_durations(pendulum, worst):
    """What changes from step to step is that of the step of the event; and the run alone."""
    rng = np.random.default_rng(4)
    q, tau, steps = rng.uniform(-1.0, 0.2, (7, 2)), rng.standard_normal((7, 900, 2)), 900
    masks, a = np.zeros((steps, 2), dtype=bool), rng.standard_normal((steps, 2))
    masks[300:420, 0] = True
    last = np.array([900, 850, 400, 900, 333, 900, 700])
    options = {"dt": DT, "steps": steps, "events": TWO, "every": 30}
    found = ld.rollout(pendulum, q, [0.0, 0.0], tau, last=last, prescribed=masks, a=a, **options)
    assert len(found.events) > 5
    assert all((found.events.t[found.events.run == k] <= last[k] * DT).all() for k in range(7))
    for k in (0, 2):
        alone = ld.rollout(pendulum, q[k], [0.0, 0.0], tau[k], last=last[k], prescribed=masks, a=a, **options)
        assert np.array_equal(alone.q, found.q[k], equal_nan=True) and np.array_equal(alone.v, found.v[k], equal_nan=True)
    asked = ld.rollout(pendulum, q, [0.0, 0.0], lambda t, q, v: tau[:, round(t / DT)], **options)
    given = ld.rollout(pendulum, q, [0.0, 0.0], tau, **options)
    assert np.array_equal(asked.q, given.q) and np.array_equal(asked.events.t, given.events.t)
    law = ld.Feedback.pd([20.0, 5.0], [1.0, 0.5], [0.2, 0.6])
    # which semi_implicit computes at the beginning of a step, as a policy, until an event has parted the step
    held, expected = (ld.rollout(pendulum, q, [0.0, 0.0], method="semi_implicit", **how, **options).events for how in (
        {"feedback": law}, {"tau": lambda t, q, v: (np.array([0.2, 0.6]) - q) * [20.0, 5.0] - v * [1.0, 0.5]}))
    assert set(held.run) == set(expected.run) and len(set(held.run)) > 3
    first = [[one.t[one.run == k][0] for k in sorted(set(one.run))] for one in (held, expected)]
    assert worst("rollout: feedback and events", np.abs(np.subtract(*first)).max()) < 1e-12


def test_what_goes_wrong_ends_a_run_and_says_why(ball):
    zeno = {"bounce": {"when": "q(z)", "direction": "falling", "do": {"impact": {"joint": "z", "restitution": 0.3}}}}
    found = ld.rollout(ball, [[0.1], [90.0]], [0.0], dt=DT, steps=800, every=100, events=zeno)
    assert list(found.complete) == [False, True] and "repeat indefinitely" in found.reasons[0]
    assert "diverged" not in repr(found) and ", 1 ended early>\n  1 run ended early: events repeat indefinitely" in repr(found)
    root = {"root": {"when": "sqrt(q(z))", "value": 2.0, "do": "record"}}
    found = ld.rollout(ball, [[0.1], [90.0]], [0.0], dt=DT, steps=300, every=100, events=root)
    assert list(found.complete) == [False, True] and found.reasons[0] == "the expression of an event is not finite"
    with pytest.raises(UsageError, match="has no derivatives through events"):
        ld.rollout(ball, [[1.0]], [0.0], dt=DT, steps=5, events=root).adjoint(None, np.zeros((1, 6, 1)))


@pytest.mark.parametrize(("event", "error"), [
    ({"when": "q(elbow)", "do": {"lock": "elbow"}}, "the action lock is not supported in a rollout"),
    ({"when": "q(elbow)", "do": {"attach": {"link": "lower", "mass": 1}}}, "the action attach"),
    ({"when": "touch(lower)", "do": "stop"}, "touch or lift"),
    ({"when": "tau(elbow)", "do": "stop"}, "an expression of generalized forces"),
    ({"when": "q(knee)", "do": "stop"}, "knee"),
    ({"when": "sin(t)", "do": "stop"}, "does not depend on the state"),
    ({"when": "q(elbow)", "do": {"impact": {"joint": "elbow"}}}, "restitution 0"),
    ({"when": "q(elbow)", "do": {"impact": {"joint": "knee", "restitution": 1}}}, "knee"),
    ({"when": "q(elbow)", "do": {"impact": {"link": "foot", "restitution": 1}}}, "foot"),
    ({"when": "q(elbow)", "do": {"set": {"q": {"elbow": [1, 2]}}}}, "wrong number of values"),
    ({"when": "q(elbow)"}, "what happens"),
    ({"at": 0.0105, "do": "stop"}, "not between two steps; expected a multiple of dt = 0.001 s"),
    ({"at": 0.01, "direction": "rising", "do": "stop"}, "direction applies only to events with when"),
])
def test_bad_events_are_refused(pendulum, event, error):
    with pytest.raises((UsageError, ScenarioError), match=re.escape(error)):
        ld.rollout(pendulum, [0.0, 0.0], [0.0, 0.0], dt=DT, steps=10, events={"one": event})


def test_events_need_a_line(pendulum, tmp_path, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    with pytest.raises(UsageError, match="an event requires generated code"):
        ld.rollout(ld.load(tmp_path / "robot.yaml"), [0.0, 0.0], [0.0, 0.0], dt=DT, steps=10, events=TWO)
    with pytest.raises(UsageError, match="events is a mapping"):
        ld.rollout(pendulum, [0.0, 0.0], [0.0, 0.0], dt=DT, steps=10, events=["stop"])


def test_events_after_the_end_are_told(ball):
    late = {"last": {"at": [0.003, 0.01], "do": "record"}, "late": {"at": 2.0, "do": "stop"},
            "often": {"every": 0.5, "do": "stop"}}
    found = ld.rollout(ball, [[1.0]], [0.0], dt=DT, steps=10, events=late)
    assert [one.message for one in found.warnings] == ["events after the end of the run do not happen: late, often"]
    assert len(found.events) == 2


def test_what_cannot_be_read_at_first_is_waited_for(ball):
    """sqrt of a height that is 0 except for rounding is defined later; or it ends the run."""
    root = {"root": {"when": "sqrt(q(z))", "value": 0.2, "do": "record"}}
    found = ld.rollout(ball, [[-1e-18], [-1e-3]], [[3.0], [3.0]], dt=DT, steps=100, events=root)
    assert list(found.complete) == [True, False] or list(found.complete) == [True, True]
    assert 0 in found.events.run and abs(found.events.t[0] - (3.0 - np.sqrt(9.0 - 2 * G * 0.04)) / G) < 1e-10


def test_no_runs_have_no_events(pendulum):
    found = ld.rollout(pendulum, np.zeros((0, 2)), [0.0, 0.0], dt=DT, steps=5, events=TWO)
    assert len(found.events) == 0 and found.q.shape == (0, 6, 2) and found.events.q.shape == (0, 2)
    assert repr(found.events) == "<RolloutEvents: 0 events, 0 runs>"


def test_derivatives_of_event_values_are_exact_for_cubic_motions(ball, monkeypatch):
    """Five-point formulas, also where the acceleration changes: a force that grows with time."""
    seen = []
    derivatives = rollout_events._PartialSteps._value_derivatives

    def watched(self, k):
        found = derivatives(self, k)
        seen.append((self.t[k], self.v[k], *found))
        return found
    monkeypatch.setattr(rollout_events._PartialSteps, "_value_derivatives", watched)
    ld.rollout(ball, [[0.05]], [0.0], dt=DT, steps=200, events=BOUNCE)
    assert seen
    for _, v, _, rate, curvature in seen:
        np.testing.assert_allclose(rate[:, 0], v[:, 0], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(curvature[:, 0], -G, rtol=1e-3)


@pytest.mark.parametrize("allowed, is_complete", [(2, False), (3, True)])
def test_so_many_events_are_possible_within_a_step(ball, monkeypatch, allowed, is_complete):
    """The step ends after two passings, and the rest is a third part."""
    monkeypatch.setattr(rollout_events, "_MAX_EVENTS_PER_STEP", allowed)
    two = {name: {"when": "q(z)", "value": value, "do": "record"} for name, value in (("one", 0.9996), ("two", 0.9994))}
    found = ld.rollout(ball, [[1.0]], [-1.0], dt=DT, steps=1, events=two)
    assert found.complete.all() == is_complete
