"""Search for the series of joints that maximize the information on parameters, within limits.

Coefficients maximize log det of the information on the base parameters (D-optimal) or minimize its condition number, by an
interior-point method from several starts.

The gradient is exact. With F the rows of the regressor divided by the noise, log det F^T F has the derivative 2 F (F^T F)^-1
with respect to F. The sum of its products with dF is a sum of inverse dynamics, each row of weights being a set of inertial
parameters. `contracted_derivatives` differentiates that sum with respect to q, v and a in one sweep, which costs as much as the
regressor itself (36 us for 100 states of a UR5). Derivatives of Y along each coordinate would cost 18 regressors.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from liedyn.analysis.clearance import Clearance
from liedyn.analysis.excitation_series import SERIES, Basis, Series
from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.batching.processes import Map
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.derivatives import inverse_dynamics_derivatives
from liedyn.dynamics.dynamics import inverse_dynamics, mass_matrix
from liedyn.dynamics.inertial_parameters import BaseParameters, contracted_derivatives, inertial_regressor
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, UsageError, list_names
from liedyn.model.model import Model

CRITERIA = "d-optimal", "condition"
KINDS = "position", "velocity", "acceleration", "torque"
_SAMPLES = 20             # of the shortest harmonic, at which the information is summed, and limits are compared
_FINE = 50                # the same for limits of the best motions: they reach 99.8 % of a limit
_CHECKED = 200            # the same for the final check
_BEST = 6                 # motions whose limits are compared at more times
_STARTS_PER_CHANGE = 2    # random starts for each optimum that is changed at random and optimized again
_CHANGED = 3              # best optima that are changed
_CHANGE = 0.1             # of the sizes of coefficients. Changes of 0.3 rarely lead to better optima
_START = 0.7              # of the limits of q, v and a: size of random motions
_INSIDE = 0.95            # of a limit: largest value of a random motion
_INSIDE_BOUND = 0.999     # of a bound: a motion that starts an optimization
_REDUCTIONS = 6           # of a random motion whose torques exceed their limits
_SWEEPS = 20              # of Gibbs sampling, for a random posture of a robot with couplings
_ROOM = 1e-6              # of a range: couplings that leave less do not allow a motion
_MAX_POSTURES = 1000      # random ones for a start
_MAX_DRAWS = 100          # random motions about them
_BARRIER = 1.0, 1e-3      # initial and final weight of the logarithms of distances from limits
_MEDIUM_BARRIER = 0.3, 1e-3  # the same from a changed optimum
_LOW_BARRIER = 1e-2, 1e-4  # the same from a motion that is an optimum already
_BARRIER_FACTOR = 0.85    # of the weight in each iteration. With 0.5, more motions end in worse optima
_TRUST = 100.0            # factor by which a multiplier may differ from that of its distance
_TO_BOUND = 0.95          # of the way to a limit: longest step
_HALVINGS = 12            # of a step
_DECREASE = 1e-4          # of the expected one: a step that decreases the merit less is halved
_ITERATIONS = 150         # of the interior-point method
_PRECISION = 1e-3         # of the criterion: the method ends where it changes less
_TINY = 1e-300
_SINGULAR = 1e-12         # of the largest singular value: the information is singular below
_RANK = 1e-8              # of the largest singular value, and of a direction: smaller ones are rounding
WHOLE = 1e-9             # of a number of periods: rounding


class LimitUse(NamedTuple):
    """The peak of a coordinate relative to one of its limits, or the minimum distance of links.

    coordinate  its name; of a distance "upper_arm and wrist", or "wrist and z > 0.05 m"
    kind        "position", "velocity", "acceleration", "torque" or "distance"
    peak        of the motion, signed [rad | m], [rad/s | m/s], [rad/s^2 | m/s^2], [N m | N]; the minimum distance of links, or
                the position of a link that is nearest to a plane [m]
    limit       on that side
    used        part of the limit that the motion uses: 1 at the limit. Positions are relative to the middle of their range.
                Distances d from a limit have 1/(1 + d/s), s being 20 % of the characteristic length
    """

    coordinate: str
    kind: str
    peak: float
    limit: float
    used: float


@dataclass(frozen=True)
class Settings:
    """Checked options of `excite`."""

    duration: float
    period: float
    harmonics: int
    kind: str
    rate: float
    criterion: str
    starts: int
    seed: int


class ExcitationLimits(NamedTuple):
    """Limits (nv,) of each coordinate; infinite where it has none."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    torque: Array


# Criteria: functions of F (n, b), the rows of the regressor divided by their noise ---------------------------------------

def information(F: Array, chosen: Mask) -> tuple[float, Array]:
    """Return -log det of the information of the chosen columns, all being estimated, and its derivative with respect to F.

    With the others first, F = Q R and the block of R of the chosen columns is that of the inverse of their covariance.
    """
    order = np.argsort(chosen, kind="stable")
    n_other = len(chosen) - np.count_nonzero(chosen)
    R = np.asarray(np.linalg.qr(F[:, order], mode="r"))
    diagonal = np.abs(np.diag(R))
    if not diagonal.min() > _SINGULAR * diagonal.max():
        return np.inf, np.zeros_like(F)
    gradient = np.empty_like(F)
    gradient[:, order] = -2.0 * _times_inverse(F[:, order], R)
    if n_other:
        gradient[:, order[:n_other]] += 2.0 * _times_inverse(F[:, order[:n_other]], R[:n_other, :n_other])
    return -2.0 * float(np.log(diagonal[n_other:]).sum()), gradient


def _times_inverse(F: Array, R: Array) -> Array:
    """Return F (R^T R)^-1."""
    from scipy.linalg import cho_solve
    product: Array = cho_solve((R, False), F.T, check_finite=False).T
    return product


def _condition(F: Array, _chosen: Mask) -> tuple[float, Array]:
    """Return the logarithm of the condition number of F with columns of unit norm, and its derivative with respect to F."""
    norms = np.linalg.norm(F, axis=0)
    Z = F / norms
    s2, V = np.linalg.eigh(Z.T @ Z)
    if not s2[0] > _SINGULAR * s2[-1]:
        return np.inf, np.zeros_like(F)
    gradient = np.zeros_like(F)
    for sign, k in ((1.0, -1), (-1.0, 0)):                     # dlog s = (u v_k - Z_k s v_k^2) / s for column k of Z
        v = V[:, k]
        gradient += sign * (np.outer(Z @ v / s2[k], v) - Z * v**2)
    return 0.5 * float(np.log(s2[-1] / s2[0])), gradient / norms


# Steps of the optimization ----------------------------------------------------------------------------------------------

def _bound(count: float) -> float:
    """Return the part of a limit that a series may reach at `count` equidistant times of its shortest harmonic.

    A trigonometric polynomial of degree H is at most 1/cos(pi H/n) larger than at n equidistant times (Ehlich and Zeller 1964).
    So positions, velocities and accelerations of Fourier series are within their limits at all times.
    """
    return float(np.cos(np.pi / count))


def _still(x: Array) -> Array:
    """Return the coefficients of the mean positions alone."""
    still = np.zeros_like(x)
    still[0] = x[0]
    return still


def _solve(A: Array, y: Array) -> Array:
    """Return A^-1 y of a positive definite matrix."""
    from scipy.linalg import cho_factor, cho_solve
    return np.asarray(cho_solve(cho_factor(A, check_finite=False), y, check_finite=False))


def _bfgs(H: Array, step: Array, change: Array) -> Array:
    """Return the damped BFGS update of H, positive definite, for the change of the gradient along a step."""
    Hs = H @ step
    along, product = float(step @ Hs), float(step @ change)
    damping = 1.0 if product >= 0.2 * along else 0.8 * along / (along - product)
    y = damping * change + (1.0 - damping) * Hs
    return np.asarray(H - np.outer(Hs, Hs) / along + np.outer(y, y) / float(step @ y))


@dataclass(frozen=True, eq=False)
class Experiment:
    """A robot, what is measured, and what the motion should determine.

    chosen     (b,) bool: parameters of the criterion
    clearance  distances with a limit
    start      (nv,) initial positions; None: those of the optimum
    """

    model: Model
    base: BaseParameters
    columns: tuple[str, ...]
    noise: Array
    limits: ExcitationLimits
    settings: Settings
    chosen: Mask
    clearance: Clearance | None = None
    start: Array | None = None

    @cached_property
    def series(self) -> Series:
        """Series of each independent coordinate."""
        return SERIES[self.settings.kind](self.settings.period, self.settings.harmonics, self.start is not None)

    @cached_property
    def independent(self) -> Integers:
        """Coordinates that do not follow others."""
        return np.flatnonzero(~self.model.follows) if self.model.nc else np.arange(self.model.nv)

    @cached_property
    def N(self) -> Array:
        """(nv, independent): rates of all coordinates from those of the independent ones."""
        N: Array = self.model.elimination().projection if self.model.nc else np.eye(self.model.nv)
        return N[:, self.independent]

    @cached_property
    def constant(self) -> Array:
        """(nv,) positions where the independent coordinates are zero."""
        return follow_couplings(self.model, np.zeros(self.model.nv))[0]

    @cached_property
    def middle(self) -> Array:
        """(4, nv) middle of the range of q, v, a and the torque."""
        middle = np.zeros((4, self.model.nv))
        bounded = np.isfinite(self.limits.upper)
        middle[0, bounded] = 0.5 * (self.limits.lower[bounded] + self.limits.upper[bounded])
        return middle

    @cached_property
    def half(self) -> Array:
        """(4, nv) half of the range; infinite without limit, and for torques of followers."""
        half = np.array([0.5 * (self.limits.upper - self.limits.lower), *self.limits[2:]])
        half[3, ~np.isin(np.arange(self.model.nv), self.independent)] = np.inf
        return half

    @cached_property
    def samples(self) -> Basis:
        """The series where the information is summed, and limits are compared."""
        return self.series.basis(_SAMPLES * self.settings.harmonics)

    @cached_property
    def fine(self) -> Basis:
        """The series where limits of the best motions are compared."""
        return self.series.basis(_FINE * self.settings.harmonics)

    @cached_property
    def checked(self) -> Basis:
        """The series where limits are checked in the end."""
        return self.series.basis(_CHECKED * self.settings.harmonics)

    # The motion and its information

    def motion(self, x: Array, basis: Basis) -> tuple[Array, Array, Array]:
        """Return q, v and a (n, nv) of coefficients x (size, independent)."""
        q, v, a = (functions @ x @ self.N.T for functions in basis)
        return q + self.constant, v, a

    def equations(self, motion: tuple[Array, Array, Array]) -> Array:
        """Return F (n, independent, b): rows of the regressor divided by their noise, of parameters in characteristic units."""
        Y = inertial_regressor(self.model, *motion, True, self.columns)[:, :, self.base.columns]
        return (self.N.T @ Y if self.model.nc else Y) * self._weights

    @cached_property
    def _weights(self) -> Array:
        """(independent, b) sizes of the parameters divided by the noise."""
        weights: Array = self.base.sizes[self.base.columns] / self.noise[self.independent][:, None]
        return weights

    def criterion(self, x: Array) -> tuple[float, Array]:
        """Return the criterion of coefficients x (size, independent), to be minimized, and its gradient."""
        motion, model = self.motion(x, self.samples), self.model
        F = self.equations(motion)
        n, rows, b = F.shape
        function = information if self.settings.criterion == CRITERIA[0] else _condition
        value, of_F = function(F.reshape(-1, b) / np.sqrt(n), self.chosen)
        of_Y = of_F.reshape(n, rows, b) * (self._weights / np.sqrt(n))
        weights = np.zeros((n, model.nv, len(self.base.parameters.names)))
        weights[:, :, self.base.columns] = self.N @ of_Y if model.nc else of_Y
        parts = contracted_derivatives(model, *motion, weights, True, self.columns)
        gradient = sum(functions.T @ (part @ self.N) for functions, part in zip(self.samples, parts, strict=True))
        return value, np.asarray(gradient)

    # Limits

    def relative(self, x: Array, basis: Basis) -> Array:
        """Return q, v, a and torques (4, n, nv) relative to their limits: 1 and -1 at them, 0 in the middle or without limit."""
        motion = self.motion(x, basis)
        values = np.stack([*motion, inverse_dynamics(self.model, *motion)])
        return np.asarray((values - self.middle[:, None]) / self.half[:, None])

    def nearness(self, x: Array, basis: Basis) -> Array:
        """Return how near links are to limits of their distances (n, gaps): 1 at them, 0 at a distance from them."""
        if self.clearance is None:
            return np.zeros((len(basis.q), 0))
        return 1.0 - self.clearance.smooth(self.motion(x, basis)[0]) / self.clearance.scale

    def use(self, x: Array, basis: Basis) -> float:
        """Return the part of the limits that a motion uses: at most 1 within them."""
        return float(max(np.abs(self.relative(x, basis)).max(initial=0.0), self.nearness(x, basis).max(initial=0.0)))

    def relative_torque_derivatives(self, x: Array, basis: Basis) -> Array:
        """Return the derivatives (n, independent, size, independent) of relative torques with respect to the coefficients."""
        parts = inverse_dynamics_derivatives(self.model, *self.motion(x, basis))
        k = self.independent
        product = sum(functions[:, None, :, None] * part[:, k][:, :, k][:, :, None, :]
                      for functions, part in zip(basis, parts, strict=True))
        return np.asarray(product / self.half[3, k][:, None, None])

    def nearness_derivatives(self, x: Array, basis: Basis) -> Array:
        """Return the derivatives (n, gaps, size, independent) of `nearness` with respect to the coefficients."""
        if self.clearance is None:
            return np.zeros((len(basis.q), 0, *x.shape))
        of_q = self.clearance.smooth_derivatives(self.motion(x, basis)[0]) @ self.N / -self.clearance.scale
        return np.asarray(basis.q[:, None, :, None] * of_q[:, :, None, :])

    @cached_property
    def limited(self) -> Mask:
        """(4, 1, nv) bool: quantities with a limit."""
        return np.isfinite(self.half)[:, None]

    # Search

    def check_determined(self) -> None:
        """Raise UsageError if the torques that are measured do not determine all base parameters, whatever the motion."""
        if np.isfinite(self.noise[self.independent]).all():
            return
        rng, n = np.random.default_rng(0), 3 * len(self.base)
        scales, size = model_scales(self.model), (n, len(self.independent))
        y = rng.uniform(-np.pi, np.pi, size) * scales.unit_scales(self.model.v_units)[self.independent]
        v, a = rng.standard_normal((2, *size)) / np.array([scales.time, scales.time**2])[:, None, None]
        F = self.equations((y @ self.N.T + self.constant, v @ self.N.T, a @ self.N.T)).reshape(-1, len(self.base))
        norms = np.linalg.norm(F, axis=0)
        _, s, Vt = np.linalg.svd(F / np.where(norms > 0.0, norms, 1.0), full_matrices=False)
        blind = np.abs(Vt[s <= _RANK * s[0]]).max(axis=0, initial=0.0) > _RANK
        if blind.any():
            names = [name for name, x in zip(self.base.names, blind, strict=True) if x]
            raise UsageError(f"the measured torques do not determine {len(names)} base parameters: {list_names(names, 6)}; "
                             "give the finite noise of more joints")

    def search(self, each: Map) -> tuple[Array, Array]:
        """Return the best coefficients, and the criterion of each optimum before refinement, best first.

        each   computes independent optima. Each has its own random numbers, so that results do not depend on their order.
        """
        s = self.settings
        seeds = np.random.SeedSequence(s.seed).spawn(s.starts + s.starts // _STARTS_PER_CHANGE)
        informing = replace(self, settings=replace(s, criterion=CRITERIA[0]), chosen=np.ones_like(self.chosen))
        optima = each(informing.random_optimum, seeds[:s.starts])
        barrier = _MEDIUM_BARRIER
        if s.criterion != informing.settings.criterion or not self.chosen.all():       # random starts end in worse ones
            optima.sort(key=informing.value)
            barrier = _LOW_BARRIER
            optima = each(self.near_optimum, optima[:s.starts // 2 + 1])
        optima.sort(key=self.value)
        best = optima[:_CHANGED]
        changed = [(best[k % len(best)], seed, barrier) for k, seed in enumerate(seeds[s.starts:])]         # in turn
        optima += [x for x in each(self.changed_optimum, changed) if x is not None]
        optima.sort(key=self.value)
        inside = self.all_within(_INSIDE_BOUND * _bound(_FINE), optima[:_BEST], self.fine)
        refined = [*inside, *each(self.refined_optimum, inside)]
        final = min(self.all_within(_bound(_CHECKED), refined, self.checked), key=self.value)    # torques between times of `fine`
        if not np.isfinite(self.value(final)):
            raise ComputationError(f"no motion within the limits excites all {len(self.base)} base parameters; use wider limits, "
                                   "or more harmonics")
        return final, np.array([self.value(x) for x in optima])

    def random_optimum(self, seed: np.random.SeedSequence) -> Array:
        """Return the optimum from a random motion."""
        return self.optimum(self.random_motion(np.random.default_rng(seed)), self.samples, _BARRIER)

    def near_optimum(self, x: Array) -> Array:
        """Return the optimum from that of another criterion."""
        return self.optimum(x, self.samples, _LOW_BARRIER)

    def changed_optimum(self, start: tuple[Array, np.random.SeedSequence, tuple[float, float]]) -> Array | None:
        """Return the optimum from one that is changed at random, for a barrier; None if the changed posture exceeds limits."""
        x, seed, barrier = start
        changed = x + _CHANGE * self.unit * np.random.default_rng(seed).standard_normal(x.shape)
        smaller = self.within(_INSIDE * _bound(_SAMPLES), changed, self.samples)
        return None if smaller is None else self.optimum(smaller, self.samples, barrier)

    def refined_optimum(self, x: Array) -> Array:
        """Return the optimum from one with limits at fewer times."""
        return self.optimum(x, self.fine, _LOW_BARRIER)

    def all_within(self, bound: float, motions: Sequence[Array], basis: Basis) -> list[Array]:
        """Return the motions, made smaller until they are within limits. Raise ComputationError if none is."""
        smaller = [x for x in (self.within(bound, x, basis) for x in motions) if x is not None]
        if not smaller:
            raise ComputationError("no motion within the limits was found; use wider limits, or more starts")
        return smaller

    def value(self, x: Array) -> float:
        """Return the criterion of coefficients."""
        return self.criterion(x)[0]

    @cached_property
    def unit(self) -> Array:
        """Return the sizes (size, independent) of the coefficients that limits allow: of the position, then of velocities."""
        with np.errstate(divide="ignore"):
            half = (self.half[:, :, None] / np.abs(self.N)).min(axis=1)
        w = 0.5 * (self.series.frequency[0] + self.series.frequency[-1])
        inertia = np.diag(mass_matrix(self.model, self.center @ self.N.T + self.constant))[self.independent]
        of_torque = np.divide(half[3], inertia, out=np.full_like(inertia, np.inf), where=inertia > 0.0)
        velocity = np.min([w * half[0], half[1], half[2] / w, of_torque / w], axis=0)
        position = np.where(np.isfinite(half[0]), half[0], self.reach[self.independent])
        if self.start is not None:
            position = np.zeros_like(position)                               # which the steps do not change
        return np.vstack([position, np.tile(velocity, (self.series.size - 1, 1))])

    @cached_property
    def reach(self) -> Array:
        """(nv,) half of the range of random positions; infinite for followers without limit."""
        free = self.independent[np.isinf(self.half[0, self.independent])]
        reach: Array = self.half[0].copy()
        reach[free] = model_scales(self.model).unit_scales(self.model.v_units)[free]
        return reach

    @cached_property
    def center(self) -> Array:
        """(independent,) positions of which the coordinate that is nearest to a limit, in its range, is as far as possible.

        Without couplings, all are in the middle. Raise ComputationError if couplings contradict the limits.
        """
        if not self.model.nc:
            return np.asarray(self.middle[0, self.independent])
        from scipy.optimize import linprog
        rows = np.isfinite(self.reach)
        A, y = self.N[rows] / self.reach[rows, None], (self.middle[0] - self.constant)[rows] / self.reach[rows]
        ones = np.ones((len(y), 1))
        solution = linprog(np.eye(1, A.shape[1] + 1, A.shape[1])[0], np.block([[A, -ones], [-A, -ones]]), np.r_[y, -y],
                           bounds=(None, None))
        if solution.x[-1] >= 1.0 - _ROOM:
            excess = np.abs(A @ solution.x[:-1] - y)
            names = [self.model.v_names[k] for k in np.flatnonzero(rows)[excess >= 1.0 - _ROOM]]
            raise ComputationError(f"couplings leave no motion within the position limits of {list_names(names, 6)}; use wider "
                                   "limits")
        return np.asarray(solution.x[:-1])

    def random_position(self, rng: np.random.Generator) -> Array:
        """Return positions (independent,), uniform within the limits of all coordinates: Gibbs sampling from the center.

        Without couplings, coordinates do not depend on each other, and one sweep suffices.
        """
        y: Array = self.center.copy()
        for u in rng.uniform(-1.0, 1.0, (_SWEEPS if self.model.nc else 1, len(y))):
            for j, part in enumerate(u):
                moved = (self.N[:, j] != 0.0) & np.isfinite(self.reach)
                rate = self.N[moved, j] / self.reach[moved]
                r = (self.N[moved] @ y + (self.constant - self.middle[0])[moved]) / self.reach[moved]
                ends = np.sort([(-1.0 - r) / rate, (1.0 - r) / rate], axis=0)
                low, high = ends[0].max(), ends[1].min()
                y[j] += 0.5 * (low + high + part * (high - low))
        return y

    def random_motion(self, rng: np.random.Generator) -> Array:
        """Return coefficients of a motion within the limits. Raise ComputationError if random postures exceed them."""
        basis = self.samples
        for _ in range(_MAX_DRAWS):
            x = rng.standard_normal(self.unit.shape) * self.unit
            still = self.random_posture(rng)
            x[0] = still[0]
            at_rest, swing = self.relative(still, basis), self.relative(x, basis)
            room = _START * (1.0 - np.abs(at_rest).max(axis=1)) / np.maximum(np.abs(swing - at_rest).max(axis=1), _TINY)
            factor = np.array([room[:3, moved].min() for moved in (self.N != 0.0).T])
            for reduction in 0.7 ** np.arange(_REDUCTIONS):
                smaller: Array = still + reduction * np.minimum(factor, 1.0) * (x - still)
                if (factor > 0.0).all() and self.use(smaller, basis) < _INSIDE:
                    return smaller
        raise ComputationError("no random motion about a posture within the limits is within them; use wider limits")

    def random_posture(self, rng: np.random.Generator) -> Array:
        """Return coefficients of a posture within the limits. Raise ComputationError if random ones are not."""
        still, once = np.zeros_like(self.unit), self.series.basis(1)
        for _ in range(_MAX_POSTURES if self.start is None else 1):
            still[0] = self.random_position(rng) if self.start is None else self.start[self.independent]
            if self.use(still, once) < _INSIDE:
                return still
        at_rest, near = np.abs(self.relative(still, once)), self.nearness(still, once)[0]
        text = "no random posture is within the limits: of the last one, " if self.start is None else (
            f"the start of the motion is not within {100 * _INSIDE:g} % of the limits: ")
        if self.clearance is not None and near.max() > at_rest.max():
            gap = self.clearance.gaps[int(np.argmax(near))]
            raise ComputationError(f"{text}{gap.link} is nearer to {gap.other} than the limit; use wider limits, or smaller "
                                   "distances")
        kind, _, coordinate = np.unravel_index(np.argmax(at_rest), at_rest.shape)
        raise ComputationError(f"{text}the {KINDS[kind]} of {self.model.v_names[coordinate]} is {at_rest.max():.3g} times its "
                               "limit; use wider limits")

    def optimum(self, x: Array, basis: Basis, barrier: tuple[float, float]) -> Array:
        """Return a local optimum within limits, from coefficients x within limits: a primal-dual interior-point method.

        Nocedal and Wright, Numerical Optimization, 2006, ch. 19: the Hessian of the criterion by damped BFGS (18.23), that of
        limits from their first derivatives. All iterates are within limits. barrier: initial and final weight.

        SLSQP takes 2 to 10 times as long for the same criterion, and a fifth of its runs diverge.
        """
        (mu, end), unit = barrier, self.unit
        limited, n = self.limited, self.limited.size * len(basis.q)
        bound = _bound(len(basis.q) / self.settings.harmonics)

        def slacks(x: Array) -> Array:
            """Return the distances from the limits: upper and lower ones of q, v, a and torques, then those of links."""
            r = self.relative(x, basis)
            sides = np.where(limited, bound - np.stack([r, -r]), 1.0)
            return np.concatenate([sides.ravel(), (bound - self.nearness(x, basis)).ravel()])

        (value, gradient), c = self.criterion(x), slacks(x)
        if not np.isfinite(value):
            return x
        multipliers, hessian = mu / c, np.eye(unit.size) * max(float(np.linalg.norm(gradient * unit)), 1.0)
        linear = np.zeros(len(c), dtype=bool)                          # those of q, v and a: a step to them is exact
        linear[:2 * n].reshape(2, 4, -1)[:, :3] = True
        for _ in range(_ITERATIONS):
            multipliers = np.clip(multipliers, mu / c / _TRUST, mu / c * _TRUST)
            curvature, slope, change_of = self.limit_terms(x, basis, multipliers / c, mu / c)
            slope = slope + (gradient * unit).ravel()
            step = -_solve(hessian + curvature, slope)
            dc = -change_of(step)
            length = min(1.0, _TO_BOUND / max(float((-dc[linear] / c[linear]).max()), _TINY))
            merit, descent = value - mu * np.log(c).sum(), float(slope @ step)
            for _ in range(_HALVINGS):
                x_new = x + length * step.reshape(unit.shape) * unit
                c_new = slacks(x_new)
                if c_new.min() > 0.0:
                    value_new, gradient_new = self.criterion(x_new)
                    if value_new - mu * np.log(c_new).sum() <= merit + _DECREASE * length * descent:
                        break
                length *= 0.5
            else:
                break
            hessian = _bfgs(hessian, length * step, ((gradient_new - gradient) * unit).ravel())
            multipliers = multipliers + length * (mu / c - multipliers * (1.0 + dc / c))
            gain, x, value, gradient, c = value - value_new, x_new, value_new, gradient_new, c_new
            if mu <= end and abs(gain) < _PRECISION:
                break
            mu = max(end, mu * _BARRIER_FACTOR)
        return x

    def limit_terms(self, x: Array, basis: Basis, weights: Array, slopes: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        """Return J^T W J (size, size), J^T s and the product with J, of values relative to limits by the coefficients in units.

        weights, slopes   W and s of upper limits (4, n, nv), of lower limits, whose values are negative, and of distances
                          (n, gaps), in one array. Rows of q, v and a depend on the functions of the series only.
        """
        N, force, rates, unit = self.N, self.independent, self.half[:3, None], self.unit
        n = 4 * len(basis.q) * len(N)
        (upper, lower), near = weights[:2 * n].reshape(2, 4, -1, len(N)), weights[2 * n:]
        weight = np.where(self.limited, upper + lower, 0.0)
        (upper, lower), slope_near = slopes[:2 * n].reshape(2, 4, -1, len(N)), slopes[2 * n:]
        slope_of = np.where(self.limited, upper - lower, 0.0)
        J = np.concatenate([part.reshape(-1, unit.size) for part in (self.relative_torque_derivatives(x, basis) * unit,
                                                                     self.nearness_derivatives(x, basis) * unit)])
        blocks = sum(np.einsum("ta,tj,tb->jab", functions, w, functions, optimize=True)
                     for functions, w in zip(basis, weight[:3] / rates**2, strict=True))
        curvature = np.einsum("jab,ji,jl->aibl", blocks, N, N, optimize=True) * unit[:, :, None, None] * unit
        slope = sum(functions.T @ s @ N for functions, s in zip(basis, slope_of[:3] / rates, strict=True)) * unit
        row_weights, row_slopes = (np.append(part[3][:, force], other)
                                   for part, other in ((weight, near), (slope_of, slope_near)))
        curvature = curvature.reshape(unit.size, -1) + J.T @ (J * row_weights[:, None])

        def change_of(step: Array) -> Array:
            change, of_rows = np.zeros_like(weight), J @ step
            for k, functions in enumerate(basis):
                change[k] = functions @ (step.reshape(unit.shape) * unit) @ N.T / rates[k]
            torques = len(J) - len(near)
            change[3][:, force] = of_rows[:torques].reshape(len(basis.q), -1)
            return np.concatenate([change.ravel(), -change.ravel(), of_rows[torques:]])

        return curvature, slope.ravel() + J.T @ row_slopes, change_of

    def within(self, bound: float, x: Array, basis: Basis) -> Array | None:
        """Return the motion, made smaller until it uses less than a part `bound` of the limits at the times of `basis`.

        None if its mean posture does not.
        """
        still, factor, smaller = _still(x), 1.0, x
        if self.use(still, basis) >= bound:
            return None
        while (excess := self.use(smaller, basis) / bound - 1.0) >= 0.0:
            factor *= max(1.0 - 1.1 * excess - WHOLE, 0.5)
            smaller = still + factor * (x - still)
        return smaller

    def uses(self, x: Array) -> tuple[LimitUse, ...]:
        """Return the peaks of all coordinates relative to their limits."""
        r = self.relative(x, self.checked)
        out = []
        for kind, name in enumerate(KINDS):
            for j in np.flatnonzero(np.isfinite(self.half[kind])):
                peak = r[kind, np.argmax(np.abs(r[kind, :, j])), j]
                middle, half = self.middle[kind, j], self.half[kind, j]
                out.append(LimitUse(self.model.v_names[j], name, float(middle + peak * half),
                                    float(middle + np.copysign(half, peak)), float(abs(peak))))
        if self.clearance is not None:
            distances = self.clearance.nearest(self.motion(x, self.checked)[0]).min(axis=0)
            out += [LimitUse(f"{gap.link} and {gap.other}", "distance", gap.limit + gap.sign * float(d), gap.limit,
                             float(1.0 / (1.0 + d / self.clearance.scale)))
                    for gap, d in zip(self.clearance.gaps, distances, strict=True)]
        return tuple(out)
