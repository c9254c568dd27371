"""Parameters of a model by name, the change of the kernels' arrays for a unit rate of each, and robots with other values.

| name                               | parameter                                               | constant meanwhile              |
|------------------------------------|---------------------------------------------------------|---------------------------------|
| mass.<link>                        | mass [kg]                                               | com; inertia about it           |
| com.<link>.x y z                   | centre of mass in the link frame [m]                    | mass; inertia about it          |
| inertia.<link>.xx xy xz yy yz zz   | inertia about the com, link axes [kg m^2]               | mass, com                       |
| origin.<joint>.wx wy wz vx vy vz   | placement: origin -> origin exp(twist); also of fixed   | the joint's screws in its frame |
| screw.<joint>.wx wy wz vx vy vz    | the joint's screw in its frame; never scaled to unit    | both links' frames at zero      |
| screw.<joint>.<k>.wx … vz          | the same of a joint with several screws, k = 1, 2, …    | both links' frames at zero      |
| pitch.<joint>                      | of a joint that has one, such as helical [m/rad]        | its axes                        |
| armature.<coordinate>              | likewise damping, friction, friction_speed: of any v    |                                 |
| stiffness.<coordinate>             | likewise rest: coordinates that are one angle or length |                                 |
| gravity.x y z                      | world frame [m/s^2]                                     |                                 |
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.errors import ModelError, NameLookupError, nearest
from liedyn.model.description import JOINT_TYPES, ONE_DOF, WORLD, Joint, Robot, coordinate_name
from liedyn.model.element_values import element_location
from liedyn.model.links import Link, Pose, vector
from liedyn.model.model import Model
from liedyn.model.model_builder import ModelBuilder
from liedyn.model.model_cache import ModelValue
from liedyn.model.model_joint import ModelJoint, joint_screws
from liedyn.model.spatial import (
    adjoint,
    bracket,
    exp_screw,
    inertia_from_link,
    inertia_matrix,
    inertia_parameters,
    inverse,
    pose,
    screw_frame,
    skew,
    symmetric_matrix,
    transform_inertia,
)

_PARAMETER_TABLE = ModelValue("parameters")
_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_UPPER = ("xx", "xy", "xz", "yy", "yz", "zz")


@dataclass(frozen=True, slots=True)
class ParameterTangents:
    """Changes of the arrays for a unit rate of one parameter: indices `at` and `values` in [tangent | twists of link frames]."""

    at: Integers
    values: Array


def parameter_names(model: Model) -> tuple[str, ...]:
    """Names of all parameters of a model with respect to which derivatives are supported.

    Links first, then origins and screws of joints, parameters of coordinates, gravity; in the order of the model. For their units
    see the table of `model_parameters`.

    Parameters
    ----------
    model : Model

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> [name for name in ld.parameter_names(model) if name.startswith("mass")]
    ['mass.upper', 'mass.lower', 'mass.tip']
    """
    return tuple(_table(model))


_GEOMETRIC = ("origin", "screw", "pitch")


def parameter_tangent(model: Model, name: str, passive: bool = True) -> ParameterTangents:
    """Return the changes of a parameter. Raises NameLookupError for a name that the model does not have.

    passive   whether springs, damping, friction and force elements act
    """
    table = _table(model)
    if name not in table:
        hint = nearest(name, table, written=repr) or "ld.parameter_names(model) lists them all"
        raise NameLookupError(f"no parameter {name!r}; {hint}")
    if passive and model.description.elements and name.partition(".")[0] in _GEOMETRIC:
        raise ModelError(f"derivatives with respect to {name} are not supported for robots with force elements, whose lengths it "
                         "changes", place=element_location(model.description.elements[0]),
                         hint="name other parameters, or leave out the forces of elements by passive=False")
    return table[name]


def tangent_sizes(model: Model) -> tuple[int, int]:
    """Return the sizes of the kernels' tangent (`kernels.directional_derivatives`) and of the twists of link frames after it."""
    return 6 + 22 * model.n_bodies + 6 * model.nv, 6 * len(model.link_names)


def _table(model: Model) -> dict[str, ParameterTangents]:
    return model.cached(_PARAMETER_TABLE, lambda: _make_table(model))


def _make_table(model: Model) -> dict[str, ParameterTangents]:
    table: dict[str, ParameterTangents] = {}
    for name, dense in _TangentTable(model).all():
        at = np.flatnonzero(dense)
        if table.setdefault(name, rates := ParameterTangents(at, dense[at])) is not rates:
            raise NameLookupError(f"two parameters are called {name!r}: rename the joint or the link")
    return table


class _TangentTable:
    """Dense table of the changes for a unit rate of each parameter."""

    def __init__(self, model: Model):
        n, nv = model.n_bodies, model.nv
        self.model = model
        self.total = sum(tangent_sizes(model))
        self.T0, self.S, self.I, self.coordinates = 6, 6 + 6 * n, 6 + 12 * n, 6 + 22 * n
        self.links = self.coordinates + 6 * nv
        self.link = {name: k for k, name in enumerate(model.link_names)}
        self.fixed_children: dict[str, list[str]] = {}            # links that are fixed to a link
        for joint in model.description.joints:
            if joint.type == "fixed" and joint.parent in self.link:
                self.fixed_children.setdefault(joint.parent, []).append(joint.child)

    def all(self) -> Iterator[tuple[str, Array]]:
        """Yield the changes of each parameter."""
        for link in self.model.description.links:
            yield from self._inertial(link)
        for joint in self.model.joints:
            for c, letter in enumerate(_TWIST):
                yield f"origin.{joint.name}.{letter}", self._shift_joint(joint, np.eye(6)[c])
            if joint.screws is not None:
                yield from self._screws(joint, joint.screws)
        for fixed in self.model.description.joints:
            if fixed.type == "fixed":
                for c, letter in enumerate(_TWIST):
                    yield f"origin.{fixed.name}.{letter}", self._shift_links(fixed, np.eye(6)[c])
        yield from self._coordinates()
        for c, letter in enumerate("xyz"):
            yield f"gravity.{letter}", self._at(3 + c, -1.0)

    def _at(self, at: int, values: ArrayLike) -> Array:
        dense = np.zeros(self.total)
        dense[at:at + np.size(values)] = values
        return dense

    def _inertial(self, link: Link) -> Iterator[tuple[str, Array]]:
        """Yield changes of mass, first and second moment m, m c, I + m [c]^T [c], by the product rule."""
        c, m = np.array(link.com, dtype=float), link.mass
        yield f"mass.{link.name}", self._rigid(link.name, 1.0, c, skew(c).T @ skew(c))
        for e, letter in zip(np.eye(3), "xyz", strict=True):
            yield f"com.{link.name}.{letter}", self._rigid(link.name, 0.0, m * e, m * (skew(e).T @ skew(c) + skew(c).T @ skew(e)))
        for e, letters in zip(np.eye(6), _UPPER, strict=True):
            yield f"inertia.{link.name}.{letters}", self._rigid(link.name, 0.0, np.zeros(3), symmetric_matrix(e))

    def _rigid(self, name: str, m: float, h: Array, A: Array) -> Array:
        k = self.link[name]
        moments = transform_inertia(self.model.link_pose[k], np.r_[m, h, A[np.triu_indices(3)]])
        return self._at(self.I + 10 * self.model.link_body[k], moments)

    def _screws(self, joint: ModelJoint, screws: Array) -> Iterator[tuple[str, Array]]:
        """Yield changes of screws. The body of screw k keeps its frame Z: S = Ad_Z S_body, so dS_body = Ad_{Z^-1} dS."""
        several, first = len(screws) > 1, self.S + 6 * joint.first_body
        to_body = [adjoint(inverse(screw_frame(screw)[0])) for screw in screws]
        for k, X in enumerate(to_body):
            for c, letter in enumerate(_TWIST):
                yield f"screw.{joint.name}.{f'{k + 1}.' if several else ''}{letter}", self._at(first + 6 * k, X[:, c])
        if "pitch" in JOINT_TYPES[joint.type].parameters:                     # in which the screws are linear
            described = next(description for description in self.model.description.joints if description.name == joint.name)
            rates = joint_screws(replace(described, pitch=1.0)) - joint_screws(replace(described, pitch=0.0))
            yield f"pitch.{joint.name}", self._at(first, np.concatenate([X @ dS for X, dS in zip(to_body, rates, strict=True)]))

    def _shift_joint(self, joint: ModelJoint, xi: Array) -> Array:
        """Return the change if the joint's frame moves by the twist xi in its frame: T0 of its first body is … home Z."""
        Z = np.eye(4) if joint.screws is None else screw_frame(joint.screws[0])[0]
        return self._at(self.T0 + 6 * joint.first_body, adjoint(inverse(Z)) @ xi)

    def _shift_links(self, joint: Joint, xi: Array) -> Array:
        """Return the change if the child of a fixed joint moves by the twist xi in its frame, with everything attached to it."""
        model, dense = self.model, np.zeros(self.total)
        X_child, waiting, moved = model.link_pose[self.link[joint.child]], [joint.child], {}
        while waiting:
            name = waiting.pop()
            X = model.link_pose[self.link[name]]
            x = moved[name] = adjoint(inverse(X) @ X_child) @ xi
            dense += self._shift_link(name, X, x)
            waiting += self.fixed_children.get(name, [])
        for other in model.joints:
            if other.parent in moved:
                dense += self._shift_joint(other, adjoint(inverse(other.home)) @ moved[other.parent])
        return dense

    def _shift_link(self, name: str, X: Array, x: Array) -> Array:
        """d(Ad*_{X^-1} I Ad_{X^-1}) = -Ad*_{X^-1} (ad_x^T I + I ad_x) Ad_{X^-1}; the second moment and the like of it."""
        k = self.link[name]
        link = self.model.description.links[k]
        back, I = adjoint(inverse(X)), inertia_matrix(inertia_from_link(link))
        J = -back.T @ (bracket(x).T @ I + I @ bracket(x)) @ back
        return self._at(self.I + 10 * self.model.link_body[k], inertia_parameters(0.0, J)) + self._at(self.links + 6 * k, x)

    def _coordinates(self) -> Iterator[tuple[str, Array]]:
        model, nv = self.model, self.model.nv
        springs = np.zeros(nv, dtype=bool)
        for joint in model.joints:
            springs[joint.v] = joint.kind == ONE_DOF
        for row, parameter in enumerate(("armature", "damping", "friction", "stiffness", "rest", "friction_speed")):
            for k, name in enumerate(model.v_names):
                if springs[k] or parameter not in ("stiffness", "rest"):
                    yield f"{parameter}.{name}", self._at(self.coordinates + row * nv + k, 1.0)


# Robots with changed parameters -----------------------------------------------------------------------------------------

LINK_COMPONENTS = {"mass": ("",), "com": ("x", "y", "z"), "inertia": ("xx", "xy", "xz", "yy", "yz", "zz")}      # of a link


def perturbed_model(model: Model, name: str, change: float) -> Model:
    """Return the model with `change` added to the parameter `name`.

    The model is not validated: a finite difference may change a massless link to a negative mass.
    """
    tree = ModelBuilder(_changed(_with_root_joint(model), model, name, change))
    tree.add_links()
    tree.pivot_threshold = np.zeros(model.nv)
    return Model._from_fields(**tree.fields())


def with_parameters(model: Model, values: Mapping[str, float]) -> Robot:
    """Return the robot with the given parameter values, as defined by `parameter_value`; it is not validated.

    Placements and screws have the value zero in `model`: their parameters are changes.
    """
    described = {joint.name for joint in model.description.joints}
    roots = [joint.name for joint in model.joints if joint.name not in described]
    of_root = any(name.partition(".")[2].partition(".")[0] in roots for name in values)
    robot = _with_root_joint(model) if of_root else model.description
    for name, x in values.items():
        robot = _changed(robot, model, name, x - parameter_value(model, name))
    return robot


def _changed(robot: Robot, model: Model, name: str, change: float) -> Robot:
    """Return the robot with `change` added to the parameter `name`."""
    head, _, element = name.partition(".")
    if head == "gravity":
        return replace(robot, gravity=vector(_with_added(robot.gravity, "xyz".index(element), change)))
    if head in LINK_COMPONENTS:
        return replace(robot, links=tuple(_changed_link(link, head, element, change) for link in robot.links))
    moved = head in ("origin", "screw", "pitch")
    return replace(robot, joints=tuple(_displaced_joint(model, joint, head, element, change) if moved else
                                       _changed_coordinate(joint, head, element, change) for joint in robot.joints))


def parameter_value(model: Model, name: str) -> float:
    """Return the value of a parameter; zero for placements and screws, whose parameters are changes."""
    head, _, element = name.partition(".")
    if head == "gravity":
        return float(model.gravity["xyz".index(element)])
    if head in LINK_COMPONENTS:
        links = {_component_index(link, head, element): link for link in model.description.links}
        return float(next(link.mass if head == "mass" else getattr(link, head)[k] for k, link in links.items() if k is not None))
    for joint in _with_root_joint(model).joints:
        if head == "pitch" and joint.name == element:
            return joint.pitch
        for coordinate, parameters in zip(joint.coordinate_names, joint.coordinate_parameters, strict=True):
            if element == coordinate and hasattr(parameters, head):
                return float(getattr(parameters, head))
    return 0.0


def _with_root_joint(model: Model) -> Robot:
    """Return the description, with the free joint of a floating base as a separate joint."""
    robot, known = model.description, {joint.name for joint in model.description.joints}
    added = tuple(Joint(joint.name, "free", WORLD, joint.child) for joint in model.joints if joint.name not in known)
    return replace(robot, joints=(*added, *robot.joints), base="fixed") if added else robot


def _component_index(link: Link, head: str, element: str) -> int | None:
    """Return the index of the parameter in the field `head` of a link; None if it belongs to another link."""
    names = [coordinate_name(link.name, part) for part in LINK_COMPONENTS[head]]
    return names.index(element) if element in names else None


def _changed_link(link: Link, head: str, element: str, change: float) -> Link:
    k = _component_index(link, head, element)
    if k is None:
        return link
    value = getattr(link, head)
    changed: Any = value + change if head == "mass" else _with_added(value, k, change)
    return replace(link, **{head: changed})


def _displaced_joint(model: Model, joint: Joint, head: str, element: str, change: float) -> Joint:
    """Return the joint with changed placement, screw or pitch.

    A placement changes as origin -> origin exp(twist). A screw changes in the list of all screws of the joint.
    """
    if head == "pitch":
        if joint.name != element:
            return joint
        if joint.type != "screws":
            return replace(joint, pitch=joint.pitch + change)
        return replace(joint, screws=tuple(map(tuple, np.array(joint.screws) + _pitch_change(model, joint.name, change))))
    owner, _, part = element.rpartition(".")
    if head == "origin":
        if joint.name != owner:
            return joint
        T = pose(joint.origin) @ exp_screw(np.eye(6)[_TWIST.index(part)], change)
        return replace(joint, origin=Pose.from_matrix(T))
    numbered, _, k = owner.rpartition(".")
    is_numbered = joint.name == numbered and k.isdigit()
    if joint.name != owner and not is_numbered:
        return joint
    original = model.joint(joint.name)
    screws = np.array(joint.screws if joint.type == "screws" else original.screws)          # "screws": changed before
    if joint.type == "helical":
        screws = screws + _pitch_change(model, joint.name, joint.pitch - parameter_value(model, f"pitch.{joint.name}"))
    screws[int(k) - 1 if is_numbered else 0, _TWIST.index(part)] += change
    return replace(joint, type="screws", screws=tuple(map(tuple, screws)), axes=(), pitch=0.0, sequence="")


def _pitch_change(model: Model, name: str, change: float) -> Array:
    """Return the change (1, 6) of the screw of a helical joint of the model by a change of its pitch."""
    axis = np.array(model.joint(name).screws)[:, :3]
    return change * np.concatenate([np.zeros_like(axis), axis], axis=1)


def _changed_coordinate(joint: Joint, head: str, element: str, change: float) -> Joint:
    if element not in joint.coordinate_names:
        return joint
    k, parameters = joint.coordinate_names.index(element), list(joint.coordinate_parameters)
    parameters[k] = replace(parameters[k], **{head: getattr(parameters[k], head) + change})
    return replace(joint, coordinates=tuple(parameters))


def _with_added(x: Sequence[float], k: int, change: float) -> tuple[float, ...]:
    """Return a tuple of numbers with `change` added to entry k."""
    return *x[:k], x[k] + change, *x[k + 1:]
