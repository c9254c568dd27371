"""What of which links touches which planes: `contacts` of a scenario."""
from __future__ import annotations

from dataclasses import dataclass, field

from liedyn.errors import Place
from liedyn.io.scenarios.scenario import Rule

# What can touch, and what is given of it, as in robot files: a point its position, a box its lengths.
SHAPES = {"point": (), "sphere": ("radius",), "capsule": ("radius", "length"), "box": ("x", "y", "z")}
EXPONENTS = (1.0, 1.5, 2.0)
LEAST_CREEP = 1e-9
LEAST_LENGTH = 1e-12     # m: of what a contact sinks, and of the width of the smooth form
LARGEST_CREEP = 1e6      # m/s


@dataclass(frozen=True, slots=True)
class Material:
    """N = stiffness d^exponent (1 + damping d'), friction mu N u / sqrt(u^2 + creep^2), see `kernels.simulation.contact`.

    stiffness    [N/m^exponent]; None: such that a contact sinks by `sink` [m] under its share of the weight
    smooth       width [m] of the smooth form; None: the law itself
    """

    friction: float = 0.8
    stiffness: float | None = None
    sink: float = 1e-3
    exponent: float = 1.5
    damping: float = 2.0         # s/m
    creep: float = 1e-3          # m/s
    smooth: float | None = None  # m


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a link touches: `corners` [m] in the shape's frame, each a sphere of `radius`; `carrying` of them share a load."""

    kind: str
    sizes: tuple[float, ...]
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    material: tuple[tuple[str, float], ...] = ()          # what differs from the other contacts
    place: Place = field(default=Place(), compare=False)

    @property
    def radius(self) -> float:
        return self.sizes[0] if self.kind in ("sphere", "capsule") else 0.0

    @property
    def carrying(self) -> int:
        return {"point": 1, "sphere": 1, "capsule": 2, "box": 4}[self.kind]

    @property
    def corners(self) -> tuple[tuple[float, float, float], ...]:
        if self.kind == "box":
            x, y, z = (s / 2 for s in self.sizes)
            return tuple((a * x, b * y, c * z) for c in (-1, 1) for a in (1, -1) for b in (1, -1))
        if self.kind == "capsule":
            return (0.0, 0.0, -self.sizes[1] / 2), (0.0, 0.0, self.sizes[1] / 2)
        return ((0.0, 0.0, 0.0),)


@dataclass(frozen=True, slots=True)
class Plane:
    """The half space below it is solid. normal: any length but zero; link: that carries it, in whose frame both vectors are."""

    name: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    link: str | None = None
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """links: two names or patterns."""

    links: tuple[str, str]
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Contact:
    """links: rules whose value is a tuple of `Shape`. Each shape touches each plane; links of a pair touch each other."""

    links: tuple[Rule, ...]
    planes: tuple[Plane, ...] = (Plane("ground"),)
    material: tuple[tuple[str, float], ...] = ()
    pairs: tuple[Pair, ...] = ()
    place: Place = field(default=Place(), compare=False)
