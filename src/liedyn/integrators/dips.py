"""Where a reading of an event leaves its side within a step, perhaps to come back in the same step: looked for among states of
the step, and near the lowest values of parabolas through three of them."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

_BENT = 0.5              # of how far readings are from a straight line: a lowest value below this may be one beyond
_SURE = 0.1              # of a reading: how much lower than it the next one may be, so that none is beyond
_FAR = 2.0               # of the difference between the highest and the lowest
_TRIES = 20              # on the way to a lowest reading
_CLOSER = 20             # rounds: 2^-20 of the step at last with two looks a round, 4^-20 with four


def first_beyond(excess_after: Callable[[float], float], within: Callable[[], np.ndarray], parts: int) -> float | None:
    """A share of a step at which a switch is beyond its side, as early as can be told; None: there is none. Looks at the ends of
    so many parts of the step first; again at those of what is before the first that is beyond, where others may be for a while.

    excess_after(share) makes that share of the step and returns how far the worst switch is beyond; within(): readings of events
    there, positive on their sides.
    """
    end, beyond = 1.0, False
    for _ in range(_CLOSER):
        readings = []
        for k in range(parts + 1):
            now = excess_after(end * k / parts) > 0 and k > 0
            readings.append(within())
            if now:
                break
        beyond = beyond or now
        shares = end * np.arange(len(readings)) / parts
        end = float(shares[-1])
        if len(readings) > parts:
            break
    readings = np.array(readings)
    near = sorted((*dip, e) for e in np.flatnonzero(~far(readings)) for dip in _dips(shares, readings[:, e]))
    for share, lowest, e in near:
        found = _lowest(excess_after, lambda e=e: within()[e], share, lowest, dict(zip(shares, readings[:, e], strict=True)))
        if found is not None:
            return found
    return float(shares[-1]) if beyond else None


def far(readings) -> np.ndarray:
    """Whether each of the readings along a step (looks, events) is farther from its side's end than it can fall between looks."""
    low = readings.min(axis=0)
    with np.errstate(invalid="ignore"):                        # a time since what has not happened is infinite: far
        return ~(low <= _FAR * (readings.max(axis=0) - low))


def _dips(x, y) -> list[tuple[float, float]]:
    """Where y(x) may be lowest, and below zero; and that value."""
    found = []
    for k in range(len(x) - 2):
        at, lowest = _vertex(x[k:k + 3], y[k:k + 3])
        chord = y[k] + (x[k + 1] - x[k]) / (x[k + 2] - x[k]) * (y[k + 2] - y[k])
        if at is not None and lowest < _BENT * (chord - y[k + 1]):
            found.append((float(at), float(lowest)))
    return found


def _lowest(excess_after, reading, share: float, lowest: float, known: dict[float, float]) -> float | None:
    """A share at which a switch is beyond, on the way from `share`, where the reading may be `lowest`, to the lowest one near it;
    None as soon as parabolas foretell the readings and none that is beyond. known: readings by share."""
    for _ in range(_TRIES):
        if excess_after(share) > 0:
            return share
        known[share] = reading()
        off = abs(known[share] - lowest)
        order = sorted(known)
        at = order.index(share)
        at = min((at - 1, at, at + 1), key=lambda n: known[order[n]])
        if not 0 < at < len(order) - 1:
            return None
        least, near = known[order[at]], order[at - 1:at + 2]
        share, lowest = _vertex(near, [known[x] for x in near])
        if share is None or max(least - lowest, off) < _SURE * least or share in known:
            return None
    return None


def _vertex(x, y):
    """Place and height of the lowest point of the parabola through three points; None, nan: it has none between them."""
    slope = (y[1] - y[0]) / (x[1] - x[0])
    bent = ((y[2] - y[1]) / (x[2] - x[1]) - slope) / (x[2] - x[0])
    if not bent > 0.0:
        return None, np.nan
    at = (x[0] + x[1]) / 2 - slope / (2 * bent)
    return (at, y[0] + slope * (at - x[0]) + bent * (at - x[0]) * (at - x[1])) if x[0] < at < x[2] else (None, np.nan)
