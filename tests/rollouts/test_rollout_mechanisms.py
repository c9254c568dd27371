"""Rollouts of mechanisms: by public functions, by single runs, through a singular configuration; their adjoint."""
import dataclasses
import json
import warnings

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.constraints import _project
from liedyn.rollouts import inputs
from rollouts.test_rollout_adjoint import differences

DT, STEPS = 1e-3, 20


def mechanism(name, runs=3, seed=0):
    """Return the robot, closed states and generalized forces of some runs."""
    model, rng = ld.load(f"robots/{name}.yaml"), np.random.default_rng(seed)
    closed = ld.project_configuration(model, ld.assemble(model, model.neutral()).q, tolerance=1e-15)
    q = np.tile(closed, (runs, 1))
    v = ld.project_velocity(model, q, 0.3 * rng.standard_normal((runs, model.nv)))
    return model, q, v, 0.1 * rng.standard_normal((runs, STEPS, model.nv))


def stepped(model, q, v, tau):
    """Step with symplectic Euler and a projection onto the constraints, by public functions."""
    for k in range(STEPS):
        v = v + DT * ld.constrained_forward_dynamics(model, q, v, tau[:, k]).a
        q = _project(model, ld.integrate(model, q, DT * v), None, None, None, 1e-15)          # Newton's steps, as in a run
        v = ld.project_velocity(model, q, v)
    return q, v


# planar with dependent rows, spatial and overconstrained, rolling without slip, couplings, ball joints and a free platform
@pytest.mark.parametrize("name", ["four_bar", "bennett", "rolling_disc", "hand", "stewart"])
def test_steps_are_those_of_public_functions(name, worst):
    model, q, v, tau = mechanism(name)
    found = ld.rollout(model, q, v, tau, dt=DT, steps=STEPS, method="semi_implicit", every=STEPS)
    assert found.complete.all()
    for what, x, y in zip("qv", (found.q[:, -1], found.v[:, -1]), stepped(model, q, v, tau), strict=True):
        assert worst("rollout of a mechanism", np.abs(x - y).max() / np.abs(y).max(), f"{name}: {what}") < 1e-11
    assert worst("rollout: residual of loops", np.abs(ld.constraint_residual(model, found.q)).max(), name) < 1e-14


@pytest.mark.parametrize("name", ["four_bar", "bricard"])
def test_rk4_is_that_of_single_runs(name, monkeypatch, worst):
    model, q, v, tau = mechanism(name)
    options = {"dt": DT, "steps": STEPS, "every": 10, "forces": True}
    found = ld.rollout(model, q, v, tau, **options)
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    alone = ld.rollout(ld.load(f"robots/{name}.yaml"), q, v, tau, **options)
    assert not {"singular-configuration"} & {warning.code for warning in (*found.warnings, *alone.warnings)}
    # single runs go back onto the constraints where these are open by 1e-12, which is a rate of 1e-9 over a step
    for what in ("q", "v", "a", "tau"):
        x, y = getattr(found, what), getattr(alone, what)
        assert worst("rollout of a mechanism: alone", np.abs(x - y).max() / max(1.0, np.abs(y).max()), f"{name}: {what}") < 1e-9


def test_runs_whose_rows_become_dependent_are_single_runs(monkeypatch):
    """A repeated row represents rows that become dependent during a run."""
    model, q, v, tau = mechanism("four_bar")
    options = {"dt": DT, "steps": STEPS}
    expected = ld.rollout(model, q, v, tau, **options)
    monkeypatch.setattr(inputs, "independent_equations", lambda *_: ((2, 2),) * 3)
    found = ld.rollout(model, q, v, tau, **options)
    assert found.complete.all() and np.abs(found.q - expected.q).max() < 1e-9
    assert np.isnan(found.adjoint(None, np.ones((3, STEPS + 1, 3))).q0).all()
    other = ld.rollout(model, q, v, tau, method="semi_implicit", **options)
    assert "singular configuration" in other.reasons[0] and np.array_equal(other.ended_at, np.zeros(3))


@pytest.mark.parametrize("code", ["auto", "generic"])
def test_variants_of_a_mechanism(code, monkeypatch, worst):
    """Each run is that of its robot alone: with another gravity, and with other bars, for which it is closed otherwise."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    first, *_ = mechanism("four_bar")
    longer = [joint if joint.name != "knee" else dataclasses.replace(joint, origin=dataclasses.replace(
        joint.origin, translation=(0.105, 0.0, 0.0))) for joint in first.description.joints]
    robots = [first, ld.load("robots/four_bar.yaml", gravity=(0, 0, -1)),
              ld.build(dataclasses.replace(first.description, joints=tuple(longer)))]
    q = np.array([ld.project_configuration(model, ld.assemble(model, model.neutral()).q, tolerance=1e-15) for model in robots])
    v = np.array([ld.project_velocity(model, x, np.ones(3)) for model, x in zip(robots, q, strict=True)])
    found = ld.rollout(ld.Variants(robots), q, v, dt=DT, steps=STEPS)
    for k, model in enumerate(robots):
        alone = ld.rollout(model, q[k], v[k], dt=DT, steps=STEPS)
        assert worst("rollout of a mechanism: variants", np.abs(found.q[k] - alone.q).max(), f"{code} {k}") < 1e-12
    with pytest.raises(ld.ConfigurationError, match="q0 of run 2 violates the constraints"):
        ld.rollout(ld.Variants(robots), q[0], v[0], dt=DT, steps=STEPS)


def test_no_run_at_all():
    found = ld.rollout(ld.load("robots/four_bar.yaml"), np.zeros((0, 3)), np.zeros(3), dt=DT, steps=STEPS, method="semi_implicit")
    assert found.q.shape == (0, STEPS + 1, 3)


def test_a_singular_configuration_is_passed(worst):
    """All bars lie in one line at 1.6 s: inertia carries them straight through, as the pendulum of mechanisms.py."""
    model, turns = ld.load("robots/n_four_bar.yaml"), np.array([-1.0, 1.0, -1.0, 1.0, -1.0])
    found = ld.rollout(model, model.neutral(), turns, dt=1e-3, steps=1700, every=1700)
    assert found.q[-1] @ turns / 5 > 1.6 * np.pi
    energy = sum(ld.energy(model, found.q, found.v))
    assert worst("rollout: energy through a singularity", np.ptp(energy) / np.abs(energy).max()) < 1e-5


@pytest.mark.parametrize("runs", [(), (1,), (3,)])
def test_a_singular_start_is_in_the_notes(runs):
    """It was a warning only, which a printed result does not show. Repeated rollouts report it again."""
    model = ld.load("robots/n_four_bar.yaml")
    q = np.broadcast_to(model.neutral(), (*runs, model.nq)).copy()
    q[(-1,) if runs else ()] = np.pi / 2 * np.array([-1.0, 1.0, -1.0, 1.0, -1.0])
    for _ in range(2):
        with pytest.warns(ld.LiedynWarning, match="is singular: the rank") as told:
            found = ld.rollout(model, q, np.zeros(model.nv), dt=1e-3, steps=5)
        where = "the configuration of run 2 is" if runs == (3,) else "the configuration is"
        assert str(found.warnings[0]).startswith(where) and len(told) == len(found.warnings)
        assert "warning: " + str(found.warnings[0]) in str(found)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_a_cost_changes_as_the_adjoint_says(method, worst):
    model, q, v, tau = mechanism("five_bar")
    rng = np.random.default_rng(1)
    x = ld.project_velocity(model, q, rng.standard_normal(v.shape))
    dv, dtau, (d_q, d_v) = rng.standard_normal(v.shape), rng.standard_normal(tau.shape), rng.standard_normal(
        (2, 3, STEPS + 1, model.nv))

    def start(e):
        moved = ld.project_configuration(model, ld.integrate(model, q, e * x), tolerance=1e-15)
        return moved, ld.project_velocity(model, moved, v + e * dv), tau + e * dtau

    def runs(e): return ld.rollout(model, *start(e), dt=DT, steps=STEPS, method=method)
    first = runs(0.0)
    found = first.adjoint(d_q, d_v)
    by_q, by_v = (differences(f) for f in (lambda e: ld.difference(model, q, start(e)[0]), lambda e: start(e)[1]))
    rate = (found.q0 * by_q + found.v0 * by_v).sum(axis=1) + (found.tau * dtau).sum(axis=(1, 2))
    expected = differences(lambda e: (d_q * ld.difference(model, first.q, runs(e).q)).sum(axis=(1, 2))
                           + (d_v * runs(e).v).sum(axis=(1, 2)))
    assert worst("adjoint of a mechanism", np.abs(rate - expected).max() / np.abs(expected).max(), method) < 1e-9


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_the_adjoint_of_runs_of_different_length_is_that_of_each(name, method, worst):
    """Also next to a run that ends early."""
    model, q, v, tau = mechanism(name, 4)
    tau[3, 4] = 1e300
    last = np.array([STEPS, 7, 1, STEPS])
    d_q, d_v = np.random.default_rng(1).standard_normal((2, 4, STEPS + 1, model.nv))
    found = ld.rollout(model, q, v, tau, dt=DT, steps=STEPS, last=last, method=method).adjoint(d_q, d_v)
    assert np.isnan(found.q0[3]).all()
    for k, n in enumerate(last[:3]):
        alone = ld.rollout(model, q[k], v[k], tau[k, :n], dt=DT, steps=int(n), method=method).adjoint(
            d_q[k, :n + 1], d_v[k, :n + 1])
        for what, x, y in (("q0", found.q0[k], alone.q0), ("v0", found.v0[k], alone.v0), ("tau", found.tau[k, :n], alone.tau)):
            assert worst("adjoint of runs of different length", np.abs(x - y).max() / np.abs(y).max(), what) < 1e-12
        assert not found.tau[k, n:].any()


def test_policies_see_mechanisms():
    model, q, v, _ = mechanism("four_bar")
    seen = []
    found = ld.rollout(model, q, v, lambda t, q, v: seen.append(t) or -0.1 * v, dt=DT, steps=5, method="semi_implicit")
    assert found.complete.all() and np.allclose(seen, DT * np.arange(5))


@pytest.mark.parametrize(("change", "message"), [
    ("q", "q0 of run 1 violates the constraints by .* \\(pin.*\\), more than 1e-06 rad or lengths of the loop; use "
          "ld.project_configuration, or assemble"),
    ("v", r"v0 of run 1 violates the constraints by .*; use ld.project_velocity")])
def test_states_off_the_constraints_are_refused(change, message):
    model, q, v, _ = mechanism("four_bar")
    (q if change == "q" else v)[1, 0] += 0.3
    with pytest.raises(ld.ConfigurationError, match=message):
        ld.rollout(model, q, v, dt=DT, steps=2)


def test_followers_off_their_couplings_are_refused_by_rollouts_and_steppers():
    """A stepper replaced them without a message. What is rounding passes; so does the state of a run that has ended."""
    model, q, v, _ = mechanism("hand")
    stepper = ld.Stepper(model, DT, q0=q, v0=v, method="semi_implicit")
    wrong, k = q.copy(), int(np.flatnonzero(model.follows)[0])
    wrong[1, k] += 1e-3
    text = rf"q0? of run 1 violates the constraints by .* \({model.v_names[k]}.*\), more than 1e-06 .*; use ld.expand"
    with pytest.raises(ld.ConfigurationError, match=text):
        ld.rollout(model, wrong, v, dt=DT, steps=2, method="semi_implicit")
    with pytest.raises(ld.ConfigurationError, match=text):
        stepper.step(wrong, v)
    np.testing.assert_array_equal(stepper.q, q)                                 # it is not changed
    with pytest.raises(ld.ConfigurationError, match="q of run 0 violates the constraints"):
        stepper.step(wrong[1], v[1])                                            # one state for all runs
    ended = q.copy()
    ended[0] = np.nan
    wrong[1, k] = q[1, k] + 1e-8                                                # off by less than the tolerance
    expected = stepper.step(q.copy(), v)[0].copy()
    for given in (wrong, ended):
        found = stepper.step(given, v)[0]
        np.testing.assert_array_equal(found[1:], expected[1:])


def test_driven_loops_are_refused():
    model = ld.load("robots/delta.yaml", loops="robots/delta_guided.loops.yaml")
    with pytest.raises(ld.UsageError, match="the loop guide is driven; a rollout has no motion for it"):
        ld.rollout(model, model.neutral(), np.zeros(model.nv), dt=DT, steps=2)


def hinge(parent, child, x):
    return {"type": "continuous", "parent": parent, "child": child, "axis": [0, 1, 0], "origin": {"xyz": [x, 0, 0]}}


PARALLELOGRAM = {
    "name": "parallelogram", "gravity": [0, 0, 0],
    "links": {name: {"mass": 1.0, "com": [x, 0, 0], "inertia": [0.01, 0.02, 0.02]}
              for name, x in (("crank", 0.1), ("coupler", 0.3), ("rocker", 0.1))},
    "joints": {"crank": hinge("world", "crank", 0), "knee": hinge("crank", "coupler", 0.2),
               "rocker": hinge("world", "rocker", 0.6)},
    "loops": {"pin": {"type": "revolute", "a": {"link": "coupler", "xyz": [0.6, 0, 0]},
                      "b": {"link": "rocker", "xyz": [0.2, 0, 0]}, "axis": [0, 1, 0]}}}


@pytest.mark.parametrize("speed, steps, passes", [(2.0, 1000, True), (37.0, 200, True), (0.1, 1000, False)])
def test_a_singular_configuration_that_the_first_run_passes_is_told(tmp_path, speed, steps, passes):
    """The change point of a parallelogram, where all bars lie on one line: at a step, or between two steps."""
    (tmp_path / "robot.yaml").write_text(json.dumps(PARALLELOGRAM))
    model = ld.load(tmp_path / "robot.yaml")
    q = ld.assemble(model, [1.2, -1.2, 1.2], fixed=["crank"]).q
    v = ld.project_velocity(model, q, [-speed, speed, -speed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = ld.rollout(model, q[None], v[None], dt=DT, steps=steps, every=steps // 50)
    told = [warning for warning in runs.warnings if warning.code == "singular-configuration"]
    assert bool(told) == passes
    if told:
        crossed = runs.t[np.argmax(runs.q[0, :, 0] < 0.0)]
        assert abs(float(str(told[0]).split("t = ")[1].split(" s")[0]) - crossed) < 0.05
