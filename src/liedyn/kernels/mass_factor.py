"""M = L^T D L of eight states over the tree: L has entries only between a coordinate and what it hangs on, so it
is as sparse as the tree (Featherstone 2005). Coordinates that are not on `up`'s ways take no part: with those prescribed left
out, this is the factor of M_vv. The pivots D are the articulated inertias S^T AI S + armature of K1 Table 3.

Rows go by up to three of a chain, a above b above c (see `ways.chains`): what they hang on and what hangs on them is the
same but for themselves, so that their sums share loads and loops. Where there are less than three, the last stands in for what is
missing: what it would take from itself is zero (see `within`), and where rows follow from those above, it is stored first."""
from liedyn.jit import callee, primitive
from liedyn.kernels.limb_rows import less_scaled, six_less_scaled, store_six_from, store_three_from
from liedyn.kernels.ways import root, three_of
from liedyn.lie.lanes import load, maximum, number_like, store


@callee
def factor_mass(tree, ways, M, Psi):
    """M (nv nv, read where a row hangs on the column) becomes L, with D on its diagonal; and Psi (nv) = 1/D. Returns the largest
    shortfall of a pivot below where it is rounding: positive means that the joint has no inertia. Loads, but does not use, up
    to five numbers beyond M.

    Row k of L^T D L = M, from the leaves: D_k L_km = M_km - sum_j D_j L_jk L_jm over all j that hang on k."""
    run, deficit, r = ways.run, number_like(M, -1.0), ways.free.size
    while r > 0:
        s = r - ways.chain[r - 1]
        if r - s > 1:
            rows = three_of(ways.free, s, r)
            deficit = maximum(deficit, pivots(tree, ways, r, rows, M, Psi))
            j = ways.up[rows[0]]
            while j >= 0:
                first = max(run[j], j - 5)
                if j - first > 2:
                    six_of_factor(tree, ways, r, rows, first, j, M, Psi)
                else:
                    three_of_factor(tree, ways, r, rows, first, j, M, Psi)
                j = ways.up[first]
        else:
            deficit = maximum(deficit, row_of_factor(tree, ways, r, ways.free[s], M, Psi))
        r = s
    return deficit


@primitive
def row_of_factor(tree, ways, r, k, M, Psi):
    """One row. What hangs on it are free[r], …."""
    nv, o, end = tree.above.size, k * tree.above.size, ways.count[tree.last[k] + 1]
    pivot = load(M, o + k)
    for q in range(r, end):
        i = ways.free[q] * nv
        x = load(M, i + k)
        pivot = pivot - load(M, i + ways.free[q]) * x * x
    d, j = 1.0 / pivot, ways.up[k]
    store(M, o + k, pivot)
    store(Psi, k, d)
    while j >= 0:
        first = max(ways.run[j], j - 2)
        x = get_three_along(M, o + first)
        for q in range(r, end):
            i = ways.free[q] * nv
            x = less_scaled(x, get_three_along(M, i + first), load(M, i + ways.free[q]) * load(M, i + k))
        store_three_from(M, o, first, j + 1, scaled(x, d))
        j = ways.up[first]
    return load(tree.floor, k) - pivot


@primitive
def pivots(tree, ways, r, rows, M, Psi):
    """Of the rows a, b, c what stands between themselves. What hangs on them are free[r], …. Returns their shortfall."""
    a, b, c = rows
    nv, zero = tree.above.size, number_like(M, 0.0)
    cc, bb, aa = load(M, c * nv + c), load(M, b * nv + b), load(M, a * nv + a)
    cb, ca, ba = load(M, c * nv + b), load(M, c * nv + a), load(M, b * nv + a)
    for o in range(r, ways.count[tree.last[c] + 1]):
        i = ways.free[o] * nv
        d, x, y, z = load(M, i + ways.free[o]), load(M, i + a), load(M, i + b), load(M, i + c)
        p, q = d * z, d * y
        cc, cb, ca, bb, ba, aa = cc - p * z, cb - p * y, ca - p * x, bb - q * y, ba - q * x, aa - d * x * x
    d, x, y, z = 1.0 / cc, zero, zero, zero
    if b < c:
        z, y = d * cb, d * ca
        bb, ba, aa = bb - z * cb, ba - z * ca, aa - y * ca
        store(M, c * nv + b, z)
        store(M, c * nv + a, y)
    store(M, c * nv + c, cc)
    store(Psi, c, d)
    d = 1.0 / bb
    if a < b:
        x = d * ba
        aa = aa - x * ba
        store(M, b * nv + a, x)
    store(M, b * nv + b, bb)
    store(Psi, b, d)
    store(M, a * nv + a, aa)
    store(Psi, a, 1.0 / aa)
    # in this order: after a pivot of zero the others are NaN, which `maximum` passes over as its second argument only
    return maximum(maximum(load(tree.floor, c) - cc, load(tree.floor, b) - bb), load(tree.floor, a) - aa)


@primitive
def within(rows, nv, L):
    """L_ba, L_ca, L_cb; zero where the two are the same."""
    a, b, c = rows
    zero = number_like(L, 0.0)
    return (load(L, b * nv + a) if a < b else zero, load(L, c * nv + a) if b < c else zero,
            load(L, c * nv + b) if b < c else zero)


@primitive
def six_of_factor(tree, ways, r, rows, first, last, M, Psi):
    """Columns first … last of the rows."""
    (a, b, c), nv = rows, tree.above.size
    x, y, z = get_six_along(M, a * nv + first), get_six_along(M, b * nv + first), get_six_along(M, c * nv + first)
    for o in range(r, ways.count[tree.last[c] + 1]):
        i = ways.free[o] * nv
        d, l = load(M, i + ways.free[o]), get_six_along(M, i + first)
        x = six_less_scaled(x, l, d * load(M, i + a))
        y = six_less_scaled(y, l, d * load(M, i + b))
        z = six_less_scaled(z, l, d * load(M, i + c))
    ba, ca, cb = within(rows, nv, M)
    y = six_less_scaled(y, z, cb)
    x = six_less_scaled(six_less_scaled(x, z, ca), y, ba)
    store_six_from(M, a * nv, first, last + 1, six_scaled(x, load(Psi, a)))
    store_six_from(M, b * nv, first, last + 1, six_scaled(y, load(Psi, b)))
    if b < c:
        store_six_from(M, c * nv, first, last + 1, six_scaled(z, load(Psi, c)))


@primitive
def three_of_factor(tree, ways, r, rows, first, last, M, Psi):
    (a, b, c), nv = rows, tree.above.size
    x, y, z = get_three_along(M, a * nv + first), get_three_along(M, b * nv + first), get_three_along(M, c * nv + first)
    for o in range(r, ways.count[tree.last[c] + 1]):
        i = ways.free[o] * nv
        d, l = load(M, i + ways.free[o]), get_three_along(M, i + first)
        x = less_scaled(x, l, d * load(M, i + a))
        y = less_scaled(y, l, d * load(M, i + b))
        z = less_scaled(z, l, d * load(M, i + c))
    ba, ca, cb = within(rows, nv, M)
    y = less_scaled(y, z, cb)
    x = less_scaled(less_scaled(x, z, ca), y, ba)
    store_three_from(M, a * nv, first, last + 1, scaled(x, load(Psi, a)))
    store_three_from(M, b * nv, first, last + 1, scaled(y, load(Psi, b)))
    if b < c:
        store_three_from(M, c * nv, first, last + 1, scaled(z, load(Psi, c)))


@primitive
def scaled(x, m): return x[0] * m, x[1] * m, x[2] * m


@primitive
def six_scaled(x, m): return scaled(x[0], m), scaled(x[1], m)


@primitive
def get_three_along(A, o): return load(A, o), load(A, o + 1), load(A, o + 2)


@primitive
def get_six_along(A, o): return get_three_along(A, o), get_three_along(A, o + 3)


# what follows from the ground to the leaves -----------------------------------------------------------------------------
@primitive
def rows_by_roots(ways, L, E):
    """E, by columns: what rows of a limb K are of those of all A above it, wherever M N or M X is zero in K and behind.

    There L_KK x_K + L_KA x_A = 0, that is x_K = -E x_A with E = L_KK^-1 L_KA."""
    r = 0
    while r < ways.free.size:
        rows = three_of(ways.free, r, r + ways.chain[r])
        limb = ways.start[rows[0]]
        a = root(ways, rows[0], limb)
        while a >= 0:
            first = max(ways.run[a], a - 5)
            if a - first > 2:
                six_by_roots(ways.up, limb, rows, first, a, L, E)
            else:
                three_by_roots(ways.up, limb, rows, first, a, L, E)
            a = ways.up[first]
        r += ways.chain[r]


@primitive
def six_by_roots(up, limb, rows, first, last, L, E):
    """Columns first … last of the rows of E, from those of the limb's rows above."""
    (a, b, c), nv, i = rows, up.size, up[rows[0]]
    x, y, z = get_six_along(L, a * nv + first), get_six_along(L, b * nv + first), get_six_along(L, c * nv + first)
    while i >= limb:
        w = get_three_across(E, nv, first, i), get_three_across(E, nv, first + 3, i)
        x = six_less_scaled(x, w, load(L, a * nv + i))
        y = six_less_scaled(y, w, load(L, b * nv + i))
        z = six_less_scaled(z, w, load(L, c * nv + i))
        i = up[i]
    ba, ca, cb = within(rows, nv, L)
    y = six_less_scaled(y, x, ba)
    z = six_less_scaled(six_less_scaled(z, x, ca), y, cb)
    if b < c:
        put_six_across(E, nv, first, last, c, z)
    put_six_across(E, nv, first, last, b, y)
    put_six_across(E, nv, first, last, a, x)


@primitive
def three_by_roots(up, limb, rows, first, last, L, E):
    (a, b, c), nv, i = rows, up.size, up[rows[0]]
    x, y, z = get_three_along(L, a * nv + first), get_three_along(L, b * nv + first), get_three_along(L, c * nv + first)
    while i >= limb:
        w = get_three_across(E, nv, first, i)
        x = less_scaled(x, w, load(L, a * nv + i))
        y = less_scaled(y, w, load(L, b * nv + i))
        z = less_scaled(z, w, load(L, c * nv + i))
        i = up[i]
    ba, ca, cb = within(rows, nv, L)
    y = less_scaled(y, x, ba)
    z = less_scaled(less_scaled(z, x, ca), y, cb)
    if b < c:
        put_three_across(E, nv, first, last, c, z)
    put_three_across(E, nv, first, last, b, y)
    put_three_across(E, nv, first, last, a, x)


@primitive
def get_three_across(A, n, c, r): return load(A, c * n + r), load(A, (c + 1) * n + r), load(A, (c + 2) * n + r)


@primitive
def put_three_across(A, n, c, last, r, x):
    """x into columns c, c + 1, c + 2 <= last of row r."""
    store(A, c * n + r, x[0])
    if c + 1 <= last:
        store(A, (c + 1) * n + r, x[1])
    if c + 2 <= last:
        store(A, (c + 2) * n + r, x[2])


@primitive
def put_six_across(A, n, c, last, r, x):
    put_three_across(A, n, c, last, r, x[0])
    put_three_across(A, n, c + 3, last, r, x[1])
