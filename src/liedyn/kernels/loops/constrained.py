"""Forward and hybrid dynamics under constraints (K2 §3):

    M a + b = tau + A^T lambda,    A a + gamma = 0

The tree is eliminated as if it were open; A M^-1 A^T lambda = -(A a + gamma), with A a of the open tree, says what the
constraints add; one forward sweep with X lambda among the joint forces (`loop_sweep`) gives a, tau. Prescribed coordinates turn
M into M_vv and A into A_v."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.closures import loop_parts, loops_of
from liedyn.joints.tree import parts, tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_QUATERNION, BAD_RESULT, OK, SHAPE, SINGULAR, bad_quaternions, finite, fits
from liedyn.kernels.loops.constraint_solver import (
    SolverWork,
    factor_constraints,
    form,
    solve_constraints,
    solver_memory,
    solver_work,
)
from liedyn.kernels.loops.loop_rows import (
    RowMotion,
    RowWork,
    accelerations,
    closure_frames,
    residuals,
    row_memory,
    row_room,
    row_work,
    velocities,
)
from liedyn.kernels.loops.loop_sweep import add_multipliers, add_rates, sweep_rows
from liedyn.kernels.recursions.hybrid import bad_input, hybrid_memory, hybrid_work, out_and_back, substitute
from liedyn.kernels.recursions.kinematics import gather
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import load, store
from liedyn.seam.views import span


class ConstraintWork(NamedTuple):
    rows: RowWork
    solver: SolverWork
    rhs: np.ndarray       # (m,)
    other: np.ndarray     # (m,)


@primitive
def constraint_work(memory, n, nv, nc, m):
    """memory: of one state, it begins a cache line."""
    k = row_room(memory, n, nv, nc, m)
    s = k + 2 * m * m + 5 * m
    return ConstraintWork(row_work(span(memory, 0, k), n, nv, nc, m), solver_work(span(memory, k, s - k), m), span(memory, s, m),
                          span(memory, s + m, m))


def constraint_memory(n, nv, nc, m):
    """For one state and for eight."""
    return row_memory(n, nv, nc, m) + solver_memory(m) + 2 * m


@kernel
def constrained_hybrid(index, constants, loop_index, loop_constants, prescribed, q, v, a, tau, f_ext, drive, frequency, passive,
                       multipliers, memory, room):
    """`solve_constrained`, compiled once for all that call it; with few arguments, since each array of a call takes long to
    compile. memory: of `hybrid_work`; room: of `constraint_work`."""
    n, nv = index[0], index[2]
    con = constraint_work(room, n, nv, loop_index[0], loop_index[1])
    return solve_constrained(tree_of(index, constants), loops_of(loop_index, loop_constants), prescribed, q, v, a, tau, f_ext,
                             drive, frequency, passive, multipliers, hybrid_work(memory, n, nv), con)


@primitive
def solve_constrained(tree, loops, prescribed, q, v, a, tau, f_ext, drive, frequency, passive, multipliers, work, con):
    """`hybrid` under constraints; writes multipliers (m). frequency: of Baumgarte's stabilization [rad/s], or 0.

    Returns a positive number if a joint's articulated inertia vanishes."""
    solver = con.solver
    deficit = equations(tree, loops, prescribed, q, v, a, tau, f_ext, drive, frequency > 0.0, frequency, passive, work, con.rows,
                        solver.null, solver.size, con.rhs, con.other)
    factor_constraints(solver)
    solve_constraints(con.rhs, solver, multipliers)
    complete(tree, loops, prescribed, v, multipliers, passive, a, tau, work, con.rows)
    return deficit


@primitive
def equations(tree, loops, prescribed, q, v, a, tau, f_ext, drive, stabilized, frequency, passive, work, rows, matrix, made, rhs,
              other):
    """A M^-1 A^T lambda = rhs: writes matrix (m m), made (m; see `form`) and rhs (m), and work and rows, which `complete` reads.
    frequency is read if `stabilized`. other (m): scratch. Returns a positive number if a joint's articulated inertia vanishes."""
    deficit = out_and_back(tree, prescribed, q, v, a, tau, f_ext, passive, work)
    closure_frames(tree, loops, work.T, drive, rows)
    accelerations(loops, None, work.V, None, drive, rows, rhs)
    if stabilized:
        add_baumgarte(loops, q, v, work.V, drive, frequency, rows, rhs, other)
    sweep_rows(tree, loops, prescribed, work.T, work.U, work.Psi, True, rows, False, RowMotion(v, a, work.u, work.V, work.dV))
    form(tree, loops, prescribed, work.Psi, rows, matrix, made)
    add_rates(loops, rows, rhs)
    for r in range(rhs.shape[0]):
        store(rhs, r, -load(rhs, r))
    return deficit


@primitive
def complete(tree, loops, prescribed, v, multipliers, passive, a, tau, work, rows):
    """a and tau, once the multipliers are known."""
    add_multipliers(tree, loops, prescribed, multipliers, rows, work.u)
    substitute(tree, prescribed, v, passive, a, tau, work)


@primitive
def add_baumgarte(loops, q, v, V, drive, frequency, rows, rhs, x):
    """A a + gamma + 2 f (A v) + f^2 residual = 0: critically damped."""
    velocities(loops, v, V, drive, rows, x)
    for r in range(rhs.shape[0]):
        store(rhs, r, load(rhs, r) + 2.0 * frequency * load(x, r))
    residuals(loops, q, rows, x)
    for r in range(rhs.shape[0]):
        store(rhs, r, load(rhs, r) + frequency * frequency * load(x, r))


# from Python ------------------------------------------------------------------------------------------------------
@primitive
def machine_parts(machine):
    """index and constants of the tree, index and constants of the loops, scratch of the constraints and of the tree."""
    index, constants, rest = parts(machine)
    loop_index, loop_constants, room = loop_parts(rest)
    n, nv, nc, m = index[0], index[2], loop_index[0], loop_index[1]
    k = (row_room(room, n, nv, nc, m) + 2 * m * m + 7 * m + 7) // 8 * 8
    return index, constants, loop_index, loop_constants, span(room, 0, k), span(room, k, room.size - k)


@entry("i8(f8[::1], f8[::1], f8[::1], f8[::1], f8, b1, f8[::1])")
def constrained_forward_one(machine, q, v, tau, frequency, passive, out):
    """One state, nothing prescribed, driven or pushed; any code but OK leaves it to `constrained_one` to say what is wrong.

    out (nv + 2 m): accelerations, multipliers, and 1 or 0: a row that follows from those before it."""
    index, constants, loop_index, loop_constants, room, memory = machine_parts(machine)
    n, nq, nv, m = index[0], index[1], index[2], loop_index[1]
    if q.size != nq or v.size != nv or tau.size != nv or loop_index[3] or out.size != nv + 2 * m:
        return SHAPE
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    none, none_given = span(memory, 0, nv).view(np.bool_), span(memory, 0, 0)
    work = hybrid_work(span(memory, nv, memory.size - nv), n, nv)
    for k in range(nv):
        memory[k] = 0.0                                                       # False, eight times
    if bad_quaternions(tree, q) != OK:
        return BAD_QUATERNION
    a, multipliers, con = span(out, 0, nv), span(out, nv, m), constraint_work(room, n, nv, loop_index[0], m)
    deficit = solve_constrained(tree, loops, none, q, v, a, tau, none_given, none_given, frequency, passive and index[4] != 0,
                                 multipliers, work, con)
    for r in range(m):
        out[nv + m + r] = con.solver.keep[r]
    return OK if deficit <= 0.0 and finite(out, nv + m) else BAD_RESULT          # what goes in not finite comes out so


@primitive
def keep_report(solver, keep, gap, m):
    for r in range(m):
        store(keep, r, load(solver.keep, r))
        store(gap, r, load(solver.z, r) * (1.0 - load(solver.keep, r)))


def constrained_batch_memory(n, nq, nv, nl, nc, m, driven):
    return (hybrid_memory(n, nv) + 6 * n + nq + 3 * nv + 6 * nl + constraint_memory(n, nv, nc, m) + 3 * m + 24 * driven)


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
       "f8[:,::1], f8, b1, f8[:,::1], i8, i8)", nogil=True)
def constrained_batch(index, constants, memory, loop_index, loop_constants, prescribed, q, v, a, tau, f_ext, drive, frequency,
                      passive, out, first, last):
    """States first … last - 1 of a batch, eight at a time. out (N, 3 m) as in `constrained_one`."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    nc, m, driven, rows = loop_index[0], loop_index[1], loop_index[3], q.shape[0]
    if (q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and fits(tau, rows, nv) and fits(out, rows, 3 * m)
                                 and fits(drive, rows, 24 * driven))):
        return SHAPE
    tree, x = tree_of(index, constants), memory
    Q, V, A, Tau, x = x[:nq], x[nq:nq + nv], x[nq + nv:nq + 2 * nv], x[nq + 2 * nv:nq + 3 * nv], x[nq + 3 * nv:]
    f, D, Out, x = (x[:6 * nl if f_ext.size else 0], x[6 * nl:6 * nl + 24 * driven],
                    x[6 * nl + 24 * driven:6 * nl + 24 * driven + 3 * m], x[6 * nl + 24 * driven + 3 * m:])
    work, room = x[6 * n:57 * n + 9 * nv], x[57 * n + 9 * nv:]
    solver = constraint_work(room, n, nv, nc, m).solver
    passive = passive and index[4] != 0
    for k in range(first, last, 8):
        pack(q, k, Q)
        pack(v, k, V)
        pack(a, k, A)
        pack(tau, k, Tau)
        code = bad_input(tree, prescribed, Q, V, A, Tau, nq, nv)
        if driven:
            pack(drive, k, D)
            code = code if code != OK or finite(D, 24 * driven) else BAD_F_EXT
        if f_ext.size:
            pack(f_ext, k, f)
        bad_f_ext, F = gather(tree, f, x, n, nl)
        code = code if code != OK else bad_f_ext
        if code != OK:
            return code
        if constrained_hybrid(index, constants, loop_index, loop_constants, prescribed, Q, V, A, Tau, F, D, frequency, passive,
                              Out[:m], work, room) > 0.0:
            return SINGULAR
        keep_report(solver, Out[m:2 * m], Out[2 * m:], m)
        if not (finite(A, nv) and finite(Tau, nv) and finite(Out, m)):
            return BAD_RESULT
        unpack(A, a, k)
        unpack(Tau, tau, k)
        unpack(Out, out, k)
    return OK
