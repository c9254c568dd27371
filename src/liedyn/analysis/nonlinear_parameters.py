"""Parameters of a recording in which its forces are not linear: zero offsets of encoders, scales of torques, Stribeck friction.

Gauss-Newton iterations estimate them with the base parameters: the derivatives of the forces are columns of the regression.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.derivatives import inverse_dynamics_derivatives
from liedyn.dynamics.inertial_parameters import BaseParameters, contracted_derivatives
from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select, v_to_q_indices

ZERO_OFFSET, TORQUE_SCALE, FRICTION_RISE, STRIBECK_SPEED = "zero_offset", "torque_scale", "friction_rise", "stribeck_speed"
NONLINEAR_FIELDS = {ZERO_OFFSET: "zero_offsets", TORQUE_SCALE: "torque_scales", FRICTION_RISE: "friction_rises",
                    STRIBECK_SPEED: "stribeck_speeds"}          # of `ConsistentParameters`
_BLOCK = 512        # rows whose derivatives are computed together: limits the memory
_LONGEST_STEP = 0.3   # of a Gauss-Newton iteration: rad (characteristic units) of a zero offset, and part of a Stribeck speed
_VAGUE = 0.1          # characteristic unit: a zero offset with a larger deviation is not determined
_VAGUE_SPEED = 0.3    # the same of a Stribeck speed, relative to it
_CLEAR = 4.0          # deviations from which friction rises at low speed
_SPEEDS = np.geomspace(0.003, 0.5, 12)      # Stribeck speeds where the search begins, relative to the maximum speed


class NonlinearParameters(NamedTuple):
    """Estimates of parameters in which the forces are not linear.

    names, units  such as "zero_offset.elbow", the reading of the encoder where the joint of the robot file is at zero, and
                  "torque_scale.elbow", the ratio of the measured torque to the true one; "friction_rise.elbow", the static
                  level of friction minus that in motion, and "stribeck_speed.elbow"
    values        (e,) NaN if the recording does not determine it
    deviations    (e,) standard deviations; infinite if the recording does not determine it
    verdicts      (e,) as those of base parameters
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    deviations: Array
    verdicts: tuple[str, ...]

    def of(self, kind: str) -> dict[str, tuple[float, float]]:
        """Return (value, deviation) of the parameters of a kind, such as "zero_offset", that are determined, by coordinate."""
        return {name.partition(".")[2]: (float(x), float(s)) for name, x, s in zip(self.names, self.values, self.deviations,
                                                                                 strict=True)
                if name.partition(".")[0] == kind and np.isfinite(x)}


@dataclass(frozen=True, eq=False)
class LinearizationPoint:
    """Values at which the forces of a recording are linearized.

    kinds        (e,) kinds of the parameters: ZERO_OFFSET, TORQUE_SCALE, FRICTION_RISE or STRIBECK_SPEED
    coordinates  (e,) their coordinates, indices in v
    values       (e,) zero offsets of encoders [rad | m], ratios of measured to true torques, rises of friction [N m | N] and
                 Stribeck speeds [rad/s | m/s]
    change       (b,) of the base parameters from those of the robot file
    """

    model: Model
    kinds: tuple[str, ...]
    coordinates: Integers
    values: Array
    change: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names (e,) of the parameters."""
        return tuple(f"{kind}.{self.model.v_names[k]}" for kind, k in zip(self.kinds, self.coordinates, strict=True))

    @property
    def units(self) -> tuple[str, ...]:
        """Units (e,) of the parameters."""
        return tuple(nonlinear_unit(kind, self.model.v_units[k]) for kind, k in zip(self.kinds, self.coordinates, strict=True))

    @property
    def sizes(self) -> Array:
        """Characteristic units (e,) of the parameters."""
        return model_scales(self.model).unit_scales(self.units)

    @property
    def longest_steps(self) -> Array:
        """(e,) maximum changes in one iteration; infinite where there is no limit."""
        of_speeds = np.where(self.of_kind(STRIBECK_SPEED), _LONGEST_STEP * self.values, np.inf)
        return np.where(self.of_kind(ZERO_OFFSET), _LONGEST_STEP * self.sizes, of_speeds)

    def vague(self, deviations: Array) -> Mask:
        """Return (e,) bool: parameters with standard deviations (e,) that say nothing. A rise of friction has a speed."""
        limits = np.where(self.of_kind(ZERO_OFFSET), _VAGUE * self.sizes, np.inf)
        limits = np.where(self.of_kind(STRIBECK_SPEED), _VAGUE_SPEED * self.values, limits)
        limits = np.where(self.of_kind(FRICTION_RISE), self.values / _CLEAR, limits)
        return self.with_partners(deviations > limits)

    def with_partners(self, omitted: Mask) -> Mask:
        """Return the mask (e,), also with the rise where the Stribeck speed is in it, and conversely."""
        stribeck = self.of_kind(FRICTION_RISE) | self.of_kind(STRIBECK_SPEED)
        mask: Mask = omitted | (stribeck & np.isin(self.coordinates, self.coordinates[omitted & stribeck]))
        return mask

    @property
    def shift(self) -> Array:
        """(nq,) by which positions are to be reduced."""
        return zero_shift(self.model, self._by_coordinate(ZERO_OFFSET))

    @property
    def scales(self) -> Array:
        """(nv,) ratios of the measured to the true torques."""
        return np.array([self._by_coordinate(TORQUE_SCALE).get(name, 1.0) for name in self.model.v_names])

    @property
    def stribeck(self) -> dict[str, tuple[float, float]]:
        """Rise of friction and Stribeck speed by coordinate."""
        rises, speeds = self._by_coordinate(FRICTION_RISE), self._by_coordinate(STRIBECK_SPEED)
        return {name: (rise, speeds[name]) for name, rise in rises.items()}

    def of_kind(self, kind: str) -> Mask:
        """Return (e,) bool: parameters of a kind."""
        return np.array([each == kind for each in self.kinds], dtype=bool)

    def _by_coordinate(self, kind: str) -> dict[str, float]:
        of_kind = self.of_kind(kind)
        return {self.model.v_names[k]: x for k, x in zip(self.coordinates[of_kind], self.values[of_kind].tolist(), strict=True)}

    def moved(self, steps: Array, change: Array) -> LinearizationPoint:
        """Return the point with values changed by the steps (e,)."""
        return replace(self, values=self.values + steps, change=change)

    def only(self, remaining: Mask) -> LinearizationPoint:
        """Return the point without some parameters."""
        kinds = tuple(kind for kind, remains in zip(self.kinds, remaining, strict=True) if remains)
        return replace(self, kinds=kinds, coordinates=self.coordinates[remaining], values=self.values[remaining])

    def columns(self, base: BaseParameters, states: Sequence[Array], f_ext: Array | None, passive: bool,
                joints: tuple[str, ...], forces: Array) -> Array:
        """Return the derivatives (n, nv, e) of measured forces with respect to the parameters.

        states  q, v and a without zero offsets
        joints  kinds of joint parameters with columns in `base`
        forces  (n, nv) true forces at this point
        """
        out = np.zeros((len(forces), self.model.nv, len(self.kinds)))
        scaled, shifted = (np.flatnonzero(self.of_kind(kind)) for kind in (TORQUE_SCALE, ZERO_OFFSET))
        out[:, self.coordinates[scaled], scaled] = forces[:, self.coordinates[scaled]]
        of_rises = [np.flatnonzero(self.of_kind(kind)) for kind in (FRICTION_RISE, STRIBECK_SPEED)]
        for rise, speed in zip(*of_rises, strict=True):
            k, v, x = self.coordinates[rise], states[1][:, self.coordinates[rise]], self.values[speed]
            out[:, k, rise] = self.scales[k] * stribeck_curve(self.model, int(k), v, x)
            out[:, k, speed] = out[:, k, rise] * self.values[rise] * 2.0 * v**2 / x**3
        if len(shifted):
            D = self.position_derivatives(base, states, f_ext, passive, joints)
            out[:, :, shifted] = -D[:, :, self.coordinates[shifted]] * self.scales[:, None]
        return out

    def position_derivatives(self, base: BaseParameters, states: Sequence[Array], f_ext: Array | None, passive: bool,
                             joints: tuple[str, ...]) -> Array:
        """Return the derivatives (n, nv, nv) of the true forces with respect to the positions."""
        q, v, a = states
        N = self.model.elimination().projection if self.model.nc else np.eye(self.model.nv)
        out = np.empty((len(q), self.model.nv, self.model.nv))
        parameters = np.zeros(len(base.parameters.names))
        parameters[base.columns] = self.change
        for start in range(0, len(q), _BLOCK):
            part = slice(start, start + _BLOCK)
            D = np.array(inverse_dynamics_derivatives(self.model, q[part], v[part], a[part], passive=passive,
                                                      f_ext=None if f_ext is None else f_ext[part])[0])
            for k in np.flatnonzero(N.any(axis=0)):
                weights = np.tile(N[:, k, None] * parameters, (len(D), 1, 1))
                D[:, k] += contracted_derivatives(self.model, q[part], v[part], a[part], weights, passive, joints)[0] @ N
            out[part] = D
        return out


def starting_point(model: Model, base: BaseParameters, zero_offsets: Sequence[str] | str = (),
                   torque_scales: Sequence[str] | str = (), stribeck: Sequence[str] | str = ()) -> LinearizationPoint:
    """Return the point of the robot file, with parameters of joints with these names or patterns.

    Stribeck friction has no rise, and an infinite speed: `with_rises` finds where to start.

    Raises UsageError for patterns without match. Ball and free joints have no such parameters, and followers of couplings have no
    encoder and no motor.
    """
    for subject, patterns in (("zero offsets of encoders are", zero_offsets), ("Stribeck friction is", stribeck)):
        if model.nc and not model.has_only_linear_couplings and len(patterns):
            raise UsageError(f"{subject} not supported for the robot {model.name}, which has loops")
    followers = model.elimination().follower if model.nc else ()
    single = [k for joint in model.joints if joint.kind == ONE_DOF for k in range(joint.v.start, joint.v.stop)
              if k not in followers]
    names = [model.v_names[k] for k in single]
    chosen = [sorted(select(patterns, names, "joint with one independent coordinate"))
              for patterns in (zero_offsets, torque_scales, stribeck, stribeck)]
    initial = {ZERO_OFFSET: 0.0, TORQUE_SCALE: 1.0, FRICTION_RISE: 0.0, STRIBECK_SPEED: np.inf}
    kinds = tuple(kind for kind, indices in zip(initial, chosen, strict=True) for _ in indices)
    return LinearizationPoint(model, kinds, np.array(single, dtype=int)[np.r_[*chosen].astype(int)],
                              np.array([initial[kind] for kind in kinds]), np.zeros(len(base)))


def with_rises(point: LinearizationPoint, v: Array, filtered: Callable[[Array], Array], W: Array, x: Array,
               noise: Array) -> LinearizationPoint:
    """Return the point with rises of friction and Stribeck speeds, zero and infinite where friction does not rise.

    For each joint, the speed is selected from a series by the score test: the rise that reduces the residual most.

    v         (n, nv) velocities
    filtered  low-pass filter of columns (n, …)
    W         (m, nv, b + 1) filtered equations of the base parameters, with the solution x (b,) and the noise (nv,)
    """
    rises, speeds = (np.flatnonzero(point.of_kind(kind)) for kind in (FRICTION_RISE, STRIBECK_SPEED))
    if not len(rises):
        return point
    used = W[:, :, :-1] / noise[:, None]
    U, s, _ = np.linalg.svd(used.reshape(-1, len(x)) / np.maximum(np.linalg.norm(used, axis=(0, 1)), np.finfo(float).tiny),
                            full_matrices=False)
    U = U[:, s > np.sqrt(np.finfo(float).eps) * s.max(initial=0.0)].reshape(*W.shape[:2], -1)
    residual, values = (W[:, :, -1] - W[:, :, :-1] @ x) / noise, point.values.copy()
    for rise, speed in zip(rises, speeds, strict=True):
        k = int(point.coordinates[rise])
        candidates = np.abs(v[:, k]).max() * _SPEEDS
        if not (W[:, k].any() and candidates[0] > 0.0):
            continue
        C = filtered(np.stack([stribeck_curve(point.model, k, v[:, k], x) for x in candidates], axis=1)) / noise[k]
        power = (C**2).sum(axis=0) - ((U[:, k].T @ C)**2).sum(axis=0)           # of what no base parameter causes
        score = np.maximum(C.T @ residual[:, k], 0.0)
        gain = np.divide(score**2, power, out=np.zeros_like(power), where=power > np.sqrt(np.finfo(float).eps))
        best = int(gain.argmax())
        if gain[best] > _CLEAR**2:
            values[[rise, speed]] = score[best] / power[best], candidates[best]
    return replace(point, values=values)


def stribeck_curve(model: Model, coordinate: int, v: Array, speed: float) -> Array:
    """Return friction with a rise of 1 at velocities v: it falls by exp(-(v / speed)^2), and is smoothed as in the model."""
    smoothing = tree_views.py_func(model.index, model.constants).friction_speed[coordinate]
    curve: Array = v / np.hypot(v, smoothing) * np.exp(-(v / speed)**2)
    return curve


def stribeck_friction(model: Model, stribeck: Mapping[str, tuple[float, float]], v: Array) -> Array:
    """Return the force (n, nv) at velocities v by rises of friction and Stribeck speeds {coordinate: (rise, speed)}."""
    force = np.zeros_like(v)
    for k, name in enumerate(model.v_names):
        if name in stribeck:
            rise, speed = stribeck[name]
            force[:, k] = rise * stribeck_curve(model, k, v[:, k], speed)
    return force


def values_in_file(model: Model, names: Sequence[str]) -> Array:
    """Return the values of the robot file of parameters such as "zero_offset.elbow"."""
    coordinates = {joint.name: joint.coordinate_parameters for joint in model.description.joints}
    values = []
    for kind, _, owner in (name.partition(".") for name in names):
        rises = {FRICTION_RISE: 0.0, STRIBECK_SPEED: 0.0}
        if kind in rises and coordinates[owner][0].stribeck_speed > 0.0:
            each = coordinates[owner][0]
            rises = {FRICTION_RISE: each.static_friction - each.friction, STRIBECK_SPEED: each.stribeck_speed}
        values.append({ZERO_OFFSET: 0.0, TORQUE_SCALE: 1.0, **rises}[kind])
    return np.array(values)


def nonlinear_unit(kind: str, unit: str) -> str:
    """Return the unit of a parameter of a coordinate with the unit rad or m."""
    return {ZERO_OFFSET: unit, TORQUE_SCALE: "1", FRICTION_RISE: "N" if unit == "m" else "N m", STRIBECK_SPEED: f"{unit}/s"}[kind]


def zero_shift(model: Model, zero_offsets: Mapping[str, float]) -> Array:
    """Return the shift (nq,) of positions by zero offsets {coordinate: [rad | m]}. Followers of couplings move, too."""
    shift, of_v = np.zeros(model.nq), np.array([zero_offsets.get(name, 0.0) for name in model.v_names])
    if model.nc:
        of_v = model.elimination().projection @ of_v
    for i, x in zip(v_to_q_indices(model), of_v, strict=True):
        if i >= 0:
            shift[i] = x
    return shift
