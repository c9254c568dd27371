"""Identification: base parameters estimated from a recorded motion and its joint forces."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import NamedTuple

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
from liedyn.analysis.numerical_differentiation import noise as noise_of
from liedyn.analysis.recorded_motion import (
    SampledMotion,
    as_recorded,
    attached_warnings,
    given_motion,
    motion_of_arrays,
    naming,
    require,
    robot_of,
    unknown_warnings,
    unwrapped,
)
from liedyn.analysis.trajectory_time_derivatives import Chain, derivations, rows_per_knot
from liedyn.arrays import Array, ArrayLike, Mask, Wrenches
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.dynamics.inertial_parameters import BaseParameters, base_parameters, joint_parameter_kinds, regressor
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ModelError, TrajectoryError, UsageError, warn
from liedyn.immutable import Immutable
from liedyn.io.trajectory_csv import Trajectory, check_no_events, read_trajectory
from liedyn.model.description import FRICTION_SPEED, ONE_DOF
from liedyn.model.model import Model
from liedyn.robot_files import read_model
from liedyn.simulation.name_binding import format_names

# States of a recorded motion, freed of noise, and the same states with more of the noise that the recording has ---------

_KINDS = ("q", "v", "a")
_SECOND = 2                     # derivative: the highest that is derived
_OFF = 3.0                      # derivatives may be so many times as far off as is estimated


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
        return tuple(x[self.inner] for x in chain.filled(self.t, SmoothingFit(self.rows, raised)))

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
        apart = quiet_size((chain.filled(self.t, SmoothingFit(rows))[k] - self.given[k])[inner])
        size = np.sqrt(np.mean(self.given[k][inner] ** 2, axis=0))
        return np.where(apart > np.maximum(_OFF * error, _SLIGHT * size), apart, 0.0)

    def warnings(self) -> list[str]:
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


def noisy_samples(model: Model, t: np.ndarray, motion: SampledMotion,
                  smooth: float | str | None) -> tuple[NoisySamples, list[str]]:
    """Of a motion, with splines whose knots are `smooth` seconds apart ("auto": where the estimated error is least; None: through
    every row), and what is to be said of that. Raises TrajectoryError for too few rows."""
    raw = NoisySamples(model, t, (motion.q, motion.v, motion.a), 1)
    rows, warnings = rows_per_knot(t, [raw.chain], None if smooth == "auto" and not raw.derives else smooth)
    samples = NoisySamples(model, t, raw.given, rows)
    return samples, [*samples.warnings(), *warnings]


# Weighted least squares of forces that are linear in parameters, and what noise in the states does to the solution ------

# Equations are arrays W (n, nv, b + 1): n of each joint, columns of the b parameters and the right-hand side.

_UNSEEN = 1e-9        # of the largest column in characteristic units, or singular value: a smaller one is not excited at all
_BLIND = 1e-6         # of a parameter, squared: a smaller part in directions that are not excited is rounding
_EXACT = 1e-9         # of a parameter's characteristic unit: smaller possible errors do not count, whatever its deviation
_ROUNDED_DIRECTION = 1e-10           # of a direction that is not excited: a smaller component is rounding
_ABSENT = 1e-12       # of a parameter, squared: a smaller part in excited directions is rounding
_ROUNDS = 5           # of weights; the first has none
_NOTHING = 1e-3       # of a deviation
_MOST = 0.99          # of the information in a direction may be noise for a bias to be told


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """x        (b,) solution; zero in directions that are not excited
    root        (b, k): root root^T is the inverse of the normal equations
    noise       (nv,) of each joint's equations; their weights are its inverse
    blind       (b,) bool: parameters that are not excited, or only in combination with others
    mixed       (b,) bool: parameters that are excited only in combination with others; x is zero for other blind ones
    condition   of the weighted equations, their columns normalized
    sizes       (b,) characteristic units of the parameters
    """

    x: np.ndarray
    root: np.ndarray
    noise: np.ndarray
    blind: np.ndarray
    mixed: np.ndarray
    condition: float
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class StateNoiseEffect:
    """What noise in the states does to a solution.

    variance   (b,) that it has from it
    bias       (b,) by which it is moved on the average
    share      (b,) part of what tells a parameter that is noise itself
    force      (nv,) size of the forces that the noise makes
    """

    variance: np.ndarray
    bias: np.ndarray
    share: np.ndarray
    force: np.ndarray


def fit(W: np.ndarray, least: np.ndarray, sizes: np.ndarray) -> LeastSquaresSolution:
    """The solution weighted with each joint's own noise, at least `least` (nv,), which are the weights to begin with. sizes (b,):
    characteristic units of the parameters."""
    noise = least
    count = W.shape[0] * W.shape[1]
    freedom = np.sqrt(count / max(count - W.shape[2] + 1, 1))
    R = compressed(W)
    for _ in range(_ROUNDS):
        solution = solve(R, noise, sizes)
        left = np.linalg.norm(R @ np.r_[solution.x, -1.0], axis=1) / np.sqrt(len(W))
        noise = np.maximum(freedom * left, least)
    return solve(R, noise, sizes)


def compressed(W: np.ndarray) -> np.ndarray:
    """(nv, k, b + 1): for each joint few equations with the same least squares as its n (QR)."""
    return np.array([np.linalg.qr(W[:, k], mode="r") for k in range(W.shape[1])])


def solve(R: np.ndarray, noise: np.ndarray, sizes: np.ndarray) -> LeastSquaresSolution:
    """Of compressed equations whose noise differs from joint to joint."""
    weighted = (R / noise[:, None, None]).reshape(-1, R.shape[2])
    A, y = weighted[:, :-1], weighted[:, -1]
    scale = np.linalg.norm(A, axis=0)
    seen = scale * sizes > _UNSEEN * (scale * sizes).max(initial=0.0)
    safe = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(np.where(seen, A / safe, 0.0), full_matrices=False)
    good = s > _UNSEEN * s[0]
    root = Vt[good].T / s[good] / safe[:, None]
    part = (Vt[good] ** 2).sum(axis=0)                                   # of a parameter in excited directions
    deviation = np.sqrt((root**2).sum(axis=1))
    blind = ~seen | (1.0 - part > _BLIND) | (_possible_change(Vt[~good][:, seen], (safe * sizes)[seen], seen)
                                             > np.maximum(deviation / sizes, _EXACT))
    mixed = blind & (part > _ABSENT)
    root[blind & ~mixed] = 0.0
    condition = float(s[0] / s[-1]) if good.all() and seen.all() else np.inf
    return LeastSquaresSolution(root @ (U[:, good].T @ y), root, noise, blind, mixed, condition, sizes)


def _possible_change(N: np.ndarray, scale: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(b,) by how much parameters may be off where others are off by their characteristic units, in directions N (k, seen) that
    do not act, of columns with the norms `scale` in these units. Zero where that is rounding."""
    out = np.zeros(len(seen))
    _, size, directions = np.linalg.svd(N, full_matrices=False)
    N = directions[size > 0.5]                                            # the others are of columns that are not seen
    Q, _ = np.linalg.qr(N.T / scale[:, None])
    out[seen] = np.where(np.linalg.norm(N, axis=0) > _ROUNDED_DIRECTION, np.linalg.norm(Q, axis=1), 0.0)
    return out


def variance_by_force(W: np.ndarray, found: LeastSquaresSolution, noise: np.ndarray) -> np.ndarray:
    """(nv, b) variance of the solution from noise (nv,) of each joint's force, which may differ from what the weights suppose."""
    R = compressed(W)[:, :, :-1] / found.noise[:, None, None]
    return np.array([((row @ found.root @ found.root.T) ** 2).sum(axis=0) * ratio**2
                     for row, ratio in zip(R, noise / found.noise, strict=True)])


def effect_of_noise(found: LeastSquaresSolution, noisier: Iterable[tuple[np.ndarray, np.ndarray]]) -> StateNoiseEffect:
    """Of the noise that states have, told by more of the same: pairs of equations of states with a draw of noise added, and with
    the same subtracted.

    As much again moves the solution about as far as what was there before (Cook and Stefanski 1994); pairs tell what is linear
    in the noise, the variance, from what is not, the bias. Ends early where the noise does nothing."""
    own = (found.root ** 2).sum(axis=1)
    told = []
    for pair in noisier:
        x = np.array([solve(compressed(other), found.noise, found.sizes).x for other in pair])
        change = (pair[0] - pair[1]) / 2.0
        D = (change[:, :, :-1] / found.noise[:, None]).reshape(-1, len(found.x)) @ found.root
        force = ((change @ np.r_[found.x, -1.0]) ** 2).mean(axis=0)
        told.append((((x[0] - x[1]) / 2.0) ** 2, x.mean(axis=0) - found.x, D.T @ D, force))
        variance, moved, part, force = (np.mean(one, axis=0) for one in zip(*told, strict=True))
        share = np.einsum("kj,ji,ki->k", found.root, part, found.root)
        effect = StateNoiseEffect(variance, _extrapolated(moved, found.root, part), np.divide(share, own, out=np.zeros_like(own),
                                                                                    where=own > 0.0), np.sqrt(force))
        if (variance <= _NOTHING**2 * own).all() and (np.abs(effect.bias) <= _NOTHING * np.sqrt(own)).all():
            break
    return effect


def _extrapolated(moved: np.ndarray, root: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The bias by noise, from how far as much again moved the solution.

    In a direction where the part s of the equations' information is noise, the solution is 1 - s of the truth, and
    (1 - s)/(1 + s) with the noise doubled. part: the information by noise, relative to a unit matrix of all."""
    s, P = np.linalg.eigh(part)
    s = np.clip(s, 0.0, _MOST)
    return root @ (P @ ((1.0 + s) / (1.0 - s) * (P.T @ (np.linalg.pinv(root) @ moved))))


# Whether a fitted model explains the measured joint torques, and what it may lack where it does not ---------------------

# The residual of each joint is compared with torques that the regression may lack: a constant, friction, damping, a spring, a
# wrong scale, a shift in time. What the columns of the regression explain is removed from such a candidate first. Without misfit,
# its coefficient relative to its standard deviation is a standard normal number (score test).

SIGNIFICANT = 4.0        # standard deviations; for seven candidates of six joints, chance exceeds this in 1 of 400 fits
POWER = 2.33             # standard deviations beyond that: a torque so large is found in 99 of 100 fits
_CHECK_ROUNDS = 3        # of the smallest scale error that is found: it adds to the noise by which it is judged
_SETTLED = 1.05          # a round that adds less to that error ends them
_INDEPENDENT = 1e-6      # least part of a candidate, by norm, that is independent of the regression's columns
_FREEDOM = 20            # least degrees of freedom left by all candidates together from which they judge the noise
_FEWEST = 8              # degrees of freedom from which a residual is tested
_CORRELATED = 2.0        # autocorrelations within 2 / sqrt(n) are those of white noise (95%)
_NOISE_RATIO = 2.0       # a coloured residual of more than this times the white noise is a misfit
_LAGS = 0.25             # longest lag of autocorrelation relative to the number of equations
_COLOURED = 1.5          # variance inflation from which a residual is reported as coloured; white noise stays below 1.2
_MATERIAL_MISFIT = 1e-3  # of a joint's torque: a smaller torque that is not explained is no misfit of the model
_CAUSES = {"offset": "a constant offset", "friction": "Coulomb friction", "damping": "damping (viscous friction)",
           "asymmetric": "damping that depends on the direction", "quadratic": "friction that is not linear in the velocity",
           "stiffness": "a spring", "gain": "a wrong scale of the torque", "shift": "a time shift between q and tau"}
ESTIMABLE = {_CAUSES[kind]: kind for kind in ("friction", "damping", "stiffness")}       # causes that are joint parameters


@dataclass(frozen=True)
class JointFit:
    """Test of the residual of one joint.

    joint       name of the coordinate
    residual    root mean square of the residual over the rows, after the low-pass filter, without what misfits of other joints
                cause [N m | N]
    noise       white noise of the measured torque, from its high differences [N m | N]
    inflation   variance of an estimate relative to that for a white residual: n / (effective number of samples)
    candidate   what the residual resembles most, in words; empty if nothing is significant
    deviations  coefficient of that candidate in standard deviations
    size        root mean square of the torque that the candidate explains [N m | N]
    force       root mean square of the fitted torque [N m | N]
    scale       smallest relative error of the scale of the measured torque that is found in 99 of 100 fits; infinite if the fit
                does not test the scale
    rounding    torques that are rounding: 1e-12 of the largest one of the robot, in characteristic units [N m | N]
    passed      part of the noise, by root mean square, that passes the low-pass filter: 1 / sqrt(rows per knot)
    """

    joint: str
    residual: float
    noise: float
    inflation: float
    candidate: str
    deviations: float
    size: float
    force: float
    scale: float
    rounding: float = 0.0
    passed: float = 1.0

    @property
    def explained(self) -> bool:
        """Whether the model explains the torque up to noise, or up to a thousandth."""
        known = self.candidate and self.size > max(_MATERIAL_MISFIT * self.force, self.rounding)
        unknown = self.material and not self.white and self.residual > _NOISE_RATIO * self.passed * self.noise
        return not (known or unknown)

    @property
    def material(self) -> bool:
        """Whether the residual is more than a thousandth of the torque."""
        return self.residual > max(_MATERIAL_MISFIT * self.force, self.rounding)

    @property
    def white(self) -> bool:
        return self.inflation < _COLOURED


def joint_fits(model, t: np.ndarray, q: np.ndarray, v: np.ndarray, fitted: np.ndarray, W: np.ndarray, found: LeastSquaresSolution,
               low_pass: Callable[[np.ndarray], np.ndarray], noise: np.ndarray, least: np.ndarray,
               measured: np.ndarray) -> tuple[tuple[JointFit, ...], np.ndarray, np.ndarray]:
    """Tests of the residual of each joint; (nv, b) by how much a significant candidate of the joint changes the solution; and
    (nv, b) by how much a relative error of 1 of the joint's torque does.

    q, v, fitted (N, n): states and fitted torques of the rows at t; W (n, nv, b + 1): filtered equations; noise (nv,): of the
    measured torque; least (nv,): what is rounding, of torques [N m | N]; measured (nv,): torques that are not zero throughout."""
    # a zero has no scale; and where all other torques are zero, a scale of this one is a scale of all parameters
    scaled = measured & (np.count_nonzero(measured) > 1)
    rows = len(fitted)                                         # the filter keeps norms, not the number of rows
    q_of_v = {k: joint.q.start + k - joint.v.start for joint in model.joints if joint.kind == ONE_DOF
              for k in range(joint.v.start, joint.v.stop)}
    rates = np.gradient(fitted, t, axis=0)
    candidates, names = [], []
    for k in range(model.nv):
        x = v[:, k]
        signals = {"offset": np.ones_like(x), "friction": x / np.hypot(x, FRICTION_SPEED), "damping": x, "asymmetric": np.abs(x),
                   "quadratic": x * np.abs(x), "gain": fitted[:, k], "shift": rates[:, k]}
        if k in q_of_v:
            signals["stiffness"] = q[:, q_of_v[k]]
        candidates.append(low_pass(np.stack(list(signals.values()), axis=1)))
        names.append(list(signals))
    of_force = {"gain": scaled, "shift": measured}
    tested = [np.array([name not in of_force or of_force[name][k] for name in row]) for k, row in enumerate(names)]
    alone = [_scores(W, found, k, C, least[k], tested[k]) for k, C in enumerate(candidates)]
    separate, residual = _separated(W, found, candidates, least, alone, tested)
    out, shifts, rescaled = [], *np.zeros((2, model.nv, len(found.x)))
    for k, (name, test) in enumerate(zip(model.v_names, separate, strict=True)):
        scores, moments = test.scores, test.explained
        most = int(np.argmax(np.abs(scores)))
        score = float(abs(scores[most]))
        size = float(found.noise[k] * np.linalg.norm(moments[most]) / np.sqrt(rows))
        significant = score > SIGNIFICANT
        gain, force = names[k].index("gain"), float(np.sqrt(np.mean(fitted[:, k] ** 2)))
        shifts[k], rescaled[k] = test.shifts[:len(found.x), most] * significant, alone[k].changes[:, gain]
        material = max(_MATERIAL_MISFIT * force, float(least[k])) * np.sqrt(rows)
        out.append(JointFit(name, float(residual[k] / np.sqrt(rows)), float(noise[k]), test.inflation,
                            _CAUSES[names[k][most]] if significant else "", score * significant, size * significant,
                            force, _found_scale(W, found, k, candidates[k], gain, alone[k], material, least, tested[k]),
                            float(least[k]), float(np.sqrt(len(W) / rows))))
    return tuple(out), shifts, rescaled


@dataclass(frozen=True, eq=False)
class _CandidateTests:
    """Of candidates of one joint, each alone: coefficients in standard deviations (c,), standard deviations of the coefficients,
    norms of what they explain of the residual, and of what a coefficient of 1 does [N m | N]; changes of the solution (b, c) by
    the candidate, and by a coefficient of 1; effective degrees of freedom, and the variance inflation of the residual."""

    scores: np.ndarray
    deviations: np.ndarray
    explained: np.ndarray
    sizes: np.ndarray
    shifts: np.ndarray
    changes: np.ndarray
    freedom: float
    inflation: float

    def found(self, c: int, material: float) -> float:
        """Smallest coefficient of candidate c that is significant in 99 of 100 fits, and explains at least that norm: the
        noncentral t distribution by its normal approximation (Johnson and Welch 1940)."""
        from scipy.special import ndtr, stdtrit
        if not np.isfinite(self.deviations[c]):
            return np.inf
        least = -stdtrit(self.freedom, ndtr(-SIGNIFICANT))
        by_noise = self.deviations[c] * (least + POWER * np.sqrt(1.0 + least**2 / (2.0 * self.freedom)))
        return float(max(by_noise, material / self.sizes[c]))


def _separated(W, found: LeastSquaresSolution, candidates, least, alone: list[_CandidateTests],
               tested) -> tuple[list[_CandidateTests], np.ndarray]:
    """Tests of each joint, and norms of its residual, without the misfits of others: a wrong torque of one joint moves parameters
    that other joints' torques depend on.

    The most significant candidate of all joints becomes a column of the regression, and the other joints are tested again, until
    none of them has a significant one (forward selection)."""
    tests, rest = list(alone), list(range(len(alone)))
    residual = _residual(W, found)
    while rest:
        most = [np.abs(tests[k].scores).max(initial=0.0) for k in rest]
        if max(most) <= SIGNIFICANT:
            break
        k = rest.pop(int(np.argmax(most)))
        signal = candidates[k][:, int(np.argmax(np.abs(tests[k].scores)))]
        column = np.zeros((*W.shape[:2], 1))
        column[:, k, 0] = signal / np.linalg.norm(signal)
        W = np.concatenate([W[:, :, :-1], column, W[:, :, -1:]], axis=2)
        norms = np.linalg.norm(W[:, :, :-2], axis=(0, 1)) * found.sizes
        found = fit(W, least, np.r_[found.sizes, norms.max()])         # as large as the largest column in characteristic units
        for j in rest:
            tests[j] = _scores(W, found, j, candidates[j], least[j], tested[j])
        residual[rest] = _residual(W, found)[rest]
    return tests, residual


def _residual(W, found: LeastSquaresSolution) -> np.ndarray:
    """(nv,) norms of what the solution leaves over."""
    return np.linalg.norm(W[:, :, -1] - W[:, :, :-1] @ found.x, axis=0)


def _found_scale(W, found: LeastSquaresSolution, k: int, C, gain: int, test: _CandidateTests, material: float, least,
                 tested) -> float:
    """As `JointFit.scale`. A wrong scale takes weight from the joints that would show it: the fit is repeated with it."""
    scale = test.found(gain, material)
    for _ in range(_CHECK_ROUNDS):
        if not scale < 1.0:
            return np.inf
        wrong = W.copy()
        wrong[:, k, -1] += scale * C[:, gain]
        now = _scores(wrong, fit(wrong, least, found.sizes), k, C, least[k], tested)
        before, scale = scale, max(scale, now.found(gain, material))
        if scale < _SETTLED * before:
            break
    return scale if scale < 1.0 else np.inf


def _scores(W, found: LeastSquaresSolution, k: int, C, least: float, tested) -> _CandidateTests:
    """Test candidates C (n, c), of which some are to be `tested` (c,), for joint k against its residual, of equations W
    (n, nv, b + 1).

    The candidates act on joint k only, so that their inner products with residuals need its rows only. The noise is judged by
    what all candidates together leave of the residual."""
    A, root, noise = W[:, :, :-1] / found.noise[:, None], found.root, found.noise[k]
    r, C, least = (W[:, k, -1] - W[:, k, :-1] @ found.x) / noise, C / noise, least / noise
    size = np.linalg.norm(C, axis=0)
    safe = np.where(size > 0.0, size, 1.0)
    C = C / safe
    part = root.T @ (A[:, k].T @ C)                                # (directions, c): what the columns of A explain
    gram = C.T @ C - part.T @ part                                 # of the candidates without it
    left = np.sqrt(np.maximum(np.diag(gram), 0.0))
    clear = tested & (size > 0.0) & (left > _INDEPENDENT)
    moment = C.T @ r                                               # r is orthogonal to the columns of A
    own = C - A[:, k] @ (root @ part)                              # rows of joint k
    remaining = r - own[:, clear] @ np.linalg.lstsq(gram[np.ix_(clear, clear)], moment[clear], rcond=_INDEPENDENT)[0]
    inflation = variance_inflation(remaining)
    length = np.where(clear, left, 1.0)
    explained, changes = np.where(clear, moment / length, 0.0), root @ part * size
    free = len(r) - np.linalg.norm(A[:, k] @ root) ** 2            # less the joint's share of the parameters
    if free - np.count_nonzero(clear) >= _FREEDOM:
        power, freedom = remaining @ remaining, free - np.count_nonzero(clear)
    elif free - 1.0 < _FEWEST:                                     # no test
        zero = np.zeros(len(size))
        return _CandidateTests(zero, np.full(len(size), np.inf), zero, zero, np.zeros((A.shape[2], len(size))), changes, 1.0,
                     variance_inflation(r))
    else:                                                          # too few to remove all candidates: each one alone
        power, freedom, inflation = np.maximum(r @ r - explained ** 2, 0.0), max(free - 1.0, 1.0), variance_inflation(r)
    scale = np.maximum(np.sqrt(power / freedom), least) * np.sqrt(inflation)
    deviations = np.where(clear, scale / (length * safe), np.inf)
    freedom = max(freedom / inflation, 1.0)
    return _CandidateTests(_normal_scores(explained / scale, freedom), deviations, explained, noise * length * safe,
                 root @ part * (explained / length), changes, freedom, variance_inflation(r))


def _normal_scores(scores: np.ndarray, freedom: float) -> np.ndarray:
    """Scores of the normal distribution that are as improbable as these of Student's, with so many degrees of freedom."""
    from scipy.special import ndtri, stdtr
    tail = stdtr(freedom, -np.abs(scores))
    return np.sign(scores) * np.where(tail > 0.0, -ndtri(np.maximum(tail, np.finfo(float).tiny)), np.abs(scores))


def variance_inflation(r: np.ndarray) -> float:
    """Variance of the mean of a stationary series relative to that for white noise, at least 1: 1 + 2 (sum of autocorrelations),
    up to the first that is not significant."""
    n = len(r)
    power = float(r @ r)
    if n < 8 or power == 0.0:
        return 1.0
    spectrum = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n] / power
    last = max(2, int(_LAGS * n))
    small = np.flatnonzero(correlation[1:last] < _CORRELATED / np.sqrt(n))
    stop = int(small[0]) + 1 if len(small) else last
    return max(1.0, 1.0 + 2.0 * float(correlation[1:stop].sum()))


# identify ---------------------------------------------------------------------------------------------------------------

RELIABLE, IMPRECISE, UNRELIABLE, UNSEEN, MIXED, UNPHYSICAL = VERDICTS = (
    "reliable", "imprecise", "not reliable", "not excited", "not separable", "not physical")
_IMPRECISE = 0.3      # deviation relative to the value from which an estimate is imprecise
_MATERIAL = 0.01      # of a joint's torque (rms): a value with a smaller effect is judged as if it had this effect
_LEAST_NOISE = 1e-12  # of the largest force, in characteristic units: exact data are weighted as if they had rounding only
# the same for a joint whose measured force is zero throughout: weights that differ more lose the others to rounding
_UNACTUATED_NOISE = 1e-8
_DRAWS = 8            # pairs of draws of noise
_NOISE = 0.1          # a parameter is not reliable where this part of what tells it is noise
_SHARE = 1e-3         # of what tells a parameter: a joint that contributes less does not spoil it
_NEGATIVE = 4.0       # deviations below zero from which a sum of masses, moments of inertia and losses is negative
_POSITIVE = ("mass", "Ixx", "Iyy", "Izz", "armature", "damping", "friction")       # of every physical robot
_ONE_FACTOR = 1.5     # ratio between the largest and the smallest of ratios that count as one factor
_PASSIVE = ("damping", "friction", "stiffness")
_FAR = 3.0            # from a factor of 1: a robot file does not differ so much in all values at once
_SEVERAL = 3          # values that all have another sign than the robot file, if no value is impossible
_SLIGHT = 0.01        # a systematic error that leaves the deviation below this part of the value does no harm


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Immutable):
    """What a motion tells of the base parameters.

    values       (b,) estimates: weighted least squares; in directions that the motion does not excite, the robot file's
    deviations   (b,) standard deviations; infinite where the motion does not excite the parameter, or only with others
    relative     (b,) deviations relative to the values. A value whose effect is below 1% of each joint's torque is replaced by
                 the value with an effect of 1%
    verdicts     (b,) of "reliable"; "imprecise": the deviation is right, but more than 30% of the value; "not reliable": noise,
                 smoothing or a torque that the model lacks biases the value by more than its deviation, or the value depends on
                 a joint whose torque the model does not explain; "not excited": the value is that of the robot file; "not
                 separable": the motion determines combinations with other parameters only. The value alone has no meaning;
                 "not physical": the value is certainly negative, but a sum of masses, moments of inertia, armature, damping
                 and friction
    misfits      (b,) joints whose torque the model does not explain and on which the value depends, "" where there are none
    scale_errors (b,) by how much the value may be off because the measured torque of one joint has a wrong scale that is too
                 small to be found (`JointFit.scale`; 1 where the scale is not tested). Deviations do not contain it
    base         the base parameters: what they stand for; those of the robot file are `base.values`
    condition    of the weighted regressor along the motion, its columns normalized
    joints       (nv,) test of each joint's residual: noise, autocorrelation, and what torque the model may lack (`JointFit`)
    residual     (nv,) root mean square of what force is left over [N m | N]
    force        (nv,) root mean square of the force
    rows         how many rows of the trajectory were used
    warnings     what a person should know before trusting the result

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> m = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> fit = ld.identify(model, t, q, ld.inverse_dynamics(model, *m[1:4]), v=m.v, a=m.a)
    >>> fit.names[1], fit.units[1], fit.verdicts[1], fit.verdict
    ('hz.upper', 'kg m', 'reliable', 'the model explains the torques')
    """

    values: Array
    deviations: Array
    relative: Array
    verdicts: tuple[str, ...]
    misfits: tuple[str, ...]
    scale_errors: Array
    base: BaseParameters
    condition: float
    joints: tuple[JointFit, ...]
    residual: Array
    force: Array
    rows: int
    warnings: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.base.units

    @property
    def reliable(self) -> Mask:
        """(b,) bool: the verdict is "reliable"."""
        return np.array([verdict == RELIABLE for verdict in self.verdicts], dtype=bool)

    @property
    def verdict(self) -> str:
        """Whether the model explains the torques; otherwise the joints with a misfit."""
        misfit = [joint.joint for joint in self.joints if not joint.explained]
        if misfit:
            return f"the model does not explain the torques of {format_names(misfit, 6)}"
        return "the model explains the torques"

    @property
    def premise(self) -> str:
        """What the values and deviations suppose of the measured torques, and how far the fit has tested it."""
        tested = [f"{joint.joint} {100 * joint.scale:.2g} %" for joint in self.joints if joint.scale < 1.0]
        rest = [joint.joint for joint in self.joints if not joint.scale < 1.0]
        known = "; ".join([*([f"tested to {format_names(tested, 6)}"] if tested else []),
                           *([f"not tested: {format_names(rest, 6)}"] if rest else [])])
        return (f"values and deviations hold if the scales of the measured torques are right ({known}; a common scale cannot be "
                "tested)")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        sure = self.verdicts.count(RELIABLE)
        lines = [f"Identification of {len(self)} base parameters from {self.rows} rows: {sure} reliable, condition "
                 f"{self.condition:.3g}; {self.verdict}"]
        wide = max(map(len, self.names), default=0)
        for name, x, s, unit, verdict in zip(self.names, self.values, self.deviations, self.units, self.verdicts, strict=True):
            mark = "" if verdict == RELIABLE else f"  {verdict.upper()}"
            lines.append(f"  {name.ljust(wide)}  {x:12.6g} ± {s:<8.2g} {unit}{mark}")
        return "\n".join([*lines, f"  {self.premise}"])


def identify(model: Model, t: ArrayLike | str | PathLike[str] | Trajectory, q: ArrayLike | None = None,
             tau: ArrayLike | None = None, *, v: ArrayLike | None = None, a: ArrayLike | None = None,
             f_ext: Wrenches | None = None, passive: bool | None = None, joints: Sequence[str] | None = None,
             offset: bool = True, smooth: float | str | None = "auto", tolerance: float | None = None) -> Identification:
    """Estimate the base parameters of a model from a recorded motion and its joint forces.

        fit = ld.identify(model, t, q, tau)                  # arrays
        fit = ld.identify(model, "motion.csv")               # a trajectory file

    Parameters
    ----------
    model : Model
        Its geometry is taken as true, and so is what is not estimated: joint parameters without a column, external wrenches.
    t : (N,) array, path or Trajectory
        Times [s], increasing; or a file that holds t, q, tau and perhaps v, a and external wrenches. Its comments `gravity` and
        `armatures` replace those of the model; a warning reports a difference.
    q : (N, nq) array
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    tau : (N, nv) array
        Joint forces [N m | N].
    v, a : (N, nv) arrays, optional
        Velocities [rad/s | m/s] and accelerations, where they were measured. What is missing is derived.
    f_ext : (N, n_links, 6) array or {link name: (N, 6) array}, optional
        External wrench [m; f] on each link, in the link frame, about its origin.
    passive : bool, optional
        Whether springs, damping and friction acted. Default: as the file says, else True. If they did not, none of them can be
        estimated.
    joints : sequence of "armature", "damping", "friction", "stiffness", optional
        Joint parameters to estimate; default: those that the model has.
    offset : bool
        Whether a constant torque of each joint is estimated, too (parameters offset.<coordinate>).
    smooth : "auto", float or None
        How v and a are derived where they are missing: by least-squares splines with knots so many seconds apart, or "auto":
        where the estimated error of a is least. None: by splines through every row, which magnify noise.
    tolerance : float, optional
        As in `base_parameters`.

    Returns
    -------
    Identification

    Raises
    ------
    TrajectoryError
        Without tau, or with fewer equations than parameters.
    UsageError
        For springs, damping or friction in `joints` if they did not act.
    ShapeError, ConfigurationError, ComputationError, NameLookupError

    Notes
    -----
    Forces and regressor pass the low-pass filter of the splines, one equation a knot (parallel filtering and decimation, Gautier
    1997). Least squares estimates the noise of each joint's force; with its inverse as weight, the equations are solved again,
    for some rounds. The noise of q, v, a is measured from their high differences. With as much noise added again, the change of
    the estimate gives its deviation and its bias due to noise (simulation and extrapolation, Cook and Stefanski 1994).

    The residual of each joint is tested for autocorrelation, which widens the deviations (effective number of samples), and for
    torques that the model lacks: offset, friction, damping, spring, scale of the torque, time shift (score tests). If one is
    significant, or the residual is coloured and larger than the noise, estimates that depend on this joint are not reliable. A
    wrong scale common to all torques, or of a joint whose parameters no other joint's torque depends on, cannot be found: values
    and deviations suppose right scales.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> tau = ld.inverse_dynamics(model, motion.q, motion.v, motion.a)
    >>> ld.identify(model, t, q, tau, v=motion.v, a=motion.a).values.round(3)
    array([ 0.   , -1.5  ,  1.333,  0.   , -0.5  ,  0.333,  0.   ,  0.   ])
    """
    smooth = _checked(smooth)
    source = read_trajectory(t, events=True) if isinstance(t, (str, PathLike)) else t
    if not isinstance(source, Trajectory):
        return _warned(_identify(model, *motion_of_arrays(model, t, q, tau, v, a, f_ext, passive), joints, offset, smooth,
                                 tolerance))
    if any(x is not None for x in (q, tau, v, a, f_ext)):
        raise UsageError("a trajectory file holds q, tau, v, a and f_ext: give either the file or arrays")
    model, differing = as_recorded(model, source)
    source, jumps = _without_jumps(model, source, smooth)
    motion = given_motion(model, source)
    motion = replace(motion, warnings=(*motion.warnings, *differing, *attached_warnings(source), *unknown_warnings(model, source),
                                       *jumps))
    require(source, motion.tau, "tau", "the joint forces")
    if passive is not None:
        motion = replace(motion, passive=passive)
    with naming(source):
        found = _identify(model, source.t, motion, joints, offset, smooth, tolerance)
    return _warned(found)


def _without_jumps(model: Model, source: Trajectory, smooth) -> tuple[Trajectory, list[str]]:
    """The rows of a file with increasing times: of two rows at one event, the one before it. Equations that hold row by row need
    no other change; what is derived or smoothed across a jump would be wrong, which is an error."""
    first = np.r_[True, np.diff(source.t) > 0.0]
    if first.all():
        return source, []
    given = given_motion(model, source)
    missing = [name for name, x in (("v", given.v), ("a", given.a)) if x is None]
    if missing:
        check_no_events(source, " and ".join(missing))
    if smooth not in (None, "auto"):
        check_no_events(source, "a smooth motion")
    kept = replace(source, t=source.t[first], columns={name: x[first] for name, x in source.columns.items()},
                   lines=source.lines[first])
    return kept, [f"the motion jumps at events: of two rows at one time, the second is left out ({len(first) - len(kept)} rows)"]


def _warned(found: Identification) -> Identification:
    warn(found.warnings)
    return found


def _checked(smooth) -> float | str | None:
    if smooth in (None, "none"):
        return None
    if smooth == "auto" or (isinstance(smooth, (int, float)) and 0.0 < smooth < math.inf):
        return smooth
    raise UsageError(f"smooth is {smooth!r}; expected 'auto', a positive number of seconds, or None")


def _identify(model: Model, t, motion: SampledMotion, joints, offset: bool, smooth, tolerance: float | None) -> Identification:
    kinds = joint_parameter_kinds(model, motion.passive, joints)
    idle = [] if motion.passive else [kind for kind in kinds if kind in _PASSIVE]
    if idle:
        raise UsageError(
            f"{format_names(idle, 6)} did not act in this recording (passive is False) and cannot be estimated: omit it "
                         "from the joint parameters, or use passive=True, the comment `# passive: true` of a file")
    chosen = {"passive": motion.passive, "joints": (*kinds, "offset") if offset and "offset" not in kinds else kinds}
    base = base_parameters(model, **chosen, **({} if tolerance is None else {"tolerance": tolerance}))
    if motion.v is None:
        q, unwrapping = unwrapped(model, motion.q)
        motion = replace(motion, q=q, warnings=(*motion.warnings, *unwrapping))
    samples, warnings = noisy_samples(model, t, motion, smooth)
    rows = _RegressorRows(model, base, motion, samples, chosen)
    raw = rows.equations()
    W = rows.filtered(raw)
    if raw.shape[0] * raw.shape[1] < len(base):
        raise TrajectoryError("the trajectory is too short for so many parameters",
                              found=f"{raw.shape[0] * raw.shape[1]} equations", expected=f"at least {len(base)}")
    forces = model_scales(model).force_scales(model.v_units)
    least = np.where(motion.tau.any(axis=0), _LEAST_NOISE,
                     _UNACTUATED_NOISE) * forces * (np.abs(motion.tau / forces).max(initial=0.0) or 1.0)
    found = fit(W, least, base.sizes[base.columns])
    values = base.values + found.x
    left = raw @ np.r_[found.x, -1.0]
    effect = effect_of_noise(found, rows.noisier())
    tested, shifts, rescaled = rows.tested(W, found, left, least, effect.force)
    sizes = _sizes(raw, values, motion.tau[samples.inner])
    deviations, trusted, misfits = _doubts(rows, W, found, effect, tested, shifts, sizes)
    untested = np.minimum([joint.scale for joint in tested], 1.0)
    scale_errors = np.where(found.blind, np.inf, np.abs(rescaled * untested[:, None]).max(axis=0))
    relative = np.divide(deviations, sizes, out=np.full_like(sizes, np.inf), where=np.isfinite(deviations) & (sizes > 0.0))
    verdicts = tuple(MIXED if mixed else UNSEEN if blind else UNRELIABLE if not good else IMPRECISE if ratio > _IMPRECISE
                     else RELIABLE for mixed, blind, good, ratio in zip(found.mixed, found.blind, trusted, relative, strict=True))
    verdicts = _physical(base, values, deviations, sizes, verdicts)
    explained = all(joint.explained for joint in tested)
    if motion.v is not None or motion.a is not None:
        mend = "omit the given v and a, so that they are derived from smoothed positions"
    elif smooth != "auto":
        mend = "smooth the positions with auto"
    elif explained:
        mend = "use data with less noise, or a longer or faster motion"
    else:
        mend = "add what the model lacks first"
    residual, force = (np.sqrt(np.mean(x**2, axis=0)) for x in (left, motion.tau))
    warnings = [*motion.warnings, *warnings, *_fit_warnings(model, tested, residual, force, kinds, motion.passive),
                *_warnings(base, verdicts, misfits, mend), *_unlike_warnings(base, values, sizes, verdicts)]
    return Identification(values, deviations, relative, verdicts, misfits, scale_errors, base, found.condition, tested,
                          residual, force, len(raw), tuple(warnings))


@dataclass(frozen=True, eq=False)
class _RegressorRows:
    """The rows of a motion as equations for changes of the base parameters."""

    model: Model
    base: BaseParameters
    motion: SampledMotion
    samples: NoisySamples
    chosen: dict

    def equations(self, **how) -> np.ndarray:
        """(N inner, nv, b + 1), the last column what force the model does not explain. how: as in `NoisySamples.states`."""
        inner = self.samples.inner
        states = self.samples.states(**how)
        f_ext = None if self.motion.f_ext is None else self.motion.f_ext[inner]
        Y = regressor(self.model, *states, **self.chosen)[:, :, self.base.columns]
        modelled = inverse_dynamics(self.model, *states, f_ext=f_ext, passive=self.motion.passive)
        return np.concatenate([Y, (self.motion.tau[inner] - modelled)[:, :, None]], axis=2)

    def filtered(self, W: np.ndarray) -> np.ndarray:
        """(n, nv, b + 1)"""
        return self.samples.filter(W.reshape(len(W), -1)).reshape(-1, *W.shape[1:])

    def tested(self, W: np.ndarray, found: LeastSquaresSolution, left: np.ndarray,
               least: np.ndarray, by_states: np.ndarray) -> tuple[tuple[JointFit, ...], np.ndarray, np.ndarray]:
        """As `joint_fits`. left (N inner, nv): modelled minus measured torque; by_states (nv,): what noise of the states makes of
        the filtered torques."""
        inner, t = self.samples.inner, self.samples.t
        q, v, _ = self.samples.states()
        tau = self.motion.tau
        # a force that is exactly zero has no noise that could be measured: that of its equation counts, from the noise of the
        # states
        measured, passed = tau.any(axis=0), np.sqrt(len(W) / len(left))
        noise = np.where(measured, noise_of(t, tau), np.maximum(noise_of(t[inner], left), by_states / passed))
        return joint_fits(self.model, t[inner], q, v, tau[inner] + left, W, found, self.samples.filter, noise, least, measured)

    def noisier(self):
        """Pairs of equations of states with noise added and subtracted."""
        rng = np.random.default_rng(0)
        for _ in range(_DRAWS):
            draw = self.samples.draw(rng)
            yield tuple(self.filtered(self.equations(more=[None if x is None else sign * x for x in draw])) for sign in (1, -1))


def _doubts(rows: _RegressorRows, W: np.ndarray, found: LeastSquaresSolution, effect: StateNoiseEffect,
            tested: Sequence[JointFit], shifts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Standard deviations, whether they and the values can be relied on, and the joints with a misfit that values depend on.

    A deviation is that by the noise of the forces and of the states and, in addition, what is systematic: the bias by the noise,
    by how much more than chance a spline of another degree changes the value, and what a torque that the model lacks may do."""
    of_force = np.maximum(np.sqrt(np.maximum(found.noise**2 - effect.force**2, 0.0)), 0.3 * found.noise)
    inflation, misfit = (np.array([getattr(joint, name) for joint in tested])[:, None] for name in ("inflation", "deviations"))
    own = variance_by_force(W, found, found.noise) * inflation             # as if all that is left over were noise of the forces
    deviation = np.sqrt(np.maximum(own.sum(axis=0), (variance_by_force(W, found, of_force) * inflation).sum(axis=0)
                                   + effect.variance))
    unknown = np.sqrt((own * misfit**2).sum(axis=0))    # of a torque as large as what is visible (Cauchy-Schwarz)
    systematic = np.hypot(np.hypot(effect.bias, unknown), np.abs(shifts).sum(axis=0))
    if rows.samples.derives:
        other = solve(compressed(rows.filtered(rows.equations(raised=2))), found.noise, found.sizes).x
        systematic = np.hypot(systematic, np.maximum(np.abs(other - found.x) - deviation, 0.0))
    total = np.hypot(deviation, systematic)
    tells = W.shape[0] * W.shape[1] > len(found.x)                         # otherwise nothing is left over to judge noise by
    trusted = tells & (effect.share <= _NOISE) & ~((systematic > deviation) & (total > _SLIGHT * sizes))
    share = np.divide(own, own.sum(axis=0), out=np.zeros_like(own), where=own > 0.0)
    spoilt = np.array([not joint.explained for joint in tested])[:, None] & (share > _SHARE)
    misfits = tuple(format_names([joint.joint for joint, off in zip(tested, column, strict=True) if off], 6)
                    for column in spoilt.T)
    return np.where(found.blind, np.inf, total), trusted & ~spoilt.any(axis=0), misfits


def _sizes(raw: np.ndarray, values: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """(b,) of the values, at least that which makes 1% of the torque of a joint."""
    effect, force = np.sqrt(np.mean(raw[:, :, :-1] ** 2, axis=0)), np.sqrt(np.mean(tau**2, axis=0))
    strongest = np.divide(effect, force[:, None], out=np.zeros_like(effect), where=force[:, None] > 0.0).max(axis=0)
    return np.maximum(np.abs(values), np.divide(_MATERIAL, strongest, out=np.zeros_like(strongest), where=strongest > 0.0))


def _physical(base: BaseParameters, values: np.ndarray, deviations: np.ndarray, sizes: np.ndarray,
              verdicts: tuple[str, ...]) -> tuple[str, ...]:
    """The verdicts, with "not physical" for what is determined, certainly negative, and a sum of what no robot has negative. The
    effect of the value must be at least 1% of the torque of a joint: less may be the effect of something that is not modelled."""
    positive = np.array([name.partition(".")[0] in _POSITIVE for name in base.parameters.names])
    of_positive = (base.matrix[:, ~positive] == 0.0).all(axis=1) & (base.matrix >= 0.0).all(axis=1)
    negative = of_positive & (values < -_NEGATIVE * deviations) & (-values >= sizes)
    return tuple(UNPHYSICAL if bad and verdict in (RELIABLE, IMPRECISE) else verdict
                 for bad, verdict in zip(negative, verdicts, strict=True))


def _unlike_warnings(base: BaseParameters, values: np.ndarray, sizes: np.ndarray, verdicts: Sequence[str]) -> list[str]:
    """What cannot be, and whether all that is well determined differs from the robot file by its sign or by one factor."""
    known = np.array([verdict in (RELIABLE, UNPHYSICAL) for verdict in verdicts], dtype=bool)
    known &= (np.abs(values) >= sizes) & (np.abs(base.values) > _LEAST_NOISE * base.sizes[base.columns])
    ratios = values[known] / base.values[known]
    impossible = [name for name, verdict in zip(base.names, verdicts, strict=True) if verdict == UNPHYSICAL]
    hints = []
    if len(ratios) and (ratios < 0.0).all() and (impossible or len(ratios) >= _SEVERAL):
        hints.append(f"all {len(ratios)} well-determined values have another sign than in the robot file: are the signs of the "
                     "torques right?")
    size = np.abs(ratios)
    if len(ratios) > 1 and size.max() < _ONE_FACTOR * size.min() and not 1.0 / _FAR < (factor := np.median(size)) < _FAR:
        times = float(f"{factor:.3g}")                                   # 1000 rather than 1e+03
        hints.append(f"all {len(ratios)} well-determined values are about {times:g} times those of the robot file: are the units "
                     "of the torques right?")
    if not impossible:
        return hints
    hints = hints or ["check the signs of the torques, and the axes of the joints and the gravity of the robot file"]
    return [
        f"NOT PHYSICAL: {len(impossible)} of {len(base)} base parameters ({format_names(impossible, 6)}): negative, but no mass, "
            f"moment of inertia, armature, damping or friction is negative; {'; '.join(hints)}"]


def _resembles(joint: JointFit) -> str:
    if joint.candidate:
        return f"like {joint.candidate} ({joint.deviations:.3g} deviations)"
    if not joint.noise > 0.0:
        return "coloured, without noise"
    return f"coloured, {joint.residual / (joint.passed * joint.noise):.2g} times the noise"


def _fit_warnings(model: Model, tested: Sequence[JointFit], residual: np.ndarray, force: np.ndarray,
                  estimated: Sequence[str], passive: bool) -> list[str]:
    misfit = [(joint, f"{left:.3g} of {of:.3g} {'N' if unit == 'm' else 'N m'}")
              for joint, left, of, unit in zip(tested, residual, force, model.v_units, strict=True) if not joint.explained]
    coloured = [joint.joint for joint in tested if not joint.white and joint.material]
    warnings = []
    if misfit:
        what = "; ".join(f"{joint.joint}: residual force {figures}, {_resembles(joint)}" for joint, figures in misfit[:6])
        found = dict.fromkeys(ESTIMABLE[joint.candidate] for joint, _ in misfit if joint.candidate in ESTIMABLE)
        more = [kind for kind in found if kind not in estimated]
        kinds = [kind for kind in estimated if kind != "offset"] + more
        how = (f" (joints={kinds}; --with {' --with '.join(kinds)}{'' if passive else '; passive=True, # passive: true'})"
               if more else "")
        warnings.append(
            f"the model does not explain the measured torques ({what}): add what is missing to the robot file or to the "
                        f"estimated parameters{how}, or check the recording")
    if coloured:
        warnings.append(
            f"the residuals of {format_names(coloured, 6)} are not white: the deviations count fewer independent samples")
    return warnings


def _warnings(base: BaseParameters, verdicts: Sequence[str], misfits: Sequence[str], mend: str) -> list[str]:
    unseen, mixed, biased = ([name for name, verdict in zip(base.names, verdicts, strict=True) if verdict == which]
                             for which in (UNSEEN, MIXED, UNRELIABLE))
    spoilt = [name for name, verdict, misfit in zip(base.names, verdicts, misfits, strict=True)
              if verdict == UNRELIABLE and misfit]
    biased = [name for name in biased if name not in spoilt]
    warnings = []
    if unseen:
        warnings.append(f"the motion does not excite {len(unseen)} of {len(base)} base parameters ({format_names(unseen, 6)}): "
                        "their values are those of the robot file")
    if mixed:
        warnings.append(
            f"the motion does not separate {len(mixed)} of {len(base)} base parameters ({format_names(mixed, 6)}): it "
                        "determines combinations of them only. Their values fit the torques together; one of them alone has no "
                        "meaning")
    if spoilt:
        warnings.append(
            f"NOT RELIABLE: {len(spoilt)} of {len(base)} base parameters ({format_names(spoilt, 6)}): they depend on joints "
                     "whose torque the model does not explain, because it lacks a torque, or by noise of the motion or its "
                     f"smoothing; {mend}")
    if biased:
        warnings.append(
            f"NOT RELIABLE: {len(biased)} of {len(base)} base parameters ({format_names(biased, 6)}): noise of the motion or "
                     f"its smoothing may bias them by more than their deviation; {mend}")
    return warnings


# for the command ---------------------------------------------------------------------------------------------------
class ParametersResult(NamedTuple):
    model: Model
    base: BaseParameters
    fit: Identification | None
    warnings: tuple[str, ...]


def parameters_of(robot, trajectory=None, *, base: str | None = None, strict: bool = False, joints: Sequence[str] = (),
                  offset: bool = True, smooth: float | str | None = "auto", tolerance: float | None = None) -> ParametersResult:
    """Base parameters of a robot file, fitted to a trajectory file where there is one (with its base and gravity).

    joints: as in `base_parameters`; none: those that the robot has; "none": none of them. offset, smooth: as in
    `identify`."""
    kinds = None if not joints else tuple(what for what in joints if what != "none")
    if trajectory is None:
        model = read_model(robot, base=base, strict=strict)
        if not model.nv:
            raise ModelError(f"the robot {model.name} has no moving joint: no force depends on its parameters")
        given = {} if tolerance is None else {"tolerance": tolerance}
        return ParametersResult(model, base_parameters(model, passive=True, joints=kinds, **given), None, ())
    motion = read_trajectory(trajectory, events=True)
    model, warnings = robot_of(motion, robot, base=base, strict=strict)
    found = identify(model, motion, joints=kinds, offset=offset, smooth=smooth, tolerance=tolerance)
    return ParametersResult(model, found.base, found, tuple(dict.fromkeys((*warnings, *found.warnings))))
