"""M = L^T D L over the tree, and its solutions: L has entries only between a coordinate and what it hangs on, so it is as
sparse as the tree (Featherstone 2005). Coordinates that are not on `up`'s ways take no part: with those prescribed left
out, this is the factor of M_vv. The pivots D are the articulated inertias S^T AI S + armature of K1 Table 3."""
from liedyn.jit import primitive
from liedyn.lie.lanes import get, load, maximum, number_like, put, states_in, store

# N, W, X hold columns of matrices, Lanes all: of eight states, or eight columns of one state (`lanes.put`).


@primitive
def free_paths(tree, prescribed, up):
    """up (nv): the nearest coordinate above that is not prescribed, or -1."""
    for k in range(up.size):
        j = tree.above[k]
        while j >= 0 and prescribed[j]:
            j = up[j]
        up[k] = j


@primitive
def factor_mass(tree, prescribed, up, M, Psi):
    """M (nv nv, read where a row hangs on the column) becomes L, in both halves, and Psi (nv) = 1/D. Returns the largest
    shortfall of a pivot below where it is rounding: positive means that the joint has no inertia."""
    nv = up.size
    zero = number_like(M, 0.0)
    deficit = zero - 1.0
    for k in range(nv - 1, -1, -1):
        if prescribed[k]:
            clear_cross(tree, M, k, zero)
            continue
        d = load(M, k * nv + k)
        deficit = maximum(deficit, load(tree.floor, k) - d)
        x, i = 1.0 / d, up[k]
        store(Psi, k, x)
        while i >= 0:
            l, j = load(M, k * nv + i) * x, i
            while j >= 0:
                store(M, i * nv + j, load(M, i * nv + j) - l * load(M, k * nv + j))
                j = up[j]
            store(M, k * nv + i, l)
            store(M, i * nv + k, l)
            i = up[i]
    return deficit


@primitive
def clear_cross(tree, M, k, zero):
    """No factor between k and what it hangs on, or what hangs on it."""
    nv, j = tree.above.size, tree.above[k]
    while j >= 0:
        store(M, j * nv + k, zero)
        j = tree.above[j]
    for j in range(k + 1, tree.last[k] + 1):
        store(M, k * nv + j, zero)


# Four columns at a time: each factor is loaded once for four.
@primitive
def load_row(X, row, nv): return load(X, row), load(X, row + nv), load(X, row + 2 * nv), load(X, row + 3 * nv)


@primitive
def store_row(X, row, nv, x):
    store(X, row, x[0])
    store(X, row + nv, x[1])
    store(X, row + 2 * nv, x[2])
    store(X, row + 3 * nv, x[3])


@primitive
def less(x, l, y): return x[0] - l * y[0], x[1] - l * y[1], x[2] - l * y[2], x[3] - l * y[3]


@primitive
def invert_mass(tree, prescribed, up, L, Psi, N):
    """N = M_vv^-1 by columns (see `lanes.put`), in fours of Lanes; zero in prescribed rows and columns."""
    nv, columns = up.size, columns_in_lanes(L)
    zero, one = number_like(N, 0.0), number_like(Psi, 1.0)
    for k in range(N.shape[0]):
        store(N, k, zero)
    for k in range(nv):
        if not prescribed[k]:
            put(N, nv, k, k, one)
    for c in range(0, nv, 4 * columns):
        solve_four(tree, prescribed, up, L, Psi, N, c * nv // columns, c, min(c + 4 * columns, nv) - 1)


@primitive
def columns_in_lanes(factors):
    """How many columns of one state a Lanes holds, where the factors are of one state or of eight."""
    return 1 if states_in(factors) > 1 else 8


@primitive
def solve_four(tree, prescribed, up, L, Psi, X, base, low, high):
    """x = M^-1 b for four Lanes of columns of X, the first at `base`, in place. b is zero but in rows low … high and on the
    way from `low` to the ground, x but in what hangs on the same tops."""
    nv = up.size
    for k in range(high, low - 1, -1):                               # y = L^-T b
        if not prescribed[k]:
            y = load_row(X, base + k, nv)
            for j in range(k + 1, min(high, tree.last[k]) + 1):
                y = less(y, load(L, k * nv + j), load_row(X, base + j, nv))
            store_row(X, base + k, nv, y)
    k = up[low]
    while k >= 0:
        y, j = load_row(X, base + k, nv), up[low]
        while j != k:
            y = less(y, load(L, k * nv + j), load_row(X, base + j, nv))
            j = up[j]
        for j in range(low, min(high, tree.last[k]) + 1):
            y = less(y, load(L, k * nv + j), load_row(X, base + j, nv))
        store_row(X, base + k, nv, y)
        k = up[k]
    for k in range(tree.top[low], tree.last[tree.top[high]] + 1):    # x = L^-1 D^-1 y
        if not prescribed[k]:
            y, d, j = load_row(X, base + k, nv), load(Psi, k), up[k]
            x = d * y[0], d * y[1], d * y[2], d * y[3]
            while j >= 0:
                x = less(x, load(L, k * nv + j), load_row(X, base + j, nv))
                j = up[j]
            store_row(X, base + k, nv, x)


@primitive
def minus_product(tree, Psi, N, W, X, columns):
    """X = -N W, by columns, in pairs of Lanes; `columns` in all. W is zero in a column but in what hangs on its coordinate
    and on the way from there to the ground; X, and left as it is, but in what hangs on the same top."""
    nv, per = tree.above.size, columns_in_lanes(Psi)
    kind, zero = number_like(Psi, 0.0), number_like(W, 0.0)
    none = zero, zero, zero, zero
    for c in range(0, columns, 2 * per):
        base = c // per * nv
        low, high = rows_of_columns(tree, c, min(c + 2 * per, columns) - 1)
        end = tree.last[tree.top[high]]
        for r in range(tree.top[low], end + 1, 4):
            rows = r, min(r + 1, end), min(r + 2, end), min(r + 3, end)
            x, y = none, none
            for k in range(low, high + 1):
                n = get_four(N, nv, k, rows, kind)
                x, y = less_scaled(x, n, load(W, base + k)), less_scaled(y, n, load(W, base + nv + k))
            k = tree.above[low]
            while k >= 0:
                n = get_four(N, nv, k, rows, kind)
                x, y = less_scaled(x, n, load(W, base + k)), less_scaled(y, n, load(W, base + nv + k))
                k = tree.above[k]
            for a in range(4):
                store(X, base + rows[a], x[a])
                store(X, base + nv + rows[a], y[a])


@primitive
def get_four(N, nv, c, rows, kind):
    return (get(N, nv, c, rows[0], kind), get(N, nv, c, rows[1], kind), get(N, nv, c, rows[2], kind),
            get(N, nv, c, rows[3], kind))


@primitive
def less_scaled(x, n, w): return x[0] - n[0] * w, x[1] - n[1] * w, x[2] - n[2] * w, x[3] - n[3] * w


@primitive
def rows_of_columns(tree, c, d):
    """First and last row that differ from zero in columns c … d of derivatives, but for those on the way to the ground."""
    nv = tree.above.size
    if c // nv != d // nv:
        return 0, nv - 1
    low, high = c % nv, d % nv
    for k in range(low, d % nv + 1):
        high = max(high, tree.last[k])
    return low, high


@primitive
def solve_vector(tree, prescribed, up, L, Psi, x):
    """x (nv) = M^-1 x in place, where not prescribed."""
    nv = up.size
    for k in range(nv - 1, -1, -1):
        if not prescribed[k]:
            y, j = load(x, k), up[k]
            while j >= 0:
                store(x, j, load(x, j) - load(L, k * nv + j) * y)
                j = up[j]
    for k in range(nv):
        if not prescribed[k]:
            y, j = load(Psi, k) * load(x, k), up[k]
            while j >= 0:
                y = y - load(L, k * nv + j) * load(x, j)
                j = up[j]
            store(x, k, y)
