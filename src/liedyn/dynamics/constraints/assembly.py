"""The closed configuration nearest to a guess."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, short
from liedyn.dynamics.batching.arrays import as_single_state
from liedyn.dynamics.constraints.branch_search import BranchSearch
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.mobility import Mobility, mobility
from liedyn.errors import NameLookupError
from liedyn.immutable import Immutable
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model


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

    def __repr__(self) -> str:
        limits = f", at limits: {', '.join(self.at_limits)}" if self.at_limits else ""
        degrees = f"{self.mobility.degrees} degree{'' if self.mobility.degrees == 1 else 's'} of freedom"
        return (f"<Assembly: q {short(self.q)}, residual {self.residual:.1e}, {degrees}"
                f"{', singular' if self.singular else ''}{limits}>")

    @property
    def singular(self) -> bool:
        """Whether the configuration is singular (see `Mobility.singular`)."""
        return self.mobility.singular

    @property
    def redundant(self) -> tuple[str, ...]:
        """The names of the redundant constraint equations (see `Mobility.redundant`)."""
        return self.mobility.redundant


@np.errstate(over="ignore", invalid="ignore")                # a guess far out of reach gives a large residual
def assemble(model: Model, q_guess: ArrayLike | None = None, *, fixed: Sequence[str] = (), tolerance: float = 1e-12,
             constraint_motion: Mapping[str, Any] | None = None, seed: int = 0) -> Assembly:
    """Return the configuration nearest to the guess that closes all loops and satisfies all couplings and joint limits.

    Parameters
    ----------
    model : Model
    q_guess : (nq,) array, optional
        Default: the neutral configuration. Values beyond joint limits are moved to the limits.
    fixed : names, optional
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
    >>> ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"])
    <Assembly: q [ 1.2      -0.533022  1.439784], residual ..., 1 degree of freedom>
    """
    check_has_constraints(model)
    guess = model.neutral() if q_guess is None else as_single_state(q_guess, "q_guess", (model.nq,))
    search = BranchSearch(model, coordinate_mask(model, fixed), constraint_motion, tolerance=tolerance)
    best, steps, restarts = search.find(guess, seed)
    return Assembly(best.q, best.max_residual, search.at(guess).max_residual,
                    mobility(model, best.q, constraint_motion=constraint_motion, seed=seed), search.distance(best.q, guess),
                    steps, restarts, search.at_limits(best.q))


def coordinate_mask(model: Model, names: Sequence[str]) -> Mask:
    """Return the mask (nv,) of the joints or coordinates with these names."""
    mask = np.zeros(model.nv, dtype=bool)
    for name in [names] if isinstance(names, str) else names:
        if name in model.joint_names:
            mask[model.v_index(name)] = True
        elif name in model.v_names and model.v_names.index(name) not in _quaternion_coordinates(model):
            mask[model.v_names.index(name)] = True
        else:
            model.joint(name)                              # NameLookupError with the valid names
            raise NameLookupError(f"no joint {name!r} to fix")
    return mask


def _quaternion_coordinates(model: Model) -> set[int]:
    return {k for joint in model.joints if joint.kind != ONE_DOF for k in range(joint.v.start, joint.v.stop)}
