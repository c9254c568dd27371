"""Constrained motion by its parts (see `parts`): what is the same for all robots, around what is not.

One entry does it all, by the address of a desk: each of these functions is compiled once, and is no part of its callers."""
import numpy as np

from liedyn.joints.joint_model import parts as tree_parts
from liedyn.joints.joint_model import tree_of
from liedyn.kernels.batch_blocks import BAD_QUATERNION, BAD_RESULT, OK, SHAPE, SINGULAR, bad_quaternions
from liedyn.kernels.constraints.solver import factor_constraints, solve_constraints
from liedyn.kernels.constraints.stages import (
    BAD_ROW,
    BAD_SIZE,
    CHANGED,
    COMPLETED,
    DRIFT,
    DRIFT_VELOCITY,
    EQUATIONS,
    HEADER,
    HOLONOMIC,
    LEFT,
    MACHINE,
    MACHINE_SIZE,
    MOVED,
    PART,
    RANK,
    RESIDUALS,
    ROW_2,
    ROWS,
    RUN,
    SINGULAR_COUNT,
    SINGULAR_ROW,
    SINGULAR_TIME,
    SIZE,
    SLOWEST,
    SMALL_1,
    SMALL_2,
    TIME,
    TIME_1,
    TIME_2,
    TOLERANCE,
    VELOCITIES,
    constraint_workspace_of,
)
from liedyn.lie.simd import sqrt
from liedyn.numba_tools.decorators import array_address, array_at, call_with_integers, entry_point, inline_kernel, internal_kernel

MOVE, LOOK, CLOSE_POSITION, CLOSE_VELOCITY, CLOSE, CLOSE_UNCOUNTED, MEASURE, MULTIPLY = range(8)        # what `mechanism` does
CLOSED, LOOP_OPEN, CONTRADICTION, LOOSE_JOINT = 0, 6, 7, 8      # codes in addition to those of `simulation.right_hand_side`
FAR = 32                           # an angle is beyond what lines hold, and loops must go on
OPEN = 20                          # a code in addition to those of `checks`: the constraints could not be closed
CONTRADICTS = 1e-7                 # by rounding: of the largest acceleration, and of figures[SLOWEST]
_STRAIGHT = 0.25                   # how straight what crosses zero is, against how sharply it turns if it does not
_MOST = 30                # Newton steps; from an integrator's step one or two
_ACCEPTED = 1e3           # tolerances: where rounding stops a projection, as it does far from the origin, less is closed
_STALLED = 0.5            # a step that leaves more than this of the residual has reached rounding, or will not close


@entry_point("i8(i8, i8)")
def mechanism(address, what):
    """Of the desk at an address:

    MOVE             found_a, found_tau and multipliers from q, v, a, tau, f_ext
    LOOK             at an accepted state at figures[TIME], after MOVE: singular configurations, and prescriptions that contradict
    CLOSE_POSITION   q moves onto the constraints
    CLOSE_VELOCITY   v moves onto A v = the drive's velocity
    CLOSE            both, unless the tolerance is 0; the largest drift before is noted
    CLOSE_UNCOUNTED  the same, not noted
    MEASURE          residual and velocity
    MULTIPLY         multipliers from the desk's matrix and right-hand side

    Returns a code."""
    x = array_at(address, array_at(address, HEADER).view(np.int64)[SIZE])
    d = constraint_workspace_of(x)
    if what == MOVE:
        return move(d, x)
    if what == MULTIPLY:
        multiply(d)
        return OK
    if what == LOOK:
        return look_around(d)
    if what == MEASURE:
        return OK if part(x, RESIDUALS) == OK and part(x, VELOCITIES) == OK else FAR
    if what == CLOSE_POSITION:
        return project_position(d, x, d.figures[TOLERANCE])
    if what == CLOSE_VELOCITY:
        return project_velocity(d, x)
    return close(d, x, what == CLOSE)


@entry_point("i8(i8, f8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8, i8, i8)",
             nogil=True)
def move_states(address, frequency, q, v, a, tau, f_ext, drive, found_a, found_tau, out, count, first, last):
    """MOVE for states first … last - 1 of `count`, whose numbers stand one state after the other: q, v, tau, wrenches on bodies,
    motions of driven closures, and a, or none where nothing is prescribed. Writes accelerations, joint forces if found_tau has
    room, and out (3 m a state): multipliers, 1 or 0: a row that depends on others, and by how much it is contradicted. What is
    not finite comes out so: BAD_RESULT. Without found_tau, CONTRADICTION ends it: then the caller
    does not look at the last of these."""
    x = array_at(address, array_at(address, HEADER).view(np.int64)[SIZE])
    d, h = constraint_workspace_of(x), x.view(np.int64)
    nq, nv, m = d.q.size, d.v.size, d.multipliers.size
    if not (q.size == count * nq and v.size == count * nv and tau.size == v.size and (a.size == v.size or a.size == 0)
            and f_ext.size == count * d.f_ext.size and drive.size == count * d.drive.size):
        return SHAPE
    index, constants, _ = tree_parts(array_at(h[MACHINE], h[MACHINE_SIZE]))
    tree = tree_of(index, constants)
    d.frequency[0] = frequency
    for k in range(first, last):
        copy(q[k * nq:(k + 1) * nq], d.q)
        copy(v[k * nv:(k + 1) * nv], d.v)
        copy(a[k * nv:(k + 1) * nv], d.a)
        copy(tau[k * nv:(k + 1) * nv], d.tau)
        copy(f_ext[k * d.f_ext.size:(k + 1) * d.f_ext.size], d.f_ext)
        copy(drive[k * d.drive.size:(k + 1) * d.drive.size], d.drive)
        if bad_quaternions(tree, d.q) != OK:
            return BAD_QUATERNION
        code = run(x, MOVE)
        if code != OK:
            return code
        copy(d.found_a, found_a[k * nv:(k + 1) * nv])
        if found_tau.size:
            copy(d.found_tau, found_tau[k * nv:(k + 1) * nv])
        rows, total = out[3 * k * m:3 * (k + 1) * m], 0.0
        for r in range(m):
            keep = d.solver.keep[r]
            rows[r], rows[m + r], rows[2 * m + r] = d.multipliers[r], keep, d.solver.z[r] * (1.0 - keep)
            total += d.multipliers[r] * 0.0
        for i in range(nv):
            total += (d.found_a[i] + d.found_tau[i]) * 0.0
        if total != 0.0:
            return BAD_RESULT
        if found_tau.size == 0 and is_contradicted(d):
            return CONTRADICTION
    return OK


@inline_kernel
def run(x, what):
    """`mechanism`, called by its address."""
    return call_with_integers(x.view(np.int64)[RUN], (array_address(x), what))


@inline_kernel
def part(x, which): return call_with_integers(x.view(np.int64)[PART + which], (array_address(x),))


@internal_kernel
def multiply(d):
    """The multipliers of the desk's matrix and right-hand side."""
    factor_constraints(d.solver)
    solve_constraints(d.rhs, d.solver, d.multipliers)


@inline_kernel
def move(d, x):
    if part(x, EQUATIONS) != OK:
        return FAR
    multiply(d)
    part(x, COMPLETED)
    return SINGULAR if d.deficit[0] > 0.0 else OK


@inline_kernel
def worst(x):
    """Largest |x|; NaN if any is."""
    y = 0.0
    for k in range(x.size):
        y = abs(x[k]) if not abs(x[k]) <= y and y == y else y
    return y


@inline_kernel
def largest_residual_row(weight, x):
    """Largest weight |x|; NaN if any is."""
    y = 0.0
    for k in range(x.size):
        z = weight[k] * abs(x[k])
        y = z if not z <= y and y == y else y
    return y


@inline_kernel
def copy(x, to):
    for k in range(x.size):
        to[k] = x[k]


# projections ------------------------------------------------------------------------------------------------------
@inline_kernel
def step_back(d, gap):
    """The multipliers that take off `gap`."""
    for r in range(gap.size):
        d.rhs[r] = -gap[r]
    multiply(d)


@internal_kernel
def project_position(d, x, tolerance):
    """By the shortest way in the metric of the mass matrix: dq = -M^-1 A^T (A M^-1 A^T)^+ residual, repeated (Gauss-Newton on the
    manifold). Fixed coordinates stay. The largest residual that is left, as the tolerance [rad | lengths]: figures[LEFT]."""
    before = np.inf
    for step in range(_MOST + 1):
        if part(x, RESIDUALS) != OK:
            return FAR
        now = largest_residual_row(d.weight, d.residual)
        d.figures[LEFT] = now
        if now <= tolerance or (step > 1 and not now < _STALLED * before and now < _ACCEPTED * tolerance):
            return OK
        if not now < 1e300 or step == _MOST or (step > 4 and not now < before):
            return OPEN
        part(x, HOLONOMIC)
        if d.deficit[0] > 0.0:
            return SINGULAR
        step_back(d, d.residual)
        part(x, MOVED)
        copy(d.moved, d.q)
        before = now
    return OPEN


@internal_kernel
def project_velocity(d, x):
    """The same way, at once. Held coordinates stay. How far v was off: figures[LEFT]."""
    if part(x, ROWS) != OK:
        return FAR
    if d.deficit[0] > 0.0:
        return SINGULAR
    d.figures[LEFT] = worst(d.velocity)
    step_back(d, d.velocity)
    part(x, CHANGED)
    for k in range(d.v.size):
        d.v[k] += d.change[k]
    return OK


@inline_kernel
def close(d, x, counted):
    f = d.figures
    if counted or f[TOLERANCE] <= 0.0:
        if part(x, RESIDUALS) != OK:
            return FAR
        if counted:
            f[DRIFT] = max(f[DRIFT], worst(d.residual))
        if f[TOLERANCE] <= 0.0:
            return CLOSED
    code = project_position(d, x, f[TOLERANCE])
    if code in (OPEN, SINGULAR):
        largest_row(d.weight, d.residual, f)
        return LOOP_OPEN if code == OPEN else LOOSE_JOINT
    if code == OK:
        code = project_velocity(d, x)
    if code == SINGULAR:
        return LOOSE_JOINT
    if counted and code == OK:
        f[DRIFT_VELOCITY] = max(f[DRIFT_VELOCITY], f[LEFT])
    return code


@inline_kernel
def largest_row(weight, x, figures):
    row, most = 0, 0.0
    for r in range(x.size):
        if not weight[r] * abs(x[r]) <= most:
            row, most = r, weight[r] * abs(x[r])
    figures[BAD_ROW], figures[BAD_SIZE] = row, abs(x[row])


# singular configurations ------------------------------------------------------------------------------------------
@internal_kernel
def look_around(d):
    watch(d.solver, d.figures[TIME], d.figures)
    given, prescribed = d.drive.size > 0, d.mask.view(np.bool_)
    for k in range(prescribed.size):
        given = given or prescribed[k]
    return CONTRADICTION if given and is_contradicted(d) else CLOSED


@inline_kernel
def is_contradicted(d):
    """Whether a dependent row asks for more than rounding; figures tell which and by how much."""
    solver, most = d.solver, d.figures[SLOWEST]
    for k in range(d.found_a.size):
        most = max(most, abs(d.found_a[k]) / d.unit[k])
    for r in range(solver.keep.size):
        if solver.keep[r] < 0.5 and d.weight[r] * abs(solver.z[r]) > CONTRADICTS * most:
            d.figures[BAD_ROW], d.figures[BAD_SIZE] = r, abs(solver.z[r])
            return True
    return False


@inline_kernel
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
        elif rank == f[RANK] and is_singular(f[SMALL_1], f[TIME_1], f[SMALL_2], f[TIME_2], volume, t):
            report(f[TIME_2], f[ROW_2], f)
    f[SMALL_1], f[TIME_1] = f[SMALL_2], f[TIME_2] if f[RANK] == rank else np.inf
    f[SMALL_2], f[TIME_2], f[ROW_2], f[RANK] = volume, t, row, rank


@inline_kernel
def report(t, row, f):
    if f[SINGULAR_COUNT] == 0.0:
        f[SINGULAR_TIME], f[SINGULAR_ROW] = t, row
    f[SINGULAR_COUNT] += 1.0


@inline_kernel
def is_singular(x1, t1, x2, t2, x3, t3):
    """Whether three values at times are nearly straight if one or two of them change their sign, and not if not."""
    if not (t1 < t2 and x2 < x1 and x2 <= x3):
        return False
    before, after = (x2 - x1) / (t2 - t1), (x3 - x2) / (t3 - t2)
    later, earlier = (-x3 - x2) / (t3 - t2) - before, (-x2 - x1) / (t2 - t1) + after
    return min(abs(later), abs(earlier)) < _STRAIGHT * (after - before)
