"""Characteristic length, mass and time of a robot, with which numbers of different units are compared (ranks, norms, tolerances).

They depend on the bodies, the joints and the magnitude of gravity only. So they scale with the units of the robot, and do not
depend on the place of the robot or the orientation of the world.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import summarized
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue

_SCALES = ModelValue("scales")


@summarized
class Scales(NamedTuple):
    """length [m], mass [kg], time [s]: products of their powers are characteristic sizes of all other quantities."""

    length: float
    mass: float
    time: float

    def unit_scale(self, unit: str) -> float:
        """Return the size of a quantity with a unit composed of kg, N, m, rad, s: "N m s/rad", "rad/s^2", "N m/(rad/s)".

        Angles have no scale.
        """
        over, *under = re.split(r"/(?![^()]*\))", unit, maxsplit=1)             # at a / outside of parentheses
        sizes = [self.unit_scale(part[1:-1]) if part.startswith("(") else self._product(part) for part in (over, *under)]
        return sizes[0] / sizes[1] if under else sizes[0]

    def unit_scales(self, units: Iterable[str]) -> Array:
        """Return the sizes of quantities with these units."""
        return np.array([self.unit_scale(unit) for unit in units])

    def force_scales(self, units: Iterable[str]) -> Array:
        """Return the sizes of generalized forces of coordinates with the units rad or m."""
        return self.unit_scales("N m" if unit == "rad" else "N" for unit in units)

    def _product(self, unit: str) -> float:
        size = 1.0
        for factor in unit.split():
            name, _, power = factor.partition("^")
            size *= self._base(name)**int(power or 1)
        return size

    def _base(self, name: str) -> float:
        if name == "N":
            return self.mass * self.length / self.time**2
        return {"kg": self.mass, "m": self.length, "s": self.time, "rad": 1.0, "1": 1.0}[name]


def model_scales(model: Model) -> Scales:
    """Return the scales of a model, which are cached.

    length   maximum distance between axes of one moving body, distance of such an axis from the mass centre of its body, or
             radius of gyration; 1 m for a robot without any
    mass     of all moving bodies; 1 kg if they have none
    time     sqrt(length/g), of a pendulum of that length; without gravity that of the stiffest joint spring; otherwise 1 s
    """
    return model.cached(_SCALES, lambda: _scales(model))


def _scales(model: Model) -> Scales:
    tree = tree_views.py_func(model.index, model.constants)
    turns = (tree.kind != ONE_DOF) | (tree.S[::2] != 0.0)
    turns[0] = False                                   # without the ground: the position of the robot has no effect
    I, places = tree.I.reshape(-1, 10)[1:], tree.T0.reshape(-1, 12)[:, 9:]
    heavy = I[:, 0] > 0.0
    com = I[heavy, 1:4] / I[heavy, :1]
    gyration = np.maximum(I[heavy][:, [4, 7, 9]].sum(axis=1) / (2.0 * I[heavy, 0]) - (com**2).sum(axis=1), 0.0)
    lengths = [*np.linalg.norm(places[turns & turns[tree.parent]], axis=1), *np.linalg.norm(com[turns[1:][heavy]], axis=1),
               *np.sqrt(gyration)]
    length, mass = float(max(lengths, default=0.0)) or 1.0, float(I[:, 0].sum()) or 1.0
    g = float(np.linalg.norm(model.gravity))
    slides = np.array([unit == "m" for unit in model.v_units], dtype=bool)
    stiffest = float(np.max(tree.stiffness * np.where(slides, length**2, 1.0), initial=0.0))
    time = np.sqrt(length / g) if g > 0.0 else np.sqrt(mass * length**2 / stiffest) if stiffest > 0.0 else 1.0
    return Scales(length, mass, float(time))
