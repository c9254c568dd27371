"""Coriolis matrix with dM/dt - 2C skew, O(n depth): Ploen's recursive form with composite bodies.

All in world axes about each body's own origin: a step to the parent is then a shift, and nothing grows with the distance
from the world's origin. With column j of body b written S_j, and dS_j = ad_{V_j} S_j - ad_{V_b} S_j its rate in the body,

    C_kj = sum over b below j and k of S_k^T (I_b dS_j + W_b S_j),    W_b skew, W_b V_b = -ad*_{V_b} I_b V_b

(PL (37)). What depends on b alone is W_b - I_b ad_{V_b} = [[E, 0], [-[f], 0]] with the linear momentum f: twelve numbers,
which add up towards the root as inertias do. Two choices of W, by their upper left part, have their uses:

    [w] A + A [w]                        PL Proposition 1
    ([w] A + A [w] - [A w])/2            the Levi-Civita connection: C_kj = sum_i Gamma_ijk v_i (PBP (52))

They differ by tr(A)/2 [w]. The second is half of the matrix B = (2E, f) of `lie.body_coriolis`.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.columns import joint_twist, store_columns
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, bad_configuration, finite
from liedyn.kernels.recursions.results import block_size, clear, hand_out, place
from liedyn.lie.blocks import pack, states_in
from liedyn.lie.body_coriolis import add_coriolis, coriolis_transposed, coriolis_wrench
from liedyn.lie.body_coriolis import coriolis as levi_civita
from liedyn.lie.inertia import add_rigid, momentum
from liedyn.lie.lanes import number_like, store
from liedyn.lie.rows import load3, load9, load_rigid, load_twist, store3, store9, store_rigid, store_twist
from liedyn.lie.se3 import ad, add, dot, scale
from liedyn.lie.shift import shift_coriolis, shift_rigid, shift_twist, shift_wrench
from liedyn.lie.vec3 import add9, congruence, dot3, product, rotate, scale3


class AlignedWork(NamedTuple):
    """World axes, about each body's own origin."""

    R: np.ndarray     # (9n,) rotation of the body in the world
    p: np.ndarray     # (3n,) from the parent's origin to the body's
    I: np.ndarray     # (10n,) inertia: of the body, later of all that hangs on it
    S: np.ndarray     # (6nv,) columns of the joints


class CoriolisWork(NamedTuple):
    V: np.ndarray     # (6n,) twist
    E: np.ndarray     # (9n,) 2E: see above, of the body and later of all that hangs on it
    f: np.ndarray     # (3n,) linear momentum, likewise
    dS: np.ndarray    # (6nv,) ad_{V_j} S_j


@primitive
def aligned_work(memory, n, nv):
    m, k = memory, 22 * n
    return AlignedWork(m[:9 * n], m[9 * n:12 * n], m[12 * n:k], m[k:k + 6 * nv])


def aligned_memory(n, nv): return 22 * n + 6 * nv


@primitive
def coriolis_work(memory, n, nv):
    m, k = memory, 18 * n
    return CoriolisWork(m[:6 * n], m[6 * n:15 * n], m[15 * n:k], m[k:k + 6 * nv])


def coriolis_memory(n, nv): return aligned_memory(n, nv) + 18 * n + 6 * nv


@primitive
def skew(x):
    zero = x[0] - x[0]
    return (zero, -x[2], x[1], x[2], zero, -x[0], -x[1], x[0], zero)


@primitive
def trace(A): return A[0] + A[3] + A[5]


@kernel
def align(tree, q, work):
    """Writes work, inertias of the bodies alone."""
    zero = number_like(q, 0.0)
    one = zero + 1.0
    store9(work.R, 0, (one, zero, zero, zero, one, zero, zero, zero, one))
    for i in range(1, tree.parent.size):
        T, R = joint_pose(tree, i, q), load9(work.R, 9 * tree.parent[i])
        store3(work.p, 3 * i, rotate(R, T[1]))
        R = product(R, T[0])
        store9(work.R, 9 * i, R)
        m, h, A = load_rigid(tree.I, i)
        store_rigid(work.I, i, (m + zero, rotate(R, h), congruence(R, A)))
        store_columns(tree, i, R, work.S)


@primitive
def load_coriolis(work, i): return load9(work.E, 9 * i), load3(work.f, 3 * i)


@primitive
def store_coriolis(work, i, B):
    store9(work.E, 9 * i, B[0])
    store3(work.f, 3 * i, B[1])


@primitive
def velocities(tree, v, ploen, aligned, work):
    """Writes work of the bodies alone."""
    zero = number_like(v, 0.0)
    store_twist(work.V, 0, ((zero, zero, zero), (zero, zero, zero)))
    for i in range(1, tree.parent.size):
        I = load_rigid(aligned.I, i)
        V = shift_twist(load3(aligned.p, 3 * i), load_twist(work.V, tree.parent[i]))
        V = add(V, joint_twist(tree, i, load9(aligned.R, 9 * i), v))
        store_twist(work.V, i, V)
        E, f = levi_civita(I, V, momentum(I, V)[1])
        store_coriolis(work, i, (add9(E, skew(scale3(ploen * trace(I[2]), V[0]))), f))
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store_twist(work.dS, k, ad(V, load_twist(aligned.S, k)))


@kernel
def coriolis(tree, q, v, ploen, C, aligned, work):
    """Writes C (nv nv, by rows) where one joint is above the other or they are one; elsewhere it is left as it is."""
    nv = tree.armature.shape[0]
    align(tree, q, aligned)
    velocities(tree, v, ploen, aligned, work)
    for i in range(tree.parent.size - 1, 0, -1):
        I, B = load_rigid(aligned.I, i), load_coriolis(work, i)
        first, end = tree.iv[i], tree.iv[i] + NV[tree.kind[i]]
        for k in range(first, end):
            S = load_twist(aligned.S, k)
            F = add(momentum(I, load_twist(work.dS, k)), scale(0.5, coriolis_wrench(B, S[0])))    # v[k] asks of those above …
            P, g = momentum(I, S), scale3(0.5, coriolis_transposed(B, S))                         # … and they of joint k
            for above in range(first, end):
                store(C, above * nv + k, dot(F, load_twist(aligned.S, above)))
            j = i
            while tree.parent[j] > 0:
                p = load3(aligned.p, 3 * j)
                F, P, j = shift_wrench(p, F), shift_wrench(p, P), tree.parent[j]
                for above in range(tree.iv[j], tree.iv[j] + NV[tree.kind[j]]):
                    up = load_twist(aligned.S, above)
                    store(C, above * nv + k, dot(F, up))
                    store(C, k * nv + above, dot3(g, up[0]) + dot(P, load_twist(work.dS, above)))
        j, p = tree.parent[i], load3(aligned.p, 3 * i)
        if j > 0:
            store_rigid(aligned.I, j, add_rigid(load_rigid(aligned.I, j), shift_rigid(p, I)))
            store_coriolis(work, j, add_coriolis(load_coriolis(work, j), shift_coriolis(p, B)))


# from Python ------------------------------------------------------------------------------------------------------
def coriolis_entry_memory(n, nq, nv, nl): return coriolis_memory(n, nv) + nq + nv + nv * nv


@entry("i8(i8[::1], f8[::1], f8[::1], f8, b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8, b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def coriolis_matrices(index, constants, memory, ploen, filled, q, v, C, first, last):
    """C (N, nv nv) of states first … last - 1. ploen: 1 for PL Proposition 1, 0 for the Levi-Civita connection. filled: see
    `results`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, m, size = tree_of(index, constants), memory, block_size(memory, nv * nv)
    Q, v1, block, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + nv + size], m[nq + nv + size:]
    aligned, work = aligned_work(m, n, nv), coriolis_work(m[22 * n + 6 * nv:], n, nv)
    clear(block)
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(v, k, v1)
        code = bad_configuration(tree, Q, nq)
        if code == OK and not finite(v1, nv):
            code = BAD_V
        if code != OK:
            return code
        result, = place(block, C, k)
        coriolis(tree, Q, v1, ploen, result, aligned, work)
        if not hand_out(result, C, k, filled, False):
            return BAD_RESULT
    return OK
