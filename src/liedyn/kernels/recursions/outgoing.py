"""Results of eight states on their way into a batch, a few lines at a time while others are made.

Three matrices of 32 coordinates are 24 kB a state. A core that writes them all at once, into a batch that the nearest caches do
not hold, waits for most of them; in passing, in loops over bodies and columns, they cost half (inverse derivatives of a humanoid
on Granite Rapids: 2.1 us a state instead of 2.4)."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.lie.blocks import give_line
from liedyn.lie.lanes import absolute, all_less, load, number_like, store


class Outgoing(NamedTuple):
    """What is handed on: `pieces` of one size, at equal distances both in the block and in the rows of the batch."""

    block: np.ndarray      # (m, 8) numbers of eight states, zero but in the lines of eight that are `filled`
    batch: np.ndarray      # (N, columns) rows on borders of cache lines, eight of them for each eight states
    filled: np.ndarray     # bool, by lines of a matrix
    past: bool             # whether they go past the caches
    sums: np.ndarray       # (1, 8) zero, or NaN where a number handed on was not finite
    marks: np.ndarray      # int64, see below


# marks: the next line of the piece, and how many it has; pieces left; where in the block the piece begins, and how far from there
# the next; the same in the row; where its lines begin in `filled`; the first row; how many lines at a time
LINE, LINES, PIECES, FROM, FROM_STEP, TO, TO_STEP, FILLED, ROW, SHARE = range(10)
OUTGOING = 3      # Lanes of memory for marks and sums


@primitive
def outgoing(block, batch, filled, past, memory):
    """With nothing to hand on yet."""
    store(memory, 0, number_like(memory, 0.0))
    marks = memory[1:3].reshape(16).view(np.int64)
    marks[PIECES] = 0
    return Outgoing(block, batch, filled, past, memory[:1], marks)


@primitive
def take(out, row, pieces, size, at, step, to, to_step, filled, times):
    """Hand on what is left, then from `at` on in the block `pieces` of `size` numbers, whole lines, into columns `to` … of rows
    row … row + 7, all in `times` turns. step, to_step: from piece to piece; filled: where their lines begin in `out.filled`."""
    give_rest(out)
    m = out.marks
    m[LINE], m[LINES], m[PIECES], m[FILLED], m[ROW] = 0, size // 8, pieces, filled, row
    m[FROM], m[FROM_STEP], m[TO], m[TO_STEP] = at, step, to, to_step
    m[SHARE] = -(-pieces * size // (8 * max(times, 1)))


@primitive
def hand_on(out):
    """Some lines, in passing. out: None where there is no batch."""
    if out is not None:
        give(out, out.marks[SHARE])


@primitive
def give(out, count):
    """The next lines, at most `count`."""
    m, x = out.marks, load(out.sums, 0)
    line, pieces, at, to, row = m[LINE], m[PIECES], m[FROM], m[TO], m[ROW]
    while count > 0 and pieces > 0:
        end = min(line + count, m[LINES])
        count = count - (end - line)
        x = x + (give_lines(out, line, end, at, to, row, True) if out.past else give_lines(out, line, end, at, to, row, False))
        line = end
        if line == m[LINES]:
            line, pieces, at, to = 0, pieces - 1, at + m[FROM_STEP], to + m[TO_STEP]
    m[LINE], m[PIECES], m[FROM], m[TO] = line, pieces, at, to
    store(out.sums, 0, x)


@primitive
def give_lines(out, line, end, at, to, row, past):
    """Lines `line` … `end` - 1. past is a literal: to choose for each line would cost 1 to 2% of derivatives."""
    x, first = number_like(out.sums, 0.0), out.marks[FILLED]
    for k in range(line, end):
        x = x + give_line(out.block, at + 8 * k, out.batch, row, to + 8 * k, out.filled[first + k], past)
    return x


@primitive
def give_rest(out):
    give(out, out.marks[LINES] * out.marks[PIECES])


@primitive
def all_given(out):
    """Whether all that was handed on is finite; with what is left."""
    give_rest(out)
    return all_less(absolute(load(out.sums, 0)), 1.0)
