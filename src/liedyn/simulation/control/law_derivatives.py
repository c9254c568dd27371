"""Derivatives of the signals, generalized forces and external wrenches of a scenario with respect to the state.

A change of the state is x = [dq; dv] (2 nv), dq in tangent coordinates.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.rhs import read_signal, signal_instructions
from liedyn.dynamics.derivatives import inverse_dynamics_derivatives
from liedyn.dynamics.finite_differences import extrapolated_derivative
from liedyn.dynamics.force_elements import undirected_damping_warnings
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.dynamics.manifold import integrate, tangent_gradient
from liedyn.errors import ComputationError, LiedynWarning, list_names
from liedyn.integrators.contact_forces import contact_jacobian, sliding_friction_slopes, stop_jacobian
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.segment import RightHandSide, evaluate_state
from liedyn.kernels.simulation.joint_laws import COMPUTED, FEEDBACK, GRAVITY, JointLaws
from liedyn.kernels.simulation.right_hand_side import MotionWorkspace
from liedyn.kernels.simulation.signals import MOVING_Q, RATE, STATE_Q, STATE_V, TORQUE, Signals
from liedyn.model.model import Model
from liedyn.model.spatial import skew
from liedyn.simulation.control.joint_control import force_limits, forces_before_gears
from liedyn.simulation.control.motors import gear_factors, gear_slope
from liedyn.simulation.control.rigid_joint_laws import (
    computed_torque_jacobian,
    gravity_compensation_jacobian,
    state_feedback_jacobian,
)
from liedyn.simulation.control.thrusts import thrust_range
from liedyn.simulation.expression_motion import StateProgram
from liedyn.simulation.name_binding import measured_gradient, measured_name, with_measured_values

# Derivatives of signals -------------------------------------------------------------------------------------------------

# Exact derivatives of signals, and of the time derivatives of the targets of pd laws, with respect to the state. For a signal
# f(t, s) of numbers s of the state, and its time derivative f' = f_t + sum_j f_j s_j',
#
#     df = sum_j f_j ds_j        df' = sum_j (D^2 f(u, e_j) ds_j + f_j ds_j'),        u = (1, s'),
#
# where f_j = Df(e_j) and D^2 f(u, e) = (D^2 f(u + e, u + e) - D^2 f(u - e, u - e)) / 4 are from jets of the program along
# straight lines.

def signal_gradient(problem: InitialValueProblem, k: int, t: float, q: Array, v: Array) -> Array:
    """Return (2 nv,) the derivative of signal k with respect to the state. Raises ComputationError where it does not exist."""
    model, out, by_numbers = problem.model, np.zeros(2 * problem.model.nv), np.zeros(problem.model.nq)
    program = StateProgram(problem, signal_instructions(problem.signals, k), t, q, v)
    if not program.values:
        return out
    for word, slope in program.slopes().items():
        operation, i = word & 255, word >> 8
        if not np.isfinite(slope):
            name = f"q({model.q_names[i % RATE]})" if operation in (STATE_Q, MOVING_Q) else f"v({model.v_names[i]})" \
                if operation == STATE_V else measured_name(model, program.signals, i)
            location = f"{problem.signal_locations[k]}: " if str(problem.signal_locations[k]) else ""
            raise ComputationError(f"{location}the {problem.signal_names[k]} has no derivative with respect to {name} at t = "
                                   f"{t:.6g} s")
        if operation in (STATE_Q, MOVING_Q):
            by_numbers[i % RATE] += slope
        elif operation == STATE_V:
            out[model.nv + i] += slope
        else:
            out += slope * measured_gradient(model, program.signals, i, q, v)
    out[:model.nv] += tangent_gradient(model, q, by_numbers)
    return out


def rate_gradient(problem: InitialValueProblem, k: int, t: float, q: Array, v: Array) -> Array:
    """Return (2 nv,) the derivative of the time derivative of signal k, a target, with respect to the state."""
    model, out = problem.model, np.zeros(2 * problem.model.nv)
    program = StateProgram(problem, signal_instructions(problem.signals, k), t, q, v)
    motions = [_moving_value(model, program.signals, word, q, v) for word in program.values]
    rates = np.array([rate for rate, _, _ in motions])
    for e, slope, (_, ds, d_rate) in zip(np.eye(len(rates)), program.slopes().values(), motions, strict=True):
        bend = program.jet(rates + e, 1.0)[2] - program.jet(rates - e, 1.0)[2]
        out += bend / 4 * ds + slope * d_rate
    return out


def _moving_value(model: Model, signals: Signals, word: int, q: Array, v: Array) -> tuple[float, Array, Array]:
    """Return the rate of a number that moves with the state, and the gradients of the number and of its rate."""
    i, unit = word >> 8, np.eye(2 * model.nv)
    if word & 255 == MOVING_Q:
        return v[i // RATE], unit[i // RATE], unit[model.nv + i // RATE]
    return signals.measured[i + 3], measured_gradient(model, signals, i, q, v), measured_gradient(model, signals, i + 3, q, v)


# Exact Jacobians of the control laws of joints with respect to the state, except task space -----------------------------

def add_joint_law_jacobian(problem: InitialValueProblem, t: float, q: Array, v: Array, out: Array,
                           integral: Array | None) -> Array:
    """Return `out` (nv, 2 nv), the derivative of the schedule's generalized forces, plus that of the joint laws.

    Rows of forces at their limits are derivatives of the limit. Raises ComputationError if the scenario cannot be evaluated.

    integral: (nv,) integrals of pid laws, None: zero.
    """
    laws, nv = problem.joint_laws, problem.model.nv
    assert laws is not None
    out, saturated, by_speed = out.copy(), np.zeros(nv, dtype=bool), np.zeros_like(out)
    geared = laws.gear_switch >= 0
    if laws.active_laws[COMPUTED] or (laws.limit[:nv] < np.inf).any() or geared.any():
        evaluated, saturated, high = saturated_forces(problem, t, q, v, integral)
        by_speed = _limit_jacobian(problem, laws, t, q, v, high)
    if laws.active_laws[GRAVITY]:
        out[laws.gravity, :nv] += gravity_compensation_jacobian(problem, q)[laws.gravity]
    if laws.active_laws[FEEDBACK]:
        has = laws.row[:nv] >= 0
        out[has] -= state_feedback_jacobian(problem, laws, t, q)[laws.row[:nv][has]]
    still = saturated & ~laws.driven
    out[still] = by_speed[still]
    for k in np.flatnonzero(geared & ~laws.driven):
        _add_gear_jacobian(laws, int(k), evaluated.tau[k], v, out)
    if laws.active_laws[COMPUTED]:
        out[laws.driven] += computed_torque_jacobian(problem, laws, t, q, v, evaluated, out)[laws.driven]
        driven = saturated & laws.driven
        out[driven] = by_speed[driven]
        for k in np.flatnonzero(geared & laws.driven):
            _add_gear_jacobian(laws, int(k), evaluated.tau[k], v, out)
    return out


def _add_gear_jacobian(laws: JointLaws, k: int, force: float, v: Array, out: Array) -> None:
    """Replace row k of `out`, the derivative of a force before the losses of a gear, by that of the force behind it."""
    driving, braking = gear_factors(laws.gear_loss[k], laws.gear_gain[k], v[k])
    factor = driving if force >= 0.0 else braking
    out[k] *= factor
    out[k, len(v) + k] += force / factor * gear_slope(laws.gear_loss[k], laws.gear_gain[k], force, v[k])


def saturated_forces(problem: InitialValueProblem, t: float, q: Array, v: Array,
                     integral: Array | None) -> tuple[MotionWorkspace, Mask, Mask]:
    """Return the evaluated laws, and (nv,) bool whether a force is at a limit, and whether at its maximum."""
    assert problem.joint_laws is not None
    evaluated = evaluate_state(problem.without_stops, t, q, v, integral=integral)          # limits do not apply to stop forces
    bottom, top = (x[:problem.model.nv] for x in force_limits(problem, problem.joint_laws.limit, t, q, v))
    tau = forces_before_gears(problem.joint_laws, evaluated.tau, v)
    slack = np.where(problem.joint_laws.gear_switch >= 0, _GEAR_ROUNDING * np.abs(tau), 0.0)
    return evaluated, (tau - slack <= bottom) | (tau + slack >= top), tau + slack >= top


def _limit_jacobian(problem: InitialValueProblem, laws: JointLaws, t: float, q: Array, v: Array, high: Mask) -> Array:
    """Return the derivative (nv, 2 nv) of the limits of generalized forces: of the maximum where `high`, else of the minimum.

    Only limits of motors depend on the state.
    """
    out = np.zeros((len(high), 2 * len(high)))
    for k in np.flatnonzero(laws.top[:len(high)] >= 0):
        out[k] = signal_gradient(problem, (laws.top if high[k] else laws.bottom)[k], t, q, v)
    return out


# Jacobians of all forces ------------------------------------------------------------------------------------------------

_GEAR_ROUNDING = 1e-12   # of a force whose losses in a gear are removed again
_STEP = 0.1              # rad, rad/s: first step of extrapolated differences


def law_jacobians(problem: InitialValueProblem, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Return `joint_force_jacobian` and `wrench_force_jacobian`."""
    return joint_force_jacobian(problem, t, q, v), wrench_force_jacobian(problem, t, q, v)


def joint_force_jacobian(problem: InitialValueProblem, t: float, q: Array, v: Array, integral: Array | None = None) -> Array:
    """Return the derivative (nv, 2 nv) of the generalized forces of torque signals, pd laws, `control` and stops.

    It is zero for prescribed coordinates. integral: (nv,) integrals of pid laws, None: zero.
    """
    schedule, nv = problem.schedule, problem.model.nv
    out = np.zeros((nv, 2 * nv))
    for k in np.flatnonzero(schedule.level == TORQUE):
        out[k] = signal_gradient(problem, schedule.signal[k], t, q, v)
        if schedule.target[k] >= 0:
            out[k] += schedule.kp[k] * signal_gradient(problem, schedule.target[k], t, q, v)
            if schedule.kd[k] != 0.0:
                out[k] += schedule.kd[k] * rate_gradient(problem, schedule.target[k], t, q, v)
            out[k, k] -= schedule.kp[k]
            out[k, nv + k] -= schedule.kd[k]
    laws, alone = problem.joint_laws, problem.without_stops
    if problem.law is not None:                                # limits of its torques have kinks
        motors, unlimited = problem.law.motor, alone if laws is None else replace(alone, joint_laws=None)
        out[motors] = _difference_jacobian(unlimited, t, q, v, integral, motors)
    if laws is not None and laws.task is not None:
        out[laws.driven] = _difference_jacobian(alone, t, q, v, integral, laws.driven)
    elif laws is not None and laws.slotine_li is not None:
        out[laws.driven] = _slotine_li_jacobian(problem, laws, t, q, v, integral)[laws.driven]
    elif laws is not None:
        out = add_joint_law_jacobian(problem, t, q, v, out, integral)
    return out if problem.stops is None else out + stop_jacobian(problem, q, v)


def _slotine_li_jacobian(problem: InitialValueProblem, laws: JointLaws, t: float, q: Array, v: Array,
                         integral: Array | None) -> Array:
    """Return the derivative (nv, 2 nv) of the generalized forces of `slotine_li_law`.

    That of the passive forces is exact: smoothed friction varies within the steps of differences.
    """
    model, nv, rest = problem.law_model, problem.model.nv, np.zeros(problem.model.nv)
    without = laws._replace(limit=np.full_like(laws.limit, np.inf), model_passive=np.zeros(1, dtype=bool))
    unlimited = replace(problem.without_stops, passive=False, joint_laws=without)
    out = _difference_jacobian(unlimited, t, q, v, integral, np.ones(nv, dtype=bool))
    if problem.passive and model.has_passive_forces:
        d, d_without = (inverse_dynamics_derivatives(model, q, v, rest, passive=passive) for passive in (True, False))
        out += np.hstack([d.dtau_dq - d_without.dtau_dq, d.dtau_dv - d_without.dtau_dv])
    if (laws.limit < np.inf).any():
        _, saturated, high = saturated_forces(problem, t, q, v, integral)
        out[saturated] = _limit_jacobian(problem, laws, t, q, v, high)[saturated]
    return out


def _difference_jacobian(problem: InitialValueProblem, t: float, q: Array, v: Array, integral: Array | None,
                         driven: Integers | Mask) -> Array:
    """Return the derivative (driven, 2 nv) of generalized forces of `elastic_joint_law` or `task_space_law`.

    It is computed by extrapolated differences, which are accurate to ten digits.
    """
    nv, rhs = problem.model.nv, RightHandSide(problem, problem.signals)

    def along(x: Array) -> Callable[[float], Array]:
        return lambda s: evaluate_state(problem, t, integrate(problem.model, q, s * x[:nv]), v + s * x[nv:], rhs,
                                        integral).tau[driven]
    return np.column_stack([extrapolated_derivative(along(x), _STEP)[0] for x in np.eye(2 * nv)])


def wrench_force_jacobian(problem: InitialValueProblem, t: float, q: Array, v: Array) -> Array:
    """Return the derivative (nv, 2 nv) of the generalized force sum J^T F of external wrenches F and contacts, at constant J.

    It contains the derivatives of their signals, of thrusts by state feedback, of the rotation of links relative to world axes,
    and of the contact law. It omits the change of J^T with each F constant in the frame of its link. A thrust at its limit does
    not change. Friction of joints that slide is added, which is not part of tau either.
    """
    model, schedule, nv, laws = problem.model, problem.schedule, problem.model.nv, problem.joint_laws
    thrusts = np.zeros(0)
    if laws is not None and len(problem.thrusters):
        thrusts = problem.split_wrench(evaluate_state(problem, t, q, v).wrench)[1]
    out = np.zeros((nv, 2 * nv)) if problem.contacts is None else contact_jacobian(model, problem.contacts, q, v)
    out[:, nv:] += np.diag(sliding_friction_slopes(problem, v))
    basis, point = schedule.force_basis.reshape(-1, 6), schedule.force_point.reshape(-1, 3)
    for j in np.flatnonzero((schedule.force_from <= t) & (t < schedule.force_until)):
        link = model.link_names[schedule.force_link[j]]
        J, F = jacobian(model, q, link), basis[j]
        dF = np.zeros((6, 2 * nv))
        if schedule.force_world[j]:
            back = link_pose(model, q, link)[:3, :3].T
            m, f = back @ F[:3], back @ F[3:]
            F = np.r_[m + np.cross(point[j], f), f]
            # d(R^T f) = (R^T f) x w for a rotation of the link by w
            turned = np.vstack([skew(m) + skew(point[j]) @ skew(f), skew(f)])
            x = read_signal(with_measured_values(model, problem.signals, q, v), schedule.force_signal[j], t, q, v)[0]
            dF[:, :nv] = x * turned @ J[:3]
        gradient = signal_gradient(problem, schedule.force_signal[j], t, q, v)
        if laws is not None and thrusts.size and schedule.force_actuator[j] >= 0:
            k = schedule.force_actuator[j]
            gradient = _thrust_gradient(problem, laws, k, t, q, float(thrusts[np.searchsorted(problem.thrusters, k)]), gradient)
        out += J.T @ (dF + np.outer(F, gradient))
    return out


def _thrust_gradient(problem: InitialValueProblem, laws: JointLaws, actuator: int, t: float, q: Array,
                     thrust: float, gradient: Array) -> Array:
    """Return the derivative (2 nv,) of a thrust with laws and limits. gradient: that of its signal."""
    k = problem.model.nv + actuator
    low, high = thrust_range(problem, actuator)
    if not low < thrust < high:
        return np.zeros_like(gradient)
    return gradient if laws.row[k] < 0 else gradient - state_feedback_jacobian(problem, laws, t, q)[laws.row[k]]


def passive_force_warnings(model: Model, q: Array, v: Array) -> list[LiedynWarning]:
    """Return warnings about passive forces that are not differentiable, or nearly so, at a state."""
    return [*_friction_warnings(model, v), *undirected_damping_warnings(model, q)]


def _friction_warnings(model: Model, v: Array) -> list[LiedynWarning]:
    """Return a warning if Coulomb friction, which is smoothed about rest, acts as a strong damper."""
    slow = []
    for joint in model.description.joints:
        if joint.name in model.joint_names and joint.coordinates:
            part = model.v_index(joint.name)
            slow += [name for name, coordinate, rate in zip(model.v_names[part], joint.coordinates, v[part], strict=True)
                     if coordinate.friction and abs(rate) < coordinate.friction_speed]
    if not slow:
        return []
    return [LiedynWarning("linearized-friction",
                          f"{list_names(slow, 4)}: Coulomb friction at low speed acts as a damper; passive=false omits all "
                          "passive forces")]
