"""`ld.Stepper`: the same numbers as `ld.rollout`, bit for bit, in calls one after another."""
import copy
import pickle
import warnings

import numpy as np
import pytest

import liedyn as ld
from liedyn.rollouts import stepper as module
from zoo import model_of, state

FEET = {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "friction_speed": 0.1, "sink": 0.003}
DT, CALLS = 5e-4, 6


def standing_dog():
    """Return a quadruped with its feet on the ground, and servos that hold it."""
    model = ld.load("robots/quadruped.yaml")
    q, legs = model.neutral(), np.arange(model.nv) >= 6
    q[model.q_index("base")] = 0, 0, 0.3, 0, 0, 0, 1
    for leg in ("FL", "FR", "HL", "HR"):
        q[model.q_index(f"{leg}_hip")], q[model.q_index(f"{leg}_knee")] = 0.8, -1.6
    q[2] -= ld.link_pose(model, q, "FL_foot")[2, 3] - 0.0165
    return model, q, {"contacts": FEET, "feedback": ld.Feedback.pd(legs * 100.0, legs * 4.0, q)}


def case(name, runs):
    """Return model, initial states and options."""
    if name == "quadruped":
        model, q, options = standing_dog()
        return model, q if runs is None else np.tile(q, (runs, 1)), np.zeros(model.nv), options
    if name == "four_bar":
        model = ld.load("robots/four_bar.yaml")
        return model, ld.assemble(model, model.neutral()).q, np.zeros(model.nv), {}
    model = model_of(name)
    q, v, *_ = state(model, 3, () if runs is None else (runs,))
    return model, q, 0.3 * v, {}


@pytest.mark.parametrize("runs", [None, 5])
@pytest.mark.parametrize(("name", "method"), [("universal", "rk4"), ("free", "rk4"), ("free", "semi_implicit"),
                                              ("four_bar", "rk4"), ("quadruped", "semi_implicit")])
def test_steps_are_those_of_a_rollout(name, method, runs):
    model, q, v, options = case(name, runs)
    stepper = ld.Stepper(model, DT, runs=runs, q0=q, v0=v, method=method, steps=3, **options)
    tau = 0.2 * np.random.default_rng(1).standard_normal((*stepper.q.shape[:-1], CALLS, model.nv))
    expected = ld.rollout(model, stepper.q.copy(), stepper.v.copy(), np.repeat(tau, 3, axis=-2), dt=DT, steps=3 * CALLS,
                          method=method, **options)
    q, v = stepper.q, stepper.v
    for k in range(CALLS):
        q, v = stepper.step(q, v, tau[..., k, :])
        np.testing.assert_array_equal(q, expected.q[..., 3 * (k + 1), :])
        np.testing.assert_array_equal(v, expected.v[..., 3 * (k + 1), :])
    assert q is stepper.q and v is stepper.v and not stepper.ended.any()
    np.testing.assert_allclose(stepper.t, 3 * CALLS * DT)
    assert np.abs(expected.v[..., -1, :] - expected.v[..., 0, :]).max() > 1e-3
    if "contacts" in options:
        np.testing.assert_array_equal(stepper.contact_forces, expected.contacts.force[..., -1, :])
        assert stepper.contact_names == expected.contacts.names and (stepper.contact_forces > 0.0).all()
        assert stepper.contacts.centre.shape == (*stepper.t.shape, 3)


@pytest.mark.parametrize("link", ["body", "FL_shank"])
def test_variants_with_contacts(link):
    model, q, options = standing_dog()
    robots = ld.Variants(model, {f"mass.{link}": [1.0, 3.0, 5.0], "friction.*": [0.0, 0.1, 0.2]})
    stepper = ld.Stepper(robots, DT, q0=q, method="semi_implicit", **options)
    assert stepper.q.shape == (3, model.nq)
    expected = ld.rollout(robots, q, np.zeros(model.nv), dt=DT, steps=CALLS, method="semi_implicit", **options)
    for _ in range(CALLS):
        stepper.step(stepper.q, stepper.v)
    np.testing.assert_array_equal(stepper.q, expected.q[:, -1])
    each = [ld.rollout(robots.robot(k), q, np.zeros(model.nv), dt=DT, steps=CALLS, method="semi_implicit", **options)
            for k in range(3)]
    forces = np.array([run.contacts.force[-1] for run in each])
    np.testing.assert_allclose(stepper.contact_forces, forces, rtol=1e-9)
    assert np.abs(forces[0] - forces[2]).max() > 0.1


def test_contacts_of_variants_with_other_frames():
    """They are computed sequentially, robot by robot."""
    model, q, options = standing_dog()
    robots = ld.Variants(model, {"origin.FL_knee.vz": [0.0, 0.002]})
    stepper = ld.Stepper(robots, DT, q0=q, method="semi_implicit", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.LiedynWarning)
        each = [ld.Stepper(robots.robot(k), DT, q0=q, method="semi_implicit", **options).contacts.depth for k in range(2)]
    np.testing.assert_allclose(stepper.contacts.depth, each, atol=1e-15)
    assert np.abs(each[0] - each[1]).max() > 1e-4


def test_prescribed_accelerations():
    model, runs = model_of("universal"), 4
    q, v, a, tau = state(model, 3, (runs,))
    mask = np.arange(model.nv) % 2 == 0
    stepper = ld.Stepper(model, DT, q0=q, v0=v, prescribed=mask)
    expected = ld.rollout(model, q, v, tau[:, None], a=a[:, None], prescribed=mask, dt=DT, steps=2)
    for _ in range(2):
        stepper.step(stepper.q, stepper.v, tau, a=a)
    np.testing.assert_array_equal(stepper.q, expected.q[:, -1])
    stepper.reset()
    stepper.step(stepper.q, stepper.v, tau)                                       # without a: at constant velocity
    np.testing.assert_array_equal(stepper.v[:, mask], v[:, mask])
    with pytest.raises(ld.UsageError, match="a requires `prescribed`"):
        ld.Stepper(model, DT, runs=2).step(model.neutral(), np.zeros(model.nv), a=a[0])


@pytest.mark.parametrize("runs", [None, 3])
@pytest.mark.parametrize("arguments", [
    lambda s, q, v: (q, v, s.v), lambda s, q, v: (q, v, s.q), lambda s, q, v: (q, s.q), lambda s, q, v: (s.v, s.q),
    lambda s, q, v: (s.q, s.q), lambda s, q, v: (s.v, s.v, s.q), lambda s, q, v: (s.q[..., ::-1], s.q[..., ::-1]),
    lambda s, q, v: (q, list(s.q), list(s.v)), lambda s, q, v: (list(s.v), list(s.q), s.v[..., ::-1])])
def test_arguments_may_be_views_of_the_state(arguments, runs):
    model, rng = model_of("universal"), np.random.default_rng(2)
    first, second = (rng.uniform(-0.3, 0.3, (2, *(() if runs is None else (runs,)), model.nv)) for _ in range(2))
    stepper, other = (ld.Stepper(model, DT, runs=runs, q0=first[0], v0=first[1], steps=3) for _ in range(2))
    other.step(*(np.array(x) for x in arguments(other, *second)))
    stepper.step(*arguments(stepper, *second))
    np.testing.assert_array_equal(stepper.q, other.q)
    np.testing.assert_array_equal(stepper.v, other.v)


def test_prescribed_accelerations_that_are_the_velocities():
    model = model_of("universal")
    stepper, other = (ld.Stepper(model, DT, v0=np.full(model.nv, 0.3), prescribed=np.arange(model.nv) < 1) for _ in range(2))
    other.step(model.neutral(), np.zeros(model.nv), a=other.v.copy())
    stepper.step(model.neutral(), np.zeros(model.nv), a=stepper.v)
    np.testing.assert_array_equal(stepper.v, other.v)
    assert stepper.v[0] == pytest.approx(0.3 * DT)


@pytest.mark.parametrize(("out", "message"), [
    (lambda s: (s.q, s.q), "out v overlaps the state"), (lambda s: (s.q[:], s.v), "out q overlaps the state"),
    (lambda s: (np.zeros((2, 2)),) * 2, "out q and out v overlap"),
    (lambda s: (np.zeros((2, 2), np.float32), np.zeros((2, 2))), "out q is not an array of float64: got float32"),
    (lambda s: (np.zeros((2, 2)), [[0, 0], [0, 0]]), "out v is not an array of float64: got list"),
    (lambda s: (np.zeros((2, 2)), np.broadcast_to(0.0, (2, 2))), "out v is read-only"),
    (lambda s: (np.zeros((2, 2)), np.zeros(2)), r"out v has the wrong shape: expected \(2, 2\), got \(2,\)"),
    (lambda s: (np.zeros((2, 2)),), r"out is not a pair of arrays: expected \(q, v\), got tuple"),
    (lambda s: np.zeros((2, 2, 2)), r"out is not a pair of arrays: expected \(q, v\), got ndarray")])
def test_outputs_that_cannot_hold_the_result_are_refused_before_the_step(out, message):
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), DT, q0=[0.3, 0.1], runs=2)
    with pytest.raises(ld.ShapeError, match=message):
        stepper.step(stepper.q, stepper.v, out=out(stepper))
    assert not stepper.v.any() and not stepper.t.any()


def test_unknown_arguments_name_the_nearest():
    model = ld.load("robots/double_pendulum.yaml")
    with pytest.raises(ld.ArgumentError, match=r"^Stepper has no argument 'step'; did you mean 'steps'"):
        ld.Stepper(model, DT, step=3)
    with pytest.raises(ld.ArgumentError, match=r"^Stepper: model must be a Model or Variants, got Robot \(ld\.build"):
        ld.Stepper(model.description, DT)
    stepper = ld.Stepper(model, DT)
    with pytest.raises(ld.ArgumentError, match=r"^step has no argument 'ot'; did you mean 'out'"):
        stepper.step(stepper.q, stepper.v, ot=None)


def test_outputs_may_be_the_columns_of_one_array_or_the_state():
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), DT, q0=[0.3, 0.1], runs=2)
    rows = np.zeros((2, 4))
    stepper.step(stepper.q, stepper.v, out=(rows[:, :2], rows[:, 2:]))
    np.testing.assert_array_equal(rows, np.hstack([stepper.q, stepper.v]))
    q, v = stepper.step(stepper.q, stepper.v, out=(stepper.q, stepper.v))
    assert q is stepper.q and v is stepper.v and (v != rows[:, 2:]).all()


def test_contact_forces_are_kept_when_the_next_step_is_made():
    model, q, options = standing_dog()
    stepper = ld.Stepper(model, DT, q0=q, method="semi_implicit", **options)
    forces = stepper.contact_forces
    kept = forces.copy()
    stepper.step(stepper.q, stepper.v)
    np.testing.assert_array_equal(forces, kept)
    assert (stepper.contact_forces != kept).any()


def test_states_that_are_given_and_outputs():
    model = model_of("free")
    q, v, _, tau = state(model, 3, (3,))
    stepper, other = ld.Stepper(model, DT, runs=3), ld.Stepper(model, DT, runs=3, q0=q, v0=v)
    out = np.empty_like(q), np.empty_like(v)
    result = stepper.step(q, v, tau, out=out)
    other.step(other.q, other.v, tau)
    assert result is out
    for x, y, z in zip(out, (stepper.q, stepper.v), (other.q, other.v), strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, z)
    other.step(other.q, other.v)                                                  # forces of the last call do not act
    np.testing.assert_array_equal(other.v, ld.rollout(model, *out, dt=DT, steps=1).v[:, -1])
    last = stepper.step(q[0], v[0], tau[0])[1]                                    # one state for all runs
    np.testing.assert_array_equal(last, np.tile(last[0], (3, 1)))


def test_axes_of_runs():
    model = model_of("universal")
    q, v, _, tau = state(model, 3, (2, 3))
    stepper = ld.Stepper(model, DT, q0=q, v0=v)
    found = stepper.step(stepper.q, stepper.v, tau)[0]
    np.testing.assert_array_equal(found, ld.rollout(model, q, v, tau[..., None, :], dt=DT, steps=1).q[..., -1, :])
    assert stepper.t.shape == stepper.ended.shape == (2, 3)


def test_reset_of_some_runs():
    model = model_of("universal")
    q, v, _, tau = state(model, 3, (4,))
    stepper = ld.Stepper(model, DT, q0=q, v0=v)
    stepper.step(stepper.q, stepper.v, tau)
    after = stepper.q.copy()
    stepper.reset(np.array([False, True, False, True]))
    np.testing.assert_array_equal(stepper.q[[1, 3]], q[[1, 3]])
    np.testing.assert_array_equal(stepper.q[[0, 2]], after[[0, 2]])
    assert stepper.t.tolist() == [DT, 0.0, DT, 0.0]
    stepper.reset([2], q[:1], np.zeros(model.nv))
    np.testing.assert_array_equal(stepper.q[2], q[0])
    stepper.step(stepper.q, stepper.v, tau)
    np.testing.assert_array_equal(stepper.q[1], after[1])                         # as in its first step
    stepper.reset()
    np.testing.assert_array_equal(stepper.v, v)


def test_runs_that_end_and_start_again():
    model = ld.load("robots/double_pendulum.yaml")
    stepper = ld.Stepper(model, 1e-3, runs=3)
    tau = np.array([[0.0, 0.0], [1e300, 0.0], [np.nan, 0.0]])
    for _ in range(3):
        stepper.step(stepper.q, stepper.v, tau)
    assert stepper.ended.tolist() == [False, True, True] and set(stepper.reasons) == {1, 2}
    assert np.isnan(stepper.q[1:]).all() and np.isfinite(stepper.q[0]).all()
    assert "2 ended" in repr(stepper) and "run 1 ended: " in repr(stepper)
    stepper.step(stepper.q.copy(), stepper.v.copy())                              # they stay so
    assert np.isnan(stepper.q[1:]).all() and np.isfinite(stepper.q[0]).all()
    stepper.reset([1])
    stepper.step(stepper.q, stepper.v)
    assert stepper.ended.tolist() == [False, False, True]
    np.testing.assert_array_equal(stepper.q[1], ld.rollout(model, model.neutral(), [0, 0], dt=1e-3, steps=1).q[-1])


def test_one_state_that_cannot_continue_is_an_error():
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3)
    with pytest.raises(ld.ComputationError, match=r"the run ended at t = .* s: .* \(reset the stepper\)"):
        stepper.step(stepper.q, stepper.v, [np.nan, 0.0])
    stepper.reset()
    assert np.isfinite(stepper.step(stepper.q, stepper.v)[0]).all()


def test_a_run_names_a_torque_that_is_not_finite_but_keeps_an_earlier_reason():
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3, runs=3)
    stepper.step([[0.0, 0.0], [1e6, 0.0], [0.0, 0.0]], stepper.v)
    stepper.step(stepper.q, stepper.v, [[np.nan, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    assert stepper.reasons == {0: "a torque is not finite", 1: "an angle is beyond 1e5 rad, or no longer finite"}
    stepper.reset([1])
    stepper.step(stepper.q, stepper.v, [[0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    assert stepper.reasons == {0: "a torque is not finite", 1: "a torque is not finite"}


def test_numbers_of_steps_may_be_narrow_integers_of_numpy():
    model = ld.load("robots/double_pendulum.yaml")
    options = {"q0": [0.3, 0.1], "dt": 1e-3, "steps": 3}
    expected = ld.rollout(model, v0=[0.0, 0.0], **options).q[-1]
    narrow = options | {"steps": np.int32(3)}
    np.testing.assert_array_equal(ld.rollout(model, v0=[0.0, 0.0], every=np.uint8(3), **narrow).q[-1], expected)
    stepper = ld.Stepper(model, **narrow)
    np.testing.assert_array_equal(stepper.step(stepper.q, stepper.v)[0], expected)


def test_setpoint_of_the_feedback():
    model = model_of("free")
    (q, v, *_), (goal, rate, *_) = state(model, 3, (2,)), state(model, 4, (2,))
    law = ld.Feedback.pd(np.full(model.nv, 5.0), np.full(model.nv, 1.0), q)
    stepper = ld.Stepper(model, DT, q0=q, v0=v, feedback=law)
    stepper.set_setpoint(goal, rate)
    stepper.step(stepper.q, stepper.v)
    other = ld.Feedback.pd(np.full(model.nv, 5.0), np.full(model.nv, 1.0), goal, rate)
    np.testing.assert_array_equal(stepper.v, ld.rollout(model, q, v, dt=DT, steps=1, feedback=other).v[:, -1])
    with pytest.raises(ld.ConfigurationError, match="not of unit norm"):
        stepper.set_setpoint(2.0 * goal)
    with pytest.raises(ld.UsageError, match="no setpoint; create it with `feedback`"):
        ld.Stepper(model, DT).set_setpoint(goal[0])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_continue_separately(duplicate):
    model = model_of("universal")
    q, v, _, tau = state(model, 3, (3,))
    stepper = ld.Stepper(ld.Variants(model, {"gravity.x": [0.0, 1.0, 2.0]}), DT, q0=q, v0=v)
    stepper.step(stepper.q, stepper.v, tau)
    other, before = duplicate(stepper), stepper.q.copy()
    assert other == stepper
    other.step(other.q, other.v)
    np.testing.assert_array_equal(stepper.q, before)
    assert other != stepper and other != "stepper"
    stepper.step(stepper.q, stepper.v)
    assert other == stepper


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda s: s.step([0.0], s.v), ld.ShapeError, r"q has the wrong shape: expected \(…, 2\), got \(1,\)"),
    (lambda s: s.step(np.zeros((3, 2)), s.v), ld.ShapeError, r"expected \(2, 2\) or \(2,\), got \(3, 2\)"),
    (lambda s: s.step(s.q, s.v, np.zeros((2, 1))), ld.ShapeError,
     r"tau has the wrong shape: expected \(2, 2\) or \(2,\), got \(2, 1\)"),
    (lambda s: s.step(s.q, s.v, np.zeros(2, dtype=complex)), ld.ShapeError,
     "tau is not an array of real numbers: got complex128"),
    (lambda s: s.step(s.q, s.v, out=(np.zeros(2), np.zeros((2, 2)))), ld.ShapeError, "out q has the wrong shape"),
    (lambda s: s.reset([2]), ld.UsageError, "rows are indices of runs from 0 to 1, or a mask of 2"),
    (lambda s: s.reset([0.5]), ld.UsageError, "got float64"),
    (lambda s: s.reset([0], q=np.zeros((2, 2))), ld.ShapeError, r"expected \(1, 2\) or \(2,\), got \(2, 2\)"),
    (lambda s: s.reset(q=[np.nan, 0.0]), ld.ConfigurationError, r"^q\[0\] .* is not finite"),
    (lambda s: s.reset(v=[np.nan, 0.0]), ld.ConfigurationError, r"^v\[0\] .* is not finite"),
    (lambda s: s.contact_forces, ld.UsageError, "no contacts; create it with `contacts`"),
])
def test_errors_of_calls(call, error, message):
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3, runs=2)
    with pytest.raises(error, match=message):
        call(stepper)


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"method": "euler"}, ld.UsageError, "method must be rk4 or semi_implicit"),
    ({"dt": 0.0}, ld.UsageError, "dt must be a number of seconds > 0"),
    ({"dt": True}, ld.UsageError, "dt must be a number of seconds > 0, got True"),
    ({"steps": 0}, ld.UsageError, "steps must be an integer >= 1"),
    ({"runs": 0}, ld.UsageError, "runs must be an integer >= 1"),
    ({"runs": 3, "q0": np.zeros((2, 2))}, ld.ShapeError, r"runs does not match the other arguments, whose axes of runs are "
                                                         r"\(2,\): .*got 3"),
    ({"events": {"low": {"when": "q(elbow)", "do": "stop"}}}, ld.UsageError, "a Stepper has no events; use ld.rollout"),
])
def test_errors_of_arguments(options, error, message):
    with pytest.raises(error, match=message):
        ld.Stepper(ld.load("robots/double_pendulum.yaml"), **{"dt": 1e-3} | options)


def test_errors_of_states():
    model = ld.load("robots/quadruped.yaml")
    stepper = ld.Stepper(model, 1e-3, runs=2)
    with pytest.raises(ld.ConfigurationError, match=r"quaternion of joint 'base' in run 1 is not of unit norm"):
        stepper.step(stepper.q * [[1.0], [2.0]], stepper.v)
    bars = ld.load("robots/four_bar.yaml")
    stepper = ld.Stepper(bars, 1e-3, q0=ld.assemble(bars, bars.neutral()).q)
    with pytest.raises(ld.ConfigurationError, match="violates the constraints"):
        stepper.reset(q=stepper.q + 0.1)


def test_robots_without_generated_code(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    with pytest.raises(ld.UsageError, match=r"a Stepper requires generated code.*use ld\.rollout"):
        ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3)


def test_a_step_that_is_too_long_is_reported():
    model, q, options = standing_dog()
    with pytest.warns(ld.LiedynWarning, match="dt is too long"):
        stepper = ld.Stepper(model, 0.02, q0=q, **options)
    assert stepper.warnings[0].code == "stiff-step" and "dt is too long" in repr(stepper)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.Stepper(model, DT, contacts=FEET)                       # the neutral configuration is far below the ground


def test_only_the_arrays_of_a_prepared_call_are_used(monkeypatch):
    """Repeated preparation would cost more than a step."""
    stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3, runs=2)
    for name in ("RolloutInputs", "prepare_problem", "BatchIntegrator"):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("prepared again"))
    stepper.step(stepper.q, stepper.v, np.ones(2))
