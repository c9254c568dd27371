"""A joint's columns about the origin of its body, along axes in which the body is turned by R."""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, FREE, SCREW
from liedyn.joints.motion import screw
from liedyn.lie.lanes import load, store
from liedyn.lie.rows import load3, store_apart, store_twist
from liedyn.lie.screw import screw_dot
from liedyn.lie.vec3 import column, rotate, scale3


@primitive
def store_columns(tree, i, R, s):
    """Writes s (6nv): the twists of the joint's columns."""
    k, zero = tree.iv[i], R[0] - R[0]
    none = (zero, zero, zero)
    if tree.kind[i] == SCREW:
        (a, b), z = screw(tree, i), column(R, 2)
        store_twist(s, k, (scale3(a, z), scale3(b, z)))
    else:
        for c in range(3):
            x = R[c], R[3 + c], R[6 + c]
            store_twist(s, k + c, (x, none))
            if tree.kind[i] != BALL:
                store_twist(s, k + 3 + c, (none, x))


@primitive
def joint_twist(tree, i, R, v):
    """S v."""
    k = tree.iv[i]
    if tree.kind[i] == SCREW:
        (a, b), x, z = screw(tree, i), load(v, k), column(R, 2)
        return scale3(a * x, z), scale3(b * x, z)
    w, zero = rotate(R, load3(v, k)), R[0] - R[0]
    if tree.kind[i] == BALL:
        return w, (zero, zero, zero)
    return w, rotate(R, load3(v, k + 3))


@primitive
def store_force_apart(tree, i, F, x, o, step):
    """S^T F to x[o], x[o + step], …; F in the frame of the body, as S."""
    if tree.kind[i] == SCREW:
        store(x, o, screw_dot(screw(tree, i), F))
    else:
        store_apart(x, o, step, F[0])
        if tree.kind[i] == FREE:
            store_apart(x, o + 3 * step, step, F[1])
