"""SE(3): poses T = (R, p), twists V = (w, v), wrenches F = (m, f): Ad, ad, their duals, exp, log, Jacobians of exp.

Source: K1 (3)-(13), PBP (1)-(11), AGF (1)-(7).
"""
from liedyn.lie.simd import maximum, sincos, sqrt, where_less
from liedyn.lie.so3 import dexp3, dexp_inv3, exp3, half_cot, horner, log3
from liedyn.lie.vectors import (
    add3,
    add_cross,
    add_rotate,
    cross,
    dot3,
    matmul3,
    neg3,
    rotate,
    rotate_back,
    scale3,
    sub3,
    transpose,
)
from liedyn.numba_tools.decorators import inline_kernel


# twists and wrenches as vectors -----------------------------------------------------------------------------------
@inline_kernel
def add(V, W):
    """Return V + W of twists or wrenches."""
    return add3(V[0], W[0]), add3(V[1], W[1])


@inline_kernel
def sub(V, W):
    """Return V - W."""
    return sub3(V[0], W[0]), sub3(V[1], W[1])


@inline_kernel
def neg(V):
    """Return -V."""
    return neg3(V[0]), neg3(V[1])


@inline_kernel
def scale(s, V):
    """Return s V."""
    return scale3(s, V[0]), scale3(s, V[1])


@inline_kernel
def dot(F, V):
    """Return F^T V: the power of the wrench F at the twist V."""
    return dot3(F[0], V[0]) + dot3(F[1], V[1])


@inline_kernel
def zero6(zero):
    """Return the zero twist or wrench, in numbers of the kind of `zero`."""
    return (zero, zero, zero), (zero, zero, zero)


@inline_kernel
def unit6(c, zero):
    """Return the unit twist or wrench c; `zero` gives the kind of number."""
    one = zero + 1.0
    return ((one if c == 0 else zero, one if c == 1 else zero, one if c == 2 else zero),
            (one if c == 3 else zero, one if c == 4 else zero, one if c == 5 else zero))


# poses ------------------------------------------------------------------------------------------------------------
@inline_kernel
def identity(zero):
    """Return the pose of zero displacement, in numbers of the kind of `zero`."""
    one = zero + 1.0
    return (one, zero, zero, zero, one, zero, zero, zero, one), (zero, zero, zero)


@inline_kernel
def compose(T, U):
    """Return T U."""
    return matmul3(T[0], U[0]), add_rotate(T[1], T[0], U[1])


@inline_kernel
def inverse(T):
    """Return T^-1."""
    return transpose(T[0]), neg3(rotate_back(T[0], T[1]))


@inline_kernel
def Ad(T, V):
    """Ad_T V (K1 (6), (7), (11); PBP (2), (3))."""
    w = rotate(T[0], V[0])
    return w, add_cross(rotate(T[0], V[1]), T[1], w)


@inline_kernel
def Ad_inv(T, V):
    """Ad_{T^-1} V."""
    return rotate_back(T[0], V[0]), rotate_back(T[0], add_cross(V[1], V[0], T[1]))


@inline_kernel
def dAd(T, F):
    """Return Ad*_T F = Ad_T^T F (K1 (8), (13); PBP (4), (11)): F given in frame a, result in frame b, T = T_ab."""
    return rotate_back(T[0], add_cross(F[0], F[1], T[1])), rotate_back(T[0], F[1])


@inline_kernel
def dAd_inv(T, F):
    """Return Ad*_{T^-1} F: F given in frame b, result in frame a, T = T_ab."""
    f = rotate(T[0], F[1])
    return add_cross(rotate(T[0], F[0]), T[1], f), f


@inline_kernel
def ad(V, W):
    """ad_V W (K1 (25)-(27), Lemma 1; PBP (1), (5), (6)): Lie bracket of twists."""
    return cross(V[0], W[0]), add_cross(cross(V[1], W[0]), V[0], W[1])


@inline_kernel
def neg_dad(V, P):
    """-ad*_V P (K1 (28), (29), Lemma 2; PBP (7)): rate of change of the momentum P in a frame that moves at V."""
    return add_cross(cross(V[0], P[0]), V[1], P[1]), cross(V[0], P[1])


@inline_kernel
def add_ad(X, V, W):
    """X + ad_V W."""
    return add_cross(X[0], V[0], W[0]), add_cross(add_cross(X[1], V[1], W[0]), V[0], W[1])


@inline_kernel
def sub_dad(F, V, P):
    """F - ad*_V P."""
    return add_cross(add_cross(F[0], V[0], P[0]), V[1], P[1]), add_cross(F[1], V[0], P[1])


# exponential and its Jacobian -------------------------------------------------------------------------------------
@inline_kernel
def exp(x):
    """exp of the twist x = (w, v): R = exp w, p = dexp(w) v (PBP (15), (17); AGF (9))."""
    return exp3(x[0]), dexp3(x[0], x[1])


@inline_kernel
def log(T):
    """The twist x with exp x = T and |w| <= pi."""
    w = log3(T[0])
    return w, dexp_inv3(w, T[1])


# f(ad) for an analytic f needs only ad … ad^4, since ad^5 = -2 t^2 ad^3 - t^4 ad. For a series sum_k c_k s^k in
# s = ad^2 -> -t^2, matching value and slope at s = -t^2 gives the two factors  sum (1 - k) c_k s^k  of 1 and
# sum k c_k s^(k-1)  of ad^2. Below: series for t < 1 (ten terms, error below 1e-17), closed forms beyond.
_A1 = tuple((1 - k) / f for k, f in enumerate(
    (2, 24, 720, 40320, 3628800, 479001600, 87178291200, 20922789888000, 6402373705728000, 2432902008176640000)))
_A3 = tuple((k + 1) / f for k, f in enumerate(
    (24, 720, 40320, 3628800, 479001600, 87178291200, 20922789888000, 6402373705728000, 2432902008176640000,
     1124000727777607680000)))
_A2 = tuple((1 - k) / f for k, f in enumerate(
    (6, 120, 5040, 362880, 39916800, 6227020800, 1307674368000, 355687428096000, 121645100408832000,
     51090942171709440000)))
_A4 = tuple((k + 1) / f for k, f in enumerate(
    (120, 5040, 362880, 39916800, 6227020800, 1307674368000, 355687428096000, 121645100408832000,
     51090942171709440000, 25852016738884976640000)))


@inline_kernel
def dexp(x, V):
    """Left Jacobian of exp at x applied to V: (e^ad - 1)/ad. Right: dexp(-x, V)."""
    tt = dot3(x[0], x[0])
    t2 = maximum(tt, tt * 0.0 + 1.0)
    t = sqrt(t2)
    s, c = sincos(t)
    a1 = where_less(tt, 1.0, horner(-tt, _A1), (4.0 - t * s - 4.0 * c) / (2.0 * t2))
    a2 = where_less(tt, 1.0, horner(-tt, _A2), (4.0 * t - 5.0 * s + t * c) / (2.0 * t * t2))
    a3 = where_less(tt, 1.0, horner(-tt, _A3), (2.0 - t * s - 2.0 * c) / (2.0 * t2 * t2))
    a4 = where_less(tt, 1.0, horner(-tt, _A4), (2.0 * t - 3.0 * s + t * c) / (2.0 * t * t2 * t2))
    W = ad(x, V)
    X = ad(x, W)
    Y = ad(x, X)
    Z = ad(x, Y)
    return add(add(V, add(scale(a1, W), scale(a2, X))), add(scale(a3, Y), scale(a4, Z)))


_B2 = tuple((1 - k) * b for k, b in enumerate(
    (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
     -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000)))
_B4 = tuple((k + 1) * b for k, b in enumerate(
    (-1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
     -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
     77683 / 14101100039391805440000)))


@inline_kernel
def dexp_inv(x, V):
    """Inverse of the left Jacobian applied to V: ad/(e^ad - 1). Right: dexp_inv(-x, V). Singular at |w| = 2 pi."""
    tt = dot3(x[0], x[0])
    t2 = maximum(tt, tt * 0.0 + 1.0)
    g, _ = half_cot(t2)
    b2 = where_less(tt, 1.0, horner(-tt, _B2), (2.0 - 1.5 * g - 0.5 * g * g - 0.125 * t2) / t2)
    b4 = where_less(tt, 1.0, horner(-tt, _B4), (1.0 - 0.5 * g - 0.5 * g * g - 0.125 * t2) / (t2 * t2))
    W = ad(x, V)
    X = ad(x, W)
    Z = ad(x, ad(x, X))
    return add(add(V, scale(-0.5, W)), add(scale(b2, X), scale(b4, Z)))


# screw ------------------------------------------------------------------------------------------------------------------

# Joint screws about the z axis of the body: S = (a, b) is the twist (0 0 a, 0 0 b). Revolute, prismatic and helical joints share
# one code path without a branch.

@inline_kernel
def screw_add(V, S, x):
    """V + S x."""
    return (V[0][0], V[0][1], V[0][2] + S[0] * x), (V[1][0], V[1][1], V[1][2] + S[1] * x)


@inline_kernel
def screw_dot(S, F):
    """S^T F."""
    return S[0] * F[0][2] + S[1] * F[1][2]


@inline_kernel
def ad_screw(V, S, x):
    """ad_V S x."""
    (w, v), a, b = V, S[0] * x, S[1] * x
    zero = a - a
    return (w[1] * a, -(w[0] * a), zero), (v[1] * a + w[1] * b, -(v[0] * a + w[0] * b), zero)


@inline_kernel
def screw_pose(T, S, s, c, x):
    """T exp(S x), given sine and cosine of the angle."""
    R, p = T
    h = S[1] * x
    z = s - s
    return ((R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2] + z, R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5] + z,
             R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8] + z), (p[0] + R[2] * h, p[1] + R[5] * h, p[2] + R[8] * h))
