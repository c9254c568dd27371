"""Coordinates that rest at stops: several impacts at one time, forces that pull, and events that move or hold what rests."""
from __future__ import annotations

import json
import math

import numpy as np
import pytest

import liedyn as ld

PUSH, PULL = 0.3, -0.3


def slides(parent, child, axis=(0, 0, 1), **more):
    return {"type": "prismatic", "parent": parent, "child": child, "axis": list(axis), **more}


LIMITS = {"limits": {"lower": -0.5, "upper": 0.5}}
ROBOTS = {
    "slider": {"gravity": [0, 0, 0], "links": {"a": {"mass": 1}}, "joints": {"a": slides("world", "a", **LIMITS)}},
    "stack": {"links": {"a": {"mass": 1}, "b": {"mass": 2}},
              "joints": {"a": slides("world", "a"), "b": slides("a", "b", limits={"lower": 0, "upper": 9})}},
    "rod": {"links": {"x": {}, "z": {}, "b": {"mass": 1, "inertia": [0, 1 / 12, 1 / 12]}},
            "joints": {"x": slides("world", "x", (1, 0, 0)), "z": slides("x", "z"),
                       "r": {"type": "continuous", "parent": "z", "child": "b", "axis": [0, -1, 0]}}}}


def impact(joint, value, direction, restitution, **more):
    return {"when": f"q({joint})", "value": value, "direction": direction,
            "do": {"impact": {"joint": joint, "restitution": restitution}}, **more}


@pytest.fixture
def run(tmp_path):
    def run(robot: str, **scenario):
        path = tmp_path / f"{robot}.yaml"
        path.write_text(json.dumps({"name": robot, **ROBOTS[robot]}))
        return ld.run_scenario({"robot": str(path), "output_step": 0.1, **scenario})

    return run


STOPS = {"event": {"events": {"hit": impact("a", 0.5, "rising", 0)}}, "hard stop": {"limits": "hard"}}
METHODS = pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])


@METHODS
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("force", [0.0, -1e-3, PULL, PUSH])
def test_an_impact_without_rebound_ends_at_rest_or_leaves_by_the_force(run, stop, force, method):
    result = run("slider", duration=1, initial={"v": {"a": 1}}, joints={"a": {"torque": force}}, integrator={"method": method},
                 **STOPS[stop])
    speed = math.sqrt(1 + force)
    t = 1 - (0.5 * 2 / (1 + speed))
    expected = (0.5 + min(force, 0.0) * t**2 / 2, min(force, 0.0) * t)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], expected, atol=1e-9)
    assert any("it stays at the stop until" in note for note in map(str, result.warnings)) == (stop == "event" and force >= 0)


@pytest.mark.parametrize(("law", "sampling"), [
    ({"pid": {"kp": 1, "kd": 1, "ki": 2, "target": "-1 + 1.2*step(t - 2)"}}, None),
    ({"pd": {"kp": 1, "kd": 0, "target": -1}}, 50)], ids=["integral", "held"])
def test_a_force_that_is_not_a_function_of_the_state_presses_on_a_stop(run, law, sampling):
    """The integral of a pid law, and the torque that a sampled controller holds, against a force that pulls."""
    events = {"hit": impact("a", -0.5, "falling", 0), "note": {"at": 2.2, "do": "record"}}
    more = {} if sampling is None else {"sampling": {"rate": sampling}}
    pull = [{"link": "a", "wrench": [0, 0, 0, 0, 0, 0.1]}]
    result = run("slider", duration=2.4, joints={"a": {"torque": law}}, events=events, external_forces=pull, initial={
        "v": {"a": -0.5}}, **more)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], [-0.5, 0.0], atol=1e-12)
    assert [event.name for event in result.events] == ["hit", "note"]
    with_stops = run("slider", duration=2.0, joints={"a": {"torque": law}}, events={"hit": events["hit"]}, limits="stop",
                     initial={"v": {"a": -0.5}}, **more)
    assert np.isnan(with_stops.stops[-1, 0]) and with_stops.tau[-1, 0] == pytest.approx(0.0, abs=1e-12)


@METHODS
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("later", [0.0, -0.1])
def test_a_force_that_ends_or_turns_lets_go(run, stop, later, method):
    torque = f"step(0.2 - t) + {later}*step(t - 0.2)"
    result = run("slider", duration=1, initial={"q": {"a": 0.5}}, joints={"a": {"torque": torque}},
                 integrator={"method": method}, **STOPS[stop])
    assert result.q[-1, 0] == pytest.approx(0.5 + later * 0.32, abs=1e-9)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize(("given", "expected"), [
    ({"q": {"a": 0.2}, "v": {"a": 0.1}}, 0.2 + 0.03 + 0.15 * 0.09), ({"q": {"a": 0.2}}, 0.2 + 0.15 * 0.09),
    ({"v": {"a": -0.3}}, 0.5 - 0.09 + 0.15 * 0.09)])
def test_set_moves_what_rests(run, stop, given, expected):
    options = json.loads(json.dumps(STOPS[stop]))
    options.setdefault("events", {})["move"] = {"at": 0.7, "do": {"set": given}}
    result = run("slider", duration=1, initial={"v": {"a": 1}}, joints={"a": {"torque": PUSH}}, **options)
    assert result.q[-1, 0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("at", [0.7, None])
def test_what_is_released_at_its_stop_rests_again(run, stop, at):
    """It was locked while at rest, or by the event of the impact."""
    options = json.loads(json.dumps(STOPS[stop]))
    lock = {"at": at} if at else {"when": "q(a)", "value": 0.5, "direction": "rising"}
    options.setdefault("events", {}).update(lock={**lock, "do": {"lock": "a"}}, free={"at": 0.8, "do": {"unlock": "a"}})
    result = run("slider", duration=1, initial={"v": {"a": 1}}, joints={"a": {"torque": PUSH}}, **options)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], [0.5, 0.0], atol=1e-12)


def test_what_a_phase_releases_at_its_stop_rests(run):
    result = run("slider", duration=1, gravity=[0, 0, -9.81],
                 phases={"held": {"joints": {"a": {"prescribe": {"position": 0}}}}, "free": {}},
                 events={"floor": impact("a", 0, "falling", 0.5, **{"phases": "free"}),
                         "go": {"at": 0.2, "do": {"phase": "free"}}})
    assert np.abs(result.q).max() == 0


@pytest.mark.parametrize("below", ["joint", "link"])
@pytest.mark.parametrize("above", ["event", "hard stop"])
@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_what_rests_on_a_body_that_bounces_stays_on_it(run, below, above, restitution):
    floor = impact("a", 0, "falling", restitution)
    if below == "link":
        floor = {"when": "z(a)", "direction": "falling", "do": {"impact": {"link": "a", "restitution": restitution}}}
    rest = {"limits": "hard"} if above == "hard stop" else {}
    events = {"floor": floor} | ({} if rest else {"on": impact("b", 0, "falling", 0)})
    result = run("stack", duration=0.6, initial={"q": {"a": 1}}, joints={"b": {"torque": -1}}, events=events, **rest)
    t = math.sqrt(2 / 9.81)
    up, rest = restitution * 9.81 * t, 0.6 - t
    np.testing.assert_allclose(result.q[-1], [up * rest - 9.81 / 2 * rest**2, 0.0], atol=1e-9)


def ends(result) -> float:
    return float((result.q[:, 1] - 0.5 * np.abs(np.sin(result.q[:, 2]))).min())


def rod(tilt, restitution):
    return {"duration": 1.2, "initial": {"q": {"z": 3.0, "r": tilt}}, "output_step": 0.01, "events": {
        name: {"when": f"z(b, {x}, 0, 0)", "value": 2.5, "direction": "falling",
               "do": {"impact": {"link": "b", "point": [x, 0, 0], "restitution": restitution}}}
        for name, x in (("left", -0.5), ("right", 0.5))}}


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9, 1e-3, 0.3])
def test_no_end_of_a_rod_passes_its_floor(run, tilt):
    result = run("rod", **rod(tilt, 1.0))
    assert ends(result) > 2.5 - 1e-9 and len(result.events) >= 4
    for restitution in (0.0, 0.5):
        with pytest.raises(ld.ComputationError, match="a link cannot rest at a stop"):
            run("rod", **rod(tilt, restitution))


def test_an_impact_does_not_turn_back_what_leaves_its_stop(run):
    """One joint has two impacts at the same time: at the second, it moves back already."""
    result = run("slider", duration=2, initial={"v": {"a": 0.8}},
                 events={"one": impact("a", 0.4, "rising", 0.5), "two": impact("a", 0.4, "rising", 0.5)})
    assert result.q.max() <= 0.4 + 1e-12 and result.v[-1, 0] == pytest.approx(-0.4)


# next to other motion ------------------------------------------------------------------------------------------------------
ROBOTS["two"] = {"gravity": [0, 0, -10], "links": {"a": {"mass": 1}, "b": {"mass": 1}},
                 "joints": {"x": slides("world", "a", (1, 0, 0)), "z": slides("world", "b")}}
ROBOTS["carried"] = {**ROBOTS["two"], "joints": {"x": slides("world", "a", (1, 0, 0)), "z": slides("a", "b")}}
FLOOR = {"hit": impact("z", 0, "falling", 0.5)}


BEFORE = [{}, {"put": {"at": 0.1, "do": {"set": {"q": {"z": 0}, "v": {"z": 0}}}}},
          {"hold": {"at": 0.05, "do": {"lock": "z"}}, "free": {"at": 0.2, "do": {"unlock": "z"}},
           "put": {"at": 0.1, "do": {"set": {"q": {"z": 0}}}}}]


@pytest.mark.parametrize("robot", ["two", "carried"])
@pytest.mark.parametrize(("method", "speed", "before"), [          # each method once with each speed and with each event before
    (("rk4", "dopri5", "Radau")[(i + k) % 3], speed, before)
    for i, speed in enumerate((0.0, 1e-3, 1.0)) for k, before in enumerate(BEFORE)])
def test_a_coordinate_rests_at_its_stop_whatever_else_moves(run, robot, speed, before, method):
    result = run(robot, duration=1, initial={"q": {"z": 1.0 if before else 0.0}, "v": {"x": speed}}, events={**before, **FLOOR},
                 integrator={"method": method})
    np.testing.assert_allclose(result.q[-1], [speed, 0.0], atol=1e-12)
    assert any(" ended at t = " in x for x in map(str, result.warnings)) == bool(before)  # at the start it rests silently


@METHODS
@pytest.mark.parametrize("torque", ["10*step(1 - t)", "10 - t", "10 - t**2"])
def test_what_rests_without_a_force_at_the_start_does_not_fall_later(run, torque, method):
    result = run("two", duration=3, joints={"z": {"torque": torque}}, events=FLOOR, integrator={"method": method})
    assert abs(result.q[-1, 1]) < 1e-12


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas5p", "Radau"])
@pytest.mark.parametrize("q", [0.0, 1e-14, 1e-13, 1e-12, -1e-13])
@pytest.mark.parametrize("speed", [0.0, 1e-13, 1e-12])
def test_a_start_that_is_zero_but_for_rounding_takes_a_first_step(run, method, q, speed):
    """The end of another run is such a state. The first step was a hundredth of the time in which the state doubles: zero."""
    result = run("two", duration=1, initial={"q": {"z": q}, "v": {"x": speed}}, integrator={"method": method})
    np.testing.assert_allclose(result.q[-1], [0.0, -5.0], atol=1e-9)


def test_an_impact_whose_condition_is_elsewhere_holds_nothing_at_rest(run):
    """x passes its value slowly and is pushed on; z is at rest elsewhere."""
    result = run("two", duration=1, joints={"x": {"torque": -1}, "z": {"torque": 10}},
                 events={"hit": {**impact("z", 0, "falling", 0), "when": "q(x)"}})
    np.testing.assert_allclose(result.q[-1], [-0.5, 0.0], atol=1e-12)
    assert not any("it stays at the stop until" in note for note in map(str, result.warnings))


# impacts at one time that drive each other ----------------------------------------------------------------------------------
def arm(n, rng=None):
    """Return a chain of n hinges, of equal rods or random ones."""
    size = (lambda: 1.0) if rng is None else (lambda: float(rng.uniform(0.3, 1.5)))
    names = "abcd"[:n]
    axis = [0, 1, 0] if rng is None else list(rng.normal(size=3))
    return {"links": {name: {"mass": size(), "com": [0, 0, -size()], "inertia": [0.01, 0.02, 0.02]} for name in names},
            "joints": {name: {"type": "revolute", "parent": "world" if i == 0 else names[i - 1], "child": name, "axis": axis,
                              "origin": {"xyz": [0, 0, -1.0 if i else 0.0]}, "limits": {"lower": 0, "upper": 6}}
                       for i, name in enumerate(names)}}


@pytest.mark.parametrize(("method", "restitutions", "hard"), [
    (("rk4", "dopri5")[(i + k) % 2], restitutions, hard)
    for i, restitutions in enumerate([(0, 0), (0, 0.6), (0.6, 0), (0.3, 0.8)]) for k, hard in enumerate([None, "a", "b"])])
@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_impacts_of_two_hinges_keep_both_at_their_stops(run, restitutions, hard, method):
    """Both have events; or one has a hard stop and the other an event."""
    ROBOTS["arm"] = arm(2)
    if hard:
        for name in "ab":
            if name != hard:
                ROBOTS["arm"]["joints"][name]["type"] = "continuous"
                del ROBOTS["arm"]["joints"][name]["limits"]
    events = {name: impact(name, 0, "falling", e) for name, e in zip("ab", restitutions, strict=True) if name != hard}
    limits = {"limits": {"mode": "hard", "restitution": restitutions["ab".index(hard)]}} if hard else {}
    step = {"step": 2e-3} if method == "rk4" else {}
    for q, v in (((0.2, 0.1), (-2, 0)), ((0.2, 0.1), (0, 0)), ((0.2, 0.4), (0, 0))):
        result = run("arm", duration=1.0, initial={"q": dict(zip("ab", q, strict=True)), "v": dict(zip("ab", v, strict=True))},
                     events=events, integrator={"method": method, **step}, **limits)
        assert result.q.min() > -1e-9


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_no_hinge_of_a_random_arm_passes_a_stop(run, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    ROBOTS["arm"], ends = arm(n, rng), {name: (-float(rng.uniform(0, 0.4)), float(rng.uniform(0, 0.4))) for name in "abcd"[:n]}
    for one in ROBOTS["arm"]["joints"].values():
        one.pop("limits")
        one["type"] = "continuous"
    restitution = float(rng.choice([0, 0.3, 0.6]))
    events = {f"{way}_{name}": impact(name, end, way, restitution)
              for name, pair in ends.items() for way, end in zip(("falling", "rising"), pair, strict=True)}
    result = run("arm", duration=1.0, initial={"v": {name: float(rng.normal()) for name in ends}}, events=events,
                 integrator={"method": str(rng.choice(["dopri5", "Radau"]))})
    low, high = np.array(list(ends.values())).T
    assert (result.q > low - 1e-9).all() and (result.q < high + 1e-9).all()


def test_a_speed_into_its_hard_stop_that_is_set_rebounds(run):
    result = run("slider", duration=2, initial={"q": {"a": 0.5}}, joints={"a": {"torque": PUSH}}, output_step=0.01,
                 limits={"mode": "hard", "restitution": 0.5}, events={"kick": {"at": 1, "do": {"set": {"v": {"a": 0.1}}}}})
    assert result.v[result.t > 1.0][0, 0] == pytest.approx(-0.05 + 0.01 * PUSH)
    assert result.q.min() == pytest.approx(0.5 - 0.05**2 / (2 * PUSH), abs=1e-4)


@METHODS
@pytest.mark.parametrize("first", ["hit", "kick"])
def test_a_speed_into_its_event_stop_that_is_set_rebounds(run, first, method):
    """It rebounds as at a hard stop: the speed was lost."""
    events = {"hit": impact("a", 0.5, "rising", 0.5), "kick": {"at": 1, "do": {"set": {"v": {"a": 0.1}}}}}
    result = run("slider", duration=2, initial={"q": {"a": 0.5}}, joints={"a": {"torque": PUSH}}, output_step=0.01,
                 events=dict(reversed(events.items())) if first == "kick" else events, integrator={"method": method})
    assert [one.name for one in result.events][:2] == ["kick", "hit"]
    assert result.v[result.t > 1.0][0, 0] == pytest.approx(-0.05 + 0.01 * PUSH)
    assert result.q.min() == pytest.approx(0.5 - 0.05**2 / (2 * PUSH), abs=1e-4) and result.q.max() < 0.5 + 1e-9


STICKS = {"torque": "0.2*(t-0.5) - 0.3*sign(v)"}                # the load leaves the stop at 0.5 s and does not overcome friction


def test_friction_by_the_sign_of_the_velocity_that_holds_a_coordinate_at_its_stop_is_told(run):
    """The run took seconds of computation for each microsecond."""
    with pytest.raises(ld.ComputationError, match=r"a repeatedly leaves its stop and is driven back from t = 0\.5.*tanh"):
        run("slider", duration=0.6, initial={"q": {"a": -0.5}}, joints={"a": STICKS}, integrator={"method": "rk4"}, limits="hard")


@pytest.mark.parametrize(("method", "beyond", "turns"), [
    (method, beyond, (i + k) % 2 == 1)
    for i, method in enumerate(("rk4", "dopri5", "Radau")) for k, beyond in enumerate((1e-14, -1e-14, 3e-14, 1e-13))])
def test_a_run_begins_at_rest_where_impacts_of_another_have_left_it(run, beyond, turns, method):
    """Impacts that come to an end together leave hinges some roundings beyond their stops, whatever the robot's size."""
    ROBOTS["short"] = {"gravity": [0, 0, 0], "links": {"a": {"mass": 1, "com": [0.1, 0, 0], "inertia": [0.01, 0.01, 0.01]}},
                       "joints": {"a": {**slides("world", "a"), "type": "continuous" if turns else "prismatic"}}}
    q = 0.3 - (beyond if turns else 0.1 * beyond)              # in rad, or in m of a robot of 0.1 m
    result = run("short", duration=1, initial={"q": {"a": q}}, joints={"a": {"torque": -1}},
                 events={"hit": impact("a", 0.3, "falling", 0.5)}, integrator={"method": method})
    assert abs(result.q[-1, 0] - 0.3) < 2e-13 and not result.events


def test_a_start_at_rest_at_a_stop_without_a_direction_is_told(run):
    """The side of the coordinate is undefined."""
    event = {"hit": {"when": "q(z)", "do": {"impact": {"joint": "z", "restitution": 0.5}}}}
    with pytest.warns(ld.LiedynWarning, match="event hit: the expression starts at its value at rest, and the event has no d"):
        result = run("two", duration=1, events=event)
    assert result.q[-1, 1] == pytest.approx(-5.0)
    assert not any("has no direction" in note
                   for note in map(str, run("two", duration=1, events=event, initial={"v": {"z": 1.0}}).warnings))


def test_what_accelerates_as_prescribed_cannot_rest(run):
    """It rebounded until an end, and then passed the stop."""
    with pytest.raises(ld.ComputationError, match=r"event hit at t = 0\.59.* since its acceleration is prescribed"):
        run("two", duration=1, initial={"q": {"z": 0.2}}, joints={"z": {"prescribe": {"acceleration": -10}}}, events=FLOOR)


# stacks: sliders one upon another, in no order of mass ------------------------------------------------------------------
def stack(tmp_path, masses, heights, restitutions, forces=(), hard=None, method="dopri5", duration=2.5, length=1.0, locks=None):
    """Of sliders on each other. hard: a restitution of hard stops at zero, instead of events. length: of the unit, in which
    gravity is 9.81 per second squared."""
    names = "abcdef"[:len(masses)]
    joints = {name: slides("world" if i == 0 else names[i - 1], name, limits={"lower": 0, "upper": 50 * length})
              for i, name in enumerate(names)}
    (tmp_path / "stack.yaml").write_text(json.dumps({
        "name": "stack", "gravity": [0, 0, -9.81 * length], "joints": joints,
        "links": {name: {"mass": mass} for name, mass in zip(names, masses, strict=True)}}))
    events = {name: impact(name, 0, "falling", e) for name, e in zip(names, restitutions, strict=True) if e is not None}
    if locks:
        events |= {"lock": {"at": 0.7, "do": {"lock": locks}}, "unlock": {"at": 1.5, "do": {"unlock": locks}}}
    limits = {} if hard is None else {"limits": {"mode": "hard", "restitution": hard}}
    return ld.run_scenario({
        "robot": str(tmp_path / "stack.yaml"), "duration": duration, "output_step": 0.05,
        "integrator": {"method": method, **({"step": 1e-3} if method == "rk4" else {})},
        "initial": {"q": {name: length * x for name, x in zip(names, heights, strict=True)}},
        "joints": {name: {"torque": length * f} for name, f in zip(names, forces, strict=False)}, "events": events, **limits})


def check_stack(result, length=1.0, still=True) -> None:
    assert result.q.min() > -1e-9 * length and result.check["energy_balance_relative"] < 1e-7
    if still:
        np.testing.assert_allclose(result.q[-1], 0.0, atol=1e-9 * length)
        assert not result.v[-1].any()


STACKS = {
    "the second rests since the first does": ((0.27, 13.8), (0, 0), (0.9, 0.5), (-12,)),
    "one rebounds below one that does not": ((48.2, 82.0, 0.83), (1, 0, 1), (0.9, 0, 0), (0, 195, 0)),
    "a force between what rests": ((0.0617, 0.0373, 8.65), (0, 1.6475, 0), (0, 0, 0.5), (-5.1, -9.6, 0)),
    "heavy upon light": ((0.063, 69.8), (1, 1.9), (0.2, 0.9), (0, -30.6)),
    "light between heavy": ((1.06, 0.0179, 37.8), (0.68, 0, 1), (0, 0, 0.9), (-39, 0, 0)),
    "flights of one height with their rounding": ((0.017245736296409055, 1.7730386161744716), (0, 1), (None, None),
                                                 (0, -1.7902843524708807)),
}


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize(("method", "case"), [("rk4", case) for case in STACKS] + [
    ("dopri5", case) for case in ("one rebounds below one that does not", "a force between what rests", "heavy upon light")])
def test_stacks_come_to_rest(tmp_path, case, method):
    masses, heights, restitutions, forces = STACKS[case]
    hard = 0.9 if restitutions[0] is None else None
    result = stack(tmp_path, masses, heights, restitutions, forces, hard, method, 12.0)
    check_stack(result)
    assert len(result.events) < 1000


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize(("scale", "length", "hard"), [
    (scale, length, (None, 0.5)[(i + k) % 2])
    for i, scale in enumerate((1e-6, 1.0, 1e6)) for k, length in enumerate((1e-3, 1.0, 1e3))])
def test_stacks_come_to_rest_in_any_unit(tmp_path, scale, length, hard):
    result = stack(tmp_path, (scale, 2 * scale), (1, 0), (0.5, 0) if hard is None else (None, None), (), hard, length=length)
    check_stack(result, length)


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize(("method", "restitution", "height"), [
    (("rk4", "dopri5")[(i + k) % 2], restitution, height)
    for i, restitution in enumerate((0.2, 0.5, 0.9)) for k, height in enumerate((1e-4, 1e-2))])
def test_impacts_at_hard_stops_at_zero_end(tmp_path, restitution, method, height):
    """They continued without an end, falling by the rounding bound and back."""
    result = stack(tmp_path, (1, 2), (height, 1), (None, None), (), restitution, method, 12.0)
    check_stack(result)
    assert len(result.events) < 1000


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize("seed", range(15))
def test_no_slider_of_a_random_stack_passes_its_stop(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    masses = 10.0 ** rng.uniform(-2, 2, n)
    heights = [float(rng.choice([0, 0, 1, rng.uniform(0, 2), 1e-4])) for _ in range(n)]
    forces = [masses.sum() * float(rng.choice([0, -1, rng.normal()])) for _ in range(n)]
    restitutions = rng.choice([0, 0, 0.2, 0.5, 0.9], n)
    hard = float(rng.choice([0, 0.5, 0.9])) if rng.random() < 0.4 else None
    locks = str(rng.choice(list("abcd"[:n]))) if rng.random() < 0.3 else None
    given = [None if hard is not None and rng.random() < 0.7 else float(e) for e in restitutions]      # or both at one place
    check_stack(stack(tmp_path, masses, heights, given, forces, hard, str(rng.choice(["rk4", "dopri5"])), locks=locks),
                still=False)


# rollouts -------------------------------------------------------------------------------------------------------------

@pytest.fixture
def model_of(tmp_path):
    def model_of(robot: str):
        path = tmp_path / f"{robot}.yaml"
        path.write_text(json.dumps({"name": robot, **ROBOTS[robot]}))
        return ld.load(path)

    return model_of


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_no_end_of_a_rod_passes_its_floor_in_rollouts(model_of):
    """Vectorized and sequential runs agree; impacts that accumulate end them."""
    model, tilts = model_of("rod"), [0.0, 1e-12, 1e-9, 1e-3, 0.3]
    q0 = np.array([[0.0, 3.0, tilt] for tilt in tilts])
    for restitution in (0.0, 0.5, 1.0):
        runs = ld.rollout(model, q0, np.zeros(3), dt=1e-3, steps=1000, every=5, events=rod(0.0, restitution)["events"])
        lowest = (runs.q[..., 1] - 0.5 * np.abs(np.sin(runs.q[..., 2])))
        assert np.nanmin(lowest) > 2.5 - 1e-9
        assert runs.complete.all() if restitution == 1.0 else not runs.complete.any()


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_impacts_at_one_time_in_rollouts_are_those_of_runs(run, model_of):
    events = {"one": impact("a", 0.4, "rising", 0.5), "two": impact("a", 0.4, "rising", 0.5)}
    single = run("slider", duration=2, initial={"v": {"a": 0.8}}, events=events)
    runs = ld.rollout(model_of("slider"), [0.0], [0.8], dt=1e-2, steps=200, events=events)
    assert list(runs.events.name) == [one.name for one in single.events] == ["one", "two"]
    np.testing.assert_allclose([runs.q[-1], runs.v[-1]], [single.q[-1], single.v[-1]], atol=1e-12)


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize(("restitutions", "count"), [((0.6, 0.01), 200), ((0.01, 0.6), 20), ((0.01, 0.01), 20), ((0.3, 0.3), 20)])
def test_impacts_that_drive_each_other_back_keep_hinges_at_their_stops_in_rollouts(model_of, restitutions, count):
    """One of 200 runs was below its stop, since its last impact was too slow to be counted."""
    ROBOTS["arm"], rng = arm(2), np.random.default_rng(0)
    q0, v0 = np.abs(rng.uniform(0.1, 1, (count, 2))), -rng.uniform(0, 2, (count, 2))
    events = {name: impact(name, 0, "falling", e) for name, e in zip("ab", restitutions, strict=True)}
    runs = ld.rollout(model_of("arm"), q0, v0, dt=1e-3, steps=600, events=events)
    assert np.nanmin(runs.q) > -1e-9
