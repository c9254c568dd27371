"""Operations on the configuration manifold: q (+) x = q exp(x) joint by joint, its inverse, and the rate of a chart.

Units and frames: x (nv) has the units of v times seconds; ball and free joints in the body frame, right-multiplied.
"""
from liedyn.joints.joint_model import joint_column, joint_motion, load_quaternion, tree_views
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_configuration, load_state, store_block
from liedyn.lie.se3 import Ad_inv, dexp, dexp_inv, exp, neg
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, store
from liedyn.lie.so3 import (
    dexp3,
    dexp_inv3,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_product,
    quaternion_rotation,
    quaternion_unit,
)
from liedyn.lie.vectors import add_rotate, load3, neg3, rotate_back, store3, store3_strided, sub3
from liedyn.model.description import BALL, NV, ONE_DOF
from liedyn.numba_tools.decorators import entry_point, inline_kernel
from liedyn.numba_tools.numba_internals import split_workspace


@inline_kernel
def store_quaternion(q, o, u):
    """Write the quaternion u to q[o] … q[o + 3]."""
    store3(q, o, (u[0], u[1], u[2]))
    store(q, o + 3, u[3])


@inline_kernel
def retract(tree, q, x, out):
    """Write out = q (+) x. `out` may be q. Quaternions are normalized, which corrects rounding only."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == ONE_DOF:
            store(out, o, load(q, o) + load(x, k))
        elif tree.kind[i] == BALL:
            u = quaternion_product(load_quaternion(q, o), quaternion_exp(load3(x, k)))
            store_quaternion(out, o, quaternion_unit(u))
        else:
            u, w = load_quaternion(q, o + 3), load3(x, k)
            p = add_rotate(load3(q, o), quaternion_rotation(u), dexp3(w, load3(x, k + 3)))
            store3(out, o, p)
            store_quaternion(out, o + 3, quaternion_unit(quaternion_product(u, quaternion_exp(w))))


@inline_kernel
def difference(tree, q0, q1, out):
    """Write out (nv): the x with q0 (+) x = q1; rotations take the shorter way."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == ONE_DOF:
            store(out, k, load(q1, o) - load(q0, o))
        elif tree.kind[i] == BALL:
            u = quaternion_product(quaternion_conjugate(load_quaternion(q0, o)), load_quaternion(q1, o))
            store3(out, k, quaternion_log(u))
        else:
            u = load_quaternion(q0, o + 3)
            w = quaternion_log(quaternion_product(quaternion_conjugate(u), load_quaternion(q1, o + 3)))
            p = rotate_back(quaternion_rotation(u), sub3(load3(q1, o), load3(q0, o)))
            store3(out, k, w)
            store3(out, k + 3, dexp_inv3(w, p))


@inline_kernel
def chart_rate(tree, x, v, out):
    """Write out (nv): dx/dt of the chart q = q0 (+) x at velocity v: the inverse right Jacobian of exp."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == ONE_DOF:
            store(out, k, load(v, k))
        elif NV[tree.kind[i]] == 3:
            store3(out, k, dexp_inv3(neg3(load3(x, k)), load3(v, k)))
        else:
            y = dexp_inv(neg((load3(x, k), load3(x, k + 3))), (load3(v, k), load3(v, k + 3)))
            store3(out, k, y[0])
            store3(out, k + 3, y[1])


# Derivatives of q (+) x and of its inverse: matrices (nv, nv), by rows, with one block per joint ------------------------

# From exp(d) exp(x) = exp(x) exp(Ad_{exp(-x)} d) and the Jacobians of exp; in body frames, right-multiplied.

@inline_kernel
def retract_derivatives(tree, x, wrt_q, wrt_x):
    """Write the derivatives of q (+) x: wrt_q = Ad_{exp(-x)}, wrt_x = the right Jacobian of exp at x. Neither depends on q."""
    zero = number_like(x, 0.0)
    clear_matrices(tree, zero, wrt_q, wrt_x)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == ONE_DOF:
            store_one_dof_entries(tree, i, zero + 1.0, zero + 1.0, wrt_q, wrt_x)
        else:
            X = joint_motion(tree, i, x)
            T = exp(X)
            for c in range(NV[tree.kind[i]]):
                E = joint_column(tree, i, c, zero)
                store_column(tree, i, c, Ad_inv(T, E), wrt_q)
                store_column(tree, i, c, dexp(neg(X), E), wrt_x)


@inline_kernel
def difference_derivatives(tree, x, wrt_q0, wrt_q1):
    """Write the derivatives of x = difference(q0, q1).

    wrt_q0 is minus the inverse of the left Jacobian of exp at x, wrt_q1 the inverse of the right one.
    """
    zero = number_like(x, 0.0)
    clear_matrices(tree, zero, wrt_q0, wrt_q1)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == ONE_DOF:
            store_one_dof_entries(tree, i, zero - 1.0, zero + 1.0, wrt_q0, wrt_q1)
        else:
            X = joint_motion(tree, i, x)
            for c in range(NV[tree.kind[i]]):
                E = joint_column(tree, i, c, zero)
                store_column(tree, i, c, neg(dexp_inv(X, E)), wrt_q0)
                store_column(tree, i, c, dexp_inv(neg(X), E), wrt_q1)


@inline_kernel
def clear_matrices(tree, zero, A, B):
    """Set both matrices to zero."""
    nv = tree.armature.shape[0]
    for k in range(nv * nv):
        store(A, k, zero)
        store(B, k, zero)


@inline_kernel
def store_one_dof_entries(tree, i, a, b, A, B):
    """Write the diagonal entries a of A and b of B of a screw joint."""
    at = tree.iv[i] * (tree.armature.shape[0] + 1)
    store(A, at, a)
    store(B, at, b)


@inline_kernel
def store_column(tree, i, c, V, D):
    """Write column c of the block of a ball or free joint."""
    nv, k = tree.armature.shape[0], tree.iv[i]
    store3_strided(D, k * nv + k + c, nv, V[0])
    if NV[tree.kind[i]] == 6:
        store3_strided(D, (k + 3) * nv + k + c, nv, V[1])


# Batches on the configuration manifold: q (+) x and its inverse ---------------------------------------------------------

def manifold_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `retractions` and `differences` for one state (see `Model.sizes`)."""
    return 2 * nq + nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions(index, constants, memory, q, x, out, first, last):
    """Write out (N, nq) = q (+) x."""
    nq, nv = index[1], index[2]
    tree, (Q, X, Q1, _) = tree_views(index, constants), split_workspace(memory, (nq, nv, nq))
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, x, k, Q, X)
        if code != OK:
            return code
        retract(tree, Q, X, Q1)
        if not store_block(Q1, out, k):
            return BAD_RESULT
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences(index, constants, memory, q0, q1, out, first, last):
    """Write out (N, nv) with q0 (+) out = q1."""
    nq, nv = index[1], index[2]
    tree, (Q, X, Q1, _) = tree_views(index, constants), split_workspace(memory, (nq, nv, nq))
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q0, k, Q) or load_configuration(tree, q1, k, Q1)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        if not store_block(X, out, k):
            return BAD_RESULT
    return OK


# Batches of the derivatives of q (+) x and of its inverse ---------------------------------------------------

def manifold_derivatives_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of the derivatives of `retractions` and `differences` for one state."""
    return 2 * nq + nv + 2 * nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions_derivatives(index, constants, memory, q, x, wrt_q, wrt_x, first, last):
    """Write wrt_q, wrt_x (N, nv nv) of q (+) x."""
    nq, nv = index[1], index[2]
    tree, (Q, X, A, B, _) = tree_views(index, constants), split_workspace(memory, (nq, nv, nv * nv, nv * nv))
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, x, k, Q, X)
        if code != OK:
            return code
        retract_derivatives(tree, X, A, B)
        if not (store_block(A, wrt_q, k) and store_block(B, wrt_x, k)):
            return BAD_RESULT
    return OK


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences_derivatives(index, constants, memory, q0, q1, wrt_q0, wrt_q1, first, last):
    """Write wrt_q0, wrt_q1 (N, nv nv) of the x with q0 (+) x = q1."""
    nq, nv = index[1], index[2]
    tree, (Q, Q1, X, A, B, _) = tree_views(index, constants), split_workspace(memory, (nq, nq, nv, nv * nv, nv * nv))
    for k in range(first, last, SIMD_WIDTH):
        code = load_configuration(tree, q0, k, Q) or load_configuration(tree, q1, k, Q1)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        difference_derivatives(tree, X, A, B)
        if not (store_block(A, wrt_q0, k) and store_block(B, wrt_q1, k)):
            return BAD_RESULT
    return OK
