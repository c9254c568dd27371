"""A M^-1 A^T lambda = rhs for constraints that may depend on each other: L D L^T that leaves out rows without a pivot.

Rows are taken in their order as long as they have a fair pivot, else the best one next; where none has any, the rest follow from
those before and get no multiplier of their own. Then, among all solutions, the one of least Euclidean norm: what lies in
the null space is taken off. The acceleration does not depend on that choice."""
from typing import NamedTuple

import numpy as np

from liedyn.joints.loop_joints import EQUATION_COUNT, FIRST
from liedyn.lie.simd import load, number_like, store, where_less
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

RANK_TOLERANCE = 1e-10         # of what the row's diagonal is made of: a sine of 1e-5 between a row and what it depends on
PIVOT_TOLERANCE = 1e-3         # of the same: no search for a better one


class SolverWorkspace(NamedTuple):
    L: np.ndarray         # (m m,) row r of the factor: entry s belongs to the row taken in step s
    inverse_pivot: np.ndarray      # (m,) 1/D of each row, 0 where dependent
    independent: np.ndarray      # (m,) 1, or 0 where dependent
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
def delassus_matrix(tree, loops, prescribed, Psi, equation_ws, matrix, diagonal_scale):
    """matrix (m m) = X D^-1 X^T over the coordinates that two constraints share and that are not prescribed; made (m): what its
    diagonal is made of."""
    m, nv, pair, zero = diagonal_scale.shape[0], tree.above.size, 0, number_like(Psi, 0.0)
    for c in range(loops.record.shape[0]):
        for d in range(c + 1):
            shared = loops.shared[loops.shared_first[pair]:loops.shared_first[pair + 1]]
            pair += 1
            for r in range(loops.record[c, FIRST], loops.record[c, FIRST] + loops.record[c, EQUATION_COUNT]):
                for s in range(loops.record[d, FIRST], min(loops.record[d, FIRST] + loops.record[d, EQUATION_COUNT], r + 1)):
                    x = zero
                    for i in range(shared.size):
                        k = shared[i]
                        if not prescribed[k]:
                            x = x + load(Psi, k) * load(equation_ws.X, r * nv + k) * load(equation_ws.X, s * nv + k)
                    store(matrix, r * m + s, x)
                    store(matrix, s * m + r, x)
    for r in range(m):
        store(diagonal_scale, r, load(equation_ws.size, r))


@inline_kernel
def factor_constraints(ws):
    """L D L^T of work.null, with gain, keep and order; work.size holds what diagonals are made of."""
    m, order = ws.inverse_pivot.size, ws.order.view(np.int64)
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
    m, L, p = ws.inverse_pivot.size, ws.L, order[t]
    order[t], order[s] = order[s], p
    for t in range(s):
        L[p * m + t] *= ws.inverse_pivot[order[t]]
    kept = ws.z[p] * ws.size[p] > RANK_TOLERANCE
    ws.inverse_pivot[p], ws.independent[p] = (1.0 / ws.z[p], 1.0) if kept else (0.0, 0.0)
    for u in range(s + 1, m):
        r = order[u]
        x = ws.null[r * m + p]
        for t in range(s):
            x -= L[r * m + t] * L[p * m + t]
        L[r * m + s] = x
        ws.z[r] -= x * x * ws.inverse_pivot[p]


@inline_kernel
def solve_constraints(rhs, ws, out):
    """out (m) = the multipliers of least norm. work.z keeps, where a row is dependent, by how much rhs contradicts it."""
    m, L, order = ws.inverse_pivot.size, ws.L, ws.order.view(np.int64)
    for s in range(m):
        p = order[s]
        x = rhs[p]
        for t in range(s):
            x -= L[p * m + t] * ws.z[order[t]]
        ws.z[p] = x
    for s in range(m - 1, -1, -1):
        p = order[s]
        x = ws.z[p] * ws.inverse_pivot[p]
        for u in range(s + 1, m):
            x -= L[order[u] * m + s] * out[order[u]]
        out[p] = x * ws.independent[p]
    remove_null_space(order, ws, out)


@inline_kernel
def remove_null_space(order, ws, x):
    """Takes off x what lies in the null space; work.null: its vectors, at right angles."""
    m, L, null, found = ws.inverse_pivot.size, ws.L, ws.null, 0
    for s in range(m):
        if ws.independent[order[s]] > 0.5:
            continue
        o = found * m
        null[o:o + m] = 0.0
        null[o + order[s]] = 1.0
        for u in range(s - 1, -1, -1):
            y = 0.0
            for t in range(u + 1, s + 1):
                y -= L[order[t] * m + u] * null[o + order[t]]
            null[o + order[u]] = y * ws.independent[order[u]]
        for j in range(found):
            subtract_projection(null, o, null, j * m, m)
        subtract_projection(x, 0, null, o, m)
        found += 1


@inline_kernel
def subtract_projection(x, o, y, p, m):
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
def solve_with_fixed_pivots(pivots, matrix, diagonal_scale, rhs, out, ws):
    """out (m) = multipliers. pivots (k,) int64: the chosen ones; matrix (m m), made (m): see `form`; work (k (k + 2),).

    Returns the least pivot, of what the row's diagonal is made of."""
    k, m, zero = pivots.size, diagonal_scale.shape[0], number_like(matrix, 0.0)
    inverse_pivot, z, least = k * k, k * k + k, number_like(matrix, 1.0)
    for i in range(k):                                        # row i of work: L D, then L
        p = pivots[i]
        d, x = load(matrix, p * m + p), load(rhs, p)
        for j in range(i):
            y = load(matrix, p * m + pivots[j])
            for t in range(j):
                y = y - load(ws, i * k + t) * load(ws, j * k + t)
            store(ws, i * k + j, y)
        for j in range(i):
            y = load(ws, i * k + j)
            l = y * load(ws, inverse_pivot + j)
            d, x = d - y * l, x - l * load(ws, z + j)
            store(ws, i * k + j, l)
        pivot = d / load(diagonal_scale, p)
        # else infinite numbers hide why a run ends
        store(ws, inverse_pivot + i, where_less(FIXED_PIVOT_TOLERANCE, pivot, 1.0 / d, zero))
        store(ws, z + i, x)
        least = where_less(pivot, least, pivot, least)
    for r in range(m):
        store(out, r, zero)
    for i in range(k - 1, -1, -1):
        x = load(ws, z + i) * load(ws, inverse_pivot + i)
        for u in range(i + 1, k):
            x = x - load(ws, u * k + i) * load(out, pivots[u])
        store(out, pivots[i], x)
    return least
