"""Models whose linear couplings and mimic joints are eliminated: q = G y + c with independent coordinates y.

`kernels.couplings` computes with them; `model.couplings` chooses the followers.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, overload

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_finite, follower_values, raise_for_followers
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ConfigurationError, ModelError, UsageError, list_names
from liedyn.joints.joint_model import FOLLOWER_COUNT, TERM_COUNT, tree_views
from liedyn.kernels.couplings import FOLLOWER_TOLERANCE, coupling_views
from liedyn.model.coupling_functions import evaluate
from liedyn.model.couplings import Elimination, FunctionCoupling, undefined_function
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model


@dataclass(frozen=True)
class _ReducedModelKey:
    """Key of a model whose couplings are eliminated. prescribed: the mask of prescribed coordinates as bytes."""

    prescribed: bytes


class ReducedModel(NamedTuple):
    """A model for the kernels whose couplings are eliminated, for one mask of prescribed coordinates.

    model  the open tree with the couplings at the end of its arrays
    mask   (nv,) bool: prescribed coordinates and all followers
    """

    model: Model
    mask: Mask
    elimination: Elimination

    @property
    def is_independent(self) -> Mask:
        """Return (nv,) bool."""
        mask = np.ones(len(self.mask), dtype=bool)
        mask[self.elimination.follower] = False
        return mask


def raise_for_constraints(model: Model, function: str, instead: str | None = None) -> NoReturn:
    """Raise ModelError for a robot with constraints (`model.nc`), with the name of the function that includes them."""
    names = [constraint.name for constraint in model.constraints]
    use = f"use {instead}, or " if instead else "no function includes them; "
    raise ModelError(f"{function} does not account for the constraints of robot {model.name} ({list_names(names, 4)})",
                     hint=f"{use}model.spanning_tree() for the robot without them; see docs/loops.md#dynamics")


def reduced_model(model: Model, function: str, instead: str | None = None, prescribed: Mask | None = None) -> ReducedModel:
    """Return the model with eliminated couplings. Prescribed coordinates are independent as far as the couplings allow it.

    Raises ModelError for a robot with loops: see `raise_for_constraints`, also for function and instead.
    """
    if not model.has_only_linear_couplings:
        raise_for_constraints(model, function, instead)
    mask = np.zeros(model.nv, dtype=bool) if prescribed is None else prescribed
    return model.cached(_ReducedModelKey(mask.tobytes()), lambda: _reduced_model(model, mask))


def _reduced_model(model: Model, prescribed: Mask) -> ReducedModel:
    elimination, tree, q_of_v = model.elimination(prescribed), model.spanning_tree(), _q_of_v(model)
    rows, terms = np.nonzero(elimination.ratios)
    follower = elimination.follower
    first = np.searchsorted(rows, np.arange(len(follower) + 1))
    index = np.concatenate([tree.index, follower, q_of_v[follower], prescribed[follower], first, terms, q_of_v[terms],
                            *_pattern(model, elimination)]).astype(np.int64)
    index[[FOLLOWER_COUNT, TERM_COUNT]] = len(follower), len(terms)
    time = model_scales(model).time
    rounding = FOLLOWER_TOLERANCE * np.outer([1.0, 1.0 / time, 1.0 / time**2], coordinate_scales(model)[follower])
    constants = np.concatenate([tree.constants, elimination.ratios[rows, terms], elimination.offset, rounding.ravel()])
    mask = prescribed.copy()
    mask[follower] = True
    reduced = tree._copy(index=index, constants=constants)
    vars(reduced)["single_calls"] = model.single_calls          # functions of the model find what its reduced models store
    return ReducedModel(reduced, mask, elimination)


@overload
def expand(model: Model, y: ArrayLike) -> Array: ...
@overload
def expand(model: Model, y: ArrayLike, dy: ArrayLike) -> tuple[Array, Array]: ...
@overload
def expand(model: Model, y: ArrayLike, dy: ArrayLike, ddy: ArrayLike) -> tuple[Array, Array, Array]: ...


def expand(model: Model, y: ArrayLike, dy: ArrayLike | None = None,
           ddy: ArrayLike | None = None) -> Array | tuple[Array, ...]:
    """Return the configuration of a robot, or also v and a, from its independent coordinates.

    Couplings and mimic joints determine the other coordinates: q = G y + c, or q_f = f(q_d) where they are nonlinear.

    Parameters
    ----------
    model : Model
        Without loops. Without couplings, all coordinates are independent.
    y : (..., nq - nf) array
        q without the coordinates that follow others [rad | m]; nf is their number.
    dy, ddy : (..., nv - nf) arrays, optional
        Velocity and acceleration of the coordinates ``model.independent``.

    Returns
    -------
    q, or (q, v), or (q, v, a)
        As many as are given: (..., nq) and (..., nv) arrays.

    Raises
    ------
    ShapeError, UsageError
    ConfigurationError
        Outside the domain of the function of a nonlinear coupling.
    ModelError
        For a robot with loops: see `assemble`.

    Examples
    --------
    >>> model = ld.load("robots/panda.yaml")
    >>> y = np.zeros(len(model.independent))
    >>> ld.expand(model, y).shape == (model.nq,)
    True
    """
    if not model.has_only_couplings:
        raise_for_constraints(model, "expand", "assemble")
    if ddy is not None and dy is None:
        raise UsageError("ddy is given without dy (give both)")
    independent, moving = np.flatnonzero(~model.follows), _moving_positions(model)
    n = len(independent)
    rates = [as_array(x, name, (n,)) for name, x in (("dy", dy), ("ddy", ddy)) if x is not None]
    parts = [as_array(y, "y", (len(moving),)), *rates]
    full = [np.zeros((*x.shape[:-1], model.nv if level else model.nq)) for level, x in enumerate(parts)]
    for level, (whole, part) in enumerate(zip(full, parts, strict=True)):
        whole[..., independent if level else moving] = part
    motion = follow_couplings(model, *full)
    return motion if len(motion) > 1 else motion[0]


@overload
def reduce(model: Model, q: ArrayLike) -> Array: ...
@overload
def reduce(model: Model, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]: ...
@overload
def reduce(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]: ...


def reduce(model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None) -> Array | tuple[Array, ...]:
    """Return the independent coordinates of a configuration, or also of v and a: the inverse of `expand`.

    Parameters
    ----------
    model : Model
        Without loops.
    q : (..., nq) array
    v, a : (..., nv) arrays, optional

    Returns
    -------
    y, or (y, dy), or (y, dy, ddy)

    Raises
    ------
    ShapeError, UsageError
    ConfigurationError
        Where coordinates contradict the couplings.
    ModelError
        For a robot with loops.

    Examples
    --------
    >>> model = ld.load("robots/panda.yaml")
    >>> ld.reduce(model, ld.expand(model, np.zeros(len(model.independent)))).tolist() == [0.0] * len(model.independent)
    True
    """
    if not model.has_only_couplings:
        raise_for_constraints(model, "reduce")
    if a is not None and v is None:
        raise UsageError("a is given without v (give both)")
    motion = checked_motion(model, *(x for x in (q, v, a) if x is not None))
    places = (_moving_positions(model), *(np.flatnonzero(~model.follows),) * 2)
    parts = tuple(x[..., k] for x, k in zip(motion, places, strict=False))
    return parts if len(parts) > 1 else parts[0]


def _moving_positions(model: Model) -> Integers:
    """Return the indices in q of the coordinates that do not follow others."""
    return np.setdiff1d(np.arange(model.nq), _q_of_v(model)[model.follows])


def follow_couplings(model: Model, *motion: Array) -> tuple[Array, ...]:
    """Return q (…, nq), v and a (…, nv), as many as are given, with followers moved to their values.

    Robots with loops and robots without couplings: the motion as it is. Raises ConfigurationError outside the domain of the
    function of a nonlinear coupling.
    """
    followed = follow_couplings_unchecked(model, *motion)
    if model.function_couplings and model.has_only_couplings:
        text = undefined_function(model.function_couplings, followed[0], model.q_names, len(followed) - 1)
        if text:
            raise ConfigurationError(text)
    return followed


def follow_couplings_unchecked(model: Model, *motion: Array) -> tuple[Array, ...]:
    """Return the motion of `follow_couplings`, with NaN or infinite values outside the domain of a function."""
    if not (model.nc and model.has_only_couplings):
        return motion
    elimination, functions = model.elimination(model.function_followers), model.function_couplings
    if functions:                                              # rates depend on q
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in motion))
        motion = tuple(np.broadcast_to(x, (*lead, x.shape[-1])) for x in motion)
    motion = _follow_linear_couplings(model, elimination, *motion)
    for _ in functions:                                        # each pass gives the followers of those that are right before it
        motion = _follow_linear_couplings(model, elimination, *_follow_functions(functions, *motion))
    return motion


def _follow_linear_couplings(model: Model, elimination: Elimination, q: Array, *rates: Array) -> tuple[Array, ...]:
    q, places = q.copy(), _q_of_v(model)
    q[..., places[elimination.follower]] = (q[..., places[elimination.independent]]
                                            @ elimination.ratios[:, elimination.independent].T + elimination.offset)
    return q, *(x @ elimination.projection.T for x in rates)


def _follow_functions(functions: Sequence[FunctionCoupling], q: Array, *rates: Array) -> tuple[Array, ...]:
    """Write q_f = f(q_d), v_f = f' v_d and a_f = f' a_d + f'' v_d^2 to the arrays, and return them."""
    for coupling in functions:
        f, df, ddf, _ = evaluate(coupling.program, q[..., coupling.driver.q])
        q[..., coupling.follower.q] = f
        for level, x in enumerate(rates):
            x[..., coupling.follower.v] = df * x[..., coupling.driver.v] + (ddf * rates[0][..., coupling.driver.v]**2 if level
                                                                            else 0.0)
    return q, *rates


def checked_motion(model: Model, *motion: ArrayLike) -> tuple[Array, ...]:
    """Return q (…, nq), v and a (…, nv), as many as are given, with the values of followers, also of nonlinear couplings.

    Raises ConfigurationError where a value of a follower contradicts its couplings.
    """
    if not model.function_couplings:
        return closed_motion(reduced_model(model, "reduce"), *motion)
    arrays = tuple(as_array(x, name, (model.nv if level else model.nq,))
                  for level, (name, x) in enumerate(zip(("q", "v", "a"), motion, strict=False)))
    for level, (name, x) in enumerate(zip("qva", arrays, strict=False)):
        check_finite(name, x, model.v_names if level else model.q_names)
    followed, units, places = follow_couplings(model, *arrays), coordinate_scales(model), _q_of_v(model)
    for level, (name, array, expected) in enumerate(zip("qva", arrays, followed, strict=False)):
        x, y = (z if level else z[..., places] for z in (np.broadcast_to(array, expected.shape), expected))
        sizes = np.maximum(np.abs(y), units / model_scales(model).time**level)
        errors = np.where(model.follows, np.abs(x - y) / sizes, 0.0)
        if not errors.max(initial=0.0) <= FOLLOWER_TOLERANCE:
            at = np.unravel_index(np.argmax(errors), errors.shape)
            raise ConfigurationError(f"{name} ({model.v_names[at[-1]]}) contradicts the couplings of robot {model.name}: "
                                     f"expected {y[at]:.12g}, got {x[at]:.12g} (ld.expand computes it; model.spanning_tree() is "
                                     "the robot without couplings)")
    return followed


def _q_of_v(model: Model) -> Integers:
    """Return (nv,) the index in q of each single coordinate; 0 for those of ball and free joints."""
    places = np.zeros(model.nv, dtype=np.int64)
    tree = tree_views.py_func(model.index, model.constants)
    single = tree.kind[1:] == ONE_DOF
    places[tree.iv[1:][single]] = tree.iq[1:][single]
    return places


def closed_motion(reduced: ReducedModel, *motion: ArrayLike) -> tuple[Array, ...]:
    """Return q (…, nq), v and a (…, nv), as many as are given, with the values of followers.

    Raises ConfigurationError where a value of a follower contradicts its couplings.
    """
    model = reduced.model
    return tuple(_closed(model, name, level, as_array(x, name, (model.nq if level == 0 else model.nv,)))
                 for level, (name, x) in enumerate(zip(("q", "v", "a"), motion, strict=False)))


def closed_rates(reduced: ReducedModel, name: str, x: Array, order: int) -> Array:
    """Return derivatives x (…, rows, nv) of q, the first of this order, with the values of followers: see `closed_motion`."""
    return np.stack([_closed(reduced.model, name, order + k, x[..., k, :]) for k in range(x.shape[-2])], axis=-2)


def _closed(model: Model, name: str, level: int, x: Array) -> Array:
    rows = x.reshape(-1, x.shape[-1]).copy()
    check_finite(name, rows, model.v_names if level else model.q_names)
    values, excess = follower_values(model, level, rows)
    if (excess > 1.0).any():
        raise_for_followers(model, name, level, {name: rows})
    couplings = coupling_views.py_func(model.index, model.constants)
    rows[:, couplings.follower if level else couplings.follower_q] = values
    return rows.reshape(x.shape)


def _pattern(model: Model, elimination: Elimination) -> tuple[Integers, Integers, Integers]:
    """Return above, top and last of the coordinates for the reduced mass matrix.

    Independent coordinates of branches that couplings connect form one chain; a follower is on no path.
    """
    nv = model.nv
    branch = model.paths[1].copy()                              # the first coordinate of each branch of the tree
    for follower, ratios in zip(elimination.follower, elimination.ratios, strict=True):
        joined = np.unique(branch[[follower, *np.flatnonzero(ratios)]])
        branch[np.isin(branch, joined)] = joined[0]
    above, top, last = np.full(nv, -1), np.arange(nv), np.arange(nv)
    for b in np.unique(branch[elimination.independent]):
        chain = elimination.independent[branch[elimination.independent] == b]
        above[chain[1:]], top[chain], last[chain] = chain[:-1], chain[0], chain[-1]
    last[elimination.follower] -= 1
    return above, top, last


def solve_positive_definite(M: Array, x: Array) -> Array:
    """Return M^-1 x for symmetric positive definite M (…, n, n) and x (…, n), with digits that do not depend on the units."""
    scale = 1.0 / np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    solution: Array = scale * np.linalg.solve(scale[..., None] * M * scale[..., None, :], (scale * x)[..., None])[..., 0]
    return solution
