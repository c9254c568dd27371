"""Forward and hybrid dynamics differentiated by q, v and the inputs, from inverse dynamics ID at the solution:

    da_v = -M_vv^-1 (dID)_v,    dtau_u = (dID)_u + M_uv da_v

for what is torque-specified (v) and prescribed (u). These are K1 Tables 6 and 7 solved for all directions at once: no
recursion a coordinate; M is factored once over the tree, and eight columns of one state, or one of eight states, are
solved at a time.
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
from liedyn.kernels.mass_factor import factor_mass, free_paths, solve_column, solve_vector
from liedyn.kernels.newton_euler import add_rotors_less_passive
from liedyn.kernels.pairs import add_accelerations, derivative_columns, derivative_pairs, mass_pairs
from liedyn.lie.lanes import largest, load, number_like, pack, put, states_in, store, unpack_filled


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
def hybrid_derivatives(tree, prescribed, up, q, v, a, tau, f_ext, passive, X, work, solution):
    """Writes the columns (see `lanes.put`) of da by q, v and u in X, where u is a or tau, whichever is given. Where
    prescribed, X keeps dID. Returns a positive number if a joint's articulated inertia vanishes."""
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
    aligned_forces(tree, work, solution.tau)
    add_rotors_less_passive(tree, q, v, x, passive, solution.tau, solution.zeta)
    for k in range(nv):
        store(x, k, zero if prescribed[k] else load(tau, k) - load(solution.tau, k))
    solve_vector(tree, prescribed, up, L, solution.Psi, x)
    add_accelerations(tree, x, work)
    derivative_columns(tree, work, solution.zeta, solution.phi)
    clear(X)
    derivative_pairs(tree, work, solution.zeta, solution.phi, X, False)
    if passive:
        add_passive_slopes(tree, v, X, nv)
    input_columns(tree, prescribed, X, solution)
    return largest(deficit)


@primitive
def input_columns(tree, prescribed, X, solution):
    """dID - dtau by the inputs: -1 for a force, a column of M_vu for an acceleration."""
    nv = tree.above.size
    one = number_like(solution.x, 1.0)
    for k in range(nv):
        if not prescribed[k]:
            put(X, nv, 2 * nv + k, k, -one)
            continue
        for j in range(k + 1, tree.last[k] + 1):
            if not prescribed[j]:
                put(X, nv, 2 * nv + k, j, load(solution.M, j * nv + k))
        j = tree.above[k]
        while j >= 0:
            if not prescribed[j]:
                put(X, nv, 2 * nv + k, j, load(solution.M, k * nv + j))
            j = tree.above[j]


@primitive
def solve_columns(tree, prescribed, up, X, solution):
    """X = -M_vv^-1 X in the rows that are not prescribed."""
    nv = up.size
    for block in range(X.shape[0] // nv):
        low, high = rows_of_block(tree, prescribed, block, states_in(solution.L))
        solve_column(tree, prescribed, up, solution.L, solution.Psi, X, block * nv, low, high)


@primitive
def rows_of_block(tree, prescribed, block, states):
    """First and last row that can differ from zero in a block of columns, but for those on the way to the ground."""
    nv = tree.above.size
    c = block if states > 1 else 8 * block
    d = c if states > 1 else min(c + 7, 3 * nv - 1)
    if c // nv != d // nv:
        return 0, nv - 1
    low, high = c % nv, d % nv
    for k in range(c % nv, d % nv + 1):
        if c < 2 * nv or prescribed[k]:
            high = max(high, tree.last[k])
    return low, high


@primitive
def prescribed_rows(tree, prescribed, X, Y, M):
    """From dID in the prescribed rows of X: dtau in Y, and in X the derivatives of the given accelerations. Unit rows where
    an input meets itself."""
    nv, zero = prescribed.size, number_like(X, 0.0)
    for base in range(0, X.shape[0], nv):
        for k in range(nv):
            if prescribed[k]:
                store(Y, base + k, load(X, base + k))
                store(X, base + k, zero)
            else:
                store(Y, base + k, zero)
    one = number_like(M, 1.0)
    for k in range(nv):
        if prescribed[k]:
            put(X, nv, 2 * nv + k, k, one)
        else:
            put(Y, nv, 2 * nv + k, k, one)
    for base in range(0, X.shape[0], nv):
        for k in range(nv):
            if prescribed[k]:
                force_row(tree, X, Y, M, base, k)


@primitive
def force_row(tree, X, Y, M, base, k):
    """Y_k += M_k X."""
    nv = tree.above.size
    y, j = load(Y, base + k) + load(M, k * nv + k) * load(X, base + k), tree.above[k]
    while j >= 0:
        y = y + load(M, k * nv + j) * load(X, base + j)
        j = tree.above[j]
    for j in range(k + 1, tree.last[k] + 1):
        y = y + load(M, j * nv + k) * load(X, base + j)
    store(Y, base + k, y)


# from Python ------------------------------------------------------------------------------------------------------
def whole_columns(nv): return -(-3 * nv // 8) * nv        # rows of Lanes that hold 3 nv columns of one state


def derivatives_memory(n, nv): return aligned_memory(n, nv) + solution_memory(nv) + 6 * n


def one_memory(n, nv): return 16 * whole_columns(nv) + derivatives_memory(n, nv) + nv + 7


def batch_memory(n, nq, nv, nl): return derivatives_memory(n, nv) + nq + 3 * nv + 6 * nl + 6 * nv * nv


@primitive
def columns_of_one(memory, nv):
    """From the scratch of one state, which starts on a border of cache lines: X and Y (m, 8), `up`, the rest."""
    rows = -(-3 * nv // 8) * nv
    X, Y, m = memory[:8 * rows].reshape(rows, 8), memory[8 * rows:16 * rows].reshape(rows, 8), memory[16 * rows:]
    return X, Y, m[:nv].view(np.int64), m[nv:]


@primitive
def copy_columns(X, out, nv):
    """Columns of one state from Lanes to out (3 nv nv)."""
    for c in range(3 * nv):
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
    X, _, up, m = columns_of_one(memory, nv)
    code, F = gather(tree, f_ext, m, n, nl)
    if code != OK:
        return code
    free_paths(tree, none, up)
    solution = solution_work(m[70 * n + 12 * nv:], nv, False)
    if hybrid_derivatives(tree, none, up, q, v, v, tau, F, passive and index[4] != 0, X, aligned_work(m[6 * n:], n, nv),
                          solution) > 0.0:
        return SINGULAR
    solve_columns(tree, none, up, X, solution)
    copy_columns(X, out, nv)
    return OK if finite(out, 3 * nv * nv) else BAD_RESULT


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[::1])")
def hybrid_derivatives_one(machine, prescribed, q, v, a, tau, f_ext, passive, out):
    """One state. out (6 nv nv): da by q, v, u, then dtau by q, v, u, by columns."""
    index, constants, memory = parts(machine)
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    if (q.size != nq or v.size != nv or a.size != nv or tau.size != nv or prescribed.size != nv or out.size != 6 * nv * nv
            or (f_ext.size and f_ext.size != 6 * nl)):
        return SHAPE
    tree = tree_of(index, constants)
    code = bad_input(tree, prescribed, q, v, a, tau, nq, nv)
    if code != OK:
        return code
    X, Y, up, m = columns_of_one(memory, nv)
    code, F = gather(tree, f_ext, m, n, nl)
    if code != OK:
        return code
    free_paths(tree, prescribed, up)
    solution = solution_work(m[70 * n + 12 * nv:], nv, True)
    if hybrid_derivatives(tree, prescribed, up, q, v, a, tau, F, passive and index[4] != 0, X, aligned_work(m[6 * n:], n, nv),
                          solution) > 0.0:
        return SINGULAR
    solve_columns(tree, prescribed, up, X, solution)
    prescribed_rows(tree, prescribed, X, Y, solution.M)
    copy_columns(X, out[:3 * nv * nv], nv)
    copy_columns(Y, out[3 * nv * nv:], nv)
    return OK if finite(out, 6 * nv * nv) else BAD_RESULT


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, b1[::1], "
       "f8[:,::1], i8, i8)", nogil=True)
def hybrid_derivatives_batch(index, constants, memory, prescribed, up, q, v, a, tau, f_ext, passive, filled, out, first, last):
    """States first … last - 1 of a batch, eight at a time; out (N, 3 nv nv or 6 nv nv): with or without dtau.

    up: `free_paths`. filled: which groups of eight of a row of `out` hold more than zeros."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows, wide = q.shape[0], 3 * nv * nv
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and fits(tau, rows, nv)) or up.size != nv:
        return SHAPE
    tree, m = tree_of(index, constants), memory
    with_forces = out.shape[1] == 2 * wide
    Q, V, A, Tau, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:nq + 3 * nv], m[nq + 3 * nv:]
    f, XY, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:6 * nl + out.shape[1]], m[6 * nl + 2 * wide:]
    X = XY[:wide]
    solution = solution_work(m[70 * n + 12 * nv:], nv, with_forces)
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
        if hybrid_derivatives(tree, prescribed, up, Q, V, A, Tau, F, passive, X, aligned_work(m[6 * n:], n, nv), solution) > 0.0:
            return SINGULAR
        solve_columns(tree, prescribed, up, X, solution)
        if with_forces:
            prescribed_rows(tree, prescribed, X, XY[wide:], solution.M)
        if not finite_groups(XY, filled):
            return BAD_RESULT
        unpack_filled(XY, out, k, filled)
    return OK
