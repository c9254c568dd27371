"""Robots that differ in named parameters: their values from arrays by name or pattern, and the constants of the kernels.

The names are those of `model_parameters`. Robots with equal zeros in their inertial parameters share one model, which is built
and validated. The constants of the others follow from it for all robots at once.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.model_parameters import LINK_COMPONENTS, parameter_names, with_parameters
from liedyn.errors import ModelError, NameLookupError, ShapeError, UsageError, list_names, nearest
from liedyn.joints.joint_model import Tree, tree_views
from liedyn.model.description import MAX_FRICTION_SPEED, MIN_FRICTION_SPEED, NV, ONE_DOF, coordinate_name
from liedyn.model.element_values import MAX_INPUT
from liedyn.model.link_tree import reduced_inertias
from liedyn.model.links import Link
from liedyn.model.model import Model, build
from liedyn.model.spatial import inertia_from_link, pose_from_array, skew, symmetric_matrix, transform_inertia
from liedyn.model.warnings import is_not_semidefinite

_COMPONENT_ORDERS = (("x", "y", "z"), LINK_COMPONENTS["inertia"], ("wx", "wy", "wz", "vx", "vy", "vz"))
_NOT_NEGATIVE = ("mass", "armature", "damping", "friction", "stiffness")
_COORDINATE_ROWS = ("armature", "damping", "friction", "stiffness", "rest", "friction_speed")
_GEOMETRIC = ("origin", "screw", "pitch")
_UPPER = np.triu_indices(3)


class ParameterValues(NamedTuple):
    """Values (N, m) of m parameters of N robots."""

    names: tuple[str, ...]
    values: Array

    def robot(self, k: int) -> dict[str, float]:
        """Return the values of robot k, by name."""
        return dict(zip(self.names, self.values[k].tolist(), strict=True))

    def columns(self, kinds: Sequence[str]) -> Array:
        """Return the values (N, …) of the parameters of these kinds, such as "mass"."""
        return self.values[:, [name.partition(".")[0] in kinds for name in self.names]]


# Names and arrays ---------------------------------------------------------------------------------------------------------

def read_parameters(model: Model, arrays: Mapping[str, ArrayLike]) -> ParameterValues:
    """Return the values of the parameters that names, groups of components and patterns select, see `Variants`.

    Raises NameLookupError, ShapeError, UsageError or ModelError.
    """
    if not isinstance(arrays, Mapping) or not arrays:
        raise UsageError("the parameters of variants are arrays by name: expected for example "
                         "{'mass.hand': masses, 'friction.*': frictions}, "
                         f"got {'nothing' if isinstance(arrays, Mapping) else type(arrays).__name__}")
    for key in arrays:
        if not isinstance(key, str):
            raise NameLookupError(f"the name of a parameter is text: got {type(key).__name__} {key!r}")
    known = parameter_names(model)
    base = {name for name in known if _is_of_base(model, name)}
    rules = {key: _match(key, known, base) for key in arrays}
    columns = {key: _columns(key, arrays[key], names, is_group) for key, (names, is_group) in rules.items()}
    sizes = {key: len(x) for key, x in columns.items() if len(x) != 1}
    count = next(iter(sizes.values()), 1)
    for key, size in sizes.items():
        if size != count:
            raise ShapeError(f"the parameters have values for different numbers of robots: got {next(iter(sizes))}: {count}, "
                             f"{key}: {size}")
    selected: dict[str, tuple[tuple[int, int], str, Array]] = {}
    for key, (names, is_group) in rules.items():
        rank = (2, 0) if is_group else (3, 0) if names == (key,) else (1, len(key))
        for name, column in zip(names, columns[key].T, strict=True):
            other = selected.get(name)
            if other and other[0] == rank:
                raise UsageError(f"{name} matches two patterns of the same length: {other[1]} and {key}; give it a separate "
                                 "entry")
            if not other or other[0] < rank:
                selected[name] = rank, key, np.broadcast_to(column, count)
    values = ParameterValues(tuple(selected), np.stack([column for _, _, column in selected.values()], axis=1))
    _check_values(values)
    return values


def _match(key: str, known: Sequence[str], base: Collection[str]) -> tuple[tuple[str, ...], bool]:
    """Return the parameters of a name, of a group of components such as `com.hand`, or of a pattern; and whether it is a group.

    Patterns do not match parameters of the joint of a floating base, which the robot file does not describe: friction there would
    act between the robot and the world.
    """
    if key in known:
        return (key,), False
    available = set(known)
    for order in _COMPONENT_ORDERS:
        group = tuple(f"{key}.{component}" for component in order)
        if available.issuperset(group):
            return group, True
    names = tuple(name for name in known if fnmatchcase(name, key) and name not in base)
    if names:
        return names, False
    groups = [name.rpartition(".")[0] for name in known if name.partition(".")[0] not in _COORDINATE_ROWS]
    hint = nearest(key, dict.fromkeys((*known, *groups)), written=repr) or "ld.parameter_names(model) lists them all"
    problem = "no parameter matches" if any(sign in key for sign in "*?[") else "no parameter"
    raise NameLookupError(f"{problem} {key!r}; {hint}")


def _is_of_base(model: Model, name: str) -> bool:
    """Return whether a parameter is one of the joint of a floating base, which the description does not contain."""
    head, _, element = name.partition(".")
    described = {joint.name for joint in model.description.joints}
    joints = [joint.name for joint in model.joints if joint.name not in described]
    return head in (*_COORDINATE_ROWS, *_GEOMETRIC) and any(element.startswith(f"{joint}.") for joint in joints)


def _columns(key: str, array: ArrayLike, names: tuple[str, ...], is_group: bool) -> Array:
    """Return the values (N or 1, names) of an array."""
    try:
        x = np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"{key} is not an array of numbers: got {type(array).__name__}") from None
    if x.ndim == 2 and x.shape[1] == len(names):
        return x
    if x.ndim > 1 or is_group:
        expected = f"(N, {len(names)})" if is_group else f"(N,) or (N, {len(names)})"
        raise ShapeError(f"{key} has the wrong shape: expected {expected} for N robots ({list_names(names, 6)}), got {x.shape}")
    return np.broadcast_to(x.reshape(-1, 1), (x.size, len(names)))


def _check_values(parameters: ParameterValues) -> None:
    """Raise ModelError for values that no robot may have."""
    for name, x in zip(parameters.names, parameters.values.T, strict=True):
        for invalid, problem, expected in (
                (~np.isfinite(x), "is not finite", "a number"),
                (np.abs(x) > MAX_INPUT, "is too large", f"at most {MAX_INPUT:g} in magnitude"),
                ((name.partition(".")[0] in _NOT_NEGATIVE) & (x < 0.0), "is negative", "zero or more"),
                (name.startswith("friction_speed.") & ((x < MIN_FRICTION_SPEED) | (x > MAX_FRICTION_SPEED)), "is out of range",
                 f"{MIN_FRICTION_SPEED:g} to {MAX_FRICTION_SPEED:g}")):
            if invalid.any():
                k = int(np.argmax(invalid))
                raise ModelError(f"{name} of robot {k} {problem}", found=float(x[k]), expected=expected)


# Models and constants -----------------------------------------------------------------------------------------------------

def models_of(model: Model, parameters: ParameterValues) -> list[Model]:
    """Return the models of all robots. Raises ModelError for a robot that is not valid."""
    return [_model_of(model, parameters, k) for k in range(len(parameters.values))]


def moves_frames(parameters: ParameterValues) -> bool:
    """Return whether parameters move joints or links: then each robot is built."""
    return any(name.partition(".")[0] in _GEOMETRIC for name in parameters.names)


def _model_of(model: Model, parameters: ParameterValues, k: int) -> Model:
    try:
        return build(with_parameters(model, parameters.robot(k)))
    except ModelError as error:
        raise ModelError(f"robot {k}: {error.message}", place=error.place, found=error.found, expected=error.expected,
                         hint=error.hint) from None


def representatives(model: Model, parameters: ParameterValues) -> tuple[list[Model], Integers]:
    """Return a model for each set of zeros among the parameters, and the index (N,) of that of each robot.

    Flags of the kernels and the limits of their pivots depend on what is zero.
    """
    passive = [(parameters.columns(kinds) != 0.0).any(axis=1) for kinds in (("damping", "friction", "stiffness"), ("friction",))]
    zeros = np.column_stack([parameters.columns(("mass", "com", "inertia", "armature")) == 0.0, *passive])
    _, first, index = np.unique(zeros, axis=0, return_index=True, return_inverse=True)
    return [_model_of(model, parameters, int(k)) for k in first], index.reshape(-1)


def constants_of_robots(model: Model, parameters: ParameterValues, floors: Array) -> Array:
    """Return the constants (N, n) of robots that differ from `model` in inertial parameters, coordinates and gravity.

    floors   (N, nv) limits of pivots of a robot with the same zeros, see `representatives`
    """
    constants = np.tile(model.constants, (len(parameters.values), 1))
    tree, place = (tree_views.py_func(model.index, x) for x in (model.constants, np.arange(model.constants.size)))
    constants[:, place.floor] = floors
    for name, x in zip(parameters.names, parameters.values.T, strict=True):
        head, _, element = name.partition(".")
        if head == "gravity":
            constants[:, place.dV0[3 + "xyz".index(element)]] = -x
        elif head in _COORDINATE_ROWS:
            constants[:, getattr(place, head)[model.v_names.index(element)]] = x
    bodies, inertias = _body_inertias(model, parameters)
    if bodies:
        n = model.n_bodies
        T0 = pose_from_array(tree.T0.reshape(n, 12))
        I = np.tile(tree.I.reshape(n, 10), (len(constants), 1, 1))
        I[:, bodies] = inertias
        constants[:, place.I] = I.reshape(len(I), -1)
        constants[:, place.J] = reduced_inertias(tree.parent, tree.kind, tree.S.reshape(n, 2), T0, I).reshape(len(I), -1)
        nominal = _pivot_scales(tree, T0, tree.I.reshape(n, 10))
        scale = np.divide(_pivot_scales(tree, T0, I), nominal, out=np.ones((len(I), model.nv)), where=nominal > 0.0)
        constants[:, place.floor] = floors * scale
    return constants


def _pivot_scales(tree: Tree, T0: Array, I: Array) -> Array:
    """Return (…, nv) inertias of the motion of each coordinate at rest: limits of pivots are proportional to them."""
    composite = np.array(I)
    for i in range(len(T0) - 1, 0, -1):
        composite[..., tree.parent[i], :] += transform_inertia(T0[i], composite[..., i, :])
    body = np.repeat(np.arange(len(T0)), [0, *(NV[kind] for kind in tree.kind[1:])])
    turns, slides = np.concatenate([np.zeros((2, 0)), *(_column_squares(tree, i) for i in range(1, len(T0)))], axis=1)
    scales: Array = turns * composite[..., body, :][..., [4, 7, 9]].sum(axis=-1) + slides * 3.0 * composite[..., body, 0]
    return scales


def _column_squares(tree: Tree, i: int) -> Array:
    """Return the squares (2, k) of the angular and linear parts of the columns of a joint."""
    if tree.kind[i] == ONE_DOF:
        squares: Array = tree.S[2 * i:2 * i + 2, None]**2
        return squares
    return np.repeat(np.eye(2), 3, axis=1)[:, :NV[tree.kind[i]]]


def _body_inertias(model: Model, parameters: ParameterValues) -> tuple[list[int], Array]:
    """Return the bodies whose inertias differ, and these (N, bodies, 10)."""
    links: dict[int, Array] = {}
    for k, link in enumerate(model.description.links):
        columns = _link_columns(link, parameters)
        if columns:
            inertia = _link_inertia(link, columns, len(parameters.values))
            links[k] = transform_inertia(model.link_pose[k], inertia)
    bodies = sorted({int(model.link_body[k]) for k in links})
    inertias = np.zeros((len(parameters.values), len(bodies), 10))
    for k, link in enumerate(model.description.links):
        if model.link_body[k] in bodies:
            at = bodies.index(int(model.link_body[k]))
            inertias[:, at] += links.get(k, transform_inertia(model.link_pose[k], inertia_from_link(link)))
    return bodies, inertias


def _link_columns(link: Link, parameters: ParameterValues) -> dict[tuple[str, int], Array]:
    """Return the values (N,) of a link that parameters set, by field and index in it."""
    names = {coordinate_name(f"{field}.{link.name}", component): (field, k)
             for field, components in LINK_COMPONENTS.items() for k, component in enumerate(components)}
    return {names[name]: x for name, x in zip(parameters.names, parameters.values.T, strict=True) if name in names}


def _link_inertia(link: Link, columns: Mapping[tuple[str, int], Array], count: int) -> Array:
    """Return the ten inertia parameters (N, 10) of a link, as `inertia_from_link`."""
    mass, com, inertia = (np.tile(np.atleast_1d(np.asarray(x, dtype=float)), (count, 1))
                          for x in (link.mass, link.com, link.inertia))
    for (field, k), x in columns.items():
        {"mass": mass, "com": com, "inertia": inertia}[field][:, k] = x
    hat = skew(com)
    second = symmetric_matrix(inertia) + mass[..., None] * np.swapaxes(hat, 1, 2) @ hat
    return np.concatenate([mass, mass * com, second[:, *_UPPER]], axis=1)


def check_inertias(model: Model, parameters: ParameterValues) -> None:
    """Raise ModelError for a robot with a body whose inertia is not positive semidefinite.

    Bodies of links with semidefinite inertias have one. The others are checked for all robots, and those in doubt are built.
    """
    bodies, inertias = _body_inertias(model, parameters)
    for k, link in enumerate(model.description.links):
        body = int(model.link_body[k])
        has_other_inertia = any(field == "inertia" for field, _ in _link_columns(link, parameters))
        if body in bodies and (has_other_inertia or is_not_semidefinite(symmetric_matrix(link.inertia), link.mass)):
            for robot in np.flatnonzero(_is_doubtful(inertias[:, bodies.index(body)])):
                _model_of(model, parameters, int(robot))


def _is_doubtful(I: Array) -> Mask:
    """Return (N,) whether the inertia of a body about its com is not clearly positive semidefinite."""
    mass, h = I[:, 0], I[:, 1:4]
    com = np.divide(h, mass[:, None], out=np.zeros(h.shape), where=mass[:, None] > 0.0)
    hat = skew(com)
    central = symmetric_matrix(I[:, 4:]) - mass[:, None, None] * np.swapaxes(hat, 1, 2) @ hat
    doubtful: Mask = np.linalg.eigvalsh(central)[:, 0] < 0.0
    return doubtful
