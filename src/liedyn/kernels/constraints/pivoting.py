"""A square system of motion and constraints, J = [P -A^T; A 0], whose equations may be dependent: Gauss with full pivoting.

Rows and columns are scaled first: those of motion by their diagonals, those of constraints by the length that they would have if
nothing cancelled (`PivotWorkspace.reach`), so that rounding stays small. A pivot that is rounding ends the elimination; the
remaining unknowns are zero.
"""
from typing import NamedTuple

import numpy as np

from liedyn.lie.simd import sqrt
from liedyn.numba_tools.decorators import inline_kernel, kernel

MIN_PIVOT = 1e-11      # of one, the size of scaled entries. Pivots of constraints are between a sine and its square, and a
                       # sine of 1e-5 counts as zero (`constraints.solver`)


class PivotWorkspace(NamedTuple):
    """The system, its factors and null space."""

    J: np.ndarray             # (N, N), then its factors, rows and columns in the order of the pivots
    b: np.ndarray             # (N,) right-hand side, then the solution
    y: np.ndarray             # (N,)
    size: np.ndarray          # (N,) factors of rows and columns
    row: np.ndarray           # (N,) int64
    column: np.ndarray        # (N,) int64
    rank: np.ndarray          # (1,) int64
    null: np.ndarray          # (m, m) orthonormal rows: multipliers without effect
    reach: np.ndarray         # (m, n) entries of A if nothing cancelled


@kernel
def factor_pivoted(n, ws):
    """Factor ws.J, whose first n rows are those of motion. Return False if the motion is not determined or J is not finite."""
    J, N = ws.J, ws.J.shape[0]
    scale_rows(n, ws)
    for i in range(N):
        ws.row[i], ws.column[i] = i, i
    ws.rank[0] = N
    for k in range(N):
        r, c, best = k, k, 0.0
        for i in range(k, N):
            for j in range(k, N):
                x = abs(J[i, j])
                if not x <= best:
                    r, c, best = i, j, x
        if not best < np.inf:
            return False
        if best <= MIN_PIVOT:
            ws.rank[0] = k
            break
        swap(ws, k, r, c)
        for i in range(k + 1, N):
            x = J[i, k] / J[k, k]
            J[i, k] = x
            if x != 0.0:
                for j in range(k + 1, N):
                    J[i, j] -= x * J[k, j]
    sound = True
    for f in range(N - ws.rank[0]):
        sound = null_vectors(n, f, ws) and sound
    return sound


@inline_kernel
def isolate_prescribed(prescribed, J):
    """Replace rows and columns of prescribed coordinates by those of a diagonal matrix.

    The diagonal stays: `scale_rows` takes the scale of the coordinate from it. It is 1 if the coordinate moves no inertia.
    """
    for i in range(prescribed.size):
        if prescribed[i]:
            diagonal = J[i, i]
            for j in range(J.shape[0]):
                J[i, j], J[j, i] = 0.0, 0.0
            J[i, i] = diagonal if diagonal != 0.0 else 1.0


@inline_kernel
def scale_rows(n, ws):
    """Scale rows and columns of J."""
    J, N = ws.J, ws.J.shape[0]
    for i in range(n):
        ws.size[i] = 1.0 / sqrt(max(abs(J[i, i]), 1e-300))
    for r in range(n, N):
        x = 0.0
        for j in range(n):
            x += (ws.reach[r - n, j] * ws.size[j])**2
        ws.size[r] = 1.0 / sqrt(x) if x > 0.0 else 1.0
    for i in range(N):
        for j in range(N):
            J[i, j] *= ws.size[i] * ws.size[j]


@inline_kernel
def swap(ws, k, r, c):
    """Exchange row k with row r, and column k with column c."""
    J = ws.J
    for j in range(J.shape[0]):
        J[k, j], J[r, j] = J[r, j], J[k, j]
    for i in range(J.shape[0]):
        J[i, k], J[i, c] = J[i, c], J[i, k]
    ws.row[k], ws.row[r] = ws.row[r], ws.row[k]
    ws.column[k], ws.column[c] = ws.column[c], ws.column[k]


@inline_kernel
def substitute_back(rank, J, y):
    """Solve the upper triangular system of the first `rank` rows for y, in place."""
    for i in range(rank - 1, -1, -1):
        for j in range(i + 1, rank):
            y[i] -= J[i, j] * y[j]
        y[i] /= J[i, i]


@kernel
def solve_pivoted(ws):
    """Replace ws.b by the solution."""
    J, y, N, rank = ws.J, ws.y, ws.J.shape[0], ws.rank[0]
    for i in range(N):
        y[i] = ws.b[ws.row[i]] * ws.size[ws.row[i]]
    for i in range(rank):
        for j in range(i):
            y[i] -= J[i, j] * y[j]
    substitute_back(rank, J, y)
    for i in range(N):
        ws.b[ws.column[i]] = (y[i] if i < rank else 0.0) * ws.size[ws.column[i]]


@inline_kernel
def null_vectors(n, f, ws):
    """Write row f of ws.null. Return False if that null vector moves a coordinate."""
    J, y, N, rank, null = ws.J, ws.y, ws.J.shape[0], ws.rank[0], ws.null
    for i in range(N):
        y[i] = 1.0 if i == rank + f else (-J[i, rank + f] if i < rank else 0.0)
    substitute_back(rank, J, y)
    if f >= null.shape[0] or ws.column[rank + f] < n:
        return False
    for r in range(null.shape[0]):
        null[f, r] = 0.0
    for i in range(N):
        if ws.column[i] >= n:
            null[f, ws.column[i] - n] = y[i] * ws.size[ws.column[i]]
    for g in range(f + 1):                                   # the last one: itself
        x = 0.0
        for r in range(null.shape[0]):
            x += null[f, r] * null[g, r]
        for r in range(null.shape[0]):
            null[f, r] = null[f, r] - x * null[g, r] if g < f else null[f, r] / sqrt(x)
    return True


@inline_kernel
def remove_null_multipliers(ws, multipliers):
    """Remove from the multipliers their component without effect."""
    for f in range(ws.J.shape[0] - ws.rank[0]):
        x = 0.0
        for r in range(multipliers.size):
            x += ws.null[f, r] * multipliers[r]
        for r in range(multipliers.size):
            multipliers[r] -= x * ws.null[f, r]
