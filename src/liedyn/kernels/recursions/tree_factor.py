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
def solve_matrix(tree, prescribed, L, Psi, X, upper):
    """X_v = -M_vv^-1 X_v of a matrix (nv nv) by rows, whose rows are zero but for coordinates that hang on the row's, or that it
    hangs on. upper: X is diagonal, and what stands left of the diagonal of the result is not asked for."""
    nv = prescribed.size
    for r in range(nv - 1, -1, -1):                                         # L^T
        i = -1 if prescribed[r] else free_above(tree, prescribed, r)
        while i >= 0:
            l, c = load(L, r * nv + i), tree.last[r]
            while c >= (r if upper else 0):                                 # what hangs on r, and the way to the ground
                store(X, i * nv + c, load(X, i * nv + c) - l * load(X, r * nv + c))
                c = c - 1 if c > r else tree.above[c]
            i = free_above(tree, prescribed, i)
    for r in range(nv):                                                     # D, L
        if not prescribed[r]:
            first, end = r if upper else tree.top[r], tree.last[tree.top[r]] + 1
            for c in range(first, end):
                store(X, r * nv + c, -load(Psi, r) * load(X, r * nv + c))
            i = free_above(tree, prescribed, r)
            while i >= 0:
                l = load(L, r * nv + i)
                for c in range(first, end):
                    store(X, r * nv + c, load(X, r * nv + c) - l * load(X, i * nv + c))
                i = free_above(tree, prescribed, i)
