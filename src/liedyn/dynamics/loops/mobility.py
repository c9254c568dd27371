"""How a closed mechanism can move at a configuration: degrees of freedom, redundant rows, singular configurations."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import ArrayLike
from liedyn.dynamics.loops.closing import Search
from liedyn.dynamics.loops.constraints import constraint_jacobian, constraint_residual, require_constraints
from liedyn.dynamics.loops.rank import RANK, column_scale, row_scale, scaled_equations, significant
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, ShapeError, warn
from liedyn.model.model import Model

_CLOSED = 1e-6          # largest residual of a configuration whose mobility has a meaning
_NEIGHBOURS = 4
_APART = 0.1            # rad, or that part of the length: where neighbours are looked for
GENERIC_RANK = ("generic rank",)       # in a model's cache
_MOVED = 1e-3           # of that: a neighbour that came back nearer is the same configuration


@dataclass(frozen=True)
class Mobility:
    """Mobility of a constrained robot at a configuration.

    degrees       degrees of freedom: nv minus the rank of A; for rolling, those of the velocity
    rank          rank of A, by the rule of `dynamics.loops.rank`
    redundant     names of rows that depend on the rows before them
    generic_rank  largest rank here and at neighbouring closed configurations
    rigid         no neighbouring configuration is closed: movable to first order at most, for any number of degrees
    gap           smallest singular value that counts and largest that does not, of A scaled by the lever arms of its loops:
                  about one where constraints are independent, rounding where one follows from others

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.mobility(model, q).degrees, ld.mobility(model, q).singular
    (1, False)
    """

    degrees: int
    rank: int
    redundant: tuple[str, ...]
    generic_rank: int
    rigid: bool
    gap: tuple[float, float]

    @property
    def singular(self) -> bool:
        """Whether more can move here than nearby, to the first order: branches of motion meet, or a dead point."""
        return self.rank < self.generic_rank or (self.rigid and self.degrees > 0)


def mobility(model: Model, q: ArrayLike, *, drive: Mapping[str, Any] | None = None, seed: int = 0) -> Mobility:
    """Degrees of freedom and redundant constraints of a closed configuration.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        Closed: the residual of the constraints vanishes.
    drive : optional
        As for `constraint_residual`.
    seed : int
        Seed of the neighbouring configurations at which the rank is compared.

    Raises
    ------
    ModelError
        For a model without constraints.
    ComputationError
        If a constraint residual is larger than 1e-6 [rad, or m per characteristic length of the loop].
    ShapeError, ConfigurationError

    Notes
    -----
    The rank is that of A (K2 (55)) by its singular values; "redundant" constraints are those of K2 §3.1.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.mobility(model, q).redundant
    ('pin.wx', 'pin.wy', 'pin.vz')
    """
    require_constraints(model)
    residual = np.abs(constraint_residual(model, q, drive=drive))
    if residual.ndim != 1:
        raise ShapeError(f"q must be a single configuration; found {np.shape(q)}")
    if (row_scale(model) * residual).max() > _CLOSED:
        row = int(np.argmax(row_scale(model) * residual))
        raise ComputationError(f"the configuration violates the constraints: {model.row_names[row]} has a residual of "
                               f"{residual[row]:.3g} (assemble first)")
    A = scaled_jacobian(model, q, drive)
    rank, gap = _rank(A)
    generic, rigid = rank, rank == model.nv
    if rank < min(model.nc, model.nv):
        generic, rigid = _nearby(model, q, drive, rank, seed)
    redundant = tuple(model.row_names[r] for r in _dependent_rows(A, rank))
    return Mobility(model.nv - rank, rank, redundant, generic, rigid, gap)


def warn_of_singular(model: Model, q, ranks, prescribed=None) -> None:
    """Warns as `singular_state_notes` says."""
    warn(singular_state_notes(model, q, ranks, prescribed))


def singular_state_notes(model: Model, q, ranks, prescribed=None, what: str = "state") -> list[str]:
    """A message if constraints depend on each other at a state more than they do elsewhere: numbers there are those of a
    mechanism with more degrees of freedom.

    q (N, nq); ranks (N,): numbers of independent rows in the coordinates that are not prescribed. Not for driven loops.
    """
    k, free = int(np.argmin(ranks)), slice(None) if prescribed is None else ~prescribed
    if model.driven or ranks[k] >= min(model.nc, np.arange(model.nv)[free].size):
        return []
    key = GENERIC_RANK if prescribed is None else (*GENERIC_RANK, prescribed.tobytes())
    if key not in model._cache:
        model._cache[key] = _nearby(model, q[k], None, int(ranks[k]), 0, free)[0]
    generic = model._cache[key] = max(model._cache[key], int(ranks.max()))
    if ranks[k] >= generic:
        return []
    where = f" of {what} {k}" if len(ranks) > 1 else ""
    return [f"the configuration{where} is singular: the rank of the constraints is {ranks[k]} there, and {generic} near it; "
            "the results are those of a mechanism with more degrees of freedom than it has elsewhere (see ld.mobility)"]


def scaled_jacobian(model, q, drive=None) -> np.ndarray:
    return scaled_equations(model, constraint_jacobian(model, q, drive=drive))


def _rank(A: np.ndarray) -> tuple[int, tuple[float, float]]:
    s = np.linalg.svd(A, compute_uv=False)
    rank = int(significant(s).sum())
    return rank, (float(s[rank - 1]) if rank else 0.0, float(s[rank]) if rank < len(s) else 0.0)


def _dependent_rows(A: np.ndarray, rank: int) -> list[int]:
    """Rows that follow from those before them, as many as are beyond the rank."""
    basis, left = np.zeros((0, A.shape[1])), np.zeros(len(A))
    for r, row in enumerate(A):
        for _ in range(2):                                # again, for what rounding left
            row = row - basis.T @ (basis @ row)
        left[r] = np.linalg.norm(row)
        if left[r] > RANK:
            basis = np.vstack([basis, row / left[r]])
    return sorted(np.argsort(left, kind="stable")[:len(A) - rank].tolist())


def _nearby(model, q, drive, rank: int, seed: int, columns=slice(None)) -> tuple[int, bool]:
    """The largest rank, of these columns, at closed configurations near q and at q, and whether there is none but q."""
    search, rng, unit = Search(model, drive=drive, limits=False), np.random.default_rng([seed, 1]), column_scale(model)
    generic, rigid = rank, True
    for _ in range(_NEIGHBOURS):
        found = search.close(integrate(model, q, _APART * unit * rng.standard_normal(model.nv)))
        if not found.closed:
            continue
        rigid = rigid and bool(np.linalg.norm(difference(model, q, found.q) / unit) < _MOVED * _APART)
        generic = max(generic, _rank(scaled_jacobian(model, found.q, drive)[:, columns])[0])
    return generic, rigid
