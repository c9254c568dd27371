"""`contacts` of a scenario, from its YAML and back."""
from __future__ import annotations

import math

from liedyn.io.scenarios.contact_keys import CONTACTS, MATERIAL, PLANE, SHAPE
from liedyn.io.scenarios.contact_shapes import EXPONENTS, SHAPES, Contact, Pair, Plane, Shape
from liedyn.io.scenarios.scenario import WITHOUT_EVENTS, Rule
from liedyn.io.yaml_text import Node


def read_contacts(node: Node, method: str) -> Contact:
    """method: of the integrator."""
    given = node.mapping(CONTACTS)
    if method in WITHOUT_EVENTS:                         # their Newton iterations do not know the slopes of contact forces
        raise node.problem(f"{method} does not integrate contacts", expected="another integrator.method, such as Radau")
    links = CONTACTS.require(node, "links").mapping()
    if not links:
        raise given["links"].problem("no link touches anything", expected="a shape by link: {foot: {sphere: {radius: 0.02}}}")
    planes = (Plane("ground"),)
    if "planes" in given:
        planes = tuple(_plane(name, child) for name, child in given["planes"].mapping().items())
        if not planes and "pairs" not in given:
            raise given["planes"].problem("no plane", expected="{ground: {point: [0, 0, 0], normal: [0, 0, 1]}}")
    pairs = tuple(_pair(child) for child in given["pairs"].items(least=1, of="pairs")) if "pairs" in given else ()
    return Contact(tuple(Rule(name, _shapes(child), child.place) for name, child in links.items()), planes, _material(given),
                   pairs, node.place)


def _pair(node: Node) -> Pair:
    return Pair(tuple(one.text() for one in node.items(2, of="names of links")), node.place)


def _plane(name: str, node: Node) -> Plane:
    given = node.mapping(PLANE)
    values = {key: PLANE.value(given, key) for key in given}
    if "normal" in values and not math.hypot(*values["normal"]) > 0.0:
        raise given["normal"].problem("the normal of a plane is zero", found=given["normal"].shown(),
                                      expected="the direction out of the ground, such as [0, 0, 1]")
    return Plane(name, **values, place=node.place)


def _shapes(node: Node) -> tuple[Shape, ...]:
    return tuple(map(_shape, node.items(least=1, of="shapes"))) if node.kind == "list" else (_shape(node),)


def _shape(node: Node) -> Shape:
    given = node.mapping(SHAPE)
    kinds = [key for key in given if key in SHAPES]
    if len(kinds) != 1:
        raise node.problem(f"a contact takes exactly one of {', '.join(SHAPES)}", found=", ".join(kinds) or "nothing")
    kind, child = kinds[0], given[kinds[0]]
    own = {key: SHAPE.value(given, key) for key in ("at", "rpy") if key in given}
    for key in {"point": ("at", "rpy"), "sphere": ("rpy",)}.get(kind, ()):
        if key in given:
            raise given[key].problem(f"{key} does not apply to a {kind}")
    if kind == "point":
        own, sizes = {"at": SHAPE.value(given, kind)}, ()
    elif kind == "box":
        sizes = tuple(size.number(above=0) for size in child.items(3, of="lengths"))
    else:
        values = SHAPE[kind].value.values(child)
        sizes = tuple(values[size] for size in SHAPES[kind])
    return Shape(kind, sizes, **own, material=_material(given), place=node.place)


def _material(given: dict[str, Node]) -> tuple[tuple[str, float], ...]:
    if "stiffness" in given and "sink" in given:
        raise given["sink"].problem("both stiffness and sink", expected="one of them")
    values = {key.name: CONTACTS.value(given, key.name) for key in MATERIAL if key.name in given}
    if values.get("exponent", EXPONENTS[0]) not in EXPONENTS:
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
            "planes": {plane.name: {"point": list(plane.point), "normal": list(plane.normal),
                                    **({"link": plane.link} if plane.link else {})} for plane in contact.planes},
            **({"pairs": [list(pair.links) for pair in contact.pairs]} if contact.pairs else {}),
            **dict(contact.material)}
