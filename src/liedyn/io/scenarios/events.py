"""Phases and events of a scenario: what they are."""
from __future__ import annotations

from dataclasses import dataclass, field

from liedyn.errors import Place
from liedyn.io.scenarios.scenario import Expression, Rule


@dataclass(frozen=True, slots=True)
class Phase:
    """joints: what holds in place of the scenario's rules for these joints; impulsive: prescribed velocities may jump when the
    phase begins, by an impulse; open: loops and couplings that do not act."""

    name: str
    joints: tuple[Rule, ...] = ()
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

    q: tuple[Rule, ...] = ()
    v: tuple[Rule, ...] = ()
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
class TouchEvent:
    """The first contact of a link (or pattern) begins, or its last one ends, way 1 or -1. other: a plane or link that it touches,
    or any."""

    link: str
    other: str | None = None
    way: int = 1


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

    @property
    def has_impact(self) -> bool:
        return any(isinstance(action, Impact) for action in self.actions)
