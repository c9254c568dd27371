"""Batches on the configuration manifold: q (+) x and its inverse."""
from liedyn.jit import entry
from liedyn.joints.retraction import difference, retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give, take_configuration, take_state
from liedyn.lie.lanes import WIDTH
from liedyn.seam.views import carve


def manifold_memory(n, nq, nv, nl): return 2 * nq + nv


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions(index, constants, memory, q, x, out, first, last):
    """out (N, nq) = q (+) x."""
    nq, nv = index[1], index[2]
    tree, (Q, X, Q1, _) = tree_of(index, constants), carve(memory, (nq, nv, nq))
    for k in range(first, last, WIDTH):
        code = take_state(tree, q, x, k, Q, X)
        if code != OK:
            return code
        retract(tree, Q, X, Q1)
        if not give(Q1, out, k):
            return BAD_RESULT
    return OK


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences(index, constants, memory, q0, q1, out, first, last):
    """out (N, nv) with q0 (+) out = q1."""
    nq, nv = index[1], index[2]
    tree, (Q, X, Q1, _) = tree_of(index, constants), carve(memory, (nq, nv, nq))
    for k in range(first, last, WIDTH):
        code = take_configuration(tree, q0, k, Q) or take_configuration(tree, q1, k, Q1)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        if not give(X, out, k):
            return BAD_RESULT
    return OK
