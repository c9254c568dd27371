"""Products with M^-1 or U, or with E of `limb_sweep`, over the tree, of one state or eight."""
from liedyn.jit import apart, primitive
from liedyn.kernels.derivatives.limb_rows import limb_rows
from liedyn.kernels.derivatives.ways import end_of_rows, first_of_walk
from liedyn.kernels.recursions.outgoing import hand_on
from liedyn.lie.blocks import states_in
from liedyn.lie.lanes import load, number_like, store

# N, E, W, X hold columns of matrices, Lanes all: of eight states, or eight columns of one state (`matrices.put`).


@primitive
def columns_in_lanes(factors):
    """How many columns of one state a Lanes holds, where the factors are of one state or of eight."""
    return 1 if states_in(factors) > 1 else 8


@apart("like")
def minus_product(tree, prescribed, ways, like, A, at, first, end, out):
    """X = -N W, Y = -N Z, and in prescribed rows W - N W, Z - N Z, for the Lanes of columns first … end - 1 of W and Z; X and Y
    begin with the first of them. A holds all matrices; at: where N, E, W, Z, X, Y begin; like: an array of one state or of eight,
    as M was. Prescribed columns of N take no part.

    Of eight states only what hangs on the same top as the column is written, and columns of a floating base are left alone. Of
    one state W and Z must be zero on other branches, X and Y at first.

    W and Z are read where the column's coordinate moves and on its way to the ground; limbs without such a coordinate follow from
    those above them, x_K = -E x_A, where nothing is prescribed or that is shorter. Not in one state, where a limb is all that
    hangs on its top. out: see `outgoing`."""
    nv, per, kind, r = prescribed.size, columns_in_lanes(like), number_like(like, 0.0), 0
    N, E, W, Z, X, Y = at
    none = ways.given.size == 0
    while r < nv:                                              # six rows of N stay near for all columns
        s, e, c = ways.start[r], end_of_rows(ways, r, 6), first
        while c < end:
            b, c = c, c + 1
            hand_on(out)
            if per == 1 and c < end and tree.above[c] == b and tree.last[c] == tree.last[b] and ways.loose[c] == ways.loose[b]:
                c = c + 1                                      # two columns of one limb read N once
            if per == 1 and ways.loose[b] > 0:
                continue
            low, high = rows_of_columns(tree, b * per, min(c * per, nv) - 1)
            if tree.top[low] <= s and s <= tree.last[tree.top[high]]:
                x, y, w, z = X + (b - first) * nv, Y + (b - first) * nv, W + b * nv, Z + b * nv
                C, k, next_two = N, first_of_walk(ways, high, low), (c - 1 - b) * nv
                # each sum is shorter by what is free in the column's limb and behind; but waits for those above, which costs as
                # much as two
                shorter = ways.count[high + 1] - ways.count[ways.start[low]] - 2
                if (s > high or tree.last[s] < low) and (none or shorter > 0):
                    C, w, z, k, low = E, x, y, ways.up[s], nv
                limb_rows(ways, r, e, kind, A, (C, w, z, x, y), next_two, k, low)
        r = e
    if not none:
        add_given_rows(tree, prescribed, ways, A, at, first, end, per)


@primitive
def add_given_rows(tree, prescribed, ways, A, at, first, end, per):
    """W and Z to prescribed rows of X and Y, where they hold more than zeros. After the sums: to begin each of them either with
    zero or with a row took up to 24 branches for six rows."""
    nv, (_, _, W, Z, X, Y) = prescribed.size, at
    for c in range(first, end):
        o, x = c * nv, (c - first) * nv
        if per > 1:
            for u in ways.given:
                add_to(A, X + x + u, W + o + u)
                add_to(A, Y + x + u, Z + o + u)
        elif ways.loose[c] == 0:
            u = tree.last[c]
            while u >= 0:
                if prescribed[u]:
                    add_to(A, X + x + u, W + o + u)
                    add_to(A, Y + x + u, Z + o + u)
                u = u - 1 if u > c else tree.above[u]


@primitive
def add_to(A, k, l): store(A, k, load(A, k) + load(A, l))


@primitive
def rows_of_columns(tree, c, d):
    """First and last row that differ from zero in columns c … d of derivatives, but for those on the way to the ground."""
    high = d
    for k in range(c, d + 1):
        high = max(high, tree.last[k])
    return c, high
