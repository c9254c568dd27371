"""The rank of constraint equations: one rule for all analyses in NumPy, that of `kernels.constraints.solver`.

An entry of A is a component of a joint's motion at a closure. If nothing cancelled it would be 1 (turns against turns, shifts
against shifts) or the lever arm of a turn. Each equation is divided by the norm that it would then have, with coordinates in
radians and in lengths of their loop, never by its own norm: an equation that consists of rounding stays rounding. A singular
value below RANK counts as zero.

The tolerances of other ranks are listed with their reasons in docs/proof.md ("Ranks")."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.trace import traced_module
from liedyn.dynamics.scales import model_scales
from liedyn.joints.loop_joints import BODY_A, BODY_B, COMMON, FIRST, HEADER, RECORD_SIZE, TERM, TERM_COUNT
from liedyn.kernels.constraints.solver import RANK_TOLERANCE
from liedyn.model.constraint_arrays import residual_weights
from liedyn.model.description import COUPLING, NV, ONE_DOF
from liedyn.model.model_cache import ModelValue

# The kernels' rule is of squares. A configuration is known to 1e-7 where it is singular, since there its residual grows with the
# square; rounding is 1e-16, or 1e-13 a kilometre away.
RANK = RANK_TOLERANCE**0.5
_SCALES = ModelValue("constraint scales")


def equation_weights(model) -> np.ndarray:
    """(m,) factors that make residuals numbers without unit (see `ModelConstraint.scales`)."""
    return residual_weights(model.constraints)


def coordinate_scales(model) -> np.ndarray:
    """(nv,) one unit of movement of each coordinate: 1 rad, or the length of the longest loop that it moves, else of all [m]."""
    return _scales(model)[0]


def rate_magnitude(model, x, order: int) -> np.ndarray:
    """(…) the largest of velocities (order 1) or accelerations (2) x (…, nv) in radians and lengths of the loops, at least one of
    these per characteristic time: rounding of what is nearly at rest contradicts no constraint."""
    return np.abs(x / coordinate_scales(model)).max(axis=-1, initial=model_scales(model).time**-order)


def equation_norms(model) -> np.ndarray:
    """(m,) Euclidean norm that an equation would have if nothing cancelled, of columns times `coordinate_scales`."""
    return _scales(model)[1]


def scaled_equations(model, A) -> np.ndarray:
    """A (…, m, nv) with equations and coordinates in these measures: its singular values are at most of the order of one."""
    unit, size = _scales(model)
    return A * unit / size[:, None]


def is_significant(s) -> np.ndarray:
    """Which singular values (…, k) of scaled equations count."""
    return s > RANK


def scaled_rank(scaled) -> np.ndarray:
    """Rank of scaled equations (…, m, n)."""
    return is_significant(np.linalg.svd(scaled, compute_uv=False)).sum(axis=-1)


def row_and_null_space(scaled) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal rows (rank, n) that span those of scaled equations (m, n), and (n - rank, n) that span what they allow."""
    _, s, Vt = np.linalg.svd(scaled)
    r = int(is_significant(s).sum())
    return Vt[:r], Vt[r:]


def equation_rank(model, A) -> np.ndarray:
    """Rank of equations A (…, m, nv)."""
    return scaled_rank(scaled_equations(model, A))


def clear_rounding(model, A) -> np.ndarray:
    """Equations A (…, m, nv) divided by `equation_norms`, zero where they consist of rounding."""
    scaled = scaled_equations(model, A)
    nothing = np.linalg.norm(scaled, axis=-1) <= RANK
    return np.where(nothing[..., None], 0.0, A / equation_norms(model)[:, None])


def least_norm_solution(model, A, rhs) -> np.ndarray:
    """(…, nv, k) the x with A x = rhs (…, m, k) that moves least in units of `coordinate_scales`, or nearly where there is
    none."""
    unit, size = _scales(model)
    U, s, Vt = np.linalg.svd(scaled_equations(model, A), full_matrices=False)
    kept = is_significant(s)
    gain = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)[..., None]
    return unit[:, None] * (np.swapaxes(Vt, -1, -2) @ (gain * (np.swapaxes(U, -1, -2) @ (rhs / size[:, None]))))


def null_space(model, A) -> np.ndarray:
    """(nv, f) directions that equations A (m, nv) allow, orthonormal in units of `coordinate_scales`."""
    return row_and_null_space(scaled_equations(model, A))[1].T


def _scales(model) -> tuple[np.ndarray, np.ndarray]:
    return model.cached(_SCALES, lambda: _constraint_scales(model))


def _constraint_scales(model) -> tuple[np.ndarray, np.ndarray]:
    reach, sliding, unit = entry_bounds(model), np.array(model.v_units) == "m", np.zeros(model.nv)
    for one in (one for one in model.constraints if one.kind != COUPLING):
        moved = (reach[one.rows] > 0.0).any(axis=0)
        unit[moved] = np.maximum(unit[moved], one.length)
    unit = np.where(sliding, np.where(unit > 0.0, unit, max((one.length for one in model.constraints), default=1.0)), 1.0)
    size = np.linalg.norm(reach * unit, axis=1)
    return unit, np.where(size > 0.0, size, 1.0)


def entry_bounds(model) -> np.ndarray:
    """(m, nv) how large entries of A would be if nothing cancelled; zero where a coordinate does not move the closure."""
    if not model.constraints:
        return np.zeros((0, model.nv))
    reach, tree = np.zeros((model.nc, model.nv)), traced_module("joints.joint_model").tree_views(model.index, model.constants)
    count, terms = len(model.constraints), int(model.loop_index[2])
    records = model.loop_index[HEADER:HEADER + RECORD_SIZE * count].reshape(count, RECORD_SIZE)
    term_v = model.loop_index[HEADER + RECORD_SIZE * count:][:terms]
    coefficients = model.loop_constants[27 * count:]
    for one, record in zip(model.constraints, records, strict=True):
        if one.kind == COUPLING:
            mine = slice(record[TERM], record[TERM] + record[TERM_COUNT])
            np.maximum.at(reach[record[FIRST]], term_v[mine], np.abs(coefficients[mine]))
            continue
        turns = np.array(one.units) == "rad"
        for body in (record[BODY_A], record[BODY_B]):
            while body != record[COMMON]:
                first = tree.iv[body]
                for k in range(NV[tree.kind[body]]):
                    a, b = tree.S[2 * body:2 * body + 2] if tree.kind[body] == ONE_DOF else (float(k < 3), float(k >= 3))
                    reach[one.rows, first + k] = np.where(turns, abs(a), np.hypot(a * one.length, b))
                body = tree.parent[body]
    return reach
