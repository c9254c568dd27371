"""What is to be differentiated along eight directions, as duals."""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, SCREW
from liedyn.joints.motion import load_quaternion
from liedyn.lie.duals import constant
from liedyn.lie.lanes import store
from liedyn.lie.so3 import quaternion_product, quaternion_rotation


@primitive
def constant_duals(x, X):
    """X = x without rates."""
    for k in range(x.shape[0]):
        store(X, k, constant(x[k]))


@primitive
def along_configuration(tree, q, first, Q):
    """The rates of Q = q along the tangents of coordinates first … first + 7."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == SCREW:
            seed(Q, o, k - first, 1.0)
        elif tree.kind[i] == BALL:
            seed_quaternion(Q, o, load_quaternion(q, o), k - first)
        else:
            u = load_quaternion(q, o + 3)
            seed_quaternion(Q, o + 3, u, k - first)
            R = quaternion_rotation(u)
            for c in range(3):                                    # dp = R dx
                for r in range(3):
                    seed(Q, o + r, k + 3 + c - first, R[3 * r + c])


@primitive
def seed_quaternion(Q, o, u, direction):
    """du = u (dw, 0)/2."""
    for c in range(3):
        du = quaternion_product(u, (0.5 if c == 0 else 0.0, 0.5 if c == 1 else 0.0, 0.5 if c == 2 else 0.0, 0.0))
        for j in range(4):
            seed(Q, o + j, direction + c, du[j])


@primitive
def seed(X, row, direction, rate):
    if 0 <= direction < 8:
        X[row, 1, direction] = rate
