"""Weighted least squares of forces that are linear in parameters, and what noise in the states does to the solution."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

# Equations are arrays W (n, nv, b + 1): n of each joint, columns of the b parameters and the right-hand side.

_UNSEEN = 1e-9        # of the largest column in characteristic units, or singular value: a smaller one is not excited at all
_BLIND = 1e-6         # of a parameter, squared: a smaller part in directions that are not excited is rounding
_EXACT = 1e-9         # of a parameter's characteristic unit: smaller possible errors do not count, whatever its deviation
_ROUNDED_DIRECTION = 1e-10           # of a direction that is not excited: a smaller component is rounding
_ABSENT = 1e-12       # of a parameter, squared: a smaller part in excited directions is rounding
_ROUNDS = 5           # of weights; the first has none
_NOTHING = 1e-3       # of a standard deviation: a smaller effect of noise is none
_MOST = 0.99          # largest part of the information in a direction that may be noise, so that its bias is known


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """Estimated parameters, and what is known about their errors.

    x           (b,) solution; zero in directions that are not excited
    root        (b, k): root root^T is the inverse of the normal equations
    noise       (nv,) of each joint's equations; their weights are its inverse
    blind       (b,) bool: parameters that are not excited, or only in combination with others
    mixed       (b,) bool: parameters that are excited only in combination with others; x is zero for other blind ones
    condition   of the weighted equations, their columns normalized
    sizes       (b,) characteristic units of the parameters
    """

    x: np.ndarray
    root: np.ndarray
    noise: np.ndarray
    blind: np.ndarray
    mixed: np.ndarray
    condition: float
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class StateNoiseEffect:
    """Errors of a solution that noise in the states causes.

    variance   (b,) of the solution
    bias       (b,) mean error of the solution
    share      (b,) part of the information about a parameter that is noise itself
    force      (nv,) root mean square of the forces that the noise causes
    """

    variance: np.ndarray
    bias: np.ndarray
    share: np.ndarray
    force: np.ndarray


def fit(W: np.ndarray, least: np.ndarray, sizes: np.ndarray) -> LeastSquaresSolution:
    """Solve the equations W (n, nv, b + 1), weighted by the noise of each joint, which the residual gives.

    least  (nv,) smallest noise of each joint's equations; the first weights
    sizes  (b,) characteristic units of the parameters
    """
    noise = least
    count = W.shape[0] * W.shape[1]
    freedom = np.sqrt(count / max(count - W.shape[2] + 1, 1))
    R = compressed(W)
    for _ in range(_ROUNDS):
        solution = solve(R, noise, sizes)
        left = np.linalg.norm(R @ np.r_[solution.x, -1.0], axis=1) / np.sqrt(len(W))
        noise = np.maximum(freedom * left, least)
    return solve(R, noise, sizes)


def compressed(W: np.ndarray) -> np.ndarray:
    """Return few equations (nv, k, b + 1) of each joint that have the same least-squares solution as its n equations (QR)."""
    return np.array([np.linalg.qr(W[:, k], mode="r") for k in range(W.shape[1])])


def solve(R: np.ndarray, noise: np.ndarray, sizes: np.ndarray) -> LeastSquaresSolution:
    """Solve compressed equations R (nv, k, b + 1), weighted by the noise (nv,) of each joint."""
    weighted = (R / noise[:, None, None]).reshape(-1, R.shape[2])
    A, y = weighted[:, :-1], weighted[:, -1]
    scale = np.linalg.norm(A, axis=0)
    seen = scale * sizes > _UNSEEN * (scale * sizes).max(initial=0.0)
    safe = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(np.where(seen, A / safe, 0.0), full_matrices=False)
    good = s > _UNSEEN * s[0]
    root = Vt[good].T / s[good] / safe[:, None]
    part = (Vt[good] ** 2).sum(axis=0)                                   # of a parameter in excited directions
    deviation = np.sqrt((root**2).sum(axis=1))
    blind = ~seen | (1.0 - part > _BLIND) | (_possible_change(Vt[~good][:, seen], (safe * sizes)[seen], seen)
                                             > np.maximum(deviation / sizes, _EXACT))
    mixed = blind & (part > _ABSENT)
    root[blind & ~mixed] = 0.0
    condition = float(s[0] / s[-1]) if good.all() and seen.all() else np.inf
    return LeastSquaresSolution(root @ (U[:, good].T @ y), root, noise, blind, mixed, condition, sizes)


def _possible_change(N: np.ndarray, scale: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return how far (b,) parameters may be wrong in directions that have no effect, where others are wrong by one
    characteristic unit.

    N      (k, n seen) directions without effect, of columns that are normalized
    scale  (n seen,) norms of the columns in characteristic units
    seen   (b,) bool: parameters with a column

    Changes that are rounding are zero.
    """
    out = np.zeros(len(seen))
    _, size, directions = np.linalg.svd(N, full_matrices=False)
    N = directions[size > 0.5]                                            # the others belong to columns without effect
    Q, _ = np.linalg.qr(N.T / scale[:, None])
    out[seen] = np.where(np.linalg.norm(N, axis=0) > _ROUNDED_DIRECTION, np.linalg.norm(Q, axis=1), 0.0)
    return out


def variance_by_force(W: np.ndarray, found: LeastSquaresSolution, noise: np.ndarray) -> np.ndarray:
    """Return the variance (nv, b) of the solution that the noise (nv,) of each joint's force causes.

    The noise may differ from that of the weights.
    """
    R = compressed(W)[:, :, :-1] / found.noise[:, None, None]
    return np.array([((row @ found.root @ found.root.T) ** 2).sum(axis=0) * ratio**2
                     for row, ratio in zip(R, noise / found.noise, strict=True)])


def effect_of_noise(found: LeastSquaresSolution, noisier: Iterable[tuple[np.ndarray, np.ndarray]]) -> StateNoiseEffect:
    """Return the effect of the noise of the states on a solution, by simulation and extrapolation (Cook and Stefanski 1994).

    noisier  pairs of equations: of states with random noise added, and with the same noise subtracted

    Noise of the same size again changes the solution about as much as the noise that is in the recording. The difference of a
    pair is linear in the noise and gives the variance; its mean gives the bias. Stops early where noise has no effect.
    """
    own = (found.root ** 2).sum(axis=1)
    pairs = []
    for pair in noisier:
        x = np.array([solve(compressed(other), found.noise, found.sizes).x for other in pair])
        change = (pair[0] - pair[1]) / 2.0
        D = (change[:, :, :-1] / found.noise[:, None]).reshape(-1, len(found.x)) @ found.root
        force = ((change @ np.r_[found.x, -1.0]) ** 2).mean(axis=0)
        pairs.append((((x[0] - x[1]) / 2.0) ** 2, x.mean(axis=0) - found.x, D.T @ D, force))
        variance, moved, part, force = (np.mean(one, axis=0) for one in zip(*pairs, strict=True))
        share = np.einsum("kj,ji,ki->k", found.root, part, found.root)
        effect = StateNoiseEffect(variance, _extrapolated(moved, found.root, part), np.divide(share, own, out=np.zeros_like(own),
                                                                                    where=own > 0.0), np.sqrt(force))
        if (variance <= _NOTHING**2 * own).all() and (np.abs(effect.bias) <= _NOTHING * np.sqrt(own)).all():
            break
    return effect


def _extrapolated(moved: np.ndarray, root: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the bias that noise causes, from the change `moved` (b,) of the solution by twice the noise.

    In a direction where the part s of the equations' information is noise, the solution is 1 - s of the true value, and
    (1 - s)/(1 + s) of it with the noise doubled.

    root  as in `LeastSquaresSolution`
    part  (k, k) information by noise; the unit matrix is all information
    """
    s, P = np.linalg.eigh(part)
    s = np.clip(s, 0.0, _MOST)
    return root @ (P @ ((1.0 + s) / (1.0 - s) * (P.T @ (np.linalg.pinv(root) @ moved))))
