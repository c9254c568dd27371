"""A M^-1 A^T lambda = rhs for constraints that may depend on each other: L D L^T that leaves out rows without a pivot.

Rows are taken in their order; one whose pivot vanishes follows from those before it and gets no multiplier of its own.
Then, among all solutions, the one of least Euclidean norm: what lies in the null space is taken off. The acceleration
does not depend on that choice. All on numbers: in Lanes each state has its own dependent rows."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import callee, primitive
from liedyn.joints.closures import FIRST, ROW_COUNT
from liedyn.kernels.loop_rows import column_of, numbers_of
from liedyn.lie.lanes import all_less, get_cell, load, number_like, store, where_less

DEPENDENT = 1e-10         # of what the row's diagonal is made of: a sine of 1e-5 between a row and what it depends on


class SolverWork(NamedTuple):
    L: np.ndarray         # (m m,) A M^-1 A^T, then its factor below the diagonal
    gain: np.ndarray      # (m,) 1/D, 0 where dependent
    keep: np.ndarray      # (m,) 1, or 0 where dependent
    z: np.ndarray         # (m,)
    null: np.ndarray      # (m m,) null vectors, made orthogonal
    shared: np.ndarray    # (nv,) int64: coordinates that two constraints share


@primitive
def solver_work(memory, shared, m):
    x, k = memory, m * m
    return SolverWork(x[:k], x[k:k + m], x[k + m:k + 2 * m], x[k + 2 * m:k + 3 * m], x[k + 3 * m:2 * k + 3 * m], shared)


def solver_memory(m): return 2 * m * m + 3 * m


@primitive
def form(tree, loops, prescribed, Psi, rows, work):
    """X D^-1 X^T over the coordinates that two constraints share and that are not prescribed: the lower half into work.L."""
    m, number, pair = work.gain.shape[0], number_like(Psi, 0.0), 0
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
                for s in range(start, min(start + size, first + r + 1)):
                    store(work.L, (first + r) * m + s, get_cell(rows.G, m, own + r, s, number))
            pair += 1


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
def factor_constraints(loops, size, work):
    """L D L^T in place; writes gain and keep. size (3 a row): what a diagonal is made of, first."""
    for c in range(loops.record.shape[0]):
        first = loops.record[c, FIRST]
        column = column_of(loops, c, 0, number_like(work.L, 0.0))
        for r in range(loops.record[c, ROW_COUNT]):
            factor_row(first + r, get_cell(size, 3, column + r, 0, number_like(work.L, 0.0)), work)


@primitive
def factor_row(r, size, work):
    m, L, zero = work.gain.shape[0], work.L, number_like(work.L, 0.0)
    one = zero + 1.0
    d = load(L, r * m + r)
    for s in range(r):
        x = load(L, r * m + s)                             # L_rs D_s
        for t in range(s):
            x = x - load(L, r * m + t) * load(L, s * m + t)
        store(L, r * m + s, x)
    for s in range(r):
        x = load(L, r * m + s)
        l = x * load(work.gain, s)
        d = d - x * l
        store(L, r * m + s, l)
    floor = DEPENDENT * size
    store(work.keep, r, where_less(floor, d, one, zero))
    store(work.gain, r, where_less(floor, d, 1.0 / d, zero))


@primitive
def solve_constraints(rhs, work, out):
    """out (m) = the multipliers of least norm. work.z keeps, where a row is dependent, by how much rhs contradicts it."""
    m, L = work.gain.shape[0], work.L
    for r in range(m):
        x = load(rhs, r)
        for s in range(r):
            x = x - load(L, r * m + s) * load(work.z, s)
        store(work.z, r, x)
    for r in range(m - 1, -1, -1):
        x = load(work.z, r) * load(work.gain, r)
        for s in range(r + 1, m):
            x = x - load(L, s * m + r) * load(out, s)
        store(out, r, x * load(work.keep, r))
    least_norm(work, out)


@callee
def least_norm(work, x):
    m, L, null = work.gain.shape[0], work.L, work.null
    zero, found = number_like(work.L, 0.0), 0
    for p in range(m):
        drop = 1.0 - load(work.keep, p)
        if all_less(drop, 0.5):
            continue
        o = found * m
        for r in range(m):
            store(null, o + r, zero)
        store(null, o + p, drop)
        for r in range(p - 1, -1, -1):
            y = zero
            for s in range(r + 1, p + 1):
                y = y - load(L, s * m + r) * load(null, o + s)
            store(null, o + r, y * load(work.keep, r))
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
