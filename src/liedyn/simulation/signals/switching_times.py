"""Times at which a signal jumps or has a kink: where the arguments of step, sign, abs, min … switch, found before the run.

Every such argument that depends on time alone is bounded over pieces of the run by interval arithmetic. A piece in which no
switch can happen is done with, any other is halved; what stays is a window around each switch, which is then narrowed to
neighbouring floats. So no pulse is missed, however narrow compared with the run.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.kernels.simulation import signals as code
from liedyn.simulation.signals.expression import SignalProgram

# Interval arithmetic: bounds of a function and of its first time derivative over pieces of time, many at once -----------

# An Interval holds four arrays, an entry a piece: the function lies in [low, high] and its derivative in [slow, fast] everywhere
# in the piece. Bounds are rounded outward, so they hold for the numbers that the machine computes, too. Where nothing is known,
# as outside the domain of a function, they are infinite. Only what does not move has the derivative [0, 0]: so it is known for
# constant (Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009).

_ULPS = 4             # that a library's function may be off
_SLACK = 1e-9         # of a period: within it of a turning point or a pole, both sides are assumed
_MAX_ANGLE = 1e6      # rad: beyond, where a period is known to 1e-10 of it only, nothing is said of periodic functions


class Interval(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    rate_low: np.ndarray
    rate_high: np.ndarray


def constant(value: float, like: np.ndarray) -> Interval:
    zero = np.zeros_like(like)
    return Interval(zero + value, zero + value, zero, zero)


def time(start: np.ndarray, end: np.ndarray) -> Interval:
    return Interval(start, end, np.ones_like(start), np.ones_like(start))


def unbounded(like: np.ndarray) -> Interval:
    infinite = np.full_like(like, np.inf)
    return Interval(-infinite, infinite, -infinite, infinite)


def apply(operation: int, *x: Interval) -> Interval:
    """A function of one or two intervals; operation: an opcode of `kernels.simulation.signals`."""
    with np.errstate(all="ignore"):
        made = _RULES[operation](*x)
    return Interval(*_clean_bounds(*made[:2]), *_clean_bounds(*made[2:]))


def mean_value_bounds(x: Interval, middle: Interval, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of x over pieces of half width `half`, by its values in their middles and its slopes too (mean value form)."""
    with np.errstate(all="ignore"):
        reach = _up(np.maximum(np.abs(x.rate_low), np.abs(x.rate_high)) * half)
        low, high = _down(middle.low - reach), _up(middle.high + reach)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, np.maximum(x.low, low), x.low), np.where(known, np.minimum(x.high, high), x.high)


# bounds as pairs (low, high) of arrays ----------------------------------------------------------------------------------
def _clean_bounds(low, high):
    """Bounds that are not numbers tell nothing."""
    bad = np.isnan(low) | np.isnan(high)
    return np.where(bad, -np.inf, low), np.where(bad, np.inf, high)


def _down(x, ulps=1):
    for _ in range(ulps):
        x = np.nextafter(x, -np.inf)
    return x


def _up(x, ulps=1):
    for _ in range(ulps):
        x = np.nextafter(x, np.inf)
    return x


def _add(a, b):
    return _sum(a[0], b[0])[0], _sum(a[1], b[1])[1]


def _sum(x, y):
    """Floats below and above x + y, both the sum itself where it is exact (Knuth's error of a sum)."""
    s = x + y
    z = s - x
    error = (x - (s - z)) + (y - z)
    return np.where(error >= 0, s, _down(s)), np.where(error <= 0, s, _up(s))


def _negate(a):
    return -a[1], -a[0]


def _multiply(a, b):
    """0 times anything is 0: infinite bounds stand for large finite numbers."""
    products = np.array([np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b])
    low, high = products.min(axis=0), products.max(axis=0)
    return np.where(low == 0, 0.0, _down(low)), np.where(high == 0, 0.0, _up(high))


def _divide(a, b):
    whole = (b[0] <= 0) & (b[1] >= 0)
    quotients = np.array([x / y for x in a for y in b])
    low, high = quotients.min(axis=0), quotients.max(axis=0)
    still = (a[0] == 0) & (a[1] == 0) & ~whole
    low, high = np.where(still, 0.0, _down(low)), np.where(still, 0.0, _up(high))
    return np.where(whole, -np.inf, low), np.where(whole, np.inf, high)


def _square(a):
    low = np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(a[0] * a[0], a[1] * a[1]))
    return np.maximum(_down(low), 0.0), _up(np.maximum(a[0] * a[0], a[1] * a[1]))


def _monotone(function):
    """Bounds of a rising function, from both ends."""
    return lambda a: (_down(function(a[0]), _ULPS), _up(function(a[1]), _ULPS))


def _sin(a):
    """Bounds of sin."""
    low, high = np.sin(a[0]), np.sin(a[1])
    low, high = _down(np.minimum(low, high), _ULPS), _up(np.maximum(low, high), _ULPS)
    top = np.floor((a[1] - 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] - 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    bottom = np.floor((a[1] + 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] + 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    wide = ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _MAX_ANGLE)
    return np.where(bottom | wide, -1.0, np.maximum(low, -1.0)), np.where(top | wide, 1.0, np.minimum(high, 1.0))


def _add_quarter_turn(a):
    """a + pi/2, with slack for the rounding of both."""
    shift = 0.5 * np.pi
    return _down(a[0] + shift, 2), _up(a[1] + shift, 2)


_exp, _sinh, _tanh, _atan = (_monotone(f) for f in (np.exp, np.sinh, np.tanh, np.arctan))


def _cosh(a):
    least = np.where((a[0] <= 0) & (a[1] >= 0), 1.0, np.minimum(np.cosh(a[0]), np.cosh(a[1])))
    return _down(least, _ULPS), _up(np.maximum(np.cosh(a[0]), np.cosh(a[1])), _ULPS)


def _hull(a, b):
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


_ONE = (1.0, 1.0)


def _chain_rule(function, slope):
    """A rule from bounds of f and of df/dx."""
    def rule(x: Interval):
        a = x[:2]
        return *function(a), *_multiply(slope(a), x[2:])
    return rule


def _restrict_domain(function, low, high):
    """Nothing is known outside [low, high]."""
    def inside(a):
        f = function((np.clip(a[0], low, high), np.clip(a[1], low, high)))
        out = (a[0] < low) | (a[1] > high)
        return np.where(out, -np.inf, f[0]), np.where(out, np.inf, f[1])
    return inside


def _tan(x: Interval):
    a = x[:2]
    pole = np.floor(a[1] / np.pi + 0.5 + _SLACK) > np.floor(a[0] / np.pi + 0.5 - _SLACK)
    pole |= ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _MAX_ANGLE)
    f = _monotone(np.tan)(a)
    f = np.where(pole, -np.inf, f[0]), np.where(pole, np.inf, f[1])
    return *f, *_multiply(_add(_ONE, _square(f)), x[2:])


def _abs(x: Interval):
    a, da = x[:2], x[2:]
    rising, falling = a[0] >= 0, a[1] <= 0
    low = np.where(rising, a[0], np.where(falling, -a[1], 0.0))
    both = _hull(da, _negate(da))
    rate_low, rate_high = (np.where(rising, da[k], np.where(falling, _negate(da)[k], both[k])) for k in (0, 1))
    return low, np.maximum(np.abs(a[0]), np.abs(a[1])), rate_low, rate_high


def _step_rule(function):
    """sign, step, floor: at rest between their jumps."""
    def rule(x: Interval):
        low, high = function(x.low), function(x.high)
        still = (low == high) | ((x.rate_low == 0) & (x.rate_high == 0))
        return low, high, np.where(still, 0.0, -np.inf), np.where(still, 0.0, np.inf)
    return rule


def _min_max_rule(least: bool):
    """min or max."""
    choose = np.minimum if least else np.maximum

    def rule(x: Interval, y: Interval):
        first, second = (x.high <= y.low, y.high <= x.low) if least else (x.low >= y.high, y.low >= x.high)
        both = _hull(x[2:], y[2:])
        rate_low, rate_high = (np.where(first, x[2 + k], np.where(second, y[2 + k], both[k])) for k in (0, 1))
        return choose(x.low, y.low), choose(x.high, y.high), rate_low, rate_high
    return rule


def _product(x: Interval, y: Interval):
    return *_multiply(x[:2], y[:2]), *_add(_multiply(x[2:], y[:2]), _multiply(x[:2], y[2:]))


def _quotient(x: Interval, y: Interval):
    f = _divide(x[:2], y[:2])
    return *f, *_divide(_add(x[2:], _negate(_multiply(f, y[2:]))), y[:2])


def _power(x: Interval, y: Interval):
    n = float(y.low[0])
    if n.is_integer() and not (y.rate_low.any() or y.rate_high.any()) and (y.low == n).all() and (y.high == n).all():
        slope = _multiply((n, n), _integer_power(x[:2], n - 1)) if n else (np.zeros_like(x.low),) * 2
        return *_integer_power(x[:2], n), *_multiply(slope, x[2:])
    log = _restrict_domain(_monotone(np.log), 0.0, np.inf)(x[:2])       # x**y = exp(y log x), for a positive base
    f = _exp(_multiply(y[:2], log))
    rate = _add(_multiply(y[2:], log), _multiply(y[:2], _divide(x[2:], x[:2])))
    return *f, *_multiply(f, rate)


def _integer_power(a, n):
    """a**n of a whole number n."""
    if n < 0:
        return _divide(_ONE, _integer_power(a, -n))
    ends = a[0]**n, a[1]**n
    low, high = np.minimum(*ends), np.maximum(*ends)
    over = (a[0] < 0) & (a[1] > 0) & (n % 2 == 0) & (n > 0)
    still = low == high if n == 0 else (a[0] == 0) & (a[1] == 0)
    low, high = np.where(still, low, _down(low, _ULPS)), np.where(still, high, _up(high, _ULPS))
    return np.where(over, 0.0, low), high


def _angle(y: Interval, x: Interval):
    """atan2(y, x): the arctangent of y/x right of the axis x = 0, else of x/y above or below y = 0."""
    right, above, below = x.low > 0, y.low > 0, y.high < 0
    by_x, by_y = _atan(_divide(y[:2], x[:2])), _atan(_divide(x[:2], y[:2]))
    turned = _add_quarter_turn(_negate(by_y))
    lower = _down(turned[0] - np.pi, 2), _up(turned[1] - np.pi, 2)
    low, high = (np.where(right, by_x[k], np.where(above, turned[k], np.where(below, lower[k], s * 3.15)))
                 for k, s in ((0, -1), (1, 1)))
    rate = _divide(_add(_multiply(x[:2], y[2:]), _negate(_multiply(y[:2], x[2:]))), _add(_square(x[:2]), _square(y[:2])))
    decided = right | above | below
    return low, high, np.where(decided, rate[0], -np.inf), np.where(decided, rate[1], np.inf)


def _cos(a):
    return _sin(_add_quarter_turn(a))


def _secant(a):
    """1 / sqrt(1 - x²)"""
    return _divide(_ONE, _restrict_domain(_monotone(np.sqrt), 0.0, np.inf)(_add(_ONE, _negate(_square(a)))))


_RULES = {code.NEGATIVE: lambda x: (*_negate(x[:2]), *_negate(x[2:])), code.ADD: lambda x,
          y: (*_add(x[:2], y[:2]), *_add(x[2:], y[2:])), code.SUBTRACT: lambda x,
          y: (*_add(x[:2], _negate(y[:2])), *_add(x[2:], _negate(y[2:]))), code.MULTIPLY: _product, code.DIVIDE: _quotient,
          code.POWER: _power, code.ATAN2: _angle, code.MIN: _min_max_rule(True), code.MAX: _min_max_rule(False), code.ABS: _abs,
          code.SIGN: _step_rule(np.sign), code.FLOOR: _step_rule(np.floor),
          code.STEP: _step_rule(lambda x: np.where(x >= 0, 1.0, 0.0)), code.SIN: _chain_rule(_sin, _cos),
          code.COS: _chain_rule(_cos, lambda a: _negate(_sin(a))), code.TAN: _tan,
          code.ASIN: _chain_rule(_restrict_domain(_monotone(np.arcsin), -1.0, 1.0), _secant),
          code.ACOS: _chain_rule(lambda a: _negate(_restrict_domain(_monotone(lambda x: -np.arccos(x)), -1.0, 1.0)(a)),
                                 lambda a: _negate(_secant(a))),
          code.ATAN: _chain_rule(_atan, lambda a: _divide(_ONE, _add(_ONE, _square(a)))), code.SINH: _chain_rule(_sinh, _cosh),
          code.COSH: _chain_rule(_cosh, _sinh), code.TANH: _chain_rule(_tanh, lambda a: _divide(_ONE, _square(_cosh(a)))),
          code.EXP: _chain_rule(_exp, _exp),
          code.LOG: _chain_rule(_restrict_domain(_monotone(np.log), 0.0, np.inf), lambda a: _divide(_ONE, a)),
          code.SQRT: _chain_rule(_restrict_domain(_monotone(np.sqrt), 0.0, np.inf),
                                 lambda a: _divide((0.5, 0.5), _restrict_domain(_monotone(np.sqrt), 0.0, np.inf)(a))),}


# switches ---------------------------------------------------------------------------------------------------------------

MAX_SWITCHES = 20_000                    # switches of one signal
_MAX_PIECES = 4 * MAX_SWITCHES           # at once
_INITIAL_PIECES, _MAX_HALVINGS = 64, 26       # so pieces of 2.3e-10 of the run are the last
_MAX_WINDOW = 1e-6               # of the run: what cannot be decided over more is given up
_CONSTANT = np.inf               # label of an argument that stands still, on whatever side

_STATE_SWITCHES = (code.ABS, code.SIGN, code.STEP, code.FLOOR, code.MIN, code.MAX)       # those that the state may switch, too
_SWITCHES = (*_STATE_SWITCHES, code.DIVIDE, code.TAN, code.ATAN2, code.SQRT, code.ASIN, code.ACOS, code.POWER)


class CrossingSearchResult(NamedTuple):
    """windows  (k, 2) sorted: the signal is smooth but between the times of a window, which are mostly neighbouring floats
    complete    whether these are all"""

    windows: np.ndarray
    complete: bool


def switches_in_time(program: SignalProgram, start: float, end: float) -> CrossingSearchResult:
    """Where the program's jumps and kinks that depend on time alone lie in [start, end]."""
    operations = {word & 255 for word in program.code}
    if start >= end or code.TIME not in operations or not operations & set(_SWITCHES):
        return CrossingSearchResult(np.empty((0, 2)), True)
    left, right, complete = _find_undecided(program, start, end)
    narrow = right - left <= _MAX_WINDOW * (end - start)
    inside = narrow & (left > start) & (right < end)           # at the very start the kernels see what comes just after
    complete = complete and bool(narrow.all())
    return CrossingSearchResult(_narrow(program, left[inside], right[inside]) if inside.any() else np.empty((0, 2)), complete)


def _find_undecided(program: SignalProgram, start: float, end: float) -> tuple[np.ndarray, np.ndarray, bool]:
    """Ends of the segments that stay undecided, and whether none was given up."""
    at = lambda k, pieces: start + (end - start) * (k / pieces)      # noqa: E731  (k / 2^n is exact: neighbours share ends)
    number, pieces = np.arange(_INITIAL_PIECES), _INITIAL_PIECES
    for halving in range(_MAX_HALVINGS + 1):
        if not len(number):
            break
        number = number[np.isnan(labels(program, at(number, pieces), at(number + 1, pieces))).any(axis=1)]
        if len(number) > _MAX_PIECES:
            return np.empty(0), np.empty(0), False
        if halving < _MAX_HALVINGS:
            number, pieces = (2 * number[:, None] + [0, 1]).reshape(-1), 2 * pieces
    first = number[np.diff(number, prepend=-2) > 1]
    last = number[np.diff(number, append=2 * pieces) > 1]
    return at(first, pieces), at(last + 1, pieces), len(first) <= MAX_SWITCHES


def _narrow(program: SignalProgram, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(k, 2): the last time that is surely like the left end, the first that is surely like the right one. Where both ends
    are alike, as where abs touches 0, the middle."""
    here, there = labels(program, left, left), labels(program, right, right)
    middle = left + 0.5 * (right - left)
    touching = (here == there).all(axis=1)
    low = _bisect_label(program, here, left, right)
    high = _bisect_label(program, there, right, left)
    windows = np.stack([np.where(touching, np.nextafter(middle, -np.inf), low), np.where(touching, middle, high)], axis=1)
    return windows[(windows[:, 0] < windows[:, 1])]


def _bisect_label(program: SignalProgram, label: np.ndarray, alike: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The last float on the way from `alike` to `other` that has the label, by bisection."""
    while True:
        middle = alike + 0.5 * (other - alike)
        if ((middle == alike) | (middle == other)).all():
            return alike
        same = (labels(program, middle, middle) == label).all(axis=1)
        alike, other = np.where(same, middle, alike), np.where(same, other, middle)


def switches_of_state(program: SignalProgram, clocks: bool = False) -> list[int]:
    """Positions in the code of the operations whose jumps or kinks depend on the state; or on a clock, if asked for."""
    stack, found, state = [], [], (*code.STATE_OPERATIONS, *((code.CLOCK,) if clocks else ()))
    for i, word in enumerate(program.code):
        operation = word & 255
        if operation < code.FIRST_UNARY:
            stack.append(operation in state)
            continue
        count = 1 if operation < code.FIRST_BINARY else 2
        by_state = any(stack[-count:])
        stack[-count:] = [by_state]
        if by_state and operation in _STATE_SWITCHES:
            found.append(i)
    return found


def labels(program: SignalProgram, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(pieces, switches) on which side each switch is, throughout the piece; not a number where that is not sure."""
    middle = start + 0.5 * (end - start)
    half = np.nextafter(np.maximum(end - middle, middle - start), np.inf)
    n, found, stack = len(start), [], []
    t = time(np.concatenate([start, middle]), np.concatenate([end, middle]))

    def bounds(x):
        piece, centre = (Interval(*(row[part] for row in x)) for part in (slice(n), slice(n, None)))
        still = (piece.rate_low == 0) & (piece.rate_high == 0)
        return *mean_value_bounds(piece, centre, np.where(start == end, 0.0, half)), still

    for word in program.code:
        operation, operand = word & 255, word >> 8
        if operation < code.FIRST_UNARY:
            stack.append(_leaf(operation, operand, program, t))
            continue
        x = [stack.pop() for _ in range(1 if operation < code.FIRST_BINARY else 2)][::-1]
        if None in x:                                           # it depends on the state
            stack.append(None)
            continue
        if operation in _SWITCHES:
            found.append(_label(operation, *_switch_bounds(operation, x, bounds), x[0].rate_high[:n] < 0))
        stack.append(apply(operation, *x))
    return np.stack(found, axis=1) if found else np.empty((n, 0))


def _leaf(operation: int, operand: int, program: SignalProgram, t: Interval) -> Interval | None:
    if operation == code.TIME:
        return t
    return constant(program.literals[operand], t.low) if operation == code.LITERAL else None


def _switch_bounds(operation: int, x: list, bounds):
    """Bounds of what an operation switches at, and whether that stands still."""
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


def _label(operation: int, low: np.ndarray, high: np.ndarray, still: np.ndarray, falling: np.ndarray) -> np.ndarray:
    """The same number throughout the pieces on one side. Where step and floor switch, the value just after counts."""
    if operation == code.STEP:
        upper, lower = np.where(falling, low > 0, low >= 0), np.where(falling, high <= 0, high < 0)
        label = np.where(upper, 1.0, np.where(lower, -1.0, np.nan))
    elif operation in (code.FLOOR, code.TAN):
        below = lambda x: np.where(falling, np.ceil(x) - 1, np.floor(x))       # noqa: E731
        count = below if operation == code.FLOOR else lambda x: np.floor(x / np.pi + 0.5)
        label = np.where(count(low) == count(high), count(low), np.nan)
    elif operation in (code.ASIN, code.ACOS):
        label = np.where((low > -1) & (high < 1), 1.0, np.nan)
    else:
        label = np.where(low > 0, 1.0, np.where(high < 0, -1.0, np.nan))
    return np.where(still, _CONSTANT, label)
