"""The mobility of a closed configuration: degrees of freedom, redundant equations, singular configurations."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.constraints.branch_search import BranchSearch
from liedyn.dynamics.constraints.constraints import check_has_constraints, constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import (
    RANK,
    coordinate_scales,
    equation_weights,
    is_significant,
    scaled_equations,
    scaled_rank,
)
from liedyn.dynamics.manifold import difference, generator_of_seed, integrate
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, summarized, warn
from liedyn.model.model import Model

_MAX_CLOSURE_ERROR = 1e-6          # maximum residual of a configuration for which the mobility is defined
_N_NEIGHBOURS = 4
_NEIGHBOUR_DISTANCE = 0.1            # rad, or fraction of the length: distance of neighbours
_MIN_MOVEMENT = 1e-3           # of that distance: a nearer neighbour is the same configuration


@summarized
@dataclass(frozen=True)
class Mobility:
    """Mobility of a constrained robot at a configuration.

    degrees       degrees of freedom: nv minus the rank of A; for rolling, those of the velocity
    rank          rank of A, by the rule of `dynamics.constraints.rank`
    redundant     names of constraint equations that depend on the equations before them
    generic_rank  maximum rank here and at neighbouring closed configurations
    rigid         whether no neighbouring configuration is closed: movable to first order at most, for any value of degrees
    gap           smallest singular value that counts and largest that does not, of A scaled by the lever arms of its loops:
                  about one if constraints are independent, rounding if one follows from others

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
        """Whether the mechanism has more degrees of freedom here than nearby, to first order: a branch point or a dead point."""
        return self.rank < self.generic_rank or (self.rigid and self.degrees > 0)


def mobility(model: Model, q: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None, seed: int = 0) -> Mobility:
    """Return the degrees of freedom and the redundant constraints of a closed configuration.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        Closed: the residual of the constraints vanishes.
    constraint_motion : optional
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
    check_has_constraints(model)
    rng = generator_of_seed(seed, 1)
    residual = np.abs(constraint_residual(model, q, constraint_motion=constraint_motion))
    if residual.ndim != 1:
        raise ShapeError(f"q has the wrong shape: expected ({model.nq},), got {np.shape(q)}")
    if (equation_weights(model) * residual).max() > _MAX_CLOSURE_ERROR:
        row = int(np.argmax(equation_weights(model) * residual))
        raise ComputationError(f"the configuration violates the constraints: {model.constraint_equation_names[row]} has a "
                               f"residual of "
                               f"{residual[row]:.3g} (assemble first)")
    A = scaled_jacobian(model, q, constraint_motion)
    rank, gap = _rank(A)
    generic, rigid = rank, rank == model.nv
    if rank < min(model.nc, model.nv):
        generic, rigid = _generic_rank(model, q, constraint_motion, rank, rng)
    redundant = tuple(model.constraint_equation_names[r] for r in _dependent_equations(A, rank))
    return Mobility(model.nv - rank, rank, redundant, generic, rigid, gap)


def warn_singular_state(model: Model, q: Array, ranks: Integers, prescribed: Mask | None = None) -> None:
    """Issue the warnings of `singular_state_warnings`."""
    warn(singular_state_warnings(model, q, ranks, prescribed))


def singular_state_warnings(model: Model, q: Array, ranks: Integers, prescribed: Mask | None = None,
                            state_kind: str = "state") -> list[LiedynWarning]:
    """Return a warning if more constraints depend on each other at a state than elsewhere.

    Results at such a state are those of a mechanism with more degrees of freedom. Driven loops are not supported.
    q (N, nq); ranks (N,): numbers of independent constraint equations in the coordinates that are not prescribed.
    """
    k, free = int(np.argmin(ranks)), slice(None) if prescribed is None else ~prescribed
    if model.driven or ranks[k] >= min(model.nc, np.arange(model.nv)[free].size):
        return []
    generic = generic_rank(model, q[k], ranks, prescribed)
    if ranks[k] >= generic:
        return []
    location = f" of {state_kind} {k}" if len(ranks) > 1 else ""
    return [LiedynWarning("singular-state",
                          f"the configuration{location} is singular: the rank of the constraints is {ranks[k]} there, and "
                          f"{generic} near it; the results are valid for a mechanism that has more degrees of freedom here than "
                          "elsewhere (see ld.mobility)")]


@dataclass(frozen=True)
class GenericRankKey:
    """Key of a generic rank. prescribed: bytes of the mask; None: no coordinate is prescribed."""

    prescribed: bytes | None


@dataclass
class _LargestRank:
    rank: int


def generic_rank(model: Model, q: Array, ranks: Integers, prescribed: Mask | None = None) -> int:
    """Return the maximum rank found so far of the constraints in the coordinates that are not prescribed.

    q (nq,): about which the first call searches for neighbours; ranks (N,): those of the states of this call.
    """
    free = slice(None) if prescribed is None else ~prescribed
    largest = model.cached(GenericRankKey(None if prescribed is None else prescribed.tobytes()), lambda: _LargestRank(
        _generic_rank(model, q, None, int(ranks.min()), generator_of_seed(0, 1), free)[0]))
    largest.rank = max(largest.rank, int(ranks.max()))
    return largest.rank


def scaled_jacobian(model: Model, q: ArrayLike, constraint_motion: Mapping[str, Any] | None = None) -> Array:
    """Return A (m, nv) at q (nq,) with scaled equations and coordinates (see `rank.scaled_equations`)."""
    return scaled_equations(model, constraint_jacobian(model, q, constraint_motion=constraint_motion))


def _rank(A: Array) -> tuple[int, tuple[float, float]]:
    s = np.linalg.svd(A, compute_uv=False)
    rank = int(is_significant(s).sum())
    return rank, (float(s[rank - 1]) if rank else 0.0, float(s[rank]) if rank < len(s) else 0.0)


def _dependent_equations(A: Array, rank: int) -> list[int]:
    """Return the equations that follow from those before them, A.shape[0] - rank of them."""
    basis, remainders = np.zeros((0, A.shape[1])), np.zeros(len(A))
    for r, row in enumerate(A):
        rest = row
        for _ in range(2):                                # again, against rounding
            rest = rest - basis.T @ (basis @ rest)
        remainders[r] = np.linalg.norm(rest)
        if remainders[r] > RANK:
            basis = np.vstack([basis, rest / remainders[r]])
    return sorted(np.argsort(remainders, kind="stable")[:len(A) - rank].tolist())


def _generic_rank(model: Model, q: ArrayLike, constraint_motion: Mapping[str, Any] | None, rank: int,
                  rng: np.random.Generator, columns: slice | Mask = slice(None)) -> tuple[int, bool]:
    """Return the maximum rank of these columns at q and at closed configurations near q, and whether q is the only one."""
    search = BranchSearch(model, constraint_motion=constraint_motion, limits=False)
    unit = coordinate_scales(model)
    generic, rigid = rank, True
    for _ in range(_N_NEIGHBOURS):
        solution = search.close(integrate(model, q, _NEIGHBOUR_DISTANCE * unit * rng.standard_normal(model.nv)))
        if not solution.closed:
            continue
        rigid = rigid and bool(np.linalg.norm(difference(model, q, solution.q) / unit) < _MIN_MOVEMENT * _NEIGHBOUR_DISTANCE)
        generic = max(generic, int(scaled_rank(scaled_jacobian(model, solution.q, constraint_motion)[:, columns])))
    return generic, rigid
