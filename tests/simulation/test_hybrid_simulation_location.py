"""Where events happen: signs that are kept, zero that is reached, impacts that accumulate; single runs and rollouts alike."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.integrators.zero_crossings import is_resolvable, sign_after

G = 9.81
METHODS = ("rk4", "dopri5", "rodas5p", "RK45", "BDF", "LSODA")


BALL = """
name: ball
base: fixed
links: {ball: {mass: 1.0, inertia: [0.01, 0.01, 0.01]}}
joints: {z: {type: prismatic, parent: world, child: ball, axis: [0, 0, 1]}}
"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("robots") / "ball.yaml"
    path.write_text(BALL, encoding="utf-8")
    return str(path)


def run(robot, events, *, duration=1.0, q=0.0, v=0.0, gravity=G, method="rk4", **more):
    return ld.run_scenario({"robot": robot, "gravity": [0, 0, -gravity], "duration": duration, "output_step": 0.01,
                            "initial": {"q": {"z": q}, "v": {"z": v}}, "integrator": {"method": method}, "events": events} | more)


def bounce(height, restitution, **target):
    return {"bounce": {"when": "z(ball)", "value": height, "direction": "falling",
                       "do": {"impact": {**(target or {"joint": "z"}), "restitution": restitution}}}}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("height, restitution", [(0.0, 0.5), (0.3, 0.5), (-0.3, 0.1), (1.0, 1e-6), (1000.0, 0.5), (0.3, 0.0)])
def test_a_ball_rests_on_a_floor_at_any_height(robot, method, height, restitution):
    """It fell through floors that are not at zero: the side of an event was estimated from differences below rounding."""
    found = run(robot, bounce(height, restitution), duration=2.0, q=height + 0.7, method=method)
    assert "impacts-ended" in [one.code for one in found.warnings]
    coarse = method in ("BDF", "LSODA") and height == 1000.0       # these do not resolve flights below 1e-11 of it
    fall = np.sqrt(2 * 0.7 / G)
    end = fall * (1 + restitution) / (1 - restitution)
    assert found.status == "complete"
    assert found.q.min() >= height - 1e-9 * max(1.0, height)                      # the rounding of 1000 m: 1e-13, times bounces
    at_rest = found.t > end + 1e-3
    assert at_rest.any() and np.abs(found.q[at_rest] - height).max() <= (1e-7 if coarse else 1e-12 * max(1.0, abs(height)))
    assert not found.v[at_rest].any()
    assert abs(found.events[-1].t - end) < (1e-3 if coarse else 1e-4)


@pytest.mark.parametrize("height", [0.0, 0.3, 1000.0])
def test_a_link_that_nothing_would_hold_ends_the_run(robot, height):
    with pytest.raises(ld.ComputationError, match="a link cannot rest at a stop"):
        run(robot, bounce(height, 0.5, link="ball"), duration=3.0, q=height + 0.7)


@pytest.mark.parametrize("target", [{"joint": "z"}, {"link": "ball"}])
@pytest.mark.parametrize("height", [0.0, 0.3, 1000.0])
def test_no_ball_of_a_rollout_passes_its_floor(robot, height, target):
    with pytest.warns(ld.LiedynWarning):
        found = ld.rollout(ld.load(robot), [[height + 0.7], [height + 0.2]], [0.0], dt=1e-3, steps=2000, every=10,
                           events=bounce(height, 0.5, **target))
    assert not found.complete.any() and all("impacts accumulate" in reason for reason in found.reasons.values())
    q = found.q[np.isfinite(found.q)]
    assert q.min() >= height - 1e-9 * max(1.0, height)
    times = found.events.t[found.events.run == 0][:8]
    fall, speeds = np.sqrt(2 * 0.7 / G), 0.5 ** np.arange(8)
    np.testing.assert_allclose(times, fall * (1 + 2 * np.cumsum(np.append(0.0, speeds[1:]))), atol=1e-10 * max(1.0, height))


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "BDF"])
@pytest.mark.parametrize("height, q, v, restitution", [
    (0.3, 1e-4, 0.0, 0.9), (0.0, 1e-4, 0.0, 0.1), (0.3, 0.0, 1e-3, 0.6), (0.0, 0.0, 1e-3, 0.1), (0.3, 0.0, 1e-7, 0.1),
    (0.0, 0.0, 1e-7, 0.6)])
def test_small_bounces_end_in_rest(robot, method, height, q, v, restitution):
    """Some balls thrown from the floor or dropped from near it fell through after the bounces."""
    found = run(robot, bounce(height, restitution), q=height + q, v=v, method=method, duration=0.5)
    assert "impacts-ended" in [one.code for one in found.warnings]
    assert found.q.min() >= height - 1e-12 and np.abs(found.q[-1] - height) < 1e-12 and found.v[-1] == 0.0


def test_a_run_that_goes_on_from_rest_stays_there(robot, tmp_path, monkeypatch):
    """Rounding of the previous run put it 4e-17 m below the floor, and it fell."""
    monkeypatch.chdir(tmp_path)
    run(robot, bounce(0.0, 0.6), q=1.0, duration=2.5).save("first", force=True)
    with pytest.warns(ld.LiedynWarning):
        found = run(robot, bounce(0.0, 0.6), duration=2.0, initial={"from": "first"})
    assert np.abs(found.q).max() < 1e-14
    with pytest.warns(ld.LiedynWarning):
        assert not ld.rollout(ld.load(robot), [[-1e-17]], [0.0], dt=1e-3, steps=10, events=bounce(0.0, 0.6)).complete.any()


def test_a_stop_that_passes_the_joint_is_reported(robot):
    events = {"hit": {"when": "z(ball) - 0.1*sin(5*t)", "direction": "falling",
                      "do": {"impact": {"joint": "z", "restitution": 0.5}}}}
    with pytest.warns(ld.LiedynWarning, match="continues in the same direction, so that the stop is passed"):
        run(robot, events, q=1.0, duration=2.0)


@pytest.mark.parametrize("v", [1e-3, 1e-7])
@pytest.mark.parametrize("height", [0.0, 0.3])
def test_small_bounces_of_a_rollout_end_it(robot, height, v):
    with pytest.warns(ld.LiedynWarning):
        found = ld.rollout(ld.load(robot), [[height]], [v], dt=1e-3, steps=500, every=10, events=bounce(height, 0.6))
    assert not found.complete.any() and not (found.q < height - 1e-12).any()


def test_a_ball_that_begins_on_its_floor_stays_there(robot):
    found = run(robot, bounce(0.3, 0.5), q=0.3)
    assert np.abs(found.q - 0.3).max() == 0.0 and found.status == "complete" and not found.events and not found.warnings


def test_a_coordinate_at_rest_leaves_when_its_force_lets_it(robot):
    """A thrust exceeds the weight at 0.7 s; the stop only pushes."""
    found = run(robot, bounce(0.3, 0.2), q=0.4, duration=1.0, joints={"z": {"torque": f"{G} * (0.3 + t)"}})
    assert "impacts-ended" in [one.code for one in found.warnings]
    assert not (found.q[(found.t > 0.5) & (found.t < 0.7)] - 0.3).any()
    s = found.t[found.t > 0.7] - 0.7
    np.testing.assert_allclose(found.q[found.t > 0.7, 0], 0.3 + G * s**3 / 6, atol=1e-9)


@pytest.mark.parametrize("method", (*METHODS, "dop853"))
@pytest.mark.parametrize("case", ["break of a torque", "waypoint", "timed event", "final time"])
def test_zero_that_is_reached_where_a_step_ends_is_an_event(robot, method, case):
    """Such events never happened, `stop` included; dop853 ended in an IndexError at the final time."""
    waypoints = {"z": {"prescribe": {"position": {"quintic": [[0, 0], [0.5, 0.5, 1], [1, 1]]}}}}
    joints = {"break of a torque": {"z": {"torque": "step(t - 0.5)"}}, "waypoint": waypoints}.get(case)
    others = {"other": {"at": 0.5, "do": "record"}} if case == "timed event" else {}
    found = run(robot, {**others, "hit": {"when": "q(z)", "value": 0.5, "do": "stop"}}, v=0.0 if case == "waypoint" else 1.0,
                gravity=0.0, method=method, duration=0.5 if case == "final time" else 1.0,
                **({"joints": joints} if joints else {}))
    names = [one.name for one in found.events]
    assert names == ([*others, "hit"]) and abs(found.events[-1].t - 0.5) < 1e-12
    assert abs(found.t[-1] - 0.5) < 1e-12


def test_simultaneous_events_happen_in_the_order_of_the_file(robot):
    events = {"b": {"when": "q(z)", "value": float(np.nextafter(0.5, 1)), "do": "record"}, "timed": {"at": 0.5, "do": "record"},
              "a": {"when": "q(z)", "value": 0.5, "do": "record"},
              "c": {"when": "q(z)", "value": float(np.nextafter(0.5, 0)), "do": "record"}}
    found = run(robot, events, v=1.0, gravity=0.0)
    assert [one.name for one in found.events] == ["b", "timed", "a", "c"]
    del events["timed"]
    found = ld.rollout(ld.load(robot, gravity=[0, 0, 0]), [[0.0]], [1.0], dt=0.125, steps=8, events=events)
    assert list(found.events.name) == ["b", "a", "c"]


@pytest.mark.parametrize("q, v, events", [
    (0.0, 1.0, {"a": {"when": "q(z)", "value": 0.5, "do": "record"}}),
    (0.0, 1.0, {"a": {"when": "q(z)", "value": 1.25, "do": "record"}}),                          # at the final time
    (0.5, 0.0, {"a": {"when": "q(z)", "direction": "falling", "debounce": 0.1,
                      "do": {"impact": {"joint": "z", "restitution": 0.9}}}}),
    (0.0, 1.0, {"a": {"when": "sin(30*q(z))", "do": "record"}}),
    (0.3, 0.0, {"a": {"when": "q(z)", "value": 0.3, "do": "record"}}),
    (0.0, 1.0, {"a": {"when": "q(z)", "do": "record"}}),
])
def test_a_rollout_has_the_events_of_the_run(robot, q, v, events):
    gravity = 0.0 if v else G
    alone = run(robot, events, q=q, v=v, gravity=gravity, duration=1.25, integrator={"method": "rk4", "step": 1.25e-2})
    model = ld.load(robot, gravity=[0, 0, -gravity])
    together = ld.rollout(model, [[q]], [v], dt=1.25e-2, steps=100, events=events)
    assert list(together.events.name) == [one.name for one in alone.events]
    np.testing.assert_allclose(together.events.t, [one.t for one in alone.events], rtol=0, atol=1e-12)


@pytest.mark.parametrize("below, suspected", [(1e-7, True), (1e-5, True), (-1e-5, False), (1e-3, False)])
def test_a_rollout_warns_of_events_that_pass_twice_within_a_step(robot, below, suspected):
    """The apex of a throw is above the value by `below`; 1e-3 m is found as two events, as it takes longer than a step."""
    events = {"peak": {"when": "q(z)", "value": 0.5 * 9.0 / G - below, "do": "record"}}
    found = ld.rollout(ld.load(robot), [[0.0], [0.0]], [[3.0], [1.0]], dt=1e-2 if below < 1e-3 else 1e-3,
                       steps=60 if below < 1e-3 else 600, events=events)
    alone = run(robot, events, v=3.0, duration=0.6)
    assert len(alone.events) == 2 * (below > 0)
    assert [("may cross its value twice" in note, "run 0 before t = 0.3" in note, "1 runs" in note)
            for note in map(str, found.warnings)] == [(True, True, True)] * suspected
    assert len(found.events) == 2 * (below == 1e-3)


def test_an_impact_whose_condition_is_elsewhere_does_not_lock(tmp_path):
    """`impact` of y where x passes zero: the velocity of y becomes -1/2 times its value, whatever its sign."""
    w = 2 * np.pi * 1.35
    path = tmp_path / "two.yaml"
    path.write_text(f"name: two\ngravity: [0, 0, 0]\nlinks: {{a: {{mass: 1.0}}, b: {{mass: 1.0}}}}\njoints:\n"
                    f"  x: {{type: prismatic, parent: world, child: a, axis: [1, 0, 0], stiffness: {4 * np.pi**2}}}\n"
                    f"  y: {{type: prismatic, parent: world, child: b, axis: [0, 1, 0], stiffness: {w**2}}}\n", encoding="utf-8")
    events = {"hit": {"when": "q(x)", "direction": "rising", "do": {"impact": {"joint": "y", "restitution": 0.5}}}}
    found = ld.run_scenario({"robot": str(path), "duration": 6.0, "initial": {"q": {"x": 1.0, "y": 1.0}},
                             "integrator": {"method": "dop853"}, "events": events})
    y, v, t = 1.0, 0.0, 0.0
    assert len(found.events) == 6
    for one in found.events:
        s, t = one.t - t, one.t
        y, v = y * np.cos(w * s) + v / w * np.sin(w * s), v * np.cos(w * s) - w * y * np.sin(w * s)
        assert abs(one.dv[1] + 1.5 * v) < 1e-7                 # rtol 1e-8 of dop853
        v *= -0.5


def test_impacts_of_two_hard_stops_that_alternate_end_together(tmp_path):
    """There were 2,171 events without an end: each joint's impact lifts the other off its stop by less and less."""
    path = tmp_path / "arm.yaml"
    path.write_text("""
name: arm
links:
  upper: {shape: {box: [0.04, 0.04, 0.5]}, density: 900, com: [0, 0, 0.25]}
  lower: {shape: {box: [0.03, 0.03, 0.4]}, density: 900, com: [0, 0, 0.2]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0],
             limits: {lower: -0.4, upper: 1.9, velocity: 20, effort: 10}}
  elbow: {type: revolute, parent: upper, child: lower, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.5]},
          limits: {lower: -0.2, upper: 1.3, velocity: 40, effort: 5}}
""", encoding="utf-8")
    for restitution, end in (0.0, 0.30899), (0.3, 0.44789):
        found = ld.run_scenario({"robot": str(path), "duration": 0.6, "integrator": {"method": "rk4", "step": 0.001},
                                 "joints": {"shoulder": {"torque": {"pd": {"kp": 5, "kd": 0.1, "target": -1.5}}}},
                                 "limits": {"mode": "hard", "restitution": restitution}, "output_step": 0.01})
        assert len(found.events) < 200 and abs(found.events[-1].t - end) < 1e-3
        rest = found.t > end + 1e-3
        np.testing.assert_array_equal(found.q[rest], np.tile([-0.4, 1.3], (rest.sum(), 1)))
        assert not found.v[rest].any()


@pytest.mark.parametrize("value, rate, curvature, bound, sign", [
    (1.0, -5.0, -5.0, 1e-12, 1), (-1e-13, 2.0, -9.8, 1e-12, 1), (1e-13, 1e-9, -9.8, 1e-12, -1), (0.0, 0.0, -1.0, 1e-12, -1),
    (0.0, -1e-9, -9.8, 0.0, -1), (0.0, 0.0, 0.0, 1e-12, 0), (0.0, np.nan, np.nan, 1e-12, 0), (0.0, 1.0, np.nan, 1e-12, 1)])
def test_signs_follow_from_value_rate_and_curvature(value, rate, curvature, bound, sign):
    assert sign_after(value, rate, curvature, bound) == sign


@pytest.mark.parametrize("rate, curvature, bound, t, found", [
    (1e-3, -9.81, 1e-14, 1.0, True), (1e-8, -9.81, 1e-14, 1.0, False),      # height 5e-8, 5e-18
    (1e-14, -9.81, 0.0, 1.0, False), (1e-8, 9.81, 0.0, 1.0, True), (1.0, 9.81, 1e-3, 1.0, True), (0.0, -9.81, 1e-14, 1.0, False)])
def test_flights_are_resolved_where_value_and_time_show_them(rate, curvature, bound, t, found):
    assert is_resolvable(rate, curvature, bound, t) == found


@pytest.mark.parametrize("height", [0.0, 0.3, 1000.0])
@pytest.mark.parametrize("when", ["z(ball) + 1e-30*v(z)", "q(z) + 1e-30*v(z)"])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e5])
def test_impacts_end_where_the_curvature_is_not_known(robot, when, height, scale):
    """The ball sank with ever higher bounces, each as deep as twice the one before; in microseconds, bounces ended too early."""
    impact = {"joint": "z", "restitution": 0.4}
    events = {"bounce": {"when": when, "value": height, "direction": "falling", "do": {"impact": impact}}}
    found = run(robot, events, duration=2.0 * scale, q=height + 0.7, gravity=G / scale**2, output_step=0.1 * scale,
                integrator={"method": "rk4", "step": 1e-3 * scale})
    assert "impacts-ended" in [one.code for one in found.warnings]
    assert np.abs(found.q[-1] - height) < 1e-13 * max(1.0, height) and found.v[-1] == 0.0
    assert abs(len(found.events) - {0.0: 20, 0.3: 19, 1000.0: 15}[height]) <= 1


@pytest.mark.parametrize("when, value, suspected", [
    ("abs(q(z) - 0.503)", 0.0, True), ("abs(q(z) - 0.503)", 0.002, True), ("max(q(z) - 0.503, 0.503 - q(z))", 0.002, True),
    ("-abs(q(z) - 0.503)", -0.002, True), ("q(z) + 2*abs(q(z) - 0.503)", 0.504, True),
    ("abs(q(z) - 0.503)", -0.02, False), ("q(z) + 2*abs(q(z) - 0.503)", 0.48, False), ("(q(z) - 0.503)**2", -1e-3, False)])
def test_a_rollout_warns_of_kinks_that_pass_twice_within_a_step(robot, when, value, suspected):
    """The kink is between 0.5 and 0.51 s. Single runs detect both events, or one where the value is touched."""
    events = {"a": {"when": when, "value": value, "do": "record"}}
    found = ld.rollout(ld.load(robot, gravity=[0, 0, 0]), [[0.0]], [1.0], dt=0.01, steps=100, events=events)
    assert len(found.events) == 0 and [("before t = 0.51 s" in note) for note in map(str, found.warnings)] == [True] * suspected
    assert (len(run(robot, events, v=1.0, gravity=0.0, duration=1.0).events) > 0) == suspected
