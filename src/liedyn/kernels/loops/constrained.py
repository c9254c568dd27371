"""Forward and hybrid dynamics under constraints (K2 (54), (55)):

    M a + b = tau + A^T lambda,    A a + gamma = 0

The tree is eliminated as if it were open; A M^-1 A^T lambda = -(A a + gamma), with A a of the open tree, says what the
constraints add; one forward sweep with X lambda among the joint forces (`loop_sweep`) gives a, tau. Prescribed coordinates turn
M into M_vv and A into A_v."""
from liedyn.jit import primitive
from liedyn.kernels.loops.constraint_solver import form
from liedyn.kernels.loops.loop_rows import RowMotion, accelerations, closure_frames, residuals, velocities
from liedyn.kernels.loops.loop_sweep import add_multipliers, sweep_rows
from liedyn.kernels.recursions.hybrid import out_and_back, substitute
from liedyn.lie.lanes import load, store


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
    sweep_rows(tree, loops, prescribed, work.T, work.U, work.Psi, rows, False, RowMotion(v, a, work.u, work.V, work.dV))
    form(tree, loops, prescribed, work.Psi, rows, matrix, made)
    for r in range(rhs.shape[0]):
        store(rhs, r, -(load(rhs, r) + load(rows.rate, r)))
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
