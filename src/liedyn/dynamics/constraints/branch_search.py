"""Search for configurations that close all loops, near a guess and within the joint limits."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.constraints.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights, row_and_null_space
from liedyn.dynamics.finite_differences import numerical_derivative
from liedyn.dynamics.manifold import difference, generator_of_seed, integrate
from liedyn.errors import ComputationError, list_names
from liedyn.model.constraint_arrays import ModelConstraint
from liedyn.model.description import CYLINDRICAL, ONE_DOF, PLANAR, PRISMATIC, REVOLUTE, WELD
from liedyn.model.model import Model

# Closed configurations near a given one: Gauss-Newton steps on the manifold with Levenberg's damping, within the joint limits.
# Then the configuration slides along the closed ones to the nearest.

_MAX_ITERATIONS = 80    # Gauss-Newton steps from one start
_MAX_STEP = 0.8         # rad, or fraction of the length, or of the residual if it exceeds the length
_DAMPING = 0.1          # initial damping, times the residual: quadratic convergence (J. Fan and Y. Yuan, 2005)
# damping of scaled equations; the lightest is no more than rounding of their squares
_MIN_DAMPING, _MAX_DAMPING = 1e-8, 1e8
_MIN_DECREASE = 1e-6         # of the residual: stop when a step decreases it by less
_DIFFERENCE_STEP = 1e-6      # for the derivative of the residual: its error, 1e-10, does not slow convergence
# singular values of scaled equations below it are rounding of the differences. It is less than RANK, since towards a singular
# configuration they vanish as the root of the residual does
_MIN_SINGULAR_VALUE = 1e-9
_MAX_RESTARTS = 24            # further starts, with growing distance from the guess, until one closes
# rad, or fraction of the length: from a nearer guess, Newton steps do not leave its branch
MAX_NEAR_DISTANCE = 0.25
_N_BRANCH_STARTS = 8        # further starts for a nearer branch: a four-bar linkage has two
_MAX_SLIDES = 60            # steps along the closed configurations
# of the distance: a branch that is nearer by less is the same one or a mirror image, and the first is kept
_SAME_BRANCH = 1e-6
_ROUNDING = 16 * np.finfo(float).eps  # of the maximum position: a smaller residual is rounding
_MIN_SLIDE = 1e-9                     # rad, or fraction of the length: sliding ends at a smaller step
_MAX_TILT = 1e-3                      # rad: axes of a planar mechanism with a smaller tilt are meant to be parallel
# of the tilt: the residual in the plane is of second order, and larger if the search ends early
_MAX_IN_PLANE = 0.2
_MAX_RESIDUAL = 10.0            # tilts: maximum scaled residual that they explain


@dataclass(frozen=True, eq=False)
class Solution:
    """A configuration with its residual, as a search leaves it."""

    q: Array
    size: float              # of the scaled residual
    max_residual: float             # maximum residual [rad | m]
    closed: bool
    steps: int = 0


class BranchSearch:
    """Closed configurations of a model. Movement is measured in radians, and in characteristic lengths of the robot."""

    def __init__(self, model: Model, fixed: Mask | None = None, constraint_motion: Mapping[str, Any] | None = None, *,
                 tolerance: float = 1e-12, limits: bool = True):
        self.model, self.constraint_motion, self.tolerance = model, constraint_motion, tolerance
        self.unit, self.weight = coordinate_scales(model), equation_weights(model)
        self.lengths, self.positions = (np.array(units) == "m" for units in (model.v_units, model.q_units))
        self.turns = np.array(model.v_units) == "rad"
        self.distances = np.array(model.constraint_equation_units) == "m"
        self.free = np.ones(model.nv, dtype=bool) if fixed is None else ~fixed
        screws = [joint for joint in model.joints if joint.kind == ONE_DOF]
        v, place = (np.array([k for part in parts for k in range(part.start, part.stop)], dtype=np.int64)
                    for parts in ([joint.v for joint in screws], [joint.q for joint in screws]))
        mine = self.free[v]
        self.screws, self.place = v[mine], place[mine]          # coordinates that may have limits: in v and in q
        self.lower, self.upper = (x[self.screws] if limits else np.full(mine.sum(), end)
                                  for x, end in ((model.lower, -np.inf), (model.upper, np.inf)))

    def residual(self, q: Array) -> Array:
        """Return the residual (m,) of the constraint equations [rad | m]."""
        return constraint_residual(self.model, q, constraint_motion=self.constraint_motion)

    def at(self, q: Array, steps: int = 0) -> Solution:
        """Return the configuration q with its residual, and whether it is closed. steps: that led to it."""
        r = self.residual(q)
        scaled = self.weight * r
        closed = bool((np.abs(scaled) <= np.maximum(self.tolerance, self.weight * self._rounding(q))).all())
        return Solution(q, float(np.linalg.norm(scaled)), float(np.abs(r).max()), closed, steps)

    def _rounding(self, q: Array) -> Array:
        """Return the residual (m,) that rounding of the positions in q causes [m]; 0 for angles."""
        far = np.abs(q[self.positions]).max(initial=0.0)
        return np.where(self.distances, _ROUNDING * far, 0.0)

    def within(self, q: Array) -> Array:
        """Return q with its coordinates clipped to their limits."""
        q = q.copy()
        q[self.place] = np.clip(q[self.place], self.lower, self.upper)
        return q

    def distance(self, q: Array, other: Array) -> float:
        """Return the norm of the displacement from q to `other`, in the units of movement."""
        return float(np.linalg.norm(difference(self.model, q, other) / self.unit))

    def at_limits(self, q: Array) -> tuple[str, ...]:
        """Return the names of the coordinates that are at a limit."""
        low, high = self._limit_masks(q)
        return tuple(self.model.v_names[k] for k in np.flatnonzero(low | high))

    def _limit_masks(self, q: Array) -> tuple[Mask, Mask]:
        """Return masks (nv,) of the coordinates at their lower and at their upper limit, up to the tolerance of the closure."""
        low, high = np.zeros((2, self.model.nv), dtype=bool)
        slack = _MIN_SLIDE * self.unit[self.screws]
        low[self.screws], high[self.screws] = q[self.place] <= self.lower + slack, q[self.place] >= self.upper - slack
        return low, high

    def find(self, guess: Array, seed: int = 0) -> tuple[Solution, int, int]:
        """Return the closed configuration nearest to the guess, and the numbers of steps and further starts until the first one.

        Raises ComputationError if none is found.
        """
        rng, starts = generator_of_seed(seed), 0
        first = self.close(self.within(guess))
        best, steps = first, first.steps
        while not best.closed and starts < _MAX_RESTARTS:
            solution = self.close(self._random_near(guess, 0.3 * 1.1**starts, rng))
            starts, steps = starts + 1, steps + solution.steps
            best = solution if solution.closed or solution.size < best.size else best
        if not best.closed:
            raise self.closure_error(best, starts)
        best = self.slide_to_nearest(self.unwind(best, guess), guess)
        for _ in range(_N_BRANCH_STARTS if self.distance(best.q, guess) > MAX_NEAR_DISTANCE else 0):
            spread = self.distance(best.q, guess) / np.sqrt(self.free.sum())
            solution = self.close(self._random_near(guess, spread, rng))
            solution = self.slide_to_nearest(self.unwind(solution, guess), guess) if solution.closed else solution
            if solution.closed and self.distance(solution.q, guess) < (1 - _SAME_BRANCH) * self.distance(best.q, guess):
                best = solution
        return best, steps, starts

    def random_start(self, guess: Array, rng: np.random.Generator) -> Array:
        """Return the guess with the free coordinates anywhere between their limits, or within half a turn or a length."""
        q = self._random_near(guess, 1.0, rng)
        reach = np.pi * self.unit[self.screws]
        low, high = (np.where(np.isfinite(limit), limit, q[self.place] + side * reach)
                     for limit, side in ((self.lower, -1.0), (self.upper, 1.0)))
        q[self.place] = low + (high - low) * rng.random(len(self.place))
        return q

    def turned_distance(self, q: Array, other: Array, selected: Mask | slice = slice(None)) -> float:
        """Return the distance from q to `other` in the selected coordinates, without whole turns of joints."""
        x = difference(self.model, q, other) / self.unit
        return float(np.linalg.norm(np.where(self.turns, x - 2 * np.pi * np.round(x / (2 * np.pi)), x)[selected]))

    def _random_near(self, q: Array, spread: float, rng: np.random.Generator) -> Array:
        x = spread * self.unit * rng.standard_normal(self.model.nv)
        return self.within(integrate(self.model, q, np.where(self.free, x, 0.0)))

    # steps --------------------------------------------------------------------------------------------------------

    def units(self, size: float) -> Array:
        """Return the units of movement (nv,) for a scaled residual of this size.

        A residual that exceeds the length of the loop is closed by lengths, which are not bounded as angles are.
        """
        return self.unit * np.where(self.lengths, max(1.0, size), 1.0)

    def residual_jacobian(self, q: Array, unit: Array) -> Array:
        """Return the derivative (m, nv) of the residual by central differences, scaled with `unit` (from `units`).

        A is this derivative only where the residual vanishes, and includes the equations of rolling without slip, which have no
        residual.
        """
        J, ways = np.zeros((len(self.weight), self.model.nv)), np.diag(unit)[self.free]
        rates = numerical_derivative(lambda steps: self.residual(integrate(self.model, q, np.multiply.outer(steps, ways))),
                                     _DIFFERENCE_STEP)
        J[:, self.free] = self.weight[:, None] * rates.T
        return J

    def close(self, q: Array) -> Solution:
        """Take damped steps from q while the residual decreases, down to rounding if it vanishes."""
        solution, weight, steps = self.at(q), _DAMPING, 0
        while steps < _MAX_ITERATIONS and solution.size > 0:
            steps += 1
            unit = self.units(solution.size)
            J, r, trial = self.residual_jacobian(solution.q, unit), self.weight * self.residual(solution.q), None
            while weight < _MAX_DAMPING:
                trial = self.at(self.apply_step(solution.q, self.step(solution.q, J, r, weight * solution.size, unit), unit))
                if trial.size < solution.size * (1 - _MIN_DECREASE):
                    break
                weight, trial = 10 * max(weight, _MIN_DAMPING), None
                if solution.closed:                        # at rounding
                    break
            if trial is None or (solution.closed and trial.size > 0.5 * solution.size):
                break
            solution, weight = trial, 0.1 * weight
        return Solution(solution.q, solution.size, solution.max_residual, solution.closed, steps)

    def apply_step(self, q: Array, x: Array, unit: Array) -> Array:
        """Return q after the scaled step x (nv,), clipped to the limits. unit: from `units`."""
        return self.within(integrate(self.model, q, unit * x))

    def step(self, q: Array, J: Array, r: Array, damping: float, unit: Array) -> Array:
        """Return the scaled step that minimizes J x + r within the limits.

        Coordinates that would exceed a limit stop there, and the others compensate.
        """
        low, high = self._limit_masks(q)
        down = -J.T @ r
        stopped = ~self.free | (low & (down < 0)) | (high & (down > 0))
        x, lowest, highest = np.zeros(self.model.nv), np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        lowest[self.screws], highest[self.screws] = self.lower - q[self.place], self.upper - q[self.place]
        while not stopped.all():
            x[~stopped] = _damped_step(J[:, ~stopped], r + J[:, stopped] @ x[stopped], damping)
            inside = np.clip(x, lowest / unit, highest / unit)
            beyond = ~stopped & (x != inside)
            if not beyond.any():
                break
            x[beyond], stopped = inside[beyond], stopped | beyond
        longest = np.abs(x).max(initial=0.0)
        return x * min(1.0, _MAX_STEP / longest) if longest else x

    def unwind(self, solution: Solution, guess: Array) -> Solution:
        """Return the solution without whole turns of joints from the guess on which no constraint depends."""
        for k, i, low, high in zip(self.screws, self.place, self.lower, self.upper, strict=True):
            turns = np.round((solution.q[i] - guess[i]) / (2 * np.pi))
            if turns and self.model.v_units[k] == "rad":
                q = solution.q.copy()
                q[i] -= 2 * np.pi * turns
                unwound = self.at(q)
                if unwound.closed and low <= q[i] <= high:
                    solution = unwound
        return solution

    def slide_to_nearest(self, solution: Solution, guess: Array) -> Solution:
        """Move along the closed configurations towards the guess while the distance decreases."""
        for _ in range(_MAX_SLIDES):
            d = self.approach_direction(solution.q, guess)
            low, high = self._limit_masks(solution.q)
            free = self.free & ~(low & (d < 0)) & ~(high & (d > 0))
            across, _ = row_and_null_space(self.residual_jacobian(solution.q, self.unit)[:, free])
            along = np.zeros(len(d))
            along[free] = d[free] - across.T @ (across @ d[free])
            nearer = self._shorter_configuration(solution, along, guess) if np.linalg.norm(along) > _MIN_SLIDE else None
            if nearer is None:
                break
            solution = nearer
        return solution

    def approach_direction(self, q: Array, guess: Array) -> Array:
        """Return the scaled direction (nv,) of steepest decrease of half the squared distance to the guess."""
        ways = np.diag(self.unit)
        gradient = numerical_derivative(
            lambda steps: difference(self.model, integrate(self.model, q, np.multiply.outer(steps, ways)), guess) / self.unit,
            _DIFFERENCE_STEP)
        return -gradient @ (difference(self.model, q, guess) / self.unit)

    def _shorter_configuration(self, solution: Solution, along: Array, guess: Array) -> Solution | None:
        distance = self.distance(solution.q, guess)
        for k in range(10):
            candidate = self.close(self.apply_step(solution.q, 0.5**k * along, self.unit))
            gain = distance - self.distance(candidate.q, guess)
            if candidate.closed and gain > 0.1 * 0.5**k * (along @ along) / max(distance, 1e-300):
                return candidate
        return None

    # errors -------------------------------------------------------------------------------------------------------

    def closure_error(self, best: Solution, restarts: int) -> ComputationError:
        """Return the error that names the constraint with the maximum residual and the reason."""
        model, r = self.model, self.residual(best.q)
        constraint = max(model.constraints, key=lambda candidate: np.linalg.norm((self.weight * r)[candidate.rows]))
        units = np.array(constraint.units)
        sizes = {unit: np.linalg.norm(r[constraint.rows][units == unit]) for unit in ("m", "rad")}
        parts = [f"{size:.3g} {unit}" for unit, size in sizes.items() if size > self.tolerance]
        kind = "coupling" if constraint.type == "coupling" else f"{constraint.type} loop"
        text = (f'{kind} "{constraint.name}" cannot be closed: its smallest residual in {restarts + 1} starts is '
                f'{" and ".join(parts)}')
        names = self.at_limits(best.q)
        if names:
            text += f", with {list_names(names, 4)} at a limit"
        fixed = [name for name, free in zip(model.v_names, self.free, strict=True) if not free]
        hints = [f"{list_names(fixed, 4)} {'is' if len(fixed) == 1 else 'are'} kept fixed: release"] if fixed else []
        if constraint.driven:
            hints.append("it is driven: give its position")
        tilt = self._tilt(constraint, best)
        if tilt:
            return ComputationError(
                f"{text}. The axes of this loop are not parallel (angle {tilt:.2g} rad), and the loop is overconstrained. Give "
                "angles with all digits (pi/2 is 1.5707963267948966), or make one joint of the loop "
                "a ball joint and another one cylindrical")
        return ComputationError(f"{text} ({', '.join([*hints, 'check lengths and frames, or change the guess'])})")

    def _tilt(self, constraint: ModelConstraint, best: Solution) -> float:
        """Return the tilt [rad] of the axes of a planar loop; 0 if the loop is open for another reason."""
        if constraint.driven or constraint.kind not in (WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR):
            return 0.0
        r = dict(zip(constraint.labels, self.residual(best.q)[constraint.rows], strict=True))
        w, p = (np.array([r.get(f"{kind}{axis}", 0.0) for axis in "xyz"]) for kind in "wv")
        turning = [k for k, axis in enumerate("xyz") if f"w{axis}" in r]
        J = constraint_jacobian(self.model, best.q, constraint_motion=self.constraint_motion)
        J = J[constraint.rows][:len(turning), self.turns]
        axes = np.zeros((3, J.shape[1]))                                # of joints, in frame B
        axes[turning] = J
        normal = np.linalg.svd(axes, full_matrices=False)[0][:, 0] if len(turning) == 3 else np.array([0.0, 0.0, 1.0])
        across = np.linalg.norm(w - (w @ normal) * normal)
        within = np.hypot(w @ normal, np.linalg.norm(p - (p @ normal) * normal) / constraint.length)
        tilt = max(np.linalg.norm(axes - np.outer(normal, normal @ axes), axis=0).max(initial=0.0), across)
        explained = within < max(self.tolerance, _MAX_IN_PLANE * tilt) and best.size < _MAX_RESIDUAL * tilt
        return float(tilt) if self.tolerance < across and tilt < _MAX_TILT and explained else 0.0


def _damped_step(J: Array, r: Array, damping: float) -> Array:
    """Return the x that minimizes |J x + r|^2 + damping |x|^2; of minimum norm if it is not unique."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    significant = s > _MIN_SINGULAR_VALUE * max(1.0, s.max(initial=0.0))
    x: Array = -Vt[significant].T @ (s[significant] / (s[significant]**2 + damping) * (U[:, significant].T @ r))
    return x
