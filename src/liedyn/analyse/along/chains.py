"""Quantities and their derivatives with respect to time, some from a file, the others from splines through those."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from liedyn.analyse.along.manifold_spline import (
    Fit,
    body_velocities,
    check_rows,
    continued,
    degree_for,
    errors,
    misses,
    noise,
    of_unit_norm,
    one_sided,
    sizes_to_judge_by,
    spline_derivatives,
    with_noise,
)
from liedyn.joints.kinds import SCREW
from liedyn.model.model import Model
from liedyn.simulation.names import listed

_DRAWS = 16                             # of noise, whose mean effect is taken: one alone is of few independent numbers
_COARSE, _FINE = Fraction(3, 2), Fraction(6, 5)     # from one number of rows per knot to the next that is tried
_NAMED = 8                              # columns whose knots a message lists


@dataclass(frozen=True, eq=False)
class Chain:
    """Columns and their rates, one after the other, as tau, d1tau, d2tau.

    names   kinds of columns; "q" is followed by "v", on the manifold of `model`
    arrays  (N, n) each, or None where the file has none; the first is there
    units   (n,) of the first, for telling what may be compared
    labels  (n,) names of the columns; default: those of the coordinates
    """

    model: Model
    names: list[str]
    arrays: list[np.ndarray | None]
    units: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def gaps(self) -> list[tuple[int, int]]:
        """(given, last): the entries given + 1 … last are missing."""
        known = [k for k, x in enumerate(self.arrays) if x is not None]
        return [(k, stop - 1) for k, stop in zip(known, [*known[1:], len(self.arrays)], strict=True) if stop > k + 1]

    def samples(self, k: int) -> np.ndarray:
        """What a spline is laid through in order to derive what comes after entry k."""
        return continued(self.model, self.arrays[k]) if self.names[k] == "q" else self.arrays[k]

    def filled(self, t: np.ndarray, fit: Fit) -> list[np.ndarray]:
        """All entries, (N, n) each; what others are derived from is read off its spline where that smooths. Noise of a fit is in
        all that the file has."""
        out = [x if x is None or not fit.noisy else self._with_noise(t, k) for k, x in enumerate(self.arrays)]
        for given, last in self.gaps():
            own, of_motion = fit.of(self.names[given]), self.names[given] == "q"
            found = spline_derivatives(t, self.samples(given), last - given, own)
            out[given + 1:last + 1] = (body_velocities(self.model, found) if of_motion else found[:, 1:]).swapaxes(0, 1)
            along = of_unit_norm(self.model, found[:, 0]) if of_motion else found[:, 0]
            out[given] = along if own.noisy else np.where(np.equal(own.samples, 1), self.arrays[given], along)
        return out

    def _with_noise(self, t: np.ndarray, k: int) -> np.ndarray:
        x = with_noise(t, self.samples(k), seed=k)
        return of_unit_norm(self.model, x) if self.names[k] == "q" else x

    def doubt(self, t: np.ndarray, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of the last entry of each gap, (n,) estimated error and size."""
        entries = [self.filled(t, fit) for fit in (Fit(rows), *Fit(rows).checks())]
        found = []
        for given, last in self.gaps():
            x, *others = (entry[last][:, None] for entry in entries)
            error, _, size = errors(x, others, one_sided(len(t), last - given, rows))
            found.append((error[0], size[0]))
        return found

    def columns(self, k: int) -> tuple[str, ...]:
        """Names of the columns of entry k."""
        return self.labels or (self.model.q_names if self.names[k] == "q" else self.model.v_names)

    def blocks(self, k: int) -> list[slice]:
        """The columns of entry k that one spline goes through: the four of a quaternion, else one."""
        turns = [] if self.names[k] != "q" else [slice(joint.q.stop - 4, joint.q.stop) for joint in self.model.joints
                                                 if joint.kind != SCREW]
        single = set(range(self.arrays[k].shape[1])) - {i for turn in turns for i in range(turn.start, turn.stop)}
        return sorted([*turns, *(slice(i, i + 1) for i in single)], key=lambda block: block.start)


def knot_spacings(t: np.ndarray, chains: list[Chain], smooth: float | str | None) -> tuple[dict[str, np.ndarray], list[str]]:
    """As `rows_per_knot`, with a number for each column of what a spline is laid through, by its kind: "auto" takes, for each
    column, the distance at which the estimated error of its highest derivative is least."""
    gaps = [(chain, *gap) for chain in chains for gap in chain.gaps()]
    if smooth == "auto" and gaps:
        for _, given, last in gaps:
            check_rows(t, last - given, 1)
        return {chain.names[given]: _quietest_of_each(t, chain, given, last) for chain, given, last in gaps}, []
    rows, notes = rows_per_knot(t, chains, smooth)
    return {chain.names[given]: np.full(chain.arrays[given].shape[1], rows) for chain, given, _ in gaps}, notes


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


def _quietest_of_each(t: np.ndarray, chain: Chain, given: int, last: int) -> np.ndarray:
    """(n,) rows per knot for the least error of each column of what entry `last` is derived from; all of a quaternion alike."""
    x, highest, blocks = chain.samples(given), last - given, chain.blocks(given)
    variance, draws = noise(t, x) ** 2, np.random.default_rng(0).standard_normal((len(t), _DRAWS))
    best, least, follows = np.ones(x.shape[1], dtype=int), np.full(len(blocks), np.inf), np.ones(len(blocks), dtype=bool)
    for rows in _numbers(len(t), _FINE):
        if rows > 1:
            missed = misses(t, x, highest, rows)
            follows &= [not missed[block].any() for block in blocks]
        if not follows.any():
            break
        ends = one_sided(len(t), highest, rows)
        found, other, drawn = (spline_derivatives(t, samples, highest, fit)[ends:len(t) - ends, highest]
                               for samples, fit in ((x, Fit(rows)), (x, Fit(rows, raised=2)), (draws, Fit(rows))))
        square = np.mean((other - found) ** 2, axis=0) + variance * np.mean(drawn**2)
        for k, block in enumerate(blocks):
            error = float(square[block].sum())
            if follows[k] and error < least[k]:
                least[k], best[block] = error, rows
    return best


def _numbers(most: int, factor: Fraction) -> Iterator[int]:
    """Of rows per knot that are tried, below `most`."""
    rows = 1
    while rows < most:
        yield rows
        rows = max(rows + 1, int(rows * factor))


def _quietest(t: np.ndarray, chains: list[Chain], gaps) -> int:
    """Rows per knot for the least error of the worst coordinate, each of the size that it has where its error is least."""
    tried, error, size = [], [], []
    for rows in _numbers(len(t), _COARSE):
        if rows > 1 and any(_missed(t, chain, given, last, rows, alike=True) for chain, given, last in gaps):
            break
        doubts = [doubt for chain in chains for doubt in chain.doubt(t, rows)]
        tried.append(rows)
        error.append(np.concatenate([x for x, _ in doubts]))
        size.append(np.concatenate([x for _, x in doubts]))
    units = [f"{k} {unit}" for k, (chain, _, _) in enumerate(gaps) for unit in chain.units]
    error, size = np.array(error), np.array(size)
    size = np.take_along_axis(size, error.argmin(axis=0)[None], axis=0)
    return tried[int((error / sizes_to_judge_by(size, units)).max(axis=1).argmin())]


def _missed(t: np.ndarray, chain: Chain, given: int, last: int, rows: int, *, alike: bool = False) -> bool:
    """alike: a coordinate without noise beside noisy ones may lose as much as their noise."""
    check_rows(t, last - given, rows)
    units = (chain.model.q_units if chain.names[given] == "q" else chain.units) if alike else None
    return bool(misses(t, chain.samples(given), last - given, rows, units).any())


def derivations(t: np.ndarray, chains: list[Chain], rows: Mapping[str, np.ndarray]) -> list[str]:
    """What is derived from what, in words. rows: as of `knot_spacings`."""
    out = []
    for chain in chains:
        for given, last in chain.gaps():
            *others, name = chain.names[given + 1:last + 1]
            what = f"{', '.join(others)} and {name} are" if others else f"{name} is"
            way = _way(rows[chain.names[given]], chain.columns(given), float(np.median(np.diff(t))))
            out.append(f"{what} derived from {chain.names[given]} by splines of degree {degree_for(last - given)} {way}")
    return out


def _way(rows: np.ndarray, names: Sequence[str], step: float) -> str:
    """Where the knots are, in words."""
    least, most = int(rows.min()), int(rows.max())
    if most == 1:
        return "through every row"
    if least == most:
        return f"with a knot every {most} rows ({most * step:.3g} s)"
    each = listed([f"{name} {count}" for name, count in zip(names, rows, strict=True)], _NAMED)
    return f"with a knot every {least} to {most} rows ({least * step:.3g} to {most * step:.3g} s): {each}"
