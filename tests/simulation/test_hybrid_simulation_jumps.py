"""Events whose expressions jump over their value: with a signal, a switch of the state, a torque that is sampled, an impact at a
limit. Right times are read off the signals, or are those of an oscillator."""
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import liedyn as ld

ROOT = Path(__file__).parents[2]

METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "Radau")
MULTISTEP = "BDF"                                             # by the same loop as Radau, and slower
SLIDER = {"name": "slider", "links": {"a": {"mass": 1.0, "com": [0, 0, 0], "inertia": [0.01] * 3}},
          "joints": {"z": {"type": "prismatic", "axis": [1, 0, 0], "parent": "world", "child": "a"}}}
OMEGA = np.sqrt(40.0)
TURNS = (np.arange(4) + 0.5) * np.pi / OMEGA                   # of z = sin(OMEGA t) / OMEGA
ABOVE = np.sort(np.concatenate([(side + 2.0 * np.pi * np.arange(2)) / OMEGA for side in (
    np.arcsin(0.05 * OMEGA), np.pi - np.arcsin(0.05 * OMEGA))]))          # where z passes 0.05


@pytest.fixture
def times(scenario):
    """Return the times of the event that records where an expression passes its value."""
    def times(changes: dict, when: str, value: float, method: str = "rk4", direction: str = "both", others=None) -> list[float]:
        watched = {"when": when, "value": value, "direction": direction, "do": "record"}
        keys = {"duration": 2.0, "gravity": [0, 0, 0], "integrator": {"method": method},
                "events": {**(others or {}), "J": watched}}
        run = ld.run_scenario(scenario(json.dumps(SLIDER), **keys | changes))
        return [event.t for event in run.events if event.name == "J"]
    return times


def with_methods(cases: list, methods: tuple[str, ...] = METHODS) -> list:
    """Return all cases with the first method, and the other methods in turn with one case each, until all have occurred."""
    first, *others = methods
    turns = range(max(len(cases), len(others)))
    return [(first, *case) for case in cases] + [(others[k % len(others)], *cases[k % len(cases)]) for k in turns]


def torque(expression: str) -> dict:
    return {"joints": {"z": {"torque": expression}}}


OFTEN = "3*step(t-.3)-2.5*step(t-.7123)+2*step(t-1.2)"


@pytest.mark.parametrize(("method", "expression", "direction", "right"), with_methods([
    (OFTEN, "both", [0.3, 0.7123, 1.2]), (OFTEN, "rising", [0.3, 1.2]), (OFTEN, "falling", [0.7123]),
    ("3*step(t-.3)-2*max(0,t-.5)", "both", [0.3, 1.5]),                               # the second time without a jump
    ("2*t-4*step(t-1)+4*step(t-1.3)", "both", [0.5, 1.0, 1.3]),
    ("3*step(t-2)", "both", [2.0]),                                                    # where the run ends
    ("1+10*step(t-.5)*step(1-t)", "falling", [1.0]),                                   # exactly onto the value, here and below
    ("2-step(t-1)+step(t-1.2)-step(t-1.4)", "falling", [1.0, 1.4]),
    ("1-5*step(t-.5)*step(1-t)-5*step(t-1.2)*step(1.5-t)", "rising", [1.0, 1.5]),
    ("2*step(t-.5)-step(t-1)-step(t-1.5)", "falling", [1.0]),
    ("1+2*abs(t-1)", "both", [1.0]), ("1+2*abs(t-.7)", "falling", [0.7])], (*METHODS, MULTISTEP)))   # a kink that reaches it
def test_each_jump_of_a_signal_is_an_event(times, expression, direction, right, method):
    assert times(torque(expression), "tau(z)", 1.0, method, direction) == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
@pytest.mark.parametrize("direction", ["both", "rising", "falling"])
def test_a_passing_right_after_a_jump_the_other_way(times, direction, method):
    """The force falls through 1 at 0.3 s, jumps to 1.002 at 0.5 s, and falls through 1 again at 0.502 s."""
    right = {"both": [0.3, 0.5, 0.502], "rising": [0.5], "falling": [0.3, 0.502]}[direction]
    assert times(torque("1.3-t+.202*step(t-.5)"), "tau(z)", 1.0, method, direction) == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize(("method", "seed"), [*(("rk4", seed) for seed in range(6)), *(("dopri5", seed) for seed in range(3)),
                                              ("Radau", 3)])
def test_random_levels(times, method, seed):
    """The force jumps between -1, 0 and 1. Reaching 0 is an event, and returning to the previous side is another."""
    rng = np.random.default_rng(seed)
    moments, levels = np.sort(rng.choice(np.arange(1, 20), 9, replace=False)) / 10.0, rng.integers(-1, 2, 10).tolist()
    jumps = list(zip(moments.tolist(), levels, levels[1:], strict=False))
    law = "+".join([str(levels[0]), *(f"({level - before})*step(t-{t})" for t, before, level in jumps)])
    right, side = {1: [], -1: []}, levels[0]
    for t, before, level in jumps:
        way = level or -side
        if level != before and side and way != side:
            right[way].append(t)
        side = way if level != before else side
    for direction, moments in (("rising", right[1]), ("falling", right[-1]), ("both", sorted(right[1] + right[-1]))):
        assert times(torque(law), "tau(z)", 0.0, method, direction) == pytest.approx(moments, abs=1e-9)
        assert times({}, f"{law}+0*q(z)", 0.0, method, direction) == pytest.approx(moments, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_at_the_time_of_another_event(times, method):
    others = {"T": {"at": [0.3, 1.2], "do": "record"}}
    assert times(torque(OFTEN), "tau(z)", 1.0, method, others=others) == pytest.approx([0.3, 0.7123, 1.2], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_an_expression_that_jumps_itself(times, method):
    found = times({}, ".1*q(z)+1.5*step(t-.3)-1.2*step(t-.7123)", 1.0, method)
    assert found == pytest.approx([0.3, 0.7123], abs=1e-9)


@pytest.mark.parametrize(("method", "signal", "right"), with_methods([
    ("3*abs(sin(5*t))", np.arange(1, 4) * np.pi / 5), ("abs(t-.5)*abs(t-1.5)", [0.5, 1.5]),
    ("2*abs(t-.3)*abs(t-1)*abs(t-1.7)", [0.3, 1.0, 1.7]), ("max(0,t-.5)*max(0,1.5-t)", [1.5])]))
def test_each_kink_that_reaches_the_value(times, signal, right, method):
    assert times(torque(signal), "tau(z)", 0.0, method) == pytest.approx(list(right), abs=1e-9)
    assert times({}, f"{signal}+0*q(z)", 0.0, method) == pytest.approx(list(right), abs=1e-9)


@pytest.mark.parametrize(("method", "curve", "rising", "falling"), with_methods([
    ({"quintic": [[0, 0], [1, 1]]}, [], [1.0]), ({"quintic": [[0, 0], [1, 1], [1.5, 1], [2, 0]]}, [2.0], [1.0]),
    ({"quintic": [[0, 0], [0.3, 2], [0.6, 0], [0.9, 2.5], [1.2, 0.5]]}, [0.6, 1.2], [0.3, 0.9])]))
def test_rests_of_a_curve_are_reached_once(times, curve, rising, falling, method):
    """v and its rate are zero there, except for the rounding of polynomials."""
    moved = {"joints": {"z": {"prescribe": {"position": curve}}}, "duration": 2.3}
    for direction, right in (("rising", rising), ("falling", falling), ("both", sorted(rising + falling))):
        assert times(moved, "v(z)", 0.0, method, direction) == pytest.approx(right, abs=1e-4)


@pytest.mark.parametrize(("method", "frequency"), with_methods([(12.751,), (19.602,), (14.451,), (10.909,)]))
def test_a_passing_at_the_time_of_a_timed_event_happens_once(times, frequency, method):
    """The times of a prescribed position and of the event are equal except for rounding."""
    turns = np.arange(1, int(2.0 * frequency / np.pi)) * np.pi / frequency
    moved = {"joints": {"z": {"prescribe": {"position": f"sin({frequency}*t)"}}}}
    found = times(moved, "q(z)", 0.0, method, others={"a": {"at": turns.tolist(), "do": "record"}})
    assert [t for t in found if 0 < t < turns[-1] + 0.1] == pytest.approx(turns, abs=1e-12)


@pytest.mark.parametrize(("method", "when"), with_methods([("q(z)*step(1-t)",), ("v(z)*step(1-t)",), ("step(1-t)+0*q(z)",)]))
def test_an_expression_that_jumps_onto_its_value_happens_once(times, when, method):
    moving = {"initial": {"q": {"z": 0.1}, "v": {"z": 1.0}}}
    assert times(moving, when, 0.0, method) == pytest.approx([1.0], abs=1e-9)


@pytest.mark.parametrize("held", [{"joints": {"z": {"prescribe": {"position": 0}}}}, {}], ids=["prescribed", "locked"])
@pytest.mark.parametrize("method", ["rk4", "dop853", "Radau"])
def test_a_wrench_that_acts_twice(times, held, method):
    pushes = [{"link": "a", "wrench": [0, 0, 0, 4, 0, 0], "from": begin, "until": end} for begin, end in ((0.5, 0.9), (1.2, 1.4))]
    others = {} if held else {"L": {"at": 0, "do": {"lock": "z"}}}
    found = times({"external_forces": pushes, **held}, "tau(z)", -1.0, method, others=others)
    assert found == pytest.approx([0.5, 0.9, 1.2, 1.4], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("when", "value", "right"), [
    ("sign(v(z))", 0.0, TURNS), ("sign(v(z))", 0.5, TURNS), ("step(q(z)-.05)", 0.5, ABOVE), ("q(z)+step(q(z)-.05)", 0.5, ABOVE),
    ("q(z)*step(v(z))", 0.05, [ABOVE[0], TURNS[0], ABOVE[2], TURNS[2]])])
def test_each_jump_at_a_switch_of_the_state_is_an_event(times, when, value, right, method):
    oscillating = torque("-40*q") | {"initial": {"v": {"z": 1.0}}}
    if method in ("Radau", "BDF"):
        oscillating["integrator"] = {"method": method, "rtol": 1e-10, "atol": 1e-12}
    known = {"abs": 2e-6 if method == "BDF" else 3e-8}
    assert times(oscillating, when, value, method) == pytest.approx(list(right), **known)
    ahead = right[1::2] if right is TURNS else right[::2]
    assert times(oscillating, when, value, method, direction="rising") == pytest.approx(list(ahead), **known)


@pytest.mark.parametrize(("when", "value", "right"), [("sign(v(z))", 0.0, TURNS), ("step(q(z)-.05)", 0.5, ABOVE)])
def test_rollouts_find_them_too(tmp_path, when, value, right):
    path = tmp_path / "slider.yaml"
    path.write_text(json.dumps(SLIDER))
    model = ld.load(path)
    found = ld.rollout(model, [0.0], [1.0], dt=1e-3, steps=2000, feedback=ld.Feedback.pd([40.0], [0.0], [0.0]),
                       events={"J": {"when": when, "value": value, "do": "record"}})
    assert found.events.t == pytest.approx(list(right), abs=1e-8)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
@pytest.mark.parametrize(("law", "at"), [("1.5*step(q-.3)", 0.3), ("floor(10*q)/3", 0.3)])
def test_forces_that_jump_with_the_state(times, law, at, method):
    found = times(torque(law) | {"initial": {"q": {"z": 0.05}, "v": {"z": 1.0}}}, "tau(z)", 0.9, method)
    free_flight = at - 0.05 if "step" in law else _arrival(at)
    assert found[0] == pytest.approx(free_flight, abs=1e-8)


def _arrival(at: float) -> float:
    """Return when a force floor(10 q)/3 has moved z from 0.05 to `at`."""
    t, q, v = 0.0, 0.05, 1.0
    while q < at - 1e-9:
        ahead = min(at, np.floor(10 * q + 1e-9) / 10 + 0.1)
        a = np.floor(10 * q + 1e-9) / 3
        took = (ahead - q) / v if a == 0 else (np.sqrt(v * v + 2 * a * (ahead - q)) - v) / a
        t, q, v = t + took, ahead, v + a * took
    return t


@pytest.mark.parametrize("method", ["rk4", "dop853", "Radau"])
def test_sampled_torques(times, scenario, method):
    """Samples are those of the same run without an event. There is none at the start, whose first torque exceeds the value."""
    sampled = {"sampling": {"rate": 50}, "duration": 1.0,
               "joints": {"z": {"torque": {"pd": {"kp": 30, "kd": 0.5, "target": ".3*sin(25*t)"}}}}}
    run = ld.run_scenario(scenario(json.dumps(SLIDER), gravity=[0, 0, 0], output_step=0.005, integrator={"method": method},
                                   **sampled))
    side = np.sign(run.tau[:, 0] - 1.0)
    jumps = np.flatnonzero(np.diff(side)) + 1
    assert len(jumps) == 7
    assert times(sampled, "tau(z)", 1.0, method) == pytest.approx(run.t[jumps], abs=1e-9)
    assert times(sampled, "tau(z)", 1.0, method, "rising") == pytest.approx(run.t[jumps][side[jumps] > 0], abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
@pytest.mark.parametrize("stop", ["limit", "event"])
def test_a_brake_slips_when_an_impact_jerks_it(scenario, stop, method):
    """The elbow hits its stop; the load of the locked shoulder jumps from 6 over 11 to 17 N m."""
    robot = yaml.safe_load((ROOT / "robots/double_pendulum.yaml").read_text())
    events = {"L": {"at": 0, "do": {"lock": "shoulder"}},
              "over": {"when": "tau(shoulder)", "value": 11.35, "do": {"unlock": "shoulder"}}}
    if stop == "limit":
        robot["joints"]["elbow"] |= {"type": "revolute", "limits": {"lower": 0.0, "upper": 6.0, "velocity": 99, "effort": 99}}
        more = {"limits": {"mode": "hard", "restitution": 0}}
    else:
        events["F"] = {"when": "q(elbow)", "direction": "falling", "do": {"impact": {"joint": "elbow", "restitution": 0}}}
        more = {}
    run = ld.run_scenario(scenario(json.dumps(robot), duration=0.8, initial={"q": {"shoulder": 1.0, "elbow": 0.4}},
                                   events=events, integrator={"method": method}, **more))
    assert [event.name for event in run.events] == ["L", "limit of elbow" if stop == "limit" else "F", "over"]
    assert run.events[1].t == run.events[2].t == pytest.approx(0.236934866, abs=1e-8)
    assert run.q[-1] == pytest.approx([0.09725875, 0.12585782], abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_what_begins_on_the_ground_does_not_lift(scenario, method):
    ball = {"name": "ball", "links": {"b": {"mass": 1.0, "inertia": [0.01] * 3}}}
    keys = {"base": "floating", "gravity": [0, 0, -10], "initial": {"q": {"base": [0, 0, 0.05, 0, 0, 0, 1]}}, "duration": 0.05,
            "contacts": {"links": {"b": {"sphere": {"radius": 0.05}}}}, "integrator": {"method": method}}
    events = {name: {"when": f"{name}(b)", "do": "record"} for name in ("touch", "lift")}
    assert not ld.run_scenario(scenario(json.dumps(ball), events=events, **keys)).events


@pytest.mark.parametrize("method", METHODS)
def test_a_switch_that_stays_at_its_edge_hides_no_event(scenario, method):
    """floor(q) of a coordinate at rest at exactly 1."""
    robot = {"name": "two", "links": {"a": {"mass": 1.0}, "b": {"mass": 1.0}},
             "joints": {name: {"type": "prismatic", "axis": axis, "parent": "world", "child": child}
                        for name, axis, child in (("z", [0, 0, 1], "a"), ("y", [0, 1, 0], "b"))}}
    run = ld.run_scenario(scenario(json.dumps(robot), gravity=[0, 0, -10], joints={"y": {"torque": "floor(q)-1"}},
                                   initial={"q": {"y": 1.0, "z": 1.0}}, integrator={"method": method},
                                   events={"J": {"when": "q(z)", "value": 0.3, "do": "record"}}))
    assert [event.t for event in run.events] == pytest.approx([np.sqrt(0.14)], abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_force_that_jumps_as_a_stop_lets_go(times, method):
    """At rest at an event stop, z has a weight of 10 N; from 1 s to 1.2 s a force of 30 N lifts it."""
    stop = {"F": {"when": "q(z)", "direction": "falling", "do": {"impact": {"joint": "z", "restitution": 0.3}}}}
    keys = torque("30*step(t-1)-30*step(t-1.2)") | {"gravity": [-10, 0, 0], "initial": {"q": {"z": 0.2}}}
    assert times(keys, "tau(z)", 15.0, method, others=stop) == pytest.approx([1.0, 1.2], abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_a_force_that_chatters(times, method):
    """A slider sticks by a law of sign(v): its force jumps back and forth, each time with an event."""
    sticks = torque("-2*sign(v)+.5*sin(3*t)") | {"duration": 1.0, "initial": {"v": {"z": 1.0}}}
    with pytest.raises(ld.ComputationError, match=r"events repeat indefinitely.*the last one is J .give it a debounce"):
        times(sticks, "tau(z)", 1.0, method)
    watched = {"when": "tau(z)", "value": 1.0, "debounce": 0.1, "do": "record"}
    assert times(sticks | {"events": {"J": watched}}, "", 0.0, method) == pytest.approx([0.603, 0.703, 0.804, 0.905], abs=5e-3)
    assert len(times(sticks | {"events": {"J": watched | {"once": True}}}, "", 0.0, method)) == 1


def with_method(method: str) -> dict:
    """Steps that are as long as the tests allow, because those of Radau are Python."""
    return {"method": method, **({"rtol": 1e-6, "atol": 1e-8} if method in ("rodas5p", "Radau") else {})}


@pytest.mark.parametrize(("method", "name"), [("rk4", "four_bar"), ("Radau", "four_bar"), ("dopri5", "slider_crank"),
                                              ("rodas5p", "slider_crank")])
def test_mechanisms_pass_values_in_the_direction_that_is_waited_for(name, method):
    """Where a step ends at a passing the other way, the projection onto the constraints may put the expression back."""
    path = ROOT / f"robots/{name}.yaml"
    model = ld.load(path)
    q = ld.assemble(model).q
    v = ld.project_velocity(model, q, 3.0 * np.eye(model.nv)[0])
    given = {"robot": str(path), "duration": 0.4, "output_step": 1e-4, "integrator": with_method(method),
             "initial": {kind: dict(zip(model.joint_names, x.tolist(), strict=True)) for kind, x in (("q", q), ("v", v))}}
    alone = ld.run_scenario(given)
    joint = model.joint_names[0]
    for kind, x in (("q", alone.q[:, 0]), ("v", alone.v[:, 0])):
        for direction, way in (("rising", 1.0), ("falling", -1.0)):
            values = np.linspace(x.min(), x.max(), 10)[1:-1]
            events = {f"J{k}": {"when": f"{kind}({joint})", "value": float(value), "direction": direction, "do": "record"}
                      for k, value in enumerate(values)}
            run = ld.run_scenario(given | {"events": events})
            for k, value in enumerate(values):
                found = [event.t for event in run.events if event.name == f"J{k}"]
                side = np.sign(x - value)
                right = alone.t[1:][(side[1:] == way) & (side[:-1] == -way)]
                assert len(found) == len(right), (kind, value, direction)
                assert found == pytest.approx(right, abs=2.1e-4)


@pytest.mark.parametrize("runs", [1, 2, 9])
def test_feedback_of_one_coordinate(tmp_path, runs):
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER))
    model = ld.load(tmp_path / "slider.yaml")
    found = ld.rollout(model, np.ones((runs, 1)), np.zeros((runs, 1)), dt=1e-3, steps=500,
                       feedback=ld.Feedback.pd([40.0], [0.0], [0.0]))
    assert np.abs(found.q[..., 0] - np.cos(OMEGA * found.t)).max() < 1e-9


@pytest.mark.parametrize("first", ["at", "every"])
@pytest.mark.parametrize("method", ["rk4", "Radau"])
def test_known_times_that_are_equal_follow_the_file(scenario, first, method):
    """3 * 0.1 is 0.30000000000000004."""
    given = {"at": {"at": 0.3, "do": {"set": {"q": {"z": 2.0}}}}, "every": {"every": 0.1, "do": {"set": {"q": {"z": 1.0}}}}}
    events = {name: given[name] for name in (first, *({*given} - {first}))}
    run = ld.run_scenario(scenario(json.dumps(SLIDER), duration=0.35, gravity=[0, 0, 0], events=events,
                                   integrator={"method": method}))
    assert [event.name for event in run.events] == ["every", "every", *events]
    assert run.q[-1, 0] == {"at": 1.0, "every": 2.0}[first]


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize(("speed", "direction"), [(-0.2, "rising"), (-0.2, "both"), (0.3, "rising"), (0.3, "both")])
def test_a_sample_sees_the_velocity_that_is_set(tmp_path, speed, direction, method):
    """The force becomes 1 N as `set` puts z beyond 0.5: v leaves its value upwards, which is not an event."""
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER))
    events = {"S": {"at": 0.3, "do": {"set": {"q": {"z": 1.0}, "v": {"z": speed}}}},
              "P": {"when": "v(z)", "value": speed, "direction": direction, "do": "record"}}
    run = ld.simulate(tmp_path / "slider.yaml", duration=0.6, tau=lambda t, q, v: np.where(q < 0.5, -1.0, 1.0), rate=100,
                      events=events, method=method)
    before = direction == "both" and speed < 0
    assert [event.name for event in run.events] == (["P", "S"] if before else ["S"])


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
@pytest.mark.parametrize(("direction", "right"), [("both", [2.20710678]), ("rising", []), ("falling", [2.20710678])])
def test_a_sample_at_a_start_from_the_value(tmp_path, direction, right, method):
    """`set` puts z at rest onto the value at 0.5 s, when the force turns to 1 N until 1 s: z is back at 1.5 + sqrt(0.5)."""
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER))
    rows = np.repeat([-1.0, 1.0, -1.0], [500, 500, 1500])[:, None]
    events = {"s": {"at": 0.5, "do": {"set": {"q": {"z": 0.2}, "v": {"z": 0.0}}}},
              "J": {"when": "q(z)", "value": 0.2, "direction": direction, "do": "record"}}
    run = ld.simulate(tmp_path / "slider.yaml", duration=2.5, q0=[0.5], tau=rows, rate=1000, events=events, method=method)
    assert [event.t for event in run.events if event.name == "J"] == pytest.approx(right, abs=1e-8)


MOVING = {"double_pendulum": ({"shoulder": 1.3, "elbow": 0.4},
                              ("v(elbow)*q(shoulder)", "vx(lower)", "z(lower, 0, 0, -.2)", "q(elbow)")),
          "four_bar": ({}, ("q(crank)", "v(knee)", "q(rocker)", "v(rocker)"))}


@pytest.mark.parametrize(("method", "robot"), [("dopri5", "double_pendulum"), ("Radau", "double_pendulum"), ("rk4", "four_bar"),
                                               ("rodas5p", "four_bar")])
def test_a_step_of_an_expression_passes_where_the_expression_does(robot, method):
    """Once each time and in its direction, also where a projection or rounding puts the argument back behind the step."""
    path, (q, arguments) = ROOT / f"robots/{robot}.yaml", MOVING[robot]
    if not q:
        model = ld.load(path)
        q = dict(zip(model.joint_names, ld.assemble(model, [1.2, -1.4, -1.8], fixed=["crank"]).q.tolist(), strict=True))
    given = {"robot": str(path), "duration": 1.2, "integrator": with_method(method), "initial": {"q": q}}

    def happened(events):
        """Return the times of each event in one run."""
        run = ld.run_scenario(given | {"events": {name: {"when": when, "value": value, "direction": direction, "do": "record"}
                                                  for name, (when, value, direction) in events.items()}})
        return {name: [event.t for event in run.events if event.name == name] for name in events}
    arguments_and_values = dict(zip(arguments, ([0.31, -0.47, 1.13] * 2)[:len(arguments)], strict=True))
    for direction in ("both", "rising", "falling"):
        right, steps, signs = (happened({f"J{k}": (form.format(argument, value), level or value, direction)
                                         for k, (argument, value) in enumerate(arguments_and_values.items())})
                               for form, level in (("{}", None), ("step({}-({}))", 0.5), (".7*sign({}-({}))", 0.3)))
        for name, times in right.items():
            assert steps[name] == pytest.approx(times, abs=1e-5)
            assert signs[name] == pytest.approx(times, abs=1e-5)


@pytest.mark.parametrize(("method", "speed", "right", "law"), with_methods([
    (speed, right, law) for speed, right in ((0.0, [0.993459, 1.986918]), (0.5, [1.416549, 1.986918]))
    for law in ("sign(v(z)-{})", "step(v(z)-{})-.5")], (*METHODS, MULTISTEP, "LSODA")))
def test_a_start_at_a_switch(times, speed, right, law, method):
    swings = torque("-10*q") | {"initial": {"q": {"z": 0.2}, "v": {"z": speed}}}
    assert times(swings, law.format(speed), 0.0, method) == pytest.approx(right, abs=2e-5)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
@pytest.mark.parametrize("when", ["q(z)-0.2", "v(z)"])
@pytest.mark.parametrize("held", [False, True])
def test_the_first_sample_acts_from_the_start(tmp_path, when, held, method):
    """A slider is lifted from rest at the value, which is not an event; also when it is unlocked."""
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER | {"gravity": [-10, 0, 0]}))
    events = {"P": {"when": when, "do": "stop"}}
    if held:
        events |= {"L": {"at": 0, "do": {"lock": "z"}}, "U": {"at": 0.1, "do": {"unlock": "z"}}}
    run = ld.simulate(tmp_path / "slider.yaml", duration=0.3, q0=[0.2], tau=lambda t, q, v: 20.0 + 0.0 * v, rate=100,
                      events=events, method=method)
    assert not {"P"} & {event.name for event in run.events}
    assert run.q[-1, 0] == pytest.approx(0.2 + 5.0 * (0.2 if held else 0.3)**2, abs=1e-9)


def test_a_sampled_function_whose_joints_are_all_held(tmp_path):
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER))
    run = ld.simulate(tmp_path / "slider.yaml", duration=0.3, tau=lambda t, q, v: 2.0 + 0.0 * v, rate=100,
                      events={"L": {"at": 0.1, "do": {"lock": "z"}}})
    assert run.q[-1, 0] == pytest.approx(0.01, abs=1e-9)
