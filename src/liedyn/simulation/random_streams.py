"""Random numbers of streams that depend on a seed and a name only, with every version of NumPy, and noise of measurements."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array

BITS = 2.0**-53
NOISE_BLOCK = 256            # samples whose errors are computed at once


def random_stream(seed: int, key: str, first: int, until: int) -> Array:
    """Return the numbers first … until - 1 in (0, 1) of the stream with this seed and name."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(name & 0xFFFFFFFF, name >> 32 & 0xFFFFFFFF)))
    return np.asarray((generator.advance(first).random_raw(until - first) >> np.uint64(11)) + 0.5, dtype=float) * BITS


def normal_stream(seed: int, key: str, first: int, until: int) -> Array:
    """Return normally distributed numbers with deviation 1 of the stream with this seed and name."""
    from scipy.special import ndtri

    return np.asarray(ndtri(random_stream(seed, key, first, until)))


@dataclass(frozen=True, eq=False)
class MeasurementNoise:
    """Normally distributed errors of measured positions, tangent, and velocities.

    They depend on the seed, the name of the coordinate and the sample only.

    names        (nv,) of the coordinates
    deviations   (2, nv) standard deviations; 0: exact
    """

    seed: int
    names: tuple[str, ...]
    deviations: Array

    def block(self, first: int) -> Array:
        """Return the errors (NOISE_BLOCK, 2, nv) of the samples from `first` on."""
        errors = np.zeros((NOISE_BLOCK, *self.deviations.shape))
        for i, k in zip(*np.nonzero(self.deviations), strict=True):
            key = f"measurement of {'qv'[i]}.{self.names[k]}"
            errors[:, i, k] = self.deviations[i, k] * normal_stream(self.seed, key, first, first + NOISE_BLOCK)
        return errors
