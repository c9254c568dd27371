"""Hard stops at limits of joints: impacts, rest, release.

At a limit n v is the speed away from it. An impact takes Newton's law for all coordinates that come to their limits or rest there
at once (Moreau), and then again for those that it has driven back:

    M (v+ - v-) = N^T p,      0 <= p  complementary to  n (v+ + e v-) >= 0

A coordinate whose velocity is zero then rests where the stop must push, by the same kind of condition on accelerations:

    M (a - a_free) = N^T f,   0 <= f  complementary to  n a >= 0

and is prescribed with zero acceleration, until f passes zero (`kernels.simulation.stops`). Prescribed joints and constraints keep
their velocities and accelerations: M^-1 is that of what they leave free. Both are linear complementarity problems with a
positive semidefinite matrix, solved as least squares with bounds.
"""
from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from liedyn.dynamics.mass import mass_matrix
from liedyn.dynamics.scales import scales_of
from liedyn.errors import ScenarioError
from liedyn.integrators.evaluation import evaluated
from liedyn.integrators.problem import Problem
from liedyn.integrators.zero_crossings import resolvable, rounding_bound
from liedyn.kernels.loops.constraint_solver import DEPENDENT
from liedyn.simulation.events.jumps import sizes_in
from liedyn.simulation.events.moments import Moment, collided, kept
from liedyn.simulation.joint_limits.stops import Stop

_AT = 1e-12              # of the limit, and of 1 rad or the characteristic length: a coordinate at its limit
_BEYOND = 1e-9           # of the same: no longer at it
STILL = 1e-12           # of the largest speed: no speed
_PUSHES = 1e-12          # of the largest acceleration: no acceleration away from a stop
_SINGULAR = 1e-7         # of 1, the size of scaled entries: smaller roots of eigenvalues are motions that rounding has made
_MANY, _AT_ONCE = 100, 5e-10     # so does one with so many impacts within this share of the run
_TURNS = 100             # of impacts at one time, before those that are left have no rebound


class HardStops:
    """Of one run."""

    def __init__(self, stops: tuple[Stop, ...], model, duration: float, place):
        self.stops, self.duration, self.place = tuple(stop for stop in stops if stop.hard), duration, place
        self._rounded = rounding_bound(scales_of(model).of_all(f"{unit}/s" for unit in model.v_units))
        self._times = {stop: deque(maxlen=_MANY) for stop in self.stops}                # of impacts

    def about(self) -> list:
        """All that further impacts depend on, as plain values."""
        return [list(times) for times in self._times.values()]

    def go_on(self, about: list) -> None:
        """From what `about` said."""
        for stop, times in zip(self.stops, about, strict=True):
            self._times[stop].extend(times)

    def check_start(self, problem) -> None:
        """Whether no coordinate begins beyond a stop. problem: of the scenario as it begins."""
        self._refuse_beyond([stop for stop in self.stops if not problem.prescribed[stop.coordinate]], problem.q, 0.0)

    def settle(self, moment: Moment, t: float, problem: Problem, resting, hits, speed: float | None):
        """The moment after the impacts of coordinates at limits, and which of their stops they rest at.

        problem   in which none rests; resting: stops that coordinates rested at; hits: stops that are reached now
        speed     the largest of a coordinate before what has happened; None: that of the moment
        """
        speed = np.abs(moment.v).max(initial=0.0) if speed is None else speed
        known = (*self.stops, *(stop for stop in resting if stop not in self.stops))           # those of impacts besides
        resting = [stop for stop in resting if self.is_at(stop, moment.q, _BEYOND)]
        acting = [stop for stop in known if not problem.prescribed[stop.coordinate]]
        held = tuple(stop for stop in resting if stop not in acting)                           # until it is released
        at = [stop for stop in acting if stop in hits or stop in resting or self.is_at(stop, moment.q)]
        self._refuse_beyond([stop for stop in acting if stop in self.stops and stop not in at], moment.q, t)
        if not at:
            return moment, held
        q, came, ends = moment.q.copy(), moment.v, set()
        slow = self._slow(speed)
        for stop in at:
            q[stop.q] = stop.limit
            if stop in resting and -stop.side * came[stop.coordinate] >= -slow[stop.coordinate]:
                ends.add(stop)
            if stop in hits and self._comes_to_an_end(stop, came, t):
                ends.add(stop)
        moment = replace(moment, q=q)
        away, mobility, before = _away(at, came), mobility_of(moment, problem), moment
        for _ in range(len(at) + 1):                           # impacts that accumulate together end together
            moment = _struck(before, problem, at, ends, mobility, slow)
            short = set(self._too_short(at, moment, t, problem, mobility, slow))
            if short <= ends:
                break
            ends |= short
        grazing = [stop for stop, u in zip(at, away, strict=True) if stop in hits and u >= 0.0]        # it came by rounding only
        rest = [stop for stop, u in zip(at, _away(at, moment.v), strict=True) if stop in ends and (u <= 0.0 or stop in short)]
        moment = _stand(moment, at, [*grazing, *rest], slow)
        still = [stop for stop in at if moment.v[stop.coordinate] == 0.0]
        return moment, (*self._pushing(moment, t, problem, still, mobility), *held)

    def holding(self, stops, moment: Moment, t: float, problem: Problem) -> tuple[Stop, ...]:
        """Of these, those that coordinates rest at and that must push. problem: in which none rests."""
        slow = self._slow(np.abs(moment.v).max(initial=0.0))
        still = [stop for stop in stops if self.is_at(stop, moment.q, _BEYOND) and not problem.prescribed[stop.coordinate]
                 and abs(moment.v[stop.coordinate]) <= slow[stop.coordinate]]
        return self._pushing(moment, t, problem, still, mobility_of(moment, problem)) if still else ()

    def _slow(self, speed: float) -> np.ndarray:
        """(nv,) velocities that are zero but for rounding, where the largest is `speed`."""
        return np.maximum(self._rounded, STILL * speed)

    def is_at(self, stop: Stop, q, but_for: float = _AT) -> bool:
        return abs(q[stop.q] - stop.limit) <= but_for * stop.size

    def _refuse_beyond(self, stops, q, t: float) -> None:
        for stop in stops:
            if stop.side * (q[stop.q] - stop.limit) > _BEYOND * stop.size:
                side = "above" if stop.side > 0 else "below"
                raise ScenarioError(f"{stop.name} is at {q[stop.q]:.9g} at t = {t:.9g} s, {side} its limit {stop.limit:.9g}, a "
                                    "hard stop", place=self.place,
                                    expected="a position within its limits, or mode: compliant")

    def _comes_to_an_end(self, stop: Stop, v, t: float) -> bool:
        """Whether the impacts of a coordinate end with this one."""
        times = self._times[stop]
        times.append(t)
        many = len(times) == _MANY and t - times[0] <= _AT_ONCE * self.duration
        return many or stop.side * v[stop.coordinate] <= 0.0

    def _too_short(self, at, moment: Moment, t: float, problem, mobility, slow) -> list[Stop]:
        """Stops from which coordinates fly off and back within rounding of the position or of the time, while those that stand
        still at others are held by them."""
        away = _away(at, moment.v)
        if not (away > 0.0).any():
            return []
        a = evaluated(problem, t, moment.q, moment.v).a
        G = normals([stop for stop in at if abs(moment.v[stop.coordinate]) <= slow[stop.coordinate]], len(a))
        back = _away(at, a + mobility @ G.T @ _complementary(G @ mobility @ G.T, G @ a))
        bounds = rounding_bound([stop.size for stop in at])
        found = resolvable(away, back, bounds, self.duration)
        return [stop for stop, u, ok in zip(at, away, found, strict=True) if u > 0.0 and not ok]

    def _pushing(self, moment, t: float, problem, still, mobility) -> tuple[Stop, ...]:
        """The stops that must push, of those where coordinates stand still; and those where nothing happens."""
        if not still:
            return ()
        G, free = normals(still, len(moment.v)), evaluated(problem, t, moment.q, moment.v).a
        response, away = G @ mobility @ G.T, G @ free
        f = _complementary(response, away)
        left = response @ f + away
        return tuple(stop for stop, x, push in zip(still, left, f, strict=True)
                     if push > 0.0 or x <= _PUSHES * np.abs(free).max())


def _struck(moment: Moment, problem: Problem, stops, ends, mobility, slow) -> Moment:
    """After impacts at stops, in turn: what leaves its stop takes part once others drive it back. ends: stops without rebound."""
    G, e = normals(stops, len(moment.v)), np.array([0.0 if stop in ends else stop.restitution for stop in stops])
    bounds = slow[[stop.coordinate for stop in stops]]
    for turn in range(_TURNS):
        away = G @ moment.v
        if turn and (away >= -bounds).all():
            return moment
        here = away <= bounds
        moment = impacted(moment, problem, G[here], e[here], mobility)
    return impacted(moment, problem, G, np.zeros(len(e)), mobility)


def impacted(moment: Moment, problem: Problem, G, e, mobility=None, moved=()) -> Moment:
    """After impacts along rows G (m, nv) with restitutions e (m,), where they push: the coordinates `moved` may be prescribed."""
    mobility, away = mobility_of(moment, problem, moved) if mobility is None else mobility, G @ moment.v
    p = _complementary(G @ mobility @ G.T, (1.0 + e) * away)
    return collided(moment, problem, G[p > 0.0], (-e * away)[p > 0.0], moved) if (p > 0.0).any() else moment


def _stand(moment, at, resting, slow):
    """Velocities that are zero but for rounding become zero."""
    v = moment.v.copy()
    for stop in at:
        if stop in resting or abs(v[stop.coordinate]) <= slow[stop.coordinate]:
            v[stop.coordinate] = 0.0
    return replace(moment, v=v)


def normals(stops, nv: int) -> np.ndarray:
    """(m, nv): the directions away from the limits."""
    G = np.zeros((len(stops), nv))
    G[np.arange(len(stops)), [stop.coordinate for stop in stops]] = [-stop.side for stop in stops]
    return G


def _away(stops, v) -> np.ndarray:
    return np.array([-stop.side * v[stop.coordinate] for stop in stops])


def mobility_of(moment: Moment, problem: Problem, moved=()) -> np.ndarray:
    """(nv, nv) inverse mass matrix of the motions that prescribed joints but those `moved`, and constraints leave."""
    W, (K, _) = np.linalg.inv(mass_matrix(moment.model.open_tree(), moment.q)), kept(moment, problem, moved)
    if not len(K):
        return W
    K = K / sizes_in(W @ K.T, K)[:, None]
    return W - W @ K.T @ np.linalg.lstsq(K @ W @ K.T, K @ W, rcond=DEPENDENT)[0]


def _complementary(A, b) -> np.ndarray:
    """x >= 0 with A x + b >= 0 and x (A x + b) = 0, A symmetric and positive semidefinite: the least of x A x / 2 + b x, as
    |R x + c|^2 / 2 with A = R^T R and R^T c = b, in measures in which the diagonal of A is 1."""
    from scipy.optimize import nnls
    if (b >= 0.0).all():
        return np.zeros(len(b))
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    w, U = np.linalg.eigh(A / np.outer(size, size))
    root = np.sqrt(np.maximum(w, 0.0))
    part = root > _SINGULAR
    c = (U[:, part].T @ (b / size)) / root[part]
    return nnls(root[part, None] * U[:, part].T, -c)[0] / size
