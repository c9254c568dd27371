"""Quantities and their derivatives with respect to time, some from a file, the others from splines through those."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.analyse.along.manifold_spline import (
    Fit,
    body_velocities,
    check_rows,
    continued,
    degree_for,
    errors,
    misses,
    of_unit_norm,
    one_sided,
    sizes_to_judge_by,
    spline_derivatives,
)
from liedyn.model.model import Model


@dataclass(frozen=True, eq=False)
class Chain:
    """Columns and their rates, one after the other, as tau, d1tau, d2tau.

    names   kinds of columns; "q" is followed by "v", on the manifold of `model`
    arrays  (N, n) each, or None where the file has none; the first is there
    units   (n,) of the first, for telling what may be compared
    """

    model: Model
    names: list[str]
    arrays: list[np.ndarray | None]
    units: tuple[str, ...]

    def gaps(self) -> list[tuple[int, int]]:
        """(given, last): the entries given + 1 … last are missing."""
        known = [k for k, x in enumerate(self.arrays) if x is not None]
        return [(k, stop - 1) for k, stop in zip(known, [*known[1:], len(self.arrays)], strict=True) if stop > k + 1]

    def samples(self, k: int) -> np.ndarray:
        """What a spline is laid through in order to derive what comes after entry k."""
        return continued(self.model, self.arrays[k]) if self.names[k] == "q" else self.arrays[k]

    def filled(self, t: np.ndarray, fit: Fit, *, smoothed: bool = False) -> list[np.ndarray]:
        """All entries, (N, n) each. smoothed: what others are derived from is read off their spline, too."""
        out = list(self.arrays)
        for given, last in self.gaps():
            found = spline_derivatives(t, self.samples(given), last - given, fit)
            rates = body_velocities(self.model, found) if self.names[given] == "q" else found[:, 1:]
            out[given + 1:last + 1] = rates.swapaxes(0, 1)
            if smoothed:
                out[given] = of_unit_norm(self.model, found[:, 0]) if self.names[given] == "q" else found[:, 0]
        return out

    def doubt(self, t: np.ndarray, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of the last entry of each gap, (n,) estimated error and size."""
        entries = [self.filled(t, fit) for fit in (Fit(rows), *Fit(rows).checks())]
        found = []
        for given, last in self.gaps():
            x, *others = (entry[last][:, None] for entry in entries)
            error, _, size = errors(x, others, one_sided(len(t), last - given, rows))
            found.append((error[0], size[0]))
        return found


def rows_per_knot(t: np.ndarray, chains: list[Chain], smooth: float | str | None) -> tuple[int, list[str]]:
    """For least-squares splines with knots `smooth` seconds apart, or where the estimated error is least ("auto"); 1 for splines
    through every row. And what is to be said of that. Raises TrajectoryError for too few rows."""
    gaps = [(chain, *gap) for chain in chains for gap in chain.gaps()]
    for _, given, last in gaps:
        check_rows(t, last - given, 1)
    if smooth is None or not gaps:
        return 1, ["nothing is derived, so that --smooth has nothing to smooth"] if smooth is not None else []
    if smooth == "auto":
        return _quietest(t, chains, gaps), []
    step = float(np.median(np.diff(t)))
    rows = min(max(1, round(smooth / step)), len(t))
    if rows == 1:
        return 1, [f"--smooth {smooth:g} is no longer than the step of the trajectory, {step:.3g} s: nothing is smoothed"]
    missed = [chain.names[given] for chain, given, last in gaps if _missed(t, chain, given, last, rows)]
    if not missed:
        return rows, []
    return rows, [f"splines with knots {smooth:g} s apart leave out more of {missed[0]} than its noise, and may be further off "
                  "than estimated; take a shorter --smooth, or --smooth auto"]


def _quietest(t: np.ndarray, chains: list[Chain], gaps) -> int:
    """Rows per knot for the least error of the worst coordinate, each of the size that it has where its error is least."""
    tried, error, size, rows = [], [], [], 1
    while rows < len(t):
        if rows > 1 and any(_missed(t, chain, given, last, rows, alike=True) for chain, given, last in gaps):
            break
        doubts = [doubt for chain in chains for doubt in chain.doubt(t, rows)]
        tried.append(rows)
        error.append(np.concatenate([x for x, _ in doubts]))
        size.append(np.concatenate([x for _, x in doubts]))
        rows = max(rows + 1, rows * 3 // 2)
    units = [f"{k} {unit}" for k, (chain, _, _) in enumerate(gaps) for unit in chain.units]
    error, size = np.array(error), np.array(size)
    size = np.take_along_axis(size, error.argmin(axis=0)[None], axis=0)
    return tried[int((error / sizes_to_judge_by(size, units)).max(axis=1).argmin())]


def _missed(t: np.ndarray, chain: Chain, given: int, last: int, rows: int, *, alike: bool = False) -> bool:
    """alike: a coordinate without noise beside noisy ones may lose as much as their noise."""
    check_rows(t, last - given, rows)
    units = (chain.model.q_units if chain.names[given] == "q" else chain.units) if alike else None
    return bool(misses(t, chain.samples(given), last - given, rows, units).any())


def derivations(t: np.ndarray, chains: list[Chain], rows: int) -> list[str]:
    """What is derived from what, in words."""
    out = []
    for chain in chains:
        for given, last in chain.gaps():
            *others, name = chain.names[given + 1:last + 1]
            listed = f"{', '.join(others)} and {name} are" if others else f"{name} is"
            step = float(np.median(np.diff(t)))
            way = "through every row" if rows == 1 else f"with a knot every {rows} rows ({rows * step:.3g} s)"
            out.append(f"{listed} derived from {chain.names[given]} by splines of degree {degree_for(last - given)} {way}")
    return out
