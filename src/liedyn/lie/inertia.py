"""Generalized inertia: rigid bodies I = (m, h, A) and symmetric 6x6 matrices X = (A, H, M)."""
from liedyn.lie.vectors import (
    add3,
    add6,
    add9,
    add_cross,
    add_rotate,
    add_rotate_back,
    congruence,
    cross,
    dot3,
    matmul3,
    rotate,
    rotate_back,
    scale3,
    skew_product,
    sub_twice_skew_product,
    symmetric_to_full,
    symv3,
    transpose,
    upper_triangle,
)
from liedyn.numba_tools.decorators import inline_kernel


# rigid bodies -----------------------------------------------------------------------------------------------------
@inline_kernel
def momentum(I, V):
    """I V (K1 (23))."""
    m, h, A = I
    return add_cross(symv3(A, V[0]), h, V[1]), add_cross(scale3(m, V[1]), V[0], h)


@inline_kernel
def rigid_like(I, zero):
    """Return I with numbers of the kind of `zero`."""
    return I[0] + zero, add3(I[1], (zero, zero, zero)), add6(I[2], (zero, zero, zero, zero, zero, zero))


@inline_kernel
def rigid_to_sym6(I, zero):
    """Return the rigid body I as a symmetric 6x6 (K1 (20)); `zero` gives the kind of number."""
    m, h, A = I
    return ((zero + A[0], zero + A[1], zero + A[2], zero + A[3], zero + A[4], zero + A[5]),
            (zero, zero - h[2], zero + h[1], zero + h[2], zero, zero - h[0], zero - h[1], zero + h[0], zero),
            (zero + m, zero, zero, zero + m, zero, zero + m))


@inline_kernel
def add_rigid(I, J):
    """Return I + J of rigid bodies."""
    return I[0] + J[0], add3(I[1], J[1]), add6(I[2], J[2])


@inline_kernel
def rigid_to_parent(T, I):
    """Return Ad*_{T^-1} I Ad_{T^-1} of a rigid body (K1 (21), (22)): I given in frame b, result in frame a, T = T_ab."""
    R, p = T
    m, h, A = I
    g = rotate(R, h)
    k = add3(g, scale3(m, p))                              # first moment about a's origin
    B = congruence(R, A)
    # A - [p][g] - [g][p] - m [p][p] = A - [p][g] - [k][p], with [x][y] = y x^T - (x.y) 1
    d = dot3(p, g) + dot3(k, p)
    return m, k, (B[0] + (d - (g[0] * p[0] + p[0] * k[0])), B[1] - (g[0] * p[1] + p[0] * k[1]),
                  B[2] - (g[0] * p[2] + p[0] * k[2]), B[3] + (d - (g[1] * p[1] + p[1] * k[1])),
                  B[4] - (g[1] * p[2] + p[1] * k[2]), B[5] + (d - (g[2] * p[2] + p[2] * k[2])))


# symmetric 6x6 ----------------------------------------------------------------------------------------------------
@inline_kernel
def add_sym6(X, Y):
    """Return X + Y."""
    return add6(X[0], Y[0]), add9(X[1], Y[1]), add6(X[2], Y[2])


@inline_kernel
def symv6(X, V):
    """X V."""
    A, H, M = X
    return add_rotate(symv3(A, V[0]), H, V[1]), add_rotate_back(symv3(M, V[1]), H, V[0])


@inline_kernel
def rank_one_downdate(X, U, s):
    """X - U s U^T."""
    (A, H, M), (m, f) = X, U
    n, g = scale3(s, m), scale3(s, f)
    return ((A[0] - n[0] * m[0], A[1] - n[0] * m[1], A[2] - n[0] * m[2],
             A[3] - n[1] * m[1], A[4] - n[1] * m[2], A[5] - n[2] * m[2]),
            (H[0] - n[0] * f[0], H[1] - n[0] * f[1], H[2] - n[0] * f[2],
             H[3] - n[1] * f[0], H[4] - n[1] * f[1], H[5] - n[1] * f[2],
             H[6] - n[2] * f[0], H[7] - n[2] * f[1], H[8] - n[2] * f[2]),
            (M[0] - g[0] * f[0], M[1] - g[0] * f[1], M[2] - g[0] * f[2],
             M[3] - g[1] * f[1], M[4] - g[1] * f[2], M[5] - g[2] * f[2]))


@inline_kernel
def remove_z_inertia(X):
    """Return X with exact zeros for its inertia about z, where `rank_one_downdate` leaves rounding."""
    (A, H, M), zero = X, X[0][0] - X[0][0]
    return (A[0], A[1], zero, A[3], zero, zero), (H[0], H[1], H[2], H[3], H[4], H[5], zero, zero, zero), M


@inline_kernel
def sym6_to_parent(T, X):
    """Return Ad*_{T^-1} X Ad_{T^-1} (K1 (21)): X given in frame b, result in frame a, T = T_ab."""
    (R, p), (A, H, M) = T, X
    M = congruence(R, M)
    H = matmul3(R, matmul3(H, transpose(R)))
    G = add9(H, skew_product(p, symmetric_to_full(M)))                    # H + [p] M
    L = upper_triangle(skew_product(p, transpose(H)))                 # A + [p] H^T + ([p] G^T)^T
    K = upper_triangle(transpose(skew_product(p, transpose(G))))
    return add6(add6(congruence(R, A), L), K), G, M


# Derivative of a moving rigid body's wrench with respect to its twist ---------------------------------------------------

# The velocity part of a body's equation is W(V) = -ad*_V I V. Its derivative in a direction X of the twist is
#
#     -ad*_X I V - ad*_V I X = B X + I ad_V X,      B = [[E, 0], [-2 [f], 0]],     f = m u - h x w: linear momentum,
#                                                   E = -2 ([w] Z + [h] [u]),      Z = tr(A)/2 1 - A: second moments,
#
# with V = (w, u) and I = (m, h, A). So this 6x6 matrix is twelve numbers B = (E, f), which are summed over bodies in one frame.
# It is twice the Coriolis matrix B(I, V) of the literature on derivatives of Newton-Euler.

@inline_kernel
def coriolis(I, V, f):
    """Return B = (E, f) of a rigid body; f is its linear momentum, the second half of I V."""
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


@inline_kernel
def add_coriolis(B, C):
    """Return B + C, each twelve numbers (E, f)."""
    return add9(B[0], C[0]), add3(B[1], C[1])


@inline_kernel
def coriolis_wrench(B, w):
    """Return B X, which depends only on the angular part w of the twist X."""
    return rotate(B[0], w), scale3(2.0, cross(w, B[1]))


@inline_kernel
def coriolis_transposed(B, X):
    """Return the angular part of B^T X; its linear part is zero."""
    return add_cross(rotate_back(B[0], X[0]), scale3(2.0, B[1]), X[1])


@inline_kernel
def coriolis_to_parent(T, B):
    """Return Ad*_{T^-1} B Ad_{T^-1}: B given in frame b, result in frame a, T = T_ab."""
    R, p = T
    f = rotate(R, B[1])
    return sub_twice_skew_product(matmul3(matmul3(R, B[0]), transpose(R)), p, f), f
