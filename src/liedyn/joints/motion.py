"""What a joint does: its pose, twist, velocity product and force, for all kinds (K1 (35)-(40); PBP (23); PL (14))."""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, FREE, SCREW
from liedyn.lie.inertia import rigid_to_parent as rigid_of_parent
from liedyn.lie.inertia import to_parent
from liedyn.lie.lanes import load, sincos, store
from liedyn.lie.rows import load3, load_pose, store_apart
from liedyn.lie.screw import ad_screw, screw_add, screw_dot, screw_pose
from liedyn.lie.se3 import ad, add, unit6
from liedyn.lie.so3 import quaternion_rotation
from liedyn.lie.vec3 import plus_rotate, product


@primitive
def screw(tree, i): return load(tree.S, 2 * i), load(tree.S, 2 * i + 1)


@primitive
def load_quaternion(q, o): return load(q, o), load(q, o + 1), load(q, o + 2), load(q, o + 3)


@primitive
def joint_pose(tree, i, q):
    """T of body i in its parent."""
    o = tree.iq[i]
    T0 = load_pose(tree.T0, i)
    if tree.kind[i] == SCREW:
        S, x = screw(tree, i), load(q, o)
        s, c = sincos(S[0] * x)
        return screw_pose(T0, S, s, c, x)
    if tree.kind[i] == BALL:
        R = quaternion_rotation(load_quaternion(q, o))
        zero = R[0] - R[0]
        return product(T0[0], R), (T0[1][0] + zero, T0[1][1] + zero, T0[1][2] + zero)
    return product(T0[0], quaternion_rotation(load_quaternion(q, o + 3))), plus_rotate(T0[1], T0[0], load3(q, o))


@primitive
def joint_motion(tree, i, v):
    """S v of a ball or free joint."""
    o = tree.iv[i]
    w = load3(v, o)
    if tree.kind[i] == BALL:
        zero = w[0] - w[0]
        return w, (zero, zero, zero)
    return w, load3(v, o + 3)


@primitive
def joint_add(tree, i, V, v):
    """V + S v: `v` is a velocity or an acceleration of all coordinates."""
    if tree.kind[i] == SCREW:
        return screw_add(V, screw(tree, i), load(v, tree.iv[i]))
    return add(V, joint_motion(tree, i, v))


@primitive
def joint_eta(tree, i, V, v):
    """eta = ad_V S v (K1 Table 4; dS/dt is zero for all kinds)."""
    if tree.kind[i] == SCREW:
        return ad_screw(V, screw(tree, i), load(v, tree.iv[i]))
    return ad(V, joint_motion(tree, i, v))


@primitive
def store_joint_force(tree, i, F, tau):
    """tau = S^T F."""
    store_force_apart(tree, i, F, tau, tree.iv[i], 1)


@primitive
def store_force_apart(tree, i, F, x, o, step):
    """S^T F to x[o], x[o + step], …; F in the frame of the body, as S."""
    if tree.kind[i] == SCREW:
        store(x, o, screw_dot(screw(tree, i), F))
    else:
        store_apart(x, o, step, F[0])
        if tree.kind[i] == FREE:
            store_apart(x, o + 3 * step, step, F[1])


@primitive
def joint_column(tree, i, c, zero):
    """Column c of S in the body frame; `zero` gives the kind of number."""
    if tree.kind[i] == SCREW:
        S = screw(tree, i)
        return (zero, zero, zero + S[0]), (zero, zero, zero + S[1])
    return unit6(c, zero)


@primitive
def inertia_to_parent(tree, i, q, T, X):
    """A symmetric 6x6 of body i, seen from the parent, where T is the pose there. Lines go by `codegen.shorter`."""
    return to_parent(T, X)


@primitive
def rigid_to_parent(tree, i, q, T, I):
    """The same of a rigid body."""
    return rigid_of_parent(T, I)
