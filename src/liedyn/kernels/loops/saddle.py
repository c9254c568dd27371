"""M x - A^T y = f, A x = g for many right-hand sides of one state: Cholesky's method for M, then for A M^-1 A^T."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.lie.lanes import sqrt

_SINGULAR = 1e-13         # a pivot below this part of its diagonal is rounding


class SaddleWork(NamedTuple):
    M: np.ndarray         # (n, n), then its factor
    A: np.ndarray         # (m, n), then A L^-T
    S: np.ndarray         # (m, m) A M^-1 A^T, then its factor
    null: np.ndarray      # (m, m) rows: combinations of rows of A that vanish, orthogonal
    f: np.ndarray         # (n, columns), then x
    g: np.ndarray         # (m, columns), then y
    tau: np.ndarray       # (n, columns) room


@primitive
def saddle_work(memory, n, m, columns):
    x, a = memory, n * n
    s, z = a + m * n, a + m * n + m * m
    f = z + m * m
    g = f + n * columns
    t = g + m * columns
    return SaddleWork(x[:a].reshape(n, n), x[a:s].reshape(m, n), x[s:z].reshape(m, m), x[z:f].reshape(m, m),
                      x[f:g].reshape(n, columns), x[g:t].reshape(m, columns), x[t:t + n * columns].reshape(n, columns))


def saddle_memory(n, m, columns): return n * n + m * n + 2 * m * m + (2 * n + m) * columns


@kernel
def solve_saddle(keep, work):
    """x, y over f, g, from symmetric positive M. keep (m): 0 of a row of A that depends on others, whose g is not read: y is of
    least norm. False where M is singular."""
    m, n = work.A.shape
    if not cholesky(work.M):
        return False
    for r in range(m):
        forward_row(work.M, work.A, r)
    forward(work.M, work.f)
    for r in range(m):
        for s in range(r + 1):
            x = 0.0
            for k in range(n):
                x += work.A[r, k] * work.A[s, k]
            work.S[r, s] = x if keep[r] and keep[s] else (1.0 if r == s else 0.0)
            work.null[r, s] = x
            work.null[s, r] = x
        add_product(work.A, r, -1.0 if keep[r] else 0.0, work.f, work.g, keep[r] == 0.0)
    if not cholesky(work.S):
        return False
    forward(work.S, work.g)
    backward(work.S, work.g)
    for k in range(n):                                       # x = L^-T (L^-1 f + (A L^-T)^T y)
        for r in range(m):
            if keep[r]:
                for c in range(work.f.shape[1]):
                    work.f[k, c] += work.A[r, k] * work.g[r, c]
    backward(work.M, work.f)
    least_norm(keep, work)
    return True


@primitive
def add_product(A, r, factor, f, g, clear):
    """g[r] += factor A[r] f, or zero."""
    for c in range(g.shape[1]):
        if clear:
            g[r, c] = 0.0
    for k in range(A.shape[1]):
        x = factor * A[r, k]
        for c in range(g.shape[1]):
            g[r, c] += x * f[k, c]


@primitive
def cholesky(M):
    """The lower triangle of M becomes its factor; False where there is none."""
    n = M.shape[0]
    for i in range(n):
        for j in range(i):
            x = M[i, j]
            for k in range(j):
                x -= M[i, k] * M[j, k]
            M[i, j] = x / M[j, j]
        whole = M[i, i]
        x = whole
        for k in range(i):
            x -= M[i, k] * M[i, k]
        if not x > _SINGULAR * whole:
            return False
        M[i, i] = sqrt(x)
    return True


@primitive
def forward(L, X):
    """L^-1 X, in place."""
    for i in range(L.shape[0]):
        for k in range(i):
            x = L[i, k]
            for c in range(X.shape[1]):
                X[i, c] -= x * X[k, c]
        x = 1.0 / L[i, i]
        for c in range(X.shape[1]):
            X[i, c] *= x


@primitive
def backward(L, X):
    """L^-T X, in place."""
    for j in range(L.shape[0]):
        i = L.shape[0] - 1 - j
        for k in range(i + 1, L.shape[0]):
            x = L[k, i]
            for c in range(X.shape[1]):
                X[i, c] -= x * X[k, c]
        x = 1.0 / L[i, i]
        for c in range(X.shape[1]):
            X[i, c] *= x


@primitive
def forward_row(L, X, r):
    """Row r of X becomes L^-1 X[r]."""
    for i in range(L.shape[0]):
        x = X[r, i]
        for k in range(i):
            x -= L[i, k] * X[r, k]
        X[r, i] = x / L[i, i]


@primitive
def least_norm(keep, work):
    """y less its part in the null space of A^T; work.null: A M^-1 A^T, over which its null vectors come."""
    null, g, m, found = work.null, work.g, keep.size, 0
    for p in range(m):
        if keep[p]:
            continue
        null_vector(keep, work, found, p)
        for c in range(g.shape[1]):
            x = 0.0
            for r in range(m):
                x += null[found, r] * g[r, c]
            for r in range(m):
                g[r, c] -= x * null[found, r]
        found += 1


@primitive
def null_vector(keep, work, found, p):
    """Into row `found` of work.null: how the kept rows of A make row p, as a unit vector orthogonal to those above."""
    null, S, m = work.null, work.S, keep.size
    for r in range(m):
        null[found, r] = -null[p, r] if keep[r] else 0.0
    forward_row(S, null, found)
    for j in range(m):
        i = m - 1 - j
        x = null[found, i]
        for k in range(i + 1, m):
            x -= S[k, i] * null[found, k]
        null[found, i] = x / S[i, i]
    null[found, p] = 1.0
    for j in range(found + 1):                               # the last one: itself
        x = 0.0
        for r in range(m):
            x += null[found, r] * null[j, r]
        for r in range(m):
            null[found, r] = null[found, r] - x * null[j, r] if j < found else null[found, r] / sqrt(x)
