"""Actions of events: their classes, their keys in files, reading from YAML and writing.

`simulation.event_actions` executes the actions.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from liedyn.errors import Place
from liedyn.io.file_schema import Boolean, Choice, Field, Number, OneOf, Schema, Text, Vector, one_or_more
from liedyn.io.robots.robot_schema import LINK, inertia
from liedyn.io.scenarios.scenario import Action, Rule
from liedyn.io.scenarios.signal_schema import NUMBERS, by_name, numbers_to_list, rules_to_dict
from liedyn.io.yaml_nodes import Node, SourceText
from liedyn.model.element_values import MAX_INPUT
from liedyn.model.links import vector

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
NAMES = one_or_more(Text(), "names", "names")


# classes ------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class EnterPhase(Action):
    """Begins a phase."""

    phase: str


@dataclass(frozen=True, slots=True)
class Lock(Action):
    """Stops joints, or those that match patterns, by an impulse and holds them. `hold` False: releases them."""

    joints: tuple[str, ...]
    hold: bool


@dataclass(frozen=True, slots=True)
class Set(Action):
    """Sets new positions and velocities of joints."""

    q: tuple[Rule, ...] = ()
    v: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact(Action):
    """Multiplies the velocity of a coordinate, or of a point of a link along a direction of the world, by -restitution."""

    is_impact: ClassVar[bool] = True
    restitution: float
    coordinate: str | None = None
    link: str | None = None
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Attach(Action):
    """Attaches a rigid body, at rest in the world before, to a link.

    mass [kg], com [m] in the frame of the link, inertia about it along the link axes (xx, xy, xz, yy, yz, zz) [kg m^2].
    """

    link: str
    mass: float
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, ...] = (0.0,) * 6


@dataclass(frozen=True, slots=True)
class Detach(Action):
    """Detaches the body attached to a link. It continues to move freely with its velocity."""

    link: str


@dataclass(frozen=True, slots=True)
class RecordState(Action):
    """Only records a row of the result and a line of events.csv."""


@dataclass(frozen=True, slots=True)
class EndRun(Action):
    """Ends the run."""


# values of their keys -----------------------------------------------------------------------------------------------

def _set(node: Node) -> Set:
    values = SET.values(node)
    if not values:
        raise node.problem("set requires q or v", expected="q: {joint: position}, v: {joint: velocity}")
    return Set(**values, place=node.place)


def _impact(node: Node) -> Impact:
    nodes = node.mapping(IMPACT)
    if ("joint" in nodes) == ("link" in nodes):
        raise node.problem("an impact takes exactly one of joint, link",
                           found=SourceText("both" if "joint" in nodes else "neither"))
    for key in ("point", "normal"):
        if key in nodes and "joint" in nodes:
            raise nodes[key].problem(f"{key} applies only to the impact of a link", expected="link")
    values = {"restitution": 0.0} | IMPACT.values(node)
    return Impact(coordinate=values.pop("joint", None), **values, place=node.place)


def _direction(node: Node) -> tuple[float, float, float]:
    if node.kind == "text":
        return AXES[node.choice(AXES)]
    components = node.vector(3, MAX_INPUT)
    length = math.hypot(*components)
    if length == 0.0:
        raise node.problem("a direction of length zero", expected="x, y, z, or three numbers")
    return vector(x / length for x in components)


SET = Schema("set", (
    Field("q", by_name(NUMBERS, "joint"), "positions by joint [rad or m]", example={"elbow": 0.5}),
    Field("v", by_name(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", example={"elbow": 0})), reader=_set)
IMPACT = Schema("impact", (
    Field("joint", Text(), "the coordinate that hits a stop", example="elbow"),
    Field("link", Text(), "instead of `joint`: the link that is hit", example="lower"),
    Field("point", Vector(3, MAX_INPUT), "of a link: point of application, in link coordinates [m]", "the origin",
        example=[0, 0, -0.5]),
    Field("normal", OneOf((Choice(tuple(AXES)), Vector(3, MAX_INPUT)), "direction", _direction), "of a link: direction of the "
        "impulse in world axes", "z", example="z"),
    Field("restitution", Number(minimum=0, maximum=1), "ratio of the speed after the impact to the speed "
                                                       "before", 0, example=0.5)),
    one_of=(("joint", "link"),), reader=_impact)
ATTACH: Schema = Schema("attach", (
    Field("link", Text(), "the link that the body is attached to", required="the link that the body is attached to",
        example="lower"),
    Field("mass", Number(above=0, maximum=MAX_INPUT), "[kg]", required="the mass in kg", example=0.5),
    Field("com", Vector(3, MAX_INPUT), "centre of mass in the link frame [m]", "the origin", example=[0, 0, -0.5]),
    Field("inertia", inertia(MAX_INPUT), LINK["inertia"].meaning, 0, example=[0.01, 0.01, 0.01])),
    reader=lambda node: Attach(**ATTACH.values(node), place=node.place))


# keys ---------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class ActionKey:
    """A key in the mapping of an action.

    kind        class of the actions that the key describes
    key         the key with its value in files
    make        function (value, place) -> the action, or None if there is nothing to do
    file_value  function action -> the value in files, or None if another key of this kind describes it
    """

    kind: type[Action]
    key: Field
    make: Callable[[Any, Place], Action | None]
    file_value: Callable[[Any], Any]


def _impact_to_dict(action: Impact) -> dict[str, Any]:
    target = {"link": action.link, "point": action.point, "normal": action.normal}
    return (target if action.coordinate is None else {"joint": action.coordinate}) | {"restitution": action.restitution}


def _set_to_dict(action: Set) -> dict[str, Any]:
    return {key: rules_to_dict(rules, numbers_to_list) for key, rules in (("q", action.q), ("v", action.v)) if rules}


ACTION_KEYS = [
    ActionKey(EnterPhase, Field("phase", Text(), "enter this phase", example="phase"),
              lambda phase, place: EnterPhase(phase, place=place), lambda action: action.phase),
    ActionKey(Lock, Field("lock", NAMES, "joints or patterns to lock: an impulse stops them, and they stay at "
                                         "rest", example="elbow"),
              lambda names, place: Lock(names, True, place=place), lambda action: action.joints if action.hold else None),
    ActionKey(Lock, Field("unlock", NAMES, "joints or patterns to unlock", example="elbow"),
              lambda names, place: Lock(names, False, place=place), lambda action: None if action.hold else action.joints),
    ActionKey(Set, Field("set", SET, "new positions and velocities of joints"), lambda action, place: action, _set_to_dict),
    ActionKey(Impact, Field("impact", IMPACT, "impact of a joint against a stop, or of a point of a link"),
              lambda action, place: action, _impact_to_dict),
    ActionKey(Attach, Field("attach", ATTACH, "attach a rigid body to a link; before, it is at rest in the world"),
              lambda action, place: action, lambda action: {key: getattr(action, key) for key in ATTACH}),
    ActionKey(Detach, Field("detach", Text(), "the bodies attached to this link continue to move freely", example="lower"),
              lambda link, place: Detach(link, place=place), lambda action: action.link),
    ActionKey(RecordState, Field("record", Boolean(), "only adds a row to the result and a line to events.csv",
                                 example=True),
              lambda yes, place: RecordState(place=place) if yes else None, lambda action: True),
    ActionKey(EndRun, Field("stop", Boolean(), "the end of the run", example=True),
              lambda yes, place: EndRun(place=place) if yes else None, lambda action: True)]
ACTION = Schema("action", tuple(action.key for action in ACTION_KEYS))
WORDS = Choice(tuple(key.name for key in ACTION.keys if isinstance(key.value, Boolean)))          # actions without more


def declare_action(key: ActionKey) -> None:
    """Add a key to all events."""
    ACTION_KEYS.append(key)
    ACTION.extend(key.key)
    if isinstance(key.key.value, Boolean):
        WORDS.extend(key.key.name)


# from YAML and back -------------------------------------------------------------------------------------------------

def read_actions(node: Node) -> tuple[Action, ...]:
    """Return the actions of a list of mappings, one mapping, or the word stop, in the order of the file."""
    make, actions = {action.key.name: action.make for action in ACTION_KEYS}, []
    for entry in node.items(minimum=1, of="actions") if node.kind == "list" else [node]:
        if entry.kind == "text":
            if entry.value in ACTION and entry.value not in WORDS.options:
                raise entry.problem("the action has no value", found=entry.value, expected=f"{{{entry.value}: …}}")
            actions.append(make[WORDS.read(entry)](True, entry.place))
        else:
            nodes = entry.mapping(ACTION)
            actions += [make[key](ACTION.value(nodes, key), child.place) for key, child in nodes.items()]
    result = tuple(action for action in actions if action)
    if not result:
        raise node.problem("the event has no action", expected=", ".join(ACTION))
    return result


def action_to_dict(action: Action) -> dict[str, Any]:
    """Return the action as in a file."""
    values = ((entry.key.name, entry.file_value(action)) for entry in ACTION_KEYS if isinstance(action, entry.kind))
    return next({name: value} for name, value in values if value is not None)
