"""`contacts` of a scenario: their keys, from YAML and back."""
from __future__ import annotations

import math

from liedyn.io.keys import Key, Keys, List, Named, Number, Text, Vector, default_of, one_or_more, only
from liedyn.io.robots.robot_keys import SHAPE as BODY
from liedyn.io.scenarios.contact_shapes import (
    EXPONENTS,
    LARGEST_CREEP,
    LEAST_CREEP,
    LEAST_LENGTH,
    SHAPES,
    Contact,
    Material,
    Pair,
    Plane,
    Shape,
)
from liedyn.io.scenarios.scenario import WITHOUT_EVENTS
from liedyn.io.scenarios.signal_keys import by_name, plain_rules
from liedyn.io.write_yaml import plain
from liedyn.io.yaml_text import Node
from liedyn.model.description import LARGEST


def read_contacts(node: Node, method: str) -> Contact:
    """method: of the integrator."""
    given = node.mapping(CONTACTS)
    if method in WITHOUT_EVENTS:                         # their Newton iterations do not know the slopes of contact forces
        raise node.problem(f"{method} does not integrate contacts", expected="another integrator.method, such as Radau")
    values = CONTACTS.values(node)
    if not values["links"]:
        raise given["links"].problem("no link touches anything", expected="a shape by link: {foot: {sphere: {radius: 0.02}}}")
    if "planes" in given and not values["planes"] and "pairs" not in given:
        raise given["planes"].problem("no plane", expected="{ground: {point: [0, 0, 0], normal: [0, 0, 1]}}")
    parts = {key: values[key] for key in ("links", "planes", "pairs") if key in values}
    return Contact(**parts, material=_material(given), place=node.place)


def _pair(node: Node) -> Pair:
    return Pair(tuple(one.text() for one in node.items(2, of="names of links")), node.place)


def _planes(node: Node) -> tuple[Plane, ...]:
    return tuple(_plane(name, child) for name, child in node.mapping().items())


def _plane(name: str, node: Node) -> Plane:
    values = PLANE.values(node)
    if "normal" in values and not math.hypot(*values["normal"]) > 0.0:
        normal = node.value["normal"]
        raise normal.problem("the normal of a plane is zero", found=normal.shown(),
                             expected="the direction out of the ground, such as [0, 0, 1]")
    return Plane(name, **values, place=node.place)


def _shape(node: Node) -> Shape:
    given = node.mapping(SHAPE)
    kind, child = only(node, given, SHAPES, "a contact")
    own = {key: SHAPE.value(given, key) for key in ("at", "rpy") if key in given}
    for key in {"point": ("at", "rpy"), "sphere": ("rpy",)}.get(kind, ()):
        if key in given:
            raise given[key].problem(f"{key} does not apply to a {kind}")
    sizes = SHAPE[kind].value.read(child)
    if kind == "point":
        own, sizes = {"at": sizes}, ()
    return Shape(kind, sizes, **own, material=_material(given), place=node.place)


def _material(given: dict[str, Node]) -> tuple[tuple[str, float], ...]:
    if "stiffness" in given and "sink" in given:
        raise given["sink"].problem("both stiffness and sink", expected="one of them")
    values = {key.name: CONTACTS.value(given, key.name) for key in MATERIAL if key.name in given}
    if values.get("exponent", EXPONENTS[0]) not in EXPONENTS:
        raise given["exponent"].wrong("one of " + ", ".join(f"{x:g}" for x in EXPONENTS))
    return tuple(values.items())


MATERIAL = (
    Key("friction", Number(least=0, most=100), "coefficient of friction", default_of(Material, "friction"), example=0.8),
    Key("stiffness", Number(above=0, most=LARGEST), "[N/m^exponent]", "by `sink`", example=1e5),
    Key("sink", Number(least=LEAST_LENGTH, most=LARGEST), "instead of `stiffness`: how far a contact sinks under its share of "
        "the weight [m]", default_of(Material, "sink"), example=1e-3),
    Key("exponent", Number(), "of the normal force: 1, 1.5 or 2", default_of(Material, "exponent"), example=1.5),
    Key("damping", Number(least=0, most=LARGEST), "of the normal force [s/m]", default_of(Material, "damping"), example=2),
    Key("creep", Number(least=LEAST_CREEP, most=LARGEST_CREEP), "speed below which friction is smooth [m/s]",
        default_of(Material, "creep"), example=1e-3),
    Key("smooth", Number(least=LEAST_LENGTH, most=LARGEST), "width of the smooth form of the normal force, which is "
        "differentiable everywhere [m]", "none", example=1e-4))
SHAPE = Keys("contact_shape", (
    Key("point", Vector(3, LARGEST), "position in the link frame [m]", example=[0, 0, -0.5]),
    Key("sphere", BODY["sphere"].value, "by its radius"),
    Key("capsule", BODY["capsule"].value, "by radius and length; its two ends touch"),
    Key("box", BODY["box"].value, "lengths [m]; its eight corners touch", example=[0.1, 0.1, 0.5]),
    Key("at", Vector(3, LARGEST), "centre in the link frame [m]", "the origin", example=[0, 0, -0.5]),
    Key("rpy", Vector(3, LARGEST), "orientation in the link frame [rad]", "zero", example=[0, 0, 0.1]), *MATERIAL),
    one_of=(("point", "sphere", "capsule", "box"),), how=_shape)
PLANE = Keys("plane", (
    Key("point", Vector(3, LARGEST), "a point of it in the world [m]", "the origin", example=[0, 0, -1]),
    Key("normal", Vector(3, LARGEST), "direction out of the ground", "z", example=[0, 0, 1]),
    Key("link", Text(), "link that carries the plane; `point` and `normal` are then in its frame", "none", example="lower")))
CONTACTS = Keys("contacts", (
    Key("links", by_name(one_or_more(SHAPE, "contact_shapes", "shapes"), "link*"),
        "what touches, by link: a shape or a list of them",
        required=True, missing="what touches, by link: {foot: {sphere: {radius: 0.02}}}"),
    Key("planes", Named(PLANE, "ground", _planes), "by name", "the ground z = 0"),
    Key("pairs", List(List(Text(), 2, 2, how=_pair), 1, words="pairs"), "links that touch each other: names or patterns of two "
        "links each", "none", example=[["upper", "lower"]]), *MATERIAL))


def plain_contacts(contact: Contact) -> dict:
    """As in the file."""
    def shape(one: Shape) -> dict:
        if one.kind == "point":
            return {"point": one.at, **dict(one.material)}
        sizes = one.sizes if one.kind == "box" else dict(zip(SHAPES[one.kind], one.sizes, strict=True))
        placed = {key: value for key, value in (("at", one.at), ("rpy", one.rpy)) if any(value)}
        return {one.kind: sizes, **placed, **dict(one.material)}

    links = plain_rules(contact.links, lambda shapes: list(map(shape, shapes)) if len(shapes) > 1 else shape(shapes[0]))
    planes = {plane.name: {key: getattr(plane, key) for key in PLANE} for plane in contact.planes}
    return plain({"links": links, "planes": planes, "pairs": [pair.links for pair in contact.pairs] or None,
                  **dict(contact.material)})
