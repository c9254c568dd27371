"""Configurations that fulfil kinematic tasks: Levenberg-Marquardt steps on the configuration manifold, within joint limits.

Equations have levels of priority. Level 0 are the constraints of the robot, the last level may be a preferred posture. Each level
minimizes the norm of its weighted residual. Meanwhile the equations of the levels before keep the values that they have reached:
steps are in the null space of their derivative H, and each step ends with Newton steps back to these values. With the derivative
J of the level and the projector N = 1 - H^+ H, a step is

    x = -H^+ h + y,     y = -N J^T (J N J^T + damping)^-1 (r - J H^+ h),      damping = mu |r|^2

(Sugihara 2011 for this damping, with which the convergence is quadratic). A coordinate that would leave its limits stops there,
and the others compensate. If a search ends at a local minimum, it starts again from the next random configuration.

Residuals are in radians and in lengths of the robot, coordinates in the same units. While a target is farther away, the unit of
coordinates that slide is that distance: steps are then as long, and slide instead of turning.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import tree_views
from liedyn.kernels.batch_blocks import BAD_RESULT, OK
from liedyn.kernels.manifold import retract
from liedyn.numba_tools.decorators import (
    array_address,
    call_with_arrays,
    call_with_integers,
    entry_point,
    inline_kernel,
    internal_kernel,
    jitable,
    reordering_inline_kernel,
)
from liedyn.numba_tools.numba_internals import split_workspace

MAX_LEVELS = 16

# entries of `whole`: the header, then arrays (see `TaskProblem`)
GENERIC, LEVEL_COUNT, POSTURE_LEVEL, IS_PATH, MAX_STEPS, N_NUMBERS = range(6)
# statistics of a target
STEPS, STARTS, REACHED, N_STATISTICS = range(4)

_INITIAL_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1, 1e-8, 1e12     # mu
_LESS, _MORE = 0.3, 8.0          # factors of mu after a step that is accepted or rejected
_FLOOR = 1e-15                   # damping relative to the maximum diagonal of J N J^T, against rounding
_MAX_STEP = 1.0                  # rad or lengths of the robot: maximum change of a coordinate in a step
_DEPENDENT = 1e-7                # of a row of H without cancellation (of order one): what remains of a dependent row is rounding
_CANCELLED = 0.5                 # of the norm of a row: with less than that after a projection, it is projected again
_RESTORING_STEPS = 8             # Newton steps back to the values of the levels before
_MIN_DECREASE = 1e-9             # of the squared residual: a search ends at a step that decreases it by less
_MIN_MOVEMENT = 1e-6             # a posture is reached at a shorter step
_MIN_FRACTION = 0.2              # of a step towards a posture: minimum
_UNSEEN = 1e-4                   # a shorter step to a posture may change the distance by less than its rounding
_FIRST_STEPS = 40                # maximum number of steps of a search before the others were tried
_PATIENCE, _PROGRESS = 5, 0.5    # such a search ends if the squared residual decreases by less than this factor in so many steps
_FAR = np.pi                     # residual in lengths of the robot from which on a target is far: none of an angle is larger
_NEAR = 1e-4                     # a search with a smaller squared residual does not end early


class TaskProblem(NamedTuple):
    """What all targets of a call share."""

    address: int              # of the equations: generated code, or `task_equations_generic`
    header: int               # address of the header of `task_equations_generic`
    levels: np.ndarray        # int64 `N_NUMBERS` numbers, then the first equation of each level and the end, then arrays
    q_of_v: np.ndarray        # int64 (nv,) -1: a coordinate of a ball or free joint
    locked: np.ndarray        # int64 (nv,) 1: a coordinate that does not move
    turns: np.ndarray         # int64 (nv,) 1: whole turns change nothing
    slides: np.ndarray        # int64 (nv,) 1: a coordinate in meters
    scale: np.ndarray         # (m,) factors that make residuals dimensionless; 0: an equation that does not count
    weight: np.ndarray        # (m,) of the dimensionless residuals of a level
    tolerance: np.ndarray     # (m,) of the dimensionless residuals; infinite: need not vanish
    unit: np.ndarray          # (nv,) unit of movement of each coordinate near the target
    lower: np.ndarray         # (nv,)
    upper: np.ndarray         # (nv,)


class TaskState(NamedTuple):
    """A configuration, its residual (m) and derivative (m nv), dimensionless, and the units of movement there (nv)."""

    q: np.ndarray
    r: np.ndarray
    J: np.ndarray
    unit: np.ndarray


class TaskSolverWorkspace(NamedTuple):
    """Arrays of the solver."""

    state: TaskState
    trial: TaskState
    goal: np.ndarray         # (m,) values that equations of earlier levels keep
    best: np.ndarray         # (nq,)
    sizes: np.ndarray        # (2 MAX_LEVELS,) norms of the levels, of the current and of the best search
    x: np.ndarray            # (nv,) step
    y: np.ndarray            # (nv,) step in units of q
    last: np.ndarray         # (nv,) step before
    stopped: np.ndarray      # (nv,) 1.0: does not move in this step
    basis: np.ndarray        # (m nv,) orthonormal rows that span H
    factor: np.ndarray       # (m m,) H in that basis
    pivot: np.ndarray        # (m,) 1.0: the row is independent
    projected: np.ndarray    # (m nv,) weighted J N
    matrix: np.ndarray       # (max(m, nv)^2,)
    z: np.ndarray            # (max(m, nv),)


@jitable
def solver_sizes(nq, nv, m):
    """Return the sizes of the arrays of `TaskSolverWorkspace`."""
    k = max(m, nv)
    return (nq, m, m * nv, nv, nq, m, m * nv, nv, m, nq, 2 * MAX_LEVELS, nv, nv, nv, nv, m * nv, m * m, m, m * nv, k * k, k)


@inline_kernel
def solver_workspace(memory, nq, nv, m):
    """Return the `TaskSolverWorkspace` whose arrays are views into `memory`."""
    v = split_workspace(memory, solver_sizes(nq, nv, m))
    return TaskSolverWorkspace(TaskState(v[0], v[1], v[2], v[3]), TaskState(v[4], v[5], v[6], v[7]), *v[8:-1])


def task_solver_workspace_size(nq, nv, m):
    """Return the size (numbers) of the workspace of `solve_tasks`."""
    return sum(solver_sizes(nq, nv, m))


@jitable
def level_sizes(levels, nv):
    """Return the sizes of the arrays in `levels`: header, first equations, q_of_v, locked, turns, slides."""
    return N_NUMBERS, levels + 1, nv, nv, nv, nv


@jitable
def factor_sizes(m, nv):
    """Return the sizes of the arrays in `factors`: scale, weight, tolerance, unit, lower, upper."""
    return m, m, m, nv, nv, nv


@entry_point("i8(i8, i8, i8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
             "f8[:,::1], i8, i8)", nogil=True)
def solve_tasks(address, header, index, constants, whole, factors, memory, starts, guess, target, q, residual, statistics, first,
                last):
    """Solve targets first … last - 1; write q (N, nq), dimensionless residual (N, m) and statistics (N, N_STATISTICS).

    whole, factors   see `level_sizes` and `factor_sizes`
    starts           (k, nv) random numbers of further starts, see `next_start`
    guess            (N or 1, nq)
    target           (N, …) numbers of `task_equations`, then the rounding of positions

    The targets of a path start at the configuration of the one before. If such a search fails after another one has failed, it is
    repeated from the last target that was reached, or from the guess: the way back from a configuration that is stretched towards
    a target out of reach is often singular.

    Returns a code if the equations cannot be computed at a guess.
    """
    nq, nv, m = index[1], index[2], residual.shape[1]
    _, edges, q_of_v, locked, turns, slides, _ = split_workspace(whole, level_sizes(whole[LEVEL_COUNT], nv))
    p = TaskProblem(address, header, whole, q_of_v, locked, turns, slides, *split_workspace(factors, factor_sizes(m, nv))[:-1])
    tree, ws, path = tree_views(index, constants), solver_workspace(memory, nq, nv, m), whole[IS_PATH] != 0
    reached = -1                                             # the last target that was reached
    for k in range(first, last):
        follows = path and k > first
        begin = q[k - 1] if follows else guess[min(k, guess.shape[0] - 1)]
        code = solve_target(tree, p, ws, edges, begin, starts[:0] if follows else starts, target[k], statistics[k])
        if code != OK:
            return code
        write_result(ws, q[k], residual[k])
        if follows and statistics[k, REACHED] == 0.0 and reached < k - 1:
            steps, begin = statistics[k, STEPS], q[reached] if reached >= 0 else guess[0]
            code = solve_target(tree, p, ws, edges, begin, starts[:0] if reached >= 0 else starts, target[k], statistics[k])
            if code == OK and statistics[k, REACHED] > 0.0:
                write_result(ws, q[k], residual[k])
            statistics[k, STEPS] += steps
            statistics[k, STARTS] += 1.0
        if statistics[k, REACHED] > 0.0:
            reached = k
    return OK


@inline_kernel
def write_result(ws, q, residual):
    """Write the configuration and the residual of a target."""
    copy(ws.state.q, q)
    copy(ws.state.r, residual)


@internal_kernel
def solve_target(tree, p, ws, edges, guess, starts, target, statistics):
    """Leave the best configuration that the searches find in ws.state. Return a code."""
    levels = p.levels[LEVEL_COUNT] - p.levels[POSTURE_LEVEL]
    steps, reached, searches, rounding = 0, False, 1 + starts.shape[0], target[target.shape[0] - 1]
    for search in range(searches):
        next_start(tree, p, guess, starts, search, ws.state.q)
        code = evaluate(tree, p, target, ws.state, edges[levels])
        if code != OK and search == 0:
            return code
        if code != OK:
            continue
        taken, reached = search_levels(tree, p, ws, edges, levels, target, rounding, searches > 1)
        steps += taken
        if search == 0 or is_better(ws.sizes, levels):
            copy(ws.state.q, ws.best)
            copy(ws.sizes[:levels], ws.sizes[MAX_LEVELS:MAX_LEVELS + levels])
        statistics[STARTS] = search + 1
        if reached:
            break
    if not reached and searches > 1:                         # continue the best search to its end
        copy(ws.best, ws.state.q)
        evaluate(tree, p, target, ws.state, edges[levels])
        taken, reached = search_levels(tree, p, ws, edges, levels, target, rounding, False)
        steps += taken
    unwind(tree, p, guess, target, ws, edges[levels])
    if p.levels[POSTURE_LEVEL]:
        for i in range(edges[levels]):
            ws.goal[i] = ws.state.r[i]
        taken, _ = run_level(tree, p, ws, edges[levels], edges[levels + 1], target, rounding, False, True)
        steps += taken
    statistics[STEPS], statistics[REACHED] = steps, 1.0 if reached else 0.0
    return OK


@inline_kernel
def search_levels(tree, p, ws, edges, levels, target, rounding, early):
    """Run all levels but the posture from ws.state. Return the number of steps and whether all levels are reached.

    Writes the norms of the levels to ws.sizes, 0 where reached.

    early: end if a search makes little progress, and after a level that is not reached.
    """
    steps, all_reached = 0, True
    for level in range(levels):
        ws.sizes[level] = np.inf
    for level in range(levels):
        taken, reached = run_level(tree, p, ws, edges[level], edges[level + 1], target, rounding, early, False)
        steps += taken
        ws.sizes[level] = 0.0 if reached else level_size(p, ws.state.r, edges[level], edges[level + 1])
        for i in range(edges[level], edges[level + 1]):
            ws.goal[i] = 0.0 if reached else ws.state.r[i]
        all_reached = all_reached and reached
        if early and not reached:
            break
    return steps, all_reached


@inline_kernel
def is_better(sizes, levels):
    """Return whether the norms of the current search are smaller than those of the best one, at the first level that differs."""
    for level in range(levels):
        x, y = sizes[level], sizes[MAX_LEVELS + level]
        if x != y:
            return x < y
    return False


@inline_kernel
def next_start(tree, p, guess, starts, search, q):
    """Write the start of a search to q. The first is the guess within the limits; others are random.

    Coordinates with two limits are uniform between them. Others move from the guess by the numbers of `starts`.
    """
    copy(guess, q)
    if search > 0:
        retract(tree, guess, starts[search - 1], q)
    for k in range(p.locked.size):
        i = p.q_of_v[k]
        if i >= 0 and not p.locked[k]:
            if search > 0 and np.isfinite(p.lower[k]) and np.isfinite(p.upper[k]):
                x = starts[search - 1, k] / p.unit[k]
                q[i] = p.lower[k] + (x - np.floor(x)) * (p.upper[k] - p.lower[k])
            q[i] = min(max(q[i], p.lower[k]), p.upper[k])


@inline_kernel
def unwind(tree, p, guess, target, ws, last):
    """Remove whole turns from the guess on, where limits allow it."""
    moved = False
    for k in range(p.turns.size):
        i = p.q_of_v[k]
        if p.turns[k]:
            x = ws.state.q[i] - 2.0 * np.pi * np.rint((ws.state.q[i] - guess[i]) / (2.0 * np.pi))
            if x != ws.state.q[i] and p.lower[k] <= x <= p.upper[k]:
                ws.state.q[i], moved = x, True
    if moved:
        evaluate(tree, p, target, ws.state, last)


# one level --------------------------------------------------------------------------------------------------------------

@internal_kernel
def run_level(tree, p, ws, first, last, target, rounding, early, posture):
    """Minimize the weighted residual of equations first … last - 1 from ws.state. Return the steps and whether it is zero."""
    damping, steps, size = _MIN_DAMPING if posture else _INITIAL_DAMPING, 0, level_size(p, ws.state.r, first, last)
    limit, mark, since, fraction = _FIRST_STEPS if early else p.levels[MAX_STEPS], size, 0, 0.0
    while steps < limit:
        if not posture and is_reached(p, ws.state.r, first, last, rounding):
            return steps, True
        if early and since == _PATIENCE:
            if size > _PROGRESS * mark and size > _NEAR:
                break
            mark, since = size, 0
        moved, new = 0.0, size
        while damping < _MAX_DAMPING and steps < limit:
            steps, since = steps + 1, since + 1
            moved = find_step(p, ws, ws.state, first, last, damping * size)
            if posture:
                fraction = shorten_step(ws, fraction)
            if moved == 0.0:
                break
            new = try_step(tree, p, ws, first, last, target, rounding)
            if new < size:
                break
            if posture and moved < _UNSEEN:
                return steps, True
            damping, moved = max(damping, _MIN_DAMPING) * _MORE, 0.0
        if moved == 0.0:
            break
        copy(ws.trial.q, ws.state.q)
        copy(ws.trial.r, ws.state.r)
        copy(ws.trial.J, ws.state.J)
        copy(ws.trial.unit, ws.state.unit)
        done = moved < _MIN_MOVEMENT if posture else new > (1.0 - _MIN_DECREASE) * size
        size, damping = new, max(_LESS * damping, _MIN_DAMPING)
        if done:
            break
    return steps, is_reached(p, ws.state.r, first, last, rounding)


@inline_kernel
def shorten_step(ws, fraction):
    """Multiply ws.x by the fraction of the step that fits the curvature of the configurations that fulfil the tasks. Return it.

    fraction: of the step before (Barzilai and Borwein 1988); 0: there is none. Gauss-Newton steps neglect this curvature, which
    matters since the distance from the posture does not vanish.
    """
    x, last = ws.x, ws.last
    a, b = dot(last, last), dot(last, x)
    new = 1.0 if fraction == 0.0 or a == 0.0 else min(max(fraction * a / max(a - b, _MIN_FRACTION * a), _MIN_FRACTION), 1.0)
    for k in range(x.size):
        last[k] = x[k]
        x[k] *= new
    return new


@inline_kernel
def level_size(p, r, first, last):
    """Return the squared norm of the weighted residual of equations first … last - 1."""
    total = 0.0
    for i in range(first, last):
        x = p.weight[i] * r[i]
        total += x * x
    return total


@inline_kernel
def is_reached(p, r, first, last, rounding):
    """Return whether all equations first … last - 1 are zero up to their tolerance."""
    reached = True
    for i in range(first, last):
        reached = reached and abs(r[i]) <= p.tolerance[i] + rounding * p.scale[i]
    return reached


@inline_kernel
def try_step(tree, p, ws, first, last, target, rounding):
    """Write the state after the step ws.x to ws.trial. Return its squared norm, infinite if it is not valid."""
    apply_step(tree, p, ws, ws.state)
    if evaluate(tree, p, target, ws.trial, last) != OK:
        return np.inf
    for _ in range(_RESTORING_STEPS):
        if is_kept(p, ws, first, rounding):
            return level_size(p, ws.trial.r, first, last)
        if find_step(p, ws, ws.trial, first, first, 0.0) == 0.0:
            return np.inf
        apply_step(tree, p, ws, ws.trial)
        if evaluate(tree, p, target, ws.trial, last) != OK:
            return np.inf
    return np.inf


@inline_kernel
def is_kept(p, ws, first, rounding):
    """Return whether the equations of the levels before have the values that they keep."""
    same = True
    for i in range(first):
        same = same and abs(ws.trial.r[i] - ws.goal[i]) <= p.tolerance[i] + rounding * p.scale[i]
    return same


@inline_kernel
def apply_step(tree, p, ws, state):
    """Write q after the step ws.x from a state to ws.trial.q, within the limits."""
    for k in range(ws.x.size):
        ws.y[k] = state.unit[k] * ws.x[k]
    retract(tree, state.q, ws.y, ws.trial.q)
    for k in range(ws.x.size):
        i = p.q_of_v[k]
        if i >= 0 and not p.locked[k]:
            ws.trial.q[i] = min(max(ws.trial.q[i], p.lower[k]), p.upper[k])


@inline_kernel
def evaluate(tree, p, target, state, last):
    """Write residual, derivative and units of the state. Return a code. last: the targets of these equations may be far."""
    if p.levels[GENERIC]:
        code = call_with_integers(p.address, (p.header, array_address(state.q), array_address(target), array_address(state.r),
                                              array_address(state.J)))
    else:
        code = call_with_arrays(p.address, (state.q, target, state.r, state.J))
    m, nv, total, far = state.r.size, p.unit.size, 0.0, 0.0
    for i in range(m):
        state.r[i] *= p.scale[i]
        total += state.r[i] * 0.0
        if i < last:
            far = max(far, abs(state.r[i]))
    for k in range(nv):
        state.unit[k] = p.unit[k] * far if p.slides[k] and far > _FAR else p.unit[k]
    for i in range(m):
        for k in range(nv):
            state.J[i * nv + k] *= p.scale[i] * state.unit[k]
    return code if code != OK or total == 0.0 else BAD_RESULT


# the step of a level ----------------------------------------------------------------------------------------------------

@internal_kernel
def find_step(p, ws, state, first, last, damping):
    """Write the step ws.x of equations first … last - 1 at a state, and return the maximum change of a coordinate.

    The equations before return to their values ws.goal. first == last: only these.
    """
    nv, x = p.unit.size, ws.x
    for k in range(nv):
        x[k], ws.stopped[k] = 0.0, float(p.locked[k])
    if first == 0:
        stop_at_limits(p, ws, state, last)
    for _ in range(nv + 1):
        solve_step(p, ws, state, first, last, damping)
        inside = True
        for k in range(nv):
            i = p.q_of_v[k]
            if i < 0 or ws.stopped[k] != 0.0:
                continue
            low, high = (p.lower[k] - state.q[i]) / state.unit[k], (p.upper[k] - state.q[i]) / state.unit[k]
            bound = min(max(x[k], low), high)
            if bound != x[k]:
                x[k], ws.stopped[k], inside = bound, 1.0, False
        if inside:
            break
    longest = 0.0
    for k in range(nv):
        longest = max(longest, abs(x[k]))
    if longest > _MAX_STEP:
        for k in range(nv):
            x[k] *= _MAX_STEP / longest
    return min(longest, _MAX_STEP)


@inline_kernel
def stop_at_limits(p, ws, state, last):
    """Stop coordinates at a limit beyond which the residual of equations 0 … last - 1 would decrease."""
    nv = p.unit.size
    for k in range(nv):
        i = p.q_of_v[k]
        if i >= 0 and (state.q[i] <= p.lower[k] or state.q[i] >= p.upper[k]):
            slope = 0.0
            for j in range(last):
                slope += p.weight[j] * p.weight[j] * state.J[j * nv + k] * state.r[j]
            if (slope > 0.0 and state.q[i] <= p.lower[k]) or (slope < 0.0 and state.q[i] >= p.upper[k]):
                ws.stopped[k] = 1.0


@internal_kernel
def solve_step(p, ws, state, first, last, damping):
    """Write ws.x of the coordinates that are not stopped; the others have their values."""
    nv, m, x = p.unit.size, last - first, ws.x
    for k in range(nv):
        if ws.stopped[k] == 0.0:
            x[k] = 0.0
    if first > 0:
        orthonormal_rows(ws, state.J, nv, first)
        least_norm_step(ws, state.r, state.J, nv, first)
    if m > 0:
        level_rows(p, ws, state, first, m)
        if first > 0:
            project_rows(ws, nv, m, first)
        if m <= nv:
            damped_solution(ws, m, nv, damping)
        else:
            damped_least_squares(ws, m, nv, damping)
        for k in range(nv):
            x[k] += ws.y[k]                                  # 0 where stopped


@inline_kernel
def level_rows(p, ws, state, first, m):
    """Write the rows of J of a level over the free coordinates to ws.projected, and minus the residual at ws.x to ws.z."""
    nv, J = p.unit.size, state.J
    for i in range(m):
        w, row, total = p.weight[first + i], (first + i) * nv, state.r[first + i]
        for k in range(nv):
            total += J[row + k] * ws.x[k]
            ws.projected[i * nv + k] = w * J[row + k] if ws.stopped[k] == 0.0 else 0.0
        ws.z[i] = -w * total


@internal_kernel
def orthonormal_rows(ws, J, nv, count):
    """Write an orthonormal basis of rows 0 … count - 1 of J over the free coordinates; ws.factor: these rows in that basis."""
    for i in range(count):
        row, a = ws.basis[i * nv:(i + 1) * nv], J[i * nv:(i + 1) * nv]
        for k in range(nv):
            row[k] = a[k] if ws.stopped[k] == 0.0 else 0.0
        for j in range(i):
            ws.factor[i * count + j] = 0.0
        size = np.sqrt(dot(row, row))
        for _ in range(2):                                   # again if much has cancelled, against rounding
            threshold = _CANCELLED * size
            for j in range(i):
                if ws.pivot[j] != 0.0:
                    subtract_component(row, ws.basis[j * nv:(j + 1) * nv], ws.factor, i * count + j)
            size = np.sqrt(dot(row, row))
            if size > threshold:
                break
        ws.factor[i * count + i], ws.pivot[i] = size, 1.0 if size > _DEPENDENT else 0.0
        for k in range(nv):
            row[k] = row[k] / size if size > _DEPENDENT else 0.0


@inline_kernel
def subtract_component(row, direction, factor, at):
    """Subtract from a row its component along a unit vector, and add that to factor[at]."""
    x = dot(row, direction)
    factor[at] += x
    for k in range(row.size):
        row[k] -= x * direction[k]


@inline_kernel
def least_norm_step(ws, r, J, nv, count):
    """Write the step of least norm with which equations 0 … count - 1 return to ws.goal."""
    for i in range(count):
        total = ws.goal[i] - r[i]
        for k in range(nv):
            if ws.stopped[k] != 0.0:
                total -= J[i * nv + k] * ws.x[k]
        for j in range(i):
            total -= ws.factor[i * count + j] * ws.z[j]
        ws.z[i] = total / ws.factor[i * count + i] if ws.pivot[i] != 0.0 else 0.0
    for i in range(count):
        if ws.pivot[i] != 0.0:
            for k in range(nv):
                ws.x[k] += ws.z[i] * ws.basis[i * nv + k]


@inline_kernel
def project_rows(ws, nv, m, count):
    """Remove from the rows of ws.projected their components along the basis."""
    for i in range(m):
        row = ws.projected[i * nv:(i + 1) * nv]
        for j in range(count):
            if ws.pivot[j] != 0.0:
                direction = ws.basis[j * nv:(j + 1) * nv]
                x = dot(row, direction)
                for k in range(nv):
                    row[k] -= x * direction[k]


@inline_kernel
def damped_solution(ws, m, nv, damping):
    """Write y = P^T (P P^T + damping)^-1 z with the rows P = ws.projected."""
    A, largest = ws.matrix, 0.0
    for i in range(m):
        for j in range(i + 1):
            A[i * m + j] = dot(ws.projected[i * nv:(i + 1) * nv], ws.projected[j * nv:(j + 1) * nv])
        largest = max(largest, A[i * m + i])
    solve_positive(A, ws.z, m, damping + _FLOOR * largest)
    for k in range(nv):
        ws.y[k] = 0.0
    for i in range(m):
        for k in range(nv):
            ws.y[k] += ws.projected[i * nv + k] * ws.z[i]


@inline_kernel
def damped_least_squares(ws, m, nv, damping):
    """Write y = (P^T P + damping)^-1 P^T z with the rows P = ws.projected."""
    A, largest = ws.matrix, 0.0
    for i in range(nv):
        ws.y[i] = 0.0
        for j in range(i + 1):
            A[i * nv + j] = 0.0
    for k in range(m):
        row = ws.projected[k * nv:(k + 1) * nv]
        for i in range(nv):
            ws.y[i] += row[i] * ws.z[k]
            for j in range(i + 1):
                A[i * nv + j] += row[i] * row[j]
    for i in range(nv):
        largest = max(largest, A[i * nv + i])
    solve_positive(A, ws.y, nv, damping + _FLOOR * largest)


@internal_kernel
def solve_positive(A, x, n, damping):
    """Replace x by (A + damping)^-1 x, by Cholesky's factors of the lower triangle of A (n n), which is overwritten."""
    for i in range(n):
        for j in range(i + 1):
            total = A[i * n + j] + (damping if i == j else 0.0)
            for k in range(j):
                total -= A[i * n + k] * A[j * n + k]
            if i > j:
                A[i * n + j] = total * A[j * n + j]
            else:                                            # the inverse of the diagonal; 0 for an equation of zeros
                A[i * n + i] = 1.0 / np.sqrt(total) if total > 0.0 else 0.0
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= A[i * n + k] * x[k]
        x[i] = total * A[i * n + i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= A[k * n + i] * x[k]
        x[i] = total * A[i * n + i]


@reordering_inline_kernel
def dot(x, y):
    """Return the scalar product of two arrays."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@inline_kernel
def copy(x, to):
    """Write an array to another."""
    for k in range(x.size):
        to[k] = x[k]
