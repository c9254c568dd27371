"""Arguments of public functions: as arrays of one batch, or refused by name."""
from __future__ import annotations

from math import prod

import numpy as np

from liedyn.errors import NameLookupError, ShapeError

NONE = np.empty((0, 0))         # in place of what an entry does not read, or does not write


def as_array(x, name: str, last: tuple[int, ...]) -> np.ndarray:
    """x as a C-contiguous float64 array whose last axes are `last`."""
    if type(x) is not np.ndarray:
        _refuse_masked(x, name)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):                       # ragged lists
        array = None
    if array is None or array.dtype.kind not in "fiub":   # strings would be parsed, imaginary parts dropped
        of = f" of {x.dtype}" if isinstance(x, np.ndarray) else ""
        raise ShapeError(f"{name} is not an array of numbers; found {type(x).__name__}{of}")
    array = np.asarray(array, dtype=np.float64, order="C")
    if array.shape[array.ndim - len(last):] != last or array.ndim < len(last):
        expected = ", ".join(str(n) for n in last)
        raise ShapeError(f"{name} has the wrong shape; found {array.shape}, expected (…, {expected})")
    return array if array.flags.behaved else array.copy()     # the entries know arrays only that are writable and aligned


def _refuse_masked(x, name: str) -> None:
    """What a masked array hides would come back as if it were given."""
    if any(np.ma.is_masked(part) for part in (x if isinstance(x, (list, tuple)) else (x,))):
        raise ShapeError(f"{name} has masked values (remove these states, or fill the array: "
                         f"{name}.filled(value))")


def as_mask(prescribed, nv: int) -> np.ndarray:
    """A mask over v, or a ShapeError."""
    _refuse_masked(prescribed, "prescribed")
    mask = np.ascontiguousarray(prescribed)
    if mask.dtype != bool or mask.shape != (nv,):
        raise ShapeError(f"prescribed is a mask over v; found {mask.dtype} of shape {mask.shape}, expected bool ({nv},)")
    return mask if mask.flags.writeable else mask.copy()


def states(model, given: dict) -> tuple[tuple[int, ...], dict[str, np.ndarray]]:
    """Leading axes, and the arrays (N, …) of a batch as entries take them, in the order given.

    given: what a public function got, by name: f_ext and drive as users may give them, q, q0, q1 (…, nq), multipliers (…, nc),
    …_derivatives (…, rows, nv), those of f_ext as `wrenches` makes them, any other (…, nv). NONE, wrenches that are None, and the
    motion of no driven loop become (N, 0)."""
    last, named = {"q": model.nq, "q0": model.nq, "q1": model.nq, "multipliers": model.nc}, []
    for name, x in given.items():
        if name == "f_ext":
            named += [] if x is None else [(name, wrenches(model, x), 2)]
        elif name == "drive":
            motion = drive_array(model, x)
            named += [(name, motion, 1)] if motion.size else []
        elif name == "f_ext_derivatives":
            named += [] if x is None else [(name, x, 3)]
        elif x is not NONE:
            named.append((name, as_array(x, name, (last.get(name, model.nv),)), 2 if name.endswith("_derivatives") else 1))
    lead, rows = batched(*named)
    arrays = {name: x for (name, _, _), x in zip(named, rows, strict=True)}
    return lead, arrays if len(rows) == len(given) else dict.fromkeys(given, np.empty((prod(lead), 0))) | arrays


def batched(*named: tuple[str, np.ndarray, int]) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Common leading axes, and each array as (N, n), C-contiguous. `named`: name, array, how many last axes are its own."""
    lead = common_lead(*named)
    count = prod(lead)
    out = []
    for _, array, own in named:
        if array.shape[:array.ndim - own] != lead:
            array = np.broadcast_to(array, lead + array.shape[array.ndim - own:]).copy()     # writeable, as entries ask
        out.append(np.ascontiguousarray(array).reshape(count, prod(array.shape[array.ndim - own:])))
    return lead, out


def common_lead(*named: tuple[str, np.ndarray, int]) -> tuple[int, ...]:
    """Leading axes to which all can be broadcast, or a ShapeError."""
    leads = [array.shape[:array.ndim - own] for _, array, own in named]
    if leads and all(lead == leads[0] for lead in leads):
        return leads[0]
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array, _ in named)
        raise ShapeError(f"leading axes do not match: {shapes}") from None


def wrenches(model, f_ext, name: str = "f_ext", rows: tuple[int, ...] = ()) -> np.ndarray | None:
    """External wrenches (…, *rows, n_links, 6), from an array or a dict by link name; None of None."""
    n = len(model.link_names)
    if f_ext is None:
        return None
    if not isinstance(f_ext, dict):
        return as_array(f_ext, name, (*rows, n, 6))
    links = [model.link_index(link) for link in f_ext]
    named = [(what := f"{name}[{link!r}]", as_array(F, what, (*rows, 6)), len(rows) + 1) for link, F in f_ext.items()]
    out = np.zeros((*common_lead(*named), *rows, n, 6))
    for k, (_, F, _) in zip(links, named, strict=True):
        out[..., k, :] = F
    return out


def drive_array(model, drive) -> np.ndarray:
    """(..., 24 driven): pose, twist and its rate of each driven loop's frame A, as kernels take it."""
    driven = [one for one in model.constraints if one.driven]
    given = dict(drive or {})
    unknown = [name for name in given if name not in {one.name for one in driven}]
    if unknown:
        known = ", ".join(one.name for one in driven) or "none"
        raise NameLookupError(f"no driven loop {unknown[0]!r}; the model has {known}")
    return _side_by_side([_of_frame(one, given.get(one.name)) for one in driven]) if driven else np.empty(0)


def _of_frame(closure, motion) -> np.ndarray:
    """The 24 numbers of one frame, whose axes are turned from those of the file to those of the kernels."""
    motion = motion_parts(np.eye(4) if motion is None else motion)
    T, V, dV = (*motion, *(np.zeros(6),) * (3 - len(motion)))
    T, V, dV = as_array(T, "drive", (4, 4)), as_array(V, "drive", (6,)), as_array(dV, "drive", (6,))
    turn = np.eye(3) if closure.turn is None else closure.turn           # from the kernels' frame to the file's
    R = np.swapaxes(turn, -1, -2) @ T[..., :3, :3] @ turn
    twists = [np.concatenate([x[..., :3] @ turn, x[..., 3:] @ turn], axis=-1) for x in (V, dV)]
    return _side_by_side([R.reshape(*R.shape[:-2], 9), T[..., :3, 3] @ turn, *twists])


def motion_parts(motion) -> tuple:
    """Pose, twist and its rate of a driven loop, of which the last may be missing."""
    return tuple(motion) if isinstance(motion, (tuple, list)) else (motion,)


def _side_by_side(parts) -> np.ndarray:
    lead = np.broadcast_shapes(*[part.shape[:-1] for part in parts])
    return np.concatenate([np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1)
