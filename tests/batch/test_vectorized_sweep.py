"""Maps of the values of a sweep to the numbers of its runs, against what they map."""
import numpy as np
import pytest

from liedyn.batch.vectorized_sweep import AffineParameterMap, origin_values

VALUES = np.array([0.3, 0.1, 0.7, 1.1, 2.3])


def map_of(numbers, *values):
    """Of runs with these numbers; the values of each thing that varies."""
    looked = list(values)
    return AffineParameterMap(numbers, looked, [], numbers(origin_values(looked)), 0, 0)


def test_what_is_the_value_is_it_to_the_last_bit():
    """Not the first run's number and what the value has more: that rounds."""
    found = map_of(lambda x: np.array([1.0 + 2.0 * x[0], x[0], x[1], x[0]]), VALUES, VALUES[::-1].copy())
    assert found.is_affine
    rows, alone = found.rows([VALUES, VALUES[::-1]])
    assert not alone.any()
    assert np.array_equal(rows[:, 1:], np.transpose([VALUES, VALUES[::-1], VALUES]))
    np.testing.assert_allclose(rows[:, 0], 1.0 + 2.0 * VALUES, rtol=1e-15)


@pytest.mark.parametrize("values", [[1.0, 1.0 + 3e-9, 2.0], [1.0, 1.5, 1.0 + 3e-9], [1.0, 0.5, 1.0 + 3e-9]])
def test_slopes_come_from_values_that_are_far_apart(values):
    """Values that almost agree have differences that are rounding."""
    values = np.array(values)
    found = map_of(lambda x: np.array([3.0 + x[0] / 3.0]), values)
    assert found.is_affine
    np.testing.assert_allclose(found.rows([values])[0][:, 0], 3.0 + values / 3.0, rtol=1e-15)


def test_what_bends_has_no_map():
    found = map_of(lambda x: np.array([x[0] ** 2]), VALUES)
    assert not found.is_affine
    assert np.array_equal(found.rows([VALUES])[0][:, 0], VALUES**2)


@pytest.mark.parametrize("numbers", [
    lambda x: x, lambda x: x**2, lambda x: np.abs(x), lambda x: x + (x - 1) * (x - 4), lambda x: x + (x - 2) * (x - 4),
    lambda x: x + (x - 1) * (x - 2), lambda x: x + (x - 1) * (x - 2) * (x - 4)])
@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [2.0, 4.0, 1.0], [4.0, 3.0, 2.0, 1.0], [1.0, -1.0, 0.5, 4.0]])
def test_rows_are_those_of_the_runs(numbers, values):
    """Also of curves that equal the value at some of the values."""
    values = np.array(values)
    found = map_of(lambda x: numbers(np.array([x[0]])), values)
    np.testing.assert_allclose(found.rows([values])[0][:, 0], numbers(values), rtol=1e-13)


def test_what_two_values_make_together_has_no_map():
    """The first and smallest values of both agree with any map through them; the largest do not."""
    values = np.sort(VALUES)
    assert not map_of(lambda x: np.array([x[0] * x[1]]), values, values).is_affine


def test_a_run_with_other_constants_than_the_first_runs_is_not_vectorized():
    """Code of the batch contains the constants that are equal in the runs from which the map was determined."""
    def numbers(x):
        return np.array([x[0] ** 2, x[0] ** 3, 7.0 if x[0] < 5.0 else 8.0])

    found = AffineParameterMap(numbers, [VALUES], [], numbers(origin_values([VALUES])), 2, 0)
    assert found.varying_indices.tolist() == [0]
    rows, excluded = found.rows([np.array([0.2, 6.0, 0.4])])
    assert excluded.tolist() == [False, True, False]
    np.testing.assert_array_equal(rows[[0, 2]], [numbers([0.2]), numbers([0.4])])
