"""Taylor series of signals of time against complex analysis, the jets of order two, and polynomials."""
import cmath
import math

import numpy as np
import pytest

from liedyn.errors import Place
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signal_series import series_stack_size, signal_series
from liedyn.kernels.simulation.signals import Signals, evaluate_signal
from liedyn.simulation.signals.curves import Curve, quintic
from liedyn.simulation.signals.expression import FUNCTIONS, compile_expression

ORDER = 5


def table(x) -> tuple[Signals, int]:
    """Return signals with one signal, and the depth of its stack."""
    i, f = (lambda *a: np.array(a, dtype=np.int64)), (lambda *a: np.array(a, dtype=float))
    if isinstance(x, Curve):
        return Signals(i(code.POLYNOMIAL), i(0), i(len(x.breaks)), x.breaks, x.coefficients.reshape(-1), i(), f()), 0
    if isinstance(x, float):
        return Signals(i(code.CONSTANT), i(0), i(1), f(), f(), i(), f(x)), 0
    program = compile_expression(x, Place("s.yaml", 1), False, None)
    return Signals(i(code.PROGRAM), i(0), i(len(program.code)), f(), f(), i(*program.code), f(*program.literals)), program.depth


def series(x, t: float, order: int = ORDER) -> np.ndarray:
    signals, depth = table(x)
    out = np.full(order + 1, np.nan)
    signal_series(signals, 0, t, np.full(series_stack_size(depth, order), np.nan), out)
    return out


def by_cauchy(text: str, t: float, radius: float = 0.25, n: int = 64) -> np.ndarray:
    """Return coefficients by Cauchy's integral on a circle in the complex plane."""
    names = {name: getattr(cmath, name) for name in dir(cmath)} | {"atan2": lambda y, x: cmath.atan(y / x)}
    angles = 2 * np.pi * np.arange(n) / n
    f = np.array([eval(text, {"__builtins__": {}}, names | {"t": t + radius * cmath.exp(1j * a)}) for a in angles])
    return np.array([(np.mean(f * np.exp(-1j * k * angles)) / radius**k).real for k in range(ORDER + 1)])


SMOOTH = [
    "t", "-t", "t+2", "3-t", "2.5*t", "1/t", "t/(1+t)", "(1+t)/(2+t*t)", "t**3", "t**7", "t**-2", "t**0.5", "t**2.5", "2**t",
    "t**t", "(1+t)**(t/2)", "(-t)**3", "sin(3*t)", "cos(t*t)", "tan(t/2)", "asin(t/3)", "acos(t/3)", "atan(2*t)",
    "atan2(t, 2+t*t)", "atan2(1, t)", "sinh(t)", "cosh(t*t)", "tanh(2*t)", "exp(-t*t)", "log(1+t*t)", "sqrt(1+t)",
    "0.5*sin(2*t+1)*exp(-t/3) + pi*t**2/(1+e*t)", "exp(sin(cos(t)))", "atan(exp(t)/(1+t))",
]


def test_quotients_are_rounded_once():
    for t in np.random.default_rng(5).uniform(0.1, 100.0, 200):
        assert series("t/t", t)[0] == 1.0
        assert series("(t-3)/t", t)[0] == (t - 3.0) / t


@pytest.mark.parametrize("x", [2.0**63, -1e300])
def test_floor_of_a_number_beyond_the_integers_is_that_number(x):
    assert series("floor(t)", x)[0] == x


@pytest.mark.parametrize("text", SMOOTH)
@pytest.mark.parametrize("t", [0.7, 1.3])
def test_series_are_the_taylor_coefficients(text, t):
    expected = by_cauchy(text, t)
    # Cauchy's means carry the rounding of the largest value on the circle, over radius^5 = 1e-3
    np.testing.assert_allclose(series(text, t), expected, rtol=1e-12, atol=2e-12 * max(1.0, abs(expected[0])))


@pytest.mark.parametrize("text", [*SMOOTH, "abs(t-1)", "sign(t)*t", "floor(3*t)+t", "step(t-1)*t*t", "min(t, t*t)",
                                  "max(t, t*t, 1.1)", "clip(t, 0.9, 1.2)", "abs(1-1*t)", "min(t, 1)", "max(t-1, 1-t)",
                                  "sqrt(0*t)", "(t-1)**2", "abs(sin(t-1))"])
@pytest.mark.parametrize("t", [0.7, 1.0])
def test_the_first_three_are_the_jets_that_simulations_use(text, t):
    """At t = 1 many of these have a corner: both use the branch after it."""
    signals, depth = table(text)
    x, dx, ddx = evaluate_signal(signals, 0, t, np.zeros(0), np.zeros(0), np.zeros(3 * max(depth, 1)))
    np.testing.assert_allclose(series(text, t)[:3], [x, dx, ddx / 2], rtol=1e-13, atol=1e-14)


def test_every_function_is_covered():
    seen = "".join(SMOOTH) + "abs( sign( floor( step( min( max( clip("
    assert [name for name in FUNCTIONS if name + "(" not in seen] == []


def test_polynomials_by_piece():
    curve = quintic([(0.0, 0.2, 0.0, 0.0), (1.0, 0.8, 0.3, -1.0), (2.5, -0.4, 0.0, 0.0)])
    for t in (-0.5, 0.0, 0.4, 1.0, 2.4, 2.5, 9.0):
        piece = np.searchsorted(curve.breaks, t, side="right") - 1
        p = np.polynomial.Polynomial(curve.coefficients[max(piece, 0)])
        expected = [p.deriv(k)(t - curve.breaks[max(piece, 0)]) / math.factorial(k) for k in range(7)]
        np.testing.assert_allclose(series(curve, t, 6), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("order", [0, 1, 12])
def test_any_order(order):
    np.testing.assert_allclose(series("exp(2*t)", 0.0, order), [2**k / math.factorial(k) for k in range(order + 1)], rtol=1e-14)
    assert list(series(3.5, 1.0, order)) == [3.5] + [0] * order


@pytest.mark.parametrize("origin", [-np.inf, 0.4])
def test_a_held_clock_stands_at_zero_until_it_begins(origin):
    signals, depth = table("cos(3*t+1)")
    words = np.where(signals.code == code.TIME, code.FROZEN_CLOCK, signals.code)
    signals, out = signals._replace(code=words, clocks=np.array([origin])), np.full(ORDER + 1, np.nan)
    signal_series(signals, 0, 1.3, np.full(series_stack_size(depth, ORDER), np.nan), out)
    expected = series("cos(3*t+1)", 1.3 - origin) if origin > -np.inf else np.r_[np.cos(1.0), np.zeros(ORDER)]
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    x, dx, ddx = evaluate_signal(signals, 0, 1.3, np.zeros(0), np.zeros(0), np.zeros(3 * depth))
    np.testing.assert_allclose([x, dx, ddx / 2], expected[:3], rtol=1e-14)


@pytest.mark.parametrize("text", ["sqrt(t)", "log(t)", "t**2.5", "1/t", "asin(1+t)"])
def test_what_has_no_series_is_not_finite(text):
    assert not np.isfinite(series(text, 0.0)).all()
