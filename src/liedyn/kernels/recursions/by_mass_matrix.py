"""Hybrid dynamics by the mass matrix: for what is torque-specified (v) and prescribed (u),

    M_vv a_v = (tau - b)_v,    tau_u = b_u + M_uv a_v,    b: inverse dynamics with a_v = 0

Source: K1 (30), (31); Walker and Orin 1982, method 3. Operations grow with the square of the length of a chain, yet up to eight
joints there are fewer than of the articulated-body recursion (`hybrid`), and more of them at once.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.kernels.recursions.composite import composite, composite_memory, composite_work
from liedyn.kernels.recursions.newton_euler import newton_euler, newton_euler_memory, newton_euler_work
from liedyn.kernels.recursions.tree_factor import factor, solve
from liedyn.lie.lanes import load, number_like, store
from liedyn.seam.views import carve


class MassMatrixWork(NamedTuple):
    M: np.ndarray            # (nv nv,)
    L: np.ndarray            # (nv nv,) factors of M_vv: see `tree_factor`
    Psi: np.ndarray          # (nv,)
    a: np.ndarray            # (nv,) accelerations
    bias: np.ndarray         # (nv,)
    memory: np.ndarray       # of inverse dynamics and of composite bodies, one after the other


@primitive
def mass_matrix_work(memory, nv): return MassMatrixWork(*carve(memory, (nv * nv, nv * nv, nv, nv, nv)))


def mass_matrix_memory(n, nv): return 2 * nv * nv + 3 * nv + max(newton_euler_memory(n, nv), composite_memory(n))


@primitive
def by_mass_matrix(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """As `hybrid`, but for its work."""
    nv = prescribed.size
    deficit = solution(tree, prescribed, q, v, a, tau, f_ext, passive, work)
    for u in range(nv):
        if prescribed[u]:
            x = load(work.bias, u)
            for j in range(tree.top[u], tree.last[u] + 1):
                if related(tree, prescribed, u, j):
                    x = x + load(work.M, u * nv + j) * load(work.a, j)
            store(tau, u, x)
        else:
            store(a, u, load(work.a, u))
    return deficit


@primitive
def solution(tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """All accelerations, and b, into work, with M and the factors of M_vv. Returns a positive number if a pivot vanishes."""
    n, nv, zero = tree.parent.size, prescribed.size, number_like(q, 0.0)
    for k in range(nv):
        store(work.a, k, load(a, k) if prescribed[k] else zero)
    newton_euler(tree, tree.J, q, v, work.a, f_ext, passive, work.bias, newton_euler_work(work.memory, n, nv))
    composite(tree, q, work.M, composite_work(work.memory, n))
    deficit = factor(tree, prescribed, work.M, work.L, work.Psi)
    for k in range(nv):
        if not prescribed[k]:
            store(work.a, k, load(tau, k) - load(work.bias, k))
    solve(tree, prescribed, work.L, work.Psi, work.a)
    return deficit


@primitive
def related(tree, prescribed, u, j):
    """Whether j is not prescribed, and hangs on u or u on it; j: from the top of u to the last that hangs on u."""
    return not prescribed[j] and u <= tree.last[j]
