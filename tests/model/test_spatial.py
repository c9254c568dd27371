"""Exponential and right Jacobian of rotation vectors in NumPy, from no turn to several: 50-digit references."""
import mpmath as mp
import numpy as np
import pytest

from liedyn.model.links import Pose
from liedyn.model.spatial import angle_functions, exp3, inverse, pose, right_jacobian

ANGLES = [0.0, 1e-200, 1e-12, 1e-8, 1e-4, 0.03, 0.099, 0.101, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 2.0, 3.1, np.pi - 1e-8, np.pi,
          np.pi + 1e-8, 4.5, 6.2]
AXIS = np.array([0.6, -0.48, 0.64])
EPS = np.finfo(float).eps


def series(tt, first, derivative=False):
    """Return sum_k (-tt)^k / (2k + first)!, or its derivative with respect to tt."""
    return mp.fsum((-1)**k * (k * tt**(k - 1) if derivative else tt**k) / mp.factorial(2 * k + first)
                   for k in range(int(derivative), 80))


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


@pytest.mark.parametrize("angle", ANGLES)
def test_angle_functions_keep_their_digits(angle, worst):
    """Relative to the function itself up to half a turn, beyond to its largest value; the first has a zero there."""
    tt = angle * angle
    found = angle_functions(np.array(tt))
    expected = [series(mp.mpf(tt), 1), series(mp.mpf(tt), 2), series(mp.mpf(tt), 3), series(mp.mpf(tt), 2, True),
                series(mp.mpf(tt), 3, True)]
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        size = 1.0 if k == 0 else abs(float(y)) if angle < 3.2 else max(abs(float(y)), 1e-2)
        assert worst("angle functions", float(abs(mp.mpf(float(x)) - y)) / size) < 20 * EPS


def hat(x):
    return mp.matrix([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def reference(x):
    """exp [x] and its right Jacobian, both by their series, whose terms fall by 50 digits before the last."""
    H = hat([mp.mpf(float(one)) for one in x])
    term, R, J = mp.eye(3), mp.zeros(3), mp.zeros(3)
    for k in range(80):
        R, J = R + term, J + (-1)**k * term / (k + 1)
        term = term * H / (k + 1)
    return tuple(np.array(A.tolist(), dtype=float) for A in (R, J))


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_and_right_jacobian(angle, worst):
    x = angle * AXIS
    R, J = reference(x)
    assert worst("exp3", np.abs(exp3(x) - R).max()) < 8 * EPS
    assert worst("right Jacobian", np.abs(right_jacobian(x) - J).max()) < 8 * EPS
    if angle < 1e-7:                                             # the digits of the turn, too; to the first order R is 1 + [x]
        np.testing.assert_allclose(exp3(x) - np.eye(3), R - np.eye(3), rtol=8 * EPS, atol=4 * EPS * angle + angle**2)


def test_batches_are_their_members():
    x = np.multiply.outer(ANGLES, AXIS).reshape(-1, 1, 3)
    for function in exp3, right_jacobian:
        np.testing.assert_array_equal(function(x)[:, 0], [function(one[0]) for one in x])


def test_poses_of_descriptions_come_back():
    given = Pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, np.pi, -1.0))
    assert Pose.from_matrix(pose(given)) == given
    turned = Pose.from_matrix(inverse(pose(Pose())))
    assert turned == Pose() and all(np.copysign(1.0, turned.translation) == 1.0)          # no negative zeros
