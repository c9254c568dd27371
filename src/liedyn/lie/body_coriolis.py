"""How the wrench of a moving rigid body changes with its twist.

The velocity part of a body's equation is W(V) = -ad*_V I V. In a direction X of the twist it changes by

    -ad*_X I V - ad*_V I X = B X + I ad_V X,      B = [[E, 0], [-2 [f], 0]],     f = m u - h x w: linear momentum,
                                                  E = -2 ([w] Z + [h] [u]),      Z = tr(A)/2 1 - A: second moments,

with V = (w, u) and I = (m, h, A). So a symbol of 6x6 is twelve numbers B = (E, f), that add up over bodies in one frame.
It is twice the Coriolis matrix B(I, V) of the literature on derivatives of Newton-Euler.
"""
from liedyn.jit import primitive
from liedyn.lie.vec3 import add3, add9, cross, outer_less, plus_cross, product, rotate, rotate_back, scale3, transpose


@primitive
def coriolis(I, V, f):
    """B = (E, f) of a rigid body; f is its linear momentum, the second half of I V."""
    (_, h, A), (w, u) = I, V
    t = 0.5 * (A[0] + A[3] + A[5])
    x, y, z, a, b, c = t - A[0], t - A[3], t - A[5], -A[1], -A[2], -A[4]           # Z = [[x a b], [a y c], [b c z]]
    d = h[0] * u[0] + h[1] * u[1] + h[2] * u[2]
    # [w] Z + [h] [u], with [h] [u] = u h^T - (h.u) 1
    return ((-2.0 * (w[1] * b - w[2] * a + u[0] * h[0] - d), -2.0 * (w[1] * c - w[2] * y + u[0] * h[1]),
             -2.0 * (w[1] * z - w[2] * c + u[0] * h[2]),
             -2.0 * (w[2] * x - w[0] * b + u[1] * h[0]), -2.0 * (w[2] * a - w[0] * c + u[1] * h[1] - d),
             -2.0 * (w[2] * b - w[0] * z + u[1] * h[2]),
             -2.0 * (w[0] * a - w[1] * x + u[2] * h[0]), -2.0 * (w[0] * y - w[1] * a + u[2] * h[1]),
             -2.0 * (w[0] * c - w[1] * b + u[2] * h[2] - d)), f)


@primitive
def add_coriolis(B, C): return add9(B[0], C[0]), add3(B[1], C[1])


@primitive
def coriolis_wrench(B, w):
    """B X: of the twist X only its angular part w counts."""
    return rotate(B[0], w), scale3(2.0, cross(w, B[1]))


@primitive
def coriolis_transposed(B, X):
    """The angular part of B^T X; its linear part is zero."""
    return plus_cross(rotate_back(B[0], X[0]), scale3(2.0, B[1]), X[1])


@primitive
def coriolis_to_parent(T, B):
    """Ad*_{T^-1} B Ad_{T^-1}: B given in b, seen from a, T = T_ab."""
    R, p = T
    f = rotate(R, B[1])
    return outer_less(product(product(R, B[0]), transpose(R)), p, f), f
