"""Many runs side by side: each is the run alone, whatever is next to it, by the dynamics and the integrator of one run."""
import json
import warnings

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from codegen.test_variants import changed
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK
from limited_robots import SLIDER
from zoo import ROBOTS, model_of, state

DT, STEPS, EVERY = 2e-3, 12, 4
PENDULUM = "robots/double_pendulum.yaml"
BALL = {"links": {"lower": {"sphere": {"radius": 0.02}}}}        # two metres above the ground


@pytest.fixture
def pendulum():
    return ld.load(PENDULUM)


def given(name, runs):
    model = model_of(name)
    q, v, _, tau = state(model, 3, (runs,))
    return model, q, 0.3 * v, tau


def stepped(model, q, v, tau, method, steps=STEPS):
    """Step with public functions as in a textbook. tau(k) is constant in step k."""
    def rates(q0, x, v, force):
        qx = ld.integrate(model, q0, x)
        return chart_rate(model, q0, x, v), ld.forward_dynamics(model, qx, v, force)

    for k in range(steps):
        force, x = tau(k), np.zeros_like(v)
        if method == "semi_implicit":
            v = v + DT * ld.forward_dynamics(model, q, v, force)
            q = ld.integrate(model, q, DT * v)
            continue
        k1 = rates(q, x, v, force)
        k2 = rates(q, x + DT / 2 * k1[0], v + DT / 2 * k1[1], force)
        k3 = rates(q, x + DT / 2 * k2[0], v + DT / 2 * k2[1], force)
        k4 = rates(q, x + DT * k3[0], v + DT * k3[1], force)
        x, v = (y + DT / 6 * (a + 2 * b + 2 * c + d) for y, a, b, c, d in zip((x, v), k1, k2, k3, k4, strict=True))
        q = ld.integrate(model, q, x)
    return q, v


def chart_rate(model, q0, x, v, e=1e-5):
    """dx/dt with q0 (+) x moving at the velocity v, by central differences of the chart."""
    q = ld.integrate(model, q0, x)
    before, after = (ld.difference(model, q0, ld.integrate(model, q, sign * e * v)) for sign in (-1, 1))
    return (after - before) / (2 * e)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("name", ["universal", "planar", "ball", "free", "every kind, floating"])
def test_steps_are_those_of_the_textbook(name, method, worst):
    model, q, v, tau = given(name, 5)
    found = ld.rollout(model, q, v, tau[:, None], dt=DT, steps=STEPS, every=EVERY, method=method)
    expected = stepped(model, q, v, lambda k: tau, method)
    assert found.complete.all() and np.array_equal(found.t, DT * np.arange(0, STEPS + 1, EVERY))
    for what, x, y in (("q", found.q[:, -1], expected[0]), ("v", found.v[:, -1], expected[1])):
        # differences of the chart keep 1e-10 of a rate, rk4 makes 12 steps of 2e-3 s with them
        assert worst(f"rollout, {method}: {what}", relative(x, y), name) < 1e-9


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_a_run_is_the_same_bit_for_bit_whatever_is_beside_it(pendulum, method):
    rng = np.random.default_rng(0)
    runs = 2 * RUNS_PER_BLOCK + 5
    q, v, tau = rng.standard_normal((runs, 2)), rng.standard_normal((runs, 2)), rng.standard_normal((runs, STEPS, 2))
    all_ = ld.rollout(pendulum, q, v, tau, dt=DT, steps=STEPS, method=method)
    some = rng.permutation(runs)[:9]
    few = ld.rollout(pendulum, q[some], v[some], tau[some], dt=DT, steps=STEPS, every=3, method=method)
    assert np.array_equal(few.q, all_.q[some, ::3]) and np.array_equal(few.v, all_.v[some, ::3])


def test_a_run_of_rk4_is_that_of_the_compiled_loop_and_of_a_scenario(pendulum, monkeypatch, worst):
    rng = np.random.default_rng(1)
    q, v, tau = rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), rng.standard_normal((3, STEPS, 2))
    found = ld.rollout(pendulum, q, v, tau, dt=DT, steps=STEPS, every=EVERY, forces=True)
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    alone = ld.rollout(ld.load(PENDULUM), q, v, tau, dt=DT, steps=STEPS, every=EVERY, forces=True)
    for what in ("q", "v", "a", "tau"):
        assert worst("rollout: by loops", relative(getattr(found, what), getattr(alone, what)), what) < 1e-13
    free = ld.rollout(pendulum, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=500, every=100)
    run = ld.run_scenario({"robot": PENDULUM, "duration": 0.5, "output_step": 0.1, "initial": {"q": {"shoulder": 0.3}},
                           "integrator": {"method": "rk4", "step": 1e-3}})
    assert worst("rollout: scenario", relative(free.q, run.q)) < 1e-12


def test_orders(pendulum):
    """4 and 1: half the step divides the error by 16 and 2."""
    ends = {}
    for method, steps in (("rk4", (200, 400, 800)), ("semi_implicit", (400, 800, 1600))):
        ends[method] = [ld.rollout(pendulum, [1.0, 0.5], [0.0, 1.0], dt=0.8 / n, steps=n, every=n, method=method,
                                    passive=False).q[-1] for n in steps]             # dry friction has kinks
    for method, order in (("rk4", 4), ("semi_implicit", 1)):
        a, b, c = ends[method]
        assert abs(np.log2(np.abs(a - b).max() / np.abs(b - c).max()) - order) < 0.2


def test_variants_run_as_each_alone(worst):
    rng = np.random.default_rng(5)
    models = [ld.build(changed(ROBOTS["universal"], rng)) for _ in range(5)]
    _, q, v, tau = given("universal", 5)
    found = ld.rollout(ld.Variants(models), q, v, tau[:, None], dt=DT, steps=STEPS, every=STEPS)
    for k, model in enumerate(models):
        alone = ld.rollout(model, q[k], v[k], tau[k], dt=DT, steps=STEPS, every=STEPS)
        assert worst("rollout: variants", relative(found.v[k], alone.v), "universal") < 1e-12


@pytest.mark.parametrize("code", ["auto", "generic"])
def test_runs_of_each_variant_have_its_robot(code, monkeypatch, worst):
    """Two states for each of three robots: the last axis of runs is that of the robots."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    models = [ld.load(PENDULUM, gravity=(0, 0, -g)) for g in (9, 5, 1)]
    q = np.array([[[0.1, 0.2]], [[0.3, 0.4]]])
    found = ld.rollout(ld.Variants(models), q, np.zeros(2), dt=DT, steps=STEPS)
    assert found.q.shape == (2, 3, STEPS + 1, 2)
    for i in range(2):
        for k, model in enumerate(models):
            alone = ld.rollout(model, q[i, 0], np.zeros(2), dt=DT, steps=STEPS)
            assert worst("rollout: robots of runs", relative(found.q[i, k], alone.q), code) < 1e-13


def test_no_run_at_all(pendulum):
    found = ld.rollout(pendulum, np.zeros((0, 2)), np.zeros(2), dt=DT, steps=STEPS, contacts=BALL)
    assert found.q.shape == (0, STEPS + 1, 2) and found.adjoint().tau.shape == (0, STEPS, 2)
    assert "0 runs" in repr(found) and found.contacts.force.shape == (0, STEPS + 1, 1)


@pytest.mark.parametrize("code", ["auto", "generic"])
def test_forces_with_contacts(pendulum, code, monkeypatch, worst):
    monkeypatch.setenv("LIEDYN_CODE", code)
    found = ld.rollout(ld.load(PENDULUM), [0.3, 0.0], [1.0, 0.0], dt=DT, steps=STEPS, every=EVERY, forces=True, contacts=BALL)
    alone = ld.forward_dynamics(pendulum, found.q, found.v, found.tau)
    assert worst("rollout: forces with contacts", relative(found.a, alone), code) < 1e-12


def test_a_run_that_cannot_begin_is_printed(pendulum):
    found = ld.rollout(pendulum, [2e5, 0.0], [0.0, 0.0], dt=DT, steps=STEPS, forces=True)
    assert np.isnan(found.q).all() and "1 ended early" in repr(found)


def test_a_sequential_run_that_diverges_names_no_sampling(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    found = ld.rollout(ld.load(PENDULUM), [0.0, 0.0], [0.0, 0.0], [1e300, 0.0], dt=DT, steps=3)
    assert "finite" in found.reasons[0] and "sampling" not in found.reasons[0]


def test_a_policy_is_called_once_a_step_for_all_runs(pendulum):
    rng = np.random.default_rng(2)
    q, v, tau = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 3, STEPS, 2))
    times = []

    def policy(t, q, v):
        assert q.shape == v.shape == (2, 3, 2)
        times.append(t)
        return tau[:, :, len(times) - 1]
    found = ld.rollout(pendulum, q, v, policy, dt=DT, steps=STEPS, every=5)
    series = ld.rollout(pendulum, q, v, tau, dt=DT, steps=STEPS, every=5)
    assert np.array_equal(found.q, series.q) and np.array_equal(found.t, series.t) and found.q.shape == (2, 3, 4, 2)
    assert np.array_equal(times, DT * np.arange(STEPS))


def test_pd_feedback_is_that_of_a_scenario(pendulum, worst):
    target = [0.4, -0.2]
    feedback = ld.Feedback.pd(np.array([30.0, 20.0]), np.array([3.0, 2.0]), target)
    found = ld.rollout(pendulum, [0.1, 0.0], [0.0, 0.0], dt=1e-3, steps=400, every=100, feedback=feedback)
    run = ld.run_scenario({"robot": PENDULUM, "duration": 0.4, "output_step": 0.1, "initial": {"q": {"shoulder": 0.1}},
                           "integrator": {"method": "rk4", "step": 1e-3}, "joints": {
                               "shoulder": {"torque": {"pd": {"kp": 30, "kd": 3, "target": 0.4}}},
                               "elbow": {"torque": {"pd": {"kp": 20, "kd": 2, "target": -0.2}}}}})
    assert worst("rollout: pd", relative(found.q, run.q)) < 1e-12


def test_feedback_about_a_motion_is_a_policy_but_for_the_stages(worst):
    """semi_implicit computes the law once a step, as the policy does; gains, ball joints and each run's own motion."""
    model, q, v, _ = given("ball", 4)
    rng = np.random.default_rng(4)
    gain = rng.uniform(0, 0.5, (4, model.nv, 2 * model.nv))
    setpoint_q = np.stack([ld.random_configuration(model, rng, 4) for _ in range(STEPS)], axis=1)
    setpoint_v = rng.standard_normal((4, STEPS, model.nv))
    calls = []

    def policy(t, q, v):
        k = len(calls)
        calls.append(t)
        x = np.concatenate([ld.difference(model, setpoint_q[:, k], q), v - setpoint_v[:, k]], axis=-1)
        return -np.einsum("nij,nj->ni", gain, x)
    options = {"dt": DT, "steps": STEPS, "every": 3, "method": "semi_implicit"}
    found = ld.rollout(model, q, v, feedback=ld.Feedback(gain, setpoint_q, setpoint_v), **options)
    expected = ld.rollout(model, q, v, policy, **options)
    assert worst("rollout: moving feedback", relative(found.v, expected.v)) < 1e-12


def test_a_run_that_diverges_ends_and_the_others_go_on(pendulum):
    q, v, tau = np.zeros((70, 2)), np.ones((70, 2)), np.zeros((70, STEPS, 2))
    tau[41, 5:] = 1e300
    found = ld.rollout(pendulum, q, v, tau, dt=DT, steps=STEPS)
    healthy = ld.rollout(pendulum, q[0], v[0], dt=DT, steps=STEPS)
    assert np.flatnonzero(~found.complete).tolist() == [41] == list(found.reasons) and "finite" in found.reasons[41]
    assert 5 * DT <= found.ended_at[41] <= 8 * DT
    assert np.array_equal(found.q[41, :6], healthy.q[:6]) and np.isnan(found.q[41, -1]).all()
    assert np.array_equal(found.q[:41], np.broadcast_to(healthy.q, (41, STEPS + 1, 2)))
    assert "1 ended early" in repr(found) and "70 runs" in repr(found)
    assert f"\n  1 run ended early: {found.reasons[41]}" in repr(found)


def test_position_limits_are_reported_and_do_not_act(tmp_path):
    """Of all runs; as one warning per model."""
    (tmp_path / "slider.yaml").write_text(json.dumps(SLIDER))
    model, options = ld.load(tmp_path / "slider.yaml"), {"dt": 0.01, "steps": 100, "every": 10, "method": "semi_implicit"}
    q, v = np.zeros((3, 1)), np.array([[0.4], [-2.0], [0.7]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside = ld.rollout(model, q[:1], v[:1], **options)
        assert inside.warnings == () and not caught
        found = ld.rollout(model, q, v, **options)
        assert [one.message for one in caught] == list(found.warnings) and found.q[1, -1, 0] == pytest.approx(-2.0)
        again = ld.rollout(model, q, v, **options)
        assert again.warnings == found.warnings and len(caught) == 1
    assert [one.message for one in found.warnings] == [
        "position limits are exceeded in 2 of 3 runs: x from t = 0.3 s (worst -2 m at t = 1 s, limit -0.4 m) in run 1; "
        "limits are not enforced in rollouts"]
    alone = ld.rollout(model, q[1:2], v[1:2], **options)
    assert repr(alone).startswith("<Rollout: 1 run of 1 s, ")
    of_run = found.warnings[0].message
    assert [one.message for one in alone.warnings] == [of_run.replace(" in 2 of 3 runs", "").replace(" in run 1", "")]


def test_runs_of_different_length(pendulum):
    found = ld.rollout(pendulum, np.zeros((3, 2)), np.ones(2), dt=DT, steps=STEPS, last=[STEPS, 3, 6])
    assert np.isfinite(found.q).all(axis=2).sum(axis=1).tolist() == [STEPS + 1, 4, 7] and found.complete.all()
    assert np.array_equal(found.q[1, :4], found.q[0, :4])


@pytest.mark.parametrize("code", ["generated", "generic"])
def test_forces_of_runs_of_different_length(pendulum, code, monkeypatch, worst):
    """The last row has the forces of the last step, as of the run alone; also where a mask changes there, and of a policy."""
    rng, last = np.random.default_rng(5), np.array([STEPS, 3, 6, 1])
    q, tau, a = rng.standard_normal((4, 2)), rng.standard_normal((4, STEPS, 2)), rng.standard_normal((4, STEPS, 2))
    masks = np.zeros((STEPS, 2), dtype=bool)
    masks[3:5, 0] = True
    def policy(t, q, v): return -3.0 * q - v
    ways = [{"tau": tau}]
    if code == "generic":
        monkeypatch.setenv("LIEDYN_CODE", "generic")
    else:
        ways += [{"tau": tau, "a": a, "prescribed": masks}, {"tau": policy}]
    for every in (1, 3):
        for way in ways:
            options = {"dt": DT, "every": every, "forces": True}
            found = ld.rollout(pendulum, q, np.ones(2), steps=STEPS, last=last, **way, **options)
            for k, n in enumerate(last):
                cut = {key: x if callable(x) else x[:n] if key == "prescribed" else x[k, :n] for key, x in way.items()}
                alone = ld.rollout(pendulum, q[k], np.ones(2), steps=int(n), **cut, **options)
                shown = np.isin(alone.t, found.t)              # every run alone has a row at its end
                rows = np.isin(found.t, alone.t)
                for what in ("q", "v", "a", "tau"):
                    off = np.abs(getattr(found, what)[k, rows] - getattr(alone, what)[shown]).max()
                    assert worst("rollout: forces of runs of different length", off, what) < 1e-12


def test_results_go_to_given_arrays_and_other_libraries_give_theirs(pendulum):
    class Tensor:
        def __init__(self, x): self.x = x
        def __dlpack__(self, **options): return self.x.__dlpack__(**options)
        def __dlpack_device__(self): return self.x.__dlpack_device__()
    q, out = np.array([[0.1, 0.2], [0.3, 0.4]]), (np.empty((2, STEPS + 1, 2)), np.empty((2, STEPS + 1, 2)))
    found = ld.rollout(pendulum, Tensor(q), Tensor(np.zeros((2, 2))), dt=DT, steps=STEPS, out=out)
    assert np.shares_memory(found.q, out[0]) and not found.q.flags.writeable and out[0].flags.writeable
    assert np.array_equal(found.q, out[0]) and np.array_equal(out[1], ld.rollout(pendulum, q, np.zeros(2), dt=DT, steps=STEPS).v)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"method": "euler"}, ld.UsageError, "method must be rk4 or semi_implicit, got 'euler'"),
    ({"dt": "1"}, ld.UsageError, "dt must be a number of seconds > 0, got '1'"),
    ({"steps": None}, ld.UsageError, "steps must be an integer >= 1, got None"),
    ({"last": ["a"]}, ld.UsageError, "last is the number of steps of each run: expected integers from 1 to 12, got <U1"),
    ({"feedback": 3}, ld.UsageError, "feedback must be a Feedback, got int"),
    ({"dt": 0.0}, ld.UsageError, "dt must be a number of seconds > 0, got 0.0"),
    ({"steps": 0}, ld.UsageError, "steps must be an integer >= 1, got 0"),
    ({"every": 1.5}, ld.UsageError, "every must be an integer >= 1, got 1.5"),
    ({"q0": [0.0, np.nan]}, ld.ConfigurationError, r"q0\[1\] \(elbow\) is not finite: got nan"),
    ({"tau": np.zeros((3, 5, 2))}, ld.ShapeError, "tau has the wrong number of steps: expected 12 or 1, got 5"),
    ({"q0": np.zeros((3, 2)), "v0": np.zeros((4, 2))}, ld.ShapeError, r"axes of runs do not match: q0 \(3, 2\), v0 \(4, 2\)"),
    ({"out": (np.zeros((3, 2)), np.zeros((13, 2)))}, ld.ShapeError,
     r"out\[0\] has the wrong shape: expected \(13, 2\), got \(3, 2\)"),
    ({"q0": np.zeros((0, 2)), "last": []}, ld.UsageError,
     "last is the number of steps of each run: expected integers from 1 to 12, got float64"),
    ({"last": [0]}, ld.UsageError, "last is the number of steps of each run: expected integers from 1 to 12, got int64 from "
                                   "0 to 0"),
    ({"tau": lambda t, q, v: np.zeros(3)}, ld.ShapeError,
     r"the result of the policy has the wrong shape: expected \(…, 2\), got \(3,\)"),
    ({"q0": np.zeros((STEPS, 2)), "feedback": ld.Feedback.pd([1, 1], [1, 1], np.zeros((STEPS, 2)))}, ld.ShapeError,
     r"feedback.setpoint_q may have a state for each run or for each step, as there are 12 of both, got \(12, 2\): write "
     r"x\[None\] for each step, np.repeat\(x\[\.\.\., None, :\], 12, axis=-2\) for each run"),
    ({"feedback": ld.Feedback(np.zeros((2, 3)), [0, 0])}, ld.ShapeError,
     r"feedback.gain has the wrong shape: expected \(…, 2, 4\), got \(2, 3\)"),
])
def test_what_is_refused(pendulum, arguments, error, message):
    arguments = {"q0": np.zeros(2), "v0": np.zeros(2), "tau": None, "dt": DT, "steps": STEPS} | arguments
    with pytest.raises(error, match=message):
        ld.rollout(pendulum, **arguments)


def test_targets_where_there_are_as_many_runs_as_steps(pendulum):
    q, about = np.zeros((STEPS, 2)), np.linspace(0.0, 1.0, 2 * STEPS).reshape(STEPS, 2)

    def end(target, start=q):
        return ld.rollout(pendulum, start, np.zeros(2), dt=DT, steps=STEPS, every=STEPS,
                          feedback=ld.Feedback.pd([9.0, 9.0], [1.0, 1.0], target)).q[:, -1]
    assert np.array_equal(end(np.repeat(about[..., None, :], STEPS, axis=-2))[:-1], end(about[:-1], q[:-1]))      # of each run
    assert np.array_equal(end(about[None])[:-1], end(about, q[:-1]))                                              # of each step


def test_gains_that_do_not_match():
    with pytest.raises(ld.ShapeError, match=r"kp and kd have the wrong shape.*got numbers"):
        ld.Feedback.pd(50.0, 5.0, [0.0, 0.0])
    with pytest.raises(ld.ShapeError, match=r"kp and kd do not match: expected \(…, nv\), got \(3,\) and \(2,\)"):
        ld.Feedback.pd([1.0, 2.0, 3.0], [1.0, 2.0], [0.0, 0.0])


@pytest.mark.parametrize(("arguments", "message"), [
    ({"tau": lambda t, q, v: v}, "a policy requires generated code, which is not available for rk4 with this robot .*; use "
                                 "semi_implicit, whose code is four times shorter, or tau as an array"),
    ({"method": "semi_implicit"}, "method 'semi_implicit' requires generated code, .*; use rk4 with tau as an array"),
    ({}, "the adjoint requires generated code, which is not available for rk4 with this robot")])
def test_what_needs_straight_line_code(arguments, message, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    with pytest.raises(ld.UsageError, match=message):
        ld.rollout(ld.load(PENDULUM), np.zeros(2), np.zeros(2), dt=DT, steps=STEPS, **arguments).adjoint()


@pytest.mark.parametrize("code", ["auto", "generic"])
@pytest.mark.parametrize("run", [0, 2])
def test_quaternions_of_unit_norm_are_asked_for(monkeypatch, run, code):
    """Each run is checked, also if its robot is computed by generic kernels."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    model, q, v, _ = given("ball", 3)
    q[run] *= 1.01
    with pytest.raises(ld.ConfigurationError, match=f"in run {run} is not of unit norm: expected .q. = 1 within .*, got 1.01 "):
        ld.rollout(model, q, v, dt=DT, steps=2)
