"""Tables of expressions as instructions and numbers of `kernels.simulation.signals`, and bounds of positions in them."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario import Table
from liedyn.io.scenarios.table_schema import table_axes, table_values
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import AXIS_HEADER
from liedyn.model.interpolation import cubic_pieces
from liedyn.simulation.signals.expression import SignalProgram, moved_literals
from liedyn.simulation.signals.operations import Interval, increasing_function

_ROUNDING = 1e-9                 # of the range of a table, or of its values: differences that are rounding


def table_program(table: Table, programs: Sequence[SignalProgram]) -> SignalProgram:
    """Return the program of a table. programs: of its expressions.

    The piece of a table with corners is a floor, which switches as that of an expression does. Pieces of a smooth table switch
    only if it depends on time alone: steps then end at its points, as at those of a curve.
    """
    axes, coefficients = _axes_and_coefficients(table)
    words: list[int] = []
    literals: list[float] = []
    clips = [(x[0], x[-1]) if table.outside == "hold" and not period else ()
             for x, period in zip(table_axes(table), table.periods, strict=True)]
    first = sum(len(program.literals) for program in programs) + sum(map(len, clips))
    start, depth = first, 0
    for k, (program, clip, axis) in enumerate(zip(programs, clips, axes, strict=True)):
        words += moved_literals(program.code, len(literals))
        literals += program.literals
        if clip:
            words += [code.LITERAL + 256 * len(literals), code.MAX, code.LITERAL + 256 * (len(literals) + 1), code.MIN]
            literals += clip
        words.append(code.KNOTS + 256 * start)
        by_state = any(word & 255 in (*code.STATE_OPERATIONS, code.CLOCK) for word in program.code)
        if table.interpolation == "linear" or not by_state:
            words.append(code.FLOOR)
        start, depth = start + len(axis), max(depth, 2 * k + max(program.depth, 2))
    words.append((code.PIECE if len(axes) == 1 else code.PATCH) + 256 * first)
    return SignalProgram(tuple(words), (*literals, *np.concatenate([*axes, coefficients]).tolist()), depth)


def _axes_and_coefficients(table: Table) -> tuple[list[Array], Array]:
    """Return the numbers of each axis, and all coefficients: see the tables of `kernels.simulation.signals`."""
    axes, values, lines = table_axes(table), table_values(table, table_axes(table)), table.outside == "linear"
    for k, period in enumerate(table.periods):
        if period:
            axes[k], values = _closed(table, axes[k], np.moveaxis(values, k, 0), period)
            values = np.moveaxis(values, 0, k)
    with np.errstate(all="ignore"):
        starts, pieces = cubic_pieces(axes[0], values, table.interpolation, period=table.periods[0],
                                      lines=lines and not table.periods[0])
        packed = [_axis(axes[0], starts, table, 0)]
        if len(axes) == 2:                                     # the coefficients of x are functions of y
            starts, patches = cubic_pieces(axes[1], np.moveaxis(pieces, 2, 0), table.interpolation, period=table.periods[1],
                                           lines=lines and not table.periods[1])
            packed.append(_axis(axes[1], starts, table, 1))
            pieces = patches.transpose(2, 0, 3, 1)
    if not np.isfinite(pieces).all():
        raise ScenarioError("the table is not finite between its points", place=table.place.at("points"),
                            expected="smaller values, or points farther apart")
    return packed, pieces.reshape(-1)


def _closed(table: Table, x: Array, values: Array, period: float) -> tuple[Array, Array]:
    """Return a period of the table with both ends. values: (n, …)."""
    if x[-1] - x[0] < period * (1.0 - _ROUNDING):
        return np.append(x, x[0] + period), np.concatenate([values, values[:1]])
    if np.abs(values[-1] - values[0]).max() > _ROUNDING * np.abs(values).max():
        raise ScenarioError("the first and the last value of the periodic table differ", place=table.place.at("points"),
                            found=[float(values[k].flat[0]) for k in (0, -1)], expected="equal values one period apart")
    return np.append(x[:-1], x[0] + period), np.concatenate([values[:-1], values[:1]])


def _axis(x: Array, starts: Array, table: Table, k: int) -> Array:
    """Return the numbers of an axis with the points x, whose pieces begin at `starts`."""
    is_open, lengths, slack = len(starts) > len(x), np.diff(x), _ROUNDING * (x[-1] - x[0])
    if is_open:
        lengths = np.concatenate([[lengths.mean()], lengths, [lengths.mean()]])
    bounded = table.outside == "error" and not table.periods[k]
    bounds = (x[0] - slack, x[-1] + slack) if bounded else (-np.inf, np.inf)
    return np.concatenate([[len(starts), table.periods[k], *bounds, is_open], starts, 1.0 / lengths])


def position_interval(literals: Sequence[float], axis: int, x: Interval) -> Interval:
    """Return bounds of the position of x among the points of an axis."""
    n, period, _, _, is_open = literals[axis:axis + AXIS_HEADER]
    starts, rates = np.array(literals[axis + AXIS_HEADER:axis + AXIS_HEADER + 2 * int(n)]).reshape(2, -1)

    def position(x: Array) -> Array:
        turns = np.floor((x - starts[0]) / period) if period else 0.0
        y = x - turns * period
        k = np.searchsorted(starts[1:], y, side="right")
        fraction = (y - starts[k]) * rates[k]
        bent = fraction / (1.0 + np.abs(fraction))
        if is_open:
            return np.asarray(np.where(k == 0, 1.0 + bent, np.where(k == n - 1, k + bent, k + fraction)))
        return np.asarray(turns * n + np.clip(k + fraction, 0.0, np.nextafter(n, 0.0)))

    return increasing_function(x, position, 0.0 if is_open else rates.min(), rates.max())

