"""Random numbers of streams that depend on a seed and a name only, with every version of NumPy."""
from __future__ import annotations

import hashlib

import numpy as np

from liedyn.arrays import Array

BITS = 2.0**-53


def random_stream(seed: int, key: str, first: int, until: int) -> Array:
    """Return the numbers first … until - 1 in (0, 1) of the stream with this seed and name."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(name & 0xFFFFFFFF, name >> 32 & 0xFFFFFFFF)))
    return np.asarray((generator.advance(first).random_raw(until - first) >> np.uint64(11)) + 0.5, dtype=float) * BITS
