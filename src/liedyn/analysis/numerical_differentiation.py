"""Derivatives of sampled motions by splines and polynomials on the configuration manifold, with estimates of their errors.

1-DoF coordinates and positions are interpolated directly, quaternions as vectors of four numbers. With the spline s(t) through
the quaternions, the rotation is that of s/|s|. This is a smooth curve through the samples that does not depend on the choice of
axes in the world or in the body. Body twists follow from products of power series in t:

    w = 2 vec(s* s') / |s|^2,        v = vec(s* p' s) / |s|^2.

A derivative of samples has two errors: the spline differs from the motion, and the samples have noise. The first is estimated
from a spline with a degree higher by two. The second is estimated from the spline through samples with added noise of the same
size. The size of the noise follows from high divided differences, where a smooth motion leaves only noise.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.manifold import difference
from liedyn.errors import LiedynWarning, TrajectoryError, list_names
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.model import Model

if TYPE_CHECKING:                       # importing them takes 0.4 s
    from scipy.interpolate import BSpline
    from scipy.sparse import csr_array

HIGHEST = 20                            # order of a derivative; splines of degree 27 and more have no correct digits in doubles
UNEVEN = 1e10                           # maximum of the ratio of the longest to the shortest time step
_DIFFERENCES = (2, 4, 8, 16, 24)        # orders of divided differences; the smallest estimate of the noise is used
_ROUNDING = 1e-13                       # rounding error of a spline, relative to the maximum sample
_SHARE = 1e-3                           # minimum size of a coordinate, relative to the largest one of the same unit
_WINDOWS = 4000                         # maximum number of divided differences from which noise is estimated
_QUIET, _QUIET_SIZE = 0.9, 0.789        # share of samples without outliers, and its rms for the standard normal distribution


@dataclass(frozen=True)
class SmoothingFit:
    """Options of a spline fit.

    samples  samples per knot: 1 interpolates, more gives a least-squares fit, which smooths. One number for all columns, one for
             each column (n,), or such an array for each kind of quantity.
    raised   number that is added to the degree
    noisy    whether noise is added to the samples, of the size of their own noise
    """

    samples: int | Integers | Mapping[str, Integers] = 1
    raised: int = 0
    noisy: bool = False

    def checks(self) -> tuple[SmoothingFit, SmoothingFit]:
        """Return two fits whose results differ from those of this fit by about its error: another degree, and added noise."""
        return SmoothingFit(self.samples, raised=2), SmoothingFit(self.samples, noisy=True)

    def number(self) -> int | Integers:
        """Return the samples per knot of a fit of one kind of quantity."""
        assert not isinstance(self.samples, Mapping)           # `of` selects the kind
        return self.samples

    def of(self, kind: str) -> SmoothingFit:
        """Return the fit of a kind of quantity."""
        return replace(self, samples=self.samples[kind]) if isinstance(self.samples, Mapping) else self


def degree_for(highest: int) -> int:
    """Return the odd degree of a spline whose derivative `highest` has an error of order six or seven in the time step."""
    return (highest + 5) | 1


def one_sided(count: int, highest: int, samples: int) -> int:
    """Return the number of rows at either end that have too few neighbours on one side for accurate derivatives.

    At most a quarter of `count`, so that rows remain from which errors are estimated.
    """
    return min((degree_for(highest) + 1) // 2 * samples, count // 4)


def has_rows(count: int, highest: int, samples: int) -> bool:
    """Return whether `count` samples are enough to derive up to order `highest`, and to check that with a higher degree."""
    degree = degree_for(highest) + 2
    knots = _knots(count, degree, samples) if samples > 1 else ()
    return count >= degree + 1 + len(knots)


def check_rows(t: Array, highest: int, samples: int) -> None:
    """Raise TrajectoryError for too few samples, times that are too uneven for a spline, or an order above HIGHEST."""
    if highest > HIGHEST:
        raise TrajectoryError(f"derivatives of order {highest} cannot be computed from samples (the maximum order is {HIGHEST})",
                              hint="give derivatives as columns (d1a, d2a, …), or a smaller order")
    if not has_rows(len(t), highest, samples):
        smooth = f" and a knot every {samples} rows" if samples > 1 else ""
        min_rows = next(n for n in itertools.count(len(t)) if has_rows(n, highest, samples))
        raise TrajectoryError(f"{len(t)} row(s) are not enough for derivatives of order {highest} with a spline of degree "
                              f"{degree_for(highest)}{smooth}; at least {min_rows} are needed, or a smaller order")
    steps = np.diff(t)
    if steps.max() > UNEVEN * steps.min():
        raise TrajectoryError(f"the row at t = {float(t[steps.argmin()])!r} s and the next are too close in time for splines",
                              found=f"{steps.min():.3g} s", expected=f"more than {steps.max() / UNEVEN:.3g} s")


def spline_derivatives(t: Array, x: Array, highest: int, fit: SmoothingFit) -> Array:
    """Return x and its derivatives with respect to t (N, highest + 1, n), from a spline fitted to the samples x (N, n).

    Raises TrajectoryError as `check_rows`, and if a derivative overflows.
    """
    samples = np.broadcast_to(fit.number(), x.shape[1:])
    if fit.noisy:
        x = with_noise(t, x)
    out = np.empty((len(t), highest + 1, x.shape[1]))
    for each in map(int, np.unique(samples)):
        check_rows(t, highest, each)
        spline = _spline(t, x[:, samples == each], degree_for(highest) + fit.raised, each)
        for k in range(highest + 1):
            out[:, k, samples == each] = spline(t, nu=k)
    if not np.isfinite(out).all():
        raise TrajectoryError(f"derivative {highest} overflows: check whether the times are in seconds")
    return out


def _spline(t: Array, x: Array, degree: int, samples: int) -> BSpline:
    from scipy.interpolate import BSpline, make_interp_spline  # importing it takes 0.4 s
    from scipy.linalg import cho_solve_banded

    if samples == 1:
        return make_interp_spline(t, x, k=degree)
    knots, B, lower = _basis(np.asarray(t, dtype=float).tobytes(), degree, samples)
    c = cho_solve_banded((lower, True), B.T @ x)
    return BSpline(knots, c + cho_solve_banded((lower, True), B.T @ (x - B @ c)), degree)


@lru_cache(maxsize=4)                      # a search for the spacing of knots fits two degrees to samples of the same times
def _basis(t_bytes: bytes, degree: int, samples: int) -> tuple[Array, csr_array, Array]:
    """Return knots of least-squares splines, values of B-splines at the samples, and the Cholesky factor of the normal equations.

    The time of SciPy's make_lsq_spline is quadratic in the number of rows; that of banded normal equations is linear. The digits
    that they lose are recovered by a second solution for the residuals.
    """
    from scipy.interpolate import BSpline
    from scipy.linalg import cholesky_banded

    t = np.frombuffer(t_bytes)
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


def low_pass(t: Array, highest: int, samples: int) -> Callable[[Array], Array]:
    """Return a function from samples x (N, n) to coefficients (m, n), m < N, in an orthonormal basis of least-squares splines.

    White noise remains white noise of the same size.
    """
    from scipy.linalg import solve_banded

    degree = degree_for(highest)
    _, B, lower = _basis(np.asarray(t, dtype=float).tobytes(), degree, samples)
    return lambda x: solve_banded((degree, 0), lower, B.T @ x)


def _knots(count: int, degree: int, samples: int) -> range:
    """Return the rows with knots.

    The first and last (degree + 1)/2 steps are one polynomial, as in an interpolating spline. With more knots, derivatives at the
    ends would be much worse, because neighbours are on one side only.
    """
    end = (degree + 1) // 2 * samples
    return range(end, count - end, samples)


def misses(t: Array, x: Array, highest: int, samples: int, units: Sequence[str] | None = None) -> Mask:
    """Return (n,) bool: whether the knots are too far apart for the motion.

    That is so if a least-squares fit leaves a residual larger than the noise of x, and a higher degree does not reduce it.

    units  (n,) units of the columns: the noise of a coordinate is then that of the noisiest one with the same unit
    """
    degree, ends = degree_for(highest), one_sided(len(t), highest, samples)
    residuals = ((_spline(t, x, degree + more, samples)(t) - x)[ends:len(t) - ends] for more in (0, 2))
    lower, higher = (np.sqrt(np.mean(each**2, axis=0)) for each in residuals)
    rounding = _ROUNDING * np.abs(x).max(axis=0)                        # of a coordinate that stands still
    size = noise(t, x)
    if units is not None:
        size = np.array([max(s for s, other_unit in zip(size, units, strict=True) if other_unit == unit) for unit in units])
    missed: Mask = (higher > np.maximum(3.0 * size, rounding)) & (higher > 0.8 * lower)
    return missed


def noise(t: Array, x: Array) -> Array:
    """Return the standard deviation (n,) of the noise in samples x (N, n), from divided differences with weights of unit norm."""
    return _noise(np.asarray(t, dtype=float).tobytes(), np.asarray(x, dtype=float).tobytes(), x.shape[1])


@lru_cache(maxsize=16)                     # a search for the spacing of knots asks 30 times for that of the same samples
def _noise(t_bytes: bytes, x_bytes: bytes, n: int) -> Array:
    t, x = np.frombuffer(t_bytes), np.frombuffer(x_bytes).reshape(-1, n)
    out: Array = np.full(n, np.inf)
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
    out.setflags(write=False)
    return out


def quiet_size(x: Array) -> Array:
    """Return the standard deviations (n,) of normally distributed numbers x (N, n) with outliers."""
    sizes = np.sort(np.abs(x), axis=0)[:max(1, int(_QUIET * len(x)))]
    rms: Array = np.sqrt(np.mean(sizes**2, axis=0))
    return rms / _QUIET_SIZE


def with_noise(t: Array, x: Array, seed: int = 0) -> Array:
    """Return samples x (N, n) with added noise, of the size of their own noise."""
    return x + noise(t, x) * np.random.default_rng(seed).standard_normal(x.shape)


# the manifold ------------------------------------------------------------------------------------------------------
def continued(model: Model, q: Array) -> Array:
    """Return samples q (N, nq) with signs of quaternions such that each is closest to the previous one."""
    q = q.copy()
    for s in model.quaternions.values():
        back = np.einsum("kn,kn->k", q[1:, s], q[:-1, s]) < 0.0
        q[1:, s] *= np.cumprod(np.where(back, -1.0, 1.0))[:, None]
    return q


def of_unit_norm(model: Model, q: Array) -> Array:
    """Return samples q (N, nq) with quaternions scaled to unit norm."""
    q = q.copy()
    for s in model.quaternions.values():
        q[:, s] /= np.linalg.norm(q[:, s], axis=1, keepdims=True)
    return q


def body_velocities(model: Model, q: Array) -> Array:
    """Return v and its derivatives (N, K, nv) from q and its derivatives (N, K + 1, nq).

    Quaternions need not have unit norm.
    """
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


def _times(x: Array, y: Array) -> Array:
    """Return the Taylor coefficients (N, K, 4) of the product of quaternions x y z w with Taylor coefficients x and y."""
    out = np.zeros_like(x)
    for k in range(x.shape[1]):
        for j in range(k + 1):
            a, b = x[:, j], y[:, k - j]
            out[:, k, :3] += a[:, 3:] * b[:, :3] + b[:, 3:] * a[:, :3] + np.cross(a[:, :3], b[:, :3])
            out[:, k, 3] += a[:, 3] * b[:, 3] - np.einsum("kn,kn->k", a[:, :3], b[:, :3])
    return out


def _over(x: Array, size: Array) -> Array:
    """Return the Taylor coefficients of x / size."""
    out = np.empty_like(x)
    for k in range(x.shape[1]):
        out[:, k] = (x[:, k] - sum(size[:, j] * out[:, k - j] for j in range(1, k + 1))) / size[:, 0]
    return out


# errors ------------------------------------------------------------------------------------------------------------
@np.errstate(over="ignore", invalid="ignore")               # errors of huge numbers are reported as 50% or more
def errors(x: Array, variants: Sequence[Array], ends: int) -> tuple[Array, Array, Array]:
    """Return root mean squares of the errors of x (N, K, n), estimated from the differences to `variants`, of the same shape.

    Returns three arrays (K, n): the error without the first and last `ends` rows, the error in these rows, and the size of x
    without these rows and without its largest tenth. The largest tenth is left out because reversals of friction cause pulses in
    derivatives of forces, and any error would be small compared with them.
    """
    square = np.zeros_like(x)
    for variant in variants:
        square = square + (variant - x) ** 2
    inner = slice(ends, len(x) - ends)
    outer = np.concatenate([square[:ends], square[-ends:]])
    common = np.sort(x[inner] ** 2, axis=0)[:max(1, int(_QUIET * (len(x) - 2 * ends)))]
    return np.sqrt(square[inner].mean(axis=0)), np.sqrt(outer.mean(axis=0)), np.sqrt(common.mean(axis=0))


def term_sizes(x: Array, partial: Sequence[Array], ends: int) -> Array:
    """Return the size (n,) of the largest term of each sum x (N, n), as `errors` returns sizes.

    partial  the sums without one of the terms, for each term: the difference is this term, and the sum of the others is another
    """
    parts = [x, *partial, *(x - part for part in partial)]
    sizes: Array = np.max([errors(part[:, None], [], ends)[2][0] for part in parts], axis=0)
    return sizes


def unless_cancelled(size: Array, error: Array, terms: Array) -> Array:
    """Return the sizes (n,) to judge sums with these sizes and errors by: that of the largest term if the terms cancel.

    In free fall, the sum of inertia force and weight is zero but for the errors of both. The errors are part of the size.
    """
    return np.where(size - 2.0 * error < _CANCELLED * terms, np.maximum(size, terms), size)


def sizes_to_judge_by(size: Array, units: Sequence[str]) -> Array:
    """Return the sizes (..., n), raised to at least `_SHARE` of the largest size with the same unit; 1 instead of 0."""
    size, unit_names = size.copy(), np.asarray(units)
    for unit in set(units):
        same = unit_names == unit
        size[..., same] = np.maximum(size[..., same], _SHARE * size[..., same].max(axis=-1, keepdims=True))
    return np.where(size > 0.0, size, 1.0)


# Velocities and accelerations of sampled motions, on the manifold -------------------------------------------------------

# The seven samples around each sample are written in exponential coordinates, q_j = q_k (+) x_j, and a polynomial through them
# is differentiated. At the origin of these coordinates, the first derivative is the velocity and the second one the acceleration
# for every kind of joint, because the terms of dexp vanish there. The order is 6 for v and 5 for a on any grid of times.

POINTS = 7


def derivatives(model: Model, t: Array, q: Array, points: int = POINTS) -> tuple[Array, Array]:
    """Return v and a (N, nv) of samples q (N, nq) at times t (N,), from polynomials through `points` samples."""
    near, first, second = _stencils(t, points)
    v, a = np.zeros((len(t), model.nv)), np.zeros((len(t), model.nv))
    for j in range(near.shape[1]):
        x = difference(model, q, q[near[:, j]])
        v += first[:, j:j + 1] * x
        a += second[:, j:j + 1] * x
    return v, a


def rates(t: Array, v: Array, points: int = POINTS) -> Array:
    """Return the time derivative (N, n) of samples v (N, n)."""
    near, first, _ = _stencils(t, points)
    derivative: Array = np.einsum("kj,kjn->kn", first, v[near] - v[:, None])
    return derivative


def other_points(rows: int) -> int:
    """Return another number of samples per polynomial, for error estimates: two more than usual, or fewer in short motions."""
    return POINTS + 2 if rows >= POINTS + 2 else max(3, min(POINTS, rows) - 2)


def _stencils(t: Array, points: int) -> tuple[Integers, Array, Array]:
    """Return the neighbours (N, p) of each sample, and the weights (N, p) of the first and second derivative."""
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


# Reported errors ---------------------------------------------------------------------------------------------------------

# Velocities and accelerations that are derived from samples have errors. The motion is derived twice more: in another way, and
# with added noise of the same size (`SampledMotion.variants`). The results then differ by about their error.

Motion = TypeVar("Motion")
UNRELIABLE = 0.1                        # error relative to the size of a result: results with a larger one are not reliable
NEGLIGIBLE = 1e-3                       # error relative to the size of a result: smaller ones are information, not a warning
ROUNDING = 1e-9                         # of the characteristic size of a quantity: a smaller one is rounding
_NAMED_COLUMNS = 24                     # maximum number of columns in one message
_CANCELLED = 0.1                        # of its largest term: a sum that is smaller, without its error, is of terms that cancel
_FEWEST = 4                             # minimum number of rows for a second way to derive


@np.errstate(over="ignore", invalid="ignore")               # errors of huge numbers are reported as 50% or more
def error_warnings(result: Array, variants: Sequence[Motion], compute: Callable[[Motion], Array], names: Sequence[str],
                   units: Sequence[str], scales: Array, smoothing: str | None,
                   terms: Callable[[int], Array] | None = None) -> list[LiedynWarning]:
    """Return a warning with the estimated error of the worst column, and one for each cause of columns that are not reliable.

    result        (N, n) results
    variants      motions that were derived in other ways
    compute       function that returns the same results for another motion
    names, units  of the columns
    scales        (n,) characteristic sizes of quantities with these units: smaller results than `ROUNDING` of them are zero
    smoothing     command-line option that smooths, or None
    terms         function that returns the sizes (n,) of the terms whose sum the results are, without the first and last `ends`
                  rows; see `unless_cancelled`

    Returns an empty list if nothing was derived, or if all errors are zero.
    """
    if not variants:
        return []
    if len(result) < _FEWEST:
        return [LiedynWarning("estimated-error",
                              f"{len(result)} rows are not enough to estimate the error of the derived quantities")]
    variant_results = [compute(variant)[:, None] for variant in variants]
    ends = min(POINTS // 2, len(result) // 4)
    inner, outer, size = (x[0] for x in errors(result[:, None], variant_results, ends))
    judged = np.maximum(sizes_to_judge_by(size, units), ROUNDING * scales)
    if terms is not None and (np.maximum(inner, outer) > NEGLIGIBLE * judged).any():
        judged = unless_cancelled(judged, inner, terms(ends))
    if not np.maximum(inner, outer).any():
        return []
    worst = int((inner / judged).argmax())
    figures = [f"{percent(error / of)} ({error:.2g} {unit})" for error, of, unit in zip(inner, judged, units, strict=True)]
    alike = np.array([unit == units[worst] for unit in units])
    top = int(np.where(alike, inner, -1.0).argmax())
    largest = f"; the maximum is {inner[top]:.2g} {units[top]} ({names[top]})" if top != worst else ""
    at_ends = f", {percent((outer / judged).max())} within {ends} rows of the ends" if ends else ""
    warnings = [estimate_warning(f"estimated error of the worst column: {names[worst]} {figures[worst]}{at_ends}{largest}",
                                 inner, outer, judged)]
    by_way, by_noise = (errors(result[:, None], [variant_result], ends)[0][0] for variant_result in variant_results)
    causes: dict[bool, list[str]] = {}
    for k in sorted(map(int, np.flatnonzero(inner > UNRELIABLE * judged)), key=lambda k: -inner[k] / judged[k]):
        causes.setdefault(bool(by_noise[k] > 2.0 * by_way[k]), []).append(f"{names[k]}, error {figures[k]}")
    if causes or not ends:
        return [*warnings, *(LiedynWarning(
            "not-reliable", f"NOT RELIABLE: {named_first(columns)}: {remedy(noisy, 'rows', smoothing)}")
            for noisy, columns in causes.items())]
    columns = [f"{names[k]}, error {percent(outer[k] / judged[k])} ({outer[k]:.2g} {units[k]})"
               for k in sorted(map(int, np.flatnonzero(outer > UNRELIABLE * judged)), key=lambda k: -outer[k] / judged[k])]
    return warnings + ends_warnings(ends, columns)


def estimate_warning(text: str, inner: Array, outer: Array, judged: Array) -> LiedynWarning:
    """Return a warning with estimated errors, or information if none is above `NEGLIGIBLE` of its size."""
    if (np.maximum(inner, outer) > NEGLIGIBLE * judged).any():
        return LiedynWarning("estimated-error", text)
    return LiedynWarning("negligible-error", text)


def ends_warnings(ends: int, columns: Sequence[str]) -> list[LiedynWarning]:
    """Return a warning about columns that are not reliable in `ends` rows at each end, if there are any."""
    if not columns:
        return []
    return [LiedynWarning("not-reliable",
                          f"NOT RELIABLE within {ends} rows of the ends: {named_first(columns)}: derivatives there use rows on "
                          "one side only; omit these rows of the result, or record a longer motion")]


def named_first(columns: Sequence[str]) -> str:
    """Return the texts of the worst columns, joined, with the number of those left out."""
    return list_names(columns, _NAMED_COLUMNS, "; ")


def remedy(noisy: bool, between: str, smoothing: str | None) -> str:
    """Return the probable cause of an error and its remedy.

    noisy    whether noise is the cause
    between  "rows" or "knots", which may be too far apart
    """
    if noisy:
        smooths = f"use {smoothing}, or " if smoothing else ""
        return (f"the noise of the rows is amplified, or the rows are too far apart; {smooths}give measured "
                "derivatives as columns")
    return f"no spline fits the motion: it hardly moves, has kinks, or the {between} are too far apart"


def percent(x: float) -> str:
    """Return a relative error as text, without a number from 50% on: then the size of the true value is unknown."""
    return f"{100 * x:.2g}%" if x < 0.5 else "50% or more"
