"""Passivity-based control with adapted parameters: its Lyapunov function, its metric, a payload, generated code, and errors."""
from __future__ import annotations

import numpy as np
import pytest
import yaml

import liedyn as ld
from liedyn.codegen.trace import traced_module
from liedyn.errors import ScenarioError
from liedyn.integrators.segment import evaluate_state
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.simulation.control.slotine_li_control import log_det_divergence, pseudo_inertia
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario

ROBOT = """\
name: arm
links:
  upper: {mass: 2, com: [0.02, 0.01, 0.25], inertia: [0.03, 0.001, 0.002, 0.04, -0.001, 0.02]}
  lower: {mass: 1, com: [0.01, 0, 0.2], inertia: [0.02, 0.02, 0.01]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 0.6, 0.8], armature: 0.02, damping: 0.3}
  elbow: {type: revolute, parent: upper, child: lower, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.5]}, friction: 0.2}
"""
PAYLOAD = {"pick": {"at": 0.2, "do": {"attach": {"link": "lower", "mass": 0.8, "com": [0.03, 0, 0.35], "inertia": [0.002] * 3}}}}
MOTION = {"shoulder": "0.4*sin(2*t)", "elbow": "0.6 - 0.3*cos(3*t)"}


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "arm.yaml"
    path.write_text(ROBOT.replace("revolute", "continuous"))
    return str(path)


def scenario(robot, *, method="dopri5", control=(), **keys):
    law = {"law": "slotine_li", "bandwidth": 4, "kd": 0.5, "motion": MOTION, "adaptation_gain": 2} | dict(control)
    law = {key: value for key, value in law.items() if value is not None}
    integrator = {"method": method} if isinstance(method, str) else method
    return {"robot": robot, "duration": 1.0, "output_step": 0.01, "integrator": integrator, "control": law,
            "initial": {"q": {"shoulder": 0.3}}} | keys


def dissipated(run, first):
    """The integral of s^T K s since row `first`, at every second row, by Simpson's rule."""
    t, law = run.t[first:], run.scenario.control
    r = np.array([[0.4 * np.sin(2 * t), 0.6 - 0.3 * np.cos(3 * t)], [0.8 * np.cos(2 * t), 0.9 * np.sin(3 * t)]]).swapaxes(1, 2)
    s = run.v[first:] - r[1] + law.bandwidth * (run.q[first:] - r[0])
    power = 0.5 * (s**2).sum(axis=1)
    n = (len(t) - 1) // 2
    return np.r_[0.0, np.cumsum((power[:2 * n:2] + 4 * power[1:2 * n:2] + power[2:2 * n + 1:2]) * (t[2] - t[0]) / 6)]


@pytest.mark.parametrize("adapt, events, model", [(True, PAYLOAD, None), (["*.lower"], PAYLOAD, {}), (False, {}, None),
                                                  (["mass.*", "h?.lower"], {}, None), (["*.lower"], {}, {"mass.lower": 0.6})])
def test_the_lyapunov_function_falls_by_what_the_gain_dissipates(robot, adapt, events, model):
    """With an unknown body or a wrong model; and from the estimate of the robot, which the error of the start changes."""
    run = run_scenario(scenario(robot, control={"adapt": adapt, "model": model}, output_step=0.002, events=events))
    if model:
        assert run.adaptation.estimate[0, run.adaptation.names.index("mass.lower")] == 0.6
    first = np.flatnonzero(np.diff(run.t) == 0.0)[0] + 1 if events else 0
    V, lost = run.adaptation.lyapunov[first:], dissipated(run, first)
    assert V[0] > 0.1 and V[-1] < V[0]
    assert np.abs(V[:2 * len(lost):2] - V[0] + lost).max() < 1e-7 * V[0]
    assert run.check["lyapunov_increase"] < 1e-12 and run.check["lyapunov_start"] == run.adaptation.lyapunov[0]


def test_the_error_of_the_lyapunov_function_is_of_the_order_of_the_method(robot):
    errors = []
    for step in (0.01, 0.005):
        run = run_scenario(scenario(robot, method={"method": "rk4", "step": step}, output_step=step))
        V = run.adaptation.lyapunov
        fine = run_scenario(scenario(robot, method={"method": "dopri5", "rtol": 1e-11, "atol": 1e-12}, output_step=step))
        errors.append(np.abs(V - fine.adaptation.lyapunov).max() / V[0])
        assert run.check["lyapunov_increase"] < 1e-6
    assert errors[0] < 1e-5 and errors[0] / errors[1] > 12.0


def test_an_unknown_payload_is_learned(robot):
    """It is picked at rest; the error decays to a hundredth by the end, where the arm rests again."""
    motion = {"shoulder": {"quintic": [[0, 0.3], [0.4, 0.3], [1.2, 0.6]]},
              "elbow": {"quintic": [[0, 0.5], [0.4, 0.5], [1.4, -0.2]]}}
    keys = {"events": PAYLOAD, "duration": 4.0, "control": {"motion": motion, "adapt": ["*.lower"], "adaptation_gain": 50}}
    run = run_scenario(scenario(robot, **keys))
    error, names = np.abs(run.tracking.error).max(axis=1), run.adaptation.names
    assert error[run.t < 0.2].max() < 1e-12                   # the robot is known before
    assert error.max() > 1e-3 and error[-1] < 0.01 * error.max()
    assert run.check["lyapunov_increase"] < 1e-6
    start, end = run.adaptation.estimate[[0, -1], names.index("mass.lower")]
    assert start == 1.0 and abs(end - 1.8) < 0.4
    assert dict((name, unit) for name, unit, _ in run.columns)["estimate.hz.lower"] == "kg m"
    P = pseudo_inertia(run.adaptation.estimate)
    assert np.linalg.eigvalsh(P).min() > 0.0 and run.adaptation.definite.all()
    unadapted = run_scenario(scenario(robot, **(keys | {"control": keys["control"] | {"adapt": False}})))
    assert np.abs(unadapted.tracking.error[-1]).max() > 10 * error.max()
    assert [w.code for w in unadapted.warnings] == ["lyapunov-increase"]


def test_forces_are_those_of_the_formula(robot):
    problem = compile_schedule(scenario_of(scenario(robot), ()), ld.load(robot)).problem
    q, v, t = np.array([0.2, -0.4]), np.array([1.0, -2.0]), 0.3
    model = problem.model
    r, dr, ddr = (np.array(x) for x in ((0.4 * np.sin(0.6), 0.6 - 0.3 * np.cos(0.9)), (0.8 * np.cos(0.6), 0.9 * np.sin(0.9)),
                                        (-1.6 * np.sin(0.6), 2.7 * np.cos(0.9))))
    v_r, a_r = dr - 4 * (q - r), ddr - 4 * (v - dr)
    ws = evaluate_state(problem, t, q, v)
    tau = ld.slotine_li_inverse_dynamics(model, q, v, v_r, a_r) - 0.5 * (v - v_r)
    np.testing.assert_allclose(ws.tau, tau, rtol=0, atol=1e-12)
    g = (v - v_r) @ ld.slotine_li_regressor(model, q, v, v_r, a_r)[:, :20]
    P, n = pseudo_inertia(ws.z[:20].reshape(2, 10)), 20
    L = metric_gradient(g.reshape(2, 10))
    np.testing.assert_allclose(pseudo_inertia(ws.z[n:].reshape(2, 10)), -2.0 * P @ L @ P, rtol=0, atol=1e-12)


def metric_gradient(g):
    """L (…, 4, 4) with tr(L P) = g . pi, from the pseudo-inertias of unit parameters by least squares."""
    units = pseudo_inertia(np.eye(10)).reshape(10, 16)
    return (g @ np.linalg.pinv(units).T).reshape(*g.shape[:-1], 4, 4)


@pytest.mark.parametrize("free", [(0,), (1, 2, 3), (4, 5, 6, 7, 8, 9), (0, 3, 7), tuple(range(10))])
def test_fixed_parameters_leave_the_metric_of_the_others(free):
    """The rate is H^-1 g, with H the Hessian of -log det P along the free parameters."""
    law = traced_module("kernels.simulation.slotine_li_law")
    parameters = np.array([2.0, 0.1, -0.2, 0.3, 0.2, 0.01, 0.02, 0.25, -0.03, 0.15])
    g, state = np.linspace(-1, 2, 10), np.full(10, -1)
    state[list(free)] = range(len(free))
    I = parameters[0], tuple(parameters[1:4]), tuple(parameters[4:])
    if len(free) == 10:
        rate = np.array(law.natural_rate(I, g))
    else:
        table = type("Law", (), {"state": state, "W": np.zeros(100)})
        law.restricted_metric(table, 0, I, 0.0)
        rate = (table.W.reshape(10, 10) @ g)[list(free)]
    B = pseudo_inertia(np.eye(10))[list(free)]
    X = np.linalg.solve(pseudo_inertia(parameters), B)
    H = np.einsum("aij,bji->ab", X, X)
    np.testing.assert_allclose(rate, np.linalg.solve(H, g[list(free)]), rtol=1e-11)


def test_generated_code_agrees_with_generic_kernels_and_implicit_methods(robot, monkeypatch):
    control = {"adapt": ["*.lower", "mass.upper"]}
    runs = [run_scenario(scenario(robot, control=control, duration=0.3))]
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    runs += [run_scenario(scenario(robot, control=control, duration=0.3, method=method)) for method in ("dopri5", "rodas5p")]
    for run, tolerance in zip(runs[1:], (1e-12, 1e-7), strict=True):
        for name in ("q", "tau"):
            np.testing.assert_allclose(getattr(run, name), getattr(runs[0], name), rtol=0, atol=tolerance)
        np.testing.assert_allclose(run.adaptation.estimate, runs[0].adaptation.estimate, rtol=0, atol=tolerance)
    assert runs[0].check["lyapunov_increase"] < 1e-12


def test_prescribed_joints_keep_their_motion(robot):
    keys = {"joints": {"elbow": {"prescribe": {"position": MOTION["elbow"]}}},
            "control": {"motion": {"shoulder": MOTION["shoulder"]}}}
    run = run_scenario(scenario(robot, **keys))
    assert run.tracking.names == ("shoulder",) and run.check["lyapunov_increase"] < 1e-12
    assert run.adaptation.lyapunov[-1] < 0.5 * run.adaptation.lyapunov[0]


def test_the_divergence_is_invariant_and_undefined_for_matrices_of_no_body():
    rng = np.random.default_rng(1)
    P, Q, G = rng.standard_normal((3, 4, 4))
    P, Q = P @ P.T, Q @ Q.T
    expected = np.log(np.linalg.det(Q) / np.linalg.det(P)) + np.trace(np.linalg.solve(Q, P)) - 4
    assert log_det_divergence(P, Q) == pytest.approx(expected, rel=1e-9)
    assert log_det_divergence(G @ P @ G.T, G @ Q @ G.T) == pytest.approx(expected, rel=1e-8)
    assert np.isnan(log_det_divergence(P, Q - 10 * np.eye(4))) and np.isnan(log_det_divergence(-P, Q))
    assert log_det_divergence(P, P) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("control", [{"adapt": True}, {"adapt": False}, {"adapt": ["mass.*"], "kd": {"*": 2, "elbow": 3}}])
def test_the_law_is_written_as_it_is_read(robot, control):
    read = scenario_of(scenario(robot, control=control), ())
    plain = yaml.safe_load(yaml.safe_dump(to_plain(read), sort_keys=False))
    assert plain["control"]["adapt"] == control["adapt"] and scenario_of(plain, ()).control == read.control


@pytest.mark.parametrize("keys, message", [
    ({"control": {"adapt": ["mass.lover"]}},
     r"control.adapt\[0\]: no such parameter: got 'mass.lover' \(did you mean mass.lower"),
    ({"control": {"adapt": 3}}, "control.adapt: expected true, false, or a list of parameters"),
    ({"control": {"kd": {"elbow": 2}}}, "control.kd: joint shoulder has no gain: expected kd of shoulder"),
    ({"control": {"kd": 0}}, "control.kd: out of range: expected a number > 0"),
    ({"control": {"adaptation_gain": -1}}, "control.adaptation_gain: out of range: expected a number > 0"),
    ({"control": {"motion": {"elbow": 0}}}, "control.motion: slotine_li drives all joints, but shoulder has no desired motion"),
    ({"control": {"bandwidth": None, "poles": [-1, -2]}},
     "control.poles: poles does not apply to the law slotine_li: expected motion, bandwidth, model, kd, adapt"),
    ({"sampling": {"rate": 100}}, "control: a sampled controller cannot adapt parameters: expected adapt: false"),
    ({"method": "variational"}, "integrator.method: laws that adapt parameters are not supported by variational"),
])
def test_errors(robot, keys, message):
    with pytest.raises(ScenarioError, match=message):
        run_scenario(scenario(robot, **keys))


def test_flat_links_and_linearization_are_refused(robot, tmp_path):
    flat = tmp_path / "flat.yaml"
    flat.write_text(ROBOT.replace("revolute", "continuous").replace("[0.02, 0.02, 0.01]", "[0.01, 0.02, 0.01]"))
    with pytest.raises(ScenarioError, match="control: parameters of lower cannot be adapted: the mass has no extent"):
        run_scenario(scenario(str(flat)))
    assert run_scenario(scenario(str(flat), control={"adapt": ["*.upper"]}, duration=0.1)).adaptation.definite.all()
    with pytest.raises(ScenarioError, match="a law that adapts parameters has no linear system: expected the override"):
        ld.linearize_scenario(scenario(robot))
    at_rest = scenario(robot, control={"adapt": False, "motion": {"shoulder": 0.3, "elbow": 0}})
    poles = np.sort(np.linalg.eigvals(ld.linearize_scenario(at_rest).system.A).real)        # M s' = -K s, e' = s - lambda e
    expected = np.r_[-4.0, -4.0, np.linalg.eigvals(-0.5 * np.linalg.inv(ld.mass_matrix(ld.load(robot), [0.3, 0.0])))]
    np.testing.assert_allclose(poles, np.sort(expected), rtol=1e-6)


def test_sampling_without_adaptation(robot):
    keys = {"sampling": {"rate": 1000}, "control": {"adapt": False}, "initial": {}}
    assert np.abs(run_scenario(scenario(robot, **keys)).tracking.error).max() < 2e-3
