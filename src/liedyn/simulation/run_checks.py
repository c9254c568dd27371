"""The self-check of a run: energy balance, constraints, creep of joints with friction, inverse dynamics."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.rhs import read_signal, signal_instructions
from liedyn.dynamics.constraints.constraints import closure_wrenches, constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import equation_weights
from liedyn.dynamics.kinematics import energy
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, WarningLog, list_names
from liedyn.integrators.problem import InitialValueProblem, Statistics
from liedyn.integrators.run_state import Record
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.signals import STATE_V, TORQUE
from liedyn.model.model import Model
from liedyn.simulation.constraint_setup import constraint_motions
from liedyn.simulation.contact_setup import ContactMotion, contact_motion
from liedyn.simulation.control.joint_control import compute_tracking
from liedyn.simulation.control.slotine_li_control import Adaptation, adaptation_rows
from liedyn.simulation.control.task_space_control import Tracking
from liedyn.simulation.joint_friction import friction_forces
from liedyn.simulation.joint_stops import stop_forces
from liedyn.simulation.limits import KINDS, LimitViolation, limits_exceeded, merge_violations
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.run_recorder import RunRecorder, blocks
from liedyn.simulation.segment_problems import RunSegment, recomputed_forces

if TYPE_CHECKING:
    from liedyn.simulation.preparation import PreparedRun  # imports hybrid_simulation

MAX_RELATIVE_BALANCE = 1e-3              # a larger relative balance causes a warning
_ROUNDINGS = 4.0         # epsilons in a step: q, v, energy and supplied work are rounded once each. They add up like a
                         # random walk, since their signs are random: accurate runs of five robots have at most 0.3
_FORCE_FACTOR = 1e3      # times energies and weights: bounds the work of forces of batches along 1 rad or a length


def inaccuracy_warnings(balance: float) -> list[LiedynWarning]:
    """Return the warning about a run with this relative energy balance, if it is too large."""
    if not balance > MAX_RELATIVE_BALANCE:                          # also where it is not a number
        return []
    return [LiedynWarning("energy-balance",
                          f"the relative error of the energy balance is {balance:.1e}: the motion is not accurate")]


class EnergyBalance:
    """The energy balance of a run of `model`, whose rows are added block by block."""

    def __init__(self, model: Model, links: int = 0):
        """links: number of links with external wrenches, after which the wrenches of records have thrusts."""
        self.model, self.links, self._balance = model, links, 0.0
        self._first: float | None = None                        # energy in the first row
        self._min_energies, self._max_energies = np.full(3, np.inf), np.full(3, -np.inf)              # of each energy
        self._forces = np.zeros(0), np.zeros(0)                 # maximum magnitudes of generalized forces and wrenches
        self._residual, self._multiplier = 0.0, 0.0             # of constraints: maximum residual, and sum of magnitudes

    def add(self, record: Record, kinetic: Array, potential: Array) -> None:
        """Add the rows of a record with their kinetic and potential energies (N,) [J]."""
        total, energies = kinetic + potential, (kinetic, potential, record.supplied_energy)
        if self._first is None:
            self._first, self._forces = total[0], (np.zeros(record.tau.shape[1]), np.zeros(record.wrench.shape[1]))
        self._balance = np.maximum(self._balance, np.abs(total - self._first - record.supplied_energy).max())       # NaN stays
        self._min_energies = np.minimum(self._min_energies, [x.min() for x in energies])
        self._max_energies = np.maximum(self._max_energies, [x.max() for x in energies])
        tau, wrench = self._forces
        self._forces = (np.maximum(tau, np.abs(record.tau).max(axis=0, initial=0.0)),
                        np.maximum(wrench, np.abs(record.wrench).max(axis=0, initial=0.0)))
        if record.multipliers.size:
            self._residual = max(self._residual, _max_abs(record.residual[:, 0]))
            self._multiplier = max(self._multiplier, float(np.abs(record.multipliers).sum(axis=1).max()))

    def value(self, steps: int) -> tuple[float, float]:
        """Return the maximum energy balance [J] in a run of so many steps, and relative to the energy exchanged.

        The energy exchanged is the range of kinetic, potential and supplied energy. At rest both it and the balance are rounding.
        Where rounding alone could exceed `MAX_RELATIVE_BALANCE` of the energy exchanged, the balance is relative to 1 /
        `MAX_RELATIVE_BALANCE` of that rounding instead. This is the rounding of the energies, and of the work of the forces,
        which may cancel each other, along 1 rad or a characteristic length: about 1e-14 of them. So motions of any size are
        judged. The work of the reactions along the residuals of the constraints, which a run may remove, counts like rounding.
        """
        exchanged = max(self._max_energies[0], *(self._max_energies - self._min_energies)[1:])
        size = np.maximum(np.abs(self._min_energies), np.abs(self._max_energies)).sum() + self._work_of_forces()
        floor = _floor(size, steps) + min(self._residual, _MAX_RESIDUAL) * self._multiplier / MAX_RELATIVE_BALANCE
        return float(self._balance), float(self._balance / max(exchanged, floor, 1e-300))

    def _work_of_forces(self) -> float:
        """Return the work [J] of weight, generalized forces and wrenches along 1 rad or a characteristic length."""
        units, (tau, wrench) = model_scales(self.model), self._forces
        along = np.full(len(wrench), units.length)
        along[:6 * self.links].reshape(-1, 6)[:, :3] = 1.0
        return float(tau @ units.unit_scales(self.model.v_units) + wrench @ along) + work_of_weight(self.model)


def relative_balance(model: Model, kinetic: Array, potential: Array, work: Array, steps: int) -> Array:
    """Return the (N,) relative balances of N runs in one batch from energies and supplied work (N, R), see `EnergyBalance.value`.

    NaN where the energy exchanged is so small that the rounding of forces, which are not known here, decides.
    """
    total, energies = kinetic + potential, (kinetic, potential, work)
    balance = np.abs(total - total[:, :1] - work).max(axis=1)
    exchanged = np.maximum.reduce([kinetic.max(axis=1), np.ptp(potential, axis=1), np.ptp(work, axis=1)])
    size = sum(np.abs(x).max(axis=1) for x in energies)
    floor = _floor(size + _FORCE_FACTOR * (size + work_of_weight(model)), steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(exchanged > floor, balance / exchanged, np.nan)


def work_of_weight(model: Model) -> float:
    """Return the work [J] of the weight of the robot along its characteristic length."""
    mass = math.fsum(link.mass for link in model.description.links)
    return mass * float(np.linalg.norm(model.gravity)) * model_scales(model).length


def _floor(size: float | Array, steps: int) -> Any:
    """Return the energy exchanged [J] below which rounding could exceed `MAX_RELATIVE_BALANCE` of it.

    size   energies and work of forces [J]
    """
    return _ROUNDINGS * np.finfo(float).eps * math.sqrt(1 + steps) * size / MAX_RELATIVE_BALANCE


# Constraints: residuals, work of closures, singular configurations ------------------------------------------------------

_MAX_RESIDUAL = 1e-9                # rad or lengths of the loop: larger residuals cause a warning


def joint_forces(model: Model, record: Record) -> Array:
    """Return the (N, nv) generalized forces A^T lambda of the constraints [N m | N]."""
    A = constraint_jacobian(model, record.q, constraint_motion=constraint_motions(model, record.constraint_motion))
    return np.asarray(np.einsum("trk,tr->tk", A, record.multipliers))


def reactions(model: Model, record: Record) -> Array:
    """Return the (N, loops, 6) wrenches on links b in world axes, about the origins of frames b [N m | N]."""
    return closure_wrenches(model, record.q, record.multipliers,
                            constraint_motion=constraint_motions(model, record.constraint_motion))


class ConstraintCheck:
    """The residuals and the work of the constraints of a run, whose rows are added block by block."""

    def __init__(self) -> None:
        self._work, self._worst = 0.0, np.zeros(2)
        self._last: tuple[float, float] | None = None           # time and power of the last row
        self._off, self._max_error_text = 0.0, ""

    def add(self, forces: Array, record: Record) -> None:
        """Add the rows of a record. forces: (N, nv) of `joint_forces`."""
        power, t = np.einsum("tk,tk->t", forces, record.v), record.t
        if self._last is not None:
            t, power = (np.append(last_row, x) for last_row, x in zip(self._last, (t, power), strict=True))
        self._work += float(0.5 * (power[1:] + power[:-1]) @ np.diff(t))
        self._last = t[-1], power[-1]
        self._worst = np.maximum(self._worst, record.residual.max(axis=0))

    def check_residuals(self, model: Model, record: Record, closed: Mask) -> None:
        """Update the maximum residuals with the equations that are `closed` (nc,), in radians and lengths of their loops."""
        residual = np.abs(constraint_residual(model, record.q,
                                              constraint_motion=constraint_motions(model, record.constraint_motion))) * closed
        errors = residual * equation_weights(model)
        k, r = np.unravel_index(np.argmax(errors), errors.shape)
        if not errors[k, r] <= self._off:
            unit = model.constraint_equation_units[r]
            self._off = float(errors[k, r])
            row = model.constraint_equation_names[r]
            self._max_error_text = f"{residual[k, r]:.1e} {unit} in {row} at t = {record.t[k]:.6g} s"

    def value(self, model: Model, statistics: Statistics) -> tuple[dict[str, float], WarningLog]:
        """Return values of the self-check and warnings.

        constraint_residual            maximum in the rows [rad | m]
        constraint_velocity_residual   maximum of velocities in the rows [rad/s | m/s]
        constraint_drift               maximum before a projection
        closure_work                   work of the closures [J], by the trapezoidal rule over the rows: 0 unless driven
        """
        loops, (position, velocity) = statistics.loops, self._worst
        values = {"constraint_residual": float(position), "constraint_velocity_residual": float(velocity)}
        values["constraint_drift"] = max(0.0 if loops is None else loops.drift, float(position))
        values["closure_work"] = self._work
        warnings = WarningLog()
        if self._off > _MAX_RESIDUAL:
            warnings.add("constraint-residual",
                         f"constraint residuals reach {self._max_error_text} (constraints.stabilization=projection removes them "
                         "after each step)")
        if loops is not None and loops.singular:
            row = model.constraint_equation_names[loops.singular_row] if loops.singular_row >= 0 else "a constraint"
            again = f", and {loops.singular - 1} more" if loops.singular > 1 else ""
            more = f" and in {loops.outputs - 1} more" if loops.outputs > 1 else ""
            undetermined = ("; accelerations, forces and multipliers are not determined in the row at "
                            f"t = {loops.output_time:.6g} s{more}: omit it") if loops.outputs else ""
            warnings.add("singular-configuration",
                         f"the mechanism passed a singular configuration at t = {loops.singular_time:.6g} s{again}: {row} became "
                         "dependent on other constraints. The motion may branch there, and was continued on one branch"
                         + undetermined)
        return values, warnings


# creep ------------------------------------------------------------------------------------------------------------------

# Smoothed Coulomb friction is zero at rest, so that joints which it should hold creep. The same is true of expressions such as
# -sign(v) and -tanh(v/0.01) in a scenario: the first holds between two steps only. In joints that always move slowly,
# friction acts as damping, because it never reaches its level.
#
# A joint creeps where it moves slowly and steadily. The criterion is mean velocities over intervals of `_INTERVAL`, which also
# show the drift of an expression that chatters. The speed below which friction is smoothed and the times here are parts of the
# friction model: they do not depend on the size of the robot.

_MIN_CREEP_SPEED = 0.01  # of the speed that smooths friction: below it, friction holds less than a hundredth of its level
_STEADY_TIME = 1.0       # s; a joint creeps while its acceleration would take longer than this to change that speed
MIN_CREEP_TIME = 0.5     # s; a shorter creep is the end of a motion
_INTERVAL = 0.05         # s; a tenth of MIN_CREEP_TIME, to read few rows of a long run
# times that speed: smoothed friction hardly changes from the first to the second
_NEAR_SPEED, _FAR_SPEED = 10.0, 1e3
_SATURATION_RATIO = 0.5         # minimum fraction of its force at _FAR_SPEED that friction has at _NEAR_SPEED; a damper has 1 %
_MIN_MOTION = 1e-3            # rad, and of the characteristic length: a joint that moves less is at rest
_NO_MOTION = 1e-9             # rad, and of the characteristic length: the path in a run of a robot of which only rounding moves
_MAX_VALUES_PER_CHUNK = 1_000_000     # positions of many runs that are processed at once


def rest_information(model: Model, t: Array, v: Array, tau: Array) -> list[LiedynWarning]:
    """Return information if nothing moves in a run (N rows) because the robot starts at rest in an equilibrium without forces."""
    units = ["rad" if unit == "rad" else "m" for unit in model.v_units]
    path = np.abs(v).max(axis=0, initial=0.0) * (t[-1] - t[0]) / model_scales(model).unit_scales(units)
    if not model.nv or len(t) < 2 or tau.any() or (path > _NO_MOTION).any():
        return []
    reason = "the robot starts at rest in an equilibrium, and no force acts"
    if not model.gravity.any():
        reason += "; gravity is zero"
    start = f"initial.keyframe ({list_names(list(model.keyframes), 3)}), " if model.keyframes else ""
    return [LiedynWarning("nothing-moves", f"nothing moves: {reason} (set {start}initial.q or initial.v, or prescribe a "
                          "motion or a torque)")]


class FrictionCreep:
    """Time, distance and maximum speed (…, nv) of each coordinate while it creeps in spite of friction.

    Rows are added block by block. They may be of many runs, with leading axes.

    friction  (…, 2, nv) friction levels of the joints, zero where friction does not act, and the speeds that smooth it
    """

    def __init__(self, model: Model, friction: Array):
        self.model, self.friction, self.q_of_v = model, friction, v_to_q_indices(model)
        self.level, self.friction_speed = np.moveaxis(friction, -2, 0)
        self.time, self.distance, self.speed, self.path_length, self.max_speed = np.zeros((5, *self.level.shape))

    def add(self, t: Array, q: Array, problem: InitialValueProblem | None = None) -> None:
        """Add rows t (R,), q (…, R, nq), NaN after the end of a run. problem: its torque expressions may act as friction."""
        free = True if problem is None else ~problem.prescribed                # prescribed coordinates do not creep
        has_friction = (self.level > 0.0).any(axis=tuple(range(self.level.ndim - 1)))
        coordinates = np.flatnonzero((self.q_of_v >= 0) & free & has_friction)
        laws = [] if problem is None else [k for k in _speed_laws(problem) if self.q_of_v[k] >= 0 and k not in coordinates]
        rows = spaced_rows(t)
        if len(rows) < 3 or not (len(coordinates) or laws):
            return
        self._add(t[rows], q[..., rows, :], coordinates, self.level[..., coordinates] > 0.0)
        if problem is not None:
            last = q[(*np.zeros(q.ndim - 2, dtype=int), rows[-1])]             # the first run represents all
            for k in laws:
                self._add(t[rows], q[..., rows, :], np.array([k]), np.array([_is_friction(problem, k, t[rows[-1]], last)]))

    def add_velocities(self, t: Array, v: Array) -> None:
        """Add velocities v (R, nv) of one run, for `slow_friction_warnings`."""
        speed = np.abs(v)
        self.path_length += np.diff(t) @ speed[1:]
        self.max_speed = np.maximum(self.max_speed, speed.max(axis=0, initial=0.0))

    def _add(self, t: Array, q: Array, coordinates: Integers, has_friction: Mask) -> None:
        """Add rows of these n coordinates, on which friction acts where `has_friction` (…, n)."""
        if not has_friction.any():
            return
        dt = np.diff(t)[:, None]
        moved = np.abs(steps := np.diff(q[..., self.q_of_v[coordinates]], axis=-2))
        speed, smooth = moved / dt, self.friction_speed[..., None, coordinates]
        apart = np.abs(np.diff(steps / dt, axis=-2)) < smooth / _STEADY_TIME * 0.5 * (dt[1:] + dt[:-1])
        creeps = (speed < smooth) & (speed > _MIN_CREEP_SPEED * smooth) & has_friction[..., None, :]
        both = creeps[..., 1:, :] & creeps[..., :-1, :] & apart                # creep in two consecutive intervals
        creeps[..., 0, :], creeps[..., -1, :] = both[..., 0, :], both[..., -1, :]
        creeps[..., 1:-1, :] = both[..., 1:, :] | both[..., :-1, :]
        self.time[..., coordinates] += (dt * creeps).sum(axis=-2)
        self.distance[..., coordinates] += np.where(creeps, moved, 0.0).sum(axis=-2)
        self.speed[..., coordinates] = np.maximum(self.speed[..., coordinates], np.where(creeps, speed, 0.0).max(axis=-2))

    def select_run(self, i: int) -> FrictionCreep:
        """Return the values of run i."""
        creep = FrictionCreep(self.model, self.friction[i])
        creep.time, creep.distance, creep.speed = self.time[i], self.distance[i], self.speed[i]
        return creep

    def is_reported(self) -> Mask:
        """Return the (…, nv) mask of coordinates that creep long enough to be reported."""
        return np.asarray(self.time > MIN_CREEP_TIME)

    def warnings(self) -> list[LiedynWarning]:
        """Return warnings about creep and about friction in joints that always move slowly."""
        return self._creep_warnings() + slow_friction_warnings(self.model, self.max_speed, self.path_length, self.is_reported(),
                                                               self.friction)

    def _creep_warnings(self) -> list[LiedynWarning]:
        """Return one warning, about the fastest of many runs."""
        is_reported = self.is_reported()
        if not is_reported.any():
            return []
        arrays = self.time, self.distance, np.where(is_reported, self.speed, 0.0)
        time, distance, speed = (x.reshape(-1, self.model.nv) for x in arrays)
        worst, columns = speed.argmax(axis=0), range(self.model.nv)
        joints = [f"{self.model.v_names[k]} ({speed[i, k]:.2g} {unit}/s, {distance[i, k]:.2g} {unit} in {time[i, k]:.3g} s)"
                  for i, k, unit in zip(worst, columns, self.model.v_units, strict=True) if speed[i, k] > 0.0]
        if not joints:
            return []
        runs = f" in {np.count_nonzero(is_reported.any(axis=-1))} of {len(speed)} runs" if len(speed) > 1 else ""
        return [LiedynWarning("friction-creep",
                              f"joints held by friction creep{runs}: {list_names(joints, 3)}. Coulomb friction is smoothed "
                              "at low speed and cannot hold a joint at rest, nor can a law such as "
                              "sign(v); use friction: {model: rigid}, or lock the joint")]


def slow_friction_warnings(model: Model, max_speed: Array, path_length: Array, known: Mask | bool = False,
                           friction: Array | None = None) -> list[LiedynWarning]:
    """Return warnings about joints with friction that move although friction is smoothed at their maximum speed (nv,).

    path_length   (nv,) distance moved [rad | m]
    known         mask of coordinates that are reported otherwise
    """
    level, smooth = np.moveaxis(smoothed_friction(model, model.constants) if friction is None else friction, -2, 0)
    moved = path_length > _MIN_MOTION * model_scales(model).unit_scales(model.v_units)
    slow = np.argwhere((level > 0.0) & moved & (max_speed < smooth) & ~np.asarray(known))[:, -1]
    if not len(slow):
        return []
    joints = [f"{model.v_names[k]} ({max_speed[k]:.2g} {model.v_units[k]}/s)" for k in slow]
    return [LiedynWarning("slow-friction",
                          f"Coulomb friction acts as damping in joints that move slowly throughout: {list_names(joints, 3)}. "
                          "It is smoothed, and weaker than its level at these speeds; passive: false "
                          "omits all passive forces")]


def smoothed_friction(model: Model, constants: Array, acts: bool = True) -> Array:
    """Return (2, nv) friction levels of the joints, zero if friction does not act, and the speeds that smooth it."""
    tree = tree_views.py_func(model.index, constants)
    return np.array([tree.friction * acts, tree.friction_speed])


def measure_creep(model: Model, friction: Array, t: Array, q: Array,
                  problem: InitialValueProblem | None = None) -> FrictionCreep:
    """Return the creep of N runs.

    friction   (N, 2, nv), see `FrictionCreep`
    t, q       rows (R,), (N, R, nq)
    problem    its torque expressions may act as friction
    """
    creep = FrictionCreep(model, friction)
    rows, step = spaced_rows(t), max(1, _MAX_VALUES_PER_CHUNK // (len(t) * q.shape[2]))
    for first in range(0, len(q), step):
        some = slice(first, first + step)
        chunk = FrictionCreep(model, friction[some])
        chunk.add(t[rows], q[some][:, rows], problem)
        creep.time[some], creep.distance[some], creep.speed[some] = chunk.time, chunk.distance, chunk.speed
    return creep


def spaced_rows(t: Array) -> Integers:
    """Return the indices of rows about `_INTERVAL` apart, or of all if they are farther apart; of rows at one time, the first."""
    if not len(t):
        return np.zeros(0, dtype=int)
    times = np.append(np.arange(t[0], t[-1], _INTERVAL), t[-1])
    return np.unique(np.searchsorted(t, np.minimum(times, t[-1])))              # rounding in arange may exceed the last time


def _speed_laws(problem: InitialValueProblem) -> list[int]:
    """Return the coordinates whose torque is an expression of their velocity."""
    schedule, signals = problem.schedule, problem.signals
    return [int(k) for k in np.flatnonzero(schedule.level == TORQUE)
            if (signal_instructions(signals, schedule.signal[k]) == STATE_V + 256 * k).any()]


def _is_friction(problem: InitialValueProblem, k: int, t: float, q: Array) -> bool:
    """Return whether the torque of coordinate k opposes the motion with a force that hardly grows beyond small speeds."""
    def braking(speed: float) -> float:
        v = np.zeros((2, problem.model.nv))
        v[:, k] = -speed, speed
        against, along = (read_signal(problem.signals, int(problem.schedule.signal[k]), t, q, each)[0] for each in v)
        return against - along
    speed = float(tree_views.py_func(problem.model.index, problem.model.constants).friction_speed[k])
    near, far = braking(_NEAR_SPEED * speed), braking(_FAR_SPEED * speed)
    return near > 0.0 and near > _SATURATION_RATIO * far


# self-check -------------------------------------------------------------------------------------------------------------

# Energies, reactions, tracking, contacts and the self-check are computed from the rows of a run block by block, so that the
# memory does not grow with the run.

Rows = TypeVar("Rows", Tracking, ContactMotion, Adaptation)


class SelfCheck:
    """Self-check of a prepared run. rows: its rows; segments: those that count.

    kinetic, potential, reactions, tracking, adaptation, contacts, stops, friction, limits   as in `Result`
    exceeded   limits that joints exceed while forces move them, and while they are prescribed or locked
    """

    def __init__(self, prepared: PreparedRun, rows: RunRecorder, segments: Sequence[RunSegment]):
        scenario, model, self.frictions = prepared.scenario, prepared.model, prepared.frictions
        self.model, self.problem, self.contact_names, self.passive = (model, prepared.problem, prepared.contact_names,
                                                                      scenario.passive)
        self.rows, self.n = rows, sum(len(segment.record.t) for segment in segments)
        self.kinetic, self.potential, self.times = (rows.allocate(name, self.n) for name in ("kinetic", "potential", "times"))
        self.reactions: Array | None = None
        self.tracking: Tracking | None = None
        self.adaptation: Adaptation | None = None
        self.contacts: ContactMotion | None = None
        self.stops = None if scenario.limits is None else rows.allocate("stops", self.n, model.nv)
        self.friction = rows.allocate("friction", self.n, model.nv) if self.frictions else None
        self.exceeded: tuple[tuple[LimitViolation, ...], tuple[LimitViolation, ...]] = ((), ())
        self._buffers: dict[type, dict[str, Any]] = {}                # writable arrays of tracking and contacts
        smoothed = prepared.hybrid_simulation.model
        self.creep = FrictionCreep(model, smoothed_friction(smoothed, smoothed.constants, scenario.passive))
        self._balance = EnergyBalance(model, len(self.problem.forced_links))
        self._constraints = ConstraintCheck() if any(segment.problem.constraints is not None for segment in segments) else None
        self._force, self._off, self._norm, self._tracking = 0.0, 0.0, 0.0, 0.0
        self._wrong_friction: dict[str, float] = {}
        for place, block in blocks(segments):
            self._add(place, block)

    def _add(self, place: slice, block: RunSegment) -> None:
        record, model = block.record, self.model
        self.kinetic[place], self.potential[place] = energies = energy(block.model, record.q, record.v, passive=self.passive)
        self._balance.add(record, *energies)
        self.times[place] = record.t
        self.creep.add(record.t, record.q, block.problem)
        self.creep.add_velocities(record.t, record.v)
        again = _recompute_forces(block)
        if self._constraints is not None:
            forces, wrenches = joint_forces(model, record), reactions(model, record)
            again -= forces
            self._constraints.add(forces, record)
            if block.problem.constraints is not None:
                self._constraints.check_residuals(model, record,
                                                  np.isin(model.constraint_equation_names, block.model.constraint_equation_names))
            if self.reactions is None:
                self.reactions = self.rows.allocate("reactions", self.n, *wrenches.shape[1:])
            self.reactions[place] = wrenches
        if self.friction is not None:
            self.friction[place] = friction = friction_forces(block.problem, self.frictions, record.v, again, record.tau)
            again -= friction
            self._check_friction(record, friction)
        reach = model_scales(model).unit_scales(model.v_units)
        force = max(_max_abs(again * reach), _max_abs(energies[0]) + work_of_weight(model))
        self._force, self._off, self._norm = np.maximum(                   # NaN stays
            (self._force, self._off, self._norm), (force, _max_abs((again - record.tau) * reach), _norm_error(model, record.q)))
        driven = record.tau
        if self.stops is not None:
            self.stops[place] = stop_forces(block.problem, record)
            driven = record.tau - self.stops[place]
        free = {model.v_names[k] for k in np.flatnonzero(block.problem.schedule.level == TORQUE)}
        violations, (moved, fixed) = limits_exceeded(model, record.t, record.q, record.v, driven), self.exceeded
        self.exceeded = (merge_violations(moved, (violation for violation in violations if violation.coordinate in free)),
                         merge_violations(fixed, (violation for violation in violations if violation.coordinate not in free)))
        self._add_tracking(place, record)
        rows = adaptation_rows(block.problem, record)
        if rows is not None:
            self.adaptation = self._store_rows(self.adaptation, place, rows, ("estimate", "lyapunov", "definite"))
        self._add_contacts(place, record)

    def _check_friction(self, record: Record, friction: Array) -> None:
        """Note the first time at which rigid friction (N, nv) of a coordinate contradicts its law."""
        for each in self.frictions:
            wrong = each.contradicts(record.v[:, each.coordinate], friction[:, each.coordinate])
            wrong[-1:] = False                                 # a force that jumps there may release the coordinate
            rows = np.flatnonzero(wrong)
            if len(rows):
                self._wrong_friction.setdefault(each.name, float(record.t[rows[0]]))

    def friction_warnings(self) -> list[LiedynWarning]:
        """Return a warning about rigid friction that contradicts its law, which an energy balance does not show."""
        if not self._wrong_friction:
            return []
        names = [f"{name} (from t = {t:.6g} s)" for name, t in self._wrong_friction.items()]
        return [LiedynWarning("friction-law", f"friction contradicts its law in {list_names(names, 4)}: the motion is not "
                              "reliable; smaller steps or tolerances, or another integrator.method, may help")]

    @property
    def limits(self) -> tuple[LimitViolation, ...]:
        """Violations of limits, merged for all joints, in the order of the model."""
        order = {name: k for k, name in enumerate(self.model.v_names)}
        return tuple(sorted(merge_violations(*self.exceeded),
                            key=lambda violation: (KINDS.index(violation.kind), order[violation.coordinate])))

    def _add_tracking(self, place: slice, record: Record) -> None:
        problem, final = self.problem, place.stop == self.n
        tracking = compute_tracking(problem, record.t, record.q, final)
        if tracking is None:
            return
        self.tracking = self._store_rows(self.tracking, place, tracking, ("link", "reference"))
        self._tracking = np.maximum(self._tracking, _max_abs(tracking.error))

    def _add_contacts(self, place: slice, record: Record) -> None:
        motion = contact_motion(self.problem, self.contact_names, record.q, record.v, record.stretch)
        if motion is not None:
            self.contacts = self._store_rows(self.contacts, place, motion, ("force", "depth", "slip", "centre", "tangential"))

    def _store_rows(self, stored: Rows | None, place: slice, rows: Rows, names: tuple[str, ...]) -> Rows:
        """Return the arrays of all rows with the values `rows` of some rows written to their place."""
        buffers = self._buffers.setdefault(type(rows), {})
        if stored is None:
            buffers |= {name: self.rows.allocate(name, self.n, *getattr(rows, name).shape[1:]) for name in names}
            stored = replace(rows, **buffers)                    # read-only views
        for name, buffer in buffers.items():
            buffer[place] = getattr(rows, name)
        return stored

    def values(self, statistics: Statistics) -> tuple[dict[str, float], WarningLog]:
        """Return `Result.check`, and warnings about the constraints. statistics: of the run.

        The residual of inverse dynamics is relative to the maximum generalized force, or to the work of the weight and the
        kinetic energy along 1 rad or a characteristic length. The reason: forces of links that cancel in the joints also have
        rounding errors.
        """
        of_constraints: dict[str, float] = {}
        warnings = WarningLog()
        if self._constraints is not None:
            of_constraints, warnings = self._constraints.value(self.model, statistics)
        balance, relative = self._balance.value(statistics.steps)
        followed_by = {} if self.tracking is None else {"tracking_error": float(self._tracking)}
        return {"energy_balance": balance, "energy_balance_relative": relative,
                "inverse_dynamics_residual": float(self._off / max(self._force, 1e-300)),
                "quaternion_norm": float(self._norm), **of_constraints, **followed_by, **self._lyapunov_values()}, warnings

    def _lyapunov_values(self) -> dict[str, float]:
        """Return the Lyapunov function of `slotine_li` at the start and the end of the run [J], and `Adaptation.increase`."""
        if self.adaptation is None:
            return {}
        values = self.adaptation.lyapunov
        return {"lyapunov_start": float(values[0]), "lyapunov_end": float(values[-1]),
                "lyapunov_increase": self.adaptation.increase(self.times)}


def _recompute_forces(segment: RunSegment) -> Array:
    """Return the generalized forces of a segment by inverse dynamics, of the robot without transferred inertia."""
    tau, added = recomputed_forces(segment), segment.problem.transferred_armature
    return tau - added * segment.record.a if added.size else tau


def _max_abs(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


def _norm_error(model: Model, q: Array) -> float:
    """Return the maximum difference of the norms of quaternions from 1."""
    worst = 0.0
    for quaternion in model.quaternions.values():
        norms = np.linalg.norm(q[:, quaternion], axis=1)
        worst = float(np.maximum(worst, np.abs(norms - 1).max()))          # NaN stays
    return worst
