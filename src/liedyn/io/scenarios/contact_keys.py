"""The keys of contacts: what `contact_file` reads."""
from __future__ import annotations

from liedyn.io.keys import Either, Key, Keys, List, Named, Number, Text, Vector, default_of
from liedyn.io.robots.robot_keys import SHAPE as BODY
from liedyn.io.scenarios.contact_shapes import LARGEST_CREEP, LEAST_CREEP, LEAST_LENGTH, Material
from liedyn.model.description import LARGEST

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
    one_of=(("point", "sphere", "capsule", "box"),))
PLANE = Keys("plane", (
    Key("point", Vector(3, LARGEST), "a point of it in the world [m]", "the origin", example=[0, 0, -1]),
    Key("normal", Vector(3, LARGEST), "direction out of the ground", "z", example=[0, 0, 1]),
    Key("link", Text(), "link that carries the plane; `point` and `normal` are then in its frame", "none", example="lower")))
CONTACTS = Keys("contacts", (
    Key("links", Named(Either((SHAPE, List(SHAPE, 1)), "contact_shapes"), "link*"),
        "what touches, by link: a shape or a list of them",
        required=True, missing="what touches, by link: {foot: {sphere: {radius: 0.02}}}"),
    Key("planes", Named(PLANE, "ground"), "by name", "the ground z = 0"),
    Key("pairs", List(List(Text(), 2, 2), 1), "links that touch each other: names or patterns of two links each", "none",
        example=[["upper", "lower"]]), *MATERIAL))
