"""Robots with loops in independent coordinates: motions that satisfy the constraints, forces, base parameters, identification."""
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.loop_reduction import loop_reduction, projected

ROBOTS = Path(__file__).parents[2] / "robots"
FILES = {"four_bar.yaml": ["crank"], "five_bar.yaml": ["left", "right"], "n_four_bar.yaml": None, "gripper.urdf": None,
         "delta.yaml": ["motor_1", "motor_2", "motor_3"]}


@cache
def moving(name):
    """The robot, its reduction and ten states."""
    model = ld.load(ROBOTS / name)
    reduction = loop_reduction(model)
    return model, reduction, reduction.random_states(np.random.default_rng(3), 10)


@pytest.mark.parametrize("name", FILES)
def test_states_satisfy_the_constraints(name):
    model, reduction, (q, v, a) = moving(name)
    independent = [x for x, is_independent in zip(model.v_names, reduction.independent, strict=True) if is_independent]
    assert FILES[name] in (None, independent)
    assert np.abs(ld.constraint_residual(model, q)).max() < 1e-10
    assert np.abs(ld.constraint_velocity(model, q, v)).max() < 1e-8 * np.abs(v).max()
    A, gamma = ld.constraint_jacobian(model, q), ld.constraint_bias(model, q, v)
    assert np.abs(np.einsum("nij,nj->ni", A, a) + gamma).max() < 1e-8 * max(np.abs(a).max(), np.abs(gamma).max())
    assert np.abs(A @ reduction.projection(q)).max() < 1e-9


def test_projected_forces_are_those_of_the_motors():
    """Against inverse dynamics with multipliers."""
    model, reduction, (q, v, a) = moving("five_bar.yaml")
    tau = projected(reduction.projection(q), ld.inverse_dynamics(model.spanning_tree(), q, v, a))
    expected = ld.constrained_inverse_dynamics(model, q, v, a, actuated=model.actuated).tau
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name, count", [("four_bar.yaml", 8), ("five_bar.yaml", 13)])
def test_base_parameters_give_the_forces(name, count):
    """At other states than those that they are found from."""
    model, reduction, (q, v, a) = moving(name)
    base, tree = ld.base_parameters(model), model.spanning_tree()
    assert len(base) == count
    N = reduction.projection(q)
    tau = projected(N, ld.inverse_dynamics(tree, q, v, a, passive=False))
    found = projected(N, ld.regressor(tree, q, v, a))[:, :, base.columns] @ base.values
    np.testing.assert_allclose(found, tau, rtol=0, atol=1e-9 * np.abs(tau).max())


@cache
def four_bar_recording():
    """A four-bar with a heavier coupler than its file: t, q, v, a, and the torque of the crank with noise."""
    model = ld.load(ROBOTS / "four_bar.yaml")
    reduction, t, rng = loop_reduction(model), 0.02 * np.arange(401), np.random.default_rng(1)
    x = 0.9 + 0.8 * np.sin(2.0 * t) + 0.5 * np.sin(3.7 * t)
    guesses = [ld.assemble(model, fixed=["crank"], q_guess={"crank": x[0]}).q]
    for y in x[2::2]:
        guesses.append(reduction.closed_positions(np.r_[y, guesses[-1][1:]][None])[0])
    guess = np.stack([np.interp(t, t[::2], column) for column in np.transpose(guesses)], axis=1)
    q = reduction.closed_positions(np.column_stack([x, guess[:, 1:]]))
    rates = [1.6 * np.cos(2.0 * t) + 1.85 * np.cos(3.7 * t), -3.2 * np.sin(2.0 * t) - 6.845 * np.sin(3.7 * t)]
    q, v, a = reduction.closed(q, *(np.outer(rate, [1.0, 0.0, 0.0]) for rate in rates))
    heavy = model.with_changes(mass={"coupler": 0.6})
    tau = projected(reduction.projection(q), ld.inverse_dynamics(heavy.spanning_tree(), q, v, a))
    tau[:, 0] += 1e-3 * rng.standard_normal(len(t))
    return model, heavy, t, q, v, a, tau * np.array([1.0, np.nan, np.nan])


@pytest.mark.parametrize("derived", [False, True])
def test_a_four_bar_is_identified_from_the_torque_of_its_crank(derived):
    """Joints that are not actuated need no torques. With noise of all encoders, which contradicts the loop."""
    model, heavy, t, q, v, a, tau = four_bar_recording()
    if derived:
        fit = ld.identify(model, t, q + 1e-4 * np.random.default_rng(2).standard_normal(q.shape), tau, offset=False)
    else:
        fit = ld.identify(model, t, q, tau, v=v, a=a, offset=False)
    assert fit.verdict == "the model explains the torques"
    assert not {warning.code for warning in fit.warnings} & {"force-not-measured", "unexplained-torques"}
    true = fit.base.matrix @ ld.inertial_parameters(heavy, joints=()).values
    assert (np.abs(fit.values - true) < 4.0 * fit.deviations).all() and np.isfinite(fit.deviations).all()
    k = fit.names.index("hx.coupler")
    assert abs(fit.base.values[k] - true[k]) > 10.0 * fit.deviations[k]
    consistent = ld.consistent_parameters(fit)
    assert np.abs(consistent.misfit) < 40.0


def test_positions_that_contradict_the_loop_and_zero_offsets_are_errors():
    model, _, t, q, v, a, tau = four_bar_recording()
    with pytest.raises(ld.ConfigurationError, match="four_bar cannot be closed near these positions: check the units and signs"):
        ld.identify(model, t, q + np.array([0.0, 2.0, -2.0]), tau, v=v, a=a)
    with pytest.raises(ld.ConfigurationError, match=r"near these positions: the angles seem to be in degrees: v\.crank is 0.017"):
        ld.identify(model, t, np.rad2deg(q), tau, v=v, a=a)
    with pytest.raises(ld.UsageError, match="zero offsets of encoders are not supported for the robot four_bar, which has loops"):
        ld.identify(model, t, q, tau, v=v, a=a, zero_offsets="crank")
