"""Vectors, 3x3 matrices, z screws and the stores of tuples, for both numbers, against NumPy."""
import numpy as np
import pytest

from compiled import KINDS, evaluate, probe
from liedyn.lie import vectors
from liedyn.lie.se3 import ad_screw, screw_add, screw_dot, screw_pose
from liedyn.lie.simd import load, sincos, store
from liedyn.lie.vectors import (
    add_to_twist,
    load3,
    load6,
    load9,
    load_pose,
    load_rigid,
    load_sym6,
    load_twist,
    store3,
    store6,
    store9,
    store_pose,
    store_rigid,
    store_sym6,
    store_twist,
)
from matrices import bracket, exp, pose, skew

UPPER = np.triu_indices(3)


@probe
def of_vectors(x, y):
    a, b, R, B, A = load3(x, 0), load3(x, 3), load9(x, 6), load9(x, 15), load6(x, 24)
    store3(y, 0, vectors.add3(a, b))
    store3(y, 3, vectors.sub3(a, b))
    store3(y, 6, vectors.neg3(a))
    store3(y, 9, vectors.scale3(b[0], a))
    store(y, 12, vectors.dot3(a, b))
    store3(y, 13, vectors.cross(a, b))
    store3(y, 16, vectors.rotate(R, a))
    store3(y, 19, vectors.rotate_back(R, a))
    store9(y, 22, vectors.transpose(R))
    store3(y, 31, vectors.column(R, 2))
    store9(y, 34, vectors.matmul3(R, B))
    store9(y, 43, vectors.skew_product(a, B))
    store9(y, 52, vectors.symmetric_to_full(A))
    store6(y, 61, vectors.upper_triangle(R))
    store3(y, 67, vectors.symv3(A, a))
    store6(y, 70, vectors.congruence(R, A))
    store6(y, 76, vectors.add6(A, A))
    store9(y, 82, vectors.add9(R, B))
    store(y, 91, b[2] + vectors.dot3(a, b))
    store3(y, 92, vectors.add_cross(b, a, (R[0], R[1], R[2])))
    store3(y, 95, vectors.add_rotate(b, R, a))
    store3(y, 98, vectors.add_rotate_back(b, R, a))


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_matrices(kind):
    rows = np.random.default_rng(0).standard_normal((50, 30))
    for x, y in zip(rows, evaluate(of_vectors, rows, 101, kind), strict=True):
        a, b, R, B, A = x[:3], x[3:6], x[6:15].reshape(3, 3), x[15:24].reshape(3, 3), np.zeros((3, 3))
        A[UPPER] = x[24:]
        A = A + np.triu(A, 1).T
        expected = [a + b, a - b, -a, b[0] * a, [a @ b], np.cross(a, b), R @ a, R.T @ a, R.T, R[:, 2], R @ B, skew(a) @ B, A,
                    R[UPPER], A @ a, (R @ A @ R.T)[UPPER], 2 * A[UPPER], R + B, [b[2] + a @ b],
                    b + np.cross(a, R[0]), b + R @ a, b + R.T @ a]
        np.testing.assert_allclose(y, np.concatenate([np.ravel(e) for e in expected]), atol=3e-14)


@probe
def screws(x, y):
    """x: pose 12, V 6, F 6, a, b, angle or distance."""
    T, V, F = load_pose(x, 0), load_twist(x, 2), load_twist(x, 3)
    S, q = (load(x, 24), load(x, 25)), load(x, 26)
    s, c = sincos(S[0] * q)
    store_pose(y, 0, screw_pose(T, S, s, c, q))
    store_twist(y, 2, screw_add(V, S, q))
    store_twist(y, 3, ad_screw(V, S, q))
    store(y, 24, screw_dot(S, F))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("S", [(1.0, 0.0), (0.0, 1.0), (1.0, 0.2), (1.7, -0.5)])
def test_screws_about_z(kind, S):
    rng = np.random.default_rng(1)
    poses = [exp(t) for t in rng.standard_normal((30, 6))]
    V, F, q = rng.standard_normal((30, 6)), rng.standard_normal((30, 6)), rng.uniform(-4, 4, 30)
    rows = [np.r_[T[:3, :3].ravel(), T[:3, 3], v, f, S, x] for T, v, f, x in zip(poses, V, F, q, strict=True)]
    column = np.array([0, 0, S[0], 0, 0, S[1]])
    for k, y in enumerate(evaluate(screws, rows, 25, kind)):
        np.testing.assert_allclose(pose(y[:9], y[9:12]), poses[k] @ exp(column * q[k]), atol=1e-14)
        np.testing.assert_allclose(y[12:18], V[k] + column * q[k], atol=1e-15)
        np.testing.assert_allclose(y[18:24], bracket(V[k]) @ column * q[k], atol=1e-14)
        np.testing.assert_allclose(y[24], column @ F[k], atol=1e-14)


@probe
def copies(x, y):
    store_twist(y, 0, load_twist(x, 0))
    store_twist(y, 1, load_twist(x, 1))
    add_to_twist(y, 1, load_twist(x, 0))
    store_pose(y, 1, load_pose(x, 1))
    store_rigid(y[24:44], 1, load_rigid(x[24:44], 1))
    store_rigid(y[24:44], 0, load_rigid(x[24:44], 0))
    store_sym6(y[44:86], 1, load_sym6(x[44:86], 1))
    store_sym6(y[44:86], 0, load_sym6(x[44:86], 0))


@pytest.mark.parametrize("kind", KINDS)
def test_tuples_in_arrays_keep_their_places(kind):
    x = np.arange(1.0, 87.0) + np.arange(9)[:, None] * 100
    y = evaluate(copies, x, 86, kind)
    expected = x.copy()
    expected[:, 6:12] += x[:, :6]
    np.testing.assert_array_equal(y, expected)
