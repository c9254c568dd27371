"""Values and jets of signals against complex analysis, SciPy and closed forms."""
import cmath
import math

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicSpline

from liedyn.errors import Place
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import Signals, evaluate_signal
from liedyn.simulation.signals.curves import Curve, interpolant, quintic, spline
from liedyn.simulation.signals.expression import FUNCTIONS, compile_expression

PLACE = Place("s.yaml", 1)


def one(x) -> tuple[Signals, np.ndarray]:
    """Return a table with one signal, and its stack."""
    i, f = (lambda *a: np.array(a, dtype=np.int64)), (lambda *a: np.array(a, dtype=float))
    if isinstance(x, Curve):
        return Signals(i(code.POLYNOMIAL), i(0), i(len(x.breaks)), x.breaks, x.coefficients.reshape(-1), i(), f()), np.zeros(3)
    if isinstance(x, float):
        return Signals(i(code.CONSTANT), i(0), i(1), f(), f(), i(), f(x)), np.zeros(3)
    return Signals(i(code.PROGRAM), i(0), i(len(x.code)), f(), f(), i(*x.code), f(*x.literals)), np.zeros(3 * x.depth)


def jet(text: str, t: float, q=(0.0,), v=(0.0,)) -> tuple[float, float, float]:
    program = compile_expression(text, PLACE, True, lambda kind, name: int(name or 0))
    table, stack = one(program)
    return evaluate_signal(table, 0, t, np.array(q, dtype=float), np.array(v, dtype=float), stack)


def taylor(text: str, t: float, radius: float = 0.25, n: int = 64) -> tuple[float, float, float]:
    """Return value and derivatives by Cauchy's integral on a circle in the complex plane, independent of the jets."""
    names = {name: getattr(cmath, name) for name in dir(cmath)} | {"atan2": lambda y, x: cmath.atan(y / x)}
    angles = 2 * np.pi * np.arange(n) / n
    f = np.array([eval(text, {"__builtins__": {}}, names | {"t": t + radius * cmath.exp(1j * a)}) for a in angles])
    return tuple((math.factorial(k) * np.mean(f * np.exp(-1j * k * angles)) / radius**k).real for k in range(3))


SMOOTH = [
    "t", "t+2", "3-t", "2.5*t", "-t", "+t", "1/t", "t/(1+t)", "(1+t)/(2+t*t)", "t*t*t", "t**2", "t**3", "t**-2", "t**0.5",
    "t**1", "t**2.5", "2**t", "t**t", "(1+t)**(t/2)", "(-t)**3",
    "sin(3*t)", "cos(t*t)", "tan(t/2)", "asin(t/3)", "acos(t/3)", "atan(2*t)", "atan2(t, 2+t)", "atan2(1, t)",
    "sinh(t)", "cosh(t)", "tanh(2*t)", "exp(-t*t)", "log(1+t*t)", "sqrt(1+t)", "sqrt(t)",
    "0.5*sin(2*t+1)*exp(-t/3) + pi*t**2/(1+e*t)", "exp(sin(cos(t)))", "atan(exp(t)/(1+t))",
]


@pytest.mark.parametrize("text", SMOOTH)
@pytest.mark.parametrize("t", [0.7, 1.3])
def test_jets_are_the_taylor_coefficients(text, t):
    # 1e-12: rounding of 64 samples, divided by radius^2 = 1/16 for the second derivative
    np.testing.assert_allclose(jet(text, t), taylor(text, t), rtol=1e-12, atol=2e-13)


def test_every_function_is_covered():
    smooth = "".join(SMOOTH)
    others = {"abs", "sign", "min", "max", "floor", "step", "clip"}
    assert {name for name in FUNCTIONS if f"{name}(" not in smooth} == others


@pytest.mark.parametrize("text, t, expected", [
    ("abs(t-1)", 0.5, (0.5, -1, 0)), ("abs(t-1)", 1.0, (0, 1, 0)), ("abs(t*t-1)", 1.0, (0, 2, 2)), ("abs(0*t)", 1.0, (0, 0, 0)),
    ("abs(1-t)", 1.0, (0, 1, 0)), ("abs(-(t-1)**2)", 1.0, (0, 0, 2)),
    ("sign(t-1)", 2.0, (1, 0, 0)), ("sign(t-1)", 0.0, (-1, 0, 0)), ("sign(t-1)", 1.0, (1, 0, 0)), ("sign(1-t)", 1.0, (-1, 0, 0)),
    ("sign(0*t)", 1.0, (0, 0, 0)), ("step(1-t)", 1.0, (0, 0, 0)), ("floor(1-t)", 1.0, (-1, 0, 0)), ("step(0*t)", 1.0, (1, 0, 0)),
    ("floor(t)", 2.5, (2, 0, 0)), ("floor(t)", -2.5, (-3, 0, 0)), ("floor(t)", 2.0, (2, 0, 0)),
    ("step(t-1)", 1.0, (1, 0, 0)), ("step(t-1)", 0.999, (0, 0, 0)),
    ("step(t-1)*(t-1)**3", 3.0, (8, 12, 12)), ("step(t-1)*(t-1)**3", 0.5, (0, 0, 0)),
    ("min(t, 1)", 0.5, (0.5, 1, 0)), ("min(t, 1)", 2.0, (1, 0, 0)), ("min(t, 1)", 1.0, (1, 0, 0)),
    ("max(t, 1)", 0.5, (1, 0, 0)), ("max(t, 1)", 2.0, (2, 1, 0)), ("max(t, 1)", 1.0, (1, 1, 0)),
    ("max(t*t, 2*t-1)", 1.0, (1, 2, 2)), ("min(t*t, 2*t-1)", 1.0, (1, 2, 0)), ("min(3, t, t*t, 7)", 0.5, (0.25, 1, 2)),
    ("max(1, t, t*t, 3*t)", 2.0, (6, 3, 0)),
    ("clip(2*t, 0, 1)", -1.0, (0, 0, 0)), ("clip(2*t, 0, 1)", 0.25, (0.5, 2, 0)), ("clip(2*t, 0, 1)", 3.0, (1, 0, 0)),
])
def test_functions_with_corners_take_the_branch_just_after(text, t, expected):
    assert jet(text, t) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("text, expected", [
    ("sqrt(abs(q))", (0, 0, 0)), ("abs(v)**0.5*sign(v)", (0, 0, 0)), ("v*abs(v)", (0, 0, 0)), ("q**0", (1, 0, 0)),
    ("atan2(q, v)", (0, 0, 0)), ("q**2", (0, 0, 0)), ("asin(1+q)", (math.pi / 2, 0, 0)), ("log(1+q)", (0, 0, 0)),
])
def test_state_that_stands_at_a_singular_slope_has_no_rate(text, expected):
    assert jet(text, 0.3) == pytest.approx(expected, abs=1e-15)


def test_state_counts_as_constant_in_time():
    assert jet("q(1)*v(2) + t*q", 2.0, (3, 5), (0, 0, 7)) == (35 + 6, 3, 0)
    assert jet("-20*q - 3*v", 0.0, (0.5,), (2.0,)) == (-16, 0, 0)


@pytest.mark.parametrize("text, t", [
    ("log(t-1)", 0.5), ("sqrt(t-1)", 0.5), ("asin(t)", 2.0), ("acos(t)", 2.0), ("t**0.5", -1.0), ("1/t", 0.0), ("log(t)", 0.0),
    ("exp(1000*t)", 1.0), ("abs(log(t))", -1.0), ("sign(log(t))", -1.0), ("step(log(t))", -1.0), ("floor(log(t))", -1.0),
    ("max(log(t), 1)", -1.0), ("min(1, log(t))", -1.0), ("clip(log(t), 0, 1)", -1.0), ("0*log(t)", -1.0), ("1/(0*t)", 1.0),
    ("-1/t", 0.0), ("10**(400*t)", 1.0), ("(t-2)**t", 1.5), ("tanh(log(t))", -1.0), ("atan2(log(t), 1)", -1.0),
])
def test_outside_its_domain_a_value_is_not_finite(text, t):
    assert not math.isfinite(jet(text, t)[0])


def test_an_infinite_speed_shows_in_the_derivative():
    x, dx, _ = jet("sqrt(t)", 0.0)
    assert x == 0 and not math.isfinite(dx)


def test_large_arguments_stay_finite():
    assert jet("tanh(1000*t)", 1.0) == (1, 0, 0)
    assert jet("tanh(1000*t)", 1.0)[1] == 0


@pytest.mark.parametrize("x", [2.0**52 + 1, 2.0**53, 2.0**63, -2.0**63, 1e19, -1e300])
def test_floor_of_a_number_beyond_the_integers_is_that_number(x):
    assert jet("floor(t)", x)[0] == x


@pytest.mark.parametrize("text", ["floor(exp(t))", "floor(-exp(t))", "floor(log(-t))"])
def test_floor_of_what_is_not_finite_is_not_finite(text):
    assert not math.isfinite(jet(text, 1000.0)[0])


def test_floor_near_zero():
    assert [jet("floor(t)", x)[0] for x in (-0.5, 0.0, 0.5, 1.0, -1.0, 1e15 + 0.5)] == [-1, 0, 0, 1, -1, 1e15]


def test_quotients_are_rounded_once():
    """As IEEE 754 requires, so that t/t is 1: the quotient is not a product with the reciprocal."""
    rng = np.random.default_rng(5)
    for t in rng.uniform(0.1, 100.0, 200):
        assert jet("t/t", t)[0] == 1.0
        assert jet("q/t", t, q=(0.7,))[0] == 0.7 / t


def test_constant():
    table, stack = one(2.5)
    assert evaluate_signal(table, 0, 3.0, np.zeros(0), np.zeros(0), stack) == (2.5, 0, 0)


def test_quintic_waypoints_against_scipy_and_the_closed_form():
    points = [(0.5, 0.1, 0.0, 0.0), (1.5, 1.0, 0.4, -0.3), (4.0, -2.0, 0.0, 0.0)]
    table, stack = one(quintic(points))
    reference = BPoly.from_derivatives([p[0] for p in points], [p[1:] for p in points])
    for t in np.linspace(0.5, 4.0, 211)[:-1]:
        expected = [reference(t), reference(t, 1), reference(t, 2)]
        np.testing.assert_allclose(evaluate_signal(table, 0, t, stack, stack, stack), expected, rtol=0, atol=1e-12)
    for t, x in ((-3.0, 0.1), (0.4999, 0.1), (4.0, -2.0), (100.0, -2.0)):
        assert evaluate_signal(table, 0, t, stack, stack, stack) == pytest.approx((x, 0, 0), abs=1e-14)
    s = 0.3                                                        # rest to rest: 10 s^3 - 15 s^4 + 6 s^5
    table, stack = one(quintic([(0, 0, 0, 0), (2, 1, 0, 0)]))
    expected = (10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 2, (60 * s - 180 * s**2 + 120 * s**3) / 4)
    assert evaluate_signal(table, 0, 2 * s, stack, stack, stack) == pytest.approx(expected, abs=1e-14)


def test_spline_against_scipy():
    t, x = np.array([0.0, 1.0, 2.5, 3.0]), np.array([0.0, 0.4, 0.1, 0.7])
    table, stack = one(spline(np.column_stack([t, x])))
    reference = CubicSpline(t, x, bc_type="clamped")
    for s in np.linspace(0, 3, 97)[:-1]:
        np.testing.assert_allclose(evaluate_signal(table, 0, s, stack, stack, stack), [reference(s, k) for k in range(3)],
                                   rtol=0, atol=1e-12)
    assert evaluate_signal(table, 0, 3.5, stack, stack, stack) == pytest.approx((0.7, 0, 0))


@pytest.mark.parametrize("interpolation, degree", [("linear", 1), ("cubic", 3), ("quintic", 5)])
def test_interpolants_reproduce_polynomials_of_their_degree(interpolation, degree):
    t = np.linspace(0, 2, 30) + np.random.default_rng(1).uniform(-0.02, 0.02, 30)
    p = np.polynomial.Polynomial(np.random.default_rng(2).normal(size=degree + 1))
    table, stack = one(interpolant(t, p(t), interpolation))
    for s in np.linspace(t[0], t[-1], 50):
        expected = p(s), p.deriv(1)(s), p.deriv(2)(s)
        np.testing.assert_allclose(evaluate_signal(table, 0, s, stack, stack, stack), expected, rtol=1e-9, atol=1e-9)


def test_linear_interpolation_is_continuous_from_the_right():
    curve = interpolant(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, -1.0]), "linear")
    table, stack = one(curve)
    assert evaluate_signal(table, 0, 1.0, stack, stack, stack) == (1, -2, 0)
    assert evaluate_signal(table, 0, math.nextafter(1.0, 0.0), stack, stack, stack) == pytest.approx((1, 1, 0))
    assert list(curve.knots) == [0, 1, 2]


def test_bisection_finds_every_piece():
    n = 1000
    table, stack = one(interpolant(np.arange(n + 1.0), np.arange(n + 1.0) ** 2, "linear"))
    for k in range(n):
        assert evaluate_signal(table, 0, k + 0.25, stack, stack, stack)[1] == 2 * k + 1


def test_a_long_loop_is_cheap_and_allocates_nothing():
    from numba import njit
    from numba.core.runtime import _nrt_python, rtsys

    program, stack = one(compile_expression("0.5*sin(2*t)*exp(-t)", PLACE, False, None))
    polynomial, _ = one(quintic([(0, 0, 0, 0), (1, 1, 0, 0), (2, 0.5, 0, 0)]))

    @njit
    def many(tables, n, stack):
        total = 0.0
        for i in range(n):
            for table in tables:
                total += evaluate_signal(table, 0, 1e-3 * i, stack, stack, stack)[0]
        return total

    def allocations(n: int) -> int:
        before = rtsys.get_allocation_stats().mi_alloc
        many((program, polynomial), n, stack)
        return rtsys.get_allocation_stats().mi_alloc - before

    many((program, polynomial), 1, stack)
    _nrt_python.memsys_enable_stats()
    try:
        few = allocations(1)
        assert allocations(100_000) == few
    finally:
        _nrt_python.memsys_disable_stats()
