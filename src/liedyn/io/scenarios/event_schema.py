"""Keys of `phases` and `events` in scenarios, reading from YAML and writing."""
from __future__ import annotations

import re
from typing import Any

from liedyn.errors import LiedynWarning, nearest
from liedyn.io.file_schema import Boolean, Choice, Field, List, Number, OneOf, Schema, Text, only, too_many
from liedyn.io.scenarios.action_schema import ACTION, NAMES, WORDS, EnterPhase, action_to_dict, read_actions
from liedyn.io.scenarios.scenario import PHASE_START, Event, Expression, Phase, TouchEvent
from liedyn.io.scenarios.signal_schema import DRIVES, by_name, drive_to_dict, rules_to_dict
from liedyn.io.yaml_nodes import Node

DIRECTIONS = {"both": 0, "rising": 1, "falling": -1}
MOST_TIMES = 1_000_000                           # of an event with `every`: all are kept in memory
TIMED, OF_WHEN = ("at", "every", "when"), ("value", "direction", "debounce")
WAYS = {"touch": 1, "lift": -1}                # of the depth, where no direction is given
_CALL = re.compile(r"\s*(touch|lift)\s*\((.*)\)\s*", re.DOTALL)
_FORM = "touch(link), lift(link), touch(link, plane) or touch(link, link)"


# reading ------------------------------------------------------------------------------------------------------------

def read_phases(node: Node) -> tuple[Phase, ...]:
    """Return the phases of a scenario. Raise if there are none."""
    phases = tuple(Phase(name, **PHASE.values(child), place=child.place) for name, child in node.mapping().items())
    if not phases:
        raise node.problem("phases is empty", expected="the names of phases, each with joints")
    return phases


def late_warnings(events: tuple[Event, ...], duration: float) -> list[LiedynWarning]:
    """Return a warning for events with times after the end of the run, with these times where others are before it."""
    late = []
    for event in events:
        times = [t for t in event.at if t > duration]
        if times and len(times) < len(event.at):
            late.append(f"{event.name} (at {', '.join(f'{t:g}' for t in times)} s)")
        elif times or (event.every or 0.0) > duration:
            late.append(event.name)
    return [LiedynWarning("event-after-end", f"events after the end of the run do not happen: {', '.join(late)}")] if late else []


def unreached(phases: tuple[Phase, ...], events: tuple[Event, ...]) -> list[LiedynWarning]:
    """Return a warning for phases that never begin."""
    reached = {action.phase for event in events for action in event.actions if isinstance(action, EnterPhase)}
    names = [phase.name for phase in phases[1:] if phase.name not in reached]
    return [LiedynWarning("unreachable-phase",
                          f"no event enters the phase{'s' * (len(names) > 1)} {', '.join(names)}")] if names else []


def read_events(node: Node, phases: tuple[Phase, ...], duration: float) -> tuple[Event, ...]:
    """Read the events. duration: of the run [s]."""
    events = tuple(_event(name, child, duration) for name, child in node.mapping().items())
    names = [phase.name for phase in phases]
    for event in events:
        within = [(name, node.value[event.name].value["phases"].place) for name in event.phases]
        for name, place in (*within, *((action.phase, action.place) for action in event.actions
                                       if isinstance(action, EnterPhase))):
            if name not in names:
                raise node.error("no such phase", place=place, found=name, expected=", ".join(names) or "the key phases",
                                 hint=nearest(name, names))
    return events


def _event(name: str, node: Node, duration: float) -> Event:
    if name == PHASE_START:
        raise node.problem(f"an event cannot be called {name}: `from: {name}` is the present phase", expected="another name")
    nodes = node.mapping(EVENT)
    timed, _ = only(node, nodes, TIMED, "an event", "none", " and ")
    for key in OF_WHEN:
        if key in nodes and timed != "when":
            raise nodes[key].problem(f"{key} applies only to events with when", expected="an event with when")
    values = EVENT.values(node)
    if timed == "every" and duration / values["every"] > MOST_TIMES:
        raise too_many(nodes["every"], "times of the event", duration / values["every"], MOST_TIMES, "at least",
                       duration / MOST_TIMES)
    when, touch = values.pop("when", (None, None))
    if touch and "value" in nodes:
        raise nodes["value"].problem("value does not apply to touch and lift", expected="no value")
    direction = DIRECTIONS[values.pop("direction")] if "direction" in nodes else touch.direction if touch else 0
    return Event(name, values.pop("do"), when=when, touch=touch, direction=direction, phases=values.pop("phases", ()), **values,
                 place=node.place)


def _times(node: Node) -> tuple[float, ...]:
    seen: list[float] = []
    for child in node.items(minimum=1, of="times") if node.kind == "list" else [node]:
        t = child.number(minimum=0)
        if t in seen:
            raise child.problem("duplicate time", found=child.excerpt())
        seen.append(t)
    return tuple(sorted(seen))


def _when(node: Node) -> tuple[Expression, TouchEvent | None]:
    """Return the expression of an event, and its contact event if it is one, else None."""
    if node.kind == "mapping" and len(nodes := node.mapping(TOUCH)) == 1:
        word, = nodes
        link, other_link = TOUCH.value(nodes, word), None
    else:
        if node.kind != "text":
            raise node.wrong(f"an expression, or {_FORM}")
        call = _CALL.fullmatch(node.value)
        if not call:
            return Expression(node.value, place=node.place), None
        word, names = call[1], [name.strip().strip("'\"") for name in call[2].split(",")]
        if len(names) > 2 or not all(names):
            raise node.wrong(_FORM)
        link, other_link = (*names, None)[:2]
    text = f"{word}({link}, {other_link})" if other_link else f"{word}({link})"
    return Expression(text, place=node.place), TouchEvent(link, other_link, WAYS[word])


# keys ---------------------------------------------------------------------------------------------------------------

PHASE = Schema("phase", (
    Field("joints", by_name(DRIVES, "joint*"), "as at the top level, for joints that differ in this phase; the other joints "
                                               "keep their top-level entries", example={"elbow": {"torque": 0}}),
    Field("open", NAMES, "loops, couplings and mimic joints that do not act in this phase", "none", example="loop"),
    Field("impulsive", Boolean(), "whether prescribed velocities may jump when the phase begins, by an impulse", False,
        example=True)))

TOUCH = Schema("touch_event", (
    Field("touch", Text(), "link whose first contact begins", example="foot"),
    Field("lift", Text(), "link whose last contact ends", example="foot")), one_of=(("touch", "lift"),))
EVENT = Schema("event", (
    Field("at", OneOf((Number(minimum=0), List(Number(minimum=0), 1)), "times", _times), "time or list of times [s]",
          example=1.5),
    Field("every", Number(above=0), "period [s]; the first time is one period after the start", example=0.5),
    Field("when", OneOf((Text(), TOUCH), "when", _when), "an expression of the state, such as `q(joint)` or `z(link)`, of joint "
        "torques and forces `tau(joint)`, or of times such as `t_phase`; the event happens when it passes or reaches `value`. Or "
        "a contact that begins or ends: `touch(link)`, `lift(link)`, `touch(link, plane)`",
        example="q(elbow)"),
    Field("value", Number(), "of `when`: the threshold", 0, example=0.5),
    Field("direction", Choice(tuple(DIRECTIONS)), "of `when`: `rising`, `falling` or `both`", "both; touch rises and lift falls",
        example="rising"),
    Field("debounce", Number(minimum=0), "of `when`: time after the event in which it does not happen again [s]", 0, example=0.1),
    Field("phases", NAMES, "phase or list of phases in which the event happens", "all", example="phase"),
    Field("once", Boolean(), "whether it happens only the first time", False, example=True),
    Field("do", OneOf((ACTION, WORDS, List(OneOf((ACTION, WORDS)), 1)), "actions", read_actions),
        "an action, or a list of actions in their order", required="what happens: " + ", ".join(ACTION))),
    one_of=(TIMED,))


# writing ------------------------------------------------------------------------------------------------------------

def phase_to_dict(phase: Phase) -> dict[str, Any]:
    """Return the phase as in a file."""
    return {"joints": rules_to_dict(phase.joints, drive_to_dict), "impulsive": phase.impulsive or None, "open": phase.open
            or None}


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return the event as in a file."""
    timing: dict[str, Any] = {"at": event.at} if event.at else {"every": event.every}
    if event.when is not None:
        timing = {"when": event.when.text, "value": None if event.touch else event.value, "debounce": event.debounce,
                  "direction": next(name for name, sign in DIRECTIONS.items() if sign == event.direction)}
    return {**timing, "phases": event.phases or None, "once": event.once or None, "do": list(map(action_to_dict, event.actions))}
