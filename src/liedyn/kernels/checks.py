"""What an entry takes, gives and returns, and the checks that it makes on the way: cheaper here than in Python."""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, SCREW
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import absolute, all_less, load, number_like

OK, SHAPE, BAD_Q, BAD_V, BAD_A, BAD_TAU, BAD_F_EXT, BAD_QUATERNION, SINGULAR, BAD_RESULT = range(10)
UNIT = 1e-9     # how far |quaternion|^2 may be from 1: double precision, many roundings
SMALLEST = 2.2250738585072014e-308      # x < SMALLEST: x is 0 or less


# A line cannot branch on a number: where it is recorded, `within` and the checks of finite numbers become bounds of the line.
@primitive
def within(x, bound): return all_less(x, bound)


@primitive
def finite(x):
    """Whether no number is NaN or infinite."""
    n, total = x.shape[0], number_like(x, 0.0)
    a, b, c, d = total, total, total, total          # four sums: one waits for itself
    for k in range(0, n - 3, 4):
        a, b = a + load(x, k) * 0.0, b + load(x, k + 1) * 0.0
        c, d = c + load(x, k + 2) * 0.0, d + load(x, k + 3) * 0.0
    for k in range(n - n % 4, n):
        total = total + load(x, k) * 0.0
    return all_less(absolute(total + ((a + b) + (c + d))), 1.0)            # 0, or NaN


@primitive
def finite_where(x, mask, wanted):
    """The same for the entries whose mask is `wanted`."""
    total = number_like(x, 0.0)
    for k in range(x.shape[0]):
        if mask[k] == wanted:
            total = total + load(x, k) * 0.0
    return all_less(absolute(total), 1.0)            # 0, or NaN


@primitive
def bad_configuration(tree, q):
    """BAD_Q, BAD_QUATERNION or OK."""
    return bad_quaternions(tree, q) if finite(q) else BAD_Q


@primitive
def bad_quaternions(tree, q):
    for i in range(1, tree.parent.size):
        if tree.kind[i] != SCREW:
            o = tree.iq[i] if tree.kind[i] == BALL else tree.iq[i] + 3
            x, y, z, w = load(q, o), load(q, o + 1), load(q, o + 2), load(q, o + 3)
            if not within(absolute(x * x + y * y + z * z + w * w - 1.0), UNIT):
                return BAD_QUATERNION
    return OK


@primitive
def bad_state(tree, q, v):
    code = bad_configuration(tree, q)
    return BAD_V if code == OK and not finite(v) else code


@primitive
def bad_motion(tree, q, v, a):
    code = bad_state(tree, q, v)
    return BAD_A if code == OK and not finite(a) else code


# States of a batch from k on, as many as blocks Q, V, A hold.
@primitive
def take_configuration(tree, q, k, Q):
    pack(q, k, Q)
    return bad_configuration(tree, Q)


@primitive
def take_state(tree, q, v, k, Q, V):
    pack(q, k, Q)
    pack(v, k, V)
    return bad_state(tree, Q, V)


@primitive
def take_motion(tree, q, v, a, k, Q, V, A):
    pack(q, k, Q)
    pack(v, k, V)
    pack(a, k, A)
    return bad_motion(tree, Q, V, A)


@primitive
def give(block, out, k):
    """Results to the rows of a batch from k on; whether all are finite."""
    unpack(block, out, k)
    return finite(block)
