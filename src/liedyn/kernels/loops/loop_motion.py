"""Constraints within a simulation: motions of driven closures from signals, constrained dynamics of a stage, the way back
onto the constraints after a step, and the watch for singular configurations."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.closures import DRIVEN, FIRST, KIND, ROW_COUNT, closure_row, loops_of
from liedyn.joints.motion import joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import OK
from liedyn.kernels.loops.constrained import constrained_hybrid, constraint_work
from liedyn.kernels.loops.loop_rows import closure_frames, load_guide, residuals, velocities
from liedyn.kernels.loops.projection import OPEN, project_position, project_velocity, projection_work, worst
from liedyn.kernels.simulation.signals import note, value
from liedyn.lie.lanes import sincos, sqrt
from liedyn.lie.rows import load9, load_pose, load_twist, store_pose, store_twist
from liedyn.lie.se3 import Ad_inv, dot
from liedyn.lie.vec3 import add3, cross, plus_cross, plus_rotate_back, product, rotate_back, scale3, sub3, transpose

CLOSED, LOOP_OPEN, CONTRADICTION, LOOSE_JOINT = 0, 6, 7, 8      # beside the codes of `motion`
CONTRADICTS = 1e-7                 # as in dynamics.loops.constrained: of the largest number, and of one unit
_STRAIGHT = 0.25                   # how straight what crosses zero is, against how sharply it turns if it does not

# places in LoopPlant.figures
(TOLERANCE,                        # of a projection [rad | m]; 0: none
 FREQUENCY,                        # of Baumgarte's stabilization [rad/s], or 0
 DRIFT, DRIFT_VELOCITY,            # the largest before a projection [rad | m], [rad/s | m/s]
 RANK,                             # independent rows at the last accepted state; -1 before the first
 SMALL_1, TIME_1, SMALL_2, TIME_2, # their volume at the last two accepted states
 ROW_2,                            # and the row of the smallest pivot
 SINGULAR_COUNT, SINGULAR_TIME, SINGULAR_ROW,
 BAD_ROW, BAD_SIZE) = range(15)    # what LOOP_OPEN or CONTRADICTION speaks of
FIGURES = 15


class LoopPlant(NamedTuple):
    """The constraints of a run."""

    index: np.ndarray         # Model.loop_index
    constants: np.ndarray     # Model.loop_constants
    fixed: np.ndarray         # (nv,) bool: coordinates whose position, prescribed, a projection leaves
    held: np.ndarray          # (nv,) bool: whose velocity is prescribed, directly or by the position
    signal: np.ndarray        # (6 driven,) int64: x y z, roll pitch yaw of each driven closure
    turn: np.ndarray          # (9 driven,) rotation from the kernels' frame A to the file's
    drive: np.ndarray         # (24 driven,) motion at the last evaluation
    multipliers: np.ndarray   # (m,) of the last evaluation
    q: np.ndarray             # (nq,) an output between two steps, back on the constraints
    y: np.ndarray             # (2 nv + 1,) and the rest of its state
    memory: np.ndarray        # scratch of constrained dynamics, on a border of cache lines
    room: np.ndarray          # scratch of projections, the same
    figures: np.ndarray       # (FIGURES,)


@primitive
def tied(tree, ties):
    """The constraints, and where constrained dynamics works."""
    loops = loops_of(ties.index, ties.constants)
    return loops, constraint_work(ties.memory, tree.parent.size, tree.above.size, ties.index[0], ties.index[1])


# driven closures --------------------------------------------------------------------------------------------------
@kernel
def move_drives(signals, ties, t, work):
    """Writes ties.drive: p = x y z, R = Rz(yaw) Ry(pitch) Rx(roll). False: a signal is not finite (work.flag says which)."""
    work.flag[1] = 0.0
    for d in range(ties.signal.size // 6):
        p, dp, ddp = three(signals, ties.signal, 6 * d, t, work)
        angle, rate, rate2 = three(signals, ties.signal, 6 * d + 3, t, work)
        if work.flag[1] != 0.0:
            return False
        R, w, dw = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for k in range(2, -1, -1):                                # yaw, pitch, roll
            e = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
            turn = turn_about(k, angle[k])
            de = scale3(rate[k], e)
            w = plus_rotate_back(de, turn, w)
            dw = plus_cross(add3(rotate_back(turn, dw), scale3(rate2[k], e)), w, de)
            R = product(R, turn)
        v = rotate_back(R, dp)
        dv = sub3(rotate_back(R, ddp), cross(w, v))
        Q = load9(ties.turn, 9 * d)
        store_pose(ties.drive, 2 * d, (product(transpose(Q), product(R, Q)), rotate_back(Q, p)))
        store_twist(ties.drive, 4 * d + 2, (rotate_back(Q, w), rotate_back(Q, v)))
        store_twist(ties.drive, 4 * d + 3, (rotate_back(Q, dw), rotate_back(Q, dv)))
    return True


@primitive
def three(signals, numbers, first, t, work):
    """Values, rates and second rates of three signals. work.flag: [one that is not finite, whether there is one of these]."""
    x0, v0, a0 = value(signals, numbers[first], t, work.q, work.v, work.stack)
    x1, v1, a1 = value(signals, numbers[first + 1], t, work.q, work.v, work.stack)
    x2, v2, a2 = value(signals, numbers[first + 2], t, work.q, work.v, work.stack)
    for k in range(3):
        x = x0 + v0 + a0 if k == 0 else (x1 + v1 + a1 if k == 1 else x2 + v2 + a2)
        if x * 0.0 != 0.0 and work.flag[1] == 0.0:
            note(work.flag, numbers[first + k], x)
            work.flag[1] = 1.0
    return (x0, x1, x2), (v0, v1, v2), (a0, a1, a2)


@primitive
def turn_about(k, x):
    """Rotation about axis k."""
    s, c = sincos(x)
    if k == 0:
        return 1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c
    if k == 1:
        return c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c
    return c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0


@kernel
def driven_power(index, constants, ties):
    """What driven closures supply, after `tied_hybrid`: sum of lambda times the rows' velocity in the drive's motion."""
    loops, con = tied(tree_of(index, constants), ties)
    power = 0.0
    for c in range(loops.record.shape[0]):
        d = loops.record[c, DRIVEN]
        if d >= 0:
            V = Ad_inv(load_pose(con.rows.T, c), load_twist(ties.drive, 4 * d + 2))
            for r in range(loops.record[c, ROW_COUNT]):
                row = closure_row(loops.record[c, KIND], r, load_guide(con.rows, c))
                power += ties.multipliers[loops.record[c, FIRST] + r] * dot(row, V)
    return power


# dynamics ---------------------------------------------------------------------------------------------------------
@primitive
def tied_hybrid(index, constants, plant, ties, work):
    """`hybrid` under the constraints; writes ties.multipliers too."""
    return constrained_hybrid(index, constants, ties.index, ties.constants, plant.prescribed, work.q, work.v, work.a, work.tau,
                              work.F, ties.drive, ties.figures[FREQUENCY], plant.passive[0], ties.multipliers, work.memory,
                              ties.memory)


@kernel
def look_around(index, constants, prescribed, ties, t, a):
    """At an accepted state, after `tied_hybrid`: singular configurations, and prescriptions that contradict. Returns a code."""
    _, con = tied(tree_of(index, constants), ties)
    watch(con.solver, t, ties.figures)
    given, scale = ties.drive.size > 0, 0.0
    for k in range(a.size):
        given, scale = given or prescribed[k], max(scale, abs(a[k]))
    return CONTRADICTION if given and contradicted(con.solver, CONTRADICTS * (1.0 + scale), ties.figures) else CLOSED


@primitive
def contradicted(solver, most, figures):
    """Whether a dependent row asks for more than rounding; figures tell which and by how much."""
    for r in range(solver.keep.size):
        if solver.keep[r] < 0.5 and abs(solver.z[r]) > most:
            figures[BAD_ROW], figures[BAD_SIZE] = r, abs(solver.z[r])
            return True
    return False


@primitive
def watch(solver, t, f):
    """A singular configuration is where rows become dependent: their number changes or, between two states, the volume that
    they span goes through zero, where it has a corner. Its square is the product of the eigenvalues of A M^-1 A^T that are not
    zero, whichever rows were taken: the pivots of these, times the null vectors' squares, which stand at right angles."""
    rank, volume, small, row, m = 0.0, 1.0, 1e300, -1, solver.keep.size
    for r in range(m):
        if solver.keep[r] > 0.5:
            x = solver.size[r] / solver.gain[r]                   # the pivot, of what the row's diagonal is made of
            rank, volume = rank + 1.0, volume / solver.gain[r]
            if x < small:
                small, row = x, r
    for j in range(m - int(rank)):
        square = 0.0
        for k in range(m):
            square += solver.null[j * m + k] * solver.null[j * m + k]
        volume *= square
    volume = sqrt(volume)
    if f[RANK] >= 0.0:
        if t <= f[TIME_2]:
            return
        if rank < f[RANK]:
            report(t, f[ROW_2], f)
        elif rank > f[RANK] and f[SINGULAR_COUNT] == 0.0:
            report(f[TIME_2], row, f)
        elif rank == f[RANK] and cornered(f[SMALL_1], f[TIME_1], f[SMALL_2], f[TIME_2], volume, t):
            report(f[TIME_2], f[ROW_2], f)
    f[SMALL_1], f[TIME_1] = f[SMALL_2], f[TIME_2] if f[RANK] == rank else np.inf
    f[SMALL_2], f[TIME_2], f[ROW_2], f[RANK] = volume, t, row, rank


@primitive
def report(t, row, f):
    if f[SINGULAR_COUNT] == 0.0:
        f[SINGULAR_TIME], f[SINGULAR_ROW] = t, row
    f[SINGULAR_COUNT] += 1.0


@primitive
def cornered(x1, t1, x2, t2, x3, t3):
    """Whether three values at times are nearly straight if one or two of them change their sign, and not if not."""
    if not (t1 < t2 and x2 < x1 and x2 <= x3):
        return False
    before, after = (x2 - x1) / (t2 - t1), (x3 - x2) / (t3 - t2)
    later, earlier = (-x3 - x2) / (t3 - t2) - before, (-x2 - x1) / (t2 - t1) + after
    return min(abs(later), abs(earlier)) < _STRAIGHT * (after - before)


@kernel
def measure(index, constants, ties, q, v, V, out):
    """out = largest residual and velocity residual of the state of the last evaluation; V (6n) its twists."""
    loops, con = tied(tree_of(index, constants), ties)
    residuals(loops, q, con.rows, con.other)
    out[0] = worst(con.other)
    velocities(loops, v, V, ties.drive, con.rows, con.other)
    out[1] = worst(con.other)


# back onto the constraints ----------------------------------------------------------------------------------------
@kernel
def close_loops(index, constants, ties, counted, q, v):
    """q and v go back onto the constraints, what is prescribed of them excepted; ties.drive must be of this time. Where
    there is no projection only the drift is noted, as it is if `counted`. Returns a code."""
    tree, f, loops = tree_of(index, constants), ties.figures, loops_of(ties.index, ties.constants)
    factors, con, sweep, dv, tau = projection_work(ties.room, tree.parent.size, tree.above.size, ties.index[0], ties.index[1])
    for i in range(1, tree.parent.size):
        store_pose(factors.T, i, joint_pose(tree, i, q))
    closure_frames(tree, loops, factors.T, ties.drive, con.rows)
    residuals(loops, q, con.rows, con.rhs)
    if counted:
        f[DRIFT] = max(f[DRIFT], worst(con.rhs))
    if f[TOLERANCE] <= 0.0:
        return CLOSED
    code, _ = project_position(tree, loops, ties.fixed, q, ties.drive, f[TOLERANCE], factors, con, dv, tau, sweep)
    if code != OK:
        largest_row(con.rhs, f)
        return LOOP_OPEN if code == OPEN else LOOSE_JOINT
    code, off = project_velocity(tree, loops, ties.held, q, v, ties.drive, factors, con, dv, tau, sweep)
    if code != OK:
        return LOOSE_JOINT
    if counted:
        f[DRIFT_VELOCITY] = max(f[DRIFT_VELOCITY], off)
    return CLOSED


@primitive
def largest_row(x, figures):
    figures[BAD_ROW], figures[BAD_SIZE] = 0, 0.0
    for r in range(x.size):
        if not abs(x[r]) <= figures[BAD_SIZE]:
            figures[BAD_ROW], figures[BAD_SIZE] = r, abs(x[r])
