"""M^-1 of eight states from the factor of `mass_factor` and the rows E that follow from it, limb by limb from the ground."""
from liedyn.jit import callee, primitive
from liedyn.kernels.limb_rows import limb_rows
from liedyn.kernels.mass_factor import within
from liedyn.kernels.ways import end_of_rows, in_a_row, nothing_behind, three_of
from liedyn.lie.lanes import load, number_like, store

# N, E hold columns of matrices (see `blocks.put`).


@callee
def invert_mass(tree, prescribed, ways, L, Psi, A, rows):
    """N = M_vv^-1, first in A; E follows after `rows` rows.

    Row k of L N = D^-1 L^-T, of which the right side is zero left of the diagonal and Psi_k on it, gives
    N_kc = -sum_j L_kj N_jc for c < k, and N_kk = Psi_k - sum_j L_kj N_jk by symmetry. Columns before the limb of k need only
    what stands above the limb: N_Kc = -E N_Ac. So do prescribed columns, and prescribed rows of limbs with nothing behind them.
    Left out, for `pivot_transform` to write, are entries with a prescribed coordinate within such a limb, and all of prescribed
    coordinates of other limbs: there anything is written."""
    nv, kind, s = prescribed.size, number_like(Psi, 0.0), 0
    while s < nv:
        end = end_of_rows(ways, ways.every, s, nv)
        all_rows = ways.given.size > 0 and nothing_behind(tree, ways, s)
        which, r, e = (ways.every, s, end) if all_rows else (ways.free, ways.count[s], ways.count[end])
        for o in range(r, e if tree.above[s] >= 0 else r, 6):
            up_to, b, last = min(o + 6, e), tree.top[s], s - 1
            while b <= last:
                w, z, next_two = b * nv, min(b + 1, last) * nv, 0
                if b + 3 <= last and in_a_row(which, o, up_to):
                    next_two = 2 * nv
                at = rows, w, z, w, z, w, z
                limb_rows(tree, prescribed, which, o, up_to, kind, A, at, next_two, tree.above[s], nv, None)
                b += 4 if next_two > 0 else 2
        for k in range(s, end):                                # the other half, also of what is left out
            for c in range(tree.top[s], s):
                x = load(A, c * nv + k)
                store(A, k * nv + c, x if prescribed[c] == prescribed[k] else -x)
        r, e = ways.count[s], ways.count[end]
        while r < e:
            o = r + ways.chain[r]
            if o - r > 1:
                three_in_limb(tree, ways, three_of(ways.free, r, o), s, L, Psi, A)
            else:
                one_in_limb(tree, ways, ways.free[r], s, L, Psi, A)
            r = o
        s = end


@primitive
def one_in_limb(tree, ways, k, s, L, Psi, N):
    """Row k for the columns s … k of its limb, four at a time; and what is the same by symmetry."""
    nv, zero, up, run = tree.above.size, number_like(Psi, 0.0), ways.up, ways.run
    for first in range(s, k, 4):
        o = first * nv, min(first + 1, k - 1) * nv, min(first + 2, k - 1) * nv, min(first + 3, k - 1) * nv
        x, j = (zero, zero, zero, zero), up[k]
        while j >= 0:
            for m in range(run[j], j + 1):
                x = four_less(x, load(L, k * nv + m), load_four(N, o, m))
            j = up[run[j]]
        store_four(N, o, k, x)
    for c in range(s, k):
        store(N, k * nv + c, load(N, c * nv + k))
    d, j = load(Psi, k), up[k]
    while j >= 0:                                              # a sum for each run: less to wait for
        x = zero
        for m in range(run[j], j + 1):
            x = x + load(L, k * nv + m) * load(N, k * nv + m)
        d, j = d - x, up[run[j]]
    store(N, k * nv + k, d)


@primitive
def three_in_limb(tree, ways, rows, s, L, Psi, N):
    """The same of the rows a, b, c."""
    (a, b, c), nv, up, run = rows, tree.above.size, ways.up, ways.run
    ba, ca, cb = within(rows, nv, L)
    for first in range(s, a, 4):
        o = first * nv, min(first + 1, a - 1) * nv, min(first + 2, a - 1) * nv, min(first + 3, a - 1) * nv
        zero, j = number_like(Psi, 0.0), up[a]
        x = y = z = zero, zero, zero, zero
        while j >= 0:
            for m in range(run[j], j + 1):
                n = load_four(N, o, m)
                x = four_less(x, load(L, a * nv + m), n)
                y = four_less(y, load(L, b * nv + m), n)
                z = four_less(z, load(L, c * nv + m), n)
            j = up[run[j]]
        y = four_less(y, ba, x)
        store_four(N, o, c, four_less(four_less(z, ca, x), cb, y))
        store_four(N, o, b, y)
        store_four(N, o, a, x)
    for k in range(s, a):
        store(N, a * nv + k, load(N, k * nv + a))
        store(N, b * nv + k, load(N, k * nv + b))
        store(N, c * nv + k, load(N, k * nv + c))
    zero, j = number_like(Psi, 0.0), up[a]
    aa, bb, cc = load(Psi, a), load(Psi, b), load(Psi, c)
    xb, xc, yc = zero, zero, zero
    while j >= 0:
        for m in range(run[j], j + 1):
            x, y, z = load(L, a * nv + m), load(L, b * nv + m), load(L, c * nv + m)
            n = load(N, a * nv + m), load(N, b * nv + m), load(N, c * nv + m)
            aa, bb, cc = aa - x * n[0], bb - y * n[1], cc - z * n[2]
            xb, xc, yc = xb - y * n[0], xc - z * n[0], yc - z * n[1]
        j = up[run[j]]
    xb = xb - ba * aa
    xc = xc - ca * aa - cb * xb
    bb = bb - ba * xb
    yc = yc - ca * xb - cb * bb
    store(N, c * nv + c, cc - ca * xc - cb * yc)
    if b < c:
        store(N, b * nv + c, yc)
        store(N, c * nv + b, yc)
        store(N, a * nv + c, xc)
        store(N, c * nv + a, xc)
    store(N, b * nv + b, bb)
    if a < b:
        store(N, a * nv + b, xb)
        store(N, b * nv + a, xb)
    store(N, a * nv + a, aa)


@primitive
def load_four(A, o, k): return load(A, o[0] + k), load(A, o[1] + k), load(A, o[2] + k), load(A, o[3] + k)


@primitive
def store_four(A, o, k, x):
    store(A, o[0] + k, x[0])
    store(A, o[1] + k, x[1])
    store(A, o[2] + k, x[2])
    store(A, o[3] + k, x[3])


@primitive
def four_less(y, m, x): return y[0] - m * x[0], y[1] - m * x[1], y[2] - m * x[2], y[3] - m * x[3]
