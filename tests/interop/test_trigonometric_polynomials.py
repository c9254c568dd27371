"""Trigonometric polynomials in exact arithmetic: identities have one form, and what is no polynomial is an error."""
from fractions import Fraction

import pytest

from liedyn.codegen.targets.target import UnsupportedOperationError
from liedyn.interop.trigonometric_polynomials import TrigonometricPolynomial, fraction


def symbol(k):
    """Return symbol k of (m, a, b), of which a and b may be angles."""
    return TrigonometricPolynomial(3, 2, {tuple(int(i == k) for i in range(5)): (Fraction(1), Fraction(0))})


m, a, b = map(symbol, range(3))
two = m.constant(2.0)


@pytest.mark.parametrize("x, y", [
    (a.sin() * a.sin() + a.cos() * a.cos(), m.constant(1.0)), ((a + b).sin(), a.sin() * b.cos() + a.cos() * b.sin()),
    ((a - b).cos(), a.cos() * b.cos() + a.sin() * b.sin()), ((two * a).sin(), two * a.sin() * a.cos()), ((-a).cos(), a.cos()),
    ((a - a).sin(), m.constant(0.0)), ((a - a).cos(), m.constant(1.0)),
    ((m + m) / two, m), (m * (a + b), m * a + m * b)])
def test_identities_have_one_form(x, y):
    assert x.terms == y.terms and not (x - y).terms


@pytest.mark.parametrize("compute, text", [
    (lambda: m / a, "the quotient of polynomials"), (lambda: m.sin(), "no sum of multiples"),
    (lambda: (a * b).cos(), "no sum of"),
    (lambda: (a / two).sin(), "no sum of"), (lambda: fraction(float("inf")), "the constant inf is not a fraction")])
def test_what_is_no_polynomial_is_an_error(compute, text):
    with pytest.raises(UnsupportedOperationError, match=text):
        compute()


def test_numbers_that_are_fractions_but_for_rounding_become_these():
    assert fraction(0.1) == Fraction(1, 10) and fraction(0.1 + 0.2) == Fraction(3, 10) and fraction(2 / 3) == Fraction(2, 3)
    assert fraction(9.80665) == Fraction(980665, 100000) and fraction(0.1 + 1e-12) == Fraction(0.1 + 1e-12)
