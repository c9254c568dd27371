"""Where the parts of constrained dynamics meet: one array, of one state.

Constrained motion has parts that depend on the robot alone, without a decision on a number (straight lines, or loops where a line
would be too long), and a small dense part between them, which chooses rows and pivots and is the same for all robots. Each part
is called with the address of the desk alone: it reads some of its numbers and writes others.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import parts as tree_parts
from liedyn.joints.joint_model import tree_of
from liedyn.joints.loop_joints import DRIVEN, FIRST, KIND, ROW_COUNT, closure_equation, loop_parts, loops_of
from liedyn.kernels.constraints.equations import (
    EquationWorkspace,
    add_multipliers,
    closure_frames,
    equation_workspace,
    equation_workspace_size,
    load_guide,
    residuals,
    sweep_rows,
    velocities,
)
from liedyn.kernels.constraints.kinematics import complete, equations
from liedyn.kernels.constraints.solver import SolverWorkspace, form, solver_workspace, solver_workspace_size
from liedyn.kernels.hybrid_dynamics import HybridWorkspace, hybrid_workspace, hybrid_workspace_size
from liedyn.kernels.kinematics import body_twists, joint_poses
from liedyn.kernels.manifold import retract
from liedyn.kernels.mass_matrix import FactorWorkspace, accelerate, factor
from liedyn.lie.se3 import Ad_inv, dot
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import clear, load_pose, load_twist
from liedyn.numba_tools.decorators import array_at, entry_point, inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

HEADER = 24
# places in the header, which are integers: sizes; where loops find the model's arrays, and how many numbers they have; addresses
# of `driver.mechanism` and of the parts
N, NQ, NV, NC, M, DRIVEN_COUNT, FORCED, PASSIVE, SIZE, MACHINE, MACHINE_SIZE, RUN, PART = range(13)

# places in Desk.figures
(TOLERANCE,                        # of a projection [rad | lengths of the loop]; 0: none
 DRIFT, DRIFT_VELOCITY,            # the largest before a projection [rad | m], [rad/s | m/s]
 RANK,                             # independent rows at the last accepted state; -1 before the first
 SMALL_1, TIME_1, SMALL_2, TIME_2, # their volume at the last two accepted states
 ROW_2,                            # and the row of the smallest pivot
 SINGULAR_COUNT, SINGULAR_TIME, SINGULAR_ROW,
 BAD_ROW, BAD_SIZE,                # what LOOP_OPEN or CONTRADICTION speaks of
 TIME, LEFT,                       # of the state; what a projection has left of the residual, or found of the velocity
 SLOWEST) = range(17)              # acceleration that is judged relative to its size [rad/s^2, or lengths of the loop/s^2]
FIGURES = 17


class ConstraintWorkspace(NamedTuple):
    q: np.ndarray             # (nq,)
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) where prescribed
    tau: np.ndarray           # (nv,) where not
    f_ext: np.ndarray         # (6n,) wrenches on bodies, or empty
    drive: np.ndarray         # (24 driven,) motions of driven closures
    frequency: np.ndarray     # (1,) of Baumgarte's stabilization [rad/s]
    figures: np.ndarray       # (FIGURES,)
    multipliers: np.ndarray   # (m,)
    rhs: np.ndarray           # (m,) A M^-1 A^T lambda = rhs
    deficit: np.ndarray       # (1,) positive if a joint's articulated inertia vanishes
    power: np.ndarray         # (1,) of f_ext
    drive_rate: np.ndarray    # (m,) velocity of rows in the motion of driven closures
    residual: np.ndarray      # (m,)
    velocity: np.ndarray      # (m,) A v less that of the drive
    found_a: np.ndarray       # (nv,) complete
    found_tau: np.ndarray     # (nv,)
    moved: np.ndarray         # (nq,) q (+) M^-1 A^T lambda
    change: np.ndarray        # (nv,) M^-1 A^T lambda
    mask: np.ndarray          # (nv,) begins with as many bools: what is prescribed in motion
    fixed: np.ndarray         # (nv,) the same in a projection of the position
    held: np.ndarray          # (nv,) the same in a projection of the velocity
    weight: np.ndarray        # (m,) residuals times it have no unit: 1 in rad, the inverse length of the loop in m
    unit: np.ndarray          # (nv,) one unit of movement: 1 rad, or a length of the loops [m]
    solver: SolverWorkspace        # its matrix and size, too
    rest: np.ndarray          # what the first of two parts leaves to the second


@inline_kernel
def constraint_workspace_of(x):
    h = x.view(np.int64)
    return constraint_workspace_views(x, h[N], h[NQ], h[NV], h[M], h[DRIVEN_COUNT], h[FORCED])


@jitable
def constraint_workspace_sizes(n, nq, nv, m, driven, forced):
    return (HEADER, nq, nv, nv, nv, 6 * n * forced, 24 * driven, 1, FIGURES, m, m, 1, 1, m, m, m, nv, nv, nq, nv, nv, nv, nv, m,
            nv, solver_workspace_size(m))


@inline_kernel
def constraint_workspace_views(x, n, nq, nv, m, driven, forced):
    views = split_workspace(x, constraint_workspace_sizes(n, nq, nv, m, driven, forced))
    return ConstraintWorkspace(*views[1:-2], solver_workspace(views[-2], m), views[-1])


def constraint_workspace_size(n, nq, nv, m, driven, forced, rest):
    return sum(constraint_workspace_sizes(n, nq, nv, m, driven, forced)) + rest


# Parts of constrained motion that depend on the robot alone, see `desk`: what a line records, or loops compute ----------

#     EQUATIONS, COMPLETED     of motion: A M^-1 A^T lambda = rhs; then the multipliers give a and tau
#     RESIDUALS, VELOCITIES    how far the constraints are open, and how fast they open
#     HOLONOMIC, MOVED         of a projection of the position: A M^-1 A^T of the residual's derivative; then q (+) M^-1 A^T
# lambda
#     ROWS, CHANGED            of a projection of the velocity: A M^-1 A^T, A v; then M^-1 A^T lambda

PARTS = EQUATIONS, COMPLETED, RESIDUALS, VELOCITIES, HOLONOMIC, MOVED, ROWS, CHANGED = range(8)


class StageWorkspace(NamedTuple):
    """What the first of two parts leaves to the second."""

    tree: HybridWorkspace
    rows: EquationWorkspace
    other: np.ndarray     # (m,) scratch


@inline_kernel
def stage_workspace(memory, n, nv, nc, m):
    tree, rows, other, _ = split_workspace(memory, (hybrid_workspace_size(n, nv), equation_workspace_size(n, nv, nc, m), m))
    return StageWorkspace(hybrid_workspace(tree, n, nv), equation_workspace(rows, n, nv, nc, m), other)


def stage_workspace_size(n, nv, nc, m): return hybrid_workspace_size(n, nv) + equation_workspace_size(n, nv, nc, m) + m


# motion -----------------------------------------------------------------------------------------------------------
@inline_kernel
def write_equations(tree, loops, prescribed, stabilized, passive, desk, ws):
    d, s = desk, desk.solver
    for k in range(d.a.shape[0]):                                       # in place: what is given is part of what comes out
        store(d.found_a, k, load(d.a, k))
        store(d.found_tau, k, load(d.tau, k))
    deficit = equations(tree, loops, prescribed, d.q, d.v, d.found_a, d.found_tau, d.f_ext, d.drive, stabilized,
                        load(d.frequency, 0), passive, ws.tree, ws.rows, s.null, s.size, d.rhs, ws.other)
    store(d.deficit, 0, deficit)
    drive_rates(loops, d.drive, ws.rows, d.drive_rate)
    power = number_like(d.q, 0.0)
    if d.f_ext.size:
        for i in range(1, tree.parent.size):
            power = power + dot(load_twist(d.f_ext, i), load_twist(ws.tree.V, i))
    store(d.power, 0, power)


@inline_kernel
def write_completed(tree, loops, prescribed, passive, desk, ws):
    complete(tree, loops, prescribed, desk.v, desk.multipliers, passive, desk.found_a, desk.found_tau, ws.tree, ws.rows)


@inline_kernel
def drive_rates(loops, drive, rows, out):
    """Velocity of each row in the motion of its driven closure."""
    for c in range(loops.record.shape[0]):
        d = loops.record[c, DRIVEN]
        for r in range(loops.record[c, ROW_COUNT]):
            x = number_like(out, 0.0)
            if d >= 0:
                V = Ad_inv(load_pose(rows.T, c), load_twist(drive, 4 * d + 2))
                x = x + dot(closure_equation(loops.record[c, KIND], r, load_guide(rows, c)), V)
            store(out, loops.record[c, FIRST] + r, x)


# how far the constraints are open ---------------------------------------------------------------------------------
@inline_kernel
def write_residuals(tree, loops, desk, ws):
    joint_poses(tree, desk.q, ws.tree.T)
    closure_frames(tree, loops, ws.tree.T, desk.drive, ws.rows)
    residuals(loops, desk.q, ws.rows, desk.residual)


@inline_kernel
def write_velocities(tree, loops, desk, ws):
    joint_poses(tree, desk.q, ws.tree.T)
    body_twists(tree, ws.tree.T, desk.v, ws.tree.V)
    closure_frames(tree, loops, ws.tree.T, desk.drive, ws.rows)
    velocities(loops, desk.v, ws.tree.V, desk.drive, ws.rows, desk.velocity)


# projections ------------------------------------------------------------------------------------------------------
@inline_kernel
def write_pfaffian(tree, loops, prescribed, holonomic, desk, ws):
    """A M^-1 A^T at q, and unless holonomic the rows' velocity."""
    t = ws.tree
    deficit = factor(tree, prescribed, desk.q, FactorWorkspace(t.T, t.AI, t.U, t.Psi))
    store(desk.deficit, 0, deficit)
    closure_frames(tree, loops, t.T, desk.drive, ws.rows)
    if not holonomic:
        body_twists(tree, t.T, desk.v, t.V)
        velocities(loops, desk.v, t.V, desk.drive, ws.rows, desk.velocity)
    sweep_rows(tree, loops, prescribed, t.T, t.U, t.Psi, ws.rows, holonomic)
    form(tree, loops, prescribed, t.Psi, ws.rows, desk.solver.null, desk.solver.size)


@inline_kernel
def write_change(tree, loops, prescribed, desk, ws):
    """M^-1 A^T lambda."""
    t = ws.tree
    clear(t.u)
    clear(desk.change)
    add_multipliers(tree, loops, prescribed, desk.multipliers, ws.rows, t.u)
    accelerate(tree, prescribed, t.T, desk.change, t.passive, t)                                       # forces: scratch


@inline_kernel
def write_moved(tree, loops, prescribed, desk, ws):
    write_change(tree, loops, prescribed, desk, ws)
    retract(tree, desk.q, desk.change, desk.moved)


# by loops ---------------------------------------------------------------------------------------------------------
@inline_kernel
def whole(address):
    """Desk, masks, tree, constraints, work, and whether passive forces act: of a desk, whose header says where the model's arrays
    are."""
    h = array_at(address, HEADER).view(np.int64)
    index, constants, rest = tree_parts(array_at(h[MACHINE], h[MACHINE_SIZE]))
    loop_index, loop_constants = loop_parts(rest)
    d, nv = constraint_workspace_of(array_at(address, h[SIZE])), h[NV]
    masks = d.mask.view(np.bool_)[:nv], d.fixed.view(np.bool_)[:nv], d.held.view(np.bool_)[:nv]
    return (d, masks, tree_of(index, constants), loops_of(loop_index, loop_constants),
            stage_workspace(d.rest, h[N], nv, h[NC], h[M]),
            h[PASSIVE] != 0)


@entry_point("i8(i8)")
def equations_generic(address):
    d, masks, tree, loops, ws, passive = whole(address)
    write_equations(tree, loops, masks[0], d.frequency[0] > 0.0, passive, d, ws)
    return 0


@entry_point("i8(i8)")
def completed_generic(address):
    d, masks, tree, loops, ws, passive = whole(address)
    write_completed(tree, loops, masks[0], passive, d, ws)
    return 0


@entry_point("i8(i8)")
def residuals_generic(address):
    d, _, tree, loops, ws, _ = whole(address)
    write_residuals(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def velocities_generic(address):
    d, _, tree, loops, ws, _ = whole(address)
    write_velocities(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def holonomic_generic(address):
    d, masks, tree, loops, ws, _ = whole(address)
    write_pfaffian(tree, loops, masks[1], True, d, ws)
    return 0


@entry_point("i8(i8)")
def moved_generic(address):
    d, masks, tree, loops, ws, _ = whole(address)
    write_moved(tree, loops, masks[1], d, ws)
    return 0


@entry_point("i8(i8)")
def pfaffian_generic(address):
    d, masks, tree, loops, ws, _ = whole(address)
    write_pfaffian(tree, loops, masks[2], False, d, ws)
    return 0


@entry_point("i8(i8)")
def changed_generic(address):
    d, masks, tree, loops, ws, _ = whole(address)
    write_change(tree, loops, masks[2], d, ws)
    return 0


GENERIC_STAGES = (equations_generic, completed_generic, residuals_generic, velocities_generic, holonomic_generic, moved_generic,
            pfaffian_generic, changed_generic)
