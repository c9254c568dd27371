"""Mechanisms whose constraint equations consist of rounding or depend on each other: the same motion at every place, in every
unit of length, by generated code and by generic kernels, as dense equations of the known rank give it."""
import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import CASES, PLACES, dense, least_multipliers, motion, placed, projected
from liedyn.analysis.operating_point import partition_coordinates
from liedyn.dynamics.constraints.rank import clear_rounding, equation_rank, null_space
from liedyn.simulation.impacts import velocity_jump

EVERY = pytest.mark.parametrize("name", CASES)
PLACE = pytest.mark.parametrize("place", PLACES)


def close(found, expected, lengths=1.0, tolerance=1e-9):
    """Compare relative to the maximum, in units of each coordinate. Positions a kilometre away round to 1e-13 of a lever arm."""
    found, expected = np.asarray(found) / lengths, np.asarray(expected) / lengths
    assert np.abs(found - expected).max() <= tolerance * max(np.abs(expected).max(), 1.0)


@pytest.mark.parametrize("code", ["auto", "generic"])
@PLACE
@EVERY
def test_accelerations_and_multipliers(name, place, code, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", code)
    case = placed(name, place, code)
    v = projected(case, case.v)
    a, force = motion(case, v)
    found = ld.constrained_forward_dynamics(case.model, case.q, v, case.tau)
    close(found.a, a, case.lengths)
    assert found.independent.sum() == case.rank
    close(ld.constraint_forces(case.model, case.q, found.multipliers), force, case.unit**2 / case.lengths)
    close(found.multipliers, least_multipliers(case, force), case.unit**2 / case.rows)


@pytest.mark.parametrize("code", ["auto", "generic"])
@PLACE
@EVERY
def test_velocities_are_projected_in_the_metric_of_the_mass_matrix(name, place, code, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", code)
    case = placed(name, place, code)
    close(ld.project_velocity(case.model, case.q, case.v), projected(case, case.v), case.lengths)


@PLACE
@EVERY
def test_configurations_are_projected_in_every_unit(name, place):
    """A configuration that is off by a thousandth is projected to a closed one."""
    case = placed(name, place)
    off = ld.integrate(case.model, case.q, 1e-3 * case.lengths * np.cos(np.arange(case.model.nv)))
    q = ld.project_configuration(case.model, off)
    assert np.abs(ld.constraint_residual(case.model, q) / case.rows).max() < 1e-10
    close(q, ld.assemble(case.model, q).q, 1.0, 1e-6 * case.unit)


@PLACE
@EVERY
def test_mobility(name, place):
    case = placed(name, place)
    found = ld.mobility(case.model, case.q)
    assert (found.rank, found.degrees) == (case.rank, case.model.nv - case.rank)
    assert len(found.redundant) == case.model.nc - case.rank and found.gap[0] > 1e-3 > 1e-8 > found.gap[1]


@PLACE
@EVERY
def test_impulses(name, place):
    """A joint stops suddenly; the second time, its row depends on others or is at rest."""
    case = placed(name, place)
    v, unit = projected(case, case.v), np.eye(case.model.nv)[:1]
    A = clear_rounding(case.model, ld.constraint_jacobian(case.model, case.q))
    if np.linalg.matrix_rank(np.vstack([dense(case).A, unit]), tol=1e-6) == case.rank:
        pytest.skip("the first joint cannot move")
    expected = projected(case, v, unit, [0.0])
    found = velocity_jump(case.model, case.q, v, np.vstack([unit, A]), np.zeros(1 + len(A)))
    close(found.v, expected, case.lengths)
    again = velocity_jump(case.model, case.q, found.v, np.vstack([unit, unit, A]), np.zeros(2 + len(A)))
    close(again.v, expected, case.lengths)


@PLACE
@EVERY
def test_derivatives_of_accelerations_by_joint_forces(name, place):
    """They are the inverse mass matrix of the motions that the constraints allow."""
    case = placed(name, place)
    d, v = dense(case), projected(case, case.v)
    W = np.linalg.inv(d.M)
    W -= W @ d.A.T @ np.linalg.solve(d.A @ W @ d.A.T, d.A @ W)
    found = ld.constrained_forward_derivatives(case.model, case.q, v, case.tau)
    close(found.da_dtau * case.unit**2 / np.outer(case.lengths, case.lengths), W, 1.0, 1e-8)


@PLACE
@EVERY
def test_inverse_dynamics_gives_the_forces_back(name, place):
    """All joints are actuated with minimum torque. Forces without effect on the motion are not part of it."""
    case, home = placed(name, place), placed(name, "home")
    v = projected(case, case.v)
    a, _ = motion(case, v)
    options = {"actuated": list(case.model.joint_names), "criterion": "least_torque", "weights": case.lengths}
    found = ld.constrained_inverse_dynamics(case.model, case.q, v, a, **options)
    back = ld.constrained_forward_dynamics(case.model, case.q, v, found.tau)
    close(back.a, a, case.lengths)
    scale = case.unit**2 / case.lengths
    there = home.model, home.q, v / case.lengths, a / case.lengths
    at_home = ld.constrained_inverse_dynamics(*there, **options | {"weights": None})
    close(found.tau / scale, at_home.tau, 1.0, 1e-8)
    rates = ld.constrained_inverse_derivatives(case.model, case.q, v, a, **options)
    expected = ld.constrained_inverse_derivatives(*there, **options | {"weights": None})
    close(rates.dtau_da * case.lengths / scale[:, None], expected.dtau_da, 1.0, 1e-8)


@PLACE
@pytest.mark.parametrize("name", ["slider-crank", "slider-crank, inner"])
def test_a_dead_centre_that_contradicts_is_refused(name, place):
    case = placed(name, place)
    with pytest.raises(ld.LiedynError, match="contradict the constraint 'pin'"):
        ld.constrained_hybrid_dynamics(case.model, case.q, np.zeros(3), [0.0, 0.0, 0.7 * case.unit], np.zeros(3),
                                       [False, False, True])


@pytest.mark.parametrize("code", ["auto", "generic"])
@PLACE
@EVERY
def test_all_analyses_agree_about_the_rank(name, place, code, monkeypatch):
    """Mobility, the kernels' pivots, coordinates of a linearization, and what actuated joints can do against each other."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    case = placed(name, place, code)
    model, v, freedom = case.model, projected(case, case.v), case.model.nv - case.rank
    A = ld.constraint_jacobian(model, case.q)
    assert equation_rank(model, A) == ld.mobility(model, case.q).rank == case.rank
    assert null_space(model, A).shape[1] == freedom
    found = ld.constrained_forward_dynamics(model, case.q, v, case.tau)
    assert found.independent.sum() == case.rank
    chosen = partition_coordinates(model, case.q, v, np.zeros(model.nv, dtype=bool)).index
    assert len(chosen) == freedom
    cases = [ld.constrained_inverse_dynamics(model, case.q, v, found.a, actuated=list(joints), criterion="least_torque",
                                             weights=np.full(len(joints), 1.0)).case
             for joints in ([model.v_names[k] for k in chosen], model.joint_names)]
    assert cases == ["unique", "fully actuated"]
