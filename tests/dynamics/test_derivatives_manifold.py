"""Derivatives of integrate and difference: by complex steps of matrix exponentials, as inverses of each other, near pi and 0."""
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import liedyn as ld
from bridge import SWAP
from complex_step import H, hat, inverse, nudge, parts, vee
from differences import by_each, by_q
from liedyn.model.description import BALL, FREE
from matrices import adjoint, bracket
from zoo import model_of, robots, state

EVERY = "every kind, floating"


def turned(model, x, most=0.9 * np.pi):
    """x with rotations of less than half a turn, which `difference` returns."""
    return x * most / np.maximum(most, np.linalg.norm(x, axis=-1, keepdims=True))


def reference(model, x):
    """by_q0 and by_dv (nv, nv) of integrate: exp(x)^-1 exp(i h d) exp(x) and exp(x)^-1 exp(x + i h d), by SciPy's expm."""
    A, B = np.eye(model.nv), np.eye(model.nv)
    for joint in model.joints:
        if joint.kind not in (BALL, FREE):
            continue
        n = len(x[joint.v])
        X = np.r_[x[joint.v], np.zeros(6 - n)]
        T = expm(hat(X))
        for c in range(n):
            d = 1j * H * np.eye(6)[c]
            A[joint.v, joint.v.start + c] = parts(vee(inverse(T) @ nudge(d) @ T))[1][:n]
            B[joint.v, joint.v.start + c] = parts(vee(inverse(T) @ expm(hat(X + d))))[1][:n]
    return A, B


@pytest.mark.parametrize("code", ["generic", "auto"])
def test_integrate_against_complex_steps(code, monkeypatch):
    """One state and a batch, every kind of joint. The reference is exact to tens of units of entries up to 5."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    model = model_of(EVERY)
    q, x = state(model, 1, 10)[:2]
    x[1] *= 1e-9
    x[2] = 0
    together = ld.d_integrate(model, q, x)
    assert together[0].shape == (10, model.nv, model.nv)
    for k in range(10):
        for found, expected in zip(together, reference(model, x[k]), strict=True):
            np.testing.assert_allclose(found[k], expected, atol=1e-13)
    if code == "auto":                                     # by loops, one state is compiled by itself
        np.testing.assert_allclose(ld.d_integrate(model, q[0], x[0]), [y[0] for y in together], atol=1e-14)
        assert ld.plan(model, "d_integrate").way == "generated"


@pytest.mark.parametrize("code", ["generic", "auto"])
def test_difference_is_the_inverse(code, monkeypatch):
    """Of difference(q0, q0 (+) x) = x: by_q1 by_dv = 1, and by_q0 + by_q1 Ad = 0, with what integrate gives."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    model = model_of(EVERY)
    q, x = state(model, 2, 10)[:2]
    x = turned(model, x)
    q1 = ld.integrate(model, q, x)
    by_q0, by_q1 = ld.d_difference(model, q, q1)
    for k in range(10):
        A, B = reference(model, x[k])
        np.testing.assert_allclose(by_q1[k] @ B, np.eye(model.nv), atol=1e-13)
        np.testing.assert_allclose(by_q0[k] + by_q1[k] @ A, 0, atol=1e-13)
    np.testing.assert_allclose(ld.d_difference(model, q[3], q1[3]), [by_q0[3], by_q1[3]], atol=1e-14)


@settings(max_examples=15, deadline=None)
@given(robots, st.integers(0, 1000))
def test_the_two_functions_are_inverse_on_any_tree(robot, seed):
    """By loops, a batch of two."""
    model = ld.build(robot)
    q, x = state(model, seed, 2)[:2]
    x = turned(model, x)
    A, B = ld.d_integrate(model, q, x)
    by_q0, by_q1 = ld.d_difference(model, q, ld.integrate(model, q, x))
    np.testing.assert_allclose(by_q1 @ B, np.broadcast_to(np.eye(model.nv), B.shape), atol=1e-12)
    np.testing.assert_allclose(by_q0, -by_q1 @ A, atol=1e-12 * (1 + np.abs(A).max()))


@pytest.mark.parametrize("angle", [0.0, 1e-10, 1e-4, 0.99, 1.01, 3.0, np.pi - 1e-9, np.pi + 1e-9, 4.0, 6.0])
def test_series_of_the_adjoint_at_any_angle(angle, monkeypatch):
    """by_q0 = e^-ad, by_dv = sum (-ad)^k / (k + 1)!; its inverse up to half a turn, where the difference turns round."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model = model_of("a lone body")
    q = state(model, 3)[0]
    x = np.r_[np.array([0.6, -0.48, 0.64]) * angle, 0.3, -0.2, 0.5]
    ad = bracket(x)
    right = np.eye(6)
    for k in range(60, 1, -1):
        right = np.eye(6) - ad @ right / k
    A, B = ld.d_integrate(model, q, x)
    np.testing.assert_allclose(A, expm(-ad), atol=1e-13)
    np.testing.assert_allclose(B, right, atol=1e-13)            # the series cancels: e^6 units of rounding
    q1 = ld.integrate(model, q, x)
    shorter = bracket(ld.difference(model, q, q1))
    by_q0, by_q1 = ld.d_difference(model, q, q1)
    np.testing.assert_allclose(by_q0, shorter - by_q1, atol=1e-13)       # J_left^-1 = J_right^-1 - ad
    if angle < np.pi:
        np.testing.assert_allclose(by_q1 @ right, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(by_q0 @ adjoint(expm(hat(x)).real), -by_q1, atol=1e-12)


def test_pinocchio_on_a_floating_robot(monkeypatch):
    """Its free joint is linear first, in the same body frame."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, theirs = model_of("a lone body"), pin.Model()
    theirs.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    q, x = state(model, 4, 6)[:2]
    x[1:] = turned(model, x[1:])
    x[2, :3] *= (np.pi - 1e-6) / np.linalg.norm(x[2, :3])
    x[3] *= 1e-8
    x[4] = 0
    at = np.ix_(SWAP, SWAP)
    for k in range(6):
        y = x[k, SWAP]
        for found, argument in zip(ld.d_integrate(model, q[k], x[k]), (pin.ARG0, pin.ARG1), strict=True):
            np.testing.assert_allclose(found, pin.dIntegrate(theirs, q[k], y, argument)[at], atol=1e-12)
        q1 = ld.integrate(model, q[k], x[k])
        for found, argument in zip(ld.d_difference(model, q[k], q1), (pin.ARG0, pin.ARG1), strict=True):
            np.testing.assert_allclose(found, pin.dDifference(theirs, q[k], q1, argument)[at], atol=1e-8)


def test_other_joints_have_ones_and_leading_axes_are_kept(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model = model_of("revolute")
    q, x = state(model, 5, (2, 3))[:2]
    one = np.broadcast_to(np.eye(model.nv), (2, 3, model.nv, model.nv))
    for found, expected in zip((*ld.d_integrate(model, q, x), *ld.d_difference(model, q, q[0, 0])), (one, one, -one, one),
                               strict=True):
        np.testing.assert_array_equal(found, expected)
    assert ld.d_integrate(model, q[:0], x[:0])[0].shape == (0, 3, model.nv, model.nv)


def test_what_is_refused(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model = model_of("a lone body")
    q, x = state(model, 6, 3)[:2]
    bad = x.copy()
    bad[1, 2] = np.nan
    with pytest.raises(ld.ConfigurationError, match=r"dv\[2\] \(.*wz\) of state 1 is not finite: got nan"):
        ld.d_integrate(model, q, bad)
    with pytest.raises(ld.ConfigurationError, match=r"not of unit norm: expected .*got 2"):
        ld.d_integrate(model, q * [1, 1, 1, 2, 2, 2, 2], x)
    for arguments, name in (((q * np.nan, q), "q0"), ((q, q * np.nan), "q1")):
        with pytest.raises(ld.ConfigurationError, match=rf"{name}\[0\] .* is not finite"):
            ld.d_difference(model, *arguments)
    with pytest.raises(ld.ShapeError, match="dv has the wrong shape"):
        ld.d_integrate(model, q, q)
    by_q0, by_dv = ld.d_integrate(model, q, bad, on_error="nan")
    assert np.isnan(by_q0[1]).all() and np.isnan(by_dv[1]).all() and np.isfinite(by_dv[[0, 2]]).all()


@pytest.mark.parametrize("name", ["ball", "free"])
def test_differences_of_the_functions_themselves(name, monkeypatch):
    """Eighth-order differences of `integrate` and `difference` along each coordinate, in their own charts."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model = model_of(name)
    q, x = state(model, 7)[:2]
    x = turned(model, x, 2.0)
    q1 = ld.integrate(model, q, x)
    by_q0, by_dv = ld.d_integrate(model, q, x)
    np.testing.assert_allclose(by_q0, by_q(lambda p: ld.difference(model, q1, ld.integrate(model, p, x)), model, q), atol=1e-10)
    end = by_each(lambda d: ld.difference(model, q1, ld.integrate(model, q, x + d)), model.nv)
    np.testing.assert_allclose(by_dv, end, atol=1e-10)
    by_q0, by_q1 = ld.d_difference(model, q, q1)
    np.testing.assert_allclose(by_q0, by_q(lambda p: ld.difference(model, p, q1), model, q), atol=1e-10)
    np.testing.assert_allclose(by_q1, by_q(lambda p: ld.difference(model, q, p), model, q1), atol=1e-10)


