"""Constrained dynamics and projections, from the stages of `constraints.stages`.

Each entry point is compiled once for all robots and gets the address of a `ConstraintWorkspace`.
"""
import numpy as np

from liedyn.joints.joint_model import tree_views
from liedyn.joints.joint_model import unpack_model as tree_parts
from liedyn.kernels.batch_blocks import BAD_QUATERNION, BAD_RESULT, OK, SHAPE, SINGULAR, check_quaternions
from liedyn.kernels.constraints.solver import factor_constraints, solve_constraints
from liedyn.kernels.constraints.stages import (
    ACCELERATION_SCALE,
    DRIFT,
    DRIFT_VELOCITY,
    EQUATION_2,
    EQUATIONS,
    FULL_RANK,
    HEADER,
    HOLONOMIC,
    OPERATION_ADDRESS,
    PACKED_MODEL,
    PACKED_MODEL_SIZE,
    PFAFFIAN,
    POSITION_CORRECTION,
    RANK,
    REMAINING,
    RESIDUALS,
    SINGULAR_COUNT,
    SINGULAR_EQUATION,
    SINGULAR_ROW_TIME,
    SINGULAR_ROWS,
    SINGULAR_TIME,
    SIZE,
    SOLUTION,
    STAGE_ADDRESSES,
    TIME,
    TIME_1,
    TIME_2,
    TOLERANCE,
    VELOCITIES,
    VELOCITY_CORRECTION,
    VOLUME_1,
    VOLUME_2,
    WORST_EQUATION,
    WORST_RESIDUAL,
    constraint_workspace_of,
)
from liedyn.lie.simd import sqrt
from liedyn.numba_tools.decorators import array_address, array_at, call_with_integers, entry_point, inline_kernel, internal_kernel

# operations of `run_constraint_operation`
SOLVE_MOTION, CHECK_STATE, PROJECT_POSITION, PROJECT_VELOCITY, PROJECT, PROJECT_UNCOUNTED, MEASURE, SOLVE_MULTIPLIERS = range(8)
CLOSED, LOOP_OPEN, CONTRADICTION, VANISHING_INERTIA = 0, 6, 7, 8      # codes in addition to those of `simulation.right_hand_side`
OUT_OF_RANGE = 32               # an angle is too large for generated code: generic functions must continue
NOT_CLOSED = 20                 # a code in addition to those of `batch_blocks`: the constraints could not be closed
CONTRADICTION_TOLERANCE = 1e-7  # of the maximum acceleration, at least statistics[ACCELERATION_SCALE]: a smaller contradiction
                                # is rounding
_MAX_STRAIGHTNESS = 0.25        # of the change of slope: a curve bends by less where it crosses zero, by more where it turns back
_MAX_ITERATIONS = 30            # Newton steps; from an integrator's step one or two
_ROUNDING_FACTOR = 1e3          # of the tolerance: a smaller residual is accepted where rounding prevents a smaller one
_STALL_FACTOR = 0.5             # a Newton step that reduces the residual by less is stopped by rounding, or does not converge


@entry_point("i8(i8, i8)")
def run_constraint_operation(address, operation):
    """Run an operation on the workspace at an address, and return a code.

    SOLVE_MOTION       out_a, out_tau and multipliers from q, v, a, tau, f_ext
    CHECK_STATE        after SOLVE_MOTION at the accepted state of time statistics[TIME]: singular configurations and
                       contradicting prescriptions
    PROJECT_POSITION   move q onto the constraints
    PROJECT_VELOCITY   move v onto A v = velocity of driven closures
    PROJECT            both, unless the tolerance is 0; statistics get the maximum drift before
    PROJECT_UNCOUNTED  the same without statistics
    MEASURE            residual and velocity
    SOLVE_MULTIPLIERS  multipliers from the matrix and right-hand side in the workspace
    """
    x = array_at(address, array_at(address, HEADER).view(np.int64)[SIZE])
    d = constraint_workspace_of(x)
    if operation == SOLVE_MOTION:
        return solve_motion(d, x)
    if operation == SOLVE_MULTIPLIERS:
        solve_multipliers(d)
        return OK
    if operation == CHECK_STATE:
        return check_accepted_state(d)
    if operation == MEASURE:
        return OK if call_stage(x, RESIDUALS) == OK and call_stage(x, VELOCITIES) == OK else OUT_OF_RANGE
    if operation == PROJECT_POSITION:
        return project_position(d, x, d.statistics[TOLERANCE])
    if operation == PROJECT_VELOCITY:
        return project_velocity(d, x)
    return project_state(d, x, operation == PROJECT)


_INPUT = "Array(f8, 1, 'C', readonly=True)"         # configurations that other functions return may be read-only


@entry_point(f"i8(i8, f8, {', '.join(6 * [_INPUT])}, f8[::1], f8[::1], f8[::1], i8, i8, i8)", nogil=True)
def solve_motion_batch(address, frequency, q, v, a, tau, f_ext, constraint_motion, out_a, out_tau, out, count, first, last):
    """Run SOLVE_MOTION for the states first … last - 1 of `count`.

    q, v, tau, f_ext (wrenches on bodies) and constraint_motion hold one state after the other; so does a, or it is empty where
    nothing is prescribed. Writes accelerations; generalized forces unless out_tau is empty; and out (3 m a state): multipliers,
    1 or 0 for equations that are independent or not, and the contradictions of dependent ones.

    Returns BAD_RESULT for results that are not finite, and CONTRADICTION for contradictions if out_tau is empty.
    """
    x = array_at(address, array_at(address, HEADER).view(np.int64)[SIZE])
    d, h = constraint_workspace_of(x), x.view(np.int64)
    nq, nv, m = d.q.size, d.v.size, d.multipliers.size
    if not (q.size == count * nq and v.size == count * nv and tau.size == v.size and (a.size == v.size or a.size == 0)
            and f_ext.size == count * d.f_ext.size and constraint_motion.size == count * d.constraint_motion.size):
        return SHAPE
    index, constants, _ = tree_parts(array_at(h[PACKED_MODEL], h[PACKED_MODEL_SIZE]))
    tree = tree_views(index, constants)
    d.frequency[0] = frequency
    for k in range(first, last):
        copy_array(q[k * nq:(k + 1) * nq], d.q)
        copy_array(v[k * nv:(k + 1) * nv], d.v)
        copy_array(a[k * nv:(k + 1) * nv], d.a)
        copy_array(tau[k * nv:(k + 1) * nv], d.tau)
        copy_array(f_ext[k * d.f_ext.size:(k + 1) * d.f_ext.size], d.f_ext)
        copy_array(constraint_motion[k * d.constraint_motion.size:(k + 1) * d.constraint_motion.size], d.constraint_motion)
        if check_quaternions(tree, d.q) != OK:
            return BAD_QUATERNION
        code = call_operation(x, SOLVE_MOTION)
        if code != OK:
            return code
        copy_array(d.out_a, out_a[k * nv:(k + 1) * nv])
        if out_tau.size:
            copy_array(d.out_tau, out_tau[k * nv:(k + 1) * nv])
        rows, total = out[3 * k * m:3 * (k + 1) * m], 0.0
        for r in range(m):
            independent = d.solver.independent[r]
            rows[r], rows[m + r], rows[2 * m + r] = d.multipliers[r], independent, d.solver.z[r] * (1.0 - independent)
            total += d.multipliers[r] * 0.0
        for i in range(nv):
            total += (d.out_a[i] + d.out_tau[i]) * 0.0
        if total != 0.0:
            return BAD_RESULT
        if out_tau.size == 0 and is_contradicted(d):
            return CONTRADICTION
    return OK


@inline_kernel
def call_operation(x, operation):
    """Call `run_constraint_operation` by its address."""
    return call_with_integers(x.view(np.int64)[OPERATION_ADDRESS], (array_address(x), operation))


@inline_kernel
def call_stage(x, stage):
    """Run a stage on the workspace x by its address there, and return its code."""
    return call_with_integers(x.view(np.int64)[STAGE_ADDRESSES + stage], (array_address(x),))


@internal_kernel
def solve_multipliers(d):
    """Write the multipliers of the matrix and right-hand side in the workspace."""
    factor_constraints(d.solver)
    solve_constraints(d.rhs, d.solver, d.multipliers)


@inline_kernel
def solve_motion(d, x):
    """Write out_a, out_tau and multipliers from q, v, a, tau and f_ext; return a code."""
    if call_stage(x, EQUATIONS) != OK:
        return OUT_OF_RANGE
    solve_multipliers(d)
    call_stage(x, SOLUTION)
    return SINGULAR if d.deficit[0] > 0.0 else OK


@inline_kernel
def max_abs(x):
    """Largest |x|; NaN if any is."""
    y = 0.0
    for k in range(x.size):
        y = abs(x[k]) if not abs(x[k]) <= y and y == y else y
    return y


@inline_kernel
def max_weighted_abs(weight, x):
    """Largest weight |x|; NaN if any is."""
    y = 0.0
    for k in range(x.size):
        z = weight[k] * abs(x[k])
        y = z if not z <= y and y == y else y
    return y


@inline_kernel
def copy_array(x, to):
    """Copy the numbers of x to the first numbers of `to`."""
    for k in range(x.size):
        to[k] = x[k]


# projections ------------------------------------------------------------------------------------------------------
@inline_kernel
def solve_correction(d, error):
    """Write the multipliers that correct `error` (m,)."""
    for r in range(error.size):
        d.rhs[r] = -error[r]
    solve_multipliers(d)


@internal_kernel
def project_position(d, x, tolerance):
    """Move q onto the constraints by the shortest way in the metric of the mass matrix, and return a code.

    Gauss-Newton on the manifold: dq = -M^-1 A^T (A M^-1 A^T)^+ residual, repeated. Fixed coordinates keep their values.
    statistics[REMAINING] gets the maximum remaining residual, in the unit of the tolerance [rad | lengths of the loop].
    """
    previous_error = np.inf
    for step in range(_MAX_ITERATIONS + 1):
        if call_stage(x, RESIDUALS) != OK:
            return OUT_OF_RANGE
        error = max_weighted_abs(d.weight, d.residual)
        d.statistics[REMAINING] = error
        if error <= tolerance or (
                step > 1 and not error < _STALL_FACTOR * previous_error and error < _ROUNDING_FACTOR * tolerance):
            return OK
        if not error < 1e300 or step == _MAX_ITERATIONS or (step > 4 and not error < previous_error):
            return NOT_CLOSED
        call_stage(x, HOLONOMIC)
        if d.deficit[0] > 0.0:
            return SINGULAR
        solve_correction(d, d.residual)
        call_stage(x, POSITION_CORRECTION)
        copy_array(d.moved, d.q)
        previous_error = error
    return NOT_CLOSED


@internal_kernel
def project_velocity(d, x):
    """Move v onto the constraints by one such step, and return a code.

    Held coordinates keep their velocities. statistics[REMAINING] gets the maximum velocity error before.
    """
    if call_stage(x, PFAFFIAN) != OK:
        return OUT_OF_RANGE
    if d.deficit[0] > 0.0:
        return SINGULAR
    d.statistics[REMAINING] = max_abs(d.velocity)
    solve_correction(d, d.velocity)
    call_stage(x, VELOCITY_CORRECTION)
    for k in range(d.v.size):
        d.v[k] += d.change[k]
    return OK


@inline_kernel
def project_state(d, x, count_drift):
    """Move q and v onto the constraints, with statistics of the drift if `count_drift`; return a code."""
    f = d.statistics
    if count_drift or f[TOLERANCE] <= 0.0:
        if call_stage(x, RESIDUALS) != OK:
            return OUT_OF_RANGE
        if count_drift:
            f[DRIFT] = max(f[DRIFT], max_abs(d.residual))
        if f[TOLERANCE] <= 0.0:
            return CLOSED
    code = project_position(d, x, f[TOLERANCE])
    if code in (NOT_CLOSED, SINGULAR):
        record_largest_residual(d.weight, d.residual, f)
        return LOOP_OPEN if code == NOT_CLOSED else VANISHING_INERTIA
    if code == OK:
        code = project_velocity(d, x)
    if code == SINGULAR:
        return VANISHING_INERTIA
    if count_drift and code == OK:
        f[DRIFT_VELOCITY] = max(f[DRIFT_VELOCITY], f[REMAINING])
    return code


@inline_kernel
def record_largest_residual(weight, x, statistics):
    """Store the equation of the maximum weighted residual, and that residual."""
    row, maximum = 0, 0.0
    for r in range(x.size):
        if not weight[r] * abs(x[r]) <= maximum:
            row, maximum = r, weight[r] * abs(x[r])
    statistics[WORST_EQUATION], statistics[WORST_RESIDUAL] = row, abs(x[row])


# singular configurations ------------------------------------------------------------------------------------------
@internal_kernel
def check_accepted_state(d):
    """Look for a singular configuration, and return CONTRADICTION or CLOSED.

    Near a singular configuration, the drift of the state makes equations contradict each other that a feasible motion satisfies.
    If a motion is not feasible there, the loops cannot be closed after the next steps.
    """
    detect_singularity(d.solver, d.statistics[TIME], d.statistics)
    has_prescribed_motion, prescribed = d.constraint_motion.size > 0, d.mask.view(np.bool_)
    for k in range(prescribed.size):
        has_prescribed_motion = has_prescribed_motion or prescribed[k]
    is_regular = d.statistics[RANK] == d.statistics[FULL_RANK]
    return CONTRADICTION if has_prescribed_motion and is_regular and is_contradicted(d) else CLOSED


@inline_kernel
def is_contradicted(d):
    """Return whether the equations contradict each other by more than rounding.

    The statistics get the worst equation and its residual.
    """
    solver, scale = d.solver, d.statistics[ACCELERATION_SCALE]
    for k in range(d.out_a.size):
        scale = max(scale, abs(d.out_a[k]) / d.unit[k])
    for r in range(solver.independent.size):
        if solver.independent[r] < 0.5 and d.weight[r] * abs(solver.z[r]) > CONTRADICTION_TOLERANCE * scale:
            d.statistics[WORST_EQUATION], d.statistics[WORST_RESIDUAL] = r, abs(solver.z[r])
            return True
    return False


@inline_kernel
def detect_singularity(solver, t, f):
    """Count singular configurations at and between accepted states.

    There, equations become dependent: their rank changes or, between two states, the volume that they span passes zero, where it
    has a corner.
    """
    rank, volume, row = spanned_volume(solver)
    f[FULL_RANK] = max(f[FULL_RANK], rank)
    if f[RANK] >= 0.0:
        if t <= f[TIME_2]:
            return
        if rank < f[RANK]:
            record_singularity(t, f[EQUATION_2], f)
        elif rank > f[RANK] and f[SINGULAR_COUNT] == 0.0:
            record_singularity(f[TIME_2], row, f)
        elif rank == f[RANK] and passes_zero(f[VOLUME_1], f[TIME_1], f[VOLUME_2], f[TIME_2], volume, t):
            record_singularity(f[TIME_2], f[EQUATION_2], f)
    f[VOLUME_1], f[TIME_1] = f[VOLUME_2], f[TIME_2] if f[RANK] == rank else np.inf
    f[VOLUME_2], f[TIME_2], f[EQUATION_2], f[RANK] = volume, t, row, rank


@inline_kernel
def spanned_volume(solver):
    """Return the rank r of A M^-1 A^T, the volume that the constraint equations span, and the equation of the smallest pivot.

    volume^2 = det' = D_1 … D_r |n_1|^2 … |n_(m-r)|^2: the product det' of the nonzero eigenvalues, the pivots D of L D L^T and
    the orthogonal null vectors n, whichever equations were chosen as independent.
    """
    rank, volume, small, row, m = 0.0, 1.0, 1e300, -1, solver.independent.size
    for r in range(m):
        if solver.independent[r] > 0.5:
            x = solver.size[r] / solver.inverse_pivot[r]                   # the pivot relative to its diagonal without cancelling
            rank, volume = rank + 1.0, volume / solver.inverse_pivot[r]
            if x < small:
                small, row = x, r
    for j in range(m - int(rank)):
        square = 0.0
        for k in range(m):
            square += solver.null[j * m + k] * solver.null[j * m + k]
        volume *= square
    return rank, sqrt(volume), row


@inline_kernel
def record_singularity(t, row, f):
    """Count a singular configuration; the first one gives its time and equation."""
    if f[SINGULAR_COUNT] == 0.0:
        f[SINGULAR_TIME], f[SINGULAR_EQUATION] = t, row
    f[SINGULAR_COUNT] += 1.0


@inline_kernel
def count_singular_output(d):
    """Count an output, at statistics[TIME], whose equations depend on each other, unlike those of other states."""
    rank, f = 0.0, d.statistics
    for r in range(d.solver.independent.size):
        rank += d.solver.independent[r]
    if rank < f[FULL_RANK]:
        if f[SINGULAR_ROWS] == 0.0:
            f[SINGULAR_ROW_TIME] = f[TIME]
        f[SINGULAR_ROWS] += 1.0


@inline_kernel
def passes_zero(x1, t1, x2, t2, x3, t3):
    """Return whether three values at three times are nearly on a line after a change of one or two signs, but not before."""
    if not (t1 < t2 and x2 < x1 and x2 <= x3):
        return False
    first_slope, last_slope = (x2 - x1) / (t2 - t1), (x3 - x2) / (t3 - t2)
    later, earlier = (-x3 - x2) / (t3 - t2) - first_slope, (-x2 - x1) / (t2 - t1) + last_slope
    return min(abs(later), abs(earlier)) < _MAX_STRAIGHTNESS * (last_slope - first_slope)
