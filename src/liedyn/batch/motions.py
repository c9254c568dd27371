"""What outputs read of runs: columns and points of links over time, of one run or of many side by side."""
from __future__ import annotations

from functools import cached_property

import numpy as np

from liedyn.dynamics.kinematics import energy, link_pose, link_twist
from liedyn.dynamics.variants import Variants
from liedyn.errors import ScenarioError, nearest
from liedyn.kernels.simulation.link_points import COMPONENTS
from liedyn.model.model import Model
from liedyn.simulation.run import Result

_BLOCK = 2048            # rows
_TURNING = COMPONENTS.index("wx")


class OfResult:
    """One run. t (R,) [s]; column(name) and point(…): (1, R)."""

    def __init__(self, result: Result):
        self.t, self.model, self.result = result.t, result.model, result

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        return {name: x for name, _, x in self.result.columns}

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise ScenarioError(f"a run has no column {name}", hint=nearest(name, self.columns))
        return self.columns[name][None]

    def times_of(self, event: str) -> list[float]:
        """At which it happened, in order."""
        return [one.t for one in self.result.events if one.name == event]

    def point(self, kind: str, link: str, at) -> np.ndarray:
        return _of_point(self.model, self.result.q, self.result.v, kind, link, at)[None]


class SideBySideMotion:
    """N runs with the same R times. variants: their robots; None where all have `model`."""

    def __init__(self, model: Model, variants: Variants | None, t, q, v, a, tau, work):
        self.model, self.variants, self.t, self.work = model, variants, t, work
        self.arrays = {"q": q, "v": v, "a": a, "tau": tau}
        self.names = {kind: model.q_names if kind == "q" else model.v_names for kind in self.arrays}

    def column(self, name: str) -> np.ndarray:
        if name.startswith("energy."):
            return {"kinetic": self.energies[0], "potential": self.energies[1], "work": self.work}[name[7:]]
        kind, _, rest = name.partition(".")
        return self.arrays[kind][:, :, self.names[kind].index(rest)]

    @cached_property
    def energies(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, R) kinetic and potential energy."""
        q, v = self.arrays["q"], self.arrays["v"]
        if self.variants is None:
            return energy(self.model, q, v)
        found = [self.variants.energy(q[:, r].copy(), v[:, r].copy()) for r in range(len(self.t))]
        return tuple(np.stack(part, axis=1) for part in zip(*found, strict=True))

    def point(self, kind: str, link: str, at) -> np.ndarray:
        q, v = self.arrays["q"], self.arrays["v"]
        if self.variants is None:                              # a few rows after the other: poses of all links take much room
            lead, q, v = q.shape[:2], q.reshape(-1, q.shape[2]), v.reshape(-1, v.shape[2])
            parts = [_of_point(self.model, q[i:i + _BLOCK], v[i:i + _BLOCK], kind, link, at) for i in range(0, len(q), _BLOCK)]
            return np.concatenate(parts).reshape(lead)
        rows = [_of_point(self.variants, q[:, r].copy(), v[:, r].copy(), kind, link, at) for r in range(len(self.t))]
        return np.stack(rows, axis=1)


class AlongMotion(SideBySideMotion):
    """N runs of a job along a trajectory of R rows. state: the motion of all, None where no points of links are read; columns:
    {name: (unit, (N or 1, R) array)}."""

    def __init__(self, model: Model, variants: Variants | None, t, state, columns: dict):
        lead = (len(variants) if variants else 1, len(t))
        q, v = (None, None) if state is None else (np.broadcast_to(x, (*lead, x.shape[1])) for x in (state.q, state.v))
        super().__init__(model, variants, t, q, v, None, None, None)
        self.columns, self.units = {name: x for name, (_, x) in columns.items()}, {name: u for name, (u, _) in columns.items()}

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise ScenarioError(f"a run has no column {name}", hint=nearest(name, self.columns))
        return self.columns[name]


def _of_point(model, q, v, kind: str, link: str, at) -> np.ndarray:
    """A component of COMPONENTS of a point of a link, in world axes."""
    k = COMPONENTS.index(kind)
    if isinstance(model, Variants):
        T = model.link_poses(q)[..., model.model.link_index(link), :, :]
        V = model.link_twist(q, v, link, frame="local_world_aligned") if k >= 3 else None
    else:
        T = link_pose(model, q, link)
        V = link_twist(model, q, v, link, frame="local_world_aligned") if k >= 3 else None
    arm = T[..., :3, :3] @ np.array(at)
    if k < 3:
        return T[..., k, 3] + arm[..., k]
    if k >= _TURNING:
        return V[..., k - _TURNING]
    return (V[..., 3:] + np.cross(V[..., :3], arm))[..., k - 3]
