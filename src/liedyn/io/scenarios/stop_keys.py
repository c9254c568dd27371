"""The key `limits` of a scenario: stops at the position limits of joints. What it is, and the keys that `stop_file` reads."""
from __future__ import annotations

from dataclasses import dataclass, field

from liedyn.errors import Place
from liedyn.io.keys import Choice, Either, Key, Keys, List, Number, Text, default_of, kinds_with
from liedyn.io.scenarios.scenario import Rule

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


LIMIT_STOPS = Keys("limit_stops", (
    Key("mode", Choice(tuple(MODES)), "`compliant`: beyond the limit a spring with damping acts; `hard`: the velocity jumps at "
        "the limit", default_of(LimitStops, "mode"), example="hard"),
    _of_mode("stiffness", Number(above=0, most=LARGEST), "of `compliant`: k [N m/rad or N/m]", "by `sink`", example=2000),
    _of_mode("sink", Number(least=LEAST_SINK, most=LARGEST), "of `compliant`, instead of `stiffness`: depth at which a stop "
             "carries the load of its joint [rad or m]; see below", "0.01 rad, 0.001 m", example=0.01),
    _of_mode("damping", Number(least=0, most=LARGEST), "of `compliant`: c [s/rad or s/m]", example=2),
    _of_mode("restitution", Number(least=0, most=1), "of `hard`: speed after an impact, as a part of the speed before",
             example=0.4),
    Key("joints", List(Text(), 1), "joints or patterns that have stops", "all with position limits", example=["elbow"])),
    kind="mode")
LIMITS = Either((Choice(tuple(WORDS)), LIMIT_STOPS), "limits_act")
