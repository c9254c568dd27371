"""The principal pivot transform U of M (see `pivot_transform`) of eight states, limb by limb: K is a limb, A what it hangs on.

From the leaves to the ground, in the rows and columns of K and A alone, what is not prescribed in K is swept, up to three
coordinates P at a time. With R for the others,

    S_PP = -M_PP^-1,    S_RP = M_RP M_PP^-1,    S_RR = M_RR - M_RP M_PP^-1 M_PR,

where M is what the sweeps before have left: its diagonal holds articulated inertias, S^T AI S + armature of K1 Table 3. S stays
symmetric; only its lower half is there, in the places of M. What is left of a limb tells what it does if of A only the
accelerations are known: its own are -E x_A with E = S_KA, and so are its forces where it is prescribed, with E = -S_KA. From the
ground to the leaves, then, with A for what is not prescribed of it,

    U_Kc = -E U_Ac  for c before K,    U_KK = -E U_AK + (S_uu, S_uv, -S_vu, -S_vv),

and where c is prescribed and K hangs on it, -E_Kc more.

A right side y is one more row, which is never swept: there y_v^T M_vv^-1 and y_u - M_uv M_vv^-1 y_v are left."""
from liedyn.jit import callee, primitive
from liedyn.kernels.derivatives.limb_rows import limb_rows
from liedyn.kernels.derivatives.ways import end_of_rows
from liedyn.lie.lanes import load, maximum, number_like, store
from liedyn.lie.rows import load3, store3
from liedyn.lie.vec3 import dot3, sym3


@callee
def sweep_limbs(tree, prescribed, ways, M, sides, F, order):
    """M by columns, read where a row hangs on the column, becomes S, and E in rows of a limb and columns of what it hangs on;
    above the diagonal anything is written. sides (4 nv): a right side, and for what hangs on a floating base (see `Ways`) three
    more. F (3 nv), order (nv): scratch. Returns a positive number if a pivot is below where it is rounding."""
    nv, deficit, e = prescribed.size, number_like(M, -1.0), prescribed.size
    while e > 0:
        s, r, many = ways.start[e - 1], ways.count[e], ways.loose[tree.top[e - 1]] > 0
        clear_branches(tree, s, e, M)
        while r > ways.count[s]:
            first = max(r - 3, ways.count[s])
            if r - first > 1:
                deficit = maximum(deficit, sweep_three(tree, ways, s, e, first, r, M, sides, many, F, order))
            else:
                deficit = maximum(deficit, sweep_one(tree, s, e, ways.free[first], M, sides, many, F, order))
            r = first
        a = tree.above[s]
        while a >= 0:
            for k in range(s, e):
                if prescribed[k]:
                    store(M, a * nv + k, -load(M, a * nv + k))
            a = tree.above[a]
        e = s
    return deficit


@primitive
def clear_branches(tree, s, e, M):
    """Zeros between branches of a limb: its fingers."""
    nv, zero = tree.above.size, number_like(M, 0.0)
    for k in range(s + 1, e):
        for c in range(max(tree.above[k] + 1, s), k):                  # branched off before
            for r in range(k, tree.last[k] + 1):
                store(M, c * nv + r, zero)


@primitive
def others(tree, s, e, P, order):
    """A and K without P into `order`; how many."""
    n, k = 0, tree.above[s]
    while k >= 0:
        n, k = n + 1, tree.above[k]
    m, k = n, tree.above[s]
    while k >= 0:
        m = m - 1
        order[m] = k
        k = tree.above[k]
    for k in range(s, e):
        if k != P[0] and k != P[1] and k != P[2]:
            order[n] = k
            n += 1
    return n


@primitive
def sweep_three(tree, ways, s, e, first, end, M, sides, many, F, order):
    """P are free[first] … free[end - 1], three, or two: then the upper stands for what is missing."""
    nv, P, three = tree.above.size, (ways.free[end - 1], ways.free[end - 2], ways.free[first]), end - first > 2
    n = others(tree, s, e, P, order)
    deficit, N = inverse_of_three(tree, P, three, M)
    for q in range(n):
        i = order[q]
        store3(F, 3 * q, (load(M, place(i, P[0], nv)), load(M, place(i, P[1], nv)), load(M, place(i, P[2], nv))))
    for q in range(0, n, 4):
        f, g, h = min(q + 1, n - 1), min(q + 2, n - 1), min(q + 3, n - 1)
        i, j, k, l = order[q], order[f], order[g], order[h]
        x = swept(M, nv, i, P, three, N, F, q), swept(M, nv, j, P, three, N, F, f)
        y = swept(M, nv, k, P, three, N, F, g), swept(M, nv, l, P, three, N, F, h)
        less_products(M, order, nv, min(q + 4, n), (i, j, k, l), (x[0], x[1], y[0], y[1]), F)
    g = swept_side(sides, 0, P, three, N)
    if many:
        h = swept_side(sides, nv, P, three, N), swept_side(sides, 2 * nv, P, three, N), swept_side(sides, 3 * nv, P, three, N)
        less_products(sides, order, 1, n, (0, nv, 2 * nv, 3 * nv), (g, h[0], h[1], h[2]), F)
    else:
        for q in range(n):
            store(sides, order[q], load(sides, order[q]) - dot3(g, load3(F, 3 * q)))
    return deficit


@primitive
def swept(M, nv, i, P, three, N, F, q):
    """S_iP = M_iP M_PP^-1 in the place of M_iP, which is F_q."""
    x = sym3(N, load3(F, 3 * q))
    store(M, place(i, P[0], nv), x[0])
    store(M, place(i, P[1], nv), x[1])
    if three:
        store(M, place(i, P[2], nv), x[2])
    return x


@primitive
def swept_side(sides, o, P, three, N):
    x = sym3(N, (load(sides, o + P[0]), load(sides, o + P[1]), load(sides, o + P[2])))
    store(sides, o + P[0], x[0])
    store(sides, o + P[1], x[1])
    if three:
        store(sides, o + P[2], x[2])
    return x


@primitive
def less_products(M, order, step, end, rows, S, F):
    """M_ij - S_iP M_Pj of four rows i and the columns order[0] … order[end - 1], which stand `step` apart. M_Pj are F."""
    (i, j, k, l), (a, b, c, d) = rows, S
    for q in range(end):
        o, y = order[q] * step, load3(F, 3 * q)
        p, q, r, s = load(M, o + i), load(M, o + j), load(M, o + k), load(M, o + l)
        p, q, r, s = p - dot3(a, y), q - dot3(b, y), r - dot3(c, y), s - dot3(d, y)
        store(M, o + i, p)
        store(M, o + j, q)
        store(M, o + k, r)
        store(M, o + l, s)


@primitive
def sweep_one(tree, s, e, c, M, sides, many, F, order):
    nv = tree.above.size
    n, d = others(tree, s, e, (c, c, c), order), load(M, c * nv + c)
    N = 1.0 / d
    store(M, c * nv + c, -N)
    for q in range(n):
        store(F, q, load(M, place(order[q], c, nv)))
    for q in range(0, n, 2):
        p = min(q + 1, n - 1)
        i, j, g, h = order[q], order[p], N * load(F, q), N * load(F, p)
        store(M, place(i, c, nv), g)
        store(M, place(j, c, nv), h)
        for r in range(q + 1):
            o, y = order[r] * nv, load(F, r)
            x = load(M, o + i) - g * y, load(M, o + j) - h * y
            store(M, o + i, x[0])
            store(M, o + j, x[1])
        if p > q:
            store(M, j * nv + j, load(M, j * nv + j) - h * load(F, p))
    for t in range(0, 4 * nv if many else nv, nv):
        h = N * load(sides, t + c)
        store(sides, t + c, h)
        for q in range(n):
            store(sides, t + order[q], load(sides, t + order[q]) - h * load(F, q))
    return load(tree.floor, c) - d


@primitive
def inverse_of_three(tree, P, three, M):
    """M_PP^-1, as cc, cb, ca, bb, ba, aa, of which those with a are zero if there are only two; less so much takes the place of
    M_PP. And what is positive if a pivot is too small."""
    (c, b, a), nv, zero = P, tree.above.size, number_like(M, 0.0)
    cc, cb, bb = load(M, c * nv + c), load(M, b * nv + c), load(M, b * nv + b)
    ca, ba, aa = zero, zero, zero + 1.0
    if three:
        ca, ba, aa = load(M, a * nv + c), load(M, a * nv + b), load(M, a * nv + a)
    deficit, cc = load(tree.floor, c) - cc, 1.0 / cc
    x, y = cb * cc, ca * cc                                            # without c the two others, and their determinant
    bb, ba, aa = bb - cb * x, ba - cb * y, aa - ca * y
    d = bb * aa - ba * ba
    # in this order: after a pivot of zero the others are NaN, which `maximum` passes over as its second argument only
    deficit = maximum(deficit, load(tree.floor, b) - bb)
    if three:
        deficit = maximum(deficit, load(tree.floor, a) * bb - d)
    d = 1.0 / d
    bb, ba, aa = aa * d, -(ba * d), bb * d if three else zero
    ca, cb = -(y * aa + x * ba), -(y * ba + x * bb)
    cc = cc - (y * ca + x * cb)
    if three:
        store(M, a * nv + a, -aa)
        store(M, a * nv + b, -ba)
        store(M, a * nv + c, -ca)
    store(M, b * nv + b, -bb)
    store(M, b * nv + c, -cb)
    store(M, c * nv + c, -cc)
    return deficit, (cc, cb, ca, bb, ba, aa)


@primitive
def place(j, k, nv):
    """Of the entry of a symmetric matrix that stands below the diagonal."""
    return min(j, k) * nv + max(j, k)


@callee
def from_the_ground(tree, prescribed, ways, sides, A, rows):
    """U, first in A, from S and E that follow after `rows` rows. sides: what is left of right sides y. The first becomes
    x_v = M_vv^-1 y_v and 0; the others, where there are, w_v = -M_vv^-1 y_v and y_u + M_uv w_v. What stands on different ground
    is not written."""
    nv, E, s = prescribed.size, A[rows:2 * rows], 0
    while s < nv:
        e, t, hangs = end_of_rows(ways, s, nv), tree.top[s], tree.above[s] >= 0
        if hangs:
            for o in range(s, e, 6):
                columns_by_roots(prescribed, ways, s, o, min(o + 6, e), t, s, A, rows)
            for c in range(t, s):
                if prescribed[c] and tree.last[c] >= s:
                    for k in range(s, e):
                        store(A, c * nv + k, load(A, c * nv + k) - load(E, c * nv + k))
                for k in range(s, e):
                    x = load(A, c * nv + k)
                    store(A, k * nv + c, x if prescribed[c] == prescribed[k] else -x)
            for o in range(s, e, 6):
                columns_by_roots(prescribed, ways, s, o, min(o + 6, e), s, min(o + 6, e), A, rows)
        for k in range(s, e):
            for c in range(s, k + 1):
                x = load(E, c * nv + k)
                x = x if prescribed[k] else -x
                both_ways(prescribed, A, c, k, x + load(A, c * nv + k) if hangs else x)
        solve_limb(tree, prescribed, ways, s, e, sides, E)
        s = e


@primitive
def both_ways(prescribed, U, c, k, x):
    nv = prescribed.size
    store(U, c * nv + k, x)
    store(U, k * nv + c, x if prescribed[c] == prescribed[k] else -x)


@primitive
def columns_by_roots(prescribed, ways, s, o, up_to, first, end, A, rows):
    """-E U_A: rows o … up_to - 1 of the limb that starts with s, in columns first … end - 1."""
    nv, kind, b = prescribed.size, number_like(A, 0.0), first
    while b < end:
        w, z, two = b * nv, min(b + 1, end - 1) * nv, max(min(end - b, 4) - 2, 0)      # of three columns one twice
        limb_rows(ways, o, up_to, kind, A, (rows, w, z, w, z), two * nv, ways.up[s], nv)
        b += two + 2


@primitive
def solve_limb(tree, prescribed, ways, s, e, sides, E):
    nv, zero, many = prescribed.size, number_like(E, 0.0), ways.loose[tree.top[s]] > 0
    for k in range(s, e):
        x, a = load(sides, k), tree.above[s]
        if many:
            y = three_sides(sides, nv, k)
            p, q, r = y if prescribed[k] else (-y[0], -y[1], -y[2])
            while a >= 0:
                if not prescribed[a]:
                    m, y = load(E, a * nv + k), three_sides(sides, nv, a)
                    x, p, q, r = x - m * load(sides, a), p - m * y[0], q - m * y[1], r - m * y[2]
                a = tree.above[a]
            store(sides, nv + k, p)
            store(sides, 2 * nv + k, q)
            store(sides, 3 * nv + k, r)
        else:
            while a >= 0:
                if not prescribed[a]:
                    x = x - load(E, a * nv + k) * load(sides, a)
                a = tree.above[a]
        store(sides, k, zero if prescribed[k] else x)


@primitive
def three_sides(sides, nv, k): return load(sides, nv + k), load(sides, 2 * nv + k), load(sides, 3 * nv + k)
