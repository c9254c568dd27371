"""Coriolis matrix with dM/dt - 2C skew, O(n depth): Ploen's recursive form with composite bodies.

With column j of body b written S_j, and dS_j = ad_{V_j} S_j - ad_{V_b} S_j its rate in the body,

    C_kj = sum over b below j and k of S_k^T (I_b dS_j + W_b S_j),    W_b skew, W_b V_b = -ad*_{V_b} I_b V_b

(PL (37)). What depends on b alone is W_b - I_b ad_{V_b} = [[E, 0], [-[f], 0]] with the linear momentum f: twelve numbers,
which add up towards the root as inertias do. Two choices of W, by their upper left part, have their uses:

    [w] A + A [w]                        PL Proposition 1
    ([w] A + A [w] - [A w])/2            the Levi-Civita connection: C_kj = sum_i Gamma_ijk v_i (PBP (52))

They differ by tr(A)/2 [w]. The second is half of the matrix B = (2E, f) of `lie.body_coriolis`.
"""
from liedyn.jit import entry, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_column, store_force_apart
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give, take_state
from liedyn.kernels.derivatives.inverse_derivatives import (
    derivatives_memory,
    derivatives_work,
    hand_to_parent,
    load_coriolis,
    outward,
    store_coriolis,
)
from liedyn.lie.body_coriolis import coriolis_transposed, coriolis_wrench
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import WIDTH, number_like, store
from liedyn.lie.rows import clear, load_pose, load_rigid, load_twist
from liedyn.lie.se3 import ad, add, dAd_inv, dot, scale
from liedyn.lie.vec3 import add9, dot3, rotate, scale3
from liedyn.seam.views import carve


@primitive
def skew(x):
    zero = x[0] - x[0]
    return (zero, -x[2], x[1], x[2], zero, -x[0], -x[1], x[0], zero)


@primitive
def trace(A): return A[0] + A[3] + A[5]


@primitive
def coriolis(tree, q, v, rest, ploen, C, work):
    """Writes work (DerivativesWork) and C (nv nv, by rows) where one joint hangs on the other or is it. rest (nv): zeros."""
    zero = number_like(q, 0.0)
    outward(tree, tree.I, q, v, rest, q[:0], work)
    for i in range(tree.parent.size - 1, 0, -1):
        (E, f), turn = load_coriolis(work.B, i), ploen * trace(load_rigid(tree.I, i)[2])
        store_coriolis(work.B, i, (add9(E, skew(scale3(turn, load_twist(work.V, i)[0]))), f))
        for c in range(NV[tree.kind[i]]):
            coordinate(tree, i, c, zero, C, work)
        hand_to_parent(tree, i, q, work)


@primitive
def coordinate(tree, i, c, zero, C, work):
    """Row and column k of C, the c-th coordinate of body i, where they meet what i hangs on."""
    nv, k, j = tree.armature.shape[0], tree.iv[i] + c, i
    s, I, B = joint_column(tree, i, c, zero), load_rigid(work.I, i), load_coriolis(work.B, i)
    F = add(momentum(I, ad(load_twist(work.V, i), s)), scale(0.5, coriolis_wrench(B, s[0])))    # v_k asks of those above …
    P, g = momentum(I, s), scale3(0.5, coriolis_transposed(B, s))                               # … and they of coordinate k
    while True:
        first = tree.iv[j]
        store_force_apart(tree, j, F, C, first * nv + k, nv)
        if j != i:
            for d in range(NV[tree.kind[j]]):
                s = joint_column(tree, j, d, zero)
                store(C, k * nv + first + d, dot(P, ad(load_twist(work.V, j), s)) + dot3(g, s[0]))
        if tree.parent[j] == 0:
            break
        T = load_pose(work.T, j)
        F, P, g, j = dAd_inv(T, F), dAd_inv(T, P), rotate(T[0], g), tree.parent[j]


# from Python ------------------------------------------------------------------------------------------------------
def coriolis_memory(n, nq, nv, nl): return derivatives_memory(n, nv) + nq + 2 * nv + nv * nv


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8, f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def coriolis_matrices(index, constants, memory, ploen, q, v, C, first, last):
    """C (N, nv nv) of states first … last - 1. ploen: 1 for PL Proposition 1; 0 for the Levi-Civita connection."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, v1, rest, block, m) = tree_of(index, constants), carve(memory, (nq, nv, nv, nv * nv))
    work = derivatives_work(m, n, nv)
    clear(rest)
    clear(block)
    for k in range(first, last, WIDTH):
        code = take_state(tree, q, v, k, Q, v1)
        if code != OK:
            return code
        coriolis(tree, Q, v1, rest, ploen, block, work)
        if not give(block, C, k):
            return BAD_RESULT
    return OK
