"""Functions of robots on OpenCL devices, against the same functions of this processor."""
from __future__ import annotations

import sys

import numpy as np
import pytest

import liedyn as ld
from opencl import has_opencl

cl = pytest.importorskip("pyopencl", reason="needs pyopencl")
import pyopencl.array as cl_array  # noqa: E402

if not has_opencl():
    pytest.skip("needs an OpenCL device, such as Debian's pocl-opencl-icd", allow_module_level=True)
# of the largest number of a result. Single: median over states, since some states are badly conditioned
DOUBLE, SINGLE = 1e-12, 1e-6
N = 70                  # more than a work group, and no multiple of it


@pytest.fixture(scope="module")
def queue():
    return cl.CommandQueue(cl.create_some_context(interactive=False))


@pytest.fixture(scope="module")
def panda(queue):
    model = ld.load("robots/panda.yaml")
    return model, ld.to_device(model, queue)


def states(model, n=N):
    rng = np.random.default_rng(0)
    q = ld.random_configuration(model, rng, n)
    return (q, *rng.standard_normal((2, n, model.nv)))


def relative_errors(result, expected):
    """Return the error of each state, relative to its largest number."""
    result, expected = (x.reshape(len(x), -1) for x in (result, expected))
    return np.abs(result - expected).max(axis=1) / np.abs(expected).max(axis=1)


def test_states_of_an_arm(panda):
    model, device = panda
    q, v, x = states(model)
    for function in ("inverse_dynamics", "forward_dynamics"):
        result = getattr(device, function)(q, v, x)
        assert isinstance(result, cl_array.Array)
        assert relative_errors(result.get(), getattr(ld, function)(model, q, v, x)).max() < DOUBLE


def test_single_precision(queue, panda):
    model, _ = panda
    q, v, x = states(model)
    v[5, 0] = np.nan
    result = ld.to_device(model, queue, dtype="float32").forward_dynamics(q, v, x).get()
    assert result.dtype == np.float32
    assert np.isnan(result[5]).all()
    is_valid = np.arange(N) != 5
    expected = ld.forward_dynamics(model, q[is_valid], v[is_valid], x[is_valid])
    assert np.median(relative_errors(result[is_valid], expected)) < SINGLE


def test_floating_robot_and_states_that_are_not_valid(queue):
    model = ld.load("robots/quadruped.yaml")
    q, v, tau = states(model)
    q[3, :4] *= 1.01                                       # no unit quaternion
    v[5, 0] = np.nan
    result = ld.to_device(model, queue).forward_dynamics(q, v, tau).get()
    is_valid = ~np.isin(np.arange(N), (3, 5))
    assert np.isnan(result[~is_valid]).all()
    expected = ld.forward_dynamics(model, q[is_valid], v[is_valid], tau[is_valid])
    assert relative_errors(result[is_valid], expected).max() < DOUBLE


def test_arrays_of_the_device_of_any_strides(panda, queue):
    model, device = panda
    q, v, x = states(model)
    expected = ld.inverse_dynamics(model, q, v, x)
    columns = cl_array.to_device(queue, np.asfortranarray(q))
    wide = cl_array.to_device(queue, np.hstack([v, x]))
    result = device.inverse_dynamics(columns, wide[:, :model.nv], wide[:, model.nv:])
    assert relative_errors(result.get(), expected).max() < DOUBLE


def test_one_state_and_one_state_for_all(panda):
    model, device = panda
    q, v, x = states(model)
    assert device.inverse_dynamics(q[0], v[0], x[0]).shape == (model.nv,)
    result = device.inverse_dynamics(q[0], v, x)
    assert relative_errors(result.get(), ld.inverse_dynamics(model, q[0], v, x)).max() < DOUBLE
    assert device.inverse_dynamics(q[:0], v[:0], x[:0]).shape == (0, model.nv)


@pytest.mark.parametrize(("function", "options"), [
    ("forward_dynamics_derivatives", {}), ("jacobian", {"link": "lower", "frame": "world"}), ("regressor", {}),
    ("hybrid_dynamics", {"prescribed": [True, False]})])
def test_several_results_and_matrices(queue, function, options):
    model = ld.load("robots/double_pendulum.yaml")
    compiled = ld.to_device(model, queue).function(function, **options)
    q, v, a, tau = np.random.default_rng(0).standard_normal((4, N, 2))
    arrays = [{"q": q, "v": v, "a": a, "tau": tau}[name] for name in compiled.inputs]
    results = compiled(*arrays)
    call = dict(options)
    if "prescribed" in call:
        arrays.append(np.array(call.pop("prescribed")))
    expected = getattr(ld, function)(model, *arrays, **call)
    for result, reference in zip(*(x if isinstance(x, tuple) else (x,) for x in (results, expected)), strict=True):
        assert result.shape == reference.shape
        np.testing.assert_allclose(result.get(), reference, rtol=0, atol=DOUBLE * np.abs(reference).max())


def test_robot_with_coupled_joints(queue):
    model = ld.load("robots/hand.yaml")
    rng = np.random.default_rng(0)
    q, v = ld.expand(model, *rng.standard_normal((2, N, len(model.independent))))
    tau = rng.standard_normal((N, model.nv))
    result = ld.to_device(model, queue).forward_dynamics(q, v, tau).get()
    assert relative_errors(result, ld.forward_dynamics(model, q, v, tau)).max() < DOUBLE


# rollouts ---------------------------------------------------------------------------------------------------------------------

STEPS = 20
CONTACTS = {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "friction_speed": 0.1, "sink": 0.003}


@pytest.mark.parametrize(("dtype", "bound"), [("float64", DOUBLE), ("float32", 1e-4)])
def test_rollouts_on_feet_with_feedback(queue, dtype, bound):
    model, rng = ld.load("robots/quadruped.yaml"), np.random.default_rng(0)
    standing = model.neutral()
    standing[model.q_index("base")] = 0, 0, 0.3, 0, 0, 0, 1
    for leg in ("FL", "FR", "HL", "HR"):
        standing[model.q_index(f"{leg}_hip")], standing[model.q_index(f"{leg}_knee")] = 0.8, -1.6
    kp = np.where(np.arange(model.nv) < 6, 0.0, 100.0)
    options = {"dt": 1e-3, "steps": STEPS, "feedback": ld.Feedback.pd(kp, 0.04 * kp, standing), "contacts": CONTACTS}
    q, v, tau = np.tile(standing, (N, 1)), 0.1 * rng.standard_normal((N, model.nv)), rng.standard_normal((N, STEPS, model.nv))
    expected = ld.rollout(model, q, v, tau, **options)
    assert expected.contacts.force.max() > 1.0
    roll = ld.to_device(model, queue, dtype=dtype).rollout_function(**options)
    expected = ld.rollout(model, q, v, tau, **options)
    for result, again, reference in zip(roll(q, v, tau), roll(q, v, tau), (expected.q, expected.v), strict=True):
        np.testing.assert_allclose(result.get(), reference, rtol=0, atol=bound * np.abs(reference).max())
        assert np.array_equal(result.get(), again.get())


def test_runs_that_fail_and_forces_for_all(queue):
    model = ld.load("robots/double_pendulum.yaml")
    roll = ld.to_device(model, queue).rollout_function(dt=1e-3, steps=STEPS, method="semi_implicit")
    q, v = 0.3 * np.ones((2, 3, 2))
    v[1, 0] = np.inf
    tau = np.array([0.5, -0.2])
    result, _ = roll(q, v, tau)
    expected = ld.rollout(model, q[0], v[0], tau, dt=1e-3, steps=STEPS, method="semi_implicit").q
    for forces in (tau, np.broadcast_to(tau, (3, 1, 2)), np.broadcast_to(tau, (3, STEPS, 2))):
        np.testing.assert_allclose(roll(q, v, forces)[0].get()[2], expected, rtol=0, atol=DOUBLE)
    assert np.isnan(result.get()[1, 1:]).all()


def test_quaternions_one_state_and_forces_of_steps(queue):
    model = ld.load("robots/quadruped.yaml")
    roll = ld.to_device(model, queue).rollout_function(dt=1e-3, steps=STEPS)
    q, v, tau = np.tile(model.neutral(), (2, 1)), np.zeros((2, model.nv)), np.random.default_rng(0).standard_normal(
        (STEPS, model.nv))
    q[1, 3:7] *= 1.1                                       # no unit quaternion
    expected = ld.rollout(model, q[0], v[0], tau, dt=1e-3, steps=STEPS).q
    for q0, v0, result in ((q[0], v[0], expected), (q, v, [expected, np.full_like(expected, np.nan)])):
        np.testing.assert_allclose(roll(q0, v0, tau)[0].get(), result, rtol=0, atol=DOUBLE)


def test_events_that_stop(queue):
    """As on this processor: times, rows, and the states at the events. One begins at its value."""
    model, rng = ld.load("robots/double_pendulum.yaml"), np.random.default_rng(0)
    q, v = rng.standard_normal((2, N, 2))
    q[3, 0] = 0.1
    tau = rng.standard_normal((N, STEPS, 2))
    options = {"dt": 1e-2, "steps": STEPS, "events": {
        "low": {"when": "q(shoulder)", "value": 0.1, "do": "stop"},
        "fast": {"when": "v(elbow) - 1.5 - t", "direction": "rising", "do": "stop"}}}
    expected = ld.rollout(model, q, v, tau, **options)
    q_run, v_run, stopped, q_end, v_end = (x.get() for x in ld.to_device(model, queue).rollout_function(**options)(q, v, tau))
    assert 10 < np.isfinite(stopped).sum() < N - 10 and {*expected.events.name} == {"low", "fast"}
    for result, reference in ((q_run, expected.q), (v_run, expected.v), (stopped, expected.stopped_at)):
        np.testing.assert_allclose(result, reference, rtol=0, atol=DOUBLE)
    events = expected.events
    np.testing.assert_allclose(q_end[events.run], events.q, rtol=0, atol=DOUBLE)
    np.testing.assert_allclose(v_end[events.run], events.v, rtol=0, atol=1e-10)
    complete = np.isnan(stopped)
    assert np.array_equal(q_end[complete], q_run[complete, -1])


BALL = {"links": {"body": {"mass": 1.2, "com": [0.1, 0, 0], "inertia": [0.1, 0.2, 0.25]}},
        "joints": {"ball": {"type": "ball", "parent": "world", "child": "body"}}}


@pytest.mark.parametrize(("method", "dtype", "bound"), [("semi_implicit", "float64", DOUBLE), ("rk4", "float32", 1e-5)])
def test_adjoints(queue, method, dtype, bound, tmp_path):
    """Of a body on a ball joint, whose derivatives of q are tangent, and of an arm."""
    (tmp_path / "ball.yaml").write_text(str(BALL))
    file, link = (tmp_path / "ball.yaml", "body") if dtype == "float64" else ("robots/double_pendulum.yaml", "lower")
    model, rng, n, parameters = ld.load(file), np.random.default_rng(0), 5, (f"mass.{link}", "gravity.z")
    q, v = ld.random_configuration(model, rng, n), rng.standard_normal((n, model.nv))
    tau, d_q, d_v = (rng.standard_normal((n, steps, model.nv)) for steps in (STEPS, STEPS + 1, STEPS + 1))
    options = {"dt": 5e-3, "steps": STEPS, "method": method}
    expected = ld.rollout(model, q, v, tau, **options).adjoint(d_q, d_v, parameters=parameters)
    roll = ld.to_device(model, queue, dtype=dtype).rollout_function(**options)
    result = roll.adjoint(*roll(q, v, tau), tau, d_q, d_v, parameters)
    for name in ("q0", "v0", "tau", "parameters"):
        reference = getattr(expected, name)
        np.testing.assert_allclose(getattr(result, name).get(), reference, rtol=0, atol=bound * np.abs(reference).max())
    final = roll.adjoint(*(x.get()[0] for x in roll(q, v, tau)), tau[0], d_v=d_v[0])
    assert final.q0.shape == (model.nv,) and final.tau.shape == (STEPS, model.nv) and final.parameters is None
    failed = roll.adjoint(*(np.full((STEPS + 1, size), np.nan) for size in (model.nq, model.nv)))
    assert np.isnan(failed.q0.get()).all()


def test_what_rollouts_on_a_device_cannot_contain(queue):
    pendulum = ld.to_device(ld.load("robots/double_pendulum.yaml"), queue)
    roll = pendulum.rollout_function(dt=1e-3, steps=STEPS)
    with pytest.raises(ld.ShapeError, match=r"tau has the wrong shape: expected \(N, S, 2\), .* got \(3, 7, 2\)"):
        roll(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 7, 2)))
    with pytest.raises(ld.ShapeError, match=r"q0 has the wrong shape: expected \(N, 2\) or \(2,\), got \(3, 3\)"):
        roll(np.zeros((3, 3)), np.zeros((3, 2)))
    feedback = ld.Feedback.pd([10.0, 10.0], [2.0, 2.0], np.zeros((5, 2)))
    low = {"when": "q(shoulder)", "do": "stop"}
    for events, text in (({"low": {"at": 1e-3, "do": "stop"}}, "cannot contain the time of event low"),
                         ({"low": low | {"do": "record"}}, "cannot contain what event low does"),
                         ({"low": low | {"when": "q(sholder)"}}, "sholder")):
        with pytest.raises(ld.LiedynError, match=text):
            pendulum.rollout_function(dt=1e-3, steps=STEPS, events=events)
    states = np.zeros((STEPS + 1, 2))
    with pytest.raises(ld.UsageError, match="the adjoint of a rollout with events is not available"):
        pendulum.rollout_function(dt=1e-3, steps=STEPS, events={"low": low}).adjoint(states, states)
    with pytest.raises(ld.ShapeError, match=r"d_q has the wrong shape: expected \(N, 21, 2\) or \(21, 2\), got \(20, 2\)"):
        roll.adjoint(states, states, d_q=states[1:])
    with pytest.raises(ld.LiedynError, match="lowr"):
        roll.adjoint(states, states, parameters=["mass.lowr"])
    with pytest.raises(ld.UsageError, match="cannot contain gains or setpoints of runs or steps"):
        pendulum.rollout_function(dt=1e-3, steps=1, feedback=feedback)
    for options, text in (({"method": "euler"}, "method must be"), ({"dt": 0.0}, "dt must be"),
                          ({"steps": 1.5}, "steps must be")):
        with pytest.raises(ld.UsageError, match=text):
            pendulum.rollout_function(**{"dt": 1e-3, "steps": 1, **options})
    with pytest.raises(ld.ModelError, match="loop"):
        ld.to_device(ld.load("robots/four_bar.yaml"), queue).rollout_function(dt=1e-3, steps=1)


def test_functions_are_compiled_once_and_listed(panda):
    _, device = panda
    assert device.inverse_dynamics is device.function("inverse_dynamics")
    assert "mass_matrix" in dir(device)
    assert repr(device) == "<DeviceModel panda: float64>"
    assert device.inverse_dynamics.inputs == ("q", "v", "a")


def test_wrong_arguments(panda, queue):
    model, device = panda
    q, v, x = states(model, 3)
    with pytest.raises(ld.ShapeError, match=r"v has the wrong shape: expected \(N, 9\) or \(9,\), got \(3, 6\)"):
        device.inverse_dynamics(q, v[:, :6], x)
    with pytest.raises(ld.ShapeError, match="different numbers of states"):
        device.inverse_dynamics(q, v[:2], x)
    with pytest.raises(ld.UsageError, match="takes the arrays q, v, a, got 1"):
        device.inverse_dynamics(q)
    with pytest.raises(ld.UsageError, match="v has the wrong dtype: expected float64, got float32"):
        device.inverse_dynamics(q, cl_array.to_device(queue, v.astype(np.float32)), x)
    with pytest.raises(ld.NameLookupError, match="forward_dynamics"):
        device.function("foward_dynamics")
    with pytest.raises(AttributeError, match="'foward_dynamics'"):
        device.foward_dynamics(q, v, x)
    for x in (np.ma.masked_array(v, mask=v > 0), v + 1j, "a"):
        with pytest.raises(ld.ShapeError, match=r"^v "):
            device.inverse_dynamics(q, x, v)
    with pytest.raises(ld.ArgumentError, match="dtype must be float64 or float32, got 'int8'"):
        ld.to_device(model, queue, dtype="int8")
    assert ld.to_device(model, queue, dtype=np.float32).dtype == "float32"
    for other in ("vulkan", None):
        with pytest.raises(ld.UsageError, match=f"got {other!r}"):
            ld.to_device(model, other)


def test_missing_package(panda, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(ld.UsageError, match="OpenCL devices require the package pyopencl"):
        ld.to_device(panda[0])
