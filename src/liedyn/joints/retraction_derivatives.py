"""Derivatives of q (+) x and of its inverse: matrices (nv, nv), by rows, with one block a joint.

From exp(d) exp(x) = exp(x) exp(Ad_{exp(-x)} d) and the Jacobians of exp; in body frames, right-multiplied.
"""
from liedyn.jit import primitive
from liedyn.joints.kinds import NV, SCREW
from liedyn.joints.motion import joint_column, joint_motion
from liedyn.lie.lanes import number_like, store
from liedyn.lie.rows import store_apart
from liedyn.lie.se3 import Ad_inv, dexp, dexp_inv, exp, neg


@primitive
def retract_derivatives(tree, x, by_q, by_x):
    """Of q (+) x: by_q = Ad_{exp(-x)}, by_x = the right Jacobian of exp at x. Neither depends on q."""
    zero = number_like(x, 0.0)
    clear_both(tree, zero, by_q, by_x)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == SCREW:
            store_ones(tree, i, zero + 1.0, zero + 1.0, by_q, by_x)
        else:
            X = joint_motion(tree, i, x)
            T = exp(X)
            for c in range(NV[tree.kind[i]]):
                E = joint_column(tree, i, c, zero)
                store_column(tree, i, c, Ad_inv(T, E), by_q)
                store_column(tree, i, c, dexp(neg(X), E), by_x)


@primitive
def difference_derivatives(tree, x, by_q0, by_q1):
    """Of x = difference(q0, q1): minus the inverse of the left Jacobian of exp at x, and the inverse of the right one."""
    zero = number_like(x, 0.0)
    clear_both(tree, zero, by_q0, by_q1)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == SCREW:
            store_ones(tree, i, zero - 1.0, zero + 1.0, by_q0, by_q1)
        else:
            X = joint_motion(tree, i, x)
            for c in range(NV[tree.kind[i]]):
                E = joint_column(tree, i, c, zero)
                store_column(tree, i, c, neg(dexp_inv(X, E)), by_q0)
                store_column(tree, i, c, dexp_inv(neg(X), E), by_q1)


@primitive
def clear_both(tree, zero, A, B):
    nv = tree.armature.shape[0]
    for k in range(nv * nv):
        store(A, k, zero)
        store(B, k, zero)


@primitive
def store_ones(tree, i, a, b, A, B):
    """A screw's entries."""
    at = tree.iv[i] * (tree.armature.shape[0] + 1)
    store(A, at, a)
    store(B, at, b)


@primitive
def store_column(tree, i, c, V, D):
    """Column c of the block of a ball or free joint."""
    nv, k = tree.armature.shape[0], tree.iv[i]
    store_apart(D, k * nv + k + c, nv, V[0])
    if NV[tree.kind[i]] == 6:
        store_apart(D, (k + 3) * nv + k + c, nv, V[1])
