"""Table of the operations of expressions: name, opcode, and values of numbers, arrays and intervals.

The compiled interpreters, `kernels.simulation.signals` (jets) and `kernels.simulation.signal_series` (Taylor series), have a
branch for each opcode; a test compares every entry of the table with both.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array
from liedyn.kernels.simulation import signals as code

# Interval arithmetic: bounds of a function and of its first time derivative over many pieces of time ---------------------

# In piece i, the function is in [low[i], high[i]] and its derivative in [rate_low[i], rate_high[i]]. Bounds are rounded
# outward, so they hold for computed floats, too. Unknown bounds, as outside the domain of a function, are infinite. Only
# constants have the derivative [0, 0] (Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009).

Bounds: TypeAlias = tuple[Array, Array]                              # lower and upper bounds, (pieces,) each
BoundsAndRates: TypeAlias = tuple[Array, Array, Array, Array]        # the fields of an `Interval`

_ULPS = 4             # maximum error of a library function, in spacings of floats
_SLACK = 1e-9         # of a period: this close to a turning point or a pole, bounds include it
_MAX_ANGLE = 1e6      # rad: a larger angle is accurate to 1e-10 of a period only, and periodic functions get their full range


class Interval(NamedTuple):
    """Bounds of a function and of its time derivative, (pieces,) each."""

    low: Array
    high: Array
    rate_low: Array
    rate_high: Array


def constant(value: float, like: Array) -> Interval:
    """Return the interval of a constant, with the shape of `like`."""
    zero = np.zeros_like(like)
    return Interval(zero + value, zero + value, zero, zero)


def time(start: Array, end: Array) -> Interval:
    """Return the interval of the time in pieces from start to end."""
    return Interval(start, end, np.ones_like(start), np.ones_like(start))


def apply(operation: int, *x: Interval) -> Interval:
    """Return the interval of an operation on one or two intervals. operation: an opcode of `kernels.simulation.signals`."""
    with np.errstate(all="ignore"):
        bounds = OPERATIONS[operation].interval(*x)
    return Interval(*_clean_bounds(*bounds[:2]), *_clean_bounds(*bounds[2:]))


def increasing_function(x: Interval, f: Callable[[Array], Array], slow: float, fast: float) -> Interval:
    """Return the interval of an increasing function, whose slope is between `slow` and `fast`."""
    with np.errstate(all="ignore"):
        rates = _multiply((x.rate_low, x.rate_high), (np.full_like(x.low, slow), np.full_like(x.low, fast)))
        return Interval(*_clean_bounds(_down(f(x.low), _ULPS), _up(f(x.high), _ULPS)), *_clean_bounds(*rates))


def unbounded(like: Array) -> Interval:
    """Return the interval of an unknown function, with the shape of `like`."""
    infinite = np.full_like(like, np.inf)
    return Interval(-infinite, infinite, -infinite, infinite)


def mean_value_bounds(x: Interval, middle: Interval, half: Array) -> tuple[Array, Array]:
    """Return bounds of x over pieces of half width `half` that also use the mean value form: values in the middles and rates."""
    with np.errstate(all="ignore"):
        reach = _up(np.maximum(np.abs(x.rate_low), np.abs(x.rate_high)) * half)
        low, high = _down(middle.low - reach), _up(middle.high + reach)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, np.maximum(x.low, low), x.low), np.where(known, np.minimum(x.high, high), x.high)


# bounds as pairs (low, high) of arrays ----------------------------------------------------------------------------------
def _clean_bounds(low: Array, high: Array) -> Bounds:
    """Replace bounds that are NaN by infinite ones."""
    bad = np.isnan(low) | np.isnan(high)
    return np.where(bad, -np.inf, low), np.where(bad, np.inf, high)


def _down(x: Array, ulps: int = 1) -> Array:
    for _ in range(ulps):
        x = np.nextafter(x, -np.inf)
    return x


def _up(x: Array, ulps: int = 1) -> Array:
    for _ in range(ulps):
        x = np.nextafter(x, np.inf)
    return x


def _add(a: Bounds, b: Bounds) -> Bounds:
    return _sum(a[0], b[0])[0], _sum(a[1], b[1])[1]


def _sum(x: Array, y: Array) -> Bounds:
    """Return floats below and above x + y, both equal to the sum if it is exact (Knuth's error of a sum)."""
    s = x + y
    z = s - x
    error = (x - (s - z)) + (y - z)
    return np.where(error >= 0, s, _down(s)), np.where(error <= 0, s, _up(s))


def _negate(a: Bounds) -> Bounds:
    return -a[1], -a[0]


def _subtract(a: Bounds, b: Bounds) -> Bounds:
    return _add(a, _negate(b))


def _multiply(a: Bounds, b: Bounds) -> Bounds:
    """Return bounds of the product. 0 times infinity is 0: infinite bounds represent large finite numbers."""
    products = np.array([np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b])
    low, high = products.min(axis=0), products.max(axis=0)
    return np.where(low == 0, 0.0, _down(low)), np.where(high == 0, 0.0, _up(high))


def _divide(a: Bounds, b: Bounds) -> Bounds:
    whole = (b[0] <= 0) & (b[1] >= 0)
    quotients = np.array([x / y for x in a for y in b])
    low, high = quotients.min(axis=0), quotients.max(axis=0)
    still = (a[0] == 0) & (a[1] == 0) & ~whole
    low, high = np.where(still, 0.0, _down(low)), np.where(still, 0.0, _up(high))
    return np.where(whole, -np.inf, low), np.where(whole, np.inf, high)


def _square(a: Bounds) -> Bounds:
    low = np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(a[0] * a[0], a[1] * a[1]))
    return np.maximum(_down(low), 0.0), _up(np.maximum(a[0] * a[0], a[1] * a[1]))


def _monotone(function: Callable[[Array], Array]) -> Callable[[Bounds], Bounds]:
    """Return a function for the bounds of an increasing function, from both ends."""
    return lambda a: (_down(function(a[0]), _ULPS), _up(function(a[1]), _ULPS))


def _sin(a: Bounds) -> Bounds:
    """Return bounds of sin."""
    low, high = np.sin(a[0]), np.sin(a[1])
    low, high = _down(np.minimum(low, high), _ULPS), _up(np.maximum(low, high), _ULPS)
    top = np.floor((a[1] - 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] - 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    bottom = np.floor((a[1] + 0.5 * np.pi) / (2 * np.pi) + _SLACK) >= np.ceil((a[0] + 0.5 * np.pi) / (2 * np.pi) - _SLACK)
    wide = ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _MAX_ANGLE)
    return np.where(bottom | wide, -1.0, np.maximum(low, -1.0)), np.where(top | wide, 1.0, np.minimum(high, 1.0))


def _add_quarter_turn(a: Bounds) -> Bounds:
    """Return bounds of a + pi/2, with slack for the rounding of both."""
    shift = 0.5 * np.pi
    return _down(a[0] + shift, 2), _up(a[1] + shift, 2)


_exp, _sinh, _tanh, _atan = (_monotone(f) for f in (np.exp, np.sinh, np.tanh, np.arctan))


def _cosh(a: Bounds) -> Bounds:
    minimum = np.where((a[0] <= 0) & (a[1] >= 0), 1.0, np.minimum(np.cosh(a[0]), np.cosh(a[1])))
    return _down(minimum, _ULPS), _up(np.maximum(np.cosh(a[0]), np.cosh(a[1])), _ULPS)


def _hull(a: Bounds, b: Bounds) -> Bounds:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


_ONE: Bounds = (np.array(1.0), np.array(1.0))
_HALF: Bounds = (np.array(0.5), np.array(0.5))


def _chain_rule(function: Callable[[Bounds], Bounds],
                slope: Callable[[Bounds], Bounds]) -> Callable[[Interval], BoundsAndRates]:
    """Return an interval rule from functions for the bounds of f and of df/dx."""
    def rule(x: Interval) -> BoundsAndRates:
        a = x[:2]
        return *function(a), *_multiply(slope(a), x[2:])
    return rule


def _restrict_domain(function: Callable[[Bounds], Bounds], low: float, high: float) -> Callable[[Bounds], Bounds]:
    """Return `function` with infinite bounds for arguments that leave [low, high]."""
    def inside(a: Bounds) -> Bounds:
        f = function((np.clip(a[0], low, high), np.clip(a[1], low, high)))
        out = (a[0] < low) | (a[1] > high)
        return np.where(out, -np.inf, f[0]), np.where(out, np.inf, f[1])
    return inside


def _tan(x: Interval) -> BoundsAndRates:
    a = x[:2]
    pole = np.floor(a[1] / np.pi + 0.5 + _SLACK) > np.floor(a[0] / np.pi + 0.5 - _SLACK)
    pole |= ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < _MAX_ANGLE)
    f = _monotone(np.tan)(a)
    f = np.where(pole, -np.inf, f[0]), np.where(pole, np.inf, f[1])
    return *f, *_multiply(_add(_ONE, _square(f)), x[2:])


def _abs(x: Interval) -> BoundsAndRates:
    a, da = x[:2], x[2:]
    rising, falling = a[0] >= 0, a[1] <= 0
    low = np.where(rising, a[0], np.where(falling, -a[1], 0.0))
    both = _hull(da, _negate(da))
    rate_low, rate_high = (np.where(rising, da[k], np.where(falling, _negate(da)[k], both[k])) for k in (0, 1))
    return low, np.maximum(np.abs(a[0]), np.abs(a[1])), rate_low, rate_high


def _step(x: Array) -> Array:
    return np.asarray(x >= 0.0, dtype=float)


def _step_rule(function: Callable[[Array], Array]) -> Callable[[Interval], BoundsAndRates]:
    """Return the interval rule of sign, step or floor, whose derivative is zero between jumps."""
    def rule(x: Interval) -> BoundsAndRates:
        low, high = function(x.low), function(x.high)
        still = (low == high) | ((x.rate_low == 0) & (x.rate_high == 0))
        return low, high, np.where(still, 0.0, -np.inf), np.where(still, 0.0, np.inf)
    return rule


def _min_max_rule(is_min: bool) -> Callable[[Interval, Interval], BoundsAndRates]:
    """Return the interval rule of min, or else of max."""
    choose = np.minimum if is_min else np.maximum

    def rule(x: Interval, y: Interval) -> BoundsAndRates:
        first, second = (x.high <= y.low, y.high <= x.low) if is_min else (x.low >= y.high, y.low >= x.high)
        both = _hull(x[2:], y[2:])
        rate_low, rate_high = (np.where(first, x[2 + k], np.where(second, y[2 + k], both[k])) for k in (0, 1))
        return choose(x.low, y.low), choose(x.high, y.high), rate_low, rate_high
    return rule


def _product(x: Interval, y: Interval) -> BoundsAndRates:
    return *_multiply(x[:2], y[:2]), *_add(_multiply(x[2:], y[:2]), _multiply(x[:2], y[2:]))


def _quotient(x: Interval, y: Interval) -> BoundsAndRates:
    f = _divide(x[:2], y[:2])
    return *f, *_divide(_subtract(x[2:], _multiply(f, y[2:])), y[:2])


def _power(x: Interval, y: Interval) -> BoundsAndRates:
    n = float(y.low[0])
    if n.is_integer() and not (y.rate_low.any() or y.rate_high.any()) and (y.low == n).all() and (y.high == n).all():
        slope = _multiply((np.array(n),) * 2, _integer_power(x[:2], n - 1)) if n else (np.zeros_like(x.low),) * 2
        return *_integer_power(x[:2], n), *_multiply(slope, x[2:])
    log = _logarithm(x[:2])                                             # x**y = exp(y log x), for a positive base
    f = _exp(_multiply(y[:2], log))
    rate = _add(_multiply(y[2:], log), _multiply(y[:2], _divide(x[2:], x[:2])))
    return *f, *_multiply(f, rate)


def _integer_power(a: Bounds, n: float) -> Bounds:
    """Return bounds of a**n for an integer n."""
    if n < 0:
        return _divide(_ONE, _integer_power(a, -n))
    ends = a[0]**n, a[1]**n
    low, high = np.minimum(*ends), np.maximum(*ends)
    over = (a[0] < 0) & (a[1] > 0) & (n % 2 == 0) & (n > 0)
    still = low == high if n == 0 else (a[0] == 0) & (a[1] == 0)
    low, high = np.where(still, low, _down(low, _ULPS)), np.where(still, high, _up(high, _ULPS))
    return np.where(over, 0.0, low), high


def _angle(y: Interval, x: Interval) -> BoundsAndRates:
    """Return the interval of atan2(y, x): the arctangent of y/x for x > 0, else of x/y above or below y = 0."""
    right, above, below = x.low > 0, y.low > 0, y.high < 0
    by_x, by_y = _atan(_divide(y[:2], x[:2])), _atan(_divide(x[:2], y[:2]))
    turned = _add_quarter_turn(_negate(by_y))
    lower = _down(turned[0] - np.pi, 2), _up(turned[1] - np.pi, 2)
    low, high = (np.where(right, by_x[k], np.where(above, turned[k], np.where(below, lower[k], s * 3.15)))
                 for k, s in ((0, -1), (1, 1)))
    rate = _divide(_subtract(_multiply(x[:2], y[2:]), _multiply(y[:2], x[2:])), _add(_square(x[:2]), _square(y[:2])))
    decided = right | above | below
    return low, high, np.where(decided, rate[0], -np.inf), np.where(decided, rate[1], np.inf)


def _cos(a: Bounds) -> Bounds:
    return _sin(_add_quarter_turn(a))


def _secant(a: Bounds) -> Bounds:
    """Return bounds of 1 / sqrt(1 - x²)."""
    return _divide(_ONE, _root(_subtract(_ONE, _square(a))))


def _linear(function: Callable[..., Bounds]) -> Callable[..., BoundsAndRates]:
    """Return the interval rule of a linear function: the rates follow from the rates by the same function."""
    return lambda *x: (*function(*(operand[:2] for operand in x)), *function(*(operand[2:] for operand in x)))


_root, _logarithm, _arcsine, _minus_arccosine = (_restrict_domain(_monotone(f), low, high) for f, low, high in (
    (np.sqrt, 0.0, np.inf), (np.log, 0.0, np.inf), (np.arcsin, -1.0, 1.0), (lambda x: -np.arccos(x), -1.0, 1.0)))


# the table --------------------------------------------------------------------------------------------------------------

class Operation(NamedTuple):
    """An operation of expressions.

    name      name of the function in expressions; for an operator, its Python name
    code      opcode, by which `kernels.simulation.signals` and `signal_series` compute jets and Taylor series
    value     value for numbers
    array     the same for arrays, for outputs of sweeps
    interval  bounds of the value and its rate from those of the arguments
    """

    name: str
    code: int
    value: Callable[..., float]
    array: Callable[..., Array]
    interval: Callable[..., BoundsAndRates]

    @property
    def arguments(self) -> int:
        """Number of arguments."""
        return 1 if self.code < code.FIRST_BINARY else 2


OPERATIONS: dict[int, Operation] = {operation.code: operation for operation in (
    Operation("neg", code.NEGATIVE, operator.neg, np.negative, _linear(_negate)),
    Operation("add", code.ADD, operator.add, np.add, _linear(_add)),
    Operation("sub", code.SUBTRACT, operator.sub, np.subtract, _linear(_subtract)),
    Operation("mul", code.MULTIPLY, operator.mul, np.multiply, _product),
    Operation("truediv", code.DIVIDE, operator.truediv, np.true_divide, _quotient),
    Operation("pow", code.POWER, math.pow, np.power, _power),
    Operation("sin", code.SIN, math.sin, np.sin, _chain_rule(_sin, _cos)),
    Operation("cos", code.COS, math.cos, np.cos, _chain_rule(_cos, lambda a: _negate(_sin(a)))),
    Operation("tan", code.TAN, math.tan, np.tan, _tan),
    Operation("asin", code.ASIN, math.asin, np.arcsin, _chain_rule(_arcsine, _secant)),
    Operation("acos", code.ACOS, math.acos, np.arccos,
              _chain_rule(lambda a: _negate(_minus_arccosine(a)), lambda a: _negate(_secant(a)))),
    Operation("atan", code.ATAN, math.atan, np.arctan, _chain_rule(_atan, lambda a: _divide(_ONE, _add(_ONE, _square(a))))),
    Operation("atan2", code.ATAN2, math.atan2, np.arctan2, _angle),
    Operation("sinh", code.SINH, math.sinh, np.sinh, _chain_rule(_sinh, _cosh)),
    Operation("cosh", code.COSH, math.cosh, np.cosh, _chain_rule(_cosh, _sinh)),
    Operation("tanh", code.TANH, math.tanh, np.tanh, _chain_rule(_tanh, lambda a: _divide(_ONE, _square(_cosh(a))))),
    Operation("exp", code.EXP, math.exp, np.exp, _chain_rule(_exp, _exp)),
    Operation("log", code.LOG, math.log, np.log, _chain_rule(_logarithm, lambda a: _divide(_ONE, a))),
    Operation("sqrt", code.SQRT, math.sqrt, np.sqrt, _chain_rule(_root, lambda a: _divide(_HALF, _root(a)))),
    Operation("abs", code.ABS, abs, np.abs, _abs),
    Operation("sign", code.SIGN, lambda x: float((x > 0) - (x < 0)), np.sign, _step_rule(np.sign)),
    Operation("floor", code.FLOOR, lambda x: float(math.floor(x)), np.floor, _step_rule(np.floor)),
    Operation("step", code.STEP, lambda x: float(x >= 0), _step, _step_rule(_step)),
    Operation("min", code.MIN, min, np.minimum, _min_max_rule(True)),
    Operation("max", code.MAX, max, np.maximum, _min_max_rule(False)))}
_OPERATORS = "neg", "add", "sub", "mul", "truediv", "pow"
FUNCTIONS = {operation.name: operation for operation in OPERATIONS.values() if operation.name not in _OPERATORS}
