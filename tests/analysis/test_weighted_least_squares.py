"""Least squares of equations that have no entries, no rank or few rows."""
import numpy as np
import pytest

from liedyn.analysis.weighted_least_squares import compressed, fit

ROWS, JOINTS, COLUMNS = 50, 3, 4


def solved(W):
    return fit(W, np.full(W.shape[1], 1e-9), np.ones(W.shape[2] - 1))


def equations(seed=0):
    """Return random equations. Joint k does not depend on the first k parameters, as in a chain."""
    W = np.random.default_rng(seed).standard_normal((ROWS, JOINTS, COLUMNS + 1))
    for k in range(JOINTS):
        W[:, k, :k] = 0.0
    return W


def test_compressed_equations_have_the_same_normal_equations():
    W = equations()
    for k, R in enumerate(compressed(W)):
        np.testing.assert_allclose(R.T @ R, W[:, k].T @ W[:, k], rtol=0, atol=1e-12 * ROWS)


def test_the_solution_is_that_of_the_stacked_equations():
    W = equations()
    W[:, :, -1] = W[:, :, :-1] @ [1.0, -2.0, 0.5, 3.0]
    np.testing.assert_allclose(solved(W).x, [1.0, -2.0, 0.5, 3.0], rtol=0, atol=1e-12)


def test_a_joint_that_sees_nothing_changes_nothing():
    W = equations()
    x = solved(W).x
    idle = np.concatenate([W, np.zeros((ROWS, 1, COLUMNS + 1))], axis=1)
    np.testing.assert_allclose(solved(idle).x, x, rtol=0, atol=1e-12)


def test_equations_without_entries_excite_nothing():
    """At rest without gravity."""
    solution = solved(np.zeros((ROWS, JOINTS, COLUMNS + 1)))
    assert solution.blind.all() and not solution.x.any() and solution.condition == np.inf


def test_equal_columns_are_excited_in_combination_only():
    W = equations()
    W[:, :, 1] = W[:, :, 0]
    solution = solved(W)
    assert solution.blind.tolist() == [True, True, False, False] and solution.condition == np.inf


@pytest.mark.parametrize("rows", [1, 2])
def test_fewer_rows_than_parameters(rows):
    W = np.random.default_rng(1).standard_normal((rows, 1, COLUMNS + 1))
    assert solved(W).blind.all()
