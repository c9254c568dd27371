"""The two dense solvers of motion and constraints, against NumPy: rows that depend on each other, and least multipliers."""
import numpy as np
import pytest

from liedyn.kernels.loops.pivoting import PivotWork, factor_pivoted, solve_pivoted
from liedyn.kernels.loops.saddle import saddle_memory, saddle_work, solve_saddle


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
    columns = 5
    f, x = rng.standard_normal((n, columns)), rng.standard_normal((n, columns))
    g = A @ x
    work = saddle_work.py_func(np.zeros(saddle_memory(n, m, columns)), n, m, columns)
    work.M[:], work.A[:], work.f[:], work.g[:] = M, A, f, g
    assert solve_saddle((np.arange(m) < rank).astype(float), work)
    J = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    truth = np.linalg.lstsq(J, np.vstack([f, g]), rcond=1e-10)[0]           # least of all: of x there is but one
    assert worst("saddle", np.abs(np.vstack([work.f, work.g]) - truth).max() / np.abs(truth).max()) < 1e-9


def test_singular_mass():
    work = saddle_work.py_func(np.zeros(saddle_memory(3, 1, 2)), 3, 1, 2)
    work.M[:], work.A[:] = np.diag([1.0, 0.0, 2.0]), 1.0
    assert not solve_saddle(np.ones(1), work)


def pivoted(J, n):
    N, m = len(J), len(J) - n
    order = (np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(1, dtype=np.int64))
    work = PivotWork(J.copy(), np.zeros(N), np.zeros(N), np.zeros(N), *order, np.zeros((m, m)))
    return factor_pivoted(n, work), work


@pytest.mark.parametrize(("n", "m", "rank"), CASES)
def test_full_pivoting(n, m, rank, worst):
    M, A, rng = system(n, m, rank, 1)
    units = 10.0**rng.uniform(-4, 4, n)                                      # rad beside m, light beside heavy
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
    from liedyn.jit import kernel

    @kernel
    def run(work):
        solve_pivoted(work)
    run(work)


def test_motion_that_is_not_determined():
    sound, _ = pivoted(np.diag([1.0, 0.0, 1.0]), 3)
    assert not sound
    assert not pivoted(np.full((2, 2), np.nan), 2)[0]
