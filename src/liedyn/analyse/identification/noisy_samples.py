"""States of a recorded motion, freed of noise, and the same states with more of the noise that the recording has."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from liedyn.analyse.along.chains import Chain, derivations, rows_per_knot
from liedyn.analyse.along.manifold_spline import Fit, continued, has_rows, low_pass, noise, of_unit_norm, one_sided, quiet_size
from liedyn.analyse.along.recorded_motion import Motion
from liedyn.model.model import Model

_KINDS = ("q", "v", "a")
_SECOND = 2                     # derivative: the highest that is derived
_OFF = 3.0                      # derivatives may be so many times as far off as is estimated
_SLIGHT = 0.01                  # part of a velocity or an acceleration that does no harm as noise


@dataclass(frozen=True, eq=False)
class NoisySamples:
    """What was recorded of q, v, a, and how the rest is derived from it.

    t      (N,) times
    given  arrays of q, v, a; None for what is derived
    rows   for each knot of the splines; 1 where nothing is smoothed
    """

    model: Model
    t: np.ndarray
    given: tuple[np.ndarray | None, ...]
    rows: int

    @property
    def chain(self) -> Chain:
        return Chain(self.model, list(_KINDS), list(self.given), self.model.v_units)

    @property
    def derives(self) -> bool:
        return bool(self.chain.gaps())

    @cached_property
    def inner(self) -> slice:
        """Rows that count: near the ends of what is derived, neighbours are on one side only, and noise is magnified more."""
        gaps = self.chain.gaps()
        ends = max((one_sided(len(self.t), last - given, self.rows) for given, last in gaps), default=0)
        return slice(ends, len(self.t) - ends)

    @cached_property
    def filter(self) -> Callable[[np.ndarray], np.ndarray]:
        """The low-pass of the splines, for (N inner, n) arrays of what is compared with the states."""
        return low_pass(self.t[self.inner], _SECOND, self.rows) if self.rows > 1 else lambda x: x

    @cached_property
    def noise(self) -> tuple[np.ndarray | None, ...]:
        """(n,) standard deviations of the noise of each array that is given."""
        return tuple(None if x is None else np.maximum(noise(self.t, x), self._unlike_positions(k) if k else 0.0)
                     for k, x in enumerate(self._samples()))

    def states(self, raised: int = 0, more=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a of the inner rows. raised: degrees of the splines above the usual; more: noise, added to the samples."""
        samples = self._samples()
        if more is not None:
            samples = [x if x is None else x + e for x, e in zip(samples, more, strict=True)]
        samples[0] = of_unit_norm(self.model, samples[0])
        chain = Chain(self.model, list(_KINDS), samples, self.model.v_units)
        return tuple(x[self.inner] for x in chain.filled(self.t, Fit(self.rows, raised)))

    def draw(self, rng) -> list[np.ndarray | None]:
        return [None if x is None else s * rng.standard_normal(x.shape) for x, s in zip(self._samples(), self.noise, strict=True)]

    def _samples(self) -> list[np.ndarray | None]:
        q, *others = self.given
        return [continued(self.model, q), *others]

    def _unlike_positions(self, k: int) -> np.ndarray | float:
        """(nv,) how far the velocities (k = 1) or accelerations (2) that are given are from those of the positions, where that is
        more than these are off: noise that high differences do not show, as of derivatives taken of noisy positions."""
        if not has_rows(len(self.t), k, 1):
            return 0.0
        chain = Chain(self.model, list(_KINDS[:k + 1]), [self.given[0], *[None] * k], self.model.v_units)
        rows, _ = rows_per_knot(self.t, [chain], "auto")
        (error, _), = chain.doubt(self.t, rows)
        ends = one_sided(len(self.t), k, rows)
        inner = slice(ends, len(self.t) - ends)
        apart = quiet_size((chain.filled(self.t, Fit(rows))[k] - self.given[k])[inner])
        size = np.sqrt(np.mean(self.given[k][inner] ** 2, axis=0))
        return np.where(apart > np.maximum(_OFF * error, _SLIGHT * size), apart, 0.0)

    def notes(self) -> list[str]:
        """What was done, in words."""
        out = derivations(self.t, [self.chain], {kind: np.array([self.rows]) for kind in _KINDS})
        if out:
            x = self.noise[0]
            most = int(np.argmax(x))
            out.append(f"noise found in the positions: {x[most]:.2g} {self.model.q_units[most] or '(quaternion)'} at most "
                       f"({self.model.q_names[most]})")
        if self.rows > 1:
            left_out = len(self.t) - (self.inner.stop - self.inner.start)
            out.append(f"forces are filtered like the positions; the first and last {left_out // 2} rows are left out")
        return out


def noisy_samples(model: Model, t: np.ndarray, motion: Motion, smooth: float | str | None) -> tuple[NoisySamples, list[str]]:
    """Of a motion, with splines whose knots are `smooth` seconds apart ("auto": where the estimated error is least; None: through
    every row), and what is to be said of that. Raises TrajectoryError for too few rows."""
    raw = NoisySamples(model, t, (motion.q, motion.v, motion.a), 1)
    rows, notes = rows_per_knot(t, [raw.chain], None if smooth == "auto" and not raw.derives else smooth)
    samples = NoisySamples(model, t, raw.given, rows)
    return samples, [*samples.notes(), *notes]
