"""Hard stops at limits: times against closed forms, an arm against an event loop around SciPy, impacts of several joints at once
against all active sets."""
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import yaml

import liedyn as ld
from liedyn.errors import ScenarioError
from liedyn.simulation.impacts import solve_lcp
from limited_robots import ARM, SLIDER, TIGHT

ROOT = Path(__file__).parents[2]
BALL = {"name": "ball", "gravity": [0, 0, -9.81], "links": {"ball": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01]}},
        "joints": {"z": {"type": "prismatic", "parent": "world", "child": "ball", "axis": [0, 0, 1],
                         "limits": {"lower": 0, "upper": 5}}}}
METHODS = [{"method": "rk4", "step": 1e-3}, {"method": "dopri5", "rtol": 1e-10, "atol": 1e-12},
           {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13}, {"method": "Radau", "rtol": 1e-9, "atol": 1e-11},
           {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-11}]


@pytest.fixture
def simulate(scenario):
    def run(robot, **keys):
        return ld.run_scenario(scenario(json.dumps(robot), **{"integrator": TIGHT, **keys}))
    return run


def times(run, name: str) -> np.ndarray:
    return np.array([one.t for one in run.events if one.name == name])


@pytest.mark.parametrize("integrator", METHODS, ids=lambda x: x["method"])
def test_a_ball_bounces_rests_and_is_lifted(simulate, integrator, worst):
    """Bounces accumulate at 3 t_1 with a restitution of 1/2; from 1.5 s on a growing force finally exceeds the weight."""
    run = simulate(BALL, duration=2.5, initial={"q": {"z": 1.0}}, limits={"mode": "hard", "restitution": 0.5},
                   joints={"z": {"torque": "20*max(t-1.5, 0)"}}, integrator=integrator)
    first = np.sqrt(2 / 9.81)
    v, expected = 9.81 * first * 0.5 ** np.arange(60), [first]
    for speed in v[1:]:
        expected.append(expected[-1] + 2 * speed / 9.81)
    found, off = times(run, "limit of z"), 1.5 + 9.81 / 20
    assert 20 < len(found) < 60
    assert worst("bounces", np.abs(found - expected[:len(found)]).max(), integrator["method"]) < 1e-12
    assert abs(found[-1] - 3 * first) < 1e-6
    np.testing.assert_allclose([one.lost for one in run.events][:12], 0.5 * (1 - 0.5**2) * v[:12] ** 2, rtol=1e-9)
    assert worst("leaves", np.abs(times(run, "z off its limit") - [off]).max(), integrator["method"]) < 1e-12
    rests = (run.t > found[-1]) & (run.t < off)
    assert not run.q[rests].any() and not run.v[rests].any()
    np.testing.assert_allclose(run.stops[rests, 0], 9.81 - 20 * np.maximum(run.t[rests] - 1.5, 0), atol=1e-12)
    np.testing.assert_allclose(run.tau[rests, 0], 9.81, rtol=1e-14)
    assert worst("lifted", abs(run.q[-1, 0] - 20 * (2.5 - off) ** 3 / 6), integrator["method"]) < 1e-9
    assert run.check["energy_balance_relative"] < 1e-7 and run.warnings == ()


def test_a_pendulum_between_stops(simulate, worst):
    """q'' = -w^2 sin q from 1 rad to a stop at -0.3 rad with a restitution of 0.6: times are elliptic integrals."""
    rod = {"name": "rod", "links": {"rod": {"mass": 1.0, "com": [0, 0, -1.0]}}, "joints": {
        "hinge": {"type": "revolute", "parent": "world", "child": "rod", "axis": [0, 1, 0],
                  "limits": {"lower": -0.3, "upper": 2}}}}
    run = simulate(rod, duration=6.0, initial={"q": {"hinge": 1.0}}, limits={"mode": "hard", "restitution": 0.6})
    w = np.sqrt(9.81)

    def fall(top: float, to: float) -> float:
        """Return the time from rest at `top` down and up to `to`."""
        k = np.sin(top / 2)
        return (scipy.special.ellipk(k**2) + scipy.special.ellipkinc(np.arcsin(np.sin(-to / 2) / k), k**2)) / w
    t, expected, top = 0.0, [], 1.0
    while (t := t + fall(top, -0.3)) < 6.0:
        expected.append(t)
        cosine = np.cos(-0.3) - 0.36 * (np.cos(-0.3) - np.cos(top))
        top = np.arccos(cosine)
        t += fall(top, -0.3)
    found = times(run, "limit of hinge")
    assert len(found) == len(expected) > 3 and worst("hits", np.abs(found - expected).max()) < 1e-12
    assert run.check["energy_balance_relative"] < 1e-11


@pytest.mark.parametrize("integrator", [METHODS[0], TIGHT, METHODS[3]], ids=lambda x: x["method"])
def test_a_slider_sticks_until_its_force_turns(simulate, integrator, worst):
    """m x'' = F sin(w t) from rest at 0: x = F/(m w^2) (w t - sin w t), until x = 0.5 where it sticks; it leaves at t = pi/w;
    then x - 0.5 = -F/(m w^2) (w s - sin w s), s = t - pi/w."""
    F, w, m = 30.0, 2.0, 2.0
    run = simulate(SLIDER, duration=2.0, limits="hard", joints={"x": {"torque": f"{F}*sin({w}*t)"}}, integrator=integrator)
    hit = scipy.optimize.brentq(lambda t: F / (m * w**2) * (w * t - np.sin(w * t)) - 0.5, 0.1, 1.5, xtol=1e-15)
    assert worst("hit", abs(times(run, "limit of x")[0] - hit), integrator["method"]) < 1e-11
    assert worst("leaves", abs(times(run, "x off its limit")[0] - np.pi / w), integrator["method"]) < 1e-12
    sticks, s = (run.t > hit + 1e-9) & (run.t < np.pi / w), run.t[run.t > np.pi / w] - np.pi / w
    assert (run.q[sticks] == 0.5).all()
    np.testing.assert_allclose(run.stops[sticks, 0], -F * np.sin(w * run.t[sticks]), rtol=1e-12)
    x = 0.5 - F / (m * w**2) * (w * s - np.sin(w * s))
    assert worst("x", np.abs(run.q[run.t > np.pi / w, 0] - x).max(), integrator["method"]) < 1e-9
    assert run.check["energy_balance_relative"] < 1e-8 and len(run.events) == 2


# an arm --------------------------------------------------------------------------------------------------------------
class _Reference:
    """An event loop around SciPy, with hybrid dynamics for joints that rest, and all active sets tried at impacts."""

    def __init__(self, model, e: float, q, v):
        self.model, self.e, self.nv, self.held, self.log = model, e, model.nv, {}, []
        self.q, self.v = q, v

    def dynamics(self, q, v):
        none = np.zeros(self.nv)
        return ld.hybrid_dynamics(self.model, q, v, none, none, np.array([k in self.held for k in range(self.nv)]))

    def events(self):
        limits = {-1: self.model.lower, 1: self.model.upper}
        for k in range(self.nv):
            for side, limit in limits.items():
                if self.held.get(k) == side:
                    yield "off", k, side, lambda t, y, k=k, s=side: s * self.dynamics(*np.split(y, 2))[1][k]
                elif k not in self.held and np.isfinite(limit[k]):
                    yield "hit", k, side, lambda t, y, k=k, s=side, x=limit[k]: s * (y[k] - x) - 1e-300     # at it: inside

    def run(self, end: float):
        t = 0.0
        while t < end:
            watched = list(self.events())
            for *_, event in watched:
                event.terminal, event.direction = True, 1
            found = scipy.integrate.solve_ivp(lambda t, y: np.r_[y[self.nv:], self.dynamics(*np.split(y, 2))[0]], (t, end),
                                              np.r_[self.q, self.v], method="DOP853", rtol=1e-12, atol=1e-13, max_step=0.01,
                                              events=[event for *_, event in watched])
            t, (self.q, self.v) = found.t[-1], np.split(found.y[:, -1].copy(), 2)
            for (kind, k, side, _), when in zip(watched, found.t_events, strict=True):
                if len(when):
                    self.log.append((kind, k, t))
                    if kind == "off":
                        del self.held[k]
                    else:
                        self.q[k] = (self.model.upper if side > 0 else self.model.lower)[k]
                        self.impact(k, side)
        return self

    def impact(self, hit: int, side: int):
        at = {**self.held, hit: side}
        G = np.array([-s * np.eye(self.nv)[k] for k, s in at.items()])
        e, W = np.array([self.e if k == hit else 0.0 for k in at]), np.linalg.inv(ld.mass_matrix(self.model, self.q))
        p = by_all_sets(G @ W @ G.T, (1 + e) * (G @ self.v))
        self.v = self.v + W @ G.T @ p
        still = {k: s for k, s in at.items() if abs(self.v[k]) < 1e-11}
        for k in still:
            self.v[k] = 0.0
        self.held = {}
        G = np.array([-s * np.eye(self.nv)[k] for k, s in still.items()]).reshape(-1, self.nv)
        f = by_all_sets(G @ W @ G.T, G @ self.dynamics(self.q, self.v)[0])
        self.held = {k: s for (k, s), push in zip(still.items(), f, strict=True) if push > 0}


def by_all_sets(A, b) -> np.ndarray:
    """Return the solution of x >= 0, A x + b >= 0, complementary, by all active sets."""
    for size in range(len(b) + 1):
        for index in map(list, itertools.combinations(range(len(b)), size)):
            x = np.zeros(len(b))
            x[index] = np.linalg.solve(A[np.ix_(index, index)], -b[index])
            if (x >= 0).all() and (A @ x + b >= -1e-12 * np.abs(b).max(initial=0.0)).all():
                return x
    raise AssertionError("no active set")


@pytest.mark.parametrize("e, end", [(0.0, 1.5), (0.5, 1.2)])
def test_an_arm_falls_into_its_stops(simulate, worst, e, end):
    """Joints hit, rest at their limits together, and leave them one after the other."""
    robot = json.loads(json.dumps(ARM))
    robot["links"]["lower"]["inertia"] = [0.05, 0.05, 0.001]
    robot["joints"]["wrist"] |= {"type": "revolute", "limits": {"lower": -0.5, "upper": 0.5}}
    run = simulate(robot, duration=end, initial={"q": {"shoulder": 1.5}}, limits={"mode": "hard", "restitution": e},
                   integrator={"method": "dop853", "rtol": 1e-12, "atol": 1e-14})
    expected = _Reference(run.model, e, np.array([1.5, 0, 0]), np.zeros(3)).run(end)
    names = {"hit": "limit of {}", "off": "{} off its limit"}
    known = [(names[kind].format(run.model.joint_names[k]), t) for kind, k, t in expected.log]
    # where two hit within a rounding, it is one event here
    known = [one for i, one in enumerate(known) if i == 0 or one[1] - known[i - 1][1] > 1e-12]
    assert [one.name for one in run.events] == [name for name, _ in known] and len(known) >= 10
    assert ("elbow off its limit" in [name for name, _ in known]) == (e == 0)
    assert worst("times", np.abs([one.t - t for one, (_, t) in zip(run.events, known, strict=True)]).max(), f"e = {e}") < 1e-11
    assert worst("end", np.abs(np.r_[run.q[-1] - expected.q, run.v[-1] - expected.v]).max(), f"e = {e}") < 1e-10
    assert worst("balance", run.check["energy_balance_relative"]) < 1e-11
    assert (run.q <= run.model.upper + 1e-12).all() and (run.q >= run.model.lower - 1e-12).all()
    for one in run.events:                                    # impulses are those of M, and what is lost is the kinetic energy's
        before, after = np.flatnonzero(run.t == one.t)
        M, dv = ld.mass_matrix(run.model, run.q[after]), run.v[after] - run.v[before]
        np.testing.assert_allclose(M @ dv, one.impulse, atol=1e-11 * np.abs(M).max())
        assert abs(run.kinetic[before] - run.kinetic[after] - one.lost) < 1e-11


def test_conditions_that_exclude_each_other_are_met_at_once(worst):
    """All active sets are compared, for random positive definite matrices and for those of dependent rows."""
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 5, 7):
        for _ in range(20):
            R = rng.standard_normal((n + 2, n)) * 10.0 ** rng.uniform(-2, 2, n)
            A, b = R.T @ R, (R.T @ rng.standard_normal(n + 2))
            x, expected = solve_lcp(A, b), by_all_sets(A, b)
            assert worst("x", np.abs(x - expected).max() / max(np.abs(expected).max(), 1e-300)) < 1e-8
    twice = np.array([[2.0, 2.0], [2.0, 2.0]])
    x = solve_lcp(twice, np.array([-1.0, -1.0]))
    np.testing.assert_allclose(twice @ x, [1.0, 1.0], rtol=1e-12)


# with events and loops -------------------------------------------------------------------------------------------------
def test_events_meet_limits(simulate):
    """At rest on its stop, a ball is thrown by an event, comes back, is prescribed in a phase and rests again after it."""
    run = simulate(BALL, duration=2.0, limits="hard", phases={"free": {}, "carried": {"joints": {"z": {"prescribe": {
        "position": "0.5*max(t-1, 0)**3 - max(t-1.2, 0)**3*0.5"}}}}}, events={
            "throw": {"at": 0.2, "do": {"set": {"v": {"z": 1.0}}}}, "press": {"at": 0.5, "do": {"set": {"v": {"z": -2.0}}}},
            "carry": {"at": 0.9, "do": {"phase": "carried"}}, "drop": {"at": 1.4, "do": {"phase": "free"}}})
    names = [one.name for one in run.events]
    assert names == ["throw", "limit of z", "press", "carry", "drop", "limit of z"]
    assert run.events[1].t == pytest.approx(0.2 + 2 / 9.81, abs=1e-12)
    press = run.events[2]
    assert press.dv[0] == 0.0
    assert press.impulse[0] == pytest.approx(2.0, rel=1e-13) and press.lost == pytest.approx(2.0, rel=1e-12)
    np.testing.assert_allclose(run.stops[run.t < 0.2, 0], 9.81, rtol=1e-13)
    assert not run.q[(run.t > 0.5) & (run.t < 0.9)].any() and run.q[run.t == 1.4][0, 0] > 0.01 and run.q[-1, 0] == 0.0
    assert run.check["energy_balance_relative"] < 1e-11


def test_a_linkage_stops_at_a_limit(simulate, worst):
    """A four-bar is pushed onto a limit of its crank and pulled off: the loop stays closed; at rest the force of the stop is that
    of statics along the only motion, and it is zero where the crank lets go."""
    robot = yaml.safe_load(Path("robots/four_bar.yaml").read_text())
    robot["joints"]["crank"] |= {"type": "revolute", "limits": {"lower": -0.4, "upper": 0.5}}
    run = simulate(robot, duration=2.0, initial={"q": {"knee": -1.3694, "rocker": -1.7722}},
                   limits={"mode": "hard", "joints": ["cr*"]}, joints={"crank": {"torque": "3*sin(3*t)"}},
                   integrator={"method": "dopri5", "rtol": 1e-10, "atol": 1e-12})
    assert [one.name for one in run.events][:2] == ["limit of crank", "crank off its limit"]
    assert run.check["constraint_residual"] < 1e-9 and run.check["energy_balance_relative"] < 1e-9
    hit, off = run.events[0].t, run.events[1].t
    for k in np.flatnonzero((run.t > hit) & (run.t < off))[::20]:
        A = ld.constraint_jacobian(run.model, run.q[k])
        motion = np.linalg.svd(A)[2][-1]
        assert np.abs(A @ motion).max() < 1e-12 and run.q[k, 0] == 0.5
        held = motion @ (run.tau[k] - ld.gravity_force(run.model.spanning_tree(), run.q[k]))
        assert worst("statics", abs(held)) < 1e-11 and run.stops[k, 0] < 0
        assert run.tau[k, 0] - run.stops[k, 0] == pytest.approx(3 * np.sin(3 * run.t[k]), abs=1e-12)
    assert worst("force at release", abs(run.stops[run.t == off][0, 0])) < 1e-11


@pytest.mark.parametrize("way", ["limit", "event"])
def test_bounces_far_from_zero_come_to_an_end(simulate, way):
    """At 1.9 m the last flights are lower than rounding of the position: they took 4 ns each, without an end."""
    robot = json.loads(json.dumps(BALL))
    robot["joints"]["z"]["limits"]["lower"] = 1.9
    keys = {"limits": {"mode": "hard", "restitution": 0.5}} if way == "limit" else {"events": {"bounce": {
        "when": "q(z)", "value": 1.9, "direction": "falling", "do": {"impact": {"joint": "z", "restitution": 0.5}}}}}
    run = simulate(robot, duration=1.6, initial={"q": {"z": 2.9}}, **keys)
    assert 20 < len(run.events) < 40 and abs(run.events[-1].t - 3 * np.sqrt(2 / 9.81)) < 1e-6
    assert run.v[-1, 0] == 0.0 and run.q[-1, 0] == pytest.approx(1.9, rel=1e-14)


def test_states_beyond_a_hard_stop_are_refused_by_name(simulate):
    with pytest.raises(ScenarioError, match=r"z is at -0\.1 at t = 0 s, below its limit 0, a hard stop.*compliant"):
        simulate(BALL, initial={"q": {"z": -0.1}}, limits="hard")
    assert simulate(BALL, initial={"q": {"z": 0.0}, "v": {"z": -1.0}}, limits={"mode": "hard", "restitution": 0.5},
                    duration=0.05).v[0, 0] == 0.5


@pytest.mark.parametrize("restitution", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("start", [(-1.0, 0.2), (-1.0, 0.9), (0.2, -1.0)])
def test_what_leaves_its_stop_is_driven_back_in_turn(simulate, start, restitution):
    """A body on the floor carries another one. Contacts hit one at a time."""
    masses, floor = np.array([1.0, 2.0]), {"limits": {"lower": 0, "upper": 9}, "type": "prismatic", "axis": [0, 0, 1]}
    stack = {"name": "stack", "links": {name: {"mass": mass} for name, mass in zip("ab", masses.tolist(), strict=True)},
             "joints": {"a": {"parent": "world", "child": "a", **floor}, "b": {"parent": "a", "child": "b", **floor}}}
    run = simulate(stack, duration=1e-3, gravity=[0, 0, 0], limits={"mode": "hard", "restitution": restitution},
                   initial={"v": dict(zip("ab", start, strict=True))})
    below, above = start[0], sum(start)                        # velocities in the world
    for _ in range(100):
        if below < 0.0:
            assert above >= below
            below *= -restitution
        elif above < below:
            impulse = (1.0 + restitution) * (below - above) / sum(1.0 / masses)
            below, above = below - impulse / masses[0], above + impulse / masses[1]
        else:
            break
    assert run.v[-1] == pytest.approx([below, above - below], abs=1e-12)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "Radau"])
def test_an_impact_at_the_time_of_another_event_is_listed_as_impact(simulate, method):
    """A ball reaches the floor every 0.2 s from 0.1 s on, at times of records every 0.1 s."""
    run = simulate(BALL, duration=1.95, gravity=[0, 0, -10], initial={"q": {"z": 0.05}}, integrator={"method": method},
                   limits={"mode": "hard", "restitution": 1}, events={"a": {"every": 0.1, "do": "record"}})
    assert times(run, "limit of z") == pytest.approx(0.1 + 0.2 * np.arange(10), abs=1e-9)
    assert times(run, "a") == pytest.approx(0.1 * np.arange(1, 20), abs=1e-12)
    assert not any(event.dv.any() or event.impulse.any() for event in run.events if event.name == "a")


def test_what_an_event_makes_strike_is_listed_after_it(simulate):
    run = simulate(BALL, duration=0.2, gravity=[0, 0, -10], initial={"q": {"z": 0.5}},
                   limits={"mode": "hard", "restitution": 0.5},
                   events={"a": {"at": 0.1, "do": {"set": {"q": {"z": 0}, "v": {"z": -3}}}}})
    moved, struck = run.events
    assert (moved.name, struck.name, moved.t, struck.t) == ("a", "limit of z", 0.1, 0.1)
    figures = [*moved.dv, *moved.impulse, moved.lost, moved.change, *struck.dv, *struck.impulse, struck.lost, struck.change]
    assert figures == pytest.approx([-2.0, 0.0, 0.0, 4.0 - 4.5, 4.5, 4.5, 3.375, -3.375])


def test_only_joints_at_their_limits_are_named(simulate):
    """Impulses of constraints act on other joints with limits, too."""
    robot = yaml.safe_load((ROOT / "robots/five_bar.yaml").read_text())
    for name, (lower, upper) in {"left": (1.9, 2.6), "right": (0.6, 1.2)}.items():
        robot["joints"][name] |= {"type": "revolute", "limits": {"lower": lower, "upper": upper, "velocity": 99, "effort": 99}}
    run = simulate(robot, duration=0.4, output_step=0.01, limits={"mode": "hard", "restitution": 0.4},
                   initial={"q": {"left": 2.2, "left_elbow": 1.4, "right": 0.9, "right_elbow": -1.4}})
    assert len(run.events) > 4 and {event.name for event in run.events} == {"limit of left", "limit of right"}
    limits = {"left": robot["joints"]["left"]["limits"], "right": robot["joints"]["right"]["limits"]}
    for event in run.events:
        name = event.name.removeprefix("limit of ")
        q = run.q[np.flatnonzero(run.t == event.t)[0], run.model.q_index(name)]
        assert min(abs(q - limits[name]["lower"]), abs(q - limits[name]["upper"])) < 1e-9
