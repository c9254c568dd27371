"""SO(3): unit quaternions (x y z w), rotation vectors, exponential, logarithm, Jacobians of exp.

Series replace the closed forms where these lose digits (theta < 1). Each series ends before the first term below 1e-17.
"""
from liedyn.lie.simd import atan2, maximum, sincos, sqrt, where_less
from liedyn.lie.vectors import add3, add_cross, add_rotate_back, cross, dot3, matmul3, rotate_back, scale3
from liedyn.numba_tools.decorators import inline_kernel

TINY = 1e-300


@inline_kernel
def horner(x, c):
    """Return c[0] + c[1] x + … for a tuple of ten coefficients."""
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * (c[5] + x * (c[6] + x * (c[7] + x * (c[8] + x * c[9]))))))))


# (sin t)/t, (1 - cos t)/t^2, (t - sin t)/t^3 as series in -t^2: 1/(2k+1)!, 1/(2k+2)!, 1/(2k+3)!
_SINC = (1.0, 1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, 1 / 1307674368000,
         1 / 355687428096000, 1 / 121645100408832000)
_COSC = (1 / 2, 1 / 24, 1 / 720, 1 / 40320, 1 / 3628800, 1 / 479001600, 1 / 87178291200, 1 / 20922789888000,
         1 / 6402373705728000, 1 / 2432902008176640000)
_SINC3 = (1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, 1 / 1307674368000,
          1 / 355687428096000, 1 / 121645100408832000, 1 / 51090942171709440000)
# (1 - (t/2) cot(t/2))/t^2 in t^2: |Bernoulli(2k)|/(2k)!
_COTC = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
         3617 / 10670622842880000, 43867 / 5109094217170944000, 174611 / 802857662698291200000)


@inline_kernel
def angle_functions(tt):
    """Return sin t / t, (1 - cos t)/t^2, (t - sin t)/t^3 from tt = t^2.

    The error is below 2e-16 at any t; relative to the function, which has zeros beyond t = 3, below 1e-15 up to there.
    """
    t2 = maximum(tt, tt * 0.0 + 1.0)
    t = sqrt(t2)
    s, c = sincos(t)
    return (where_less(tt, 1.0, horner(-tt, _SINC), s / t),
            where_less(tt, 1.0, horner(-tt, _COSC), (1.0 - c) / t2),
            where_less(tt, 1.0, horner(-tt, _SINC3), (t - s) / (t * t2)))


@inline_kernel
def half_cot(tt):
    """Return (t/2) cot(t/2) from tt = t^2 < (2 pi)^2, and (1 - that)/t^2.

    The error is below 5e-16 up to half a turn. Towards the pole at a full turn it grows as the square of the function.
    """
    t2 = maximum(tt, tt * 0.0 + 1.0)
    t = sqrt(t2)
    s, c = sincos(0.5 * t)
    far = 0.5 * t * c / s
    near = horner(tt, _COTC)
    return where_less(tt, 1.0, 1.0 - tt * near, far), where_less(tt, 1.0, near, (1.0 - far) / t2)


# quaternions ------------------------------------------------------------------------------------------------------
@inline_kernel
def quaternion_rotation(u):
    """Return the rotation of a unit quaternion."""
    x, y, z, w = u
    x2, y2, z2 = x + x, y + y, z + z
    xx, xy, xz, yy, yz, zz = x * x2, x * y2, x * z2, y * y2, y * z2, z * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return (1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy))


@inline_kernel
def quaternion_product(u, r):
    """Return the product u r of quaternions: the rotation R_u R_r."""
    x, y, z, w = u
    a, b, c, d = r
    return (w * a + x * d + y * c - z * b, w * b - x * c + y * d + z * a, w * c + x * b - y * a + z * d,
            w * d - x * a - y * b - z * c)


@inline_kernel
def quaternion_conjugate(u):
    """Return the conjugate of a quaternion: the inverse rotation."""
    return (-u[0], -u[1], -u[2], u[3])


@inline_kernel
def quaternion_unit(u):
    """Return u / |u|, to remove rounding after a product of unit quaternions."""
    s = 1.0 / sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + u[3] * u[3])
    return (s * u[0], s * u[1], s * u[2], s * u[3])


@inline_kernel
def quaternion_exp(w):
    """Return the unit quaternion of the rotation vector w."""
    tt = 0.25 * dot3(w, w)
    s, c, _ = angle_functions(tt)
    h = 0.5 * s
    return (h * w[0], h * w[1], h * w[2], 1.0 - tt * c)


@inline_kernel
def quaternion_log(u):
    """Return the rotation vector, |.| <= pi, of a unit quaternion (u and -u are the same rotation)."""
    sign = where_less(u[3], 0.0, -1.0, 1.0)
    x, y, z, w = sign * u[0], sign * u[1], sign * u[2], sign * u[3]
    ss = x * x + y * y + z * z
    s = sqrt(maximum(ss, ss * 0.0 + TINY))
    # near zero 2 atan2(s, w)/s -> 2/w
    k = where_less(ss, 1e-32, 2.0 / w, 2.0 * atan2(s, w) / s)
    return (k * x, k * y, k * z)


# exponential, logarithm, Jacobians --------------------------------------------------------------------------------
@inline_kernel
def exp3(w):
    """Return the rotation of the rotation vector w (Rodrigues; PBP (16))."""
    s, c, _ = angle_functions(dot3(w, w))
    x, y, z = w
    cx, cy, cz = c * x, c * y, c * z
    sx, sy, sz = s * x, s * y, s * z
    return (1.0 - (cy * y + cz * z), cx * y - sz, cx * z + sy, cx * y + sz, 1.0 - (cx * x + cz * z), cy * z - sx,
            cx * z - sy, cy * z + sx, 1.0 - (cx * x + cy * y))


@inline_kernel
def rotation_quaternion(R):
    """Return the unit quaternion, w >= 0 up to rounding, of a rotation. The largest component comes from the diagonal."""
    xx, yy, zz = R[0], R[4], R[8]
    t = 1.0 + xx + yy + zz                                            # 4 w^2, and 4 x^2, 4 y^2, 4 z^2
    a, b, c = 1.0 + xx - yy - zz, 1.0 + yy - xx - zz, 1.0 + zz - xx - yy
    p, q, r = R[7] - R[5], R[2] - R[6], R[3] - R[1]                   # 4 wx, 4 wy, 4 wz
    d, e, f = R[1] + R[3], R[2] + R[6], R[5] + R[7]                   # 4 xy, 4 xz, 4 yz
    u = (p, q, r, t)
    u = _choose(t, a, u, (a, d, e, p))
    best = maximum(t, a)
    u = _choose(best, b, u, (d, b, f, q))
    best = maximum(best, b)
    u = _choose(best, c, u, (e, f, c, r))
    return quaternion_unit(u)


@inline_kernel
def _choose(x, y, u, r):
    """r where x < y, else u."""
    return (where_less(x, y, r[0], u[0]), where_less(x, y, r[1], u[1]), where_less(x, y, r[2], u[2]),
            where_less(x, y, r[3], u[3]))


@inline_kernel
def log3(R):
    """Return the rotation vector, |.| <= pi, of a rotation."""
    return quaternion_log(rotation_quaternion(R))


@inline_kernel
def dexp3(w, x):
    """Left Jacobian of exp applied to x: x + (1 - cos t)/t^2 w x x + (t - sin t)/t^3 w x (w x x). Right: dexp3(-w, x)."""
    _, b, c = angle_functions(dot3(w, w))
    y = cross(w, x)
    return add3(x, add3(scale3(b, y), scale3(c, cross(w, y))))


@inline_kernel
def dexp_inv3(w, x):
    """Inverse of the left Jacobian applied to x. Right: dexp_inv3(-w, x). Singular at |w| = 2 pi."""
    _, c = half_cot(dot3(w, w))
    y = cross(w, x)
    return add3(x, add3(scale3(-0.5, y), scale3(c, cross(w, y))))


# Motion of a rotation that is given by coordinates: angular velocity w in the body frame, dR/dt = R [w], and dw/dt -------

# d/d(t^2) of (1 - cos t)/t^2 and (t - sin t)/t^3 as series in -t^2: -(k+1)/(2k+4)!, -(k+1)/(2k+5)!
_COSC_DERIVATIVE = (-1 / 24, -2 / 720, -3 / 40320, -4 / 3628800, -5 / 479001600, -6 / 87178291200, -7 / 20922789888000,
                    -8 / 6402373705728000, -9 / 2432902008176640000, 0.0)
_SINC3_DERIVATIVE = (-1 / 120, -2 / 5040, -3 / 362880, -4 / 39916800, -5 / 6227020800, -6 / 1307674368000, -7 / 355687428096000,
                     -8 / 121645100408832000, -9 / 51090942171709440000, 0.0)


# roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll) ------------------------------------------------------------------
@inline_kernel
def rpy_motion(angle, rate, rate2):
    """Return R, w, dw from the three angles and their first two derivatives."""
    R, w, dw = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(2, -1, -1):                                # yaw, pitch, roll
        e = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
        turn = axis_rotation(k, angle[k])
        de = scale3(rate[k], e)
        w = add_rotate_back(de, turn, w)
        dw = add_cross(add3(rotate_back(turn, dw), scale3(rate2[k], e)), w, de)
        R = matmul3(R, turn)
    return R, w, dw


@inline_kernel
def axis_rotation(k, x):
    """Return the rotation about axis k."""
    s, c = sincos(x)
    if k == 0:
        return 1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c
    if k == 1:
        return c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c
    return c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0


@inline_kernel
def rpy_quaternion(angle):
    """Return the unit quaternion, continuous in the angles."""
    (s0, c0), (s1, c1), (s2, c2) = sincos(0.5 * angle[0]), sincos(0.5 * angle[1]), sincos(0.5 * angle[2])
    return quaternion_product((0.0, 0.0, s2, c2), quaternion_product((0.0, s1, 0.0, c1), (s0, 0.0, 0.0, c0)))


# rotation vector: R = exp x -----------------------------------------------------------------------------------------
@inline_kernel
def rotation_vector_motion(x, dx, ddx):
    """Return w and dw of exp x(t). With t = |x|, b = (1 - cos t)/t^2, c = (t - sin t)/t^3:

        w = dx - b x × dx + c x × (x × dx),    dw the derivative of that.
    """
    tt = dot3(x, x)
    _, b, c = angle_functions(tt)
    derivative_b, derivative_c = angle_function_derivatives(tt)
    dtt = 2.0 * dot3(x, dx)
    y, dy = cross(x, dx), cross(x, ddx)                       # d/dt of x × dx is x × ddx
    z, dz = cross(x, y), add3(cross(dx, y), cross(x, dy))
    w = add3(dx, add3(scale3(-b, y), scale3(c, z)))
    dw = add3(ddx, add3(add3(scale3(-b, dy), scale3(c, dz)), add3(scale3(-derivative_b * dtt, y), scale3(derivative_c * dtt, z))))
    return w, dw


@inline_kernel
def angle_function_derivatives(tt):
    """Return derivatives of (1 - cos t)/t^2 and (t - sin t)/t^3 with respect to tt = t^2."""
    far = maximum(tt, tt * 0.0 + 1.0)
    a, b, c = angle_functions(far)
    return (where_less(tt, 1.0, horner(-tt, _COSC_DERIVATIVE), (a - 2.0 * b) / (2.0 * far)),
            where_less(tt, 1.0, horner(-tt, _SINC3_DERIVATIVE), (b - 3.0 * c) / (2.0 * far)))
