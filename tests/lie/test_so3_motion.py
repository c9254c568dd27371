"""Angular velocity and acceleration of rotations in coordinates, against the exponential of series."""
import numpy as np
import pytest
from scipy.linalg import expm

from liedyn.codegen.trace import traced_module

motion = traced_module("lie.so3")


def hat(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def turn_series(x, dx, ddx):
    """R, R', R'' of exp x(t): the exponential over numbers c0 + c1 e + c2 e^2, as block triangular matrices."""
    X = np.kron(np.eye(3), hat(x)) + np.kron(np.eye(3, k=1), hat(dx)) + np.kron(np.eye(3, k=2), hat(ddx) / 2)
    E = expm(X)
    return E[:3, :3], E[:3, 3:6], 2 * E[:3, 6:]


def product_series(a, b):
    return a[0] @ b[0], a[1] @ b[0] + a[0] @ b[1], a[2] @ b[0] + 2 * a[1] @ b[1] + a[0] @ b[2]


def rates(R, dR, ddR):
    w, dw = R.T @ dR, dR.T @ dR + R.T @ ddR
    return [np.array([X[2, 1], X[0, 2], X[1, 0]]) for X in (w, dw)]


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.5, 0.999, 1.001, 2.0, 3.1, 5.0])
def test_rotation_vector(size, worst):
    rng = np.random.default_rng(3)
    for _ in range(5):
        x, dx, ddx = rng.standard_normal((3, 3))
        x *= size / np.linalg.norm(x)
        found = motion.rotation_vector_motion(tuple(x), tuple(dx), tuple(ddx))
        expected = rates(*turn_series(x, dx, ddx))
        assert worst("rate of a rotation vector", np.abs(np.array(found) - expected).max(), f"{size:g}") < 1e-13


def test_roll_pitch_yaw(worst):
    rng = np.random.default_rng(4)
    for _ in range(10):
        x, dx, ddx = 2 * rng.standard_normal((3, 3))
        R, w, dw = motion.rpy_motion(tuple(x), tuple(dx), tuple(ddx))
        z, y, x_ = (turn_series(*(one[k] * np.eye(3)[k] for one in (x, dx, ddx))) for k in (2, 1, 0))
        series = product_series(product_series(z, y), x_)
        assert worst("rate of angles", np.abs(np.array([w, dw]) - rates(*series)).max()) < 1e-13
        np.testing.assert_allclose(np.reshape(R, (3, 3)), series[0], atol=1e-14)
        u = motion.rpy_quaternion(tuple(x))
        np.testing.assert_allclose(np.reshape(traced_module("lie.so3").quaternion_rotation(u), (3, 3)), series[0], atol=1e-14)
