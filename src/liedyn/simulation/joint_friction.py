"""Rigid Coulomb friction of joints in a run: levels, modes, forces.

A coordinate sticks, or it slides in one direction. While it sticks, its acceleration is prescribed as zero, and the friction
that this needs is watched: beyond the static level the coordinate is released. While it slides, friction is a function of its
velocity, and the zero of the velocity is watched. `sticking` decides what follows after each event.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ModelError, ScenarioError
from liedyn.integrators.contact_forces import friction_slope, sliding_friction
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Friction, Scenario
from liedyn.model.model import Model, build
from liedyn.model.validate import check_friction
from liedyn.simulation.name_binding import bind_joints

_RELEASE_MARGIN = 1e-10       # of the static level: by this, friction exceeds it where a coordinate is released
_MOVING, _LAW_TOLERANCE = 1e-6, 1e-6     # of the characteristic speed and force: in motion; friction that obeys its law
_BEGINNINGS = "stick", "slide"      # of events: "elbow sticks", "shoulder and elbow slide"


@dataclass(frozen=True)
class JointFriction:
    """Rigid friction of one coordinate.

    coordinate   index in v
    level        in motion [N m | N]
    static       at rest, at least `level` [N m | N]
    stribeck     speed by which the level falls from `static` [rad/s | m/s]; 0: at once
    speed_scale  characteristic velocity of the coordinate [rad/s | m/s]
    force_scale  characteristic force of the coordinate, at least `static` [N m | N]
    """

    name: str
    coordinate: int
    level: float
    static: float
    stribeck: float
    speed_scale: float
    force_scale: float

    @property
    def initial(self) -> float:
        """Level at the beginning of sliding [N m | N]."""
        return self.static if self.stribeck else self.level

    @property
    def limit(self) -> float:
        """Maximum friction with which the coordinate begins to stick [N m | N]."""
        return self.static * (1.0 + 0.5 * _RELEASE_MARGIN)

    @property
    def release(self) -> float:
        """Friction at which it is released [N m | N]. What has just begun to stick is below it."""
        return self.static * (1.0 + _RELEASE_MARGIN)

    def force(self, v: Array) -> Array:
        """Return friction at velocities v; 0 at rest, where it is not a function of v."""
        return -np.sign(v) * (self.level + (self.initial - self.level) * np.exp(-(v * self._rate) ** 2))

    def slope(self, v: float) -> float:
        """Return the derivative of friction with respect to the velocity v; 0 at rest."""
        return friction_slope(*self.coefficients(int(np.sign(v)), False)[1:], v)

    def coefficients(self, direction: int, at_rest: bool) -> tuple[float, float, float]:
        """Return the coefficients of friction while sliding in a direction, see `kernels.simulation.joint_laws`."""
        if at_rest:
            return -direction * self.limit, 0.0, 0.0
        return -direction * self.level, -direction * (self.initial - self.level), self._rate**2

    def contradicts(self, v: Array, force: Array) -> Mask:
        """Return where friction at velocities v differs from the law: from `force` in motion, or above the static level."""
        wrong = (np.abs(v) > _MOVING * self.speed_scale) & (np.abs(force - self.force(v)) > _LAW_TOLERANCE * self.force_scale)
        return wrong | (np.abs(force) > self.release + _LAW_TOLERANCE * self.force_scale)

    @property
    def _rate(self) -> float:
        return 1.0 / self.stribeck if self.stribeck else 0.0


@dataclass(frozen=True)
class FrictionMode:
    """Whether a coordinate sticks, or how it slides.

    direction   of sliding, 1 or -1; 0: it sticks
    at_rest     whether other coordinates hold it at rest, while its friction is at the static level against `direction`
    """

    friction: JointFriction
    direction: int
    at_rest: bool = False

    @property
    def moves(self) -> bool:
        """Whether the coordinate slides."""
        return bool(self.direction) and not self.at_rest


FrictionState: TypeAlias = tuple[FrictionMode, ...]          # of all coordinates with rigid friction that are free to move


def rigid_frictions(model: Model) -> tuple[JointFriction, ...]:
    """Return the rigid friction of a model in the order of its coordinates. Coordinates without friction have none."""
    scales = model_scales(model)
    described = {joint.name: joint.coordinate_parameters for joint in model.description.joints}
    out = []
    for joint in model.joints:
        for k, c in zip(range(joint.v.start, joint.v.stop), described.get(joint.name, ()), strict=False):
            static = max(c.static_friction, c.friction)
            if c.rigid_friction and static > 0.0:
                unit = model.v_units[k]
                force = max(static, float(scales.force_scales([unit])[0]))
                out.append(JointFriction(model.v_names[k], k, c.friction, static, c.stribeck_speed,
                                         scales.unit_scale(f"{unit}/s"), force))
    return tuple(out)


def with_scenario_friction(scenario: Scenario, model: Model) -> Model:
    """Return the model with the friction of joints that the scenario gives. Raises ScenarioError where it is wrong."""
    joints = {joint.name: joint for joint in model.description.joints}
    rules = bind_joints(scenario.friction, model, [name for name, joint in joints.items() if joint.labels])
    if not rules:
        return model
    for name, rule in rules.items():
        assert isinstance(rule.value, Friction)
        try:
            joints[name] = joints[name].with_friction(dict(rule.value.values))
            for coordinate in joints[name].coordinates:
                check_friction(joints[name], coordinate)
        except ModelError as error:
            raise ScenarioError(f"joint {name}: {error.message}", place=rule.place, found=error.found, expected=error.expected,
                                hint=error.hint) from None
    return build(replace(model.description, joints=tuple(joints.values())))


def without_friction(model: Model, frictions: Sequence[JointFriction]) -> Model:
    """Return the model without the friction of these coordinates, which a run adds by its modes."""
    return model.with_changes(friction={friction.name: 0.0 for friction in frictions}) if frictions else model


def friction_event_names(frictions: Sequence[JointFriction]) -> list[str]:
    """Return the names of the events of rigid friction, two for each coordinate."""
    return [_event_name([friction.name], verb) for friction in frictions for verb in _BEGINNINGS]


def _event_name(names: Sequence[str], verb: str) -> str:
    return f"{' and '.join(names)} {verb}{'s' if len(names) == 1 else ''}"


def change_names(former: Sequence[FrictionMode], modes: Sequence[FrictionMode]) -> list[str]:
    """Return the names of the events in which coordinates begin to stick, and in which they begin to slide."""
    moved = {mode.friction.name: mode.moves for mode in former}
    changed = [mode for mode in modes if moved.get(mode.friction.name, mode.moves) != mode.moves]
    parts = ([mode.friction.name for mode in changed if mode.moves == moves] for moves in (False, True))
    return [_event_name(names, verb) for names, verb in zip(parts, _BEGINNINGS, strict=True) if names]


def matches_friction_event(name: str, event: str) -> bool:
    """Return whether the name of an occurred event is `event`, of one coordinate, or combines it with other coordinates."""
    coordinate, _, verb = event.rpartition(" ")
    coordinates, _, occurred = name.rpartition(" ")
    return verb.removesuffix("s") == occurred.removesuffix("s") in _BEGINNINGS and coordinate in coordinates.split(" and ")


def prescribed_friction(problem: InitialValueProblem, frictions: Sequence[JointFriction], v: Array) -> Array:
    """Return friction (N, nv) of the coordinates with prescribed motion at velocities v (N, nv).

    At rest it is not determined, and zero.
    """
    out, level = np.zeros_like(v), problem.schedule.level
    for friction in frictions:
        if level[friction.coordinate]:
            out[:, friction.coordinate] = friction.force(v[:, friction.coordinate])
    return out


def sticking_coordinates(problem: InitialValueProblem) -> Mask:
    """Return the mask (nv,) of the coordinates that stick."""
    mask = np.zeros(problem.model.nv, dtype=bool)
    if problem.stops is not None:
        mask[problem.stops.sticking] = True
    return mask


def prescribed_slopes(problem: InitialValueProblem, frictions: Sequence[JointFriction], v: Array) -> Array:
    """Return the derivatives (nv,) of friction of coordinates with prescribed motion with respect to their velocities v."""
    out, level = np.zeros(len(v)), problem.schedule.level
    for friction in frictions:
        if level[friction.coordinate]:
            out[friction.coordinate] = friction.slope(v[friction.coordinate])
    return out


def friction_forces(problem: InitialValueProblem, frictions: Sequence[JointFriction], v: Array, forces: Array,
                    tau: Array) -> Array:
    """Return friction (N, nv) of coordinates at velocities v (N, nv) that slide, stick or are prescribed.

    forces   (N, nv) generalized forces of the motion, which are tau and friction where coordinates stick
    """
    out = prescribed_friction(problem, frictions, v) + sliding_friction(problem, v)
    if problem.stops is not None:
        sticking = problem.stops.sticking
        out[:, sticking] = (forces - tau)[:, sticking]
    return out
