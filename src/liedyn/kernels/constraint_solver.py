"""A M^-1 A^T lambda = rhs for constraints that may depend on each other: L D L^T that leaves out rows without a pivot.

Rows are taken in their order; one whose pivot vanishes follows from those before it and gets no multiplier of its own.
Then, among all solutions, the one of least Euclidean norm: what lies in the null space is taken off. The acceleration
does not depend on that choice. All on numbers: in Lanes each state has its own dependent rows."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.kinds import NV
from liedyn.lie.lanes import all_less, load, number_like, store, where_less

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
def form(tree, loops, prescribed, Psi, X, work):
    """The lower half of X D^-1 X^T over the coordinates that two constraints share and that are not prescribed."""
    nv, m = tree.above.size, work.gain.shape[0]
    for c in range(loops.kind.size):
        for d in range(c + 1):
            count = shared_coordinates(tree, loops, prescribed, c, d, work.shared)
            for r in range(loops.first[c], loops.first[c] + loops.rows[c]):
                for s in range(loops.first[d], min(loops.first[d] + loops.rows[d], r + 1)):
                    x = number_like(X, 0.0)
                    for j in range(count):
                        k = work.shared[j]
                        x = x + load(X, r * nv + k) * load(Psi, k) * load(X, s * nv + k)
                    store(work.L, r * m + s, x)


@primitive
def shared_coordinates(tree, loops, prescribed, c, d, shared):
    """Merges the chains of two constraints, which both stand children first."""
    i, j, count = loops.chain[c], loops.chain[d], 0
    last_i, last_j = i + loops.length[c], j + loops.length[d]
    while i < last_i and j < last_j:
        a, b = loops.chains[i], loops.chains[j]
        if a == b:
            for k in range(tree.iv[a], tree.iv[a] + NV[tree.kind[a]]):
                if not prescribed[k]:
                    shared[count] = k
                    count += 1
        i, j = i + (1 if a >= b else 0), j + (1 if b >= a else 0)
    return count


@primitive
def factor_constraints(size, work):
    """L D L^T in place; writes gain and keep. size (m): what a diagonal is made of."""
    m, L, zero = work.gain.shape[0], work.L, number_like(work.L, 0.0)
    one = zero + 1.0
    for r in range(m):
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
        floor = DEPENDENT * load(size, r)
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


@primitive
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
