"""Waypoints of a pose."""
from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from liedyn.errors import Place


@dataclass(frozen=True, slots=True)
class Waypoint:
    """t [s], position [m] (none: zero), rpy [rad] or quaternion x y z w (neither: no rotation)."""

    t: float
    xyz: tuple[float, ...] = ()
    rpy: tuple[float, ...] = ()
    quaternion: tuple[float, ...] = ()
    place: Place = field(default=Place(), compare=False)

    @property
    def turn(self) -> np.ndarray:
        """(4,) unit quaternion x y z w."""
        if self.quaternion:
            return np.array(self.quaternion) / math.hypot(*self.quaternion)
        from scipy.spatial.transform import Rotation
        return Rotation.from_euler("xyz", self.rpy or (0.0, 0.0, 0.0)).as_quat()


@dataclass(frozen=True, slots=True)
class Waypoints:
    """A smooth motion through poses, at rest at both ends; the pose stays before the first and after the last."""

    points: tuple[Waypoint, ...]
    place: Place = field(default=Place(), compare=False)
