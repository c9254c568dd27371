"""What outputs read of runs: columns and points of links over time, of one run or of many side by side."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.dynamics.variants import Variants
from liedyn.errors import ScenarioError, nearest
from liedyn.kernels.simulation.link_points import COMPONENTS
from liedyn.model.model import Model
from liedyn.simulation.joint_limits.stops import is_event
from liedyn.simulation.run import Result

_FEW, MANY = 2048, 1 << 18          # states that are looked at together: poses of all links take much room
_TURNING = COMPONENTS.index("wx")


class RunsMotion:
    """N runs with the same R times t [s].

    columns    (name, unit, (N or 1, R) array) of each
    q, v       (N, R, nq), (N, R, nv) where points of links are read
    variants   robots of the runs; None where all have `model`
    events     what happened in the one run
    """

    def __init__(self, model: Model, t: np.ndarray, columns: Iterable[tuple[str, str, np.ndarray]], q=None, v=None,
                 variants: Variants | None = None, events=()):
        self.model, self.t, self.q, self.v, self.variants, self.events = model, t, q, v, variants, events
        self.columns, self.units = {}, {}
        for name, unit, x in columns:
            self.columns[name], self.units[name] = x, unit

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise ScenarioError(f"a run has no column {name}", hint=nearest(name, self.columns))
        return self.columns[name]

    def times_of(self, event: str) -> list[float]:
        """At which it happened, in order."""
        return [one.t for one in self.events if is_event(one.name, event)]

    def point(self, kind: str, link: str, at) -> np.ndarray:
        """(N, R) a component of COMPONENTS of a point of a link, in world axes."""
        return by_rows(lambda model, q, v: _of_point(model, q, v, kind, link, at), self.model, self.q, self.v, self.variants,
                       _FEW)


def motion_of_run(result: Result) -> RunsMotion:
    """One run."""
    columns = ((name, unit, x[None]) for name, unit, x in result.columns)
    return RunsMotion(result.model, result.t, columns, result.q[None], result.v[None], events=result.events)


def robots_of_rows(model: Model, variants: Variants | None, rows: int) -> AbstractContextManager[Model]:
    """Within it functions that are called with the model that it gives and states (N, rows, …) compute those of run k with its
    robot."""
    if variants is None:
        return nullcontext(model)
    places, numbers = variants.varying
    return Variants.of_numbers(variants.model, places, numbers.repeat(rows, axis=0)).in_place_of_the_model()


def by_rows(function: Callable, model: Model, q: np.ndarray, v: np.ndarray, variants: Variants | None, states: int) -> np.ndarray:
    """(…, N, R) function(model, q, v) of states (N, R, …), of robots that are variants of `model`; some rows after the other, of
    so many states."""
    found, some = [], max(1, states // max(1, len(q)))
    for first in range(0, q.shape[1], some):
        here = [np.ascontiguousarray(x[:, first:first + some]) for x in (q, v)]
        with robots_of_rows(model, variants, here[0].shape[1]) as robots:
            found.append(function(robots, *here))
    return np.concatenate(found, axis=-1)


def _of_point(model: Model, q, v, kind: str, link: str, at) -> np.ndarray:
    k = COMPONENTS.index(kind)
    T = link_pose(model, q, link)
    arm = T[..., :3, :3] @ np.array(at)
    if k < 3:
        return T[..., k, 3] + arm[..., k]
    V = link_twist(model, q, v, link, frame="local_world_aligned")
    if k >= _TURNING:
        return V[..., k - _TURNING]
    return (V[..., 3:] + np.cross(V[..., :3], arm))[..., k - 3]
