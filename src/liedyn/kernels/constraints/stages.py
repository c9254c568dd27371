"""Where the parts of constrained dynamics meet: one array, of one state.

Constrained motion has parts that depend on the robot alone, without a decision on a number (straight lines, or loops where a line
would be too long), and a small dense part between them, which chooses rows and pivots and is the same for all robots. Each part
is called with the address of the desk alone: it reads some of its numbers and writes others.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import tree_views
from liedyn.joints.joint_model import unpack_model as tree_parts
from liedyn.joints.loop_joints import DRIVEN, EQUATION_COUNT, FIRST, KIND, closure_equation, constraint_views, unpack_constraints
from liedyn.kernels.constraints.equations import (
    EquationWorkspace,
    add_multipliers,
    closure_frames,
    equation_workspace,
    equation_workspace_size,
    load_closure_direction,
    residuals,
    sweep_constraints,
    velocities,
)
from liedyn.kernels.constraints.kinematics import apply_multipliers, multiplier_system
from liedyn.kernels.constraints.solver import SolverWorkspace, delassus_matrix, solver_workspace, solver_workspace_size
from liedyn.kernels.hybrid_dynamics import HybridWorkspace, hybrid_workspace, hybrid_workspace_size
from liedyn.kernels.kinematics import body_twists, joint_poses
from liedyn.kernels.manifold import retract
from liedyn.kernels.mass_matrix import FactorWorkspace, factor_articulated, forward_sweep
from liedyn.lie.se3 import Ad_inv, dot
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import clear, load_pose, load_twist
from liedyn.numba_tools.decorators import array_at, entry_point, inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

HEADER = 24
# places in the header, which are integers: sizes; where loops find the model's arrays, and how many numbers they have; addresses
# of `driver.run_constraint_operation` and of the parts
(N, NQ, NV, NC, M, DRIVEN_COUNT, HAS_WRENCHES, PASSIVE, SIZE, PACKED_MODEL, PACKED_MODEL_SIZE, OPERATION_ADDRESS,
 STAGE_ADDRESSES) = range(13)

# places in Desk.figures
(TOLERANCE,                        # of a projection [rad | lengths of the loop]; 0: none
 DRIFT, DRIFT_VELOCITY,            # the largest before a projection [rad | m], [rad/s | m/s]
 RANK,                             # independent rows at the last accepted state; -1 before the first
 VOLUME_1, TIME_1, VOLUME_2, TIME_2,   # their volume at the last two accepted states
 EQUATION_2,                       # and the row of the smallest pivot
 SINGULAR_COUNT, SINGULAR_TIME, SINGULAR_EQUATION,
 WORST_EQUATION, WORST_RESIDUAL,   # what LOOP_OPEN or CONTRADICTION speaks of
 TIME, REMAINING,                  # of the state; what a projection has left of the residual, or found of the velocity
 ACCELERATION_SCALE) = range(17)   # acceleration that is judged relative to its size [rad/s^2, or lengths of the loop/s^2]
N_STATISTICS = 17


class ConstraintWorkspace(NamedTuple):
    q: np.ndarray             # (nq,)
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) where prescribed
    tau: np.ndarray           # (nv,) where not
    f_ext: np.ndarray         # (6n,) wrenches on bodies, or empty
    constraint_motion: np.ndarray         # (24 driven,) motions of driven closures
    frequency: np.ndarray     # (1,) of Baumgarte's stabilization [rad/s]
    statistics: np.ndarray       # (N_STATISTICS,)
    multipliers: np.ndarray   # (m,)
    rhs: np.ndarray           # (m,) A M^-1 A^T lambda = rhs
    deficit: np.ndarray       # (1,) positive if a joint's articulated inertia vanishes
    power: np.ndarray         # (1,) of f_ext
    constraint_motion_rate: np.ndarray    # (m,) velocity of rows in the motion of driven closures
    residual: np.ndarray      # (m,)
    velocity: np.ndarray      # (m,) A v less that of the drive
    out_a: np.ndarray       # (nv,) complete
    out_tau: np.ndarray     # (nv,)
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
    return constraint_workspace_views(x, h[N], h[NQ], h[NV], h[M], h[DRIVEN_COUNT], h[HAS_WRENCHES])


@jitable
def constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches):
    return (HEADER, nq, nv, nv, nv, 6 * n * has_wrenches, 24 * driven, 1, N_STATISTICS, m, m, 1, 1, m, m, m, nv, nv, nq, nv, nv,
            nv, nv, m, nv, solver_workspace_size(m))


@inline_kernel
def constraint_workspace_views(x, n, nq, nv, m, driven, has_wrenches):
    views = split_workspace(x, constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches))
    return ConstraintWorkspace(*views[1:-2], solver_workspace(views[-2], m), views[-1])


def constraint_workspace_size(n, nq, nv, m, driven, has_wrenches, rest):
    return sum(constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches)) + rest


# Parts of constrained motion that depend on the robot alone, see `constraint_ws`: what a line records, or loops compute
# ----------

#     EQUATIONS, SOLUTION     of motion: A M^-1 A^T lambda = rhs; then the multipliers give a and tau
#     RESIDUALS, VELOCITIES    how far the constraints are open, and how fast they open
#     HOLONOMIC, POSITION_CORRECTION         of a projection of the position: A M^-1 A^T of the residual's derivative; then q (+)
#     M^-1 A^T
# lambda
#     PFAFFIAN, VELOCITY_CORRECTION            of a projection of the velocity: A M^-1 A^T, A v; then M^-1 A^T lambda

STAGES = EQUATIONS, SOLUTION, RESIDUALS, VELOCITIES, HOLONOMIC, POSITION_CORRECTION, PFAFFIAN, VELOCITY_CORRECTION = range(8)


class StageWorkspace(NamedTuple):
    """What the first of two parts leaves to the second."""

    tree: HybridWorkspace
    rows: EquationWorkspace
    buffer: np.ndarray     # (m,) scratch


@inline_kernel
def stage_workspace(memory, n, nv, nc, m):
    tree, rows, buffer, _ = split_workspace(memory, (hybrid_workspace_size(n, nv), equation_workspace_size(n, nv, nc, m), m))
    return StageWorkspace(hybrid_workspace(tree, n, nv), equation_workspace(rows, n, nv, nc, m), buffer)


def stage_workspace_size(n, nv, nc, m): return hybrid_workspace_size(n, nv) + equation_workspace_size(n, nv, nc, m) + m


# motion -----------------------------------------------------------------------------------------------------------
@inline_kernel
def write_equations(tree, loops, prescribed, stabilized, passive, constraint_ws, ws):
    d, s = constraint_ws, constraint_ws.solver
    for k in range(d.a.shape[0]):                                       # in place: what is given is part of what comes out
        store(d.out_a, k, load(d.a, k))
        store(d.out_tau, k, load(d.tau, k))
    deficit = multiplier_system(tree, loops, prescribed, d.q, d.v, d.out_a, d.out_tau, d.f_ext, d.constraint_motion, stabilized,
                                load(d.frequency, 0), passive, ws.tree, ws.rows, s.null, s.size, d.rhs, ws.buffer)
    store(d.deficit, 0, deficit)
    constraint_motion_rates(loops, d.constraint_motion, ws.rows, d.constraint_motion_rate)
    power = number_like(d.q, 0.0)
    if d.f_ext.size:
        for i in range(1, tree.parent.size):
            power = power + dot(load_twist(d.f_ext, i), load_twist(ws.tree.V, i))
    store(d.power, 0, power)


@inline_kernel
def write_solution(tree, loops, prescribed, passive, constraint_ws, ws):
    apply_multipliers(tree, loops, prescribed, constraint_ws.v, constraint_ws.multipliers, passive, constraint_ws.out_a,
                      constraint_ws.out_tau, ws.tree, ws.rows)


@inline_kernel
def constraint_motion_rates(loops, constraint_motion, rows, out):
    """Velocity of each row in the motion of its driven closure."""
    for c in range(loops.record.shape[0]):
        d = loops.record[c, DRIVEN]
        for r in range(loops.record[c, EQUATION_COUNT]):
            x = number_like(out, 0.0)
            if d >= 0:
                V = Ad_inv(load_pose(rows.T, c), load_twist(constraint_motion, 4 * d + 2))
                x = x + dot(closure_equation(loops.record[c, KIND], r, load_closure_direction(rows, c)), V)
            store(out, loops.record[c, FIRST] + r, x)


# how far the constraints are open ---------------------------------------------------------------------------------
@inline_kernel
def write_residuals(tree, loops, constraint_ws, ws):
    joint_poses(tree, constraint_ws.q, ws.tree.T)
    closure_frames(tree, loops, ws.tree.T, constraint_ws.constraint_motion, ws.rows)
    residuals(loops, constraint_ws.q, ws.rows, constraint_ws.residual)


@inline_kernel
def write_velocities(tree, loops, constraint_ws, ws):
    joint_poses(tree, constraint_ws.q, ws.tree.T)
    body_twists(tree, ws.tree.T, constraint_ws.v, ws.tree.V)
    closure_frames(tree, loops, ws.tree.T, constraint_ws.constraint_motion, ws.rows)
    velocities(loops, constraint_ws.v, ws.tree.V, constraint_ws.constraint_motion, ws.rows, constraint_ws.velocity)


# projections ------------------------------------------------------------------------------------------------------
@inline_kernel
def write_pfaffian(tree, loops, prescribed, holonomic, constraint_ws, ws):
    """A M^-1 A^T at q, and unless holonomic the rows' velocity."""
    t = ws.tree
    deficit = factor_articulated(tree, prescribed, constraint_ws.q, FactorWorkspace(t.T, t.AI, t.U, t.Psi))
    store(constraint_ws.deficit, 0, deficit)
    closure_frames(tree, loops, t.T, constraint_ws.constraint_motion, ws.rows)
    if not holonomic:
        body_twists(tree, t.T, constraint_ws.v, t.V)
        velocities(loops, constraint_ws.v, t.V, constraint_ws.constraint_motion, ws.rows, constraint_ws.velocity)
    sweep_constraints(tree, loops, prescribed, t.T, t.U, t.Psi, ws.rows, holonomic)
    delassus_matrix(tree, loops, prescribed, t.Psi, ws.rows, constraint_ws.solver.null, constraint_ws.solver.size)


@inline_kernel
def write_velocity_correction(tree, loops, prescribed, constraint_ws, ws):
    """M^-1 A^T lambda."""
    t = ws.tree
    clear(t.u)
    clear(constraint_ws.change)
    add_multipliers(tree, loops, prescribed, constraint_ws.multipliers, ws.rows, t.u)
    forward_sweep(tree, prescribed, t.T, constraint_ws.change, t.passive, t)      # forces: scratch


@inline_kernel
def write_position_correction(tree, loops, prescribed, constraint_ws, ws):
    write_velocity_correction(tree, loops, prescribed, constraint_ws, ws)
    retract(tree, constraint_ws.q, constraint_ws.change, constraint_ws.moved)


# by loops ---------------------------------------------------------------------------------------------------------
@inline_kernel
def unpack_arguments(address):
    """Desk, masks, tree, constraints, work, and whether passive forces act: of a desk, whose header says where the model's arrays
    are."""
    h = array_at(address, HEADER).view(np.int64)
    index, constants, rest = tree_parts(array_at(h[PACKED_MODEL], h[PACKED_MODEL_SIZE]))
    loop_index, loop_constants = unpack_constraints(rest)
    d, nv = constraint_workspace_of(array_at(address, h[SIZE])), h[NV]
    masks = d.mask.view(np.bool_)[:nv], d.fixed.view(np.bool_)[:nv], d.held.view(np.bool_)[:nv]
    return (d, masks, tree_views(index, constants), constraint_views(loop_index, loop_constants),
            stage_workspace(d.rest, h[N], nv, h[NC], h[M]),
            h[PASSIVE] != 0)


@entry_point("i8(i8)")
def equations_generic(address):
    d, masks, tree, loops, ws, passive = unpack_arguments(address)
    write_equations(tree, loops, masks[0], d.frequency[0] > 0.0, passive, d, ws)
    return 0


@entry_point("i8(i8)")
def solution_generic(address):
    d, masks, tree, loops, ws, passive = unpack_arguments(address)
    write_solution(tree, loops, masks[0], passive, d, ws)
    return 0


@entry_point("i8(i8)")
def residuals_generic(address):
    d, _, tree, loops, ws, _ = unpack_arguments(address)
    write_residuals(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def velocities_generic(address):
    d, _, tree, loops, ws, _ = unpack_arguments(address)
    write_velocities(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def holonomic_generic(address):
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_pfaffian(tree, loops, masks[1], True, d, ws)
    return 0


@entry_point("i8(i8)")
def position_correction_generic(address):
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_position_correction(tree, loops, masks[1], d, ws)
    return 0


@entry_point("i8(i8)")
def pfaffian_generic(address):
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_pfaffian(tree, loops, masks[2], False, d, ws)
    return 0


@entry_point("i8(i8)")
def velocity_correction_generic(address):
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_velocity_correction(tree, loops, masks[2], d, ws)
    return 0


GENERIC_STAGES = (equations_generic, solution_generic, residuals_generic, velocities_generic, holonomic_generic,
                  position_correction_generic, pfaffian_generic, velocity_correction_generic)
