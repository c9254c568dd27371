"""Configurations from values by joint, and the neutral configuration within the limits of joints."""
from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_configuration
from liedyn.errors import NameLookupError
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model


def with_joint_values(model: Model, q: Array, values: Mapping[str, ArrayLike], name: str) -> Array:
    """Return q (nq,) with the values {joint: number or array} of joints. `name` is that of the argument in errors.

    Raises NameLookupError, ShapeError, ConfigurationError.
    """
    out = q.copy()
    for joint, value in values.items():
        try:
            place = model.q_index(joint)
        except NameLookupError as error:
            raise NameLookupError(f"{name}: {error}") from None
        sequence: Any = value if isinstance(value, list | tuple) or np.ndim(value) else [value]
        out[place] = as_array(sequence, f"{name}[{joint!r}]", (place.stop - place.start,))
    check_configuration(model, out, name)
    return out


def neutral_within_limits(model: Model, bound: Container[str] = ()) -> Array:
    """Return the neutral q (nq,), with coordinates whose limits exclude zero in the middle of them.

    The joints `bound`, and those that follow others, are left as they are.
    """
    followers = np.flatnonzero(model.follows) if model.has_only_couplings else ()
    lowest, highest = _ranges_with_followers(model)
    q = model.neutral()
    for joint in model.joints:
        k = np.arange(joint.v.start, joint.v.stop)
        if joint.kind == ONE_DOF and joint.name not in bound and not np.isin(k, followers).any():
            q[joint.q] = _middle_if_outside(q[joint.q], lowest[k], highest[k])
    return q


def _middle_if_outside(x: Array, lower: Array, upper: Array) -> Array:
    """Return positions x where they are within their limits, elsewhere the middle of the range, or its only limit."""
    low, high = np.where(np.isinf(lower), upper, lower), np.where(np.isinf(upper), lower, upper)
    outside = (x < lower) | (x > upper)                        # so at least one limit is finite
    return np.where(outside, 0.5 * np.where(outside, low, 0.0) + 0.5 * np.where(outside, high, 0.0), x)


def _ranges_with_followers(model: Model) -> tuple[Array, Array]:
    """Return the (nv,) limits of positions; those of a coordinate within which coordinates that follow it alone are, too."""
    lower, upper = model.lower.copy(), model.upper.copy()
    if not model.has_only_linear_couplings:
        return lower, upper
    elimination = model.elimination()
    for f, ratios, offset in zip(elimination.follower, elimination.ratios, elimination.offset, strict=True):
        drivers = np.flatnonzero(ratios)
        if len(drivers) == 1:
            k = drivers[0]
            low, high = np.sort((np.array([model.lower[f], model.upper[f]]) - offset) / ratios[k])
            if max(lower[k], low) <= min(upper[k], high):      # else no position is within all limits
                lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
    return lower, upper
