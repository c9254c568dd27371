"""Batches of the derivatives of q (+) x and of its inverse: see `joints.retraction_derivatives`."""
from liedyn.jit import entry
from liedyn.joints.retraction import difference
from liedyn.joints.retraction_derivatives import difference_derivatives, retract_derivatives
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give, take_configuration, take_state
from liedyn.lie.lanes import WIDTH
from liedyn.seam.views import carve


def manifold_derivatives_memory(n, nq, nv, nl): return 2 * nq + nv + 2 * nv * nv


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions_derivatives(index, constants, memory, q, x, by_q, by_x, first, last):
    """by_q, by_x (N, nv nv) of q (+) x."""
    nq, nv = index[1], index[2]
    tree, (Q, X, A, B, _) = tree_of(index, constants), carve(memory, (nq, nv, nv * nv, nv * nv))
    for k in range(first, last, WIDTH):
        code = take_state(tree, q, x, k, Q, X)
        if code != OK:
            return code
        retract_derivatives(tree, X, A, B)
        if not (give(A, by_q, k) and give(B, by_x, k)):
            return BAD_RESULT
    return OK


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences_derivatives(index, constants, memory, q0, q1, by_q0, by_q1, first, last):
    """by_q0, by_q1 (N, nv nv) of the x with q0 (+) x = q1."""
    nq, nv = index[1], index[2]
    tree, (Q, Q1, X, A, B, _) = tree_of(index, constants), carve(memory, (nq, nq, nv, nv * nv, nv * nv))
    for k in range(first, last, WIDTH):
        code = take_configuration(tree, q0, k, Q) or take_configuration(tree, q1, k, Q1)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        difference_derivatives(tree, X, A, B)
        if not (give(A, by_q0, k) and give(B, by_q1, k)):
            return BAD_RESULT
    return OK
