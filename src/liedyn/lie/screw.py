"""Joint screws about the body's own z axis: S = (a, b) is the twist (0 0 a, 0 0 b). Revolute, prismatic and helical
joints are one code path without a branch."""
from liedyn.jit import primitive


@primitive
def screw_add(V, S, x):
    """V + S x."""
    return (V[0][0], V[0][1], V[0][2] + S[0] * x), (V[1][0], V[1][1], V[1][2] + S[1] * x)


@primitive
def screw_dot(S, F):
    """S^T F."""
    return S[0] * F[0][2] + S[1] * F[1][2]


@primitive
def ad_screw(V, S, x):
    """ad_V S x."""
    (w, v), a, b = V, S[0] * x, S[1] * x
    zero = a - a
    return (w[1] * a, -(w[0] * a), zero), (v[1] * a + w[1] * b, -(v[0] * a + w[0] * b), zero)


@primitive
def screw_pose(T, S, s, c, x):
    """T exp(S x), given sine and cosine of the angle."""
    R, p = T
    h = S[1] * x
    z = s - s
    return ((R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2] + z, R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5] + z,
             R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8] + z), (p[0] + R[2] * h, p[1] + R[5] * h, p[2] + R[8] * h))
