"""Phases and events of a scenario: what they are, and how they are read from YAML."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from liedyn.errors import Place, nearest
from liedyn.io.keys import Vector
from liedyn.io.robots.robot_yaml import read_inertia
from liedyn.io.scenarios.event_keys import (
    ACTION,
    ATTACH,
    AXES,
    DIRECTIONS,
    EVENT,
    IMPACT,
    MOST_TIMES,
    OF_WHEN,
    PHASE,
    SET,
    TIMED,
    WORDS,
)
from liedyn.io.scenarios.scenario import PHASE_START, Expression, Rule
from liedyn.io.scenarios.touch_events import TouchEvent, read_touch, touch_text
from liedyn.io.yaml_text import Node
from liedyn.model.description import LARGEST


@dataclass(frozen=True, slots=True)
class Phase:
    """joints: what holds in place of the scenario's rules for these joints; impulsive: prescribed velocities may jump when the
    phase begins, by an impulse; open: loops and couplings that do not act."""

    name: str
    joints: tuple[Rule, ...]
    impulsive: bool = False
    open: tuple[str, ...] = ()
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Go:
    """To a phase."""

    phase: str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Lock:
    """Joints, or patterns, come to rest by an impulse and are held (or no longer, `hold` False)."""

    joints: tuple[str, ...]
    hold: bool
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Set:
    """Positions and velocities of joints."""

    q: tuple[Rule, ...]
    v: tuple[Rule, ...]
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Impact:
    """The velocity of a joint's coordinate, or of a point of a link along a direction of the world, becomes -restitution times
    what it was."""

    restitution: float
    coordinate: str | None = None
    link: str | None = None
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Attach:
    """A rigid body to a link: mass [kg], com in the link's frame [m], inertia about it along link axes (xx, xy, xz, yy, yz, zz)
    [kg m^2]. Before, it rests in the world."""

    link: str
    mass: float
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, ...] = (0.0,) * 6
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Detach:
    """What is attached to a link goes on by itself, with the velocity that it has."""

    link: str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Note:
    """Nothing but a row of the result and a line of events.csv."""

    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of the run."""

    place: Place = field(default=Place(), compare=False)


Action = Go | Lock | Set | Impact | Attach | Detach | Note | Stop


@dataclass(frozen=True, slots=True)
class Event:
    """Happens at the times `at`, or after each `every` seconds, or when an expression passes `value`.

    touch       instead of the expression: a contact that begins or ends
    direction   of `when`: 1 rising, -1 falling, 0 both
    debounce    [s] after it has happened, in which it does not happen again
    phases      in which it happens; empty: in all
    once        only the first time
    """

    name: str
    actions: tuple[Action, ...]
    at: tuple[float, ...] = ()
    every: float | None = None
    when: Expression | None = None
    value: float = 0.0
    direction: int = 0
    debounce: float = 0.0
    phases: tuple[str, ...] = ()
    once: bool = False
    touch: TouchEvent | None = None
    place: Place = field(default=Place(), compare=False)


# reading ------------------------------------------------------------------------------------------------------------
Rules = Callable[[Node | None], tuple[Rule, ...]]


def read_phases(node: Node, joints: Rules) -> tuple[Phase, ...]:
    """joints: reads what joints do."""
    phases = []
    for name, child in node.mapping().items():
        given = child.mapping(PHASE) if child.kind != "null" else {}
        phases.append(Phase(name, joints(given.get("joints")), PHASE.value(given, "impulsive", False),
                            _names(given["open"]) if "open" in given else (), child.place))
    if not phases:
        raise node.problem("no phase is given", expected="the names of phases, each with joints")
    return tuple(phases)


def unreached(phases: tuple[Phase, ...], events: tuple[Event, ...]) -> list[str]:
    """A note on phases that never begin."""
    reached = {action.phase for event in events for action in event.actions if isinstance(action, Go)}
    names = [phase.name for phase in phases[1:] if phase.name not in reached]
    return [f"no event goes to the phase{'s' * (len(names) > 1)} {', '.join(names)}"] if names else []


def read_events(node: Node, phases: tuple[Phase, ...], values: Rules, duration: float) -> tuple[Event, ...]:
    """values: reads initial values of joints; duration of the run [s]."""
    return tuple(_event(name, child, [phase.name for phase in phases], values, duration)
                 for name, child in node.mapping().items())


def _event(name: str, node: Node, phases: list[str], values: Rules, duration: float) -> Event:
    if name == PHASE_START:
        raise node.problem(f"an event cannot be called {name}: `from: {name}` is the present phase", expected="another name")
    given = node.mapping(EVENT)
    kinds = [key for key in TIMED if key in given]
    if len(kinds) != 1:
        raise node.problem("an event takes exactly one of at, every, when", found=" and ".join(kinds) or "none")
    for key in OF_WHEN:
        if key in given and kinds != ["when"]:
            raise given[key].problem(f"{key} belongs to events with when", expected="an event with when")
    timed = {}
    if "at" in given:
        timed["at"] = _times(given["at"])
    if "every" in given:
        timed["every"] = EVENT.value(given, "every")
        if duration / timed["every"] > MOST_TIMES:
            raise given["every"].problem(f"the event happens about {duration / timed['every']:.3g} times in {duration:g} s",
                                         found=given["every"].shown(), expected=f"at most {MOST_TIMES:g} times")
    if "when" in given:
        timed["touch"] = touch = read_touch(given["when"])
        if touch and "value" in given:
            raise given["value"].problem("value does not apply to touch and lift", expected="no value")
        timed["when"] = Expression(touch_text(touch) if touch else given["when"].text(), given["when"].place)
        timed["value"] = EVENT.value(given, "value", 0.0)
        timed["direction"] = DIRECTIONS[EVENT.value(given, "direction", "both")]
        if touch and "direction" not in given:
            timed["direction"] = touch.way
        timed["debounce"] = EVENT.value(given, "debounce", 0.0)
    within = _names(given["in"]) if "in" in given else ()
    for one in within:
        _check_phase(one, phases, given["in"])
    actions = _actions(node.require("do", "what happens: " + ", ".join(ACTION)), phases, values)
    return Event(name, actions, **timed, phases=within, once=EVENT.value(given, "once", False),
                 place=node.place)


def _times(node: Node) -> tuple[float, ...]:
    seen: list[float] = []
    for one in node.items(least=1, of="times") if node.kind == "list" else [node]:
        t = one.number(least=0)
        if t in seen:
            raise one.problem("a time is given twice", found=one.shown())
        seen.append(t)
    return tuple(sorted(seen))


def _actions(node: Node, phases: list[str], values: Rules) -> tuple[Action, ...]:
    """A list of mappings, one mapping, or the word stop: in the order that they are written in."""
    actions: list[Action] = []
    for one in node.items(least=1, of="actions") if node.kind == "list" else [node]:
        if one.kind == "text":
            if one.value in ACTION and one.value not in WORDS.options:
                raise one.problem("an action without its value", found=one.value, expected=f"{{{one.value}: …}}")
            actions.append(_ALONE[WORDS.read(one)](one.place))
            continue
        for key, child in one.mapping(ACTION).items():
            action = _READ[key](child, phases, values)
            actions += [action] if action else []
    if not actions:
        raise node.problem("an event without an action", expected=", ".join(ACTION))
    return tuple(actions)


def _go(node: Node, phases: list[str], _values) -> Go:
    _check_phase(node.text(), phases, node)
    return Go(node.text(), node.place)


def _check_phase(name: str, phases: list[str], node: Node) -> None:
    if name not in phases:
        raise node.problem("no such phase", found=name, expected=", ".join(phases) or "the key phases",
                           hint=nearest(name, phases))


def _set(node: Node, _phases, values: Rules) -> Set:
    given = node.mapping(SET)
    if not given:
        raise node.problem("set needs q or v", expected="q: {joint: position}, v: {joint: velocity}")
    return Set(values(given.get("q")), values(given.get("v")), node.place)


def _impact(node: Node, _phases, _values) -> Impact:
    given = node.mapping(IMPACT)
    if ("joint" in given) == ("link" in given):
        raise node.problem("an impact takes exactly one of joint, link", found="both" if "joint" in given else "neither")
    for key in ("point", "normal"):
        if key in given and "joint" in given:
            raise given[key].problem(f"{key} belongs to the impact of a link", expected="link")
    e = IMPACT.value(given, "restitution", 0.0)
    if "joint" in given:
        return Impact(e, coordinate=given["joint"].text(), place=node.place)
    normal = _direction(given["normal"]) if "normal" in given else (0.0, 0.0, 1.0)
    return Impact(e, link=given["link"].text(), point=IMPACT.value(given, "point", (0.0, 0.0, 0.0)),
                  normal=normal, place=node.place)


def _direction(node: Node) -> tuple[float, float, float]:
    if node.kind == "text":
        return AXES[node.choice(tuple(AXES))]
    vector = Vector(3, LARGEST).read(node)
    length = math.hypot(*vector)
    if length == 0.0:
        raise node.problem("a direction of length zero", expected="x, y, z, or three numbers")
    return tuple(x / length for x in vector)


def _attach(node: Node, _phases, _values) -> Attach:
    given = node.mapping(ATTACH)
    return Attach(ATTACH.required(node, "link"), ATTACH.required(node, "mass"), ATTACH.value(given, "com", (0.0, 0.0, 0.0)),
                  read_inertia(given["inertia"], LARGEST) if "inertia" in given else (0.0,) * 6, node.place)


def _names(node: Node) -> tuple[str, ...]:
    return tuple(x.text() for x in node.items(least=1, of="names")) if node.kind == "list" else (node.text(),)


_READ = {
    "phase": _go, "set": _set, "impact": _impact, "attach": _attach,
    "lock": lambda node, *_: Lock(_names(node), True, node.place),
    "unlock": lambda node, *_: Lock(_names(node), False, node.place),
    "detach": lambda node, *_: Detach(node.text(), node.place),
    "record": lambda node, *_: Note(node.place) if node.boolean() else None,
    "stop": lambda node, *_: Stop(node.place) if node.boolean() else None,
}
_ALONE = {"stop": Stop, "record": Note}                        # by the words that are an action


# writing ------------------------------------------------------------------------------------------------------------
def plain_phase(phase: Phase, rules) -> dict:
    """As in the file; rules: writes what joints do."""
    return {"joints": rules(phase.joints), **({"impulsive": True} if phase.impulsive else {}),
            **({"open": list(phase.open)} if phase.open else {})}


def plain_event(event: Event, values) -> dict:
    """values: writes values of joints."""
    timed = {"at": list(event.at)} if event.at else {"every": event.every} if event.every else {
        "when": event.when.text, **({} if event.touch else {"value": event.value}), "debounce": event.debounce,
        "direction": next(name for name, way in DIRECTIONS.items() if way == event.direction)}
    within = {"in": list(event.phases)} if event.phases else {}
    return {**timed, **within, **({"once": True} if event.once else {}),
            "do": [_plain_action(action, values) for action in event.actions]}


def _plain_action(action: Action, values) -> dict:
    if isinstance(action, Go):
        return {"phase": action.phase}
    if isinstance(action, Lock):
        return {"lock" if action.hold else "unlock": list(action.joints)}
    if isinstance(action, Set):
        return {"set": {key: values(rules) for key, rules in (("q", action.q), ("v", action.v)) if rules}}
    if isinstance(action, Impact):
        of = {"joint": action.coordinate} if action.coordinate else {
            "link": action.link, "point": list(action.point), "normal": list(action.normal)}
        return {"impact": {**of, "restitution": action.restitution}}
    if isinstance(action, Attach):
        return {"attach": {"link": action.link, "mass": action.mass, "com": list(action.com),
                           "inertia": list(action.inertia)}}
    if isinstance(action, Detach):
        return {"detach": action.link}
    return {"record": True} if isinstance(action, Note) else {"stop": True}
