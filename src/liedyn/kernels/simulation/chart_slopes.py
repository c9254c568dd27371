"""The rate of a chart of a ball or free joint, dx/dt = P(x) v, and its derivative by x."""
from liedyn.jit import kernel, primitive


@kernel
def chart_series(c, x, v, P, by_x, room):
    """P = sum_k c_k (-ad_x)^k and d(P v)/dx, (n, n) each, n = 3 or 6. room: (5, n, n) scratch."""
    n = x.size
    A, power, slope, other, u, w = room[0], room[1], room[2], room[3], room[4, 0], room[4, 1]
    fill_ad(x, -1.0, A)
    for r in range(n):
        u[r] = v[r]
        for k in range(n):
            P[r, k], by_x[r, k], slope[r, k] = 0.0, 0.0, 0.0
            power[r, k] = 1.0 if r == k else 0.0
    for i in range(c.size):
        for r in range(n):
            for k in range(n):
                P[r, k] += c[i] * power[r, k]
                by_x[r, k] += c[i] * slope[r, k]
        fill_ad(u, 1.0, other)                                   # d(A u) = A du - ad_dx u = A du + ad_u dx
        multiply(A, slope, other)
        for r in range(n):
            w[r] = 0.0
            for k in range(n):
                slope[r, k] = other[r, k]
                other[r, k] = 0.0
                w[r] += A[r, k] * u[k]
        multiply(A, power, other)
        for r in range(n):
            u[r] = w[r]
            for k in range(n):
                power[r, k] = other[r, k]


@primitive
def fill_ad(u, s, M):
    """s times ad_u, of a vector (3,) or a twist (6,)."""
    n = u.size
    for r in range(n):
        for k in range(n):
            M[r, k] = 0.0
    for o in range(0, n, 3):
        fill_skew(u, 0, s, M, o, o)
    if n == 6:
        fill_skew(u, 3, s, M, 3, 0)


@primitive
def fill_skew(u, o, s, M, r, c):
    M[r, c + 1], M[r, c + 2], M[r + 1, c + 2] = -s * u[o + 2], s * u[o + 1], -s * u[o]
    M[r + 1, c], M[r + 2, c], M[r + 2, c + 1] = s * u[o + 2], -s * u[o + 1], s * u[o]


@primitive
def multiply(A, B, C):
    """C += A B."""
    n = A.shape[0]
    for r in range(n):
        for j in range(n):
            x = A[r, j]
            if x != 0.0:
                for k in range(n):
                    C[r, k] += x * B[j, k]
