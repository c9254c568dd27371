"""Constrained dynamics of mimic joints without inertia.

Constrained dynamics invert the mass matrix M of the open tree. It is singular if a mimic joint moves no inertia, although its
motion is that of the joint that it mimics: q_f = r q_d + c. The constrained motion does not change if an armature e is added to
one of the two coordinates and e r^2 or e / r^2 subtracted from the other one. The kinetic energy e (v_f^2 - r^2 v_d^2) / 2 of
both is zero, so these inertial forces do no work and only add to the multipliers. M is positive definite if part of the inertia
is transferred in this way.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.singular_joints import body_tree, singular_coordinates, with_armature
from liedyn.model.articulated_inertia import mass_matrix, random_configurations
from liedyn.model.description import COUPLING
from liedyn.model.model import Model

# Part of the inertia of a joint that may be transferred. That inertia, 1 / (M^-1)_kk, is the minimum of some configurations. In
# others it may be smaller, but hardly ten times.
_TRANSFERRED = 0.1
_N_CONFIGURATIONS = 10


@dataclass(frozen=True)
class _InertiaTransferKey:
    """Key of an inertia transfer. prescribed: the mask of prescribed coordinates as bytes."""

    prescribed: bytes


class InertiaTransfer(NamedTuple):
    """A model for constrained dynamics whose mass matrix is positive definite where that of the constrained motion is.

    model      with other armatures
    armature   (nv,) what is added to the armatures; zeros if nothing is transferred
    """

    model: Model
    armature: Array


def transfer_inertia(model: Model, prescribed: Mask) -> InertiaTransfer:
    """Return the model with inertia transferred to mimic joints that move none."""
    if model.moves_inertia or not any(constraint.kind == COUPLING for constraint in model.constraints):
        return InertiaTransfer(model, np.zeros(model.nv))
    transfer: InertiaTransfer = model.cached(_InertiaTransferKey(prescribed.tobytes()), lambda: _transfer(model, prescribed))
    return transfer


def _transfer(model: Model, prescribed: Mask) -> InertiaTransfer:
    vanishing, elimination, added = set(singular_coordinates(model, prescribed)), model.elimination(), np.zeros(model.nv)
    matrices = [mass_matrix(body_tree(model), q)[0] for q in random_configurations(body_tree(model), _N_CONFIGURATIONS)]
    regular = ~prescribed
    regular[list(vanishing)] = False
    for f, ratios in zip(elimination.follower, elimination.ratios, strict=True):
        drivers = np.flatnonzero(ratios)
        pair = {int(f), *map(int, drivers)}
        without, movers = pair & vanishing, pair - vanishing
        if len(pair) != 2 or len(without) != 1 or prescribed[list(without)].any():
            continue
        to, source = without.pop(), movers.pop()
        ratio = ratios[drivers[0]] if to == f else 1.0 / ratios[drivers[0]]          # of the velocity of `to` to that of `source`
        part = _TRANSFERRED * _least_inertia(model, matrices, regular, source)
        added[source] -= part
        added[to] += part / ratio**2
        for M in matrices:
            M[source, source] -= part
    if not added.any():
        return InertiaTransfer(model, added)
    return InertiaTransfer(with_armature(model, body_tree(model).armature + added), added)


def _least_inertia(model: Model, matrices: list[Array], regular: Mask, k: int) -> float:
    """Return the minimum inertia of coordinate k while the other regular ones yield.

    A prescribed coordinate may have any inertia, for example a characteristic one: it has no effect on the motion.
    """
    if not regular[k]:
        scales = model_scales(model)
        return float(scales.mass * (1.0 if model.v_units[k] == "m" else scales.length**2))
    at = int(regular[:k].sum())
    return min(float(1.0 / np.linalg.inv(M[np.ix_(regular, regular)])[at, at]) for M in matrices)


def correct_multipliers(model: Model, added: Array, a: Array, multipliers: Array) -> Array:
    """Return the multipliers (N, m) of the robot from those of `InertiaTransfer.model` and the accelerations a (N, nv)."""
    rows = np.concatenate([np.arange(c.rows.start, c.rows.stop) for c in model.constraints if c.kind == COUPLING])
    A = constraint_jacobian(model, model.neutral())[rows]
    corrected = multipliers.copy()
    corrected[:, rows] -= np.linalg.lstsq(A.T, (a * added).T, rcond=None)[0].T
    return corrected
