"""Batches on the configuration manifold: q (+) x and its inverse."""
from liedyn.jit import entry
from liedyn.joints.retraction import difference, retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, bad_configuration, finite
from liedyn.lie.blocks import pack, states_in, unpack


def manifold_memory(n, nq, nv, nl): return 2 * nq + nv


@entry("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def retractions(index, constants, memory, q, x, out, first, last):
    """out (N, nq) = q (+) x."""
    nq, nv = index[1], index[2]
    tree, Q, X, Q1 = tree_of(index, constants), memory[:nq], memory[nq:nq + nv], memory[nq + nv:2 * nq + nv]
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        pack(x, k, X)
        code = bad_configuration(tree, Q, nq)
        if code == OK and not finite(X, nv):
            code = BAD_V
        if code != OK:
            return code
        retract(tree, Q, X, Q1)
        if not finite(Q1, nq):
            return BAD_RESULT
        unpack(Q1, out, k)
    return OK


@entry("i8(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def differences(index, constants, memory, q0, q1, out, first, last):
    """out (N, nv) with q0 (+) out = q1."""
    nq, nv = index[1], index[2]
    tree, Q, X, Q1 = tree_of(index, constants), memory[:nq], memory[nq:nq + nv], memory[nq + nv:2 * nq + nv]
    for k in range(first, last, states_in(memory)):
        pack(q0, k, Q)
        pack(q1, k, Q1)
        code = bad_configuration(tree, Q, nq)
        if code == OK:
            code = bad_configuration(tree, Q1, nq)
        if code != OK:
            return code
        difference(tree, Q, Q1, X)
        if not finite(X, nv):
            return BAD_RESULT
        unpack(X, out, k)
    return OK
