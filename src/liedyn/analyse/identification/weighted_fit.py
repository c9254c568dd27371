"""Weighted least squares of forces that are linear in parameters, and what noise in the states does to the solution.

Equations are arrays W (n, nv, b + 1): n of each joint, columns of the b parameters and the right-hand side.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_UNSEEN = 1e-9        # of the largest column in characteristic units, or singular value: a smaller one is not excited at all
_BLIND = 1e-6         # of a parameter, squared: a smaller part in directions that are not excited is rounding
_ABSENT = 1e-12       # of a parameter, squared: a smaller part in excited directions is rounding
_ROUNDS = 5           # of weights; the first has none
_NOTHING = 1e-3       # of a deviation
_MOST = 0.99          # of the information in a direction may be noise for a bias to be told


@dataclass(frozen=True, eq=False)
class Solution:
    """x        (b,) solution; zero in directions that are not excited
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
class Effect:
    """What noise in the states does to a solution.

    variance   (b,) that it has from it
    bias       (b,) by which it is moved on the average
    share      (b,) part of what tells a parameter that is noise itself
    force      (nv,) size of the forces that the noise makes
    """

    variance: np.ndarray
    bias: np.ndarray
    share: np.ndarray
    force: np.ndarray


def fit(W: np.ndarray, least: np.ndarray, sizes: np.ndarray) -> Solution:
    """The solution weighted with each joint's own noise, at least `least` (nv,), which are the weights to begin with. sizes (b,):
    characteristic units of the parameters."""
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
    """(nv, k, b + 1): for each joint few equations with the same least squares as its n (QR)."""
    return np.array([np.linalg.qr(W[:, k], mode="r") for k in range(W.shape[1])])


def solve(R: np.ndarray, noise: np.ndarray, sizes: np.ndarray) -> Solution:
    """Of compressed equations whose noise differs from joint to joint."""
    weighted = (R / noise[:, None, None]).reshape(-1, R.shape[2])
    A, y = weighted[:, :-1], weighted[:, -1]
    scale = np.linalg.norm(A, axis=0)
    seen = scale * sizes > _UNSEEN * (scale * sizes).max(initial=0.0)
    safe = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(np.where(seen, A / safe, 0.0), full_matrices=False)
    good = s > _UNSEEN * s[0]
    root = Vt[good].T / s[good] / safe[:, None]
    part = (Vt[good] ** 2).sum(axis=0)                                   # of a parameter in excited directions
    blind = 1.0 - part > _BLIND
    mixed = blind & (part > _ABSENT)
    root[blind & ~mixed] = 0.0
    condition = float(s[0] / s[-1]) if good.all() and seen.all() else np.inf
    return Solution(root @ (U[:, good].T @ y), root, noise, blind, mixed, condition, sizes)


def variance_by_force(W: np.ndarray, found: Solution, noise: np.ndarray) -> np.ndarray:
    """(nv, b) variance of the solution from noise (nv,) of each joint's force, which may differ from what the weights suppose."""
    R = compressed(W)[:, :, :-1] / found.noise[:, None, None]
    return np.array([((row @ found.root @ found.root.T) ** 2).sum(axis=0) * ratio**2
                     for row, ratio in zip(R, noise / found.noise, strict=True)])


def effect_of_noise(found: Solution, noisier: Iterable[tuple[np.ndarray, np.ndarray]]) -> Effect:
    """Of the noise that states have, told by more of the same: pairs of equations of states with a draw of noise added, and with
    the same subtracted.

    As much again moves the solution about as far as what was there before (Cook and Stefanski 1994); pairs tell what is linear
    in the noise, the variance, from what is not, the bias. Ends early where the noise does nothing."""
    own = (found.root ** 2).sum(axis=1)
    told = []
    for pair in noisier:
        x = np.array([solve(compressed(other), found.noise, found.sizes).x for other in pair])
        change = (pair[0] - pair[1]) / 2.0
        D = (change[:, :, :-1] / found.noise[:, None]).reshape(-1, len(found.x)) @ found.root
        force = ((change @ np.r_[found.x, -1.0]) ** 2).mean(axis=0)
        told.append((((x[0] - x[1]) / 2.0) ** 2, x.mean(axis=0) - found.x, D.T @ D, force))
        variance, moved, part, force = (np.mean(one, axis=0) for one in zip(*told, strict=True))
        share = np.einsum("kj,ji,ki->k", found.root, part, found.root)
        effect = Effect(variance, _extrapolated(moved, found.root, part), np.divide(share, own, out=np.zeros_like(own),
                                                                                    where=own > 0.0), np.sqrt(force))
        if (variance <= _NOTHING**2 * own).all() and (np.abs(effect.bias) <= _NOTHING * np.sqrt(own)).all():
            break
    return effect


def _extrapolated(moved: np.ndarray, root: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The bias by noise, from how far as much again moved the solution.

    In a direction where the part s of the equations' information is noise, the solution is 1 - s of the truth, and
    (1 - s)/(1 + s) with the noise doubled. part: the information by noise, beside a unit matrix of all."""
    s, P = np.linalg.eigh(part)
    s = np.clip(s, 0.0, _MOST)
    return root @ (P @ ((1.0 + s) / (1.0 - s) * (P.T @ (np.linalg.pinv(root) @ moved))))
