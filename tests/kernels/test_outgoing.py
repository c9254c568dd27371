"""Results on their way into a batch: all of them, nothing else, in any number of turns; and what is not finite is seen."""
import numpy as np
import pytest

from compiled import probe
from liedyn.kernels.checks import has_room
from liedyn.kernels.recursions.outgoing import OUTGOING, all_given, hand_on, outgoing, take
from liedyn.lie.blocks import give_line, settle
from liedyn.lie.lanes import absolute, all_less
from liedyn.model.cache_lines import on_cache_lines

PIECE, APART = 24, 40                      # numbers of a piece, and from there to the next in a row


@probe
def handed(blocks, batch, filled, past, memory, times, turns):
    """Blocks (k, 2, 24, 8), two pieces for each eight rows, each while the next would be made, in turns of 1/times; the second
    piece of a block stands before the first. Returns whether all is finite."""
    out = outgoing(blocks.reshape(blocks.size // 8, 8), batch, filled, past, memory)
    for k in range(blocks.shape[0]):
        take(out, 8 * k, 2, PIECE, (2 * k + 1) * PIECE, -PIECE, 8, APART, 1, times)
        for _ in range(turns):
            hand_on(out)
        hand_on(None)
    good = all_given(out)
    settle()
    return good


def case(eights):
    rng = np.random.default_rng(eights)
    filled = np.array([False, True, False, True])           # the first belongs to nobody
    pieces = rng.standard_normal((eights, 2, PIECE, 8))
    pieces.reshape(eights, 2, 3, 8, 8)[:, :, ~filled[1:]] = 0.0
    batch = on_cache_lines(8 * eights * 88).reshape(-1, 88)
    batch[:] = 777
    return pieces, batch, filled


@pytest.mark.parametrize("times", [1, 2, 3, 6, 100])
@pytest.mark.parametrize("turns", [0, 1, 2, 7])
@pytest.mark.parametrize("past", [False, True])
def test_all_arrives_in_any_number_of_turns(past, times, turns):
    pieces, batch, filled = case(5)
    assert handed(pieces, batch, filled, past, np.full((OUTGOING, 8), np.nan), times, turns)
    rows = pieces.swapaxes(2, 3)                             # (k, piece, state, number)
    np.testing.assert_array_equal(batch[:, 8:8 + PIECE], rows[:, 1].reshape(-1, PIECE))
    np.testing.assert_array_equal(batch[:, 8 + APART:8 + APART + PIECE], rows[:, 0].reshape(-1, PIECE))
    batch[:, 8:8 + PIECE] = batch[:, 8 + APART:8 + APART + PIECE] = 777
    assert (batch == 777).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_wherever_it_stands(bad):
    for eight in (0, 2):
        for piece in (0, 1):
            for number in (0, 7, 23):                        # of lines that are filled
                for lane in (0, 7):
                    pieces, batch, filled = case(3)
                    filled[:] = True
                    pieces[eight, piece, number, lane] = bad
                    assert not handed(pieces, batch, filled, lane > 0, np.zeros((OUTGOING, 8)), 4, 3)


def test_nothing_to_hand_on():
    _, batch, filled = case(1)
    assert handed(np.zeros((0, 2, PIECE, 8)), batch, filled, False, np.full((OUTGOING, 8), np.nan), 1, 1)
    assert (batch == 777).all()


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


@probe
def room(batch, rows, columns):
    return has_room(batch, rows, columns)


def test_only_whole_lines_and_eights_are_room():
    memory = on_cache_lines(24 * 24 + 8)
    batch = memory[:-8].reshape(24, 24)
    assert all(room(batch, rows, columns) for rows in (0, 1, 17, 24) for columns in (1, 24))
    assert not room(batch, 25, 24) and not room(batch, 24, 25)
    assert not room(memory[1:24 * 24 + 1].reshape(24, 24), 24, 24)          # between two lines
    assert not room(memory[:20 * 24].reshape(24, 20), 24, 20)               # rows of two lines and a half
    assert not room(memory[:12 * 24].reshape(12, 24), 12, 24)               # the last four of sixteen rows
