"""What higher-order dynamics is given: shapes, frames, spatial coordinates of a base, and errors that name what is wrong."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.arguments import common_lead, wrenches
from liedyn.dynamics.calling.calls import check_finite
from liedyn.dynamics.calling.frames import KERNEL_FRAMES, LOCAL, WORLD, check_frame
from liedyn.dynamics.series.spatial_base import body_twists
from liedyn.errors import ShapeError
from liedyn.joints.kinds import FREE
from liedyn.model.description import WORLD as WORLD_LINK

HIGHEST = 170      # order


def order_of(x, name: str, nv: int, least: int) -> int:
    """How many rows of derivatives x (…, rows, nv) has."""
    try:
        shape = np.shape(x)
    except ValueError:                                   # ragged lists
        raise ShapeError(f"{name} is not an array of numbers; found {type(x).__name__}") from None
    if len(shape) < 2 or shape[-1] != nv or shape[-2] < least:
        raise ShapeError(f"{name} has the wrong shape; found {shape}, expected (…, rows, {nv}) with {least} or more rows of "
                         "derivatives")
    if shape[-2] - least > HIGHEST:
        raise ShapeError(f"{name} goes to order {shape[-2] - least}; the highest order is {HIGHEST}")
    return shape[-2]


def spatial_joint(model, base_frame: str):
    """The floating base's joint where its coordinates are spatial, else None."""
    if check_frame(base_frame, "base_frame", (LOCAL, WORLD)) == LOCAL:
        return None
    if model.base != "floating":
        raise ShapeError(f'base_frame="world" is for a floating base; the base of {model.name} is {model.base}')
    return next(joint for joint in model.joints if joint.kind == FREE and joint.parent == WORLD_LINK)


def framed_wrenches(model, f_ext, frame: str, rows: int) -> tuple[np.ndarray | None, int]:
    """External wrenches (…, rows, n_links, 6), and their frame as kernels know it."""
    which = KERNEL_FRAMES[check_frame(frame, "f_ext_frame")]
    return wrenches(model, f_ext, "f_ext_derivatives", (rows,)), which if f_ext is not None else KERNEL_FRAMES[LOCAL]


def in_body(pose, joint, x: np.ndarray) -> np.ndarray:
    """Derivatives x (..., rows, nv) of v, from order 0 on, with the base's from spatial to body coordinates."""
    lead = common_lead(("q", pose[..., 0, 0], 0), ("v_derivatives", x[..., 0, 0], 0))
    out = np.broadcast_to(x, (*lead, *x.shape[-2:])).copy()
    out[..., joint.v] = body_twists(pose, out[..., joint.v])
    return out


def motion_in_body(model, pose, joint, v: np.ndarray, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The same of v (..., nv) and the derivatives of a (..., rows, nv), as one array (..., rows + 1, nv)."""
    check_finite("v", v, model.v_names)
    check_finite("a_derivatives", a, model.v_names)
    lead = common_lead(("q", pose[..., 0, 0], 0), ("v", v[..., 0], 0), ("tau_derivatives", tau[..., 0, 0], 0),
                       ("a_derivatives", a[..., 0, 0], 0))
    parts = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (v[..., None, :], a)]
    return in_body(pose, joint, np.concatenate(parts, axis=-2))


def all_or_none(prescribed) -> None:
    if prescribed.any() and not prescribed.all():
        raise ShapeError('with base_frame="world" all six coordinates of the base are prescribed or none; found '
                         f"{int(prescribed.sum())} of them")
