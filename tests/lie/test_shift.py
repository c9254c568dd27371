"""A change of origin is the pose T = (1, p): against 6x6 matrices, and against the functions of any pose."""
import numpy as np
import pytest

from compiled import KINDS, evaluate, probe
from liedyn.lie import shift
from liedyn.lie.inertia import rigid_to_parent
from liedyn.lie.lanes import load
from liedyn.lie.rows import load3, load_rigid, load_twist, store_rigid, store_twist
from liedyn.lie.se3 import Ad_inv, dAd_inv
from matrices import adjoint, inertia, inverse, pose, random_rotations

N = 60
UPPER = np.triu_indices(3)


def ten(I):
    """(m, h, A) of a rigid body's (6, 6)."""
    return np.r_[I[3, 3], I[2, 4], I[0, 5], I[1, 3], I[:3, :3][UPPER]]


@probe
def everything(x, y):
    """x: p, V, F, a rigid body."""
    p, V, F, I = load3(x, 0), load_twist(x[3:9], 0), load_twist(x[9:15], 0), load_rigid(x[15:25], 0)
    zero = load(x, 0) - load(x, 0)
    one = zero + 1.0
    T = (one, zero, zero, zero, one, zero, zero, zero, one), p
    store_twist(y, 0, shift.shift_twist(p, V))
    store_twist(y, 1, shift.shift_wrench(p, F))
    store_rigid(y[12:22], 0, shift.shift_rigid(p, I))
    store_twist(y[22:34], 0, Ad_inv(T, V))
    store_twist(y[22:34], 1, dAd_inv(T, F))
    store_rigid(y[34:44], 0, rigid_to_parent(T, I))


def samples():
    rng = np.random.default_rng(0)
    bodies = [inertia(rng.uniform(0.1, 5), rng.standard_normal(3), np.diag(rng.uniform(0.1, 1, 3)), R)
              for R in random_rotations(rng, N)]
    return rng.standard_normal((N, 3)), rng.standard_normal((N, 6)), rng.standard_normal((N, 6)), bodies


@pytest.mark.parametrize("kind", KINDS)
def test_shifts_are_Ad_and_its_dual_of_a_pose_without_turn(kind):
    given = samples()
    out = evaluate(everything, [np.r_[p, V, F, ten(I)] for p, V, F, I in zip(*given, strict=True)], 44, kind)
    np.testing.assert_allclose(out[:, :22], out[:, 22:], atol=1e-14, rtol=0)
    for p, V, F, I, y in zip(*given, out, strict=True):
        to_b = adjoint(inverse(pose(np.eye(3), p)))
        np.testing.assert_allclose(y[:22], np.r_[to_b @ V, to_b.T @ F, ten(to_b.T @ I @ to_b)], atol=1e-13, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_power_does_not_depend_on_the_origin(kind):
    """F^T V of a wrench given in b is that of the shifted wrench in a; there and back is where one was."""
    p, V, F, bodies = samples()
    rows = [np.r_[x, v, f, ten(I)] for x, v, f, I in zip(p, V, F, bodies, strict=True)]
    out = evaluate(everything, rows, 44, kind)
    np.testing.assert_allclose((F * out[:, :6]).sum(1), (out[:, 6:12] * V).sum(1), atol=1e-14, rtol=0)
    back = evaluate(everything, [np.r_[-x, y[:22]] for x, y in zip(p, out, strict=True)], 44, kind)
    np.testing.assert_allclose(back[:, :22], [row[3:] for row in rows], atol=2e-14, rtol=0)
