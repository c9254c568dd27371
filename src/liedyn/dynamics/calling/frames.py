"""The frames in which twists, accelerations, Jacobians, momenta and wrenches are given; one name, one meaning, everywhere.

| name                  | axes         | about            | twist [w; v]          | wrench [m; f]         |
|-----------------------|--------------|------------------|-----------------------|-----------------------|
| "local"               | of the link  | the link's origin| V = (w, v)            | F = (m, f)            |
| "local_world_aligned" | of the world | the link's origin| (R w, R v)            | (R m, R f)            |
| "world"               | of the world | the world's      | Ad_T V                | Ad*_{T^-1} F          |

T = (R, p) is the pose of the link in the world. Pinocchio calls them LOCAL, LOCAL_WORLD_ALIGNED and WORLD.
"""
from __future__ import annotations

import numpy as np

from liedyn.errors import ShapeError
from liedyn.kernels import frames as kernels

LOCAL, LOCAL_WORLD_ALIGNED, WORLD = FRAMES = ("local", "local_world_aligned", "world")
KERNEL_FRAMES = dict(zip(FRAMES, (kernels.LOCAL, kernels.LOCAL_WORLD_ALIGNED, kernels.WORLD), strict=True))
_ELSEWHERE = {"body": LOCAL, "link": LOCAL, "mixed": LOCAL_WORLD_ALIGNED, "hybrid": LOCAL_WORLD_ALIGNED, "spatial": WORLD}


def check_frame(frame, name: str = "frame", allowed: tuple[str, ...] = FRAMES) -> str:
    """The frame, if it is one of those allowed. Raises ShapeError, with the name that is used here for what others call so."""
    if isinstance(frame, str) and frame in allowed:
        return frame
    meant = _ELSEWHERE.get(frame) if isinstance(frame, str) else None
    hint = f' (called "{meant}" here)' if meant in allowed else ""
    raise ShapeError(f"{name} must be one of {', '.join(allowed)}; found {frame!r}{hint}")


def twists_in(frame: str, T, V) -> np.ndarray:
    """Local twists V (..., 6) of links at T (..., 4, 4), in the frame."""
    if frame == LOCAL:
        return V
    w, v = _turned(T, V)
    return np.concatenate([w, v + np.cross(T[..., :3, 3], w) if frame == WORLD else v], axis=-1)


def wrenches_in(frame: str, T, F) -> np.ndarray:
    """Local wrenches F (..., 6) on links at T (..., 4, 4), in the frame."""
    if frame == LOCAL:
        return F
    m, f = _turned(T, F)
    return np.concatenate([m + np.cross(T[..., :3, 3], f) if frame == WORLD else m, f], axis=-1)


def _turned(T, X):
    R = T[..., :3, :3]
    return (R @ X[..., :3, None])[..., 0], (R @ X[..., 3:, None])[..., 0]
