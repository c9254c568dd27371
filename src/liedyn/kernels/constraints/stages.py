"""Constrained dynamics in stages that share one workspace, for one state.

The stages depend on the robot and take no decision on a number: they are generated code, or generic functions where that code
would be too long. Between them a small dense part, the same for all robots, chooses independent equations and pivots
(`constraints.solver`, called by `constraints.driver`). Each stage gets only the address of the workspace, reads some of its
arrays and writes others.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import tree_views
from liedyn.joints.joint_model import unpack_model as tree_parts
from liedyn.joints.loop_joints import (
    CONSTRAINT_MOTION_SIZE,
    DRIVEN,
    EQUATION_COUNT,
    FIRST,
    KIND,
    closure_equation,
    constraint_views,
    unpack_constraints,
)
from liedyn.kernels.constraints.equations import (
    EquationMotion,
    EquationWorkspace,
    accelerations,
    add_multipliers,
    constraint_frames,
    equation_workspace,
    equation_workspace_size,
    load_closure_direction,
    residuals,
    sweep_constraints,
    velocities,
)
from liedyn.kernels.constraints.solver import SolverWorkspace, delassus_matrix, solver_workspace, solver_workspace_size
from liedyn.kernels.hybrid_dynamics import (
    HybridWorkspace,
    forward_backward_pass,
    hybrid_workspace,
    hybrid_workspace_size,
    second_forward_pass,
)
from liedyn.kernels.kinematics import body_twists, joint_poses
from liedyn.kernels.manifold import retract
from liedyn.kernels.mass_matrix import FactorWorkspace, factor_articulated, forward_sweep
from liedyn.lie.se3 import Ad_inv, dot
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import clear, load_pose, load_twist
from liedyn.numba_tools.decorators import array_at, entry_point, inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

HEADER = 24
# Entries of the header, which are integers: sizes; address and length of the packed model; addresses of
# `driver.run_constraint_operation` and of the stages.
(N, NQ, NV, FRAMES, M, DRIVEN_COUNT, HAS_WRENCHES, PASSIVE, SIZE, PACKED_MODEL, PACKED_MODEL_SIZE, OPERATION_ADDRESS,
 STAGE_ADDRESSES) = range(13)

# Entries of ConstraintWorkspace.statistics.
(TOLERANCE,                        # of a projection [rad | lengths of the loop]; 0: none
 DRIFT, DRIFT_VELOCITY,            # the maximum before a projection [rad | m], [rad/s | m/s]
 RANK,                             # independent equations at the last accepted state; -1 before the first
 VOLUME_1, TIME_1, VOLUME_2, TIME_2,   # volume that they span at the last two accepted states
 EQUATION_2,                       # equation of the smallest pivot at the last accepted state
 SINGULAR_COUNT, SINGULAR_TIME, SINGULAR_EQUATION,
 WORST_EQUATION, WORST_RESIDUAL,   # of an error LOOP_OPEN or CONTRADICTION
 TIME, REMAINING,                  # of the state; residual after a projection, or velocity error before it
 ACCELERATION_SCALE,               # smallest scale of accelerations [rad/s^2, or lengths of the loop/s^2]
 FULL_RANK,                        # the maximum rank at accepted states and outputs
 SINGULAR_ROWS, SINGULAR_ROW_TIME) = range(20)   # outputs with a smaller rank, and the time of the first
N_STATISTICS = 20


class ConstraintWorkspace(NamedTuple):
    """Inputs, results and intermediate values of constrained dynamics."""

    q: np.ndarray             # (nq,)
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) where prescribed
    tau: np.ndarray           # (nv,) where not
    f_ext: np.ndarray         # (6n,) wrenches on bodies, or empty
    constraint_motion: np.ndarray         # (24 driven,) motions of driven closures
    frequency: np.ndarray     # (1,) of Baumgarte's stabilization [rad/s]
    statistics: np.ndarray       # (N_STATISTICS,)
    multipliers: np.ndarray   # (m,)
    rhs: np.ndarray           # (m,) right-hand side of A M^-1 A^T lambda = rhs
    deficit: np.ndarray       # (1,) positive if a joint's articulated inertia vanishes
    power: np.ndarray         # (1,) of f_ext
    constraint_motion_rate: np.ndarray    # (m,) velocity of each equation that the motion of driven closures prescribes
    residual: np.ndarray      # (m,)
    velocity: np.ndarray      # (m,) A v minus constraint_motion_rate
    out_a: np.ndarray       # (nv,) all accelerations
    out_tau: np.ndarray     # (nv,) all generalized forces
    moved: np.ndarray         # (nq,) q (+) M^-1 A^T lambda
    change: np.ndarray        # (nv,) M^-1 A^T lambda
    mask: np.ndarray          # (nv,) its first nv bytes are bools: coordinates whose acceleration is prescribed
    fixed: np.ndarray         # (nv,) the same: coordinates that a projection of the position does not change
    fixed_velocity: np.ndarray          # (nv,) the same: coordinates whose velocity a projection does not change
    weight: np.ndarray        # (m,) makes residuals dimensionless: 1 for angles, the inverse length of the loop for distances
    unit: np.ndarray          # (nv,) one unit of movement: 1 rad, or a length of the loops [m]
    solver: SolverWorkspace   # contains A M^-1 A^T
    rest: np.ndarray          # `StageWorkspace`


@inline_kernel
def constraint_workspace_of(x):
    """Return the `ConstraintWorkspace` whose arrays are views into x, with the sizes in the header of x."""
    h = x.view(np.int64)
    return constraint_workspace_views(x, h[N], h[NQ], h[NV], h[M], h[DRIVEN_COUNT], h[HAS_WRENCHES])


@jitable
def constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches):
    """Return the sizes of the header and of the arrays of `ConstraintWorkspace`."""
    return (HEADER, nq, nv, nv, nv, 6 * n * has_wrenches, CONSTRAINT_MOTION_SIZE * driven, 1, N_STATISTICS, m, m, 1, 1, m, m, m,
            nv, nv, nq, nv, nv, nv, nv, m, nv, solver_workspace_size(m))


@inline_kernel
def constraint_workspace_views(x, n, nq, nv, m, driven, has_wrenches):
    """Return the `ConstraintWorkspace` whose arrays are views into x."""
    views = split_workspace(x, constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches))
    return ConstraintWorkspace(*views[1:-2], solver_workspace(views[-2], m), views[-1])


def constraint_workspace_size(n, nq, nv, m, driven, has_wrenches, rest):
    """Return the size (numbers) of the memory of `ConstraintWorkspace`, with `rest` numbers after it."""
    return sum(constraint_workspace_sizes(n, nq, nv, m, driven, has_wrenches)) + rest


# Stages ----------------------------------------------------------------------------------------------------------------

#     EQUATIONS, SOLUTION             motion: A M^-1 A^T lambda = rhs; then a and tau from the multipliers
#     RESIDUALS, VELOCITIES           residuals of the constraints, and their rates A v
#     HOLONOMIC, POSITION_CORRECTION  projection of the position: A M^-1 A^T with A the derivative of the residual; then
#                                     q (+) M^-1 A^T lambda
#     PFAFFIAN, VELOCITY_CORRECTION   projection of the velocity: A M^-1 A^T and A v; then M^-1 A^T lambda

STAGES = EQUATIONS, SOLUTION, RESIDUALS, VELOCITIES, HOLONOMIC, POSITION_CORRECTION, PFAFFIAN, VELOCITY_CORRECTION = range(8)


class StageWorkspace(NamedTuple):
    """Intermediate values that the first stage of a pair leaves for the second."""

    tree: HybridWorkspace
    rows: EquationWorkspace
    buffer: np.ndarray     # (m,) workspace


@inline_kernel
def stage_workspace(memory, n, nv, nf, m):
    """Return the `StageWorkspace` whose arrays are views into `memory`."""
    tree, rows, buffer, _ = split_workspace(memory, (hybrid_workspace_size(n, nv), equation_workspace_size(n, nv, nf, m), m))
    return StageWorkspace(hybrid_workspace(tree, n, nv), equation_workspace(rows, n, nv, nf, m), buffer)


def stage_workspace_size(n, nv, nf, m):
    """Return the size (numbers) of the memory of `StageWorkspace`."""
    return hybrid_workspace_size(n, nv) + equation_workspace_size(n, nv, nf, m) + m


# Forward and hybrid dynamics under constraints (K2 (54), (55)): ---------------------------------------------------------

#     M a + b = tau + A^T lambda,    A a + gamma = 0
#
# The open tree is eliminated first. Then A M^-1 A^T lambda = -(A a + gamma), with the acceleration a of the open tree, gives the
# multipliers. One more forward sweep with the generalized forces X lambda (`sweep_constraints`) gives a and tau. With prescribed
# coordinates, M is M_vv and A is A_v.

@inline_kernel
def multiplier_system(tree, loops, prescribed, q, v, a, tau, f_ext, constraint_motion, stabilized, frequency, passive, ws,
                      equation_ws, matrix, diagonal_scale, rhs, other):
    """Write the system A M^-1 A^T lambda = rhs of K2 (54), (55).

    Writes matrix (m m), diagonal_scale (m) as `delassus_matrix` does, and rhs (m); ws and equation_ws, which `apply_multipliers`
    reads. frequency is read if `stabilized`. other (m) is workspace. Returns a positive number if a joint's articulated inertia
    vanishes.
    """
    deficit = forward_backward_pass(tree, prescribed, q, v, a, tau, f_ext, passive, ws)
    constraint_frames(tree, loops, q, ws.T, constraint_motion, equation_ws)
    accelerations(loops, v, None, ws.V, None, constraint_motion, equation_ws, rhs)
    if stabilized:
        add_baumgarte(loops, q, v, ws.V, constraint_motion, frequency, equation_ws, rhs, other)
    sweep_constraints(tree, loops, prescribed, ws.T, ws.U, ws.Psi, equation_ws, False, EquationMotion(v, a, ws.u, ws.V, ws.dV))
    delassus_matrix(tree, loops, prescribed, ws.Psi, equation_ws, matrix, diagonal_scale)
    for r in range(rhs.shape[0]):
        store(rhs, r, -(load(rhs, r) + load(equation_ws.rate, r)))
    return deficit


@inline_kernel
def apply_multipliers(tree, loops, prescribed, v, multipliers, passive, a, tau, ws, equation_ws):
    """Write a and tau of K2 (54) from the multipliers."""
    add_multipliers(tree, loops, prescribed, multipliers, equation_ws, ws.u)
    second_forward_pass(tree, prescribed, v, passive, a, tau, ws)


@inline_kernel
def add_baumgarte(loops, q, v, V, constraint_motion, frequency, equation_ws, rhs, x):
    """Add the terms of A a + gamma + 2 f (A v) + f^2 residual = 0, which is critically damped."""
    velocities(loops, v, V, constraint_motion, equation_ws, x)
    for r in range(rhs.shape[0]):
        store(rhs, r, load(rhs, r) + 2.0 * frequency * load(x, r))
    residuals(loops, q, equation_ws, x)
    for r in range(rhs.shape[0]):
        store(rhs, r, load(rhs, r) + frequency * frequency * load(x, r))


@inline_kernel
def write_equations(tree, loops, prescribed, stabilized, passive, constraint_ws, ws):
    """Write the system A M^-1 A^T lambda = rhs at q, v, and the power of external wrenches."""
    d, s = constraint_ws, constraint_ws.solver
    for k in range(d.a.shape[0]):                                       # the results contain the given values
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
    """Write accelerations and generalized forces from the multipliers."""
    apply_multipliers(tree, loops, prescribed, constraint_ws.v, constraint_ws.multipliers, passive, constraint_ws.out_a,
                      constraint_ws.out_tau, ws.tree, ws.rows)


@inline_kernel
def constraint_motion_rates(loops, constraint_motion, rows, out):
    """Write the velocity of each equation that the motion of its driven closure prescribes."""
    for c in range(loops.record.shape[0]):
        d = loops.record[c, DRIVEN]
        for r in range(loops.record[c, EQUATION_COUNT]):
            x = number_like(out, 0.0)
            if d >= 0:
                V = Ad_inv(load_pose(rows.T, c), load_twist(constraint_motion, 4 * d + 2))
                x = x + dot(closure_equation(loops.record[c, KIND], r, load_closure_direction(rows, c)), V)
            store(out, loops.record[c, FIRST] + r, x)


# residuals ----------------------------------------------------------------------------------------------------------
@inline_kernel
def write_residuals(tree, loops, constraint_ws, ws):
    """Write the residuals at q."""
    joint_poses(tree, constraint_ws.q, ws.tree.T)
    constraint_frames(tree, loops, constraint_ws.q, ws.tree.T, constraint_ws.constraint_motion, ws.rows)
    residuals(loops, constraint_ws.q, ws.rows, constraint_ws.residual)


@inline_kernel
def write_velocities(tree, loops, constraint_ws, ws):
    """Write A v minus the velocity of driven closures."""
    joint_poses(tree, constraint_ws.q, ws.tree.T)
    body_twists(tree, ws.tree.T, constraint_ws.v, ws.tree.V)
    constraint_frames(tree, loops, constraint_ws.q, ws.tree.T, constraint_ws.constraint_motion, ws.rows)
    velocities(loops, constraint_ws.v, ws.tree.V, constraint_ws.constraint_motion, ws.rows, constraint_ws.velocity)


# projections ------------------------------------------------------------------------------------------------------
@inline_kernel
def write_pfaffian(tree, loops, prescribed, holonomic, constraint_ws, ws):
    """Write A M^-1 A^T at q and, unless `holonomic`, A v minus the velocity of driven closures."""
    t = ws.tree
    deficit = factor_articulated(tree, prescribed, constraint_ws.q, FactorWorkspace(t.T, t.AI, t.U, t.Psi))
    store(constraint_ws.deficit, 0, deficit)
    constraint_frames(tree, loops, constraint_ws.q, t.T, constraint_ws.constraint_motion, ws.rows)
    if not holonomic:
        body_twists(tree, t.T, constraint_ws.v, t.V)
        velocities(loops, constraint_ws.v, t.V, constraint_ws.constraint_motion, ws.rows, constraint_ws.velocity)
    sweep_constraints(tree, loops, prescribed, t.T, t.U, t.Psi, ws.rows, holonomic)
    delassus_matrix(tree, loops, prescribed, t.Psi, ws.rows, constraint_ws.solver.null, constraint_ws.solver.size)


@inline_kernel
def write_velocity_correction(tree, loops, prescribed, constraint_ws, ws):
    """Write the change of velocity M^-1 A^T lambda."""
    t = ws.tree
    clear(t.u)
    clear(constraint_ws.change)
    add_multipliers(tree, loops, prescribed, constraint_ws.multipliers, ws.rows, t.u)
    forward_sweep(tree, prescribed, t.T, constraint_ws.change, t.passive, t)      # forces: workspace


@inline_kernel
def write_position_correction(tree, loops, prescribed, constraint_ws, ws):
    """Write the corrected configuration q (+) M^-1 A^T lambda."""
    write_velocity_correction(tree, loops, prescribed, constraint_ws, ws)
    retract(tree, constraint_ws.q, constraint_ws.change, constraint_ws.moved)


# generic stages -----------------------------------------------------------------------------------------------------
@inline_kernel
def unpack_arguments(address):
    """Return workspace, masks, tree, constraints, `StageWorkspace` and whether passive forces act, from an address."""
    h = array_at(address, HEADER).view(np.int64)
    index, constants, rest = tree_parts(array_at(h[PACKED_MODEL], h[PACKED_MODEL_SIZE]))
    loop_index, loop_constants = unpack_constraints(rest)
    d, nv = constraint_workspace_of(array_at(address, h[SIZE])), h[NV]
    masks = d.mask.view(np.bool_)[:nv], d.fixed.view(np.bool_)[:nv], d.fixed_velocity.view(np.bool_)[:nv]
    return (d, masks, tree_views(index, constants), constraint_views(loop_index, loop_constants),
            stage_workspace(d.rest, h[N], nv, h[FRAMES], h[M]),
            h[PASSIVE] != 0)


@entry_point("i8(i8)")
def equations_generic(address):
    """Run `write_equations` on the workspace at an address."""
    d, masks, tree, loops, ws, passive = unpack_arguments(address)
    write_equations(tree, loops, masks[0], d.frequency[0] > 0.0, passive, d, ws)
    return 0


@entry_point("i8(i8)")
def solution_generic(address):
    """Run `write_solution` on the workspace at an address."""
    d, masks, tree, loops, ws, passive = unpack_arguments(address)
    write_solution(tree, loops, masks[0], passive, d, ws)
    return 0


@entry_point("i8(i8)")
def residuals_generic(address):
    """Run `write_residuals` on the workspace at an address."""
    d, _, tree, loops, ws, _ = unpack_arguments(address)
    write_residuals(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def velocities_generic(address):
    """Run `write_velocities` on the workspace at an address."""
    d, _, tree, loops, ws, _ = unpack_arguments(address)
    write_velocities(tree, loops, d, ws)
    return 0


@entry_point("i8(i8)")
def holonomic_generic(address):
    """Run `write_pfaffian` on the workspace at an address: holonomic equations, for projections of the position."""
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_pfaffian(tree, loops, masks[1], True, d, ws)
    return 0


@entry_point("i8(i8)")
def position_correction_generic(address):
    """Run `write_position_correction` on the workspace at an address."""
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_position_correction(tree, loops, masks[1], d, ws)
    return 0


@entry_point("i8(i8)")
def pfaffian_generic(address):
    """Run `write_pfaffian` on the workspace at an address: all equations, for projections of the velocity."""
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_pfaffian(tree, loops, masks[2], False, d, ws)
    return 0


@entry_point("i8(i8)")
def velocity_correction_generic(address):
    """Run `write_velocity_correction` on the workspace at an address."""
    d, masks, tree, loops, ws, _ = unpack_arguments(address)
    write_velocity_correction(tree, loops, masks[2], d, ws)
    return 0


GENERIC_STAGES = (equations_generic, solution_generic, residuals_generic, velocities_generic, holonomic_generic,
                  position_correction_generic, pfaffian_generic, velocity_correction_generic)
