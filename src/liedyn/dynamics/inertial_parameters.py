"""Dynamics linear in the inertial parameters: the parameters themselves, and the regressors of torque, energy, momentum."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask, OnError
from liedyn.dynamics.batching.calls import evaluate, raise_for_code, run
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.constraints.loop_reduction import loop_reduction, projected, projection_at
from liedyn.dynamics.force_elements import check_without_elements
from liedyn.dynamics.scales import Scales, model_scales
from liedyn.errors import ComputationError, NameLookupError, UsageError, summarized, unknown_name
from liedyn.immutable import Immutable
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.regressor import (
    contraction_workspace_size,
    contractions,
    energy_momentum_regressors,
    regressor_workspace_size,
    regressors,
    slotine_li_regressors,
)
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names
from liedyn.model.spatial import inertia_from_link

LINK_PARAMETERS = ("mass", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
JOINT_PARAMETERS = ("armature", "damping", "friction", "stiffness", "offset")
# in the order of the kernel's layout
_COORDINATE_PARAMETERS = ("armature", "damping", "friction", "stiffness", "preload", "offset")
LINK_UNITS = ("kg", *3 * ("kg m",), *6 * ("kg m^2",))
_JOINT_UNITS = {"armature": ("kg m^2", "kg"), "damping": ("N m s/rad", "N s/m"), "friction": ("N m", "N"),
                "stiffness": ("N m/rad", "N/m"), "preload": ("N m", "N"), "offset": ("N m", "N")}


class InertialParameters(NamedTuple):
    """Parameters in which tau is linear: values (P,), names and units.

    Ten for each link: mass.<link>, its first moment h = m c (hx, hy, hz) and its second moment about the link's origin
    (Ixx, Ixy, Ixz, Iyy, Iyz, Izz; not about the centre of mass), in the link's frame; then armature.<coordinate>, …
    """

    values: Array
    names: tuple[str, ...]
    units: tuple[str, ...]

    def __repr__(self) -> str:
        """Return one line for each of the first twenty parameters."""
        lines = [f"<InertialParameters: {len(self.names)}>"]
        lines += [f"  {x:12.6g} {unit}  {name}" for x, name, unit in list(zip(*self, strict=True))[:20]]
        return "\n".join([*lines, *(["  …"] if len(self.names) > 20 else [])])


@summarized
class EnergyRegressor(NamedTuple):
    """Rows (..., P) whose products with the parameters are the kinetic and the potential energy."""

    kinetic: Array
    potential: Array


def inertial_parameters(model: Model, *, passive: bool = False, joints: Sequence[str] | None = None) -> InertialParameters:
    """The parameters in which the dynamics is linear, in the order of the columns of `regressor`.

    Parameters
    ----------
    model : Model
    passive, joints
        As in `regressor`.

    Returns
    -------
    InertialParameters
        values (P,), names, units. Ten numbers of each link that moves (frames welded to one, without mass and inertia, are
        left out), then those of the joints: of a spring stiffness.<coordinate> and preload.<coordinate>, which is
        stiffness times rest. offset.<coordinate> is a constant joint torque, zero in every model.

    Raises
    ------
    NameLookupError
        For an unknown kind of joint parameter.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> names = ld.inertial_parameters(model).names
    >>> len(names), names[:4]
    (20, ('mass.upper', 'hx.upper', 'hy.upper', 'hz.upper'))
    """
    values: list[float] = []
    names: list[str] = []
    units: list[str] = []
    for k in _links(model):
        link = model.description.links[k]
        values += list(inertia_from_link(link))
        names += [f"{number}.{link.name}" for number in LINK_PARAMETERS]
        units += LINK_UNITS
    for kind, k, value in _joint_parameters(model, joint_parameter_kinds(model, passive, joints)):
        values.append(value)
        names.append(f"{kind}.{model.v_names[k]}")
        units.append(_JOINT_UNITS[kind][model.v_units[k] == "m"])
    return InertialParameters(np.array(values, dtype=float), tuple(names), tuple(units))


def regressor(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, passive: bool = False,
              joints: Sequence[str] | None = None, on_error: OnError = "raise") -> Array:
    """The matrix ``Y(q, v, a)`` with ``tau = Y pi``: inverse dynamics, linear in the inertial parameters.

    For a robot with loops it is that of the open tree: ``Y pi = tau + A^T lambda``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, a : (..., nv) arrays
        Joint velocity [rad/s | m/s] and acceleration.
    passive : bool
        As in `inverse_dynamics`: whether joint springs, damping and friction act, if the model has them.
    joints : sequence of "armature", "damping", "friction", "stiffness", "offset", optional
        Which joint parameters have columns, whatever the model has; default: those that the model has (armature, and the
        others if `passive`).
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    Y : (..., nv, P) array
        Columns in the order of ``inertial_parameters(model, passive=passive, joints=joints)``, whose values are the model's
        own ``pi``: ``Y pi`` is ``inverse_dynamics(model, q, v, a, passive=passive)``.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    Source: PBP §4. Link by link, ``S^T (I dV - ad*_V I V)`` for the joints between link and ground,
    O(n depth). Smoothed Coulomb friction is linear in its level, a spring in its stiffness and stiffness times rest.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> Y, p = ld.regressor(model, q, v, [0.0, 1.0]), ld.inertial_parameters(model).values
    >>> (Y @ p).round(3)             # inverse_dynamics without passive forces
    array([5.786, 0.724])
    """
    if on_error != "raise":
        return handle_failed_states(regressor, locals())
    check_without_elements(model, passive, "the regressor of passive forces")
    return inertial_regressor(model, q, v, a, passive, joints)


def inertial_regressor(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, passive: bool,
                       joints: Sequence[str] | None) -> Array:
    """Return the matrix of `regressor`. Forces of force elements are no part of it."""
    columns, plan = _column_plan(model, passive, joints)
    return evaluate(model, ("regressor", *_cache_key(passive, joints)), regressors, _memory(model.nv * columns),
                    {"q": q, "v": v, "a": a}, (model.nv, columns), static_arguments=(plan,))


def contracted_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: Array, passive: bool,
                           joints: Sequence[str] | None) -> tuple[Array, Array, Array]:
    """Return the derivatives (N, nv) of ``sum(weights * regressor)`` of each state with respect to q, tangent, v and a.

    weights  (N, nv, P) entries like those of the regressor

    One sweep of O(n depth) for all of them: see `kernels.regressor`.
    """
    columns, plan = _column_plan(model, passive, joints)
    arrays = [np.ascontiguousarray(x, dtype=float) for x in (q, v, a)]
    G = np.ascontiguousarray(weights.reshape(len(weights), model.nv * columns))
    size = contraction_workspace_size(model.n_bodies, model.nq, model.nv, model.nv * columns)
    of_q, of_v, of_a = np.empty((3, len(G), model.nv))
    code = run(contractions, model, size, (plan,), (*arrays, G, of_q, of_v, of_a), len(G))
    raise_for_code(model, code, q=arrays[0], v=arrays[1], a=arrays[2])
    return of_q, of_v, of_a


def slotine_li_regressor(model: Model, q: ArrayLike, v: ArrayLike, v_r: ArrayLike, a_r: ArrayLike, *, passive: bool = False,
                         joints: Sequence[str] | None = None, on_error: OnError = "raise") -> Array:
    """The matrix ``Y(q, v, v_r, a_r)`` with ``M a_r + C(q, v) v_r + g = Y pi``, where ``dM/dt - 2C`` is skew.

    Adaptive and passivity-based control use it with a reference velocity ``v_r`` and a reference acceleration ``a_r``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, v_r, a_r : (..., nv) arrays
        Velocity [rad/s | m/s], reference velocity, and reference acceleration.
    passive, joints
        As in `regressor`. Armature multiplies a_r; passive forces are those at q and v.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    Y : (..., nv, P) array
        Columns in the order of ``inertial_parameters(model, passive=passive, joints=joints)``. With its values, ``Y pi`` is
        `slotine_li_inverse_dynamics`. For ``v_r = v`` it is `regressor`. For a robot with loops it is that of the open tree.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    After Slotine and Li (1987); C is ``coriolis_matrix(model, q, v, method="christoffel")``. O(n depth).

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> Y, p = ld.slotine_li_regressor(model, q, v, [0.9, 0.6], [0.0, 1.0]), ld.inertial_parameters(model).values
    >>> (Y @ p).round(3)
    array([5.796, 0.734])
    """
    if on_error != "raise":
        return handle_failed_states(slotine_li_regressor, locals())
    check_without_elements(model, passive, "the regressor of passive forces")
    columns, plan = _column_plan(model, passive, joints)
    return evaluate(model, ("slotine_li_regressor", *_cache_key(passive, joints)), slotine_li_regressors,
                    _memory(model.nv * columns), {"q": q, "v": v, "v_r": v_r, "a_r": a_r}, (model.nv, columns),
                    static_arguments=(plan,))


def energy_regressor(model: Model, q: ArrayLike, v: ArrayLike, *, passive: bool = False, joints: Sequence[str] | None = None,
                     on_error: OnError = "raise") -> EnergyRegressor:
    """Rows (..., P) whose products with the parameters are the kinetic and the potential energy [J].

    Arguments and errors as in `regressor`. Of a spring, the energy less the constant ``stiffness rest^2 / 2``, which is not
    linear; without `passive` springs are not in it. Damping and friction have columns of zeros.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> kinetic, potential = ld.energy_regressor(model, q, v)
    >>> round(float(kinetic @ ld.inertial_parameters(model).values), 3)
    1.777
    """
    if on_error != "raise":
        return handle_failed_states(energy_regressor, locals())
    check_without_elements(model, passive, "the regressor of the energy of springs")
    sums = _energy_momentum_rows(model, q, v, passive, joints)
    return EnergyRegressor(sums[..., 0, :], sums[..., 1, :])


def momentum_regressor(model: Model, q: ArrayLike, v: ArrayLike, *, passive: bool = False, joints: Sequence[str] | None = None,
                       on_error: OnError = "raise") -> Array:
    """The matrix (..., 6, P) whose product with the parameters is `momentum`: [angular; linear], world axes and origin.

    Arguments and errors as in `regressor`; joint parameters have columns of zeros. For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> (ld.momentum_regressor(model, q, v) @ ld.inertial_parameters(model).values).round(3)
    array([ 0.   , -1.3  ,  0.   , -2.179,  0.   ,  0.518])
    """
    if on_error != "raise":
        return handle_failed_states(momentum_regressor, locals())
    return np.ascontiguousarray(_energy_momentum_rows(model, q, v, passive, joints)[..., 2:, :])


def _energy_momentum_rows(model: Model, q: ArrayLike, v: ArrayLike, passive: bool, joints: Sequence[str] | None) -> Array:
    """Return rows (…, 8, P) of kinetic energy, potential energy and momentum."""
    columns, plan = _column_plan(model, passive, joints)
    return evaluate(model, ("sums", *_cache_key(passive, joints)), energy_momentum_regressors, _memory(8 * columns),
                    {"q": q, "v": v}, (8, columns), static_arguments=(plan,))


def _memory(results: int) -> Callable[[int, int, int, int], int]:
    return lambda n, nq, nv, nl: int(regressor_workspace_size(n, nq, nv, results))


# which parameters -------------------------------------------------------------------------------------------------
def _links(model: Model) -> list[int]:
    """Return the links with columns: all that move, except frames that are fixed to others."""
    children = {joint.child for joint in model.joints}
    return [k for k, link in enumerate(model.description.links) if model.link_body[k] > 0
            and (link.name in children or link.mass or any(link.inertia))]


def joint_parameter_kinds(model: Model, passive: bool, joints: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds of joint parameters with columns, in the order of `JOINT_PARAMETERS`.

    joints: these kinds; None: armature, and with `passive` all, as far as the model has values that are not zero. Raises
    NameLookupError for an unknown kind.
    """
    if isinstance(joints, str):
        raise NameLookupError(f"joints is the text {joints!r}: expected a sequence of names, such as [{joints!r}]")
    if joints is not None:
        for kind in joints:
            if kind not in JOINT_PARAMETERS:
                raise NameLookupError(f"unknown joint parameter {kind!r}: expected one of {', '.join(JOINT_PARAMETERS)}")
        return tuple(kind for kind in JOINT_PARAMETERS if kind in joints)
    parameters = _joint_parameter_values(model)
    return tuple(kind for kind in (JOINT_PARAMETERS if passive else JOINT_PARAMETERS[:1]) if parameters[kind].any())


def _joint_parameter_values(model: Model) -> dict[str, Array]:
    """Return the values of each velocity coordinate, by kind."""
    tree = tree_views.py_func(model.index, model.constants)
    return {kind: getattr(tree, kind) for kind in JOINT_PARAMETERS[:-1]} | {"preload": tree.stiffness * tree.rest,
                                                                            "offset": np.zeros(model.nv)}


def _joint_parameters(model: Model, kinds: Sequence[str]) -> Iterator[tuple[str, int, float]]:
    """Return (kind, coordinate, value) of each joint parameter, column by column. Springs and offsets need 1-DoF coordinates."""
    parameters = _joint_parameter_values(model)
    straight = [k for joint in model.joints if joint.kind == ONE_DOF for k in range(joint.v.start, joint.v.stop)]
    for kind in kinds:
        for name in ("stiffness", "preload") if kind == "stiffness" else (kind,):
            for k in straight if kind in ("stiffness", "offset") else range(model.nv):
                yield name, k, parameters[name][k]


def _cache_key(passive: bool, joints: Sequence[str] | None) -> tuple[bool, tuple[str, ...] | None]:
    return bool(passive), None if joints is None else tuple(joints)


@dataclass(frozen=True)
class ColumnPlanKey:
    """Arguments of the regressor: whether passive parameters have columns, and the kinds of joint parameters with columns."""

    passive: bool
    joints: tuple[str, ...] | None


def _column_plan(model: Model, passive: bool, joints: Sequence[str] | None) -> tuple[int, Integers]:
    """Return the number of columns P and the layout of `kernels.regressor`.

    Cached: making it takes ten times as long as using it.
    """
    return model.cached(ColumnPlanKey(*_cache_key(passive, joints)), lambda: _make_column_plan(model, passive, joints))


def _make_column_plan(model: Model, passive: bool, joints: Sequence[str] | None) -> tuple[int, Integers]:
    links, joint_columns = _links(model), list(_joint_parameters(model, joint_parameter_kinds(model, passive, joints)))
    columns, rows = 10 * len(links) + len(joint_columns), np.full((len(_COORDINATE_PARAMETERS), model.nv), -1)
    for column, (parameter, k, _) in enumerate(joint_columns, 10 * len(links)):
        rows[_COORDINATE_PARAMETERS.index(parameter), k] = column
    return columns, np.r_[columns, len(links), links, rows.ravel()].astype(np.int64)


def fixed_parameters(names: Sequence[str], patterns: str | Sequence[str]) -> Mask:
    """Return (P,) bool: parameters with these names or patterns, such as "damping.elbow" or "*.hand".

    Raises NameLookupError for a pattern without match, and UsageError for some of the ten parameters of a link only.
    """
    fixed = np.zeros(len(names), dtype=bool)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if not (matches := matching_names(pattern, names)):
            raise unknown_name("parameter", pattern, names)
        fixed |= np.isin(names, matches)
    for link, k in link_columns(names).items():
        if fixed[k:k + len(LINK_PARAMETERS)].any() and not fixed[k:k + len(LINK_PARAMETERS)].all():
            raise UsageError(f"only some of the parameters of link {link} are fixed: fix all ten by {f'*.{link}'!r}, or give a "
                             "prior value and deviation of single ones")
    return fixed


def link_columns(names: Sequence[str]) -> dict[str, int]:
    """Return the first column of each link."""
    return {name.partition(".")[2]: k for k, name in enumerate(names) if name.startswith(f"{LINK_PARAMETERS[0]}.")}


# Base parameters: the combinations of inertial parameters that forces depend on -----------------------------------------

# All thresholds apply to the regressor in characteristic units of the robot (`scales`), in which masses, first moments, moments
# of inertia, joint torques and joint forces can be compared.
TOLERANCE = 1e-10     # of the strongest parameter's effect: one with less has no effect but rounding
WEAK = 1e-4           # of the same: a parameter with less acts only because a right angle of the robot file is not exact
_MIN_RANK_GAP = 1e3   # minimum ratio between the last pivot of the rank and the first beyond it
# of a normalized column: with a larger distance from the columns already chosen, a column does not harm the condition
_MIN_INDEPENDENT_NORM = 1e-2
_ROUNDING = 1e-13           # of normalized columns: eps times the number of operations
_INTEGER_TOLERANCE = 1e-12  # of a coefficient: it is rounded to an integer that is nearer; to 0, relative to characteristic units
_DISPLAY_THRESHOLD = 1e-5   # of the maximum coefficient of a parameter: smaller terms of a regrouping are omitted
_FRICTION_SPEEDS = 5.0      # random velocities of joints with friction, in speeds below which friction is smoothed: with smaller
                            # velocities friction is like damping
_SELECTION_ORDER = ("hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mass")     # order of choice for a link


@dataclass(frozen=True, eq=False)
class BaseParameters(Immutable):
    """Independent parameters, each of which stands for itself and for the parameters that are regrouped with it.

    names, units      (b,) of the base parameters
    columns           (b,) their indices among all parameters
    values            (b,) matrix @ parameters.values: those of the model
    matrix            (b, P): base parameters from all parameters; `Y pi` is `Y[..., columns] (matrix pi)`
    condition         condition number of their normalized columns over the states from which they were found
    unidentifiable    names of the parameters on which no force depends
    weak              names of parameters that act through almost right angles only (less than 1e-4 of the strongest)
    parameters        all parameters (`InertialParameters`)
    sizes             (P,) characteristic units of all parameters
    fixed             names of parameters that are known and so not part of any base parameter
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
    fixed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        """Return one line for each of the first twenty parameters."""
        lines = [f"<BaseParameters: {len(self)} of {len(self.parameters.names)}, condition {self.condition:.3g}>"]
        lines += [f"  {x:12.6g} {unit}  {self.regrouping(k)}"
                  for k, (x, unit) in enumerate(zip(self.values[:20], self.units[:20], strict=True))]
        return "\n".join([*lines, *(["  …"] if len(self) > 20 else [])])

    def regrouping(self, k: int) -> str:
        """Base parameter k as a sum of parameters, itself first: 'hx.link2 + 0.4 mass.link3'.

        Terms of at most 1e-5 are omitted; they are in `matrix`. They exist if a right angle of the robot file is not exact.
        """
        terms = [self.names[k]]
        in_sizes = np.abs(self.matrix) / self.sizes[self.columns][:, None]
        for j in np.flatnonzero(in_sizes[k] > _DISPLAY_THRESHOLD * in_sizes.max(axis=0)):
            if j != self.columns[k]:
                c = self.matrix[k, j]
                size = "" if abs(c) == 1 else f"{abs(c):.6g} "
                terms.append(f"{'-' if c < 0 else '+'} {size}{self.parameters.names[j]}")
        return " ".join(terms)


def base_parameters(model: Model, *, passive: bool = False, joints: Sequence[str] | None = None,
                    fixed: str | Sequence[str] = (), states: tuple[ArrayLike, ...] | None = None, seed: int = 0,
                    tolerance: float = TOLERANCE) -> BaseParameters:
    """Base (identifiable) parameters of a model: the identifiable combinations of its inertial parameters.

    Parameters
    ----------
    model : Model
    passive, joints
        As in `regressor`: which joint parameters are included.
    fixed : names or patterns of parameters
        Known parameters, which are not part of base parameters: "damping.elbow", or all ten parameters of a link, "*.hand".
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
    ComputationError
        If the rank of the regressor is not clear, or no parameter has an effect.
    UsageError
        For a tolerance that is no number from 0 to 1.
    NameLookupError, ShapeError, ConfigurationError
        As `regressor`, and for a pattern in `fixed` without match.

    Notes
    -----
    Rank-revealing QR of the regressor over many states (Gautier 1991). The rank is the largest gap between pivots, which
    must be clear. Of dependent parameters the one nearer to the ground is kept, so that a link's mass is regrouped with its
    parents', as by hand; columns too close to those already kept are deferred, and pivoting completes the rank. The states of
    a robot with loops are those of a random walk from `assemble(model).q`, and its forces those of independent coordinates.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> [ld.base_parameters(model).regrouping(k) for k in (1, 2)]
    ['hz.upper - mass.lower', 'Iyy.upper + mass.lower']
    """
    if not 0.0 <= tolerance < 1.0:
        raise UsageError(f"tolerance must be a number >= 0 and < 1, got {tolerance!r}")
    pi = inertial_parameters(model, passive=passive, joints=joints)
    units = model_scales(model)
    sizes = units.unit_scales(pi.units)
    if states is None:
        states = _random_states(model, len(pi.names), seed, units, smoothed=_friction_coordinates(pi.names))
    q, v, a = states
    Y = inertial_regressor(model, q, v, a, passive, joints)
    if model.nc:
        Y = projected(projection_at(model, np.asarray(q, dtype=float).reshape(-1, model.nq)), Y.reshape(-1, *Y.shape[-2:]))
    if not Y.size:
        raise ComputationError(f"the robot {model.name} has no moving link with inertia: it has no base parameters")
    forces = units.force_scales(model.v_units)
    equations = (Y * sizes / forces[:, None]).reshape(-1, len(pi.names))
    R: Array = np.linalg.qr(equations, mode="r")  # type: ignore[assignment]     # NumPy declares a pair for every mode
    known = fixed_parameters(pi.names, fixed)
    norms = np.where(known, 0.0, np.linalg.norm(R, axis=0))
    strongest = norms.max(initial=0.0)
    live = np.flatnonzero(norms > tolerance * strongest)
    if not live.size:
        raise ComputationError(f"no generalized force of the robot {model.name} depends on an inertial parameter in these states")
    X = R[:, live] / norms[live]
    basis = np.sort(_independent(X, _order(model, [pi.names[k] for k in live]), _rank(X, tolerance)))
    matrix = np.zeros((len(basis), len(pi.names)))
    matrix[:, live] = _regrouping(X, basis, norms[live], strongest, sizes[live])
    columns = live[basis]
    names_of_fixed = tuple(name for name, is_known in zip(pi.names, known, strict=True) if is_known)
    gone = [name for name, column in zip(pi.names, matrix.T, strict=True) if not column.any() and name not in names_of_fixed]
    weak = [name for name, norm in zip(pi.names, norms, strict=True)
            if norm <= WEAK * strongest and name not in (*gone, *names_of_fixed)]
    return BaseParameters(tuple(pi.names[k] for k in columns), tuple(pi.units[k] for k in columns), columns, matrix @ pi.values,
                          matrix, float(np.linalg.cond(X[:, basis])), tuple(gone), tuple(weak), pi, sizes, names_of_fixed)


def _friction_coordinates(names: Sequence[str]) -> set[str]:
    """Return the coordinates with a column of friction."""
    return {owner for number, _, owner in (name.partition(".") for name in names) if number == "friction"}


def _random_states(model: Model, parameters: int, seed: int, units: Scales, smoothed: set[str]) -> tuple[Array, Array, Array]:
    """Return states that give three times as many equations as parameters.

    Angles are between -pi and pi, displacements within one characteristic length.
    """
    from liedyn.dynamics.manifold import generator_of_seed, random_configuration
    rng = generator_of_seed(seed)
    if model.nc and not model.has_only_linear_couplings:
        reduction = loop_reduction(model)
        return reduction.random_states(rng, 20 + 3 * parameters // int(reduction.independent.sum()))
    n = 20 + 3 * parameters // max(model.nv, 1)
    q = random_configuration(model, rng, n)
    reach = units.unit_scales(model.v_units)
    for joint in model.joints:
        if joint.kind == ONE_DOF:
            span = np.where(np.array(model.v_units[joint.v]) == "rad", np.pi, reach[joint.v])
            q[:, joint.q] = rng.uniform(-span, span, (n, len(span)))
        elif joint.kind == FREE:
            q[:, joint.q.start:joint.q.start + 3] *= units.length
    v, a = rng.standard_normal((2, n, model.nv)) * np.stack([reach / units.time, reach / units.time**2])[:, None]
    rough = [name in smoothed for name in model.v_names]
    speeds = tree_views.py_func(model.index, model.constants).friction_speed
    v[:, rough] *= np.maximum(1.0, _FRICTION_SPEEDS * speeds * units.time / reach)[rough]
    q, v, a = follow_couplings(model, q, v, a)
    return q, v, a


def _rank(X: Array, tolerance: float) -> int:
    """Return the rank of normalized columns: the largest gap between the pivots of QR; those below `tolerance` do not count."""
    from scipy.linalg import qr
    pivots = np.abs(np.diag(qr(X, mode="r", pivoting=True)[0]))
    pivots = np.maximum(np.r_[pivots, np.zeros(X.shape[1] - len(pivots) + 1)], max(_ROUNDING, tolerance))
    ratios = pivots[:-1] / pivots[1:]
    rank = int(np.argmax(ratios)) + 1
    if ratios[rank - 1] < _MIN_RANK_GAP:
        raise ComputationError(f"the rank of the regressor is not clear for these states: the maximum drop between pivots is "
                               f"{ratios.max():.2g} (about {rank} of {X.shape[1]} parameters); use more "
                               "states, or states that differ more")
    return rank


def _order(model: Model, names: Sequence[str]) -> list[int]:
    """Return the order of choice: links from the ground on, within a link by _SELECTION_ORDER, joint parameters last.

    The order of links in the robot file does not matter: the tree decides, also among links that fixed joints join.
    """
    parents = dict(zip(model.link_names, model.link_parents, strict=True))

    def depth(link: str | None) -> int:
        return 0 if link is None else 1 + depth(parents[link])
    bodies = zip(model.link_names, model.link_body, strict=True)
    places = {link: (int(body), depth(link), k) for k, (link, body) in enumerate(bodies)}

    def rank(k: int) -> tuple[int, tuple[int, int, int], int]:
        number, _, owner = names[k].partition(".")
        if number not in LINK_PARAMETERS:
            return 1, (k, 0, 0), 0
        return 0, places[owner], _SELECTION_ORDER.index(number)
    return sorted(range(len(names)), key=rank)


def _independent(X: Array, order: Sequence[int], rank: int) -> list[int]:
    """Return the indices of `rank` independent columns, the first ones of the order except ill-conditioned ones."""
    remaining = X.copy()
    basis: list[int] = []
    waiting: list[int] = []
    for j in order:
        if len(basis) < rank and np.linalg.norm(remaining[:, j]) > _MIN_INDEPENDENT_NORM:
            _project_out(remaining, j, basis)
        else:
            waiting.append(j)
    while len(basis) < rank:
        j = max(waiting, key=lambda j: float(np.linalg.norm(remaining[:, j])))
        waiting.remove(j)
        _project_out(remaining, j, basis)
    return basis


def _project_out(columns: Array, j: int, basis: list[int]) -> None:
    """Remove the direction of column j from all columns, twice because of rounding."""
    x = columns[:, j] / np.linalg.norm(columns[:, j])
    for _ in range(2):
        columns -= np.outer(x, x @ columns)
    basis.append(j)


def _regrouping(X: Array, basis: Integers, norms: Array, strongest: float, sizes: Array) -> Array:
    """Return (b, columns): every column of Y as a combination of the chosen ones, without rounding."""
    C = np.linalg.lstsq(X[:, basis], X, rcond=None)[0]
    C[np.abs(C) < 0.1 * _ROUNDING * strongest / norms] = 0.0           # scaling a weak column also scaled its rounding
    C = C * norms / norms[basis][:, None]
    C[np.abs(C) < _INTEGER_TOLERANCE] = 0.0
    C = C * sizes[basis][:, None] / sizes
    C[:, basis] = np.eye(len(basis))
    whole = np.round(C)
    return np.where(np.abs(C - whole) < _INTEGER_TOLERANCE * np.abs(whole), whole, C) + 0.0
