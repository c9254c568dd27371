"""Motors of a scenario, bound to a model: gears, rotors, limits by torque-speed curves, columns and warnings."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.errors import ScenarioError, WarningLog
from liedyn.io.scenarios.scenario import Motor, Rule, Scenario, Table
from liedyn.kernels.simulation import signals as code
from liedyn.model.description import FRICTION_SPEED
from liedyn.model.model import Model, build
from liedyn.simulation.control.control_law import describe_rows
from liedyn.simulation.name_binding import bind_joints
from liedyn.simulation.signals.expression import SignalProgram
from liedyn.simulation.signals.state_tables import table_program

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports this module

# A motor of gear n turns n times as fast as its joint, omega = n v, and applies n times its torque to it. With the maximum torque
# T(omega) in the direction of omega, the force tau of the joint is limited by
#
#     -n T(-n v) <= tau <= n T(n v),
#
# where T(omega) for omega < 0 is the torque of a braking motor, and a negative T(omega) brakes beyond the no-load speed.

_ENERGY_TOLERANCE = 0.01        # of the energy exchanged: estimated error of energies from rows
_MIN_ROWS = 8                   # from which this error is estimated
_MAP_TOLERANCE = 1e-9           # of the range of a map: operating points beyond it by rounding
_CURVE_TOLERANCE = 1e-9         # relative to the maximum force: the simulation computes the limit by another formula


@dataclass(frozen=True, eq=False)
class BoundMotor:
    """The motor of velocity coordinate k."""

    k: int
    joint: str
    motor: Motor
    rule: Rule

    @property
    def armature(self) -> float:
        """Inertia of the rotor at the joint [kg m^2 | kg]."""
        return self.motor.gear**2 * self.motor.inertia

    @property
    def limit(self) -> TorqueLimit:
        """The maximum torque of the motor as a function of its speed."""
        return torque_limit(self.motor)

    @property
    def max_force(self) -> float:
        """A bound of the force of the joint [N m | N]; infinite without a limit."""
        bound = self.motor.gear * self.limit.bound
        return bound if bound < np.inf or not self.motor.has_limit else _UNBOUNDED

    @property
    def force_scale(self) -> float:
        """The maximum torque at the points of the limit, as a force of the joint [N m | N]."""
        return self.motor.gear * float(np.abs(self.limit.torques).max())

    def max_force_at(self, v: Array) -> Array:
        """Return the maximum force at velocities v of the joint. The minimum force is -max_force_at(-v)."""
        return np.asarray(self.motor.gear * self.limit(self.motor.gear * v))

    def motor_force(self, force: Array, v: Array) -> Array:
        """Return the force before the losses of the gear, n times the torque of the motor, from that of the joint."""
        return gear_input(self.motor.gear_efficiency, force, v)

    def limits(self, other_limit: float) -> tuple[SignalProgram | float, SignalProgram | float]:
        """Return the maximum and the minimum force as programs of the velocity v of the joint.

        other_limit: another limit of the force, or infinite.
        """
        n, limit = self.motor.gear, torque_limit(self.motor, other_limit / self.motor.gear)
        if len(limit.speeds) == 1:
            return n * float(limit.torques[0]), -n * float(limit.torques[0])
        points = tuple(zip((limit.speeds / n).tolist(), (n * limit.torques).tolist(), strict=True))
        table = Table(("v",), points, "linear", limit.outside, place=self.rule.place)
        v = SignalProgram((code.STATE_V + 256 * self.k,), (), 1)
        top, mirrored = (table_program(table, [x]) for x in (v, replace(v, code=(*v.code, code.NEGATIVE))))
        return top, replace(mirrored, code=(*mirrored.code, code.NEGATIVE))


# The torque of a motor is limited by a piecewise linear function of its speed. A DC motor with resistance R and constant k at the
# voltage V has the torque k (V - k omega) / R: it brakes beyond the no-load speed V / k.

_UNBOUNDED = 1e300               # a finite limit of the force where the limit of a motor grows with the speed


class TorqueLimit(NamedTuple):
    """Maximum torque at speeds, joined by lines. outside: hold (constant beyond them) or linear."""

    speeds: Array
    torques: Array
    outside: str

    @property
    def bound(self) -> float:
        """A bound of the magnitude of the torque."""
        return np.inf if self.outside == "linear" else float(np.abs(self.torques).max())

    def __call__(self, speed: Array) -> Array:
        """Return the maximum torque at speeds."""
        if self.outside == "linear":
            (x, y), slopes = (self.speeds[0], self.torques[0]), np.diff(self.torques) / np.diff(self.speeds)
            return np.asarray(y + slopes[0] * (speed - x))
        return np.interp(speed, self.speeds, self.torques)


def torque_limit(motor: Motor, other_limit: float = np.inf) -> TorqueLimit:
    """Return the limit of a motor by its curve or voltage, its peak torque and current, and another limit of the torque."""
    maximum = min(motor.torque_limit, other_limit)
    if motor.voltage is not None:
        assert motor.resistance is not None and motor.torque_constant is not None
        V, R, k = motor.voltage, motor.resistance, motor.torque_constant
        if maximum == np.inf:
            return TorqueLimit(np.array([0.0, V / k]), np.array([k * V / R, 0.0]), "linear")
        return TorqueLimit((V - R / k * np.array([maximum, -maximum])) / k, np.array([maximum, -maximum]), "hold")
    if not motor.curve:
        return TorqueLimit(np.zeros(1), np.array([maximum]), "hold")
    speeds, torques = np.array(motor.curve).T
    if maximum < np.inf:                                       # corners where the curve passes the maximum
        rises, begins = np.diff(torques), torques[:-1]
        with np.errstate(all="ignore"):
            fractions = (np.array([[maximum], [-maximum]]) - begins) / rises
        corners = (speeds[:-1] + fractions * np.diff(speeds))[(fractions > 0.0) & (fractions < 1.0)]
        inserted = np.unique(np.concatenate([speeds, corners]))
        speeds, torques = inserted, np.clip(np.interp(inserted, speeds, torques), -maximum, maximum)
    return TorqueLimit(speeds, torques, "hold")


# A gear loses a part of the power that enters it: the force of the joint is eta n times the torque where the motor drives the
# joint, and n / eta' times where the joint drives the motor (`kernels.simulation.joint_laws.gear_output`).

def gear_factors(loss: float | Array, gain: float | Array, v: Array) -> tuple[Array, Array]:
    """Return the force of the joint relative to that without losses, for positive and for negative forces.

    loss, gain: `gear_losses`
    """
    root = np.sqrt(np.square(v) + FRICTION_SPEED**2)
    ahead, back = np.maximum(v, 0.0) / root, np.maximum(-np.asarray(v), 0.0) / root
    return 1.0 - loss * ahead + gain * back, 1.0 - loss * back + gain * ahead


def gear_slope(loss: float, gain: float, force: float, v: float) -> float:
    """Return the derivative of the relative force with respect to v. force: of the joint."""
    slope = float(FRICTION_SPEED**2 / (v * v + FRICTION_SPEED**2) ** 1.5)
    return -slope * (loss if v >= 0.0 else gain) if force >= 0.0 else slope * (gain if v >= 0.0 else loss)


def gear_losses(efficiency: tuple[float, float]) -> tuple[float, float]:
    """Return the force that a gear takes from a driving motor, and that it adds to a braking one, relative to the force."""
    forward, backward = efficiency
    return 1.0 - forward, 1.0 / backward - 1.0


def gear_input(efficiency: tuple[float, float], force: Array, v: Array) -> Array:
    """Return the force before the losses of a gear from that of the joint."""
    driving, braking = gear_factors(*gear_losses(efficiency), v)
    return np.asarray(force / np.where(np.asarray(force) >= 0.0, driving, braking))


def bind_motors(scenario: Scenario, model: Model) -> list[BoundMotor]:
    """Return the motors in the order of the model. Raises ScenarioError for named joints that do not have one coordinate."""
    motors = []
    for name, rule in bind_joints(scenario.motors, model).items():
        v = model.v_index(name)
        if v.stop - v.start == 1:
            assert isinstance(rule.value, Motor)
            motors.append(BoundMotor(v.start, name, rule.value, rule))
        elif rule.pattern == name:
            raise ScenarioError(f"joint {name} has {v.stop - v.start} coordinates: motors require joints with one coordinate",
                                place=rule.place)
    return motors


def add_rotor_inertias(scenario: Scenario, model: Model) -> Model:
    """Return the model with the rotor inertias of the motors as armatures.

    Raises ScenarioError if the robot file defines an armature, too.
    """
    joints = {joint.name: joint for joint in model.description.joints}
    for motor in bind_motors(scenario, model):
        armature = joints[motor.joint].coordinates[0].armature
        if motor.motor.inertia and armature:
            raise ScenarioError(f"joint {motor.joint} already has an armature in the robot file",
                                place=motor.rule.place.at("inertia"), expected="one of the two",
                                found=f"inertia: {motor.motor.inertia:g}, armature: {armature:g}")
    armatures = motor_armatures(scenario, model)
    return with_armatures(model, armatures) if armatures else model


def motor_armatures(scenario: Scenario, model: Model) -> dict[str, float]:
    """Return the armatures [kg m^2 | kg] of joints whose motors have a rotor inertia."""
    return {motor.joint: motor.armature for motor in bind_motors(scenario, model) if motor.motor.inertia}


def with_armatures(model: Model, armatures: dict[str, float]) -> Model:
    """Return the model with these armatures of joints of one coordinate, by name."""
    joints = tuple(replace(joint, coordinates=(replace(joint.coordinates[0], armature=armatures[joint.name]),))
                   if joint.name in armatures else joint for joint in model.description.joints)
    return build(replace(model.description, joints=joints))


def motor_columns(motors: list[BoundMotor], t: Array, v: Array, tau: Array) -> list[tuple[str, str, Array]]:
    """Return (name, unit, (N,) array) of torque, speed, losses, power and load of each motor. tau (N, nv): without stops."""
    columns: list[tuple[str, str, Array]] = []
    for each in motors:
        torque = each.motor_force(tau[:, each.k], v[:, each.k]) / each.motor.gear
        speed = each.motor.gear * v[:, each.k]
        columns += [(f"motor.{each.joint}.torque", "N m", torque), (f"motor.{each.joint}.speed", "rad/s", speed)]
        columns += [(f"motor.{each.joint}.{name}", "W", x) for name, x in motor_powers(
            each.motor, torque, speed, tau[:, each.k] * v[:, each.k]).items()]
        if each.motor.thermal:
            columns.append((f"motor.{each.joint}.load", "", thermal_load(each.motor.thermal, t, torque)))
    return columns


def motor_powers(motor: Motor, torque: Array, speed: Array, output: Array) -> dict[str, Array]:
    """Return the losses and the electrical power of a motor [W], as far as its losses are known.

    gear, copper, losses, braking resistor: the electrical power is their sum and the power `output` of the joint.
    """
    shaft, powers = torque * speed, {}
    if motor.gear_efficiency != (1.0, 1.0):
        powers["gear"] = shaft - output
    if not motor.has_losses:
        return powers
    electrical = shaft
    if motor.resistance is not None and not motor.efficiency_map:
        assert motor.torque_constant is not None
        powers["copper"] = motor.resistance * np.square(torque / motor.torque_constant)
        electrical = electrical + powers["copper"]
    if motor.loss_map:
        powers["losses"] = map_values(motor.loss_map, speed, torque)
    elif motor.efficiency_map:
        efficiency = map_values(motor.efficiency_map, speed, torque)
        powers["losses"] = np.abs(shaft) * np.where(shaft > 0.0, 1.0 / efficiency - 1.0, 1.0 - efficiency)
    electrical = electrical + powers.get("losses", 0.0)
    if not motor.regeneration:
        powers["braking"] = np.maximum(-electrical, 0.0)
        electrical = np.maximum(electrical, 0.0)
    return powers | {"power": electrical}


def map_values(rows: tuple[tuple[float, ...], ...], speed: Array, torque: Array) -> Array:
    """Return values of a map at operating points, bilinear between its rows, and constant beyond them.

    A map without negative speeds (or torques) holds for both directions.
    """
    points = np.array(rows)
    axes = [np.unique(x) for x in points[:, :2].T]
    grid = points[np.lexsort((points[:, 1], points[:, 0])), 2].reshape(len(axes[0]), len(axes[1]))
    cells, fractions = [], []
    for axis, values in zip(axes, (speed, torque), strict=True):
        x = np.clip(np.abs(values) if axis[0] >= 0.0 else values, axis[0], axis[-1])
        k = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
        cells.append(k)
        fractions.append((x - axis[k]) / (axis[k + 1] - axis[k]))
    (i, j), (r, s) = cells, fractions
    low, high = ((1 - s) * grid[row, j] + s * grid[row, j + 1] for row in (i, i + 1))
    return np.asarray((1 - r) * low + r * high)


def exceeds_map(rows: tuple[tuple[float, ...], ...], speed: Array, torque: Array) -> Mask:
    """Return whether operating points are beyond a map."""
    beyond = np.zeros(len(speed), dtype=bool)
    for axis, values in zip(np.array(rows).T[:2], (speed, torque), strict=True):
        x = np.abs(values) if axis.min() >= 0.0 else values
        slack = _MAP_TOLERANCE * np.ptp(axis)
        beyond |= (x < axis.min() - slack) | (x > axis.max() + slack)
    return beyond


def thermal_load(thermal: tuple[float, float, float], t: Array, torque: Array) -> Array:
    """Return the load x of a winding, T x' = (torque / continuous)^2 - x; the continuous torque leads to x = 1.

    The solution is exact for squares of the torque that change linearly between the times t (N,).
    """
    continuous, time_constant, initial = thermal
    a, u = np.diff(t) / time_constant, np.square(torque / continuous)
    decay = np.exp(-a)
    mean = np.divide(-np.expm1(-a), a, out=np.ones_like(a), where=a > 0.0)
    gains = u[1:] * (1.0 - mean) + u[:-1] * (mean - decay)
    load = [initial]
    for factor, gain in zip(decay.tolist(), gains.tolist(), strict=True):
        load.append(load[-1] * factor + gain)
    return np.array(load)


def motor_energies(motors: list[BoundMotor], t: Array, v: Array, tau: Array) -> dict[str, dict[str, float]]:
    """Return the energies of each motor with known losses [J]: that of the joint, losses, and the electrical one (power).

    They are integrals of the columns by the trapezoidal rule.
    """
    energies = {}
    for each in motors:
        powers = {name.rpartition(".")[2]: x for name, unit, x in motor_columns([each], t, v, tau) if unit == "W"}
        if powers:
            powers = {"joint": tau[:, each.k] * v[:, each.k]} | powers
            energies[each.joint] = {name: _integral(t, x) for name, x in powers.items()}
    return energies


def _integral(t: Array, x: Array) -> float:
    return float(0.5 * np.sum(np.diff(t) * (x[1:] + x[:-1])))


def motor_warnings(motors: list[BoundMotor], segments: Sequence[RunSegment], stop_forces: Array | None) -> WarningLog:
    """Return warnings about motors at their curves, and about prescribed motions that exceed them, at output times.

    segments     of the run
    stop_forces  (N, nv) part of the recorded tau that stops contribute; None: zero
    """
    warnings, times = WarningLog(), np.concatenate([segment.record.t for segment in segments])
    for motor in motors:
        v = [segment.record.v[:, motor.k] for segment in segments]
        forces = [motor.motor_force(tau, x) for tau, x in zip(driving_forces(segments, motor.k, stop_forces), v, strict=True)]
        warnings.extend(_operating_warnings(motor, times, np.concatenate(v), np.concatenate(forces)))
        if not motor.motor.has_limit:
            continue
        at_curve, beyond = [], []
        for segment, x, tau in zip(segments, v, forces, strict=True):
            is_prescribed = segment.problem.prescribed[motor.k]
            reserve = np.minimum(motor.max_force_at(x) - tau, motor.max_force_at(-x) + tau) / motor.force_scale
            at_curve.append(~is_prescribed & (reserve <= _CURVE_TOLERANCE))
            beyond.append(is_prescribed & (reserve < -_CURVE_TOLERANCE))
        if np.concatenate(at_curve).any():
            warnings.add("motor-limited",
                         f"the motor of {motor.joint} is at its curve {describe_rows(times, np.concatenate(at_curve))}")
        if np.concatenate(beyond).any():
            warnings.add("motor-exceeded",
                         f"the prescribed motion of {motor.joint} requires more torque than the curve of its motor allows, "
                         f"{describe_rows(times, np.concatenate(beyond))}")
    return warnings


def _operating_warnings(motor: BoundMotor, t: Array, v: Array, forces: Array) -> WarningLog:
    """Return warnings about the thermal load, operating points beyond a map, and energies that rows do not resolve.

    forces: (N,) before the losses of the gear.
    """
    warnings, speed, torque = WarningLog(), motor.motor.gear * v, forces / motor.motor.gear
    if motor.motor.thermal:
        load = thermal_load(motor.motor.thermal, t, torque)
        if (load > 1.0).any():
            warnings.add("motor-overheated", f"the motor of {motor.joint} exceeds its continuous load "
                         f"{describe_rows(t, load > 1.0)}; its load reaches {load.max():.3g}")
    rows = motor.motor.loss_map or motor.motor.efficiency_map
    if rows and exceeds_map(rows, speed, torque).any():
        warnings.add("motor-beyond-map", f"the motor of {motor.joint} leaves its map of losses "
                     f"{describe_rows(t, exceeds_map(rows, speed, torque))}: the values at its end are used")
    if motor.motor.has_losses and len(t) > _MIN_ROWS:
        power = motor_powers(motor.motor, torque, speed, torque * speed)["power"]
        fine, coarse, size = _integral(t, power), _integral(t[::2], power[::2]), _integral(t, np.abs(power))
        if len(t) % 2 and abs(fine - coarse) / 3.0 > _ENERGY_TOLERANCE * size:
            warnings.add("motor-energy-inaccurate", f"the energy of the motor of {motor.joint} from the rows is off by about "
                         f"{abs(fine - coarse) / (3.0 * size):.2g} of the power exchanged; use a shorter output_step")
    return warnings


def driving_forces(segments: Sequence[RunSegment], k: int, stop_forces: Array | None) -> list[Array]:
    """Return the generalized forces of coordinate k in each segment, without those of stops."""
    forces = [segment.record.tau[:, k] for segment in segments]
    if stop_forces is None:
        return forces
    parts = np.split(stop_forces[:, k], np.cumsum([len(tau) for tau in forces])[:-1])
    return [tau - part for tau, part in zip(forces, parts, strict=True)]
