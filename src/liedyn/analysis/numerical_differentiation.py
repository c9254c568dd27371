"""Splines through sampled motions on the configuration manifold: derivatives of any order, and how far these are off.

1-DoF coordinates and positions are splined as they are, quaternions as vectors of four: with the spline s(t) through them the
rotation is that of s/|s|, a smooth curve through the samples that does not hang on the choice of axes, in the world or in the
body. Body twists follow from products of power series in t,

    w = 2 vec(s* s') / |s|^2,        v = vec(s* p' s) / |s|^2.

Two things are wrong with a derivative of samples: the spline is not the motion, and the samples are not exact. The first shows
in a spline of two degrees more; the second in the spline through samples with noise of their own size added, which is read off
high divided differences, where a smooth motion leaves nothing but noise.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from liedyn.dynamics.kinematics import difference
from liedyn.errors import TrajectoryError
from liedyn.model.description import FREE, ONE_DOF

HIGHEST = 20                            # derivative; splines of degree 27 and more have no digits left in a double
UNEVEN = 1e10                           # longest over shortest time step: what a spline still stands
_DIFFERENCES = (2, 4, 8, 16, 24)        # orders; the smallest noise that one of them shows is taken
_ROUNDING = 1e-13                       # of a spline through samples, relative to the largest of them
_SHARE = 1e-3                           # of the largest coordinate of the same unit: what moves less is judged by that share
_WINDOWS = 4000                         # samples of a long motion at which its noise is measured
_QUIET, _QUIET_SIZE = 0.9, 0.789        # the part without outliers (kinks, say), and its size if normal numbers are of size 1


@dataclass(frozen=True)
class SmoothingFit:
    """A way to lay a spline through samples.

    samples  for each knot: 1 interpolates, more is a least-squares fit, which smooths; of all columns, of each (n,), or by the
             kind of quantity that a spline is laid through
    raised   degrees added
    noisy    whether noise is added to the samples, of the size that they have themselves
    """

    samples: int | np.ndarray | Mapping[str, np.ndarray] = 1
    raised: int = 0
    noisy: bool = False

    def checks(self) -> tuple[SmoothingFit, SmoothingFit]:
        """The fits that differ from this by about what it is off: of another degree, of other noise."""
        return SmoothingFit(self.samples, raised=2), SmoothingFit(self.samples, noisy=True)

    def of(self, kind: str) -> SmoothingFit:
        """The fit of a kind of quantity."""
        return replace(self, samples=self.samples[kind]) if isinstance(self.samples, Mapping) else self


def degree_for(highest: int) -> int:
    """Odd degree of a spline whose derivative `highest` is right to the sixth or seventh power of the time step."""
    return (highest + 5) | 1


def one_sided(count: int, highest: int, samples: int) -> int:
    """Rows of `count` at either end that have too few neighbours on one side, which makes derivatives worse there. A quarter of
    them at most: something must be left to tell errors by."""
    return min((degree_for(highest) + 1) // 2 * samples, count // 4)


def has_rows(count: int, highest: int, samples: int) -> bool:
    """Whether these are enough samples to derive up to order `highest`, and to check that by another degree."""
    degree = degree_for(highest) + 2
    knots = _knots(count, degree, samples) if samples > 1 else ()
    return count >= degree + 1 + len(knots)


def check_rows(t: np.ndarray, highest: int, samples: int) -> None:
    """TrajectoryError for too few samples, for times that no spline stands, and for a derivative that no samples give."""
    if highest > HIGHEST:
        raise TrajectoryError(f"derivative {highest} cannot be computed from samples (at most {HIGHEST} can)",
                              hint="give derivatives as columns (d1a, d2a, …), or a smaller order")
    if not has_rows(len(t), highest, samples):
        smooth = f" and a knot every {samples} rows" if samples > 1 else ""
        least = next(n for n in itertools.count(len(t)) if has_rows(n, highest, samples))
        raise TrajectoryError(f"{len(t)} row(s) are not enough for derivative {highest} with a spline of degree "
                              f"{degree_for(highest)}{smooth}; at least {least} are needed, or a smaller order")
    steps = np.diff(t)
    if steps.max() > UNEVEN * steps.min():
        raise TrajectoryError(f"the row at t = {float(t[steps.argmin()])!r} s and the next are too close in time for splines",
                              found=f"{steps.min():.3g} s", expected=f"more than {steps.max() / UNEVEN:.3g} s")


def spline_derivatives(t: np.ndarray, x: np.ndarray, highest: int, fit: SmoothingFit) -> np.ndarray:
    """(N, highest + 1, n): x and its derivatives with respect to t, of a spline through or along the samples x (N, n).

    Raises TrajectoryError as `check_rows` does."""
    samples = np.broadcast_to(fit.samples, x.shape[1:])
    if fit.noisy:
        x = with_noise(t, x)
    out = np.empty((len(t), highest + 1, x.shape[1]))
    for each in map(int, np.unique(samples)):
        check_rows(t, highest, each)
        spline = _spline(t, x[:, samples == each], degree_for(highest) + fit.raised, each)
        for k in range(highest + 1):
            out[:, k, samples == each] = spline(t, nu=k)
    if not np.isfinite(out).all():
        raise TrajectoryError(f"derivative {highest} overflows; are the times in seconds?")
    return out


def _spline(t, x, degree: int, samples: int):
    from scipy.interpolate import BSpline, make_interp_spline  # importing it takes 0.4 s
    from scipy.linalg import cho_solve_banded

    if samples == 1:
        return make_interp_spline(t, x, k=degree)
    knots, B, lower = _basis(t, degree, samples)
    c = cho_solve_banded((lower, True), B.T @ x)
    return BSpline(knots, c + cho_solve_banded((lower, True), B.T @ (x - B @ c)), degree)


def _basis(t, degree: int, samples: int):
    """Of least-squares splines: knots, values of the splines at the samples, Cholesky factor of the normal equations (banded).

    SciPy's make_lsq_spline takes time of the order of the rows squared. The normal equations do not, and what they lose of
    digits a second solution, of the residuals, brings back."""
    from scipy.interpolate import BSpline
    from scipy.linalg import cholesky_banded

    inner = t[_knots(len(t), degree, samples)]
    knots = np.concatenate([np.full(degree + 1, t[0]), inner, np.full(degree + 1, t[-1])])
    B = BSpline.design_matrix(t, knots, degree)
    normal = B.T @ B
    lower = np.zeros((degree + 1, B.shape[1]))
    for k in range(degree + 1):
        lower[k, :B.shape[1] - k] = normal.diagonal(-k)
    try:
        return knots, B, cholesky_banded(lower, lower=True)
    except np.linalg.LinAlgError as error:
        raise TrajectoryError(f"no spline of degree {degree} with a knot every {samples} rows can be computed for these times",
                              hint="a smaller order, or no smoothing") from error


def low_pass(t: np.ndarray, highest: int, samples: int):
    """The function that takes samples x (N, n) to coefficients (m, n), m < N, in an orthonormal basis of the least-squares
    splines: all that these would leave of x, once. White noise stays white, and of the same size."""
    from scipy.linalg import solve_banded

    degree = degree_for(highest)
    _, B, lower = _basis(t, degree, samples)
    return lambda x: solve_banded((degree, 0), lower, B.T @ x)


def _knots(count: int, degree: int, samples: int) -> range:
    """Rows with knots. As of an interpolating spline, the first and last (degree + 1)/2 steps are one polynomial: else the ends,
    where neighbours are on one side only, would be worse by far."""
    end = (degree + 1) // 2 * samples
    return range(end, count - end, samples)


def misses(t: np.ndarray, x: np.ndarray, highest: int, samples: int, units=None) -> np.ndarray:
    """(n,) bool: whether a least-squares fit leaves out more of x than its noise, and a higher degree does not mend it: then
    the knots are too far apart for the motion. units (n,): a coordinate counts as noisy as the noisiest of its unit."""
    degree, ends = degree_for(highest), one_sided(len(t), highest, samples)
    left = ((_spline(t, x, degree + more, samples)(t) - x)[ends:len(t) - ends] for more in (0, 2))
    lower, higher = (np.sqrt(np.mean(each**2, axis=0)) for each in left)
    rounding = _ROUNDING * np.abs(x).max(axis=0)                        # of a coordinate that stands still
    size = noise(t, x)
    if units is not None:
        size = np.array([max(s for s, other in zip(size, units, strict=True) if other == unit) for unit in units])
    return (higher > np.maximum(3.0 * size, rounding)) & (higher > 0.8 * lower)


def noise(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) size (standard deviation) of the noise in samples x (N, n), from divided differences of unit weight."""
    out = np.full(x.shape[1], np.inf)
    for order in _DIFFERENCES:
        windows = len(t) - order
        if windows < 8 and order > _DIFFERENCES[0]:
            break
        first = np.unique(np.linspace(0, windows - 1, min(windows, _WINDOWS)).astype(int))
        near = first[:, None] + np.arange(order + 1)
        s = (t[near] - t[near[:, :1]]) / (t[near[:, -1:]] - t[near[:, :1]])
        gaps = s[:, :, None] - s[:, None, :] + np.eye(order + 1)
        weights = 1.0 / np.prod(gaps, axis=2)
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        out = np.minimum(out, quiet_size(np.einsum("kj,kjn->kn", weights, x[near])))
    return out


def quiet_size(x: np.ndarray) -> np.ndarray:
    """(n,) standard deviations of normal numbers x (N, n), some of which are outliers."""
    sizes = np.sort(np.abs(x), axis=0)[:max(1, int(_QUIET * len(x)))]
    return np.sqrt(np.mean(sizes**2, axis=0)) / _QUIET_SIZE


def with_noise(t: np.ndarray, x: np.ndarray, seed: int = 0) -> np.ndarray:
    """Samples x (N, n) with noise added, of the size that they have themselves."""
    return x + noise(t, x) * np.random.default_rng(seed).standard_normal(x.shape)


# the manifold ------------------------------------------------------------------------------------------------------
def continued(model, q: np.ndarray) -> np.ndarray:
    """Samples q (N, nq) with quaternions of the sign that is nearer to the one before."""
    q = q.copy()
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            s = slice(joint.q.stop - 4, joint.q.stop)
            back = np.einsum("kn,kn->k", q[1:, s], q[:-1, s]) < 0.0
            q[1:, s] *= np.cumprod(np.where(back, -1.0, 1.0))[:, None]
    return q


def of_unit_norm(model, q: np.ndarray) -> np.ndarray:
    """Samples q (N, nq) with quaternions scaled to unit norm."""
    q = q.copy()
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            s = slice(joint.q.stop - 4, joint.q.stop)
            q[:, s] /= np.linalg.norm(q[:, s], axis=1, keepdims=True)
    return q


def body_velocities(model, q: np.ndarray) -> np.ndarray:
    """v and its derivatives (N, K, nv) of q and its derivatives (N, K + 1, nq). Quaternions need not be of unit norm."""
    count = q.shape[1] - 1
    factorials = np.array([math.factorial(k) for k in range(count)], dtype=float)[:, None]
    out = np.empty((len(q), count, model.nv))
    for joint in model.joints:
        x = q[:, :, joint.q]
        if joint.kind == ONE_DOF:
            out[:, :, joint.v] = x[:, 1:]
            continue
        s, rate = x[:, :-1, -4:] / factorials, x[:, 1:, -4:] / factorials       # Taylor coefficients
        back = s * [-1.0, -1.0, -1.0, 1.0]
        size = _times(back, s)[:, :, 3:]
        parts = [2.0 * _over(_times(back, rate)[:, :, :3], size)]
        if joint.kind == FREE:
            p = np.concatenate([x[:, 1:, :3] / factorials, np.zeros_like(size)], axis=2)
            parts.append(_over(_times(_times(back, p), s)[:, :, :3], size))
        out[:, :, joint.v] = np.concatenate(parts, axis=2) * factorials
    return out


def _times(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Product of quaternions x y z w whose Taylor coefficients are (N, K, 4)."""
    out = np.zeros_like(x)
    for k in range(x.shape[1]):
        for j in range(k + 1):
            a, b = x[:, j], y[:, k - j]
            out[:, k, :3] += a[:, 3:] * b[:, :3] + b[:, 3:] * a[:, :3] + np.cross(a[:, :3], b[:, :3])
            out[:, k, 3] += a[:, 3] * b[:, 3] - np.einsum("kn,kn->k", a[:, :3], b[:, :3])
    return out


def _over(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Taylor coefficients of x / size."""
    out = np.empty_like(x)
    for k in range(x.shape[1]):
        out[:, k] = (x[:, k] - sum(size[:, j] * out[:, k - j] for j in range(1, k + 1))) / size[:, 0]
    return out


# errors ------------------------------------------------------------------------------------------------------------
@np.errstate(over="ignore", invalid="ignore")               # of huge numbers: 50% or more
def errors(x: np.ndarray, others, ends: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of x (N, K, n), from what `others`, of the same shape, differ from it: (K, n) root mean squares of the errors within the
    motion and in its first and last `ends` rows, and of x itself within the motion, without its largest tenth: where friction
    turns, the derivatives of a force are pulses compared with which any error would look small."""
    square = sum((other - x) ** 2 for other in others)
    inner = slice(ends, len(x) - ends)
    outer = np.concatenate([square[:ends], square[-ends:]])
    common = np.sort(x[inner] ** 2, axis=0)[:max(1, int(_QUIET * (len(x) - 2 * ends)))]
    return np.sqrt(square[inner].mean(axis=0)), np.sqrt(outer.mean(axis=0)), np.sqrt(common.mean(axis=0))


def sizes_to_judge_by(size: np.ndarray, units) -> np.ndarray:
    """The sizes (..., n), at least `_SHARE` of the largest of the same unit: what hardly moves is not judged individually."""
    size, units = size.copy(), np.asarray(units)
    for unit in set(units):
        same = units == unit
        size[..., same] = np.maximum(size[..., same], _SHARE * size[..., same].max(axis=-1, keepdims=True))
    return np.where(size > 0.0, size, 1.0)


# Velocities and accelerations of sampled motions, on the manifold -------------------------------------------------------

# About each sample, the seven nearest samples are written in exponential coordinates, q_j = q_k (+) x_j, and a polynomial
# through them is differentiated: at its own origin the chart's rate is the velocity and its second rate the acceleration
# (the terms of dexp vanish there), for every kind of joint. Order 6 for v, 5 for a, on any grid of times.

POINTS = 7


def derivatives(model, t, q, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """v, a (N, nv) of samples q (N, nq) at times t (N,)."""
    near, first, second = _stencils(t, points)
    v, a = np.zeros((len(t), model.nv)), np.zeros((len(t), model.nv))
    for j in range(near.shape[1]):
        x = difference(model, q, q[near[:, j]])
        v += first[:, j:j + 1] * x
        a += second[:, j:j + 1] * x
    return v, a


def rates(t, v, points: int = POINTS) -> np.ndarray:
    """Time derivative (N, n) of samples v (N, n)."""
    near, first, _ = _stencils(t, points)
    return np.einsum("kj,kjn->kn", first, v[near] - v[:, None])


def other_points(rows: int) -> int:
    """Samples to take in order to see what the usual number of them is off: two more, or two fewer where there are no more."""
    return POINTS + 2 if rows >= POINTS + 2 else max(3, min(POINTS, rows) - 2)


def _stencils(t, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each sample: its neighbours (N, p), and the weights (N, p) of the first and second derivative."""
    n = len(t)
    if n < 3:
        raise TrajectoryError(f"{n} row(s) are not enough to compute velocities and accelerations; at least 3 are needed")
    p = min(points, n)
    start = np.clip(np.arange(n) - p // 2, 0, n - p)
    near = start[:, None] + np.arange(p)
    s = t[near] - t[:, None]
    scale = np.abs(s).max(axis=1)
    powers = (s / scale[:, None])[:, None, :] ** np.arange(p)[None, :, None]       # row r: s^r
    right = np.zeros((n, p, 2))
    right[:, 1, 0], right[:, 2, 1] = 1.0, 2.0
    weights = np.linalg.solve(powers, right)
    return near, weights[..., 0] / scale[:, None], weights[..., 1] / scale[:, None] ** 2
