"""Taylor series of joint motions (AGF Algorithms 1-2, in body frames).

x(t) = sum of x_k t^k represents the derivatives x^(k) = k! x_k at t = 0, so a product is a Cauchy sum. The pose of a joint is
T(t) = T(0) D(t), D' = D [S v]. E is the series of Ad_D = [R 0; B R], which satisfies E' = E ad_{S v}:

    twists      Ad_{T^-1} V  =  sum over j of  E_j^-1 (Ad_{T(0)^-1} V_{k-j}),   E^-1 = [R^T 0; B^T R^T]
    wrenches    Ad*_{T^-1} F =  Ad*_{T(0)^-1} (sum over j of  E_j F_{k-j})

Since E_0 = 1, the functions below give the terms j = 1 … k. Coefficient k of body i is at i K + k (twists), that of coordinate
c at c K + k (scalars). For a screw, E is four series: cosine and sine of the angle, and both times the advance.
"""
from liedyn.joints.joint_model import joint_motion, load_quaternion, screw
from liedyn.lie.se3 import add, identity, screw_add, zero6
from liedyn.lie.simd import load, number_like, sincos, sqrt, store
from liedyn.lie.so3 import quaternion_rotation
from liedyn.lie.vectors import (
    add3,
    add9,
    add_cross,
    add_rotate,
    add_rotate_back,
    clear,
    from_columns,
    load3,
    load3_strided,
    load9,
    load_twist,
    matmul3,
    neg3,
    rotate_back,
    scale3,
    store3,
    store9,
    store_pose,
    transpose,
)
from liedyn.model.description import BALL, NV, ONE_DOF, ROTATES, TRANSLATES
from liedyn.numba_tools.decorators import inline_kernel

MOTION_SIZE = 18          # numbers in each coefficient of E


@inline_kernel
def joint_series(tree, i, K, k, v):
    """Return coefficient k of S v of a ball or free joint."""
    o = tree.iv[i]
    w = load3_strided(v, o * K + k, K)
    if tree.kind[i] == BALL:
        zero = w[0] - w[0]
        return w, (zero, zero, zero)
    return w, load3_strided(v, (o + 3) * K + k, K)


@inline_kernel
def joint_add_series(tree, i, K, k, V, v):
    """Return V + coefficient k of S v."""
    if tree.kind[i] == ONE_DOF:
        return screw_add(V, screw(tree, i), load(v, tree.iv[i] * K + k))
    return add(V, joint_series(tree, i, K, k, v))


# E ----------------------------------------------------------------------------------------------------------------
@inline_kernel
def initialize_motion(tree, i, K, E):
    """Write coefficient 0 of E: the identity."""
    e, zero = MOTION_SIZE * K * i, number_like(E, 0.0)
    if tree.kind[i] == ONE_DOF:
        store(E, e, 1.0)
        for k in range(1, 4):
            store(E, e + k * K, 0.0)
    else:
        store9(E, e, identity(zero)[0])
        clear(E[e + 9:e + 18])


@inline_kernel
def advance_motion(tree, i, K, k, v, E):
    """Write coefficient k >= 1 of E from coefficients 0 … k - 1 of E and v."""
    e, per = MOTION_SIZE * K * i, 1.0 / k
    if tree.kind[i] == ONE_DOF:
        S, o = screw(tree, i), tree.iv[i] * K
        if tree.flags[i] & ROTATES:
            c, s = advance_rotation(E, e, K, k, v, o)
            store(E, e + k, -(S[0] * per) * s)
            store(E, e + K + k, (S[0] * per) * c)
        if tree.flags[i] & TRANSLATES:
            if tree.flags[i] & ROTATES:
                c, s = advance_translation(E, e, K, k, v, o)
                store(E, e + 2 * K + k, S[1] * c)
                store(E, e + 3 * K + k, S[1] * s)
            else:
                store(E, e + 2 * K + k, (S[1] * per) * load(v, o + k - 1))
    else:
        advance_matrix(tree, i, K, k, v, E, e, per)


@inline_kernel
def advance_rotation(E, e, K, k, v, o):
    """Return the sums of v cos and v sin: cos' = -a v sin, sin' = a v cos."""
    c = load(v, o + k - 1) * load(E, e)
    s = load(v, o + k - 1) * load(E, e + K)
    for j in range(1, k):
        x = load(v, o + k - 1 - j)
        c = c + x * load(E, e + j)
        s = s + x * load(E, e + K + j)
    return c, s


@inline_kernel
def advance_translation(E, e, K, k, v, o):
    """Return coefficients of the advance times cosine and sine; coefficient j of the advance is v_{j-1} b / j."""
    c = load(v, o) * load(E, e + k - 1)
    s = load(v, o) * load(E, e + K + k - 1)
    for j in range(2, k + 1):
        x = load(v, o + j - 1) * (1.0 / j)
        c = c + x * load(E, e + k - j)
        s = s + x * load(E, e + K + k - j)
    return c, s


@inline_kernel
def advance_matrix(tree, i, K, k, v, E, e, per):
    """Write R' = R [w], B' = B [w] + R [u], row by row: x^T [w] = (x x w)^T."""
    for row in range(3):
        o = e + 3 * row
        r, b = zero6(number_like(E, 0.0))
        for j in range(k):
            w, u = joint_series(tree, i, K, k - 1 - j, v)
            x, y = load_twist_row(E, o + MOTION_SIZE * j)
            r = add_cross(r, x, w)
            b = add_cross(add_cross(b, y, w), x, u)
        store_twist_row(E, o + MOTION_SIZE * k, scale3(per, r), scale3(per, b))


@inline_kernel
def load_twist_row(E, o):
    """Return a row of R at E[o], and the row of B nine numbers after it."""
    return load3(E, o), load3(E, o + 9)


@inline_kernel
def store_twist_row(E, o, r, b):
    """Write the row r of R to E[o], and the row b of B nine numbers after it."""
    store3(E, o, r)
    store3(E, o + 9, b)


# transforms -------------------------------------------------------------------------------------------------------
@inline_kernel
def transformed_twist_term(tree, i, K, k, E, U, first):
    """Return the terms j = 1 … k of Ad_{D^-1} U. `first`: position of U_0 in the array of twists."""
    e, zero = MOTION_SIZE * K * i, number_like(E, 0.0)
    wx, wy, wz, vx, vy, vz = zero, zero, zero, zero, zero, zero
    if tree.kind[i] == ONE_DOF:
        turns, slides = tree.flags[i] & ROTATES, tree.flags[i] & TRANSLATES
        for j in range(1, k + 1):
            o = 6 * (first + k - j)
            x, y = load(U, o), load(U, o + 1)
            if turns:
                c, s = load(E, e + j), load(E, e + K + j)
                p, q = load(U, o + 3), load(U, o + 4)
                wx, wy = wx + (c * x + s * y), wy + (c * y - s * x)
                vx, vy = vx + (c * p + s * q), vy + (c * q - s * p)
            if slides:
                c, s = load(E, e + 2 * K + j), load(E, e + 3 * K + j) if turns else zero
                vx, vy = vx + (c * y - s * x), vy - (c * x + s * y)
        return (wx, wy, wz), (vx, vy, vz)
    w, v = (wx, wy, wz), (vx, vy, vz)
    for j in range(1, k + 1):
        R, B, V = load9(E, e + MOTION_SIZE * j), load9(E, e + MOTION_SIZE * j + 9), load_twist(U, first + k - j)
        w = add_rotate_back(w, R, V[0])
        v = add_rotate_back(add_rotate_back(v, R, V[1]), B, V[0])
    return w, v


@inline_kernel
def transformed_wrench_term(tree, i, K, k, E, F, first):
    """Return the terms j = 1 … k of Ad*_{D^-1} F. `first`: position of F_0 in the array of wrenches."""
    e, zero = MOTION_SIZE * K * i, number_like(E, 0.0)
    mx, my, mz, fx, fy, fz = zero, zero, zero, zero, zero, zero
    if tree.kind[i] == ONE_DOF:
        turns, slides = tree.flags[i] & ROTATES, tree.flags[i] & TRANSLATES
        for j in range(1, k + 1):
            o = 6 * (first + k - j)
            p, q = load(F, o + 3), load(F, o + 4)
            if turns:
                c, s = load(E, e + j), load(E, e + K + j)
                x, y = load(F, o), load(F, o + 1)
                mx, my = mx + (c * x - s * y), my + (s * x + c * y)
                fx, fy = fx + (c * p - s * q), fy + (s * p + c * q)
            if slides:
                c, s = load(E, e + 2 * K + j), load(E, e + 3 * K + j) if turns else zero
                mx, my = mx - (s * p + c * q), my + (c * p - s * q)
        return (mx, my, mz), (fx, fy, fz)
    m, f = (mx, my, mz), (fx, fy, fz)
    for j in range(1, k + 1):
        R, B, W = load9(E, e + MOTION_SIZE * j), load9(E, e + MOTION_SIZE * j + 9), load_twist(F, first + k - j)
        m = add_rotate(add_rotate(m, R, W[0]), B, W[1])
        f = add_rotate(f, R, W[1])
    return m, f


# passive forces ---------------------------------------------------------------------------------------------------
@inline_kernel
def passive_series(tree, K, k, q, v, has_friction, friction_series, out):
    """Write out (nv,): coefficient k of the forces of springs, damping and friction, which add to tau.

    friction_series (2 nv K): series u = v^2 + v_s^2 and u^(-1/2) for the friction -f v / sqrt(u), which must contain the
    coefficients 0 … k - 1. has_friction: whether any joint has friction.
    """
    nv = out.shape[0]
    for i in range(1, tree.parent.size):
        for c in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            force = -(load(tree.damping, c) * load(v, c * K + k))
            if has_friction:
                force = force - load(tree.friction, c) * advance_friction(tree, K, k, v, friction_series, c, nv)
            if tree.kind[i] == ONE_DOF:
                if k == 0:
                    force = force - load(tree.stiffness, c) * (load(q, tree.iq[i]) - load(tree.rest, c))
                else:
                    force = force - load(tree.stiffness, c) * (load(v, c * K + k - 1) * (1.0 / k))
            store(out, c, force)


@inline_kernel
def advance_friction(tree, K, k, v, friction_series, c, nv):
    """Return coefficient k of v / sqrt(v^2 + v_s^2), from r = u^p: u r' = p u' r with p = -1/2."""
    o, h = c * K, (nv + c) * K
    u = load(v, o) * load(v, o + k)
    for j in range(1, k + 1):
        u = u + load(v, o + j) * load(v, o + k - j)
    if k == 0:
        s = load(tree.friction_speed, c)
        u = u + s * s
        r = 1.0 / sqrt(u)
    else:
        r = u * load(friction_series, h) * (-0.5 * k)
        for j in range(1, k):
            r = r + (0.5 * j - k) * load(friction_series, o + j) * load(friction_series, h + k - j)
        r = r / (load(friction_series, o) * float(k))
    store(friction_series, o + k, u)
    store(friction_series, h + k, r)
    y = load(v, o) * r
    for j in range(1, k + 1):
        y = y + load(v, o + j) * load(friction_series, h + k - j)
    return y


# Motion of a joint as a power series in time: poses of bodies as truncated Taylor coefficients x_k = x^(k)/k! -----------

# A series of poses has 12 (m + 1) numbers: a pose, then m coefficients. The series v of the velocity has nv numbers for each
# coefficient, component by component: dq/dt = v for screws, dR/dt = R [w] and dp/dt = R v for ball and free joints.

@inline_kernel
def apply_joint_series(tree, i, q, v, m, sign, T, M):
    """Replace T by T M(q(t)) (sign 1.0) or T M^-1 (sign -1.0), where M is the motion of joint i.

    So the frame T_parent T0 of the joint becomes that of body i, or the reverse. M (12 (m + 1)) is workspace.
    """
    if tree.kind[i] == ONE_DOF:
        angle_series(tree, i, q, v, m, M)
        apply_screw_series(tree, i, q, v, m, sign, T, M)
    else:
        joint_pose_series(tree, i, q, v, m, M)
        if sign < 0.0:
            invert_pose_series(m, M)
        for k in range(m, -1, -1):                                # downwards: coefficient k depends on those up to k
            Q = load9(T, 0)
            R, p = matmul3(Q, load9(M, 12 * k)), add_rotate(load3(T, 12 * k + 9), Q, load3(M, 12 * k + 9))
            for j in range(1, k + 1):
                Q = load9(T, 12 * j)
                R = add9(R, matmul3(Q, load9(M, 12 * (k - j))))
                p = add_rotate(p, Q, load3(M, 12 * (k - j) + 9))
            store_pose(T, k, (R, p))


@inline_kernel
def angle_series(tree, i, q, v, m, M):
    """Write cosine and sine of a screw's angle x to M[0 … m] and M[m + 1 … 2 m + 1]: c' = -x' s, s' = x' c."""
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


@inline_kernel
def apply_screw_series(tree, i, q, v, m, sign, T, M):
    """Replace T by T exp(S q(t)): the columns x, y rotate about z, and the origin moves along z."""
    b, o, nv = sign * screw(tree, i)[1], tree.iv[i], tree.armature.shape[0]
    for k in range(m, -1, -1):
        c, s, z = load(M, 0), sign * load(M, m + 1), load3_strided(T, 12 * k + 2, 3)
        x, y = load3_strided(T, 12 * k, 3), load3_strided(T, 12 * k + 1, 3)
        p = add3(load3(T, 12 * k + 9), scale3(b * load(q, tree.iq[i]), z))
        x, y = add3(scale3(c, x), scale3(s, y)), add3(scale3(c, y), scale3(-s, x))
        for j in range(1, k + 1):
            c, s, h = load(M, j), sign * load(M, m + 1 + j), b * (1.0 / j) * load(v, (j - 1) * nv + o)
            e, f = load3_strided(T, 12 * (k - j), 3), load3_strided(T, 12 * (k - j) + 1, 3)
            x = add3(x, add3(scale3(c, e), scale3(s, f)))
            y = add3(y, add3(scale3(c, f), scale3(-s, e)))
            p = add3(p, scale3(h, load3_strided(T, 12 * (k - j) + 2, 3)))
        store9(T, 12 * k, from_columns(x, y, z))
        store3(T, 12 * k + 9, p)


@inline_kernel
def joint_pose_series(tree, i, q, v, m, M):
    """Write M, the motion of a ball or free joint."""
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
            x = add_cross(x, (R[0], R[1], R[2]), w)            # rows of R [w]
            y = add_cross(y, (R[3], R[4], R[5]), w)
            z = add_cross(z, (R[6], R[7], R[8]), w)
            p = add_rotate(p, R, u)
        f = 1.0 / (k + 1)
        x, y, z = scale3(f, x), scale3(f, y), scale3(f, z)
        store_pose(M, k + 1, ((x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]), scale3(f, p)))


@inline_kernel
def invert_pose_series(m, M):
    """Replace M by M^-1 = (R^T, -R^T p)."""
    for k in range(m, -1, -1):
        p = rotate_back(load9(M, 0), load3(M, 12 * k + 9))
        for j in range(1, k + 1):
            p = add_rotate_back(p, load9(M, 12 * j), load3(M, 12 * (k - j) + 9))
        store3(M, 12 * k + 9, neg3(p))
    for k in range(m + 1):
        store9(M, 12 * k, transpose(load9(M, 12 * k)))
