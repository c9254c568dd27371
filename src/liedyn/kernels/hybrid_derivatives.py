"""Forward and hybrid dynamics differentiated by q, v and the inputs, from inverse dynamics ID at the solution:

    da_v = -M_vv^-1 (dID)_v,    dtau_u = (dID)_u + M_uv da_v

for what is torque-specified (v) and prescribed (u). These are K1 Tables 6 and 7 solved for all directions at once: no
recursion a coordinate; M is factored once over the tree, and columns go eight at a time of one state, or one of eight.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, primitive
from liedyn.joints.tree import parts, tree_of
from liedyn.kernels.aligned import (
    aligned_forces,
    aligned_memory,
    aligned_motion,
    aligned_work,
    gather_bodies,
)
from liedyn.kernels.checks import BAD_RESULT, OK, SHAPE, SINGULAR, finite, finite_groups, fits
from liedyn.kernels.hybrid import bad_input
from liedyn.kernels.inverse_derivatives import add_passive_slopes, clear
from liedyn.kernels.kinematics import gather
from liedyn.kernels.mass_factor import columns_in_lanes, factor_mass, free_paths, invert_mass, minus_product, solve_vector
from liedyn.kernels.newton_euler import add_rotors_less_passive
from liedyn.kernels.pairs import add_accelerations, derivative_columns, derivative_pairs, mass_pairs
from liedyn.lie.lanes import get, largest, load, number_like, pack, put, store, unpack_filled


class SolutionWork(NamedTuple):
    L: np.ndarray      # (nv nv,) M, then its factor
    M: np.ndarray      # (nv nv,) M, or empty
    Psi: np.ndarray    # (nv,) inverse pivots
    x: np.ndarray      # (nv,) unknown accelerations
    tau: np.ndarray    # (nv,)
    zeta: np.ndarray   # (6nv,)
    phi: np.ndarray    # (6nv,)


@primitive
def solution_work(memory, nv, with_mass):
    k = nv * nv
    L, M, m = memory[:k], memory[k:2 * k if with_mass else k], memory[2 * k:]
    return SolutionWork(L, M, m[:nv], m[nv:2 * nv], m[2 * nv:3 * nv], m[3 * nv:9 * nv], m[9 * nv:15 * nv])


def solution_memory(nv): return 2 * nv * nv + 15 * nv


@primitive
def hybrid_derivatives(tree, prescribed, up, q, v, a, tau, f_ext, passive, N, W, work, solution):
    """Writes columns (see `lanes.put`): N = M_vv^-1, and in W dID by q and v, where not zero. Returns a positive number if a
    joint's articulated inertia vanishes."""
    nv, x, L = up.size, solution.x, solution.L
    zero = number_like(q, 0.0)
    for k in range(nv):
        store(x, k, load(a, k) if prescribed[k] else zero)
    aligned_motion(tree, q, v, x, f_ext, work)
    gather_bodies(tree, work)
    mass_pairs(tree, work, L)
    for k in range(solution.M.shape[0]):
        store(solution.M, k, load(L, k))
    deficit = factor_mass(tree, prescribed, up, L, solution.Psi)
    invert_mass(tree, prescribed, up, L, solution.Psi, N)
    aligned_forces(tree, work, solution.tau)
    add_rotors_less_passive(tree, q, v, x, passive, solution.tau, solution.zeta)
    for k in range(nv):
        store(x, k, zero if prescribed[k] else load(tau, k) - load(solution.tau, k))
    solve_vector(tree, prescribed, up, L, solution.Psi, x)
    add_accelerations(tree, x, work)
    derivative_columns(tree, work, solution.zeta, solution.phi)
    derivative_pairs(tree, work, solution.zeta, solution.phi, W, False)
    if passive:
        add_passive_slopes(tree, v, W, nv)
    return largest(deficit)


@primitive
def input_columns(tree, prescribed, W, solution):
    """W by the prescribed accelerations: columns of M_vu."""
    nv = tree.above.size
    for k in range(nv):
        if prescribed[k]:
            for j in range(k + 1, tree.last[k] + 1):
                if not prescribed[j]:
                    put(W, nv, 2 * nv + k, j, load(solution.M, j * nv + k))
            j = tree.above[k]
            while j >= 0:
                if not prescribed[j]:
                    put(W, nv, 2 * nv + k, j, load(solution.M, k * nv + j))
                j = tree.above[j]


@primitive
def complete(tree, prescribed, N, W, X, Y, M):
    """X, the rows da_v by q, v and the given accelerations, gets M_vv^-1 for the given forces and unit rows; Y = dtau:
    (dID)_u + M_u da, unit rows."""
    nv, kind = prescribed.size, number_like(M, 0.0)
    for k in range(nv):
        if prescribed[k]:
            put(X, nv, 2 * nv + k, k, kind + 1.0)
        else:
            for j in range(nv):
                put(X, nv, 2 * nv + k, j, get(N, nv, k, j, kind))
            put(Y, nv, 2 * nv + k, k, kind + 1.0)
    for base in range(0, X.shape[0], nv):
        inputs = base // nv * columns_in_lanes(M) >= 2 * nv             # nothing of ID in these columns
        for k in range(nv):
            if prescribed[k]:
                y = load(W, base + k)
                force_row(tree, X, Y, M, base, k, y - y if inputs else y)


@primitive
def force_row(tree, X, Y, M, base, k, y):
    """Y_k = y + M_k X."""
    nv = tree.above.size
    y, j = y + load(M, k * nv + k) * load(X, base + k), tree.above[k]
    while j >= 0:
        y = y + load(M, k * nv + j) * load(X, base + j)
        j = tree.above[j]
    for j in range(k + 1, tree.last[k] + 1):
        y = y + load(M, j * nv + k) * load(X, base + j)
    store(Y, base + k, y)


# from Python ------------------------------------------------------------------------------------------------------
def matrix_rows(nv, per):
    """Rows of Lanes of W, X, Y (in pairs of Lanes of `per` columns, 3 nv in all) and of N (in fours)."""
    return -(-3 * nv // (2 * per)) * 2 * nv, -(-nv // (4 * per)) * 4 * nv


def derivatives_memory(n, nv): return aligned_memory(n, nv) + solution_memory(nv) + 6 * n


def one_memory(n, nv):
    rows, last = matrix_rows(nv, 8)
    return 8 * (3 * rows + last) + derivatives_memory(n, nv) + nv


def batch_memory(n, nq, nv, nl):
    rows, last = matrix_rows(nv, 1)
    return derivatives_memory(n, nv) + nq + 3 * nv + 6 * nl + 3 * rows + last


@primitive
def matrices(memory, nv, columns, per):
    """W, X, Y with `columns` columns, and N, of the first rows of Lanes of memory (m, 8). N follows X, where X is whole."""
    rows, last = -(-columns // (2 * per)) * 2 * nv, -(-nv // (4 * per)) * 4 * nv
    k = 2 * rows + last
    return memory[:rows], memory[rows:2 * rows], memory[k:k + rows], memory[2 * rows:k]


@primitive
def matrices_of_one(memory, nv, columns):
    """The same of one state, from scratch that starts on a border of cache lines; and the free paths, and the rest."""
    rows = 3 * (-(-3 * nv // 16) * 2 * nv) + -(-nv // 32) * 4 * nv
    W, X, Y, N = matrices(memory[:8 * rows].reshape(rows, 8), nv, columns, 8)
    m = memory[8 * rows:]
    return W, X, Y, N, m[:nv].view(np.int64), m[nv:]


@primitive
def copy_columns(X, out, nv):
    """Columns of one state from Lanes to out (columns nv)."""
    for c in range(out.size // nv if nv else 0):
        for r in range(nv):
            out[c * nv + r] = X[(c >> 3) * nv + r, c & 7]


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[::1])")
def forward_derivatives_one(machine, none, q, v, tau, f_ext, passive, out):
    """One state. f_ext (6 n_links) in link frames, or empty. out (3 nv nv): da by q, v, tau, by columns."""
    index, constants, memory = parts(machine)
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    if q.size != nq or v.size != nv or tau.size != nv or out.size != 3 * nv * nv or (f_ext.size and f_ext.size != 6 * nl):
        return SHAPE
    tree = tree_of(index, constants)
    code = bad_input(tree, none, q, v, v, tau, nq, nv)
    if code != OK:
        return code
    W, X, _, N, up, m = matrices_of_one(memory, nv, 2 * nv)
    code, F = gather(tree, f_ext, m, n, nl)
    if code != OK:
        return code
    free_paths(tree, none, up)
    clear(W)
    clear(X)
    solution = solution_work(m[70 * n + 12 * nv:], nv, False)
    if hybrid_derivatives(tree, none, up, q, v, v, tau, F, passive and index[4] != 0, N, W, aligned_work(m[6 * n:], n, nv),
                          solution) > 0.0:
        return SINGULAR
    minus_product(tree, solution.Psi, N, W, X, 2 * nv)
    copy_columns(X, out[:2 * nv * nv], nv)
    copy_columns(N, out[2 * nv * nv:], nv)
    return OK if finite(out, 3 * nv * nv) else BAD_RESULT


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[::1], f8[::1])")
def hybrid_derivatives_one(machine, prescribed, q, v, a, tau, f_ext, passive, out, forces):
    """One state. out, forces (3 nv nv): da and dtau by q, v, u, by columns."""
    index, constants, memory = parts(machine)
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    if (q.size != nq or v.size != nv or a.size != nv or tau.size != nv or prescribed.size != nv or out.size != 3 * nv * nv
            or forces.size != out.size or (f_ext.size and f_ext.size != 6 * nl)):
        return SHAPE
    tree = tree_of(index, constants)
    code = bad_input(tree, prescribed, q, v, a, tau, nq, nv)
    if code != OK:
        return code
    W, X, Y, N, up, m = matrices_of_one(memory, nv, 3 * nv)
    code, F = gather(tree, f_ext, m, n, nl)
    if code != OK:
        return code
    free_paths(tree, prescribed, up)
    clear(W)
    clear(X)
    clear(Y)
    solution = solution_work(m[70 * n + 12 * nv:], nv, True)
    if hybrid_derivatives(tree, prescribed, up, q, v, a, tau, F, passive and index[4] != 0, N, W,
                          aligned_work(m[6 * n:], n, nv), solution) > 0.0:
        return SINGULAR
    input_columns(tree, prescribed, W, solution)
    minus_product(tree, solution.Psi, N, W, X, 3 * nv)
    complete(tree, prescribed, N, W, X, Y, solution.M)
    copy_columns(X, out, nv)
    copy_columns(Y, forces, nv)
    return OK if finite(out, 3 * nv * nv) and finite(forces, 3 * nv * nv) else BAD_RESULT


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, b1[::1], "
       "f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def hybrid_derivatives_batch(index, constants, memory, prescribed, up, q, v, a, tau, f_ext, passive, filled, out, forces, first,
                             last):
    """States first … last - 1 of a batch, eight at a time; out (N, 3 nv nv): da, forces (the same): dtau, or no rows.

    up: `free_paths`. filled: which groups of eight of their rows hold more than zeros."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows, wide = q.shape[0], 3 * nv * nv
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and fits(tau, rows, nv)) or up.size != nv:
        return SHAPE
    tree, m = tree_of(index, constants), memory
    with_forces = forces.shape[0] > 0
    columns = 3 * nv if with_forces else 2 * nv
    Q, V, A, Tau, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:nq + 3 * nv], m[nq + 3 * nv:]
    f, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:]
    W, X, Y, N = matrices(m, nv, columns, 1)
    da = X[:wide] if with_forces else m[W.shape[0]:W.shape[0] + wide]         # X and, right behind it, N
    m = m[W.shape[0] + X.shape[0] + Y.shape[0] + N.shape[0]:]
    clear(W)
    clear(X)
    clear(Y)
    work, solution = aligned_work(m[6 * n:], n, nv), solution_work(m[70 * n + 12 * nv:], nv, with_forces)
    passive = passive and index[4] != 0
    for k in range(first, last, 8):
        pack(q, k, Q)
        pack(v, k, V)
        pack(a, k, A)
        pack(tau, k, Tau)
        code = bad_input(tree, prescribed, Q, V, A, Tau, nq, nv)
        if f_ext.size:
            pack(f_ext, k, f)
        bad_f_ext, F = gather(tree, f, m, n, nl)
        code = code if code != OK else bad_f_ext
        if code != OK:
            return code
        if hybrid_derivatives(tree, prescribed, up, Q, V, A, Tau, F, passive, N, W, work, solution) > 0.0:
            return SINGULAR
        if with_forces:
            input_columns(tree, prescribed, W, solution)
        minus_product(tree, solution.Psi, N, W, X, columns)
        if with_forces:
            complete(tree, prescribed, N, W, X, Y, solution.M)
            if not finite_groups(Y[:wide], filled):
                return BAD_RESULT
            unpack_filled(Y[:wide], forces, k, filled)
        if not finite_groups(da, filled):
            return BAD_RESULT
        unpack_filled(da, out, k, filled)
    return OK
