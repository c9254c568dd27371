"""A M^-1 A^T lambda = rhs for constraints that may depend on each other: L D L^T that leaves out rows without a pivot.

Rows are taken in their order as long as they have a fair pivot, else the best one next; where none has any, the rest follow from
those before and get no multiplier of their own. Then, among all solutions, the one of least Euclidean norm: what lies in
the null space is taken off. The acceleration does not depend on that choice."""
from typing import NamedTuple

import numpy as np

from liedyn.joints.loop_joints import FIRST, ROW_COUNT
from liedyn.lie.simd import load, number_like, store, where_less
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

DEPENDENT = 1e-10         # of what the row's diagonal is made of: a sine of 1e-5 between a row and what it depends on
PIVOT_TOLERANCE = 1e-3               # of the same: no search for a better one


class SolverWorkspace(NamedTuple):
    L: np.ndarray         # (m m,) row r of the factor: entry s belongs to the row taken in step s
    gain: np.ndarray      # (m,) 1/D of each row, 0 where dependent
    keep: np.ndarray      # (m,) 1, or 0 where dependent
    z: np.ndarray         # (m,)
    null: np.ndarray      # (m m,) A M^-1 A^T until it is factored; then null vectors, made orthogonal
    size: np.ndarray      # (m,) inverse of what the diagonals are made of
    order: np.ndarray     # (m,) as int64: the row taken in each step


@jitable
def solver_sizes(m): return m * m, m, m, m, m * m, m, m


@inline_kernel
def solver_workspace(memory, m): return SolverWorkspace(*split_workspace(memory, solver_sizes(m))[:-1])


@jitable
def solver_workspace_size(m): return sum(solver_sizes(m))


@inline_kernel
def form(tree, loops, prescribed, Psi, rows, matrix, made):
    """matrix (m m) = X D^-1 X^T over the coordinates that two constraints share and that are not prescribed; made (m): what its
    diagonal is made of."""
    m, nv, pair, zero = made.shape[0], tree.above.size, 0, number_like(Psi, 0.0)
    for c in range(loops.record.shape[0]):
        for d in range(c + 1):
            shared = loops.shared[loops.shared_first[pair]:loops.shared_first[pair + 1]]
            pair += 1
            for r in range(loops.record[c, FIRST], loops.record[c, FIRST] + loops.record[c, ROW_COUNT]):
                for s in range(loops.record[d, FIRST], min(loops.record[d, FIRST] + loops.record[d, ROW_COUNT], r + 1)):
                    x = zero
                    for i in range(shared.size):
                        k = shared[i]
                        if not prescribed[k]:
                            x = x + load(Psi, k) * load(rows.X, r * nv + k) * load(rows.X, s * nv + k)
                    store(matrix, r * m + s, x)
                    store(matrix, s * m + r, x)
    for r in range(m):
        store(made, r, load(rows.size, r))


@inline_kernel
def factor_constraints(ws):
    """L D L^T of work.null, with gain, keep and order; work.size holds what diagonals are made of."""
    m, order = ws.gain.size, ws.order.view(np.int64)
    for r in range(m):
        ws.size[r] = 1.0 / ws.size[r] if ws.size[r] > 0.0 else 0.0
        ws.z[r] = ws.null[r * m + r]                                  # the diagonal, as it is eaten up
        order[r] = r
    for s in range(m):
        eliminate_equation(s, best_equation(s, order, ws), order, ws)


@inline_kernel
def best_equation(s, order, ws):
    """Where in the order the row stands that step s takes: the next if its pivot is fair, else the largest."""
    found, most = s, ws.z[order[s]] * ws.size[order[s]]
    if not most > PIVOT_TOLERANCE:
        for t in range(s + 1, order.size):
            x = ws.z[order[t]] * ws.size[order[t]]
            if x > most:
                found, most = t, x
    return found


@inline_kernel
def eliminate_equation(s, t, order, ws):
    """Step s takes the row at place t of the order. Rows that are still to be taken hold L D, those taken L."""
    m, L, p = ws.gain.size, ws.L, order[t]
    order[t], order[s] = order[s], p
    for t in range(s):
        L[p * m + t] *= ws.gain[order[t]]
    kept = ws.z[p] * ws.size[p] > DEPENDENT
    ws.gain[p], ws.keep[p] = (1.0 / ws.z[p], 1.0) if kept else (0.0, 0.0)
    for u in range(s + 1, m):
        r = order[u]
        x = ws.null[r * m + p]
        for t in range(s):
            x -= L[r * m + t] * L[p * m + t]
        L[r * m + s] = x
        ws.z[r] -= x * x * ws.gain[p]


@inline_kernel
def solve_constraints(rhs, ws, out):
    """out (m) = the multipliers of least norm. work.z keeps, where a row is dependent, by how much rhs contradicts it."""
    m, L, order = ws.gain.size, ws.L, ws.order.view(np.int64)
    for s in range(m):
        p = order[s]
        x = rhs[p]
        for t in range(s):
            x -= L[p * m + t] * ws.z[order[t]]
        ws.z[p] = x
    for s in range(m - 1, -1, -1):
        p = order[s]
        x = ws.z[p] * ws.gain[p]
        for u in range(s + 1, m):
            x -= L[order[u] * m + s] * out[order[u]]
        out[p] = x * ws.keep[p]
    least_norm(order, ws, out)


@inline_kernel
def least_norm(order, ws, x):
    """Takes off x what lies in the null space; work.null: its vectors, at right angles."""
    m, L, null, found = ws.gain.size, ws.L, ws.null, 0
    for s in range(m):
        if ws.keep[order[s]] > 0.5:
            continue
        o = found * m
        null[o:o + m] = 0.0
        null[o + order[s]] = 1.0
        for u in range(s - 1, -1, -1):
            y = 0.0
            for t in range(u + 1, s + 1):
                y -= L[order[t] * m + u] * null[o + order[t]]
            null[o + order[u]] = y * ws.keep[order[u]]
        for j in range(found):
            subtract_pivot_row(null, o, null, j * m, m)
        subtract_pivot_row(x, 0, null, o, m)
        found += 1


@inline_kernel
def subtract_pivot_row(x, o, y, p, m):
    """x less its part along y."""
    xy, yy = 0.0, 0.0
    for k in range(m):
        xy, yy = xy + x[o + k] * y[p + k], yy + y[p + k] * y[p + k]
    for k in range(m):
        x[o + k] -= xy / yy * y[p + k]


# chosen rows ------------------------------------------------------------------------------------------------------------

# A M^-1 A^T lambda = rhs by rows that were chosen in advance: L D L^T in their order, without a decision on a number, so that a
# line can hold it. The other multipliers are zero; accelerations do not depend on that (see `constraint_solver`).

# A pivot, of what the row's diagonal is made of: below it six digits are lost, and other rows must be chosen.
FIXED_PIVOT_TOLERANCE = 1e-6


@inline_kernel
def solve_with_fixed_pivots(rows, matrix, made, rhs, out, ws):
    """out (m) = multipliers. rows (k,) int64: the chosen ones; matrix (m m), made (m): see `form`; work (k (k + 2),).

    Returns the least pivot, of what the row's diagonal is made of."""
    k, m, zero = rows.size, made.shape[0], number_like(matrix, 0.0)
    gain, z, least = k * k, k * k + k, number_like(matrix, 1.0)
    for i in range(k):                                        # row i of work: L D, then L
        p = rows[i]
        d, x = load(matrix, p * m + p), load(rhs, p)
        for j in range(i):
            y = load(matrix, p * m + rows[j])
            for t in range(j):
                y = y - load(ws, i * k + t) * load(ws, j * k + t)
            store(ws, i * k + j, y)
        for j in range(i):
            y = load(ws, i * k + j)
            l = y * load(ws, gain + j)
            d, x = d - y * l, x - l * load(ws, z + j)
            store(ws, i * k + j, l)
        pivot = d / load(made, p)
        # else infinite numbers hide why a run ends
        store(ws, gain + i, where_less(FIXED_PIVOT_TOLERANCE, pivot, 1.0 / d, zero))
        store(ws, z + i, x)
        least = where_less(pivot, least, pivot, least)
    for r in range(m):
        store(out, r, zero)
    for i in range(k - 1, -1, -1):
        x = load(ws, z + i) * load(ws, gain + i)
        for u in range(i + 1, k):
            x = x - load(ws, u * k + i) * load(out, rows[u])
        store(out, rows[i], x)
    return least
