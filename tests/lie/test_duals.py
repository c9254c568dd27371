"""Duals: value as of a float64, rates as of the chain rule."""
import math

import numpy as np
import pytest

from liedyn.jit import kernel
from liedyn.lie.duals import rates_of, value_of
from liedyn.lie.lanes import lane, load, sincos, sqrt, store
from liedyn.lie.screw import screw_pose
from liedyn.lie.se3 import Ad, minus_dad

RATES = np.array([1.0, 0.0, -2.0, 0.5, 3.0, 0.25, -1.0, 10.0])


@kernel
def formula(x, out):
    a, b = load(x, 0), load(x, 1)
    s, c = sincos(a)
    y = (2.0 * a - b * a) / (1.5 + b * b) + a / b - 3.0 / a + sqrt(b) * s - (-c) * 0.5 + (b - 1.0)
    store(out, 0, y)
    return value_of(y), lane(rates_of(y), 2)


def duals(values, rates):
    x = np.zeros((len(values), 2, 8))
    x[:, 0, 0], x[:, 1] = values, rates
    return x


def test_formula_against_its_complex_step():
    def by_hand(a, b):
        return ((2 * a - b * a) / (1.5 + b * b) + a / b - 3 / a + np.sqrt(b) * np.sin(a) + np.cos(a) * 0.5 + (b - 1))
    values, rates, out = np.array([0.7, 1.9]), np.array([RATES, RATES[::-1]]), np.zeros((1, 2, 8))
    value, third = formula(duals(values, rates), out)
    h = 1e-30
    truth = [by_hand(values[0] + 1j * h * rates[0, k], values[1] + 1j * h * rates[1, k]).imag / h for k in range(8)]
    assert value == out[0, 0, 0]
    assert value == pytest.approx(by_hand(*values), rel=1e-15)
    np.testing.assert_allclose(out[0, 1], truth, rtol=0, atol=3e-15 * np.abs(truth).max())     # sums that cancel
    assert third == out[0, 1, 2]


@kernel
def turned(x, out):
    """The algebra on duals: a screw's pose, then Ad and the momentum's turning."""
    s, c = sincos(load(x, 0))
    zero = s - s
    T = screw_pose(((1.0 + zero, zero, zero, zero, 1.0 + zero, zero, zero, zero, 1.0 + zero), (zero, 0.3 + zero, zero)),
                   (1.0, 0.2), s, c, load(x, 0))
    V = Ad(T, ((load(x, 1), load(x, 2), load(x, 3)), (load(x, 4), load(x, 5), load(x, 6))))
    F = minus_dad(V, V)
    for k in range(3):
        store(out, k, F[0][k])
        store(out, 3 + k, F[1][k])


def test_algebra_runs_on_duals():
    rng = np.random.default_rng(1)
    x, dx = rng.standard_normal(7), rng.standard_normal((7, 8))
    out, plain = np.zeros((6, 2, 8)), np.empty(6)
    turned(duals(x, dx), out)

    def value(x):
        turned(x, plain)
        return plain.copy()
    np.testing.assert_allclose(out[:, 0, 0], value(x), rtol=1e-15, atol=1e-15)
    for k in range(8):
        d, e = dx[:, k], 1e-3
        slopes = [(value(x + h * d) - value(x - h * d)) / (2 * h) for h in (e, 2 * e, 4 * e)]
        first = [(4 * slopes[j] - slopes[j + 1]) / 3 for j in range(2)]
        np.testing.assert_allclose(out[:, 1, k], (16 * first[0] - first[1]) / 15, atol=1e-10)


def test_constants_have_no_rates():
    @kernel
    def constant(out):
        store(out, 0, 4.0)
    out = np.full((1, 2, 8), math.nan)
    constant(out)
    assert out[0, 0, 0] == 4.0 and np.array_equal(out[0, 1], np.zeros(8))
