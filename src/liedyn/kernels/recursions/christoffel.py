"""Christoffel symbols and dM/dq of all triples of joints, O(n depth^2): PBP (55)-(57) with composite bodies.

In world axes about the body's own origin (see `coriolis`). With D the deepest of the three joints, I = (m, h, A) all that
hangs on it and <X, Y> = X^T I Y, (55)-(57) are one formula, for i above j or of the same joint:

    Gamma_ijk = (<[S_k, S_i], S_j> + <[S_k, S_j], S_i> + <[S_i, S_j], S_k>)/2 = w_i . y_jk

It is the Koszul formula too where a joint has several coordinates: the bracket of two of its columns is then that of the
fields. y_jk = -y_kj is a vector, linear in S_k = (w, v):

    y_jk = K w + g x v,    g the linear momentum of S_j = (w', v'),    K = ([w'] A)^T + tr(A)/2 [w'] + (h.v') 1 - h v'^T

so each pair of joints costs a shift of (K, g) and each triple one product of three numbers.
"""

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, bad_configuration
from liedyn.kernels.recursions.coriolis import align, aligned_memory, aligned_work, skew, trace
from liedyn.kernels.recursions.results import block_size, clear, hand_out, place
from liedyn.lie.blocks import pack, states_in
from liedyn.lie.inertia import add_rigid, momentum
from liedyn.lie.lanes import store
from liedyn.lie.rows import load3, load_rigid, load_twist, store3, store_rigid
from liedyn.lie.shift import shift_rigid
from liedyn.lie.vec3 import add9, cross_rows, dot3, full, plus_cross, rotate, scale3, transpose

SYMBOLS, DERIVATIVE = 0, 1


@primitive
def minus_crosses(x, y):
    """-[y][x] = (x.y) 1 - x y^T."""
    d = dot3(x, y)
    return (d - x[0] * y[0], -(x[0] * y[1]), -(x[0] * y[2]), -(x[1] * y[0]), d - x[1] * y[1], -(x[1] * y[2]),
            -(x[2] * y[0]), -(x[2] * y[1]), d - x[2] * y[2])


@kernel
def pairs(tree, q, y, work):
    """Writes work and y (3 nv nv): of row k, columns of its own joint and of the joints above."""
    nv = tree.armature.shape[0]
    align(tree, q, work)
    for i in range(tree.parent.size - 1, 0, -1):
        I, p = load_rigid(work.I, i), load3(work.p, 3 * i)
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            (w, v), (_, h, A) = load_twist(work.S, k), I
            g = momentum(I, (w, v))[1]
            K = add9(add9(transpose(cross_rows(w, full(A))), skew(scale3(0.5 * trace(A), w))), minus_crosses(h, v))
            j = i
            while j > 0:
                for above in range(tree.iv[j], tree.iv[j] + NV[tree.kind[j]]):
                    up = load_twist(work.S, above)
                    store3(y, 3 * (k * nv + above), plus_cross(rotate(K, up[0]), g, up[1]))
                K, j = add9(K, minus_crosses(load3(work.p, 3 * j), g)), tree.parent[j]
        j = tree.parent[i]
        if j > 0:
            store_rigid(work.I, j, add_rigid(load_rigid(work.I, j), shift_rigid(p, I)))


@primitive
def angular(work, k): return load3(work.S, 6 * k)


@kernel
def symbols(tree, y, work, out):
    """Writes out (nv^3) for triples on one path: out[(i nv + j) nv + k] = Gamma_ijk. The deepest joint, d, is j (or i) or k."""
    nv = tree.armature.shape[0]
    for d in range(1, tree.parent.size):
        for D in range(tree.iv[d], tree.iv[d] + NV[tree.kind[d]]):
            b = d
            while b > 0:
                for k in range(tree.iv[b], tree.iv[b] + NV[tree.kind[b]]):
                    y_Dk = load3(y, 3 * (D * nv + k))
                    a = d
                    while a > 0:
                        for i in range(tree.iv[a], tree.iv[a] + NV[tree.kind[a]]):
                            x = dot3(angular(work, i), y_Dk)
                            store(out, (i * nv + D) * nv + k, x)
                            if a < d:
                                store(out, (D * nv + i) * nv + k, x)
                            if a <= b and b < d:                          # y_kD = -y_Dk
                                store(out, (i * nv + k) * nv + D, -x)
                            if a < b and b < d:
                                store(out, (k * nv + i) * nv + D, -x)
                        a = tree.parent[a]
                b = tree.parent[b]


@kernel
def derivatives(tree, y, work, out):
    """Writes out (nv^3) for triples on one path: out[(j nv + k) nv + i] = dM_jk/dq_i = Gamma_ijk + Gamma_ikj."""
    nv = tree.armature.shape[0]
    for d in range(1, tree.parent.size):
        for D in range(tree.iv[d], tree.iv[d] + NV[tree.kind[d]]):
            a = tree.parent[d]
            while a > 0:
                for j in range(tree.iv[a], tree.iv[a] + NV[tree.kind[a]]):
                    w_j, y_Dj = angular(work, j), load3(y, 3 * (D * nv + j))
                    b = d
                    while b >= a:
                        for k in range(tree.iv[b], tree.iv[b] + NV[tree.kind[b]]):
                            u, x = dot3(w_j, load3(y, 3 * (D * nv + k))), dot3(angular(work, k), y_Dj)
                            if b < d:                                     # moving the deepest
                                store(out, (j * nv + k) * nv + D, u + x)
                                store(out, (k * nv + j) * nv + D, u + x)
                            if a < b:                                     # moving the middle one, or another of the deepest joint
                                store(out, (j * nv + D) * nv + k, x - u)
                                store(out, (D * nv + j) * nv + k, x - u)
                        b = tree.parent[b]
                a = tree.parent[a]


# from Python ------------------------------------------------------------------------------------------------------
def christoffel_memory(n, nq, nv, nl): return aligned_memory(n, nv) + nq + 3 * nv * nv + nv * nv * nv


@entry("i8(i8[::1], f8[::1], f8[::1], i8, b1[::1], f8[:,::1], f8[:,::1], b1, i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8, b1[::1], f8[:,::1], f8[:,::1], b1, i8, i8)", nogil=True)
def christoffels(index, constants, memory, what, filled, q, out, past, first, last):
    """SYMBOLS or DERIVATIVE (N, nv^3) of states first … last - 1. Returns a code of `checks`. filled, past: see `results`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, m, size = tree_of(index, constants), memory, block_size(memory, nv * nv * nv)
    Q, y, m = m[:nq], m[nq:nq + 3 * nv * nv], m[nq + 3 * nv * nv:]
    block, work = m[:size], aligned_work(m[size:], n, nv)
    clear(block)
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        code = bad_configuration(tree, Q, nq)
        if code != OK:
            return code
        result, = place(block, out, k)
        pairs(tree, Q, y, work)
        if what == SYMBOLS:
            symbols(tree, y, work, result)
        else:
            derivatives(tree, y, work, result)
        if not hand_out(result, out, k, filled, past):
            return BAD_RESULT
    return OK
