"""Coordinates that are prescribed (u) among others (v): the principal pivot transform of M over v,

    U_vv = M_vv^-1,   U_uv = M_uv U_vv,   U_vu = -U_uv^T,   U_uu = M_uu + M_uv U_vu,

which takes forces of v and accelerations of u to accelerations of v and forces of u. Of one state it is made by `mass_sweep`, of
eight by the factor; limbs with nothing behind them follow from what they hang on, prescribed or not (see `invert_mass`), and the
rest is sums over the rows of M that the factor leaves."""
from liedyn.jit import apart, primitive
from liedyn.kernels.factor_inverse import invert_mass
from liedyn.kernels.limb_rows import less_scaled
from liedyn.kernels.mass_factor import (
    factor_mass,
    get_three_across,
    get_three_along,
    put_three_across,
    rows_by_roots,
    scaled,
)
from liedyn.kernels.mass_sweep import sweep
from liedyn.kernels.ways import nothing_behind, root, three_of
from liedyn.lie.lanes import load, number_like, store


@apart("M", one=sweep, eight=primitive)
def pivot_transform(tree, prescribed, ways, M, Psi, F, A, rows):
    """M, which must be zero between prescribed coordinates of different branches, and of which the factor takes the place (see
    `factor_mass`), becomes U, first in A; E of `rows_by_roots` and `forces_by_roots` follows, after `rows` rows of each. What
    stands on different ground is not written. Returns the largest shortfall of a pivot below where it is rounding."""
    deficit = factor_mass(tree, ways, M, Psi)
    rows_by_roots(ways, M, A[rows:2 * rows])
    if ways.given.size > 0:
        forces_by_roots(tree, ways, M, A[rows:])
    invert_mass(tree, prescribed, ways, M, Psi, A, rows)
    if ways.given.size > 0:
        from_inverse(tree, ways, M, A[:rows])
        by_inputs(tree, ways, M, A[:rows])
    return deficit


@primitive
def forces_by_roots(tree, ways, M, E):
    """Prescribed rows of E of limbs K with nothing behind them: where accelerations of K are -E_vA x_A (see `rows_by_roots`),
    forces are M_uA x_A + M_uK x_K = -E_uA x_A."""
    u = 0
    while u < ways.given.size:
        rows = three_of(ways.given, u, u + ways.held[u])
        s = ways.start[rows[0]]
        a = root(ways, rows[0], s) if nothing_behind(tree, ways, s) else -1
        while a >= 0:
            first = max(ways.run[a], a - 2)
            three_forces_by_roots(tree, ways, s, rows, first, a, M, E)
            a = ways.up[first]
        u += ways.held[u]


@primitive
def three_forces_by_roots(tree, ways, s, rows, first, last, M, E):
    """Columns first … last of the rows a, b, c."""
    (a, b, c), nv, i = rows, tree.above.size, ways.up[rows[0]]
    x, y, z = get_three_along(M, a * nv + first), get_three_along(M, b * nv + first), get_three_along(M, c * nv + first)
    while i >= s:
        w = get_three_across(E, nv, first, i)
        x = less_scaled(x, w, load(M, a * nv + i))
        y = less_scaled(y, w, load(M, b * nv + i))
        z = less_scaled(z, w, load(M, c * nv + i))
        i = ways.up[i]
    for r in range(ways.count[a], ways.count[tree.last[a] + 1]):
        i = ways.free[r]
        w = get_three_across(E, nv, first, i)
        x = less_scaled(x, w, load(M, i * nv + a))
        y = less_scaled(y, w, load(M, place(b, i, nv)))
        z = less_scaled(z, w, load(M, place(c, i, nv)))
    put_three_across(E, nv, first, last, a, scaled(x, -1.0))
    put_three_across(E, nv, first, last, b, scaled(y, -1.0))
    put_three_across(E, nv, first, last, c, scaled(z, -1.0))


@primitive
def from_inverse(tree, ways, M, U):
    """U_uv = M_uv U_vv and U_vu, where `invert_mass` left it out."""
    u = 0
    while u < ways.given.size:
        rows = three_of(ways.given, u, u + ways.held[u])
        first, end = met_by_sums(tree, ways, ways.start[rows[0]])
        for r in range(ways.count[first], ways.count[end], 3):
            columns = three_of(ways.free, r, min(r + 3, ways.count[end]))
            sums_into(tree, ways, M, U, rows, columns, -1.0)
        u += ways.held[u]


@primitive
def by_inputs(tree, ways, M, U):
    """U_uu = M_uu + M_uv U_vu, where `invert_mass` left it out."""
    u = 0
    while u < ways.given.size:
        rows = three_of(ways.given, u, u + ways.held[u])
        s, after = ways.start[rows[0]], u + ways.held[u]
        first, end = met_by_sums(tree, ways, s)
        r, last = first - ways.count[first], end - ways.count[end]
        if nothing_behind(tree, ways, s):                      # rows after these meet them as columns
            last = after
        while r < last:
            sums_into(tree, ways, M, U, rows, three_of(ways.given, r, min(r + 3, last)), 1.0)
            r += 3
        u = after


@primitive
def met_by_sums(tree, ways, s):
    """Which columns `invert_mass` left out of the prescribed rows of a limb that starts with s: from, to."""
    if nothing_behind(tree, ways, s):
        return s, tree.last[s] + 1
    return tree.top[s], tree.last[tree.top[s]] + 1


@primitive
def sums_into(tree, ways, M, U, rows, columns, sign):
    """M_u + M_uv U_v of prescribed rows (see `ways.chains`) and three columns; and what is the same by symmetry, but for the
    sign. Of columns that are not prescribed there is no M_u."""
    (i, j, k), (a, b, c), nv, zero = columns, rows, tree.above.size, number_like(U, 0.0)
    o, x = (i * nv, j * nv, k * nv), ((zero, zero, zero), (zero, zero, zero), (zero, zero, zero))
    if sign > 0.0:
        x = masses(M, columns, a, nv), masses(M, columns, b, nv), masses(M, columns, c, nv)
    x = add_forces(tree, ways, M, rows, U, o, x)
    both_ways(U, nv, a, columns, x[0], sign)
    if a < b:
        both_ways(U, nv, b, columns, x[1], sign)
    if b < c:
        both_ways(U, nv, c, columns, x[2], sign)


@primitive
def both_ways(U, nv, r, columns, x, sign):
    i, j, k = columns
    store_three(U, (i * nv, j * nv, k * nv), r, x)
    store_three(U, columns, r * nv, scaled(x, sign))


@primitive
def masses(M, columns, k, nv):
    i, j, l = columns
    return load(M, place(i, k, nv)), load(M, place(j, k, nv)), load(M, place(l, k, nv))


@primitive
def by_rotations(tree, ways, M, A, D):
    """dtau_u by v of a floating base's rotations, in the place of dID_u, beside the da_v that `solve_vector` left there. D: where
    the matrix begins in A."""
    nv, u = tree.above.size, 0
    while u < ways.given.size:
        rows = three_of(ways.given, u, u + ways.held[u])
        t = tree.top[rows[0]]
        if ways.loose[t] > 0:
            o = D + t * nv, D + (t + 1) * nv, D + (t + 2) * nv
            store_block(A, o, rows, add_forces(tree, ways, M, rows, A, o, load_block(A, o, rows)))
        u += ways.held[u]


@primitive
def add_forces(tree, ways, M, rows, A, o, y):
    """y + M_uv x_v of the rows a, b, c (see `ways.chains`) for three columns x, that begin at o in A."""
    (a, b, c), nv, j = rows, tree.above.size, ways.up[rows[0]]
    p, q, w = y
    while j >= 0:
        x = load_three(A, o, j)
        p = add_scaled(p, load(M, a * nv + j), x)
        q = add_scaled(q, load(M, b * nv + j), x)
        w = add_scaled(w, load(M, c * nv + j), x)
        j = ways.up[j]
    for r in range(ways.count[a], ways.count[tree.last[a] + 1]):
        j = ways.free[r]
        x = load_three(A, o, j)
        p = add_scaled(p, load(M, j * nv + a), x)
        q = add_scaled(q, load(M, place(b, j, nv)), x)
        w = add_scaled(w, load(M, place(c, j, nv)), x)
    return p, q, w


@primitive
def place(j, k, nv):
    """Of the entry of a symmetric matrix that stands below the diagonal."""
    return max(j, k) * nv + min(j, k)


@primitive
def load_block(A, o, rows): return load_three(A, o, rows[0]), load_three(A, o, rows[1]), load_three(A, o, rows[2])


@primitive
def store_block(A, o, rows, x):
    store_three(A, o, rows[0], x[0])
    store_three(A, o, rows[1], x[1])
    store_three(A, o, rows[2], x[2])


@primitive
def load_three(A, o, k): return load(A, o[0] + k), load(A, o[1] + k), load(A, o[2] + k)


@primitive
def store_three(A, o, k, x):
    store(A, o[0] + k, x[0])
    store(A, o[1] + k, x[1])
    store(A, o[2] + k, x[2])


@primitive
def add_scaled(y, m, x): return y[0] + m * x[0], y[1] + m * x[1], y[2] + m * x[2]
