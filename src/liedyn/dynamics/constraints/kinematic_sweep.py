"""Positions and velocity ratios of a mechanism while one coordinate is driven through a range, with dead centres and limits.

Pseudo-arclength continuation (E. L. Allgower and K. Georg, Introduction to Numerical Continuation Methods, 2003, chapters 2, 6
and 8): steps along the tangent of the curve of closed configurations, each followed by Gauss-Newton steps across it. The curve is
regular where the driver stops, so that these points are located as zeros of a component of the tangent.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from liedyn.arrays import Array, ArrayLike, Mask
from liedyn.dynamics.constraints.assembly import configuration, coordinate_mask
from liedyn.dynamics.constraints.branch_search import BranchSearch
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.mobility import coordinate_groups, nearby_configuration, scaled_jacobian
from liedyn.dynamics.constraints.rank import RANK, coordinate_scales, equation_norms, row_and_null_space
from liedyn.dynamics.constraints.transmission_angle import transmission_angles
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, LiedynWarning, ModelError, UsageError, list_names, summarized, warn
from liedyn.immutable import Immutable
from liedyn.model.model import Model

_MAX_STEP, _MIN_STEP = 0.05, 1e-9    # [rad | lengths of the loop], between two points of the curve
_MAX_TURN = 0.15                     # of the unit tangent in a step: a larger change may be that of another branch
_SMALL_TURN = 0.04                   # after such a change the next step is longer
_MAX_CORRECTIONS = 12                # Gauss-Newton steps; three are usual
_MAX_DRIFT = 0.25                    # of a step: a correction that moves further may have left the branch
_MIN_SINGULAR_VALUE = 1e-9           # of scaled equations: smaller ones of a correction are rounding
_LOCATED = 1e-14                     # rad or lengths: interval of the curve in which a special position is located
_CHANGE_LOCATED = 1e-10              # the same of a change point
_MAX_SLOPE = 4.0                     # of the smallest singular value along the curve, next to a change point
_PROBE = 0.01                        # of a segment, at its ends: the margin decreases from there to a change point within
_MIN_MOVEMENT = 1e-6                 # rad or lengths: positions that are closer are the same one
_STATIONARY = 1e-9                   # component of the unit tangent that is rounding
_MAX_POINTS = 100_000                # of a curve


@summarized
@dataclass(frozen=True, eq=False)
class SpecialPosition(Immutable):
    """A position of a mechanism where its motion changes character, as listed by `KinematicSweep`.

    kind        "dead centre": the coordinate stops while the mechanism moves, and cannot drive it; "change point": branches of
                the motion meet; "joint limit": the coordinate reaches its limit
    coordinate  name of the coordinate; empty for a change point
    position    of the driver [rad | m]
    q           (nq,)

    Examples
    --------
    >>> model = ld.load("robots/slider_crank.yaml")
    >>> sweep = ld.kinematic_sweep(model, "crank", np.linspace(-1.0, 1.0, 5), driven=["block"])
    >>> [(x.kind, x.coordinate, round(abs(x.position), 9)) for x in sweep.special_positions]
    [('dead centre', 'block', 0.0)]
    """

    kind: str
    coordinate: str
    position: float
    q: Array


@summarized
@dataclass(frozen=True, eq=False)
class KinematicSweep(Immutable):
    """Motion of a mechanism with one driver, as returned by `kinematic_sweep`.

    model              the robot
    driver             name of the driving coordinate
    positions          (k,) of the driver [rad | m], those that it reaches
    q                  (k, nq) configurations
    rates              (k, nv) velocities per velocity of the driver: dq / dq_driver
    driven             names of the driven coordinates
    special_positions  dead centres, change points and the joint limit that ends the sweep, in the order of the motion
    stop               why the driver does not reach the end of its range; empty if it does
    idle               coordinates that the driver does not move

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> sweep = ld.kinematic_sweep(model, "crank", np.linspace(0.0, 2 * np.pi, 73), driven=["rocker"])
    >>> len(sweep.special_positions), sweep.stop
    (2, '')
    """

    model: Model
    driver: str
    positions: Array
    q: Array
    rates: Array
    driven: tuple[str, ...]
    special_positions: tuple[SpecialPosition, ...]
    stop: str
    idle: tuple[str, ...]

    def position(self, coordinate: str) -> Array:
        """Return the positions (k,) [rad | m] of a coordinate."""
        x: Array = self.q[:, _q_index(self.model, _v_index(self.model, coordinate))]
        return x

    def advantage_unit(self, coordinate: str) -> str:
        """Return the unit of a mechanical advantage: empty if driver and coordinate both turn or both slide."""
        units = [self.model.v_units[_v_index(self.model, name)] for name in (self.driver, coordinate)]
        return "" if units[0] == units[1] else "/".join(units)

    def velocity_ratio(self, coordinate: str) -> Array:
        """Return the velocity (k,) of a coordinate per velocity of the driver."""
        ratio: Array = self.rates[:, _v_index(self.model, coordinate)]
        return ratio

    def transmission_angle(self, coordinate: str) -> Array:
        """Return the transmission angle (k,) [rad] of the link that a coordinate moves: a right angle is best.

        It is the angle at the pin of coupler and driven link between the directions to the other pin of the coupler and to the
        axis of the driven link. Of a link that slides, it is the acute angle between the coupler and the normal of the way.

        Raises ModelError where it is not defined: the link is not moved by one coupler with two pins in a plane.
        """
        return transmission_angles(self.model, self.q, _v_index(self.model, coordinate), _v_index(self.model, self.driver))

    def mechanical_advantage(self, coordinate: str) -> Array:
        """Return the force (k,) of a coordinate per force of the driver, without losses and inertia.

        It is the velocity ratio of driver and coordinate (virtual power); infinite at a dead centre of the coordinate.
        """
        ratio = self.velocity_ratio(coordinate)
        with np.errstate(divide="ignore"):
            return np.where(np.abs(ratio) > 0.0, 1.0 / np.where(ratio == 0.0, 1.0, ratio), math.inf)


def kinematic_sweep(model: Model, driver: str, positions: ArrayLike, q_guess: ArrayLike | Mapping[str, ArrayLike] | None = None,
                    *, driven: Sequence[str] = (), fixed: Sequence[str] = (), limits: bool = True,
                    constraint_motion: Mapping[str, Any] | None = None) -> KinematicSweep:
    """Move one coordinate of a mechanism through a range, and return the positions and velocity ratios of all.

    Parameters
    ----------
    model : Model
    driver : str
        Joint with one coordinate, or a coordinate such as "u.1".
    positions : (k,) array
        Positions of the driver [rad | m], increasing or decreasing.
    q_guess : (nq,) array or {joint: position}, optional
        The sweep follows the branch of the assembly that is nearest to it with the driver at the first position.
    driven : names, optional
        Coordinates whose dead centres are located.
    fixed : names, optional
        Joints or coordinates that keep the values of the guess, such as other motors.
    limits : bool
        Whether the sweep stops at joint limits.
    constraint_motion : optional
        Motion of the frames of driven loops, as for `constraint_residual`.

    Returns
    -------
    KinematicSweep
        With a warning, it ends where the mechanism cannot continue: at a dead centre of the driver, where the Jacobian of all
        other coordinates loses rank, or at a joint limit.

    Raises
    ------
    ComputationError
        If the first position cannot be assembled, if it is singular, or if the driver does not determine the motion: the error
        names the coordinates that must be fixed in addition.
    ModelError
        For a model without constraints, or with rolling loops.
    UsageError, NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/toggle_clamp.yaml")
    >>> guess = {"crank": 1, "knee": -2, "ram": 0.09}
    >>> sweep = ld.kinematic_sweep(model, "crank", np.linspace(1.0, -0.06, 54), guess, driven=["ram"])
    >>> [(x.coordinate, round(abs(x.position), 9)) for x in sweep.special_positions]
    [('ram', 0.0)]
    """
    check_has_constraints(model)
    range_ = _range(positions)
    k, outputs = _v_index(model, driver), [_v_index(model, name) for name in driven]
    _check_limits(model, k, range_[0], limits)
    locked = coordinate_mask(model, fixed)
    locked[k] = False
    start = _start(model, k, range_[0], q_guess, locked, limits, constraint_motion)
    moving, idle = _moving_coordinates(model, start, k, ~locked, constraint_motion)
    path = _Path(_Curve(model, moving, k, constraint_motion), range_, [i for i in outputs if moving[i]], limits)
    path.follow(start)
    q = np.array(path.rows)
    sweep = KinematicSweep(model, model.v_names[k], range_[:len(q)], q, np.array(path.rates),
                           tuple(model.v_names[i] for i in outputs), tuple(path.special), path.stop,
                           tuple(model.v_names[i] for i in idle))
    if sweep.stop:
        warn([LiedynWarning("sweep-stopped", sweep.stop)])
    return sweep


def _range(positions: ArrayLike) -> Array:
    values = np.asarray(positions, dtype=float)
    steps = np.diff(values) if values.ndim == 1 else np.zeros(1)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all() or not ((steps > 0).all() or (steps < 0).all()):
        raise UsageError("positions: expected at least two finite numbers that increase or decrease")
    return values


def _v_index(model: Model, name: str) -> int:
    """Return the index in v of a coordinate by the name of it or of its joint."""
    if name in model.v_names:
        k = model.v_names.index(name)
    else:
        part = model.v_index(name)
        if part.stop - part.start != 1:
            raise UsageError(f"joint {name} has {part.stop - part.start} coordinates: expected one of "
                             f"{list_names(model.v_names[part], 6)}")
        k = part.start
    if _q_index(model, k) < 0:
        raise UsageError(f"coordinate {name} belongs to a quaternion: expected a joint that turns or slides about one axis")
    return k


def _q_index(model: Model, k: int) -> int:
    """Return the index in q of velocity coordinate k; -1 for ball and free joints."""
    joint = next(joint for joint in model.joints if joint.v.start <= k < joint.v.stop)
    return joint.q.start + k - joint.v.start if joint.screws is not None else -1


def _check_limits(model: Model, k: int, position: float, limits: bool) -> None:
    if limits and not model.lower[k] <= position <= model.upper[k]:
        raise UsageError(f"the sweep starts at {model.v_names[k]} = {position:g} {model.v_units[k]}, which is beyond its limits: "
                         f"expected {model.lower[k]:g} to {model.upper[k]:g}")


def _start(model: Model, k: int, position: float, q_guess: ArrayLike | Mapping[str, ArrayLike] | None, locked: Mask, limits: bool,
           constraint_motion: Mapping[str, Any] | None) -> Array:
    """Return the assembly nearest to the guess with the driver at its first position."""
    if any(constraint.type == "rolling" for constraint in model.constraints):
        raise ModelError(f"robot {model.name} has rolling loops: a sweep of positions requires constraints of positions")
    guess = configuration(model, q_guess)
    guess[_q_index(model, k)] = position
    mask = locked.copy()
    mask[k] = True
    try:
        return BranchSearch(model, mask, constraint_motion, limits=limits).find(guess)[0].q
    except ComputationError as error:
        raise ComputationError(f"no assembly with {model.v_names[k]} = {position:g} {model.v_units[k]}, where the sweep starts: "
                               f"{error}") from error


def _moving_coordinates(model: Model, q: Array, k: int, free: Mask,
                        constraint_motion: Mapping[str, Any] | None) -> tuple[Mask, list[int]]:
    """Return the mask of the coordinates that move with driver k, and the free coordinates that it does not move.

    Raises ComputationError unless the driver determines their motion.
    """
    name, columns = model.v_names[k], np.flatnonzero(free)
    A = scaled_jacobian(model, q, constraint_motion)
    motions = row_and_null_space(A[:, columns])[1]
    near = nearby_configuration(model, q, ~free, constraint_motion)
    usual = motions if near is None else row_and_null_space(scaled_jacobian(model, near, constraint_motion)[:, columns])[1]
    group = next((group for group in coordinate_groups(motions, usual) if k in columns[group]), None)
    if group is None or np.linalg.norm(motions[:, columns == k]) <= RANK:
        raise ComputationError(f"{name} does not move from the start of the sweep: the constraints hold it, or it is at a dead "
                               "centre (start elsewhere, or drive another coordinate)")
    mask, degrees = np.zeros(model.nv, dtype=bool), round(float((motions[:, group]**2).sum()))
    mask[columns[group]] = True
    if degrees == 1:
        return mask, [int(i) for i in columns if not mask[i]]
    if round(float((usual[:, group]**2).sum())) < degrees:
        undetermined = [model.v_names[i] for i in np.flatnonzero(mask) if i != k]
        raise ComputationError(f"the sweep starts at a singular configuration, where {name} does not determine the motion of "
                               f"{list_names(undetermined, 6)}: start at another position, or from another guess")
    rest = np.flatnonzero(mask & (np.arange(model.nv) != k))
    names = [model.v_names[i] for i in rest[np.linalg.norm(row_and_null_space(A[:, rest])[1], axis=0) > RANK]]
    count = "one" if degrees == 2 else str(degrees - 1)
    raise ComputationError(f"{name} does not determine the motion: there are {degrees} degrees of freedom; fix {count} more of "
                           f"{list_names(names, 8)}")


# Curve of closed configurations -------------------------------------------------------------------------------------------

class _Curve:
    """Closed configurations in which some coordinates move. Movement is measured in radians and lengths of loops."""

    def __init__(self, model: Model, moving: Mask, driver: int, constraint_motion: Mapping[str, Any] | None):
        self.model, self.moving, self.driver, self.constraint_motion = model, moving, driver, constraint_motion
        self.search = BranchSearch(model, ~moving, constraint_motion, limits=False)
        self.unit, self.norms, self.q_driver = coordinate_scales(model), equation_norms(model), _q_index(model, driver)

    def equations(self, q: Array) -> Array:
        """Return the scaled constraint equations (m, n) at q in the coordinates that move."""
        return scaled_jacobian(self.model, q, self.constraint_motion)[:, self.moving]

    def tangent(self, q: Array, previous: Array) -> Array:
        """Return the unit tangent (nv,) at q, or the direction nearest to the previous one where branches meet."""
        free = row_and_null_space(self.equations(q))[1]
        t = free.T @ (free @ previous[self.moving])
        size = np.linalg.norm(t)
        return self._expand(t / size if size > 0.0 else t)

    def _expand(self, x: Array) -> Array:
        out = np.zeros(self.model.nv)
        out[self.moving] = x
        return out

    def at(self, q: Array, t: Array, s: float) -> Array | None:
        """Return the point of the curve at distance s along the tangent t at q; None if there is none nearby."""
        return self.corrected(integrate(self.model, q, s * self.unit * t), t)

    def corrected(self, q: Array, across: Array) -> Array | None:
        """Return the closed configuration to which Gauss-Newton steps lead that are perpendicular to `across` (nv,)."""
        solution, row = self.search.at(q), across[self.moving]
        for _ in range(_MAX_CORRECTIONS):
            B = np.vstack([self.equations(solution.q), row])
            r = np.append(self.search.residual(solution.q) / self.norms, 0.0)
            x = np.linalg.lstsq(B, -r, rcond=_MIN_SINGULAR_VALUE)[0]
            trial = self.search.at(integrate(self.model, solution.q, self.unit * self._expand(x)))
            if not trial.size < 0.5 * solution.size:
                break
            solution = trial
        return solution.q if solution.closed else None

    def distance(self, q: Array, other: Array) -> float:
        """Return the distance between two configurations."""
        return float(np.linalg.norm(difference(self.model, q, other) / self.unit))

    def margin(self, q: Array) -> float:
        """Return the smallest singular value of the equations that is not zero on the curve: it vanishes where branches meet."""
        significant = int(self.moving.sum()) - 1
        return float(np.linalg.svd(self.equations(q), compute_uv=False)[significant - 1]) if significant else math.inf


class _Segment(NamedTuple):
    """Part of the curve from q with tangent t: points are functions of the distance s along t, up to `length`."""

    curve: _Curve
    q: Array
    t: Array
    length: float

    def point(self, s: float) -> Array:
        """Return the configuration at distance s."""
        q = self.curve.at(self.q, self.t, s)
        return integrate(self.curve.model, self.q, s * self.curve.unit * self.t) if q is None else q        # at a change point

    def root(self, value: Callable[[Array], float], first: float, last: float) -> float:
        """Return the distance at which a function of the configuration vanishes, with its values at both ends."""
        def at(s: float) -> float:
            return first if s == 0.0 else last if s == self.length else value(self.point(s))
        return float(brentq(at, 0.0, self.length, xtol=_LOCATED))

    def change_point(self, first: float, last: float) -> float | None:
        """Return the distance at which branches meet, if they do within the segment, with the margins at its ends."""
        def margin(s: float) -> float:
            return self.curve.margin(self.point(s))

        if last < RANK:
            return self.length
        probe = _PROBE * self.length
        if max(first, last) > _MAX_SLOPE * self.length or margin(probe) >= first or margin(self.length - probe) >= last:
            return None
        lowest = minimize_scalar(margin, bounds=(0.0, self.length), method="bounded", options={"xatol": _CHANGE_LOCATED})
        return float(lowest.x) if lowest.fun < RANK else None


def _component(curve: _Curve, t: Array, i: int, q: Array) -> float:
    """Return component i of the tangent at q; t: a tangent nearby."""
    return float(curve.tangent(q, t)[i])


def _excess(place: int, value: float, q: Array) -> float:
    """Return by how much a coordinate of q exceeds a value."""
    return float(q[place]) - value


# A sweep along the curve --------------------------------------------------------------------------------------------------

@dataclass
class _Path:
    """The rows of a sweep, and the special positions on its way."""

    curve: _Curve
    range_: Array
    outputs: list[int]
    limits: bool
    rows: list[Array] = field(default_factory=list)
    rates: list[Array] = field(default_factory=list)
    special: list[SpecialPosition] = field(default_factory=list)
    stop: str = ""

    def follow(self, q: Array) -> None:
        """Follow the branch from q until the driver reaches the end of its range or cannot continue."""
        curve, k = self.curve, self.curve.driver
        t = self._first_tangent(q)
        self._add_row(q, t)
        self.special += [self._special("dead centre", i, q) for i in self.outputs if abs(t[i]) <= _STATIONARY]
        step = _MAX_STEP
        for _ in range(_MAX_POINTS):
            q_next, t_next, length, step = self._advance(q, t, step)
            if q_next is None:
                self.stop = f"{self._position(q)} is the last position that is reached: the motion branches or ends there"
                return
            self._process(_Segment(curve, q, t, length), q_next, t_next)
            if self.stop or len(self.rows) == len(self.range_):
                return
            q, t = q_next, t_next
        raise ComputationError(f"the sweep of {curve.model.v_names[k]} was stopped after {_MAX_POINTS} steps at "
                               f"{self._position(q)}")

    def _first_tangent(self, q: Array) -> Array:
        curve = self.curve
        t = curve._expand(row_and_null_space(curve.equations(q))[1][0])
        forward: Array = t * np.sign(t[curve.driver]) * np.sign(self.range_[1] - self.range_[0])
        return forward

    def _advance(self, q: Array, t: Array, step: float) -> tuple[Array | None, Array, float, float]:
        """Return the next point, its tangent, the length of the step, and that of the next step. None: no step succeeds."""
        while step >= _MIN_STEP:
            point = self.curve.at(q, t, step)
            if point is not None:
                drift = self.curve.distance(point, integrate(self.curve.model, q, step * self.curve.unit * t))
                tangent = self.curve.tangent(point, t)
                turn = float(np.linalg.norm(tangent - t))
                if drift <= _MAX_DRIFT * step and turn <= _MAX_TURN:
                    return point, tangent, step, min(_MAX_STEP, step * (1.5 if turn < _SMALL_TURN else 1.0))
            step *= 0.5
        return None, t, 0.0, step

    def _process(self, segment: _Segment, q: Array, t: Array) -> None:
        """Add the rows and special positions of a segment that ends at q with tangent t."""
        events = sorted(self._events(segment, q, t), key=lambda event: event[0])
        end = next((s for s, _, is_end in events if is_end), math.inf)
        self.special += [special for s, special, _ in events if s <= end]
        self._add_rows(segment, q, t, end)
        if len(self.rows) == len(self.range_):                  # the range ends within the segment
            self.special = [x for x in self.special if x.kind != "joint limit" and self._is_within_range(x.position)]
            self._add_last_dead_centres(self.rows[-1], t)
        elif end < math.inf:
            self.stop = self._reason(self.special[-1])

    def _events(self, segment: _Segment, q: Array, t: Array) -> list[tuple[float, SpecialPosition, bool]]:
        """Return distance, position and whether it ends the motion, of each special position in a segment."""
        curve, model, events = self.curve, self.curve.model, []
        for i in dict.fromkeys([curve.driver, *self.outputs]):
            if segment.t[i] * t[i] < 0.0 and abs(segment.t[i]) > _STATIONARY:
                s = segment.root(partial(_component, curve, segment.t, i), segment.t[i], t[i])
                events.append((s, self._special("dead centre", i, segment.point(s)), i == curve.driver))
        for i, limit, side in self._limit_values() if self.limits else []:
            place = _q_index(model, i)
            ends = segment.q[place] - limit, q[place] - limit
            if side * ends[1] > 0.0 >= side * ends[0]:
                s = segment.root(partial(_excess, place, limit), *ends) if ends[0] else 0.0
                events.append((s, self._special("joint limit", i, segment.point(s)), True))
        s_change = segment.change_point(curve.margin(segment.q), curve.margin(q))
        if s_change is not None:
            point = segment.point(s_change)
            if not any(x.kind == "change point" and curve.distance(x.q, point) < _MIN_MOVEMENT for x in self.special):
                events.append((s_change, SpecialPosition("change point", "", float(point[curve.q_driver]), point), False))
        return events

    def _limit_values(self) -> list[tuple[int, float, int]]:
        """Return coordinate, value and side of each finite limit of the coordinates that move."""
        model = self.curve.model
        return [(int(i), float(x[i]), side) for x, side in ((model.lower, -1), (model.upper, 1))
                for i in np.flatnonzero(self.curve.moving & np.isfinite(x)) if _q_index(model, int(i)) >= 0]

    def _add_rows(self, segment: _Segment, q: Array, t: Array, end: float) -> None:
        """Add the rows of the positions of the driver in a segment, up to the distance `end`."""
        place, target = self.curve.q_driver, self.range_
        part = segment._replace(length=min(end, segment.length))
        last = part.point(part.length)[place] if end < math.inf else q[place]
        forward, drive = np.sign(target[1] - target[0]), np.eye(len(t))[self.curve.driver]
        while len(self.rows) < len(target) and forward * (target[len(self.rows)] - last) <= 0.0:
            position = float(target[len(self.rows)])
            ends = segment.q[place] - position, last - position
            fraction = ends[0] / (ends[0] - ends[1])
            point = integrate(self.curve.model, segment.q, fraction * part.length * self.curve.unit * segment.t)
            row = self._at_position(point, position, drive)
            if row is None or self.curve.distance(row, point) > _MAX_DRIFT * part.length:       # near a dead centre of the driver
                s = part.length if ends[1] == 0.0 else part.root(partial(_excess, place, position), *ends)
                point = segment.point(s)
                row = self._at_position(point, position, drive)
                row = point if row is None or self.curve.distance(row, point) > _MIN_MOVEMENT else row
            self._add_row(row, self.curve.tangent(row, segment.t))

    def _at_position(self, q: Array, position: float, drive: Array) -> Array | None:
        """Return the configuration near q with the driver at a position; None if there is none."""
        q = q.copy()
        q[self.curve.q_driver] = position
        return self.curve.corrected(q, drive)

    def _add_row(self, q: Array, t: Array) -> None:
        unit, k = self.curve.unit, self.curve.driver
        self.rows.append(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.rates.append(unit * t / (unit[k] * t[k]))

    def _add_last_dead_centres(self, q: Array, t: Array) -> None:
        """Add dead centres at the last position, which no change of sign shows."""
        t = self.curve.tangent(q, t)
        known = {x.coordinate for x in self.special if self.curve.distance(x.q, q) < _MAX_STEP}
        self.special += [self._special("dead centre", i, q) for i in self.outputs
                         if abs(t[i]) <= _STATIONARY and self.curve.model.v_names[i] not in known]

    def _is_within_range(self, position: float) -> bool:
        low, high = sorted((self.range_[0], self.range_[-1]))
        slack = _STATIONARY * (high - low)
        return bool(low - slack <= position <= high + slack)

    def _special(self, kind: str, i: int, q: Array) -> SpecialPosition:
        return SpecialPosition(kind, self.curve.model.v_names[i], float(q[self.curve.q_driver]), q)

    def _position(self, q: Array) -> str:
        model = self.curve.model
        return f"{model.v_names[self.curve.driver]} = {q[self.curve.q_driver]:.9g} {model.v_units[self.curve.driver]}"

    def _reason(self, special: SpecialPosition) -> str:
        """Return why the sweep ends at a position."""
        model, end = self.curve.model, f"{self.range_[-1]:g} {self.curve.model.v_units[self.curve.driver]}"
        text = f"the mechanism cannot move from {self._position(special.q)} on to {end}"
        if special.kind == "dead centre":
            return f"{text}: {special.coordinate} is at a dead centre, where it cannot drive the other coordinates"
        i = model.v_names.index(special.coordinate)
        return f"{text}: {special.coordinate} is at its limit {special.q[_q_index(model, i)]:.9g} {model.v_units[i]}"
