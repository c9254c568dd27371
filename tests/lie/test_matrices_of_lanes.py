"""Matrices in Lanes: `put` and `get` in their three layouts, and `unpack_filled`
from a block into the rows of a batch."""
import numpy as np
import pytest

from compiled import probe
from liedyn.lie.blocks import unpack_filled
from liedyn.lie.lanes import load, number_like
from liedyn.lie.matrices import get, put
from liedyn.model.cache_lines import on_cache_lines

SIZES = (1, 2, 3, 7, 8, 9, 16, 17)


@probe
def put_and_get(x, X, back, n):
    """x holds the entries by rows, (n n,) or (n n, 8): into X, and out again."""
    kind = number_like(x, 0.0)
    for c in range(n):
        for r in range(n):
            put(X, n, c, r, load(x, r * n + c))
    for c in range(n):
        for r in range(n):
            put(back, n, c, r, get(X, n, c, r, kind))


@pytest.mark.parametrize("n", SIZES)
def test_a_matrix_of_one_state_by_rows(n):
    A, X, back = np.arange(1.0, n * n + 1), np.full(n * n, 7.0), np.zeros(n * n)
    put_and_get(A, X, back, n)
    np.testing.assert_array_equal(X, A)
    np.testing.assert_array_equal(back, A)


@pytest.mark.parametrize("n", SIZES)
def test_eight_columns_of_one_state_to_a_Lanes(n):
    """Column c stands in lane c % 8 of the c // 8-th block of n rows; what lies beyond the last column is left alone."""
    A = np.arange(1.0, n * n + 1).reshape(n, n)
    blocks = -(-n // 8)
    X, back = np.full((blocks * n, 8), 7.0), np.zeros((blocks * n, 8))
    put_and_get(A.ravel(), X, back, n)
    wide = X.reshape(blocks, n, 8).swapaxes(0, 1).reshape(n, 8 * blocks)
    np.testing.assert_array_equal(wide[:, :n], A)
    assert (wide[:, n:] == 7).all()
    np.testing.assert_array_equal(back.reshape(blocks, n, 8).swapaxes(0, 1).reshape(n, 8 * blocks)[:, :n], A)


@pytest.mark.parametrize("n", SIZES)
def test_matrices_of_eight_states_by_columns(n):
    A = np.random.default_rng(n).standard_normal((8, n, n))
    X, back = np.full((n * n, 8), 7.0), np.zeros((n * n, 8))
    put_and_get(np.ascontiguousarray(A.reshape(8, -1).T), X, back, n)
    np.testing.assert_array_equal(X.T.reshape(8, n, n), A.swapaxes(1, 2))
    np.testing.assert_array_equal(back, X)


@probe
def unpacked(block, batch, first, filled, past):
    return unpack_filled(block, batch, first, filled, past)


def to_batch(block, batch, first, filled):
    """Past the caches too, where rows are whole lines of them."""
    again = on_cache_lines(batch.size).reshape(batch.shape)
    again[:] = batch
    seen = unpacked(block, batch, first, filled, False)
    assert unpacked(block, again, first, filled, True) == seen
    np.testing.assert_array_equal(again, batch)
    return seen


def groups(pattern):
    """Which groups of eight hold more than zeros."""
    return np.append(pattern, np.zeros(-len(pattern) % 8, dtype=bool)).reshape(-1, 8).any(axis=1)


ALL = np.ones(8, dtype=bool)


@pytest.mark.parametrize("n", [1, 5, 7, 8, 9, 16, 23, 24, 30])
@pytest.mark.parametrize("more", [0, 3, 8])
def test_blocks_go_to_their_rows_and_touch_nothing_else(n, more):
    """Any number of rows left over, rows with more columns, zeros where nothing is filled."""
    rng = np.random.default_rng([n, more])
    for pattern in (np.ones(n, bool), np.zeros(n, bool), rng.random(n) < 0.1, np.arange(n) < n // 2):
        for count in range(1, 10):
            memory = np.full(count * (n + more) + 32, 777.0)
            batch = memory[16:-16].reshape(count, n + more)
            values = np.where(pattern, rng.standard_normal((count + 8, n)), 0.0)
            for first in range(0, count, 8):
                assert to_batch(np.ascontiguousarray(values[first:first + 8].T), batch, first, groups(pattern))
            np.testing.assert_array_equal(batch[:, :n], values[:count])
            batch[:, :n] = 777
            assert (memory == 777).all()


def test_a_group_may_be_called_filled_that_is_zero():
    """Patterns of several matrices in a row share groups."""
    batch = np.full((8, 16), 7.0)
    assert to_batch(np.zeros((16, 8)), batch, 0, np.ones(2, bool))
    assert not batch.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [8, 11, 16])
def test_what_is_not_finite_is_seen_in_every_entry_and_every_lane(bad, n):
    """Also in the lanes beyond the last row: they repeat it."""
    for rows in (8, 3):
        for entry in range(n):
            for lane in range(8):
                block = np.random.default_rng(0).standard_normal((n, 8))
                block[entry, lane] = bad
                assert not to_batch(block, np.zeros((rows, n)), 0, ALL)


def test_two_infinities_do_not_cancel():
    block = np.zeros((16, 8))
    block[0], block[1] = np.inf, -np.inf
    assert not to_batch(block, np.zeros((8, 16)), 0, ALL)
    block[1] = np.inf
    assert not to_batch(block, np.zeros((8, 16)), 0, ALL)


def test_large_numbers_are_finite():
    block = np.full((11, 8), 4e307)
    assert to_batch(block, np.zeros((8, 11)), 0, ALL)
