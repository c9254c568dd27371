"""A M^-1 A^T lambda = rhs for constraint equations that may depend on each other: L D L^T that omits equations without a pivot.

Equations are eliminated in their order while their pivots are large enough, otherwise the one with the maximum pivot is next.
When no pivot is left, the remaining equations depend on those before and their multipliers are zero. Among all solutions, the one
of least Euclidean norm results by removing the component in the null space. The acceleration does not depend on that choice.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.loop_joints import EQUATION_COUNT, FIRST
from liedyn.lie.simd import load, number_like, store, where_less
from liedyn.model.description import RANK_TOLERANCE
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

PIVOT_TOLERANCE = 1e-3         # of the diagonal without cancelling: with a larger pivot there is no search for a better one


class SolverWorkspace(NamedTuple):
    """Matrix, factors and null space of the constraint equations."""

    L: np.ndarray         # (m m,) row r of the factor: entry s belongs to the equation eliminated in step s
    inverse_pivot: np.ndarray      # (m,) 1/D of each row, 0 where dependent
    independent: np.ndarray      # (m,) 1, or 0 where dependent
    z: np.ndarray         # (m,) remaining diagonal; after a solution: contradictions of dependent equations
    null: np.ndarray      # (m m,) A M^-1 A^T; after `factor_constraints`: orthogonal null vectors
    size: np.ndarray      # (m,) diagonal if nothing cancelled; after `factor_constraints`: its inverse
    order: np.ndarray     # (m,) as int64: the equation eliminated in each step


@jitable
def solver_sizes(m):
    """Return the sizes of the arrays of `SolverWorkspace` for m equations."""
    return m * m, m, m, m, m * m, m, m


@inline_kernel
def solver_workspace(memory, m):
    """Return the `SolverWorkspace` whose arrays are views into `memory`."""
    return SolverWorkspace(*split_workspace(memory, solver_sizes(m))[:-1])


@jitable
def solver_workspace_size(m):
    """Return the size (numbers) of the memory of `SolverWorkspace`."""
    return sum(solver_sizes(m))


@inline_kernel
def delassus_matrix(tree, loops, prescribed, Psi, equation_ws, matrix, diagonal_scale):
    """Write matrix (m m) = X Psi X^T and diagonal_scale (m), its diagonal if nothing cancelled.

    The sum is over the coordinates that two constraints share and that are not prescribed.
    """
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
    """Factor ws.null into L D L^T; write inverse_pivot, independent and order. ws.size holds the diagonals without cancelling."""
    m, order = ws.inverse_pivot.size, ws.order.view(np.int64)
    for r in range(m):
        ws.size[r] = 1.0 / ws.size[r] if ws.size[r] > 0.0 else 0.0
        ws.z[r] = ws.null[r * m + r]                                  # the remaining diagonal
        order[r] = r
    for s in range(m):
        eliminate_equation(s, best_equation(s, order, ws), order, ws)


@inline_kernel
def best_equation(s, order, ws):
    """Return the position in the order of the equation for step s: the next if its pivot is large enough, else the largest."""
    best, pivot = s, ws.z[order[s]] * ws.size[order[s]]
    if not pivot > PIVOT_TOLERANCE:
        for t in range(s + 1, order.size):
            x = ws.z[order[t]] * ws.size[order[t]]
            if x > pivot:
                best, pivot = t, x
    return best


@inline_kernel
def eliminate_equation(s, t, order, ws):
    """Eliminate in step s the equation at position t of the order. Remaining equations hold rows of L D, eliminated ones of L."""
    m, L, p = ws.inverse_pivot.size, ws.L, order[t]
    order[t], order[s] = order[s], p
    for t in range(s):
        L[p * m + t] *= ws.inverse_pivot[order[t]]
    is_independent = ws.z[p] * ws.size[p] > RANK_TOLERANCE
    ws.inverse_pivot[p], ws.independent[p] = (1.0 / ws.z[p], 1.0) if is_independent else (0.0, 0.0)
    for u in range(s + 1, m):
        r = order[u]
        x = ws.null[r * m + p]
        for t in range(s):
            x -= L[r * m + t] * L[p * m + t]
        L[r * m + s] = x
        ws.z[r] -= x * x * ws.inverse_pivot[p]


@inline_kernel
def solve_constraints(rhs, ws, out):
    """Write the multipliers (m,) of least norm. ws.z gets the contradictions of dependent equations."""
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
    """Remove the component of x in the null space; ws.null gets orthogonal null vectors."""
    m, L, null, nullity = ws.inverse_pivot.size, ws.L, ws.null, 0
    for s in range(m):
        if ws.independent[order[s]] > 0.5:
            continue
        o = nullity * m
        null[o:o + m] = 0.0
        null[o + order[s]] = 1.0
        for u in range(s - 1, -1, -1):
            y = 0.0
            for t in range(u + 1, s + 1):
                y -= L[order[t] * m + u] * null[o + order[t]]
            null[o + order[u]] = y * ws.independent[order[u]]
        for j in range(nullity):
            subtract_projection(null, o, null, j * m, m)
        subtract_projection(x, 0, null, o, m)
        nullity += 1


@inline_kernel
def subtract_projection(x, o, y, p, m):
    """Subtract from x its projection on y."""
    xy, yy = 0.0, 0.0
    for k in range(m):
        xy, yy = xy + x[o + k] * y[p + k], yy + y[p + k] * y[p + k]
    for k in range(m):
        x[o + k] -= xy / yy * y[p + k]


# fixed pivots -------------------------------------------------------------------------------------------------------------

# A M^-1 A^T lambda = rhs with equations that were chosen before: L D L^T in their order, without a decision on a number, so that
# generated code can contain it. The other multipliers are zero; accelerations do not depend on that.

# Of the diagonal without cancelling: with a smaller pivot six digits are lost, and other equations must be chosen.
FIXED_PIVOT_TOLERANCE = 1e-6


@inline_kernel
def solve_with_fixed_pivots(pivots, matrix, diagonal_scale, rhs, out, ws):
    """Write the multipliers out (m), and return the smallest pivot relative to its diagonal without cancelling.

    pivots                  (k,) int64: the chosen equations
    matrix, diagonal_scale  as `delassus_matrix` writes them
    ws                      (k (k + 2),) workspace
    """
    k, m, zero = pivots.size, diagonal_scale.shape[0], number_like(matrix, 0.0)
    inverse_pivot, z, minimum_pivot = k * k, k * k + k, number_like(matrix, 1.0)
    for i in range(k):                                        # row i of ws: L D, then L
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
        # without this, infinite numbers would hide the reason why a run ends
        store(ws, inverse_pivot + i, where_less(FIXED_PIVOT_TOLERANCE, pivot, 1.0 / d, zero))
        store(ws, z + i, x)
        minimum_pivot = where_less(pivot, minimum_pivot, pivot, minimum_pivot)
    for r in range(m):
        store(out, r, zero)
    for i in range(k - 1, -1, -1):
        x = load(ws, z + i) * load(ws, inverse_pivot + i)
        for u in range(i + 1, k):
            x = x - load(ws, u * k + i) * load(out, pivots[u])
        store(out, pivots[i], x)
    return minimum_pivot
