"""Time constants of joint and contact forces, which limit the steps of explicit methods, and diagnosis of failed runs.

A force -D v decays at the rates of M^-1 D, a spring K oscillates at the roots of M^-1 K. An explicit method is stable while its
step times the maximum rate is below a bound, about 2.78 for rk4. Smoothed Coulomb friction counts with its secant: with too long
steps, it reverses the velocity in each step, and the joint chatters instead of coming to rest.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.batching.calls import undefined_element
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.rank import coordinate_scales, is_significant, row_and_null_space, scaled_equations
from liedyn.dynamics.derivatives import inverse_dynamics_derivatives
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.dynamics.singular_joints import describe_joints_without_inertia, joints_without_inertia
from liedyn.errors import ComputationError, LiedynWarning, Place
from liedyn.integrators.contact_forces import contact_coefficients, contact_forces, materials, stop_coefficients
from liedyn.integrators.problem import IMPLICIT, InitialValueProblem, Options, within_limit
from liedyn.integrators.run_state import Record
from liedyn.io.scenarios.scenario import Integrator, Scenario
from liedyn.joints.joint_model import Tree, tree_views
from liedyn.kernels.constraints.driver import CONTRADICTION, LOOP_OPEN, OUT_OF_RANGE, VANISHING_INERTIA
from liedyn.kernels.constraints.stages import WORST_EQUATION, WORST_RESIDUAL
from liedyn.kernels.simulation.joint_laws import COMPUTED
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    NOT_FINITE,
    SINGULAR,
    STEP_TOO_SMALL,
    ConstrainedSystem,
    MotionWorkspace,
)
from liedyn.kernels.simulation.signals import KNOTS, PROGRAM, TORQUE
from liedyn.model.model import Model

GAINS_LABEL = "pd gains"
STABILITY_LIMIT = 2.78         # of rk4: step times rate
_MIN_RELATIVE_INERTIA = 1e-10  # smaller relative inertias are reported as vanishing
_MAX_ROWS = 50                 # of a record that are evaluated


class RecordedSegment(Protocol):
    """A segment of a run: its problem and its rows."""

    @property
    def problem(self) -> InitialValueProblem:
        """The problem of the segment."""

    @property
    def record(self) -> Record:
        """The rows of the segment."""


class FastestMotion(NamedTuple):
    """Maximum rate at which forces act on a coordinate."""

    rate: float          # 1/s; 0 where no force depends on the state
    coordinate: str
    t: float
    contact: bool = False        # coordinate is the contact of a link
    causes: tuple[str, ...] = ()           # what acts on the coordinate at this rate

    @property
    def description(self) -> str:
        """Description such as "stiff joint elbow (friction and pd gains, time constant 1.1e-05 s)"."""
        time_constant = f"time constant {1 / self.rate:.1e} s"
        if self.contact:
            return f"stiff {self.coordinate} ({time_constant})"
        causes = " and ".join(filter(None, (", ".join(self.causes[:-1]), *self.causes[-1:])))
        return f"stiff joint {self.coordinate} ({causes}, {time_constant})"


def fastest_motion(problem: InitialValueProblem, t: float, q: Array, v: Array, with_load: bool = True) -> FastestMotion:
    """Return the maximum rate of the forces of joints, stops and contacts on coordinates without prescribed motion.

    with_load: each contact carries at least its share of the weight, and each stop at least the load of its joint.

    Driven closures are evaluated at their home poses.
    """
    forces = _force_coefficients(problem, t, q, v, with_load)
    if not (forces.damping.any() or forces.stiffness.any()):
        return FastestMotion(0.0, "", t)
    free, motions = forces.free, _unit_motions(problem, q, forces.free)
    if forces.touching is not None:
        motions = np.vstack([motions, forces.touching[:, free] @ motions])
    rates = []
    for kind, (x, power) in enumerate(((forces.damping, 2), (forces.stiffness, 1))):
        acted = np.flatnonzero(x)
        if acted.size and motions.size:
            u, s, _ = np.linalg.svd(np.sqrt(x[acted])[:, None] * motions[acted], full_matrices=False)
            rates.append((float(s[0] ** power), int(acted[np.argmax(np.abs(u[:, 0]))]), kind))    # s^2: an eigenvalue of M^-1 D
    rate, k, kind = max(rates, default=(0.0, 0, 0))
    if not rate:
        return FastestMotion(0.0, "", t)
    if k >= len(free):
        assert problem.contacts is not None
        return FastestMotion(rate, f"contact of {problem.model.link_names[problem.contacts.link[(k - len(free)) // 3]]}", t, True)
    causes = tuple(name for name, x in forces.parts[kind].items() if x[free[k]])
    return FastestMotion(rate, problem.model.v_names[free[k]], t, False, causes)


def fastest_motion_of_run(problem: InitialValueProblem, record: Record) -> FastestMotion:
    """Return the fastest motion along a recorded motion, evaluated at some of its rows."""
    return max(fastest_motion(problem, float(record.t[k]), record.q[k], record.v[k], False) for k in _some_rows(record))


def _some_rows(record: Record) -> Integers:
    return np.unique(np.linspace(0, len(record.t) - 1, _MAX_ROWS).astype(int))


class _ForceCoefficients(NamedTuple):
    """Damping and stiffness of the n free coordinates, then along the 3 m directions of m contacts.

    damping, stiffness  (n + 3 m,)
    free                (n,) indices of the free coordinates
    parts               damping and stiffness (nv,) for each cause
    touching            (3 m, nv) directions of contacts; None without contacts
    """

    damping: Array
    stiffness: Array
    free: Integers
    parts: tuple[dict[str, Array], dict[str, Array]]
    touching: Array | None


def _force_coefficients(problem: InitialValueProblem, t: float, q: Array, v: Array, with_load: bool) -> _ForceCoefficients:
    parts, free = _coefficients(problem, t, q, v, with_load)
    damping, stiffness = (sum((x[free] for x in kind.values()), np.zeros(len(free))) for kind in parts)
    if problem.contacts is None:
        return _ForceCoefficients(damping, stiffness, free, parts, None)
    touching, *more = contact_coefficients(problem.model, problem.contacts, q, v, with_load)
    return _ForceCoefficients(np.concatenate([damping, more[0]]), np.concatenate([stiffness, more[1]]), free, parts, touching)


def _coefficients(problem: InitialValueProblem, t: float, q: Array, v: Array, with_load: bool
                  ) -> tuple[tuple[dict[str, Array], dict[str, Array]], Integers]:
    """Return damping and stiffness (nv,) of all coordinates for each cause, and the indices of the free coordinates."""
    s, tree = problem.schedule, tree_views.py_func(problem.model.index, problem.model.constants)
    free, law = np.flatnonzero(~problem.prescribed), np.asarray(s.target) >= 0
    resist, spring = {}, {}
    if problem.passive:
        resist = {"damping": tree.damping, "friction": tree.friction / np.hypot(v, tree.friction_speed)}
        spring = {"spring": tree.stiffness}
        if problem.model.description.elements:
            resist["force element"], spring["force element"] = _element_coefficients(problem.model, tree, q, v)
    resist[GAINS_LABEL], spring[GAINS_LABEL] = np.where(law, s.kd, 0.0), np.where(law, s.kp, 0.0)
    if problem.joint_laws is not None and problem.joint_laws.slotine_li is not None:
        control = problem.joint_laws.slotine_li
        of_law = np.where(control.signal >= 0, control.damping, 0.0)
        resist["kd of slotine_li"], spring["kd of slotine_li"] = of_law, control.bandwidth * of_law
    for cause, (of_velocity, of_position) in _expression_coefficients(problem, t, q, v).items():
        resist[cause], spring[cause] = of_velocity, of_position
    if problem.stops is not None:
        resist["stop"], spring["stop"] = stop_coefficients(problem, q, v, with_load)
    return (resist, spring), free


def _element_coefficients(model: Model, tree: Tree, q: Array, v: Array) -> tuple[Array, Array]:
    """Return damping and stiffness (nv,) of force elements at each coordinate."""
    state = model.spanning_tree(), q, v, np.zeros(model.nv)
    with_elements, without = (inverse_dynamics_derivatives(*state, passive=passive, on_error="nan") for passive in (True, False))
    of_q, of_v = (np.nan_to_num(np.diagonal(x - y)) for x, y in zip(with_elements[:2], without[:2], strict=True))
    of_joints = tree.damping + tree.friction * tree.friction_speed**2 / np.hypot(v, tree.friction_speed)**3
    return np.maximum(of_v - of_joints, 0.0), np.maximum(of_q - tree.stiffness, 0.0)


def _expression_coefficients(problem: InitialValueProblem, t: float, q: Array, v: Array) -> dict[str, tuple[Array, Array]]:
    """Return damping and stiffness (nv,) of torques and external forces that are expressions of the state.

    Empty where they have no derivative.
    """
    s, nv, is_expression = problem.schedule, problem.model.nv, _expressions(problem)
    if problem.input_jacobian is None or not _has_expressions(problem):
        return {}
    alone = replace(problem.without_stops, joint_laws=None, law=None, contacts=None)
    try:
        of_torques, of_wrenches = problem.input_jacobian(alone, t, q, v)
    except ComputationError:
        return {}
    follows = np.asarray(s.target) >= 0
    of_torques[np.arange(nv), np.arange(nv)] += np.where(follows, s.kp, 0.0)             # those of the pd law are counted apart
    of_torques[np.arange(nv), np.arange(nv, 2 * nv)] += np.where(follows, s.kd, 0.0)
    of_torques[~is_expression] = 0.0
    return {cause: (np.maximum(-np.diagonal(J[:, nv:]), 0.0), np.maximum(-np.diagonal(J), 0.0))
            for cause, J in (("torque expression", of_torques), ("external force", of_wrenches))}


def _expressions(problem: InitialValueProblem) -> Mask:
    """Return (nv,) bool, the coordinates whose torques are expressions."""
    s = problem.schedule
    is_expression: Mask = (np.asarray(s.level) == TORQUE) & (problem.signals.kind[s.signal] == PROGRAM)
    return is_expression


def _has_expressions(problem: InitialValueProblem) -> bool:
    """Return whether a torque or an external force is an expression."""
    return bool(_expressions(problem).any() or (problem.signals.kind[problem.schedule.force_signal] == PROGRAM).any())


def _unit_motions(problem: InitialValueProblem, q: Array, free: Integers) -> np.ndarray:
    """Return columns of unit kinetic energy (times 2) that span the motions of the free coordinates: W W^T = M^-1."""
    Z = np.eye(len(free))
    if problem.constraints is not None:
        model = problem.model
        _, null = row_and_null_space(scaled_equations(model, constraint_jacobian(model, q))[:, free])
        Z = coordinate_scales(model)[free, None] * null.T
    M = Z.T @ mass_matrix_by_columns(problem.model, q)[np.ix_(free, free)] @ Z
    if not np.isfinite(M).all():
        return np.zeros((len(free), 0))
    w, U = np.linalg.eigh(M)
    floor = np.finfo(float).eps * w.max(initial=1e-300)
    motions: Array = Z @ (U / np.sqrt(np.maximum(w, floor)))
    return motions


def mass_matrix_by_columns(model: Model, q: Array) -> np.ndarray:
    """Return the mass matrix (nv, nv), computed by inverse dynamics, which a run compiles anyway.

    Compiling the kernel of the mass matrix would take 5 s.
    """
    tree, rest = model.spanning_tree(), np.zeros(model.nv)
    gravity = inverse_dynamics(tree, q, rest, rest, passive=False)
    return np.column_stack([inverse_dynamics(tree, q, rest, unit, passive=False) - gravity for unit in np.eye(model.nv)])


def worst_conditioned_motion(problem: InitialValueProblem, q: Array) -> tuple[float, str]:
    """Return the minimum inertia of a motion relative to that of its coordinates, and the coordinate that moves most in it.

    Prescribed coordinates are not considered. Returns 1 and an empty name if it cannot be computed.
    """
    free = np.flatnonzero(~problem.prescribed)
    if not (free.size and np.isfinite(q).all()):
        return 1.0, ""
    M = mass_matrix_by_columns(problem.model, q)[np.ix_(free, free)]
    if not np.isfinite(M).all():
        return 1.0, ""
    size = np.sqrt(np.maximum(np.diag(M), 1e-300))
    w, U = np.linalg.eigh(M / np.outer(size, size))
    return float(w[0]), problem.model.v_names[free[int(np.argmax(np.abs(U[:, 0])))]]


def suggest_inertia(model: Model, coordinate: str) -> str:
    """Return advice for a coordinate whose acceleration is not defined."""
    if not coordinate:
        return "give its bodies inertia, or the joint armature, or prescribe its motion"
    k = model.v_names.index(coordinate)
    joint = next(joint.name for joint in model.joints if joint.v.start <= k < joint.v.stop)
    return f"give its bodies inertia, or the joint armature, or prescribe its motion (joints.{joint}.prescribe.velocity=0)"


PRESCRIBE_IN_SCENARIO = "prescribe its motion (joints.{}.prescribe.velocity=0)"


def check_inertia(problem: InitialValueProblem, t: float = 0.0, prescribe: str = PRESCRIBE_IN_SCENARIO) -> None:
    """Raise ComputationError if a torque drives a joint that moves no inertia.

    t: start time of the motion [s]; prescribe: advice for joint {}.
    """
    names = joints_without_inertia(problem.model, problem.prescribed)
    if names:
        raise early_end_error(describe_joints_without_inertia(problem.model, names, prescribe), False, t)


def probable_cause(problem: InitialValueProblem, options: Options | None) -> tuple[str, bool]:
    """Return the cause of an early end that the initial state indicates, "" for none, and whether another method may succeed."""
    slight, coordinate = worst_conditioned_motion(problem, problem.q)
    if slight < _MIN_RELATIVE_INERTIA:
        return f"{coordinate} moves almost no inertia; {suggest_inertia(problem.model, coordinate)}", False
    if options is None or options.method != "rk4":
        return "", True
    fast = fastest_motion(problem, 0.0, problem.q, np.zeros(problem.model.nv))
    if fast.rate * options.step <= STABILITY_LIMIT:
        return "", True
    return (f"at rest, the forces at {fast.coordinate} have a time constant of {1 / fast.rate:.1e} s, too short for steps "
            f"of {options.step:g} s"), True


# Choice of the integrator, and check of its step ------------------------------------------------------------------------

# For stiff forces: within 1e-6 of the converged motion on robots of example-robot-data, in at most half of Radau's time.
_STIFF_INTEGRATOR = Integrator("rodas5p", rtol=1e-6, atol=1e-8)
# with constraints: it reuses Jacobians, which are expensive
_CONSTRAINED_INTEGRATOR = Integrator("Radau", rtol=1e-6, atol=1e-8)
_MARGIN = 0.7            # of the stability limit, since inertias change during the motion
_DISTINGUISHED = 10.0    # times atol: velocities for which a force must be equal; 1 was not enough for friction v / (|v| + atol)
_STEEP = 1e3             # times atol: friction speeds of contacts above it are resolved, by feet as far as 100 m from a joint
_MIN_ATOL = 1e-14


def choose_integrator(scenario: Scenario, problem: InitialValueProblem,
                      output_step: float) -> tuple[Integrator, list[LiedynWarning]]:
    """Return the integrator, and a warning if it is not the default. Friction is evaluated at rest, where it is stiffest.

    output_step  interval of outputs [s], which fixed steps divide into equal parts
    """
    default = scenario.integrator
    if default.named:
        return default, []
    fastest = fastest_motion(problem, 0.0, problem.q, np.zeros(problem.model.nv))
    step = longest_step(default.step, output_step)
    if fastest.rate * step <= _MARGIN * STABILITY_LIMIT:
        return default, []
    taken = _CONSTRAINED_INTEGRATOR if problem.solves_constraints else _STIFF_INTEGRATOR
    while taken.atol > _MIN_ATOL and unresolved_motion(problem, 0.0, problem.q, np.zeros(problem.model.nv), taken.atol):
        taken = replace(taken, atol=_smaller(taken.atol))
    message = (f"{fastest.description}; using {taken.method} (rtol {taken.rtol:g}, atol {taken.atol:g}) instead of rk4 with "
               f"{steps_description(step, default.step)}. Set integrator.method to override")
    return taken, [LiedynWarning("stiff-integrator", message)]


def integrator_options(integrator: Integrator) -> Options:
    """Return the options of the integrator of a scenario."""
    i = integrator
    return Options(i.method, i.step, i.rtol, i.atol, i.max_step, i.rho)


def find_unreliable_steps(integrator: Integrator, segments: Iterable[RecordedSegment]) -> list[LiedynWarning]:
    """Return a warning where steps are too long for the forces along a motion, or tolerances too large."""
    if integrator.method == "rk4":
        return _unstable_steps(integrator, segments)
    return _unresolved_forces(integrator, segments) if integrator.method in IMPLICIT else []


def _unstable_steps(integrator: Integrator, segments: Iterable[RecordedSegment]) -> list[LiedynWarning]:
    for segment in segments:
        step, fastest = longest_step(integrator.step,
                                     np.diff(segment.record.t)), fastest_motion_of_run(segment.problem, segment.record)
        if fastest.rate * step > STABILITY_LIMIT:
            return [LiedynWarning("stiff-step",
                                  f"{fastest.description} at t = {fastest.t:.6g} s: rk4 is not stable there with "
                                  f"{steps_description(step, integrator.step)}, and the motion is not reliable")]
    return []


def _unresolved_forces(integrator: Integrator, segments: Iterable[RecordedSegment]) -> list[LiedynWarning]:
    for segment in segments:
        problem, record = segment.problem, segment.record
        if not (_has_expressions(problem) or _has_steep_contact_friction(problem, integrator.atol)):
            continue
        for k in _some_rows(record):
            fastest = unresolved_motion(problem, float(record.t[k]), record.q[k], record.v[k], integrator.atol, False)
            if fastest is not None:
                advice = (f"set integrator.atol={_smaller(integrator.atol):g}" if integrator.atol > _MIN_ATOL
                          else "make the force change over larger velocities")
                return [LiedynWarning("unresolved-force",
                                      f"{fastest.description} at t = {fastest.t:.6g} s: the force changes over velocities that "
                                      f"atol {integrator.atol:g} does not resolve, and the motion is not reliable; {advice}")]
    return []


def _has_steep_contact_friction(problem: InitialValueProblem, atol: float) -> bool:
    return problem.contacts is not None and bool((materials(problem.contacts)[3] < _STEEP * atol).any())


def _smaller(atol: float) -> float:
    return max(float(f"{0.01 * atol:.0e}"), _MIN_ATOL)


def unresolved_motion(problem: InitialValueProblem, t: float, q: Array, v: Array, atol: float,
                      with_load: bool = True) -> FastestMotion | None:
    """Return the fastest motion if its force changes within velocities that an absolute tolerance does not distinguish, or None.

    An implicit step linearizes such a force, for example the friction -v / (|v| + 1e-9), at a velocity that is zero to the
    tolerance. The linear force holds any load, and the estimated error does not show it.
    """
    moved = v + _DISTINGUISHED * atol
    forces, moved_forces = (_force_coefficients(problem, t, q, x, with_load) for x in (v, moved))
    halved = (moved_forces.damping < 0.5 * forces.damping) | (moved_forces.stiffness < 0.5 * forces.stiffness)
    if not halved.any():
        return None
    fastest = fastest_motion(problem, t, q, v, with_load)
    return fastest if fastest_motion(problem, t, q, moved, with_load).rate < 0.5 * fastest.rate else None


def longest_step(step: float, output_step: ArrayLike) -> float:
    """Return the maximum step if steps are equal parts of the intervals between outputs; intervals at events are zero."""
    output_step = np.atleast_1d(output_step)
    output_step = output_step[output_step > 0.0]
    return float(np.max(output_step / np.ceil(output_step / step * (1 - 1e-9)), initial=0.0))


def steps_description(taken: float, requested: float) -> str:
    """Return a description of the steps, including the requested step if outputs shorten it by more than half."""
    cut = f" (the step of {requested:g} s is cut to output_step)" if taken <= 0.5 * requested else ""
    return f"steps of {taken:g} s{cut}"


# Messages about runs that ended early -----------------------------------------------------------------------------------

TOO_LARGE = 40             # code of a motion whose final state is not `within_limit`


def failure(problem: InitialValueProblem, code: int, t: float, ws: MotionWorkspace, constraints: ConstrainedSystem | None = None,
            options: Options | None = None) -> ComputationError:
    """Return the error of a run that ended early. `simulation.trials` tests which changes may help."""
    return early_end_error(*_reason(problem, code, t, ws, constraints, options), t)


def early_end_error(text: str, depends_on_method: bool, t: float) -> ComputationError:
    """Return the error of a run that ended at t. depends_on_method: another method may succeed."""
    error = ComputationError(text)
    error.at, error.depends_on_method = float(t), depends_on_method
    return error


def _reason(problem: InitialValueProblem, code: int, t: float, ws: MotionWorkspace, constraints: ConstrainedSystem | None,
            options: Options | None) -> tuple[str, bool]:
    """Return a description of the reason, and whether another method may succeed."""
    if code in (LOOP_OPEN, CONTRADICTION):
        return _constraint_reason(problem, code, t, constraints)
    if code in (BAD_SIGNAL, SINGULAR, VANISHING_INERTIA) and not within_limit(ws.q, ws.v):
        code = NOT_FINITE                                      # consequences are not informative
    if code == OUT_OF_RANGE:                                   # of a trial state of a SciPy method
        code = NOT_FINITE
    if code == BAD_SIGNAL:
        k = int(ws.flag[0])
        name = problem.signal_names[k] if k < len(problem.signal_names) else f"number {k}"
        place = problem.signal_locations[k] if k < len(problem.signal_locations) else Place()
        location = f"{place}: " if str(place) else ""
        return (f"{location}the signal of {name} is not a finite number at or soon after t = {t:.6g} s"
                f"{_end_of_table(problem, k)}"), False
    if code in (SINGULAR, VANISHING_INERTIA):
        loose = worst_conditioned_motion(problem, ws.q)[1]
        return (f"a joint's articulated inertia vanishes at or soon after t = {t:.6g} s: the acceleration of "
                f"{loose or 'a coordinate'} is undefined (a body without inertia about an axis, or a compound "
                f"joint in a singular position); {suggest_inertia(problem.model, loose)}"), False
    if code not in (NOT_FINITE, STEP_TOO_SMALL, TOO_LARGE):
        return f"the run ended early at t = {t:.6g} s (code {code})", False
    cause, depends_on_method = probable_cause(problem, options)
    causes = [cause] if cause else []
    if problem.sampled is not None and problem.sampled.measures and code != STEP_TOO_SMALL:
        causes.append("the gains may be too large for the rate of sampling")
        depends_on_method = depends_on_method and code != TOO_LARGE            # steps that end are accurate enough
    if code == NOT_FINITE and problem.passive and problem.model.description.elements:
        text = undefined_element(problem.model, ws.q)
        causes += [text] if text else []
    if problem.joint_laws is not None and problem.joint_laws.task is not None:
        causes.append("the target of task_space may be out of reach, or near a singular configuration")
    laws = problem.joint_laws
    if laws is not None and laws.active_laws[COMPUTED] and not problem.model.has_only_linear_couplings:
        causes.append("the mechanism may be at a singular configuration, where forces of computed_torque are not determined or "
                      "unbounded: choose a motion that avoids it")
    failure = {NOT_FINITE: "the motion is no longer finite soon after", STEP_TOO_SMALL: "the step size became too small at",
               TOO_LARGE: "a coordinate or its rate is beyond 1e12 (rad or m) at"}[code]
    worst = _worst_coordinates(problem.model.v_names, ws) + _deepest_contact(problem, ws)
    why = f": {'; or '.join(causes)}" if causes else ""
    see = "; see docs/running.md#runs-that-end-early" if code != STEP_TOO_SMALL else ""
    return f"{failure} t = {t:.6g} s{worst}{why}{see}", depends_on_method


def _end_of_table(problem: InitialValueProblem, k: int) -> str:
    """Return a text about the range of a table, if signal k is one that ends."""
    signals = problem.signals
    if not 0 <= k < len(signals.kind) or signals.kind[k] != PROGRAM:
        return ""
    words = signals.code[signals.first[k]:signals.first[k] + signals.count[k]]
    axes = (words[words & 255 == KNOTS] >> 8).tolist()
    ends = [f"{signals.literals[axis + 2]:g} to {signals.literals[axis + 3]:g}" for axis in axes
            if np.isfinite(signals.literals[axis + 2])]
    return f": its table is from {' and from '.join(ends)}; the key outside or period of the table continues it" if ends else ""


def _worst_coordinates(names: tuple[str, ...], ws: MotionWorkspace) -> str:
    """Return a description of the coordinate with the maximum force, whose gain may be too large, and of the fastest one."""
    forces, speeds = (np.nan_to_num(np.abs(x), nan=0.0, posinf=np.inf) for x in (ws.tau, ws.v))
    sentences = [f"{text} {names[int(np.argmax(sizes))]}" for text, sizes in (("the maximum force was at", forces),
                                                                        ("the fastest coordinate was", speeds)) if sizes.any()]
    return "".join(f"; {sentence}" for sentence in sentences)


def _deepest_contact(problem: InitialValueProblem, ws: MotionWorkspace) -> str:
    """Return a description of the deepest contact: a robot that starts below the ground is ejected."""
    if problem.contacts is None or not within_limit(ws.q, ws.v):
        return ""
    at = contact_forces(problem.model, problem.contacts, ws.q[None], ws.v[None])
    k = int(np.argmax(at.depth[0]))
    depth, link = at.depth[0, k], problem.model.link_names[problem.contacts.link[k]]
    return f"; the contact of {link} had a penetration of {depth:.3g} m" if depth > 0.0 else ""


def _constraint_reason(problem: InitialValueProblem, code: int, t: float,
                       constraints: ConstrainedSystem | None) -> tuple[str, bool]:
    assert constraints is not None
    model, row, size = problem.model, int(constraints.statistics[WORST_EQUATION]), float(constraints.statistics[WORST_RESIDUAL])
    name = next(constraint.name for constraint in model.constraints if constraint.rows.start <= row < constraint.rows.stop)
    prescribed = _prescribed_of_constraint(problem, name)
    at = f"at or soon after t = {t:.6g} s"
    if code == CONTRADICTION:
        return (f"the prescribed motion contradicts the constraint {name} {at}: its equation "
                f"{model.constraint_equation_names[row]} has a residual acceleration of {size:.3g}; prescribed: "
                f"{', '.join(prescribed)} (prescribe fewer joints, or consistent "
                "motions)"), False
    equation = model.constraint_equation_names[row]
    open_ = f"the constraint {name} cannot be closed {at}: the residual of {equation} remains {size:.3g}"
    if prescribed:
        names = ", ".join(prescribed)
        return f"{open_}; prescribed: {names} (prescribe fewer joints, or a motion that the mechanism allows)", False
    return f"{open_} (a mechanism may jam or snap through in a singular configuration)", True


def _prescribed_of_constraint(problem: InitialValueProblem, name: str) -> list[str]:
    """Return the prescribed coordinates that affect a constraint, or all prescribed ones, and the driven loops."""
    model, prescribed = problem.model, problem.prescribed
    A = scaled_equations(model, constraint_jacobian(model, problem.q))[model.constraint(name).rows]
    felt = prescribed & is_significant(np.abs(A).max(axis=0))
    among = felt if felt.any() else prescribed
    driven = [constraint.name for constraint in model.constraints if constraint.driven]
    return [model.v_names[i] for i in np.flatnonzero(among)] + [f"the motion of closure {constraint}" for constraint in driven]
