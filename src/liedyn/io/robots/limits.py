"""Limits of joints in files: numbers are finite there, and some formats require a limit where there is none."""
from __future__ import annotations

import math

NO_LIMIT = 1e300                     # a limit of this magnitude or more means none


def read_limit(x: float) -> float:
    """The limit that a file means: infinite from NO_LIMIT on."""
    return x if abs(x) < NO_LIMIT else math.copysign(math.inf, x)


def written_limit(x: float) -> float:
    """The limit as a finite number."""
    return x if math.isfinite(x) else math.copysign(NO_LIMIT, x)
