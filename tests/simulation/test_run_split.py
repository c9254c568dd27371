"""Events do not depend on where a run is split in two, on or on the times of the outputs."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld

ROBOTS = Path(__file__).parents[2] / "robots"
ARM = (ROBOTS / "double_pendulum.yaml").read_text(encoding="utf-8")
G = 9.81
METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "RK45", "Radau", "BDF", "LSODA")
MULTISTEP = "BDF", "LSODA"            # by their tightened tolerances they find a bouncing ball's impacts to 1e-9 s
BALL = {"name": "ball", "links": {"ball": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01]}},
        "joints": {"z": {"type": "prismatic", "parent": "world", "child": "ball", "axis": [0, 0, 1],
                         "limits": {"lower": -0.3, "upper": 5.0}}}}
FALL, TOUCH = float(np.sqrt(2 * 0.7 / G)), float(np.sqrt(2 * 0.8 / G))
BOUNCE = {"bounce": {"when": "z(ball)", "value": 0.3, "direction": "falling",
                     "do": {"impact": {"joint": "z", "restitution": 0.8}}}}
RESTS = {"bounce": {**BOUNCE["bounce"], "do": {"impact": {"joint": "z", "restitution": 0.4}}}}
LATCH = {"latch": {"when": "q(z)", "value": 0.75, "direction": "falling", "do": {"lock": "z"}}}
PASS = {"a": {"when": "q(z)", "value": 0.7, "do": "record"}, "b": {"when": "sin(30*q(z))", "do": "record"}}
HARD = {"mode": "hard", "restitution": 0.6}
WAY = {"half": {"when": "q(z)", "value": 0.5, "do": "record"}, "more": {"when": "q(z)", "value": 0.8, "do": "record"}}


@pytest.fixture
def robot(scenario):
    """Return robot(events, duration, q, v, method, **more): a scenario of the ball."""
    def made(events, duration, q=1.0, v=0.0, method="rk4", **more):
        return scenario(json.dumps(BALL), duration=duration, output_step=0.05, events=events, integrator={"method": method},
                        initial={"q": {"z": float(q)}, "v": {"z": float(v)}}, **{"gravity": [0, 0, -G]} | more)
    return made


def happened(run, since=0.0):
    return [(one.name, one.t + since, *one.dv) for one in run.events]


def agree(one, other, within=1e-12):
    """Compare names, times and jumps of the velocity."""
    assert [x[0] for x in one] == [x[0] for x in other]
    np.testing.assert_allclose([x[1] for x in one], [x[1] for x in other], rtol=0, atol=within)
    np.testing.assert_allclose([x[2:] for x in one], [x[2:] for x in other], rtol=0, atol=40 * within)


CASES = {                             # split at; duration; events; keys of the whole and the first run; of the second
    "in flight": (0.9, 1.6, BOUNCE, {}, {}),
    "at an impact": (FALL, 1.6, BOUNCE, {}, {}),
    "before an impact": (FALL - 5e-15, 1.6, BOUNCE, {}, {}),
    "after an impact": (FALL + 5e-15, 1.6, BOUNCE, {}, {}),
    "at rest": (1.5, 2.0, RESTS, {}, {}),
    "at rest, leaves later": (1.5, 2.0, RESTS, {"joints": {"z": {"torque": f"{G}*t/1.75"}}},
                              {"joints": {"z": {"torque": f"{G}*(t + 1.5)/1.75"}}}),
    "at a hard stop": (0.9, 1.6, {}, {"limits": HARD}, {"limits": HARD}),
    "at an impact with it": (TOUCH, 1.6, {}, {"limits": HARD, "initial": {"q": {"z": 0.5}}}, {"limits": HARD}),
    "at rest at it": (2.6, 3.0, {}, {"limits": HARD}, {"limits": HARD}),
    "locked": (0.6, 1.0, LATCH, {}, {"joints": {"z": {"prescribe": {"acceleration": 0}}}}),
    "at the lock": (float(np.sqrt(2 * 0.25 / G)), 1.0, LATCH, {}, {"joints": {"z": {"prescribe": {"acceleration": 0}}}}),
    "at a waypoint": (0.5, 1.0, WAY, {"joints": {"z": {"prescribe": {"position": {"quintic": [[0, 0], [0.5, 0.5, 1], [1, 1]]}}}},
                                      "initial": {}},
                      {"joints": {"z": {"prescribe": {"position": {"quintic": [[0, 0.5, 1], [0.5, 1]]}}}}}),
    "at a straight passing": (0.3, 0.9, PASS, {"gravity": [0, 0, 0], "initial": {"q": {"z": 0.4}, "v": {"z": 1.0}}},
                              {"gravity": [0, 0, 0]}),
    "at a zero after a start from zero": (float(np.pi / 30), 0.9, PASS,
                                          {"gravity": [0, 0, 0], "initial": {"v": {"z": 1.0}}}, {"gravity": [0, 0, 0]}),
    "just before a zero": (0.5, 0.9, {"a": {"when": "q(z)", "do": "record"}},
                           {"gravity": [0, 0, 0], "initial": {"q": {"z": -0.5 - 4.4e-16}, "v": {"z": 1.0}}},
                           {"gravity": [0, 0, 0]}),
}


@pytest.mark.filterwarnings("ignore:.*impacts at .* ended|.*position limits are exceeded")
@pytest.mark.parametrize(("method", "case"), [
    (method, case) for k, case in enumerate(CASES) for j, method in enumerate(METHODS)
    if method in ("rk4", "dopri5", "Radau") or (k + j) % 3 == 0])                              # the others by the same loops
def test_two_runs_have_the_events_of_one(robot, method, case):
    since, duration, events, whole, second = CASES[case]
    def run(end, given, **start):
        return ld.run_scenario(robot(events, end, method=method, **start) | given)
    first = run(since, whole)
    second = run(duration - since, second, q=first.q[-1, 0], v=first.v[-1, 0])
    one = run(duration, whole)
    agree(happened(first) + happened(second, since), happened(one), 1e-9 if method in MULTISTEP else 1e-12)
    np.testing.assert_allclose(second.q[-1], one.q[-1], rtol=0, atol=1e-9 if method in MULTISTEP else 1e-12)


@pytest.mark.filterwarnings("ignore:.*impacts at .* ended")
def test_a_run_that_begins_at_rest_has_no_impact_there(robot):
    """As at a hard stop. It is an event with a velocity, and an error where nothing holds the body, which fell."""
    link = {"bounce": {**BOUNCE["bounce"], "do": {"impact": {"link": "ball", "restitution": 0.8}}}}
    found = ld.run_scenario(robot(BOUNCE, 0.5, q=0.3))
    assert not found.events and not (found.q - 0.3).any()
    found = ld.run_scenario(robot(BOUNCE, 0.5, q=0.3, v=-1.0))
    assert [(one.name, one.t) for one in found.events[:1]] == [("bounce", 0.0)] and abs(found.events[0].dv[0] - 1.8) < 1e-15
    with pytest.raises(ld.ComputationError, match=r"bounce at t = 0 s: .* a link cannot rest at a stop"):
        ld.run_scenario(robot(link, 0.5, q=0.3))
    assert not ld.run_scenario(robot(link, 0.3, q=0.3, v=2.0)).events


@pytest.mark.parametrize("happens", [{"when": "q(z)", "value": 0.3, "direction": "falling"}, {"at": FALL}])
def test_the_last_row_is_after_an_event_at_the_final_time(robot, happens):
    events = {"hit": happens | {"do": {"impact": {"joint": "z", "restitution": 0.5}}}}
    found = ld.run_scenario(robot(events, FALL))
    assert len(found.events) == 1 and found.t[-1] == found.t[-2]
    np.testing.assert_allclose(found.v[-2:, 0], [-G * FALL, 0.5 * G * FALL], rtol=1e-12)


def test_two_runs_of_an_arm_have_the_events_of_one(scenario, tmp_path, monkeypatch):
    """By way of a run folder: phases in another order, what is locked is locked at 0 s, times since the split."""
    monkeypatch.chdir(tmp_path)
    swing = {"initial": {"q": {"shoulder": 1.0, "elbow": -0.1}, "v": {"elbow": -4.0}},
             "output_step": 0.02, "integrator": {"method": "rk4", "step": 1e-3}}
    stop = {"when": "q(elbow)", "value": -0.3, "direction": "falling", "do": {"impact": {"joint": "elbow", "restitution": 0.7}}}
    low = {"when": "z(lower, 0, 0, -1)", "value": 0.4, "do": "record"}
    latch = {"when": "q(elbow)", "direction": "rising", "do": [{"lock": "elbow"}, {"phase": "second"}]}
    phases = {"first": {}, "second": {"joints": {"shoulder": {"torque": "-0.8*v"}}}}
    free, on = {"at": 0.7, "do": {"unlock": "elbow"}}, {"at": 0.2, "do": {"unlock": "elbow"}}
    whole = ld.run_scenario(scenario(ARM, **swing, phases=phases, duration=1.0,
                                     events={"stop": stop, "low": low, "latch": latch, "free": free}))
    first = ld.run_scenario(scenario(ARM, **swing, phases=phases, duration=0.5,
                                     events={"stop": stop, "low": low, "latch": latch}))
    first.save("first")
    second = ld.run_scenario(scenario(ARM, **swing | {"initial": {"from": str(tmp_path / "first")}}, duration=0.5,
                                      phases={"second": phases["second"], "first": {}},
                                      events={"locked": {"at": 0, "do": {"lock": "elbow"}}, "stop": stop, "low": low,
                                              "latch": latch, "free": on}))
    parts = happened(first) + [x for x in happened(second, 0.5) if x[0] != "locked"]
    assert {x[0] for x in parts} == {"stop", "low", "latch", "free"} and len(first.events) > 2 < len(second.events)
    agree(parts, happened(whole))


@pytest.mark.filterwarnings("ignore:.*impacts at .* ended")
@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("given", [{"events": BOUNCE}, {"events": RESTS}, {"events": {}, "limits": HARD}],
                         ids=["bounces", "comes to rest", "hard stop"])
def test_events_do_not_depend_on_the_outputs(robot, method, given):
    """Steps of these methods do not end at outputs. Outputs at the times of events change nothing, either."""
    alone = ld.run_scenario(robot(duration=1.6, method=method, q=0.9, **given) | {"output_step": 1.6})
    for step in (0.013, float(alone.events[1].t)):
        found = ld.run_scenario(robot(duration=1.6, method=method, q=0.9, **given) | {"output_step": step})
        agree(happened(found), happened(alone))
        rows = np.isin(found.t, [one.t for one in found.events])
        assert (np.abs(found.balance) < 1e-9).all() and rows.sum() >= 2 * len(found.events)


@pytest.mark.parametrize("since, steps", [(40, 100), (50, 100), (8, 40)])
@pytest.mark.parametrize("q, v, dt", [(-0.5 - 5e-15, 1.0, 0.01), (0.0, 1.0, float(np.pi / 30) / 8), (0.4, -1.0, 0.01)])
def test_two_rollouts_have_the_events_of_one(robot, q, v, dt, since, steps):
    """The split is before, at and after events, and while an event is disarmed from the start."""
    events = PASS | {"c": {"when": "q(z)", "do": "record"}}
    model = ld.load(robot({}, 1.0)["robot"], gravity=[0, 0, 0])
    whole = ld.rollout(model, [[q]], [v], dt=dt, steps=steps, events=events)
    first = ld.rollout(model, [[q]], [v], dt=dt, steps=since, events=events)
    second = ld.rollout(model, first.q[:, -1], first.v[:, -1], dt=dt, steps=steps - since, events=events)
    parts = [*first.events.name, *second.events.name]
    assert list(whole.events.name) == parts and len(parts) >= 2
    np.testing.assert_allclose([*first.events.t, *(second.events.t + since * dt)], whole.events.t, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p"])
@pytest.mark.parametrize("joint", ["crank", "knee"])
def test_a_mechanism_at_rest_at_an_event_stop_stays_there(method, joint):
    """Its loops are as accurate as the first run left them: the second run does not move it off its stop."""
    path = ROBOTS / "four_bar.yaml"
    model = ld.load(path)
    q = ld.assemble(model, np.array([1.2, -1.4, -1.8]), fixed=["crank"]).q
    at = model.q_index(joint)
    value = float(q[at][0] + (-0.25 if joint == "crank" else 0.1))
    events = {"x": {"when": f"q({joint})", "value": value, "direction": "falling" if joint == "crank" else "rising",
                    "do": {"impact": {"joint": joint, "restitution": 0.4}}}}
    given = {"robot": str(path), "duration": 3.0, "joints": {"crank": {"torque": "-.05*v"}}, "events": events,
             "integrator": {"method": method}}
    first = ld.run_scenario(given | {"initial": {"q": dict(zip(model.joint_names, q.tolist(), strict=True))}})
    assert first.q[-1, at] == pytest.approx(value, abs=1e-10) and np.abs(first.v[-1]).max() < 1e-9
    second = ld.run_scenario(given | {"initial": {"q": dict(zip(model.joint_names, first.q[-1].tolist(), strict=True))}})
    assert second.q[-1] == pytest.approx(first.q[-1], abs=1e-12)
