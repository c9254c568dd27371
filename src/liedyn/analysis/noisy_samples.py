"""States of a recorded motion, freed of noise, and the same states with more of the noise that the recording has."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    SmoothingFit,
    continued,
    has_rows,
    low_pass,
    noise,
    of_unit_norm,
    one_sided,
    quiet_size,
)
from liedyn.analysis.recorded_motion import RecordedArrays
from liedyn.analysis.trajectory_time_derivatives import Chain, derivations, rows_per_knot
from liedyn.errors import LiedynWarning
from liedyn.model.model import Model

_KINDS = ("q", "v", "a")
_SECOND = 2                     # derivative: the highest that is derived
_SLIGHT = 0.01                  # of the largest rate: smaller contradictions of recorded rates do no harm
_OFF = 3.0                      # derivatives may be so many times as far off as is estimated


@dataclass(frozen=True, eq=False)
class NoisySamples:
    """Recorded q, v, a, and the noise in them. Splines through the positions give what was not recorded.

    t      (N,) times
    given  recorded arrays of q, v, a; None for those that are derived
    rows   samples for each knot of the splines; 1: no smoothing
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
        """Rows that are used: near the ends, derivatives have samples on one side only, which magnifies the noise."""
        gaps = self.chain.gaps()
        ends = max((one_sided(len(self.t), last - given, self.rows) for given, last in gaps), default=0)
        return slice(ends, len(self.t) - ends)

    @cached_property
    def filter(self) -> Callable[[np.ndarray], np.ndarray]:
        """Low-pass filter with the bandwidth of the splines, for (n inner rows, n) arrays that are compared with the states."""
        return low_pass(self.t[self.inner], _SECOND, self.rows) if self.rows > 1 else lambda x: x

    @cached_property
    def noise(self) -> tuple[np.ndarray | None, ...]:
        """(n,) standard deviations of the noise of each recorded array."""
        return tuple(None if x is None else np.maximum(noise(self.t, x), self._unlike_positions(k) if k else 0.0)
                     for k, x in enumerate(self._samples()))

    def states(self, raised: int = 0, more=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q, v, a of the inner rows.

        raised  degrees of the splines above the usual ones
        more    noise that is added to the samples
        """
        samples = self._samples()
        if more is not None:
            samples = [x if x is None else x + e for x, e in zip(samples, more, strict=True)]
        samples[0] = of_unit_norm(self.model, samples[0])
        chain = Chain(self.model, list(_KINDS), samples, self.model.v_units)
        return tuple(x[self.inner] for x in chain.filled(self.t, SmoothingFit(self.rows, raised)))

    def draw(self, rng) -> list[np.ndarray | None]:
        """Return random noise for each recorded array, of the size that it has in the recording."""
        return [None if x is None else s * rng.standard_normal(x.shape) for x, s in zip(self._samples(), self.noise, strict=True)]

    def _samples(self) -> list[np.ndarray | None]:
        q, *others = self.given
        return [continued(self.model, q), *others]

    def _unlike_positions(self, k: int) -> np.ndarray | float:
        """Return by how much (nv,) the recorded velocities (k = 1) or accelerations (k = 2) contradict the positions.

        Zero where the difference is within the error of the derivatives. This noise does not appear in high differences of the
        recorded array: it is smooth where an array was derived from noisy positions."""
        if not has_rows(len(self.t), k, 1):
            return 0.0
        chain = Chain(self.model, list(_KINDS[:k + 1]), [self.given[0], *[None] * k], self.model.v_units)
        rows, _ = rows_per_knot(self.t, [chain], "auto")
        (error, _), = chain.doubt(self.t, rows)
        ends = one_sided(len(self.t), k, rows)
        inner = slice(ends, len(self.t) - ends)
        apart = quiet_size((chain.filled(self.t, SmoothingFit(rows))[k] - self.given[k])[inner])
        size = np.sqrt(np.mean(self.given[k][inner] ** 2, axis=0))
        return np.where(apart > np.maximum(_OFF * error, _SLIGHT * size), apart, 0.0)

    def warnings(self) -> list[LiedynWarning]:
        """Return how q, v and a were obtained."""
        out = [LiedynWarning("derived-motion", text)
               for text in derivations(self.t, [self.chain], {kind: np.array([self.rows]) for kind in _KINDS})]
        if out:
            x = self.noise[0]
            most = int(np.argmax(x))
            out.append(LiedynWarning("position-noise",
                                     f"noise found in the positions: {x[most]:.2g} {self.model.q_units[most] or '(quaternion)'} "
                                     f"at most ({self.model.q_names[most]})"))
        if self.rows > 1:
            left_out = len(self.t) - (self.inner.stop - self.inner.start)
            out.append(LiedynWarning("forces-filtered",
                                     f"forces are filtered like the positions; the first and last {left_out // 2} rows are left "
                                     "out"))
        return out


def noisy_samples(model: Model, t: np.ndarray, motion: RecordedArrays,
                  smooth: float | str | None) -> tuple[NoisySamples, list[LiedynWarning]]:
    """Return the samples of a motion, and warnings.

    smooth  [s] distance of the knots of the splines; "auto": where the estimated error is least; None: no smoothing

    Raises TrajectoryError for too few rows.
    """
    raw = NoisySamples(model, t, (motion.q, motion.v, motion.a), 1)
    rows, warnings = rows_per_knot(t, [raw.chain], None if smooth == "auto" and not raw.derives else smooth)
    samples = NoisySamples(model, t, raw.given, rows)
    return samples, [*samples.warnings(), *warnings]
