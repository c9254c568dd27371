"""Keys of `contacts` in scenarios, reading from YAML and writing."""
from __future__ import annotations

from typing import Any

from liedyn.io.file_schema import (
    Choice,
    Field,
    List,
    Named,
    Number,
    OneOf,
    Schema,
    Text,
    Vector,
    default_of,
    kinds_with,
    one_or_more,
    only,
)
from liedyn.io.robots.robot_schema import SHAPE as BODY
from liedyn.io.scenarios.scenario import (
    EXPONENTS,
    LEAST_LENGTH,
    MECHANICAL_METHODS,
    SHAPES,
    Contact,
    LimitStops,
    Material,
    Pair,
    Plane,
    Shape,
)
from liedyn.io.scenarios.signal_schema import by_name, patterns, rules_to_dict
from liedyn.io.yaml_nodes import Node
from liedyn.io.yaml_values import plain
from liedyn.model.description import MAX_FRICTION_SPEED, MIN_FRICTION_SPEED
from liedyn.model.element_values import MAX_INPUT


def read_contacts(node: Node, method: str) -> Contact:
    """Return the contacts of a scenario. Raise if the integration method does not support them."""
    nodes = node.mapping(CONTACTS)
    if method in MECHANICAL_METHODS:              # their Newton iterations do not include the derivatives of contact forces
        raise node.problem(f"contacts are not supported by {method}", expected="another integrator.method, such as Radau")
    values = CONTACTS.values(node)
    if not values["links"]:
        raise nodes["links"].problem("no link has a contact shape", expected="a shape by link: {foot: {sphere: {radius: 0.02}}}")
    if "planes" in nodes and not values["planes"] and "pairs" not in nodes:
        raise nodes["planes"].problem("no plane", expected="{ground: {point: [0, 0, 0], normal: [0, 0, 1]}}")
    parts = {key: values[key] for key in ("links", "planes", "pairs") if key in values}
    return Contact(**parts, material=_material(nodes), place=node.place)


def _pair(node: Node) -> Pair:
    first, second = node.items(2, of="names of links")
    return Pair((first.text(), second.text()), place=node.place)


def _planes(node: Node) -> tuple[Plane, ...]:
    planes = []
    for name, child in node.mapping().items():
        values = PLANE.values(child)
        if not any(values.get("normal", (1.0,))):
            normal = child.value["normal"]
            raise normal.problem("the normal of a plane is zero", found=normal.excerpt(),
                                 expected="the direction out of the ground, such as [0, 0, 1]")
        planes.append(Plane(name, **values, place=child.place))
    return tuple(planes)


def _shape(node: Node) -> Shape:
    nodes = node.mapping(SHAPE)
    kind, _ = only(node, nodes, SHAPES, "a contact")
    placement = {key: SHAPE.value(nodes, key) for key in ("at", "rpy") if key in nodes}
    for key in {"point": ("at", "rpy"), "sphere": ("rpy",)}.get(kind, ()):
        if key in nodes:
            raise nodes[key].problem(f"{key} does not apply to a {kind}")
    sizes: Any = SHAPE.value(nodes, kind)
    if kind == "point":
        placement, sizes = {"at": sizes}, ()
    return Shape(kind, sizes, **placement, material=_material(nodes), place=node.place)


def _check_stiffness(nodes: dict[str, Node]) -> None:
    if "stiffness" in nodes and "sink" in nodes:
        raise nodes["sink"].problem("stiffness and sink cannot be combined", expected="one of them")


def _material(nodes: dict[str, Node]) -> tuple[tuple[str, float], ...]:
    _check_stiffness(nodes)
    values = {key.name: CONTACTS.value(nodes, key.name) for key in MATERIAL if key.name in nodes}
    if values.get("exponent", EXPONENTS[0]) not in EXPONENTS:
        raise nodes["exponent"].wrong("one of " + ", ".join(f"{x:g}" for x in EXPONENTS))
    return tuple(values.items())


_LENGTH = Number(minimum=LEAST_LENGTH, maximum=MAX_INPUT)


def _of_material(name: str, value: Number, meaning: str, example: float, default: str | None = None) -> Field:
    return Field(name, value, meaning, default or default_of(Material, name), example=example)


MATERIAL = (
    _of_material("friction", Number(minimum=0, maximum=100), "coefficient of friction", 0.8),
    _of_material("stiffness", Number(above=0, maximum=MAX_INPUT), "[N/m^exponent]", 1e5, "by `sink`"),
    _of_material("sink", _LENGTH, "instead of `stiffness`: penetration of a contact under its share of the weight [m]", 1e-3),
    _of_material("exponent", Number(), "of the normal force: 1, 1.5 or 2", 1.5),
    _of_material("damping", Number(minimum=0, maximum=MAX_INPUT), "of the normal force [s/m]", 2),
    _of_material("friction_speed", Number(minimum=MIN_FRICTION_SPEED, maximum=MAX_FRICTION_SPEED),
                 "speed below which friction is smooth [m/s]", 1e-3),
    _of_material("stick", _LENGTH, "the contact sticks, without creep: tangential displacement at which friction under its share "
                 "of the weight is at its limit [m]; see [contacts that stick](#contacts-that-stick)", 1e-5, "none"),
    _of_material("static_friction", Number(minimum=0, maximum=100), "with `stick`: coefficient of friction at rest; it falls to "
                 "`friction` by exp(-(u / friction_speed)²)", 0.9, "`friction`"),
    _of_material("smooth", _LENGTH, "width of the smooth form of the normal force, which is differentiable everywhere [m]", 1e-4,
                 "none"))
SHAPE = Schema("contact_shape", (
    Field("point", Vector(3, MAX_INPUT), "position in the link frame [m]", example=[0, 0, -0.5]),
    Field("sphere", BODY["sphere"].value, "by its radius"),
    Field("capsule", BODY["capsule"].value, "by radius and length; its two ends touch"),
    Field("box", BODY["box"].value, "lengths [m]; its eight corners touch", example=[0.1, 0.1, 0.5]),
    Field("at", Vector(3, MAX_INPUT), "centre in the link frame [m]", "the origin", example=[0, 0, -0.5]),
    Field("rpy", Vector(3, MAX_INPUT), "orientation in the link frame [rad]", "zero", example=[0, 0, 0.1]), *MATERIAL),
    one_of=(("point", "sphere", "capsule", "box"),), reader=_shape)
PLANE = Schema("plane", (
    Field("point", Vector(3, MAX_INPUT), "a point of it in the world [m]", "the origin", example=[0, 0, -1]),
    Field("normal", Vector(3, MAX_INPUT), "direction out of the ground", "z", example=[0, 0, 1]),
    Field("link", Text(), "link that carries the plane; `point` and `normal` are then in its frame", "none", example="lower")))
CONTACTS = Schema("contacts", (
    Field("links", by_name(one_or_more(SHAPE, "contact_shapes", "shapes"), "link*"),
        "contact shapes by link: a shape or a list of shapes",
        required="contact shapes by link: {foot: {sphere: {radius: 0.02}}}"),
    Field("planes", Named(PLANE, "ground", _planes), "by name", "the ground z = 0"),
    Field("pairs", List(List(Text(), 2, 2, reader=_pair), 1, words="pairs"), "links that touch each other: names or patterns of "
        "two links each", "none", example=[["upper", "lower"]]), *MATERIAL))


def contacts_to_dict(contact: Contact) -> dict[str, Any]:
    """Return the contacts as in a file."""
    def shape(part: Shape) -> dict[str, Any]:
        if part.kind == "point":
            return {"point": part.at, **dict(part.material)}
        sizes = part.sizes if part.kind == "box" else dict(zip(SHAPES[part.kind], part.sizes, strict=True))
        placed = {key: value for key, value in (("at", part.at), ("rpy", part.rpy)) if any(value)}
        return {part.kind: sizes, **placed, **dict(part.material)}

    links = rules_to_dict(contact.links, lambda shapes: list(map(shape, shapes)) if len(shapes) > 1 else shape(shapes[0]))
    planes = {plane.name: {key: getattr(plane, key) for key in PLANE} for plane in contact.planes}
    result: dict[str, Any] = plain({"links": links, "planes": planes, "pairs": [pair.links for pair in contact.pairs] or None,
                                    **dict(contact.material)})
    return result


# The key `limits` of a scenario: stops at the position limits of joints. What they are, their keys, from YAML and back ---

MODES = {"compliant": ("stiffness", "sink", "damping"), "hard": ("restitution",)}
WORDS = {"stop": "compliant", "compliant": "compliant", "hard": "hard", "warn": None}        # short forms and their modes
LARGEST_STOP_VALUE = 1e12
LEAST_SINK = 1e-12       # rad | m


def _of_mode(name: str, value: Number, meaning: str, example: float, default: str | None = None) -> Field:
    return Field(name, value, meaning, default or default_of(LimitStops, name), kinds=kinds_with(name, MODES), example=example)


def _limits(node: Node) -> LimitStops | None:
    """Return the stops, or None if violations of limits are only reported."""
    if node.kind == "mapping":
        result: LimitStops | None = LIMIT_STOPS.read(node)
        return result
    if node.kind != "text":
        raise node.wrong(f"one of {', '.join(WORDS)}, or a mapping with {', '.join(LIMIT_STOPS)}")
    mode = WORDS[node.choice(WORDS)]
    return LimitStops(mode, place=node.place) if mode else None


def _stops(node: Node) -> LimitStops:
    _check_stiffness(LIMIT_STOPS.nodes(node))
    return LimitStops(**LIMIT_STOPS.values(node), place=node.place)


LIMIT_STOPS = Schema("limit_stops", (
    Field("mode", Choice(tuple(MODES)), "`compliant`: beyond the limit a spring with damping acts; `hard`: the velocity jumps at "
        "the limit", default_of(LimitStops, "mode"), example="hard"),
    _of_mode("stiffness", Number(above=0, maximum=LARGEST_STOP_VALUE), "with `mode: compliant`: k [N m/rad or N/m]", 2000,
             "by `sink`"),
    _of_mode("sink", Number(minimum=LEAST_SINK, maximum=LARGEST_STOP_VALUE), "with `mode: compliant`, instead of `stiffness`: "
             "depth at which a stop carries the load of its joint [rad or m]; see [stops](#stops-at-joint-limits)", 0.01,
             "0.01 rad, 0.001 m"),
    _of_mode("damping", Number(minimum=0, maximum=LARGEST_STOP_VALUE), "with `mode: compliant`: c [s/rad or s/m]", 2),
    _of_mode("restitution", Number(minimum=0, maximum=1), "with `mode: hard`: ratio of the speed after an impact to the speed "
             "before", 0.4),
    Field("joints", patterns("stop"), "joints or patterns that have stops", "all with position limits", example=["elbow"])),
    kind="mode", subject="{} stops", reader=_stops)
LIMITS = OneOf((Choice(tuple(WORDS)), LIMIT_STOPS), "limits_act", _limits)


def limits_to_dict(stops: LimitStops) -> dict[str, Any]:
    """Return the stops as in a file."""
    joints = [rule.pattern for rule in stops.joints]
    return {key: getattr(stops, key) for key in ("mode", *MODES[stops.mode])} | {"joints": joints or None}
