"""M_vv = L^T D L over the coordinates v that are not prescribed, from the leaves to the ground: L_ri is zero unless r hangs on i,
so nothing fills in (Featherstone 2008, 6.5). D holds the pivots, which are the articulated inertias S^T AI S + armature of K1
Table 3."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, maximum, number_like, store


@primitive
def free_above(tree, prescribed, k):
    """The nearest coordinate above k that is not prescribed, or -1."""
    j = tree.above[k]
    while j >= 0 and prescribed[j]:
        j = tree.above[j]
    return j


@primitive
def factor(tree, prescribed, M, L, Psi):
    """Writes L below the diagonal of a copy of M (nv nv), by rows, and Psi = D^-1 (nv). Returns by how much the worst pivot lies
    below where it is rounding: the inertia vanishes if that is positive."""
    nv, deficit = prescribed.size, number_like(M, -1.0)
    for k in range(nv * nv):
        store(L, k, load(M, k))
    for r in range(nv - 1, -1, -1):
        if not prescribed[r]:
            d = load(L, r * nv + r)
            deficit = maximum(deficit, load(tree.floor, r) - d)
            store(Psi, r, 1.0 / d)
            i = free_above(tree, prescribed, r)
            while i >= 0:
                x, j = load(L, r * nv + i) * load(Psi, r), i
                while j >= 0:
                    store(L, i * nv + j, load(L, i * nv + j) - x * load(L, r * nv + j))
                    j = free_above(tree, prescribed, j)
                store(L, r * nv + i, x)
                i = free_above(tree, prescribed, i)
    return deficit


@primitive
def solve(tree, prescribed, L, Psi, x):
    """x_v = M_vv^-1 x_v of a vector."""
    nv = prescribed.size
    for r in range(nv - 1, -1, -1):                                        # L^T
        i = nv if prescribed[r] else free_above(tree, prescribed, r)
        while 0 <= i < nv:
            store(x, i, load(x, i) - load(L, r * nv + i) * load(x, r))
            i = free_above(tree, prescribed, i)
    for r in range(nv):                                                     # D, L
        if not prescribed[r]:
            y, i = load(x, r) * load(Psi, r), free_above(tree, prescribed, r)
            while i >= 0:
                y = y - load(L, r * nv + i) * load(x, i)
                i = free_above(tree, prescribed, i)
            store(x, r, y)


@primitive
def solve_matrix(tree, prescribed, L, Psi, X, upper, x):
    """X_v = -M_vv^-1 X_v of a matrix (nv nv) by rows, whose rows are zero but for coordinates that hang on the row's, or that it
    hangs on. upper: X is diagonal, and what stands left of the diagonal of the result is not asked for.

    Eight columns at a time, which follow the tree once: a fifth to half of the time less. x: scratch (8 nv)."""
    nv = prescribed.size
    for c in range(0, nv, 8):
        d, last = min(c + 7, nv - 1), c
        for k in range(c, d + 1):
            last = max(last, tree.last[k])
        low, end = tree.top[c], d + 1 if upper else tree.last[tree.top[d]] + 1
        for r in range(low, max(end, last + 1)):
            for k in range(8):
                store(x, 8 * r + k, load(X, r * nv + min(c + k, d)))
        r = d if upper else last
        while r >= 0:                                                       # L^T: what they move, and the way to the ground
            if not prescribed[r]:
                xr, i = load8(x, r), free_above(tree, prescribed, r)
                while i >= 0:
                    store8(x, i, less8(load8(x, i), load(L, r * nv + i), xr))
                    i = free_above(tree, prescribed, i)
            r = r - 1 if r > c else tree.above[r]
        for r in range(low, end):                                           # D, L
            if not prescribed[r]:
                xr, i = scale8(-load(Psi, r), load8(x, r)), free_above(tree, prescribed, r)
                while i >= 0:
                    xr = less8(xr, load(L, r * nv + i), load8(x, i))
                    i = free_above(tree, prescribed, i)
                store8(x, r, xr)
                for k in range(d + 1 - c):
                    store(X, r * nv + c + k, load(x, 8 * r + k))


@primitive
def load8(x, r):
    o = 8 * r
    return (load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3),
            load(x, o + 4), load(x, o + 5), load(x, o + 6), load(x, o + 7))


@primitive
def store8(x, r, y):
    store(x, 8 * r + 0, y[0])
    store(x, 8 * r + 1, y[1])
    store(x, 8 * r + 2, y[2])
    store(x, 8 * r + 3, y[3])
    store(x, 8 * r + 4, y[4])
    store(x, 8 * r + 5, y[5])
    store(x, 8 * r + 6, y[6])
    store(x, 8 * r + 7, y[7])


@primitive
def scale8(s, x): return s * x[0], s * x[1], s * x[2], s * x[3], s * x[4], s * x[5], s * x[6], s * x[7]


@primitive
def less8(x, s, y):
    """x - s y."""
    return (x[0] - s * y[0], x[1] - s * y[1], x[2] - s * y[2], x[3] - s * y[3],
            x[4] - s * y[4], x[5] - s * y[5], x[6] - s * y[6], x[7] - s * y[7])
