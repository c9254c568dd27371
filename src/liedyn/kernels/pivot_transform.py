"""Coordinates that are prescribed (u) among others (v): the principal pivot transform of M over v,

    U_vv = M_vv^-1,   U_uv = M_uv U_vv,   U_vu = -U_uv^T,   U_uu = M_uu + M_uv U_vu,

and prescribed rows of derivatives, dtau_u = dID_u + M_uv da_v. M is that of `mass_factor`, which leaves what is prescribed."""
from liedyn.jit import primitive
from liedyn.kernels.mass_factor import columns_in_lanes
from liedyn.lie.blocks import get, put, states_in
from liedyn.lie.lanes import load, number_like, store


@primitive
def pivot_transform(tree, ways, M, A, E):
    """N, first in A, becomes U; of one state but for U_uu, for which `force_rows` finds M_uu in the matrix that begins at E."""
    masses(tree, ways, M, A[E:])
    from_inverse(tree, ways, M, A)
    if states_in(M) > 1:
        by_inputs(tree, ways, M, A, E)


@primitive
def masses(tree, ways, M, U):
    """Prescribed rows of U: M_uu, and zero elsewhere, which those of eight states are already."""
    nv, per, zero = tree.above.size, columns_in_lanes(M), number_like(U, 0.0)
    if per > 1:
        for k in ways.given:
            for b in range(tree.top[k] // per, tree.last[tree.top[k]] // per + 1):
                store(U, b * nv + k, zero)
    for k in ways.given:
        j = k
        while j >= 0:
            m = load(M, k * nv + j)
            put(U, nv, j, k, m)
            put(U, nv, k, j, m)
            j = ways.held[j]


@primitive
def from_inverse(tree, ways, M, A):
    """N, first in A, becomes U (see above) but for U_uu, where anything stands: U_uv = M_uv N, and U_vu."""
    nv, kind, zero = tree.above.size, number_like(M, 0.0), number_like(A, 0.0)
    t = 0
    while t < nv:
        last = tree.last[t]
        first, end = columns_on_top(ways.count[t], ways.count[last + 1], t, last, M)
        for r in range(first, end, 3):                     # three columns stay near for all rows
            o = three_columns(ways.free, r, end, nv, M)
            for u in range(*given_on_top(tree, ways, t)):
                k = ways.given[u]
                store_three(A, o, k, add_forces(tree, ways, M, k, A, o, (zero, zero, zero)))
        t = last + 1
    for k in ways.given:
        for r in range(ways.count[tree.top[k]], ways.count[tree.last[tree.top[k]] + 1]):
            j = ways.free[r]
            put(A, nv, k, j, -get(A, nv, j, k, kind))


@primitive
def by_inputs(tree, ways, M, A, E):
    """U_uu = M_uu + M_uv U_vu of eight states; E: where M_uu begins in A."""
    nv, t = tree.above.size, 0
    while t < nv:
        first, end = given_on_top(tree, ways, t)
        for r in range(first, end, 3):
            o = three_columns(ways.given, r, end, nv, M)
            d = E + o[0], E + o[1], E + o[2]
            for u in range(first, end):
                k = ways.given[u]
                store_three(A, o, k, add_forces(tree, ways, M, k, A, o, load_three(A, d, k)))
        t = tree.last[t] + 1


@primitive
def by_rotations(tree, ways, M, A, D):
    """Of eight states, dtau_u by v of a floating base's rotations, in the place of dID_u, beside the da_v that `solve_vector`
    left there. D: where the matrix begins in A."""
    nv, t = tree.above.size, 0
    while t < nv:
        w, (first, end) = D + t * nv, given_on_top(tree, ways, t)
        for u in range(first, end if ways.loose[t] > 0 else first):
            k, o = ways.given[u], (w, w + nv, w + 2 * nv)
            store_three(A, o, k, add_forces(tree, ways, M, k, A, o, load_three(A, o, k)))
        t = tree.last[t] + 1


@primitive
def given_on_top(tree, ways, t):
    """Which of `ways.given` hang on the coordinate t: from, to."""
    end = tree.last[t] + 1
    return t - ways.count[t], end - ways.count[end]


@primitive
def columns_on_top(first, end, t, last, M):
    """Which Lanes of columns, and where they end: of eight states first … of a list, of one state the blocks of the coordinates
    t … last."""
    per = columns_in_lanes(M)
    return (t // per, last // per + 1) if per > 1 else (first, end)


@primitive
def three_columns(columns, r, end, nv, M):
    """Where the Lanes of columns r, … begin, the last of them again if there are less than three (see `columns_on_top`)."""
    a, b, c = r, min(r + 1, end - 1), min(r + 2, end - 1)
    return (a * nv, b * nv, c * nv) if columns_in_lanes(M) > 1 else (columns[a] * nv, columns[b] * nv, columns[c] * nv)


@primitive
def force_rows(tree, ways, M, A, D, X):
    """Of one state, prescribed rows of three matrices X: dtau_u = dID_u + M_uv da_v, where D holds dID, by the inputs M_uu, and
    the other rows of X da_v. D, X: where they begin in A."""
    nv, per = tree.above.size, columns_in_lanes(M)
    for k in ways.given:
        for b in range(tree.top[k] // per, tree.last[tree.top[k]] // per + 1):
            o, d = (X[0] + b * nv, X[1] + b * nv, X[2] + b * nv), (D[0] + b * nv, D[1] + b * nv, D[2] + b * nv)
            store_three(A, o, k, add_forces(tree, ways, M, k, A, o, load_three(A, d, k)))


@primitive
def add_forces(tree, ways, M, k, A, o, y):
    """y + M_kv x_v for three Lanes of columns x, that begin at o in A."""
    nv, j = tree.above.size, ways.up[k]
    while j >= 0:
        y = add_scaled(y, load(M, k * nv + j), load_three(A, o, j))
        j = ways.up[j]
    for r in range(ways.count[k], ways.count[tree.last[k] + 1]):
        j = ways.free[r]
        y = add_scaled(y, load(M, j * nv + k), load_three(A, o, j))
    return y


@primitive
def load_three(A, o, k): return load(A, o[0] + k), load(A, o[1] + k), load(A, o[2] + k)


@primitive
def store_three(A, o, k, x):
    store(A, o[0] + k, x[0])
    store(A, o[1] + k, x[1])
    store(A, o[2] + k, x[2])


@primitive
def add_scaled(y, m, x): return y[0] + m * x[0], y[1] + m * x[1], y[2] + m * x[2]
