"""Singular configurations in which no acceleration satisfies the constraints."""
from __future__ import annotations

import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import CASES


@pytest.fixture(scope="module")
def flat():
    """A parallelogram on a line, where two branches meet."""
    return ld.build(CASES["parallelogram, flat"].robot)


@pytest.mark.parametrize("many", [False, True])
def test_a_velocity_along_no_branch_is_an_error(flat, many):
    v = ld.project_velocity(flat, np.zeros(3), [1.0, 0.0, 0.0])
    shape = (2, 3) if many else (3,)
    with pytest.raises(ld.ComputationError, match=r"no acceleration satisfies the constraint 'pin'.*pin.v.*none of the branches"):
        ld.constrained_forward_dynamics(flat, np.zeros(shape), np.broadcast_to(v, shape).copy(), np.zeros(shape))


def test_rest_is_computed_in_the_same_configuration(flat):
    found = ld.constrained_forward_dynamics(flat, np.zeros(3), np.zeros(3), np.zeros(3))
    assert np.isfinite(found.a).all()


AWAY = np.array([0.1, -0.1, 0.1])
SINGULAR = "the rank of the constraints is 1 there, and 2 near it"


@pytest.mark.parametrize("compute", [
    lambda model, q, z: [ld.constrained_forward_dynamics(model, q, z, z) for _ in range(3)],          # the later ones are quicker
    lambda model, q, z: ld.constrained_forward_dynamics(model, [q, q + AWAY], z, z),
    lambda model, q, z: ld.constrained_inverse_dynamics(model, q, z, z, model.v_names, criterion="least_torque"),
    lambda model, q, z: ld.linearize(model, q, z, z), lambda model, q, z: ld.find_equilibrium(model, q),
    lambda model, q, z: ld.rollout(model, [q + AWAY, q], z, dt=1e-3, steps=2)])
def test_numbers_of_a_singular_configuration_are_a_warning(flat, compute):
    """They were those of a mechanism with two degrees of freedom."""
    model = ld.build(flat.description)                         # with an empty memory
    for q in (np.zeros(3), 1e-6 * np.array([1.0, -1.0, 1.0])):
        with pytest.warns(ld.LiedynWarning, match=SINGULAR):
            compute(model, q, np.zeros(3))
    with pytest.warns(ld.LiedynWarning, match=SINGULAR):
        [compute(model, q, np.zeros(3)) for q in (np.array([0.5, -0.5, 0.5]), np.zeros(3))]


@pytest.mark.parametrize("robot", ["robots/bennett.yaml", "robots/four_bar.yaml"])
@pytest.mark.filterwarnings("error::liedyn.LiedynWarning")
def test_redundant_constraints_are_no_warning(robot):
    model = ld.load(robot)
    q, z = ld.assemble(model).q, np.zeros(model.nv)
    for _ in range(3):
        ld.constrained_forward_dynamics(model, q, z, z)
        ld.constrained_inverse_dynamics(model, q, z, z, model.v_names[:1])
    ld.constrained_forward_dynamics(model, [q, q], z, z)
    ld.rollout(model, q, z, dt=1e-3, steps=2)


def test_an_open_state_is_a_warning(flat):
    v = ld.project_velocity(flat, np.zeros(3), [1.0, 0.0, 0.0])
    with pytest.warns(ld.LiedynWarning, match="'pin' is not met: its row .* since q or v are open"):
        ld.constrained_forward_dynamics(flat, np.zeros(3), v + np.array([0.0, 1e-3, 0.0]), np.zeros(3))


def test_states_of_seven_digits_are_closed():
    """Of a Bennett linkage, whose equations depend on each other in closed configurations only."""
    model = ld.load("robots/bennett.yaml")
    q = ld.assemble(model).q
    v = ld.project_velocity(model, q, np.ones(3))
    states = (q, v), (q.round(7), v.round(7))
    exact, rounded = (ld.constrained_forward_dynamics(model, *state, np.zeros(3)).a for state in states)
    np.testing.assert_allclose(rounded, exact, atol=1e-4)
