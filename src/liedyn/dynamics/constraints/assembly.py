"""The closed configuration nearest to a guess."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, short
from liedyn.dynamics.batching.arrays import as_single_state
from liedyn.dynamics.constraints.branch_search import BranchSearch, Solution
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.mobility import Mobility, freer_coordinates, mobility, scaled_jacobian
from liedyn.dynamics.constraints.rank import scaled_rank
from liedyn.dynamics.kinematics import link_pose
from liedyn.dynamics.manifold import generator_of_seed
from liedyn.dynamics.scales import model_scales
from liedyn.errors import NameLookupError, UsageError
from liedyn.immutable import Immutable
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names, values_by_name

# rad or lengths, up to whole turns: assemblies that are closer are the same one. Sliding to the nearest ends within it
_SAME_ASSEMBLY = 1e-3
_OWN_POINTS = 2          # of a link, at which nothing else is connected: its origin and its centre of mass


@dataclass(frozen=True, eq=False)
class Assembly(Immutable):
    """A configuration that closes all loops, as returned by `assemble`.

    q            (nq,)
    residual     maximum remaining residual [rad | m]
    open_before  maximum residual of the initial guess
    mobility     degrees of freedom, redundant equations, whether it is singular (`Mobility`)
    moved        distance from the guess: root of the sum of squares, radians and metres in characteristic lengths of the loops
    iterations   Gauss-Newton steps until the loops were closed, of all starts
    restarts     number of random starts that were needed in addition to the guess
    at_limits    coordinates that are at a limit
    degenerate   coordinates that move in more ways than in other assemblies, if it is one of `assemblies`

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> found = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"])
    >>> found.q.round(3), found.mobility.degrees
    (array([ 1.2  , -0.533,  1.44 ]), 1)
    """

    q: Array
    residual: float
    open_before: float
    mobility: Mobility
    moved: float
    iterations: int
    restarts: int
    at_limits: tuple[str, ...]
    degenerate: tuple[str, ...] = ()

    def __repr__(self) -> str:
        limits = f", at limits: {', '.join(self.at_limits)}" if self.at_limits else ""
        degrees = f"{self.mobility.degrees} degree{'' if self.mobility.degrees == 1 else 's'} of freedom"
        return (f"<Assembly: q {short(self.q)}, residual {self.residual:.1e}, {degrees}"
                f"{', singular' if self.singular else ''}{', degenerate' if self.degenerate else ''}{limits}>")

    @property
    def singular(self) -> bool:
        """Whether the configuration is singular (see `Mobility.singular`)."""
        return self.mobility.singular

    @property
    def redundant(self) -> tuple[str, ...]:
        """The names of the redundant constraint equations (see `Mobility.redundant`)."""
        return self.mobility.redundant


@np.errstate(over="ignore", invalid="ignore")                # a guess far out of reach gives a large residual
def assemble(model: Model, q_guess: ArrayLike | Mapping[str, ArrayLike] | None = None, *, fixed: Sequence[str] = (),
             tolerance: float = 1e-12, constraint_motion: Mapping[str, Any] | None = None, seed: int = 0) -> Assembly:
    """Return the configuration nearest to the guess that closes all loops and satisfies all couplings and joint limits.

    Parameters
    ----------
    model : Model
    q_guess : (nq,) array or {joint or pattern: position}, optional
        Default: the neutral configuration. Values beyond joint limits are moved to the limits.
    fixed : names or patterns, optional
        Joints, or coordinates such as "u.1", that keep the values of the guess.
    tolerance : float
        Largest residual that counts as closed [rad | metres per characteristic length of the loop].
    constraint_motion : optional
        Motion of the frames of driven loops, as for `constraint_residual`.
    seed : int
        Seed of further starts around the guess.

    Raises
    ------
    ComputationError
        If no closed configuration is found: names the loop with the maximum residual, the residual, and the joints at their
        limits.
    ModelError
        For a model without constraints.
    NameLookupError, ShapeError, ConfigurationError

    Notes
    -----
    The result is the nearest configuration on the branch to which the guess leads. If its distance exceeds 0.25 (radians, and
    metres in characteristic lengths of the loops), eight further starts search for a nearer branch. Joints make no whole turns.

    Axes that should coincide but point in opposite directions have a residual of 2, so such a branch is never selected.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> ld.assemble(model, {"crank": 1.2, "[kr]*": 0.5}, fixed=["crank"])
    <Assembly: q [ 1.2      -0.533022  1.439784], residual ..., 1 degree of freedom>
    """
    check_has_constraints(model)
    guess = configuration(model, q_guess)
    search = BranchSearch(model, coordinate_mask(model, fixed), constraint_motion, tolerance=tolerance)
    best, steps, restarts = search.find(guess, seed)
    return _assembly(search, best, guess, steps, restarts, seed)


def _assembly(search: BranchSearch, solution: Solution, guess: Array, steps: int, restarts: int, seed: int) -> Assembly:
    q = solution.q
    return Assembly(q, solution.max_residual, search.at(guess).max_residual,
                    mobility(search.model, q, constraint_motion=search.constraint_motion, seed=seed), search.distance(q, guess),
                    steps, restarts, search.at_limits(q))


@np.errstate(over="ignore", invalid="ignore")
def assemblies(model: Model, q_guess: ArrayLike | Mapping[str, ArrayLike] | None = None, *, fixed: Sequence[str] = (),
               searches: int = 40, tolerance: float = 1e-12, constraint_motion: Mapping[str, Any] | None = None,
               seed: int = 0) -> tuple[Assembly, ...]:
    """Return the different assemblies that searches from the guess and from random configurations reach, the nearest first.

    Parameters
    ----------
    model : Model
    q_guess : (nq,) array or {joint or pattern: position}, optional
        As for `assemble`.
    fixed : names or patterns, optional
        Joints, or coordinates such as "u.1", that keep the values of the guess, such as drivers. If the mechanism can still move,
        each assembly is the nearest one to the guess of those that the mechanism reaches from it without a longer way.
    searches : int
        Number of searches. An assembly that few starts lead to may be missed.
    tolerance, constraint_motion : optional
        As for `assemble`.
    seed : int
        Seed of the random configurations: within joint limits, or half a turn or a length of the loop about the guess.

    Returns
    -------
    assemblies : tuple of Assembly
        `Assembly.degenerate` names coordinates that move in more ways than in the assembly with the fewest degrees of freedom.

    Raises
    ------
    ComputationError
        If no search finds an assembly.
    ModelError, UsageError, NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> [x.q.round(2).tolist() for x in ld.assemblies(model, {"crank": 1.2}, fixed=["crank"])]
    [[1.2, -0.53, 1.44], [1.2, -2.9, -2.47]]
    """
    check_has_constraints(model)
    if searches < 1:
        raise UsageError(f"searches: expected a number >= 1, got {searches}")
    guess, rng = configuration(model, q_guess), generator_of_seed(seed, 2)
    search = BranchSearch(model, coordinate_mask(model, fixed), constraint_motion, tolerance=tolerance)
    results: list[Assembly] = []
    best, places = None, _Places(search)
    for k in range(searches):
        solution = search.close(search.within(guess) if k == 0 else search.random_start(guess, rng))
        if solution.closed:
            steps, solution = solution.steps, search.slide_to_nearest(search.unwind(solution, guess), guess)
            same = [j for j, other in enumerate(results) if search.turned_distance(solution.q, other.q) <= _SAME_ASSEMBLY
                    or places.are_equal(solution.q, other.q)]
            if not same:
                results.append(_assembly(search, solution, guess, steps, k, seed))
            elif search.distance(solution.q, guess) < results[same[0]].moved - _SAME_ASSEMBLY:
                results[same[0]] = _assembly(search, solution, guess, steps, k, seed)
        best = solution if best is None or solution.size < best.size else best
    if not results:
        assert best is not None
        raise search.closure_error(best, searches - 1)
    results.sort(key=lambda each: (round(each.moved, 6), *each.q.round(6)))
    usual = max(results, key=lambda each: each.mobility.rank)
    return tuple(with_degenerate(model, each, usual.q, constraint_motion) for each in results)


class _Places:
    """Places of links, by which assemblies are compared in which only joints with several axes have other coordinates.

    Such joints have two sets of angles for a pose. A universal joint has two for a direction: a leg between it and a ball
    joint is then turned by half a turn about its line, which moves no point at which the leg is connected.
    """

    def __init__(self, search: BranchSearch):
        self.search, model, robot = search, search.model, search.model.description
        self.length = model_scales(model).length
        self.single = np.zeros(model.nv, dtype=bool)
        for joint in model.joints:
            self.single[joint.v] = joint.kind == ONE_DOF and joint.v.stop - joint.v.start == 1
        ends = [(joint.parent, joint.origin) for joint in robot.joints]
        ends += [end for loop in robot.loops for end in ((loop.a, loop.pose_a), (loop.b, loop.pose_b))]
        ends += [end for element in robot.elements for end in ((element.a, element.pose_a), (element.b, element.pose_b))]
        self.points = {link.name: np.array([(0.0, 0.0, 0.0), link.com, *(frame.translation for name, frame in ends
                                                                      if name == link.name)]) for link in robot.links}

    def are_equal(self, q: Array, other: Array) -> bool:
        """Return whether coordinates of single axes agree, and of each link the pose, or the points at which it is connected."""
        if self.single.all() or self.search.turned_distance(q, other, self.single) > _SAME_ASSEMBLY:
            return False
        for name, points in self.points.items():
            change = (link_pose(self.search.model, q, name) - link_pose(self.search.model, other, name))[:3]
            moved = np.abs(points @ change[:, :3].T + change[:, 3]).max() > _SAME_ASSEMBLY * self.length
            if moved or (len(points) == _OWN_POINTS and np.abs(change[:, :3]).max() > _SAME_ASSEMBLY):
                return False
        return True


def with_degenerate(model: Model, assembly: Assembly, usual_q: Array,
                    constraint_motion: Mapping[str, Any] | None = None) -> Assembly:
    """Return an assembly with the names of the coordinates that move in more ways than at `usual_q`, if all nearby do."""
    reference = scaled_jacobian(model, usual_q, constraint_motion)
    if assembly.mobility.generic_rank >= scaled_rank(reference):
        return assembly
    freer = freer_coordinates(scaled_jacobian(model, assembly.q, constraint_motion), reference)
    return replace(assembly, degenerate=tuple(model.v_names[k] for k in freer))


def configuration(model: Model, values: ArrayLike | Mapping[str, ArrayLike] | None) -> Array:
    """Return a configuration (nq,) from an array, or from positions by joint or pattern, with other joints neutral."""
    if values is None:
        return model.neutral()
    if not isinstance(values, Mapping):
        return as_single_state(values, "q_guess", (model.nq,)).copy()
    q = model.neutral()
    for name, value in values_by_name(values, model.joint_names, "moving joint").items():
        part = model.q_index(name)
        q[part] = as_single_state(np.atleast_1d(np.asarray(value, dtype=float)), f"position of {name!r}",
                                  (part.stop - part.start,))
    return q


def coordinate_mask(model: Model, names: Sequence[str]) -> Mask:
    """Return the mask (nv,) of the joints or coordinates with these names or patterns."""
    mask = np.zeros(model.nv, dtype=bool)
    for name in [names] if isinstance(names, str) else names:
        joints = matching_names(name, model.joint_names)
        if joints:
            for joint in joints:
                mask[model.v_index(joint)] = True
        elif name in model.v_names and model.v_names.index(name) not in _quaternion_coordinates(model):
            mask[model.v_names.index(name)] = True
        else:
            model.joint(name)                              # NameLookupError with the valid names
            raise NameLookupError(f"no joint {name!r} to fix")
    return mask


def _quaternion_coordinates(model: Model) -> set[int]:
    return {k for joint in model.joints if joint.kind != ONE_DOF for k in range(joint.v.start, joint.v.stop)}
