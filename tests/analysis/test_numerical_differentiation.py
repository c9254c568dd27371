"""Derivatives of sampled motions against motions known exactly, and their estimated errors against the true ones."""
import itertools
import math
from math import comb

import mpmath
import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline

import liedyn as ld
from liedyn.analysis.numerical_differentiation import (
    SmoothingFit,
    body_velocities,
    check_rows,
    continued,
    degree_for,
    derivatives,
    errors,
    has_rows,
    low_pass,
    misses,
    noise,
    one_sided,
    sizes_to_judge_by,
    spline_derivatives,
)
from liedyn.errors import TrajectoryError
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link

LINK = {"mass": 1.0, "inertia": (0.1, 0.0, 0.0, 0.2, 0.0, 0.3)}


@pytest.fixture(scope="module")
def model():
    """A free base, a ball joint and a hinge: q = [p, quaternion, quaternion, angle]."""
    links = (Link("trunk", **LINK), Link("arm", **LINK), Link("hand", **LINK))
    joints = (Joint("shoulder", "ball", "trunk", "arm"), Joint("elbow", "revolute", "arm", "hand", axes=((0.0, 1.0, 0.0),)))
    return ld.build(Robot("acrobat", links, joints, base="floating"))


def angles(t, sin, cos):
    """Turning about z, then about x; a path; an angle."""
    return sin(t), 0.8 * cos(1.3 * t), 0.5 * sin(2 * t), cos(t), 0.3 * t, 0.4 * sin(1.7 * t)


def rotation(a, b, sin, cos):
    return [[cos(a), -sin(a) * cos(b), sin(a) * sin(b)], [sin(a), cos(a) * cos(b), -cos(a) * sin(b)], [0, sin(b), cos(b)]]


def sampled(t):
    """q (N, 12), quaternions of either sign."""
    a, b, x, y, z, c = angles(t, np.sin, np.cos)
    quaternion = np.stack([np.cos(a / 2) * np.sin(b / 2), np.sin(a / 2) * np.sin(b / 2), np.sin(a / 2) * np.cos(b / 2),
                           np.cos(a / 2) * np.cos(b / 2)], axis=1)
    signs = np.where(np.arange(len(t)) % 3 == 0, -1.0, 1.0)[:, None]
    return np.column_stack([x, y, z, quaternion, signs * quaternion, c])


def exact(t, highest):
    """v and its derivatives (highest, 10) at the time t: R^T dR/dt and R^T dp/dt with 30 digits, from matrices."""
    with mpmath.workdps(30):
        def pose(s):
            a, b, x, y, z, c = angles(s, mpmath.sin, mpmath.cos)
            return [*itertools.chain(*rotation(a, b, mpmath.sin, mpmath.cos)), x, y, z, c]
        rates = [np.array([mpmath.diff(lambda s, n=n: pose(s)[n], t, k) for n in range(13)]) for k in range(highest + 1)]
        R, p, c = [x[:9].reshape(3, 3) for x in rates], [x[9:12] for x in rates], [x[12] for x in rates]
        out = []
        for k in range(highest):
            W = sum(comb(k, j) * R[j].T @ R[k - j + 1] for j in range(k + 1))
            w = [W[2, 1], W[0, 2], W[1, 0]]
            out.append([*w, *sum(comb(k, j) * R[j].T @ p[k - j + 1] for j in range(k + 1)), *w, c[k + 1]])
        return np.array(out, dtype=float)


def test_derivatives_of_free_and_ball_joints(model):
    """They converge as splines of degree 11 do, on a grid that is not even, for v and its first four derivatives."""
    errors = []
    for step in (0.2, 0.1):
        t = np.arange(0, 6, step) + 0.05 * np.sin(np.arange(0, 6, step))
        v = body_velocities(model, spline_derivatives(t, continued(model, sampled(t)), 5, SmoothingFit()))
        k = len(t) // 2
        errors.append(np.abs(v[k] - exact(t[k], 5)).max(axis=1))
    assert (errors[0] < [1e-8, 1e-7, 1e-6, 1e-5, 1e-3]).all(), errors
    assert (np.log2(errors[0] / errors[1]) > [8, 8, 7, 6, 5]).all(), errors


def test_products_of_series_are_exact(model):
    """The twist's derivatives do not hang on how long the quaternions are, nor on their lengths' rates."""
    t, highest = 0.7, 6
    with mpmath.workdps(30):
        def q(s, length):
            a, b, x, y, z, c = angles(s, mpmath.sin, mpmath.cos)
            S, C = mpmath.sin, mpmath.cos
            u = [C(a / 2) * S(b / 2), S(a / 2) * S(b / 2), S(a / 2) * C(b / 2), C(a / 2) * C(b / 2)]
            return [x, y, z, *[length(s) * e for e in u], *u, c]
        for length in (lambda s: 1, lambda s: 2 + mpmath.sin(3 * s)):
            rates = np.array([[float(mpmath.diff(lambda s, n=n, f=length: q(s, f)[n], t, k)) for n in range(12)]
                              for k in range(highest + 1)])
            found, expected = body_velocities(model, rates[None])[0], exact(t, highest)
            assert (np.abs(found - expected).max(axis=1) < 1e-12 * np.abs(expected).max(axis=1)).all()


def test_the_spline_does_not_hang_on_the_axes(model):
    """Turned samples, in the world or in the body, give the turned spline, to rounding."""
    t = np.arange(0, 3, 0.15)
    q = sampled(t)
    x, y, z, w = 0.5, -0.1, 0.7, math.sqrt(1 - 0.75)
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    right = np.array([[w, z, -y, x], [-z, w, x, y], [y, -x, w, z], [-x, -y, -z, w]])
    C = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                  [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                  [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
    first, second = q.copy(), q.copy()
    first[:, 7:11] = q[:, 7:11] @ left.T
    second[:, 7:11] = q[:, 7:11] @ right.T
    plain, world, body = (body_velocities(model, spline_derivatives(t, continued(model, each), 4, SmoothingFit()))[:, :, 6:9]
                          for each in (q, first, second))
    size = np.abs(plain).max(axis=(0, 2))[:, None]
    assert (np.abs(world - plain) < 1e-9 * size).all()
    assert (np.abs(body - plain @ C) < 1e-9 * size).all() and np.abs(body - plain).max() > 0.1


def test_velocities_agree_with_those_of_polynomials_in_charts(model):
    """The way of order 0, which knows nothing of quaternions."""
    t = np.arange(0, 2, 0.02)
    v = body_velocities(model, spline_derivatives(t, continued(model, sampled(t)), 2, SmoothingFit()))
    first, second = derivatives(model, t, sampled(t))
    assert np.abs(v[10:-10, 0] - first[10:-10]).max() < 1e-8 and np.abs(v[10:-10, 1] - second[10:-10]).max() < 1e-5


# errors ------------------------------------------------------------------------------------------------------------
def waves(t, k):
    """k-th derivatives (N, 3) of three sums of sines."""
    w = np.array([[0.7, 1.0, 1.3], [0.5, 0.9, 1.1], [0.8, 1.2, 1.25]])
    return (w**k * np.sin(w * t[:, None, None] + np.arange(3) + k * np.pi / 2)).sum(axis=2)


def estimated_and_true(t, x, highest, samples, truth):
    """Errors of derivative `highest`, within and at the ends: (2, 3) each."""
    found, *others = (spline_derivatives(t, x, highest, fit)[:, highest:]
                      for fit in (SmoothingFit(samples), *SmoothingFit(samples).checks()))
    ends = one_sided(len(t), highest, samples)
    return np.array(errors(found, others, ends)[:2])[:, 0], np.array(errors(found, [truth[:, None]], ends)[:2])[:, 0]


@pytest.mark.parametrize("samples, step", [(1, 0.05), (1, 0.1), (1, 0.2), (6, 0.05), (6, 0.1)])
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("highest", [1, 2, 4, 6])
def test_the_estimated_error_is_the_true_one(highest, step, size, samples):
    """Within a factor of four inside the motion, whether the spline or the noise is at fault; at the ends, which hang on a few
    samples, never below a fifth of it."""
    t = np.arange(600) * step
    x = waves(t, 0) + size * np.random.default_rng(3).standard_normal((len(t), 3))
    estimated, true = estimated_and_true(t, x, highest, samples, waves(t, highest))
    assert (estimated[0] < 4 * true[0]).all() and (estimated[0] > true[0] / 4).all(), estimated[0] / true[0]
    assert (estimated[1] > true[1] / 5).all(), estimated[1] / true[1]
    assert not misses(t, x, highest, samples).any()


def test_the_estimated_error_of_rounded_and_uneven_samples():
    """Six digits in a file, and clocks that shake."""
    t = np.arange(500) * 0.02
    t = t + 0.004 * np.random.default_rng(1).uniform(-1, 1, len(t))
    estimated, true = estimated_and_true(t, np.round(waves(t, 0), 6), 3, 1, waves(t, 3))
    assert (estimated[0] < 4 * true[0]).all() and (estimated[0] > true[0] / 4).all(), estimated[0] / true[0]


def test_noise_is_measured_whatever_the_motion():
    t = np.arange(400) * 0.03
    for size in (1e-8, 1e-4, 1e-2):
        x = waves(t, 0) + size * np.random.default_rng(5).standard_normal((len(t), 3))
        assert np.abs(np.log(noise(t, x) / size)).max() < math.log(1.4)
    assert (noise(t, np.full((400, 2), 3.3)) < 1e-15).all()
    assert (noise(t, waves(t, 0)) < 1e-14).all()


def test_smoothing_makes_less_noise_and_knots_too_far_apart_are_seen():
    t = np.arange(800) * 0.01
    x = waves(t, 0) + 1e-4 * np.random.default_rng(2).standard_normal((len(t), 3))
    inner = slice(200, -200)
    rough, smooth = (np.abs(spline_derivatives(t, x, 3, SmoothingFit(n))[inner, 3] - waves(t, 3)[inner]).max() for n in (1, 60))
    assert smooth < 0.1 < 10 < rough
    assert misses(np.arange(800) * 0.2, waves(np.arange(800) * 0.2, 0), 3, 60).all()


def test_rows_that_are_too_few():
    assert degree_for(4) == 9
    t = np.arange(11.0)
    with pytest.raises(TrajectoryError, match=r"not enough for derivatives of order 4 with a spline of degree 9; at least "
                                              r"12"):
        spline_derivatives(t, t[:, None], 4, SmoothingFit())
    with pytest.raises(TrajectoryError, match="degree 9 and a knot every 3 rows; at least 12 are needed"):
        check_rows(t, 4, 3)
    assert has_rows(12, 4, 3) and not has_rows(11, 4, 3)
    with pytest.raises(TrajectoryError, match="derivatives of order 21 cannot be computed from samples"):
        check_rows(np.arange(1000.0), 21, 1)


def test_times_that_no_spline_stands():
    t = np.arange(40) * 0.1
    t[21] = t[20] + 1e-12
    with pytest.raises(TrajectoryError, match=r"the row at t = 2\.0 s and the next are too close.*got '1e-12 s'"):
        spline_derivatives(t, t[:, None], 4, SmoothingFit())
    with pytest.raises(TrajectoryError, match="derivative 4 overflows: check whether the times are in seconds"):
        spline_derivatives(np.arange(40) * 1e-100, np.sin(np.arange(40.0))[:, None], 4, SmoothingFit())


def test_least_squares_that_times_do_not_allow():
    t = np.cumsum(10.0 ** np.random.default_rng(0).uniform(-8, 0, 200))
    with pytest.raises(TrajectoryError, match="no spline of degree 21 with a knot every 2 rows can be computed for these times"):
        spline_derivatives(t, np.sin(t)[:, None], 16, SmoothingFit(2))


def test_least_squares_are_those_of_scipy():
    """Its own solution is by orthogonal factors, in a time that grows with the rows squared."""
    t = np.arange(300) * 0.02
    x = waves(t, 0) + 1e-3 * np.random.default_rng(1).standard_normal((300, 3))
    inner = t[25:275:5]
    knots = np.concatenate([np.full(10, t[0]), inner, np.full(10, t[-1])])
    expected = make_lsq_spline(t, x, knots, k=9)
    found = spline_derivatives(t, x, 4, SmoothingFit(5))
    for k in range(5):
        assert np.allclose(found[:, k], expected(t, nu=k), rtol=0, atol=1e-9 * np.abs(expected(t, nu=k)).max())


@pytest.mark.parametrize("highest", [1, 4, 9])
@pytest.mark.parametrize("samples", [1, 2, 3, 7])
def test_the_least_rows_are_enough(highest, samples):
    count = next(n for n in range(100) if has_rows(n, highest, samples))
    t = np.arange(float(count)) ** 1.1
    for fit in (SmoothingFit(samples), *SmoothingFit(samples).checks()):
        assert np.isfinite(spline_derivatives(t, np.sin(t / 9)[:, None], highest, fit)).all()


def test_sizes_of_errors_within_and_at_the_ends():
    x = np.broadcast_to([3.0, 2.0, 0.0], (40, 1, 3))
    inner, outer, size = errors(x, [x + 0.03, x - 0.04], 3)
    assert np.allclose(inner, 0.05) and np.allclose(outer, 0.05) and np.allclose(size, [3.0, 2.0, 0.0])
    late = x.copy()
    late[-1] += 1.0
    inner, outer, size = errors(late, [x], 3)
    assert (inner == 0).all() and np.allclose(outer, 1 / math.sqrt(6)) and np.allclose(size, [3.0, 2.0, 0.0])


def test_what_hardly_moves_is_judged_by_others_of_its_unit():
    judged = sizes_to_judge_by(np.array([[100.0, 2.0, 1e-9, 0.0, 1e-9]]), ["rad", "rad", "rad", "m", "N"])
    assert np.allclose(judged, [[100.0, 2.0, 0.1, 1.0, 1e-9]], atol=0)


@pytest.mark.parametrize("samples", [2, 5, 20])
def test_the_low_pass_keeps_splines_whole_and_noise_white(samples):
    """Coefficients in an orthonormal basis: no noise is correlated or magnified, and what the splines can follow loses nothing.

    1e-9: the normal equations of B-splines of degree 7 have a condition of some 1e6."""
    t = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 300)) * 0.01
    F = low_pass(t, 2, samples)(np.eye(300))
    assert F.shape[0] < 300 and np.allclose(F @ F.T, np.eye(len(F)), rtol=0, atol=1e-9)
    smooth = spline_derivatives(t, np.sin(3 * t)[:, None], 2, SmoothingFit(samples))[:, 0]
    assert np.linalg.norm(F @ smooth) == pytest.approx(np.linalg.norm(smooth), rel=1e-9)
