"""Linear models of the steps of a rollout, feedback with gains by step, and regulators along motions (`tvlqr`)."""
from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from command_line import script_of
from liedyn.errors import ComputationError, LiedynError, ScenarioError, ShapeError, UsageError

ROBOTS = Path(__file__).parents[2] / "robots"
DT = 0.01
SLIDERS = """
gravity: [0, 0, 0]
links: {{a: {{mass: 2}}, b: {{mass: 1}}}}
joints:
  {first}
  {second}
"""
FIRST = "first: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], stiffness: 30, damping: 0.4}"
SECOND = "second: {type: prismatic, parent: world, child: b, axis: [0, 1, 0], stiffness: 8, damping: 0.1}"


@pytest.fixture(scope="module")
def model():
    return ld.load(ROBOTS / "double_pendulum.yaml")


@pytest.fixture(scope="module")
def run(model):
    rng = np.random.default_rng(0)
    return ld.rollout(model, [0.3, -0.2], [0.5, 1.0], rng.standard_normal((12, 2)), dt=DT, steps=12)


def sliders(folder: Path, first: str = FIRST, second: str = SECOND) -> ld.Model:
    (folder / "sliders.yaml").write_text(SLIDERS.format(first=first, second=second))
    return ld.load(folder / "sliders.yaml")


def step_differences(model, q, v, u, h=1e-6, **options) -> tuple[np.ndarray, np.ndarray]:
    """Central differences of one step with respect to the state and the inputs."""
    nv, columns = model.nv, []
    for k in range(2 * nv + len(u)):
        x, du = h * np.eye(2 * nv + len(u))[k, :2 * nv], h * np.eye(2 * nv + len(u))[k, 2 * nv:]
        ends = [ld.rollout(model, ld.integrate(model, q, s * x[:nv]), v + s * x[nv:], u + s * du, dt=DT, steps=1, **options)
                for s in (1, -1)]
        columns.append(np.r_[ld.difference(model, ends[1].q[-1], ends[0].q[-1]), ends[0].v[-1] - ends[1].v[-1]] / (2 * h))
    return np.split(np.array(columns).T, [2 * nv], axis=1)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("name", ["double_pendulum", "quadrotor"])
def test_models_of_steps_are_their_differences(name, method):
    model, rng = ld.load(ROBOTS / f"{name}.yaml"), np.random.default_rng(1)
    u = rng.standard_normal((6, model.nv + len(model.description.actuators)))
    q0 = ld.integrate(model, model.neutral(), 0.4 * rng.standard_normal(model.nv))
    run = ld.rollout(model, q0, rng.standard_normal(model.nv), u, dt=DT, steps=6, method=method)
    steps = run.linearize()
    for k in (0, 4):
        A, B = step_differences(model, run.q[k], run.v[k], u[k], method=method)
        np.testing.assert_allclose(steps.A[k], A, atol=2e-8)
        np.testing.assert_allclose(steps.B[k], B, atol=2e-8)
    assert steps.inputs == (*(f"tau.{name}" for name in model.tau_names),
                            *(f"thrust.{x.name}" for x in model.description.actuators))


def test_their_product_is_the_derivative_of_the_motion(model, run):
    steps, tau = run.linearize(), np.random.default_rng(0).standard_normal((12, 2))
    whole = ld.rollout_derivatives(model, [0.3, -0.2], [0.5, 1.0], tau, dt=DT, steps=12)
    Phi, by_tau = np.eye(4), np.zeros((4, 12, 2))
    for k in range(12):
        Phi, by_tau = steps.A[k] @ Phi, np.einsum("ij,jsk->isk", steps.A[k], by_tau)
        by_tau[:, k] = steps.B[k]
    np.testing.assert_allclose(Phi, np.hstack([whole.q0, whole.v0]), atol=1e-12)
    np.testing.assert_allclose(by_tau, whole.tau, atol=1e-13)


def test_at_rest_they_are_the_discretized_linear_system(model):
    """The error of rk4 is that of the exponential series after the fourth power."""
    steps = ld.rollout(model, [0.0, 0.0], [0.0, 0.0], dt=1e-3, steps=1).linearize()
    system = ld.linearize(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    A, B = system.discretize(1e-3)
    np.testing.assert_allclose(steps.A[0], A, atol=1e-12)
    np.testing.assert_allclose(steps.B[0], B, atol=1e-12)
    assert (steps.states, steps.inputs) == (system.states, system.inputs)


def test_batches_are_single_runs_and_shorter_ones_end(model):
    q0 = np.random.default_rng(2).standard_normal((2, 3, 2))
    many = ld.rollout(model, q0, np.ones(2), dt=DT, steps=5, last=np.array([[5, 2, 5], [5, 5, 5]]))
    steps = many.linearize()
    one = ld.rollout(model, q0[1, 2], np.ones(2), dt=DT, steps=5).linearize()
    np.testing.assert_array_equal(steps.A[1, 2], one.A)
    np.testing.assert_array_equal(steps.B[1, 2], one.B)
    assert np.isnan(steps.A[0, 1, 2:]).all() and np.isfinite(steps.A[0, 1, :2]).all() and np.isfinite(steps.B[1]).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(many)).linearize().B, steps.B)
    gain = ld.tvlqr(many, 1.0, 1.0)
    single = ld.tvlqr(ld.rollout(model, q0[1, 2], np.ones(2), dt=DT, steps=5), 1.0, 1.0)
    np.testing.assert_allclose(gain.matrix[1, 2], single.matrix, rtol=1e-13)
    assert not gain.matrix[0, 1, 2:].any() and gain.matrix[0, 1, :2].any()


def test_prescribed_accelerations_are_inputs(model):
    """In steps with the mask, the shoulder has the rate of its acceleration, and no force acts on it."""
    mask = np.array([[True, False]] * 3 + [[False, False]] * 3)
    run = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=6, prescribed=mask, a=[0.5, 0.0])
    steps = run.linearize()
    for k in (1, 4):
        def after(x, k=k):
            one = ld.rollout(model, run.q[k] + [x[0], 0], run.v[k], [x[1], 0], dt=DT, steps=1, prescribed=mask[k],
                             a=[0.5 + x[1], 0])
            return np.r_[one.q[-1], one.v[-1]]
        h = 1e-6
        for column, x in ((steps.A[k][:, 0], [h, 0]), (steps.B[k][:, 0], [0, h])):
            np.testing.assert_allclose(column, (after(x) - after(np.negative(x))) / (2 * h), atol=1e-9)
    whole = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=6, prescribed=[True, False]).linearize()
    assert whole.inputs == ("a.shoulder", "tau.elbow")


def test_names_and_order_of_joints(tmp_path):
    one, other = sliders(tmp_path), sliders(tmp_path, SECOND, FIRST.replace("first:", "main:"))
    a, b = (ld.rollout(m, q, [0.0, 0.0], dt=DT, steps=3) for m, q in ((one, [0.1, 0.2]), (other, [0.2, 0.1])))
    swap = [1, 0, 3, 2]
    np.testing.assert_allclose(b.linearize().A, a.linearize().A[:, swap][:, :, swap], atol=1e-15)
    gains = ld.tvlqr(a, {"q.first": 3, "v.*": 1}, 1), ld.tvlqr(b, {"q.main": 3, "v.*": 1}, 1)
    np.testing.assert_allclose(gains[1].matrix, gains[0].matrix[:, [1, 0]][:, :, swap], atol=1e-13)
    assert gains[1].rows == ("tau.second", "tau.main") and gains[1].columns == ("q.second", "q.main", "v.second", "v.main")


def test_the_cost_to_go_is_the_simulated_cost(tmp_path):
    """Of a linear robot: along any motion, deviations of any size have the cost x^T P x."""
    model, S, rng = sliders(tmp_path), 80, np.random.default_rng(4)
    tau, Q, R, end = rng.standard_normal((S, 2)), np.diag([5.0, 2.0, 1.0, 0.5]), np.diag([0.1, 0.3]), 7 * np.eye(4)
    run = ld.rollout(model, [0.1, -0.2], [0.0, 0.3], tau, dt=DT, steps=S)
    gain = ld.tvlqr(run, Q, R, Q_end=end)
    x0 = rng.standard_normal((3, 4))
    runs = ld.rollout(model, run.q[0] + x0[:, :2], run.v[0] + x0[:, 2:], gain.policy(tau), dt=DT, steps=S)
    x = np.concatenate([runs.q - run.q, runs.v - run.v], axis=-1)
    u = -np.einsum("kij,nkj->nki", gain.matrix, x[:, :-1])
    cost = np.einsum("nki,ij,nkj->n", x[:, :-1], Q, x[:, :-1]) + np.einsum("nki,ij,nkj->n", u, R, u)
    cost += np.einsum("ni,ij,nj->n", x[:, -1], end, x[:, -1])
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", x0, gain.P[0], x0), cost, rtol=1e-10)


def test_far_from_the_end_it_is_the_stationary_regulator(model):
    run = ld.rollout(model, [0.0, 0.0], [0.0, 0.0], dt=DT, steps=3000)
    gain = ld.tvlqr(run, {"q.*": 10, "v.*": 1}, 0.1)
    system = ld.linearize(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(gain.matrix[0], system.lqr({"q.*": 10, "v.*": 1}, 0.1, step=DT).matrix, rtol=1e-6)


def test_a_disturbed_motion_returns(model):
    """By a policy and by a feedback, which differ by the order of the step; a motor at the elbow alone suffices, too."""
    tau = np.column_stack([2 * np.sin(np.arange(300) * DT), np.cos(np.arange(300) * DT)])
    run = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], tau, dt=DT, steps=300)
    start, ends = (run.q[0] + 0.3, run.v[0]), {}
    gain = ld.tvlqr(run, {"q.*": 100, "v.*": 1}, 0.01)
    ends["free"] = ld.rollout(model, *start, tau, dt=DT, steps=300)
    ends["policy"] = ld.rollout(model, *start, gain.policy(tau), dt=DT, steps=300)
    ends["feedback"] = ld.rollout(model, *start, tau, dt=DT, steps=300, feedback=gain.feedback())
    elbow = ld.tvlqr(run, {"q.*": 100, "v.*": 1}, 0.01, inputs="tau.elbow")
    ends["elbow"] = ld.rollout(model, *start, elbow.policy(tau), dt=DT, steps=300)
    errors = {name: np.abs(x.q[-1] - run.q[-1]).max() for name, x in ends.items()}
    assert errors["free"] > 0.05 > 1e3 * errors["policy"] and errors["feedback"] < 1e-3 and errors["elbow"] < 0.5 * errors["free"]
    assert elbow.matrix.shape == (300, 1, 4) and not elbow.feedback().gain[:, 0].any()


def test_gains_by_step_are_those_of_single_steps(model):
    rng = np.random.default_rng(1)
    K, q_ref, v_ref = rng.standard_normal((6, 2, 4)), rng.standard_normal((6, 2)), rng.standard_normal((6, 2))
    run = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=6, feedback=ld.Feedback(K, q_ref, v_ref))
    q, v = run.q[0], run.v[0]
    for k in range(6):
        one = ld.rollout(model, q, v, dt=DT, steps=1, feedback=ld.Feedback(K[k], q_ref[k], v_ref[k]))
        q, v = one.q[-1], one.v[-1]
    np.testing.assert_array_equal(q, run.q[-1])
    mixed = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=6, feedback=ld.Feedback(K, q_ref[0]))
    np.testing.assert_array_equal(mixed.q[1], ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=1,
                                                         feedback=ld.Feedback(K[0], q_ref[0])).q[1])
    d_q, h, ends = np.zeros((7, 2)), 1e-6, []
    d_q[-1, 0] = 1.0
    for sign in (1, -1):
        changed = K.copy()
        changed[2, 1, 3] += sign * h
        law = ld.Feedback(changed, q_ref, v_ref)
        ends.append(ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=6, feedback=law).q[-1, 0])
    by_gain = run.adjoint(d_q).gain
    assert by_gain.shape == (6, 2, 4) and by_gain[2, 1, 3] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-11)
    with pytest.raises(ShapeError, match=r"feedback\.gain may have a gain for each run or for each step, as there are 6 of both"):
        ld.rollout(model, np.zeros((6, 2)), [0.0, 0.0], dt=DT, steps=6, feedback=ld.Feedback(K, [0.0, 0.0]))


@pytest.mark.parametrize(("arguments", "options", "error", "message"), [
    (({"q.foo": 1}, 1), {}, UsageError, "no state matches 'q.foo'"),
    ((1, 0), {}, UsageError, "R: tau.shoulder: expected a number > 0, got 0"),
    ((1, 1), {"inputs": "thrust.*"}, UsageError, "no input matches 'thrust.\\*'"),
    ((1, 1), {"Q_end": np.eye(3)}, ShapeError, "Q_end has the wrong shape"),
])
def test_wrong_arguments(run, arguments, options, error, message):
    with pytest.raises(error, match=message):
        ld.tvlqr(run, *arguments, **options)


def test_rollouts_without_models_of_steps(model, run):
    with pytest.raises(UsageError, match="linear models of steps: the adjoint requires the state of each step"):
        ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=4, every=2).linearize()
    with pytest.raises(ShapeError, match=r"tau has the wrong shape: expected \(…, 12, 2\) or \(2,\), got \(5, 2\)"):
        ld.tvlqr(run, 1, 1).policy(np.zeros((5, 2)))
    hybrid = ld.rollout(model, [0.3, 0.1], [0.0, 0.0], dt=DT, steps=3, prescribed=[True, False])
    with pytest.raises(UsageError, match=r"a\.shoulder: expected forces or thrusts as rows of a feedback"):
        ld.tvlqr(hybrid, 1, 1).feedback()
    ended = ld.rollout(model, [0.3, 0.1], [0.0, 1e160], dt=DT, steps=3)
    with pytest.raises(ComputationError, match="tvlqr: run 0 ended early"):
        ld.tvlqr(ended, 1, 1)


# scenarios --------------------------------------------------------------------------------------------------------------

def scenario(file: Path, **keys) -> dict:
    law = {"law": "state_feedback", "gain": str(file), "setpoint": {"csv": str(file)}}
    return {"robot": str(ROBOTS / "double_pendulum.yaml"), "duration": 0.12, "output_step": DT,
            "integrator": {"method": "rk4", "step": DT}, "initial": {"q": {"shoulder": 0.4}, "v": {"elbow": 0.5}},
            "control": law} | keys


@pytest.fixture
def file(run, tmp_path):
    gain = ld.tvlqr(run, {"q.*": 100, "v.*": 1}, 0.1)
    gain.write(tmp_path / "K.csv", np.random.default_rng(0).standard_normal((12, 2)))
    with pytest.raises(UsageError, match=r"K\.csv already exists"):
        gain.write(tmp_path / "K.csv", np.zeros((12, 2)))
    return tmp_path / "K.csv"


def test_a_file_of_gains_is_complete_and_replaces_no_other(run, tmp_path):
    gain = ld.tvlqr(run, 1, 1, inputs="tau.elbow")
    gain.write(tmp_path / "K.csv", [0.0, 1.0])
    with pytest.raises(UsageError, match="exists"):
        gain.write(tmp_path / "K.csv", [0.0, 1.0])
    with pytest.warns(ld.LiedynWarning, match=r"K\.csv has no tau\.shoulder, which act.*\[inputs-not-written\]"):
        gain.write(tmp_path / "K.csv", [0.5, 1.0], force=True)


def test_a_scenario_follows_a_motion_with_gains_by_time(file):
    """The recorded torques are those of the columns, and the law has exact derivatives."""
    result, table = ld.run_scenario(scenario(file)), ld.read_trajectory(file)
    c = table.columns
    for k, joint in enumerate(("shoulder", "elbow")):
        expected = c[f"tau.{joint}"].copy()
        for i, other in enumerate(("shoulder", "elbow")):
            expected -= c[f"tau.{joint}/q.{other}"] * (result.q[:, i] - c[f"q.{other}"])
            expected -= c[f"tau.{joint}/v.{other}"] * (result.v[:, i] - c[f"v.{other}"])
        np.testing.assert_allclose(result.tau[:, k], expected, atol=1e-11)
    linear = ld.linearize_scenario(scenario(file), at=0.055, verify=True)
    assert max(x.excess for x in linear.differences.values()) < 1e-9
    with generated_code():
        np.testing.assert_allclose(ld.run_scenario(scenario(file)).q, result.q, atol=1e-13)


def test_the_example_lifts_the_pendulum():
    folder = ROBOTS.parent / "configs"
    result = ld.run_scenario(folder / "double_pendulum_lift.yaml")
    stored = ld.read_trajectory(folder / "double_pendulum_lift.csv").columns
    assert np.abs(result.q[-1] - [stored["q.shoulder"][-1], stored["q.elbow"][-1]]).max() < 0.01 and not result.warnings
    gains = script_of("double_pendulum_lift").tracking_gain()[0].matrix
    np.testing.assert_allclose(stored["tau.elbow/q.shoulder"][1:-1], 0.5 * (gains[1:] + gains[:-1])[:, 1, 0], atol=1e-8)


@pytest.mark.parametrize(("change", "keys", "message"), [
    (lambda text: text.replace("tau.elbow/q.elbow", "tau.elbow/q.elbo"), {}, "no such column of a gain: got 'q.elbo'"),
    (lambda text: text.replace("/q.", "_q.").replace("/v.", "_v."), {}, "the CSV has times and no gains"),
    (lambda text: text.replace(",tau.elbow,", ",tau.elbo,"), {}, "has no such column: expected one of"),
    (lambda text: text, {"duration": 5}, "K.csv"),
])
def test_wrong_files_of_gains(file, change, keys, message):
    file.write_text(change(file.read_text()))
    with pytest.raises(LiedynError, match=message):
        ld.run_scenario(scenario(file, **keys))


def test_wrong_setpoints_from_files(file, run):
    law = {"law": "state_feedback", "gain": str(file), "setpoint": {"csv": str(file), "q": {"elbow": 0.1}}}
    with pytest.raises(ScenarioError, match="csv cannot be combined with q and v"):
        ld.run_scenario(scenario(file, control=law))
    free = {"law": "state_feedback", "gain": {"thrust.rotor1": {"v.base.vz": 1}}, "setpoint": {"csv": str(file)}}
    with pytest.raises(ScenarioError, match="requires joints with one coordinate: base is a free joint"):
        ld.run_scenario(scenario(file, robot=str(ROBOTS / "quadrotor.yaml"), initial={}, control=free))
