"""Hybrid rollouts: joints whose acceleration is given, in a mask that changes; step after step by public functions, and back."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.constraints import _project
from rollouts.test_rollout import DT, STEPS, stepped
from rollouts.test_rollout_adjoint import differences
from zoo import model_of, state


def given(name, runs=3):
    model, rng = model_of(name), np.random.default_rng(0)
    q, v, _, _ = state(model, 3, (runs,))
    tau, a = rng.standard_normal((2, runs, STEPS, model.nv))
    masks = np.repeat(rng.random((3, model.nv)) < 0.5, STEPS // 3, axis=0)
    masks[4:8] = ~masks[:4]
    return model, q, 0.3 * v, tau, a, masks


def by_public_functions(model, q, v, tau, a, masks, monkeypatch):
    """Return `stepped` of a robot whose forward dynamics are hybrid."""
    def hybrid(model, q, v, step):
        return ld.hybrid_dynamics(model, q, v, a[:, step], tau[:, step], masks[step])[0]
    monkeypatch.setattr(ld, "forward_dynamics", hybrid)
    return stepped(model, q, v, lambda step: step, "semi_implicit")


@pytest.mark.parametrize("name", ["universal", "ball", "every kind, floating"])
def test_steps_are_those_of_hybrid_dynamics(name, monkeypatch, worst):
    model, q, v, tau, a, masks = given(name)
    found = ld.rollout(model, q, v, tau, a=a, prescribed=masks, dt=DT, steps=STEPS, method="semi_implicit", forces=True)
    for k in (0, 4, STEPS - 1):
        # at the output before step k, what the step begins with
        acceleration, force = ld.hybrid_dynamics(model, found.q[:, k], found.v[:, k], a[:, k], tau[:, k], masks[k])
        for what, x, y in (("a", found.a[:, k], acceleration), ("tau", found.tau[:, k], force)):
            assert worst("hybrid rollout: forces", np.abs(x - y).max() / np.abs(y).max(), f"{name}: {what}") < 1e-11
    expected = by_public_functions(model, q, v, tau, a, masks, monkeypatch)
    for what, x, y in zip("qv", (found.q[:, -1], found.v[:, -1]), expected, strict=True):
        assert worst("hybrid rollout", np.abs(x - y).max() / np.abs(y).max(), f"{name}: {what}") < 1e-11


def test_masks_and_accelerations_as_one(worst):
    """One mask for all steps, one acceleration for all runs; a policy and single runs are the same."""
    model, q, v, tau, _, _ = given("universal")
    mask, a = np.arange(model.nv) % 2 == 0, np.linspace(-1, 1, model.nv)
    options = {"dt": DT, "steps": STEPS, "prescribed": mask, "a": a}
    found = ld.rollout(model, q, v, tau, **options)
    drift = found.v[:, -1] - v - STEPS * DT * a
    assert worst("hybrid rollout: velocity", np.abs(drift[:, mask]).max()) < 1e-13
    asked = ld.rollout(model, q, v, lambda t, q, v: tau[:, round(t / DT)], **options)
    assert np.array_equal(asked.q, found.q)
    pendulum, start = ld.load("robots/double_pendulum.yaml"), np.array([0.3, -0.2])
    each = {"dt": DT, "steps": STEPS, "prescribed": [True, False], "a": np.tile([1.0, np.nan], (STEPS, 1))}
    wide = ld.rollout(pendulum, start, start, [np.nan, 0.0], **each)          # what is not read may be anything
    assert np.allclose(wide.v[:, 0], 0.3 + wide.t, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["universal", "ball"])
def test_a_cost_changes_as_the_adjoint_says(name, worst):
    model, q, v, tau, a, masks = given(name)
    rng = np.random.default_rng(1)
    x = [rng.standard_normal(y.shape) for y in (v, v, tau, a)]
    d_q, d_v = rng.standard_normal((2, 3, STEPS + 1, model.nv))
    options = {"dt": DT, "steps": STEPS, "method": "semi_implicit", "prescribed": masks, "passive": False,
               "last": np.array([STEPS, 8, 5])}

    def moved(e):
        return ld.rollout(model, ld.integrate(model, q, e * x[0]), v + e * x[1], tau + e * x[2], a=a + e * x[3], **options)
    run = moved(0.0)
    whole = np.isfinite(run.v[..., :1])

    def cost(e):
        now = moved(e)
        d = ld.difference(model, np.where(whole, run.q, model.neutral()), np.where(whole, now.q, model.neutral()))
        return (d_q * d).sum(axis=(1, 2)) + np.where(whole, d_v * now.v, 0.0).sum(axis=(1, 2))
    found = run.adjoint(d_q, d_v)
    parts = zip((found.q0, found.v0, found.tau, found.a), x, strict=True)
    rate, expected = sum((y * z).reshape(3, -1).sum(axis=1) for y, z in parts), differences(cost)
    assert worst("adjoint of a hybrid rollout", np.abs(rate - expected).max() / np.abs(expected).max(), name) < 1e-9
    assert not found.tau[:, masks].any() and not found.a[:, ~masks].any()


def test_a_driven_crank(worst):
    """A four-bar whose crank has a given acceleration, for a while: by constrained hybrid dynamics and projections."""
    model = ld.load("robots/four_bar.yaml")
    q = ld.project_configuration(model, ld.assemble(model, model.neutral()).q, tolerance=1e-15)
    v, masks = ld.project_velocity(model, q, np.ones(model.nv)), np.zeros((20, model.nv), dtype=bool)
    masks[:10, model.v_index("crank")] = True
    found = ld.rollout(model, q, v, dt=DT, steps=20, method="semi_implicit", prescribed=masks, a=2.0 * masks)
    for k in range(20):
        a = ld.constrained_hybrid_dynamics(model, q, v, 2.0 * masks[k], np.zeros(model.nv), masks[k]).a
        v = v + DT * a
        q = _project(model, ld.integrate(model, q, DT * v), None, None, None, 1e-15)          # Newton's steps, as in a run
        v = ld.project_velocity(model, q, v)
    assert worst("hybrid rollout of a mechanism", np.abs(np.r_[found.q[-1] - q, found.v[-1] - v]).max()) < 1e-12


def test_prescribed_coordinates_that_constraints_bind_are_refused():
    model = ld.load("robots/four_bar.yaml")
    q, masks = ld.assemble(model, model.neutral()).q, np.zeros((STEPS, model.nv), dtype=bool)
    masks[:, model.v_index("crank")] = masks[3:, model.v_index("knee")] = True
    with pytest.raises(ld.UsageError, match="make the prescribed coordinates dependent: got crank, knee in step 3 "):
        ld.rollout(model, q, np.zeros(model.nv), dt=DT, steps=STEPS, prescribed=masks, method="semi_implicit")


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"prescribed": [1, 0]}, ld.UsageError, r"prescribed must be a mask: expected booleans \(nv,\) or .*got int64"),
    ({"prescribed": np.zeros((3, 2), bool)}, ld.ShapeError,
     r"prescribed has the wrong shape: expected \(2,\) or \(12, 2\), got \(3, 2\)"),
    ({"prescribed": [True, False], "a": [np.nan, 0.0]}, ld.ConfigurationError, r"a\[0, 0\] \(.*\) is not finite: got nan"),
    ({"prescribed": [True, False], "a": np.zeros((3, 2))}, ld.ShapeError,
     "a has the wrong number of steps: expected 12 or 1, got 3"),
    ({"a": [5.0, 5.0]}, ld.UsageError, "a requires `prescribed`, the mask of the coordinates")])
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ld.rollout(ld.load("robots/double_pendulum.yaml"), np.zeros(2), np.zeros(2), dt=DT, steps=STEPS, **arguments)
