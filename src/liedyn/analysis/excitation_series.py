"""Functions of time whose sums are motions of one coordinate from rest to rest: Fourier series and splines."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array

_DEGREE = 5               # of splines: their accelerations have continuous derivatives


class Basis(NamedTuple):
    """Values (n, size) of the functions of a series at n times, and their derivatives with respect to time."""

    q: Array
    v: Array
    a: Array


@dataclass(frozen=True)
class Series(ABC):
    """Functions of one period with v = a = 0 at its start and end: a constant, and 2 (harmonics - 1) others.

    from_start   the others are zero at the start, so that the constant is the initial position
    """

    period: float
    harmonics: int
    from_start: bool = False

    @property
    def size(self) -> int:
        """Number of functions."""
        return 2 * self.harmonics - 1

    @property
    def frequency(self) -> Array:
        """(harmonics,) angular frequencies [rad/s]: of the functions, or of those of a Fourier series of the same size."""
        return np.asarray(2.0 * np.pi / self.period * np.arange(1.0, self.harmonics + 1.0))

    @property
    @abstractmethod
    def summary(self) -> str:
        """The functions as text."""

    @abstractmethod
    def at(self, t: Array) -> Basis:
        """Return the functions at times (n,). They are periodic."""

    def basis(self, count: int) -> Basis:
        """Return the functions at equidistant times of one period."""
        return self.at(np.asarray(np.arange(count) * (self.period / count), dtype=np.float64))


class FourierSeries(Series):
    """Fourier series.

    v = sum of alpha_k cos(k w t) + beta_k sin(k w t), with sum alpha_k = 0 and sum k beta_k = 0. Coefficients of the functions
    are those of orthonormal bases of these planes.
    """

    @cached_property
    def planes(self) -> list[Array]:
        """Orthonormal bases of the planes of alpha and beta."""
        k = np.arange(1.0, self.harmonics + 1.0)
        return [np.linalg.svd(normal[None])[2][1:].T for normal in (np.ones_like(k), k)]

    @property
    def summary(self) -> str:
        """The functions as text."""
        return f"{self.harmonics} harmonics of {1.0 / self.period:.6g} Hz"

    def at(self, t: Array) -> Basis:
        """Return the functions at times (n,)."""
        (alpha, beta), k = self.planes, self.frequency
        S, C, ones = np.sin(np.outer(t, k)), np.cos(np.outer(t, k)), np.ones((len(t), 1))
        even = (-C + float(self.from_start)) / k @ beta
        return Basis(np.hstack([ones, S / k @ alpha, even]), np.hstack([0.0 * ones, C @ alpha, S @ beta]),
                     np.hstack([0.0 * ones, -S * k @ alpha, C * k @ beta]))

    def center_sine_and_cosine(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the mean positions (n,) and coefficients (harmonics, n), from those of the functions (size, n)."""
        n, k = self.harmonics, self.frequency[:, None]
        cosine = -self.planes[1] @ x[n:] / k
        return x[0] - float(self.from_start) * cosine.sum(axis=0), self.planes[0] @ x[1:n] / k, cosine


class SplineSeries(Series):
    """Splines of degree 5 with equal intervals, 2 harmonics - 1. They start and end at the same position."""

    @cached_property
    def knots(self) -> Array:
        """Times of the ends of the intervals, those of the period repeated [s]."""
        return np.pad(np.linspace(0.0, self.period, self.size + 1), _DEGREE, mode="edge")

    @property
    def summary(self) -> str:
        """The functions as text."""
        return f"splines of {self.size} intervals of {self.period / self.size:.6g} s"

    def at(self, t: Array) -> Basis:
        """Return the functions at times (n,)."""
        from scipy.interpolate import BSpline
        count, inner = len(self.knots) - _DEGREE - 1, slice(3, -3)             # the first and last three are at one position
        splines, parts = BSpline(self.knots, np.eye(count), _DEGREE), []
        scale = 2.0 / (self.frequency[0] + self.frequency[-1])                 # velocities are about 1
        for order in range(3):
            rest = np.full((len(t), 1), float(order == 0))
            parts.append(np.hstack([rest, scale * splines(np.mod(t, self.period), nu=order)[:, inner]]))
        return Basis(*parts)


SERIES: dict[str, type[FourierSeries | SplineSeries]] = {"fourier": FourierSeries, "splines": SplineSeries}
