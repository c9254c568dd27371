"""What <compiler> and <option> say about how a file is to be read."""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from liedyn.io.robots.mjcf.tree import Element, Written
from liedyn.model.description import STANDARD_GRAVITY, Vector

_ANGLE = {"degree": math.pi / 180, "radian": 1.0}
_WAYS = {"true": True, "false": False, "auto": None}


@dataclass(frozen=True, slots=True)
class Compiler:
    """angle: radians per unit of an angle; inertia_from_geoms: always, never or (None) where a body has no <inertial>."""

    angle: float
    sequence: str
    autolimits: bool
    inertia_from_geoms: bool | None
    groups: tuple[float, float]          # of the geoms that count for the inertia
    total_mass: float | None
    least_mass: float
    least_inertia: float
    balance: bool
    align_free: bool


def merged(elements: Iterable[Element], tag: str) -> Element:
    """Elements of a tag as one: later attributes replace earlier ones."""
    found = list(elements)
    attributes: dict[str, Written] = {}
    for element in found:
        attributes |= element.attributes
    children = [child for element in found for child in element.children]
    return Element(tag, attributes, found[0].file if found else "", found[0].line if found else 0, children)


def read_compiler(root: Element) -> Compiler:
    found = merged(root.every("compiler"), "compiler")
    if found.text("coordinate", "local") != "local":
        raise found.problem("global coordinates are not supported", "coordinate", found=found.text("coordinate"),
                            expected="local")
    sequence = found.text("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence) - set("xyzXYZ"):
        raise found.problem("wrong value", "eulerseq", found=sequence, expected="three of x y z X Y Z")
    total = found.number("settotalmass", -1.0)
    groups = found.vector("inertiagrouprange", (-math.inf, math.inf))
    return Compiler(_ANGLE[found.choice("angle", _ANGLE, "degree")], sequence, found.switch("autolimits", True),
                    _WAYS[found.choice("inertiafromgeom", _WAYS, "auto")], groups,
                    total if total > 0 else None, found.number("boundmass", 0.0), found.number("boundinertia", 0.0),
                    found.switch("balanceinertia", False), found.switch("alignfree", False))


@dataclass(frozen=True, slots=True)
class Option:
    """gravity, and what is switched off."""

    gravity: Vector
    springs: bool
    dampers: bool
    friction: bool
    limits: bool
    equality: bool


def read_option(root: Element) -> Option:
    found = merged(root.every("option"), "option")
    for key in ("density", "viscosity"):
        found.refuse(key, "forces of a fluid are not supported", hint="remove it to neglect the fluid")
    flag = merged(found.every("flag"), "flag")

    def on(name: str) -> bool:
        return flag.choice(name, ("enable", "disable"), "enable") == "enable"
    constraints, passive = on("constraint"), on("passive")
    gravity = found.vector("gravity", STANDARD_GRAVITY) if on("gravity") else (0.0, 0.0, 0.0)
    return Option(gravity, on("spring") and passive, on("damper") and passive, on("frictionloss") and constraints,
                  on("limit") and constraints, on("equality") and constraints)
