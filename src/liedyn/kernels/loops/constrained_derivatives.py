"""Constrained motion and how its equations change with q, v and a:

    R1 = M a + b - A^T lambda,     R2 = A a + gamma

Rates of M a + b are those of inverse dynamics, those of closures stand in `loop_rates`; rates by a are M and A.
`dynamics.loops.constrained_derivatives` solves for da and dlambda."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, everywhere, primitive
from liedyn.joints.closures import BODY_A, BODY_B, FIRST, KIND, ROW_COUNT, TERM, TERMS, closure_row, loops_of
from liedyn.joints.kinds import COUPLING
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_RESULT, OK, finite, give, take_motion
from liedyn.kernels.derivatives.inverse_derivatives import (
    DerivativesWork,
    derivatives_memory,
    derivatives_work,
    inverse_derivatives,
)
from liedyn.kernels.loops.loop_rates import LoopWork, closure_rates, force_rates, loop_work, loop_work_memory, velocity_rates
from liedyn.kernels.loops.loop_rows import (
    FrameWork,
    accelerations,
    closure_frames,
    frame_work,
    load_guide,
    see_columns,
    store_rows,
    velocities,
)
from liedyn.kernels.recursions.kinematics import body_twists, gather, joint_poses
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork, newton_euler
from liedyn.lie.blocks import pack
from liedyn.lie.lanes import WIDTH, load, number_like, store
from liedyn.lie.rows import add_to_twist, load_pose, load_twist, store_twist
from liedyn.lie.se3 import add, dAd_inv, neg, scale, zero6
from liedyn.seam.views import carve


class BalanceWork(NamedTuple):
    tree: NewtonEulerWork
    rows: FrameWork
    F: np.ndarray         # (6n,) wrenches on bodies


@primitive
def balance(tree, loops, q, v, a, multipliers, f_ext, drive, passive, force, rate, work):
    """force (nv) = M a + b - passive forces - J^T f_ext - A^T lambda; rate (m) = A a + gamma. f_ext: 6n wrenches
    on bodies, or empty."""
    joint_poses(tree, q, work.tree.T)
    closure_frames(tree, loops, work.tree.T, drive, work.rows)
    gather_wrenches(tree, loops, multipliers, f_ext, work.F, work.rows)
    newton_euler(tree, tree.J, q, v, a, work.F, passive, force, work.tree)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] == COUPLING:
            for t in range(loops.record[c, TERM], loops.record[c, TERM] + loops.record[c, TERMS]):
                k = loops.term_v[t]
                store(force, k, load(force, k) - load(loops.coefficient, t) * load(multipliers, loops.record[c, FIRST]))
    accelerations(loops, a, work.tree.V, work.tree.dV, drive, work.rows, rate)


@primitive
def gather_wrenches(tree, loops, multipliers, f_ext, F, rows):
    """F (6n): external wrenches and those of the multipliers, on bodies."""
    rest = zero6(number_like(F, 0.0))
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
    body_twists(tree, work.tree.T, x, work.tree.V)
    velocities(loops, x, work.tree.V, drive, work.rows, out)


class Rates(NamedTuple):
    """(nv nv) of R1 by q, v and a, (m nv) of R2, and of A x by q, by rows."""

    Dq: np.ndarray
    Dv: np.ndarray
    M: np.ndarray
    Rq: np.ndarray
    Rv: np.ndarray
    A: np.ndarray
    Xq: np.ndarray


@everywhere
def rates_sizes(nv, m): return nv * nv, nv * nv, nv * nv, m * nv, m * nv, m * nv, m * nv


@primitive
def rates_in(x, nv, m): return Rates(*carve(x, rates_sizes(nv, m))[:-1])


def rates_size(nv, m): return sum(rates_sizes(nv, m))


class RatesWork(NamedTuple):
    tree: DerivativesWork
    rows: FrameWork
    loop: LoopWork


@primitive
def rates_work(memory, n, nv, nc):
    tree, rows, loop, _ = carve(memory, (derivatives_memory(n, nv), 27 * nc, loop_work_memory(n, nv)))
    return RatesWork(derivatives_work(tree, n, nv), frame_work(rows, nc), loop_work(loop, n, nv))


def rates_memory(n, nv, nc): return derivatives_memory(n, nv) + 27 * nc + loop_work_memory(n, nv)


@primitive
def balance_rates(tree, loops, q, v, a, multipliers, x, f_ext, drive, passive, rates, work):
    """Writes rates at multipliers (m), those of A x too if x (nv) is given. f_ext: 6n wrenches on bodies, or empty."""
    zero = number_like(q, 0.0)
    inverse_derivatives(tree, q, v, a, f_ext, passive, rates.Dq, rates.Dv, rates.M, work.tree)
    closure_frames(tree, loops, work.tree.T, drive, work.rows)
    for k in range(rates.A.shape[0]):
        store(rates.Rq, k, zero)
        store(rates.Rv, k, zero)
        store(rates.Xq, k, zero)
    store_rows(tree, loops, work.tree.T, work.rows, work.loop.s, rates.A)
    for c in range(loops.record.shape[0]):
        if loops.record[c, KIND] != COUPLING:
            see_columns(tree, loops, c, work.tree.T, work.rows.T_a, work.loop.s)
            closure_rates(tree, loops, c, v, a, drive, work.rows, work.loop, rates.Rq, rates.Rv)
            force_rates(tree, loops, c, multipliers, work.rows, work.loop.s, rates.Dq)
            if x.shape[0]:
                velocity_rates(tree, loops, c, x, drive, work.rows, work.loop, rates.Xq)


# from Python ------------------------------------------------------------------------------------------------------
def balance_rates_memory(n, nq, nv, nl, nc, m, driven):
    return rates_memory(n, nv, nc) + rates_size(nv, m) + nq + 3 * nv + m + 6 * nl + 6 * n + 24 * driven


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def balance_rates_batch(index, constants, memory, loop_index, loop_constants, q, v, a, multipliers, x, f_ext, drive, passive, out,
                        first, last):
    """States first … last - 1. out (N, 3 nv nv + 4 m nv): `Rates`. x (N, nv) or empty; f_ext (N, 6 n_links) in link frames, or
    empty; drive (N, 24 driven)."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    nc, m, driven = loop_index[0], loop_index[1], loop_index[3]
    size = sum(rates_sizes(nv, m))
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    Q, V, A, X, mu, D, links, bodies, Out, y = carve(memory, (nq, nv, nv, x.shape[1], m, 24 * driven, 6 * nl, 6 * n, size))
    work, rates = rates_work(y, n, nv, nc), rates_in(Out, nv, m)
    for k in range(first, last, WIDTH):
        code = take_motion(tree, q, v, a, k, Q, V, A)
        pack(multipliers, k, mu)
        if x.shape[1]:
            pack(x, k, X)
        if driven:
            pack(drive, k, D)
            code = code if code != OK or finite(D) else BAD_F_EXT
        bad_f_ext, F = gather(tree, f_ext, k, links, bodies)
        code = code or bad_f_ext
        if code != OK:
            return code
        balance_rates(tree, loops, Q, V, A, mu, X, F, D, passive and index[4] != 0, rates, work)
        if not give(Out, out, k):
            return BAD_RESULT
    return OK
