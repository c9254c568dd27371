"""The keys of phases and events: what `events` reads."""
from __future__ import annotations

from liedyn.io.keys import Boolean, Choice, Either, Key, Keys, List, Named, Number, Text, Vector
from liedyn.io.robots.robot_keys import LINK
from liedyn.io.scenarios.joint_keys import DRIVES
from liedyn.model.description import LARGEST

DIRECTIONS = {"both": 0, "rising": 1, "falling": -1}
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
MOST_TIMES = 1_000_000                           # of an event with `every`: all are kept in memory
TIMED, OF_WHEN = ("at", "every", "when"), ("value", "direction", "debounce")
_NAMES = Either((Text(), List(Text(), 1)), "names")
_NUMBERS = Either((Number(), List(Number(), 1)), "values")

PHASE = Keys("phase", (
    Key("joints", Named(DRIVES, "joint*"), "as at the top level, for joints that do something else in this phase; for all "
        "others the top level holds", example={"elbow": {"torque": 0}}),
    Key("open", _NAMES, "loops and couplings that do not act in this phase", "none", example="loop"),
    Key("impulsive", Boolean(), "whether prescribed velocities may jump when the phase begins, by an impulse", False,
        example=True)))

SET = Keys("set", (
    Key("q", Named(_NUMBERS, "joint"), "positions by joint [rad or m]", example={"elbow": 0.5}),
    Key("v", Named(_NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", example={"elbow": 0})))
IMPACT = Keys("impact", (
    Key("joint", Text(), "the coordinate that hits a stop", example="elbow"),
    Key("link", Text(), "instead of `joint`: the link that is hit", example="lower"),
    Key("point", Vector(3, LARGEST), "of a link: where, in link coordinates [m]", "the origin", example=[0, 0, -0.5]),
    Key("normal", Either((Choice(tuple(AXES)), Vector(3, LARGEST)), "direction"), "of a link: direction of the impulse in world "
        "axes", "z", example="z"),
    Key("restitution", Number(least=0, most=1), "speed after, as a part of the speed before", 0, example=0.5)),
    one_of=(("joint", "link"),))
ATTACH = Keys("attach", (
    Key("link", Text(), "the link that the body is attached to", required=True, missing="the link that the body is attached to",
        example="lower"),
    Key("mass", Number(above=0, most=LARGEST), "[kg]", required=True, missing="the mass in kg", example=0.5),
    Key("com", Vector(3, LARGEST), "centre of mass in the link frame [m]", "the origin", example=[0, 0, -0.5]),
    Key("inertia", LINK["inertia"].value, LINK["inertia"].meaning, 0, example=[0.01, 0.01, 0.01])))
ACTION = Keys("action", (
    Key("phase", Text(), "go to this phase", example="phase"),
    Key("lock", _NAMES, "joints, or patterns, that come to rest by an impulse and are held", example="elbow"),
    Key("unlock", _NAMES, "joints, or patterns, that are held no longer", example="elbow"),
    Key("set", SET, "positions and velocities of joints"),
    Key("impact", IMPACT, "of a joint against a stop, or of a point of a link"),
    Key("attach", ATTACH, "a rigid body to a link; before, it rests in the world"),
    Key("detach", Text(), "what is attached to this link goes on by itself", example="lower"),
    Key("record", Boolean(), "nothing else than a row of the result and a line of events.csv", example=True),
    Key("stop", Boolean(), "the end of the run", example=True)))
WORDS = Choice(tuple(key.name for key in ACTION.keys if isinstance(key.value, Boolean)))          # actions without more
TOUCH = Keys("touch_event", (
    Key("touch", Text(), "link whose first contact begins", example="foot"),
    Key("lift", Text(), "link whose last contact ends", example="foot")), one_of=(("touch", "lift"),))
EVENT = Keys("event", (
    Key("at", Either((Number(least=0), List(Number(least=0), 1)), "times"), "time or list of times [s]", example=1.5),
    Key("every", Number(above=0), "period [s]; the first time is one period after the start", example=0.5),
    Key("when", Either((Text(), TOUCH), "when"), "an expression of the state, such as `q(joint)` or `z(link)`, of joint forces "
        "`tau(joint)`, or of times such as `t_phase`; the event happens when it passes `value`. Or a contact that begins or "
        "ends: `touch(link)`, `lift(link)`, `touch(link, plane)`",
        example="q(elbow)"),
    Key("value", Number(), "of `when`: the value that is passed", 0, example=0.5),
    Key("direction", Choice(tuple(DIRECTIONS)), "of `when`: `rising`, `falling` or `both`", "both; touch rises and lift falls",
        example="rising"),
    Key("debounce", Number(least=0), "of `when`: time after the event in which it does not happen again [s]", 0, example=0.1),
    Key("in", _NAMES, "phase or list of phases in which the event happens", "all", example="phase"),
    Key("once", Boolean(), "whether it happens only the first time", False, example=True),
    Key("do", Either((ACTION, WORDS, List(Either((ACTION, WORDS)), 1)), "actions"),
        "an action, or a list of actions in their order", required=True)), one_of=(TIMED,))
