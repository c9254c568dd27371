"""Interval arithmetic: bounds of a function and of its first time derivative over pieces of time, many at once.

An Interval holds four arrays, an entry a piece: the function lies in [low, high] and its derivative in [slow, fast] everywhere
in the piece. Bounds are rounded outward, so they hold for the numbers that the machine computes, too. Where nothing is known,
as outside the domain of a function, they are infinite. Only what does not move has the derivative [0, 0]: so it is known for
constant (Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009).
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.kernels.simulation import signals as code

_ULPS = 4                        # that a library's function may be off
_SLACK = 1e-9                    # of a period: within it of a turning point or a pole, both sides are assumed
_WIDEST = 1e6                    # rad: beyond, where a period is known to 1e-10 of it only, nothing is said of periodic functions


class Interval(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    slow: np.ndarray
    fast: np.ndarray


def constant(value: float, like: np.ndarray) -> Interval:
    zero = np.zeros_like(like)
    return Interval(zero + value, zero + value, zero, zero)


def time(start: np.ndarray, end: np.ndarray) -> Interval:
    return Interval(start, end, np.ones_like(start), np.ones_like(start))


def unknown(like: np.ndarray) -> Interval:
    infinite = np.full_like(like, np.inf)
    return Interval(-infinite, infinite, -infinite, infinite)


def apply(operation: int, *x: Interval) -> Interval:
    """A function of one or two intervals; operation: an opcode of `kernels.simulation.signals`."""
    with np.errstate(all="ignore"):
        made = _RULES[operation](*x)
    return Interval(*_pair(*made[:2]), *_pair(*made[2:]))


def centred(x: Interval, middle: Interval, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of x over pieces of half width `half`, by its values in their middles and its slopes too (mean value form)."""
    with np.errstate(all="ignore"):
        reach = _up(np.maximum(np.abs(x.slow), np.abs(x.fast)) * half)
        low, high = _down(middle.low - reach), _up(middle.high + reach)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, np.maximum(x.low, low), x.low), np.where(known, np.minimum(x.high, high), x.high)


# bounds as pairs (low, high) of arrays ----------------------------------------------------------------------------------
def _pair(low, high):
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


def _negative(a):
    return -a[1], -a[0]


def _times(a, b):
    """0 times anything is 0: infinite bounds stand for large finite numbers."""
    products = np.array([np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b])
    low, high = products.min(axis=0), products.max(axis=0)
    return np.where(low == 0, 0.0, _down(low)), np.where(high == 0, 0.0, _up(high))


def _divided(a, b):
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


def _wave(a):
    """Bounds of sin."""
    low, high = np.sin(a[0]), np.sin(a[1])
    low, high = _down(np.minimum(low, high), _ULPS), _up(np.maximum(low, high), _ULPS)
    top = np.floor((a[1] - 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] - 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    bottom = np.floor((a[1] + 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] + 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    wide = ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _WIDEST)
    return np.where(bottom | wide, -1.0, np.maximum(low, -1.0)), np.where(top | wide, 1.0, np.minimum(high, 1.0))


def _quarter(a):
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


def _chain(function, slope):
    """A rule from bounds of f and of df/dx."""
    def rule(x: Interval):
        a = x[:2]
        return *function(a), *_times(slope(a), x[2:])
    return rule


def _within(function, low, high):
    """Nothing is known outside [low, high]."""
    def inside(a):
        f = function((np.clip(a[0], low, high), np.clip(a[1], low, high)))
        out = (a[0] < low) | (a[1] > high)
        return np.where(out, -np.inf, f[0]), np.where(out, np.inf, f[1])
    return inside


def _tan(x: Interval):
    a = x[:2]
    pole = np.floor(a[1] / np.pi + 0.5 + _SLACK) > np.floor(a[0] / np.pi + 0.5 - _SLACK)
    pole |= ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _WIDEST)
    f = _monotone(np.tan)(a)
    f = np.where(pole, -np.inf, f[0]), np.where(pole, np.inf, f[1])
    return *f, *_times(_add(_ONE, _square(f)), x[2:])


def _abs(x: Interval):
    a, da = x[:2], x[2:]
    rising, falling = a[0] >= 0, a[1] <= 0
    low = np.where(rising, a[0], np.where(falling, -a[1], 0.0))
    both = _hull(da, _negative(da))
    slow, fast = (np.where(rising, da[k], np.where(falling, _negative(da)[k], both[k])) for k in (0, 1))
    return low, np.maximum(np.abs(a[0]), np.abs(a[1])), slow, fast


def _jump(function):
    """sign, step, floor: at rest between their jumps."""
    def rule(x: Interval):
        low, high = function(x.low), function(x.high)
        still = (low == high) | ((x.slow == 0) & (x.fast == 0))
        return low, high, np.where(still, 0.0, -np.inf), np.where(still, 0.0, np.inf)
    return rule


def _choice(least: bool):
    """min or max."""
    choose = np.minimum if least else np.maximum

    def rule(x: Interval, y: Interval):
        first, second = (x.high <= y.low, y.high <= x.low) if least else (x.low >= y.high, y.low >= x.high)
        both = _hull(x[2:], y[2:])
        slow, fast = (np.where(first, x[2 + k], np.where(second, y[2 + k], both[k])) for k in (0, 1))
        return choose(x.low, y.low), choose(x.high, y.high), slow, fast
    return rule


def _product(x: Interval, y: Interval):
    return *_times(x[:2], y[:2]), *_add(_times(x[2:], y[:2]), _times(x[:2], y[2:]))


def _quotient(x: Interval, y: Interval):
    f = _divided(x[:2], y[:2])
    return *f, *_divided(_add(x[2:], _negative(_times(f, y[2:]))), y[:2])


def _power(x: Interval, y: Interval):
    n = float(y.low[0])
    if n.is_integer() and not (y.slow.any() or y.fast.any()) and (y.low == n).all() and (y.high == n).all():
        slope = _times((n, n), _whole_power(x[:2], n - 1)) if n else (np.zeros_like(x.low),) * 2
        return *_whole_power(x[:2], n), *_times(slope, x[2:])
    log = _within(_monotone(np.log), 0.0, np.inf)(x[:2])       # x**y = exp(y log x), for a positive base
    f = _exp(_times(y[:2], log))
    rate = _add(_times(y[2:], log), _times(y[:2], _divided(x[2:], x[:2])))
    return *f, *_times(f, rate)


def _whole_power(a, n):
    """a**n of a whole number n."""
    if n < 0:
        return _divided(_ONE, _whole_power(a, -n))
    ends = a[0]**n, a[1]**n
    low, high = np.minimum(*ends), np.maximum(*ends)
    over = (a[0] < 0) & (a[1] > 0) & (n % 2 == 0) & (n > 0)
    still = low == high if n == 0 else (a[0] == 0) & (a[1] == 0)
    low, high = np.where(still, low, _down(low, _ULPS)), np.where(still, high, _up(high, _ULPS))
    return np.where(over, 0.0, low), high


def _angle(y: Interval, x: Interval):
    """atan2(y, x): the arctangent of y/x right of the axis x = 0, else of x/y above or below y = 0."""
    right, above, below = x.low > 0, y.low > 0, y.high < 0
    by_x, by_y = _atan(_divided(y[:2], x[:2])), _atan(_divided(x[:2], y[:2]))
    turned = _quarter(_negative(by_y))
    lower = _down(turned[0] - np.pi, 2), _up(turned[1] - np.pi, 2)
    low, high = (np.where(right, by_x[k], np.where(above, turned[k], np.where(below, lower[k], s * 3.15)))
                 for k, s in ((0, -1), (1, 1)))
    rate = _divided(_add(_times(x[:2], y[2:]), _negative(_times(y[:2], x[2:]))), _add(_square(x[:2]), _square(y[:2])))
    decided = right | above | below
    return low, high, np.where(decided, rate[0], -np.inf), np.where(decided, rate[1], np.inf)


def _cosine(a):
    return _wave(_quarter(a))


def _secant(a):
    """1 / sqrt(1 - x²)"""
    return _divided(_ONE, _within(_monotone(np.sqrt), 0.0, np.inf)(_add(_ONE, _negative(_square(a)))))


_RULES = {
    code.NEGATIVE: lambda x: (*_negative(x[:2]), *_negative(x[2:])),
    code.ADD: lambda x, y: (*_add(x[:2], y[:2]), *_add(x[2:], y[2:])),
    code.SUBTRACT: lambda x, y: (*_add(x[:2], _negative(y[:2])), *_add(x[2:], _negative(y[2:]))),
    code.MULTIPLY: _product, code.DIVIDE: _quotient, code.POWER: _power, code.ATAN2: _angle,
    code.MIN: _choice(True), code.MAX: _choice(False), code.ABS: _abs,
    code.SIGN: _jump(np.sign), code.FLOOR: _jump(np.floor), code.STEP: _jump(lambda x: np.where(x >= 0, 1.0, 0.0)),
    code.SIN: _chain(_wave, _cosine), code.COS: _chain(_cosine, lambda a: _negative(_wave(a))), code.TAN: _tan,
    code.ASIN: _chain(_within(_monotone(np.arcsin), -1.0, 1.0), _secant),
    code.ACOS: _chain(lambda a: _negative(_within(_monotone(lambda x: -np.arccos(x)), -1.0, 1.0)(a)),
                      lambda a: _negative(_secant(a))),
    code.ATAN: _chain(_atan, lambda a: _divided(_ONE, _add(_ONE, _square(a)))),
    code.SINH: _chain(_sinh, _cosh), code.COSH: _chain(_cosh, _sinh),
    code.TANH: _chain(_tanh, lambda a: _divided(_ONE, _square(_cosh(a)))),
    code.EXP: _chain(_exp, _exp), code.LOG: _chain(_within(_monotone(np.log), 0.0, np.inf), lambda a: _divided(_ONE, a)),
    code.SQRT: _chain(_within(_monotone(np.sqrt), 0.0, np.inf), lambda a: _divided((0.5, 0.5),
                                                                                  _within(_monotone(np.sqrt), 0.0, np.inf)(a))),
}
