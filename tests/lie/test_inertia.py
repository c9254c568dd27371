"""Generalized inertia for both numbers, against 6x6 matrices."""
import numpy as np
import pytest

from compiled import KINDS, evaluate, probe
from liedyn.lie import inertia as lie
from liedyn.lie.simd import load
from liedyn.lie.vectors import load_pose, load_rigid, load_sym6, load_twist, store_rigid, store_sym6, store_twist
from matrices import adjoint, inertia, inverse, pose, random_rotations

N = 60
UPPER = np.triu_indices(3)


def compact(X):
    """Return (A, H, M) of a symmetric (6, 6)."""
    return np.r_[X[:3, :3][UPPER], X[:3, 3:].ravel(), X[3:, 3:][UPPER]]


def ten(X):
    """Return (m, h, A) of a rigid body's (6, 6)."""
    return np.r_[X[3, 3], X[2, 4], X[0, 5], X[1, 3], X[:3, :3][UPPER]]


def samples():
    rng = np.random.default_rng(0)
    bodies = [inertia(rng.uniform(0.1, 5), rng.standard_normal(3), np.diag(rng.uniform(0.1, 1, 3)), R)
              for R in random_rotations(rng, 2 * N)]
    full = [(lambda B: B @ B.T)(rng.standard_normal((6, 6))) for _ in range(2 * N)]
    poses = [pose(R, rng.standard_normal(3)) for R in random_rotations(rng, N)]
    return bodies, full, poses, rng.standard_normal((N, 6)), rng.standard_normal((N, 6)), rng.standard_normal((N, 1))


@probe
def everything(x, y):
    """x: pose 12, V 6, U 6, two rigid bodies 10 each, … 2 sym6 of 21 each from 44, s."""
    T, V, U = load_pose(x, 0), load_twist(x, 2), load_twist(x, 3)
    I, J = load_rigid(x[24:44], 0), load_rigid(x[24:44], 1)
    X, Y = load_sym6(x[44:86], 0), load_sym6(x[44:86], 1)
    s = load(x, 86)
    store_twist(y, 0, lie.momentum(I, V))
    store_rigid(y[6:16], 0, lie.add_rigid(I, J))
    store_rigid(y[16:26], 0, lie.rigid_to_parent(T, I))
    store_sym6(y[26:47], 0, lie.rigid_to_sym6(I, s - s))
    store_sym6(y[47:68], 0, lie.add_sym6(X, Y))
    store_twist(y[68:74], 0, lie.symv6(X, V))
    store_sym6(y[74:95], 0, lie.rank_one_downdate(X, U, s))
    store_sym6(y[95:116], 0, lie.sym6_to_parent(T, X))
    store_sym6(y[116:137], 0, lie.sym6_to_parent(T, lie.rigid_to_sym6(I, s - s)))
    store_sym6(y[137:158], 0, lie.remove_z_inertia(X))


@pytest.mark.parametrize("kind", KINDS)
def test_inertias_against_matrices(kind):
    """Checks: K1 (20), (21), (23)."""
    bodies, full, poses, V, U, s = samples()
    rows = [np.r_[T[:3, :3].ravel(), T[:3, 3], v, u, ten(I), ten(J), compact(X), compact(Y), r] for T, v, u, I, J, X, Y, r in
            zip(poses, V, U, bodies[:N], bodies[N:], full[:N], full[N:], s, strict=True)]
    no_z = np.diag([1.0, 1, 0, 1, 1, 1])
    out = evaluate(everything, rows, 158, kind)
    for k, y in enumerate(out):
        I, J, X, Y, r = bodies[k], bodies[N + k], full[k], full[N + k], s[k, 0]
        to_parent = adjoint(inverse(poses[k]))
        expected = np.concatenate([
            I @ V[k], ten(I + J), ten(to_parent.T @ I @ to_parent), compact(I), compact(X + Y), X @ V[k],
            compact(X - r * np.outer(U[k], U[k])), compact(to_parent.T @ X @ to_parent),
            compact(to_parent.T @ I @ to_parent), compact(no_z @ X @ no_z)])
        np.testing.assert_allclose(y, expected, atol=2e-13, rtol=0, err_msg=str(k))


@pytest.mark.parametrize("kind", KINDS)
def test_transformation_of_a_rigid_body_keeps_its_mass_and_inertia_about_the_com(kind):
    """Checks: K1 (21), (22). What moves is the frame only. Measured 4e-16 of the inertia about the origin."""
    rng = np.random.default_rng(3)
    mass, com, J = 2.0, rng.standard_normal(3), np.diag([0.3, 0.4, 0.5])
    I, R, p = inertia(mass, com, J), random_rotations(rng, 1)[0], rng.standard_normal(3)
    row = np.zeros(87)
    row[:12], row[24:34] = np.r_[R.ravel(), p], ten(I)
    seen = evaluate(everything, row, 158, kind)[0, 16:26]
    np.testing.assert_allclose(seen, ten(inertia(mass, R @ com + p, J, R)), atol=1e-14)
