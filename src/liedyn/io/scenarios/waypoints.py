"""Waypoints of a pose: what they are, and how they are read from YAML and written."""
from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from liedyn.errors import Place
from liedyn.io.scenarios.joint_keys import WAYPOINT
from liedyn.io.yaml_text import Node

_UNIT_NORM = 1e-6                # a quaternion typed with seven digits is meant to be a unit one


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


def read_waypoints(node: Node) -> Waypoints:
    points: list[Waypoint] = []
    for child in node.items(least=2, of="waypoints {t, xyz, rpy}"):
        values = WAYPOINT.values(child)
        if points and values["t"] <= points[-1].t:
            raise child.value["t"].problem("times must increase", found=child.value["t"].shown(),
                                           expected=f"a time after {points[-1].t:g}")
        if "rpy" in values and "quaternion" in values:
            raise child.value["rpy"].problem("both rpy and quaternion", expected="one of them")
        _check_norm(child, values.get("quaternion"))
        points.append(Waypoint(**values, place=child.place))
    return Waypoints(tuple(points), node.place)


def _check_norm(node: Node, quaternion) -> None:
    if quaternion is not None and abs(math.hypot(*quaternion) - 1.0) > _UNIT_NORM:
        raise node.value["quaternion"].problem(f"the quaternion has norm {math.hypot(*quaternion):.7g}",
                                               found=node.value["quaternion"].shown(), expected="a unit quaternion x, y, z, w")


def plain_waypoints(given: Waypoints) -> list[dict]:
    return [{"t": one.t, **{key: list(getattr(one, key)) for key in ("xyz", "rpy", "quaternion") if getattr(one, key)}}
            for one in given.points]
