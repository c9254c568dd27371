"""ld.simulate: the same as a scenario, from arrays, dicts and functions."""
import json

import numpy as np
import pytest

import liedyn as ld

ROBOT = "robots/double_pendulum.yaml"
STEP = {"method": "rk4", "step": 1e-3}


@pytest.fixture
def model():
    return ld.load(ROBOT)


def scenario(**keys):
    return ld.run_scenario({"robot": ROBOT, "duration": 0.5, "integrator": STEP, **keys})


def same(run, other):
    return all(np.array_equal(getattr(run, name), getattr(other, name)) for name in ("t", "q", "v", "a", "tau", "work"))


def test_initial_states_and_constant_torques_are_those_of_a_scenario(model):
    run = ld.simulate(model, duration=0.5, q0=[0.3, -0.2], v0=[0.0, 1.0], tau=[0.1, 0.0], integrator=STEP)
    assert same(run, scenario(initial={"q": {"shoulder": 0.3, "elbow": -0.2}, "v": {"shoulder": 0.0, "elbow": 1.0}},
                              joints={"shoulder": {"torque": 0.1}, "elbow": {"torque": 0.0}}))
    assert same(run, ld.simulate(model, duration=0.5, q0={"shoulder": 0.3, "elbow": np.float64(-0.2)}, v0={"elbow": 1.0},
                                 tau=[0.1, 0.0], integrator=STEP))
    assert same(run, ld.simulate(ROBOT, {"integrator": STEP, "duration": 3}, duration=0.5, q0=[0.3, -0.2], v0=[0.0, 1.0],
                                 tau={"shoulder": 0.1}))


def test_signals_by_joint_and_other_keys(model):
    run = ld.simulate(model, {"limits": "stop"}, duration=0.5, tau={"elbow": "0.4*sin(5*t) - 0.1*v"}, integrator=STEP)
    assert same(run, scenario(limits="stop", joints={"elbow": {"torque": "0.4*sin(5*t) - 0.1*v"}}))


def test_a_function_and_rows_are_held_between_samples(model):
    rows = np.random.default_rng(0).standard_normal((50, 2))
    by_rows = ld.simulate(model, duration=0.5, tau=rows, rate=100, method="rk4")
    by_function = ld.simulate(model, duration=0.5, tau=lambda t, q, v: rows[round(100 * t)] if t < 0.495 else rows[-1], rate=100,
                              method="rk4")
    assert same(by_rows, by_function)
    rolled = ld.rollout(model, model.neutral(), np.zeros(2), np.repeat(rows, 10, axis=0), dt=1e-3, steps=500)
    assert np.abs(rolled.q[::50] - by_rows.q[::50]).max() < 1e-10


@pytest.mark.parametrize("name", ["elbow", "el*"])
def test_torques_do_nothing_to_prescribed_joints(model, name):
    """In every form; a constant array made the joint torque-specified."""
    joints = {name: {"prescribe": {"position": "sin(t)"}}}
    given = {"array": ([1.0, 1.0], None), "rows": (np.ones((50, 2)), 100), "function": (lambda t, q, v: [1.0, 1.0], 100),
             "dict": ({"shoulder": 1.0}, None)}
    runs = {way: ld.simulate(model, duration=0.5, tau=tau, rate=rate, joints=joints, method="rk4")
            for way, (tau, rate) in given.items()}
    for run in runs.values():
        assert run.q[-1] == pytest.approx(runs["dict"].q[-1], abs=1e-9) and run.q[-1, 1] == pytest.approx(np.sin(0.5), abs=1e-12)
    with pytest.raises(ld.UsageError, match="joint elbow is prescribed in `joints`, and tau gives a torque, too"):
        ld.simulate(model, duration=0.5, tau={"elbow": 1.0}, joints=joints)


@pytest.mark.parametrize("tau", [[0.0, 1.0], {"elbow": 1.0}])
def test_a_torque_is_given_once(model, tau):
    joints = {"elbow": {"torque": 2.0}}
    with pytest.raises(ld.UsageError, match="joint elbow has a torque in `joints`, and tau gives a torque, too"):
        ld.simulate(model, duration=0.5, tau=tau, joints=joints)
    run = ld.simulate(model, duration=0.5, tau=[1.0, 0.0], joints=joints, method="rk4")
    assert np.array_equal(run.tau[-1], [1.0, 2.0])


def test_rows_sample_the_laws_besides_and_say_so(model):
    laws, rows = {"elbow": {"torque": {"pd": {"kp": 20, "kd": 2, "target": 0.5}}}}, np.tile([1.0, 0.0], (30, 1))
    with pytest.warns(ld.LiedynWarning, match="laws in `joints` and `control` are sampled at the rate of the rows"):
        run = ld.simulate(model, duration=0.5, tau=rows, rate=10, joints=laws, method="rk4")
    assert run.q[-1] == pytest.approx(scenario(joints={**laws, "shoulder": {"torque": 1}}, sampling={"rate": 10}).q[-1], abs=1e-9)
    with pytest.raises(ld.UsageError, match="`sampling` gives a rate or a period, and so does the argument rate"):
        ld.simulate(model, duration=0.5, tau=rows, rate=10, sampling={"period": 0.1})


def test_a_free_base_and_ball_joints_start_where_q0_says():
    model = ld.load("robots/quadruped.yaml")
    q = ld.random_configuration(model, np.random.default_rng(0))
    run = ld.simulate(model, duration=0.01, q0=q, method="rk4")
    assert np.allclose(run.q[0], q, rtol=0, atol=1e-15)


def test_results_are_saved_and_drawn(model, tmp_path):
    run = ld.simulate(model, duration=0.2, q0=[0.3, 0.0])
    run.save(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    with pytest.raises(ld.UsageError, match="exists"):
        run.save(tmp_path / "run")
    assert run.plot("velocities").axes
    with pytest.raises(ld.NameLookupError, match=r"unknown plot 'speed'.*motion, positions"):
        run.plot("speed")


def test_a_motion_that_diverges_has_its_rows_and_the_reason(model):
    with pytest.raises(ld.ComputationError) as caught:
        ld.simulate(model, duration=5, tau={"elbow": "1e3*v**3 + 1"}, method="rk4")
    result = caught.value.result
    assert result.status == "diverged" and result.reason and 0 < len(result.t) < 501


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"duration": None}, ld.UsageError, "needs a duration"),
    ({"q0": [0.0]}, ld.ShapeError, r"q0 has the wrong shape: expected \(2,\), got \(1,\)"),
    ({"q0": np.zeros((3, 2))}, ld.ShapeError, r"q0 has the wrong shape: expected \(2,\), got \(3, 2\).*ld.rollout"),
    ({"q0": [1, 2, 3]}, ld.ShapeError, r"q0 has the wrong shape: expected \(2,\), got \(3,\)$"),
    ({"q0": {"wrist": 1.0}}, ld.NameLookupError, "q0 names no joint of the robot: expected shoulder, elbow, got 'wrist'"),
    ({"tau": {"wrist": 1.0}}, ld.NameLookupError, "tau names no joint of the robot: expected shoulder, elbow, got 'wrist'"),
    ({"tau": lambda t, q, v: q}, ld.UsageError, "require the argument rate"),
    ({"tau": [0.0, 0.0], "rate": 10}, ld.UsageError, "rate applies only to a function or to rows"),
    ({"gravity": [0, 0, -1]}, ld.UsageError, "base, gravity and loops belong to the model"),
    ({"robot": "x.yaml"}, ld.UsageError, "must not name a robot"),
    ({"scenario": 3}, ld.UsageError, "scenario must be a mapping of keys, got int"),
    ({"initial": 3, "q0": [0, 0]}, ld.ScenarioError, r"initial.*got 3"),
    ({"joints": 3, "tau": {"elbow": 1}}, ld.ScenarioError, r"joints.*got 3"),
    ({"tau": np.zeros((0, 2)), "rate": 10}, ld.ShapeError, r"tau has no rows.*got \(0, 2\)"),
    ({"duraton": 3}, ld.ArgumentError, "duraton"),
    ({"method": "euler"}, ld.ScenarioError, "euler"),
])
def test_what_is_refused(model, arguments, error, message):
    with pytest.raises(error, match=message):
        ld.simulate(model, **{"duration": 0.1} | arguments)
