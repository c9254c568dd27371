"""Constrained motion differentiated by q, v and the inputs.

At a solution a, tau, lambda of

    R1 = M a + b - A^T lambda = tau,     R2 = A a + gamma = 0

small changes obey the same equations with what R1 and R2 change by when a and lambda stay. Newton-Euler on duals, with the
multipliers as wrenches on bodies, gives the rates of R1 and R2 by q, v and a (the last are M and A), eight directions at once,
exact; then, with prescribed coordinates p and others v,

    M_vv da_v - A_v^T dlambda = -dR1_v,    A_v da_v = -dR2,    dtau_p = dR1_p + M_pv da_v - A_p^T dlambda

by Cholesky's method for M_vv and for A_v M_vv^-1 A_v^T of the rows that do not depend on others.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.closures import BODY_A, BODY_B, FIRST, KIND, ROW_COUNT, TERM, TERMS, closure_row, loops_of
from liedyn.joints.kinds import COUPLING
from liedyn.joints.motion import joint_add, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, OK, SHAPE, SINGULAR, bad_motion, finite, fits
from liedyn.kernels.derivatives.seeds import along_configuration, constant_duals, seed
from liedyn.kernels.loops.loop_rows import accelerations, closure_frames, load_guide, velocities
from liedyn.kernels.loops.saddle import saddle_memory, saddle_work, solve_saddle
from liedyn.kernels.recursions.kinematics import wrenches_on_bodies
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork, newton_euler, newton_euler_work
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import add_to_twist, load_pose, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, add, dAd_inv, neg, scale


class FrameWork(NamedTuple):
    """What `closure_frames` writes."""

    T: np.ndarray         # (12nc,) pose of frame B in frame A
    T_a: np.ndarray       # (12nc,) pose of frame B in the body of A
    g: np.ndarray         # (3nc,) guides


class BalanceWork(NamedTuple):
    tree: NewtonEulerWork
    rows: FrameWork
    F: np.ndarray         # (6n,) wrenches on bodies


@primitive
def balance_work(memory, n, nv, nc):
    x, k = memory, 30 * n + nv
    t, o = k + 12 * nc, k + 27 * nc
    return BalanceWork(newton_euler_work(x, n, nv), FrameWork(x[k:t], x[t:t + 12 * nc], x[t + 12 * nc:o]), x[o:o + 6 * n])


@primitive
def balance(tree, loops, q, v, a, multipliers, f_ext, drive, passive, force, rate, work):
    """force (nv) = M a + b - passive forces - J^T f_ext - A^T lambda; rate (m) = A a + gamma. Duals q, v, a go with
    float64 multipliers, f_ext (6n wrenches on bodies, or empty), drive."""
    for i in range(1, tree.parent.size):
        store_pose(work.tree.T, i, joint_pose(tree, i, q))
    closure_frames(tree, loops, work.tree.T, drive, work.rows)
    gather_wrenches(tree, loops, multipliers, f_ext, work.F, work.rows)
    newton_euler(tree, q, v, a, work.F, passive, force, work.tree)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == COUPLING:
            for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERMS]):
                k = loops.term_v[t]
                store(force, k, load(force, k) - load(loops.coefficient, t) * load(multipliers, loops.record[c, FIRST]))
    accelerations(loops, a, work.tree.V, work.tree.dV, drive, work.rows, rate)


@primitive
def gather_wrenches(tree, loops, multipliers, f_ext, F, rows):
    """F (6n): external wrenches and those of the multipliers, on bodies."""
    zero = number_like(F, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
    for i in range(tree.parent.size):
        store_twist(F, i, add(rest, load_twist(f_ext, i)) if f_ext.size else rest)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == COUPLING:
            continue
        W, g = rest, load_guide(rows, c)
        for r in range(loops.record[c, ROW_COUNT]):
            W = add(W, scale(load(multipliers, loops.record[c, FIRST] + r), closure_row(loops.record[c, KIND], r, g)))
        a, b = loops.record[c, BODY_A], loops.record[c, BODY_B]
        if b > 0:
            add_to_twist(F, b, dAd_inv(load_pose(loops.pose, 2 * c + 1), W))
        if a > 0:
            add_to_twist(F, a, neg(dAd_inv(load_pose(rows.T_a, c), W)))


@primitive
def row_velocities(tree, loops, x, drive, out, work):
    """out (m) = A x less the drive's velocity, at the configuration of the last `balance`."""
    zero, T, V = number_like(out, 0.0), work.tree.T, work.tree.V
    store_twist(V, 0, ((zero, zero, zero), (zero, zero, zero)))
    for i in range(1, tree.parent.size):
        store_twist(V, i, joint_add(tree, i, Ad_inv(load_pose(T, i), load_twist(V, tree.parent[i])), x))
    velocities(loops, x, V, drive, work.rows, out)


class DualWork(NamedTuple):
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    R: np.ndarray         # (nv + m,) R1, R2
    Ax: np.ndarray        # (m,)
    balance: BalanceWork


@primitive
def dual_work(memory, n, nq, nv, nc, m):
    """From duals (rows, 2, 8)."""
    x, k = memory, nq + 3 * nv + 2 * m
    return DualWork(x[:nq], x[nq:nq + nv], x[nq + nv:nq + 2 * nv], x[nq + 2 * nv:k - m], x[k - m:k],
                    balance_work(x[k:], n, nv, nc))


@primitive
def dual_memory(n, nq, nv, nc, m): return nq + 4 * nv + 2 * m + 36 * n + 27 * nc


@kernel
def balance_rates(tree, loops, q, v, a, multipliers, x, f_ext, drive, passive, blocks, out, dual):
    """out (nv + m, 3 nv): R1 and R2 by q, v and a, at multipliers (m); below these, if x (nv) is given, A x by q (nv + 2 m rows).
    Float64 arguments; dual: DualWork. blocks: 3, or 1 for R1, R2 and A x alone, the values of dual.R and dual.Ax."""
    nv, m = v.size, multipliers.size
    whole = blocks > 1
    for what in range(blocks):
        for c in range(0, nv if whole else 1, 8):
            constant_duals(q, dual.q)
            constant_duals(v, dual.v)
            constant_duals(a, dual.a)
            if what == 0 and whole:
                along_configuration(tree, q, c, dual.q)
            for k in range(c, min(c + 8, nv)):
                if what > 0:
                    seed(dual.v if what == 1 else dual.a, k, k - c, 1.0)
            balance(tree, loops, dual.q, dual.v, dual.a, multipliers, f_ext, drive, passive, dual.R[:nv], dual.R[nv:],
                    dual.balance)
            if whole:
                keep_rates(dual.R, what * nv + c, min(8, nv - c), out)
            if what == 0 and x.size:
                row_velocities(tree, loops, x, drive, dual.Ax, dual.balance)
                if whole:
                    keep_rates(dual.Ax, c, min(8, nv - c), out[nv + m:])


@primitive
def keep_rates(X, first, count, out):
    """Columns first … of out: the rates of X."""
    for k in range(X.shape[0]):
        for c in range(count):
            out[k, first + c] = X[k, 1, c]


# from Python ------------------------------------------------------------------------------------------------------
def derivatives_memory(n, nq, nv, nc, m):
    """Lanes: two a dual, an eighth a float64."""
    return 2 * dual_memory.py_func(n, nq, nv, nc, m) + (6 * n + 8 * nv + saddle_memory(nv, m, 3 * nv)) // 8 + 1


@primitive
def bad_given(tree, q, v, a, f_ext, drive, nq, nv, F):
    """A code of `checks`; F (6n): the external wrenches on bodies, if there are any."""
    code = bad_motion(tree, q, v, a, nq, nv)
    if code == OK and not (finite(f_ext, f_ext.size) and finite(drive, drive.size)):
        code = BAD_F_EXT
    if code == OK and f_ext.size:
        wrenches_on_bodies(tree, f_ext, F)
    return code


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1], i8, i8)", nogil=True)
def constrained_derivatives(index, constants, memory, loop_index, loop_constants, prescribed, q, v, a, multipliers, keep, x,
                            f_ext, drive, passive, out, first, last):
    """States first … last - 1, one at a time, each complete: a and multipliers as `constrained_hybrid` gives them.

    keep (N, m): 0 of a row that depends on others. x: empty, and out (N, nv + m, 3 nv): what comes out, and multipliers, by q, v
    and the inputs; or x (N, nv), and out (N, nv + 2 m, 3 nv) as `balance_rates` leaves it."""
    n, nq, nv, nc, m, N = index[0], index[1], index[2], loop_index[0], loop_index[1], q.shape[0]
    if q.shape[1] != nq or not (fits(v, N, nv) and fits(a, N, nv) and fits(multipliers, N, m) and fits(keep, N, m)):
        return SHAPE
    tree, loops, k = tree_of(index, constants), loops_of(loop_index, loop_constants), 2 * dual_memory(n, nq, nv, nc, m)
    dual, rest = dual_work(memory[:k].reshape(k // 2, 2, 8), n, nq, nv, nc, m), memory[k:].reshape((memory.shape[0] - k) * 8)
    F, work = rest[:6 * n] if f_ext.shape[1] else rest[:0], saddle_work(rest[6 * n:], nv, m, 3 * nv)
    passive, three = passive and index[4] != 0, 3 + 0 * nv      # a literal would be compiled apart
    for i in range(first, last):
        code = bad_given(tree, q[i], v[i], a[i], f_ext[i], drive[i], nq, nv, F)
        if code != OK:
            return code
        balance_rates(tree, loops, q[i], v[i], a[i], multipliers[i], x[i], F, drive[i], passive, three, out[i], dual)
        if x.shape[1] == 0 and not small_changes(prescribed, keep[i], out[i], work):
            return SINGULAR
        if not all_finite(out[i]):
            return BAD_RESULT
    return OK


@primitive
def all_finite(out):
    total = 0.0
    for r in range(out.shape[0]):
        for c in range(out.shape[1]):
            total += out[r, c] * 0.0
    return total == 0.0


@kernel
def small_changes(prescribed, keep, R, work):
    """From the rates of `balance_rates` to those of what comes out, in place. False where M_vv is singular."""
    nv, m, columns = prescribed.size, keep.size, R.shape[1]
    for i in range(nv):
        for j in range(nv):
            given = prescribed[i] or prescribed[j]
            work.M[i, j] = (1.0 if i == j else 0.0) if given else R[i, 2 * nv + j]
        for r in range(m):
            work.A[r, i] = 0.0 if prescribed[i] else R[nv + r, 2 * nv + i]
        for c in range(columns):
            unit = 1.0 if c == 2 * nv + i else 0.0
            # what M_vv da_v - A_v^T dlambda is: of an input, the force itself or what its acceleration takes
            if prescribed[i] or (c >= 2 * nv and not prescribed[c - 2 * nv]):
                work.f[i, c] = unit
            else:
                work.f[i, c] = -R[i, c]
    for r in range(m):
        for c in range(columns):
            work.g[r, c] = 0.0 if c >= 2 * nv and not prescribed[c - 2 * nv] else -R[nv + r, c]
    if not solve_saddle(keep, work):
        return False
    answer(prescribed, R, work)
    return True


@primitive
def answer(prescribed, R, work):
    """Over R, from work.f = da and work.g = dlambda: dtau_p = dR1_p + M_pv da_v - A_p^T dlambda."""
    nv, m, columns = prescribed.size, work.g.shape[0], R.shape[1]
    for i in range(nv):
        if not prescribed[i]:
            continue
        for c in range(columns):
            x = R[i, c] if c < 2 * nv or prescribed[c - 2 * nv] else 0.0
            for j in range(nv):
                if not prescribed[j]:
                    x += R[i, 2 * nv + j] * work.f[j, c]
            for r in range(m):
                x -= R[nv + r, 2 * nv + i] * work.g[r, c]
            work.tau[i, c] = x
    for c in range(columns):
        for i in range(nv):
            R[i, c] = work.tau[i, c] if prescribed[i] else work.f[i, c]
        for r in range(m):
            R[nv + r, c] = work.g[r, c]
