"""The mobility of a closed configuration: degrees of freedom, redundant equations, singular configurations."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.constraints.branch_search import BranchSearch
from liedyn.dynamics.constraints.constraints import check_has_constraints, constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import (
    RANK,
    coordinate_scales,
    equation_weights,
    is_significant,
    row_and_null_space,
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

    degrees               degrees of freedom: nv minus the rank of A; for rolling, those of the velocity
    rank                  rank of A, by the rule of `dynamics.constraints.rank`
    redundant             names of constraint equations that depend on the equations before them
    generic_rank          maximum rank here and at neighbouring closed configurations
    rigid                 whether no neighbouring configuration is closed: movable to first order at most, for any value of
                          degrees
    gap                   smallest singular value that counts and largest that does not, of A scaled by the lever arms of its
                          loops: about one if constraints are independent, rounding if one follows from others
    immobile              names of coordinates that do not move here, to first order: fixed by constraints, or at a dead centre
    singular_equations    names of constraint equations that depend on others here, and not in neighbouring configurations
    singular_coordinates  names of coordinates that move in more ways here than in neighbouring configurations

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
    immobile: tuple[str, ...] = ()
    singular_equations: tuple[str, ...] = ()
    singular_coordinates: tuple[str, ...] = ()

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
    generic, rigid, near = rank, rank == model.nv, A
    if rank < min(model.nc, model.nv):
        generic, rigid, near = _generic_rank(model, q, constraint_motion, rank, rng)
    dependent, immobile = _dependent_equations(A, rank), np.flatnonzero(~_movable(row_and_null_space(A)[1]))
    singular: list[int] = []
    if rank < generic:
        singular = sorted({*dependent}.difference(_dependent_equations(near, generic)))
    freer = freer_coordinates(A, np.eye(model.nv) if rigid else near)
    equations, names = model.constraint_equation_names, model.v_names
    return Mobility(model.nv - rank, rank, tuple(equations[r] for r in dependent), generic, rigid, gap,
                    tuple(names[k] for k in immobile), tuple(equations[r] for r in singular), tuple(names[k] for k in freer))


def coordinate_groups(*motions: Array) -> list[Integers]:
    """Return the groups of coordinates that move together, by motions (f, n), orthonormal, of one or several configurations.

    Groups are the smallest ones whose motions do not depend on those of others: the projector onto the motions is block
    diagonal. Coordinates that are immobile in all configurations are in none.
    """
    labels = _components(np.max([np.abs(x.T @ x) for x in motions], axis=0))
    movable = np.any([_movable(x) for x in motions], axis=0)
    groups = [np.flatnonzero((labels == label) & movable) for label in range(labels.max(initial=-1) + 1)]
    return [group for group in groups if len(group)]


def nearby_configuration(model: Model, q: Array, fixed: Mask, constraint_motion: Mapping[str, Any] | None) -> Array | None:
    """Return a closed configuration (nq,) near q in which other coordinates than those of the mask differ; None without one."""
    search, rng = BranchSearch(model, fixed, constraint_motion, limits=False), generator_of_seed(0, 1)
    x = np.where(fixed, 0.0, _NEIGHBOUR_DISTANCE * search.unit * rng.standard_normal(model.nv))
    solution = search.close(integrate(model, q, x))
    return solution.q if solution.closed else None


def freer_coordinates(A: Array, reference: Array) -> Integers:
    """Return the coordinates that scaled equations A (m, n) let move in more ways than those of `reference`.

    Coordinates are compared in groups: those that move together by one of both.
    """
    motions, usual = (row_and_null_space(x)[1] for x in (A, reference))
    projectors = [x.T @ x for x in (motions, usual)]
    labels = _components(np.abs(projectors).max(axis=0))
    excess = np.bincount(labels, np.diag(projectors[0]) - np.diag(projectors[1]))
    return np.flatnonzero((np.round(excess) > 0)[labels] & _movable(motions))


def _movable(motions: Array) -> Mask:
    """Return which coordinates move in orthonormal motions (f, n)."""
    movable: Mask = np.linalg.norm(motions, axis=0) > RANK
    return movable


def _components(coupling: Array) -> Integers:
    """Return a label (n,) of each coordinate, the same for those between which the coupling (n, n) exceeds rounding."""
    labels: Integers = connected_components(coupling > RANK, directed=False)[1]
    return labels


# Kinds of assemblies of a robot ------------------------------------------------------------------------------------------

_N_ASSEMBLIES, _MAX_SEARCHES = 8, 20    # random assemblies that are compared, and searches for them


@dataclass(frozen=True, eq=False)
class MobilitySurvey:
    """Mobility of a robot in random assemblies.

    q           (nq,) an assembly with the fewest degrees of freedom
    mobility    at q
    immobile    coordinates that move in none of these assemblies
    degenerate  for each larger number of degrees of freedom: the number, and the coordinates that move in more ways
    at_zero     mobility at zero coordinates if loops are closed there, else None
    """

    q: Array
    mobility: Mobility
    immobile: tuple[str, ...]
    degenerate: tuple[tuple[int, tuple[str, ...]], ...]
    at_zero: Mobility | None


def survey_mobility(model: Model, seed: int = 0) -> MobilitySurvey:
    """Return the mobility of a robot with constraints in random assemblies within its joint limits.

    Raises ComputationError if no assembly is reached.
    """
    search, rng, neutral = BranchSearch(model), generator_of_seed(seed, 3), model.neutral()
    best, closed = search.close(search.within(neutral)), []
    for _ in range(_MAX_SEARCHES):
        solution = search.close(search.random_start(neutral, rng))
        best = solution if solution.size < best.size else best
        closed += [solution.q] if solution.closed else []
        if len(closed) == _N_ASSEMBLIES:
            break
    if not closed:
        raise search.closure_error(best, _MAX_SEARCHES)
    matrices = [scaled_jacobian(model, q) for q in closed]
    ranks = [int(scaled_rank(A)) for A in matrices]
    usual = int(np.argmax(ranks))
    still = np.all([~_movable(row_and_null_space(A)[1]) for A, rank in zip(matrices, ranks, strict=True) if rank == ranks[usual]],
                   axis=0)
    freer = {rank: A for A, rank in zip(matrices, ranks, strict=True) if rank < ranks[usual]}
    degenerate = tuple((model.nv - rank, tuple(model.v_names[k] for k in freer_coordinates(freer[rank], matrices[usual])))
                       for rank in sorted(freer, reverse=True))
    q = closed[usual]
    return MobilitySurvey(q, mobility(model, q, seed=seed), tuple(model.v_names[k] for k in np.flatnonzero(still)), degenerate,
                          mobility(model, neutral, seed=seed) if search.at(neutral).closed else None)


# Singular states of computations -----------------------------------------------------------------------------------------

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
                  rng: np.random.Generator, columns: slice | Mask = slice(None)) -> tuple[int, bool, Array]:
    """Return the maximum rank of these columns at q and at closed configurations near q, if q is the only one, and A of it."""
    search = BranchSearch(model, constraint_motion=constraint_motion, limits=False)
    unit = coordinate_scales(model)
    generic, rigid, A = rank, True, scaled_jacobian(model, q, constraint_motion)
    for _ in range(_N_NEIGHBOURS):
        solution = search.close(integrate(model, q, _NEIGHBOUR_DISTANCE * unit * rng.standard_normal(model.nv)))
        if not solution.closed:
            continue
        rigid = rigid and bool(np.linalg.norm(difference(model, q, solution.q) / unit) < _MIN_MOVEMENT * _NEIGHBOUR_DISTANCE)
        near = scaled_jacobian(model, solution.q, constraint_motion)
        near_rank = int(scaled_rank(near[:, columns]))
        if near_rank > generic:
            generic, A = near_rank, near
    return generic, rigid, A
