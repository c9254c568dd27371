"""Whether a fitted model explains the measured joint torques, and what it may lack where it does not."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from liedyn.analysis.weighted_least_squares import LeastSquaresSolution, fit
from liedyn.model.description import FRICTION_SPEED, ONE_DOF

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
    """Test the residual of each joint.

    t, q, v, fitted  (N, ...) times, states and fitted torques
    W                (n, nv, b + 1) filtered equations, and their solution `found`
    low_pass         the filter of these equations
    noise            (nv,) of the measured torques
    least            (nv,) torques that are rounding [N m | N]
    measured         (nv,) bool: torques that are not zero throughout

    Returns the tests; the changes (nv, b) of the solution by the significant candidate of each joint; and the changes (nv, b) by
    a relative error of 1 of each joint's torque.
    """
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
    """Tests of the candidates of one joint, each without the others.

    scores      (c,) coefficients, in standard deviations
    deviations  (c,) standard deviations of the coefficients
    explained   (c,) norms of the explained parts of the residual
    sizes       (c,) norms of the torque of a coefficient of 1 [N m | N]
    shifts      (b, c) changes of the solution by the candidate
    changes     (b, c) changes of the solution by a coefficient of 1
    freedom     effective degrees of freedom
    inflation   variance inflation of the residual
    """

    scores: np.ndarray
    deviations: np.ndarray
    explained: np.ndarray
    sizes: np.ndarray
    shifts: np.ndarray
    changes: np.ndarray
    freedom: float
    inflation: float

    def found(self, c: int, material: float) -> float:
        """Return the smallest coefficient of candidate c that is significant in 99 of 100 fits and explains at least the norm
        `material`.

        The noncentral t distribution is computed by its normal approximation (Johnson and Welch 1940).
        """
        from scipy.special import ndtr, stdtrit
        if not np.isfinite(self.deviations[c]):
            return np.inf
        least = -stdtrit(self.freedom, ndtr(-SIGNIFICANT))
        by_noise = self.deviations[c] * (least + POWER * np.sqrt(1.0 + least**2 / (2.0 * self.freedom)))
        return float(max(by_noise, material / self.sizes[c]))


def _separated(W, found: LeastSquaresSolution, candidates, least, alone: list[_CandidateTests],
               tested) -> tuple[list[_CandidateTests], np.ndarray]:
    """Return the tests of each joint, and the norms of its residual, without the effect of misfits of other joints.

    A wrong torque of one joint changes parameters that the torques of other joints depend on. So the most significant candidate
    of all joints becomes a column of the regression, and the other joints are tested again, until none has a significant
    candidate (forward selection).
    """
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
    """Return the norms (nv,) of the residuals."""
    return np.linalg.norm(W[:, :, -1] - W[:, :, :-1] @ found.x, axis=0)


def _found_scale(W, found: LeastSquaresSolution, k: int, C, gain: int, test: _CandidateTests, material: float, least,
                 tested) -> float:
    """Return `JointFit.scale`. A wrong scale reduces the weights of the joints that show it, so the fit is repeated with it."""
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

    The candidates act on joint k only, so their inner products with residuals need only its rows. The noise is that of the
    residual without all candidates.
    """
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
    """Return scores of the normal distribution that are as improbable as these scores of Student's t distribution."""
    from scipy.special import ndtri, stdtr
    tail = stdtr(freedom, -np.abs(scores))
    return np.sign(scores) * np.where(tail > 0.0, -ndtri(np.maximum(tail, np.finfo(float).tiny)), np.abs(scores))


def variance_inflation(r: np.ndarray) -> float:
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
