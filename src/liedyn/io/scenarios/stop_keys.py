"""The key `limits` of a scenario: stops at the position limits of joints. What they are, their keys, from YAML and back."""
from __future__ import annotations

from dataclasses import dataclass, field

from liedyn.errors import Place
from liedyn.io.keys import Choice, Either, Key, Keys, Number, default_of, kinds_with
from liedyn.io.scenarios.scenario import Rule
from liedyn.io.scenarios.signal_keys import patterns
from liedyn.io.yaml_text import Node

MODES = {"compliant": ("stiffness", "sink", "damping"), "hard": ("restitution",)}
WORDS = {"stop": "compliant", "compliant": "compliant", "hard": "hard", "note": None}        # short forms and their modes
LARGEST = 1e12
LEAST_SINK = 1e-12       # rad | m


@dataclass(frozen=True, slots=True)
class LimitStops:
    """Stops at the position limits of joints.

    mode         compliant: beyond the limit a force acts; hard: the velocity jumps at the limit
    stiffness    [N m/rad | N/m] None: by `sink`
    sink         [rad | m] depth under the load of the joint; None: 0.01 rad, 1 mm
    damping      of the force, relative to that of the spring [s/rad | s/m]
    restitution  of hard stops
    joints       names or patterns; none: all joints with limits
    """

    mode: str = "compliant"
    stiffness: float | None = None
    sink: float | None = None
    damping: float = 2.0
    restitution: float = 0.0
    joints: tuple[Rule, ...] = ()
    place: Place = field(default=Place(), compare=False)


def _of_mode(name: str, value: Number, meaning: str, default=None, **more) -> Key:
    return Key(name, value, meaning, default_of(LimitStops, name) if default is None else default, kinds=kinds_with(name, MODES),
               **more)


def _limits(node: Node) -> LimitStops | None:
    """None where limits are only noted."""
    if node.kind == "mapping":
        return LIMIT_STOPS.read(node)
    if node.kind != "text":
        raise node.wrong(f"one of {', '.join(WORDS)}, or a mapping with {', '.join(LIMIT_STOPS)}")
    mode = WORDS[node.choice(WORDS)]
    return LimitStops(mode, place=node.place) if mode else None


def _stops(node: Node) -> LimitStops:
    given = LIMIT_STOPS.given(node)
    if "stiffness" in given and "sink" in given:
        raise given["sink"].problem("both stiffness and sink", expected="one of them")
    return LimitStops(**LIMIT_STOPS.values(node), place=node.place)


LIMIT_STOPS = Keys("limit_stops", (
    Key("mode", Choice(tuple(MODES)), "`compliant`: beyond the limit a spring with damping acts; `hard`: the velocity jumps at "
        "the limit", default_of(LimitStops, "mode"), example="hard"),
    _of_mode("stiffness", Number(above=0, most=LARGEST), "with `mode: compliant`: k [N m/rad or N/m]", "by `sink`", example=2000),
    _of_mode("sink", Number(least=LEAST_SINK, most=LARGEST), "with `mode: compliant`, instead of `stiffness`: depth at which "
             "a stop carries the load of its joint [rad or m]; see below", "0.01 rad, 0.001 m", example=0.01),
    _of_mode("damping", Number(least=0, most=LARGEST), "with `mode: compliant`: c [s/rad or s/m]", example=2),
    _of_mode("restitution", Number(least=0, most=1), "with `mode: hard`: ratio of the speed after an impact to the "
             "speed before", example=0.4),
    Key("joints", patterns("stop"), "joints or patterns that have stops", "all with position limits", example=["elbow"])),
    kind="mode", what="{} stops", how=_stops)
LIMITS = Either((Choice(tuple(WORDS)), LIMIT_STOPS), "limits_act", _limits)


def plain_limits(stops: LimitStops) -> dict:
    """As in the file."""
    joints = [rule.pattern for rule in stops.joints]
    return {key: getattr(stops, key) for key in ("mode", *MODES[stops.mode])} | {"joints": joints or None}
