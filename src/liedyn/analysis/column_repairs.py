"""Repairs of the columns of a recording that the model does not explain: swapped columns, signs, units, delays, gravity."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from liedyn.analysis.recording_checks import TIME_UNITS, is_far, scale_text, torque_unit
from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import ConfigurationError, LiedynWarning
from liedyn.io.column_expressions import negative, with_unit, written
from liedyn.io.column_map import columns_option
from liedyn.io.trajectory_csv import Trajectory
from liedyn.model.model import Model
from liedyn.simulation.name_binding import v_to_q_indices

# Each repair is tested by another fit of all parameters, with few rows. It is a probable cause if it
# leaves a much smaller misfit.
_ROWS = 250             # maximum number of rows of these fits
_SMALLER = 0.25         # of the mean square of the misfit, in standard deviations: a repair that leaves less is a cause
_AS_GOOD = 2.0          # times the misfit of the best repair: others are as probable
_NAMED = 3              # maximum number of repairs in a message
_LEAST_NOISE = 0.01     # of the rms of a torque
_LONGEST_DELAY = 0.1    # of the duration
_DELAYS = 20            # number of delays in each direction that are tried
_DEPENDENT = 1e-10      # of the largest eigenvalue of the normal equations: a smaller one is rounding
_REFINED = np.linspace(0.85, 1.15, 13)


# regressor (n, nv, P) of all parameters and forces (n, nv) of the model, from q (n, nq), v, a (n, nv), external wrenches
# (n, n_links, 6) or None, and gravity (3,) or None for that of the model
Forces: TypeAlias = Callable[[Array, Array, Array, Array | None, Sequence[float] | None], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class MisfittingMotion:
    """A motion that the model does not explain.

    t, q, v, a  (n,), (n, nq), (n, nv) rows of the smoothed motion
    f_ext       (n, n_links, 6) external wrenches at these rows; None without any
    recorded_t  (N,) times of all rows
    tau         (N, nv) measured forces of all rows
    noise       (nv,) standard deviation of their noise
    used        (nv,) bool: coordinates with equations
    ratios      (nv,) of the measured forces to those of the robot file; NaN if they are not alike
    powers      of the unit of time in the values of v and a: 1 and 2 if they are derived from the positions, 0 and 1 if a is
                derived from v, 0 if they were measured
    """

    t: Array
    q: Array
    v: Array
    a: Array
    f_ext: Array | None
    recorded_t: Array
    tau: Array
    noise: Array
    used: Mask
    ratios: Array
    powers: tuple[int, int]

    def forces(self, delays: Array | float = 0.0) -> Array:
        """Return the measured forces (n, nv) at the times of the motion, without delays (nv,) [s]."""
        late = np.broadcast_to(delays, self.tau.shape[1])
        return np.stack([np.interp(self.t + d, self.recorded_t, x) for d, x in zip(late, self.tau.T, strict=True)], axis=1)

    def at(self, rows: slice | Mask) -> MisfittingMotion:
        """Return the motion at some of its rows."""
        return replace(self, t=self.t[rows], q=self.q[rows], v=self.v[rows], a=self.a[rows],
                       f_ext=None if self.f_ext is None else self.f_ext[rows])

    def fewer(self) -> MisfittingMotion:
        """Return the motion at about _ROWS rows."""
        return self.at(slice(None, None, max(1, len(self.t) // _ROWS)))


class _Repair(NamedTuple):
    """A repair: its description, the map of columns that makes it, and the misfit that it leaves."""

    text: str
    entries: Mapping[str, str]
    misfit: float


def repair_warnings(model: Model, motion: MisfittingMotion, forces: Forces, source: Trajectory | None, *,
                    delays: bool) -> list[LiedynWarning]:
    """Return a warning with the repairs of columns that make the fit much better.

    delays  whether delays of the torques are tried
    """
    tests = _Tests(model, motion, motion.fewer(), forces)
    current = tests.misfit()
    repairs = [repair for repair in tests.repairs(delays=delays) if repair.misfit < _SMALLER * current]
    if not repairs:
        return []
    repairs.sort(key=lambda repair: repair.misfit)
    best = [repair for repair in repairs if repair.misfit < _AS_GOOD * repairs[0].misfit][:_NAMED]
    ratio = np.sqrt(current / best[0].misfit)
    hint = None
    if source is not None and source.mapping is None and best[0].entries:
        hint = columns_option(best[0].entries) or None
    texts = "; or ".join(repair.text for repair in best)
    return [LiedynWarning("suspected-columns", f"the model explains the torques {ratio:.3g} times better if {texts}", hint=hint)]


@dataclass(frozen=True, eq=False)
class _Tests:
    """Fits of changed motions.

    complete, motion  at all rows, and at a few
    """

    model: Model
    complete: MisfittingMotion
    motion: MisfittingMotion
    forces: Forces

    def misfit(self, *, order: Integers | None = None, factors: Array | float = 1.0,
               states: tuple[Array, Array, Array] | None = None, gravity: Sequence[float] | None = None) -> float:
        """Return the mean square of the misfit in standard deviations, of a changed motion or of changed torques.

        order    (nv,) column of the measured torque of each coordinate
        factors  (nv,) of these columns
        states   q, v, a
        """
        motion = self.motion
        q, v, a = states or (motion.q, motion.v, motion.a)
        columns: Integers = np.arange(self.model.nv) if order is None else order
        tau = (motion.forces() * factors)[:, columns]
        noise = (self.noise() * np.abs(factors))[columns]
        try:
            Y, modelled = self.forces(q, v, a, motion.f_ext, gravity)
        except ConfigurationError:                                 # outside the domain of a coupling
            return math.inf
        used = motion.used & motion.used[columns]
        A = (Y / noise[:, None])[:, used].reshape(-1, Y.shape[2])
        return float(_mean_square(A, ((tau - modelled) / noise)[:, used].reshape(-1, 1))[0])

    def noise(self) -> Array:
        """Return the standard deviations (nv,) by which misfits are judged; one for torques that are zero."""
        noise = np.maximum(self.motion.noise, _LEAST_NOISE * np.sqrt(np.mean(self.motion.tau**2, axis=0)))
        return np.where(noise > 0.0, noise, 1.0)

    def repairs(self, *, delays: bool) -> Iterator[_Repair]:
        """Yield the repairs."""
        yield from self._of_torques()
        yield from self._of_positions()
        yield from self._of_times()
        yield from self._of_gravity()
        if delays:
            yield from self._of_delays()

    def _of_torques(self) -> Iterator[_Repair]:
        names, nv, used = self.model.v_names, self.model.nv, np.flatnonzero(self.motion.used)
        for k in map(int, used):
            column, text = f"tau.{names[k]}", written(f"tau.{names[k]}")
            factors = np.ones(nv)
            factors[k] = -1.0
            yield _Repair(f"the sign of {column} changes", {column: negative(text)}, self.misfit(factors=factors))
            ratio = float(self.motion.ratios[k])
            if is_far(abs(ratio)):
                factors[k] = 1.0 / ratio
                unit = torque_unit(ratio, self.model.v_units[k])
                yield _Repair(f"{column} is in {unit}" if unit else f"{column} is divided by {scale_text(ratio)}",
                              {column: with_unit(text, unit)} if unit else {}, self.misfit(factors=factors))
        for i, j in _pairs(used, self.model.v_units):
            order = np.arange(nv)
            order[[i, j]] = j, i
            yield _swapped("tau", names[i], names[j], self.misfit(order=order))

    def _of_positions(self) -> Iterator[_Repair]:
        names, units = self.model.v_names, self.model.v_units
        places = {k: i for k, i in enumerate(v_to_q_indices(self.model)) if i >= 0}
        for k in places:
            column, text = f"q.{names[k]}", written(f"q.{names[k]}")
            repaired = [self._scaled({k: -1.0}, places, kinds) for kinds in ("qva", "q")[:2 - self.motion.powers[0]]]
            yield _Repair(f"the sign of {column} changes", {column: negative(text)}, min(repaired))
            unit, factor = ("deg", np.radians(1.0)) if units[k] == "rad" else ("mm", 1e-3)
            yield _Repair(f"{column} is in {unit}", {column: with_unit(text, unit)}, self._scaled({k: factor}, places))
        angles = {k: np.radians(1.0) for k in places if units[k] == "rad"}
        if len(angles) > 1:
            columns = [f"q.{names[k]}" for k in angles]
            yield _Repair("all angles are in degrees", {column: with_unit(written(column), "deg") for column in columns},
                          self._scaled(angles, places))
        for i, j in _pairs(np.array([*places], dtype=int), units):
            q, v, a = (x.copy() for x in (self.motion.q, self.motion.v, self.motion.a))
            q[:, [places[i], places[j]]] = q[:, [places[j], places[i]]]
            v[:, [i, j]], a[:, [i, j]] = v[:, [j, i]], a[:, [j, i]]
            yield _swapped("q", names[i], names[j], self.misfit(states=(q, v, a)))

    def _scaled(self, factors: Mapping[int, float], places: Mapping[int, int], kinds: str = "qva") -> float:
        """Return the misfit of a motion with scaled coordinates. kinds: those that are scaled."""
        q, v, a = (x.copy() for x in (self.motion.q, self.motion.v, self.motion.a))
        for k, factor in factors.items():
            for kind, x, column in (("q", q, places[k]), ("v", v, k), ("a", a, k)):
                x[:, column] *= factor if kind in kinds else 1.0
        return self.misfit(states=(q, v, a))

    def _of_times(self) -> Iterator[_Repair]:
        """Yield units of times. Measured velocities and accelerations do not depend on them."""
        motion, (of_v, of_a) = self.motion, self.motion.powers
        for unit, factor in TIME_UNITS.items() if of_a else ():
            yield _Repair(f"the times are in {unit}", {"t": f"t[{unit}]"},
                          self.misfit(states=(motion.q, factor**of_v * motion.v, factor**of_a * motion.a)))

    def _of_gravity(self) -> Iterator[_Repair]:
        current = np.array(self.model.gravity)
        size = float(np.linalg.norm(current))
        if self.model.description.base == "floating" or size == 0.0:
            return
        for axis in range(3):
            for sign in (1.0, -1.0):
                direction = tuple(sign * size * (k == axis) for k in range(3))
                if not np.allclose(direction, current):
                    text = ", ".join(f"{x + 0.0:.6g}" for x in direction)
                    yield _Repair(f"gravity is [{text}] m/s^2, since the robot is mounted in another way", {},
                                  self.misfit(gravity=direction))

    def _of_delays(self) -> Iterator[_Repair]:
        """Yield the best delay of all torques and of the torque of each coordinate. The regressor does not change."""
        t, used = self.complete.t, self.motion.used
        longest = _LONGEST_DELAY * float(np.ptp(t))
        motion = self.complete.at((t >= t[0] + longest) & (t <= t[-1] - longest)).fewer()
        Y, modelled = self.forces(motion.q, motion.v, motion.a, motion.f_ext, None)
        noise = self.noise()
        A = (Y / noise[:, None])[:, used].reshape(-1, Y.shape[2])

        def misfits(delays: Array) -> Array:
            """Return the misfits (m,) of delays (m, nv)."""
            y = [((motion.forces(d) - modelled) / noise)[:, used].ravel() for d in delays]
            return _mean_square(A, np.stack(y, axis=1))

        grid = np.geomspace(2.0 * float(np.median(np.diff(motion.recorded_t))), longest, _DELAYS)
        unchanged = misfits(np.zeros((1, self.model.nv)))[0]
        current = self.misfit()
        groups = [("the torques are", used.astype(float))]
        groups += [(f"tau.{self.model.v_names[k]} is", np.eye(self.model.nv)[k]) for k in np.flatnonzero(used)]
        for subject, mask in groups if len(groups) > 2 else groups[:1]:
            delays = np.r_[grid, -grid]
            best = delays[misfits(delays[:, None] * mask).argmin()]
            refined = best * _REFINED
            values = misfits(refined[:, None] * mask)
            delay = float(refined[values.argmin()])
            yield _Repair(f"{subject} {abs(delay):.2g} s {'late' if delay > 0.0 else 'early'}", {},
                          float(values.min() * current / unchanged) if unchanged > 0.0 else current)


def _mean_square(A: Array, y: Array) -> Array:
    """Return the mean squares (m,) of the residuals of least squares for right-hand sides y (n, m)."""
    size = np.linalg.norm(A, axis=0)
    A = A / np.where(size > 0.0, size, 1.0)
    s, V = np.linalg.eigh(A.T @ A)                                 # 5 times as fast as SVD, and accurate enough here
    V = V[:, s > _DEPENDENT * s.max(initial=0.0)] / np.sqrt(s[s > _DEPENDENT * s.max(initial=0.0)])
    residual = y - A @ (V @ (V.T @ (A.T @ y)))
    squares: Array = np.sum(residual**2, axis=0) / max(len(y) - V.shape[1], 1)
    return squares


def _pairs(places: Integers, units: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of coordinates with the same unit."""
    for n, i in enumerate(places):
        for j in places[n + 1:]:
            if units[i] == units[j]:
                yield int(i), int(j)


def _swapped(kind: str, first: str, second: str, misfit: float) -> _Repair:
    a, b = f"{kind}.{first}", f"{kind}.{second}"
    return _Repair(f"{a} and {b} are swapped", {a: written(b), b: written(a)}, misfit)
