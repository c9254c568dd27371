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
        up[k] = up[j] if j >= 0 and prescribed[j] else j


@primitive
def free_coordinates(prescribed, room):
    """Writes the coordinates that are not prescribed in `room` (nv), and returns how many there are."""
    n = 0
    for k in range(prescribed.size):
        if not prescribed[k]:
            room[n] = k
            n += 1
    return n


@primitive
def factor_mass(tree, prescribed, up, M, Psi):
    """M (nv nv, read where a row hangs on the column) becomes L, and Psi (nv) = 1/D. Returns the largest shortfall of a pivot
    below where it is rounding: positive means that the joint has no inertia."""
    nv = up.size
    deficit = number_like(M, -1.0)
    for k in range(nv - 1, -1, -1):
        if prescribed[k]:
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
            i = up[i]
    return deficit


@primitive
def invert_mass(tree, prescribed, up, L, Psi, N):
    """N = M_vv^-1 by columns (see `lanes.put`), four Lanes at a time; zero in prescribed rows and columns.

    Row k of L N = D^-1 L^-T, of which the right side is zero left of the diagonal and Psi_k on it, gives
    N_kc = -sum_j L_kj N_jc for c < k, and N_kk = Psi_k - sum_j L_kj N_jk by symmetry."""
    nv, per = up.size, columns_in_lanes(L)
    kind, zero = number_like(Psi, 0.0), number_like(N, 0.0)
    for k in range(N.shape[0]):
        store(N, k, zero)
    for k in range(nv):
        if prescribed[k]:
            continue
        last = (k - 1) // per
        for b in range(tree.top[k] // per, last + 1, 4):
            o = (cell(per, nv, b, 0), cell(per, nv, min(b + 1, last), 0), cell(per, nv, min(b + 2, last), 0),
                 cell(per, nv, min(b + 3, last), 0))
            x, j = (zero, zero, zero, zero), up[k]
            while j >= 0:
                l, i = load(L, k * nv + j), cell(per, nv, 0, j)
                x = (x[0] - l * load(N, o[0] + i), x[1] - l * load(N, o[1] + i), x[2] - l * load(N, o[2] + i),
                     x[3] - l * load(N, o[3] + i))
                j = up[j]
            i = cell(per, nv, 0, k)
            store(N, o[0] + i, x[0])
            store(N, o[1] + i, x[1])
            store(N, o[2] + i, x[2])
            store(N, o[3] + i, x[3])
        d, j = load(Psi, k), up[k]
        for c in range(tree.top[k], k):                        # the other half
            if per == 1:
                put(N, nv, c, k, get(N, nv, k, c, kind))
            else:
                put(N, nv, k, c, get(N, nv, c, k, kind))
        while j >= 0:
            d = d - load(L, k * nv + j) * get(N, nv, k, j, kind)
            j = up[j]
        put(N, nv, k, k, d)


@primitive
def cell(per, nv, b, k):
    """Where N holds row k of the b-th Lanes of columns; of eight states, by symmetry, what stands together for all b."""
    return k * nv + b if per == 1 else b * nv + k


@primitive
def columns_in_lanes(factors):
    """How many columns of one state a Lanes holds, where the factors are of one state or of eight."""
    return 1 if states_in(factors) > 1 else 8


@primitive
def minus_product(tree, prescribed, free, Psi, N, W, Z, X, Y, start, end, both):
    """X = -N W, Y = -N Z for the Lanes of columns start … end - 1 of W and Z; X and Y begin with the first of them.

    Only the rows in `free` (not prescribed) are written, and of these only what hangs on the same top as the column. In a
    column, W and Z are read where its coordinate moves and on its way to the ground. If not `both`: X alone, and only Lanes
    with a prescribed coordinate among their columns."""
    nv, per, m = tree.above.size, columns_in_lanes(Psi), free.size - 1
    for r in range(0, m + 1, 6):                               # six rows of N stay near for all columns
        for b in range(start, end):
            low, high = rows_of_columns(tree, b * per, min(b * per + per, nv) - 1)
            if (tree.top[low] <= free[min(r + 5, m)] and free[r] <= tree.last[tree.top[high]]
                    and (both or any_prescribed(prescribed, b * per, min(b * per + per, nv)))):
                rows = (free[r], free[min(r + 1, m)], free[min(r + 2, m)], free[min(r + 3, m)], free[min(r + 4, m)],
                        free[min(r + 5, m)])
                six_rows(tree, prescribed, Psi, N, W, Z, X, Y, b * nv, (b - start) * nv, rows, low, high, both)


@primitive
def any_prescribed(prescribed, start, end):
    found = False
    for k in range(start, end):
        found = found or prescribed[k]
    return found


@primitive
def six_rows(tree, prescribed, Psi, N, W, Z, X, Y, base, to, rows, low, high, both):
    nv, kind, zero = tree.above.size, number_like(Psi, 0.0), number_like(W, 0.0)
    x = y = zero, zero, zero, zero, zero, zero
    for k in range(low, high + 1):
        if not prescribed[k]:
            n = get_six(N, nv, k, rows, kind)
            x = less_scaled(x, n, load(W, base + k))
            if both:
                y = less_scaled(y, n, load(Z, base + k))
    k = tree.above[low]
    while k >= 0:
        if not prescribed[k]:
            n = get_six(N, nv, k, rows, kind)
            x = less_scaled(x, n, load(W, base + k))
            if both:
                y = less_scaled(y, n, load(Z, base + k))
        k = tree.above[k]
    store_six(X, to, rows, x)
    if both:
        store_six(Y, to, rows, y)


@primitive
def get_six(N, nv, c, rows, kind):
    return (get(N, nv, c, rows[0], kind), get(N, nv, c, rows[1], kind), get(N, nv, c, rows[2], kind),
            get(N, nv, c, rows[3], kind), get(N, nv, c, rows[4], kind), get(N, nv, c, rows[5], kind))


@primitive
def store_six(X, to, rows, x):
    store(X, to + rows[0], x[0])
    store(X, to + rows[1], x[1])
    store(X, to + rows[2], x[2])
    store(X, to + rows[3], x[3])
    store(X, to + rows[4], x[4])
    store(X, to + rows[5], x[5])


@primitive
def less_scaled(x, n, w):
    return (x[0] - n[0] * w, x[1] - n[1] * w, x[2] - n[2] * w, x[3] - n[3] * w, x[4] - n[4] * w, x[5] - n[5] * w)


@primitive
def rows_of_columns(tree, c, d):
    """First and last row that differ from zero in columns c … d of derivatives, but for those on the way to the ground."""
    high = d
    for k in range(c, d + 1):
        high = max(high, tree.last[k])
    return c, high


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
