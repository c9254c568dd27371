"""M = L^T D L over the tree, and its solutions: L has entries only between a coordinate and what it hangs on, so it is as
sparse as the tree (Featherstone 2005). Coordinates that are not on `up`'s ways take no part: with those prescribed left
out, this is the factor of M_vv. The pivots D are the articulated inertias S^T AI S + armature of K1 Table 3."""
from liedyn.jit import primitive
from liedyn.lie.lanes import load, maximum, number_like, store

# X holds columns of right-hand sides, Lanes all: of eight states, or eight columns of one state (`lanes.put`).


@primitive
def free_paths(tree, prescribed, up):
    """up (nv): the nearest coordinate above that is not prescribed, or -1."""
    for k in range(up.size):
        j = tree.above[k]
        while j >= 0 and prescribed[j]:
            j = up[j]
        up[k] = j


@primitive
def factor_mass(tree, prescribed, up, M, Psi):
    """M (nv nv, read where a row hangs on the column) becomes L, Psi (nv) = 1/D. Returns the largest shortfall of a pivot
    below where it is rounding: positive means that the joint has no inertia."""
    nv = up.size
    deficit = number_like(M, -1.0)
    for k in range(nv - 1, -1, -1):
        if prescribed[k]:
            continue
        d = load(M, k * nv + k)
        deficit = maximum(deficit, load(tree.floor, k) - d)
        x, i = 1.0 / d, up[k]
        store(Psi, k, x)
        while i >= 0:
            l, j = load(M, k * nv + i) * x, i
            while j >= 0:
                store(M, i * nv + j, load(M, i * nv + j) - l * load(M, k * nv + j))
                j = up[j]
            store(M, k * nv + i, l)
            i = up[i]
    return deficit


@primitive
def solve_column(tree, prescribed, up, L, Psi, X, base, low, high):
    """x = -M^-1 b for the column of X that starts at `base`, in place. b is zero but in rows low … high and on the way from
    `low` to the ground, x but in what hangs on the same top. Rows of prescribed coordinates stay as they are."""
    nv = up.size
    k = high
    while k >= 0:                                                    # y = L^-T b
        if not prescribed[k]:
            y, j = load(X, base + k), up[k]
            while j >= 0:
                store(X, base + j, load(X, base + j) - load(L, k * nv + j) * y)
                j = up[j]
        k = k - 1 if k > low else tree.above[k]
    for k in range(tree.top[low], tree.last[tree.top[high]] + 1):    # x = -L^-1 D^-1 y
        if not prescribed[k]:
            x, j = -(load(Psi, k) * load(X, base + k)), up[k]
            while j >= 0:
                x = x - load(L, k * nv + j) * load(X, base + j)
                j = up[j]
            store(X, base + k, x)


@primitive
def solve_vector(tree, prescribed, up, L, Psi, x):
    """x (nv) = M^-1 x in place, where not prescribed."""
    nv = up.size
    for k in range(nv - 1, -1, -1):
        if not prescribed[k]:
            y, j = load(x, k), up[k]
            while j >= 0:
                store(x, j, load(x, j) - load(L, k * nv + j) * y)
                j = up[j]
    for k in range(nv):
        if not prescribed[k]:
            y, j = load(Psi, k) * load(x, k), up[k]
            while j >= 0:
                y = y - load(L, k * nv + j) * load(x, j)
                j = up[j]
            store(x, k, y)
