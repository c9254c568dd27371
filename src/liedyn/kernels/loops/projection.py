"""Back onto the constraints by the shortest way in the metric of the mass matrix: dq = -M^-1 A^T (A M^-1 A^T)^+ residual,
repeated (Gauss-Newton on the manifold), and the same for the velocity at once. Prescribed coordinates stay."""
import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.closures import loops_of
from liedyn.joints.elimination import solve
from liedyn.joints.motion import joint_add, joint_pose
from liedyn.joints.retraction import retract
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_F_EXT, BAD_V, OK, SHAPE, SINGULAR, bad_configuration, finite, fits
from liedyn.kernels.loops.constrained import constraint_memory, constraint_work, factor_rows
from liedyn.kernels.loops.constraint_solver import solve_constraints
from liedyn.kernels.loops.loop_rows import closure_frames, residuals, velocities
from liedyn.kernels.loops.loop_sweep import add_multipliers
from liedyn.kernels.recursions.inverse_mass import factor, factor_memory, factor_work, sweep_memory, sweep_work
from liedyn.lie.lanes import absolute, largest, load, maximum, number_like, store
from liedyn.lie.rows import load_pose, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv

OPEN = 20                 # a code beside those of `checks`: the constraints could not be closed
_MOST = 30                # Newton steps; from an integrator's step one or two
_STALLED = 0.5            # a step that leaves more than this of the residual has reached rounding, or will not close


@kernel
def factor_rows_of(tree, loops, prescribed, factors, holonomic, con):
    """`factor_rows`, compiled once for both projections."""
    factor_rows(tree, loops, prescribed, factors.T, factors.U, factors.Psi, holonomic, con)


@kernel
def correction(tree, loops, prescribed, factors, con, dv, tau, sweep):
    """dv = M^-1 A^T lambda with A M^-1 A^T lambda = con.rhs."""
    zero = number_like(dv, 0.0)
    solve_constraints(con.rhs, con.solver, con.other)
    for k in range(prescribed.size):
        store(sweep.u, k, zero)
        store(dv, k, zero)
    add_multipliers(tree, loops, prescribed, con.other, con.rows, sweep.u)
    store_twist(sweep.dV, 0, ((zero, zero, zero), (zero, zero, zero)))
    for i in range(1, tree.parent.size):
        dV = Ad_inv(load_pose(factors.T, i), load_twist(sweep.dV, tree.parent[i]))
        store_twist(sweep.dV, i, solve(tree, i, dV, prescribed, False, dv, tau, sweep))


@primitive
def worst(x):
    y = number_like(x, 0.0)
    for k in range(x.shape[0]):
        y = maximum(y, absolute(load(x, k)))
    return largest(y)


@kernel
def project_position(tree, loops, prescribed, q, drive, tolerance, factors, con, dv, tau, sweep):
    """q moves onto the constraints. Returns a code, and the largest residual that is left."""
    before = np.inf
    for step in range(_MOST + 1):
        for i in range(1, tree.parent.size):
            store_pose(factors.T, i, joint_pose(tree, i, q))
        closure_frames(tree, loops, factors.T, drive, con.rows)
        residuals(loops, q, con.rows, con.rhs)
        now = worst(con.rhs)
        if now <= tolerance or (step > 1 and not now < _STALLED * before and now < 1e3 * tolerance):
            return OK, now
        if not now < 1e300 or step == _MOST or (step > 4 and not now < before):
            return OPEN, now
        if factor(tree, prescribed, q, factors) > 0.0:
            return SINGULAR, now
        factor_rows_of(tree, loops, prescribed, factors, True, con)
        for r in range(con.rhs.shape[0]):
            store(con.rhs, r, -load(con.rhs, r))
        correction(tree, loops, prescribed, factors, con, dv, tau, sweep)
        retract(tree, q, dv, q)
        before = now
    return OPEN, before


@kernel
def project_velocity(tree, loops, prescribed, q, v, drive, factors, con, dv, tau, sweep):
    """v moves onto A v = the drive's velocity. Returns a code, and how far it was off."""
    if factor(tree, prescribed, q, factors) > 0.0:
        return SINGULAR, np.inf
    zero = number_like(v, 0.0)
    store_twist(sweep.b, 0, ((zero, zero, zero), (zero, zero, zero)))
    for i in range(1, tree.parent.size):                        # twists, in the room of the sweep
        p = tree.parent[i]
        store_twist(sweep.b, i, joint_add(tree, i, Ad_inv(load_pose(factors.T, i), load_twist(sweep.b, p)), v))
    closure_frames(tree, loops, factors.T, drive, con.rows)
    velocities(loops, v, sweep.b, drive, con.rows, con.rhs)
    off = worst(con.rhs)
    factor_rows_of(tree, loops, prescribed, factors, False, con)
    for r in range(con.rhs.shape[0]):
        store(con.rhs, r, -load(con.rhs, r))
    correction(tree, loops, prescribed, factors, con, dv, tau, sweep)
    for k in range(prescribed.size):
        store(v, k, load(v, k) + load(dv, k))
    return OK, off


# from Python ------------------------------------------------------------------------------------------------------
def projection_memory(n, nv, nc, m):
    return factor_memory(n, nv) + sweep_memory(n, nv) + constraint_memory(n, nv, nc, m) + 2 * nv + 8


@primitive
def projection_work(memory, n, nv, nc, m):
    """Factors of the tree, work of the constraints, of the sweep, two vectors of scratch (nv). memory begins a cache line."""
    k = (memory.shape[0] - 45 * n - 10 * nv) // 8 * 8               # see `projection_memory`
    con, x = memory[:k], memory[k:]
    factors, x = factor_work(x[:33 * n + 7 * nv], n, nv), x[33 * n + 7 * nv:]
    sweep, x = sweep_work(factors, x[:12 * n + nv], n, nv), x[12 * n + nv:]
    return factors, constraint_work(con, n, nv, nc, m), sweep, x[:nv], x[nv:2 * nv]


@entry("i8(i8[::1], f8[::1], f8[::1], i8[::1], f8[::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, f8[:,::1], i8, i8)",
       nogil=True)
def project_states(index, constants, memory, loop_index, loop_constants, prescribed, q, v, drive, tolerance, left, first, last):
    """States first … last - 1, one at a time: q, or v if it has rows, moves onto the constraints. drive (N, 24 driven).
    left (N, 1): residual of q that is left, or how far v was off."""
    n, nq, nv = index[0], index[1], index[2]
    nc, m, driven, rows = loop_index[0], loop_index[1], loop_index[3], q.shape[0]
    if q.shape[1] != nq or not (fits(drive, rows, 24 * driven) and fits(left, rows, 1)):
        return SHAPE
    tree, loops = tree_of(index, constants), loops_of(loop_index, loop_constants)
    factors, con, sweep, dv, tau = projection_work(memory, n, nv, nc, m)
    for k in range(first, last):
        code = bad_configuration(tree, q[k], nq)
        if code == OK and not finite(drive[k], 24 * driven):
            code = BAD_F_EXT
        if code == OK and v.shape[0]:
            code = OK if finite(v[k], nv) else BAD_V
        if code != OK:
            return code
        if v.shape[0]:
            code, left[k, 0] = project_velocity(tree, loops, prescribed, q[k], v[k], drive[k], factors, con, dv, tau, sweep)
        else:
            code, left[k, 0] = project_position(tree, loops, prescribed, q[k], drive[k], tolerance, factors, con, dv, tau, sweep)
        if code != OK:
            return code
    return OK
