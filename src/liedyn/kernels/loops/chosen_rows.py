"""A M^-1 A^T lambda = rhs by rows that were chosen in advance: L D L^T in their order, without a decision on a number, so that a
line can hold it. The other multipliers are zero; accelerations do not depend on that (see `constraint_solver`)."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, number_like, store, where_less

FAIR = 1e-6          # a pivot, of what the row's diagonal is made of: below it six digits are lost, and other rows must be chosen


@primitive
def solve_chosen(rows, matrix, made, rhs, out, work):
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
                y = y - load(work, i * k + t) * load(work, j * k + t)
            store(work, i * k + j, y)
        for j in range(i):
            y = load(work, i * k + j)
            l = y * load(work, gain + j)
            d, x = d - y * l, x - l * load(work, z + j)
            store(work, i * k + j, l)
        pivot = d / load(made, p)
        store(work, gain + i, where_less(FAIR, pivot, 1.0 / d, zero))        # else infinite numbers hide why a run ends
        store(work, z + i, x)
        least = where_less(pivot, least, pivot, least)
    for r in range(m):
        store(out, r, zero)
    for i in range(k - 1, -1, -1):
        x = load(work, z + i) * load(work, gain + i)
        for u in range(i + 1, k):
            x = x - load(work, u * k + i) * load(out, rows[u])
        store(out, rows[i], x)
    return least
