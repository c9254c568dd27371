"""M = L^T D L of eight states over the tree, and products with either number of states: L has entries only between a coordinate
and what it hangs on, so it is as sparse as the tree (Featherstone 2005). Coordinates that are not on `up`'s ways take no part:
with those prescribed left out, this is the factor of M_vv. The pivots D are the articulated inertias S^T AI S + armature of
K1 Table 3."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import apart, callee, primitive
from liedyn.joints.kinds import FREE, NV
from liedyn.kernels.limb_rows import less_scaled, limb_rows, six_less_scaled, store_six_from, store_three_from
from liedyn.lie.blocks import states_in
from liedyn.lie.lanes import absolute, all_less, load, maximum, number_like, store

# N, E, W, X hold columns of matrices, Lanes all: of eight states, or eight columns of one state (`blocks.put`).


class Ways(NamedTuple):
    """Which coordinates are not prescribed, and how they stand on the tree."""

    up: np.ndarray       # (nv,) the nearest coordinate above that is not prescribed, or -1
    run: np.ndarray      # (nv,) from this coordinate on, up goes in steps of one
    free: np.ndarray     # those not prescribed, in order
    start: np.ndarray    # (nv,) first coordinate of the limb
    loose: np.ndarray    # (nv,) the body if it floats (see `floating`), else 0
    given: np.ndarray    # the prescribed ones, in order
    held: np.ndarray     # (nv,) the nearest coordinate above that is prescribed, or -1
    count: np.ndarray    # (nv + 1,) how many before this coordinate are not prescribed
    every: np.ndarray    # all coordinates, in order


@primitive
def ways_of(tree, prescribed, passive, room, eight):
    """room: 8 nv + 1 integers. eight: whether for eight states, of which each column goes for itself; eight columns of one state
    seldom belong to one limb, and take all that hangs on one top for one."""
    nv = prescribed.size
    free_paths(tree, prescribed, room[:nv], room[nv:2 * nv], room[5 * nv:6 * nv])
    limbs(tree, room[2 * nv:3 * nv], eight)
    floating(tree, passive, room[3 * nv:4 * nv])
    both_kinds(prescribed, room[4 * nv:5 * nv], room[6 * nv:7 * nv + 1])
    for k in range(nv):
        room[7 * nv + 1 + k] = k
    return ways_in(room, prescribed)


@primitive
def ways_in(room, prescribed):
    """What `ways_of` left there."""
    nv, free = prescribed.size, room[7 * prescribed.size]
    return Ways(room[:nv], room[nv:2 * nv], room[4 * nv:4 * nv + free], room[2 * nv:3 * nv], room[3 * nv:4 * nv],
                room[4 * nv + free:5 * nv], room[5 * nv:6 * nv], room[6 * nv:7 * nv + 1], room[7 * nv + 1:8 * nv + 1])


@primitive
def free_paths(tree, prescribed, up, run, held):
    for k in range(up.size):
        j = tree.above[k]
        up[k] = up[j] if j >= 0 and prescribed[j] else j
        held[k] = held[j] if j >= 0 and not prescribed[j] else j
        run[k] = run[k - 1] if k > 0 and up[k] == k - 1 else k


@primitive
def both_kinds(prescribed, order, count):
    """The coordinates that are not prescribed, then those that are; and how many of the first stand before each."""
    nv, n = prescribed.size, 0
    for k in range(nv):
        count[k] = n
        n += 0 if prescribed[k] else 1
    count[nv] = n
    for k in range(nv):
        order[n + k - count[k] if prescribed[k] else count[k]] = k


@primitive
def limbs(tree, start, branches):
    """The tree branches only between limbs, fingers (three coordinates at most) apart; or, if not `branches`, each limb is all
    that hangs on one top."""
    for k in range(start.size):
        start[k] = tree.top[k]
    for k in range(1, start.size if branches else 0):
        j = tree.above[k]
        if j != k - 1 and (j < 0 or tree.last[j] > j + 3):     # here, and at what came first of the same parent
            start[k], start[j + 1] = k, j + 1
    for k in range(1, start.size):
        start[k] = max(start[k], start[k - 1])


@primitive
def floating(tree, passive, loose):
    """Free joints on the ground that resist no motion: their columns of derivatives are known (see `floating_columns`)."""
    for i in range(1, tree.parent.size):
        k, end = tree.iv[i], tree.iv[i] + NV[tree.kind[i]]
        floats = tree.parent[i] == 0 and tree.kind[i] == FREE
        for j in range(k, end if floats else k):
            x = absolute(load(tree.armature, j))
            if passive:
                x = x + absolute(load(tree.damping, j)) + absolute(load(tree.friction, j))
            floats = floats and all_less(x, 5e-324)
        for j in range(k, end):
            loose[j] = i if floats else 0


@callee
def factor_mass(tree, prescribed, ways, M, Psi):
    """M (nv nv, read where a row hangs on the column) becomes L, and Psi (nv) = 1/D; right of the diagonal (D L)^T. Returns the
    largest shortfall of a pivot below where it is rounding: positive means that the joint has no inertia. Loads, but does
    not use, up to five numbers beyond M.

    Row k of L^T D L = M, from the leaves: D_k L_km = M_km - sum_j (D L)_jk L_jm over all j that hang on k."""
    nv, up, run = prescribed.size, ways.up, ways.run
    deficit = number_like(M, -1.0)
    for k in range(nv - 1, -1, -1):
        if prescribed[k]:
            continue
        j = k
        while j >= 0:
            first = max(run[j], j - 5)
            if j - first > 2:
                six_of_factor(tree, prescribed, k, first, j, M)
            else:
                three_of_factor(tree, prescribed, k, first, j, M)
            j = up[first]
        d = load(M, k * nv + k)
        deficit = maximum(deficit, load(tree.floor, k) - d)
        d, j = 1.0 / d, up[k]
        store(Psi, k, d)
        while j >= 0:
            x = load(M, k * nv + j)
            store(M, j * nv + k, x)
            store(M, k * nv + j, x * d)
            j = up[j]
    return deficit


@primitive
def six_of_factor(tree, prescribed, k, first, last, M):
    """Columns first … last of row k of D L, from the rows of all that hangs on k."""
    nv = tree.above.size
    x = get_six_along(M, k * nv + first)
    for i in range(k + 1, tree.last[k] + 1):
        if not prescribed[i]:
            x = six_less_scaled(x, get_six_along(M, i * nv + first), load(M, k * nv + i))
    store_six_from(M, k * nv, first, last + 1, x)


@primitive
def three_of_factor(tree, prescribed, k, first, last, M):
    nv = tree.above.size
    x = get_three_along(M, k * nv + first)
    for i in range(k + 1, tree.last[k] + 1):
        if not prescribed[i]:
            x = less_scaled(x, get_three_along(M, i * nv + first), load(M, k * nv + i))
    store_three_from(M, k * nv, first, last + 1, x)


@primitive
def get_three_along(A, o): return load(A, o), load(A, o + 1), load(A, o + 2)


@primitive
def get_six_along(A, o): return get_three_along(A, o), get_three_along(A, o + 3)


@primitive
def rows_by_roots(tree, prescribed, ways, L, E):
    """E, by columns: what rows of a limb K are of those of all A above it, wherever M N or M X is zero in K and behind.

    There L_KK x_K + L_KA x_A = 0, that is x_K = -E x_A with E = L_KK^-1 L_KA."""
    nv, run, r = prescribed.size, ways.run, 0
    while r < ways.free.size:
        e = end_of_rows(ways, ways.free, r, nv)
        s = ways.start[ways.free[r]]
        a = tree.above[s]
        while a >= 0 and prescribed[a]:
            a = tree.above[a]
        while a >= 0:
            first = max(run[a], a - 5)
            for o in range(r, e):
                if a - first > 2:
                    six_by_roots(ways.up, s, ways.free[o], first, a, L, E)
                else:
                    three_by_roots(ways.up, s, ways.free[o], first, a, L, E)
            a = ways.up[first]
        r = e


@primitive
def six_by_roots(up, s, k, first, last, L, E):
    """Columns first … last of row k of E, from those of the limb's rows above, s …."""
    nv = up.size
    x, i = get_six_along(L, k * nv + first), up[k]
    while i >= s:
        y = get_three_across(E, nv, first, i), get_three_across(E, nv, first + 3, i)
        x, i = six_less_scaled(x, y, load(L, k * nv + i)), up[i]
    put_three_across(E, nv, first, last, k, x[0])
    put_three_across(E, nv, first + 3, last, k, x[1])


@primitive
def three_by_roots(up, s, k, first, last, L, E):
    nv = up.size
    x, i = get_three_along(L, k * nv + first), up[k]
    while i >= s:
        x, i = less_scaled(x, get_three_across(E, nv, first, i), load(L, k * nv + i)), up[i]
    put_three_across(E, nv, first, last, k, x)


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


@callee
def invert_mass(tree, prescribed, ways, L, Psi, A, rows):
    """N = M_vv^-1. Prescribed rows and columns: zeros there stay, other numbers become others. A: N and then E, of `rows` rows.

    Row k of L N = D^-1 L^-T, of which the right side is zero left of the diagonal and Psi_k on it, gives
    N_kc = -sum_j L_kj N_jc for c < k, and N_kk = Psi_k - sum_j L_kj N_jk by symmetry. Columns before the limb of k need only
    what stands above the limb: N_Kc = -E N_Ac."""
    nv, free = prescribed.size, ways.free
    N, kind, r = A[:rows], number_like(Psi, 0.0), 0
    while r < free.size:
        s, e = ways.start[free[r]], end_of_rows(ways, free, r, nv)
        for o in range(r, e if tree.above[s] >= 0 else r, 6):
            end, b, last = min(o + 6, e), tree.top[s], s - 1
            while b <= last:
                w, z, next_two = b * nv, min(b + 1, last) * nv, 0
                if b + 3 <= last and in_a_row(free, o, end):
                    next_two = 2 * nv
                at = rows, w, z, w, z
                limb_rows(tree, prescribed, free, o, end, kind, A, at, next_two, tree.above[s], nv, None)
                b += 4 if next_two > 0 else 2
        for o in range(r, e):
            invert_in_limb(tree, ways, free[o], s, L, Psi, N)
        r = e


@primitive
def invert_in_limb(tree, ways, k, s, L, Psi, N):
    """Row k for the columns s … k of its limb, four at a time; and what is the same by symmetry."""
    nv, zero, up, run, last = tree.above.size, number_like(Psi, 0.0), ways.up, ways.run, k - 1
    for b in range(s, k, 4):
        o = b * nv, min(b + 1, last) * nv, min(b + 2, last) * nv, min(b + 3, last) * nv
        x, j = (zero, zero, zero, zero), up[k]
        while j >= 0:
            for m in range(run[j], j + 1):
                l = load(L, k * nv + m)
                x = (x[0] - l * load(N, o[0] + m), x[1] - l * load(N, o[1] + m), x[2] - l * load(N, o[2] + m),
                     x[3] - l * load(N, o[3] + m))
            j = up[run[j]]
        store(N, o[0] + k, x[0])
        store(N, o[1] + k, x[1])
        store(N, o[2] + k, x[2])
        store(N, o[3] + k, x[3])
    for c in range(tree.top[k], k):                            # the other half
        store(N, k * nv + c, load(N, c * nv + k))
    d, j = load(Psi, k), up[k]
    while j >= 0:                                              # a sum for each run: less to wait for
        x = zero
        for m in range(run[j], j + 1):
            x = x + load(L, k * nv + m) * load(N, k * nv + m)
        d, j = d - x, up[run[j]]
    store(N, k * nv + k, d)


@primitive
def end_of_rows(ways, rows, r, most):
    """Where the rows rows[r], … of one limb end, after `most` of them."""
    e = r + 1
    while e < min(rows.size, r + most) and ways.start[rows[e]] == ways.start[rows[r]]:
        e += 1
    return e


@primitive
def in_a_row(rows, r, e):
    """Whether rows[r] … rows[e - 1] follow each other."""
    return rows[e - 1] - rows[r] == e - 1 - r


@primitive
def columns_in_lanes(factors):
    """How many columns of one state a Lanes holds, where the factors are of one state or of eight."""
    return 1 if states_in(factors) > 1 else 8


@apart("Psi")
def minus_product(tree, prescribed, ways, Psi, A, at, first, end, adds):
    """X = -N W, Y = -N Z for the Lanes of columns first … end - 1 of W and Z; X and Y begin with the first of them. A holds all
    matrices; at: where N, E, W, Z, X, Y begin. Prescribed columns of N take no part. adds: if None, prescribed rows are not
    written; else they become those of W - N W and Z - N Z, where W and Z must be zero on other branches.

    Only what hangs on the same top as the column is written. In a column, other rows of W and Z are read where its coordinate
    moves and on its way to the ground: if `adds` is None, limbs without such a coordinate follow from those above them,
    x_K = -E x_A; not in one state, where a limb is all that hangs on its top. Columns of a floating base are left alone in eight
    states."""
    nv, per, kind, r = prescribed.size, columns_in_lanes(Psi), number_like(Psi, 0.0), 0
    N, E, W, Z, X, Y = at
    rows = ways.free if adds is None else ways.every
    while r < rows.size:                                       # six rows of N stay near for all columns
        s, e, c = ways.start[rows[r]], end_of_rows(ways, rows, r, 6), first
        twos = per == 1 and in_a_row(rows, r, e)               # two columns of one limb read N once
        while c < end:
            b, c = c, c + 1
            if twos and c < end and tree.above[c] == b and tree.last[c] == tree.last[b] and ways.loose[c] == ways.loose[b]:
                c = c + 1
            if per == 1 and ways.loose[b] > 0:
                continue
            low, high = rows_of_columns(tree, b * per, min(c * per, nv) - 1)
            if tree.top[low] <= s and s <= tree.last[tree.top[high]]:
                x, y, w, z = X + (b - first) * nv, Y + (b - first) * nv, W + b * nv, Z + b * nv
                C, k, next_two = N, high, (c - 1 - b) * nv
                if adds is None and (s > high or tree.last[s] < low):
                    C, w, z, k, low = E, x, y, tree.above[s], nv
                limb_rows(tree, prescribed, rows, r, e, kind, A, (C, w, z, x, y), next_two, k, low, adds)
        r = e


@primitive
def rows_of_columns(tree, c, d):
    """First and last row that differ from zero in columns c … d of derivatives, but for those on the way to the ground."""
    high = d
    for k in range(c, d + 1):
        high = max(high, tree.last[k])
    return c, high
