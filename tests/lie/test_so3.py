"""SO(3) for both numbers, against power series in forty digits and SciPy's rotations."""
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.spatial.transform import Rotation

from compiled import KINDS, evaluate, probe
from exact import ANGLES, BEYOND_HALF_A_TURN, error, exact, series, solve
from liedyn.lie.simd import load, store
from liedyn.lie.so3 import (
    angle_functions,
    dexp3,
    dexp_inv3,
    exp3,
    half_cot,
    log3,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_product,
    quaternion_rotation,
    quaternion_unit,
    rotation_quaternion,
)
from liedyn.lie.vectors import load3, load9, neg3, store3, store9
from matrices import random_rotations, skew


def vectors(angles, seed=0, each=3):
    """Rotation vectors of these lengths: along axes, along an axis with a tiny part of another, and at random."""
    rng = np.random.default_rng(seed)
    axes = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 1e-9, -1e-9], *rng.standard_normal((each, 3))])
    return np.array([angle * u / np.linalg.norm(u) for angle in angles for u in axes])


SMALL, ANY = vectors(ANGLES), vectors((*ANGLES, *BEYOND_HALF_A_TURN))


@probe
def store4(y, o, u):
    store3(y, o, (u[0], u[1], u[2]))
    store(y, o + 3, u[3])


@probe
def load4(x, o):
    return load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3)


@probe
def exponentials(x, y):
    w, v = load3(x, 0), load3(x, 3)
    store9(y, 0, exp3(w))
    store4(y, 9, quaternion_exp(w))
    store3(y, 13, dexp3(w, v))
    store3(y, 16, dexp3(neg3(w), v))
    store3(y, 19, dexp_inv3(w, v))
    store3(y, 22, dexp_inv3(neg3(w), v))
    store3(y, 25, dexp_inv3(w, dexp3(w, v)))
    store3(y, 28, log3(exp3(w)))
    store3(y, 31, quaternion_log(quaternion_exp(w)))
    store9(y, 34, quaternion_rotation(quaternion_exp(w)))
    store4(y, 43, rotation_quaternion(exp3(w)))


@probe
def logarithm(x, y):
    R = load9(x, 0)
    store3(y, 0, log3(R))
    store4(y, 3, rotation_quaternion(R))


@probe
def quaternions(x, y):
    u, r = load4(x, 0), load4(x, 4)
    store4(y, 0, quaternion_product(u, r))
    store4(y, 4, quaternion_conjugate(u))
    store4(y, 8, quaternion_unit((3.0 * u[0], 3.0 * u[1], 3.0 * u[2], 3.0 * u[3])))
    store9(y, 12, quaternion_rotation(u))
    store3(y, 21, quaternion_log(u))


@probe
def functions_of_the_angle(x, y):
    a, b, c = angle_functions(load(x, 0))
    d, e = half_cot(load(x, 0))
    store(y, 0, a)
    store(y, 1, b)
    store(y, 2, c)
    store(y, 3, d)
    store(y, 4, e)


def outputs(w, kind, seed=0):
    """The row of `exponentials` for each w, with the vectors that the Jacobians act on."""
    v = np.random.default_rng(seed).uniform(-1, 1, (len(w), 3))
    return v, evaluate(exponentials, np.hstack([w, v]), 47, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_the_angle(kind, worst):
    """Measured against forty digits: sinc and its kin 1.7e-16 at any angle; (t/2) cot(t/2) and its kin 4e-16 up to 3.1."""
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(0, 1.2, 300), rng.uniform(1, 7, 300), [20, 1e3, 9e4], ANGLES[3:], BEYOND_HALF_A_TURN])
    for tt, row in zip(t * t, evaluate(functions_of_the_angle, (t * t)[:, None], 5, kind), strict=True):
        x = mpf(float(tt))
        r = mp.sqrt(x)
        kin = [mp.sin(r) / r, (1 - mp.cos(r)) / x, (r - mp.sin(r)) / (x * r)]
        assert worst("sin t/t and its kin", error(row[:3], kin)) < 2e-16
        if r < 3.1:
            g = r / 2 * mp.cot(r / 2)
            assert error(row[3:], [g, (1 - g) / x]) < 5e-16
    at_zero = evaluate(functions_of_the_angle, [[0.0]], 5, kind)[0]
    np.testing.assert_array_equal(at_zero, [1, 1 / 2, 1 / 6, 1, 1 / 12])


@pytest.mark.parametrize("kind", KINDS)
def test_exp_against_the_series(kind, worst):
    """Measured 5.9e-16 up to an angle of 6."""
    for w, row in zip(ANY, outputs(ANY, kind)[1], strict=True):
        assert worst("exp of SO(3)", error(row[:9], series(skew(w), 0))) < 1e-15
        assert error(row[34:43], series(skew(w), 0)) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_large_angles_stay_rotations(kind):
    """A thousand turns: the error of the angle itself, 1e-16 of it, is not ours to mend."""
    w = vectors((10.0, 100.0, 6000.0), seed=3)
    row = outputs(w, kind)[1]
    np.testing.assert_allclose(row[:, :9].reshape(-1, 3, 3), Rotation.from_rotvec(w).as_matrix(), atol=2e-12)
    R = row[:, :9].reshape(-1, 3, 3)
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), R.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(row[:, 9:13], axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_quaternion_exp_against_the_series(kind, worst):
    """The quaternion of w is the exponential of w/2 as a pure quaternion. Measured 3e-16; unit norm to 4e-16."""
    row = outputs(ANY, kind)[1][:, 9:13]
    for w, u in zip(ANY, row, strict=True):
        x, y, z = 0.5 * w
        L = np.array([[0, -z, y, x], [z, 0, -x, y], [-y, x, 0, z], [-x, -y, -z, 0.0]])     # left product, on x y z w
        assert worst("exp to quaternions", error(u, series(L, 0)[:, 3])) < 5e-16
    np.testing.assert_allclose((row**2).sum(1), 1, rtol=0, atol=6e-16)


@pytest.mark.parametrize("kind", KINDS)
def test_log_undoes_exp_below_half_a_turn(kind, worst):
    """To 3e-16 of the angle, through the quaternion or through the rotation."""
    row = outputs(SMALL, kind)[1]
    size = np.linalg.norm(SMALL, axis=1, keepdims=True) + 1e-300
    assert (abs(row[:, 31:34] - SMALL) / size).max() < 1e-15
    assert worst("log of SO(3), relative", (abs(row[:, 28:31] - SMALL) / np.maximum(size, 1e-300)).max()) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_exp_undoes_log_at_any_rotation(kind):
    """Also at half a turn, where the axis is found except for its sign, and near it. |w| <= pi."""
    R = np.vstack([Rotation.from_rotvec(ANY).as_matrix(), random_rotations(np.random.default_rng(0), 500),
                   [np.diag(d) for d in ([1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1])]])
    row = evaluate(logarithm, R.reshape(-1, 9), 7, kind)
    np.testing.assert_allclose(Rotation.from_rotvec(row[:, :3]).as_matrix(), R, atol=2e-15)
    assert np.linalg.norm(row[:, :3], axis=1).max() <= np.pi * (1 + 2e-16)
    np.testing.assert_allclose(Rotation.from_quat(row[:, 3:]).as_matrix(), R, atol=2e-15)
    np.testing.assert_allclose((row[:, 3:]**2).sum(1), 1, rtol=0, atol=6e-16)


@pytest.mark.parametrize("kind", KINDS)
def test_log_of_half_a_turn_about_each_axis(kind):
    """The sign of the axis is a matter of rounding: both are right."""
    u = vectors((1.0,), each=50)
    R = 2 * u[:, :, None] * u[:, None] - np.eye(3)
    w = evaluate(logarithm, R.reshape(-1, 9), 7, kind)[:, :3]
    np.testing.assert_allclose(abs(w @ u[..., None]).max(), np.pi, rtol=1e-15)
    np.testing.assert_allclose(np.cross(w, u), 0, atol=2e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_jacobians_of_exp_against_the_series(kind, worst):
    """Left and right. Measured 2.9e-16 for vectors of about 1."""
    v, row = outputs(ANY, kind)
    for w, x, y in zip(ANY, v, row, strict=True):
        assert worst("Jacobian of exp of SO(3)", error(y[13:16], series(skew(w), 1).dot(exact(x)))) < 1e-15
        assert error(y[16:19], series(-skew(w), 1).dot(exact(x))) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_jacobians_of_exp(kind):
    """Against the inverse in forty digits: 2e-15 up to half a turn; it grows towards the pole at a full turn."""
    v, row = outputs(ANY, kind)
    for w, x, y in zip(ANY, v, row, strict=True):
        bound = 2e-15 / (1 - np.linalg.norm(w) / (2 * np.pi))**2
        for sign, part in ((1, y[19:22]), (-1, y[22:25])):
            assert error(part, solve(series(sign * skew(w), 1), x)) < bound
        np.testing.assert_allclose(y[25:28], x, atol=bound)


@pytest.mark.parametrize("kind", KINDS)
def test_quaternions_against_scipy(kind):
    rng = np.random.default_rng(5)
    u, r = (Rotation.from_matrix(random_rotations(rng, 200)) for _ in range(2))
    row = evaluate(quaternions, np.hstack([u.as_quat(), r.as_quat()]), 24, kind)
    np.testing.assert_allclose(row[:, 12:21].reshape(-1, 3, 3), u.as_matrix(), atol=1e-15)
    np.testing.assert_allclose(Rotation.from_quat(row[:, :4]).as_matrix(), (u * r).as_matrix(), atol=2e-15)
    np.testing.assert_allclose(Rotation.from_quat(row[:, 4:8]).as_matrix(), u.inv().as_matrix(), atol=1e-15)
    np.testing.assert_allclose(row[:, 8:12], u.as_quat(), atol=4e-16)
    np.testing.assert_allclose(Rotation.from_rotvec(row[:, 21:]).as_matrix(), u.as_matrix(), atol=2e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_log_of_a_quaternion_and_of_its_negative_is_the_same(kind):
    u = Rotation.from_matrix(random_rotations(np.random.default_rng(6), 200)).as_quat()
    plus, minus = (evaluate(quaternions, np.hstack([x, x]), 24, kind)[:, 21:] for x in (u, -u))
    np.testing.assert_array_equal(plus, minus)
    zero = evaluate(quaternions, [[0, 0, 0, 1.0] * 2, [0, 0, 0, -1.0] * 2], 24, kind)[:, 21:]
    np.testing.assert_array_equal(abs(zero), 0)
