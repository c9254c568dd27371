"""B = (E, f) against 6x6 matrices: what a rigid body's velocity wrench does when its twist changes. All is bilinear, so exact
except for rounding."""
import numpy as np
import pytest

from compiled import KINDS, evaluate, probe
from liedyn.lie import inertia as lie
from liedyn.lie.inertia import momentum
from liedyn.lie.vectors import load3, load9, load_pose, load_rigid, load_twist, store3, store9, store_twist
from matrices import adjoint, bracket, inertia, inverse, pose, random_rotations, skew

N = 60
UPPER = np.triu_indices(3)


def ten(I):
    """Return (m, h, A) of a rigid body's (6, 6)."""
    return np.r_[I[3, 3], I[2, 4], I[0, 5], I[1, 3], I[:3, :3][UPPER]]


def six(B):
    """Return the matrix (6, 6) of B = (E, f), twelve numbers."""
    return np.block([[B[:9].reshape(3, 3), np.zeros((3, 3))], [-2 * skew(B[9:]), np.zeros((3, 3))]])


def wrench(I, V):
    """Return -ad*_V I V."""
    return -bracket(V).T @ I @ V


@probe
def everything(x, y):
    """x: a rigid body, its twist, another twist X, a pose, another B."""
    I, V, X, T = load_rigid(x, 0), load_twist(x[10:16], 0), load_twist(x[16:22], 0), load_pose(x[22:34], 0)
    C = load9(x, 34), load3(x, 43)
    B = lie.coriolis(I, V, momentum(I, V)[1])
    for k, symbol in enumerate((B, lie.coriolis_to_parent(T, B), lie.add_coriolis(B, C))):
        store9(y, 12 * k, symbol[0])
        store3(y, 12 * k + 9, symbol[1])
    store_twist(y[36:42], 0, lie.coriolis_wrench(B, X[0]))
    store3(y, 42, lie.coriolis_transposed(B, X))


def samples():
    rng = np.random.default_rng(0)
    bodies = [inertia(rng.uniform(0.1, 5), rng.standard_normal(3), np.diag(rng.uniform(0.1, 1, 3)), R)
              for R in random_rotations(rng, N)]
    poses = [pose(R, rng.standard_normal(3)) for R in random_rotations(rng, N)]
    return bodies, *(rng.standard_normal((N, size)) for size in (6, 6)), poses, rng.standard_normal((N, 12))


def run(kind):
    """Return (I, V, X, T, C, results) of each sample."""
    given = samples()
    rows = [np.r_[ten(I), V, X, T[:3, :3].ravel(), T[:3, 3], C] for I, V, X, T, C in zip(*given, strict=True)]
    return zip(*given, evaluate(everything, rows, 45, kind), strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_B_is_how_the_velocity_wrench_changes_with_the_twist(kind, worst):
    """B X + I ad_V X is linear in X, and the half of W(V + X) - W(V - X), since W is a square."""
    for I, V, X, _, _, y in run(kind):
        change = (wrench(I, V + X) - wrench(I, V - X)) / 2
        size = np.abs(I).max() * np.abs(V).max() * np.abs(X).max()
        assert worst("B X", np.abs(six(y[:12]) @ X + I @ bracket(V) @ X - change).max() / size, kind) < 2e-15
        assert np.abs(y[36:42] - six(y[:12]) @ X).max() / size < 2e-15
        assert np.abs(y[42:45] - (six(y[:12]).T @ X)[:3]).max() / size < 2e-15


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_B_is_skew_but_for_half_the_rate_of_the_inertia(kind, worst):
    """(B + B^T)/2 = dI/dt = -(ad*_V I + I ad_V), seen from a frame that rests: what makes dM/dt - 2C skew."""
    for I, V, _, _, _, y in run(kind):
        rate = -(bracket(V).T @ I + I @ bracket(V))
        size = np.abs(I).max() * np.abs(V).max()
        assert worst("B + B^T - 2 dI/dt", np.abs(six(y[:12]) + six(y[:12]).T - 2 * rate).max() / size, kind) < 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_B_of_two_bodies_in_one_frame_is_their_sum_and_goes_to_the_parent_as_inertia_does(kind, worst):
    for I, V, _, T, C, y in run(kind):
        B, size = six(y[:12]), np.abs(I).max() * np.abs(V).max()
        np.testing.assert_array_equal(y[24:36], y[:12] + C)
        to_a = adjoint(inverse(T))
        assert worst("B seen from a", np.abs(six(y[12:24]) - to_a.T @ B @ to_a).max() / size, kind) < 1e-14
        again = evaluate(everything, np.r_[ten(to_a.T @ I @ to_a), adjoint(T) @ V, np.zeros(30)], 45, kind)[0]
        assert worst("B of the body seen from a", np.abs(six(again[:12]) - to_a.T @ B @ to_a).max() / size, kind) < 1e-14
