"""Expressions of links, generalized forces, and times since phases and events began: against closed forms, public functions, and
the same run written out."""
import json

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import liedyn as ld
from liedyn.dynamics.finite_differences import extrapolated_derivative
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario import Expression
from liedyn.simulation.name_binding import measured_gradient, v_to_q_indices, with_measured_values
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose
from zoo import ROBOTS, model_of, state

PENDULUM = {"name": "pendulum", "links": {
    "upper": {"mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.08, 0.08, 0.001]},
    "lower": {"mass": 0.7, "com": [0, 0, -0.4], "inertia": [0.05, 0.05, 0.001]}}, "joints": {
    "shoulder": {"type": "continuous", "parent": "world", "child": "upper", "axis": [0, 1, 0]},
    "elbow": {"type": "continuous", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -1]}, "axis": [0, 1, 0]}}}
SLIDER = {"name": "slider", "gravity": [0, 0, 0], "links": {"box": {"mass": 2.0, "inertia": [0.01, 0.01, 0.01]}},
          "joints": {"x": {"type": "prismatic", "parent": "world", "child": "box", "axis": [1, 0, 0]}}}
TIGHT = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}
TIP = (0.0, 0.1, -0.8)


@pytest.fixture
def simulate(scenario):
    def run(robot, **keys):
        return ld.run_scenario(scenario(json.dumps(robot), **{"integrator": TIGHT, "duration": 2.0, **keys}))
    return run


# links ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", list(ROBOTS))
def test_points_of_links_are_those_of_the_public_functions(name, worst):
    """Values to rounding, derivatives by the state against extrapolated differences: every kind of joint, merged links too."""
    model, p = model_of(name).spanning_tree(), np.array([0.1, -0.2, 0.3])
    q, v, _, _ = state(model, 3)
    table = SignalCompiler(model, 1.0, v_to_q_indices(model))
    links = dict.fromkeys((model.link_names[0], model.link_names[len(model.link_names) // 2], model.link_names[-1]))
    for link in links:
        table.add(Expression(f"x({link}) + vx({link}, 0.1, -0.2, 0.3)"), SignalPurpose("test"))
    signals = table.arrays(np.zeros(0), np.zeros(0))

    def measured(q, v):
        return with_measured_values(model, signals, q, v).measured

    numbers, o = measured(q, v), model.nv
    for link in links:
        T, V = ld.link_pose(model, q, link), ld.link_twist(model, q, v, link)
        R = T[:3, :3]
        for at in (np.zeros(3), p):
            expected = np.r_[T[:3, 3] + R @ at, R @ (V[3:] + np.cross(V[:3], at)), R @ V[:3]]
            error = np.abs(numbers[o:o + 9] - expected).max() / max(1.0, np.abs(expected).max())
            assert worst("points of links", error, name) < 1e-14
            o += 9
    assert o == len(numbers)
    for i in (model.nv, len(numbers) - 8, len(numbers) - 6, len(numbers) - 4, len(numbers) - 2):
        for direction in (np.r_[state(model, 4)[1], np.zeros(model.nv)], np.r_[state(model, 5)[1], state(model, 6)[1]]):
            dq, dv = direction[:model.nv], direction[model.nv:]
            theirs, doubt = extrapolated_derivative(lambda h, i=i, dq=dq,
                                                    dv=dv: measured(ld.integrate(model, q, h * dq), v + h * dv)[i:i + 1], 0.02)
            ours = measured_gradient(model, signals, i, q, v) @ direction
            assert abs(ours - theirs[0]) < 1e-9 * max(1.0, abs(ours)) + 30 * doubt[0]


def test_a_link_passes_a_height_when_it_should(simulate, worst):
    """The time is the root of the height along a dense solution of SciPy with forward dynamics."""
    run = simulate(PENDULUM, initial={"q": {"shoulder": 1.3, "elbow": -0.5}}, events={
        "down": {"when": "z(lower, 0, 0.1, -0.8)", "value": -1.6, "direction": "falling", "do": {"set": {"v": {}}}},
        "fast": {"when": "vx(lower)", "value": -1.0, "direction": "falling", "do": {"set": {"v": {}}}}})
    model = run.model
    dense = scipy.integrate.solve_ivp(lambda t, y: np.r_[y[2:], ld.forward_dynamics(model, y[:2], y[2:], np.zeros(2))], (0, 2),
                                      [1.3, -0.5, 0, 0], "DOP853", rtol=1e-13, atol=1e-14, dense_output=True).sol

    def height(t):
        return (ld.link_pose(model, dense(t)[:2], "lower") @ [*TIP, 1.0])[2] + 1.6

    def speed(t):
        y = dense(t)
        return (ld.link_pose(model, y[:2], "lower")[:3, :3] @ ld.link_twist(model, y[:2], y[2:], "lower")[3:])[0] + 1.0

    t = np.linspace(0, 2, 2001)
    for name, f in (("down", height), ("fast", speed)):
        x = np.array([f(s) for s in t])
        roots = [scipy.optimize.brentq(f, t[k], t[k + 1], xtol=1e-15) for k in np.flatnonzero((x[:-1] > 0) & (x[1:] <= 0))]
        found = [one.t for one in run.events if one.name == name]
        assert len(roots) == len(found) > 0
        assert worst("links passing", np.abs(np.array(found) - roots).max(), name) < 1e-12


def test_a_thrown_body_touches_by_its_edge_in_closed_form(simulate, worst):
    """A body spins about y with w and falls: its point at r from the centre has the height h - g t^2 / 2 - r cos(w t)."""
    body = {"name": "body", "base": "floating", "links": {"body": {"mass": 2.0, "inertia": [0.02, 0.03, 0.01]}}}
    w, r, h = 7.0, 0.3, 2.0
    run = simulate(body, duration=1.0, initial={"q": {"base": [0, 0, h, 0, 0, 0, 1]}, "v": {"base": [0, w, 0, 0, 0, 0]}},
                   events={"touch": {"when": f"z(body, 0, 0, {-r})", "direction": "falling", "do": "stop"}})
    exact = scipy.optimize.brentq(lambda t: h - 9.81 * t * t / 2 - r * np.cos(w * t), 0.3, 0.7, xtol=1e-15)
    assert worst("touches", abs(run.t[-1] - exact), "thrown body") < 1e-12


@pytest.mark.parametrize("method", ["Radau", "rodas5p"])
def test_implicit_methods_solve_laws_of_links(simulate, method, worst):
    """A stiff spring and damper from the tip to a point in the world: a wrong Jacobian would reduce the order."""
    keys = {"initial": {"q": {"shoulder": 1.3, "elbow": -0.5}}, "duration": 0.5, "external_forces": [
        {"link": "lower", "point": list(TIP),
         "wrench": [0, 0, 0, "-500*(x(lower, 0, 0.1, -0.8) + 1) - 200*vx(lower, 0, 0.1, -0.8)", 0, 0]}]}
    run, exact = (simulate(PENDULUM, **keys, integrator=one) for one in ({"method": method, "rtol": 1e-9, "atol": 1e-11}, TIGHT))
    assert worst("laws of links", np.abs(run.q[-1] - exact.q[-1]).max(), method) < 1e-7
    assert run.statistics.steps < exact.statistics.steps and run.check["energy_balance_relative"] < 1e-6


def test_targets_follow_what_moves(simulate, worst):
    """A pd law towards other joints and links equals the explicit force with their velocities."""
    keys = {"initial": {"q": {"shoulder": 1.3, "elbow": -0.5}}, "duration": 1.0}
    runs = [simulate(PENDULUM, **keys, joints={"elbow": {"torque": torque}}) for torque in (
        {"pd": {"kp": 30, "kd": 4, "target": "0.5*q(shoulder)*t - x(lower, 0, 0.1, -0.8)"}},
        "30*(0.5*q(shoulder)*t - x(lower, 0, 0.1, -0.8) - q)"
        " + 4*(0.5*(v(shoulder)*t + q(shoulder)) - vx(lower, 0, 0.1, -0.8) - v)")]
    assert worst("targets", np.abs(runs[0].q - runs[1].q).max(), "pendulum") < 1e-11


# forces --------------------------------------------------------------------------------------------------------------
def test_a_joint_is_let_go_when_its_holding_force_passes_a_value(simulate, worst):
    """The slider is locked against a push of 3 t; the lock holds 2 N."""
    run = simulate(SLIDER, events={
        "hold": {"at": 0.0, "do": {"lock": "x"}},
        "slip": {"when": "tau(x)", "value": -2.0, "direction": "falling", "do": {"unlock": "x"}}}, external_forces=[
            {"link": "box", "wrench": [0, 0, 0, "3*t", 0, 0]}])
    slip = run.events[1]
    assert slip.name == "slip" and worst("slips", abs(slip.t - 2 / 3), "slider") < 1e-12
    t0, t = 2 / 3, run.t[-1]                                             # then m x'' = 3 t
    assert worst("slips", abs(run.q[-1, 0] - 0.75 * (t**3 / 3 - t0**2 * t + 2 / 3 * t0**3)), "way") < 1e-12


def test_a_brake_that_closes_on_too_large_a_load_slips_at_once(simulate):
    """The force of a lock jumps: what it jumps over has happened. Below, it holds."""
    keys = {"external_forces": [{"link": "box", "wrench": [0, 0, 0, "3*t", 0, 0]}], "events": {
        "slip": {"when": "abs(tau(x))", "value": 2.0, "direction": "rising", "do": {"unlock": "x"}},
        "hold": {"at": [0.5, 1.0], "do": {"lock": "x"}}}}
    run = simulate(SLIDER, **keys)
    found = [(one.name, round(one.t, 9)) for one in run.events]
    assert found == [("hold", 0.5), ("slip", 0.666666667), ("hold", 1.0), ("slip", 1.0)]
    assert run.check["energy_balance_relative"] < 1e-9 and run.v[-1, 0] > 0.0


# times ---------------------------------------------------------------------------------------------------------------
PHASES = {"wait": {}, "push": {"joints": {"x": {"torque": "4*step(0.25 - t_phase)"}}}}


def test_time_of_the_phase_begins_anew(simulate):
    """Two pushes of 1 N s start with their phases; no step would otherwise end at 0.25 s."""
    run = simulate(SLIDER, phases=PHASES, duration=3.0, initial={"v": {"x": 0.1}}, events={
        "go": {"at": [0.7, 2.1], "do": {"phase": "push"}}, "rest": {"at": 1.5, "do": {"phase": "wait"}}})
    v = np.interp([0.69, 0.825, 1.4, 2.2, 2.9], run.t, run.v[:, 0])
    np.testing.assert_allclose(v, [0.1, 0.35, 0.6, 0.8, 1.1], rtol=0, atol=1e-13)


def test_a_force_dies_out_after_an_event(simulate, worst):
    """m dv = 2 exp(-3 s) since the box passed x = 0.05; before, there is no force."""
    run = simulate(SLIDER, initial={"v": {"x": 0.1}}, joints={"x": {"torque": "2*exp(-3*since(pass))"}}, events={
        "pass": {"when": "x(box)", "value": 0.05, "do": {"set": {"v": {}}}},
        "later": {"when": "since(pass)", "value": 0.3, "do": {"set": {"v": {}}}}})
    event, later = run.events
    assert abs(event.t - 0.5) < 1e-12 and later.name == "later" and abs(later.t - event.t - 0.3) < 1e-12
    s = run.t[-1] - event.t
    assert worst("since", abs(run.v[-1, 0] - 0.1 - (1 - np.exp(-3 * s)) / 3), "slider") < 1e-12


def test_a_motion_begins_with_its_phase(simulate, worst):
    """A spline from the start of the phase equals the shifted one; no code is compiled for it."""
    points, keys = [[0, 0.0], [0.3, 0.2], [0.7, -0.1], [1.0, 0.4]], {"duration": 2.5, "initial": {"q": {"elbow": 0.0}}}
    held = {"joints": {"elbow": {"prescribe": {"position": 0}}}}
    runs = [simulate(PENDULUM, **keys, phases={"hold": held, "move": {"joints": {"elbow": {"prescribe": {"position": motion}}}}},
                     events={"go": {"when": "t_phase", "value": 0.6, "phases": "hold", "do": {"phase": "move"}}},
                     external_forces=[{"link": "upper", "wrench": [0, "3*sin(t)", 0, 0, 0, 0]}])
            for motion in ({"spline": points, "from": "phase"}, {"spline": points, "from": "go"},
                           {"spline": [[t + 0.6, x] for t, x in points]})]
    assert abs(runs[0].events[0].t - 0.6) < 1e-12
    for run in runs[:2]:
        assert worst("motions from a phase", np.abs(run.q[-1] - runs[2].q[-1]).max(), "pendulum") < 1e-11
    assert np.ptp(runs[0].q[:, 1]) > 0.4


def test_a_sine_has_its_first_value_before_its_event(simulate, worst):
    """Not the value at an infinite time, which is undefined."""
    sine = {"sine": {"amplitude": 2.0, "frequency": 0.7, "phase": 0.5, "offset": 0.1}, "from": "go"}
    run = simulate(SLIDER, joints={"x": {"torque": sine}}, events={"go": {"at": 0.5, "do": "record"}})
    s = np.maximum(run.t - 0.5, 0.0)
    expected = 0.1 + 2.0 * np.sin(2 * np.pi * 0.7 * s + 0.5)
    assert worst("sine from an event", np.abs(run.tau[:, 0] - expected).max(), "slider") < 1e-13


def test_a_prescribed_motion_that_an_event_would_tear_is_refused(simulate):
    with pytest.raises(ScenarioError, match=r"event go prescribes elbow at 0\.3 from t = 0\.5 s on, where it is at 0"):
        simulate(PENDULUM, joints={"elbow": {"prescribe": {"position": "0.3*exp(-since(go))"}}},
                 events={"go": {"at": 0.5, "do": {"set": {"v": {}}}}})


# refusals ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("keys, message", [
    ({"joints": {"elbow": {"torque": "z(hand)"}}}, r"no such link.*got 'hand'"),
    ({"joints": {"elbow": {"torque": "z"}}}, r"unknown name z: .* \(did you mean z\(link\)\?\)"),
    ({"joints": {"elbow": {"torque": "z(lower, 1)"}}}, r"wrong arguments of z.*got .z.lower, 1"),
    ({"joints": {"elbow": {"torque": "z(lower, 0, t, 0)"}}}, "the point of z.lower, …. must be three numbers"),
    ({"joints": {"elbow": {"torque": "wx(lower, 0, 0, 1)"}}}, "wrong arguments of wx"),
    ({"joints": {"elbow": {"prescribe": {"velocity": "z(lower)"}}}}, "z may not be used here: this signal is a"),
    ({"joints": {"elbow": {"torque": "tau(shoulder)"}}}, r"only events may read joint torques and forces, tau\(joint\)"),
    ({"joints": {"elbow": {"torque": {"pd": {"kp": 1, "kd": 1, "target": "v(shoulder)"}}}}}, "the time derivative of the target"),
    ({"joints": {"elbow": {"torque": {"pd": {"kp": 1, "kd": 1, "target": "wy(lower)"}}}}}, "the time derivative of the target"),
    ({"joints": {"elbow": {"torque": "t_phase"}}}, "times relative to a phase require phases"),
    ({"joints": {"elbow": {"torque": "since(hit)"}}}, "times relative to an event require events"),
    ({"joints": {"elbow": {"torque": "since(hit)"}}, "events": {"hat": {"at": 1, "do": "stop"}}}, r"no such event.*got 'hit'"),
    ({"joints": {"elbow": {"torque": {"spline": [[0, 0], [1, 1]], "from": "phase"}}}}, "times relative to a phase require"),
    ({"joints": {"elbow": {"torque": {"from": "phase"}}}}, "a signal takes exactly one of pd, pid, quintic, spline, sine, csv"),
])
def test_what_cannot_be_read_is_refused(simulate, keys, message):
    with pytest.raises(ScenarioError, match=message):
        simulate(PENDULUM, **keys)
