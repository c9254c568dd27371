"""M^-1 x of eight states from the factor of `mass_factor`, L^T D L: first z = L^-T x, then L^-1 D^-1 z, O(n depth) a vector.

Most of the time goes by waiting for the sum before: four vectors take little more than one. In each sum what is made last
comes last."""
from liedyn.jit import apart, primitive
from liedyn.kernels.factor_inverse import four_less
from liedyn.kernels.mass_sweep import solve_by_rows
from liedyn.lie.lanes import load, number_like, store


@apart("Psi", one=solve_by_rows)
def solve_vector(tree, prescribed, ways, L, Psi, x, A, rows):
    """x (nv) = M^-1 x in place, where not prescribed. With it the columns w of a floating base's rotations in the fourth matrix
    of A, each of `rows` rows: w = -M^-1 w."""
    W, first = A[3 * rows:], 0
    while first < prescribed.size:
        if ways.loose[first] > 0:
            solve_four(tree, prescribed, ways, L, Psi, x, W, first)
        else:
            solve_one(tree, prescribed, ways, L, Psi, x, first)
        first = tree.last[first] + 1


@primitive
def solve_one(tree, prescribed, ways, L, Psi, x, first):
    """All that hangs on the coordinate `first`."""
    nv, last, zero = prescribed.size, tree.last[first], number_like(Psi, 0.0)
    for k in range(last, first - 1, -1):
        if not prescribed[k]:
            y = load(x, k)
            for i in range(tree.last[k], k, -1):
                if not prescribed[i]:
                    y = y - load(L, i * nv + k) * load(x, i)
            store(x, k, y)
    for k in range(first, last + 1):
        if not prescribed[k]:
            y, j = load(Psi, k) * load(x, k), ways.up[k]
            while j >= 0:
                z = zero
                for m in range(ways.run[j], j + 1):
                    z = z + load(L, k * nv + m) * load(x, m)
                y, j = y - z, ways.up[ways.run[j]]
            store(x, k, y)


@primitive
def solve_four(tree, prescribed, ways, L, Psi, x, W, first):
    """The same, and with it w = -M^-1 w of the columns first, first + 1, first + 2 of W."""
    nv, last, zero = prescribed.size, tree.last[first], number_like(Psi, 0.0)
    c = first * nv
    for k in range(last, first - 1, -1):
        if not prescribed[k]:
            y = load_both(x, W, c, nv, k)
            y = y[0], -y[1], -y[2], -y[3]
            for i in range(tree.last[k], k, -1):
                if not prescribed[i]:
                    y = four_less(y, load(L, i * nv + k), load_both(x, W, c, nv, i))
            store_both(x, W, c, nv, k, y)
    for k in range(first, last + 1):
        if not prescribed[k]:
            d, y, j = load(Psi, k), load_both(x, W, c, nv, k), ways.up[k]
            y = d * y[0], d * y[1], d * y[2], d * y[3]
            while j >= 0:
                z = zero, zero, zero, zero
                for m in range(ways.run[j], j + 1):
                    z = four_less(z, load(L, k * nv + m), load_both(x, W, c, nv, m))
                y, j = (y[0] + z[0], y[1] + z[1], y[2] + z[2], y[3] + z[3]), ways.up[ways.run[j]]
            store_both(x, W, c, nv, k, y)


@primitive
def load_both(x, W, c, n, k): return load(x, k), load(W, c + k), load(W, c + n + k), load(W, c + 2 * n + k)


@primitive
def store_both(x, W, c, n, k, y):
    store(x, k, y[0])
    store(W, c + k, y[1])
    store(W, c + n + k, y[2])
    store(W, c + 2 * n + k, y[3])
