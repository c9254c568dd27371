"""Closed configurations near a given one: Gauss-Newton on the manifold with Levenberg's damping, within the joint limits, and
along them to the nearest."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.dynamics.loops.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.loops.rank import column_scale, row_scale, significant
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError
from liedyn.joints.kinds import CYLINDRICAL, PLANAR, PRISMATIC, REVOLUTE, SCREW, WELD

_STEPS = 80             # Gauss-Newton steps from one start
_LONGEST = 0.8          # of a step: rad, or that part of the length, or of the residual where that is longer than the length
_DAMPING = 0.1          # of the first step, times the residual: quadratic at the end (J. Fan and Y. Yuan, 2005)
_LIGHTEST, _HEAVIEST = 1e-8, 1e8        # damping of scaled equations; the lightest is no more than rounding of their squares
_GAIN = 1e-6            # of the residual: a step that takes off less is not worth a further one
_DIFFERENCE = 1e-6      # of the residual's derivative: its error, 1e-10, does not slow the end
_SMALLEST = 1e-9        # singular values of scaled equations below it are rounding of the differences. It is less than RANK,
                        # since towards a singular configuration they vanish as the root of the residual does
_STARTS = 24            # further starts, ever wider around the guess, while none closes
FAR = 0.25              # rad, or that part of the length: from a guess that is nearer, Newton's steps do not leave its branch
_BRANCHES = 8           # further starts that look for a nearer branch: a loop of four bars has two
_NEARER = 60            # steps along the closed configurations
_SAME = 1e-6            # of the distance: a branch that is nearer by less is the same one, or a mirror image: the first is kept
_ROUNDING = 16 * np.finfo(float).eps      # of the largest position: a residual below it cannot be told from zero
_NEAREST = 1e-9         # rad, or that part of the length: a step that small ends it
_TILT = 1e-3            # rad: axes of a planar mechanism that are off by less are meant to be parallel
_ACROSS = 0.2           # of the tilt: what is left in the plane is of its second order, and more where the search ends early
_LEFT = 10.0            # tilts: the most that they leave of all residuals, scaled


@dataclass(frozen=True, eq=False)
class _Found:
    q: np.ndarray
    size: float              # of the scaled residual
    worst: float             # largest residual [rad | m]
    closed: bool
    steps: int = 0


class Search:
    """Closed configurations of a model. Movement is measured in radians, and in units of the robot's length."""

    def __init__(self, model, fixed=None, drive=None, *, tolerance: float = 1e-12, limits: bool = True):
        self.model, self.drive, self.tolerance = model, drive, tolerance
        self.unit, self.weight = column_scale(model), row_scale(model)
        self.lengths, self.positions = (np.array(units) == "m" for units in (model.v_units, model.q_units))
        self.turns = np.array(model.v_units) == "rad"
        self.distances = np.array([unit == "m" for one in model.constraints for unit in one.units])
        self.movable = np.ones(model.nv, dtype=bool) if fixed is None else ~fixed
        screws = [joint for joint in model.joints if joint.kind == SCREW]
        v, place = (np.array([k for joint in screws for k in range(part(joint).start, part(joint).stop)], dtype=int)
                    for part in (lambda joint: joint.v, lambda joint: joint.q))
        mine = self.movable[v]
        self.screws, self.place = v[mine], place[mine]          # coordinates that may have limits: in v and in q
        self.lower, self.upper = (x[self.screws] if limits else np.full(mine.sum(), end)
                                  for x, end in ((model.lower, -np.inf), (model.upper, np.inf)))

    def residual(self, q) -> np.ndarray:
        return constraint_residual(self.model, q, drive=self.drive)

    def at(self, q, steps: int = 0) -> _Found:
        r = self.residual(q)
        scaled = self.weight * r
        closed = bool((np.abs(scaled) <= np.maximum(self.tolerance, self.weight * self._rounding(q))).all())
        return _Found(q, float(np.linalg.norm(scaled)), float(np.abs(r).max()), closed, steps)

    def _rounding(self, q) -> np.ndarray:
        """(m,) what rounding of the positions in q makes of a residual [m]; 0 of angles."""
        far = np.abs(q[self.positions]).max(initial=0.0)
        return np.where(self.distances, _ROUNDING * far, 0.0)

    def within(self, q) -> np.ndarray:
        """q with its coordinates brought back to their limits."""
        q = q.copy()
        q[self.place] = np.clip(q[self.place], self.lower, self.upper)
        return q

    def distance(self, q, other) -> float:
        return float(np.linalg.norm(difference(self.model, q, other) / self.unit))

    def at_limits(self, q) -> tuple[str, ...]:
        low, high = self._at(q)
        return tuple(self.model.v_names[k] for k in np.flatnonzero(low | high))

    def _at(self, q) -> tuple[np.ndarray, np.ndarray]:
        """Masks (nv,) of the coordinates at their lower and at their upper limit, but for rounding of what closes the loops."""
        low, high = np.zeros((2, self.model.nv), dtype=bool)
        slack = _NEAREST * self.unit[self.screws]
        low[self.screws], high[self.screws] = q[self.place] <= self.lower + slack, q[self.place] >= self.upper - slack
        return low, high

    def find(self, guess, seed: int = 0) -> tuple[_Found, int, int]:
        """The closed configuration nearest to the guess, and how many steps and starts besides the guess the first one took.

        Raises ComputationError where none is found.
        """
        rng, starts = np.random.default_rng(seed), 0
        first = self.close(self.within(guess))
        best, steps = first, first.steps
        while not best.closed and starts < _STARTS:
            found = self.close(self._around(guess, 0.3 * 1.1**starts, rng))
            starts, steps = starts + 1, steps + found.steps
            best = found if found.closed or found.size < best.size else best
        if not best.closed:
            raise self.refusal(best, starts)
        best = self.nearest(self.unwound(best, guess), guess)
        for _ in range(_BRANCHES if self.distance(best.q, guess) > FAR else 0):
            spread = self.distance(best.q, guess) / np.sqrt(self.movable.sum())
            found = self.close(self._around(guess, spread, rng))
            found = self.nearest(self.unwound(found, guess), guess) if found.closed else found
            if found.closed and self.distance(found.q, guess) < (1 - _SAME) * self.distance(best.q, guess):
                best = found
        return best, steps, starts

    def _around(self, q, spread: float, rng) -> np.ndarray:
        x = spread * self.unit * rng.standard_normal(self.model.nv)
        return self.within(integrate(self.model, q, np.where(self.movable, x, 0.0)))

    # steps --------------------------------------------------------------------------------------------------------

    def units(self, size: float) -> np.ndarray:
        """(nv,) units of movement where the scaled residual is so large: one that is longer than the loop is closed by lengths,
        which have no bound as angles do."""
        return self.unit * np.where(self.lengths, max(1.0, size), 1.0)

    def slope(self, q, unit) -> np.ndarray:
        """Derivative (m, nv) of the residual, scaled, by central differences: A is that where the residual vanishes only, and
        without the rows by which rolling does not slip. unit: as of `units`."""
        steps = _DIFFERENCE * np.diag(unit)[self.movable]
        r = self.residual(integrate(self.model, q, np.concatenate([steps, -steps])))
        J = np.zeros((len(self.weight), self.model.nv))
        J[:, self.movable] = self.weight[:, None] * (r[:len(steps)] - r[len(steps):]).T / (2 * _DIFFERENCE)
        return J

    def close(self, q) -> _Found:
        """Damped steps from q while the residual falls, to rounding where it vanishes."""
        now, weight, steps = self.at(q), _DAMPING, 0
        while steps < _STEPS and now.size > 0:
            steps += 1
            unit = self.units(now.size)
            J, r, after = self.slope(now.q, unit), self.weight * self.residual(now.q), None
            while weight < _HEAVIEST:
                after = self.at(self.moved(now.q, self.step(now.q, J, r, weight * now.size, unit), unit))
                if after.size < now.size * (1 - _GAIN):
                    break
                weight, after = 10 * max(weight, _LIGHTEST), None
                if now.closed:                             # at rounding
                    break
            if after is None or (now.closed and after.size > 0.5 * now.size):
                break
            now, weight = after, 0.1 * weight
        return _Found(now.q, now.size, now.worst, now.closed, steps)

    def moved(self, q, x, unit) -> np.ndarray:
        return self.within(integrate(self.model, q, unit * x))

    def step(self, q, J, r, damping: float, unit) -> np.ndarray:
        """Scaled step that takes J x + r down, of those that stay within the limits: what would pass one stops there, and the
        others make up for it."""
        low, high = self._at(q)
        down = -J.T @ r
        stopped = ~self.movable | (low & (down < 0)) | (high & (down > 0))
        x, least, most = np.zeros(self.model.nv), np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        least[self.screws], most[self.screws] = self.lower - q[self.place], self.upper - q[self.place]
        while not stopped.all():
            x[~stopped] = _damped(J[:, ~stopped], r + J[:, stopped] @ x[stopped], damping)
            inside = np.clip(x, least / unit, most / unit)
            beyond = ~stopped & (x != inside)
            if not beyond.any():
                break
            x[beyond], stopped = inside[beyond], stopped | beyond
        longest = np.abs(x).max(initial=0.0)
        return x * min(1.0, _LONGEST / longest) if longest else x

    def unwound(self, now: _Found, guess) -> _Found:
        """Without the whole turns from the guess that joints have made and the constraints do not notice."""
        for k, i, low, high in zip(self.screws, self.place, self.lower, self.upper, strict=True):
            turns = np.round((now.q[i] - guess[i]) / (2 * np.pi))
            if turns and self.model.v_units[k] == "rad":
                q = now.q.copy()
                q[i] -= 2 * np.pi * turns
                after = self.at(q)
                if after.closed and low <= q[i] <= high:
                    now = after
        return now

    def nearest(self, now: _Found, guess) -> _Found:
        """Along the closed configurations towards the guess, while that comes nearer."""
        for _ in range(_NEARER):
            d = self.towards(now.q, guess)
            low, high = self._at(now.q)
            free = self.movable & ~(low & (d < 0)) & ~(high & (d > 0))
            _, s, Vt = np.linalg.svd(self.slope(now.q, self.unit)[:, free], full_matrices=False)
            across, along = Vt[:len(s)][significant(s)], np.zeros(len(d))
            along[free] = d[free] - across.T @ (across @ d[free])
            after = self._shorter(now, along, guess) if np.linalg.norm(along) > _NEAREST else None
            if after is None:
                break
            now = after
        return now

    def towards(self, q, guess) -> np.ndarray:
        """(nv,) scaled direction in which the way to the guess shortens most: minus the gradient of half its square."""
        steps = _DIFFERENCE * np.diag(self.unit)
        ways = difference(self.model, integrate(self.model, q, np.concatenate([steps, -steps])), guess) / self.unit
        slope = (ways[:len(steps)] - ways[len(steps):]) / (2 * _DIFFERENCE)
        return -slope @ (difference(self.model, q, guess) / self.unit)

    def _shorter(self, now: _Found, along, guess) -> _Found | None:
        before = self.distance(now.q, guess)
        for k in range(10):
            after = self.close(self.moved(now.q, 0.5**k * along, self.unit))
            gain = before - self.distance(after.q, guess)
            if after.closed and gain > 0.1 * 0.5**k * (along @ along) / max(before, 1e-300):
                return after
        return None

    # why not ------------------------------------------------------------------------------------------------------

    def refusal(self, best: _Found, restarts: int) -> ComputationError:
        """Names the constraint that is open most, and what holds it."""
        model, r = self.model, self.residual(best.q)
        worst = max(model.constraints, key=lambda one: np.linalg.norm((self.weight * r)[one.rows]))
        units = np.array(worst.units)
        sizes = {unit: np.linalg.norm(r[worst.rows][units == unit]) for unit in ("m", "rad")}
        parts = [f"{size:.3g} {unit}" for unit, size in sizes.items() if size > self.tolerance]
        what = "coupling" if worst.type == "coupling" else f"{worst.type} loop"
        text = f'{what} "{worst.name}" cannot be closed: its smallest residual in {restarts + 1} starts is {" and ".join(parts)}'
        names = self.at_limits(best.q)
        if names:
            text += f", with {', '.join(names[:4])}{', …' if len(names) > 4 else ''} at a limit"
        kept = [name for name, free in zip(model.v_names, self.movable, strict=True) if not free]
        hints = [f"{', '.join(kept[:4])} {'is' if len(kept) == 1 else 'are'} kept fixed: release"] if kept else []
        if worst.driven:
            hints.append("it is driven: give its position")
        tilt = self._tilt(worst, best)
        if tilt:
            return ComputationError(
                f"{text}. The axes of this loop are not parallel: they are off by {tilt:.2g} rad, and the loop is "
                "overconstrained. Give angles with all digits (pi/2 is 1.5707963267948966), or make one joint of the loop "
                "a ball joint and another one cylindrical")
        return ComputationError(f"{text} ({', '.join([*hints, 'check lengths and frames, or give another guess'])})")

    def _tilt(self, one, best: _Found) -> float:
        """Angle [rad] by which the axes of a planar loop are off; 0 where something else leaves it open."""
        if one.driven or one.kind not in (WELD, REVOLUTE, PRISMATIC, CYLINDRICAL, PLANAR):
            return 0.0
        r = dict(zip(one.labels, self.residual(best.q)[one.rows], strict=True))
        w, p = (np.array([r.get(f"{kind}{axis}", 0.0) for axis in "xyz"]) for kind in "wv")
        turning = [k for k, axis in enumerate("xyz") if f"w{axis}" in r]
        J = constraint_jacobian(self.model, best.q, drive=self.drive)[one.rows][:len(turning), self.turns]
        axes = np.zeros((3, J.shape[1]))                                # of the joints, in frame B
        axes[turning] = J
        normal = np.linalg.svd(axes, full_matrices=False)[0][:, 0] if len(turning) == 3 else np.array([0.0, 0.0, 1.0])
        across = np.linalg.norm(w - (w @ normal) * normal)
        within = np.hypot(w @ normal, np.linalg.norm(p - (p @ normal) * normal) / one.length)
        tilt = max(np.linalg.norm(axes - np.outer(normal, normal @ axes), axis=0).max(initial=0.0), across)
        alone = within < max(self.tolerance, _ACROSS * tilt) and best.size < _LEFT * tilt
        return float(tilt) if self.tolerance < across and tilt < _TILT and alone else 0.0


def _damped(J, r, damping: float) -> np.ndarray:
    """The x of least |J x + r|^2 + damping |x|^2; of least length where it is not unique."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > _SMALLEST * max(1.0, s.max(initial=0.0))
    return -Vt[kept].T @ (s[kept] / (s[kept]**2 + damping) * (U[:, kept].T @ r))
