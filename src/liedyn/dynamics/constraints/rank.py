"""The rank of constraint equations: one rule for all analyses in NumPy, which is that of `kernels.constraints.solver`.

An entry of A is a component of a joint's motion at a closure. Without cancellation it would be 1 (rotation against rotation,
translation against translation) or the lever arm of a rotation. Each equation is divided by the norm that it would then have,
with coordinates in radians and in lengths of their loop. It is never divided by its own norm: an equation of rounding errors
stays small. A singular value below RANK counts as zero.

The tolerances of other ranks are listed with their reasons in docs/proof.md ("Ranks").
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.scales import model_scales
from liedyn.joints.loop_joints import BODY_A, BODY_B, COMMON, FIRST, HEADER, RECORD_SIZE, TERM, TERM_COUNT
from liedyn.model.constraint_arrays import residual_weights
from liedyn.model.description import COUPLING, NV, ONE_DOF, RANK_TOLERANCE
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue

# The rule of the kernels applies to squares. A singular configuration is known to 1e-7 only, since its residual grows with the
# square of the distance; rounding is 1e-16, or 1e-13 at a distance of one kilometre.
RANK = RANK_TOLERANCE**0.5
_SCALES = ModelValue("constraint scales")


def equation_weights(model: Model) -> Array:
    """Return factors (m,) that make residuals dimensionless (see `ModelConstraint.scales`)."""
    return residual_weights(model.constraints)


def coordinate_scales(model: Model) -> Array:
    """Return the unit of movement (nv,) of each coordinate.

    It is 1 rad, or the length [m] of the longest loop that the coordinate moves, or of all loops if it moves none.
    """
    return _scales(model)[0]


def rate_magnitude(model: Model, x: Array, order: int) -> Array:
    """Return the maximum (…) of velocities (order 1) or accelerations (order 2) x (…, nv) in radians and lengths of loops.

    It is at least one unit per characteristic time (squared): rounding of a robot nearly at rest contradicts no constraint.
    """
    magnitude: Array = np.abs(x / coordinate_scales(model)).max(axis=-1, initial=model_scales(model).time**-order)
    return magnitude


def equation_norms(model: Model) -> Array:
    """Return the Euclidean norm (m,) of each equation without cancellation, with columns times `coordinate_scales`."""
    return _scales(model)[1]


def scaled_equations(model: Model, A: Array) -> Array:
    """Return A (…, m, nv) with scaled equations and coordinates. Its singular values are at most of the order of one."""
    unit, size = _scales(model)
    return A * unit / size[:, None]


def is_significant(s: NDArray[np.floating[Any]]) -> Mask:
    """Return which singular values (…, k) of scaled equations count."""
    significant: Mask = s > RANK
    return significant


def reciprocals(s: Array, significant: Mask) -> Array:
    """Return 1 / s of the significant singular values or eigenvalues (…, k), and 0 for the others."""
    return np.where(significant, 1.0 / np.where(significant, s, 1.0), 0.0)


def scaled_rank(scaled: Array) -> Integers:
    """Return the rank of scaled equations (…, m, n)."""
    rank: Integers = is_significant(np.linalg.svd(scaled, compute_uv=False)).sum(axis=-1)
    return rank


def row_and_null_space(scaled: Array) -> tuple[Array, Array]:
    """Return orthonormal rows that span the row space (rank, n) and the null space (n - rank, n) of scaled equations (m, n)."""
    _, s, Vt = np.linalg.svd(scaled)
    r = int(is_significant(s).sum())
    return Vt[:r], Vt[r:]


def equation_rank(model: Model, A: Array) -> Integers:
    """Return the rank of equations A (…, m, nv)."""
    return scaled_rank(scaled_equations(model, A))


def clear_rounding(model: Model, A: Array) -> Array:
    """Return equations A (…, m, nv) divided by `equation_norms`, and zero for equations that consist of rounding."""
    scaled = scaled_equations(model, A)
    nothing = np.linalg.norm(scaled, axis=-1) <= RANK
    return np.where(nothing[..., None], 0.0, A / equation_norms(model)[:, None])


def least_norm_solution(model: Model, A: Array, rhs: Array) -> Array:
    """Return the x (…, nv, k) of minimum norm in units of `coordinate_scales` with A x = rhs (…, m, k).

    If there is no solution, x minimizes the squared residual of the scaled equations.
    """
    unit, size = _scales(model)
    U, s, Vt = np.linalg.svd(scaled_equations(model, A), full_matrices=False)
    gain = reciprocals(s, is_significant(s))[..., None]
    x: Array = unit[:, None] * (np.swapaxes(Vt, -1, -2) @ (gain * (np.swapaxes(U, -1, -2) @ (rhs / size[:, None]))))
    return x


def null_space(model: Model, A: Array) -> Array:
    """Return orthonormal directions (nv, f) that equations A (m, nv) allow. Their entries are in units of `coordinate_scales`."""
    return row_and_null_space(scaled_equations(model, A))[1].T


def _scales(model: Model) -> tuple[Array, Array]:
    return model.cached(_SCALES, lambda: _constraint_scales(model))


def _constraint_scales(model: Model) -> tuple[Array, Array]:
    reach, sliding, unit = entry_bounds(model), np.array(model.v_units) == "m", np.zeros(model.nv)
    for constraint in (constraint for constraint in model.constraints if constraint.kind < COUPLING):
        moved = (reach[constraint.rows] > 0.0).any(axis=0)
        unit[moved] = np.maximum(unit[moved], constraint.length)
    longest = max((constraint.length for constraint in model.constraints), default=1.0)
    unit = np.where(sliding, np.where(unit > 0.0, unit, longest), 1.0)
    size = np.linalg.norm(reach * unit, axis=1)
    return unit, np.where(size > 0.0, size, 1.0)


def entry_bounds(model: Model) -> Array:
    """Return the magnitude (m, nv) of entries of A without cancellation; zero if a coordinate does not move the closure."""
    if not model.constraints:
        return np.zeros((0, model.nv))
    reach, tree = np.zeros((model.nc, model.nv)), traced_module("joints.joint_model").tree_views(model.index, model.constants)
    count, terms = len(model.constraints), int(model.loop_index[2])
    records = model.loop_index[HEADER:HEADER + RECORD_SIZE * count].reshape(count, RECORD_SIZE)
    term_v = model.loop_index[HEADER + RECORD_SIZE * count:][:terms]
    coefficients = model.loop_constants[27 * count:]
    for constraint, record in zip(model.constraints, records, strict=True):
        if constraint.kind >= COUPLING:
            mine = slice(record[TERM], record[TERM] + record[TERM_COUNT])
            np.maximum.at(reach[record[FIRST]], term_v[mine], np.abs(coefficients[mine]))
            continue
        turns = np.array(constraint.units) == "rad"
        for end in (record[BODY_A], record[BODY_B]):
            body = end
            while body != record[COMMON]:
                first = tree.iv[body]
                for k in range(NV[tree.kind[body]]):
                    a, b = tree.S[2 * body:2 * body + 2] if tree.kind[body] == ONE_DOF else (float(k < 3), float(k >= 3))
                    reach[constraint.rows, first + k] = np.where(turns, abs(a), np.hypot(a * constraint.length, b))
                body = tree.parent[body]
    return reach
