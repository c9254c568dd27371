"""Motion of a joint as a power series in time: poses of bodies as truncated Taylor coefficients x_k = x^(k)/k!.

A series of poses (12 (m + 1) numbers) is m + 1 poses after one another; all but the first are coefficients, no poses. The
velocity's series v holds nv numbers a coefficient, component by component, so dq/dt = v for screws, dR/dt = R [w] and
dp/dt = R v for ball and free joints.
"""
from liedyn.jit import primitive
from liedyn.joints.kinds import BALL, SCREW
from liedyn.joints.motion import joint_motion, load_quaternion, screw
from liedyn.lie.lanes import load, number_like, sincos, store
from liedyn.lie.rows import load3, load9, load_apart, store3, store9, store_pose
from liedyn.lie.so3 import quaternion_rotation
from liedyn.lie.vec3 import (
    add3,
    add9,
    from_columns,
    neg3,
    plus_cross,
    plus_rotate,
    plus_rotate_back,
    product,
    rotate_back,
    scale3,
    transpose,
)


@primitive
def move_by_joint(tree, i, q, v, m, way, T, M):
    """T in place to T M(q(t)), M being the motion of joint i (way 1.0), or to T M^-1 (way -1.0). So the frame that joint i stands
    on, T_parent T0, becomes that of body i, or the other way round. M (12 (m + 1)): scratch."""
    if tree.kind[i] == SCREW:
        angle_series(tree, i, q, v, m, M)
        turn(tree, i, q, v, m, way, T, M)
    else:
        own_series(tree, i, q, v, m, M)
        if way < 0.0:
            invert(m, M)
        for k in range(m, -1, -1):                                # downwards: coefficient k needs those up to k
            Q = load9(T, 0)
            R, p = product(Q, load9(M, 12 * k)), plus_rotate(load3(T, 12 * k + 9), Q, load3(M, 12 * k + 9))
            for j in range(1, k + 1):
                Q = load9(T, 12 * j)
                R = add9(R, product(Q, load9(M, 12 * (k - j))))
                p = plus_rotate(p, Q, load3(M, 12 * (k - j) + 9))
            store_pose(T, k, (R, p))


@primitive
def angle_series(tree, i, q, v, m, M):
    """Cosine and sine of a screw's angle x into M[0 … m] and M[m + 1 … 2 m + 1]: c' = -x' s, s' = x' c."""
    a, o, nv = screw(tree, i)[0], tree.iv[i], tree.armature.shape[0]
    s, c = sincos(a * load(q, tree.iq[i]))
    store(M, 0, c)
    store(M, m + 1, s)
    for k in range(m):
        dc, ds = s - s, s - s
        for j in range(k + 1):
            x = load(v, j * nv + o)
            dc = dc - x * load(M, m + 1 + k - j)
            ds = ds + x * load(M, k - j)
        f = a * (1.0 / (k + 1))
        store(M, k + 1, f * dc)
        store(M, m + 2 + k, f * ds)


@primitive
def turn(tree, i, q, v, m, way, T, M):
    """T exp(S q(t)): the columns x, y turn about z, and the origin moves along z."""
    b, o, nv = way * screw(tree, i)[1], tree.iv[i], tree.armature.shape[0]
    for k in range(m, -1, -1):
        c, s, z = load(M, 0), way * load(M, m + 1), load_apart(T, 12 * k + 2, 3)
        x, y = load_apart(T, 12 * k, 3), load_apart(T, 12 * k + 1, 3)
        p = add3(load3(T, 12 * k + 9), scale3(b * load(q, tree.iq[i]), z))
        x, y = add3(scale3(c, x), scale3(s, y)), add3(scale3(c, y), scale3(-s, x))
        for j in range(1, k + 1):
            c, s, h = load(M, j), way * load(M, m + 1 + j), b * (1.0 / j) * load(v, (j - 1) * nv + o)
            e, f = load_apart(T, 12 * (k - j), 3), load_apart(T, 12 * (k - j) + 1, 3)
            x = add3(x, add3(scale3(c, e), scale3(s, f)))
            y = add3(y, add3(scale3(c, f), scale3(-s, e)))
            p = add3(p, scale3(h, load_apart(T, 12 * (k - j) + 2, 3)))
        store9(T, 12 * k, from_columns(x, y, z))
        store3(T, 12 * k + 9, p)


@primitive
def own_series(tree, i, q, v, m, M):
    """M: the motion of a ball or free joint."""
    o, nv = tree.iq[i], tree.armature.shape[0]
    zero = number_like(q, 0.0)
    if tree.kind[i] == BALL:
        store_pose(M, 0, (quaternion_rotation(load_quaternion(q, o)), (zero, zero, zero)))
    else:
        store_pose(M, 0, (quaternion_rotation(load_quaternion(q, o + 3)), load3(q, o)))
    for k in range(m):
        x, y, z, p = (zero, zero, zero), (zero, zero, zero), (zero, zero, zero), (zero, zero, zero)
        for j in range(k + 1):
            R, (w, u) = load9(M, 12 * (k - j)), joint_motion(tree, i, v[j * nv:])
            x = plus_cross(x, (R[0], R[1], R[2]), w)            # rows of R [w]
            y = plus_cross(y, (R[3], R[4], R[5]), w)
            z = plus_cross(z, (R[6], R[7], R[8]), w)
            p = plus_rotate(p, R, u)
        f = 1.0 / (k + 1)
        x, y, z = scale3(f, x), scale3(f, y), scale3(f, z)
        store_pose(M, k + 1, ((x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]), scale3(f, p)))


@primitive
def invert(m, M):
    """M in place to M^-1 = (R^T, -R^T p)."""
    for k in range(m, -1, -1):
        p = rotate_back(load9(M, 0), load3(M, 12 * k + 9))
        for j in range(1, k + 1):
            p = plus_rotate_back(p, load9(M, 12 * j), load3(M, 12 * (k - j) + 9))
        store3(M, 12 * k + 9, neg3(p))
    for k in range(m + 1):
        store9(M, 12 * k, transpose(load9(M, 12 * k)))
