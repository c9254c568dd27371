"""Rows of one limb in products with M^-1 or E (see `mass_product`): as many sums at a time as registers hold."""
from numba import types
from numba.extending import overload

from liedyn.jit import primitive
from liedyn.kernels.ways import three_of
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.matrices import get


@primitive
def limb_rows(tree, prescribed, rows, r, e, kind, A, at, next_two, k, low, adds):
    """Rows rows[r] … rows[e - 1], six at most, of X = -C W, Y = -C Z, by the columns k, k - 1, … low of C and those on the way
    from low to the ground, if not prescribed; low = nv: on the way from k. at: where C and columns of W, Z, X, Y, P, Q begin in
    A; next_two: how far from there stand another two, or 0. Another two are only for rows that follow each other. adds: if not
    None, prescribed rows are those of P - C W and Q - C Z."""
    first = rows[r]
    if e - r > 3 and next_two > 0:
        six_by_four(tree, prescribed, first, first + e - r, kind, A, at, next_two, k, low, adds)
    elif e - r > 3:
        six_rows(tree, prescribed, six_of(rows, r, e), kind, A, at, k, low, adds)
    elif e - r == 2 and next_two > 0:
        two_by_four(tree, prescribed, first, kind, A, at, next_two, k, low, adds)
    elif next_two > 0:
        three_by_four(tree, prescribed, first, first + e - r, kind, A, at, next_two, k, low, adds)
    else:
        three_rows(tree, prescribed, three_of(rows, r, e), kind, A, at, k, low, adds)


@primitive
def six_by_four(tree, prescribed, r, e, kind, A, at, o, k, low, adds):
    """24 sums in registers: a fifth faster than 12."""
    (C, w, z, X, Y, u, v), nv = at, tree.above.size
    rows = three_from(r, nv), three_from(r + 3, nv)
    x, y = six_given(prescribed, rows, A, u, adds), six_given(prescribed, rows, A, v, adds)
    p, q = six_given(prescribed, rows, A, u + o, adds), six_given(prescribed, rows, A, v + o, adds)
    while k >= 0:
        if not prescribed[k]:
            n = get_six_from(A, nv, k, C + r, kind)
            x, y = six_less_scaled(x, n, load(A, w + k)), six_less_scaled(y, n, load(A, z + k))
            p, q = six_less_scaled(p, n, load(A, w + o + k)), six_less_scaled(q, n, load(A, z + o + k))
        k = k - 1 if k > low else tree.above[k]
    store_six_from(A, X, r, e, x)
    store_six_from(A, Y, r, e, y)
    store_six_from(A, X + o, r, e, p)
    store_six_from(A, Y + o, r, e, q)


@primitive
def three_by_four(tree, prescribed, r, e, kind, A, at, o, k, low, adds):
    (C, w, z, X, Y, u, v), nv = at, tree.above.size
    rows = three_from(r, nv)
    x, y = three_given(prescribed, rows, A, u, adds), three_given(prescribed, rows, A, v, adds)
    p, q = three_given(prescribed, rows, A, u + o, adds), three_given(prescribed, rows, A, v + o, adds)
    while k >= 0:
        if not prescribed[k]:
            n = get_three_from(A, nv, k, C + r, kind)
            x, y = less_scaled(x, n, load(A, w + k)), less_scaled(y, n, load(A, z + k))
            p, q = less_scaled(p, n, load(A, w + o + k)), less_scaled(q, n, load(A, z + o + k))
        k = k - 1 if k > low else tree.above[k]
    store_three_from(A, X, r, e, x)
    store_three_from(A, Y, r, e, y)
    store_three_from(A, X + o, r, e, p)
    store_three_from(A, Y + o, r, e, q)


@primitive
def two_by_four(tree, prescribed, r, kind, A, at, o, k, low, adds):
    (C, w, z, X, Y, u, v), nv = at, tree.above.size
    x, y = two_given(prescribed, r, A, u, adds), two_given(prescribed, r, A, v, adds)
    p, q = two_given(prescribed, r, A, u + o, adds), two_given(prescribed, r, A, v + o, adds)
    while k >= 0:
        if not prescribed[k]:
            n = get(A, nv, k, C + r, kind), get(A, nv, k, C + r + 1, kind)
            x, y = two_less_scaled(x, n, load(A, w + k)), two_less_scaled(y, n, load(A, z + k))
            p, q = two_less_scaled(p, n, load(A, w + o + k)), two_less_scaled(q, n, load(A, z + o + k))
        k = k - 1 if k > low else tree.above[k]
    store_two(A, X + r, x)
    store_two(A, Y + r, y)
    store_two(A, X + o + r, p)
    store_two(A, Y + o + r, q)


# what sums begin with -------------------------------------------------------------------------------------------------
def given(prescribed, r, A, w, adds): ...


@overload(given, inline="always")
def _given(prescribed, r, A, w, adds):
    """Zero; or, if `adds` is not None, of a prescribed row that of the column which begins at w."""
    if isinstance(adds, types.NoneType):
        return lambda prescribed, r, A, w, adds: number_like(A, 0.0)
    return lambda prescribed, r, A, w, adds: row_if_prescribed(prescribed, r, A, w)


@primitive
def row_if_prescribed(prescribed, r, A, w): return load(A, w + r) if prescribed[r] else number_like(A, 0.0)


@primitive
def two_given(prescribed, r, A, w, adds): return given(prescribed, r, A, w, adds), given(prescribed, r + 1, A, w, adds)


@primitive
def three_given(prescribed, rows, A, w, adds):
    return (given(prescribed, rows[0], A, w, adds), given(prescribed, rows[1], A, w, adds),
            given(prescribed, rows[2], A, w, adds))


@primitive
def six_given(prescribed, rows, A, w, adds):
    return three_given(prescribed, rows[0], A, w, adds), three_given(prescribed, rows[1], A, w, adds)


@primitive
def three_from(r, nv): return min(r, nv - 1), min(r + 1, nv - 1), min(r + 2, nv - 1)


@primitive
def store_two(A, o, x):
    store(A, o, x[0])
    store(A, o + 1, x[1])


@primitive
def get_three_from(A, nv, c, o, kind): return get(A, nv, c, o, kind), get(A, nv, c, o + 1, kind), get(A, nv, c, o + 2, kind)


@primitive
def get_six_from(A, nv, c, o, kind): return get_three_from(A, nv, c, o, kind), get_three_from(A, nv, c, o + 3, kind)


@primitive
def store_three_from(A, o, r, e, x):
    """x into rows r, r + 1, r + 2 < e of the column that begins at o."""
    store(A, o + r, x[0])
    if r + 1 < e:
        store(A, o + r + 1, x[1])
    if r + 2 < e:
        store(A, o + r + 2, x[2])


@primitive
def store_six_from(A, o, r, e, x):
    store_three_from(A, o, r, e, x[0])
    store_three_from(A, o, r + 3, e, x[1])


@primitive
def six_rows(tree, prescribed, rows, kind, A, at, k, low, adds):
    (C, w, z, X, Y, u, v), nv = at, tree.above.size
    x, y = six_given(prescribed, rows, A, u, adds), six_given(prescribed, rows, A, v, adds)
    while k >= 0:
        if not prescribed[k]:
            n = get_three(A, nv, k, C, rows[0], kind), get_three(A, nv, k, C, rows[1], kind)
            x = six_less_scaled(x, n, load(A, w + k))
            y = six_less_scaled(y, n, load(A, z + k))
        k = k - 1 if k > low else tree.above[k]
    store_three(A, X, rows[0], x[0])
    store_three(A, X, rows[1], x[1])
    store_three(A, Y, rows[0], y[0])
    store_three(A, Y, rows[1], y[1])


@primitive
def three_rows(tree, prescribed, rows, kind, A, at, k, low, adds):
    (C, w, z, X, Y, u, v), nv = at, tree.above.size
    x, y = three_given(prescribed, rows, A, u, adds), three_given(prescribed, rows, A, v, adds)
    while k >= 0:
        if not prescribed[k]:
            n = get_three(A, nv, k, C, rows, kind)
            x = less_scaled(x, n, load(A, w + k))
            y = less_scaled(y, n, load(A, z + k))
        k = k - 1 if k > low else tree.above[k]
    store_three(A, X, rows, x)
    store_three(A, Y, rows, y)


@primitive
def six_of(rows, r, e):
    return three_of(rows, r, e), three_of(rows, r + 3, e)


@primitive
def get_three(A, nv, c, o, rows, kind):
    return get(A, nv, c, o + rows[0], kind), get(A, nv, c, o + rows[1], kind), get(A, nv, c, o + rows[2], kind)


@primitive
def store_three(A, o, rows, x):
    store(A, o + rows[0], x[0])
    store(A, o + rows[1], x[1])
    store(A, o + rows[2], x[2])


@primitive
def two_less_scaled(x, n, w): return x[0] - n[0] * w, x[1] - n[1] * w


@primitive
def less_scaled(x, n, w): return x[0] - n[0] * w, x[1] - n[1] * w, x[2] - n[2] * w


@primitive
def six_less_scaled(x, n, w): return less_scaled(x[0], n[0], w), less_scaled(x[1], n[1], w)
