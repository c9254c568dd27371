"""Polynomials in symbols, sines and cosines of sums of angles, in exact arithmetic: each has one form, so nothing is simplified.

With z = exp(i q) for each angle q, sin q = (z - 1/z)/2i and cos q = (z + 1/z)/2. A polynomial in the symbols, z and 1/z has one
form, in which squares of sines and cosines and products of them have become sines and cosines of multiples and sums.
"""
from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from liedyn.codegen.targets.target import UnsupportedOperationError

# A number of a robot is taken as a fraction with a denominator up to the first, if it differs from that by rounding only.
_MAX_DENOMINATOR, _ROUNDING = 10**6, 1e-14
Powers: TypeAlias = tuple[int, ...]                            # of the symbols, then of z = exp(i q) of the angles
Coefficient: TypeAlias = tuple[Fraction, Fraction]             # real and imaginary part
_ZERO, _HALF = Fraction(0), Fraction(1, 2)
_NOTHING = _ZERO, _ZERO


def fraction(x: float) -> Fraction:
    """Return a number exactly, or the fraction of small numbers from which it differs by rounding."""
    if not isfinite(x):
        raise UnsupportedOperationError(f"the constant {x} is not a fraction")
    exact = Fraction(x)
    near = exact.limit_denominator(_MAX_DENOMINATOR)
    return near if abs(near - exact) <= _ROUNDING * abs(exact) else exact


class TrigonometricPolynomial:
    """A polynomial: coefficients by powers.

    symbols  their number, of which the last `angles` may be angles
    """

    __slots__ = ("angles", "symbols", "terms")

    def __init__(self, symbols: int, angles: int, terms: dict[Powers, Coefficient]) -> None:
        self.symbols, self.angles, self.terms = symbols, angles, terms

    def _with(self, terms: dict[Powers, Coefficient]) -> TrigonometricPolynomial:
        return TrigonometricPolynomial(self.symbols, self.angles, terms)

    @property
    def _none(self) -> Powers:
        return (0,) * (self.symbols + self.angles)

    def constant(self, x: float | Fraction) -> TrigonometricPolynomial:
        """Return a number as a polynomial in the same symbols."""
        value = x if isinstance(x, Fraction) else fraction(x)
        return self._with({self._none: (value, _ZERO)} if value else {})

    def __add__(self, other: TrigonometricPolynomial) -> TrigonometricPolynomial:
        terms = dict(self.terms)
        for powers, (re, im) in other.terms.items():
            old = terms.get(powers, _NOTHING)
            total = old[0] + re, old[1] + im
            if total == _NOTHING:
                del terms[powers]
            else:
                terms[powers] = total
        return self._with(terms)

    def __neg__(self) -> TrigonometricPolynomial:
        return self._with({powers: (-re, -im) for powers, (re, im) in self.terms.items()})

    def __sub__(self, other: TrigonometricPolynomial) -> TrigonometricPolynomial:
        return self + -other

    def __mul__(self, other: TrigonometricPolynomial) -> TrigonometricPolynomial:
        terms: dict[Powers, Coefficient] = {}
        for p, (a, b) in self.terms.items():
            for r, (c, d) in other.terms.items():
                powers = tuple(map(sum, zip(p, r, strict=True)))
                re, im = terms.get(powers, _NOTHING)
                terms[powers] = (re + a * c - b * d, im + a * d + b * c) if b or d else (re + a * c, im)
        return self._with({powers: x for powers, x in terms.items() if x != _NOTHING})

    def __truediv__(self, other: TrigonometricPolynomial) -> TrigonometricPolynomial:
        if list(other.terms) != [self._none]:
            raise UnsupportedOperationError("the quotient of polynomials is no polynomial")
        return self * self.constant(1 / other.terms[self._none][0])

    def sin(self) -> TrigonometricPolynomial:
        """Return the sine of a sum of multiples of angles."""
        forward, backward = self._exponentials()
        return self._with({forward: (_ZERO, -_HALF)}) + self._with({backward: (_ZERO, _HALF)})     # of the angle 0: one power

    def cos(self) -> TrigonometricPolynomial:
        """Return the cosine of a sum of multiples of angles."""
        forward, backward = self._exponentials()
        return self._with({forward: (_HALF, _ZERO)}) + self._with({backward: (_HALF, _ZERO)})

    def _exponentials(self) -> tuple[Powers, Powers]:
        """Return the powers of exp(i x) and exp(-i x)."""
        powers, first = [0] * self.angles, self.symbols - self.angles
        for p, (factor, _) in self.terms.items():
            k = p.index(1) if sum(map(abs, p)) == 1 and 1 in p else -1
            if k < first or factor.denominator != 1:
                raise UnsupportedOperationError("the angle is no sum of multiples of coordinates")
            powers[k - first] += int(factor)
        zeros = (0,) * self.symbols
        return (*zeros, *powers), (*zeros, *(-k for k in powers))
