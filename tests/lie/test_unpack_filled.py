"""`unpack_filled`, from a block into the rows of a batch."""
import numpy as np
import pytest

from compiled import probe
from liedyn.lie.blocks import give_line, settle, unpack_filled
from liedyn.lie.lanes import absolute, all_less
from liedyn.model.cache_lines import on_cache_lines


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


@probe
def line(block, batch, filled, past):
    x = give_line(block, 8, batch, 8, 16, filled, past)
    settle()
    return all_less(absolute(x), 1.0)


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("past", [False, True])
def test_a_line_goes_through_the_caches_or_past_them(past, filled):
    """Zeros, whatever stands there, if it is not filled."""
    block = np.random.default_rng(0).standard_normal((24, 8))
    batch = on_cache_lines(24 * 40).reshape(24, 40)
    batch[:] = 777.0
    assert line(block, batch, filled, past)
    np.testing.assert_array_equal(batch[8:16, 16:24], block[8:16].T * filled)
    batch[8:16, 16:24] = 777.0
    assert (batch == 777.0).all()
    block[11, 3] = np.nan
    assert line(block, batch, filled, past) != filled
