"""Motions of a rotation given by coordinates: its angular velocity w in the body frame, dR/dt = R [w], and dw/dt."""
from liedyn.jit import primitive
from liedyn.lie.lanes import maximum, sincos, where_less
from liedyn.lie.so3 import angle_functions, horner, quaternion_product
from liedyn.lie.vec3 import add3, cross, dot3, plus_cross, plus_rotate_back, product, rotate_back, scale3

# d/d(t^2) of (1 - cos t)/t^2 and (t - sin t)/t^3 as series in -t^2: -(k+1)/(2k+4)!, -(k+1)/(2k+5)!
_COSC_SLOPE = (-1 / 24, -2 / 720, -3 / 40320, -4 / 3628800, -5 / 479001600, -6 / 87178291200, -7 / 20922789888000,
               -8 / 6402373705728000, -9 / 2432902008176640000, 0.0)
_SINC3_SLOPE = (-1 / 120, -2 / 5040, -3 / 362880, -4 / 39916800, -5 / 6227020800, -6 / 1307674368000, -7 / 355687428096000,
                -8 / 121645100408832000, -9 / 51090942171709440000, 0.0)


# roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll) ------------------------------------------------------------------
@primitive
def angles_motion(angle, rate, rate2):
    """R, w, dw from the three angles and their first two derivatives."""
    R, w, dw = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(2, -1, -1):                                # yaw, pitch, roll
        e = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
        turn = turn_about(k, angle[k])
        de = scale3(rate[k], e)
        w = plus_rotate_back(de, turn, w)
        dw = plus_cross(add3(rotate_back(turn, dw), scale3(rate2[k], e)), w, de)
        R = product(R, turn)
    return R, w, dw


@primitive
def turn_about(k, x):
    """Rotation about axis k."""
    s, c = sincos(x)
    if k == 0:
        return 1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c
    if k == 1:
        return c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c
    return c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0


@primitive
def angles_quaternion(angle):
    """Unit quaternion, continuous in the angles."""
    (s0, c0), (s1, c1), (s2, c2) = sincos(0.5 * angle[0]), sincos(0.5 * angle[1]), sincos(0.5 * angle[2])
    return quaternion_product((0.0, 0.0, s2, c2), quaternion_product((0.0, s1, 0.0, c1), (s0, 0.0, 0.0, c0)))


# rotation vector: R = exp x -----------------------------------------------------------------------------------------
@primitive
def rotation_vector_motion(x, dx, ddx):
    """w and dw of exp x(t). With t = |x|, b = (1 - cos t)/t^2, c = (t - sin t)/t^3:

        w = dx - b x × dx + c x × (x × dx),    dw the derivative of that.
    """
    tt = dot3(x, x)
    _, b, c = angle_functions(tt)
    slope_b, slope_c = angle_slopes(tt)
    dtt = 2.0 * dot3(x, dx)
    y, dy = cross(x, dx), cross(x, ddx)                       # d/dt of x × dx is x × ddx
    z, dz = cross(x, y), add3(cross(dx, y), cross(x, dy))
    w = add3(dx, add3(scale3(-b, y), scale3(c, z)))
    dw = add3(ddx, add3(add3(scale3(-b, dy), scale3(c, dz)), add3(scale3(-slope_b * dtt, y), scale3(slope_c * dtt, z))))
    return w, dw


@primitive
def angle_slopes(tt):
    """Derivatives of (1 - cos t)/t^2 and (t - sin t)/t^3 with respect to tt = t^2."""
    far = maximum(tt, tt * 0.0 + 1.0)
    a, b, c = angle_functions(far)
    return (where_less(tt, 1.0, horner(-tt, _COSC_SLOPE), (a - 2.0 * b) / (2.0 * far)),
            where_less(tt, 1.0, horner(-tt, _SINC3_SLOPE), (b - 3.0 * c) / (2.0 * far)))
