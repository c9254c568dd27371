"""`contacts` of a scenario: what of which links touches which planes."""
from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from liedyn.errors import Place
from liedyn.io.scenario import Rule
from liedyn.io.yaml_text import Node

# What can touch, and what is given of it, as in robot files: a point its position, a box its lengths.
SHAPES = {"point": (), "sphere": ("radius",), "capsule": ("radius", "length"), "box": ("x", "y", "z")}
EXPONENTS = (1.0, 1.5, 2.0)
LEAST_CREEP = 1e-9
LARGEST = 1e30


@dataclass(frozen=True, slots=True)
class Material:
    """N = stiffness d^exponent (1 + damping d'), friction mu N u / sqrt(u^2 + creep^2), see `kernels.simulation.contact`.

    stiffness    [N/m^exponent]; None: such that a contact sinks by `sink` [m] under its share of the weight
    """

    friction: float = 0.8
    stiffness: float | None = None
    sink: float = 1e-3
    exponent: float = 1.5
    damping: float = 2.0         # s/m
    creep: float = 1e-3          # m/s


MATERIAL = tuple(one.name for one in fields(Material))


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a link touches: `corners` [m] in the shape's frame, each a sphere of `radius`; `carrying` of them share a load."""

    kind: str
    sizes: tuple[float, ...]
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    material: tuple[tuple[str, float], ...] = ()          # what differs from the other contacts
    place: Place = field(default=Place(), compare=False)

    @property
    def radius(self) -> float:
        return self.sizes[0] if self.kind in ("sphere", "capsule") else 0.0

    @property
    def carrying(self) -> int:
        return {"point": 1, "sphere": 1, "capsule": 2, "box": 4}[self.kind]

    @property
    def corners(self) -> tuple[tuple[float, float, float], ...]:
        if self.kind == "box":
            x, y, z = (s / 2 for s in self.sizes)
            return tuple((a * x, b * y, c * z) for c in (-1, 1) for a in (1, -1) for b in (1, -1))
        if self.kind == "capsule":
            return (0.0, 0.0, -self.sizes[1] / 2), (0.0, 0.0, self.sizes[1] / 2)
        return ((0.0, 0.0, 0.0),)


@dataclass(frozen=True, slots=True)
class Plane:
    """The half space below it is solid. normal: any length but zero."""

    name: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Contact:
    """links: rules whose value is a tuple of `Shape`. Each shape touches each plane."""

    links: tuple[Rule, ...]
    planes: tuple[Plane, ...] = (Plane("ground"),)
    material: tuple[tuple[str, float], ...] = ()
    place: Place = field(default=Place(), compare=False)


def read_contacts(node: Node, method: str) -> Contact:
    """method: of the integrator."""
    given = node.mapping(("links", "planes", *MATERIAL))
    if method == "generalized_alpha":                    # its Newton iteration does not know the slopes of contact forces
        raise node.problem("generalized_alpha does not integrate contacts", expected="another integrator.method, such as Radau")
    links = node.require("links", "what touches, by link: {foot: {sphere: {radius: 0.02}}}").mapping()
    if not links:
        raise given["links"].problem("no link touches anything", expected="a shape by link: {foot: {sphere: {radius: 0.02}}}")
    planes = (Plane("ground"),)
    if "planes" in given:
        planes = tuple(_plane(name, child) for name, child in given["planes"].mapping().items())
        if not planes:
            raise given["planes"].problem("no plane", expected="{ground: {point: [0, 0, 0], normal: [0, 0, 1]}}")
    return Contact(tuple(Rule(name, _shapes(child), child.place) for name, child in links.items()), planes, _material(given),
                   node.place)


def _plane(name: str, node: Node) -> Plane:
    given = node.mapping(("point", "normal"))
    values = {key: child.vector(3) for key, child in given.items()}
    if "normal" in values and not math.hypot(*values["normal"]) > 0.0:
        raise given["normal"].problem("the normal of a plane is zero", found=given["normal"].shown(),
                                      expected="the direction out of the ground, such as [0, 0, 1]")
    return Plane(name, **values, place=node.place)


def _shapes(node: Node) -> tuple[Shape, ...]:
    return tuple(map(_shape, node.items(least=1, of="shapes"))) if node.kind == "list" else (_shape(node),)


def _shape(node: Node) -> Shape:
    given = node.mapping((*SHAPES, "at", "rpy", *MATERIAL))
    kinds = [key for key in given if key in SHAPES]
    if len(kinds) != 1:
        raise node.problem(f"a contact takes exactly one of {', '.join(SHAPES)}", found=", ".join(kinds) or "nothing")
    kind, child = kinds[0], given[kinds[0]]
    own = {key: given[key].vector(3) for key in ("at", "rpy") if key in given}
    for key in {"point": ("at", "rpy"), "sphere": ("rpy",)}.get(kind, ()):
        if key in given:
            raise given[key].problem(f"{key} does not apply to a {kind}")
    if kind == "point":
        own, sizes = {"at": child.vector(3)}, ()
    elif kind == "box":
        sizes = tuple(size.number(above=0) for size in child.items(3, of="lengths"))
    else:
        child.mapping(SHAPES[kind])
        sizes = tuple(child.require(size, "a length in metres").number(above=0) for size in SHAPES[kind])
    return Shape(kind, sizes, **own, material=_material(given), place=node.place)


_BOUNDS = {"friction": {"least": 0, "most": 100}, "stiffness": {"above": 0, "most": LARGEST}, "sink": {"above": 0},
           "damping": {"least": 0, "most": LARGEST}, "creep": {"least": LEAST_CREEP}}


def _material(given: dict[str, Node]) -> tuple[tuple[str, float], ...]:
    if "stiffness" in given and "sink" in given:
        raise given["sink"].problem("both stiffness and sink", expected="one of them")
    values = {key: given[key].number(**_BOUNDS[key]) for key in MATERIAL if key in given and key != "exponent"}
    if "exponent" in given:
        values["exponent"] = given["exponent"].number()
        if values["exponent"] not in EXPONENTS:
            raise given["exponent"].wrong("one of " + ", ".join(f"{x:g}" for x in EXPONENTS))
    return tuple(values.items())


def plain_contacts(contact: Contact) -> dict:
    """As in the file."""
    def shape(one: Shape) -> dict:
        if one.kind == "point":
            own = {"point": list(one.at)}
        else:
            own = {one.kind: list(one.sizes) if one.kind == "box" else dict(zip(SHAPES[one.kind], one.sizes, strict=True))}
            own |= {key: list(value) for key, value in (("at", one.at), ("rpy", one.rpy)) if any(value)}
        return own | dict(one.material)

    return {"links": {rule.pattern: shape(rule.value[0]) if len(rule.value) == 1 else [shape(one) for one in rule.value]
                      for rule in contact.links},
            "planes": {plane.name: {"point": list(plane.point), "normal": list(plane.normal)} for plane in contact.planes},
            **dict(contact.material)}
