"""Elimination of a joint from its body's articulated equation, and its solution afterwards (K1 Table 4).

The equation F = X dV + b of body i, with dV = Ad_{T^-1} dV_p + eta + sum_c S_c a_c, loses one column S_c after the
other: a joint of several coordinates is eliminated as if each stood alone, which serves any mask of prescribed
coordinates. For each column U = X S_c and d = S_c^T U + armature are formed, and

    not prescribed:  Psi = 1/d, u = tau + passive - S_c^T b:  X -= U Psi U^T, b += U Psi u;  then a = Psi (u - U^T dV)
    prescribed:      Psi = d,   u = S_c^T b:                  b += U a;            then tau = u + U^T dV + Psi a - passive

with dV short of the columns eliminated before and of S_c a_c itself. The factors U, Psi depend on q only.
"""
from liedyn.jit import primitive
from liedyn.joints.kinds import NV, SCREW
from liedyn.joints.motion import screw
from liedyn.lie.inertia import minus_square
from liedyn.lie.lanes import load, maximum, store
from liedyn.lie.rows import load_twist, store_twist
from liedyn.lie.screw import screw_add, screw_column, screw_dot
from liedyn.lie.se3 import add, dot, scale


@primitive
def unit_column(X, c):
    """Column c of a symmetric 6x6."""
    A, H, M = X
    if c == 0:
        return (A[0], A[1], A[2]), (H[0], H[1], H[2])
    if c == 1:
        return (A[1], A[3], A[4]), (H[3], H[4], H[5])
    if c == 2:
        return (A[2], A[4], A[5]), (H[6], H[7], H[8])
    if c == 3:
        return (H[0], H[3], H[6]), (M[0], M[1], M[2])
    if c == 4:
        return (H[1], H[4], H[7]), (M[1], M[3], M[4])
    return (H[2], H[5], H[8]), (M[2], M[4], M[5])


@primitive
def component(F, c):
    """Component c of a wrench or twist."""
    x = F[0] if c < 3 else F[1]
    k = c if c < 3 else c - 3
    return x[0] if k == 0 else (x[1] if k == 1 else x[2])


@primitive
def unit_add(V, c, x):
    """V + e_c x."""
    zero = x - x
    return ((V[0][0] + (x if c == 0 else zero), V[0][1] + (x if c == 1 else zero), V[0][2] + (x if c == 2 else zero)),
            (V[1][0] + (x if c == 3 else zero), V[1][1] + (x if c == 4 else zero), V[1][2] + (x if c == 5 else zero)))


@primitive
def factor_screw(tree, i, X, prescribed, work):
    """Stores U, Psi of a screw joint. Returns X as the parent sees it (before transformation), U, Psi, and how far the
    pivot lies below the threshold: positive means a vanishing inertia."""
    k, S = tree.iv[i], screw(tree, i)
    U = screw_column(X, S)
    d = screw_dot(S, U) + load(tree.armature, k)
    Psi, gain, deficit = pivot(d, load(tree.floor, k), prescribed[k])
    store_twist(work.U, k, U)
    store(work.Psi, k, Psi)
    return minus_square(X, U, gain), U, Psi, deficit


@primitive
def factor_units(tree, i, X, prescribed, work):
    """The same for a ball or free joint, whose columns are unit twists. Returns X and the deficit."""
    deficit = X[0][0] * 0.0 - 1.0
    for c in range(NV[tree.kind[i]]):
        k, U = tree.iv[i] + c, unit_column(X, c)
        Psi, gain, worse = pivot(component(U, c) + load(tree.armature, k), load(tree.floor, k), prescribed[k])
        store_twist(work.U, k, U)
        store(work.Psi, k, Psi)
        X = minus_square(X, U, gain)
        deficit = maximum(deficit, worse)
    return X, deficit


@primitive
def pivot(d, floor, prescribed):
    """Psi, the factor of U U^T in X, the deficit against `floor`, below which a pivot is rounding. No branch around X itself: it
    would cost its 21 registers."""
    if prescribed:
        return d, d * 0.0, d * 0.0 - 1.0
    Psi = 1.0 / d
    return Psi, Psi, floor - d


@primitive
def bias_screw(tree, i, b, U, Psi, prescribed, passive, a, tau, work):
    """b as the parent sees it (before transformation and eta); stores u."""
    return bias_column(tree.iv[i], b, U, Psi, screw_dot(screw(tree, i), b), prescribed, passive, a, tau, work)


@primitive
def bias_units(tree, i, b, prescribed, passive, a, tau, work):
    for c in range(NV[tree.kind[i]]):
        k = tree.iv[i] + c
        b = bias_column(k, b, load_twist(work.U, k), load(work.Psi, k), component(b, c), prescribed, passive, a, tau, work)
    return b


@primitive
def bias_column(k, b, U, Psi, Sb, prescribed, passive, a, tau, work):
    if prescribed[k]:
        store(work.u, k, Sb)
        return add(b, scale(load(a, k), U))
    u = load(tau, k) - Sb
    if passive:
        u = u + load(work.passive, k)
    store(work.u, k, u)
    return add(b, scale(Psi * u, U))


@primitive
def solve(tree, i, dV, prescribed, passive, a, tau, work):
    """dV of the body from dV = Ad_{T^-1} dV_p + eta; writes a where not prescribed and tau where prescribed."""
    o = tree.iv[i]
    if tree.kind[i] == SCREW:
        return screw_add(dV, screw(tree, i), solve_column(dV, o, prescribed, passive, a, tau, work))
    n = NV[tree.kind[i]]
    for j in range(n):
        c = n - 1 - j
        dV = unit_add(dV, c, solve_column(dV, o + c, prescribed, passive, a, tau, work))
    return dV


@primitive
def solve_column(dV, k, prescribed, passive, a, tau, work):
    Psi, u, UdV = load(work.Psi, k), load(work.u, k), dot(load_twist(work.U, k), dV)
    if not prescribed[k]:
        x = Psi * (u - UdV)
        store(a, k, x)
        return x
    x = load(a, k)
    force = u + UdV + Psi * x
    if passive:
        force = force - load(work.passive, k)
    store(tau, k, force)
    return x
