"""Weighted least squares of forces that are linear in parameters, the effect of noise in the states, and tests of residuals.

The tests show whether the fitted model explains the measured generalized forces, and which forces may be missing if not.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.errors import summarized
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model

# Equations are arrays W (n, nv, b + 1): n of each joint, columns of the b parameters and the right-hand side.

_UNSEEN = 1e-9        # of the largest column in characteristic units, or singular value: a smaller one is not excited at all
_BLIND = 1e-6         # of a parameter, squared: a smaller part in directions that are not excited is rounding
_EXACT = 1e-9         # of a parameter's characteristic unit: smaller possible errors do not count, whatever its deviation
_ROUNDED_DIRECTION = 1e-10           # of a direction that is not excited: a smaller component is rounding
_ABSENT = 1e-12       # of a parameter, squared: a smaller part in excited directions is rounding
_ROUNDS = 5           # of weights; the first has none
_NOTHING = 1e-3       # of a standard deviation: a smaller effect of noise is none
_MOST = 0.99          # largest part of the information in a direction that may be noise, so that its bias is known


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """Estimated parameters, with estimates of their errors.

    x           (b,) solution; zero in directions that are not excited
    root        (b, k): root root^T is the inverse of the normal equations
    noise       (nv,) of each joint's equations; their weights are its inverse
    seen        (b,) bool: parameters with an effect
    blind       (b,) bool: parameters that are not excited, or only in combination with others
    mixed       (b,) bool: parameters that are excited only in combination with others; x is zero for other blind ones
    condition   of the weighted equations, their columns normalized
    sizes       (b,) characteristic units of the parameters
    """

    x: Array
    root: Array
    noise: Array
    seen: Mask
    blind: Array
    mixed: Array
    condition: float
    sizes: Array


@dataclass(frozen=True, eq=False)
class StateNoiseEffect:
    """Errors of a solution that noise in the states causes.

    variance   (b,) of the solution
    bias       (b,) mean error of the solution
    noise_share  (b,) part of the information about a parameter that is noise itself
    force      (nv,) root mean square of the forces that the noise causes
    """

    variance: Array
    bias: Array
    noise_share: Array
    force: Array


def fit(W: Array, min_noise: Array, sizes: Array) -> LeastSquaresSolution:
    """Solve the equations W (n, nv, b + 1), weighted by the noise of each joint, which the residual gives.

    min_noise  (nv,) smallest noise of each joint's equations; the first weights
    sizes  (b,) characteristic units of the parameters
    """
    noise = min_noise
    count = equation_count(W)
    freedom = np.sqrt(count / max(count - W.shape[2] + 1, 1))
    R = compressed(W)
    # by the first weights: next to the equations of joints that fit exactly, those of another joint have almost no weight
    reach = np.linalg.norm(R[:, :, :-1] / min_noise[:, None, None], axis=(0, 1)) * sizes
    seen = reach > _UNSEEN * reach.max(initial=0.0)
    for _ in range(_ROUNDS):
        solution = solve(R, noise, sizes, seen)
        residuals = np.linalg.norm(R @ np.r_[solution.x, -1.0], axis=1) / np.sqrt(len(W))
        noise = np.maximum(freedom * residuals, min_noise)
        if np.array_equal(noise, solution.noise):                         # of exact data: another round gives the same
            return solution
    return solve(R, noise, sizes, seen)


def equation_count(W: Array) -> int:
    """Return the number of equations W (n, nv, b + 1) of joints that have any."""
    return len(W) * int(np.count_nonzero(W.any(axis=(0, 2))))


def compressed(W: Array) -> Array:
    """Return few equations (nv, k, b + 1) of each joint that have the same least-squares solution as its n equations (QR)."""
    n, nv, columns = W.shape
    R = np.zeros((nv, min(n, columns), columns))
    for k in range(nv):
        used = W[:, k].any(axis=0)                     # of a joint near the end of a chain, few
        factor = np.asarray(np.linalg.qr(W[:, k, used], mode="r"))
        R[k][:len(factor), used] = factor
    return R


def solve(R: Array, noise: Array, sizes: Array, seen: Mask) -> LeastSquaresSolution:
    """Solve compressed equations R (nv, k, b + 1), weighted by the noise (nv,) of each joint, for the parameters `seen` (b,)."""
    weighted = (R / noise[:, None, None])[R.any(axis=2)]
    A, y = weighted[:, :-1], weighted[:, -1]
    scale = np.linalg.norm(A, axis=0)
    seen = seen & (scale > 0.0)
    safe = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(np.where(seen, A / safe, 0.0), full_matrices=False)
    good = s > _UNSEEN * s.max(initial=0.0)
    root = Vt[good].T / s[good] / safe[:, None]
    part = (Vt[good] ** 2).sum(axis=0)                                   # of a parameter in excited directions
    deviation = np.sqrt((root**2).sum(axis=1))
    blind = ~seen | (1.0 - part > _BLIND) | (_possible_change(Vt[~good][:, seen], (safe * sizes)[seen], seen)
                                             > np.maximum(deviation / sizes, _EXACT))
    mixed = blind & (part > _ABSENT)
    root[blind & ~mixed] = 0.0
    condition = float(s[0] / s[-1]) if good.all() and seen.all() else np.inf
    return LeastSquaresSolution(root @ (U[:, good].T @ y), root, noise, seen, blind, mixed, condition, sizes)


def _possible_change(N: Array, scale: Array, seen: Mask) -> Array:
    """Return how far (b,) parameters may be wrong in directions that have no effect, where others are wrong by one
    characteristic unit.

    N      (k, n seen) directions without effect, of columns that are normalized
    scale  (n seen,) norms of the columns in characteristic units
    seen   (b,) bool: parameters with a column

    Changes that are rounding are zero.
    """
    out = np.zeros(len(seen))
    _, size, directions = np.linalg.svd(N, full_matrices=False)
    N = directions[size > 0.5]                                            # the others belong to columns without effect
    Q, _ = np.linalg.qr(N.T / scale[:, None])
    out[seen] = np.where(np.linalg.norm(N, axis=0) > _ROUNDED_DIRECTION, np.linalg.norm(Q, axis=1), 0.0)
    return out


def variance_by_force(W: Array, solution: LeastSquaresSolution, noise: Array) -> Array:
    """Return the variance (nv, b) of the solution that the noise (nv,) of each joint's force causes.

    The noise may differ from that of the weights.
    """
    R = compressed(W)[:, :, :-1] / solution.noise[:, None, None]
    return np.array([((row @ solution.root @ solution.root.T) ** 2).sum(axis=0) * ratio**2
                     for row, ratio in zip(R, noise / solution.noise, strict=True)])


def effect_of_noise(solution: LeastSquaresSolution, noisier: Iterable[tuple[Array, Array]]) -> StateNoiseEffect:
    """Return the effect of the noise of the states on a solution, by simulation and extrapolation (Cook and Stefanski 1994).

    noisier  pairs of equations: of states with random noise added, and with the same noise subtracted

    Noise of the same size again changes the solution about as much as the noise that is in the recording. The difference of a
    pair is linear in the noise and gives the variance; its mean gives the bias. Stops early where noise has no effect.
    """
    own_variance = (solution.root ** 2).sum(axis=1)
    pairs = []
    for pair in noisier:
        x = np.array([solve(compressed(noisy), solution.noise, solution.sizes, solution.seen).x for noisy in pair])
        change = (pair[0] - pair[1]) / 2.0
        D = (change[:, :, :-1] / solution.noise[:, None]).reshape(-1, len(solution.x)) @ solution.root
        force = ((change @ np.r_[solution.x, -1.0]) ** 2).mean(axis=0)
        pairs.append((((x[0] - x[1]) / 2.0) ** 2, x.mean(axis=0) - solution.x, D.T @ D, force))
        variance, moved, part, force = (np.mean(draws, axis=0) for draws in zip(*pairs, strict=True))
        fraction = np.einsum("kj,ji,ki->k", solution.root, part, solution.root)
        effect = StateNoiseEffect(variance, _extrapolated(moved, solution.root, part),
                                  np.divide(fraction, own_variance, out=np.zeros_like(own_variance), where=own_variance > 0.0),
                                  np.sqrt(force))
        if (variance <= _NOTHING**2 * own_variance).all() and (np.abs(effect.bias) <= _NOTHING * np.sqrt(own_variance)).all():
            break
    return effect


def _extrapolated(moved: Array, root: Array, part: Array) -> Array:
    """Return the bias that noise causes, from the change `moved` (b,) of the solution by twice the noise.

    In a direction where the part s of the equations' information is noise, the solution is 1 - s of the true value, and
    (1 - s)/(1 + s) of it with the noise doubled.

    root  as in `LeastSquaresSolution`
    part  (k, k) information by noise; the unit matrix is all information
    """
    s, P = np.linalg.eigh(part)
    s = np.clip(s, 0.0, _MOST)
    bias: Array = root @ (P @ ((1.0 + s) / (1.0 - s) * (P.T @ (np.linalg.pinv(root) @ moved))))
    return bias


# Tests of the residuals -------------------------------------------------------------------------------------------------

# The residual of each joint is compared with torques that the regression may lack: a constant, friction, damping, a spring, a
# wrong scale, a shift in time. What the columns of the regression explain is removed from such a candidate first. Without misfit,
# its coefficient relative to its standard deviation is a standard normal number (score test). Errors of measured positions, which
# act on the torques of several joints, are tested in the same way.

SIGNIFICANT = 4.0        # standard deviations; for ten candidates of six joints, chance exceeds this in 1 of 260 fits
POWER = 2.33             # standard deviations beyond that: a torque so large is found in 99 of 100 fits
_CHECK_ROUNDS = 3        # of the smallest scale error that is found: it adds to the noise by which it is judged
_MIN_IMPROVEMENT = 1.05  # a round that adds less to that error ends them
_INDEPENDENT = 1e-6      # least part of a candidate, by norm, that is independent of the regression's columns
_FREEDOM = 20            # least degrees of freedom left by all candidates together from which they judge the noise
_FEWEST = 8              # degrees of freedom from which a residual is tested
_CORRELATED = 2.0        # autocorrelations within 2 / sqrt(n) are those of white noise (95%)
_NOISE_RATIO = 2.0       # a coloured residual of more than this times the white noise is a misfit
_FAR_NOISE_RATIO = 10.0  # any residual of more than this times the noise is one: a few equations have no visible colour
_LAGS = 0.25             # longest lag of autocorrelation relative to the number of equations
_COLOURED = 1.5          # variance inflation from which a residual is reported as coloured; white noise stays below 1.2
_MATERIAL_MISFIT = 1e-3  # of a joint's torque: a smaller torque that is not explained is no misfit of the model
_CAUSES = {"offset": "a constant offset", "friction": "Coulomb friction", "damping": "damping (viscous friction)",
           "asymmetric": "damping that depends on the direction", "quadratic": "friction that is not linear in the velocity",
           "stiffness": "a spring", "drift": "a drift of the torque", "gain": "a wrong scale of the torque",
           "shift": "a time shift between q and tau"}
ZERO_OFFSET_OF = "a zero offset of the encoder of "
_POSITION_CAUSES = (ZERO_OFFSET_OF, "backlash of ")
ESTIMABLE = {_CAUSES[kind]: kind for kind in ("friction", "damping", "stiffness")}       # causes that are joint parameters


@summarized
@dataclass(frozen=True)
class JointFit:
    """Test of the residual of one joint.

    joint       name of the coordinate
    residual    root mean square of the residual over the rows, after the low-pass filter, without what misfits of other joints
                cause [N m | N]
    noise       white noise of the measured torque, from its high differences [N m | N]
    inflation   variance of an estimate relative to that for a white residual: n / (effective number of samples)
    candidate   what the residual resembles most, in words; empty if nothing is significant. "backlash of J" and "a zero offset of
                the encoder of J" are errors of the position of joint J
    deviations  coefficient of that candidate in standard deviations
    size        root mean square of the torque that the candidate explains [N m | N]
    force       root mean square of the fitted torque [N m | N]
    scale       smallest relative error of the scale of the measured torque that is found in 99 of 100 fits; infinite if the fit
                does not test the scale
    rounding    torques that are rounding: 1e-12 of the largest one of the robot, in characteristic units [N m | N]
    passed      part of the noise, by root mean square, that passes the low-pass filter: 1 / sqrt(rows per knot)
    measured    whether the torque was measured; if not, the fit does not use its equations
    by_states   noise of the filtered torque that the noise of q, v, a causes [N m | N]
    ratio       of the measured torque to that of the robot file; NaN if these are not alike. If it is negative, the sign of
                the torque, or its column, is probably wrong
    delay       time by which the measured torque is late relative to the positions [s], estimated together with those of all
                joints and the parameters; to first order, so for delays that are short relative to the motion. NaN if not
                determined
    delay_deviation  its standard deviation [s]
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
    measured: bool = True
    by_states: float = 0.0
    ratio: float = math.nan
    delay: float = math.nan
    delay_deviation: float = math.nan

    @property
    def explained(self) -> bool:
        """Whether the model explains the torque up to noise, or up to a thousandth."""
        known = self.candidate and self.size > max(_MATERIAL_MISFIT * self.force, self.rounding)
        coloured = not self.white and self.residual > _NOISE_RATIO * self.passed * self.noise
        far = self.residual > _FAR_NOISE_RATIO * math.hypot(self.passed * self.noise, self.by_states)
        return not (known or (self.material and (coloured or far)))

    @property
    def material(self) -> bool:
        """Whether the residual is more than a thousandth of the torque."""
        return self.residual > max(_MATERIAL_MISFIT * self.force, self.rounding)

    @property
    def shifted(self) -> bool:
        """Whether the residual resembles a time shift most, and the delay is determined."""
        return self.candidate == _CAUSES["shift"] and math.isfinite(self.delay)

    @property
    def white(self) -> bool:
        """Whether the residual is white noise."""
        return self.inflation < _COLOURED


class FittedMotion(NamedTuple):
    """Times (N,), q (N, nq), v (N, nv) and fitted forces (N, nv) of the rows of a motion."""

    t: Array
    q: Array
    v: Array
    forces: Array


@dataclass(frozen=True, eq=False)
class FilteredEquations:
    """Equations of generalized forces after the low-pass filter, and their solution.

    W          (n, nv, b + 1) equations
    min_noise  (nv,) forces that are rounding [N m | N]
    """

    W: Array
    solution: LeastSquaresSolution
    min_noise: Array

    def residual_norms(self) -> Array:
        """Return the norms (nv,) of the residuals."""
        norms: Array = np.linalg.norm(self.W[:, :, -1] - self.W[:, :, :-1] @ self.solution.x, axis=0)
        return norms


def joint_fits(model: Model, motion: FittedMotion, equations: FilteredEquations, low_pass: Callable[[Array], Array],
               noise: Array, measured: Mask, by_states: Array,
               derivatives: Array) -> tuple[tuple[JointFit, ...], Array, Array]:
    """Test the residual of each joint.

    low_pass  the filter of the equations
    noise      (nv,) of the measured forces
    measured   (nv,) bool: forces that are not zero throughout
    by_states  (nv,) of the filtered forces, by the noise of the states
    derivatives  (rows, nv, nv) of the forces with respect to the positions; zero for joints whose errors are not tested

    Returns the tests; the changes (nv, b) of the solution by the significant candidate of each joint; and the changes (nv, b) by
    a relative error of 1 of each joint's force.
    """
    solution, min_noise, fitted = equations.solution, equations.min_noise, motion.forces
    # a zero has no scale; and where all other torques are zero, a scale of this one is a scale of all parameters
    scaled = measured if np.count_nonzero(measured) > 1 else np.zeros_like(measured)
    rows = len(fitted)                                         # the filter keeps norms, not the number of rows
    q_of_v = {k: joint.q.start + k - joint.v.start for joint in model.joints if joint.kind == ONE_DOF
              for k in range(joint.v.start, joint.v.stop)}
    rates = np.gradient(fitted, motion.t, axis=0)
    candidates, names, speeds = [], [], tree_views.py_func(model.index, model.constants).friction_speed
    for k in range(model.nv):
        x = motion.v[:, k]
        signals = {"offset": np.ones_like(x), "friction": x / np.hypot(x, speeds[k]), "damping": x, "asymmetric": np.abs(x),
                   "quadratic": x * np.abs(x), "drift": motion.t - motion.t.mean(), "gain": fitted[:, k], "shift": rates[:, k]}
        if k in q_of_v:
            signals["stiffness"] = motion.q[:, q_of_v[k]]
        candidates.append(low_pass(np.stack(list(signals.values()), axis=1)))
        names.append(list(signals))
    of_force = {"drift": measured, "gain": scaled, "shift": measured}
    tested = [np.array([name not in of_force or of_force[name][k] for name in row]) for k, row in enumerate(names)]
    single = [_scores(equations, [k], C[:, None], tested[k]) for k, C in enumerate(candidates)]
    positioned = list(q_of_v)
    backlash = motion.v[:, positioned] / np.hypot(motion.v[:, positioned], speeds[positioned])
    errors = np.stack([np.ones_like(backlash), backlash], axis=2)                        # in the order of _POSITION_CAUSES
    of_positions = low_pass((derivatives[:, :, positioned, None] * errors[:, None]).reshape(rows, -1))
    separate, residual, wrong_positions = _separated(equations, candidates, single, tested,
                                                     of_positions.reshape(len(equations.W), model.nv, -1))
    delays = _delays(equations, low_pass(rates), measured)
    out, shifts, rescaled = [], *np.zeros((2, model.nv, len(solution.x)))
    for k, (name, test) in enumerate(zip(model.v_names, separate, strict=True)):
        scores, moments = test.scores, test.explained
        best = int(np.argmax(np.abs(scores)))
        score = float(abs(scores[best]))
        size = float(solution.noise[k] * np.linalg.norm(moments[best]) / np.sqrt(rows))
        significant = score > SIGNIFICANT
        gain, force = names[k].index("gain"), float(np.sqrt(np.mean(fitted[:, k] ** 2)))
        shifts[k], rescaled[k] = test.shifts[:len(solution.x), best] * significant, single[k].changes[:, gain]
        material = max(_MATERIAL_MISFIT * force, float(min_noise[k])) * np.sqrt(rows)
        out.append(JointFit(name, float(residual[k] / np.sqrt(rows)), float(noise[k]), test.inflation,
                            _CAUSES[names[k][best]] if significant else "", score * significant, size * significant,
                            force, _detectable_scale(equations, k, candidates[k], gain, single[k], material, tested[k]),
                            float(min_noise[k]), float(np.sqrt(len(equations.W) / rows)), by_states=float(by_states[k]),
                            delay=float(delays[0, k]), delay_deviation=float(delays[1, k])))
    for c, test in wrong_positions:
        cause, k = _POSITION_CAUSES[c % len(_POSITION_CAUSES)], positioned[c // len(_POSITION_CAUSES)]
        score, parts = float(abs(test.scores[c])), test.parts(c)
        shifts[k] = np.abs(shifts[k]) + np.abs(test.shifts[:len(solution.x), c])
        out = [replace(joint, candidate=cause + model.v_names[k], deviations=score,
                       size=float(solution.noise[m] * test.by_joint[m, c] / np.sqrt(rows)))
               if part >= min(SIGNIFICANT, parts.max()) and score > joint.deviations else joint
               for m, (joint, part) in enumerate(zip(out, parts, strict=True))]
    return tuple(out), shifts, rescaled


def _delays(equations: FilteredEquations, rates: Array, measured: Mask) -> Array:
    """Return the delay of the torque of each joint and its standard deviation (2, nv) [s]; NaN if not determined.

    A torque that is late by d differs by -d times its rate. These columns of all joints are added to the regression, since a
    delay of one joint also changes parameters that the torques of other joints depend on.

    rates  (n, nv) of the fitted torques, after the low-pass filter
    """
    W, sizes, nv = equations.W, equations.solution.sizes, rates.shape[1]
    delays, norms = np.full((2, nv), np.nan), np.linalg.norm(rates, axis=0)
    late = np.flatnonzero(measured & (norms > 0.0))
    if equation_count(W) < W.shape[2] - 1 + len(late) + _FEWEST:
        return delays
    columns = np.zeros((len(W), nv, len(late)))
    columns[:, late, np.arange(len(late))] = -rates[:, late] / norms[late]
    largest = np.max(np.linalg.norm(W[:, :, :-1], axis=(0, 1)) * sizes)
    solution = fit(np.concatenate([W[:, :, :-1], columns, W[:, :, -1:]], axis=2), equations.min_noise,
                   np.r_[sizes, np.full(len(late), largest)])
    part = slice(len(sizes), None)
    x, deviation = solution.x[part], np.sqrt((solution.root[part]**2).sum(axis=1))
    known = ~np.asarray(solution.blind[part], dtype=bool)
    delays[:, late[known]] = np.stack([x, deviation])[:, known] / norms[late[known]]
    return delays


@dataclass(frozen=True, eq=False)
class _CandidateTests:
    """Tests of the candidates of one joint, each without the others.

    scores      (c,) coefficients, in standard deviations
    deviations  (c,) standard deviations of the coefficients
    explained   (c,) norms of the explained parts of the residual
    sizes       (c,) norms of the torque of a coefficient of 1 [N m | N]
    by_joint    (m, c) the same of each joint
    shifts      (b, c) changes of the solution by the candidate
    changes     (b, c) changes of the solution by a coefficient of 1
    freedom     effective degrees of freedom
    inflation   variance inflation of the residual
    """

    scores: Array
    deviations: Array
    explained: Array
    sizes: Array
    by_joint: Array
    shifts: Array
    changes: Array
    freedom: float
    inflation: float

    def parts(self, c: int) -> Array:
        """Return the score of candidate c in the residual of each joint (m,)."""
        parts: Array = np.abs(self.scores[c]) * self.by_joint[:, c] / np.linalg.norm(self.by_joint[:, c])
        return parts

    def detectable(self, c: int, material: float) -> float:
        """Return the smallest coefficient of candidate c that is significant in 99 of 100 fits and explains at least the norm
        `material`.

        The noncentral t distribution is computed by its normal approximation (Johnson and Welch 1940).
        """
        from scipy.special import ndtr, stdtrit
        if not np.isfinite(self.deviations[c]):
            return np.inf
        critical = -stdtrit(self.freedom, ndtr(-SIGNIFICANT))
        by_noise = self.deviations[c] * (critical + POWER * np.sqrt(1.0 + critical**2 / (2.0 * self.freedom)))
        return float(max(by_noise, material / self.sizes[c]))


def _separated(equations: FilteredEquations, candidates: Sequence[Array], single: Sequence[_CandidateTests],
               tested: Sequence[Mask],
               of_positions: Array) -> tuple[list[_CandidateTests], Array, list[tuple[int, _CandidateTests]]]:
    """Return the tests of each joint, and the norms of its residual, without the effect of misfits of other joints; and the
    significant ones of the candidates `of_positions` (n, nv, c), with their tests.

    A wrong torque of one joint changes parameters that the torques of other joints depend on. So the most significant candidate
    of all joints becomes a column of the regression, and the other joints are tested again, until none has a significant
    candidate (forward selection). A wrong position acts on the torques of several joints, and must explain more than all their
    candidates together.
    """
    tests, remaining, wrong_positions = list(single), list(range(len(single))), list[tuple[int, _CandidateTests]]()
    residual, right = equations.residual_norms(), np.array(of_positions.any(axis=(0, 1)), dtype=bool)
    while True:
        scores = np.array([np.abs(tests[k].scores).max(initial=0.0) for k in remaining])
        power, column = float(np.sum(scores[scores > SIGNIFICANT]**2)), np.zeros(equations.W.shape[:2])
        by_position = _scores(equations, range(len(single)), of_positions, right) if right.any() else None
        if by_position and (score := np.abs(by_position.scores).max()) > max(SIGNIFICANT, math.sqrt(power)):
            c = int(np.flatnonzero(np.abs(by_position.scores) == score)[0])
            wrong_positions.append((c, by_position))
            right[c], column = False, of_positions[:, :, c]
        elif power > 0.0:
            k = remaining.pop(int(np.argmax(scores)))
            column[:, k] = candidates[k][:, int(np.argmax(np.abs(tests[k].scores)))]
        else:
            return tests, residual, wrong_positions
        equations = _with_column(equations, column)
        for j in remaining:
            tests[j] = _scores(equations, [j], candidates[j][:, None], tested[j])
        residual[remaining] = equations.residual_norms()[remaining]


def _with_column(equations: FilteredEquations, column: Array) -> FilteredEquations:
    """Return equations with another column (n, nv), and their solution."""
    W = np.concatenate([equations.W[:, :, :-1], column[:, :, None] / np.linalg.norm(column), equations.W[:, :, -1:]], axis=2)
    sizes = equations.solution.sizes
    norms = np.linalg.norm(W[:, :, :-2], axis=(0, 1)) * sizes
    # as large as the largest column in characteristic units
    return replace(equations, W=W, solution=fit(W, equations.min_noise, np.r_[sizes, norms.max()]))


def _detectable_scale(equations: FilteredEquations, k: int, C: Array, gain: int, test: _CandidateTests, material: float,
                      tested: Mask) -> float:
    """Return `JointFit.scale`. A wrong scale reduces the weights of the joints that show it, so the fit is repeated with it."""
    scale = test.detectable(gain, material)
    for _ in range(_CHECK_ROUNDS):
        if not scale < 1.0:
            return np.inf
        W = equations.W.copy()
        W[:, k, -1] += scale * C[:, gain]
        solution = fit(W, equations.min_noise, equations.solution.sizes)
        wrong = _scores(replace(equations, W=W, solution=solution), [k], C[:, None], tested)
        previous, scale = scale, max(scale, wrong.detectable(gain, material))
        if scale < _MIN_IMPROVEMENT * previous:
            break
    return scale if scale < 1.0 else np.inf


def _scores(equations: FilteredEquations, joints: Sequence[int], C: Array, tested: Mask) -> _CandidateTests:
    """Test candidates C (n, m, c), of which some are to be `tested` (c,), for m joints against their residuals.

    The candidates act on these joints only, so their inner products with residuals need only their rows. The noise is that of
    the residual without all candidates.
    """
    W, solution, (n, m, _) = equations.W, equations.solution, C.shape
    root, noise = solution.root, solution.noise[joints]
    rows = (W[:, joints] / noise[:, None]).reshape(n * m, -1)
    A, r, C = rows[:, :-1], rows[:, -1] - rows[:, :-1] @ solution.x, (C / noise[:, None]).reshape(n * m, -1)
    min_noise = float((equations.min_noise[joints] / noise).max())
    size = np.linalg.norm(C, axis=0)
    safe = np.where(size > 0.0, size, 1.0)
    C = C / safe
    part = root.T @ (A.T @ C)                                      # (directions, c): what the columns of A explain
    gram = C.T @ C - part.T @ part                                 # of the candidates without it
    independent = np.sqrt(np.maximum(np.diag(gram), 0.0))
    clear = tested & (size > 0.0) & (independent > _INDEPENDENT)
    moment = C.T @ r                                               # r is orthogonal to the columns of A
    C = C - A @ (root @ part)
    remaining = r - C[:, clear] @ np.linalg.lstsq(gram[np.ix_(clear, clear)], moment[clear], rcond=_INDEPENDENT)[0]
    inflation = _largest_inflation(remaining, m)
    length = np.where(clear, independent, 1.0)
    explained, changes = np.where(clear, moment / length, 0.0), root @ part * size
    by_joint = np.abs(explained) / length * np.linalg.norm(C.reshape(n, m, -1), axis=0)
    freedom = float(len(r) - np.linalg.norm(A @ root) ** 2)        # less the joints' part of the parameters
    if freedom - np.count_nonzero(clear) >= _FREEDOM:
        power, freedom = remaining @ remaining, freedom - np.count_nonzero(clear)
    elif freedom - 1.0 < _FEWEST:                                  # no test
        zero = np.zeros(len(size))
        return _CandidateTests(zero, np.full(len(size), np.inf), zero, zero, 0.0 * by_joint, np.zeros((A.shape[1], len(size))),
                               changes, 1.0, _largest_inflation(r, m))
    else:                                                          # too few to remove all candidates: each one alone
        power, freedom, inflation = (np.maximum(r @ r - explained ** 2, 0.0), max(freedom - 1.0, 1.0),
                                     _largest_inflation(r, m))
    scale = np.maximum(np.sqrt(power / freedom), min_noise) * np.sqrt(inflation)
    deviations = np.where(clear, scale / (length * safe), np.inf)
    freedom = max(freedom / inflation, 1.0)
    return _CandidateTests(_normal_scores(explained / scale, freedom), deviations, explained, noise.max() * length * safe,
                           by_joint, root @ part * (explained / length), changes, freedom, _largest_inflation(r, m))


def _largest_inflation(r: Array, joints: int) -> float:
    """Return the largest variance inflation of the residuals (n * joints,) of joints."""
    return max(variance_inflation(series) for series in r.reshape(-1, joints).T)


def _normal_scores(scores: Array, freedom: float) -> Array:
    """Return scores of the normal distribution that are as improbable as these scores of Student's t distribution."""
    from scipy.special import ndtri, stdtr
    tail = stdtr(freedom, -np.abs(scores))
    return np.sign(scores) * np.where(tail > 0.0, -ndtri(np.maximum(tail, np.finfo(float).tiny)), np.abs(scores))


def variance_inflation(r: Array) -> float:
    """Return the variance of the mean of a stationary series, relative to that of white noise and at least 1.

    1 + 2 (sum of autocorrelations up to the first that is not significant).
    """
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
