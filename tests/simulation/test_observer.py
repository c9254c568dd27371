"""Observers of sampled laws: against the linear filter in discrete time, and as identities of runs."""
from __future__ import annotations

import csv

import numpy as np
import pytest
from click.testing import CliRunner

import liedyn as ld
from liedyn.cli.app import main
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.simulation.preparation import prepare
from zoo import model_of

PERIOD = 1 / 200
K = {"tau.cart": {"q.cart": -4.34, "q.pole": -47.53, "v.cart": -6.1, "v.pole": -12.26}}
L = {"q.cart": {"q.cart": 0.466}, "q.pole": {"q.pole": 0.467}, "v.cart": {"q.cart": 17.63}, "v.pole": {"q.pole": 17.72}}
LAW = {"law": "state_feedback", "gain": K, "setpoint": {}}


@pytest.fixture(scope="module")
def cart_pole():
    return ld.load("robots/cart_pole.yaml")


def balance(model, pole=0.1, observer=None, **keys):
    return ld.simulate(model, {"duration": 0.5, "output_step": PERIOD, "integrator": {"method": "rk4", "step": 1e-3},
                               "initial": {"q": {"pole": pole}}, "sampling": {"rate": 200}, "control": LAW,
                               "observer": {"gain": L, **(observer or {})}, **keys})


@pytest.mark.parametrize("delay", [0.0, 0.4 * PERIOD])
def test_near_rest_it_is_the_linear_filter(cart_pole, delay):
    system = ld.linearize(cart_pole, [0, 0], [0, 0], [0, 0], inputs="tau.cart", outputs="q.*")
    A, B = system.discretize(PERIOD, delay)
    gain = np.array([[L.get(row, {}).get(column, 0.0) for column in system.outputs] for row in system.states])
    F = np.array([[K["tau.cart"][name] for name in system.states]])
    small = 1e-5
    run = balance(cart_pole, small, {"initial": {"q": {"pole": 0.5 * small}}}, sampling={"rate": 200, "delay": delay})
    x, estimate, past, rows = np.array([0, small, 0, 0]), np.array([0, 0.5 * small, 0, 0]), np.zeros(A.shape[0] - 4), []
    past[:] = -F @ estimate                                      # the first torque acts from the start
    for _ in range(100):
        rows.append(estimate)
        u = -F @ estimate
        extended = A @ np.concatenate([x, past]) + B @ u
        predicted = A @ np.concatenate([estimate, past]) + B @ u
        estimate = predicted[:4] + gain @ system.C @ (x - estimate)
        x, past = extended[:4], extended[4:]
    found = np.hstack([run.estimate.q, run.estimate.v])[:100]
    np.testing.assert_allclose(found, rows, rtol=0, atol=1e-8 * small * 100)


ACTING = {"limits": {"sampling": {"rate": 200, "hold": "first"}, "saturate": {"*": 4.0}},
          "gears": {"motors": {"*": {"gear": 10, "gear_efficiency": 0.6}}},
          "curves": {"motors": {"*": {"gear": 10, "curve": [[0, 0.5], [10, 0]]}}},
          "stiff joints": {"friction": {"*": 8.0}}, "very stiff joints": {"friction": {"*": 5000.0}}}


@pytest.mark.parametrize("case", ["delay", "first-order hold", "thrusts", "ball joints", *ACTING])
def test_with_the_model_and_state_of_the_robot_the_estimate_is_the_state(case):
    """It remains the state within the error of the integrator, whatever the gain."""
    keys = {"sampling": {"rate": 200, "delay": 2e-3} if case == "delay" else {"rate": 200, "hold": "first"} if
            case == "first-order hold" else {"rate": 200}} | ACTING.get(case, {})
    if case == "thrusts":
        model = ld.load("robots/quadrotor.yaml")
        names = [f"thrust.{actuator.name}" for actuator in model.description.actuators]
        gain = {name: {"q.base.vz": 1.0, "v.base.wx": 0.02 * k, "v.base.vz": 0.5} for k, name in enumerate(names)}
        keys["control"] = {"law": "state_feedback", "gain": gain, "setpoint": {}}
        keys["joints"] = {"rotor*": {"prescribe": {"position": 0}}} if any(x.startswith("rotor") for x in model.v_names) else {}
    elif case == "ball joints":
        model, keys["passive"] = model_of("every kind, floating"), False
        keys["control"] = {"law": "gravity_compensation", "joints": [model.joint_names[1]]}
    else:
        model = ld.load("robots/double_pendulum.yaml")
        target = "0.4 + sin(40*t)" if case in ACTING else 0.4
        keys["joints"] = {"*": {"torque": {"pd": {"kp": 20, "kd": 2, "target": target}}}}
    if keys.get("joints", {}).get("rotor*"):
        model = ld.fix_joints(model, {name: 0.0 for name in model.joint_names if name.startswith("rotor")})
        keys.pop("joints")
    rng = np.random.default_rng(1)
    q, v = ld.random_configuration(model, rng), 0.5 * rng.standard_normal(model.nv)
    start = {"q": {joint.name: q[joint.q].tolist() if len(q[joint.q]) > 1 else float(q[joint.q][0]) for joint in model.joints},
             "v": {joint.name: v[joint.v].tolist() if len(v[joint.v]) > 1 else float(v[joint.v][0]) for joint in model.joints}}
    name = model.v_names[-1]
    observer = {"gain": {f"v.{name}": {f"q.{name}": 5.0}, f"q.{name}": {f"q.{name}": 0.3}}, "initial": start}
    method = {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-11} if case in ACTING else {"method": "rk4", "step": PERIOD / 5}
    run = ld.simulate(model, {"duration": 0.1, "output_step": PERIOD, "integrator": method, "initial": start,
                              "observer": observer, **keys})
    tolerance = 1e-5 if case in ACTING else 1e-6                # kinks within steps of the prediction
    assert np.abs(ld.difference(model, run.q[:20], run.estimate.q[:20])).max() < tolerance
    assert np.abs(run.v[:20] - run.estimate.v[:20]).max() < 40 * tolerance
    assert np.abs(run.tau).max() + np.abs(run.wrench).sum() > 0.01


def test_joints_that_stick_are_none_that_are_prescribed():
    keys = {"joints": {"*": {"torque": {"pd": {"kp": 20, "kd": 2, "target": 0.4}}}}, "sampling": {"rate": 200}, "duration": 0.05,
            "friction": {"*": {"model": "rigid", "level": 50.0}}, "observer": {"gain": {"q.elbow": {}}}}
    run = ld.run_scenario({"robot": "robots/double_pendulum.yaml", **keys})
    assert np.abs(run.q).max() == 0.0 and np.abs(run.estimate.q[-1]).min() > 1e-4
    keys["events"] = {"brake": {"at": 0.01, "do": {"lock": "elbow"}}}
    with pytest.raises(ld.ComputationError, match=r"prescribed or locked at t = 0\.01 s"):
        ld.run_scenario({"robot": "robots/double_pendulum.yaml", **keys})


def test_an_estimate_that_diverges_is_an_error():
    with pytest.raises(ld.ComputationError, match="observer's model is too fast for the sample period: the estimate diverges"):
        ld.run_scenario({"robot": "robots/double_pendulum.yaml", "duration": 0.2, "sampling": {"rate": 10}, "observer": {
            "gain": {"v.elbow": {"q.elbow": 1e5}}, "initial": {"q": {"elbow": 0.3}}},
            "joints": {"elbow": {"torque": {"pd": {"kp": 20, "kd": 2, "target": 0.4}}}}})


def test_the_estimate_is_in_the_columns_and_measurements_are_rounded(cart_pole):
    run = balance(cart_pole, sampling={"rate": 50, "quantization": {"q": 0.01}})
    columns = {name: x for name, _, x in run.columns}
    held = np.append(np.repeat(run.estimate.v[:, 1], 4), run.estimate.v[-1, 1])     # no sample at the end
    np.testing.assert_array_equal(columns["estimate.v.pole"], held)
    exact = balance(cart_pole, sampling={"rate": 50})
    assert run.estimate.q[0, 1] == 0.0 and not np.allclose(run.q[-1], exact.q[-1], rtol=0, atol=1e-4)
    assert balance(cart_pole, output_step=0.1).estimate.t.size == 100


def test_the_model_may_be_wrong(cart_pole):
    right, wrong = balance(cart_pole), balance(cart_pole, observer={"model": {"mass.pole": 0.3}})
    np.testing.assert_array_equal(balance(cart_pole, observer={"model": {}}).q, right.q)
    assert 1e-4 < np.abs(wrong.q[-1] - right.q[-1]).max() < 0.1


def test_a_resumed_controller_continues(cart_pole):
    model, scenario = cart_pole, {"robot": "robots/cart_pole.yaml", "duration": 0.1, "sampling": {"rate": 200}, "control": LAW,
                                  "observer": {"gain": L}}
    first, second = (prepare(scenario, ()).hybrid_simulation.controller for _ in range(2))
    assert first.observer is not None and second.observer is not None
    first.observer.state_at(0.0)
    first.observer.q = np.array([0.1, 0.2])
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second.observer.q, [0.1, 0.2])
    np.testing.assert_array_equal(second.observer.estimate.q, [model.neutral()])


def test_the_keys_are_written_as_they_are_read(tmp_path):
    scenario = prepare({"robot": "robots/cart_pole.yaml", "duration": 0.1, "sampling": {"rate": 200}, "control": LAW,
                        "observer": {"gain": L, "initial": {"q": {"pole": 0.1}}, "model": {"mass.pole": 0.3}}}, ()).scenario
    plain = to_plain(scenario)["observer"]
    assert plain["gain"]["v.pole"] == {"q.cart": 0.0, "q.pole": 17.72} and plain["initial"] == {"q": {"pole": 0.1}}
    assert plain["model"] == {"mass.pole": 0.3}


def test_the_file_of_a_filter_is_its_gain(cart_pole, tmp_path):
    system = ld.linearize(cart_pole, [0, 0], [0, 0], [0, 0], inputs="tau.cart", outputs="q.*")
    gain = system.lqe({"v.*": 1e-5}, 2e-8, step=PERIOD)
    gain.write(tmp_path / "filter.csv")
    by_file = balance(cart_pole, observer={"gain": str(tmp_path / "filter.csv")})
    np.testing.assert_array_equal(by_file.q, balance(cart_pole, observer={"gain": gain.by_name}).q)


@pytest.mark.parametrize(("keys", "message"), [
    ({"sampling": None}, "observer: an observer acts at sample times.*sampling"),
    ({"observer": {"gain": [[0.1, 0.2]]}}, "observer.gain: .*names|observer.gain"),
    ({"observer": {}}, "observer: the key gain is missing"),
    ({"observer": {"gain": {"q.pol": {"q.pole": 1}}}}, r"observer.gain.*q\.pol"),
    ({"observer": {"gain": {"q.pole": {"tau.cart": 1}}}}, "column of the gain"),
    ({"observer": {"gain": {"q.pole": {"q.pole": 0.1}}, "initial": {"q": {"pile": 1}}}}, "pile"),
    ({"observer": {"gain": {"q.pole": {"q.pole": 0.1}}, "initial": {"q": {"pole": [1, 2]}}}}, "wrong number of values"),
    ({"observer": {"gain": {"q.pole": {"q.pole": 0.1}}, "model": {"mass.pile": 1}}}, r"observer.*mass\.pile"),
    ({"observer": {"gain": {"q.pole": {"q.pole": 0.1}}, "model": {"mass.pole": 0, "mass.cart": 0}}},
     "observer: the first estimate has no motion: the acceleration of joint 'cart'"),
    ({"joints": {"pole": {"prescribe": {"position": 0}}}}, "observers do not support prescribed joints"),
    ({"observer": {"gain": {"q.pole": {"q.pole": 0.1}}, "gains": 1}}, "unknown key")])
def test_wrong_observers_are_errors_with_their_place(cart_pole, keys, message):
    with pytest.raises(ld.ScenarioError, match=message):
        settings = {"duration": 0.1, "sampling": {"rate": 200}, "control": LAW, "observer": {"gain": L}, **keys}
        ld.simulate(cart_pole, {key: value for key, value in settings.items() if value is not None})


def test_loops_are_errors():
    with pytest.raises(ld.ScenarioError, match="do not support robots with loops"):
        ld.run_scenario("configs/four_bar.yaml", {"observer": {"gain": {"q.x": {"q.x": 1}}}, "sampling": {"rate": 100},
                                                  "joints": {"*": {"torque": {"pd": {"kp": 1, "kd": 1, "target": 0}}}}})


def test_a_gain_of_continuous_time_is_reported(cart_pole):
    system = ld.linearize(cart_pole, [0, 0], [0, 0], [0, 0], inputs="tau.cart", outputs="q.*")
    gain = system.lqe({"v.*": 1e-5}, 1e-12).by_name
    prepared = prepare({"robot": "robots/cart_pole.yaml", "duration": 0.1, "sampling": {"rate": 200}, "control": LAW,
                        "observer": {"gain": gain}}, ())
    assert [warning.code for warning in prepared.warnings] == ["observer-unstable"]


def test_sweeps_vary_the_model_of_the_observer(tmp_path):
    (tmp_path / "sweep.yaml").write_text(f"scenario: {ld.__path__[0]}/../../configs/cart_pole_lqg.yaml\n"
                                         "overrides: {duration: 0.2}\nparameters:\n"
                                         "  - {key: observer.model.mass.pole, list: [0.05, 0.1]}\n"
                                         "outputs: {error: max(abs(estimate.v.pole - v.pole))}\n")
    done = CliRunner().invoke(main, ["batch", str(tmp_path / "sweep.yaml"), "-o", str(tmp_path / "runs"), "--csv"])
    assert done.exit_code == 0, done.output
    with (tmp_path / "runs/runs.csv").open(encoding="utf-8") as file:
        errors = [row["error"] for row in csv.DictReader(file)]
    assert len(set(errors)) == 2


@pytest.mark.parametrize("seed", [0, 3])
def test_noise_of_measurements_depends_on_the_seed_and_the_sample_only(seed):
    """Of its deviation, white, the same for other steps and rows; quantized afterwards."""
    seen = []

    def controller(t, q, v):
        seen.append((q, v))
        return np.zeros(2)
    keys = {"duration": 2.0, "seed": seed, "sampling": {"rate": 500, "noise": {"q": {"shoulder": 1e-3}, "v": 0.02}},
            "integrator": {"method": "rk4", "step": 2e-3}, "output_step": 2e-3}
    run = ld.run_scenario(
        {"robot": "robots/double_pendulum.yaml", **keys}, controller=controller)
    errors = np.array([q for q, _ in seen]) - run.q[:len(seen)], np.array([v for _, v in seen]) - run.v[:len(seen)]
    assert np.abs(errors[0][:, 1]).max() == 0.0 and errors[0][:, 0].std() == pytest.approx(1e-3, rel=0.1)
    np.testing.assert_allclose(errors[1].std(axis=0), 0.02, rtol=0.1)
    assert np.abs(np.corrcoef(np.column_stack([errors[0][:-1, 0], errors[0][1:, 0], errors[1][:-1]]).T)
                  - np.eye(4)).max() < 0.12
    first, seen[:] = list(seen), []
    ld.run_scenario({"robot": "robots/double_pendulum.yaml", **keys, "duration": 0.6, "output_step": 0.1}, controller=controller)
    np.testing.assert_allclose(np.array([q for q, _ in seen]), [q for q, _ in first[:len(seen)]], rtol=0, atol=1e-12)
    seen.clear()
    coarse = keys["sampling"] | {"quantization": {"q": 0.01}}
    ld.run_scenario({"robot": "robots/double_pendulum.yaml", **keys, "duration": 0.1, "sampling": coarse}, controller=controller)
    multiples = np.array([q for q, _ in seen]) / 0.01
    np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-9)


@pytest.mark.parametrize(("noise", "message"), [
    ({"q": -1}, "noise.q: out of range"), ({"q": {"elbw": 1}}, "elbw"), ({"tau": 1}, "unknown key")])
def test_wrong_noise_is_an_error_with_its_place(noise, message):
    with pytest.raises(ld.ScenarioError, match=message):
        ld.run_scenario({"robot": "robots/double_pendulum.yaml", "duration": 0.1, "sampling": {"rate": 100, "noise": noise},
                         "joints": {"elbow": {"torque": {"pd": {"kp": 1, "target": 0}}}}})


def test_the_filter_estimates_better_than_differences_of_noisy_measurements(cart_pole):
    run = balance(cart_pole, observer={"initial": {"q": {"pole": 0.1}}}, sampling={"rate": 200, "noise": {"q": 1e-4}}, duration=2)
    late = slice(200, 400)
    error = run.estimate.v[late] - run.v[late]
    assert error.std(axis=0).max() < 0.3 * np.sqrt(2) * 1e-4 * 200


def test_noise_does_not_depend_on_the_order_of_joints():
    links = [ld.Link(name, 1.0, com=[0.1, 0, 0], inertia=[0.01] * 3) for name in "ab"]
    joints = [ld.Joint(f"j{name}", "revolute", "world", name, axis=[0, 1, 0], limits=(-9, 9)) for name in "ab"]
    seen = []
    for order in (1, -1):
        model = ld.build(ld.Robot("two", links=links[::order], joints=joints[::order]))
        run = ld.simulate(model, duration=0.1, sampling={"rate": 100, "noise": {"q": 1e-3, "v": 0.1}},
                          joints={"*": {"torque": {"pd": {"kp": 5, "kd": 1, "target": 0.2}}}})
        seen.append([run.tau[:, model.v_names.index(name)] for name in ("ja", "jb")])
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-12)
    assert np.abs(seen[0][0] - seen[0][1]).max() > 1e-3
