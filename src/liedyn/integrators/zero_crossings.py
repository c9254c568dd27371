"""Signs of event expressions: which side of zero an expression is on, and whether its next flight can be resolved.

An expression keeps its sign while a run is integrated. After a jump the new sign follows from the value, and within its rounding
bound from its first and second time derivative along the flow. Until the expression exceeds the bound, the event is disarmed: it
happens only where the expression falls below minus the bound.
"""
from __future__ import annotations

import numpy as np

# epsilons of the terms of an expression: what rounding may make of its value. A chain of transforms of 30 links stays below half
ROUNDING = 64.0
STARTS = 8.0             # bounds: what may be left of zero at the end of another run, which is where a run begins
_CLEAR = 4.0             # bounds: flights that are higher are seen above their rounding by halving the time until their end
_SPACINGS = 64.0         # of the duration of a run: a flight that is no longer cannot be told from none


def rounding_bound(size):
    """Of an expression whose terms, and what they are computed from, sum up to `size` in absolute value."""
    return ROUNDING * np.finfo(float).eps * np.asarray(size)


def sign_after(value, rate, curvature, bound):
    """Sign just after now: of the value, if it exceeds its rounding; else of the rate, unless the curvature turns it round before
    the value exceeds its rounding; else of the curvature. 0: none. A derivative that is not a number is not known: it is 0."""
    value, rate, curvature = (np.nan_to_num(np.asarray(x, dtype=float), nan=0.0) for x in (value, rate, curvature))
    by_motion = np.where(turns_at_once(rate, curvature, bound) | (rate == 0.0), np.sign(curvature), np.sign(rate))
    return np.where(np.abs(value) > bound, np.sign(value), by_motion)


def zero_at_start(value, rate, curvature, bound, begins):
    """Whether an expression counts as zero where a run begins: within its own rounding `bound`; or within `begins`, what rounding
    may have left at the end of another run, unless it moves towards zero: then its event is still ahead."""
    ahead = (value * rate < 0.0) & ~hidden(rate, curvature, begins)
    return (np.abs(value) <= bound) | ((np.abs(value) <= begins) & ~ahead)


def comes_back(rate, sign, bound, elapsed):
    """Whether an expression that has left zero to the side `sign` moves towards it again, so fast that it has exceeded its
    rounding in the time since."""
    return (rate * sign < 0.0) & (np.abs(rate) * elapsed > bound)


def resolvable(rate, curvature, bound, duration):
    """Whether an expression that leaves zero at `rate` and is turned round by `curvature` exceeds its rounding before it is back,
    and is back at a time that a run of this duration can tell from now. True where it is not turned round."""
    rate, curvature = np.asarray(rate, dtype=float), np.asarray(curvature, dtype=float)
    back = (rate * curvature < 0.0) | (rate == 0.0)
    with np.errstate(all="ignore"):
        flight = 2.0 * np.abs(rate / curvature)
    short = flight <= _SPACINGS * np.spacing(np.abs(duration))
    return ~(back & (hidden(rate, curvature, _CLEAR * np.asarray(bound)) | (rate == 0.0) | short))


def hidden(rate, curvature, bound):
    """Whether the curvature makes good for the rate, whatever its sign, within the rounding of the value."""
    return rate * rate <= 2.0 * np.abs(curvature) * bound


def turns_at_once(rate, curvature, bound):
    """Whether the curvature turns an expression round before it exceeds its rounding."""
    return (rate * curvature < 0.0) & hidden(rate, curvature, bound)
