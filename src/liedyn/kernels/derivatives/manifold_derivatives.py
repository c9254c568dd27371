"""Batches of the derivatives of q (+) x and of its inverse: see `joints.retraction_derivatives`."""
from liedyn.jit import entry
from liedyn.joints.retraction import difference
from liedyn.joints.retraction_derivatives import difference_derivatives, retract_derivatives
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, bad_configuration, finite
from liedyn.lie.blocks import pack, states_in, unpack


def manifold_derivatives_memory(n, nq, nv, nl): return 2 * nq + nv + 2 * nv * nv


@entry("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions_derivatives(index, constants, memory, q, x, by_q, by_x, first, last):
    """by_q, by_x (N, nv nv) of q (+) x."""
    nq, nv = index[1], index[2]
    tree, Q, X, m = tree_of(index, constants), memory[:nq], memory[nq:nq + nv], memory[nq + nv:]
    A, B = m[:nv * nv], m[nv * nv:2 * nv * nv]
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(x, k, X)
        code = bad_configuration(tree, Q, nq)
        if code == OK and not finite(X, nv):
            code = BAD_V
        if code != OK:
            return code
        retract_derivatives(tree, X, A, B)
        if not (finite(A, nv * nv) and finite(B, nv * nv)):
            return BAD_RESULT
        unpack(A, by_q, k)
        unpack(B, by_x, k)
    return OK


@entry("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences_derivatives(index, constants, memory, q0, q1, by_q0, by_q1, first, last):
    """by_q0, by_q1 (N, nv nv) of the x with q0 (+) x = q1."""
    nq, nv = index[1], index[2]
    tree, Q, Q1, m = tree_of(index, constants), memory[:nq], memory[nq:2 * nq], memory[2 * nq:]
    X, A, B = m[:nv], m[nv:nv + nv * nv], m[nv + nv * nv:nv + 2 * nv * nv]
    for k in range(first, last, states_in(memory)):
        pack(q0, k, Q)
        pack(q1, k, Q1)
        code = bad_configuration(tree, Q, nq)
        if code == OK:
            code = bad_configuration(tree, Q1, nq)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        difference_derivatives(tree, X, A, B)
        if not (finite(A, nv * nv) and finite(B, nv * nv)):
            return BAD_RESULT
        unpack(A, by_q0, k)
        unpack(B, by_q1, k)
    return OK
