"""Moving on the configuration manifold: q (+) x = q exp(x) joint by joint, its inverse, and the rate of a chart.

Units and frames: x (nv) like v times a second; ball and free joints in the body frame, right-multiplied.
"""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, NV, SCREW
from liedyn.joints.motion import load_quaternion
from liedyn.lie.lanes import load, store
from liedyn.lie.rows import load3, store3
from liedyn.lie.se3 import dexp_inv, neg
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
from liedyn.lie.vec3 import neg3, plus_rotate, rotate_back, sub3


@primitive
def store_quaternion(q, o, u): store3(q, o, (u[0], u[1], u[2])); store(q, o + 3, u[3])


@primitive
def retract(tree, q, x, out):
    """out = q (+) x. `out` may be q. Quaternions are brought back to unit norm, against rounding only."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == SCREW:
            store(out, o, load(q, o) + load(x, k))
        elif tree.kind[i] == BALL:
            u = quaternion_product(load_quaternion(q, o), quaternion_exp(load3(x, k)))
            store_quaternion(out, o, quaternion_unit(u))
        else:
            u, w = load_quaternion(q, o + 3), load3(x, k)
            p = plus_rotate(load3(q, o), quaternion_rotation(u), dexp3(w, load3(x, k + 3)))
            store3(out, o, p)
            store_quaternion(out, o + 3, quaternion_unit(quaternion_product(u, quaternion_exp(w))))


@primitive
def difference(tree, q0, q1, out):
    """out (nv): the x with q0 (+) x = q1, rotations by the shorter way."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == SCREW:
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


@primitive
def chart_rate(tree, x, v, out):
    """out (nv): dx/dt of the chart q = q0 (+) x when the velocity is v: the inverse right Jacobian of exp."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == SCREW:
            store(out, k, load(v, k))
        elif NV[tree.kind[i]] == 3:
            store3(out, k, dexp_inv3(neg3(load3(x, k)), load3(v, k)))
        else:
            y = dexp_inv(neg((load3(x, k), load3(x, k + 3))), (load3(v, k), load3(v, k + 3)))
            store3(out, k, y[0])
            store3(out, k + 3, y[1])
