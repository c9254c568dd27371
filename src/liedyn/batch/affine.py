"""What each run has of an array of numbers, as a map of the values of a sweep, so that no run has to be bound by itself.

Most numbers are a value of the sweep itself, others, as inertias by a mass, are affine in it. What is found so is checked against
runs that are bound in full; where it does not hold, there is no map.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

_ROUNDING = 1e-13        # relative: an affine map against a run that is bound in full
_OF_FLOORS = 0.5         # the same for pivots below which all is rounding, of which the size matters
LOOKED_AT = 4096         # runs, at most, among which values are looked for that the map is found by
_CHECKED = 6             # runs that are bound in full to check it


class Affine:
    """Numbers of a run = base + sum of slope (x - x0) by what varies; where a number is a value of the sweep, it is that."""

    def __init__(self, base: np.ndarray, origin: list, columns: list, looked: list):
        self.base, self.origin, self.columns = base, origin, columns
        self.spans = [(x.min(), x.max()) if isinstance(x, np.ndarray) else None for x in looked]

    def beyond(self, values: list) -> np.ndarray:
        """(N,) bool: runs with a value that is not between those that the map was found by."""
        found = np.zeros(len(values[0]), dtype=bool)
        for x, span in zip(values, self.spans, strict=True):
            if span is not None:
                found |= (x < span[0]) | (x > span[1])
        return found

    def rows(self, values: list) -> np.ndarray:
        rows = np.tile(self.base, (len(values[0]), 1))
        for x, x0, (same, moved, slope) in zip(values, self.origin, self.columns, strict=True):
            x = np.asarray(x)
            if len(moved):
                rows[:, moved] += (x - x0)[:, None] * slope
            if len(same):
                rows[:, same] = x[:, None]
        return rows


def not_zero(values):
    """The first value that is not zero: a zero may be left out of a line, and its place would not be known."""
    if isinstance(values, np.ndarray) and values.any():
        return values[np.flatnonzero(values)[0]]
    return values[0]


class AffineMap:
    """Of the runs of a sweep.

    values(k)   what varies, of run k of `count`; looked: of the first runs; origin: of the run whose numbers are `base`
    floors   how many of the last numbers are pivots
    numbers(values)   of a run that is bound in full; None where it cannot go with the others
    zeros    whether the numbers of a run in which a value is zero stand at the same places
    affine   the map, None where there is none
    seen     the numbers of all runs that were bound to find it
    """

    def __init__(self, values: Callable[[int], list], count: int, looked: list, origin: list, base: np.ndarray, floors: int,
                 numbers: Callable[[list], np.ndarray | None], zeros: bool = False):
        self.values, self.count, self.looked, self.origin, self.base, self._numbers = values, count, looked, origin, base, numbers
        self.zeros, self.tolerance, self.seen = zeros, np.full(len(base), _ROUNDING), []
        self.tolerance[len(base) - floors:] = _OF_FLOORS
        self.affine = self._found()

    def _bound(self, values: list) -> np.ndarray | None:
        row = self._numbers(values)
        if row is not None:
            self.seen.append(row)
        return row

    def _found(self) -> Affine | None:
        columns, held, origin = [], True, self.origin
        for k, values in enumerate(self.looked):
            if not isinstance(values, np.ndarray):
                held = held and all(x == values[0] for x in values)
                columns.append((np.zeros(0, int), np.zeros(0, int), np.zeros(0)))
                continue
            found = _column(values, origin[k], self.zeros, self.base, self.tolerance,
                            lambda x, k=k: self._bound([*origin[:k], x, *origin[k + 1:]]))
            held = held and found is not None
            columns.append(found)
        if not held:
            for k in self._some:
                self._bound(self.values(k))
            return None
        affine = Affine(self.base, origin, columns, self.looked)
        return affine if self._agrees(affine) else None

    @property
    def _some(self) -> list[int]:
        """Runs from all over the sweep."""
        return [int(k) for k in np.unique(np.linspace(0, self.count - 1, _CHECKED).astype(int))]

    def _agrees(self, affine: Affine) -> bool:
        """Against runs bound in full: the corners, and some from all over the sweep."""
        corners = [[pick(x) if isinstance(x, np.ndarray) else x[0] for x in self.looked] for pick in (np.min, np.max)]
        for values in (*map(self.values, self._some), *corners):
            if not self.zeros:
                values = [x0 if isinstance(x, float) and x == 0.0 else x for x, x0 in zip(values, affine.origin, strict=True)]
            row = self._bound(values)
            if row is None:
                return False
            mapped = affine.rows([[x] for x in values])[0]
            if (np.abs(mapped - row) > 4.0 * self.tolerance * (np.abs(row) + np.abs(affine.base))).any():
                return False
        return True


def _column(values: np.ndarray, x0: float, zeros: bool, base: np.ndarray, tolerance: np.ndarray, bound) -> tuple | None:
    """What of the numbers follows one value: places that are the value itself; other places, and their slopes."""
    distinct = np.unique(values if zeros else values[values != 0.0])
    others = distinct[distinct != x0]
    if not len(others):
        return (np.zeros(0, int),) * 2 + (np.zeros(0),) if (values == x0).all() else None
    if x0 == 0.0 and not zeros:
        return None                                            # a zero is left out of a line: its places are not known
    probes = np.unique([others[0], others[-1], others[len(others) // 2]])
    rows = [bound(x) for x in probes]
    if any(row is None for row in rows):
        return None
    moved = np.flatnonzero(np.any([row != base for row in rows], axis=0))
    is_value = (base[moved] == x0) & np.all([row[moved] == x for row, x in zip(rows, probes, strict=True)], axis=0)
    same, rest = moved[is_value], moved[~is_value]
    far = int(np.argmax(np.abs(probes - x0)))
    slope = (rows[far][rest] - base[rest]) / (probes[far] - x0)
    for row, x in zip(rows, probes, strict=True):
        scale = np.abs(base[rest]) + np.abs(rows[far][rest])
        if (np.abs(base[rest] + slope * (x - x0) - row[rest]) > tolerance[rest] * scale).any():
            return None
    return same, rest, slope
