"""Derivatives and rates by the numbers of a configuration, quaternions among them, and by tangent coordinates: x of q (+) x."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.joints.kinds import FREE, SCREW


def numbers_of_tangent(model, q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(…, nq) derivatives by the numbers of q that give the tangent ones w (…, nv), and none across the unit sphere."""
    out = np.empty((*q.shape[:-1], model.nq))
    for joint in model.joints:
        out[..., joint.q] = w[..., joint.v] if joint.kind == SCREW else _applied(
            _numbers_rates(joint, q[..., joint.q], 4.0), w[..., joint.v])
    return out


def tangent_of_numbers(model, q: np.ndarray, g: np.ndarray) -> np.ndarray:
    """(…, nv) tangent derivatives from those by the numbers of q, (…, nq)."""
    out = np.empty((*q.shape[:-1], model.nv))
    for joint in model.joints:
        out[..., joint.v] = _applied(np.swapaxes(_numbers_rates(joint, q[..., joint.q]), -1, -2), g[..., joint.q])
    return out


def tangent_rates(model, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """(…, nv) tangent rates of q whose numbers have the rates dq (…, nq)."""
    out = np.empty((*np.broadcast_shapes(q.shape[:-1], dq.shape[:-1]), model.nv))
    for joint in model.joints:
        out[..., joint.v] = _applied(np.swapaxes(_numbers_rates(joint, q[..., joint.q], 4.0), -1, -2), dq[..., joint.q])
    return out


def _numbers_rates(joint, q: np.ndarray, turns: float = 1.0) -> np.ndarray:
    """(…, nq, nv) of a joint: d(q (+) x)/dx at x = 0; those of the quaternion times `turns`: 4 times they are its pseudoinverse,
    transposed."""
    if joint.kind == SCREW:
        return np.broadcast_to(np.eye(q.shape[-1]), (*q.shape, q.shape[-1]))
    u = q[..., -4:]
    x, y, z, w = np.moveaxis(u, -1, 0)
    of_turns = 0.5 * turns * np.stack([w, -z, y, z, w, -x, -y, x, w, -x, -y, -z], axis=-1).reshape(*u.shape, 3)     # u [x, 0] / 2
    if joint.kind != FREE:
        return of_turns
    out = np.zeros((*q.shape, 6))
    out[..., 3:, :3] = of_turns
    out[..., :3, 3:] = Rotation.from_quat(u.reshape(-1, 4)).as_matrix().reshape(*u.shape[:-1], 3, 3)
    return out


def _applied(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[..., None])[..., 0]
