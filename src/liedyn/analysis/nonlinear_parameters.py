"""Parameters of a recording in which its forces are not linear: zero offsets of encoders.

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
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select, v_to_q_indices

ZERO_OFFSET = "zero_offset"
_BLOCK = 512        # rows whose derivatives are computed together: limits the memory


class NonlinearParameters(NamedTuple):
    """Estimates of parameters in which the forces are not linear.

    names, units  such as "zero_offset.elbow", the reading of the encoder where the joint of the robot file is at zero
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

    coordinates  (e,) coordinates whose encoder has an unknown zero offset, indices in v
    values       (e,) zero offsets [rad | m]
    change       (b,) of the base parameters from those of the robot file
    """

    model: Model
    coordinates: Integers
    values: Array
    change: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names (e,) of the parameters."""
        return tuple(f"{ZERO_OFFSET}.{self.model.v_names[k]}" for k in self.coordinates)

    @property
    def units(self) -> tuple[str, ...]:
        """Units (e,) of the parameters."""
        return tuple(self.model.v_units[k] for k in self.coordinates)

    @property
    def sizes(self) -> Array:
        """Characteristic units (e,) of the parameters."""
        return model_scales(self.model).unit_scales(self.units)

    @property
    def shift(self) -> Array:
        """(nq,) by which positions are to be reduced."""
        offsets = zip(self.coordinates, self.values.tolist(), strict=True)
        return zero_shift(self.model, {self.model.v_names[k]: x for k, x in offsets})

    def moved(self, steps: Array, change: Array) -> LinearizationPoint:
        """Return the point with values changed by the steps (e,)."""
        return replace(self, values=self.values + steps, change=change)

    def only(self, remaining: Mask) -> LinearizationPoint:
        """Return the point without some parameters."""
        return replace(self, coordinates=self.coordinates[remaining], values=self.values[remaining])

    def columns(self, base: BaseParameters, q: Array, v: Array, a: Array, f_ext: Array | None, passive: bool,
                joints: tuple[str, ...]) -> Array:
        """Return the derivatives (n, nv, e) of the forces with respect to the parameters, at states without zero offsets.

        joints  kinds of joint parameters with columns in `base`
        """
        N = self.model.elimination().projection if self.model.nc else np.eye(self.model.nv)
        out = np.empty((len(q), self.model.nv, len(self.coordinates)))
        if not len(self.coordinates):
            return out
        parameters = np.zeros(len(base.parameters.names))
        parameters[base.columns] = self.change
        for start in range(0, len(q), _BLOCK):
            part = slice(start, start + _BLOCK)
            states = q[part], v[part], a[part]
            D = np.array(inverse_dynamics_derivatives(self.model, *states, f_ext=None if f_ext is None else f_ext[part],
                                                      passive=passive)[0])
            for k in np.flatnonzero(N.any(axis=0)):
                weights = np.tile(N[:, k, None] * parameters, (len(D), 1, 1))
                D[:, k] += contracted_derivatives(self.model, *states, weights, passive, joints)[0] @ N
            out[part] = -D[:, :, self.coordinates]
        return out


def zero_offsets_to_estimate(model: Model, base: BaseParameters, patterns: Sequence[str] | str) -> LinearizationPoint:
    """Return the point of the robot file, with zero offsets of the encoders of joints with these names or patterns.

    Raises UsageError for patterns without match. Ball and free joints have no such zero, and followers of couplings no encoder.
    """
    followers = model.elimination().follower if model.nc else ()
    single = [k for joint in model.joints if joint.kind == ONE_DOF for k in range(joint.v.start, joint.v.stop)
              if k not in followers]
    chosen = select(patterns, [model.v_names[k] for k in single], "joint with one independent coordinate")
    coordinates = np.array(single, dtype=int)[sorted(chosen)]
    return LinearizationPoint(model, coordinates, np.zeros(len(coordinates)), np.zeros(len(base)))


def zero_shift(model: Model, zero_offsets: Mapping[str, float]) -> Array:
    """Return the shift (nq,) of positions by zero offsets {coordinate: [rad | m]}. Followers of couplings move, too."""
    shift, of_v = np.zeros(model.nq), np.array([zero_offsets.get(name, 0.0) for name in model.v_names])
    if model.nc:
        of_v = model.elimination().projection @ of_v
    for i, x in zip(v_to_q_indices(model), of_v, strict=True):
        if i >= 0:
            shift[i] = x
    return shift
