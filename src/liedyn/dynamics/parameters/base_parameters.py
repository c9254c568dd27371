"""Base parameters: the combinations of inertial parameters that forces depend on, named in the user's terms."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Integers
from liedyn.dynamics.calling.annotations import Array, ArrayLike
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.dynamics.parameters.regressor import OF_A_LINK, InertialParameters, inertial_parameters, regressor
from liedyn.dynamics.scales import Scales, scales_of
from liedyn.errors import ComputationError
from liedyn.immutable import Immutable
from liedyn.joints.kinds import FREE, FRICTION_SPEED, SCREW
from liedyn.model.model import Model

# All of these judge the regressor in characteristic units of the robot (`scales`): masses, first moments and moments of inertia,
# joint torques and joint forces are numbers of one kind there.
TOLERANCE = 1e-10     # of the strongest parameter's effect: one with less has no effect but rounding
WEAK = 1e-4           # of the same: a parameter with less acts because an angle of the robot file is not quite a right one
_CLEAR = 1e3          # minimum ratio between the last pivot of the rank and the first beyond it
_WELL = 1e-2          # of a normalized column: a distance from the columns already kept that does no harm to the condition
_ROUNDING = 1e-13     # of normalized columns: eps times the number of operations
_WHOLE = 1e-12        # of a coefficient: a whole number that near is its value; of characteristic units: 0 is
_TOLD = 1e-5          # of the largest coefficient of a parameter: a regrouping leaves out terms with less
_FRICTION_SPEEDS = 5.0     # random velocities of joints with friction, in speeds below which friction is smoothed: with less it
                           # could not be told from damping
_OFFERED = ("hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mass")     # which of a link's ten are kept first


@dataclass(frozen=True, eq=False)
class BaseParameters(Immutable):
    """Independent parameters, each standing for itself and for what is regrouped with it.

    names, units      (b,) of the parameters kept
    columns           (b,) where they stand among all parameters
    values            (b,) matrix @ parameters.values: those of the model
    matrix            (b, P): base parameters from all parameters; `Y pi` is `Y[..., columns] (matrix pi)`
    condition         of the normalized columns kept, over the states that they were found from
    unidentifiable    names of the parameters on which no force depends
    weak              names of parameters that act through almost right angles only (less than 1e-4 of the strongest)
    parameters        all parameters (`InertialParameters`)
    sizes             (P,) of all parameters: what one of their characteristic units is
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    columns: Integers
    values: Array
    matrix: Array
    condition: float
    unidentifiable: tuple[str, ...]
    weak: tuple[str, ...]
    parameters: InertialParameters
    sizes: Array

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        """A line a parameter, of the first twenty."""
        lines = [f"<BaseParameters: {len(self)} of {len(self.parameters.names)}, condition {self.condition:.3g}>"]
        lines += [f"  {x:12.6g} {unit}  {self.regrouping(k)}"
                  for k, (x, unit) in enumerate(zip(self.values[:20], self.units[:20], strict=True))]
        return "\n".join([*lines, *(["  …"] if len(self) > 20 else [])])

    def regrouping(self, k: int) -> str:
        """Base parameter k as a sum of parameters, itself first: 'hx.link2 + 0.4 mass.link3'.

        Terms that are there only because an angle of the robot file is not quite a right one (1e-5 and less) are left out;
        they are in `matrix`."""
        terms = [self.names[k]]
        in_sizes = np.abs(self.matrix) / self.sizes[self.columns][:, None]
        for j in np.flatnonzero(in_sizes[k] > _TOLD * in_sizes.max(axis=0)):
            if j != self.columns[k]:
                c = self.matrix[k, j]
                size = "" if abs(c) == 1 else f"{abs(c):.6g} "
                terms.append(f"{'-' if c < 0 else '+'} {size}{self.parameters.names[j]}")
        return " ".join(terms)


def base_parameters(model: Model, *, passive: bool = False, joints: Sequence[str] | None = None,
                    states: tuple[ArrayLike, ...] | None = None, seed: int = 0, tolerance: float = TOLERANCE) -> BaseParameters:
    """Base (identifiable) parameters of a model: the identifiable combinations of its inertial parameters.

    Parameters
    ----------
    model : Model
    passive, joints
        As in `regressor`: which joint parameters are included.
    states : (q, v, a), optional
        Arrays (..., nq), (..., nv), (..., nv): identifiability from these states. Default: random states, also beyond the joint
        limits (the result is the same for any open set of states, and better conditioned for a large one).
    seed : int
        Seed of the random states. It affects the result by rounding only.
    tolerance : float
        A parameter whose effect relative to the strongest one is smaller counts as without effect. 1e-4 ignores effects
        that exist only because angles in the robot file are rounded (1.5708 for pi/2). Effects of masses, moments and
        inertias are compared in units of a characteristic length, mass and time of the robot.

    Returns
    -------
    BaseParameters

    Raises
    ------
    ModelError
        For a robot with loops or couplings, whose forces determine fewer parameters; use `Model.open_tree` for all.
    ComputationError
        If the rank of the regressor is not clear, or no parameter has an effect.
    NameLookupError, ShapeError, ConfigurationError
        As `regressor`.

    Notes
    -----
    Rank-revealing QR of the regressor over many states (Gautier 1991). The rank is the largest gap between pivots, which
    must be clear. Of dependent parameters the one nearer to the ground is kept, so that a link's mass is regrouped with its
    parents', as by hand; columns too close to those already kept are deferred, and pivoting completes the rank.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> [ld.base_parameters(model).regrouping(k) for k in (1, 2)]
    ['hz.upper - mass.lower', 'Iyy.upper + mass.lower']
    """
    if model.nc:
        refuse_constraints(model, "base_parameters")
    pi = inertial_parameters(model, passive=passive, joints=joints)
    units = scales_of(model)
    sizes = units.of_all(pi.units)
    if states is None:
        states = _random_states(model, len(pi.names), seed, units, smoothed=_smoothed(pi.names))
    Y = regressor(model, *states, passive=passive, joints=joints)
    if not Y.size:
        raise ComputationError(f"the robot {model.name} has no moving link with inertia: it has no base parameters")
    forces = units.of_forces(model.v_units)
    R = np.linalg.qr((Y * sizes / forces[:, None]).reshape(-1, len(pi.names)), mode="r")
    norms = np.linalg.norm(R, axis=0)
    strongest = norms.max(initial=0.0)
    live = np.flatnonzero(norms > tolerance * strongest)
    if not live.size:
        raise ComputationError(f"no joint force of the robot {model.name} depends on an inertial parameter in these states")
    X = R[:, live] / norms[live]
    kept = np.sort(_independent(X, _order([pi.names[k] for k in live]), _rank(X, tolerance)))
    matrix = np.zeros((len(kept), len(pi.names)))
    matrix[:, live] = _regrouping(X, kept, norms[live], strongest, sizes[live])
    columns = live[kept]
    gone = [name for name, column in zip(pi.names, matrix.T, strict=True) if not column.any()]
    weak = [name for name, norm in zip(pi.names, norms, strict=True) if norm <= WEAK * strongest and name not in gone]
    return BaseParameters(tuple(pi.names[k] for k in columns), tuple(pi.units[k] for k in columns), columns, matrix @ pi.values,
                          matrix, float(np.linalg.cond(X[:, kept])), tuple(gone), tuple(weak), pi, sizes)


def _smoothed(names: Sequence[str]) -> set[str]:
    """Coordinates with a column of friction."""
    return {owner for number, _, owner in (name.partition(".") for name in names) if number == "friction"}


def _random_states(model, parameters: int, seed: int, units: Scales, smoothed: set[str]) -> tuple[np.ndarray, ...]:
    """Three times as many equations as parameters; angles all around, slides a characteristic length either way."""
    from liedyn.dynamics.manifold import random_configuration
    rng = np.random.default_rng(seed)
    n = 20 + 3 * parameters // max(model.nv, 1)
    q = random_configuration(model, rng, n)
    reach = units.of_all(model.v_units)
    for joint in model.joints:
        if joint.kind == SCREW:
            span = np.where(np.array(model.v_units[joint.v]) == "rad", np.pi, reach[joint.v])
            q[:, joint.q] = rng.uniform(-span, span, (n, len(span)))
        elif joint.kind == FREE:
            q[:, joint.q.start:joint.q.start + 3] *= units.length
    v, a = rng.standard_normal((2, n, model.nv)) * np.stack([reach / units.time, reach / units.time**2])[:, None]
    rough = [name in smoothed for name in model.v_names]
    v[:, rough] *= np.maximum(1.0, _FRICTION_SPEEDS * FRICTION_SPEED * units.time / reach)[rough]
    return q, v, a


def _rank(X: np.ndarray, tolerance: float) -> int:
    """Rank of normalized columns: the largest gap between the pivots of QR; those below `tolerance` are nothing."""
    from scipy.linalg import qr
    pivots = np.abs(np.diag(qr(X, mode="r", pivoting=True)[0]))
    pivots = np.maximum(np.r_[pivots, np.zeros(X.shape[1] - len(pivots) + 1)], max(_ROUNDING, tolerance))
    ratios = pivots[:-1] / pivots[1:]
    rank = int(np.argmax(ratios)) + 1
    if ratios[rank - 1] < _CLEAR:
        raise ComputationError(f"the rank of the regressor is not clear for these states: the largest drop between pivots is "
                               f"{ratios.max():.2g} (about {rank} of {X.shape[1]} parameters); use more "
                               "states, or states that differ more")
    return rank


def _order(names: Sequence[str]) -> list[int]:
    """In which order columns are offered: links from the ground on, within a link by _OFFERED, joint parameters last."""
    def rank(k: int) -> tuple[int, int, int]:
        number, _, owner = names[k].partition(".")
        if number not in OF_A_LINK:
            return 1, k, 0
        return 0, places.setdefault(owner, k), _OFFERED.index(number)
    places: dict[str, int] = {}
    return sorted(range(len(names)), key=rank)


def _independent(X: np.ndarray, order: Sequence[int], rank: int) -> list[int]:
    """Indices of `rank` independent columns: those offered first, but for ill-conditioned ones."""
    left, kept, waiting = X.copy(), [], []
    for j in order:
        if len(kept) < rank and np.linalg.norm(left[:, j]) > _WELL:
            _keep(left, j, kept)
        else:
            waiting.append(j)
    while len(kept) < rank:
        j = max(waiting, key=lambda j: np.linalg.norm(left[:, j]))
        waiting.remove(j)
        _keep(left, j, kept)
    return kept


def _keep(left: np.ndarray, j: int, kept: list[int]) -> None:
    """Take the direction of column j out of all columns, twice against rounding."""
    x = left[:, j] / np.linalg.norm(left[:, j])
    for _ in range(2):
        left -= np.outer(x, x @ left)
    kept.append(j)


def _regrouping(X: np.ndarray, kept: np.ndarray, norms: np.ndarray, strongest: float, sizes: np.ndarray) -> np.ndarray:
    """(b, columns): every column of Y from those kept, without what is rounding."""
    C = np.linalg.lstsq(X[:, kept], X, rcond=None)[0]
    C[np.abs(C) < 0.1 * _ROUNDING * strongest / norms] = 0.0           # a weak column was scaled up, its rounding too
    C = C * norms / norms[kept][:, None]
    C[np.abs(C) < _WHOLE] = 0.0
    C = C * sizes[kept][:, None] / sizes
    C[:, kept] = np.eye(len(kept))
    whole = np.round(C)
    return np.where(np.abs(C - whole) < _WHOLE * np.abs(whole), whole, C) + 0.0
