"""Rows of one limb in products with M^-1 or E (see `mass_product`): as many sums at a time as registers hold."""
from liedyn.jit import primitive
from liedyn.kernels.derivatives.ways import next_on_walk
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.matrices import get


@primitive
def limb_rows(ways, r, e, kind, A, at, next_two, k, low):
    """Rows r … e - 1, six at most, of X = -C W, Y = -C Z, by the walk from column k of C down to low and on to the ground (see
    `next_on_walk`). at: where C and columns of W, Z, X, Y begin in A; next_two: how far from there stand another two, or 0. Of C
    up to two rows more are read."""
    if e - r > 3 and next_two > 0:
        six_by_four(ways, r, e, kind, A, at, next_two, k, low)
    elif e - r > 3:
        six_by_two(ways, r, e, kind, A, at, k, low)
    elif e - r == 2 and next_two > 0:
        two_by_four(ways, r, kind, A, at, next_two, k, low)
    elif next_two > 0:
        three_by_four(ways, r, e, kind, A, at, next_two, k, low)
    else:
        three_by_two(ways, r, e, kind, A, at, k, low)


@primitive
def six_by_four(ways, r, e, kind, A, at, o, k, low):
    """24 sums in registers: a fifth faster than 12."""
    (C, w, z, X, Y), nv, zero = at, ways.up.size, number_like(A, 0.0)
    x, y, p, q = six_times(zero), six_times(zero), six_times(zero), six_times(zero)
    while k >= 0:
        n = get_six_from(A, nv, k, C + r, kind)
        x, y = six_less_scaled(x, n, load(A, w + k)), six_less_scaled(y, n, load(A, z + k))
        p, q = six_less_scaled(p, n, load(A, w + o + k)), six_less_scaled(q, n, load(A, z + o + k))
        k = next_on_walk(ways, k, low)
    store_six_from(A, X, r, e, x)
    store_six_from(A, Y, r, e, y)
    store_six_from(A, X + o, r, e, p)
    store_six_from(A, Y + o, r, e, q)


@primitive
def three_by_four(ways, r, e, kind, A, at, o, k, low):
    (C, w, z, X, Y), nv, zero = at, ways.up.size, number_like(A, 0.0)
    x, y, p, q = three_times(zero), three_times(zero), three_times(zero), three_times(zero)
    while k >= 0:
        n = get_three_from(A, nv, k, C + r, kind)
        x, y = less_scaled(x, n, load(A, w + k)), less_scaled(y, n, load(A, z + k))
        p, q = less_scaled(p, n, load(A, w + o + k)), less_scaled(q, n, load(A, z + o + k))
        k = next_on_walk(ways, k, low)
    store_three_from(A, X, r, e, x)
    store_three_from(A, Y, r, e, y)
    store_three_from(A, X + o, r, e, p)
    store_three_from(A, Y + o, r, e, q)


@primitive
def two_by_four(ways, r, kind, A, at, o, k, low):
    (C, w, z, X, Y), nv, zero = at, ways.up.size, number_like(A, 0.0)
    x, y, p, q = (zero, zero), (zero, zero), (zero, zero), (zero, zero)
    while k >= 0:
        n = get(A, nv, k, C + r, kind), get(A, nv, k, C + r + 1, kind)
        x, y = two_less_scaled(x, n, load(A, w + k)), two_less_scaled(y, n, load(A, z + k))
        p, q = two_less_scaled(p, n, load(A, w + o + k)), two_less_scaled(q, n, load(A, z + o + k))
        k = next_on_walk(ways, k, low)
    store_two(A, X + r, x)
    store_two(A, Y + r, y)
    store_two(A, X + o + r, p)
    store_two(A, Y + o + r, q)


@primitive
def three_times(x): return x, x, x


@primitive
def six_times(x): return (x, x, x), (x, x, x)


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
def six_by_two(ways, r, e, kind, A, at, k, low):
    (C, w, z, X, Y), nv, zero = at, ways.up.size, number_like(A, 0.0)
    x, y = six_times(zero), six_times(zero)
    while k >= 0:
        n = get_six_from(A, nv, k, C + r, kind)
        x, y = six_less_scaled(x, n, load(A, w + k)), six_less_scaled(y, n, load(A, z + k))
        k = next_on_walk(ways, k, low)
    store_six_from(A, X, r, e, x)
    store_six_from(A, Y, r, e, y)


@primitive
def three_by_two(ways, r, e, kind, A, at, k, low):
    (C, w, z, X, Y), nv, zero = at, ways.up.size, number_like(A, 0.0)
    x, y = three_times(zero), three_times(zero)
    while k >= 0:
        n = get_three_from(A, nv, k, C + r, kind)
        x, y = less_scaled(x, n, load(A, w + k)), less_scaled(y, n, load(A, z + k))
        k = next_on_walk(ways, k, low)
    store_three_from(A, X, r, e, x)
    store_three_from(A, Y, r, e, y)


@primitive
def two_less_scaled(x, n, w): return x[0] - n[0] * w, x[1] - n[1] * w


@primitive
def less_scaled(x, n, w): return x[0] - n[0] * w, x[1] - n[1] * w, x[2] - n[2] * w


@primitive
def six_less_scaled(x, n, w): return less_scaled(x[0], n[0], w), less_scaled(x[1], n[1], w)
