"""SE(3) for both numbers: products of matrices, power series in forty digits, and the identities of the algebra."""
import numpy as np
import pytest

from compiled import KINDS, evaluate, probe
from exact import ANGLES, BEYOND_HALF_A_TURN, error, exact, series, solve
from liedyn.lie import se3
from liedyn.lie.simd import load, store
from liedyn.lie.vectors import load_pose, load_twist, store_pose, store_twist
from matrices import adjoint, bracket, hat, inverse, pose, random_rotations
from matrices import exp as matrix_exp


def twists(angles, size=1.0, seed=0):
    """Twists that turn by these angles, about an axis and about random directions, with translations of about `size`."""
    rng = np.random.default_rng(seed)
    axes = np.array([[0, 0, 1.0], [1, 1e-9, 0], *rng.standard_normal((3, 3))])
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return np.array([[*(angle * u), *(size * rng.standard_normal(3))] for angle in angles for u in axes])


def random_poses(n, seed=0):
    rng = np.random.default_rng(seed)
    return [pose(R, p) for R, p in zip(random_rotations(rng, n), rng.standard_normal((n, 3)), strict=True)]


def flat(poses):
    return np.array([[*T[:3, :3].ravel(), *T[:3, 3]] for T in poses])


def full(rows):
    return np.array([pose(row[:9], row[9:]) for row in rows])


@probe
def of_poses(x, y):
    """Two poses, two twists, two wrenches."""
    T, U = load_pose(x, 0), load_pose(x, 1)
    V, W, F = load_twist(x, 4), load_twist(x, 5), load_twist(x, 6)
    store_pose(y, 0, se3.compose(T, U))
    store_pose(y, 1, se3.inverse(T))
    store_twist(y, 4, se3.Ad(T, V))
    store_twist(y, 5, se3.Ad_inv(T, V))
    store_twist(y, 6, se3.dAd(T, F))
    store_twist(y, 7, se3.dAd_inv(T, F))
    store_twist(y, 8, se3.ad(V, W))
    store_twist(y, 9, se3.neg_dad(V, F))
    store_twist(y, 10, se3.add(V, W))
    store_twist(y, 11, se3.sub(V, W))
    store_twist(y, 12, se3.neg(V))
    store_twist(y, 13, se3.scale(load(x, 24), W))
    store(y, 84, se3.dot(F, V))
    store_twist(y[85:], 0, se3.add_ad(F, V, W))
    store_twist(y[85:], 1, se3.sub_dad(W, V, F))


@probe
def exponentials(x, y):
    X, V = load_twist(x, 0), load_twist(x, 1)
    store_pose(y, 0, se3.exp(X))
    store_twist(y, 2, se3.log(se3.exp(X)))
    store_twist(y, 3, se3.dexp(X, V))
    store_twist(y, 4, se3.dexp(se3.neg(X), V))
    store_twist(y, 5, se3.dexp_inv(X, V))
    store_twist(y, 6, se3.dexp_inv(se3.neg(X), V))
    store_twist(y, 7, se3.dexp_inv(X, se3.dexp(X, V)))


@probe
def logarithm(x, y):
    store_twist(y, 0, se3.log(load_pose(x, 0)))


@pytest.mark.parametrize("kind", KINDS)
def test_poses_twists_and_wrenches_against_matrices(kind):
    """Checks: K1 (4), (6)-(8), (11), (13), (27)-(29); PBP (1)-(7)."""
    poses, others = random_poses(100), random_poses(100, seed=1)
    x = np.random.default_rng(2).standard_normal((100, 18))
    V, W, F = x[:, :6], x[:, 6:12], x[:, 12:]
    y = evaluate(of_poses, np.hstack([flat(poses), flat(others), x]), 97, kind)
    close = lambda value, reference: np.testing.assert_allclose(value, reference, atol=5e-15, rtol=0)    # noqa: E731
    close(full(y[:, :12]), [T @ U for T, U in zip(poses, others, strict=True)])
    close(full(y[:, 12:24]), [inverse(T) for T in poses])
    for k, T in enumerate(poses):
        Ad = adjoint(T)
        close(y[k, 24:30], Ad @ V[k])
        close(y[k, 30:36], inverse(Ad) @ V[k])
        close(y[k, 36:42], Ad.T @ F[k])
        close(y[k, 42:48], inverse(Ad).T @ F[k])
        close(y[k, 48:54], bracket(V[k]) @ W[k])
        close(hat(y[k, 48:54]), hat(V[k]) @ hat(W[k]) - hat(W[k]) @ hat(V[k]))
        close(y[k, 54:60], -bracket(V[k]).T @ F[k])
        close(y[k, 85:91], F[k] + bracket(V[k]) @ W[k])
        close(y[k, 91:97], W[k] - bracket(V[k]).T @ F[k])
    close(y[:, 60:66], V + W)
    close(y[:, 66:72], V - W)
    close(y[:, 72:78], -V)
    close(y[:, 78:84], V[:, :1] * W)
    close(y[:, 84], (F * V).sum(1))


@probe
def identities(x, y):
    T, U = load_pose(x, 0), load_pose(x, 1)
    V, W, X, F = load_twist(x, 4), load_twist(x, 5), load_twist(x, 6), load_twist(x, 7)
    jacobi = se3.add(se3.ad(V, se3.ad(W, X)), se3.add(se3.ad(W, se3.ad(X, V)), se3.ad(X, se3.ad(V, W))))
    store_twist(y, 0, jacobi)
    store_twist(y, 1, se3.sub(se3.Ad(se3.compose(T, U), V), se3.Ad(T, se3.Ad(U, V))))
    store_twist(y, 2, se3.sub(se3.Ad_inv(T, se3.Ad(T, V)), V))
    store_twist(y, 3, se3.sub(se3.dAd_inv(T, se3.dAd(T, F)), F))
    store_twist(y, 4, se3.sub(se3.Ad(T, se3.ad(V, W)), se3.ad(se3.Ad(T, V), se3.Ad(T, W))))
    store_twist(y, 5, se3.add(se3.ad(V, W), se3.ad(W, V)))
    store(y, 36, se3.dot(F, se3.Ad(T, V)) - se3.dot(se3.dAd(T, F), V))          # duals: power is the same in each frame
    store(y, 37, se3.dot(F, se3.ad(V, W)) + se3.dot(se3.neg_dad(V, F), W))
    store_twist(y, 7, se3.sub(se3.Ad(T, se3.dexp(V, W)), se3.dexp(se3.Ad(T, V), se3.Ad(T, W))))
    E = se3.compose(se3.compose(T, se3.exp(V)), se3.inverse(T))                 # T exp(V) T^-1 = exp(Ad_T V)
    store_pose(y, 4, se3.compose(se3.inverse(se3.exp(se3.Ad(T, V))), E))


@pytest.mark.parametrize("kind", KINDS)
def test_identities_of_the_algebra(kind):
    """Jacobi; Ad of a product; Ad and its dual undone; Ad a homomorphism of brackets and of exp; duals keep power."""
    x = np.hstack([flat(random_poses(200)), flat(random_poses(200, seed=1)), np.random.default_rng(2).standard_normal((200, 24))])
    y = evaluate(identities, x, 60, kind)
    assert abs(y[:, :38]).max() < 5e-14
    assert abs(y[:, 42:48]).max() < 5e-14
    np.testing.assert_allclose(full(y[:, 48:60]), np.broadcast_to(np.eye(4), (200, 4, 4)), atol=1e-14)


ALL = twists((*ANGLES, *BEYOND_HALF_A_TURN))


def outputs(x, kind, seed=0):
    V = np.random.default_rng(seed).uniform(-1, 1, (len(x), 6))
    return V, evaluate(exponentials, np.hstack([x, V]), 48, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_exp_against_the_series(kind, worst):
    """Measured 9e-16 for translations of about 1, at any angle up to 6; also against SciPy's expm.
    Checks: PBP (15)-(17); AGF (9)."""
    for x, T in zip(ALL, full(outputs(ALL, kind)[1][:, :12]), strict=True):
        assert worst("exp of SE(3)", error(T, series(hat(x), 0))) < 2e-15
        np.testing.assert_allclose(T, matrix_exp(x), atol=2e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_log_undoes_exp_below_half_a_turn(kind, worst):
    """Measured 4.5e-16. Near half a turn too, where the translation hangs on the logarithm of the rotation."""
    x = twists(ANGLES)
    assert worst("log of SE(3)", abs(outputs(x, kind)[1][:, 12:18] - x).max()) < 2e-15


@pytest.mark.parametrize("kind", KINDS)
def test_exp_undoes_log_at_any_pose(kind):
    poses = [*random_poses(300), *[matrix_exp(x) for x in ALL], *[pose(np.diag(d), [1, 2, 3]) for d in np.eye(3) * 2 - 1]]
    x = evaluate(logarithm, flat(poses), 6, kind)
    assert np.linalg.norm(x[:, :3], axis=1).max() <= np.pi * (1 + 2e-16)
    np.testing.assert_allclose([matrix_exp(row) for row in x], poses, atol=2e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_jacobians_of_exp_against_the_series(kind, worst):
    """(e^ad - 1)/ad, left and right: measured 8.2e-16 at any angle up to 6."""
    V, y = outputs(ALL, kind)
    for x, v, row in zip(ALL, V, y, strict=True):
        assert worst("Jacobian of exp of SE(3)", error(row[18:24], series(bracket(x), 1).dot(exact(v)))) < 2e-15
        assert error(row[24:30], series(-bracket(x), 1).dot(exact(v))) < 2e-15


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_jacobians_of_exp_against_the_series(kind, worst):
    """Measured 3e-16 at small angles; it grows with the square of 1/(1 - angle/full turn), as the function does."""
    V, y = outputs(ALL, kind)
    for x, v, row in zip(ALL, V, y, strict=True):
        bound = 1e-15 / (1 - np.linalg.norm(x[:3]) / (2 * np.pi))**2
        for sign, part in ((1, row[30:36]), (-1, row[36:42])):
            off = error(part, solve(series(sign * bracket(x), 1), v))
            assert worst("inverse Jacobian of exp of SE(3), of its bound", off / bound) < 1
        np.testing.assert_allclose(row[42:48], v, atol=4 * bound)


@pytest.mark.parametrize("kind", KINDS)
def test_jacobians_with_large_translations(kind):
    """The screw's moment enters linearly: relative to it the error stays at rounding."""
    x = twists((1e-8, 0.5, 1.01, 3.0), size=1e3)
    V, y = outputs(x, kind)
    for row, t, v in zip(y, x, V, strict=True):
        assert error(row[18:24], series(bracket(t), 1).dot(exact(v))) < 1e-14 * 1e3
        assert error(row[30:36], solve(series(bracket(t), 1), v)) < 1e-14 * 1e3
