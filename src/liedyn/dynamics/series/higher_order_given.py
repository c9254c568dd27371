"""What higher-order dynamics is given: shapes, frames, spatial coordinates of a base, and errors that name what is wrong."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.calls import as_array, refuse
from liedyn.dynamics.calling.frames import FRAMES, KERNEL_FRAMES, LOCAL, WORLD, check_frame
from liedyn.dynamics.series.spatial_base import body_twists
from liedyn.errors import ConfigurationError, ShapeError
from liedyn.joints.kinds import FREE
from liedyn.kernels import checks
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


def contiguous_rows(x) -> list[np.ndarray]:
    """Each row of derivatives (…, rows, nv) as an array of its own: a strided one takes kernels several times as long."""
    x = np.asarray(x)
    return [x[..., k, :].copy() for k in range(x.shape[-2])]


def spatial_joint(model, base_frame: str):
    """The floating base's joint where its coordinates are spatial, else None."""
    if check_frame(base_frame, "base_frame", (LOCAL, WORLD)) == LOCAL:
        return None
    if model.base != "floating":
        raise ShapeError(f'base_frame="world" is for a floating base; the base of {model.name} is {model.base}')
    return next(joint for joint in model.joints if joint.kind == FREE and joint.parent == WORLD_LINK)


def is_plain(f_ext, f_ext_frame, base_frame) -> bool:
    """Whether there are no wrenches, and no spatial coordinates to be turned."""
    return f_ext is None and base_frame == LOCAL and isinstance(f_ext_frame, str) and f_ext_frame in FRAMES


def add_wrenches(model, named: list, f_ext, frame: str, rows: int) -> int:
    """Add the external wrenches to the named arrays; returns their frame as kernels know it."""
    which = KERNEL_FRAMES[check_frame(frame, "f_ext_frame")]
    if f_ext is None:
        return KERNEL_FRAMES[LOCAL]
    n = len(model.link_names)
    if isinstance(f_ext, dict):
        given = {model.link_index(name): as_array(F, f"f_ext_derivatives[{name!r}]", (rows, 6)) for name, F in f_ext.items()}
        named_so = {f"f_ext_derivatives[{name!r}]": F for name, F in f_ext.items()}
        lead = common_lead(named_so, [F.shape[:-2] for F in given.values()])
        f_ext = np.zeros((*lead, rows, n, 6))
        for k, F in given.items():
            f_ext[..., k, :] = F
    named.append(("f_ext_derivatives", as_array(f_ext, "f_ext_derivatives", (rows, n, 6)), 3))
    return which


def in_body(model, named: list, pose, joint, prescribed) -> list:
    """v, and the derivatives of a prescribed base, from spatial to body coordinates; tau stays as it is."""
    given = {name: x for name, x, _ in named}
    v, lead = given["v"], common_lead({"q": pose, **given}, [pose.shape[:-2], *(x.shape[:x.ndim - own] for _, x, own in named)])
    check_finite(model, "v", v[..., None, :])
    rows = [np.broadcast_to(v[..., None, joint.v], (*lead, 1, 6))]
    if prescribed[joint.v].any():
        a = given["a_derivatives"]
        check_finite(model, "a_derivatives", a)
        rows.append(np.broadcast_to(a[..., joint.v], (*lead, a.shape[-2], 6)))
    body = body_twists(pose, np.concatenate(rows, axis=-2))
    given["v"] = np.broadcast_to(v, (*lead, v.shape[-1])).copy()
    given["v"][..., joint.v] = body[..., 0, :]
    if len(rows) > 1:
        given["a_derivatives"] = np.broadcast_to(a, (*lead, *a.shape[-2:])).copy()
        given["a_derivatives"][..., joint.v] = body[..., 1:, :]
    return [(name, given[name], own) for name, _, own in named]


def common_lead(named: dict, leads: list) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        shapes = ", ".join(f"{name} {lead}" for name, lead in zip(named, leads, strict=True))
        raise ShapeError(f"leading axes do not match: {shapes}") from None


def all_or_none(prescribed) -> None:
    if prescribed.any() and not prescribed.all():
        raise ShapeError('with base_frame="world" all six coordinates of the base are prescribed or none; found '
                         f"{int(prescribed.sum())} of them")


_CODES = {checks.BAD_V: ("v_derivatives", "v"), checks.BAD_A: ("a_derivatives",), checks.BAD_TAU: ("tau_derivatives",)}


def refuse_rows(model, code: int, q, **arrays) -> None:
    for name in _CODES.get(code, ()):
        if arrays.get(name) is not None:
            check_finite(model, name, arrays[name].reshape(len(q), -1, model.nv))
    if code == checks.BAD_F_EXT:
        raise ConfigurationError("f_ext_derivatives contains NaN or infinite values")
    refuse(model, code, q=q)


def check_finite(model, name: str, x) -> None:
    """ConfigurationError that names the first number of x (…, rows, nv) that is not finite, if there is one."""
    x = x.reshape(-1, *x.shape[-2:])
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        state, row, c = bad[0]
        of = f" of state {state}" if len(x) > 1 else ""
        which = f"[{c}]" if name == "v" else f"[{row}, {c}]"
        raise ConfigurationError(f"{name}{which} ({model.v_names[c]}){of} is not finite; found {x[state, row, c]}")
