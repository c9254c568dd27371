"""The laws `gravity_compensation`, `state_feedback` and `computed_torque` for rigid joints, and derivatives of their forces."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.constraints.constrained_derivatives import ConstrainedHybridDerivatives, constrained_hybrid_derivatives
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.constraints.rank import RANK, equation_rank, null_space
from liedyn.dynamics.derivatives import (
    HybridDerivatives,
    d_difference,
    hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.dynamics.scales import model_scales
from liedyn.errors import Place, ScenarioError, list_names
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Column, Signal
from liedyn.kernels.simulation.joint_laws import COMPUTED, GRAVITY, JointLaws
from liedyn.kernels.simulation.right_hand_side import MotionWorkspace
from liedyn.model.model import Model
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.control_law import LawContext, controlled_coordinates, error_gains, not_controllable_error
from liedyn.simulation.control.thrusts import input_name, reduced_thrust_columns, setpoint_thrusts
from liedyn.simulation.name_binding import bind_joints, find_indices, normalize_quaternions, write_values
from liedyn.simulation.signals.signal_compiler import SignalPurpose
from liedyn.simulation.trajectory_columns import coordinate_columns, current_names, thrust_names

# of the maximum force at the setpoint, or of the weight and its moment for the length of the robot: setpoints are often rounded
_EQUILIBRIUM_TOLERANCE = 1e-6


# gravity compensation ---------------------------------------------------------------------------------------------------

def bind_gravity_compensation(context: LawContext, laws: JointLaws) -> JointLaws:
    """Return the laws with gravity compensation for the coordinates that the law drives."""
    return laws._replace(gravity=laws.gravity | (controlled_coordinates(context) & ~context.prescribed))


def gravity_compensation_jacobian(problem: InitialValueProblem, q: Array) -> Array:
    """Return the derivative (nv, nv) of the gravity force with respect to q; of loops for changes that satisfy them."""
    model, rest = problem.law_model, np.zeros(problem.model.nv)
    if not model.has_only_linear_couplings:
        return constrained_hybrid_derivatives(model, q, rest, rest, rest, problem.held_at_rest, passive=False).dy_dq
    by_q: Array = inverse_dynamics_derivatives(model.spanning_tree(), q, rest, rest, passive=False).dtau_dq
    if not model.nc:
        return by_q
    N = model.elimination().projection
    return N.T @ by_q @ N


# state feedback ---------------------------------------------------------------------------------------------------------

def bind_state_feedback(context: LawContext, laws: JointLaws) -> JointLaws:
    """Return the laws with the state feedback of the scenario.

    Raises ScenarioError for a gain that does not fit the robot. Warns of a setpoint that is not an equilibrium with the law's
    forces.
    """
    control, model = context.control, context.model
    gain, rows = _ordered_gain(context)
    laws = laws._replace(gain_signal=_gain_signals(context, gain))
    if gain.shape != (len(rows), 2 * model.nv):
        names = list_names([input_name(model, k) for k in rows], 6)
        raise ScenarioError("the gain matrix does not fit the robot", place=control.place.at("gain"),
                            found=f"{gain.shape[0]} rows of {gain.shape[1]} numbers",
                            expected=f"{len(rows)} rows (forces of {names}) of {2 * model.nv} numbers (q, then v, of all "
                                     f"{model.nv} coordinates)")
    if control.setpoint_file:
        q, v = model.neutral(), np.zeros(model.nv)
        laws = laws._replace(setpoint_signal=_setpoint_signals(context, rows))
        return with_feedback(context, laws, rows, gain, (q, v), np.zeros(len(rows)))
    q, v = setpoint = setpoint_of(context)
    computing = context.law_model
    force = inverse_dynamics(computing, q, v, np.zeros(model.nv), passive=context.passive)
    scales, is_thrust = model_scales(model).force_scales(model.v_units), rows >= model.nv
    size, thrusts, drives = np.abs(force) / scales, context.thrusts.copy(), rows[is_thrust] - model.nv
    undriven = ~laws.prescribed                                     # coordinates that neither rows nor prescribed motions drive
    undriven[rows[~is_thrust]] = False
    if thrusts.any() or len(drives):
        columns = reduced_thrust_columns(computing, q)
        force = force - columns @ thrusts                               # the constant thrusts of the scenario act, too
        added = setpoint_thrusts(columns[:, drives], force, undriven, scales)
        force = force - columns[:, drives] @ added
        thrusts[drives] += added
    missing = np.where(undriven, np.abs(force) / scales, 0.0)
    worst = int(np.argmax(missing))
    if missing[worst] > _EQUILIBRIUM_TOLERANCE * max(1.0, size.max()):
        context.compiler.warnings.add(
            "setpoint-not-at-rest",
            f"the setpoint is not an equilibrium: {model.v_names[worst]} requires {force[worst]:.4g} "
            f"{model.tau_units[worst]}, which the law does not supply", place=control.place.at("setpoint"))
    setpoint_values = np.empty(len(rows))
    setpoint_values[~is_thrust], setpoint_values[is_thrust] = force[rows[~is_thrust]], thrusts[drives] - context.thrusts[drives]
    _warn_of_thrust_limits(context, laws, drives, thrusts[drives])
    return with_feedback(context, laws, rows, gain, setpoint, setpoint_values)


def _gain_signals(context: LawContext, gain: Array) -> Integers:
    """Return the signals (2 nv rows,) of the gains in a file with times, -1 for those that it does not have; empty without."""
    control, compiler = context.control, context.compiler
    signals = np.full(gain.shape, -1)
    if not control.gain_file:
        return signals[:0].ravel()
    model, place = context.model, control.place.at("gain")
    states = [f"{kind}.{name}" for kind in "qv" for name in model.v_names]
    for i, row in enumerate(control.rows):
        for column in control.columns:
            if f"{row}/{column}" in control.gain_titles:
                signals[i, states.index(column)] = compiler.add(Column(control.gain_file, f"{row}/{column}", place=place),
                                                                SignalPurpose(f"gain {row}/{column}"))
    return signals.ravel()


def _setpoint_signals(context: LawContext, rows: Integers) -> Integers:
    """Return the signals (nq + nv + rows,) of a setpoint in a file: q, v, generalized forces and thrusts.

    Raises ScenarioError for a robot with ball or free joints, whose orientations are not interpolated, and for missing columns.
    """
    control, compiler, model = context.control, context.compiler, context.model
    place = control.place.at("setpoint.csv")
    for joint in model.joints:
        if joint.screws is None:
            raise ScenarioError("a setpoint from a file requires joints with one coordinate: "
                                f"{joint.name} is a {joint.type} joint", place=place,
                                expected="a setpoint with numbers, or ld.rollout")

    def add(name: str, purpose: SignalPurpose) -> int:
        return compiler.add(Column(control.setpoint_file, name, "linear", place=place), purpose)
    forces = (*coordinate_columns(model, "tau"), *thrust_names(model))
    return np.array([*(add(f"q.{name}", replace(compiler.joint_purpose("target", k), derivatives=0))
                       for k, name in enumerate(model.q_names)),
                     *(add(f"v.{name}", SignalPurpose(f"velocity of {name}")) for name in model.v_names),
                     *(add(forces[k], SignalPurpose(f"setpoint of {forces[k]}")) for k in rows)], dtype=np.int64)


def _warn_of_thrust_limits(context: LawContext, laws: JointLaws, actuators: Integers, thrusts: Array) -> None:
    """Warn of thrusts at the setpoint (m,) that exceed the limits of their actuators."""
    for j, thrust in zip(actuators, thrusts, strict=True):
        k = context.model.nv + j
        if laws.top[k] < 0:
            continue
        low, high = (context.compiler.constant_value(int(x[k])) or 0.0 for x in (laws.bottom, laws.top))
        if not low <= thrust <= high:
            context.compiler.warnings.add(
                "setpoint-not-at-rest", f"the setpoint is not an equilibrium: it requires a {input_name(context.model, k)} of "
                f"{thrust:.4g} N, and its limits are {low:g} and {high:g} N", place=context.control.place.at("setpoint"))


def with_feedback(context: LawContext, laws: JointLaws, rows: Integers, gain: Array, setpoint: tuple[Array, Array],
                  force: Array) -> JointLaws:
    """Return the laws with tau = force - gain [q (-) q_0; v - v_0] for the inputs `rows` that are not prescribed now.

    force: (rows,) generalized forces and thrusts at the setpoint.
    """
    row = np.full(len(laws.row), -1)
    row[rows] = np.arange(len(rows))
    row[:context.model.nv][context.prescribed] = -1
    return laws._replace(row=row, gain=gain.reshape(-1), setpoint_q=setpoint[0], setpoint_v=setpoint[1], setpoint_tau=force,
                         feedback=np.zeros(len(rows)))


def setpoint_of(context: LawContext) -> tuple[Array, Array]:
    """Return q and v of the setpoint of the law."""
    control, model = context.control, context.model
    q, v = model.neutral(), np.zeros(model.nv)
    rules = write_values(q, control.setpoint_q, model, model.q_index)
    rates = write_values(v, control.setpoint_v, model, model.v_index)
    context.compiler.warnings.extend(normalize_quaternions(q, rules, model))
    if model.nc:
        closed = follow_couplings(model, q, v)
        for written, x, values, index in (rules, q, closed[0], model.q_index), (rates, v, closed[1], model.v_index):
            for name, rule in written.items():
                if not np.allclose(x[index(name)], values[index(name)], rtol=_EQUILIBRIUM_TOLERANCE, atol=_EQUILIBRIUM_TOLERANCE):
                    raise ScenarioError("the setpoint contradicts a coupling of the robot", place=rule.place,
                                        found=x[index(name)].tolist(), expected=values[index(name)].tolist())
        q, v = closed
    return q, v


def _ordered_gain(context: LawContext) -> tuple[Array, Integers]:
    """Return the gain with one column for each deviation, and the inputs of its rows."""
    control, model = context.control, context.model
    if control.rows:
        return _named_gain(context)
    mask = controlled_coordinates(context)
    rows = np.flatnonzero(mask)
    if control.joints:                                           # rows in the order in which the joints are named
        order = [k for rule in control.joints for name in bind_joints((rule,), model)
                 for k in range(model.v_index(name).start, model.v_index(name).stop) if mask[k]]
        rows = np.array(list(dict.fromkeys(order)))
    return np.array(control.gain), rows


def _named_gain(context: LawContext) -> tuple[Array, Integers]:
    """Return the same for a gain whose rows and columns are named."""
    control, model = context.control, context.model
    place = control.place.at("gain")
    values = np.zeros((len(control.rows), len(control.columns))) if control.gain_file else control.gain
    full, rows = expand_gain(model, control.rows, control.columns, values, place)
    joints = rows[rows < model.nv]
    mask = controlled_coordinates(context) if len(joints) else np.zeros(model.nv, dtype=bool)
    for k in joints:
        if not mask[k]:
            joint = next(joint for joint in model.joints if joint.v.start <= k < joint.v.stop)
            if joint.type == "free" or context.always_prescribed[k]:
                raise not_controllable_error(joint, place)
            raise ScenarioError(f"joint {joint.name} is not among the joints that the law drives", place=place,
                                expected="`joints` of the law, or `actuated` of the robot file, with this joint")
    return full, rows


def expand_gain(model: Model, rows: Sequence[str], columns: Sequence[str], gain: ArrayLike,
                place: Place) -> tuple[Array, Integers]:
    """Return a gain with rows tau.…, thrust.… and columns q.…, v.… as a matrix (rows, 2 nv), and the inputs of its rows.

    Raises ScenarioError for an unknown or repeated name.
    """
    names = [f"{kind}.{name}" for kind in "qv" for name in model.v_names]
    at = find_indices(columns, names, "column of a gain", place)
    names_of_inputs = (*coordinate_columns(model, "tau"), *thrust_names(model))
    for name in rows:
        if name.startswith("a."):
            raise ScenarioError("a row of a gain is the force of a joint or a thrust", place=place, found=name,
                                expected="tau.… or thrust.…")
    inputs = find_indices(map(current_names(model), rows), names_of_inputs, "row of a gain", place)
    full = np.zeros((len(rows), 2 * model.nv))
    full[:, at] = np.array(gain)
    return full, np.array(inputs)


def state_feedback_jacobian(problem: InitialValueProblem, laws: JointLaws, t: float, q: Array) -> Array:
    """Return the derivative (rows, 2 nv) of the gain times the deviation, which the forces contain with a minus sign."""
    def at_time(constant: Array, signal: Integers) -> Array:
        x = constant.copy()
        for k in np.flatnonzero(signal >= 0):
            x[k] = read_signal(problem.signals, int(signal[k]), t, q, np.zeros(nv))[0]
        return x
    model, nv = problem.model, problem.model.nv
    gain = at_time(laws.gain, laws.gain_signal).reshape(-1, 2 * nv)
    setpoint = at_time(laws.setpoint_q, laws.setpoint_signal[:model.nq])
    return np.hstack([gain[:, :nv] @ d_difference(model, setpoint, q)[1], gain[:, nv:]])


# computed torque --------------------------------------------------------------------------------------------------------

def bind_computed_torque(context: LawContext, laws: JointLaws) -> JointLaws:
    """Return the laws with computed torque for the joints that have a desired motion."""
    driven, signal = bind_desired_motions(context, laws)
    return laws._replace(driven=driven, signal=signal, prescribed=laws.prescribed | driven, gains=error_gains(context.control))


def bind_desired_motions(context: LawContext, laws: JointLaws) -> tuple[Mask, Integers]:
    """Return the mask (nv,) of the coordinates that a law drives now, and the signals (nv,) of desired motions, -1: none.

    Raises ScenarioError for a joint that cannot follow a motion.
    """
    control, model, compiler, prescribed = context.control, context.model, context.compiler, context.always_prescribed
    for rule in control.motion:
        if rule.pattern in model.joint_names:
            joint = model.joint(rule.pattern)
            if prescribed[joint.v].any():
                raise not_controllable_error(joint, rule.place)
            if joint.v.stop - joint.v.start != 1:
                raise ScenarioError(f"joint {joint.name} has {joint.v.stop - joint.v.start} coordinates: {control.law} "
                                    "requires joints with one coordinate", place=rule.place)
    followers = set(model.elimination().follower) if model.has_only_linear_couplings else set()
    for rule in control.motion:
        if rule.pattern in model.joint_names and model.v_index(rule.pattern).start in followers:
            raise ScenarioError(f"joint {rule.pattern} follows other joints by a coupling", place=rule.place,
                                expected="a motion of the joints " + list_names(model.independent, 6))
    actuated = {*(model.actuated or model.joint_names), *(rule.pattern for rule in control.motion)}
    names = [joint.name for joint in model.joints if joint.name in actuated
             and joint.v.stop - joint.v.start == 1 and not prescribed[joint.v.start] and joint.v.start not in followers]
    bound = bind_joints(control.motion, model, names)
    if not bound:
        raise ScenarioError("the law drives no joint", place=control.place,
                            expected="a motion of at least one joint that is not prescribed")
    driven, signal = np.zeros(model.nv, dtype=bool), np.full(model.nv, -1)
    for name, rule in bound.items():
        k = model.v_index(name).start
        purpose = replace(compiler.joint_purpose("position", k), name=f"motion of {name}")
        assert isinstance(rule.value, Signal)
        driven[k], signal[k] = not laws.prescribed[k], compiler.add(rule.value, purpose)
    return driven, signal


def check_joints_of_loop_laws(problem: InitialValueProblem, place: Place) -> None:
    """Raise ScenarioError if forces of a law are not determined in the initial configuration: see `undetermined_law`."""
    reason = undetermined_law(problem, 0.0, problem.q)
    if reason is not None:
        raise ScenarioError(reason[0], place=place, found=reason[1], expected=reason[2])


def undetermined_law(problem: InitialValueProblem, t: float, q: Array) -> tuple[str, str, str] | None:
    """Return why forces of a law are not determined in a configuration of a robot with loops: message, found and expected.

    Accelerations of driven joints must be independent. Gravity compensation holds the robot at rest, so its joints must also
    determine the motion of all others.
    """
    model, laws = problem.law_model, problem.joint_laws
    if laws is None or problem.constraints is None or model.has_only_linear_couplings:
        return None
    A = constraint_jacobian(model, q, constraint_motion=constraint_motions_at(problem, t))
    for law, key, acts, mask in (("gravity compensation", "joints", laws.active_laws[GRAVITY], problem.held_at_rest),
                                 ("computed torque", "joints in `motion`", laws.active_laws[COMPUTED], laws.prescribed)):
        if not acts:
            continue
        rank, free = int(equation_rank(model, A)), int(equation_rank(model, np.where(mask, 0.0, A)))
        names = ", ".join(name for name, known in zip(model.v_names, mask, strict=True) if known)
        if free < rank:
            moves = np.abs(null_space(model, A)).max(axis=1, initial=0.0) > RANK
            fixed = list_names([name for name, known in zip(model.v_names, mask & ~moves, strict=True) if known], 6)
            return (f"{law} drives joints that depend on each other, or cannot move",
                    f"{names}, {rank - free} more than the loops leave independent" + f"; {fixed} cannot move" * bool(fixed),
                    f"fewer {key}, prescribed or locked joints")
        remaining = int(model.nv - np.count_nonzero(mask)) - free
        if law == "gravity compensation" and remaining:
            freedom = "1 degree of freedom remains" if remaining == 1 else f"{remaining} degrees of freedom remain"
            return f"{law} does not hold the robot", f"{names}; {freedom}", "joints that determine the positions of all others"
    return None


def computed_torque_jacobian(problem: InitialValueProblem, laws: JointLaws, t: float, q: Array, v: Array, inputs: MotionWorkspace,
                             other_forces: Array) -> Array:
    """Return the derivative (nv, 2 nv) of the forces that computed torque computes.

    laws          of the problem, with computed torque
    inputs        the evaluated state
    other_forces  (nv, 2 nv) derivative of the forces of coordinates that the law does not drive
    """
    model, nv = problem.law_model, problem.model.nv
    a, du, driven = inputs.a.copy(), other_forces.copy(), np.flatnonzero(laws.driven)
    du[laws.prescribed] = 0.0
    for k in driven:
        r, dr, ddr = read_signal(problem.signals, laws.signal[k], t, q, v)
        a[k] = ddr + laws.gains[1] * (dr - v[k]) + laws.gains[0] * (r - q[problem.schedule.q_of_v[k]])
        du[k, k], du[k, nv + k] = -laws.gains[0], -laws.gains[1]
    derivatives: Callable[..., HybridDerivatives | ConstrainedHybridDerivatives] = hybrid_dynamics_derivatives
    if not model.has_only_linear_couplings:
        derivatives = constrained_hybrid_derivatives
    elif model.nc:                                         # the state of a run satisfies couplings up to its tolerance
        q, v = follow_couplings(model, q, v)
        a = model.elimination(laws.prescribed).projection @ a
    d = derivatives(model, q, v, a, inputs.tau, laws.prescribed, passive=problem.passive).split()
    return np.asarray(np.hstack([d.dtau_dq, d.dtau_dv]) + d.dtau_du @ du)
