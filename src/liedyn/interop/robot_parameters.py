"""Parameters of a robot as expressions: the constants of its kernels, as polynomials of masses, lengths, springs and gravity."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.model_parameters import LINK_COMPONENTS, parameter_names, parameter_value, with_parameters
from liedyn.errors import NameLookupError, UsageError, nearest
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import coordinate_name
from liedyn.model.model import Model, build
from liedyn.model.spatial import transform_inertia

_COORDINATE_ROWS = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")
# Entries of placements of inertias that are so near to 0, 1 or -1 are taken as these values, as in `codegen.tracer`.
_ROUNDING = 1e-15


class RobotParameters:
    """Parameters of a robot that a trace reads, and its constants as their expressions.

    model    in which the parameters are not zero, so that the kernels include what depends on them
    varying  indices of constants of the kernels that depend on the parameters
    """

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        known = parameter_names(model)
        for name in names:
            if name not in known:
                hint = nearest(name, dict.fromkeys(known), written=repr) or "ld.parameter_names(model) lists them all"
                raise NameLookupError(f"no parameter {name!r}; {hint}")
            if name.startswith(("screw.", "pitch.")) or (name.startswith("origin.") and name[-2] == "w"):
                raise UsageError(f"{name} changes the direction of an axis: expected masses, centres of mass, inertias, "
                                 "positions (origin.<joint>.vx), gravity, or springs, damping, friction and armature")
        self.names, self._links = tuple(names), {name: link for name in names if (link := _link_component(model, name))}
        zero = [name for name in names if name.startswith(_COORDINATE_ROWS) and parameter_value(model, name) == 0.0]
        self.model = build(with_parameters(model, dict.fromkeys(zero, 1.0))) if zero else model
        # as functions of the parameters, inertias without the reduction to the joints' axes are simpler
        self._changes_inertia = any(name.startswith(("mass.", "com.", "inertia.", "origin.")) for name in names)
        self._moved = {name: self._displaced(name) for name in names if name.startswith("origin.")}
        self.varying = tuple(sorted(self.constants(dict.fromkeys(names, 1.0), float)))

    def _displaced(self, name: str) -> Array:
        """Return the change of the placements of the bodies for a unit of a position."""
        moved = build(with_parameters(self.model, {name: 1.0}))
        tree, other = (tree_views.py_func(x.index, x.constants) for x in (self.model, moved))
        if not (np.allclose(tree.I, other.I, rtol=0, atol=1e-12 * np.abs(tree.I).max(initial=0.0))
                and np.array_equal(self.model.link_pose, moved.link_pose)):
            raise UsageError(f"{name} moves links within a body: expected the position of a moving joint")
        return _without_rounding(other.T0 - tree.T0)

    def read(self, traced: Model) -> Model:
        """Return the model of a trace."""
        if not self._changes_inertia:
            return traced
        constants = traced.constants.copy()
        place = tree_views.py_func(traced.index, np.arange(constants.size))
        constants[place.J] = constants[place.I]
        return traced._copy(constants=constants)

    def values(self, expressions: Mapping[str, Any], constant: Callable[[float], Any]) -> list[Any]:
        """Return the constants at `varying`. expressions: of each parameter; constant: converts a number to an expression."""
        constants = self.constants(expressions, constant)
        return [constants[k] for k in self.varying]

    def constants(self, expressions: Mapping[str, Any], constant: Callable[[float], Any]) -> dict[int, Any]:
        """Return the constants that depend on the parameters, by index."""
        model, changed = self.model, {}
        tree, place = (tree_views.py_func(model.index, x) for x in (model.constants, np.arange(model.constants.size)))
        for name in self.names:
            head, _, element = name.partition(".")
            if head == "gravity":
                changed[int(place.dV0[3 + "xyz".index(element)])] = -expressions[name]
            elif head in _COORDINATE_ROWS:
                changed[int(getattr(place, head)[model.v_names.index(element)])] = expressions[name]
            elif head == "origin":
                for k in np.flatnonzero(change := self._moved[name]).tolist():
                    at = int(place.T0[k])
                    changed[at] = changed.get(at, constant(float(tree.T0[k]))) + constant(float(change[k])) * expressions[name]
        for body in {int(model.link_body[link]) for link, _, _ in self._links.values()}:
            for i, x in enumerate(self._body_inertia(body, expressions, constant), 10 * body):
                changed[int(place.I[i])] = changed[int(place.J[i])] = x
        return changed

    def _body_inertia(self, body: int, expressions: Mapping[str, Any], constant: Callable[[float], Any]) -> list[Any]:
        """Return the ten parameters of a body: those of its links, placed."""
        total = [constant(0.0)] * 10
        for k in np.flatnonzero(self.model.link_body == body).tolist():
            link = self.model.description.links[k]
            parts = {"mass": [constant(link.mass)], "com": [*map(constant, link.com)], "inertia": [*map(constant, link.inertia)]}
            for name, (of, field, i) in self._links.items():
                if of == k:
                    parts[field][i] = expressions[name]
            for x, placed in zip(_moments(*parts.values()), _without_rounding(transform_inertia(
                    self.model.link_pose[k], np.eye(10))), strict=True):
                for i in np.flatnonzero(placed).tolist():
                    total[i] = total[i] + constant(float(placed[i])) * x
        return total


def _link_component(model: Model, name: str) -> tuple[int, str, int] | None:
    """Return the link, the field and the index in it of a parameter of links; None for others."""
    head, _, element = name.partition(".")
    for k, link in enumerate(model.description.links):
        names = [coordinate_name(link.name, part) for part in LINK_COMPONENTS.get(head, ())]
        if element in names:
            return k, head, names.index(element)
    return None


def _moments(mass: list[Any], com: list[Any], inertia: list[Any]) -> list[Any]:
    """Return mass, first moments and second moments about the origin of a link, as `model.spatial.inertia_from_link`."""
    (m,), (x, y, z), (xx, xy, xz, yy, yz, zz) = mass, com, inertia
    return [m, m * x, m * y, m * z, xx + m * (y * y + z * z), xy - m * x * y, xz - m * x * z, yy + m * (x * x + z * z),
            yz - m * y * z, zz + m * (x * x + y * y)]


def _without_rounding(x: Array) -> Array:
    """Return an array in which numbers that differ from whole numbers by rounding errors are these numbers."""
    return np.where(np.abs(x - np.round(x)) < _ROUNDING, np.round(x), x)
