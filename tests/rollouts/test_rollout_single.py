"""Rollouts in single precision: nearly those of double precision, which repeats runs that end early."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from degenerate_mechanisms import wrist
from liedyn.codegen.specialize import is_supported
from zoo import model_of, state

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read generated code")
MODEL, ROBOTS = model_of("ball"), Path(__file__).parents[2] / "robots"
SINGLE = {"dtype": "float32"}


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_states_are_nearly_those_of_double_precision(method):
    q, v, _, tau = (x[:, None] if k == 3 else x for k, x in enumerate(state(MODEL, 1, (20,))))
    options = {"dt": 1e-3, "steps": 30, "every": 10, "method": method, "forces": True}
    with generated_code():
        exact, found = ld.rollout(MODEL, q, v, tau, **options), ld.rollout(MODEL, q, v, tau, **options, **SINGLE)
    for name in ("q", "v", "a", "tau"):
        x, y = getattr(found, name), getattr(exact, name)
        assert x.dtype == np.float64 and 0.0 < np.abs(x - y).max() < 1e-4 * np.abs(y).max(), name
    for columns in MODEL.quaternions.values():
        assert np.abs(np.linalg.norm(found.q[..., columns], axis=-1) - 1.0).max() < 1e-15
    assert found.complete.all() and not found.reasons


def test_runs_that_end_early_are_repeated_in_double_precision():
    model, rng = wrist(), np.random.default_rng(3)
    q, v, tau = rng.uniform(-1.0, 1.0, (3, 20, 3))
    tau = tau[:, None]
    q[7, 1], v[7] = np.pi / 2 - 1e-3, 0.0                       # inertia of 1e-6 of that of the hand
    options = {"dt": 1e-5, "steps": 10, "every": 10}
    with generated_code():
        exact, found = ld.rollout(model, q, v, tau, **options), ld.rollout(model, q, v, tau, **options, **SINGLE)
        other = ld.rollout(model, q, v, tau, method="semi_implicit", **options, **SINGLE)
    assert found.complete.all() and np.abs(found.v[7] - exact.v[7]).max() < 1e-9 * np.abs(exact.v[7]).max()
    assert 1e-12 < np.abs(found.v[6] - exact.v[6]).max() < 1e-4
    assert not other.complete[7] and other.complete.sum() == 19 and "(in single precision)" in other.reasons[7]


def test_robots_without_generated_code_are_a_warning(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model = ld.load(ROBOTS / "double_pendulum.yaml")
    with pytest.warns(ld.LiedynWarning, match="in single precision requires generated code, .* is computed in double") as caught:
        found = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=5, **SINGLE)
    assert [x.message.code for x in caught] == ["double-precision"]
    assert np.array_equal(found.q, ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=5).q)


UNSUPPORTED = {"events": {"events": {}}, "contacts": {"contacts": {}}, "policies": {"tau": lambda t, q, v: v},
               "contacts, events": {"events": {}, "contacts": {}}}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_named(name):
    model = ld.load(ROBOTS / "double_pendulum.yaml")
    with pytest.raises(ld.UsageError, match=f"^a rollout with {name} is not available in single precision; use dtype"):
        ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=5, **UNSUPPORTED[name], **SINGLE)


def test_a_stepper_takes_the_steps_of_a_rollout():
    q, v, _, tau = state(MODEL, 1, (20,))
    options = {"dt": 1e-3, "steps": 5, "method": "semi_implicit", **SINGLE}
    with generated_code():
        rollout, stepper = ld.rollout(MODEL, q, v, tau[:, None], **options, every=5), ld.Stepper(MODEL, q0=q, v0=v, **options)
        x, y = stepper.step(stepper.q, stepper.v, tau)
        assert np.abs(x - rollout.q[:, -1]).max() < 1e-15 and np.array_equal(y, rollout.v[:, -1])
        exact = ld.Stepper(MODEL, 1e-3, q0=x, v0=y, steps=5, method="semi_implicit").step(x, y, tau)
        x, y = stepper.step(x, y, tau)
    for columns in MODEL.quaternions.values():
        assert np.abs(np.linalg.norm(x[:, columns], axis=1) - 1.0).max() < 1e-15
    assert 0.0 < np.abs(y - exact[1]).max() < 1e-4 * np.abs(y).max()
    with pytest.raises(ld.UsageError, match="a Stepper with contacts is not available in single precision; use dtype"):
        ld.Stepper(MODEL, 1e-3, contacts={}, **SINGLE)
    with pytest.raises(ld.ArgumentError, match="Stepper: dtype must be float64 or float32, got 'half'"):
        ld.Stepper(MODEL, 1e-3, dtype="half")


def test_loops_variants_and_other_types_are_errors():
    model, four_bar = ld.load(ROBOTS / "double_pendulum.yaml"), ld.load(ROBOTS / "four_bar.yaml")
    options = {"dt": 1e-3, "steps": 5}
    with pytest.raises(ld.UsageError, match="a rollout with loops or couplings is not available"):
        ld.rollout(four_bar, four_bar.neutral(), np.zeros(four_bar.nv), **options, **SINGLE)
    with pytest.raises(ld.UsageError, match="a rollout with Variants is not available"):
        ld.rollout(ld.Variants([model, model]), [0.3, 0.0], [0.0, 0.0], **options, **SINGLE)
    with pytest.raises(ld.ArgumentError, match="rollout: dtype must be float64 or float32, got 'float16'"):
        ld.rollout(model, [0.3, 0.0], [0.0, 0.0], **options, dtype="float16")
