"""The two dense solvers of motion and constraints, against NumPy: rows that depend on each other, and least multipliers."""
import numpy as np
import pytest

from liedyn.dynamics.constraints.constrained_derivatives import BalanceDerivatives, solve_implicit_derivatives
from liedyn.errors import ComputationError
from liedyn.kernels.constraints.pivoting import PivotWorkspace, factor_pivoted, solve_pivoted


def system(n, m, rank, seed=0):
    rng = np.random.default_rng([seed, n, m])
    L = rng.standard_normal((n, n))
    first = rng.standard_normal((rank, n))
    mixed = np.vstack([first, rng.standard_normal((m - rank, rank)) @ first])
    return L @ L.T + 0.1 * np.eye(n), mixed, rng


CASES = [(5, 3, 3), (8, 6, 4), (4, 6, 4), (6, 0, 0), (1, 1, 1)]


@pytest.mark.parametrize(("n", "m", "rank"), CASES)
def test_saddle(n, m, rank, worst):
    M, A, rng = system(n, m, rank)
    Dq, Dv, x = rng.standard_normal((3, n, n))
    Rq, Rv = -A @ x, -2.0 * A @ x                        # of dependent rows what they depend on
    keep = np.arange(m) < rank
    null = np.zeros((m, m))
    null[:, rank:] = np.linalg.svd(A)[0][:, rank:]
    rates = BalanceDerivatives(*(y[None] for y in (Dq, Dv, M, Rq, Rv, A, np.zeros((m, n)))))
    turned = None if keep.all() else (null[None], np.zeros((1, m, n)))
    y, multipliers = solve_implicit_derivatives(rates, np.zeros(n, dtype=bool), keep[None], turned)
    J = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    rhs = np.vstack([np.hstack([-Dq, -Dv, np.eye(n)]), np.hstack([-Rq, -Rv, np.zeros((m, n))])])
    truth = np.linalg.lstsq(J, rhs, rcond=1e-10)[0]                          # least of all: of x there is but one
    assert worst("saddle", np.abs(np.vstack([y[0], multipliers[0]]) - truth).max() / np.abs(truth).max()) < 1e-9


def test_singular_mass():
    M = np.diag([1.0, 0.0, 0.0])
    zero, A = np.zeros((1, 3, 3)), np.ones((1, 1, 3))
    with pytest.raises(ComputationError, match="is singular in this configuration"):
        solve_implicit_derivatives(BalanceDerivatives(zero, zero, M[None], A, A, A, A), np.zeros(3, dtype=bool),
                                   np.ones((1, 1), dtype=bool))


def pivoted(J, n):
    N, m = len(J), len(J) - n
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    work = PivotWorkspace(J.copy(), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)), np.abs(J[n:, :n]))
    return factor_pivoted(n, work), work


@pytest.mark.parametrize(("n", "m", "rank"), CASES)
def test_full_pivoting(n, m, rank, worst):
    M, A, rng = system(n, m, rank, 1)
    units = 10.0**rng.uniform(-4, 4, n)                                      # rad next to m, light next to heavy
    P = M * np.outer(units, units) + 0.1 * rng.standard_normal((n, n)) * np.outer(units, units) * 0.1
    A = A * units
    J = np.block([[P, -A.T], [A, np.zeros((m, m))]])
    sound, work = pivoted(J, n)
    assert sound and work.rank[0] == n + rank
    N = work.null[:m - rank]
    np.testing.assert_allclose(N @ N.T, np.eye(m - rank), atol=1e-12)
    np.testing.assert_allclose(N @ (A / units), 0.0, atol=1e-9)
    b = J @ rng.standard_normal(n + m)
    work.b[:] = b
    solve(work)
    scale = np.r_[units, np.ones(m)]
    assert worst("full pivoting", np.abs((J @ work.b - b) / scale).max() / np.abs(b / scale).max()) < 1e-9


def solve(work):
    from liedyn.numba_tools.decorators import kernel

    @kernel
    def run(work):
        solve_pivoted(work)
    run(work)


def test_motion_that_is_not_determined():
    sound, _ = pivoted(np.diag([1.0, 0.0, 1.0]), 3)
    assert not sound
    assert not pivoted(np.full((2, 2), np.nan), 2)[0]
