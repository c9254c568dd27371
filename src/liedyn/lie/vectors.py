"""Vectors and 3x3 matrices as tuples of numbers: x (3), R or B (9, by rows), A symmetric (6: xx, xy, xz, yy, yz, zz)."""
from liedyn.lie.simd import load, store
from liedyn.numba_tools.decorators import inline_kernel


@inline_kernel
def add3(x, y):
    """Return x + y."""
    return (x[0] + y[0], x[1] + y[1], x[2] + y[2])


@inline_kernel
def sub3(x, y):
    """Return x - y."""
    return (x[0] - y[0], x[1] - y[1], x[2] - y[2])


@inline_kernel
def neg3(x):
    """Return -x."""
    return (-x[0], -x[1], -x[2])


@inline_kernel
def scale3(s, x):
    """Return s x."""
    return (s * x[0], s * x[1], s * x[2])


@inline_kernel
def dot3(x, y):
    """Return x^T y."""
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


@inline_kernel
def cross(x, y):
    """Return x x y, the cross product."""
    return (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])


@inline_kernel
def add_cross(x, y, z):
    """Return x + y x z. Adding each product at once takes a third fewer instructions than a sum of both."""
    return (x[0] + y[1] * z[2] - y[2] * z[1], x[1] + y[2] * z[0] - y[0] * z[2], x[2] + y[0] * z[1] - y[1] * z[0])


@inline_kernel
def rotate(R, x):
    """Return R x."""
    return (dot3((R[0], R[1], R[2]), x), dot3((R[3], R[4], R[5]), x), dot3((R[6], R[7], R[8]), x))


@inline_kernel
def rotate_back(R, x):
    """Return R^T x."""
    return rotate(transpose(R), x)


@inline_kernel
def add_rotate(x, R, y):
    """Return x + R y, computed as in `add_cross`."""
    return (x[0] + R[0] * y[0] + R[1] * y[1] + R[2] * y[2], x[1] + R[3] * y[0] + R[4] * y[1] + R[5] * y[2],
            x[2] + R[6] * y[0] + R[7] * y[1] + R[8] * y[2])


@inline_kernel
def add_rotate_back(x, R, y):
    """Return x + R^T y."""
    return add_rotate(x, transpose(R), y)


@inline_kernel
def transpose(R):
    """Return R^T."""
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


@inline_kernel
def column(B, k):
    """Return column k of B."""
    return (B[k], B[3 + k], B[6 + k])


@inline_kernel
def from_columns(x, y, z):
    """Return the matrix with the columns x, y, z."""
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])


@inline_kernel
def matmul3(A, B):
    """Return A B."""
    return from_columns(rotate(A, column(B, 0)), rotate(A, column(B, 1)), rotate(A, column(B, 2)))


@inline_kernel
def skew_product(p, B):
    """[p] B."""
    return from_columns(cross(p, column(B, 0)), cross(p, column(B, 1)), cross(p, column(B, 2)))


@inline_kernel
def symmetric_to_full(A):
    """Return the nine numbers of a symmetric A."""
    return (A[0], A[1], A[2], A[1], A[3], A[4], A[2], A[4], A[5])


@inline_kernel
def upper_triangle(R):
    """Return the six numbers of the symmetric matrix with the upper triangle of R."""
    return (R[0], R[1], R[2], R[4], R[5], R[8])


@inline_kernel
def symv3(A, x):
    """Return A x of a symmetric A."""
    return (A[0] * x[0] + A[1] * x[1] + A[2] * x[2], A[1] * x[0] + A[3] * x[1] + A[4] * x[2],
            A[2] * x[0] + A[4] * x[1] + A[5] * x[2])


@inline_kernel
def congruence(R, A):
    """Return R A R^T of a symmetric A."""
    B = matmul3(R, symmetric_to_full(A))
    r0, r1, r2 = (R[0], R[1], R[2]), (R[3], R[4], R[5]), (R[6], R[7], R[8])
    b0, b1, b2 = (B[0], B[1], B[2]), (B[3], B[4], B[5]), (B[6], B[7], B[8])
    return (dot3(b0, r0), dot3(b0, r1), dot3(b0, r2), dot3(b1, r1), dot3(b1, r2), dot3(b2, r2))


@inline_kernel
def add6(x, y):
    """Return x + y of six numbers each."""
    return (x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3], x[4] + y[4], x[5] + y[5])


@inline_kernel
def add9(x, y):
    """Return x + y of nine numbers each."""
    return (x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3], x[4] + y[4], x[5] + y[5],
            x[6] + y[6], x[7] + y[7], x[8] + y[8])


@inline_kernel
def sub_twice_skew_product(B, p, f):
    """B - 2 [p][f] = B - 2 (f p^T - (p.f) 1)."""
    d, x, y, z = 2.0 * dot3(p, f), 2.0 * f[0], 2.0 * f[1], 2.0 * f[2]
    return (B[0] - x * p[0] + d, B[1] - x * p[1], B[2] - x * p[2], B[3] - y * p[0], B[4] - y * p[1] + d, B[5] - y * p[2],
            B[6] - z * p[0], B[7] - z * p[1], B[8] - z * p[2] + d)


# Tuples in arrays: twist i of a (6 n,) array, pose i of a (12 n,) array, and so on. Only these access memory -------------

@inline_kernel
def clear(x):
    """Set all entries to zero."""
    for k in range(x.shape[0]):
        store(x, k, 0.0)


@inline_kernel
def load3(x, o):
    """Return the numbers o … o + 2 of an array."""
    return (load(x, o), load(x, o + 1), load(x, o + 2))


@inline_kernel
def load6(x, o):
    """Return the numbers o … o + 5 of an array."""
    return (load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3), load(x, o + 4), load(x, o + 5))


@inline_kernel
def load9(x, o):
    """Return the numbers o … o + 8 of an array."""
    return (load(x, o), load(x, o + 1), load(x, o + 2), load(x, o + 3), load(x, o + 4), load(x, o + 5),
            load(x, o + 6), load(x, o + 7), load(x, o + 8))


@inline_kernel
def store3(x, o, y):
    """Write y to the numbers o … o + 2 of an array."""
    store(x, o, y[0])
    store(x, o + 1, y[1])
    store(x, o + 2, y[2])


@inline_kernel
def load3_strided(x, o, step):
    """Return the numbers o, o + step, o + 2 step of an array."""
    return load(x, o), load(x, o + step), load(x, o + 2 * step)


@inline_kernel
def store3_strided(x, o, step, y):
    """Write y to the numbers o, o + step, o + 2 step of an array."""
    store(x, o, y[0])
    store(x, o + step, y[1])
    store(x, o + 2 * step, y[2])


@inline_kernel
def store6(x, o, y):
    """Write y to the numbers o … o + 5 of an array."""
    store3(x, o, (y[0], y[1], y[2]))
    store3(x, o + 3, (y[3], y[4], y[5]))


@inline_kernel
def store9(x, o, y):
    """Write y to the numbers o … o + 8 of an array."""
    store6(x, o, (y[0], y[1], y[2], y[3], y[4], y[5]))
    store3(x, o + 6, (y[6], y[7], y[8]))


@inline_kernel
def load_twist(x, i):
    """Return twist i, or wrench i, of an array (6 n,)."""
    return load3(x, 6 * i), load3(x, 6 * i + 3)


@inline_kernel
def store_twist(x, i, V):
    """Write V as twist i, or wrench i, of an array (6 n,)."""
    store3(x, 6 * i, V[0])
    store3(x, 6 * i + 3, V[1])


@inline_kernel
def add_to_twist(x, i, V):
    """x[i] += V."""
    for k in range(3):
        store(x, 6 * i + k, load(x, 6 * i + k) + V[0][k])
        store(x, 6 * i + 3 + k, load(x, 6 * i + 3 + k) + V[1][k])


@inline_kernel
def load_pose(x, i):
    """Return pose i of an array (12 n,)."""
    return load9(x, 12 * i), load3(x, 12 * i + 9)


@inline_kernel
def store_pose(x, i, T):
    """Write T as pose i of an array (12 n,)."""
    store9(x, 12 * i, T[0])
    store3(x, 12 * i + 9, T[1])


@inline_kernel
def load_rigid(x, i):
    """Return rigid body i of an array (10 n,)."""
    return load(x, 10 * i), load3(x, 10 * i + 1), load6(x, 10 * i + 4)


@inline_kernel
def store_rigid(x, i, I):
    """Write I as rigid body i of an array (10 n,)."""
    store(x, 10 * i, I[0])
    store3(x, 10 * i + 1, I[1])
    store6(x, 10 * i + 4, I[2])


@inline_kernel
def load_sym6(x, i):
    """Return symmetric 6x6 matrix i of an array (21 n,)."""
    return load6(x, 21 * i), load9(x, 21 * i + 6), load6(x, 21 * i + 15)


@inline_kernel
def store_sym6(x, i, X):
    """Write X as symmetric 6x6 matrix i of an array (21 n,)."""
    store6(x, 21 * i, X[0])
    store9(x, 21 * i + 6, X[1])
    store6(x, 21 * i + 15, X[2])
