"""The values of each run of a sweep, from its number alone."""
from __future__ import annotations

import hashlib
import math
import warnings
from functools import cached_property

import numpy as np

from liedyn.io.sweep import Distribution, Range, Sweep

_BITS = 2.0**-53


class Design:
    """Of a sweep. Runs have the numbers 0 … count - 1.

    Of `sample` the values of run k are made of numbers in (0, 1), one for each parameter. With `random` sampling each parameter
    has its own stream, by seed and name; other samplings assign their dimensions in the order of the names. So the order of the
    entries of `vary` does not matter. More samples leave those before as they are, but with a Latin hypercube, which is another
    one for each count.
    """

    def __init__(self, sweep: Sweep):
        self.sweep, self.vary = sweep, sweep.vary
        self.listed = [one.values if one.values is None or isinstance(one.values, Range) else _numbers(one.values)
                       for one in sweep.vary]
        self.counts = [len(x) for x in self.listed if x is not None]

    @property
    def count(self) -> int:
        if self.sweep.combine == "sample":
            return self.sweep.samples
        return self.counts[0] if self.sweep.combine == "zip" else math.prod(self.counts)

    def values(self, first: int, until: int) -> list[np.ndarray | list]:
        """Of runs first … until - 1, by what varies: arrays of numbers; lists where values are others. Factors are not yet
        multiplied."""
        runs = np.arange(first, until)
        if self.sweep.combine == "sample":
            u = self._uniforms(first, until)
            return [quantile(one.drawn, u[:, k]) if listed is None
                    else _picked(listed, np.minimum((u[:, k] * len(listed)).astype(int), len(listed) - 1))
                    for k, (one, listed) in enumerate(zip(self.vary, self.listed, strict=True))]
        places = [runs] * len(self.listed) if self.sweep.combine == "zip" else np.unravel_index(runs, self.counts)
        return [_picked(listed, at) for listed, at in zip(self.listed, places, strict=True)]

    def _uniforms(self, first: int, until: int) -> np.ndarray:
        """(runs, d) in (0, 1)."""
        if self.sweep.sampling != "random":
            return self._whole[first:until]
        return np.stack([_stream(self.sweep.seed, one.key, first, until) for one in self.vary], axis=1)

    @cached_property
    def _whole(self) -> np.ndarray:
        from scipy.stats import qmc
        kind = {"latin_hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol}[self.sweep.sampling]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)              # counts that are no power of two: a note says so
            u = kind(len(self.vary), seed=np.random.default_rng(self.sweep.seed)).random(self.count)
        dimensions = np.argsort(np.argsort([one.key for one in self.vary]))         # whatever the order of the entries
        return np.clip(u[:, dimensions], 0.5 * _BITS, 1.0 - _BITS)


def _stream(seed: int, key: str, first: int, until: int) -> np.ndarray:
    """Numbers first … until - 1 in (0, 1) of the stream of a parameter, by seed and name."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    numbers = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(name & 0xFFFFFFFF, name >> 32 & 0xFFFFFFFF)))
    return ((numbers.advance(first).random_raw(until - first) >> np.uint64(11)) + 0.5) * _BITS


def quantile(x: Distribution, u: np.ndarray) -> np.ndarray:
    """Where the distribution function has the values u."""
    if x.kind == "uniform":
        return x.low + (x.high - x.low) * u
    if x.kind == "log_uniform":
        return np.clip(np.exp(np.log(x.low) + np.log(x.high / x.low) * u), x.low, x.high)
    from scipy.special import ndtr, ndtri
    of_logarithm = x.kind == "log_normal"
    low, high = (np.log(max(b, 0.0)) if of_logarithm and b > 0.0 else -np.inf if of_logarithm else b for b in (x.low, x.high))
    centre = np.log(x.centre) if of_logarithm else x.centre
    a, b = (low - centre) / x.spread, (high - centre) / x.spread
    if a > 0.0:                                                        # by the other tail, where numbers are dense
        z = -ndtri(ndtr(-a) * (1.0 - u) + ndtr(-b) * u)
    else:
        z = ndtri(ndtr(a) * (1.0 - u) + ndtr(b) * u)
    found = centre + x.spread * z
    return np.clip(np.exp(found) if of_logarithm else found, x.low, x.high)


def _numbers(values: tuple) -> np.ndarray | tuple:
    """An array where they are numbers."""
    return np.array(values) if all(isinstance(x, float) for x in values) else values


def _picked(values: np.ndarray | tuple | Range, places: np.ndarray) -> np.ndarray | list:
    if isinstance(values, Range):
        return values.at(places)
    return values[places] if isinstance(values, np.ndarray) else [values[k] for k in places]
