"""Robots with loops in independent coordinates, along motions: dependent coordinates from them, and projected forces.

With velocities ``v = N v_i`` of the independent coordinates, ``N' (M a + b - tau) = 0`` contains no constraint forces.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.constraints.assembly import assemble
from liedyn.dynamics.constraints.constraints import constraint_bias, constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ConfigurationError
from liedyn.model.model import Model

_RANK = 1e-7          # of the largest singular value of the constraint equations: a smaller one is of a redundant equation
_STEPS = 20           # of Newton's method
_CLOSED = 1e-12       # step relative to the size of a coordinate: the loops are closed
_LARGEST_STEP = 1.0   # of the same
_SINGULAR = 1e-4      # of the largest singular value of dependent coordinates: they are not determined
_WALK = 0.7           # size of a step of the random walk through configurations
_MAX_TRIES = 20           # of that step


@dataclass(frozen=True, eq=False)
class LoopReduction:
    """Independent coordinates of a robot with loops.

    model        the robot
    independent  (nv,) bool
    rank         number of independent constraint equations
    """

    model: Model
    independent: Mask
    rank: int

    def closed(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return q (n, nq), v and a (n, nv) whose dependent coordinates satisfy the constraints.

        Raises ConfigurationError where the positions are too far from a configuration with closed loops.
        """
        q = self.closed_positions(q)
        inverse, A = self._inverse(q)
        v = self._with_dependent(v, -_product(inverse, _product(A, v * self.independent)))
        gamma = constraint_bias(self.model, q, v)
        return q, v, self._with_dependent(a, -_product(inverse, _product(A, a * self.independent) + gamma))

    def closed_positions(self, q: Array) -> Array:
        """Return configurations (n, nq) with closed loops and the same independent coordinates."""
        sizes = coordinate_scales(self.model)[~self.independent]
        for _ in range(_STEPS):
            step = -_product(self._inverse(q)[0], constraint_residual(self.model, q))
            largest = float((np.abs(step) / sizes).max(initial=0.0))
            if not largest < _LARGEST_STEP:
                break
            q = integrate(self.model, q, self._with_dependent(np.zeros((len(q), self.model.nv)), step))
            if largest < _CLOSED:
                return q
        raise ConfigurationError(f"the loops of {self.model.name} cannot be closed near these positions")

    def projection(self, q: Array) -> Array:
        """Return N (n, nv, nv): velocities of all coordinates from those of the independent ones; other columns are zero."""
        inverse, A = self._inverse(q)
        N = np.zeros((len(q), self.model.nv, self.model.nv))
        N[:, self.independent, self.independent] = 1.0
        N[np.ix_(np.arange(len(q)), np.flatnonzero(~self.independent), np.flatnonzero(self.independent))] = \
            -inverse @ A[:, :, self.independent]
        return N

    def _inverse(self, q: Array) -> tuple[Array, Array]:
        """Return the pseudoinverses (n, dependent, m) of the columns of dependent coordinates, and all columns (n, m, nv)."""
        A = constraint_jacobian(self.model, q)
        U, s, Vt = np.linalg.svd(A[:, :, ~self.independent], full_matrices=False)
        U, s, Vt = U[:, :, :self.rank], s[:, :self.rank], Vt[:, :self.rank]
        if (s[:, -1] < _SINGULAR * s[:, 0]).any():
            raise ConfigurationError(f"the robot {self.model.name} passes a singular configuration, in which "
                                     "the independent coordinates do not determine the others")
        return np.swapaxes(Vt, 1, 2) / s[:, None] @ np.swapaxes(U, 1, 2), A

    def _with_dependent(self, x: Array, values: Array) -> Array:
        x = x.copy()
        x[:, ~self.independent] = values
        return x

    def random_states(self, rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
        """Return q (n, nq), v and a (n, nv) of a random walk through configurations on one branch.

        Velocities and accelerations have characteristic sizes.
        """
        q, reach = np.empty((n, self.model.nq)), coordinate_scales(self.model)
        current = assemble(self.model).q[None]
        for k in range(n):
            for _ in range(_MAX_TRIES):
                step = _WALK * reach * rng.standard_normal((1, self.model.nv)) * self.independent
                try:
                    N = self.projection(current)
                    current = self.closed_positions(integrate(self.model, current, _product(N, step)))
                    break
                except ConfigurationError:
                    continue
            q[k] = current[0]
        time = model_scales(self.model).time
        v, a = rng.standard_normal((2, n, self.model.nv)) * reach / np.array([time, time**2])[:, None, None]
        return self.closed(q, v, a)


def independent_motion(model: Model, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Return q (n, nq), v and a (n, nv) whose followers and dependent coordinates obey couplings and loops.

    Raises ConfigurationError where the positions are too far from closed loops.
    """
    if not model.nc:
        return q, v, a
    if model.has_only_linear_couplings:
        q, v, a = follow_couplings(model, q, v, a)
        return q, v, a
    return loop_reduction(model).closed(q, v, a)


def projection_at(model: Model, q: Array) -> Array:
    """Return N (nv, nv) or (n, nv, nv): velocities of all coordinates from those of the independent ones, at q (n, nq).

    Forces N' tau act on the independent coordinates. Columns of others are zero.
    """
    if not model.nc:
        return np.eye(model.nv)
    return model.elimination().projection if model.has_only_linear_couplings else loop_reduction(model).projection(q)


def projected(N: Array, x: Array) -> Array:
    """Return the forces N' x of the independent coordinates, for forces x (n, nv) or regressors (n, nv, P)."""
    transposed = np.swapaxes(N, -1, -2)
    return transposed @ x if x.ndim == 3 else (transposed @ x[:, :, None])[:, :, 0]


def loop_reduction(model: Model) -> LoopReduction:
    """Return the independent coordinates of a robot with loops: those of its motors, if they determine all others."""
    return model.cached(_LoopReductionKey(), lambda: _chosen(model))


@dataclass(frozen=True)
class _LoopReductionKey:
    """Key of the reduction of a model."""


def _chosen(model: Model) -> LoopReduction:
    from scipy.linalg import qr
    A = constraint_jacobian(model, assemble(model).q) * coordinate_scales(model)
    s = np.linalg.svd(A, compute_uv=False)
    rank = int(np.count_nonzero(s > _RANK * s.max(initial=0.0)))
    motors = np.zeros(model.nv, dtype=bool)
    for joint in model.joints:
        motors[joint.v] = joint.name in model.actuated
    if np.count_nonzero(motors) == model.nv - rank and _determined(A[:, ~motors], rank):
        return LoopReduction(model, motors, rank)
    _, _, pivots = qr(A * np.where(motors, 0.1, 1.0), pivoting=True, mode="economic")      # dependent first, motors last
    independent = np.ones(model.nv, dtype=bool)
    independent[pivots[:rank]] = False
    return LoopReduction(model, independent, rank)


def _determined(A: Array, rank: int) -> bool:
    """Return whether the constraints determine coordinates with these columns (m, n)."""
    s = np.linalg.svd(A, compute_uv=False)
    return len(s) >= rank and bool(s[rank - 1] > _SINGULAR * s[0])


def _product(A: Array, x: Array) -> Array:
    """Return A (n, k, m) times x (n, m)."""
    product: Array = np.einsum("nkm,nm->nk", A, x)
    return product
