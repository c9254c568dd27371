"""Constraints of a scenario: motions of driven loops, and an initial state that satisfies the constraints."""
from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.constraints.branch_search import MAX_NEAR_DISTANCE, BranchSearch
from liedyn.dynamics.constraints.constraints import (
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
    project_configuration,
    project_velocity_unchecked,
)
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked
from liedyn.dynamics.constraints.rank import (
    RANK,
    coordinate_scales,
    equation_rank,
    equation_weights,
    null_space,
    row_and_null_space,
    scaled_equations,
)
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, Place, ScenarioError, WarningLog, list_names
from liedyn.integrators.problem import ConstraintOptions, InitialValueProblem
from liedyn.io.scenarios.scenario import Motion, Scenario
from liedyn.kernels.simulation.signals import POSITION, VELOCITY
from liedyn.model.coupling_functions import evaluate
from liedyn.model.couplings import undefined_function
from liedyn.model.model import Model
from liedyn.simulation.name_binding import bind_rules, v_to_q_indices
from liedyn.simulation.prescribed_poses import motion_signals
from liedyn.simulation.signals.signal_compiler import SignalCompiler

# Initial states that satisfy couplings and mimic joints, before loops are closed ----------------------------------------

# A mimic joint and the follower of a nonlinear coupling follow their driver: the driver keeps its value, and no other joint
# moves. A driver moves only where its follower is given or prescribed. The other couplings change their coordinates by the
# minimum. Newton's method solves nonlinear couplings, or the search of `assemble` where the solution is far.

LoopMotions: TypeAlias = dict[str, tuple[Array, Array, Array]]        # pose, twist and its rate of driven loops, by name

_CONTRADICTION = 1e-9       # maximum residual of the couplings, relative to the maximum coordinate and to one unit. Rounding is
                            # 1e-15, and the closing of loops removes smaller residuals
_MAX_STEPS = 30             # of Newton's method; a chain of nonlinear couplings needs as many as its length
_ROUNDING_STEP = 1e-14      # [rad | m] of Newton's method
_NEAR = 0.1                 # distance of a neighbour at which ranks are generic [rad | lengths]


def solve_coupled_position(model: Model, q: Array, fixed_masks: tuple[Mask, ...],
                           constraint_motion: LoopMotions | None) -> Array:
    """Return the configuration (nq,) that satisfies mimic joints and couplings.

    fixed_masks   masks (nv,) of coordinates that must not move; the first for which a solution exists is used. Without loops,
                  those of the first mask that can also be kept are: drivers before followers, in the order of the robot

    Returns q if there is none.
    """
    for mask in fixed_masks:
        solution = _coupled_solution(model, q, mask, constraint_motion)
        if solution is None:
            continue
        fixed, candidates = mask, np.flatnonzero(fixed_masks[0] & ~mask).tolist() if model.has_only_couplings else []
        for k in sorted(candidates, key=lambda k: bool(model.follows[k])):
            wider = fixed.copy()
            wider[k] = True
            attempt = _coupled_solution(model, q, wider, constraint_motion) if not wider.all() else None
            if attempt is not None:
                fixed, solution = wider, attempt
        return solution
    return q


def _coupled_solution(model: Model, q: Array, mask: Mask, constraint_motion: LoopMotions | None) -> Array | None:
    """Return the configuration that satisfies mimic joints and couplings while the coordinates of the mask are fixed, or None.

    Far from q, it is the nearest that `assemble` finds: Newton's method may wind joints, and does not move where f' = 0.
    """
    if not model.function_couplings:
        return _newton(model, q, mask, constraint_motion, 1)
    solution = _newton(model, _with_function_followers(model, q, mask), mask, constraint_motion, _MAX_STEPS)
    search = BranchSearch(model, mask, constraint_motion)
    guess = _with_followers(model, q, mask)
    if not model.has_only_couplings or (solution is not None and search.distance(solution, guess) <= MAX_NEAR_DISTANCE):
        return solution
    try:
        if solution is None and not _can_close(model, _random_neighbour(model, guess), mask, constraint_motion):
            return None
    except ComputationError:                                   # beyond the domain of a function
        return None
    for limits in (True, False):
        with suppress(ComputationError):
            closed = BranchSearch(model, mask, constraint_motion, limits=limits).find(guess)[0].q
            exact = _newton(model, closed, mask, constraint_motion, _MAX_STEPS)
            return closed if exact is None or search.distance(exact, closed) > MAX_NEAR_DISTANCE else exact
    return solution


def _newton(model: Model, q: Array, mask: Mask, constraint_motion: LoopMotions | None, max_steps: int) -> Array | None:
    """Return the configuration to which steps from q lead; None if it does not satisfy mimic joints and couplings."""
    rows = [constraint.rows.start for constraint in model.constraints if constraint.type == "coupling"]
    tolerance = _CONTRADICTION * np.abs(q).max(initial=1.0)    # of the start: Newton's method may lead to large coordinates
    with suppress(ComputationError, np.linalg.LinAlgError):    # a state too far away, or beyond the domain of a function
        for _ in range(max_steps):
            residual = constraint_residual(model, q, constraint_motion=constraint_motion)
            step = _coupling_step(model, q, residual, (mask,), constraint_motion, np.abs(q).max(initial=1.0))
            if step is None:
                break
            q = integrate(model, q, step)
            if np.abs(step).max(initial=0.0) <= _ROUNDING_STEP:
                break
        residual = constraint_residual(model, q, constraint_motion=constraint_motion)[rows]
        return q if np.abs(residual).max(initial=0.0) <= tolerance else None
    return None


def _with_function_followers(model: Model, q: Array, mask: Mask) -> Array:
    """Return q with followers of nonlinear couplings that are not in the mask moved to their values, where these are finite."""
    q = q.copy()
    for _ in model.function_couplings:                         # each pass gives the followers of those that are right before it
        for coupling in model.function_couplings:
            value = float(evaluate(coupling.program, q[coupling.driver.q])[0])
            if not mask[coupling.follower.v] and np.isfinite(value):
                q[coupling.follower.q] = value
    return q


def _with_followers(model: Model, q: Array, mask: Mask) -> Array:
    """Return q with all followers that are not in the mask moved to their values; q if these are not finite."""
    followed, = follow_couplings_unchecked(model, q)
    fixed = np.array(v_to_q_indices(model))[mask & model.follows]
    followed = followed.copy()
    followed[fixed] = q[fixed]
    return followed if np.isfinite(followed).all() else q


def _random_neighbour(model: Model, q: Array) -> Array:
    """Return a configuration near q, at which the slopes of functions do not vanish together."""
    return integrate(model, q, _NEAR * coordinate_scales(model) * np.random.default_rng(0).standard_normal(model.nv))


def solve_coupled_velocity(model: Model, q: Array, v: Array, fixed_masks: tuple[Mask, ...],
                           constraint_motion: LoopMotions | None) -> Array:
    """Return the velocity (nv,) that satisfies mimic joints and couplings, see `solve_coupled_position`."""
    residual = constraint_velocity(model, q, v, constraint_motion=constraint_motion)
    step = _coupling_step(model, q, residual, fixed_masks, constraint_motion, np.abs(v).max(initial=1.0))
    return v if step is None else v + step


def _coupling_step(model: Model, q: Array, residual: Array, fixed_masks: tuple[Mask, ...], constraint_motion: LoopMotions | None,
                   size: float) -> Array | None:
    """Return the step (nv,) that removes the residual (nc,) of couplings; None if it is zero, or if fixed coordinates exclude it.

    size   scale of the coordinates that the step changes
    """
    couplings = [constraint for constraint in model.constraints if constraint.type == "coupling"]
    rows = [coupling.rows.start for coupling in couplings]
    residual = residual[rows]
    if not residual.any():
        return None
    C = constraint_jacobian(model, q, constraint_motion=constraint_motion)[rows]
    mimics, unit = {joint.name for joint in model.description.joints if joint.mimic}, coordinate_scales(model)
    functions = {coupling.name: coupling.follower.v for coupling in model.function_couplings}
    followers = np.array([model.v_index(coupling.name).start if coupling.name in mimics else functions.get(coupling.name, -1)
                          for coupling in couplings])
    for mask in fixed_masks:
        follows = np.array([k >= 0 and not mask[k] for k in followers])
        F, leaders = followers[follows], np.setdiff1d(np.arange(model.nv), followers[follows])
        # followers from their drivers: x_F = -S x_others - s
        S, s = (np.linalg.solve(C[np.ix_(follows, F)], y) for y in (C[np.ix_(follows, leaders)], residual[follows]))
        A = C[np.ix_(~follows, leaders)] - C[np.ix_(~follows, F)] @ S
        b = C[np.ix_(~follows, F)] @ s - residual[~follows]
        free, x = ~mask[leaders], np.zeros(len(leaders))
        scale, units = 1.0 / np.linalg.norm(C[~follows] * unit, axis=1), unit[leaders][free]
        x[free] = units * np.linalg.lstsq(scale[:, None] * A[:, free] * units, scale * b, rcond=RANK)[0]
        if np.abs(A @ x - b).max(initial=0.0) <= _CONTRADICTION * size:
            step = np.zeros(model.nv)
            step[leaders], step[F] = x, -S @ x - s
            return step
    return None


# driven loops -----------------------------------------------------------------------------------------------------------

_ROUNDING = 1e-9                           # smaller changes of the initial state cause no message
_NOTICEABLE = 1e-3                         # [rad | lengths], and of the maximum velocity: larger changes cause a warning
_VELOCITY_TOLERANCE = 1e-9                 # of velocities, relative to the maximum and to 1 rad/s, in lengths of their loop
_NEIGHBOUR_DISTANCES = (1e-2, 3e-2, 1e-3)  # distances of neighbouring configurations [rad | lengths of their loop]


def bind_constraints(scenario: Scenario, model: Model, compiler: SignalCompiler) -> ConstraintOptions | None:
    """Return the constraints of the scenario, and add the signals of driven loops to the compiler.

    Raises ScenarioError where the scenario names constraints that the robot does not have.
    """
    driven = tuple(constraint.name for constraint in model.constraints if constraint.driven)
    if scenario.constraint_motion and not driven:
        rule = scenario.constraint_motion[0]
        raise ScenarioError("the robot has no driven loop", place=rule.place, found=rule.pattern,
                            hint="set driven: true on a loop of the robot file")
    if not model.nc:
        if str(scenario.stabilization.place):
            raise ScenarioError("the robot has no constraints", place=scenario.stabilization.place,
                                expected="loops, couplings or a mimic in its file")
        return None
    rules = bind_rules(scenario.constraint_motion, driven, "driven loop")
    signals: list[int] = []
    for name in driven:
        motion = rules[name].value if name in rules else Motion()
        assert isinstance(motion, Motion)
        signals += motion_signals(compiler, f"closure {name}", motion)
    stabilization = scenario.stabilization
    return ConstraintOptions(np.array(signals, dtype=np.int64), stabilization.tolerance if stabilization.method == "projection"
                             else 0.0, stabilization.frequency if stabilization.method == "baumgarte" else 0.0)


def constraint_motions(model: Model, values: Array) -> LoopMotions | None:
    """Return {name: (T, V, dV)} for the functions of constraints, from the numbers (..., 24 driven) of the kernels."""
    motions: LoopMotions = {}
    for k, constraint in enumerate(constraint for constraint in model.constraints if constraint.driven):
        x, Q = values[..., 24 * k:24 * k + 24], np.eye(3) if constraint.turn is None else constraint.turn
        T = np.zeros((*x.shape[:-1], 4, 4))
        T[..., :3, :3] = Q @ x[..., :9].reshape(*x.shape[:-1], 3, 3) @ Q.T
        T[..., :3, 3], T[..., 3, 3] = x[..., 9:12] @ Q.T, 1.0
        V, dV = (np.concatenate([x[..., i:i + 3] @ Q.T, x[..., i + 3:i + 6] @ Q.T], axis=-1) for i in (12, 18))
        motions[constraint.name] = T, V, dV
    return motions or None


def constraint_motions_at(problem: InitialValueProblem, t: float) -> LoopMotions | None:
    """Return the motions of driven loops at time t; None without driven loops. Raises ScenarioError if a signal is not finite."""
    if problem.constraints is None or not len(problem.constraints.signals):
        return None
    constraints, work = problem.constrained_system(), problem.workspace()
    assert constraints is not None
    with np.errstate(all="ignore"):
        traced_module("kernels.simulation.right_hand_side").prescribe_loop_motion(problem.signals, constraints, np.float64(t),
                                                                                  work)
    if work.flag[0] >= 0.0:
        k = int(work.flag[0])
        raise ScenarioError(f"the {problem.signal_names[k]} is not finite at t = {t:g}", place=problem.signal_locations[k])
    return constraint_motions(problem.model, constraints.constraint_motion)


def close_initial_state(scenario: Scenario, problem: InitialValueProblem, tolerance: float, given_q: tuple[Mask, Mask],
                        given_v: tuple[Mask, Mask], on_reference: Mask, unchanged: Mask) -> tuple[Array, Array, WarningLog]:
    """Return the initial q and v that satisfy the constraints, and warnings about them.

    tolerance          of the constraints in the run, see `ConstraintOptions`
    given_q, given_v   masks (nv,) of coordinates that the scenario gives: all, and those without its `from` or keyframe, which
                       have priority. Changes of others cause no message
    on_reference       mask (nv,) of coordinates that start on the reference of a law
    unchanged          mask (nv,) of coordinates whose positions, and given velocities, do not change

    Prescribed coordinates do not change, either. Given ones and those on references do not change if the others can satisfy the
    constraints, or else at least those on references.
    Raises ScenarioError for constraints that cannot be satisfied, and for a singular initial configuration.
    """
    model, place = problem.model, Place(scenario.source, None, "initial")
    fixed, constraint_motion = problem.schedule.level == POSITION, constraint_motions_at(problem, 0.0)
    fixed_v = fixed | (problem.schedule.level == VELOCITY) | (unchanged & given_v[0])
    fixed = fixed | unchanged
    if not scenario.assemble:
        return problem.q, problem.v, _open_warnings(model, problem, constraint_motion)
    masks_q, masks_v = ((present | on_reference | always, stated | on_reference | always, on_reference | always, always)
                        for (present, stated), always in ((given_q, fixed), (given_v, fixed_v)))
    q = solve_coupled_position(model, problem.q, masks_q, constraint_motion)
    if undefined := undefined_function(model.function_couplings, q, model.q_names, 2):
        raise ScenarioError(undefined, place=place)
    residual = equation_weights(model) * constraint_residual(model, q, constraint_motion=constraint_motion)
    if np.abs(residual).max() > tolerance:                     # smaller residuals are within the tolerance of the run
        q = _close_position(model, q, masks_q, unchanged, constraint_motion, place)
    _check_rank(model, q, constraint_motion, place)
    v = solve_coupled_velocity(model, q, problem.v, masks_v, constraint_motion)
    v = _close_velocity(model, q, v, masks_v, unchanged & given_v[0], constraint_motion, place)
    noticeable = _NOTICEABLE * coordinate_scales(model)
    warnings = _projection_warnings(model, "position", difference(model, problem.q, q), given_q[1] | on_reference, noticeable)
    noticeable = noticeable * np.abs(v / coordinate_scales(model)).max(initial=0.0)
    warnings.extend(_projection_warnings(model, "velocity", v - problem.v, given_v[1] | on_reference, noticeable))
    return q, v, warnings


def _open_warnings(model: Model, problem: InitialValueProblem, constraint_motion: LoopMotions | None) -> WarningLog:
    warnings = WarningLog()
    for kind, x, per in (("constraint", constraint_residual(model, problem.q, constraint_motion=constraint_motion), ""),
                         ("velocity of constraint",
                          constraint_velocity(model, problem.q, problem.v, constraint_motion=constraint_motion), "/s")):
        r = int(np.argmax(np.abs(x)))
        if abs(x[r]) > _ROUNDING:
            unit = model.constraint_equation_units[r]
            warnings.add("initial-state-open",
                         f"the initial state violates the constraints: the {kind} {model.constraint_equation_names[r]} has a "
                         f"residual of {abs(x[r]):.3g} {unit}{per}")
    return warnings


# position ------------------------------------------------------------------------------------------------------------

def _close_position(model: Model, q: Array, masks: tuple[Mask, ...], unchanged: Mask,
                    constraint_motion: LoopMotions | None, place: Place) -> Array:
    *wishes, fixed = masks
    for fixed_mask in [*(mask for mask in wishes if _can_close(model, q, mask, constraint_motion)), fixed]:
        try:
            return _close(model, q, fixed_mask, constraint_motion)
        except ComputationError as error:
            reason = error
    names = {text: [model.v_names[i] for i in np.flatnonzero(mask)]
             for text, mask in (("prescribed at t = 0", fixed & ~unchanged), ("in initial.keep", unchanged))}
    hints = [f"{text}: {', '.join(each)}" for text, each in names.items() if each]
    raise ScenarioError(f"the initial state cannot be assembled: {reason}", place=place,
                        hint="; ".join(hints) or "give an initial.q or initial.guess that is nearer to a closed configuration",
                        ) from reason


def _can_close(model: Model, q: Array, fixed_mask: Mask, constraint_motion: LoopMotions | None) -> bool:
    """Return whether the other coordinates can satisfy the constraints while those of the mask are fixed."""
    A = constraint_jacobian(model, q, constraint_motion=constraint_motion)
    return bool(equation_rank(model, np.where(fixed_mask, 0.0, A)) == equation_rank(model, A))


def _close(model: Model, q: Array, fixed_mask: Mask, constraint_motion: LoopMotions | None) -> Array:
    """Return the configuration that satisfies the constraints, projected in the metric of the mass matrix.

    Newton's method may leave the branch of a rough guess or wind joints. Then it is the nearest configuration that `assemble`
    finds, beyond joint limits only if there is none within them.
    """
    within = BranchSearch(model, fixed_mask, constraint_motion)
    with suppress(ComputationError):
        near = project_configuration(model, q, prescribed=fixed_mask, constraint_motion=constraint_motion)
        if within.distance(near, q) <= MAX_NEAR_DISTANCE:
            return near
    try:
        closed = within.find(q)
    except ComputationError as reason:
        try:
            closed = BranchSearch(model, fixed_mask, constraint_motion, limits=False).find(q)
        except ComputationError:
            raise reason from None
    return project_configuration(model, closed[0].q, prescribed=fixed_mask, constraint_motion=constraint_motion)


def _check_rank(model: Model, q: Array, constraint_motion: LoopMotions | None, place: Place) -> None:
    """Raise an error at a singular configuration, where the motion branches and its continuation is not determined."""
    A = constraint_jacobian(model, q, constraint_motion=constraint_motion)
    rank, free = equation_rank(model, A), coordinate_scales(model) * null_space(model, A).T
    rng = np.random.default_rng(0)
    for away in _NEIGHBOUR_DISTANCES if len(free) else ():
        x = rng.standard_normal(len(free)) @ free
        x *= away / np.linalg.norm(x / coordinate_scales(model))
        try:
            near = project_configuration(model, integrate(model, q, x), constraint_motion=constraint_motion)
        except ComputationError:
            continue
        around = equation_rank(model, constraint_jacobian(model, near, constraint_motion=constraint_motion))
        if around > rank:
            raise ScenarioError("the initial configuration is singular: the motion is not unique", place=place,
                                found=f"{rank} independent equations of {_most_dependent(model, A)}",
                                expected=f"{around}, as in neighbouring configurations", hint="start slightly away from it")


def _most_dependent(model: Model, A: Array) -> str:
    """Return the constraint with the maximum coefficient in a linear relation among the rows."""
    _, relations = row_and_null_space(scaled_equations(model, A).T)
    r = int(np.argmax(np.abs(relations).sum(axis=0))) if relations.size else 0
    return next(constraint.name for constraint in model.constraints if constraint.rows.start <= r < constraint.rows.stop)


# velocity ------------------------------------------------------------------------------------------------------------

def _close_velocity(model: Model, q: Array, v: Array, masks: tuple[Mask, ...], unchanged: Mask,
                    constraint_motion: LoopMotions | None, place: Place) -> Array:
    for fixed_mask in masks:
        closed_v = project_velocity_unchecked(model, q, v, prescribed=fixed_mask, constraint_motion=constraint_motion)
        errors = np.abs(constraint_velocity(model, q, closed_v, constraint_motion=constraint_motion))
        speed = np.abs(closed_v / coordinate_scales(model)).max(initial=0.0)
        if (equation_weights(model) * errors).max() <= _VELOCITY_TOLERANCE * (1.0 + speed):
            return closed_v
    r = int(np.argmax(equation_weights(model) * errors))
    driven = [constraint.name for constraint in model.constraints if constraint.driven]
    names = [model.v_names[i] for i in np.flatnonzero(masks[-1])] or driven
    motion = "motion or kept velocity" if unchanged.any() else "motion"
    raise ScenarioError(f"the prescribed {motion} contradicts the constraint {model.constraint_equation_names[r]} at t = 0",
                        place=place,
                        found=f"velocities of {', '.join(names)} with a residual of {errors[r]:.3g}",
                        hint="prescribe fewer joints, or consistent motions")


_MAX_NAMES = 6                             # maximum number of coordinates in a warning


def _projection_warnings(model: Model, quantity: str, change: Array, stated: Mask, noticeable: Array) -> WarningLog:
    """Return a warning about coordinates whose `stated` values changed by more than `noticeable` (nv,), else an information.

    The other coordinates close the loops: the scenario does not state their values.
    """
    warnings, size = WarningLog(), np.abs(change)
    moved = np.flatnonzero(stated & (size > _ROUNDING))
    if not len(moved):
        return warnings
    per = "/s" if quantity == "velocity" else ""
    texts = [f"{model.v_names[k]} by {change[k]:.3g} {model.v_units[k]}{per}" for k in moved]
    message = f"the initial {quantity} was projected onto the constraints: {list_names(texts, _MAX_NAMES)}"
    if (size > noticeable)[moved].any():
        warnings.add("initial-state-projected", message)
    else:
        warnings.add("initial-state-rounded", message)
    return warnings
