"""Parameters of a recording in which its forces are not linear: zero offsets of encoders, and scales of measured torques.

Gauss-Newton iterations estimate them with the base parameters: the derivatives of the forces are columns of the regression.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.derivatives import inverse_dynamics_derivatives
from liedyn.dynamics.inertial_parameters import BaseParameters, contracted_derivatives
from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select, v_to_q_indices

ZERO_OFFSET, TORQUE_SCALE = "zero_offset", "torque_scale"
_BLOCK = 512        # rows whose derivatives are computed together: limits the memory


class NonlinearParameters(NamedTuple):
    """Estimates of parameters in which the forces are not linear.

    names, units  such as "zero_offset.elbow", the reading of the encoder where the joint of the robot file is at zero, and
                  "torque_scale.elbow", the ratio of the measured torque to the true one
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

    kinds        (e,) kinds of the parameters: ZERO_OFFSET or TORQUE_SCALE
    coordinates  (e,) their coordinates, indices in v
    values       (e,) zero offsets of encoders [rad | m] and ratios of measured to true torques
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
        return tuple(self.model.v_units[k] if kind == ZERO_OFFSET else "1"
                     for kind, k in zip(self.kinds, self.coordinates, strict=True))

    @property
    def sizes(self) -> Array:
        """Characteristic units (e,) of the parameters."""
        return model_scales(self.model).unit_scales(self.units)

    @property
    def limited(self) -> Array:
        """(e,) characteristic units of parameters whose steps and deviations are limited; infinite for others."""
        return np.where(self.of_kind(ZERO_OFFSET), self.sizes, np.inf)

    @property
    def shift(self) -> Array:
        """(nq,) by which positions are to be reduced."""
        return zero_shift(self.model, self._by_coordinate(ZERO_OFFSET))

    @property
    def scales(self) -> Array:
        """(nv,) ratios of the measured to the true torques."""
        return np.array([self._by_coordinate(TORQUE_SCALE).get(name, 1.0) for name in self.model.v_names])

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
        if len(shifted):
            D = self._derivatives(base, states, f_ext, passive, joints)
            out[:, :, shifted] = -D[:, :, self.coordinates[shifted]] * self.scales[:, None]
        return out

    def _derivatives(self, base: BaseParameters, states: Sequence[Array], f_ext: Array | None, passive: bool,
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
                   torque_scales: Sequence[str] | str = ()) -> LinearizationPoint:
    """Return the point of the robot file, with parameters of joints with these names or patterns.

    Raises UsageError for patterns without match. Ball and free joints have no such parameters, and followers of couplings have no
    encoder and no motor.
    """
    if model.nc and not model.has_only_linear_couplings and len(zero_offsets):
        raise UsageError(f"zero offsets of encoders are not supported for the robot {model.name}, which has loops")
    followers = model.elimination().follower if model.nc else ()
    single = [k for joint in model.joints if joint.kind == ONE_DOF for k in range(joint.v.start, joint.v.stop)
              if k not in followers]
    names = [model.v_names[k] for k in single]
    chosen = [sorted(select(patterns, names, "joint with one independent coordinate"))
              for patterns in (zero_offsets, torque_scales)]
    kinds = (ZERO_OFFSET,) * len(chosen[0]) + (TORQUE_SCALE,) * len(chosen[1])
    return LinearizationPoint(model, kinds, np.array(single, dtype=int)[np.r_[*chosen].astype(int)],
                              np.array([float(kind == TORQUE_SCALE) for kind in kinds]), np.zeros(len(base)))


def zero_shift(model: Model, zero_offsets: Mapping[str, float]) -> Array:
    """Return the shift (nq,) of positions by zero offsets {coordinate: [rad | m]}. Followers of couplings move, too."""
    shift, of_v = np.zeros(model.nq), np.array([zero_offsets.get(name, 0.0) for name in model.v_names])
    if model.nc:
        of_v = model.elimination().projection @ of_v
    for i, x in zip(v_to_q_indices(model), of_v, strict=True):
        if i >= 0:
            shift[i] = x
    return shift
