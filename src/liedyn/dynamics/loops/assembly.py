"""From a guess to a configuration that closes all loops, and along the closed configurations to the one nearest to the guess."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import short
from liedyn.dynamics.calling.annotations import Array, ArrayLike
from liedyn.dynamics.calling.arguments import as_array
from liedyn.dynamics.loops.closing import Search
from liedyn.dynamics.loops.constraints import require_constraints
from liedyn.dynamics.loops.mobility import Mobility, mobility
from liedyn.errors import NameLookupError, ShapeError
from liedyn.immutable import Immutable
from liedyn.joints.kinds import SCREW
from liedyn.model.model import Model


@dataclass(frozen=True, eq=False)
class Assembly(Immutable):
    """A configuration that closes all loops.

    q            (nq,)
    residual     largest remaining residual [rad | m]
    open_before  largest residual of the initial guess
    mobility     degrees of freedom, redundant rows, whether it is singular (`Mobility`)
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
        return self.mobility.singular

    @property
    def redundant(self) -> tuple[str, ...]:
        return self.mobility.redundant


@np.errstate(over="ignore", invalid="ignore")               # of a guess far beyond reach: the residual tells
def assemble(model: Model, q_guess: ArrayLike | None = None, *, fixed: Sequence[str] = (), tolerance: float = 1e-12,
             drive: Mapping[str, Any] | None = None, seed: int = 0) -> Assembly:
    """The configuration nearest to the guess that closes all loops and satisfies all couplings and joint limits.

    Parameters
    ----------
    model : Model
    q_guess : (nq,) array, optional
        Default: the neutral configuration. Values beyond joint limits are moved to the limits.
    fixed : names, optional
        Joints, or coordinates such as "u.1", that keep the values of the guess.
    tolerance : float
        Largest residual that counts as closed [rad | metres per characteristic length of the loop].
    drive : optional
        Motion of the frames of driven loops, as for `constraint_residual`.
    seed : int
        Seed of further starts around the guess.

    Raises
    ------
    ComputationError
        If no closed configuration is found: names the loop with the largest residual, the residual, and the joints at their
        limits.
    ModelError
        For a model without constraints.
    NameLookupError, ShapeError, ConfigurationError

    Notes
    -----
    The nearest configuration on the branch that the guess leads to. Where that is farther than 0.25 (radians, and metres in
    characteristic lengths of the loops), eight further starts look for a nearer branch. Joints make no whole turns.

    Axes that should coincide but point in opposite directions have a residual of 2, so such a branch is never selected.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"])
    <Assembly: q [ 1.2      -0.533022  1.439784], residual ..., 1 degree of freedom>
    """
    require_constraints(model)
    guess = model.neutral() if q_guess is None else as_array(q_guess, "q_guess", (model.nq,))
    if guess.ndim != 1:
        raise ShapeError(f"q_guess must be a single configuration; found {guess.shape}")
    search = Search(model, coordinates_of(model, fixed), drive, tolerance=tolerance)
    best, steps, restarts = search.find(guess, seed)
    return Assembly(best.q, best.worst, search.at(guess).worst, mobility(model, best.q, drive=drive, seed=seed),
                    search.distance(best.q, guess), steps, restarts, search.at_limits(best.q))


def coordinates_of(model, names: Sequence[str]) -> np.ndarray:
    """(nv,) mask of the joints, or coordinates, of those names."""
    mask = np.zeros(model.nv, dtype=bool)
    for name in [names] if isinstance(names, str) else names:
        if name in model.joint_names:
            mask[model.v_index(name)] = True
        elif name in model.v_names and model.v_names.index(name) not in _quaternions(model):
            mask[model.v_names.index(name)] = True
        else:
            model.joint(name)                             # NameLookupError with the names that there are
            raise NameLookupError(f"no joint {name!r} to keep")
    return mask


def _quaternions(model) -> set[int]:
    return {k for joint in model.joints if joint.kind != SCREW for k in range(joint.v.start, joint.v.stop)}
