"""Laws of joints and limits of forces: closed forms, SciPy's integration of the law in NumPy around forward dynamics, slopes,
generated code against generic kernels, and errors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.integrate import solve_ivp

import liedyn as ld
from controlled_robots import ARM as PLAIN_ARM
from controlled_robots import FINE
from liedyn.analysis.linearize import linearize_scenario
from liedyn.codegen.specialize import is_supported
from liedyn.dynamics.finite_differences import extrapolated_derivative
from liedyn.errors import ScenarioError
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.rhs_jacobian import RightHandSideJacobian
from liedyn.integrators.scipy_solvers import SolverStepper
from liedyn.io.scenarios.scenario import Constant, Prescribe, Rule
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of, to_plain
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.name_binding import phase_rules
from liedyn.simulation.run import run_scenario
from messages import has_parts
from other_units import in_units

ARM = (PLAIN_ARM.replace("origin: {xyz: [0, 0, 0.4]}", "origin: {xyz: [0, 0, 0.4]}, stiffness: 2, rest: 0.1")
       .replace("origin: {xyz: [0, 0, 0.3]}", "origin: {xyz: [0, 0, 0.3]}, friction: 0.2"))
BALL = ARM.replace("shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.4, armature: 0.1,\n"
                   "             limits: {lower: -9, upper: 9, effort: 12}}",
                   "shoulder: {type: ball, parent: world, child: upper}")
MOTION = {"shoulder": "0.4 + 0.5*sin(3*t)", "elbow": "0.8*cos(2*t) - 0.3*t", "slide": "0.1*sin(5*t)"}
TRACK = {"law": "computed_torque", "poles": [-8, -12], "motion": MOTION}


@pytest.fixture
def of(scenario):
    """Return a scenario of half a second with these keys, as a dict."""
    def make(robot: str = ARM, **keys) -> dict:
        return scenario(robot, **{"duration": 0.5, "output_step": 0.05, "integrator": dict(FINE), **keys})
    return make


def agree_by_lines(keys: dict, names, tolerance: float, monkeypatch) -> None:
    """Check that generated code, which must exist, gives the results of the generic kernels."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    loops = run_scenario(keys)
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    c, _ = compiled(keys)
    assert c.generated_rhs is not None
    line = run_scenario(keys)
    for name in names:
        x, y = getattr(loops, name), getattr(line, name)
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(x).max()))


def compiled(scenario):
    s = scenario_of(scenario)
    model = ld.load(s.robot)
    return compile_schedule(s, model).problem, model


def reference(model, law, result, rates=None):
    """Return states at the output times by SciPy, with tau = law(t, q, v)."""
    def slope_of(t, y):
        q, v = y[:model.nq], y[model.nq:]
        if rates:
            q = np.concatenate([q[:4] / np.linalg.norm(q[:4]), q[4:]])
        return np.concatenate([rates(q, v) if rates else v, ld.forward_dynamics(model, q, v, law(t, q, v))])
    found = solve_ivp(slope_of, (0, result.t[-1]), np.r_[result.q[0], result.v[0]], "DOP853", t_eval=result.t, rtol=1e-12,
                      atol=1e-13, max_step=0.01)
    return found.y[:model.nq].T, found.y[model.nq:].T


def check_against(result, model, law, rates=None) -> None:
    q, v = reference(model, law, result, rates)
    np.testing.assert_allclose(result.q, q, atol=1e-8)
    np.testing.assert_allclose(result.v, v, atol=1e-8)
    for k, t in enumerate(result.t):
        np.testing.assert_allclose(result.tau[k], law(t, result.q[k], result.v[k]), atol=1e-9)
    assert result.check["energy_balance_relative"] < 1e-9 and result.check["inverse_dynamics_residual"] < 1e-12


def desired(t: float) -> np.ndarray:
    """Return MOTION and two derivatives, by row: (3, 3)."""
    return np.array([[0.4 + 0.5 * np.sin(3 * t), 0.8 * np.cos(2 * t) - 0.3 * t, 0.1 * np.sin(5 * t)],
                     [1.5 * np.cos(3 * t), -1.6 * np.sin(2 * t) - 0.3, 0.5 * np.cos(5 * t)],
                     [-4.5 * np.sin(3 * t), -3.2 * np.cos(2 * t), -2.5 * np.sin(5 * t)]])


def asked(t, q, v):
    """Return accelerations for which the error satisfies (d/dt + 8) (d/dt + 12) e = 0."""
    r, dr, ddr = desired(t)
    return ddr + 20 * (dr - v) + 96 * (r - q)


# computed torque ----------------------------------------------------------------------------------------------------------
def test_the_error_of_computed_torque_obeys_its_linear_equation(of):
    result = run_scenario(of(control=TRACK, initial={"q": {"shoulder": 0.6}, "v": {"elbow": 0.5, "slide": 0}}))
    e, t = result.tracking.error, result.t[:, None]
    e0, de0 = e[0], result.v[0] - desired(0.0)[1]
    assert np.abs(e0).max() > 0.1 and np.abs(de0).max() > 0.4
    slow, fast = (12 * e0 + de0) / 4, -(8 * e0 + de0) / 4
    np.testing.assert_allclose(e, slow * np.exp(-8 * t) + fast * np.exp(-12 * t), atol=1e-9)
    np.testing.assert_allclose(result.tracking.reference, [desired(s)[0] for s in result.t], atol=1e-14)
    assert result.check["energy_balance_relative"] < 1e-9


def test_it_starts_on_the_motion_and_stays_there(of):
    result = run_scenario(of(control=TRACK))
    np.testing.assert_allclose(result.v[0], desired(0.0)[1], atol=1e-15)
    assert result.check["tracking_error"] < 1e-11
    law = ld.inverse_dynamics(result.model, result.q, result.v, np.array([desired(t)[2] for t in result.t]))
    np.testing.assert_allclose(result.tau, law, atol=1e-8)


def test_computed_torque_beside_a_free_joint_is_partial_linearization(of):
    motion = {name: MOTION[name] for name in ("shoulder", "slide")}
    result = run_scenario(of(control=TRACK | {"motion": motion}, joints={"elbow": {"torque": "-0.3*v + sin(t)"}},
                             initial={"q": {"shoulder": 0.7}}))
    model, driven, other = result.model, [0, 2], [1]

    def law(t, q, v):
        M, h = ld.mass_matrix(model, q), ld.inverse_dynamics(model, q, v, np.zeros(3))
        tau, a = np.array([0.0, -0.3 * v[1] + np.sin(t), 0.0]), asked(t, q, v)
        a[other] = np.linalg.solve(M[np.ix_(other, other)], tau[other] - h[other] - M[np.ix_(other, driven)] @ a[driven])
        tau[driven] = (M @ a + h)[driven]
        return tau
    check_against(result, model, law)


def test_computed_torque_beside_a_prescribed_joint(of):
    motion = {name: MOTION[name] for name in ("shoulder", "slide")}
    result = run_scenario(of(control=TRACK | {"motion": motion}, joints={"elbow": {"prescribe": {"position": "0.4*sin(6*t)"}}},
                             initial={"q": {"shoulder": 0.5}}))
    e, t = result.tracking.error[:, 0], result.t
    np.testing.assert_allclose(e, 0.1 * (3 * np.exp(-8 * t) - 2 * np.exp(-12 * t)), atol=1e-9)
    assert np.abs(result.tracking.error[:, 1]).max() < 1e-9


def test_a_torque_in_joints_is_added(of):
    result = run_scenario(of(control=TRACK, joints={"elbow": {"torque": 1.5}}))
    model, added = result.model, np.array([0, 1.5, 0])
    check_against(result, model, lambda t, q, v: ld.inverse_dynamics(model, q, v, asked(t, q, v)) + added)


# gravity ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("robot", [ARM.replace("rest: 0.1", "rest: 0.5"), BALL.replace("rest: 0.1", "rest: 0.5")])
def test_gravity_compensation_holds_a_pose(of, robot):
    q = {"elbow": 0.5, "slide": 0.1} | ({"shoulder": 1.0} if "damping" in robot else {"shoulder": [0.48, 0.0, 0.36, 0.8]})
    result = run_scenario(of(robot, control={"law": "gravity_compensation"}, initial={"q": q}))
    assert np.abs(result.q - result.q[0]).max() < 1e-13 and np.abs(result.v).max() < 1e-12 and np.abs(result.tau).max() > 1
    np.testing.assert_allclose(result.tau, ld.gravity_force(result.model, result.q), atol=1e-12)


def test_pd_with_gravity(of):
    pd = {"kp": 30, "kd": 3, "target": "0.5*sin(2*t)", "gravity": True}
    result = run_scenario(of(joints={"elbow": {"torque": {"pd": pd}}}, initial={"q": {"elbow": 0.4}}))
    model = result.model

    def law(t, q, v):
        g = ld.gravity_force(model, q)
        return np.array([0.0, g[1] + 30 * (0.5 * np.sin(2 * t) - q[1]) + 3 * (np.cos(2 * t) - v[1]), 0.0])
    check_against(result, model, law)


def test_gravity_that_is_compensated_twice_is_reported(of):
    """Once by gravity_compensation and again by other laws and a pd law, without a message."""
    pd = {"torque": {"pd": {"kp": 10, "target": 0.2, "gravity": True}}}
    once = run_scenario(of(control={"law": "gravity_compensation"}, joints={"elbow": pd}))
    assert not any("twice" in note for note in map(str, once.warnings))
    twice = run_scenario(of(control=TRACK, joints={"elbow": pd}))
    assert any("gravity of elbow is compensated twice" in note and "computed_torque" in note for note in map(str, twice.warnings))
    model = twice.model
    alone = run_scenario(of(control=TRACK, joints={"elbow": {"torque": {"pd": {"kp": 10, "target": 0.2}}}}))
    k = model.v_names.index("elbow")
    assert twice.tau[0, k] - alone.tau[0, k] == pytest.approx(ld.gravity_force(model, alone.q[0])[k])


def test_gravity_compensation_of_some_joints(of):
    result = run_scenario(of(control={"law": "gravity_compensation", "joints": ["s*"]}))
    model = result.model
    check_against(result, model, lambda t, q, v: ld.gravity_force(model, q) * [1, 0, 1])


# state feedback -----------------------------------------------------------------------------------------------------------
def quaternion_rates(q, v):
    """Of a ball joint and two joints of one coordinate: half the product of the quaternion and the angular velocity."""
    x, y, z, w = q[:4]
    turn = np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]]) / 2
    return np.concatenate([turn @ v[:3], v[3:]])


def test_state_feedback_is_about_a_state_of_the_manifold(of, rng=np.random.default_rng(3)):                   # noqa: B008
    gain = np.abs(rng.normal(size=(5, 10)))
    gain = gain + np.hstack([40 * np.eye(5), 6 * np.eye(5)])
    about = {"shoulder": [0.0, 0.28, 0.0, 0.96], "elbow": 0.3}
    result = run_scenario(of(BALL, control={"law": "state_feedback", "gain": gain.tolist(), "setpoint": {"q": about}},
                             initial={"q": {"shoulder": [0.48, 0.0, 0.36, 0.8]}}))
    model, q0 = result.model, np.array([0.0, 0.28, 0.0, 0.96, 0.3, 0.0])
    hold = ld.inverse_dynamics(model, q0, np.zeros(5), np.zeros(5))

    def law(t, q, v):
        return hold - gain @ np.concatenate([ld.difference(model, q0, q), v])
    check_against(result, model, law, quaternion_rates)


def test_rows_are_those_of_the_joints_that_are_named(of, tmp_path):
    (tmp_path / "k.csv").write_text("# shoulder last\n1,2,3,4,5,6\n\n7, 8, 9, 10, 11, 12\n")
    control = {"law": "state_feedback", "gain": str(tmp_path / "k.csv"), "joints": ["slide", "shoulder"],
               "setpoint": {"q": {"elbow": 0.2}, "v": {"slide": 0.1}}}
    s = scenario_of(of(control=control))
    model = ld.load(s.robot)
    warning, = map(str, compile_schedule(s, model).warnings)
    assert "the setpoint is not an equilibrium: elbow requires" in warning
    light = ld.build(in_units(model.description, mass=1e-9))             # forces of 1e-8 N m: not compared with 1 N m
    assert len(compile_schedule(s, light).warnings) == 1
    result = run_scenario(of(control=control))
    gain, hold = np.array([[7.0, 8, 9, 10, 11, 12], [0] * 6, [1, 2, 3, 4, 5, 6]]), np.array([1.0, 0, 1])
    q0, v0 = np.array([0.0, 0.2, 0.0]), np.array([0.0, 0, 0.1])
    tau = ld.inverse_dynamics(model, q0, v0, np.zeros(3)) * hold
    check_against(result, model, lambda t, q, v: tau - gain @ np.concatenate([q - q0, v - v0]))


def test_a_gain_with_names(of, tmp_path):
    (tmp_path / "k.csv").write_text("K,v.slide[m/s],q.shoulder[rad]\ntau.slide[N],1,-2.5\ntau.shoulder[N m], 3, 4\n")
    about, plain = {"q": {"elbow": 0.2}}, [[4.0, 0, 0, 0, 0, 3], [-2.5, 0, 0, 0, 0, 1]]
    given = {"tau.slide": {"v.slide": 1, "q.shoulder": -2.5}, "tau.shoulder": {"q.shoulder": 4, "v.slide": 3}}
    laws = [compiled(of(control={"law": "state_feedback", "setpoint": about, **more}))[0].joint_laws
            for more in ({"gain": plain, "joints": ["shoulder", "slide"]}, {"gain": given}, {"gain": str(tmp_path / "k.csv")})]
    rows = [law.gain.reshape(-1, 6)[law.row[[0, 2]]] for law in laws]
    for law, row in zip(laws, rows, strict=True):
        np.testing.assert_array_equal(row, plain)
        np.testing.assert_array_equal(law.setpoint_tau[law.row[[0, 2]]], laws[0].setpoint_tau)
        assert law.row[1] == -1


def test_an_unstable_equilibrium_is_held(of):
    """The closed loop is the one for which the gain was computed."""
    root = Path(__file__).parents[2]
    scenario = {"robot": str(root / "robots/cart_pole.yaml"), "duration": 6, "output_step": 0.02, "initial": {"q": {"pole": 0.3}},
                "control": {"law": "state_feedback", "joints": ["cart"], "gain": [[-4.47, -48.5, -6.28, -12.5]], "setpoint": {}}}
    same = run_scenario(root / "configs/cart_pole.yaml")
    result = run_scenario(scenario)
    np.testing.assert_allclose(result.q, same.q, atol=1e-9)
    closed = [linearize_scenario(x, equilibrium=True).system.A for x in (scenario, root / "configs/cart_pole.yaml")]
    np.testing.assert_allclose(*closed, atol=1e-10)


# saturation ---------------------------------------------------------------------------------------------------------------
STRONG = {"shoulder": {"torque": {"pd": {"kp": 200, "kd": 10, "target": 1.5}}},
          "elbow": {"torque": {"pd": {"kp": 9, "kd": 1, "target": "0.3*sin(20*t)", "feedforward": 1.0}}}}


@pytest.mark.parametrize("method", [FINE, {"method": "rk4", "step": 2e-4}, {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12},
                                    {"method": "Radau", "rtol": 1e-11, "atol": 1e-12}], ids=lambda m: m["method"])
def test_forces_stay_within_their_limits(of, method):
    result = run_scenario(of(joints=STRONG, saturate={"shoulder": "limits", "elbow": 3.5}, integrator=method, output_step=0.01))
    model, limit = result.model, np.array([12, 3.5, np.inf])

    def law(t, q, v):
        tau = np.array([200 * (1.5 - q[0]) - 10 * v[0], 9 * (0.3 * np.sin(20 * t) - q[1]) + 6 * np.cos(20 * t) - v[1] + 1, 0.0])
        return np.clip(tau, -limit, limit)
    check_against(result, model, law)
    assert np.abs(result.tau[:, :2]).max(axis=0) == pytest.approx(limit[:2], rel=1e-12)
    assert 0.1 < (np.abs(result.tau[:, 1]) < 3.4).mean() < 0.9 and np.ptp(np.sign(result.tau[:, 1])) == 2
    assert any("the force of elbow is at its limit of 3.5 N m from t = 0 s, in" in note for note in map(str, result.warnings))


def test_a_fixed_step_keeps_its_order_at_the_limit(of):
    def end(integrator):
        return run_scenario(of(ARM.replace(", friction: 0.2", ""), joints={"elbow": STRONG["elbow"]}, saturate={"elbow": 1.5},
                               integrator=integrator, output_step=0.25)).q[-1]
    exact = end(FINE)
    errors = [np.abs(end({"method": "rk4", "step": step}) - exact).max() for step in (8e-3, 4e-3, 2e-3, 1e-3)]
    assert errors[0] / errors[2] > 150 and errors[1] / errors[3] > 150 and errors[3] < 1e-9, errors


def test_computed_torque_at_its_limit(of):
    result = run_scenario(of(control=TRACK, saturate={"*": "limits", "slide": 3, "elbow": 1.5}, initial={"q": {"shoulder": 0.9}}))
    model, limit = result.model, [12, 1.5, 3]
    law = lambda t, q, v: np.clip(ld.inverse_dynamics(model, q, v, asked(t, q, v)), np.negative(limit), limit)    # noqa: E731
    check_against(result, model, law)
    assert np.abs(result.tau).max(axis=0) == pytest.approx(limit, rel=1e-12)


def test_partial_linearization_knows_the_limit_of_the_other_joint(of):
    motion = {name: MOTION[name] for name in ("shoulder", "slide")}
    result = run_scenario(of(control=TRACK | {"motion": motion}, joints={"elbow": {"torque": "9*sin(9*t)"}},
                             saturate={"elbow": 3}, initial={"q": {"shoulder": 0.5}}))
    e, t = result.tracking.error[:, 0], result.t
    np.testing.assert_allclose(e, 0.1 * (3 * np.exp(-8 * t) - 2 * np.exp(-12 * t)), atol=1e-9)
    np.testing.assert_allclose(result.tau[:, 1], np.clip(9 * np.sin(9 * t), -3, 3), atol=1e-12)


def test_saturation_of_motors_of_elastic_joints():
    """As a line: loops of both kinds of laws at once take minutes to compile, and each is tested alone."""
    arm = Path(__file__).parents[2] / "configs" / "elastic_arm.yaml"
    result = run_scenario(arm, {"saturate.*": 25, "duration": 0.3, "output_step": 0.01})
    assert np.abs(result.tau).max() == pytest.approx(25, rel=1e-12) and result.check["energy_balance_relative"] < 1e-6


# slopes -------------------------------------------------------------------------------------------------------------------
SLOPES = {
    "all": dict(control=TRACK), "limited": dict(control=TRACK, saturate={"elbow": 1.0, "shoulder": 90}),
    "partial": dict(control=TRACK | {"motion": {"slide": "0.1*t"}}, joints={"elbow": {"torque": "-q*q - v*q(slide)"}}),
    "prescribed": dict(control=TRACK | {"motion": {"slide": "0.1*t"}}, joints={"elbow": {"prescribe": {"velocity": "sin(t)"}}}),
    "gravity": dict(joints={"elbow": {"torque": {"pd": {"kp": 3, "kd": 1, "target": 1, "gravity": True}}}}),
    "feedback": dict(robot=BALL, control={"law": "state_feedback", "gain": np.arange(50.0).reshape(5, 10).tolist(),
                                          "setpoint": {"q": {"shoulder": [0.0, 0.28, 0.0, 0.96], "elbow": 0.3}}}),
}


@pytest.mark.parametrize("keys", SLOPES.values(), ids=SLOPES)
def test_linearization_and_the_jacobian_of_implicit_methods(of, keys):
    scenario = of(**{"initial": {"q": {"elbow": 0.3}, "v": {"elbow": 0.2 * ("prescribe" not in str(keys))}}, **keys})
    for differences in (linearize_scenario(scenario, at=0.1, verify=True).differences,
                        linearize_scenario(scenario, open_loop=True, verify=True).differences):
        assert all(x.off < 1e-9 and x.sound for x in differences.values())
    c, model = compiled(scenario)
    run = SolverStepper(c, SegmentStart(0.0, c.q, c.v), np.array([0.0, 1.0]), Options("Radau"))
    jacobian = RightHandSideJacobian(run.problem, run.workspace, run.evaluate_trial)
    y = np.concatenate([0.1 * np.arange(model.nv), c.v, [0.0]])
    assert jacobian.exact
    run.evaluate_trial(0.3, y)
    J, e = jacobian.from_derivatives(0.3, y), np.eye(len(y))
    for k in range(len(y) - 1):
        found, doubt = extrapolated_derivative(lambda h, k=k: run.evaluate_trial(0.3, y + h * e[k])[1][:-1], 0.02)
        assert (np.abs(J[:-1, k] - found) <= 1e-8 * np.abs(J).max() + 10 * doubt).all()


@pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
@pytest.mark.parametrize("keys", [*SLOPES.values(), dict(joints=STRONG, saturate={"shoulder": "limits", "elbow": 3.5})],
                         ids=[*SLOPES, "saturated"])
def test_lines_give_what_the_loops_give(of, monkeypatch, keys):
    scenario = of(**keys, duration=0.1)
    agree_by_lines(scenario, ("q", "v", "a", "tau", "work"), 1e-11, monkeypatch)


# phases -------------------------------------------------------------------------------------------------------------------
TAKEN = {"phases": {"free": {}, "taken": {"joints": {"elbow": {"prescribe": {"position": MOTION["elbow"]}}}}},
         "events": {"take": {"at": 0.15, "do": {"phase": "taken"}}, "leave": {"at": 0.35, "do": {"phase": "free"}}}}


def test_computed_torque_leaves_out_a_joint_while_it_is_prescribed(of):
    result = run_scenario(of(control=TRACK, initial={"q": {"shoulder": 0.5}}, **TAKEN))
    e, t = result.tracking.error, result.t
    np.testing.assert_allclose(e[:, 0], 0.1 * (3 * np.exp(-8 * t) - 2 * np.exp(-12 * t)), atol=1e-9)
    assert np.abs(e[:, 1:]).max() < 1e-9 and len(result.events) == 2
    a = np.array([asked(*x) for x in zip(t, result.q, result.v, strict=True)])
    np.testing.assert_allclose(result.tau, ld.inverse_dynamics(result.model, result.q, result.v, a), atol=1e-7)


@pytest.mark.parametrize("first", ["free", "taken"])
def test_what_a_law_drives_in_each_phase(of, first):
    phases = {name: TAKEN["phases"][name] for name in (first, *TAKEN["phases"])}
    s = scenario_of(of(control=TRACK, saturate={"elbow": 3, "slide": 2}, phases=phases, events=TAKEN["events"]))
    model = ld.load(s.robot)
    now = compile_schedule(s, model)
    free, taken, locked = (now if name == first else compile_schedule(s, model, rules) for name, rules in (
        ("free", phase_rules(s, model, "free")), ("taken", phase_rules(s, model, "taken")),
        ("locked", phase_rules(s, model, "free") | {"elbow": Rule("elbow", Prescribe("acceleration", Constant(0.0)))})))
    for (problem, _, _), driven in ((free, [1, 1, 1]), (taken, [1, 0, 1]), (locked, [1, 0, 1])):
        laws = problem.joint_laws
        np.testing.assert_array_equal(laws.driven, driven)
        np.testing.assert_array_equal(laws.prescribed, [1, 1, 1])
        np.testing.assert_array_equal(laws.limit, [np.inf, 3 if driven[1] else np.inf, 2])
        assert np.count_nonzero(laws.switch >= 0) == 1 + driven[1]
        assert len(problem.signals.switches) // 4 == 2 * (1 + driven[1])


def test_other_laws_and_limits_in_phases(of):
    gain = np.hstack([40 * np.eye(3), 6 * np.eye(3)]) + np.arange(18).reshape(3, 6) / 9
    control = {"law": "state_feedback", "gain": gain.tolist(), "setpoint": {"q": {"elbow": 0.8}}}
    held = {"pd": {"kp": 30, "kd": 3, "target": 0.2, "gravity": True}}
    scenario = of(control=control, saturate={"slide": 2, "elbow": 30}, initial={"q": {"elbow": 0.8}}, output_step=0.01,
                  phases={"free": {}, "still": {"joints": {"shoulder": {"torque": held}}}},
                  events={"lock": {"at": 0.15, "do": [{"lock": "elbow"}, {"phase": "still"}]},
                          "unlock": {"at": 0.35, "do": {"unlock": "elbow"}}})
    result = run_scenario(scenario)
    model, q0 = result.model, np.array([0.0, 0.8, 0.0])
    hold, locked = ld.inverse_dynamics(model, q0, np.zeros(3), np.zeros(3)), np.zeros(len(result.t), dtype=bool)
    after = np.flatnonzero(np.diff(result.t) == 0.0) + 1
    locked[after[0]:after[1]] = True
    assert np.abs(result.v[locked, 1]).max() < 1e-12 and np.ptp(result.q[locked, 1]) < 1e-12
    for k, (q, v) in enumerate(zip(result.q, result.v, strict=True)):
        tau = hold - gain @ np.concatenate([q - q0, v])
        if k >= after[0]:
            tau[0] += ld.gravity_force(model, q)[0] + 30 * (0.2 - q[0]) - 3 * v[0]
        tau = np.clip(tau, [-np.inf, -30, -2], [np.inf, 30, 2])
        np.testing.assert_allclose(result.tau[k][~(locked[k] & np.array([False, True, False]))],
                                   tau[~(locked[k] & np.array([False, True, False]))], atol=1e-9)
    assert result.check["energy_balance_relative"] < 1e-9
    assert any("the force of slide is at its limit of 2 N" in note for note in map(str, result.warnings))


def test_a_joint_that_is_prescribed_in_all_phases_is_refused(of):
    prescribed = {"joints": {"elbow": {"prescribe": {"velocity": 0}}}}
    with pytest.raises(ScenarioError, match="joint elbow is prescribed, but control drives it"):
        compiled(of(control=TRACK, phases={"a": prescribed, "b": prescribed}))


@pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
def test_laws_with_contacts(of):
    """As a line: loops of laws and of contacts are tested alone, and take minutes to compile together."""
    contacts = {"links": {"hand": {"sphere": {"radius": 0.05}}}, "planes": {"wall": {"point": [0, 0, 0.7], "normal": [0, 0, 1]}}}
    scenario = of(control=TRACK, saturate={"slide": 2}, contacts=contacts, duration=0.2,
                  initial={"q": {"shoulder": 1.2}, "v": {"shoulder": 0}})
    run = run_scenario(scenario)
    assert np.abs(run.wrench).max() > 1.0 and run.check["inverse_dynamics_residual"] < 1e-11
    assert run.check["energy_balance_relative"] < 1e-7


# scenario files -----------------------------------------------------------------------------------------------------------
WRITTEN = [dict(control=TRACK, saturate=True), dict(control={"law": "gravity_compensation", "joints": ["elbow"]}),
           dict(control={"law": "state_feedback", "gain": [[1.0] * 6], "joints": ["elbow"], "setpoint": {"q": {"elbow": 1.0}}},
                saturate={"elbow": 3.0, "s*": "limits"}),
           dict(control={"law": "state_feedback", "gain": {"tau.elbow": {"q.elbow": 2.0}}, "setpoint": {"v": {"slide": 1.0}}}),
           dict(joints={"elbow": {"torque": {"pd": {"kp": 1.0, "target": 0.0, "gravity": True}}}}, saturate=False)]


@pytest.mark.parametrize("keys", WRITTEN)
def test_it_reads_back_what_it_writes(of, tmp_path, keys):
    s = scenario_of(of(**keys))
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(s, tmp_path), sort_keys=False))
    assert read_scenario(tmp_path / "again.yaml") == s


FEEDBACK = {"law": "state_feedback", "gain": [[1.0] * 6] * 3, "setpoint": {}}
BAD = {
    "no such law": (dict(control={"law": "gravity_compensatoin"}), "did you mean gravity_compensation?"),
    "a key of another law": (dict(control=TRACK | {"gain": [[1]]}),
        "gain does not apply to the law computed_torque: expected motion, bandwidth, poles, model (write law: state_feedback)"),
    "gravity with motion": (dict(control={"law": "gravity_compensation", "motion": {}}),
                            "motion does not apply to the law gravity_compensation: expected joints, model (write law: "),
    "no motion": (dict(control=TRACK | {"motion": {}}),
        "the law drives no joint: expected a motion of at least one joint that is not prescribed"),
    "a prescribed joint": (dict(control=TRACK, joints={"elbow": {"prescribe": {"velocity": 0}}}),
                           "joint elbow is prescribed, but control drives it"),
    "an unknown joint": (dict(control=TRACK | {"motion": {"elbov": 0}}), "no such joint: got 'elbov' (did you mean elbow?)"),
    "a ball": (dict(robot=BALL, control=TRACK), "joint shoulder has 3 coordinates: computed_torque requires joints with one "
                                                "coordinate"),
    "a motion of the state": (dict(control=TRACK | {"motion": {"elbow": "q"}}), "function of time only"),
    "not smooth": (dict(control=TRACK | {"motion": {"elbow": "sqrt(t)"}}), "elbow does not have two finite derivatives at t = 0"),
    "rigid joints": (dict(control={"law": "feedback_linearization", "bandwidth": 3, "motion": MOTION}),
                     "requires that all joints are elastic; joint shoulder is not"),
    "an unstable pole": (dict(control=TRACK | {"poles": [-1, 2]}), "unstable pole: expected a negative pole [1/s], got 2"),
    "no gain": (dict(control={"law": "state_feedback", "setpoint": {}}),
        "the key gain is missing: expected a list of rows of numbers, {tau.joint: {q.joint: number, …}, …}, or the path of a "
        "CSV file"),
    "no setpoint": (dict(control={"law": "state_feedback", "gain": [[1]]}),
        "the key setpoint is missing: expected the state at which the gain holds: q and v by joint"),
    "rows": (dict(control=FEEDBACK | {"gain": [[1.0] * 6] * 2}),
        "does not fit the robot: expected 3 rows (forces of shoulder, elbow, slide) of 6 numbers (q, then v, of all 3 "
        "coordinates), got '2 rows of 6 numbers'"),
    "columns": (dict(control=FEEDBACK | {"gain": [[1.0] * 3] * 3}), "got '3 rows of 3 numbers'"),
    "an unknown row": (dict(control=FEEDBACK | {"gain": {"tau.elbov": {"q.elbow": 1}}}),
                       "no such row of a gain: got 'tau.elbov'"),
    "an unknown column": (dict(control=FEEDBACK | {"gain": {"tau.elbow": {"elbow": 1}}}),
                          "no such column of a gain: got 'elbow'"),
    "names twice": (dict(control=FEEDBACK | {"gain": {"tau.elbow": {"q.elbow": 1}}, "joints": ["elbow"]}),
                    "the rows of the gain are already named"),
    "uneven": (dict(control=FEEDBACK | {"gain": [[1, 2], [1]]}), "the rows differ in length: expected 2 numbers, got 1"),
    "no matrix": (dict(control=FEEDBACK | {"gain": 3}), "expected a list of rows … got 3"),
    "no numbers": (dict(control=FEEDBACK | {"gain": [["x"]]}), "expected a number"),
    "no file": (dict(control=FEEDBACK | {"gain": "none.csv"}), "none.csv: no such file"),
    "setpoint of nothing known": (dict(control=FEEDBACK | {"setpoint": {"q": {"x": 1}}}),
        "no such joint: expected one of shoulder, elbow, slide, got 'x'"),
    "setpoint of too many values": (dict(control=FEEDBACK | {"setpoint": {"q": {"elbow": [1, 2]}}}),
                                    "wrong number of values: expected 1, got 2"),
    "a prescribed joint named": (dict(control=FEEDBACK | {"joints": ["elbow"]}, joints={"elbow": {"prescribe": {"velocity": 0}}}),
                                 "joint elbow is prescribed, but control drives it"),
    "nothing to drive": (dict(control={"law": "gravity_compensation"}, joints={"*": {"prescribe": {"velocity": 0}}}),
                         "control has no joint to actuate: all joints are free or prescribed"),
    "a free joint": (dict(base="floating", control={"law": "gravity_compensation", "joints": ["base"]}),
                     "joint base is free: no motor acts there"),
    "gravity no switch": (dict(joints={"elbow": {"torque": {"pd": {"kp": 1, "target": 0, "gravity": 3}}}}),
                          "expected true or false"),
    "saturate by name": (dict(saturate="limits"), "expected true, false, or limits by joint: limits or a number"),
    "no limit": (dict(saturate={"slide": "limits"}),
        "joint slide has no effort limit in the robot file: expected a number [N m or N], got 'limits'"),
    "limit zero": (dict(saturate={"elbow": 0}), "out of range: expected a number > 0, got 0"),
    "limit word": (dict(saturate={"elbow": "limit"}), "expected one of limits, got 'limit' (did you mean limits?)"),
    "limit list": (dict(saturate={"elbow": [1, 2]}), "the force of elbow has one limit for both directions"),
    "limit of a prescribed joint": (dict(saturate={"elbow": 3}, joints={"elbow": {"prescribe": {"velocity": 0}}}),
                                    "the force of elbow cannot be limited: it is prescribed, its force follows from the motion"),
    "limit of a free joint": (dict(base="floating", saturate={"base": 3}),
                              "the force of base cannot be limited: it is free and has no motor"),
    "a loop": (dict(robot=ARM + "loops: {pin: {type: distance, a: world, b: lower, length: 0.5}}\n",
                    control={"law": "gravity_compensation"}),
               "control: the actuated joints of the robot are not known: expected `joints` of the law with names of joints, "
               "or the key `actuated` of the robot file"),
}


@pytest.mark.parametrize(("keys", "message"), BAD.values(), ids=BAD)
def test_bad_values_are_told_in_a_line(of, keys, message):
    robot, keys = keys.get("robot", ARM), {key: x for key, x in keys.items() if key != "robot"}
    if keys.get("base") == "floating":
        robot = robot.replace("parent: world", "parent: body")
        robot = robot.replace("links:\n", "links:\n  body: {mass: 1, inertia: [1, 1, 1]}\n")
    with pytest.raises(ScenarioError) as caught:
        s = scenario_of(of(robot, **keys))
        compile_schedule(s, ld.load(s.robot, base=s.base))
    assert has_parts(str(caught.value), message) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [
    ("1,2\n3\n", "k.csv:2: the row has the wrong number of values: expected 2, got 1"),
    ("q,v\n", "k.csv:1: cell 1: not a number"),
    ("K,q.elbow\ntau.elbow,1,2\n", "k.csv:2: the row has the wrong number of values: expected 2, got 3"),
    ("K,q.elbow\n", "the matrix is empty"),
    ("K,q.elbow\nx,y\n", "k.csv:2: cell 2: not a number"),
    ("1,inf\n", "k.csv:1: cell 2: not a finite"),
    ("# 1\n", "k.csv: the file contains comments only: expected rows of numbers between commas"), ("", "the file is empty")])
def test_bad_files_of_gains(of, tmp_path, text, message):
    (tmp_path / "k.csv").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        scenario_of(of(control=FEEDBACK | {"gain": str(tmp_path / "k.csv")}))
    assert message in str(caught.value)
