"""Forces along a joint's columns."""
from liedyn.jit import primitive
from liedyn.joints.kinds import FREE, SCREW
from liedyn.joints.motion import screw
from liedyn.lie.lanes import store
from liedyn.lie.rows import store_apart
from liedyn.lie.screw import screw_dot


@primitive
def store_force_apart(tree, i, F, x, o, step):
    """S^T F to x[o], x[o + step], …; F in the frame of the body, as S."""
    if tree.kind[i] == SCREW:
        store(x, o, screw_dot(screw(tree, i), F))
    else:
        store_apart(x, o, step, F[0])
        if tree.kind[i] == FREE:
            store_apart(x, o + 3 * step, step, F[1])
