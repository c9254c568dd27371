"""Recorded quantities with their time derivatives, completed and smoothed by splines, and the noise in them."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    ROUNDING,
    SmoothingFit,
    body_velocities,
    check_rows,
    continued,
    degree_for,
    errors,
    has_rows,
    low_pass,
    misses,
    noise,
    of_unit_norm,
    one_sided,
    quiet_size,
    sizes_to_judge_by,
    spline_derivatives,
    with_noise,
)
from liedyn.analysis.recorded_motion import RecordedArrays
from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import LiedynWarning, TrajectoryError, list_names
from liedyn.model.model import Model
from liedyn.simulation.name_binding import v_to_q_indices

# Quantities and their time derivatives, from a file or from splines -----------------------------------------------------

_DRAWS = 16                             # number of samples of noise whose effects are averaged
_COARSE, _FINE = Fraction(3, 2), Fraction(6, 5)     # ratio of consecutive numbers of rows per knot that are tried
_MOVES = 3.0                            # of the noise: a coordinate with a smaller standard deviation does not move
_NAMED = 8                              # maximum number of columns whose knot spacings a message lists


@dataclass(frozen=True, eq=False)
class Chain:
    """A quantity and its successive time derivatives, such as tau, d1tau, d2tau.

    names   kinds of columns; "q" is followed by "v", on the manifold of `model`
    arrays  (N, n) each, or None if the file has none; the first is not None
    units   (n,) units of the first, which decide what is comparable
    labels  (n,) names of the columns; default: those of the coordinates
    """

    model: Model
    names: list[str]
    arrays: list[Array | None]
    units: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def gaps(self) -> list[tuple[int, int]]:
        """Return pairs (given, last): the entries given + 1 … last are missing."""
        known = [k for k, x in enumerate(self.arrays) if x is not None]
        return [(k, stop - 1) for k, stop in zip(known, [*known[1:], len(self.arrays)], strict=True) if stop > k + 1]

    def samples(self, k: int) -> Array:
        """Return the samples of entry k of the file, to which a spline is fitted."""
        x = self.arrays[k]
        assert x is not None
        return continued(self.model, x) if self.names[k] == "q" else x

    def filled(self, t: Array, fit: SmoothingFit) -> list[Array]:
        """Return all entries, (N, n) each, with missing ones derived by splines.

        An entry from which others are derived is replaced by its spline if that smooths. If fit.noisy, noise is added to all
        entries of the file.
        """
        entries = {k: self._with_noise(t, k) if fit.noisy else x for k, x in enumerate(self.arrays) if x is not None}
        for known, last in self.gaps():
            fit_of_kind, is_configuration = fit.of(self.names[known]), self.names[known] == "q"
            spline = spline_derivatives(t, self.samples(known), last - known, fit_of_kind)
            derivatives = body_velocities(self.model, spline) if is_configuration else spline[:, 1:]
            entries |= dict(zip(range(known + 1, last + 1), derivatives.swapaxes(0, 1), strict=True))
            smooth = of_unit_norm(self.model, spline[:, 0]) if is_configuration else spline[:, 0]
            if not fit_of_kind.noisy:
                smooth = np.where(np.equal(fit_of_kind.number(), 1), entries[known], smooth)
            entries[known] = smooth
        return [entries[k] for k in range(len(self.arrays))]

    def _with_noise(self, t: Array, k: int) -> Array:
        x = with_noise(t, self.samples(k), seed=k)
        return of_unit_norm(self.model, x) if self.names[k] == "q" else x

    def doubt(self, t: Array, rows: int) -> list[tuple[Array, Array]]:
        """Return the estimated error and the size (n,) of the last entry of each gap."""
        entries = [self.filled(t, fit) for fit in (SmoothingFit(rows), *SmoothingFit(rows).checks())]
        estimates = []
        for known, last in self.gaps():
            x, *variants = (entry[last][:, None] for entry in entries)
            error, _, size = errors(x, variants, one_sided(len(t), last - known, rows))
            estimates.append((error[0], size[0]))
        return estimates

    def moves(self, t: Array, k: int) -> Mask:
        """Return (n,) bool: quantities of which entry k changes by more than its noise; balls and free joints always do."""
        x = self.samples(k)
        changes: Mask = np.std(x, axis=0) > np.maximum(_MOVES * noise(t, x), ROUNDING * np.abs(x).max(axis=0))
        if self.names[k] != "q":
            return changes
        return np.array([i < 0 or changes[i] for i in v_to_q_indices(self.model)])

    def columns(self, k: int) -> tuple[str, ...]:
        """Return the names of the columns of entry k."""
        return self.labels or (self.model.q_names if self.names[k] == "q" else self.model.v_names)

    def blocks(self, k: int) -> list[slice]:
        """Return the groups of columns of entry k with a common spline: the four of a quaternion, otherwise single ones."""
        turns = self.model.quaternions.values() if self.names[k] == "q" else ()
        single = set(range(len(self.columns(k)))) - {i for turn in turns for i in range(turn.start, turn.stop)}
        return sorted([*turns, *(slice(i, i + 1) for i in single)], key=lambda block: block.start)


def knot_spacings(t: Array, chains: list[Chain],
                  smooth: float | str | None) -> tuple[dict[str, Integers], list[LiedynWarning]]:
    """Return the rows per knot {kind: (n,)} of the columns to which splines are fitted, and warnings.

    With "auto", each column gets the spacing that minimizes the estimated error of its highest derivative. Otherwise the spacing
    is that of `rows_per_knot`.
    """
    gaps = _checked_gaps(t, chains)
    if isinstance(smooth, str) and gaps:
        return {chain.names[known]: _quietest_of_each(t, chain, known, last) for chain, known, last in gaps}, []
    rows, warnings = rows_per_knot(t, chains, smooth)
    return {chain.names[known]: np.full(len(chain.columns(known)), rows) for chain, known, _ in gaps}, warnings


def _checked_gaps(t: Array, chains: list[Chain]) -> list[tuple[Chain, int, int]]:
    """Return each chain with its gaps. Raises TrajectoryError for too few rows."""
    gaps = [(chain, *gap) for chain in chains for gap in chain.gaps()]
    for _, known, last in gaps:
        check_rows(t, last - known, 1)
    return gaps


def rows_per_knot(t: Array, chains: list[Chain], smooth: float | str | None) -> tuple[int, list[LiedynWarning]]:
    """Return the rows per knot of least-squares splines, and warnings; 1 means that splines interpolate all rows.

    smooth  distance of knots [s]; "auto": the distance with the least estimated error; None: 1

    Raises TrajectoryError for too few rows.
    """
    gaps = _checked_gaps(t, chains)
    if smooth is None or not gaps:
        return 1, [LiedynWarning("smoothing-unused",
                                 "smooth has no effect: no quantity is derived")] if smooth is not None else []
    if isinstance(smooth, str):                                # "auto"
        return _quietest(t, chains, gaps), []
    step = float(np.median(np.diff(t)))
    rows = min(max(1, round(smooth / step)), len(t))
    if rows == 1:
        return 1, [LiedynWarning("smoothing-unused",
                                 f"smooth = {smooth:g} s does not exceed the step of the trajectory, {step:.3g} s: nothing is "
                                 "smoothed")]
    missed = [chain.names[known] for chain, known, last in gaps if _missed(t, chain, known, last, rows)]
    if not missed:
        return rows, []
    return rows, [LiedynWarning("smoothing-too-strong",
                                f"a knot spacing of {smooth:g} s removes more than the noise of {missed[0]}, so errors may be "
                                "larger than estimated; use a shorter one, or smooth = auto")]


def _quietest_of_each(t: Array, chain: Chain, known: int, last: int) -> Integers:
    """Return the rows per knot (n,) with the least error of each column of the entry from which `last` is derived.

    All columns of a quaternion have the same number.
    """
    x, highest, blocks = chain.samples(known), last - known, chain.blocks(known)
    variance, draws = noise(t, x) ** 2, np.random.default_rng(0).standard_normal((len(t), _DRAWS))
    best, smallest, follows = np.ones(x.shape[1], dtype=int), np.full(len(blocks), np.inf), np.ones(len(blocks), dtype=bool)
    for rows in _rows_per_knot(len(t), _FINE):
        if rows > 1:
            missed = misses(t, x, highest, rows)
            follows &= [not missed[block].any() for block in blocks]
        if not follows.any():
            break
        ends = one_sided(len(t), highest, rows)
        derived, other_derived, drawn = (spline_derivatives(t, samples, highest, fit)[ends:len(t) - ends, highest]
                                         for samples, fit in ((x, SmoothingFit(rows)), (x, SmoothingFit(rows, raised=2)),
                                                              (draws, SmoothingFit(rows))))
        square = np.mean((other_derived - derived) ** 2, axis=0) + variance * np.mean(drawn**2)
        for k, block in enumerate(blocks):
            error = float(square[block].sum())
            if follows[k] and error < smallest[k]:
                smallest[k], best[block] = error, rows
    return best


def _rows_per_knot(maximum: int, factor: Fraction) -> Iterator[int]:
    """Yield the numbers of rows per knot that are tried, below `maximum`."""
    rows = 1
    while rows < maximum:
        yield rows
        rows = max(rows + 1, int(rows * factor))


def _quietest(t: Array, chains: list[Chain], gaps: Sequence[tuple[Chain, int, int]]) -> int:
    """Return the rows per knot with the least error of the worst coordinate that moves.

    The error of a coordinate is relative to its size where its error is least. That of one that does not move is all error.
    """
    tried, errors_tried, sizes_tried = [], [], []
    for rows in _rows_per_knot(len(t), _COARSE):
        try:
            if rows > 1 and any(_missed(t, chain, known, last, rows, alike=True) for chain, known, last in gaps):
                break
            doubts = [doubt for chain in chains for doubt in chain.doubt(t, rows)]
        except TrajectoryError:                                # too few rows for splines with these knots
            if rows == 1:
                raise
            break
        tried.append(rows)
        errors_tried.append(np.concatenate([x for x, _ in doubts]))
        sizes_tried.append(np.concatenate([x for _, x in doubts]))
    units = [f"{k} {unit}" for k, (chain, _, _) in enumerate(gaps) for unit in chain.units]
    error = np.array(errors_tried)
    size = np.take_along_axis(np.array(sizes_tried), error.argmin(axis=0)[None], axis=0)
    moving = np.concatenate([chain.moves(t, known) for chain, known, _ in gaps])
    relative = (error / sizes_to_judge_by(size, units))[:, moving if moving.any() else slice(None)]
    return tried[int(relative.max(axis=1).argmin())]


def _missed(t: Array, chain: Chain, known: int, last: int, rows: int, *, alike: bool = False) -> bool:
    """Return whether splines with so many rows per knot leave out more than the noise of a coordinate.

    alike  True: coordinates with the same unit are assumed to have the noise of the noisiest one
    """
    check_rows(t, last - known, rows)
    units = (chain.model.q_units if chain.names[known] == "q" else chain.units) if alike else None
    return bool(misses(t, chain.samples(known), last - known, rows, units).any())


def derivations(t: Array, chains: list[Chain], rows: Mapping[str, Integers]) -> list[str]:
    """Return texts about which quantities are derived, and how. rows: from `knot_spacings`."""
    out = []
    for chain in chains:
        for known, last in chain.gaps():
            *first_names, name = chain.names[known + 1:last + 1]
            subject = f"{', '.join(first_names)} and {name} are" if first_names else f"{name} is"
            method = _knot_spacing(rows[chain.names[known]], chain.columns(known), float(np.median(np.diff(t))))
            out.append(f"{subject} derived from {chain.names[known]} by splines of degree {degree_for(last - known)} {method}")
    return out


def _knot_spacing(rows: Integers, names: Sequence[str], step: float) -> str:
    """Return the knot spacing as text."""
    smallest, largest = int(rows.min()), int(rows.max())
    if largest == 1:
        return "through every row"
    if smallest == largest:
        return f"with a knot every {largest} rows ({largest * step:.3g} s)"
    each = list_names([f"{name} {count}" for name, count in zip(names, rows, strict=True)], _NAMED)
    return f"with a knot every {smallest} to {largest} rows ({smallest * step:.3g} to {largest * step:.3g} s): {each}"


# Recorded states freed of noise, and the same states with more of the noise of the recording ----------------------------

_KINDS = ("q", "v", "a")
_SECOND = 2                     # derivative: the highest that is derived
_SLIGHT = 0.01                  # of the maximum rate: smaller contradictions of recorded rates do no harm
_ERROR_FACTOR = 3.0             # derivatives may be so many times as far off as is estimated


@dataclass(frozen=True, eq=False)
class NoisySamples:
    """Recorded q, v, a, and the noise in them. Splines through the positions give what was not recorded.

    t         (N,) times
    recorded  recorded arrays {"q": (N, nq), "v": (N, nv), "a": (N, nv)}, v and a if they were recorded; signs of quaternions are
              continued
    rows      samples for each knot of the splines; 1: no smoothing
    """

    model: Model
    t: Array
    recorded: Mapping[str, Array]
    rows: int

    def _chain(self, recorded: Mapping[str, Array], highest: int = _SECOND) -> Chain:
        """Return the chain of q, v, a up to a derivative, of which only the given ones are known."""
        return Chain(self.model, list(_KINDS[:highest + 1]), [recorded.get(kind) for kind in _KINDS[:highest + 1]],
                     self.model.v_units)

    @property
    def chain(self) -> Chain:
        """The chain of q, v and a."""
        return self._chain(self.recorded)

    @property
    def derives(self) -> bool:
        """Whether v or a is derived."""
        return bool(self.chain.gaps())

    @cached_property
    def inner(self) -> slice:
        """Rows that are used: near the ends, derivatives have samples on one side only, which magnifies the noise."""
        gaps = self.chain.gaps()
        ends = max((one_sided(len(self.t), last - first, self.rows) for first, last in gaps), default=0)
        return slice(ends, len(self.t) - ends)

    @cached_property
    def filter(self) -> Callable[[Array], Array]:
        """Low-pass filter with the bandwidth of the splines, for (n inner rows, n) arrays that are compared with the states."""
        return low_pass(self.t[self.inner], _SECOND, self.rows) if self.rows > 1 else lambda x: x

    @cached_property
    def noise(self) -> dict[str, Array]:
        """(n,) standard deviations of the noise of each recorded array."""
        return {kind: np.maximum(noise(self.t, x), self._contradiction(kind) if kind != "q" else 0.0)
                for kind, x in self.recorded.items()}

    def states(self, raised: int = 0, added: Mapping[str, Array] | None = None) -> tuple[Array, Array, Array]:
        """Return q, v, a of the inner rows.

        raised  degrees of the splines above the usual ones
        added   noise that is added to the recorded arrays
        """
        recorded = {kind: x if added is None else x + added[kind] for kind, x in self.recorded.items()}
        recorded["q"] = of_unit_norm(self.model, recorded["q"])
        q, v, a = (x[self.inner] for x in self._chain(recorded).filled(self.t, SmoothingFit(self.rows, raised)))
        return q, v, a

    def draw(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return random noise for each recorded array, of the size that it has in the recording."""
        return {kind: self.noise[kind] * rng.standard_normal(x.shape) for kind, x in self.recorded.items()}

    def _contradiction(self, kind: str) -> Array | float:
        """Return by how much (nv,) the recorded velocities or accelerations contradict the positions.

        Zero where the difference is within the error of the derivatives. This noise does not appear in high differences of the
        recorded array: it is smooth where an array was derived from noisy positions.
        """
        k, x = _KINDS.index(kind), self.recorded[kind]
        if not has_rows(len(self.t), k, 1):
            return 0.0
        chain, size = self._chain({"q": self.recorded["q"]}, k), np.sqrt(np.mean(x**2, axis=0))
        exact = slice(one_sided(len(self.t), k, 1), len(self.t) - one_sided(len(self.t), k, 1))
        if (quiet_size((chain.filled(self.t, SmoothingFit(1))[k] - x)[exact]) <= _SLIGHT * size).all():
            return 0.0                                         # without smoothing, for which the search takes 0.1 s
        rows, _ = rows_per_knot(self.t, [chain], "auto")
        (error, _), = chain.doubt(self.t, rows)
        ends = one_sided(len(self.t), k, rows)
        inner = slice(ends, len(self.t) - ends)
        difference = quiet_size((chain.filled(self.t, SmoothingFit(rows))[k] - x)[inner])
        return np.where(difference > np.maximum(_ERROR_FACTOR * error, _SLIGHT * size), difference, 0.0)

    def warnings(self) -> list[LiedynWarning]:
        """Return how q, v and a were obtained."""
        out = [LiedynWarning("derived-motion", text)
               for text in derivations(self.t, [self.chain], {kind: np.array([self.rows]) for kind in _KINDS})]
        if out:
            x = self.noise["q"]
            worst = int(np.argmax(x))
            out.append(LiedynWarning("position-noise",
                                     f"estimated noise of the positions: at most {x[worst]:.2g} "
                                     f"{self.model.q_units[worst] or '(quaternion)'} ({self.model.q_names[worst]})"))
        if self.rows > 1:
            omitted = len(self.t) - (self.inner.stop - self.inner.start)
            out.append(LiedynWarning("forces-filtered",
                                     f"forces are filtered like the positions; the first and last {omitted // 2} rows are left "
                                     "out"))
        return out


def noisy_samples(model: Model, t: Array, motion: RecordedArrays,
                  smooth: float | str | None) -> tuple[NoisySamples, list[LiedynWarning]]:
    """Return the samples of a motion, and warnings.

    smooth  [s] distance of the knots of the splines; "auto": where the estimated error is least; None: no smoothing

    Raises TrajectoryError for too few rows.
    """
    recorded = {"q": continued(model, motion.q)} | {kind: x for kind, x in (("v", motion.v), ("a", motion.a)) if x is not None}
    raw = NoisySamples(model, t, recorded, 1)
    rows, warnings = rows_per_knot(t, [raw.chain], None if smooth == "auto" and not raw.derives else smooth)
    samples = NoisySamples(model, t, recorded, rows)
    if smooth == "auto":
        try:
            samples.filter                                     # noqa: B018 - computed here
        except TrajectoryError:                                # too few inner rows
            samples = raw
    return samples, [*samples.warnings(), *warnings]
