"""The principal pivot transform U of M (see `pivot_transform`) of one state, eight columns side by side: what is not prescribed
is exchanged, from the leaves to the ground. With up to three coordinates P of a run at a time, and R for all that they move or
hang on,

    U_PP = M_PP^-1,   U_PR = -M_PP^-1 M_PR,   U_RP = M_RP M_PP^-1,   U_RR = M_RR - M_RP M_PP^-1 M_PR,

where M is what the exchanges before have left: its diagonal holds articulated inertias, S^T AI S + armature of K1 Table 3. Only
rows P are read. Columns are the same but for the sign, U_RP = -U_PR^T where R has been exchanged; were they read too, what
rounding makes of the difference would grow from exchange to exchange, and a chain of 150 joints be wrong by 1e-2."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.matrices import get, put


@primitive
def sweep(tree, prescribed, ways, M, F, A, rows):
    """From M (nv nv, by columns, read where a row hangs on the column) U, first in A (see `matrices.put`), and all of M, which
    follows after `rows` rows and is zero before. F (3 nv) is used up. Returns the largest shortfall of a pivot below where it is
    rounding."""
    U, deficit, r = A[:rows], -1.0, ways.free.size - 1
    both_halves(tree.above, M, A[rows:])
    for k in range(rows):
        store(A, k, load(A, rows + k))
    while r >= 0:
        c, b, a = ways.free[r], next_in_run(tree, ways, r), -1
        if b >= 0:
            a = next_in_run(tree, ways, r - 1)
        deficit = max(deficit, exchange(tree, prescribed, U, F, a, b, c))
        r -= 1 + (b >= 0) + (a >= 0)
    return deficit


@primitive
def both_halves(up, M, U):
    """Both halves of M into U, between coordinates and those on their ways `up`."""
    nv = up.size
    for k in range(nv):
        j = k
        while j >= 0:
            m = load(M, j * nv + k)
            put(U, nv, j, k, m)
            put(U, nv, k, j, m)
            j = up[j]


@primitive
def next_in_run(tree, ways, r):
    """The coordinate above ways.free[r] that is not prescribed, if no other such one hangs on it; or -1."""
    k, j = ways.free[r], ways.up[ways.free[r]]
    return j if r > 0 and j == ways.free[r - 1] and tree.last[j] == tree.last[k] else -1


@primitive
def exchange(tree, prescribed, U, F, a, b, c):
    """P = a < b < c. a, or a and b, may be missing: -1."""
    nv, last, top = tree.above.size, tree.last[c], (a if a >= 0 else b if b >= 0 else c)
    deficit, N = less_inverse(tree, U, a, b, c)
    i, blocks = last, 0
    while i >= 0:                                                      # M_RP, which leaves U
        x, y, z = 0.0, 0.0, 0.0
        if i != a and i != b and i != c:
            sign = -1.0 if i > c and not prescribed[i] else 1.0
            x = sign * get(U, nv, i, c, 0.0)
            put(U, nv, c, i, 0.0)
            if b >= 0:
                y = sign * get(U, nv, i, b, 0.0)
                put(U, nv, b, i, 0.0)
            if a >= 0:
                z = sign * get(U, nv, i, a, 0.0)
                put(U, nv, a, i, 0.0)
        store(F, 3 * i, x)
        store(F, 3 * i + 1, y)
        store(F, 3 * i + 2, z)
        blocks |= 1 << (i >> 3 & 63)                                   # others of the same number there hold zeros
        i = i - 1 if i > top else tree.above[i]
    b, a, o = (b if b >= 0 else c), (a if a >= 0 else c), 0
    for block in range((last >> 3) + 1):
        if blocks >> (block & 63) & 1:
            x, y, z = load(U, o + c), load(U, o + b), load(U, o + a)
            x, y, z = N[0] * x + N[1] * y + N[2] * z, N[1] * x + N[3] * y + N[4] * z, N[2] * x + N[4] * y + N[5] * z
            store(U, o + a, z)
            store(U, o + b, y)
            store(U, o + c, x)
            i = last
            while i >= 0:
                store(U, o + i, load(U, o + i) + x * load(F, 3 * i) + y * load(F, 3 * i + 1) + z * load(F, 3 * i + 2))
                i = i - 1 if i > top else tree.above[i]
        o += nv
    return deficit


@primitive
def less_inverse(tree, U, a, b, c):
    """-M_PP^-1, as cc, cb, ca, bb, ba, aa; in U -1 takes the place of M_PP. A missing coordinate is one for itself, of
    inertia 1."""
    nv = tree.above.size
    cc, cb, ca, bb, ba, aa = get(U, nv, c, c, 0.0), 0.0, 0.0, 1.0, 0.0, 1.0
    put(U, nv, c, c, -1.0)
    if b >= 0:
        bb, cb = get(U, nv, b, b, 0.0), get(U, nv, b, c, 0.0)
        put(U, nv, b, c, 0.0)
        put(U, nv, c, b, 0.0)
        put(U, nv, b, b, -1.0)
    if a >= 0:
        aa, ba, ca = get(U, nv, a, a, 0.0), get(U, nv, a, b, 0.0), get(U, nv, a, c, 0.0)
        put(U, nv, a, b, 0.0)
        put(U, nv, a, c, 0.0)
        put(U, nv, b, a, 0.0)
        put(U, nv, c, a, 0.0)
        put(U, nv, a, a, -1.0)
    deficit, cc = tree.floor[c] - cc, -1.0 / cc
    x, y = cb * cc, ca * cc                                            # L^T D L
    bb, ba, aa = bb + cb * x, ba + cb * y, aa + ca * y
    if b >= 0:
        deficit = max(deficit, tree.floor[b] - bb)
    bb = -1.0 / bb
    z = ba * bb
    aa = aa + ba * z
    if a >= 0:
        deficit = max(deficit, tree.floor[a] - aa)
    aa = -1.0 / aa
    ba = z * aa
    bb = bb + z * ba
    ca, cb = y * aa + x * ba, y * ba + x * bb
    return deficit, (cc + y * ca + x * cb, cb, ca, bb, ba, aa)


@primitive
def solve_by_rows(ways, x, A, rows):
    """x (nv) = M_vv^-1 x where not prescribed, from U and M (see `sweep`). The last two matrices of A are used up.

    U x leaves a rest that the factor would not leave, x - M U x: what solves that is added."""
    y, z = A[4 * rows:], A[5 * rows:]
    for k in ways.free:
        put(z, 1, k, 0, load(x, k))
    times(ways, A, z, y)
    times(ways, A[rows:], y, z)
    for k in ways.free:
        put(z, 1, k, 0, load(x, k) - get(z, 1, k, 0, 0.0))
        store(x, k, get(y, 1, k, 0, 0.0))
    times(ways, A, z, y)
    for k in ways.free:
        store(x, k, load(x, k) + get(y, 1, k, 0, 0.0))


@primitive
def times(ways, S, x, y):
    """y = S_vv x of a matrix that is symmetric there; x and y as rows of one (see `matrices.put`)."""
    nv, n = ways.up.size, ways.free.size
    for block in range((nv + 7) >> 3):
        o, p, q = block * nv, number_like(S, 0.0), number_like(S, 0.0)
        for r in range(0, n - 1, 2):                                   # two sums: less to wait for
            j, k = ways.free[r], ways.free[r + 1]
            p, q = p + load(S, o + j) * get(x, 1, j, 0, 0.0), q + load(S, o + k) * get(x, 1, k, 0, 0.0)
        if n & 1:
            k = ways.free[n - 1]
            p = p + load(S, o + k) * get(x, 1, k, 0, 0.0)
        store(y, block, p + q)
