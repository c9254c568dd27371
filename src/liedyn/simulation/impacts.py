"""Velocity jumps: the effect of impulses and impacts on a robot.

Rows G of the velocity v take given values b instantaneously. Other forces are finite and have no impulse, so that

    M (v+ - v-) = G^T p,      G v+ = b:      p = (G M^-1 G^T)^-1 (b - G v-)

(Müller, on mechanisms of variable topology). Among all v+ with G v+ = b it is the nearest to v- in the metric of M.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.rank import clear_rounding, coordinate_scales
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.kinematics import energy, jacobian, link_poses
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.singular_joints import with_positive_inertia
from liedyn.errors import ComputationError, Place, ScenarioError
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.zero_crossings import Numbers, is_below_rounding, is_resolvable, rounding_bound
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.description import RANK_TOLERANCE
from liedyn.model.model import Model
from liedyn.model.spatial import matvec
from liedyn.simulation.joint_stops import JointStop

RATE_TOLERANCE = 1e-9            # of the rate of an expression: an impact that changes it by less does not act on it
_ENTRY_TOLERANCE = 1e-12         # relative to the terms of an entry of a row: smaller entries are rounding
_CONTRADICTION_TOLERANCE = 1e-8  # maximum error of G v+ relative to b
_VELOCITY_TOLERANCE = 1e-12      # of the velocity, or of 1 rad/s: error of G v+ by rounding
IMPACTS_BEFORE_REST = 3          # consecutive impacts of a joint that follow at once, after which it rests
# of the duration of the run: 36 times the shortest flight that can be resolved, see `zero_crossings.is_resolvable`
_SHORTEST_FLIGHT = 5e-13
_POSITION_SPACINGS = 16        # spacings of the position: the way there and back is less


@dataclass(frozen=True, eq=False)
class Jump:
    """The result of an impulse.

    v              (…, nv) velocities after the impulse
    impulse        (…, nv) G^T p [N m s | N s]
    work           (…, k) work of the impulse of each row [J]: p (G v+ + G v-) / 2
    contradicted   (…) whether rows contradict each other or the constraints of the robot, so that G v+ differs from b
    """

    v: Array
    impulse: Array
    work: Array
    contradicted: Mask


def velocity_jump(model: Model, q: Array, v: Array, rows: Array, b: Array) -> Jump:
    """Return the jump by which rows (k, nv) of the velocity become b (k,).

    Raises ComputationError where rows contradict each other.
    """
    jumps = velocity_jumps(model, q, v, np.reshape(rows, (-1, len(v))), np.asarray(b, dtype=float))
    if jumps.contradicted:
        raise ComputationError("the requested velocities contradict each other, or the constraints of the robot")
    return jumps


def velocity_jumps(model: Model, q: Array, v: Array, rows: Array, b: Array) -> Jump:
    """Return the jumps of states (…, nq), (…, nv) by which rows (…, k, nv) of the velocities become b (…, k)."""
    M = inertia = mass_matrix(model.spanning_tree(), q)
    added = np.zeros(rows.shape[:-1])
    if not model.moves_inertia:                            # inertia in the directions of the rows changes the impulses only
        unit = np.diagonal(mass_matrix(with_positive_inertia(model).spanning_tree(), q), axis1=-2, axis2=-1)
        square = (rows**2 / unit[..., None, :]).sum(axis=-1)
        added = np.where(square > 0.0, 1.0 / np.where(square > 0.0, square, 1.0), 0.0)
        inertia = M + np.swapaxes(rows, -1, -2) @ (added[..., None] * rows)
    size = equation_scales(solve_linear(inertia, np.swapaxes(rows, -1, -2)), rows)
    G, b, added = rows / size[..., None], b / size, added * size**2
    M_inv_rows = solve_linear(inertia, np.swapaxes(G, -1, -2))   # M^-1 G^T
    response = G @ M_inv_rows
    inverse = np.asarray(np.linalg.pinv(response, rcond=RANK_TOLERANCE, hermitian=True), dtype=float)
    miss = b - matvec(G, v)
    p = matvec(inverse, miss)
    p += matvec(inverse, miss - matvec(response, p))           # one step of iterative refinement
    after = v + matvec(M_inv_rows, p)
    p = p - added * matvec(G, after - v)
    impulse = matvec(np.swapaxes(G, -1, -2), p)
    scale = np.maximum(_max_abs(miss), _max_abs(b))
    missed = _max_abs(matvec(G, after) - b)
    energy = np.sqrt(np.einsum("...i,...ij,...j->...", v, M, v))      # the scale of G v: G M^-1 G^T has ones on its diagonal
    unit_energy = np.sqrt(np.abs(np.diagonal(M, axis1=-2, axis2=-1) * coordinate_scales(model)**2).max(axis=-1))
    contradicted = missed > _CONTRADICTION_TOLERANCE * scale + _VELOCITY_TOLERANCE * np.maximum(energy, unit_energy)
    return Jump(after, impulse, p * matvec(G, after + v) / 2, contradicted)


def normal_velocity_rows(model: Model, q: Array, link: str, point: ArrayLike, normal: ArrayLike) -> Array:
    """Return the (…, nv) rows of the velocity of a point of a link along the normal, at configurations (…, nq) of an open tree.

    An entry is zero where the coordinate moves the point perpendicular to the normal within rounding.
    """
    J = jacobian(model, q, link, frame="local_world_aligned")
    T = link_poses(model, q)[..., model.link_names.index(link), :, :]
    x, n = (T[..., :3, :3] @ np.asarray(point, dtype=float)), np.asarray(normal, dtype=float)
    wrench = np.concatenate([np.cross(x, n), np.broadcast_to(n, x.shape)], axis=-1)[..., None, :]
    rows, sizes = (wrench @ J)[..., 0, :], (np.abs(wrench) @ np.abs(J))[..., 0, :]
    place = np.linalg.norm(T[..., :3, 3], axis=-1) + np.linalg.norm(x, axis=-1)           # lever arms are their differences
    sizes = sizes + np.linalg.norm(n) * place[..., None] * np.linalg.norm(J[..., :3, :], axis=-2)
    return np.where(np.abs(rows) <= _ENTRY_TOLERANCE * sizes, 0.0, rows)


def equation_scales(M_inv_rows: Array, rows: Array) -> Array:
    """Return the (…, k) divisors of the rows for which G M^-1 G^T has ones on its diagonal; 1 for a row of zeros.

    M_inv_rows   (…, nv, k) M^-1 rows^T

    No row may consist of rounding only: `rank.clear_rounding` sets such rows of constraints to zero.
    """
    square = np.einsum("...ki,...ik->...k", rows, M_inv_rows)
    return np.asarray(np.sqrt(np.where(square > 0.0, square, 1.0)))


def solve_linear(A: Array, b: Array) -> Array:
    """Return the solution of A x = b."""
    return np.asarray(np.linalg.solve(A, b), dtype=float)


def _max_abs(x: Array) -> Array:
    return np.asarray(np.abs(x).max(axis=-1, initial=0.0))


def follows_at_once(since: Numbers, speed: Numbers, position: Numbers, duration: float) -> Any:
    """Return whether an impact follows the previous one, `since` seconds ago, sooner than time or position can resolve.

    duration   of the run [s]; it determines the resolution of time
    """
    with np.errstate(invalid="ignore"):                        # since is infinite before the first event
        near = np.abs(speed) * since <= _POSITION_SPACINGS * np.spacing(np.abs(position))
    return (since <= _SHORTEST_FLIGHT * duration) | (near & (since < np.inf))


def is_turned_back(direction: Numbers, rate: Numbers, curvature: Numbers, bound: Numbers, rate_after: Numbers) -> Any:
    """Return whether an expression that crossed zero in this direction is already returning: the impact has no effect.

    rate_after   the rate that the impact would produce
    """
    is_back = (direction * rate < 0.0) & ~is_below_rounding(rate, curvature, bound)
    return is_back & (np.abs(rate - rate_after) > RATE_TOLERANCE * np.abs(rate))


# The state at an event, and its changes by impulses (`velocity_jumps`) --------------------------------------------------

@dataclass(frozen=True, eq=False)
class EventState:
    """The states of one run, or of runs (…), while an event acts.

    model          has different parameters for each run if those of the runs differ
    q, v           (…, nq), (…, nv)
    impulse        (…, nv) sum of impulses so far
    work, lost     (…) supplied and dissipated energy so far [J]
    passive        whether springs act
    evaluate       of one run: the accelerations (nv,) of a problem at q, v with all that acts: held torques of a sampled
                   controller, integrals, stretches of contacts, estimates
    contradicted   (…) whether impulses contradict each other
    stopped        (…) whether the run ends
    """

    model: Model
    q: Array
    v: Array
    impulse: Array
    work: float | Array = 0.0
    lost: float | Array = 0.0
    passive: bool = True
    evaluate: Callable[[InitialValueProblem, Array, Array], Array] | None = None
    contradicted: bool | Mask = False
    stopped: bool | Mask = False

    @property
    def energies(self) -> tuple[Array, Array]:
        """Kinetic and potential energies."""
        return energy(self.model.spanning_tree(), self.q, self.v, passive=self.passive)

    def accelerations(self, problem: InitialValueProblem) -> Array:
        """Return the accelerations (nv,) of a problem in this state of one run."""
        assert self.evaluate is not None
        return self.evaluate(problem, self.q, self.v)

    def with_work_since(self, before: EventState) -> EventState:
        """Return the state with the change of energy since `before` added to the work."""
        return replace(self, work=self.work + sum(self.energies) - sum(before.energies))


def preserved_velocities(state: EventState, problem: InitialValueProblem, exempt: Collection[int] = (),
                         closing: Sequence[int] | Integers = ()) -> tuple[Array, Array]:
    """Return the rows (…, k, nv) of the velocity that impulses preserve, and their values (…, k).

    They are the coordinates that `problem` prescribes except `exempt`, and the constraints except the rows `closing`.
    """
    prescribed = [k for k in np.flatnonzero(problem.schedule.level != TORQUE) if k not in exempt]
    rows = np.eye(state.v.shape[-1])[prescribed]
    rows = np.broadcast_to(rows, (*state.v.shape[:-1], *rows.shape))
    if state.model.nc:
        A = clear_rounding(state.model, constraint_jacobian(state.model, state.q))
        rows = np.concatenate([rows, np.delete(A, np.asarray(closing, dtype=np.int64), axis=-2)], axis=-2)
    return rows, matvec(rows, state.v)


def after_impulses(state: EventState, problem: InitialValueProblem, rows: Array, b: Array, exempt: Collection[int] = (),
                   closing: Sequence[int] | Integers = ()) -> tuple[EventState, float | Array]:
    """Return the state after impulses by which rows (…, k, nv) of the velocity become b (…, k), and the work of these impulses.

    The `preserved_velocities` do not change. Where rows contradict each other, raises ComputationError for a single state, and
    sets `contradicted` for many.
    """
    preserved, values = preserved_velocities(state, problem, exempt, closing)
    compute = velocity_jump if state.v.ndim == 1 else velocity_jumps
    all_rows, all_values = np.concatenate([rows, preserved], axis=-2), np.concatenate([b, values], axis=-1)
    jump = compute(state.model, state.q, state.v, all_rows, all_values)
    after = replace(state, v=jump.v, impulse=state.impulse + jump.impulse, work=state.work + jump.work.sum(axis=-1),
                    contradicted=state.contradicted | jump.contradicted)
    return after, jump.work[..., :rows.shape[-2]].sum(axis=-1)


def after_collision(state: EventState, problem: InitialValueProblem, rows: Array, b: Array, exempt: Collection[int] = (),
                    closing: Sequence[int] | Integers = ()) -> EventState:
    """Return the state of `after_impulses`, with the energy that the impulses along the rows take counted as lost."""
    after, work = after_impulses(state, problem, rows, b, exempt, closing)
    return replace(after, lost=after.lost - work)


def after_impact(state: EventState, problem: InitialValueProblem, row: Array, restitution: float, exempt: Collection[int] = (),
                 pressed: Sequence[JointStop] = ()) -> EventState:
    """Return the state after an impact by which a negative row (…, nv) of the velocity is multiplied by -restitution.

    pressed   stops whose coordinates must not be driven beyond them, so that they take part in the impact; for a single state
    """
    approach = (row * state.v).sum(axis=-1)
    struck = approach < 0.0
    if not struck.any():
        return state
    if pressed:
        rows, e = np.vstack([row, limit_normals(pressed, len(row))]), np.append(restitution, np.zeros(len(pressed)))
        return after_impacts(state, problem, rows, e, exempt=exempt)
    after = after_collision(state, problem, row[..., None, :], -restitution * approach[..., None], exempt)
    return after if struck.all() else where_states(struck, after, state)


def where_states(mask: Mask, chosen: EventState, other: EventState) -> EventState:
    """Return one state where the mask (n,) holds, and the other elsewhere."""
    def choose(x: ArrayLike, y: ArrayLike) -> Any:
        return np.where(mask[:, None] if max(np.ndim(x), np.ndim(y)) > 1 else mask, x, y)
    names = "q", "v", "impulse", "work", "lost", "contradicted", "stopped"
    return replace(chosen, **{name: choose(getattr(chosen, name), getattr(other, name)) for name in names})


# Hard stops at joint limits: impacts, rest, release ---------------------------------------------------------------------

# At a limit n v is the speed away from it. Newton's impact law applies simultaneously to all coordinates that reach their limits
# or rest at them (Moreau), and is repeated for those that it has driven back:
#
#     M (v+ - v-) = N^T p,      0 <= p  complementary to  n (v+ + e v-) >= 0
#
# A coordinate whose velocity is zero then rests where the stop must push, by the same kind of condition on accelerations:
#
#     M (a - a_free) = N^T f,   0 <= f  complementary to  n a >= 0
#
# and is prescribed with zero acceleration until f crosses zero (`kernels.simulation.joint_laws`). Prescribed joints and
# constraints keep their velocities and accelerations: M^-1 is the inverse mass matrix of the remaining motions. Both are linear
# complementarity problems with a positive semidefinite matrix, solved as bounded least squares.

_LIMIT_TOLERANCE = 1e-12          # of the limit, and of 1 rad or the characteristic length: distance of a coordinate at its limit
_BEYOND_TOLERANCE = 1e-9          # relative to the same: a coordinate is beyond its limit
SPEED_TOLERANCE = 1e-12           # of the maximum speed: a smaller speed is zero
_ACCELERATION_TOLERANCE = 1e-12   # of the maximum acceleration: a smaller acceleration away from a stop is zero
# relative to scaled entries of size 1: square roots of eigenvalues below it are rounding
_EIGENVALUE_TOLERANCE = 1e-7
_MAX_IMPACTS, _MAX_IMPACTS_SPAN = 100, 5e-10     # a coordinate rests after so many impacts within this fraction of the run
_DRIVEN_BACK, _DRIVEN_BACK_WITHIN = 100, 1e-4        # so many returns within this fraction of the run are an error
_MAX_ROUNDS = 100             # of impacts at one time, after which the remaining ones do not rebound


class HardStops:
    """Hard stops at joint limits of one run."""

    def __init__(self, stops: tuple[JointStop, ...], model: Model, duration: float, place: Place):
        self.stops, self.duration, self.place = tuple(stop for stop in stops if stop.hard), duration, place
        self._velocity_rounding = rounding_bound(model_scales(model).unit_scales(f"{unit}/s" for unit in model.v_units))
        self._times: dict[JointStop, deque[float]] = {stop: deque(maxlen=_MAX_IMPACTS) for stop in self.stops}      # of impacts
        self._leaving: tuple[str, ...] = ()                    # coordinates at rest after the last impact, not held
        self._left: deque[float] = deque(maxlen=_DRIVEN_BACK)  # times of impacts that left them

    def _note_leaving(self, stops: Sequence[JointStop], t: float) -> None:
        """Raise ComputationError where coordinates repeatedly leave their stops from rest and are driven back at once."""
        leaving = tuple(stop.name for stop in stops)
        if leaving != self._leaving:
            self._leaving = leaving
            self._left.clear()
        self._left.append(t)
        if leaving and len(self._left) == _DRIVEN_BACK and t - self._left[0] <= _DRIVEN_BACK_WITHIN * self.duration:
            raise ComputationError(f"{' and '.join(leaving)} repeatedly leaves its stop and is driven back from "
                                   f"t = {self._left[0]:.9g} s: a force that jumps with the velocity, such as friction by "
                                   f"sign(v), holds it there (use friction of the joint, or tanh(v/0.01) in place of sign(v))")

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"impact_times": [list(times) for times in self._times.values()], "leaving": list(self._leaving),
                "times_leaving": list(self._left)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        for times, saved in zip(self._times.values(), state["impact_times"], strict=True):
            times.extend(saved)
        self._leaving = tuple(state["leaving"])
        self._left.extend(state["times_leaving"])

    def check_start(self, problem: InitialValueProblem) -> None:
        """Raise an error where a coordinate starts beyond a stop. problem: the problem at the start of the scenario."""
        self._check_within_limits([stop for stop in self.stops if not problem.prescribed[stop.coordinate]], problem.q, 0.0)

    def resolve_impacts(self, state: EventState, t: float, problem: InitialValueProblem, resting: Sequence[JointStop],
                        hits: Collection[JointStop], speed: float | None) -> tuple[EventState, tuple[JointStop, ...]]:
        """Return the state after the impacts of coordinates at limits, and the stops at which coordinates rest.

        problem   the problem in which no coordinate rests
        resting   stops at which coordinates rested
        hits      stops that are reached now
        speed     the maximum speed of a coordinate before the event; None: that of the state
        """
        speed = np.abs(state.v).max(initial=0.0) if speed is None else speed
        known = dict.fromkeys((*self.stops, *resting))                                            # also stops of impact events
        resting = [stop for stop in resting if self.is_at(stop, state.q, _BEYOND_TOLERANCE)]
        acting = [stop for stop in known if not problem.prescribed[stop.coordinate]]
        waiting = tuple(stop for stop in resting if stop not in acting)                           # until released
        at = [stop for stop in acting if stop in hits or stop in resting or self.is_at(stop, state.q)]
        self._check_within_limits([stop for stop in acting if stop in self.stops and stop not in at], state.q, t)
        if not at:
            return state, waiting
        q, came, ends = state.q.copy(), state.v, set()
        zero_speeds = self._zero_speeds(speed)
        for stop in at:
            q[stop.q] = stop.limit
            if stop in resting and -stop.side * came[stop.coordinate] >= -zero_speeds[stop.coordinate]:
                ends.add(stop)
            if stop in hits and self._is_last_impact(stop, came, t):
                ends.add(stop)
        state = replace(state, q=q)
        away, mobility, before = _separation_speeds(at, came), inverse_mass_of_free_motions(state, problem), state
        for _ in range(len(at) + 1):                           # impacts that accumulate simultaneously end simultaneously
            state = _after_repeated_impacts(before, problem, at, ends, mobility, zero_speeds)
            short = set(self._short_flights(at, state, problem, mobility, zero_speeds))
            if short <= ends:
                break
            ends |= short
        grazing = [stop for stop, u in zip(at, away, strict=True) if stop in hits and u >= 0.0]        # crossed by rounding only
        rest = [stop for stop, u in zip(at, _separation_speeds(at, state.v), strict=True) if stop in ends
                and (u <= 0.0 or stop in short)]
        state = _clear_rounding(state, at, [*grazing, *rest], zero_speeds)
        still = [stop for stop in at if state.v[stop.coordinate] == 0.0]
        pushing = self._pushing_stops(state, problem, still, mobility)
        self._note_leaving([stop for stop in still if stop in hits and stop not in pushing], t)
        return state, (*pushing, *waiting)

    def supporting_stops(self, stops: Sequence[JointStop], state: EventState, problem: InitialValueProblem
                         ) -> tuple[JointStop, ...]:
        """Return those of the stops at which coordinates rest and that must push. problem: in which no coordinate rests."""
        zero_speeds = self._zero_speeds(np.abs(state.v).max(initial=0.0))
        still = [stop for stop in stops if self.is_at(stop, state.q, _BEYOND_TOLERANCE)
                 and not problem.prescribed[stop.coordinate] and abs(state.v[stop.coordinate]) <= zero_speeds[stop.coordinate]]
        return self._pushing_stops(state, problem, still, inverse_mass_of_free_motions(state, problem)) if still else ()

    def _zero_speeds(self, speed: float) -> Array:
        """Return the (nv,) speeds below which velocities are rounding, where the maximum is `speed`."""
        return np.maximum(self._velocity_rounding, SPEED_TOLERANCE * speed)

    def is_at(self, stop: JointStop, q: Array, tolerance: float = _LIMIT_TOLERANCE) -> bool:
        """Return whether a configuration (nq,) is at the stop, within `tolerance` relative to the size of its coordinate."""
        return bool(abs(q[stop.q] - stop.limit) <= tolerance * stop.size)

    def _check_within_limits(self, stops: Sequence[JointStop], q: Array, t: float) -> None:
        for stop in stops:
            if stop.side * (q[stop.q] - stop.limit) > _BEYOND_TOLERANCE * stop.size:
                side = "above" if stop.side > 0 else "below"
                raise ScenarioError(f"{stop.name} is at {q[stop.q]:.9g} at t = {t:.9g} s, {side} its limit {stop.limit:.9g}, a "
                                    "hard stop", place=self.place,
                                    expected="a position within its limits, or mode: compliant")

    def _is_last_impact(self, stop: JointStop, v: Array, t: float) -> bool:
        """Return whether the impacts of a coordinate end with this one."""
        times = self._times[stop]
        times.append(t)
        many = len(times) == _MAX_IMPACTS and t - times[0] <= _MAX_IMPACTS_SPAN * self.duration
        return many or bool(stop.side * v[stop.coordinate] <= 0.0)

    def _short_flights(self, at: Sequence[JointStop], state: EventState, problem: InitialValueProblem, mobility: Array,
                       zero_speeds: Array) -> list[JointStop]:
        """Return the stops from which coordinates rebound and return within rounding of position or time.

        Coordinates at rest at other stops are held by them.
        """
        away = _separation_speeds(at, state.v)
        if not (away > 0.0).any():
            return []
        a = state.accelerations(problem)
        G = limit_normals([stop for stop in at if abs(state.v[stop.coordinate]) <= zero_speeds[stop.coordinate]], len(a))
        back = _separation_speeds(at, a + mobility @ G.T @ solve_lcp(G @ mobility @ G.T, G @ a))
        bounds = rounding_bound([stop.size for stop in at])
        resolvable = is_resolvable(away, back, bounds, self.duration)
        return [stop for stop, u, ok in zip(at, away, resolvable, strict=True) if u > 0.0 and not ok]

    def _pushing_stops(self, state: EventState, problem: InitialValueProblem, still: Sequence[JointStop], mobility: Array
                       ) -> tuple[JointStop, ...]:
        """Return the stops that must push where coordinates are at rest, and the stops where they neither push nor are left."""
        if not still:
            return ()
        G, free = limit_normals(still, len(state.v)), state.accelerations(problem)
        response, away = G @ mobility @ G.T, G @ free
        f = solve_lcp(response, away)
        acceleration = response @ f + away
        return tuple(stop for stop, a, push in zip(still, acceleration, f, strict=True)
                     if push > 0.0 or a <= _ACCELERATION_TOLERANCE * np.abs(free).max())


def _after_repeated_impacts(state: EventState, problem: InitialValueProblem, stops: Sequence[JointStop],
                            ends: Collection[JointStop], mobility: Array, zero_speeds: Array) -> EventState:
    """Return the state after repeated impacts at stops; a coordinate that leaves its stop takes part once others drive it back.

    ends   stops without rebound
    """
    G, e = limit_normals(stops, len(state.v)), np.array([0.0 if stop in ends else stop.restitution for stop in stops])
    bounds = zero_speeds[[stop.coordinate for stop in stops]]
    for turn in range(_MAX_ROUNDS):
        away = G @ state.v
        if turn and (away >= -bounds).all():
            return state
        acting = away <= bounds
        state = after_impacts(state, problem, G[acting], e[acting], mobility)
    return after_impacts(state, problem, G, np.zeros(len(e)), mobility)


def after_impacts(state: EventState, problem: InitialValueProblem, G: Array, e: Array, mobility: Array | None = None,
                  exempt: Collection[int] = ()) -> EventState:
    """Return the state after simultaneous impacts along rows G (m, nv) with restitutions e (m,), whose impulses only push.

    exempt   coordinates that may be prescribed
    """
    mobility, away = inverse_mass_of_free_motions(state, problem, exempt) if mobility is None else mobility, G @ state.v
    p = solve_lcp(G @ mobility @ G.T, (1.0 + e) * away)
    return after_collision(state, problem, G[p > 0.0], (-e * away)[p > 0.0], exempt) if (p > 0.0).any() else state


def _clear_rounding(state: EventState, at: Sequence[JointStop], resting: Sequence[JointStop], zero_speeds: Array) -> EventState:
    """Set velocities that are zero within rounding to zero."""
    v = state.v.copy()
    for stop in at:
        if stop in resting or abs(v[stop.coordinate]) <= zero_speeds[stop.coordinate]:
            v[stop.coordinate] = 0.0
    return replace(state, v=v)


def limit_normals(stops: Sequence[JointStop], nv: int) -> Array:
    """Return the (m, nv) directions away from the limits."""
    G = np.zeros((len(stops), nv))
    G[np.arange(len(stops)), [stop.coordinate for stop in stops]] = [-stop.side for stop in stops]
    return G


def _separation_speeds(stops: Sequence[JointStop], v: Array) -> Array:
    return np.array([-stop.side * v[stop.coordinate] for stop in stops])


def inverse_mass_of_free_motions(state: EventState, problem: InitialValueProblem, exempt: Collection[int] = ()) -> Array:
    """Return the (nv, nv) inverse mass matrix of motions that constraints and prescribed joints except `exempt` allow."""
    model = state.model if problem.model.moves_inertia else with_positive_inertia(problem.model)
    W = np.asarray(np.linalg.inv(mass_matrix(model.spanning_tree(), state.q)), dtype=float)
    K, _ = preserved_velocities(state, problem, exempt)
    if not len(K):
        return W
    K = K / equation_scales(W @ K.T, K)[:, None]
    return np.asarray(W - W @ K.T @ np.linalg.lstsq(K @ W @ K.T, K @ W, rcond=RANK_TOLERANCE)[0], dtype=float)


def solve_lcp(A: Array, b: Array) -> Array:
    """Return x >= 0 with A x + b >= 0 and x (A x + b) = 0, for a symmetric and positive semidefinite A.

    x minimizes x A x / 2 + b x, written as |R x + c|^2 / 2 with A = R^T R and R^T c = b, scaled so that the diagonal of A is 1.
    """
    from scipy.optimize import nnls
    if (b >= 0.0).all():
        return np.zeros(len(b))
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    w, U = np.linalg.eigh(A / np.outer(size, size))
    root = np.sqrt(np.maximum(w, 0.0))
    part = root > _EIGENVALUE_TOLERANCE
    c = (U[:, part].T @ (b / size)) / root[part]
    return np.asarray(nnls(root[part, None] * U[:, part].T, -c)[0] / size)
