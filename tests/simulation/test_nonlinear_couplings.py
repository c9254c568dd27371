"""Runs of robots with nonlinear couplings: energy, integrators, initial states, rollouts, recordings, linearization."""
import numpy as np
import pytest
import scipy.integrate

import liedyn as ld

ROBOT = """
name: cammer
links:
  a: {mass: 1.0, com: [0.1, 0, 0.02], inertia: [0.01, 0.02, 0.02]}
  b: {mass: 0.7, com: [0, 0.05, 0], inertia: [0.003, 0.004, 0.005]}
  c: {mass: 0.5, com: [0.05, 0.05, 0], inertia: [0.003, 0.004, 0.005]}
joints:
  cam: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  lift: {type: prismatic, parent: world, child: b, axis: [0, 0, 1], origin: {xyz: [0.1, 0, 0]}, limits: {lower: -1, upper: 1}}
  arm: {type: continuous, parent: b, child: c, axis: [0, 1, 0], origin: {xyz: [0.1, 0, 0]}}
couplings:
  valve: {follower: lift, driver: cam, %s}
"""
FUNCTION = 'function: "0.1*(1 - cos(cam))"'
TABLE = f"table: {[[float(x), float(0.1 * (1 - np.cos(x)))] for x in np.linspace(-np.pi, np.pi, 33)]}, periodic: true"
QUINTIC = TABLE + ", interpolation: quintic"
START = {"q": {"cam": 0.7, "arm": 0.3}, "v": {"cam": 2.0, "arm": -1.0}}
TIGHT = {"method": "dopri5", "rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize("coupling", [FUNCTION, TABLE, QUINTIC], ids=["function", "cubic", "quintic"])
def test_energy_and_coupling_hold(scenario, coupling):
    run = ld.run_scenario(scenario(ROBOT % coupling, initial=START, integrator=TIGHT, duration=3))
    energy = run.kinetic + run.potential - run.work
    assert np.ptp(energy) < 2e-9 * (np.ptp(run.potential) + run.kinetic.max()) and not run.warnings
    assert np.abs(run.drift).max() < 1e-10 and np.ptp(run.q[:, 0]) > 0.5
    np.testing.assert_allclose(ld.constraint_residual(run.model, run.q), 0.0, atol=1e-12)
    np.testing.assert_allclose(ld.constraint_velocity(run.model, run.q, run.v), 0.0, atol=1e-11)


def test_a_run_solves_the_reduced_equation(scenario):
    """The equation is reduced by `expand` and integrated by SciPy."""
    run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial=START, integrator=TIGHT))
    model = run.model

    def rates(_, x):
        q, v = ld.expand(model, x[:2], x[2:])
        a = ld.constrained_forward_dynamics(model, q, v, np.zeros(3)).a
        return [*v[[0, 2]], *a[[0, 2]]]
    found = scipy.integrate.solve_ivp(rates, (0, 1), [0.7, 0.3, 2.0, -1.0], method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([*run.q[-1, [0, 2]], *run.v[-1, [0, 2]]], found, rtol=0, atol=1e-8)


@pytest.mark.parametrize("method, error", [("rk4", 1e-8), ("rodas5p", 1e-6), ("generalized_alpha", 1e-3), ("Radau", 1e-3)])
def test_integrators_agree(scenario, method, error):
    one = ld.run_scenario(scenario(ROBOT % QUINTIC, initial=START, integrator=TIGHT))
    two = ld.run_scenario(scenario(ROBOT % QUINTIC, initial=START, integrator={"method": method}))
    np.testing.assert_allclose(two.q[-1], one.q[-1], rtol=0, atol=error)


def test_baumgarte_keeps_the_coupling(scenario):
    run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial=START, integrator=TIGHT,
                                   constraints={"stabilization": "baumgarte", "frequency": 20}))
    assert np.abs(ld.constraint_residual(run.model, run.q)).max() < 1e-7


def lift(x):
    return 0.1 * (1 - np.cos(x))


@pytest.mark.parametrize("given, first", [
    ({"cam": 0.7}, [0.7, lift(0.7), 0.0]), ({"lift": 0.15, "cam": 1.0}, [1.0, lift(1.0), 0.0]), ({}, [0.0, 0.0, 0.0])])
def test_the_driver_keeps_its_initial_position(scenario, given, first):
    if "lift" in given:
        with pytest.warns(ld.LiedynWarning, match="the initial position was projected onto the constraints: lift by"):
            run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial={"q": given}, duration=0.01))
    else:
        run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial={"q": given}, duration=0.01))
    np.testing.assert_allclose(run.q[0], first, rtol=0, atol=1e-13)


def test_a_given_follower_moves_its_driver(scenario):
    """From a position where the function has a slope, Newton's method computes the driver."""
    text = (ROBOT % 'function: "0.1*sin(cam) + 0.05"')
    run = ld.run_scenario(scenario(text, initial={"q": {"lift": 0.1}}, duration=0.01))
    assert run.warnings == ()                                    # the cam is not given
    np.testing.assert_allclose(run.q[0], [np.pi / 6, 0.1, 0.0], rtol=0, atol=1e-12)


def test_a_follower_that_cannot_reach_its_position_is_moved(scenario):
    """The position is out of the function's range: a warning states what moved."""
    with pytest.warns(ld.LiedynWarning, match="projected onto the constraints"):
        run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial={"q": {"lift": 0.5}}, duration=0.01))
    np.testing.assert_allclose(run.q[0, 1], lift(run.q[0, 0]), atol=1e-12)


@pytest.mark.parametrize("start, codes", [
    ({"initial": {"q": {"valve": 0.005}}}, []),
    ({"initial": {"q": {"input": 1.2}}, "joints": {"valve": {"prescribe": {"position": "0.005"}}}}, ["initial-state-projected"])])
def test_a_given_valve_turns_its_cam(start, codes):
    """Through two couplings, also from the dwell of the cam, where the valve does not move with it."""
    model = ld.load("robots/cam_valve.yaml")
    run = ld.run_scenario({"robot": "robots/cam_valve.yaml", "duration": 1e-4, **start})
    assert [one.code for one in run.warnings if one.code.startswith("initial")] == codes
    np.testing.assert_allclose(run.q[0], ld.assemble(model, [0.0, 0.0, 0.005], fixed=["valve"]).q, rtol=0, atol=1e-9)


@pytest.mark.parametrize("function, given, first", [
    ("0.2*cos(cam)", 0.1, [np.pi / 3, 0.1]), ("0.2*sin(cam)", 0.2, [np.pi / 2, 0.2]), ("0.2*sin(cam)", 0.25, [0.0, 0.0])])
def test_a_given_follower_without_slope_or_out_of_reach(scenario, function, given, first):
    run = ld.run_scenario(scenario(ROBOT % f'function: "{function}"', initial={"q": {"lift": given}}, duration=1e-3))
    moved = abs(run.q[0, 1] - given) > 1e-3
    assert [one.code for one in run.warnings] == ["initial-state-projected"][:int(moved)]
    np.testing.assert_allclose(np.abs(run.q[0, :2]), first, rtol=0, atol=1e-6)
    np.testing.assert_allclose(run.q[0, 2], 0.0, atol=1e-12)


def test_the_first_of_contradictory_followers_is_kept(scenario):
    text = (ROBOT % "function: 2*cam").replace("couplings:", "couplings:\n  second: {follower: arm, driver: lift, function: 3*q}")
    for given, first in (({"lift": 0.4, "arm": 0.6}, [0.2, 0.4, 1.2]), ({"cam": 0.1, "lift": 0.4}, [0.1, 0.2, 0.6])):
        with pytest.warns(ld.LiedynWarning, match="projected onto the constraints"):
            run = ld.run_scenario(scenario(text, initial={"q": given}, duration=1e-3))
        np.testing.assert_allclose(run.q[0], first, rtol=0, atol=1e-12)


def test_a_start_outside_the_domain_names_coupling_and_driver(scenario):
    with pytest.raises(ld.ScenarioError, match=r"the function of coupling valve.* is not finite at cam = -0\.2: expected"):
        ld.run_scenario(scenario(ROBOT % 'function: "sqrt(cam)"', initial={"q": {"cam": -0.2}}))


def test_a_prescribed_driver_moves_the_follower(scenario):
    run = ld.run_scenario(scenario(ROBOT % FUNCTION, joints={"cam": {"prescribe": {"position": "0.5*sin(3*t)"}}}))
    t, w = run.t, 3.0
    x, v, a = 0.5 * np.sin(w * t), 0.5 * w * np.cos(w * t), -0.5 * w**2 * np.sin(w * t)
    np.testing.assert_allclose(run.q[:, 1], lift(x), atol=1e-9)
    np.testing.assert_allclose(run.a[:, 1], 0.1 * (np.sin(x) * a + np.cos(x) * v**2), atol=1e-7)


def test_a_phase_may_open_the_coupling(scenario):
    run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial=START, phases={"closed": {}, "free": {"open": ["valve"]}},
                                   events={"break": {"at": 0.5, "do": {"phase": "free"}}}))
    residual = np.abs(ld.constraint_residual(run.model, run.q))[:, 0]
    assert residual[run.t < 0.5].max() < 1e-10 and residual[-1] > 0.1


def test_a_rollout_is_the_run_and_its_derivatives_those_of_differences(scenario):
    keys = scenario(ROBOT % QUINTIC, initial=START, integrator={"method": "rk4", "step": 0.002}, duration=0.1)
    run, model = ld.run_scenario(keys), ld.load(keys["robot"])

    def final(y):
        q, v = ld.expand(model, y[:2], y[2:])
        found = ld.rollout(model, q[None], v[None], dt=0.002, steps=50)
        return np.concatenate([found.q[0, -1], found.v[0, -1]])
    y = np.array([0.7, 0.3, 2.0, -1.0])
    np.testing.assert_allclose(final(y), np.concatenate([run.q[-1], run.v[-1]]), rtol=0, atol=1e-8)
    q, v = ld.expand(model, y[:2], y[2:])
    rates = ld.rollout_derivatives(model, q[None], v[None], dt=0.002, steps=50)
    for k in range(4):
        e = np.eye(4)[k] * 1e-6
        dq, dv = ((np.array(x) - np.array(z)) / 2e-6 for x, z in zip(ld.expand(model, *np.split(y + e, 2)),
                                                                     ld.expand(model, *np.split(y - e, 2)), strict=True))
        expected = (final(y + e) - final(y - e)) / 2e-6
        np.testing.assert_allclose(rates.q0[0] @ dq + rates.v0[0] @ dv, expected, rtol=0, atol=1e-6)


def test_missing_columns_of_followers_are_computed(scenario, tmp_path):
    run = ld.run_scenario(scenario(ROBOT % FUNCTION, initial=START, integrator=TIGHT))
    columns = {f"{kind}.{name}": x[:, k] for kind, x in (("q", run.q), ("v", run.v), ("a", run.a))
               for k, name in ((0, "cam"), (2, "arm"))}
    trajectory = ld.Trajectory({}, run.t, columns, {})
    motion = ld.motion_of(run.model, trajectory)
    for ours, truth in ((motion.q, run.q), (motion.v, run.v), (motion.a, run.a)):
        np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-8 * np.abs(truth).max())


def test_a_linear_system_has_the_independent_states(scenario):
    """Its matrix is that of differences of the reduced equation."""
    keys = scenario(ROBOT % FUNCTION, initial={"q": {"cam": 0.7, "arm": 0.3}})
    system, model = ld.linearize_scenario(keys).system, ld.load(keys["robot"])
    assert system.states == ("q.cam", "q.arm", "v.cam", "v.arm")

    def rates(x):
        q, v = ld.expand(model, x[:2], x[2:])
        return np.concatenate([v[[0, 2]], ld.constrained_forward_dynamics(model, q, v, np.zeros(3)).a[[0, 2]]])
    x, h = np.array([0.7, 0.3, 0.0, 0.0]), 1e-5
    A = np.column_stack([(rates(x + h * e) - rates(x - h * e)) / (2 * h) for e in np.eye(4)])
    np.testing.assert_allclose(system.A, A, rtol=0, atol=1e-6)
