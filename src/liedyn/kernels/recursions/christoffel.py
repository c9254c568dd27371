"""Christoffel symbols and dM/dq of all triples of joints, O(n depth^2): PBP (55)-(57) with composite bodies.

With D the deepest of the three joints, I = (m, h, A) all that hangs on it and <X, Y> = X^T I Y, (55)-(57) are one formula, for i
above j or of the same joint:

    Gamma_ijk = (<[S_k, S_i], S_j> + <[S_k, S_j], S_i> + <[S_i, S_j], S_k>)/2 = w_i . y_jk

It is the Koszul formula too where a joint has several coordinates: the bracket of two of its columns is then that of the
fields. y_jk = -y_kj is a vector, linear in S_k = (w, v):

    y_jk = K w + g x v,    g the linear momentum of S_j = (w', v'),    K = ([w'] A)^T + tr(A)/2 [w'] + (h.v') 1 - h v'^T

All columns are seen from the body of D: then each triple costs one product of three numbers.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_column
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, finite, take_configuration
from liedyn.kernels.recursions.composite import CompositeWork, begin, composite_work, hand_to_parent
from liedyn.kernels.recursions.coriolis import skew, trace
from liedyn.lie.blocks import states_in, unpack
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import clear, load3, load_pose, load_rigid, load_twist, store3, store_twist
from liedyn.lie.se3 import Ad_inv, compose
from liedyn.lie.vec3 import add9, cross_rows, dot3, full, plus_cross, rotate, scale3, transpose
from liedyn.seam.views import carve

SYMBOLS, DERIVATIVE = 0, 1


class ChristoffelWork(NamedTuple):
    bodies: CompositeWork
    S: np.ndarray     # (6nv,) columns of the joints above a body, seen from it
    y: np.ndarray     # (3nv,)


@primitive
def christoffel_work(memory, n, nv):
    bodies, S, y, _ = carve(memory, (22 * n, 6 * nv, 3 * nv))
    return ChristoffelWork(composite_work(bodies, n), S, y)


@primitive
def minus_crosses(x, y):
    """-[y][x] = (x.y) 1 - x y^T."""
    d = dot3(x, y)
    return (d - x[0] * y[0], -(x[0] * y[1]), -(x[0] * y[2]), -(x[1] * y[0]), d - x[1] * y[1], -(x[1] * y[2]),
            -(x[2] * y[0]), -(x[2] * y[1]), d - x[2] * y[2])


@primitive
def see_columns(tree, d, work):
    """Writes the columns of joint d, and of those above it, into work.S: seen from body d."""
    zero = number_like(work.S, 0.0)
    for c in range(NV[tree.kind[d]]):
        store_twist(work.S, tree.iv[d] + c, joint_column(tree, d, c, zero))
    T, j = load_pose(work.bodies.T, d), tree.parent[d]
    while j > 0:
        for c in range(NV[tree.kind[j]]):
            store_twist(work.S, tree.iv[j] + c, Ad_inv(T, joint_column(tree, j, c, zero)))
        T, j = compose(load_pose(work.bodies.T, j), T), tree.parent[j]


@primitive
def pair(tree, d, D, work):
    """Writes y_Dk into work.y for the coordinates k of joint d, of which D is one, and of those above."""
    I, (w, v) = load_rigid(work.bodies.I, d), load_twist(work.S, D)
    g, (_, h, A) = momentum(I, (w, v))[1], I
    K = add9(add9(transpose(cross_rows(w, full(A))), skew(scale3(0.5 * trace(A), w))), minus_crosses(h, v))
    k = tree.iv[d] + NV[tree.kind[d]] - 1
    while k >= 0:
        up = load_twist(work.S, k)
        store3(work.y, 3 * k, plus_cross(rotate(K, up[0]), g, up[1]))
        k = tree.above[k]


@kernel
def symbols(tree, q, out, work):
    """Writes work and, of joints on one path, out (nv^3): out[(i nv + j) nv + k] = Gamma_ijk. The deepest is j (or i) or k."""
    nv = tree.armature.shape[0]
    begin(tree, q, work.bodies)
    for d in range(tree.parent.size - 1, 0, -1):
        see_columns(tree, d, work)
        for D in range(tree.iv[d], tree.iv[d] + NV[tree.kind[d]]):
            pair(tree, d, D, work)
            b = d
            while b > 0:
                for k in range(tree.iv[b], tree.iv[b] + NV[tree.kind[b]]):
                    y_Dk = load3(work.y, 3 * k)
                    a = d
                    while a > 0:
                        for i in range(tree.iv[a], tree.iv[a] + NV[tree.kind[a]]):
                            x = dot3(load3(work.S, 6 * i), y_Dk)
                            store(out, (i * nv + D) * nv + k, x)
                            if a < d:
                                store(out, (D * nv + i) * nv + k, x)
                            if a <= b and b < d:                          # y_kD = -y_Dk
                                store(out, (i * nv + k) * nv + D, -x)
                            if a < b and b < d:
                                store(out, (k * nv + i) * nv + D, -x)
                        a = tree.parent[a]
                b = tree.parent[b]
        hand_to_parent(tree, d, q, work.bodies)


@kernel
def derivatives(symbols, nv, out):
    """Writes out (nv^3): out[(j nv + k) nv + i] = dM_jk/dq_i = Gamma_ijk + Gamma_ikj."""
    for i in range(nv):
        for j in range(nv):
            for k in range(nv):
                store(out, (j * nv + k) * nv + i, load(symbols, (i * nv + j) * nv + k) + load(symbols, (i * nv + k) * nv + j))


# from Python ------------------------------------------------------------------------------------------------------
def christoffel_memory(n, nq, nv, nl): return 22 * n + 9 * nv + nq + 2 * nv * nv * nv


@entry("i8(i8[::1], f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def christoffels(index, constants, memory, what, q, out, first, last):
    """SYMBOLS or DERIVATIVE (N, nv^3) of states first … last - 1. Returns a code of `checks`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, size = tree_of(index, constants), nv * nv * nv
    Q, found, rates, m = carve(memory, (nq, size, size))
    work = christoffel_work(m, n, nv)
    clear(found)
    for k in range(first, last, states_in(memory)):
        code = take_configuration(tree, q, k, Q)
        if code != OK:
            return code
        symbols(tree, Q, found, work)
        if not finite(found):
            return BAD_RESULT
        if what == SYMBOLS:
            unpack(found, out, k)
        else:
            derivatives(found, nv, rates)
            unpack(rates, out, k)
    return OK
