"""A change of origin without a turn: b stands at p from a, with a's axes. The Ad, Ad* and congruences of T = (1, p)."""
from liedyn.jit import primitive
from liedyn.lie.vec3 import add3, add6, dot3, outer_less, plus_cross, scale3


@primitive
def shift_twist(p, V):
    """Ad_{T^-1} V: a twist given in a, seen from b."""
    return V[0], plus_cross(V[1], V[0], p)


@primitive
def shift_wrench(p, F):
    """Ad*_{T^-1} F: a wrench given in b, seen from a."""
    return plus_cross(F[0], p, F[1]), F[1]


@primitive
def shift_rigid(p, I):
    """Ad*_{T^-1} I Ad_{T^-1} of a rigid body (K1 (21)): given in b, seen from a."""
    m, h, A = I
    k = add3(h, scale3(m, p))
    # A - [p][h] - [k][p], with [x][y] = y x^T - (x.y) 1
    d = dot3(p, h) + dot3(k, p)
    return m, k, add6(A, (d - (h[0] * p[0] + p[0] * k[0]), -(h[0] * p[1] + p[0] * k[1]), -(h[0] * p[2] + p[0] * k[2]),
                          d - (h[1] * p[1] + p[1] * k[1]), -(h[1] * p[2] + p[1] * k[2]), d - (h[2] * p[2] + p[2] * k[2])))


@primitive
def shift_coriolis(p, B):
    """Ad*_{T^-1} B Ad_{T^-1} of a `lie.body_coriolis` matrix: given in b, seen from a."""
    return outer_less(B[0], p, B[1]), B[1]
