"""Equilibria by Newton's method on the configuration manifold, and assembled states from values by joint name."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liedyn.analysis.linear_system import LinearSystem
from liedyn.analysis.operating_point import (
    LinearizationSetup,
    OperatingPoint,
    instant,
    partition_coordinates,
    prepare,
    state_at,
    static_setup,
    with_fixed_inputs,
    with_hybrid_dynamics,
)
from liedyn.analysis.tangent_system import linear_system
from liedyn.arrays import Array, ArrayLike, Mask, Patterns, short
from liedyn.codegen.rhs import depends_on_time
from liedyn.dynamics.constraints.assembly import Assembly, assemble, assemblies, with_degenerate
from liedyn.dynamics.constraints.constraints import constraint_velocity, project_configuration, project_velocity_unchecked
from liedyn.dynamics.constraints.mobility import survey_mobility
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights
from liedyn.dynamics.joint_values import with_joint_values
from liedyn.dynamics.manifold import difference, integrate
from liedyn.dynamics.scales import model_scales
from liedyn.errors import (
    ComputationError,
    ConfigurationError,
    LiedynWarning,
    ScenarioError,
    UsageError,
    WarningLog,
    list_names,
    warn,
)
from liedyn.immutable import Immutable
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.links import Pose
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names, values_by_name
from liedyn.model.spatial import pose
from liedyn.robot_files import robot_file_warnings
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.law_derivatives import passive_force_warnings
from liedyn.simulation.name_binding import select
from liedyn.simulation.trajectory_columns import thrust_names

# In characteristic units of the robot (`dynamics.scales`), which make lengths comparable with angles.
_TOLERANCE = 1e-9            # maximum acceleration of an equilibrium; rounding causes about 1e-14 times the condition of M
_FINE = 1e-3                 # of _TOLERANCE: Newton's method continues until accelerations are below this
_STEPS, _LONGEST = 60, 0.7   # maximum number of Newton steps; maximum change of a coordinate in a step
_STARTS, _SPREAD = 24, 0.2   # number of further initial configurations; initial distance from the guess (grows 50 times)
_DESCENT = 1e-4              # Armijo's rule: minimum relative decrease of the accelerations, times the fraction of a Newton step
_UNSEEN = 1e-10              # of the maximum singular value: directions with smaller ones change accelerations by rounding only
_MOVING = 1e-9               # maximum velocity and acceleration of a prescribed motion at rest
_AT_LIMIT = 1e-12            # rounding of a limit in a file: a coordinate beyond it by less is within its limits


@dataclass(frozen=True, eq=False)
class Equilibrium(Immutable):
    """A configuration in which the robot stays at rest.

    q          (nq,)
    tau        (nv,) generalized forces, including those of prescribed coordinates
    u          (nv + actuators,) generalized forces and thrusts in addition to those of the scenario; not zero only for fixed
               joints and actuators
    offset     {input: value} of these additional forces and thrusts
    residual   maximum remaining acceleration [rad/s^2 | m/s^2], or error of a pid law
    integral   (nv,) integrals of pid laws [N m | N] that hold their joints at the targets; zero for others
    system     the linear system at the equilibrium, in closed loop
    """

    q: Array
    tau: Array
    u: Array
    offset: dict[str, float]
    residual: float
    warnings: tuple[LiedynWarning, ...]
    integral: Array
    system: LinearSystem | None = None

    def __repr__(self) -> str:
        holding_forces = "".join(f", {name} {value:+.6g}" for name, value in self.offset.items())
        kind = f", {self.system.stability or 'no modes'}" if self.system is not None else ""
        return f"<Equilibrium{kind}: q {short(self.q)}, tau {short(self.tau)}{holding_forces}; residual {self.residual:.1e}>"


def find_equilibrium(robot: Model | str | os.PathLike[str] | Mapping[str, Any], q: ArrayLike | None = None, *,
                     tau: ArrayLike | None = None, passive: bool = True, at: float = 0.0, hold: str | Sequence[str] = (),
                     overrides: Overrides = (), strict: bool = False) -> Equilibrium:
    """Equilibrium near the configuration of a scenario at a time, or near `q` for a model under constant forces.

    At v = 0, springs, PD laws, torques, external wrenches and gravity balance in the joints that are driven by torques; those
    with a PID law are at their targets, by the value of the integral.
    Prescribed joints keep their positions at that time.

    Parameters
    ----------
    robot : Model, or the path of a scenario YAML, robot YAML or URDF
    q : (nq,) array, optional
        With a Model: initial guess; default: the neutral configuration.
    tau : (nv,) array, optional
        With a Model: the generalized forces that act [N m | N]; default: none.
    passive : bool
        With a Model: whether joint springs, damping and friction act.
    at : float
        With a scenario: time [s] of the initial guess and of the forces.
    hold : names or patterns, one or several
        Joints that are held in place by a force to be found, and actuators whose thrust is to be found; both are added to
        the given forces.
    overrides, strict
        With a file: as for `run_scenario`.

    Raises
    ------
    ScenarioError, ModelError, TrajectoryError, UsageError, ShapeError, ConfigurationError
    ComputationError
        If none is found: names the coordinate whose forces do not balance.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.find_equilibrium(model, [0.4, -0.3])
    <Equilibrium, neutral: q [0. 0.], tau [0. 0.]; residual ...>
    """
    if isinstance(robot, Model):
        if override_texts(overrides, ScenarioError) or at or strict:
            raise UsageError("at, overrides and strict require a file or scenario; use Model.with_changes")
        setup = static_setup(robot, q, tau, passive)
        t, start, v = 0.0, _closed(setup, 0.0, setup.problem.q), np.zeros(robot.nv)
    elif q is not None or tau is not None or not passive:
        raise UsageError("q, tau and passive require a Model; for a scenario use overrides such as 'passive=false'")
    else:
        setup = prepare(robot, overrides, strict)
        setup, t, start, v = state_at(setup, float(at))
    equilibrium = solve_equilibrium(setup, t, start, v, hold)
    problem = with_fixed_inputs(setup.problem, instant(setup.problem, t, start, v, None, equilibrium.integral), rest=True)
    point = instant(problem, t, equilibrium.q, np.zeros_like(v), equilibrium.u, equilibrium.integral)
    warn((*([] if isinstance(robot, Model) else robot_file_warnings(setup.model)), *equilibrium.warnings,
          *(passive_force_warnings(setup.model, point.q, point.v) if setup.scenario.passive else [])))
    return replace(equilibrium, system=linear_system(setup, problem, point))


def solve_equilibrium(setup: LinearizationSetup, t: float, q: Array, v: Array, hold: Patterns = ()) -> Equilibrium:
    """Return the equilibrium near the state (q, v) at time t, as `find_equilibrium`.

    Signals have their values at t. Without convergence, Newton's method is repeated from random configurations around q.

    Raises ComputationError if no equilibrium is found.
    """
    setup = setup.without_friction()
    _check_constraint_motion_at_rest(setup, t)
    search = _EquilibriumSearch(setup, t, q, v, *fixed_coordinates(setup, hold))
    rng = np.random.default_rng(0)
    best, warnings = search.newton(q), []
    for k in range(_STARTS):
        if best.worst <= _TOLERANCE:
            break
        spread = _SPREAD * 2**(k / 4) * rng.standard_normal(setup.model.nv) * search.reach
        try:
            start = search.within(integrate(setup.model, q, np.where(search.free, spread, 0.0)))
        except ComputationError:                                   # the constraints cannot be closed
            continue
        candidate = search.newton(start)
        if candidate.size < 0.9 * best.size:                           # otherwise the first result is kept
            best, warnings = candidate, [search.far_warning(candidate, q)]
    if not best.worst <= _TOLERANCE:
        raise search.not_found(best)
    return search.result(best, v, warnings)


def _closed(setup: LinearizationSetup, t: float, q: Array, prescribed: Mask | None = None) -> Array:
    """Return q projected onto the constraints, if the model has any."""
    if not setup.model.nc:
        return q
    return project_configuration(setup.model, q, prescribed=prescribed, constraint_motion=constraint_motions_at(setup.problem, t))


def _check_constraint_motion_at_rest(setup: LinearizationSetup, t: float) -> None:
    """Raise ComputationError if a driven closure moves at time t."""
    units = model_scales(setup.model)
    sizes = np.repeat([1.0, units.length], 3) * np.array([[1 / units.time], [1 / units.time**2]])        # of twists [w; v]
    for name, (_, V, dV) in (constraint_motions_at(setup.problem, t) or {}).items():
        if (np.abs([V, dV]) > _MOVING * sizes).any():
            raise ComputationError(f"there is no equilibrium at t = {t:g} s: the closure {name} is driven and moves at that time "
                                   "(choose another time, or a constant motion)")


def fixed_coordinates(setup: LinearizationSetup, hold: Patterns) -> tuple[Mask, Mask]:
    """Return masks of the joints' coordinates (nv,) and of the actuators that match the patterns `hold`.

    Prescribed coordinates are left out. Raises UsageError for a pattern that matches nothing.
    """
    model, actuators = setup.model, [actuator.name for actuator in setup.model.description.actuators]
    joints, thrusts = np.zeros(model.nv, dtype=bool), np.zeros(len(actuators), dtype=bool)
    known = [*model.joint_names, *actuators]
    for name in (known[k] for k in select(hold, known, "joint or actuator to fix")):
        if name in model.joint_names:
            joints[model.v_index(name)] = True
        thrusts |= np.array([actuator == name for actuator in actuators], dtype=bool)
    return joints & ~setup.prescribed, thrusts


@dataclass(frozen=True, eq=False)
class _EquilibriumPoint:
    """A point of the search: configuration, additional inputs, integrals of pid laws, and the forces and accelerations there."""

    q: Array
    u: Array
    z: Array
    motion: OperatingPoint
    residuals: Array    # accelerations of free coordinates, then errors of pid laws, in characteristic units
    residual: float     # the maximum acceleration or error [rad/s^2 | m/s^2 | rad | m]

    @property
    def size(self) -> float:
        """Norm of the residuals."""
        return float(np.linalg.norm(self.residuals))

    @property
    def worst(self) -> float:
        """Largest residual."""
        return float(np.abs(self.residuals).max(initial=0.0))


class _EquilibriumSearch:
    """Newton's method for a(q, thrusts, z) = 0 at v = 0.

    The equations are those of free coordinates, which are neither prescribed nor fixed. Unknowns are the free coordinates, the
    selected thrusts and the integrals z of pid laws of free coordinates, whose errors must be zero.
    """

    def __init__(self, setup: LinearizationSetup, t: float, q: Array, v: Array, joints: Mask, thrusts: Mask):
        self.setup, self.model, self.t, self.joints, self.thrusts = setup, setup.model, t, joints, thrusts
        self.z = np.zeros(setup.model.nv) if setup.integral is None else setup.integral
        self.start = instant(setup.problem, t, q, v, None, self.z)
        self.laws = with_fixed_inputs(setup.problem, self.start, rest=True)
        self.problem = with_fixed_inputs(setup.problem, self.start, rest=True, fixed=joints)
        self.free = np.asarray(self.problem.schedule.level == TORQUE)
        schedule = setup.problem.schedule
        self.sums, self.ki, self.summed = schedule.integral, schedule.ki, self.free[schedule.integral]
        units = model_scales(self.model)
        self.reach = units.unit_scales(self.model.v_units)                       # of each coordinate
        self.acceleration_units = self.reach / units.time**2                # of its acceleration
        self.residual_units = np.concatenate([self.acceleration_units[self.free], self.reach[self.sums[self.summed]]])
        self.x_units = np.concatenate([self.reach, np.full(len(self.thrusts), units.unit_scale("N")),
                                       units.force_scales(self.model.v_units[k] for k in self.sums)])
        slack = _AT_LIMIT * self.reach
        low, high = self.model.lower - slack, self.model.upper + slack
        q_of_v = setup.problem.schedule.q_of_v
        x = np.where(q_of_v >= 0, q[q_of_v], 0.0)
        inside = (q_of_v >= 0) & self.free & (x >= low) & (x <= high)
        self.q_of_v, self.limited = q_of_v, np.flatnonzero(inside)

    def within(self, q: Array) -> Array:
        """Return q projected onto the constraints, with coordinates that were initially within their limits clipped to these."""
        q, k = q.copy(), self.limited
        q[self.q_of_v[k]] = np.clip(q[self.q_of_v[k]], self.model.lower[k], self.model.upper[k])
        return _closed(self.setup, self.t, q, ~self.free)

    def point(self, q: Array, u: Array, z: Array) -> _EquilibriumPoint:
        """Return the point at configuration q, additional inputs u and integrals z."""
        motion = instant(self.problem, self.t, q, np.zeros(self.model.nv), u, z)
        residuals = np.concatenate([motion.a[self.free], self._errors(motion)[self.summed]])
        return _EquilibriumPoint(q, u, z, motion, residuals / self.residual_units, float(np.abs(residuals).max(initial=0.0)))

    def _errors(self, motion: OperatingPoint) -> Array:
        """Return the errors (m,) of pid laws [rad | m]."""
        errors: Array = motion.integral_rate[self.sums] / self.ki
        return errors

    def newton(self, q: Array) -> _EquilibriumPoint:
        """Return the point after damped least-norm Newton steps from q, which end when accelerations no longer decrease."""
        current = self.point(q, np.zeros(self.model.nv + len(self.thrusts)), self.z)
        for _ in range(_STEPS):
            if current.worst <= _FINE * _TOLERANCE:
                break
            following = self._line_search(current, self._step(current))
            if following is None:
                break
            current = following
        return current

    def _step(self, current: _EquilibriumPoint) -> Array:
        """Return the Newton step of coordinates (nv,), thrusts and integrals of pid laws, limited in length."""
        nv, motion = self.model.nv, current.motion
        partition = partition_coordinates(self.model, motion.q, motion.v, ~self.free, constraint_motions_at(self.problem, self.t))
        index, Z = (partition.index, partition.Z) if partition else (np.arange(nv), np.eye(nv))
        system, f, free = linear_system(self.setup, self.problem, motion, prescribed=~self.free), len(index), self.free[index]
        da_dq, a, A = system.A[f:2 * f, :f], motion.a[index], system.A
        downhill = np.zeros(nv)
        downhill[index] = -da_dq.T @ np.where(free, a / self.acceleration_units[index]**2, 0.0)
        unknown = np.concatenate([free & ~self._blocked(current, downhill)[index], self.thrusts, self.summed])
        J = np.hstack([da_dq, system.B[f:2 * f, nv:], A[f:2 * f, 2 * f:]])[free]
        errors = np.hstack([A[2 * f:, :f], system.B[2 * f:, nv:], A[2 * f:, 2 * f:]]) / self.ki[:, None]
        x_units = np.concatenate([self.reach[index], self.x_units[nv:]])[unknown]
        units = np.concatenate([self.acceleration_units[index][free], self.residual_units[self.free.sum():]])
        J = np.vstack([J, errors[self.summed]])[:, unknown] * x_units / units[:, None]
        x, residuals = np.zeros(len(unknown)), np.concatenate([a[free], self._errors(motion)[self.summed]]) / units
        x[unknown] = x_units * np.linalg.lstsq(J, -residuals, rcond=_UNSEEN)[0]
        step = np.concatenate([Z @ x[:f], x[f:]])
        longest = np.abs(step[:nv] / self.reach).max(initial=0.0)
        return step * min(1.0, _LONGEST / longest) if longest else step

    def _blocked(self, current: _EquilibriumPoint, downhill: Array) -> Mask:
        """Return the mask (nv,) of coordinates at a limit beyond which the accelerations would decrease."""
        blocked = np.zeros(self.model.nv, dtype=bool)
        k = self.limited
        x = current.q[self.q_of_v[k]]
        blocked[k] = ((x <= self.model.lower[k]) & (downhill[k] < 0)) | ((x >= self.model.upper[k]) & (downhill[k] > 0))
        return blocked

    def _line_search(self, current: _EquilibriumPoint, step: Array) -> _EquilibriumPoint | None:
        """Return the point after the first of successively halved steps that decreases the accelerations; None if none does."""
        nv = self.model.nv
        dq, thrust, dz = step[:nv], step[nv:nv + len(self.thrusts)], step[nv + len(self.thrusts):]
        for k in range(12):
            part = 0.5**k
            u, z = current.u.copy(), current.z.copy()
            u[nv:] += part * thrust
            z[self.sums] += part * dz
            try:
                trial = self.point(self.within(integrate(self.model, current.q, part * dq)), u, z)
            except ComputationError:                               # a singular configuration, or a law outside its domain
                continue
            if trial.size < current.size * (1 - _DESCENT * part):
                return trial
        return None

    def far_warning(self, best: _EquilibriumPoint, q: Array) -> LiedynWarning:
        """Return the warning that the equilibrium was found from another configuration than q."""
        dq = difference(self.model, q, best.q)
        k = int(np.argmax(np.abs(dq) / self.reach))
        return LiedynWarning("equilibrium-far",
                             "the search did not converge from the given configuration; the equilibrium was found from another "
                             f"guess. It differs in {self.model.v_names[k]} by {dq[k]:+.3g} {self.model.v_units[k]}, and closer "
                             "ones may exist")

    def result(self, best: _EquilibriumPoint, v: Array, warnings: Iterable[LiedynWarning]) -> Equilibrium:
        """Return the equilibrium, with the additional forces of fixed joints: the required ones minus those of their laws."""
        u, rest = best.u.copy(), np.zeros(self.model.nv)
        law_tau = instant(self.laws, self.t, best.q, rest, None, best.z).tau
        tau = with_hybrid_dynamics(self.model, replace(best.motion, q=best.q, v=rest, a=rest, tau=law_tau), ~self.free,
                                   self.setup.scenario.passive, constraint_motions_at(self.setup.problem, self.t)).tau
        u[:self.model.nv][self.joints] = (tau - law_tau)[self.joints]
        names = [*(f"tau.{name}" for name in self.model.tau_names),
                 *thrust_names(self.model)]
        offset = {names[k]: float(u[k]) for k in np.flatnonzero(np.concatenate([self.joints, self.thrusts]))}
        return Equilibrium(best.q, tau, u, offset, best.residual, (*warnings, *self._warnings(v)), best.z)

    def _warnings(self, v: Array) -> WarningLog:
        """Return warnings about prescribed joints that move at t, and about forces that depend on time."""
        warnings, prescribed = WarningLog(), self.setup.prescribed
        time = np.sqrt(self.reach / self.acceleration_units)
        moves: Mask = prescribed & ((np.abs(v) * time > _MOVING * self.reach)
                                    | (np.abs(self.start.a) > _MOVING * self.acceleration_units))
        if moves.any():
            names = [name for name, moving in zip(self.model.v_names, moves, strict=True) if moving]
            warnings.add("equilibrium-moving",
                         f"{list_names(names, 4)}: the prescribed motion is not at rest at t = {self.t:g} s; the equilibrium "
                         "is computed with these joints fixed")
        if self._changing():
            warnings.add("equilibrium-of-instant",
                         f"forces depend on time: the equilibrium is computed for their values at t = {self.t:g} s")
        return warnings

    def _changing(self) -> bool:
        """Return whether a force, or a target of a law, depends on time at any time of the run."""
        problem = self.setup.problem
        s, law, laws = problem.schedule, problem.law, problem.joint_laws
        torque = s.level == TORQUE
        used = {*s.signal[torque], *s.target[torque], *s.force_signal, *(() if law is None else law.signal)}
        if laws is not None:
            used |= {*laws.gain_signal, *laws.setpoint_signal}
            used |= {*laws.signal[laws.driven], *laws.top, *laws.bottom, *(() if laws.task is None else laws.task.poses.signal)}
        windows = (s.force_from > 0.0).any() or np.isfinite(s.force_until).any()
        return bool(windows) or any(depends_on_time(problem.signals, int(k)) for k in used if k >= 0)

    def not_found(self, best: _EquilibriumPoint) -> ComputationError:
        """Return the error that names the coordinate with the maximum residual, and options that may balance it."""
        errors = np.where(self.summed, np.abs(self._errors(best.motion)), 0.0)
        if errors.max(initial=0.0) and (errors / self.reach[self.sums]).max() >= best.worst:
            k = int(self.sums[np.argmax(errors)])
            return ComputationError(f"no equilibrium was found near the configuration at t = {self.t:g} s: "
                                    f"the pid law of {self.model.v_names[k]} has an error of {errors.max():.3g} "
                                    f"{self.model.v_units[k]}")
        k = int(np.argmax(np.where(self.free, np.abs(best.motion.a) / self.acceleration_units, -1.0)))
        name, unit = self.model.v_names[k], self.model.v_units[k]
        text = f"no equilibrium was found near the configuration at t = {self.t:g} s: a " \
               f"residual acceleration of {best.motion.a[k]:.3g} {unit}/s^2 remains at {name}"
        at_limit = [self.model.v_names[i] for i in self.limited
                    if best.q[self.q_of_v[i]] in (self.model.lower[i], self.model.upper[i])]
        joint = next(joint for joint in self.model.joints if joint.v.start <= k < joint.v.stop)
        actuators = [x.name for x in self.model.description.actuators]
        unused = [name for name, used in zip(actuators, self.thrusts, strict=True) if not used]
        if joint.kind == FREE and unused:
            return ComputationError(f"{text} (the fixed thrusts do not balance {joint.name}: compute all thrusts with "
                                    f"{_options(actuators)}, or prescribe its motion)" if len(unused) < len(actuators) else
                                    f"{text} (no force balances {joint.name}: compute thrusts with {_options(actuators)}, or "
                                    "prescribe "
                                    "its motion)")
        if joint.kind == FREE and actuators:
            return ComputationError(f"{text} (no thrusts balance {joint.name} in this configuration: start from another one, or "
                                    "prescribe "
                                    "its motion)")
        if joint.kind == FREE:
            return ComputationError(f"{text} (no force balances {joint.name}: prescribe its motion, give it a force or a "
                                    "wrench, or "
                                    f"{_options([joint.name])})")
        if at_limit:
            return ComputationError(f"{text}; at a limit: {list_names(at_limit, 4)} (--fix or hold=[…] keeps joints fixed)")
        return ComputationError(f"{text} ({_options([joint.name])} keeps it fixed)")


def _options(names: list[str]) -> str:
    """Return the option of the command, and the argument in Python, that hold these joints or actuators."""
    max_shown = 6
    if len(names) > max_shown:
        return f"--fix for each of {list_names(names, max_shown)}, or hold=[…]"
    return f"{' '.join(f'--fix {name}' for name in names)} or hold={json.dumps(names, ensure_ascii=False)}"


# Assembled state from values by joint name, for `liedyn assemble` -------------------------------------------------------

_AGREE = 1e-9            # of the maximum given velocity, in lengths of the loops: a smaller residual of an equation is rounding
_UNIT_NORM = 1e-6        # maximum error of the norm of a quaternion, for values with six digits


@dataclass(frozen=True, eq=False)
class AssembledState:
    """A configuration and, if velocities were given, a velocity that satisfy the constraints."""

    model: Model
    assembly: Assembly
    v: Array | None
    still: tuple[str, ...] = ()         # driven loops without a given motion: their frames are at the poses in the file


def assembled_state(model: Model, q: Sequence[str] = (), v: Sequence[str] = (), keep: Sequence[str] = (),
                    constraint_motion: Sequence[str] = (), *, seed: int = 0) -> AssembledState:
    """Return a configuration with closed loops near a guess, and optionally a velocity that satisfies the constraints.

    Parameters
    ----------
    q : texts such as "crank=0.5", "leg*=0.1" or "base=0,0,1,0,0,0,1"
        Guess by joint or pattern; other joints start from their neutral coordinates.
    v : texts such as "crank=0.5"
        Given velocities by joint, which are kept. The others minimize the kinetic energy subject to the constraints.
    keep : joint names or patterns
        Joints that keep the coordinates of the guess.
    constraint_motion : texts such as "tool=0,0,-0.7" or "tool=0,0,-0.7,0,0,1.57"
        Poses of the frames of driven loops: x, y, z [m] and roll, pitch, yaw [rad] in the frames of the file; at rest.
    seed : int
        Seed of the random guesses of `assemble`.

    Raises
    ------
    UsageError
        For texts and names that match no joint.
    ModelError, ComputationError, ConfigurationError
    """
    guess, fixed, poses = assembly_arguments(model, q, keep, constraint_motion)
    assembly = assemble(model, guess, fixed=fixed, constraint_motion=poses, seed=seed)
    if not model.has_only_couplings and not model.driven and assembly.mobility.generic_rank < model.nv:
        with suppress(ComputationError):                      # of random configurations, within joint limits
            assembly = with_degenerate(model, assembly, survey_mobility(model, seed).q)
    return _assembled(model, assembly, v, poses)


def assembled_states(model: Model, q: Sequence[str] = (), v: Sequence[str] = (), fixed: Sequence[str] = (),
                     constraint_motion: Sequence[str] = (), *, searches: int = 40, seed: int = 0) -> tuple[AssembledState, ...]:
    """Return all states that `assemblies` finds. fixed: patterns, as `keep` of `assembled_state`; other arguments as there."""
    guess, names, poses = assembly_arguments(model, q, fixed, constraint_motion)
    return tuple(_assembled(model, assembly, v, poses)
                 for assembly in assemblies(model, guess, fixed=names, searches=searches, constraint_motion=poses, seed=seed))


def assembly_arguments(model: Model, q: Sequence[str], fixed: Sequence[str],
                        constraint_motion: Sequence[str]) -> tuple[Array, list[str], dict[str, Array]]:
    """Return the guess, the joints to fix and the poses of driven loops."""
    check_repetition("--constraint-motion", [text.partition("=")[0].strip() for text in constraint_motion])
    return (configuration_of(model, q), [model.joint_names[k] for k in select(fixed, model.joint_names, "joint to fix")],
            {name: T for text in constraint_motion for name, T in _driven_poses(model, text)})


def _assembled(model: Model, assembly: Assembly, v: Sequence[str], poses: dict[str, Array]) -> AssembledState:
    still = tuple(constraint.name for constraint in model.constraints if constraint.driven and constraint.name not in poses)
    return AssembledState(model, assembly, _velocity(model, assembly.q, v, poses) if v else None, still)


def configuration_of(model: Model, texts: Sequence[str], start: Array | None = None) -> Array:
    """Return q (nq,) of texts such as "crank=0.5" or "base=0,0,1,0,0,0,1". Other joints are at `start`, default neutral.

    Raises UsageError for other texts, ConfigurationError for quaternions off unit norm.
    """
    return with_joint_values(model, model.neutral() if start is None else start, positions_of(model, texts, "--q"), "q")


def positions_of(model: Model, texts: Sequence[str], option: str) -> dict[str, list[float]]:
    """Return the coordinates {joint: values} of texts such as "crank=0.5". Raises as `configuration_of`, naming the option."""
    return {name: _normalized(model, name, values) for name, values in _joint_values(model, texts, model.q_index, option)}


def _velocity(model: Model, q: Array, texts: Sequence[str], constraint_motion: Mapping[str, Array]) -> Array:
    """Return the velocity (nv,) with the given values that satisfies the constraints. Raise ComputationError if none does."""
    values, is_given = np.zeros(model.nv), np.zeros(model.nv, dtype=bool)
    for name, coordinates in _joint_values(model, texts, model.v_index, "--v"):
        values[model.v_index(name)], is_given[model.v_index(name)] = coordinates, True
    v = project_velocity_unchecked(model, q, values, prescribed=is_given, constraint_motion=constraint_motion)
    residual = np.abs(constraint_velocity(model, q, v, constraint_motion=constraint_motion))
    error = equation_weights(model) * residual
    if error.max() > _AGREE * np.abs(values / coordinate_scales(model)).max():
        row = int(np.argmax(error))
        raise ComputationError(f"the given velocities contradict the constraints: the residual of "
                               f"{model.constraint_equation_names[row]} is "
                               f"{residual[row]:.3g} {model.constraint_equation_units[row]}/s (give fewer velocities)")
    return v


def _joint_values(model: Model, texts: Sequence[str], index: Callable[[str], slice],
                  option: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each joint that texts name or match, with its values. index: function that returns the coordinates of a joint."""
    check_repetition(option, [text.partition("=")[0].strip() for text in texts])
    pairs = {text.partition("=")[0].strip(): (text, _named_values(text, option, "moving joint", model.joint_names)[1])
             for text in texts}
    for name, (text, values) in values_by_name(pairs, model.joint_names, "moving joint").items():
        coordinates = index(name)
        if len(values) != coordinates.stop - coordinates.start:
            raise UsageError(f"{option} {text}: expected {coordinates.stop - coordinates.start} number(s) for joint {name}")
        yield name, values


def check_repetition(option: str, names: Sequence[str]) -> None:
    """Raise UsageError if a repeated option has two values of one name or pattern."""
    for k, name in enumerate(names):
        if name in names[:k]:
            raise UsageError(f"{option} {name}: expected one value, got several")


def _driven_poses(model: Model, text: str) -> Iterator[tuple[str, Array]]:
    """Yield name and pose (4, 4) of frame A of each driven closure that a text names or matches."""
    driven = [constraint.name for constraint in model.constraints if constraint.driven]
    pattern, values = _named_values(text, "--constraint-motion", "driven loop", driven)
    if len(values) not in (3, 6):
        raise UsageError(f"--constraint-motion {text}: a driven loop requires 3 numbers (x, y, z) or 6 (also roll, pitch, yaw)")
    for name in matching_names(pattern, driven):
        yield name, pose(Pose.from_xyz_rpy(values[:3], values[3:] or (0.0, 0.0, 0.0)))


def _named_values(text: str, option: str, subject: str, names: Sequence[str]) -> tuple[str, list[float]]:
    """Return name and numbers of a text NAME=VALUE,…; raise UsageError for unknown names and invalid numbers."""
    name, equals, values_text = text.partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"{option} {text}: expected NAME=VALUE")
    if not matching_names(name, names):
        raise UsageError(f"{option} {text}: no {subject} {name!r}; the robot has {list_names(names, 12) or 'none'}")
    try:
        values = [float(x) for x in values_text.strip().strip("[]").split(",")]
    except ValueError:
        values = [np.nan]
    if not np.isfinite(values).all():
        raise UsageError(f"{option} {text}: {values_text.strip()!r} is not a finite number or a comma-separated list of them")
    return name, values


def _normalized(model: Model, name: str, values: list[float]) -> list[float]:
    """Return the values of a joint, with the quaternion normalized."""
    if model.joint(name).kind == ONE_DOF:
        return values
    norm = math.hypot(*values[-4:])
    if abs(norm - 1.0) > _UNIT_NORM:
        raise ConfigurationError(f"the quaternion x y z w of joint {name} has norm {norm:.7g}: expected 1")
    return [*values[:-4], *(x / norm for x in values[-4:])]
