"""Which joints with rigid friction stick and which slide, at a state where velocities are zero or change their sign.

With the friction f of the coordinates at rest, W the inverse mass matrix of the motions that constraints and prescribed joints
allow, and b the accelerations without f:

    a = W f + b,      |f| <= static,      a = 0 or f = -sign(a) level

If the static level is the level in motion, f minimizes f W f / 2 + b f in a box: there is one motion. Otherwise coordinates that
cannot stick with the static level get their level in motion, and the rest is solved again. W is singular where joints hold each
other, as in loops: then f is a vertex of the polytope of all solutions, in which as many coordinates stick as are independent.
The others are at their static level, and at rest.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, list_names
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.zero_crossings import rounding_bound
from liedyn.simulation.impacts import SPEED_TOLERANCE, EventState, after_impulses, inverse_mass_of_free_motions
from liedyn.simulation.joint_friction import FrictionMode, JointFriction

_ACCELERATION_TOLERANCE = 1e-12   # of the terms of an acceleration, and of what static levels give: it is zero
_FORCE_TOLERANCE = 1e-9           # of the static level: friction is at it
_RANK_TOLERANCE = 1e-10           # eigenvalues of W, scaled so that its diagonal is 1, which are rounding
_ARRIVAL_TOLERANCE = 1e-6         # of characteristic velocities: a change by which a coordinate comes to rest
_MOBILITY_TOLERANCE = 1e-12       # of the inverse inertia without constraints: friction has no effect (dead centre)


def stop_slow_coordinates(state: EventState, problem: InitialValueProblem, frictions: Sequence[JointFriction],
                          arrived: Collection[int], speed: float) -> tuple[EventState, list[JointFriction]]:
    """Return the state in which coordinates that are at rest within rounding have zero velocity, and their friction.

    problem   in which no coordinate sticks
    arrived   coordinates whose velocity has just reached zero
    speed     maximum speed before the event
    """
    resting: list[JointFriction] = []
    W = _mobility(state, problem)
    arrived = [k for k in arrived if _comes_to_rest(state, W, k)]
    for _ in range(len(frictions) + 1):                        # constraints stop further coordinates
        still = [friction for friction in frictions if friction.coordinate in arrived or abs(
            state.v[friction.coordinate]) <= max(rounding_bound(friction.speed_scale), SPEED_TOLERANCE * speed)]
        if len(still) == len(resting):
            break
        resting, rows = still, [friction.coordinate for friction in still if W[friction.coordinate, friction.coordinate]]
        if state.model.nc and state.v[rows].any():
            state, _ = after_impulses(state, problem, np.eye(len(state.v))[rows], np.zeros(len(rows)))
        v = state.v.copy()
        v[rows] = 0.0
        state = replace(state, v=v)
    return state, resting


def _comes_to_rest(state: EventState, W: Array, k: int) -> bool:
    """Return whether the velocity of coordinate k, which has just reached zero, is zero within rounding.

    Near a dead centre it is not, if the return to the constraints after the step has changed it: stopping it would stop others.
    It then slides on, and reaches zero again after a short step.
    """
    if not W[k, k]:
        return True
    scales = model_scales(state.model)
    speeds = np.array([scales.unit_scale(f"{unit}/s") for unit in state.model.v_units])
    change = W[:, k] * (state.v[k] / W[k, k])
    return bool((np.abs(change) <= _ARRIVAL_TOLERANCE * speeds).all())


def friction_modes(state: EventState, t: float, problem: InitialValueProblem, a: Array,
                   frictions: Sequence[JointFriction], resting: Sequence[JointFriction], begun: Mapping[int, int]
                   ) -> tuple[FrictionMode, ...]:
    """Return the mode of each friction, in their order.

    problem    in which no coordinate sticks
    a          (nv,) accelerations in it, without rigid friction
    frictions  of the coordinates that are neither prescribed nor at rest at stops
    resting    those of coordinates at rest
    begun      directions in which coordinates at rest within rounding have begun to slide

    Raises ComputationError where no modes are consistent.
    """
    W, modes = _mobility(state, problem), {}
    for friction in frictions:
        k = friction.coordinate
        if friction not in resting:
            modes[friction] = FrictionMode(friction, int(np.sign(state.v[k])))
            a = a + W[:, k] * friction.force(state.v[k:k + 1])[0]
    movable = [friction for friction in resting if W[friction.coordinate, friction.coordinate]]
    rows = [friction.coordinate for friction in movable]
    at_rest = _RestingCoordinates(W[np.ix_(rows, rows)], a[rows], movable)
    directions, holding = at_rest.modes({j: begun[k] for j, k in enumerate(rows) if k in begun}, t)
    modes |= {friction: FrictionMode(friction, direction, at_level)
              for friction, direction, at_level in zip(movable, directions, holding, strict=True)}
    modes |= {friction: FrictionMode(friction, int(np.sign(a[friction.coordinate])) or 1) for friction in resting
              if friction not in movable}
    return tuple(modes[friction] for friction in frictions)


def _mobility(state: EventState, problem: InitialValueProblem) -> Array:
    """Return W (nv, nv), with zeros for coordinates that constraints hold at this configuration."""
    W = inverse_mass_of_free_motions(state, problem)
    if not state.model.nc:
        return W
    free = np.diag(np.linalg.inv(mass_matrix(state.model.spanning_tree(), state.q)))
    fixed = np.diag(W) <= _MOBILITY_TOLERANCE * free
    return np.where(fixed[:, None] | fixed, 0.0, W)


class _RestingCoordinates:
    """Coordinates at rest, scaled so that the diagonal of W is 1.

    W, b     inverse mass matrix and accelerations without friction
    limit    maximum friction at rest; initial: levels at the beginning of sliding
    """

    def __init__(self, W: Array, b: Array, frictions: Sequence[JointFriction]):
        size = np.sqrt(np.maximum(np.diag(W), 1e-300))
        self.W, self.b, self.names = W / np.outer(size, size), b / size, [friction.name for friction in frictions]
        self.limit, self.initial = (np.array([getattr(friction, key) for friction in frictions]) * size
                                     for key in ("limit", "initial"))

    def modes(self, begun: Mapping[int, int], t: float) -> tuple[list[int], list[bool]]:
        """Return the direction of each coordinate, 0 if it sticks, and whether it is at rest with its friction at the level."""
        count = len(self.b)
        slips = dict(begun)
        f = np.zeros(count)
        for _ in range(2 * count + 2):
            holds = np.array([k for k in range(count) if k not in slips], dtype=int)
            f = np.array([-slips[k] * self.initial[k] if k in slips else 0.0 for k in range(count)])
            f[holds] = _box_solution(self.W[np.ix_(holds, holds)], (self.b + self.W @ f)[holds], self.limit[holds])
            a = self.b + self.W @ f
            zero = _ACCELERATION_TOLERANCE * (np.abs(self.b) + np.abs(self.W) @ self.limit)
            new = {int(k): int(np.sign(a[k])) for k in holds if abs(a[k]) > zero[k]}
            back = [k for k, direction in slips.items() if direction * a[k] <= zero[k]]
            if not new and not back:
                break
            slips = {k: direction for k, direction in slips.items() if k not in back} | new
        else:
            raise ComputationError(f"friction at t = {t:.9g} s: no joints that stick and slide are consistent with each other "
                                   f"among {list_names(self.names, 4)} (a static level nearer to the level in motion helps)")
        f[holds], sticks = _vertex(self.W[np.ix_(holds, holds)], f[holds], self.limit[holds])
        directions, at_rest = [slips.get(k, 0) for k in range(count)], [False] * count
        for k, free in zip(holds, sticks, strict=True):
            if not free:
                directions[k], at_rest[k] = -int(np.sign(f[k])) or 1, True
        return directions, at_rest


def _box_solution(W: Array, b: Array, limit: Array) -> Array:
    """Return f that minimizes f W f / 2 + b f with |f| <= limit, for a positive semidefinite W with ones on its diagonal."""
    if not len(b):
        return np.zeros(0)
    if len(b) == 1:
        return np.clip(-b, -limit, limit)
    from scipy.optimize import lsq_linear
    w, U = np.linalg.eigh(W)
    part = w > _RANK_TOLERANCE
    root = np.sqrt(w[part])
    R, c = root[:, None] * U[:, part].T, (U[:, part].T @ b) / root
    size = max(float(np.abs(b).max()), 1e-300)
    solution = lsq_linear(R, -c / size, (-limit / size, limit / size), method="bvls", tol=1e-14, max_iter=100 * len(b))
    f = np.asarray(solution.x) * size
    free = np.asarray(solution.active_mask) == 0
    f = np.where(free, f, np.sign(f) * limit)
    if free.any():                                             # removes rounding
        change = np.linalg.lstsq(W[np.ix_(free, free)], -(b + W @ f)[free], rcond=_RANK_TOLERANCE)[0]
        f[free] = np.clip(f[free] + change, -limit[free], limit[free])
    return f


def _null_space(W: Array) -> Array:
    """Return columns that span the null space of W."""
    w, U = np.linalg.eigh(W)
    return np.asarray(U[:, w <= _RANK_TOLERANCE])


def _vertex(W: Array, f: Array, limit: Array) -> tuple[Array, list[bool]]:
    """Return f with W f as before in which the entries below their limits are independent, and which these are."""
    f = f.copy()
    free, rank = list(range(len(f))), len(f) - _null_space(W).shape[1]
    for k in np.flatnonzero(np.abs(f) >= (1.0 - _FORCE_TOLERANCE) * limit).tolist():   # if others suffice
        rest = [j for j in free if j != k]
        if len(rest) - _null_space(W[np.ix_(rest, rest)]).shape[1] == rank:
            free = rest
    while free:
        null = _null_space(W[np.ix_(free, free)])
        if not null.shape[1]:
            break
        direction = null[:, -1] * np.sign(null[np.abs(null[:, -1]).argmax(), -1])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(direction > 0.0, (limit[free] - f[free]) / direction, -(limit[free] + f[free]) / direction)
        steps[np.abs(direction) <= _FORCE_TOLERANCE] = np.inf
        j = int(np.argmin(steps))
        f[free] += steps[j] * direction
        k = free.pop(j)
        f[k] = np.copysign(limit[k], direction[j])
    return f, [k in free for k in range(len(f))]
