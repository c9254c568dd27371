"""Elimination of a joint from its body's articulated equation, and its solution afterwards.

Source: K1 (42)-(52), Table 4; AGF (45)-(50).

The equation F = AI dV + AB of body i, with dV = Ad_{T^-1} dV_p + eta + sum_c S_c a_c, loses one column S_c after the other: a
joint of several coordinates is eliminated as if each stood alone, which serves any mask of prescribed coordinates. For each
column U = AI S_c and D = S_c^T U + armature are formed, and

    not prescribed:  Psi = 1/D, u = tau + passive - S_c^T AB:  AI -= U Psi U^T, AB += U Psi u;  then a = Psi (u - U^T dV)
    prescribed:      Psi = D,   u = S_c^T AB:                  AB += U a;             then tau = u + U^T dV + Psi a - passive

with dV short of the columns eliminated before and of S_c a_c itself. What is left of AI is Pi. U and Psi depend on q only.
"""
from liedyn.jit import primitive
from liedyn.joints.kinds import BARE, NV
from liedyn.joints.motion import joint_column
from liedyn.lie.inertia import less_square, sym6, without_z
from liedyn.lie.lanes import load, maximum, store
from liedyn.lie.rows import load_twist, store_twist
from liedyn.lie.se3 import add, dot, scale


@primitive
def eliminate(tree, i, AI, prescribed, work):
    """Stores U and Psi. Returns Pi, and how far the lowest D lies below its floor: positive means a vanishing inertia."""
    Pi, zero = AI, AI[0][0] - AI[0][0]
    deficit = zero - 1.0
    for c in range(NV[tree.kind[i]]):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        U = sym6(Pi, S)
        D = dot(U, S) + load(tree.armature, k)
        Psi = D
        if not prescribed[k]:
            Psi = 1.0 / D
            Pi = less_square(Pi, U, Psi)
            if tree.marks[i] & BARE:
                Pi = without_z(Pi)                       # zeros that fold: 7% of a line's operations
            deficit = maximum(deficit, load(tree.floor, k) - D)
        store_twist(work.U, k, U)
        store(work.Psi, k, Psi)
    return Pi, deficit


@primitive
def eliminate_bias(tree, i, AB, prescribed, passive, a, tau, work):
    """Stores u. Returns AB as the columns' elimination leaves it."""
    zero = AB[0][0] - AB[0][0]
    for c in range(NV[tree.kind[i]]):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        U, SAB = load_twist(work.U, k), dot(AB, S)
        if prescribed[k]:
            store(work.u, k, SAB)
            AB = add(AB, scale(load(a, k), U))
        else:
            u = load(tau, k) - SAB
            if passive:
                u = u + load(work.passive, k)
            store(work.u, k, u)
            AB = add(AB, scale(load(work.Psi, k) * u, U))
    return AB


@primitive
def solve(tree, i, dV, prescribed, passive, a, tau, work):
    """dV of the body from Ad_{T^-1} dV_p + eta. Writes a where not prescribed and tau where prescribed."""
    zero = dV[0][0] - dV[0][0]
    for c in range(NV[tree.kind[i]] - 1, -1, -1):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        Psi, u, UdV = load(work.Psi, k), load(work.u, k), dot(load_twist(work.U, k), dV)
        if prescribed[k]:
            x = load(a, k)
            force = u + UdV + Psi * x
            if passive:
                force = force - load(work.passive, k)
            store(tau, k, force)
        else:
            x = Psi * (u - UdV)
            store(a, k, x)
        dV = add(dV, scale(x, S))
    return dV
