"""Times at which a signal has a jump or a kink: where the arguments of step, sign, abs, min … switch, found before the run.

Interval arithmetic bounds every such argument that depends on time alone over pieces of the run. Pieces in which no switch is
possible are dropped, others are halved. The windows that remain around each switch are then narrowed to neighbouring floats. So
no pulse is missed, however narrow.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.kernels.simulation import signals as code
from liedyn.simulation.signals.expression import SignalProgram
from liedyn.simulation.signals.operations import Interval, apply, constant, mean_value_bounds, time, unbounded
from liedyn.simulation.signals.state_tables import position_interval

MAX_SWITCHES = 20_000                    # switches of one signal
_MAX_PIECES = 4 * MAX_SWITCHES           # undecided at one time
_INITIAL_PIECES, _MAX_HALVINGS = 64, 26       # the shortest pieces are 2.3e-10 of the run
_MAX_WINDOW = 1e-6               # of the run: longer windows that stay undecided are not searched further
_CONSTANT = np.inf               # label of a constant argument, on either side

_SWITCHES = (*code.SWITCH_OPERATIONS, code.DIVIDE, code.TAN, code.ATAN2, code.SQRT, code.ASIN, code.ACOS, code.POWER)


SwitchBounds: TypeAlias = tuple[Array, Array, Mask]      # bounds of an argument, and whether it never switches


class CrossingSearchResult(NamedTuple):
    """Result of `switches_in_time`.

    windows   (k, 2) sorted times: the signal is smooth outside of the windows, which are mostly neighbouring floats
    complete  whether all switches are found
    """

    windows: Array
    complete: bool


def switches_in_time(program: SignalProgram, start: float, end: float) -> CrossingSearchResult:
    """Return windows around the program's jumps and kinks in [start, end] that depend on time alone."""
    operations = {word & 255 for word in program.code}
    if start >= end or code.TIME not in operations or not operations & set(_SWITCHES):
        return CrossingSearchResult(np.empty((0, 2)), True)
    begins, ends, complete = _find_undecided(program, start, end)
    narrow = ends - begins <= _MAX_WINDOW * (end - start)
    inside = narrow & (begins > start) & (ends < end)          # at the start, kernels evaluate the value just after it
    complete = complete and bool(narrow.all())
    return CrossingSearchResult(_narrow(program, begins[inside], ends[inside]) if inside.any() else np.empty((0, 2)), complete)


def _find_undecided(program: SignalProgram, start: float, end: float) -> tuple[Array, Array, bool]:
    """Return both ends of the segments that stay undecided, and whether the search is complete."""
    def at(k: Integers, pieces: int) -> Array:                 # k / 2^n is exact: neighbours share ends
        return start + (end - start) * (k / pieces)

    number, pieces = np.arange(_INITIAL_PIECES), _INITIAL_PIECES
    for halving in range(_MAX_HALVINGS + 1):
        if not len(number):
            break
        number = number[np.isnan(labels(program, at(number, pieces), at(number + 1, pieces))).any(axis=1)]
        if len(number) > _MAX_PIECES:
            return np.empty(0), np.empty(0), False
        if halving < _MAX_HALVINGS:
            number, pieces = (2 * number[:, None] + np.arange(2)).reshape(-1), 2 * pieces
    first = number[np.diff(number, prepend=-2) > 1]
    last = number[np.diff(number, append=2 * pieces) > 1]
    return at(first, pieces), at(last + 1, pieces), len(first) <= MAX_SWITCHES


def _narrow(program: SignalProgram, begins: Array, ends: Array) -> Array:
    """Return (k, 2): the last time with the labels of the beginning, the first time with the labels of the end.

    Where both ends have the same labels, as where abs touches 0, it is the middle.
    """
    first_labels, last_labels = labels(program, begins, begins), labels(program, ends, ends)
    middle = begins + 0.5 * (ends - begins)
    touching = (first_labels == last_labels).all(axis=1)
    low = _bisect_label(program, first_labels, begins, ends)
    high = _bisect_label(program, last_labels, ends, begins)
    windows = np.stack([np.where(touching, np.nextafter(middle, -np.inf), low), np.where(touching, middle, high)], axis=1)
    return windows[(windows[:, 0] < windows[:, 1])]


def _bisect_label(program: SignalProgram, label: Array, alike: Array, other: Array) -> Array:
    """Return the last float on the way from `alike` to `other` that has the label, by bisection."""
    while True:
        middle = alike + 0.5 * (other - alike)
        if ((middle == alike) | (middle == other)).all():
            return alike
        same = (labels(program, middle, middle) == label).all(axis=1)
        alike, other = np.where(same, middle, alike), np.where(same, other, middle)


def switches_of_state(program: SignalProgram, clocks: bool = False) -> list[int]:
    """Return the positions in the code of operations whose jumps or kinks depend on the state or, if `clocks`, on a clock."""
    stack: list[bool] = []
    switches: list[int] = []
    state = (*code.STATE_OPERATIONS, *((code.CLOCK,) if clocks else ()))
    for i, word in enumerate(program.code):
        operation = word & 255
        count = code.N_ARGUMENTS[operation]
        if not count:
            stack.append(stack[-1] if operation == code.KNOTS else operation in state)
            continue
        by_state = any(stack[-count:])
        stack[-count:] = [by_state]
        if by_state and operation in code.SWITCH_OPERATIONS:
            switches.append(i)
    return switches


def labels(program: SignalProgram, start: Array, end: Array) -> Array:
    """Return (pieces, switches): a label for the side of each switch in the whole piece; NaN where it is undecided."""
    middle = start + 0.5 * (end - start)
    half = np.nextafter(np.maximum(end - middle, middle - start), np.inf)
    n = len(start)
    stack: list[Interval | None] = []
    rows: list[Array] = []
    t = time(np.concatenate([start, middle]), np.concatenate([end, middle]))

    def bounds(x: Interval) -> SwitchBounds:
        piece, centre = (Interval(*(row[part] for row in x)) for part in (slice(n), slice(n, None)))
        still = (piece.rate_low == 0) & (piece.rate_high == 0)
        return *mean_value_bounds(piece, centre, np.where(start == end, 0.0, half)), still

    for word in program.code:
        operation, operand = word & 255, word >> 8
        count = code.N_ARGUMENTS[operation]
        if not count:
            stack.append(_leaf(operation, operand, program, stack[-1] if operation == code.KNOTS else t))
            continue
        arguments, stack[-count:] = stack[-count:], []
        x = [argument for argument in arguments if argument is not None]
        if len(x) < count:                                     # it depends on the state
            stack.append(None)
            continue
        if operation in _SWITCHES:
            rows.append(_label(operation, *_switch_bounds(operation, x, bounds), x[0].rate_high[:n] < 0))
        stack.append(unbounded(x[0].low) if operation in code.TABLE_OPERATIONS else apply(operation, *x))
    return np.stack(rows, axis=1) if rows else np.empty((n, 0))


def _leaf(operation: int, operand: int, program: SignalProgram, t: Interval | None) -> Interval | None:
    """Return the interval of t, of a literal, or of the position of t among knots; None if it depends on the state or a clock."""
    if operation == code.TIME or t is None:
        return t
    if operation == code.KNOTS:
        return position_interval(program.literals, operand, t)
    return constant(program.literals[operand], t.low) if operation == code.LITERAL else None


def _switch_bounds(operation: int, x: list[Interval], bounds: Callable[[Interval], SwitchBounds]) -> SwitchBounds:
    """Return bounds of the argument at which an operation switches, and whether it never does (a constant, or a smooth case)."""
    if operation in (code.MIN, code.MAX):
        return bounds(apply(code.SUBTRACT, *x))
    if operation == code.DIVIDE:
        return bounds(x[1])
    if operation == code.ATAN2:
        low, high, still = bounds(x[0])
        return low, high, still | (bounds(x[1])[0] > 0)         # no jump right of the axis
    if operation == code.POWER:
        low, high, still = bounds(x[0])
        y = x[1]
        smooth = (y.low == y.high) & (y.low >= 0) & (y.low == np.floor(y.low)) & (y.rate_low == 0) & (y.rate_high == 0)
        return low, high, still | smooth[:len(low)]
    return bounds(x[0])


def _label(operation: int, low: Array, high: Array, still: Mask, falling: Mask) -> Array:
    """Return one number for all pieces on the same side of a switch. At a jump of step and floor, the value just after counts."""
    if operation == code.STEP:
        upper, lower = np.where(falling, low > 0, low >= 0), np.where(falling, high <= 0, high < 0)
        label = np.where(upper, 1.0, np.where(lower, -1.0, np.nan))
    elif operation in (code.FLOOR, code.TAN):
        if operation == code.TAN:
            first, last = np.floor(low / np.pi + 0.5), np.floor(high / np.pi + 0.5)
        else:
            first, last = (np.where(falling, np.ceil(x) - 1, np.floor(x)) for x in (low, high))
        label = np.where(first == last, first, np.nan)
    elif operation in (code.ASIN, code.ACOS):
        label = np.where((low > -1) & (high < 1), 1.0, np.nan)
    else:
        label = np.where(low > 0, 1.0, np.where(high < 0, -1.0, np.nan))
    return np.where(still, _CONSTANT, label)
