"""A M^-1 A^T lambda = rhs for constraints that may depend on each other: L D L^T that leaves out rows without a pivot.

Rows are taken in their order as long as they have a fair pivot, else the best one next; where none has any, the rest follow from
those before and get no multiplier of their own. Then, among all solutions, the one of least Euclidean norm: what lies in
the null space is taken off. The acceleration does not depend on that choice. All on numbers: in Lanes the order serves
eight states, and each has its own dependent rows."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import callee, primitive
from liedyn.joints.closures import FIRST, ROW_COUNT
from liedyn.kernels.loops.loop_rows import column_of, numbers_of
from liedyn.lie.lanes import all_less, largest, load, number_like, store, where_less
from liedyn.lie.matrices import get_cell, integers
from liedyn.seam.views import span

DEPENDENT = 1e-10         # of what the row's diagonal is made of: a sine of 1e-5 between a row and what it depends on
FAIR = 1e-3               # of the same: no search for a better one


class SolverWork(NamedTuple):
    L: np.ndarray         # (m m,) row r of the factor: entry s belongs to the row taken in step s
    gain: np.ndarray      # (m,) 1/D of each row, 0 where dependent
    keep: np.ndarray      # (m,) 1, or 0 where dependent
    z: np.ndarray         # (m,)
    null: np.ndarray      # (m m,) A M^-1 A^T until it is factored; then null vectors, made orthogonal
    size: np.ndarray      # (m,) inverse of what the diagonals are made of
    order: np.ndarray     # (m,) int64: the row taken in each step


@primitive
def solver_work(memory, m):
    x, k = memory, m * m
    order, = integers(span(x, 2 * k + 4 * m, m))
    return SolverWork(span(x, 0, k), span(x, k, m), span(x, k + m, m), span(x, k + 2 * m, m), span(x, k + 3 * m, k),
                      span(x, 2 * k + 3 * m, m), order)


def solver_memory(m): return 2 * m * m + 5 * m


@primitive
def form(tree, loops, prescribed, Psi, rows, matrix, made):
    """matrix (m m) = X D^-1 X^T over the coordinates that two constraints share and that are not prescribed; made (m): what its
    diagonal is made of."""
    m, number, pair = made.shape[0], number_like(Psi, 0.0), 0
    for c in range(loops.record.shape[0]):
        begin, end = numbers_of(loops, c, number)
        first, own = loops.record[c, FIRST], column_of(loops, c, 0, number)
        for d in range(c + 1):
            shared = loops.shared[loops.shared_first[pair]:loops.shared_first[pair + 1]]
            column, start, size = column_of(loops, d, 0, number), loops.record[d, FIRST], loops.record[d, ROW_COUNT]
            for j in range(begin, end):
                for s in range(0, size, 3):
                    three_products(tree, prescribed, Psi, rows, shared, j, column, start, s, size - 1, m)
            for r in range(loops.record[c, ROW_COUNT]):
                for s in range(start, start + size):
                    x = get_cell(rows.G, m, own + r, s, number)
                    store(matrix, (first + r) * m + s, x)
                    store(matrix, s * m + first + r, x)
            pair += 1
        for r in range(loops.record[c, ROW_COUNT]):
            store(made, first + r, get_cell(rows.size, 3, own + r, 0, number))


@primitive
def three_products(tree, prescribed, Psi, rows, shared, j, column, start, s, last, m):
    """Number j of G in three columns s, s + 1, s + 2 of a constraint, as far as it has them."""
    a, b, nv, number = min(s + 1, last), min(s + 2, last), tree.above.size, number_like(Psi, 0.0)
    x = y = z = number_like(rows.X, 0.0)
    for i in range(shared.size):
        k = shared[i]
        if not prescribed[k]:
            p = load(Psi, k) * load(rows.X, j * nv + k)
            x = x + p * get_cell(rows.X, nv, column + s, k, number)
            y = y + p * get_cell(rows.X, nv, column + a, k, number)
            z = z + p * get_cell(rows.X, nv, column + b, k, number)
    store(rows.G, j * m + start + s, x)
    store(rows.G, j * m + start + a, y)
    store(rows.G, j * m + start + b, z)


@primitive
def factor_constraints(work):
    """L D L^T of work.null, with gain, keep and order; work.size holds what diagonals are made of."""
    m, number = work.gain.shape[0], number_like(work.L, 0.0)
    for r in range(m):
        x = load(work.size, r)
        store(work.size, r, where_less(number, x, 1.0 / x, number))
        store(work.z, r, load(work.null, r * m + r))                     # the diagonal, as it is eaten up
        work.order[r] = r
    for s in range(m):
        take_row(s, best_row(s, work), work)


@primitive
def best_row(s, work):
    """Where in the order the row stands that step s takes: the next if its pivot is fair in all lanes, else the largest."""
    r = work.order[s]
    if all_less(FAIR - load(work.z, r) * load(work.size, r), 0.0):
        return s
    found, most = s, -np.inf
    for t in range(s, work.gain.shape[0]):
        r = work.order[t]
        x = load(work.z, r) * load(work.size, r)
        least = -largest(-x)
        value = least if least > DEPENDENT else largest(x) * DEPENDENT       # of no use in some lane: as good as in the others
        if value > most:
            found, most = t, value
    return found


@primitive
def take_row(s, t, work):
    """Step s takes the row at place t of the order. Rows that are still to be taken hold L D, those taken L."""
    m, L, zero = work.gain.shape[0], work.L, number_like(work.L, 0.0)
    p = work.order[t]
    work.order[t], work.order[s] = work.order[s], p
    for t in range(s):
        store(L, p * m + t, load(L, p * m + t) * load(work.gain, work.order[t]))
    d = load(work.z, p)
    ratio = d * load(work.size, p)
    gain = where_less(zero + DEPENDENT, ratio, 1.0 / d, zero)
    store(work.gain, p, gain)
    store(work.keep, p, where_less(zero + DEPENDENT, ratio, zero + 1.0, zero))
    for u in range(s + 1, m):
        r = work.order[u]
        x = load(work.null, r * m + p)
        for t in range(s):
            x = x - load(L, r * m + t) * load(L, p * m + t)
        store(L, r * m + s, x)
        store(work.z, r, load(work.z, r) - x * x * gain)


@primitive
def solve_constraints(rhs, work, out):
    """out (m) = the multipliers of least norm. work.z keeps, where a row is dependent, by how much rhs contradicts it."""
    m, L = work.gain.shape[0], work.L
    for s in range(m):
        p = work.order[s]
        x = load(rhs, p)
        for t in range(s):
            x = x - load(L, p * m + t) * load(work.z, work.order[t])
        store(work.z, p, x)
    for s in range(m - 1, -1, -1):
        p = work.order[s]
        x = load(work.z, p) * load(work.gain, p)
        for u in range(s + 1, m):
            x = x - load(L, work.order[u] * m + s) * load(out, work.order[u])
        store(out, p, x * load(work.keep, p))
    least_norm(work, out)


@callee
def least_norm(work, x):
    m, L, null = work.gain.shape[0], work.L, work.null
    zero, found = number_like(work.L, 0.0), 0
    for s in range(m):
        p = work.order[s]
        drop = 1.0 - load(work.keep, p)
        if all_less(drop, 0.5):
            continue
        o = found * m
        for r in range(m):
            store(null, o + r, zero)
        store(null, o + p, drop)
        for u in range(s - 1, -1, -1):
            y = zero
            for t in range(u + 1, s + 1):
                y = y - load(L, work.order[t] * m + u) * load(null, o + work.order[t])
            store(null, o + work.order[u], y * load(work.keep, work.order[u]))
        for j in range(found):
            take_off(null, o, null, j * m, m, zero)
        take_off(x, 0, null, o, m, zero)
        found += 1


@primitive
def take_off(x, o, y, p, m, zero):
    """x less its part along y (nothing where y is zero)."""
    xy, yy = zero, zero
    for k in range(m):
        xy, yy = xy + load(x, o + k) * load(y, p + k), yy + load(y, p + k) * load(y, p + k)
    f = where_less(zero, yy, xy / yy, zero)
    for k in range(m):
        store(x, o + k, load(x, o + k) - f * load(y, p + k))
