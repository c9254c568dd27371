"""Orientations over time, as files and pages hold them."""
from __future__ import annotations

import numpy as np


def quaternions_over_time(R: np.ndarray) -> np.ndarray:
    """(N, ..., 4) unit quaternions x y z w of rotations (N, ..., 3, 3), without jumps of sign from row to row; first w >= 0."""
    from scipy.spatial.transform import Rotation

    if not R.size:
        return np.zeros((*R.shape[:-2], 4))
    Q = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat().reshape(*R.shape[:-2], 4)
    signs = np.where(np.einsum("n...i,n...i->n...", Q[1:], Q[:-1]) < 0.0, -1.0, 1.0)
    first = np.copysign(1.0, Q[:1, ..., 3])
    return Q * np.concatenate([first, signs]).cumprod(axis=0)[..., None]
