"""Dynamics linear in the inertial parameters: the parameters themselves, and the regressors of torque, energy, momentum."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.errors import NameLookupError
from liedyn.joints.kinds import SCREW
from liedyn.joints.tree import tree_of
from liedyn.kernels.recursions.regressor import regressor_memory, regressors, sums
from liedyn.model.model import Model
from liedyn.model.spatial import rigid_from_link

OF_A_LINK = ("mass", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
OF_A_JOINT = ("armature", "damping", "friction", "stiffness", "offset")
_OF_COORDINATES = ("armature", "damping", "friction", "stiffness", "preload", "offset")    # in the order of the kernel's plan
_LINK_UNITS = ("kg", *3 * ("kg m",), *6 * ("kg m^2",))
_JOINT_UNITS = {"armature": ("kg m^2", "kg"), "damping": ("N m s/rad", "N s/m"), "friction": ("N m", "N"),
                "stiffness": ("N m/rad", "N/m"), "preload": ("N m", "N"), "offset": ("N m", "N")}


class InertialParameters(NamedTuple):
    """What tau is linear in: values (P,), names and units.

    Ten of each link: mass.<link>, its first moment h = m c (hx, hy, hz) and its second moment about the link's origin
    (Ixx, Ixy, Ixz, Iyy, Iyz, Izz; not about the centre of mass), in the link's frame; then armature.<coordinate>, …
    """

    values: Array
    names: tuple[str, ...]
    units: tuple[str, ...]

    def __repr__(self) -> str:
        """A line a parameter, of the first twenty."""
        lines = [f"<InertialParameters: {len(self.names)}>"]
        lines += [f"  {x:12.6g} {unit}  {name}" for x, name, unit in list(zip(*self, strict=True))[:20]]
        return "\n".join([*lines, *(["  …"] if len(self.names) > 20 else [])])


class EnergyRegressor(NamedTuple):
    """Rows (..., P): kinetic and potential energy are their products with the parameters."""

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
    values, names, units = [], [], []
    for k in _links(model):
        link = model.description.links[k]
        values += list(rigid_from_link(link))
        names += [f"{number}.{link.name}" for number in OF_A_LINK]
        units += _LINK_UNITS
    for what, k, value in _joint_parameters(model, joint_kinds(model, passive, joints)):
        values.append(value)
        names.append(f"{what}.{model.v_names[k]}")
        units.append(_JOINT_UNITS[what][model.v_units[k] == "m"])
    return InertialParameters(np.array(values, dtype=float), tuple(names), tuple(units))


def regressor(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, passive: bool = False,
              joints: Sequence[str] | None = None, on_error: OnError = "raise") -> Array:
    """The matrix ``Y(q, v, a)`` with ``tau = Y pi``: inverse dynamics, linear in the inertial parameters.

    For a robot with loops it is that of the open tree: ``Y pi = tau + A^T lambda``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
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
        return each_state(regressor, locals())
    columns, plan = _plan(model, passive, joints)
    return computed(model, ("regressor", *_asked(passive, joints)), regressors, _memory(model.nv * columns),
                    {"q": q, "v": v, "a": a}, (model.nv, columns), before=(plan,))


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
        return each_state(energy_regressor, locals())
    sums = _sums(model, q, v, passive, joints)
    return EnergyRegressor(sums[..., 0, :], sums[..., 1, :])


def momentum_regressor(model: Model, q: ArrayLike, v: ArrayLike, *, passive: bool = False, joints: Sequence[str] | None = None,
                       on_error: OnError = "raise") -> Array:
    """The matrix (..., 6, P) whose product with the parameters is `momentum`: [angular; linear] about the world's origin,
    world axes. Arguments and errors as in `regressor`; joint parameters have columns of zeros.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> (ld.momentum_regressor(model, q, v) @ ld.inertial_parameters(model).values).round(3)
    array([ 0.   , -1.3  ,  0.   , -2.179,  0.   ,  0.518])
    """
    if on_error != "raise":
        return each_state(momentum_regressor, locals())
    return np.ascontiguousarray(_sums(model, q, v, passive, joints)[..., 2:, :])


def _sums(model, q, v, passive, joints) -> np.ndarray:
    """Rows (…, 8, P) of kinetic energy, potential energy and momentum."""
    columns, plan = _plan(model, passive, joints)
    return computed(model, ("sums", *_asked(passive, joints)), sums, _memory(8 * columns), {"q": q, "v": v}, (8, columns),
                    before=(plan,))


def _memory(results: int):
    return lambda n, nq, nv, nl: regressor_memory(n, nq, nv, results)


# which parameters -------------------------------------------------------------------------------------------------
def _links(model) -> list[int]:
    """Links with columns: all that move, but for frames welded to others."""
    children = {joint.child for joint in model.joints}
    return [k for k, link in enumerate(model.description.links) if model.link_body[k] > 0
            and (link.name in children or link.mass or any(link.inertia))]


def joint_kinds(model, passive, joints) -> tuple[str, ...]:
    """Kinds of joint parameters, in our order."""
    if joints is not None:
        for what in joints:
            if what not in OF_A_JOINT:
                raise NameLookupError(f"no joint parameter {what!r}; there are {', '.join(OF_A_JOINT)}")
        return tuple(what for what in OF_A_JOINT if what in joints)
    parameters = _parameters_of_joints(model)
    return tuple(what for what in (OF_A_JOINT if passive else OF_A_JOINT[:1]) if parameters[what].any())


def _parameters_of_joints(model) -> dict[str, np.ndarray]:
    """Of each velocity coordinate, by kind."""
    tree = tree_of.py_func(model.index, model.constants)
    return {what: getattr(tree, what) for what in OF_A_JOINT[:-1]} | {"preload": tree.stiffness * tree.rest,
                                                                      "offset": np.zeros(model.nv)}


def _joint_parameters(model, kinds):
    """(kind, coordinate, value) of each joint parameter, column by column. Springs and offsets are for 1-DoF
    coordinates."""
    parameters = _parameters_of_joints(model)
    straight = [k for joint in model.joints if joint.kind == SCREW for k in range(joint.v.start, joint.v.stop)]
    for what in kinds:
        for name in ("stiffness", "preload") if what == "stiffness" else (what,):
            for k in straight if what in ("stiffness", "offset") else range(model.nv):
                yield name, k, parameters[name][k]


def _asked(passive, joints) -> tuple:
    return bool(passive), None if joints is None else tuple(joints)


def _plan(model, passive, joints) -> tuple[int, np.ndarray]:
    """Number of columns P, and the plan of `recursions.regressor`; kept, since making it takes ten times as long as using it."""
    key = "plan of the regressor", *_asked(passive, joints)
    try:
        return model._cache[key]
    except KeyError:
        return model._cache.setdefault(key, _new_plan(model, passive, joints))


def _new_plan(model, passive, joints) -> tuple[int, np.ndarray]:
    links, own = _links(model), list(_joint_parameters(model, joint_kinds(model, passive, joints)))
    columns, rows = 10 * len(links) + len(own), np.full((len(_OF_COORDINATES), model.nv), -1)
    for column, (what, k, _) in enumerate(own, 10 * len(links)):
        rows[_OF_COORDINATES.index(what), k] = column
    return columns, np.r_[columns, len(links), links, rows.ravel()].astype(np.int64)
