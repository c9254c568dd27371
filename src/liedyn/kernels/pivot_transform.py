"""Coordinates that are prescribed (u) among others (v): the principal pivot transform of M over v,

    U_vv = M_vv^-1,   U_uv = M_uv U_vv,   U_vu = -U_uv^T,   U_uu = M_uu + M_uv U_vu,

which takes forces of v and accelerations of u to accelerations of v and forces of u. Of one state it is made by `mass_sweep`, of
eight by the factor, with sums over the rows of `mass_factor`'s M, which leaves what is prescribed."""
from liedyn.jit import apart, primitive
from liedyn.kernels.mass_factor import factor_mass, invert_mass, rows_by_roots
from liedyn.kernels.mass_sweep import both_halves, sweep
from liedyn.lie.lanes import load, number_like, store


@apart("M", one=sweep, eight=primitive)
def pivot_transform(tree, prescribed, ways, M, Psi, F, A, rows):
    """M, of which the factor takes the place (see `factor_mass`), becomes U, first in A; E of `rows_by_roots` follows, and in its
    prescribed rows M_uu, which must be zero before, after `rows` rows of each. What stands on different ground is not written.
    Returns the largest shortfall of a pivot below where it is rounding."""
    deficit = factor_mass(tree, prescribed, ways, M, Psi)
    rows_by_roots(tree, prescribed, ways, M, A[rows:2 * rows])
    invert_mass(tree, prescribed, ways, M, Psi, A, rows)
    if ways.given.size > 0:
        both_halves(ways.given, ways.held, M, A[rows:])
        from_inverse(tree, ways, M, A)
        by_inputs(tree, ways, M, A, rows)
    return deficit


@primitive
def from_inverse(tree, ways, M, A):
    """N, first in A, becomes U but for U_uu, where anything stands: U_uv = M_uv N, and U_vu."""
    nv, zero, t = tree.above.size, number_like(A, 0.0), 0
    none = zero, zero, zero
    while t < nv:
        end = ways.count[tree.last[t] + 1]
        for r in range(ways.count[t], end, 6):             # six columns stay near for all rows
            o = three_columns(ways.free, r, end, nv)
            if r + 3 < end:
                p = three_columns(ways.free, r + 3, end, nv)
                for u in range(*given_on_top(tree, ways, t)):
                    k = ways.given[u]
                    x, y = add_six_forces(tree, ways, M, k, A, o, p, none, none)
                    store_three(A, o, k, x)
                    store_three(A, p, k, y)
            else:
                for u in range(*given_on_top(tree, ways, t)):
                    k = ways.given[u]
                    store_three(A, o, k, add_forces(tree, ways, M, k, A, o, none))
        t = tree.last[t] + 1
    for k in ways.given:
        for r in range(ways.count[tree.top[k]], ways.count[tree.last[tree.top[k]] + 1]):
            j = ways.free[r]
            store(A, k * nv + j, -load(A, j * nv + k))


@primitive
def by_inputs(tree, ways, M, A, E):
    """U_uu = M_uu + M_uv U_vu, by its half below the diagonal; E: where M_uu begins in A."""
    nv, t = tree.above.size, 0
    while t < nv:
        first, end = given_on_top(tree, ways, t)
        for r in range(first, end, 3):
            o = three_columns(ways.given, r, end, nv)
            d = E + o[0], E + o[1], E + o[2]
            a, b, c = ways.given[r], ways.given[min(r + 1, end - 1)], ways.given[min(r + 2, end - 1)]
            for u in range(r, end):
                k = ways.given[u]
                x = add_forces(tree, ways, M, k, A, o, load_three(A, d, k))
                store_three(A, o, k, x)
                store_three(A, (a, b, c), k * nv, x)
        t = tree.last[t] + 1


@primitive
def by_rotations(tree, ways, M, A, D):
    """dtau_u by v of a floating base's rotations, in the place of dID_u, beside the da_v that `solve_vector` left there. D: where
    the matrix begins in A."""
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
def three_columns(columns, r, end, nv):
    """Where the columns columns[r], … begin, the last of them again if there are less than three."""
    return columns[r] * nv, columns[min(r + 1, end - 1)] * nv, columns[min(r + 2, end - 1)] * nv


@primitive
def add_forces(tree, ways, M, k, A, o, y):
    """y + M_kv x_v for three columns x, that begin at o in A."""
    nv, j = tree.above.size, ways.up[k]
    while j >= 0:
        y = add_scaled(y, load(M, k * nv + j), load_three(A, o, j))
        j = ways.up[j]
    for r in range(ways.count[k], ways.count[tree.last[k] + 1]):
        j = ways.free[r]
        y = add_scaled(y, load(M, j * nv + k), load_three(A, o, j))
    return y


@primitive
def add_six_forces(tree, ways, M, k, A, o, p, x, y):
    """The same for six columns, that begin at o and p: a sixth less to load, and more to do while a sum waits for itself."""
    nv, j = tree.above.size, ways.up[k]
    while j >= 0:
        m = load(M, k * nv + j)
        x, y = add_scaled(x, m, load_three(A, o, j)), add_scaled(y, m, load_three(A, p, j))
        j = ways.up[j]
    for r in range(ways.count[k], ways.count[tree.last[k] + 1]):
        j = ways.free[r]
        m = load(M, j * nv + k)
        x, y = add_scaled(x, m, load_three(A, o, j)), add_scaled(y, m, load_three(A, p, j))
    return x, y


@primitive
def load_three(A, o, k): return load(A, o[0] + k), load(A, o[1] + k), load(A, o[2] + k)


@primitive
def store_three(A, o, k, x):
    store(A, o[0] + k, x[0])
    store(A, o[1] + k, x[1])
    store(A, o[2] + k, x[2])


@primitive
def add_scaled(y, m, x): return y[0] + m * x[0], y[1] + m * x[1], y[2] + m * x[2]
