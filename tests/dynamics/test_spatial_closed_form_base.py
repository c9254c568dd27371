"""Body and spatial twists and wrenches of a floating base: against derivatives in a hundred digits of their definitions."""
from math import comb

import numpy as np
import pytest

import liedyn as ld
from exact_motion import cross, derivatives, polynomial, pose, rotation, twists
from matrices import adjoint, bracket

ORDERS = 8


def motion(seed, far=1.0):
    """q (7,), T (4, 4) and derivatives of the pose, by a random smooth motion; `far` metres from the origin."""
    rng = np.random.default_rng(seed)
    u, p = rng.standard_normal((ORDERS + 1, 4)), rng.standard_normal((ORDERS + 1, 3))
    u[0] /= np.linalg.norm(u[0])
    p[0] *= far
    at = polynomial(u), polynomial(p)
    T = derivatives(lambda t: pose(rotation(at[0](t)), at[1](t)), ORDERS + 1)
    return np.r_[p[0], u[0]], T[0].astype(float), T


def gap(x, expected, other):
    """Worst order; against the size of that order's derivative in the two frames: each is made of the other's."""
    return (np.abs(x - expected).max(axis=-1) / (np.abs(expected).max(axis=-1) + np.abs(other).max(axis=-1))).max()


@pytest.mark.parametrize("seed", range(3))
def test_twists(seed, worst):
    """Of the same motion, from its poses. Checks: AGF Remark 1."""
    q, T0, T = motion(seed)
    V, V_s = twists(T, "local").astype(float), twists(T, "world").astype(float)
    for base in (q, T0):
        assert worst("spatial base: twists", gap(ld.spatial_twists(base, V), V_s, V)) < 1e-14
        assert worst("spatial base: twists", gap(ld.body_twists(base, V_s), V, V_s)) < 1e-14


def test_wrenches(worst):
    """F_s = (R m + p x R f, R f), from poses and a wrench that are known at all times."""
    rng = np.random.default_rng(5)
    u, p, F = (rng.standard_normal((ORDERS, n)) for n in (4, 3, 6))
    u[0] /= np.linalg.norm(u[0])
    U, P, wrench = polynomial(u), polynomial(p), polynomial(F)

    def spatial(t):
        R, F = rotation(U(t)), wrench(t)
        f = R @ F[3:]
        return np.concatenate([R @ F[:3] + cross(P(t), f), f])

    V = twists(derivatives(lambda t: pose(rotation(U(t)), P(t)), ORDERS), "local").astype(float)
    F_s, base = derivatives(spatial, ORDERS).astype(float), np.r_[p[0], u[0]]
    assert len(V) == ORDERS - 1                                    # the last derivative of a wrench needs one twist less
    assert worst("spatial base: wrenches", gap(ld.spatial_wrenches(base, V, F), F_s, F)) < 1e-14
    assert worst("spatial base: wrenches", gap(ld.body_wrenches(base, V, F_s), F, F_s)) < 1e-14


def test_low_orders_by_matrices():
    """V_s = Ad V, dV_s = Ad dV, ddV_s = Ad (ddV + ad_V dV); dF_s = Ad*_{T^-1} (dF - ad*_V F)."""
    q, T, _ = motion(1)
    rng = np.random.default_rng(1)
    V, F = rng.standard_normal((3, 6)), rng.standard_normal((2, 6))
    Ad = adjoint(T)
    np.testing.assert_allclose(ld.spatial_twists(q, V), [Ad @ V[0], Ad @ V[1], Ad @ (V[2] + bracket(V[0]) @ V[1])], atol=1e-14)
    expected = np.linalg.solve(Ad.T, np.stack([F[0], F[1] - bracket(V[0]).T @ F[0]]).T).T
    np.testing.assert_allclose(ld.spatial_wrenches(T, V, F), expected, atol=1e-14)


def test_there_and_back_and_power(worst):
    """Power is the same in both, with all its derivatives. High orders too."""
    rng = np.random.default_rng(2)
    q, n = motion(2, far=10.0)[0], 13
    V, F = rng.standard_normal((2, n, 6))
    V_s, F_s = ld.spatial_twists(q, V), ld.spatial_wrenches(q, V, F)
    # ten metres away each derivative is ten times the last in between, and order 12 sums thousands of products
    assert worst("spatial base: there and back", gap(ld.body_twists(q, V_s), V, V_s)) < 1e-12
    assert worst("spatial base: there and back", gap(ld.body_wrenches(q, V, F_s), F, F_s)) < 1e-12

    def power(V, F):
        terms = [[comb(k, j) * V[j] @ F[k - j] for j in range(k + 1)] for k in range(n)]
        return np.array([sum(x) for x in terms]), np.array([np.abs(x).sum() for x in terms])

    body, (spatial, size) = power(V, F)[0], power(V_s, F_s)
    assert worst("spatial base: power", (np.abs(body - spatial) / size).max()) < 1e-13


def test_batches_broadcast():
    rng = np.random.default_rng(3)
    q = np.stack([motion(k)[0] for k in range(4)])
    V, F = rng.standard_normal((3, 1, 5, 6)), rng.standard_normal((5, 6))
    for convert in (ld.spatial_twists, ld.body_twists):
        out = convert(q, V)
        assert out.shape == (3, 4, 5, 6)
        np.testing.assert_allclose(out[1, 2], convert(q[2], V[1, 0]), rtol=1e-14, atol=1e-13)
    for convert in (ld.spatial_wrenches, ld.body_wrenches):
        out = convert(q, V, F)
        assert out.shape == (3, 4, 5, 6)
        np.testing.assert_allclose(out[1, 2], convert(q[2], V[1, 0], F), rtol=1e-14, atol=1e-13)
        assert convert(q[:0], V[0], F).shape == (0, 5, 6)
    np.testing.assert_array_equal(ld.spatial_wrenches(q[0], np.empty((0, 6)), F[:1]),     # the wrench alone needs no twist
                                  ld.spatial_wrenches(q[0], V[0, 0], F[:1]))


def test_errors():
    q, T, _ = motion(0)
    V = np.ones((4, 6))
    with pytest.raises(ld.ShapeError, match=r"base has the wrong shape: expected a pose \(…, 4, 4\) or coordinates \(…, 7\), "
                                            r"got \(6,\)"):
        ld.spatial_twists(np.zeros(6), V)
    with pytest.raises(ld.ShapeError, match=r"twists has the wrong shape: expected \(…, k, 6\).*got \(6,\)"):
        ld.body_twists(q, V[0])
    with pytest.raises(ld.ShapeError, match=r"wrenches has the wrong shape: expected \(…, 6\), got \(4, 3\)"):
        ld.body_wrenches(q, V, V[:, :3])
    with pytest.raises(ld.ShapeError, match="wrenches to order 3 require twists to order 2 at least: expected 3 deriv"):
        ld.spatial_wrenches(q, V[:2], V)
    with pytest.raises(ld.ConfigurationError, match=r"twists\[0, 0\] is not finite: got nan"):
        ld.spatial_twists(q, np.full((1, 6), np.nan))
    with pytest.raises(ld.ConfigurationError, match="the quaternion of joint 'base' is not of unit norm"):
        ld.spatial_twists(2 * q, V)
    with pytest.raises(ld.ConfigurationError, match=r"base\[0\] is not finite: got nan"):
        ld.spatial_twists(q * np.nan, V)
    for wrong in (2 * T, T * np.nan, np.diag([1.0, 1, -1, 1])):
        with pytest.raises(ld.ConfigurationError, match=r"base is not a pose: expected finite numbers"):
            ld.spatial_twists(wrong, V)
    with pytest.raises(ld.ShapeError, match="do not match"):
        ld.spatial_twists(np.stack([q, q]), np.ones((3, 4, 6)))
