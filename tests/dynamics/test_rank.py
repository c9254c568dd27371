"""The rank of equations: what counts, the spaces that they span, and solutions of least norm in units of the loop."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.rank import (
    clear_rounding,
    coordinate_scales,
    equation_norms,
    equation_rank,
    least_norm_solution,
    null_space,
    reciprocals,
    row_and_null_space,
    scaled_equations,
    scaled_rank,
)

MODEL = ld.load(Path(__file__).parents[2] / "robots/slider_crank.yaml")
RNG = np.random.default_rng(0)


def equations():
    """Return three equations of which the third depends on the others."""
    A = RNG.standard_normal((MODEL.nc, MODEL.nv)) * equation_norms(MODEL)[:, None]
    A[2:] = 0.0
    A[2] = A[0] - 2.0 * A[1]
    return A


def test_singular_values_below_the_bound_do_not_count():
    for s, rank in (([1.0, 2e-5], 2), ([1.0, 0.5e-5], 1), ([0.0, 0.0], 0)):
        assert scaled_rank(np.diag(s)) == rank
    assert np.array_equal(scaled_rank(np.stack([np.eye(3), np.diag([1.0, 0.0, 0.0])])), [3, 1])
    assert np.array_equal(reciprocals(np.array([2.0, 0.0, 4.0]), np.array([True, False, True])), [0.5, 0.0, 0.25])


def test_lengths_are_in_units_of_their_loop():
    assert MODEL.v_units == ("rad", "rad", "m") and np.array_equal(coordinate_scales(MODEL), [1.0, 1.0, 0.3])
    np.testing.assert_allclose(scaled_equations(MODEL, np.ones((MODEL.nc, 3))) * equation_norms(MODEL)[:, None],
                               np.tile([1.0, 1.0, 0.3], (MODEL.nc, 1)))


def test_row_space_and_null_space_are_orthonormal_complements():
    A = RNG.standard_normal((4, 2)) @ RNG.standard_normal((2, 6))
    rows, null = row_and_null_space(A)
    assert rows.shape == (2, 6) and null.shape == (4, 6)
    np.testing.assert_allclose(np.vstack([rows, null]) @ np.vstack([rows, null]).T, np.eye(6), atol=1e-14)
    assert np.abs(A @ null.T).max() < 1e-14


def test_dependent_equations_have_the_rank_of_the_independent_ones():
    A = equations()
    assert equation_rank(MODEL, A) == 2
    directions = null_space(MODEL, A)
    assert directions.shape == (MODEL.nv, MODEL.nv - 2)
    assert np.abs(A * coordinate_scales(MODEL) @ directions).max() < 1e-13
    np.testing.assert_allclose(directions.T @ directions, np.eye(MODEL.nv - 2), atol=1e-14)


def test_solutions_have_the_least_norm_in_units_of_the_coordinates():
    A, unit = equations(), coordinate_scales(MODEL)[:, None]
    rhs = A @ RNG.standard_normal((MODEL.nv, 2))
    x, directions = least_norm_solution(MODEL, A, rhs), null_space(MODEL, A)
    np.testing.assert_allclose(A @ x, rhs, atol=1e-12)
    assert np.abs(directions.T @ (x / unit)).max() < 1e-12


def test_equations_of_rounding_become_zero():
    A = equations()
    A[1] *= 1e-14
    cleared = clear_rounding(MODEL, A)
    assert not cleared[1].any() and np.array_equal(cleared[0], A[0] / equation_norms(MODEL)[0])
    assert scaled_rank(np.zeros((0, 3))) == 0 == pytest.approx(float(np.abs(cleared[3:]).sum()))
